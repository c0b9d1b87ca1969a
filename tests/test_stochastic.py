import math
import os
import pickle
import signal
import warnings
from dataclasses import replace
from numbers import Integral

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import check_grad
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from s3vm_lib import FRS3VM, QNS3VM, TSGS3VM
from s3vm_lib.datasets import hide_labels, make_g50c
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem, evaluate
from s3vm_lib.random_features import FeatureStream, outputs
from s3vm_lib.reference import stochastic as reference
from s3vm_lib.smooth import Stage
from s3vm_lib.stochastic import (
    LABELED,
    UNLABELED,
    BlockSum,
    Features,
    Polish,
    Sampler,
    Schedule,
    _estimators,
    on_disk,
    solve_full_batch,
    solve_stored,
    solve_triply_stochastic,
)
from s3vm_lib.stochastic._blocks import StreamFeatures, loss_codes
from s3vm_lib.stochastic._descent import _Scaled
from s3vm_lib.stochastic._steps import Slopes

RBF = Kernel("rbf", 0.5)
BOTH = pytest.mark.parametrize("Estimator", [FRS3VM, TSGS3VM])


@pytest.fixture(scope="module")
def blobs():
    """1200 rows in three dimensions, 30 of them labeled; X, t."""
    rng = np.random.default_rng(0)
    t = np.where(rng.random(1200) < 0.4, 1.0, -1.0)
    X = rng.standard_normal((1200, 3))
    X[:, 0] += 1.5 * t
    truth = t.copy()
    t[30:] = 0
    return X, t, truth


def literal(C, C_star, t, losses=("hinge", "symmetric_hinge")):
    """The paper's problem: C and C* in front of means, no offset."""
    n_l, n_u = np.sum(t != 0), np.sum(t == 0)
    pair = LabeledLoss(losses[0]), UnlabeledLoss(losses[1])
    return Problem(*pair, C / n_l, C_star / n_u, RBF, "none")


def plain(gamma=0.05, batch=1, labeled=1, **changes):
    """A schedule without averaging, ramp and penalty."""
    given = dict(batch_size=batch, labeled_batch=labeled, rule="constant", eta0=gamma)
    return Schedule(**{**given, "max_step": 1.0, "average": 0.0, "ramp": 0.0, **changes})


def draws(X, t, n_steps, batch, labeled, seed):
    """The rows that the solvers draw, for the reference."""
    L, U = np.flatnonzero(t), np.flatnonzero(t == 0)
    of_l = Sampler(L, np.ones(L.size), seed, LABELED)
    of_u = Sampler(U, np.ones(U.size), seed, UNLABELED)
    index = [of_l.draw(s * labeled, labeled) for s in range(n_steps)]
    return [(X[i], t[i]) for i in index], [X[of_u.draw(s * batch, batch)] for s in range(n_steps)]


# --- Algorithms 1 and 2 ---------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "batch", "labeled"), [(1, 1, 1), (16, 8, 4)])
def test_windows_equal_the_printed_algorithm(blobs, m, batch, labeled):
    X, t, _ = blobs
    X, t = X[:200].astype(np.float32).astype(float), t[:200]
    stream = FeatureStream(RBF, 3, m, 5, paired=False)
    T = 200
    rows = draws(X, t, T, batch, labeled, seed=9)
    alpha, _ = reference.train(stream, *rows, 10.0, 5.0, np.full(T, 0.05))
    f = reference.predict(stream, alpha, X)
    runs, schedule = [], plain(batch=batch, labeled=labeled)
    arguments = (X, t, np.ones(200), literal(10.0, 5.0, t), stream, T, schedule)
    for window in (1, 8, 16):
        run = solve_triply_stochastic(*arguments, window=window, seed=9)
        runs.append(run.last[0])
        assert np.abs(outputs(stream, X, runs[-1]) - f).max() <= 1e-5
    assert np.abs(f).max() > 0.5
    # The derivatives of both losses are piecewise constant, so that rounding leaves no trace.
    assert_array_equal(runs[1], runs[0])
    assert_array_equal(runs[2], runs[0])


def test_smooth_losses_agree_between_windows(blobs):
    X, t, _ = blobs
    stream = FeatureStream(RBF, 3, 32, 5)
    problem = literal(10.0, 5.0, t, ("logistic", "gaussian"))
    arguments = (X, t, np.ones(t.size), problem, stream, 60, plain(batch=32, labeled=None))
    runs = [solve_triply_stochastic(*arguments, window=K).last[0] for K in (1, 8, 16)]
    for run in runs[1:]:
        assert_allclose(run, runs[0], atol=1e-6 * np.abs(runs[0]).max())


def test_labeled_rows_that_are_not_carried_along_give_the_same_run(blobs, monkeypatch):
    X, t, _ = blobs
    stream = FeatureStream(RBF, 3, 16, 5)
    arguments = (
        X,
        t,
        np.ones(t.size),
        literal(10.0, 5.0, t),
        stream,
        40,
        plain(batch=8, labeled=6),
    )
    carried = solve_triply_stochastic(*arguments)
    monkeypatch.setattr("s3vm_lib.stochastic._descent.CARRIED", 3)
    drawn = solve_triply_stochastic(*arguments)
    assert_allclose(drawn.alpha, carried.alpha, atol=1e-6)


def test_the_twin_makes_the_decisions_of_f(blobs):
    X, t, _ = blobs
    X, t = X[:200].astype(np.float32).astype(float), t[:200]
    T, eta, gamma = 60, 0.05, np.full(60, 0.05)
    rows = draws(X, t, T, 1, 1, seed=2)
    distances, moved = [], 0
    for m in (1, 16, 1024):
        stream = FeatureStream(RBF, 3, m, 0, paired=False)
        alpha, slopes = reference.train(stream, *rows, 5.0, 5.0, gamma)
        points, weights = reference.twin(*rows, slopes, gamma)
        assert_allclose(points[::2], np.vstack([x for x, _ in rows[0]]))
        distances.append(
            np.mean((reference.predict(stream, alpha, X) - RBF.gram(X, points) @ weights) ** 2)
        )
        assert distances[-1] < 1.5 * 10.0**2 * eta / ((2 - eta) * m)
        # The last weights against a run of the library that ends before the last steps.
        for k in range(T - 20, T):
            run = solve_triply_stochastic(
                X, t, np.ones(200), literal(5.0, 5.0, t), stream, k, plain(), seed=2
            )
            f = float(outputs(stream, rows[1][k], run.alpha)[0])
            h = float(
                RBF.gram(rows[1][k], points[: 2 * k])[0] @ (weights[: 2 * k] / (1 - eta) ** (T - k))
            )
            expected = eta * (1 - eta) ** (T - 1 - k) * 5.0
            assert_allclose(weights[2 * k + 1], expected * np.sign(f) * (abs(f) < 1), atol=1e-12)
            moved += (np.sign(f) * (abs(f) < 1)) != (np.sign(h) * (abs(h) < 1))
    assert moved > 0  # decisions at h would have been others
    assert distances[2] < 0.05 * distances[0]


