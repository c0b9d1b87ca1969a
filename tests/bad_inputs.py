"""A seeded generator of bad and extreme inputs, and the verdict on what an estimator does with one.

One trial again, with its traceback: ``python tests/bad_inputs.py SEED NUMBER``; the seed ``known``
stands for the cases that once went wrong. With ``SEED FIRST LAST`` this is the worker of
``tests/test_bad_inputs.py``: it prints a line of JSON before and after each trial, and the process
ends itself when one of them takes more than `SECONDS` of CPU time, inside a compiled loop too.
"""

import contextlib
import faulthandler
import functools
import io
import json
import os
import re
import signal
import subprocess
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

import s3vm_lib
from s3vm_lib.class_ratio import RATIO_RULES
from s3vm_lib.smooth import Coordinates
from s3vm_lib.stochastic import Features, Polish, Schedule

SECONDS = 60  # of CPU time, for one trial
SLOWEST = 3600  # seconds of the clock for one worker, where none is able to count its own

# Parameters with which a fit of a few rows takes milliseconds, where the defaults take longer.
QUICK = {
    "BGS3VM": dict(max_iter=1000),
    "BranchBoundS3VM": dict(max_iter=60),
    "DAS3VM": dict(n_temperatures=4, max_rounds=5),
    "FRS3VM": dict(n_features=32, n_steps=10, polish=Polish(max_iter=20)),
    "GKM": dict(max_iter=1000),
    "GKMRegressor": dict(max_iter=1000),
    "NNBBS3VM": dict(n_neighbors=2, max_iter=60),
    "TSGS3VM": dict(
        n_features=32, features=Features(block_size=16), n_steps=10, polish=Polish(max_iter=20)
    ),
}
# Parameters that are groups of others: these are drawn one by one.
GROUPS = {
    "coordinates": Coordinates,
    "features": Features,
    "schedule": Schedule,
    "polish": Polish,
}
# The amount of work is the caller's choice: these are not drawn large.
WORK = {"max_iter", "max_inner_iter", "max_rounds", "n_steps", "n_temperatures", "online_steps"}
WORK |= {"n_starts"}

NUMBERS = [
    0, -1, 1, 2, 3, 50, 400, 10**6, 10**9, 2**70, -1.0, 0.0, 5e-324, 1e-300, 1e-160, 1e-100, 1e-30,
    1e-16, 1e-12, 1e-6, 0.1, 0.5, 0.999999, 1.0, 1.0000001, 1.5, 10.0, 1e4, 1e10, 1e20, 1e30, 1e38,
    1e60, 1e100, 1e160, 1e300, np.inf, -np.inf, np.nan, np.float32(0.5), np.int64(2), True,
]  # fmt: skip
OTHERS = [None, "foo", "", [], [1.0], [0.5, 1.0], {}, (), object, 1j, b"rbf", np.array([1.0, 2.0])]

# What an error may call the data; names of parameters are added for each estimator.
DATA = (
    r"\b([XyK]|sample_weight|[Ss]ample weights?|unlabeled_mask|classes|kernel|graph|labels?|index|"
    r"sparse|features?|samples?|arrays?|dtypes?|columns?|weights|numbers of samples|float|"
    r"[Cc]omplex)\b|DataFrame|1d array|2D array"
)


def estimators():
    """Every public class with ``fit``, by name."""
    found = {name: getattr(s3vm_lib, name) for name in s3vm_lib.__all__}
    return {name: found[name] for name in sorted(found) if hasattr(found[name], "fit")}


class Trial:
    """What is tried: an estimator, its parameters, the data, and words for all of it."""

    def __init__(self, name, parameters, X, y, weight, mask, new, words):
        self.name, self.parameters, self.X, self.y = name, parameters, X, y
        self.weight, self.mask, self.new, self.words = weight, mask, new, words

    def __str__(self):
        shown = ", ".join(f"{k}={v!r}" for k, v in self.parameters.items())
        return f"{self.name}({shown}) on {'; '.join(self.words)}"


