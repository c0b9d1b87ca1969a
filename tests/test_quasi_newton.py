"""QN-S3VM: gradients, engines, coordinates, balance, weights, invariances, the estimator."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from s3vm_lib import FitWarning, NewtonS3VM
from s3vm_lib.datasets import hide_labels, make_g4c, make_moons
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem, evaluate
from s3vm_lib.quasi_newton import QNS3VM
from s3vm_lib.reference import quasi_newton as twin
from s3vm_lib.smooth import (
    ANNEALING,
    Coordinates,
    RawCoefficients,
    ScaledObjective,
    bfgs_update,
    cholesky_coordinates,
    default_rank,
    eigen_coordinates,
    linear_coordinates,
    losses_and_slopes,
    minimize_lbfgs,
    minimize_scipy,
    solve_quasi_newton,
    two_loop,
)
from s3vm_lib.smooth._coordinates import (
    FeatureMap,
    SingleFeatures,
    kpca_coordinates,
    regressor_coordinates,
)
from s3vm_lib.smooth._engines import minimize_bfgs, minimize_dense, wolfe_step
from s3vm_lib.smooth._quasi_newton import (
    SharePenalty,
    Without,
    offset_for_share,
)

COORDINATES = ("cholesky", "eigen", "raw", "regressors", "kpca", "dense", "csr")
RBF = Kernel("rbf", gamma=0.4)


def problem(seed=0, labeled=9, unlabeled=21, d=4):
    """Two overlapping clouds; (X, t, weights), labeled rows first."""
    rng = np.random.default_rng(seed)
    n = labeled + unlabeled
    t = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((n, d)) + 0.8 * t[:, None] * np.array([1.0, 0.5, 0, 0])[:d]
    t[labeled:] = 0
    return X, t, rng.uniform(0.5, 2.0, n)


def mean_weight(t, weight):
    m = np.where(t == 0, weight, 0.0)
    return m / m.sum()


def make_coordinates(name, X, m, rank=12):
    if name in ("dense", "csr"):
        return linear_coordinates(X if name == "dense" else sp.csr_matrix(X), 1.0, m)
    if name == "cholesky":
        return cholesky_coordinates(X, RBF, rank, 1e-10, m, np.arange(9))
    if name == "regressors":
        index = np.arange(1, X.shape[0], 2)
        columns = RBF.columns(X, index)
        return regressor_coordinates(columns, columns[index], index, mean_weight=m)
    K = RBF.gram(X)
    if name == "raw":
        return RawCoefficients(K, m)
    return eigen_coordinates(K, mean_weight=m) if name == "eigen" else kpca_coordinates(K, rank, m)


def normalized(t, weight):
    return weight / np.where(t != 0, weight[t != 0].sum(), weight[t == 0].sum())


def solve(coordinates, t, weight, *, offset=None, C=2.0, C_star=0.7, **options):
    """Solution with C = 2, C* = 0.7 and a free or fixed offset, which says the balance."""
    problem = Problem(
        LabeledLoss("modified_logistic"),
        UnlabeledLoss("gaussian"),
        C,
        C_star,
        balance="none" if offset is None else "mean",
        ratio=None if offset is None else (offset + 1) / 2,
    )
    return solve_quasi_newton(coordinates, t, weight, problem, **options)


def blobs(seed=0, n=60, labeled=8, distance=2.0, share=0.5):
    """(X, y, truth) with classes 0 and 1 and −1 for unlabeled."""
    rng = np.random.default_rng(seed)
    truth = (np.arange(n) % 10 < 10 * share).astype(int)
    X = rng.standard_normal((n, 3))
    X[:, 0] += distance * (2 * truth - 1)
    y = truth.copy()
    y[labeled:] = -1
    return X, y, truth


# --- Objective ------------------------------------------------------------------------------------


def difference_error(function, x, h=1e-3):
    """Largest error of the gradient against fourth-order central differences."""
    gradient = function(x)[1].copy()
    errors = []
    for e in np.eye(x.size):
        v = [function(x + k * h * e)[0] for k in (2, 1, -1, -2)]
        errors.append((-v[0] + 8 * v[1] - 8 * v[2] + v[3]) / (12 * h))
    return np.abs(np.array(errors) - gradient).max()


@pytest.mark.parametrize("name", COORDINATES)
@pytest.mark.parametrize("offset", [None, 0.0, 0.4])
def test_gradient_equals_differences(name, offset):
    X, t, weight = problem()
    coordinates = make_coordinates(name, X, mean_weight(t, weight))
    function = ScaledObjective(
        coordinates,
        t,
        normalized(t, weight),
        LabeledLoss("modified_logistic"),
        UnlabeledLoss("gaussian"),
        0.8,
        0.01,
        offset,
    )
    size = coordinates.dimension + (offset is None)
    x = 0.3 * np.random.default_rng(1).standard_normal(size) / np.sqrt(size)
    assert difference_error(function, x, 5e-4) <= 1e-8


@pytest.mark.parametrize("name", ["logistic", "smooth_hinge", "squared_hinge"])
def test_gradient_of_other_losses_and_without_centering(name):
    X, t, weight = problem(3)
    function = ScaledObjective(
        linear_coordinates(X),
        t,
        normalized(t, weight),
        LabeledLoss(name),
        UnlabeledLoss("gaussian", 1.5),
        0.8,
        0.01,
        None,
    )
    assert difference_error(function, np.full(5, 0.1), 2e-4) <= 1e-8


@pytest.mark.parametrize("multiplier", [0.0, 0.7, -0.7])
@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9])
def test_gradient_of_the_share_penalty(multiplier, ratio):
    X, t, weight = problem()
    share = SharePenalty(t, normalized(t, weight), ratio, 0.05)
    share.multiplier = multiplier
    function = ScaledObjective(
        linear_coordinates(X, 1.0, mean_weight(t, weight)),
        t,
        normalized(t, weight),
        LabeledLoss("modified_logistic"),
        UnlabeledLoss("gaussian"),
        0.8,
        0.01,
        None,
        share,
    )
    assert difference_error(function, np.array([0.3, -0.2, 0.1, 0.2, 0.1]), 5e-4) <= 1e-8


def test_value_and_gradient_agree_between_dense_csr_and_precomputed():
    X, t, weight = problem()
    m, s = mean_weight(t, weight), normalized(t, weight)
    arguments = (t, s, LabeledLoss("modified_logistic"), UnlabeledLoss("gaussian"), 0.8, 0.01)
    c = 0.1 * np.random.default_rng(2).standard_normal(t.size)
    Z = X - m @ X
    dense, csr = (make_coordinates(name, X, m) for name in ("dense", "csr"))
    assert sp.issparse(csr.Z)
    for offset in (None, 0.3):
        b = [0.2] if offset is None else []
        w = np.r_[Z.T @ c, b]
        value, gradient = ScaledObjective(dense, *arguments, offset)(w)
        value_csr, gradient_csr = ScaledObjective(csr, *arguments, offset)(w)
        raw = ScaledObjective(RawCoefficients(X @ X.T, m), *arguments, offset)
        value_raw, gradient_raw = raw(np.r_[c, b])
        assert_allclose([value_csr, value_raw], value, rtol=1e-12)
        assert_allclose(gradient_csr, gradient, atol=1e-12, rtol=0)
        # dF/dc = Z dF/dw by the chain rule; the entry of the offset is the same.
        n = t.size
        assert_allclose(gradient_raw[:n], Z @ gradient[: X.shape[1]], atol=1e-12, rtol=0)
        assert_allclose(gradient_raw[n:], gradient[X.shape[1] :], atol=1e-12, rtol=0)


def test_plain_twin_has_the_same_value_gradient_and_solution():
    X, t, _ = problem()
    ones = np.ones(t.size)
    coordinates = RawCoefficients(RBF.gram(X), mean_weight(t, ones))
    K = twin.centered_gram(RBF.gram(X), t)
    lam, lam_u, b = 0.01, 0.7, 0.2
    function = ScaledObjective(
        coordinates,
        t,
        normalized(t, ones),
        LabeledLoss("modified_logistic"),
        UnlabeledLoss("gaussian"),
        lam_u,
        lam,
        b,
    )
    c = 0.3 * np.random.default_rng(2).standard_normal(t.size)
    expected, expected_gradient = twin.objective(c, K, t, lam, lam_u, b)
    value, gradient = function(c)
    assert_allclose(value, expected, rtol=1e-13)
    assert_allclose(gradient, expected_gradient, atol=1e-13, rtol=0)
    l, u = np.sum(t != 0), np.sum(t == 0)
    C, C_star = 1 / (2 * lam * l), lam_u / (2 * lam * u)
    solution = solve(coordinates, t, ones, C=C, C_star=C_star, offset=b, ftol=1e-12, tol=1e-7)
    found, F = twin.fit(K, t, lam, lam_u, b, factr=1e-12 / np.finfo(float).eps, pgtol=1e-7)
    assert_allclose(solution.objective, F * C * l, rtol=1e-7)
    assert_allclose(solution.outputs, K @ found + b, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outputs_of_size_1000_are_safe(dtype):
    f = np.array([1000, -1000, 1000, -1000, 1000, -1000], dtype=dtype)
    y = np.array([1, 1, -1, -1, 0, 0], dtype=dtype)
    slope = np.empty(6, dtype=dtype)
    codes = (LabeledLoss("modified_logistic").code, 20.0, UnlabeledLoss("gaussian").code, 3.0)
    with np.errstate(all="raise", under="ignore"):
        value = losses_and_slopes(*codes, y, np.ones(6, dtype=dtype), 1.0, f, slope)
    assert_allclose(value, 2002.0, rtol=1e-6)
    assert_array_equal(slope, [0, -1, 1, 0, 0, 0])


# --- Coordinates ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COORDINATES)
def test_mean_output_is_the_offset(name):
    X, t, weight = problem()
    m = mean_weight(t, weight)
    coordinates = make_coordinates(name, X, m)
    w = np.random.default_rng(4).standard_normal(coordinates.dimension)
    assert abs(m @ coordinates.outputs(w)) <= 1e-12
    solution = solve(coordinates, t, weight, offset=0.3)
    assert abs(m @ solution.outputs - 0.3) <= 1e-12


@pytest.mark.parametrize("name", COORDINATES)
@pytest.mark.parametrize("centered", [True, False])
def test_model_reproduces_the_outputs_and_the_norm(name, centered):
    X, t, weight = problem()
    coordinates = make_coordinates(name, X, mean_weight(t, weight) if centered else None)
    w = np.random.default_rng(4).standard_normal(coordinates.dimension)
    f = coordinates.outputs(w)
    support, coefficients, constant = coordinates.model(w)
    if support is None:
        assert_allclose(X @ coefficients + constant, f, atol=1e-10)
        norm = coefficients @ coefficients
    else:
        assert_allclose(RBF.gram(X, X[support]) @ coefficients + constant, f, atol=1e-7)
        norm = coefficients @ RBF.gram(X[support]) @ coefficients
    assert_allclose(coordinates.squared_norm(w, f), norm, rtol=1e-6)


def test_all_full_rank_coordinates_reach_the_same_convex_optimum():
    X, t, weight = problem()
    m = mean_weight(t, weight)
    found = {}
    for name in ("cholesky", "eigen", "raw", "kpca"):
        coordinates = make_coordinates(name, X, m, rank=X.shape[0])
        found[name] = solve(coordinates, t, weight, C_star=0.0, offset=0.1, tol=1e-8, ftol=1e-14)
    for name, solution in found.items():
        assert_allclose(solution.objective, found["eigen"].objective, rtol=1e-7, err_msg=name)
        assert_allclose(solution.outputs, found["eigen"].outputs, atol=1e-3, err_msg=name)


def test_cholesky_coordinates_take_the_labeled_rows_first_and_meet_their_tolerance():
    X = np.random.default_rng(0).standard_normal((200, 2))
    X[5] = X[3]  # a dependent row among the first ones
    w = np.ones(200)
    for kernel, data in ((RBF, X), (Kernel("precomputed"), RBF.gram(X))):
        features = cholesky_coordinates(data, kernel, 150, 1e-6, None, np.arange(10))
        assert features.dimension < 150
        assert_allclose(features.Z @ features.Z.T, RBF.gram(X), atol=2e-6)
        pivots = features.model(w[: features.dimension])[0]
        # One of the equal rows 3 and 5 is left out.
        assert len(set(pivots[:9])) == 9 and set(pivots[:9]) | {3, 5} == set(range(10))
        pivots = cholesky_coordinates(data, kernel, 12, 1e-6, None, np.arange(10)).model(w[:12])[0]
        assert len(set(pivots)) == 12 and set(pivots[:6]) <= set(range(10))


def test_cholesky_coordinates_do_not_depend_on_the_order_of_the_rows():
    X = np.random.default_rng(0).standard_normal((120, 5))
    order = np.random.default_rng(1).permutation(120)
    place = np.argsort(order)
    one = cholesky_coordinates(X, RBF, 40, 1e-6, None, np.arange(8)).model(np.ones(40))[0]
    two = cholesky_coordinates(X[order], RBF, 40, 1e-6, None, place[:8]).model(np.ones(40))[0]
    assert set(order[two]) == set(one)


def test_the_supervised_solution_is_exact_at_low_rank_with_labeled_pivots():
    X, t, weight = problem(unlabeled=60)
    m = mean_weight(t, weight)
    options = {"C_star": 0.0, "offset": None, "tol": 1e-8, "ftol": 1e-14}
    full = solve(eigen_coordinates(RBF.gram(X)), t, weight, **options)
    low = solve(cholesky_coordinates(X, RBF, 18, 1e-9, None, np.arange(9)), t, weight, **options)
    spoiled = solve(cholesky_coordinates(X, RBF, 9, 1e-9, m), t, weight, **options)
    assert_allclose(low.objective, full.objective, rtol=1e-6)
    assert spoiled.objective > 1.02 * full.objective


# --- Engines --------------------------------------------------------------------------------------


def random_pairs(k, d, seed=0):
    """Steps and gradient changes of a random convex quadratic."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((d, d))
    A = A @ A.T + np.eye(d)
    steps = rng.standard_normal((k, d))
    return [(s, A @ s, 1.0 / (s @ A @ s)) for s in steps]


