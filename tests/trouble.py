"""A seeded generator of the trouble that real data bring, and the verdict on what a fit does.

``tests/bad_inputs.py`` tries what nobody should pass. Here everything is legal: years, constant
columns, amounts beside shares, far origins, copies, rare classes, one label a class, weights from
1e-12 to 1e12, every marker of an unlabeled row, every container, streams that begin with one class.

A trial is one estimator, its parameters and such data. The oracle (`complaints`) asks no solver
about itself: it computes kernels, objectives and supervised machines anew. What it demands:

- *the same machine*: objectives within 0.1 %, and the same class wherever the output is not tiny,
  for shifted rows (where the definition allows that), rows in another order, other names of the
  classes, other containers and markers, and copies in place of weights;
- *no lie*: the objective is J of the machine, not negative, and not above that of a constant that
  meets the balance, of the same problem solved by another solver (convex ones), or of what `fit`
  finds (streams), where the status is "converged" and no warning says otherwise;
- *nothing silent*: more labels contradicted than a supervised machine does, a class that is never
  predicted, a share far from the one that was asked for, a marker that became a class: all of it
  has a warning or an entry of ``findings_``;
- *errors that help*: ValueError, TypeError or FloatingPointError, naming a parameter or the data
  and saying what to do; no exception of linear algebra, no warning of NumPy, no fit of seconds on
  a few rows.

Each complaint has a key, such as ``shift:LapSVM``: the demand and the estimator.

One trial: ``python tests/trouble.py SEED NUMBER``. Many, on all cores: ``python tasks.py trouble
--trials 5000 --seed 0``. With ``SEED FIRST LAST`` this is the worker of that task, with the
protocol of ``tests/bad_inputs.py``.
"""

import argparse
import collections
import contextlib
import io
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import bad_inputs
import joblib
import numpy as np
import pandas as pd
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from s3vm_lib import CCCPS3VM, QNS3VM, encode_labels
from s3vm_lib.calibration import CalibratedS3VM
from s3vm_lib.model_selection import SemiSupervisedKFold, WithUnlabeled
from s3vm_lib.stochastic import Features, Polish

SECONDS = 10.0  # of CPU time for one fit of at most 200 rows
SAME = 1e-3  # relative difference of objectives that are the same
COUNTED = ("fragile", "refused")  # keys that begin so are no complaints
LOSS = 1e-6  # share of J at f = 0 that no difference of objectives falls below
TINY = 0.05  # share of the largest output below which its sign may change
PERTURBED = 4  # fits of rows that differ by rounding alone

# Parameters with which a small fit takes milliseconds; these are not what is tried.
QUICK = {
    "BGS3VM": dict(max_iter=20_000),
    "BranchBoundS3VM": dict(max_iter=2000),
    "DAS3VM": dict(n_temperatures=8, max_rounds=20),
    "FRS3VM": dict(n_features=64, n_steps=50),
    "GKM": dict(max_iter=20_000),
    "TSGS3VM": dict(n_features=64, features=Features(block_size=32), n_steps=50),
}
# Tolerances so small that two fits of one problem have one objective.
TIGHT = {
    "BranchBoundS3VM": dict(tol=1e-9),
    "CCCPS3VM": dict(tol=1e-8),
    "DAS3VM": dict(tol=1e-8, path_tol=1e-8),
    "FRS3VM": dict(polish=Polish(rows=None, tol=1e-9, ftol=0.0)),
    "ILS3VM": dict(start_tol=1e-8),
    "LapSVM": dict(tol=1e-9),
    "MultiSwitchTSVM": dict(tol=1e-8, path_tol=1e-8),
    "NNBBS3VM": dict(tol=1e-9),
    "NewtonS3VM": dict(tol=1e-9, ftol=0.0),
    "QNS3VM": dict(tol=1e-9, ftol=0.0),
    "S3VMLight": dict(tol=1e-8, annealing_tol=1e-8),
    "SVM": dict(tol=1e-8),
    "TSGS3VM": dict(polish=Polish(rows=None, tol=1e-9, ftol=0.0)),
}
ONLINE = ("BGS3VM", "FRS3VM", "GKM", "ILS3VM", "NNBBS3VM", "TSGS3VM")
DRAWN = ("BGS3VM", "FRS3VM", "GKM", "TSGS3VM")  # the order of the rows is part of the method
COUNTING = ("MultiSwitchTSVM", "S3VMLight")  # unlabeled rows must all have one weight
AROUND = ("S3VC", "SafeS3VM", "SelfTrainingKNN")  # without an objective; they draw or count rows
LINEAR = ("DAS3VM", "MultiSwitchTSVM")
GRAPH = ("BGS3VM", "GKM", "LapSVM")
SUPERVISED = ("SVM",)


def estimators():
    """Every public classifier with ``fit``, by name."""
    found = bad_inputs.estimators()
    return {name: found[name] for name in found if name != "GKMRegressor"}


class Trial(NamedTuple):
    """An estimator with its parameters, the data, and what else is done with them."""

    name: str
    parameters: dict
    X: np.ndarray  # (n, d)
    codes: np.ndarray  # classes 0, 1, …, −1 where unlabeled, (n,)
    weight: np.ndarray | None
    extra: str  # one of `EXTRAS`
    seed: Any  # of what `extra` draws
    words: list

    def __str__(self):
        shown = ", ".join(f"{k}={v!r}" for k, v in self.parameters.items())
        n, d = self.X.shape
        labels = np.bincount(self.codes + 1).tolist()
        head = f"{self.name}({shown}) on {n} × {d} rows, unlabeled and classes {labels}"
        return f"{head}; {', '.join(self.words) or 'plain'}; then {self.extra}"

    def model(self, **changed):
        """A new estimator."""
        return estimators()[self.name](**{**self.parameters, **changed})


# --- What is tried --------------------------------------------------------------------------------


def trial(seed, number):
    """The trial of this number."""
    rng = np.random.default_rng([seed, number, 36])
    names = list(estimators())
    name, words = names[number % len(names)], []
    extra = _extra(rng, name)
    X, codes = _classes(rng, name, extra, words)
    X = _troubled(rng, X, codes, words)
    X, codes = _copied(rng, name, X, codes, words)
    sentinel = any(word.startswith("sentinel") for word in words)
    parameters = _parameters(rng, name, extra, X, codes, sentinel)
    weight = _weights(rng, name, extra, codes, words)
    return Trial(name, parameters, X, codes, weight, extra, [seed, number, 37], words)


def _extra(rng, name):
    """What is done beyond one fit."""
    shares = dict(names=1, container=1, marker=1.5, around=2)
    if name not in (*DRAWN, *AROUND):
        shares |= dict(shift=4, order=1, copies=1)
    if name in ("BGS3VM", "GKM", "S3VC", "SelfTrainingKNN"):
        shares |= dict(shift=2)
    if name in LINEAR:  # whose offset is regularized
        shares |= dict(shift=0)
    if name in ONLINE:
        shares |= dict(stream=6)
    if name in ("LapSVM", "SVM"):
        shares |= dict(around=5)
    return str(rng.choice(list(shares), p=np.array(list(shares.values())) / sum(shares.values())))


