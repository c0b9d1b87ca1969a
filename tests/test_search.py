"""`S3VMSearchCV` against scikit-learn's ``GridSearchCV``, and what it shares against fits alone."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reported import assert_equal, attributes, numbers
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, FitFailedWarning
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils.estimator_checks import parametrize_with_checks

from s3vm_lib import (
    CCCPS3VM,
    DAS3VM,
    QNS3VM,
    SVM,
    LapSVM,
    MultiSwitchTSVM,
    NewtonS3VM,
    S3VMLight,
)
from s3vm_lib.base.preparation import Preparation
from s3vm_lib.datasets import hide_labels, make_g2c, make_moons
from s3vm_lib.kernels import resolve_gamma
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.model_selection import (
    LabeledMetric,
    PreferSmallest,
    S3VMSearchCV,
    SemiSupervisedKFold,
    labeled_accuracy_scorer,
)
from s3vm_lib.model_selection._search import default_grid
from s3vm_lib.smooth import ANNEALING
from s3vm_lib.smooth._annealing import Continuation
from s3vm_lib.utils.threads import thread_count

GRID = {"C": [10, 1, 0.1], "C_star": [0.02, 0.2], "gamma": [1.0, 8.0]}
# Two values of each parameter that `Preparation` may change between fits.
VALUES = {
    "C": (3.0, 0.1),
    "C_star": (0.05, 0.5),
    "labeled_loss": ("squared_hinge", LabeledLoss("modified_logistic", 5.0)),
    "unlabeled_loss": ("squared_symmetric_hinge", "gaussian"),
    "s": (0.5, 0.9),
    "annealing": ([0.5, 1.0], [0.1, 1.0]),
    "tol": (1e-2, 1e-4),
    "ftol": (1e-3, 1e-6),
    "max_iter": (1, 50),
    "max_inner_iter": (5, 10_000),
    "shrinking": (False, True),
    "annealing_start": (1e-2, 1e-4),
    "annealing_factor": (4.0, 1.5),
    "annealing_ratio": ("equal", "balanced"),
}


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(80, random_state=0)
    return X, hide_labels(y, 20, random_state=0)


def peer(estimator, grid, X, y, cv=5):
    names = [name for name in ("C", "C_star", "gamma") if name in grid]
    search = GridSearchCV(
        estimator,
        grid,
        cv=SemiSupervisedKFold(cv),
        scoring=labeled_accuracy_scorer,
        refit=PreferSmallest(*names),
    )
    return search.fit(X, y)


def assert_same(search, other):
    found, wanted = search.cv_results_, other.cv_results_
    assert found["params"] == wanted["params"]
    for key in set(found) | set(wanted):
        if key.startswith("param_"):
            assert found[key].tolist() == wanted[key].tolist()
        elif "test" in key:
            np.testing.assert_array_equal(found[key], wanted[key], err_msg=key)
        else:
            assert key in wanted and key in found
    assert search.best_params_ == other.best_params_
    assert search.best_score_ == other.cv_results_["mean_test_score"][other.best_index_]
    assert search.best_index_ == other.best_index_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("estimator", "names", "preparations"),
    [
        (SVM(), ("C", "gamma"), 10),
        (QNS3VM(balance="labels", max_iter=50), ("C", "C_star", "gamma"), 10),
        (NewtonS3VM(balance="labels"), ("C", "C_star"), 5),
        (CCCPS3VM(balance="labels"), ("C", "C_star", "gamma"), 10),
        (S3VMLight(balance="labels", gamma=8.0), ("C", "C_star"), 10),
        (MultiSwitchTSVM(balance="labels"), ("C_star",), 5),
        (LapSVM(), ("gamma",), 10),
        (LabelSpreading(), ("gamma",), 10),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else None,
)
def test_choices_and_scores_are_those_of_grid_search(moons, estimator, names, preparations):
    X, y = moons
    grid = {name: GRID[name] for name in names}
    search = S3VMSearchCV(estimator, grid).fit(X, y)
    other = peer(estimator, grid, X, y)
    assert_same(search, other)
    assert search.n_preparations_ == preparations and search.n_splits_ == 5
    np.testing.assert_array_equal(search.predict(X), other.predict(X))
    assert search.score(X, y) == other.score(X, y)


ESTIMATORS = [SVM, CCCPS3VM, QNS3VM, NewtonS3VM, S3VMLight, MultiSwitchTSVM, DAS3VM]


KEPT = [
    *((cls, {"balance": "labels"} if cls is not SVM else {}, None) for cls in ESTIMATORS),
    *((CCCPS3VM, {"balance": name}, {"C", "C_star"}) for name in ("auto", "bbse", "em")),
    (QNS3VM, {"balance": "auto"}, {"C", "C_star"}),
    (QNS3VM, {"balance": "labels", "balance_tol": 0.05}, {"C", "C_star", "tol"}),
    *((cls, {"balance": None}, {"C_star"}) for cls in (CCCPS3VM, QNS3VM, NewtonS3VM)),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::s3vm_lib.FitWarning")
@pytest.mark.parametrize(
    ("cls", "options", "name"),
    [(cls, opts, name) for cls, opts, names in KEPT for name in sorted(names or cls._late)],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else None,
)
def test_a_prepared_fit_is_a_fit_whatever_came_before(cls, options, name):
    """Settings that differ in one entry alone, in both orders, and the first one once more."""
    X, y = make_moons(40, random_state=0)
    y = hide_labels(y, 14, random_state=0)
    values = VALUES[name]
    if (cls, name) == (CCCPS3VM, "unlabeled_loss"):
        values = ("symmetric_hinge", "symmetric_ramp")
    values = (*values, getattr(cls(), name), *((0.0,) if name == "C_star" else ()))
    alone = {repr(v): cls(**options, **{name: v}).fit(X, y) for v in values}
    alone = {key: numbers(attributes(model)) for key, model in alone.items()}
    for order in (values, values[::-1]):
        prepared = Preparation(cls(**options), X, y)
        for value in (*order, order[0]):
            found = attributes(prepared.fit(**{name: value}))
            expected = {k: v for k, v in alone[repr(value)].items() if k in numbers(found)}
            assert len(expected) > 5
            assert_equal(numbers(found), expected)


@pytest.mark.parametrize("cls", [SVM, CCCPS3VM, QNS3VM])
def test_what_is_kept_between_fits_changes_nothing(moons, cls):
    X, y = moons
    y = np.where((y == 0) & (X[:, 0] > 0.5), 2, y)  # three machines
    options = {"gamma": 8.0} if cls is SVM else {"gamma": 8.0, "balance": "labels"}
    prepared = Preparation(cls(**options), X, y)
    weight = np.where(y == 1, 2.0, 1.0)
    for C, C_star in ((1.0, 0.1), (1.0, 0.5), (10.0, 0.5), (0.01, 0.5), (1.0, 0.0), (1.0, 0.1)):
        settings = {"C": C} if cls is SVM else {"C": C, "C_star": C_star}
        alone = cls(**options, **settings).fit(X, y)
        model = prepared.fit(**settings)
        for rows in (X[:9], X[9:20], X[:9]):
            np.testing.assert_array_equal(prepared.predict(rows), alone.predict(rows))
        np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))
        assert repr(model.history_) == repr(alone.history_) and model.n_iter_ == alone.n_iter_
        alone.fit(X, y, weight)
        model = prepared.fit(sample_weight=weight, **settings)
        np.testing.assert_array_equal(model.predict(X), alone.predict(X))


def test_a_prepared_fit_checks_its_parameters(moons):
    X, y = moons
    with pytest.raises(ValueError, match="largest kernel value"):
        Preparation(SVM(), X, y, np.full(80, 1e25)).fit(C=1e40)
    prepared = Preparation(SVM(), X, y)
    with pytest.raises(ValueError, match="'C' parameter of SVM"):
        prepared.fit(C=-1.0)
    prepared.fit(C=2.0)
    assert prepared.estimator.problem_.C == 2.0


def test_a_preparation_has_the_threads_of_its_estimator(moons, monkeypatch):
    X, y = moons
    seen = {name: set() for name in ("_validated", "_prepare", "_ratios", "_fit_binary")}

    def watch(name):
        before = getattr(QNS3VM, name)

        def note(self, *arguments):
            seen[name].add(thread_count())
            return before(self, *arguments)

        monkeypatch.setattr(QNS3VM, name, note)

    for name in seen:
        watch(name)
    Preparation(QNS3VM(n_jobs=2, balance="labels"), X, y).fit(C=3.0)
    assert all(counts == {2} for counts in seen.values())
    assert thread_count() == 1


def test_multi_class(moons):
    X, _ = moons
    truth = (X[:, 0] > 0.3).astype(int) + (X[:, 1] > 0.5)
    y = hide_labels(truth, 24, random_state=1)
    grid = {"C": [1, 10], "C_star": [0.1, 1], "gamma": [1, 8]}
    for exact in (True, False):
        search = S3VMSearchCV(QNS3VM(balance="labels"), grid, cv=3, exact=exact).fit(X, y)
        assert search.classes_.tolist() == [0, 1, 2]
        if exact:
            assert_same(search, peer(QNS3VM(balance="labels"), grid, X, y, cv=3))


def test_a_grid_leaves_nothing_to_the_next_one(moons):
    X, y = moons
    model = QNS3VM(balance="labels", gamma=8.0)
    grid = [{"C": [1000.0, 0.001]}, {"C_star": [0.01, 0.5]}]
    options = {"cv": SemiSupervisedKFold(5), "scoring": labeled_accuracy_scorer}
    found = [kind(model, grid, **options).fit(X, y) for kind in (S3VMSearchCV, GridSearchCV)]
    ours, wanted = (search.cv_results_["mean_test_score"] for search in found)
    np.testing.assert_array_equal(ours, wanted)
    assert wanted[1] != wanted[2]  # C is back at its default


@pytest.mark.parametrize(
    "estimator",
    [QNS3VM(balance="labels", kernel="linear"), CCCPS3VM(balance="labels", kernel="linear")],
)
def test_sparse_rows(moons, estimator):
    X, y = sp.csr_matrix(moons[0]), moons[1]
    grid = {"C": [1, 10], "C_star": [0.1, 1]}
    search = S3VMSearchCV(estimator, grid).fit(X, y)
    assert_same(search, peer(estimator, grid, X, y))
    assert search.decision_function(X).shape == (80,)


def test_precomputed_kernel(moons):
    X, y = moons
    K = QNS3VM(balance="labels", gamma=8.0).fit(X, y).problem_.kernel.gram(X)
    grid = {"C": [1, 10], "C_star": [0.1, 1]}
    search = S3VMSearchCV(QNS3VM(balance="labels", kernel="precomputed"), grid).fit(K, y)
    rows = S3VMSearchCV(QNS3VM(balance="labels", gamma=8.0), grid).fit(X, y)
    assert search.best_params_ == rows.best_params_
    scores = [s.cv_results_["mean_test_score"] for s in (search, rows)]
    np.testing.assert_array_equal(*scores)


def test_several_methods_in_one_search(moons):
    X, y = moons
    methods = {"svm": SVM(), "qn": QNS3VM(balance="labels")}
    search = S3VMSearchCV(methods, GRID).fit(X, y)
    params = search.cv_results_["params"]
    assert len(params) == 6 + 12
    assert sum(p["estimator"] == "svm" and "C_star" not in p for p in params) == 6
    assert np.ma.is_masked(search.cv_results_["param_C_star"][0])
    for name in methods:
        alone = S3VMSearchCV(
            methods[name], {k: v for k, v in GRID.items() if name == "qn" or k != "C_star"}
        ).fit(X, y)
        mine = [k for k, p in enumerate(params) if p["estimator"] == name]
        scores = search.cv_results_["mean_test_score"][mine]
        np.testing.assert_array_equal(scores, alone.cv_results_["mean_test_score"])
    assert type(search.best_estimator_) is type(methods[search.best_params_["estimator"]])


def test_ties_go_to_the_smallest_values():
    """On rows that every setting separates, the choice is the rule's alone."""
    X = np.r_[np.linspace(-3, -2, 20), np.linspace(2, 3, 20)][:, None]
    y = np.where(np.arange(40) % 4 == 0, np.repeat([0, 1], 20), -1)
    grid = {"C": [10, 1], "C_star": [None, 0.5, 0.1], "gamma": [2.0, 1.0]}
    search = S3VMSearchCV(QNS3VM(balance="labels"), grid, cv=2).fit(X, y)
    assert (search.cv_results_["mean_test_score"] == 1).all()
    assert search.best_params_ == {"C": 1, "C_star": 0.1, "gamma": 1.0}
    # A method without C* trusts unlabeled rows least; names do not take part.
    both = S3VMSearchCV(
        {"qn": QNS3VM(balance="labels"), "svm": SVM()}, {**grid, "gamma": ["scale", 1.0]}, cv=2
    )
    assert both.fit(X, y).best_params_ == {"estimator": "svm", "C": 1, "gamma": "scale"}
    last = S3VMSearchCV(
        QNS3VM(balance="labels"), grid, cv=2, refit=lambda results: len(results["params"]) - 1
    )
    assert last.fit(X, y).best_params_ == {"C": 1, "C_star": 0.1, "gamma": 1.0}
    first = S3VMSearchCV(QNS3VM(balance="labels"), grid, cv=2, refit=PreferSmallest())
    assert first.fit(X, y).best_params_ == {"C": 10, "C_star": None, "gamma": 2.0}


