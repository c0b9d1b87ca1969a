"""The GKM: lazy form, rate, theory, graphs, regression, more rows."""

import pickle
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from s3vm_book.gkm import sharpened, smallest_norm_bound
from s3vm_lib import BGS3VM, GKM, SVM, GKMRegressor
from s3vm_lib.graph_kernel_machine import (
    draw_edges,
    draw_labeled,
    largest_C_graph,
    solve_gkm,
    theorem_bounds,
)
from s3vm_lib.graph_kernel_machine._solver import _worse
from s3vm_lib.graphs import CompleteGraph, NeighborGraph, edge_sampler, knn_graph
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.objective import Problem, evaluate
from s3vm_lib.reference import graph_kernel_machine as reference
from s3vm_lib.utils.random_numbers import hash_key

COMPLETE = NeighborGraph("all")
GRAPHS = (NeighborGraph(), NeighborGraph(radius=0.3), COMPLETE)
LOSSES = ("hinge", "squared_hinge", "smooth_hinge", "logistic", "l1", "epsilon_insensitive")


class Instance:
    """Sixty rows, twenty of them labeled, with a 5-NN graph."""

    def __init__(self, n=60, l=20, gamma=0.5):
        rng = np.random.default_rng(0)
        self.X = rng.standard_normal((n, 3))
        self.t = np.sign(self.X[:, 0] + 0.3 * rng.standard_normal(n))
        self.labeled = np.arange(n) < l
        self.weight = np.ones(n)
        self.kernel = Kernel("rbf", gamma)
        self.K = self.kernel.gram(self.X)
        self.graph = knn_graph(self.X, 5, labeled=self.labeled)

    def problem(self, loss="hinge", p=2.0, C=2.0, C_graph=0.3, bias="regularized"):
        C /= self.labeled.sum()
        return Problem(
            LabeledLoss(loss), C=C, kernel=self.kernel, bias=bias, C_graph=C_graph,
            graph=self.graph, power=p,
        )  # fmt: skip

    def solve(self, problem, graph=None, sampler=None, **options):
        sampler = edge_sampler(self.graph) if sampler is None else sampler
        arguments = (self.X, self.t, self.labeled, self.weight, problem, sampler)
        return solve_gkm(*arguments, **{"seed": 3, "single": False, **options})

    def draws(self, T, seed=3):
        """The rows and edges of the solver, for the twin."""
        rows, i, j = np.empty((3, T), np.int64)
        draw_labeled(np.cumsum(self.weight[self.labeled]), hash_key(seed, 0), 0, rows)
        draw_edges(edge_sampler(self.graph), hash_key(seed, 1), 0, i, j, np.empty(T))
        n = len(self.X)
        edges = np.searchsorted(self.graph.i * n + self.graph.j, i * n + j)
        return list(zip(rows, edges, strict=True))


@pytest.fixture(scope="module")
def instance():
    return Instance()


# --- The lazy form --------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_lazy_form_is_the_dense_recursion(instance, loss, p):
    problem = instance.problem(loss, p, C=1.0, C_graph=0.3 if p <= 2 else 0.01)
    T = 700
    found = instance.solve(problem, max_iter=T)
    edges = np.c_[instance.graph.i, instance.graph.j]
    average, last = reference.fit(
        instance.K + 1, instance.t, edges, instance.graph.weights, 1.0, problem.C_graph, p,
        instance.draws(T), loss,
    )  # fmt: skip
    assert_allclose(found.beta, average, atol=1e-8)
    assert_allclose(found.last, last, atol=1e-8)
    assert_allclose([found.b, found.last_b], [average.sum(), last.sum()], atol=1e-8)
    single = instance.solve(problem, max_iter=T, single=True)
    assert_allclose(single.beta, average, atol=1e-6)


@pytest.mark.parametrize(
    ("p", "C", "C_graph", "radius"), [(2, 50, 500, 3), (3, 512, 512, 30), (1.5, 100, 1e3, 10)]
)
def test_lazy_form_with_projection(instance, p, C, C_graph, radius):
    problem = instance.problem("squared_hinge", p, C=C, C_graph=C_graph)
    found = instance.solve(problem, max_iter=700, radius=radius)
    edges = np.c_[instance.graph.i, instance.graph.j]
    average, last = reference.fit(
        instance.K + 1, instance.t, edges, instance.graph.weights, C, C_graph, p,
        instance.draws(700), "squared_hinge", radius=radius,
    )  # fmt: skip
    assert_allclose(found.beta, average, atol=1e-8 * np.abs(average).max())
    assert_allclose(found.last, last, atol=1e-8 * np.abs(last).max())
    norm = np.sqrt(last @ (instance.K + 1) @ last)
    assert norm <= radius * (1 + 1e-9)


def test_the_printed_average_lags_one_step_behind(instance):
    """Lemma 1 holds for the average of the old iterates, not for line 5 as printed."""
    edges, weights = np.c_[instance.graph.i, instance.graph.j], instance.graph.weights
    arguments = (instance.K + 1, instance.t, edges, weights, 1.0, 0.3, 2.0)
    draws = instance.draws(40)
    iterates = [reference.fit(*arguments, draws[:t])[1] for t in range(40)]  # w_1, ..., w_40
    average = reference.fit(*arguments, draws)[0]
    lemma = sum((t + 1) * w for t, w in enumerate(iterates)) * 2 / (40 * 41)
    assert_allclose(average, lemma, atol=1e-12)
    printed = reference.fit(*arguments, draws, printed=True)[0]
    assert np.abs(printed - lemma).max() > 1e-3


