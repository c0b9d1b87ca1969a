"""The sets of the path, their members, and the outputs of these.

Outputs are computed where an event is near. ‖Δw‖ and Δb since the last time all outputs were
known, a *refresh*, bound what any other output can have moved by, |Δf_i − Δb| ≤ √k(x_i, x_i) ‖Δw‖,
and a sample that the bound cannot exclude has its output computed then.
"""

from typing import NamedTuple

import numpy as np

from s3vm_lib.gram import CACHED, give_slot
from s3vm_lib.kernels import kernel_row

from s3vm_lib.path_following._algebra import (  # isort: skip
    INNER, append, combine, combine_all, delete, gather, solve_bordered,
)  # fmt: skip
from s3vm_lib.utils.jit import njit

O, M, E, A, IDLE, GONE = range(6)  # IDLE: a row without a loss; its output is kept
TINY = 1e-11  # relative: what is no movement
BETA, WAY, CHANGE, OUT, SPARE = range(5)  # rows of the workspace `w`

_REALS = (
    "b", "b0",  # b, and b at the last refresh
    "travel", "energy",  # ‖Δw‖² since then, and W
    "rho", "sigma",  # ridge ρ, and the shift σ that makes the factor of M positive definite
    "slack", "largest",  # least distance of outputs outside P from an event then; largest √k(x, x)
    "radius",  # of Q
    "spent", "allowed",  # multiplications, and how many are allowed
)  # fmt: skip
_COUNTERS = (
    "n_margin", "n_moving", "n_near", "n_touched", "n_watched",  # sizes of M, A, P, T and Q
    "n_locked",  # samples of P that wait for a step of some length
    "steps", "flips", "back_flips",  # steps, changes of sign, and of sign again on the way
    "zero_steps", "zero_run", "longest_run",  # of length 0, those in a row, and the longest row
    "promoted", "refreshes", "raised",  # outputs brought up to date for P; pivots of the factor
    "logged", "seed",  # rows of the log; the seed for ties
    "held", "work",  # 1: Q was chosen with signs frozen; work of rates since the last refresh
)  # fmt: skip
_NOW = [(name, float) for name in _REALS] + [(name, np.int64) for name in _COUNTERS]
PLAIN_NOW = np.dtype(_NOW, align=True)
# From Python ``now["b"]`` is much faster than ``now.b``, which compiled code takes.
NOW = np.dtype((np.record, PLAIN_NOW))

_NUMBERS = (
    "alpha", "f",  # f is current for M, A and P, otherwise that of the last refresh
    "alpha0", "f0",  # α and f at the last refresh; b of then is `b0`
    "s", "c",  # sign and weight
    "line",  # what a sample of A contributes to the linear part of the energy
    "v", "g",  # direction, and γ
)  # fmt: skip
_FLAGS = (
    "where",  # set
    "free",  # 1: unlabeled
    "upward", "leaving",  # 1: the target is a = c, else a = 0; 1: on its way out, target α = 0
    "flipped",  # 1: the sign changed and the new target is not reached yet
    "touched", "near",  # 1: in T; 1: in P, 2: there, and without events for now
)  # fmt: skip
_FIELDS = [(name, float) for name in _NUMBERS] + [("place", np.int64)]  # position in M or in P
_FIELDS += [(name, np.int8) for name in _FLAGS]
SAMPLE = np.dtype((np.record, np.dtype(_FIELDS, align=True)))  # x[i].alpha works uncompiled, too


class State(NamedTuple):
    """The state of the path, in few arrays: each takes time to compile in every function."""

    x: np.ndarray  # of dtype SAMPLE, (capacity,)
    M: np.ndarray  # lists of samples; those of M in the order of the factor
    A: np.ndarray
    P: np.ndarray  # O and E with current outputs
    Q: np.ndarray  # at rest, not in P, and within RADIUS of an event at the last refresh
    T: np.ndarray  # α may have moved since the last refresh
    ids: np.ndarray  # workspace
    w: np.ndarray  # workspace, (5, capacity)
    R: np.ndarray  # factor of the margin block
    now: np.ndarray  # of dtype NOW, (1,)


# --- Membership -----------------------------------------------------------------------------------


@njit(**INNER)
def compute(v, rows, p, i, n):
    """Compute kernel row i in the slot used longest ago of those that no sample of T has."""
    if rows is not None:
        s = -1
        # The slot used longest ago; rows of T are needed until the next refresh.
        for k in range(v.owner.size):
            if v.owner[k] >= 0 and p.x[v.owner[k]].touched == 1:
                continue
            if s < 0 or v.stamp[k] < v.stamp[s]:
                s = k
        if s >= 0:
            kernel_row(rows, i, v.values[s, :n])
            give_slot(v, s, i)
            return True
    return False


