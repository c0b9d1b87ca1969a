"""The plain NumPy SMO: a problem solved by hand, and the same steps as the compiled solver."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from s3vm_lib.gram import Gram
from s3vm_lib.kernels import Kernel
from s3vm_lib.objective import svm_duality_gap, svm_kkt_residual
from s3vm_lib.reference.smo import second_order, slopes, smo_steps, solve_smo
from s3vm_lib.smo import BIG, Costs, svc_costs
from s3vm_lib.smo import solve_smo as library_smo


def rbf_problem(seed, n=60):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    t = np.where(X[:, 0] + 0.8 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return Kernel("rbf", gamma=0.5).gram(X), t, rng


def svc(seed, C):
    K, t, rng = rbf_problem(seed)
    return K, svc_costs(t, C * rng.uniform(0.5, 2.0, t.size))


def kinked(seed):
    """Costs with a kink, as semi-supervised inner problems have them: SVC rows and |β − δ|."""
    K, t, rng = rbf_problem(seed)
    costs = svc_costs(t, np.full(t.size, 2.0))
    middle = rng.choice([-0.5, 0.0, 0.5], size=30)
    for part, values in zip(costs, (middle - 0.7, middle, middle + 0.7, -1.0, 1.0), strict=True):
        part[30:] = values
    beta = np.r_[np.zeros(30), middle]
    beta[np.argmax(costs.hi[:30])] -= min(0.0, middle.sum())
    beta[np.argmin(costs.lo[:30])] -= max(0.0, middle.sum())
    beta = np.clip(beta, costs.lo, costs.hi)
    beta[30:] -= beta.sum() / 30
    return K, costs, beta


def free_point(seed):
    """One point without bounds and with a linear cost: the balance constraint as a point."""
    K, t, _ = rbf_problem(seed)
    costs = svc_costs(t, np.ones(t.size))
    for part, value in zip(costs, (-BIG, BIG, BIG, 0.3, 0.3), strict=True):
        part[0] = value
    return K, costs


def library(K, costs, beta=None, tol=1e-3):
    gram = Gram(K, Kernel("precomputed"), dtype=np.float64)
    return library_smo(gram, costs, beta, tol=tol, shrinking=False)


def test_two_points_by_hand():
    # Points −1 and 1 on the line: D(α) = 2α − 2α², so α = min(C, ½).
    K, t = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([-1.0, 1.0])
    beta, b, n_iter = solve_smo(K, svc_costs(t, np.full(2, 10.0)))
    assert_allclose(beta, [-0.5, 0.5])
    assert (b, n_iter) == (0.0, 1)
    beta, b, _ = solve_smo(K, svc_costs(t, np.full(2, 0.2)))
    assert_allclose(beta, [-0.2, 0.2])
    assert b == 0.0  # the middle of [−0.6, 0.6]
    # Points −1 and 2: margins are at most 1 for b in [−0.4, −0.2].
    K, costs = np.outer([-1.0, 2.0], [-1.0, 2.0]), svc_costs(t, np.full(2, 0.2))
    assert_allclose([solve_smo(K, costs)[1], library(K, costs).b], -0.3)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_same_steps_as_the_library_on_a_weighted_svm(seed, C):
    K, costs = svc(seed, C)
    beta, b, n_iter = solve_smo(K, costs)
    solution = library(K, costs)
    assert n_iter == solution.n_iter > 10
    assert_allclose(beta, solution.beta, rtol=0, atol=1e-10 * C)
    assert_allclose(b, solution.b, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_same_solution_as_the_library_with_kinks_and_a_start(seed):
    # Kβ of the start is rounded differently, which decides ties: the steps may differ here.
    K, costs, start = kinked(seed)
    assert abs(start.sum()) < 1e-12
    assert np.all((costs.lo <= start) & (start <= costs.hi))
    beta, b, n_iter = solve_smo(K, costs, start, tol=1e-9)
    solution = library(K, costs, start, tol=1e-9)
    assert n_iter > 10
    assert np.sum(beta[30:] == costs.mid[30:]) > 0  # some points rest at their kink
    assert_allclose(beta, solution.beta, rtol=0, atol=1e-6)
    assert_allclose(b, solution.b, atol=1e-8)


def test_same_solution_as_the_library_with_a_point_without_bounds():
    K, costs = free_point(0)
    beta, b, _ = solve_smo(K, costs, tol=1e-8)
    solution = library(K, costs, tol=1e-8)
    assert_allclose(beta, solution.beta, atol=1e-6)
    assert_allclose(K[0] @ beta + b, -0.3, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_repeated_points_at_any_scale(scale):
    # Copies of a point have no curvature between them; with a kink they can be a pair.
    K, costs, start = kinked(8)
    K = scale * np.block([[K, K], [K, K]])
    costs = Costs(*(np.r_[part, part] / scale for part in costs[:3]), *(
        np.r_[part, part] for part in costs[3:]
    ))  # fmt: skip
    start = np.r_[start, start] / scale
    beta, b, _ = solve_smo(K, costs, start, tol=1e-9)
    solution = library(K, costs, start, tol=1e-9)
    assert_allclose(K @ beta, solution.f, atol=1e-7)
    assert_allclose(b, solution.b, atol=1e-8)


def test_optimality_conditions_and_gap():
    K, t, _ = rbf_problem(4)
    upper = np.full(t.size, 3.0)
    beta, b, _ = solve_smo(K, svc_costs(t, upper), tol=1e-6)
    assert svm_kkt_residual(K, beta, b, t, upper) < 1e-6
    assert 0 <= svm_duality_gap(K, beta, b, t, upper) <= 0.5e-6 * upper.sum()


def test_every_step_lowers_the_objective_and_keeps_the_constraints():
    K, costs = svc(5, 10.0)
    before = np.inf
    for step in smo_steps(K, costs):
        value = 0.5 * step.beta @ K @ step.beta + costs.s1 @ step.beta
        assert value < before
        assert abs(step.beta.sum()) < 1e-10
        assert np.all((costs.lo <= step.beta) & (step.beta <= costs.hi))
        assert_allclose(step.F, K @ step.beta, atol=1e-10)
        if step.violation < 1e-4:
            break
        before = value


def test_slopes_at_bounds_and_kinks():
    costs = Costs(*(np.full(5, v) for v in (-1.0, 0.0, 1.0, -2.0, 3.0)))
    A, B = slopes(costs, np.array([-1.0, -0.5, 0.0, 0.5, 1.0]))
    assert A.tolist() == [2, 2, -3, -3, -np.inf]
    assert B.tolist() == [np.inf, 2, 2, -3, -3]


def test_selection_takes_the_largest_gain_and_never_one_point_twice():
    K, costs = svc(6, 1.0)
    F = np.zeros(len(K))
    A, B = slopes(costs, F)
    i, j = second_order(K, F, A, B)
    assert A[i] == A.max() and i != j
    gain = np.maximum(A[i] - B, 0) ** 2 / (K[i, i] + np.diag(K) - 2 * K[i]).clip(1e-12)
    gain[i] = 0
    assert gain[j] == gain.max()


def test_iterations_are_limited():
    K, costs = svc(7, 100.0)
    *_, n_iter = solve_smo(K, costs, max_iter=5)
    assert n_iter == 5