# Both searches stop their fits after the same fifty iterations, few for labels that are noise.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("estimator", [SVM(), QNS3VM(balance="labels", max_iter=50)])
def test_a_race_ends_in_the_setting_of_the_whole_search(estimator, seed):
    """Also where the labels are noise, and no setting is right everywhere."""
    X, y = make_moons(70, random_state=seed)
    if seed % 2:
        y = np.random.default_rng(seed).permutation(y)
    y = hide_labels(y, 20, random_state=seed)
    grid = {"C": [10, 1, 0.1], "gamma": [8.0, 1.0, 0.1]}
    if seed > 3:
        grid = [{"C": [1, 0.1], "gamma": [1.0]}, {"C": [1, 10], "gamma": [8.0]}]
    race = S3VMSearchCV(estimator, grid, exact="choice").fit(X, y)
    whole = S3VMSearchCV(estimator, grid).fit(X, y)
    assert race.best_index_ == whole.best_index_ and race.best_params_ == whole.best_params_
    assert race.best_score_ == whole.best_score_
    assert race.n_preparations_ <= whole.n_preparations_
    tried = np.array([race.cv_results_[f"split{k}_test_score"] for k in range(5)])
    known = np.array([whole.cv_results_[f"split{k}_test_score"] for k in range(5)])
    assert np.isnan(tried).any()
    np.testing.assert_array_equal(tried[~np.isnan(tried)], known[~np.isnan(tried)])
    np.testing.assert_array_equal(race.decision_function(X), whole.decision_function(X))


