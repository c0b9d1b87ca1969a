"""Sequential minimal optimization (SMO) and the supervised support vector machine.

The problem is written in signed variables β_i = y_i α_i,

    minimize  ½ βᵀKβ + Σ_i φ_i(β_i)   subject to   Σ_i β_i = 0,   lo_i ≤ β_i ≤ hi_i,        (P)

with one convex piecewise-linear cost φ_i per point: slope s1_i on [lo_i, mid_i], s2_i ≥ s1_i on
[mid_i, hi_i]. The C-SVC has φ_i(β) = −y_i β on [0, C] or [−C, 0]; a kink in the middle is what
semi-supervised inner problems need. With F = Kβ let A_i = −φ_i'(β_i+) and B_i = −φ_i'(β_i−), minus
or plus infinity at a bound. Then β is optimal exactly when max_i (A_i − F_i) ≤ min_j (B_j − F_j),
and every b between the two is an offset.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from s3vm_lib._base import BaseS3VM, BinaryFit
from s3vm_lib._numba import njit
from s3vm_lib.kernels import KernelRows, kernel_row, kernel_rows
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.objective import Problem

BIG = 1e30  # stands for infinity: arithmetic on inf would make NaN
TAU = 1e-12  # smallest curvature along a pair, relative to the largest kernel value
_BLOCK = 256
_RANGE_SINGLE = (1e-25, 1e30)  # kernel values outside are kept in double precision
_SHRINK_BELOW = 0.7  # compact when the active share falls below this


class Costs(NamedTuple):
    """The convex piecewise-linear costs of (P): five arrays of shape (n,)."""

    lo: np.ndarray
    mid: np.ndarray
    hi: np.ndarray
    s1: np.ndarray
    s2: np.ndarray


class RowCache(NamedTuple):
    """Kernel rows in memory: the least recently used one makes room for a new one."""

    values: np.ndarray  # (slots, n)
    slot: np.ndarray  # slot of each row or −1, (n,)
    owner: np.ndarray  # row in each slot, (slots,)
    stamp: np.ndarray  # time of last use of each slot, (slots,)
    state: np.ndarray  # clock and number of used slots, (2,)
    whole: np.ndarray  # values of the cache that this one is a sub-matrix of; empty at the top
    whole_slot: np.ndarray  # slots in that cache of the rows kept here
    columns: np.ndarray  # the columns kept here


class Solution(NamedTuple):
    """Result of `solve_smo`."""

    beta: np.ndarray  # signed dual variables, (n,)
    f: np.ndarray  # Kβ, outputs without the offset, (n,)
    b: float  # offset
    objective: float  # value of (P), with φ_i(0) = 0 where 0 is feasible
    violation: float  # max(A − F) − min(B − F)
    n_iter: int
    status: str  # "converged" or "max_iter"
    history: list  # (n_iter, violation, active points) per round


# --- One iteration: two selections and a step -----------------------------------------------------


@njit
def _slope_up(c, i, beta_i):
    """A_i: minus the slope of φ_i to the right of β_i."""
    if beta_i >= c.hi[i]:
        return -BIG
    return -c.s1[i] if beta_i < c.mid[i] else -c.s2[i]


@njit
def _slope_down(c, i, beta_i):
    """B_i: minus the slope of φ_i to the left of β_i."""
    if beta_i <= c.lo[i]:
        return BIG
    return -c.s2[i] if beta_i > c.mid[i] else -c.s1[i]


@njit
def _block_max(bits, m):
    """Largest of the first m non-negative floats, as the integer that encodes it.

    Non-negative floats are ordered like their bit patterns, and the compiler vectorizes an integer
    maximum but not a floating-point one.
    """
    top = bits[0]
    for j in range(1, m):
        if bits[j] > top:
            top = bits[j]
    return top


@njit
def _update_and_select_i(F, A, Ki, Kj, t, score, bits):
    """F += t (K_i − K_j), then the index with the largest A − F."""
    best, value = -1, -4 * BIG
    for start in range(0, F.size, _BLOCK):
        m = min(_BLOCK, F.size - start)
        Fb, Ab = F[start : start + m], A[start : start + m]
        Kib, Kjb = Ki[start : start + m], Kj[start : start + m]
        for j in range(m):
            g = Fb[j] + t * (Kib[j] - Kjb[j])
            Fb[j] = g
            gain = Ab[j] - g - value
            score[j] = gain if gain > 0 else 0.0
        if _block_max(bits, m) > 0:
            for j in range(m):
                if Ab[j] - Fb[j] > value:
                    best, value = start + j, Ab[j] - Fb[j]
    return best, value


@njit
def _gains(F, B, Ki, diagonal, Kii, top, tau, score):
    """score = (top + F − B)₊² / max(K_ii + K_jj − 2 K_ij, tau), in the precision of the kernel."""
    for j in range(F.size):
        d = top + F[j] - B[j]
        score[j] = d if d > 0 else 0.0
    for j in range(F.size):
        a = (diagonal[j] - Ki[j]) + (Kii - Ki[j])
        score[j] = score[j] * score[j] / (a if a > tau else tau)


@njit
def _select_j(F, B, Ki, diagonal, Kii, top, tau, score, bits):
    """Second-order choice: the index of the largest gain, or −1 when no gain is positive."""
    best, block = bits[0] * 0, -1
    for start in range(0, F.size, _BLOCK):
        end = min(start + _BLOCK, F.size)
        _gains(F[start:end], B[start:end], Ki[start:end], diagonal[start:end], Kii, top, tau, score)
        highest = _block_max(bits, end - start)
        if highest > best:
            best, block = highest, start
    if block < 0:
        return -1
    end = min(block + _BLOCK, F.size)
    _gains(F[block:end], B[block:end], Ki[block:end], diagonal[block:end], Kii, top, tau, score)
    j = 0
    while bits[j] != best:
        j += 1
    return block + j


@njit
def _fetch(cache, rows, i, scratch):
    """Slot that holds row i of the kernel, computing the row if it is not there."""
    cache.state[0] += 1
    s = cache.slot[i]
    if s < 0:
        if cache.state[1] < cache.owner.size:
            s = cache.state[1]
            cache.state[1] += 1
        else:
            s = np.argmin(cache.stamp)
            cache.slot[cache.owner[s]] = -1
        if cache.whole.size > 0 and cache.whole_slot[i] >= 0:
            row = cache.whole[cache.whole_slot[i]]
            for j in range(cache.columns.size):
                cache.values[s, j] = row[cache.columns[j]]
        else:
            kernel_row(rows, i, cache.values[s], scratch)
        cache.slot[i] = s
        cache.owner[s] = i
    cache.stamp[s] = cache.state[0]
    return s


@njit
def _smo(cache, rows, c, diagonal, beta, F, A, B, score, bits, tau, tol, max_iter):
    """At most ``max_iter`` SMO iterations on (P); returns their number and the violation left."""
    scratch = np.empty(F.size, np.int32)
    none = np.zeros(F.size, cache.values.dtype)
    i, top = _update_and_select_i(F, A, none, none, 0.0, score, bits)
    for n_iter in range(max_iter):
        Ki = cache.values[_fetch(cache, rows, i, scratch)]
        # At a breakpoint rounding may leave i a descent partner of itself.
        b_i, B[i] = B[i], BIG
        j = _select_j(F, B, Ki, diagonal, diagonal[i], top, tau, score, bits)
        B[i] = b_i
        if j < 0 or top + F[j] - B[j] < tol:
            violation = top - np.min(B - F)
            if j < 0 or violation < tol:
                return n_iter, violation
        Kj = cache.values[_fetch(cache, rows, j, scratch)]
        stop_i = c.mid[i] if beta[i] < c.mid[i] else c.hi[i]
        stop_j = c.mid[j] if beta[j] > c.mid[j] else c.lo[j]
        t = (top + F[j] - B[j]) / max((diagonal[i] - Ki[j]) + (diagonal[j] - Ki[j]), tau)
        t = min(t, stop_i - beta[i], beta[j] - stop_j)
        # Land on breakpoints exactly: the slopes there are decided by equality.
        beta[i] = stop_i if t == stop_i - beta[i] else beta[i] + t
        beta[j] = stop_j if t == beta[j] - stop_j else beta[j] - t
        A[i], B[i] = _slope_up(c, i, beta[i]), _slope_down(c, i, beta[i])
        A[j], B[j] = _slope_up(c, j, beta[j]), _slope_down(c, j, beta[j])
        i, top = _update_and_select_i(F, A, Ki, Kj, t, score, bits)
    return max_iter, top - np.min(B - F)


@njit
def _add_rows(cache, rows, weights, out):
    """out += Σ_i weights_i K_i, computing the rows that are not in the cache."""
    scratch = np.empty(out.size, np.int32)
    for i in range(weights.size):
        if weights[i] != 0:
            K_i = cache.values[_fetch(cache, rows, i, scratch)]
            for j in range(out.size):
                out[j] += weights[i] * K_i[j]


@njit
def _fill(values, rows):
    """The whole kernel matrix, row by row."""
    scratch = np.empty(values.shape[1], np.int32)
    for i in range(values.shape[0]):
        kernel_row(rows, i, values[i], scratch)


# --- The solver: rounds of iterations, with shrinking ---------------------------------------------


class Gram:
    """Kernel values of one data set, as a row cache or as the whole matrix.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Rows; the n × n Gram matrix with ``kernel="precomputed"``.
    kernel : Kernel
    megabytes : float, default=1000
        Memory for kernel values; at least two rows are kept whatever it says.
    storage : {"auto", "full", "rows"}, default="auto"
        ``"full"`` computes the whole matrix at once, ``"rows"`` rows as they are visited.
        ``"auto"`` takes the matrix when it fits and most of its rows will be visited: when it is
        small, or when ``n_solves > 1`` problems share it.
    dtype : {np.float32, np.float64}, default=np.float32
        Precision of the values; sums over them are always accumulated in double precision.
    n_solves : int, default=1
        Number of problems that will be solved with these values.

    Attributes
    ----------
    storage : {"full", "rows"}
        What was chosen.
    """

    _SMALL = 1500

    def __init__(self, X, kernel, megabytes=1000, storage="auto", dtype=np.float32, n_solves=1):
        n = X.shape[0]
        precomputed = kernel.name == "precomputed"
        diagonal = kernel.diagonal(X)
        if not np.all(np.isfinite(diagonal)):
            raise ValueError(
                f"X is too large for kernel={kernel.name!r}: kernel values overflow; scale the data"
            )
        if precomputed:
            dtype = X.dtype
        else:
            sizes = (diagonal.max(), np.abs(X).max() ** 2)
            if max(sizes) > _RANGE_SINGLE[1] or min(sizes) < _RANGE_SINGLE[0]:
                dtype = np.float64
        self.diagonal = diagonal.astype(dtype)
        slots = int(megabytes * 2**20 / (n * np.dtype(dtype).itemsize))
        if precomputed:
            storage = "full"
        elif storage == "auto":
            storage = "full" if slots >= n and (n <= self._SMALL or n_solves > 1) else "rows"
        self.storage = storage
        if precomputed:
            values = np.ascontiguousarray(X)
            self.rows = _no_rows(values.dtype, n)
        else:
            slots = n if storage == "full" else min(max(slots, 2), n)
            values = np.empty((slots, n), dtype)
            self.rows = kernel_rows(X, kernel, dtype)
        self.cache = _cache(values, n, values[:0], np.empty(0, np.intp), np.empty(0, np.intp))
        if storage == "full":
            self.cache.slot[:] = self.cache.owner[:] = np.arange(n)
            self.cache.state[1] = n
            if not precomputed:
                _fill(values, self.rows)

    def restrict(self, keep):
        """(cache, rows) for the sub-matrix of the indices ``keep``, filled from this cache."""
        top = self.cache
        slots = min(keep.size, max(2, top.values.size // keep.size))
        values = np.empty((slots, keep.size), top.values.dtype)
        cache = _cache(values, keep.size, top.values, top.slot[keep], keep)
        r = self.rows
        if r.indptr.size > 1:
            counts = np.diff(r.indptr)[keep]
            indptr = np.r_[0, np.cumsum(counts)]
            take = np.repeat(r.indptr[keep] - indptr[:-1], counts) + np.arange(indptr[-1])
            return cache, r._replace(
                squares=r.squares[keep], data=r.data[take], indices=r.indices[take], indptr=indptr
            )
        return cache, r._replace(XT=np.ascontiguousarray(r.XT[:, keep]))


def _cache(values, n, whole, whole_slot, columns):
    """An empty `RowCache` over the memory ``values``."""
    slots = values.shape[0]
    slot, owner = np.full(n, -1), np.full(slots, -1)
    return RowCache(
        values, slot, owner, np.zeros(slots, np.int64), np.zeros(2, np.int64),
        whole, whole_slot, columns,
    )  # fmt: skip


def _no_rows(dtype, n):
    """Rows of a kernel that is never evaluated, because all its values are in memory."""
    nothing = np.empty(0, dtype)
    return KernelRows(
        0, np.zeros(4, dtype), np.empty((0, n), dtype), nothing, nothing,
        np.empty(0, np.int32), np.zeros(1, np.int64),
    )  # fmt: skip


def solve_smo(
    gram, costs, beta=None, *, tol=1e-3, max_iter=10_000_000, shrinking=True, callback=None
):
    """Minimize (P) by SMO with second-order working sets and shrinking.

    Parameters
    ----------
    gram : Gram
        Kernel values; filled further as rows are visited, so that it can be passed on.
    costs : Costs
        Piecewise-linear costs, five float64 arrays of shape (n,).
    beta : ndarray of shape (n,), default=None
        Feasible start; None means 0, which must then be feasible.
    tol : float, default=1e-3
        Stop when max(A − F) − min(B − F) < tol.
    max_iter : int, default=10_000_000
        Largest number of iterations.
    shrinking : bool, default=True
        Set points aside that sit at a bound or kink and show no wish to leave it. What they would
        do is checked before the solver stops.
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
    beta = np.zeros(gram.diagonal.size) if beta is None else np.array(beta, dtype=float)
    F = np.zeros(beta.size)
    _add_rows(gram.cache, gram.rows, beta, F)
    total, history, status = 0, [], "max_iter"
    # The first pass stops early, before it polishes a problem from which too much was set aside.
    target = 10 * tol if shrinking else tol
    while total < max_iter:
        n_iter, stopped = _pass(
            gram, costs, beta, F, target, max_iter - total, shrinking, total, history, callback
        )
        total += n_iter
        violation = _violation(costs, beta, F)
        target = tol
        if stopped or violation < tol:
            status = "stopped" if violation >= tol else "converged"
            break
    A, B = _slopes(costs, beta)
    top, bottom = np.max(A - F), np.min(B - F)
    if top <= -BIG / 2 or bottom >= BIG / 2:
        b = bottom if top <= -BIG / 2 else top
    else:
        free = (A - B) == 0
        b = np.mean((A - F)[free]) if free.any() else (top + bottom) / 2
    objective = 0.5 * beta @ F + _cost_values(costs, beta).sum()
    return Solution(
        beta, F, float(b), float(objective), float(top - bottom), total, status, history
    )


