"""Best-first search over intervals of the outputs: the Gaussian unlabeled loss.

The Gaussian is no minimum of convex pieces, so that no choice of pieces leaves a convex problem. A
node gives each unlabeled row an interval of its output instead, and lets the penalty help: with
numbers d_j its problem is

    minimize  [½‖f‖² − ½ Σ d_j f_j²] + Σ_L c_i ℓ(y_i, f_i) + Σ_U φ_j(f_j),   a_j ≤ f_j ≤ b_j,   (N)

where φ_j(f) = c_j exp(−s f²) + ½ d_j f², which is J on the box. The bracket is convex as long as
the d_j are small enough, and every φ_j is replaced by its convex envelope on [a_j, b_j]. The larger
d_j, the closer the envelope; −d_j is the least second derivative of c_j exp(−s f²) on the interval,
or as much of it as the bracket bears. Where it bears all of it, J is convex on the box, and the
node is solved exactly. Otherwise the interval of the row with the largest φ_j minus envelope is
cut at its output.

The outputs that minimize the bracket plus Σ α_i f_i are f0 − Hα, and

    D(α) = constant + αᵀf0 − ½ αᵀHα − Σ_i ψ_i*(α_i)

with the conjugates ψ_i* of the labeled losses and of the φ_j on their intervals bounds (N), and
therefore J on the box, from below for every α.

A free offset without balance constraint is one more row, with the output b: ½εb² − ½εb² is added
to J, the first half makes the bracket see b, and the second is the (concave) cost of the new row.
"""

import heapq
import itertools
from typing import NamedTuple

import numpy as np

from s3vm_lib.branch_and_bound._decisions import Distinct, Search, labeled_costs

from s3vm_lib.branch_and_bound._envelopes import (  # isort: skip
    LINE, BoxCosts, conjugates, cost, gaps, labeled_reach, least_bend, linearize, set_envelopes,
    start_slopes, sweep,
)  # fmt: skip
from s3vm_lib.branch_and_bound._relaxation import (  # isort: skip
    LARGEST_SLOPE, UNIT, fold, fold_sizes, require_proof,
)  # fmt: skip

_SAFETY = 0.999  # share of the largest d that the bracket bears
_MOST_STEPS = 100  # of the dual ascent of a node
_SHORTEST = 0.02  # Newton step
_RIDGE = 1e-12  # of the Newton equations, relative to H
_FLATTEST = 1e-14  # least H_ii of a step along one α, relative to the largest
_STALLED = 1e-13  # relative rise of D at which the ascent ends
_HOPELESS = 0.02  # it also ends when D rises by less than this share of what closes the node
_EDGE = 0.15  # a cut keeps this share of the interval away from both ends
_NEGLIGIBLE = 1e-4  # cost above its envelope, relative to the tolerance, that is not worth a cut
_NARROWEST = 1e-6  # interval that is cut no more
_OFFSET = 1e-2  # ε relative to the weight of all losses


class Bracket(NamedTuple):
    """The minimizer of the bracket plus Σ α_i f_i (see `share_penalty`)."""

    H: np.ndarray  # its outputs are f0 − Hα, (n, n)
    f0: np.ndarray
    constant: float  # the bracket at α = 0
    d: np.ndarray  # (n,)
    exact: bool  # whether d is as large as it need be


class BoxBound(NamedTuple):
    """An approximate solution of the problem of a box."""

    value: float  # D, a lower bound
    alpha: np.ndarray  # (n,)
    f: np.ndarray  # outputs, (n,)
    n_iter: int