def test_a_race_between_methods_with_failing_fits(moons):
    X, y = moons
    methods = {"S3VM": QNS3VM(balance="labels"), "SVM": SVM(), "other": LabelSpreading()}
    race = S3VMSearchCV(methods, GRID, exact="choice").fit(X, y)
    assert race.best_params_ == S3VMSearchCV(methods, GRID).fit(X, y).best_params_
    bad = S3VMSearchCV(SVM(), {"C": [-1, 1]}, exact="choice")
    with pytest.warns(FitFailedWarning, match="1 of 6 fits failed"):
        assert bad.fit(X, y).best_params_ == {"C": 1}
    with pytest.raises(ValueError, match=r"2 of 2 fits failed, the first with .*'C' parameter"):
        bad.set_params(param_grid={"C": [-1, -2]}).fit(X, y)
    for name, value in (
        ("scoring", "f1"),
        ("criterion", "stability"),
        ("refit", PreferSmallest("C")),
        ("error_score", 2.0),
    ):
        wrong = S3VMSearchCV(SVM(), {"C": [1]}, exact="choice").set_params(**{name: value})
        with pytest.raises(ValueError, match=f"needs the default of {name}"):
            wrong.fit(X, y)


def test_a_copy_of_the_scorer_is_the_scorer(moons):
    X, y = moons
    race = S3VMSearchCV(SVM(), {"C": [1, 10]}, exact="choice", scoring=labeled_accuracy_scorer)
    for copy in (clone(race), pickle.loads(pickle.dumps(race))):
        assert copy.scoring is not labeled_accuracy_scorer
        assert copy.fit(X, y).best_params_ == race.fit(X, y).best_params_
    assert LabeledMetric(f1_score) == LabeledMetric(f1_score) != LabeledMetric(len)
    for other in (LabeledMetric(f1_score), f1_score):
        race.set_params(scoring=make_scorer(other))
        with pytest.raises(ValueError, match="needs the default of scoring"):
            clone(race).fit(X, y)


