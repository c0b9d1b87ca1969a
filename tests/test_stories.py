"""The data of the true stories, and what their tables compare."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from benchmarks.stories import (
    METHODS,
    ShareSVM,
    TenMinuteUser,
    build,
    compare,
    compare_types,
    fitted,
)
from benchmarks.story_rankings import MACHINES, BestFeature, DecoyMachine, accepted, winners
from benchmarks.tables import story_cells
from s3vm_book import stories
from s3vm_book.tables import FOLDER
from s3vm_lib import SVM
from s3vm_lib.datasets import hide_labels

STORIES = {
    "documents": ["documents.npz"],
    "peptides": ["yeast.pin.gz", "masked.pin.gz"],
    "cells": ["cells.npz"],
}


@pytest.mark.parametrize("story", STORIES)
def test_a_story_stores_at_most_two_megabytes(story):
    assert sum((FOLDER / "data" / name).stat().st_size for name in STORIES[story]) <= 2e6


@pytest.mark.parametrize("encoder", stories.ENCODERS)
@pytest.mark.parametrize("question", stories.QUESTIONS)
def test_documents_are_texts_with_features_and_two_classes(question, encoder):
    found = stories.documents(question, encoder)
    assert found.X.shape[0] == len(found.y) == len(set(found.texts)) == 1000
    assert all(text == text.strip() and text for text in found.texts)
    assert 0.05 < found.y.mean() < 0.6
    squares = found.X.multiply(found.X) if encoder == "tf-idf" else found.X**2
    assert squares.mean() == pytest.approx(1)


def test_every_intent_that_a_question_names_is_in_the_texts():
    intents = set(stories._strings("banking_labels"))
    assert len(intents) == 77
    for name in ("card", "urgent"):
        assert set(stories.QUESTIONS[name][1]) <= intents


def test_near_rows_are_texts_of_one_intent():
    """Rows belong to their texts: the nearest row often has the same intent."""
    X = stories.documents("card", "e5").X
    intents = np.array(stories._strings("banking_labels"))
    near = X @ X.T
    np.fill_diagonal(near, -np.inf)
    assert np.mean(intents == intents[near.argmax(axis=1)]) > 0.7  # by chance 1 in 77


@pytest.mark.parametrize(("name", "value"), [("question", "weather"), ("encoder", "bert")])
def test_an_unknown_name_is_refused(name, value):
    arguments = {"question": "card", name: value}
    with pytest.raises(ValueError, match=f"{name} must be one of .*, got '{value}'"):
        stories.documents(**arguments)


def test_spectra_are_those_of_their_files():
    yeast, masked = stories.spectra("yeast"), stories.spectra("masked")
    assert np.bincount(yeast.y).tolist() == [9822, 9852]
    assert np.bincount(masked.y).tolist() == [4698, 5302]
    shuffled = stories.is_shuffled(yeast)
    assert 0.7 < shuffled[yeast.y == 1].mean() < 0.75
    assert not stories.is_shuffled(masked).any()


def test_patients_have_a_class_on_each_side_of_the_median():
    raw, X, y = stories.patients()
    assert raw.shape == (442, 11) and X.shape == (442, 10) and y.sum() == 221
    assert raw["target"][y == 1].min() > raw["target"][y == 0].max()


def test_cells_are_counts_with_a_type():
    found = stories.cells()
    assert stories._strings("sources", "cells")[0].split() == [
        "10x_pbmc68k_reduced.h5ad",
        "e71d41e737c941559b7c57c9243bdb3d2c889c2adfdf00e3422ac6b46783676f",
    ]
    assert found.counts.shape == (700, 765) and len(set(found.genes)) == 765
    assert np.all(found.counts.sum(axis=1) <= found.totals)
    sizes = np.bincount(found.y)
    assert sizes.tolist() == sorted(sizes, reverse=True) and sizes[-1] == 8 and sizes.sum() == 700
    assert found.X.shape == (700, 50) and np.allclose(found.X.mean(axis=0), 0)
    assert np.all(np.diff(found.X.std(axis=0)) < 0)


@pytest.mark.parametrize(
    ("gene", "name"),
    [("CD79A", "B"), ("FCER1A", "dendritic"), ("GNLY", "natural killer"), ("SPINK2", "stem cell")],
)
def test_a_marker_gene_is_that_of_its_type(gene, name):
    """Textbook markers: rows belong to their types, and columns to their genes."""
    found = stories.cells()
    share = 1e4 * found.counts[:, found.genes.index(gene)] / found.totals
    means = [share[found.y == k].mean() for k in range(10)]
    assert list(stories.TYPES.values())[np.argmax(means)] == name


def test_equally_many_labels_of_each_class_but_some_stay_hidden():
    truth = np.repeat([0, 1, 2], [30, 12, 5])
    y = stories.label_each(truth, 10, 0)
    assert [np.sum(y == k) for k in range(3)] == [10, 9, 2]
    assert np.array_equal(y[y != -1], truth[y != -1])
    assert not np.array_equal(y, stories.label_each(truth, 10, 1))


def test_errors_are_counted_for_each_type():
    """A method that gives each row the first class finds all of it, and nothing else."""
    first = DummyClassifier(strategy="constant", constant=0)
    truth = np.repeat([0, 1, 2], [20, 15, 9])
    found = compare_types(lambda y, seed: first, np.zeros((44, 1)), truth, 6)
    assert {len(values) for values in found.values()} == {10}
    assert found["missed"][0] == [0, 100, 100] and found["false"][0] == [12, 0, 0]
    assert found["error"][0] == pytest.approx(100 * 12 / 26, abs=0.01)
    assert found["balanced"][0] == pytest.approx(200 / 3, abs=0.01)


def three_clouds(sizes, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(3), sizes)
    return rng.standard_normal((sum(sizes), 2)) + 12 * np.eye(3, 2)[truth], truth


@pytest.mark.parametrize("method", story_cells.METHODS)
def test_a_method_names_three_clouds(method):
    X, truth = three_clouds((40, 25, 15))
    y = stories.label_each(truth, 6, 0)
    assert np.array_equal(fitted(story_cells.make(method, truth, y, 0), X, y).predict(X), truth)


def test_a_told_svm_has_the_shares_that_it_was_told():
    """On noise an SVM names each class about as often; told otherwise, it does otherwise."""
    X = np.random.default_rng(0).standard_normal((600, 2))
    truth = np.repeat([0, 1, 2], [480, 90, 30])
    y = stories.label_each(truth, 10, 0)
    told = story_cells.ToldSVM([0.8, 0.15, 0.05]).fit(X, y)
    outputs = told.model_.decision_function(X[y == -1]) - told.offsets_
    np.testing.assert_allclose(np.mean(outputs > 0, axis=0), [0.8, 0.15, 0.05], atol=0.002)
    assert np.mean(told.predict(X) == 0) > 0.6 > 0.5 > np.mean(told.model_.predict(X) == 0)


def test_labels_alone_means_alone():
    X, truth = three_clouds((40, 25, 15))
    y = stories.label_each(truth, 6, 0)
    moved = np.where((y == -1)[:, None], 100.0, X)
    name = "QNS3VM(C=10)" + story_cells.ALONE
    pair = [fitted(story_cells.make(name, truth, y, 0), rows, y).predict(X) for rows in (X, moved)]
    assert np.array_equal(*pair)


def test_held_out_labels_are_asked_of_a_machine_that_has_not_seen_them():
    """Noise: a machine that had seen a label would be right on it."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [40, 25, 15])
    found = story_cells.held_out(50 * rng.standard_normal((80, 30)), truth, 10)
    assert 45 < np.mean(found["missed"]) < 85
    wrong = np.sum(np.multiply(found["missed"], 10) / 100, axis=1)
    np.testing.assert_allclose(wrong, np.sum(found["false"], axis=1), atol=0.1)


