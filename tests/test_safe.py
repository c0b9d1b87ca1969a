"""The worst case over a pool of labelings: its linear program, its vote, and the estimator."""

import itertools
import pickle
import warnings

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from s3vm_lib import (
    CCCPS3VM,
    FRS3VM,
    QNS3VM,
    S3VC,
    SVM,
    FitWarning,
    MultiSwitchTSVM,
    S3VMLight,
    SafeS3VM,
    SelfTrainingKNN,
)
from s3vm_lib.datasets import hide_labels, make_moons
from s3vm_lib.model_selection import S3VMSearchCV, SemiSupervisedKFold, WithUnlabeled
from s3vm_lib.objective import evaluate
from s3vm_lib.reference.safe import worst_case
from s3vm_lib.safe import _estimator, _pool, gains, solve_safe, votes
from s3vm_lib.safe._pool import (
    FACTORS,
    Labeling,
    MemberFits,
    Sample,
    common_objective,
    make_pool,
    representatives,
    settings,
    starts,
    with_shares,
)
from s3vm_lib.utils.threads import thread_count


def drawn(rng, T=4, u=9, n_classes=2, near=0.4):
    """A baseline and a pool whose members differ from it, and from one another, in some rows."""
    baseline = rng.integers(n_classes, size=u)
    other = (baseline + rng.integers(1, n_classes, size=u)) % n_classes
    pool = np.where(rng.random((T, u)) < near, baseline, other)
    if n_classes > 2:
        third = rng.integers(n_classes, size=(T, u))
        pool = np.where(rng.random((T, u)) < 0.3, third, pool)
    return baseline, pool


def labelings(u, n_classes=2):
    return np.array(list(itertools.product(range(n_classes), repeat=u)))


def best_of_all(pool, baseline, loss_weight, weight, n_classes=2):
    """The largest worst gain of any labeling, by trying all."""
    found = labelings(baseline.size, n_classes)
    return max(gains(y, pool, baseline, loss_weight, weight).min() for y in found)


CASES = list(itertools.product(range(6), (1.0, 3.0), (2, 3)))


# --- The linear program ---------------------------------------------------------------------------


def test_gains_of_a_case_by_hand():
    baseline, pool = np.array([0, 0, 1, 1]), np.array([[1, 0, 1, 0], [1, 1, 1, 1]])
    labels = np.array([1, 1, 1, 1])  # rows 0 and 1 change
    # Truth 0: row 0 won, row 1 lost. Truth 1: both won. Row 3 is wrong before and after.
    assert_allclose(gains(labels, pool, baseline, 3.0), [(1 - 3) / 4, 2 / 4])
    weight = np.array([5.0, 1.0, 1.0, 1.0])
    assert_allclose(gains(labels, pool, baseline, 2.0, weight), [(5 - 2) / 8, 6 / 8])


@pytest.mark.parametrize(
    ("seed", "loss_weight"), list(itertools.product(range(5), (1.0, 2.0, 3.0)))
)
def test_the_optimum_is_that_of_the_program_as_it_is_stated(seed, loss_weight):
    baseline, pool = drawn(np.random.default_rng(seed), T=5, u=40)
    found = solve_safe(pool, baseline, loss_weight)
    y, tau = worst_case(2 * pool - 1, 2 * baseline - 1, loss_weight)
    assert_allclose(found.bound * 40, tau, atol=1e-8)
    assert np.all(np.abs(y) <= 1 + 1e-9)
    assert tau > 0.5  # not the baseline


@pytest.mark.parametrize(("seed", "loss_weight", "n_classes"), CASES)
def test_primal_dual_and_another_solver_agree(seed, loss_weight, n_classes):
    rng = np.random.default_rng([seed, n_classes])
    baseline, pool = drawn(rng, T=5, u=25, n_classes=n_classes)
    weight = rng.uniform(0.2, 3, 25)
    found = solve_safe(pool, baseline, loss_weight, weight)
    p = cp.Variable((25, n_classes), nonneg=True)
    rows = np.arange(25)
    cases = []
    for member in pool:
        won = weight * (member != baseline)
        lost = weight * (member == baseline)
        case = won @ cp.sum(cp.multiply(p, np.eye(n_classes)[member]), axis=1)
        kept = cp.sum(cp.multiply(p, np.eye(n_classes)[baseline]), axis=1)
        cases.append(case - loss_weight * (lost @ (1 - kept)))
    program = cp.Problem(cp.Maximize(cp.min(cp.hstack(cases))), [cp.sum(p, axis=1) == 1])
    program.solve(solver=cp.CLARABEL)
    assert_allclose(found.bound, program.value / weight.sum(), atol=1e-6)
    # The primal that the multipliers of the dual are.
    q = found.fractions
    assert_allclose(q.sum(axis=1), 1, atol=1e-9)
    assert q.min() > -1e-9
    primal = [
        np.sum(weight * (m != baseline) * q[rows, m])
        - loss_weight * np.sum(weight * (m == baseline) * (1 - q[rows, baseline]))
        for m in pool
    ]
    assert_allclose(min(primal) / weight.sum(), found.bound, atol=1e-9)
    # The dual at α, by its formula.
    assert found.shares.min() >= 0
    assert_allclose(found.shares.sum(), 1)
    V = np.stack([found.shares @ (pool == k) for k in range(n_classes)], axis=1)
    excess = V - loss_weight * V[rows, baseline][:, None]
    excess[rows, baseline] = 0
    assert_allclose(weight @ excess.max(axis=1) / weight.sum(), found.bound, atol=1e-9)


