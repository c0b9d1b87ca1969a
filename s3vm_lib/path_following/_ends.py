"""Beginning and end of an operation, and steps that decide for many samples at once."""

import numpy as np

from s3vm_lib._numba import njit
from s3vm_lib.path_following._factor import forward_many, solve_bordered
from s3vm_lib.path_following._rows import combine
from s3vm_lib.path_following._state import (
    FLIPS,
    GONE,
    N_A,
    N_M,
    RHO,
    SIGMA,
    A,
    B,
    E,
    M,
    O,
    bring_up,
    flip,
    goal,
    into_moving,
    out_of_margin,
    out_of_moving,
    unwatch,
    watch,
)

# --- Beginning and end of an operation ------------------------------------------------------------


@njit
def enter(v, p, i, n):
    """A row that was idle takes part: in O when it is beyond the margin already, otherwise in A."""
    ids = np.full(1, i)
    bring_up(v, p, ids, 1, n)
    if p.x[i].free == 1:
        p.x[i].s = 1.0 if p.x[i].f >= 0 else -1.0
    if p.x[i].c == 0:
        return
    if p.x[i].s * p.x[i].f >= 1:
        p.x[i].where = O
        watch(p, i)
    else:
        into_moving(v, p, i, n, 1)


@njit
def leave(v, p, i, n):
    """A row is to go: at once when its α is 0, otherwise by way of A."""
    if p.x[i].where == M:
        out_of_margin(p, i)
    elif p.x[i].near > 0:
        unwatch(p, i)
    elif p.x[i].where == E:
        ids = np.full(1, i)
        bring_up(v, p, ids, 1, n)
    elif p.x[i].where == A:
        out_of_moving(p, i)
    if p.x[i].alpha == 0.0:
        p.x[i].where = GONE
        return
    into_moving(v, p, i, n, 0)
    p.x[i].leaving = 1


@njit
def violators(v, p, n, hold, tol):
    """After a refresh: into A with all that is not where it should be; returns how many."""
    count = 0
    j = p.cnt[N_M] - 1
    while j >= 0:
        i = p.M[j]
        a = p.x[i].s * p.x[i].alpha
        if a < -tol * p.x[i].c or a > (1 + tol) * p.x[i].c:
            out_of_margin(p, i)
            into_moving(v, p, i, n, 1 if a > 0 else 0)
            count += 1
        j -= 1
    for i in range(n):
        if p.x[i].where != O and p.x[i].where != E:
            continue
        z = p.x[i].s * p.x[i].f
        changes_side = p.x[i].free == 1 and not hold and z < 0
        if changes_side and p.x[i].where == O:
            p.x[i].s, z, changes_side = -p.x[i].s, -z, False
            p.cnt[FLIPS] += 1
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
def turn(v, p, n):
    """The second phase of the finite order: the sign that its output contradicts most changes."""
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


# --- Many at once ---------------------------------------------------------------------------------


@njit
def propose(v, p, n):
    """Decide for every sample of A where it will end, by the Newton step of its output alone.

    With the others of M following, f moves by pivot² per unit of α: z = 1 would be met at
    a + (1 − z)/pivot². Inside the box the sample joins M at once, with an output that the next
    `newton_step` corrects; otherwise that end of the box becomes its target. The factor, which
    grows by one column for each that joins, needs room for all of A.
    """
    m, k = p.cnt[N_M], 0
    for j in range(p.cnt[N_A]):
        if p.x[p.A[j]].leaving == 0:
            p.ids[k] = p.A[j]
            k += 1
    X, one, target = np.empty((k, m)), np.ones(1), np.zeros(1, np.int64)
    for a in range(k):
        target[0] = p.ids[a]
        combine(v, target, one, 1, p.M, m, X[a], False)
        for j in range(m):
            X[a, j] += p.num[SIGMA]
    forward_many(p.R, m, X)
    shift = p.num[RHO] + p.num[SIGMA]
    joined = np.empty(k, np.int64)
    for a in range(k):
        i, size = p.ids[a], p.cnt[N_M]
        target[0] = i
        combine(v, target, one, 1, p.M[m:], size - m, p.w[0], False)
        pivot = v.diagonal[i] + shift - np.dot(X[a], X[a])
        for b in range(size - m):
            value = p.w[0, b] + p.num[SIGMA] - np.dot(X[a], X[joined[b]])
            for l in range(b):
                value -= p.w[0, l] * p.R[m + l, m + b]
            p.w[0, b] = value / p.R[m + b, m + b]
            pivot -= p.w[0, b] ** 2
        pivot = max(pivot, 0.1 * p.num[RHO])
        end = p.x[i].s * p.x[i].alpha + (1 - p.x[i].s * p.x[i].f) / pivot
        if 0 <= end <= p.x[i].c:
            p.R[:m, size] = X[a]
            p.R[m:size, size] = p.w[0, : size - m]
            p.R[size, size] = np.sqrt(pivot)
            out_of_moving(p, i)
            p.M[size], p.x[i].place, p.x[i].where, p.x[i].flipped = i, size, M, 0
            joined[size - m] = a
            p.cnt[N_M] += 1
        else:
            p.x[i].upward = 1 if end > p.x[i].c else 0


@njit
def newton_step(v, p):
    """All of A to their targets, and M to outputs ±1, without a look at the events between."""
    m, n_a, total = p.cnt[N_M], p.cnt[N_A], 0.0
    for i in range(p.x.size):
        total += p.x[i].alpha
    for k in range(n_a):
        i = p.A[k]
        p.x[i].v = p.w[1, k] = goal(p, i) - p.x[i].alpha
        p.x[i].alpha += p.x[i].v
        total += p.x[i].v
    if m == 0:
        return
    combine(v, p.A, p.w[1], n_a, p.M, m, p.w[0], False)
    for j in range(m):
        i = p.M[j]
        p.w[0, j] = p.x[i].s - p.x[i].f - p.w[0, j]
    p.num[B] += solve_bordered(p.R, m, p.num[SIGMA], -total, p.w[0], p.w[1])
    for j in range(m):
        p.x[p.M[j]].alpha += p.w[0, j]