def test_a_step_of_size_one_forgets_what_was_before(blobs):
    X, t, _ = blobs
    stream = FeatureStream(RBF, 3, 8, 1)
    schedule, problem = plain(1.0, batch=4, labeled=None), literal(5.0, 0.0, t)
    run = solve_triply_stochastic(X, t, np.ones(t.size), problem, stream, 6, schedule)
    assert_array_equal(run.alpha[:-1], np.zeros((5, 8)))
    assert np.abs(run.alpha[-1]).max() > 0


def run_of(solver, blobs, problem, n_steps, schedule, weight=None, **options):
    """A run of either solver on the blobs, on the same eight features a block."""
    X, t, _ = blobs
    stream, extra = FeatureStream(RBF, 3, 8, 1), (3,) if solver is solve_stored else ()
    weight = np.ones(t.size) if weight is None else weight
    return solver(X, t, weight, problem, stream, *extra, n_steps, schedule, **options)


SOLVERS = pytest.mark.parametrize("solver", [solve_stored, solve_triply_stochastic])


@SOLVERS
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("gamma", [0.05, 1.0])
def test_the_mean_of_the_iterates(blobs, solver, share, gamma):
    _, t, _ = blobs
    problem = replace(literal(5.0, 5.0, t), bias="regularized")
    schedule = plain(gamma, batch=4, labeled=None)
    last = [run_of(solver, blobs, problem, k, schedule).last for k in range(1, 11)]
    options = {} if solver is solve_stored else dict(window=3)
    run = run_of(solver, blobs, problem, 10, replace(schedule, average=share), **options)
    tail = last[-max(1, round(10 * share)) :]
    mean = sum(np.vstack([a, np.zeros((len(run.alpha) - len(a), 8))]) for a, _ in tail) / len(tail)
    assert_allclose(run.alpha, mean, atol=1e-12)
    assert_allclose(run.offset, np.mean([b for _, b in tail]), atol=1e-12)
    assert_allclose(run.last[0], last[-1][0], atol=1e-12)


@pytest.mark.parametrize(("shrink", "n_steps"), [(0.0, 3), (1e-16, 40), (0.5, 1500), (0.9, 400)])
def test_sums_of_iterates_outlast_their_factor(shrink, n_steps):
    scaled = _Scaled(np.zeros((0, 1)), n_steps)
    present, sums = np.zeros((2, n_steps))
    for step in range(n_steps):
        scaled.add(np.array([1.0 + step]), shrink)
        scaled.include()
        present *= shrink
        present[step] = 1.0 + step
        sums += present
    assert_allclose(scaled.sums()[:, 0], sums, rtol=1e-8)
    assert_allclose(scaled.values()[:, 0], present, atol=1e-12)


@SOLVERS
def test_without_losses_everything_shrinks_the_offset_included(blobs, solver):
    """No row is short of its margin at b = 5 if all labels are +1: w and b lose γ of themselves."""
    X, t, truth = blobs
    problem = replace(literal(5.0, 0.0, t), bias="regularized")
    start = np.full((3, 8), 1e-3), 5.0
    plus = (X, np.abs(t), truth)
    run = run_of(solver, plus, problem, 10, plain(0.05, labeled=None), start=start)
    assert_allclose(run.last[0][:3], start[0] * 0.95**10, rtol=1e-6)
    assert_allclose(run.last[1], 5.0 * 0.95**10, rtol=1e-12)


def test_a_polynomial_kernel_without_unlabeled_part(blobs):
    """Batches of no row have features too, and the fit is that of the labeled rows alone."""
    X, t, _ = blobs
    y, labeled = np.select([t < 0, t > 0], [0, 1], -1), t != 0
    model = TSGS3VM(
        update="block", kernel="poly", gamma=0.3, C_star=0.0, n_steps=20, random_state=0,
        features=Features(block_size=8), balance=None,
    )  # fmt: skip
    known = np.zeros(labeled.sum(), dtype=bool)
    alone = model.fit(X[labeled], y[labeled], unlabeled_mask=known).objective_
    for form in (np.asarray, sp.csr_matrix):
        assert_allclose(model.fit(form(X), y).objective_, alone, rtol=1e-4)


@SOLVERS
def test_unlabeled_rows_of_weight_three_are_three_times_C_star(blobs, solver):
    _, t, _ = blobs
    problem, heavy = literal(5.0, 2.0, t), literal(5.0, 6.0, t)
    schedule = plain(batch=16, labeled=None)
    found = run_of(solver, blobs, problem, 20, schedule, np.where(t == 0, 3.0, 1.0))
    expected = run_of(solver, blobs, heavy, 20, schedule)
    plain_run = run_of(solver, blobs, problem, 20, schedule)
    assert_allclose(found.alpha, expected.alpha, atol=1e-7)
    assert_allclose(found.history[-1].unlabeled, expected.history[-1].unlabeled)
    assert np.abs(plain_run.alpha - expected.alpha).max() > 0.1 * np.abs(expected.alpha).max()


