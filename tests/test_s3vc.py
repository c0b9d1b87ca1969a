"""The one door: what it chooses, that every choice can be overridden, and what it says."""

import itertools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import s3vm_lib.s3vc
from s3vm_lib import (
    CCCPS3VM,
    FRS3VM,
    QNS3VM,
    S3VC,
    SVM,
    LapSVM,
    MultiSwitchTSVM,
    SafeS3VM,
    SelfTrainingKNN,
)
from s3vm_lib.calibration import CalibratedS3VM
from s3vm_lib.class_ratio import RATIO_RULES, separation
from s3vm_lib.datasets import hide_labels, make_moons
from s3vm_lib.kernels import resolve_gamma
from s3vm_lib.safe import _estimator as estimator_module
from s3vm_lib.safe import compare, decide

CLASSES = {
    "check_classifiers_classes": "the check fits the labels {-1, 1}, of which -1 means unlabeled; "
    "scikit-learn exempts its own semi-supervised classifiers by name"
}
EXPECTED = CLASSES | {
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


def test_with_three_classes_labels_are_held_out_once_and_shares_asked_for_once(monkeypatch):
    rng = np.random.default_rng(1)
    truth = np.arange(90) % 3
    X = rng.standard_normal((90, 2)) + 4 * np.eye(3)[truth][:, :2]
    y = hide_labels(truth, 18, random_state=0)
    asked, rule = [], RATIO_RULES["auto"]
    monkeypatch.setitem(
        RATIO_RULES, "auto", lambda data, C: asked.append((data.kernel.name, C)) or rule(data, C)
    )
    model = S3VC(random_state=0).fit(X, y)
    assert asked == [("rbf", 1.0)]
    solver = QNS3VM(**model.solver_.get_params() | {"C": 1.0, "kernel": "rbf"}).fit(X, y)
    assert_array_equal(model.class_ratio_, solver.class_ratio_)
    shares = dict(enumerate(model.class_ratio_))
    by_hand = SafeS3VM(estimator=clone(model.solver_).set_params(balance=shares), random_state=0)
    decide(by_hand, compare(by_hand, X, y, n_repeats=1))
    assert_array_equal(model.transduction_, by_hand.transduction_)
    assert_array_equal(model.model_.cv_right_, by_hand.cv_right_)
    assert np.all(by_hand.cv_right_ % 1 == 0)
    assert "of the labels, in the mean of the 3 separators." in model.summary()


def test_what_is_not_taken_gets_no_pool(clusters, monkeypatch):
    X, y, _ = clusters
    kernels, make_pool = [], estimator_module.make_pool

    def noted(estimator, *rest):
        kernels.append(estimator.kernel)
        return make_pool(estimator, *rest)

    monkeypatch.setattr(estimator_module, "make_pool", noted)
    model = S3VC(random_state=0).fit(X, y)
    assert model.summary().count("of 24 held-out labels") == 2  # kernels and C were compared
    assert kernels == [model.kernel_]


@pytest.mark.interface
@parametrize_with_checks(
    [S3VC(random_state=0), S3VC(guard=False, solver=CCCPS3VM(tol=1e-10), kernel="rbf")],
    expected_failed_checks=lambda estimator: EXPECTED if estimator.guard else CLASSES,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_it_is_what_it_says(clusters):
    X, y, truth = clusters
    model = S3VC(random_state=0).fit(X, y)
    by_hand = SafeS3VM(estimator=model.solver_, random_state=0).fit(X, y)
    assert_array_equal(model.transduction_, by_hand.transduction_)
    assert_array_equal(model.predict(X), by_hand.predict(X))
    assert_allclose(model.decision_function(X), by_hand.decision_function(X))
    assert model.scaler_ is None and isinstance(model.solver_, QNS3VM)
    assert by_hand.summary().splitlines()[1:] == model.summary().splitlines()[-5:]
    alone = clone(model.solver_).fit(X, y)
    assert_allclose(model.class_ratio_, alone.class_ratio_, rtol=1e-6)
    assert f"{model.class_ratio_[1]:.1%}" in model.summary()
    f = alone.decision_function(X[y == -1])
    shown = separation(f, np.mean(f > 0))
    assert f"separation {shown:.2f}" in model.summary()
    assert "fall into two groups" in model.summary()
    supervised = SVM(kernel=model.kernel_).fit(X[y >= 0], y[y >= 0])
    assert np.mean(model.predict(X) == truth) > np.mean(supervised.predict(X) == truth) + 0.02
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="a fit with probability=True, got False"):
        model.predict_proba(X)


def test_a_wrong_ratio_keeps_the_supervised_machine(clusters):
    X, y, _ = clusters
    model = S3VC(kernel="linear", balance=0.95, random_state=0).fit(X, y)
    assert model.kept_supervised_ and model.class_ratio_[1] == 0.95
    assert "On held-out labels the estimator loses" in model.summary()
    assert "The supervised machine was kept" in model.summary()
    known = y >= 0
    supervised = SVM(kernel="linear").fit(X[known], y[known])
    assert_array_equal(model.predict(X), supervised.predict(X))
    careless = S3VC(kernel="linear", balance=0.95, guard=False, random_state=0).fit(X, y)
    assert not careless.kept_supervised_ and np.mean(careless.transduction_ == 1) > 0.6


def test_one_crowd_shows_no_gap():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 2))
    partly = hide_labels((X[:, 1] > 0).astype(int), 40, random_state=0)
    assert "show no gap" in S3VC(kernel="linear", random_state=0).fit(X, partly).summary()


