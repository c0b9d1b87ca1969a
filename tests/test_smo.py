"""SMO: against scikit-learn, a general convex solver and hand calculation, and its own promises."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from s3vm_lib import SVM
from s3vm_lib.gram import Gram
from s3vm_lib.kernels import Kernel
from s3vm_lib.objective import svm_dual, svm_duality_gap, svm_kkt_residual
from s3vm_lib.smo import BIG, Costs, feasible, line_minimum, solve_smo, svc_costs

KERNELS = [
    Kernel("linear"),
    Kernel("poly", 0.05, degree=3, coef0=1.0),
    Kernel("rbf", 0.3),
    Kernel("laplacian", 0.2, sigma_f=1.4),
]


def name_of(kernel):
    return kernel.name


def svc(kernel, **options):
    """scikit-learn's SVC with one of our kernels."""
    if kernel.name == "laplacian":
        return SVC(kernel=kernel.gram, **options)
    return SVC(
        kernel=kernel.name, gamma=kernel.gamma, degree=kernel.degree, coef0=kernel.coef0, **options
    )


def svm(kernel, **options):
    """Our SVM with a kernel."""
    return SVM(
        kernel=kernel.name,
        gamma=kernel.gamma,
        degree=kernel.degree,
        coef0=kernel.coef0,
        sigma_f=kernel.sigma_f,
        **options,
    )


def signed_dual(model, n):
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    return beta


def random_costs(n, seed, unbounded=1):
    """Random boxes that hold a point with Σβ = 0, kinks inside and at ends, and free variables."""
    rng = np.random.default_rng(seed)
    lo, hi = -2 * rng.random(n), 2 * rng.random(n)
    lo[: n // 4] = rng.random(n // 4) * hi[: n // 4]  # 0 is not feasible for these
    hi[: n // 8] = lo[: n // 8]  # fixed variables
    mid = lo + rng.random(n) * (hi - lo)
    mid[n // 2 : n // 2 + 4] = hi[n // 2 : n // 2 + 4]
    mid[-4:] = lo[-4:]
    s1 = rng.standard_normal(n)
    s2 = s1 + rng.exponential(size=n)
    for i in range(unbounded):
        lo[-5 - i], mid[-5 - i], hi[-5 - i] = -BIG, 0.3, BIG
    return Costs(lo, mid, hi, s1, s2)


def cost_values(c, beta):
    """The costs φ_i(β_i), 0 at the feasible point nearest to 0."""

    def line(z):
        return np.maximum(c.s1 * (z - c.mid), c.s2 * (z - c.mid))

    return line(beta) - line(np.clip(0, c.lo, c.hi))


def cvxpy_minimum(K, c):
    """Least value of (P) and its minimizer by an interior-point method."""
    cp = pytest.importorskip("cvxpy")
    n = len(K)
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0))
    beta = cp.Variable(n)
    phi = cp.maximum(cp.multiply(c.s1, beta - c.mid), cp.multiply(c.s2, beta - c.mid))
    below, above = np.flatnonzero(c.lo > -BIG), np.flatnonzero(c.hi < BIG)
    constraints = [cp.sum(beta) == 0, beta[below] >= c.lo[below], beta[above] <= c.hi[above]]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(root.T @ beta) / 2 + cp.sum(phi)), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    zero = np.clip(0, c.lo, c.hi)
    constant = np.maximum(c.s1 * (zero - c.mid), c.s2 * (zero - c.mid)).sum()
    return problem.value - constant, beta.value


# --- Against scikit-learn -------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_objective_equals_that_of_svc(two_gaussians, kernel, C):
    X, t = two_gaussians(n=200)
    K = kernel.gram(X)
    ours, theirs = svm(kernel, C=C, tol=1e-3).fit(X, t + 2), svc(kernel, C=C, tol=1e-3).fit(X, t)
    dual = [svm_dual(K, signed_dual(model, len(t)), t) for model in (ours, theirs)]
    assert_allclose(dual[0], dual[1], rtol=1e-6)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_decision_function_equals_that_of_svc(two_gaussians, kernel, C):
    X, t = two_gaussians(n=80, seed=1)
    new, _ = two_gaussians(n=50, seed=2)
    ours, theirs = svm(kernel, C=C, tol=1e-6).fit(X, t + 2), svc(kernel, C=C, tol=1e-6).fit(X, t)
    assert_allclose(ours.decision_function(new), theirs.decision_function(new), atol=1e-5)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    if kernel.name == "linear":
        assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)


def test_weights_equal_those_of_svc(two_gaussians):
    X, t = two_gaussians(n=80, seed=1)
    weight = np.exp(np.random.default_rng(0).uniform(-7, 7, 80))
    options = dict(gamma=0.3, tol=1e-7)
    ours = SVM(**options).fit(X, t + 2, sample_weight=weight)
    theirs = SVC(**options).fit(X, t, sample_weight=weight)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-4)
    K, upper = Kernel("rbf", 0.3).gram(X), weight
    beta = signed_dual(ours, 80)
    assert np.all((t * beta >= 0) & (t * beta <= upper))
    assert_allclose(svm_dual(K, beta, t), svm_dual(K, signed_dual(theirs, 80), t), rtol=1e-6)


