"""Neighborhood graphs and their Laplacians in plain NumPy: the twin of `s3vm_lib.graphs`."""

import numpy as np


def energy(W, f, p=2):
    """Return Σ over edges of μ_ij |f_i − f_j|^p, every edge once."""
    return 0.5 * np.sum(W * np.abs(f[:, None] - f[None, :]) ** p)


def laplacian(W, normalized=False):
    """Return D − W, or I − D^−½ W D^−½."""
    degrees = W.sum(axis=1)
    if not normalized:
        return np.diag(degrees) - W
    root = np.sqrt(degrees)
    return np.eye(len(W)) - W / np.outer(root, root)


def harmonic(W, t):
    """Return outputs equal to the labels t = ±1, and elsewhere to weighted means of neighbors.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib.reference.graphs import harmonic
    >>> W = np.eye(5, k=1) + np.eye(5, k=-1)  # a chain
    >>> harmonic(W, np.array([-1, 0, 0, 0, 1])).tolist()
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    L, U = np.flatnonzero(t), np.flatnonzero(t == 0)
    f, D = t.astype(float), laplacian(W)
    f[U] = np.linalg.solve(D[np.ix_(U, U)], W[np.ix_(U, L)] @ t[L])
    return f