def trial(seed, number):
    """The trial of this number."""
    rng = np.random.default_rng([seed, number])
    names = list(estimators())
    name = names[number % len(names)]
    words = []
    parameters = _parameters(rng, name)
    if "balance" in estimators()[name]().get_params():
        _balance(np.random.default_rng([seed, number, 1]), parameters)
    X, new = _rows(rng, words)
    y = _targets(rng, X, words) if name == "GKMRegressor" else _labels(rng, X, words)
    if isinstance(parameters.get("kernel"), str) and parameters["kernel"] == "precomputed":
        X, new = _gram(rng, X, new, words)
    weight = _weights(rng, len(y), words) if rng.random() < 0.25 else None
    mask = None
    if rng.random() < 0.08:
        word, mask = _pick(
            rng,
            {
                "mask": np.arange(len(y)) % 3 > 0,
                "mask of another length": np.zeros(len(y) + 1, bool),
                "mask of integers": np.zeros(len(y), int),
                "mask of all rows": np.ones(len(y), bool),
            },
        )
        words.append(word)
    return Trial(name, parameters, X, y, weight, mask, new, words)


# --- What once went wrong -------------------------------------------------------------------------


def _known():
    """(estimator, words, parameters, changes of the data) of every such case."""
    yield "SVM", "a frame of strings", {}, dict(y="frame")
    yield "SVM", "a frame of pandas strings", {}, dict(y="string")
    for name in ("CCCPS3VM", "S3VMLight"):
        yield name, "tol=1e-300", dict(tol=1e-300), {}
        yield name, "tol=1e-16", dict(tol=1e-16), {}
    yield "CCCPS3VM", "gamma=1e300", dict(gamma=1e300), {}
    yield "CCCPS3VM", "gamma=1e100", dict(gamma=1e100), {}
    yield "CCCPS3VM", "degree=50", dict(kernel="poly", degree=50), {}
    yield "CCCPS3VM", "degree=30", dict(kernel="poly", degree=30), {}
    yield "SVM", "X of size 1e-300", {}, dict(scale=1e-300)
    yield "SVM", "linear, X of size 1e-300", dict(kernel="linear"), dict(scale=1e-300)
    yield "SVM", "linear, X of size 1e-140", dict(kernel="linear"), dict(scale=1e-140)
    for gram in ("indefinite", "asymmetric"):
        yield "ILS3VM", f"{gram} Gram matrix", dict(kernel="precomputed"), dict(gram=gram)
    yield "ILS3VM", "sigma_f=1e-160", dict(sigma_f=1e-160), {}
    for name in ("FRS3VM", "TSGS3VM"):
        yield name, "1e6 columns", dict(n_features=1024), dict(columns=10**6)
        yield name, "degree=400", dict(kernel="poly", degree=400), {}
    yield "BGS3VM", "1e6 columns", {}, dict(columns=10**6)
    heavy = dict(class_weight={0: 1e300, 1: 1.0})
    for name in ("GKM", "GKMRegressor"):
        for weight in (1e30, 1e300):
            yield name, f"weights of {weight:g}", {}, dict(weight=weight)
        for degree in (50, 400):
            yield name, f"degree={degree}", dict(kernel="poly", degree=degree), {}
        for scale in (1e100, 1e150):
            yield name, f"linear, X of size {scale:g}", dict(kernel="linear"), dict(scale=scale)
        for parameter in ("C", "C_graph"):
            for value in (1e100, 1e300):
                yield name, f"{parameter}={value:g}", {parameter: value}, {}
        for gamma in (1e10, 1e100, 1e300):
            yield name, f"gamma={gamma:g}", dict(gamma=gamma), {}
        yield name, "coef0=1e100", dict(kernel="poly", coef0=1e100), {}
        yield name, "indefinite Gram matrix", dict(kernel="precomputed"), dict(gram="indefinite")
    yield "GKM", "class_weight of 1e300", heavy, {}
    for scale in (1e60, 1e100, 1e150):
        yield "MultiSwitchTSVM", f"X of size {scale:g}", {}, dict(scale=scale)
    for name in ("MultiSwitchTSVM", "BGS3VM"):
        yield name, "weights of 1e300", {}, dict(weight=1e300)
        yield name, "C=1e300", dict(C=1e300), {}
        yield name, "class_weight of 1e300", heavy, {}
    yield "MultiSwitchTSVM", "C=1e100", dict(C=1e100), {}
    for name in ("FRS3VM", "TSGS3VM"):
        for parameter in ("batch_size", "labeled_batch"):
            schedule = Schedule(**{parameter: 2**31 - 1})
            yield name, f"{parameter}=2**31 - 1", dict(schedule=schedule), {}


