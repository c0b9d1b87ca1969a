"""Kernels: values against scikit-learn, rows against blocks, pivoted Cholesky."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from s3vm_lib.kernels import (
    KERNELS,
    Kernel,
    add_kernel_sums,
    add_symmetric_sums,
    exp_inplace,
    kernel_row,
    kernel_rows,
    pivoted_cholesky,
    rbf_among,
    resolve_gamma,
    squared_norms,
)

COMPUTED = [
    Kernel("linear", sigma_f=1.5),
    Kernel("poly", 0.5, degree=1, coef0=-1.0),
    Kernel("poly", 0.3, degree=3, coef0=1.0, sigma_f=0.7),
    Kernel("rbf", 0.8),
    Kernel("rbf", 0.1, sigma_f=2.0),
    Kernel("laplacian", 0.4, sigma_f=0.5),
]
METRICS = {"rbf": "sqeuclidean", "laplacian": "cityblock"}
SEMI_DEFINITE = [kernel for kernel in COMPUTED if kernel.coef0 >= 0]


def name_of(kernel):
    return f"{kernel.name}-{kernel.gamma}"


@pytest.fixture(scope="module")
def rows():
    """Rows with exact zeros, a zero row and a zero column; 600 of them span two blocks."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((600, 7)) * (rng.random((600, 7)) < 0.6)
    X[5] = 0
    X[:, 4] = 0
    return X


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_gram_equals_scikit_learn(rows, form):
    X, Y = rows[:40], rows[30:55]
    expected = {
        "linear": X @ Y.T,
        "poly": polynomial_kernel(X, Y, degree=3, gamma=0.6, coef0=0.5),
        "rbf": rbf_kernel(X, Y, gamma=0.6),
        "laplacian": laplacian_kernel(X, Y, gamma=0.6),
    }
    for name, values in expected.items():
        kernel = Kernel(name, 0.6, 3, 0.5, sigma_f=1.5)
        assert_allclose(kernel.gram(form(X), form(Y)), 2.25 * values, atol=1e-13)


@pytest.mark.parametrize("kernel", COMPUTED, ids=name_of)
def test_mixed_dense_and_sparse_arguments_agree(rows, kernel):
    X, Y = rows[:40], rows[30:55]
    expected = kernel.gram(X, Y)
    for a in (X, sp.csr_matrix(X)):
        for b in (Y, sp.csr_matrix(Y)):
            found = kernel.gram(a, b)
            assert isinstance(found, np.ndarray)
            assert found.dtype == np.float64
            assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("kernel", COMPUTED, ids=name_of)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_gram_of_one_set_is_symmetric_with_the_stated_diagonal_and_columns(rows, kernel, form):
    X = form(rows[:50])
    K = kernel.gram(X)
    assert_allclose(K, K.T, atol=1e-14)
    assert_allclose(K, kernel.gram(X, X), atol=1e-12)
    assert_allclose(kernel.diagonal(X), np.diagonal(K), atol=1e-13)
    index = np.array([7, 2, 31])
    assert_allclose(kernel.columns(X, index), K[:, index], atol=1e-12)


@pytest.mark.parametrize("kernel", SEMI_DEFINITE, ids=name_of)
def test_kernels_are_positive_semi_definite(rows, kernel):
    K = kernel.gram(rows[:60])
    assert np.linalg.eigvalsh(K).min() > -1e-12 * np.trace(K)


def test_precomputed_returns_the_values_it_is_given(rows):
    K = Kernel("rbf").gram(rows[:20])
    kernel = Kernel("precomputed")
    assert_array_equal(kernel.gram(K), K)
    assert_array_equal(kernel.diagonal(K), np.ones(20))
    assert_array_equal(kernel.columns(K, np.array([3, 1])), K[:, [3, 1]])
    with pytest.raises(ValueError, match="precomputed"):
        kernel.gram(K, K)
    with pytest.raises(ValueError, match="precomputed"):
        kernel_rows(K, kernel)


