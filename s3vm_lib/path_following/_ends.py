"""Beginning and end of an operation, and steps that decide for many samples at once."""

import numpy as np

from s3vm_lib.kernels import dot
from s3vm_lib.path_following._algebra import combine
from s3vm_lib.path_following._path import settle

from s3vm_lib.path_following._state import (  # isort: skip
    BETA, GONE, IDLE, WAY, A, E, M, O, bring_up, flip, goal, into_moving, moves, out_of_margin,
    out_of_moving, unwatch, watch,
)  # fmt: skip
from s3vm_lib.utils.jit import njit

_LEFT = 1e-9  # distance from z = 1 that is rounding

# --- Beginning and end of an operation ------------------------------------------------------------


@njit
def enter(v, p, ids, n):
    """Let idle rows take part: in O where they are beyond the margin, otherwise in A: line 1."""
    bring_up(v, p, ids, ids.size, n)
    for i in ids:  # 1
        if p.x[i].free == 1:
            p.x[i].s = 1.0 if p.x[i].f >= 0 else -1.0
        if p.x[i].c == 0:
            continue
        if p.x[i].s * p.x[i].f >= 1:
            p.x[i].where = O
            watch(p, i)
        else:
            into_moving(v, p, i, n, 1)


@njit
def take_out(v, p, i, n):
    """Take a sample out of its set, into no list, with a current output."""
    if p.x[i].where == M:
        out_of_margin(p, np.full(1, p.x[i].place))
    elif p.x[i].near > 0:
        unwatch(p, i)
    elif p.x[i].where == E:
        # At rest outside P the output is that of the last refresh.
        ids = np.full(1, i)
        bring_up(v, p, ids, 1, n)
    elif p.x[i].where == A:
        out_of_moving(p, i)


@njit
def leave(v, p, i, n):
    """Remove a row at once where its α is 0, otherwise by way of A: line 1."""
    take_out(v, p, i, n)
    # Nothing depends on a row without a coefficient.
    if p.x[i].alpha == 0.0:
        p.x[i].where = GONE
        return
    into_moving(v, p, i, n, 0)
    p.x[i].leaving = 1


@njit
def reweigh(v, p, ids, weight, n):
    """Set other weights c; put into A each α that is at the old one, or above the new one."""
    for k in range(ids.size):
        i = ids[k]
        # Inside its new box a row of M stays in M.
        above = p.x[i].s * p.x[i].alpha > weight[k]
        moves = p.x[i].where == E or (p.x[i].where == M and above)
        if moves:
            take_out(v, p, i, n)
        p.x[i].c = weight[k]
        if moves:
            into_moving(v, p, i, n, 1)


@njit
def violators(v, p, n, hold, tol):
    """Put into A, after a refresh, all samples in a wrong set; return how many."""
    now = p.now[0]
    places, count = np.empty(now.n_margin, np.int64), 0
    # Rows of M outside their box go at once, in one update of the factor.
    for j in range(now.n_margin):
        i = p.M[j]
        a = p.x[i].s * p.x[i].alpha
        if a < -tol * p.x[i].c or a > (1 + tol) * p.x[i].c:
            places[count], p.ids[count] = j, i
            count += 1
    if count > 0:
        out_of_margin(p, places[:count])
    for k in range(count):  # back to the end of the box beyond which they are
        i = p.ids[k]
        into_moving(v, p, i, n, 1 if p.x[i].s * p.x[i].alpha > 0 else 0)
    # Rows at rest on the wrong side of the margin, or of 0.
    for i in range(n):
        if p.x[i].where != O and p.x[i].where != E:
            continue
        z = p.x[i].s * p.x[i].f
        changes_side = p.x[i].free == 1 and not hold and z < 0
        if changes_side and p.x[i].where == O:  # with α = 0 the sign changes without a way
            p.x[i].s, z, changes_side = -p.x[i].s, -z, False
            now.flips += 1
        wrong = z < 1 - tol if p.x[i].where == O else z > 1 + tol
        if wrong or changes_side:
            if p.x[i].near > 0:
                unwatch(p, i)
            upward = 1 if z < 1 else 0
            into_moving(v, p, i, n, upward)
            if changes_side:
                flip(p, i, p.x[i].alpha != 0)
            count += 1
    return count


@njit
def flip_worst(v, p, n):
    """Change the sign that its output contradicts most: phase two of the finite order."""
    worst, who = 0.0, -1
    for i in range(n):
        x = p.x[i]
        if x.free == 1 and (x.where == E or x.where == O) and x.s * x.f < worst:
            worst, who = x.s * x.f, i
    if who >= 0:
        if p.x[who].near > 0:
            unwatch(p, who)
        into_moving(v, p, who, n, 1)
        flip(p, who, True)
    return who >= 0


@njit
def energy(p, n):
    """Return W = ½αᵀ(K + ρI)α − Σ a, when all outputs are current."""
    now = p.now[0]
    W = 0.0
    for i in range(n):
        if p.x[i].alpha != 0 or p.x[i].where == A:
            W += 0.5 * p.x[i].alpha * (p.x[i].f - now.b)
            W -= p.x[i].line if p.x[i].where == A else p.x[i].s * p.x[i].alpha
    now.energy = W
    return W