@pytest.mark.parametrize("bias", ["regularized", "none"])
def test_result_does_not_depend_on_windows_or_looks(instance, bias):
    problem = instance.problem(bias=bias)
    expected = instance.solve(problem, max_iter=900)
    for options in (dict(width=1), dict(width=7), dict(first=10), dict(first=900, width=900)):
        found = instance.solve(problem, max_iter=900, **options)
        assert_allclose(found.beta, expected.beta, atol=1e-13)
        assert_allclose(found.b, expected.b, atol=1e-13)
    assert (expected.b == 0) == (bias == "none")


def test_norms_and_objectives_reported_along_the_way(instance):
    problem = instance.problem()
    T = 60
    found = instance.solve(problem, max_iter=T, first=15)
    edges, weights = np.c_[instance.graph.i, instance.graph.j], instance.graph.weights
    K1, draws = instance.K + 1, instance.draws(T)
    arguments = (K1, instance.t, edges, weights, 2.0, 0.3, 2.0)
    norms, gradients, values = [], [], []
    w = np.zeros(60)
    for t in range(1, T + 1):
        new = reference.fit(*arguments, draws[:t])[1]
        g = (t + 1) / 2 * (w - new)
        norms.append(np.sqrt(w @ K1 @ w))
        gradients.append(np.sqrt(g @ K1 @ g))
        i, e = draws[t - 1]
        d = (K1[edges[e, 0]] - K1[edges[e, 1]]) @ w
        loss = max(0, 1 - instance.t[i] * (K1[i] @ w))
        values.append(0.5 * norms[-1] ** 2 + 2.0 * loss + 0.3 * weights[e] * d**2)
        w = new
    assert [stretch.n_iter for stretch in found.history] == [15, 30, 60]
    for start, stretch in zip((0, 15, 30), found.history, strict=True):
        assert_allclose(stretch.norm, max(norms[: stretch.n_iter]))
        assert_allclose(stretch.gradient, max(gradients[: stretch.n_iter]))
        assert_allclose(stretch.objective, np.mean(values[start : stretch.n_iter]))


@pytest.mark.parametrize(("loss", "scale"), [("l1", 20.0), ("hinge", 0.05)])
def test_change_is_relative_to_the_outputs_or_to_targets_that_are_larger(loss, scale):
    instance = Instance()
    instance.t *= scale
    problem = instance.problem(loss, C=20.0)
    outputs = []
    for T in (100, 200):
        found = instance.solve(problem, max_iter=T, first=100)
        outputs.append(instance.K @ found.beta + found.b)
    before, after = outputs
    size = np.sqrt(np.mean(after**2))
    assert size < scale / 2 if loss == "l1" else size > 1.5 * scale
    expected = np.sqrt(np.mean((after - before) ** 2)) / max(size, scale)
    assert [stretch.change for stretch in found.history] == [np.inf, pytest.approx(expected)]


def test_labeled_rows_count_by_their_weights():
    """Without a graph ∇J = 0 reads α_i = −C s_i ℓ'(t_i, f_i)."""
    instance = Instance()
    instance.weight[::2] = 4.0
    problem = instance.problem("logistic", C=20.0, C_graph=0.0)
    found = instance.solve(problem, max_iter=40_000, first=40_000)
    l, s = instance.labeled, instance.weight[instance.labeled]
    f, t = instance.K[l] @ found.beta + found.b, instance.t[l]
    assert_allclose(found.beta[l], problem.C * s * t / (1 + np.exp(t * f)), rtol=0.25)


def test_edges_in_proportion_to_their_weights_have_the_same_solution(instance):
    problem = instance.problem("logistic", 2.0, C=1.0, C_graph=1.0)
    uniform = instance.solve(problem, max_iter=60_000, first=60_000)
    sampler = edge_sampler(instance.graph, proportional=True)
    weighted = instance.solve(problem, sampler=sampler, max_iter=60_000, first=60_000)
    K = instance.K
    assert_allclose(K @ weighted.beta + weighted.b, K @ uniform.beta + uniform.b, atol=0.02)
    assert np.abs(weighted.beta - uniform.beta).max() > 1e-6


# --- The rate -------------------------------------------------------------------------------------


