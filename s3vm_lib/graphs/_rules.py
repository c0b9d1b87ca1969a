"""Make graphs of rows, and read the parameters of estimators that describe them."""

from dataclasses import KW_ONLY, dataclass, fields, replace
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from s3vm_lib.graphs._edges import CompleteGraph, Graph
from s3vm_lib.kernels import near_origin
from s3vm_lib.utils.limits import Checked, Count, Scale

WEIGHTS = ("gaussian", "binary")


def graph_from_weights(W, labeled=None):
    """Return the `Graph` of a matrix of weights.

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
    """Return edges once, with i < j, from directed ones; the larger weight of two directions."""
    i = np.minimum(rows, columns).astype(np.int64)
    j = np.maximum(rows, columns).astype(np.int64)
    keep = (i < j) & (values > 0)
    if labeled is not None:
        keep &= ~(labeled[i] & labeled[j])
    i, j, values = i[keep], j[keep], values[keep]
    # A pair is one number; of an edge told twice the larger weight stays.
    key, inverse = np.unique(i * n + j, return_inverse=True)
    weights = np.zeros(key.size)
    np.maximum.at(weights, inverse, values)
    return Graph(n, key // n, key % n, weights)


def distinct_rows(X, metric="euclidean"):
    """Return the first of each group of identical rows.

    Copies of a row would be its nearest neighbors and cut it off from all others; graphs of data
    with copies are therefore built on the distinct rows (see `NeighborGraph.build`).

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
        # Distances that are rounding; the first such row, and never a later one.
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


