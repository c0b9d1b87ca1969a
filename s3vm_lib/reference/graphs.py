"""Neighborhood graphs and their Laplacians in plain NumPy: the twin of `s3vm_lib.graphs`."""

import numpy as np


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