def test_stability_decides_among_ties(moons):
    X, y = moons
    search = S3VMSearchCV(QNS3VM(balance="labels"), GRID, criterion="stability").fit(X, y)
    plain = S3VMSearchCV(QNS3VM(balance="labels"), GRID).fit(X, y)
    mean, found = search.cv_results_["mean_test_score"], search.cv_results_["stability"]
    np.testing.assert_array_equal(mean, plain.cv_results_["mean_test_score"])
    unlabeled = np.flatnonzero(y == -1)
    for setting, value in list(zip(search.cv_results_["params"], found, strict=True))[::5]:
        labels = [
            QNS3VM(balance="labels", **setting).fit(X[train], y[train]).predict(X[unlabeled])
            for train, _ in SemiSupervisedKFold(5).split(X, y)
        ]
        same = [np.mean(labels[i] == labels[j]) for i in range(5) for j in range(i)]
        assert value == pytest.approx(np.mean(same), abs=1e-12)
    tied = mean >= mean.max() - 1e-12
    assert tied.sum() > 1 and np.ptp(found[tied]) > 0
    assert tied[search.best_index_] and found[search.best_index_] == found[tied].max()
    folds = [(np.roll(train, 9)[::-1], test) for train, test in SemiSupervisedKFold(5).split(X, y)]
    search.set_params(cv=folds, param_grid={"C": [1], "gamma": [1.0, 8.0]}).fit(X, y)
    unsorted = search.cv_results_["params"], search.cv_results_["stability"]
    for setting, value in zip(*unsorted, strict=True):
        labels = [
            QNS3VM(balance="labels", **setting).fit(X[train], y[train]).predict(X[unlabeled])
            for train, _ in folds
        ]
        same = [np.mean(labels[i] == labels[j]) for i in range(5) for j in range(i)]
        assert value == pytest.approx(np.mean(same), abs=1e-12)
    with pytest.raises(ValueError, match="cv must have two folds or more for criterion='stab"):
        clone(search).set_params(cv=folds[:1]).fit(X, y)
    own = S3VMSearchCV(LabelSpreading(), {"gamma": [1, 8]}, criterion="stability").fit(X, y)
    assert (own.cv_results_["stability"] <= 1).all()
    with pytest.raises(ValueError, match="must keep all unlabeled rows"):
        rows = np.flatnonzero(y != -1)
        S3VMSearchCV(SVM(), {"C": [1]}, cv=[(rows[1:], rows[:1])], criterion="stability").fit(X, y)


