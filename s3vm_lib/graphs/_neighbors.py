"""Graphs of nearest neighbors, of a radius, and of given weights."""

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from s3vm_lib.graphs._edges import Graph
from s3vm_lib.kernels import near_origin

WEIGHTS = ("gaussian", "binary")


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
        X = X.copy()  # in one form: a zero may be stored or not
        X.sum_duplicates()
        X.eliminate_zeros()
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
    X = X if metric == "precomputed" else near_origin(X)[0]
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
    X = X if metric == "precomputed" else near_origin(X)[0]
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
