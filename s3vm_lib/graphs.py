"""Neighborhood graphs: edges, Gaussian weights, Laplacians, and edges drawn at random.

A graph joins training rows that should get similar outputs. Its edges {i, j} are undirected, carry
a weight μ_ij > 0 and are counted once. What is penalized is the *energy* of the outputs,

    E_p(f) = Σ_{(i,j)∈E} μ_ij |f_i − f_j|^p,

which for p = 2 is the quadratic form fᵀLf of the Laplacian L = D − W, where W holds the weights and
D their sums over each row.

Two kinds of graphs answer the same questions. `Graph` holds a list of edges (k nearest neighbors,
all neighbors within a radius, or any weights that are given). `CompleteGraph` joins all pairs and
holds none of them: weights are computed when an edge is drawn. `NeighborGraph` says how either is
made of rows. `sample_edge` draws edges inside compiled loops.
"""

from dataclasses import KW_ONLY, dataclass, fields, replace
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from s3vm_lib._limits import COUNT, SCALE
from s3vm_lib._numba import njit
from s3vm_lib._rng import integer, uniform
from s3vm_lib.kernels import Kernel

WEIGHTS = ("gaussian", "binary")
NEIGHBORS = 5  # of a `NeighborGraph`, where nothing is said
_CHUNK = 2**22  # pairs of a complete graph that are looked at together


# --- Energies and their slopes --------------------------------------------------------------------


@njit
def edge_energy(i, j, weights, f, power):
    """Σ_e μ_e |f_i − f_j|^p over a list of edges.

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
    """Derivative p sign(d) |d|^(p−1) of |d|^p; 0 at the kink d = 0 of p = 1.

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


@njit
def edge_energy_gradient(i, j, weights, f, power, out):
    """Add the derivatives of `edge_energy` in the outputs to ``out``, shape (n,)."""
    for e in range(i.size):
        slope = weights[e] * power_slope(f[i[e]] - f[j[e]], power)
        out[i[e]] += slope
        out[j[e]] -= slope


