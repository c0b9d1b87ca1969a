"""L-BFGS on dense features as one compiled loop: what `minimize_lbfgs` does, call by call.

On small sets a step of an engine in Python costs many times its arithmetic. Here objective, line
search and recursion are compiled together, and Python is left once per stage.
"""

import numpy as np

from s3vm_lib.losses import (
    labeled_derivative,
    labeled_value,
    sigmoid,
    unlabeled_derivative,
    unlabeled_value,
)
from s3vm_lib.smooth._engines import (
    ARMIJO,
    CONVERGED,
    CURVATURE,
    MAX_ITER,
    NO_STEP,
    TRIALS,
    Minimum,
    judged,
)
from s3vm_lib.utils.jit import njit

_STATUS = (CONVERGED, MAX_ITER, NO_STEP)
_SUMS = {"reassoc", "contract", "nsz"}  # in which order a sum is taken


@njit(fastmath=_SUMS)
def dot(a, b):
    """aᵀb."""
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
    """F_α at x, as in `ScaledObjective`, with one pass over Z; the gradient is written.

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
    """L-BFGS from x, which becomes the minimizer.

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
                step, low, high, along, value, value_new, dot(gradient_new, q), ARMIJO, CURVATURE
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
    """The largest modulus, 0 of nothing."""
    found = 0.0
    for j in range(a.size):
        found = max(found, abs(a[j]))
    return found


@njit
def direction(gradient, S, Y, rho, share, n_iter, q):
    """−H·gradient by the two loops of `two_loop`, written to q; pairs are kept in a ring."""
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
    """`minimize_lbfgs` of a `ScaledObjective`, compiled.

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
