"""Laplacian SVM: optima by cvxpy, the deformed kernel, duality gaps, early stops, low rank."""

from typing import get_args

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from s3vm_lib import GKM, SVM, LapSVM
from s3vm_lib.datasets import make_moons
from s3vm_lib.graphs import NeighborGraph, knn_graph, laplacian, radius_graph
from s3vm_lib.kernels import Kernel, pivoted_cholesky
from s3vm_lib.laplacian_svm import (
    COARSE,
    DeformedKernel,
    Watch,
    _estimator,
    melacci_penalties,
    solve_deformed,
    solve_pcg,
)
from s3vm_lib.laplacian_svm._deformed import LowRankDeformedKernel, best_offset, squared_hinge_duals
from s3vm_lib.laplacian_svm._estimator import choose_rank
from s3vm_lib.laplacian_svm._gradients import CoarseSpace, StoppingRule, duality_gap
from s3vm_lib.objective import evaluate
from s3vm_lib.reference import laplacian_svm as twin

RBF = Kernel("rbf", 0.3)


def clouds(n=50, labeled=12, d=3, distance=1.6, seed=0):
    """(X, t): two overlapping clouds, labels −1 and +1, 0 for unlabeled rows."""
    rng = np.random.default_rng(seed)
    t = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((n, d))
    X[:, 0] += distance / 2 * t
    t[labeled:] = 0
    return X, t


def labels(t):
    """Labels of estimators: classes 0 and 1, and −1 for unlabeled."""
    return np.where(t == 0, -1, (t > 0).astype(int))


def instance(C=3.0, C_graph=40.0, normalized=False, degree=1, kernel=RBF, **options):
    """(K, Laplacian, κ, labeled rows, their labels, weights u) of the clouds."""
    X, t = clouds(**options)
    lap = laplacian(knn_graph(X, 6, weights="binary"), normalized, degree)
    labeled = np.flatnonzero(t)
    weights = C * np.random.default_rng(1).uniform(0.5, 2, labeled.size)
    return kernel.gram(X), lap, C_graph / lap.n_edges, labeled, t[labeled], weights


def objective(K, lap, kappa, labeled, t, upper, c, b):
    """J of the squared hinge at the coefficients c."""
    f = K @ c
    slack = np.maximum(0, 1 - t * (f[labeled] + b))
    return 0.5 * c @ f + kappa * f @ lap.product(f) + 0.5 * upper @ slack**2


def gap_rule():
    """The default stopping rule."""
    return Watch("gap", np.empty(0, np.int64), np.empty(0), 10, 0.0)


def direct(K, lap, kappa, labeled, t, upper, tol=1e-13):
    """(solution, c, f) of the direct solver."""
    deformed = DeformedKernel(K, lap, kappa, labeled)
    solution = solve_deformed(deformed.block, t, upper, tol=tol)
    return solution, *deformed.expand(solution.beta)[:2]


# --- Pieces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_the_best_offset(seed):
    rng = np.random.default_rng(seed)
    t = np.where(rng.permutation(9) < rng.integers(1, 9), 1.0, -1.0)
    upper, f = rng.uniform(0.1, 3, 9), 3 * rng.standard_normal(9)

    def value(b):
        return 0.5 * upper @ np.maximum(0, 1 - t * (f + b)) ** 2

    b = best_offset(t, upper, f)
    found = minimize_scalar(value, bounds=(-20, 20), options={"xatol": 1e-12})
    assert value(b) <= found.fun + 1e-12
    beta = squared_hinge_duals(t, upper, f + b)
    assert abs(beta.sum()) < 1e-12 * upper.sum()
    assert_allclose(best_offset(-t, upper, -f), -b, atol=1e-12)


def test_the_best_offset_of_separated_outputs_is_the_middle():
    t, f = np.array([1.0, -1.0, 1.0, -1.0]), np.array([5.0, -2.0, 4.0, -3.0])
    # No loss for b from 1 − 4 to −1 + 2.
    assert_allclose(best_offset(t, np.array([1.0, 0.1, 7.0, 0.3]), f), -1.0)


@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("normalized", [False, True])
def test_the_deformed_kernel(normalized, degree):
    K, lap, kappa, labeled, *_ = instance(normalized=normalized, degree=degree)
    M = lap.product(np.eye(len(K)))
    # (K⁻¹ + 2κM)⁻¹: the Gram matrix of the norm ‖f‖² + 2κ fᵀMf.
    expected = np.linalg.inv(np.linalg.inv(K) + 2 * kappa * M)
    deformed = DeformedKernel(K, lap, kappa, labeled)
    assert_allclose(deformed.block, expected[np.ix_(labeled, labeled)], atol=1e-10)
    beta = np.random.default_rng(2).standard_normal(labeled.size)
    c, f, norm2 = deformed.expand(beta)
    assert_allclose(f, expected[:, labeled] @ beta, atol=1e-10)
    assert_allclose(K @ c, f, atol=1e-12)
    # ‖f‖² + 2κ fᵀMf = βᵀK̃β.
    assert_allclose(norm2 + 2 * kappa * f @ M @ f, beta @ deformed.block @ beta)


def test_a_low_rank_kernel_of_full_rank_is_the_kernel():
    X, _ = clouds()
    K, lap, kappa, labeled, *_ = instance()
    low = pivoted_cholesky(X, RBF, tol=0.0, first=labeled)
    full = DeformedKernel(K, lap, kappa, labeled)
    other = LowRankDeformedKernel(low, lap, kappa, labeled)
    assert_allclose(other.block, full.block, atol=1e-9)
    beta = np.random.default_rng(2).standard_normal(labeled.size)
    (_, f, norm2), (c2, f2, other2) = full.expand(beta), other.expand(beta)
    assert_allclose(f2, f, atol=1e-8)
    assert_allclose(K @ c2, f2, atol=1e-8)
    assert_allclose(other2, norm2, atol=1e-8)