@njit(**INNER)
def fetch(v, p, i, n):
    """Keep kernel row i in memory; return False when all slots hold rows of samples in T."""
    if v.kind != CACHED:
        return True
    v.clock[0] += 1
    if v.slot[i] < 0 and not compute(v, v.rows, p, i, n):
        return False
    v.stamp[v.slot[i]] = v.clock[0]
    return True


@njit(**INNER)
def touch(v, p, i, n):
    """Put a sample into T, with its kernel row in memory: from now on α may move."""
    now = p.now[0]
    if p.x[i].touched == 0:
        p.x[i].touched = 1
        p.T[now.n_touched] = i
        now.n_touched += 1
    fetch(v, p, i, n)


@njit
def fetch_touched(v, p, n):
    """Keep the whole kernel rows of T in memory; return False when they do not all fit."""
    for k in range(p.now[0].n_touched):
        if not fetch(v, p, p.T[k], n):
            return False
    return True


@njit(**INNER)
def watch(p, i):
    """Put a sample into P: its output is current and stays so."""
    now = p.now[0]
    p.x[i].near = 1
    p.x[i].place = now.n_near
    p.P[now.n_near] = i
    now.n_near += 1


@njit(**INNER)
def unwatch(p, i):
    """Take a sample out of P."""
    now = p.now[0]
    last = p.P[now.n_near - 1]
    p.P[p.x[i].place] = last
    p.x[last].place = p.x[i].place
    now.n_near -= 1
    p.x[i].near = 0


@njit(**INNER)
def into_margin(v, p, i, n):
    """Put a sample of no list into M."""
    now = p.now[0]
    touch(v, p, i, n)
    m = now.n_margin
    # The new column of the margin block, shifted.
    column, one, target = p.w[BETA], np.empty(1), np.empty(1, np.int64)
    one[0], target[0] = 1.0, i
    combine(v, target, one, 1, p.M, m, column, False, False)
    for j in range(m):
        column[j] += now.sigma
    shift = now.rho + now.sigma
    # A pivot below the ridge is rounding: it is raised, and counted.
    if not append(p.R, m, column, v.diagonal[i] + shift, 0.1 * now.rho):
        now.raised += 1
    p.M[m], p.x[i].place, p.x[i].where = i, m, M
    p.x[i].flipped = 0
    now.n_margin += 1


@njit(**INNER)
def out_of_margin(p, places):
    """Take samples out of M, into no list; ``places`` ascend."""
    now = p.now[0]
    m, k = now.n_margin, 0
    delete(p.R, m, places, p.w if places.size <= len(p.w) else np.empty((places.size, m)))
    # M closes up in the order of the factor.
    for j in range(places[0], m):
        if k < places.size and places[k] == j:
            k += 1
        else:
            p.M[j - k] = p.M[j]
            p.x[p.M[j]].place = j - k
    now.n_margin -= k


@njit(**INNER)
def into_moving(v, p, i, n, upward):
    """Put a sample of no list into A."""
    now = p.now[0]
    touch(v, p, i, n)
    p.x[i].where, p.x[i].upward, p.x[i].flipped, p.x[i].leaving = A, upward, 0, 0
    p.x[i].line = p.x[i].s * p.x[i].alpha
    p.A[now.n_moving] = i
    now.n_moving += 1


@njit(**INNER)
def out_of_moving(p, i):
    """Take a sample out of A, into no list."""
    now = p.now[0]
    k = 0
    while p.A[k] != i and k + 1 < now.n_moving:
        k += 1
    now.n_moving -= 1
    p.A[k] = p.A[now.n_moving]


@njit(**INNER)
def flip(p, i, fresh):
    """Change the sign: α stays, a becomes −a, and the target is the other end of the box."""
    now = p.now[0]
    if fresh:
        p.x[i].line = abs(p.x[i].alpha)
    elif p.x[i].flipped == 1:
        now.back_flips += 1
    p.x[i].s = -p.x[i].s
    p.x[i].flipped = p.x[i].upward = 1
    now.flips += 1


@njit(**INNER)
def goal(p, i):
    """Return the value that α_i moves to."""
    return p.x[i].s * p.x[i].c if p.x[i].upward == 1 and p.x[i].leaving == 0 else 0.0


# --- Outputs --------------------------------------------------------------------------------------