@pytest.mark.parametrize("exact", [True, "choice", False])
def test_arrays_in_a_grid(moons, exact):
    X, y = moons
    steps = [np.array([0.5, 1.0]), np.array([0.1, 1.0])]
    model = QNS3VM(balance="labels")
    search = S3VMSearchCV(model, {"annealing": steps}, exact=exact).fit(X, y)
    lists = S3VMSearchCV(model, {"annealing": [s.tolist() for s in steps]}, exact=exact).fit(X, y)
    assert len(search.cv_results_["params"]) == 2
    assert search.best_params_["annealing"] is steps[lists.best_index_]
    for key in ("mean_test_score", "rank_test_score"):
        np.testing.assert_array_equal(search.cv_results_[key], lists.cv_results_[key])
    twice = S3VMSearchCV({"a": model}, [{"annealing": steps}, {"annealing": steps[:1]}], cv=2)
    assert len(twice.fit(X, y).cv_results_["params"]) == 2


def test_default_grid(moons):
    X, y = moons
    search = S3VMSearchCV(QNS3VM(balance="labels"), cv=2).fit(X, y)
    params = search.cv_results_["params"]
    assert len(params) == 36 and search.n_preparations_ == 2 * 3
    scale = resolve_gamma("scale", X)
    shares = {round(p["C_star"] / (p["C"] * 20 / 60), 9) for p in params}
    assert shares == {0.01, 0.1, 1.0}
    assert {round(p["gamma"] / scale, 9) for p in params} == {0.1, 1.0, 10.0}
    assert len(S3VMSearchCV(SVM(kernel="linear"), cv=2).fit(X, y).cv_results_["params"]) == 4
    with pytest.raises(ValueError, match="param_grid must be given for LabelSpreading"):
        S3VMSearchCV(LabelSpreading()).fit(X, y)
    weight = 1 + np.arange(len(y)) % 3
    weighted = default_grid(QNS3VM(), X, y, weight.astype(float))
    many, labels = np.repeat(X, weight, 0), np.repeat(y, weight)
    copied = default_grid(QNS3VM(), many, labels, np.ones(len(labels)))
    for one, other in zip(weighted, copied, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_allclose(one[name], other[name])


def test_weights_are_copies(moons):
    X, y = moons
    weight = np.where(y == -1, np.random.default_rng(0).integers(0, 3, y.size), 1)
    grid = {"C": [1, 10], "C_star": [0.1, 1]}
    rows = np.repeat(np.arange(y.size), weight)
    weighted = S3VMSearchCV(QNS3VM(balance="labels", kernel="linear"), grid).fit(
        X, y, sample_weight=weight
    )
    copies = S3VMSearchCV(QNS3VM(balance="labels", kernel="linear"), grid).fit(X[rows], y[rows])
    scores = [s.cv_results_["mean_test_score"] for s in (weighted, copies)]
    np.testing.assert_array_equal(*scores)
    outputs = [s.decision_function(X) for s in (weighted, copies)]
    np.testing.assert_allclose(*outputs, atol=1e-3)
    with pytest.raises(ValueError, match="LabelSpreading takes no sample_weight"):
        S3VMSearchCV(LabelSpreading(), {"gamma": [1]}).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("estimator", [QNS3VM(balance="labels"), LabelSpreading()])
def test_a_mask_makes_minus_one_a_class(moons, estimator):
    X, y = moons
    grid = {"gamma": [1.0, 8.0]}
    plain = S3VMSearchCV(estimator, grid).fit(X, y)
    labels = np.where(y == 0, -1, 1)
    if isinstance(estimator, LabelSpreading):  # takes no mask: −1 cannot be a class
        with pytest.raises(ValueError, match="already holds"):
            S3VMSearchCV(estimator, grid).fit(X, labels, unlabeled_mask=y == -1)
        return
    masked = S3VMSearchCV(estimator, grid).fit(X, labels, unlabeled_mask=y == -1)
    np.testing.assert_array_equal(masked.predict(X), np.where(plain.predict(X) == 0, -1, 1))
    for key in ("mean_test_score", "std_test_score"):
        np.testing.assert_array_equal(masked.cv_results_[key], plain.cv_results_[key])


def test_missing_and_string_labels(moons):
    X, y = moons
    grid = {"C": [1, 10]}
    names = np.array([None if v == -1 else "ab"[v] for v in y], dtype=object)
    search = S3VMSearchCV(QNS3VM(balance="labels"), grid).fit(X, names)
    plain = S3VMSearchCV(QNS3VM(balance="labels"), grid).fit(X, y)
    assert search.predict(X).tolist() == ["ab"[v] for v in plain.predict(X)]
    assert search.best_score_ == plain.best_score_
    # A scorer of scikit-learn gets labels that it knows for a target.
    wanted = clone(plain).set_params(scoring="accuracy").fit(X, y).cv_results_["mean_test_score"]
    for labels in (names, np.array([None if v == -1 else v for v in y], dtype=object)):
        found = clone(search).set_params(scoring="accuracy").fit(X, labels)
        np.testing.assert_array_equal(found.cv_results_["mean_test_score"], wanted)


def test_the_score_is_that_of_the_estimator(moons):
    X, y = moons
    truth = make_moons(80, random_state=0)[1]
    signs, missing = np.where(truth == 0, -1, 1), [None if v == -1 else v for v in y]
    grid = {"C": [1, 10]}
    for scoring in (None, labeled_accuracy_scorer):
        search = S3VMSearchCV(SVM(kernel="linear"), grid, scoring=scoring)
        search.fit(X, signs, unlabeled_mask=y == -1)
        again = pickle.loads(pickle.dumps(search))
        copy = clone(search).fit(X, signs, unlabeled_mask=y == -1)
        assert_same(copy, search)
        right = np.mean(search.predict(X) == signs)
        assert search.score(X, signs) == again.score(X, signs) == right
        assert right == search.best_estimator_.score(X, signs)
        assert right != np.mean(search.predict(X)[signs == 1] == 1)
        plain = clone(search).fit(X, y)
        assert plain.score(X, missing) == plain.best_estimator_.score(X, y) == plain.score(X, y)


def test_scorers(moons):
    X, y = moons
    scorer = make_scorer(LabeledMetric(f1_score))
    grid = {"C": [0.1, 1, 10], "C_star": [0.1, 1]}
    search = S3VMSearchCV(QNS3VM(balance="labels", gamma=1.0), grid, scoring=scorer).fit(X, y)
    other = GridSearchCV(
        QNS3VM(balance="labels", gamma=1.0),
        grid,
        scoring=scorer,
        cv=SemiSupervisedKFold(5),
        refit=False,
    ).fit(X, y)
    for key in ("mean_test_score", "rank_test_score"):
        np.testing.assert_array_equal(search.cv_results_[key], other.cv_results_[key])
    assert search.score(X, y) == scorer(search.best_estimator_, X, y)
    seen = []

    def reads_transduction(model, X, y):
        seen.append(model.transduction_.size)
        return 0.0

    S3VMSearchCV(QNS3VM(balance="labels"), {"C": [1, 10]}, scoring=reads_transduction).fit(X, y)
    assert seen == [76] * 10


def test_bad_grids_and_failing_fits(moons):
    X, y = moons
    with pytest.raises(ValueError, match=r"param_grid names \['Cstar'\].*of QNS3VM"):
        S3VMSearchCV(QNS3VM(balance="labels"), {"Cstar": [1]}).fit(X, y)
    with pytest.raises(ValueError, match=r"param_grid names \['Cstar'\], which none of"):
        S3VMSearchCV({"a": QNS3VM(balance="labels"), "b": SVM()}, {"C": [1], "Cstar": [1]}).fit(
            X, y
        )
    with pytest.raises(ValueError, match="at least one"):
        S3VMSearchCV({}, {"C": [1]}).fit(X, y)
    with pytest.raises(ValueError, match="10 of 10 fits failed, the first with Invalid"):
        S3VMSearchCV(QNS3VM(balance="labels"), {"C": [-1, -2]}).fit(X, y)
    with pytest.raises(ValueError, match="'C' parameter"):
        S3VMSearchCV(QNS3VM(balance="labels"), {"C": [1, -2]}, error_score="raise").fit(X, y)
    with pytest.warns(FitFailedWarning, match="5 of 10 fits failed") as caught:
        search = S3VMSearchCV(QNS3VM(balance="labels"), {"C": [-1, 1]}).fit(X, y)
    assert caught[0].filename == __file__
    assert search.best_params_ == {"C": 1} and np.isnan(search.cv_results_["mean_test_score"][0])
    assert search.cv_results_["rank_test_score"].tolist() == [2, 1]
    with pytest.warns(FitFailedWarning):
        worst = S3VMSearchCV(QNS3VM(balance="labels"), {"C": [-1, 1]}, error_score=0.0).fit(X, y)
    assert worst.cv_results_["mean_test_score"][0] == 0.0
    with pytest.raises(ValueError, match="labeled row in every test part"):
        parts = [(np.flatnonzero(y != -1), np.flatnonzero(y == -1))]
        S3VMSearchCV(SVM(), {"C": [1]}, cv=parts).fit(X, y)
    with pytest.raises(ValueError, match=r"numbers of samples: \[80, 79\]"):
        S3VMSearchCV(SVM(), {"C": [1]}).fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"y must be of shape \(80,\), as X has rows, got \(79,\)"):
        S3VMSearchCV(make_pipeline(StandardScaler(), SVM()), {"svm__C": [1]}).fit(X, y[:-1])
    with pytest.raises(ValueError, match="Input X contains NaN"):  # once, before any fit
        S3VMSearchCV(SVM(), {"C": [1]}).fit(np.where(X > 1, np.nan, X), y)