def test_penalties_of_the_paper():
    """The paper's objective, written out, is J times a constant."""
    X, t = clouds()
    graph = knn_graph(X, 6, weights="binary")
    M, K, c, b = laplacian(graph).matrix, RBF.gram(X), np.linspace(-1, 1, 50), 0.2
    f, L = K @ c, t != 0
    slack = np.maximum(0, 1 - t * (f + b))[L]
    gamma_A, gamma_I = 0.02, 0.3

    def J(C, C_graph, losses):
        return 0.5 * c @ f + C * losses + C_graph / graph.n_edges * f @ (M @ f)

    melacci = slack @ slack + gamma_A * c @ f + gamma_I * f @ (M @ f)
    found = J(*melacci_penalties(gamma_A, gamma_I, graph.n_edges), 0.5 * slack @ slack)
    assert_allclose(found, melacci / (2 * gamma_A))


# --- Optima ---------------------------------------------------------------------------------------


def by_cvxpy(K, M, kappa, labeled, t, upper, loss, offset):
    """(J*, outputs) by an interior-point method."""
    cp = pytest.importorskip("cvxpy")
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0))  # f = root @ w with ‖f‖ = ‖w‖
    values, vectors = np.linalg.eigh(root.T @ M @ root)
    smooth = (vectors * np.sqrt(np.maximum(2 * kappa * values, 0))).T
    w, b = cp.Variable(len(K)), cp.Variable() if offset else cp.Constant(0.0)
    slack = cp.pos(1 - cp.multiply(t, root[labeled] @ w + b))
    data = (
        cp.sum(cp.multiply(upper, slack))
        if loss == "hinge"
        else (0.5 * cp.sum_squares(cp.multiply(np.sqrt(upper), slack)))
    )
    program = cp.Problem(cp.Minimize((cp.sum_squares(w) + cp.sum_squares(smooth @ w)) / 2 + data))
    options = dict(tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    program.solve(solver=cp.CLARABEL, **options)
    return float(program.value), root @ w.value + b.value


@pytest.mark.parametrize(
    ("loss", "solver"), [("squared_hinge", "newton"), ("squared_hinge", "pcg"), ("hinge", "auto")]
)
@pytest.mark.parametrize(
    ("C_graph", "normalized", "degree", "offset"),
    [(30.0, False, 1, True), (30.0, True, 2, True), (0.0, False, 1, True), (30.0, True, 1, False)],
)
@pytest.mark.parametrize("kernel", [RBF, Kernel("linear", sigma_f=1.3)], ids=lambda k: k.name)
def test_the_optimum_equals_that_of_cvxpy(
    kernel, C_graph, normalized, degree, offset, loss, solver
):
    X, t = clouds(labeled=16, seed=3)
    weight = np.random.default_rng(4).uniform(0.5, 2, 50)
    model = LapSVM(
        C=2.0, C_graph=C_graph, kernel=kernel.name, gamma=0.3, sigma_f=kernel.sigma_f,
        labeled_loss=loss, n_neighbors=6, normalized=normalized, laplacian_degree=degree,
        fit_intercept=offset, solver=solver, tol=1e-10,
    ).fit(X, labels(t), sample_weight=weight)  # fmt: skip
    M = laplacian(knn_graph(X, 6, weights="binary"), normalized, degree).product(np.eye(50))
    labeled = np.flatnonzero(t)
    kappa = C_graph / model.graph_.n_edges
    value, outputs = by_cvxpy(
        kernel.gram(X), M, kappa, labeled, t[labeled], 2 * weight[labeled], loss, offset
    )
    assert offset or model.intercept_[0] == 0
    assert_allclose(model.objective_, value, rtol=1e-6)
    assert_allclose(model.decision_function(X), outputs, atol=2e-4)
    assert 0 <= model.gap_ < 1e-6 * value
    assert_allclose(evaluate(model, X, labels(t), model.problem_, weight).objective,
                    model.objective_)  # fmt: skip


def test_the_twin_of_newtons_method_ends_where_full_steps_go_round_in_circles():
    X = np.array([[2.0, -9], [8, -1], [-7, -4], [-9, 9], [3, 1]])
    t = np.array([-1.0, 1, -1, 1, 1])
    K, M = X @ X.T, np.zeros((5, 5))
    active, seen = t != 0, []
    for _ in range(12):  # every solution tells the active rows of the next system
        S = np.diag(active) - np.outer(active, active / active.sum())
        c = np.linalg.solve(np.eye(5) + S @ K, S @ t)
        b = np.mean((t - K @ c)[active])
        active = twin.slack(K @ c + b, t) > 0
        seen.append(active.tolist())
    assert seen[8:] == seen[4:8] != seen[7:11]
    c, b = twin.newton(K, M, 0.0, 1.0, t)

    def in_the_plane(v):
        return 0.5 * v[:2] @ v[:2] + 0.5 * np.sum(twin.slack(X @ v[:2] + v[2], t) ** 2)

    best = minimize(in_the_plane, np.zeros(3), options={"gtol": 1e-9})
    assert_allclose(twin.objective(K, M, 0.0, 1.0, c, b, t), best.fun, rtol=1e-8)


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("C_graph", [0.5, 1000.0])
def test_newton_conjugate_gradients_and_their_twins_agree(C, C_graph):
    X, t = clouds()
    graph = knn_graph(X, 6, weights="binary")
    M, kappa, K = laplacian(graph).matrix.toarray(), C_graph / graph.n_edges, RBF.gram(X)
    options = dict(C=C, C_graph=C_graph, gamma=0.3, n_neighbors=6, tol=1e-12)
    newton, pcg = (LapSVM(solver=s, **options).fit(X, labels(t)) for s in ("newton", "pcg"))
    c, b = twin.newton(K, M, kappa, C, t)
    assert_allclose(newton.objective_, twin.objective(K, M, kappa, C, c, b, t), rtol=1e-10)
    assert_allclose(newton.decision_function(X), K @ c + b, atol=1e-8)
    assert_allclose(pcg.objective_, newton.objective_, rtol=1e-9)
    assert_allclose(pcg.decision_function(X), K @ c + b, atol=1e-4)
    c, b = twin.conjugate_gradients(K, M, kappa, C, t)
    assert_allclose(twin.objective(K, M, kappa, C, c, b, t), newton.objective_, rtol=1e-9)


@pytest.mark.parametrize("row", [0, 12], ids=["labeled", "unlabeled"])
@pytest.mark.parametrize("copies", [1, 4])
def test_a_row_of_zeros_and_copies_of_rows_leave_both_solvers_agreed(row, copies):
    X, t = clouds()
    X[row : row + copies] = 0.0
    X[20 : 20 + copies] = X[1]
    options = dict(kernel="linear", C=100.0, C_graph=10.0, tol=1e-11)
    newton, pcg = (LapSVM(solver=s, **options).fit(X, labels(t)) for s in ("newton", "pcg"))
    assert_allclose(pcg.objective_, newton.objective_, rtol=1e-10)
    assert_allclose(pcg.coef_, newton.coef_, atol=1e-5)


@pytest.mark.parametrize("solver", ["newton", "pcg"])
def test_the_gradient_of_the_problem_vanishes(solver):
    X, t = clouds()
    y = labels(t)
    model = LapSVM(C=5.0, gamma=0.3, solver=solver, tol=1e-13).fit(X, y)
    c = np.zeros(50)
    c[model.support_] = model.dual_coef_[0]
    b = float(model.intercept_[0])
    value, gradient, slope = model.problem_.value_and_gradient(RBF.gram(X), c, b, t)
    start = model.problem_.value_and_gradient(RBF.gram(X), 0 * c, 0.0, t)[1]
    assert_allclose(value, model.objective_)
    assert np.abs(gradient).max() < 1e-5 * np.abs(start).max()
    assert abs(slope) < 1e-5


def test_the_hinge_is_an_svc_in_the_deformed_kernel():
    X, t = clouds(n=80, labeled=30, distance=1.0)
    graph = knn_graph(X, 6, weights="binary")
    K, M, L = RBF.gram(X), laplacian(graph).matrix.toarray(), np.arange(30)
    deformed = np.linalg.solve(np.eye(80) + 2 * (25.0 / graph.n_edges) * K @ M, K)
    svc = SVC(C=2.0, kernel="precomputed", tol=1e-9).fit(deformed[np.ix_(L, L)], t[L])
    model = LapSVM(C=2.0, C_graph=25.0, gamma=0.3, n_neighbors=6, labeled_loss="hinge", tol=1e-9)
    found = model.fit(X, labels(t)).decision_function(X)
    assert_allclose(found, svc.decision_function(deformed[:, L]), atol=1e-6)
    assert model.solver_ == "newton"
    assert [s["n_iter"] for s in model.history_][-1] == model.n_iter_


def test_without_the_graph_it_is_a_supervised_svm():
    X, t = clouds(n=80, labeled=30, distance=1.0)
    options = dict(C=2.0, gamma=0.3, tol=1e-9)
    model = LapSVM(C_graph=0.0, labeled_loss="hinge", **options).fit(X, labels(t))
    svm = SVM(**options).fit(X, labels(t))
    assert_allclose(model.decision_function(X), svm.decision_function(X), atol=1e-6)
    assert_allclose(model.objective_, svm.objective_)


@pytest.mark.parametrize("seed", range(3))
def test_no_random_step_improves_the_optimum(seed):
    data = instance(seed=seed)
    solution, c, _ = direct(*data)
    best, rng = objective(*data, c, solution.b), np.random.default_rng(seed)
    for size in (1e-3, 1e-1, 1.0):
        for _ in range(20):
            other = c + size * rng.standard_normal(c.size)
            assert objective(*data, other, solution.b + size * rng.standard_normal()) >= best


# --- Descent and duality gaps ---------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize(("C", "coarse"), [(1.0, 0), (1e4, 0), (1e4, 15)])
def test_the_objective_falls_and_every_gap_is_a_bound(C, coarse, normalized, degree):
    data = instance(C=C, C_graph=20 * C, normalized=normalized, degree=degree)
    reference, c, _ = direct(*data)
    best = objective(*data, c, reference.b)
    found = solve_pcg(*data, gap_rule(), tol=1e-11, coarse=coarse)
    values = np.array([state["objective"] for state in found.history])
    gaps = np.array([state["gap"] for state in found.history])
    assert found.status == "converged"
    assert np.all(np.diff(values) <= 1e-10 * values[0])
    assert np.all(values - best <= gaps + 1e-9 * best)
    assert gaps[-1] <= 1e-11 * values[-1]
    assert_allclose(values[-1], objective(*data, found.c, found.b), rtol=1e-10)
    newton = np.array([state["objective"] for state in reference.history])
    assert np.all(np.diff(newton) <= 1e-12 * newton[0])
    assert_allclose(newton[-1], best, rtol=1e-10)


def newton_instance():
    """(K̃ on the labeled rows, their labels, weights): Newton's method takes six steps."""
    *graph, t, upper = instance(C=30, C_graph=20, n=200, labeled=100, distance=3)
    return DeformedKernel(*graph).block, t, upper


@pytest.mark.parametrize("offset", [True, False])
def test_the_gap_of_a_newton_step_is_primal_minus_dual(offset):
    K, t, upper = newton_instance()
    for n_iter in (1, 2, 3, 4):
        found = solve_deformed(K, t, upper, offset=offset, tol=0.0, max_iter=n_iter)
        assert found.status == "max_iter"
        f = K @ found.beta
        alpha = upper * t * np.maximum(0, 1 - t * (f + found.b))  # feasible in the dual
        assert abs(alpha.sum()) < 1e-9 * np.abs(alpha).sum() or not offset
        primal = 0.5 * found.beta @ f + 0.5 * alpha @ (alpha / upper)
        dual = t @ alpha - 0.5 * alpha @ K @ alpha - 0.5 * alpha @ (alpha / upper)
        assert_allclose(found.gap, primal - dual, rtol=1e-6)
        assert_allclose(found.history[-1]["gap"], found.gap)


def test_newtons_method_ends_at_the_first_gap_within_the_tolerance():
    K, t, upper = newton_instance()
    history = solve_deformed(K, t, upper, tol=1e-12).history
    ratios = np.array([state["gap"] / state["objective"] for state in history])
    known = ratios[ratios > 1e-10]
    assert known.size > 3
    for tol in np.r_[known / 2, known * 2]:
        found = solve_deformed(K, t, upper, tol=tol)
        assert found.status == "converged"
        assert found.n_iter == history[np.flatnonzero(ratios <= tol)[0]]["n_iter"]


def test_the_better_gap_is_a_bound_and_far_smaller():
    data = instance(n=300, C=1e5, C_graph=1e6)
    K, lap, kappa, labeled, t, upper = data
    reference, c, _ = direct(*data)
    best, ratios = objective(*data, c, reference.b), []
    for n_iter in (5, 15, 30):
        found = solve_pcg(*data, gap_rule(), tol=1e-14, max_iter=n_iter)
        assert found.status == "max_iter"
        beta = squared_hinge_duals(t, upper, (K @ found.c)[labeled] + found.b)
        r = -2 * kappa * lap.product(K @ found.c) - found.c
        r[labeled] += beta
        plain = 0.5 * r @ K @ r
        gap = duality_gap(K, lap, kappa, r, r @ K @ r)
        excess = objective(*data, found.c, found.b) - best
        assert 0 < excess <= gap <= plain * (1 + 1e-12)
        ratios.append(plain / gap)
    assert min(ratios) > 10


@pytest.mark.parametrize("coarse", [0, 40])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_the_default_stopping_rule_keeps_its_promise(tol, coarse):
    for seed in range(3):
        data = instance(n=200, C=1e4, C_graph=1e5, seed=seed)
        reference, c, _ = direct(*data)
        best = objective(*data, c, reference.b)
        found = solve_pcg(*data, gap_rule(), tol=tol, coarse=coarse)
        excess = objective(*data, found.c, found.b) / best - 1
        assert -1e-10 <= excess <= tol
        assert found.gap <= tol * (1 + tol) * best


@pytest.mark.parametrize("offset", [True, False])
def test_a_step_leaves_nothing_in_the_coarse_space(offset):
    K, lap, kappa, labeled, _, upper = instance(n=120, C=1e4, C_graph=1e5)
    rng, n = np.random.default_rng(0), 120
    D = np.zeros((n, n))
    weight = np.where(np.arange(upper.size) % 3, upper, 0.0)
    D[np.ix_(labeled, labeled)] = np.diag(weight)
    if offset:
        D[np.ix_(labeled, labeled)] -= np.outer(weight, weight) / weight.sum()
    M = np.column_stack([lap.product(e) for e in np.eye(n)])
    T = np.eye(n) + (2 * kappa * M + D) @ K
    space = CoarseSpace(K, lap, kappa, labeled, 20)
    space.update(weight, offset)
    assert space.rows.size == np.unique(space.rows).size == 20
    r = rng.standard_normal(n)
    z, Kz = space.step(K @ r)
    assert_allclose(Kz, K @ z)
    rest = r - T @ z
    scale = np.abs(K @ r).max()
    assert np.abs((K @ rest)[space.rows]).max() <= 1e-6 * scale
    # Without a component in the space, the direction is self-adjoint: r'Kz' = r''Kz.
    other = rng.standard_normal(n)
    other -= T @ space.step(K @ other)[0]
    found = [space.direction(v, K @ v, (2 * kappa * M + D) @ K @ v) for v in (rest, other)]
    for v, (z, Kz) in zip((rest, other), found, strict=True):
        assert_allclose(Kz, K @ z, atol=1e-8 * np.abs(K @ v).max())
        assert v @ Kz > 0
    assert_allclose(rest @ found[1][1], other @ found[0][1], rtol=1e-5)


def test_the_coarse_space_saves_iterations():
    data = instance(n=300, C=1e5, C_graph=1e6)
    reference, c, _ = direct(*data)
    plain, found, everything = (
        solve_pcg(*data, gap_rule(), tol=1e-6, max_iter=400, coarse=m) for m in (0, COARSE, 300)
    )
    assert plain.status == "max_iter"
    assert found.status == "converged"
    assert found.n_iter <= 0.7 * plain.n_iter
    assert everything.n_iter <= 8  # Newton's method
    for solution in (found, everything):
        value = objective(*data, solution.c, solution.b)
        assert_allclose(value, objective(*data, c, reference.b), rtol=1e-6)


# --- Early stops ----------------------------------------------------------------------------------


def test_early_stops_by_name():
    X, truth = make_moons(300, noise=0.15, random_state=0)
    y = np.where(np.arange(300) < 24, truth, -1)
    options = dict(C=1e3, gamma=5.0, solver="pcg", tol=1e-5)
    fits = {rule: LapSVM(stopping=rule, **options).fit(X, y) for rule in get_args(StoppingRule)}
    exact = LapSVM(**{**options, "solver": "newton"}).fit(X, y).objective_
    for rule in ("gap", "gradient"):
        assert_allclose(fits[rule].objective_, exact, rtol=1e-5)
    for rule in ("stability", "validation"):
        assert fits[rule].n_iter_ < fits["gradient"].n_iter_
        assert fits[rule].objective_ > exact * (1 + 1e-5)
        assert fits[rule].n_iter_ % round(np.sqrt(300) / 2) == 0


def test_stability_stops_when_few_labels_change():
    data = instance(n=200, C=1e4, C_graph=1e5)
    labeled = data[3]
    rows = np.setdiff1d(np.arange(200), labeled)
    watch = Watch("stability", rows, np.zeros(rows.size), 4, 0.02)
    found = solve_pcg(*data, watch)
    signs = []
    for k in (1, 2):
        cut = solve_pcg(*data, gap_rule(), tol=1e-14, max_iter=found.n_iter - 4 * (k - 1))
        signs.append((data[0] @ cut.c)[rows] + cut.b > 0)
    assert found.n_iter % 4 == 0
    assert np.mean(signs[0] != signs[1]) <= 0.02
    assert solve_pcg(*data, Watch("stability", rows, np.zeros(rows.size), 1, 0.5)).n_iter <= 3


def test_validation_holds_labels_out():
    X, t = clouds(n=200, labeled=40, distance=1.0)
    y = labels(t)
    hidden = y.copy()
    for k in (0, 1):
        hidden[np.flatnonzero(y == k)[4::5]] = -1
    assert np.sum(hidden >= 0) == 32
    options = dict(C=100.0, C_graph=50.0, gamma=0.3, solver="pcg", max_iter=7, tol=1e-14)
    model = LapSVM(stopping="validation", **options)
    with pytest.warns(ConvergenceWarning):
        found = model.fit(X, y).decision_function(X)
    with pytest.warns(ConvergenceWarning):
        expected = LapSVM(stopping="gradient", **options).fit(X, hidden).decision_function(X)
    assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="every fifth labeled row"):
        model.fit(X, np.where(np.arange(200) < 6, y, -1))


