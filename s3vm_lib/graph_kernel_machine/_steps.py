"""The compiled part: draws, kernel sums, and a window of steps on both lazy accumulators."""

import math

import numpy as np

from s3vm_lib._numba import njit
from s3vm_lib._rng import uniform
from s3vm_lib.graphs import power_slope, sample_edge
from s3vm_lib.kernels import exp_inplace
from s3vm_lib.losses import labeled_derivative, labeled_value

_ROWS = 256  # support rows whose kernel values are computed together: fits the cache
SMALLEST_SCALE = 1e-6


@njit
def draw_labeled(cumulative, key, first, out):
    """Positions of labeled rows, in proportion to their weights: draws first, first + 1, …

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
    for s in range(out.size):
        mark = uniform(key, first + s) * cumulative[-1]
        out[s] = min(np.searchsorted(cumulative, mark, side="right"), cumulative.size - 1)


@njit
def draw_edges(sampler, key, first, i, j, factor):
    """Edges of the draws first, first + 1, … into the three output arrays of shape (steps,)."""
    for s in range(i.size):
        i[s], j[s], factor[s] = sample_edge(sampler, key, first + s)


@njit
def rbf_sums(support, points, coefficients, out):
    """Kernel sums out[q, r] += Σ_j coefficients[j, r] exp(−γ‖s_j − z_q‖²) in single precision.

    Rows come extended, (√(2γ) x, −γ‖x‖², 1) in ``support`` and (√(2γ) z, 1, −γ‖z‖²) in
    ``points``, so that one matrix product gives all exponents.
    """
    q = points.shape[0]
    power = np.empty(q * _ROWS, np.int32)
    for start in range(0, support.shape[0], _ROWS):
        end = min(start + _ROWS, support.shape[0])
        E = np.dot(points, support[start:end].T)
        exp_inplace(E.reshape(-1), power)
        out += np.dot(E, coefficients[start:end])


@njit
def window(first, labeled, left, right, factor, y, F, K, state, parameters, slopes, counts, totals):
    """Steps first + 1, first + 2, … of the algorithm on rows that were drawn beforehand.

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
    state : ndarray of shape (4,)
        h, the sum of all a, Σ_ij a_i a_j k(x_i, x_j), and the scale; kept up to date.
    parameters : tuple
        Loss code and parameter, weight C of the mean loss, C', p, 1.0 with an offset or else 0.0,
        and the radius of the ball (infinite for none).
    slopes : ndarray of shape (steps, 2)
        Receives what is added to a: at the labeled row, and at ``left`` (its negative at
        ``right``).
    counts : ndarray of shape (steps,)
        Receives h.
    totals : ndarray of shape (5,)
        Sums over the steps of C ℓ, C' factor |d|^p and ½‖w_t‖² are added, the largest ‖w_t‖ and
        the largest norm of a stochastic gradient are kept.

    Returns
    -------
    int
        Number of steps done: fewer than asked for when the scale has become so small that h would
        lose its digits, see `Accumulators`.
    """
    loss, width, C, C_graph, p, offset, radius = parameters
    for s in range(labeled.size):
        t = first + s + 1
        l, u, v = labeled[s], left[s], right[s]
        # w_t = −2 scale a / ((t − 1) t), and w_1 = 0.
        c = 0.0
        if t > 1:
            state[0] += state[3] / (t - 1)
            c = -2.0 * state[3] / ((t - 1.0) * t)
        f = c * (F[l] + offset * state[1])
        slope = C * labeled_derivative(loss, y[s], f, width)
        smooth, pull = 0.0, 0.0
        if u >= 0:
            d = c * (F[u] - F[v])
            pull = C_graph * factor[s] * power_slope(d, p)
            smooth = C_graph * factor[s] * abs(d) ** p
        norm2 = c * c * state[2]
        totals[0] += C * labeled_value(loss, y[s], f, width)
        totals[1] += smooth
        totals[2] += 0.5 * norm2
        totals[3] = max(totals[3], math.sqrt(norm2))
        # ‖ξ_t‖² and ⟨a, ξ_t⟩ from kernel values at hand; the constant is seen by the loss alone.
        inner = slope * (F[l] + offset * state[1])
        square = slope * slope * (K[l, l] + offset)
        if pull != 0.0:
            inner += pull * (F[u] - F[v])
            square += pull * pull * (K[u, u] + K[v, v] - 2.0 * K[u, v])
            square += 2.0 * slope * pull * (K[l, u] - K[l, v])
        totals[4] = max(totals[4], math.sqrt(max(0.0, norm2 + 2.0 * c * inner + square)))
        weight = t / state[3]
        slopes[s, 0], slopes[s, 1], counts[s] = weight * slope, weight * pull, state[0]
        state[2] = max(0.0, state[2] + 2.0 * weight * inner + weight * weight * square)
        state[1] += slopes[s, 0]
        if slope != 0.0:
            for q in range(F.size):
                F[q] += slopes[s, 0] * K[l, q]
        if pull != 0.0:
            for q in range(F.size):
                F[q] += slopes[s, 1] * (K[u, q] - K[v, q])
        norm = 2.0 * state[3] * math.sqrt(state[2]) / (t * (t + 1.0))
        if norm > radius:
            state[3] *= radius / norm
            if state[3] < SMALLEST_SCALE:
                return s + 1
    return labeled.size