@pytest.mark.interface
@parametrize_with_checks(
    [
        S3VMSearchCV(
            QNS3VM(balance="labels", kernel="linear"), {"C": [1.0, 10.0]}, cv=2, exact=exact
        )
        for exact in (True, "choice", False)
    ],
    expected_failed_checks=lambda estimator: {
        "check_classifiers_classes": "fits the labels {-1, 1}, of which -1 means unlabeled"
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_names_of_columns_stay_with_the_best_estimator(moons):
    X, y = moons
    frame = pd.DataFrame(X, columns=["one", "two"])
    search = S3VMSearchCV(SVM(), {"C": [1, 10]}).fit(frame, y)
    assert search.best_estimator_.feature_names_in_.tolist() == ["one", "two"]
    plain = S3VMSearchCV(SVM(), {"C": [1, 10]}).fit(X, y)
    np.testing.assert_array_equal(search.predict(frame), plain.predict(X))
    column = S3VMSearchCV(SVM(), {"C": [1, 10]})
    with pytest.warns(DataConversionWarning):
        column.fit(sp.coo_array(X), y[:, None])
    assert column.best_params_ == search.best_params_


def test_a_failed_search_leaves_the_last_one(moons):
    X, y = moons
    search = S3VMSearchCV(SVM(), {"C": [1, 10]}).fit(X, y)
    before = vars(search).copy()
    with pytest.raises(ValueError, match="fits failed"):
        search.set_params(param_grid={"C": [-1]}).fit(X, y)
    assert {k for k in vars(search)} == set(before)
    assert search.best_estimator_ is before["best_estimator_"]


def test_without_refit(moons):
    X, y = moons
    search = S3VMSearchCV(SVM(), {"C": [1, 10]}, refit=False).fit(X, y)
    refitted = S3VMSearchCV(SVM(), {"C": [1, 10]}).fit(X, y)
    assert search.best_params_ == refitted.best_params_ and not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError, match="refit"):
        search.predict(X)


def test_pickle_clone_jobs_and_determinism(moons):
    X, y = moons
    grid = {"C": [1, 10], "gamma": [1.0, 8.0]}
    search = S3VMSearchCV(QNS3VM(balance="labels"), grid).fit(X, y)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.decision_function(X), search.decision_function(X))
    parallel = clone(search).set_params(n_jobs=2).fit(X, y)
    assert_same(parallel, search)
    assert search.n_features_in_ == 2 and search.transduction_.shape == (80,)
    assert not hasattr(search, "predict_proba")