# --- Memory ---------------------------------------------------------------------------------------


def test_what_fits_into_memory():
    unit = 8 * 3000 / 2**20
    full = unit * 3330

    def choose(megabytes, rank=None, loss="squared_hinge", solver="auto", n=3000, **options):
        return choose_rank(n, 50, megabytes, rank, loss, solver, **options)[:2]

    assert choose(4000) == ("pcg", None)
    assert choose(4000, n=2000) == ("newton", None)
    assert choose(4000, loss="hinge") == ("newton", None)
    assert choose(4000, solver="newton") == ("newton", None)
    assert choose(full - 1, solver="pcg") == ("newton", 600)
    assert choose(full + 1, solver="pcg") == ("pcg", None)
    assert choose(full - 1, solver="pcg", precomputed=True) == ("pcg", None)
    assert choose(full + 1, solver="newton") == ("newton", 600)
    assert choose(4000, rank=70) == ("newton", 70)
    assert choose(unit * (100 + 96)) == ("newton", 100)
    assert choose(unit * (99 + 96)) == (None, None)
    assert choose(unit * (100 + 96), rank=101) == (None, None)
    # Beyond a size the matrix is only made where a solver is named.
    assert choose(4000, n=10_000) == ("pcg", None)
    assert choose(4000, n=10_001) == choose(1000, n=10_001) == ("newton", 600)
    assert choose(4000, n=10_001, solver="pcg") == ("pcg", None)
    assert choose_rank(10_001, 2000, 4000, None, "hinge", "auto")[:2] == ("newton", 1500)