def share_penalty(G, fixed, bend):
    """Return the largest d that leaves ½βᵀGβ − ½ Σ d_j f_j² convex, along −``bend``.

    Parameters
    ----------
    G : ndarray of shape (n, n)
        Gram matrix; the outputs are f = Gβ + fixed.
    fixed : ndarray of shape (n,)
    bend : ndarray of shape (n,)
        Least second derivatives of the costs on their intervals, 0 for labeled rows. A positive
        one is given to the bracket (d_j < 0), and may make up for a negative one.

    Returns
    -------
    Bracket
    """
    given, wanted = np.flatnonzero(bend > 0), np.flatnonzero(bend < 0)
    d, exact = -bend, True
    if wanted.size:
        rest = G[np.ix_(wanted, wanted)]
        if given.size:
            # What rows that give curvature leave of the Gram matrix of those that want it.
            root = np.sqrt(bend[given])
            inner = np.eye(given.size) + root[:, None] * G[np.ix_(given, given)] * root
            cross = root[:, None] * G[np.ix_(given, wanted)]
            rest = rest - cross.T @ np.linalg.solve(inner, cross)
        root = np.sqrt(-bend[wanted])
        largest = np.linalg.eigvalsh(root[:, None] * rest * root)[-1]
        exact = largest <= _SAFETY
        if not exact:
            d = np.where(bend < 0, d * (_SAFETY / largest), d)
    # The outputs of the minimizer as a function of α.
    solved = np.linalg.solve(np.eye(len(G)) - G * d, np.column_stack([G, fixed]))
    H, f0 = solved[:, :-1], np.ascontiguousarray(solved[:, -1])
    H = np.ascontiguousarray(0.5 * (H + H.T))
    return Bracket(H, f0, -0.5 * float(fixed @ (d * f0)), d, bool(exact))


def dual_bound(bracket, costs, alpha):
    """Return D(α)."""
    H, f0 = bracket.H, bracket.f0
    smooth = bracket.constant + alpha @ f0 - 0.5 * alpha @ (H @ alpha)
    return float(smooth - conjugates(costs, alpha))


def face_step(bracket, alpha, pattern):
    """Return the maximizer of D on the pieces of its rows that hold ``alpha``, by an active set.

    A piece is a curve, or a line as long as the output sits on a kink or at an end; from ``alpha``
    Newton steps are cut where a row reaches the end of its piece, which it then keeps.
    """
    H, f0, alpha = bracket.H, bracket.f0, alpha.copy()
    point, slope, flex, least, most = pattern
    free = np.isfinite(flex)
    alpha[free] = np.clip(alpha, least, most)[free]
    ridge = _RIDGE * max(float(np.max(np.diag(H))), 1e-300)
    while free.any():
        rise = (f0 - H @ alpha - point)[free] - flex[free] * (alpha - slope)[free]
        matrix = H[np.ix_(free, free)] + np.diag(flex[free] + ridge)
        # Scaled to a diagonal of ones: ``flex`` has all sizes.
        scale = 1.0 / np.sqrt(np.diag(matrix))
        move = np.zeros(alpha.size)
        move[free] = scale * np.linalg.solve(scale[:, None] * matrix * scale, scale * rise)
        room = np.where(move > 0, most - alpha, least - alpha)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = np.where(free & (move != 0), room / move, np.inf)
        # The first variable to meet the end of its piece is free no longer.
        first = int(np.argmin(step))
        if step[first] >= 1.0:
            return alpha + move
        alpha += step[first] * move
        alpha[first] = most[first] if move[first] > 0 else least[first]
        free[first] = False
    return alpha


def line_search(bracket, costs, alpha, target, best):
    """Return the first point from ``target`` back to ``alpha`` where D exceeds ``best``."""
    step = 1.0
    while step > _SHORTEST:
        trial = alpha + step * (target - alpha)
        value = dual_bound(bracket, costs, trial)
        if value > best:
            return trial, value
        step *= 0.3
    return alpha, best