def test_bfgs_update_is_equation_7_and_keeps_its_promises():
    (s, z, rho), *_ = random_pairs(1, 6)
    H = np.diag(np.arange(1.0, 7.0))
    left = np.eye(6) - rho * np.outer(s, z)
    updated = bfgs_update(H, s, z)
    assert_allclose(updated, left @ H @ left.T + rho * np.outer(s, s), atol=1e-12)
    assert_allclose(updated @ z, s, atol=1e-12)
    assert_allclose(updated, updated.T, atol=1e-14)
    assert np.linalg.eigvalsh(updated).min() > 0


@pytest.mark.parametrize("k", [0, 1, 5])
def test_two_loop_equals_the_explicit_matrix(k):
    d = 7
    pairs = random_pairs(k, d)
    H = np.eye(d)
    if pairs:
        s, z, _ = pairs[-1]
        H *= (s @ z) / (z @ z)
    for s, z, _ in pairs:
        H = bfgs_update(H, s, z)
    gradient = np.random.default_rng(5).standard_normal(d)
    assert_allclose(two_loop(gradient, pairs), H @ gradient, rtol=1e-10)


@pytest.mark.parametrize("first", [1e-4, 1.0, 100.0])
def test_wolfe_step_meets_both_conditions(first):
    def function(x):
        return float(np.sum(x**4 - 2 * x**2)), 4 * x**3 - 4 * x

    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.standard_normal(3)
        value, gradient = function(x)
        x_new, value_new, gradient_new, count = wolfe_step(
            function, x, value, gradient, -gradient, first
        )
        step = np.linalg.norm(x_new - x) / np.linalg.norm(gradient)
        slope = -gradient @ gradient
        assert value_new <= value + 1e-4 * step * slope + 1e-12
        assert -(gradient_new @ gradient) >= 0.9 * slope - 1e-12
        assert count <= 30


