"""Quasi-Newton engines: BFGS, the L-BFGS two-loop recursion, and SciPy's L-BFGS-B.

All three minimize a smooth function given as ``function(x) -> (value, gradient)`` under one
stopping rule: the largest gradient entry is at most ``tol``, or an iteration lowers the value by
at most ``ftol`` relative to max(1, the value).
"""

import math
from collections import deque
from typing import NamedTuple

import numpy as np
from scipy.optimize import fmin_l_bfgs_b

from s3vm_lib.utils.jit import as_written, njit

CONVERGED, MAX_ITER, NO_STEP = "converged", "max_iter", "no_step"
ARMIJO, CURVATURE, TRIALS = 1e-4, 0.9, 30  # constants of the conditions, and of the search


class Minimum(NamedTuple):
    """What an engine returns."""

    x: np.ndarray  # last point
    value: float  # function value there
    gradient: np.ndarray  # gradient there
    n_iter: int
    n_evaluations: int
    status: str  # "converged", "max_iter" or "no_step" (no acceptable step along the direction)


@njit
def judged(step, low, high, slope, value, value_new, slope_new, c1=ARMIJO, c2=CURVATURE):
    """Whether a step meets both conditions; otherwise the bracket that it leaves, and the next one.

    The bracket (low, high) always holds such a step: low is too short (the slope there is still
    steep), high too long (the value there is not low enough). The next trial is the minimizer of
    the parabola through the known values, kept away from the ends of the bracket.

    Parameters
    ----------
    step, low, high : float
        The step that was tried, and the bracket.
    slope, value : float
        Directional derivative and value where the search began.
    value_new, slope_new : float
        Those at the step.
    c1, c2 : float
        Constants of the two conditions, 0 < c1 < c2 < 1.

    Returns
    -------
    accepted : bool
    low, high, step : float
    """
    if not value_new <= value + c1 * step * slope:
        high = step
        # Parabola with the value and slope at 0 and the value here.
        trial = -0.5 * slope * (step * step) / (value_new - value - slope * step)
    elif slope_new < c2 * slope:
        low = step
        # Parabola with the slopes at 0 and here, if it has a minimum.
        change = slope_new - slope
        trial = -step * slope / change if change > 0 else math.inf
    else:
        return True, low, high, step
    if math.isnan(trial):
        trial = 0.0
    if math.isinf(high):
        step = min(max(trial, 2.0 * low), 10.0 * low)
    else:
        step = min(max(trial, low + 0.1 * (high - low)), high - 0.1 * (high - low))
    return False, low, high, step


def wolfe_step(
    function, x, value, gradient, direction, step, c1=ARMIJO, c2=CURVATURE, max_evaluations=TRIALS
):
    """Find a step that meets the Armijo and the curvature condition along a descent direction.

    Parameters
    ----------
    function : callable
        ``function(x) -> (value, gradient)``.
    x, value, gradient : ndarray, float, ndarray
        Current point, its value and gradient.
    direction : ndarray
        Direction with ``gradient @ direction < 0``.
    step : float
        First trial.
    c1, c2 : float, default=1e-4 and 0.9
        Constants of the two conditions, 0 < c1 < c2 < 1.
    max_evaluations : int, default=30
        Number of trials after which the search gives up.

    Returns
    -------
    x, value, gradient, evaluations
        The new point; x is None where no step was found.
    """
    slope = gradient @ direction
    low, high = 0.0, np.inf
    judge = as_written(judged)  # once per evaluation of the function: not worth compiling
    for evaluations in range(1, max_evaluations + 1):
        x_new = x + step * direction
        value_new, gradient_new = function(x_new)
        found, low, high, step = judge(
            float(step), low, high, float(slope), float(value), float(value_new),
            float(gradient_new @ direction), c1, c2,
        )  # fmt: skip
        if found:
            return x_new, value_new, gradient_new, evaluations
    return None, value, gradient, evaluations


def bfgs_update(H, s, z):
    """Inverse-Hessian update (7): H⁺ = (I − ρszᵀ) H (I − ρzsᵀ) + ρssᵀ with ρ = 1/zᵀs.

    Parameters
    ----------
    H : ndarray of shape (d, d)
        Symmetric positive definite approximation of the inverse Hessian.
    s, z : ndarrays of shape (d,)
        Step and change of the gradient, with zᵀs > 0.

    Returns
    -------
    ndarray of shape (d, d)
        Symmetric, positive definite, with H⁺z = s.
    """
    rho = 1.0 / (z @ s)
    Hz = H @ z
    # (7) multiplied out: O(d²) instead of the O(d³) of the product of three matrices.
    crossed = rho * np.outer(s, Hz)
    return H - crossed - crossed.T + (rho**2 * (z @ Hz) + rho) * np.outer(s, s)