def test_a_budget_sends_the_fit_into_the_low_rank_mode_and_then_refuses():
    X, t = clouds(n=400)
    y, options = labels(t), dict(C=10.0, gamma=0.3)
    full = LapSVM(**options).fit(X, y)
    assert full.rank_ is None
    low = LapSVM(memory=1.0, **options).fit(X, y)
    assert low.rank_ == int(1.0 * 2**20 / (8 * 400)) - 96
    assert len(low.support_) <= low.rank_
    assert set(np.flatnonzero(t)) <= set(low.support_)
    assert low.objective_ >= full.objective_ * (1 - 1e-9)
    assert_allclose(evaluate(low, X, y, low.problem_).objective, low.objective_, rtol=1e-8)
    assert np.mean(low.transduction_ == full.transduction_) > 0.95
    with pytest.raises(ValueError, match=r"memory=0.1 MiB is too little for 400 rows.*low-rank"):
        LapSVM(memory=0.1, **options).fit(X, y)


def test_a_budget_below_the_pairs_of_labeled_rows_is_refused_before_the_fit():
    X = clouds(n=400)[0]
    most = int(np.sqrt(2**20 / 8))  # labels, whose pairs fill one MiB
    truth, options = np.where(X[:, 0] > 0, 1, 0), dict(memory=1.0, rank=10, gamma=0.3)
    y = np.where(np.arange(400) < most, truth, -1)
    assert LapSVM(**options).fit(X, y).rank_ == 10
    y[most] = truth[most]
    model = LapSVM(**options)
    refused = "is too little for {} labeled rows: .* at least {} MiB. .* label fewer rows"
    with pytest.raises(ValueError, match="memory=1.0 MiB " + refused.format(most + 1, 2)):
        model.fit(X, y)
    assert not hasattr(model, "rank_")
    with pytest.raises(ValueError, match=refused.format(200_000, 305_176)):  # a factor in blocks
        LapSVM()._what_fits(1_000_000, 200_000)


