"""Graphs: edges by brute force, energies, Laplacians, copies of rows, and edges drawn at random."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components
from scipy.stats import chisquare

from s3vm_lib.checks import gradient_error
from s3vm_lib.graphs import (
    CompleteGraph,
    Graph,
    Laplacian,
    NeighborGraph,
    edge_sampler,
    graph_from_weights,
    knn_graph,
    laplacian,
    power_slope,
    radius_graph,
    sample_edge,
)
from s3vm_lib.graphs._rules import distinct_rows
from s3vm_lib.kernels import Kernel
from s3vm_lib.utils.jit import njit
from s3vm_lib.utils.random_numbers import hash_key

X = np.random.default_rng(0).standard_normal((40, 3))
LABELED = np.arange(40) % 4 == 0
F = np.random.default_rng(1).standard_normal(40)


# Dense definitions, for comparison ---------------------------------------------------------------


def plain_energy(W, f, p=2):
    """Σ over edges of μ_ij |f_i − f_j|^p, every edge once."""
    return 0.5 * np.sum(W * np.abs(f[:, None] - f[None, :]) ** p)


def plain_laplacian(W, normalized=False):
    """D − W, or I − D^−½ W D^−½."""
    degrees = W.sum(axis=1)
    if not normalized:
        return np.diag(degrees) - W
    root = np.sqrt(degrees)
    return np.eye(len(W)) - W / np.outer(root, root)


def plain_harmonic(W, t):
    """Outputs equal to the labels t = ±1, and elsewhere to weighted means of neighbors."""
    L, U = np.flatnonzero(t), np.flatnonzero(t == 0)
    f, D = t.astype(float), plain_laplacian(W)
    f[U] = np.linalg.solve(D[np.ix_(U, U)], W[np.ix_(U, L)] @ t[L])
    return f


def square_distances(X):
    """‖x_i − x_j‖² of all pairs of rows."""
    return np.sum((X[:, None, :] - X[None, :, :]) ** 2, axis=2)


def knn_weights(X, k, gamma=None):
    """Symmetric weights: 1, or exp(−gamma ‖x_i − x_j‖²), where one row is among the k nearest."""
    D = square_distances(X)
    np.fill_diagonal(D, np.inf)
    joined = np.zeros(D.shape, dtype=bool)
    np.put_along_axis(joined, np.argsort(D, axis=1, kind="stable")[:, :k], True, axis=1)
    joined |= joined.T
    return np.where(joined, 1.0 if gamma is None else np.exp(-gamma * D), 0.0)


def radius_weights(X, radius, gamma=None):
    """The same for pairs of rows at a distance of at most ``radius``."""
    D = square_distances(X)
    joined = radius**2 >= D
    np.fill_diagonal(joined, False)
    return np.where(joined, 1.0 if gamma is None else np.exp(-gamma * D), 0.0)


def explicit(graph):
    """The `Graph` of a complete one, edge by edge."""
    edges = [
        (i, j)
        for i in range(graph.n)
        for j in range(i + 1, graph.n)
        if graph.labeled is None or not (graph.labeled[i] and graph.labeled[j])
    ]
    i, j = np.array(edges).T
    square = np.sum((graph.X[i] - graph.X[j]) ** 2, axis=1)
    weights = np.ones(len(edges)) if graph.gamma is None else np.exp(-graph.gamma * square)
    return Graph(graph.n, i, j, weights)


# --- Building graphs ------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [None, 0.3])
@pytest.mark.parametrize("k", [1, 4, 39, 100])
def test_nearest_neighbors_by_brute_force(k, gamma):
    graph = knn_graph(X, k, weights="binary" if gamma is None else "gaussian", gamma=gamma)
    expected = knn_weights(X, min(k, 39), gamma)
    assert_allclose(graph.adjacency().toarray(), expected, atol=1e-14)
    assert graph.n_edges == np.count_nonzero(expected) // 2
    assert_allclose(graph.adjacency().sum() / 2, expected.sum() / 2)
    assert np.all(graph.i < graph.j)


@pytest.mark.parametrize("gamma", [None, 0.3])
@pytest.mark.parametrize("radius", [0.2, 1.0, 50.0])
def test_radius_by_brute_force(radius, gamma):
    graph = radius_graph(X, radius, weights="binary" if gamma is None else "gaussian", gamma=gamma)
    expected = radius_weights(X, radius, gamma)
    assert_allclose(graph.adjacency().toarray(), expected, atol=1e-14)


@pytest.mark.parametrize("d", [2, 20])
@pytest.mark.parametrize("shift", [2.0**10, 2.0**20, 2.0**30])
def test_graphs_do_not_depend_on_the_origin(shift, d):
    X = np.round(np.random.default_rng(0).standard_normal((40, d)) * 2**20) / 2**20
    far = X + shift  # exactly
    for build in (lambda X: knn_graph(X, 25), lambda X: radius_graph(X, 0.9 * np.sqrt(2 * d))):
        here, there = build(X), build(far)
        assert_array_equal(here.i, there.i)
        assert_array_equal(here.j, there.j)
        assert_allclose(here.weights, there.weights, rtol=1e-10)
    expected = knn_weights(X, 25, None)
    assert_allclose(knn_graph(far, 25, weights="binary").adjacency().toarray(), expected)


@pytest.mark.parametrize(
    "build",
    [lambda X, **o: knn_graph(X, 5, **o), lambda X, **o: radius_graph(X, 1.0, **o)],
    ids=["knn", "radius"],
)
def test_the_same_graph_by_every_road(build):
    expected = build(X)
    distances = np.sqrt(square_distances(X))
    wide = np.c_[X, np.zeros((40, 20))]  # compared pair by pair, where few dimensions take trees
    for other in (build(sp.csr_matrix(X)), build(wide), build(distances, metric="precomputed")):
        assert_array_equal(other.i, expected.i)
        assert_array_equal(other.j, expected.j)
        assert_allclose(other.weights, expected.weights, rtol=1e-6)
    order = np.random.default_rng(2).permutation(40)
    assert_allclose(
        build(X[order]).adjacency().toarray(), expected.adjacency().toarray()[order][:, order]
    )


def test_the_default_width_is_the_mean_length_of_the_edges():
    graph = knn_graph(X, 5)
    length = np.linalg.norm(X[graph.i] - X[graph.j], axis=1)
    assert_allclose(graph.weights, np.exp(-(length**2) / (2 * length.mean() ** 2)))
    scaled = knn_graph(1000 * X, 5)
    assert_allclose(scaled.weights, graph.weights)


@pytest.mark.parametrize(
    "build",
    [lambda **o: knn_graph(X, 6, **o), lambda **o: radius_graph(X, 1.5, **o)],
    ids=["knn", "radius"],
)
def test_labeled_rows_are_not_joined_on_request(build):
    both, without = build(weights="binary"), build(weights="binary", labeled=LABELED)
    pair = LABELED[both.i] & LABELED[both.j]
    assert pair.any()
    assert_array_equal(without.i, both.i[~pair])
    assert_array_equal(without.j, both.j[~pair])


def test_vanishing_weights_remain_edges():
    graph = knn_graph(X, 5, gamma=1e6)
    assert graph.n_edges == knn_graph(X, 5, weights="binary").n_edges
    assert np.all(graph.weights > 0)


def test_weights_that_are_given():
    W = np.zeros((4, 4))
    W[0, 1], W[1, 0], W[2, 1], W[3, 3] = 2.0, 3.0, 0.5, 9.0
    for form in (W, sp.csr_matrix(W), sp.coo_array(W)):
        graph = graph_from_weights(form)
        assert_array_equal(graph.i, [0, 1])
        assert_array_equal(graph.j, [1, 2])
        assert_array_equal(graph.weights, [3.0, 0.5])
    graph = graph_from_weights(W, np.array([True, True, False, False]))
    assert_array_equal(graph.i, [1])
    back = graph_from_weights(knn_graph(X, 4).adjacency())
    assert_array_equal(back.weights, knn_graph(X, 4).weights)


@pytest.mark.parametrize(
    ("W", "message"),
    [
        (np.ones((3, 2)), r"square matrix, got shape \(3, 2\)"),
        (-np.ones((3, 3)), "finite and non-negative"),
        (np.full((3, 3), np.nan), "finite and non-negative"),
    ],
)
def test_bad_weights(W, message):
    with pytest.raises(ValueError, match=message):
        graph_from_weights(W)


def test_unknown_names_of_weights():
    with pytest.raises(ValueError, match=r"weights must be one of .*got 'heat'"):
        knn_graph(X, 3, weights="heat")


@pytest.mark.parametrize("n", [1, 2])
def test_the_smallest_graphs(n):
    for graph in (knn_graph(X[:n], 5), radius_graph(X[:n], 100.0)):
        assert graph.n_edges == n - 1
        assert laplacian(graph).energy(np.ones(n)) == 0
        assert graph.energy(np.arange(n)) == pytest.approx(graph.adjacency().sum() / 2)


# --- Copies of rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "csr", "stored zeros", "distances"])
def test_identical_rows_are_found(form):
    rows = np.random.default_rng(3).integers(0, 2, (30, 3)).astype(float)
    rows[rows == 0] *= -1.0  # zeros of either sign
    rows[::2] += 0.0
    _, expected = np.unique(rows, axis=0, return_inverse=True)
    if form == "distances":
        index, first = distinct_rows(np.sqrt(square_distances(rows)), "precomputed")
    elif form == "stored zeros":
        at = np.nonzero((rows != 0) | (np.arange(30)[:, None] % 3 == 0))
        given = sp.csr_matrix((rows[at], at), rows.shape)
        index, first = distinct_rows(given)
        assert given.nnz == at[0].size > np.count_nonzero(rows)  # as it was
    else:
        index, first = distinct_rows(sp.csr_matrix(rows) if form == "csr" else rows)
    assert len(index) == len(np.unique(expected)) < 30
    assert_array_equal(np.ravel(expected)[first], np.ravel(expected))
    assert_array_equal(np.unique(first), index)
    assert np.all(first <= np.arange(30))


def test_copies_of_a_row_have_no_edges():
    rows = np.array([[0.0], [0.0], [1.0], [1.0], [3.0]])
    graph = NeighborGraph(1, weights="binary").build(rows)
    assert graph.n == 5
    assert_array_equal(graph.i, [0, 2])
    assert_array_equal(graph.j, [2, 4])


# --- Rules for graphs -----------------------------------------------------------------------------


def test_what_a_rule_builds():
    kernel = Kernel("rbf", 0.7)
    built = NeighborGraph(4, gamma="kernel").build(X, LABELED, kernel)
    expected = knn_graph(X, 4, gamma=0.7, labeled=LABELED)
    assert_array_equal(built.i, expected.i)
    assert_allclose(built.weights, expected.weights)
    assert NeighborGraph().build(X).n_edges == knn_graph(X, 5).n_edges
    near = NeighborGraph(radius=1.0, weights="binary").build(sp.csr_matrix(X))
    assert_array_equal(near.i, radius_graph(X, 1.0).i)
    # A linear kernel has no gamma: the lengths of the edges decide.
    widths = NeighborGraph(4, gamma="kernel").build(X, kernel=Kernel("linear"))
    assert_allclose(widths.weights, knn_graph(X, 4).weights)
    K = X @ X.T
    gram = NeighborGraph(4).build(K, kernel=Kernel("precomputed"))
    assert_array_equal(gram.j, knn_graph(X, 4).j)


def test_copies_are_one_vertex_of_what_a_rule_builds():
    rows, n = np.r_[X, X[:6]], len(X)
    labeled = np.r_[np.zeros(n, bool), np.ones(6, bool)]
    for kernel, given in ((None, rows), (Kernel("precomputed"), rows @ rows.T)):
        graph = NeighborGraph(4).build(given, labeled, kernel)
        assert graph.n == n + 6 and max(graph.i.max(), graph.j.max()) < n
        assert not np.any((graph.i < 6) & (graph.j < 6))  # the label of a copy counts


def test_a_rule_that_joins_all_pairs():
    graph = NeighborGraph("all").build(X, LABELED)
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    assert_allclose(graph.gamma, 0.5 / squares.mean())
    assert graph.labeled is LABELED
    assert NeighborGraph("all", weights="binary").build(sp.csr_matrix(X)).gamma is None
    with pytest.raises(ValueError, match="needs the rows"):
        NeighborGraph("all").build(X @ X.T, kernel=Kernel("precomputed"))
    wide = sp.csr_matrix((2000, 10**8))
    for weights in ("gaussian", "binary"):
        with pytest.raises(ValueError, match=r"2000 sparse rows of 100000000 col.* 1.6e\+03 GB"):
            NeighborGraph("all", weights=weights).build(wide)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(n_neighbors=0), "'n_neighbors' parameter of NeighborGraph"),
        (dict(n_neighbors="none"), "'n_neighbors' parameter of NeighborGraph"),
        (dict(radius=0.0), "'radius' parameter of NeighborGraph"),
        (dict(n_neighbors=3, radius=1.0), "only one of n_neighbors and radius"),
        (dict(weights="cosine"), "'weights' parameter of NeighborGraph"),
        (dict(gamma=-1.0), "'gamma' parameter of NeighborGraph"),
    ],
    ids=repr,
)
def test_bad_rules_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        NeighborGraph(**arguments)


# --- Energies and Laplacians ----------------------------------------------------------------------

GRAPHS = {
    "knn": knn_graph(X, 5),
    "without labeled pairs": knn_graph(X, 5, labeled=LABELED),
    "complete": CompleteGraph(X, 0.4),
    "complete without labeled pairs": CompleteGraph(X, 0.4, LABELED),
    "complete with weights 1": CompleteGraph(X, None, LABELED),
}


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_energies_and_their_slopes(name, power):
    graph = GRAPHS[name]
    edges = explicit(graph) if isinstance(graph, CompleteGraph) else graph
    expected = np.sum(edges.weights * np.abs(F[edges.i] - F[edges.j]) ** power)
    assert graph.n_edges == edges.n_edges
    assert_allclose(graph.adjacency().sum() / 2, edges.adjacency().sum() / 2)
    assert_allclose(graph.energy(F, power), expected)
    assert_allclose(plain_energy(edges.adjacency().toarray(), F, power), expected)
    assert_allclose(graph.energy(F + 7, power), expected)

    def value_and_gradient(f):
        return graph.energy(f, power), graph.energy_gradient(f, power)

    assert gradient_error(value_and_gradient, F, 1e-6 if power < 2 else 1e-4) < 1e-7
    assert not graph.energy_gradient(np.ones(40), power).any()  # 0 at the kink


@pytest.mark.parametrize("name", GRAPHS)
def test_some_vertices_of_a_graph(name):
    graph, rows = GRAPHS[name], np.array([0, 2, 3, 7, 11, 20])
    part = graph.induced(rows)
    left, right = part.adjacency(), graph.adjacency()[rows][:, rows]
    assert part.n == 6
    assert_allclose(np.abs(left - right).max(), 0, atol=1e-14)


def test_blocks_of_a_complete_graph(monkeypatch):
    graph = CompleteGraph(X, 0.4, LABELED)
    expected = graph.energy(F, 1.5), graph.energy_gradient(F, 1.5), graph.adjacency()
    monkeypatch.setattr("s3vm_lib.graphs._edges._CHUNK", 130)
    for found, whole in zip(
        (graph.energy(F, 1.5), graph.energy_gradient(F, 1.5), graph.adjacency()),
        expected,
        strict=True,
    ):
        assert_allclose(found, whole)


@pytest.mark.parametrize("power", [1.0, 1.3, 2.0, 3.0])
def test_the_slope_of_a_power(power):
    for d in (-1.7, -0.2, 0.4, 2.0):
        h = 1e-6
        difference = (abs(d + h) ** power - abs(d - h) ** power) / (2 * h)
        assert_allclose(power_slope(d, power), difference, rtol=1e-8)
    assert power_slope(0.0, power) == 0


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("name", ["knn", "without labeled pairs", "complete"])
def test_laplacians(name, normalized, degree):
    graph = GRAPHS[name]
    W = graph.adjacency()
    W = W if isinstance(W, np.ndarray) else W.toarray()
    dense = np.linalg.matrix_power(plain_laplacian(W, normalized), degree)
    lap = laplacian(graph, normalized, degree)
    assert sp.issparse(lap.matrix) == (name != "complete")
    assert lap.n_edges == graph.n_edges
    assert lap.n == 40
    V = np.random.default_rng(4).standard_normal((40, 3))
    scale = np.abs(dense).sum(axis=1).max()
    assert_allclose(lap.product(V), dense @ V, atol=1e-13 * scale)
    assert_allclose(lap.product(F), dense @ F, atol=1e-13 * scale)
    assert_allclose(lap.energy(F), F @ dense @ F)
    assert_allclose(lap.energy_gradient(F), 2 * dense @ F, atol=1e-13 * scale)
    null = np.sqrt(W.sum(axis=1)) if normalized else np.ones(40)
    assert lap.energy(null) < 1e-12 * scale
    if degree == 1:
        values = np.linalg.eigvalsh(dense)
        assert values[0] > -1e-12
        assert np.sum(values < 1e-10) == connected_components(W)[0]
        if normalized:
            assert values[-1] <= 2 + 1e-12
        else:
            assert_allclose(lap.energy(F), graph.energy(F))


def test_vertices_without_edges():
    graph = Graph(4, np.array([0]), np.array([2]), np.array([2.0]))
    for normalized in (False, True):
        L = laplacian(graph, normalized).matrix.toarray()
        assert_array_equal(L[[1, 3]], 0)
        assert np.all(np.isfinite(L))


def test_the_energy_of_a_laplacian_has_power_two():
    lap = laplacian(knn_graph(X, 5))
    assert isinstance(lap, Laplacian)
    for method in (lap.energy, lap.energy_gradient):
        with pytest.raises(ValueError, match=r"power must be 2 .*got 1"):
            method(F, 1)


def test_harmonic_outputs_are_means_of_their_neighbors():
    W = knn_weights(X, 6, 0.5)
    t = np.where(LABELED, np.where(np.arange(40) % 8 == 0, 1.0, -1.0), 0.0)
    f = plain_harmonic(W, t)
    assert_array_equal(f[LABELED], t[LABELED])
    mean = W @ f / W.sum(axis=1)
    assert_allclose(f[~LABELED], mean[~LABELED])
    assert np.all(np.abs(f) <= 1 + 1e-12)
    rng = np.random.default_rng(5)
    for _ in range(20):
        other = f + np.where(LABELED, 0, 0.1 * rng.standard_normal(40))
        assert plain_energy(W, other) > plain_energy(W, f)


# --- Edges drawn at random ------------------------------------------------------------------------


@njit
def draw(sampler, key, count, first, second, factor):
    for t in range(count):
        first[t], second[t], factor[t] = sample_edge(sampler, key, t)


def draws(sampler, count, seed=0):
    arrays = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count)
    draw(sampler, hash_key(seed, 3), count, *arrays)
    return arrays


@pytest.mark.parametrize("proportional", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_edges_are_drawn_with_the_right_frequencies(name, proportional):
    graph = GRAPHS[name]
    if isinstance(graph, CompleteGraph):
        if proportional:
            with pytest.raises(ValueError, match="complete graph cannot be drawn in proportion"):
                edge_sampler(graph, True)
            return
        edges = explicit(graph)
    else:
        edges = graph
    count = 100_000
    i, j, factor = draws(edge_sampler(graph, proportional), count)
    key = np.minimum(i, j) * 40 + np.maximum(i, j)
    place = np.searchsorted(edges.i * 40 + edges.j, key)
    assert_array_equal((edges.i * 40 + edges.j)[place], key)  # an edge of the graph each time
    share = edges.weights / edges.weights.sum() if proportional else 1 / edges.n_edges
    observed = np.bincount(place, minlength=edges.n_edges)
    assert chisquare(observed, np.broadcast_to(count * share, observed.shape)).pvalue > 1e-3
    expected = edges.weights.mean() if proportional else edges.weights[place]
    assert_allclose(factor, np.broadcast_to(expected, count), rtol=1e-12)


@pytest.mark.parametrize("proportional", [False, True])
def test_draws_are_unbiased_and_fall_in_variance_where_most_weights_vanish(proportional):
    graph = knn_graph(X, 8, gamma=4.0)
    i, j, factor = draws(edge_sampler(graph, proportional), 200_000, seed=1)
    sample = factor * np.abs(F[i] - F[j]) ** 3
    mean, error = sample.mean(), sample.std() / np.sqrt(sample.size)
    assert abs(mean - graph.energy(F, 3) / graph.n_edges) < 4 * error
    uniform = draws(edge_sampler(graph), 200_000, seed=1)
    spread = np.std(uniform[2] * np.abs(F[uniform[0]] - F[uniform[1]]) ** 3)
    assert not proportional or sample.std() < 0.7 * spread


def test_draws_are_a_function_of_key_and_counter():
    sampler = edge_sampler(knn_graph(X, 5), proportional=True)
    assert_array_equal(draws(sampler, 500)[0], draws(sampler, 900)[0][:500])
    assert np.any(draws(sampler, 500, seed=1)[0] != draws(sampler, 500)[0])


def test_a_graph_without_edges_has_none_to_draw():
    for graph in (radius_graph(X, 1e-9), CompleteGraph(X, 1.0, np.ones(40, bool))):
        assert graph.n_edges == 0
        with pytest.raises(ValueError, match="no edges"):
            edge_sampler(graph)