def solve_box(bracket, costs, alpha, cutoff=np.inf, max_iter=_MOST_STEPS, patient=True):
    """Raise D by coordinate ascent and Newton steps.

    A round of exact steps in each α_i finds which rows sit on a kink, at an end of their
    interval, on a line or on a curve; `face_step` solves the linear equations of that pattern.

    Parameters
    ----------
    bracket : Bracket
    costs : BoxCosts
        With the envelopes set.
    alpha : ndarray of shape (n,)
        Start, in the domain of D.
    cutoff : float, default=inf
        Stop as soon as D reaches it.
    max_iter : int, default=100
        Largest number of rounds.
    patient : bool, default=True
        Go on when D is unlikely to reach the cutoff.

    Returns
    -------
    BoxBound
    """
    H, f0, alpha = bracket.H, bracket.f0, alpha.copy()
    pattern, least_h = np.empty((5, alpha.size)), _FLATTEST * (np.diag(H).max(initial=0.0) or 1.0)
    value, n_iter = dual_bound(bracket, costs, alpha), 0
    while value < cutoff and n_iter < max_iter:
        f = f0 - H @ alpha
        # All coordinates once, then Newton on the pieces on which they ended.
        sweep(costs, H, least_h, alpha, f)
        linearize(costs, H, least_h, alpha, f, pattern)
        best = dual_bound(bracket, costs, alpha)
        target = face_step(bracket, alpha, pattern)
        alpha, best = line_search(bracket, costs, alpha, target, best)
        rise, value, n_iter = best - value, best, n_iter + 1
        if rise <= _STALLED * abs(value):
            break
        # A box that the ascent will not close is better cut.
        if not patient and n_iter > 1 and rise <= _HOPELESS * (cutoff - value):
            break
    return BoxBound(value, alpha, f0 - H @ alpha, n_iter)


def box_rounding(G, fixed, sizes, bracket, costs, found):
    """Return how far rounding errors may put the bound of a box above what can be reached.

    H and f0 solve equations that may be ill-conditioned, and are not relied on: the bracket plus
    Σ α_i f_i is evaluated at the function that should be its minimizer. Its least value is lower
    by at most the squared norm of the gradient there, divided by twice the least curvature, which
    `share_penalty` keeps above 1 − `_SAFETY`. All sums err by small multiples of their sizes.
    """
    d, a, bend, rho = bracket.d, np.abs(found.alpha), np.abs(bracket.d), sizes.rho
    unit = (3 * len(G) + 20) * UNIT
    if not unit * (rho.max() * (rho @ bend)) < 0.01 * (1 - _SAFETY):
        return np.inf  # not even the curvature is known
    beta = d * found.f - found.alpha
    g = G @ beta
    f, b = g + fixed, np.abs(beta)
    # Errors of the outputs, of the gradient of the bracket, and of its value.
    off = unit * (rho * (rho @ b) + sizes.fixed)  # of the outputs
    gradient = np.abs(beta - d * f + found.alpha) + bend * off + unit * (a + b)
    value = 0.5 * beta @ g - 0.5 * d @ f**2 + found.alpha @ f
    smooth = found.value + conjugates(costs, found.alpha)
    below = max(0.0, smooth - value) + (gradient @ rho) ** 2 / (1 - _SAFETY)
    c, p, reach = costs.weight, costs.p, np.maximum(np.abs(costs.low), np.abs(costs.high))
    conjugate = np.where(
        costs.bounded,
        (a + c * np.sqrt(2 * costs.s)) * reach + (np.abs(costs.q) + 2 * bend) * reach**2 + c,
        (1 + p) * (a + a**2 / np.where(c > 0, c, np.inf))
        + c * (1 + LARGEST_SLOPE / np.where(p > 0, p, 1.0)),
    ).sum()
    terms = 0.5 * (b @ rho) ** 2 + bend @ f**2 + a @ np.abs(f) + conjugate + sizes.constant
    return float(below + (a + bend * np.abs(f)) @ off + unit * (terms + abs(found.value)))


class _BoxNode(NamedTuple):
    bound: float  # as computed: it steers the search
    order: int  # number of the node: of equal bounds the first is taken
    sure: float  # less what rounding may have added: it is what is claimed
    low: np.ndarray
    high: np.ndarray
    f: np.ndarray