def test_the_objective_falls_with_the_rank():
    X, t = clouds(n=150)
    options = dict(C=100.0, gamma=0.3, tol=1e-12)
    full = LapSVM(**options).fit(X, labels(t)).objective_
    values = [
        LapSVM(rank=rank, **options).fit(X, labels(t)).objective_ for rank in (20, 50, 100, 150)
    ]
    assert np.all(np.diff(values) < 0)
    assert_allclose(values[-1], full, rtol=1e-5)
    for loss in ("hinge", "squared_hinge"):
        model = LapSVM(rank=50, labeled_loss=loss, **options).fit(X, labels(t))
        assert model.gap_ < 1e-6 * model.objective_


# --- The estimator --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_two_moons_need_the_graph(loss, seed):
    X, truth = make_moons(200, noise=0.05, random_state=seed)
    y = np.full(200, -1)
    for k in (0, 1):
        y[np.flatnonzero(truth == k)[0]] = k
    hidden = y < 0
    options = dict(C=100.0, gamma=5.0)
    model = LapSVM(labeled_loss=loss, C_graph=1e4, n_neighbors=6, **options).fit(X, y)
    svm = SVM(**options).fit(X, y)
    assert np.mean(model.transduction_[hidden] != truth[hidden]) < 0.02
    assert np.mean(svm.transduction_[hidden] != truth[hidden]) > 0.05
    fresh, classes = make_moons(300, noise=0.05, random_state=seed + 50)
    assert model.score(fresh, classes) > 0.97


