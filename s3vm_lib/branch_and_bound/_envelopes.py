"""The Gaussian loss on an interval: its convex envelope, its conjugate, and a dual ascent on both.

A row that is not labeled has the output f in [a, b] and the cost

    φ(f) = c exp(−s f²) + ½ q f².

With q ≥ 0 it is concave between two turning points ±e, and convex outside of them. Its convex
envelope on [a, b] follows φ from a to p, a straight line from p to r, and φ from r to b. A row with
c = 0 and q < 0 is concave everywhere. The remaining case, c > 0 and q < 0, is admitted only on
intervals on which φ is convex.
"""

import math

import numpy as np

from s3vm_lib._numba import njit
from s3vm_lib.losses import (
    EPSILON_INSENSITIVE,
    HINGE,
    L1,
    MODIFIED_LOGISTIC,
    SMOOTH_HINGE,
    SQUARED_HINGE,
    labeled_conjugate,
    labeled_derivative,
    labeled_value,
)

_HALVINGS = 80  # of an interval, at most: far below the distance of two numbers
_FLATTEST = 1e-14  # least H_ii of a step along one α, relative to the largest


# --- One row --------------------------------------------------------------------------------------


@njit
def cost(c, s, q, f):
    """φ(f) = c exp(−s f²) + ½ q f²."""
    return c * math.exp(-s * f * f) + 0.5 * q * f * f


@njit
def cost_slope(c, s, q, f):
    """φ'(f)."""
    return (q - 2.0 * s * c * math.exp(-s * f * f)) * f


@njit
def cost_bend(c, s, q, f):
    """φ''(f)."""
    return c * (4.0 * s * s * f * f - 2.0 * s) * math.exp(-s * f * f) + q


@njit
def least_bend(c, s, a, b):
    """Least second derivative of c exp(−s f²) on [a, b].

    As a function of ``|f|`` it rises up to √(3/(2s)) and falls from there on towards 0, so that
    its least value is at the least or at the largest ``|f|``.
    """
    near = 0.0 if a < 0.0 < b else min(abs(a), abs(b))
    far = max(abs(a), abs(b))
    return min(cost_bend(c, s, 0.0, near), cost_bend(c, s, 0.0, far))


