"""Branch and bound: against enumeration, its bounds against every completion, early stops."""

import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from s3vm_lib import QNS3VM, BranchBoundS3VM, losses
from s3vm_lib.branch_and_bound import solve_branch_and_bound
from s3vm_lib.branch_and_bound._decisions import FLAT, Decisions, twins
from s3vm_lib.branch_and_bound._gains import joint_gain, single_gains
from s3vm_lib.branch_and_bound._relaxation import Relaxation, fold, unfold
from s3vm_lib.checks import brute_force, fixed_label_svm
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LABELED_LOSSES, LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem, evaluate
from s3vm_lib.reference import branch_and_bound as reference

KERNELS = {
    "linear": Kernel("linear"),
    "rbf": Kernel("rbf", 0.5),
    "poly": Kernel("poly", 0.5, 2, 1.0),
}
ENUMERABLE = [name for name in LABELED_LOSSES if "logistic" not in name]
HINGE = LabeledLoss("hinge")


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


def problem_of(balance="mean", ratio=0.5, loss=HINGE, unlabeled=None, bias="free", **options):
    parameters = dict(C=2.0, C_star=0.7, balance=balance, bias=bias) | options
    ratio = None if balance == "none" else ratio
    return Problem(loss, unlabeled or loss.effective, ratio=ratio, **parameters)


def values_of_labelings(problem, K, t, s=None):
    """{decisions of the unlabeled rows: minimum of the convex problem that is left}."""
    U = np.flatnonzero(t == 0)
    pieces = problem.unlabeled_loss.pieces
    weight = problem.C_star * (np.ones(len(t)) if s is None else s)[U]
    choices = (-1, 0, 1) if np.isfinite(pieces.height) else (-1, 1)
    values = {}
    for signs in itertools.product(choices, repeat=U.size):
        labels = t.copy()
        labels[U] = signs
        value = fixed_label_svm(problem, K, labels, t != 0, s)[0]
        flat = [pieces.height * w for w, sign in zip(weight, signs, strict=True) if sign == 0]
        values[signs] = value + sum(flat) + pieces.base * weight.sum()
    return values


def check_solution(solution, problem, K, t, s=None):
    """The function has the objective, meets the balance, and the interval is what it claims."""
    f = K @ solution.beta + solution.b
    assert_allclose(solution.outputs, f, atol=1e-10)
    if problem.balance in ("none", "mean"):
        value = problem.value(f, t, solution.beta @ K @ solution.beta, solution.b, s)
        assert_allclose(value, solution.objective, rtol=1e-12)
        assert problem.balance_residual(f, t, s) < 1e-9
    assert solution.lower_bound <= solution.objective
    assert_array_equal(solution.labels[t != 0], t[t != 0])
    assert set(solution.labels.tolist()) <= {-1.0, 1.0}


# --- The optimum ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("balance", "ratio"), [("mean", 0.5), ("mean", 0.3), ("counts", 0.5), ("none", None)]
)
def test_equals_brute_force(kernel, balance, ratio):
    for seed in range(2):
        K, t, _ = instance(6, seed, kernel=kernel)
        problem = problem_of(balance, ratio)
        expected = brute_force(problem, K, t)
        for branching in ("gain", "confidence"):
            found = solve_branch_and_bound(problem, K, t, tol=1e-9, branching=branching)
            assert found.status == "converged"
            assert_allclose(found.objective, expected.objective, rtol=1e-7)
            assert_allclose(found.lower_bound, expected.objective, rtol=1e-7)
            assert_array_equal(found.labels, expected.labels)
            check_solution(found, problem, K, t)


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("balance", ["mean", "counts"])
def test_equals_brute_force_on_many_instances(kernel, balance):
    """Ten instances per kernel and balance, sixty in all, with 8 to 12 unlabeled rows."""
    rng = np.random.default_rng(0)
    for seed, u in enumerate([8, 8, 8, 9, 9, 9, 9, 10, 10, 12]):
        K, t, _ = instance(u, 100 + seed, kernel=kernel)
        C, share = 10.0 ** rng.uniform(-1, 1), rng.uniform(0.05, 1)
        problem = Problem(
            HINGE, HINGE.effective, C, C * share, balance=balance, ratio=rng.choice([0.4, 0.5, 0.6])
        )
        found = solve_branch_and_bound(problem, K, t)
        expected = brute_force(problem, K, t)
        assert found.status == "converged"
        assert_allclose(found.objective, expected.objective, rtol=1e-6)
        assert found.lower_bound <= expected.objective * (1 + 1e-7)
        check_solution(found, problem, K, t)


@pytest.mark.parametrize("name", ENUMERABLE)
@pytest.mark.parametrize("balance", ["mean", "none", "counts"])
def test_other_losses_equal_brute_force(name, balance):
    K, t, _ = instance(6, 3)
    s = np.random.default_rng(0).uniform(0.5, 2, 10)
    s = np.where(t == 0, 1.0, s) if balance == "counts" else s
    problem = problem_of(balance, loss=LabeledLoss(name))
    found = solve_branch_and_bound(problem, K, t, s, tol=1e-9)
    assert_allclose(found.objective, brute_force(problem, K, t, s).objective, rtol=1e-6)
    check_solution(found, problem, K, t, s)


@pytest.mark.parametrize("s", [-0.3, 0.0, 0.4])
@pytest.mark.parametrize("balance", ["mean", "none"])
def test_the_ramp_equals_brute_force(s, balance):
    for seed in range(2):
        K, t, _ = instance(5, seed)
        weight = np.random.default_rng(seed).uniform(0.5, 2, 9) if seed else None
        problem = problem_of(balance, unlabeled=UnlabeledLoss("symmetric_ramp", s))
        found = solve_branch_and_bound(problem, K, t, weight, tol=1e-9)
        expected = brute_force(problem, K, t, weight)
        values = [found.objective, found.lower_bound, *found.history[-1][1:]]
        assert_allclose(values, expected.objective, rtol=1e-7)
        check_solution(found, problem, K, t, weight)


