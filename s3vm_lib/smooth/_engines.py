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

from s3vm_lib.losses import (
    labeled_derivative,
    labeled_value,
    sigmoid,
    unlabeled_derivative,
    unlabeled_value,
)
from s3vm_lib.utils.jit import as_written, njit

CONVERGED, MAX_ITER, NO_STEP = _STATUS = "converged", "max_iter", "no_step"
ARMIJO, CURVATURE, TRIALS = 1e-4, 0.9, 30  # constants of the conditions, and of the search
_SUMS = {"reassoc", "contract", "nsz"}  # in which order a sum is taken


class Minimum(NamedTuple):
    """What an engine returns."""

    x: np.ndarray  # last point
    value: float  # function value there
    gradient: np.ndarray  # gradient there
    n_iter: int
    n_evaluations: int
    status: str  # "converged", "max_iter" or "no_step" (no acceptable step along the direction)


@njit
def judged(step, low, high, slope, value, value_new, slope_new):
    """Return whether a step meets both conditions; if not, the bracket and the next step.

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

    Returns
    -------
    accepted : bool
    low, high, step : float
    """
    if not value_new <= value + ARMIJO * step * slope:
        high = step
        # Parabola with the value and slope at 0 and the value here.
        trial = -0.5 * slope * (step * step) / (value_new - value - slope * step)
    elif slope_new < CURVATURE * slope:
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


def wolfe_step(function, x, value, gradient, direction, step):
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

    Returns
    -------
    x, value, gradient, evaluations
        The new point; x is None where no step was found.
    """
    slope = gradient @ direction
    low, high = 0.0, np.inf
    judge = as_written(judged)  # once per evaluation of the function: not worth compiling
    for evaluations in range(1, TRIALS + 1):
        x_new = x + step * direction
        value_new, gradient_new = function(x_new)
        found, low, high, step = judge(
            float(step), low, high, float(slope), float(value), float(value_new),
            float(gradient_new @ direction),
        )  # fmt: skip
        if found:
            return x_new, value_new, gradient_new, evaluations
    return None, value, gradient, evaluations


def bfgs_update(H, s, z):
    """Update the inverse Hessian by (7): H⁺ = (I − ρszᵀ) H (I − ρzsᵀ) + ρssᵀ with ρ = 1/zᵀs.

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
    """Return the product H·gradient of L-BFGS, from the last pairs (s, z) alone, in O(m d).

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
    """Run BFGS with a dense inverse Hessian, H₀ = (sᵀz/zᵀz) I set after the first step.

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
    """Run L-BFGS: the inverse Hessian is a product over the last ``memory`` steps (`two_loop`).

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
    """Run the loop that BFGS and L-BFGS share: lines 4-9 of Algorithm 1."""
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
    """Run SciPy's L-BFGS-B without bounds, as the authors did; same parameters.

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


# --- L-BFGS on dense features as one compiled loop ------------------------------------------------

# On small sets a step of an engine in Python costs many times its arithmetic. Here objective, line
# search and recursion are compiled together, and Python is left once per stage.


@njit(fastmath=_SUMS)
def dot(a, b):
    """Return aᵀb."""
    total = 0.0
    for j in range(b.size):
        total += a[j] * b[j]
    return total


@njit
def add_losses(
    Z, w, shift, t, weight, codes, loss_p, strength, sharpness, value, gradient, share_gradient
):
    """Add the losses of some rows to ``value`` and Zᵀa to ``gradient``: one pass over Z.

    Parameters
    ----------
    Z : ndarray of float64 or float32, shape (m, d)
        The rows; their outputs are f = Zw + shift, in double precision.
    w : ndarray of float64, shape (d,)
    shift : float
    t, weight : ndarrays of shape (m,)
        See `losses_and_slopes`.
    codes, loss_p : tuple
        Codes and parameters of the labeled and the unlabeled loss.
    strength : float
        Factor of the unlabeled losses.
    sharpness : float
        κ of `SharePenalty`; with 0 the share is left out.
    value : float
    gradient, share_gradient : ndarrays of float64, shape (d,)
        Written: Zᵀa is added, with the slopes a of the losses, and likewise those of the share.

    Returns
    -------
    value, total : float
        ``value`` plus the losses, and Σa.
    share, share_total : float
        The smooth share of positive outputs, and the sum of its slopes.
    """
    total, share, share_total = 0.0, 0.0, 0.0
    for i in range(t.size):
        # In double precision, whatever the precision of Z.
        f = shift + dot(Z[i], w)
        if t[i] != 0.0:
            loss = labeled_value(codes[0], t[i], f, loss_p[0])
            slope = labeled_derivative(codes[0], t[i], f, loss_p[0])
            factor = weight[i]
        else:
            loss = unlabeled_value(codes[1], f, loss_p[1])
            slope = unlabeled_derivative(codes[1], f, loss_p[1])
            factor = strength * weight[i]
        value += factor * loss
        slope *= factor
        total += slope
        # Beyond the margin the slope is 0 and the row need not be read again.
        if slope != 0.0:
            for j in range(w.size):
                gradient[j] += slope * Z[i, j]
        if sharpness != 0.0 and t[i] == 0.0:
            positive = sigmoid(sharpness * f)
            slope = sharpness * weight[i] * positive * (1.0 - positive)
            share += weight[i] * positive
            share_total += slope
            if slope != 0.0:
                for j in range(w.size):
                    share_gradient[j] += slope * Z[i, j]
    return value, total, share, share_total


