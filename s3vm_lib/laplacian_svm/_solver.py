"""Newton on the labeled rows, and preconditioned conjugate gradients on all of them."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve, solve_triangular
from scipy.linalg.blas import dsymv

from s3vm_lib._numba import njit
from s3vm_lib.finite_newton import conjugate_gradients, line_search
from s3vm_lib.kernels import Kernel
from s3vm_lib.smo import BIG, Costs, Gram, solve_smo, svc_costs

COARSE = 100  # rows of the space that makes conjugate gradients fast
STOPPING = ("gap", "stability", "validation", "gradient", "change")
_REST = 5  # iterations in which J must lose less than tol J before the gap is looked at closely
_DIRECT = (
    2500  # up to this many rows "auto" factorizes: slower than gradients at best, but never stuck
)


class Solution(NamedTuple):
    """A minimum of the objective, as `solve_deformed`, `solve_hinge` and `solve_pcg` return it."""

    beta: np.ndarray  # signed dual variables of the labeled rows, (l,)
    b: float  # offset
    gap: float  # duality gap, an upper bound on J − J*
    n_iter: int
    status: str  # "converged", "max_iter", "no_step" or "stopped" (by the callback)
    history: list  # one dict per iteration or round
    c: np.ndarray | None = None  # coefficients of all rows, (n,), from `solve_pcg`
    f: np.ndarray | None = None  # Kc, (n,), from `solve_pcg`


# --- Parameters of the papers ---------------------------------------------------------------------


def melacci_penalties(gamma_A, gamma_I, n_edges):
    """C and C_graph for Σ_L max(0, 1 − t f)² + γ_A ‖f‖² + γ_I fᵀMf.

    Parameters
    ----------
    gamma_A, gamma_I : float
        γ_A > 0 and γ_I ≥ 0 of Melacci and Belkin (2011), who use sums and the squared hinge without
        a factor ½.
    n_edges : int
        |E|.

    Returns
    -------
    C, C_graph : float
        1/γ_A and |E| γ_I/(2γ_A): J is their objective divided by 2γ_A.
    """
    return 1 / gamma_A, n_edges * gamma_I / (2 * gamma_A)


def belkin_penalties(gamma_A, gamma_I, n_edges, n_labeled, n):
    """C and C_graph for (1/l) Σ_L ℓ + γ_A ‖f‖² + (γ_I/n²) fᵀMf.

    Parameters
    ----------
    gamma_A, gamma_I : float
        γ_A > 0 and γ_I ≥ 0 of Belkin, Niyogi and Sindhwani (2006), equation (4) with their choice
        of the graph term.
    n_edges : int
        |E|.
    n_labeled, n : int
        l and the number of all rows.

    Returns
    -------
    C, C_graph : float
        1/(2γ_A l) and |E| γ_I/(2γ_A n²): with the hinge, J is their objective divided by 2γ_A.
    """
    return 1 / (2 * gamma_A * n_labeled), n_edges * gamma_I / (2 * gamma_A * n**2)


# --- The losses of the labeled rows ---------------------------------------------------------------


@njit
def best_offset(t, upper, f):
    """The minimizer b of ½ Σ_i u_i max(0, 1 − t_i (f_i + b))², the middle where there are many.

    The derivative is piecewise linear and increasing in b, with kinks where f_i + b = t_i: walk
    along them until it changes its sign.

    Parameters
    ----------
    t : ndarray of shape (l,)
        Labels −1 and +1, both of them present.
    upper : ndarray of shape (l,)
        Weights u > 0.
    f : ndarray of shape (l,)
        Outputs without the offset.

    Returns
    -------
    float
    """
    kinks = t - f
    last, first = -np.inf, np.inf
    for i in range(t.size):
        if t[i] > 0.0:  # costs to the left of its kink
            last = max(last, kinks[i])
        else:
            first = min(first, kinks[i])
    if last <= first:
        return 0.5 * (last + first)
    order = np.argsort(kinks)
    slope, curvature, here = 0.0, 0.0, kinks[order[0]]
    for i in range(t.size):
        if t[i] > 0.0:
            curvature += upper[i]
            slope += upper[i] * (here - kinks[i])
    for k in order:
        ahead = slope + curvature * (kinks[k] - here)
        if ahead >= 0.0:
            break
        slope, here = ahead, kinks[k]
        curvature += -upper[k] if t[k] > 0.0 else upper[k]
    return here - slope / curvature


@njit
def squared_hinge_duals(t, upper, f):
    """β_i = u_i t_i max(0, 1 − t_i f_i): minus the derivatives of the losses in the outputs."""
    beta = np.empty(t.size)
    for i in range(t.size):
        beta[i] = upper[i] * t[i] * max(0.0, 1.0 - t[i] * f[i])
    return beta


def _loss(beta, upper):
    """½ Σ u max(0, 1 − t f)², from the β of `squared_hinge_duals`."""
    return 0.5 * float(beta @ (beta / upper))


# --- The deformed kernel --------------------------------------------------------------------------


class DeformedKernel:
    """The kernel K̃ = (I + 2κKM)⁻¹K, in which ‖f‖² + 2κ fᵀMf is a norm.

    Its values on the labeled rows are all that a solver needs. The minimizer is then f = K̃β with β
    on the labeled rows alone, and its coefficients in the original kernel are c = (I + 2κMK)⁻¹β.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix.
    lap : Laplacian
        M.
    kappa : float
        κ ≥ 0.
    labeled : ndarray of shape (l,)
        Indices of the labeled rows.

    Attributes
    ----------
    block : ndarray of shape (l, l)
        K̃ on the labeled rows.
    """

    def __init__(self, K, lap, kappa, labeled):
        self.K, self.labeled, self._lu = K, labeled, None
        if kappa > 0:
            A = (2.0 * kappa) * lap.product(K)  # 2κMK, whose transpose is 2κKM
            A[np.diag_indices_from(A)] += 1.0
            self._lu = lu_factor(A, overwrite_a=True, check_finite=False)
            columns = lu_solve(self._lu, K[:, labeled], trans=1, check_finite=False)
        else:
            columns = K[:, labeled]
        self.block = _symmetric(columns[labeled])

    def expand(self, beta):
        """Coefficients c of shape (n,) and outputs Kc of shape (n,), from β on the labeled rows."""
        c = np.zeros(self.K.shape[0])
        c[self.labeled] = beta
        if self._lu is not None:
            c = lu_solve(self._lu, c, check_finite=False)
        return c, self.K @ c

    @staticmethod
    def norm2(c, f):
        """‖f‖² = cᵀKc."""
        return float(c @ f)


class LowRankDeformedKernel:
    """`DeformedKernel` for K ≈ GGᵀ with r columns: n·r numbers in place of n².

    With f = Gw, the norm is wᵀAw for A = I + 2κGᵀMG, and K̃ = GA⁻¹Gᵀ.

    Parameters
    ----------
    low_rank : LowRank
        From `pivoted_cholesky`.
    lap, kappa, labeled
        See `DeformedKernel`.
    """

    def __init__(self, low_rank, lap, kappa, labeled):
        G = low_rank.factor
        self.G, self.pivots, self.labeled = G, low_rank.pivots, labeled
        A = np.eye(G.shape[1])
        if kappa > 0:
            A += (2.0 * kappa) * (G.T @ lap.product(G))
        self._factor = cho_factor(_symmetric(A), lower=True, check_finite=False)
        half = solve_triangular(self._factor[0], G[labeled].T, lower=True, check_finite=False)
        self.block = half.T @ half

    def expand(self, beta):
        """Coefficients c of shape (n,), zero but on the pivots, and outputs of shape (n,)."""
        w = cho_solve(self._factor, self.G[self.labeled].T @ beta, check_finite=False)
        c = np.zeros(self.G.shape[0])
        c[self.pivots] = solve_triangular(self.G[self.pivots], w, lower=True, trans=1)
        self._w2 = float(w @ w)
        return c, self.G @ w

    def norm2(self, c, f):
        """‖f‖² of the function that `expand` returned last."""
        return self._w2


def _symmetric(A):
    return 0.5 * (A + A.T)


# --- Newton and SMO on the labeled rows -----------------------------------------------------------


def solve_deformed(block, t, upper, *, offset=True, tol=1e-6, max_iter=1000, callback=None):
    """Newton's method for the squared hinge in the deformed kernel.

    Minimizes ½βᵀK̃β + ½ Σ u_i max(0, 1 − t_i (f_i + b))², f = K̃β, over β and b. Eliminating the
    unlabeled rows changes no iterate: these are the Newton steps on all n coefficients, with one
    factorization for all of them. Steps are searched exactly.

    Parameters
    ----------
    block : ndarray of shape (l, l)
        K̃ on the labeled rows.
    t : ndarray of shape (l,)
        Labels −1 and +1, both of them present.
    upper : ndarray of shape (l,)
        Weights u = C s > 0.
    offset : bool, default=True
        Whether there is an offset b; False holds it at 0.
    tol : float, default=1e-6
        The search ends when the duality gap is at most tol times the objective.
    max_iter : int, default=1000
        Largest number of Newton steps.
    callback : callable, default=None
        Called with the state (n_iter, objective, gap) before each step; a true value stops.

    Returns
    -------
    Solution
    """
    beta, f = np.zeros(t.size), np.zeros(t.size)
    plus, minus = np.where(t > 0, upper, 0.0), np.where(t < 0, upper, 0.0)
    history, n_iter, before = [], 0, np.inf
    while True:
        b = best_offset(t, upper, f) if offset else 0.0
        slopes = squared_hinge_duals(t, upper, f + b)
        r = slopes - beta
        objective = 0.5 * float(beta @ f) + _loss(slopes, upper)
        gap = 0.5 * float(r @ (block @ r))
        status = _step_status(objective, gap, before, tol, n_iter, max_iter)
        if n_iter or status is not None:
            history.append({"n_iter": n_iter, "objective": objective, "gap": gap})
            if callback is not None and callback(history[-1]) and status is None:
                status = "stopped"
        if status is not None:
            return Solution(beta, b, gap, n_iter, status, history)
        E = np.flatnonzero(slopes)
        A = block[np.ix_(E, E)]
        A[np.diag_indices_from(A)] += 1.0 / upper[E]
        parts = cho_solve(cho_factor(A, lower=True), np.column_stack([t[E], np.ones(E.size)]))
        target_b = parts[:, 0].sum() / parts[:, 1].sum() if offset else 0.0
        d = -beta
        d[E] += parts[:, 0] - target_b * parts[:, 1]
        Kd, db = block @ d, target_b - b
        dd = max(float(d @ Kd), np.finfo(float).tiny)
        step = line_search(plus, minus, f + b, Kd + db, float(d @ f), dd)
        beta, f = beta + step * d, f + step * Kd
        n_iter, before = n_iter + 1, (objective, gap)


def _step_status(objective, gap, before, tol, n_iter, max_iter):
    """Why to stop, or None."""
    if gap <= tol * objective or objective == 0.0:
        return "converged"
    if n_iter and objective >= before[0] and gap >= before[1]:
        return "no_step"  # the limit of double precision
    return "max_iter" if n_iter >= max_iter else None


def solve_hinge(block, t, upper, *, offset=True, tol=1e-3, max_iter=1000, callback=None):
    """The hinge in the deformed kernel: Belkin's dual, by SMO.

    Parameters
    ----------
    block, t, upper, offset
        See `solve_deformed`. Without an offset there is no constraint Σβ = 0; a free point at the
        origin of the feature space takes it away.
    tol : float, default=1e-3
        Largest violation of the optimality conditions.
    max_iter : int, default=1000
        Largest number of SMO iterations per labeled row.
    callback : callable, default=None
        Called after each round with a dict (n_iter, violation, n_active); a true value stops.

    Returns
    -------
    Solution
        Its ``gap`` is the duality gap of the SVM in the deformed kernel.
    """
    costs, K = svc_costs(t, upper), np.ascontiguousarray(block)
    if not offset:
        K = np.pad(K, (0, 1))
        costs = Costs(*map(np.append, costs, (-BIG, BIG, BIG, 0.0, 0.0)))
    gram = Gram(K, Kernel("precomputed"))
    found = solve_smo(gram, costs, tol=tol, max_iter=max_iter * t.size, callback=callback)
    beta, b = found.beta[: t.size], found.b if offset else 0.0
    f = block @ beta
    gap = float(beta @ f + upper @ np.maximum(0, 1 - t * (f + b)) - t @ beta)
    keys = ("n_iter", "violation", "n_active")
    history = [dict(zip(keys, state, strict=True)) for state in found.history]
    return Solution(beta, b, gap, max(found.n_iter, 1), found.status, history)


# --- Preconditioned conjugate gradients on all rows -----------------------------------------------


class Watch(NamedTuple):
    """What an early stopping rule looks at (see `solve_pcg`)."""

    rule: str  # one of STOPPING
    rows: np.ndarray  # unlabeled rows, or labeled rows that are held out
    labels: np.ndarray  # labels −1 and +1 of the latter
    every: int  # iterations between two looks
    share: float  # of the rows that may change, or of the errors that must go away


def duality_gap(K, lap, kappa, r, rKr, max_iter=30):
    """An upper bound on J − J* from the residual r of `solve_pcg`.

    With ½fᵀMf ≥ uᵀf − … in place of the graph term for u = 2κM(f + w), every w of shape (n,) gives
    a dual point whose gap is

        ½(r − 2κMw)ᵀK(r − 2κMw) + κ wᵀMw.

    w = 0 gives ½rᵀKr, which is far too large where the graph term rules. A few conjugate gradients
    on (2κM + δI)w = r, products with a sparse matrix, come close to the best w.

    Parameters
    ----------
    K, lap, kappa
        As in `solve_pcg`.
    r : ndarray of shape (n,)
        Residual.
    rKr : float
        rᵀKr.
    max_iter : int, default=30
        Products with M.

    Returns
    -------
    float
    """
    delta = 1.0 / max(float(np.mean(np.diagonal(K))), np.finfo(float).tiny)

    def product(v):
        return delta * v + (2.0 * kappa) * lap.product(v)

    w, _ = conjugate_gradients(product, -r, 1e-3 * float(np.linalg.norm(r)), max_iter)
    Mw = lap.product(w)
    rest = r - 2.0 * kappa * Mw
    other = 0.5 * float(rest @ dsymv(1.0, K.T, rest)) + kappa * float(w @ Mw)
    return max(0.0, min(0.5 * rKr, other))


class CoarseSpace:
    """Functions spanned by the kernel at few rows, in which Newton steps are cheap.

    With Z the columns of the identity at these rows p, and T = I + (2κM + D)K for the Hessian D of
    the losses in the outputs, the direction r is replaced by

        z = r − Z A⁻¹ (K(2κM + D)Kr)_p,    A = (KT)_pp,

    the correction of r in the space, added to r, less what T makes of r there. If r has no
    component in the space, (Kr)_p = 0, then z is a self-adjoint function of r and conjugate
    gradients no longer see the largest eigenvalues of T, which belong to smooth functions: hence a
    step inside the space comes first (Nabben and Vuik's deflation in the form A-DEF2).

    Parameters
    ----------
    K, lap, kappa
        As in `solve_pcg`.
    labeled : ndarray of shape (l,)
        Indices of the labeled rows.
    size : int
        Number of rows p: labeled ones, at most half of them, and others at equal distances.
    """

    def __init__(self, K, lap, kappa, labeled, size):
        n = K.shape[0]
        size = min(size, n)
        chosen = labeled[:: max(1, -(-2 * labeled.size // size))]
        rest = np.setdiff1d(np.arange(n), chosen)
        spaced = np.linspace(0, rest.size - 1, min(rest.size, size - chosen.size))
        self.rows = np.concatenate([chosen, rest[np.unique(spaced.astype(np.int64))]])
        self.K = np.ascontiguousarray(K[self.rows])
        self._at_labeled = self.K[:, labeled]
        smooth = 2.0 * kappa * (self.K @ lap.product(self.K.T)) if kappa else 0.0
        self._rest = self.K[:, self.rows] + smooth
        self._weight = self._factor = None

    def update(self, weight, offset):
        """Factorize A for the second derivatives ``weight`` of the losses of labeled rows."""
        if self._weight is not None and np.array_equal(weight, self._weight):
            return
        at = self._at_labeled
        A = self._rest + (at * weight) @ at.T
        if offset:  # minimized out
            mean = at @ weight
            A -= np.outer(mean, mean) / max(float(weight.sum()), np.finfo(float).tiny)
        A[np.diag_indices_from(A)] *= 1.0 + 1e-10
        self._weight, self._factor = weight, cho_factor(_symmetric(A), check_finite=False)

    def step(self, Kr):
        """(z, Kz) of the step inside the space."""
        y = cho_solve(self._factor, Kr[self.rows], check_finite=False)
        z = np.zeros(Kr.size)
        z[self.rows] = y
        return z, y @ self.K

    def direction(self, r, Kr, curved):
        """(z, Kz) from r, Kr and (2κM + D)Kr."""
        y = cho_solve(self._factor, self.K @ curved, check_finite=False)
        z = r.copy()
        z[self.rows] -= y
        return z, Kr - y @ self.K


def solve_pcg(
    K, lap, kappa, labeled, t, upper, watch, *,
    offset=True, tol=1e-4, max_iter=1000, coarse=0, callback=None,
):  # fmt: skip
    """Conjugate gradients for the squared hinge, preconditioned by the kernel.

    Minimizes J(c, b) = ½cᵀKc + κ(Kc)ᵀM(Kc) + ½ Σ_L u_i max(0, 1 − t_i (f_i + b))², f = Kc. The
    gradient in c is −Kr with r = β − 2κMf − c and β from `squared_hinge_duals`; K as the
    preconditioner turns it into r, so that one product with K is left in an iteration. The offset
    is minimized out, and steps are searched exactly. The duality gap is at most ½rᵀKr, which comes
    for free; when J has come to rest, `duality_gap` finds a better bound.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix, C-contiguous.
    lap : Laplacian
        M.
    kappa : float
        κ ≥ 0.
    labeled : ndarray of shape (l,)
        Indices of the labeled rows.
    t, upper : ndarrays of shape (l,)
        Their labels and weights.
    watch : Watch
        The stopping rule. ``"gap"``: a duality gap is at most tol J. ``"gradient"``: ‖r‖ is at
        most tol times its first value. ``"change"``: an iteration lowers J by less than tol J.
        ``"stability"`` and ``"validation"`` look at the signs of the outputs on ``watch.rows``
        every so many iterations: stop when at most that share of them has changed, or when the
        share of errors has not fallen by more than that. All rules stop at a gap of 1e-13 J too.
    offset : bool, default=True
        Whether there is an offset b; False holds it at 0.
    tol : float, default=1e-4
    max_iter : int, default=1000
    coarse : int, default=0
        Rows of a `CoarseSpace`, 0 for none: `LapSVM` takes 100 with the rule ``"gap"``.
    callback : callable, default=None
        Called with the state (n_iter, objective, gap) after each iteration; a true value stops.

    Returns
    -------
    Solution

    References
    ----------
    S. Melacci and M. Belkin, "Laplacian support vector machines trained in the primal", JMLR 12
    (2011), Section 4, for the preconditioner and the early stops. J. M. Tang, R. Nabben, C. Vuik
    and Y. A. Erlangga, "Comparison of two-level preconditioners derived from deflation, domain
    decomposition and multigrid methods", J. Sci. Comput. 39 (2009), for the coarse space.
    """
    n = K.shape[0]
    space, inside = CoarseSpace(K, lap, kappa, labeled, coarse) if coarse else None, bool(coarse)
    plus, minus = np.where(t > 0, upper, 0.0), np.where(t < 0, upper, 0.0)
    c, f, Mf = np.zeros(n), np.zeros(n), np.zeros(n)
    history, n_iter, before, restarted = [], 0, (np.inf, np.inf), True
    p = Kp = Kz = None
    rKz, first, seen, status, objectives, check, lost = 0.0, None, None, None, [], _REST, -1
    while True:
        b = best_offset(t, upper, f[labeled]) if offset else 0.0
        beta = squared_hinge_duals(t, upper, f[labeled] + b)
        r = -2.0 * kappa * Mf - c
        r[labeled] += beta
        mixed = 0.0 if Kz is None else float(r @ Kz)  # Kz still belongs to the last residual
        Kr = dsymv(1.0, K.T, r)  # half the reading of a general product
        rKr = max(0.0, float(r @ Kr))
        objective = 0.5 * float(c @ f) + kappa * float(f @ Mf) + _loss(beta, upper)
        gap = 0.5 * rKr
        first = np.linalg.norm(r) if first is None else first
        if watch.rule == "gap" and gap > tol * objective and n_iter >= check:
            if objectives[-_REST] - objective <= tol * objective:
                gap, check = duality_gap(K, lap, kappa, r, rKr), n_iter + _REST
        objectives.append(objective)
        done, seen = _watched(watch, seen, objective, gap, before, r, first, f, b, n_iter, tol)
        if done or objective == 0.0:
            exact = dsymv(1.0, K.T, c)
            drift = np.abs(exact - f).max(initial=0.0)
            if restarted or watch.rule != "gap" or drift <= 1e-12 * np.abs(f).max(initial=0.0):
                status = "converged"
            else:  # the recursion for f has collected rounding errors: go on from true values
                f, Mf, Kz, restarted, before = exact, lap.product(exact), None, True, (np.inf, 0.0)
                inside = space is not None
                continue
        elif n_iter and objective >= before[0] and gap >= before[1] and n_iter < max_iter:
            if space is not None:  # rounding errors of its solutions
                exact = dsymv(1.0, K.T, c)
                f, Mf, Kz, before = exact, lap.product(exact), None, (np.inf, np.inf)
                space, inside = (None, False) if n_iter == lost else (space, True)
                lost = n_iter + 1
                continue
            status = "no_step"  # the limit of double precision
        elif n_iter >= max_iter:
            status = "max_iter"
        if n_iter or status is not None:
            history.append({"n_iter": n_iter, "objective": objective, "gap": gap})
            if callback is not None and callback(history[-1]) and status is None:
                status = "stopped"
        if status is not None:
            return Solution(beta, b, gap, n_iter, status, history, c, f)
        weight = upper * (beta != 0)
        total = max(float(weight.sum()), np.finfo(float).tiny)
        z, following, old_rKz = r, Kr, rKz
        if space is not None:
            space.update(weight, offset)
            if inside:
                z, following = space.step(Kr)
            else:
                curved, at = (2.0 * kappa) * lap.product(Kr), Kr[labeled]
                curved[labeled] += weight * (at - (float(weight @ at) / total if offset else 0.0))
                z, following = space.direction(r, Kr, curved)
                if float(r @ following) <= 0.0:
                    z, following = r, Kr
        rKz = float(r @ following)
        ratio = 0.0 if Kz is None else max(0.0, (rKz - mixed) / old_rKz)  # Polak and Ribière
        p = z if ratio == 0.0 else z + ratio * p
        Kp = following if ratio == 0.0 else following + ratio * Kp
        Kz, inside = None if inside else following, False
        MKp = lap.product(Kp) if kappa else np.zeros(n)
        change = Kp[labeled]
        db = -float(weight @ change) / total if offset else 0.0
        vd = float(p @ f) + 2.0 * kappa * float(Mf @ Kp)
        dd = max(float(p @ Kp) + 2.0 * kappa * float(Kp @ MKp), np.finfo(float).tiny)
        step = line_search(plus, minus, f[labeled] + b, change + db, vd, dd)
        c, f, Mf = c + step * p, f + step * Kp, Mf + step * MKp
        n_iter, before, restarted = n_iter + 1, (objective, gap), False


def _watched(watch, seen, objective, gap, before, r, first, f, b, n_iter, tol):
    """(whether the stopping rule says stop, what it has to remember)."""
    if gap <= 1e-13 * objective:
        return True, seen
    if watch.rule == "gap":
        return gap <= tol * objective, None
    if watch.rule == "gradient":
        return np.linalg.norm(r) <= tol * first, None
    if watch.rule == "change":
        return n_iter > 0 and before[0] - objective <= tol * objective, None
    if n_iter == 0 or n_iter % watch.every or not watch.rows.size:
        return False, seen
    positive = f[watch.rows] + b > 0
    if watch.rule == "stability":
        return seen is not None and np.mean(positive != seen) <= watch.share, positive
    errors = float(np.mean(positive != (watch.labels > 0)))
    return seen is not None and errors >= seen - watch.share, errors


def choose_rank(n, n_labeled, megabytes, rank, loss, solver, precomputed=False):
    """What fits into memory: the solver, and the number of columns of a low-rank kernel.

    Parameters
    ----------
    n, n_labeled : int
        Rows, and labeled rows.
    megabytes : float
        Budget in MiB.
    rank : int or None
        Largest rank asked for; None leaves the choice to the budget.
    loss : {"squared_hinge", "hinge"}
    solver : {"auto", "newton", "pcg"}
    precomputed : bool, default=False
        Whether the Gram matrix is there already.

    Returns
    -------
    solver : {"newton", "pcg"} or None
        None where nothing fits.
    rank : int or None
        None for the full kernel; otherwise the solver is ``"newton"``.
    needed : float
        MiB of what was chosen, or of the smallest choice where nothing fits.
    """
    unit = 8.0 * n / 2**20  # one column
    if rank is None:
        if solver == "auto":
            solver = "newton" if loss == "hinge" or n <= _DIRECT else "pcg"
        # The direct method holds K, MK and its factors; conjugate gradients hold K and vectors.
        vectors = 30 if solver == "newton" else 30 + 3 * min(n, COARSE)
        needed = unit * (n * (3 if solver == "newton" else 1 - precomputed) + vectors)
        if needed <= megabytes:
            return solver, None, needed
    # The factor G, MG and one copy of the size of G.
    most = min(n, 1000 if rank is None else rank)
    fits = int(megabytes / (3 * unit))
    if rank is not None and fits < most:
        return None, None, 3 * unit * most
    least = min(n, max(50, 2 * min(n_labeled, 500)))
    if fits < min(least, most):
        return None, None, 3 * unit * min(least, most)
    return "newton", min(most, fits), 3 * unit * min(most, fits)
