"""Newton directions where the Hessian may be indefinite: dense, or from products alone."""

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, eigh, eigh_tridiagonal
from scipy.optimize import brentq

_CHECK_EVERY = 4  # Krylov steps between two looks at the small problem


def model_step(values, gradient, curvature, radius, floor):
    """Step in the eigenbasis of a Hessian, shape (k,).

    Parameters
    ----------
    values : ndarray of shape (k,)
        Eigenvalues in increasing order.
    gradient : ndarray of shape (k,)
        Components of the gradient along the eigenvectors.
    curvature : {"drop", "modify", "trust"}
        ``"modify"`` (and ``"drop"``, whose Hessian has no negative eigenvalue to begin with): every
        eigenvalue is replaced by its absolute value. ``"trust"``: the minimizer of the quadratic
        model in the ball of the given radius if an eigenvalue is negative (Moré and Sorensen,
        1983), and the Newton step if none is.
    radius : float
        Radius of the ball.
    floor : float
        Smallest curvature that a step divides by.

    Returns
    -------
    ndarray of shape (k,)
        p with gradientᵀp < 0 unless the gradient vanishes.
    """
    if curvature != "trust" or values[0] >= floor:
        return -gradient / np.maximum(np.abs(values), floor)
    # The smallest shift that makes the Hessian positive definite; a larger one, a shorter step.
    least, reach = floor - values[0], np.linalg.norm(gradient) / radius
    if reach < 1e-6 * least or values[0] + least < 0.5 * floor:  # much would be rounded away
        values, least, reach = (values - values[0]) + floor, 0.0, 2.0 * reach
    p = -gradient / (values + least)
    missing = radius**2 - p @ p
    if missing >= 0:  # the "hard case": go on along the eigenvector of the most negative curvature
        p[0] += np.copysign(np.sqrt(missing + p[0] ** 2) - abs(p[0]), p[0])
        return p

    def excess(shift):
        return 1.0 / radius - 1.0 / np.linalg.norm(gradient / (values + shift))

    return -gradient / (values + brentq(excess, least, least + reach, rtol=1e-10))


def dense_direction(hessian, gradient, curvature, radius, floor):
    """Step for a dense Hessian: Cholesky where it is positive definite, else `model_step`.

    Parameters
    ----------
    hessian : ndarray of shape (d, d)
    gradient : ndarray of shape (d,)
    curvature, radius, floor
        See `model_step`.

    Returns
    -------
    direction : ndarray of shape (d,)
    negative : bool
        Whether an eigenvalue was found negative.
    """
    try:
        factor = cholesky(hessian, lower=True, check_finite=False)
        # The squared diagonal bounds the lowest eigenvalue from above; rounding can hide a zero.
        if np.diag(factor).min() ** 2 >= floor:
            return -cho_solve((factor, True), gradient, check_finite=False), False
    except LinAlgError:
        pass
    # Line 6 of the chapter's algorithm, where the Hessian is indefinite; the step is line 7.
    values, vectors = eigh(hessian, check_finite=False)
    step = model_step(values, vectors.T @ gradient, curvature, radius, floor)
    return vectors @ step, bool(values[0] < 0)


def krylov_direction(product, gradient, curvature, radius, floor, tol, max_iter):
    """Step in the Krylov space of the gradient, from products with the Hessian.

    The Lanczos process turns the Hessian into a tridiagonal matrix T on an orthonormal basis of
    span{g, Hg, H²g, …}; the step is `model_step` for T. Where T is positive definite this is the
    iterate of conjugate gradients, with ``"trust"`` that of Gould, Lucidi, Roma and Toint (1999).

    Parameters
    ----------
    product : callable
        From a vector to the Hessian times it.
    gradient : ndarray of shape (d,)
    curvature, radius, floor
        See `model_step`.
    tol : float
        Stop when the residual of the linear system is below tol times the norm of the gradient.
    max_iter : int
        Largest number of products.

    Returns
    -------
    direction : ndarray of shape (d,)
    negative : bool
        Whether an eigenvalue of T was negative.
    products : int
    """
    norm = np.linalg.norm(gradient)
    for values, vectors, basis, last in lanczos(product, gradient, max_iter):  # noqa: B007 (used after the loop)
        step = model_step(values, norm * vectors[0], curvature, radius, floor)
        if last * abs(vectors[-1] @ step) <= tol * norm:
            break
    return (vectors @ step) @ basis, bool(values[0] < 0), len(basis)


def lanczos(product, start, max_iter):
    """Eigenpairs of a symmetric operator on growing Krylov spaces, by the Lanczos process.

    Every new vector is made orthogonal to all before it, which costs O(k d) and keeps copies of
    the same eigenvalue away.

    Parameters
    ----------
    product : callable
        From a vector to the operator times it.
    start : ndarray of shape (d,)
        Not zero.
    max_iter : int
        Largest number of products.

    Yields
    ------
    values : ndarray of shape (k,)
        Eigenvalues of the tridiagonal matrix T, increasing.
    vectors : ndarray of shape (k, k)
        Its eigenvectors, as columns.
    basis : ndarray of shape (k, d)
        Orthonormal rows; the first is start/‖start‖.
    last : float
        Next off-diagonal entry of T: 0 where the space holds its own image.
    """
    max_iter = min(max_iter, start.size)
    basis = np.empty((max_iter, start.size))
    diagonal, beside = [], []
    vector, scale = start / np.linalg.norm(start), 0.0
    for k in range(1, max_iter + 1):
        basis[k - 1] = vector
        vector = product(vector)
        diagonal.append(vector @ basis[k - 1])
        for _ in range(2):  # twice is enough (Kahan and Parlett)
            vector -= (basis[:k] @ vector) @ basis[:k]
        last = float(np.linalg.norm(vector))
        scale = max(scale, abs(diagonal[-1]), last)
        done = k == max_iter or last <= 1e-14 * scale
        if done or k % _CHECK_EVERY == 0:
            yield *eigh_tridiagonal(diagonal, beside), basis[:k], last
        if done:
            return
        beside.append(last)
        vector /= last


def most_negative(hessian, start, max_iter, floor):
    """A direction of negative curvature, if there is one below −floor.

    Parameters
    ----------
    hessian : ndarray of shape (d, d), or callable
        The Hessian, or its products with vectors.
    start : ndarray of shape (d,)
        Start of the Lanczos process; not used with a dense Hessian.
    max_iter : int
        Largest number of products.
    floor : float

    Returns
    -------
    ndarray of shape (d,) or None
        Eigenvector of the lowest eigenvalue, of length 1 (with a callable: as far as the process
        found it).
    """
    if callable(hessian):
        for values, vectors, basis, _ in lanczos(hessian, start, max_iter):
            if values[0] < -floor:
                return vectors[:, 0] @ basis
        return None
    try:
        cholesky(hessian + floor * np.eye(start.size), lower=True, check_finite=False)
        return None
    except LinAlgError:
        return eigh(hessian, subset_by_index=[0, 0], check_finite=False)[1][:, 0]
