import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from s3vm_lib.datasets import hide_labels, make_moons
from s3vm_lib.model_selection import (
    LabeledMetric,
    PreferSmallest,
    SemiSupervisedKFold,
    labeled_accuracy,
    labeled_accuracy_scorer,
)


@pytest.fixture
def moons():
    X, y = make_moons(200, random_state=0)
    return X, hide_labels(y, 20, random_state=0)


@pytest.mark.parametrize("shuffle", [False, True])
def test_folds_partition_the_labeled_rows(moons, shuffle):
    X, y = moons
    folds = SemiSupervisedKFold(5, shuffle=shuffle, random_state=0 if shuffle else None)
    assert folds.get_n_splits(X, y) == 5
    tests = []
    for train, test in folds.split(X, y):
        assert (y[test] != -1).all()
        assert np.bincount(y[test]).tolist() == [2, 2]  # stratified
        assert set(np.flatnonzero(y == -1)) <= set(train)
        np.testing.assert_array_equal(np.sort(np.r_[train, test]), np.arange(len(y)))
        assert (np.diff(train) > 0).all() and (np.diff(test) > 0).all()
        tests.append(test)
    np.testing.assert_array_equal(np.sort(np.concatenate(tests)), np.flatnonzero(y != -1))


def test_shuffled_folds_follow_the_random_state(moons):
    X, y = moons

    def tests(**options):
        return [part.tolist() for _, part in SemiSupervisedKFold(5, **options).split(X, y)]

    assert tests(shuffle=True, random_state=0) == tests(shuffle=True, random_state=0)
    assert tests(shuffle=True, random_state=0) != tests(shuffle=True, random_state=1)
    assert tests(shuffle=True, random_state=0) != tests()


def test_splits_of_strings_beside_minus_one():
    y = np.array(["a", -1, "b", "a", "b", -1], dtype=object)
    parts = list(SemiSupervisedKFold(2).split(None, y))
    assert [test.tolist() for _, test in parts] == [[0, 2], [3, 4]]
    assert all({1, 5} <= set(train) for train, _ in parts)


@pytest.mark.parametrize("absent", [-1, None, np.nan], ids=repr)
@pytest.mark.parametrize("classes", ["ab", [0, 1], [0.5, 1.5]], ids=str)
def test_lists_and_missing_labels_are_split_as_the_estimators_read_them(classes, absent):
    a, b = classes
    labels = [a, b, a, b, absent, absent]
    for y in (labels, np.array(labels, dtype=object), pd.Series(labels, dtype=object)):
        parts = [[rows.tolist() for rows in part] for part in SemiSupervisedKFold(2).split(None, y)]
        assert parts == [[[2, 3, 4, 5], [0, 1]], [[0, 1, 4, 5], [2, 3]]]


def test_bad_splits_are_refused(moons):
    X, y = moons
    with pytest.raises(ValueError, match="no labeled rows"):
        next(SemiSupervisedKFold(2).split(None, np.full(5, -1)))
    with pytest.raises(ValueError, match="no labeled rows"):
        next(SemiSupervisedKFold(2).split(None, np.full(5, np.nan)))
    with pytest.raises(ValueError, match="both -1 and missing"):
        next(SemiSupervisedKFold(2).split(None, [0, 1, 0, 1, -1, None]))
    with pytest.raises(ValueError, match="same number of rows"):
        next(SemiSupervisedKFold(2).split(X[:-1], y))
    with pytest.raises(ValueError, match="n_splits"):
        SemiSupervisedKFold(1)
    with pytest.raises(ValueError, match="n_splits=5"):
        next(SemiSupervisedKFold(5).split(None, [0, 1, 0, 1, -1]))


