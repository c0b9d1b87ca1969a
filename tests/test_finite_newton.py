"""Finite Newton: products, line search, conjugate gradients, and the minimum against cvxpy."""

import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from sklearn.svm import LinearSVC

from s3vm_lib.checks import gradient_error
from s3vm_lib.finite_newton import (
    DenseRows,
    SparseRows,
    conjugate_gradients,
    line_search,
    linear_rows,
    loss_and_slopes,
    slope_along,
    solve_finite_newton,
)
from s3vm_lib.reference import finite_newton as twin
from s3vm_lib.utils.threads import in_threads


def instance(seed=0, n=40, d=6, density=0.6, both=0.3):
    """(X, plus, minus): random rows; a share ``both`` of them costs with either label."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    plus, minus = rng.uniform(0.1, 3.0, (2, n))
    label = np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0.3, 1, -1)
    single = rng.random(n) >= both
    plus[single & (label < 0)] = 0.0
    minus[single & (label > 0)] = 0.0
    return X, plus, minus


def with_ones(X):
    return np.c_[X, np.ones(len(X))]


def value(v, X, plus, minus):
    o = with_ones(X) @ v
    return 0.5 * v @ v + twin.loss(plus, minus, o)


# --- Objective and products -----------------------------------------------------------------------


def test_slopes_are_derivatives_in_the_outputs():
    _, plus, minus = instance()
    o = np.random.default_rng(1).uniform(-2, 2, 40)
    o[np.abs(np.abs(o) - 1) < 0.01] = 0.5  # the second derivative jumps at ±1
    curvature, slope = np.empty((2, 40))

    def function(o):
        value = loss_and_slopes(plus, minus, o, curvature, slope)
        assert_allclose(value, twin.loss(plus, minus, o), rtol=1e-13)
        return value, slope.copy()

    assert gradient_error(function, o) < 1e-10
    function(o)
    step = 1e-6 * np.ones(40)
    ahead, behind = function(o + step)[1], function(o - step)[1]
    function(o)
    assert_allclose((ahead - behind) / 2e-6, curvature, atol=1e-8)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_products_of_dense_and_sparse_rows(share, index):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 9)) * (rng.random((50, 9)) < 0.5)
    X[7], X[:, 3] = 0.0, 0.0
    csr = sp.csr_matrix(X)
    csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
    weight = rng.uniform(0.5, 2, 50) * (rng.random(50) < share)
    v, full = rng.standard_normal(10), with_ones(X)
    for rows in (DenseRows(X), SparseRows(csr)):
        assert rows.shape == (50, 10)
        assert_allclose(rows.outputs(v), full @ v, atol=1e-13)
        assert_allclose(rows.adjoint(weight), full.T @ weight, atol=1e-13)
        expected = v + full.T @ (weight * (full @ v))
        assert_allclose(rows.curvature(weight)(v), expected, atol=1e-12)
        assert_allclose(rows.take(np.array([4, 1, 7])).outputs(v), (full @ v)[[4, 1, 7]])
    assert isinstance(linear_rows(csr), SparseRows) and isinstance(linear_rows(X), DenseRows)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_curvature_follows_the_rows_that_are_active(form):
    """The same rows with other costs, as many other rows, and the product from before."""
    X, weight = instance()[0], 1.0 + np.arange(40) % 7
    rows, full, p = linear_rows(form(X)), with_ones(X), np.random.default_rng(0).standard_normal(7)
    active = np.arange(40) < 12
    costs = [weight * active, 2 * weight * active, weight * active[::-1], weight * (~active)]
    products = [rows.curvature(c) for c in costs]
    for c, product in zip(costs, products, strict=True):
        assert_allclose(product(p), p + full.T @ (c * (full @ p)), atol=1e-12)


def test_rows_that_classes_share_in_threads_keep_nothing_apart():
    rng = np.random.default_rng(0)
    rows, p = DenseRows(rng.standard_normal((300, 4))), rng.standard_normal(5)
    costs = [np.where(rng.random(300) < share, 1.0, 0.0) for share in (0.2, 0.4)]
    expected = [DenseRows(rows.X).curvature(c)(p) for c in costs]

    def often(k):
        return all(np.array_equal(rows.curvature(costs[k])(p), expected[k]) for _ in range(2000))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        assert all(in_threads(often, range(2), n_jobs=2))
    finally:
        sys.setswitchinterval(before)


def test_conjugate_gradients_descend_wherever_they_end():
    rng = np.random.default_rng(2)
    A, g = rng.standard_normal((30, 12)), rng.standard_normal(12)
    H = np.eye(12) + A.T @ A
    for limit in range(1, 13):
        d, used = conjugate_gradients(lambda p: H @ p, g, 1e-12, limit)
        assert used == limit
        assert_allclose(g @ d, -d @ H @ d, rtol=1e-8)
        assert g @ d < 0
    d, used = conjugate_gradients(lambda p: H @ p, g, 1e-10, 100)
    assert_allclose(d, np.linalg.solve(H, -g), atol=1e-10)
    assert used <= 20


# --- Line search ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("length", [1e-3, 1.0, 30.0])
def test_line_search_is_exact(seed, length):
    X, plus, minus = instance(seed)
    rng = np.random.default_rng(seed)
    v, d = rng.standard_normal(7), length * rng.standard_normal(7)
    o, change = with_ones(X) @ v, with_ones(X) @ d
    if slope_along(plus, minus, o, change, 0.0, v @ d, d @ d) > 0:
        d, change = -d, -change
    s = line_search(plus, minus, o, change, v @ d, d @ d)
    assert s > 0
    scale = np.abs(plus + minus) @ np.abs(change * (1 + np.abs(o)))
    assert abs(slope_along(plus, minus, o, change, s, v @ d, d @ d)) <= 1e-12 * scale
    found = minimize_scalar(
        lambda s: value(v + s * d, X, plus, minus), bounds=(0, 3 * s), options={"xatol": 1e-9 * s}
    )
    assert_allclose(s, found.x, rtol=1e-5)
    assert value(v + s * d, X, plus, minus) <= found.fun + 1e-12 * found.fun
    assert_allclose(twin.line_search(v, d, o, change, plus, minus), s, rtol=1e-9)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_line_search_from_a_kink(sign):
    """At o = y the loss of a row begins or ends; which of the two depends on the direction."""
    one, zero = np.array([1.0]), np.array([0.0])
    v, d = np.array([sign * 1.0]), np.array([-sign * 1.0])  # to the origin; one feature, x = 1
    plus, minus = (one, zero) if sign > 0 else (zero, one)
    s = line_search(plus, minus, v, d, v @ d, d @ d)
    # ½(1 − s)² + ½s² is least at ½.
    assert_allclose(s, 0.5, rtol=1e-14)
    s = line_search(plus, minus, -3 * v, v, -3 * v @ v, v @ v)
    # ½(s − 3)² + ½(4 − s)² is least at 3.5; no kink lies in between.
    assert_allclose(s, 3.5, rtol=1e-14)


# --- The minimum ----------------------------------------------------------------------------------


def cvxpy_minimum(X, plus, minus):
    cp = pytest.importorskip("cvxpy")
    v = cp.Variable(X.shape[1] + 1)
    o = with_ones(X) @ v
    loss = plus @ cp.square(cp.pos(1 - o)) + minus @ cp.square(cp.pos(1 + o))
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(v) + 0.5 * loss))
    tight = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it stops at its limit of precision
        problem.solve(solver="CLARABEL", **tight)
    return v.value, problem.value


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_the_minimum_is_that_of_cvxpy(seed, scale):
    X, plus, minus = instance(seed)
    if seed == 3:
        X = np.c_[X, X[:, 0], X[:, 0] + X[:, 1], np.ones(40)]  # dependent columns
    plus, minus = scale * plus, scale * minus
    expected, lowest = cvxpy_minimum(X, plus, minus)
    for rows in (linear_rows(X), linear_rows(sp.csr_matrix(X))):
        found = solve_finite_newton(rows, plus, minus, tol=1e-9)
        assert found.status == "converged"
        assert_allclose(found.v, expected, atol=1e-7)
        assert_allclose(found.objective, lowest, rtol=1e-9)
        assert_allclose(found.objective, value(found.v, X, plus, minus), rtol=1e-12)
        assert_allclose(found.outputs, with_ones(X) @ found.v, atol=1e-10)
        assert found.n_iter <= 20
    assert_allclose(
        twin.train(with_ones(X), plus, minus, np.zeros(expected.size)), found.v, atol=1e-8
    )


@pytest.mark.parametrize("C", [0.02, 1.0, 50.0])
def test_labeled_rows_alone_are_the_linear_svc_of_scikit_learn(two_gaussians, C):
    X, t = two_gaussians(n=80)
    svc = LinearSVC(C=C / 2, loss="squared_hinge", dual=False, tol=1e-10).fit(X, t)
    found = solve_finite_newton(linear_rows(X), C * (t > 0), C * (t < 0), tol=1e-8)
    assert_allclose(found.v[:-1], svc.coef_[0], atol=1e-6)
    assert_allclose(found.v[-1], svc.intercept_[0], atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_every_step_lowers_the_objective_and_the_gradient_bounds_the_error(sparse):
    X, plus, minus = instance(5, n=200, d=30)
    plus, minus = 20 * plus, 20 * minus
    rows = linear_rows(sp.csr_matrix(X) if sparse else X)
    best = solve_finite_newton(rows, plus, minus, tol=1e-10)
    steps = [solve_finite_newton(rows, plus, minus, tol=1e-10, max_iter=k) for k in range(12)]
    values = np.array([step.objective for step in steps])
    assert np.all(np.diff(values) <= 1e-14 * values[0]) and np.all(np.diff(values[:6]) < 0)
    for step in steps:
        assert np.linalg.norm(step.v - best.v) <= step.gradient_norm * (1 + 1e-8)
        assert step.objective - best.objective <= 0.5 * step.gradient_norm**2 + 1e-9
    assert steps[1].status == "max_iter" and best.status == "converged"
    for tol in (1e-1, 1e-2, 1e-3):
        rough = solve_finite_newton(rows, plus, minus, tol=tol)
        assert np.linalg.norm(rough.v - best.v) <= tol * np.linalg.norm(rough.v) * (1 + 1e-8)
        assert rough.objective <= best.objective * (1 + tol**2)


@pytest.mark.parametrize("length", [1.0, 10.0])
def test_a_step_ends_at_the_minimum_on_its_line(length):
    for seed in range(4):
        X, plus, minus = instance(seed)
        A = with_ones(X)
        start = length * np.random.default_rng(seed).standard_normal(7)

        def gradient(v, A=A, plus=plus, minus=minus):
            o = A @ v
            return v + A.T @ (minus * np.maximum(0, 1 + o) - plus * np.maximum(0, 1 - o))

        found = solve_finite_newton(linear_rows(X), plus, minus, start, tol=1e-9, max_iter=1)
        step = found.v - start
        assert abs(gradient(found.v) @ step) < 1e-10 * abs(gradient(start) @ step)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_tolerance_is_met_and_the_gradient_norm_is_the_one_reported(form):
    for seed in range(4):
        X, plus, minus = instance(seed)
        A = with_ones(X)
        for tol in (1e-1, 1e-2, 1e-4, 1e-6):
            found = solve_finite_newton(linear_rows(form(X)), plus, minus, tol=tol)
            o = A @ found.v
            slopes = minus * np.maximum(0, 1 + o) - plus * np.maximum(0, 1 - o)
            norm = np.linalg.norm(found.v + A.T @ slopes)
            assert found.status == "converged"
            assert norm <= tol * np.linalg.norm(found.v) * (1 + 1e-6)
            assert_allclose(found.gradient_norm, norm, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("max_iter", [1, 2])
def test_limits_are_kept_and_the_start_is_left_alone(max_iter):
    X, plus, minus = instance(1)
    start = np.ones(X.shape[1] + 1)
    found = solve_finite_newton(
        linear_rows(X), plus, minus, start, tol=1e-12, max_iter=max_iter, max_cg=2
    )
    assert (found.n_iter, found.status) == (max_iter, "max_iter")
    assert found.n_cg == 2 * max_iter  # each step would take more
    assert np.all(start == 1)


def test_a_start_at_the_minimum_takes_no_step():
    X, plus, minus = instance()
    rows = linear_rows(X)
    first = solve_finite_newton(rows, plus, minus, tol=1e-6)
    again = solve_finite_newton(rows, plus, minus, first.v, first.outputs, tol=1e-6)
    assert again.n_iter == 0 and again.objective == first.objective
    without = solve_finite_newton(rows, plus, minus, first.v, tol=1e-5)
    assert without.n_iter == 0
    assert first.v is not again.v


def test_costs_of_zero_and_tolerances_beyond_double_precision():
    X, plus, minus = instance()
    rows = linear_rows(X)
    nothing = solve_finite_newton(rows, 0 * plus, 0 * minus)
    assert nothing.status == "converged" and nothing.objective == 0 and not nothing.v.any()
    best = solve_finite_newton(rows, plus, minus, tol=1e-10)
    endless = solve_finite_newton(rows, plus, minus, tol=1e-300)
    assert endless.status == "no_step"
    assert_allclose(endless.v, best.v, atol=1e-9)
    tiny = solve_finite_newton(rows, 1e-9 * plus, 1e-9 * minus)
    assert tiny.n_iter == 1
    assert_allclose(tiny.v, 1e-9 * with_ones(X).T @ (plus - minus), rtol=1e-6)