# --- Graphs ---------------------------------------------------------------------------------------


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

    @property
    def total_weight(self):
        """Σ_E μ_ij."""
        return float(self.weights.sum())

    def adjacency(self):
        """The symmetric matrix W of the weights, CSR of shape (n, n)."""
        rows, columns = np.r_[self.i, self.j], np.r_[self.j, self.i]
        return sp.csr_array((np.r_[self.weights, self.weights], (rows, columns)), (self.n, self.n))

    def induced(self, rows):
        """The graph on some of the vertices, given by ascending indices."""
        place = np.full(self.n, -1)
        place[rows] = np.arange(len(rows))
        i, j = place[self.i], place[self.j]
        kept = (i >= 0) & (j >= 0)
        return Graph(len(rows), i[kept], j[kept], self.weights[kept])

    def energy(self, f, power=2.0):
        """Σ_E μ_ij |f_i − f_j|^p at outputs f of shape (n,)."""
        return float(edge_energy(self.i, self.j, self.weights, _outputs(f), float(power)))

    def energy_gradient(self, f, power=2.0):
        """Derivatives of `energy` in the outputs, shape (n,); 0 at a kink."""
        out = np.zeros(self.n)
        edge_energy_gradient(self.i, self.j, self.weights, _outputs(f), float(power), out)
        return out


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

    @property
    def total_weight(self):
        """Σ_E μ_ij, by a pass over all pairs."""
        return sum(float(weights.sum()) for _, _, weights in self._blocks())

    def _blocks(self):
        """(first row, end, weights (end − first, n)), each edge in one entry, the others 0."""
        step = max(1, _CHUNK // max(1, self.n))
        for start in range(0, self.n, step):
            end = min(self.n, start + step)
            if self.gamma is None:
                W = np.ones((end - start, self.n))
            else:
                W = Kernel("rbf", self.gamma).gram(self.X[start:end], self.X)
            W[np.arange(start, end)[:, None] >= np.arange(self.n)] = 0.0
            if self.labeled is not None:
                W[np.ix_(self.labeled[start:end], self.labeled)] = 0.0
            yield start, end, W

    def induced(self, rows):
        """The graph on some of the vertices, given by ascending indices."""
        labeled = None if self.labeled is None else np.asarray(self.labeled)[rows]
        return CompleteGraph(self.X[rows], self.gamma, labeled)

    def adjacency(self):
        """The symmetric matrix W of the weights, dense, of shape (n, n)."""
        W = np.concatenate([weights for _, _, weights in self._blocks()])
        return W + W.T

    def energy(self, f, power=2.0):
        """Σ_E μ_ij |f_i − f_j|^p at outputs f of shape (n,), by a pass over all pairs."""
        f = _outputs(f)
        return sum(
            float(np.sum(W * np.abs(f[start:end, None] - f) ** power))
            for start, end, W in self._blocks()
        )

    def energy_gradient(self, f, power=2.0):
        """Derivatives of `energy` in the outputs, shape (n,); 0 at a kink."""
        f, out = _outputs(f), np.zeros(self.n)
        for start, end, W in self._blocks():
            difference = f[start:end, None] - f
            slope = W * np.sign(difference) * power * np.abs(difference) ** (power - 1)
            out[start:end] += slope.sum(axis=1)
            out -= slope.sum(axis=0)
        return out


def _outputs(f):
    return np.ascontiguousarray(f, dtype=np.float64)


# --- Building graphs ------------------------------------------------------------------------------


def graph_from_weights(W, labeled=None):
    """The `Graph` of a matrix of weights.

    Parameters
    ----------
    W : {ndarray, sparse matrix} of shape (n, n)
        Non-negative weights. An entry W_ij ≠ W_ji stands for an edge of weight max(W_ij, W_ji);
        the diagonal is ignored.
    labeled : ndarray of bool, shape (n,), default=None
        Edges between two rows marked here are left out.

    Returns
    -------
    Graph

    Raises
    ------
    ValueError
        If W is not square, or an entry is negative or not finite.
    """
    W = sp.coo_array(W)
    if W.shape[0] != W.shape[1]:
        raise ValueError(f"graph weights must be a square matrix, got shape {W.shape}")
    values = np.asarray(W.data, dtype=np.float64)
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError("graph weights must be finite and non-negative")
    return _graph(W.shape[0], W.row, W.col, values, labeled)


def _graph(n, rows, columns, values, labeled):
    """Edges once, with i < j, from directed ones; the larger weight of two directions."""
    i = np.minimum(rows, columns).astype(np.int64)
    j = np.maximum(rows, columns).astype(np.int64)
    keep = (i < j) & (values > 0)
    if labeled is not None:
        keep &= ~(labeled[i] & labeled[j])
    i, j, values = i[keep], j[keep], values[keep]
    key, inverse = np.unique(i * n + j, return_inverse=True)
    weights = np.zeros(key.size)
    np.maximum.at(weights, inverse, values)
    return Graph(n, key // n, key % n, weights)


def distinct_rows(X, metric="euclidean"):
    """The first of each group of identical rows.

    Copies of a row would be its nearest neighbors and cut it off from all others; graphs of data
    with copies are therefore built on the distinct rows (see `on_rows`).

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows; the n × n distances with ``metric="precomputed"``.
    metric : {"euclidean", "precomputed"}, default="euclidean"

    Returns
    -------
    index : ndarray of shape (m,)
        First rows of the groups, ascending.
    first : ndarray of shape (n,)
        For every row, the first row that is identical to it.
    """
    if metric == "precomputed":
        first = np.argmax(X <= 1e-7 * max(X.max(initial=0.0), 1e-300), axis=1)
        first = np.minimum(first, np.arange(X.shape[0]))
    elif sp.issparse(X):
        seen, bounds = {}, X.indptr
        keys = (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in pairwise(bounds))
        first = np.array([seen.setdefault(key, row) for row, key in enumerate(keys)], np.intp)
    else:
        rows = np.ascontiguousarray(X) + 0.0  # no −0, whose bytes differ from those of 0
        keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
        _, index, inverse = np.unique(keys, return_index=True, return_inverse=True)
        first = index[inverse]
    return np.unique(first), first


def on_rows(graph, index, n):
    """A graph on some of n rows as a graph on all of them.

    Parameters
    ----------
    graph : Graph
        On ``len(index)`` vertices.
    index : ndarray of shape (m,)
        The row of each vertex, ascending.
    n : int
        Number of rows.

    Returns
    -------
    Graph
        The other rows have no edges.
    """
    return Graph(n, index[graph.i], index[graph.j], graph.weights)


def knn_graph(
    X, n_neighbors=10, *, weights="gaussian", gamma=None, labeled=None, metric="euclidean"
):
    """Join every row to its k nearest neighbors.

    An edge is there if one of its ends is among the k nearest neighbors of the other.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows, of which none should be identical (see `distinct_rows`); the n × n distances with
        ``metric="precomputed"``.
    n_neighbors : int, default=10
        k ≥ 1; with k ≥ n − 1 all pairs are joined.
    weights : {"gaussian", "binary"}, default="gaussian"
        exp(−γ‖x_i − x_j‖²), or 1.
    gamma : float, default=None
        γ of the Gaussian weights; None means 1/(2m²), where m is the mean length of an edge.
    labeled : ndarray of bool, shape (n,), default=None
        Edges between two rows marked here are left out.
    metric : {"euclidean", "precomputed"}, default="euclidean"

    Returns
    -------
    Graph
    """
    from sklearn.neighbors import NearestNeighbors

    n = X.shape[0]
    if n < 2:
        return _edgeless(n)
    found = NearestNeighbors(
        n_neighbors=min(n_neighbors, n - 1), algorithm=_algorithm(X, metric), metric=metric
    ).fit(X)
    distances, index = found.kneighbors()  # a row is not counted among its own neighbors
    rows = np.repeat(np.arange(n), index.shape[1])
    return _weighted(n, rows, index.ravel(), distances.ravel(), weights, gamma, labeled)


def radius_graph(X, radius, *, weights="gaussian", gamma=None, labeled=None, metric="euclidean"):
    """Join all pairs of rows at a distance of at most ε.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows, or distances, as in `knn_graph`.
    radius : float
        ε > 0. A large one joins all n(n − 1)/2 pairs: watch the memory.
    weights, gamma, labeled, metric
        See `knn_graph`.

    Returns
    -------
    Graph
    """
    from sklearn.neighbors import NearestNeighbors

    n = X.shape[0]
    if n < 2:
        return _edgeless(n)
    found = NearestNeighbors(radius=radius, algorithm=_algorithm(X, metric), metric=metric).fit(X)
    distances, index = found.radius_neighbors()
    rows = np.repeat(np.arange(n), [part.size for part in index])
    columns, distances = (np.concatenate(parts) for parts in (index, distances))
    return _weighted(n, rows, columns, distances, weights, gamma, labeled)


def _edgeless(n):
    return Graph(n, np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def _algorithm(X, metric):
    """Trees lose to plain comparison of all pairs in more than about 15 dimensions."""
    low = metric == "euclidean" and not sp.issparse(X) and X.shape[1] <= 15
    return "auto" if low else "brute"


def _weighted(n, rows, columns, distances, weights, gamma, labeled):
    if weights not in WEIGHTS:
        raise ValueError(f"weights must be one of {WEIGHTS}, got {weights!r}")
    graph = _graph(n, rows, columns, np.ones(rows.size), labeled)
    if weights == "binary" or graph.n_edges == 0:
        return graph
    # Lengths in the order of the edges; both directions of an edge have the same one.
    length = np.empty(graph.n_edges)
    key = np.minimum(rows, columns).astype(np.int64) * n + np.maximum(rows, columns)
    place = np.searchsorted(graph.i * n + graph.j, key)
    inside = place < graph.n_edges
    inside[inside] = (graph.i * n + graph.j)[place[inside]] == key[inside]
    length[place[inside]] = distances[inside]
    if gamma is None:
        mean = length.mean()
        gamma = 0.5 / mean**2 if mean > 0 else 1.0
    # A weight that underflows would make an edge vanish from |E|.
    mu = np.maximum(np.exp(-gamma * length**2), np.finfo(float).tiny)
    return Graph(n, graph.i, graph.j, mu)


# --- Rules for graphs of rows ---------------------------------------------------------------------


@dataclass(frozen=True)
class NeighborGraph:
    """Which rows a graph joins, and with what weights, before the rows are known.

    Parameters
    ----------
    n_neighbors : int, "all" or None, default=None
        Join every row to its k nearest neighbors, or all pairs. None means 5, unless there is a
        radius.
    radius : float or None, default=None
        Join all pairs of rows that are at most this far apart, in place of nearest neighbors.
    weights : {"gaussian", "binary"}, default="gaussian"
        exp(−γ‖x_i − x_j‖²), or 1.
    gamma : float, "kernel" or None, default=None
        γ of Gaussian weights. None means 1/(2m²), where m is the mean length of an edge (of all
        pairs, the root of the mean square); ``"kernel"`` is the γ of the kernel that the rows are
        used with, where it is rbf or laplacian.

    Raises
    ------
    ValueError
        For a value out of range, naming the parameter, and for both neighbors and a radius.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib.graphs import NeighborGraph
    >>> X = np.array([[0.0], [1.0], [2.5], [5.0]])
    >>> NeighborGraph(1, weights="binary").build(X).n_edges
    3
    >>> NeighborGraph(radius=1.5).build(X).n_edges
    2
    >>> NeighborGraph(6, weights="gaussian")
    NeighborGraph(n_neighbors=6)
    """

    n_neighbors: int | Literal["all"] | None = None
    _: KW_ONLY
    radius: float | None = None
    weights: Literal["gaussian", "binary"] = "gaussian"
    gamma: float | Literal["kernel"] | None = None

    def __post_init__(self):
        k, radius, gamma = self.n_neighbors, self.radius, self.gamma
        if not (k is None or k == "all" or COUNT.is_satisfied_by(k)):
            raise ValueError(f"n_neighbors must be a positive integer, 'all' or None, got {k!r}")
        if not (radius is None or SCALE.is_satisfied_by(radius)):
            raise ValueError(f"radius must be a positive number or None, got {radius!r}")
        if k is not None and radius is not None:
            raise ValueError(
                f"only one of n_neighbors and radius can be given, got {k!r} and {radius!r}"
            )
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights must be one of {WEIGHTS}, got {self.weights!r}")
        if not (gamma is None or gamma == "kernel" or SCALE.is_satisfied_by(gamma)):
            raise ValueError(f"gamma must be a positive number, 'kernel' or None, got {gamma!r}")

    def __repr__(self):
        given = [(f.name, getattr(self, f.name), f.default) for f in fields(self)]
        shown = [f"{name}={value!r}" for name, value, default in given if value != default]
        return f"NeighborGraph({', '.join(shown)})"

    def build(self, X, labeled=None, kernel=None):
        """The graph of some rows.

        Where rows are joined to neighbors, identical rows are one vertex, the first of them (see
        `distinct_rows`).

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n, d)
            Rows; the n × n Gram matrix with a precomputed kernel, whose distances are then
            √(K_ii + K_jj − 2K_ij).
        labeled : ndarray of bool, shape (n,), default=None
            Edges between two rows marked here are left out.
        kernel : Kernel, default=None
            The kernel that the rows are used with, if any.

        Returns
        -------
        Graph or CompleteGraph
            The latter with ``n_neighbors="all"``.

        Raises
        ------
        ValueError
            If all pairs are to be joined and the kernel is precomputed.
        """
        n, gamma = X.shape[0], self.weight_gamma(kernel)
        precomputed = kernel is not None and kernel.name == "precomputed"
        if self.n_neighbors == "all":
            if precomputed:
                raise ValueError(
                    "NeighborGraph('all') needs the rows: kernel='precomputed' has none"
                )
            X = X.toarray() if sp.issparse(X) else X
            if self.weights == "binary":
                return CompleteGraph(X, None, labeled)
            return CompleteGraph(X, _complete_gamma(X) if gamma is None else gamma, labeled)
        metric = "precomputed" if precomputed else "euclidean"
        if precomputed:
            diagonal = np.diagonal(X)
            X = np.sqrt(np.maximum(diagonal[:, None] + diagonal - X - X.T, 0.0))
        index, first = distinct_rows(X, metric)
        X = X[index][:, index] if precomputed else X[index]
        if labeled is not None:
            marked = np.zeros(n, dtype=bool)
            np.logical_or.at(marked, first, labeled)
            labeled = marked[index]
        options = dict(weights=self.weights, gamma=gamma, labeled=labeled, metric=metric)
        if self.radius is not None:
            return on_rows(radius_graph(X, self.radius, **options), index, n)
        return on_rows(knn_graph(X, self.n_neighbors or NEIGHBORS, **options), index, n)

    def weight_gamma(self, kernel):
        """γ of the Gaussian weights; None where the lengths of the edges decide."""
        if self.gamma != "kernel":
            return None if self.gamma is None else float(self.gamma)
        known = kernel is not None and kernel.name in ("rbf", "laplacian")
        return float(kernel.gamma) if known else None


def _complete_gamma(X):
    """1/(2m²) with m² the mean squared distance of two rows."""
    variance = float(np.sum(np.var(X, axis=0)))
    return 0.25 / variance if variance > 0 else 1.0


GRAPH_CONSTRAINTS = {
    "graph": [NeighborGraph, Graph, CompleteGraph, "array-like", "sparse matrix", None],
    "n_neighbors": [COUNT, None],
}


def graph_rule(graph, n_neighbors, default):
    """What the parameters ``graph`` and ``n_neighbors`` of an estimator stand for.

    Parameters
    ----------
    graph : NeighborGraph, Graph, CompleteGraph, matrix or None
    n_neighbors : int or None
        Short for the default with so many neighbors.
    default : NeighborGraph

    Returns
    -------
    NeighborGraph, Graph, CompleteGraph or matrix

    Raises
    ------
    ValueError
        If both are given.
    """
    if graph is None:
        return default if n_neighbors is None else replace(default, n_neighbors=n_neighbors)
    if n_neighbors is not None:
        raise ValueError(
            f"n_neighbors must be None where graph is given, got {n_neighbors}: write "
            f"graph=NeighborGraph({n_neighbors}, ...)"
        )
    return graph


def joins_all(rule):
    """Whether a rule or a graph joins all pairs of rows."""
    return isinstance(rule, CompleteGraph) or (
        isinstance(rule, NeighborGraph) and rule.n_neighbors == "all"
    )


def check_graph(rule, codes, weight):
    """Refuse a given graph of other rows, and weights that a complete graph cannot stand for.

    Parameters
    ----------
    rule : NeighborGraph, Graph, CompleteGraph or matrix
    codes : ndarray of int, shape (n,)
        −1 for unlabeled rows.
    weight : ndarray of shape (n,)
        Weights of the rows.
    """
    n = codes.size
    if isinstance(rule, Graph | CompleteGraph):
        if rule.n != n:
            raise ValueError(
                f"graph must have one vertex for each of the {n} rows of X, got {rule.n}"
            )
    elif not isinstance(rule, NeighborGraph) and np.shape(rule) != (n, n):
        raise ValueError(
            f"graph must be a square matrix of one row per row of X, got shape {np.shape(rule)}"
        )
    unlabeled = weight[(codes < 0) & (weight > 0)]
    if joins_all(rule) and unlabeled.size and np.ptp(unlabeled) > 0:
        raise ValueError(
            "sample_weight must be equal on all unlabeled rows of positive weight with "
            "a complete graph, whose edges have no weights but those of the distances"
        )


def training_graph(rule, X, rows, labeled=None, kernel=None):
    """The graph of the training rows.

    Parameters
    ----------
    rule : NeighborGraph, Graph, CompleteGraph or matrix
        What was given is taken as it is, without the vertices that are not among ``rows``.
    X : {ndarray, CSR matrix} of shape (m, d)
        Training rows of positive weight, as in `NeighborGraph.build`.
    rows : int ndarray of shape (m,)
        Their places among all rows, ascending.
    labeled, kernel
        See `NeighborGraph.build`.

    Returns
    -------
    Graph or CompleteGraph
    """
    if isinstance(rule, NeighborGraph):
        return rule.build(X, labeled, kernel)
    if isinstance(rule, Graph | CompleteGraph):
        return rule if rule.n == rows.size else rule.induced(rows)
    return graph_from_weights(sp.csr_array(rule)[rows][:, rows])


# --- Laplacians -----------------------------------------------------------------------------------


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
    """

    matrix: sp.csr_array
    degree: int
    n_edges: int

    @property
    def n(self):
        """Number of vertices."""
        return self.matrix.shape[0]

    def product(self, f):
        """L^q f for f of shape (n,) or (n, m)."""
        for _ in range(self.degree):
            f = self.matrix @ f
        return f

    def energy(self, f, power=2.0):
        """fᵀL^q f for f of shape (n,); `power` must be 2."""
        if power != 2:
            raise ValueError(f"power must be 2 for the energy of a Laplacian, got {power}")
        half = f
        for _ in range(self.degree // 2):
            half = self.matrix @ half
        other = self.matrix @ half if self.degree % 2 else half
        return max(0.0, float(half @ other))

    def energy_gradient(self, f, power=2.0):
        """2L^q f, shape (n,)."""
        if power != 2:
            raise ValueError(f"power must be 2 for the energy of a Laplacian, got {power}")
        return 2.0 * self.product(f)


def laplacian(graph, normalized=False, degree=1):
    """The Laplacian of a graph.

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
    if normalized:
        scale = np.divide(1.0, np.sqrt(sums), out=np.zeros_like(sums), where=sums > 0)
        diagonal = (sums > 0).astype(float)
        W = W * scale * scale[:, None] if isinstance(W, np.ndarray) else _scaled(W, scale)
    if isinstance(W, np.ndarray):
        L = -W
        L[np.diag_indices_from(L)] += diagonal
    else:
        L = sp.csr_array(sp.diags_array(diagonal) - W)
        L.sort_indices()
    return Laplacian(L, int(degree), graph.n_edges)


def _scaled(W, scale):
    D = sp.diags_array(scale)
    return D @ W @ D


# --- Edges drawn at random, inside compiled loops -------------------------------------------------


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
        Key of the stream, see ``s3vm_lib._rng.hash_key``.
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
