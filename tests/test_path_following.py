"""Path following: optimality after every operation, energy, cross-over, blocks, the estimator."""

import copy
import itertools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.svm import SVC

from s3vm_lib import CCCPS3VM, ILS3VM
from s3vm_lib.checks import brute_force
from s3vm_lib.gram import KernelStore
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem
from s3vm_lib.path_following import Follower, _estimator
from s3vm_lib.path_following._algebra import append, delete, solve_bordered, triangular
from s3vm_lib.reference import path_following as twin
from s3vm_lib.reference import path_steps
from s3vm_lib.utils.threads import thread_count

LINEAR, POLY, RBF = Kernel("linear"), Kernel("poly", 0.4, 2, 1.0), Kernel("rbf", 0.5)
ORDERS = ("simultaneous", "finite")
KERNELS = [LINEAR, POLY, RBF]
C, C_STAR = 2.0, 0.5


def remove(machine, ids):
    """Take rows out of a solution."""
    machine.leave(ids)
    machine.run()


def name_of(kernel):
    return kernel.name


def clouds(n=60, d=3, labeled=0.3, seed=0, kind="gauss"):
    """(X, t): two overlapping clouds in random order, labels −1 and +1, 0 for unlabeled rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if kind == "ties":
        X = np.round(X)
    elif kind == "copies":
        X = X[rng.integers(0, max(n // 4, 1), n)]
    elif kind == "line":
        X = np.round(3 * X[:, :1]) / 2
    elif kind == "binary":
        X = (X > 0.3).astype(float)
    t = np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > X[:, 0].mean(), 1.0, -1.0)
    t[rng.random(n) > labeled] = 0
    t[:2] = [1.0, -1.0]
    return X, t


def weights(t, C_star=C_STAR):
    return np.where(t == 0, C_star, C)


def follower(X, t, kernel=RBF, storage="full", C_star=C_STAR, **options):
    """A follower that knows all rows, none of which takes part yet, and their positions."""
    store = KernelStore(kernel, storage)
    ids = store.append(X)
    machine = Follower(store, **options)
    machine.take(ids, t, weights(t, C_star))
    return machine, ids


def learn(machine, ids, update="path"):
    """Rows take part one by one, with another ``update`` all at once."""
    for group in np.reshape(ids, (-1, 1)) if update == "path" else [ids]:
        machine.learn(group, update == "block")


def conditions(machine, X, kernel, t, part):
    """Largest violation, from α, b and the signs of outputs alone, and error of the outputs."""
    alpha, f, b, rho = machine.read(np.arange(len(t)))
    true = kernel.gram(X) @ alpha + rho * alpha + b
    out = np.abs(true - f)[part].max(initial=0)
    f = true[part]
    s = np.where(t == 0, np.where(true < 0, -1.0, 1.0), t)[part]
    a, c, z = s * alpha[part], weights(t)[part], s * f
    unbound = np.where(a < c - 1e-9, 1 - z, 0)
    used = np.where(a > 1e-9, z - 1, 0)
    rest = np.abs(alpha[~part]).max(initial=abs(alpha.sum()))
    return max(np.max(p, initial=rest) for p in (unbound, used, -a, a - c)), out


def problem_of(kernel, C_star=C_STAR):
    return Problem(LabeledLoss("hinge"), UnlabeledLoss("symmetric_hinge"), C, C_star, kernel)


# --- The linear system ----------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 7, 80])
def test_the_factor_follows_the_margin_set(m):
    rng = np.random.default_rng(m)
    B = rng.standard_normal((m + 1, m + 1))
    K, sigma = B @ B.T + np.eye(m + 1), 3.0
    R, work = np.zeros((m + 3, m + 3)), np.zeros(m + 3)
    for k in range(m + 1):
        work[:k] = K[:k, k] + sigma
        assert append(R, k, work, K[k, k] + sigma, 1e-12)
    U = np.triu(R[: m + 1, : m + 1])
    assert_allclose(U.T @ U, K + sigma, atol=1e-10)
    for gone in ([0], [m // 2], [m], [0, m], range(m // 3, m), range(0, m, 3)):
        S, places = R.copy(), np.array(gone, dtype=int)
        delete(S, m + 1, places, np.zeros((len(places), m + 1)))
        keep = np.delete(np.arange(m + 1), places)
        U = np.triu(S[: keep.size, : keep.size])
        assert_allclose(U.T @ U, K[np.ix_(keep, keep)] + sigma, atol=1e-9)
    r = rng.standard_normal(m + 1)
    beta = np.append(r, [0.0, 0.0])
    delta = solve_bordered(R, m + 1, sigma, 0.7, beta, np.zeros(m + 3))
    H = np.block([[np.zeros((1, 1)), np.ones((1, m + 1))], [np.ones((m + 1, 1)), K]])
    assert_allclose(np.append(delta, beta[: m + 1]), np.linalg.solve(H, np.append(0.7, r)))


def test_lapack_solves_with_the_factor_where_it_lies():
    rng = np.random.default_rng(0)
    R = rng.standard_normal((9, 9)) + 5 * np.eye(9)
    U, B = np.triu(R[:6, :6]), rng.standard_normal((3, 6))
    assert_allclose(triangular(R, 6, B.T.copy(order="F")), np.linalg.solve(U.T, B.T))
    assert_allclose(triangular(R, 6, B[0].copy(), 1), np.linalg.solve(U, B[0]))
    X = B.copy()
    triangular(R, 6, X.T)
    assert_allclose(X, np.linalg.solve(U.T, B.T).T)  # in place: nothing was copied


def test_a_pivot_lost_in_rounding_is_raised():
    R = np.ones((2, 2))
    assert not append(R, 1, np.ones(1), 1.0, 1e-8)
    assert R[1, 1] == pytest.approx(1e-4)


# --- Optimality after every operation -------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("storage", ["full", "rows"])
@pytest.mark.parametrize("kind", ["gauss", "ties", "copies", "line", "binary"])
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_optimal_after_every_row_that_comes_or_goes(kernel, kind, storage, order):
    X, t = clouds(40, kind=kind, seed=3)
    machine, _ids = follower(X, t, kernel, storage, order=order)
    part = np.zeros(40, dtype=bool)
    rng = np.random.default_rng(0)
    for k in np.r_[np.arange(40), rng.permutation(40)[:30]]:
        if part[k]:
            remove(machine, [k])
        else:
            machine.learn([k])
        part[k] = not part[k]
        assert machine.finish() < 1e-9
        violation, error = conditions(machine, X, kernel, t, part)
        assert violation < 1e-9
        assert error < 1e-9
    assert machine.fallbacks == 0


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_rows_computed_on_demand_are_those_of_the_matrix(kernel):
    X, t = clouds(120, seed=1)
    stored, ids = follower(X, t, kernel, "full")
    cached, _ = follower(X, t, kernel, "rows")
    for machine in (stored, cached):
        learn(machine, ids)
        remove(machine, ids[::3])
        machine.finish()
    for a, b in zip(stored.read(ids), cached.read(ids), strict=True):
        assert_allclose(a, b, atol=1e-12)
    if kernel is not LINEAR:
        assert 0 < np.count_nonzero(cached.store.view.owner >= 0) < 120


def test_a_cache_smaller_than_the_margin_set_grows():
    X, t = clouds(150, d=10, seed=1)
    kernel = Kernel("rbf", 0.3)
    store = KernelStore(kernel, "rows", megabytes=1e-6)
    machine = Follower(store)
    machine.take(store.append(X), t, weights(t))
    before = store.view.owner.size
    learn(machine, np.arange(150))
    assert machine.finish() < 1e-9
    assert machine.n_margin > before
    whole, ids = follower(X, t, kernel)
    learn(whole, ids)
    whole.finish()
    assert_allclose(machine.objective, whole.objective, rtol=1e-12)


def test_rows_are_taken_with_all_kernel_rows_of_the_path_in_memory():
    X, t = clouds(150, d=10, seed=1)
    store = KernelStore(Kernel("rbf", 0.3), "rows", megabytes=1e-6)
    machine = Follower(store)
    machine.take(store.append(X[:140]), t[:140], weights(t)[:140])
    learn(machine, np.arange(140))
    machine = copy.deepcopy(machine)  # with a cache as small as it was at first
    assert machine.store.view.owner.size < machine.n_margin
    machine.take(machine.store.append(X[140:]), t[140:], weights(t)[140:])
    assert np.all(machine.store.view.slot[machine.state.M[: machine.n_margin]] >= 0)


def test_a_fit_leaves_room_for_rows_on_the_margin():
    """The first batch after it need not copy the factor."""
    X, t = clouds(220, d=10, seed=1)
    y = np.where(t == 0, -1, t > 0)
    model = ILS3VM(gamma=3.0).fit(X[:200], y[:200])
    (machine,) = model._machines
    factor, before = machine.state.R, machine.n_margin
    assert before > 2 * 32  # more than twice the room of a new one
    model.partial_fit(X[200:], y[200:])
    assert machine.n_margin > before and model._machines[0].state.R is factor
    assert len(factor) <= 1.5 * before + 32


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_sparse_rows(kernel):
    X, t = clouds(50, d=6, seed=2)
    X[np.abs(X) < 0.6] = 0
    dense, ids = follower(X, t, kernel, "rows")
    sparse, _ = follower(sp.csr_matrix(X), t, kernel, "rows")
    for machine in (dense, sparse):
        learn(machine, ids)
        remove(machine, ids[5:15])
        assert machine.finish() < 1e-9
    assert_allclose(sparse.read(ids)[1], dense.read(ids)[1], atol=1e-10)


def test_a_matrix_that_outgrows_its_memory_becomes_a_cache():
    X, t = clouds(300, seed=4)
    store = KernelStore(RBF, "full", megabytes=0.5)
    machine = Follower(store)
    for start in range(0, 300, 20):
        ids = store.append(X[start : start + 20])
        machine.take(ids, t[ids], weights(t)[ids])
        learn(machine, ids)
        assert machine.finish() < 1e-9
    assert store.storage == "rows"
    whole, ids = follower(X, t)
    for start in range(0, 300, 20):
        learn(whole, ids[start : start + 20])
        whole.finish()
    assert_allclose(machine.objective, whole.objective, rtol=1e-10)


def test_compaction_changes_nothing():
    X, t = clouds(80, seed=5)
    for storage, kernel in (("full", RBF), ("rows", RBF), ("full", LINEAR)):
        machine, ids = follower(X, t, kernel, storage)
        learn(machine, ids)
        remove(machine, ids[::2])
        machine.finish()
        before = machine.read(ids[1::2])
        machine.store.compact(ids[1::2])
        machine.compact(ids[1::2])
        after = machine.read(np.arange(40))
        for a, b in zip(before, after, strict=True):
            assert_array_equal(a, b)
        new = machine.store.append(X[:10])
        machine.take(new, t[:10], weights(t)[:10])
        learn(machine, new)
        assert machine.finish() < 1e-9
        rows = np.r_[X[1::2], X[:10]]
        alpha, f, b, rho = machine.read(np.arange(50))
        assert_allclose(kernel.gram(rows) @ alpha + rho * alpha + b, f, atol=1e-9)
        # Once more, now that the rows of a full matrix are of different lengths.
        remove(machine, np.arange(0, 50, 3))
        machine.finish()
        keep = np.flatnonzero(np.arange(50) % 3)
        machine.store.compact(keep)
        machine.compact(keep)
        new = machine.store.append(X[10:20:2])
        machine.take(new, t[10:20:2], weights(t)[10:20:2])
        learn(machine, new, "together")
        assert machine.finish() < 1e-9
        rows = np.r_[rows[keep], X[10:20:2]]
        alpha, f, b, rho = machine.read(np.arange(len(rows)))
        assert_allclose(kernel.gram(rows) @ alpha + rho * alpha + b, f, atol=1e-9)


# --- Against an interior-point method: the paper's problem with 2u copies, corrected --------------


def doubled_by_cvxpy(K, t, s):
    """Value of problem (6), with μ given by the signs s and the bounds (7)-(8) corrected."""
    cp = pytest.importorskip("cvxpy")
    n, U = t.size, np.flatnonzero(t == 0)
    rows = np.r_[np.flatnonzero(t), U, U]
    y = np.r_[t[t != 0], np.ones(U.size), -np.ones(U.size)]
    mu = np.r_[np.zeros(n - U.size), np.where(s[U] < 0, C_STAR, 0), np.where(s[U] > 0, C_STAR, 0)]
    c = np.r_[np.full(n - U.size, C), np.full(2 * U.size, C_STAR)]
    lower, upper = np.where(y > 0, -mu, mu - c), np.where(y > 0, c - mu, mu)
    L = np.linalg.cholesky(K)
    alpha = cp.Variable(rows.size)
    goal = cp.sum_squares(L[rows].T @ alpha) / 2 - y @ alpha
    program = cp.Problem(cp.Minimize(goal), [cp.sum(alpha) == 0, alpha >= lower, alpha <= upper])
    tight = dict(tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13, max_iter=400)
    program.solve(solver=cp.CLARABEL, **tight)
    single = np.zeros(n)
    np.add.at(single, rows, alpha.value)
    return float(program.value), single


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_the_dual_equals_that_of_the_doubled_problem(kernel, seed):
    X, t = clouds(36, seed=seed)
    machine, ids = follower(X, t, kernel)
    learn(machine, ids)
    machine.finish()
    alpha, f, _b, rho = machine.read(ids)
    s = np.where(t == 0, np.where(f < 0, -1.0, 1.0), t)
    K = kernel.gram(X) + rho * np.eye(36)
    value, single = doubled_by_cvxpy(K, t, s)
    # Where the sign is s, the other copy is inert, and the linear parts are the same.
    assert_allclose(-machine.objective, value, rtol=1e-9)
    assert_allclose(K @ alpha, K @ single, atol=1e-4)


# --- The incremental SVM --------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_without_unlabeled_losses_it_is_the_svm_after_every_operation(kernel):
    X, t = clouds(50, labeled=0.8, seed=6)
    machine, _ids = follower(X, t, kernel, C_star=0.0)
    part = np.zeros(50, dtype=bool)
    K = kernel.gram(X)
    rng = np.random.default_rng(1)
    for step, k in enumerate(np.r_[np.arange(50), rng.permutation(50)[:25]]):
        if part[k]:
            remove(machine, [k])
        else:
            machine.learn([k])
        part[k] = not part[k]
        machine.finish()
        known = np.flatnonzero(part & (t != 0))
        if step < 2 or np.unique(t[known]).size < 2:
            continue
        svc = SVC(C=C, kernel="precomputed", tol=1e-10).fit(K[np.ix_(known, known)], t[known])
        found, expected = machine.read(known)[1], svc.decision_function(K[np.ix_(known, known)])
        assert_allclose(found, expected, atol=3e-5)
    assert machine.n_flips == 0


# --- Energy: Theorem 3 ----------------------------------------------------------------------------


def steps_of(seed, kernel, kind):
    X, t = clouds(80, labeled=0.15, seed=seed, kind=kind)
    machine, ids = follower(X, t, kernel, record=True, C_star=1.0)
    learn(machine, ids)
    machine.finish()
    return machine


def test_energy_falls_with_the_new_sample_and_rises_with_flips():
    """Theorem 3 in its two pure cases; the mixed one, which it does not name, does both."""
    logged, rises_in_mixed, falls_in_mixed = 0, 0, 0
    for seed in range(24):
        machine = steps_of(seed, KERNELS[seed % 3], "ties" if seed % 4 == 3 else "gauss")
        log = machine.take_log()
        change = log["energy"] - log["energy_before"]
        small = 1e-9 * (1 + np.abs(log["energy"]))
        assert np.all(change[log["case"] == 0] <= small[log["case"] == 0])
        # An event may add the jump of the copy that hands over, which is not negative either.
        assert np.all(change[log["case"] == 1] >= -small[log["case"] == 1])
        mixed = log["case"] == 2
        rises_in_mixed += np.sum(change[mixed] > small[mixed])
        falls_in_mixed += np.sum(change[mixed] < -small[mixed])
        logged += np.sum(~mixed)
    assert rises_in_mixed > 20
    assert falls_in_mixed > 20
    assert logged > 3000


def test_the_energy_that_is_kept_is_the_energy():
    for seed in range(4):
        machine = steps_of(seed, KERNELS[seed % 3], "gauss")
        kept = machine.log[-1][2]
        assert_allclose(kept, machine.energy(), rtol=1e-8)
        log = machine.take_log()
        assert machine.log == []
        assert np.all(log["energy"][:-1] <= log["energy_before"][1:] + 1e-9)


def test_minus_the_energy_is_the_objective():
    X, t = clouds(60, seed=7)
    for kernel in KERNELS:
        machine, ids = follower(X, t, kernel)
        learn(machine, ids)
        machine.finish()
        alpha, f, b, _rho = machine.read(ids)
        norm2 = alpha @ (f - b)
        assert_allclose(machine.objective, problem_of(kernel).value(f, t, norm2), rtol=1e-12)


# --- Orders, blocks, cross-over -------------------------------------------------------------------


def test_the_finite_order_goes_from_vertex_to_vertex():
    """With signs frozen between them, the convex optima that follow one another fall strictly."""
    flips = 0
    for seed in range(8):
        X, t = clouds(60, labeled=0.15, seed=seed)
        machine, ids = follower(X, t, order="finite", C_star=1.0, record=True)
        for k in ids:
            first = len(machine.log)
            machine.learn([k])
            log = machine.log[first:]
            cases = [int(row[-1]) for row in log]
            assert 2 not in cases
            # J at a vertex is −W where all have arrived, one flip at the least later it is lower.
            vertices = [-row[2] for row in log if row[3] == 0 and row[-1] == 1]
            assert np.all(np.diff(vertices) < 1e-9)
            flips += sum(case == 1 for case in cases)
        assert machine.finish() < 1e-9
        assert machine.counters()["n_back_flips"] == 0
    assert flips > 30


@pytest.mark.parametrize("update", ["path", "together", "block"])
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_many_rows_at_once(kernel, update):
    for seed in range(4):
        X, t = clouds(90, d=5, seed=seed)
        machine, ids = follower(X, t, kernel)
        learn(machine, ids[:60], update)
        assert machine.finish() < 1e-9
        learn(machine, ids[60:], update)
        assert machine.finish() < 1e-9
        machine.leave(ids[10:40])
        machine.run()
        assert machine.finish() < 1e-9
        part = np.ones(90, dtype=bool)
        part[10:40] = False
        violation, error = conditions(machine, X, kernel, t, part)
        assert max(violation, error) < 1e-9


def test_newton_steps_where_the_margin_set_is_large():
    """Rows come and go by Newton steps alone: many leave M at once, and the path has no work."""
    kernel, rng = Kernel("rbf", 0.05), np.random.default_rng(0)
    X, t = clouds(300, d=30, seed=0)
    machine, ids = follower(X, t, kernel)
    learn(machine, ids[:200], "together")
    machine.finish()
    assert machine.n_margin > 100
    assert machine.mode() == "block"
    rounds = smaller = 0
    for part in np.split(rng.permutation(ids[200:]), 10):
        before = machine.n_iter, machine.n_margin
        learn(machine, part, "block")
        rounds += machine.n_iter - before[0]
        smaller += machine.n_margin < before[1]
        assert machine.finish() < 1e-9
    violation, error = conditions(machine, X, kernel, t, np.ones(300, dtype=bool))
    assert max(violation, error) < 1e-9
    assert rounds < 60
    assert smaller > 0
    alpha, f, b, rho = machine.read(ids)
    f -= rho * alpha
    norm2 = alpha @ (f - b)
    assert_allclose(
        machine.value(machine.of_leaving()), problem_of(kernel).value(f, t, norm2), rtol=1e-12
    )


def test_rows_that_newton_steps_left_beyond_their_box_may_go(monkeypatch):
    kernel = Kernel("rbf", 0.1)
    X, t = clouds(200, d=10, seed=4)
    machine, ids = follower(X, t, kernel)
    learn(machine, ids[:100], "together")
    machine.finish()
    with monkeypatch.context() as patch:
        patch.setattr(machine, "run", lambda max_steps: False)  # no path after the Newton steps
        machine.learn(ids[100:160], block=True)
    gone = machine.sets(ids)["A"]
    alpha, f = machine.read(gone)[:2]
    c = weights(t)[gone]
    # Among them some that had just left M, with outputs at the margin.
    assert np.sum((np.abs(np.abs(f) - 1) < 1e-9) & (f * alpha > c)) >= 3
    machine.leave(gone)
    learn(machine, ids[160:], "block")
    assert machine.finish() < 1e-9
    part = np.ones(200, dtype=bool)
    part[gone] = False
    violation, error = conditions(machine, X, kernel, t, part)
    assert max(violation, error) < 1e-9


def test_without_unlabeled_rows_every_update_finds_the_same():
    X, t = clouds(80, d=5, labeled=1.0, seed=2)
    for kernel in KERNELS:
        values = []
        for update in ("path", "together", "block"):
            machine, ids = follower(X, t, kernel)
            learn(machine, ids[:40])
            learn(machine, ids[40:], update)
            machine.finish()
            values.append(machine.read(ids)[1])
        assert_allclose(values[1], values[0], atol=1e-7)
        assert_allclose(values[2], values[0], atol=1e-7)


def test_an_unlabeled_row_with_the_sign_that_its_output_contradicts_counts_as_a_violation():
    x, t, c = np.array([1.0, -1.0, 0.25]), np.array([1.0, -1.0, 0.0]), np.array([0.3, 0.25, 0.05])
    store = KernelStore(LINEAR)
    ids = store.append(x[:, None])
    machine = Follower(store)
    machine.take(ids, t, c)
    # All are in E, Σα = 0, and outputs are wx with w = Σαx: optimal but for the last sign.
    s = np.array([1.0, -1.0, -1.0])
    machine.start(s * c, s)
    w = 0.3 * 1.0 + 0.25 * 1.0 - 0.05 * 0.25
    assert_allclose(machine.finish(follow_up=False), 0.25 * w, rtol=1e-6)
    assert machine.finish() < 1e-9
    assert machine.n_flips == 1


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_cross_over_from_cccp_keeps_the_solution(kernel):
    agree = 0
    for seed in range(6):
        X, t = clouds(70, seed=seed)
        y = np.where(t == 0, -1, (t > 0).astype(int))
        options = dict(kernel=kernel.name, gamma=kernel.gamma, degree=2, coef0=1.0, C=C)
        cccp = CCCPS3VM(
            unlabeled_loss="symmetric_hinge", balance=None, C_star=C_STAR, tol=1e-6, **options
        ).fit(X, y)
        model = ILS3VM(C_star=C_STAR, start_tol=1e-5, **options).fit(X, y)
        assert model.residual_ < 1e-9
        assert cccp.problem_ == model.problem_
        agree += abs(cccp.objective_ - model.objective_) < 1e-4 * model.objective_
    assert agree >= 5


def test_a_sum_of_the_dual_variables_other_than_0_counts_in_the_residual():
    X, t = clouds(70)
    model = ILS3VM(C=C, C_star=C_STAR).fit(X, np.where(t == 0, -1, (t > 0).astype(int)))
    machine = model._machines[0]
    rows, c = machine.state.x[:70], np.where(t == 0, C_STAR, C)
    inside = (np.abs(rows["alpha"]) > 0.1 * c) & (np.abs(rows["alpha"]) < 0.9 * c)
    rows["alpha"][np.flatnonzero(inside)[0]] += 1e-3
    assert_allclose(machine.residual(), 1e-3, rtol=1e-6)


@pytest.mark.parametrize("change", [1e-3, -1e-3])
def test_outputs_on_either_side_of_their_margin_count_in_the_residual(change):
    X, t = clouds(70)
    model = ILS3VM(C=C, C_star=C_STAR).fit(X, np.where(t == 0, -1, (t > 0).astype(int)))
    rows, c = model._machines[0].state.x[:70], np.where(t == 0, C_STAR, C)
    inside = (np.abs(rows["alpha"]) > 0.1 * c) & (np.abs(rows["alpha"]) < 0.9 * c)
    for i in np.flatnonzero(inside):
        rows["f"][i] += change
        assert_allclose(model._machines[0].residual(), abs(change), rtol=1e-6)
        rows["f"][i] -= change


def test_the_residual_is_the_largest_of_all_problems(monkeypatch, semi_supervised):
    X, y = semi_supervised(n=30, n_labeled=18, n_classes=3)
    machine = type(ILS3VM().fit(X, y)._machines[0])
    for residuals in ([3.0, 1.0, 2.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]):
        machines = []

        def residual(self, machines=machines, residuals=residuals):
            if self not in machines:
                machines.append(self)
            return residuals[machines.index(self)]

        monkeypatch.setattr(machine, "residual", residual)
        assert ILS3VM().fit(X, y).residual_ == 3.0
        assert len(machines) == 3


def test_a_coarse_start_is_followed_up():
    for seed in range(5):
        X, t = clouds(70, seed=seed)
        y = np.where(t == 0, -1, (t > 0).astype(int))
        model = ILS3VM(C=C, C_star=C_STAR, start_tol=0.5).fit(X, y)
        assert model.residual_ < 1e-9
        assert model.termination_condition_ == "converged"


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_a_row_that_comes_and_goes_leaves_nothing_behind(kernel):
    same = 0
    for seed in range(6):
        X, t = clouds(50, seed=seed)
        machine, ids = follower(X, t, kernel)
        learn(machine, ids[:40])
        machine.finish()
        for k in ids[40:]:
            f, J = machine.read(ids[:40])[1], machine.objective
            machine.learn([k])
            machine.finish()
            remove(machine, [k])
            machine.finish()
            after = machine.read(ids[:40])[1]
            if np.all((after > 0) == (f > 0)):
                same += 1
                assert_allclose(after, f, atol=1e-9)
                assert_allclose(machine.objective, J, rtol=1e-10)
    assert same >= 50


# --- Global optima and local minima ---------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_never_below_the_global_optimum(kernel):
    hits = 0
    for seed in range(6):
        X, t = clouds(14, labeled=0.3, seed=seed)
        t[10:] = 0
        best = brute_force(problem_of(kernel), kernel.gram(X), t).objective
        lowest = np.inf
        for order in ORDERS:
            machine, ids = follower(X, t, kernel, order=order)
            learn(machine, ids)
            machine.finish()
            assert machine.objective >= best - 1e-6 * (1 + best)
            lowest = min(lowest, machine.objective)
        hits += lowest < best + 1e-5 * (1 + best)
    assert hits >= 3


def test_a_solution_is_a_local_minimum():
    rng = np.random.default_rng(0)
    for seed in range(4):
        X, t = clouds(50, seed=seed)
        machine, ids = follower(X, t)
        learn(machine, ids)
        machine.finish()
        alpha, f, b, rho = machine.read(ids)
        K = RBF.gram(X) + rho * np.eye(50)
        problem, J = problem_of(RBF), machine.objective
        for _ in range(100):
            v, step = rng.standard_normal(50), 10 ** rng.uniform(-6, -2)
            moved = alpha + step * v
            out = K @ moved + b + step * rng.standard_normal()
            if np.all((out > 0) == (f > 0)):
                assert problem.value(out, t, moved @ K @ moved) >= J - 1e-10


# --- The twin -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_equals_the_twin(kernel, seed):
    X, t = clouds(40, seed=seed)
    machine, ids = follower(X, t, kernel, record=True)
    _, _, _, rho = machine.read(ids)
    K, plain = kernel.gram(X) + rho * np.eye(40), twin.empty(40)
    for k in ids:
        twin.insert(K, plain, k, t[k], weights(t)[k])
        machine.learn([k])
    for k in ids[5:20]:
        twin.remove(K, plain, k)
        remove(machine, [k])
    machine.finish()
    alpha, f, b, _ = machine.read(ids)
    assert_allclose(plain.alpha, alpha, atol=1e-10)
    assert_allclose(plain.f, f, atol=1e-10)
    assert_allclose(plain.b, b, atol=1e-10)
    sets = machine.sets(ids)
    for name in "OMEA":
        assert_array_equal(np.flatnonzero(plain.sets == name), sets[name])
    moves = sum(event != " " for _, event, _ in plain.history)
    assert abs(moves - np.sum(machine.take_log()["event"] != 0)) <= 4


# --- Stress ---------------------------------------------------------------------------------------


def stress(runs, size, operations, seed):
    """Random adds and removes; returns operations, worst residual and the guards."""
    done, worst, restored, guards = 0, 0.0, 0, []
    kinds = ["gauss", "ties", "copies", "line", "binary"]
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        kernel = KERNELS[run % 3]
        X, t = clouds(size, labeled=0.3, seed=1000 + run, kind=kinds[run % 5])
        order = ORDERS[run % 4 == 3]
        machine, ids = follower(X, t, kernel, "rows" if run % 2 else "full", order=order)
        part = np.zeros(size, dtype=bool)
        for step in range(operations):
            k = rng.integers(size)
            if part[k]:
                remove(machine, [k])
                machine.take(ids[k : k + 1], t[k : k + 1], weights(t)[k : k + 1])
            else:
                check = step % 10 == 9
                if check:
                    machine.finish()
                    before, J = machine.read(np.flatnonzero(part))[1], machine.objective
                machine.learn([k])
                if check:
                    machine.finish()
                    remove(machine, [k])
                    machine.finish()
                    after = machine.read(np.flatnonzero(part))[1]
                    if np.all((after > 0) == (before > 0)):
                        restored += 1
                        assert abs(machine.objective - J) <= 1e-10 * (1 + abs(J))
                        # Where M is empty b has an interval to itself.
                        change = np.ptp(after - before) if part.any() else 0.0
                        assert change <= 1e-10 * (1 + np.abs(before).max(initial=0))
                    machine.take(ids[k : k + 1], t[k : k + 1], weights(t)[k : k + 1])
                    machine.learn([k])
                    done += 2
            part[k] = not part[k]
            done += 1
            worst = max(worst, machine.finish())
        violation, error = conditions(machine, X, kernel, t, part)
        worst = max(worst, violation, error)
        guards.append(machine.counters())
    return done, worst, restored, guards


TIED = ([[1.0, -1.0], [0.0, 0.0], [0.0, 0.0], [-1.0, -2.0]], (1, -1, -1, 1), (2, 0.25, 1, 0.5))


def tied_instances():
    """`TIED`, and rows on three places of a line with all labels and weights that meet."""
    yield TIED
    for X in itertools.product((-1.0, 0.0, 1.0), repeat=4):
        for t in itertools.product((-1, 1), repeat=3):
            yield np.array(X)[:, None], (1, *t), (0.25, 0.5, 0.25, 1.0)


@pytest.mark.parametrize("way", ["twin", "steps", "library"])
def test_ties_and_copies_end_at_the_optimum(way):
    """Copies meet the margin together, one of them under way: no set becomes singular.

    The right value is the optimum by LIBSVM, with the best offset for its f.
    """
    for number, (X, t, u) in enumerate(tied_instances()):
        if number % (9 if way == "library" else 3):
            continue
        X, t, u = np.array(X), np.array(t), np.array(u)
        K, dual = X @ X.T, np.zeros(4)
        if np.ptp(t):
            svc = SVC(kernel="precomputed", C=1.0, tol=1e-12).fit(K, t, sample_weight=u)
            dual[svc.support_] = svc.dual_coef_[0]
        if way == "library":
            model = ILS3VM(kernel="linear")
            for k in range(4):
                row = slice(k, k + 1)
                model.partial_fit(X[row], np.maximum(t[row], 0), u[row], classes=[0, 1])
            found = np.zeros(4)
            found[model.support_] = model.dual_coef_[0]
        elif way == "twin":
            p = twin.empty(4)
            for k in range(4):
                twin.insert(K, p, k, t[k], u[k])
            found = p.alpha
        else:
            p = path_steps.empty(4)
            for k in range(4):
                path_steps.add(K, p, k, t[k], u[k])
            found = p.beta
        J, best = (
            0.5 * one @ K @ one + min(u @ np.maximum(0, 1 - t * (K @ one + b)) for b in t - K @ one)
            for one in (found, dual)
        )
        assert J == pytest.approx(best, abs=1e-6)


def test_stress_in_small():
    done, worst, restored, guards = stress(30, 25, 60, seed=0)
    assert done > 1500
    assert worst < 1e-9
    assert restored > 40
    assert max(g["longest_zero_run"] for g in guards) < 100


@pytest.mark.nightly
def test_stress():
    done, worst, restored, guards = stress(360, 40, 520, seed=1)
    assert done >= 200_000
    assert worst < 1e-9
    assert restored > 5000
    assert max(g["longest_zero_run"] for g in guards) < 1000
    assert sum(g["fallbacks"] for g in guards) <= 5


# --- The estimator --------------------------------------------------------------------------------


def labels(t):
    """Labels of estimators: classes 0 and 1, and −1 for unlabeled."""
    return np.where(t == 0, -1, (t > 0).astype(int))


def agrees_with_scratch(model, X, y, weight=None):
    """Whether the attributes are those of a solution of the problem on these rows."""
    assert model.residual_ < 1e-9
    assert model.transduction_.shape == (len(y),)
    labeled = y >= 0
    assert_array_equal(model.transduction_[labeled], y[labeled])
    f = model.decision_function(X)
    assert_array_equal(model.transduction_[~labeled], (f[~labeled] > 0).astype(int))
    weight = np.ones(len(y)) if weight is None else weight
    t = np.where(labeled, 2.0 * (y == 1) - 1, 0.0)
    norm2 = model.dual_coef_[0] @ (f[model.support_] - model.intercept_[0])
    value = model.problem_.value(f, t, norm2, sample_weight=weight)
    assert_allclose(value, model.objective_, rtol=1e-6)
    sizes = {name: part.size for name, part in model.partition_.items()}
    kept = np.sum(weight * np.where(labeled, model.problem_.C, model.problem_.C_star) > 0)
    assert sum(sizes.values()) == kept
    assert sizes["A"] == 0
    assert_allclose(np.abs(f[model.partition_["M"]]), 1, atol=1e-6)
    assert set(model.support_) <= set(model.partition_["M"]) | set(model.partition_["E"])


@pytest.mark.parametrize("update", ["auto", "path", "together", "block"])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_rows_come_and_go(kernel, update):
    X, t = clouds(90, seed=3)
    y = labels(t)
    model = ILS3VM(kernel=kernel, gamma=0.5, coef0=1.0, C=C, C_star=C_STAR, update=update)
    model.fit(X[:40], y[:40])
    agrees_with_scratch(model, X[:40], y[:40])
    model.partial_fit(X[40:41], y[40:41]).partial_fit(X[41:80], y[41:80])
    agrees_with_scratch(model, X[:80], y[:80])
    gone = np.r_[3, 17, 79, 50:60]
    model.forget(gone)
    agrees_with_scratch(model, np.delete(X[:80], gone, 0), np.delete(y[:80], gone))
    model.partial_fit(X[80:], y[80:])
    X, y = np.r_[np.delete(X[:80], gone, 0), X[80:]], np.r_[np.delete(y[:80], gone), y[80:]]
    agrees_with_scratch(model, X, y)
    if kernel != "linear":
        assert_allclose(model.support_vectors_, X[model.support_])
    # Negative positions count from the end, and most of the rows may go.
    model.forget(-1).forget(np.arange(2, 75))
    agrees_with_scratch(model, X[[0, 1, 75]], y[[0, 1, 75]])


def test_a_stream_from_nothing():
    X, t = clouds(70, seed=4)
    y = labels(t)
    model = ILS3VM(kernel="rbf", gamma=0.5, C_star=0.3)
    for k in range(70):
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
        agrees_with_scratch(model, X[: k + 1], y[: k + 1])
    assert model.gram_ == "rows"
    model.forget(np.arange(70))
    assert model.transduction_.size == model.support_.size == 0
    assert np.ptp(model.decision_function(X)) == 0
    agrees_with_scratch(model.partial_fit(X, y), X, y)


def supervised_optimum(kernel, X, y):
    """J of the SVM by LIBSVM; 0 with one class, C = 1."""
    if np.ptp(y) == 0:
        return 0.0
    K, t = kernel.gram(X - X.mean(axis=0) if kernel.name == "linear" else X), 2.0 * y - 1
    found = SVC(kernel="precomputed", tol=1e-10).fit(K, y)
    dual = np.zeros(y.size)
    dual[found.support_] = found.dual_coef_[0]
    return 0.5 * dual @ K @ dual + np.maximum(0, 1 - t * found.decision_function(K)).sum()


@pytest.mark.parametrize("kernel", [*KERNELS, Kernel("laplacian", 0.5)], ids=name_of)
def test_a_stream_of_rows_that_begins_with_one_class_ends_at_the_optimum(kernel):
    """One row a call, with copies and ties, far from the origin, in other units; some rows go.

    The first rows are of one class: the margin set then holds a row whose α is 0, while the size
    of the kernel matrix is still unknown.
    """
    rng = np.random.default_rng(0)
    far = [([[-1.0], [6.0], [5.0]], [0, 0, 1])]
    for k in range(30):
        n, d = rng.integers(3, 9), rng.integers(1, 4)
        X = rng.integers(-6, 7, (n, d)) if k % 2 else 3 * rng.standard_normal((n, d))
        unit, shift = (1.0, 0.0) if kernel.name == "poly" else ([1, 0.1, 10][k % 3], k % 4 * 1e3)
        far.append((unit * (X + shift), np.sort(rng.integers(0, 2, n))))
    for X, y in far:
        X, y = np.array(X), np.array(y)
        parameters = dict(kernel=kernel.name, gamma=kernel.gamma, degree=2, coef0=1.0)
        model, kept = ILS3VM(**parameters), np.arange(0)
        for k in range(y.size):
            model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
            kept = np.append(kept, k)
            if k % 4 == 3:
                model.forget([1])
                kept = np.delete(kept, 1)
            assert model.termination_condition_ == "converged"
            assert model.residual_ < 1e-8
            rho = model._machines[0].now["rho"]
            expected = supervised_optimum(kernel, X[kept], y[kept])
            assert abs(model.objective_ - expected) <= 1e-6 * expected + 2 * rho * kept.size


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("order", ["random", "labels", "unlabeled first"])
def test_the_default_C_star_follows_the_stream(kernel, order):
    """After each row, and after rows have gone, the model is that of `fit` on the rows held."""
    rng = np.random.default_rng(3)
    t = rng.integers(0, 2, 60)
    X = rng.standard_normal((60, 2)) + 2.5 * np.outer(t, [1, 0])
    y = np.where(np.arange(60) % 5, -1, t)
    if order != "random":
        index = np.argsort(t if order == "labels" else y >= 0, kind="stable")
        X, y, t = X[index], y[index], t[index]
    model = ILS3VM(kernel=kernel, gamma=0.5)
    for k in range(60):
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
        seen = y[: k + 1]
        labeled, unlabeled = np.sum(seen >= 0), np.sum(seen < 0)
        if labeled:
            assert model.problem_.C_star == (labeled / unlabeled if unlabeled else 0)
            agrees_with_scratch(model, X[: k + 1], seen)
        if np.unique(seen[seen >= 0]).size == 2:
            found = ILS3VM(kernel=kernel, gamma=0.5).fit(X[: k + 1], seen).objective_
            assert model.objective_ == pytest.approx(found, rel=1e-6)
    gone = np.arange(0, 60, 7)
    X, y = np.delete(X, gone, axis=0), np.delete(y, gone)
    found = ILS3VM(kernel=kernel, gamma=0.5).fit(X, y)
    agrees_with_scratch(model.forget(gone), X, y)
    assert model.problem_.C_star == found.problem_.C_star
    assert model.objective_ == pytest.approx(found.objective_, rel=1e-6)


@pytest.mark.parametrize("gram", ["full", "rows"])
def test_a_path_in_C_star_where_cccp_would_be_too_long(gram, monkeypatch):
    """Weights of rows held change: with few rows more, α follows; a cache takes them in groups."""
    monkeypatch.setattr(_estimator, "_FEW", 0)
    monkeypatch.setattr(_estimator, "_GROWTH", np.inf)
    monkeypatch.setattr(_estimator, "_CHUNK", 16)
    X, t = clouds(120, seed=8)
    y = labels(t)
    model = ILS3VM(gamma=0.5, gram=gram).fit(X[:80], y[:80])
    steps = model.counters_["n_iter"]
    for k in range(80, 120):
        model.partial_fit(X[k : k + 1], y[k : k + 1])
        agrees_with_scratch(model, X[: k + 1], y[: k + 1])
        assert model.problem_.C_star == np.sum(y[: k + 1] >= 0) / np.sum(y[: k + 1] < 0)
        bound = np.where(y[: k + 1] < 0, model.problem_.C_star, 1.0)
        dual = np.zeros(k + 1)
        dual[model.support_] = model.dual_coef_[0]
        assert np.all(np.abs(dual) < bound + 1e-9)
        assert_allclose(np.abs(dual)[model.partition_["E"]], bound[model.partition_["E"]])
    assert model.counters_["n_iter"] > steps


@pytest.mark.parametrize("weighted", [False, True])
def test_first_only_unlabeled_then_only_one_class(weighted):
    X, t = clouds(30, seed=5)
    y = labels(t)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    s = np.where(y < 0, 0.5, 2.0) if weighted else np.ones(30)
    for C_star in (None, 0.5):
        model = ILS3VM(gamma=0.5, C_star=C_star)
        for value in (-1, 0, 1):
            rows = y == value
            model.partial_fit(X[rows], y[rows], s[rows], classes=[0, 1])
        agrees_with_scratch(model, X, y, s)
        if C_star is None:
            assert model.problem_.C_star == pytest.approx(s[y >= 0].sum() / s[y < 0].sum())
        else:
            assert model.problem_.C_star == 0.5


def test_weights_and_rows_without_weight():
    X, t = clouds(60, seed=6)
    y = labels(t)
    weight = np.random.default_rng(0).integers(0, 3, 60).astype(float)
    weight[:2] = 1
    options = dict(gamma=0.5, C_star=0.3)
    model = ILS3VM(**options).fit(X[:30], y[:30], weight[:30])
    model.partial_fit(X[30:], y[30:], weight[30:])
    agrees_with_scratch(model, X, y, weight)
    none = np.flatnonzero(weight == 0)
    model.forget(none[:5])
    X, y, weight = (np.delete(a, none[:5], 0) for a in (X, y, weight))
    agrees_with_scratch(model, X, y, weight)
    model.forget([0, 1, 2])
    agrees_with_scratch(model, X[3:], y[3:], weight[3:])
    by_class = ILS3VM(class_weight={1: 2.0}, **options)
    by_class.partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    by_row = ILS3VM(**options)
    double = np.where(y == 1, 2.0, 1.0)
    by_row.partial_fit(X[:30], y[:30], double[:30]).partial_fit(X[30:], y[30:], double[30:])
    assert_allclose(by_class.decision_function(X), by_row.decision_function(X), atol=1e-9)


def test_sparse_and_dense_rows_come_and_go():
    X, t = clouds(60, d=5, seed=7)
    X[np.abs(X) < 0.5] = 0
    y = labels(t)
    for kernel in ("linear", "rbf", "laplacian"):
        models = []
        for form in (np.asarray, sp.csr_matrix):
            model = ILS3VM(kernel=kernel, gamma=0.5, C_star=0.3)
            model.partial_fit(form(X[:20]), y[:20]).partial_fit(form(X[20:]), y[20:])
            models.append(model.forget([1, 5, 30]))
        f = [model.decision_function(X) for model in models]
        assert_allclose(f[1], f[0], atol=1e-9)
        assert sp.issparse(models[1].support_vectors_)


def test_precomputed_kernels_grow_and_shrink():
    X, t = clouds(50, seed=8)
    y = labels(t)
    K = RBF.gram(X)
    options = dict(C_star=0.3, update="path")
    model = ILS3VM(kernel="precomputed", **options).fit(K[:30, :30], y[:30])
    other = ILS3VM(kernel="rbf", gamma=0.5, **options).fit(X[:30], y[:30])
    model.partial_fit(K[30:40, :40], y[30:40])
    other.partial_fit(X[30:40], y[30:40])
    gone = [2, 35]
    model.forget(gone)
    other.forget(gone)
    kept = np.delete(np.arange(40), gone)
    rows = np.r_[kept, np.arange(40, 50)]
    model.partial_fit(K[np.ix_(np.arange(40, 50), rows)], y[40:])
    other.partial_fit(X[40:], y[40:])
    assert model.n_features_in_ == 48
    f = model.decision_function(K[np.ix_(rows, rows)])
    assert_allclose(f, other.decision_function(X[rows]), atol=1e-9)
    assert not hasattr(model, "support_vectors_")
    before = dict(vars(model))
    for shape in ((2, 48), (2, 51), (50, 50)):
        with pytest.raises(ValueError, match="kernel values between"):
            model.partial_fit(np.ones(shape), np.zeros(shape[0], int))
    assert vars(model) == before
    begun = ILS3VM(kernel="precomputed", **options).partial_fit(K[:30, :30], y[:30])
    begun.partial_fit(K[30:, :], y[30:])
    assert begun.residual_ < 1e-9


def test_three_classes_come_and_go(semi_supervised):
    X, y = semi_supervised(n=90, n_labeled=30, n_classes=3)
    model = ILS3VM(gamma=0.5, C_star=0.1).partial_fit(X[:50], y[:50], classes=[0, 1, 2])
    model.partial_fit(X[50:], y[50:]).forget(np.arange(0, 90, 9))
    kept = np.arange(90) % 9 != 0
    X, y = X[kept], y[kept]
    assert model.residual_ < 1e-9
    assert model.decision_function(X).shape == (80, 3)
    assert len(model.partition_) == len(model.counters_) == 3
    assert_array_equal(model.transduction_[y < 0], model.predict(X[y < 0]))
    for k, problem in enumerate(model.problem_):
        t = np.where(y < 0, 0.0, np.where(y == k, 1.0, -1.0))
        f = model.decision_function(X)[:, k]
        dual = model.dual_coef_[k]
        value = problem.value(f, t, dual @ (f[model.support_] - model.intercept_[k]))
        assert_allclose(value, model.objective_[k], rtol=1e-6)


def test_forgotten_rows_give_their_memory_back():
    X, t = clouds(400, seed=9)
    y = labels(t)
    model = ILS3VM(gamma=0.5, C_star=0.3).fit(X[:100], y[:100])
    for k in range(100, 400, 20):
        model.partial_fit(X[k : k + 20], y[k : k + 20]).forget(np.arange(20))
        assert model._kernel_store.n <= 2 * 100 + 84
        agrees_with_scratch(model, X[k - 80 : k + 20], y[k - 80 : k + 20])


def test_the_recorded_path():
    X, t = clouds(60, seed=1)
    y = labels(t)
    model = ILS3VM(gamma=0.5, C_star=0.5, record=True, update="path").fit(X[:40], y[:40])
    model.partial_fit(X[40:], y[40:])
    path = model.path_
    assert len(path["eta"]) == model.n_iter_ == sum(op.n_iter for op in model.history_)
    assert len(model.history_) == 20
    assert np.all(path["eta"] >= 0)
    assert_allclose(-path["energy"][-1], model.history_[-1].objective, rtol=1e-9)
    assert_allclose(model.history_[-1].objective, model.objective_, rtol=1e-6)
    assert not hasattr(ILS3VM().fit(X, y), "path_")
    totals = model.counters_
    assert totals["n_iter"] >= model.n_iter_
    assert totals["n_flips"] >= sum(op.n_flips for op in model.history_)
    first = len(path["eta"])
    model.forget([0])
    assert 0 < len(model.path_["eta"]) < first + 100
    assert set(model.path_["case"]) <= {0, 1, 2, 4, 5, 6}


def test_stopped_and_limited_calls_are_taken_up_again():
    X, t = clouds(60, seed=2)
    y = labels(t)
    full = ILS3VM(gamma=0.5, C_star=0.5, update="path").fit(X[:40], y[:40])
    for options in (dict(callback=lambda state: True), dict(max_iter=7)):
        model = ILS3VM(gamma=0.5, C_star=0.5, update="path").fit(X[:40], y[:40])
        model.set_params(**options)
        if "max_iter" in options:
            with pytest.warns(ConvergenceWarning, match="max_iter=7"):
                model.partial_fit(X[40:], y[40:])
            assert model.termination_condition_ == "max_iter"
            assert model.n_iter_ == 7
        else:
            model.partial_fit(X[40:], y[40:])
            assert model.termination_condition_ == "stopped"
            assert len(model.history_) == 1
        assert np.all(np.isfinite(model.decision_function(X)))
        model.set_params(callback=None, max_iter=10**6).forget([])
        agrees_with_scratch(model, X, y)
    full.partial_fit(X[40:], y[40:])
    assert_allclose(model.decision_function(X), full.decision_function(X), atol=1e-6)


def test_a_stop_at_the_last_operation_of_a_chunk_keeps_the_other_chunks_back():
    X, t = clouds(700, seed=2)
    y, calls = labels(t), []
    model = ILS3VM(gamma=0.5, C=C, C_star=C_STAR, update="block").fit(X[:100], y[:100])
    model.set_params(callback=lambda state: calls.append(0) or True)
    model.partial_fit(X[100:], y[100:])
    assert len(calls) == len(model.history_) == 1
    assert model.termination_condition_ == "stopped"
    model.forget([])  # goes on with what was left, all of it in one operation
    assert len(calls) == 2
    assert model.termination_condition_ == "converged"
    agrees_with_scratch(model, X, y)


def test_a_stop_where_nothing_is_left_is_none():
    X, t = clouds(60, seed=2)
    model = ILS3VM(gamma=0.5, C=C, C_star=0.0, callback=lambda state: True).fit(X, labels(t))
    assert model.termination_condition_ == "converged"  # with C* = 0 one convex problem is all
    agrees_with_scratch(model, X, labels(t))


@pytest.mark.parametrize("gram", ["full", "rows"])
def test_a_stopped_fit_shows_the_outputs_of_its_coefficients(gram):
    X, t = clouds(120, seed=0)
    calls = []
    model = ILS3VM(gamma=0.5, C=C, C_star=C_STAR, gram=gram, start_tol=1e-5)
    model.set_params(callback=lambda state: calls.append(0) or len(calls) == 2)
    model.fit(X, labels(t))
    assert model.termination_condition_ == "stopped"
    f, dual = model.decision_function(X), np.zeros(120)
    dual[model.support_] = model.dual_coef_[0]
    assert np.all(np.abs(dual) <= weights(t) * (1 + 1e-9))
    assert_array_equal(model.transduction_[t == 0], (f[t == 0] > 0).astype(int))
    value = model.problem_.value(f, t, dual @ RBF.gram(X) @ dual)
    assert_allclose(model.objective_, value, rtol=1e-6)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("update", ["auto", "path", "together", "block"])
def test_no_call_takes_more_steps_than_max_iter(update, order, monkeypatch):
    monkeypatch.setattr(_estimator, "_WORK_LEAST", 0.0)
    monkeypatch.setattr(_estimator, "_WORK", 0.0)  # "auto" goes over to CCCP at once
    X, t = clouds(200, labeled=0.2, seed=4)
    y = labels(t)
    for max_iter in (1, 2, 3):
        model = ILS3VM(gamma=0.5, C=C, C_star=C_STAR, order=order, update=update)
        model.fit(X[:40], y[:40]).set_params(max_iter=max_iter)
        for call in (lambda m: m.partial_fit(X[40:], y[40:]), lambda m: m.forget(np.arange(7))):
            with pytest.warns(ConvergenceWarning, match=f"max_iter={max_iter}"):
                call(model)
            assert model.n_iter_ == max_iter
            assert model.termination_condition_ == "max_iter"
    model.set_params(max_iter=10**6).forget([])
    agrees_with_scratch(model, X[7:], y[7:])


def test_what_a_limited_fit_has_overlooked_is_followed_up_within_max_iter():
    rng = np.random.default_rng(0)
    X = (rng.random((1500, 30)) < 0.3).astype(float)
    f = X @ rng.normal(size=30)
    y = np.where(np.arange(1500) < 60, f + rng.normal(size=1500) > np.median(f), -1)
    model = ILS3VM(kernel="linear", C=10.0, C_star=5.0, max_iter=5)
    with pytest.warns(ConvergenceWarning, match="max_iter=5"):
        model.fit(X, y)
    assert model.residual_ > 1
    model.set_params(max_iter=300)
    steps = []
    for _ in range(20):  # the start has many rows in the wrong place, and a call few steps
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.forget([])
        steps.append(model.n_iter_)
        limited = model.termination_condition_ == "max_iter"
        assert limited == any(one.category is ConvergenceWarning for one in caught)
        if not limited:
            break
    assert len(steps) > 1 and max(steps) == 300 and not limited
    agrees_with_scratch(model, X, y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_limit_in_forget_leaves_a_model_without_the_rows_that_are_leaving(kernel):
    X, t = clouds(60, seed=2)
    model = ILS3VM(kernel=kernel, gamma=0.5, C=C, C_star=C_STAR).fit(X, labels(t))
    gone = model.support_[[1, 5, 9, 12, 20]]
    X, t = np.delete(X, gone, 0), np.delete(t, gone)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        model.set_params(max_iter=3).forget(gone)
    f = model.decision_function(X)
    assert_array_equal(model.transduction_, np.where(t == 0, f > 0, t > 0))
    dual = model.dual_coef_[0]
    norm2 = dual @ RBF.gram(X[model.support_]) @ dual
    if kernel == "linear":
        norm2 = model.coef_[0] @ model.coef_[0]
    assert_allclose(model.objective_, model.problem_.value(f, t, norm2), rtol=1e-6)
    model.set_params(max_iter=10**6).forget([])
    agrees_with_scratch(model, X, labels(t))


@pytest.mark.parametrize("gram", ["full", "rows"])
def test_memory_is_given_back_when_the_last_row_has_left(gram):
    X, t = clouds(300, seed=2)
    model = ILS3VM(gamma=0.5, C=C, C_star=C_STAR, gram=gram).fit(X, labels(t))
    gone = np.arange(5, 250)
    X, t = np.delete(X, gone, 0), np.delete(t, gone)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        model.set_params(max_iter=3).forget(gone)
    assert model._kernel_store.n == 300
    model.set_params(max_iter=10**6).forget([])
    assert model._kernel_store.n == 55
    agrees_with_scratch(model, X, labels(t))


@pytest.mark.parametrize("gram", ["full", "rows"])
def test_an_error_after_a_batch_finds_the_memory_of_forgotten_rows_untouched(gram, monkeypatch):
    X, t = clouds(330, seed=2)
    y, gone = labels(t), np.arange(5, 255)
    model = ILS3VM(gamma=0.5, C=C, C_star=0.0, gram=gram).fit(X[:300], y[:300])
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        model.set_params(max_iter=3).forget(gone)
    model.set_params(max_iter=10**6)

    def interrupt(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(model, "_warn_of_limits", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[300:], y[300:])
    assert model._kernel_store.n == 300
    model.partial_fit(X[300:], y[300:])
    assert model._kernel_store.n == 80
    X, y = np.delete(X, gone, 0), np.delete(y, gone)
    agrees_with_scratch(model, X, y)
    scratch = ILS3VM(gamma=0.5, C=C, C_star=0.0, gram=gram).fit(X, y)
    assert_allclose(model.objective_, scratch.objective_, rtol=1e-9)  # a convex problem


@pytest.mark.parametrize(("update", "count"), [("path", 45), ("together", 3), ("block", 1)])
def test_new_rows_come_one_by_one_by_twenties_or_all_at_once(update, count):
    """There is one entry of the history for each of these operations."""
    X, t = clouds(65, seed=2)
    model = ILS3VM(gamma=0.5, C_star=0.5, update=update).fit(X[:20], labels(t)[:20])
    model.partial_fit(X[20:], labels(t)[20:])
    assert len(model.history_) == count
    assert sum(operation.n_iter for operation in model.history_) == model.n_iter_


BAD_INDICES = {
    "too large": ([3, 60], "lie in"),
    "too small": ([-61], "lie in"),
    "twice": ([3, 5, -57], "repeat"),
    "fraction": ([1.5], "integers"),
    "mask": (np.ones(60, dtype=bool), "integers"),
    "matrix": ([[1, 2]], "integers"),
    "words": (["a"], "integers"),
}


@pytest.mark.parametrize("name", BAD_INDICES)
def test_bad_indices_change_nothing(name):
    X, t = clouds(60, seed=2)
    model = ILS3VM(gamma=0.5).fit(X, labels(t))
    indices, message = BAD_INDICES[name]
    before, f = dict(vars(model)), model.decision_function(X)
    with pytest.raises(ValueError, match=message):
        model.forget(indices)
    assert vars(model) == before
    assert_array_equal(model.decision_function(X), f)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint64])
def test_indices_of_every_integer_type_name_the_same_rows(dtype):
    X, t = clouds(300, seed=2)
    rows = [3, 0, 110]
    model = ILS3VM(gamma=0.5, C=C, C_star=C_STAR).fit(X, labels(t))
    model.forget(np.array(rows, dtype))
    agrees_with_scratch(model, np.delete(X, rows, 0), labels(np.delete(t, rows)))
    with pytest.raises(ValueError, match="lie in"):
        model.forget(np.array([2**64 - 1], np.uint64))  # not −1


def test_forget_has_the_threads_of_n_jobs():
    X, t = clouds(60, seed=2)
    counts = []
    options = dict(gamma=0.5, C_star=0.4, n_jobs=3)
    model = ILS3VM(**options, callback=lambda state: counts.append(thread_count()))
    model.fit(X, labels(t)).partial_fit(X[:2], labels(t)[:2])
    counts.clear()
    model.forget([1, 2, 3])
    assert counts == [3]


def state_of(model):
    """Everything a later call builds on, as plain arrays."""
    parts = {}
    for k, machine in enumerate(model._machines):
        alpha, f, b, rho = machine.read(model._held.place[model._held.used])
        parts |= {f"alpha {k}": alpha, f"f {k}": f, f"b {k}": b, f"rho {k}": rho}
        parts |= {f"{name} {k}": rows for name, rows in machine.sets(model._held.place).items()}
        parts[f"counts {k}"] = list(machine.counters().values())
    return parts | {"n": model._kernel_store.n, "ids": model._held.place}


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("gram", ["full", "rows"])
def test_errors_half_way_change_nothing(kernel, gram):
    X, t = clouds(90, seed=2)
    y = labels(t)

    def interrupt(state):
        raise KeyboardInterrupt

    model = ILS3VM(kernel=kernel, gamma=0.5, C_star=0.5, gram=gram, update="path")
    model.fit(X[:60], y[:60])
    twin_model = ILS3VM(kernel=kernel, gamma=0.5, C_star=0.5, gram=gram, update="path")
    twin_model.fit(X[:60], y[:60])
    before, state = dict(vars(model)), state_of(model)
    bad = [
        (ValueError, lambda: model.partial_fit(X[60:], y[60:] + 7)),
        (ValueError, lambda: model.partial_fit(X[60:, :2], y[60:])),
        (ValueError, lambda: model.partial_fit(np.where(X > 1, np.nan, X), y)),
        (KeyboardInterrupt, lambda: model.partial_fit(1 - X[60:], y[60:])),
        (KeyboardInterrupt, lambda: model.forget([1, 2, 3])),
    ]
    for error, call in bad:
        model.callback = interrupt if error is KeyboardInterrupt else None
        with pytest.raises(error):
            call()
        model.callback = None
        assert vars(model) == before
        after = state_of(model)
        assert after.keys() == state.keys()
        for name in state:
            assert_array_equal(after[name], state[name], err_msg=name)
    # And it goes on as if nothing had happened.
    for one in (model, twin_model):
        one.partial_fit(X[60:], y[60:]).forget([1, 2, 3])
    assert_allclose(model.decision_function(X), twin_model.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("gram", ["full", "rows"])
def test_long_paths_are_given_up_for_cccp(gram, kernel, monkeypatch):
    X, t = clouds(100, seed=3)
    y, calls = labels(t), []
    K = Kernel("rbf", gamma=0.5).gram(X)
    monkeypatch.setattr(_estimator, "_WORK_LEAST", 0.0)
    monkeypatch.setattr(_estimator, "_WORK", 0.0)
    solve = _estimator.solve_cccp
    monkeypatch.setattr(_estimator, "solve_cccp", lambda *a, **k: calls.append(0) or solve(*a, **k))
    model = ILS3VM(kernel=kernel, gamma=0.5, C=C, C_star=C_STAR, gram=gram)
    rows = np.arange(40)

    def given(new, old):
        return K[np.ix_(new, np.r_[old, new])] if kernel == "precomputed" else X[new]

    model.fit(given(rows, rows[:0]), y[rows])
    for new in (np.arange(40, 85), np.array([85]), np.arange(86, 100)):
        model.partial_fit(given(new, rows), y[new])
        rows = np.r_[rows, new]
        agrees_with_scratch(model, given(rows, rows[:0]), y[rows])
        gone = np.arange(1, rows.size, 5)
        model.forget(gone)
        rows = np.delete(rows, gone)
        agrees_with_scratch(model, given(rows, rows[:0]), y[rows])
    assert len(calls) > 4
    assert model.termination_condition_ == "converged"
    calls.clear()
    by_hand = ILS3VM(gamma=0.5, C=C, C_star=C_STAR, update="path").partial_fit(X, y)
    assert not calls  # who asks for the path gets it
    agrees_with_scratch(by_hand, X, y)


def test_what_cccp_has_overlooked_is_followed_up_within_max_iter(monkeypatch):
    monkeypatch.setattr(_estimator, "_WORK_LEAST", 0.0)
    monkeypatch.setattr(_estimator, "_WORK", 0.0)
    X, t = clouds(200, seed=3)
    model = ILS3VM(gamma=0.5, C=C, C_star=C_STAR).fit(X[:40], labels(t)[:40])
    model.set_params(start_tol=10.0, max_iter=300)  # ends far from a solution
    with pytest.warns(ConvergenceWarning, match="max_iter=300"):
        model.partial_fit(X[40:], labels(t)[40:])
    assert model.n_iter_ == 300
    assert model.residual_ > 1
    model.set_params(max_iter=100_000).forget([])
    assert model.termination_condition_ == "converged"
    agrees_with_scratch(model, X, labels(t))


@pytest.mark.parametrize("update", ["auto", "path", "block"])
def test_matrix_and_cache_stay_the_same_over_a_stream(update):
    X, t = clouds(300, seed=8)
    y, models = labels(t), []
    for gram in ("full", "rows"):
        rng = np.random.default_rng(1)
        model = ILS3VM(gamma=0.7, C=3.0, C_star=0.5, gram=gram, update=update)
        model.fit(X[:30], y[:30])
        for start in range(30, 300, 13):  # the matrix grows and is compacted
            model.partial_fit(X[start : start + 13], y[start : start + 13])
            n = model.transduction_.size
            model.forget(rng.permutation(n)[: rng.integers(8, 14)])
        models.append(model)
    full, rows = models
    assert (full.gram_, rows.gram_) == ("full", "rows")
    assert full._kernel_store.n < 300
    assert_allclose(full.decision_function(X), rows.decision_function(X), atol=1e-12)
    assert full.residual_ < 1e-11


@pytest.mark.parametrize("kernel", ["poly", "linear"])
def test_rows_of_another_size_change_the_ridge_and_no_solution(kernel):
    """With rows on the margin, in a later part of a batch, and with none."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((330, 2))
    y = np.where(X[:, 0] + 0.8 * rng.standard_normal(330) > 0, 1, 0)
    X[276:] *= 30
    model, splits = ILS3VM(kernel=kernel, degree=2, gamma=1.0, C_star=0.0), (276, 20)
    if kernel == "linear":
        X, y = np.array([[-0.001], [0.001], [3.0], [-3.0], [0.2]]), np.array([0, 1, 1, 0, 1])
        model.set_params(C=100.0)
        splits = 4, 2
    other, model = (clone(model).fit(X[:k], y[:k]).partial_fit(X[k:], y[k:]) for k in splits)
    assert_allclose(other.objective_, model.objective_, rtol=1e-7)
    machine, store = model._machines[0], model._kernel_store
    x = machine.state.x[: store.n]
    alpha, rows = x["alpha"], np.arange(store.n)
    f = store.gram(rows, rows) @ alpha + machine.now["rho"] * alpha + machine.b
    assert_allclose(x["f"], f, atol=1e-8 * np.abs(f).max())