def test_a_decrease_that_is_too_small_for_its_step_is_refused():
    """A cubic with slope −1 at 0 and a stationary point at 1, where it has fallen by 5e-5."""

    def function(x):
        s = float(x[0])
        return -s + 1.99985 * s**2 - 0.9999 * s**3, np.array([-1 + 3.9997 * s - 2.9997 * s**2])

    x, value, *_ = wolfe_step(function, np.zeros(1), 0.0, -np.ones(1), np.ones(1), 1.0)
    assert value <= -1e-4 * x[0]
    assert value < -0.1


def test_wolfe_step_gives_up_where_the_function_has_no_minimum_along_the_direction():
    x, *_ = wolfe_step(
        lambda x: (-float(x[0]), np.array([-1.0])), np.zeros(1), 0.0, -np.ones(1), np.ones(1), 1.0
    )
    assert x is None


@pytest.mark.parametrize("minimize", [minimize_bfgs, minimize_lbfgs, minimize_scipy])
def test_engines_solve_a_quadratic_and_rosenbrock(minimize):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((8, 8))
    A = A @ A.T + 0.1 * np.eye(8)
    b = rng.standard_normal(8)
    found = minimize(lambda x: (0.5 * x @ A @ x - b @ x, A @ x - b), np.zeros(8), 1e-7, 0.0)
    assert_allclose(found.x, cho_solve(cho_factor(A), b), atol=1e-7)
    assert found.status == "converged" and np.abs(found.gradient).max() <= 1e-7

    def rosenbrock(x):
        p, q = x[1] - x[0] ** 2, 1 - x[0]
        return 100 * p * p + q * q, np.array([-400 * x[0] * p - 2 * q, 200 * p])

    found = minimize(rosenbrock, np.array([-1.2, 1.0]), 1e-8, 0.0)
    assert_allclose(found.x, 1.0, atol=1e-6)
    assert found.n_evaluations < 100
    assert minimize(rosenbrock, np.array([-1.2, 1.0]), 1e-8, 0.0, 3).status == "max_iter"


def valley(x):
    """Rosenbrock's function in ten dimensions."""
    p, q = x[1:] - x[:-1] ** 2, 1 - x[:-1]
    gradient = np.zeros(x.size)
    gradient[:-1] = -400 * x[:-1] * p - 2 * q
    gradient[1:] += 200 * p
    return float(100 * p @ p + q @ q), gradient


@pytest.mark.parametrize("minimize", [minimize_bfgs, minimize_lbfgs])
def test_engines_stop_with_the_first_iteration_that_meets_a_rule(minimize):
    start = np.full(10, -1.0)

    def cut(k):
        return minimize(valley, start, tol=0.0, ftol=0.0, max_iter=k)

    for ftol in (1e-1, 1e-3, 1e-6):
        found = minimize(valley, start, tol=0.0, ftol=ftol)
        values = [cut(k).value for k in range(found.n_iter + 1)]
        small = -np.diff(values) <= ftol * np.maximum(1, np.abs(values[1:]))
        assert small[-1] and not small[:-1].any()
        assert found.status == "converged"
    for tol in (10.0, 1.0, 1e-4):
        found = minimize(valley, start, tol=tol, ftol=0.0)
        assert np.abs(found.gradient).max() <= tol < np.abs(cut(found.n_iter - 1).gradient).max()
    assert (cut(3).n_iter, cut(3).status) == (3, "max_iter")


def test_the_memory_is_full_for_as_many_iterations_as_it_has_pairs():
    start = np.full(10, -1.0)
    few, many = (
        [minimize_lbfgs(valley, start, 0.0, 0.0, k, memory).x for k in (4, 9)] for memory in (4, 50)
    )
    assert_allclose(few[0], many[0], rtol=1e-12)
    assert np.abs(few[1] - many[1]).max() > 1e-6


def test_after_one_step_both_engines_know_the_same_curvature():
    """H₀ = (sᵀz/zᵀz) I of the first pair: they part with the third iteration."""
    start = np.full(10, -1.0)
    for k, same in ((1, True), (2, True), (3, False)):
        dense, pairs = (f(valley, start, 0.0, 0.0, k).x for f in (minimize_bfgs, minimize_lbfgs))
        assert np.allclose(dense, pairs, rtol=1e-9) == same


def test_the_schedules_are_those_of_their_names():
    assert_allclose(ANNEALING["geometric"], np.geomspace(1e-3, 1, 8))
    assert ANNEALING["paper"] == (1e-6, 1e-4, 1e-2, 0.1, 0.5, 1.0)


@pytest.mark.parametrize(("rank", "labeled"), [(12, 6), (13, 7), (40, 20)])
def test_labeled_rows_take_half_of_the_pivots_at_most(rank, labeled):
    X = np.random.default_rng(0).standard_normal((80, 4))
    first = np.arange(30)
    pivots = cholesky_coordinates(X, RBF, rank, 1e-9, None, first).model(np.ones(rank))[0]
    assert len(pivots) == rank
    assert set(pivots[:labeled]) <= set(first)
    # What comes after them is spread over all rows.
    assert len(set(pivots) - set(first)) > 0.4 * (rank - labeled)


@pytest.mark.parametrize("engine", ["bfgs", "lbfgs"])
@pytest.mark.parametrize("offset", [None, 0.2])
def test_own_engines_equal_scipy_on_the_convex_problem(engine, offset):
    X, t, weight = problem()
    coordinates = make_coordinates("eigen", X, mean_weight(t, weight))
    options = {"C_star": 0.0, "offset": offset, "tol": 1e-9, "ftol": 0.0, "max_iter": 2000}
    expected = solve(coordinates, t, weight, **options)
    found = solve(coordinates, t, weight, engine=engine, **options)
    assert_allclose(found.objective, expected.objective, rtol=1e-10)
    assert_allclose(found.w, expected.w, atol=1e-6)