def test_a_difference_is_judged_by_its_interval():
    """Ten pairs that differ by 1 ± s: Student's interval has 2.262 standard errors."""
    gaps = np.tile([0.5, 1.5], 5)
    found = stories.difference(gaps, np.zeros(10))
    assert found.mean == 1 and found.half == pytest.approx(2.262 * gaps.std(ddof=1) / 10**0.5, 1e-3)
    assert found.verdict == "loss"
    assert stories.difference(gaps, np.zeros(10), larger_is_better=True).verdict == "win"
    assert stories.difference(gaps - 1, np.zeros(10)).verdict == "tie"


@pytest.mark.parametrize("method", METHODS)
def test_a_method_learns_two_clouds(method):
    """Five labels a class, ten standard deviations between the clouds: nobody is wrong."""
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 2
    X = rng.standard_normal((60, 2)) + 10 * truth[:, None]
    y = hide_labels(truth, 10, random_state=0)
    assert np.array_equal(fitted(build(method, 0), X, y).predict(X), truth)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_control_of_the_share_moves_the_offset_alone(kernel):
    """On noise, one row in five is labeled 1: as many get class 1, and the order is the SVM's."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((600, 2)), np.full(600, -1)
    y[:100] = np.arange(100) % 5 == 0
    control, svm = ShareSVM(kernel).fit(X, y), SVM(kernel=kernel, C=10).fit(X[:100], y[:100])
    said, outputs = control.predict(X[100:]), svm.decision_function(X[100:])
    assert said.mean() == pytest.approx(0.2, abs=0.002)
    assert outputs[said == 1].min() > outputs[said == 0].max()
    assert np.mean(svm.predict(X[100:])) < 0.15  # the SVM itself has another share


def test_errors_are_counted_on_hidden_rows_by_class():
    """Of two columns of noise nothing is learned: both errors are near one half."""
    rng = np.random.default_rng(0)
    truth = np.arange(200) % 2
    found = compare("LogisticRegression", rng.standard_normal((200, 2)), truth, 10)
    assert {len(values) for values in found.values()} == {10}
    assert 40 < np.mean(found["error"]) < 60
    np.testing.assert_allclose(found["balanced"], found["error"], atol=0.1)  # classes of one size


def test_the_ten_minute_user_takes_the_best_in_cross_validation():
    """Rings: a line is wrong on half of them, and label spreading or an rbf kernel is not."""
    rng = np.random.default_rng(0)
    truth = np.arange(200) % 2
    angle = rng.uniform(0, 2 * np.pi, 200)
    radius = 1 + 2 * truth + 0.1 * rng.standard_normal(200)
    X = radius[:, None] * np.c_[np.cos(angle), np.sin(angle)]
    user = TenMinuteUser().fit(X, hide_labels(truth, 40, random_state=0))
    assert type(user.model_).__name__ != "LogisticRegression"
    assert np.mean(user.predict(X) == truth) > 0.95


def test_the_best_of_a_spectrum_wins():
    scores = np.array([1.0, 3.0, 2.0, 5.0, 4.0])
    assert winners(scores, np.array([0, 0, 1, 2, 2])).tolist() == [1, 2, 3]


def made_spectra(n=3000, seed=0):
    """Wrong targets and decoys alike, a third of the targets right; the third column is noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    right = (y == 1) & (rng.random(n) < 1 / 3)
    X = rng.standard_normal((n, 3))
    X[right, :2] += 4
    return X, y, right