@SOLVERS
@pytest.mark.parametrize("labeled", [None, 8, 30])
def test_the_history_tells_the_losses_at_the_rows_of_a_step(blobs, solver, labeled):
    """Labeled ones of all rows or an estimate; unlabeled ones estimated, with all of C*."""
    X, t, _ = blobs
    problem = replace(literal(5.0, 3.0, t), bias="regularized")
    start = np.random.default_rng(0).standard_normal((3, 8)) / 10, 0.3
    schedule = plain(0.05, batch=16, labeled=labeled, ramp=1.0)
    found = run_of(solver, blobs, problem, 10, schedule, start=start).history[0]
    f = outputs(FeatureStream(RBF, 3, 8, 1), X, start[0]) + 0.3
    L, U = np.flatnonzero(t), np.flatnonzero(t == 0)
    if labeled is not None:
        L = Sampler(L, np.ones(L.size), 0, LABELED).draw(0, labeled)
    U = Sampler(U, np.ones(U.size), 0, UNLABELED).draw(0, 16)
    assert (found.n_iter, found.step) == (1, 0.05)
    assert_allclose(found.labeled, 5.0 * np.maximum(0, 1 - t[L] * f[L]).mean(), rtol=1e-5)
    assert_allclose(found.unlabeled, 3.0 * np.maximum(0, 1 - np.abs(f[U])).mean(), rtol=1e-5)


@SOLVERS
@pytest.mark.parametrize("n_steps", [1, 9, 25, 40])
def test_the_history_ends_with_the_last_step(blobs, solver, n_steps):
    _, t, _ = blobs
    history = run_of(solver, blobs, literal(5.0, 3.0, t), n_steps, plain(batch=4)).history
    every = max(1, n_steps // 10)
    steps = [state.n_iter for state in history]
    assert steps == sorted({*range(every, n_steps + 1, every), n_steps})


def test_slopes_of_all_rows_are_the_derivatives_of_the_losses(blobs):
    """Whatever the size of a batch: the rows at hand stand for all unlabeled ones."""
    _, t, _ = blobs
    problem = literal(5.0, 3.0, t, ("logistic", "gaussian"))
    slopes = Slopes(problem, t, np.ones(t.size), plain(batch=16))
    f = np.random.default_rng(0).standard_normal(t.size)
    expected = problem.output_gradient(f, t)
    assert_allclose(slopes.of_labeled(f[t != 0]), expected[t != 0])
    assert_allclose(slopes.of_pool(f[t == 0], 0.25), 0.25 * expected[t == 0])


@pytest.mark.parametrize(("ramp", "rising"), [(0.0, 0), (0.1, 1), (0.5, 5), (1.0, 10)])
def test_the_ramp_reaches_C_star_with_its_last_step(ramp, rising):
    shares = [Schedule(ramp=ramp).share(k, 10) for k in range(10)]
    expected = np.append(np.arange(1, rising + 1) / max(rising, 1), np.ones(10 - rising))
    assert_allclose(shares, expected)


def test_a_run_in_two_parts_is_the_run(blobs):
    X, t, _ = blobs
    stream, problem = FeatureStream(RBF, 3, 8, 1), literal(5.0, 5.0, t)
    arguments, schedule = (X, t, np.ones(t.size), problem, stream), plain(batch=4)
    whole = solve_triply_stochastic(*arguments, 20, schedule)
    first = solve_triply_stochastic(*arguments, 11, schedule)
    second = solve_triply_stochastic(*arguments, 9, schedule, start=first.last, first=11)
    assert_allclose(second.alpha, whole.alpha, atol=1e-7)


def test_without_the_unlabeled_term_it_is_the_doubly_stochastic_svm(blobs):
    X, t, _ = blobs
    labeled = t != 0
    options = dict(update="block", polish=False, n_steps=100, gamma=0.5, balance=None,
                   random_state=0, features=Features(block_size=16))  # fmt: skip
    y = np.where(labeled, t + 1, -1).astype(int)
    semi = TSGS3VM(C_star=0.0, **options).fit(X, y)
    alone = TSGS3VM(**options).fit(X[labeled], y[labeled])
    assert_array_equal(semi.feature_coef_, alone.feature_coef_)
    assert_array_equal(semi.intercept_, alone.intercept_)


# --- Steps ----------------------------------------------------------------------------------------


def test_step_sizes():
    t = np.arange(1, 11)

    def sizes(rule, eta0, n_steps, *more, max_step=0.5):
        return Schedule(rule=rule, eta0=eta0, max_step=max_step).step_sizes(n_steps, *more)

    assert_allclose(sizes("sqrt", 50, 10, 200, max_step=1), 50 / (200 * np.sqrt(t)))
    assert_allclose(sizes("constant", 0.1, 10), np.full(10, 0.1))
    assert_allclose(sizes("horizon", 1.0, 10, max_step=1), np.full(10, 10**-0.75))
    assert_allclose(sizes("sqrt", 1.0, 4, 1.0, 6), np.minimum(0.5, 1 / np.sqrt(t[6:])))
    assert_allclose(Schedule().step_sizes(10, 200), np.minimum(0.5, 50 / (200 * np.sqrt(t))))


def test_a_schedule_by_default_is_that_of_the_estimators(blobs):
    X, t, _ = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    model = FRS3VM(n_features=64, polish=False, random_state=0).fit(X, y)
    stream, weight = model.stream_, np.ones(t.size)
    run = solve_stored(X, t, weight, model.problem_, stream, 1, 400, seed=stream.seed)
    assert_allclose(run.alpha, model.feature_coef_[0], atol=1e-6)


@BOTH
def test_the_number_of_steps_is_one_pass_within_limits(Estimator):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2404, 2)), np.where(np.arange(2404) < 4, np.arange(2404) % 2, -1)
    most = 2000 if Estimator is FRS3VM else 2400
    for batch, steps in ((100, 400), (4, 600), (1, most)):
        schedule = Schedule(batch_size=batch)
        model = Estimator(
            schedule=schedule, n_features=4, polish=False, transduce=False, random_state=0
        )
        assert model.fit(X, y).n_iter_ == steps


@BOTH
@pytest.mark.parametrize("n_features", [1, 63, 64, 65, 100, 257])
def test_features_are_as_many_as_asked_for(blobs, Estimator, n_features):
    X, t, _ = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    limits = Polish(rows=20, max_iter=1)
    model = Estimator(n_features=n_features, n_steps=0, polish=limits, random_state=0)
    with pytest.warns(Warning, match="max_iter"):
        model.fit(X[:60], y[:60])
    assert 0 <= model.feature_coef_[0].size - n_features < 64


