"""The compiled part: draws, kernel sums, and a window of steps on both lazy accumulators."""

import math
from typing import NamedTuple

import numpy as np

from s3vm_lib.graphs import power_slope, sample_edge
from s3vm_lib.kernels import exp_inplace
from s3vm_lib.losses import labeled_derivative, labeled_value
from s3vm_lib.utils.jit import njit
from s3vm_lib.utils.random_numbers import uniform

_ROWS = 256  # support rows whose kernel values are computed together: fits the cache
SMALLEST_SCALE = 1e-6

_STATE = (
    "h",  # Σ scale_t / (t − 1)
    "sum_a", "sum_b",  # Σ a of the losses, and Σ b
    "norm2", "scale",  # ‖Σ a_j Φ_j‖², and the factor of all a
)  # fmt: skip
_TOTALS = (
    "loss", "smooth", "regularizer",  # sums over the steps: C ℓ, C' factor |d|^p and ½‖w_t‖²
    "norm", "gradient",  # largest ‖w_t‖, and largest norm of a stochastic gradient
    "given_up",  # support rows given up for a budget
)  # fmt: skip
STATE = np.dtype((np.record, [(name, float) for name in _STATE]))
TOTALS = np.dtype((np.record, [(name, float) for name in _TOTALS]))


class Terms(NamedTuple):
    """What the steps minimize."""

    loss: int  # code of the labeled loss, and its parameter
    p: float
    C: float  # weight of the mean loss
    C_graph: float  # C'
    power: float
    offset: float  # 1.0 with an offset, else 0.0
    radius: float  # of the ball, infinite for none


def terms_of(problem, mass, offset, radius):
    """Return the `Terms` of a problem whose labeled rows have the weight ``mass``."""
    loss, weights = problem.labeled_loss, (problem.C * mass, problem.C_graph, problem.power)
    return Terms(loss.code, loss.p, *map(float, weights), offset, float(radius))


@njit
def draw_labeled(cumulative, key, first, out):
    """Draw positions of labeled rows in proportion to their weights: draws first, first + 1, …

    Parameters
    ----------
    cumulative : ndarray of shape (l,)
        Cumulative weights.
    key : int
        Key of the stream.
    first : int
        Number of the first draw.
    out : int ndarray of shape (steps,)
        Receives the positions.
    """
    last = cumulative.size - 1
    for s in range(out.size):
        mark = uniform(key, first + s) * cumulative[last]
        # The first position whose cumulative weight exceeds the mark, or the last one
        low, high = 0, last
        while low < high:
            middle = (low + high) // 2
            if cumulative[middle] <= mark:
                low = middle + 1
            else:
                high = middle
        out[s] = low


@njit
def draw_edges(sampler, key, first, i, j, factor):
    """Draw edges first, first + 1, … into the three output arrays of shape (steps,)."""
    for s in range(i.size):
        i[s], j[s], factor[s] = sample_edge(sampler, key, first + s)


def draw_steps(cumulative, sampler, keys, first, m):
    """Draw the labeled rows and the edges of m steps, whose factor is 0 without a sampler."""
    drawn, i, j = np.zeros((3, m), np.int64)
    factor = np.zeros(m)
    draw_labeled(cumulative, keys[0], first, drawn)
    if sampler is not None:
        draw_edges(sampler, keys[1], first, i, j, factor)
    return drawn, i, j, factor


@njit
def rbf_sums(support, points, coefficients, out):
    """Add Σ_j coefficients[j, r] exp(−γ‖s_j − z_q‖²) to out[q, r] in single precision.

    Rows come extended, (√(2γ) x, −γ‖x‖², 1) in ``support`` and (√(2γ) z, 1, −γ‖z‖²) in
    ``points``, so that one matrix product gives all exponents.
    """
    for start in range(0, support.shape[0], _ROWS):
        end = min(start + _ROWS, support.shape[0])
        E = np.dot(points, support[start:end].T)
        for q in range(E.shape[0]):
            exp_inplace(E[q])
        part = np.dot(E, coefficients[start:end])
        for q in range(out.shape[0]):
            for r in range(out.shape[1]):
                out[q, r] += part[q, r]


