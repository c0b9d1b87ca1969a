"""The Gaussian loss on an interval: its convex envelope, its conjugate, and a dual ascent on both.

A row that is not labeled has the output f in [a, b] and the cost

    φ(f) = c exp(−s f²) + ½ q f².

With q ≥ 0 it is concave between two turning points ±e, and convex outside of them. Its convex
envelope on [a, b] follows φ from a to p, a straight line from p to r, and φ from r to b. A row with
c = 0 and q < 0 is concave everywhere. The remaining case, c > 0 and q < 0, is admitted only on
intervals on which φ is convex.
"""

import math
from typing import NamedTuple

import numpy as np

from s3vm_lib.losses import (  # isort: skip
    conjugate_curvature, labeled_conjugate, labeled_derivative, labeled_value, slope_piece,
    slope_range,
)  # fmt: skip
from s3vm_lib.utils.jit import njit

_HALVINGS = 80  # of an interval, at most: far below the distance of two numbers


LINE = np.dtype([(name, np.float64) for name in ("turn", "left", "right", "slope")])


class BoxCosts(NamedTuple):
    """The costs ψ_i of all rows."""

    code: np.ndarray  # of the labeled losses, (n,)
    p: np.ndarray  # their parameters, (n,)
    y: np.ndarray  # labels, 0 for rows with intervals
    weight: np.ndarray  # c_i; 0 for the row of the offset
    s: float  # of the Gaussian loss
    q: np.ndarray  # q in ``φ(f) = c exp(−s f²) + ½ q f²``
    low: np.ndarray  # ends of the intervals, (n,)
    high: np.ndarray
    bounded: np.ndarray  # of bool: the rows with intervals
    lines: np.ndarray  # of `LINE`: turning point e, and from p to r the line of the envelope


# --- One row --------------------------------------------------------------------------------------


@njit
def cost(c, s, q, f):
    """Return φ(f) = c exp(−s f²) + ½ q f²."""
    return c * math.exp(-s * f * f) + 0.5 * q * f * f


@njit
def cost_slope(c, s, q, f):
    """Return φ'(f)."""
    return (q - 2.0 * s * c * math.exp(-s * f * f)) * f


@njit
def cost_bend(c, s, q, f):
    """Return φ''(f)."""
    return c * (4.0 * s * s * f * f - 2.0 * s) * math.exp(-s * f * f) + q


@njit
def least_bend(c, s, a, b):
    """Return the least second derivative of c exp(−s f²) on [a, b].

    As a function of ``|f|`` it rises up to √(3/(2s)) and falls from there on towards 0, so that
    its least value is at the least or at the largest ``|f|``.
    """
    near = 0.0 if a < 0.0 < b else min(abs(a), abs(b))
    far = max(abs(a), abs(b))
    return min(cost_bend(c, s, 0.0, near), cost_bend(c, s, 0.0, far))


@njit
def turning_point(c, s, q):
    """Return e ≥ 0 with φ concave on [−e, e] and convex outside: 0 if convex, inf if concave."""
    if c == 0.0:
        return math.inf if q < 0.0 else 0.0
    if q < 0.0 or q >= 2.0 * s * c:
        return 0.0
    # φ'' rises from q − 2sc < 0 at 0 to q ≥ 0 at √(1/(2s)): bisection.
    low, high = 0.0, math.sqrt(0.5 / s)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if cost_bend(c, s, q, middle) < 0.0:
            low = middle
        else:
            high = middle
    return high


@njit
def slope_point(c, s, q, low, high, slope, scale, target):
    """Find f in [low, high] with scale·f + slope·φ'(f) = target, where the left side rises."""
    # The target may lie beyond an end.
    if scale * low + slope * cost_slope(c, s, q, low) >= target:
        return low
    if scale * high + slope * cost_slope(c, s, q, high) <= target:
        return high
    f = 0.5 * (low + high)
    for _ in range(_HALVINGS):
        miss = scale * f + slope * cost_slope(c, s, q, f) - target
        if miss > 0.0:
            high = f
        else:
            low = f
        # Newton's step, or the middle where that would leave the bracket.
        rate = scale + slope * cost_bend(c, s, q, f)
        step = f - miss / rate if rate > 0.0 else low
        if not low < step < high:
            step = 0.5 * (low + high)
        if abs(step - f) <= 1e-15 * (1.0 + abs(f)):
            return step
        f = step
    return f


