"""The path: from one event to the next, with every sample in exactly one set.

Sample i has one signed variable α_i and one sign s_i: its label, or for an unlabeled row the side
that it is taken to be on. With a = sα, the output f (offset included) and z = sf,

    O  z ≥ 1, a = 0      M  z = 1, 0 ≤ a ≤ c      E  z ≤ 1, a = c      A  on its way

where c is the weight of its loss. A sample of A travels to a target, a = c where z < 1 and a = 0
where z > 1, and the samples of M move so that their outputs stay where they are,

    [0 1ᵀ; 1 K_MM + ρI] [δ; β] = −[Σ_A d; K_MA d],      γ = K_A d + K_M β + δ,

with d the way that is left. Everything is linear in the step η until the next event.

Which outputs are known at a time, and how, is the subject of `_state`. Numbers in comments are the
lines of the algorithm in the chapter on path following.
"""

import numpy as np

from s3vm_lib.gram import CACHED
from s3vm_lib.path_following._algebra import INNER, combine, gather, solve_bordered

from s3vm_lib.path_following._state import (  # isort: skip
    BETA, GONE, OUT, SPARE, TINY, WAY, E, O, bring_up, distance, fetch_touched, flip, goal,
    into_margin, into_moving, out_of_margin, out_of_moving, refresh, unwatch, watch,
)  # fmt: skip
from s3vm_lib.utils.jit import njit

DONE, ROOM, ROWS, LIMIT, STALLED, LOG = range(6)  # why `follow` returned
TARGET, TO_O, TO_E, TO_M, FLIP, CROSS, BACK, BOUND = range(8)  # events; FLIP, BACK change signs
LOG_FIELDS = ("eta", "energy_before", "energy", "event", "sample", "n_margin", "n_moving", "case")
LOCKED = 2  # in P, but out of M by a step of no length and not to come back by another one
_TIE = 1e-9  # distance from z = 1 that no rounding explains
_RANDOM_AFTER = 30  # zero-length steps in a row before ties are broken at random, and locks are set
_STALL_AFTER = 1000


# --- One step -------------------------------------------------------------------------------------


@njit
def settle(p):
    """Move samples of A that have arrived to O or E, or out: line 3."""
    now = p.now[0]
    k = now.n_moving - 1  # from the end, since the last one takes the place of one that goes
    while k >= 0:
        i = p.A[k]
        to, z = goal(p, i), p.x[i].s * p.x[i].f
        # Arrived, but for rounding.
        if abs(to - p.x[i].alpha) <= 1e-13 * p.x[i].c:
            p.x[i].alpha = to
            # By the margin its target is the other end of the box.
            wrong = z > 1 + TINY if p.x[i].upward == 1 else z < 1 - TINY
            if wrong and p.x[i].leaving == 0:
                p.x[i].upward = 1 - p.x[i].upward
                k -= 1
                continue
            now.n_moving -= 1
            p.A[k] = p.A[now.n_moving]
            p.x[i].flipped = 0
            p.x[i].where = GONE if p.x[i].leaving == 1 else (E if p.x[i].upward == 1 else O)
            if p.x[i].where != GONE:
                watch(p, i)
        k -= 1


