"""The twins of relabelling: where they may stop, and where growing weights end."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from s3vm_lib.checks import fixed_label_svm
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import UnlabeledLoss
from s3vm_lib.objective import Problem
from s3vm_lib.reference.branch_and_bound import centered, relax
from s3vm_lib.reference.relabelling import grow, relabel

C, C_STAR, RATIO = 1.5, 0.6, 0.4


@pytest.fixture(scope="module")
def small():
    """Gram matrix, labels, and {labelling: minimum of its convex problem} by another solver."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(9, 2))
    t = np.r_[-1.0, 1.0, 1.0, np.zeros(6)]
    K = Kernel("rbf", gamma=1.0).gram(X)
    tent = UnlabeledLoss("symmetric_hinge")
    problem = Problem(C=C, C_star=C_STAR, unlabeled_loss=tent, balance="mean", ratio=RATIO)
    values = {}
    for signs in itertools.product((-1.0, 1.0), repeat=6):
        labels = np.r_[t[:3], signs]
        values[signs] = fixed_label_svm(problem, K, labels, t != 0)[0]
    return K, t, values


def test_from_every_start_to_labels_that_reproduce_themselves(small):
    K, t, values = small
    ends = set()
    for signs in values:
        labels, z, rounds = relabel(K, t, np.r_[t[:3], signs], C, C_STAR, RATIO)
        assert_array_equal(labels[:3], t[:3])
        assert np.all(labels[3:] * z[3:] > 0)
        assert np.all(np.diff(rounds) < 0)
        assert_allclose(rounds[0], values[signs], rtol=1e-6)  # the first round trains on the start
        assert_allclose(rounds[-1], values[tuple(labels[3:])], rtol=1e-6)
        assert_allclose(z[3:].mean(), 2 * RATIO - 1, atol=1e-9)
        ends.add(tuple(labels[3:]))
    assert min(values, key=values.get) in ends  # the global minimum reproduces itself
    assert 1 < len(ends) < len(values)


def test_a_given_label_is_kept_on_the_wrong_side():
    """A labelled row among many of the other class has the other sign, and keeps its label."""
    x = np.r_[-2.0, 2.0, 1.9, np.full(6, 2.1), np.full(6, -2.1)]
    t = np.r_[-1.0, 1.0, -1.0, np.zeros(12)]
    guess = np.where(t == 0, np.sign(x), t)
    labels, z, _ = relabel(np.outer(x, x), t, guess, 0.1, 1.0, 0.5)
    assert z[2] > 0 and labels[2] == -1


def test_growing_ends_where_relabelling_with_the_last_weight_stops(small):
    K, t, values = small
    for weights in ([C_STAR], C_STAR * np.geomspace(1e-3, 1, 7)):
        labels, _, rounds = grow(K, t, C, weights, RATIO)
        again, _, once = relabel(K, t, labels, C, C_STAR, RATIO)
        assert_array_equal(again, labels)
        assert len(once) == 1
        assert_allclose(rounds[-1], values[tuple(labels[3:])], rtol=1e-6)


def test_growing_begins_at_the_supervised_machine(small):
    """While the weight is tiny the labels are its signs, with the balance that it is given."""
    K, t, _ = small
    U = t == 0
    _, _, z = relax(centered(K, U), t, np.where(U, 0.0, C), 2 * RATIO - 1)
    labels, _, _ = grow(K, t, C, [1e-6], RATIO)
    assert_array_equal(labels[U], np.sign(z[U]))
