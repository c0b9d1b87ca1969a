"""The convex problem of a node: some rows are open and carry a label, the others cost nothing.

With c_i the weight of row i and y_i the label of an open row,

    P(f, b) = ½‖f‖² + Σ_open c_i ℓ(y_i, f(x_i) + b)
    D(β)    = −½ βᵀKβ − Σ_open c_i ℓ*(y_i, −β_i/c_i),     Σβ = 0 where b is free.

`fold` puts the offset and the balance constraint into K and into a fixed part of the outputs.
Every β in the domain of D bounds the minimum of P from below, however early a solver stops. In
floating point D is a sum whose rounding errors are bounded too (`Relaxation.rounding`).
"""

from typing import NamedTuple

import numpy as np

from s3vm_lib.branch_and_bound._gains import Opening, open_rows, reference
from s3vm_lib.gram import Gram
from s3vm_lib.kernels import Kernel

from s3vm_lib.losses import (  # isort: skip
    dual_cost, dual_ridge, labeled_conjugate, labeled_curvature, labeled_derivative,
    labeled_value,
)  # fmt: skip
from s3vm_lib.smo import BIG, TAU, Costs, slope_down, slope_up, smo_iterations, solve_smo
from s3vm_lib.utils.jit import as_written, njit

_ROUND = 10  # iterations between two looks at the bound
_COARSE = 1e-3  # relative gap at which a node that will be branched is good enough
_SHORTEST = 1e-10  # Newton step
_NEWTON_STEPS = 100
UNIT = 2.0**-53  # largest relative error of one operation in double precision
_NO_OPENING = Opening(*np.empty((2, 0, 2)), 0.0, np.empty((0, 0)))
LARGEST_SLOPE = 745.0  # of the conjugate of a logistic loss in doubles, log(1/5e-324)
_DAMPING = 1e-8  # least curvature of a loss in a Newton step, relative to its weight
LOGISTIC_LOSSES = ("logistic", "modified_logistic")
# Losses for which the bounds of this package are proved; another one asks for its own proof.
PROVED = {
    *("hinge", "squared_hinge", "smooth_hinge", "l1", "epsilon_insensitive"),
    *LOGISTIC_LOSSES,
}


def require_proof(problem):
    """Refuse a problem with a loss for which no bound has been proved."""
    unlabeled = problem.unlabeled_loss
    effective = None if unlabeled is None else unlabeled.effective_of
    for loss in (problem.labeled_loss.name, effective):
        if loss is not None and loss not in PROVED:
            raise ValueError(f"branch and bound is proved for {sorted(PROVED)}, got {loss!r}")


# --- Offset and balance ---------------------------------------------------------------------------


class Folded(NamedTuple):
    """A problem without offset and balance constraint: outputs Gβ + fixed, plus b where free."""

    G: np.ndarray  # Gram matrix of the features that are left, (n, n)
    fixed: np.ndarray  # part of the outputs that does not depend on β, (n,)
    constant: float  # penalty that does not depend on β
    free: bool  # whether an offset b is free, and Σβ = 0 with it


def fold(K, bias="free", share=None, mean=0.0):
    """Solve offset and balance constraint for one direction of the feature space.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix.
    bias : {"free", "regularized", "none"}, default="free"
        As in `Problem`.
    share : ndarray of shape (n,), default=None
        Weights, of sum 1, with which the balance constraint averages the outputs; None without
        that constraint.
    mean : float, default=0.0
        The mean output it asks for.

    Returns
    -------
    Folded

    Notes
    -----
    With a free offset the constraint fixes b: centered at the mean m of the rows, the outputs are
    ⟨f, φ(x_i) − m⟩ + mean. With a regularized one, or none, let φ̃ be the features with a constant
    1 or without. The constraint ⟨f̃, m̃⟩ = mean fixes the component of f̃ along m̃, which
    contributes ``mean·⟨φ̃_i, m̃⟩/‖m̃‖²`` to the outputs and mean²/(2‖m̃‖²) to the penalty; the
    rest lives in the features from which that component is removed.
    """
    n = len(K)
    if share is None:
        if bias == "regularized":
            K = K + 1.0
        return Folded(np.ascontiguousarray(K), np.zeros(n), 0.0, bias == "free")
    if bias == "free":
        row = K @ share
        G = K - row[:, None] - row[None, :] + share @ row
        return Folded(G, np.full(n, float(mean)), 0.0, False)
    if bias == "regularized":
        K = K + 1.0
    row = K @ share
    square = max(share @ row, np.finfo(float).tiny)
    G = K - np.outer(row, row) / square
    return Folded(G, mean * row / square, 0.5 * mean**2 / square, False)


