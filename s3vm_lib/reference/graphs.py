"""Neighborhood graphs and their Laplacians in plain NumPy: the twin of `s3vm_lib.graphs`."""

import numpy as np


def square_distances(X):
    """‖x_i − x_j‖² of all pairs of rows."""
    return np.sum((X[:, None, :] - X[None, :, :]) ** 2, axis=2)


def knn_weights(X, k, gamma=None):
    """Symmetric weights: 1, or exp(−gamma ‖x_i − x_j‖²), where one row is among the k nearest."""
    D = square_distances(X)
    np.fill_diagonal(D, np.inf)
    joined = np.zeros(D.shape, dtype=bool)
    np.put_along_axis(joined, np.argsort(D, axis=1, kind="stable")[:, :k], True, axis=1)
    joined |= joined.T
    return np.where(joined, 1.0 if gamma is None else np.exp(-gamma * D), 0.0)


def radius_weights(X, radius, gamma=None):
    """The same for pairs of rows at a distance of at most ``radius``."""
    D = square_distances(X)
    joined = radius**2 >= D
    np.fill_diagonal(joined, False)
    return np.where(joined, 1.0 if gamma is None else np.exp(-gamma * D), 0.0)


def energy(W, f, p=2):
    """Σ over edges of μ_ij |f_i − f_j|^p, every edge once."""
    return 0.5 * np.sum(W * np.abs(f[:, None] - f[None, :]) ** p)


def laplacian(W, normalized=False):
    """D − W, or I − D^−½ W D^−½."""
    degrees = W.sum(axis=1)
    if not normalized:
        return np.diag(degrees) - W
    root = np.sqrt(degrees)
    return np.eye(len(W)) - W / np.outer(root, root)


def harmonic(W, t):
    """Outputs that agree with the labels t = ±1 and are weighted means of their neighbors' else."""
    L, U = np.flatnonzero(t), np.flatnonzero(t == 0)
    f, D = t.astype(float), laplacian(W)
    f[U] = np.linalg.solve(D[np.ix_(U, U)], W[np.ix_(U, L)] @ t[L])
    return f
