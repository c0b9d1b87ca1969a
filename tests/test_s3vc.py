"""The one door: what it chooses, that every choice can be overridden, and what it says."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import s3vm_lib.s3vc._estimator
from s3vm_lib import CCCPS3VM, QNS3VM, S3VC, SVM, LapSVM, MultiSwitchTSVM, SafeS3VM, SelfTrainingKNN
from s3vm_lib.base.machine import Training
from s3vm_lib.class_ratio import structureless
from s3vm_lib.datasets import hide_labels, make_moons
from s3vm_lib.kernels import Kernel, resolve_gamma
from s3vm_lib.s3vc import _committee
from s3vm_lib.s3vc._committee import held_out_folds, kernel_candidates, part_of, rows_of
from s3vm_lib.safe import QUICK, Sample
from s3vm_lib.smooth import Coordinates

EXPECTED = {
    "check_classifiers_classes": "the check fits the labels {-1, 1}, of which -1 means unlabeled; "
    "scikit-learn exempts its own semi-supervised classifiers by name"
} | {
    f"check_sample_weight_equivalence_on_{kind}_data": "held-out labels are rows, whatever they "
    "weigh, and the supervised machine stops at its tolerance"
    for kind in ("dense", "sparse")
}


@pytest.fixture(scope="module")
def clusters():
    """Two clusters in 60 dimensions that twenty labels do not tell apart well."""
    rng = np.random.default_rng(0)
    truth = np.arange(240) % 2
    X = rng.standard_normal((240, 60))
    X[:, 0] += 5 * (truth - 0.5)
    X[:, 1:] *= 1.6
    order = rng.permutation(240)
    y = np.full(240, -1)
    y[order[:24]] = truth[order[:24]]
    return X, y, truth


def members_of(model):
    return {member.name: member for member in model.members_}


def test_the_votes_are_weighed_as_written(clusters):
    """Losses of held-out labels, gaps, priors and votes again, from the models alone."""
    X, y, truth = clusters
    model = S3VC(random_state=0).fit(X, y)
    u = y < 0
    known, penalties, total = np.concatenate(held_out_folds(y, np.random.RandomState(0))), [], 0.0
    for member in model.members_:
        f = member.model.decision_function(X)
        scale = np.median(2 * np.abs(f[u]))
        assert member.scale == pytest.approx(scale, rel=1e-9)
        held = member.held_out
        assert_allclose(held[:, 0], -held[:, 1])
        m = np.where(y[known] == 1, 2, -2) * held[:, 1]
        loss = np.clip((1 - m / scale) / 2, 0, 1).sum()
        narrow = member.model.kernel == "rbf" and member.model.gamma > 2 * resolve_gamma("scale", X)
        prior = 1.0 if member.supervised or narrow else 0.0
        assert member.loss == pytest.approx(loss) and member.wrong == np.sum(m <= 0)
        assert member.penalty == pytest.approx(loss + member.gap + prior)
        penalties.append(member.penalty)
    w = np.exp(-np.array(penalties))
    assert_allclose(model.weights_, w / w.sum())
    for weight, member in zip(model.weights_, model.members_, strict=True):
        f = member.model.decision_function(X)
        total = total + weight * np.tanh(2 * f / member.scale)
    assert_allclose(model.decision_function(X), total, atol=1e-12)
    assert_array_equal(model.predict(X), (total > 0).astype(int))
    assert_array_equal(model.transduction_, np.where(y >= 0, y, total > 0))
    assert_allclose(model.confidence_, np.abs(total))
    assert np.mean(model.transduction_ == truth) > 0.95
    best = members_of(model)[model.members_[model.weights_.argmax()].name]
    assert model.model_ is best.model and model.solver_.C == model.C_


def test_members_are_machines_of_the_library(clusters):
    """A linear member with a held-out fold, and the supervised one, fitted by hand."""
    X, y, _ = clusters
    model = S3VC(random_state=0).fit(X, y)
    members = members_of(model)
    assert len(members) == len(model.members_) == 8
    known = np.concatenate(held_out_folds(y, np.random.RandomState(0)))
    assert all(np.array_equal(member.known, known) for member in model.members_)
    linear = members["QNS3VM(C=10, kernel='linear')"]
    shares = linear.model.balance
    own = {"kernel": "linear", "C": 10.0, "balance": shares}
    by_hand = QNS3VM(**own, reconsider=True, **QUICK).fit(X, y)
    assert_array_equal(linear.model.decision_function(X), by_hand.decision_function(X))
    supervised = members["SVM(C=10, kernel='linear')"]
    alone = SVM(kernel="linear", C=10).fit(X[y >= 0], y[y >= 0])
    assert_allclose(supervised.model.decision_function(X), alone.decision_function(X))
    folds = held_out_folds(y, np.random.RandomState(0))
    assert sorted(np.concatenate(folds)) == np.flatnonzero(y >= 0).tolist() and len(folds) == 5
    order = np.concatenate(folds)
    for rows in folds:
        part, fold = y.copy(), np.flatnonzero(np.isin(order, rows))
        part[rows] = -1
        f = QNS3VM(**own, reconsider=True, **QUICK).fit(X, part).decision_function(X[rows])
        assert_array_equal(linear.held_out[fold, 1], f)
        f = SVM(kernel="linear", C=10).fit(X[part >= 0], part[part >= 0]).decision_function(X[rows])
        assert_allclose(supervised.held_out[fold, 1], f)


@pytest.mark.parametrize(
    ("balance", "classes", "held"),
    [({0: 0.7, 1: 0.3}, 2, None), ({0: 0.8, 1: 0.2}, 2, 0.01), (0.8, 2, 0.01), (0.75, 2, None),
     (None, 2, 0.01), ({0: 0.3, 1: 0.4, 2: 0.3}, 3, 0.01)],
)  # fmt: skip
def test_the_share_is_held_where_a_class_is_rare(clusters, balance, classes, held):
    """With the mean output a linear machine starves a rare class."""
    X, y, _ = clusters
    y = np.where((y == 0) & (X[:, 1] > 0), classes - 1, y)
    model = S3VC(balance=balance, random_state=0).fit(X, y)
    found = [one.model.balance_tol for one in model.members_ if isinstance(one.model, QNS3VM)]
    assert found == [held] * len(found) and len(found) > 2


def test_labels_are_held_out_from_the_same_machine(clusters):
    """The features of low rank stand for the kernel: without a fold left out nothing differs."""
    X, y, _ = clusters
    gamma = float(resolve_gamma("scale", X))
    solver = QNS3VM(balance=0.5, balance_tol=0.01, kernel="rbf", gamma=gamma)
    solver.set_params(coordinates=Coordinates("cholesky", rank=100), tol=1e-8)
    data = Sample(X, y, None)
    (one,) = kernel_candidates(Kernel("rbf", gamma=gamma), (10.0,), solver, data, None)
    there = clone(one.held_out).fit(one.features, y).decision_function(one.features)
    assert_allclose(clone(one.machine).fit(X, y).decision_function(X), there, atol=1e-4)
    known = np.flatnonzero(y >= 0)  # among the pivots
    low = one.features[known] @ one.features[known].T
    assert one.features.shape[1] <= 100
    assert_allclose(low, Kernel("rbf", gamma=gamma).gram(X[known]), atol=1e-9)


def test_of_many_rows_a_part_is_held_out(clusters, monkeypatch):
    """It holds the labels that are held out; what predicts is fitted to all rows."""
    X, y, truth = clusters
    monkeypatch.setattr(_committee, "MOST_ROWS", 100)
    data, random_state = Sample(X, y, None), np.random.RandomState(0)
    folds = held_out_folds(y, random_state)
    rows = part_of(data, folds, random_state)
    assert rows.size == 100 == np.unique(rows).size and np.isin(np.flatnonzero(y >= 0), rows).all()
    assert rows_of(data, rows, False).X.shape == (100, 60)
    assert rows_of(Sample(X @ X.T, y, None), rows, True).X.shape == (100, 100)
    weight = np.where(np.arange(240) % 7, 1.0, 0.0)
    asked = np.where(weight > 0, truth, -1)
    lone = np.where((asked == 1) & (np.cumsum(asked == 1) > 1), 0, truth)  # a label beside 200
    for _ in range(9):
        part = part_of(Sample(X, lone, weight), [np.flatnonzero(weight)[:40]], random_state)
        assert weight[part].all() and set(lone[part]) == {0, 1}
    many = part_of(Sample(X, truth, None), folds, random_state)
    assert many.size == 50 and np.isin(np.concatenate(folds), many).all()
    model = S3VC(random_state=0).fit(X, y)
    whole = members_of(model)["QNS3VM(C=10, kernel='linear')"].model
    by_hand = clone(whole).fit(X, y)
    assert_array_equal(whole.decision_function(X), by_hand.decision_function(X))
    assert np.isfinite(model.members_[0].held_out).all()
    gram = S3VC(kernel="precomputed", random_state=0).fit(X @ X.T, y)
    for one in (gram, model):
        assert np.mean(one.transduction_ == truth) > 0.85


def component_of(X):
    """The component of each row in the graph of five nearest neighbors, by loops over all pairs."""
    distinct, copy_of = np.unique(X, axis=0, return_inverse=True)
    nearest = [
        np.argsort([np.sum((a - b) ** 2) if k != j else np.inf for k, b in enumerate(distinct)])[:5]
        for j, a in enumerate(distinct)
    ]
    component = np.arange(len(distinct))
    for j, neighbors in enumerate(nearest):
        for k in neighbors:
            component[component == component[k]] = component[j]
    return component[copy_of]


def unreached(X, labeled):
    component = component_of(X)
    return np.flatnonzero(~np.isin(component, component[labeled]))


@pytest.fixture(scope="module")
def groups():
    """Four groups of rows; labels are in the first two."""
    rng = np.random.default_rng(3)
    X = np.repeat([[0, 0], [4, 0], [0, 5], [9, 9]], [40, 40, 25, 15], axis=0)
    X = X + 0.7 * rng.standard_normal((120, 2))
    X[[7, 90, 118]] = X[[3, 81, 110]]  # copies
    order = rng.permutation(120)
    y = np.full(120, -1)
    y[[0, 2, 3, 30, 41, 42, 50, 79]] = [0, 0, 0, 0, 1, 1, 1, 1]
    return X[order], y[order], order


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, lambda X: X @ X.T])
def test_rows_that_no_label_reaches(groups, form):
    X, y, order = groups
    kernel = "precomputed" if form(X).shape[1] > 2 else "rbf"
    model = S3VC(kernel=kernel, scale=False if form is np.asarray else "auto", random_state=0)
    model.fit(form(X), y)
    assert_array_equal(model.unreached_, unreached(X, y >= 0))
    assert set(order[model.unreached_]) >= set(range(105, 120)) and model.unreached_.size < 60
    weight = np.where(order < 40, 0.0, 1.0)
    weight[np.flatnonzero((order < 40) & (y >= 0))[0]] = 1.0
    kept = np.flatnonzero(weight)
    model.fit(form(X), y, sample_weight=weight)
    assert_array_equal(model.unreached_, kept[unreached(X[kept], y[kept] >= 0)])


def test_of_many_rows_some_are_compared(groups, monkeypatch):
    """Labels that are not compared might reach any row: then none is named."""
    X, y, order = groups
    monkeypatch.setattr(_committee, "MOST_ROWS", 60)
    some = S3VC(kernel="linear", random_state=0).fit(X, y).unreached_
    assert 0 < some.size and set(order[some]) <= set(range(80, 120))
    truth = np.where(order < 40, 0, np.where(order < 80, 1, -1))
    assert S3VC(kernel="linear", random_state=0).fit(X, truth).unreached_.size == 0
    assert S3VC(kernel="linear", random_state=0).fit(X, order % 2).unreached_.size == 0


@pytest.mark.parametrize("probability", [False, True])
def test_rare_classes_among_many_labels_are_held_out(clusters, monkeypatch, probability):
    """No machine may miss a class, nor the labels that are held out one that can spare a label."""
    X, _, truth = clusters
    monkeypatch.setattr(_committee, "MOST_ROWS", 80)
    monkeypatch.setattr(_committee, "MOST_HELD_OUT", 30)
    rare = np.flatnonzero(truth == 1)[:2]
    y = np.where(np.arange(240) < 200, 0, -1)
    y[rare] = 1
    y[truth == 1] = np.where(y[truth == 1] == 1, 1, -1)
    if not probability:
        y[np.flatnonzero(y == 0)[0]] = 2
    for seed in range(3):
        model = S3VC(kernel="linear", probability=probability, random_state=seed).fit(X, y)
        known = np.concatenate(held_out_folds(y, np.random.RandomState(seed)))
        assert np.sum(y[known] == 1) == 1 and np.sum(y[known] == 2) == 0
        for F in (member.held_out for member in model.members_):
            assert np.isfinite(F).all() and F.shape == (known.size, y.max() + 1)
        if probability:
            assert model.predict_proba(X).shape == (240, 2)


@pytest.mark.parametrize(
    "n_labels, folds",
    [([1, 1], 0), ([1, 4], 4), ([2, 9], 5), ([400, 300], 1), ([2, 1998], 1), ([1, 501], 1)],
)
def test_folds_of_labels(n_labels, folds):
    """A class keeps its only label; of very many labels one fold is held out."""
    y = np.repeat([0, 1, -1], [*n_labels, 30])
    found = held_out_folds(y, np.random.RandomState(0))
    assert len(found) == folds
    rows = np.concatenate([*found, []]).astype(int)
    assert np.unique(rows).size == rows.size and np.all(y[rows] >= 0)
    dealt = sum(n for n in n_labels if n > 1)
    if folds == 1:
        assert rows.size == pytest.approx(min(500, dealt / 2), abs=1)
    if folds:
        assert set(y[rows]) == {k for k in (0, 1) if n_labels[k] > 1}
        for held in found:
            left = np.setdiff1d(np.arange(y.size), held)
            assert set(y[left]) == {0, 1, -1}


def test_the_gap_decides_where_labels_are_few():
    """With six labels of two moons it is the unlabeled rows that speak for a narrow kernel."""
    wrong = []
    for seed in range(8):
        X, truth = make_moons(400, noise=0.1, random_state=seed)
        y = hide_labels(truth, 6, random_state=seed)
        model = S3VC(random_state=0).fit(X, y)
        linear = members_of(model)["QNS3VM(C=10, kernel='linear')"]
        errors = [np.mean(one.predict(X) != truth) for one in (model, linear.model)]
        wrong.append(errors)
        narrow = max((m for m in model.members_ if not m.supervised), key=lambda m: -m.gap)
        assert narrow.gap < linear.gap
    mean = np.mean(wrong, axis=0)
    assert mean[0] < 0.08 and mean[0] < mean[1] - 0.05


def test_the_gap_is_that_of_structureless_rows(clusters):
    X, y, _ = clusters
    model = S3VC(kernel="linear", C=10.0, random_state=0).fit(X, y)
    member = members_of(model)["QNS3VM(C=10, kernel='linear')"]
    random_state = np.random.RandomState(0)
    held_out_folds(y, random_state)
    weight = np.ones(240)
    data = Training(X, np.arange(240), y, weight, weight, Kernel("linear"), 2)
    null = structureless(data, random_state)
    machine = clone(member.model).fit(null.X, null.codes)
    losses = [
        np.mean(np.exp(-3 * m.decision_function(rows[y < 0]) ** 2))
        for m, rows in ((member.model, X), (machine, null.X))
    ]
    gap = np.clip(np.log(losses[0] / losses[1]), -2, 1)
    assert member.gap == pytest.approx(gap + 8 * (member.model.contradicted_ - 0.15), abs=1e-9)
    sparse = S3VC(kernel="linear", random_state=0).fit(sp.csr_matrix(X), y)
    for one in sparse.members_:
        share = 0.15 if one.supervised else one.model.contradicted_
        assert one.gap == pytest.approx(8 * (share - 0.15))


def test_the_expected_error_is_that_of_labels_the_vote_does_not_know(clusters):
    X, y, _ = clusters
    model = S3VC(random_state=0).fit(X, y)
    wrong = 0
    for j, i in enumerate(np.concatenate(held_out_folds(y, np.random.RandomState(0)))):
        sign, total, penalties, votes = 2 * y[i] - 1, 0.0, [], []
        for member in model.members_:
            f = member.held_out[j, 1]
            penalties.append(member.penalty - np.clip((1 - 2 * sign * f / member.scale) / 2, 0, 1))
            votes.append(np.tanh(2 * f / member.scale))
        total = np.exp(-np.array(penalties)) @ np.array(votes)
        wrong += sign * total <= 0
    assert model.expected_error_ == wrong / 24
    low, high = model.expected_error_interval_
    assert high == pytest.approx(beta.ppf(0.975, wrong + 1, 24 - wrong))
    assert low == (pytest.approx(beta.ppf(0.025, wrong, 25 - wrong)) if wrong else 0.0)
    assert f"wrong on {wrong} of 24 held-out labels" in model.summary()


def test_the_guard_keeps_the_supervised_machine(clusters):
    """A share that is far off: with guard, no more of the labels are contradicted."""
    X, y, _ = clusters
    known = y >= 0
    model = S3VC(kernel="linear", balance=0.95, random_state=0).fit(X, y)
    assert model.class_ratio_[1] == 0.95
    supervised = SVM(kernel="linear", C=10).fit(X[known], y[known])
    wrong = np.sum(supervised.predict(X[known]) != y[known])
    assert np.sum(model.predict(X[known]) != y[known]) <= wrong + 1
    careless = S3VC(kernel="linear", balance=0.95, guard=False, random_state=0).fit(X, y)
    assert not careless.kept_supervised_ and np.mean(careless.transduction_ == 1) > 0.6
    assert all(not member.supervised for member in careless.members_)
    assert list(careless.wrong_labels_) == ["vote"]


def test_the_guard_counts_labels(clusters, monkeypatch):
    """Where the vote contradicts one label and 2 % more than the supervised machine it is out."""
    X, y, _ = clusters
    sure = s3vm_lib.s3vc._estimator.weights

    def turned(penalties):  # all weight to the machine that errs on most labels
        w = sure(penalties) * 0
        w[-1] = 1.0
        return w

    monkeypatch.setattr(s3vm_lib.s3vc._estimator, "weights", turned)

    class Turned(QNS3VM):
        def decision_function(self, rows):
            return -super().decision_function(rows)

    bad = S3VC(solver=Turned(kernel="linear"), random_state=0).fit(X, y)
    assert bad.wrong_labels_["vote"] > bad.wrong_labels_["supervised"] + 1
    assert bad.kept_supervised_ and bad.members_[bad.weights_.argmax()].supervised
    assert "machine {}: that was kept.".format(bad.wrong_labels_["supervised"]) in bad.summary()
    assert_array_equal(bad.predict(X), bad.model_.predict(X))


def test_one_machine_instead_of_a_vote(clusters):
    X, y, _ = clusters
    model, all_of_them = (S3VC(vote=vote, random_state=0).fit(X, y) for vote in (False, True))
    best = all_of_them.weights_.argmax()
    assert model.weights_.tolist() == np.eye(8)[best].tolist()
    assert_array_equal(model.predict(X), model.model_.predict(X))
    assert model.expected_error_ == model.members_[best].wrong / 24


def test_a_budget_of_time(clusters):
    X, y, _ = clusters
    model = S3VC(max_seconds=0.0, random_state=0).fit(X, y)
    assert len(model.members_) == 1 and model.members_[0].supervised
    assert len(model.left_out_) == 6 and "After 0 seconds there was no time for" in model.summary()
    supervised = SVM(kernel="linear", C=10).fit(X[y >= 0], y[y >= 0])
    assert_array_equal(model.predict(X), supervised.predict(X))
    plenty = S3VC(max_seconds=600.0, random_state=0).fit(X, y)
    assert plenty.left_out_ == [] and "no time" not in plenty.summary()
    with pytest.raises(ValueError, match="max_seconds"):
        S3VC(max_seconds=-1.0).fit(X, y)


def test_without_unlabeled_rows_supervised_machines_vote(clusters):
    X, _, truth = clusters
    with pytest.warns(UserWarning, match="no unlabeled rows"):
        model = S3VC(random_state=0).fit(X, truth)
    assert all(member.supervised for member in model.members_) and len(model.members_) == 3
    assert model.kept_supervised_ and model.class_ratio_ is None
    assert np.array_equal(model.transduction_, truth)


def test_a_label_of_each_class(clusters):
    X, _, truth = clusters
    one = np.full(240, -1)
    for k in (0, 1):
        one[np.flatnonzero(truth == k)[0]] = k
    model = S3VC(random_state=0).fit(X, one)
    assert "No label can be held out: each class has one of positive weight." in model.summary()
    assert np.isnan(model.expected_error_) and model.expected_error_interval_ == (0.0, 1.0)
    assert all(member.loss == member.wrong == 0 for member in model.members_)


def test_sparse_rows_are_not_scaled(clusters):
    X, y, _ = clusters
    A = sp.csr_matrix(np.where(np.abs(X) > 1.5, X, 0))
    model = S3VC(random_state=0).fit(A, y)
    assert len(model.members_) == 8 and model.scaler_ is None
    assert "Sparse rows stay as they are." in model.summary()
    for true in (True, np.True_):
        with pytest.raises(ValueError, match="scale must be 'auto' or False with sparse rows"):
            S3VC(scale=true).fit(A, y)


def test_a_solver_of_ones_own(clusters):
    X, y, _ = clusters
    own = CCCPS3VM(kernel="linear", s=-0.3, C=3.0)
    model = S3VC(solver=own, guard=False, random_state=0).fit(X, y)
    assert model.kernel_ == "linear" and model.C_ == 3.0 and model.solver_.s == -0.3
    assert_array_equal(model.transduction_, clone(own).fit(X, y).transduction_)
    changed = S3VC(solver=own, C=0.5, balance=0.4, kernel="rbf", random_state=0).fit(X, y)
    semi = next(member.model for member in changed.members_ if not member.supervised)
    assert semi.C == 0.5 and semi.balance == 0.4 and semi.kernel == "rbf" and semi.s == -0.3
    supervised = next(member.model for member in changed.members_ if member.supervised)
    assert supervised.C == 0.5 and supervised.kernel == "rbf"
    assert S3VC(solver=MultiSwitchTSVM(), guard=False).fit(X, y).kernel_ == "linear"


@pytest.mark.parametrize("guard", [True, False])
def test_probabilities(clusters, guard):
    X, y, truth = clusters
    model = S3VC(probability=True, guard=guard, random_state=0).fit(X, y)
    chances = model.predict_proba(X)
    assert_allclose(chances.sum(axis=1), 1)
    assert np.mean((chances[:, 1] > 0.5) == (model.predict(X) == model.classes_[1])) > 0.9
    assert np.mean((chances[:, 1] - truth) ** 2) < 0.2
    order = np.argsort(model.decision_function(X))
    assert np.all(np.diff(chances[order, 1]) >= 0)


def test_what_is_said_leaves_rows_of_weight_zero_out(clusters):
    X, y, _ = clusters
    labeled, weight = np.flatnonzero(y >= 0), np.ones(240)
    weight[labeled[:6]] = 0
    model = S3VC(random_state=0).fit(X, y, sample_weight=weight)
    assert "of 18 held-out labels" in model.summary()
    ones = np.mean(y[labeled[6:]])
    assert f"(labels: {ones:.1%})" in model.summary()
    with np.errstate(all="raise"):
        none = S3VC(random_state=0).fit(X, y, sample_weight=np.where(y < 0, 0.0, 1.0))
    assert all(member.supervised for member in none.members_) and "nan" not in none.summary()


def test_gamma_is_handed_on(clusters):
    X, y, _ = clusters
    model = S3VC(kernel="rbf", gamma="auto", guard=False, vote=False, random_state=0).fit(X, y)
    assert model.model_.gamma_ == pytest.approx(resolve_gamma("auto", X))
    widths = {
        m.model.gamma for m in S3VC(random_state=0).fit(X, y).members_ if m.model.kernel == "rbf"
    }
    assert sorted(widths) == pytest.approx(resolve_gamma("scale", X) * np.array([0.25, 1, 4]))


def test_several_classes_have_a_machine_on_a_graph():
    rng = np.random.default_rng(0)
    truth = np.arange(150) % 3
    X = rng.standard_normal((150, 2)) + 3 * np.array([[0, 0], [1, 0], [0, 1]])[truth]
    y = hide_labels(truth, 18, random_state=0)
    model = S3VC(random_state=0).fit(X, y)
    assert sum(isinstance(m.model, LapSVM) for m in model.members_) == 1
    assert model.decision_function(X).shape == (150, 3)
    assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))
    assert_allclose(
        model.confidence_, -np.diff(np.sort(model.decision_function(X)), axis=1)[:, -1] / -2
    )
    assert np.mean(model.transduction_ == truth) > 0.85


def test_outputs_far_from_zero_are_told_apart():
    """Of three classes in a line: the votes of far rows would all round to one number."""
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 3
    X = rng.standard_normal((120, 2)) + 3 * np.array([[0, 0], [1, 0], [2, 0]])[truth]
    y = np.where(np.arange(120) < 24, truth, -1)
    far = np.vstack([X * [1, 100], X * [100, 100]])
    one, several = (
        S3VC(kernel="linear", vote=vote, random_state=0).fit(X, y) for vote in (False, True)
    )
    assert_array_equal(one.predict(far), one.model_.predict(far))
    assert_array_equal(one.predict(far), one.decision_function(far).argmax(axis=1))
    answers = np.array([member.model.predict(far) for member in several.members_])
    agree = np.all(answers == answers[0], axis=0)
    assert several.weights_.max() < 1
    assert_array_equal(several.predict(far)[agree], answers[0][agree])
    assert np.all(np.diff(np.sort(several.decision_function(far)), axis=1)[:, -1] > 0)


def test_outputs_that_are_all_zero_overflow_nothing():
    """The unlabeled rows are on the boundary, labeled ones are far from it."""
    X = np.array([[20.0, 0], [-20.0, 0], [1.0, 0], [-1.0, 0], [0, 1.0], [0, -1.0]])
    y = np.array([1, 0, 1, 0, -1, -1])
    with np.errstate(all="raise"):
        model = S3VC(kernel="linear", C=1e3, scale=False, random_state=0).fit(X, y)
        found = model.decision_function(X)
    assert np.isfinite(found).all() and np.array_equal(model.predict(X[:4]), y[:4])


def test_labels_that_a_vote_contradicts_are_counted_of_the_vote(clusters):
    """Not of its heaviest machine, which others may outvote, and against the one of the guard."""
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 3
    X = rng.standard_normal((120, 2)) + 3 * np.array([[0, 0], [1, 0], [2, 0]])[truth]
    y = np.where(np.arange(120) < 24, truth, -1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = S3VC(kernel="linear", random_state=0).fit(X, y)
    assert "contradicts 2 of its 24 labels" in model.model_.findings_["labels"]
    wrong = np.sum(model.predict(X[:24]) != y[:24])
    assert wrong == model.wrong_labels_["vote"] <= model.wrong_labels_["supervised"] + 1
    assert model.findings_ == {} and said == []
    X, y, _ = clusters
    known = y >= 0
    model = S3VC(kernel="linear", C_star=100.0, balance=0.95, guard=False, random_state=0)
    with pytest.warns(UserWarning, match="S3VC contradicts"):
        model.fit(X, y)
    assert model.weights_.max() < 1
    wrong = np.sum(model.predict(X[known]) != y[known])
    alone = SVM(kernel="linear", C=model.C_).fit(X[known], y[known])
    least = np.sum(alone.predict(X[known]) != y[known])
    text = f"contradicts {wrong} of its 24 labels, the supervised machine {least}"
    assert model.findings_["labels"] == text and f"Warning: it {text}." in model.summary()


@pytest.mark.interface
@parametrize_with_checks(
    [S3VC(random_state=0), S3VC(guard=False, solver=CCCPS3VM(tol=1e-10), kernel="rbf")],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_columns_of_different_units_are_scaled(clusters):
    X, y, _ = clusters
    units = X * np.logspace(0, 2, 60)
    options = dict(guard=False, random_state=0)
    scaled = S3VC(**options).fit(units, y)
    by_hand = make_pipeline(StandardScaler(), S3VC(scale=False, **options)).fit(units, y)
    assert scaled.scaler_ is not None
    assert_array_equal(scaled.predict(units), by_hand.predict(units))
    assert_allclose(scaled.decision_function(units), by_hand.decision_function(units))
    assert S3VC(scale=False, **options).fit(units, y).scaler_ is None
    assert S3VC(scale=True, **options).fit(X, y).scaler_ is not None
    assert S3VC(**options).fit(X, y).scaler_ is None
    constant = np.hstack([X, np.ones((240, 1))])
    assert S3VC(**options).fit(constant, y).scaler_ is None


def test_a_gram_matrix(clusters):
    X, y, _ = clusters
    kernel = S3VC(kernel="linear", scale=False, random_state=0).fit(X, y)
    gram = S3VC(kernel="precomputed", random_state=0).fit(X @ X.T, y)
    assert np.mean(gram.transduction_ == kernel.transduction_) > 0.97  # there are no null rows
    names = "QNS3VM(C=10, kernel={!r})".format
    there = members_of(kernel)[names("linear")].model.decision_function(X)
    here = members_of(gram)[names("precomputed")].model.decision_function(X @ X.T)
    assert_allclose(here, there, atol=0.2)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_gram_matrix_of_a_solver_of_ones_own(clusters, wrapped):
    """It is neither scaled nor taken for rows, though ``kernel`` is ``"auto"``."""
    X, y, _ = clusters
    X = X * np.linspace(1, 20, 240)[:, None]  # columns of the Gram matrix differ as much
    own = QNS3VM(kernel="precomputed")
    there = S3VC(kernel="precomputed", solver=own, guard=False).fit(X @ X.T, y)
    solver = SafeS3VM(estimator=own, n_folds=None) if wrapped else own
    model = S3VC(solver=solver, guard=False)
    assert get_tags(model).input_tags.pairwise
    model.fit(X @ X.T, y)
    assert model.kernel_ == "precomputed" and model.scaler_ is None
    if not wrapped:
        assert_array_equal(model.transduction_, there.transduction_)
        assert_array_equal(model.predict(X[:9] @ X.T), there.predict(X[:9] @ X.T))
    with pytest.raises(ValueError, match="must be the square Gram matrix"):
        model.fit(X, y)
    rows = S3VC(kernel="linear", solver=own, guard=False)
    assert not get_tags(rows).input_tags.pairwise and rows.fit(X, y).scaler_ is None


def test_what_is_given_reaches_a_solver_of_ones_own(clusters):
    X, y, _ = clusters
    given = S3VC(solver=QNS3VM(gamma=2.0), gamma=8.0, guard=False).fit(X, y)
    assert given.solver_.gamma == given.model_.gamma_ == 8.0 and given.kernel_ == "rbf"
    assert S3VC(solver=QNS3VM(gamma=2.0), guard=False).fit(X, y).solver_.gamma == 2.0
    linear = MultiSwitchTSVM()
    assert S3VC(solver=linear, kernel="linear", guard=False).fit(X, y).kernel_ == "linear"
    for kernel, A in (("rbf", X), ("precomputed", X @ X.T)):
        with pytest.raises(ValueError, match=f"solver=MultiSwitchTSVM, which .* got '{kernel}'"):
            S3VC(solver=linear, kernel=kernel).fit(A, y)


def test_probabilities_of_a_gram_matrix_and_of_answers_alone(clusters):
    X, y, truth = clusters
    gram = S3VC(kernel="precomputed", probability=True, random_state=0).fit(X @ X.T, y)
    neighbors = S3VC(solver=SelfTrainingKNN(), probability=True, random_state=0).fit(X, y)
    for model, rows in ((gram, X @ X.T), (neighbors, X)):
        chances = model.predict_proba(rows)
        assert chances.shape == (240, 2) and np.mean((chances[:, 1] > 0.5) == truth) > 0.7


def test_probability_is_asked_for_before_the_fit(clusters):
    X, y, _ = clusters
    model = S3VC(kernel="linear", guard=False, random_state=0).fit(X, y)
    model.set_params(probability=True)
    with pytest.raises(NotFittedError, match="needs a fit with probability=True"):
        model.predict_proba(X)
    assert model.fit(X, y).predict_proba(X).shape == (240, 2)


def test_refusals_speak_of_classes_and_of_this_estimator(clusters):
    X, y, _ = clusters
    with pytest.raises(ValueError, match=r"S3VC has kernel='auto', .* must have guard=False"):
        S3VC(solver=S3VC()).fit(X, y)
    names = np.array(["cat", "dog", -1], dtype=object)[y]
    few = names.copy()
    few[np.flatnonzero(names == "dog")[1:]] = -1
    model = S3VC(probability=True, random_state=0)
    with pytest.raises(ValueError, match=r"y must hold two .* got one of \['dog'\]"):
        model.fit(X, few)
    with pytest.raises(ValueError, match=r"sample_weight must be positive .* \['dog'\]"):
        S3VC(random_state=0).fit(X, names, sample_weight=np.where(names == "dog", 0.0, 1.0))
    for name, value in (("balance", 0.9), ("C_star", 0.1)):
        with pytest.raises(
            ValueError, match=rf"{name} must be .* no parameter {name}, got {value}"
        ):
            S3VC(solver=LapSVM(), **{name: value}).fit(X, names)
    for balance in ({0: 0.3, 1: 0.7}, {"dog": 1.0}):
        with pytest.raises(ValueError, match=r"balance must name the classes \['cat', 'dog'\]"):
            S3VC(balance=balance, random_state=0).fit(X, names)
    with pytest.raises(ValueError, match=r"class_weight must name the classes \['cat', 'dog'\]"):
        S3VC(solver=QNS3VM(class_weight={1: 2.0}), random_state=0).fit(X, names)


@pytest.mark.parametrize("guard", [True, False])
def test_shares_and_weights_of_classes_are_given_by_name(clusters, guard):
    X, y, _ = clusters
    names = np.array(["cat", "dog", -1], dtype=object)[y]
    own = QNS3VM(kernel="linear", class_weight={"dog": 3.0})
    model = S3VC(solver=own, guard=guard, probability=not guard, random_state=0)
    model.set_params(balance={"dog": 0.6, "cat": 0.4}).fit(X, names)
    numbers = clone(model).set_params(balance={1: 0.6, 0: 0.4}, solver__class_weight={1: 3.0})
    numbers.fit(X, y)
    assert_array_equal(model.transduction_ == "dog", numbers.transduction_ == 1)
    assert_allclose(model.class_ratio_, [0.4, 0.6])
    if not guard:
        assert_array_equal(model.predict_proba(X), numbers.predict_proba(X))
        alone = clone(model.solver_).fit(X, names)  # what it says is what was fitted
        assert_array_equal(alone.transduction_, model.transduction_)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_weights_of_classes_reach_every_machine(clusters, classes):
    X, y, _ = clusters
    y = np.where((y == 0) & (X[:, 1] > 0), classes - 1, y)
    names = np.array(["ant", "bee", "cow"], dtype=object)[y]
    names[y == -1] = -1
    wanted = {"bee": 5.0, "ant": 0.5}
    model = S3VC(class_weight=wanted, random_state=0).fit(X, names)
    assert len(model.members_) == (8 if classes == 2 else 7)
    for member in model.members_:
        assert member.model.class_weight == {1: 5.0, 0: 0.5}
    assert model.solver_.class_weight == wanted
    labeled = y >= 0
    by_hand = SVM(kernel="linear", C=10, class_weight=wanted).fit(X[labeled], names[labeled])
    supervised = members_of(model)["SVM(C=10, kernel='linear')"].model
    assert_allclose(supervised.decision_function(X), by_hand.decision_function(X))
    own = S3VC(solver=QNS3VM(), class_weight=wanted, random_state=0).fit(X, names)
    assert all(one.model.class_weight == {1: 5.0, 0: 0.5} for one in own.members_)
    with pytest.raises(ValueError, match=r"class_weight must name the classes"):
        S3VC(class_weight={"dog": 2.0}).fit(X, names)
    with pytest.raises(ValueError, match="no parameter class_weight"):
        S3VC(class_weight=wanted, solver=SelfTrainingKNN()).fit(X, names)


def test_several_classes_and_names(clusters):
    rng = np.random.default_rng(0)
    truth = np.repeat(["a", "b", "c"], 50)
    X = rng.standard_normal((150, 2)) + 5 * np.repeat([[0, 0], [1, 0], [0, 1]], 50, axis=0)
    y = truth.astype(object)
    y[rng.permutation(150)[24:]] = -1
    model = S3VC(random_state=0, probability=True).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert np.mean(model.transduction_ == truth) > 0.9
    assert model.predict_proba(X[:4]).shape == (4, 3)
    assert model.class_ratio_.sum() == pytest.approx(1)


def test_masks_and_weights(clusters):
    X, y, _ = clusters
    mask = y == -1
    signs = np.where(y == 1, 1, -1)
    there = S3VC(random_state=0).fit(X, y)
    masked = S3VC(random_state=0).fit(X, signs, unlabeled_mask=mask)
    assert_array_equal(masked.transduction_ == 1, there.transduction_ == 1)
    ones = S3VC(random_state=0).fit(X, y, sample_weight=np.ones(240))
    assert_array_equal(ones.transduction_, there.transduction_)
    weight = np.ones(240)
    weight[200:] = 0
    less = S3VC(kernel="linear", random_state=0).fit(X, y, sample_weight=weight)
    few = S3VC(kernel="linear", random_state=0).fit(X[:200], y[:200])
    assert np.mean(less.transduction_[:200] == few.transduction_) > 0.97


def test_pickle_and_a_failed_fit(clusters):
    X, y, _ = clusters
    model = S3VC(random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.predict(X))
    before = vars(model).copy()
    with pytest.raises(ValueError, match="at least two labeled classes"):
        model.fit(X, np.where(y == 1, 1, -1))
    assert vars(model) == before
    assert S3VC(random_state=0, verbose=1).fit(X, y).summary() == model.summary()