KNOWN = [f"{name}, {words}" for name, words, *_ in _known()]


def known(number):
    """The trial of this number among `KNOWN`."""
    name, words, parameters, change = list(_known())[number]
    rng = np.random.default_rng(number)
    n = 40
    y = np.arange(n) % 2
    X = rng.standard_normal((n, 3)) + 2.0 * y[:, None]
    new = rng.standard_normal((5, 3))
    y = np.where(np.arange(n) < 8, y, -1)
    X, new = X * change.get("scale", 1.0), new * change.get("scale", 1.0)
    if "columns" in change:
        X, new = (
            sp.random(m, change["columns"], 1e-4, format="csr", random_state=m) for m in (n, 5)
        )
    if "gram" in change:
        K, new = X @ X.T, new @ X.T
        noise = rng.standard_normal((n, n))
        X = np.tanh(K - 1.0) if change["gram"] == "indefinite" else K + noise
    if "y" in change:
        named = np.where(y < 0, -1, np.array(["no", "yes"], dtype=object)[y])
        named = named.astype(str) if change["y"] == "string" else named
        y = pd.DataFrame({"label": named}, dtype=change["y"] if change["y"] == "string" else None)
    if name == "GKMRegressor":
        y = np.where(y < 0, np.nan, y)
    weight = np.full(n, change["weight"]) if "weight" in change else None
    options = QUICK.get(name, {}) | parameters
    if "random_state" in estimators()[name]().get_params():
        options["random_state"] = 0
    return Trial(name, options, X, y, weight, None, new, [words])


def _pick(rng, choices):
    name = list(choices)[rng.integers(len(choices))]
    return name, choices[name]


# --- Parameters -----------------------------------------------------------------------------------


def _parameters(rng, name):
    """Those of `QUICK`, a kernel, and up to three drawn near and beyond what is allowed."""
    cls = estimators()[name]
    defaults = cls().get_params()
    parameters = dict(QUICK.get(name, {}))
    if "kernel" in defaults and rng.random() < 0.6:
        kernels = ["linear", "poly", "rbf", "laplacian", "precomputed"]
        parameters["kernel"] = kernels[rng.integers(5)]
    for _ in range(rng.choice(4, p=[0.3, 0.4, 0.2, 0.1])):
        drawn = sorted(defaults)[rng.integers(len(defaults))]
        if drawn in GROUPS and rng.random() < 0.8:
            fields = GROUPS[drawn]._constraints
            name = sorted(fields)[rng.integers(len(fields))]
            value = _value(rng, name, fields[name])
            parameters[drawn] = functools.partial(GROUPS[drawn], **{name: value})
            continue
        parameters[drawn] = _value(rng, drawn, cls._parameter_constraints.get(drawn, []))
    return parameters


def _balance(rng, parameters):
    """In one trial of two a name, all of which are seldom drawn, or shares, good or bad."""
    shares = [0.3, 0.5, 0.7, 0.0, 1.0, -1.0, 1e-300, np.inf, np.nan, True, "x", None, [0.5]]
    kind = rng.random()
    if kind < 0.3:
        parameters["balance"] = str(rng.choice(sorted(RATIO_RULES)))
    elif kind < 0.5:
        classes = [(0, 1), ("no", "yes"), (0, 1, 2), (-1, 1), (0,), ()][rng.integers(6)]
        first = shares[rng.integers(len(shares))] if rng.random() < 0.5 else 0.3
        last = 1.0 - first if isinstance(first, float) else 0.5
        parameters["balance"] = dict(zip(classes, (first, last, 0.2), strict=False))


def _value(rng, name, constraints):
    if name == "class_weight" and rng.random() < 0.7:
        numbers = [-1.0, 0.0, 1e-300, 0.5, 1e30, 1e300, np.inf, np.nan, "x", None]
        return {0: numbers[rng.integers(len(numbers))], 1: 1.0}
    if name == "callback" and rng.random() < 0.5:
        return lambda state: True
    choices = []
    for constraint in constraints:
        if isinstance(constraint, StrOptions):
            choices += sorted(constraint.options)
        elif isinstance(constraint, Interval):
            ends = [end for end in (constraint.left, constraint.right) if end is not None]
            choices += [*ends, *(end * 1.01 for end in ends), *(end * 0.99 for end in ends)]
    pools = [NUMBERS] * 4 + [OTHERS] + [choices or NUMBERS] * 2
    pool = pools[rng.integers(len(pools))]
    value = pool[rng.integers(len(pool))]
    if name in WORK and isinstance(value, int | float) and 50 < value < np.inf:
        value = 50
    if name == "callback" and value is object:
        return None  # it can be called, and fails as any callback may
    return 0 if name == "verbose" and value is not None else value