def optimum(instance, problem, smooth):
    """J* by a solver of its own: L-BFGS for smooth problems, cvxpy for others."""
    K1, l = instance.K + 1, instance.labeled
    i, j, mu = instance.graph.i, instance.graph.j, instance.graph.weights
    weight = problem.C_graph / i.size * mu
    if smooth:

        def value(c):
            f = K1 @ c
            d = f[i] - f[j]
            a = np.zeros(c.size)
            a[l] = problem.C * problem.labeled_loss.derivative(instance.t[l], f[l])
            slope = weight * problem.power * np.sign(d) * np.abs(d) ** (problem.power - 1)
            np.add.at(a, i, slope)
            np.add.at(a, j, -slope)
            loss = problem.C * problem.labeled_loss.value(instance.t[l], f[l]).sum()
            total = 0.5 * c @ f + loss + weight @ np.abs(d) ** problem.power
            return total, K1 @ (c + a)

        options = dict(maxiter=20_000, maxfun=40_000, ftol=1e-15, gtol=1e-9, maxcor=50)
        return minimize(value, np.zeros(len(K1)), jac=True, method="L-BFGS-B", options=options).fun
    cp = pytest.importorskip("cvxpy")
    L = np.linalg.cholesky(K1 + 1e-12 * np.eye(len(K1)))
    z = cp.Variable(len(K1))
    f = L @ z
    t = instance.t[l]
    losses = {
        "hinge": lambda: cp.sum(cp.pos(1 - cp.multiply(t, f[l]))),
        "squared_hinge": lambda: 0.5 * cp.sum(cp.square(cp.pos(1 - cp.multiply(t, f[l])))),
        "logistic": lambda: cp.sum(cp.logistic(-cp.multiply(t, f[l]))),
    }[problem.labeled_loss.name]()
    smoothness = cp.sum(cp.multiply(weight, cp.abs(f[i] - f[j]) ** problem.power))
    task = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(z) + problem.C * losses + smoothness))
    return task.solve(solver=cp.CLARABEL)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_rate_of_theorem_1(instance, loss, p):
    R, A, C = 1.0, np.sqrt(2.0), 1.0
    C_graph = min(1.0, largest_C_graph(C, p, R, A))
    problem = instance.problem(loss, p, C=C, C_graph=C_graph)
    best = optimum(instance, problem, smooth=loss == "logistic" and p > 1)
    bounds = theorem_bounds(C, C_graph, p, R, A)
    assert bounds.holds
    scaled = []
    for T in 2 ** np.arange(7, 16, 2):
        gaps = []
        for seed in range(3):
            found = instance.solve(problem, seed=seed, max_iter=int(T), first=int(T))
            f = instance.K @ found.beta + found.b
            norm2 = found.beta @ instance.K @ found.beta
            gaps.append(problem.value(f, instance.t * instance.labeled, norm2, found.b) - best)
            assert found.history[-1].norm <= bounds.M
            assert found.history[-1].gradient <= bounds.G
        assert min(gaps) > -1e-7
        scaled.append(T * np.mean(gaps))
    assert max(scaled) < 2 * bounds.G**2
    # Bounded, and not merely below a loose bound: no growth over two decades.
    assert scaled[-1] < 3 * scaled[0]


# --- Special cases --------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_laplacian_svm_is_a_special_case(instance, loss):
    """p = 2, γ_A = 1/(2 C l) and γ_I/n² = C'/(C l |E|) in Belkin's objective of means."""
    problem = instance.problem(loss, 2.0, C=1.0, C_graph=2.0, bias="none")
    n, l, m = 60, instance.labeled.sum(), instance.graph.n_edges
    gamma_A = 1 / (2 * problem.C * l)
    gamma_I = n**2 * problem.C_graph / (problem.C * l * m)
    cp = pytest.importorskip("cvxpy")
    W = instance.graph.adjacency().toarray()
    laplacian = np.diag(W.sum(axis=1)) - W
    K = instance.K
    L = np.linalg.cholesky(K + 1e-12 * np.eye(n))
    M = np.linalg.cholesky(laplacian + 1e-12 * np.eye(n))
    z = cp.Variable(n)
    short = cp.pos(1 - cp.multiply(instance.t[:l], (L @ z)[:l]))
    losses = cp.sum(short) if loss == "hinge" else 0.5 * cp.sum_squares(short)
    belkin = losses / l + gamma_A * cp.sum_squares(z)
    belkin += gamma_I / n**2 * cp.sum_squares(M.T @ (L @ z))
    value = cp.Problem(cp.Minimize(belkin)).solve(solver=cp.CLARABEL)
    found = instance.solve(problem, max_iter=100_000, first=100_000, radius=np.sqrt(2.0))
    f = K @ found.beta
    ours = problem.value(f, instance.t * instance.labeled, found.beta @ f)
    assert_allclose(2 * gamma_A * ours, value, rtol=5e-5)
    assert 2 * gamma_A * ours > value - 1e-7
    assert_allclose(f, L @ z.value, atol=0.02)


def test_without_a_graph_it_is_the_svm_with_a_regularized_offset(instance):
    problem = instance.problem(C=10.0, C_graph=0.0)
    found = instance.solve(problem, max_iter=60_000, first=60_000)
    l = instance.labeled
    svm = SVM(C=0.5, kernel="precomputed", tol=1e-8)
    # Adding 1 to the kernel; the free offset is then a second one.
    cp = pytest.importorskip("cvxpy")
    K1 = (instance.K + 1)[np.ix_(l, l)]
    z = cp.Variable(20)
    L = np.linalg.cholesky(K1 + 1e-12 * np.eye(20))
    hinge = cp.sum(cp.pos(1 - cp.multiply(instance.t[l], L @ z)))
    value = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(z) + 0.5 * hinge)).solve()
    f = instance.K @ found.beta + found.b
    norm2 = found.beta @ instance.K @ found.beta
    assert_allclose(problem.value(f, instance.t * l, norm2, found.b), value, rtol=3e-3)
    labels = (instance.t[l] > 0).astype(int)
    free = svm.fit(instance.K[np.ix_(l, l)], labels)
    assert free.objective_ <= value * (1 + 1e-6)