@pytest.mark.parametrize("class_weight", ["balanced", {1: 3.0, 3: 0.5}])
def test_class_weights_equal_those_of_svc(two_gaussians, class_weight):
    X, t = two_gaussians(n=90, seed=3)
    y = (t + 2).astype(int)
    y[:20] = 1
    options = dict(gamma=0.3, tol=1e-6, class_weight=class_weight)
    ours, theirs = SVM(**options).fit(X, y), SVC(**options).fit(X, y)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


def test_three_classes_equal_svc_against_the_rest(semi_supervised):
    X, y = semi_supervised(n=90, n_labeled=90, n_classes=3)
    ours = SVM(gamma=0.5, tol=1e-6).fit(X, y)
    for k in range(3):
        theirs = SVC(gamma=0.5, tol=1e-6).fit(X, y == k)
        assert_allclose(ours.decision_function(X)[:, k], theirs.decision_function(X), atol=1e-5)


def test_iterations_are_within_five_percent_of_libsvm(mixture, two_gaussians):
    data = [
        (*mixture(1500), 1 / 32),
        (*mixture(1000, seed=1), 1 / 8),
        (*two_gaussians(n=1200, d=2, seed=4), 1.0),
        (*two_gaussians(n=1000, d=10, seed=5), 0.05),
    ]
    ours, theirs = 0, 0
    for X, t, gamma in data:
        for C in (1.0, 30.0):
            ours += SVM(C=C, gamma=gamma).fit(X, t + 2).n_iter_
            theirs += int(SVC(C=C, gamma=gamma).fit(X, t).n_iter_.sum())
    assert abs(ours / theirs - 1) < 0.05


# --- General convex costs, against an interior-point method ---------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("unbounded", [0, 1])
@pytest.mark.parametrize("shrinking", [True, False])
def test_general_costs_equal_cvxpy(two_gaussians, seed, unbounded, shrinking):
    X, _ = two_gaussians(n=48, seed=seed)
    kernel = Kernel("rbf", 0.5)
    K, c = kernel.gram(X), random_costs(48, seed, unbounded)
    start = feasible(np.zeros(48), c)
    gram = Gram(X, kernel, dtype=np.float64)
    found = solve_smo(gram, c, start, tol=1e-9, shrinking=shrinking)
    value, beta = cvxpy_minimum(K, c)
    assert found.status == "converged"
    assert abs(found.beta.sum()) < 1e-9
    assert np.all((found.beta >= c.lo) & (found.beta <= c.hi))
    assert_allclose(found.objective, value, atol=1e-6)
    assert_allclose(found.beta, beta, atol=1e-4)
    assert_allclose(found.f, K @ found.beta, atol=1e-10)
    assert_allclose(
        found.objective, found.beta @ K @ found.beta / 2 + cost_values(c, found.beta).sum()
    )