def test_codes_follow_the_names_and_unknown_names_are_refused():
    assert [Kernel(name).code for name in KERNELS] == list(range(5))
    with pytest.raises(ValueError, match=r"kernel must be one of .*'rbf'.*got 'gauss'"):
        Kernel("gauss")


def test_squared_norms(rows):
    expected = np.sum(rows**2, axis=1)
    assert_allclose(squared_norms(rows), expected)
    assert_allclose(squared_norms(sp.csr_matrix(rows)), expected)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("scale", [1e4, 1e8, 1e12])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_distances_between_near_rows_far_from_others(name, scale, form):
    """Against distances in extended precision of the very same numbers."""
    rng = np.random.default_rng(0)
    X = 0.5 * rng.standard_normal((24, 3)) + scale * rng.integers(-2, 3, (24, 1)) * [1, 1, 0]
    X[::4, 1] = 0
    Q = X.astype(np.longdouble)
    D = np.abs(Q[:, None] - Q)
    expected = np.exp(-(D**2).sum(axis=2) if name == "rbf" else -D.sum(axis=2))
    assert np.sum(expected > 0.1) > 40  # pairs other than a row with itself
    kernel, X = Kernel(name, 1.0), form(X)
    rows, K = kernel_rows(X, kernel), np.empty((24, 24))
    for i in range(24):
        kernel_row(rows, i, K[i])
    for found in (K, kernel.gram(X), kernel.gram(X[:5], X), kernel.gram(X, X[:5]).T):
        assert_allclose(found, expected[: len(found)], atol=1e-9)


# --- gamma ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_gamma(rows, form):
    X = form(rows)
    assert resolve_gamma("auto", X) == 1 / 7
    assert resolve_gamma(0.25, X) == 0.25
    assert_allclose(resolve_gamma("scale", X), 1 / (7 * rows.var()), rtol=1e-12)
    assert_allclose(resolve_gamma("variance", X), 1 / rows.var(axis=0).sum(), rtol=1e-12)