def test_held_out_labels_choose_the_kernel():
    X, truth = make_moons(240, random_state=0)
    y = hide_labels(truth, 40, random_state=1)
    assert S3VC(gamma=4.0, random_state=0).fit(X, y).kernel_ == "rbf"
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 60))  # rbf kernels of 40 labels in 60 dimensions know nothing
    truth = (X @ rng.standard_normal(60) > 0).astype(int)
    y = np.where(np.arange(200) < 80, truth, -1)
    model = S3VC(gamma=1.0, random_state=0).fit(X, y)
    assert model.kernel_ == "linear"
    numbers = [line for line in model.summary().splitlines() if "kernel is linear" in line]
    assert "of 80 held-out labels" in numbers[0]
    assert S3VC(kernel="rbf", random_state=0).fit(X, y).kernel_ == "rbf"
    one = np.where(np.cumsum(y == 1) <= 1, y, np.where(y == 0, 0, -1))
    model = S3VC(random_state=0).fit(X, one)
    assert model.kernel_ == "linear" and "none can be held out" in model.summary()
    wide = np.hstack([X, rng.standard_normal((200, 140))])
    model = S3VC(gamma=4.0, random_state=0).fit(wide, y)
    assert model.kernel_ == "linear" and "as many columns as rows" in model.summary()
    same = S3VC(gamma=1e-3, random_state=0).fit(X[:, :1] * 100, (X[:, 0] > 0).astype(int))
    assert same.kernel_ == "linear"  # both get every label right


@pytest.mark.parametrize("seed, expected", [(0, 10.0), (1, 1.0), (2, 1.0), (4, 10.0)])
def test_held_out_labels_choose_C(seed, expected):
    """The larger one where it leads by three quarters of a standard error: not in a tie."""
    X, truth = make_moons(240, noise=0.1, random_state=seed)
    y = hide_labels(truth, 20, random_state=seed)
    model = S3VC(kernel="rbf", random_state=0).fit(X, y)
    fixed = {C: S3VC(C=C, kernel="rbf", random_state=0).fit(X, y) for C in (1.0, 10.0)}
    few, many = (fixed[C].model_.cv_right_.max() for C in (1.0, 10.0))
    needed = 0.75 * np.sqrt(1 + 20 - few)
    assert model.C_ == expected == (10.0 if many - few >= needed else 1.0)
    assert seed != 2 or many > few  # a lead that is too small
    assert_array_equal(model.transduction_, fixed[expected].transduction_)
    assert (
        f"C is {expected:g}: of 20 held-out labels the machine predicts {few:g} with C = 1 and "
        f"{many:g} with C = 10, which needs {needed:.1f} more."
    ) in model.summary()
    assert "C is" not in fixed[expected].summary() and fixed[expected].C_ == expected
    careless = S3VC(kernel="rbf", guard=False, random_state=0).fit(X, y)
    assert careless.C_ == expected and isinstance(careless.model_, QNS3VM)
    wrong = [np.mean(one.transduction_ != truth) for one in (fixed[1.0], model)]
    assert wrong[1] < wrong[0] - 0.01 or expected == 1.0


