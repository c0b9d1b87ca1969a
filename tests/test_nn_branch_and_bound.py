"""NN-BB: between the SVM of frozen signs (no neighbors) and the global optimum (all of them)."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from s3vm_lib import CCCPS3VM, NNBBS3VM, SVM, BranchBoundS3VM
from s3vm_lib.branch_and_bound import solve_branch_and_bound
from s3vm_lib.checks import brute_force, fixed_label_svm
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.nn_branch_and_bound import solve_arrival
from s3vm_lib.objective import Problem, evaluate

HINGE = LabeledLoss("hinge")
KERNELS = [Kernel("linear"), Kernel("rbf", 0.5), Kernel("poly", 1.0, 2, 1.0)]
by_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)


def arrival(seed, kernel, n=16, labeled=5, C_star=0.7):
    """A problem, the outputs of the SVM of its labels, and the last row as the new one."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    t = np.where(X[:, 0] + 0.4 * rng.standard_normal(n) > 0, 1.0, -1.0)
    t[:2] = 1.0, -1.0
    t[labeled:] = 0.0
    K = kernel.gram(X)
    problem = Problem(HINGE, HINGE.effective, 2.0, C_star, kernel)
    _, beta, b = fixed_label_svm(problem, K, t, t != 0)
    weight = rng.uniform(0.5, 2.0, n)
    return problem, K, t, weight, K @ beta + b


def stream(seed=0, n=60, labeled=6):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, 2)) + 2.2 * np.column_stack([2 * y - 1, 0 * y])
    y[:2] = 0, 1
    return X, np.where(np.arange(n) < labeled, y, -1)


# --- The problem of an arrival --------------------------------------------------------------------


def test_neighbors_are_the_nearest_in_feature_space():
    X = np.random.default_rng(0).standard_normal((30, 3))
    K = Kernel("poly", 0.5, 2, 1.0).gram(X)
    # (γ⟨x, z⟩ + 1)² = γ²⟨x, z⟩² + 2γ⟨x, z⟩ + 1 with γ = ½
    squares = np.array([0.5 * np.outer(x, x).ravel() for x in X])
    features = np.column_stack([squares, X, np.ones(30)])
    candidates = np.arange(5, 30)
    distance = np.linalg.norm(features[candidates] - features[20], axis=1)
    expected = candidates[np.argsort(distance)]
    problem, t = Problem(HINGE, HINGE.effective, 1.0, 0.5), np.zeros(30)
    t[:5] = 1.0, -1.0, 1.0, -1.0, 1.0
    for most in (7, 99):
        rest = np.ones(30), np.zeros(30), 20, most
        found = solve_arrival(problem, K, t, *rest, max_iter=1).neighbors
        assert_array_equal(found, expected[:most])
        assert found[0] == 20


@by_kernel
def test_without_neighbors_it_is_the_svm_of_the_signs(kernel):
    for seed in range(3):
        problem, K, t, weight, f = arrival(seed, kernel)
        f[-1] = 0.0  # counts as positive
        found = solve_arrival(problem, K, t, weight, f, len(t) - 1, 0, tol=1e-9)
        labels = np.where(t == 0, np.where(f >= 0, 1.0, -1.0), t)
        value, beta, b = fixed_label_svm(problem, K, labels, t != 0, weight)
        assert found.neighbors.size == 0
        assert_allclose(found.frozen_objective, value, rtol=1e-7)
        assert_allclose(found.outputs, K @ beta + b, atol=1e-4)
        assert found.objective <= found.frozen_objective * (1 + 1e-9)


@by_kernel
def test_with_all_unlabeled_rows_it_is_the_global_optimum(kernel):
    for seed in range(3):
        problem, K, t, weight, f = arrival(seed, kernel, n=13)
        found = solve_arrival(problem, K, t, weight, f, len(t) - 1, 99, tol=1e-9)
        assert_allclose(found.objective, brute_force(problem, K, t, weight).objective, rtol=1e-6)
        exact = solve_branch_and_bound(problem, K, t, weight, tol=1e-9)
        assert_allclose(found.objective, exact.objective, rtol=1e-9)
        assert_allclose(found.frozen_objective, found.objective, rtol=1e-9)