@pytest.mark.parametrize("scale", 10.0 ** np.arange(-60, 61, 10))
@pytest.mark.parametrize("offset", [0.0, 10.0])
def test_gamma_follows_the_scale_of_the_rows(rows, scale, offset):
    gamma = resolve_gamma("scale", rows + offset)
    found = resolve_gamma("scale", scale * (rows + offset))
    assert_allclose(found * scale**2, gamma, rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("name", ["scale", "variance"])
def test_gamma_with_weights_is_gamma_of_copies(rows, form, name):
    weight = np.arange(len(rows)) % 4
    for X in (rows, rows[:, :1]):
        expected = resolve_gamma(name, np.repeat(X, weight, axis=0))
        assert_allclose(resolve_gamma(name, form(X), weight.astype(float)), expected, rtol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("value", [0.0, 1.0, 1e7 / 3])
@pytest.mark.parametrize("name", ["scale", "variance"])
def test_gamma_of_constant_data_is_one(form, value, name):
    assert resolve_gamma(name, form(np.full((5, 2), value))) == 1.0


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_gamma_of_the_variances_has_no_origin(rows, form):
    weight = np.random.default_rng(0).uniform(0.5, 2, len(rows))
    for s in (None, weight):
        gamma = resolve_gamma("variance", rows, s)
        far = rows + 1e7 * np.arange(7) * rows.std(axis=0)
        assert_allclose(resolve_gamma("variance", form(far), s), gamma, rtol=1e-9)
        even = rows - np.average(rows, axis=0, weights=s)  # one mean of all columns
        assert_allclose(resolve_gamma("scale", form(even + 3), s), gamma, rtol=1e-12)


# --- One row at a time ----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", COMPUTED, ids=name_of)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-13), (np.float32, 4e-6)])
def test_rows_equal_blocks(rows, kernel, form, dtype, rtol):
    K = kernel.gram(rows)
    prepared = kernel_rows(form(rows), kernel, dtype)
    out = np.empty(len(rows), dtype)
    for i in (0, 5, 511, 512, 599):
        kernel_row(prepared, i, out)
        assert_allclose(out, K[i], atol=rtol * np.abs(K).max(), rtol=0)
        if kernel.name in ("rbf", "laplacian"):
            assert out[i] == dtype(kernel.sigma_f**2)


def test_rbf_rows_keep_their_digits_far_from_the_origin(two_gaussians):
    X, _ = two_gaussians(n=30)
    kernel = Kernel("rbf", 0.5)
    prepared = kernel_rows(X + 2.0**20, kernel)
    out = np.empty(30)
    kernel_row(prepared, 0, out)
    exact = kernel.gram((X + 2.0**20) - 2.0**20)[0]
    assert_allclose(out, exact, atol=1e-14)


def test_exp_of_floats_in_place():
    x = np.r_[np.linspace(-86, 0, 4001), np.linspace(0, 87, 501), -1e-8, -1e-30].astype(np.float32)
    found = x.copy()
    exp_inplace(found)
    assert_allclose(found, np.exp(x.astype(float)), rtol=3e-7)


def test_exp_of_far_distances_is_nearly_zero_and_of_zero_is_one():
    x = np.array([0.0, -87.0, -100.0, -1e10, -np.inf], dtype=np.float32)
    exp_inplace(x)
    assert x[0] == 1
    assert np.all((x[1:] >= 0) & (x[1:] < 2e-38))


# --- Pivoted Cholesky -----------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 7, 32])
@pytest.mark.parametrize("kernel", [Kernel("rbf", 0.8), Kernel("laplacian", 0.4, sigma_f=0.5)])
def test_full_rank_reproduces_the_matrix(two_gaussians, kernel, block):
    X, _ = two_gaussians(n=60)
    low = pivoted_cholesky(X, kernel, tol=1e-14, block=block)
    assert_allclose(low.factor @ low.factor.T, kernel.gram(X), atol=2e-12)
    assert low.residual <= 1e-11


@pytest.mark.parametrize("block", [1, 32])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("kernel", SEMI_DEFINITE, ids=name_of)
def test_the_tolerance_is_met_and_reported(rows, kernel, tol, block):
    X = rows[:150]
    K = kernel.gram(X)
    low = pivoted_cholesky(X, kernel, tol=tol, block=block)
    error = np.diagonal(K) - np.sum(low.factor**2, axis=1)
    assert low.residual <= tol
    assert np.abs(error).max() <= tol * K.diagonal().max() * (1 + 1e-6) + 1e-13
    assert_allclose(low.residual, max(error.max(), 0) / K.diagonal().max(), atol=1e-12)
    # The remainder is positive semi-definite: its trace bounds every entry.
    remainder = K - low.factor @ low.factor.T
    assert np.linalg.eigvalsh(remainder).min() > -1e-10 * np.trace(K)


@pytest.mark.parametrize("block", [1, 5, 32])
def test_the_factor_is_lower_triangular_on_the_pivots(rows, block):
    low = pivoted_cholesky(rows[:100], Kernel("rbf", 0.8), max_rank=40, block=block)
    L = low.factor[low.pivots]
    assert low.factor.shape == (100, 40)
    assert_array_equal(L, np.tril(L))
    assert np.all(np.diagonal(L) > 0)
    assert np.unique(low.pivots).size == 40


def test_coefficients_on_the_pivots_reproduce_the_function_everywhere(rows):
    kernel = Kernel("rbf", 0.8)
    X, new = rows[:100], rows[100:130]
    low = pivoted_cholesky(X, kernel, max_rank=30)
    w = np.random.default_rng(0).standard_normal(30)
    alpha = np.linalg.solve(low.factor[low.pivots].T, w)
    assert_allclose(kernel.gram(X, X[low.pivots]) @ alpha, low.factor @ w, atol=1e-10)
    # The factor of rows that the factorization has not seen continues it: G_new = K_new L⁻ᵀ.
    seen = np.r_[X, new]
    both = pivoted_cholesky(seen[np.r_[low.pivots, 100:130]], kernel, tol=1e-14, block=1)
    G_new = np.linalg.solve(low.factor[low.pivots], kernel.gram(X[low.pivots], new)).T
    assert_allclose(kernel.gram(new, X[low.pivots]) @ alpha, G_new @ w, atol=1e-10)
    assert_allclose(
        both.factor @ both.factor.T, kernel.gram(seen[np.r_[low.pivots, 100:130]]), atol=1e-11
    )


def test_duplicates_are_chosen_once(two_gaussians):
    X, _ = two_gaussians(n=25)
    repeated = np.tile(X, (4, 1))
    for block in (1, 32):
        low = pivoted_cholesky(repeated, Kernel("rbf", 0.5), tol=1e-12, block=block)
        assert np.unique(low.pivots % 25).size == low.pivots.size <= 25
        assert_allclose(low.factor[:25], low.factor[75:], atol=1e-7)


@pytest.mark.parametrize("block", [1, 32])
def test_the_rank_of_a_linear_kernel_is_the_number_of_features(two_gaussians, block):
    X, _ = two_gaussians(n=80, d=4)
    low = pivoted_cholesky(X, Kernel("linear"), tol=1e-10, block=block)
    assert low.pivots.size == 4
    assert_allclose(low.factor @ low.factor.T, X @ X.T, atol=1e-12)


def test_a_zero_matrix_has_rank_zero():
    low = pivoted_cholesky(np.zeros((6, 2)), Kernel("linear"))
    assert low.factor.shape == (6, 0)
    assert low.residual == 0


def classical(K, rank):
    """Textbook pivoted Cholesky: pivots and factor."""
    residual, G, pivots = np.diagonal(K).copy(), np.zeros((len(K), rank)), []
    for k in range(rank):
        p = int(np.argmax(residual))
        G[:, k] = (K[:, p] - G[:, :k] @ G[p, :k]) / np.sqrt(residual[p])
        residual -= G[:, k] ** 2
        residual[p] = 0
        pivots.append(p)
    return G, pivots


def test_blocks_of_one_give_the_classical_algorithm(two_gaussians):
    X, _ = two_gaussians(n=70)
    K = Kernel("poly", 0.5, degree=3, coef0=1.0).gram(X)
    G, pivots = classical(K, 12)
    low = pivoted_cholesky(K, Kernel("precomputed"), max_rank=12, tol=0.0, block=1)
    assert_array_equal(low.pivots, pivots)
    assert_allclose(low.factor, G, atol=1e-9)


def test_blocks_lose_little_against_the_classical_algorithm(mixture):
    X, _ = mixture(300)
    kernel = Kernel("rbf", 1 / 32)
    error = [pivoted_cholesky(X, kernel, 100, 0.0, block=block).residual for block in (1, 32)]
    assert error[1] <= 1.5 * error[0]


def test_rbf_values_keep_their_digits_far_from_the_origin(rows):
    X = rows[:50] + 1e6
    exact = np.exp(-0.3 * cdist(X, X, "sqeuclidean"))
    assert_allclose(Kernel("rbf", 0.3).gram(X), exact, atol=1e-12)
    assert_allclose(Kernel("rbf", 0.3).gram(X, X[7:9]), exact[:, 7:9], atol=1e-12)


@pytest.mark.parametrize("outliers", [[0], [25], [49], [0, 49], [0, 25, 49]])
def test_outliers_take_no_digits_from_other_rows(rows, outliers):
    kernel, X = Kernel("rbf", 0.3), rows[:50].copy()
    X[outliers, 0] = 1e8 * (1 + np.arange(len(outliers)))
    exact = np.exp(-0.3 * cdist(X, X, "sqeuclidean"))
    assert_allclose(kernel.gram(X), exact, atol=1e-13)
    assert_allclose(kernel.gram(X, rows[:9]), kernel.gram(rows[:9], X).T, atol=1e-13)
    assert_allclose(kernel.gram(X, X[30:]), exact[:, 30:], atol=1e-13)
    assert_array_equal(kernel.gram(X, rows[50:59])[30:40], kernel.gram(X[30:40], rows[50:59]))
    assert kernel.gram(X, X[:0]).shape == (50, 0)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-13), (np.float32, 1e-6)])