def enumerate_with_cvxpy(problem, K, t, s):
    """The optimum by an interior-point method, labeling by labeling, for any bias and loss."""
    cp = pytest.importorskip("cvxpy")
    n = len(t)
    root = np.linalg.cholesky(K + 1e-12 * np.eye(n))
    w, b, labels = cp.Variable(n), cp.Variable(), cp.Parameter(n)
    f = root @ w + b
    z, p = cp.multiply(labels, f), problem.labeled_loss.p
    losses = {
        "hinge": lambda: cp.pos(1 - z),
        "squared_hinge": lambda: cp.square(cp.pos(1 - z)) / 2,
        "logistic": lambda: cp.logistic(-z),
        "modified_logistic": lambda: cp.logistic(p * (1 - z)) / p,
    }[problem.labeled_loss.name]()
    U = np.flatnonzero(t == 0)
    constraints = [b == 0] if problem.bias == "none" else []
    if problem.balance == "mean":
        constraints.append(s[U] @ f[U] == (2 * problem.ratio - 1) * s[U].sum())
    penalty = cp.sum_squares(w) / 2 + (cp.square(b) / 2 if problem.bias == "regularized" else 0)
    weight = np.where(t != 0, problem.C, problem.C_star) * s
    program = cp.Problem(cp.Minimize(penalty + weight @ losses), constraints)
    best = np.inf
    for signs in itertools.product((-1.0, 1.0), repeat=U.size):
        labels.value = t.copy()
        labels.value[U] = signs
        program.solve(solver=cp.CLARABEL)
        best = min(best, program.value)
    return best


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("hinge", None), ("squared_hinge", None), ("logistic", None), ("modified_logistic", 5.0)],
)
@pytest.mark.parametrize("bias", ["free", "regularized", "none"])
@pytest.mark.parametrize("balance", ["mean", "none"])
def test_every_bias_equals_another_enumeration(name, parameter, bias, balance):
    K, t, _ = instance(4, 1)
    s = np.random.default_rng(1).uniform(0.5, 2, 8)
    problem = problem_of(balance, 0.6, LabeledLoss(name, parameter), bias=bias)
    found = solve_branch_and_bound(problem, K, t, s, tol=1e-9)
    assert found.status == "converged"
    assert_allclose(found.objective, enumerate_with_cvxpy(problem, K, t, s), rtol=1e-6)
    check_solution(found, problem, K, t, s)


def check_share(K, t, s, tol):
    """Against the enumeration of all labels whose share of positives is one half within tol."""
    U = t == 0
    best = min(
        value
        for signs, value in values_of_labelings(problem_of("none"), K, t, s).items()
        if abs(s[U] @ (np.array(signs) > 0) / s[U].sum() - 0.5) <= tol
    )
    problem = problem_of("share", 0.5, balance_tol=tol)
    found = solve_branch_and_bound(problem, K, t, s, tol=1e-9)
    assert found.status == "converged"
    assert_allclose([found.objective, found.lower_bound], best, rtol=1e-7)
    assert abs(s[U] @ (found.labels[U] > 0) / s[U].sum() - 0.5) <= tol + 1e-9


# With 0.02 few labels are left, and not those of the rows that gain most.
@pytest.mark.parametrize(("seed", "tol"), [(2, 0.12), (1, 0.02), (9, 0.02), (15, 0.02)])
def test_a_share_of_labels(seed, tol):
    s = np.random.default_rng(seed).uniform(0.5, 2, 10)
    check_share(*instance(6, seed)[:2], s, tol)


def test_a_share_at_the_very_end_of_its_range_is_allowed():
    """Three rows of five, whose sum rounds to more than 0.5 + 0.1."""
    K, t, _ = instance(5, 0)
    check_share(K, t, np.ones(len(t)), 0.1)


@pytest.mark.parametrize("seed", [9, 13])
def test_a_share_found_with_a_coarse_tolerance_is_the_optimum_of_its_labels(seed):
    K, t, _ = instance(6, seed)
    s = np.random.default_rng(seed).uniform(0.5, 2, 10)
    found = solve_branch_and_bound(problem_of("share", 0.5, balance_tol=0.02), K, t, s, tol=0.1)
    best = fixed_label_svm(problem_of("none"), K, found.labels, t != 0, s)[0]
    assert_allclose(found.objective, best, rtol=1e-5)


@pytest.mark.parametrize("seed", [24, 36])
def test_identical_rows_of_unlike_weight_are_not_exchanged_in_a_share(seed):
    K, t, _ = instance(3, seed)
    index = np.r_[np.arange(7), np.flatnonzero(t == 0)]
    s = np.random.default_rng(seed).uniform(0.5, 2, 10)
    check_share(K[np.ix_(index, index)], t[index], s, 0.1)


def test_a_share_that_no_labels_have():
    K, t, _ = instance(5, 2)
    with pytest.raises(ValueError, match=r"no labels .* within balance_tol=0.05 of 0.5"):
        solve_branch_and_bound(problem_of("share", 0.5, balance_tol=0.05), K, t)


def shares(signs, s):
    """Every share of positives that the signs allow; a row on the flat piece, 0, has either."""
    signs = np.array(signs)
    flat = s[signs == 0]
    free = [flat @ choice for choice in itertools.product((0, 1), repeat=flat.size)]
    return (s[signs > 0].sum() + np.array(free)) / s.sum()