def test_pipelines(moons):
    X, y = moons
    rows = X * [1.0, 100.0]
    inside = make_pipeline(
        StandardScaler(), S3VMSearchCV(QNS3VM(balance="labels"), {"C": [1, 10]}, cv=3)
    )
    assert inside.fit(rows, y).score(rows, y) > 0.8
    assert cross_val_score(inside, rows, y, cv=SemiSupervisedKFold(2)).shape == (2,)
    pipe, grid = make_pipeline(StandardScaler(), QNS3VM(balance="labels")), {"qns3vm__C": [1, 10]}
    around = S3VMSearchCV(pipe, grid).fit(rows, y)
    other = GridSearchCV(pipe, grid, cv=SemiSupervisedKFold(5), scoring=labeled_accuracy_scorer)
    scores = [s.cv_results_["mean_test_score"] for s in (around, other.fit(rows, y))]
    np.testing.assert_array_equal(*scores)


# --- What a search with exact=False goes on from --------------------------------------------------


def factors(C_star, reached):
    problem = QNS3VM(balance="labels", C_star=C_star).fit(*make_small()).problem_
    t = np.array([1.0, -1.0, 0.0, 0.0])

    class Flat:
        dimension = 2

    start = None if reached is None else (np.zeros(2), 0.0, reached)
    return Continuation(Flat, t, np.ones(4), problem, start).factors(ANNEALING["geometric"])