@pytest.mark.parametrize(("seed", "loss_weight", "n_classes"), CASES)
def test_no_labeling_is_better_than_the_bound_and_the_vote_is_near_it(seed, loss_weight, n_classes):
    rng = np.random.default_rng([7, seed, n_classes])
    u, T = (11, 4) if n_classes == 2 else (7, 3)
    baseline, pool = drawn(rng, T, u, n_classes, near=0.25)
    weight = rng.uniform(0.5, 1.5, u)
    found = solve_safe(pool, baseline, loss_weight, weight)
    best = best_of_all(pool, baseline, loss_weight, weight, n_classes)
    assert 0 <= found.objective <= best + 1e-12
    assert best <= found.bound + 1e-9
    # At a vertex at most T − 1 patterns are divided, and rounding one down costs its weight.
    of_row = np.unique(np.vstack([baseline, pool]), axis=1, return_inverse=True)[1]
    divided = np.any((found.fractions > 1e-9) & (found.fractions < 1 - 1e-9), axis=1)
    divided_patterns = np.unique(of_row.ravel()[divided])
    assert divided_patterns.size <= T - 1
    lost = weight[np.isin(of_row.ravel(), divided_patterns)].sum() / weight.sum()
    assert best >= found.bound - lost - 1e-9
    assert_allclose(
        found.objective, max(0, gains(found.labels, pool, baseline, loss_weight, weight).min())
    )


def test_a_pool_of_one_is_followed_and_the_baseline_in_the_pool_keeps_it():
    baseline, pool = np.array([0, 0, 1, 1]), np.array([[1, 0, 1, 0]])
    found = solve_safe(pool, baseline)
    assert_array_equal(found.labels, pool[0])
    assert found.objective == found.bound == 0.5
    both = solve_safe(np.vstack([pool, baseline]), baseline)
    assert both.status == "baseline"
    assert_array_equal(both.labels, baseline)
    assert both.objective == 0
    assert_allclose(both.bound, 0, atol=1e-12)


def test_rows_of_no_weight_and_empty_pools_keep_the_baseline():
    baseline = np.array([0, 1])
    assert solve_safe(np.zeros((0, 2), int), baseline).status == "baseline"
    assert solve_safe(np.array([[1, 1]]), baseline, 3.0, np.zeros(2)).status == "baseline"
    # The row that counts decides for the one that does not, by the vote.
    assert solve_safe(np.array([[1, 0]]), baseline, 3.0, np.array([1.0, 0.0])).objective == 1


# --- Guarantee ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "loss_weight", "n_classes"), CASES)
def test_where_a_member_is_the_truth_the_vote_is_as_good_as_the_baseline(
    seed, loss_weight, n_classes
):
    rng = np.random.default_rng([3, seed])
    improved = 0
    for _ in range(20):
        baseline, pool = drawn(rng, 4, 30, n_classes, near=rng.uniform(0.1, 0.6))
        found = solve_safe(pool, baseline, loss_weight)
        for truth in pool:
            won = np.sum(found.labels == truth) - np.sum(baseline == truth)
            assert won >= 30 * found.objective - 1e-9
            improved += won > 0
    assert improved >= 20


@pytest.mark.parametrize("loss_weight", [1.0, 3.0])
def test_a_truth_between_the_members_is_safe_and_others_need_not_be(loss_weight):
    """Every truth of six rows: what the theorem covers never loses, and some others do."""
    rng = np.random.default_rng(5)
    covered = lost = 0
    for _ in range(30):
        baseline, pool = drawn(rng, 3, 6, near=0.25)
        found = solve_safe(pool, baseline, loss_weight)
        before = gains(found.labels, pool, baseline, loss_weight)
        for truth in labelings(6):
            won = np.sum(found.labels == truth) - np.sum(baseline == truth)
            gain = gains(found.labels, truth[None], baseline, loss_weight)[0]
            if gain >= before.min() - 1e-12:  # no lower than under a mixture of the members
                covered += 1
                assert won >= 0
            lost += won < 0
    assert covered > 300
    assert lost > 100


def test_the_counterexample_of_the_chapter():
    """Both members move rows 0 and 1, which the truth does not."""
    baseline, pool = np.array([0, 0, 0, 1]), np.array([[1, 1, 0, 1], [1, 1, 1, 1]])
    truth = np.array([0, 0, 0, 1])
    found = solve_safe(pool, baseline)
    assert_array_equal(found.labels[:2], [1, 1])
    assert found.objective > 0
    assert np.sum(found.labels == truth) < np.sum(baseline == truth)


# --- Invariances ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_orders_names_and_copies_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    baseline, pool = drawn(rng, 5, 30, near=0.3)
    weight = rng.integers(1, 4, 30).astype(float)
    found = solve_safe(pool, baseline, 2.5, weight)
    assert found.objective > 0
    rows, members = rng.permutation(30), rng.permutation(5)
    moved = solve_safe(pool[members][:, rows], baseline[rows], 2.5, weight[rows])
    swapped = solve_safe(1 - pool, 1 - baseline, 2.5, weight)
    k = weight.astype(int)
    copied = solve_safe(np.repeat(pool, k, axis=1), np.repeat(baseline, k), 2.5)
    for other in (moved, swapped, copied):
        assert_allclose(other.bound, found.bound, atol=1e-10)
    assert_allclose(copied.objective, found.objective, atol=1e-10)
    assert_array_equal(copied.labels, np.repeat(found.labels, k))
    assert_array_equal(swapped.labels, 1 - found.labels)


def test_the_vote_counts_agreement_with_the_baseline_more_and_breaks_ties():
    pool, shares = np.array([[1, 1, 0], [0, 0, 0]]), np.array([0.75, 0.25])
    baseline = np.array([0, 1, 1])
    assert_allclose(
        votes(pool, baseline, shares, 3.0, 0.0, 2), [[0.75, 0.75], [0.25, 2.25], [1, 0]]
    )
    for tie, winner in ((1e-7, 0), (-1e-7, 1)):
        assert votes(pool, baseline, shares, 3.0, tie, 2)[0].argmax() == winner


