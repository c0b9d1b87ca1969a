"""What names stand for: weights and output deviations by rule, numbers of steps, grown graphs."""

import math

import numpy as np
import scipy.sparse as sp

from s3vm_lib.graph_kernel_machine._theory import (
    largest_C_graph,
    largest_sigma_f,
)
from s3vm_lib.graphs import GRAPH_SHARE, NEIGHBORS, Graph, graph_from_weights
from s3vm_lib.kernels import near_origin

_LARGE = 8000  # rows from which on the paper makes a fifth of n steps
_PAIRS = 2**23  # of a complete graph that may be listed


def paper_steps(n):
    """The paper's number of steps T: n, or a fifth of it for large sets."""
    return max(1, round(0.2 * n)) if n >= _LARGE else n


def space_radius(kernel, X):
    """R = max √k(x, x)."""
    if kernel.name in ("rbf", "laplacian"):
        return float(kernel.sigma_f)
    return math.sqrt(max(0.0, float(np.max(kernel.diagonal(X)))))


def resolve_C_graph(rule, mean_C, p, R, loss, offset, share):
    """The number that ``C_graph`` stands for.

    Parameters
    ----------
    rule : None, "labels", "paper", "theorem" or float
        None: a twentieth of the weight of the mean loss. ``"labels"``: ``share`` times it.
        ``"paper"``: C' = C with p < 2, and the paper's bounds for p = 2 and p > 2, which suppose
        R = A = 1. ``"theorem"``: that of ``"labels"``, or less if Theorem 1 asks for it.
    mean_C : float
        Weight of the mean loss.
    p, R : float
        Power, and bound on √k(x, x).
    loss : LabeledLoss
    offset : bool
        Whether 1 is added to the kernel.
    share : float

    Returns
    -------
    float
    """
    if rule is None:
        return GRAPH_SHARE * mean_C
    if rule == "labels":
        return share * mean_C
    if rule == "paper":
        return mean_C if p < 2 or mean_C == 0 else largest_C_graph(mean_C, p, 1.0, 1.0, share=1.0)
    if rule == "theorem" and mean_C == 0:
        return 0.0
    if rule == "theorem":
        if not math.isfinite(loss.lipschitz):
            raise ValueError(
                f"C_graph='theorem' needs a loss with a bounded slope, got loss={loss.name!r}"
            )
        A = loss.lipschitz * math.hypot(R, 1.0 if offset else 0.0)
        return min(share * mean_C, largest_C_graph(mean_C, p, R, A))
    return float(rule)


def resolve_sigma_f(mean_C, C_graph, p, loss, offset):
    """σ_f by rule: the largest with which Theorem 1 holds (see `largest_sigma_f`)."""
    if not math.isfinite(loss.lipschitz):
        raise ValueError(
            f"sigma_f='theorem' needs a loss with a bounded slope, got loss={loss.name!r}"
        )
    return largest_sigma_f(mean_C, C_graph, p, loss.lipschitz, offset)


# --- Graphs ---------------------------------------------------------------------------------------


def proportional_graph(graph):
    """A graph whose edges can be drawn in proportion to their weights."""
    if isinstance(graph, Graph):
        return graph
    if graph.n**2 > 2 * _PAIRS:
        raise ValueError(
            f"sampling='weight' lists all pairs of a complete graph, of which {graph.n_edges} "
            "are too many: join neighbors only, or use sampling='uniform'"
        )
    return graph_from_weights(graph.adjacency(), graph.labeled)


def length_gamma(graph, X):
    """1/(2m²) with the mean length m of the edges, None without edges."""
    if graph.n_edges == 0:
        return None
    difference = X[graph.i] - X[graph.j]
    squares = difference.multiply(difference) if sp.issparse(X) else difference**2
    mean = float(np.sqrt(np.asarray(squares.sum(axis=1)).ravel()).mean())
    return 0.5 / mean**2 if mean > 0 else 1.0


def extend_graph(graph, X, start, labeled, rule, gamma):
    """The graph with edges from the rows ``start`` and later to their neighbors among all rows.

    Edges of earlier rows stay, even where a new row is nearer: what k-NN graphs cost online.
    """
    n, X = X.shape[0], near_origin(X)[0]
    from sklearn.neighbors import NearestNeighbors

    if rule.radius is None:
        n_neighbors = rule.n_neighbors or NEIGHBORS
        found = NearestNeighbors(n_neighbors=min(n_neighbors + 1, n)).fit(X)
        distances, columns = found.kneighbors(X[start:])
        counts = np.full(n - start, columns.shape[1])
        distances, columns = distances.ravel(), columns.ravel()
    else:
        found = NearestNeighbors(radius=rule.radius).fit(X)
        distances, columns = found.radius_neighbors(X[start:])
        counts = np.array([part.size for part in columns])
        distances, columns = np.concatenate(distances), np.concatenate(columns)
    rows = np.repeat(np.arange(start, n), counts)
    # Identical rows would only pull each other together.
    keep = (distances > 0) & (rows != columns) & ~(labeled[rows] & labeled[columns])
    rows, columns, distances = rows[keep], columns[keep].astype(np.int64), distances[keep]
    mu = np.ones(rows.size)
    if rule.weights == "gaussian":
        scale = 1.0 if gamma is None else gamma  # no edge so far to take a length from
        mu = np.maximum(np.exp(-scale * distances**2), np.finfo(float).tiny)
    both = (
        np.concatenate([graph.weights, mu]),
        (np.concatenate([graph.i, rows]), np.concatenate([graph.j, columns])),
    )
    # An edge found from both of its ends would be added up.
    i, j = np.minimum(*both[1]), np.maximum(*both[1])
    _, first = np.unique(i * n + j, return_index=True)
    return Graph(n, i[first], j[first], both[0][first])
