"""All numbers and words that a fitted estimator reports, and whether two report the same."""

import dataclasses
import re

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose


def leaves(value, name):
    """The numbers and words that a value is made of, with the path to each."""
    if dataclasses.is_dataclass(value) and not hasattr(value, "get_params"):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, f"{name}.{key}")
    elif sp.issparse(value):
        yield name, value.toarray()
    elif isinstance(value, list | tuple):
        yield f"{name}.length", len(value)
        for k, part in enumerate(value):
            yield from leaves(part, f"{name}[{k}]")
    elif hasattr(value, "__dict__") and vars(value):
        yield from leaves(vars(value), name)
    else:
        yield name, value


def attributes(model):
    """Public fitted attributes, those that are computed when they are asked for included."""
    names = [name for name in dir(model) if name.endswith("_") and not name.startswith("_")]
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def numbers(found, without=()):
    """The leaves of all attributes but those whose path a pattern matches from its beginning."""
    parts = [part for name, value in found.items() for part in leaves(value, name)]
    return {path: v for path, v in parts if not any(re.match(left, path) for left in without)}


def assert_equal(found, expected, rtol=0.0, atol=None):
    assert found.keys() == expected.keys()
    for path, value in found.items():
        other = expected[path]
        if np.asarray(value).dtype.kind in "fiub" and np.asarray(other).dtype.kind in "fiub":
            tolerance = dict(rtol=rtol, atol=rtol if atol is None else atol, err_msg=path)
            assert_allclose(np.asarray(value, float), np.asarray(other, float), **tolerance)
        else:
            assert repr(value) == repr(other), path
