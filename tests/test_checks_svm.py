"""`check_svm`: mistakes of students are caught and named, and right answers of any kind pass."""

import re

import numpy as np
import pytest
from sklearn.svm import SVC

from s3vm_book.checks import Report, check_svm
from s3vm_book.checks._report import Suspect, accuse, is_clear
from s3vm_lib.kernels import Kernel


def student(K, t, C, mistake=None, tol=1e-3, rounds=3000):
    """SMO by most violating pairs as a student writes it, with one mistake; alpha, b and F."""
    n = len(t)
    alpha, F = np.zeros(n), np.zeros(n)
    Q = K * np.outer(t, t) if mistake == "labels in K" else K
    for _ in range(rounds):
        E = F - t
        below, above = alpha < C - 1e-12, alpha > 1e-12  # what is closer to a bound is at it
        up, down = np.where(t > 0, below, above), np.where(t > 0, above, below)
        if mistake == "no clipping":
            up = down = np.ones(n, bool)
        if mistake == "no upper bound":
            up, down = (t > 0) | (alpha > 0), (t < 0) | (alpha > 0)
        i = np.argmin(np.where(up, E, np.inf))
        j = np.argmax(np.where(down, E, -np.inf))
        if E[j] - E[i] < (0.5 if mistake == "loose" else tol):
            break
        eta = Q[i, i] + Q[j, j] - 2 * Q[i, j]
        step = t[j] * (E[i] - E[j]) / eta
        if mistake == "no half":
            step /= 2
        if mistake == "twice the step":
            step *= 2
        new_j = alpha[j] + step
        if mistake == "no clipping":
            low, high = -np.inf, np.inf
        elif t[i] != t[j]:
            low, high = max(0, alpha[j] - alpha[i]), min(C, C + alpha[j] - alpha[i])
            if mistake == "no upper bound":
                high = np.inf
        else:
            low, high = max(0, alpha[i] + alpha[j] - C), min(C, alpha[i] + alpha[j])
            if mistake == "no upper bound":
                low, high = 0, alpha[i] + alpha[j]
        if mistake in ("each by itself", "swapped ends"):
            low, high = 0, C
        new_j = np.clip(new_j, low, high)
        new_i = alpha[i] + t[i] * t[j] * (alpha[j] - new_j)
        if mistake == "one cut short":  # the step is that of j, and ends where i has its wall
            new_i, new_j = np.clip(alpha[i] - t[i] * t[j] * step, 0, C), alpha[j] + step
        if mistake == "each by itself":
            new_i = np.clip(alpha[i] - t[i] * t[j] * step, 0, C)
        d_i, d_j = new_i - alpha[i], new_j - alpha[j]
        alpha[i], alpha[j] = new_i, new_j
        if mistake == "one row of F":
            F += t[j] * d_j * Q[j]
        elif mistake == "minus F":
            F -= t[i] * d_i * Q[i] + t[j] * d_j * Q[j]
        elif mistake == "labels out of F":
            F += d_i * Q[i] + d_j * Q[j]
        else:
            factor = 2 if mistake == "no half" else 1
            F += factor * (t[i] * d_i * Q[i] + t[j] * d_j * Q[j])
    free = (alpha > 1e-9) & (alpha < C - 1e-9)
    b = np.mean((t - F)[free]) if free.any() else 0.5 * ((t - F)[up].max() + (t - F)[down].min())
    return alpha, b, F


@pytest.fixture(scope="module")
def problem(two_gaussians):
    X, t = two_gaussians(n=60, d=2, seed=1, distance=2.0)
    return X, Kernel("rbf", 0.5).gram(X), t, 2.0


@pytest.fixture(scope="module")
def right(problem):
    _, K, t, C = problem
    alpha, b, F = student(K, t, C)
    free = (alpha > 0) & (alpha < C)
    assert free.sum() >= 5 and (alpha == C).sum() >= 5  # so that the mistakes have something to hit
    return alpha, b, F


