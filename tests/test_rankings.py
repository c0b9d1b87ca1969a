"""Rates and shares against plain loops, and outputs of machines that have not seen a row."""

import numpy as np
import pytest

from s3vm_lib import QNS3VM, SVM
from s3vm_lib.model_selection.rankings import (
    accept,
    bagged_scores,
    from_positives,
    out_of_fold,
    q_values,
    share_of_right_targets,
)


def by_definition(scores, is_target, factor=1.0):
    """The least rate over all thresholds that accept a row."""
    found = []
    for own in scores:
        rates = [1.0]
        for s in set(scores):
            t = sum(1 for z, target in zip(scores, is_target, strict=True) if target and z >= s)
            d = sum(1 for z, target in zip(scores, is_target, strict=True) if not target and z >= s)
            if own >= s and t:
                rates.append(factor * (d + 1) / t)
        found.append(min(rates))
    return found


@pytest.mark.parametrize("seed", range(30))
def test_q_values_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    is_target = rng.random(n) < rng.random()
    is_target[:2] = True, False
    scores = np.round(rng.normal(size=n) + is_target, int(rng.integers(0, 4)))  # with ties
    np.testing.assert_allclose(q_values(scores, is_target), by_definition(scores, is_target))
    factor = 0.7 * is_target.sum() / (n - is_target.sum())
    found = q_values(scores, is_target, right_share=0.3)
    np.testing.assert_allclose(found, by_definition(scores, is_target, factor))
    order = rng.permutation(n)
    assert np.array_equal(
        q_values(scores[order], is_target[order]), q_values(scores, is_target)[order]
    )


def test_q_values_of_mokapot():
    """By ``mokapot.qvalues.tdc`` 0.10.0, which breaks ties by groups, too."""
    scores = [9, 8, 8, 7, 6, 6, 5, 4, 3, 2]
    target = [1, 1, 1, 1, 0, 1, 1, 0, 1, 0]
    wanted = [1 / 4, 1 / 4, 1 / 4, 1 / 4, 1 / 3, 1 / 3, 1 / 3, 3 / 7, 3 / 7, 4 / 7]
    np.testing.assert_allclose(q_values(scores, target), wanted)


def test_q_values_of_mokapot_on_its_own_file():
    """Each fiftieth of the 1500 best rows of 10k_psms_test.pin, in halves, by mokapot's model.

    All rows, and other scores, are compared by benchmarks/mokapot_q_values.sh.
    """
    scores = [16, 8, 6, 5, 4.5, 3.5, 3, 2.5, 2, 1.5, 1, 0.5, 0, -0.5, -1, -1, -1.5, -1.5, -1.5]
    scores += [-2] * 6 + [-2.5] * 5
    target = np.array(list("TTTTTTTTTTTTTTTTDTTDDTTTTTDTDD")) == "T"
    wanted = np.repeat([1 / 16, 1 / 9, 2 / 11, 7 / 24], [16, 3, 6, 5])
    np.testing.assert_allclose(q_values(scores, target), wanted, rtol=1e-6)
    accepted = accept(scores, target, 0.12)
    assert np.array_equal(accepted, target & (wanted <= 0.12)) and accepted.sum() == 18


def test_the_rate_is_kept_where_decoys_are_scored_apart():
    """Of 200 draws: targets and decoys of unlike numbers, a third of the targets right."""
    rates, powers = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        right = np.arange(900) < 300
        scores = np.r_[rng.normal(size=900) + 3.0 * right, rng.normal(size=450)]
        is_target = np.arange(1350) < 900
        share = share_of_right_targets(scores, is_target)
        taken = accept(scores, is_target, 0.05, right_share=share)[:900]
        rates.append(np.sum(taken & ~right) / max(1, taken.sum()))
        powers.append(np.mean(taken[right]))
        assert abs(share - 1 / 3) < 0.15
    assert 0.03 < np.mean(rates) < 0.055 and np.mean(powers) > 0.5


def test_outputs_are_of_machines_that_have_not_seen_the_row():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2  # labels of noise
    partly = np.where(np.arange(60) < 40, y, -1)
    outputs = out_of_fold(SVM(C=1e3, gamma=10.0), X, partly)
    seen = SVM(C=1e3, gamma=10.0).fit(X, partly).decision_function(X)
    assert np.mean((seen > 0)[:40] == y[:40]) == 1.0
    assert np.mean((outputs > 0)[:40] == y[:40]) < 0.75 and np.isfinite(outputs).all()
    names = np.array(["a", "b"], dtype=object)[y]
    names[40:] = None
    assert np.array_equal(out_of_fold(SVM(C=1e3, gamma=10.0), X, names), outputs)
    three = np.where(partly < 0, -1, np.arange(60) % 3)
    assert out_of_fold(SVM(), X, three).shape == (60, 3)


# --- Positives only -------------------------------------------------------------------------------