def _pass(gram, costs, beta, F, tol, max_iter, shrinking, done, history, callback):
    """SMO rounds from (beta, F), both updated in place, on an active set that only shrinks."""
    n = beta.size
    width = gram.cache.values.dtype
    score = np.zeros(_BLOCK, width)
    bits = score.view(np.int32 if width.itemsize == 4 else np.int64)
    tau = width.type(TAU * max(gram.diagonal.max(), np.finfo(np.float32).tiny / TAU))
    active = np.arange(n)
    cache, rows, c = gram.cache, gram.rows, costs
    x, g, diagonal, final = beta.copy(), F.copy(), gram.diagonal, beta.copy()
    A, B = _slopes(c, x)
    n_iter, violation, stopped, first = 0, np.inf, False, done == 0
    while n_iter < max_iter and violation >= tol and not stopped:
        if shrinking and not first:
            up, down = A - g, B - g
            keep = np.flatnonzero((up >= np.min(down)) | (down <= np.max(up)))
            if keep.size < _SHRINK_BELOW * active.size:
                final[active] = x
                active = active[keep]
                cache, rows = gram.restrict(active)
                c = Costs(*(part[active] for part in costs))
                x, g, A, B, diagonal = x[keep], g[keep], A[keep], B[keep], diagonal[keep]
        first = False
        steps = min(max_iter - n_iter, max(100, min(n, 1000)))
        steps, violation = _smo(cache, rows, c, diagonal, x, g, A, B, score, bits, tau, tol, steps)
        n_iter += steps
        state = (done + n_iter, violation, active.size)
        history.append(state)
        if callback is not None:
            stopped = bool(
                callback(dict(zip(("n_iter", "violation", "n_active"), state, strict=True)))
            )
    final[active] = x
    if active.size < n:
        _add_rows(gram.cache, gram.rows, final - beta, F)
    F[active], beta[:] = g, final
    return n_iter, stopped