# --- Theory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
def test_the_constants_of_theorem_1(p):
    C, R, A = 3.0, 0.7, 1.3
    C_graph = min(0.4, largest_C_graph(C, p, R, A, share=0.8))
    found = theorem_bounds(C, C_graph, p, R, A)
    a, b = p * C_graph * (2 * R) ** p, C * A
    assert found.holds
    assert_allclose([found.a, found.b, found.R, found.A], [a, b, R, A])
    assert a * found.M ** (p - 1) + b <= found.M * (1 + 1e-9)  # what Lemma 3 needs
    # The largest norms of the three parts of a stochastic gradient.
    assert_allclose(found.G, found.M + C * A + p * C_graph * (2 * R) ** p * found.M ** (p - 1))


def test_conditions_of_theorem_1():
    assert theorem_bounds(5.0, 100.0, 1.9, 1.0, 1.0).holds
    assert theorem_bounds(1.0, 0.1249, 2, 1.0, 1.0).holds
    assert not theorem_bounds(1.0, 0.125, 2, 1.0, 1.0).holds
    edge = 1 / (96 * 7.0)  # the paper's (5) for p = 3
    assert theorem_bounds(7.0, edge, 3, 1.0, 1.0).holds
    assert not theorem_bounds(7.0, 1.01 * edge, 3, 1.0, 1.0).holds
    assert_allclose(largest_C_graph(7.0, 3, 1.0, 1.0), edge)
    assert not theorem_bounds(1.0, 0.01, 2, 1.0, np.inf).holds
    assert not theorem_bounds(0.0, 0.01, 2, 1.0, np.inf).holds


@pytest.mark.parametrize("p", [1.0, 1.3, 1.9, 2.0, 2.5, 3.0, 4.0])
def test_norm_bounds_satisfy_lemma_2_and_the_sharp_one_is_smaller(p):
    C, R, A = 3.0, 0.8, 1.2
    C_graph = min(2.0, 0.9 * largest_C_graph(C, p, R, A))
    loose = theorem_bounds(C, C_graph, p, R, A)
    sharp = sharpened(loose, p)
    for bounds in (loose, sharp):
        assert bounds.a * bounds.M ** (p - 1) - bounds.M + bounds.b <= 1e-8 * bounds.M
        assert bounds.G >= bounds.M
    assert sharp.M <= loose.M * (1 + 1e-9)
    assert smallest_norm_bound(0.0, 2.0, 3.0) == pytest.approx(2.0)
    assert smallest_norm_bound(2.0, 1.0, 2.0) == np.inf
    assert smallest_norm_bound(2.0, 1.0, 3.0) == np.inf


def half_moons(n=200, every=10, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    angle = np.pi * rng.random(n)
    X = np.c_[np.cos(angle), np.sin(angle)]
    X[truth == 1] = [1.0, 0.4] - X[truth == 1]
    X += 0.08 * rng.standard_normal(X.shape)
    return X, truth, np.where(np.arange(n) % every == 0, truth, -1)


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_weight_of_the_graph_by_the_rule_of_the_paper(power):
    X, _, y = half_moons()
    model = GKM(C=0.5, C_graph="paper", power=power, random_state=0, tol=10.0).fit(X, y)
    mean_C = 0.5 * (y >= 0).sum()
    expected = {1.0: mean_C, 2.0: 1 / 8, 3.0: 1 / (96 * mean_C)}[power]
    assert_allclose(model.problem_.C_graph, expected)
    assert_allclose(model.bounds_.A, np.sqrt(2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(labeled_loss="zero_one"), "'labeled_loss' parameter"),
        (dict(graph=knn_graph(np.eye(4), 2)), "one vertex for each"),
        (dict(graph=np.ones((4, 4))), r"square matrix of one row .*got shape \(4, 4\)"),
        (dict(graph=NeighborGraph(3), n_neighbors=4), "n_neighbors must be None where graph"),
    ],
    ids=repr,
)
def test_bad_parameters(options, message):
    X, _, y = half_moons(60)
    with pytest.raises(ValueError, match=message):
        GKM(**options).fit(X, y)


def test_a_loss_with_a_parameter_of_its_own():
    X, _, y = half_moons(60)
    loss = LabeledLoss("smooth_hinge", 0.2)
    model = GKM(labeled_loss=loss, tol=10.0, random_state=0).fit(X, y)
    assert model.problem_.labeled_loss == loss != LabeledLoss("smooth_hinge")


def test_complete_graphs_refuse_what_has_no_meaning():
    X, _, y = half_moons(60)
    weight = np.where(np.arange(60) == 1, 2.0, 1.0)
    with pytest.raises(ValueError, match="sample_weight must be equal"):
        GKM(graph=COMPLETE).fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="needs the rows"):
        GKM(graph=COMPLETE, kernel="precomputed").fit(X @ X.T, y)