def test_a_kink_holds_points_and_the_conditions_of_optimality_are_met(two_gaussians):
    X, _ = two_gaussians(n=60, seed=1)
    K, c = Kernel("rbf", 0.5).gram(X), random_costs(60, 11)
    found = solve_smo(
        Gram(X, Kernel("rbf", 0.5), dtype=np.float64), c, feasible(np.zeros(60), c), tol=1e-8
    )
    beta, g = found.beta, K @ found.beta + found.b
    assert np.sum(beta == c.mid) > 5
    # −(F + b) must lie in the subdifferential of φ_i: between the slopes on both sides.
    right = np.where(beta < c.mid, c.s1, np.where(beta < c.hi, c.s2, np.inf))
    left = np.where(beta > c.mid, c.s2, np.where(beta > c.lo, c.s1, -np.inf))
    assert np.all(-g <= right + 1e-8)
    assert np.all(-g >= left - 1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_feasible_is_the_projection(seed):
    cp = pytest.importorskip("cvxpy")
    c = random_costs(40, seed, unbounded=seed % 2)
    point = 3 * np.random.default_rng(seed).standard_normal(40)
    found = feasible(point, c)
    assert found.sum() == pytest.approx(0, abs=1e-14)
    assert np.all((found >= c.lo) & (found <= c.hi))
    z = cp.Variable(40)
    constraints = [cp.sum(z) == 0, z >= np.maximum(c.lo, -1e3), z <= np.minimum(c.hi, 1e3)]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(z - point)), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert_allclose(found, z.value, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_without_the_shift_those_farthest_from_their_bounds_pay_for_the_balance(seed):
    c = random_costs(40, seed, unbounded=0)
    point = np.random.default_rng(seed).standard_normal(40)
    clipped = np.clip(point, c.lo, c.hi)
    assert abs(clipped.sum()) > 1
    found = feasible(point, c, shift=False)
    assert abs(found.sum()) < 1e-13
    assert np.all((found >= c.lo) & (found <= c.hi))
    room, pays = np.minimum(clipped - c.lo, c.hi - clipped), found != clipped
    assert pays.sum() < 10
    assert room[pays].min() >= room[~pays].max()


def test_feasible_keeps_a_feasible_point():
    c = svc_costs(np.array([1.0, -1, 1, -1]), np.ones(4))
    beta = np.array([0.5, -0.25, 0.0, -0.25])
    assert_allclose(feasible(beta, c), beta, atol=1e-15)


@pytest.mark.parametrize("curvature", [0.0, 0.3, 30.0])
def test_the_minimum_on_a_line_is_the_best_of_its_candidates(curvature):
    """Kinks, ends, and the vertex of every parabola between them: nothing else can be lowest."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        c = random_costs(40, seed, unbounded=0).take(np.arange(10, 22))
        x, v = c.lo + rng.random(12) * (c.hi - c.lo), rng.standard_normal(12)
        slope = rng.standard_normal()

        def value(tau, c=c, x=x, v=v, slope=slope):
            z = x + np.multiply.outer(tau, v) - c.mid
            return np.maximum(c.s1 * z, c.s2 * z).sum(-1) + slope * tau + curvature * tau**2 / 2

        ends = np.sort([(c.lo - x) / v, (c.hi - x) / v], axis=0)
        shortest, longest = ends[0].max(), ends[1].min()
        corners = np.r_[shortest, (c.mid - x) / v, longest]
        corners = np.unique(np.clip(corners, shortest, longest))
        candidates = corners
        if curvature:  # a parabola between two corners, through its value and slope in the middle
            middle = (corners[1:] + corners[:-1]) / 2
            h = 1e-3 * np.diff(corners)
            slopes = (value(middle + h) - value(middle - h)) / (2 * h)
            vertex = np.clip(middle - slopes / curvature, corners[:-1], corners[1:])
            candidates = np.r_[corners, vertex]
        found = line_minimum(c, x, v, slope, curvature)
        assert shortest - 1e-12 <= found <= longest + 1e-12
        assert value(found) <= value(candidates).min() + 1e-9


@pytest.mark.parametrize(
    ("kinks", "bound", "nearest"),
    [((-2, 1), 9, 0), ((1, 3), 9, 1), ((-3, -1), 9, -1), ((1, 3), 0.5, 0.5), ((0, 3), 9, 0)],
)
def test_of_equal_minima_on_a_line_the_nearest_is_taken(kinks, bound, nearest):
    """|τ − a| + |τ − b| is flat from a to b."""
    one, mid = np.ones(2), np.array(kinks, dtype=float)
    c = Costs(-bound * one, np.clip(mid, -bound, bound), bound * one, -one, one)
    assert_allclose(line_minimum(c, np.zeros(2), one, 0.0, 0.0), nearest, atol=1e-12)


def test_a_line_leaves_no_bound_to_bring_back_what_rounding_put_outside():
    """The first variable is above its bound by its last bit, the second at its lower bound."""
    one = np.ones(2)
    c = Costs(-one, one, one, -one, -one)
    x = np.array([np.nextafter(1.0, 2.0), -1.0])
    assert line_minimum(c, x, np.array([1e-9, 1.0]), 0.0, 0.0) == 0


# --- Optimality -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_residual_and_duality_gap_are_below_tol(two_gaussians, kernel, C, tol):
    X, t = two_gaussians(n=120, seed=2)
    K, upper = kernel.gram(X), np.full(120, C)
    gram = Gram(X, kernel, dtype=np.float64)
    found = solve_smo(gram, svc_costs(t, upper), tol=tol)
    assert found.status == "converged"
    assert found.violation < tol
    rounding = 1e-13 * np.abs(K).max() * np.abs(found.beta).sum()
    assert svm_kkt_residual(K, found.beta, found.b, t, upper) < tol + rounding
    gap = svm_duality_gap(K, found.beta, found.b, t, upper)
    assert -1e-9 * upper.sum() <= gap <= tol * upper.sum() + rounding * upper.sum()
    assert_allclose(found.objective, -svm_dual(K, found.beta, t), rtol=1e-9)


def test_the_dual_value_never_falls(two_gaussians):
    X, t = two_gaussians(n=100, seed=2)
    gram = Gram(X, Kernel("rbf", 0.3), dtype=np.float64)
    costs = svc_costs(t, np.full(100, 10.0))
    values = [
        solve_smo(gram, costs, max_iter=k, shrinking=False).objective for k in range(1, 120, 3)
    ]
    assert np.all(np.diff(values) <= 1e-12)
    assert values[-1] < values[0]


@pytest.mark.parametrize("seed", range(3))
def test_no_iteration_passes_a_kink_and_goes_up(two_gaussians, seed):
    X, _ = two_gaussians(n=48, seed=seed)
    c = random_costs(48, seed, unbounded=0)
    gram, start = Gram(X, Kernel("rbf", 0.5), dtype=np.float64), feasible(np.zeros(48), c)
    values = [
        solve_smo(gram, c, start, tol=1e-9, max_iter=k, shrinking=False).objective
        for k in range(1, 80)
    ]
    assert np.all(np.diff(values) <= 1e-11)
    assert values[-1] < values[0]


def test_the_reported_objective_is_the_primal_value(two_gaussians):
    X, t = two_gaussians(n=80)
    model = SVM(C=3.0, gamma=0.4, tol=1e-7).fit(X, t + 2)
    beta, K = signed_dual(model, 80), Kernel("rbf", 0.4).gram(X)
    f = model.decision_function(X)
    expected = beta @ K @ beta / 2 + 3.0 * np.maximum(0, 1 - t * f).sum()
    assert_allclose(model.objective_, expected, rtol=1e-10)


# --- The same solution by every road --------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_shrinking_changes_nothing(two_gaussians, kernel, C):
    X, t = two_gaussians(n=600, d=5, distance=2.5, seed=3)
    costs = svc_costs(t, np.full(600, C))
    gram = Gram(X, kernel, dtype=np.float64)
    on = solve_smo(gram, costs, tol=1e-8)
    off = solve_smo(gram, costs, tol=1e-8, shrinking=False)
    assert min(active for _, _, active in on.history) < 600
    assert all(active == 600 for _, _, active in off.history)
    assert_allclose(on.objective, off.objective, rtol=1e-10)
    assert_allclose(on.f + on.b, off.f + off.b, atol=1e-6)
    assert_allclose(on.f, kernel.gram(X) @ on.beta, atol=1e-9 * np.abs(on.f).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_full_matrix_rows_and_tiny_cache_agree_bit_by_bit(two_gaussians, kernel, form, dtype):
    X, t = two_gaussians(n=300, d=4, distance=2.0, seed=4)
    X = form(np.round(X, 1))
    costs = svc_costs(t, np.full(300, 5.0))
    row = 300 * np.dtype(dtype).itemsize / 2**20
    reference = solve_smo(Gram(X, kernel, storage="full", dtype=dtype), costs, tol=1e-4)
    for storage, megabytes, slots in (
        ("rows", 1000, 300),
        ("rows", 5.5 * row, 5),
        ("rows", 3.5 * row, 3),
        ("rows", 1e-9, 2),
        ("auto", 1000, 300),
        ("auto", 20.5 * row, 20),
    ):
        gram = Gram(X, kernel, megabytes, storage, dtype)
        assert gram.cache.values.shape == (slots, 300)
        found = solve_smo(gram, costs, tol=1e-4)
        assert_array_equal(found.beta, reference.beta)
        assert (found.b, found.n_iter) == (reference.b, reference.n_iter)


def test_storage_is_chosen_by_memory_and_use(two_gaussians):
    kernel = Kernel("rbf", 0.3)
    X, _ = two_gaussians(n=1600)
    assert Gram(X[:1500], kernel).storage == "full"
    assert Gram(X, kernel).storage == "rows"
    assert Gram(X, kernel, n_solves=3).storage == "full"
    assert Gram(X[:1000], kernel, megabytes=3).storage == "rows"
    K = kernel.gram(X[:100])
    assert Gram(K, Kernel("precomputed"), megabytes=1e-6, storage="rows").storage == "full"


def test_the_estimator_says_how_values_are_kept(two_gaussians):
    X, t = two_gaussians(n=60)
    assert SVM().fit(X, t + 2).gram_ == "full"
    assert SVM(gram="rows").fit(X, t + 2).gram_ == "rows"
    assert SVM(memory=0.001).fit(X, t + 2).gram_ == "rows"


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_single_and_double_precision_agree(two_gaussians, kernel):
    X, t = two_gaussians(n=200, seed=6)
    costs = svc_costs(t, np.full(200, 10.0))
    single, double = (
        solve_smo(Gram(X, kernel, dtype=dtype), costs, tol=1e-4)
        for dtype in (np.float32, np.float64)
    )
    assert_allclose(single.objective, double.objective, rtol=1e-6)
    assert_allclose(single.f + single.b, double.f + double.b, atol=3e-3)


@pytest.mark.parametrize("shift", [4.0, 7.0, 20.0])
def test_the_violation_is_below_tol_for_large_kernel_values_too(two_gaussians, shift):
    X, t = two_gaussians(n=40, d=2, distance=2.0)
    X, tol = X + shift, 1e-3
    model = SVM(kernel="poly", coef0=1.0, tol=tol).fit(X, t + 2)
    assert model.termination_condition_ == "converged"
    costs, beta = svc_costs(t, np.ones(40)), signed_dual(model, 40)
    gap = -costs.s1 - model.problem_.kernel.gram(X) @ beta  # in double precision
    violation = gap[beta < costs.hi].max() - gap[beta > costs.lo].min()
    assert violation <= 1.1 * tol


def test_single_precision_is_for_values_whose_rounding_is_below_the_tolerance(two_gaussians):
    X, _ = two_gaussians(n=50, d=3)
    rbf, linear = Kernel("rbf", 0.3), Kernel("linear")

    def dtype(kernel, tol, X=X, **options):
        return Gram(X, kernel, tol=tol, **options).cache.values.dtype

    assert dtype(rbf, 1e-5) == dtype(linear, 1e-3) == dtype(rbf, np.inf) == np.float32
    assert dtype(rbf, 9e-6) == dtype(rbf, 1e-3, dtype=np.float64) == np.float64
    largest = np.square(X).sum(axis=1).max()
    unit = 0.1 * 1e-3 / np.finfo(np.float32).eps / largest
    assert dtype(linear, 1e-3, np.sqrt(0.99 * unit) * X) == np.float32
    assert dtype(linear, 1e-3, np.sqrt(1.01 * unit) * X) == np.float64


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_single_precision_is_for_rows_whose_rounding_is_below_the_tolerance(name, form):
    kernel, sizes = (
        Kernel(name, 0.3),
        0.1 * 1e-3 / np.finfo(np.float32).eps * np.array([0.99, 1.01]),
    )
    rows = np.zeros((50, 2))  # their center is 0
    rows[30:] = [0.5, -0.5] if name == "laplacian" else [0.6, -0.8]  # of length 1
    if name == "laplacian":
        sizes /= 0.3
    else:
        sizes = np.sqrt(sizes / 0.3) if form is sp.csr_matrix else sizes / np.sqrt(0.3)
    grams = [Gram(form(size * rows), kernel, tol=1e-3) for size in sizes]
    assert [gram.cache.values.dtype for gram in grams] == [np.float32, np.float64]
    assert [gram.diagonal.dtype for gram in grams] == [np.float32, np.float64]


def test_with_a_large_C_double_precision_is_one_tolerance_away():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = (X[:, 0] + 0.7 * rng.standard_normal(300) > 0).astype(int)
    K, C, residuals = Kernel("rbf", 0.3).gram(X), 1e4, []
    for tol in (1e-3, 9e-6):
        model = SVM(C=C, gamma=0.3, tol=tol).fit(X, y)
        beta = np.zeros(300)
        beta[model.support_] = model.dual_coef_[0]
        upper = np.full(300, C)
        residuals.append(svm_kkt_residual(K, beta, model.intercept_[0], 2 * y - 1, upper))
    assert residuals[0] > 1e-3 and residuals[1] < 9e-6


@pytest.mark.parametrize("C", [1e4, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_has_converged_with_a_huge_C_or_weight_has_a_small_gap(two_gaussians, C, weighted):
    """Outputs to within tol alone leave C tol a row in J, which has no part of C here."""
    X, t = two_gaussians(n=60)
    kernel = Kernel("rbf", 3.0)  # the classes are apart
    weight = np.where((np.arange(t.size) < 10) | (not weighted), C, 1.0)
    best = solve_smo(Gram(X, kernel, dtype=np.float64), svc_costs(t, weight), tol=1e-9)
    model = SVM(kernel="rbf", gamma=3.0, C=1.0 if weighted else C)
    model.fit(X, t, sample_weight=weight if weighted else None, unlabeled_mask=t == 0)
    assert model.termination_condition_ == "converged" and not model.findings_
    assert -best.objective < 1e3
    assert -best.objective * (1 - 1e-6) <= model.objective_ <= -best.objective / 0.95


def test_a_gap_that_rounding_leaves_is_said():
    """Two rows a hair apart: their variables are about 1e15, and so is what rounding leaves."""
    X, t = np.array([[0.0], [1.5e-7], [1.0]]), np.array([1.0, -1.0, 1.0])
    solution = solve_smo(Gram(X, Kernel("rbf", 1.0), dtype=np.float64), svc_costs(t, 1e18 + 0 * t))
    assert solution.status == "stalled"


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_groups_far_apart_keep_their_digits(two_gaussians, name, form):
    X, t = two_gaussians(n=60, d=3)
    kernel, both = Kernel(name, 1.0), form(np.vstack([X, X + 1e5]))
    values = Gram(both, kernel, tol=1e-3).cache.values
    assert_allclose(values[60:, 60:], kernel.gram(X), atol=1e-4)
    alone = Gram(form(X), kernel, tol=1e-3)
    assert alone.cache.values.dtype == np.float32
    y, options = np.tile(t + 2, 2), dict(kernel=name, gamma=1.0, C=10.0)
    rough, exact = (SVM(tol=tol, **options).fit(both, y) for tol in (1e-3, 1e-8))
    outputs = [model.decision_function(both) for model in (rough, exact)]
    assert_allclose(*outputs, atol=3e-3)


# --- Starts, limits and callbacks -----------------------------------------------------------------


@pytest.mark.parametrize("shrinking", [True, False])
def test_a_start_at_the_solution_needs_no_iterations(two_gaussians, shrinking):
    X, t = two_gaussians(n=300, seed=8)
    gram = Gram(X, Kernel("rbf", 0.3), dtype=np.float64)
    costs = svc_costs(t, np.full(300, 10.0))
    cold = solve_smo(gram, costs, tol=1e-6, shrinking=shrinking)
    warm = solve_smo(gram, costs, cold.beta, tol=1e-6, shrinking=shrinking)
    assert warm.n_iter <= 2
    assert_allclose(warm.objective, cold.objective, rtol=1e-12)
    assert_allclose(warm.f + warm.b, cold.f + cold.b, atol=2e-6)


def test_a_start_at_a_nearby_solution_saves_iterations(two_gaussians):
    took = np.zeros(2)
    for seed in range(8):
        X, t = two_gaussians(n=300, seed=seed)
        gram = Gram(X, Kernel("rbf", 0.3), dtype=np.float64)
        near = solve_smo(gram, svc_costs(t, np.full(300, 9.9)), tol=1e-6)
        costs = svc_costs(t, np.full(300, 10.0))
        cold = solve_smo(gram, costs, tol=1e-6)
        start = feasible(near.beta, costs)
        before = start.copy()
        warm = solve_smo(gram, costs, start, tol=1e-6)
        assert_array_equal(start, before)
        assert_allclose(warm.objective, cold.objective, rtol=1e-9)
        took += cold.n_iter, warm.n_iter
    assert took[1] < 0.8 * took[0]


def test_the_limit_on_iterations_is_kept(two_gaussians):
    X, t = two_gaussians(n=200, seed=8)
    gram = Gram(X, Kernel("rbf", 0.3))
    costs = svc_costs(t, np.full(200, 10.0))
    found = solve_smo(gram, costs, max_iter=7)
    assert (found.n_iter, found.status) == (7, "max_iter")
    assert found.violation > 1e-3
    assert abs(found.beta.sum()) < 1e-12
    assert_allclose(found.violation, max_violation(found, costs), rtol=1e-9)


def max_violation(found, c):
    up = np.where(found.beta < c.hi, -c.s1, -BIG) - found.f
    down = np.where(found.beta > c.lo, -c.s1, BIG) - found.f
    return up.max() - down.min()


def test_a_callback_sees_progress_and_can_stop(two_gaussians):
    X, t = two_gaussians(n=600, seed=8)
    gram, costs = Gram(X, Kernel("rbf", 0.3)), svc_costs(t, np.full(600, 100.0))
    seen = []
    full = solve_smo(gram, costs, callback=lambda state: seen.append(state))
    assert full.status == "converged"
    assert [tuple(state.values()) for state in seen] == full.history
    assert seen[0].keys() == {"n_iter", "violation", "n_active"}
    stopped = solve_smo(gram, costs, callback=lambda state: True)
    assert (stopped.status, stopped.n_iter) == ("stopped", seen[0]["n_iter"])
    assert full.history[-1][0] == full.n_iter


def test_what_a_callback_stops_has_converged_only_within_the_tolerance(two_gaussians):
    X, t = two_gaussians(n=200, seed=8)
    gram, costs = Gram(X, Kernel("rbf", 0.3)), svc_costs(t, np.full(200, 10.0))
    seen = set()
    for tol in np.geomspace(1e-5, 1, 25):
        found = solve_smo(gram, costs, tol=tol, callback=lambda state: state["n_iter"] >= 300)
        assert found.status == ("converged" if found.violation < tol else "stopped")
        seen.add((found.status, found.violation < 9 * tol))
    assert seen >= {("stopped", False), ("stopped", True), ("converged", True)}


# --- Invariances ----------------------------------------------------------------------------------


def test_translation_and_scale(two_gaussians):
    X, t = two_gaussians(n=100, seed=9)
    expected = SVM(kernel="linear", tol=1e-9).fit(X, t + 2).decision_function(X)
    moved = SVM(kernel="linear", tol=1e-9).fit(X + 5, t + 2)
    assert_allclose(moved.decision_function(X + 5), expected, atol=1e-6)
    scaled = SVM(kernel="linear", C=0.01, tol=1e-9).fit(10 * X, t + 2)
    assert_allclose(scaled.decision_function(10 * X), expected, atol=1e-6)


# --- By hand --------------------------------------------------------------------------------------


def test_two_points_by_hand():
    """Points 0 and 2: w = 1, b = −1 and α = ½; with C < ½ both stay at the bound and w = 2C."""
    X, y = np.array([[0.0], [2.0]]), ["left", "right"]
    model = SVM(kernel="linear", C=10.0, tol=1e-9).fit(X, y)
    assert_allclose(model.coef_, [[1.0]])
    assert_allclose(model.intercept_, [-1.0])
    assert_allclose(model.dual_coef_, [[-0.5, 0.5]])
    assert_allclose(model.objective_, 0.5)
    model = SVM(kernel="linear", C=0.1, tol=1e-9).fit(X, y)
    assert_allclose(model.coef_, [[0.2]])
    # Any b between −1 and 0.6 costs the same; the middle is taken.
    assert_allclose(model.intercept_, [-0.2])
    assert_allclose(model.objective_, 0.02 + 0.1 * 1.6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_label_alone_is_the_constant_that_costs_nothing(sign):
    """Σβ = 0 leaves β = 0, and b is free beyond ±1: the value nearest to 0 is taken."""
    X = np.arange(6.0).reshape(3, 2)
    gram = Gram(X, Kernel("rbf", 0.5), dtype=np.float64)
    found = solve_smo(gram, svc_costs(np.full(3, sign), np.ones(3)))
    assert found.status == "converged"
    assert_array_equal(found.beta, 0)
    assert found.b == sign


def test_three_points_by_hand():
    """Points −1, 0 and 3 labeled −, −, +: the margin spans 0 to 3, the first carries nothing."""
    X, y = np.array([[-1.0], [0.0], [3.0]]), [0, 0, 1]
    model = SVM(kernel="linear", C=10.0, tol=1e-9).fit(X, y)
    assert_array_equal(model.support_, [1, 2])
    assert_allclose(model.coef_, [[2 / 3]])
    assert_allclose(model.intercept_, [-1.0])
    assert_allclose(model.dual_coef_, [[-2 / 9, 2 / 9]])


def test_two_points_with_the_rbf_kernel_by_hand():
    """f = α(k(x, 1) − k(x, 0)) with α = 1/(1 − k(0, 1))."""
    model = SVM(gamma=1.0, C=100.0, tol=1e-9).fit([[0.0], [1.0]], [0, 1])
    assert_allclose(model.dual_coef_, [[-1, 1] / (1 - np.exp(-1))])
    assert_allclose(model.decision_function([[0.0], [0.5], [1.0]]), [-1, 0, 1], atol=1e-9)


# --- Hard input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_identical_points(kernel, form):
    X = form(np.full((5, 2), 0.7))
    model = SVM(kernel=kernel, C=3.0, tol=1e-6).fit(X, [0, 0, 0, 1, 1])
    # f is constant, and −1 is the best constant: both positives lose 2.
    assert_allclose(model.decision_function(X), -1, atol=1e-5)
    assert_allclose(model.objective_, 3.0 * 4, rtol=1e-5)


def test_all_rows_zero():
    model = SVM(kernel="linear").fit(np.zeros((4, 2)), [0, 1, 1, 1])
    assert_allclose(model.decision_function(np.zeros((2, 2))), 1)
    assert_allclose(model.coef_, 0)


def test_a_constant_feature_moves_only_the_offset(two_gaussians):
    X, t = two_gaussians(n=60)
    plain = SVM(kernel="linear", tol=1e-9).fit(X, t + 2)
    more = SVM(kernel="linear", tol=1e-9).fit(np.c_[X, np.full(60, 3.0)], t + 2)
    assert_allclose(more.coef_[0, :3], plain.coef_[0], atol=1e-7)
    assert_allclose(more.coef_[0, 3], 0, atol=1e-7)
    assert_allclose(more.intercept_, plain.intercept_, atol=1e-6)


def test_contradictory_duplicates(two_gaussians):
    X, t = two_gaussians(n=40)
    model = SVM(C=1e4, gamma=0.5).fit(np.r_[X, X], np.r_[t, -t] + 2)
    assert model.termination_condition_ == "converged"
    assert_allclose(model.objective_, 1e4 * 80, rtol=1e-4)


@pytest.mark.parametrize("C", [1e-12, 1e-6])
def test_tiny_C(two_gaussians, C):
    X, t = two_gaussians(n=60)
    t[:7] = 1
    model = SVM(C=C, gamma=0.3).fit(X, t + 2)
    theirs = SVC(C=C, gamma=0.3).fit(X, t)
    assert model.termination_condition_ == "converged"
    assert_allclose(model.objective_, 2 * C * min(np.sum(t > 0), np.sum(t < 0)), rtol=1e-3)
    assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("C", [1e6, 1e12])
def test_huge_C_gives_the_hard_margin(two_gaussians, C):
    X, t = two_gaussians(n=60, distance=12.0)
    model = SVM(kernel="linear", C=C, tol=1e-6).fit(X, t + 2)
    theirs = SVC(kernel="linear", C=1e3, tol=1e-8).fit(X, t)
    assert model.termination_condition_ == "converged"
    assert np.min(t * model.decision_function(X)) >= 1 - 1e-5
    assert_allclose(model.coef_, theirs.coef_, atol=1e-4)


def test_weights_of_any_size(two_gaussians):
    X, t = two_gaussians(n=80, seed=2)
    weight = 10.0 ** np.random.default_rng(0).uniform(-8, 8, 80)
    model = SVM(gamma=2.0, tol=1e-5).fit(X, t + 2, sample_weight=weight)
    beta, K = signed_dual(model, 80), Kernel("rbf", 2.0).gram(X)
    assert model.termination_condition_ == "converged"
    assert svm_kkt_residual(K, beta, model.intercept_[0], t, weight) < 2e-5


@pytest.mark.parametrize(
    ("kernel", "scale"),
    [("linear", 1e-3), ("linear", 1e3), ("linear", 1e15), ("rbf", 1e-100), ("rbf", 1e15)],
)
def test_data_of_any_size(two_gaussians, kernel, scale):
    X, t = two_gaussians(n=40, distance=8.0)
    options = dict(kernel=kernel, C=1 / scale**2 if kernel == "linear" else 1.0)
    model = SVM(**options, max_iter=100_000).fit(scale * X, t + 2)
    expected = SVM(kernel=kernel).fit(X, t + 2).decision_function(X)
    assert model.termination_condition_ == "converged"
    assert_allclose(model.decision_function(scale * X), expected, atol=1e-2)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_data_far_from_the_origin(two_gaussians, kernel):
    X, t = two_gaussians(n=60, distance=4.0)
    expected = SVM(kernel=kernel, gamma=0.5).fit(X, t + 2).decision_function(X)
    for rows in (X + 1e4, sp.csr_matrix(X + 1e4)):
        found = SVM(kernel=kernel, gamma=0.5).fit(rows, t + 2).decision_function(rows)
        assert_allclose(found, expected, atol=1e-2)


@pytest.mark.parametrize(("kernel", "scale"), [("linear", 1e20), ("poly", 1e12), ("rbf", 1e150)])
def test_data_too_large_for_single_precision(two_gaussians, kernel, scale):
    """Kernel values beyond 1e38 are computed in double precision, or refused by name."""
    X, t = two_gaussians(n=40, distance=8.0)
    model = SVM(kernel=kernel, gamma=1.0, C=1e-3, max_iter=10_000)
    try:
        model.fit(scale * X, t + 2)
    except ValueError as error:
        assert re.search("scale|large|overflow|finite", str(error))
    else:
        assert np.all(np.isfinite(model.decision_function(scale * X)))


def test_a_large_gram_matrix_with_near_duplicates(two_gaussians):
    """Curvatures K_ii + K_jj − 2K_ij are a ten-billionth of the values they are taken from."""
    X, t = two_gaussians(n=60, distance=2.0)
    far = X + 1e5
    K = far @ far.T
    model = SVM(kernel="precomputed", max_iter=200_000).fit(K, t + 2)
    centered = SVM(kernel="linear").fit(X, t + 2)
    assert model.termination_condition_ == "converged"
    assert_allclose(model.decision_function(K), centered.decision_function(X), atol=1e-2)


def test_unlabeled_rows_have_no_influence(semi_supervised):
    X, y = semi_supervised(n=60, n_labeled=30)
    labeled = y >= 0
    with_them, without = SVM(gamma=0.5, tol=1e-9).fit(X, y), SVM(gamma=0.5, tol=1e-9)
    without.fit(X[labeled], y[labeled])
    assert_array_equal(with_them.decision_function(X), without.decision_function(X))
    assert np.all(np.isin(with_them.support_, np.flatnonzero(labeled)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random_problems_equal_cvxpy(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(16, 90))
    X = rng.standard_normal((n, int(rng.integers(1, 6)))).round(int(rng.integers(0, 3)))
    kernel = KERNELS[seed % 4]
    c = random_costs(n, seed, unbounded=0)
    scale = 10.0 ** rng.uniform(-2, 2)
    c = c._replace(lo=scale * c.lo, mid=scale * c.mid, hi=scale * c.hi)
    gram = Gram(X, kernel, dtype=np.float64)
    found = solve_smo(gram, c, feasible(np.zeros(n), c), tol=1e-7, max_iter=2_000_000)
    value, _ = cvxpy_minimum(kernel.gram(X), c)
    assert found.status == "converged"
    assert_allclose(found.objective, value, atol=1e-6 * max(1, abs(value)) * max(1, scale))


@pytest.mark.slow
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_larger_problems_equal_svc(mixture, C):
    X, t = mixture(4000)
    kernel = Kernel("rbf", 1 / 32)
    ours = svm(kernel, C=C, gram="rows", memory=20).fit(X, t + 2)
    theirs = SVC(C=C, gamma=1 / 32, cache_size=1000).fit(X, t)
    K = kernel.gram(X)
    dual = [svm_dual(K, signed_dual(model, len(t)), t) for model in (ours, theirs)]
    assert_allclose(dual[0], dual[1], rtol=1e-6)
    assert abs(ours.n_iter_ / int(theirs.n_iter_.sum()) - 1) < 0.05


# --- Scales that people really have ---------------------------------------------------------------


def amounts_and_years(seed):
    """25 raw rows of a table: amounts, years and two counts."""
    rng = np.random.default_rng(seed)
    y = np.arange(25) % 2
    X = np.c_[rng.lognormal(10, 1.2, 25), rng.integers(1950, 2021, 25), rng.poisson(3, 25) + y]
    return np.round(X, 2), y


@pytest.mark.parametrize("seed", range(3))
def test_raw_columns_are_solved_in_few_iterations(seed):
    X, y = amounts_and_years(seed)
    model = SVM(kernel="linear", max_iter=50_000).fit(X, y)
    assert model.termination_condition_ == "converged"
    beta, Z = np.zeros(25), X - X.mean(axis=0)
    beta[model.support_] = model.dual_coef_[0]
    b = float(model.intercept_[0] + model.coef_[0] @ X.mean(axis=0))
    assert svm_duality_gap(Z @ Z.T, beta, b, 2.0 * y - 1, np.ones(25)) < 1e-3 * model.objective_


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
def test_a_tolerance_below_rounding_ends(kernel):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(10, 2)) * 10.0 ** rng.integers(-2, 4), np.arange(10) % 2
        model = SVM(kernel=kernel, tol=1e-16, C=10.0 ** rng.integers(-2, 3), max_iter=20_000)
        assert model.fit(X, y).termination_condition_ == "converged"


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_what_rounding_leaves_unsolved_is_said_with_column_and_factor(form):
    X, y = amounts_and_years(0)
    message = "column 0 of X has absolute values up to .*: divide it by 100000"
    with pytest.warns(ConvergenceWarning, match=message):
        model = SVM(kernel="poly", degree=4, gamma=1.0).fit(form(X), y)
    assert model.termination_condition_ == "stalled"
    assert model.objective_ >= 0


@pytest.mark.parametrize("size", [1e5, 1e7, 1e9, 1e11])
@pytest.mark.parametrize("n", [20, 100, 400])
def test_a_number_that_stands_for_a_missing_one_spoils_no_other_row(n, size):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 2)), np.arange(n) % 2
    X[:, 0] += 3 * y
    X[1, 1] = size
    model = SVM(kernel="linear").fit(X, y)
    assert model.termination_condition_ == "converged"
    # The machine of the other rows, when a tiny slope puts this one on its side.
    rest = SVC(kernel="linear").fit(np.delete(X, 1, axis=0), np.delete(y, 1))
    slope = np.r_[rest.coef_[0, 0], (2 - rest.decision_function([[X[1, 0], 0.0]])[0]) / size]
    others = X @ slope + rest.intercept_
    others = 0.5 * slope @ slope + np.maximum(0, 1 - (2 * y - 1) * others).sum()
    assert model.objective_ <= 1.001 * others
    assert model.score(X, y) >= 0.85


def test_a_solve_that_does_not_end_is_given_up():
    X, y = amounts_and_years(0)
    with pytest.warns(ConvergenceWarning, match="rounding lets no step make progress"):
        model = SVM(kernel="poly", degree=3, gamma=1.0).fit(X, y)
    assert model.n_iter_ <= 3000 * 25