def test_draws_are_in_proportion_to_the_weights():
    sampler = Sampler(np.array([5, 7, 9]), np.array([1.0, 2.0, 5.0]), 0, UNLABELED)
    counts = np.bincount(sampler.draw(0, 8000), minlength=10)[[5, 7, 9]]
    assert np.all(np.abs(counts - [1000, 2000, 5000]) < 5 * np.sqrt([875, 1500, 1875]))
    assert_array_equal(sampler.draw(0, 100)[40:], sampler.draw(40, 60))
    other = Sampler(np.array([5, 7, 9]), np.array([1.0, 2.0, 5.0]), 0, LABELED)
    assert np.any(other.draw(0, 100) != sampler.draw(0, 100))


@pytest.mark.parametrize(
    "name", ["symmetric_hinge", "squared_symmetric_hinge", "symmetric_ramp", "gaussian"]
)
def test_stochastic_steps_lower_the_objective(blobs, name):
    X, t, truth = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    model = FRS3VM(
        unlabeled_loss=name, labeled_loss="hinge", polish=False, n_features=256, random_state=0
    ).fit(X, y)
    found = evaluate(model, X, y, model.problem_)
    assert_allclose(found.objective, model.objective_, rtol=1e-6)
    assert found.balance_residual < 1e-10
    constant = model.problem_.value(np.full(t.size, 2 * model.problem_.ratio - 1), t, 0.0)
    assert model.objective_ < 0.6 * constant
    assert model.termination_condition_ == "completed"
    assert np.mean(np.where(model.transduction_ == 2, 1, -1) != truth) < 0.1


def test_penalty_and_other_choices(blobs):
    X, t, truth = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    for options in (
        dict(schedule=Schedule(balance_penalty=0.1)),
        dict(balance=None),
        dict(schedule=Schedule(labeled_batch=8)),
        dict(features=Features(orthogonal=True)),
        dict(features=Features(paired=False)),
        dict(fit_intercept=False),
        dict(schedule=Schedule(rule="constant")),
        dict(labeled_loss=LabeledLoss("modified_logistic", 5.0)),
    ):
        options = {"balance": "labels", **options}
        for model in (
            FRS3VM(polish=False, n_features=128, n_steps=150, random_state=0, **options),
            TSGS3VM(update="block", polish=False, n_steps=150, random_state=0, **options),
        ):
            wrong = np.where(model.fit(X, y).transduction_ == 2, 1, -1) != truth
            assert np.mean(wrong) < 0.15, (model, np.mean(wrong))


@BOTH
def test_a_heavy_balance_penalty_shortens_the_steps(blobs, Estimator):
    X, t, truth = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    options = dict(polish=False, n_steps=60, C=10.0, labeled_loss="hinge", random_state=0)
    if Estimator is TSGS3VM:
        options |= dict(update="block", features=Features(block_size=32))
    for penalty in (0.1, 1.0, 1e3):
        model = Estimator(schedule=Schedule(balance_penalty=penalty), **options).fit(X, y)
        assert np.abs(model.decision_function(X)).max() < 10.0
        # The largest leaves steps that learn nothing else than the balance.
        assert np.mean(np.where(model.transduction_ == 2, 1, -1) != truth) < (0.2, 0.5)[penalty > 1]
    # The mean output is where the penalty wants it.
    assert abs(model.decision_function(X)[30:].mean() - (2 * model.problem_.ratio - 1)) < 0.05
    assert model.history_[-1].step < 1e-3 / 300


def test_steps_that_diverge_are_an_error(blobs):
    X, t, _ = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    model = FRS3VM(
        labeled_loss="squared_hinge", schedule=Schedule(rule="constant", eta0=0.5), C=1e6,
        random_state=0, n_features=64, polish=False,
    )  # fmt: skip
    with pytest.raises(ValueError, match="steps diverged: eta0"):
        model.fit(X, y)


@BOTH
def test_the_progress_bar(blobs, capsys, Estimator):
    X, t, _ = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    model = Estimator(n_steps=50, n_features=64, polish=False, random_state=0, verbose=1)
    expected = model.fit(X, y).decision_function(X)
    out, err = capsys.readouterr()
    assert out == ""
    last = err.rstrip("\n").split("\r")[-1]
    assert last.startswith(f"{Estimator.__name__}: 100%|") and "| 50/50 [" in last
    assert_array_equal(model.set_params(verbose=0).fit(X, y).decision_function(X), expected)
    assert capsys.readouterr() == ("", "")
    model.set_params(verbose=2, callback=lambda state: state["n_iter"] >= 25).fit(X, y)
    out, err = capsys.readouterr()
    assert "n_iter 25" in out.splitlines()[-1]
    assert "| 25/50 [" in err.split("\r")[-1]


def test_the_papers_rule_for_means_switches_the_term_off(blobs):
    X, t, _ = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    n_l, n_u = 30, 1170
    sums = FRS3VM(random_state=0, n_features=64, n_steps=5, polish=False).fit(X, y)
    assert_allclose(sums.problem_.C_star, n_l / n_u)
    means = FRS3VM(C_star="paper", random_state=0, n_features=64, n_steps=5, polish=False)
    assert_allclose(means.fit(X, y).problem_.C_star * n_u, n_l * n_l / n_u)


# --- Parameters in groups -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        (Features, "block_size", 0),
        (Features, "paired", "yes"),
        (Schedule, "batch_size", 2.5),
        (Schedule, "rule", "cosine"),
        (Schedule, "balance_penalty", -1.0),
        (Polish, "tol", 0.0),
        (Polish, "max_iter", 0),
        (Polish, "annealing", "slow"),
        (Polish, "annealing", [1.0, 0.5]),
        (Polish, "client", 3),
    ],
)
def test_groups_name_what_they_refuse(group, name, value):
    with pytest.raises(ValueError, match=rf"'{name}' parameter of {group.__name__}|{name} must"):
        group(**{name: value})