@pytest.mark.parametrize("graph", GRAPHS, ids=repr)
@pytest.mark.parametrize("sampling", ["uniform", "weight"])
def test_graphs(graph, sampling):
    X, truth, y = half_moons()
    options = dict(C=10.0, random_state=0, graph=graph, sampling=sampling)
    model = GKM(**options).fit(X, y)
    assert np.mean(model.predict(X) == truth) > 0.9
    labeled = y >= 0
    if graph == COMPLETE:
        assert isinstance(model.graph_, CompleteGraph)
        assert model.graph_.n_edges == 200 * 199 // 2 - 20 * 19 // 2
    else:
        assert not np.any(labeled[model.graph_.i] & labeled[model.graph_.j])
    assert_allclose(model.objective_, evaluate(model, X, y, model.problem_).objective, rtol=1e-5)
    W = model.graph_.adjacency()
    for kind in (model.graph_, *(() if graph == COMPLETE else (W, W.toarray()))):
        given = GKM(**{**options, "graph": kind}).fit(X, y)
        assert_array_equal(given.decision_function(X), model.decision_function(X))
    weight = np.where(np.arange(200) == 150, 0.0, 1.0)
    without = GKM(**{**options, "graph": model.graph_}).fit(X, y, sample_weight=weight)
    left, cut = without.graph_.adjacency(), W[weight > 0][:, weight > 0]
    assert_allclose(np.abs(left - cut).max(), 0, atol=1e-12)
    sparse = GKM(**options).fit(sp.csr_matrix(X), y)
    assert_allclose(sparse.decision_function(X), model.decision_function(X), atol=1e-3)