def of_loop(name):
    """A mistake within `student`."""
    return lambda K, t, C, X, right: student(K, t, C, name)[:2]


def rest_of_rounding(K, t, C, X, right):
    """Not solved, and a variable that misses its bound by rounding, where the loop hangs on it."""
    alpha, b, F = right[0].copy(), right[1], right[2]
    i, j = np.flatnonzero((alpha > 0.1 * C) & (alpha < 0.9 * C))[:2]
    alpha[i] += 0.05 * C * t[i]
    alpha[j] -= 0.05 * C * t[j]
    # Clearly on the right side, so that a loop that takes it for free looks no further.
    alpha[np.argmax(np.where((alpha == 0) & (t > 0), F, -np.inf))] = 1e-16
    return alpha, b


def exchanged(alpha, t):
    """The largest and the smallest α of the positive rows in each other's place."""
    rows = np.flatnonzero(t > 0)
    i, j = rows[np.argmin(alpha[rows])], rows[np.argmax(alpha[rows])]
    alpha = alpha.copy()
    alpha[[i, j]] = alpha[[j, i]]
    return alpha


def loose_with_one_row(K, t, C, X, right):
    """α solved to 1e-2 in the margins, and t − F of the free row that is most off."""
    alpha = right[0].copy()
    i, j = np.flatnonzero((t > 0) & (alpha > 0.1 * C) & (alpha < 0.9 * C))[:2]
    while True:
        alpha[[i, j]] += 0.001 * C, -0.001 * C
        E = (t - K @ (t * alpha))[(alpha > 1e-9) & (alpha < C - 1e-9)]
        if np.ptp(E) > 8e-3:
            return alpha, E[np.argmax(np.abs(E - E.mean()))]


def without_offset(K, t, C, X, right):
    beta = np.zeros(len(t))
    for _ in range(500):
        for i in range(len(t)):
            beta[i] = np.clip(
                beta[i] + (t[i] - K[i] @ beta) / K[i, i], min(0, C * t[i]), max(0, C * t[i])
            )
    return t * beta, 0.0


def least_squares(K, t, C, X, right):
    system = np.block([[0, np.ones(60)], [np.ones((60, 1)), K + np.eye(60) / C]])
    solution = np.linalg.solve(system, np.append(0, t))
    return t * solution[1:], solution[0]


def penalized(K, t, C, X, right):
    alpha, _ = without_offset(K + 1, t, C, X, right)
    return alpha, t @ alpha


def other_gamma(gamma):
    return lambda K, t, C, X, right: student(Kernel("rbf", gamma).gram(X), t, C)[:2]


def other_C(factor):
    return lambda K, t, C, X, right: student(K, t, factor * C)[:2]


def changed(function):
    """A mistake made after the loop, from α, b, t and F."""
    return lambda K, t, C, X, right: function(*right, t, C)