def test_outliers_take_no_digits_from_rows_one_at_a_time(rows, name, dtype, atol):
    kernel, X, found = Kernel(name, 0.3), rows[:50].copy(), np.empty(50, dtype)
    X[[0, 49], 0] = 1e10, 2e10
    prepared = kernel_rows(X, kernel, dtype)
    for i in (1, 20):
        kernel_row(prepared, i, found)
        exact = np.exp(-0.3 * cdist(X[i : i + 1], X, METRICS[name])[0])
        assert_allclose(found, exact, atol=atol, rtol=0)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, bool])
@pytest.mark.parametrize("kernel", COMPUTED, ids=name_of)
def test_integers_do_not_wrap_around(kernel, dtype, form):
    X = np.array([[100, 120, 0], [0, 110, 5], [90, 1, 127]]).astype(dtype)
    numbers = X.astype(float)
    assert_allclose(kernel.gram(form(X)), kernel.gram(numbers), rtol=1e-13)
    assert_allclose(kernel.gram(form(X), numbers[:2]), kernel.gram(numbers)[:, :2], rtol=1e-13)
    assert_allclose(kernel.diagonal(form(X)), kernel.diagonal(numbers), rtol=1e-13)
    row = np.empty(3)
    kernel_row(kernel_rows(form(X), kernel), 1, row)
    assert_allclose(row, kernel.gram(numbers)[1], rtol=1e-13)