@njit
def window(first, labeled, left, right, factor, y, F, K, terms, state, totals, slopes, counts):
    """Take steps first + 1, first + 2, … of the algorithm on rows that were drawn beforehand.

    Comments number the lines of the algorithm in the chapter on the graph kernel machine.

    Parameters
    ----------
    first : int
        Number of steps done before.
    labeled, left, right : int ndarrays of shape (steps,)
        Positions in F of the labeled row and of the two ends of the edge of each step; ``left``
        is −1 where no edge is needed.
    factor : ndarray of shape (steps,)
        Weight of the edge, see `s3vm_lib.graphs.sample_edge`.
    y : ndarray of shape (steps,)
        Targets of the labeled rows.
    F : ndarray of shape (q,)
        Sums Σ_j a_j k(x_j, ·) at the rows of the window; kept up to date.
    K : ndarray of shape (q, q)
        Kernel values between these rows.
    terms : Terms
    state : ndarray of `STATE`, shape (1,)
        Kept up to date.
    totals : ndarray of `TOTALS`, shape (1,)
        Sums over the steps are added, largest norms are kept.
    slopes : ndarray of shape (steps, 2)
        Receives what is added to a: at the labeled row, and at ``left`` (its negative at
        ``right``).
    counts : ndarray of shape (steps,)
        Receives h.

    Returns
    -------
    int
        Number of steps done: fewer than asked for when the scale has become so small that h would
        lose its digits, see `Accumulators`.
    """
    now, total, C_graph = state[0], totals[0], terms.C_graph
    for s in range(labeled.size):  # line 2
        t = first + s + 1
        l, u, v = labeled[s], left[s], right[s]
        # Line 5 is kept as h, of which w̄ is made at the end (see `Accumulators`).
        c = 0.0  # w_t = −2 scale a / ((t − 1) t), and w_1 = 0
        if t > 1:
            now.h += now.scale / (t - 1)
            c = -2.0 * now.scale / ((t - 1.0) * t)
        # Line 3: the slope of the loss, and the pull of the edge on its ends.
        f = c * (F[l] + terms.offset * now.sum_a)
        slope = terms.C * labeled_derivative(terms.loss, y[s], f, terms.p)
        smooth, pull = 0.0, 0.0
        if u >= 0:
            d = c * (F[u] - F[v])
            pull = C_graph * factor[s] * power_slope(d, terms.power)
            smooth = C_graph * factor[s] * abs(d) ** terms.power
        norm2 = c * c * now.norm2
        total.loss += terms.C * labeled_value(terms.loss, y[s], f, terms.p)
        total.smooth += smooth
        total.regularizer += 0.5 * norm2
        total.norm = max(total.norm, math.sqrt(norm2))
        # ‖ξ_t‖² and ⟨a, ξ_t⟩ from kernel values at hand; the constant is seen by the loss alone.
        inner = slope * (F[l] + terms.offset * now.sum_a)
        square = slope * slope * (K[l, l] + terms.offset)
        if pull != 0.0:
            inner += pull * (F[u] - F[v])
            square += pull * pull * (K[u, u] + K[v, v] - 2.0 * K[u, v])
            square += 2.0 * slope * pull * (K[l, u] - K[l, v])
        total.gradient = max(total.gradient, math.sqrt(max(0.0, norm2 + 2.0 * c * inner + square)))
        # Line 4: a ← a + t ξ_t, of which the outputs F follow.
        weight = t / now.scale
        slopes[s, 0], slopes[s, 1], counts[s] = weight * slope, weight * pull, now.h
        now.norm2 = max(0.0, now.norm2 + 2.0 * weight * inner + weight * weight * square)
        now.sum_a += slopes[s, 0]
        if slope != 0.0:
            for q in range(F.size):
                F[q] += slopes[s, 0] * K[l, q]
        if pull != 0.0:
            for q in range(F.size):
                F[q] += slopes[s, 1] * (K[u, q] - K[v, q])
        # The projection of line 4, where there is one: a factor of all coefficients.
        norm = 2.0 * now.scale * math.sqrt(now.norm2) / (t * (t + 1.0))
        if norm > terms.radius:
            now.scale *= terms.radius / norm
            if now.scale < SMALLEST_SCALE:
                return s + 1
    return labeled.size
