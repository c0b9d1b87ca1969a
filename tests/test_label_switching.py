"""Label switching: what a switch gains, monotone objectives, the optimum, the plain twin."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from s3vm_lib import SVM, S3VMLight
from s3vm_lib.checks import brute_force, fixed_label_svm
from s3vm_lib.gram import Gram
from s3vm_lib.kernels import Kernel
from s3vm_lib.label_switching import (
    solve_s3vm_light,
    switch_gain,
    worst_pairs,
)
from s3vm_lib.label_switching._light import (
    annealing_levels,
    settle,
    top_labels,
    wrong_signs,
)
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem, evaluate, svm_duality_gap, svm_kkt_residual
from s3vm_lib.reference import label_switching as twin
from s3vm_lib.smo import Costs

KERNELS = {
    "linear": Kernel("linear"),
    "rbf": Kernel("rbf", 0.5),
    "poly": Kernel("poly", 0.3, degree=2, coef0=1.0),
}
# The same tolerance at all levels, so that what holds for exact solutions can be seen.
EXACT = dict(tol=1e-8, annealing_tol=1e-8)
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
both_ways = pytest.mark.parametrize("switching", ["all", "pair"])


@pytest.fixture(scope="module")
def clouds(two_gaussians):
    """Function (seed, n, n_labeled, distance) -> X, t with 0 for unlabeled rows."""

    def make(seed=0, n=60, n_labeled=10, distance=1.5):
        X, t = two_gaussians(n=n, d=2, seed=seed, distance=distance)
        t[n_labeled:] = 0
        t[:2] = 1, -1
        return X, t

    return make


def labels_of(t):
    """Classes 0 and 1, and −1 for unlabeled rows."""
    return np.where(t == 0, -1, t > 0)


def hinge_sum(f, labels, C_plus, C_minus):
    """Σ C*_{t_j} max(0, 1 − t_j f_j)."""
    return float(np.where(labels > 0, C_plus, C_minus) @ np.maximum(0, 1 - labels * f))


def model(kernel="rbf", **options):
    k = KERNELS[kernel]
    parameters = dict(kernel=k.name, gamma=k.gamma, degree=k.degree, coef0=k.coef0)
    return S3VMLight(**{**parameters, **EXACT, **options})


def solve(K, t, C=1.0, C_star=0.5, n_positive=None, **options):
    """`solve_s3vm_light` on a Gram matrix, with unit weights."""
    problem = Problem(LabeledLoss("hinge"), UnlabeledLoss("symmetric_hinge"), C, C_star)
    gram = Gram(np.ascontiguousarray(K), Kernel("precomputed"))
    return solve_s3vm_light(
        gram, t, np.ones(t.size), problem, n_positive=n_positive, **{**EXACT, **options}
    )


# --- What a switch gains --------------------------------------------------------------------------


def test_a_switch_lowers_the_objective_exactly_when_the_outputs_are_in_the_wrong_order():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        f = rng.choice([0.5, 1, 3]) * rng.standard_normal(2)
        costs = rng.exponential(size=2) * rng.choice([1e-3, 1, 10], size=2)
        before = hinge_sum(f, np.array([1, -1]), *costs)
        after = hinge_sum(f, np.array([-1, 1]), *costs)
        gain = switch_gain(f[0], f[1], *costs)
        assert_allclose(gain, before - after, rtol=1e-9, atol=1e-12)
        assert (gain > 0) == (f[0] < f[1])


def test_the_condition_of_the_paper_is_sufficient_but_not_necessary():
    f = np.random.default_rng(1).uniform(-3, 3, (5000, 2))
    xi_i, xi_j = np.maximum(0, 1 - f[:, 0]), np.maximum(0, 1 + f[:, 1])
    paper = (xi_i > 0) & (xi_j > 0) & (xi_i + xi_j > 2)
    assert np.all(f[paper, 0] < f[paper, 1])
    # Both outputs beyond the same margin: one slack is zero, and yet a switch gains.
    assert not ((1 - 1.5 > 0) and (1 + 2.0 > 0))
    assert switch_gain(1.5, 2.0, 1.0, 1.0) == 0.5


@pytest.mark.parametrize("seed", range(5))
def test_all_worst_pairs_give_the_best_labels_of_their_count(seed):
    rng = np.random.default_rng(seed)
    u = 8
    f, costs = 1.5 * rng.standard_normal(u), rng.exponential(size=2)
    labels = np.where(rng.random(u) < 0.5, 1.0, -1.0)
    labels[:2] = 1, -1
    i, j = worst_pairs(f, labels, np.arange(u))
    assert len(np.unique(np.r_[i, j])) == 2 * i.size
    switched = labels.copy()
    switched[i], switched[j] = -1, 1
    n_plus = int(np.sum(labels > 0))
    assert_array_equal(switched, top_labels(f, n_plus))
    values = [
        hinge_sum(f, np.array(s), *costs)
        for s in itertools.product([-1, 1], repeat=u)
        if s.count(1) == n_plus
    ]
    assert_allclose(hinge_sum(f, switched, *costs), min(values))
    # The gains of disjoint pairs add up, of every subset of them too.
    for m in range(i.size + 1):
        part = labels.copy()
        part[i[:m]], part[j[:m]] = -1, 1
        assert_allclose(
            hinge_sum(f, labels, *costs) - hinge_sum(f, part, *costs),
            np.sum(switch_gain(f[i[:m]], f[j[:m]], *costs)),
            atol=1e-12,
        )


def test_worst_pairs_come_in_order_and_keep_to_their_rows_and_tolerance():
    f = np.array([0.1, 0.9, -0.5, 0.3, 5.0, -5.0])
    labels = np.array([1.0, -1, 1, -1, -1, 1])
    rows = np.arange(4)
    i, j = worst_pairs(f, labels, rows)
    assert (i.tolist(), j.tolist()) == ([2, 0], [1, 3])
    i, j = worst_pairs(f, labels, rows, tol=0.2)
    assert (i.tolist(), j.tolist()) == ([2], [1])
    assert worst_pairs(f, np.ones(6), rows)[0].size == 0
    tied = worst_pairs(np.zeros(6), labels, np.arange(6))
    assert tied[0].size == tied[1].size == 0


@pytest.mark.parametrize("seed", range(3))
def test_wrong_signs_give_the_best_labels_without_a_count(seed):
    rng = np.random.default_rng(seed)
    f = 1.5 * rng.standard_normal(7)
    labels = np.where(rng.random(7) < 0.5, 1.0, -1.0)
    rows = wrong_signs(f, labels, np.arange(7))
    assert np.all(np.diff(labels[rows] * f[rows]) >= 0)
    flipped = labels.copy()
    flipped[rows] *= -1
    values = [hinge_sum(f, np.array(s), 0.7, 0.7) for s in itertools.product([-1, 1], repeat=7)]
    assert_allclose(hinge_sum(f, flipped, 0.7, 0.7), min(values))
    assert_array_equal(flipped, top_labels(f))
    # A flip is a switch with a partner on the boundary.
    gain = np.sum(switch_gain(labels[rows] * f[rows], 0.0, 0.7, 0.7))
    assert_allclose(hinge_sum(f, labels, 0.7, 0.7) - min(values), gain)


@pytest.mark.parametrize("seed", range(4))
def test_settle_restores_the_sum_at_the_smallest_price(seed):
    rng = np.random.default_rng(seed)
    lo, hi = -rng.random(12), rng.random(12)
    beta = lo + rng.random(12) * (hi - lo)
    beta[:4] = hi[:4] if seed % 2 else lo[:4]
    gradient = rng.standard_normal(12)
    costs = Costs(lo, hi, hi, -np.ones(12), -np.ones(12))
    result = settle(beta, costs, gradient)
    assert abs(result.sum()) < 1e-12
    assert np.all(result >= lo) and np.all(result <= hi)
    # One direction, as far as the sum is off: a linear program.
    down = beta.sum() > 0
    bounds = np.c_[lo - beta, np.zeros(12)] if down else np.c_[np.zeros(12), hi - beta]
    best = linprog(gradient, A_eq=np.ones((1, 12)), b_eq=[-beta.sum()], bounds=bounds)
    assert_allclose(gradient @ (result - beta), best.fun, atol=1e-9)
    assert settle(result, costs, gradient) is result


# --- Annealing ------------------------------------------------------------------------------------


def test_annealing_levels():
    levels = list(annealing_levels(4.0, 0.1, 2.0))
    assert_allclose(levels, [(c, c) for c in (0.4, 0.8, 1.6, 3.2, 4.0)])
    assert levels[-1] == (4.0, 4.0)
    assert list(annealing_levels(3.0, 1.0)) == [(3.0, 3.0)]
    levels = np.array(list(annealing_levels(1.0, 1e-3, 1.5, plus=0.2)))
    assert_allclose(levels[0], (0.0004, 0.0016))
    assert np.all(np.diff(levels, axis=0) >= 0)
    free = np.all(levels < 1, axis=1)
    assert_allclose(levels[free, 0] / levels[free, 1], 0.25)
    assert_allclose(levels[1:][free[1:]] / levels[:-1][free[1:]], 1.5)
    assert levels[-1].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("ratio", "expected"), [("balanced", 3.0), ("equal", 1.0), ("paper", 1 / 3)]
)
def test_annealing_ratio(clouds, ratio, expected):
    X, t = clouds(n=50)
    fit = model(balance=0.25, annealing_ratio=ratio).fit(X, labels_of(t))
    first = fit.history_[1]
    assert_allclose(first.C_plus / first.C_minus, expected)
    assert_allclose(first.C_plus + first.C_minus, 2e-5 * fit.problem_.C_star)
    assert fit.history_[-1].C_plus == fit.history_[-1].C_minus == fit.problem_.C_star


# --- Descent --------------------------------------------------------------------------------------


def assert_descent(history, tol=1e-6):
    """Within a level no training ends higher than the switches before it had left."""
    switched = 0
    for before, after in itertools.pairwise(history):
        if after.n_switched:
            switched += 1
            assert (after.C_plus, after.C_minus) == (before.C_plus, before.C_minus)
            assert after.gain > 0
            assert after.value <= before.value - after.gain + tol
        else:
            assert (after.C_plus, after.C_minus) != (before.C_plus, before.C_minus)
        assert -1e-12 <= after.gap < 1e-5
    return switched


@both_ways
@pytest.mark.parametrize("balance", ["labels", None])
def test_rounds_do_not_depend_on_the_unit_of_the_weights(clouds, balance, switching):
    X, t = clouds(0, n=80, distance=1.0)
    options = dict(balance=balance, switching=switching)
    one = model(C_star=1.0, **options).fit(X, labels_of(t))
    other = model(C=0.25, C_star=0.25, **options).fit(X, labels_of(t), np.full(80, 4.0))
    assert sum(round.n_switched for round in one.history_) > 0
    for first, second in zip(one.history_, other.history_, strict=True):
        assert first.n_switched == second.n_switched
        assert_allclose([first.gain, first.value], [second.gain, second.value], rtol=1e-9)


@both_ways
@pytest.mark.parametrize("balance", ["labels", 0.3, None])
@every_kernel
def test_every_switch_lowers_the_objective(clouds, kernel, balance, switching):
    switched = 0
    for seed in range(3):
        X, t = clouds(seed, n=80, distance=1.0)
        fit = model(kernel, balance=balance, switching=switching, C_star=1.0).fit(X, labels_of(t))
        switched += assert_descent(fit.history_)
        if switching == "pair":
            assert max(r.n_switched for r in fit.history_) <= 2
    assert switched > 3


@both_ways
@every_kernel
def test_no_pair_is_left_at_the_end_and_the_count_is_met(clouds, kernel, switching):
    for seed in range(3):
        X, t = clouds(seed, n=80, distance=1.0)
        fit = model(kernel, balance=0.35, switching=switching, C_star=1.0).fit(X, labels_of(t))
        u = t == 0
        f, labels = fit.decision_function(X)[u], fit.assigned_[0, u]
        assert np.sum(labels > 0) == round(0.35 * u.sum())
        assert f[labels > 0].min() >= f[labels < 0].max() - 1e-7
        xi = np.maximum(0, 1 - labels * f)
        pairs = (labels > 0)[:, None] & (labels < 0)[None, :] & (xi[:, None] > 0) & (xi > 0)
        assert np.all((xi[:, None] + xi[None, :])[pairs] <= 2 + 1e-7)
        assert_array_equal(fit.assigned_[0, ~u], t[~u])


@both_ways
def test_without_a_count_labels_and_outputs_agree_at_the_end(clouds, switching):
    for seed in range(3):
        X, t = clouds(seed, n=80, distance=1.0)
        fit = model(balance=None, switching=switching, C_star=0.3).fit(X, labels_of(t))
        u = t == 0
        assert np.all(fit.assigned_[0, u] * fit.decision_function(X)[u] >= -1e-7)
        assert fit.problem_.ratio is None
        assert_allclose(fit.objective_, fit.history_[-1].value, rtol=1e-6)


def test_trainings_cut_short_do_not_go_in_circles(clouds):
    X, t = clouds(n=150, distance=0.5)
    options = dict(C=10, C_star=10, switching="pair", max_inner_iter=1, balance="labels")
    with pytest.warns(ConvergenceWarning):
        fit = S3VMLight(**options).fit(X, labels_of(t))
    # About 100; about 600 where it may return to labels that it had at the same level.
    assert fit.n_iter_ < 300
    assert np.sum(fit.assigned_[0, t == 0] > 0) == round(fit.problem_.ratio * 140)


# --- The machine at the end -----------------------------------------------------------------------


@pytest.mark.parametrize("n_positive", [None, 20])
@every_kernel
def test_optimality_of_the_last_training(clouds, kernel, n_positive):
    X, t = clouds(n=70)
    K = KERNELS[kernel].gram(X)
    for tol in (1e-3, 1e-8):
        found = solve(K, t, 2.0, 0.5, n_positive, tol=tol, annealing_tol=1e-2)
        upper = np.where(t == 0, 0.5, 2.0)
        assert abs(found.beta.sum()) < 1e-10
        assert svm_kkt_residual(K, found.beta, found.b, found.labels, upper) <= tol
        gap = svm_duality_gap(K, found.beta, found.b, found.labels, upper)
        assert_allclose(found.history[-1].gap, gap, atol=1e-9)
        objective, *_ = fixed_label_svm(
            Problem(C=2.0, C_star=0.5), K, found.labels, t != 0, tol=1e-10
        )
        assert objective - 1e-7 <= found.history[-1].value <= objective + gap + 1e-9


@every_kernel
def test_the_last_machine_is_scikit_learns_on_the_assigned_labels(clouds, kernel):
    X, t = clouds(3, n=70)
    k = KERNELS[kernel]
    fit = model(kernel, C=2.0, C_star=0.4).fit(X, labels_of(t))
    svc = SVC(C=1, kernel=k.name, gamma=k.gamma, degree=k.degree, coef0=k.coef0, tol=1e-9)
    svc.fit(X, fit.assigned_[0], sample_weight=np.where(t == 0, 0.4, 2.0))
    assert_allclose(fit.decision_function(X), svc.decision_function(X), atol=2e-5)


@every_kernel
def test_nothing_unlabeled_is_the_svm(two_gaussians, kernel):
    X, t = two_gaussians(n=60, d=2)
    weight = np.random.default_rng(0).uniform(0.5, 2, 60)
    k = KERNELS[kernel]
    svc = SVC(C=3, kernel=k.name, gamma=k.gamma, degree=k.degree, coef0=k.coef0, tol=1e-10)
    svc.fit(X, t, sample_weight=weight)
    fit = model(kernel, C=3.0, tol=1e-10).fit(X, labels_of(t), sample_weight=weight)
    # libsvm keeps kernel values in single precision.
    assert_allclose(fit.decision_function(X), svc.decision_function(X), atol=2e-5)
    assert fit.n_iter_ == len(fit.history_) == 1
    assert fit.termination_condition_ == "converged"


@pytest.mark.parametrize("rows", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@every_kernel
def test_without_cost_unlabeled_rows_do_nothing_at_all(clouds, kernel, rows):
    X, t = clouds()
    y = labels_of(t)
    fit = model(kernel, C_star=0.0).fit(rows(X), y)
    svm = SVM(**{name: fit.get_params()[name] for name in ("kernel", "gamma", "degree", "coef0")})
    svm.set_params(tol=1e-8).fit(rows(X), y)
    assert_array_equal(fit.decision_function(rows(X)), svm.decision_function(rows(X)))
    assert_array_equal(fit.transduction_, svm.transduction_)
    assert_array_equal(fit.assigned_[0], t)


# --- The global optimum ---------------------------------------------------------------------------


def small_instance(seed, kernel, u=8):
    """A few labeled and u unlabeled rows of two overlapping clouds."""
    rng = np.random.default_rng(seed)
    n = u + 6
    truth = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((n, 2)) + 1.2 * truth[:, None] * np.array([1.0, 0.3])
    t = truth.copy()
    t[6:] = 0
    return KERNELS[kernel].gram(X), t


def hits(kernel, balance, seeds, u=8, ways=("all",)):
    """Shares of instances whose global optimum was found; asserts that none was beaten."""
    reached = np.zeros(len(ways))
    for seed in seeds:
        K, t = small_instance(seed, kernel, u)
        C_star = [0.1, 0.5, 2.0][seed % 3]
        ratio = None if balance == "none" else [0.5, 0.25][seed % 2]
        problem = Problem(
            LabeledLoss("hinge"), UnlabeledLoss("symmetric_hinge"), 1.0, C_star,
            balance=balance, ratio=ratio,
        )  # fmt: skip
        best = brute_force(problem, K, t).objective
        n_positive = None if ratio is None else round(ratio * u)
        for k, switching in enumerate(ways):
            found = solve(K, t, 1.0, C_star, n_positive, switching=switching)
            value = found.history[-1].value
            assert value >= best - 1e-6
            if balance == "none":
                assert found.objective >= best - 1e-6
            reached[k] += value <= best * (1 + 1e-3)
    return reached / len(seeds)


@every_kernel
def test_never_below_the_global_optimum_and_often_at_it(kernel):
    assert hits(kernel, "counts", range(12), u=6) >= 0.6
    assert hits(kernel, "none", range(6), u=6) >= 0.5


@pytest.mark.nightly
@pytest.mark.parametrize("balance", ["counts", "none"])
@every_kernel
def test_never_below_the_global_optimum_of_larger_instances(kernel, balance):
    assert np.all(hits(kernel, balance, range(100, 124), u=9, ways=("all", "pair")) >= 0.5)


# --- The plain twin -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [4, 7])
@pytest.mark.parametrize("pairs", [None, 1])
@every_kernel
def test_same_trainings_as_the_plain_twin(clouds, kernel, pairs, seed):
    X, t = clouds(seed, n=40, distance=1.0)
    K = KERNELS[kernel].gram(X)
    steps = list(twin.light_steps(K, t, 12, 1.0, 0.5, start=1e-2, pairs=pairs, tol=1e-8))
    switching = "all" if pairs is None else "pair"
    found = solve(K, t, 1.0, 0.5, 12, annealing_start=1e-2, switching=switching)
    assert len(steps) == found.n_iter
    assert sum(round.n_switched for round in found.history) >= 2
    for step, round in zip(steps, found.history, strict=True):
        assert_allclose((step.C_plus, step.C_minus), (round.C_plus, round.C_minus), rtol=1e-12)
        assert_allclose(step.value, round.value, atol=1e-6)
    assert_array_equal(steps[-1].labels, found.labels)
    assert_allclose(steps[-1].outputs, found.f + found.b, atol=1e-6)


# --- The estimator --------------------------------------------------------------------------------


def test_the_objective_counts_the_nearer_label(clouds):
    X, t = clouds(n=80, distance=1.0)
    y = labels_of(t)
    # A share far from the truth: many labels contradict the outputs.
    fit = model("linear", balance=0.15, C_star=0.02).fit(X, y)
    u = t == 0
    f, labels = fit.decision_function(X), fit.assigned_[0]
    wrong = labels[u] * f[u] < 0
    assert wrong.sum() >= 3
    assert (fit.problem_.balance, fit.problem_.ratio) == ("counts", 0.15)
    found = evaluate(fit, X, y, fit.problem_)
    assert_allclose(found.objective, fit.objective_, rtol=1e-9)
    assert found.balance_residual == wrong.sum()
    excess = hinge_sum(f[u], labels[u], 0.02, 0.02) - 0.02 * np.maximum(0, 1 - np.abs(f[u])).sum()
    assert excess > 0
    assert_allclose(fit.history_[-1].value, fit.objective_ + excess, rtol=1e-7)


def test_classes_against_the_rest_have_their_counts(semi_supervised):
    X, y = semi_supervised(n=90, n_labeled=18, n_classes=3)
    fit = S3VMLight(balance="labels").fit(X, y)
    assert fit.assigned_.shape == (3, 90)
    u = y < 0
    assert_array_equal((fit.assigned_[:, u] > 0).sum(axis=1), [24, 24, 24])
    for k in range(3):
        assert_array_equal(fit.assigned_[k, ~u], np.where(y[~u] == k, 1, -1))


def test_weights_of_unlabeled_rows(clouds):
    X, t = clouds()
    y = labels_of(t)
    weight = np.where(t == 0, 2.0, 1.0)
    options = dict(gamma=0.5, balance=0.4, **EXACT)
    weighted = S3VMLight(C_star=0.3, **options).fit(X, y, sample_weight=weight)
    plain = S3VMLight(C_star=0.6, **options).fit(X, y)
    assert_allclose(weighted.decision_function(X), plain.decision_function(X), atol=1e-6)
    assert_allclose(weighted.objective_, plain.objective_)
    weight[np.flatnonzero(t == 0)[:4]] = 0.0, 1.0, 3.0, 2.0
    with pytest.raises(ValueError, match=r"sample_weight.*unlabeled.*equal.*balance=None"):
        S3VMLight().fit(X, y, sample_weight=weight)
    # Without a count rows may weigh what they like.
    options["balance"] = None
    weighted = S3VMLight(C_star=0.3, **options).fit(X, y, sample_weight=weight)
    times = weight.astype(int)
    copies = S3VMLight(C_star=0.3, **options).fit(np.repeat(X, times, 0), np.repeat(y, times))
    assert_allclose(weighted.decision_function(X), copies.decision_function(X), atol=1e-6)
    assert weighted.assigned_[0, np.flatnonzero(t == 0)[0]] == 0


@pytest.mark.parametrize("share", [0.001, 0.999])
def test_a_share_that_leaves_one_label_only(clouds, share):
    X, t = clouds(n=40)
    fit = model(balance=share, annealing_start=0.1).fit(X, labels_of(t))
    assert_array_equal(fit.assigned_[0, t == 0], np.sign(share - 0.5))
    assert fit.termination_condition_ == "converged"


def test_rows_of_the_kernel_on_demand_give_the_same_model(clouds):
    X, t = clouds(n=120)
    y = labels_of(t)
    full, rows = model(gram="full").fit(X, y), model(gram="rows", memory=0.02).fit(X, y)
    assert (full.gram_, rows.gram_) == ("full", "rows")
    assert_allclose(rows.decision_function(X), full.decision_function(X), atol=1e-6)


def test_limits_and_stops(clouds):
    X, t = clouds(n=80)
    y = labels_of(t)
    with pytest.warns(ConvergenceWarning, match="max_iter=5 "):
        fit = S3VMLight(max_iter=5).fit(X, y)
    assert fit.n_iter_ == len(fit.history_) == 5
    assert fit.termination_condition_ == "max_iter"
    for last in (1, 4):
        fit = S3VMLight(callback=lambda state, last=last: state["n_iter"] == last).fit(X, y)
        assert (fit.n_iter_, fit.termination_condition_) == (last, "stopped")
        assert np.sum(fit.assigned_[0, t == 0] > 0) == round(fit.problem_.ratio * 70)


@both_ways
@pytest.mark.parametrize(("balance", "seed"), [(0.5, 3), (None, 2)])
def test_after_any_number_of_trainings_the_model_agrees_with_itself(
    clouds, switching, balance, seed
):
    X, t = clouds(seed, n=40, n_labeled=4)
    y = labels_of(t)
    options = dict(balance=balance, switching=switching, tol=1e-6)
    whole = model("linear", **options).fit(X, y)
    all_of_them = whole.n_iter_
    assert sum(round.n_switched > 0 for round in whole.history_) > 1
    for limit in range(1, all_of_them + 2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit = model("linear", max_iter=limit, **options).fit(X, y)
        assert fit.n_iter_ == min(limit, all_of_them)
        assert fit.termination_condition_ == ("max_iter" if limit < all_of_them else "converged")
        assert_allclose(evaluate(fit, X, y, fit.problem_).objective, fit.objective_, rtol=1e-12)
        assert abs(fit.dual_coef_.sum()) < 1e-12
        labels, last = fit.assigned_[0], fit.history_[-1]
        if limit > 1:  # the first training knows no labels of unlabeled rows
            costs = np.where(labels > 0, last.C_plus, last.C_minus)
            costs = np.where(t == 0, costs, fit.problem_.C)
            slack = np.maximum(0, 1 - labels * fit.decision_function(X))
            assert_allclose(0.5 * np.sum(fit.coef_**2) + costs @ slack, last.value, rtol=1e-9)


def test_a_limit_inside_the_trainings_is_named(clouds):
    X, t = clouds(n=80)
    with pytest.warns(ConvergenceWarning, match="max_inner_iter=3 .* or max_inner_iter, "):
        S3VMLight(max_inner_iter=3).fit(X, labels_of(t))


def test_large_kernel_values_keep_their_digits(clouds):
    X, t = clouds(n=40)
    fit = S3VMLight(kernel="poly", coef0=1.0).fit(X + 20, labels_of(t))
    found = evaluate(fit, X + 20, labels_of(t), fit.problem_).objective  # in double precision
    assert_allclose(fit.objective_, found, rtol=1e-7)


@pytest.mark.parametrize(
    "parameters",
    [
        dict(switching="some"),
        dict(annealing_start=0.0),
        dict(annealing_start=2.0),
        dict(annealing_factor=1.0),
        dict(annealing_ratio="fair"),
        dict(annealing_tol=0.0),
        dict(max_inner_iter=0),
        dict(gram="half"),
        dict(memory=0),
    ],
    ids=repr,
)
def test_bad_parameters_are_named(clouds, parameters):
    X, t = clouds()
    with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter"):
        S3VMLight(**parameters).fit(X, labels_of(t))


def test_annealing_finds_lower_objectives_than_the_final_cost_at_once(mixture):
    ratios = []
    for seed in range(4):
        X, t = mixture(350, seed)
        truth = t[50:].copy()
        t[50:] = 0
        options = dict(C=10.0, C_star=10.0, gamma=1 / 32, balance=float(np.mean(truth > 0)))
        annealed = S3VMLight(**options).fit(X, labels_of(t))
        at_once = S3VMLight(annealing_start=1.0, **options).fit(X, labels_of(t))
        ratios.append(annealed.history_[-1].value / at_once.history_[-1].value)
    assert max(ratios) < 1
    assert np.mean(ratios) < 0.95