def two_loop(gradient, pairs):
    """The product H·gradient of L-BFGS, from the last pairs (s, z) alone, in O(m d).

    Unrolls (7) from the newest pair to the oldest, applies H₀ = (sᵀz/zᵀz) I of the newest pair,
    and rolls back (Nocedal and Wright, *Numerical Optimization*, Algorithm 7.4).

    Parameters
    ----------
    gradient : ndarray of shape (d,)
    pairs : sequence of (s, z, rho)
        Steps, gradient changes and 1/zᵀs, oldest first. Without any, H is the identity.

    Returns
    -------
    ndarray of shape (d,)
    """
    # The numbers are the lines of the chapter's two-loop recursion. 1
    q = gradient.copy()
    shares = []
    # 2: from the newest pair to the oldest.
    for s, z, rho in reversed(pairs):
        shares.append(rho * (s @ q))
        q -= shares[-1] * z
    # 3: χ from the newest pair.
    if pairs:
        _, z, rho = pairs[-1]
        q /= rho * (z @ z)
    # 4: from the oldest to the newest.
    for (s, z, rho), share in zip(pairs, reversed(shares), strict=True):
        q += (share - rho * (z @ q)) * s
    return q


def minimize_bfgs(function, x, tol=1e-5, ftol=1e-9, max_iter=500, memory=None):
    """BFGS with a dense inverse Hessian, H₀ = (sᵀz/zᵀz) I set after the first step.

    Parameters
    ----------
    function : callable
        ``function(x) -> (value, gradient)``.
    x : ndarray of shape (d,)
        Start.
    tol, ftol : float
        Stopping rule (see the module).
    max_iter : int, default=500
        Largest number of iterations.
    memory : None
        Not used; present so that all engines are called alike.

    Returns
    -------
    Minimum
    """
    H = None

    def direction(gradient):
        return -gradient if H is None else -(H @ gradient)

    def update(s, z):
        nonlocal H
        if H is None:
            H = (s @ z) / (z @ z) * np.eye(s.size)
        H = bfgs_update(H, s, z)

    return _descend(function, x, direction, update, tol, ftol, max_iter)


def minimize_lbfgs(function, x, tol=1e-5, ftol=1e-9, max_iter=500, memory=50):
    """L-BFGS: the inverse Hessian is a product over the last ``memory`` steps (`two_loop`).

    Parameters
    ----------
    function : callable
        ``function(x) -> (value, gradient)``.
    x : ndarray of shape (d,)
        Start.
    tol, ftol : float
        Stopping rule (see the module).
    max_iter : int, default=500
        Largest number of iterations.
    memory : int, default=50
        Number m of pairs (s, z) that are kept.

    Returns
    -------
    Minimum
    """
    pairs = deque(maxlen=memory)
    return _descend(
        function,
        x,
        lambda gradient: -two_loop(gradient, pairs),
        lambda s, z: pairs.append((s, z, 1.0 / (z @ s))),
        tol,
        ftol,
        max_iter,
    )


def _descend(function, x, direction, update, tol, ftol, max_iter):
    """The loop that BFGS and L-BFGS share: lines 4-9 of Algorithm 1."""
    value, gradient = function(x)
    n_iter, n_evaluations = 0, 1
    # Lines 4 to 9 of the chapter's algorithm.
    while np.abs(gradient).max(initial=0.0) > tol:
        if n_iter == max_iter:
            return Minimum(x, value, gradient, n_iter, n_evaluations, MAX_ITER)
        # Before anything is known of the curvature, a first step of length one at most.
        first = min(1.0, 1.0 / np.linalg.norm(gradient)) if n_iter == 0 else 1.0
        x_new, value_new, gradient_new, evaluations = wolfe_step(
            function, x, value, gradient, direction(gradient), first
        )
        n_evaluations += evaluations
        if x_new is None:
            return Minimum(x, value, gradient, n_iter, n_evaluations, NO_STEP)
        # The curvature condition makes zᵀs positive, so that H stays positive definite.
        update(x_new - x, gradient_new - gradient)
        decrease = value - value_new
        x, value, gradient = x_new, value_new, gradient_new
        n_iter += 1
        if decrease <= ftol * max(1.0, abs(value)):
            break
    return Minimum(x, value, gradient, n_iter, n_evaluations, CONVERGED)


def minimize_scipy(function, x, tol=1e-5, ftol=1e-9, max_iter=500, memory=50):
    """SciPy's L-BFGS-B without bounds, which is what the authors used; same parameters.

    Returns
    -------
    Minimum
    """
    x, value, info = fmin_l_bfgs_b(
        function,
        x,
        m=memory,
        pgtol=tol,
        factr=ftol / np.finfo(float).eps,
        maxiter=max_iter,
        maxfun=20 * max_iter + 20,
    )
    status = {0: CONVERGED, 1: MAX_ITER}.get(info["warnflag"], NO_STEP)
    return Minimum(x, float(value), info["grad"], info["nit"], info["funcalls"], status)


ENGINES = {"scipy": minimize_scipy, "lbfgs": minimize_lbfgs, "bfgs": minimize_bfgs}
