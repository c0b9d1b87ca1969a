"""Budgets: no limit is no change, limits are kept, and each maintenance does what it says."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from s3vm_lib import BGS3VM, GKM
from s3vm_lib.budgeted import BudgetedAccumulators, kernel_value, merge_point
from s3vm_lib.graphs import edge_sampler, knn_graph
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.objective import Problem, evaluate
from s3vm_lib.utils.random_numbers import hash_key

MAINTENANCE = ("projection", "removal", "merging")


def data(n=300, every=10, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    angle = np.pi * rng.random(n)
    X = np.c_[np.cos(angle), np.sin(angle)]
    X[truth == 1] = [1.0, 0.4] - X[truth == 1]
    X += 0.08 * rng.standard_normal(X.shape)
    return X, truth, np.where(np.arange(n) % every == 0, truth, -1)


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
@pytest.mark.parametrize("maintenance", ["projection", "removal"])
def test_budgets_that_are_never_met_change_nothing(kernel, maintenance):
    X, _, y = data(120)
    options = dict(
        kernel=kernel, C=5.0, coef0=1.0, degree=2, max_iter=2000, tol=1e-9, random_state=0
    )
    free = fitted(GKM(power=1.0, precision="double", projection=False, **options), X, y)
    model = fitted(
        BGS3VM(budget_labeled=12, budget_unlabeled=120, maintenance=maintenance, **options), X, y
    )
    assert_allclose(model.decision_function(X), free.decision_function(X), rtol=1e-9, atol=1e-9)
    assert_allclose(model.objective_, free.objective_, rtol=1e-9)
    last = model.history_[-1]
    assert last.given_up == 0
    # The history says nothing of the norm, in its objective neither.
    steps = last.n_iter - model.history_[-2].n_iter
    norms = free._machines[0].accumulators.totals[0]["regularizer"] / steps
    assert_allclose(last.objective, free.history_[-1].objective - norms, rtol=1e-9)


@pytest.mark.parametrize("maintenance", MAINTENANCE)
def test_budgets_are_kept(maintenance):
    X, truth, y = data()
    model = BGS3VM(
        C=10.0, budget_labeled=20, budget_unlabeled=30, maintenance=maintenance, random_state=0
    ).fit(X, y)
    part = model._machines[0].accumulators
    assert_array_equal(part.counts, [20, 30])
    assert model.support_vectors_.shape == (50, 2)
    kept = model.support_ >= 0
    assert_array_equal(model.support_vectors_[kept], X[model.support_[kept]])
    assert kept.all() or maintenance == "merging"
    assert np.sum(y[model.support_[kept]] >= 0) <= 20
    assert model.history_[-1].given_up > 100
    assert np.mean(model.predict(X) == truth) > 0.9
    found = evaluate(model, X, y, model.problem_).objective
    assert_allclose(model.objective_, found, rtol=1e-9)


def one_too_many(maintenance, kernel="rbf", sigma_f=1.0):
    """Accumulators of three steps, of which the last needs a slot that is not there."""
    X = np.array([[0.0], [0.1], [1.0], [1.5], [2.0]])
    t, labeled = np.array([1.0, -1.0, 1.0, 0, 0]), np.array([True, True, True, False, False])
    kernel = Kernel(kernel, 1.0, sigma_f=sigma_f)
    problem = Problem(LabeledLoss("hinge"), C=1.0, kernel=kernel, bias="none")

    def run(budget, steps):
        part = BudgetedAccumulators(X, labeled, kernel, False, (budget, 2), maintenance)
        keys = hash_key(5, 0), hash_key(5, 1)
        rows, weights = np.arange(3), np.cumsum(np.ones(3))
        part.advance(steps, rows, t[:3], weights, None, problem, keys, np.inf)
        return part

    steps = next(s for s in range(1, 50) if run(3, s).size == 3)
    return run(3, steps), run(2, steps), kernel, X


@pytest.mark.parametrize("maintenance", MAINTENANCE)
def test_what_becomes_of_the_row_that_goes(maintenance):
    free, limited, kernel, X = one_too_many(maintenance)
    a, b = free.ab[:, 0], free.ab[:, 1]
    r = int(np.argmin(np.abs(a)))
    stay = np.delete(np.arange(3), r)
    assert limited.size == 2
    row = free.listed[r]
    K = kernel.gram(X)
    near = max(stay, key=lambda j: K[row, free.listed[j]])
    other = next(j for j in stay if j != near)
    if maintenance == "merging":
        z = limited.S[: limited.size][limited.listed == -1][0]
        k_r, k_near = (kernel.gram(z[None], X[[free.listed[j]]])[0, 0] for j in (r, near))
        expected = {-1: (k_r * a[r] + k_near * a[near], k_r * b[r] + k_near * b[near])}
        ends = sorted(X[[row, free.listed[near]], 0])
        assert ends[0] <= z[0] <= ends[1]
        # No other point between the two keeps more of the function.
        grid = np.linspace(*ends, 200)[:, None]
        values = kernel.gram(grid, X[[row, free.listed[near]]]) @ a[[r, near]]
        assert abs(expected[-1][0]) >= np.abs(values).max() * (1 - 1e-9)
    else:
        share = K[row, free.listed[near]] if maintenance == "projection" else 0.0
        expected = {free.listed[near]: (a[near] + share * a[r], b[near] + share * b[r])}
    expected[free.listed[other]] = (a[other], b[other])
    for slot in range(2):
        assert_allclose(limited.ab[slot], expected[limited.listed[slot]], rtol=1e-12)


def test_a_projection_is_the_nearest_function_whatever_the_length_of_the_rows():
    """a_r k(x_r, ·) is replaced by the multiple of k(x_s, ·) that leaves nothing along it."""
    free, limited, kernel, X = one_too_many("projection", sigma_f=1.5)
    dual = np.zeros((2, len(X)))
    dual[0, free.listed], dual[1, limited.listed] = free.ab[:, 0], limited.ab[:, 0]
    rest = kernel.gram(X) @ (dual[0] - dual[1])
    gone = set(free.listed) - set(limited.listed)
    row = gone.pop()
    near = max(limited.listed, key=lambda j: kernel.gram(X)[row, j])
    assert abs(rest[near]) < 1e-12
    assert abs(rest[row]) > 1e-3


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "laplacian"])
def test_kernel_values(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4, 3))
    kernel = Kernel(name, 0.7, 3, 0.5, 1.3)
    parameters = np.array([0.7, 3, 0.5, 1.3**2])
    found = [[kernel_value(kernel.code, parameters, x, z, 0) for z in X] for x in X]
    assert_allclose(found, kernel.gram(X), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("a", "b", "kappa"), [(1, 2, 0.9), (1, 2, 0.1), (-1, 2, 0.5), (1, 1, 0.3)])
def test_merged_points_are_best_on_their_segment(a, b, kappa):
    h = np.linspace(0, 1, 20_001)
    values = np.abs(a * kappa ** ((1 - h) ** 2) + b * kappa ** (h**2))
    found = merge_point(a, b, kappa)
    value = abs(a * kappa ** ((1 - found) ** 2) + b * kappa ** (found**2))
    assert value >= values.max() * (1 - 1e-9)


def test_the_papers_budget_and_bad_parameters():
    X, _, y = data()
    model = BGS3VM(budget_unlabeled="paper", random_state=0, C=10.0).fit(X, y)
    assert model._machines[0].accumulators.budgets[1] == 54
    for kernel in ("linear", "poly", "laplacian"):
        with pytest.raises(ValueError, match=f"needs kernel='rbf', got '{kernel}'"):
            BGS3VM(maintenance="merging", kernel=kernel).fit(X, y)
    with pytest.raises(ValueError, match="'maintenance' parameter"):
        BGS3VM(maintenance="forgetting").fit(X, y)
    with pytest.raises(ValueError, match="'budget_labeled' parameter"):
        BGS3VM(budget_labeled=0).fit(X, y)


def test_the_papers_budget_grows_with_the_rows():
    X, truth, y = data(150, 3)
    model = BGS3VM(budget_unlabeled="paper", C=10.0, gamma=2.0, random_state=0, online_steps=20)
    for k in range(150):
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
        part = model._machines[0].accumulators
        assert part.budgets[1] == max(1, round(0.2 * np.sum(y[: k + 1] < 0)))
        assert part.counts[1] <= part.budgets[1]
    assert part.counts[1] == 20
    assert np.mean(model.predict(X) == truth) > 0.9
    # A smaller budget is kept from the next step on.
    model.set_params(budget_labeled=7, budget_unlabeled=9).partial_fit(X[:1], y[:1])
    assert_array_equal(model._machines[0].accumulators.counts, [7, 9])


def test_more_rows_within_the_budgets():
    X, truth, y = data()
    model = BGS3VM(budget_labeled=15, budget_unlabeled=30, C=10.0, gamma=2.0, random_state=0,
                   online_steps=20)  # fmt: skip
    for start in range(0, 300, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50], classes=[0, 1])
        assert model.support_.size <= 45
    assert model.n_iter_ == 6000
    assert np.mean(model.predict(X) == truth) > 0.9
    before = model.decision_function(X)

    def interrupt(state):
        raise KeyboardInterrupt

    model.set_params(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[:50], y[:50])
    assert_array_equal(model.decision_function(X), before)


def test_the_sum_over_slots_is_the_average_of_the_iterates():
    """With removal, too: w̄ = 2/(T(T+1)) Σ t w_t, each w_t being what the slots then held."""
    X, _, y = data(80, 4)
    labeled = y >= 0
    t = np.where(labeled, 2.0 * y - 1, 0.0)
    kernel = Kernel("rbf", 1.0)
    graph = knn_graph(X, 4, labeled=labeled)
    problem = Problem(
        LabeledLoss("hinge"), C=0.1, kernel=kernel, bias="regularized", C_graph=0.5, graph=graph,
        power=1.0,
    )  # fmt: skip
    rows = np.flatnonzero(labeled)
    part = BudgetedAccumulators(X, labeled, kernel, True, (100, 100), "removal")
    total, T = np.zeros(80), 60
    for step in range(1, T + 1):
        # w_t, before step t.
        w, b = part.last() if step > 1 else (np.zeros(0), 0.0)
        f = kernel.gram(X, part.S[: part.size]) @ w + b if step > 1 else np.zeros(80)
        total += step * f
        keys = hash_key(1, 0), hash_key(1, 1)
        part.advance(
            1, rows, t[rows], np.cumsum(np.ones(rows.size)), edge_sampler(graph), problem, keys,
            np.inf,
        )  # fmt: skip
    assert_allclose(part.outputs(np.arange(80)), 2 * total / (T * (T + 1)), atol=1e-12)
