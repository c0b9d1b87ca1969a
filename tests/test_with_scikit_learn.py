"""Missing labels, scikit-learn's tools around our estimators, and probabilities."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.calibration import _SigmoidCalibration
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.metrics import log_loss, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelPropagation
from sklearn.utils.estimator_checks import check_estimator

from s3vm_lib import CCCPS3VM, ILS3VM, QNS3VM, SVM, TSGS3VM, LapSVM, SelfTrainingKNN
from s3vm_lib.calibration import CalibratedS3VM
from s3vm_lib.datasets import hide_labels, make_mixture, make_moons
from s3vm_lib.model_selection import (
    S3VMSearchCV,
    SemiSupervisedKFold,
    WithUnlabeled,
    labeled_accuracy,
    labeled_accuracy_scorer,
)

NAMES = np.array(["ham", "spam"])
ESTIMATORS = {
    "SVM": SVM(gamma=8),
    "QNS3VM": QNS3VM(gamma=8),
    "LapSVM": LapSVM(gamma=8),
    "ILS3VM": ILS3VM(gamma=8),
    "TSGS3VM": TSGS3VM(gamma=8, random_state=0),
    "SelfTrainingKNN": SelfTrainingKNN(),
}


@pytest.fixture(scope="module")
def moons():
    X, truth = make_moons(120, random_state=0)
    return X, truth, hide_labels(truth, 16, random_state=0)


def containers(truth, hidden):
    named = pd.Series(NAMES[truth])
    return {
        "float array": np.where(hidden, np.nan, truth),
        "list of None": [None if h else int(v) for v, h in zip(truth, hidden, strict=True)],
        "float series": pd.Series(truth, dtype=float).mask(hidden),
        "Int64 series": pd.Series(truth, dtype="Int64").mask(hidden),
        "boolean series": pd.Series(truth == 1, dtype="boolean").mask(hidden),
        "object series": named.astype(object).mask(hidden),
        "string series": named.astype("string").mask(hidden),
        "categories": pd.Series(pd.Categorical(named.mask(hidden))),
    }


@pytest.mark.interface
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", containers(np.zeros(1, int), np.zeros(1, bool)))
def test_missing_labels_mark_unlabeled_rows(moons, estimator, kind):
    X, truth, y = moons
    model = ESTIMATORS[estimator]
    marked = clone(model).fit(X, y)
    labels = containers(truth, y == -1)[kind]
    missing = clone(model).fit(X, labels)
    assert missing.classes_.tolist() in ([0, 1], [False, True], ["ham", "spam"])
    position = np.searchsorted(missing.classes_, missing.transduction_)
    np.testing.assert_array_equal(position, marked.transduction_)
    assert missing.score(X, labels) == marked.score(X, y)


def test_missing_labels_in_partial_fit(moons):
    X, truth, y = moons
    labels = np.where(y == -1, np.nan, truth)
    marked, missing = (ILS3VM(gamma=8).fit(X[:60], v[:60]) for v in (y, labels))
    for rows in (slice(60, 61), slice(61, 120)):
        marked.partial_fit(X[rows], y[rows])
        missing.partial_fit(X[rows], labels[rows])
    np.testing.assert_array_equal(missing.decision_function(X), marked.decision_function(X))


def test_two_markers_are_ambiguous(moons):
    X, truth, y = moons
    signs = np.where(truth == 1, 1.0, -1.0)
    signs[y == -1] = np.nan
    with pytest.raises(ValueError, match=r"both -1 and missing labels.*NaN.*unlabeled_mask"):
        QNS3VM().fit(X, signs)
    told = QNS3VM(gamma=8).fit(X, signs, unlabeled_mask=y == -1)
    assert told.classes_.tolist() == [-1, 1]
    np.testing.assert_array_equal(told.transduction_ > 0, QNS3VM(gamma=8).fit(X, y).transduction_)
    lost = int(np.flatnonzero(y == -1)[0])
    mask = y == -1
    mask[lost] = False
    with pytest.raises(ValueError, match=f"missing in row {lost}"):
        QNS3VM().fit(X, signs, unlabeled_mask=mask)


# --- The score ------------------------------------------------------------------------------------


def test_score_leaves_unlabeled_rows_out(moons):
    X, truth, y = moons
    model = SVM(kernel="linear").fit(X, y)
    labeled = y != -1
    share = np.mean(model.predict(X[labeled]) == truth[labeled])
    assert share == model.score(X, y) == labeled_accuracy_scorer(model, X, y)
    weight = np.linspace(1, 2, len(y))
    heavy = np.average((model.predict(X) == truth)[labeled], weights=weight[labeled])
    assert model.score(X, y, weight) == pytest.approx(heavy)
    with pytest.raises(ValueError, match="at least one labeled row"):
        model.score(X, np.full(len(y), -1))
    gram = X @ X.T
    given = SVM(kernel="precomputed").fit(gram, y)
    assert given.score(gram, y) == model.score(X, y)


def test_score_counts_minus_one_where_it_is_a_class(moons):
    X, truth, y = moons
    signs = np.where(truth == 1, 1, -1)
    model = SVM(kernel="linear").fit(X, signs, unlabeled_mask=y == -1)
    assert model.score(X, signs) == np.mean(model.predict(X) == signs)


def test_default_grid_search_is_right_with_unlabeled_rows(moons):
    X, _, y = moons
    grid = {"gamma": [0.1, 1.0, 8.0]}
    model = SVM()  # unlabeled rows in a training part change nothing for it
    ours = GridSearchCV(model, grid, cv=SemiSupervisedKFold(4)).fit(X, y)
    plain = GridSearchCV(model, grid, cv=StratifiedKFold(4)).fit(X, y)
    for k in range(4):
        key = f"split{k}_test_score"
        np.testing.assert_array_equal(plain.cv_results_[key], ours.cv_results_[key])


# --- Tools that number the classes again ----------------------------------------------------------

META = {
    "OneVsRest": OneVsRestClassifier,
    "OneVsOne": OneVsOneClassifier,
    "Bagging": lambda m: BaggingClassifier(m, 3, random_state=0),
    "Voting": lambda m: VotingClassifier([("one", m), ("two", clone(m))]),
    "Stacking": lambda m: StackingClassifier([("one", m)], cv=3),
}


@pytest.mark.parametrize("name", META)
def test_a_tool_that_takes_minus_one_for_a_class_is_met_by_a_warning(moons, name):
    X, _, y = moons
    with pytest.warns(UserWarning, match=r"no unlabeled rows.*WithUnlabeled"):
        META[name](QNS3VM(gamma=8, balance="labels")).fit(X, y)


def test_a_mask_says_that_no_unlabeled_row_is_meant(moons):
    X, truth, _ = moons
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (QNS3VM(gamma=8), SelfTrainingKNN()):
            model.fit(X, truth, unlabeled_mask=np.full(len(truth), False))


@pytest.mark.parametrize("name", META)
def test_the_same_tool_around_a_model_with_its_unlabeled_rows(moons, name):
    X, truth, y = moons
    labeled = y != -1
    carrying = WithUnlabeled(QNS3VM(gamma=8, balance="labels"), X[~labeled])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = META[name](carrying).fit(X[labeled], NAMES[truth[labeled]])
    assert model.classes_.tolist() == ["ham", "spam"]
    alone = QNS3VM(gamma=8, balance="labels").fit(X, y)
    assert np.mean(model.predict(X) == NAMES[alone.predict(X)]) > 0.9


def test_with_unlabeled_is_the_estimator_on_all_rows(moons):
    X, truth, y = moons
    labeled = y != -1
    order = np.concatenate([np.flatnonzero(labeled), np.flatnonzero(~labeled)])
    direct = CCCPS3VM(gamma=8, tol=1e-9).fit(X[order], y[order])
    for pool in (X[~labeled], sp.csr_matrix(X[~labeled]), pd.DataFrame(X[~labeled])):
        model = WithUnlabeled(CCCPS3VM(gamma=8, tol=1e-9), pool).fit(X[labeled], truth[labeled])
        outputs = model.decision_function(X)
        np.testing.assert_allclose(outputs, direct.decision_function(X), atol=1e-6)
        np.testing.assert_array_equal(model.transduction_, direct.transduction_[labeled.sum() :])
    signs = np.where(truth == 1, 1, -1)
    model = WithUnlabeled(CCCPS3VM(gamma=8, tol=1e-9), X[~labeled]).fit(X[labeled], signs[labeled])
    assert model.classes_.tolist() == [-1, 1]
    np.testing.assert_allclose(model.decision_function(X), direct.decision_function(X), atol=1e-6)


class Hiding(StandardScaler):
    """Refuses to be shown more than one label of the rows after the first 60."""

    def fit(self, X, y=None, sample_weight=None):
        assert y is None or np.unique(y[60:]).size == 1
        return super().fit(X)


@pytest.mark.filterwarnings("ignore::s3vm_lib.FitWarning")
def test_minus_one_is_a_class_at_the_end_of_a_pipeline_too(moons):
    X, truth, _ = moons
    hidden, signs = np.arange(120) >= 60, 2 * truth - 1
    y = np.where(hidden, -1, truth)
    for pipe in (
        make_pipeline(StandardScaler(), QNS3VM()),
        make_pipeline(make_pipeline(Hiding()), make_pipeline("passthrough", QNS3VM())),
    ):
        grid = {next(name for name in pipe.get_params() if name.endswith("qns3vm__C")): [1.0]}
        for coded, model in (
            (CalibratedS3VM(pipe), CalibratedS3VM(pipe)),
            (S3VMSearchCV(pipe, grid, cv=2), S3VMSearchCV(pipe, grid, cv=2)),
        ):
            coded.fit(X, y)
            model.fit(X, signs, unlabeled_mask=hidden)
            np.testing.assert_array_equal(model.predict(X), 2 * coded.predict(X) - 1)
        carrying = WithUnlabeled(pipe, X[hidden])
        coded = clone(carrying).fit(X[~hidden], truth[~hidden])
        found = carrying.fit(X[~hidden], signs[~hidden]).predict(X)
        np.testing.assert_array_equal(found, 2 * coded.predict(X) - 1)


def test_folds_that_know_the_mask_test_rows_of_a_class_minus_one(moons):
    X, truth, _ = moons
    y, hidden = np.array([-1, 1, 2])[truth + (X[:, 0] > 1)], np.arange(120) >= 60
    folds, seen = SemiSupervisedKFold(3), []

    def scorer(model, X, y):
        seen.extend(y.tolist())
        return model.score(X, y)

    given = {"params": {"unlabeled_mask": hidden}, "scoring": scorer}
    cross_val_score(SVM(), X, y, cv=folds, **given)
    assert -1 not in seen  # the folds are not told
    seen.clear()
    cv = list(folds.split(X, y, unlabeled_mask=hidden))
    scores = cross_val_score(SVM(), X, y, cv=cv, **given)
    assert sorted(seen) == sorted(y[~hidden]) and scores.min() > 0.5
    with sklearn.config_context(enable_metadata_routing=True):
        model = SVM().set_fit_request(unlabeled_mask=True)
        routed = cross_val_score(model, X, y, cv=folds, params=given["params"])
    np.testing.assert_array_equal(routed, scores)


def test_with_unlabeled_around_an_estimator_of_scikit_learn(moons):
    X, truth, y = moons
    labeled = y != -1
    model = WithUnlabeled(LabelPropagation(), X[~labeled]).fit(X[labeled], truth[labeled])
    direct = LabelPropagation().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), direct.predict_proba(X), atol=1e-3)
    assert not hasattr(WithUnlabeled(SVM(), X), "predict_proba")


def test_with_unlabeled_names_what_is_wrong(moons):
    X, truth, _ = moons
    with pytest.raises(ValueError, match="X_unlabeled must have the 2 features of X, got 1"):
        WithUnlabeled(SVM(), X[:, :1]).fit(X, truth)
    with pytest.raises(ValueError, match="X_unlabeled contains NaN"):
        WithUnlabeled(SVM(), np.full((3, 2), np.nan)).fit(X, truth)
    with pytest.raises(ValueError, match="'estimator' parameter"):
        WithUnlabeled("svm", X).fit(X, truth)
    empty = WithUnlabeled(SVM(), X[:0]).fit(X, truth)
    np.testing.assert_array_equal(empty.predict(X), SVM().fit(X, truth).predict(X))


def test_with_unlabeled_asks_for_the_columns_of_the_rows(moons):
    X, truth, y = moons
    frame, labeled = pd.DataFrame(X, columns=["a", "b"]), y != -1
    pool, signs = frame[~labeled], truth[labeled]
    direct = WithUnlabeled(SVM(), X[~labeled]).fit(X[labeled], signs)
    model = WithUnlabeled(SVM(), pool).fit(frame[labeled], signs)
    np.testing.assert_array_equal(model.decision_function(frame), direct.decision_function(X))
    for other in (pool[["b", "a"]], pool.rename(columns={"b": "c"})):
        with pytest.raises(ValueError, match=r"the columns of X, \['a', 'b'\], got"):
            WithUnlabeled(SVM(), other).fit(frame[labeled], signs)
    with warnings.catch_warnings():  # tools of scikit-learn make arrays of tables
        warnings.simplefilter("error")
        WithUnlabeled(SVM(), pool).fit(X[labeled], signs)
        WithUnlabeled(SVM(), X[~labeled]).fit(frame[labeled], signs)


def test_with_unlabeled_takes_a_mask_for_further_rows(moons):
    X, truth, y = moons
    signs, hidden = np.where(y < 0, -1, 2 * truth - 1), y < 0
    rows = np.arange(120)
    direct = CCCPS3VM(gamma=8).fit(X, signs, unlabeled_mask=hidden | (rows >= 100))
    for labels in (signs, np.where(hidden, np.nan, signs), signs.astype(str)):
        model = WithUnlabeled(CCCPS3VM(gamma=8), X[100:])
        model.fit(X[:100], labels[:100], unlabeled_mask=hidden[:100])
        outputs = model.decision_function(X)
        np.testing.assert_array_equal(outputs, direct.decision_function(X))
        found = model.classes_[(direct.transduction_[100:] > 0).astype(int)]
        np.testing.assert_array_equal(model.transduction_, found)
    codes = np.where(hidden, 0, truth)  # an estimator without a mask
    model = WithUnlabeled(LabelPropagation(), X[100:])
    model.fit(X[:100], codes[:100], unlabeled_mask=hidden[:100])
    expected = LabelPropagation().fit(X, np.where(hidden | (rows >= 100), -1, truth))
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), rtol=1e-9)
    assert model.score(X, codes, unlabeled_mask=hidden) == expected.score(X[~hidden], y[~hidden])


def test_with_unlabeled_says_who_takes_no_strings(moons):
    X, truth, y = moons
    labeled = y != -1
    for labels in (NAMES[truth], truth == 1):
        model = WithUnlabeled(LabelPropagation(), X[~labeled])
        if labels.dtype == bool:
            assert model.fit(X[labeled], labels[labeled]).classes_.tolist() == [False, True]
            continue
        with pytest.raises(TypeError, match=r"LabelPropagation takes no -1 .*encode_labels"):
            model.fit(X[labeled], labels[labeled])
    with pytest.raises(ValueError, match=r"a label in every row .* missing in row 2"):
        model.fit(X[labeled], np.ma.array(truth[labeled], mask=np.arange(labeled.sum()) == 2))


def test_masks_are_routed_to_splitters_and_scores(moons):
    X, truth, y = moons
    hidden = y < 0
    signs = np.where(hidden, -1, 2 * truth - 1)  # -1 is a class, and what hidden rows hold
    folds = list(SemiSupervisedKFold(4).split(X, y))
    expected = cross_val_score(SVM(gamma=8, C=0.1), X, y, cv=folds, scoring=labeled_accuracy_scorer)
    with pytest.raises(ValueError, match=r"two labeled classes or more, got \[1\].*unlabeled_mask"):
        cross_val_score(
            SVM(gamma=8, C=0.1),
            X,
            signs,
            cv=SemiSupervisedKFold(4),
            params={"unlabeled_mask": hidden},
        )
    by_hand = list(SemiSupervisedKFold(4).split(X, signs, unlabeled_mask=hidden))
    for mine, other in zip(by_hand, folds, strict=True):
        np.testing.assert_array_equal(mine[0], other[0])
        np.testing.assert_array_equal(mine[1], other[1])
    found = cross_val_score(
        SVM(gamma=8, C=0.1), X, signs, cv=by_hand, params={"unlabeled_mask": hidden}
    )
    np.testing.assert_array_equal(found, expected)
    metric = make_scorer(labeled_accuracy)
    with sklearn.config_context(enable_metadata_routing=True):
        model = SVM(gamma=8, C=0.1).set_fit_request(unlabeled_mask=True)
        metric.set_score_request(unlabeled_mask=True)
        for scoring in (None, metric):
            found = cross_val_score(
                model, X, signs, cv=SemiSupervisedKFold(4), scoring=scoring,
                params={"unlabeled_mask": hidden},
            )  # fmt: skip
            np.testing.assert_array_equal(found, expected)
        # Of scikit-learn's folds hidden rows are part, and the score leaves them out.
        search = GridSearchCV(
            model.set_score_request(unlabeled_mask=True), {"C": [1.0, 10.0]}, cv=4
        ).fit(X, signs, unlabeled_mask=hidden)
        by_codes = GridSearchCV(SVM(gamma=8, C=0.1), {"C": [1.0, 10.0]}, cv=search.cv)
        by_codes = by_codes.set_params(cv=list(StratifiedKFold(4).split(X, signs))).fit(X, y)
        np.testing.assert_array_equal(
            search.cv_results_["mean_test_score"], by_codes.cv_results_["mean_test_score"]
        )
        clone(SemiSupervisedKFold(3).set_split_request(unlabeled_mask=False), safe=False)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_score_with_a_mask_is_that_of_the_other_rows(moons, wrapped):
    X, truth, y = moons
    hidden, signs = y < 0, np.where(y < 0, -1, 2 * truth - 1)
    model = SVM(C=0.1)
    if wrapped:
        model = S3VMSearchCV(model, {"C": [0.1]}, scoring="balanced_accuracy", cv=2)
    model.fit(X, signs, unlabeled_mask=hidden)
    alone = model.score(X[~hidden], signs[~hidden])
    for labels in (signs, signs.tolist(), np.where(hidden, np.nan, signs), pd.Series(signs)):
        assert model.score(X, labels, unlabeled_mask=hidden) == alone != model.score(X, signs)
    with pytest.raises(ValueError, match="unlabeled_mask must be a boolean array"):
        model.score(X, signs, unlabeled_mask=hidden[1:])
    with pytest.raises(ValueError, match=f"missing in row {np.flatnonzero(~hidden)[0]}"):
        model.score(X, np.where(hidden, 1, np.nan), unlabeled_mask=hidden)


def test_a_failed_fit_leaves_the_one_before(moons):
    X, truth, _ = moons
    model = WithUnlabeled(SVM(), X).fit(X, truth)
    before = vars(model).copy()
    with pytest.raises(ValueError, match="the 1 features of X"):
        model.fit(X[:, :1], truth)
    assert vars(model) == before
    np.testing.assert_array_equal(model.predict(X), before["estimator_"].predict(X))


# --- Probabilities --------------------------------------------------------------------------------


def test_the_sigmoid_is_platts_on_outputs_of_folds_left_out(moons):
    X, truth, y = moons
    labeled = y != -1
    model = CalibratedS3VM(QNS3VM(gamma=8, balance="labels"), cv=4).fit(X, y)
    carrying = WithUnlabeled(QNS3VM(gamma=8, balance="labels"), X[~labeled])
    outputs = cross_val_predict(
        carrying, X[labeled], truth[labeled], cv=StratifiedKFold(4), method="decision_function"
    )
    platt = _SigmoidCalibration().fit(outputs, truth[labeled])
    expected = platt.predict(model.estimator_.decision_function(X))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(model.transduction_[labeled], truth[labeled])


@pytest.mark.filterwarnings("error")
def test_there_are_no_more_folds_than_labels_of_the_rarer_class(moons):
    X, truth, _ = moons
    y = np.full(len(truth), -1)
    for k, count in ((0, 9), (1, 3)):
        rows = np.flatnonzero(truth == k)[:count]
        y[rows] = k
    chances = [CalibratedS3VM(SVM(gamma=8), cv=cv).fit(X, y).predict_proba(X) for cv in (3, 5, 50)]
    assert np.array_equal(chances[0], chances[1]) and np.array_equal(chances[0], chances[2])


def test_probabilities_say_more_than_the_share_of_the_classes():
    X, truth = make_mixture(1000, random_state=0)
    for method, labels in ("sigmoid", 100), ("isotonic", 500):
        y = hide_labels(truth, labels, random_state=0)
        hidden = y == -1
        model = CalibratedS3VM(SVM(gamma=1 / 32), method=method).fit(X, y)
        found = log_loss(truth[hidden], model.predict_proba(X[hidden]))
        share = np.mean(truth[~hidden])
        assert found < log_loss(truth[hidden], np.full(hidden.sum(), share)), method


@pytest.mark.parametrize("names", [(1, 2), (-1, 1), ("ham", "spam")])
def test_dicts_of_a_calibrated_machine_go_by_class_label(moons, names):
    X, truth, y = moons

    def model(first, second):
        weights, shares = {second: 3.0}, {first: 0.4, second: 0.6}
        return CalibratedS3VM(QNS3VM(gamma=8, class_weight=weights, balance=shares))

    expected = model(0, 1).fit(X, y)
    found = model(*names).fit(X, np.array(names, dtype=object)[truth], unlabeled_mask=y == -1)
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(found.estimator_.classes_, names)
    np.testing.assert_array_equal(found.transduction_ == names[1], expected.transduction_ == 1)


def test_probabilities_of_three_classes():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 40)
    X = rng.normal(size=(120, 2)) + 4 * np.array([[0, 0], [1, 0], [0, 1]])[truth]
    y = np.where(np.arange(120) % 4 == 0, truth, -1)
    model = CalibratedS3VM(QNS3VM(kernel="linear", balance="labels"))
    model.fit(X, NAMES_3[truth], unlabeled_mask=y == -1)
    chances = model.predict_proba(X)
    assert chances.shape == (120, 3)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert np.mean(model.predict(X) == NAMES_3[truth]) > 0.85
    assert model.score(X, NAMES_3[truth]) == np.mean(model.predict(X) == NAMES_3[truth])


NAMES_3 = np.array(["a", "b", "c"])


def test_calibration_names_what_is_wrong(moons):
    X, truth, y = moons
    one = np.full(len(y), -1)
    one[[0, 1, 2]] = truth[[0, 1, 2]]
    lonely = np.bincount(truth[:3]).argmin()
    with pytest.raises(ValueError, match=f"two labeled rows of every class.*one of .*{lonely}"):
        CalibratedS3VM(SVM()).fit(X, one)
    with pytest.raises(ValueError, match="cv must be at least 2, got 1"):
        CalibratedS3VM(SVM(), cv=1).fit(X, y)
    with pytest.raises(ValueError, match="kernel='precomputed'"):
        CalibratedS3VM(SVM(kernel="precomputed")).fit(X @ X.T, y)
    with pytest.raises(ValueError, match="'method' parameter"):
        CalibratedS3VM(SVM(), method="beta").fit(X, y)
    model = CalibratedS3VM(SVM()).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="two labeled rows"):
        model.fit(X, one)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_the_conventions_of_scikit_learn():
    exempt = {"check_classifiers_classes": "it fits the labels {-1, 1}; -1 means unlabeled"}
    check_estimator(CalibratedS3VM(SVM(max_iter=1000)), expected_failed_checks=exempt)
