"""`check_gradient`, `check_kernel` and `check_balance`: mistakes are named, right answers pass."""

import re

import numpy as np
import pytest

from s3vm_book.checks import check_balance, check_gradient, check_kernel
from s3vm_lib.kernels import Kernel

A = np.random.default_rng(0).standard_normal((12, 4))
PARTS = {
    "penalty": lambda w: 0.5 * w @ w,
    "loss": lambda w: np.logaddexp(0, -A @ w).sum(),
}
X0 = np.random.default_rng(1).standard_normal(4)


def loss_slope(w):
    return -A.T @ (1 / (1 + np.exp(A @ w)))


def value(w):
    return PARTS["penalty"](w) + PARTS["loss"](w)


GRADIENTS = {
    "sign": (lambda w: -w - loss_slope(w), "sign", "minus the gradient"),
    "twice": (lambda w: 2 * w + 2 * loss_slope(w), "factor", "2 times the gradient"),
    "mean": (lambda w: (w + loss_slope(w)) / 4, "factor", "¼"),
    "penalty missing": (loss_slope, "missing term", "penalty 0 times"),
    "penalty half": (lambda w: 0.5 * w + loss_slope(w), "factor", "penalty ½ times"),
    "loss missing": (lambda w: w, "missing term", "loss 0 times"),
    "loss sign": (lambda w: w - loss_slope(w), "sign", "loss −1 times"),
    "zero": (lambda w: 0 * w, "missing term", "is 0"),
    "column": (lambda w: (w + loss_slope(w))[:, None], "shape", "One axis"),
    "scalar": (lambda w: np.sum(w + loss_slope(w)), "shape", "sum over all"),
    "NaN": (lambda w: np.append(np.nan, (w + loss_slope(w))[1:]), "not finite", "entry 0"),
    "one entry": (lambda w: w + loss_slope(w) + [0, 0, 1, 0], "gradient", "entry 2"),
}


@pytest.mark.parametrize("scale", [1.0, 0.1, 1e-6, 1e4])
@pytest.mark.parametrize("name", GRADIENTS)
def test_a_wrong_gradient_is_named(name, scale):
    gradient, mistake, words = GRADIENTS[name]
    parts = {part: lambda w, f=f: scale * f(w) for part, f in PARTS.items()}
    report = check_gradient(
        lambda w: scale * value(w), lambda w: scale * gradient(w), X0, parts=parts
    )
    assert report.mistake == mistake, report
    assert re.search(words, report.message), report


def test_right_gradients_of_any_size_pass():
    assert check_gradient(value, lambda w: w + loss_slope(w), X0, parts=PARTS)
    for scale in (1e-6, 1.0, 1e6):
        right = scale * (X0 + loss_slope(X0))
        report = check_gradient(lambda w, scale=scale: scale * value(w), right, X0)
        assert report, (scale, report)
    report = check_gradient(lambda W: np.sum(W**3), lambda W: 3 * W**2, X0.reshape(2, 2))
    assert report and report.numbers["error"] < 1e-6
    transposed = check_gradient(lambda W: np.sum(W**3), lambda W: 3 * W.T**2, X0.reshape(2, 2))
    assert transposed.mistake == "transposed"
    steep = check_gradient(
        lambda w: np.logaddexp(0, 200 * w).sum(), lambda w: 200 / (1 + np.exp(-200 * w)), 0.01 * X0
    )
    assert steep, steep


def test_a_wrong_block_and_a_missing_regularizer_are_located():
    blocks = {"weights": slice(0, 3), "offset": 3}
    right = X0 + loss_slope(X0)
    report = check_gradient(value, np.append(right[:3], 0.0), X0, blocks=blocks)
    assert report.mistake == "missing term, offset"
    assert "only the entries of offset are wrong" in report.message
    report = check_gradient(value, np.append(-right[:3], right[3]), X0, blocks=blocks)
    assert report.mistake == "sign, weights"
    report = check_gradient(value, loss_slope, X0)
    assert report.mistake == "regularizer" and "1 x" in report.message
    report = check_gradient(value, right - np.append(0.3 * X0[:3], 0), X0, blocks=blocks)
    assert report.mistake == "weights" or report.mistake == "regularizer"


def test_functions_that_cannot_be_judged():
    with pytest.raises(ValueError, match=r"smooth near x.*entry 1"):
        check_gradient(lambda w: np.abs(w).sum(), np.sign, np.array([1.0, 2e-5, 2.0]))
    with pytest.raises(ValueError, match="the same value twice"):
        rng = np.random.default_rng(0)
        check_gradient(lambda w: rng.random(), lambda w: w, X0)
    with pytest.raises(ValueError, match="finite number"):
        check_gradient(lambda w: w, lambda w: w, X0)
    with pytest.raises(ValueError, match="parts must add up to f"):
        check_gradient(value, loss_slope, X0, parts={"loss": PARTS["loss"]})


