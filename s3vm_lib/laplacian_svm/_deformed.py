"""The deformed kernel, in which a Laplacian SVM is an SVM on the labeled rows: Newton and SMO."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve, solve_triangular

from s3vm_lib.finite_newton import line_search
from s3vm_lib.gram import Gram
from s3vm_lib.kernels import Kernel
from s3vm_lib.smo import BIG, Costs, solve_smo, svc_costs
from s3vm_lib.utils.jit import njit


class Solution(NamedTuple):
    """A minimum of the objective, as `solve_deformed`, `solve_hinge` and `solve_pcg` return it."""

    beta: np.ndarray  # signed dual variables of the labeled rows, (l,), or v (see `solve_deformed`)
    b: float  # offset
    objective: float
    gap: float  # duality gap, an upper bound on J − J*
    n_iter: int
    status: str  # "converged", "max_iter", "no_step" or "stopped" (by the callback)
    history: list  # one dict per iteration or round
    c: np.ndarray | None = None  # coefficients of all rows, (n,), from `solve_pcg`
    f: np.ndarray | None = None  # Kc, (n,), from `solve_pcg`


# --- The losses of the labeled rows ---------------------------------------------------------------


@njit
def best_offset(t, upper, f):
    """Return the minimizer b of ½ Σ_i u_i max(0, 1 − t_i (f_i + b))², or the middle of many.

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
    # Outputs that are separated: no loss between both kinks.
    if last <= first:
        return 0.5 * (last + first)
    # Before the first kink only positive rows have a loss.
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
        # The loss of a positive row ends at its kink, that of a negative one begins.
        curvature += -upper[k] if t[k] > 0.0 else upper[k]
    return here - slope / curvature


@njit
def squared_hinge_duals(t, upper, f):
    """Return β_i = u_i t_i max(0, 1 − t_i f_i), minus the derivatives of the losses."""
    beta = np.empty(t.size)
    for i in range(t.size):
        beta[i] = upper[i] * t[i] * max(0.0, 1.0 - t[i] * f[i])
    return beta


def squared_loss(beta, upper):
    """Return ½ Σ u max(0, 1 − t f)², from the β of `squared_hinge_duals`."""
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
        self.block = symmetric(columns[labeled])

    def expand(self, beta):
        """Return coefficients c, outputs f = Kc, both of shape (n,), and ‖f‖², from β on L."""
        c = np.zeros(self.K.shape[0])
        c[self.labeled] = beta
        if self._lu is not None:
            c = lu_solve(self._lu, c, check_finite=False)
        f = self.K @ c
        return c, f, float(c @ f)


COLUMNS = 32  # of G, whose products with M are in memory at once


class LowRankDeformedKernel:
    """`DeformedKernel` for K ≈ GGᵀ with r columns: n·r numbers in place of n².

    With f = Gw, the norm is wᵀAw for A = I + 2κGᵀMG, and K̃ = GA⁻¹Gᵀ.

    Parameters
    ----------
    low_rank : LowRank
        From `pivoted_cholesky`; or another factor, without pivots.
    lap, kappa, labeled
        See `DeformedKernel`.

    Attributes
    ----------
    half : ndarray of shape (r, l)
        L⁻¹G_Lᵀ for A = LLᵀ: K̃ on the labeled rows is its square.
    """

    def __init__(self, low_rank, lap, kappa, labeled):
        G = low_rank.factor
        self.G, self.pivots, self.labeled = G, low_rank.pivots, labeled
        A = np.eye(G.shape[1])
        for k in range(0, G.shape[1] if kappa > 0 else 0, COLUMNS):
            part = slice(k, k + COLUMNS)
            A[:, part] += (2.0 * kappa) * (G.T @ lap.product(G[:, part]))
        self._factor = cho_factor(symmetric(A), lower=True, check_finite=False)
        self.half = solve_triangular(self._factor[0], G[labeled].T, lower=True, check_finite=False)
        self.block = self.half.T @ self.half

    def weights(self, v):
        """Return w = L⁻ᵀv: the weights of the function that is v in the deformed space."""
        return solve_triangular(self._factor[0], v, lower=True, trans=1, check_finite=False)

    def expand(self, beta=None, w=None):
        """Return what `DeformedKernel` does, of β or of weights w; c is zero but on the pivots."""
        if w is None:
            w = cho_solve(self._factor, self.G[self.labeled].T @ beta, check_finite=False)
        if self.pivots is None:  # the shortest c
            return np.linalg.lstsq(self.G.T, w, rcond=None)[0], self.G @ w, float(w @ w)
        c = np.zeros(self.G.shape[0])
        c[self.pivots] = solve_triangular(self.G[self.pivots], w, lower=True, trans=1)
        return c, self.G @ w, float(w @ w)


class BlockDeformedKernel:
    """`LowRankDeformedKernel` whose factor G lies in blocks of rows, in memory or in a file.

    GᵀMG needs all rows of a column of G at once, since a row of M may name any of them: a few
    columns at a time are in memory, in double precision.

    Parameters
    ----------
    features : BlockFeatures
        Rows of G, not centered.
    columns : int
        Columns of G that are in memory at once.
    lap, kappa, labeled
        See `DeformedKernel`.
    """

    def __init__(self, features, columns, lap, kappa, labeled):
        self.features, self.n = features, lap.n
        self.G_labeled = features.rows(labeled).Z
        A = np.eye(features.dimension)
        if kappa > 0:
            A += (2.0 * kappa) * features.quadratic(lap.product, columns)
        self._factor = cho_factor(symmetric(A), lower=True, check_finite=False)
        half = solve_triangular(self._factor[0], self.G_labeled.T, lower=True, check_finite=False)
        self.block = half.T @ half

    def expand(self, beta):
        """Return what `DeformedKernel` does; c is zero but on the pivots."""
        w = cho_solve(self._factor, self.G_labeled.T @ beta, check_finite=False)
        pivots, alpha, _ = self.features.model(w)
        c = np.zeros(self.n)
        c[pivots] = alpha
        return c, self.features.outputs(w), float(w @ w)


