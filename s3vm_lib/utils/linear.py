"""Linear models in terms of their rows: rows without their mean, weights from coefficients."""

import numpy as np
import scipy.sparse as sp

from s3vm_lib.utils.row_blocks import is_mapped

_FAR = 30.0  # distances of the mean from 0, in standard deviations of a row
_DENSE = 2**24  # numbers that sparse rows far from 0 may take, 128 MB: they are full anyway


def centered(X, kernel):
    """Subtract the mean from dense rows of a linear kernel: with Σβ = 0 a shift moves only b.

    What is far from 0 would lose its digits in products; so would most rows where a few have moved
    the mean of a column far away, and a median is taken there.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    kernel : Kernel

    Returns
    -------
    X : ndarray or CSR matrix of shape (n, d)
        As given where the rows are sparse, or the kernel is another one.
    center : ndarray of shape (d,), or None
        What was subtracted.
    """
    if kernel.name != "linear" or sp.issparse(X) or not len(X):
        return X, None
    few = np.sort(X[np.arange(9) * (len(X) - 1) // 8], axis=0)
    center = X.mean(axis=0)
    center = np.where(np.abs(center - few[4]) > _FAR * (few[6] - few[2]), few[4], center)
    return X - center, center


def nearer(X, kernel):
    """Subtract the mean from rows of a linear kernel where it is far from 0.

    For machines that a shift does not change, but whose sums it costs digits.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    kernel : Kernel

    Returns
    -------
    X : ndarray or CSR matrix of shape (n, d)
    center : ndarray of shape (d,), or None
        What was subtracted.
    """
    n, large = X.shape[0], sp.issparse(X) and X.shape[0] * X.shape[1] > _DENSE
    if kernel.name != "linear" or n == 0 or large or is_mapped(X):
        return X, None
    few = X[np.arange(9) * (n - 1) // 8]  # a look that costs nothing
    few = few.toarray() if sp.issparse(few) else few
    center = few.mean(axis=0, dtype=float)
    if not center @ center > _FAR**2 * few.var(axis=0, dtype=float).sum():
        return X, None
    X = X.toarray() if sp.issparse(X) else X
    center = X.mean(axis=0, dtype=float).astype(X.dtype)
    return X - center, center


def linear_model(kernel, dual, X, b, center=None):
    """Return weights and offset of the linear model Σ_i β_i k(x_i, ·) + b.

    Parameters
    ----------
    kernel : Kernel
    dual : ndarray of shape (n,)
        Coefficients β.
    X : ndarray or CSR matrix of shape (n, d)
        Rows as they were given.
    b : float
        Offset where rows are `centered`.
    center : ndarray of shape (d,), default=None

    Returns
    -------
    coef : ndarray of shape (d,), or None with another kernel
    b : float
        Offset for rows as they were given.
    """
    if kernel.name != "linear":
        return None, b
    if center is not None:  # Σβ = 0, and what is far from 0 would lose its digits here, too
        used = np.flatnonzero(dual)
        dual, X = dual[used], X[used] - center
    coef = kernel.sigma_f**2 * (dual @ X)
    return coef, b if center is None else b - coef @ center