# --- Kernels --------------------------------------------------------------------------------------

X = np.random.default_rng(2).standard_normal((20, 3)) + 0.3
RBF, LAPLACIAN = Kernel("rbf", 0.7), Kernel("laplacian", 0.7)
D = np.linalg.norm(X[:, None] - X[None], axis=2)
CITY = np.abs(X[:, None] - X).sum(2)
SIGNS = np.where(np.arange(20) % 3 == 0, 1.0, -1.0)
KERNELS = {
    "2γ": (np.exp(-1.4 * D**2), RBF, "kernel width", "2γ"),
    "γ for σ": (np.exp(-(D**2) / (2 * 0.7**2)), RBF, "kernel width", "taken for σ"),
    "no γ": (np.exp(-(D**2)), RBF, "kernel width", "without γ"),
    "not squared": (np.exp(-0.7 * D), RBF, "distance not squared", "x − z‖\\), not .*‖²"),
    "2γ, laplacian": (np.exp(-1.4 * CITY), LAPLACIAN, "kernel width", "2γ .*‖₁"),
    "root, laplacian": (np.exp(-0.7 * CITY**0.5), LAPLACIAN, "root of the distance", "√.*‖₁"),
    "squared, laplacian": (np.exp(-0.7 * CITY**2), LAPLACIAN, "distance squared", "‖₁²"),
    "distances, laplacian": (CITY, LAPLACIAN, "distances", "‖x − z‖₁, not yet"),
    "no minus": (np.exp(0.7 * D**2), RBF, "sign of the exponent", "minus"),
    "city": (np.exp(-0.7 * CITY), RBF, "other norm", "Euclidean"),
    "distances": (D**2, RBF, "distances", "not yet"),
    "labels": (np.outer(SIGNS, SIGNS) * np.exp(-0.7 * D**2), RBF, "labels in K", "t_i t_j"),
    "+ 1": (np.exp(-0.7 * D**2) + 1, RBF, "offset in the kernel", "1 was added"),
    "no diagonal": (np.exp(-0.7 * D**2) - np.eye(20), RBF, "diagonal", "i = j"),
    "half": (np.triu(np.exp(-0.7 * D**2)), RBF, "half filled", "above"),
    "columns": (X.T @ X, Kernel("linear"), "shape", "pair of columns"),
    "poly": ((0.5 * X @ X.T) ** 3, Kernel("poly", 0.5, 3, 1.0), "polynomial", "coef0 is missing"),
    "σ_f": (2 * np.exp(-0.7 * D**2), Kernel("rbf", 0.7, sigma_f=2.0), "output variance", "σ_f²"),
    "one value": (np.exp(-0.7 * D**2) + 0.1 * (D == D[3, 5]), RBF, "kernel", "2 of 400"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_wrong_kernel_is_named(name):
    K, kernel, mistake, words = KERNELS[name]
    report = check_kernel(K, X, kernel)
    assert report.mistake == mistake, report
    assert re.search(words, report.message), report


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "laplacian"])
def test_right_kernels_pass(name):
    kernel = Kernel(name, 0.5, 2, 1.0, 1.5)
    for scale in (0.1, 1.0, 10.0):
        rows = scale * X
        assert check_kernel(kernel.gram(rows), rows, kernel)
        assert check_kernel(kernel.gram(rows).astype(np.float32), rows, kernel), scale
    assert check_kernel(kernel.gram(X, X[:7]), X, kernel, X[:7])
    report = check_kernel(kernel.gram(X, X[:7]).T, X, kernel, X[:7])
    assert report.mistake == "shape" and "transposed" in report.message
    with pytest.raises(ValueError, match="got 'precomputed'"):
        check_kernel(kernel.gram(X), X, Kernel("precomputed"))


# --- Balance --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mean", "mistake"),
    [
        (-0.4, None),
        (0.3, "balance: r for 2r − 1"),
        (0.4, "balance: sign"),
        (-0.8, "balance: offset twice"),
        (-0.11, "balance"),
    ],
)
def test_the_balance_of_the_outputs(mean, mistake):
    t = np.r_[1, -1, np.zeros(8)]
    f = np.r_[0.9, -1.3, mean + 0.5 * np.array([1, -1, 2, -2, 3, -3, 4, -4])]
    report = check_balance(f, t, 0.3)
    assert report.mistake == mistake, report
    assert bool(report) == (mistake is None)


def test_the_balance_over_other_rows():
    t = np.r_[1, -1, np.zeros(4)]
    f = np.array([2.0, 2.0, 1.0, 1.0, -1.0, -1.0])
    report = check_balance(f - f.mean() + 0.2, t, 0.6)
    assert report.mistake == "balance: over all rows"
    with pytest.raises(ValueError, match=r"ratio must lie in \[0, 1\], got 2"):
        check_balance(f, t, 2)
    with pytest.raises(ValueError, match="unlabeled rows"):
        check_balance(f[:2], t[:2], 0.5)