def test_graphs_of_every_kind():
    X, t = clouds()
    y = labels(t)
    rule = NeighborGraph(radius=1.2, weights="binary")
    radius = LapSVM(graph=rule, C=3.0).fit(X, y)
    expected = radius_graph(X, 1.2, weights="binary")
    assert_array_equal(radius.graph_.i, expected.i)
    W = expected.adjacency()
    for graph in (W, W.toarray(), sp.csr_matrix(W), expected):
        given = LapSVM(graph=graph, C=3.0).fit(X, y)
        assert_array_equal(given.decision_function(X), radius.decision_function(X))
    weight = np.where(np.arange(50) == 20, 0.0, 1.0)
    kept = weight > 0
    cut = LapSVM(graph=W[kept][:, kept], C=3.0, gamma=0.2).fit(X[kept], y[kept])
    for graph in (W, expected):
        without = LapSVM(graph=graph, C=3.0, gamma=0.2).fit(X, y, sample_weight=weight)
        assert_allclose(without.decision_function(X), cut.decision_function(X), atol=1e-12)
        assert_allclose(
            evaluate(without, X, y, without.problem_, weight).objective, without.objective_
        )
    gaussian = LapSVM(graph=NeighborGraph(10, gamma=0.7)).fit(X, y).graph_
    assert_allclose(gaussian.weights, knn_graph(X, 10, gamma=0.7).weights)


def test_a_complete_graph():
    X, t = clouds()
    y, rule = labels(t), NeighborGraph("all", gamma=0.7)
    model = LapSVM(graph=rule, C=3.0).fit(X, y)
    assert model.graph_.n_edges == 50 * 49 // 2
    for graph in (model.graph_, model.graph_.adjacency()):
        given = LapSVM(graph=graph, C=3.0).fit(X, y)
        assert_allclose(given.decision_function(X), model.decision_function(X), atol=1e-10)
    assert_allclose(evaluate(model, X, y, model.problem_).objective, model.objective_)
    weight = np.where(np.arange(50) == 20, 2.0, 1.0)
    with pytest.raises(ValueError, match="sample_weight must be equal on all unlabeled"):
        LapSVM(graph=rule).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (dict(graph=NeighborGraph(3), n_neighbors=4), "n_neighbors must be None where graph"),
        (dict(graph=knn_graph(np.eye(4), 2)), "one vertex for each of the 50 rows"),
        (dict(graph=np.ones((60, 60))), r"got shape \(60, 60\)"),
        (dict(graph=np.ones((3, 3))), r"graph must be a square matrix .*got shape \(3, 3\)"),
        (dict(graph=-np.ones((50, 50))), "graph weights must be finite and non-negative"),
        (dict(solver="pcg", labeled_loss="hinge"), "solver='pcg' is for labeled_loss"),
        (dict(labeled_loss="logistic"), "'labeled_loss' parameter"),
    ],
    ids=repr,
)
def test_bad_parameters_are_named(parameters, message):
    X, t = clouds()
    with pytest.raises(ValueError, match=message):
        LapSVM(**parameters).fit(X, labels(t))


