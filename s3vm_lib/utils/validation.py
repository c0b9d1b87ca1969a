"""Checks of estimators: parameters, rows, labels and weights; a fit that fails changes nothing."""

import functools
import inspect
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from numbers import Integral
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform, get_type_hints

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import _check_sample_weight, _is_fitted

from s3vm_lib.utils.labels import APART, mark_missing, split_labels, warn_of_marks
from s3vm_lib.utils.limits import (
    Constant,
    Degree,
    Deviation,
    Scale,
    check_size,
    checked_gram,
    constraints,
)
from s3vm_lib.utils.row_blocks import is_mapped
from s3vm_lib.utils.shortcuts import checked_rows_and_labels
from s3vm_lib.utils.threads import MOST

Rows = ArrayLike | sp.spmatrix | sp.sparray

_Method = TypeVar("_Method", bound=Callable)


def _checking(inside: bool) -> Callable[[_Method], _Method]:
    """Make a decorator that checks parameters first, also those of estimators ``inside``.

    A call that fails leaves the estimator as it was.
    """

    def decorate(method):
        takes = list(inspect.signature(method).parameters)

        @functools.wraps(method)
        def checked(estimator, *arguments, **named):
            for name in named.keys() - takes:
                asked = f"{type(estimator).__name__}.{method.__name__} takes {', '.join(takes[1:])}"
                raise TypeError(f"{asked}, got {name}{': ' + APART if 'y' in takes else ''}")
            skip = get_config()["skip_parameter_validation"]
            if not skip and not (method.__name__ == "partial_fit" and _is_fitted(estimator)):
                estimator._validate_params()
            skip = skip or not inside
            with config_context(skip_parameter_validation=skip), _unchanged_on_error(estimator):
                return method(estimator, *arguments, **named)

        return checked

    return decorate


validated, validated_inside = _checking(False), _checking(True)


@contextmanager
def _unchanged_on_error(estimator):
    """Give an estimator the attributes back that it had, where what is done within fails."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException as error:
        vars(estimator).clear()
        vars(estimator).update(before)
        # Ctrl-C while numba makes arrays of a compiled function's results.
        if isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise


def checked_input(estimator, X, y, sample_weight=None, unlabeled_mask=None):
    """Check the arguments of ``fit``; set ``classes_`` and ``n_features_in_``.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n, d)
        The n × n Gram matrix where the estimator takes one.
    codes : ndarray of int, shape (n,)
        Class index of each row, −1 where unlabeled.
    weight : ndarray of shape (n,), or None as ``sample_weight``
    """
    marked = mark_missing(y, unlabeled_mask)
    told, y = marked is not y, marked
    dtype = accepted(estimator, X)
    X, y = checked_rows_and_labels(estimator, X, y, dtype, least=2)
    X = checked_rows(X, getattr(estimator, "_precomputed", False))
    codes, estimator.classes_ = split_labels(y, unlabeled_mask)
    if unlabeled_mask is None:
        warn_of_marks(estimator.classes_, None if told else codes)
    if sample_weight is not None:
        sample_weight = checked_weight(sample_weight, X)
    return X, codes, sample_weight


def checked_weight(sample_weight, X):
    """Return the weights of the rows as an array of shape (n,); refuse negative ones."""
    try:
        return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    except (TypeError, ValueError):
        shape = np.shape(sample_weight)
        if len(shape) < 2:
            raise
        message = f"sample_weight must be one-dimensional, got shape {shape}: {APART}"
        raise ValueError(message) from None


def accepted(estimator, X):
    """Return the types of numbers that an estimator takes as they are.

    Some keep single precision in a memory map, which must not be copied into memory; they convert
    it block by block.
    """
    dtypes = getattr(estimator, "_dtype", [np.float64])
    maps = getattr(estimator, "_reads_maps", False) and is_mapped(X)
    if maps and not get_tags(estimator).input_tags.pairwise:
        return [*dtypes, np.float32]
    return dtypes


def checked_rows(X, precomputed=False):
    """Return the rows; refuse numbers whose squares overflow, and what is no Gram matrix."""
    check_size(X)
    if not precomputed:
        return X
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X must be the square Gram matrix when kernel='precomputed', got shape {X.shape}"
        )
    if sp.issparse(X):
        raise ValueError("X must be dense when kernel='precomputed', got a sparse matrix")
    return checked_gram(X)


# --- Parameters -----------------------------------------------------------------------------------


def options(estimator, solver):
    """Return the parameters of an estimator that a solver takes as keywords of the same names."""
    known = estimator._parameter_constraints
    return {name: getattr(estimator, name) for name in _keywords(solver) if name in known}


@functools.cache  # a signature takes as long as a step of a small fit
def _keywords(solver):
    takes = inspect.signature(solver).parameters.values()
    return [one.name for one in takes if one.kind is one.KEYWORD_ONLY and one.name != "callback"]


Jobs = Annotated[
    int | None,
    Interval(Integral, 1, MOST, closed="both"),
    Interval(Integral, -MOST, -1, closed="both"),
    None,
]
Client = Annotated[Any | None, HasMethods(["submit", "gather"]), None]  # of a Dask cluster
Estimator = Annotated[BaseEstimator, HasMethods(["fit", "predict"])]
Array = Annotated[ArrayLike, "array-like"]
Storage = Literal["auto", "full", "rows"]  # of kernel values, see `Gram`


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def parameters(cls: type) -> type:
    """Make the annotated fields of a class the parameters of its constructor, given by name.

    As scikit-learn requires, the constructor stores what it is given, and nothing else. The
    constraints that `fit` checks are read from the types, see `constraints`.
    """
    cls = dataclass(kw_only=True, eq=False, repr=False)(cls)
    # A signature shows no limits.
    cls.__init__.__annotations__ = get_type_hints(cls.__init__) | {"return": None}
    cls._parameter_constraints = {one.name: constraints(one.type) for one in fields(cls)}
    return cls


@parameters
class KernelParameters:
    """The kernel of an estimator."""

    kernel: Literal["linear", "poly", "rbf", "laplacian", "precomputed"] = "rbf"
    gamma: Literal["scale", "variance", "auto"] | Scale = "scale"
    degree: Degree = 3
    coef0: Constant = 0.0
    sigma_f: Deviation = 1.0
