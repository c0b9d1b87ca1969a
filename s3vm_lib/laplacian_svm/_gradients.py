"""Conjugate gradients on all rows, preconditioned by the kernel."""

from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dsymv

from s3vm_lib.finite_newton import conjugate_gradients, line_search

from s3vm_lib.laplacian_svm._deformed import (  # isort: skip
    Solution, best_offset, squared_hinge_duals, squared_loss, symmetric,
)  # fmt: skip

StoppingRule = Literal["gap", "stability", "validation", "gradient", "change"]
_REST = 5  # iterations in which J must lose less than tol J before the gap is looked at closely


# --- When to stop ---------------------------------------------------------------------------------


class Watch(NamedTuple):
    """What an early stopping rule looks at (see `solve_pcg`)."""

    rule: str  # a `StoppingRule`
    rows: np.ndarray  # unlabeled rows, or labeled rows that are held out
    labels: np.ndarray  # labels −1 and +1 of the latter
    every: int  # iterations between two looks
    share: float  # of the rows that may change, or of the errors that must go away


class StoppingState:
    """What the stopping rules compare with.

    Parameters
    ----------
    watch : Watch
    tol : float
    """

    def __init__(self, watch, tol):
        self.watch, self.tol = watch, tol
        self.last = (np.inf, np.inf)  # objective and gap before the last step
        self._first = self._seen = None
        self._objectives, self._next = [], _REST

    def rests(self, objective, gap, n_iter):
        """Return whether J rests above the tolerance: then a better gap is worth its price."""
        limit, known = self.tol * objective, self._objectives
        known.append(objective)
        if self.watch.rule != "gap" or gap <= limit or n_iter < self._next:
            return False
        if known[-1 - _REST] - objective > limit:
            return False
        self._next = n_iter + _REST
        return True

    def stalls(self, objective, gap):
        """Return whether the last step made neither J nor the gap smaller."""
        return not (objective < self.last[0] or gap < self.last[1])  # true of NaN

    def done(self, objective, gap, r, outputs, n_iter):
        """Return whether the stopping rule is met, at the residual and the outputs of all rows."""
        watch, tol = self.watch, self.tol
        if self._first is None:
            self._first = np.linalg.norm(r)
        if gap <= 1e-13 * objective:
            return True
        if watch.rule == "gap":
            return gap <= tol * objective
        if watch.rule == "gradient":
            return np.linalg.norm(r) <= tol * self._first
        if watch.rule == "change":
            return n_iter > 0 and self.last[0] - objective <= tol * objective
        if n_iter == 0 or n_iter % watch.every or not watch.rows.size:
            return False
        positive, before = outputs[watch.rows] > 0, self._seen
        if watch.rule == "stability":
            self._seen = positive
            return before is not None and np.mean(positive != before) <= watch.share
        self._seen = errors = float(np.mean(positive != (watch.labels > 0)))
        return before is not None and errors >= before - watch.share