@pytest.mark.parametrize("memory", [3, 50])
@pytest.mark.parametrize("offset", [None, 0.2])
@pytest.mark.parametrize("case", ["centered", "plain", "fortran", "without", "share"])
def test_the_compiled_loop_takes_the_steps_of_l_bfgs(case, offset, memory):
    """In Python and compiled: the same points, evaluations and ends, up to rounding."""
    X, t, weight = problem()
    coordinates = make_coordinates("eigen", X, None if case == "plain" else mean_weight(t, weight))
    if case == "fortran":
        coordinates.Z = np.asfortranarray(coordinates.Z)
    if case == "without":
        coordinates = Without(coordinates, np.random.default_rng(0).random(coordinates.dimension))
    losses = LabeledLoss("modified_logistic"), UnlabeledLoss("gaussian")
    weight, share = normalized(t, weight), None
    if case == "share":  # far from the share that is wanted, so that its force counts
        share = SharePenalty(t, weight, 0.1, 0.02)
        share.multiplier = 0.3
    function = ScaledObjective(coordinates, t, weight, *losses, 0.3, 0.02, offset, share)
    start = 0.1 * np.random.default_rng(1).standard_normal(coordinates.dimension + (offset is None))
    kept = start.copy()
    for max_iter in (0, 1, 8):
        expected = minimize_lbfgs(function, start, 0.0, 0.0, max_iter, memory)
        found = minimize_dense(function, function.arrays(), start, 0.0, 0.0, max_iter, memory)
        assert (found.status, found.n_iter) == (expected.status, expected.n_iter)
        assert found.n_evaluations == expected.n_evaluations
        assert_allclose(found.value, expected.value, rtol=1e-9)
        assert_allclose(found.x, expected.x, atol=1e-6)
        assert_allclose(found.gradient, expected.gradient, atol=1e-6)
        assert_allclose(function(found.x)[1], found.gradient, atol=1e-12)
    for tol, ftol in ((1e-5, 0.0), (0.0, 1e-4)):
        cut = [
            minimize_dense(function, function.arrays(), start, tol, ftol, n, memory)
            for n in range(200)
        ]
        last = cut[-1]
        assert last.status == "converged" and last.n_iter < 199
        before = cut[last.n_iter - 1]
        assert before.status == "max_iter"
        if tol:
            assert np.abs(last.gradient).max() <= tol < np.abs(before.gradient).max()
        else:
            assert before.value - last.value <= ftol * max(1.0, abs(last.value))
    assert np.array_equal(start, kept)


def test_the_compiled_loop_says_when_there_is_no_step():
    """Rounding leaves no lower value along the direction."""
    X, t, weight = problem()
    coordinates = make_coordinates("eigen", X, mean_weight(t, weight))
    losses = LabeledLoss("modified_logistic"), UnlabeledLoss("gaussian")
    function = ScaledObjective(coordinates, t, normalized(t, weight), *losses, 0.3, 0.02, 0.2)
    found = minimize_dense(function, function.arrays(), np.zeros(coordinates.dimension), 0.0, -1.0)
    assert found.status == "no_step"
    assert np.abs(found.gradient).max() < 1e-7


def test_what_the_compiled_loop_cannot_take_is_left_to_python():
    X, t, weight = problem()
    dense = make_coordinates("eigen", X, mean_weight(t, weight))
    rows, mean = dense.arrays()
    assert rows is dense.Z and mean is dense.mean
    sparse = linear_coordinates(sp.csr_matrix(X), mean_weight=mean_weight(t, weight))
    single = FeatureMap(dense.Z.astype(np.float32))
    assert sparse.arrays() is single.arrays() is Without(single, np.ones(1)).arrays() is None
    losses = LabeledLoss("modified_logistic"), UnlabeledLoss("gaussian")
    function = ScaledObjective(RawCoefficients(X @ X.T), t, weight, *losses, 0.3, 0.02, 0.2)
    assert function.arrays() is None


# --- The solver -----------------------------------------------------------------------------------


@pytest.mark.parametrize("balance", [0.5, None])
def test_single_precision_on_the_way_leads_to_the_same_minimum(balance, monkeypatch):
    X, y = make_moons(1200, noise=0.1, random_state=0)
    hidden = hide_labels(y, 20, random_state=0)
    models, options = [], {"gamma": 8.0, "balance": balance, "coordinates": Coordinates(rank=200)}
    for large in (2**40, 1):
        monkeypatch.setattr("s3vm_lib.smooth._coordinates._LARGE", large)
        models.append(QNS3VM(**options).fit(X, hidden))
    double, single = models
    assert_allclose(single.objective_, double.objective_, rtol=1e-6)
    assert np.mean(single.transduction_ != double.transduction_) < 2e-3
    took = [[stage.n_evaluations for stage in model.history_] for model in models]
    assert took[0][0] == took[1][0]  # the supervised stage is as it was
    assert sum(took[1]) < sum(took[0])
    assert single.history_[-1].status == "converged"


@pytest.mark.parametrize("engine", ["scipy", "lbfgs", "bfgs"])
def test_every_stage_starts_where_the_last_one_ended_and_goes_down(engine):
    X, t, weight = problem()
    coordinates = make_coordinates("eigen", X, mean_weight(t, weight))
    points = []
    solution = solve(
        coordinates,
        t,
        weight,
        offset=0.1,
        engine=engine,
        ftol=0.0,
        tol=1e-6,
        callback=lambda stage, w, b: points.append(w.copy()),
    )
    assert [stage.alpha for stage in solution.history] == [0.0, *ANNEALING["geometric"]]
    labeled_sum, unlabeled_sum = weight[t != 0].sum(), weight[t == 0].sum()
    losses = (LabeledLoss("modified_logistic"), UnlabeledLoss("gaussian"))
    for number, stage in enumerate(solution.history):
        function = ScaledObjective(
            coordinates,
            t,
            normalized(t, weight),
            *losses,
            stage.alpha * 0.7 * unlabeled_sum / (2.0 * labeled_sum),
            0.5 / (2.0 * labeled_sum),
            0.1,
        )
        start = points[number - 1] if number else np.zeros(coordinates.dimension)
        assert_allclose(function(points[number])[0], stage.value, rtol=1e-12)
        assert stage.value <= function(start)[0] + 1e-12
        assert stage.status == "converged" and stage.gradient_norm <= 1e-6
    assert solution.n_iter == sum(stage.n_iter for stage in solution.history)
    assert_array_equal(solution.w, points[-1])


def test_objective_is_the_sum_form():
    X, t, weight = problem()
    coordinates = make_coordinates("dense", X, mean_weight(t, weight))
    solution = solve(coordinates, t, weight, offset=None)
    w, f = solution.w, solution.outputs
    L, U = t != 0, t == 0
    expected = 0.5 * w @ w
    expected += 2.0 * weight[L] @ LabeledLoss("modified_logistic").value(t[L], f[L])
    expected += 0.7 * weight[U] @ UnlabeledLoss("gaussian").value(f[U])
    assert_allclose(solution.objective, expected, rtol=1e-12)