def knn_graph(
    X, n_neighbors=10, *, weights="gaussian", gamma=None, labeled=None, metric="euclidean"
):
    """Join every row to its k nearest neighbors.

    An edge exists if one of its ends is among the k nearest neighbors of the other.

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
    n_neighbors = min(n_neighbors, X.shape[0] - 1)
    return _joined(X, weights, gamma, labeled, metric, n_neighbors=n_neighbors)


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
    return _joined(X, weights, gamma, labeled, metric, radius=radius)


def _joined(X, weights, gamma, labeled, metric, **how):
    """Return the graph that joins rows to their neighbors."""
    n = X.shape[0]
    if weights not in WEIGHTS:
        raise ValueError(f"weights must be one of {WEIGHTS}, got {weights!r}")
    if n < 2:
        return Graph(n, *np.empty((2, 0), np.int64), np.empty(0))
    rows, columns, distances = _neighbors(X, metric, **how)
    # In place of weights the numbers of the pairs, of which the last of an edge is kept.
    graph = _graph(n, rows, columns, np.arange(1.0, rows.size + 1), labeled)
    length = distances[graph.weights.astype(int) - 1]
    if gamma is None:
        gamma = width_gamma(length.mean()) if length.size else 1.0
    return replace(graph, weights=_weights_of(length, weights, gamma))


def _neighbors(X, metric="euclidean", start=None, **how):
    """Return rows, the neighbors of each, and their distances, one entry per pair.

    A row is none of its own neighbors, unless rows are asked for from ``start`` on.
    """
    from sklearn.neighbors import NearestNeighbors

    X = X if metric == "precomputed" else near_origin(X)[0]
    # Trees lose to plain comparison of all pairs in more than about 15 dimensions.
    low = metric == "euclidean" and not sp.issparse(X) and X.shape[1] <= 15
    search = NearestNeighbors(algorithm="auto" if low else "brute", metric=metric, **how).fit(X)
    find = search.radius_neighbors if "radius" in how else search.kneighbors
    distances, columns = find(None if start is None else X[start:])
    rows = np.repeat(np.arange(start or 0, X.shape[0]), [len(part) for part in columns])
    return rows, np.concatenate(columns), np.concatenate(distances)


def width_gamma(length):
    """Return 1/(2m²) for the mean length m of the edges."""
    return 0.5 / length**2 if length > 0 else 1.0


def _weights_of(length, weights, gamma):
    """Return the weights of edges; one that underflows would make its edge vanish from ``|E|``."""
    if weights == "binary":
        return np.ones(length.size)
    return np.maximum(np.exp(-gamma * length**2), np.finfo(float).tiny)


def extend_graph(graph, X, labeled, rule, gamma):
    """Return a graph with edges from the rows that it does not have yet to their neighbors.

    Edges of earlier rows stay, even where a new row is nearer: what k-NN graphs cost online.

    Parameters
    ----------
    graph : Graph
    X : {ndarray, CSR matrix} of shape (n, d)
        Its rows, and the new ones after them.
    labeled : ndarray of bool, shape (n,)
        Two rows marked here are not joined.
    rule : NeighborGraph
    gamma : float or None
        γ of Gaussian weights; None, where no edge has told one so far, means 1.

    Returns
    -------
    Graph
    """
    n, how = X.shape[0], {"radius": rule.radius}
    if rule.radius is None:
        how = {"n_neighbors": min((rule.n_neighbors or NEIGHBORS) + 1, n)}  # and the row itself
    rows, columns, distances = _neighbors(X, start=graph.n, **how)
    # Identical rows would only pull each other together.
    keep = (distances > 0) & ~(labeled[rows] & labeled[columns])
    new = _weights_of(distances[keep], rule.weights, 1.0 if gamma is None else gamma)
    weights = np.append(graph.weights, new)
    rows, columns = np.append(graph.i, rows[keep]), np.append(graph.j, columns[keep])
    # In place of weights falling numbers of the pairs: the first of an edge is kept.
    joined = _graph(n, rows, columns, np.arange(weights.size, 0.0, -1.0), None)
    return replace(joined, weights=weights[weights.size - joined.weights.astype(int)])


# --- What estimators take ------------------------------------------------------------------------


NEIGHBORS = 5  # of a `NeighborGraph`, where the user gives none
_DENSE = 2**27  # values of sparse rows that are made dense, 1 GB
GRAPH_SHARE = 0.05  # weight of the graph over that of the labeled rows, by default


@dataclass(frozen=True)
class NeighborGraph(Checked):
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

    n_neighbors: Count | Literal["all"] | None = None
    _: KW_ONLY
    radius: Scale | None = None
    weights: Literal["gaussian", "binary"] = "gaussian"
    gamma: Scale | Literal["kernel"] | None = None

    def __post_init__(self):
        super().__post_init__()
        k, radius = self.n_neighbors, self.radius
        if k is not None and radius is not None:
            raise ValueError(
                f"only one of n_neighbors and radius can be given, got {k!r} and {radius!r}"
            )

    def __repr__(self):
        given = [(f.name, getattr(self, f.name), f.default) for f in fields(self)]
        shown = [f"{name}={value!r}" for name, value, default in given if value != default]
        return f"NeighborGraph({', '.join(shown)})"

    def build(self, X, labeled=None, kernel=None):
        """Return the graph of some rows.

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
            If all pairs are to be joined and the kernel is precomputed, or the rows are sparse and
            take more than a gigabyte when they are dense.
        """
        n, gamma = X.shape[0], self.weight_gamma(kernel)
        precomputed = kernel is not None and kernel.name == "precomputed"
        if self.n_neighbors == "all":
            if precomputed:
                raise ValueError(
                    "NeighborGraph('all') needs the rows: kernel='precomputed' has none"
                )
            if sp.issparse(X):
                X = _dense(X)
            if self.weights == "binary":
                return CompleteGraph(X, None, labeled)
            if gamma is None:  # 1/(2m²) with m² the mean squared distance of two rows
                variance = float(np.sum(np.var(X, axis=0)))
                gamma = 0.25 / variance if variance > 0 else 1.0
            return CompleteGraph(X, gamma, labeled)
        metric = "precomputed" if precomputed else "euclidean"
        if precomputed:
            diagonal = np.diagonal(X)
            X = np.sqrt(np.maximum(diagonal[:, None] + diagonal - X - X.T, 0.0))
        index, first = distinct_rows(X, metric)
        X = X[index][:, index] if precomputed else X[index]
        if labeled is not None:
            # A group of identical rows is labeled if one of them is.
            marked = np.zeros(n, dtype=bool)
            np.logical_or.at(marked, first, labeled)
            labeled = marked[index]
        options = dict(weights=self.weights, gamma=gamma, labeled=labeled, metric=metric)
        if self.radius is not None:
            graph = radius_graph(X, self.radius, **options)
        else:
            graph = knn_graph(X, self.n_neighbors or NEIGHBORS, **options)
        return Graph(n, index[graph.i], index[graph.j], graph.weights)  # copies have no edges

    def weight_gamma(self, kernel):
        """Return γ of the Gaussian weights; None where the lengths of the edges decide."""
        if self.gamma != "kernel":
            return None if self.gamma is None else float(self.gamma)
        known = kernel is not None and kernel.name in ("rbf", "laplacian")
        return float(kernel.gamma) if known else None


def _dense(X):
    """Return the sparse rows as an array."""
    values = X.shape[0] * X.shape[1]
    if values > _DENSE:
        raise ValueError(
            f"NeighborGraph('all') needs dense rows, and {X.shape[0]} sparse rows of {X.shape[1]} "
            f"columns take {8e-9 * values:.3g} GB then, of at most {8e-9 * _DENSE:.3g}: join "
            "neighbors only, or reduce the columns (sklearn.decomposition.TruncatedSVD)"
        )
    return X.toarray()


GraphLike = (
    NeighborGraph | Graph | CompleteGraph | Annotated[ArrayLike, "array-like", "sparse matrix"]
)


def graph_rule(graph, n_neighbors, default):
    """Return what the parameters ``graph`` and ``n_neighbors`` of an estimator stand for.

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
    """Return whether a rule or a graph joins all pairs of rows."""
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
    """Return the graph of the training rows.

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