@njit(**INNER)
def direction(v, p, may_shift):
    """Write β, δ and γ of A to v, g; return δ, whether b moves alone, Σ_A dγ: lines 2, 4."""
    now = p.now[0]
    # 2: the ways d that are left
    m, n_a, total, size = now.n_margin, now.n_moving, 0.0, 0.0
    d, ids = p.w[WAY], p.ids
    for k in range(n_a):
        i = p.A[k]
        p.x[i].v = goal(p, i) - p.x[i].alpha
        d[k] = p.x[i].v
        total += d[k]
        size += abs(d[k])
    # 4: with nobody in M, b moves alone, unless the ways cancel
    alone = may_shift and m == 0 and abs(total) > 1e-11 * size
    if alone:
        for k in range(n_a):
            p.x[p.A[k]].v = 0.0
            p.x[p.A[k]].g = np.sign(total)
        return np.sign(total), True, 0.0
    delta = 0.0
    if m > 0:  # 4: otherwise M follows so that Σα and its outputs stay
        combine(v, p.A, d, n_a, p.M, m, p.w[BETA], False, False)
        for j in range(m):
            p.w[BETA, j] = -p.w[BETA, j]
        delta = solve_bordered(p.R, m, now.sigma, -total, p.w[BETA], p.w[WAY])
    for j in range(m):
        p.x[p.M[j]].v = p.w[BETA, j]
        ids[j] = p.M[j]
    weights = p.w[BETA]
    for k in range(n_a):
        ids[m + k], weights[m + k] = p.A[k], p.x[p.A[k]].v
    # γ of A itself; `rates` finds all that moves, and by how much, in ids and the row BETA of w
    combine(v, ids, weights, m + n_a, p.A, n_a, p.w[OUT], True, False)
    curvature = 0.0
    for k in range(n_a):
        i = p.A[k]
        p.x[i].g = p.w[OUT, k] + now.rho * p.x[i].v + delta
        curvature += p.x[i].v * p.x[i].g
    return delta, False, max(curvature, 0.0)


@njit(**INNER)
def rates(v, p, ids, k, n, delta, alone, again):
    """Write γ of the first k of ``ids``, samples at rest; ``again`` right after `direction`."""
    now = p.now[0]
    if alone:
        for j in range(k):
            p.x[ids[j]].g = delta
        return
    m, n_a = now.n_margin, now.n_moving
    gather(v, p.ids, p.w[BETA], m + n_a, ids, k, n, p.w[OUT], p.w[SPARE], again)
    for j in range(k):
        p.x[ids[j]].g = p.w[OUT, j] + delta


@njit(**INNER)
def earlier(p, eta, best):
    """Return whether an event comes before the best one so far; ties at random once they go on."""
    now = p.now[0]
    # Ties are broken by the high bit of a linear congruential generator.
    if now.zero_run > _RANDOM_AFTER and eta <= 1e-14 and best <= 1e-14:
        now.seed = (now.seed * 1103515245 + 12345) % 2147483648
        return now.seed > 1073741824
    return eta < best


@njit(**INNER)
def margin_event(p, best, event, who):
    """Return the first sample of M to meet an end of its box: line 5."""
    now = p.now[0]
    largest = 0.0  # of A too: where only rounding is left for M, nothing meets an end
    for j in range(now.n_margin + now.n_moving):
        largest = max(largest, abs(p.x[p.ids[j]].v))
    for j in range(now.n_margin):
        i = p.M[j]
        rate = p.x[i].s * p.x[i].v
        # Rates that are rounding lead nowhere.
        if abs(rate) > TINY * largest:
            a = p.x[i].s * p.x[i].alpha
            eta = max(a / -rate if rate < 0 else (p.x[i].c - a) / rate, 0.0)
            if earlier(p, eta, best):
                best, event, who = eta, TO_O if rate < 0 else TO_E, i
    return best, event, who


@njit(**INNER)
def resting_event(p, ids, k, scale, hold, best, event, who):
    """Return the first of k samples of O and E to reach z = 1 or z = 0: line 5."""
    for j in range(k):
        i = ids[j]
        rate, z = p.x[i].s * p.x[i].g, p.x[i].s * p.x[i].f
        # A locked sample waits for a step of some length.
        if abs(rate) <= TINY * scale or p.x[i].near == LOCKED:
            continue
        if (rate < 0) == (p.x[i].where == O):  # O comes down to the margin, E up to it
            eta = max((1 - z) / rate, 0.0)
            if earlier(p, eta, best):
                best, event, who = eta, TO_M, i
        elif p.x[i].where == E and p.x[i].free == 1 and not hold:
            eta = max(-z / rate, 0.0)
            if earlier(p, eta, best):
                best, event, who = eta, FLIP, i
    return best, event, who