def test_callback_stops_the_annealing():
    X, t, weight = problem()
    coordinates = make_coordinates("dense", X, mean_weight(t, weight))
    solution = solve(coordinates, t, weight, offset=0.0, callback=lambda stage, w, b: True)
    assert solution.status == "stopped" and len(solution.history) == 1


def test_both_sides_of_the_tolerance_push_and_are_checked():
    """½ρ dist(h + μ/ρ, [p − ε, p + ε])², whose multiplier is its own derivative, by hand."""
    weight = np.array([0.4, 0.3, 0.2, 0.1])
    for ratio, shift in itertools.product((0.3, 0.7), (-2.0, -0.1, 0.1, 2.0)):
        term, f = SharePenalty(np.zeros(4), weight, ratio, 0.05), np.array([0.3, -0.2, 0.1, 0.0])
        f, multiplier = f + shift, 0.0
        share = weight @ (1 / (1 + np.exp(-term.sharpness * f)))
        for _ in range(3):
            moved = share + multiplier / term.rho
            distance = moved - np.clip(moved, ratio - 0.05, ratio + 0.05)
            slope = np.zeros(4)
            assert_allclose(term.add(f, slope), 0.5 * term.rho * distance**2, atol=1e-15)
            assert np.all(np.sign(slope) == np.sign(distance))
            term.update(f)
            assert_allclose(term.violation, max(0.0, abs(share - ratio) - 0.05), atol=1e-15)
            multiplier = term.rho * distance


def test_the_smooth_share_ends_within_its_tolerance():
    """Up to 1e-4; the first rounds after the last stage leave more."""
    X, t, weight = problem(unlabeled=60)
    U = t == 0
    coordinates = make_coordinates("dense", X, mean_weight(t, weight))
    losses = LabeledLoss("modified_logistic"), UnlabeledLoss("gaussian")
    declared = Problem(*losses, 2.0, 0.7, balance="share", ratio=0.4, balance_tol=0.02)
    excess = []

    def note(stage, w, b):
        share = weight[U] @ (1 / (1 + np.exp(-5 * (coordinates.outputs(w)[U] + b))))
        excess.append(abs(share / weight[U].sum() - 0.4) - 0.02)

    found = solve_quasi_newton(coordinates, t, weight, declared, callback=note)
    rounds = excess[1 + len(ANNEALING["geometric"]) :]
    assert found.status == "converged" and len(rounds) < 20
    assert rounds[0] > 1e-3
    assert rounds[-1] < 2e-4


@pytest.mark.parametrize(("seed", "ratio", "tol"), [(0, 0.2, 0.05), (2, 0.5, 0.02)])
def test_the_share_is_met_by_the_offset_where_the_smooth_share_leaves_it_out(seed, ratio, tol):
    X, t, weight = problem(seed, unlabeled=60)
    U = t == 0
    coordinates = make_coordinates("dense", X, mean_weight(t, weight))
    losses = LabeledLoss("modified_logistic"), UnlabeledLoss("gaussian")
    declared = Problem(*losses, 2.0, 0.7, balance="share", ratio=ratio, balance_tol=tol)
    ends = []
    found = solve_quasi_newton(
        coordinates, t, weight, declared, callback=lambda stage, w, b: ends.append(b)
    )
    outputs = coordinates.outputs(found.w) + found.b
    assert_allclose(found.outputs, outputs, atol=1e-12)
    before, after = (
        abs(weight[U] @ (f[U] > 0) / weight[U].sum() - ratio)
        for f in (outputs + ends[-1] - found.b, outputs)
    )
    assert before > 1.5 * tol
    assert after <= tol + 1e-12


@pytest.mark.parametrize(
    ("n", "rank"),
    [(30, 30), (500, 500), (2400, 500), (2600, 520), (4000, 800), (5000, 1000), (10**6, 1000)],
)
def test_the_default_rank_is_a_fifth_of_the_rows_within_limits(n, rank):
    assert default_rank(n) == rank


def test_offset_for_share_is_the_smallest_feasible_shift():
    rng = np.random.default_rng(0)
    for _ in range(60):
        f = rng.standard_normal(9)
        weight = rng.uniform(0.5, 1.5, 9)
        weight /= weight.sum()
        ratio, tol = rng.uniform(0.1, 0.9), rng.uniform(0.06, 0.2)
        change = offset_for_share(f, weight, ratio, tol)
        grid = np.linspace(-4, 4, 8001)
        shares = (f[:, None] + grid > 0).T @ weight
        error = abs(weight @ (f + change > 0) - ratio)
        feasible = grid[np.abs(shares - ratio) <= tol]
        if feasible.size:
            assert error <= tol + 1e-12
            assert abs(change) <= np.abs(feasible).min() + 1e-3
        else:
            assert error <= np.abs(shares - ratio).min() + 1e-12
    assert offset_for_share(np.array([1.0, -1.0]), np.array([0.5, 0.5]), 0.5, 0.1) == 0.0
    tied = offset_for_share(np.zeros(4), np.full(4, 0.25), 0.9, 0.2)
    assert tied > 0  # all or none: all is closer


@pytest.mark.parametrize("ratio", [0.25, 0.5, 0.7])
@pytest.mark.parametrize("tol", [0.02, 0.1])
def test_tolerance_form_of_the_balance_is_met(ratio, tol):
    X, y, _ = blobs(n=108, share=0.5)
    model = QNS3VM(balance=ratio, balance_tol=tol, gamma=0.3).fit(X, y)
    outputs = model.decision_function(X)[y < 0]
    assert abs(np.mean(outputs > 0) - ratio) <= tol + 1e-12
    unlabeled = model.transduction_[y < 0]
    assert abs(np.mean(unlabeled == 1) - ratio) <= tol + 1e-12


