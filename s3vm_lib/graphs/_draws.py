"""Edges drawn at random, inside compiled loops."""

from typing import NamedTuple

import numpy as np

from s3vm_lib.graphs._edges import CompleteGraph
from s3vm_lib.utils.jit import njit
from s3vm_lib.utils.random_numbers import integer, uniform


class EdgeSampler(NamedTuple):
    """A graph in the form that `sample_edge` reads (see `edge_sampler`)."""

    i: np.ndarray  # ends of the edges; empty for a complete graph
    j: np.ndarray
    weights: np.ndarray
    threshold: np.ndarray  # alias table of draws in proportion to the weights, or empty
    alias: np.ndarray
    mean: float  # mean weight of an edge
    X: np.ndarray  # rows of a complete graph; (0, 0) otherwise
    gamma: float  # of its weights; negative for weights 1
    first: np.ndarray  # its rows that may be joined to any other
    second: np.ndarray  # its rows that are not joined to each other


def edge_sampler(graph, proportional=False):
    """Prepare a graph for `sample_edge`.

    Parameters
    ----------
    graph : Graph or CompleteGraph
    proportional : bool, default=False
        Draw edges in proportion to their weights in place of uniformly: the mean of what is
        estimated stays the same, and its variance falls where most weights are tiny. Not for a
        complete graph, which would need all its weights.

    Returns
    -------
    EdgeSampler
        A named tuple of arrays, an argument for compiled functions.

    Raises
    ------
    ValueError
        For a graph without edges, or a complete graph with ``proportional=True``.
    """
    if graph.n_edges == 0:
        raise ValueError("graph has no edges to draw")
    no_index, nothing = np.empty(0, np.int64), np.empty(0)
    if isinstance(graph, CompleteGraph):
        if proportional:
            raise ValueError(
                "edges of a complete graph cannot be drawn in proportion to their weights: use a "
                "k-NN or a radius graph, or draw uniformly"
            )
        labeled = np.zeros(graph.n, bool) if graph.labeled is None else np.asarray(graph.labeled)
        return EdgeSampler(
            no_index, no_index, nothing, nothing, no_index, 0.0,
            np.ascontiguousarray(graph.X, dtype=np.float64),
            -1.0 if graph.gamma is None else float(graph.gamma),
            np.flatnonzero(~labeled), np.flatnonzero(labeled),
        )  # fmt: skip
    threshold, alias = _alias_table(graph.weights) if proportional else (nothing, no_index)
    return EdgeSampler(
        graph.i, graph.j, graph.weights, threshold, alias, float(graph.weights.mean()),
        np.empty((0, 0)), -1.0, no_index, no_index,
    )  # fmt: skip


def _alias_table(weights):
    """Thresholds and aliases of Walker's method: column e keeps e with probability threshold_e."""
    m = weights.size
    share = weights * (m / weights.sum())
    threshold, alias = np.ones(m), np.arange(m)
    small, large = list(np.flatnonzero(share < 1)), list(np.flatnonzero(share >= 1))
    while small and large:
        s, b = small.pop(), large[-1]
        threshold[s], alias[s] = share[s], b
        share[b] -= 1.0 - share[s]
        if share[b] < 1:
            small.append(large.pop())
    return threshold, alias


@njit
def sample_edge(sampler, key, t):
    """The t-th edge of a stream of independent draws.

    The mean of ``factor · φ(i, j)`` over the draws is Σ_E μ_ij φ(i, j) / |E|, whether edges are
    drawn uniformly (factor = μ_ij) or in proportion to their weights (factor = mean of all μ).

    Parameters
    ----------
    sampler : EdgeSampler
    key : int
        Key of the stream, see ``s3vm_lib.utils.random_numbers.hash_key``.
    t : int
        Counter, t ≥ 0; words 2t and 2t + 1 of the stream are used.

    Returns
    -------
    i, j : int
        Ends of the edge.
    factor : float
    """
    if sampler.i.size > 0:
        e = integer(key, 2 * t, sampler.i.size)
        if sampler.threshold.size == 0:
            return sampler.i[e], sampler.j[e], sampler.weights[e]
        if uniform(key, 2 * t + 1) >= sampler.threshold[e]:
            e = sampler.alias[e]
        return sampler.i[e], sampler.j[e], sampler.mean
    # Pairs of one row of `first` and one of `second`, then pairs of two rows of `first`.
    u, l = sampler.first.size, sampler.second.size
    n_pairs = u * l + u * (u - 1) // 2
    e = integer(key, 2 * t, n_pairs)
    if e < u * l:
        i, j = sampler.first[e // l], sampler.second[e % l]
    else:
        e -= u * l  # = a (a − 1)/2 + b with b < a
        a = int((1.0 + np.sqrt(1.0 + 8.0 * e)) / 2.0)
        while a * (a - 1) // 2 > e:
            a -= 1
        while a * (a + 1) // 2 <= e:
            a += 1
        i, j = sampler.first[a], sampler.first[e - a * (a - 1) // 2]
    if sampler.gamma < 0.0:
        return i, j, 1.0
    square = 0.0
    for k in range(sampler.X.shape[1]):
        difference = sampler.X[i, k] - sampler.X[j, k]
        square += difference * difference
    return i, j, np.exp(-sampler.gamma * square)