@njit(**INNER)
def changes(p, out):
    """Write α − α⁰ over T; return whether any of it is not zero."""
    some = False
    for k in range(p.now[0].n_touched):
        i = p.T[k]
        out[k] = p.x[i].alpha - p.x[i].alpha0
        some = some or out[k] != 0
    return some


@njit(**INNER)
def bring_up(v, p, ids, k, n):
    """Compute current outputs of the first k of ``ids``, none of them in T."""
    now = p.now[0]
    for j in range(k):
        p.w[OUT, j] = 0.0
    # f = f⁰ + Σ_T (α − α⁰) k(x, ·) + b − b⁰.
    if changes(p, p.w[CHANGE]):
        gather(v, p.T, p.w[CHANGE], now.n_touched, ids, k, n, p.w[OUT], p.w[SPARE], False)
    for j in range(k):
        p.x[ids[j]].f = p.x[ids[j]].f0 + p.w[OUT, j] + now.b - now.b0


@njit(**INNER)
def distance(p, i, f, hold):
    """Return how far the output f of a sample of O or E is from its next event."""
    z = p.x[i].s * f
    if p.x[i].where == O:
        return z - 1.0
    if p.x[i].free == 1 and not hold:
        return min(1.0 - z, z)
    return 1.0 - z


@njit
def moves(p):
    """Return the largest k(x, x), or 1 if all are 0: it bounds the change of outputs per α."""
    now = p.now[0]
    return now.largest * now.largest if now.largest > 0 else 1.0


@njit
def polish(v, p):
    """Take Newton steps on M until its outputs are ±1 and Σα = 0; return what is left of both."""
    now = p.now[0]
    m, worst, unit = now.n_margin, 0.0, moves(p)
    for _ in range(5):
        total, size = 0.0, 0.0
        for k in range(p.x.size):
            total += p.x[k].alpha
            size += abs(p.x[k].alpha)
        if m == 0:
            return unit * abs(total)
        # Outputs of M from those of the last refresh, and what they miss ±1 by.
        moved = changes(p, p.w[CHANGE]) or now.b != now.b0
        if moved:
            combine(v, p.T, p.w[CHANGE], now.n_touched, p.M, m, p.w[BETA], True, False)
        before, worst = worst, unit * abs(total)
        for j in range(m):
            i = p.M[j]
            if moved:
                change = now.rho * (p.x[i].alpha - p.x[i].alpha0) + now.b - now.b0
                p.x[i].f = p.x[i].f0 + p.w[BETA, j] + change
            p.w[BETA, j] = p.x[i].s - p.x[i].f
            worst = max(worst, abs(p.w[BETA, j]))
        # Where rounding leaves nothing to gain the steps end.
        stuck = before > 0 and worst > 0.1 * before and worst < 1e-11
        if worst < 1e-14 * (1 + unit * size) or stuck:
            return worst
        # A Newton step: the equations of M, and Σα = 0.
        delta = solve_bordered(p.R, m, now.sigma, -total, p.w[BETA], p.w[WAY])
        for j in range(m):
            p.x[p.M[j]].alpha += p.w[BETA, j]
        now.b += delta
    return worst


@njit
def refresh(v, p, n):
    """Compute all outputs, and set a new point of reference."""
    now = p.now[0]
    k, out = now.n_touched, p.w[OUT]
    if changes(p, p.w[CHANGE]) or now.b != now.b0:
        for i in range(n):
            out[i] = p.x[i].f0 + now.b - now.b0
        combine_all(v, p.T, p.w[CHANGE], k, n, out, False)
        for i in range(n):
            p.x[i].f = out[i]
        # The ridge acts on the output of a row by its own coefficient.
        for a in range(k):
            p.x[p.T[a]].f += now.rho * p.w[CHANGE, a]
    reference(p, n)


@njit
def reference(p, n):
    """Make the outputs in f, all of them current, the point of reference."""
    now = p.now[0]
    for a in range(now.n_touched):
        p.x[p.T[a]].touched = 0
    now.n_touched = 0
    for a in range(now.n_near):
        p.x[p.P[a]].near = 0
    now.n_near = now.n_locked = now.work = 0
    for i in range(n):
        p.x[i].f0 = p.x[i].f
        p.x[i].alpha0 = p.x[i].alpha
    now.b0, now.travel, now.slack, now.radius = now.b, 0.0, -1.0, -1.0
    # M and A may move from now on: T begins with them.
    for j in range(now.n_margin + now.n_moving):
        i = p.M[j] if j < now.n_margin else p.A[j - now.n_margin]
        p.x[i].touched = 1
        p.T[now.n_touched] = i
        now.n_touched += 1
    now.refreshes += 1
