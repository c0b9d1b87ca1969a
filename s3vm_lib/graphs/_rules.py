"""How estimators are told which graph of their rows to make."""

from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Annotated, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from s3vm_lib.graphs._edges import CompleteGraph, Graph
from s3vm_lib.graphs._neighbors import (
    WEIGHTS,
    distinct_rows,
    graph_from_weights,
    knn_graph,
    on_rows,
    radius_graph,
)
from s3vm_lib.utils.limits import COUNT, SCALE

NEIGHBORS = 5  # of a `NeighborGraph`, where nothing is said
_DENSE = 2**27  # values of sparse rows that are made dense, 1 GB
GRAPH_SHARE = 0.05  # of the weight of the labeled rows that the graph gets, where nothing is said


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


def _dense(X):
    """Sparse rows as an array."""
    values = X.shape[0] * X.shape[1]
    if values > _DENSE:
        raise ValueError(
            f"NeighborGraph('all') needs dense rows, and {X.shape[0]} sparse rows of {X.shape[1]} "
            f"columns take {8e-9 * values:.3g} GB then, of at most {8e-9 * _DENSE:.3g}: join "
            "neighbors only, or reduce the columns (sklearn.decomposition.TruncatedSVD)"
        )
    return X.toarray()


def _complete_gamma(X):
    """1/(2m²) with m² the mean squared distance of two rows."""
    variance = float(np.sum(np.var(X, axis=0)))
    return 0.25 / variance if variance > 0 else 1.0


GraphLike = (
    NeighborGraph | Graph | CompleteGraph | Annotated[ArrayLike, "array-like", "sparse matrix"]
)


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