@by_kernel
def test_more_neighbors_are_never_worse(kernel):
    strictly = 0
    for seed in range(6):
        problem, K, t, weight, f = arrival(seed, kernel, C_star=2.0)
        values = [
            solve_arrival(problem, K, t, weight, f, len(t) - 1, k, tol=1e-9) for k in range(12)
        ]
        frozen = np.array([v.frozen_objective for v in values])
        assert np.all(np.diff(frozen) <= 1e-8 * frozen[:-1])
        strictly += frozen[-1] < frozen[0] * (1 - 1e-3)
        for smaller, larger in itertools.pairwise(values):
            assert set(smaller.neighbors) <= set(larger.neighbors)
            assert larger.objective <= frozen[0] * (1 + 1e-8)  # that of keeping all signs
    assert strictly > 0


def test_it_is_the_best_of_all_labels_of_the_neighbors():
    problem, K, t, weight, f = arrival(4, Kernel("rbf", 0.5), C_star=2.0)
    found = solve_arrival(problem, K, t, weight, f, len(t) - 1, 4, tol=1e-9)
    values = []
    for signs in np.ndindex(2, 2, 2, 2):
        labels = np.where(t == 0, np.where(f >= 0, 1.0, -1.0), t)
        labels[found.neighbors] = 2.0 * np.array(signs) - 1
        values.append(fixed_label_svm(problem, K, labels, t != 0, weight)[0])
    assert_allclose(found.frozen_objective, min(values), rtol=1e-6)
    assert np.argmin(values) != 0 or min(values) < values[-1]


def test_a_start_changes_nothing_but_the_effort():
    problem, K, t, weight, f = arrival(1, Kernel("rbf", 0.5), n=40, C_star=2.0)
    cold = solve_arrival(problem, K, t, weight, f, 39, 6, tol=1e-9)
    warm = solve_arrival(problem, K, t, weight, f, 39, 6, cold.beta, tol=1e-9)
    assert_allclose(warm.objective, cold.objective, rtol=1e-9)
    assert_allclose(warm.outputs, cold.outputs, atol=1e-4)


def test_without_weight_the_unlabeled_rows_have_no_influence():
    problem, K, t, weight, f = arrival(0, Kernel("rbf", 0.5), C_star=0.0)
    found = solve_arrival(problem, K, t, weight, f, len(t) - 1, 5, tol=1e-9)
    L = t != 0
    value, beta, b = fixed_label_svm(problem, K[np.ix_(L, L)], t[L], L[L], weight[L])
    assert_allclose(found.objective, value, rtol=1e-6)
    assert_allclose(found.outputs, K[:, L] @ beta + b, atol=1e-4)
    assert np.all(found.beta[~L] == 0)


# --- The estimator --------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_fit_is_cccp_with_the_symmetric_hinge(kernel):
    X, y = stream()
    options = dict(C=2.0, C_star=0.5, kernel=kernel, gamma=0.5, tol=1e-8)
    model = NNBBS3VM(**options).fit(X, y)
    cccp = CCCPS3VM(unlabeled_loss="symmetric_hinge", balance=None, **options).fit(X, y)
    assert_allclose(model.decision_function(X), cccp.decision_function(X), atol=1e-6)
    assert model.n_iter_ == cccp.n_iter_


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian"])
@pytest.mark.parametrize("sparse", [False, True])
def test_an_arrival_of_many_neighbors_is_the_global_optimum(kernel, sparse):
    X, y = stream(3, n=18, labeled=8)
    given = sp.csr_matrix(X) if sparse else X
    options = dict(C=2.0, C_star=0.5, kernel=kernel, gamma=0.5, tol=1e-8)
    model = NNBBS3VM(n_neighbors=99, **options).fit(given[:-1], y[:-1])
    model.partial_fit(given[-1:], y[-1:])
    exact = BranchBoundS3VM(balance=None, **options).fit(X, y)
    assert_allclose(model.objective_, exact.objective_, rtol=1e-7)
    assert_array_equal(model.transduction_, exact.transduction_)
    assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_objective_is_that_of_all_rows(kernel):
    X, y = stream()
    model = NNBBS3VM(C=2.0, C_star=0.5, kernel=kernel, gamma=0.5).fit(X[:40], y[:40])
    for k in (41, 45, 60):
        start = model.transduction_.size
        model.partial_fit(X[start:k], y[start:k])
        found = evaluate(model, X[:k], y[:k], model.problem_)
        assert_allclose(model.objective_, found.objective, rtol=1e-9)
        assert len(model.history_) == k - start
        assert_array_equal(model.transduction_[y[:k] >= 0], y[:k][y[:k] >= 0])
        unlabeled = y[:k] < 0
        assert_array_equal(model.transduction_[unlabeled], model.predict(X[:k][unlabeled]))