PLANTED = {
    "no clipping": (of_loop("no clipping"), "box", "[Cc]lip"),
    "no upper bound": (of_loop("no upper bound"), "box.*upper bound", "Clip to"),
    "equality constraint forgotten": (without_offset, "equality constraint", "forgotten"),
    "each α clipped by itself": (of_loop("each by itself"), "equality constraint", "Σ t α"),
    "interval [0, C] for the pair": (of_loop("swapped ends"), "box", "Clip to the box"),
    "one of two is cut short": (of_loop("one cut short"), "box violated", "that of the other too"),
    "sign of b": (changed(lambda a, b, F, t, C: (a, -b)), "sign of the threshold", "F − b"),
    "b from bound rows": (
        changed(lambda a, b, F, t, C: (a, np.mean((t - F)[a == C]))),
        "threshold from the wrong rows",
        "rows at the bound C",
    ),
    "b from all support vectors": (
        changed(lambda a, b, F, t, C: (a, np.mean((t - F)[a > 0]))),
        "threshold from the wrong rows",
        "all support vectors",
    ),
    "b from one row that is not free": (
        changed(lambda a, b, F, t, C: (a, (t - F)[np.argmin(a)])),
        "threshold from the wrong rows",
        "whose α is 0",
    ),
    "b by the formula without slack": (
        changed(lambda a, b, F, t, C: (a, -(F[t > 0].min() + F[t < 0].max()) / 2)),
        "threshold from the wrong rows",
        "without slack",
    ),
    "b forgotten": (changed(lambda a, b, F, t, C: (a, 0.0)), "threshold forgotten", "never"),
    "b a sum": (
        changed(lambda a, b, F, t, C: (a, np.sum((t - F)[(a > 0) & (a < C)]))),
        "threshold summed",
        "divide",
    ),
    "factor ½": (of_loop("no half"), "factor ½", "½βᵀKβ"),
    "C/2": (other_C(0.5), "C/2", "C = 1"),
    "1/(2C), λ taken for C": (other_C(0.5 / 4), "λ for C", "λ"),
    "1/(2Cn), λ taken for C": (
        other_C(0.5 / (60 * 4)),
        "λ for C",
        "it is 1/\\(2Cn\\), .*mean loss.$",
    ),
    "1/(Cn), λ taken for C": (other_C(1 / (60 * 4)), "λ for C", "it is 1/\\(Cn\\)"),
    "another C": (other_C(1.7), "another C", r"look where the bound comes from\.$"),
    "mean for sum": (other_C(1 / 60), "mean for sum", "not their mean"),
    "β for α": (changed(lambda a, b, F, t, C: (t * a, b)), "labels twice", "signed"),
    "labels in K": (of_loop("labels in K"), "labels twice", "t_i t_j"),
    "stopped early": (of_loop("loose"), "stopped early|not optimal", "gain"),
    "a count of rounds": (
        lambda K, t, C, X, right: student(K, t, C, rounds=25)[:2],
        "stopped early",
        "that of step 25 of the pair that violates most",
    ),
    "twice the step": (of_loop("twice the step"), "twice the step", "mirror"),
    "linear kernel": (
        lambda K, t, C, X, right: student(X @ X.T, t, C)[:2],
        "kernel: linear",
        "in place of exp",
    ),
    "one of two updates": (of_loop("one row of F"), "not optimal|stopped early", "margins do not"),
    "width": (other_gamma(1.0), "kernel width", "2 γ"),
    "2γ for 1/(2γ)": (other_gamma(4.0), "kernel width", "γ"),
    "integers": (changed(lambda a, b, F, t, C: (a.astype(int), b)), "integer", "np.zeros"),
    "no step": (changed(lambda a, b, F, t, C: (0 * a, 0.0)), "no step", "0 everywhere"),
    "rows by class": (
        changed(lambda a, b, F, t, C: (a[np.argsort(t, kind="stable")], b)),
        "order of the rows",
        "negative ones first",
    ),
    "α/C": (changed(lambda a, b, F, t, C: (a / C, b)), "C/2|alpha scaled|λ for C", "C"),
    "a rest of rounding": (rest_of_rounding, "stopped early, or stuck", "again and again"),
    "sign of the update of F": (of_loop("minus F"), "sign of the gradient update", "minus its"),
    "small α set to 0": (
        changed(lambda a, b, F, t, C: (np.where(a < 0.1 * C, 0, a), b)),
        "support vectors dropped",
        "right in all rows but",
    ),
    "rows shuffled": (
        changed(lambda a, b, F, t, C: (np.random.default_rng(7).permutation(a), b)),
        "order of the rows",
        "in other rows",
    ),
    "two rows exchanged": (
        changed(lambda a, b, F, t, C: (exchanged(a, t), b)),
        "order of the rows",
        "in other rows",
    ),
    "b of one row, α not exact": (loose_with_one_row, "stopped early", "not exact enough"),
    "b divided by n": (
        changed(lambda a, b, F, t, C: (a, np.sum((t - F)[(a > 0) & (a < C)]) / len(t))),
        "threshold averaged over all",
        "divided by n",
    ),
    "all at C": (changed(lambda a, b, F, t, C: (0 * a + C, 0.0)), "all at the bound", "sign"),
    "least squares": (least_squares, "least squares SVM", "linear equations"),
    "offset in the kernel": (penalized, "offset penalized", "½b²"),
    "NaN": (changed(lambda a, b, F, t, C: (a, np.nan)), "not finite", "NaN"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_named(problem, right, name):
    X, K, t, C = problem
    make, mistake, words = PLANTED[name]
    report = check_svm(K, *make(K, t, C, X, right), t, C)
    print(report)
    assert not report

    assert re.match(mistake, report.mistake), report
    assert re.search(words, report.message), report


# Of these the scale is the mistake, or a part of it.
OF_A_SCALE = re.compile("1/|2γ|width|linear kernel|integers|α/C|offset in the kernel")


@pytest.mark.parametrize("scale", [0.1, 10.0])
@pytest.mark.parametrize("name", [name for name in PLANTED if not OF_A_SCALE.match(name)])
def test_a_planted_mistake_has_its_name_at_every_scale(problem, right, name, scale):
    """With K times a number the outputs are the same, and α is divided by it."""
    X, K, t, C = problem
    make, mistake, _ = PLANTED[name]
    alpha, b = make(K, t, C, X, right)
    report = check_svm(scale * K, alpha / scale, b, t, C / scale)
    assert re.match(mistake, report.mistake), report


@pytest.mark.parametrize("scale", [0.01, 0.1, 1.0, 10.0, 1e3])
def test_right_answers_in_single_precision_pass_at_every_scale(problem, right, scale):
    _, K, t, C = problem
    alpha, b, F = (np.float32(part) for part in right)
    K, alpha = np.float32(scale * K), np.float32(alpha / scale)
    for outputs in (None, F, F + np.float32(2e-4)):
        report = check_svm(K, alpha, b, t, C / scale, F=outputs)
        assert report, report


@pytest.fixture(scope="module", params=["linear", "unbalanced"])
def other(request, two_gaussians):
    """A kernel of rank 2, where α is not unique, and a class of nine rows at a large C."""
    rng = np.random.default_rng(5)
    t = rng.permutation(np.where(np.arange(60) < (30 if request.param == "linear" else 9), 1.0, -1))
    X = rng.standard_normal((60, 3 if request.param == "unbalanced" else 2))
    X[:, 0] += 0.75 * t
    kernel = Kernel("linear") if request.param == "linear" else Kernel("rbf", 1.0)
    return kernel.gram(X), t, 1.0 if request.param == "linear" else 10.0


@pytest.mark.parametrize("tol", [0.03, 0.1, 0.3, 1.0])
def test_an_early_end_is_no_other_mistake(other, tol):
    K, t, C = other
    alpha, b, F = student(K, t, C, tol=tol)
    first = (t - F)[np.argmax((alpha > 1e-9) & (alpha < C - 1e-9))]
    for offset in (b, b + 0.5 * tol, first):
        report = check_svm(K, alpha, offset, t, C)
        assert re.match("stopped early|not optimal|stuck by|threshold$|None", str(report.mistake))
        assert "threshold" not in str(report.mistake) or "alpha is optimal" in report.message


@pytest.mark.parametrize("tol", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_no_factor_is_accused_of_an_inexact_answer(problem, C, tol):
    """K of five points and their copies with noise of 1e-4: nearly singular."""
    X, _, t, _ = problem
    X = X[np.arange(60) % 10] + 1e-4 * np.random.default_rng(0).standard_normal(X.shape)
    K = Kernel("rbf", 0.05).gram(X)
    report = check_svm(K, *from_svc(K, t, C, tol=tol, max_iter=10_000), t, C)
    assert re.match("stopped early|not optimal|stuck by|None", str(report.mistake)), report


def test_rows_in_another_order_are_a_candidate_where_alpha_is_not_unique(other):
    K, t, C = other
    alpha, b, _ = student(K, t, C)
    order = np.random.default_rng(7).permutation(60)
    report = check_svm(K, alpha[order], b, t, C)
    assert re.match("order of the rows|equality constraint", report.mistake), report
    assert "order" in report.message or "in other rows" in report.message


def test_right_outputs_are_not_asked_for_again(problem):
    _, K, t, C = problem
    rng = np.random.default_rng(0)
    alpha = np.zeros(60)  # feasible, and far from optimal
    alpha[rng.permutation(np.flatnonzero(t > 0))[:9]] = C / 3
    alpha[rng.permutation(np.flatnonzero(t < 0))[:9]] = C / 3
    without = check_svm(K, alpha, 0.0, t, C)
    given = check_svm(K, alpha, 0.0, t, C, F=K @ (t * alpha))
    assert without.mistake == given.mistake == "not optimal"
    assert "F= to find out" in without.message and "F= " not in given.message
    assert "The F that you pass is right" in given.message


# --- Right answers --------------------------------------------------------------------------------


def from_svc(K, t, C, **options):
    model = SVC(kernel="precomputed", C=C, **options).fit(K, t)
    alpha = np.zeros(len(t))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha, model.intercept_[0]


def test_libsvm_with_its_own_tolerance(problem):
    _, K, t, _ = problem
    for C in (0.01, 0.3, 2.0, 100.0, 1e4):
        report = check_svm(K, *from_svc(K, t, C), t, C)
        assert report, (C, report)
        assert report.mistake is None and "60 rows" in str(report)


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS", "OSQP"])
def test_an_interior_point_and_a_first_order_method(problem, solver):
    cp = pytest.importorskip("cvxpy")
    _, K, t, C = problem
    beta = cp.Variable(60)
    root = np.linalg.cholesky(K + 1e-10 * np.eye(60))
    constraints = [cp.sum(beta) == 0, cp.multiply(t, beta) >= 0, cp.multiply(t, beta) <= C]
    program = cp.Problem(cp.Minimize(cp.sum_squares(root.T @ beta) / 2 - t @ beta), constraints)
    program.solve(solver=solver)
    alpha = t * beta.value
    assert 0 < np.sum(alpha < 0) or np.any((alpha > 0) & (alpha < 1e-6))  # nothing is exactly 0
    free = (alpha > 1e-3) & (alpha < C - 1e-3)
    b = np.median((t - K @ beta.value)[free])
    report = check_svm(K, alpha, b, t, C)
    assert report, report


def test_any_offset_that_is_optimal():
    # Two points, all variables at the bound: every b in [-0.6, 0.6] is optimal.
    K, t = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([1, -1])
    for b in (-0.6, 0.0, 0.3, 0.6):
        assert check_svm(K, [0.2, 0.2], b, t, 0.2)
    report = check_svm(K, [0.2, 0.2], 0.7, t, 0.2)
    assert report.mistake == "threshold" and "middle" in report.message


def test_other_kernels_orders_weights_and_copies(problem, two_gaussians):
    X, K, t, C = problem
    for kernel in (Kernel("linear"), Kernel("poly", 1.0, 2, 1.0), Kernel("laplacian", 0.5)):
        K_other = kernel.gram(X)
        report = check_svm(K_other, *from_svc(K_other, t, C, tol=1e-4), t, C)
        assert report, (kernel, report)
    order = np.random.default_rng(0).permutation(60)
    alpha, b = from_svc(K, t, C)
    assert check_svm(K[np.ix_(order, order)], alpha[order], b, t[order], C)
    assert check_svm(K.astype(np.float32), alpha.astype(np.float32), np.float32(b), t, C)
    weights = {-1: 1.0, 1: 4.0}
    alpha, b = from_svc(K, t, C, class_weight=weights)
    upper = np.where(t > 0, 4 * C, C)
    assert check_svm(K, alpha, b, t, upper)
    report = check_svm(K, alpha, b, t, np.where(t > 0, C, 4 * C))
    assert report.mistake == "C of the classes exchanged"
    twice = np.tile(np.arange(60), 2)
    alpha, b = from_svc(K, t, 2 * C)
    split = np.r_[0.7 * alpha, 0.3 * alpha]
    upper = C * np.repeat([1.4, 0.6], 60)
    assert check_svm(K[np.ix_(twice, twice)], split, b, t[twice], upper)


def test_the_simplified_smo_of_a_course(problem):
    """Random partners, an offset that follows the steps, and a tolerance of 1e-3 for each row."""
    _, K, t, C = problem
    rng = np.random.default_rng(0)
    alpha, b, quiet = np.zeros(60), 0.0, 0
    while quiet < 30:
        changed = 0
        for i in range(60):
            E_i = K[i] @ (t * alpha) + b - t[i]
            if not ((t[i] * E_i < -1e-3 and alpha[i] < C) or (t[i] * E_i > 1e-3 and alpha[i] > 0)):
                continue
            j = (i + rng.integers(1, 60)) % 60
            E_j = K[j] @ (t * alpha) + b - t[j]
            old_i, old_j = alpha[i], alpha[j]
            if t[i] != t[j]:
                low, high = max(0, old_j - old_i), min(C, C + old_j - old_i)
            else:
                low, high = max(0, old_i + old_j - C), min(C, old_i + old_j)
            eta = 2 * K[i, j] - K[i, i] - K[j, j]
            if low == high or eta >= 0:
                continue
            alpha[j] = np.clip(old_j - t[j] * (E_i - E_j) / eta, low, high)
            if abs(alpha[j] - old_j) < 1e-5:
                alpha[j] = old_j
                continue
            alpha[i] = old_i + t[i] * t[j] * (old_j - alpha[j])
            d_i, d_j = t[i] * (alpha[i] - old_i), t[j] * (alpha[j] - old_j)
            b_i = b - E_i - d_i * K[i, i] - d_j * K[i, j]
            b_j = b - E_j - d_i * K[i, j] - d_j * K[j, j]
            b = b_i if 0 < alpha[i] < C else b_j if 0 < alpha[j] < C else (b_i + b_j) / 2
            changed += 1
        quiet = 0 if changed else quiet + 1
    report = check_svm(K, alpha, b, t, C)
    assert report, report


# --- What a program keeps up to date, and what it should not be given -----------------------------


@pytest.mark.parametrize(
    ("kernel", "mistake"),
    [(Kernel("linear"), "kernel: linear"), (Kernel("rbf", 1.0), "kernel width")],
)
def test_the_outputs_of_another_kernel_are_not_called_stale(problem, kernel, mistake):
    X, K, t, C = problem
    alpha, b, F = student(kernel.gram(X), t, C)
    assert check_svm(K, alpha, b, t, C, F=F).mistake == mistake


def test_outputs_of_the_program(problem, right):
    _, K, t, C = problem
    alpha, b, F = right
    for form in (F, F + b, F + b - t, F - t, t * F - 1):
        assert check_svm(K, alpha, b, t, C, F=form)
    beta, i = t * alpha, np.argmax(alpha)
    report = check_svm(K, alpha, b, t, C, F=F - 0.3 * K[i])
    assert report.mistake == "gradient update missing" and f"column {i} of K" in report.message
    assert "+0.3" in report.message
    report = check_svm(K, alpha, b, t, C, F=F - 0.3 * K[i] + 0.2 * K[3])
    assert report.mistake == "gradient update missing" and "both" in report.message.lower(), report
    report = check_svm(K, alpha, b, t, C, F=2 * F)
    assert report.mistake == "factor ½"
    report = check_svm(K, alpha, b, t, C, F=-F)
    assert report.mistake == "sign of the gradient update"
    report = check_svm(K, alpha, b, t, C, F=K @ alpha)
    assert report.mistake == "labels forgotten in the outputs"
    wrong, b_wrong, F_wrong = student(K, t, C, "one row of F")
    report = check_svm(K, wrong, b_wrong, t, C, F=F_wrong)
    assert report.mistake == "gradient update missing"
    assert beta.sum() == pytest.approx(0)


def test_matrices_that_are_no_gram_matrices(problem, right):
    _, K, t, C = problem
    alpha, b, _ = right
    report = check_svm(np.triu(K), alpha, b, t, C)
    assert report.mistake == "kernel not symmetric" and "K[" in report.message
    report = check_svm(-K, alpha, b, t, C)
    assert report.mistake == "kernel not positive semidefinite" and "eigenvalue" in report.message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(t=[0, 1, 1]), r"t must hold −1 and \+1, got 0, 1; .*2 \* y - 1"),
        (dict(t=[0, 1, -1]), "t must hold −1 and"),
        (dict(t=[2, 1, 1]), "t must hold −1 and"),
        (dict(t=["a", "b", "a"]), "t must be .*numeric"),
        (dict(K=np.eye(4)), r"K must have the shape \(3, 3\), got \(4, 4\)"),
        (dict(K=np.full((3, 3), np.nan)), "K must be finite, got NaN or infinity in rows 0, 1, 2"),
        (dict(alpha=np.zeros((3, 1))), r"alpha must have the shape \(3,\).*alpha.ravel\(\)"),
        (dict(alpha=np.zeros(2)), "with 0 in the rows that are no support vectors"),
        (dict(C=0.0), "C must be positive"),
        (dict(C=[1.0, 1.0]), "C must be positive, one number or one per row"),
        (dict(b=[0.0, 1.0]), r"b must have the shape \(1,\)"),
    ],
)
def test_bad_input_is_named(change, message):
    good = dict(K=np.eye(3), alpha=np.zeros(3), b=0.0, t=[1, -1, 1], C=1.0)
    with pytest.raises(ValueError, match=message):
        check_svm(**{**good, **change})


