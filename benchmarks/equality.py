"""Digests of what every estimator computes, to show that a change of the code changes no bit.

``python -m benchmarks.equality dump FILE`` fits every estimator with each of its kernels to dense
and sparse rows of two and of three classes, on one thread and on two, lets it learn and forget rows
and read a memory map, and stores a digest of each public attribute. ``python -m benchmarks.equality
compare OLD NEW`` prints where two such files differ and leaves with 1 if they do. The library that
is imported is the one that is measured: with another ``PYTHONPATH`` that of an older tree.
"""

import argparse
import hashlib
import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import s3vm_lib

SEEDS = 3
KERNELS = ("linear", "rbf", "poly")
FEWER = {  # parameters that keep a fit short
    "BGS3VM": dict(max_iter=1000),
    "BranchBoundS3VM": dict(max_iter=60),
    "DAS3VM": dict(n_temperatures=4, max_rounds=5),
    "FRS3VM": dict(n_features=32, n_steps=10),
    "GKM": dict(max_iter=1000),
    "GKMRegressor": dict(max_iter=1000),
    "NNBBS3VM": dict(n_neighbors=2, max_iter=60),
    "TSGS3VM": dict(n_features=32, n_steps=10),
}


def problem(seed, n_classes, n_labeled=10, n=48):
    """Rows in overlapping groups and their labels, -1 where unlabeled."""
    rng = np.random.default_rng([seed, n_classes])
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, 4)) + 1.5 * np.eye(4)[y]
    X[np.abs(X) < 0.3] = 0.0  # so that CSR has something to leave out
    seen = y.copy()
    seen[n_labeled * n_classes // 2 :] = -1
    return X, seen, y


def digest(value):
    """Return a digest of numbers, strings and containers of them; None for anything else."""
    if sp.issparse(value):
        value = value.toarray()
    if isinstance(value, np.ndarray) and value.dtype != object:
        value = np.ascontiguousarray(value)
        content = str(value.dtype).encode() + str(value.shape).encode() + value.tobytes()
    elif isinstance(value, (bool, int, float, str, np.generic)) or value is None:
        content = repr(value).encode()
    elif isinstance(value, dict):
        parts = [(str(key), digest(entry)) for key, entry in sorted(value.items(), key=str)]
        content = repr([part for part in parts if part[1]]).encode()
    elif isinstance(value, (list, tuple)) or (
        isinstance(value, np.ndarray) and value.dtype == object
    ):
        content = repr([digest(entry) for entry in value]).encode()
    else:
        return None
    return hashlib.sha256(content).hexdigest()[:12]


def facts(model, X):
    """Return the digests of a fitted model's public attributes and of its outputs on `X`."""
    found = {}
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_") and "seconds" not in name:
            found[name] = digest(value)
    for method in ("decision_function", "predict"):
        if hasattr(model, method):
            found[method] = digest(getattr(model, method)(X))
    for name in ("objective_", "history_", "transduction_", "coef_", "dual_coef_"):
        if hasattr(model, name):  # a property is no entry of vars
            found[name] = digest(getattr(model, name))
    return {name: value for name, value in found.items() if value}


def variants(name):
    """Parameters of an estimator: each kernel, one and two threads."""
    known = getattr(s3vm_lib, name)().get_params()
    for kernel in KERNELS if "kernel" in known else (None,):
        for n_jobs in (1, 2) if "n_jobs" in known else (None,):
            given = {"kernel": kernel, "n_jobs": n_jobs}
            yield {key: value for key, value in given.items() if value is not None}


def attempt(action, *args):
    """Return what an action finds, or the kind of error by which the estimator refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return action(*args)
        except (ValueError, TypeError, FloatingPointError) as error:
            return {"error": type(error).__name__}


def dump(only=()):
    """Return the facts of all cases, by estimator and case."""
    found = {}
    names = [name for name in s3vm_lib.__all__ if hasattr(getattr(s3vm_lib, name), "fit")]
    for name in names:
        if only and name not in only:
            continue
        cls = getattr(s3vm_lib, name)
        seeded = "random_state" in cls().get_params()
        for variant in variants(name):
            for seed in range(SEEDS):
                given = FEWER.get(name, {}) | variant | ({"random_state": seed} if seeded else {})
                for n_classes in (2, 3):
                    X, seen, y = problem(seed, n_classes)
                    if name == "GKMRegressor":
                        seen = np.where(seen < 0, np.nan, X[:, 0] + 0.1 * y)
                    case = f"{name} {json.dumps(variant)} {seed} {n_classes}"
                    for form, rows in (("dense", X), ("csr", sp.csr_matrix(X))):
                        found[f"{case} {form}"] = attempt(fitted, cls(**given), rows, seen)
                    if seed == 0:
                        found[f"{case} stream"] = attempt(stream, cls(**given), X, seen)
                        found[f"{case} map"] = attempt(mapped, cls(**given), X, seen)
    return found


def fitted(model, X, y):
    """Fit to rows as they are."""
    return facts(model.fit(X, y), X)


def stream(model, X, y):
    """Learn rows in three batches, then forget some where the model can."""
    if not hasattr(model, "partial_fit"):
        return {"stream": "none"}
    parts = np.arange(len(y)).reshape(3, -1)
    classes = {"classes": np.unique(y[y >= 0])} if y.dtype.kind == "i" else {}
    model.partial_fit(X[parts[0]], y[parts[0]], **classes)
    for part in parts[1:]:
        model.partial_fit(X[part], y[part])
    found = facts(model, X)
    if hasattr(model, "forget"):
        model.forget(np.arange(20, 26))
        found |= {f"forget {key}": value for key, value in facts(model, X).items()}
    return found


def mapped(model, X, y):
    """Fit to rows of a memory map in single precision."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "X.npy")
        np.save(path, X.astype(np.float32))
        return fitted(model, np.load(path, mmap_mode="r"), y)


def compare(old, new):
    """Return the sorted keys (and attributes) in which two dumps differ."""
    rows = []
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key, {}), new.get(key, {})
        rows += [
            f"{key}: {name}"
            for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name)
        ]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["dump", "compare"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--only", nargs="*", default=())
    options = parser.parse_args()
    if options.task == "dump":
        found = dump(options.only)
        options.files[0].write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        print(f"{len(found)} cases of {s3vm_lib.__path__[0]}")
        return 0
    rows = compare(*(json.loads(path.read_text()) for path in options.files))
    print(*rows[:200], f"{len(rows)} differences", sep="\n")
    return bool(rows)


if __name__ == "__main__":
    raise SystemExit(main())