# --- Data -----------------------------------------------------------------------------------------


def _rows(rng, words):
    """Training rows and new ones."""
    n, d = int(rng.integers(4, 24)), int(rng.integers(1, 5))
    X = rng.standard_normal((n, d))
    X[:, 0] += np.where(np.arange(n) % 2, 1.5, -1.5)
    new = rng.standard_normal((5, d))
    kind = rng.choice(["plain", "scale", "value", "shape", "type", "sparse"],
                      p=[0.35, 0.2, 0.15, 0.1, 0.1, 0.1])  # fmt: skip
    change = {
        "plain": _plain, "scale": _scaled, "value": _odd_values, "shape": _odd_shape,
        "type": _odd_type, "sparse": _sparse,
    }[kind]  # fmt: skip
    word, X, new = change(rng, X, new)
    words.append(f"{n} × {d} rows, {word}")
    return X, new


def _plain(rng, X, new):
    return "plain", X, new


def _scaled(rng, X, new):
    exponent = int(rng.choice([-320, -300, -200, -160, -100, -60, -30, -12, -6, 6, 12, 20, 30, 60,
                               100, 149, 155, 160, 200, 300]))  # fmt: skip
    factor = float(f"1e{exponent}")
    where = rng.choice(["all", "column", "row", "entry", "new", "shift"])
    with np.errstate(all="ignore"):
        if where == "all":
            X, new = X * factor, new * factor
        elif where == "column":
            X[:, 0] *= factor
            new[:, 0] *= factor
        elif where == "row":
            X[1] *= factor
        elif where == "entry":
            X[1, 0] = factor
        elif where == "new":
            new = new * factor
        else:
            X, new = X + factor, new + factor
    return f"{where} scaled by {factor:g}", X, new


