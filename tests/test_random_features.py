import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from s3vm_lib.kernels import Kernel
from s3vm_lib.random_features import (
    FeatureStream,
    add_cosines,
    add_waves,
    cosines_and_sines,
    outputs,
    row_tiles,
    single,
)
from s3vm_lib.reference import random_features as reference
from s3vm_lib.utils import random_numbers
from s3vm_lib.utils.random_numbers import hash_key

KERNELS = {
    "rbf": Kernel("rbf", 0.3, sigma_f=1.2),
    "laplacian": Kernel("laplacian", 0.2),
    "poly": Kernel("poly", 0.3, 2, 1.0),
    "linear": Kernel("linear", sigma_f=1.5),
}


# --- Numbers --------------------------------------------------------------------------------------


def test_the_cosine_in_turns():
    t = np.linspace(-20, 20, 200_001).astype(np.float32)
    exact = np.cos(2 * np.pi * t.astype(float))
    T = t[None].copy()
    add_cosines(T, np.zeros(t.size, np.float32))
    assert np.abs(T[0] - exact).max() <= 5e-7
    both = np.empty((1, 2 * t.size), np.float32)
    cosines_and_sines(t[None], both)
    assert np.abs(both[0, : t.size] - exact).max() <= 5e-7
    assert np.abs(both[0, t.size :] - np.sin(2 * np.pi * t.astype(float))).max() <= 5e-7


def test_the_gaussian_stream():
    z = np.empty(200_001, np.float32)
    random_numbers.normals(hash_key(3, 1), z)
    z = z.astype(float)
    assert stats.kstest(z, "norm").pvalue > 1e-3
    assert abs(z.std() - 1) < 5e-3
    assert abs(z.mean()) < 4 / math.sqrt(z.size)
    assert abs(stats.kurtosis(z)) < 0.045  # four standard errors
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 4 / math.sqrt(z.size)
    shorter = np.empty(1000, np.float32)
    random_numbers.normals(hash_key(3, 1), shorter)
    assert_array_equal(shorter, z[:1000].astype(np.float32))
    other = np.empty(200_001, np.float32)
    random_numbers.normals(hash_key(3, 2), other)
    assert abs(np.corrcoef(z, other)[0, 1]) < 4 / math.sqrt(z.size)


def test_uniforms_and_integers_fill_what_the_scalar_functions_give():
    key, u, k = hash_key(9, 0), np.empty(500, np.float32), np.empty(500, np.int64)
    random_numbers.uniforms(key, 7, u)
    random_numbers.integers(key, 7, 13, k)
    assert_allclose(u, [random_numbers.uniform(key, 7 + i) for i in range(500)], atol=2.0**-24)
    assert u.max() < 1
    assert k.tolist() == [int(random_numbers.integer(key, 7 + i, 13)) for i in range(500)]


# --- Blocks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("paired", [True, False])
def test_mean_products_estimate_the_kernel(name, paired):
    X = 0.7 * np.random.default_rng(0).standard_normal((6, 5))
    m = 200_000
    stream = FeatureStream(KERNELS[name], 5, m, 3, paired=paired)
    Z = stream.features(X, stream.block(0))
    products = Z[:, None, :] * Z[None]
    K = KERNELS[name].gram(X)
    if name == "linear":
        assert_allclose(products.mean(axis=2), K, atol=1e-6)
        return
    # Four and a half standard errors: 21 different pairs, and pairs of features count once.
    error = products.std(axis=2) / math.sqrt(m / (2 if stream._pairs else 1))
    assert np.all(np.abs(products.mean(axis=2) - K) <= 4.5 * error + 1e-6)


def test_paired_and_orthogonal_features_have_less_variance():
    X = np.array([[0.0] * 8, [0.3] * 8])
    kernel = Kernel("rbf", 0.4)
    truth, spread = kernel.gram(X)[0, 1], {}
    options = {
        "random phases": dict(paired=False),
        "paired": {},
        "orthogonal": dict(orthogonal=True),
    }
    for name, option in options.items():
        stream = FeatureStream(kernel, 8, 16, 1, **option)
        blocks = [stream.features(X, stream.block(t)) for t in range(2000)]
        found = np.array([Z[0] @ Z[1] / 16 for Z in blocks])
        assert abs(found.mean() - truth) < 4.5 * found.std() / math.sqrt(2000)
        spread[name] = found.var()
    assert spread["paired"] < 0.9 * spread["random phases"]
    assert spread["orthogonal"] < 0.9 * spread["paired"]


