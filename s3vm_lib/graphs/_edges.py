"""Lists of edges and complete graphs, their energy and Laplacian, and edges drawn at random."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from s3vm_lib.kernels import Kernel
from s3vm_lib.utils.jit import njit
from s3vm_lib.utils.random_numbers import integer, uniform

_CHUNK = 2**22  # pairs of a complete graph that are looked at together


@njit
def edge_energy(i, j, weights, f, power):
    """Return Σ_e μ_e |f_i − f_j|^p over a list of edges.

    Parameters
    ----------
    i, j : int ndarrays of shape (n_edges,)
        Ends of the edges.
    weights : ndarray of shape (n_edges,)
        Weights μ.
    f : ndarray of shape (n,)
        Outputs.
    power : float
        Exponent p ≥ 1.

    Returns
    -------
    float
    """
    total = 0.0
    for e in range(i.size):
        difference = abs(f[i[e]] - f[j[e]])
        if power == 2.0:
            total += weights[e] * difference * difference
        elif power == 1.0:
            total += weights[e] * difference
        else:
            total += weights[e] * difference**power
    return total


@njit
def power_slope(difference, power):
    """Return the derivative p sign(d) |d|^(p−1) of |d|^p; 0 at the kink d = 0 of p = 1.

    Parameters
    ----------
    difference : float
        d = f_i − f_j.
    power : float
        Exponent p ≥ 1.

    Returns
    -------
    float
    """
    if power == 2.0:
        return 2.0 * difference
    if difference == 0.0:
        return 0.0
    size = power * abs(difference) ** (power - 1.0)
    return size if difference > 0.0 else -size


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph as a list of edges.

    Parameters
    ----------
    n : int
        Number of vertices, the rows of the training data.
    i, j : ndarrays of int64, shape (n_edges,)
        Ends of the edges, i < j, sorted by i and then by j; every edge once.
    weights : ndarray of shape (n_edges,)
        Weights μ > 0.
    """

    n: int
    i: np.ndarray
    j: np.ndarray
    weights: np.ndarray

    @property
    def n_edges(self):
        """Number of edges |E|."""
        return int(self.i.size)

    def adjacency(self):
        """Return the symmetric matrix W of the weights, CSR of shape (n, n)."""
        rows, columns = np.r_[self.i, self.j], np.r_[self.j, self.i]
        return sp.csr_array((np.r_[self.weights, self.weights], (rows, columns)), (self.n, self.n))

    def induced(self, rows):
        """Return the graph on some of the vertices, given by ascending indices."""
        place = np.full(self.n, -1)
        place[rows] = np.arange(len(rows))
        i, j = place[self.i], place[self.j]
        kept = (i >= 0) & (j >= 0)
        return Graph(len(rows), i[kept], j[kept], self.weights[kept])

    def energy(self, f, power=2.0):
        """Return Σ_E μ_ij |f_i − f_j|^p at outputs f of shape (n,)."""
        return float(edge_energy(self.i, self.j, self.weights, _outputs(f), float(power)))

    def energy_gradient(self, f, power=2.0):
        """Return the derivatives of `energy` in the outputs, shape (n,); 0 at a kink."""
        f = _outputs(f)
        slope = self.weights * _slope(f[self.i] - f[self.j], power)
        return np.bincount(self.i, slope, self.n) - np.bincount(self.j, slope, self.n)