def test_the_best_feature_may_point_down():
    X, y, _ = made_spectra()
    X[:, 0] = -X[:, 0] - 2 * (X[:, 0] > 1)
    model = BestFeature().fit(X, y)
    assert model.column_ in (0, 1) and model.sign_ == (-1 if model.column_ == 0 else 1)


@pytest.mark.parametrize("machine", [name for name in MACHINES if name != "best feature"])
def test_a_machine_accepts_more_than_one_column_and_keeps_the_rate(machine):
    from s3vm_lib.exchange.readers import Table

    X, y, right = made_spectra()
    names = {"ScanNr": np.arange(len(y)).astype(str), "ExpMass": np.array(["1"] * len(y))}
    table = Table(X, y, np.array([-1, 1]), extra=names)
    rows, scores = accepted(machine, table, 0)
    alone, _ = accepted("best feature", table, 0)
    assert len(rows) > len(alone) and np.mean(~right[rows]) < 0.05
    assert np.isfinite(scores).all()


def test_two_shares_of_right_targets():
    """Searched apart: as many targets as decoys, so that the difference finds no right ones."""
    X, y, right = made_spectra()
    scores, target = X[:, 0] + X[:, 1], y == 1
    sure = np.zeros(len(y), dtype=bool)
    by_decoys = DecoyMachine()._balance(scores, target, sure)
    assert by_decoys == pytest.approx(right[target].mean(), abs=0.05)
    assert DecoyMachine(share="difference")._balance(scores, target, sure) == 0.01