@njit(**INNER)
def moving_event(p, scale, hold, best, event, who):
    """Return the first sample of A to cross z = 1 or z = 0, or to enter its box: line 5.

    After a change of sign a is outside. There nothing happens at z = 1, and the target stays what
    it was: to change it back and forth could take forever where both drive z back to 1.
    """
    for k in range(p.now[0].n_moving):
        i = p.A[k]
        rate, z, a, c = p.x[i].s * p.x[i].g, p.x[i].s * p.x[i].f, p.x[i].s * p.x[i].alpha, p.x[i].c
        # On its way out a sample may cross the margin and 0.
        if p.x[i].leaving == 1:
            continue
        outside = a < -TINY * c or a > c + TINY * c
        if outside:  # the end of the box that it meets first; what comes then the margin decides
            speed = p.x[i].s * p.x[i].v
            eta = (-a if a < 0 else c - a) / speed if speed != 0 else np.inf
            if eta >= 0 and earlier(p, eta, best):
                best, event, who = eta, BOUND, i
        elif (a <= TINY * c or a >= c - TINY * c) and (z - 1 if p.x[i].upward else 1 - z) > _TIE:
            if earlier(p, 0.0, best):  # it came to its box together with another one
                best, event, who = 0.0, BOUND, i
            continue
        if abs(rate) <= TINY * scale:
            continue
        # On its way it reaches the margin, and joins M there.
        if not outside and (rate > 0) == (p.x[i].upward == 1):
            eta = max((1 - z) / rate, 0.0)
            if earlier(p, eta, best):
                best, event, who = eta, CROSS, i
        # Its output comes back to 0: the sign changes again.
        if p.x[i].free == 1 and not hold and rate < 0 and p.x[i].upward == 1:
            eta = max(-z / rate, 0.0)
            if earlier(p, eta, best):
                best, event, who = eta, BACK, i
    return best, event, who


@njit(**INNER)
def survey(p, n, hold, radius):
    """Put into Q all at rest whose outputs were within ``radius`` of an event at the refresh."""
    now = p.now[0]
    k = 0
    for i in range(n):
        if (p.x[i].where == O or p.x[i].where == E) and p.x[i].near == 0:
            if distance(p, i, p.x[i].f0, hold) <= radius:
                p.Q[k] = i
                k += 1
    now.n_watched, now.radius, now.held = k, radius, 1 if hold else 0


@njit(**INNER)
def bring_near(v, p, n, hold, moved, moved_b):
    """Bring into P the samples that ‖Δw‖ = moved and Δb = moved_b may have brought to an event.

    Returns how many; they are the last ones of P.
    """
    now = p.now[0]
    bound = now.largest * moved + abs(moved_b)
    # No sample can have come near an event: the usual case.
    if now.slack > bound:
        return 0
    # Q does not reach far enough any more, or was chosen with signs frozen.
    if not bound < now.radius or (now.held == 1 and not hold):
        survey(p, n, hold, 3 * bound + TINY)
    start, least, kept = now.n_near, now.radius, 0
    for k in range(now.n_watched):
        i = p.Q[k]
        if p.x[i].near != 0 or (p.x[i].where != O and p.x[i].where != E):
            continue
        # |Δf_i − Δb| ≤ √k(x_i, x_i) ‖Δw‖.
        reach = np.sqrt(v.diagonal[i]) * moved
        if distance(p, i, p.x[i].f0 + moved_b, hold) <= reach * (1 + 1e-9) + TINY:
            watch(p, i)
        else:
            least = min(least, distance(p, i, p.x[i].f0, hold))
            p.Q[kept] = i
            kept += 1
    now.n_watched, now.slack = kept, least
    k = now.n_near - start
    if k > 0:
        bring_up(v, p, p.P[start:], k, n)
        now.promoted += k
    return k