# --- The pool -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clusters():
    rng = np.random.default_rng(4)
    y = np.arange(160) % 2
    X = rng.standard_normal((160, 6))
    X[:, 0] += 3 * (y - 0.5)
    codes = np.where(np.arange(160) < 14, y, -1)
    return X, codes, y


REUSED = [
    QNS3VM(gamma=0.2),
    CCCPS3VM(gamma=0.2),
    S3VMLight(gamma=0.2),
    MultiSwitchTSVM(),
    QNS3VM(gamma=0.2, class_weight="balanced"),
]


@pytest.mark.parametrize("estimator", REUSED, ids=lambda e: type(e).__name__)
def test_a_refit_is_a_clone_that_is_fitted(estimator, clusters):
    X, codes, _ = clusters
    refits = MemberFits(estimator, Sample(X, codes, None))
    weight = np.where(codes >= 0, np.linspace(0.3, 2, codes.size), 1.0)
    mask = codes < 0
    for setting, s in (({}, None), ({"C_star": 0.3}, None), ({"balance": 0.4}, None), ({}, weight)):
        found = refits.fit(setting, s)
        other = clone(estimator).set_params(**setting).fit(X, codes, s, mask)
        assert_allclose(
            found.decision_function(X), other.decision_function(X), rtol=1e-9, atol=1e-9
        )
        assert_array_equal(found.transduction_, other.transduction_)
        assert_allclose(found.objective_, other.objective_)
        assert found.get_params() == other.get_params()
        assert set(vars(found)) == set(vars(other))


def test_shares_are_estimated_by_the_threads_of_the_estimator(clusters, monkeypatch):
    X, codes, _ = clusters
    seen, before = [], QNS3VM._ratios

    def note(self, data):
        seen.append(thread_count())
        return before(self, data)

    monkeypatch.setattr(QNS3VM, "_ratios", note)
    found = with_shares(QNS3VM(n_jobs=2), Sample(X, codes, None))
    assert seen == [2] and thread_count() == 1
    assert found.balance == with_shares(QNS3VM(), Sample(X, codes, None)).balance


@pytest.mark.parametrize("estimator", [QNS3VM(), CCCPS3VM(tol=1e-8)], ids=["QNS3VM", "CCCPS3VM"])
def test_objectives_are_compared_under_one_problem(estimator, clusters):
    X, codes, _ = clusters
    data = Sample(X, codes, None)
    base = clone(estimator).fit(X, codes)
    weight = np.where(codes >= 0, np.linspace(0.3, 2, codes.size), 1.0)
    refits = MemberFits(estimator, data)
    for setting, s in (({"C_star": 0.5}, None), ({"balance": 0.3}, None), ({}, weight)):
        model = refits.fit(setting, s)
        found = common_objective(model, base, data, s)
        assert_allclose(found, evaluate(model, X, codes, base.problem_).objective, rtol=1e-6)
        assert abs(found - model.objective_) > 1e-4 or "balance" in setting
    assert np.isnan(common_objective(SelfTrainingKNN().fit(X, codes), base, data))


def test_settings_are_multiples_of_equal_weights():
    codes = np.array([1] * 3 + [0] * 7 + [-1] * 40)
    data = Sample(np.zeros((50, 1)), codes, None)

    def values(estimator):
        first, *others = settings(estimator, data)
        assert first == {} and all(list(one) == ["C_star"] for one in others)
        return [one["C_star"] for one in others]

    assert_allclose(values(QNS3VM()), np.array(FACTORS) * 10 / 40)
    assert_allclose(values(QNS3VM(C=2, C_star=3)), np.array(FACTORS) * 3)
    assert min(FACTORS) < 1 < max(FACTORS)
    # Solvers take no smaller nor larger ones than these.
    assert_allclose(values(QNS3VM(C_star=1e-40)), [1e-40, 3e-40], rtol=1e-12)
    assert_allclose(values(QNS3VM(C_star=1e40)), [3e39, 1e40], rtol=1e-12)
    assert values(QNS3VM(C_star=0.0)) == [0.0, 0.0]
    assert values(SelfTrainingKNN()) == []


@pytest.mark.parametrize(
    "weights", [dict(C_star=1e-40), dict(C_star=1e40), dict(C=1e-40)], ids=repr
)
def test_weights_at_the_end_of_their_range_are_no_error(clusters, weights):
    X, y, _ = clusters
    SafeS3VM(estimator=QNS3VM(**weights, balance="labels"), n_starts=0).fit(X, y)


def test_settings_for_weights_are_those_for_copies():
    codes = np.array([1] * 3 + [0] * 7 + [-1] * 40)
    weight = 1 + np.arange(50) % 3
    weighted = Sample(np.zeros((50, 1)), codes, weight.astype(float))
    copied = Sample(np.zeros((weight.sum(), 1)), np.repeat(codes, weight), None)
    one, other = (settings(QNS3VM(), data)[1:] for data in (weighted, copied))
    for first, second in zip(one, other, strict=True):
        assert_allclose(first["C_star"], second["C_star"])


def test_starts_draw_what_the_estimator_has(clusters):
    X, codes, _ = clusters
    data = Sample(X, codes, None)
    drawn_weights = [w for _, w in starts(QNS3VM(), data, 400, np.random.RandomState(0))]
    labeled = codes >= 0
    for w in drawn_weights[:5]:
        assert_array_equal(w[~labeled], 1)
        assert_allclose(w[labeled].sum(), 14)
    # Dirichlet weights: mean 1, variance (n − 1)/(n + 1).
    sample = np.array(drawn_weights)[:, labeled]
    assert_allclose(sample.mean(axis=0), 1, atol=0.2)
    assert_allclose(sample.var(), 13 / 15, atol=0.1)
    setting, _ = next(iter(starts(CCCPS3VM(), data, 1, np.random.RandomState(0))))
    assert setting["init"].shape == (160,)
    assert set(setting["init"]) == {-1.0, 1.0}
    assert next(iter(starts(SelfTrainingKNN(), data, 1, np.random.RandomState(0)))) == ({}, None)


