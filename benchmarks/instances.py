"""The instances on which the project states its thresholds: same seed, same numbers everywhere.

A thin mapping onto `s3vm_lib.datasets`; ``tests/test_benchmarks.py`` fixes the arrays by checksum.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from s3vm_lib import datasets

MIXTURE_GAMMA = 1 / 32  # RBF kernel of mixture20 wherever no other is named


class Instance(NamedTuple):
    """Rows and classes (0 and 1) of the labeled, the unlabeled and the test part."""

    X_labeled: np.ndarray
    y_labeled: np.ndarray
    X_unlabeled: np.ndarray
    y_unlabeled: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def training(self):
        """Labeled rows, then unlabeled rows, with −1 as the class of the latter.

        Returns
        -------
        X : ndarray or CSR matrix
        y : ndarray
        """
        parts = (self.X_labeled, self.X_unlabeled)
        X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
        return X, np.r_[self.y_labeled, np.full(len(self.y_unlabeled), -1)]


def _cut(X, y, n_labeled, n_training):
    parts = (slice(0, n_labeled), slice(n_labeled, n_training), slice(n_training, None))
    return Instance(*(a[part] for part in parts for a in (X, y)))


def mixture20(n_labeled, n_unlabeled, n_test, seed=0):
    """Eight Gaussians in 20 dimensions, classes alternating (`datasets.make_mixture`)."""
    n_training = n_labeled + n_unlabeled
    X, y = datasets.make_mixture(n_training + n_test, random_state=100 + seed)
    return _cut(X, y, n_labeled, n_training)


def bag_of_words(n, seed=0, n_features=20_000, n_terms=60, n_labeled=50, n_test=5000):
    """Two topics over a Zipf vocabulary; n counts labeled and unlabeled documents together."""
    X, y = datasets.make_bag_of_words(
        n + n_test, n_features, n_terms=n_terms, random_state=50 + seed
    )
    return _cut(X, y, n_labeled, n)


def gaussians(kind, seed=0, n_labeled=25, stratified=False):
    """G2C or G4C of the QN-S3VM paper: n = d = 500, half training, half test.

    With ``stratified=True`` the labeled part holds ``n_labeled // 2`` points of class 1, and the
    unlabeled part follows in the order of generation.
    """
    make, base = {"G2C": (datasets.make_g2c, 2000), "G4C": (datasets.make_g4c, 4000)}[kind]
    rng = np.random.default_rng(base + seed)
    X, y = make(shuffle=False, random_state=rng)
    order = rng.permutation(len(y))
    training = order[:250]
    if stratified:
        half = n_labeled // 2
        positive, negative = (training[y[training] == k] for k in (1, 0))
        labeled = np.r_[positive[:half], negative[: n_labeled - half]]
        training = np.r_[labeled, np.setdiff1d(training, labeled, assume_unique=True)]
    rows = np.r_[training, order[250:]]
    return _cut(X[rows], y[rows], n_labeled, 250)


def moons(n, seed=0, noise=0.1, per_class=2):
    """Two half circles; the first 2 · per_class points are labeled, and there is no test part."""
    X, y = datasets.make_moons(n, noise=noise, random_state=1000 + seed)
    return _cut(X, y, 2 * per_class, n)