def least_ratio(scores, positive):
    """The ratio of shares above the score at which it is least beside its error."""
    p, u = scores[positive], scores[~positive]
    error = np.sqrt(np.log(40) / 2 / p.size) + np.sqrt(np.log(40) / 2 / u.size)
    pairs = [(np.mean(u >= s), np.mean(p >= s)) for s in scores if np.any(p >= s)]
    return min(((a + error) / b, a / b) for a, b in pairs)[1]


@pytest.mark.parametrize("seed", range(30))
def test_the_share_of_positives_is_the_least_ratio(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 80))
    positive = rng.permutation(n) < rng.integers(2, n // 2)
    scores = rng.normal(size=n) + 2 * positive
    labels, share = from_positives(scores, positive)
    wanted = min(1.0, least_ratio(scores, positive)) * np.sum(~positive)
    n_negative = np.sum(labels == 0)
    assert n_negative == max(1, int((np.sum(~positive) - wanted) / 2 + 1e-9))
    n_open = np.sum(labels == -1)
    assert share == pytest.approx(np.clip(wanted, 0.5, n_open - 0.5) / n_open)
    assert np.array_equal(labels == 1, positive)
    assert scores[labels == 0].max() <= scores[labels == -1].min()


def test_the_share_is_found_and_the_rows_with_it():
    """Of 30 draws: two clouds, 40 positives drawn at random, a third of the others positive."""
    errors, least, shares = [], [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        truth = np.arange(640) < 240
        X = rng.normal(size=(640, 5)) + 2.5 * truth[:, None] * (np.arange(5) < 2)
        positive = np.arange(640) < 40
        scores = bagged_scores(SVM(), X, positive, random_state=seed)
        labels, share = from_positives(scores, positive)
        shares.append(share * np.sum(labels < 0) / 600)
        model = QNS3VM(balance=share).fit(X, labels)
        errors.append(np.mean(model.predict(X[40:]) != truth[40:]))
        plain = SVM().fit(X, positive.astype(int), unlabeled_mask=np.zeros(640, bool))
        least.append(np.mean(plain.predict(X[40:]) != truth[40:]))
    assert abs(np.mean(shares) - 1 / 3) < 0.04
    assert np.mean(errors) < 0.08 and np.mean(least) > 0.25


def test_a_row_is_scored_by_machines_that_have_not_seen_it():
    """In a space where all rows can be told apart scores of noise say nothing about the label."""
    rng = np.random.default_rng(0)
    X, positive = rng.normal(size=(120, 3)), np.arange(120) < 30
    scores = bagged_scores(SVM(C=1e3, gamma=10.0), X, positive)
    assert abs(np.mean(scores[positive][:, None] > scores[~positive]) - 0.5) < 0.12
    rows = bagged_scores(SVM(C=1e3, gamma=10.0), X, positive, n_bags=20, random_state=3)
    random, total, count = np.random.RandomState(3), np.zeros(120), np.zeros(120)
    orders = [random.permutation(30) for _ in range(4)]
    for k in range(20):
        kept = [row for place, row in enumerate(orders[k // 5]) if place % 5 != k % 5]
        train = [*kept, *(30 + random.permutation(90))[:24]]
        model = SVM(C=1e3, gamma=10.0).fit(X[train], positive[train].astype(int))
        for row in set(range(120)) - set(train):
            total[row] += model.decision_function(X[[row]])[0]
            count[row] += 1
    assert count.min() >= 1
    np.testing.assert_allclose(rows, total / count)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n", [4, 7, 12])
def test_few_rows_have_scores_too(n, seed):
    X, positive = np.random.default_rng(seed).normal(size=(n, 2)), np.arange(n) < 2
    scores = bagged_scores(SVM(), X, positive, random_state=seed)
    assert np.isfinite(scores).all()
    labels, share = from_positives(scores, positive)
    assert 0 < share < 1 and set(labels) <= {-1, 0, 1} and np.sum(labels == 0) >= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bagged_scores(SVM(), np.eye(3), [1, 0, 0]), "True and False twice"),
        (lambda: bagged_scores(SVM(), np.eye(4), [1, 1, 0, 0], n_bags=5), "n_bags at least 20"),
        (lambda: bagged_scores(SVM(), np.eye(3), [1, 0]), "scores and positive must be"),
        (lambda: from_positives([1, 2, 3], [1, 0, -1]), "positive must hold True and False"),
        (lambda: from_positives([1, 2], [1, 0], share=1.5), "share must be above 0 and below 1"),
    ],
)
def test_positives_that_are_not_given_right(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_error_of_one_class_names_the_page():
    with pytest.raises(ValueError, match='see the page "I have positives only"'):
        SVM().fit(np.eye(3), [1, 1, -1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(scores=[1.0, np.nan]), "scores must be finite"),
        (dict(scores=[1.0]), "of one length"),
        (dict(is_target=[1, -1]), "True and False"),
        (dict(is_target=[True, True]), "True of some rows and False of others"),
        (dict(right_share=1.0), "right_share must be"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        q_values(**{"scores": [1.0, 2.0], "is_target": [True, False]} | change)


def test_bad_rate():
    with pytest.raises(ValueError, match="rate must be above 0 and at most 1, got 0"):
        accept([1.0, 2.0], [True, False], 0)