class Sizes(NamedTuple):
    """Bounds on sums of absolute values, to which the rounding errors of `fold` are in proportion.

    In G they are at most (n + 10) `UNIT` ρ_i ρ_j, for ``|k(x, z)|`` ≤ √(k(x, x) k(z, z)).
    """

    rho: np.ndarray
    fixed: np.ndarray
    constant: float


def fold_sizes(K, bias="free", share=None, mean=0.0):
    """Return the `Sizes` of what `fold` returns."""
    own = 1.0 if bias == "regularized" else 0.0
    length = np.sqrt(np.maximum(np.diag(K), 0.0) + own)
    if share is None:
        return Sizes(length, 0.0 * length, 0.0)
    center = share @ length
    if bias == "free":
        return Sizes(length + center, np.full(len(K), abs(mean)), 0.0)
    square = max(share @ K @ share + own, np.finfo(float).tiny)
    lost = (3.0 + 2.0 * center**2 / square) / square  # by cancellation in the square
    rho = length * np.sqrt(1.0 + lost * center**2)
    return Sizes(rho, lost * center * abs(mean) * length, 0.5 * lost * mean**2)


def unfold(beta, b, K, bias="free", share=None, mean=0.0):
    """Return c and the offset of the f = Σ_i c_i k(x_i, ·) that `fold` stands for.

    Parameters
    ----------
    beta : ndarray of shape (n,)
        Solution in the folded features.
    b : float
        Offset where it is free.
    K, bias, share, mean
        As in `fold`.

    Returns
    -------
    c : ndarray of shape (n,)
    b : float
    """
    if share is None:
        return beta, b if bias == "free" else beta.sum() if bias == "regularized" else 0.0
    if bias == "free":
        c = beta - share * beta.sum()
        return c, float(mean - share @ (K @ c))
    row = K @ share + (1.0 if bias == "regularized" else 0.0)
    c = beta + share * ((mean - beta @ row) / max(share @ row, np.finfo(float).tiny))
    return c, float(c.sum()) if bias == "regularized" else 0.0


# --- Dual costs -----------------------------------------------------------------------------------


@njit
def set_labels(c, code, p, weight, fixed, y):
    """Write the costs ``c`` of all rows with the labels y, the fixed outputs included."""
    for i in range(y.size):
        lo, mid, hi, s1, s2 = dual_cost(code[i], p[i], y[i], weight[i])
        c.lo[i], c.mid[i], c.hi[i] = max(lo, -BIG), max(min(mid, BIG), -BIG), min(hi, BIG)
        c.s1[i], c.s2[i] = s1 + fixed[i], s2 + fixed[i]


@njit
def dual_value(c, beta, F):
    """Return D = −½ βᵀF − Σ φ_i(β_i), with φ_i(0) = 0."""
    value = 0.0
    for i in range(beta.size):
        if beta[i] != 0.0:
            mid = c.mid[i]
            cost = c.s1[i] * (min(beta[i], mid) - min(0.0, mid))
            cost += c.s2[i] * (max(beta[i], mid) - max(0.0, mid))
            value -= 0.5 * beta[i] * F[i] + cost
    return value


@njit
def primal_value(code, p, weight, y, norm2, f):
    """Return P = ½‖f‖² + Σ_open c_i ℓ(y_i, f_i)."""
    value = 0.5 * norm2
    for i in range(y.size):
        if y[i] != 0.0:
            value += weight[i] * labeled_value(code[i], y[i], f[i], p[i])
    return value


@njit
def offset(A, B, F, n):
    """Return b between the largest A − F and the least B − F: their mean over the rows with A = B.

    Without such a row the middle is taken, so that swapped labels change the sign.
    """
    top, bottom, total, count = -BIG, BIG, 0.0, 0
    for i in range(n):
        top, bottom = max(top, A[i] - F[i]), min(bottom, B[i] - F[i])
        if A[i] == B[i]:
            total += A[i] - F[i]
            count += 1
    # Rows inside their piece determine b.
    if count > 0:
        return total / count
    # Without such rows b lies between two bounds, of which one may be missing.
    if top <= -BIG / 2:
        return bottom if bottom < BIG / 2 else 0.0
    return top if bottom >= BIG / 2 else 0.5 * (top + bottom)