class _Boxes(Search):
    def __init__(self, of, tol, G, fixed, constant, sizes, y, weight, epsilon):
        super().__init__(of, tol)
        self.G, self.fixed, self.constant, self.sizes = G, fixed, constant, sizes
        self.y, self.weight, self.epsilon = y, weight, epsilon
        loss, self.s = of.problem.labeled_loss, of.problem.unlabeled_loss.p
        self.code, self.p = np.full(y.size, loss.code), np.full(y.size, loss.p)
        self.own = np.zeros(y.size)
        if epsilon:  # the last row is the offset
            self.own[-1] = -epsilon
        self.bounded, self.order = y == 0, itertools.count()
        self.rows, self.labeled = np.flatnonzero(y == 0), np.flatnonzero(y)

    @property
    def cutoff(self):
        return self.objective - self.tol * abs(self.objective)

    def take(self):
        return heapq.heappop(self.open)

    def offset(self, beta):
        """Return the offset where it is free and not fixed by a balance, else 0."""
        return float(beta.sum() / self.epsilon) if self.epsilon else 0.0

    def value(self, beta, f):
        """Return J of the function with coefficients β in G, whose outputs are f."""
        value = self.constant + 0.5 * float(beta @ (self.G @ beta))
        value += labeled_costs(self.code, self.p, self.weight, self.y, f, self.labeled)
        for j in self.rows:
            value += cost(self.weight[j], self.s, self.own[j], f[j])
        return value

    def relax(self, low, high, f, cutoff=np.inf, patient=True):
        """Solve the problem of a box; return bracket, costs, `BoxBound`, J and coefficients."""
        # The least curvature of each cost on its interval, as far as the bracket bears it.
        bend = np.zeros(f.size)
        for j in self.rows:
            bend[j] = self.own[j]
            if self.weight[j] > 0:
                bend[j] += least_bend(self.weight[j], self.s, low[j], high[j])
        bracket = share_penalty(self.G, self.fixed, bend)
        costs = BoxCosts(
            self.code, self.p, self.y, self.weight, self.s, self.own + bracket.d, low, high,
            self.bounded, np.zeros(f.size, LINE),
        )  # fmt: skip
        set_envelopes(costs)
        alpha = np.zeros(f.size)
        start_slopes(costs, f, alpha)
        patient = patient or bracket.exact
        found = solve_box(bracket, costs, alpha, cutoff - self.constant, patient=patient)
        beta = bracket.d * found.f - found.alpha
        J = self.value(beta, found.f)
        if J < self.objective:
            self.objective, self.best = J, (beta, found.f)
        return bracket, costs, found, J

    def descend(self, f):
        """Minimize over a box around the outputs, move the box there, repeat, and keep the best."""
        radius, J = np.full(f.size, 0.5 / np.sqrt(self.s)), np.inf
        for _ in range(60):
            low, high = f - radius, f + radius
            bracket, _, found, value = self.relax(low, high, f)
            moved = np.abs(found.f - f)[self.rows]
            gain = J - value
            if gain > 0:
                J, f = value, found.f
            if bracket.exact and gain > 0:
                inside = np.all(moved < 0.999 * radius[self.rows])
                radius = radius if inside else 2 * radius
            else:
                # In a smaller box the bracket bears more of the curvature.
                radius = 0.5 * radius
            if gain <= 1e-10 * abs(J) and (bracket.exact or radius.max() < 1e-5):
                break

    def visit(self, node):
        if node.bound >= self.cutoff:
            self.closed = min(self.closed, node.sure)
            return
        self.n_iter += 1
        low, high = node.low, node.high
        negligible = _NEGLIGIBLE * self.tol * abs(self.objective)
        start = node.f
        # The convex envelope on the box; a second, longer ascent only if the first settles nothing.
        for patient in (False, True):
            bracket, costs, found, _ = self.relax(low, high, start, self.cutoff, patient)
            start = found.f
            bound = max(node.bound, found.value + self.constant)
            excess = gaps(costs, found.f)
            # Where φ equals its envelope J equals the bound, if only the ascent has converged.
            if bound >= self.cutoff or excess.max() > negligible:
                break
        rounding = box_rounding(self.G, self.fixed, self.sizes, bracket, costs, found)
        sure = max(node.sure, found.value + self.constant - rounding)
        # Signs not met before: a descent of J itself may find a better value.
        key = (found.f[self.rows] > 0).tobytes()
        if bound < self.cutoff and key not in self.seen:
            self.seen.add(key)
            self.descend(found.f)
        # Branch where the envelope is farthest below the loss; if nowhere, on the widest interval.
        j, at = int(np.argmax(excess)), found.f
        if excess[j] <= negligible:
            width = np.where(self.bounded, high - low, 0.0)
            j, at = int(np.argmax(width)), 0.5 * (low + high)
        narrow = high[j] - low[j] <= _NARROWEST
        if bound >= self.cutoff or narrow:
            self.closed = min(self.closed, sure)
            return
        # Not too near an end, for the smaller box would gain nothing.
        margin = _EDGE * (high[j] - low[j])
        cut = min(max(at[j], low[j] + margin), high[j] - margin)
        for end in (1, 0):  # the lower part, then the upper one
            ends = low.copy(), high.copy()
            ends[end][j] = cut
            heapq.heappush(self.open, _BoxNode(bound, next(self.order), sure, *ends, found.f))

    def run(self, reach, max_iter, callback):
        """Search until no box is left; the status. ``reach(J)`` is a box that holds all J' ≤ J."""
        f = self.fixed.copy()
        beta = np.zeros(f.size)
        self.objective, self.best = self.value(beta, f), (beta, f)
        self.descend(self.relax(*reach(self.objective), f)[2].f)
        low, high = reach(self.objective)
        self.open.append(_BoxNode(0.0, next(self.order), 0.0, low, high, self.best[1]))
        return self.walk(max_iter, callback)