def symmetric(A):
    """Return ½(A + Aᵀ)."""
    return 0.5 * (A + A.T)


# --- Newton and SMO on the labeled rows -----------------------------------------------------------


def solve_deformed(
    block, t, upper, *, factor=None, offset=True, tol=1e-6, max_iter=1000, callback=None
):
    """Minimize with the squared hinge in the deformed kernel, by Newton's method.

    Minimizes ½βᵀK̃β + ½ Σ u_i max(0, 1 − t_i (f_i + b))², f = K̃β, over β and b. Eliminating the
    unlabeled rows changes no iterate: these are the Newton steps on all n coefficients, with one
    factorization for all of them. Steps are searched exactly. Comments number the lines of the
    algorithm in the chapter on graphs.

    Parameters
    ----------
    block : ndarray of shape (l, l)
        K̃ on the labeled rows.
    t : ndarray of shape (l,)
        Labels −1 and +1, both of them present.
    upper : ndarray of shape (l,)
        Weights u = C s > 0.
    factor : ndarray of shape (q, l), default=None
        H with HᵀH = K̃. The variables are then the v of f = Hᵀv, and steps solve least squares
        problems, which keeps more digits where K̃ and the weights are huge.
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
    dual = factor is None  # beta holds v otherwise
    beta, f = np.zeros(t.size if dual else len(factor)), np.zeros(t.size)  # line 1, with f = K̃β
    plus, minus = np.where(t > 0, upper, 0.0), np.where(t < 0, upper, 0.0)
    history, n_iter, before = [], 0, np.inf
    while True:
        # Line 2: the best offset; the rows of A are those with a slope.
        b = best_offset(t, upper, f) if offset else 0.0
        slopes = squared_hinge_duals(t, upper, f + b)
        # Line 3: the residual on the labeled rows, on all others it is 0.
        r = (slopes if dual else factor @ slopes) - beta
        objective = 0.5 * float(beta @ (f if dual else beta)) + squared_loss(slopes, upper)
        gap = 0.5 * float(r @ (block @ r if dual else r))
        status = _step_status(objective, gap, before, tol, n_iter, max_iter)
        if n_iter or status is not None:
            history.append({"n_iter": n_iter, "objective": objective, "gap": gap})
            if callback is not None and callback(history[-1]) and status is None:
                status = "stopped"
        if status is not None:
            return Solution(beta, b, objective, gap, n_iter, status, history)
        # Lines 4 and 5: (K̃_AA + D⁻¹)β = t − b with the b that makes Σβ = 0.
        E = np.flatnonzero(slopes)
        if dual:
            A = block[np.ix_(E, E)]
            A[np.diag_indices_from(A)] += 1.0 / upper[E]
            parts = cho_solve(cho_factor(A, lower=True), np.column_stack([t[E], np.ones(E.size)]))
            # Where no row has a loss every b near this one is best.
            target_b = parts[:, 0].sum() / parts[:, 1].sum() if offset and E.size else b
            d = -beta
            d[E] += parts[:, 0] - target_b * parts[:, 1]
            Kd = block @ d
        else:
            target, target_b = _least_squares(factor[:, E], t[E], upper[E], b, offset)
            d = target - beta
            Kd = factor.T @ d
        # Lines 6 and 7: an exact search in place of halving, and the step.
        db = target_b - b
        dd = max(float(d @ (Kd if dual else d)), np.finfo(float).tiny)
        step = line_search(plus, minus, f + b, Kd + db, float(d @ (f if dual else beta)), dd)
        beta, f = beta + step * d, f + step * Kd
        n_iter, before = n_iter + 1, (objective, gap)


def _least_squares(H, t, upper, b, offset):
    """Return v and b with the least ½‖v‖² + ½ Σ u (t − (Hᵀv)_i − b)²; b stays without an offset."""
    q, root = H.shape[0], np.sqrt(upper)
    A = np.block([[root[:, None] * H.T, root[:, None]], [np.eye(q), np.zeros((q, 1))]])
    unit = np.linalg.norm(A, axis=0)
    if not (offset and t.size):
        A, unit = A[:, :q], unit[:q]
    x = np.linalg.lstsq(A / unit, np.append(root * t, np.zeros(q)), rcond=None)[0] / unit
    return x[:q], x[q] if x.size > q else b


def _step_status(objective, gap, before, tol, n_iter, max_iter):
    """Return why to stop, or None."""
    if gap <= tol * objective or objective == 0.0:
        return "converged"
    if n_iter and objective >= before[0] and gap >= before[1]:
        return "no_step"  # the limit of double precision
    return "max_iter" if n_iter >= max_iter else None


def solve_hinge(block, t, upper, *, offset=True, tol=1e-3, max_iter=1000, callback=None):
    """Minimize with the hinge in the deformed kernel: Belkin's dual, by SMO.

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
    norm2, loss = float(beta @ f), float(upper @ np.maximum(0, 1 - t * (f + b)))
    keys = ("n_iter", "violation", "n_active")
    history = [dict(zip(keys, state, strict=True)) for state in found.history]
    gap = norm2 + loss - float(t @ beta)
    return Solution(beta, b, 0.5 * norm2 + loss, gap, max(found.n_iter, 1), found.status, history)
