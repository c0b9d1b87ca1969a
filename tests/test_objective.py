"""Problems: values, gradients, duals and residuals."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.svm import SVC

from s3vm_lib import SVM
from s3vm_lib.checks import gradient_error
from s3vm_lib.graphs import CompleteGraph, knn_graph, laplacian
from s3vm_lib.kernels import Kernel, resolve_gamma
from s3vm_lib.losses import LABELED_LOSSES, UNLABELED_LOSSES, LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import (
    Evaluation,
    Problem,
    evaluate,
    signed_labels,
    svm_dual,
    svm_duality_gap,
    svm_kkt_residual,
)

SMOOTH_LABELED = [
    LabeledLoss(name) for name in LABELED_LOSSES if LabeledLoss(name).differentiable
] + [LabeledLoss("modified_logistic", 4.0), LabeledLoss("smooth_hinge", 2.0)]
SMOOTH_UNLABELED = [None, UnlabeledLoss("gaussian"), UnlabeledLoss("gaussian", 0.5)]


def name_of(loss):
    return "none" if loss is None else f"{loss.name}-{loss.parameter}"


@pytest.fixture(scope="module")
def state(two_gaussians):
    """A Gram matrix, targets with zeros, weights, coefficients and an offset."""
    X, t = two_gaussians(n=18, seed=5)
    t[6:] = 0
    rng = np.random.default_rng(1)
    return Kernel("rbf", 0.4).gram(X), t, rng.uniform(0.2, 2, 18), rng.standard_normal(18), 0.3


def test_the_smooth_losses_are_the_expected_ones():
    """So that the gradient checks below do not lose a loss unnoticed."""
    names = {loss.name for loss in SMOOTH_LABELED}
    expected = {"squared_hinge", "smooth_hinge", "logistic", "modified_logistic"}
    assert names == expected, "enter a smooth loss here when it comes or goes"
    smooth = {name for name in UNLABELED_LOSSES if UnlabeledLoss(name).differentiable}
    assert smooth == {"gaussian"}


@pytest.mark.parametrize("bias", ["free", "regularized", "none"])
@pytest.mark.parametrize("unlabeled", SMOOTH_UNLABELED, ids=name_of)
@pytest.mark.parametrize("labeled", SMOOTH_LABELED, ids=name_of)
def test_gradient_equals_differences(state, labeled, unlabeled, bias):
    K, t, s, c, b = state
    problem = Problem(labeled, unlabeled, C=1.7, C_star=0.6, bias=bias)

    def function(z):
        offset = 0.0 if bias == "none" else z[-1]
        value, gradient_c, gradient_b = problem.value_and_gradient(K, z[:-1], offset, t, s)
        return value, np.r_[gradient_c, gradient_b]

    # The second derivative of the squared and the smooth hinge jumps: differences of fourth order
    # are of first order in the step where they cross a jump, so that the step must be small.
    once = labeled.name in ("squared_hinge", "smooth_hinge")
    step, bound = (1e-6, 2e-8) if once else (1e-4, 1e-8)
    if labeled.name == "modified_logistic":
        step = 2e-5
    assert gradient_error(function, np.r_[c, b], step) < bound


@pytest.mark.parametrize(
    "unlabeled", [UnlabeledLoss(name) for name in UNLABELED_LOSSES], ids=name_of
)
@pytest.mark.parametrize("labeled", [LabeledLoss(name) for name in LABELED_LOSSES], ids=name_of)
def test_gradient_of_losses_with_kinks_away_from_them(state, labeled, unlabeled):
    K, t, s, c, b = state
    problem = Problem(labeled, unlabeled, C=1.7, C_star=0.6)
    f = K @ c + b
    kinks = np.array([-1.1, -1.0, -0.9, -0.3, 0.0, 0.3, 0.9, 1.0, 1.1, 0.5, -0.5])
    assert np.abs(f[:, None] - kinks).min() > 2e-3

    def function(z):
        value, gradient_c, gradient_b = problem.value_and_gradient(K, z[:-1], z[-1], t, s)
        return value, np.r_[gradient_c, gradient_b]

    assert gradient_error(function, np.r_[c, b], 2e-5) < 2e-8


@pytest.mark.parametrize("power", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("kind", ["knn", "complete", "laplacian"])
def test_the_graph_term(state, kind, power):
    K, t, s, c, b = state
    rows = np.random.default_rng(2).standard_normal((18, 2))
    graph = CompleteGraph(rows, 0.5, t != 0) if kind == "complete" else knn_graph(rows, 4)
    options = dict(labeled_loss=LabeledLoss("logistic"), C=1.7, C_graph=2.5)
    if kind == "laplacian":
        graph = laplacian(graph, normalized=True, degree=2)
        if power != 2:
            with pytest.raises(ValueError, match="power must be 2 with a Laplacian"):
                Problem(graph=graph, power=power, **options)
            return
    problem, plain = Problem(graph=graph, power=power, **options), Problem(**options)
    f = K @ c
    term = 2.5 / graph.n_edges * graph.energy(f, power)  # of f without b
    assert_allclose(problem.graph_term(f + b, b), term)
    expected = plain.value(f + b, t, c @ f, b, s) + term
    assert_allclose(problem.value(f + b, t, c @ f, b, s), expected)
    assert plain.graph_term(f) == replace(problem, C_graph=0.0).graph_term(f) == 0

    def function(z):
        value, gradient_c, gradient_b = problem.value_and_gradient(K, z[:-1], z[-1], t, s)
        return value, np.r_[gradient_c, gradient_b]

    assert_allclose(function(np.r_[c, b])[0], expected)
    assert gradient_error(function, np.r_[c, b], 1e-6 if power < 2 else 1e-4) < 1e-7


@pytest.mark.parametrize("normalized", [False, True])
def test_a_large_offset_costs_the_graph_term_no_digits(normalized):
    X = np.random.default_rng(0).standard_normal((20, 2))
    lap = laplacian(knn_graph(X, 4), normalized)
    problem = Problem(LabeledLoss("hinge"), None, C_graph=2.0, graph=lap)
    f, b = X[:, 0], 0.0 if normalized else 2.0**34
    assert_allclose(problem.graph_term(f, b), 2.0 * lap.energy(f) / lap.n_edges, rtol=1e-12)
    if normalized:
        assert problem.graph_term(f + 1.0, 1.0) != pytest.approx(problem.graph_term(f + 1.0))


def test_value_is_the_sum_of_its_terms(state):
    K, t, s, c, b = state
    problem = Problem(LabeledLoss("hinge"), UnlabeledLoss("symmetric_hinge"), C=2.0, C_star=0.5)
    f = K @ c + b
    expected = 0.5 * c @ K @ c
    for i in range(18):
        if t[i] != 0:
            expected += 2.0 * s[i] * max(0, 1 - t[i] * f[i])
        else:
            expected += 0.5 * s[i] * max(0, 1 - abs(f[i]))
    assert_allclose(problem.value(f, t, c @ K @ c, b, s), expected)
    assert_allclose(problem.value_and_gradient(K, c, b, t, s)[0], expected)
    regularized = replace(problem, bias="regularized")
    assert_allclose(regularized.value(f, t, c @ K @ c, b, s), expected + b**2 / 2)
    supervised = replace(problem, unlabeled_loss=None)
    assert supervised.data_terms(f, t, s)[1] == 0
    assert sum(problem.data_terms(f, t, s)) == pytest.approx(expected - 0.5 * c @ K @ c)


def test_weights_are_copies(state):
    K, t, _, c, b = state
    weight = np.arange(18) % 3
    problem = Problem(LabeledLoss("logistic"), UnlabeledLoss("gaussian"), C_star=0.4)
    f, copies = K @ c + b, np.repeat(np.arange(18), weight)
    assert_allclose(
        problem.data_terms(f, t, weight.astype(float)), problem.data_terms(f[copies], t[copies])
    )


def test_penalties_turn_means_into_sums(state):
    """(1/l)Σℓ + (λ′/u)Σu + λ‖f‖² is J divided by C·l."""
    K, t, _, c, b = state
    lam, lam_star, l, u = 0.01, 0.7, 6, 12
    C, C_star = Problem.penalties(lam, lam_star, l, u)
    problem = Problem(LabeledLoss("logistic"), UnlabeledLoss("gaussian"), C, C_star)
    f = K @ c + b
    means = (
        problem.labeled_loss.value(t[:6], f[:6]).mean()
        + lam_star * problem.unlabeled_loss.value(f[6:]).mean()
        + lam * c @ K @ c
    )
    assert_allclose(problem.value(f, t, c @ K @ c) / (C * l), means)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(C=0.0), "C must be positive, got 0.0"),
        (dict(C=-1.0), "C must be positive"),
        (dict(C=float("nan")), "C must be positive"),
        (dict(C_star=-0.1), "C_star must be non-negative"),
        (dict(C_graph=-0.1), "C_graph must be non-negative"),
        (dict(power=0.5), "power must be at least 1"),
        (dict(bias="yes"), "bias must be one of .*'regularized'.*got 'yes'"),
        (dict(balance="median"), "balance must be one of .*'share'.*got 'median'"),
        (dict(balance="mean"), r"ratio must lie in \[0, 1\] with balance='mean', got None"),
        (dict(balance="counts", ratio=1.5), "ratio must lie in"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Problem(**options)


def test_problems_are_frozen():
    with pytest.raises(FrozenInstanceError):
        Problem().C = 2.0


def test_balance_residuals():
    t = np.array([1.0, -1, 0, 0, 0, 0])
    f = np.array([9.0, -9, 2, 1, -1, 0])
    s = np.array([1.0, 1, 1, 1, 2, 4])
    assert Problem().balance_residual(f, t) == 0
    mean = Problem(balance="mean", ratio=0.75)
    assert mean.balance_residual(f, t) == pytest.approx(0.0)
    assert mean.balance_residual(f, t, s) == pytest.approx(abs(1 / 8 - 0.5))
    share = Problem(balance="share", ratio=0.8, balance_tol=0.1)
    assert share.balance_residual(f, t) == pytest.approx(0.2)
    assert share.balance_residual(f, t, s) == pytest.approx(0.45)
    assert Problem(balance="share", ratio=0.55, balance_tol=0.1).balance_residual(f, t) == 0
    assert Problem(balance="counts", ratio=0.75).balance_residual(f, t) == 1
    assert Problem(balance="counts", ratio=0.5).balance_residual(f, t) == 0
    assert mean.balance_residual(f[:2], t[:2]) == 0
    # A row of weight zero is not there.
    s = np.array([1.0, 1, 1, 0, 2, 0])
    for balance in ("mean", "share", "counts"):
        problem = Problem(balance=balance, ratio=0.9)
        kept = problem.balance_residual(f[s > 0], t[s > 0], s[s > 0])
        assert problem.balance_residual(f, t, s) == kept > 0
        assert problem.balance_residual(f, t, np.where(t == 0, 0.0, 1.0)) == 0


# --- Duality --------------------------------------------------------------------------------------


def test_the_gap_is_never_negative_and_the_dual_never_above_the_primal(two_gaussians):
    X, t = two_gaussians(n=30)
    K, rng = Kernel("rbf", 0.5).gram(X), np.random.default_rng(0)
    upper = rng.uniform(0.5, 2, 30)
    for _ in range(50):
        alpha = rng.random(30) * upper
        alpha *= np.where(t > 0, 1 / alpha[t > 0].sum(), 1 / alpha[t < 0].sum())
        beta, b = t * np.minimum(alpha, upper), rng.standard_normal()
        gap = svm_duality_gap(K, beta, b, t, upper)
        primal = beta @ K @ beta / 2 + upper @ np.maximum(0, 1 - t * (K @ beta + b))
        assert gap >= 0
        assert_allclose(gap, primal - svm_dual(K, beta, t), rtol=1e-10)


def test_gap_and_residual_vanish_at_the_solution_and_only_there():
    K, t = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([1.0, -1.0])
    beta, upper = np.array([0.5, -0.5]), np.full(2, 10.0)
    assert svm_duality_gap(K, beta, 0.0, t, upper) == 0
    assert svm_kkt_residual(K, beta, 0.0, t, upper) == 0
    assert svm_dual(K, beta, t) == 0.5
    assert svm_kkt_residual(K, beta, 0.25, t, upper) == 0.25
    assert svm_duality_gap(K, beta, 0.25, t, upper) == 2.5
    assert svm_kkt_residual(K, 0.5 * beta, 0.0, t, upper) == 0.5
    assert svm_kkt_residual(K, 2 * beta, 0.0, t, upper) == 1.0
    # At the bound a margin below 1 is allowed.
    assert svm_kkt_residual(K, 0.5 * beta, 0.0, t, np.full(2, 0.25)) == 0


def test_what_violates_the_constraints_is_no_solution():
    K, t, upper = np.eye(4), np.array([1.0, 1, -1, -1]), np.full(4, 2.0)
    right = t.copy()  # α = 1, margins 1, b = 0
    assert svm_duality_gap(K, right, 0.0, t, upper) == 0
    assert svm_kkt_residual(K, right, 0.0, t, upper) == 0
    beyond = right * 3.0  # α = 3 > 2
    negative = np.array([-1.0, 1, -1, 1])
    unequal = np.array([1.0, 1, -1, 0])
    for beta in (beyond, negative, unequal):
        assert svm_duality_gap(K, beta, 0.0, t, upper) == np.inf
    assert svm_kkt_residual(K, beyond, 0.0, t, np.full(4, 3.0)) == 2.0
    assert svm_kkt_residual(4 * K, right / 4, 0.0, t, np.full(4, 0.25)) == 0
    assert svm_kkt_residual(4 * K, right / 4, 0.0, t, np.full(4, 0.125)) == 4 * 0.125
    tilted = np.array([1.0, 1, -1, -0.5])
    row = svm_kkt_residual(K, tilted, 0.0, t, np.array([2.0, 2, 2, 0.5]))
    assert row == 0.5  # margins hold, as α_4 is at its bound; Σβ = 0.5 does not
    # A machine without an offset has no constraint on the sum.
    assert svm_kkt_residual(K, tilted, None, t, np.array([2.0, 2, 2, 0.5])) == 0
    assert svm_duality_gap(K, tilted, None, t, np.array([2.0, 2, 2, 0.5])) == 0
    # Rounding is no violation.
    assert svm_duality_gap(K, right + [1e-12, 0, 0, 0], 0.0, t, np.full(4, 1.0)) < 1e-11


@pytest.mark.parametrize("function", [svm_duality_gap, svm_kkt_residual])
def test_classes_are_not_taken_for_labels(function):
    K, beta = np.eye(3), np.zeros(3)
    for labels in ([0, 1, 1], [0, 1, -1]):
        with pytest.raises(ValueError, match=r"t must hold −1 and \+1, got .*2 \* y - 1"):
            function(K, beta, 0.0, labels, np.ones(3))


def test_signed_labels():
    assert signed_labels([1, -1], "t").dtype == float
    assert signed_labels([1, -1, 0], unlabeled=True).tolist() == [1.0, -1.0, 0.0]
    for bad, words in (([0, 1], "got 0, 1; from classes 0 and 1: np.where"), ([2, 1], "got 1, 2")):
        with pytest.raises(ValueError, match=f"labels must hold −1 and .* unlabeled rows, {words}"):
            signed_labels(bad, "labels", unlabeled=True)
    with pytest.raises(ValueError, match="one-dimensional and numeric"):
        signed_labels([[1, -1]])


# --- Fitted estimators ----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_evaluate_agrees_with_the_objective_of_the_estimator(semi_supervised, kernel, form):
    X, y = semi_supervised(n=60, n_labeled=25)
    X, weight = form(X), np.random.default_rng(0).uniform(0.5, 2, 60)
    model = SVM(C=2.0, kernel=kernel, gamma=0.3, sigma_f=1.3, coef0=0.5, tol=1e-7)
    model.fit(X, y, sample_weight=weight)
    kernel = Kernel(kernel, 0.3, 3, 0.5, 1.3)
    found = evaluate(model, X, y, Problem(C=2.0, kernel=kernel), weight)
    assert isinstance(found, Evaluation)
    assert_allclose(found.objective, model.objective_, rtol=1e-8)
    assert_allclose(found.objective, found.penalty + found.labeled)
    assert found.unlabeled == found.balance_residual == 0
    semi = Problem(
        LabeledLoss("hinge"), UnlabeledLoss("symmetric_hinge"), 2.0, 0.5, kernel, balance="mean",
        ratio=0.5,
    )  # fmt: skip
    more = evaluate(model, X, y, semi, weight)
    f, U = model.decision_function(X), y == -1
    assert_allclose(more.unlabeled, 0.5 * weight[U] @ np.maximum(0, 1 - np.abs(f[U])))
    assert_allclose(more.objective, found.objective + more.unlabeled)
    assert_allclose(more.balance_residual, abs(weight[U] @ f[U] / weight[U].sum()))


def test_evaluate_counts_the_offset_where_the_problem_does(semi_supervised):
    X, y = semi_supervised(n=60, n_labeled=25)
    model = SVM(gamma=0.3).fit(X + [0.5, 0.0], y)
    b = model.intercept_[0]
    assert abs(b) > 1e-3
    free, regularized = (
        evaluate(model, X, y, Problem(kernel=Kernel("rbf", 0.3), bias=bias))
        for bias in ("free", "regularized")
    )
    assert_allclose(regularized.penalty - free.penalty, 0.5 * b**2, rtol=1e-9)
    assert_allclose(regularized.objective - free.objective, 0.5 * b**2, rtol=1e-9)


def test_evaluate_a_precomputed_kernel_and_string_labels(semi_supervised):
    X, y = semi_supervised(n=60, n_labeled=25)
    names = np.array(["no", "yes", -1], dtype=object)[y]
    K = Kernel("rbf", 0.3).gram(X)
    model = SVM(kernel="precomputed", tol=1e-7).fit(K, names)
    found = evaluate(model, K, names, Problem(kernel=Kernel("precomputed")))
    assert_allclose(found.objective, model.objective_, rtol=1e-8)


@pytest.mark.parametrize("absent", [np.nan, None, pd.NA])
def test_evaluate_takes_missing_labels_as_fit_does(semi_supervised, absent):
    X, y = semi_supervised(n=60, n_labeled=25)
    given = np.array([0, 1, absent], dtype=object)[y]
    model = SVM(gamma=0.3, tol=1e-7).fit(X, given)
    for labels in (given, given.tolist()):
        assert evaluate(model, X, labels, model.problem_) == evaluate(model, X, y, model.problem_)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("rbf", dict(gamma=0.4)),
        ("rbf", dict(sigma_f=1.1)),
        ("laplacian", dict(gamma=0.4)),
        ("poly", dict(degree=2)),
        ("poly", dict(coef0=0.1)),
        ("linear", dict(sigma_f=1.1)),
    ],
)
def test_evaluate_refuses_another_kernel(semi_supervised, name, changes):
    X, y = semi_supervised()
    kernel = Kernel(name, gamma=0.3)
    model = SVM(kernel=name, gamma=0.3).fit(X, y)
    evaluate(model, X, y, Problem(kernel=kernel))
    evaluate(model, X, y, Problem(kernel=replace(kernel, gamma=0.3 * (1 + 1e-15))))
    parameter, value = next(iter(changes.items()))
    with pytest.raises(ValueError, match=f"kernel must have {parameter}=.* got {value}"):
        evaluate(model, X, y, Problem(kernel=replace(kernel, **changes)))


def test_evaluate_by_scale_by_name_and_whatever_is_set_since(semi_supervised):
    X, y = semi_supervised()
    model = SVM().fit(X, y)
    problem = Problem(kernel=Kernel("rbf", resolve_gamma("scale", X)))
    found = evaluate(model, X, y, problem)
    assert evaluate(model.set_params(kernel="linear", gamma=3.0), X, y, problem) == found
    labeled = y >= 0
    peer = SVC(gamma="scale").fit(X[labeled], y[labeled])  # it has no problem_
    assert evaluate(peer, X[labeled], y[labeled], problem).objective > 0


def test_evaluate_refuses_what_it_cannot_judge(semi_supervised):
    X, y = semi_supervised(n_classes=3)
    with pytest.raises(ValueError, match="two classes, got 3"):
        evaluate(SVM().fit(X, y), X, y, Problem(kernel=Kernel("rbf")))
    X, y = semi_supervised()
    with pytest.raises(ValueError, match=r"problem.kernel must be 'rbf', got 'linear'"):
        evaluate(SVM().fit(X, y), X, y, Problem())
    model = SVM().fit(X, y)
    with pytest.raises(ValueError, match=r"y holds \[2\], .* classes \[0, 1\]"):
        evaluate(model, X, np.where(y == 1, 2, y), model.problem_)