@njit
def value_and_gradient(
    x, Z, mean, t, weight, codes, loss_p, strength, lam, offset, penalty, gradient
):
    """Return F_α at x, as in `ScaledObjective`, by one pass over Z; write the gradient.

    The offset is the last entry of x where ``offset`` is NaN; ``penalty`` holds the ``numbers()``
    of a `SharePenalty`, zeros where there is none.
    """
    d = Z.shape[1]
    w, b, value = x[:d], offset, lam * dot(x, x[:d])
    if np.isnan(offset):
        b = x[d]
    for j in range(d):
        gradient[j] = 2.0 * lam * w[j]
    # Features are centered by one number for all outputs: Z itself stays as it is.
    shift = b - dot(w, mean)
    sharpness, rho, multiplier, low, high = penalty
    share_gradient = np.zeros(d if sharpness != 0.0 else 0)
    value, total, share, share_total = add_losses(
        Z, w, shift, t, weight, codes, loss_p, strength, sharpness, value, gradient, share_gradient
    )
    if sharpness != 0.0:
        # (12): the force that pulls the share into its interval.
        moved = share + multiplier / rho
        force = rho * (moved - min(max(moved, low), high))
        value += 0.5 * force**2 / rho
        total += force * share_total
        for j in range(d):
            gradient[j] += force * share_gradient[j]
    for j in range(mean.size):
        gradient[j] -= total * mean[j]
    if np.isnan(offset):
        gradient[d] = total
    return value


@njit
def descended(x, problem, tol, ftol, max_iter, memory):
    """Run L-BFGS from x, which becomes the minimizer.

    Parameters
    ----------
    x : ndarray of shape (d,)
    problem : tuple
        What `value_and_gradient` takes between x and the gradient.
    tol, ftol, max_iter, memory
        As in `minimize_lbfgs`.

    Returns
    -------
    value : float
    gradient : ndarray of shape (d,)
    n_iter, n_evaluations, status : int
        The status as an index of `_STATUS`.
    """
    m, d = min(memory, max_iter), x.size
    S, Y, rho, share = np.empty((m, d)), np.empty((m, d)), np.empty(m), np.empty(m)
    q, x_new, gradient_new = np.empty(d), np.empty(d), np.empty(d)
    gradient = np.empty(d)
    value = value_and_gradient(x, *problem, gradient)
    n_iter, n_evaluations = 0, 1
    # The pairs (step, change of the gradient) are rows of S and Y, the oldest is overwritten.
    while largest(gradient) > tol:
        if n_iter == max_iter:
            return value, gradient, n_iter, n_evaluations, 1
        direction(gradient, S, Y, rho, share, n_iter, q)
        step, low, high, found = 1.0, 0.0, np.inf, False
        if n_iter == 0:
            step = min(1.0, 1.0 / np.sqrt(dot(gradient, gradient)))
        # Shorten or lengthen the step until it meets Armijo's and the curvature condition.
        along, value_new = dot(gradient, q), value
        for _ in range(TRIALS):
            for j in range(d):
                x_new[j] = x[j] + step * q[j]
            value_new = value_and_gradient(x_new, *problem, gradient_new)
            n_evaluations += 1
            found, low, high, step = judged(
                step, low, high, along, value, value_new, dot(gradient_new, q)
            )
            if found:
                break
        if not found:
            return value, gradient, n_iter, n_evaluations, 2
        row = n_iter % m
        for j in range(d):
            S[row, j] = x_new[j] - x[j]
            Y[row, j] = gradient_new[j] - gradient[j]
            x[j] = x_new[j]
            gradient[j] = gradient_new[j]
        rho[row] = 1.0 / dot(S[row], Y[row])  # positive, by the curvature condition
        decrease = value - value_new
        value = value_new
        n_iter += 1
        if decrease <= ftol * max(1.0, abs(value)):
            break
    return value, gradient, n_iter, n_evaluations, 0


@njit
def largest(a):
    """Return the largest modulus, 0 of nothing."""
    found = 0.0
    for j in range(a.size):
        found = max(found, abs(a[j]))
    return found


@njit
def direction(gradient, S, Y, rho, share, n_iter, q):
    """Write −H·gradient by the two loops of `two_loop` to q; pairs are kept in a ring."""
    m, d = S.shape
    first = max(0, n_iter - m)
    for j in range(d):
        q[j] = -gradient[j]
    # From the newest pair to the oldest, then H₀ of the newest, then back.
    for k in range(n_iter - 1, first - 1, -1):
        row = k % m
        share[row] = rho[row] * dot(S[row], q)
        for j in range(d):
            q[j] -= share[row] * Y[row, j]
    if n_iter > 0:
        row = (n_iter - 1) % m
        scale = 1.0 / (rho[row] * dot(Y[row], Y[row]))
        for j in range(d):
            q[j] *= scale
    for k in range(first, n_iter):
        row = k % m
        factor = share[row] - rho[row] * dot(Y[row], q)
        for j in range(d):
            q[j] += factor * S[row, j]


def minimize_dense(function, arrays, x, tol=1e-5, ftol=1e-9, max_iter=500, memory=50):
    """Run `minimize_lbfgs` on a `ScaledObjective`, compiled.

    Parameters
    ----------
    function : ScaledObjective
    arrays : tuple of ndarray
        What ``arrays()`` of its coordinates returns.
    x, tol, ftol, max_iter, memory
        As in `minimize_lbfgs`.

    Returns
    -------
    Minimum
    """
    x, codes, offset = x.astype(np.float64), function.codes, function.offset
    problem = (
        *arrays,
        function.t,
        function.weight,
        (codes[0], codes[2]),
        (float(codes[1]), float(codes[3])),
        float(function.strength),
        float(function.lam),
        np.nan if offset is None else float(offset),
        (0.0,) * 5 if function.share is None else function.share.numbers(),
    )
    ends = float(tol), float(ftol), max_iter, memory
    value, gradient, *counts, status = descended(x, problem, *ends)
    return Minimum(x, value, gradient, *counts, _STATUS[status])