# In these the fractions of flat rows that meet the share have a lower objective than all labels
# that do, or no labels do (the last three).
@pytest.mark.parametrize("seed", [10, 22, 37, 0, 2, 1, 6, 7])
def test_a_share_with_the_ramp_and_unequal_weights(seed):
    rng = np.random.default_rng(seed)
    K, t, _ = instance(5, seed)
    U, s = t == 0, rng.uniform(0.5, 2, 9)
    ratio, tol = rng.choice([0.3, 0.4, 0.5, 0.6]), rng.choice([0.005, 0.02, 0.05, 0.1])
    ramp = UnlabeledLoss("symmetric_ramp", rng.choice([-0.5, -0.3, 0.0, 0.3]))
    values = values_of_labelings(problem_of("none", unlabeled=ramp), K, t, s)
    off = {k: np.abs(shares(k, s[U]) - ratio).min() for k in values}
    problem = problem_of("share", ratio, unlabeled=ramp, balance_tol=tol)
    if min(off.values()) > tol:
        assert seed in (1, 6, 7)
        nearest = shares(np.zeros(5), s[U])
        nearest = nearest[np.argmin(np.abs(nearest - ratio))]
        with pytest.raises(ValueError, match=f"no labels .*the nearest is {nearest:.4g}"):
            solve_branch_and_bound(problem, K, t, s)
        return
    best = min(v for k, v in values.items() if off[k] <= tol)
    found = solve_branch_and_bound(problem, K, t, s, tol=1e-9)
    assert found.status == "converged"
    assert_allclose([found.objective, found.lower_bound], best, rtol=1e-7)
    assert abs(s[U] @ (found.labels[U] > 0) / s[U].sum() - ratio) <= tol
    # Each row is charged for its label, and never for more than the flat piece.
    charge = np.minimum(HINGE.value(found.labels[U], found.outputs[U]), ramp.pieces.height)
    rest = problem_of("none", unlabeled=ramp, C_star=0.0)
    J = rest.value(found.outputs, t, found.beta @ K @ found.beta, found.b, s)
    assert_allclose(J + 0.7 * s[U] @ (charge + ramp.pieces.base), found.objective, rtol=1e-6)


def test_equal_weights_have_no_share_between_two_counts():
    K, t, _ = instance(5, 2)
    ramp = UnlabeledLoss("symmetric_ramp", -0.5)
    with pytest.raises(ValueError, match=r"within balance_tol=0.05 of 0.5: the nearest is 0.[46]"):
        solve_branch_and_bound(problem_of("share", 0.5, unlabeled=ramp, balance_tol=0.05), K, t)


def test_the_nearest_share_is_that_of_an_enumeration():
    rng = np.random.default_rng(0)
    for u, wide in itertools.product((1, 2, 7, 12), (1.5, 1e6)):
        mass = wide ** rng.uniform(size=u)
        mass /= mass.sum()
        target = rng.uniform()
        decisions = Decisions(np.ones(u), mass, target, target, np.arange(u))
        decided = np.where(rng.uniform(size=u) < 0.3, rng.choice([-1, 1, FLAT], u), 0)
        free = mass[(decided == 0) | (decided == FLAT)]
        totals = [free @ choice for choice in itertools.product((0, 1), repeat=free.size)]
        off = np.abs(mass[decided == 1].sum() + totals - target).min()
        assert_allclose(abs(decisions.nearest(decided) - target), off, atol=1e-11)
    grid = rng.integers(1, 20, 200)  # whose sums are few
    decisions = Decisions(np.ones(200), grid / grid.sum(), 0.5, 0.5, np.arange(200))
    assert decisions.possible(np.zeros(200, dtype=int)) == (grid.sum() % 2 == 0)
    mass = rng.uniform(1, 2, 60)
    decisions = Decisions(np.ones(60), mass / mass.sum(), 0.5, 0.5, np.arange(60))
    with pytest.raises(ValueError, match="balance_tol is too small for 30 unlabeled rows"):
        decisions.possible(np.zeros(60, dtype=int))


@pytest.mark.parametrize("positive", [1, 2, 3, 4])
def test_counts_with_the_ramp_leave_the_flat_rows_free(positive, visits):
    K, t, _ = instance(5, 4)
    ramp = UnlabeledLoss("symmetric_ramp", -0.5)
    values = values_of_labelings(problem_of("none", unlabeled=ramp), K, t)
    most = {1: positive, -1: 5 - positive}
    allowed = [v for k, v in values.items() if all(k.count(s) <= most[s] for s in most)]
    problem = problem_of("counts", positive / 5, unlabeled=ramp)
    found = solve_branch_and_bound(problem, K, t, tol=1e-9)
    assert found.status == "converged"
    assert_allclose([found.objective, found.lower_bound], min(allowed), rtol=1e-7)
    assert np.sum(found.labels[t == 0] > 0) == positive
    assert len(visits) >= found.n_iter
    for node, _, _ in visits:
        assert all(np.sum(node.decided == s) <= most[s] for s in most)


def test_equals_the_plain_twin():
    for seed in range(3):
        K, t, _ = instance(7, seed)
        expected, outputs, n_nodes = reference.branch_and_bound(K, t, 2.0, 0.7, 0.4)
        found = solve_branch_and_bound(problem_of("mean", 0.4), K, t, branching="confidence")
        assert_allclose(found.objective, expected, rtol=2e-6)
        assert_allclose(found.outputs, outputs, atol=5e-3)
        assert n_nodes < 2**7


