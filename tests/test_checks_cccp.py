"""`check_cccp`: mistakes of students are caught and named, and right answers pass."""

import re

import numpy as np
import pytest

from s3vm_book.checks import check_cccp
from s3vm_lib.cccp import inner_costs
from s3vm_lib.datasets import make_moons
from s3vm_lib.kernels import Kernel
from s3vm_lib.reference.cccp import with_mean_point
from s3vm_lib.reference.smo import solve_smo
from s3vm_lib.smo import feasible

C, C_STAR, S = 2.0, 0.2, 0.3


@pytest.fixture(scope="module")
def problem():
    X, y = make_moons(44, noise=0.3, random_state=3)
    t = np.where(np.arange(44) < 8, 2.0 * y - 1, 0.0)
    order = np.random.default_rng(0).permutation(44)
    return Kernel("rbf", 1.0).gram(X[order]), t[order]


def student(K, t, mistake=None, ratio=None, C=C, C_star=C_STAR, s=S, loops=50, tol=1e-4):
    """CCCP as a student writes it, with one mistake; beta, b and the δ of the last problem."""
    U, target = t == 0, None if ratio is None else 2 * ratio - 1
    if mistake == "r for 2r − 1":
        target = ratio
    u = U.sum()
    if ratio is not None:
        K = with_mean_point(K, U)
    delta, beta = np.zeros(u), np.zeros(len(K))
    for k in range(loops):
        costs = inner_costs(t, np.full(len(t), C), np.full(u, C_star if k else 0.0), delta, target)
        if mistake == "unshifted box" and k:
            costs.lo[: len(t)][U], costs.hi[: len(t)][U] = -C_star, C_star
            costs.mid[: len(t)][U] = np.clip(delta, -C_star, C_star)
        beta, b, _ = solve_smo(K, costs, feasible(np.clip(beta, costs.lo, costs.hi), costs), tol)
        f = (K @ beta)[: len(t)][U] + b
        new = C_star * (1.0 * (f > s) - 1.0 * (f < -s))
        if mistake == "sign":
            new = -new
        elif mistake == "factor":
            new = 2 * new
        elif mistake == "positive only":
            new = np.maximum(new, 0)
        elif mistake == "never":
            new = 0 * new
        if (k and np.array_equal(new, delta)) or k == loops - 1:
            break
        delta = new
    return beta, b, delta


@pytest.fixture(scope="module")
def right(problem):
    beta, b, delta = student(*problem)
    free = np.abs(beta[problem[1] != 0])
    assert np.any((free > 0) & (free < C)) and 4 < np.sum(delta == 0) < 30
    assert not np.array_equal(student(*problem, loops=2)[2], delta)
    return beta, b, delta


def of_loop(name, **options):
    return lambda K, t, right: student(K, t, name, **options)[:2]


def changed(function):
    return lambda K, t, right: function(*right, t)


def scale_unlabeled(factor):
    return lambda beta, b, delta, t: (np.where(t == 0, factor * beta, beta), b)


PLANTED = {
    "sign of the linearization": (of_loop("sign", loops=3), "sign of the linearization", "−δ"),
    "never linearized": (of_loop("never"), "linearization missing", "never"),
    "δ = ±2C*": (of_loop("factor"), "factor of the linearization", "2C"),
    "one side": (of_loop("positive only"), "one ramp of two", "positive side only"),
    "one round": (of_loop(None, loops=2), "not a fixed point", "outer loop"),
    "s = 0": (of_loop(None, s=0.0), "end of the ramp", "s = 0"),
    "s = 0.8": (of_loop(None, s=0.8), "not a fixed point", "another s"),
    "box not shifted": (of_loop("unshifted box"), "box of the unlabeled rows", "shifted"),
    "sign of b": (changed(lambda beta, b, delta, t: (beta, -b)), "sign of the threshold", "−b"),
    "b from nowhere": (changed(lambda beta, b, delta, t: (beta, b + 0.3)), "threshold", "b = "),
    "α for β": (
        changed(lambda beta, b, delta, t: (np.where(t < 0, -beta, beta), b)),
        "labels twice",
        "t α",
    ),
    "−β for unlabeled rows": (
        changed(scale_unlabeled(-1.0)),
        "sign of the unlabeled rows",
        "minus beta",
    ),
    "b forgotten": (changed(lambda beta, b, delta, t: (beta, 0.0)), "threshold forgotten", "b = 0"),
    "means": (of_loop(None, C=C / 8, C_star=C_STAR / 36), "mean for sum", "1/l"),
    "C and C* exchanged": (of_loop(None, C=C_STAR, C_star=C), "C and C\\* exchanged", "times C"),
    "one copy of two": (changed(scale_unlabeled(0.5)), "doubled rows", "sum of the two"),
    "twice": (changed(scale_unlabeled(2.0)), "doubled rows", "twice"),
    "s = 1": (of_loop(None, s=1.0), "unlabeled rows without effect|end of the ramp", "decided"),
    "supervised": (of_loop(None, loops=1), "unlabeled rows (left out|without effect)", "left out"),
    "2C*": (of_loop(None, C_star=2 * C_STAR), "another C\\*|factor of the lin", "2"),
    "C/2": (of_loop(None, C=C / 2), "another C$", "½"),
    "C for C*": (of_loop(None, C_star=C), "another C\\*", "times C\\*"),
    "SMO ended early": (of_loop(None, tol=0.5), "inner problem|stopped early", "margins do not"),
}


