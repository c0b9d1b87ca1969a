"""IL-S³VM as printed: each error of the text is run beside its correction."""

from collections import Counter

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

from s3vm_book.path_following_printed import (
    ERRATA,
    PrintedPath,
    Stalled,
    UpdatedQR,
    bordered,
    cholesky,
    pivoted_qr,
)
from s3vm_lib.kernels import Kernel

C, C_STAR = 10.0, 5.0
KERNELS = [Kernel("linear"), Kernel("rbf", 0.5), Kernel("poly", 1.0, 2, 1.0)]


def instance(seed, kernel=KERNELS[1], kind="generic", n=25):
    """Gram matrix and labels −1, +1 and 0 (70 %) of rows in the plane, of two noisy classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    if kind == "ties":
        X = np.round(X)
    elif kind == "line":
        X = np.round(4 * X[:, :1]) / 4
    truth = np.where(X[:, 0] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    t = np.where(rng.random(n) < 0.3, truth, 0.0)
    t[:2] = 1.0, -1.0
    return kernel.gram(X), t


def walk(K, t, corrected=tuple(ERRATA), **options):
    """Add all rows; the path, and the largest residual after an addition."""
    path, worst = PrintedPath(K, t, C, C_STAR, corrected, **options), 0.0
    for k in range(len(t)):
        worst = max(worst, path.add(k).residual())
    return path, worst


def without(name):
    return set(ERRATA) - {name}


def convex_inner_problem(path):
    """Minimum of the primal CIL problem at the μ of the path, by cvxpy."""
    values, vectors = np.linalg.eigh(path.K)
    root = vectors * np.sqrt(np.maximum(values, 0))
    w, b = cp.Variable(len(path.K)), cp.Variable()
    f = root[path.row] @ w + b
    weight = np.where(path.free, path.C_star, path.C)
    losses = weight @ cp.pos(1 - cp.multiply(path.y, f)) + (path.mu * path.y) @ f
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + losses))
    problem.solve(cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


# --- The corrected algorithm ----------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("kind", ["generic", "ties", "line"])
def test_the_corrected_algorithm_ends_at_a_consistent_kkt_point(kernel, kind):
    flips = 0
    for seed in range(3):
        path, worst = walk(*instance(seed, kernel, kind))
        assert worst <= 1e-9
        # Strong duality, and μ that agrees with the signs: J of (1) is −W.
        assert_allclose(path.objective(), -path.energy(), rtol=1e-9)
        flips += sum(step.equation in ("(17)", "(18)") for step in path.steps)
    assert flips > 0


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_its_dual_is_that_of_the_convex_inner_problem(kernel):
    path, _ = walk(*instance(1, kernel, n=18))
    # The primal is the dual of (6) plus Σμ = u C*, as (4) is (1) plus u C*.
    expected = -path.energy() + path.mu.sum()
    assert_allclose(convex_inner_problem(path), expected, rtol=1e-7)
    assert path.mu.sum() == C_STAR * np.sum(path.t == 0)


def test_without_unlabeled_rows_it_is_the_svm():
    K, t = instance(2)
    K, t = K[np.ix_(t != 0, t != 0)], t[t != 0]
    path, _ = walk(K, t)
    svc = SVC(C=C, kernel="precomputed", tol=1e-8).fit(K, t)
    assert_allclose(path.outputs(), svc.decision_function(K), atol=1e-5)


def test_copies_may_be_added_one_by_one_or_together():
    # Lines 2-5 add (x, 1) and (x, −1) one after the other: between them the row has a ramp loss.
    for seed in range(4):
        for kind in ("generic", "ties"):
            paths = [walk(*instance(seed, kind=kind), together=both) for both in (False, True)]
            for path, worst in paths:
                assert worst <= 1e-9
                assert_allclose(path.objective(), -path.energy(), rtol=1e-9)


# --- Errata ---------------------------------------------------------------------------------------


def test_bounds_8_as_printed_contradict_remark_1_and_the_primal():
    K, t = instance(1)
    path, _ = walk(K, t)
    positive = path.free & (path.y > 0)
    lower, upper = path.bounds(ERRATA)
    f = path.outputs()[positive]
    assert_array_equal(lower[positive], np.where(f < 0, -C_STAR, 0.0))  # Remark 1
    assert_array_equal(upper[positive], np.where(f < 0, 0.0, C_STAR))
    lower, upper = path.bounds(without("bounds"))
    assert_array_equal(lower[positive], upper[positive])  # no room: α = −μ

    printed = PrintedPath(K, t, C, C_STAR, without("bounds"))
    added, wrong = 0, 0
    try:
        for k in range(len(t)):
            printed.add(k)
            added += 1
            expected = -printed.energy() + printed.mu.sum()
            wrong += convex_inner_problem(printed) < expected - 1e-3 or printed.residual() > 1e-3
    except Stalled:
        pass
    assert wrong > 0 or added < len(t)
    assert printed.residual() > 1.0


def test_5_at_0_gives_no_vertex_and_no_way_on():
    with pytest.raises(Stalled) as stalled:
        walk(*instance(1), without("vertex"))
    assert stalled.value.equation == "(5)"


def test_5_at_0_stops_at_a_maximum():
    # One row of each class at ∓1, an unlabeled one at 0: both μ = 0 and f = 0 fulfill (10)-(11).
    x = np.array([[-1.0], [1.0], [0.0]])
    K, t = x @ x.T, np.array([-1.0, 1.0, 0.0])
    printed, _ = walk(K, t, without("vertex"), together=True)
    corrected, _ = walk(K, t, together=True)
    assert_array_equal(printed.alpha[2:], [C_STAR, -C_STAR])
    assert_allclose(printed.outputs([2]), 0.0, atol=1e-12)
    assert_allclose([printed.objective(), corrected.objective()], [5.5, 2.0])
    # With the offset f = x(1 + δ) + δ it goes down to either side: J = ½(1 + δ)² + 5(1 − δ).
    for delta in (0.01, -0.01):
        value = 0.5 * (1 + abs(delta)) ** 2 + C_STAR * (1 - abs(delta))
        assert value < printed.objective()


def test_strict_inequalities_leave_no_interval():
    # Theorem 1: 0 and η_max belong to I(π, A). With >, a row that has just left M excludes η = 0.
    stalls = Counter()
    for seed in range(6):
        with pytest.raises(Stalled, match="at η = 0") as stalled:
            walk(*instance(seed), without("closed"))
        stalls[stalled.value.equation] += 1
    assert set(stalls) <= {"(15)", "(16)", "(18)"}
    assert len(stalls) > 1


def test_21_and_22_are_exchanged():
    K, t = instance(1)
    for label, equation in ((1.0, "(21)"), (-1.0, "(22)")):
        path = PrintedPath(K, np.full(len(t), label), C, C_STAR, without("swapped"))
        # A row with z < 1 is in A for just that reason, and violates what is printed.
        path.b = 0.0
        with pytest.raises(Stalled) as stalled:
            path.add(0)
        assert stalled.value.equation == equation
        assert label * path.gradient()[0] < 0


def test_19_and_20_assume_that_alpha_is_inside_its_box():
    stalls = Counter()
    for seed in range(6):
        K, t = instance(seed)
        path = PrintedPath(K, t, C, C_STAR, without("outside"))
        try:
            for k in range(len(t)):
                path.add(k)
        except Stalled as stalled:
            stalls[stalled.equation] += 1
            lower, upper = path.bounds()
            outside = (path.alpha > upper + 1e-9) | (path.alpha < lower - 1e-9)
            assert np.all(path.place[outside] == "A")
            copies = path.row[outside]
            assert np.all(path.t[copies] == 0)
            # It is the copy with the label of the side that the row has left.
            assert_array_equal(path.mu[outside], C_STAR)
    assert set(stalls) == {"(19)", "(20)"}


def test_12_with_an_empty_margin_set_violates_10():
    K, t = instance(1)
    printed = PrintedPath(K, t, C, C_STAR, without("empty")).add(0)
    assert abs(printed.alpha.sum()) > 0.5  # α moves although (10) forbids it
    corrected = PrintedPath(K, t, C, C_STAR).add(0)
    assert corrected.alpha.sum() == 0
    assert corrected.steps[0].eta > 0  # b alone


@pytest.mark.parametrize("name", sorted(ERRATA))
def test_every_correction_is_needed(name):
    failed = 0
    for seed in range(5):
        try:
            _, worst = walk(*instance(seed), without(name))
            failed += worst > 0.1
        except Stalled:
            failed += 1
    assert failed > 0


# --- Theorems -------------------------------------------------------------------------------------


def test_a_change_of_mu_puts_both_copies_into_a_with_one_direction():
    """Remark 3, and only the copy with the new sign can reach g = 0: its twin goes on."""
    seen = 0
    for seed in range(6):
        K, t = instance(seed)
        path = PrintedPath(K, t, C, C_STAR)
        original = path._advance

        def advance(path=path, original=original):
            nonlocal seen
            d = path._targets() - path.alpha
            for k in np.unique(path.row[(path.place == "A") & path.free]):
                copies = (path.row == k) & (path.place == "A")
                if copies.sum() == 2:
                    assert np.ptp(np.sign(d[copies])) == 0
            gradient = path.gradient()
            on = np.flatnonzero((path.place == "M") & path.free)
            for i in on:
                twin = (path.row == path.row[i]) & (path.y != path.y[i])
                assert np.all(np.abs(gradient[twin]) > 1.9)  # g of the two differ by 2
                seen += np.any(path.place[twin] == "A")
            original()

        path._advance = advance
        for k in range(len(t)):
            path.add(k)
    assert seen > 0


def test_theorem_3_holds_in_the_pure_cases_and_says_nothing_of_the_mixed_one():
    pure, mixed = 0, Counter()
    for seed in range(6):
        path, _ = walk(*instance(seed))
        energy = 0.0
        for step in path.steps:
            change, energy = step.energy - energy, step.energy
            if abs(change) < 1e-10:
                continue
            if step.added and step.others:
                mixed["up" if change > 0 else "down"] += 1
            else:
                pure += 1
                assert (change < 0) == step.added
    assert pure > 100
    assert mixed["up"] > 0 and mixed["down"] > 0


def test_corollary_3_fails_where_events_coincide():
    zero = {}
    for kind in ("generic", "ties"):
        steps = [step for seed in range(4) for step in walk(*instance(seed, kind=kind))[0].steps]
        zero[kind] = np.mean([step.eta <= 1e-12 for step in steps])
        # All of A reaches its targets at η = 1: no addition with a change of μ avoids a tie.
        assert sum(step.ties > 1 for step in steps) > 0
    assert zero["ties"] > 0.05
    assert zero["ties"] > zero["generic"]


# --- QR or Cholesky -------------------------------------------------------------------------------


def dependent(seed, m=12):
    """Gram matrix of rows of which the sixth and the tenth repeat the third."""
    X = np.random.default_rng(seed).standard_normal((m, 3))
    X[5] = X[9] = X[2]
    return Kernel("rbf", 0.5).gram(X)


def right_side(K, rows, seed):
    """A right side of (12) as the algorithm has it: of a d on all rows."""
    d = np.random.default_rng(seed).standard_normal(len(K))
    return -np.append(d.sum(), K[rows] @ d)


def test_all_three_factorizations_agree_on_independent_rows():
    K, _ = instance(0, n=12)
    updated = UpdatedQR()
    for m in range(12):
        updated.insert(K[m, :m], K[m, m])
    updated.delete(4)
    rows = np.delete(np.arange(12), 4)
    H, right = K[np.ix_(rows, rows)], right_side(K, rows, 0)
    expected = np.linalg.solve(bordered(H), right)
    for found in (pivoted_qr(H, right), cholesky(H, right), updated.solve(right)):
        assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
    assert_allclose(updated.Q @ updated.R, bordered(H), atol=1e-12)


def test_on_dependent_rows_pivoting_is_needed_and_updates_lose_it():
    lost, useless = 0, 0
    for seed in range(20):
        K, updated = dependent(seed), UpdatedQR()
        for m in range(len(K)):
            updated.insert(K[m, :m], K[m, m])
        gone = seed % len(K)
        updated.delete(gone)
        rows = np.delete(np.arange(len(K)), gone)
        H, right = K[np.ix_(rows, rows)], right_side(K, rows, seed)
        basic = pivoted_qr(H, right)
        assert np.max(np.abs(bordered(H) @ basic - right)) < 1e-10
        pivots = np.abs(np.diag(updated.R))
        assert pivots.min() < 1e-10  # singular
        lost += pivots[-1] > 1e-10  # and the rank cannot be read off the end of the diagonal
        try:
            found = updated.solve(right)
        except np.linalg.LinAlgError:
            useless += 1
            continue
        useless += np.max(np.abs(found)) > 1e3 * np.max(np.abs(basic))
    assert lost > 10
    assert useless > 0


def test_on_dependent_rows_cholesky_needs_a_ridge_and_shares_out():
    K = dependent(0)
    right = right_side(K, np.arange(len(K)), 0)
    basic = pivoted_qr(K, right)
    assert np.sum(basic[[3, 6, 10]] == 0) == 2  # one of three equal rows moves
    ridge = 1e-8
    found = cholesky(K + ridge * np.eye(len(K)), right)
    assert_allclose(found[[3, 6, 10]], found[3], atol=1e-5)  # all three do, equally
    assert_allclose(found[[3, 6, 10]].sum(), basic[[3, 6, 10]].sum(), rtol=1e-5)
    residual = np.max(np.abs(bordered(K) @ found - right))
    assert 1e-12 < residual < 10 * ridge * np.max(np.abs(found))


@pytest.mark.parametrize("kind", ["generic", "ties", "line"])
def test_cholesky_with_a_ridge_in_the_kernel_follows_the_path_too(kind):
    for seed in range(3):
        K, t = instance(seed, Kernel("rbf", 0.5), kind)
        ridged = K + 1e-8 * np.eye(len(K))
        path, worst = walk(ridged, t, solve=cholesky)
        assert worst <= 1e-7
        assert_allclose(path.objective(), -path.energy(), rtol=1e-6)
        other, _ = walk(ridged, t)
        if np.array_equal(path.mu, other.mu):
            assert_allclose(path.objective(), other.objective(), rtol=1e-6)


# --- Rounding -------------------------------------------------------------------------------------


def plane(seed, n=25):
    """Rows and labels of ``instance(seed)``: any three rows of a plane span it, the rest depend."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    _, t = instance(seed, n=n)
    return X, t


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_the_end_depends_on_no_unit_and_on_no_last_bit(seed):
    X, t = plane(seed)
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.standard_normal((2, 2)))
    signs = rng.choice([-1.0, 1.0], X.shape)
    expected, _ = walk(X @ X.T, t)
    cases = [(unit * X, unit) for unit in (1e-6, 1e-3, 1e3, 1e6, 2.0**-20, 2.0**20)]
    cases += [(rows * (1 + size * signs), 1.0) for rows in (X, X @ rotation)
              for size in (0.0, 1e-15, 1e-13, 1e-12)]  # fmt: skip
    cases += [(X + move, 1.0) for move in (10.0, 100.0)]  # b makes up for it
    for rows, unit in cases:
        path = PrintedPath(rows @ rows.T, t, C / unit**2, C_STAR / unit**2)
        for k in range(len(t)):
            path.add(k)
        assert_allclose(path.objective() * unit**2, expected.objective(), rtol=1e-8)
        assert_allclose(path.outputs(), expected.outputs(), atol=1e-8)
        assert_array_equal(path.mu * unit**2 > 1, expected.mu > 1)
        assert path.residual() <= 1e-9 * max(1.0, path.C)