@njit
def interval_conjugate(c, s, q, turn, a, b, slope):
    """Return the largest slope·f − φ(f) over f in [a, b].

    The maximum is at a or b, at a turning point, or where the derivative vanishes in a convex part
    of φ: where φ is concave, slope·f − φ(f) is convex and largest at an end.
    """
    best = max(slope * a - cost(c, s, q, a), slope * b - cost(c, s, q, b))
    for side in range(2):
        low, high = (max(a, turn), b) if side == 0 else (a, min(b, -turn))
        if low < high:
            f = slope_point(c, s, q, low, high, 1.0, 0.0, slope)
            best = max(best, slope * f - cost(c, s, q, f))
    return best


@njit
def _tangent(c, s, q, turn, a, b):
    """Return r in [max(a, e), b] where the line from (a, φ(a)) touches φ, or b if none does."""
    low, high, value = max(a, turn), b, cost(c, s, q, a)
    # At b the tangent still passes above (a, φ(a)): no earlier one goes through it.
    if cost(c, s, q, b) - value - cost_slope(c, s, q, b) * (b - a) >= 0.0:
        return b
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = cost(c, s, q, middle) - value - cost_slope(c, s, q, middle) * (middle - a)
        if above >= 0.0:
            low = middle
        else:
            high = middle
        if high - low <= 1e-15 * (1.0 + abs(high)):
            break
    return 0.5 * (low + high)


@njit
def envelope(c, s, q, turn, a, b):
    """Return (p, r, slope): the envelope is φ on [a, p] and [r, b] and a line in between.

    Without the interval the line would be horizontal and touch φ at ±g with φ'(g) = 0. An end
    between −g and g takes the place of the point of contact on its side.
    """
    if turn == 0.0 or a >= turn or b <= -turn:
        return a, a, 0.0
    # The minima ±wide of φ, if it has them: between them the envelope is flat.
    wide = math.sqrt(math.log(2.0 * s * c / q) / s) if q > 0.0 and c > 0.0 else math.inf
    p, r = a, b
    if a <= -wide and b >= wide:
        p, r = -wide, wide
    elif a > -wide:
        # From a the line leads to the convex part on the right, or to b.
        if b > turn:
            r = _tangent(c, s, q, turn, a, b)
        if r == b and a < -turn:  # the end b may be the one that is touched from the left
            p = -_tangent(c, s, q, turn, -b, -a)
    elif a < -turn:
        p = -_tangent(c, s, q, turn, -b, -a)
    if r <= p:
        return a, a, 0.0
    return p, r, (cost(c, s, q, r) - cost(c, s, q, p)) / (r - p)


@njit
def envelope_value(c, s, q, p, r, slope, f):
    """Return the convex envelope at f in [a, b]."""
    if p < f < r:
        return cost(c, s, q, p) + slope * (f - p)
    return cost(c, s, q, f)


@njit
def nearest_labeled(code, p, y, c, h, v):
    """Return the minimizer of (f − v)²/(2h) + c ℓ(y, f)."""
    slope = h * c * labeled_derivative(code, y, v, p)
    if slope == 0.0:
        return v
    # The minimizer lies between v and the point that the whole slope at v leads to.
    low, high = min(v, v - slope), max(v, v - slope)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if middle + h * c * labeled_derivative(code, y, middle, p) < v:
            low = middle
        else:
            high = middle
        if high - low <= 1e-15 * (1.0 + abs(high)):
            break
    return 0.5 * (low + high)


@njit
def in_domain(code, y, c, alpha):
    """Return the number nearest to alpha that is a slope of c ℓ(y, ·) somewhere."""
    least, most = slope_range(code, y)
    return min(max(alpha, c * least), c * most)


# --- All rows -------------------------------------------------------------------------------------


@njit
def set_envelopes(c):
    """Write the line of the envelope of each bounded row."""
    for i in range(c.weight.size):
        if c.bounded[i]:
            line = c.lines[i]
            line.turn = turning_point(c.weight[i], c.s, c.q[i])
            line.left, line.right, line.slope = envelope(
                c.weight[i], c.s, c.q[i], line.turn, c.low[i], c.high[i]
            )


@njit
def conjugates(c, alpha):
    """Return Σ ψ_i*(α_i): of the labeled losses, and of φ on the intervals."""
    total = 0.0
    for i in range(alpha.size):
        if c.bounded[i]:
            total += interval_conjugate(
                c.weight[i], c.s, c.q[i], c.lines[i].turn, c.low[i], c.high[i], alpha[i]
            )
        else:
            slope = alpha[i] / c.weight[i]
            total += c.weight[i] * labeled_conjugate(c.code[i], c.y[i], slope, c.p[i])
    return total