@pytest.mark.parametrize("scale", [1.0, 0.1, 10.0])
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_named(problem, right, name, scale):
    """Also where K is another multiple of the same matrix: outputs stay, and β becomes β/scale."""
    K, t = problem
    make, mistake, words = PLANTED[name]
    beta, b = make(K, t, right)
    report = check_cccp(scale * K, beta / scale, b, t, C / scale, C_STAR / scale, s=-S)
    print(report)
    assert not report
    assert re.match(mistake, report.mistake), report
    assert re.search(words, report.message), report


# --- The costs of one convex problem, δ given -----------------------------------------------------


def of_unlabeled(change):
    """Costs in which the unlabeled rows are changed: from δ of all rows to some of the arrays."""

    def costs(t, delta, C, C_star):
        right, U = (
            inner_costs(t, np.full(len(t), C), np.full(np.sum(t == 0), C_star), delta),
            t == 0,
        )
        d = np.zeros(len(t))
        d[U] = delta
        changed = change(d, C_star)
        return right._replace(
            **{name: np.where(U, value, getattr(right, name)) for name, value in changed.items()}
        )

    return costs


def of_labeled(change):
    """Costs in which the labeled rows are changed."""

    def costs(t, delta, C, C_star):
        right = inner_costs(t, np.full(len(t), C), np.full(np.sum(t == 0), C_star), delta)
        return right._replace(
            **{
                name: np.where(t != 0, value, getattr(right, name))
                for name, value in change(t, C, C_star).items()
            }
        )

    return costs


def in_order(unlabeled_first):
    """Costs of the rows sorted by whether they are labeled."""

    def costs(t, delta, C, C_star):
        right = inner_costs(t, np.full(len(t), C), np.full(np.sum(t == 0), C_star), delta)
        return right.take(np.argsort((t == 0) != unlabeled_first, kind="stable"))

    return costs


def exchanged(t, delta, C, C_star):
    return inner_costs(t, np.full(len(t), C_star), np.full(len(delta), C), delta)


COSTS = {
    "kink at 0": (
        of_unlabeled(lambda d, w: dict(mid=0)),
        "(unlabeled rows without effect|kink of the unlabeled rows)$",
    ),
    "slopes ±C*": (
        of_unlabeled(lambda d, w: dict(s1=-w, s2=w)),
        "(slopes of the unlabeled rows|unlabeled rows without effect)",
    ),
    "kink at 0 and slopes ±C*": (
        of_unlabeled(lambda d, w: dict(mid=0, s1=-w, s2=w)),
        "(.*, or )?kink and slopes of the unlabeled rows|unlabeled rows without effect",
    ),
    "slopes δ ± C*": (
        of_unlabeled(lambda d, w: dict(s1=d - w, s2=d + w)),
        "(slopes of the unlabeled rows|unlabeled rows without effect)",
    ),
    "slopes −t": (of_unlabeled(lambda d, w: dict(s1=0, s2=0)), "slopes of the unlabeled rows"),
    "bounds not shifted": (
        of_unlabeled(lambda d, w: dict(lo=-w, hi=w, mid=np.clip(d, -w, w))),
        "box of the unlabeled rows",
    ),
    "−δ": (
        of_unlabeled(lambda d, w: dict(lo=-d - w, mid=-d, hi=w - d)),
        "sign of the linearization",
    ),
    "2δ": (
        of_unlabeled(lambda d, w: dict(lo=2 * d - w, mid=2 * d, hi=2 * d + w)),
        "factor of the linearization",
    ),
    "first hinge only": (of_unlabeled(lambda d, w: dict(mid=d + w)), "one hinge of two"),
    "upper half only": (of_unlabeled(lambda d, w: dict(lo=d)), "one hinge of two"),
    "width C*/2": (
        of_unlabeled(lambda d, w: dict(lo=d - w / 2, hi=d + w / 2)),
        "width of the unlabeled box",
    ),
    "C and C* exchanged": (exchanged, r"C and C\* exchanged"),
    "unlabeled rows first": (in_order(True), "order of the rows"),
    "labeled rows first": (in_order(False), "order of the rows"),
    "slopes −1": (
        of_labeled(lambda t, C, C_star: dict(s1=-1, s2=-1)),
        "slopes of the labeled rows",
    ),
    "slopes t": (of_labeled(lambda t, C, C_star: dict(s1=t, s2=t)), "slopes of the labeled rows"),
    "slopes −C t": (
        of_labeled(lambda t, C, C_star: dict(s1=-C * t, s2=-C * t)),
        "slopes of the labeled rows",
    ),
    "bounds 0 and C": (
        of_labeled(lambda t, C, C_star: dict(lo=0, mid=C, hi=C)),
        "(slopes of the labeled rows, or )?box of the labeled rows",
    ),
}


