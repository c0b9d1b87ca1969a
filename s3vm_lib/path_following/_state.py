"""The sets of the path, who is in them, and the outputs of their members.

Outputs are computed where an event is near. ‖Δw‖ and Δb since the last time all outputs were
known, a *refresh*, bound what any other output can have moved by, |Δf_i − Δb| ≤ √k(x_i, x_i) ‖Δw‖,
and a sample that the bound cannot exclude has its output computed then.
"""

from typing import NamedTuple

import numpy as np

from s3vm_lib._numba import njit
from s3vm_lib.path_following._factor import append, delete, solve_bordered
from s3vm_lib.path_following._rows import INNER, combine, combine_all, fetch, gather

O, M, E, A, IDLE, GONE = range(6)  # IDLE: a row without a loss; its output is kept
(B, B0, TRAVEL, ENERGY, RHO, SIGMA, SLACK, LARGEST, RADIUS,
 SPENT, ALLOWED) = range(11)  # fmt: skip  # places in `num`
(N_M, N_A, N_P, N_T, STEPS, FLIPS, BACKFLIPS, ZERO, ZERO_RUN, LONGEST, PROMOTED, REFRESHED,
 CLAMPED, LOGGED, SEED, N_LOCKED, N_Q, HELD, WORK) = range(19)  # fmt: skip
TINY = 1e-11  # relative: what is no movement


SAMPLE = np.dtype(
    [
        ("alpha", float),
        ("f", float),  # current for M, A and P, otherwise that of the last refresh
        ("alpha0", float),  # α and f at the last refresh; b of then is in `num`
        ("f0", float),
        ("s", float),
        ("c", float),
        ("line", float),  # what a sample of A contributes to the linear part of the energy
        ("v", float),  # direction
        ("g", float),  # γ
        ("place", np.int64),  # position in M or in P
        ("where", np.int8),  # set
        ("free", np.int8),  # 1: unlabeled
        ("upward", np.int8),  # 1: the target is a = c, 0: it is a = 0
        ("leaving", np.int8),  # 1: on its way out, target α = 0
        ("flipped", np.int8),  # 1: the sign changed and the new target is not reached yet
        ("touched", np.int8),  # 1: in T
        ("near", np.int8),  # 1: in P, 2: there, and without events for now
    ],
    align=True,
)
SAMPLE = np.dtype((np.record, SAMPLE))  # x[i].alpha works without a compiler, too


class State(NamedTuple):
    """All that the path knows; few arrays, because compilers pay for each in every function."""

    x: np.ndarray  # of dtype SAMPLE, (capacity,)
    M: np.ndarray  # lists of samples; those of M in the order of the factor
    A: np.ndarray
    P: np.ndarray  # O and E with current outputs
    Q: np.ndarray  # at rest, not in P, and within RADIUS of an event at the last refresh
    T: np.ndarray  # α may have moved since the last refresh
    ids: np.ndarray  # workspace
    w: np.ndarray  # workspace, (5, capacity)
    R: np.ndarray  # factor of the margin block
    num: np.ndarray
    cnt: np.ndarray


# --- Membership -----------------------------------------------------------------------------------


@njit(**INNER)
def touch(v, p, i, n):
    if p.x[i].touched == 0:
        p.x[i].touched = 1
        p.T[p.cnt[N_T]] = i
        p.cnt[N_T] += 1
    fetch(v, i, n, p.x)


@njit
def fetch_touched(v, p, n):
    """Have the kernel rows of T in memory, complete; False when there is no room for all."""
    for k in range(p.cnt[N_T]):
        if not fetch(v, p.T[k], n, p.x):
            return False
    return True


@njit(**INNER)
def watch(p, i):
    """Into P: its output is current and stays so."""
    p.x[i].near = 1
    p.x[i].place = p.cnt[N_P]
    p.P[p.cnt[N_P]] = i
    p.cnt[N_P] += 1


@njit(**INNER)
def unwatch(p, i):
    last = p.P[p.cnt[N_P] - 1]
    p.P[p.x[i].place] = last
    p.x[last].place = p.x[i].place
    p.cnt[N_P] -= 1
    p.x[i].near = 0


@njit(**INNER)
def into_margin(v, p, i, n):
    """Into M, from no list."""
    touch(v, p, i, n)
    m = p.cnt[N_M]
    column, one, target = p.w[0], np.ones(1), np.full(1, i)
    combine(v, target, one, 1, p.M, m, column, False)
    for j in range(m):
        column[j] += p.num[SIGMA]
    shift = p.num[RHO] + p.num[SIGMA]
    if not append(p.R, m, column, v.diagonal[i] + shift, 0.1 * p.num[RHO]):
        p.cnt[CLAMPED] += 1
    p.M[m], p.x[i].place, p.x[i].where = i, m, M
    p.x[i].flipped = 0
    p.cnt[N_M] += 1


@njit(**INNER)
def out_of_margin(p, places):
    """Out of M, into no list; ``places`` ascend."""
    m, k = p.cnt[N_M], 0
    delete(p.R, m, places, p.w if places.size <= len(p.w) else np.empty((places.size, m)))
    for j in range(places[0], m):
        if k < places.size and places[k] == j:
            k += 1
        else:
            p.M[j - k] = p.M[j]
            p.x[p.M[j]].place = j - k
    p.cnt[N_M] -= k


@njit(**INNER)
def into_moving(v, p, i, n, upward):
    """Into A, from no list."""
    touch(v, p, i, n)
    p.x[i].where, p.x[i].upward, p.x[i].flipped, p.x[i].leaving = A, upward, 0, 0
    p.x[i].line = p.x[i].s * p.x[i].alpha
    p.A[p.cnt[N_A]] = i
    p.cnt[N_A] += 1