@pytest.mark.parametrize("n_neighbors", [0, 5])
def test_one_call_equals_one_call_per_row(n_neighbors):
    """Without neighbors a new row keeps the sign that the rows before it give it."""
    X, y = stream(3)
    y = np.where(np.arange(60) % 9 == 0, (X[:, 0] > 0).astype(int), y)
    options = dict(C_star=0.5, gamma=0.5, tol=1e-10, n_neighbors=n_neighbors)
    together = NNBBS3VM(**options).fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    singly = NNBBS3VM(**options).fit(X[:30], y[:30])
    for k in range(30, 60):
        singly.partial_fit(X[k : k + 1], y[k : k + 1])
    assert_allclose(together.decision_function(X), singly.decision_function(X), atol=1e-6)
    assert_array_equal(together.transduction_, singly.transduction_)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_labeled_rows_only_are_an_incremental_svm(kernel):
    X, y = stream(labeled=60)
    model = NNBBS3VM(kernel=kernel, gamma=0.5, C_star=1.0, tol=1e-9)
    model.partial_fit(X[:1], y[:1], classes=[0, 1])
    assert_array_equal(model.predict(X), y[0])
    for k in range(1, 60, 7):
        model.partial_fit(X[k : k + 7], y[k : k + 7])
    svm = SVM(kernel=kernel, gamma=0.5, tol=1e-9).fit(X, y)
    assert_allclose(model.objective_, svm.objective_, rtol=1e-7)
    assert_allclose(model.decision_function(X), svm.decision_function(X), atol=1e-3)


def test_it_starts_from_unlabeled_rows_too():
    X, y = stream()
    model = NNBBS3VM(gamma=0.5, C_star=0.5)
    model.partial_fit(X[6:20], y[6:20], classes=[0, 1])
    assert_allclose(model.objective_, 0.0, atol=1e-9)
    model.partial_fit(X[:6], y[:6]).partial_fit(X[20:], y[20:])
    found = evaluate(model, np.r_[X[6:20], X[:6], X[20:]], np.r_[y[6:20], y[:6], y[20:]],
                     model.problem_)  # fmt: skip
    assert_allclose(model.objective_, found.objective, rtol=1e-9)


def test_weights_in_fit_and_in_partial_fit():
    X, y = stream(n=40)
    weight = np.ones(40)
    weight[[3, 10, 31, 35]] = 0.0
    kept = weight > 0
    model = NNBBS3VM(C_star=0.5, gamma=0.5)
    model.fit(X[:30], y[:30], weight[:30]).partial_fit(X[30:], y[30:], weight[30:])
    other = NNBBS3VM(C_star=0.5, gamma=0.5)
    other.fit(X[:30][kept[:30]], y[:30][kept[:30]])
    other.partial_fit(X[30:][kept[30:]], y[30:][kept[30:]])
    assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-10)
    assert model.transduction_.shape == (40,)
    assert_array_equal(model.transduction_[kept], other.transduction_)
    assert_array_equal(model.support_vectors_, X[model.support_])
    model.partial_fit(X[:2], y[:2], [0.0, 1.0])
    assert model.transduction_.shape == (42,)
    assert model.support_.max() < 42
    assert_array_equal(model.support_vectors_, np.r_[X, X[:2]][model.support_])