WITHOUT_EFFECT = {
    "kink at 0": "at δ, not at 0",
    "slopes ±C*": "the slopes ±C*",
    "kink at 0 and slopes ±C*": "their slopes are ±C*",
    "slopes δ ± C*": "the slopes δ ± C*",
    "slopes −t": "the slope 0",
}


@pytest.fixture(scope="module", params=["rbf", "linear", "rbf × 0.1", "linear × 10"])
def convex(request, problem, two_gaussians):
    """K, t, C, C* and two δ: that of a fixed point, and one at random."""
    K, t = problem
    weights = C, C_STAR
    if request.param.startswith("linear"):
        X, truth = two_gaussians(n=40, d=2, seed=1, distance=2.0)
        order = np.random.default_rng(0).permutation(40)
        K, t, weights = (X @ X.T), np.where(order < 8, truth, 0.0), (1.5, 0.1)
    if "×" in request.param:  # the same problem, with all coefficients divided by this
        scale = float(request.param.split("×")[1])
        K, weights = scale * K, (weights[0] / scale, weights[1] / scale)
    delta = student(K, t, C=weights[0], C_star=weights[1])[2]
    u = np.sum(t == 0)
    drawn = weights[1] * np.random.default_rng(0).integers(-1, 2, u)
    return K, t, *weights, (delta, drawn)


@pytest.mark.parametrize("name", COSTS)
def test_wrong_costs_are_named(convex, name):
    K, t, C, C_star, slopes = convex
    make, mistake = COSTS[name]
    for delta in slopes:
        costs = make(t, delta, C, C_star)
        beta, b, _ = solve_smo(K, costs, feasible(np.zeros(len(t)), costs), 1e-4)
        report = check_cccp(K, beta, b, t, C, C_star, s=-S, delta=delta)
        print(report)
        assert not report
        also = report.message.partition("same numbers would follow from: ")[2]
        assert re.match(mistake, report.mistake) or re.match(mistake, also), report
        if report.mistake == "unlabeled rows without effect":  # the message tells of what kind
            assert WITHOUT_EFFECT[name] in report.message and "left out" in report.message


def test_labeled_rows_alone_are_spoken_of_alone(problem, right):
    K, t = problem
    K = np.where((t == 0)[:, None] == (t == 0), K, 0.0)  # labeled rows do not move the others
    costs = inner_costs(t, np.full(44, C), np.full(36, C_STAR), right[2])
    beta, b, _ = solve_smo(K, costs, feasible(np.zeros(44), costs), 1e-5)
    i, j = (np.argmax(np.where(t != 0, sign * beta, -np.inf)) for sign in (1, -1))
    beta[i], beta[j] = beta[i] - 0.3, beta[j] + 0.3
    report = check_cccp(K, beta, b, t, C, C_STAR, s=-S, delta=right[2])
    assert report.mistake == "inner problem not solved"
    assert "labeled row" in report.message and "unlabeled" not in report.message
    u = np.argmax(t == 0)
    beta[u], beta[i] = beta[u] + 0.1, beta[i] - 0.1
    report = check_cccp(K, beta, b, t, C, C_STAR, s=-S, delta=right[2])
    assert "Of an unlabeled row" in report.message


def test_a_sign_in_the_loop_is_not_called_an_early_end(convex):
    """The loop runs to and fro: rows have slopes against their side, which an early end has not."""
    K, t, C, C_star, _ = convex
    for loops in (3, 4, 7, 30):
        beta, b, _ = student(K, t, "sign", C=C, C_star=C_star, loops=loops)
        report = check_cccp(K, beta, b, t, C, C_star, s=-S)
        assert report.mistake.startswith("sign of the linearization"), report
    for loops in (2, 3):
        beta, b, _ = student(K, t, C=C, C_star=C_star, loops=loops)
        report = check_cccp(K, beta, b, t, C, C_star, s=-S)
        assert report.mistake in (None, "not a fixed point"), report


