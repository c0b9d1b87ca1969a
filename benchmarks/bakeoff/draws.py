"""Cells: the rows of a set, its training and test part, the labels, the scaling.

Whatever is here decides the numbers, and is part of the hash of every row that is stored.
"""

import zlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from s3vm_lib import datasets

ROWS = 1000  # at most, of the training part and of the test part
DENSE = 0.25  # share of non-zeros from which a sparse matrix is made dense
_TRIES = 100_000  # of a set whose rarer class has two rows in a hundred, one in six succeeds


@dataclass(frozen=True)
class Set:
    """One line of the registry.

    Parameters
    ----------
    name : str
        Also the name of its file.
    part : {"tuning", "reported"}
        Whether defaults may be chosen on it.
    kind : {"generated", "image", "tabular", "text"}
        What the rows are.
    source : str
        A name that `s3vm_lib.datasets.load` knows, or a function of `s3vm_lib.datasets` or of this
        module that returns ``(X, y)``, with an ending "()".
    options : dict
        Arguments of the function.
    multi : bool, default=False
        Whether the classes are those before they were grouped into two.
    skip : int, default=0
        Leading columns that are left out (codes without an order).
    labels : tuple of int
        Numbers of labels, ascending.
    """

    name: str
    part: str
    kind: str
    source: str
    options: dict[str, Any] = field(default_factory=dict)
    multi: bool = False
    skip: int = 0
    labels: tuple[int, ...] = (10, 25, 50, 100)


class Cell(NamedTuple):
    """Rows in a random order, labels of the training part with −1, and the truth of both parts."""

    X: Any
    y: np.ndarray
    truth: np.ndarray
    X_test: Any
    y_test: np.ndarray


def two_gaussians(n_samples, n_features, positive, distance, random_state):
    """Two normal classes with identity covariance, means `distance` apart, one of them rarer."""
    rng = np.random.default_rng(random_state)
    y = (rng.random(n_samples) < positive).astype(np.int64)
    X = rng.standard_normal((n_samples, n_features))
    X[:, 0] += distance * (y - 0.5)
    return X, y


def rings(n_samples, noise, random_state):
    """Class 1 on a circle of radius 1, class 0 on one of radius 3."""
    rng = np.random.default_rng(random_state)
    y = (rng.random(n_samples) < 0.5).astype(np.int64)
    angle, radius = 2 * np.pi * rng.random(n_samples), 3.0 - 2.0 * y
    X = radius[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
    return X + noise * rng.standard_normal(X.shape), y


def spirals(n_samples, noise, random_state):
    """Two arms of an Archimedean spiral, one and a half turns each."""
    rng = np.random.default_rng(random_state)
    y = (rng.random(n_samples) < 0.5).astype(np.int64)
    turn = 3 * np.pi * np.sqrt(rng.random(n_samples))
    angle = turn + np.pi * y
    X = turn[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
    return X + noise * rng.standard_normal(X.shape), y


def gaussians(n_samples, n_features, shares, distance, random_state):
    """Classes of unit variance, as many as shares, with random centers about so far apart."""
    centers = random_state.normal(0, distance / np.sqrt(2 * n_features), (len(shares), n_features))
    y = random_state.choice(len(shares), n_samples, p=shares)
    return random_state.normal(centers[y]), y


def iris():
    """The flowers that come with scikit-learn, three classes."""
    from sklearn.datasets import load_iris

    return load_iris(return_X_y=True)


def wine():
    """The wines that come with scikit-learn, three classes."""
    from sklearn.datasets import load_wine

    return load_wine(return_X_y=True)


def digits():
    """scikit-learn's bundled digits, ten classes."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def seed_of(one, draw):
    """Seed of all that is random in a draw of a set; it does not depend on the number of labels."""
    return [zlib.crc32(one.name.encode()), draw]


def whole(one, draw):
    """All rows of a set: the stored ones, or for a generated set new ones in each draw."""
    if one.source.endswith("()"):
        name = one.source[:-2]
        options = dict(one.options)
        if one.kind == "generated":
            # A seed of the rows: the order and the labels are drawn from another one.
            options["random_state"] = np.random.default_rng([*seed_of(one, draw), 1])
            options.setdefault("n_samples", 2 * ROWS)
        return globals().get(name, getattr(datasets, name, None))(**options)
    loaded = datasets.load(one.source, download=False)
    return loaded.data, loaded.target_multi if one.multi else loaded.target


def pool(one, draw):
    """Training and test rows of a draw, and the order in which labels become known.

    Returns
    -------
    Cell
        Its y are all labels; the first l of them are the l labeled ones.
    """
    X, y = whole(one, draw)
    rng = np.random.default_rng(seed_of(one, draw))
    y = np.unique(y, return_inverse=True)[1]
    n_train = min(ROWS, 2 * len(y) // 3)
    rows = rng.permutation(len(y))[: n_train + min(ROWS, len(y) - n_train)]
    train, test = rows[:n_train], rows[n_train:]
    train = train[_order(y[train], one.labels, rng)]
    X, X_test = X[train][:, one.skip :], X[test][:, one.skip :]
    X, X_test = _scaled(X, X_test, one.kind != "generated")
    return Cell(X, y[train], y[train], X_test, y[test])


def _order(y, labels, rng):
    """A random order whose first labels hold each class, and two of each from the second number."""
    n_classes = y.max() + 1
    for _ in range(_TRIES):
        order = rng.permutation(len(y))
        least = [np.bincount(y[order[:l]], minlength=n_classes).min() for l in labels[:2]]
        if all(count >= k for k, count in enumerate(least, start=1)):
            return order
    raise RuntimeError(f"no order of {len(y)} rows has all classes among its first {labels[:2]}")


def _scaled(X, X_test, wanted=True):
    if sp.issparse(X) and X.nnz < DENSE * np.prod(X.shape):
        return sp.csr_matrix(X, dtype=np.float64), sp.csr_matrix(X_test, dtype=np.float64)
    X, X_test = (A.toarray() if sp.issparse(A) else A for A in (X, X_test))
    X, X_test = X.astype(np.float64), X_test.astype(np.float64)
    if not wanted:
        return X, X_test
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    deviation[deviation <= 1e-12 * (1 + np.abs(mean))] = 1.0
    return (X - mean) / deviation, (X_test - mean) / deviation


def cell(whole_pool, n_labeled):
    """The cell of a pool with so many labels."""
    y = whole_pool.y.copy()
    y[n_labeled:] = -1
    return whole_pool._replace(y=y)