# --- Two engines ----------------------------------------------------------------------------------


class Bound(NamedTuple):
    """An approximate solution of the convex problem of a node."""

    value: float  # D, a lower bound
    beta: np.ndarray  # dual variables, (n,) or (n + 1,): a start for the children
    f: np.ndarray  # outputs of all rows, open or closed, (n,)
    dual_f: np.ndarray  # outputs at the dual point of the bound, which may be another
    b: float  # offset where it is free
    norm2: float  # ‖f‖² of the folded features
    n_iter: int
    dual: np.ndarray  # the dual point


@njit
def ascend(machine, losses, folded, beta, F, f, tol, max_iter, cutoff, last):
    """Raise D by SMO until the fate of the node is known; returns (D, b, ‖f‖², iterations).

    That is: D ≥ ``cutoff``, so that the node cannot hold anything better; or the relative gap
    between P and D is below ``tol``; or it is below a coarse tolerance while P < ``cutoff``, so
    that no bound could close the node, unless it is the ``last`` one of its branch.
    """
    cache, rows, c, diagonal, score, bits = machine
    code, p, weight, y = losses
    ridges, fixed, free = folded
    n = y.size
    # The slopes of the dual costs to both sides.
    A, B = np.empty(beta.size), np.empty(beta.size)
    for i in range(beta.size):
        A[i], B[i] = slope_up(c, i, beta[i]), slope_down(c, i, beta[i])
    done = 0
    while True:
        steps, _ = smo_iterations(
            cache, rows, c, diagonal, beta, F, A, B, score, bits, TAU, 1e-13, _ROUND
        )
        done += steps
        value = dual_value(c, beta, F)
        # Outputs of the bound: the ridge of a curved loss is no part of them.
        b = offset(A, B, F, n) if free else 0.0
        norm2 = 0.0
        for i in range(n):
            raw = F[i] - ridges[i] * beta[i]
            norm2 += beta[i] * raw
            f[i] = raw + fixed[i] + b
        if value >= cutoff or steps < _ROUND or done >= max_iter:
            break
        # D alone does not close the node: is it solved well enough?
        primal = primal_value(code, p, weight, y, norm2, f)
        gap = primal - value
        if gap <= tol * primal or (gap <= _COARSE * primal and primal < cutoff and not last):
            break
    return value, b, norm2, done


@njit
def feasible_dual(code, p, weight, y, f, free, beta):
    """Write β_i = −c_i ∂ℓ(y_i, f_i), one side shrunk for Σβ = 0; return Σ c_i ℓ*."""
    up, down = 0.0, 0.0
    for i in range(y.size):
        beta[i] = 0.0
        if y[i] != 0.0:
            beta[i] = -weight[i] * labeled_derivative(code[i], y[i], f[i], p[i])
            up, down = up + max(beta[i], 0.0), down + max(-beta[i], 0.0)
    # The heavier of both sides shrinks until Σβ = 0.
    cost = 0.0
    for i in range(y.size):
        if y[i] != 0.0:
            if free and beta[i] > 0:
                beta[i] *= min(1.0, down / up)
            elif free and beta[i] < 0:
                beta[i] *= min(1.0, up / down)
            cost += weight[i] * labeled_conjugate(code[i], y[i], -beta[i] / weight[i], p[i])
    return cost


@njit
def level(code, p, weight, y, g, free):
    """Return the b that minimizes Σ_open c_i ℓ(y_i, g_i + b), by bisection of its derivative."""
    if not free:
        return 0.0
    low, high = -1.0, 1.0
    # Widen the bracket until the derivative changes its sign in it, then halve it.
    for _ in range(200):
        slope_low, slope_high = 0.0, 0.0
        for i in range(y.size):
            if y[i] != 0.0:
                slope_low += weight[i] * labeled_derivative(code[i], y[i], g[i] + low, p[i])
                slope_high += weight[i] * labeled_derivative(code[i], y[i], g[i] + high, p[i])
        if slope_low < 0 < slope_high:
            break
        if slope_low >= 0:
            low *= 2
        if slope_high <= 0:
            high *= 2
        if high - low > 1e4:
            break
    for _ in range(60):
        middle, slope = 0.5 * (low + high), 0.0
        for i in range(y.size):
            if y[i] != 0.0:
                slope += weight[i] * labeled_derivative(code[i], y[i], g[i] + middle, p[i])
        if slope > 0:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


