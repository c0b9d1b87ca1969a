"""The solver around the compiled iterations: shrinking, start, stop, and steps of many variables.

SMO moves two variables by what the violation of the optimality conditions allows. Where (P) is flat
or nearly so along a direction of many variables, and the bounds are wide, it crawls from kink to
kink: its iterations grow like the width of the bounds. Exact minimization along the direction
takes one step, since (P) is convex and piecewise quadratic on a line.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from s3vm_lib.gram import add_rows, empty_cache, fetch_rows, rows_at_once
from s3vm_lib.smo._iterations import BIG, Costs, smo_iterations
from s3vm_lib.smo._linear import linear_solution

LARGEST_FACE = 500  # free variables; the factorization of more costs more than it saves


def line_minimum(costs, x, v, slope, curvature):
    """Return the step τ that minimizes slope·τ + ½ curvature·τ² + Σ_i φ_i(x_i + τv_i).

    Its derivative rises in between the kinks and jumps up at them: the minimum is where it changes
    sign, found by sorting the kinks. Without curvature this is a weighted order statistic.

    Parameters
    ----------
    costs : Costs
        Of the variables that move.
    x, v : ndarrays of shape (m,)
        Feasible point, up to rounding, and direction, v without zeros.
    slope, curvature : float
        Derivatives of the quadratic part at τ = 0; curvature ≥ 0.

    Returns
    -------
    float
        The minimizer nearest to 0 that keeps x + τv between its bounds, 0 where no other step does.
    """
    lo, mid, hi, s1, s2 = costs
    up = v > 0
    shortest = np.max((np.where(up, lo, hi) - x) / v)
    longest = np.min((np.where(up, hi, lo) - x) / v)
    if not shortest < longest:
        return 0.0
    kinks = (mid - x) / v
    order = np.argsort(kinks, kind="stable")
    kinks = kinks[order]
    steep = np.sum(np.abs(v) * np.maximum(np.abs(s1), np.abs(s2))) + abs(slope)
    rounding = 1e-14 * steep  # derivatives that rounding alone keeps from 0 are flat
    # Derivative without the curvature: pieces[k] holds between kinks k − 1 and k.
    jumps = np.cumsum((np.abs(v) * (s2 - s1))[order])
    pieces = slope + np.sum(v * np.where(up, s1, s2)) + np.concatenate([[0.0], jumps])
    ends = []
    for level in (-rounding, rounding):
        # The first kink to whose right the derivative exceeds the level, or beyond the last one.
        k = int(np.argmax(np.append(pieces[1:] + curvature * kinks > level, True)))
        tau = kinks[k] if k < kinks.size else np.inf
        if curvature > 0:
            tau = min(tau, (level - pieces[k]) / curvature)
        elif pieces[k] > level:
            tau = -np.inf
        ends.append(tau)
    return float(np.clip(np.clip(0.0, ends[0], ends[1]), shortest, longest))


def move(costs, x, v, step):
    """Return x + step·v, with kinks and bounds met exactly and Σx as it was."""
    lo, mid, hi, _, _ = costs
    new = np.clip(x + step * v, lo, hi)
    for part in (lo, mid, hi):
        new = np.where((part - x) / v == step, part, new)
    _settle(new, costs, new.sum() - x.sum())
    return new


def _settle(x, costs, rest):
    """Take off x what is too much in Σx, at the variable that is farthest from kinks and bounds."""
    room = np.minimum(np.minimum(x - costs.lo, costs.hi - x), np.abs(x - costs.mid))
    x[np.argmax(room)] -= rest


def null_step(null, costs, beta):
    """Minimize (P) exactly along a direction that changes neither Kβ nor Σβ.

    With Kv = 0 and Σv = 0 only the costs change along β + τv: the minimum is a weighted order
    statistic of the kinks.

    Parameters
    ----------
    null : ndarray of shape (n,)
        Direction v.
    costs : Costs
    beta : ndarray of shape (n,)
        Feasible point, moved in place to the nearest minimizer on the line.

    Returns
    -------
    float
        The step τ.
    """
    moving = np.flatnonzero(null)
    c, x, v = costs.take(moving), beta[moving], null[moving]
    step = line_minimum(c, x, v, 0.0, 0.0)
    if step != 0:
        beta[moving] = move(c, x, v, step)
    return step


def face_step(cache, rows, costs, beta, F, A, B):
    """Take a Newton step on the free variables, between kinks and bounds, where A = B.

    Minimizes the quadratic that (P) is near β over Σp = 0, then (P) itself along p: where K is
    singular on the free variables the step goes as far as the costs allow.

    Parameters
    ----------
    cache, rows : RowCache, KernelRows
    costs : Costs
    beta, F : ndarrays of shape (n,)
        Feasible point and Kβ, both changed in place.
    A, B : ndarrays of shape (n,)
        Minus the slopes of φ to the right and to the left of beta.

    Returns
    -------
    bool
        True when the step met a kink or bound, so that another one is worthwhile.
    """
    free = np.flatnonzero(A == B)
    if not 2 < free.size <= min(LARGEST_FACE, cache.owner.size):
        return False
    fetch_rows(cache, rows, free)
    K = cache.values[np.ix_(cache.slot[free], free)].astype(float)
    gradient = F[free] - A[free]
    gradient -= gradient.mean()
    # Centered, K has no part along 1, and a gradient with Σg = 0 leads to a step with Σp = 0.
    means = K.mean(axis=0)
    centered = K - means - (means - means.mean())[:, None]
    precision = np.finfo(cache.values.dtype).eps
    centered.flat[:: free.size + 1] += 10 * free.size * precision * np.max(np.diagonal(K))
    try:
        factor = cho_factor(centered, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    p = -cho_solve(factor, gradient)
    p -= p.mean()
    moving = np.flatnonzero(p)
    if moving.size < 2 or not gradient @ p < 0:
        return False
    at, p = free[moving], p[moving]
    c, x = costs.take(at), beta[at]
    # The slopes of the costs at β are part of the piecewise-linear sum, not of the quadratic.
    step = line_minimum(c, x, p, F[at] @ p, max(p @ (K[np.ix_(moving, moving)] @ p), 0.0))
    if step <= 0:
        return False
    new = move(c, x, p, step)
    change = np.zeros(beta.size)
    change[at] = new - x
    add_rows(cache, rows, change, F)
    beta[at] = new
    crossed = np.sign(x - c.mid) != np.sign(new - c.mid)
    return bool(np.any(crossed | (new == c.lo) | (new == c.hi)))


_SET = 512  # variables that move at once
_SETS = 2  # sets for each variable, at most
_SHARE = 0.1  # of the violation, left within a set
_REST = 10  # tolerances: what is left to single pairs


def block_steps(gram, costs, beta, F, tol, max_iter=10_000_000):
    """Minimize (P) over hundreds of variables at a time, until few violate its conditions.

    For a start from which many variables move once, each by little: the values of a set are
    computed together, once, and F of all points is kept, so that nothing is made up for later.

    Parameters
    ----------
    gram : Gram
        One that is ``in_blocks``.
    costs : Costs
    beta, F : ndarrays of shape (n,)
        Feasible point and Kβ, both changed in place.
    tol : float
        Tolerance of the solver that goes on from here.
    max_iter : int, default=10_000_000
        Largest number of iterations.

    Returns
    -------
    int
        Iterations of SMO within the sets.

    References
    ----------
    T. Joachims, "Making large-scale SVM learning practical", Advances in Kernel Methods (1999).
    """
    n, done, half = beta.size, 0, _SET // 2
    A, B = _slopes(costs, beta)
    mean = np.arange(n if gram.null is None else n - 1, n)
    for _ in range(_SETS * n // _SET):
        up, down = A - F, B - F
        violation = up.max() - down.min()
        if violation < _REST * tol or done >= max_iter:
            break
        # Half of the set are the points that may rise most, half those that may fall most.
        rise, fall = np.flatnonzero(up > down.min()), np.flatnonzero(down < up.max())
        rise = rise[np.argsort(-up[rise], kind="stable")[:half]]
        fall = fall[np.argsort(down[fall], kind="stable")[:half]]
        chosen = np.unique(np.concatenate([rise, fall, mean]))
        K, x = gram.among(chosen), beta[chosen]
        cache = empty_cache(K, gram.cache.mean[:0])
        cache.slot[:] = cache.owner[:] = np.arange(chosen.size)
        score = np.zeros(chosen.size, K.dtype)
        bits = score.view(np.int32 if K.itemsize == 4 else np.int64)
        a, b = A[chosen], B[chosen]
        # All rows are there: those of the Gram are passed on as what has been compiled.
        took, _ = smo_iterations(
            cache, gram.rows, costs.take(chosen), gram.diagonal[chosen], x, F[chosen], a, b, score,
            bits, K.dtype.type(TAU), max(tol, _SHARE * violation), min(20 * _SET, max_iter - done),
        )  # fmt: skip
        change = x - beta[chosen]
        moved = np.flatnonzero(change)
        if moved.size == 0:
            break
        gram.add(chosen[moved], change[moved], F)
        beta[chosen], A[chosen], B[chosen] = x, a, b
        done += took
    return done


# --- The solver ----------------------------------------------------------------------------------


TAU = 1e-12  # smallest curvature along a pair, relative to k(x, x) of its first row
_ROUNDING = 8 * np.finfo(float).eps  # of F, relative: no iteration sees smaller violations
_COARSE = 0.1  # of F, in units of the margin: where rounding leaves more, nothing is solved
_WIDE, _NEAR = 0.25, 0.05  # duality gap, relative to the primal value, to go on and to end
_DRIFT = 1e-6  # rounding from which on F is computed anew before it is believed
_SHRINK_BELOW = 0.7  # compact when the active share falls below this
_SLOW = 4  # a solve that takes more iterations per variable gets Newton steps, if asked for
_STUCK = 300  # one that takes so many gets them in any case
_HOPELESS = 3000  # and one that takes so many ends: those that converge take 400, for C = 1e9 too
_FACE_STEPS = 10
_DUST = 1e-14  # Σβ, in units of Σ|β|, that is 0
_TRIES = 50  # points that may take what is left of Σβ before dust counts as 0
# Iterations times rows before a linear kernel goes to another method; as that takes columns² a row
# in each of its iterations, SMO gets more of them where rows are few for so many columns.
_LATE = 5_000_000


class Solution(NamedTuple):
    """Result of `solve_smo`."""

    beta: np.ndarray  # signed dual variables, (n,)
    f: np.ndarray  # Kβ, outputs without the offset, (n,)
    b: float  # offset
    objective: float  # value of (P), with φ_i(0) = 0 where 0 is feasible
    violation: float  # max(A − F) − min(B − F)
    n_iter: int
    status: str  # "converged", "max_iter", "stalled" or "stopped" (by the callback)
    history: list  # (n_iter, violation, active points) per round


def solve_smo(
    gram, costs, beta=None, F=None, *, tol=1e-3, max_iter=10_000_000, shrinking=True,
    null_steps=True, face_steps=0, callback=None,
):  # fmt: skip
    """Minimize (P) by SMO with second-order working sets and shrinking.

    Linear kernels of many rows, and those for which SMO takes long, begin anew at what
    `linear_solution` finds; iterations are those of SMO alone.

    Parameters
    ----------
    gram : Gram
        Kernel values; filled further as rows are visited, so that it can be passed on.
    costs : Costs
        Piecewise-linear costs, five float64 arrays of shape (n,).
    beta : ndarray of shape (n,), default=None
        Feasible start; None means 0, which must then be feasible.
    F : ndarray of shape (n,), default=None
        The values Kβ of the start, if they are known.
    tol : float, default=1e-3
        Stop when max(A − F) − min(B − F) < tol, or what rounding leaves of F if that is more.
        ``"stalled"`` is the status where no step is possible and neither is met, or where rounding
        leaves more than a tenth of the margin. With tol below 0.1 and a duality gap
        above a quarter of the primal value, which large costs make of a small violation, the solver
        goes on with a tenth of tol, and so on, until the gap is 5 %.
    max_iter : int, default=10_000_000
        Largest number of iterations.
    shrinking : bool, default=True
        Set points aside that sit at a bound or kink and show no wish to leave it. What they would
        do is checked before the solver stops.
    null_steps : bool, default=True
        Minimize exactly along the direction that the mean point of a `Gram` brings with it, which
        changes neither Kβ nor Σβ, before each round that has all points.
    face_steps : int, default=0
        Largest number of Newton steps on the free variables after each round of a solve
        that takes long, see `face_step`. With ``null_steps`` there are ten of them after 300
        iterations per variable, whatever is asked for.
    callback : callable, default=None
        Called with a dict (n_iter, violation, n_active) after each round; a true value stops.

    Returns
    -------
    Solution

    References
    ----------
    R.-E. Fan, P.-H. Chen and C.-J. Lin, "Working set selection using second order information for
    training support vector machines", JMLR 6 (2005).
    """
    # Line 1 of the algorithm.
    beta = np.zeros(gram.diagonal.size) if beta is None else np.array(beta, dtype=float)
    if F is None:
        F = np.zeros(beta.size)
        if beta.any():
            add_rows(gram.cache, gram.rows, beta, F)
    else:
        F = np.array(F, dtype=float)
    # Lines 2 to 9, in rounds that set points aside.
    most = min(max_iter, _HOPELESS * beta.size)
    total, history, status = 0, [], "max_iter" if most == max_iter else "stalled"
    wide, points, early = _WIDE, gram.points, most
    if points is not None:
        columns = 0 if sp.issparse(points) else points.shape[1]
        more = columns**2 // 4 * (10 * columns > beta.size)
        early = min(most, _LATE // beta.size + 3 * columns + more)
        if early < beta.size and not F.any():
            early = 0
    while total < most:
        if points is not None and total >= early:
            beta, F = _linear_start(points, costs, beta, F, tol)
            points, early = None, most
        n_iter, stopped = _pass(
            gram, costs, beta, F, tol, early - total, shrinking,
            null_steps, face_steps, total, history, callback,
        )  # fmt: skip
        total += n_iter
        violation, rounding = _offset(costs, beta, F)[1], _rounding(gram.diagonal, beta, F)
        goal = max(tol, rounding)
        if violation < goal and rounding > max(tol, _DRIFT):  # steps may have left more in F
            F = np.zeros(beta.size)
            add_rows(gram.cache, gram.rows, beta, F)
            violation = _offset(costs, beta, F)[1]
        if stopped or violation < goal:
            status = "stopped" if violation >= goal else "converged"
            # What the precision of the kernel values, perhaps single, makes of outputs.
            single = np.finfo(gram.cache.values.dtype).eps * rounding / _ROUNDING
            if violation < goal and max(goal, single) > max(tol, _COARSE):
                status = "stalled"
            elif (
                violation < goal and tol < _COARSE and not _solved(costs, beta, F, violation, wide)
            ):
                if goal == tol and not stopped:
                    tol, wide = 0.1 * tol, _NEAR
                    continue
                status = "stopped" if stopped else "stalled"
            break
        if n_iter == 0 and points is None:
            status = "stalled"
            break
    # Line 10.
    b, violation = _offset(costs, beta, F)
    objective = _value(costs, beta, F)
    return Solution(beta, F, b, objective, violation, total, status, history)


def _linear_start(points, costs, beta, F, tol):
    """Return β and F of `linear_solution` if (P) is lower there, and those given otherwise."""
    new = linear_solution(points, costs, beta, tol)
    if np.all(np.isfinite(new)):
        new = np.clip(new, costs.lo, costs.hi)
        if abs(new.sum()) > _DUST * np.abs(new).sum():
            _settle(new, costs, new.sum())
        if np.any((new < costs.lo) | (new > costs.hi)):
            new = feasible(new, costs)
        outputs = points @ (new @ points)
        if _value(costs, new, outputs) < _value(costs, beta, F):
            return new, outputs
    return beta, F


def _pass(
    gram, costs, beta, F, tol, max_iter, shrinking, null_steps, face_steps, done, history, callback
):
    """Run rounds of SMO from (beta, F), updated in place, on an active set that only shrinks."""
    n = beta.size
    width = gram.cache.values.dtype
    score = np.zeros(n, width)
    bits = score.view(np.int32 if width.itemsize == 4 else np.int64)
    tau = width.type(TAU)
    active = np.arange(n)
    cache, rows, c = gram.cache, gram.rows, costs
    x, g, diagonal, final = beta.copy(), F.copy(), gram.diagonal, beta.copy()
    A, B = _slopes(c, x)
    n_iter, violation, goal, stopped = 0, np.inf, tol, False
    null = gram.null if null_steps else None
    while n_iter < max_iter and violation >= goal and not stopped:
        # Points whose conditions hold strictly are set aside for the rest of this pass.
        if shrinking and done + n_iter > 0:
            up, down = A - g, B - g
            keep = np.flatnonzero((up >= np.min(down)) | (down <= np.max(up)))
            if keep.size < _SHRINK_BELOW * active.size:
                final[active] = x
                active = active[keep]
                cache, rows = gram.restrict(active)
                c = costs.take(active)
                x, g, A, B, diagonal = x[keep], g[keep], A[keep], B[keep], diagonal[keep]
        if null is not None and active.size == n and null_step(null, c, x):
            A, B = _slopes(c, x)
        # A round: steps in portions short enough for Ctrl-C.
        steps = min(max_iter - n_iter, max(100, min(n, 1000)))
        goal = max(tol, _rounding(diagonal, x, g))
        # Near the end points are set aside once more.
        halt = 10 * goal if shrinking and violation >= 10 * goal else goal
        took, violation = 0, np.inf
        while took < steps and violation >= halt:
            few = min(steps - took, rows_at_once(cache, rows))
            took_few, violation = smo_iterations(
                cache, rows, c, diagonal, x, g, A, B, score, bits, tau, halt, few
            )
            took += took_few
            if took_few < few:
                break
        n_iter += took
        # Where that was not enough for long, the free variables get Newton steps of their own.
        slow = violation >= goal and done + n_iter >= _SLOW * n
        stuck = slow and null_steps and done + n_iter >= _STUCK * n
        for _ in range(_FACE_STEPS if stuck else face_steps if slow else 0):
            again = face_step(cache, rows, c, x, g, A, B)
            A, B = _slopes(c, x)
            if not again:
                break
        state = (done + n_iter, violation, active.size)
        history.append(state)
        if callback is not None:
            stopped = bool(
                callback(dict(zip(("n_iter", "violation", "n_active"), state, strict=True)))
            )
        # What takes long is not polished before it is known whether too much was set aside; steps
        # along the null direction need all points as well.
        rough = done == 0 < n_iter and violation < halt and (slow or null is not None)
        if (took == 0 and violation >= halt) or rough:
            break
    # F of the points set aside is made up for all at once.
    final[active] = x
    if active.size < n:
        add_rows(gram.cache, gram.rows, final - beta, F)
    F[active], beta[:] = g, final
    return n_iter, stopped


def _rounding(diagonal, beta, F):
    """Return what rounding leaves of F, of the slopes and of a step in β: less is no violation."""
    length = np.sqrt(diagonal)
    # A sum of n products, for |k(x, z)| ≤ √(k(x, x) k(z, z)), whose errors add up like chance.
    products = np.linalg.norm(beta * length) * np.max(length)
    return _ROUNDING * max(1.0, np.abs(F).max(), float(products))


def _slopes(c, beta):
    """Return the arrays A and B at beta: minus the slopes of φ to the right and to the left."""
    A = np.where(beta < c.mid, -c.s1, np.where(beta < c.hi, -c.s2, -BIG))
    B = np.where(beta > c.mid, -c.s2, np.where(beta > c.lo, -c.s1, BIG))
    return A, B


def _offset(c, beta, F):
    """Return the offset b and the violation max(A − F) − min(B − F), at most 0 at a solution."""
    A, B = _slopes(c, beta)
    top, bottom = np.max(A - F), np.min(B - F)
    # Where all points may only rise, or only fall, one end of the interval decides.
    if top <= -BIG / 2 or bottom >= BIG / 2:
        b = bottom if top <= -BIG / 2 else top
    else:
        free = (A - B) == 0
        b = np.mean((A - F)[free]) if free.any() else (top + bottom) / 2
    return float(b), float(top - bottom)


def _solved(c, beta, F, violation, wide):
    """Return whether the gap between primal value at Kβ + b and dual value at β is small."""
    width = c.hi - c.lo
    bound, penalty = width < BIG, 0.5 * beta @ F
    if violation * width.sum(where=bound) <= wide * penalty:  # a bound on the gap
        return True
    fixed = np.flatnonzero(~bound & (c.s1 == c.s2))  # a point whose output binds b
    f = F + (-c.s1 - F)[fixed[0]] if fixed.size else F + _offset(c, beta, F)[0]
    own, *ends = ((v * f + _cost_values(c, v))[bound] for v in (beta, c.lo, c.mid, c.hi))
    losses = -np.minimum.reduce(ends)  # the conjugates of φ_i at −f_i
    return np.sum(own + losses) <= wide * (penalty + np.abs(losses).sum())


def _value(costs, beta, F):
    """Return the value of (P)."""
    return float(0.5 * beta @ F + _cost_values(costs, beta).sum())


def _cost_values(c, beta):
    """Return φ_i(β_i), normalized to 0 at 0 (at the end nearest to 0 where 0 is not feasible)."""

    zero = np.clip(0.0, c.lo, c.hi)
    below = np.minimum(beta, c.mid) - np.minimum(zero, c.mid)
    above = np.maximum(beta, c.mid) - np.maximum(zero, c.mid)
    return c.s1 * below + c.s2 * above


def svc_costs(t, upper):
    """Return the costs of the C-SVC: φ_i(β) = −t_i β on [0, C_i] or [−C_i, 0].

    Parameters
    ----------
    t : ndarray of shape (n,)
        Labels −1 and +1.
    upper : ndarray of shape (n,)
        Upper bounds C_i = C s_i of the dual variables α_i = t_i β_i.

    Returns
    -------
    Costs
    """
    lo, hi = np.where(t > 0, 0.0, -upper), np.where(t > 0, upper, 0.0)
    return Costs(lo, hi.copy(), hi, -t.astype(float), -t.astype(float))


def feasible(beta, costs, shift=True):
    """Return a feasible point near beta.

    By default the projection onto the box, cut by Σβ = 0: a common shift, then clipping. Without
    the shift the variables farthest from their bounds pay for what clipping adds to Σβ, one after
    the other, so that Kβ can be updated with few rows.

    Parameters
    ----------
    beta : ndarray of shape (n,)
        Dual variables of an earlier, similar problem.
    costs : Costs
        Costs of the new problem; a feasible point must exist.
    shift : bool, default=True

    Returns
    -------
    ndarray of shape (n,)
    """
    result = np.clip(beta, costs.lo, costs.hi)
    # A sum that is zero up to rounding must not lift every point off its bound.
    if shift and abs(result.sum()) > 1e-12 * np.abs(result).sum():
        low, high = float(np.min(costs.lo - beta)), float(np.max(costs.hi - beta))
        for _ in range(200):
            shift = 0.5 * (low + high)
            total = np.clip(beta + shift, costs.lo, costs.hi).sum()
            low, high = (shift, high) if total < 0 else (low, shift)
        result = np.clip(beta + 0.5 * (low + high), costs.lo, costs.hi)
    # What rounding leaves over goes to points with room for it.
    order = np.argsort(-np.minimum(result - costs.lo, costs.hi - result), kind="stable")
    for tried, i in enumerate(order):
        rest = result.sum()
        # A sum that cannot be made 0 must not push every point off its kink.
        if rest == 0 or (tried > _TRIES and abs(rest) <= _DUST * np.abs(result).sum()):
            break
        result[i] = np.clip(result[i] - rest, costs.lo[i], costs.hi[i])
    return result
