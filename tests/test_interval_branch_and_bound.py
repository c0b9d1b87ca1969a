"""Branch and bound over intervals: envelopes and bounds, and the optimum against many descents."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.svm import SVC

from s3vm_lib import QNS3VM, BranchBoundS3VM, NewtonS3VM
from s3vm_lib.branch_and_bound import solve_branch_and_bound
from s3vm_lib.branch_and_bound._envelopes import (
    LINE,
    BoxCosts,
    envelope,
    envelope_value,
    interval_conjugate,
    least_bend,
    set_envelopes,
    turning_point,
)
from s3vm_lib.branch_and_bound._intervals import dual_bound, share_penalty, solve_box
from s3vm_lib.branch_and_bound._relaxation import fold
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LABELED_LOSSES, LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem, evaluate

KERNELS = {
    "linear": Kernel("linear"),
    "rbf": Kernel("rbf", 0.5),
    "poly": Kernel("poly", 0.5, 2, 1.0),
}
GAUSSIAN = UnlabeledLoss("gaussian")
MEAN, NONE = ("mean", 0.5), ("none", None)


def instance(u, seed=0, l=4, kernel="rbf"):
    """Overlapping classes with l labels: K, t and X."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.permutation(l + u) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((l + u, 2))
    X[:, 0] += 0.9 * truth
    t = np.zeros(l + u)
    for label in (-1, 1):
        t[np.flatnonzero(truth == label)[: l // 2]] = label
    return KERNELS[kernel].gram(X), t, X


def problem_of(name="modified_logistic", balance=MEAN, bias="free", s=None, C_star=0.7):
    mode, ratio = balance
    losses = LabeledLoss(name), UnlabeledLoss("gaussian", s)
    return Problem(*losses, 2.0, C_star, bias=bias, balance=mode, ratio=ratio)


def many_descents(problem, K, t, weight=None, starts=200, seed=0):
    """Values that BFGS reaches from random functions, in coordinates w with f = Zw + b."""
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-10 * values[-1]
    Z = vectors[:, kept] * np.sqrt(values[kept])
    weight = np.ones(len(t)) if weight is None else weight
    share = np.where(t == 0, weight, 0) / weight[t == 0].sum()
    ones = np.ones((len(t), 1))
    features = {"free": np.hstack([Z, ones]), "none": Z, "regularized": np.hstack([Z, ones])}
    A = features[problem.bias]
    penalty = np.ones(A.shape[1])
    if problem.bias == "free":
        penalty[-1] = 0.0
    origin, basis = np.zeros(A.shape[1]), np.eye(A.shape[1])
    if problem.balance == "mean":  # a point that meets the constraint, and the plane around it
        normal = share @ A
        origin = normal * (2 * problem.ratio - 1) / (normal @ normal)
        basis = np.linalg.svd(normal[None, :])[2][1:].T

    def value(v):
        w = origin + basis @ v
        f = A @ w
        gradient = penalty * w + A.T @ problem.output_gradient(f, t, weight)
        return 0.5 * penalty @ w**2 + sum(problem.data_terms(f, t, weight)), basis.T @ gradient

    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.uniform(-1, 1, starts)
    first = (scale * rng.standard_normal(basis.shape[1]) for scale in scales)
    return [minimize(value, v, jac=True, method="BFGS").fun for v in first]


# --- One row --------------------------------------------------------------------------------------


def random_costs(n, seed):
    """Parameters c, s, q and intervals on which φ is admitted, narrow, wide, and one-sided ones."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        c, s = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-0.5, 0.7)
        q = rng.choice([0.0, rng.uniform(0, 2.5) * s * c])
        a, b = np.sort(rng.uniform(-3, 3, 2) * rng.choice([0.3, 1.0]))
        yield c, s, q, a, b
        bend = least_bend(c, s, a, b)
        if bend > 0:
            yield c, s, -bend, a, b
        yield 0.0, s, -rng.uniform(0, 2), a, b


def test_the_envelope_is_the_largest_convex_function_below():
    touched = 0
    for c, s, q, a, b in random_costs(60, 0):
        f = np.linspace(a, b, 1001)
        phi = c * np.exp(-s * f**2) + 0.5 * q * f**2
        p, r, slope = envelope(c, s, q, turning_point(c, s, q), a, b)
        under = np.array([envelope_value(c, s, q, p, r, slope, x) for x in f])
        scale = 1 + np.abs(phi).max()
        assert np.all(under <= phi + 1e-10 * scale)
        assert np.all(np.diff(under, 2) >= -1e-10 * scale)
        hull = [0]  # lower convex hull of the graph, point by point
        for k in range(1, f.size):
            while len(hull) > 1:
                i, j = hull[-2:]
                if (phi[j] - phi[i]) * (f[k] - f[i]) < (phi[k] - phi[i]) * (f[j] - f[i]):
                    break
                hull.pop()
            hull.append(k)
        assert_allclose(under, np.interp(f, f[hull], phi[hull]), atol=1e-4 * scale)
        touched += a < p and r < b
    assert touched > 3


def test_the_conjugate_is_the_largest_difference():
    rng = np.random.default_rng(1)
    for c, s, q, a, b in random_costs(60, 2):
        f = np.linspace(a, b, 2001)
        phi = c * np.exp(-s * f**2) + 0.5 * q * f**2
        for slope in rng.uniform(-6, 6, 8):
            found = interval_conjugate(c, s, q, turning_point(c, s, q), a, b, slope)
            dense = np.max(slope * f - phi)
            assert dense - 1e-12 <= found <= dense + 1e-4


def test_the_least_second_derivative():
    for c, s, _, a, b in random_costs(60, 3):
        f = np.linspace(a, b, 2001)
        dense = np.min(c * (4 * s**2 * f**2 - 2 * s) * np.exp(-s * f**2))
        assert dense - 0.05 * c * s <= least_bend(c, s, a, b) <= dense + 1e-12


# --- One box --------------------------------------------------------------------------------------


def box_problem(name, K, t, low, high, share_some=True):
    """The bracket and the costs of a box, with the balance folded in."""
    problem = problem_of(name, ("mean", 0.4))
    U = t == 0
    G, fixed, *_ = fold(K, "free", U / U.sum(), -0.2)
    weight = np.where(U, problem.C_star, problem.C)
    bend = np.where(
        U, [least_bend(w, 3.0, *ends) for w, *ends in zip(weight, low, high, strict=True)], 0
    )
    bracket = share_penalty(G, fixed, bend if share_some else 0 * bend)
    loss, n = problem.labeled_loss, len(t)
    lines, code = np.zeros(n, LINE), np.full(n, loss.code)
    costs = BoxCosts(code, np.full(n, loss.p), t, weight, 3.0, bracket.d, low, high, U, lines)
    set_envelopes(costs)
    return problem, G, fixed, bracket, costs


@pytest.mark.parametrize("name", LABELED_LOSSES)
def test_no_bound_exceeds_the_value_of_a_function_in_the_box(name):
    rng = np.random.default_rng(4)
    closest = np.inf
    for seed, kernel, radius in itertools.product(range(3), KERNELS, (0.05, 0.3, 3.0)):
        K, t, _ = instance(5, seed, kernel=kernel)
        G, fixed, *_ = fold(K, "free", (t == 0) / np.sum(t == 0), -0.2)
        beta = rng.standard_normal(len(t)) * rng.choice([0.1, 0.5])
        f = G @ beta + fixed
        low = f - radius * rng.uniform(0, 1, f.size)
        high = f + radius * rng.uniform(0, 1, f.size)
        plain = box_problem(name, K, t, low, high, share_some=False)[3:]
        problem, _, _, bracket, costs = box_problem(name, K, t, low, high)
        J = 0.5 * beta @ G @ beta + sum(problem.data_terms(f, t))
        best = solve_box(bracket, costs, np.zeros(f.size)).value
        assert best <= J + 1e-9 * abs(J)
        if "l1" not in name and "insensitive" not in name:  # whose ascent may stop early
            assert best >= solve_box(*plain, np.zeros(f.size)).value - 1e-6 * abs(J)
        for _ in range(10):
            alpha = rng.standard_normal(f.size) * rng.choice([0.3, 3.0])
            signed = np.clip(t * alpha, -2.0, 0.0) if "l1" not in name else np.clip(alpha, -2, 2)
            alpha = np.where(
                t != 0, np.where(name == "l1", signed, t * np.minimum(signed, 0)), alpha
            )
            value = dual_bound(bracket, costs, alpha)
            assert np.isfinite(value)
            assert value <= J + 1e-9 * abs(J)
        closest = min(closest, (J - best) / J)
    assert closest < 0.5


def test_the_bracket_stays_convex():
    rng = np.random.default_rng(5)
    exact = 0
    for _ in range(40):
        Z = rng.standard_normal((6, rng.integers(2, 7)))
        bend = rng.choice([-1.0, 0.0, 1.0], 6) * 10 ** rng.uniform(-2, 1, 6)
        fixed = rng.standard_normal(6)
        H, f0, constant, d, complete = share_penalty(Z @ Z.T, fixed, bend)
        quadratic = np.eye(Z.shape[1]) - Z.T @ (d[:, None] * Z)
        assert np.linalg.eigvalsh(quadratic)[0] > 0
        assert np.all(d <= np.maximum(-bend, 0) + 1e-12) and np.all(d[bend > 0] == -bend[bend > 0])
        assert_allclose(H, Z @ np.linalg.solve(quadratic, Z.T), atol=1e-6 * np.abs(H).max())
        w = np.linalg.solve(quadratic, Z.T @ (d * fixed))
        f = Z @ w + fixed
        assert_allclose(f, f0, atol=1e-6 * (1 + np.abs(f).max()))
        assert_allclose(constant, 0.5 * w @ w - 0.5 * d @ f**2, atol=1e-6 * (1 + abs(constant)))
        assert complete == np.allclose(d, -bend)
        exact += complete
    assert 0 < exact < 40


# --- The optimum ----------------------------------------------------------------------------------


def check(found, problem, K, t, weight=None):
    assert found.status == "converged"
    assert 0 <= found.objective - found.lower_bound <= 1e-6 * found.objective
    f = K @ found.beta + found.b
    value = problem.value(f, t, found.beta @ K @ found.beta, found.b, weight)
    assert_allclose(value, found.objective, rtol=1e-12)
    assert_allclose(found.outputs, f, atol=1e-10)
    assert problem.balance_residual(f, t, weight) < 1e-9
    assert_array_equal(found.labels, np.where(t != 0, t, np.where(f > 0, 1, -1)))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("balance", [MEAN, ("mean", 0.3), NONE])
@pytest.mark.parametrize("name", ["modified_logistic", "squared_hinge"])
def test_many_descents_find_nothing_below_but_the_optimum(kernel, balance, name):
    K, t, _ = instance(3, 1, kernel=kernel)
    problem = problem_of(name, balance)
    found = solve_branch_and_bound(problem, K, t)
    check(found, problem, K, t)
    values = many_descents(problem, K, t, starts=25)
    assert_allclose(min(values), found.objective, rtol=2e-6)


@pytest.mark.parametrize("balance", [MEAN, NONE])
def test_outputs_of_zero_are_cut(balance):
    """Integers 1, 2, 3 as points: the root has the output 0 everywhere, an end of both parts."""
    X = np.vstack([np.array([[2.0, 4, 6], [2, 4, 6]]), np.eye(3), -np.eye(3)])
    K, t = X @ X.T, np.r_[1.0, -1, np.zeros(6)]
    problem = problem_of("squared_hinge", balance, C_star=1.0)
    found = solve_branch_and_bound(problem, K, t)
    check(found, problem, K, t)
    assert found.n_iter > 1
    assert_allclose(min(many_descents(problem, K, t, starts=25)), found.objective, rtol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("balance", [MEAN, NONE])
def test_hundreds_of_descents_find_nothing_below(kernel, balance):
    for seed, name in enumerate(("modified_logistic", "squared_hinge")):
        K, t, _ = instance(3, 10 + seed, kernel=kernel)
        problem = problem_of(name, balance, s=(3.0, 1.0)[seed])
        found = solve_branch_and_bound(problem, K, t)
        check(found, problem, K, t)
        values = many_descents(problem, K, t, starts=200)
        assert_allclose(min(values), found.objective, rtol=2e-6)


@pytest.mark.parametrize("bias", ["free", "regularized", "none"])
@pytest.mark.parametrize("balance", [("mean", 0.6), NONE])
def test_every_bias_with_weights(bias, balance):
    K, t, _ = instance(3, 2)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(t))
    problem = problem_of("squared_hinge", balance, bias)
    found = solve_branch_and_bound(problem, K, t, weight)
    check(found, problem, K, t, weight)
    values = many_descents(problem, K, t, weight, starts=25)
    assert_allclose(min(values), found.objective, rtol=2e-6)


@pytest.mark.parametrize("name", [n for n in LABELED_LOSSES if "squared" not in n])
@pytest.mark.parametrize("balance", [MEAN, NONE])
def test_every_labeled_loss(name, balance):
    K, t, _ = instance(3, 3)
    problem = problem_of(name, balance)
    found = solve_branch_and_bound(problem, K, t)
    check(found, problem, K, t)
    # BFGS stops at kinks; what it finds there is a value of J all the same.
    values = many_descents(problem, K, t, starts=25)
    assert min(values) >= found.objective * (1 - 1e-6)
    assert min(values) <= found.objective * (
        1 + (2e-6 if problem.labeled_loss.differentiable else 0.05)
    )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("balance", ["labels", None])
@pytest.mark.parametrize("method", [QNS3VM, NewtonS3VM])
def test_no_method_finds_less_on_its_own_problem(kernel, balance, method):
    """Twenty-four instances per method, and each method reaches the optimum of some."""
    options = {"linear": {}, "rbf": {"gamma": 0.5}, "poly": {"gamma": 0.5, "degree": 2, "coef0": 1}}
    hits = 0
    for seed in range(4):
        K, t, X = instance(8, 20 + seed, kernel=kernel)
        y = np.where(t == 0, -1, (t > 0).astype(int))
        model = method(kernel=kernel, balance=balance, **options[kernel]).fit(X, y)
        problem = model.problem_
        assert problem.unlabeled_loss == GAUSSIAN and problem.bias == "free"
        found = solve_branch_and_bound(problem, K, t)
        check(found, problem, K, t)
        judged = evaluate(model, X, y, problem)
        assert judged.balance_residual < 1e-7
        assert judged.objective >= found.objective - 1e-6 * abs(found.objective)
        hits += judged.objective <= found.objective * (1 + 1e-3)
    assert hits > 0


@pytest.mark.parametrize(("seed", "shift"), [(0, 1e5), (2, 1e6), (9, 1e6)])
def test_no_lower_bound_exceeds_the_minimum_of_shifted_integers(seed, shift):
    """Kernel values are exact in doubles, sums of them are not: the bound was up to 1e-5 too high.

    What is found where x is small is a value of J, and so no less than its minimum.
    """
    x = np.random.default_rng(seed).integers(-4, 5, 7).astype(float)
    t, x[:2] = np.array([-1.0, 1, 0, 0, 0, 0, 0]), (-3, 3)
    problem = Problem(LabeledLoss("squared_hinge"), GAUSSIAN, 1.0, 0.5, balance="mean", ratio=0.5)
    near = solve_branch_and_bound(problem, np.outer(x, x), t, max_iter=200, tol=1e-9)
    far = solve_branch_and_bound(problem, np.outer(x + shift, x + shift), t, max_iter=60)
    assert far.lower_bound <= near.objective
    assert near.status == "converged" and far.status == "inexact"


# --- The tree -------------------------------------------------------------------------------------


@pytest.mark.parametrize("balance", [MEAN, NONE])
def test_boxes_are_cut_in_two(balance, visits):
    K, t, _ = instance(6, 5)
    problem = problem_of(balance=balance)
    found = solve_branch_and_bound(problem, K, t)
    U = np.flatnonzero(t == 0)
    assert found.n_iter > 5
    boxes = [node for node, _, _ in visits]
    for k, (node, closed, best) in enumerate(visits):
        inside = np.all(
            ((found.outputs >= node.low[: t.size]) & (found.outputs <= node.high[: t.size]))[U]
        )
        if k == 0:
            assert inside
        else:  # the parent: the last smallest box before it that holds it
            holds = [b for b in boxes[:k] if np.all((b.low <= node.low) & (node.high <= b.high))]
            parent = min(holds, key=lambda b: np.sum(b.high - b.low))
            assert node.sure >= parent.sure
            changed = np.flatnonzero((node.low != parent.low) | (node.high != parent.high))
            kept = (node.high - node.low)[changed] / (parent.high - parent.low)[changed]
            assert changed.size == 1 and 0.05 < kept[0] < 0.95  # no cut close to an end
        if closed < np.inf:
            assert node.sure <= closed and closed >= best * (1 - 1e-6)
        if balance == MEAN and inside:
            assert max(node.sure, 0 if closed == np.inf else closed) <= found.objective * (1 + 1e-9)


def test_the_first_box_holds_the_minimum_where_the_penalty_is_all_it_costs(visits):
    """Outputs reach x √(2J), no less: f = wx with ½w² + C(1 − w)² at x = ±1, C = 50."""
    x = np.array([-1.0, 1.0, 3.0, -3.0, 2.5])
    t = np.array([-1.0, 1.0, 0.0, 0.0, 0.0])
    problem = Problem(LabeledLoss("squared_hinge"), GAUSSIAN, 50.0, 0.7, bias="none")
    found = solve_branch_and_bound(problem, np.outer(x, x), t)
    f = 100 / 101 * x
    assert_allclose(found.outputs, f, atol=1e-6)
    first, _, _ = visits[0]
    assert np.all(((first.low <= f) & (f <= first.high))[t == 0])


def test_the_lower_bound_is_no_higher_than_that_of_any_closed_box(visits):
    K, t, _ = instance(6, 5)
    found = solve_branch_and_bound(problem_of(balance=MEAN), K, t, tol=0.1)
    closed = [bound for _, bound, _ in visits if bound < np.inf]
    assert found.status == "converged"
    assert 0.9 * found.objective <= found.lower_bound <= min(closed) * (1 + 1e-12)
    assert min(closed) < found.objective


@pytest.mark.parametrize("balance", [MEAN, NONE])
def test_an_early_stop_leaves_an_interval_around_the_optimum(balance):
    K, t, _ = instance(10, 6)
    problem = problem_of(balance=balance)
    full = solve_branch_and_bound(problem, K, t)
    assert full.n_iter > 8
    previous = -np.inf
    for max_iter in (1, 4, 8, full.n_iter - 1):
        found = solve_branch_and_bound(problem, K, t, max_iter=max_iter)
        assert (found.status, found.n_iter) == ("max_iter", max_iter)
        assert previous <= found.lower_bound <= full.objective <= found.objective * (1 + 1e-9)
        previous = found.lower_bound
    states = []
    stopped = solve_branch_and_bound(problem, K, t, callback=lambda s: states.append(s) or True)
    assert (stopped.status, stopped.n_iter, len(states)) == ("stopped", 1, 1)
    assert set(states[0]) == {"n_iter", "objective", "lower_bound"}


@pytest.mark.parametrize("balance", [MEAN, NONE])
def test_copies_are_weights(balance):
    K, t, _ = instance(5, 3)
    copies = np.where(t == 0, 3, 1)
    index = np.repeat(np.arange(9), copies)
    problem = problem_of("hinge", balance)
    weighted = solve_branch_and_bound(problem, K, t, copies.astype(float))
    repeated = solve_branch_and_bound(problem, K[np.ix_(index, index)], t[index])
    assert repeated.n_iter == weighted.n_iter
    assert_allclose(repeated.objective, weighted.objective, rtol=1e-9)


@pytest.mark.nightly
def test_sixteen_unlabeled_rows():
    nodes = []
    for kernel, balance in itertools.product(KERNELS, (MEAN, NONE)):
        K, t, _ = instance(16, 30, kernel=kernel)
        problem = problem_of(balance=balance)
        found = solve_branch_and_bound(problem, K, t)
        check(found, problem, K, t)
        nodes.append(found.n_iter)
    assert np.median(nodes) < 1000


# --- Special cases --------------------------------------------------------------------------------


@pytest.mark.parametrize("balance", [("counts", 0.5), ("share", 0.5)])
def test_balances_of_labels_are_refused(balance):
    K, t, _ = instance(4)
    with pytest.raises(ValueError, match=f"balance must be .*'gaussian', got '{balance[0]}'"):
        solve_branch_and_bound(problem_of(balance=balance), K, t)


def test_a_free_offset_needs_two_classes():
    K, t, _ = instance(4)
    with pytest.raises(ValueError, match="t must label both classes"):
        solve_branch_and_bound(problem_of(balance=NONE), K, np.maximum(t, 0))
    found = solve_branch_and_bound(problem_of(balance=MEAN), K, np.maximum(t, 0))
    assert found.status == "converged"


def test_unlabeled_rows_without_weight_leave_the_svm(two_gaussians):
    X, t = two_gaussians(n=30)
    K = Kernel("rbf", 0.5).gram(X)
    unlabeled = np.where(np.arange(30) % 3 == 0, 0.0, t)
    L = unlabeled != 0
    svc = SVC(C=2.0, gamma=0.5, tol=1e-9).fit(X[L], t[L])
    beta = np.zeros(30)
    beta[np.flatnonzero(L)[svc.support_]] = svc.dual_coef_[0]
    problem = problem_of("hinge", NONE, C_star=0.0)
    expected = problem.value(svc.decision_function(X), unlabeled, beta @ K @ beta)
    found = solve_branch_and_bound(problem, K, unlabeled)
    assert_allclose(found.objective, expected, rtol=1e-6)


def test_estimator_reports_its_problem():
    _, t, X = instance(6, 2)
    y = np.where(t == 0, -1, (t > 0).astype(int))
    for options in ({"s": 2.0, "labeled_loss": "modified_logistic"}, {"balance": None}):
        model = BranchBoundS3VM(gamma=0.5, unlabeled_loss="gaussian", **options).fit(X, y)
        found = evaluate(model, X, y, model.problem_)
        assert_allclose(found.objective, model.objective_, rtol=1e-9)
        assert model.termination_condition_ == "converged"
        assert 0 <= model.gap_ <= 1.01e-6 * model.objective_


def test_s_of_the_losses():
    _, t, X = instance(4)
    y = np.where(t == 0, -1, (t > 0).astype(int))
    for loss, s, expected in (
        ("gaussian", None, 3.0),
        ("gaussian", 5.0, 5.0),
        ("symmetric_ramp", None, -0.3),
        ("symmetric_ramp", 0.2, 0.2),
    ):
        model = BranchBoundS3VM(unlabeled_loss=loss, s=s).fit(X, y)
        assert model.problem_.unlabeled_loss == UnlabeledLoss(loss, expected)