@njit
def slopes_and_curvatures(code, p, weight, y, f, a, h):
    """Write the first and the damped second derivatives of c ℓ(y, f)."""
    for i in range(y.size):
        a[i] = weight[i] * labeled_derivative(code[i], y[i], f[i], p[i])
        h[i] = weight[i] * max(labeled_curvature(code[i], y[i], f[i], p[i]), _DAMPING)


def newton(folded, code, p, weight, y, beta, tol, max_iter, cutoff, last):
    """Lower P by Newton steps in the outputs until the fate of the node is known, as in `ascend`.

    For the logistic losses. With slopes a and curvatures H of the losses at the outputs f the
    quadratic model is stationary where (I + HG) β = H(f − fixed − b) − a. The step to it is halved
    until P falls, and b is then chosen anew. Every iterate yields a dual point β = −a, and thereby
    a bound.

    Returns
    -------
    Bound
    """
    G, fixed, free = folded.G, folded.fixed, folded.free
    index, losses = np.flatnonzero(y), (code, p, weight, y)
    G_open, opened = G[np.ix_(index, index)], tuple(part[index] for part in losses)
    dual, (a, h) = np.empty(y.size), np.empty((2, index.size))
    g, value, dual_f, best, n_iter = G @ beta, -np.inf, fixed, np.zeros(y.size), 0
    while True:
        # The best offset for these outputs.
        b = level(*losses, g + fixed, free)
        f, norm2 = g + fixed + b, float(beta @ g)
        primal = primal_value(*losses, norm2, f)
        # Any feasible dual point bounds from below; the slopes of the losses suggest one.
        cost = feasible_dual(*losses, f, free, dual)
        dual_g = G @ dual
        found = -0.5 * dual @ dual_g - dual @ fixed - cost
        if found > value:
            value, dual_f, best = float(found), dual_g + fixed, dual.copy()
        gap = primal - value
        if value >= cutoff or gap <= tol * primal or n_iter >= max_iter or index.size == 0:
            break
        # A node that is going to be branched need not be solved to the end.
        if gap <= _COARSE * primal and primal < cutoff and not last:
            break
        # Newton's equations on the rows with a loss, with the offset eliminated.
        slopes_and_curvatures(*opened, f[index], a, h)
        right = np.column_stack([h * (f - fixed)[index] - a, h])
        solved = np.linalg.solve(np.eye(index.size) + h[:, None] * G_open, right)
        b_new = solved[:, 0].sum() / solved[:, 1].sum() if free else 0.0
        direction = -beta
        direction[index] += solved[:, 0] - b_new * solved[:, 1]
        # Halve the step until the primal value falls.
        change, step = G @ direction, 1.0
        while step > _SHORTEST:
            trial, trial_g = beta + step * direction, g + step * change
            outputs = trial_g + fixed + b + step * (b_new - b)
            if primal_value(*losses, trial @ trial_g, outputs) < primal:
                break
            step *= 0.5
        else:
            break
        beta, g, n_iter = trial, trial_g, n_iter + 1
    return Bound(value + folded.constant, beta, f, dual_f, b, norm2, n_iter, best)


# --- Rounding -------------------------------------------------------------------------------------


@njit
def absolute_terms(beta, rho, ridges, slopes):
    """Return the bound on the sum of the absolute values of all terms of D, for β ≥ 0."""
    return 0.5 * np.sum(rho * beta) ** 2 + np.sum(beta * (0.5 * ridges * beta + slopes))