def test_a_wide_tolerance_leaves_the_free_offset_alone():
    X, y, _ = blobs(distance=2.5)
    options = {"kernel": "linear", "tol": 1e-7, "ftol": 1e-13}
    free = QNS3VM(balance=None, **options).fit(X, y)
    wide = QNS3VM(balance=0.5, balance_tol=0.45, **options).fit(X, y)
    assert_allclose(wide.objective_, free.objective_, rtol=1e-6)
    assert_allclose(wide.coef_, free.coef_, atol=1e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian"])
@pytest.mark.parametrize("coordinates", ["cholesky", "eigen", "raw"])
def test_objective_is_that_of_the_declared_problem(kernel, coordinates):
    X, y, _ = blobs()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    for options in ({}, {"balance_tol": 0.1}, {"balance": None}):
        model = QNS3VM(kernel=kernel, coordinates=coordinates, sigma_f=1.5, **options)
        found = evaluate(model.fit(X, y, weight), X, y, model.problem_, weight)
        assert_allclose(found.objective, model.objective_, rtol=1e-6)
        assert found.balance_residual <= 1e-9


# --- Reduction to supervised problems -------------------------------------------------------------


def test_logistic_loss_equals_scikit_learn():
    X, y, _ = blobs(distance=0.7, labeled=40)
    labeled = y >= 0
    expected = LogisticRegression(C=1.3, tol=1e-10, max_iter=10000).fit(X[labeled], y[labeled])
    options = {"kernel": "linear", "labeled_loss": "logistic", "C": 1.3, "tol": 1e-8, "ftol": 0.0}
    for X_, y_, extra in (
        (X, y, {"C_star": 0.0, "balance": None}),
        (sp.csr_matrix(X), y, {"C_star": 0.0, "balance": None}),
        (X[labeled], y[labeled], {}),
    ):
        model = QNS3VM(**options, **extra).fit(X_, y_)
        assert_allclose(model.coef_, expected.coef_, atol=1e-6)
        assert_allclose(model.intercept_, expected.intercept_, atol=1e-6)


@pytest.mark.parametrize("coordinates", ["cholesky", "eigen"])
def test_large_sharpness_is_the_support_vector_machine(coordinates):
    X, y, _ = blobs(distance=0.7, labeled=60)
    svc = SVC(C=1.0, gamma=0.5, tol=1e-8).fit(X, y)
    outputs = svc.decision_function(X)
    t = np.where(y == 1, 1.0, -1.0)
    norm = svc.dual_coef_ @ RBF_HALF.gram(svc.support_vectors_) @ svc.dual_coef_.T
    expected = 0.5 * norm.item() + np.maximum(0, 1 - t * outputs).sum()
    for sharpness in (100.0, 1000.0):
        model = QNS3VM(
            gamma=0.5,
            labeled_loss=LabeledLoss("modified_logistic", sharpness),
            coordinates=coordinates,
            tol=1e-7,
            ftol=1e-13,
            max_iter=5000,
        ).fit(X, y)
        gap = model.objective_ - expected
        assert -1e-3 <= gap <= 60 * np.log(2) / sharpness + 1e-3


RBF_HALF = Kernel("rbf", gamma=0.5)


# --- Invariances ----------------------------------------------------------------------------------

TIGHT = {"tol": 1e-8, "ftol": 1e-14, "max_iter": 3000}


@pytest.mark.parametrize("balance", ["labels", 0.4, None])
def test_swapping_the_labels_changes_the_sign(balance):
    X, y, _ = blobs(distance=1.5, n=80)
    swapped = np.where(y < 0, -1, 1 - y)
    other = 1 - balance if isinstance(balance, float) else balance
    one = QNS3VM(balance=balance, **TIGHT).fit(X, y)
    two = QNS3VM(balance=other, **TIGHT).fit(X, swapped)
    assert_allclose(two.objective_, one.objective_, rtol=1e-7)
    assert_allclose(two.decision_function(X), -one.decision_function(X), atol=1e-3)


# --- The estimator --------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [-30, -20, -10, 20])
@pytest.mark.parametrize("engine", ["scipy", "lbfgs", "bfgs"])
@pytest.mark.parametrize("options", [dict(coordinates="raw"), dict(coordinates="eigen"),
                                     dict(coordinates="raw", kernel="linear")])  # fmt: skip
def test_the_unit_of_the_kernel_is_free(options, engine, exponent):
    X, y = blobs()[:2]
    options = dict(gamma=0.5, engine=engine, balance=0.5, **options)
    one = QNS3VM(**options).fit(X, y)
    other = QNS3VM(sigma_f=2.0**exponent, C=0.25**exponent, **options).fit(X, y)
    assert other.termination_condition_ == "converged"
    assert_allclose(4.0**exponent * other.objective_, one.objective_, rtol=1e-3)
    assert np.mean(other.predict(X) != one.predict(X)) <= 0.02


@pytest.mark.parametrize("coordinates", ["cholesky", "eigen", "raw", "regressors", "kpca"])
@pytest.mark.parametrize("engine", ["scipy", "lbfgs", "bfgs"])
def test_unlabeled_rows_help_in_all_coordinates_with_all_engines(coordinates, engine):
    X, y, truth = blobs(distance=1.6, n=200, labeled=10)
    supervised = SVC(gamma=0.1).fit(X[:10], truth[:10]).score(X, truth)
    model = QNS3VM(
        gamma=0.1, coordinates=Coordinates(coordinates, rank=40), engine=engine, balance="labels",
        random_state=0,
    )  # fmt: skip
    model.fit(X, y)
    assert model.score(X, truth) >= max(0.92, supervised)
    assert_array_equal(model.transduction_, np.where(y >= 0, y, model.predict(X)))
    assert abs(model.decision_function(X)[y < 0].mean()) <= 1e-9
    assert model.termination_condition_ == "converged"
    if coordinates in ("cholesky", "regressors"):
        assert model.support_.size <= 40 and model.support_vectors_.shape == (40, 3)
        assert np.isin(np.arange(10), model.support_).all()


def test_regressors_follow_the_random_state():
    X, y, _ = blobs(n=100)
    twenty = Coordinates("regressors", rank=20)
    fit = lambda seed: QNS3VM(coordinates=twenty, random_state=seed).fit(X, y)  # noqa: E731
    assert_array_equal(fit(0).support_, fit(0).support_)
    assert not np.array_equal(fit(0).support_, fit(1).support_)


def test_g2c_without_tuning():
    errors = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        truth = np.repeat([0, 1], 250)
        X = rng.standard_normal((500, 500))
        X[:, 0] += 2.5 * (2 * truth - 1)
        order = rng.permutation(500)
        train, test = order[:250], order[250:]
        labeled = np.r_[train[truth[train] == 0][:13], train[truth[train] == 1][:12]]
        y = np.where(np.isin(train, labeled), truth[train], -1)
        # λ = 2^-4 and λ' = 1 in the notation of the paper.
        model = QNS3VM(kernel="linear", C=2**4 / 50, balance="labels").fit(X[train], y)
        errors.append(np.mean(model.predict(X[test]) != truth[test]))
    assert np.mean(errors) <= 0.04


# --- The labels that a separator contradicts ------------------------------------------------------


def across(seed, labeled=12):
    """Few labels in a space of many dimensions, where the widest gap runs across the classes."""
    X, truth = make_g4c(200, 300, random_state=seed)
    return X, hide_labels(truth, labeled, random_state=seed), truth


@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(kernel="linear", sigma_f=0.7),
        dict(coordinates="raw"),
        dict(kernel="linear", coordinates="raw", sigma_f=0.7),
        dict(coordinates="eigen", balance=None),
        dict(balance_tol=0.05),
    ],
)
def test_the_part_of_the_unlabeled_rows_is_what_it_says(options):
    X, y, truth = blobs(3, labeled=12, distance=0.7)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    y[:12] = np.roll(truth[:12], 1)  # some labels are wrong
    model = QNS3VM(tol=1e-9, ftol=0.0, **{"balance": 0.4, **options}).fit(X, y, weight)
    u, f, problem = y == -1, model.decision_function(X), model.problem_
    slope = -2 * 3.0 * problem.C_star * weight[u] * f[u] * np.exp(-3.0 * f[u] ** 2)
    m = weight[u] / weight[u].sum()
    K = problem.kernel.gram(X)
    between = K[:, u] - K[:, u] @ m[:, None] - m @ K[u][:, u] + m @ K[u][:, u] @ m
    center = 0.0 if not model.fit_intercept else m @ f[u]
    part = center - between @ slope  # outputs of w_U and the offset of centered rows
    wrong = (part[:12] > 0) != (y[:12] == 1)
    assert 0 < wrong.sum() < 12
    assert_allclose(model.contradicted_, weight[:12][wrong].sum() / weight[:12].sum())