def split_of_integers(numbers):
    """Gram matrix and labels of an instance whose root has the output 0 everywhere."""
    m = len(numbers)
    X = np.vstack([2.0 * np.array([numbers, numbers]), np.eye(m), -np.eye(m)])
    return X @ X.T, np.r_[1.0, -1.0, np.zeros(2 * m)]


@pytest.mark.parametrize(("numbers", "split"), [((1, 2, 3), True), ((1, 1, 3), False)])
def test_outputs_of_zero_have_two_children(numbers, split, visits):
    """J is m/2 + 2C where the integers can be split into two groups of equal sum, else larger."""
    K, t = split_of_integers(numbers)
    problem = problem_of("mean", 0.5, C=1.0, C_star=1.0)
    expected = brute_force(problem, K, t).objective
    assert (expected <= 3.5 + 1e-7) == split
    assert_allclose(reference.branch_and_bound(K, t, 1.0, 1.0, 0.5)[0], expected, rtol=1e-6)
    for branching in ("gain", "confidence"):
        visits.clear()
        found = solve_branch_and_bound(problem, K, t, branching=branching)
        assert_allclose([found.objective, found.lower_bound], expected, rtol=2e-6)
        decided = [node.decided for node, _, _ in visits]
        row = np.flatnonzero(decided[1])  # sign 0 is +1, and goes first
        assert row.size == 1 and decided[1][row] == 1
        assert next(np.count_nonzero(one == -1) for one in decided if one[row] == -1) == 1


def test_no_method_finds_less():
    X = instance(12, 5)[2]
    t = instance(12, 5)[1]
    y = np.where(t == 0, -1, (t > 0).astype(int))
    exact = BranchBoundS3VM(gamma=0.5).fit(X, y)
    for labeled_loss in ("modified_logistic", "squared_hinge"):
        heuristic = QNS3VM(gamma=0.5, labeled_loss=labeled_loss).fit(X, y)
        judged = evaluate(heuristic, X, y, exact.problem_)
        assert judged.balance_residual < 1e-7
        assert judged.objective >= exact.objective_ * (1 - 1e-9)