def solve_intervals(
    problem, K, t, sample_weight=None, *, tol=1e-6, max_iter=1_000_000, callback=None
):
    """Find the global minimum of a problem with the Gaussian unlabeled loss.

    Parameters
    ----------
    problem : Problem
        With a labeled loss of `BranchBoundS3VM`; ``balance`` "none" or "mean".
    K : ndarray of shape (n, n)
        Gram matrix.
    t : ndarray of shape (n,)
        Labels −1 and +1, and 0 for unlabeled rows.
    sample_weight : ndarray of shape (n,), default=None
        Positive weights.
    tol : float, default=1e-6
        Relative gap between the objective and its lower bound at the end.
    max_iter : int, default=1_000_000
        Largest number of nodes.
    callback : callable, default=None
        As in `solve_branch_and_bound`.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError
        With ``balance`` "counts" or "share", which constrain labels; for a loss without a proof; or
        if the offset is free without balance constraint and only one class is labeled: then J has
        no minimum.
    """
    require_proof(problem)
    if problem.balance not in ("none", "mean"):
        raise ValueError(
            f"balance must be 'none' or 'mean' with unlabeled_loss 'gaussian', got "
            f"{problem.balance!r}: the others constrain labels, and the Gaussian loss charges "
            "outputs without giving them labels"
        )
    of = Distinct(problem, K, t, sample_weight)
    free = problem.bias == "free" and problem.balance == "none"
    if free and np.unique(of.t[~of.unlabeled]).size < 2:
        raise ValueError("t must label both classes when the offset is free and balance is 'none'")
    y, weight, K, epsilon = of.t[of.kept], of.weight, of.K_kept, None
    # A free offset is one more function, of negligible norm; a balance is folded into the kernel.
    if free:
        epsilon = _OFFSET * weight.sum()
        G, fixed, constant = np.pad(K, (0, 1)) + 1 / epsilon, np.zeros(y.size + 1), 0.0
        sizes = fold_sizes(G)
        y, weight = np.append(y, 0.0), np.append(weight, 0.0)
    else:
        G, fixed, constant, _ = fold(K, *of.balance)
        sizes = fold_sizes(K, *of.balance)
    G = np.ascontiguousarray(G)
    search = _Boxes(of, tol, G, fixed, constant, sizes, y, weight, epsilon)
    length = np.sqrt(np.maximum(np.diag(K if free else G), 0.0))
    code, p = problem.labeled_loss.code, problem.labeled_loss.p

    def reach(J):
        """Bound the outputs of a function with ½‖f‖² ≤ J and an offset that no label forbids."""
        spread = np.sqrt(2 * max(J - constant, 0.0)) * length
        if not free:
            return fixed - spread, fixed + spread
        ends = []
        for label in (1.0, -1.0):
            rows = np.flatnonzero(y == label)
            least = [labeled_reach(code, p, label, J / weight[i]) - spread[i] for i in rows]
            ends.append(label * max(least))
        low, high = ends
        return np.append(low - spread, low), np.append(high + spread, high)

    status = search.run(reach, max_iter, callback)
    beta = search.best[0]
    return search.solution(beta, search.offset(beta), search.lower_bound, status)
