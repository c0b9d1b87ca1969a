"""The checks of QN-S³VM: mistakes of students are caught and named, and right answers pass."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from s3vm_book.checks import check_s3vm, check_s3vm_objective
from s3vm_lib.datasets import make_moons
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem

C, C_STAR = 3.0, 0.4
PROBLEM = Problem(LabeledLoss("modified_logistic"), UnlabeledLoss("gaussian"), C, C_STAR)


@pytest.fixture(
    scope="module", params=[Kernel("rbf", 1.0), Kernel("linear")], ids=["rbf", "linear"]
)
def data(request):
    """A Gram matrix of full rank, and one of rank 2, in which gradients lie in a plane."""
    X, y = make_moons(50, noise=0.2, random_state=1)
    t = np.where(np.arange(50) < 10, 2.0 * y - 1, 0.0)
    order = np.random.default_rng(0).permutation(50)
    return request.param.gram(X[order] - X.mean(axis=0)), t[order]


def student(K, t, mistake=None, b=0.2, C=C, C_star=C_STAR):
    """Function c -> (value, gradient) as a student writes it, with one mistake."""
    L, U = t != 0, t == 0
    g, s = 20.0, 3.0
    if mistake == "s = 1":
        s = 1.0
    if mistake == "mean":
        C, C_star = C / L.sum(), C_star / U.sum()
    if mistake == "λ for C":
        C, C_star = 1 / C, 1 / C_star

    def function(c):
        Kc = K @ c
        f = Kc if mistake == "no offset" else Kc + b
        v = g * (1 - t[L] * f[L])
        labeled = np.log(1 + np.exp(v)) / g if mistake == "overflow" else np.logaddexp(0, v) / g
        bump = np.exp(-s * f[U] ** 2)
        if mistake == "not squared":
            bump = np.exp(-s * np.abs(f[U]))
        a = np.zeros(len(t))
        a[L] = -C * t[L] * expit(v)
        a[U] = -2 * s * C_star * f[U] * bump
        penalty, slope = 0.5 * c @ Kc, c
        if mistake == "no half":
            penalty, slope = c @ Kc, 2 * c
        if mistake == "cᵀc":
            penalty = 0.5 * c @ c
        if mistake == "no penalty":
            penalty, slope = 0.0, 0 * c
        if mistake == "hinge":
            labeled = np.maximum(0, 1 - t[L] * f[L])
        if mistake == "squared hinge":
            labeled = np.maximum(0, 1 - t[L] * f[L]) ** 2
        if mistake == "no label":
            labeled = np.logaddexp(0, g * (1 - f[L])) / g
        if mistake == "no 1/γ":
            labeled, a[L] = labeled * g, a[L] * g
        value = penalty + C * labeled.sum() + C_star * bump.sum()
        if mistake == "minus":
            value -= 2 * C_star * bump.sum()
        if mistake == "s = 1.5":
            value += C_star * (np.exp(-1.5 * f[U] ** 2) - bump).sum()
        if mistake == "γ = 10":
            value += C * (np.logaddexp(0, 10 * (1 - t[L] * f[L])) / 10 - labeled).sum()
        if mistake == "classes":
            value += C * (np.logaddexp(0, g * (1 - (t[L] > 0) * f[L])) / g - labeled).sum()
        if mistake == "maximized":
            value = -value
        if mistake == "all rows":
            value += C_star * np.exp(-s * f[L] ** 2).sum()
        gradient = K @ (a + slope)
        if mistake == "g sign":
            gradient = -gradient
        if mistake == "g K":
            gradient = a + slope
        if mistake == "g c":
            gradient = K @ a + slope
        if mistake == "g penalty":
            gradient = K @ a
        if mistake == "g unlabeled":
            gradient = K @ (np.where(L, a, 0) + slope)
        if mistake == "g unlabeled sign":
            gradient = K @ (np.where(L, a, -a) + slope)
        if mistake == "g half":
            gradient = K @ (a + slope / 2)
        if mistake == "g inner":
            gradient = K @ (np.where(L, a, a / np.where(U, f, 1.0)) + slope)
        if mistake == "g no offset":
            gradient = K @ (replace(PROBLEM, C=C, C_star=C_star).output_gradient(Kc, t) + slope)
        if mistake == "g KK":
            gradient = K @ gradient
        if mistake == "in place":
            c += 1
        if mistake == "g γ":
            gradient = K @ (np.where(L, g * a, a) + slope)
        if mistake == "g label":
            gradient = K @ (np.where(L, t * a, a) + slope)
        if mistake == "u all":
            bump_L = C_star * np.exp(-s * f[L] ** 2)
            value += bump_L.sum()
            gradient -= K[:, L] @ (2 * s * f[L] * bump_L)
        if mistake == "l all":
            v = g * (1 + f[U])
            value += C * np.logaddexp(0, v).sum() / g
            gradient += K[:, U] @ (C * expit(v))
        if mistake == "minus both":
            value -= 2 * C_star * bump.sum()
            gradient -= 2 * K[:, U] @ a[U]
        if mistake == "γ = 5 both":
            v = 5 * (1 - t[L] * f[L])
            value += C * (np.logaddexp(0, v) / 5 - labeled).sum()
            gradient += K[:, L] @ (-C * t[L] * expit(v) - a[L])
        if mistake == "g shape":
            gradient = gradient[:, None]
        if mistake == "g one entry":
            gradient[7] += 0.5
        return value, gradient

    return function


PLANTED = {
    "s = 1": ("value: unlabeled loss", r"exp\(−1 f²\)"),
    "mean": ("value: mean and sum", "sums; means"),
    "λ for C": ("value: λ for C", "C multiplies the losses"),
    "no offset": ("value: outputs", "without the offset"),
    "not squared": ("value: unlabeled loss", "not squared"),
    "no half": ("value: factor ½ of the penalty", "penalty 2 times"),
    "cᵀc": ("value: penalty", "cᵀc"),
    "no penalty": ("value: penalty missing", "penalty 0 times"),
    "hinge": ("value: labeled loss", "the hinge"),
    "squared hinge": ("value: labeled loss", "squared hinge"),
    "no label": ("value: labeled loss", "without the label"),
    "no 1/γ": ("value: factor of the labeled term", "γ"),
    "minus": ("value: sign of the unlabeled term", "−1 times"),
    "all rows": ("value: unlabeled loss", "over all rows"),
    "l all": ("value: labeled loss", "over all rows, the unlabeled ones as -1"),
    "s = 1.5": ("value: unlabeled loss", "1.5 for the exponent"),
    "γ = 10": ("value: labeled loss", "10 for the sharpness"),
    "classes": ("value: labeled loss", "classes y = 0 and 1"),
    "maximized": ("value: sign", "minimized"),
    "g no offset": ("gradient: outputs", "without the offset"),
    "g KK": ("gradient: factor K", "one K too many"),
    "in place": ("argument changed", "in place"),
    "overflow": ("overflow", "logaddexp"),
    "g sign": ("gradient: sign", "minus"),
    "g K": ("gradient: factor K", "K before the bracket"),
    "g c": ("gradient: factor K", "K c, not c"),
    "g penalty": ("gradient: missing term", "penalty 0 times"),
    "g unlabeled": ("gradient: missing term", "unlabeled term 0 times"),
    "g unlabeled sign": ("gradient: sign", "unlabeled term −1 times"),
    "g half": ("gradient: factor", "penalty ½ times"),
    "g inner": ("gradient: inner derivative", "inner derivative f"),
    "g γ": ("gradient: factor", "labeled term 20 times"),
    "g label": ("gradient: inner derivative", "lacks its label t"),
    "g shape": ("gradient: shape", "One axis too many"),
    "g one entry": ("gradient: gradient", "entry 7"),
}


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_planted_mistake_is_named(data, name):
    K, t = data
    size = 0.1 if K[0, 0] == 1 else 10.0  # of the losses beside the penalty
    weights = dict(C=size * C, C_star=size * C_STAR)
    function = student(K, t, name, **weights)
    report = check_s3vm_objective(function, K, t, replace(PROBLEM, **weights), b=0.2)
    print(report)
    mistake, words = PLANTED[name]
    assert not report
    assert report.mistake == mistake, report
    assert re.search(words, report.message), report


def test_the_right_objective_passes(data):
    K, t = data
    function = student(K, t)
    report = check_s3vm_objective(function, K, t, PROBLEM, b=0.2)
    assert report, report
    assert check_s3vm_objective(
        lambda c: [part.astype(np.float32) for part in function(c)], K, t, PROBLEM, b=0.2
    )
    # with means and λ, as the paper has it
    from s3vm_lib.reference.quasi_newton import objective

    C, C_star = Problem.penalties(0.01, 0.7, 10, 40)
    report = check_s3vm_objective(
        lambda c: objective(c, K, t, 0.01, 0.7, b=0.2),
        K,
        t,
        Problem(PROBLEM.labeled_loss, PROBLEM.unlabeled_loss, C, C_star),
        b=0.2,
        scale=0.02,
    )
    assert report, report

    # a free offset
    def free(x):
        value, g, gb = PROBLEM.value_and_gradient(K, x[:-1], x[-1], t)
        return value, np.append(g, gb)

    assert check_s3vm_objective(free, K, t, PROBLEM, b=None)

    def forgotten(x):
        value, g = free(x)
        return value, np.append(g[:-1], 0.0)

    report = check_s3vm_objective(forgotten, K, t, PROBLEM, b=None)
    print(report)
    assert report.mistake == "gradient: missing term, the offset"


def solve(K, t, b=0.2, stages=(0.0, 0.1, 1.0), gtol=1e-8, maxiter=500, **options):
    c = np.zeros(len(t))
    for stage in stages:
        opt = dict(options)
        opt["C_star"] = stage * opt.get("C_star", C_STAR)
        stop = {"gtol": gtol, "ftol": 1e-12, "maxiter": maxiter}
        function = student(K, t, b=b, **opt)
        c = minimize(function, c, jac=True, method="L-BFGS-B", options=stop).x
    return c


SOLUTIONS = {
    "right": (lambda K, t: (solve(K, t), 0.2), None, ""),
    "loose": (lambda K, t: (solve(K, t, gtol=1e-3), 0.2), None, ""),
    "last stage missing": (
        lambda K, t: (solve(K, t, stages=(0.0, 0.1)), 0.2),
        "annealing unfinished",
        "last stage",
    ),
    "supervised": (
        lambda K, t: (solve(K, t, stages=(0.0,)), 0.2),
        "unlabeled term missing",
        "supervised",
    ),
    "sign of b": (lambda K, t: (solve(K, t), -0.2), "sign of the offset", "not − b"),
    "no half": (lambda K, t: (solve(K, t, mistake="no half"), 0.2), "factor ½", "½ times C"),
    "mean": (lambda K, t: (solve(K, t, mistake="mean"), 0.2), "mean and sum", "means"),
    "s": (lambda K, t: (solve(K, t, mistake="s = 1"), 0.2), "exponent", "exp"),
    "exchanged": (lambda K, t: (solve(K, t, C=C_STAR, C_star=C), 0.2), r"C and C\* exchanged$", ""),
    "C*/u": (
        lambda K, t: (solve(K, t, C_star=C_STAR / 40), 0.2),
        "mean and sum|unlabeled term missing$",
        "sums|C\\*/u",
    ),
    "C for C*": (lambda K, t: (solve(K, t, C_star=C), 0.2), r"C for C\*", "weight C"),
    "λ": (
        lambda K, t: (solve(K, t, C=1 / (2 * C * 10), C_star=C_STAR / (2 * C * 40)), 0.2),
        "λ for C",
        "1/\\(2λl\\)",
    ),
    "unlabeled loss over all rows": (
        lambda K, t: (solve(K, t, mistake="u all"), 0.2),
        "rows of the unlabeled loss",
        "over all rows",
    ),
    "unlabeled rows as −1": (
        lambda K, t: (solve(K, t, mistake="l all"), 0.2),
        "rows of the labeled loss",
        "labeled -1, and as unlabeled",
    ),
    "unlabeled loss subtracted": (
        lambda K, t: (solve(K, t, mistake="minus both"), 0.2),
        "sign of the unlabeled term",
        "subtracted",
    ),
    "another sharpness": (
        lambda K, t: (solve(K, t, mistake="γ = 5 both"), 0.2),
        "another labeled loss",
        "γ = 5",
    ),
    "β for c": (
        lambda K, t: (np.where(t < 0, -1, 1) * solve(K, t), 0.2),
        "labels twice",
        "labels are in c",
    ),
    "early": (lambda K, t: (solve(K, t, maxiter=2), 0.2), "not stationary|stopped early", "gained"),
    "sign": (lambda K, t: (-solve(K, t), 0.2), "sign|not stationary", ""),
}


@pytest.mark.parametrize("name", SOLUTIONS)
def test_solutions(data, name):
    K, t = data
    make, mistake, words = SOLUTIONS[name]
    report = check_s3vm(K, *make(K, t), t, replace(PROBLEM, bias="none"))
    print(report, report.numbers)
    assert bool(report) == (mistake is None), report
    if mistake:
        assert re.match(mistake, report.mistake), report
        assert re.search(words, report.message), report


def test_a_balanced_solution(data):
    """With the balance, at a centered kernel and at the kernel itself."""
    K, t = data
    U, ratio = t == 0, 0.6
    m = U / U.sum()
    centered = K - np.outer(K @ m, np.ones(50)) - np.outer(np.ones(50), K @ m) + m @ K @ m
    b = 2 * ratio - 1
    c = solve(centered, t, b=b)
    balanced = replace(PROBLEM, balance="mean", ratio=ratio)
    report = check_s3vm(centered, c, b, t, balanced)
    assert report, report
    moved = c - c.sum() * m  # f is the same function in the kernel itself, but for the offset
    offset = b - m @ K @ moved
    assert np.allclose(K @ moved + offset, centered @ c + b)
    report = check_s3vm(K, moved, offset, t, balanced)
    assert report, report
    report = check_s3vm(K, moved, b, t, balanced)
    assert report.mistake.startswith("balance")
    report = check_s3vm(centered, solve(K, t, b=b), b, t, balanced)
    assert not report and "another K" in report.message, report
    report = check_s3vm(centered, 0 * c, b, t, balanced)
    assert report.mistake == "no step taken" and "gradient" in report.message
    report = check_s3vm(K, moved, offset, t, replace(balanced, ratio=0.7))
    assert report.mistake.startswith("balance")


def test_bad_input_is_named(data):
    K, t = data
    function = student(K, t)
    with pytest.raises(
        ValueError, match="problem must have two differentiable losses, got 'hinge'"
    ):
        check_s3vm_objective(function, K, t, Problem(unlabeled_loss=UnlabeledLoss("gaussian")))
    with pytest.raises(ValueError, match="problem must have two differentiable losses, got None"):
        check_s3vm(K, 0 * t, 0.0, t, Problem(LabeledLoss("logistic")))
    with pytest.raises(ValueError, match="labeled and unlabeled rows"):
        check_s3vm_objective(function, K, np.ones(50), PROBLEM)
    with pytest.raises(ValueError, match=r"problem.balance must be 'none' or 'mean', got 'counts'"):
        check_s3vm(K, 0 * t, 0.0, t, replace(PROBLEM, balance="counts", ratio=0.5))
    with pytest.raises(ValueError, match=r"c must have the shape \(50,\)"):
        check_s3vm(K, np.zeros(3), 0.0, t, PROBLEM)
    report = check_s3vm_objective(lambda c: 1.0, K, t, PROBLEM)
    assert report.mistake == "not a pair"
    report = check_s3vm_objective(lambda c: (K @ c, K @ c), K, t, PROBLEM)
    assert report.mistake == "value not a number"


def test_no_weight_of_the_unlabeled_rows_is_no_suspect(data):
    K, t = data
    report = check_s3vm(K, np.ones(len(t)), 0.2, t, replace(PROBLEM, C_star=0.0))
    assert not report