def test_equal_labelings_are_one_member_and_clusters_have_their_best():
    def member(labels, J):
        return Labeling({}, None, np.array(labels), J)

    members = [
        member([0, 0, 0, 0, 0, 0], 3.0),
        member([0, 0, 0, 0, 0, 1], 2.0),
        member([1, 1, 1, 1, 1, 1], np.nan),
        member([1, 1, 1, 1, 1, 0], 9.0),
        member([0, 0, 0, 1, 1, 1], 5.0),
    ]
    found = representatives(members, 3, 2, np.random.RandomState(0))
    assert [m.objective for m in found] == [2.0, 9.0, 5.0]
    assert representatives(members, 5, 2, np.random.RandomState(0)) is members


def test_the_pool_merges_equal_labelings(clusters, monkeypatch):
    X, codes, _ = clusters
    data, arguments = Sample(X, codes, None), (0, np.random.RandomState(0))
    monkeypatch.setattr(_pool, "FACTORS", (0.3, 1.0001))
    members, _, n_stopped = make_pool(QNS3VM(), data, *arguments)
    assert sum(m.copies for m in members) == 3
    assert len({m.labels.tobytes() for m in members}) == len(members) < 3
    assert n_stopped == 0
    base, equal = QNS3VM().fit(X, codes), data.sample_weight
    C_star = np.sum(codes >= 0) / np.sum(codes < 0)
    for factor in (0.999, 1.001):  # the better one is found first, or last
        monkeypatch.setattr(_pool, "FACTORS", (factor,))
        near = QNS3VM(C_star=factor * C_star).fit(X, codes)
        both = make_pool(QNS3VM(), data, *arguments)[0]
        assert len(both) == 1 and both[0].copies == 2
        own, other = (common_objective(model, base, data, equal) for model in (base, near))
        assert_allclose(both[0].objective, min(own, other), rtol=1e-12)


# --- The estimator --------------------------------------------------------------------------------

EXPECTED = {
    "check_classifiers_classes": "the check fits the labels {-1, 1}, of which -1 means unlabeled; "
    "scikit-learn exempts its own semi-supervised classifiers by name"
}