@njit(**INNER)
def move(p, eta, delta, curvature, travel, alone):
    """Walk the step η and keep the energy W = ½αᵀKα − Σ a (with ridge) up to date: line 6."""
    now = p.now[0]
    rate = 0.0
    for k in range(now.n_moving):
        i = p.A[k]
        p.x[i].f += eta * p.x[i].g
        if alone:
            continue
        # The linear part of the energy changes with a, not with α.
        if p.x[i].flipped == 1:
            to = p.x[i].c if p.x[i].upward == 1 and p.x[i].leaving == 0 else 0.0
            change = to - p.x[i].line  # the two copies of the paper move in lockstep
        else:
            change = p.x[i].s * p.x[i].v
        rate += p.x[i].v * (p.x[i].f - eta * p.x[i].g) - change
        p.x[i].line += eta * change
        p.x[i].alpha += eta * p.x[i].v
    if not alone:  # outputs of M stay where they are
        for j in range(now.n_margin):
            p.x[p.M[j]].alpha += eta * p.x[p.M[j]].v
    for j in range(now.n_near):
        p.x[p.P[j]].f += eta * p.x[p.P[j]].g
    # W is quadratic in η.
    now.b += eta * delta
    now.travel = travel
    now.energy += eta * rate + 0.5 * eta * eta * curvature


@njit(**INNER)
def change_sets(v, p, n, event, i):
    """Change the sets after an event: lines 7 to 9."""
    now = p.now[0]
    if event == TO_O or event == TO_E:  # 7
        place = np.empty(1, np.int64)
        place[0] = p.x[i].place
        out_of_margin(p, place)
        # Exactly at the end of its box, without the rounding of the step.
        p.x[i].alpha = p.x[i].s * p.x[i].c if event == TO_E else 0.0
        p.x[i].where = O if event == TO_O else E
        watch(p, i)
        if now.zero_run > _RANDOM_AFTER:  # it might come back at once, and go again
            p.x[i].near = LOCKED
            now.n_locked += 1
    elif event == TO_M:
        unwatch(p, i)
        into_margin(v, p, i, n)
    elif event == FLIP:  # 8
        unwatch(p, i)
        into_moving(v, p, i, n, 1)
        flip(p, i, True)
    elif event == BACK:
        flip(p, i, False)
    elif event == CROSS:
        out_of_moving(p, i)
        # The copy with the new sign takes the place of the one with the old sign.
        now.energy += p.x[i].line - p.x[i].s * p.x[i].alpha
        into_margin(v, p, i, n)
    elif event == BOUND:  # 9
        p.x[i].alpha = 0.0 if p.x[i].s * p.x[i].alpha < 0.5 * p.x[i].c else p.x[i].s * p.x[i].c
        p.x[i].upward = 1 if p.x[i].s * p.x[i].f < 1 else 0


@njit(**INNER)
def unlock(p):
    """Let every sample at rest meet events again, after a step of some length."""
    now = p.now[0]
    if now.n_locked > 0:
        for k in range(now.n_near):
            p.x[p.P[k]].near = 1
        now.n_locked = 0


@njit(**INNER)
def case(p):
    """Return 0 if only samples that keep their sign move, 1 if only such that changed it, else 2.

    4 is added where a sample is leaving.
    """
    now = p.now[0]
    changed, leaving = 0, 0
    for k in range(now.n_moving):
        changed += p.x[p.A[k]].flipped
        leaving += p.x[p.A[k]].leaving
    kind = 0 if changed == 0 else (1 if changed == now.n_moving else 2)
    return kind + (4 if leaving > 0 else 0)