@njit(**INNER)
def out_of_moving(p, i):
    """Out of A, into no list."""
    k = 0
    while p.A[k] != i and k + 1 < p.cnt[N_A]:
        k += 1
    p.cnt[N_A] -= 1
    p.A[k] = p.A[p.cnt[N_A]]


@njit(**INNER)
def flip(p, i, fresh):
    """The other sign: α stays, a becomes −a, and the target is the other end of the box."""
    if fresh:
        p.x[i].line = abs(p.x[i].alpha)
    elif p.x[i].flipped == 1:
        p.cnt[BACKFLIPS] += 1
    p.x[i].s = -p.x[i].s
    p.x[i].flipped = p.x[i].upward = 1
    p.cnt[FLIPS] += 1


@njit(**INNER)
def goal(p, i):
    """Where α_i is going."""
    return p.x[i].s * p.x[i].c if p.x[i].upward == 1 and p.x[i].leaving == 0 else 0.0


# --- Outputs --------------------------------------------------------------------------------------


@njit(**INNER)
def changes(p, out):
    """α − α⁰ over T; returns whether any of it is not zero."""
    some = False
    for k in range(p.cnt[N_T]):
        i = p.T[k]
        out[k] = p.x[i].alpha - p.x[i].alpha0
        some = some or out[k] != 0
    return some


@njit(**INNER)
def bring_up(v, p, ids, k, n):
    """Current outputs of the first k of ``ids``, none of them in T."""
    p.w[3, :k] = 0.0
    if changes(p, p.w[2]):
        gather(v, p.T, p.w[2], p.cnt[N_T], ids, k, n, p.w[3], p.w[4])
    for j in range(k):
        p.x[ids[j]].f = p.x[ids[j]].f0 + p.w[3, j] + p.num[B] - p.num[B0]


@njit(**INNER)
def distance(p, i, f, hold):
    """How far the output f of a sample of O or E is from its next event."""
    z = p.x[i].s * f
    if p.x[i].where == O:
        return z - 1.0
    if p.x[i].free == 1 and not hold:
        return min(1.0 - z, z)
    return 1.0 - z


@njit
def moves(p):
    """The most that outputs move by per unit of an α: the largest k(x, x), or 1 if all are 0."""
    return p.num[LARGEST] ** 2 if p.num[LARGEST] > 0 else 1.0


@njit
def polish(v, p):
    """Newton steps on M until its outputs are at ±1 and Σα = 0; returns what is left of both."""
    m, worst, unit = p.cnt[N_M], 0.0, moves(p)
    for _ in range(5):
        total, size = 0.0, 0.0
        for k in range(p.x.size):
            total += p.x[k].alpha
            size += abs(p.x[k].alpha)
        if m == 0:
            return unit * abs(total)
        moved = changes(p, p.w[2]) or p.num[B] != p.num[B0]
        if moved:
            combine(v, p.T, p.w[2], p.cnt[N_T], p.M, m, p.w[0], True)
        before, worst = worst, unit * abs(total)
        for j in range(m):
            i = p.M[j]
            if moved:
                change = p.num[RHO] * (p.x[i].alpha - p.x[i].alpha0) + p.num[B] - p.num[B0]
                p.x[i].f = p.x[i].f0 + p.w[0, j] + change
            p.w[0, j] = p.x[i].s - p.x[i].f
            worst = max(worst, abs(p.w[0, j]))
        stuck = before > 0 and worst > 0.1 * before and worst < 1e-11
        if worst < 1e-14 * (1 + unit * size) or stuck:
            return worst
        delta = solve_bordered(p.R, m, p.num[SIGMA], -total, p.w[0], p.w[1])
        for j in range(m):
            p.x[p.M[j]].alpha += p.w[0, j]
        p.num[B] += delta
    return worst


@njit
def refresh(v, p, n):
    """All outputs, and a new point of reference."""
    k, out = p.cnt[N_T], p.w[3]
    if changes(p, p.w[2]) or p.num[B] != p.num[B0]:
        for i in range(n):
            out[i] = p.x[i].f0 + p.num[B] - p.num[B0]
        combine_all(v, p.T, p.w[2], k, n, out)
        for i in range(n):
            p.x[i].f = out[i]
        for a in range(k):
            p.x[p.T[a]].f += p.num[RHO] * p.w[2, a]
    reference(p, n)


@njit
def reference(p, n):
    """Make the outputs in f, all of them current, the point of reference."""
    for a in range(p.cnt[N_T]):
        p.x[p.T[a]].touched = 0
    p.cnt[N_T] = 0
    for a in range(p.cnt[N_P]):
        p.x[p.P[a]].near = 0
    p.cnt[N_P] = p.cnt[N_LOCKED] = p.cnt[WORK] = 0
    for i in range(n):
        p.x[i].f0 = p.x[i].f
        p.x[i].alpha0 = p.x[i].alpha
    p.num[B0], p.num[TRAVEL], p.num[SLACK], p.num[RADIUS] = p.num[B], 0.0, -1.0, -1.0
    for j in range(p.cnt[N_M] + p.cnt[N_A]):
        i = p.M[j] if j < p.cnt[N_M] else p.A[j - p.cnt[N_M]]
        p.x[i].touched = 1
        p.T[p.cnt[N_T]] = i
        p.cnt[N_T] += 1
    p.cnt[REFRESHED] += 1