@njit
def rounding_error(
    c, K, rho, fixed, ridges, rest, free, dual, claimed, outputs, rows, push, cap, total, inner
):
    """Compute `Relaxation.rounding`, with the dual value that was ``claimed`` anew."""
    n = rho.size
    beta, F, drift, steps = np.abs(dual[:n]), K @ dual, 0.0, 0.0
    slopes, moved = np.maximum(np.abs(c.s1), np.abs(c.s2))[:n], beta.copy()
    if claimed > -BIG:
        drift = max(0.0, claimed - dual_value(c, dual, F))
    for k in range(push.shape[0]):  # every row of the opening as far from 0 as it can move
        i, size = rows[k], max(abs(push[k, 0]), abs(push[k, 1]))
        step = min(size / max(inner[k, k], 1e-300), max(cap[k, 0], cap[k, 1]), total)
        moved[i] += step
        steps += step
        slopes[i] = size + abs(outputs[i])
    if free and steps > 0.0:
        q, _, most = reference(c, dual, F)
        moved += q * min(most, steps)
    # The terms of D at the point itself, and with all rows as far out as they can go.
    own = absolute_terms(beta, rho, ridges, slopes + fixed)
    largest = absolute_terms(moved, rho, ridges, slopes + fixed)
    error = UNIT * ((3 * n + 20) * (largest + rest) + 10 * n * (largest - own))
    if free:  # Σβ = 0 but for rounding: a row that takes up the rest changes D by this much
        off = abs(np.sum(dual)) + n * UNIT * np.sum(moved)
        slope = np.max(rho * np.sum(rho * moved) + ridges * moved + slopes)
        error += off * slope if n * off <= np.max(beta) else np.inf
    return drift + error


# --- The relaxation -------------------------------------------------------------------------------