def test_three_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    X = rng.standard_normal((90, 2)) + 4 * np.column_stack([np.cos(2.1 * y), np.sin(2.1 * y)])
    hidden = np.where(np.arange(90) < 15, y, -1)
    model = NNBBS3VM(gamma=0.2, C_star=0.2).fit(X[:60], hidden[:60])
    model.partial_fit(X[60:], hidden[60:])
    assert model.decision_function(X).shape == (90, 3)
    assert np.mean(model.transduction_ == y) > 0.9
    assert len(model.problem_) == 3


def test_an_error_changes_nothing():
    X, y = stream()
    calls = []

    def interrupted(state):
        calls.append(state)
        if len(calls) > 3:
            raise KeyboardInterrupt

    model = NNBBS3VM(C_star=0.5, gamma=0.5).fit(X[:30], y[:30])
    state = {name: value for name, value in vars(model).items() if name != "_machines"}
    machine = vars(model._machines[0]).copy()
    for arguments in (
        (X[30:], np.full(30, 7)),
        (X[30:, :1], y[30:]),
        (X[30:], y[29:]),
        (X[30:] * np.nan, y[30:]),
    ):
        with pytest.raises(ValueError):
            model.partial_fit(*arguments)
        assert all(vars(model)[name] is value for name, value in state.items())
        assert all(vars(model._machines[0])[name] is value for name, value in machine.items())
    model.callback = interrupted
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[30:], y[30:])
    state["callback"] = interrupted
    assert all(vars(model)[name] is value for name, value in state.items())
    assert all(vars(model._machines[0])[name] is value for name, value in machine.items())


def test_bad_input_has_named_errors():
    X, y = stream()
    with pytest.raises(ValueError, match="n_neighbors"):
        NNBBS3VM(n_neighbors=-1).fit(X, y)
    with pytest.raises(ValueError, match="C_star"):
        NNBBS3VM().fit(X[:6], y[:6]).partial_fit(X[6:], y[6:])
    with pytest.raises(ValueError, match="precomputed"):
        NNBBS3VM(kernel="precomputed").fit(X @ X.T, y).partial_fit(X[:1], y[:1])
    with pytest.raises(ValueError, match=r"\[5\].*classes"):
        NNBBS3VM().fit(X, y).partial_fit(X[:1], [5])


@pytest.mark.parametrize("n_neighbors", [0, 1])
def test_rows_that_cost_nothing_say_nothing(n_neighbors):
    options = dict(C_star=0, n_neighbors=n_neighbors, gamma=1.0)
    model = NNBBS3VM(**options).partial_fit([[1.0], [2.0]], [-1, -1], classes=[0, 1])
    assert model.termination_condition_ == "converged" and model.objective_ == 0
    assert_array_equal(model.decision_function([[0.0], [1.5]]), 0)
    model.partial_fit([[1.0], [2.0]], [0, 1])  # labels that come later are learnt
    assert_array_equal(model.predict([[1.0], [2.0]]), [0, 1])


def test_an_arrival_that_a_limit_cuts_short_is_told_even_if_the_next_one_is_not():
    X, y = stream()
    model = NNBBS3VM(C_star=2.0, gamma=0.5).fit(X[:30], y[:30]).set_params(max_iter=1)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        model.partial_fit(X[30:32], y[30:32])
    assert [arrival.status for arrival in model.history_] == ["max_iter", "converged"]
    assert model.termination_condition_ == "max_iter"


def test_a_warning_of_fit_names_the_limit_of_its_convex_problems():
    X, y = stream()
    model = NNBBS3VM(C_star=2.0, gamma=0.5, max_inner_iter=3)
    with pytest.warns(ConvergenceWarning, match="max_inner_iter=3 .* max_iter or max_inner_iter, "):
        model.fit(X, y)
    assert model.termination_condition_ == "max_iter" and model.n_iter_ < model.max_iter
    assert all(loop.n_iter <= 3 for loop in model.history_)
    with pytest.raises(ValueError, match="'max_inner_iter' parameter"):
        NNBBS3VM(max_inner_iter=0).fit(X, y)


def test_a_callback_stops_the_searches():
    X, y = stream()
    model = NNBBS3VM(C_star=2.0, gamma=0.5, callback=lambda state: "lower_bound" in state)
    model.fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    assert model.termination_condition_ in ("stopped", "converged")
    assert model.transduction_.size == 60
