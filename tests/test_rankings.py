"""Rates of false discoveries against a plain loop, and outputs of machines that saw no label."""

import numpy as np
import pytest

from s3vm_lib import SVM
from s3vm_lib.model_selection.rankings import accept, out_of_fold, q_values, share_of_right_targets


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(scores=[1.0, np.nan]), "scores must be finite"),
        (dict(scores=[1.0]), "of one length"),
        (dict(is_target=[1, -1]), "True and False"),
        (dict(is_target=[True, True]), "targets and decoys"),
        (dict(right_share=1.0), "right_share must be"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        q_values(**{"scores": [1.0, 2.0], "is_target": [True, False]} | change)


def test_bad_rate():
    with pytest.raises(ValueError, match="rate must be above 0 and at most 1, got 0"):
        accept([1.0, 2.0], [True, False], 0)