def test_projection_keeps_a_wild_problem_in_bounds():
    X, _, y = half_moons()
    wild = dict(C=10.0, C_graph=1000.0, power=3.0, random_state=0, max_iter=4000, tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GKM(**wild).fit(X, y)
    assert not model.bounds_.holds
    radius = np.sqrt(2 * 10 * 20)  # J(0) = C l with the hinge
    assert_allclose(model.history_[-1].norm, radius, rtol=1e-9)
    # J(0) is what the zero function has: SGD must have found something better.
    assert np.isfinite(model.objective_)
    zero = model.problem_.value(np.zeros(200), np.where(y < 0, 0.0, 2.0 * y - 1), 0.0)
    assert_allclose(zero, radius**2 / 2)


@pytest.mark.parametrize("Estimator", [GKM, BGS3VM])
@pytest.mark.parametrize("C", [1e4, 1e8])
def test_what_is_worse_than_no_function_has_not_converged(Estimator, C):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.standard_normal((40, 2)) + y[:, None]
    y[16:] = -1
    for gamma in (1e-4, 1.0):
        options = dict(C=C, gamma=gamma, random_state=0, max_iter=8000)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = Estimator(**options).fit(X, y)
        if model.termination_condition_ == "converged":
            assert model.objective_ <= 1.1 * 16 * C
        else:
            assert any(w.category is ConvergenceWarning for w in caught)
            assert model.n_iter_ == 8000


def test_what_is_worse_than_no_function_is_a_matter_of_weights():
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(200):
        problem = Problem(LabeledLoss("hinge"), C=10.0 ** rng.uniform(-2, 2), bias="regularized")
        weight, t = 10.0 ** rng.uniform(-3, 3, 6), rng.choice([-1.0, 1.0], 6)
        f, norm2 = (
            0.7 * rng.standard_normal(6) + 0.4 * t,
            2.0 * problem.C * weight.sum() * rng.random(),
        )
        found = SimpleNamespace(outputs=lambda rows, f=f: f, norm2=lambda norm2=norm2: norm2)
        arguments = found, SimpleNamespace(objective=np.inf), 0.1, t, np.arange(6), weight, problem
        none = problem.value(np.zeros(6), t, 0.0, sample_weight=weight)
        answers.append(_worse(*arguments))
        assert answers[-1] == (problem.value(f, t, norm2, sample_weight=weight) > 1.1 * none)
    assert 50 < sum(answers) < 150


@pytest.mark.filterwarnings("ignore:.*max_iter")  # sixty steps show whether it is applied
@pytest.mark.parametrize("value", [True, False])
def test_projection_is_a_boolean_of_any_kind(value):
    X, _, y = half_moons(60)
    options = dict(C_graph=10.0, random_state=0, max_iter=60)
    found, expected = (
        GKM(projection=kind(value), **options).fit(X, y).history_[-1].norm
        for kind in (np.bool_, bool)
    )
    assert found == expected
    assert (found <= np.sqrt(2 * (y >= 0).sum()) * (1 + 1e-9)) == value


def test_weight_of_the_graph_by_rule():
    X, _, y = half_moons(60)
    assert_allclose(GKM(C=2.0, tol=10.0).fit(X, y).problem_.C_graph, 0.1 * (y >= 0).sum())
    for graph, share in zip(GRAPHS, (1.0, 1.0, 0.1), strict=True):
        model = GKM(C=2.0, C_graph="labels", graph=graph, tol=10.0, random_state=0).fit(X, y)
        assert_allclose(model.problem_.C_graph, share * 2 * (y >= 0).sum())


def test_what_was_computed_for_an_earlier_fit_is_not_served():
    X, _, y = half_moons()
    model = GKM(tol=10.0, random_state=0).fit(X, y)
    first = model.transduction_, model.objective_
    swapped = np.where(y < 0, -1, 1 - y)
    model.fit(X, swapped, sample_weight=np.full(len(y), 2.0))
    fresh = GKM(tol=10.0, random_state=0).fit(X, swapped, sample_weight=np.full(len(y), 2.0))
    assert_array_equal(model.transduction_, fresh.transduction_)
    assert model.objective_ == fresh.objective_ != first[1]
    assert np.any(model.transduction_ != first[0])


def test_objective_and_transduction_are_computed_when_asked_for():
    X, _, y = half_moons()
    model = GKM(random_state=0).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    value, labels = model.objective_, model.transduction_
    assert copy.objective_ == value
    assert_array_equal(copy.transduction_, labels)
    assert not hasattr(GKM(), "objective_")
    assert not hasattr(GKM(), "transduction_")


# --- More rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", GRAPHS, ids=repr)
def test_partial_fit_approaches_the_solution_for_all_rows(graph):
    X, truth, y = half_moons(300)
    graph = replace(graph, gamma=1.0)
    options = dict(C=1.0, C_graph=1.0, gamma=1.0, graph=graph)
    batch = GKM(tol=1e-3, random_state=0, max_iter=200_000, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        batch.fit(X, y)
    online = GKM(random_state=1, online_steps=5.0, **options)
    for start in range(0, 300, 60):
        if start == 240:
            online.set_params(online_steps=500.0)
        online.partial_fit(X[start : start + 60], y[start : start + 60], classes=[0, 1])
        assert online.transduction_.shape == (60,)
    assert online.n_iter_ == 240 * 5 + 60 * 500
    assert online.graph_.n == 300
    if graph.radius or graph.n_neighbors:  # neighbors of earlier rows are not looked for again
        assert online.graph_.n_edges == batch.graph_.n_edges
        assert_allclose(online.objective_, batch.objective_, rtol=0.02)
    problem = online.problem_
    assert_allclose(evaluate(online, X, y, problem).objective, online.objective_, rtol=1e-5)
    assert np.mean(online.predict(X) == truth) > 0.9


def test_partial_fit_joins_new_rows_to_their_nearest_neighbors():
    X, _, y = half_moons(80)
    y[60:] = -1
    model = GKM(n_neighbors=3, random_state=0).partial_fit(X[:60], y[:60])
    before = set(zip(model.graph_.i, model.graph_.j, strict=True))
    model.partial_fit(X[60:], y[60:])
    distances = np.linalg.norm(X[60:, None] - X, axis=2)
    nearest = np.argsort(distances, axis=1)[:, 1:4]  # the first is the row itself
    new = {(min(i, j), max(i, j)) for i in range(60, 80) for j in nearest[i - 60]}
    assert set(zip(model.graph_.i, model.graph_.j, strict=True)) == before | new


def test_neighbors_of_new_rows_do_not_depend_on_the_origin():
    X = np.round(np.random.default_rng(0).standard_normal((30, 20)) * 2**10) / 2**10
    y = np.r_[0, 1, np.full(28, -1)]
    graphs = []
    for shift in (0.0, 2.0**27):
        model = GKM(n_neighbors=4, gamma=0.1, random_state=0)
        for part in (slice(0, 12), slice(12, 30)):
            model.partial_fit(X[part] + shift, y[part], classes=[0, 1])
        graphs.append(model.graph_)
    assert_array_equal(graphs[0].i, graphs[1].i)
    assert_array_equal(graphs[0].j, graphs[1].j)
    assert_allclose(graphs[0].weights, graphs[1].weights, rtol=1e-10)


def test_a_complete_graph_of_batches_is_that_of_all_rows():
    X, _, y = half_moons(30, every=3)
    for rule in (COMPLETE, NeighborGraph("all", gamma="kernel")):
        for rows in (100 * X, sp.csr_matrix(100 * X)):
            model = GKM(graph=rule, gamma=0.1, random_state=0)
            for k in range(30):
                model.partial_fit(rows[k : k + 1], y[k : k + 1], classes=[0, 1])
            expected = rule.build(100 * X, y >= 0, Kernel("rbf", 0.1))
            assert model.graph_.gamma == expected.gamma
            assert_allclose(model.graph_.adjacency().sum(), expected.adjacency().sum())


@pytest.mark.parametrize("Estimator", [GKM, BGS3VM])
def test_batches_joined_to_all_rows_have_the_weights_of_a_fit(Estimator):
    X, _, y = half_moons(60)
    unequal = np.where(np.arange(60) == 1, 2.0, 1.0)
    message = "sample_weight must be equal"
    model = Estimator(graph=COMPLETE, class_weight={0: 3.0, 1: 5.0}, random_state=0)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, sample_weight=unequal)
    model.partial_fit(X, y, sample_weight=np.where(y < 0, 1.0, unequal + (y > 0)))
    expected = model.decision_function(X)
    with pytest.raises(ValueError, match=message):  # equal ones, but not those of the first call
        model.partial_fit(X, y, sample_weight=np.full(60, 2.0))
    assert_array_equal(model.decision_function(X), expected)
    model.partial_fit(X, y, sample_weight=np.where(y < 0, np.arange(60) % 2, 2.0))
    assert model.graph_.n == 60 + np.sum((y >= 0) | (np.arange(60) % 2 == 1))
    # Neighbors may have any, but not once all rows are to be joined.
    model = Estimator(random_state=0).partial_fit(X, y, sample_weight=unequal)
    with pytest.raises(ValueError, match=message):
        model.set_params(graph=COMPLETE).partial_fit(X, y)


@pytest.mark.parametrize("Estimator", [GKM, BGS3VM])
@pytest.mark.parametrize("start", ["fit", "partial_fit"])
def test_the_graph_may_change_to_all_pairs_and_back(Estimator, start):
    X, _, y = half_moons(60, every=3)
    model = Estimator(gamma=1.0, random_state=0)
    getattr(model, start)(X[:30], y[:30])
    model.set_params(graph=COMPLETE).partial_fit(X[30:45], y[30:45])
    expected = COMPLETE.build(X[:45], y[:45] >= 0)
    assert model.graph_.gamma == expected.gamma
    assert_allclose(model.graph_.adjacency().sum(), expected.adjacency().sum())
    model.set_params(graph=NeighborGraph(3)).partial_fit(X[45:], y[45:])
    expected = NeighborGraph(3).build(X, y >= 0)
    for name in ("i", "j", "weights"):
        assert_allclose(getattr(model.graph_, name), getattr(expected, name))
    assert np.all(np.isfinite(model.decision_function(X)))


def test_partial_fit_one_row_at_a_time():
    X, truth, y = half_moons(120, every=3)
    model = GKM(gamma=2.0, C=10.0, random_state=0, online_steps=2.5)
    for k in range(120):
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
    assert np.mean(model.predict(X) == truth) > 0.85
    # Half steps are kept for later; rows before the first label have no step.
    assert model.n_iter_ == 300


def test_partial_fit_goes_on_after_fit_and_fit_starts_over():
    X, _, y = half_moons(200)
    model = GKM(random_state=0).fit(X[:150], y[:150])
    steps, expected = model.n_iter_, model.decision_function(X)
    model.partial_fit(X[150:], y[150:])
    assert model.n_iter_ == steps + 50
    model.fit(X[:150], y[:150])
    assert model.n_iter_ == steps
    assert_array_equal(model.decision_function(X), expected)


def test_a_failed_call_changes_nothing():
    X, _, y = half_moons(200)

    def interrupt(state):
        raise KeyboardInterrupt

    def trained():
        model = GKM(random_state=0, gamma=1.0)
        return model.partial_fit(X[:100], y[:100], classes=[0, 1])

    model, other = trained(), trained()
    for bad in ((X[:5, :1], y[:5]), (X[:5], np.full(5, 7)), (X[:5] * np.nan, y[:5])):
        with pytest.raises(ValueError):
            model.partial_fit(*bad)
    model.set_params(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[100:150], y[100:150])
    model.set_params(callback=None)
    assert_array_equal(model.decision_function(X), other.decision_function(X))
    for part in (model, other):
        part.partial_fit(X[100:], y[100:])
    assert_array_equal(model.decision_function(X), other.decision_function(X))
    with pytest.raises(ValueError, match="a given graph has no place"):
        GKM(graph=knn_graph(X, 3)).partial_fit(X, y)
    with pytest.raises(ValueError, match="precomputed"):
        GKM(kernel="precomputed").partial_fit(X @ X.T, y)


def test_partial_fit_with_three_classes(semi_supervised):
    X, y = semi_supervised(n=150, n_labeled=45, n_classes=3)
    model = GKM(random_state=0, C=10.0, gamma=0.5, online_steps=10)
    for start in range(0, 150, 30):
        model.partial_fit(X[start : start + 30], y[start : start + 30], classes=[0, 1, 2])
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X[y >= 0], y[y >= 0]) > 0.9
    assert model.objective_.shape == (3,)