@pytest.mark.interface
@parametrize_with_checks(
    [
        SafeS3VM(baseline=SVM(tol=1e-10), random_state=0),
        SafeS3VM(estimator=CCCPS3VM(tol=1e-10), baseline=SVM(tol=1e-10), n_folds=None),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


VOTE = dict(contradiction=None, trust=None, margin=-9.0)  # whatever the labels say


def test_what_a_fit_says_is_so(clusters):
    X, codes, y = clusters
    model = SafeS3VM(**VOTE, random_state=0).fit(X, codes)
    unlabeled = codes < 0
    baseline = SVM().fit(X, codes)
    b = baseline.transduction_[unlabeled]
    found = model.transduction_[unlabeled]
    assert not model.kept_supervised_
    assert_array_equal(model.baseline_.decision_function(X), baseline.decision_function(X))
    assert_array_equal(model.transduction_[~unlabeled], codes[~unlabeled])
    assert_array_equal(model.predict(X[unlabeled]), found)
    assert_array_equal(model.decision_function(X) > 0, model.predict(X) == 1)
    pool = np.array([m.labels for m in model.pool_])
    assert_allclose(model.gains_, gains(found, pool, b))
    assert_allclose(model.worst_gain_, model.gains_.min())
    assert 0 < model.worst_gain_ <= model.bound_ + 1e-12
    assert_allclose(model.changed_, np.mean(found != b))
    assert np.mean(found == y[unlabeled]) > np.mean(b == y[unlabeled])
    assert_allclose(model.weights_.sum(), 1)
    assert f"{model.worst_gain_:.1%}" in model.summary()
    assert "The vote was taken" in model.summary()


def test_new_rows_are_voted_on(clusters):
    X, codes, _ = clusters
    model = SafeS3VM(**VOTE, random_state=0).fit(X, codes)
    new = np.random.default_rng(1).standard_normal((200, 6))
    pool = np.array([m.model.predict(new) for m in model.pool_])
    b = model.baseline_.predict(new)
    for_it = np.where(b == 1, 3.0, 1.0) * (model.weights_ @ (pool == 1))
    against = np.where(b == 0, 3.0, 1.0) * (model.weights_ @ (pool == 0))
    sure = np.abs(for_it - against) > 1e-6
    assert_allclose(model.decision_function(new), for_it - against, atol=1e-6)
    assert_array_equal(model.predict(new)[sure], (for_it > against)[sure])
    assert np.any(model.predict(new) != b)


def test_a_clear_lead_is_trusted(clusters):
    X, codes, truth = clusters
    rng = np.random.default_rng(0)
    codes = truth.copy()
    codes[rng.permutation(codes.size)[30:]] = -1
    direction = np.zeros(X.shape[1])
    direction[-1] = 1.0
    X = X + 8 * np.outer(truth - 0.5, direction)  # the gap is nowhere else
    noise = 3 * rng.standard_normal((X.shape[0], 60))  # in which thirty labels do not see it
    rows = np.hstack([X, noise])
    model = SafeS3VM(estimator=QNS3VM(kernel="linear"), random_state=0).fit(rows, codes)
    assert model.taken_ == "estimator" and not model.kept_supervised_
    assert model.cv_gain_ >= 1.5 * model.cv_error_ > 0
    alone = QNS3VM(kernel="linear").fit(rows, codes)
    assert_array_equal(model.transduction_, alone.transduction_)
    assert_array_equal(model.predict(rows), alone.predict(rows))
    assert_allclose(model.decision_function(rows), alone.decision_function(rows), atol=1e-6)
    assert "leaves no doubt" in model.summary()
    never = clone(model).set_params(trust=None, contradiction=None).fit(rows, codes)
    assert never.taken_ != "estimator" and never.cv_gain_ == model.cv_gain_


@pytest.fixture
def one_repeat(monkeypatch):
    """Folds that are drawn once."""
    monkeypatch.setattr(_estimator, "REPEATS", 1)


def test_the_guard_counts_held_out_labels(clusters, one_repeat):
    X, codes, _ = clusters
    seen = SafeS3VM(n_folds=3, random_state=3).fit(X, codes)
    seed = np.random.RandomState(3).randint(2**31 - 1)
    right = np.zeros(2)
    shares = dict(enumerate(QNS3VM().fit(X, codes).class_ratio_))  # estimated once
    for _, test in SemiSupervisedKFold(3, shuffle=True, random_state=seed).split(None, codes):
        part = codes.copy()
        part[test] = -1
        semi, plain = QNS3VM(balance=shares).fit(X, part), SVM().fit(X, part)
        right += [np.sum(model.predict(X[test]) == codes[test]) for model in (plain, semi)]
    gain = right[1] - right[0]
    assert seen.cv_gain_ == gain and seen.cv_right_.tolist() == right.tolist()
    alone = QNS3VM(balance=shares, reconsider=True).fit(X, codes)
    assert_array_equal(seen.estimator_.predict(X), alone.predict(X))
    assert SafeS3VM().fit(X, np.abs(codes)).estimator_ is None
    noise = np.random.default_rng(0).standard_normal(X.shape)  # what was held out is not known
    rights = [
        SafeS3VM(estimator=SVM(gamma=9), baseline=base, n_folds=3, random_state=0)
        .fit(noise, codes)
        .cv_gain_
        for base in (SVM(gamma=9), SVM(gamma=1e-9))
    ]
    assert rights[0] == 0 and rights[1] < 7
    seen.set_params(trust=None, contradiction=None)
    edge = gain / seen.cv_error_
    models = (clone(seen).set_params(margin=edge + e) for e in (1e-6, -1e-6))
    kept, taken = (model.fit(X, codes) for model in models)
    assert kept.kept_supervised_ and not taken.kept_supervised_
    assert kept.worst_gain_ == kept.changed_ == 0 and kept.bound_ == taken.bound_
    assert gain > 0 and "the lead on held-out labels leaves doubt" in kept.summary()
    assert_array_equal(kept.predict(X), kept.baseline_.predict(X))
    assert_array_equal(kept.decision_function(X), kept.baseline_.decision_function(X))


def test_labels_that_cannot_tell_the_machines_apart_decide_nothing():
    # Both machines answer for every label alike; they differ on a cloud that has none.
    rng = np.random.default_rng(0)
    ends = [rng.normal([x, 0], 0.3, (10, 2)) for x in (-3, 3)]
    X = np.r_[*ends, rng.normal([0.4, 0], [0.4, 1.5], (40, 2))]
    codes = np.repeat([0, 1, -1], [10, 10, 40])
    model = SafeS3VM(estimator=QNS3VM(kernel="linear"), contradiction=None, random_state=0)
    model.fit(X, codes)
    assert model.cv_gain_ == 0 and model.cv_error_ == 1 and model.kept_supervised_
    assert np.any(model.estimator_.transduction_ != model.baseline_.predict(X))


def test_an_estimator_whose_gap_follows_the_labels_is_taken(clusters):
    X, codes, _ = clusters
    model = SafeS3VM(random_state=0).fit(X, codes)
    alone = QNS3VM(reconsider=True).fit(X, codes)
    assert model.taken_ == "estimator" and model.contradicted_ == alone.contradicted_ <= 0.08
    assert_array_equal(model.transduction_, alone.transduction_)
    assert f"contradicts {alone.contradicted_:.0%} of the labels" in model.summary()
    strict = clone(model).set_params(trust=None, margin=1e3)  # by the first guard alone
    assert strict.fit(X, codes).taken_ == "estimator"
    assert "The gap follows the labels" in strict.summary()
    assert strict.set_params(contradiction=None).fit(X, codes).kept_supervised_
    few = codes.copy()
    few[np.flatnonzero(codes >= 0)[7:]] = -1
    assert np.unique(few).size == 3 and np.isnan(strict.fit(X, few).contradicted_)
    # Labels that have nothing to do with the gap contradict it.
    wrong = codes.copy()
    labeled = codes >= 0
    wrong[labeled] = np.random.default_rng(4).permutation(codes[labeled])
    across = clone(model).fit(X, wrong)
    assert across.contradicted_ > 0.08 and across.kept_supervised_
    assert across.cv_gain_ < 0
    assert "The supervised machine was kept: the labels advise it." in across.summary()
    assert np.isnan(SafeS3VM(estimator=CCCPS3VM()).fit(X, codes).contradicted_)


def test_labels_that_were_held_out_overrule_the_gap(clusters):
    X, codes, _ = clusters

    class Proud(QNS3VM):
        """Wrong wherever it is asked, and contradicted nowhere."""

        def predict(self, X):
            return 1 - super().predict(X)

    model = SafeS3VM(estimator=Proud(), random_state=0).fit(X, codes)
    assert model.contradicted_ <= 0.08 and model.cv_gain_ < -model.cv_error_
    assert model.kept_supervised_


def test_what_kept_the_supervised_machine_is_said_for_what_it_is(clusters):
    """The labels, where they forbade, whatever the worst case; else the worst case."""
    X, codes, _ = clusters
    allowed = SafeS3VM(n_folds=None, trust=None, contradiction=None, random_state=0)
    # With the baseline in the pool nothing can be gained.
    by_case = clone(allowed).set_params(estimator=SVM()).fit(X, codes)
    by_labels = clone(by_case).set_params(n_folds=3, margin=99).fit(X, codes)
    forbidden = clone(allowed).set_params(n_folds=3, margin=99).fit(X, codes)
    for model in (by_case, by_labels, forbidden):
        assert model.kept_supervised_
        said = model.summary().splitlines()[-1]
        assert ("no labeling gains in every case" in said) == (model is by_case)
        assert ("leaves doubt" in said) == (model is not by_case)
        assert model is by_case or model.cv_gain_ >= 0
    assert by_labels.bound_ < 1e-9 < forbidden.bound_  # with and without a vote that gains


class Turned(QNS3VM):
    """A gap that follows the labels, held-out labels that are neutral, and wrong answers."""

    @property
    def contradicted_(self):
        return 0.0

    @contradicted_.setter
    def contradicted_(self, value):
        pass

    def predict(self, X):
        found = super().predict(X)
        return 1 - found if len(X) > self.few else found


@pytest.mark.parametrize(("few", "taken"), [(99, "estimator"), (5, "supervised")])
def test_what_contradicts_its_own_labels_is_not_taken(clusters, few, taken):
    """Held-out labels come a few at a time, so that only the look at all labels can tell."""
    X, codes, _ = clusters
    Turned.few = few
    model = SafeS3VM(estimator=Turned(), trust=None, margin=1e3, random_state=0).fit(X, codes)
    n, wrong = np.sum(codes >= 0), model.wrong_labels_
    assert model.taken_ == taken and 5 < n < 99
    own = int(np.sum(model.baseline_.predict(X)[codes >= 0] != codes[codes >= 0]))
    assert wrong["supervised"] == own and set(wrong) == {"supervised", "estimator"}
    assert (wrong["estimator"] > own + max(1, 0.02 * n)) == (taken == "supervised")
    said = f"the estimator contradicts {wrong['estimator']} of the {n} labels, it contradicts {own}"
    assert (said in model.summary()) == (taken == "supervised")


def test_a_gap_that_held_out_labels_speak_against_is_not_taken(clusters, one_repeat):
    """Also where they do so by less than a standard error."""
    X, codes, _ = clusters

    class Doubtful(QNS3VM):
        """Wrong on two labeled rows."""

        def predict(self, rows):
            found, here = super().predict(rows), np.isin(rows[:, 0], X[:2, 0])
            return np.where(here, 1 - found, found)

    model = SafeS3VM(estimator=Doubtful(), margin=1e3, trust=None, random_state=0)
    model.fit(X, codes)
    assert model.contradicted_ <= 0.08 and -model.cv_error_ < model.cv_gain_ == -1
    assert model.kept_supervised_ and "the labels advise it" in model.summary()
    assert set(model.wrong_labels_) == {"supervised"}  # it was not a matter of its own labels


def test_an_answer_of_one_class_is_named():
    r = np.random.default_rng(0)
    truth = (np.arange(400) < 20).astype(int)
    X = r.normal(size=(400, 2))
    X[truth == 1] += [4, 0]
    y = np.full(400, -1, dtype=object)
    for k, count in ((0, 20), (1, 2)):
        y[np.flatnonzero(truth == k)[:count]] = ("ham", "spam")[k]
    model = SafeS3VM(estimator=QNS3VM(kernel="linear"), random_state=0, n_folds=None)
    model.set_params(baseline=SVM(C=1e-9, kernel="linear"))
    with pytest.warns(FitWarning, match=r"SafeS3VM never predicts class spam .* were asked for"):
        model.fit(X, y)
    assert set(model.findings_) == {"share"} and "never predicts class spam" in model.summary()


def test_a_pipeline_is_refused_with_the_way_out(clusters):
    X, codes, _ = clusters
    inside = make_pipeline(StandardScaler(), QNS3VM())
    model = SafeS3VM(estimator=inside)
    with pytest.raises(ValueError, match=r"estimator must be .* got a Pipeline") as caught:
        model.fit(X, codes)
    assert "make_pipeline(StandardScaler(), SafeS3VM(estimator=QNS3VM()))" in str(caught.value)
    outside = make_pipeline(StandardScaler(), SafeS3VM(estimator=QNS3VM(), random_state=0))
    assert outside.fit(X, codes)[-1].baseline_.n_features_in_ == X.shape[1]


INSIDE = make_pipeline(StandardScaler(), QNS3VM())
LABELS_FEW = {
    "GridSearchCV": (lambda X: GridSearchCV(QNS3VM(), {"C": [1, 10]}, cv=2), "a GridSearchCV: .*"),
    "SVC": (lambda X: SVC(), "a SVC: give one of s3vm_lib"),
    "WithUnlabeled": (lambda X: WithUnlabeled(QNS3VM(), X[20:]), "a WithUnlabeled: .* -1 in y"),
    "a search over a pipeline": (
        lambda X: S3VMSearchCV(INSIDE, {"qns3vm__C": [1, 10]}, cv=2),
        r"S3VMSearchCV around a Pipeline: .*=S3VMSearchCV\(QNS3VM\(\), ...\)\)\)",
    ),
    "a search over several": (
        lambda X: S3VMSearchCV({"a": QNS3VM(), "b": SVC()}, {"C": [1, 10]}, cv=2),
        "S3VMSearchCV around a SVC: ",
    ),
}


@pytest.mark.parametrize("kind", LABELS_FEW)
def test_what_does_not_label_all_rows_is_refused_before_any_fit(clusters, monkeypatch, kind):
    X, codes, _ = clusters
    make, given = LABELS_FEW[kind]
    for cls in (SVM, QNS3VM, SVC):
        monkeypatch.setattr(cls, "fit", lambda *arguments, **options: pytest.fail("a fit"))
    for name, model in (
        ("estimator", SafeS3VM(estimator=make(X), baseline=SVM())),
        ("solver", S3VC(solver=make(X))),
    ):
        with pytest.raises(ValueError, match=f"{name} must be .* every row of X, got {given}"):
            model.fit(X, codes)


def test_what_turns_out_to_label_no_row_is_named(clusters):
    X, codes, _ = clusters

    class Supervised(SVC):
        def fit(self, X, y):
            return super().fit(X[y >= 0], y[y >= 0])

    message = r"must be a classifier with a transduction_ .*, got Supervised\(C=2\)"
    with pytest.raises(ValueError, match=message):
        SafeS3VM(estimator=Supervised(C=2), baseline=SVM()).fit(X, codes)
    quiet = FRS3VM(C_star=0, transduce=False, random_state=0)
    with pytest.raises(ValueError, match=r"must be a classifier with a transduction_ .*got FRS3VM"):
        S3VC(solver=quiet, guard=False).fit(X, codes)
    SafeS3VM(baseline=quiet, random_state=0).fit(X, codes)  # asked for predictions alone


def test_the_semi_supervised_of_scikit_learn_label_all_rows(clusters):
    X, codes, _ = clusters
    model = SafeS3VM(estimator=LabelSpreading(), baseline=SVC(), n_folds=None).fit(X, codes)
    assert model.pool_[0].model.transduction_.shape == codes.shape


def test_one_label_of_a_class_is_no_evidence(clusters):
    X, codes, _ = clusters
    few = np.full_like(codes, -1)
    few[:2] = codes[:2]
    assert not SafeS3VM(n_folds=None, random_state=0).fit(X, few).kept_supervised_
    model = SafeS3VM(random_state=0).fit(X, few)
    assert model.kept_supervised_ and np.isnan(model.cv_gain_)
    assert "no evidence" in model.summary()
    assert "kept: no label speaks for another." in model.summary()


def test_labels_of_no_weight_are_not_held_out(clusters):
    X, codes, _ = clusters
    weight = np.ones(codes.size)
    weight[:4] = 0
    model = SafeS3VM(random_state=0).fit(X, codes, sample_weight=weight)
    hidden = SafeS3VM(random_state=0).fit(X, np.where(weight > 0, codes, -1), sample_weight=weight)
    for found in (model, hidden):
        assert " of 10 against the supervised machine" in found.summary()
    assert model.summary().splitlines()[1] == hidden.summary().splitlines()[1]
    assert model.summary().startswith("10 labeled")


def test_three_classes(semi_supervised):
    X, y = semi_supervised(n=150, n_labeled=18, n_classes=3, seed=2)
    model = SafeS3VM(estimator=QNS3VM(C=0.1), n_folds=None, random_state=0).fit(X, y)
    assert model.decision_function(X).shape == (150, 3)
    assert_array_equal(model.predict(X[y < 0]), model.transduction_[y < 0])
    pool = np.array([m.labels for m in model.pool_])
    b = model.baseline_.predict(X[y < 0])
    expected = max(solve_safe(pool, b).objective, 0)
    assert model.worst_gain_ == expected
    kept = SafeS3VM(margin=1e3, random_state=0).fit(X, y)
    assert kept.kept_supervised_
    assert kept.decision_function(X).shape == (150, 3)


def test_any_baseline(clusters):
    X, codes, _ = clusters
    model = SafeS3VM(baseline=LogisticRegression(), n_folds=None, random_state=0).fit(X, codes)
    labeled = codes >= 0
    expected = LogisticRegression().fit(X[labeled], codes[labeled])
    assert_allclose(model.baseline_.coef_, expected.coef_)
    assert SafeS3VM(estimator=MultiSwitchTSVM(C=2.0)).fit(X, codes).baseline_.kernel == "linear"


def test_an_estimator_that_chooses_for_itself(clusters):
    X, codes, _ = clusters
    chooses = S3VC(C=1.0, kernel="linear", guard=False)
    model = SafeS3VM(estimator=chooses, random_state=0).fit(X, codes)
    assert_array_equal(model.baseline_.predict(X), SVM(kernel="linear").fit(X, codes).predict(X))
    assert_array_equal(model.estimator_.predict(X), clone(chooses).fit(X, codes).predict(X))
    assert {m.setting.get("C_star", 0) for m in model.pool_} - {0}
    automatic = SafeS3VM(estimator=S3VC(random_state=0), n_folds=None)
    for kernel, named in (("auto", "kernel='auto'"), ("linear", "C='auto'")):
        automatic.estimator.kernel = kernel
        with pytest.raises(
            ValueError, match=f"baseline must be given, got None: S3VC has {named}, which"
        ):
            automatic.fit(X, codes)
    automatic.estimator.kernel = "auto"
    given = automatic.set_params(baseline=SVM()).fit(X, codes)
    assert [m.setting for m in given.pool_] == [{}]  # C* is made of a C that it chooses
    assert given.estimator_.kernel_ == clone(automatic.estimator).fit(X, codes).kernel_


def test_the_baseline_of_a_search_on_a_gram_matrix_reads_the_matrix(clusters):
    X, codes, _ = clusters
    K = X @ X.T
    search = S3VMSearchCV(QNS3VM(kernel="precomputed"), {"C": [1.0]}, cv=2)
    model = SafeS3VM(estimator=search, n_folds=None)
    assert get_tags(model).input_tags.pairwise
    expected = SVM(kernel="precomputed").fit(K, codes).predict(K)
    assert_array_equal(model.fit(K, codes).baseline_.predict(K), expected)


def test_labels_of_any_kind_and_rows_of_any_kind(clusters):
    X, codes, _ = clusters
    model = SafeS3VM(random_state=0)
    expected = clone(model).fit(X, codes)
    words = np.array(["no", "yes", None], dtype=object)[codes]
    named = clone(model).fit(X, words)
    assert named.classes_.tolist() == ["no", "yes"]
    assert_array_equal(named.predict(X), np.array(["no", "yes"])[expected.predict(X)])
    signs = np.where(codes == 1, 1, -1)
    masked = clone(model).fit(X, signs, unlabeled_mask=codes < 0)
    assert_array_equal(masked.transduction_, 2 * expected.transduction_ - 1)
    frame = clone(model).fit(pd.DataFrame(X), pd.Series(codes))
    assert_array_equal(frame.transduction_, expected.transduction_)
    sparse = clone(model).fit(sp.csr_matrix(X), codes)
    assert_array_equal(sparse.transduction_, expected.transduction_)
    gamma = 0.2
    rows = SafeS3VM(estimator=QNS3VM(gamma=gamma), random_state=0).fit(X, codes)
    gram = SafeS3VM(estimator=QNS3VM(kernel="precomputed"), random_state=0)
    gram.fit(rbf_kernel(X, gamma=gamma), codes)
    assert_array_equal(gram.transduction_, rows.transduction_)
    assert_array_equal(gram.predict(rbf_kernel(X[:9], X, gamma=gamma)), rows.predict(X[:9]))
    pipeline = make_pipeline(StandardScaler(), SafeS3VM(random_state=0)).fit(X, codes)
    assert pipeline.predict(X).shape == (160,)


def test_weights_are_copies_for_what_has_no_folds(clusters):
    X, codes, _ = clusters
    weight = 1 + np.arange(codes.size) % 2
    model = SafeS3VM(estimator=QNS3VM(gamma=0.2, tol=1e-9, ftol=0.0), n_folds=None, random_state=0)
    weighed = clone(model).fit(X, codes, sample_weight=weight)
    copied = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(codes, weight))
    assert not weighed.kept_supervised_
    assert_array_equal(np.repeat(weighed.transduction_, weight), copied.transduction_)
    assert_allclose(weighed.worst_gain_, copied.worst_gain_)


def test_the_same_seed_gives_the_same_and_pickles_vote_alike(clusters):
    X, codes, _ = clusters
    model = SafeS3VM(n_starts=6, n_members=3, n_folds=None, random_state=0).fit(X, codes)
    again = clone(model).fit(X, codes)
    assert len(model.pool_) == 3
    assert_array_equal(model.weights_, again.weights_)
    assert [m.objective for m in model.pool_] == [m.objective for m in again.pool_]
    loaded = pickle.loads(pickle.dumps(model))
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    other = clone(model).set_params(random_state=1).fit(X, codes)
    assert [m.objective for m in model.pool_] != [m.objective for m in other.pool_]


def test_without_unlabeled_rows_it_is_the_supervised_machine(clusters):
    X, _, y = clusters
    with pytest.warns(UserWarning, match="holds no unlabeled rows") as caught:
        model = SafeS3VM().fit(X, y)
    assert [w.filename for w in caught] == [__file__]
    assert model.kept_supervised_ and model.pool_ == []
    assert_array_equal(model.decision_function(X), SVM().fit(X, y).decision_function(X))
    assert "Without unlabeled rows" in model.summary()


def test_limits_are_reported_once(clusters):
    X, codes, _ = clusters
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SafeS3VM(estimator=QNS3VM(max_iter=1), random_state=0).fit(X, codes)
    found = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert len(found) == 1
    assert str(found[0].message).startswith("SafeS3VM stopped 3 fits of the pool")
    assert found[0].filename == __file__


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (dict(loss_weight=0.5), "loss_weight"),
        (dict(estimator=[QNS3VM()]), "'estimator' parameter of SafeS3VM must be"),
        (dict(n_folds=1), r"'n_folds' parameter of SafeS3VM must be an int in the range \[2"),
        (dict(n_starts=-1), "n_starts"),
    ],
)
def test_bad_parameters_are_named(parameters, message, clusters):
    X, codes, _ = clusters
    with pytest.raises(ValueError, match=message):
        SafeS3VM(**parameters).fit(X, codes)