def test_without_unlabeled_rows_nothing_is_contradicted():
    X, y, truth = blobs()
    assert QNS3VM(C_star=0.0).fit(X, y).contradicted_ == 0
    nobody = np.zeros(y.size, bool)
    assert QNS3VM().fit(X, truth, unlabeled_mask=nobody).contradicted_ == 0


@pytest.mark.parametrize("name", ["dense", "csr", "cholesky"])
def test_a_direction_that_is_left_out_has_no_influence(name):
    X, t, weight = problem()
    m = mean_weight(t, weight)
    inner = make_coordinates(name, X, m)
    rng = np.random.default_rng(0)
    direction, w = rng.standard_normal((2, inner.dimension))
    rest = Without(inner, direction)
    assert_allclose(rest.outputs(w + 3 * direction), rest.outputs(w), atol=1e-10)
    flat = w - (w @ direction) / (direction @ direction) * direction
    assert_allclose(rest.outputs(w), inner.outputs(flat), atol=1e-10)
    index = np.array([2, 5])
    assert_allclose(rest.rows(index).outputs(w), rest.outputs(w)[index], atol=1e-12)
    a = rng.standard_normal(t.size)
    between = np.column_stack([rest.applied(e) for e in np.eye(t.size)])
    assert_allclose(between @ a, rest.applied(a), atol=1e-9)
    assert_allclose(between, between.T, atol=1e-9)
    losses = LabeledLoss("modified_logistic"), UnlabeledLoss("gaussian")
    scaled = ScaledObjective(rest, t, normalized(t, weight), *losses, 0.6, 0.3, 0.1)
    assert difference_error(scaled, w) < 1e-5


@pytest.mark.parametrize("seed", [7, 34, 47])
def test_a_separator_that_contradicts_the_labels_is_reconsidered(seed):
    X, y, truth = across(seed)
    u = y == -1
    plain = QNS3VM(kernel="linear", balance=0.5).fit(X, y)
    assert np.mean(plain.transduction_[u] != truth[u]) > 0.4 and plain.contradicted_ >= 0.2
    model = QNS3VM(kernel="linear", balance=0.5, reconsider=True).fit(X, y)
    assert np.mean(model.transduction_[u] != truth[u]) < 0.1 and model.contradicted_ <= 0.1
    assert model.objective_ > plain.objective_  # which is why J alone cannot choose
    last = model.history_[-1]
    assert last.alpha == 1 and last.gradient_norm < 1e-4 and last.status == "converged"
    f, problem = model.decision_function(X), model.problem_  # stationary in all directions
    t = np.where(y == 1, 1.0, -1.0)
    a = problem.C * problem.labeled_loss.derivative(t, f)
    a[u] = problem.C_star * problem.unlabeled_loss.derivative(f[u])
    w = model.coef_[0]
    assert np.linalg.norm(w + a @ (X - X[u].mean(axis=0))) < 0.01 * np.linalg.norm(w)
    assert model.history_[: len(plain.history_)] == plain.history_
    assert model.n_iter_ == sum(stage.n_iter for stage in model.history_)
    sparse = clone(model).fit(sp.csr_matrix(X), y)
    assert_array_equal(sparse.transduction_, model.transduction_)
    eigen = clone(model).set_params(coordinates="eigen").fit(X, y)
    assert_array_equal(eigen.transduction_, model.transduction_)
    twice = np.r_[np.arange(y.size), np.arange(y.size)]
    copies = clone(model).set_params(C=0.5).fit(X[twice], y[twice])
    assert_array_equal(copies.transduction_[: y.size], model.transduction_)


def test_what_contradicts_few_labels_is_left_alone():
    X, y, _ = blobs()
    plain, model = QNS3VM(balance=0.5), QNS3VM(balance=0.5, reconsider=True)
    assert_array_equal(model.fit(X, y).dual_coef_, plain.fit(X, y).dual_coef_)
    assert model.history_ == plain.history_
    # Contradicted, but no other separator is better by enough.
    X, y, _ = across(1)
    plain, model = (clone(m).set_params(kernel="linear").fit(X, y) for m in (plain, model))
    assert plain.contradicted_ > 0.2
    assert_array_equal(model.coef_, plain.coef_)
    assert model.history_[: len(plain.history_)] == plain.history_
    assert len(model.history_) == 2 * len(plain.history_)  # what was tried in vain included
    assert model.n_iter_ == sum(stage.n_iter for stage in model.history_)


def test_reconsider_needs_explicit_features_and_respects_the_callback():
    X, y, _ = across(7)
    with pytest.raises(ValueError, match="reconsider must be False with coordinates='raw'"):
        QNS3VM(coordinates="raw", reconsider=True).fit(X, y)
    stopped = QNS3VM(kernel="linear", balance=0.5, reconsider=True, callback=lambda s: True)
    assert len(stopped.fit(X, y).history_) == 1
    plain = QNS3VM(kernel="linear", balance=0.5).fit(X, y)
    first = len(plain.history_)
    for last in (first, first + 3, 2 * first, 2 * first + 1):
        calls = []

        def stop(stage, calls=calls, last=last):
            calls.append(stage)
            return len(calls) == last

        model = QNS3VM(kernel="linear", balance=0.5, reconsider=True, callback=stop).fit(X, y)
        assert len(calls) == len(model.history_) == last
        assert model.termination_condition_ == "stopped"
        assert model.n_iter_ == sum(stage.n_iter for stage in model.history_)
        # The first separator, until the next one is there.
        assert np.array_equal(model.coef_, plain.coef_) == (last <= 2 * first)


def test_single_precision_features_are_whole_when_others_see_them(monkeypatch):
    m = np.full(2**20, 2.0**-20)
    features, seen = FeatureMap(np.ones((2**20, 1)), m), []

    def look(self, name, value):
        object.__setattr__(self, name, value)
        seen.append(features._coarse)

    monkeypatch.setattr(SingleFeatures, "__setattr__", look, raising=False)
    coarse = features.coarse()
    assert coarse is features.coarse() and coarse.mean is features.mean
    assert seen and all(other is None for other in seen)  # nothing is written to it afterwards


@pytest.mark.parametrize("value", [0.0, 0.1])
def test_kpca_of_equal_rows(value):
    X, y = np.full((8, 2), value), np.r_[0, 1, np.full(6, -1)]
    options = dict(kernel="linear", balance=0.3)
    model = QNS3VM(coordinates=Coordinates("kpca", rank=1), **options).fit(X, y)
    assert_allclose(model.decision_function(X), 2 * 0.3 - 1, atol=1e-9)


def test_verbose_callback_and_stopping(capsys):
    X, y, _ = blobs()
    states = []
    QNS3VM(verbose=1, callback=states.append).fit(X, y)
    assert capsys.readouterr().out.count("alpha") == len(states) == 9
    assert set(states[0]) == {"alpha", "value", "gradient_norm", "n_iter", "n_evaluations"}
    model = QNS3VM(annealing="paper", callback=lambda state: state["alpha"] >= 0.1).fit(X, y)
    assert model.termination_condition_ == "stopped"
    assert [stage.alpha for stage in model.history_] == [0.0, 1e-6, 1e-4, 0.01, 0.1]