@pytest.mark.parametrize("gram", ["full", "rows"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "poly"])
def test_dense_and_sparse_batches_may_alternate(kernel, gram):
    X, t = clouds(60, seed=4)
    y = labels(t)
    model = ILS3VM(kernel=kernel, gamma=0.5, C_star=0.5, gram=gram)
    expected = clone(model).fit(X[:20], y[:20]).partial_fit(X[20:], y[20:]).decision_function(X)
    for one, two in ((np.asarray, sp.csr_matrix), (sp.csr_matrix, np.asarray)):
        found = clone(model).fit(one(X[:20]), y[:20]).partial_fit(two(X[20:]), y[20:])
        assert_allclose(found.decision_function(X), expected, atol=1e-7)
        assert found.support_vectors_.shape == (found.support_.size, X.shape[1])


def test_copies_go_on_on_their_own():
    X, t = clouds(80, seed=2)
    y = labels(t)
    for kernel, gram in (("rbf", "full"), ("rbf", "rows"), ("linear", "auto")):
        model = ILS3VM(kernel=kernel, gamma=0.5, C_star=0.5, gram=gram).fit(X[:60], y[:60])
        model.forget([4, 9])
        copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        f = model.decision_function(X)
        for other in copies:
            other.partial_fit(X[60:], y[60:]).forget([0, 1])
            assert_array_equal(model.decision_function(X), f)
        model.partial_fit(X[60:], y[60:]).forget([0, 1])
        for other in copies:
            assert_allclose(other.decision_function(X), model.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_with_large_margin_sets_forget_as_exactly(copied):
    X, t = clouds(240, d=30, seed=1)
    model = ILS3VM(gamma=0.05, C=C, C_star=C_STAR, gram="rows").fit(X, labels(t))
    assert model.partition_["M"].size > 100
    gone = model.partition_["E"][:20]
    model = copied(model)
    model._kernel_store.view.values[:] = 0.0  # what fresh memory holds nobody knows
    model.forget(gone)
    agrees_with_scratch(model, np.delete(X, gone, 0), labels(np.delete(t, gone)))


def test_classes_with_large_margin_sets_share_a_small_cache():
    X, _t = clouds(180, d=30, seed=0)
    y = np.where(np.arange(180) < 60, np.argmax(X[:, :3], axis=1), -1)
    model = ILS3VM(gamma=0.05, C=C, C_star=C_STAR, gram="rows", memory=0.3).fit(X, y)
    model.forget(np.arange(5))
    f = model.decision_function(X[5:])
    for k, sets in enumerate(model.partition_):
        assert sets["M"].size > 90
        assert_allclose(np.abs(f[sets["M"], k]), 1, atol=1e-6)


def test_a_path_that_costs_too_much_is_given_up_and_may_go_on():
    X, t = clouds(60, seed=2)
    machine, ids = follower(X, t)
    assert machine.learn(ids[:30])[0] == "converged"
    status, _ = machine.learn(ids[30:], work=0.0)
    assert status == "given up"
    assert machine.n_moving > 0
    assert machine.run()
    assert machine.finish() < 1e-9
    violation, error = conditions(machine, X, RBF, t, np.ones(60, dtype=bool))
    assert max(violation, error) < 1e-9


def test_forget_before_fit_and_balanced_weights():
    X, t = clouds(60, seed=2)
    with pytest.raises(NotFittedError):
        ILS3VM().forget([0])
    model = ILS3VM(class_weight="balanced").fit(X[:40], labels(t)[:40])
    with pytest.raises(ValueError, match="class_weight='balanced'"):
        model.partial_fit(X[40:], labels(t)[40:])
    model.forget([3])
    assert model.transduction_.shape == (39,)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_ridge_is_relative_to_the_kernel(scale):
    """The path of k and C is that of s k and C/s, ridge and all."""
    X, t = clouds(30)
    kernel = Kernel("rbf", 0.5, sigma_f=np.sqrt(scale))
    store = KernelStore(kernel, "full")
    ids = store.append(X)
    machine = Follower(store, ridge=1e-4)
    machine.take(ids, t, weights(t) / scale)
    learn(machine, ids)
    machine.finish()
    alpha, f, b, rho = machine.read(ids)
    assert_allclose(rho, 1e-4 * scale, rtol=1e-12)
    plain, _ = follower(X, t, ridge=1e-4)
    learn(plain, ids)
    plain.finish()
    expected = plain.read(ids)
    assert_allclose(scale * alpha, expected[0], atol=1e-7)
    assert_allclose(f, expected[1], atol=1e-7)
    assert_allclose(b, expected[2], atol=1e-7)


def test_outputs_are_shown_without_the_ridge():
    """Where it matters: with the ridge one unlabeled row is on the other side."""
    X, t = clouds(30, d=1, labeled=0.4, seed=12)
    y = np.where(t == 0, -1, (t > 0).astype(int))
    model = ILS3VM(gamma=0.5, ridge=1e-3, C=100.0, C_star=100.0, update="path")
    with pytest.warns(ConvergenceWarning, match="scale the data"):  # outputs move by up to 0.1
        model.partial_fit(X, y)
    assert model.termination_condition_ == "stalled"
    outputs = model.decision_function(X)
    dual = np.zeros(30)
    dual[model.support_] = model.dual_coef_[0]
    assert np.sum((outputs * (outputs + 1e-3 * dual) < -1e-3) & (t == 0)) == 1
    labels = np.where(y >= 0, y, outputs > 0)
    assert_array_equal(model.transduction_, labels)
    norm2 = dual @ Kernel("rbf", 0.5).gram(X) @ dual
    assert_allclose(model.objective_, model.problem_.value(outputs, t, norm2), rtol=1e-9)