@njit
def turning_point(c, s, q):
    """e ≥ 0 with φ concave on [−e, e] and convex outside; 0 where φ is convex, inf if concave."""
    if c == 0.0:
        return math.inf if q < 0.0 else 0.0
    if q < 0.0 or q >= 2.0 * s * c:
        return 0.0
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
    """f in [low, high] with scale·f + slope·φ'(f) = target, where the left side does not fall."""
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
    """The largest slope·f − φ(f) over f in [a, b].

    It is found at an end, or in one of the convex parts of φ, where the derivative vanishes or a
    turning point is best: between the turning points a convex function is largest at an end.
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
    """r in [max(a, e), b] where the line from (a, φ(a)) touches φ, or b if none does."""
    low, high, value = max(a, turn), b, cost(c, s, q, a)
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
    """(p, r, slope): the envelope is φ on [a, p] and [r, b] and a line in between; p = r if none.

    Without the interval the line would be horizontal and touch φ at ±g with φ'(g) = 0. An end
    between −g and g takes the place of the point of contact on its side.
    """
    if turn == 0.0 or a >= turn or b <= -turn:
        return a, a, 0.0
    wide = math.sqrt(math.log(2.0 * s * c / q) / s) if q > 0.0 and c > 0.0 else math.inf
    p, r = a, b
    if a <= -wide and b >= wide:
        p, r = -wide, wide
    elif a > -wide:
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
    """The convex envelope at f in [a, b]."""
    if p < f < r:
        return cost(c, s, q, p) + slope * (f - p)
    return cost(c, s, q, f)


@njit
def envelope_slope(c, s, q, p, r, slope, f):
    """A slope of the convex envelope at f in [a, b]."""
    if p < r and p <= f <= r:
        return slope
    return cost_slope(c, s, q, f)


@njit
def nearest_in_interval(c, s, q, p, r, slope, a, b, h, v):
    """The minimizer over [a, b] of (f − v)²/(2h) plus the envelope."""
    if p > a:
        if v <= p + h * cost_slope(c, s, q, p):
            return slope_point(c, s, q, a, p, h, 1.0, v)
    elif p < r and v <= a + h * slope:
        return a
    if p < r and v - h * slope <= r:
        return min(max(v - h * slope, p), r)
    return slope_point(c, s, q, r, b, h, 1.0, v)


@njit
def nearest_labeled(code, p, y, c, h, v):
    """The minimizer of (f − v)²/(2h) + c ℓ(y, f)."""
    slope = h * c * labeled_derivative(code, y, v, p)
    if slope == 0.0:
        return v
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
    """The number nearest to alpha that is a slope of c ℓ(y, ·) somewhere."""
    if code == L1 or code == EPSILON_INSENSITIVE:
        return min(max(alpha, -c), c)
    z = y * alpha
    z = min(z, 0.0) if code == SQUARED_HINGE else min(max(z, -c), 0.0)
    return y * z


@njit
def flexibility(code, p, y, c, f, alpha):
    """1/(c ℓ''): how far f moves with the slope; 0 at a kink, infinite where ℓ is straight."""
    size = abs(alpha) / c
    if code == SQUARED_HINGE:
        return 1.0 / c if size > 0.0 else math.inf
    if code == SMOOTH_HINGE:
        return p / c if 1e-12 < size < 1.0 - 1e-12 else math.inf
    if code == HINGE:
        return 0.0 if 1e-12 < size < 1.0 - 1e-12 else math.inf
    if code == L1 or code == EPSILON_INSENSITIVE:
        inside = size < 1.0 - 1e-12 and (code == L1 or size > 1e-12)
        return 0.0 if inside else math.inf
    sharpness = p if code == MODIFIED_LOGISTIC else 1.0
    return 1.0 / max(c * sharpness * size * (1.0 - size), 1e-300)


# --- All rows -------------------------------------------------------------------------------------


@njit
def set_envelopes(weight, s, q, low, high, bounded, lines):
    """Turning point, p, r and slope of the envelope of each bounded row, into ``lines`` (4, n)."""
    for i in range(weight.size):
        if bounded[i]:
            lines[0, i] = turning_point(weight[i], s, q[i])
            lines[1, i], lines[2, i], lines[3, i] = envelope(
                weight[i], s, q[i], lines[0, i], low[i], high[i]
            )


@njit
def conjugates(code, p, y, weight, s, q, low, high, bounded, lines, alpha):
    """Σ ψ_i*(α_i): of the labeled losses, and of φ on the intervals."""
    total = 0.0
    for i in range(alpha.size):
        if bounded[i]:
            total += interval_conjugate(weight[i], s, q[i], lines[0, i], low[i], high[i], alpha[i])
        else:
            total += weight[i] * labeled_conjugate(code[i], y[i], alpha[i] / weight[i], p[i])
    return total


@njit
def nearest(i, code, p, y, weight, s, q, low, high, bounded, lines, h, v):
    """The minimizer of (f − v)²/(2h) + ψ_i(f)."""
    if bounded[i]:
        return nearest_in_interval(
            weight[i], s, q[i], lines[1, i], lines[2, i], lines[3, i], low[i], high[i], h, v
        )
    return nearest_labeled(code[i], p[i], y[i], weight[i], h, v)


@njit
def largest_diagonal(H):
    """The largest H_ii, or 1 where all of H is 0."""
    largest = 0.0
    for i in range(H.shape[0]):
        largest = max(largest, H[i, i])
    return largest if largest > 0.0 else 1.0


@njit
def sweep(code, p, y, weight, s, q, low, high, bounded, lines, H, alpha, f):
    """One round of exact maximizations of D over each α_i in turn; f = f0 − Hα is kept."""
    least_h = _FLATTEST * largest_diagonal(H)
    for i in range(alpha.size):
        h = max(H[i, i], least_h)
        v = f[i] + h * alpha[i]
        target = nearest(i, code, p, y, weight, s, q, low, high, bounded, lines, h, v)
        new = (v - target) / h
        if not bounded[i]:
            new = in_domain(code[i], y[i], weight[i], new)
        change = new - alpha[i]
        if change != 0.0:
            alpha[i] = new
            for k in range(alpha.size):
                f[k] -= H[k, i] * change


@njit
def linearize(code, p, y, weight, s, q, low, high, bounded, lines, H, alpha, f, pattern):
    """The piece of every ψ_i that is nearest to (f_i, α_i), into ``pattern`` (5, n).

    Its rows are a point of the piece and the slope of ψ_i there, 1/ψ_i'' (0 at a kink or an end,
    infinite on a line), and the least and the largest slope of the piece.
    """
    least_h = _FLATTEST * largest_diagonal(H)
    for i in range(alpha.size):
        h = max(H[i, i], least_h)
        v = f[i] + h * alpha[i]
        point = nearest(i, code, p, y, weight, s, q, low, high, bounded, lines, h, v)
        slope, flex, least, most = (v - point) / h, 0.0, -math.inf, math.inf
        if not bounded[i]:
            slope = in_domain(code[i], y[i], weight[i], slope)
            flex = flexibility(code[i], p[i], y[i], weight[i], point, slope)
            least = in_domain(code[i], y[i], weight[i], -math.inf)
            most = in_domain(code[i], y[i], weight[i], math.inf)
            if code[i] == EPSILON_INSENSITIVE:
                least, most = (0.0, most) if slope > 0.0 else (least, 0.0)
        elif point <= low[i] or point >= high[i]:
            end = low[i] if point <= low[i] else high[i]
            bound = envelope_slope(weight[i], s, q[i], lines[1, i], lines[2, i], lines[3, i], end)
            least, most = (least, bound) if point <= low[i] else (bound, most)
        elif lines[1, i] < point < lines[2, i]:
            flex = math.inf
        else:
            flex = 1.0 / max(cost_bend(weight[i], s, q[i], point), 1e-300)
        pattern[0, i], pattern[1, i], pattern[2, i] = point, slope, flex
        pattern[3, i], pattern[4, i] = least, most


@njit
def start_slopes(code, p, y, weight, s, q, low, high, bounded, lines, f, alpha):
    """α_i as a slope of ψ_i at f_i, which is first moved into its interval."""
    for i in range(alpha.size):
        if bounded[i]:
            at = min(max(f[i], low[i]), high[i])
            alpha[i] = envelope_slope(weight[i], s, q[i], lines[1, i], lines[2, i], lines[3, i], at)
        else:
            alpha[i] = weight[i] * labeled_derivative(code[i], y[i], f[i], p[i])


@njit
def gaps(weight, s, q, low, high, bounded, lines, f):
    """By how much φ exceeds its envelope at the output of each row; 0 for labeled rows."""
    out = np.zeros(f.size)
    for i in range(f.size):
        if bounded[i]:
            at = min(max(f[i], low[i]), high[i])
            under = envelope_value(weight[i], s, q[i], lines[1, i], lines[2, i], lines[3, i], at)
            out[i] = cost(weight[i], s, q[i], at) - under
    return out


@njit
def labeled_reach(code, p, y, limit):
    """The y·f below which ℓ(y, f) exceeds ``limit``, by bisection."""
    low, high = 1.0, 1.0
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