@BOTH
def test_estimators_name_the_group_that_they_refuse(Estimator):
    X, y = np.random.default_rng(0).standard_normal((20, 2)), np.arange(20) % 2
    for name in ("features", "schedule", "polish"):
        with pytest.raises(ValueError, match=f"'{name}' parameter of {Estimator.__name__}"):
            Estimator(**{name: {"rule": "sqrt"}}).fit(X, y)
    for loss in (LabeledLoss("l1"), LabeledLoss("modified_logistic", 1e20)):
        with pytest.raises(ValueError, match="labeled_loss must be one of"):
            Estimator(labeled_loss=loss).fit(X, y)


@pytest.mark.parametrize("group", [Features, Schedule, Polish])
def test_counts_in_groups_have_ends_and_true_is_one_of_them(group, blobs):
    X, t, _ = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)[:60]
    for name, constraints in group._constraints.items():
        ends = [one.right for one in constraints if isinstance(one, Interval)]
        assert np.all(np.isfinite(np.array(ends, dtype=float))), name
        if not any(getattr(one, "type", None) is Integral for one in constraints):
            continue
        options = {group.__name__.lower(): group(**{name: True})}
        for update in ("all", "block"):
            model = TSGS3VM(update=update, n_steps=3, n_features=16, random_state=0, **options)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X[:60], y).partial_fit(X[:60], y)


def test_nobody_holds_more_than_24_parameters_in_mind():
    assert len(FRS3VM().get_params()) == 23
    assert len(TSGS3VM().get_params()) == 24


@pytest.mark.parametrize("change", [dict(block_size=64), dict(window=4)])
def test_blocks_and_windows_are_not_for_features_that_are_all_there(change):
    X, y = np.random.default_rng(0).standard_normal((20, 2)), np.arange(20) % 2
    with pytest.raises(ValueError, match=f"features must leave {next(iter(change))}"):
        FRS3VM(features=Features(**change)).fit(X, y)


@BOTH
def test_none_and_true_are_the_groups_with_their_defaults(blobs, Estimator):
    X, t, _ = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    options = dict(n_features=64, n_steps=20, random_state=0)
    expected = Estimator(**options).fit(X, y).feature_coef_
    groups = dict(features=Features(), schedule=Schedule(), polish=Polish())
    assert_array_equal(Estimator(**groups, **options).fit(X, y).feature_coef_, expected)


def test_groups_are_values():
    """Equal ones are one value, as `clone` and a grid search take it; arrays become tuples."""
    one, other = (Polish(annealing=a) for a in ([0.1, 1.0], np.array([0.1, 1.0])))
    assert one == other == pickle.loads(pickle.dumps(other))
    assert hash(one) == hash(other) and one.stages == (0.1, 1.0)
    assert Polish().stages == Polish(annealing="geometric").stages
    with pytest.raises(AttributeError):
        one.tol = 1.0


# --- All rows in every gradient -------------------------------------------------------------------