def _odd_values(rng, X, new):
    word = rng.choice(["nan", "inf", "constant", "zeros", "duplicates", "identical", "nan in new",
                       "inf in new", "constant column"])  # fmt: skip
    if word in ("nan", "inf"):
        X[1, 0] = float(word)
    elif word in ("constant", "zeros"):
        X = np.full_like(X, 3.0 if word == "constant" else 0.0)
    elif word == "duplicates":
        X = X[np.arange(len(X)) // 2]
    elif word == "identical":
        X = np.tile(X[:1], (len(X), 1))
    elif word == "constant column":
        X[:, 0] = 7.0
    else:
        new[0, 0] = float(word[:3])
    return word, X, new


def _odd_shape(rng, X, new):
    return {
        0: lambda: ("no rows", X[:0], new),
        1: lambda: ("one row", X[:1], new),
        2: lambda: ("two rows", X[:2], new),
        3: lambda: ("no columns", X[:, :0], new[:, :0]),
        4: lambda: ("one dimension", X[:, 0], new[:, 0]),
        5: lambda: ("three dimensions", X[:, :, None], new),
        6: lambda: ("new rows with one column more", X, np.c_[new, new[:, 0]]),
        7: lambda: ("no new rows", X, new[:0]),
    }[int(rng.integers(8))]()


def _odd_type(rng, X, new):
    def strings(A):
        return np.array([[f"s{v:.1f}" for v in row] for row in A], dtype=object)

    word, to = _pick(
        rng,
        {
            "float32": lambda A: A.astype(np.float32),
            "float16": lambda A: A.astype(np.float16),
            "integers": lambda A: np.round(A).astype(np.int8),
            "booleans": lambda A: A > 0,
            "complex": lambda A: A + 1j,
            "objects": lambda A: A.astype(object),
            "strings": strings,
            "lists": lambda A: A.tolist(),
            "frame": pd.DataFrame,
            "frame of strings": lambda A: pd.DataFrame(strings(A)),
            "fortran": np.asfortranarray,
            "None inside": lambda A: np.where(A > 2, None, A.astype(object)),
        },
    )
    return word, to(X), to(new)


def _sparse(rng, X, new):
    word = rng.choice(["csr", "csc", "coo", "explicit zeros", "huge", "1e6 columns", "array",
                       "empty rows", "nan"])  # fmt: skip
    if word == "1e6 columns":
        d = 10**6
        X, new = (
            sp.random(A.shape[0], d, 2e-5, format="csr", random_state=int(rng.integers(2**31)))
            for A in (X, new)
        )
        return word, X, new
    A, B = sp.csr_matrix(X), sp.csr_matrix(new)
    if word == "explicit zeros":
        A.data[::2] = 0.0
    elif word == "huge":
        A.data[0] = 1e200
    elif word == "nan":
        A.data[0] = np.nan
    elif word == "empty rows":
        A = sp.csr_matrix(np.where(np.arange(len(X))[:, None] % 2, X, 0.0))
    elif word == "array":
        A, B = sp.csr_array(A), sp.csr_array(B)
    elif word in ("csc", "coo"):
        A, B = A.asformat(word), B.asformat(word)
    return f"sparse, {word}", A, B


def _gram(rng, X, new, words):
    """A matrix of kernel values in place of the rows, good or bad."""
    try:
        A = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
        B = np.asarray(new.toarray() if sp.issparse(new) else new, dtype=float)
        with np.errstate(all="ignore"):
            K, rest = A @ A.T, B @ A.T
    except (TypeError, ValueError):
        return X, new
    word = rng.choice(["good", "asymmetric", "hardly asymmetric", "indefinite", "negative", "nan",
                       "not square", "negative diagonal", "zero", "random", "sparse"])  # fmt: skip
    n = len(K)
    with np.errstate(all="ignore"):
        if word == "asymmetric":
            K = K + rng.standard_normal(K.shape)
        elif word == "hardly asymmetric":
            K = K * (1 + 1e-12 * rng.standard_normal(K.shape))
        elif word == "indefinite":
            K = np.tanh(2 * K - 1)
        elif word == "negative":
            K = -K
        elif word == "nan" and n:
            K[0, -1] = np.nan
        elif word == "not square":
            K = K[:, : n - 1]
        elif word == "negative diagonal" and n:
            K[0, 0] = -5.0
        elif word == "zero":
            K = np.zeros_like(K)
        elif word == "random":
            K = rng.standard_normal(K.shape)
            K = K + K.T
        elif word == "sparse":
            K = sp.csr_matrix(K) if K.ndim == 2 else K
    words.append(f"Gram matrix, {word}")
    return K, rest


def _codes(rng, n):
    y = np.arange(n) % 2
    y[rng.permutation(n)[: n // 2]] = -1
    if n > 1:
        y[:2] = 0, 1
    return y


def _labels(rng, X, words):
    shape = getattr(X, "shape", None)
    n = len(X) if shape is None else shape[0]
    y = _codes(rng, n)
    if rng.random() < 0.6:
        return y
    named = np.array(["no", "yes", "?"], dtype=object)[y]
    word, make = _pick(
        rng,
        {
            "one class": lambda: np.where(y == 1, -1, y),
            "three classes": lambda: np.where((y == 1) & (np.arange(n) % 3 == 0), 2, y),
            "strings with -1": lambda: np.where(y < 0, -1, named),
            "strings with '-1'": lambda: np.where(y < 0, "-1", named.astype(str)),
            "frame of strings": lambda: pd.DataFrame({"a": np.where(y < 0, -1, named)}),
            "frame of pandas strings": lambda: pd.DataFrame({"a": pd.array(named, dtype="string")}),
            "series of strings": lambda: pd.Series(np.where(y < 0, -1, named)),
            "categories": lambda: pd.Categorical.from_codes(y, ["no", "yes"]),
            "None": lambda: np.where(y < 0, None, named),
            "pd.NA": lambda: [pd.NA if v < 0 else str(v) for v in y],
            "nullable integers": lambda: pd.array(np.where(y < 0, None, y), dtype="Int64"),
            "nan": lambda: np.where(y < 0, np.nan, y),
            "minus one and one": lambda: np.where(y == 0, -1, 1),
            "minus one, one and zero": lambda: np.where(y < 0, 0, 2 * y - 1),
            "all unlabeled": lambda: np.full(n, -1),
            "all labeled": lambda: np.arange(n) % 2,
            "unbalanced": lambda: np.where(np.arange(n) == 1, 1, np.where(y == 1, 0, y)),
            "too short": lambda: y[:-1],
            "matrix": lambda: np.c_[y, y],
            "no labels": lambda: None,
            "floats": lambda: y.astype(float),
            "halves": lambda: y + 0.5,
            "huge": lambda: np.where(y == 1, 10**18, y),
            "booleans": lambda: y == 1,
            "complex": lambda: y + 1j,
            "objects": lambda: y.astype(object),
            "bytes": lambda: named.astype("S3"),
            "tuples": lambda: [(0, 1)] * n,
        },
    )
    words.append(f"labels: {word}")
    result = make()
    return [] if result is None else result


def _targets(rng, X, words):
    shape = getattr(X, "shape", None)
    n = len(X) if shape is None else shape[0]
    y = np.where(np.arange(n) % 2, np.nan, np.linspace(0.0, 1.0, n))
    if rng.random() < 0.6:
        return y
    word, make = _pick(
        rng,
        {
            "none known": lambda: np.full(n, np.nan),
            "all known": lambda: np.linspace(0.0, 1.0, n),
            "constant": lambda: np.where(np.isnan(y), y, 3.0),
            "infinite": lambda: np.where(np.isnan(y), np.inf, y),
            "1e300": lambda: y * 1e300,
            "1e160": lambda: y * 1e160,
            "1e30": lambda: y * 1e30,
            "1e-300": lambda: y * 1e-300,
            "shift of 1e20": lambda: y + 1e20,
            "strings": lambda: np.full(n, "a"),
            "pd.NA": lambda: [pd.NA] * n,
            "None": lambda: np.where(np.isnan(y), None, y),
            "complex": lambda: y + 1j,
            "too short": lambda: y[:-1],
            "matrix": lambda: np.c_[y, y],
        },
    )
    words.append(f"targets: {word}")
    return make()


def _weights(rng, n, words):
    ones = np.ones(n)
    word, value = _pick(
        rng,
        {
            "weights 1e300": ones * 1e300,
            "weights 1e150": ones * 1e150,
            "weights 1e30": ones * 1e30,
            "weights 1e10": ones * 1e10,
            "weights 1e-300": ones * 1e-300,
            "weights 1e-30": ones * 1e-30,
            "weights 5e-324": ones * 5e-324,
            "one weight of 1e300": np.where(np.arange(n) == 0, 1e300, 1.0),
            "one weight of 1e30": np.where(np.arange(n) == 0, 1e30, 1.0),
            "one weight of 1e-30": np.where(np.arange(n) == 0, 1e-30, 1.0),
            "weights from 1e-20 to 1e20": 10.0 ** np.linspace(-20, 20, n),
            "weights of zero": ones * 0,
            "a weight of zero": np.where(np.arange(n) == 0, 0.0, 1.0),
            "a negative weight": np.where(np.arange(n) == 0, -1.0, 1.0),
            "a weight of nan": np.where(np.arange(n) == 0, np.nan, 1.0),
            "a weight of inf": np.where(np.arange(n) == 0, np.inf, 1.0),
            "a weight too many": np.ones(n + 1),
            "weights in a matrix": np.ones((n, 2)),
            "one number as weight": 2.0,
            "weights that are strings": np.full(n, "a"),
            "random weights": rng.random(n),
        },
    )
    words.append(word)
    return value


# --- The verdict ----------------------------------------------------------------------------------

ERRORS = (ValueError, TypeError, FloatingPointError, OverflowError, MemoryError)


def run(attempt):
    """None where all is well, otherwise what is wrong."""
    try:
        given = {k: v() if _group(v) else v for k, v in attempt.parameters.items()}
    except ERRORS as error:
        return None if _says_what(error, attempt) else f"unclear {type(error).__name__}: {error}"
    model = estimators()[attempt.name](**given)
    before = dict(vars(model))
    arguments = {
        k: v
        for k, v in (("sample_weight", attempt.weight), ("unlabeled_mask", attempt.mask))
        if v is not None
    }
    if attempt.name == "SelfTrainingKNN":
        arguments.pop("sample_weight", None)
    steps = [("fit", lambda: model.fit(attempt.X, attempt.y, **arguments))]
    steps += [("predict", lambda: model.predict(attempt.new))]
    if hasattr(model, "decision_function"):
        steps += [("decision_function", lambda: model.decision_function(attempt.new))]
    if hasattr(model, "partial_fit"):
        steps += [("partial_fit", lambda: model.partial_fit(attempt.X, attempt.y, **arguments))]
        steps += [("predict", lambda: model.predict(attempt.new))]
    if hasattr(model, "forget"):
        steps += [("forget", lambda: model.forget([0])), ("predict", steps[1][1])]
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for step, call in steps:
            try:
                result = call()
            except ERRORS as error:
                if not _says_what(error, attempt):
                    return f"{step}: unclear {type(error).__name__}: {error}"
                if step == "fit" and not _same(vars(model), before):
                    return f"fit failed and changed the estimator: {error}"
                if step in ("fit", "partial_fit"):
                    return None
                continue
            bad = _not_finite(result if step not in ("fit", "partial_fit", "forget") else model)
            if bad:
                return f"{step}: {bad} not finite"
    return None


def _group(value):
    """Whether it is a group of parameters that is still to be made, and may fail."""
    return isinstance(value, functools.partial)


def _same(after, before):
    return set(after) == set(before) and all(after[k] is before[k] for k in before)


def _says_what(error, attempt):
    """Whether the message names a parameter or the data."""
    names = set(estimators()[attempt.name]().get_params())
    names.update(*(cls._constraints for name, cls in GROUPS.items() if name in names))
    names = "|".join(sorted(names, key=len, reverse=True))
    return re.search(rf"\b({names})\b|{DATA}", str(error)) is not None


def _not_finite(result):
    """The name of a part that holds NaN or inf."""
    if isinstance(result, np.ndarray) or np.isscalar(result):
        return "" if _finite(result) else "result"
    for name in ("coef_", "dual_coef_", "intercept_", "feature_coef_", "objective_"):
        if name == "objective_" and result.get_params().get("transduce") is False:
            continue
        value = getattr(result, name, None)
        if value is not None and not _finite(value):
            return name
    return ""


def _finite(value):
    value = np.asarray(value.data if sp.issparse(value) else value)
    return value.dtype.kind not in "fc" or bool(np.isfinite(value).all())


# --- One trial, or the worker ---------------------------------------------------------------------


def _made(seed, number):
    return known(number) if seed == "known" else trial(int(seed), number)


def _judged(seed, number):
    try:
        return run(_made(seed, number))
    except Exception:
        # What no estimator may raise: the whole traceback is the verdict.
        return traceback.format_exc()


def verdicts(worker, seed, first, last):
    """What is wrong with the trials of a range, by number; nothing for those that are well.

    A trial that takes too long gets a second try: the first one may have compiled something.
    """
    wrong, late = {}, set()
    while first < last:
        command = [sys.executable, "-P", str(worker), str(seed), str(first), str(last)]
        path = os.pathsep.join([str(Path(s3vm_lib.__file__).parents[1]), *filter(None, sys.path)])
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SLOWEST, check=False
        )
        reports = [json.loads(line) for line in result.stdout.splitlines()]
        assert reports, result.stderr
        wrong |= {number: verdict for number, *rest in reports for verdict in rest if verdict}
        number, hangs = reports[-1][0], result.returncode == -getattr(signal, "SIGPROF", 0)
        if len(reports[-1]) == 1 and hangs and number not in late:
            late.add(number)
            first = number
            continue
        if len(reports[-1]) == 1:
            end = "a hang" if hangs else "a crash"
            wrong[number] = f"{end}, exit status {result.returncode}\n{result.stderr}"
        first = number + 1
    return wrong


def main(seed, first, last=None, judged=None):
    """Run one trial, or those of a range with the limit on CPU time."""
    judged = judged or _judged
    if last is None:
        print(_made(seed, first))
        print(_judged(seed, first))
        return
    limited = hasattr(signal, "setitimer")
    if limited:
        faulthandler.register(signal.SIGPROF, chain=True)
    for number in range(first, last):
        print(json.dumps([number]), flush=True)
        if limited:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
        print(json.dumps([number, judged(seed, number)]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
