"""Shared by the tests: small data sets with fixed seeds, and fresh Python processes."""

import os
import subprocess
import sys

import numpy as np
import pytest


def pytest_collection_modifyitems(items):
    """Long tests first: one that begins at the end keeps the other workers waiting."""
    items.sort(key=lambda item: not {"slow", "nightly"} & set(item.keywords))


@pytest.fixture(scope="session")
def two_gaussians():
    """Function (n, d, seed, distance) -> X, t: two Gaussian classes, labels −1 and +1."""

    def make(n=60, d=3, seed=0, distance=1.5):
        rng = np.random.default_rng(seed)
        t = np.where(rng.permutation(n) % 2 == 0, 1.0, -1.0)
        X = rng.standard_normal((n, d))
        X[:, 0] += 0.5 * distance * t
        return X, t

    return make


@pytest.fixture(scope="session")
def mixture():
    """Function (n, seed) -> X, t: eight Gaussians in 20 dimensions whose classes alternate."""

    def make(n, seed=0):
        centers = 1.5 * np.random.default_rng(7).standard_normal((8, 20)) / 2
        rng = np.random.default_rng(100 + seed)
        z = rng.integers(0, 8, n)
        return centers[z] + rng.standard_normal((n, 20)), np.where(z % 2 == 0, 1.0, -1.0)

    return make


@pytest.fixture(scope="session")
def semi_supervised():
    """Function (n, n_labeled, n_classes, seed) -> X, y: blobs with classes 0, 1, … and −1."""

    def make(n=80, n_labeled=12, n_classes=2, seed=0):
        rng = np.random.default_rng(seed)
        y = np.arange(n) % n_classes
        angle = 2 * np.pi * y / n_classes
        X = 2 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.7 * rng.standard_normal((n, 2))
        y[n_labeled:] = -1
        order = rng.permutation(n)
        return X[order], y[order]

    return make


@pytest.fixture
def visits(monkeypatch):
    """Nodes of branch and bound as they are visited: (node, bound it is closed with, best value).

    The bound is infinite where the node has children.
    """
    from s3vm_lib.branch_and_bound import _intervals, _search

    seen = []
    for search in (_search._Search, _intervals._Boxes):

        def visit(self, node, visit=search.visit):
            before, self.closed = self.closed, np.inf
            visit(self, node)
            seen.append((node, self.closed, self.objective))
            self.closed = min(before, self.closed)

        monkeypatch.setattr(search, "visit", visit)
    return seen


@pytest.fixture(scope="session")
def run_python():
    """Function (code, **environment) -> stdout of the code in a new process that must succeed."""

    def run(code, **environment):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
        result = subprocess.run(
            # -P: the working directory must not hide the package that PYTHONPATH names.
            [sys.executable, "-P", "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=1800,  # for what hangs, not for what a busy machine does slowly
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run