def test_the_gradient_of_the_sum_over_blocks(blobs):
    X, t, _ = blobs
    stream = FeatureStream(RBF, 3, 8, 0)
    problem = literal(3.0, 2.0, t, ("logistic", "gaussian"))
    scaled, _, strength = problem.scaled(t, np.ones(t.size))
    sums = BlockSum(stream, 2, X, t, scaled, loss_codes(problem), block_rows=500)
    w = np.random.default_rng(0).standard_normal(16)

    def value(w):
        return sums(strength, w, 0.3)[0]

    assert check_grad(value, lambda w: sums(strength, w, 0.3)[1], w) < 1e-5
    step = (sums(strength, w, 0.3 + 1e-5)[0] - sums(strength, w, 0.3 - 1e-5)[0]) / 2e-5
    assert_allclose(sums(strength, w, 0.3)[2], step, rtol=1e-6)
    f = outputs(stream, X, w.reshape(2, 8) / stream.block(0).scale, double=True) + 0.3
    total = problem.value(f, t, 0.0) / (problem.C * 30)
    assert_allclose(value(w), total, rtol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_value_of_a_stage_is_the_objective_offset_included(blobs, fit_intercept):
    """F = J/(C Σ s) at the end, with ½b² where the offset is regularized."""
    X, t, _ = blobs
    y = np.where(t == 0, -1, (t > 0).astype(int))
    model = FRS3VM(
        C=0.05, balance=None, fit_intercept=fit_intercept, n_steps=0, n_features=64, random_state=0
    ).fit(X[:300], y[:300])
    mass = 0.05 * np.sum(y[:300] >= 0)
    assert_allclose(model.history_[-1].value * mass, model.objective_, rtol=1e-6)
    b = model.intercept_[0]
    assert (abs(b) > 0.05) == fit_intercept
    if fit_intercept:  # no other one is better
        f = model.decision_function(X[:300])
        above, below = (
            model.problem_.value(f + h, t[:300], model.squared_norm_, b + h) for h in (1e-4, -1e-4)
        )
        assert abs(above - below) / 2e-4 < 1e-3


def test_a_sample_of_the_unlabeled_rows_has_the_weight_of_all(blobs):
    """Where they all are one point, a sample leaves out nothing."""
    X, t, _ = blobs
    X, y = X[:300].copy(), np.where(t == 0, -1, (t > 0).astype(int))[:300]
    X[30:] = 0.3, 0.5, -0.5
    weight = np.where(y < 0, np.linspace(0.5, 2.0, 300), 1.0)
    options = dict(balance=None, n_steps=0, n_features=64, random_state=0)
    whole, sample = (
        FRS3VM(polish=Polish(rows=rows, tol=1e-7, ftol=1e-14), **options).fit(X, y, weight)
        for rows in (None, 20)
    )
    assert_allclose(sample.decision_function(X), whole.decision_function(X), atol=1e-4)
    assert_allclose(sample.objective_, whole.objective_, rtol=1e-5)
    labeled = weight[:30].sum()
    assert_allclose(sample.history_[-1].value * labeled, whole.objective_, rtol=1e-5)


def test_kept_features_and_features_computed_again_agree(blobs, monkeypatch):
    X, t, _ = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    polish = Polish(tol=1e-7, ftol=1e-12)
    options = dict(n_steps=0, n_features=64, random_state=0, polish=polish)
    kept = FRS3VM(**options).fit(X, y)
    for name in ("CACHE", "CACHE_SINGLE"):
        monkeypatch.setattr(f"s3vm_lib.stochastic._blocks.{name}", 0)
        again = FRS3VM(**options).fit(X, y)
        assert_allclose(again.decision_function(X), kept.decision_function(X), atol=2e-3)
        assert_allclose(again.objective_, kept.objective_, rtol=1e-5)


def test_it_is_qns3vm_on_these_features(blobs):
    X, t, _ = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    exact, same = dict(tol=1e-8, ftol=0.0), dict(C=2.0, balance="labels")
    polish = Polish(rows=None, **exact)
    model = FRS3VM(n_steps=0, n_features=64, random_state=0, polish=polish, **same).fit(X, y)
    blocks = range(model.feature_coef_.shape[1])
    Z = np.hstack([model.stream_.features(X, model.stream_.block(k)) for k in blocks])
    other = QNS3VM(kernel="linear", **exact, **same).fit(Z / np.sqrt(Z.shape[1]), y)
    assert_allclose(model.objective_, other.objective_, rtol=1e-5)
    weights = model.feature_coef_[0].ravel() * np.sqrt(Z.shape[1])
    assert_allclose(weights, other.coef_[0], atol=2e-3)


@BOTH
def test_polishing_lowers_the_objective(blobs, Estimator):
    X, t, _ = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    options = dict(random_state=0, n_features=256, n_steps=100)
    rough = Estimator(polish=False, **options).fit(X, y)
    fine = Estimator(polish=True, **options).fit(X, y)
    assert fine.objective_ < rough.objective_
    assert fine.termination_condition_ == "converged"
    assert fine.feature_coef_.shape == rough.feature_coef_.shape
    # With the whole unlabeled term from the start: what the steps have found is not annealed away.
    assert [state.alpha for state in fine.history_ if isinstance(state, Stage)] == [1.0]


def test_a_solution_as_the_start_is_kept(blobs):
    X, t, _ = blobs
    stream, problem = FeatureStream(RBF, 3, 32, 0), literal(30.0, 30.0, t, ("logistic", "gaussian"))
    weight = np.ones(t.size)
    coordinates = StreamFeatures(stream, 1, X, t, problem.scaled(t, weight)[0], problem)
    arguments = (coordinates, t, weight, problem)
    found = solve_full_batch(*arguments, tol=1e-6, ftol=0.0)
    again = solve_full_batch(*arguments, start=(found.alpha, found.offset), tol=2e-6, ftol=0.0)
    assert found.n_iter > 10
    assert again.n_iter == 0
    assert_allclose(again.alpha, found.alpha, rtol=1e-12)


# --- Threads, memory maps, batches ----------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        FRS3VM(random_state=0, n_features=512, n_steps=30),
        FRS3VM(random_state=0, n_features=512, n_steps=0),
        TSGS3VM(random_state=0, n_steps=30),
        TSGS3VM(random_state=0, update="block", n_steps=30, features=Features(block_size=64)),
    ],
    ids=["steps", "full batch", "growing", "block"],
)
def test_threads_memory_maps_and_pickles_change_no_bit(blobs, tmp_path, model):
    X, t, _ = blobs
    X = X.astype(np.float32)
    y = np.where(t != 0, t + 1, -1).astype(int)
    X.tofile(tmp_path / "rows")
    rows = np.memmap(tmp_path / "rows", np.float32, "r", shape=X.shape)
    expected = model.fit(X, y).decision_function(X)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.decision_function(X), expected)
    assert_array_equal(model.fit(rows, y).decision_function(rows), expected)
    model.set_params(n_jobs=2)
    assert_array_equal(model.fit(rows, y).decision_function(X), expected)
    model.set_params(n_jobs=1)