@pytest.mark.parametrize(
    "right, expected",
    [
        # Labels that are predicted with linear and rbf, C = 1, then C = 10; of each the supervised
        # machine first. Of 30 labels the larger C needs 2.5 more where 20 are predicted.
        (([20, 10], [5, 15], [20, 10], [5, 16]), (1.0, "linear")),
        (([10, 20], [20, 5], [5, 15], [10, 22]), (1.0, "linear")),
        (([10, 19], [20, 5], [5, 15], [10, 23]), (10.0, "rbf")),
        (([10, 19], [20, 5], [23, 15], [10, 23]), (10.0, "linear")),
    ],
)
def test_either_machine_speaks_for_a_kernel_and_for_C(right, expected):
    model, pairs = S3VC(), itertools.product((1.0, 10.0), ("linear", "rbf"))
    model._said = []
    found = {
        pair: (None, SimpleNamespace(cv_right_=np.array(one)), None)
        for pair, one in zip(pairs, right, strict=True)
    }
    assert model._chosen(found, 30) == expected


def test_where_no_label_decides_C_is_one(clusters):
    X, y, truth = clusters
    with pytest.warns(UserWarning, match="no unlabeled rows"):
        all_known = S3VC(random_state=0).fit(X, truth)
    assert (all_known.C_, all_known.kernel_) == (1.0, "linear")
    for name in ("C is 1", "The kernel is linear"):
        assert f"{name}: without unlabeled rows no label is held out." in all_known.summary()
    one = np.where(np.cumsum(y == 1) <= 1, y, np.where(y == 0, 0, -1))
    model = S3VC(kernel="rbf", random_state=0).fit(X, one)
    assert model.C_ == 1.0 and "C is 1: with one label of a class" in model.summary()


def test_unlabeled_rows_may_choose_the_kernel():
    """Five labels of a moon say little of its shape; with the other rows they do."""
    X, truth = make_moons(200, noise=0.1, random_state=2)
    y = hide_labels(truth, 10, random_state=1)
    model = S3VC(gamma=8.0, random_state=0).fit(X, y)
    guards = [
        SafeS3VM(estimator=model._solver(X, kernel, model.C_, True), random_state=0)
        .fit(X, y)
        .cv_right_
        for kernel in ("linear", "rbf")
    ]
    assert model.kernel_ == "rbf" and guards[0].max() < guards[1].max()
    assert guards[1][1] > guards[1][0]  # thanks to the solver
    plain, own = guards[1]
    assert f"{own:g} with rbf ({plain:g} without unlabeled rows)" in model.summary()
    careless = S3VC(gamma=8.0, guard=False, random_state=0).fit(X, y)
    assert careless.kernel_ == "rbf" and not careless.kept_supervised_
    shares = dict(enumerate(careless.class_ratio_))
    by_hand = clone(careless.solver_).set_params(balance=shares).fit(X, y)
    assert_array_equal(careless.transduction_, by_hand.transduction_)
    assert careless.solver_.balance_tol == 0.01
    assert S3VC(kernel="linear", random_state=0).fit(X, y).solver_.balance_tol == 0.01


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


def test_sparse_rows_get_the_linear_kernel(clusters):
    X, y, _ = clusters
    A = sp.csr_matrix(np.where(np.abs(X) > 1.5, X, 0))
    model = S3VC(random_state=0).fit(A, y)
    assert model.kernel_ == "linear" and model.scaler_ is None
    assert "The kernel is linear, as for all sparse rows." in model.summary()
    dense = S3VC(kernel="linear", scale=False, random_state=0).fit(A.toarray(), y)
    assert_array_equal(model.transduction_, dense.transduction_)
    for true in (True, np.True_):
        with pytest.raises(ValueError, match="scale must be 'auto' or False with sparse rows"):
            S3VC(scale=true).fit(A, y)


def test_a_gram_matrix(clusters):
    X, y, _ = clusters
    kernel = S3VC(kernel="linear", scale=False, random_state=0).fit(X, y)
    gram = S3VC(kernel="precomputed", random_state=0).fit(X @ X.T, y)
    assert_array_equal(gram.transduction_, kernel.transduction_)
    assert_array_equal(gram.predict(X[:9] @ X.T), kernel.predict(X[:9]))


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


def test_a_solver_of_ones_own(clusters):
    X, y, _ = clusters
    own = CCCPS3VM(kernel="linear", s=-0.3, C=3.0)
    model = S3VC(solver=own, guard=False, random_state=0).fit(X, y)
    assert model.kernel_ == "linear" and model.solver_.get_params() == own.get_params()
    assert_array_equal(model.transduction_, own.fit(X, y).transduction_)
    assert model.C_ == 3.0
    changed = S3VC(solver=own, C=0.5, balance=0.4, kernel="rbf", random_state=0).fit(X, y)
    assert changed.solver_.C == changed.C_ == 0.5 and changed.solver_.balance == 0.4
    assert changed.solver_.kernel == "rbf" and changed.solver_.s == -0.3
    assert S3VC(solver=MultiSwitchTSVM(), random_state=0).fit(X, y).kernel_ == "linear"


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