def make_small():
    return np.array([[-1.0], [1.0], [-0.9], [0.9]]), np.array([0, 1, -1, -1])


def test_stages_after_a_start():
    assert factors(1.0, None) == (0.0, *ANNEALING["geometric"])
    assert factors(0.0, None) == factors(0.0, 0.0) == (0.0,)
    assert factors(1.0, 0.1) == factors(1.0, 1.0) == (1.0,)
    assert factors(1.0, 0.0) == ANNEALING["geometric"]
    steps = np.array([1e-3, *factors(10.0, 0.01)])
    assert steps[-1] == 1 and len(steps) < 6 and (steps[1:] <= 10.01 * steps[:-1]).all()


@pytest.mark.parametrize("cls", [QNS3VM, NewtonS3VM])
def test_going_on_ends_in_a_minimum_of_the_same_problem(cls):
    X, truth = make_g2c(60, random_state=0)
    y = hide_labels(truth, 12, random_state=0)
    options = {"tol": 1e-6, "kernel": "linear", "balance": "labels"}
    prepared = Preparation(cls(**options), X, y)
    prepared.fit(C_star=0.02)
    before = prepared.estimator.n_iter_, len(prepared.estimator.history_)
    prepared.fit(go_on=True, C_star=0.2)
    model, alone = prepared.estimator, cls(C_star=0.2, **options).fit(X, y)
    assert model.problem_ == alone.problem_
    assert len(model.history_) < len(alone.history_) and before[0] > 0
    outputs = model.decision_function(X)
    prepared.fit(go_on=True, C_star=0.2)  # from itself it does not move
    np.testing.assert_allclose(model.decision_function(X), outputs, atol=1e-3)
    assert model.n_iter_ <= 3
    # Not from a larger C*, nor from another C.
    for settings in ({"C_star": 0.02}, {"C": 2.0, "C_star": 0.2}):
        prepared.fit(go_on=True, **settings)
        fresh = cls(**{**options, **settings}).fit(X, y)
        assert prepared.estimator.objective_ == fresh.objective_
        prepared.fit(C=1.0, C_star=0.2)


def test_search_that_goes_on(moons):
    X, y = moons
    grid = {"C": [10, 1], "C_star": [1.0, 0.1, 0.01], "gamma": [1.0, 8.0]}
    # The last two begin anew each time.
    for model in (QNS3VM(balance="labels"), CCCPS3VM(balance="labels"), SVM()):
        own = {k: v for k, v in grid.items() if k in model.get_params()}
        exact, fast = (S3VMSearchCV(model, own, exact=e).fit(X, y) for e in (True, False))
        assert fast.cv_results_["params"] == exact.cv_results_["params"]
        difference = fast.cv_results_["mean_test_score"] - exact.cv_results_["mean_test_score"]
        assert not difference.any() and fast.best_params_ == exact.best_params_


def test_folds_may_be_masks(moons):
    X, y = moons
    folds = list(SemiSupervisedKFold(3).split(X, y))
    masks = [(np.isin(np.arange(80), train), np.isin(np.arange(80), test)) for train, test in folds]
    grid = {"C": [0.1, 10.0]}
    search = S3VMSearchCV(SVM(), grid, cv=masks).fit(X, y)
    expected = S3VMSearchCV(SVM(), grid, cv=folds).fit(X, y)
    peer = GridSearchCV(SVM(), grid, cv=masks, scoring=labeled_accuracy_scorer).fit(X, y)
    for name in ("mean_test_score", "split2_test_score"):
        found = search.cv_results_[name]
        assert found.tolist() == expected.cv_results_[name].tolist()
        assert found.tolist() == peer.cv_results_[name].tolist()