@pytest.mark.parametrize(
    "model",
    [
        FRS3VM(random_state=0, n_features=256),
        TSGS3VM(random_state=0),
        TSGS3VM(random_state=0, update="block", features=Features(block_size=32)),
        FRS3VM(random_state=0, kernel="linear"),
    ],
    ids=["FRS", "TSG", "block", "linear"],
)
def test_batches(blobs, model):
    X, t, truth = blobs  # linear machines that are fitted to all rows err on 0.119 of them
    y = np.where(t != 0, t + 1, -1).astype(int)
    for start in range(0, 1200, 200):
        batch = slice(start, start + 200)
        model.partial_fit(X[batch], y[batch], classes=[0, 2])
    assert np.mean(np.where(model.predict(X) == 2, 1, -1) != truth) < 0.12
    assert_allclose(model.problem_.C_star, 30 / 1170)
    steps, before = model.n_iter_, model.decision_function(X)
    copy = pickle.loads(pickle.dumps(model)).partial_fit(sp.csr_matrix(X[:100]), y[:100])
    assert copy.n_iter_ > steps
    with pytest.raises(ValueError, match="not among the classes"):
        model.partial_fit(X[:20], np.arange(20))

    def interrupt(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(callback=interrupt).partial_fit(X[:300], y[:300])
    model.set_params(callback=None)
    assert_array_equal(model.decision_function(X), before)
    with pytest.raises(ValueError, match="non-zero"):
        model.partial_fit(X[:5], y[:5], sample_weight=np.zeros(5))
    model.partial_fit(X[40:60], y[40:60])
    assert np.mean(np.where(model.predict(X) == 2, 1, -1) != truth) < 0.12


def test_batches_before_any_label_and_after_a_fit(blobs, monkeypatch):
    monkeypatch.setattr(_estimators, "LABELED_KEPT", 20)
    X, t, truth = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    model = TSGS3VM(random_state=0)
    model.partial_fit(X[30:200], y[30:200], classes=[0, 2])
    assert_array_equal(model.decision_function(X), np.zeros(1200))
    model.partial_fit(X[:30], y[:30]).partial_fit(X[200:], y[200:])
    assert np.mean(np.where(model.predict(X) == 2, 1, -1) != truth) < 0.1
    model.fit(X[:400], y[:400]).partial_fit(X[400:], y[400:])
    assert np.mean(np.where(model.predict(X) == 2, 1, -1) != truth) < 0.1
    with pytest.raises(ValueError, match="balanced"):
        TSGS3VM(class_weight="balanced").partial_fit(X[:30], y[:30])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_shares_are_those_of_all_batches(semi_supervised, n_classes):
    X, y = semi_supervised(n=90, n_labeled=30, n_classes=n_classes)
    classes = np.arange(n_classes)
    model = FRS3VM(n_steps=5, n_features=16, random_state=0)
    assert model.partial_fit(X[y >= 0], y[y >= 0], classes=classes).class_ratio_ is None
    model.partial_fit(X[y < 0], y[y < 0])
    assert_allclose(model.class_ratio_, np.bincount(y[y >= 0]) / 30)
    model.partial_fit(X[:30], np.zeros(30, int))
    more = np.bincount(np.r_[y[y >= 0], np.zeros(30, int)]) / 60
    assert_allclose(model.class_ratio_, more)
    model.set_params(balance={k: 0.5 if k == 0 else 0.5 / (n_classes - 1) for k in classes})
    model.partial_fit(X[:30], y[:30])
    assert_allclose(model.class_ratio_, list(model.balance.values()))
    model.set_params(balance=None).partial_fit(X[:30], y[:30])
    assert model.class_ratio_ is None


@BOTH
def test_steps_after_a_stopped_fit_go_on_where_it_stopped(blobs, Estimator):
    X, t, _ = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    model = Estimator(n_steps=400, random_state=0, callback=lambda state: True).fit(X, y)
    taken = model.n_iter_
    assert taken < 400
    model.set_params(callback=None, n_steps=7).partial_fit(X[:100], y[:100])
    assert model.n_iter_ == taken + 7


def test_only_the_newest_rows_are_kept_from_one_call_to_the_next(blobs, monkeypatch):
    X, t, _ = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    for rows in (X, sp.csr_matrix(X)):
        model = FRS3VM(n_steps=5, n_features=16, random_state=0).partial_fit(rows[:300], y[:300])
        monkeypatch.setattr(_estimators, "LABELED_KEPT", 5)
        monkeypatch.setattr(_estimators, "UNLABELED_KEPT", 20)
        machine = model._machines[0]
        for batch in (slice(300, 340), slice(0, 10)):  # unlabeled rows alone, then labeled ones
            model.partial_fit(rows[batch], y[batch])
            assert machine.labeled.X.shape[0] == machine.labeled.t.size == 5
            assert machine.unlabeled.X.shape[0] == machine.unlabeled.weight.size == 20
        assert np.all(np.isfinite(model.decision_function(X)))


def test_without_transduction(blobs):
    X, t, _ = blobs
    y = np.where(t != 0, t + 1, -1).astype(int)
    model = TSGS3VM(random_state=0, n_steps=20, transduce=False).fit(X, y)
    assert not hasattr(model, "transduction_")
    assert np.isnan(model.objective_)
    full = TSGS3VM(random_state=0, n_steps=20).fit(X, y)
    assert_allclose(model.decision_function(X), full.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("n_columns", [1, 5, 40])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_the_limit_of_rows_far_out_is_where_single_precision_ends(kernel, n_columns):
    """From both sides: turns of the largest frequencies, drawn in double precision."""
    rng, gamma = np.random.default_rng(0), 0.7
    X = rng.choice([-1.0, 1.0], (20, n_columns))
    draws = 2000
    if kernel == "rbf":  # ω ~ N(0, 2γ); four deviations
        spread = 4 * np.std(math.sqrt(2 * gamma) * rng.standard_normal((draws, n_columns)) @ X.T)
    else:  # ω ~ Cauchy(γ): quantiles of a sum of Cauchy numbers are sums of theirs
        waves = gamma * rng.standard_cauchy((draws, n_columns)) @ X.T
        spread = np.median(np.abs(waves))
    limit = 2.0**20 * 2 * math.pi / spread
    model = FRS3VM(gamma=gamma, kernel=kernel, n_features=8, n_steps=0, random_state=0)
    with pytest.raises(ValueError, match="too large for random features"):
        model.fit(1.2 * limit * X, np.arange(20) % 2)
    model.fit(limit / 1.2 * X, np.arange(20) % 2)


@BOTH
def test_steps_that_hold_too_much_are_refused(Estimator, monkeypatch):
    monkeypatch.setattr(_estimators, "_MOST", 10_000)
    X, y = np.random.default_rng(0).standard_normal((400, 50)), np.arange(400) % 2
    y[250:] = -1
    rows, many = sp.csr_matrix(X), r"the 250 labeled rows of X.* take 5e-05 GB with 50 columns"
    model = Estimator(kernel="linear", balance=None, n_steps=1, random_state=0)
    with pytest.raises(ValueError, match=r"batch of 256 rows takes 5\.12e-05 GB: .*TruncatedSVD"):
        model.fit(rows, y)
    model.set_params(schedule=Schedule(batch_size=200)).fit(X, y)  # dense as they are
    with pytest.raises(ValueError, match=many):
        model.fit(rows, y)
    model.fit(rows[150:], y[150:])
    with pytest.raises(ValueError, match=many):  # with those of the fit
        model.partial_fit(rows[:150], y[:150])
    # The number of features is that of the columns, or what is asked for.
    model.set_params(schedule=Schedule(batch_size=100), n_features=128).fit(X, y)
    with pytest.raises(ValueError, match=r"batch of 100 rows .*labeled_batch or n_features"):
        model.set_params(kernel="rbf").fit(X[:, :3], y)
    # Without steps there is no batch, and rows are gone through in tiles.
    model.set_params(kernel="linear", schedule=None, n_steps=0).fit(rows, y)


def test_arrays_in_memory_are_not_for_a_cluster(tmp_path):
    X = np.random.default_rng(0).standard_normal((20, 2))
    for rows in (X, sp.csr_matrix(X)):
        with pytest.raises(ValueError, match=r"numpy\.memmap"):
            on_disk(rows)
    X.tofile(tmp_path / "rows")
    rows = np.memmap(tmp_path / "rows", float, "r", shape=(20, 2))
    assert_array_equal(on_disk(np.asarray(rows)).open(), X)
    assert_array_equal(on_disk(rows[5:]).open(), X[5:])
    with pytest.raises(ValueError, match="C-ordered"):
        on_disk(rows[:, 1:])
    with pytest.raises(ValueError, match=r"'client' parameter .* 'submit' and 'gather'"):
        Polish(client=10.0)


class Here:
    """The part of a Dask client that `BlockSum` uses; what is sent goes through pickle."""

    def submit(self, function, *arguments, pure):
        assert not pure  # the scheduler must not look at the arguments
        return function(*pickle.loads(pickle.dumps(arguments)))

    def gather(self, futures):
        return futures


@pytest.mark.parametrize("limit", [None, 0], ids=["kept", "computed again"])
def test_tasks_give_the_bits_of_threads(blobs, tmp_path, monkeypatch, limit):
    X, t, _ = blobs
    X.tofile(tmp_path / "rows")
    rows = np.memmap(tmp_path / "rows", float, "r", shape=X.shape)
    if limit is not None:
        monkeypatch.setattr("s3vm_lib.stochastic._blocks.CACHE_SINGLE", limit)
    stream, problem = FeatureStream(RBF, 3, 8, 0), literal(3.0, 2.0, t, ("logistic", "gaussian"))
    scaled, _, strength = problem.scaled(t, np.ones(t.size))
    arguments = (stream, 2, rows, t, scaled, loss_codes(problem))
    w = np.random.default_rng(0).standard_normal(16)
    threads = BlockSum(*arguments, n_jobs=2, block_rows=500)
    tasks = BlockSum(*arguments, client=Here(), block_rows=500)
    for found, expected in zip(tasks(strength, w, 0.3), threads(strength, w, 0.3), strict=True):
        assert_array_equal(found, expected)
    assert_array_equal(tasks.mean(), threads.mean())
    y = np.where(t != 0, t + 1, -1).astype(int)
    options = dict(n_steps=0, n_features=16, random_state=0)
    alone = FRS3VM(polish=Polish(rows=None), **options).fit(rows, y)
    model = FRS3VM(polish=Polish(client=Here()), **options).fit(rows, y)
    assert_array_equal(model.feature_coef_, alone.feature_coef_)


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker(tmp_path):
    distributed = pytest.importorskip("distributed")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 4)).astype(np.float32)
    y = np.where(np.arange(20_000) < 100, X[:, 0] > 0, -1)
    X[:, 0] += np.sign(X[:, 0])
    X.tofile(tmp_path / "rows")
    rows = np.memmap(tmp_path / "rows", np.float32, "r", shape=X.shape)
    options = dict(n_steps=0, n_features=32, random_state=0)
    alone = FRS3VM(polish=Polish(rows=None, max_iter=5), **options)
    with pytest.warns(Warning, match="max_iter"):
        expected = alone.fit(rows, y).feature_coef_
    killed = []

    def kill(state):
        if state["alpha"] > 0 and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        model = FRS3VM(polish=Polish(max_iter=5, client=client), callback=kill, **options)
        with pytest.warns(Warning, match="max_iter"):
            found = model.fit(rows, y).feature_coef_
        assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert killed