@njit
def follow(v, p, n, max_steps, hold, log):
    """Walk until A is empty.

    Parameters
    ----------
    v : Values
    p : State
    n : int
        Rows held.
    max_steps : int
    hold : bool
        Signs are frozen: no flips.
    log : ndarray of shape (k, 8)
        Takes one row of `LOG_FIELDS` per step, unless k = 0.

    Returns
    -------
    int
        `DONE`; `LIMIT` (of the steps, or of the work); `STALLED` (zero-length steps without end);
        or `ROOM`, `ROWS`, `LOG`: memory for the factor, for kernel rows or for the log is needed
        first.
    """
    now = p.now[0]
    start, may_shift = now.steps, True
    if not fetch_touched(v, p, n):
        return ROWS
    while True:
        settle(p)  # 3
        if now.n_moving == 0:
            now.zero_run = 0
            unlock(p)
            return DONE
        if now.steps - start >= max_steps or now.spent > now.allowed:
            return LIMIT
        # One step needs no more memory than this; the caller makes room and calls again.
        if now.n_margin >= p.R.shape[0]:
            return ROOM
        if v.kind == CACHED and now.n_touched >= v.owner.size:
            return ROWS
        if log.shape[0] > 0 and now.logged == log.shape[0]:
            return LOG
        # A refresh, where what it saves has come to cost more than it does
        crowded = now.n_touched > 64 + 2 * now.n_margin + now.n_moving
        if (crowded or now.work > 2 * n * now.n_touched) and now.n_locked == 0:
            refresh(v, p, n)
        delta, alone, curvature = direction(v, p, may_shift)  # 2, 4
        may_shift = True
        near = now.n_near
        rates(v, p, p.P, near, n, delta, alone, True)
        now.work += near * (now.n_margin + now.n_moving + 10)
        now.spent += min(8 * near, n) * (now.n_margin + now.n_moving)
        now.spent += now.n_margin * now.n_margin
        # 5: rates that are rounding, relative to the largest, lead to no event
        scale = abs(delta)
        for k in range(now.n_moving):
            scale = max(scale, abs(p.x[p.A[k]].g))
        for k in range(near):
            scale = max(scale, abs(p.x[p.P[k]].g))
        eta, event, who = np.inf if alone else 1.0, TARGET, -1
        if not alone:
            eta, event, who = margin_event(p, eta, event, who)
        eta, event, who = moving_event(p, scale, hold, eta, event, who)
        eta, event, who = resting_event(p, p.P, near, scale, hold, eta, event, who)
        # ‖Δw‖² at the end of the step: samples that may now be near an event join P
        along = 0.0
        if not alone:
            for j in range(now.n_margin + now.n_moving):
                i = p.ids[j]
                along += p.x[i].v * (p.x[i].f - p.x[i].f0)
        far = min(eta, 1e100)
        travel = now.travel + far * (2 * along + far * curvature)
        moved = np.sqrt(max(travel, 0.0))
        k = bring_near(v, p, n, hold, moved, now.b - now.b0 + far * delta)
        if k > 0:
            rates(v, p, p.P[near:], k, n, delta, alone, False)
            eta, event, who = resting_event(p, p.P[near:], k, scale, hold, eta, event, who)
            travel = now.travel + eta * (2 * along + eta * curvature)
        if eta == np.inf:
            may_shift = False  # nothing holds b: what is left of Σ_A d is rounding
            continue
        kind, before, moving = case(p), now.energy, now.n_moving
        move(p, eta, delta, curvature, max(travel, 0.0), alone)  # 6
        now.steps += 1
        if eta <= 1e-14:
            now.zero_steps += 1
            now.zero_run += 1
            now.longest_run = max(now.longest_run, now.zero_run)
        else:
            now.zero_run = 0
            unlock(p)
        if log.shape[0] > 0:
            row = log[now.logged]
            row[0], row[1], row[2], row[3] = eta, before, now.energy, event
            row[4], row[5], row[6], row[7] = who, now.n_margin, moving, kind
            now.logged += 1
        if event != TARGET:
            change_sets(v, p, n, event, who)  # 7, 8, 9
        if now.zero_run > _STALL_AFTER:
            now.zero_run = 0
            return STALLED