def test_where_rounding_exceeds_an_absolute_cut_the_walk_has_no_end():
    # 100 from the origin the products are 10⁴ and rates are rounded to 1e-10 and worse, on every
    # processor: rows that depend on those in M enter and leave it by turns, in steps of length 0.
    endless = 0
    for seed in (0, 4):
        X, t = plane(seed)
        expected, _ = walk(X @ X.T, t)
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (3, *X.shape))
        for rows in X * (1 + 1e-15 * signs) + 100:
            K = rows @ rows.T
            path, _ = walk(K, t)
            assert_allclose(path.objective(), expected.objective(), rtol=1e-9)
            path = PrintedPath(K, t, C, C_STAR, cut=1e-11, max_steps=200)
            try:
                for k in range(len(t)):
                    path.add(k)
            except Stalled as stalled:
                assert "no end after 200 steps" in str(stalled)
                assert max(step.eta for step in path.steps[-100:]) < 1e-9
                endless += 1
    assert endless >= 3


@pytest.mark.parametrize("seed", range(5))
def test_no_slope_is_left_to_rows_that_depend_on_a_margin_that_is_nearly_flat(seed):
    """Rounding in M is multiplied by the coordinates with respect to M, here up to 10⁴."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 2))
    X[:3] = [[0, 0], [1, 1e-4], [2, 0]]
    X = X @ np.linalg.qr(rng.standard_normal((2, 2)))[0]
    path = PrintedPath(X @ X.T, np.where(np.arange(20) % 2, 1.0, -1.0), C, C_STAR)
    path.row, path.y, path.place = np.arange(20), path.t, np.repeat(["M", "A", "O"], [3, 1, 16])
    path.alpha = path.mu = np.zeros(20)
    slopes = [slope for name, _, _, slope, _ in path.inequalities(*path.direction())
              if name in ("(15)", "(21)", "(22)")]  # fmt: skip
    assert slopes == [0.0] * 17


def test_a_guard_reports_too_many_steps():
    with pytest.raises(Stalled, match="no end after 2 steps"):
        walk(*instance(0), max_steps=2)