@pytest.mark.parametrize("labeled", [None, 4])
def test_stored_features_against_plain_numpy(blobs, labeled):
    X, t, _ = blobs
    stream, problem = FeatureStream(RBF, 3, 32, 4), literal(5.0, 3.0, t)
    schedule = plain(batch=16, labeled=labeled)
    run = solve_stored(X, t, np.ones(t.size), problem, stream, 2, 25, schedule, seed=6)
    Z = np.hstack([stream.features(X, stream.block(k)) for k in range(2)])
    L, U = np.flatnonzero(t), np.flatnonzero(t == 0)
    pool, c = Sampler(U, np.ones(U.size), 6, UNLABELED), np.zeros(64)
    among = Sampler(L, np.ones(L.size), 6, LABELED)
    for k in range(25):
        rows = pool.draw(16 * k, 16)
        if labeled is not None:  # fresh ones in each step
            L = among.draw(labeled * k, labeled)
        slope = np.where(t[L] * (Z[L] @ c) < 1, -t[L], 0) * 5.0 / L.size
        f = Z[rows] @ c
        star = np.where(np.abs(f) < 1, -np.sign(f), 0) * 3.0 / 16
        c = 0.95 * c - 0.05 / 64 * (Z[L].T @ slope + Z[rows].T @ star)
    assert_allclose(run.last[0].ravel(), c, atol=1e-6)


# --- What rounding changes, and where the origin is -----------------------------------------------


def g50c():
    """550 rows in 50 columns, 60 of them labeled, with ‖x‖² of about 50."""
    X, truth = make_g50c(550, random_state=0)
    return X, hide_labels(truth, 60, random_state=0)


@pytest.mark.parametrize(
    "kernel", [{"kernel": "linear"}, {"sigma_f": 10.0}, {"kernel": "poly", "coef0": 1.0}], ids=str
)
def test_rounding_does_not_decide_where_long_features_lead(kernel):
    """Steps of the size that suits k(x, x) = 1 would make every last bit grow."""
    X, y = g50c()
    found = [
        FRS3VM(random_state=0, **kernel).fit(form, y).objective_
        for form in (X, X * (1 + 1e-12), sp.csr_matrix(X))
    ]
    assert_allclose(found, found[0], rtol=1e-3)


@BOTH
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, np.float32])
def test_linear_features_have_no_origin(Estimator, form):
    X, y = g50c()
    X = X[:200, :4].astype(np.float32).astype(float)
    model = Estimator(kernel="linear", balance=0.5, random_state=0)
    near = model.fit(X, y[:200]).objective_
    far = np.round(X * 2**6) / 2**6 + 2.0**17  # a hundred thousand standard deviations
    model.fit(form(far), y[:200])
    assert_allclose(model.objective_, near, rtol=0.02 if form is np.float32 else 1e-3)
    found = model.predict(form(far))
    assert_array_equal(found[y[:200] < 0], model.transduction_[y[:200] < 0])
    # J of the very machine that predicts, on the rows as they are.
    shares = evaluate(model, far, y[:200], model.problem_)
    assert_allclose(shares.objective, model.objective_, rtol=1e-6)
    assert shares.balance_residual < 1e-6