def test_a_report_is_true_or_false_and_a_sentence():
    right, wrong = Report(None, "All is well."), Report("sign", "b is −b.", {"margin": 2.0})
    assert right and not wrong
    assert (str(right), str(wrong)) == ("All is well.", "sign: b is −b.")
    assert repr(wrong) == str(wrong) and wrong.numbers == {"margin": 2.0}


@pytest.mark.parametrize(
    ("residuals", "mistake", "words"),
    [
        ((1e-3, 1e-1), "a", "A."),
        ((1e-3, 2e-3), "a, or b", "A. Or else B."),
        ((2e-3, 1e-3), "a, or b", "A. Or else B."),  # the order is that of the suspects
        ((2e-2, 1e-3), "b", "B. (Nearly the same numbers would follow from: a.)"),
        ((0.0, 1e-9), "a", "A."),  # beyond doubt
        ((1e-3, 0.0), "b", "B."),
        ((1e-9, 1e-12), "a, or b", ""),  # rounding decides nothing
        ((1e-3, 2e-3, 2e-3), "a, or b, or c", ""),
        ((1e-3, 2e-3, 2e-3, 2e-3), None, ""),  # so many explanations are none
        ((0.2, 0.3), None, ""),
    ],
)
def test_who_is_accused(residuals, mistake, words):
    suspects = [
        Suspect(name, f"{name.upper()}.", left)
        for name, left in zip("abcd", residuals, strict=False)
    ]
    report = accuse(suspects, 0.1, {})
    assert mistake == (None if report is None else report.mistake)
    assert report is None or words in ("", report.message), report


@pytest.mark.parametrize(
    ("factor", "clear"),
    [(0.955, False), (1.04, False), (0.996, False), (0.9, True), (1.2, True), (1.31, True)]
    + [(0.7312, True), (0.5, True), (1 / 60, True), (1e-4, False), (1e4, False)],
)
def test_which_factors_may_be_accused(factor, clear):
    assert is_clear(factor, {"n": 60}, 1e-3) == clear