@dataclass(frozen=True, eq=False)
class CompleteGraph:
    """All pairs of rows, joined with weights that are computed when they are needed.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    gamma : float or None
        Weights exp(−γ‖x_i − x_j‖²); None means weights 1.
    labeled : ndarray of bool, shape (n,), default=None
        Two rows marked here are not joined. None joins all pairs.
    """

    X: np.ndarray
    gamma: float | None
    labeled: np.ndarray | None = None

    @property
    def n(self):
        """Number of vertices."""
        return self.X.shape[0]

    @property
    def n_edges(self):
        """Number of edges |E|."""
        l = 0 if self.labeled is None else int(np.sum(self.labeled))
        return self.n * (self.n - 1) // 2 - l * (l - 1) // 2

    def _blocks(self):
        """Yield first row, end, and weights (end − first, n), 0 but in one entry of each edge."""
        step = max(1, _CHUNK // max(1, self.n))
        for start in range(0, self.n, step):
            end = min(self.n, start + step)
            if self.gamma is None:
                W = np.ones((end - start, self.n))
            else:
                W = Kernel("rbf", self.gamma).gram(self.X[start:end], self.X)
            # Each edge once: the strict upper triangle.
            W[np.arange(start, end)[:, None] >= np.arange(self.n)] = 0.0
            if self.labeled is not None:
                W[np.ix_(self.labeled[start:end], self.labeled)] = 0.0
            yield start, end, W

    def induced(self, rows):
        """Return the graph on some of the vertices, given by ascending indices."""
        labeled = None if self.labeled is None else np.asarray(self.labeled)[rows]
        return CompleteGraph(self.X[rows], self.gamma, labeled)

    def adjacency(self):
        """Return the symmetric matrix W of the weights, dense, of shape (n, n)."""
        W = np.concatenate([weights for _, _, weights in self._blocks()])
        return W + W.T

    def energy(self, f, power=2.0):
        """Return Σ_E μ_ij |f_i − f_j|^p at outputs f of shape (n,), by a pass over all pairs."""
        f = _outputs(f)
        return sum(
            float(np.sum(W * np.abs(f[start:end, None] - f) ** power))
            for start, end, W in self._blocks()
        )

    def energy_gradient(self, f, power=2.0):
        """Return the derivatives of `energy` in the outputs, shape (n,); 0 at a kink."""
        f, out = _outputs(f), np.zeros(self.n)
        for start, end, W in self._blocks():
            slope = W * _slope(f[start:end, None] - f, power)
            out[start:end] += slope.sum(axis=1)
            out -= slope.sum(axis=0)
        return out


def _outputs(f):
    return np.ascontiguousarray(f, dtype=np.float64)


def _slope(difference, power):
    """Return `power_slope` of an array."""
    return power * np.sign(difference) * np.abs(difference) ** (power - 1)


# --- Laplacians: the quadratic energy as a matrix ------------------------------------------------


@dataclass(frozen=True, eq=False)
class Laplacian:
    """The quadratic form fᵀL^q f of a graph, by products with the sparse L alone.

    Parameters
    ----------
    matrix : CSR array (or ndarray) of shape (n, n)
        L = D − W, or its normalized form I − D^−½ W D^−½.
    degree : int
        The power q ≥ 1: the iterated Laplacian penalizes rougher functions more.
    n_edges : int
        |E| of the graph.
    flat : bool, default=False
        Whether L vanishes on constants.
    """

    matrix: sp.csr_array
    degree: int
    n_edges: int
    flat: bool = False

    @property
    def n(self):
        """Number of vertices."""
        return self.matrix.shape[0]

    def product(self, f):
        """Return L^q f for f of shape (n,) or (n, m)."""
        for _ in range(self.degree):
            f = self.matrix @ f
        return f

    def energy(self, f, power=2.0):
        """Return fᵀL^q f for f of shape (n,); `power` must be 2."""
        if power != 2:
            raise ValueError(f"power must be 2 for the energy of a Laplacian, got {power}")
        # ‖L^(q/2) f‖², with one more L between for an odd q.
        half = f
        for _ in range(self.degree // 2):
            half = self.matrix @ half
        other = self.matrix @ half if self.degree % 2 else half
        return max(0.0, float(half @ other))

    def energy_gradient(self, f, power=2.0):
        """Return 2L^q f, shape (n,)."""
        if power != 2:
            raise ValueError(f"power must be 2 for the energy of a Laplacian, got {power}")
        return 2.0 * self.product(f)


def laplacian(graph, normalized=False, degree=1):
    """Return the Laplacian of a graph.

    Parameters
    ----------
    graph : Graph or CompleteGraph
        Of a complete graph the matrix is dense.
    normalized : bool, default=False
        I − D^−½ W D^−½ in place of D − W. A vertex without edges gets a row of zeros in both. The
        normalized form does not vanish on constants, but on multiples of D^½ 1.
    degree : int, default=1
        The power q of the iterated Laplacian L^q.

    Returns
    -------
    Laplacian
    """
    W = graph.adjacency()
    sums = np.asarray(W.sum(axis=1)).ravel()
    diagonal = sums
    # A vertex without edges has a row of zeros.
    if normalized:
        scale = np.divide(1.0, np.sqrt(sums), out=np.zeros_like(sums), where=sums > 0)
        diagonal = (sums > 0).astype(float)
        D = sp.diags_array(scale)
        W = W * scale * scale[:, None] if isinstance(W, np.ndarray) else D @ W @ D
    if isinstance(W, np.ndarray):
        L = -W
        L[np.diag_indices_from(L)] += diagonal
    else:
        L = sp.csr_array(sp.diags_array(diagonal) - W)
        L.sort_indices()
    return Laplacian(L, int(degree), graph.n_edges, not normalized)


# --- Edges drawn at random, inside compiled loops ------------------------------------------------


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
    """Return thresholds and aliases of Walker's method: e keeps e with probability threshold_e."""
    m = weights.size
    share = weights * (m / weights.sum())
    threshold, alias = np.ones(m), np.arange(m)
    small, large = list(np.flatnonzero(share < 1)), list(np.flatnonzero(share >= 1))
    # A small share is filled up from a large one.
    while small and large:
        s, b = small.pop(), large[-1]
        threshold[s], alias[s] = share[s], b
        share[b] -= 1.0 - share[s]
        if share[b] < 1:
            small.append(large.pop())
    return threshold, alias


@njit
def sample_edge(sampler, key, t):
    """Return the t-th edge of a stream of independent draws.

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
        # A listed edge by its number, or the alias that shares its place.
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
        # The root is rounded.
        while a * (a - 1) // 2 > e:
            a -= 1
        while a * (a + 1) // 2 <= e:
            a += 1
        i, j = sampler.first[a], sampler.first[e - a * (a - 1) // 2]
    if sampler.gamma < 0.0:
        return i, j, 1.0
    # Weights of a complete graph are computed for the pair that was drawn.
    square = 0.0
    for k in range(sampler.X.shape[1]):
        difference = sampler.X[i, k] - sampler.X[j, k]
        square += difference * difference
    return i, j, np.exp(-sampler.gamma * square)
