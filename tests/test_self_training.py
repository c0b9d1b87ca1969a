"""Self-training with k nearest neighbors."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from s3vm_lib import SelfTrainingKNN
from s3vm_lib.self_training import solve_self_training


@pytest.mark.interface
@parametrize_with_checks(
    [SelfTrainingKNN(), SelfTrainingKNN(k_best=None, n_neighbors=3)],
    expected_failed_checks=lambda estimator: {
        "check_classifiers_classes": "the check fits the labels {-1, 1}, of which -1 means "
        "unlabeled; scikit-learn exempts its own semi-supervised classifiers by name"
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_by_threshold_it_is_the_self_training_of_scikit_learn(semi_supervised, weights, n_classes):
    X, y = semi_supervised(n=150, n_labeled=18, n_classes=n_classes, seed=3)
    model = SelfTrainingKNN(n_neighbors=5, weights=weights, threshold=0.7, k_best=None).fit(X, y)
    # scikit-learn asks for more than the threshold.
    knn = KNeighborsClassifier(5, weights=weights)
    other = SelfTrainingClassifier(knn, threshold=0.7 - 1e-12, max_iter=None).fit(X, y)
    assert_array_equal(model.predict(X), other.predict(X))
    assert_allclose(model.predict_proba(X), other.predict_proba(X))
    given = model.labeled_iter_ >= 0
    assert_array_equal(model.transduction_[given], other.transduction_[given])
    assert_array_equal(model.labeled_iter_, other.labeled_iter_)


def test_the_nearest_row_is_labeled_first():
    X = np.array([[0.0], [1.0], [2.1], [3.3], [9.0], [10.0]])
    solution = solve_self_training(X, np.array([0, -1, -1, -1, -1, 1]), 2, k_best=1)
    assert_array_equal(solution.codes, [0, 0, 0, 0, 1, 1])
    assert_array_equal(solution.rounds, [0, 1, 3, 4, 2, 0])
    assert [r.n_left for r in solution.history] == [3, 2, 1, 0]
    assert solution.status == "converged"


def test_a_share_of_just_the_threshold_is_enough():
    X = np.array([[-1.0], [1.0], [-2.0], [2.0], [0.0]])
    codes = np.array([0, 0, 0, 1, -1])
    for threshold, expected in ((0.75, 0), (0.75 + 1e-9, -1)):
        found = solve_self_training(X, codes, 2, n_neighbors=4, threshold=threshold)
        assert found.codes[-1] == expected


def test_a_round_prefers_large_shares_to_near_rows_and_reports_the_lowest():
    X = np.array([[0.0], [1.0], [9.0], [10.0], [11.0], [4.9], [30.0]])  # the last is far, and sure
    codes = np.array([0, 0, 1, 1, 1, -1, -1])
    found = solve_self_training(X, codes, 2, n_neighbors=3, k_best=1)
    assert found.rounds.tolist() == [0, 0, 0, 0, 0, 2, 1]
    assert found.codes.tolist() == [0, 0, 1, 1, 1, 0, 1]
    assert_allclose([r.lowest for r in found.history], [1.0, 2 / 3])
    at_once = solve_self_training(X, codes, 2, n_neighbors=3, k_best=2)
    assert_allclose([r.lowest for r in at_once.history], [2 / 3])


def test_labels_spread_along_a_chain():
    """Where the nearest labeled row alone would say otherwise."""
    X = np.r_[np.linspace(0, 6, 25), 7.5][:, None]
    y = np.full(26, -1)
    y[0], y[-1] = 0, 1
    model = SelfTrainingKNN(k_best=1).fit(X, y)
    assert np.all(model.transduction_[:-1] == 0)
    nearest = KNeighborsClassifier(1).fit(X[[0, -1]], y[[0, -1]]).predict(X)
    assert np.mean(nearest[:-1] == 0) < 0.7


def test_rows_that_no_vote_decides_are_predicted_in_the_end():
    X = np.array([[-1.0], [0.0], [1.0]])
    model = SelfTrainingKNN(n_neighbors=2, threshold=0.9, k_best=None).fit(X, [0, -1, 1])
    assert_array_equal(model.labeled_iter_, [0, -1, 0])
    assert model.history_ == []
    assert model.termination_condition_ == "converged"
    assert model.transduction_.tolist() == [0, 0, 1]


@pytest.mark.parametrize("seed", [110, 249, 267, 0])
@pytest.mark.filterwarnings("ignore::s3vm_lib.FitWarning")
def test_a_class_that_rows_received_and_no_prediction_names_is_found(seed):
    """A row that received a label of its neighbors is one of its own neighbors afterwards."""
    rng = np.random.default_rng(seed)
    X, codes = rng.integers(0, 6, (40, 2)).astype(float), np.full(40, -1)
    codes[:10] = np.arange(10) % 2
    model = SelfTrainingKNN(n_neighbors=5, threshold=0.6, k_best=None).fit(X, codes)
    received, predicted = (set(found[10:]) for found in (model.transduction_, model.predict(X)))
    assert received == {0, 1} and (predicted != received) == (seed > 0)
    assert ("share" in model.findings_) == (predicted != received)


def test_progress_and_limits(semi_supervised, capsys):
    X, y = semi_supervised(n=100, n_labeled=10)
    states = []
    full = SelfTrainingKNN(callback=states.append, verbose=1).fit(X, y)
    assert len(states) == len(full.history_) == 9
    assert full.n_iter_ == 10
    assert "SelfTrainingKNN: n_iter 1" in capsys.readouterr().out
    stopped = SelfTrainingKNN(callback=lambda state: True).fit(X, y)
    assert (stopped.termination_condition_, stopped.n_iter_) == ("stopped", 2)
    limited = SelfTrainingKNN(max_iter=3).fit(X, y)
    assert (limited.termination_condition_, len(limited.history_)) == ("max_iter", 3)
    assert np.sum(limited.labeled_iter_ < 0) == 60
    assert SelfTrainingKNN(max_iter=9).fit(X, y).termination_condition_ == "converged"


def test_labels_masks_and_forms_of_data(semi_supervised):
    X, y = semi_supervised(n=80, n_labeled=12)
    expected = SelfTrainingKNN().fit(X, y)
    names = np.array(["no", "yes", -1], dtype=object)[y]
    named = SelfTrainingKNN().fit(X, names)
    assert named.classes_.tolist() == ["no", "yes"]
    assert_array_equal(named.transduction_, named.classes_[expected.transduction_])
    signs = np.where(y < 0, 1, 2 * y - 1)
    masked = SelfTrainingKNN().fit(X, signs, unlabeled_mask=y < 0)
    assert_array_equal(masked.transduction_, 2 * expected.transduction_ - 1)
    sparse = SelfTrainingKNN().fit(sp.csr_matrix(X), y)
    assert_array_equal(sparse.transduction_, expected.transduction_)
    frame = SelfTrainingKNN().fit(pd.DataFrame(X, columns=["u", "v"]), pd.Series(y))
    assert frame.feature_names_in_.tolist() == ["u", "v"]
    assert_array_equal(frame.transduction_, expected.transduction_)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({}, [0, 0, -1, -1], "two labeled classes, got 1"),
        ({}, [0, 1, -1], "inconsistent"),
        (dict(n_neighbors=0), [0, 1, -1, -1], "'n_neighbors' parameter"),
        (dict(threshold=0.0), [0, 1, -1, -1], "'threshold' parameter"),
        (dict(k_best=0), [0, 1, -1, -1], "'k_best' parameter"),
    ],
)
def test_bad_input(options, y, message):
    model = SelfTrainingKNN(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(np.arange(4.0)[:, None], y)
    assert not hasattr(model, "classes_")
