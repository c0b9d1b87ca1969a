"""The checks themselves: differences, stationarity, and brute force against another enumeration."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from s3vm_lib.checks import (
    brute_force,
    fixed_label_svm,
    gradient_error,
    numerical_gradient,
    stationarity,
)
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem


def test_differences_are_exact_for_polynomials_of_degree_four():
    x = np.array([[0.5, -1.0], [2.0, 0.1]])
    found = numerical_gradient(lambda z: np.sum(z**4) + z[0, 0] * z[1, 1], x, step=0.1)
    expected = 4 * x**3
    expected[0, 0] += x[1, 1]
    expected[1, 1] += x[0, 0]
    assert_allclose(found, expected, atol=1e-12)


def test_differences_are_of_fourth_order():
    errors = [
        abs(numerical_gradient(lambda z: np.exp(z[0]), np.zeros(1), h)[0] - 1) for h in (0.2, 0.1)
    ]
    assert_allclose(errors[0] / errors[1], 16, rtol=0.02)


def test_a_wrong_gradient_is_noticed():
    x = np.array([1.0, 2.0])
    assert gradient_error(lambda z: (z @ z, 2 * z), x) < 1e-10
    wrong = gradient_error(lambda z: (z @ z, 2 * z + [0, 1e-3]), x)
    assert_allclose(wrong, 1e-3 / 4, rtol=1e-6)


def test_a_gradient_of_another_shape_is_not_broadcast():
    with pytest.raises(ValueError, match=r"must have the shape \(3,\) of x, got \(\)"):
        gradient_error(lambda z: (z.sum(), 1.0), np.zeros(3))


def test_stationarity_is_for_differentiable_losses():
    K, t = np.eye(2), np.array([1.0, -1.0])
    with pytest.raises(ValueError, match="differentiable losses, got 'hinge'"):
        stationarity(Problem(), K, t, 0.0, t)
    kinked = Problem(LabeledLoss("logistic"), UnlabeledLoss("symmetric_hinge"))
    with pytest.raises(ValueError, match="differentiable losses, got 'symmetric_hinge'"):
        stationarity(kinked, K, t, 0.0, t)


def test_classes_are_not_taken_for_labels():
    y = np.array([0, 1, 0, 1, -1])
    problem = semi_problem()
    with pytest.raises(ValueError, match=r"t must be −1 or \+1 for labeled rows.*2 \* y - 1"):
        fixed_label_svm(problem, np.eye(5), y, y != -1)
    with pytest.raises(ValueError, match=r"t must hold −1 and .*got 0, 1; from classes"):
        brute_force(problem, np.eye(4), y[:4])


def test_stationarity_vanishes_at_the_minimum_and_does_not_depend_on_the_coefficients(
    two_gaussians,
):
    from scipy.optimize import minimize

    X, t = two_gaussians(n=20)
    t[12:] = 0
    X = np.r_[X, X[:4]]  # K is singular
    t = np.r_[t, t[:4]]
    K = Kernel("rbf", 0.5).gram(X)
    problem = Problem(LabeledLoss("logistic"), UnlabeledLoss("gaussian"), C=2.0, C_star=0.1)

    def function(z):
        value, c, b = problem.value_and_gradient(K, z[:-1], z[-1], t)
        return value, np.r_[c, b]

    found = minimize(function, np.zeros(25), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    c, b = found[:-1], found[-1]
    assert stationarity(problem, K, c, b, t) < 1e-6
    assert stationarity(problem, K, 0 * c, b, t) > 0.1
    assert stationarity(problem, K, c, b + 0.1, t) > 1e-2
    other = 0.3 * c
    moved = other.copy()
    moved[0] += 1.0
    moved[20] -= 1.0  # row 20 is a copy of row 0
    assert_allclose(
        stationarity(problem, K, moved, b, t), stationarity(problem, K, other, b, t), rtol=1e-9
    )


def test_stationarity_is_the_gradient_in_the_weights_plus_the_derivative_in_the_offset(
    two_gaussians,
):
    X, t = two_gaussians(n=12)
    t[6:] = 0
    problem = Problem(LabeledLoss("logistic"), UnlabeledLoss("gaussian"), C=2.0, C_star=0.5)
    rng = np.random.default_rng(0)
    c, b, s = 0.3 * rng.standard_normal(12), 0.4, rng.uniform(0.5, 2, 12)

    def value(z):
        """J of f = Xw + b, written out."""
        f = X @ z[:-1] + z[-1]
        losses = np.where(t != 0, 2.0 * np.log(1 + np.exp(-t * f)), 0.5 * np.exp(-3 * f**2))
        return 0.5 * z[:-1] @ z[:-1] + s @ losses

    gradient = numerical_gradient(value, np.append(X.T @ c, b))
    expected = np.linalg.norm(gradient[:-1]) + abs(gradient[-1])
    assert abs(gradient[-1]) > 0.1 * expected
    assert_allclose(stationarity(problem, X @ X.T, c, b, t, s), expected, rtol=1e-6)


# --- Brute force ----------------------------------------------------------------------------------


def semi_problem(balance="none", ratio=None):
    return Problem(
        LabeledLoss("hinge"),
        UnlabeledLoss("symmetric_hinge"),
        C=2.0,
        C_star=0.7,
        balance=balance,
        ratio=ratio,
    )


def enumerate_with_cvxpy(problem, K, t, s):
    """The same optimum by an interior-point method in w-coordinates, labeling by labeling."""
    cp = pytest.importorskip("cvxpy")
    n = len(t)
    L = np.linalg.cholesky(K + 1e-12 * np.eye(n))
    w, b = cp.Variable(n), cp.Variable()
    f = L @ w + b
    U = np.flatnonzero(t == 0)
    upper = np.where(t != 0, problem.C, problem.C_star) * s
    labels = cp.Parameter(n)
    constraints = []
    if problem.balance == "mean":
        constraints = [s[U] @ f[U] == (2 * problem.ratio - 1) * s[U].sum()]
    objective = cp.sum_squares(w) / 2 + upper @ cp.pos(1 - cp.multiply(labels, f))
    program = cp.Problem(cp.Minimize(objective), constraints)
    values = {}
    for signs in itertools.product((-1.0, 1.0), repeat=U.size):
        if problem.balance == "counts" and sum(v > 0 for v in signs) != round(
            problem.ratio * U.size
        ):
            continue
        labels.value = t.copy()
        labels.value[U] = signs
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        values[signs] = program.value
    best = min(values, key=values.get)
    return values[best], best, len(values)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("balance", "ratio"),
    [("none", None), ("mean", 0.4), ("mean", 0.8), ("counts", 0.6), ("counts", 0.55)],
)
def test_brute_force_equals_another_enumeration(two_gaussians, balance, ratio, weighted):
    X, t = two_gaussians(n=9, d=2, seed=3)
    t[[1, 2, 4, 6, 8]] = 0
    s = np.random.default_rng(0).uniform(0.5, 2, 9) if weighted else np.ones(9)
    problem, K = semi_problem(balance, ratio), Kernel("rbf", 0.5).gram(X)
    found = brute_force(problem, K, t, s if weighted else None)
    value, signs, solved = enumerate_with_cvxpy(problem, K, t, s)
    assert_allclose(found.objective, value, rtol=1e-6)
    assert_array_equal(found.labels[t == 0], signs)
    assert_array_equal(found.labels[t != 0], t[t != 0])
    assert found.n_solved == solved == {"none": 32, "mean": 32, "counts": 10}[balance]
    # The reported function has the reported objective and meets the constraint.
    f = K @ found.beta + found.b
    norm2 = found.beta @ K @ found.beta
    assert_allclose(problem.value(f, t, norm2, found.b, s), found.objective, rtol=1e-6)
    if balance == "mean":
        assert problem.balance_residual(f, t, s) < 1e-7


def test_no_other_function_is_better(two_gaussians):
    X, t = two_gaussians(n=10, d=2, seed=4)
    t[4:] = 0
    problem, K = semi_problem(), Kernel("rbf", 0.5).gram(X)
    found = brute_force(problem, K, t)
    rng = np.random.default_rng(0)
    for _ in range(300):
        c = found.beta + 10.0 ** rng.uniform(-3, 0) * rng.standard_normal(10)
        b = found.b + 0.1 * rng.standard_normal()
        assert problem.value(K @ c + b, t, c @ K @ c, b) >= found.objective - 1e-9


def test_brute_force_without_unlabeled_rows_is_the_svm(two_gaussians):
    X, t = two_gaussians(n=12)
    K = Kernel("rbf", 0.5).gram(X)
    for balance, ratio in (("none", None), ("mean", 0.5), ("counts", 0.5)):
        problem = semi_problem(balance, ratio)
        found = brute_force(problem, K, t)
        objective, beta, b = fixed_label_svm(problem, K, t, np.ones(12, bool))
        assert (found.n_solved, found.objective, found.b) == (1, objective, b)
        assert_array_equal(found.beta, beta)


def test_the_balance_point_of_one_sided_problems(two_gaussians):
    """All rows of one label: without balance f = b is free; with it the mean is fixed."""
    X, _ = two_gaussians(n=8)
    K = Kernel("rbf", 0.5).gram(X)
    labeled = np.arange(8) < 3
    objective, beta, b = fixed_label_svm(semi_problem("mean", 0.25), K, np.ones(8), labeled)
    f = K @ beta + b
    assert np.mean(f[3:]) == pytest.approx(-0.5, abs=1e-7)
    assert objective > 0
    objective, beta, b = fixed_label_svm(semi_problem(), K, np.ones(8), labeled)
    assert objective == pytest.approx(0, abs=1e-9)
    assert np.all(K @ beta + b >= 1 - 1e-7)


@pytest.mark.parametrize(
    "name", ["hinge", "squared_hinge", "smooth_hinge", "l1", "epsilon_insensitive"]
)
@pytest.mark.parametrize("balance", ["none", "mean"])
def test_fixed_labels_of_every_loss_equal_another_solver(two_gaussians, name, balance):
    cp = pytest.importorskip("cvxpy")
    X, t = two_gaussians(n=12, d=2, seed=5)
    t[-2:] = 0  # two rows that cost nothing
    labeled, K = np.arange(12) < 5, Kernel("rbf", 0.5).gram(X)
    s = np.random.default_rng(0).uniform(0.5, 2, 12)
    loss = LabeledLoss(name)
    problem = Problem(loss, loss.effective, 2.0, 0.7, balance=balance, ratio=0.6)
    w, b = cp.Variable(12), cp.Variable()
    f = np.linalg.cholesky(K + 1e-12 * np.eye(12)) @ w + b
    z, p = cp.multiply(t, f), loss.p
    values = {
        "hinge": lambda: cp.pos(1 - z),
        "squared_hinge": lambda: cp.square(cp.pos(1 - z)) / 2,
        # Huber's function is quadratic up to p and linear beyond, with the slope 2p.
        "smooth_hinge": lambda: cp.huber(cp.pos(1 - z), p) / (2 * p),
        "l1": lambda: cp.abs(t - f),
        "epsilon_insensitive": lambda: cp.pos(cp.abs(t - f) - p),
    }[name]()
    weight = np.where(labeled, 2.0, 0.7) * s * (t != 0)
    constraints = []
    if balance == "mean":
        constraints = [s[~labeled] @ f[~labeled] == 0.2 * s[~labeled].sum()]
    program = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + weight @ values), constraints)
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    objective, beta, offset = fixed_label_svm(problem, K, t, labeled, s)
    assert_allclose(objective, program.value, rtol=1e-6)
    found = K @ beta + offset
    assert_allclose(found, f.value, atol=1e-3)
    if balance == "mean":
        assert problem.balance_residual(found, np.where(labeled, t, 0), s) < 1e-7


@pytest.mark.parametrize("s", [-0.4, 0.2])
def test_brute_force_of_the_ramp_is_no_worse_than_any_function(two_gaussians, s):
    X, t = two_gaussians(n=9, d=2, seed=6)
    t[4:] = 0
    K = Kernel("rbf", 0.5).gram(X)
    ramp = UnlabeledLoss("symmetric_ramp", s)
    problem = Problem(LabeledLoss("hinge"), ramp, 2.0, 0.7)
    weight = np.random.default_rng(1).uniform(0.5, 2, 9)
    found = brute_force(problem, K, t, weight)
    assert found.n_solved == 3**5
    f = K @ found.beta + found.b
    norm2 = found.beta @ K @ found.beta
    assert_allclose(problem.value(f, t, norm2, found.b, weight), found.objective, rtol=1e-7)
    rng = np.random.default_rng(0)
    for _ in range(300):
        c = found.beta + 10.0 ** rng.uniform(-3, 0) * rng.standard_normal(9)
        b = found.b + 0.1 * rng.standard_normal()
        assert problem.value(K @ c + b, t, c @ K @ c, b, weight) >= found.objective - 1e-9
    # With s = 0 it is the symmetric hinge plus 1.
    flat = Problem(LabeledLoss("hinge"), UnlabeledLoss("symmetric_ramp", 0.0), 2.0, 0.7)
    hinge = Problem(LabeledLoss("hinge"), UnlabeledLoss("symmetric_hinge"), 2.0, 0.7)
    assert_allclose(
        brute_force(flat, K, t).objective, brute_force(hinge, K, t).objective + 0.7 * 5, rtol=1e-7
    )


def test_brute_force_refuses_other_problems():
    K, t = np.eye(3), np.array([1.0, -1, 0])
    with pytest.raises(
        ValueError, match=r"losses must be a labeled loss, not logistic, .*gaussian"
    ):
        brute_force(Problem(unlabeled_loss=UnlabeledLoss("gaussian")), K, t)
    with pytest.raises(ValueError, match="an effective loss or the ramp"):
        brute_force(Problem(), K, t)
    symmetric = UnlabeledLoss("symmetric_hinge")
    with pytest.raises(ValueError, match=r"bias must be 'free'.*'regularized'"):
        brute_force(Problem(unlabeled_loss=symmetric, bias="regularized"), K, t)
    with pytest.raises(ValueError, match=r"balance 'none', 'mean' or 'counts'.*'share'"):
        brute_force(Problem(unlabeled_loss=symmetric, balance="share", ratio=0.5), K, t)
    ramp = UnlabeledLoss("symmetric_ramp")
    with pytest.raises(ValueError, match="at most 12 rows unlabeled, got 13"):
        brute_force(Problem(unlabeled_loss=ramp), np.eye(14), np.r_[1.0, np.zeros(13)])
    with pytest.raises(ValueError, match="with the symmetric ramp, got 'counts'"):
        brute_force(Problem(unlabeled_loss=ramp, balance="counts", ratio=0.5), K, t)
    with pytest.raises(ValueError, match="not logistic"):
        logistic = LabeledLoss("logistic")
        brute_force(Problem(logistic, logistic.effective), K, t)
    with pytest.raises(ValueError, match="at most 20 rows unlabeled, got 21"):
        brute_force(semi_problem(), np.eye(22), np.r_[1.0, np.zeros(21)])


@pytest.mark.slow
@pytest.mark.parametrize("balance", ["none", "mean", "counts"])
@pytest.mark.parametrize("seed", range(3))
def test_brute_force_on_random_instances(two_gaussians, seed, balance):
    X, t = two_gaussians(n=13, d=2, seed=20 + seed)
    t[np.random.default_rng(seed).permutation(13)[:8]] = 0
    if abs(t.sum()) == np.abs(t).sum():
        t[np.flatnonzero(t)[0]] *= -1
    ratio = None if balance == "none" else 0.5
    problem, K = semi_problem(balance, ratio), Kernel("rbf", 0.5).gram(X)
    value, _, solved = enumerate_with_cvxpy(problem, K, t, np.ones(13))
    found = brute_force(problem, K, t)
    assert found.n_solved == solved
    assert_allclose(found.objective, value, rtol=1e-6)