# --- Regression -----------------------------------------------------------------------------------


@pytest.mark.interface
@parametrize_with_checks(
    [GKMRegressor(random_state=0), GKMRegressor(random_state=0, labeled_loss="l1")],
    expected_failed_checks=lambda estimator: {
        f"check_sample_weight_equivalence_on_{kind}_data": "the check shuffles the copies, and "
        "rows are drawn by their position"
        for kind in ("dense", "sparse")
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def curve(n=120, every=4):
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-3, 3, n))[:, None]
    truth = 5 + np.sin(1.5 * X[:, 0])
    return X, truth, np.where(np.arange(n) % every == 0, truth, np.nan)


@pytest.mark.parametrize("loss", ["l1", "epsilon_insensitive"])
def test_regression(loss):
    X, truth, y = curve()
    options = dict(C=10.0, C_graph=0.1, labeled_loss=loss, epsilon=0.05, tol=0.02, random_state=0)
    model = GKMRegressor(**options).fit(X, y)
    assert np.abs(model.predict(X) - truth).max() < 0.25
    known = ~np.isnan(y)
    assert_array_equal(model.transduction_[known], y[known])
    assert_allclose(model.transduction_[~known], model.predict(X[~known]))
    masked = GKMRegressor(**options).fit(X, truth, unlabeled_mask=~known)
    assert_array_equal(masked.predict(X), model.predict(X))
    K = model.problem_.kernel.gram(model.support_vectors_)
    f, b = model.predict(X) - model.target_mean_, model.intercept_ - model.target_mean_
    value = 0.5 * model.dual_coef_ @ K @ model.dual_coef_ + 0.5 * b**2
    losses = model.problem_.labeled_loss.value(y[known] - model.target_mean_, f[known])
    value += 10 * losses.sum() + model.problem_.graph_term(f, b)
    assert_allclose(model.objective_, value, rtol=1e-8)