def _classes(rng, name, extra, words):
    """Rows around one center a class, and labels of some of them."""
    k = 3 if rng.random() < 0.15 else 2
    d = int(rng.integers(1, 7))
    small = name == "BranchBoundS3VM" or extra == "stream"
    d = int(rng.integers(1, 3)) if extra == "stream" else d
    n = int(rng.integers(3, 17)) if small else int(rng.integers(12, 61))
    k = min(k, n - 1)
    truth = rng.permutation(np.arange(n) % k)
    if not small and rng.random() < 0.25:
        n, share = int(rng.integers(60, 201)), float(rng.choice([0.01, 0.02, 0.05, 0.1]))
        truth = (np.arange(n) < max(2, round(share * n))).astype(int)
        truth[-1] = k - 1
        words.append(f"{truth.astype(bool).sum()} rows of rare classes")
    center = rng.standard_normal((k, d))
    center *= rng.choice([0.5, 2.0, 4.0]) / np.linalg.norm(center, axis=1).max()
    X = rng.standard_normal((n, d)) + center[truth]
    X = np.round(2 * X) if rng.random() < 0.2 else X  # counts, with many ties
    how = str(rng.choice(["one a class", "few", "half", "all"], p=[0.2, 0.45, 0.25, 0.1]))
    if extra == "stream" and rng.random() < 0.5:
        how = "all"
    most = {"one a class": 1, "few": int(rng.integers(2, 9)), "half": n // 2, "all": n}[how]
    codes = np.full(n, -1)
    for label in range(k):
        rows = rng.permutation(np.flatnonzero(truth == label))
        codes[rows[: most if how != "half" else (len(rows) + 1) // 2]] = label
    if how != "all" and rng.random() < 0.2:  # labels of one class alone, but for one
        rows = np.flatnonzero(codes == k - 1)
        codes[rows[1:]] = -1
        how += ", but one of the last"
    words.append(f"labels: {how}")
    return X, codes


TROUBLE = {
    "years": 0.2, "constant": 0.2, "offset": 0.15, "scales": 0.13, "amounts": 0.12, "far": 0.08,
    "size": 0.06, "sentinel": 0.06,
}  # fmt: skip


def _troubled(rng, X, codes, words):
    """Columns as tables have them."""
    n = len(X)
    for _ in range(rng.choice(4, p=[0.25, 0.5, 0.2, 0.05])):
        j = int(rng.integers(X.shape[1]))
        word = str(rng.choice(list(TROUBLE), p=list(TROUBLE.values())))
        if word == "years":
            X[:, j] = np.clip(np.round(1985 + 12 * X[:, j]), 1950, 2020)
        elif word == "constant":
            value = float(rng.choice([0.0, 1.0, 1e4, 1e4, 1e5]))
            X, word = np.c_[X, np.full(n, value)], f"constant {value:g}"
        elif word == "offset":
            value = float(np.sign(rng.standard_normal()) * 10 ** rng.uniform(1, 7))
            columns = slice(None) if rng.random() < 0.5 else j
            X[:, columns] += value
            word = f"offset {value:.1g}" + (f" of column {j}" if columns == j else "")
        elif word == "scales":
            X = X * 10 ** rng.uniform(-4, 4, X.shape[1])
        elif word == "amounts":
            X[:, j] = np.round(np.exp(np.clip(8 + 1.5 * X[:, j], -3, 16)), 2)
        elif word == "far":
            value = float(10 ** rng.uniform(7, 12))
            X, word = X + value, f"far {value:.1g}"
        elif word == "sentinel":  # 99999999 where a number is missing
            value = float(np.round(10 ** rng.uniform(3, 12)) - 1)
            X[rng.permutation(n)[: max(1, n // 10)], j] = value
            word = f"sentinel {value:.1g}"
        else:
            value = float(10 ** rng.uniform(-4, 5))
            X, word = X * value, f"size {value:.1g}"
        words.append(word)
    return X


def _copied(rng, name, X, codes, words):
    """Some rows twice: labeled beside unlabeled copies."""
    if name == "BranchBoundS3VM" or rng.random() > 0.12:
        return X, codes
    rows = rng.integers(len(X), size=max(2, len(X) // 3))
    words.append("duplicates")
    again = np.where(rng.random(rows.size) < 0.5, codes[rows], -1)
    return np.vstack([X, X[rows]]), np.r_[codes, again]


def _weights(rng, name, extra, codes, words):
    """None, small integers with zeros, or numbers over 24 decades."""
    unlabeled = codes < 0
    if name == "SelfTrainingKNN" or (extra != "copies" and rng.random() > 0.12):
        return None
    if extra == "copies":
        weight = rng.integers(0, 4, codes.size).astype(float)
        word = "weights 0 to 3"
    elif rng.random() < 0.5:
        weight, word = 10 ** rng.uniform(-1, 1, codes.size), "weights .1 to 10"
    else:
        weight, word = 10 ** rng.uniform(-12, 12, codes.size), "weights over 24 decades"
    if name in COUNTING and unlabeled.any():
        weight[unlabeled] = 1.0
    for label in range(codes.max() + 1):  # no class may vanish
        first = np.flatnonzero(codes == label)[0]
        weight[first] = max(weight[first], 1.0)
    words.append(word)
    return weight


def _parameters(rng, name, extra, X, codes, sentinel):
    """Those of `QUICK`, and some that users change."""
    cls = estimators()[name]
    defaults, found = cls().get_params(), dict(QUICK.get(name, {}))
    if "random_state" in defaults:
        found["random_state"] = 0
    if name == "SelfTrainingKNN":
        return found | dict(n_neighbors=int(rng.integers(1, 4)))
    if "kernel" in defaults:
        shares = [0.25, 0.4, 0.15, 0.2]
        if extra in ("shift", "stream"):
            shares = [0.45, 0.35, 0.2, 0.0] if extra == "shift" else [0.5, 0.3, 0.1, 0.1]
        if extra == "shift" and name in ("BGS3VM", "GKM"):  # regularize the offset
            shares = [0.0, 0.7, 0.3, 0.0]
        found["kernel"] = str(rng.choice(["linear", "rbf", "laplacian", "poly"], p=shares))
        if name == "S3VC":
            found["kernel"] = str(
                rng.choice(["auto", "linear", "rbf", "poly"], p=[0.5, 0.2, 0.2, 0.1])
            )
        if found["kernel"] in ("rbf", "laplacian", "poly"):
            # Of most rows: a sentinel is no reason for another kernel.
            usual = np.clip(X, *np.percentile(X, [10, 85], axis=0)) if sentinel else X
            found |= _gamma(rng, cls, found["kernel"], usual, extra)
        if found["kernel"] == "poly" and name != "S3VC":
            found["degree"] = int(rng.choice([2, 3]))
            found["coef0"] = float(rng.choice([0.0, 1.0, 1e3, 1e5]))
    if "C" in defaults and rng.random() < 0.5 and name != "S3VC":
        found["C"] = float(rng.choice([0.01, 10.0, 100.0, 1e3, 3e4, 3e4, 1e6, 1e12]))
    if "C_star" in defaults and rng.random() < 0.25:
        found["C_star"] = float(rng.choice([0.0, 1e-40, 0.01, 1.0, 100.0]))
        if name == "S3VC" and found["C_star"] == 0:
            found["C_star"] = 1.0
    if "balance" in defaults:
        rule = rng.choice(["auto", "labels", "none", "bbse", "given"], p=[0.4, 0.3, 0.1, 0.1, 0.1])
        rule = "labels" if extra == "copies" else str(rule)  # the others hold out rows
        found["balance"] = {"none": None, "given": _shares(rng, codes)}.get(rule, rule)
    found |= _special(rng, name)
    if extra == "copies" and name == "LapSVM":
        found["C_graph"] = 0.0  # a copy would be a neighbor
    return found


def _gamma(rng, cls, kernel, X, extra):
    """A name, or a number that suits the columns; where the origin may not matter no "scale"."""
    spread = np.sum(np.var(X - X[0], axis=0)) or 1.0
    number = float(rng.choice([0.3, 1.0, 3.0]) / spread)
    if kernel == "laplacian":
        number = float(np.sqrt(number))
    known = "|".join(map(str, getattr(cls, "_parameter_constraints", {}).get("gamma", [])))
    word = str(rng.choice(["scale", "scale", "auto", "variance"]))
    word = "scale" if word not in known else word  # as before there was "variance"
    if cls.__name__ == "S3VC":  # it scales columns by itself
        return {}
    free = extra not in ("shift", "stream") and kernel != "poly"
    if (kernel != "poly" and rng.random() < 0.3) or not free:
        return dict(gamma=number)
    return dict(gamma=word)


def _shares(rng, codes):
    """Shares of the classes as a user may give them."""
    share = rng.uniform(0.2, 0.8)
    k = int(codes.max()) + 1
    return {0: share, **{label: (1 - share) / (k - 1) for label in range(1, k)}}


def _special(rng, name):
    """What only one estimator has."""
    pick = lambda *values: values[rng.integers(len(values))]  # noqa: E731
    if name == "LapSVM":
        return dict(solver=pick("auto", "newton", "pcg"), C_graph=pick(None, None, 0.0, 1.0))
    if name == "GKM" or name == "BGS3VM":
        return dict(C_graph=pick(None, None, "labels", 1.0))
    if name == "BranchBoundS3VM":
        return dict(
            unlabeled_loss=pick("effective", "symmetric_ramp", "symmetric_ramp"),
            balance_mode=pick("mean", "share", "share"),
            balance_tol=pick(0.05, 0.2),
            balance=pick("labels", 0.3, 0.5),
        )
    if name == "QNS3VM":
        return dict(balance_tol=pick(None, None, 0.01))
    if name == "NewtonS3VM":
        return dict(solver=pick("newton", "newton", "conjugate_gradient"))
    if name == "SafeS3VM":
        inner = pick(None, None, None, CCCPS3VM(kernel="linear"), QNS3VM(kernel="linear"))
        return {} if inner is None else dict(estimator=inner)
    if name == "S3VC":
        options = dict(probability=bool(rng.random() < 0.3), guard=bool(rng.random() < 0.7))
        options["scale"] = pick("auto", "auto", False)
        options |= dict(C=1.0) if rng.random() < 0.5 else {}
        return options | (dict(vote=False) if rng.random() < 0.2 else {})
    if name == "SVM":
        return dict(tol=pick(1e-3, 1e-3, 1e-3, 1e-3, 1e-8, 1e-8, 1e-8, 1e-16))
    if name == "TSGS3VM":
        return dict(update=pick("all", "block"))
    if name == "ILS3VM":
        return dict(update=pick("auto", "auto", "path"))
    return {}


# --- One fit --------------------------------------------------------------------------------------


class Fitted(NamedTuple):
    """A fit as it was made, and what came of it."""

    model: Any
    X: Any
    y: Any
    error: Exception | None
    said: list  # warnings
    seconds: float

    @property
    def warned(self):
        """Whether a limit, or something else that is wrong, was said."""
        said = [str(w.message) for w in self.said if issubclass(w.category, UserWarning)]
        return any("holds no unlabeled rows" not in text for text in said)

    @property
    def findings(self):
        """What the estimator found itself."""
        return getattr(self.model, "findings_", {})


def attempt(model, X, y, weight=None, call=None, **arguments):
    """Fit, or ``call(model)``, whatever happens; a slow one again, as it may have compiled."""
    if weight is not None:
        arguments["sample_weight"] = weight
    call = call or (lambda model: model.fit(X, y, **arguments))
    for _ in range(2):
        one, error, start = clone(model), None, time.process_time()
        with (
            warnings.catch_warnings(record=True) as said,
            contextlib.redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("always")
            try:
                call(one)
            except Exception as raised:
                error = raised
        seconds = time.process_time() - start
        if seconds < SECONDS:
            break
    return Fitted(one, X, y, error, said, seconds)


ADVICE = re.compile(
    r"\b(scale|take|use|must|needs?|give|pass|encode|increase|change|fill|leave|divide|make|say|"
    r"cannot|not possible|should|reduce|relax|convert|center|fit again|nearest is)\b", re.I
)  # fmt: skip


def unclear(name, error):
    """Whether an exception helps nobody: another type, or a message without name or advice."""
    # A TypeError is for a container or a class of object, and is held to the same.
    refused = isinstance(error, ValueError | TypeError | FloatingPointError)
    if not refused or isinstance(error, np.linalg.LinAlgError):
        return True
    known = "|".join(estimators()[name]().get_params())
    named = re.search(rf"\b({known})\b|{bad_inputs.DATA}", str(error))
    return not (named and ADVICE.search(str(error)))


def raised(name, error, what=""):
    """The complaint about an exception, if there is one to make."""
    if error is None or not unclear(name, error):
        return []
    kind = "linear algebra" if isinstance(error, np.linalg.LinAlgError) else type(error).__name__
    return [(f"raw {kind}:{name}", f"{what}{type(error).__name__}: {error!s:.300}")]


# --- What is computed anew ------------------------------------------------------------------------


class Task(NamedTuple):
    """One two-class problem of a fitted model, on the rows that have weight."""

    problem: Any
    t: np.ndarray  # −1, +1, and 0 where unlabeled, (n,)
    s: np.ndarray  # weights of the losses, (n,)
    f: np.ndarray | None  # outputs, computed here, (n,)
    error: np.ndarray | None  # bound on what rounding changes in them, (n,)
    J: float  # objective of f
    slack: float  # what rounding changes in J
    reported: float
    status: str
    balance_slack: float


def gram(kernel, X, Z):
    """Kernel values from differences, which no offset spoils; all of double precision."""
    if kernel.name == "linear":
        return kernel.sigma_f**2 * (X @ Z.T)
    if kernel.name == "poly":
        return kernel.sigma_f**2 * (kernel.gamma * (X @ Z.T) + kernel.coef0) ** kernel.degree
    difference = X[:, None, :] - Z[None, :, :]
    if kernel.name == "rbf":
        return kernel.sigma_f**2 * np.exp(-kernel.gamma * np.sum(difference**2, axis=2))
    return kernel.sigma_f**2 * np.exp(-kernel.gamma * np.sum(np.abs(difference), axis=2))


def loss_weights(model, codes, weight):
    """Weights of the rows times those of their classes."""
    if getattr(model, "class_weight", None) != "balanced":
        return weight
    labeled = codes >= 0
    mass = np.bincount(codes[labeled], weight[labeled])
    return np.where(labeled, weight * (mass.sum() / (mass.size * mass))[codes], weight)


def tasks(model, X, codes, weight=None):
    """The two-class problems of a model that has an objective, evaluated without its help."""
    if not hasattr(model, "problem_"):
        return []
    listed = lambda value: list(value) if isinstance(value, list | np.ndarray) else [value]  # noqa: E731
    weight = np.ones(codes.size) if weight is None else weight
    kept = np.flatnonzero(weight > 0)
    s_all = loss_weights(model, codes, weight)
    problems, status = listed(model.problem_), listed(model.termination_condition_)
    reported = listed(model.objective_) if getattr(model, "transduce", True) else [np.nan] * 9
    positives = [1] if len(problems) == 1 else range(len(problems))
    found = []
    for k, (positive, problem) in enumerate(zip(positives, problems, strict=True)):
        t = np.where(codes < 0, 0.0, np.where(codes == positive, 1.0, -1.0))[kept]
        s, b = s_all[kept], float(model.intercept_[k])
        f = error = None
        J = slack = balance_slack = np.nan
        if hasattr(model, "coef_"):
            w = model.coef_[k]
            f, size = X[kept] @ w + b, np.abs(X[kept]) @ np.abs(w)
            norm2 = norm_size = w @ w / problem.kernel.sigma_f**2
        elif hasattr(model, "dual_coef_"):
            d, rows = model.dual_coef_[k], X[model.support_]
            K = gram(problem.kernel, X[kept], rows)
            f, size = K @ d + b, np.abs(K) @ np.abs(d)
            inner = gram(problem.kernel, rows, rows)
            norm2 = d @ inner @ d
            norm_size = np.abs(d) @ np.abs(inner) @ np.abs(d)
        if f is not None:
            # Single precision where a Gram matrix is kept in it; the rows of a kernel are summed.
            unit = 1e-6 if getattr(model, "precision", "") == "single" else 1e-13
            error = unit * (size + abs(b))
            C = np.where(t != 0, problem.C, problem.C_star)
            # Derivatives of the losses are at most this.
            slack = float(np.sum(C * s * error * (2 + 2 * np.abs(f)))) + unit * norm_size
            balance_slack = float(error.max())
            with np.errstate(all="ignore"):
                J = 0.5 * norm2 + (0.5 * b**2 if problem.bias == "regularized" else 0.0)
                J += sum(problem.data_terms(f, t, s)) + problem.graph_term(f, b)
        found.append(
            Task(problem, t, s, f, error, float(J), slack, float(reported[k]), status[k],
                 balance_slack)
        )  # fmt: skip
    return found


def of_zero(task):
    """J of f = 0, the size of the losses."""
    return sum(task.problem.data_terms(np.zeros(task.t.size), task.t, task.s))


def of_constants(task):
    """The least J of constant outputs that are feasible; convex problems choose the level."""
    problem, level = task.problem, 0.0
    if problem.balance == "share":
        return np.inf
    if problem.balance == "mean" and np.any(task.t == 0):
        level = 2 * problem.ratio - 1
    convex = problem.unlabeled_loss is None or problem.C_star == 0
    levels = [level]
    if convex and problem.balance == "none":
        levels = [-1.0, -0.5, 0.0, 0.5, 1.0]
    if problem.bias == "none":
        levels = [0.0] if 0.0 in levels else []
    penalty = 0.5 if problem.bias == "regularized" else 0.0
    # The graph measures f without the offset.
    return min(
        (penalty * v**2 + sum(problem.data_terms(np.full(task.t.size, v), task.t, task.s))
         for v in levels),
        default=np.inf,
    )  # fmt: skip


def near(kernel, X):
    """Rows of a linear kernel from a point amid them: what is far loses its digits in sums."""
    return X - np.median(X, axis=0) if kernel.name == "linear" else X


def supervised(kernel, C, X, codes, s, extreme=1e9):
    """scikit-learn's SVM on the labeled rows, and these; None where it does not converge."""
    labeled = np.flatnonzero((codes >= 0) & (s > 0))
    K = gram(kernel, X[labeled], X[labeled])
    if C * s[labeled].sum() * max(K.max(), 1.0) > extreme:
        return None, labeled
    model = SVC(C=C, kernel="precomputed", max_iter=100_000, tol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(K, codes[labeled], s[labeled])
    return (model if model.fit_status_ == 0 else None), labeled


# --- A look at one fit ----------------------------------------------------------------------------


def look(trial, fit, X=None, codes=None, weight=None):
    """What is wrong with one fit, whatever else is done."""
    name, model = trial.name, fit.model
    X, codes = (trial.X, trial.codes) if X is None else (X, codes)
    weight = trial.weight if weight is None and X is trial.X else weight
    wrong = raised(name, fit.error)
    if fit.seconds > SECONDS:
        wrong.append((f"slow:{name}", f"{fit.seconds:.0f} s for {codes.size} rows"))
    raw = [w for w in fit.said if issubclass(w.category, RuntimeWarning)]
    if raw:
        wrong.append((f"raw RuntimeWarning:{name}", str(raw[0].message)))
    if fit.error is not None:
        return wrong
    every = np.ones(codes.size) if weight is None else weight
    found = tasks(model, X, codes, weight)
    for task in found:
        lies = _lies(trial, fit, task, X[every > 0])
        wrong += [(f"{key}:{name}", text) for key, text in lies]
    try:
        answers = np.searchsorted(model.classes_, model.predict(X))
    except Exception as error:
        return wrong + raised(name, error, "predict: ")
    wrong += _labels_and_shares(trial, fit, X, codes, every, found, answers)
    wrong += _transduction(trial, fit, X, codes, found, answers)
    if hasattr(model, "predict_proba") and getattr(model, "probability", True):
        chances = model.predict_proba(X)
        sure = np.ptp(np.sort(chances, axis=1)[:, -2:], axis=1) > 1e-6
        unlike = int(np.sum(chances.argmax(axis=1)[sure] != answers[sure]))
        told = "most probable class" in type(model).__doc__
        told &= unlike <= 0.2 * codes.size or "probability" in fit.findings
        if unlike and not told:
            wrong.append((f"argmax:{name}", f"{unlike} of {codes.size} rows"))
    return wrong


def _lies(trial, fit, task, X):
    """An objective that is none, too large, or of an infeasible machine, and nothing said."""
    J, name = task.reported, trial.name
    converged = task.status in ("converged", "completed")
    silent = not fit.warned and not fit.findings
    # What is a millionth of the losses at f = 0 is rounding, not a fault.
    scale = max(abs(J), abs(task.J) if np.isfinite(task.J) else 0.0, LOSS * of_zero(task) / SAME)
    if J < 0:
        yield "negative objective", f"{J:.4g}, {task.status}"
        return
    if np.isfinite(task.J) and np.isfinite(J) and task.slack < 0.1 * scale:
        expected = _charged(task) if name == "BranchBoundS3VM" else task.J
        if expected == np.inf:
            yield "balance", "no labels have the share that was asked for"
            return
        # One percent: large weights multiply what tolerances and single precision leave.
        less = expected - J > 10 * SAME * scale + task.slack
        more = J - expected > 10 * SAME * scale + task.slack and task.problem.balance != "counts"
        if less or more:
            yield "objective is not J", f"objective_ = {J:.6g}, J of the machine {expected:.6g}"
    constant = of_constants(task)
    # The tolerance of some is a tenth of J, and of steps that were completed there is none.
    rough = name in ("GKM", "BGS3VM") or task.status == "completed"
    margin = 1.2 if rough else 1.01
    convex = task.problem.unlabeled_loss is None
    if max(J, task.J if task.slack < 0.1 * scale else J) > margin * constant + 1e-9 and (
        converged or silent
    ):
        yield "above constant", f"{J:.6g} where a constant has {constant:.6g}, {task.status}"
    if convex and not (converged or fit.warned or fit.findings):
        yield "silent end", f"status {task.status!r} without a warning"
    # Drawn features cannot have the machine of the kernel.
    start = np.inf if name in ("FRS3VM", "TSGS3VM") else _of_supervised(task, X)
    if J > 1.05 * start + task.slack + LOSS * of_zero(task) and (converged or silent):
        text = f"{J:.6g} where the supervised machine, shifted, has {start:.6g}, {task.status}"
        yield "above supervised", text
    if task.f is not None and converged and np.any(task.t == 0) and name != "BranchBoundS3VM":
        missed = _missed(task, 0.5 * (name == "QNS3VM"))
        if missed:
            yield "balance", missed


def _of_supervised(task, X):
    """J of the supervised SVM, whose offset meets the balance; infinity without such a machine."""
    problem, U = task.problem, (task.t == 0) & (task.s > 0)
    if problem.unlabeled_loss is None or problem.bias != "free" or not U.any():
        return np.inf
    if task.f is None or problem.balance not in ("none", "mean"):
        return np.inf
    codes, X = np.where(task.t == 0, -1, task.t > 0), near(problem.kernel, X)
    machine, rows = supervised(problem.kernel, problem.C, X, codes, task.s)
    if machine is None:
        return np.inf
    rows = rows[machine.support_]
    d = machine.dual_coef_[0]
    f = gram(problem.kernel, X, X[rows]) @ d + machine.intercept_[0]
    norm2 = d @ gram(problem.kernel, X[rows], X[rows]) @ d
    if problem.balance == "mean":
        f += 2 * problem.ratio - 1 - task.s[U] @ f[U] / task.s[U].sum()
    return problem.value(f, task.t, norm2, sample_weight=task.s)


def _charged(task):
    """J at the outputs, where labels have the share and each row is charged for its own.

    With a share `BranchBoundS3VM` constrains labels, not outputs: the best labels of all that have
    it are searched here by trying all.
    """
    problem, U = task.problem, np.flatnonzero((task.t == 0) & (task.s > 0))
    # Labels that cost nothing have no share to keep: with C* = 0 the machine is the SVM.
    if problem.balance != "share" or problem.C_star == 0 or not 0 < U.size <= 14:
        return task.J
    s, f = task.s[U], task.f[U]
    charges = [problem.labeled_loss.value(np.full(U.size, sign), f) for sign in (-1.0, 1.0)]
    if problem.unlabeled_loss.name == "symmetric_ramp":
        # Two ramps: no row is charged for more than the flat piece between them.
        flat, least = problem.unlabeled_loss.value(np.array([0.0, 1e3]))
        charges = [least + np.minimum(charge, flat - least) for charge in charges]
    labels = (np.arange(2**U.size)[:, None] >> np.arange(U.size)) & 1
    off = np.abs(labels @ s / s.sum() - problem.ratio)
    labels = labels[off <= problem.balance_tol + 1e-9]
    if not labels.size:
        return np.inf
    least = np.min(labels @ (s * (charges[1] - charges[0]))) + s @ charges[0]
    return task.J - problem.data_terms(task.f, task.t, task.s)[1] + problem.C_star * least


def _missed(task, spared=0.0):
    """By how much the outputs miss the balance, in words; ``spared`` is a share of one row."""
    problem, U = task.problem, (task.t == 0) & (task.s > 0)
    s, f = task.s[U], task.f[U]
    if problem.balance == "mean":
        off = abs(s @ f / s.sum() - (2 * problem.ratio - 1))
        if off > 1e-2 + 10 * task.balance_slack:
            return f"mean output off by {off:.3g}"
    if problem.balance == "share":
        # What is 0 but for rounding may count on either side.
        near = np.abs(f) <= 1e-6 * max(1.0, np.abs(f).max()) + task.error[U]
        least, most = (s @ (f > 0) - s @ near) / s.sum(), s @ ((f > 0) | near) / s.sum()
        off = max(least - problem.ratio, problem.ratio - most) - problem.balance_tol
        off -= spared * s.max() / s.sum()
        if off > 1e-9:
            return f"share {least:.3f} to {most:.3f}, asked {problem.ratio} ± {problem.balance_tol}"
    return ""


def _labels_and_shares(trial, fit, X, codes, weight, found, answers):
    """Labels contradicted, classes that are never predicted, shares: said or not."""
    name, model, wrong = trial.name, fit.model, []
    L, U = (codes >= 0) & (weight > 0), (codes < 0) & (weight > 0)
    n = int(L.sum())
    errors = int(np.sum(answers[L] != codes[L]))
    least = None
    if name == "SafeS3VM":
        least = int(np.sum(model.baseline_.predict(X[L]) != _coded(model.baseline_, codes[L])))
    elif name == "S3VC":
        least = _beside_door(model, X, codes, weight)
    elif found and name not in SUPERVISED and U.any():
        s, Z = loss_weights(model, codes, weight), near(found[0].problem.kernel, X)
        machine, rows = supervised(found[0].problem.kernel, float(model.C), Z, codes, s)
        if machine is not None:
            K = gram(found[0].problem.kernel, Z[rows], Z[rows])
            votes = np.abs(machine.decision_function(K)).reshape(rows.size, -1)
            tied = np.any(votes < 1e-9 * votes.max(), axis=1)  # rounding decides
            least = int(np.sum(tied | (machine.predict(K) != codes[rows])))
    if least is not None and errors > least + max(1.0, 0.02 * n):
        said = {"labels", "objective", "limit", "rounding"} & set(fit.findings)
        guarded = name == "SafeS3VM" or (name == "S3VC" and trial.parameters["guard"])
        if guarded or not said:  # a guard must not return such a machine
            text = f"{errors} of {n} labels contradicted, supervised machine {least}"
            wrong.append((f"own labels:{name}", text))
    if not U.any() or name in SUPERVISED:
        return wrong
    asked = getattr(model, "class_ratio_", None)
    if name == "SafeS3VM":
        asked = getattr(model.estimator_, "class_ratio_", None)
    k, s = len(model.classes_), weight[U]
    rows = s.sum() ** 2 / np.sum(s**2)
    given = np.bincount(answers[U], s, k) / s.sum()
    own = np.bincount(codes[L], weight[L], k) / weight[L].sum()
    expected = own if asked is None else np.asarray(asked)
    silent = not ({"share", "limit", "objective", "rounding"} & set(fit.findings))
    # A little more than the promise (odds within a factor of three, three expected rows), as
    # what is seen here differs from what is seen there by what rounds to 0.
    enough = np.flatnonzero(rows * np.minimum(expected, 1 - expected) >= 3.2)
    odds, wanted = (p / np.maximum(1 - p, 1e-12) for p in (given, expected))
    far = np.maximum(odds / wanted, wanted / np.maximum(odds, 1e-12)) > 3.2
    key = "never predicted" if np.any(given[enough] == 0) else "silent share"
    if silent and np.any(given[enough] == 0 if asked is None else far[enough]):
        text = f"given {np.round(given, 3).tolist()}, expected {np.round(expected, 3).tolist()}"
        wrong.append((f"{key}:{name}", text))
    # Shares of labels, or given by the user, are what they are; estimates of 0 are none.
    estimated = trial.parameters.get("balance", "auto") in ("auto", "bbse") and trial.weight is None
    if asked is not None and min(asked) < 1e-6 and estimated and silent and not fit.warned:
        wrong.append((f"share of zero:{name}", f"asked {np.round(asked, 4).tolist()}"))
    return wrong


def _coded(model, codes):
    """Labels as a model inside another one has them."""
    return codes if len(model.classes_) > codes.max(initial=0) else model.classes_[codes]


def _beside_door(model, X, codes, weight):
    """Errors of the best supervised machine that votes in `S3VC`, or of one like the heaviest."""
    own = [member for member in model.members_ if member.supervised]
    own = min(own, key=lambda member: member.penalty).model if own else model.model_
    if getattr(own, "kernel", "") not in ("linear", "rbf"):
        return None
    rows = np.flatnonzero((codes >= 0) & (weight > 0))
    Z = X if model.scaler_ is None else model.scaler_.transform(X)
    # As the door has them, one class against the rest: pairs of classes are other machines.
    k = int(codes.max()) + 1
    scores = []
    for positive in range(k) if k > 2 else [1]:
        machine = SVC(C=float(own.C), kernel=own.kernel, gamma=own.gamma, max_iter=100_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                machine.fit(Z[rows], codes[rows] == positive, weight[rows])
            except ValueError:  # of rows that are too large for it
                return None
        if machine.fit_status_ != 0:
            return None
        scores.append(machine.decision_function(Z[rows]))
    found = np.argmax(scores, axis=0) if k > 2 else (scores[0] > 0).astype(int)
    return int(np.sum(found != codes[rows]))


def _transduction(trial, fit, X, codes, found, answers):
    """Rows that `predict` gives another class than the fit did, where the output is not tiny."""
    model = fit.model
    if trial.name == "SelfTrainingKNN" and trial.parameters["n_neighbors"] > 1:
        return []  # a row is one of its own neighbors, which may outvote it
    if not hasattr(model, "transduction_") or getattr(model, "taken_", "") == "vote":
        return []
    if getattr(getattr(model, "model_", None), "taken_", "") == "vote":
        return []
    kept = np.searchsorted(model.classes_, model.transduction_)
    if kept.size != codes.size:
        return [(f"transduction:{trial.name}", f"{kept.size} entries for {codes.size} rows")]
    unlike = (kept != answers) & (codes < 0)
    if hasattr(model, "decision_function"):
        unlike &= _margins(model.decision_function(X)) > 1e-6
    if len(found) == 1 and found[0].f is not None and found[0].f.size == codes.size:
        unlike &= np.abs(found[0].f) > found[0].error
    if "rounding" in fit.findings:  # says that sums of the coefficients round to other outputs
        unlike[:] = False
    unlike |= (kept != codes) & (codes >= 0)
    if not unlike.any():
        return []
    return [(f"transduction:{trial.name}", f"{unlike.sum()} of {codes.size} rows differ")]


def _margins(scores):
    """How far each output is from another class, as a share of the largest."""
    if scores.ndim == 1:
        margin = np.abs(scores)
    else:
        margin = np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0]
    return margin / max(np.abs(scores).max(initial=0.0), 1e-300)


# --- The same machine -----------------------------------------------------------------------------


class Seen(NamedTuple):
    """What two machines must agree in: objectives, and classes of the training rows."""

    J: np.ndarray
    answers: np.ndarray
    margins: np.ndarray


def rounding(trial, base):
    """What may differ between two objectives of one machine, beside `SAME` of them."""
    found = tasks(base.model, base.X, trial.codes, trial.weight)
    slack = [np.nan_to_num(task.slack) + LOSS * of_zero(task) for task in found]
    return 1e-9 + max(slack, default=0.0)


def seen(fit, X=None, back=None, turned=None):
    """What a fit gives the rows of the trial; ``back`` are their places, ``turned`` the classes."""
    model, X = fit.model, fit.X if X is None else X
    J = np.atleast_1d(getattr(model, "objective_", np.nan)).astype(float)
    answers = np.searchsorted(model.classes_, model.predict(X))
    scores = model.decision_function(X) if hasattr(model, "decision_function") else None
    margins = np.ones(answers.size) if scores is None else _margins(np.asarray(scores))
    if turned is not None:
        answers = turned[answers]
        J = J if J.size == 1 else J[np.argsort(turned)]
    if back is not None:
        answers, margins = answers[back], margins[back]
    return Seen(J, answers, margins)


def differ(one, other, trial, slack):
    """In what two machines are not the same, or an empty text."""
    same = 0.25 if trial.name in ("GKM", "BGS3VM") else SAME
    gap = np.abs(one.J - other.J)
    if np.any(gap > same * np.maximum(np.abs(one.J), np.abs(other.J)) + slack):
        return f"J {one.J.tolist()} and {other.J.tolist()}"
    clear = (one.margins > TINY) & (other.margins > TINY)
    unlike = int(np.sum((one.answers != other.answers) & clear))
    # Minima of one height may differ in a few rows; stochastic steps are right to a tolerance.
    if unlike > 1 + 0.02 * clear.size and trial.name not in ("GKM", "BGS3VM"):
        return f"{unlike} of {one.answers.size} rows have another class"
    return ""


def compared(trial, base, again, refusals=False, noise=1e-12):
    """The complaint that ``again(model, version)`` is not the machine of the trial.

    A local minimum may legitimately change with rounding. So a difference counts where it does in
    two versions (two shifts, two orders); where rows that differ by rounding alone do end where
    the trial ended, `PERTURBED` times of as many; and where tolerances near zero do not remove it.
    What fails these is counted as fragile, and is no complaint.
    """
    name, key = trial.name, f"{trial.extra}:{trial.name}"
    first, slack = seen(base), rounding(trial, base)
    fit, view = again(trial.model(), 0)
    if fit.error is not None:
        if refusals and not unclear(name, fit.error):
            return []
        return raised(name, fit.error, f"{trial.extra}: ") or [(key, f"refused: {fit.error}")]
    if base.warned or fit.warned:
        return []  # it was said that one of them is not to be trusted
    text = differ(first, view, trial, slack)
    if not text:
        return []
    second, view = again(trial.model(), 1)
    if second.error is not None or second.warned or not differ(first, view, trial, slack):
        return [(f"fragile:{name}", text)]
    rng = np.random.default_rng([*trial.seed, 1])
    spread = np.std(trial.X, axis=0) + 1e-3 * np.abs(trial.X).mean(axis=0)
    for _ in range(PERTURBED):
        near = trial.X + noise * spread * rng.standard_normal(trial.X.shape)
        third = attempt(trial.model(), near, trial.codes, trial.weight)
        if third.error is not None or differ(first, seen(third, trial.X), trial, slack):
            return [(f"fragile:{name}", text)]
    if name in TIGHT:
        model = trial.model(**TIGHT[name])
        close = attempt(model, trial.X, trial.codes, trial.weight)
        fit, view = again(model, 0)
        if close.error is None and fit.error is None:
            if close.warned or fit.warned or not differ(seen(close), view, trial, slack):
                return [(f"fragile:{name}", text)]
    return [(key, text)]


def _shift(trial, base):
    """X + c in place of X: for kernels of differences, and for f = wᵀx + b with a free offset."""
    found = base.model
    problems = getattr(found, "problem_", None)
    problem = problems[0] if isinstance(problems, list) else problems
    if trial.name == "S3VC":  # where it scales the columns, no origin is left
        trial = trial._replace(parameters={**trial.parameters, "scale": True})
        base = attempt(trial.model(), trial.X, trial.codes, trial.weight)
        if base.error is not None:
            return raised(trial.name, base.error)
    elif problem is None and trial.name != "SelfTrainingKNN":
        return []
    if problem is not None:
        named = isinstance(trial.parameters.get("gamma"), str)
        named &= trial.parameters.get("gamma") != "variance"
        free = problem.kernel.name == "linear" and problem.bias == "free"
        radial = problem.kernel.name in ("rbf", "laplacian") and not named
        if trial.name in ("FRS3VM", "TSGS3VM") or not (free or radial):
            return []
    rng = np.random.default_rng(trial.seed)
    spread, mean = np.std(trial.X, axis=0), trial.X.mean(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    if np.any(np.abs(mean) > 100 * spread):  # the trial itself is the one that is shifted
        shifts = [-mean, -mean + spread]
    else:
        shifts = [
            10 ** rng.uniform(1, 5) * spread * np.sign(rng.standard_normal()) * k for k in (1, 0.7)
        ]

    def again(model, version):
        fit = attempt(model, trial.X + shifts[version], trial.codes, trial.weight)
        return fit, None if fit.error else seen(fit)

    # A shift of 1e5 standard deviations leaves about eleven digits.
    return compared(trial, base, again, refusals=True, noise=1e-10)


def _order(trial, base):
    """The rows in another order."""
    if trial.name in (*DRAWN, *AROUND):
        return []
    rng = np.random.default_rng(trial.seed)
    orders = [rng.permutation(trial.codes.size) for _ in range(2)]

    def again(model, version):
        order = orders[version]
        weight = None if trial.weight is None else trial.weight[order]
        fit = attempt(model, trial.X[order], trial.codes[order], weight)
        return fit, None if fit.error else seen(fit, back=np.argsort(order))

    return compared(trial, base, again)


def _names(trial, base):
    """Other names of the classes: exchanged numbers, strings, large integers."""
    k = int(trial.codes.max()) + 1
    rng = np.random.default_rng(trial.seed)
    turned = np.arange(k)[::-1] if rng.random() < 0.5 and trial.name not in AROUND else np.arange(k)
    if trial.name in COUNTING and k == 2 and base.model.class_ratio_ is not None:
        # round(r u) of 19.5 rows is 20, whichever class is the second one: then nothing is turned.
        count = base.model.class_ratio_[1] * np.sum(trial.codes < 0)
        turned = np.arange(k) if abs(count % 1 - 0.5) < 1e-9 else turned
    which = int(rng.integers(3))
    names = [
        np.array([10 * i + 3 for i in range(k)]),
        np.array(["eggs", "ham", "spam"][:k], dtype=object),
        np.array([f"{i}" for i in range(k)], dtype=object),
    ][which]
    y = np.full(trial.codes.size, -1, dtype=names.dtype)
    L = trial.codes >= 0
    y[L] = names[turned[trial.codes[L]]]
    balance = trial.parameters.get("balance")
    changed = {}
    if isinstance(balance, dict):
        changed["balance"] = {names[turned[c]]: share for c, share in balance.items()}
    elif isinstance(balance, float) and turned[0]:
        changed["balance"] = 1 - balance

    def again(model, version):
        fit = attempt(model.set_params(**changed), trial.X, y, trial.weight)
        return fit, None if fit.error else seen(fit, turned=np.argsort(turned))

    return compared(trial, base, again)


def _copies(trial, base):
    """A weight of k is k copies of the row, and one of 0 none."""
    if trial.name in (*DRAWN, *AROUND) or trial.weight is None:
        return []
    if trial.name == "LapSVM" and trial.parameters.get("C_graph") != 0:
        return []  # a copy is a neighbor
    balance = trial.parameters.get("balance", "labels")
    if isinstance(balance, str) and balance != "labels":
        return []  # the others hold out rows
    rows = np.repeat(np.arange(trial.codes.size), trial.weight.astype(int))

    def again(model, version):
        fit = attempt(model, trial.X[rows], trial.codes[rows])
        return fit, None if fit.error else seen(fit, X=trial.X)

    if trial.parameters.get("balance_mode") == "share":
        # Copies of a row may have unlike labels, which binds a share less: J is no larger.
        fit, view = again(trial.model(), 0)
        if fit.error is not None or fit.warned or base.warned:
            return []
        J = seen(base).J
        larger = view.J > (1 + SAME) * J + rounding(trial, base)
        text = f"J {J.tolist()} of weights, {view.J.tolist()} of copies"
        return [(f"copies:{trial.name}", text)] if larger.any() else []
    return compared(trial, base, again)


# --- Containers and markers -----------------------------------------------------------------------


def _read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


def _mapped(X, folder):
    path = Path(folder) / "rows.npy"
    np.save(path, X)
    return np.load(path, mmap_mode="r")


CONTAINERS = {
    "list": lambda X: X.tolist(),
    "Fortran order": np.asfortranarray,
    "frame": lambda X: pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])]),
    "CSR": sp.csr_matrix,
    "CSC array": sp.csc_array,
    "read-only": _read_only,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "big-endian": lambda X: X.astype(">f8"),
    "integers": lambda X: np.round(X).astype(np.int64),
    "single precision": lambda X: X.astype(np.float32),
    "memory map": None,
}


def _container(trial, base):
    """The same numbers in another container."""
    rng = np.random.default_rng(trial.seed)
    word = str(rng.choice(list(CONTAINERS)))
    X = trial.X
    if word == "integers":
        X = np.round(X)
    elif word == "single precision":
        X = X.astype(np.float32).astype(float)
    sparse = word.startswith("CS") and trial.name == "S3VC"
    if sparse:  # which "auto" leaves as they are
        trial = trial._replace(parameters={**trial.parameters, "scale": False})
    # Of other numbers, or another scale: another trial to compare with.
    if sparse or word in ("integers", "single precision"):
        trial = trial._replace(X=X)
        base = attempt(trial.model(), X, trial.codes, trial.weight)
        if base.error is not None:
            return raised(trial.name, base.error)
    weight = trial.weight
    y = pd.Series(trial.codes) if word == "frame" else trial.codes
    with tempfile.TemporaryDirectory() as folder:
        given = _mapped(X, folder) if word == "memory map" else CONTAINERS[word](X)

        def again(model, version):
            fit = attempt(model, given, y, weight)
            return fit, None if fit.error else seen(fit)

        wrong = compared(trial, base, again)
    return [(key, f"{word}: {text}") for key, text in wrong]


def _marker(trial, base):
    """Unlabeled rows as every program marks them: read like −1, refused, or warned of."""
    rng = np.random.default_rng(trial.seed)
    codes, U = trial.codes, trial.codes < 0
    k = int(codes.max()) + 1
    text = np.array(["eggs", "ham", "spam"][:k], dtype=object)[codes]
    big = 2**53 + np.arange(k)  # which doubles cannot tell apart
    read = {  # these must give the machine of the trial, or an error that says how to
        "None among strings": lambda: (np.where(U, None, text), None),
        "NaN among numbers": lambda: (np.where(U, np.nan, codes), None),
        "pandas.NA in a list": lambda: (
            [pd.NA if u else v for u, v in zip(U, text, strict=True)], None),
        "-1 among strings": lambda: (np.where(U, -1, text), None),
        "categories": lambda: (pd.Series(np.where(U, None, text)).astype("category"), None),
        "Int64 with NA": lambda: (
            pd.array([None if v < 0 else int(v) for v in codes], "Int64"), None),
        "large Int64 with NA": lambda: (
            pd.Series([None if v < 0 else int(big[v]) for v in codes], dtype="Int64"), None),
        "mask": lambda: (rng.permutation(np.where(U, 0, codes)) * 0 + np.where(U, 0, codes), U),
        "mask and -1, +1": lambda: (np.where(U, 1, 2 * codes - 1), U),
        "mask and {-1, 0, 1} floats": lambda: (np.where(U, 0.0, 2.0 * codes - 1), U),
        "masked array": lambda: (np.ma.array(np.where(U, 0, codes), mask=U), None),
        "StringDType": lambda: (np.where(U, "", text).astype(np.dtypes.StringDType()), U),
        "float32 codes": lambda: (codes.astype(np.float32), None),
        "int8 codes": lambda: (codes.astype(np.int8), None),
    }  # fmt: skip
    told = {  # these may be classes, so that a word is enough
        "0 beside -1.0 and 1.0": lambda: (np.where(U, 0.0, 2.0 * codes - 1), None),
        "-3 beside -1 and 1": lambda: (np.where(U, -3, 2 * codes - 1), None),
        "?": lambda: (np.where(U, "?", text), None),
        "empty": lambda: (np.where(U, "", text), None),
        "unlabeled": lambda: (np.where(U, "unlabeled", text), None),
        "unknown": lambda: (np.where(U, "unknown", text), None),
    }
    if k > 2:
        del read["mask and -1, +1"], read["mask and {-1, 0, 1} floats"]
        del told["0 beside -1.0 and 1.0"], told["-3 beside -1 and 1"]
    word = str(rng.choice([*read, *told]))
    y, mask = {**read, **told}[word]()
    arguments = {} if mask is None else dict(unlabeled_mask=mask)
    if isinstance(trial.parameters.get("balance"), dict):
        return []  # shares have names too
    key = f"marker {word}"
    if word in told:
        if U.sum() < 3 or (word[0] == "0" and U.sum() < 0.7 * U.size):
            return []
        fit = attempt(trial.model(), trial.X, y, trial.weight)
        about = [w for w in fit.said if re.search("label|class", str(w.message))]
        if fit.error is not None:
            return [(key, text) for _, text in raised(trial.name, fit.error)]
        classes = fit.model.classes_.tolist()
        return [] if about else [(key, f"a class in silence: {classes}")]

    def again(model, version):
        fit = attempt(model, trial.X, y, trial.weight, **arguments)
        return fit, None if fit.error else seen(fit)

    fit = attempt(trial.model(), trial.X, y, trial.weight, **arguments)
    if fit.error is not None:
        return [(key, text) for _, text in raised(trial.name, fit.error)]
    kind = fit.model.classes_.dtype.kind
    if "Int64" in word and kind not in "iu":
        return [(key, f"classes {fit.model.classes_.tolist()} of integers")]
    if word in ("masked array", "mask", "mask and -1, +1") and len(fit.model.classes_) != k:
        return [(key, f"classes {fit.model.classes_.tolist()}")]
    return [
        (found if found.startswith(COUNTED) else key, text)
        for found, text in compared(trial, base, again)
    ]


# --- Streams --------------------------------------------------------------------------------------


def _stream(trial, base):
    """`partial_fit` in any order ends where `fit` does, in the sense that is right for the method.

    A convex problem has one optimum. With unlabeled rows a stream may end in another minimum than
    `fit`; its objective is J of its machine then, below that of a constant, and of the same C*.
    """
    rng = np.random.default_rng(trial.seed)
    X, codes, weight, name = trial.X, trial.codes, trial.weight, trial.name
    order = rng.permutation(codes.size)
    how = str(rng.choice(["one class first", "labels first", "any order"]))
    if how == "one class first":
        order = order[np.argsort(np.where(codes[order] == rng.integers(2), 0, 1), kind="stable")]
    elif how == "labels first":
        order = order[np.argsort(codes[order] < 0, kind="stable")]
    size = int(rng.choice([1, 1, 3]))
    parts = np.split(order, np.arange(size, order.size, size))
    X, codes = X[order], codes[order]
    weight = None if weight is None else weight[order]
    parts = [slice(part, part + size) for part in range(0, order.size, size)]
    if weight is not None and not all(weight[part].any() for part in parts):
        return []

    def fed(model):
        for part in parts:
            s = None if weight is None else weight[part]
            model.partial_fit(X[part], codes[part], sample_weight=s, classes=range(codes.max() + 1))

    fit = attempt(trial.model(), X, codes, call=fed)
    words = f"{how}, {size} at a time: "
    if fit.error is not None:
        # A message is about one of the calls; what `fit` takes no call may refuse for its numbers.
        return [(key, words + text) for key, text in raised(name, fit.error)]
    trial = trial._replace(X=X, codes=codes, weight=weight)
    if name in ("ILS3VM", "NNBBS3VM"):
        wrong = look(trial, fit)
        # There is no balance in a stream, which may well put all rows into one class; with
        # unlabeled rows it ends in a minimum beside the arrivals, not below a machine that saw all
        # labels at once, and it is J that is looked at after `partial_fit`.
        unasked = ("silent share", "never predicted")
        if np.any(codes < 0) and trial.parameters.get("C_star") != 0:
            unasked += ("above supervised", "own labels")
        wrong = [(f"stream {key}", text) for key, text in wrong if not key.startswith(unasked)]
        once = attempt(trial.model(), X, codes, weight)
        if once.error is None and not once.warned and not fit.warned:
            pairs = zip(tasks(fit.model, X, codes, weight), tasks(once.model, X, codes, weight),
                        strict=True)  # fmt: skip
            for part, whole in pairs:
                stars = part.problem.C_star, whole.problem.C_star
                convex = not np.any((part.t == 0) & (part.s > 0)) or stars == (0, 0)
                high = part.reported - whole.reported
                # A violation of start_tol bounds the gap by that times the sum of the costs.
                loss = once.model.start_tol if trial.name == "ILS3VM" else LOSS
                slack = whole.slack + part.slack + loss * of_zero(whole)
                if convex and abs(high) > SAME * whole.reported + slack:
                    text = f"J = {part.reported:.6g}, fit {whole.reported:.6g}, {part.status}"
                    wrong.append((f"stream:{name}", text))
                asked = stars[1]
                if name == "NNBBS3VM":  # keeps that of the first call
                    s = np.ones(size) if weight is None else weight[parts[0]]
                    L = codes[parts[0]] >= 0
                    asked = 0.0 if L.all() else part.problem.C * s[L].sum() / s[~L].sum()
                if trial.parameters.get("C_star") is None and not np.isclose(stars[0], asked):
                    text = f"C_star {stars[0]:.4g} where {asked:.4g} is due"
                    wrong.append((f"stream C*:{name}", text))
    else:
        wrong = []
        answers = fit.model.predict(X)
        bad = not np.isfinite(fit.model.decision_function(X)).all() or answers.size != codes.size
        if bad:
            wrong.append((f"stream:{name}", "outputs that are not finite"))
    return [(key, words + text) for key, text in wrong]


# --- What stands around an estimator --------------------------------------------------------------


def _around(trial, base):
    """Pipelines in wrappers, splitters, unlabeled rows apart, stored models, labels to encode."""
    rng = np.random.default_rng(trial.seed)
    names = ["splitter", "apart", "labels", "twin"]
    names += ["stored"] * 3 * (trial.name in ONLINE)
    names += ["pipeline"] * 3 * (trial.name in ("SafeS3VM", "S3VC"))
    names += ["twin"] * 3 * (trial.name in ("SVM", "LapSVM"))
    return globals()[f"_around_{rng.choice(names)}"](trial, base, rng)


def _around_pipeline(trial, base, rng):
    pipe = make_pipeline(StandardScaler(), QNS3VM(kernel="linear"))
    wrappers = {
        "SafeS3VM": lambda: trial.model(estimator=pipe),
        "S3VC": lambda: trial.model(solver=pipe),
        "CalibratedS3VM": lambda: CalibratedS3VM(pipe, cv=2),
    }
    name = "CalibratedS3VM" if rng.random() < 0.3 else trial.name
    fit = attempt(wrappers[name](), trial.X, trial.codes)
    return [(f"pipeline:{name}", text) for _, text in raised(trial.name, fit.error)]


def _around_splitter(trial, base, rng):
    """Cross-validation of labels −1 and +1 with a mask is that of their codes."""
    counts = np.bincount(trial.codes[trial.codes >= 0])
    if counts.min() < 2 or counts.size > 2:
        return []
    model, hidden = trial.model(), trial.codes < 0
    balance = trial.parameters.get("balance")
    if isinstance(balance, dict):
        model.set_params(balance={2 * c - 1: v for c, v in balance.items()})
    plain = lambda m: m.scores.append(  # noqa: E731
        cross_val_score(
            trial.model(), trial.X, trial.codes, cv=SemiSupervisedKFold(2), error_score="raise"
        )
    )
    holder = SimpleNamespace(scores=[])
    signs = np.where(hidden, -1, 2 * trial.codes - 1)

    def masked(m):
        with sklearn.config_context(enable_metadata_routing=True):
            asks = model.set_fit_request(unlabeled_mask=True)
            if hasattr(asks, "set_score_request"):
                asks.set_score_request(unlabeled_mask=True)
            m.scores.append(
                cross_val_score(asks, trial.X, signs, cv=SemiSupervisedKFold(2),
                                params={"unlabeled_mask": hidden}, error_score="raise")
            )  # fmt: skip

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            plain(holder)
        except Exception:
            return []  # a fold that cannot be fitted
        try:
            masked(holder)
        except Exception as error:
            return [("splitter with mask", f"{type(error).__name__}: {error!s:.200}")]
    one, other = holder.scores
    if np.allclose(one, other, atol=0.34 / counts.sum()):
        return []
    return [("splitter with mask", f"scores {one.tolist()} of codes, {other.tolist()} of -1, +1")]


def _around_apart(trial, base, rng):
    """Unlabeled rows in a frame of their own, whose columns stand in another order."""
    U = trial.codes < 0
    if not U.any() or trial.X.shape[1] < 2:
        return []
    columns = [f"column {j}" for j in range(trial.X.shape[1])]
    frame = pd.DataFrame(trial.X, columns=columns)
    y = np.array(["eggs", "ham", "spam"], dtype=object)[trial.codes[~U]]
    if rng.random() < 0.4:
        other = WithUnlabeled(LabelSpreading(), frame[U])
        fit = attempt(other, None, None, call=lambda m: m.fit(frame[~U], y))
        return [("spreading with strings", text) for _, text in raised("SVM", fit.error)]
    if trial.name == "SelfTrainingKNN" or isinstance(trial.parameters.get("balance"), dict):
        return []
    straight, turned = (
        attempt(WithUnlabeled(trial.model(), part), None, None, call=lambda m: m.fit(frame[~U], y))
        for part in (frame[U], frame[U][columns[::-1]])
    )
    if straight.error is not None or turned.error is not None:
        return []
    one, other = (fit.model.predict(frame) for fit in (straight, turned))
    if np.array_equal(one, other):
        return []
    return [("columns of X_unlabeled", f"in another order: {np.mean(one != other):.0%} differ")]


def _around_stored(trial, base, rng):
    """A model that was stored, and is read as a memory map, learns on."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        joblib.dump(base.model, path)
        model = joblib.load(path, mmap_mode="r")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model.partial_fit(trial.X[:3], trial.codes[:3])
            except Exception as error:
                return [(f"stored:{trial.name}", text) for _, text in raised(trial.name, error)]
            finally:
                del model
    return []


def _around_labels(trial, base, rng):
    """`encode_labels` on containers of labels and on markers that match nothing."""
    codes, U = trial.codes, trial.codes < 0
    text = np.array(["eggs", "ham", "spam"], dtype=object)[codes]
    values = {
        "one column": (lambda: pd.DataFrame({"y": np.where(U, None, text)}), None),
        "generator": (lambda: (v for v in np.where(U, "?", text)), "?"),
        "bytes": (lambda: np.where(U, "?", text).astype("S9"), "?"),
        "numbers as text": (lambda: np.where(U, "-1", text), -1),
        "masked array": (lambda: np.ma.array(np.where(U, 0, codes), mask=U), None),
        "plain": (lambda: np.where(U, "?", text), "?"),
    }
    word = str(rng.choice(list(values)))
    make, marker = values[word]
    if not U.any():
        return []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found, classes = encode_labels(make(), unlabeled=marker)
        except Exception as error:
            return [(f"encode_labels, {word}", text) for _, text in raised("SVM", error)]
    if said or np.array_equal(found, codes):
        return []
    return [(f"encode_labels, {word}", f"{found.size} codes, classes {list(classes)[:4]}")]


def _around_twin(trial, base, rng):
    """A convex problem has one optimum, whoever finds it."""
    name, X, codes, weight = trial.name, trial.X, trial.codes, trial.weight
    if name == "LapSVM":
        ends = [
            attempt(trial.model(solver=solver), X, codes, weight) for solver in ("newton", "pcg")
        ]
        if any(fit.error is not None for fit in ends):
            return [pair for fit in ends for pair in raised(name, fit.error)]
        values = [np.atleast_1d(fit.model.objective_) for fit in ends]
        for k, fit in enumerate(ends):
            high = values[k] > 1.01 * values[1 - k] + rounding(trial, fit)
            if high.any() and not fit.warned and not fit.findings:
                status = fit.model.termination_condition_
                text = f"{values[k].tolist()}, the other {values[1 - k].tolist()}, {status}"
                return [(f"twin:{name} {('newton', 'pcg')[k]}", text)]
        return []
    if name != "SVM" or base.warned or codes.max() > 1:
        return []
    task = tasks(base.model, X, codes, weight)[0]
    s = np.ones(codes.size) if weight is None else weight
    machine, rows = supervised(task.problem.kernel, task.problem.C, X, codes, s)
    if machine is None:
        return []
    K = gram(task.problem.kernel, X[rows], X[rows])
    dual = np.zeros(rows.size)
    dual[machine.support_] = machine.dual_coef_[0]
    t, f = 2.0 * codes[rows] - 1, K @ dual + machine.intercept_[0]
    J = task.problem.value(f, t, dual @ K @ dual, sample_weight=s[rows])
    tol = trial.parameters.get("tol", 1e-3)  # of the margins, and so of the losses
    spared = max(LOSS, tol) * of_zero(task)
    if task.reported > J * (1 + 2 * SAME) + task.slack + spared:
        return [("twin:SVM", f"J = {task.reported:.6g}, scikit-learn's machine {J:.6g}")]
    return []


EXTRAS = {
    "shift": _shift,
    "order": _order,
    "names": _names,
    "container": _container,
    "marker": _marker,
    "copies": _copies,
    "stream": _stream,
    "around": _around,
}


def complaints(trial):
    """What is wrong with a trial: pairs of a key and a text, and what is `COUNTED`."""
    fit = attempt(trial.model(), trial.X, trial.codes, trial.weight)
    wrong = look(trial, fit)
    if fit.error is not None:
        return wrong or [(f"refused:{trial.name}", f"{fit.error!s:.200}")]
    try:
        found = EXTRAS[trial.extra](trial, fit)
    except FloatingPointError as error:  # of a prediction
        found = raised(trial.name, error)
    kept = []
    for pair in [*wrong, *found]:
        if pair[0] not in [key for key, _ in kept]:
            kept.append(pair)
    return kept


def verdict(seed, number):
    """The complaints of a trial as a list, with what no estimator may raise."""
    one = trial(seed, number)
    try:
        return [list(pair) for pair in complaints(one)]
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {error}"
        return [[f"crash:{one.name}", text]]


# --- One trial, many, or the worker ---------------------------------------------------------------


def verdicts(seed, first, last):
    """The complaints of a range of trials, by number, from processes that may hang or crash."""
    found = bad_inputs.verdicts(Path(__file__), seed, first, last)
    return {
        number: [[text.split(",")[0], text]] if isinstance(text, str) else text
        for number, text in found.items()
    }


def described(seed, found):
    """Every complaint with its trial and how to see it again."""
    return "\n\n".join(
        f"{key}: {text}\n  {trial(seed, number)}\n  python tests/trouble.py {seed} {number}"
        for number, pairs in sorted(found.items())
        for key, text in pairs
        if not key.startswith(COUNTED)
    )


def many(seed, trials, workers, block=40):
    """Run the trials of a seed on several processes, print what is found; the number of keys."""
    counts, began = collections.Counter(), time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        ranges = [(first, min(first + block, trials)) for first in range(0, trials, block)]
        for found in pool.map(lambda part: verdicts(seed, *part), ranges):
            counts.update(key for pairs in found.values() for key, _ in pairs)
            text = described(seed, found)
            if text:
                print(text + "\n", flush=True)
    for key, count in sorted(counts.items()):
        print(f"{count:6d}  {key}{' (no complaint)' if key.startswith(COUNTED) else ''}")
    minutes = (time.perf_counter() - began) / 60
    print(f"{trials} trials of seed {seed} in {minutes:.1f} minutes")
    return sum(not key.startswith(COUNTED) for key in counts)


def main(arguments):
    """The command line."""
    if arguments and not arguments[0].startswith("-"):
        seed, first, *last = map(int, arguments)
        if last:
            bad_inputs.main(seed, first, last[0], verdict)
            return 0
        print(trial(seed, first))
        found = verdict(seed, first)
        for key, text in found:
            print(f"{key}: {text}")
        return 0
    parser = argparse.ArgumentParser(prog="tasks.py trouble")
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    return int(many(options.seed, options.trials, options.workers) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