def test_many_rows_get_random_features(clusters, monkeypatch):
    X, y, _ = clusters
    monkeypatch.setattr(s3vm_lib.s3vc, "LARGEST_KERNEL", 100)
    model = S3VC(kernel="rbf", guard=False, random_state=0).fit(X, y)
    assert isinstance(model.solver_, FRS3VM) and "FRS3VM" in model.summary()
    linear = S3VC(kernel="linear", guard=False, random_state=0).fit(X, y)
    assert isinstance(linear.solver_, QNS3VM)


@pytest.mark.parametrize("guard", [True, False])
def test_probabilities(clusters, guard):
    X, y, truth = clusters
    model = S3VC(probability=True, guard=guard, random_state=0).fit(X, y)
    chances = model.predict_proba(X)
    assert_allclose(chances.sum(axis=1), 1)
    assert np.mean((chances[:, 1] > 0.5) == (model.predict(X) == model.classes_[1])) > 0.9
    brier = np.mean((chances[:, 1] - truth) ** 2)
    assert brier < 0.2
    if not guard:
        shares = dict(enumerate(model.class_ratio_))
        by_hand = CalibratedS3VM(clone(model.solver_).set_params(balance=shares)).fit(X, y)
        assert_allclose(chances, by_hand.predict_proba(X), atol=1e-6)


def test_probabilities_are_of_equal_weights(clusters):
    """Others are refused: the calibration would not see them."""
    X, y, _ = clusters
    model = S3VC(probability=True, kernel="linear", guard=False, random_state=0)
    chances = clone(model).fit(X, y).predict_proba(X)
    same = clone(model).fit(X, y, sample_weight=np.ones(240)).predict_proba(X)
    assert_array_equal(same, chances)
    for weight in (np.where(y == 1, 50.0, 1.0), np.full(240, 2.0)):
        with pytest.raises(ValueError, match=r"sample_weight must be None or 1 .* to \d+: the cal"):
            model.fit(X, y, sample_weight=weight)


def test_probability_is_asked_for_before_the_fit(clusters):
    X, y, _ = clusters
    model = S3VC(kernel="linear", guard=False, random_state=0).fit(X, y)
    model.set_params(probability=True)
    with pytest.raises(NotFittedError, match="needs a fit with probability=True"):
        model.predict_proba(X)
    assert model.fit(X, y).predict_proba(X).shape == (240, 2)


def test_refusals_speak_of_classes_and_of_this_estimator(clusters):
    X, y, _ = clusters
    names = np.array(["cat", "dog", -1], dtype=object)[y]
    few = names.copy()
    few[np.flatnonzero(names == "dog")[1:]] = -1
    model = S3VC(probability=True, random_state=0)
    with pytest.raises(ValueError, match=r"y must hold two .* got one of \['dog'\]"):
        model.fit(X, few)
    with pytest.raises(ValueError, match="probability must be False with a precomputed kernel"):
        clone(model).set_params(kernel="precomputed").fit(X @ X.T, names)
    with pytest.raises(ValueError, match="no decision_function, got True and SelfTrainingKNN"):
        clone(model).set_params(solver=SelfTrainingKNN()).fit(X, names)
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
    assert "without unlabeled rows no label is held out" in none.summary()
    assert none.kernel_ == "linear" and "nan" not in none.summary()


def test_what_is_said_of_weights_is_said_of_copies(clusters):
    X, y, _ = clusters
    weight = 1 + np.random.default_rng(0).integers(0, 4, 240)
    model = S3VC(
        kernel="linear", scale=False, solver=QNS3VM(tol=1e-8), guard=False, balance="labels"
    )
    weighted = clone(model).fit(X, y, sample_weight=weight)
    copies = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    said, expected = (m.summary().splitlines()[1:] for m in (weighted, copies))
    assert len(said) == 3 and said == expected


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


def test_gamma_is_handed_on(clusters):
    X, y, _ = clusters
    model = S3VC(kernel="rbf", gamma="auto", guard=False, random_state=0).fit(X, y)
    assert model.model_.gamma_ == pytest.approx(resolve_gamma("auto", X))
