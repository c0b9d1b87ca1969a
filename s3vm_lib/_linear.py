"""Linear models in terms of their rows: rows without their mean, weights from coefficients."""

import scipy.sparse as sp


def centered(X, kernel):
    """Dense rows of a linear kernel without their mean: with Σβ = 0 a shift moves only b.

    What is far from 0 would lose its digits in products.

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
    center = X.mean(axis=0)
    return X - center, center


def linear_model(kernel, dual, X, b, center=None):
    """Weights and offset of the linear model Σ_i β_i k(x_i, ·) + b.

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
    coef = kernel.sigma_f**2 * (dual @ X)
    return coef, b if center is None else b - coef @ center