def test_labeled_accuracy_ignores_unlabeled_rows():
    y = [0, -1, 1, 1, -1]
    assert labeled_accuracy(y, [0, 0, 1, 0, 1]) == pytest.approx(2 / 3)
    assert labeled_accuracy(y, [0, 0, 1, 0, 1], sample_weight=[1, 5, 1, 2, 5]) == 0.5
    words = np.array(["a", -1, "b"], dtype=object)
    assert labeled_accuracy(words, np.array(["a", "a", "a"], dtype=object)) == 0.5
    assert LabeledMetric(f1_score)(y, [0, 0, 1, 0, 1]) == pytest.approx(2 / 3)
    for absent in (-1, None, np.nan):
        assert labeled_accuracy(["a", "b", absent], ["a", "a", "b"]) == 0.5
        found = np.array([0, 0, 1], dtype=object)
        assert labeled_accuracy(np.array([0, 1, absent], dtype=object), found) == 0.5
    with pytest.raises(ValueError, match="no labeled rows"):
        labeled_accuracy([-1, -1], [0, 1])


def test_cross_validation_scores_labeled_rows_only(moons):
    X, y = moons
    model = LabelSpreading(kernel="knn", n_neighbors=8)
    naive = cross_val_score(model, X, y, cv=5)
    ours = cross_val_score(model, X, y, cv=SemiSupervisedKFold(5), scoring=labeled_accuracy_scorer)
    assert naive.mean() < 0.2  # unlabeled test rows count as errors
    assert ours.mean() == 1.0


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (LabelSpreading(kernel="rbf"), {"gamma": [40, 20, 30]}),
        (
            make_pipeline(StandardScaler(), SelfTrainingClassifier(KNeighborsClassifier())),
            {"selftrainingclassifier__estimator__n_neighbors": [2, 1, 3]},
        ),
    ],
)
def test_grid_search_with_splitter_scorer_and_tie_rule(moons, model, grid):
    X, y = moons
    search = GridSearchCV(
        model,
        grid,
        cv=SemiSupervisedKFold(5, shuffle=True, random_state=0),
        scoring=labeled_accuracy_scorer,
        refit=PreferSmallest(*grid),
    )
    search = clone(pickle.loads(pickle.dumps(search))).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    (name,) = grid
    tied = [v for v, score in zip(grid[name], scores, strict=True) if score > scores.max() - 1e-9]
    assert len(tied) > 1 and search.best_params_ == {name: min(tied)}
    assert search.predict(X).shape == y.shape


def test_other_metrics_as_scorers(moons):
    X, y = moons
    scorer = make_scorer(LabeledMetric(f1_score), average="macro")
    scores = cross_val_score(
        LabelSpreading(kernel="knn", n_neighbors=20),
        X,
        y,
        cv=SemiSupervisedKFold(2),
        scoring=scorer,
    )
    for score, (train, test) in zip(scores, SemiSupervisedKFold(2).split(X, y), strict=True):
        predicted = (
            LabelSpreading(kernel="knn", n_neighbors=20).fit(X[train], y[train]).predict(X[test])
        )
        assert score == f1_score(y[test], predicted, average="macro")


def _results(scores, **values):
    settings = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    return {"mean_test_score": np.array(scores), "params": settings}


def test_tie_rule():
    C = [8.0, 1.0, 1.0, 0.5]
    C_star = [1.0, None, 0.1, 1.0]
    results = _results([0.9, 0.9 + 1e-15, 0.9, 0.8], C=C, C_star=C_star)
    assert PreferSmallest("C", "C_star")(results) == 2
    assert PreferSmallest("C_star")(results) == 2
    assert PreferSmallest("C")(results) == 1  # a tie that remains: the first of the grid
    assert PreferSmallest("C", tolerance=0.2)(results) == 3
    assert PreferSmallest("C")(_results([np.nan, 0.1, np.nan, 0.1], C=C)) == 3
    with pytest.raises(ValueError, match="not in the grid"):
        PreferSmallest("gamma")(results)
    with pytest.raises(ValueError, match="all scores are NaN"):
        PreferSmallest("C")(_results([np.nan] * 4, C=C))
    with pytest.raises(ValueError, match="numbers only"):
        PreferSmallest("kernel")(_results([1.0, 1.0], kernel=["rbf", "linear"]))


def test_representations():
    assert repr(SemiSupervisedKFold(3)) == (
        "SemiSupervisedKFold(n_splits=3, random_state=None, shuffle=False)"
    )
    assert repr(PreferSmallest("C", "C_star")) == "PreferSmallest('C', 'C_star')"
    assert repr(labeled_accuracy) == "LabeledMetric(accuracy_score)"