class Relaxation:
    """The convex problems of all nodes of one problem on one data set.

    Parameters
    ----------
    folded : Folded
        Gram matrix and outputs, see `fold`.
    code, p : ndarray of shape (n,)
        Code and parameter of the labeled loss with which a row is charged once it is open.
    weight : ndarray of shape (n,)
        Weights c_i of the losses.
    tol : float, default=1e-6
        Relative duality gap at which a problem counts as solved.
    max_iter : int, default=100_000
        Largest number of SMO iterations of a node (and of Newton steps, never more than 100); a
        node that meets it has a weaker bound.
    sizes : Sizes, default=None
        None takes those of ``folded`` without a balance.
    """

    def __init__(self, folded, code, p, weight, tol=1e-6, max_iter=100_000, sizes=None):
        self.folded, self.weight, self.tol, self.max_iter = folded, weight, tol, max_iter
        self.sizes = sizes or fold_sizes(folded.G)
        self.costs = Costs(*np.zeros((5, weight.size)))
        self.code, self.p = code, p
        n = weight.size
        ridge = as_written(dual_ridge)
        ridges = np.array([ridge(*v) for v in zip(code, p, weight, strict=True)])
        self.smo = not np.isnan(ridges).any()
        self.ridges = np.nan_to_num(ridges)
        if not self.smo:
            return
        # Without a constraint on Σβ one more row, of zero features and no cost, takes up the sum.
        self.size = n if folded.free else n + 1
        K = folded.G
        if self.size > n or self.ridges.any():
            K = np.zeros((self.size, self.size))
            K[:n, :n] = folded.G
            K[np.arange(n), np.arange(n)] += self.ridges
        self.gram = Gram(K, Kernel("precomputed"), dtype=np.float64)
        self.costs = Costs(*np.zeros((5, self.size)))
        if not folded.free:
            self.costs.lo[n], self.costs.mid[n], self.costs.hi[n] = -BIG, BIG, BIG
        self.score = np.zeros(self.size)
        self.bits = self.score.view(np.int64)

    def start(self):
        """Return β = 0."""
        return np.zeros(self.size if self.smo else self.weight.size)

    def solve(self, y, beta, cutoff=np.inf, last=False, tol=None):
        """Bound the node whose rows with y = ±1 are open and those with y = 0 closed.

        Parameters
        ----------
        y : ndarray of shape (n,)
        beta : ndarray
            Dual variables of the parent, all of whose open rows keep their labels, or of
            `start`; not changed.
        cutoff : float, default=inf
            Stop as soon as the bound reaches it.
        last : bool, default=False
            Solve to ``tol`` even when the primal value is below the cutoff.
        tol : float, default=None
            Relative gap instead of the one given at first.

        Returns
        -------
        Bound
        """
        tol = self.tol if tol is None else tol
        w, losses = self.folded, (self.code, self.p, self.weight, y)
        cutoff = cutoff - w.constant
        if not self.smo:
            most = min(_NEWTON_STEPS, self.max_iter)
            return newton(w, *losses, beta, tol, most, cutoff, last)
        beta, f, c, gram = beta.copy(), np.empty(y.size), self.costs, self.gram
        set_labels(c, self.code, self.p, self.weight, w.fixed, y)
        F = gram.cache.values @ beta
        machine = gram.cache, gram.rows, c, gram.diagonal, self.score, self.bits
        folded, limits = (self.ridges, w.fixed, w.free), (tol, self.max_iter, cutoff, last)
        value, b, norm2, n_iter = ascend(machine, losses, folded, beta, F, f, *limits)
        return Bound(value + w.constant, beta, f, f, b, norm2, n_iter, beta)

    def project(self, y, beta):
        """Return a start for the labels y from dual variables of other labels."""
        n = self.weight.size
        beta = np.where(y * beta[:n] > 0, beta[:n], 0.0)
        # Variables of another label are 0; with a free offset both sides must weigh the same.
        up, down = beta[beta > 0].sum(), -beta[beta < 0].sum()
        if not self.smo:
            return beta
        if not self.folded.free:
            return np.append(beta, down - up)
        if up > down:
            beta[beta > 0] *= down / up
        elif down > up:
            beta[beta < 0] *= up / down
        return beta

    def polish(self, y, beta, tol):
        """Solve the problem of the labels y until no optimality condition fails by ``tol``."""
        if not self.smo:
            return self.solve(y, beta, last=True, tol=1e-15)
        n, w, c = self.weight.size, self.folded, self.costs
        set_labels(c, self.code, self.p, self.weight, w.fixed, y)
        found = solve_smo(self.gram, c, beta, tol=tol, max_iter=self.max_iter, shrinking=False)
        raw = (found.f - np.append(self.ridges, np.zeros(beta.size - n)) * found.beta)[:n]
        b = found.b if w.free else 0.0
        norm2 = float(found.beta[:n] @ raw)
        value = w.constant - found.objective
        f = raw + w.fixed + b
        return Bound(value, found.beta, f, f, b, norm2, found.n_iter, found.beta)

    def opening(self, y, bound, rows):
        """Return what the closed ``rows`` can add to a bound; None with a free offset and
        logistic losses.
        """
        w, n = self.folded, self.weight.size
        K, f, Kq, square, total = w.G, bound.dual_f, np.zeros(n), 0.0, BIG
        if w.free:
            if not self.smo:
                return None
            K, c = self.gram.cache.values, self.costs
            set_labels(c, self.code, self.p, self.weight, w.fixed, y)
            F = K @ bound.beta
            q, rate, total = reference(c, bound.beta, F)
            Kq, f = K @ q, F + w.fixed + rate
            square = float(q @ Kq)
        # Slopes of D and largest steps of the rows that open, for either label.
        push, cap = np.empty((2, rows.size, 2))
        inner = np.empty((rows.size, rows.size))
        open_rows(
            w.G, self.ridges, self.code, self.p, self.weight, f, Kq, square, rows, push, cap, inner
        )
        return Opening(push, cap, total, inner)

    def rounding(self, y, bound, rows, opening):
        """Return how far rounding errors may put the bounds of a node above what can be reached.

        In the dual value and in the gains at its dual point errors are small multiples of the
        sums of the absolute values of all terms, which are largest where every row of ``opening``
        has moved as far as it can.

        Parameters
        ----------
        y, bound, rows, opening
            As in `opening`, and what that returned, right after `solve`.

        Returns
        -------
        float
        """
        c, w, rest, claimed = self.costs, self.folded, self.sizes.constant, -np.inf
        if self.smo:  # whose outputs are updated from step to step
            claimed = bound.value - w.constant
        else:
            c.s1[:] = np.where(y == 0, 0.0, 1.0 + LARGEST_SLOPE / np.where(self.p > 0, self.p, 1.0))
            rest += self.weight @ c.s1  # the conjugates, whose terms may cancel
        K = self.gram.cache.values if self.smo else w.G
        return rounding_error(
            c, K, *self.sizes[:2], self.ridges, rest, w.free, bound.dual, claimed, bound.dual_f,
            rows, *(opening or _NO_OPENING),
        )  # fmt: skip