def test_orthogonal_frequencies_keep_their_lengths():
    stream = FeatureStream(Kernel("rbf", 0.5), 6, 30, 4, orthogonal=True)
    plain = FeatureStream(Kernel("rbf", 0.5), 6, 30, 4)
    W = stream.block(2).W[:, :6].astype(float)
    G = W.T @ W
    assert_allclose(G, np.diag(np.diagonal(G)), atol=1e-6)
    lengths = np.linalg.norm(plain.block(2).W, axis=0)
    assert_allclose(np.linalg.norm(stream.block(2).W, axis=0), lengths, rtol=1e-5)


def test_orthogonal_frequencies_are_uniform_over_the_rotations():
    """One entry of a frequency is normal; the signs that a QR decomposition prefers are not."""
    stream = FeatureStream(Kernel("rbf", 0.5), 5, 10, 3, orthogonal=True)
    omega = 2 * np.pi * np.array([stream.block(t).W for t in range(400)], dtype=float)
    for j in range(5):
        assert stats.kstest(omega[:, j, j], "norm").pvalue > 1e-3


@pytest.mark.parametrize("coef0", [0.0, 0.3, 4.0])
def test_polynomial_features_of_any_constant(coef0):
    kernel, m = Kernel("poly", 0.3, 2, coef0, sigma_f=1.3), 100_000
    X = 0.7 * np.random.default_rng(1).standard_normal((4, 3))
    stream = FeatureStream(kernel, 3, m, 2)
    Z = stream.features(X, stream.block(0))
    products = Z[:, None, :] * Z[None]
    error = products.std(axis=2) / math.sqrt(m)
    assert np.all(np.abs(products.mean(axis=2) - kernel.gram(X)) <= 4.5 * error + 1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_turns_are_four_deviations(sign):
    X = sign * np.array([[0.1] * 6, [3.0] * 6])
    stream = FeatureStream(Kernel("rbf", 0.4), 6, 40_000, 1)
    deviation = np.std(X[1] @ stream.block(0).W)
    assert_allclose(stream.turns(X), 4 * deviation, rtol=0.03)


def test_the_reference_estimates_the_same_kernels():
    rng = np.random.default_rng(0)
    X = 0.7 * rng.standard_normal((5, 3))
    m = 100_000
    for Z, kernel in [
        (reference.fourier_features(X, m, 0.3, rng), Kernel("rbf", 0.3)),
        (reference.fourier_features(X, m, 0.3, rng, paired=True), Kernel("rbf", 0.3)),
        (reference.sign_features(X, m, 0.3, 1.0, 2, rng), Kernel("poly", 0.3, 2, 1.0)),
    ]:
        assert_allclose(Z @ Z.T / m, kernel.gram(X), atol=0.06)
    W = reference.orthogonal_frequencies(3, 0.3, rng)
    assert_allclose(W.T @ W, np.diag(np.sum(W**2, axis=0)), atol=1e-12)


def test_blocks_depend_on_seed_and_index_alone():
    stream = FeatureStream(Kernel("rbf", 0.5), 4, 32, 8, paired=False)
    again = pickle.loads(pickle.dumps(stream))
    first, second = stream.block(3), stream.block(4)
    assert_array_equal(again.block(3).W, first.W)
    assert_array_equal(again.block(3).b, first.b)
    assert np.abs(first.W - second.W).max() > 0.01
    other = FeatureStream(Kernel("rbf", 0.5), 4, 32, 9, paired=False)
    assert np.abs(other.block(3).W - first.W).max() > 0.01
    # Phases and frequencies have words of their own.
    wide = FeatureStream(Kernel("rbf", 0.5), 1, 20_000, 1, paired=False).block(0)
    assert abs(np.corrcoef(wide.W[0], wide.b)[0, 1]) < 4 / math.sqrt(20_000)
    assert stats.kstest(wide.b, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", KERNELS)
def test_sparse_rows_have_the_features_of_dense_ones(name):
    X = np.random.default_rng(1).standard_normal((40, 5))
    X[np.abs(X) < 0.5] = 0
    stream = FeatureStream(KERNELS[name], 5, 24, 3)
    block = stream.block(1)
    sparse = stream.features(sp.csr_matrix(X), block)
    assert_allclose(sparse, stream.features(X, block), atol=1e-4 if name == "laplacian" else 5e-6)


# --- Functions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 30, 300])
@pytest.mark.parametrize("paired", [True, False])
def test_outputs_against_double_precision(monkeypatch, d, paired):
    rng = np.random.default_rng(0)
    X, alpha = rng.standard_normal((300, d)), rng.standard_normal((12, 64))
    stream = FeatureStream(Kernel("rbf", 0.5 / d), d, 64, 1, paired=paired)
    rows = single(X).astype(float)
    f = np.zeros(300)
    for t in range(12):
        block = stream.block(t)
        turns = rows @ block.W.astype(float)
        if paired:
            Z = np.hstack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)])
        else:
            Z = np.cos(2 * np.pi * (turns + block.b.astype(float)))
        f += block.scale * Z @ alpha[t]
    scale = np.abs(f).max()
    whole = outputs(stream, X, alpha)
    assert np.abs(whole - f).max() <= 5e-6 * scale
    with monkeypatch.context() as patch:  # groups of blocks that are redrawn together
        patch.setattr("s3vm_lib.random_features._GROUP", 5 * stream.block(0).W.size)
        assert_array_equal(outputs(stream, X, alpha), whole)
    stored = [stream.block(t) for t in range(12)]
    assert_array_equal(outputs(stream, X, alpha, stored), whole)
    assert np.abs(outputs(stream, X, alpha, double=True) - f).max() <= 5e-6 * scale


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("paired", [True, False])
def test_waves_are_sums_of_features(name, paired):
    rng = np.random.default_rng(0)
    X, weight = single(rng.standard_normal((40, 5))), rng.standard_normal(24)
    stream = FeatureStream(KERNELS[name], 5, 24, 3, paired=paired)
    block = stream.block(2)
    phase, amplitude = stream.waves(block, weight)
    assert phase.shape == amplitude.shape == (block.W.shape[1],)
    f = np.ones(40)
    add_waves(X @ block.W, phase, amplitude, f)
    expected = 1 + stream.values(X, block).astype(float) @ weight
    assert_allclose(f, expected, atol=1e-4 if name == "laplacian" else 1e-5)