@njit
def residual(p, n):
    """Return the largest violation of KKT, box, sign and sum conditions; outputs are current.

    What is wrong with an α counts as the outputs that it moves.
    """
    worst, total, unit = 0.0, 0.0, moves(p)
    for i in range(n):
        total += p.x[i].alpha
        if p.x[i].where < IDLE:
            a, z, c = p.x[i].s * p.x[i].alpha, p.x[i].s * p.x[i].f, p.x[i].c
            worst = max(worst, -unit * a, unit * (a - c))
            # Below the upper end of the box z ≥ 1 is due, above the lower end z ≤ 1.
            if a < c * (1 - 1e-10):
                worst = max(worst, 1 - z)
            if a > c * 1e-10:
                worst = max(worst, z - 1)
            if p.x[i].free == 1:
                worst = max(worst, -z)
    return max(worst, unit * abs(total))


@njit
def value(p, n, gone):
    """Return J without the ridge, of the registered rows that are not being removed.

    What the others still contribute to the outputs, ``gone`` of shape (n,), is left out.
    """
    now = p.now[0]
    J = 0.0
    for i in range(n):
        if p.x[i].where != GONE and p.x[i].leaving == 0:
            f = p.x[i].f - now.rho * p.x[i].alpha - gone[i]
            z = abs(f) if p.x[i].free == 1 else p.x[i].s * f
            J += 0.5 * p.x[i].alpha * (f - now.b) + p.x[i].c * max(0.0, 1 - z)
    return J


# --- Many at once ---------------------------------------------------------------------------------


@njit
def candidates(v, p):
    """Return shifted kernel values with M of the samples of A that may join M (in `ids`).

    Not those that leave, and not those that just left M, with outputs at the margin still.
    """
    now = p.now[0]
    m, k = now.n_margin, 0
    for j in range(now.n_moving):
        i = p.A[j]
        a, rest = p.x[i].s * p.x[i].alpha, 1 - p.x[i].s * p.x[i].f
        # On the margin but outside its box: the target is the end that it is beyond.
        if abs(rest) < _LEFT and (a < 0 or a > p.x[i].c):
            p.x[i].upward = 1 if a > 0 else 0
        elif p.x[i].leaving == 0:
            p.ids[k] = i
            k += 1
    # Kernel values with M, shifted as in the factor.
    X, one, target = np.empty((k, m)), np.ones(1), np.zeros(1, np.int64)
    for a in range(k):
        target[0] = p.ids[a]
        combine(v, target, one, 1, p.M, m, X[a], False, False)
        for j in range(m):
            X[a, j] += now.sigma
    return X


@njit
def propose(v, p, X):
    """Decide for `candidates` where they will end, by the Newton step of their outputs alone.

    With the others of M following, f moves by pivot² per unit of α: z = 1 would be met at
    a + (1 − z)/pivot². Inside the box the sample joins M at once, with an output that the next
    Newton step corrects; otherwise that end of the box becomes its target. The rows of ``X`` are
    R⁻ᵀ times those of `candidates`; the factor grows by one of them for each that joins, and needs
    room for all.
    """
    now = p.now[0]
    m, k = now.n_margin, X.shape[0]
    one, target = np.ones(1), np.zeros(1, np.int64)
    shift = now.rho + now.sigma
    joined = np.empty(k, np.int64)
    for a in range(k):
        i, size = p.ids[a], now.n_margin
        target[0] = i
        # The row of the factor that i would add, below those of M and of earlier ones that joined
        combine(v, target, one, 1, p.M[m:], size - m, p.w[BETA], False, False)
        # The curvature along its own coefficient while M and the earlier ones follow.
        pivot = v.diagonal[i] + shift - dot(X[a], X[a])
        for b in range(size - m):
            value = p.w[BETA, b] + now.sigma - dot(X[a], X[joined[b]])
            for l in range(b):
                value -= p.w[BETA, l] * p.R[m + l, m + b]
            p.w[BETA, b] = value / p.R[m + b, m + b]
            pivot -= p.w[BETA, b] * p.w[BETA, b]
        pivot = max(pivot, 0.1 * now.rho)
        # Where its output alone would be at the margin
        end = p.x[i].s * p.x[i].alpha + (1 - p.x[i].s * p.x[i].f) / pivot
        if 0 <= end <= p.x[i].c:
            for j in range(m):
                p.R[j, size] = X[a, j]
            for j in range(m, size):
                p.R[j, size] = p.w[BETA, j - m]
            p.R[size, size] = np.sqrt(pivot)
            out_of_moving(p, i)
            p.M[size], p.x[i].place, p.x[i].where, p.x[i].flipped = i, size, M, 0
            joined[size - m] = a
            now.n_margin += 1
        else:
            p.x[i].upward = 1 if end > p.x[i].c else 0


@njit
def demand(v, p):
    """Return what is left for M when A goes to its targets: r of `solve_bordered`, and r0."""
    now = p.now[0]
    m, n_a, total = now.n_margin, now.n_moving, 0.0
    for i in range(p.x.size):
        total += p.x[i].alpha
    for k in range(n_a):
        i = p.A[k]
        p.x[i].v = p.w[WAY, k] = goal(p, i) - p.x[i].alpha
        total += p.x[i].v
    # By how much the outputs of M miss ±1 once A has arrived.
    r = np.empty(m)
    combine(v, p.A, p.w[WAY], n_a, p.M, m, r, False, False)
    for j in range(m):
        r[j] = p.x[p.M[j]].s - p.x[p.M[j]].f - r[j]
    return r, -total


@njit
def to_targets(p, beta, delta):
    """Move all of A to its targets and M to outputs ±1, whatever events lie between."""
    now = p.now[0]
    for k in range(now.n_moving):
        p.x[p.A[k]].alpha += p.x[p.A[k]].v
    for j in range(now.n_margin):
        p.x[p.M[j]].alpha += beta[j]
    now.b += delta
    now.steps += 1
    settle(p)