def test_without_offset_the_zero_output_is_a_plane_through_the_origin():
    X, y, _ = blobs(distance=2.0)
    model = QNS3VM(kernel="linear", fit_intercept=False, balance=None).fit(X, y)
    assert model.intercept_ == 0.0
    assert_allclose(model.decision_function(X), X @ model.coef_.ravel(), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fit_intercept": False}, "fit_intercept=False needs balance=None"),
        ({"annealing": [0.1, 0.5]}, "annealing must be one of .* or an increasing sequence"),
        ({"annealing": [1.0, 0.5, 1.0]}, "annealing must be one of .* or an increasing sequence"),
        ({"labeled_loss": "hinge"}, "labeled_loss"),
        ({"labeled_loss": LabeledLoss("modified_logistic", 1e-200)}, "labeled_loss"),
    ],
)
def test_bad_parameters_are_named(options, message):
    X, y, _ = blobs()
    with pytest.raises(ValueError, match=message):
        QNS3VM(**options).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "dual"}, "'name' parameter of Coordinates must be a str among"),
        ({"rank": 0}, "'rank' parameter of Coordinates"),
        ({"rank_tol": 1.0}, "'rank_tol' parameter of Coordinates"),
    ],
)
def test_bad_coordinates_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Coordinates(**options)


def test_a_name_stands_for_coordinates_with_their_defaults():
    X, y, _ = blobs()
    for name in ("cholesky", "eigen", "raw", "regressors", "kpca"):
        one = QNS3VM(coordinates=name, random_state=0).fit(X, y)
        two = QNS3VM(coordinates=Coordinates(name), random_state=0).fit(X, y)
        assert_array_equal(one.decision_function(X), two.decision_function(X))
    grid = [Coordinates("kpca", rank=10), Coordinates("kpca", rank=10)]
    assert grid[0] == grid[1] == clone(QNS3VM(coordinates=grid[0])).coordinates


def test_degenerate_data():
    y = np.array([0, 1, -1, -1, -1, -1])
    for X in (np.zeros((6, 2)), np.repeat([[1.0, 2.0]], 6, axis=0)):
        for kernel, coordinates in itertools.product(("linear", "rbf"), ("cholesky", "eigen")):
            model = QNS3VM(kernel=kernel, coordinates=coordinates).fit(X, y)
            assert np.isfinite(model.decision_function(X)).all()
    huge = QNS3VM(kernel="linear").fit(np.array([[-1e3], [1e3], [-2e3], [2e3], [1e3], [-1e3]]), y)
    assert np.isfinite(huge.objective_)


@pytest.mark.slow
def test_the_default_mode_ends_no_higher_than_the_plain_transcription():
    """On two moons with 2000 points, under one stopping rule; the speed is a benchmark's matter."""
    X, truth = make_moons(2000, random_state=0)
    t = np.where(np.arange(2000) < 4, 2.0 * truth - 1, 0.0)
    kernel, lam = Kernel("rbf", 8.0), 1e-3
    m = mean_weight(t, np.ones(2000))
    coordinates = cholesky_coordinates(X, kernel, 500, 1e-6, m, np.arange(4))
    C, C_star = Problem.penalties(lam, 1.0, 4, 1996)
    one = np.ones(2000)
    solution = solve(coordinates, t, one, C=C, C_star=C_star, offset=0.0, ftol=2.2204e-9)
    _, F = twin.fit(twin.centered_gram(kernel.gram(X), t), t, lam, 1.0)
    assert solution.history[-1].value <= F * (1 + 1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_raw_coefficients_of_the_linear_kernel_need_no_gram_matrix(sparse):
    """Theorems 2 and 3: the products with X give what the Gram matrix gives."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 5)) * (rng.random((30, 5)) < 0.6)
    weight = np.where(np.arange(30) < 6, 0.0, rng.random(30))
    weight /= weight.sum()
    Z = sp.csr_matrix(X) if sparse else X
    lean = linear_coordinates(Z, 1.5, weight, raw=True)
    full = RawCoefficients(1.5**2 * X @ X.T, weight)
    a, c = rng.standard_normal((2, 30))
    assert_allclose(lean.outputs(c), full.outputs(c), atol=1e-12)
    assert_allclose(lean.gradient(a, c, 0.3), full.gradient(a, c, 0.3), atol=1e-12)
    f = full.outputs(c)
    assert_allclose(lean.squared_norm(c, f), full.squared_norm(c, f), atol=1e-12)


@pytest.mark.parametrize("coordinates", ["raw", "eigen", "regressors", "kpca"])
def test_linear_kernel_in_every_coordinates(coordinates):
    """The convex problem has one solution, wherever it is searched."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 4))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(40) > 0, 1, 0)
    y[20:] = -1
    options = dict(kernel="linear", C_star=0.0, tol=1e-9, ftol=0.0)
    expected = QNS3VM(**options).fit(X, y)
    found = QNS3VM(coordinates=coordinates, **options).fit(X, y)
    assert_allclose(found.coef_, expected.coef_, atol=1e-5)
    assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-5)


def test_reconsider_keeps_a_solution_that_separates_nothing():
    y = np.array([0, 0, 1, -1, -1, -1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a direction of length zero
        warnings.simplefilter("ignore", FitWarning)  # all rows are alike
        model = QNS3VM(reconsider=True, balance="labels").fit(np.ones((6, 2)), y)
    assert np.all(model.decision_function(np.ones((2, 2))) == model.intercept_)


@pytest.mark.parametrize("engine", ["scipy", "lbfgs", "bfgs"])
@pytest.mark.parametrize("C", [1e6, 1e9, 1e12])
def test_a_large_C_leaves_the_unlabeled_term_its_weight(engine, C):
    """Labels that can be separated cost nothing then: J is about that of C = 1000."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((48, 6)), np.arange(48) % 2
    X[:, 0] += y
    y[4:] = -1
    here, there = (
        QNS3VM(kernel="linear", engine=engine, C=C, C_star=1.0, balance=0.5).fit(X, y)
        for C in (C, 1e3)
    )
    assert here.termination_condition_ == "converged"
    assert here.objective_ <= 1.2 * there.objective_


@pytest.mark.parametrize("engine", ["scipy", "lbfgs", "bfgs"])
def test_rows_far_from_the_origin_are_searched_like_others(engine):
    X, y = blobs()[:2]
    X = np.round(8 * X) / 8
    options = dict(kernel="linear", engine=engine, balance=0.5)
    here, there = (QNS3VM(**options).fit(Z, y) for Z in (X, X + 2.0**30))
    assert_allclose(there.objective_, here.objective_, rtol=1e-2)


@pytest.mark.parametrize("cls", [QNS3VM, NewtonS3VM])
@pytest.mark.parametrize("C", [1e4, 1e5, 1e6, 1e9])
def test_with_a_huge_C_the_objective_is_that_of_small_tolerances(cls, C):
    """The gradient of F is small everywhere where J/C is; J was up to a thousandfold."""
    rng, t = np.random.default_rng(0), np.arange(60) % 2
    X = np.c_[rng.normal(size=60) + 3 * t, rng.normal(size=60)]
    y = np.where(np.arange(60) < 20, t, -1)
    model, tight = (cls(C=C, balance="labels", tol=tol).fit(X, y) for tol in (1e-5, 1e-12))
    assert model.termination_condition_ == "converged"
    assert model.objective_ <= 1.06 * tight.objective_