def test_weights_are_refused_by_name_where_a_machine_has_none_and_nothing_changes(clusters):
    X, codes, _ = clusters
    model = SafeS3VM(random_state=0).fit(X, codes)
    before = model.predict(X)
    model.set_params(estimator=SelfTrainingKNN())
    with pytest.raises(ValueError, match="sample_weight must be None: SelfTrainingKNN"):
        model.fit(X, codes, sample_weight=np.ones(160))
    assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("names", [(1, 2), ("cat", "dog")])
def test_dicts_go_by_class_label(names):
    X, truth = make_moons(60, noise=0.2, random_state=0)
    y = hide_labels(truth, 12, random_state=0)
    named = np.array([*names, -1], dtype=object)[y]

    def model(first, second):
        solver = QNS3VM(
            kernel="linear", class_weight={first: 5.0}, balance={first: 0.3, second: 0.7}
        )
        return SafeS3VM(estimator=solver, random_state=0)

    expected = model(0, 1).fit(X, y)
    found = model(*names).fit(X, named)
    assert_array_equal(found.predict(X), np.array(names)[expected.predict(X)])
    assert_allclose(found.baseline_.decision_function(X), expected.baseline_.decision_function(X))
    with pytest.raises(ValueError, match="class_weight must name the classes"):
        model("none", names[1]).set_params(estimator__balance=None).fit(X, named)