def test_parameters_are_those_that_the_values_depend_on(rows):
    """Another value of one of them changes the Gram matrix, and one of the others does not."""
    for name in KERNELS[:-1]:
        kernel = Kernel(name, 0.4, 3, 0.5, 1.5)
        for field, value in (("gamma", 0.3), ("degree", 2), ("coef0", 0.2), ("sigma_f", 2.0)):
            same = np.array_equal(
                replace(kernel, **{field: value}).gram(rows[:9]), kernel.gram(rows[:9])
            )
            assert same == (field not in kernel.parameters)
    assert Kernel("precomputed", 3.0).parameters == {}
    assert Kernel("rbf", 0.4).parameters == {"gamma": 0.4, "sigma_f": 1.0}


@pytest.mark.parametrize("kernel", SEMI_DEFINITE, ids=name_of)
def test_dense_sparse_and_precomputed_give_one_factor(rows, kernel):
    X = rows[:120]
    K = kernel.gram(X)
    dense = pivoted_cholesky(X, kernel, max_rank=20)
    sparse = pivoted_cholesky(sp.csr_matrix(X), kernel, max_rank=20)
    given = pivoted_cholesky(K, Kernel("precomputed"), max_rank=20)
    for other in (sparse, given):
        assert_allclose(other.factor @ other.factor.T, dense.factor @ dense.factor.T, atol=1e-10)
        # Rows at equal distances may be taken in another order.
        assert_array_equal(np.sort(other.pivots), np.sort(dense.pivots))


@pytest.mark.parametrize("block", [1, 32])
def test_rounding_noise_is_no_rank(two_gaussians, block):
    X, _ = two_gaussians(n=80, d=4)
    low = pivoted_cholesky(X, Kernel("linear"), tol=0.0, block=block)
    assert low.pivots.size == 4
    assert_allclose(low.factor @ low.factor.T, X @ X.T, atol=1e-12)