@njit
def nearest(c, i, h, v):
    """Return the minimizer of (f − v)²/(2h) + ψ_i(f), with the envelope of φ in place of φ."""
    weight, low, high, line = c.weight[i], c.low[i], c.high[i], c.lines[i]
    if not c.bounded[i]:
        return nearest_labeled(c.code[i], c.p[i], c.y[i], weight, h, v)
    # On the left part of φ, at an end of the line, on the line, or on the right part.
    if line.left > low:
        if v <= line.left + h * cost_slope(weight, c.s, c.q[i], line.left):
            return slope_point(weight, c.s, c.q[i], low, line.left, h, 1.0, v)
    elif line.left < line.right and v <= low + h * line.slope:
        return low
    if line.left < line.right and v - h * line.slope <= line.right:
        return min(max(v - h * line.slope, line.left), line.right)
    return slope_point(weight, c.s, c.q[i], line.right, high, h, 1.0, v)


@njit
def slope_at(c, i, f):
    """Return a slope of the envelope of the bounded row i at f in its interval."""
    line = c.lines[i]
    if line.left < line.right and line.left <= f <= line.right:
        return line.slope
    return cost_slope(c.weight[i], c.s, c.q[i], f)


@njit
def sweep(c, H, least_h, alpha, f):
    """Maximize D exactly over each α_i in turn, once; keep f = f0 − Hα, with H_ii ≥ least_h."""
    for i in range(alpha.size):
        # D is maximal in α_i where the proximal point of ψ_i is the output.
        h = max(H[i, i], least_h)
        v = f[i] + h * alpha[i]
        new = (v - nearest(c, i, h, v)) / h
        if not c.bounded[i]:
            new = in_domain(c.code[i], c.y[i], c.weight[i], new)
        change = new - alpha[i]
        if change != 0.0:
            alpha[i] = new
            for k in range(alpha.size):
                f[k] -= H[k, i] * change


@njit
def linearize(c, H, least_h, alpha, f, pattern):
    """Write the piece of every ψ_i that is nearest to (f_i, α_i) into ``pattern`` (5, n).

    Its rows are a point of the piece and the slope of ψ_i there, 1/ψ_i'' (0 at a kink or an end,
    infinite on a line), and the least and the largest slope of the piece.
    """
    for i in range(alpha.size):
        h = max(H[i, i], least_h)
        v = f[i] + h * alpha[i]
        point = nearest(c, i, h, v)
        # α_i, how f_i depends on it around there (``flex``), and the slopes of the piece.
        slope, flex, least, most = (v - point) / h, 0.0, -math.inf, math.inf
        if not c.bounded[i]:
            slope = in_domain(c.code[i], c.y[i], c.weight[i], slope)
            flex = conjugate_curvature(c.code[i], slope / c.weight[i], c.p[i], c.weight[i])
            least, most = slope_piece(c.code[i], c.y[i], slope)
            least, most = c.weight[i] * least, c.weight[i] * most
        elif point <= c.low[i]:
            most = slope_at(c, i, c.low[i])
        elif point >= c.high[i]:
            least = slope_at(c, i, c.high[i])
        elif c.lines[i].left < point < c.lines[i].right:
            flex = math.inf
        else:
            flex = 1.0 / max(cost_bend(c.weight[i], c.s, c.q[i], point), 1e-300)
        pattern[0, i], pattern[1, i], pattern[2, i] = point, slope, flex
        pattern[3, i], pattern[4, i] = least, most


@njit
def start_slopes(c, f, alpha):
    """Write α_i, a slope of ψ_i at f_i, which is first moved into its interval."""
    for i in range(alpha.size):
        if c.bounded[i]:
            alpha[i] = slope_at(c, i, min(max(f[i], c.low[i]), c.high[i]))
        else:
            alpha[i] = c.weight[i] * labeled_derivative(c.code[i], c.y[i], f[i], c.p[i])


@njit
def gaps(c, f):
    """Return by how much φ exceeds its envelope at the output of each row; 0 for labeled rows."""
    out = np.zeros(f.size)
    for i in range(f.size):
        if c.bounded[i]:
            # Outputs of an unfinished ascent may leave their interval.
            at, line = min(max(f[i], c.low[i]), c.high[i]), c.lines[i]
            under = envelope_value(c.weight[i], c.s, c.q[i], line.left, line.right, line.slope, at)
            out[i] = cost(c.weight[i], c.s, c.q[i], at) - under
    return out


@njit
def labeled_reach(code, p, y, limit):
    """Return the y·f below which ℓ(y, f) exceeds ``limit``, by bisection."""
    low, high = 1.0, 1.0
    # Double the distance until the loss is too large, then halve.
    while labeled_value(code, y, y * low, p) <= limit:
        low = 2.0 * low - 2.0 if low < 0.0 else low - 1.0
        if low < -1e12:
            return low
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if labeled_value(code, y, y * middle, p) > limit:
            low = middle
        else:
            high = middle
    return low