def duality_gap(K, lap, kappa, r, rKr, max_iter=30):
    """Return an upper bound on J − J* from the residual r of `solve_pcg`.

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


# --- Directions -----------------------------------------------------------------------------------


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
        Number of rows p: labeled ones, at most half of them, and others at equal distances; of
        these, rows with k(x, x) = 0 are left out, which span nothing.
    """

    def __init__(self, K, lap, kappa, labeled, size):
        n = K.shape[0]
        size = min(size, n)
        chosen = labeled[:: max(1, -(-2 * labeled.size // size))]
        rest = np.setdiff1d(np.arange(n), chosen)
        spaced = np.linspace(0, rest.size - 1, min(rest.size, size - chosen.size))
        rows = np.concatenate([chosen, rest[np.unique(spaced.astype(np.int64))]])
        self.rows = rows[K[rows, rows] > 0]  # no row or column of zeros in A
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
        self._weight, self._factor = weight, cho_factor(symmetric(A), check_finite=False)

    def step(self, Kr):
        """Return (z, Kz) of the step inside the space."""
        y = cho_solve(self._factor, Kr[self.rows], check_finite=False)
        z = np.zeros(Kr.size)
        z[self.rows] = y
        return z, y @ self.K

    def direction(self, r, Kr, curved):
        """Return (z, Kz) from r, Kr and (2κM + D)Kr."""
        y = cho_solve(self._factor, self.K @ curved, check_finite=False)
        z = r.copy()
        z[self.rows] -= y
        return z, Kr - y @ self.K


class Directions:
    """Conjugate directions p and Kp, by the formula of Polak and Ribière.

    Parameters
    ----------
    lap, kappa, labeled, offset
        As in `solve_pcg`.
    space : CoarseSpace or None
        Corrects the residual in this space; the first direction lies inside.
    """

    def __init__(self, lap, kappa, labeled, offset, space):
        self.lap, self.kappa, self.labeled, self.offset = lap, kappa, labeled, offset
        self.space = space
        self.restart()

    def restart(self):
        """Delete the directions so far."""
        self._p = self._Kp = self._Kz = None
        self._rKz, self._inside = 0.0, self.space is not None

    def next(self, r, Kr, weight):
        """Return (p, Kp) from the residual and the second derivatives of the losses."""
        z, Kz = self._preconditioned(r, Kr, weight)
        rKz = float(r @ Kz)
        ratio = 0.0
        if self._Kz is not None:  # of the last residual
            ratio = max(0.0, (rKz - float(r @ self._Kz)) / self._rKz)
        p = z if ratio == 0.0 else z + ratio * self._p
        Kp = Kz if ratio == 0.0 else Kz + ratio * self._Kp
        # To a step inside the space nothing has to be conjugate.
        self._Kz, self._inside = None if self._inside else Kz, False
        self._p, self._Kp, self._rKz = p, Kp, rKz
        return p, Kp

    def _preconditioned(self, r, Kr, weight):
        """Return (z, Kz): the residual, corrected in the coarse space if there is one."""
        if self.space is None:
            return r, Kr
        try:
            self.space.update(weight, self.offset)
        except LinAlgError:  # rounding: the method without the space is slower, and right
            self.space = None
            self.restart()
            return r, Kr
        if self._inside:
            return self.space.step(Kr)
        curved, at = (2.0 * self.kappa) * self.lap.product(Kr), Kr[self.labeled]
        mean = float(weight @ at) / total_of(weight) if self.offset else 0.0
        curved[self.labeled] += weight * (at - mean)
        z, Kz = self.space.direction(r, Kr, curved)
        return (r, Kr) if float(r @ Kz) <= 0.0 else (z, Kz)


def total_of(weight):
    """Return Σ of the weights, for a divisor."""
    return max(float(weight.sum()), np.finfo(float).tiny)


# --- The algorithm --------------------------------------------------------------------------------


def solve_pcg(
    K, lap, kappa, labeled, t, upper, watch, *,
    offset=True, tol=1e-4, max_iter=1000, coarse=0, callback=None,
):  # fmt: skip
    """Minimize with the squared hinge by conjugate gradients, preconditioned by the kernel.

    Minimizes J(c, b) = ½cᵀKc + κ(Kc)ᵀM(Kc) + ½ Σ_L u_i max(0, 1 − t_i (f_i + b))², f = Kc. The
    gradient in c is −Kr with r = β − 2κMf − c and β from `squared_hinge_duals`; K as the
    preconditioner turns it into r, so that one product with K is left in an iteration. The offset
    is minimized out, and steps are searched exactly. The duality gap is at most ½rᵀKr, which comes
    for free; when J has come to rest, `duality_gap` finds a better bound. Comments number the lines
    of the algorithm in the chapter on graphs.

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
    space = CoarseSpace(K, lap, kappa, labeled, coarse) if coarse else None
    directions = Directions(lap, kappa, labeled, offset, space)
    progress, history, n_iter, doubted = StoppingState(watch, tol), [], 0, -1
    plus, minus = np.where(t > 0, upper, 0.0), np.where(t < 0, upper, 0.0)
    # Line 1; f = Kc and Mf follow the steps, and are exact where nothing has been added to them.
    c, f, Mf, exact = np.zeros(n), np.zeros(n), np.zeros(n), True
    while True:
        # Line 2: the best offset.
        b = best_offset(t, upper, f[labeled]) if offset else 0.0
        beta = squared_hinge_duals(t, upper, f[labeled] + b)
        # Line 3: the residual, of which the gradient is −Kr.
        r = -2.0 * kappa * Mf - c
        r[labeled] += beta
        Kr = dsymv(1.0, K.T, r)  # half the reading of a general product
        rKr = max(0.0, float(r @ Kr))
        # Line 4: stop, for a bound on what is left to gain or by another rule.
        objective = 0.5 * float(c @ f) + kappa * float(f @ Mf) + squared_loss(beta, upper)
        gap = 0.5 * rKr
        if progress.rests(objective, gap, n_iter):
            gap = duality_gap(K, lap, kappa, r, rKr)
        status, again = None, False
        if progress.done(objective, gap, r, f + b, n_iter) or objective == 0.0:
            # Rounding errors of the recursion for f may make the gap look small.
            again = watch.rule == "gap" and not exact and _drifted(K, c, f)
            status = None if again else "converged"
        elif n_iter and progress.stalls(objective, gap) and n_iter < max_iter:
            # The same, or those of the coarse space; the second time the space goes.
            again = directions.space is not None
            status = None if again else "no_step"  # the limit of double precision
            if again and n_iter == doubted:
                directions.space = None
            doubted = n_iter + 1
        elif n_iter >= max_iter:
            status = "max_iter"
        if again:  # from true values
            f, exact = dsymv(1.0, K.T, c), True
            Mf, progress.last = lap.product(f), (np.inf, np.inf)
            directions.restart()
            continue
        if n_iter or status is not None:
            history.append({"n_iter": n_iter, "objective": objective, "gap": gap})
            if callback is not None and callback(history[-1]) and status is None:
                status = "stopped"
        if status is not None:
            return Solution(beta, b, objective, gap, n_iter, status, history, c, f)
        # Line 5: the direction, for the rows A that have a loss.
        weight = upper * (beta != 0)
        p, Kp = directions.next(r, Kr, weight)
        # Lines 6 and 7: an exact search along it, through all sets A.
        MKp = lap.product(Kp) if kappa else np.zeros(n)
        change = Kp[labeled]
        db = -float(weight @ change) / total_of(weight) if offset else 0.0
        vd = float(p @ f) + 2.0 * kappa * float(Mf @ Kp)
        dd = max(float(p @ Kp) + 2.0 * kappa * float(Kp @ MKp), np.finfo(float).tiny)
        step = line_search(plus, minus, f[labeled] + b, change + db, vd, dd)
        # Line 8.
        c, f, Mf = c + step * p, f + step * Kp, Mf + step * MKp
        n_iter, progress.last, exact = n_iter + 1, (objective, gap), False


def _drifted(K, c, f):
    """Return whether rounding has taken f away from Kc."""
    drift = np.abs(dsymv(1.0, K.T, c) - f).max(initial=0.0)
    return not drift <= 1e-12 * np.abs(f).max(initial=0.0)