def _slopes(c, beta):
    """The arrays A and B of the module docstring at beta."""
    A = np.where(beta < c.mid, -c.s1, np.where(beta < c.hi, -c.s2, -BIG))
    B = np.where(beta > c.mid, -c.s2, np.where(beta > c.lo, -c.s1, BIG))
    return A, B


def _violation(c, beta, F):
    """max(A − F) − min(B − F): at most 0 exactly at a solution."""
    A, B = _slopes(c, beta)
    return float(np.max(A - F) - np.min(B - F))


def _cost_values(c, beta):
    """φ_i(β_i), normalized to 0 at 0 (at the end nearest to 0 where 0 is not feasible)."""

    zero = np.clip(0.0, c.lo, c.hi)
    below = np.minimum(beta, c.mid) - np.minimum(zero, c.mid)
    above = np.maximum(beta, c.mid) - np.maximum(zero, c.mid)
    return c.s1 * below + c.s2 * above


def svc_costs(t, upper):
    """Costs of the C-SVC: φ_i(β) = −t_i β on [0, C_i] or [−C_i, 0].

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


def feasible(beta, costs):
    """Projection of beta onto the box, cut by Σβ = 0: a common shift, then clipping.

    Parameters
    ----------
    beta : ndarray of shape (n,)
        Dual variables of an earlier, similar problem.
    costs : Costs
        Costs of the new problem; a feasible point must exist.

    Returns
    -------
    ndarray of shape (n,)
    """
    result = np.clip(beta, costs.lo, costs.hi)
    # A sum that is zero up to rounding must not lift every point off its bound.
    if abs(result.sum()) > 1e-12 * max(1.0, np.abs(result).sum()):
        low, high = float(np.min(costs.lo - beta)), float(np.max(costs.hi - beta))
        for _ in range(200):
            shift = 0.5 * (low + high)
            total = np.clip(beta + shift, costs.lo, costs.hi).sum()
            low, high = (shift, high) if total < 0 else (low, shift)
        result = np.clip(beta + 0.5 * (low + high), costs.lo, costs.hi)
    # What rounding leaves over goes to points with room for it.
    for i in np.argsort(-np.minimum(result - costs.lo, costs.hi - result)):
        rest = result.sum()
        if rest == 0:
            break
        result[i] = np.clip(result[i] - rest, costs.lo[i], costs.hi[i])
    return result


class SVM(BaseS3VM):
    """Support vector machine trained by SMO: the supervised baseline of the book.

    Minimizes ½‖f‖² + C Σ_i s_i max(0, 1 − t_i (f(x_i) + b)) over the labeled rows. Unlabeled rows
    are allowed and have no influence; they receive a label in ``transduction_``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the hinge losses.
    kernel : {"linear", "poly", "rbf", "laplacian", "precomputed"}, default="rbf"
        Kernel function, see `Kernel`.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of rbf, poly and laplacian, see `resolve_gamma`.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial kernel.
    sigma_f : float, default=1.0
        Output standard deviation: kernels are multiplied by its square.
    tol : float, default=1e-3
        Largest violation of the optimality conditions at the end. Below 1e-5 kernel values are
        kept in double instead of single precision.
    max_iter : int, default=10_000_000
        Largest number of SMO iterations.
    shrinking : bool, default=True
        Set points aside that rest at a bound, and check them at the end.
    gram : {"auto", "full", "rows"}, default="auto"
        Keep the whole Gram matrix or the rows that are visited, see `Gram`.
    cache_size : float, default=1000
        Memory for kernel values in MiB. While points are set aside, a copy of the part that is
        still needed may take as much again.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    warm_start : bool, default=False
        Start from the dual variables of the previous fit when it had as many rows.
    verbose : int, default=0
        Print one line per round of iterations.
    callback : callable, default=None
        Called after each round with a dict (n_iter, violation, n_active); a true value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    support_ : ndarray of shape (n_support,)
        Training rows with a nonzero dual variable.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, d)
        These rows; absent with ``kernel="precomputed"``.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Signed dual variables β_i = t_i α_i; one row for two classes, otherwise one per class.
    coef_ : ndarray of shape (n_problems, d)
        Weights of the features, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (n_problems,)
        Offsets b.
    gamma_ : float
        The kernel coefficient that was used.
    gram_ : {"full", "rows"}
        How kernel values were kept.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the predicted class where it was unlabeled.
    objective_ : float or ndarray of shape (n_classes,)
        Value of the objective at the solution.
    problem_ : Problem or list of Problem
        What was minimized, per class with more than two; ready for `evaluate`.
    n_iter_ : int
        SMO iterations, the largest number over the two-class problems.
    history_ : list
        (n_iter, violation, active points) after each round.
    termination_condition_ : str
        ``"converged"``, ``"max_iter"`` or ``"stopped"`` (by the callback); a list of these with
        more than two classes.
    n_features_in_ : int
        Number of features.

    References
    ----------
    J. Platt, "Fast training of support vector machines using sequential minimal optimization",
    in Advances in Kernel Methods (1999); R.-E. Fan, P.-H. Chen and C.-J. Lin, JMLR 6 (2005).

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import SVM
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0], [0.5]])
    >>> y = np.array([0, 0, 1, 1, -1])
    >>> SVM(kernel="linear").fit(X, y).transduction_.tolist()
    [0, 0, 1, 1, 1]
    """

    _parameter_constraints = {
        **BaseS3VM._kernel_constraints,
        "shrinking": ["boolean"],
        "gram": [StrOptions({"auto", "full", "rows"})],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
    }
    _largest_n = 100_000
    _memory = "visited kernel rows"

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=0.0,
        sigma_f=1.0,
        tol=1e-3,
        max_iter=10_000_000,
        shrinking=True,
        gram="auto",
        cache_size=1000,
        class_weight=None,
        warm_start=False,
        verbose=0,
        callback=None,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.sigma_f = sigma_f
        self.tol = tol
        self.max_iter = max_iter
        self.shrinking = shrinking
        self.gram = gram
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    def _prepare(self, data):
        labeled = np.flatnonzero(data.codes >= 0)
        X = data.X[labeled]
        center = None
        if self._precomputed:
            X = np.ascontiguousarray(X[:, labeled])
        elif self.kernel == "linear" and not sp.issparse(X):
            # With Σβ = 0 a shift of the data moves only b, and centered data keep their digits.
            center = X.mean(axis=0)
            X = X - center
        gram = Gram(
            X,
            data.kernel,
            self.cache_size,
            self.gram,
            np.float32 if self.tol >= 1e-5 else np.float64,
            1 if data.n_classes == 2 else data.n_classes,
        )
        self.gram_ = gram.storage
        return labeled, gram, center

    def _problem(self, data, ratio):
        return Problem(LabeledLoss("hinge"), None, float(self.C), 0.0, data.kernel)

    def _fit_binary(self, data, shared, t, problem, index):
        labeled, gram, center = shared
        upper = self.C * data.loss_weight[labeled]
        costs = svc_costs(t[labeled], upper)
        start = None
        if self.warm_start and hasattr(self, "dual_coef_") and index < len(self.dual_coef_):
            previous = np.zeros(1 + max(data.rows[-1], self.support_.max(initial=0)))
            previous[self.support_] = self.dual_coef_[index]
            start = feasible(previous[data.rows[labeled]], costs)
        solution = solve_smo(
            gram,
            costs,
            start,
            tol=self.tol,
            max_iter=self.max_iter,
            shrinking=self.shrinking,
            callback=self._report,
        )
        f, b = solution.f, solution.b
        norm2 = solution.beta @ f
        objective = problem.value(f + b, t[labeled], norm2, b, data.loss_weight[labeled])
        dual, outputs = np.zeros(t.size), np.full(t.size, np.nan)
        dual[labeled], outputs[labeled] = solution.beta, f + b
        coef = data.kernel.sigma_f**2 * (dual @ data.X) if self.kernel == "linear" else None
        if center is not None:
            b -= coef @ center
        n_iter = max(solution.n_iter, 1)
        return BinaryFit(
            dual, coef, b, outputs, float(objective), n_iter, solution.status, solution.history
        )