# --- Bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("balance", "ratio"), [("mean", 0.5), ("mean", 0.3), ("counts", 0.5), ("none", None)]
)
@pytest.mark.parametrize("piecewise", ["hinge", "l1", "squared_hinge", "ramp"])
def test_no_bound_exceeds_a_completion(balance, ratio, piecewise, visits):
    u = 4 if piecewise == "ramp" else 6
    K, t, _ = instance(u, 7)
    if piecewise == "ramp":
        problem = problem_of(balance, ratio, unlabeled=UnlabeledLoss("symmetric_ramp", -0.4))
    else:
        problem = problem_of(balance, ratio, LabeledLoss(piecewise))
    values = values_of_labelings(problem, K, t)
    if balance == "counts":
        values = {k: v for k, v in values.items() if k.count(1) <= u // 2 >= k.count(-1)}
    least = min(values.values())
    found = solve_branch_and_bound(problem, K, t)
    assert len(visits) >= found.n_iter > 1
    assert not visits[0][0].decided.any()
    incumbent = np.inf
    for node, closed, best in visits:
        matches = [
            value
            for signs, value in values.items()
            if all(
                d in (0, s) or (d == FLAT and s == 0)
                for d, s in zip(node.decided, signs, strict=True)
            )
        ]
        # With counts a twin or a full class decides rows, so that no completion need be left.
        least_of_node = min(matches, default=np.inf) + 1e-7
        assert node.sure <= least_of_node
        assert least - 1e-7 <= best <= incumbent
        incumbent = best
        if closed < np.inf:  # by its bound, or with all rows decided
            assert node.sure <= closed <= least_of_node
            assert np.all(node.decided != 0) or closed >= best * (1 - 2e-6)


@pytest.mark.parametrize("bias", ["free", "regularized", "none"])
@pytest.mark.parametrize("balanced", [False, True])
def test_fold_and_unfold_describe_the_same_function(bias, balanced):
    K, t, _ = instance(6, 0)
    rng = np.random.default_rng(0)
    share = np.where(t == 0, rng.uniform(0.5, 2, 10), 0)
    share = share / share.sum() if balanced else None
    folded = fold(K, bias, share, 0.3)
    beta, b = rng.standard_normal(10), 0.7
    if folded.free:
        beta -= beta.mean()
    c, offset = unfold(beta, b, K, bias, share, 0.3)
    f = folded.G @ beta + folded.fixed + (b if folded.free else 0)
    assert_allclose(K @ c + offset, f, atol=1e-12)
    penalty = 0.5 * c @ K @ c + (0.5 * offset**2 if bias == "regularized" else 0)
    assert_allclose(folded.constant + 0.5 * beta @ folded.G @ beta, penalty, atol=1e-12)
    if balanced:
        assert_allclose(share @ f, 0.3, atol=1e-12)
    if bias == "none":
        assert offset == 0


def relaxation_of(problem, K, t, **options):
    U, n = t == 0, len(t)
    share = U / U.sum() if problem.balance == "mean" else None
    folded = fold(K, problem.bias, share, 2 * (problem.ratio or 0) - 1)
    loss = problem.labeled_loss
    weight = np.where(U, problem.C_star, problem.C)
    return Relaxation(folded, np.full(n, loss.code), np.full(n, loss.p), weight, **options)


@pytest.mark.parametrize("name", LABELED_LOSSES)
@pytest.mark.parametrize("balance", ["mean", "none"])
def test_the_bound_of_an_unfinished_node_is_valid(name, balance):
    K, t, _ = instance(6, 8)
    problem = problem_of(balance, 0.4, LabeledLoss(name))
    y = t.copy()
    y[np.flatnonzero(t == 0)[:3]] = [1, -1, 1]
    r = relaxation_of(problem, K, t, tol=1e-12)
    exact = r.solve(y, r.start(), last=True)
    if name in ENUMERABLE:
        assert_allclose(exact.value, fixed_label_svm(problem, K, y, t != 0)[0], rtol=1e-7)
    previous = -np.inf
    for max_iter in (1, 20, 40, 100_000):
        r = relaxation_of(problem, K, t, tol=1e-9, max_iter=max_iter)
        found = r.solve(y, r.start(), last=True)
        assert found.value <= exact.value * (1 + 1e-9)
        assert found.value >= previous - 1e-12  # the dual only rises
        previous = found.value
    assert_allclose(previous, exact.value, rtol=1e-8)
    for cutoff in (0.2 * exact.value, 0.9 * exact.value):
        r = relaxation_of(problem, K, t, tol=1e-9)
        assert cutoff <= r.solve(y, r.start(), cutoff).value <= exact.value * (1 + 1e-9)


@pytest.mark.parametrize("y", [[-1.0, 1.0], [1.0, -1.0]])
def test_of_offsets_that_cost_the_same_the_middle_is_taken(y):
    """Points 0 and 2 with weights 0.1: f(0) = 0, f(2) = ±0.4, and any b with |b ± 0.2| ≤ 0.8.

    Both outputs are then within the margins, and the hinges sum up to 2 − 0.4.
    """
    y = np.array(y)
    n, weight = np.zeros(2), np.full(2, 0.1)
    r = Relaxation(fold(np.diag([0.0, 4.0])), n + HINGE.code, n, weight)
    found = r.solve(y, r.start(), last=True)
    assert_allclose(found.value, 0.02 + 0.1 * 1.6)
    assert_allclose(found.f, 0.2 * y)
    assert_allclose(found.b, -0.2 * y[1])


@pytest.mark.parametrize("loss", [LabeledLoss("logistic"), LabeledLoss("modified_logistic", 5.0)])
@pytest.mark.parametrize(
    ("balance", "bias"), [("mean", "free"), ("none", "free"), ("none", "none")]
)
def test_bounds_of_the_logistic_losses_are_below_the_minimum_of_scipy(loss, balance, bias):
    K, t, _ = instance(6, 8)
    problem = problem_of(balance, 0.4, loss, bias=bias)
    y = t.copy()
    y[np.flatnonzero(t == 0)[:3]] = [1, -1, 1]
    r = relaxation_of(problem, K, t, tol=1e-12)
    G, fixed, constant, free = r.folded
    root = np.linalg.cholesky(G + 1e-10 * np.eye(len(t)))

    def function(x):
        f = root @ x[:-1] + fixed + free * x[-1]
        a = np.where(y == 0, 0.0, r.weight * loss.derivative(np.where(y == 0, 1.0, y), f))
        losses = r.weight @ np.where(y == 0, 0.0, loss.value(np.where(y == 0, 1.0, y), f))
        value = constant + 0.5 * x[:-1] @ x[:-1] + losses
        return value, np.append(x[:-1] + root.T @ a, free * a.sum())

    best = minimize(function, np.zeros(len(t) + 1), jac=True, options=dict(gtol=1e-9)).fun
    for most in (0, 1, 2, 3, 100):
        found = relaxation_of(problem, K, t, tol=1e-12, max_iter=most).solve(
            y, r.start(), last=True
        )
        assert found.value <= best + 1e-8
        assert np.isfinite(found.value)
    assert_allclose(found.value, best, rtol=1e-7)


@pytest.mark.parametrize("name", LABELED_LOSSES)
@pytest.mark.parametrize("balance", ["mean", "none"])
def test_gains_without_a_solve_are_gains(name, balance):
    """What one or all closed rows add at least, against the solved problems that they open."""
    if balance == "none" and "logistic" in name:
        K, t, _ = instance(4)
        r = relaxation_of(problem_of("none", loss=LabeledLoss(name)), K, t)
        assert r.opening(t, r.solve(t, r.start()), np.flatnonzero(t == 0)) is None
        return
    largest = 0.0
    for seed, label in itertools.product(range(4), (0, 1)):
        K, t, _ = instance(5, seed)
        problem = problem_of(balance, 0.4, LabeledLoss(name))
        r = relaxation_of(problem, K, t, tol=1e-12)
        y = t.copy()
        y[np.flatnonzero(t == 0)[0]] = label
        rows = np.flatnonzero(y == 0)
        # A rough solution: gains have to hold at any dual point.
        start = r.solve(y, r.start(), tol=1e-2)
        opening = r.opening(y, start, rows)
        gains = single_gains(*opening)
        flat = np.full(rows.size, np.inf)
        optimum = {}
        for signs in itertools.product((-1, 1), repeat=rows.size):
            z = y.copy()
            z[rows] = signs
            optimum[signs] = r.solve(z, r.start(), last=True).value
        assert start.value + joint_gain(*opening, flat, -1, 0) <= min(optimum.values()) + 1e-9
        for k, side in itertools.product(range(rows.size), (0, 1)):
            z = y.copy()
            z[rows[k]] = 2 * side - 1
            value = r.solve(z, r.start(), last=True).value
            assert start.value + gains[k, side] <= value + 1e-9
            largest = max(largest, gains[k, side] / (value - start.value + 1e-12))
            left = min(v for signs, v in optimum.items() if signs[k] == 2 * side - 1)
            assert start.value + joint_gain(*opening, flat, k, side) <= left + 1e-9
        # A flat piece that costs nothing takes every gain away; one that is chosen costs itself.
        assert joint_gain(*opening, np.zeros(rows.size), -1, 0) == 0
        flat[:] = 0
        flat[0] = 0.7
        assert joint_gain(*opening, flat, 0, 2) == 0.7
    assert largest > 0.5  # and they are not trivial


def test_a_warm_start_of_other_labels_is_feasible():
    K, t, _ = instance(6, 1)
    for balance in ("mean", "none"):
        for loss in ("hinge", "l1", "logistic"):
            r = relaxation_of(problem_of(balance, loss=LabeledLoss(loss)), K, t, tol=1e-10)
            y, z = t.copy(), t.copy()
            y[t == 0], z[t == 0] = [1, 1, 1, -1, -1, 0], [-1, 1, 0, -1, 1, 1]
            start = r.project(z, r.solve(y, r.start(), last=True).beta)
            if loss != "logistic":
                assert abs(start.sum()) < 1e-12
            assert np.all(start[: len(t)] * z >= 0)
            warm, cold = r.solve(z, start, last=True), r.solve(z, r.start(), last=True)
            assert_allclose(warm.value, cold.value, rtol=1e-8)


# --- Rounding -------------------------------------------------------------------------------------


def exact_value(problem, K, t, beta, b, s):
    """J in rational numbers: no minimum is larger. With a mean output b is chosen to meet it."""
    K, beta, s = (np.vectorize(Fraction, otypes=[object])(part) for part in (K, beta, s))
    g, U = K @ beta, t == 0
    b = Fraction(b)
    if problem.balance == "mean":
        b = 2 * Fraction(problem.ratio) - 1 - (s[U] @ g[U]) / s[U].sum()
    f = g + b
    short = np.maximum(0, 1 - np.where(U, abs(f), t.astype(int) * f))
    losses = short**2 / 2 if problem.labeled_loss.name == "squared_hinge" else short
    weight = np.where(U, Fraction(problem.C_star), Fraction(problem.C))
    return beta @ g / 2 + (weight * s) @ losses


def hard_instance(kind, seed):
    """Rows, labels and weights that strain double precision, C and C*."""
    rng = np.random.default_rng(seed)
    n, d = 4 + rng.integers(2, 5), rng.integers(1, 4)
    X, t, s = rng.normal(size=(n, d)), np.zeros(n), np.ones(n)
    X[:, 0] += rng.choice([-1, 1], n)
    t[:4] = [1, -1, 1, -1]
    C, C_star = 10.0 ** rng.uniform(-1, 1, 2)
    if kind == "far":
        X += 10.0 ** rng.uniform(1, 7)
    elif kind == "scales":
        X *= 10.0 ** rng.uniform(-6, 6, d)
    elif kind == "copies":
        X = np.repeat(X, 2, axis=0)[:n]
    elif kind == "large C":
        C, C_star = 10.0 ** rng.uniform(3, 12, 2)
    elif kind == "weights":
        s = 10.0 ** rng.uniform(-8, 8, n)
    elif kind == "ties":  # a labeling and its mirror image
        X = np.r_[X[:3], -X[:3], np.zeros((1, d))] + 1e-13 * rng.normal(size=(7, d))
        t, s = np.array([1.0, 0, 0, -1, 0, 0, 0]), np.ones(7)
    K = X @ X.T if seed % 2 else Kernel("rbf", 0.5).gram(X)
    return np.tril(K) + np.tril(K, -1).T, t, s, C, C_star


# Of most of these the dual value, as it is computed, is larger than a value of J.
HARD = {
    "plain": (0, 1),
    "far": (3, 6, 9, 31),
    "scales": (12, 14, 30),
    "copies": (12, 18, 21),
    "large C": (25, 30),
    "weights": (24, 57),
    "ties": (0, 1),
}


@pytest.mark.parametrize(("kind", "seed"), [(kind, k) for kind in HARD for k in HARD[kind]])
def test_no_lower_bound_exceeds_a_value_in_rational_numbers(kind, seed):
    check_of_lower_bound(kind, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", HARD)
def test_no_lower_bound_exceeds_a_value_in_many_instances(kind):
    for seed in range(60):
        check_of_lower_bound(kind, seed)


def check_of_lower_bound(kind, seed):
    K, t, s, C, C_star = hard_instance(kind, seed)
    bias, balance = [("free", "mean"), ("free", "none"), ("none", "none")][seed % 3]
    loss, tol = LabeledLoss(("hinge", "squared_hinge")[seed // 3 % 2]), (1e-6, 1e-12)[seed // 6 % 2]
    problem = problem_of(balance, loss=loss, bias=bias, C=C, C_star=C_star)
    found = solve_branch_and_bound(problem, K, t, s, tol=tol, max_iter=200)
    assert Fraction(found.lower_bound) <= exact_value(problem, K, t, found.beta, found.b, s)
    if found.status == "converged":
        gap = found.objective - found.lower_bound
        assert gap <= (1.01 * tol + 2e-8) * found.objective
    else:
        assert kind != "plain" or tol < 1e-6


@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "modified_logistic", "gaussian"])
@pytest.mark.parametrize("balance", ["mean", "none"])
def test_the_minimum_of_shifted_integers_is_inside_the_gap(name, balance):
    """K of x + 3e7 is exact in doubles; its fold is not, nor are distances of rows."""
    x, t = np.array([-3.0, 3, -2, -1, 1, 2, 0]), np.array([-1.0, 1, 0, 0, 0, 0, 0])
    loss = HINGE if name == "gaussian" else LabeledLoss(name)
    unlabeled = UnlabeledLoss("gaussian") if name == "gaussian" else None
    problem = problem_of(balance, loss=loss, unlabeled=unlabeled, C=1.0, C_star=0.5)
    least = solve_branch_and_bound(problem, np.outer(x, x), t, tol=1e-9).objective
    for shift in (1e2,) if name == "gaussian" else (1e2, 1e6, 3e7):
        K = np.outer(x + shift, x + shift)
        found = solve_branch_and_bound(problem, K, t, max_iter=100)
        assert found.lower_bound <= least * (1 + 1e-9)
        exact = found.objective - found.lower_bound <= 1.1e-6 * found.objective
        assert exact or found.status in ("inexact", "max_iter")
        if shift == 1e2 and name != "gaussian":
            assert_allclose([found.objective, found.lower_bound], least, rtol=2e-6)


def test_rows_are_identical_if_all_their_kernel_values_are():
    x = 1e7 + np.array([0.0, 1.0, 1.0, 2.0])
    assert twins(np.outer(x, x), np.arange(4)).tolist() == [0, 1, 1, 3]
    K = Kernel("rbf", 0.5).gram(instance(6, 3)[2][[0, 1, 0, 2, 1]])
    K *= 1 + 1e-16 * np.random.default_rng(0).standard_normal(K.shape)
    assert twins(K, np.arange(5)).tolist() == [0, 1, 0, 3, 1]


# --- Stopping early -------------------------------------------------------------------------------


@pytest.mark.parametrize("balance", ["mean", "none", "counts"])
def test_an_early_stop_leaves_an_interval_around_the_optimum(balance):
    K, t, _ = instance(16, 11)
    problem = problem_of(balance)
    full = solve_branch_and_bound(problem, K, t)
    assert full.n_iter > 8
    previous = (np.inf, 0.0)
    for max_iter in (1, 2, 4, 8, full.n_iter - 1):
        found = solve_branch_and_bound(problem, K, t, max_iter=max_iter)
        assert (found.status, found.n_iter) == ("max_iter", max_iter)
        assert found.lower_bound <= full.objective <= found.objective * (1 + 1e-9)
        assert found.objective <= previous[0] and found.lower_bound >= previous[1]
        previous = (found.objective, found.lower_bound)
        check_solution(found, problem, K, t)
    states = []
    stopped = solve_branch_and_bound(problem, K, t, callback=lambda s: states.append(s) or True)
    assert (stopped.status, stopped.n_iter, len(states)) == ("stopped", 1, 1)
    assert set(states[0]) == {"n_iter", "objective", "lower_bound"}


def test_history_closes_in_on_the_optimum():
    K, t, _ = instance(20, 12)
    found = solve_branch_and_bound(problem_of(), K, t)
    nodes, values, bounds = np.array(found.history).T
    assert np.all(np.diff(nodes) > 0) and nodes[-1] == found.n_iter
    assert np.all(np.diff(values) <= 0) and np.all(np.diff(bounds) >= -1e-12)
    assert_allclose(values[-1], found.objective, rtol=1e-5)
    assert found.objective - bounds[-1] <= 2e-6 * found.objective


def test_nodes_that_are_not_solved_are_reported(monkeypatch):
    K, t, _ = instance(8, 0, kernel="linear")
    problem = problem_of(loss=LabeledLoss("l1"))
    exact = brute_force(problem, K, t).objective
    short = functools.partial(Relaxation, max_iter=30)
    monkeypatch.setattr("s3vm_lib.branch_and_bound._search.Relaxation", short)
    found = solve_branch_and_bound(problem, K, t)
    assert found.status == "inexact"
    assert found.lower_bound <= exact * (1 + 1e-7) and exact <= found.objective * (1 + 1e-7)
    assert found.objective - found.lower_bound > 1e-6 * found.objective


# --- Weights and identical rows -------------------------------------------------------------------


@pytest.mark.parametrize("balance", ["mean", "none"])
def test_identical_rows_are_decided_together(balance):
    K, t, _ = instance(6, 3)
    copies = np.where(t == 0, 3, 1)
    index = np.repeat(np.arange(10), copies)
    problem = problem_of(balance)
    weighted = solve_branch_and_bound(problem, K, t, copies.astype(float), tol=1e-10)
    repeated = solve_branch_and_bound(problem, K[np.ix_(index, index)], t[index], tol=1e-10)
    assert repeated.n_iter == weighted.n_iter
    assert_allclose(repeated.objective, weighted.objective, rtol=1e-9)
    assert_allclose(repeated.outputs, weighted.outputs[index], atol=1e-6)


def test_all_rows_identical():
    K, t = np.ones((44, 44)), np.zeros(44)
    t[:4] = [1, -1, 1, -1]
    for balance, ratio in (("mean", 0.5), ("mean", 0.8), ("none", None), ("counts", 0.5)):
        found = solve_branch_and_bound(problem_of(balance, ratio), K, t, max_iter=200)
        assert found.status == "converged"
        assert np.ptp(found.outputs) < 1e-9


def test_counts_of_identical_rows_equal_brute_force():
    K, t, _ = instance(4, 6)
    index = np.r_[np.arange(8), np.repeat(np.flatnonzero(t == 0)[:2], 2)]
    for ratio in (0.25, 0.5, 0.75):
        problem = problem_of("counts", ratio)
        K2, t2 = K[np.ix_(index, index)], t[index]
        expected = brute_force(problem, K2, t2)
        found = solve_branch_and_bound(problem, K2, t2, tol=1e-9)
        assert_allclose(found.objective, expected.objective, rtol=1e-7)
        assert np.sum(found.labels[t2 == 0] > 0) == round(ratio * 8)


# --- The tree stays small -------------------------------------------------------------------------


def test_the_tree_is_a_tiny_part_of_the_labelings():
    nodes = []
    for seed in range(5):
        K, t, _ = instance(24, seed)
        found = solve_branch_and_bound(problem_of(), K, t)
        assert found.status == "converged"
        nodes.append(found.n_iter)
    assert np.mean(nodes) < 2000  # of 17 million labelings
    K, t, _ = instance(24, 0)
    paper = solve_branch_and_bound(problem_of(), K, t, branching="confidence")
    assert_allclose(
        paper.objective, solve_branch_and_bound(problem_of(), K, t).objective, rtol=2e-6
    )


@pytest.mark.slow
def test_thirty_two_unlabeled_rows():
    for seed in range(4):
        K, t, _ = instance(32, 50 + seed)
        for balance in ("mean", "none"):
            gain = solve_branch_and_bound(problem_of(balance), K, t)
            other = solve_branch_and_bound(problem_of(balance), K, t, branching="confidence")
            assert gain.status == other.status == "converged"
            assert_allclose(gain.objective, other.objective, rtol=3e-6)


# --- The estimator --------------------------------------------------------------------------------


@pytest.fixture
def data():
    _, t, X = instance(14, 9)
    return X, np.where(t == 0, -1, (t > 0).astype(int))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"balance_mode": "counts"},
        {"balance_mode": "share", "balance_tol": 0.1},
        {"balance": 0.4, "bias": "regularized"},
        {"balance": None, "bias": "none"},
        {"unlabeled_loss": "symmetric_ramp", "s": -0.5},
        {"labeled_loss": LabeledLoss("smooth_hinge", 0.8)},
        {"labeled_loss": "logistic", "balance": None},
        {"kernel": "linear", "labeled_loss": "squared_hinge"},
    ],
    ids=repr,
)
def test_estimator_reports_its_problem(data, options):
    X, y = data
    model = BranchBoundS3VM(C=2.0, C_star=0.5, **options).fit(X, y)
    problem = model.problem_
    assert (problem.C, problem.C_star) == (2.0, 0.5)
    assert problem.labeled_loss == losses.labeled_loss(options.get("labeled_loss", "hinge"))
    if problem.unlabeled_loss.name in ("gaussian", "symmetric_ramp"):
        assert problem.unlabeled_loss.parameter == options.get("s", 3.0)
    found = evaluate(model, X, y, problem)
    if found.balance_residual > 1e-8:  # outputs of another sign than the label they are charged for
        assert problem.balance in ("counts", "share") and found.objective < model.objective_
    else:
        assert_allclose(found.objective, model.objective_, rtol=1e-9)
    assert model.termination_condition_ == "converged"
    assert 0 <= model.gap_ <= 1.01e-6 * model.objective_
    assert_allclose(model.lower_bound_, model.objective_ - model.gap_)
    t = np.where(y < 0, 0.0, 2.0 * y - 1)
    direct = solve_branch_and_bound(problem, problem.kernel.gram(X), t)
    assert_allclose(direct.objective, model.objective_, rtol=1e-6)


