"""CCCP: the convex problem against cvxpy, descent, global optima, the mean point, the estimator."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from s3vm_lib import CCCPS3VM, SVM
from s3vm_lib.cccp import concave_slopes, inner_costs, solve_cccp
from s3vm_lib.checks import brute_force
from s3vm_lib.datasets import make_g2c
from s3vm_lib.gram import Gram, add_rows
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem, evaluate
from s3vm_lib.reference import cccp as twin
from s3vm_lib.smo import BIG, Costs, block_steps, feasible, line_minimum, null_step, solve_smo
from s3vm_lib.smo._solver import face_step

RBF = Kernel("rbf", 0.3)
KERNELS = [
    Kernel("linear"),
    Kernel("poly", 0.2, 2, 1.0),
    RBF,
    Kernel("laplacian", 0.4, sigma_f=1.2),
]
HINGE, RAMP = UnlabeledLoss("symmetric_hinge"), UnlabeledLoss("symmetric_ramp")


def name_of(kernel):
    return kernel.name


def clouds(n=40, labeled=8, d=3, distance=1.6, seed=0):
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


def shares(t, weight=None):
    """Weights of the mean over the unlabeled rows."""
    m = (t == 0) * (np.ones(t.size) if weight is None else weight)
    return m / m.sum()


def make_problem(loss=RAMP, C=2.0, C_star=0.7, ratio=0.4, kernel=RBF):
    balance = "none" if ratio is None else "mean"
    return Problem(LabeledLoss("hinge"), loss, C, C_star, kernel, balance=balance, ratio=ratio)


def solve(X, t, problem, weight=None, tol=1e-8, dtype=np.float64, **options):
    weight = np.ones(t.size) if weight is None else weight
    mean = None if problem.balance == "none" else shares(t, weight)
    gram = Gram(X, problem.kernel, dtype=dtype, mean_weights=mean)
    return solve_cccp(gram, t, weight, problem, tol=tol, **options)


# --- Losses and slopes ----------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [HINGE, RAMP, UnlabeledLoss("symmetric_ramp", 0.4)], ids=repr)
def test_slopes_are_those_of_the_concave_part(loss):
    f = np.random.default_rng(0).uniform(-3, 3, 200)
    upper = np.random.default_rng(1).uniform(0.5, 2, 200)
    h = 1e-4
    f = f[np.abs(np.abs(f) - abs(loss.p)) > 2 * h]
    upper = upper[: f.size]
    difference = -(loss.concave_part(f + h)[0] - loss.concave_part(f - h)[0]) / (2 * h)
    assert_allclose(concave_slopes(loss, f, upper), upper * difference, atol=1e-9)
    assert set(np.round(concave_slopes(loss, f, 1.0), 12)) <= {-1.0, 0.0, 1.0}


@pytest.mark.parametrize("s", [0.1, 0.5, 0.9])
def test_ramps_of_opposite_s_differ_by_a_constant(s):
    f = np.linspace(-3, 3, 301)
    plus, minus = (UnlabeledLoss("symmetric_ramp", p) for p in (s, -s))
    assert_allclose(minus.value(f) - plus.value(f), 2 * s, atol=1e-12)


def test_the_procedure_depends_on_the_size_of_s_alone():
    X, t = clouds()
    found = [solve(X, t, make_problem(UnlabeledLoss("symmetric_ramp", s))) for s in (-0.4, 0.4)]
    assert_allclose(found[0].outputs, found[1].outputs, atol=1e-9)
    assert_allclose(found[0].objective - found[1].objective, 0.8 * 0.7 * 32, rtol=1e-9)


# --- The convex problem: Collobert's, with every unlabeled row twice, by an interior-point method -


def doubled_by_cvxpy(K, t, weight, problem, delta):
    """Outputs and offset of the dual with 2u variables, equations (14)-(16) of the paper.

    Every unlabeled row appears with label +1 and with label −1; the slope δ_j ≥ 0 belongs to one
    of the two copies, whose box it shifts.
    """
    cp = pytest.importorskip("cvxpy")
    n, U = t.size, np.flatnonzero(t == 0)
    rows = np.r_[np.flatnonzero(t), U, U]
    label = np.r_[t[t != 0], np.ones(U.size), -np.ones(U.size)]
    upper = np.r_[problem.C * weight[t != 0], np.tile(problem.C_star * weight[U], 2)]
    mu = np.r_[np.zeros(n - U.size), np.maximum(-delta, 0), np.maximum(delta, 0)]
    big = K[np.ix_(rows, rows)]
    linear = label.copy()
    if problem.balance == "mean":
        m = shares(t, weight)
        column = (K @ m)[rows]
        big = np.block([[big, column[:, None]], [column[None, :], np.array([[m @ K @ m]])]])
        linear = np.append(linear, 2 * problem.ratio - 1)
    values, vectors = np.linalg.eigh(big)
    root = vectors * np.sqrt(np.maximum(values, 0))
    beta = cp.Variable(len(big))
    signed = cp.multiply(label, beta[: rows.size])
    offset = cp.sum(beta) == 0
    constraints = [offset, signed >= -mu, signed <= upper - mu]
    goal = cp.Minimize(cp.sum_squares(root.T @ beta) / 2 - linear @ beta)
    options = dict(tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    program = cp.Problem(goal, constraints)
    program.solve(solver=cp.CLARABEL, **options)
    combined = np.zeros(n)
    np.add.at(combined, rows, beta.value[: rows.size])
    if problem.balance == "mean":
        combined += beta.value[-1] * m
    return combined, float(program.value), float(offset.dual_value)


@pytest.mark.parametrize("ratio", [0.4, 0.85, None])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_the_convex_problem_equals_the_doubled_one(kernel, weighted, ratio):
    X, t = clouds(seed=2)
    rng = np.random.default_rng(3)
    weight = rng.uniform(0.3, 3, t.size) if weighted else np.ones(t.size)
    problem = make_problem(ratio=ratio, kernel=kernel)
    width = problem.C_star * weight[t == 0]
    delta = width * rng.integers(-1, 2, width.size)
    K = kernel.gram(X)
    combined, value, b = doubled_by_cvxpy(K, t, weight, problem, delta)
    mean = None if ratio is None else shares(t, weight)
    gram = Gram(X, kernel, dtype=np.float64, mean_weights=mean)
    costs = inner_costs(
        t, problem.C * weight, width, delta, None if ratio is None else 2 * ratio - 1
    )
    start = feasible(np.zeros(gram.diagonal.size), costs, shift=False)
    found = solve_smo(gram, costs, start, tol=1e-9)
    assert_allclose(found.f[: t.size], K @ combined, atol=1e-6)
    # Given β_j = μ⁺ − μ⁻, the best split of it pays |β_j − δ_j| − (2 C* s_j − |δ_j|); `solve_smo`
    # counts costs from the feasible point nearest to 0.
    zero = np.clip(0, costs.lo, costs.hi)[: t.size][t == 0]
    constant = np.sum(np.abs(zero - delta)) - np.sum(2 * width - np.abs(delta))
    assert_allclose(found.objective + constant, value, atol=1e-6)
    if ratio is not None:
        assert_allclose(2 * ratio - 1 - found.f[-1], b, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", [HINGE, RAMP], ids=["hinge", "ramp"])
def test_the_solution_solves_its_own_convex_problem(loss, seed):
    X, t = clouds(seed=seed)
    weight = np.random.default_rng(seed).uniform(0.3, 3, t.size) if seed % 2 else np.ones(t.size)
    problem = make_problem(loss)
    found = solve(X, t, problem, weight)
    delta = concave_slopes(loss, found.outputs[t == 0], 0.7 * weight[t == 0])
    K = RBF.gram(X)
    combined, *_ = doubled_by_cvxpy(K, t, weight, problem, delta)
    assert_allclose(K @ combined, found.outputs - found.b, atol=1e-6)
    assert_allclose(K @ found.beta, found.outputs - found.b, atol=1e-10)
    assert found.status == "converged"
    assert found.history[-1].n_changed == 0


# --- Descent and balance --------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-7])
@pytest.mark.parametrize("loss", [HINGE, RAMP], ids=["hinge", "ramp"])
@pytest.mark.parametrize("ratio", [0.5, 0.75, None])
def test_the_objective_never_rises_and_the_balance_is_kept(loss, ratio, tol):
    loops = 0
    for seed, C_star in itertools.product(range(5), (0.05, 0.5, 5.0)):
        X, t = clouds(n=60, seed=seed)
        found = solve(X, t, make_problem(loss, C_star=C_star, ratio=ratio), tol=tol)
        values = np.array([loop.objective for loop in found.history])
        # An inner solution misses its minimum by at most its violation times Σ(hi − lo).
        slack = found.history[-1].violation * (2.0 * 8 + 2 * C_star * 52)
        assert np.all(np.diff(values) <= max(slack, 1e-9))
        assert all(loop.balance_residual <= 1e-12 for loop in found.history)
        assert all(loop.violation < tol for loop in found.history)
        assert found.status == "converged"
        loops += len(values)
    assert loops >= 35


def test_of_inexact_solutions_the_best_is_returned_and_the_first_that_does_not_fall_is_the_last():
    problem, K, rises = make_problem(C_star=5.0), None, 0
    for seed, most in itertools.product(range(6), (2, 5, 15)):
        X, t = clouds(n=60, seed=seed)
        K = RBF.gram(X)
        found = solve(X, t, problem, max_inner_iter=most, max_iter=40)
        values = [loop.objective for loop in found.history]
        assert found.objective == min(values)
        assert np.all(np.diff(values[:-1]) < 0)
        norm2 = found.beta @ K @ found.beta
        assert_allclose(problem.value(found.outputs, t, norm2), found.objective, rtol=1e-9)
        rises += values[-1] > found.objective
    assert rises > 0


def test_the_history_holds_the_objective_of_the_problem():
    X, t = clouds(n=60)
    problem = make_problem()
    states = []
    found = solve(X, t, problem, callback=states.append)
    assert states == found.history
    assert found.history[-1].objective == found.objective
    norm2 = found.beta @ RBF.gram(X) @ found.beta
    assert_allclose(problem.value(found.outputs, t, norm2), found.objective, rtol=1e-12)
    start = solve(X, t, problem, max_iter=1)
    assert start.history == found.history[:1]
    assert start.status == "max_iter"
    assert start.n_iter == 1


def test_the_history_counts_the_rows_that_change_their_slope():
    """The ramp of s = −0.3 has a slope on both sides of ±0.3; the supervised start has none."""
    X, t = clouds(n=60)
    counts, before = [], np.zeros(52)
    for loops in (1, 2, 3):
        found = solve(X, t, make_problem(), max_iter=loops)
        f = found.outputs[t == 0]
        slopes = np.sign(f) * (np.abs(f) > 0.3)
        counts.append(np.sum(slopes != before))
        before = slopes
    assert [loop.n_changed for loop in found.history] == counts
    assert counts[0] > counts[1] > 1


def test_limits_inside_and_outside_are_kept():
    X, t = clouds(n=60)
    found = solve(X, t, make_problem(C_star=5.0), max_inner_iter=7)
    assert all(loop.n_iter <= 7 for loop in found.history)
    assert found.status == "max_iter"
    assert solve(X, t, make_problem(C_star=5.0), max_iter=2).n_iter == 2
    assert solve(X, t, make_problem(), callback=lambda loop: True).status == "stopped"
    with pytest.warns(ConvergenceWarning, match="CCCPS3VM .*=3 .* max_iter or max_inner_iter, "):
        CCCPS3VM(max_inner_iter=3).fit(X, labels(t))


# --- Global optima --------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0.5, None])
@pytest.mark.parametrize("kernel", [Kernel("linear"), RBF, Kernel("laplacian", 0.4)], ids=name_of)
def test_never_below_the_global_optimum_of_the_symmetric_hinge(kernel, ratio):
    hits = 0
    for seed in range(6):
        X, t = clouds(n=13, labeled=4, distance=3.0, seed=seed)
        problem = make_problem(HINGE, C_star=0.5, ratio=ratio, kernel=kernel)
        best = brute_force(problem, kernel.gram(X), t).objective
        found = solve(X, t, problem).objective
        assert found >= best - 1e-6
        # The ramp leads to lower values of the same J.
        by_ramp = solve(X, t, make_problem(C_star=0.5, ratio=ratio, kernel=kernel))
        again = solve(X, t, problem, start=by_ramp.outputs).objective
        assert again >= best - 1e-6
        hits += min(found, again) < best + 1e-3 * abs(best)
    assert hits >= 4


@pytest.mark.parametrize("ratio", [0.5, None])
def test_never_below_the_global_optimum_of_the_ramp(ratio):
    # −h(f) = min(0, |s| − f, |s| + f): for each choice of one piece a row the problem is convex.
    hits = 0
    for seed in range(5):
        X, t = clouds(n=9, labeled=4, distance=3.0, seed=seed)
        problem = make_problem(C_star=0.5, ratio=ratio)
        gram = Gram(X, RBF, dtype=np.float64, mean_weights=None if ratio is None else shares(t))
        best = np.inf
        for signs in itertools.product((-1.0, 0.0, 1.0), repeat=5):
            delta = 0.5 * np.array(signs)
            costs = inner_costs(
                t, np.full(9, 2.0), np.full(5, 0.5), delta, None if ratio is None else 2 * ratio - 1
            )
            start = feasible(np.zeros(gram.diagonal.size), costs, shift=False)
            inner = solve_smo(gram, costs, start, tol=1e-8)
            f = inner.f[:9] + (inner.b if ratio is None else 2 * ratio - 1 - inner.f[9])
            tangent = 0.3 * np.abs(signs) - np.array(signs) * f[t == 0]
            convex = 2 + np.maximum(0, np.abs(f[t == 0]) - 1)
            hinges = np.maximum(0, 1 - t * f)[t != 0]
            value = inner.beta @ inner.f / 2 + 2.0 * hinges.sum() + 0.5 * np.sum(convex + tangent)
            if value < best:
                best, outputs = value, f
        found = solve(X, t, problem).objective
        assert found >= best - 1e-6
        hits += found < best + 1e-3 * best
        assert_allclose(solve(X, t, problem, start=outputs).objective, best, atol=1e-6)
    assert hits >= 1


# --- Nothing unlabeled ----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_without_unlabeled_rows_it_is_the_svm(two_gaussians, kernel):
    X, t = two_gaussians(n=80)
    options = dict(
        kernel=kernel.name,
        gamma=kernel.gamma,
        degree=kernel.degree,
        coef0=kernel.coef0,
        sigma_f=kernel.sigma_f,
        tol=1e-7,
    )
    model = CCCPS3VM(**options).fit(X, labels(t))
    theirs = SVC(kernel=kernel.gram, tol=1e-7).fit(X, t)
    assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert_allclose(model.objective_, SVM(**options).fit(X, labels(t)).objective_, rtol=1e-8)
    assert model.n_iter_ == 1


def test_without_cost_the_balance_still_holds():
    X, t = clouds(n=40)
    problem = make_problem(C_star=0.0, ratio=0.8)
    found = solve(X, t, problem)
    combined, *_ = doubled_by_cvxpy(RBF.gram(X), t, np.ones(40), problem, np.zeros(32))
    assert_allclose(found.outputs - found.b, RBF.gram(X) @ combined, atol=1e-6)
    assert np.mean(found.outputs[t == 0]) == pytest.approx(0.6)
    assert found.status == "converged"
    assert found.n_iter == 1


# --- The mean point -------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["full", "rows", "few"])
@pytest.mark.parametrize("form", ["dense", "csr", "precomputed"])
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_kernel_values_of_the_mean_point(kernel, form, storage):
    X, t = clouds(n=50)
    weight = np.random.default_rng(0).uniform(0.2, 2, 50)
    m, K = shares(t, weight), kernel.gram(X)
    expected = np.block([[K, (K @ m)[:, None]], [(m @ K)[None, :], np.array([[m @ K @ m]])]])
    data = {"dense": X, "csr": sp.csr_matrix(X), "precomputed": K}[form]
    size = 4 * 51 * 8 / 2**20 if storage == "few" else 1000
    kind = "rows" if storage == "few" else storage
    used = Kernel("precomputed") if form == "precomputed" else kernel
    gram = Gram(data, used, size, kind, np.float64, mean_weights=m)
    assert_allclose(gram.diagonal, np.diagonal(expected), rtol=1e-12)
    # Twice, since the second visit finds what the first has left in the cache.
    for row in [*range(51), 50, 3, 50, *range(50, -1, -1)]:
        unit, out = np.zeros(51), np.zeros(51)
        unit[row] = 1.0
        add_rows(gram.cache, gram.rows, unit, out)
        assert_allclose(out, expected[row], atol=1e-12)
    assert_allclose(expected @ gram.null, 0, atol=1e-12)
    for keep in (np.r_[0:50:3, 50], np.arange(0, 50, 4)):
        cache, rows = gram.restrict(keep)
        for k in range(keep.size):
            unit, out = np.zeros(keep.size), np.zeros(keep.size)
            unit[k] = 1.0
            add_rows(cache, rows, unit, out)
            assert_allclose(out, expected[keep[k], keep], atol=1e-12)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_full_matrix_rows_and_tiny_cache_agree(kernel, form):
    X, t = clouds(n=150, labeled=20)
    rows = sp.csr_matrix(X) if form == "csr" else X
    options = dict(
        kernel=kernel.name,
        gamma=kernel.gamma,
        degree=kernel.degree,
        coef0=kernel.coef0,
        C=3.0,
        balance=0.4,
        tol=1e-6,
    )
    full = CCCPS3VM(gram="full", **options).fit(rows, labels(t))
    for size in (1000, 0.01):
        other = CCCPS3VM(gram="rows", memory=size, **options).fit(rows, labels(t))
        assert other.gram_ == "rows"
        assert_allclose(other.decision_function(X), full.decision_function(X), atol=1e-5)
        assert_allclose(other.objective_, full.objective_, rtol=1e-6)


def test_storage_is_chosen_by_what_the_mean_point_needs():
    X, t = clouds(n=1600, labeled=20)
    mean = shares(t)
    assert Gram(X, RBF, mean_weights=mean).storage == "full"  # its row takes all the others
    assert Gram(X, RBF).storage == "rows"
    assert Gram(X, Kernel("linear"), mean_weights=mean).storage == "rows"
    assert Gram(X, RBF, 5, mean_weights=mean).storage == "rows"


def test_single_and_double_precision_agree():
    X, t = clouds(n=300, labeled=20)
    problem = make_problem()
    single, double = (solve(X, t, problem, tol=1e-5, dtype=d) for d in (np.float32, np.float64))
    assert_allclose(single.outputs, double.outputs, atol=1e-3)
    assert_allclose(single.objective, double.objective, rtol=1e-5)


# --- Steps of many variables ----------------------------------------------------------------------


def test_large_kernel_values_keep_their_digits():
    X, t = clouds(d=2)
    fit = CCCPS3VM(kernel="poly", coef0=1.0).fit(X + 20, labels(t))
    found = evaluate(fit, X + 20, labels(t), fit.problem_).objective  # in double precision
    assert_allclose(fit.objective_, found, rtol=1e-7)


def line_problem(seed, n=30):
    """Random costs, a direction of mixed signs with Σv = 0, and a feasible point."""
    rng = np.random.default_rng(seed)
    lo, hi = -rng.exponential(size=n), rng.exponential(size=n)
    mid = lo + rng.random(n) * (hi - lo)
    s1 = rng.standard_normal(n)
    s2 = s1 + rng.exponential(size=n)
    v = rng.standard_normal(n) if seed % 2 else rng.random(n)
    v[:5] = 0
    lo[-1], mid[-1], hi[-1], s2[-1] = -BIG, BIG, BIG, s1[-1]
    beta = lo + rng.random(n) * (hi - lo)
    beta[-1], v[-1] = 0.0, 0.0
    beta[-1], v[-1] = -beta.sum(), -v.sum()
    return v, Costs(lo, mid, hi, s1, s2), beta


@pytest.mark.parametrize("seed", range(12))
def test_the_line_step_is_exact(seed):
    v, c, beta = line_problem(seed)

    def value(tau):
        z = beta + tau * v
        bent = np.maximum(c.s1 * (z - c.mid), c.s2 * (z - c.mid))[:-1]
        return bent.sum() + c.s1[-1] * z[-1]

    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.concatenate([(c.lo - beta) / v, (c.hi - beta) / v])
    ends = ends[np.isfinite(ends)]
    bounds = ends[ends < 0].max(), ends[ends > 0].min()
    found = beta.copy()
    tau = null_step(v, c, found)
    assert_allclose(found, beta + tau * v, atol=1e-12)
    assert found.sum() == pytest.approx(0, abs=1e-12)
    assert np.all((found >= c.lo) & (found <= c.hi))
    best = minimize_scalar(value, bounds=bounds, method="bounded", options=dict(xatol=1e-12))
    least = min(best.fun, value(bounds[0]), value(bounds[1]))
    assert value(tau) <= least + 1e-9
    assert null_step(v, c, found.copy()) == pytest.approx(0, abs=1e-12)


def test_the_line_step_leaves_what_cannot_move_and_what_is_best():
    v, c, beta = line_problem(0)
    low, high = np.flatnonzero(v > 0)[:2]
    beta[low], beta[high] = c.lo[low], c.hi[high]
    before = beta.copy()
    assert null_step(v, c, beta) == 0
    assert_array_equal(beta, before)
    # Four kinks at ±1 and slope 0 between them: every step in [−4, 4] is as good as 0.
    flat = inner_costs(np.zeros(4), np.zeros(4), np.ones(4), np.array([1.0, 1, -1, -1]), 0.0)
    beta = np.zeros(5)
    assert null_step(np.r_[np.full(4, 0.25), -1.0], flat, beta) == 0


@pytest.mark.parametrize("seed", range(12))
def test_the_minimum_on_a_line_with_curvature(seed):
    v, c, beta = line_problem(seed)
    moving = np.flatnonzero(v[:-1])
    c, x, v = c.take(moving), beta[moving], v[moving]
    slope, curvature = np.random.default_rng(seed).standard_normal(), 10.0 ** (seed % 4 - 1)

    def value(tau):
        z = x + tau * v
        bent = np.maximum(c.s1 * (z - c.mid), c.s2 * (z - c.mid)).sum()
        return bent + slope * tau + curvature * tau**2 / 2

    ends = np.concatenate([(c.lo - x) / v, (c.hi - x) / v])
    bounds = ends[ends < 0].max(), ends[ends > 0].min()
    best = minimize_scalar(value, bounds=bounds, method="bounded", options=dict(xatol=1e-12))
    least = min(best.fun, value(bounds[0]), value(bounds[1]))
    tau = line_minimum(c, x, v, slope, curvature)
    assert bounds[0] - 1e-12 <= tau <= bounds[1] + 1e-12
    assert value(tau) <= least + 1e-9


def dual_value(c, beta, F):
    bent = np.maximum(c.s1 * (beta - c.mid), c.s2 * (beta - c.mid))
    return beta @ F / 2 + bent.sum()


@pytest.mark.parametrize("kernel", [Kernel("linear"), RBF], ids=name_of)
def test_newton_steps_fall_and_stay_feasible(kernel):
    X, _ = clouds(n=80)
    rng = np.random.default_rng(1)
    lo, hi = -rng.exponential(size=80), rng.exponential(size=80)
    mid, s1 = lo + rng.random(80) * (hi - lo), rng.standard_normal(80)
    c = Costs(lo, mid, hi, s1, s1 + rng.exponential(size=80))
    gram = Gram(X, kernel, dtype=np.float64)
    K = kernel.gram(X)
    beta = feasible(np.zeros(80), c)
    F = K @ beta
    values, again = [dual_value(c, beta, F)], True
    while again:
        A = np.where(beta < mid, -c.s1, np.where(beta < hi, -c.s2, -BIG))
        B = np.where(beta > mid, -c.s2, np.where(beta > lo, -c.s1, BIG))
        again = face_step(gram.cache, gram.rows, c, beta, F, A, B)
        assert_allclose(F, K @ beta, atol=1e-10)
        assert abs(beta.sum()) < 1e-12
        assert np.all((beta >= lo) & (beta <= hi))
        values.append(dual_value(c, beta, F))
    assert np.all(np.diff(values) <= 1e-12)
    assert values[-1] < values[0]
    # On the face that is left, no direction with Σp = 0 goes down any more.
    gradient = (F - A)[A == B]
    assert gradient.size > 2
    assert np.ptp(gradient) < 1e-6


@pytest.mark.parametrize("ratio", [0.4, 0.9, None])
@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_newton_steps_do_not_change_the_solution(kernel, shrinking, ratio):
    X, t = clouds(n=60, labeled=8)
    gram = Gram(X, kernel, dtype=np.float64, mean_weights=None if ratio is None else shares(t))
    delta = np.random.default_rng(0).integers(-1, 2, 52) * 3.0
    target = None if ratio is None else 2 * ratio - 1
    costs = inner_costs(t, np.full(60, 2.0), np.full(52, 3.0), delta, target)
    start = feasible(np.zeros(gram.diagonal.size), costs, shift=False)
    plain, newton = (
        solve_smo(gram, costs, start, tol=1e-8, shrinking=shrinking, face_steps=k) for k in (0, 10)
    )
    assert newton.status == "converged"
    assert_allclose(newton.f, plain.f, atol=1e-6)
    assert_allclose(newton.objective, plain.objective, rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def conflict():
    """G2C with 25 labels, five of them positive: the balance contradicts the unlabeled data."""
    rng = np.random.default_rng(2002)
    X, y = make_g2c(shuffle=False, random_state=rng)
    rows = rng.permutation(500)[:250]
    t = 2.0 * y[rows] - 1
    ratio = np.mean(t[:25] > 0)
    assert ratio == 0.2
    assert abs(np.mean(t[25:] > 0) - 0.5) < 0.05
    t[25:] = 0
    X = X[rows] - X[rows].mean(axis=0)
    return Gram(X, Kernel("linear"), storage="full", mean_weights=shares(t)), t, ratio


def test_a_conflict_with_the_balance_costs_no_more_iterations_for_large_C_star(conflict):
    gram, t, ratio = conflict
    first, total = {}, {}
    for C_star in (0.01, 1.0, 227.0):
        problem = make_problem(C=1.0, C_star=C_star, ratio=ratio, kernel=Kernel("linear"))
        found = solve_cccp(gram, t, np.ones(250), problem)
        assert found.status == "converged"
        first[C_star] = found.history[1].n_iter
        total[C_star] = sum(loop.n_iter for loop in found.history)
    assert first[227.0] <= 2 * first[0.01]
    assert first[1.0] <= 2 * first[0.01]
    assert total[227.0] <= 2 * total[0.01]


def test_what_the_line_step_saves(conflict):
    gram, t, ratio = conflict
    problem = make_problem(C=1.0, C_star=1.0, ratio=ratio, kernel=Kernel("linear"))
    start = solve_cccp(gram, t, np.ones(250), problem, max_iter=1).outputs
    delta = concave_slopes(RAMP, start[25:], np.ones(225))
    costs = inner_costs(t, np.ones(250), np.ones(225), delta, 2 * ratio - 1)
    point = feasible(np.zeros(251), costs, shift=False)
    with_step = solve_smo(gram, costs, point)
    without = solve_smo(gram, costs, point, max_iter=50_000, null_steps=False)
    assert with_step.status == "converged"
    assert without.status == "max_iter"
    assert 50 * with_step.n_iter < without.n_iter
    assert with_step.objective < without.objective


# --- Starts of the inner solver -------------------------------------------------------------------


def test_a_start_with_its_outputs_changes_nothing():
    X, t = clouds(n=80)
    gram = Gram(X, RBF, dtype=np.float64, mean_weights=shares(t))
    costs = inner_costs(t, np.full(80, 2.0), np.full(72, 0.5), np.full(72, 0.5), 0.2)
    start = feasible(np.linspace(-1, 1, 81), costs, shift=False)
    F = np.zeros(81)
    add_rows(gram.cache, gram.rows, start, F)
    kept = F.copy()
    with_F, without = solve_smo(gram, costs, start, F), solve_smo(gram, costs, start)
    assert_array_equal(with_F.beta, without.beta)
    assert_array_equal(with_F.f, without.f)
    assert_array_equal(F, kept)


def test_a_warm_start_moves_few_variables():
    costs = inner_costs(np.zeros(20), np.zeros(20), np.ones(20), np.zeros(20), 0.0)
    beta = np.r_[np.full(10, 0.5), np.full(10, -0.5), 0.0]
    assert_array_equal(feasible(beta, costs, shift=False), beta)
    moved = inner_costs(np.zeros(20), np.zeros(20), np.ones(20), np.r_[-1.0, np.zeros(19)], 0.0)
    found = feasible(beta, moved, shift=False)
    assert_array_equal(np.flatnonzero(found != beta), [0, 20])  # the mean point takes the rest
    assert found.sum() == 0
    no_mean = inner_costs(np.zeros(20), np.zeros(20), np.ones(20), np.r_[-1.0, np.zeros(19)])
    found = feasible(beta[:-1], no_mean, shift=False)
    assert np.sum(found != beta[:-1]) == 2
    assert abs(found.sum()) < 1e-15


# --- The twin -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("s", [-0.3, 0.0])
@pytest.mark.parametrize("C_star", [0.5, 5.0])
def test_equals_the_twin(seed, s, C_star):
    X, t = clouds(n=60, seed=seed)
    K = RBF.gram(X)
    for ratio in (0.5, 0.7):
        c, b, f, values = twin.fit(K, t, 2.0, C_star, ratio, s=s, tol=1e-8)
        found = solve(X, t, make_problem(UnlabeledLoss("symmetric_ramp", s), 2.0, C_star, ratio))
        assert_allclose(found.outputs, f, atol=1e-6)
        assert_allclose(found.beta @ K @ found.beta, c @ K @ c, rtol=1e-6)
        assert_allclose(found.b, b, atol=1e-6)
        assert_allclose([loop.objective for loop in found.history], values, rtol=1e-7)


def test_the_line_step_of_the_twin():
    _, t = clouds(n=60)
    rng = np.random.default_rng(0)
    delta = np.where(t == 0, rng.integers(-1, 2, 60), 0.0)
    for target in (-0.6, 0.0, 0.33):
        costs = twin.inner_costs(t, 2.0, 1.0, delta, target)
        beta = np.where(t == 0, delta + rng.uniform(-0.9, 0.9, 60), 0.0)
        beta = np.append(beta, -beta.sum())
        ours = beta.copy()
        null_step(np.append(shares(t), -1.0), costs, ours)
        step = twin.line_step(beta, costs, t == 0, target)

        def cost(z, c=costs):
            return np.abs(z[:-1] - c.mid[:-1])[t == 0].sum() + c.s1[-1] * z[-1]

        assert_allclose(cost(step), cost(ours), atol=1e-12)


# --- The estimator --------------------------------------------------------------------------------


def test_the_papers_setting_by_name():
    X, t = clouds(n=60)
    y = labels(t)
    paper = CCCPS3VM(s="paper", balance="labels").fit(X, y)
    assert paper.problem_.unlabeled_loss == UnlabeledLoss("symmetric_ramp", 0.0)
    assert paper.problem_.C_star * 52 == pytest.approx(paper.problem_.C * 8)
    hinge = CCCPS3VM(unlabeled_loss="symmetric_hinge", balance="labels").fit(X, y)
    assert_array_equal(hinge.decision_function(X), paper.decision_function(X))
    # Equal up to the constant C* u.
    assert_allclose(paper.objective_ - hinge.objective_, paper.problem_.C_star * 52, rtol=1e-12)
    assert paper.problem_.ratio == 0.5
    assert CCCPS3VM().fit(X, y).problem_.unlabeled_loss == RAMP


@pytest.mark.parametrize("balance", [0.3, "labels", None])
def test_the_mean_output_meets_the_balance(balance):
    X, t = clouds(n=60)
    weight = np.random.default_rng(0).uniform(0.2, 2, 60)
    model = CCCPS3VM(balance=balance, tol=1e-8).fit(X, labels(t), weight)
    mean = np.average(model.decision_function(X)[t == 0], weights=weight[t == 0])
    if balance is None:
        assert model.problem_.balance == "none"
        return
    assert mean == pytest.approx(2 * model.problem_.ratio - 1, abs=1e-9)
    found = evaluate(model, X, labels(t), model.problem_, weight)
    assert found.balance_residual < 1e-9
    assert_allclose(found.objective, model.objective_, rtol=1e-9)


def test_balance_residual_at_the_default_tolerance(mixture):
    X, truth = mixture(800)
    y = np.where(np.arange(800) < 40, (truth > 0).astype(int), -1)
    for kernel in ("rbf", "linear"):
        model = CCCPS3VM(kernel=kernel, gamma=1 / 32, C=10, C_star=1.0).fit(X, y)
        residual = evaluate(model, X, y, model.problem_).balance_residual
        assert residual < 1e-4 <= model.tol
        assert_allclose(
            evaluate(model, X, y, model.problem_).objective, model.objective_, rtol=1e-4
        )
        error = np.mean(model.transduction_ != (truth > 0))
        baseline = np.mean(
            SVM(kernel=kernel, gamma=1 / 32, C=10).fit(X, y).transduction_ != (truth > 0)
        )
        assert error < baseline


def test_starts_from_outputs():
    X, t = clouds(n=60)
    y = labels(t)
    model = CCCPS3VM(C_star=0.5, tol=1e-8).fit(X, y)
    again = CCCPS3VM(C_star=0.5, tol=1e-8, init=model.decision_function(X)).fit(X, y)
    assert again.n_iter_ == 1
    assert_allclose(again.objective_, model.objective_, rtol=1e-8)
    truth = np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    told = CCCPS3VM(C_star=0.5, init=truth).fit(X, y)
    assert np.mean((told.decision_function(X) > 0) == (truth > 0)) > 0.75
    opposite = CCCPS3VM(C_star=5.0, init=-truth).fit(X, y)
    assert np.any(opposite.transduction_ != told.transduction_)
    # Rows of weight zero take their outputs along.
    weight = (np.arange(60) % 7 != 3).astype(float)
    kept = weight > 0
    left = CCCPS3VM(init=truth, gamma=0.3).fit(X, y, weight)
    small = CCCPS3VM(init=truth[kept], gamma=0.3).fit(X[kept], y[kept])
    assert_array_equal(left.decision_function(X), small.decision_function(X))


def test_starts_with_three_classes(semi_supervised):
    X, y = semi_supervised(n=90, n_labeled=18, n_classes=3)
    model = CCCPS3VM(tol=1e-8).fit(X, y)
    again = CCCPS3VM(tol=1e-8, init=model.decision_function(X)).fit(X, y)
    assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-6)


@pytest.mark.filterwarnings("ignore::s3vm_lib.FitWarning")
def test_each_of_three_classes_has_a_start_of_its_own(semi_supervised):
    X, y = semi_supervised(n=90, n_labeled=18, n_classes=3)
    starts = np.random.default_rng(0).choice([-1.0, 1.0], size=(90, 3))
    parameters = dict(C_star=5.0, balance=None, tol=1e-8)
    together = CCCPS3VM(init=starts, **parameters).fit(X, y).decision_function(X)
    for k in range(3):
        one = np.where(y == -1, -1, y == k)
        alone = [CCCPS3VM(init=starts[:, j], **parameters).fit(X, one) for j in (k, (k + 1) % 3)]
        own, other = (model.decision_function(X) for model in alone)
        assert_allclose(together[:, k], own, atol=1e-5)
        assert np.abs(own - other).max() > 0.1  # the start decides


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (dict(init=np.zeros(59)), r"init must hold finite numbers in an array of shape \(60,\)"),
        (dict(init=np.zeros((60, 3))), r"init must hold .* shape \(60,\), got .* \(60, 3\)"),
        (dict(init=np.full(60, np.nan)), "init must hold finite numbers"),
        (dict(unlabeled_loss="gaussian"), "'unlabeled_loss' parameter"),
    ],
    ids=repr,
)
def test_bad_parameters(parameters, message):
    X, t = clouds(n=60)
    with pytest.raises(ValueError, match=message):
        CCCPS3VM(**parameters).fit(X, labels(t))


def test_sparse_text_with_many_features():
    rng = np.random.default_rng(0)
    n, d = 1500, 4000
    truth = np.arange(n) % 2
    rows = np.repeat(np.arange(n), 30)
    # Four words in ten come from the topic of the document.
    topic = rng.integers(0, d // 4, n * 30) + (d // 4) * np.repeat(truth, 30)
    words = np.where(rng.random(n * 30) < 0.4, topic, rng.integers(0, d, n * 30))
    X = sp.csr_matrix((np.ones(n * 30), (rows, words)), shape=(n, d))
    X = sp.csr_matrix(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))))
    y = np.where(np.arange(n) < 40, truth, -1)
    model = CCCPS3VM(kernel="linear", C=10.0, C_star=1.0, balance="labels").fit(X, y)
    assert sp.issparse(model.support_vectors_)
    error = np.mean(model.transduction_ != truth)
    baseline = np.mean(SVM(kernel="linear", C=10.0).fit(X, y).transduction_ != truth)
    assert error < 0.03 < baseline
    dense = CCCPS3VM(kernel="linear", C=10.0, C_star=1.0, balance="labels").fit(X.toarray(), y)
    # At tol=1e-3 a few rows near ±s may take another slope, and end on another side of it.
    assert np.mean(dense.transduction_ == model.transduction_) > 0.995
    assert_allclose(dense.objective_, model.objective_, rtol=1e-3)


def test_a_kernel_matrix_may_be_read_only():
    X, t = clouds()
    y, K = np.where(t == 0, -1, (t > 0).astype(int)), RBF.gram(X)
    expected = CCCPS3VM(kernel="precomputed", balance=None).fit(K, y)
    K.setflags(write=False)
    found = CCCPS3VM(kernel="precomputed", balance=None).fit(K, y)
    assert_array_equal(found.decision_function(K), expected.decision_function(K))


# --- Many rows: sums and steps in blocks ---------------------------------------------------------


@pytest.fixture
def in_blocks(monkeypatch):
    """Have 300 rows be many, and 32 variables move at once."""
    monkeypatch.setattr("s3vm_lib.gram._MANY", 200)
    monkeypatch.setattr("s3vm_lib.smo._solver._SET", 32)


def test_what_is_computed_in_blocks(in_blocks):
    X = clouds(300, 12)[0]
    assert Gram(X, RBF).in_blocks
    assert Gram(X, RBF, tol=1e-7).in_blocks  # in double precision
    assert not Gram(X[:200], RBF).in_blocks
    assert not Gram(sp.csr_matrix(X), RBF).in_blocks
    assert not Gram(X, Kernel("poly", 0.2, 2, 1.0)).in_blocks
    far = np.vstack([X, X[:1] + 1e4])  # a product would leave no digit of a distance
    assert not Gram(far, RBF).in_blocks


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_in_blocks_know_the_mean_point(in_blocks, balanced, dtype):
    X, t = clouds(300, 12)
    gram = Gram(X, RBF, dtype=dtype, mean_weights=shares(t) if balanced else None)
    K = RBF.gram(X)
    if balanced:
        K = np.vstack([K, shares(t) @ K])
        K = np.column_stack([K, K @ shares(t)])
    index = np.unique(np.r_[np.arange(0, 300, 3), len(K) - 1])
    weights, found = np.linspace(-1, 1, index.size), np.zeros(len(K))
    atol = 1e-12 if dtype == np.float64 else 2e-5
    assert_allclose(gram.among(index), K[np.ix_(index, index)], rtol=0, atol=atol)
    gram.add(index, weights, found)
    assert_allclose(found, weights @ K[index], rtol=0, atol=atol)


@pytest.mark.parametrize("balanced", [True, False])
def test_block_steps_leave_little_violation_and_the_true_outputs(in_blocks, balanced):
    X, t = clouds(300, 12)
    gram = Gram(X, RBF, tol=1e-7, mean_weights=shares(t) if balanced else None)
    K = RBF.gram(X)
    if balanced:
        K = np.vstack([K, shares(t) @ K])
        K = np.column_stack([K, K @ shares(t)])
    target = -0.2 if balanced else None
    costs = inner_costs(t, np.full(300, 2.0), np.full(288, 0.05), np.zeros(288), target)
    beta, F = np.zeros(len(K)), np.zeros(len(K))
    assert block_steps(gram, costs, beta, F, 1e-5) > 10
    assert_allclose(F, K @ beta, rtol=0, atol=1e-10)
    assert abs(beta.sum()) < 1e-12
    assert np.all((costs.lo <= beta) & (beta <= costs.hi))
    # The optimality conditions, from the costs: minus the slopes to the right and to the left.
    right = np.where(beta < costs.mid, -costs.s1, -costs.s2)[beta < costs.hi]
    left = np.where(beta > costs.mid, -costs.s2, -costs.s1)[beta > costs.lo]
    violation = np.max(right - F[beta < costs.hi]) - np.min(left - F[beta > costs.lo])
    assert violation < 1e-4
    limited = np.zeros(len(K))
    assert block_steps(gram, costs, limited, np.zeros(len(K)), 1e-5, 7) == 7


@pytest.mark.parametrize("ratio", [0.4, None])
def test_in_blocks_the_solution_solves_its_own_convex_problem(in_blocks, ratio):
    X, t = clouds(220, 12)
    problem = make_problem(C_star=0.1, ratio=ratio)
    found = solve(X, t, problem, tol=1e-7)
    U = np.flatnonzero(t == 0)
    delta = concave_slopes(problem.unlabeled_loss, found.outputs[U], np.full(U.size, 0.1))
    combined, *_ = doubled_by_cvxpy(RBF.gram(X), t, np.ones(t.size), problem, delta)
    assert_allclose(found.beta, combined, atol=1e-4)


def test_in_blocks_memory_changes_no_bit(in_blocks):
    X, t = clouds(400, 12)
    known = CCCPS3VM(gamma=0.3).fit(X, labels(t))
    assert known.gram_ == "full"
    for options in ({"gram": "rows"}, {"memory": 0.3}, {"memory": 0.02}):
        other = CCCPS3VM(gamma=0.3, **options).fit(X, labels(t))
        assert other.gram_ == "rows"
        assert_array_equal(other.dual_coef_, known.dual_coef_)
        assert_array_equal(other.transduction_, known.transduction_)
        assert other.history_ == known.history_


def test_in_blocks_and_by_pairs_end_alike(monkeypatch):
    X, t = clouds(400, 12, distance=2.5)
    pairs = CCCPS3VM(gamma=0.3, tol=1e-6).fit(X, labels(t))
    monkeypatch.setattr("s3vm_lib.gram._MANY", 200)
    blocks = CCCPS3VM(gamma=0.3, tol=1e-6).fit(X, labels(t))
    assert pairs.n_iter_ == blocks.n_iter_
    assert_allclose(blocks.objective_, pairs.objective_, rtol=1e-6)
    assert max(loop.violation for loop in blocks.history_) < 1e-6


def test_what_rounding_leaves_of_the_sum_moves_few_points():
    rng = np.random.default_rng(0)
    for seed in range(20):
        width = 1e-3 * rng.random(2000)
        costs = Costs(-width, 0 * width, width, -1 + 0 * width, 1 + 0 * width)
        costs = Costs(
            *(np.append(a, b) for a, b in zip(costs, (-BIG, BIG, BIG, 0, 0), strict=True))
        )
        beta = np.append(rng.choice([-1, 0, 1], 2000) * width, 0.0)
        beta[-1] = -beta.sum() * (1 + 1e-15 * seed)
        near = feasible(beta, costs, shift=False)
        assert abs(near.sum()) <= 1e-14 * np.abs(near).sum()
        assert np.sum(near != beta) <= 60