def test_the_weight_of_the_graph_may_be_that_of_the_labeled_rows():
    X, t = clouds()
    assert_allclose(LapSVM(C=3.0).fit(X, labels(t)).problem_.C_graph, 3.0 * 12 / 20)
    assert LapSVM(C=3.0, C_graph="labels").fit(X, labels(t)).problem_.C_graph == 3.0 * 12
    weight = np.full(50, 2.0)
    assert (
        LapSVM(C=3.0, C_graph="labels").fit(X, labels(t), sample_weight=weight).problem_.C_graph
        == 3.0 * 24
    )


def test_copies_of_unlabeled_rows_change_nothing():
    X, t = clouds()
    y, options = labels(t), dict(C=10.0, gamma=0.3, tol=1e-10)
    expected = LapSVM(**options).fit(X, y).decision_function(X)
    more = LapSVM(**options).fit(np.r_[X, X[12:30], X[12:20]], np.r_[y, np.full(26, -1)])
    assert_allclose(more.decision_function(X), expected, atol=1e-7)


def test_many_classes_share_the_kernel(semi_supervised):
    X, y = semi_supervised(n=90, n_labeled=18, n_classes=3)
    for solver in ("newton", "pcg"):
        model = LapSVM(solver=solver, tol=1e-10).fit(X, y)
        assert model.gap_.shape == (3,)
        for k in range(3):
            binary = LapSVM(solver=solver, tol=1e-10).fit(X, np.where(y < 0, -1, y == k))
            assert_allclose(
                model.decision_function(X)[:, k], binary.decision_function(X), atol=1e-6
            )


# --- Where digits are few -------------------------------------------------------------------------


def judged(model, X, y, weight=None):
    """J of a linear model from its weights, the squared hinge and the edges of its graph."""
    w, problem, graph = model.coef_[0], model.problem_, model.graph_
    center = X.mean(axis=0)
    f, known = (X - center) @ w + (model.intercept_[0] + center @ w), y >= 0
    slack = np.maximum(0, 1 - (2 * y - 1) * f)[known] ** 2
    loss = 0.5 * problem.C * (slack.sum() if weight is None else weight[known] @ slack)
    return 0.5 * w @ w + loss + problem.C_graph / graph.n_edges * graph.energy(f)


def least(X, y, C, graph, C_graph):
    """The least J of a linear model, by BFGS in units in which all columns vary alike."""
    center, unit = X.mean(axis=0), X.std(axis=0)
    Z, known = (X - center) / unit, y >= 0
    edges = np.sqrt(2 * C_graph / graph.n_edges * graph.weights)[:, None] * (
        Z[graph.i] - Z[graph.j]
    )
    scale = 1 / unit

    def value(v):
        slack = np.maximum(0, 1 - (2 * y[known] - 1) * (Z[known] @ v[:-1] + v[-1]))
        gradient = np.append(scale**2 * v[:-1] + edges.T @ (edges @ v[:-1]), 0)
        pull = C * slack * (2 * y[known] - 1)
        gradient -= np.append(pull @ Z[known], pull.sum())
        rough = np.sum((scale * v[:-1]) ** 2) + np.sum((edges @ v[:-1]) ** 2)
        return 0.5 * rough + 0.5 * C * slack @ slack, gradient

    start = np.zeros(X.shape[1] + 1)
    for _ in range(5):
        start = minimize(value, start, jac=True, options={"gtol": 1e-12, "maxiter": 2000}).x
    return value(start)[0]


def test_where_no_row_has_a_loss_the_offset_stays():
    # By symmetry b = 0 and w minimizes ½w² + 100 (1 − w)²: the row at 2 has no loss.
    X, y = np.array([[-1.0], [1], [2], [0]]), np.array([0, 1, 1, -1])
    model = LapSVM(solver="newton", C_graph=0, kernel="linear", C=100).fit(X, y)
    assert model.termination_condition_ == "converged"
    assert_allclose(model.objective_, 100 / 201, rtol=1e-10)
    assert_allclose([model.coef_[0, 0], model.intercept_[0]], [200 / 201, 0], atol=1e-10)


def test_newtons_method_ends_nowhere_above_conjugate_gradients():
    compared = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        X = rng.integers(-2, 3, (rng.integers(4, 9), rng.integers(1, 4))).astype(float)
        y = np.where(X[:, 0] + 0.5 * rng.standard_normal(len(X)) > 0, 1, 0)
        y[4:], y[:2] = -1, (0, 1)
        options = dict(kernel=("linear", "poly")[seed % 2], degree=2, n_neighbors=2, tol=1e-6)
        options |= dict(C=10.0 ** rng.integers(0, 6), C_graph=(0.0, 1.0, None)[seed % 3])
        newton, pcg = (LapSVM(solver=s, **options).fit(X, y) for s in ("newton", "pcg"))
        assert newton.termination_condition_ in ("converged", "no_step"), seed
        assert newton.objective_ <= pcg.objective_ * (1 + 1e-5), seed
        compared += newton.objective_ > 0
    assert compared > 100


@pytest.mark.parametrize("shift", [1e5, 1e7])
@pytest.mark.parametrize(
    "options",
    [
        dict(kernel="linear"),
        dict(kernel="linear", solver="pcg"),
        dict(kernel="linear", labeled_loss="hinge"),
        dict(kernel="linear", rank=3),
        dict(kernel="rbf", gamma=0.3),
        dict(kernel="laplacian", gamma=0.3),
    ],
    ids=str,
)
def test_the_machine_does_not_depend_on_the_origin(options, shift):
    X, t = clouds()
    X = np.round(X * 2**12) / 2**12  # exact after the shift
    here, there = (LapSVM(**options).fit(Z, labels(t)) for Z in (X, X + shift))
    assert there.termination_condition_ == "converged"
    assert_allclose(there.objective_, here.objective_, rtol=1e-4)
    f = here.decision_function(X)
    assert_allclose(there.decision_function(X + shift), f, atol=2e-3 * np.abs(f).max())