def test_an_interrupted_fit_warns_and_reports_the_gap(data):
    X, y = data
    exact = BranchBoundS3VM().fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 "):
        model = BranchBoundS3VM(max_iter=2).fit(X, y)
    assert model.termination_condition_ == "max_iter" and model.n_iter_ == 2
    assert model.gap_ > 1e-3
    assert model.lower_bound_ <= exact.objective_ <= model.objective_ * (1 + 1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_without_unlabeled_rows_it_is_the_svm(two_gaussians, kernel):
    X, t = two_gaussians(n=50)
    weight = np.random.default_rng(0).uniform(0.5, 2, 50)
    model = BranchBoundS3VM(C=3.0, kernel=kernel, gamma=0.4, tol=1e-9)
    model.fit(X, (t > 0).astype(int), sample_weight=weight)
    svc = SVC(C=3.0, kernel=kernel, gamma=0.4, tol=1e-9).fit(X, t, sample_weight=weight)
    assert_allclose(model.decision_function(X), svc.decision_function(X), atol=1e-5)
    assert model.n_iter_ == 1 and model.gap_ <= 1e-8 * model.objective_


def test_three_classes_report_a_gap_each(semi_supervised):
    X, y = semi_supervised(n=30, n_labeled=9, n_classes=3)
    model = BranchBoundS3VM().fit(X, y)
    assert model.lower_bound_.shape == model.gap_.shape == (3,)
    assert np.all(model.gap_ <= 1.01e-6 * model.objective_)


def test_counts_refuse_unequal_weights_of_unlabeled_rows(data):
    X, y = data
    weight = np.linspace(1, 2, len(y))
    with pytest.raises(ValueError, match="sample_weight must be equal"):
        BranchBoundS3VM(balance_mode="counts").fit(X, y, sample_weight=weight)
    BranchBoundS3VM(balance_mode="counts").fit(X, y, sample_weight=np.where(y < 0, 1.0, weight))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (dict(labeled_loss="gaussian"), "'labeled_loss' parameter"),
        (dict(unlabeled_loss="hinge"), "'unlabeled_loss' parameter"),
        (dict(labeled_loss=LabeledLoss("smooth_hinge", 1e20)), "its parameter"),
        (dict(unlabeled_loss="symmetric_ramp", s=1.0), r"must lie in \(-1, 1\)"),
        (dict(unlabeled_loss="gaussian", s=-0.3), r"must lie in \(0, inf\)"),
        (dict(unlabeled_loss="gaussian", balance_mode="counts"), "balance_mode .*='gaussian', got"),
        (dict(unlabeled_loss="gaussian", balance_mode="share"), "balance_mode .*='gaussian', got"),
        (dict(labeled_loss="logistic", unlabeled_loss="symmetric_ramp"), "logistic losses do not"),
    ],
    ids=repr,
)
def test_bad_parameters(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        BranchBoundS3VM(**parameters).fit(*data)