def test_equal_residuals_are_taken_in_the_order_of_the_rows():
    """On every processor: a partial sort leaves the choice among equals to the vector length."""
    X = np.random.default_rng(0).standard_normal((3000, 5))
    low = pivoted_cholesky(X, Kernel("rbf", 50.0), max_rank=64, tol=0.0, block=64)
    assert set(low.pivots) == set(range(64))


def test_greedy_pivots_have_at_least_half_of_the_largest_residual(rows):
    """However many rows are proposed at once."""
    kernel = Kernel("rbf", 0.3)
    low = pivoted_cholesky(rows[:200], kernel, max_rank=60, tol=0.0, block=32)
    residual = kernel.diagonal(rows[:200])
    for column, pivot in zip(low.factor.T, low.pivots, strict=True):
        assert residual[pivot] >= 0.5 * residual.max() - 1e-12
        residual = residual - column**2


def test_within_a_block_the_largest_residual_comes_first(rows):
    """As in the classical algorithm, as long as half of what was largest at first is left."""
    X, kernel = rows[:60], Kernel("poly", 0.5, 2, 1.0)
    one = pivoted_cholesky(X, kernel, tol=0.0, block=1)
    many = pivoted_cholesky(X, kernel, tol=0.0, block=60)
    diagonal = kernel.diagonal(X)
    taken = np.array([one.factor[p, k] ** 2 for k, p in enumerate(one.pivots)])
    shared = int(np.argmax(taken < 0.6 * diagonal.max()))
    assert shared >= 2
    assert_array_equal(many.pivots[:shared], one.pivots[:shared])


def test_pivots_by_residual_are_in_proportion_to_it_and_hold_the_largest():
    """With a diagonal matrix nothing but its entries decides."""
    options = dict(pivoting="residual", tol=1e-9)
    diagonal = np.ones(60)
    diagonal[17] = 1.5
    low = pivoted_cholesky(np.diag(diagonal), Kernel("precomputed"), 4, block=4, **options)
    assert 17 in low.pivots
    diagonal = np.repeat([1.0, 3.0], 100)
    low = pivoted_cholesky(np.diag(diagonal), Kernel("precomputed"), 20, block=20, **options)
    assert low.pivots.size == 20
    assert abs(np.sum(low.pivots >= 100) - 15) <= 1


def test_rows_that_come_first_are_all_pivots(rows):
    first = np.arange(7, 87, 2)
    low = pivoted_cholesky(rows[:150], Kernel("laplacian", 0.8), 60, first=first, block=8)
    assert_array_equal(np.sort(low.pivots[: first.size]), first)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sigma_f", [1.0, 1.5])
def test_sums_in_blocks_equal_those_of_scikit_learn(rows, dtype, sigma_f):
    rng, kernel = np.random.default_rng(0), Kernel("rbf", 0.4, sigma_f=sigma_f)
    X = np.vstack([rows, rows[:7] + 0.1])  # the last block is not full
    K = sigma_f**2 * rbf_kernel(X, gamma=0.4)
    weights, index = rng.standard_normal(len(X)), np.sort(rng.permutation(len(X))[:550])
    prepared = kernel_rows(X, kernel, dtype)
    squares = squared_norms(prepared.XT.T)
    atol = 1e-11 if dtype == np.float64 else 1e-4
    found = np.ones(len(X))
    add_kernel_sums(prepared, squares, index, weights[index], found)
    assert_allclose(found, 1 + weights[index] @ K[index], rtol=0, atol=atol)
    found = np.ones(len(X))
    add_symmetric_sums(prepared, squares, weights, found)
    assert_allclose(found, 1 + K @ weights, rtol=0, atol=atol)
    found = rbf_among(prepared, squares, index)
    assert found.dtype == dtype
    assert_allclose(found, K[np.ix_(index, index)], rtol=0, atol=atol / 20)