def test_the_constant_of_a_polynomial_kernel_is_taken_out():
    # (xz + c)² = (xz)² + 2c xz + c², and what is constant is left to the offset.
    X, t = clouds()
    K = X @ X.T
    for c in (1e3, 1e5):
        model = LapSVM(kernel="poly", degree=2, gamma=1.0, coef0=c, n_neighbors=6).fit(X, labels(t))
        graph = knn_graph(X, 6, weights="binary")
        same = LapSVM(kernel="precomputed", graph=graph).fit(K**2 + 2 * c * K, labels(t))
        assert model.termination_condition_ == same.termination_condition_ == "converged"
        assert_allclose(model.objective_, same.objective_, rtol=1e-5)
        assert_allclose(
            model.decision_function(X), same.decision_function(K**2 + 2 * c * K), atol=1e-3
        )


@pytest.mark.parametrize("C_graph", [0.0, 1.0])
@pytest.mark.parametrize("solver", ["newton", "pcg"])
def test_columns_of_all_scales_have_the_right_optimum(solver, C_graph):
    X, t = clouds()
    X, y = X * [1.0, 1e7, 1e-2], labels(t)
    model = LapSVM(kernel="linear", C_graph=C_graph, C=10.0, solver=solver).fit(X, y)
    best = least(X, y, 10.0, model.graph_, C_graph)
    assert_allclose(model.objective_, best, rtol=1e-3)
    assert_allclose(judged(model, X, y), best, rtol=1e-2)


@pytest.mark.parametrize("C", [1e8, 1e12, 1e20])
def test_enormous_weights_of_the_labels_leave_their_loss_alone(C):
    X, t = clouds(labeled=30)
    y = labels(t)
    model = LapSVM(kernel="linear", C=C, C_graph=0.0).fit(X, y)
    Z, sign = np.c_[X, np.ones(50)][:30], t[:30]
    best = minimize(
        lambda v: np.sum(np.maximum(0, 1 - sign * (Z @ v)) ** 2), np.zeros(4), method="BFGS",
        options={"gtol": 1e-10},
    ).fun  # fmt: skip
    assert model.termination_condition_ == "converged"
    assert_allclose(model.objective_, 0.5 * C * best, rtol=1e-5)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_what_doubles_cannot_hold_is_said_with_the_column(loss):
    X, t = clouds()
    X[:, 1] *= 1e5
    with pytest.warns(
        ConvergenceWarning, match=r"scale the data \(column 1 of X has .* divide it by 100000"
    ):
        model = LapSVM(kernel="poly", gamma=1.0, labeled_loss=loss).fit(X, labels(t))
    assert model.termination_condition_ == "stalled"
    assert 0 <= model.objective_ <= 12
    assert model.gap_ > 1e-4 * model.objective_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_below_zero_is_no_objective():
    X, t = clouds()
    K = np.outer(X[:, 0], X[:, 0])
    for C in (1e16, 1e30, 1e40):
        try:
            model = LapSVM(kernel="precomputed", C=C, C_graph=0.0).fit(K, labels(t))
        except FloatingPointError as error:
            assert "scale the data" in str(error)
        else:
            assert 0 <= model.objective_ <= 12 * C


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_class_weights_count_in_the_weight_of_the_graph_as_they_do_in_the_losses():
    X, t = clouds()
    y = labels(t)
    twice = LapSVM(class_weight={0: 2.0, 1: 2.0}, tol=1e-10).fit(X, y)
    assert_allclose(twice.objective_, LapSVM(C=2.0, tol=1e-10).fit(X, y).objective_, rtol=1e-9)
    for Estimator in (LapSVM, GKM):
        model = Estimator(class_weight={0: 3.0}, gamma=0.3, max_iter=100).fit(X, y)
        assert_allclose(model.problem_.C_graph, (3.0 * 6 + 6) / 20)


@pytest.mark.slow
def test_the_gap_holds_on_a_large_ill_conditioned_instance(mixture):
    X, t = mixture(1500)
    y = np.where(np.arange(1500) < 50, (t > 0).astype(int), -1)
    edges = knn_graph(X, 10, weights="binary").n_edges
    C, C_graph = melacci_penalties(1e-6, 1e-2, edges)
    newton, pcg = (
        LapSVM(C=C, C_graph=C_graph, gamma=1 / 32, solver=solver).fit(X, y)
        for solver in ("newton", "pcg")
    )
    assert newton.objective_ <= pcg.objective_ <= newton.objective_ * (1 + 1e-4)
    assert pcg.gap_ <= 1e-4 * pcg.objective_


def test_many_rows_take_a_low_rank_and_lose_little(monkeypatch):
    X, t = clouds(n=900)
    y, options = labels(t), dict(C=10.0, gamma=0.3)
    full = LapSVM(**options).fit(X, y)
    monkeypatch.setattr(_estimator, "_EXACT", 800)
    low = LapSVM(**options).fit(X, y)
    assert full.rank_ is None and 50 <= low.rank_ <= 500 + 2 * np.count_nonzero(t)
    assert low.objective_ == pytest.approx(full.objective_, rel=1e-3)
    assert np.mean(low.transduction_ != full.transduction_) <= 0.003
    assert LapSVM(solver="pcg", **options).fit(X, y).rank_ is None
