"""Bounds that need no solve: what closed rows add to D at a given β, one of them or all together.

A step from β that stays in the domain of the child's dual bounds the child from below before it is
solved. A row that opens moves its own β_j and, where Σβ = 0, that of a `reference`.
"""

import math
from typing import NamedTuple

import numpy as np

from s3vm_lib.losses import dual_cost, labeled_derivative, labeled_value
from s3vm_lib.smo import BIG, slope_up
from s3vm_lib.utils.jit import njit

_SWEEPS = 10  # of the coordinate ascent in `joint_gain`


class Opening(NamedTuple):
    """What closed rows can add to D at a given β, see `joint_gain`."""

    push: np.ndarray  # slope of D in α_j with the label −1 and with +1, (m, 2)
    cap: np.ndarray  # largest α_j, (m, 2)
    total: float  # largest Σ_j α_j
    inner: np.ndarray  # inner products of the directions, (m, m)


@njit
def push_and_cap(code, p, weight, y, f):
    """Return (p, cap) with −φ(β_j) − f β_j ≥ p α for 0 ≤ α = ``|β_j|`` ≤ cap and one sign of β_j.

    Where φ is piecewise quadratic its slope at 0 counts: α(1 − y f) for the hinges, for example;
    the quadratic part is left to `s3vm_lib.losses.dual_ridge`. The left side of any loss is
    concave, 0 at 0, and ℓ c at α = c d with d the size of the derivative of ℓ: for the logistic
    losses the chord is taken, which lies below it.
    """
    lo, _, hi, s1, s2 = dual_cost(code, p, y, weight)
    # The dual cost of a logistic loss is no line: its chord is a bound.
    if math.isnan(lo):
        slope = max(abs(labeled_derivative(code, y, f, p)), 1e-300)
        return labeled_value(code, y, f, p) / slope, weight * slope
    if hi > 0.0 and (lo == 0.0 or -s2 - f > s1 + f):
        return -s2 - f, min(hi, BIG)
    return s1 + f, min(-lo, BIG)


@njit
def reference(c, beta, F):
    """Return weights q of the rows between two breakpoints, their A − F, and how far they can move.

    Where Σβ = 0, another β has to change with that of a row that opens. The rows
    strictly between two breakpoints
    together can move by the sum of their distances to them, in proportion to these distances, and
    D changes along them at the rate A − F, as a smooth function would.
    """
    q, rate, total = np.zeros(beta.size), 0.0, 0.0
    for i in range(beta.size):
        low = c.mid[i] if beta[i] >= c.mid[i] else c.lo[i]
        high = c.mid[i] if beta[i] <= c.mid[i] else c.hi[i]
        # How far β_i can move to either side inside its piece.
        q[i] = max(0.0, min(beta[i] - low, high - beta[i]))
        if q[i] > 0.0:
            rate += q[i] * (slope_up(c, i, beta[i]) - F[i])
            total += q[i]
    if total == 0.0:
        return q, 0.0, 0.0
    return q / total, rate / total, total


@njit
def open_rows(G, ridges, code, p, weight, f, Kq, square, rows, push, cap, inner):
    """Write push, cap and inner products of the directions e_j − q, from the outputs f."""
    for k in range(rows.size):
        j = rows[k]
        for side in range(2):
            y = 2.0 * side - 1.0
            push[k, side], cap[k, side] = push_and_cap(code[j], p[j], weight[j], y, f[j])
        for i in range(rows.size):
            inner[k, i] = G[j, rows[i]] - Kq[j] - Kq[rows[i]] + square
        inner[k, k] += ridges[j]


@njit
def single_gains(push, cap, total, inner):
    """Return the largest α p − ½ α² M_jj over 0 ≤ α ≤ cap, for either label: shape (m, 2)."""
    gains = np.empty(push.shape)
    for j in range(push.shape[0]):
        for side in range(2):
            gains[j, side] = 0.0
            if push[j, side] > 0.0:
                alpha = min(push[j, side] / max(inner[j, j], 1e-300), cap[j, side], total)
                gains[j, side] = alpha * (push[j, side] - 0.5 * inner[j, j] * alpha)
    return gains


@njit
def joint_gain(push, cap, total, inner, flat, row, side):
    """Return by how much D rises at least when all rows open, whatever their labels.

    Let row j add y_j α_j to β (and take it from the reference), where an adversary chooses the
    label y_j. With p_j the push and M the inner products, D changes by

        Σ_j α_j p_j(y_j) − ½ Σ_jk y_j y_k α_j α_k M_jk
            ≥ Σ_j α_j min_y p_j(y) − ½ Σ_jk α_j α_k |M_jk|,

    and a few rounds of coordinate ascent make the right side large. A row that may choose the
    flat piece is not charged for more than that costs, ``flat[j]``. For one ``row``, if not −1,
    the decision is given by ``side``: 0 for the label −1, 1 for +1, and 2 for the flat piece,
    whose cost is then part of the gain.
    """
    m = flat.size
    alpha, sums, low, top = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
    # What each undecided row pushes at least (low) and may carry at most (top).
    for j in range(m):
        if j == row and side < 2:
            low[j], top[j] = push[j, side], cap[j, side]
        elif j != row:
            low[j] = min(push[j, 0], push[j, 1])
            if low[j] > 0.0:
                top[j] = min(cap[j, 0], cap[j, 1], flat[j] / low[j])
        if low[j] <= 0.0:
            top[j] = 0.0
    # Coordinate ascent on a bound from below of the joint gain; `total` limits the sum.
    used = 0.0
    for _ in range(_SWEEPS):
        largest = 0.0
        for j in range(m):
            if top[j] > 0.0:
                most = min(top[j], total - used + alpha[j])
                step = (low[j] - sums[j]) / max(inner[j, j], 1e-300)
                step = min(max(alpha[j] + step, 0.0), most) - alpha[j]
                if step != 0.0:
                    largest = max(largest, abs(step) * inner[j, j])
                    alpha[j] += step
                    used += step
                    for k in range(m):
                        sums[k] += step * abs(inner[j, k])
        if largest < 1e-3:
            break
    # Any feasible point is a bound, whether the ascent has converged or not.
    gain = flat[row] if side == 2 else 0.0
    for j in range(m):
        gain += alpha[j] * (low[j] - 0.5 * sums[j])
    return gain
