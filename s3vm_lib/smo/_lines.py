"""Steps of many variables at once, for directions that pairs of variables follow too slowly.

SMO moves two variables by what the violation of the optimality conditions allows. Where (P) is flat
or nearly so along a direction of many variables, and the bounds are wide, it crawls from kink to
kink: its iterations grow like the width of the bounds. Exact minimization along the direction
takes one step, since (P) is convex and piecewise quadratic on a line.
"""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from s3vm_lib.gram import add_rows, fetch_rows

LARGEST_FACE = 500  # free variables; the factorization of more costs more than it saves


def line_minimum(costs, x, v, slope, curvature):
    """The step τ that minimizes slope·τ + ½ curvature·τ² + Σ_i φ_i(x_i + τv_i).

    Its derivative rises in between the kinks and jumps up at them: the minimum is where it changes
    sign, found by sorting the kinks. Without curvature this is a weighted order statistic.

    Parameters
    ----------
    costs : Costs
        Of the variables that move.
    x, v : ndarrays of shape (m,)
        Feasible point, up to rounding, and direction, v without zeros.
    slope, curvature : float
        Derivatives of the quadratic part at τ = 0; curvature ≥ 0.

    Returns
    -------
    float
        The minimizer nearest to 0 that keeps x + τv between its bounds, 0 where no other step does.
    """
    lo, mid, hi, s1, s2 = costs
    up = v > 0
    shortest = np.max((np.where(up, lo, hi) - x) / v)
    longest = np.min((np.where(up, hi, lo) - x) / v)
    if not shortest < longest:
        return 0.0
    kinks = (mid - x) / v
    order = np.argsort(kinks, kind="stable")
    kinks = kinks[order]
    steep = np.sum(np.abs(v) * np.maximum(np.abs(s1), np.abs(s2))) + abs(slope)
    rounding = 1e-14 * steep  # derivatives that rounding alone keeps from 0 are flat
    # Derivative without the curvature: pieces[k] holds between kinks k − 1 and k.
    jumps = np.cumsum((np.abs(v) * (s2 - s1))[order])
    pieces = slope + np.sum(v * np.where(up, s1, s2)) + np.concatenate([[0.0], jumps])
    ends = []
    for level in (-rounding, rounding):
        # The first kink to whose right the derivative exceeds the level, or beyond the last one.
        k = int(np.argmax(np.append(pieces[1:] + curvature * kinks > level, True)))
        tau = kinks[k] if k < kinks.size else np.inf
        if curvature > 0:
            tau = min(tau, (level - pieces[k]) / curvature)
        elif pieces[k] > level:
            tau = -np.inf
        ends.append(tau)
    return float(np.clip(np.clip(0.0, ends[0], ends[1]), shortest, longest))


def move(costs, x, v, step):
    """x + step·v, with kinks and bounds met exactly and Σx as it was."""
    lo, mid, hi, _, _ = costs
    new = np.clip(x + step * v, lo, hi)
    for part in (lo, mid, hi):
        new = np.where((part - x) / v == step, part, new)
    # What rounding leaves of Σx must not lift a variable off its kink.
    room = np.minimum(np.minimum(new - lo, hi - new), np.abs(new - mid))
    new[np.argmax(room)] -= new.sum() - x.sum()
    return new


def null_step(null, costs, beta):
    """Exact minimization of (P) along a direction that changes neither Kβ nor Σβ.

    With Kv = 0 and Σv = 0 only the costs change along β + τv: the minimum is a weighted order
    statistic of the kinks.

    Parameters
    ----------
    null : ndarray of shape (n,)
        Direction v.
    costs : Costs
    beta : ndarray of shape (n,)
        Feasible point, moved in place to the nearest minimizer on the line.

    Returns
    -------
    float
        The step τ.
    """
    moving = np.flatnonzero(null)
    c, x, v = costs.take(moving), beta[moving], null[moving]
    step = line_minimum(c, x, v, 0.0, 0.0)
    if step != 0:
        beta[moving] = move(c, x, v, step)
    return step


def face_step(cache, rows, costs, beta, F, A, B):
    """A Newton step on the free variables, those between their kinks and bounds, where A = B.

    Minimizes the quadratic that (P) is near β over Σp = 0, then (P) itself along p: where K is
    singular on the free variables the step goes as far as the costs allow.

    Parameters
    ----------
    cache, rows : RowCache, KernelRows
    costs : Costs
    beta, F : ndarrays of shape (n,)
        Feasible point and Kβ, both changed in place.
    A, B : ndarrays of shape (n,)
        Minus the slopes of φ to the right and to the left of beta.

    Returns
    -------
    bool
        True when the step met a kink or bound, so that another one is worthwhile.
    """
    free = np.flatnonzero(A == B)
    if not 2 < free.size <= min(LARGEST_FACE, cache.owner.size):
        return False
    fetch_rows(cache, rows, free)
    K = cache.values[np.ix_(cache.slot[free], free)].astype(float)
    gradient = F[free] - A[free]
    gradient -= gradient.mean()
    # Centered, K has no part along 1, and a gradient with Σg = 0 leads to a step with Σp = 0.
    means = K.mean(axis=0)
    centered = K - means - (means - means.mean())[:, None]
    precision = np.finfo(cache.values.dtype).eps
    centered.flat[:: free.size + 1] += 10 * free.size * precision * np.max(np.diagonal(K))
    try:
        factor = cho_factor(centered, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    p = -cho_solve(factor, gradient)
    p -= p.mean()
    moving = np.flatnonzero(p)
    if moving.size < 2 or not gradient @ p < 0:
        return False
    at, p = free[moving], p[moving]
    c, x = costs.take(at), beta[at]
    # The slopes of the costs at β are part of the piecewise-linear sum, not of the quadratic.
    step = line_minimum(c, x, p, F[at] @ p, max(p @ (K[np.ix_(moving, moving)] @ p), 0.0))
    if step <= 0:
        return False
    new = move(c, x, p, step)
    change = np.zeros(beta.size)
    change[at] = new - x
    add_rows(cache, rows, change, F)
    beta[at] = new
    crossed = np.sign(x - c.mid) != np.sign(new - c.mid)
    return bool(np.any(crossed | (new == c.lo) | (new == c.hi)))