def test_regression_reaches_the_optimum():
    cp = pytest.importorskip("cvxpy")
    X, _, y = curve(40, 3)
    model = GKMRegressor(
        C=1.0, C_graph=2.0, power=1.0, precision="double", random_state=0, tol=1e-9, gamma=1.0,
        max_iter=50_000,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    known = ~np.isnan(y)
    K1 = model.problem_.kernel.gram(X) + 1
    L = np.linalg.cholesky(K1 + 1e-11 * np.eye(40))
    z = cp.Variable(40)
    f = L @ z
    graph = model.graph_
    value = 0.5 * cp.sum_squares(z)
    value += cp.sum(cp.pos(cp.abs(y[known] - model.target_mean_ - f[known]) - 0.1))
    value += 2 / graph.n_edges * graph.weights @ cp.abs(f[graph.i] - f[graph.j])
    best = cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL)
    assert best - 1e-6 < model.objective_ < best * 1.005


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full(30, np.nan), "at least one known target"),
        (np.full(30, np.inf), "infinity"),
        (None, "requires y"),
        (np.ones(29), "inconsistent"),
        (["a"] * 30, "convert|string"),
    ],
)
def test_bad_targets(y, message):
    with pytest.raises(ValueError, match=message):
        GKMRegressor().fit(np.arange(30.0)[:, None], y)


def test_regression_with_weights_and_gram_matrices():
    X, _, y = curve(60)
    weight = np.where(np.arange(60) % 3 == 0, 0.0, 2.0)
    graph = NeighborGraph(weights="binary")
    options = dict(random_state=0, precision="double", gamma=1.0, graph=graph, tol=10.0)
    weighted = GKMRegressor(**options).fit(X, y, sample_weight=weight)
    kept = weight > 0
    uneven, known = np.where(y > 5, 4.0, 1.0), ~np.isnan(y)
    mean = uneven[known] @ y[known] / uneven[known].sum()
    assert mean > y[known].mean() + 0.1
    model = GKMRegressor(**options).fit(X, y, sample_weight=uneven)
    assert_allclose(model.target_mean_, mean, rtol=1e-12)
    dropped = GKMRegressor(**options).fit(X[kept], y[kept], sample_weight=weight[kept])
    assert_allclose(weighted.predict(X), dropped.predict(X), atol=1e-12)
    assert set(weighted.support_) <= set(np.flatnonzero(kept))
    K = Kernel("rbf", 1.0).gram(X)
    gram = GKMRegressor(**{**options, "kernel": "precomputed"}).fit(K, y)
    rows = GKMRegressor(**options).fit(X, y)
    assert_allclose(gram.predict(K), rows.predict(X), atol=1e-6)
    with pytest.warns(ConvergenceWarning, match="max_iter=5") as record:
        GKMRegressor(max_iter=5).fit(X, y)
    assert record[0].filename == __file__


def test_targets_without_weight_say_nothing_of_what_is_small():
    """Changes are compared with the size of the targets, which is a weighted mean."""
    X, _, y = curve(60)
    weight = np.where(np.arange(60) % 3 == 0, 1e-20, 2.0)
    found = []
    for value in (0.0, 1e4):
        targets = np.where((weight < 1) & ~np.isnan(y), value, y)
        options = dict(random_state=0, gamma=1.0, tol=1e-9, max_iter=2000)
        with pytest.warns(ConvergenceWarning):
            found.append(GKMRegressor(**options).fit(X, targets, weight).history_)
    assert_allclose(*([stretch.change for stretch in one] for one in found), rtol=1e-6)


def test_weights_that_vanish_in_floating_point_are_edges_of_weight_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    X[10:] += 100
    graph = CompleteGraph(X, 1.0)
    sampler = GKM(sampling="weight")._sampler(graph)
    assert_allclose(sampler.mean * graph.n_edges, graph.adjacency().sum() / 2)
    assert GKM(sampling="weight")._sampler(CompleteGraph(100.0 * X[[0, 10]], 1.0)) is None


def test_a_short_fit_above_a_constant_says_so():
    """A thousand steps are few beside 38 rows, and J takes no time there."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(38, 1)), np.r_[np.arange(8) % 2, np.full(30, -1)]
    weight = 10.0 ** rng.uniform(-12, 12, 38)
    options = dict(gamma=0.86, C=0.01, C_graph="labels", random_state=0)
    with pytest.warns(UserWarning, match="while a constant output has"):
        model = GKM(max_iter=1000, **options).fit(X, y, sample_weight=weight)
    assert "objective" in model.findings_ and model.termination_condition_ != "converged"


def test_steps_that_overflow_end_in_one_clear_error():
    X, y = 7e10 + np.random.default_rng(0).normal(size=(115, 4)), np.arange(115) % 2
    y[58:] = -1
    options = dict(degree=2, gamma=0.07, coef0=1e3, C=10.0, C_graph="labels")
    model = GKM(kernel="poly", max_iter=20_000, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(FloatingPointError, match="left the range of floating point"):
            model.fit(X, y)