def test_right(problem, right):
    K, t = problem
    r = check_cccp(K, *right[:2], t, C, C_STAR, s=-S)
    assert r, r
    r = check_cccp(K, *right[:2], t, C, C_STAR, s=-S, delta=right[2])
    assert r, r


def test_balanced(problem):
    K, t = problem
    big = with_mean_point(K, t == 0)
    beta, b, _ = student(K, t, ratio=0.4)
    r = check_cccp(big, beta, b, t, C, C_STAR, s=-S, ratio=0.4)
    assert r, r
    beta, b, _ = student(K, t, "r for 2r − 1", ratio=0.4)
    r = check_cccp(big, beta, b, t, C, C_STAR, s=-S, ratio=0.4)
    print(r)
    assert r.mistake == "balance: r for 2r − 1"


@pytest.mark.parametrize(
    ("gamma", "C", "C_star", "s"),
    [(0.5, 1.0, 0.02, -0.1), (4.0, 10.0, 1.0, -0.3), (1.0, 100.0, 0.3, -0.6), (1.0, 1.0, 0.3, 0.0)],
)
def test_right_answers_of_many_problems_pass(gamma, C, C_star, s):
    for seed in range(3):
        X, y = make_moons(50, noise=0.25, random_state=seed)
        t = np.where(np.arange(50) < 8, 2.0 * y - 1, 0.0)
        K = Kernel("rbf", gamma).gram(X)
        beta, b, delta = student(K, t, C=C, C_star=C_star, s=abs(s), tol=1e-3)
        report = check_cccp(K, beta, b, t, C, C_star, s=s, delta=delta)
        assert report, (seed, report)
        f = (K @ beta + b)[t == 0]
        if np.array_equal(delta, C_star * (1.0 * (f > abs(s)) - 1.0 * (f < -abs(s)))):
            report = check_cccp(K, beta, b, t, C, C_star, s=s)
            assert report, (seed, report)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(t=[0, 1, 1, 0]), "t must hold −1 and"),
        (dict(t=[1, -1, 1, -1]), "labeled and unlabeled rows"),
        (dict(beta=np.zeros(3)), r"beta must have the shape \(4,\)"),
        (dict(beta=np.zeros(6)), "add up the two variables"),
        (dict(ratio=0.5), "the multiplier of the balance comes last"),
        (dict(C_star=0.0), "C_star must be a positive number"),
        (dict(s=-2), "s must lie between"),
        (dict(delta=np.zeros(3)), r"delta must have the shape \(2,\)"),
    ],
)
def test_bad_input_is_named(change, message):
    good = dict(K=np.eye(4), beta=np.zeros(4), b=0.0, t=[1, -1, 0, 0], C=1.0, C_star=0.5)
    with pytest.raises(ValueError, match=message):
        check_cccp(**{**good, **change})


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rows_beyond_their_bounds_are_named_by_their_place(problem, right, sign):
    """A labeled row whose variable has the sign of the other class, or is above C."""
    K, t = problem
    beta, b, _ = right
    rows = np.flatnonzero(t != 0)
    for row in rows[[0, -1]]:
        beta = right[0].copy()
        moved = sign * (C + 0.5) * t[row] - beta[row]
        beta[row] += moved
        beta[t == 0] -= moved / np.sum(t == 0)
        report = check_cccp(K, beta, b, t, C, C_STAR, s=-S)
        what = "t β > C" if sign > 0 else "t β < 0"
        assert re.search(rf"{what} in row {row}\b", report.message), report


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_entry_of_the_mean_with_itself_is_compared_at_any_scale(problem, scale):
    K, t = problem
    beta, b, _ = student(K, t, ratio=0.4)
    arguments = beta / scale, b, t, C / scale, C_STAR / scale
    rows = scale * with_mean_point(K, t == 0)
    assert check_cccp(rows, *arguments, s=-S, ratio=0.4)
    rows[-1, -1] *= 1.01
    assert "row" in check_cccp(rows, *arguments, s=-S, ratio=0.4).mistake


def test_the_row_of_the_mean(problem):
    K, t = problem
    U = t == 0
    beta, b, _ = student(K, t, ratio=0.4)
    for m, words in ((np.ones(44) / 44, "all rows"), (1.0 * U, "sum over")):
        wrong = np.block([[K, (K @ m)[:, None]], [(K @ m)[None], np.array([[m @ K @ m]])]])
        report = check_cccp(wrong, beta, b, t, C, C_STAR, s=-S, ratio=0.4)
        assert report.mistake == "balance: row of the mean" and words in report.message
    report = check_cccp(with_mean_point(K, U), beta, -b, t, C, C_STAR, s=-S, ratio=0.4)
    assert not report and "b" in report.message