def test_threads_change_no_bit():
    rng = np.random.default_rng(0)
    X, alpha = rng.standard_normal((3000, 7)), rng.standard_normal((9, 200))
    stream = FeatureStream(Kernel("rbf", 0.1), 7, 200, 1)
    assert len(row_tiles(3000, 200)) > 4
    expected = outputs(stream, X, alpha)
    for n_jobs in (2, 5):
        assert_array_equal(outputs(stream, X, alpha, n_jobs=n_jobs), expected)


def test_no_rows_and_no_blocks():
    stream = FeatureStream(Kernel("rbf", 0.1), 3, 8, 1)
    assert outputs(stream, np.zeros((0, 3)), np.ones((2, 8))).shape == (0,)
    assert_array_equal(outputs(stream, np.ones((4, 3)), np.zeros((0, 8))), np.zeros(4))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(kernel=Kernel("precomputed")), "kernel must be one of"),
        (dict(kernel=Kernel("poly", coef0=-1.0)), "coef0 must be non-negative"),
        (dict(kernel=Kernel("laplacian"), orthogonal=True), "orthogonal features need"),
    ],
)
def test_impossible_features_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        FeatureStream(n_dims=3, block_size=8, seed=0, **arguments)


def test_sizes():
    assert FeatureStream(Kernel("rbf"), 3, 7, 0).block_size == 8
    assert FeatureStream(Kernel("rbf"), 3, 7, 0, paired=False).block_size == 7
    assert FeatureStream(Kernel("linear"), 3, 7, 0).block_size == 3
