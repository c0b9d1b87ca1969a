"""Deterministic annealing: the probabilities, the free energy, the optimum, the estimator."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr, rel_entr
from sklearn.svm import LinearSVC

from s3vm_lib import datasets
from s3vm_lib.annealing import (
    DAS3VM,
    balance_multiplier,
    loss_gaps,
    mean_divergence,
    mean_entropy,
    probabilities,
    solve_deterministic_annealing,
)
from s3vm_lib.finite_newton import linear_rows, solve_finite_newton
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss, labeled_loss
from s3vm_lib.objective import Problem, evaluate
from s3vm_lib.reference import annealing as twin

TIGHT = {"tol": 1e-10, "path_tol": 1e-10}


def instance(seed=0, labeled=12, unlabeled=40, d=4, distance=0.8):
    """(X, t): two overlapping clouds, labeled rows first."""
    rng = np.random.default_rng(seed)
    t = np.where(rng.permutation(labeled + unlabeled) % 2 == 0, 1.0, -1.0)
    t[:2] = 1, -1
    X = rng.standard_normal((t.size, d)) + distance * t[:, None] * (np.arange(d) < 2)
    t[labeled:] = 0
    return X, t


def problem(C=2.0, C_star=0.5, ratio=0.45):
    losses = LabeledLoss("squared_hinge"), UnlabeledLoss("squared_symmetric_hinge")
    return Problem(*losses, C, C_star, bias="regularized", ratio=ratio)


# --- The step in p --------------------------------------------------------------------------------


def test_gaps_are_differences_of_the_loss():
    o, gap, squared = np.linspace(-3, 3, 61), np.empty(61), labeled_loss("squared_hinge")
    loss_gaps(o, gap)
    assert_allclose(gap, squared.value(np.ones(61), o) - squared.value(-np.ones(61), o), atol=1e-14)
    assert np.all(np.diff(gap) < 0)


@pytest.mark.parametrize("T", [1e-5, 1e-3, 0.1, 1.0, 50.0])
@pytest.mark.parametrize("ratio", [0.001, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("first", [0.0, -1e6, 1e6])
def test_the_multiplier_balances_to_the_last_digits(T, ratio, first):
    rng = np.random.default_rng(0)
    gap, p = 3 * rng.standard_normal(500), np.empty(500)
    share = rng.uniform(0.1, 2, 500)
    share /= share.sum()
    nu = balance_multiplier(gap, share, ratio, T, first, p)
    assert abs(share @ p - ratio) <= 1e-12
    inside = (p > 1e-9) & (p < 1 - 1e-9)
    # Stationarity of Φ_T − ν Σ p: g + T log(p/(1 − p)) = ν.
    stationary = gap[inside] + T * np.log(p[inside] / (1 - p[inside]))
    assert_allclose(stationary, nu, atol=1e-6 * max(1.0, T))
    assert_array_equal(p > 0.5, gap < nu)


def test_the_multiplier_at_the_edges():
    share, p = np.full(4, 0.25), np.empty(4)
    same = np.full(4, 0.7)
    nu = balance_multiplier(same, share, 0.2, 0.5, 0.0, p)
    assert_allclose(p, 0.2, atol=1e-13)
    assert_allclose(nu, 0.7 + 0.5 * np.log(0.25), atol=1e-12)
    # One row of four positive: any ν in a gap between two rows does, up to rounding.
    balance_multiplier(np.array([3.0, -1.0, 2.0, 5.0]), share, 0.25, 1e-9, 0.0, p)
    assert_allclose(p, [0, 1, 0, 0], atol=1e-12)
    # 0.3 cannot be met by zeros and ones: one row stays in between.
    balance_multiplier(np.array([3.0, -1.0, 2.0, 5.0]), share, 0.3, 1e-6, 0.0, p)
    assert_allclose(p, [0, 1, 0.2, 0], atol=1e-9)
    one = np.empty(1)
    balance_multiplier(np.array([4.0]), np.ones(1), 0.6, 0.1, 0.0, one)
    assert_allclose(one, 0.6, atol=1e-13)


def test_probabilities_entropy_and_divergence():
    rng = np.random.default_rng(1)
    gap, share, p = rng.standard_normal(50), np.full(50, 0.02), np.empty(50)
    mean, spread = probabilities(gap, share, 0.3, 0.4, p)
    assert_allclose(p, 1 / (1 + np.exp((gap - 0.3) / 0.4)), rtol=1e-13)
    assert_allclose([mean, spread], [p.mean(), np.mean(p * (1 - p))], rtol=1e-13)
    ahead, behind = (probabilities(gap, share, 0.3 + h, 0.4, p)[0] for h in (1e-5, -1e-5))
    assert_allclose((ahead - behind) / 2e-5, spread / 0.4, rtol=1e-6)
    probabilities(1e6 * gap, share, 0.0, 1e-3, p)
    assert_array_equal(p, gap < 0)  # no overflow on the way
    p, q = rng.random((2, 50))
    p[:2], q[2:4] = (0, 1), (0.5, 0.5)
    weight = rng.random(50)
    assert_allclose(mean_entropy(p, weight), weight @ (entr(p) + entr(1 - p)), rtol=1e-12)
    divergence = weight @ (rel_entr(p, q) + rel_entr(1 - p, 1 - q))
    assert_allclose(mean_divergence(p, q, weight), divergence, rtol=1e-10)
    assert mean_divergence(p, p, weight) == 0


# --- The solver -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ratio", [0.5, 0.3, None])
@pytest.mark.parametrize("sparse", [False, True])
def test_at_a_temperature_the_free_energy_falls(seed, ratio, sparse):
    X, t = instance(seed, distance=0.4)
    weight = np.random.default_rng(seed).uniform(0.5, 2, 52)
    rows = linear_rows(sp.csr_matrix(X) if sparse else X)
    for tolerances in ({}, TIGHT):
        arguments = rows, t, weight, problem(10.0, 5.0, ratio)
        solution = solve_deterministic_annealing(*arguments, **tolerances)
        assert solution.status == "converged"
        assert max(stage.n_rounds for stage in solution.history) > 3
        for stage in solution.history:
            # What is left of the balance, 1e-13, times ν ~ 10 and the total cost.
            assert np.all(np.diff(stage.free_energies) <= 1e-10)
        assert solution.objective <= min(stage.objective for stage in solution.history)
        share = weight[t == 0] / weight[t == 0].sum()
        if ratio is not None:
            assert abs(share @ solution.probabilities - ratio) <= 1e-12
        temperatures = [stage.temperature for stage in solution.history[1:]]
        assert_allclose(temperatures, 5.0 / 1.5 ** np.arange(len(temperatures)))
        assert len(temperatures) == 30 or solution.history[-1].entropy < 1e-6
        assert np.mean(np.minimum(solution.probabilities, 1 - solution.probabilities)) < 0.02


def test_the_start_is_the_convex_problem_with_equal_probabilities():
    cp = pytest.importorskip("cvxpy")
    X, t = instance()
    v, o = cp.Variable(5), None
    o = np.c_[X, np.ones(52)] @ v

    def hot(sign):
        return cp.square(cp.pos(1 - sign * o))

    plus, minus = (
        np.where(t > 0, 2.0, (t == 0) * 0.5 * 0.45),
        np.where(t < 0, 2.0, (t == 0) * 0.275),
    )
    energy = 0.5 * cp.sum_squares(v) + 0.5 * (plus @ hot(1) + minus @ hot(-1))
    lowest = cp.Problem(cp.Minimize(energy)).solve(solver="CLARABEL")
    seen = []
    solve_deterministic_annealing(
        linear_rows(X),
        t,
        np.ones(52),
        problem(),
        callback=lambda s: seen.append(s) or True,
        **TIGHT,
    )
    assert len(seen) == 1 and seen[0].temperature == np.inf
    assert_allclose(seen[0].free_energies, [lowest], rtol=1e-7)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sparse", [False, True])
def test_the_twin_takes_the_same_path(seed, sparse):
    X, t = instance(seed)
    rows = linear_rows(sp.csr_matrix(X) if sparse else X)
    solution = solve_deterministic_annealing(rows, t, np.ones(52), problem(), **TIGHT)
    v, path = twin.anneal(np.c_[X, np.ones(52)], t, 2.0, 0.5, 0.45)
    found = [(s.temperature, energy) for s in solution.history[1:] for energy in s.free_energies]
    assert_allclose(found, path, rtol=1e-8)
    assert_allclose(solution.v, v, atol=1e-7)


def test_never_below_the_optimum_by_enumeration():
    hits = 0
    for seed in range(8):
        X, t = instance(seed, labeled=4, unlabeled=8, d=3, distance=1.2)
        rows, labeled, found = linear_rows(X), t != 0, []
        weight = np.where(labeled, 1.0, 0.6)
        for signs in itertools.product((-1.0, 1.0), repeat=8):
            labels = np.r_[t[labeled], signs]
            costs = weight * (labels > 0), weight * (labels < 0)
            trained = solve_finite_newton(rows, *costs, tol=1e-7)
            found.append((trained.objective, np.mean(np.array(signs) > 0)))
        lowest, share = min(found)
        for ratio in (0.5, None, np.clip(share, 0.01, 0.99)):
            arguments = rows, t, np.ones(12), problem(1.0, 0.6, ratio)
            solution = solve_deterministic_annealing(*arguments, **TIGHT)
            assert solution.objective >= lowest * (1 - 1e-9)
        hits += solution.objective <= lowest * (1 + 1e-3)
    assert hits >= 6  # where the share is known


def test_without_unlabeled_cost_it_is_the_supervised_model():
    X, t = instance()
    labeled = t != 0
    svc = LinearSVC(C=1.0, loss="squared_hinge", dual=False, tol=1e-10).fit(X[labeled], t[labeled])
    expected = np.r_[svc.coef_[0], svc.intercept_]
    for rows, s in ((labeled, t[labeled]), (slice(None), t)):
        arguments = linear_rows(X[rows]), s, np.ones(s.size), problem(2.0, 0.0)
        solution = solve_deterministic_annealing(*arguments, tol=1e-9)
        assert_allclose(solution.v, expected, atol=1e-6)
        assert len(solution.history) == 1 and solution.probabilities.size == 0


def test_what_is_kept_and_how_precisely():
    X, t = instance(2, distance=0.4)
    arguments = linear_rows(X), t, np.ones(52), problem(10.0, 5.0, 0.2)
    best = solve_deterministic_annealing(*arguments)
    last = solve_deterministic_annealing(*arguments, keep="last")
    assert best.objective < 0.999 * last.objective
    tight = solve_deterministic_annealing(*arguments, keep="last", path_tol=1e-9, tol=1e-9)
    assert_allclose(last.v, tight.v, atol=2e-3 * np.linalg.norm(tight.v))
    few = solve_deterministic_annealing(*arguments, max_rounds=2, n_temperatures=7)
    assert len(few.history) == 8 and few.status == "converged"
    assert "max_rounds" in [stage.status for stage in few.history]
    assert solve_deterministic_annealing(*arguments, max_iter=1).status == "max_iter"


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_the_last_model_is_a_minimizer_for_its_probabilities(tol):
    """‖∇Φ‖ ≤ tol ‖v‖, though the path is looser."""
    for seed in range(4):
        X, t = instance(seed, distance=0.4)
        arguments = linear_rows(X), t, np.ones(52), problem(10.0, 5.0, 0.3)
        found = solve_deterministic_annealing(*arguments, keep="last", tol=tol, path_tol=0.1)
        plus, minus = np.where(t > 0, 10.0, 0.0), np.where(t < 0, 10.0, 0.0)
        plus[t == 0] = 5.0 * found.probabilities
        minus[t == 0] = 5.0 * (1 - found.probabilities)
        full = np.c_[X, np.ones(52)]
        o = full @ found.v
        slopes = minus * np.maximum(0, 1 + o) - plus * np.maximum(0, 1 - o)
        assert np.linalg.norm(found.v + full.T @ slopes) <= 1.01 * tol * np.linalg.norm(found.v)


def test_every_stage_counts_the_iterations_of_its_own_trainings(monkeypatch):
    trained = []

    def counted(*arguments, **options):
        found = solve_finite_newton(*arguments, **options)
        trained.append((found.n_iter, found.n_cg))
        return found

    monkeypatch.setattr("s3vm_lib.annealing.solve_finite_newton", counted)
    X, t = instance()
    solution = solve_deterministic_annealing(linear_rows(X), t, np.ones(52), problem())
    rounds = np.cumsum([stage.n_rounds for stage in solution.history])
    *stages, once_more = np.split(trained, rounds)
    assert len(stages) > 5 and len(once_more) == 1
    expected = [tuple(stage.sum(axis=0)) for stage in stages]
    assert [(stage.n_iter, stage.n_cg) for stage in solution.history] == expected
    assert solution.n_iter == sum(n_iter for n_iter, _ in trained)


@pytest.mark.parametrize(("cooling", "n_temperatures"), [(1.5, 2000), (1e6, 60)])
def test_temperatures_stay_numbers(cooling, n_temperatures):
    """A row on the boundary has p = ½ however cold it is, so that no entropy ends the annealing."""
    X, t = np.array([[-1.0], [1.0], [0.0]]), np.array([-1.0, 1.0, 0.0])
    options = {"cooling": cooling, "n_temperatures": n_temperatures}
    rows, weight = linear_rows(X), np.ones(3)
    found = solve_deterministic_annealing(rows, t, weight, problem(ratio=None), **options)
    temperatures = np.array([stage.temperature for stage in found.history[1:]])
    assert temperatures.size == n_temperatures and np.isfinite(found.objective)
    assert 0 < temperatures[-1] == temperatures[-2] < 1e-290
    expected = 5.0 / cooling ** np.arange(40.0)
    assert_allclose(temperatures[:40], expected, rtol=1e-13)


# --- The estimator --------------------------------------------------------------------------------


@pytest.mark.parametrize("balance", ["labels", 0.3, None])
def test_objective_of_the_estimator(balance):
    X, t = instance(distance=2.0)
    y = np.where(t == 0, -1, (t > 0).astype(int))
    weight = np.random.default_rng(0).uniform(0.5, 2, 52)
    options = {"C": 3.0, "C_star": 0.2, "balance": balance, "class_weight": {1: 1.0}}
    model = DAS3VM(**options).fit(X, y, sample_weight=weight)
    found = evaluate(model, X, y, model.problem_, weight)
    assert_allclose(found.objective, model.objective_, rtol=1e-12)
    assert model.problem_.balance == "none" and model.problem_.bias == "regularized"
    share = weight[y == 1].sum() / weight[y >= 0].sum()
    expected = {"labels": share, 0.3: 0.3, None: None}[balance]
    assert model.problem_.ratio == (expected and pytest.approx(expected, rel=1e-14))


@pytest.mark.parametrize(("lam", "error"), [(1e-3, 0.0144), (1e-2, 0.046)])
def test_documents(lam, error):
    """Within half a point of SVMlin's error on the same 2000 documents, 50 of them labeled."""
    X, y = datasets.make_bag_of_words(7000, 20_000, n_terms=60, random_state=50)
    target = np.r_[y[:50], np.full(1950, -1)]
    model = DAS3VM(C=1 / (50 * lam), C_star=1 / (1950 * lam), balance="labels")
    model.fit(X[:2000], target)
    assert np.mean(model.predict(X[2000:]) != y[2000:]) <= error


@pytest.mark.slow
def test_text_with_published_splits():
    try:
        bunch = datasets.load("text_lds")
    except OSError as reason:
        pytest.skip(str(reason))
    errors = []
    for labeled in bunch.splits["lab50"]:
        y = np.full(len(bunch.target), -1)
        y[labeled] = bunch.target[labeled]
        hidden = y < 0
        # λ = .03 and λ′ = 10
        model = DAS3VM(C=1 / (0.03 * 50), C_star=10 / (0.03 * hidden.sum()))
        found = model.fit(bunch.data, y).transduction_
        errors.append(np.mean(found[hidden] != bunch.target[hidden]))
    assert np.mean(errors) <= 0.065
