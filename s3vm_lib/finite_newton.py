"""Finite Newton for linear support vector machines with the squared hinge, dense and sparse.

Multi-switch and deterministic annealing solve hundreds of convex problems of one form,

    F(v) = ½‖v‖² + ½ Σ_i [ C⁺_i max(0, 1 − o_i)² + C⁻_i max(0, 1 + o_i)² ],    o = X̃v,

where v = (w, b) and X̃ has a column of ones behind X, so that the offset is regularized. Row i costs
C⁺_i if it is called positive, C⁻_i if it is called negative; a labeled row has one of the two, an
unlabeled one may have both, which spares the doubling of the data. F is piecewise quadratic and
once differentiable: where no output crosses ±1 it is a quadratic, whose minimum conjugate gradients
find, and an exact line search along a piecewise-quadratic function does the rest. The number of
steps is finite (S. S. Keerthi and D. DeCoste, "A modified finite Newton method for fast solution of
large scale linear SVMs", JMLR 6, 2005).
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import daxpy, ddot, dscal

from s3vm_lib.utils.jit import njit
from s3vm_lib.utils.row_blocks import ClusterBlocks, doubles

# Steps are counted in unsigned numbers: numba then leaves out the test for negative indices, which
# costs as much as the arithmetic.
_ONE, _TWO, _THREE, _FOUR = (np.uint32(k) for k in (1, 2, 3, 4))
_SKIP_BELOW = 0.7  # share of active rows below which it pays to leave the others out
_BLOCK = 2**22  # numbers in a block on a cluster: 32 MB, and the indices of sparse rows


class Solution(NamedTuple):
    """What `solve_finite_newton` returns."""

    v: np.ndarray  # weights of the features and, last, the offset, (d + 1,)
    outputs: np.ndarray  # o = X̃v, (n,)
    objective: float  # F(v)
    gradient_norm: float  # ‖∇F(v)‖, which bounds ‖v − v*‖
    n_iter: int  # Newton steps
    n_cg: int  # iterations of conjugate gradients
    status: str  # "converged", "max_iter" or "no_step"


# --- The objective as a function of the outputs ---------------------------------------------------


@njit
def loss_and_slopes(plus, minus, o, curvature, slope):
    """Return the data terms of F; write their first and second derivatives in the outputs.

    Parameters
    ----------
    plus, minus : ndarrays of shape (n,)
        Costs p and m of the two labels.
    o : ndarray of shape (n,)
        Outputs.
    curvature : ndarray of shape (n,)
        Written: p [o < 1] + m [o > −1].
    slope : ndarray of shape (n,)
        Written: −p max(0, 1 − o) + m max(0, 1 + o).

    Returns
    -------
    float
    """
    value = 0.0
    for i in range(o.size):
        above, below = max(0.0, 1.0 - o[i]), max(0.0, 1.0 + o[i])
        curvature[i] = (plus[i] if above > 0.0 else 0.0) + (minus[i] if below > 0.0 else 0.0)
        slope[i] = minus[i] * below - plus[i] * above
        value += plus[i] * above * above + minus[i] * below * below
    return 0.5 * value


@njit
def slope_along(plus, minus, o, change, s, vd, dd):
    """Return φ'(s) for φ(s) = F(v + s d), from the outputs o and their change X̃d.

    φ'(s) = v·d + s‖d‖² + Σ_i (C⁻_i max(0, 1 + o_i + s δ_i) − C⁺_i max(0, 1 − o_i − s δ_i)) δ_i.
    """
    total = vd + s * dd
    for i in range(o.size):
        f = o[i] + s * change[i]
        total += (minus[i] * max(0.0, 1.0 + f) - plus[i] * max(0.0, 1.0 - f)) * change[i]
    return total


@njit
def line_search(plus, minus, o, change, vd, dd):
    """Return the exact minimizer ρ > 0 of F(v + ρ d) for a direction of descent d.

    φ' is continuous, increasing and piecewise linear. Its kinks are where an output passes 1 (rows
    with C⁺ > 0) or −1 (where C⁻ > 0); sorting those up to a point where φ' ≥ 0 and walking along
    them until the sign changes costs O(n log n).

    Parameters
    ----------
    plus, minus, o : ndarrays of shape (n,)
        Costs and outputs at v.
    change : ndarray of shape (n,)
        δ = X̃d.
    vd, dd : float
        v·d and ‖d‖² > 0.

    Returns
    -------
    float
    """
    # A step beyond which the minimum cannot lie.
    far, slope_far = 1.0, slope_along(plus, minus, o, change, 1.0, vd, dd)
    while slope_far < 0.0 and far < 1e30:
        far *= 4.0
        slope_far = slope_along(plus, minus, o, change, far, vd, dd)
    # Where losses start or end along the way, and what the curvature gains there.
    places, jumps = np.empty(2 * o.size), np.empty(2 * o.size)
    count, slope, curvature = 0, vd, dd
    for i in range(o.size):
        c = change[i]
        for side in range(2):
            weight = plus[i] if side == 0 else minus[i]
            if weight == 0.0:
                continue
            # The loss is ½ weight · max(0, gap + s · rise)².
            gap, rise = (1.0 - o[i], -c) if side == 0 else (1.0 + o[i], c)
            if gap > 0.0 or (gap == 0.0 and rise > 0.0):
                slope += weight * gap * rise
                curvature += weight * rise * rise
            if gap * rise < 0.0 and -gap / rise < far:
                places[count] = -gap / rise
                jumps[count] = weight * rise * abs(rise)
                count += 1
    # The slope is piecewise linear and rises: walk until it would pass zero.
    order = np.argsort(places[:count])
    here = 0.0
    for k in order:
        if slope + curvature * (places[k] - here) >= 0.0:
            break
        slope += curvature * (places[k] - here)
        here = places[k]
        curvature += jumps[k]
    return here - slope / curvature


# --- Products with the rows -----------------------------------------------------------------------


@njit
def add_rows(data, indices, indptr, rows, z, out):
    """Add Σ_i z_i x_i over the given rows of a CSR matrix to ``out``; return Σ_i z_i."""
    total = 0.0
    for i in rows:
        zi = z[i]
        total += zi
        for k in range(indptr[i], indptr[i + _ONE]):
            out[indices[k]] += zi * data[k]
    return total


@njit
def add_curvature(data, indices, indptr, rows, curvature, p, p_b, out):
    """Add Σ_i q_i x_i over the given rows, q_i = c_i (x_i·p + p_b), to ``out``; return Σ_i q_i.

    One pass over the rows that count, in place of two over all: each row is still in the cache
    when it is added. Four sums hide the latency of the additions.
    """
    total = 0.0
    for i in rows:
        start, end = indptr[i], indptr[i + _ONE]
        s0, s1, s2, s3 = p_b, 0.0, 0.0, 0.0
        k = start
        while k + _THREE < end:
            s0 += data[k] * p[indices[k]]
            s1 += data[k + _ONE] * p[indices[k + _ONE]]
            s2 += data[k + _TWO] * p[indices[k + _TWO]]
            s3 += data[k + _THREE] * p[indices[k + _THREE]]
            k += _FOUR
        while k < end:
            s0 += data[k] * p[indices[k]]
            k += _ONE
        q = curvature[i] * ((s0 + s1) + (s2 + s3))
        total += q
        for k in range(start, end):
            out[indices[k]] += q * data[k]
    return total


class _Rows:
    """What sparse and dense rows share."""

    def __init__(self, X):
        self.X, self.shape = X, (X.shape[0], X.shape[1] + 1)

    def take(self, index):
        """Return the same for some of the rows."""
        return type(self)(self.X[index])

    def outputs(self, v):
        """Return X̃v, shape (n,)."""
        return self.X @ v[:-1] + v[-1]


class SparseRows(_Rows):
    """The products with X̃ = (X, 1) for a CSR matrix X.

    Parameters
    ----------
    X : CSR matrix of shape (n, d)
    """

    def __init__(self, X):
        super().__init__(X)
        unsigned = np.dtype(f"u{X.indices.dtype.itemsize}")
        data = np.ascontiguousarray(X.data, dtype=np.float64)
        self._transposed = X.T
        self._csr = data, X.indices.view(unsigned), X.indptr.view(unsigned)

    def adjoint(self, z):
        """Return X̃ᵀz, shape (d + 1,)."""
        rows = _nonzero(z)
        if rows.size > _SKIP_BELOW * z.size:
            return np.append(self._transposed @ z, z.sum())
        out = np.zeros(self.shape[1])
        out[-1] = add_rows(*self._csr, rows, z, out)
        return out

    def curvature(self, c):
        """Return p ↦ p + X̃ᵀ(c ∘ X̃p), a function; its ``out`` takes the place of the first p."""
        rows = _nonzero(c)

        def product(p, out=None):
            out = p.copy() if out is None else out
            out[-1] += add_curvature(*self._csr, rows, c, p, p[-1], out)
            return out

        return product


class DenseRows(_Rows):
    """The products with X̃ = (X, 1) for a dense matrix X.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    """

    def __init__(self, X):
        super().__init__(X)
        self._active = None, None

    def adjoint(self, z):
        """Return X̃ᵀz, shape (d + 1,)."""
        return np.append(z @ self.X, z.sum())

    def curvature(self, c):
        """Return the product p ↦ p + X̃ᵀ(c ∘ X̃p), a function."""
        rows, X = np.flatnonzero(c), self.X
        if rows.size < _SKIP_BELOW * c.size:
            last, copy = self._active  # read at once: classes are solved side by side
            if last is None or not np.array_equal(rows, last):
                copy = X[rows]
                self._active = rows, copy
            X, c = copy, c[rows]

        def product(p, out=None):
            q = c * (X @ p[:-1] + p[-1])
            out = p.copy() if out is None else out
            out[:-1] += q @ X
            out[-1] += q.sum()
            return out

        return product


class ClusterRows:
    """The products with X̃ = (X, 1) for rows in blocks on the workers of a Dask cluster.

    The workers open their rows once and keep them, in double precision. Each call sends vectors of
    d + 1 numbers for each block, and the costs or outputs of the rows. Blocks are
    added in the order of their rows: results do not depend on the workers.

    Parameters
    ----------
    client : dask.distributed.Client
    X : {ndarray, CSR matrix} of shape (n, d)
        Memory maps in files that all workers can open, see `s3vm_lib.utils.row_blocks.on_disk`.
    """

    def __init__(self, client, X):
        self.X, self.shape = X, (X.shape[0], X.shape[1] + 1)
        entries = X.nnz if sp.issparse(X) else X.size
        rows = max(16, _BLOCK * X.shape[0] // max(1, entries))
        self.blocks = ClusterBlocks(client, X, _doubled, rows)

    def take(self, index):
        """Return `SparseRows` or `DenseRows` of some of the rows, in this process."""
        return _doubled(self.X[index])

    def outputs(self, v):
        """Return X̃v, shape (n,)."""
        return np.concatenate(list(self.blocks.each(_outputs, (), v)))

    def adjoint(self, z):
        """Return X̃ᵀz, shape (d + 1,)."""
        return sum(self.blocks.each(_adjoint, (z.copy(),)))  # a copy: the solver writes to its own

    def curvature(self, c):
        """Return the product p ↦ p + X̃ᵀ(c ∘ X̃p), a function."""
        c = c.copy()
        return lambda p: sum(self.blocks.each(_curvature, (c,), p), p)

    def close(self):
        """Delete the rows on the workers."""
        self.blocks.close()


def _doubled(X):
    return linear_rows(doubles(X))


# Workers are sent these by name, so that they are no lambdas.


def _outputs(block, v):
    return block.outputs(v)


def _adjoint(block, z):
    return block.adjoint(z)


def _curvature(block, c, p):
    return block.curvature(c)(p, np.zeros_like(p))


def linear_rows(X, client=None):
    """Prepare the products with the rows of a matrix, here or on a cluster.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
    client : dask.distributed.Client, default=None
        See `ClusterRows`.

    Returns
    -------
    SparseRows, DenseRows or ClusterRows
    """
    if client is not None:
        return ClusterRows(client, X)
    return SparseRows(X) if sp.issparse(X) else DenseRows(X)


def _nonzero(z):
    return np.flatnonzero(z).view(np.uint64)


# --- The solver -----------------------------------------------------------------------------------


def conjugate_gradients(product, g, tol, max_iter):
    """Solve Hd = −g approximately, from d = 0.

    Every iterate lowers the quadratic ½ dᵀHd + g·d, and g·d = −dᵀHd < 0: d is a direction of
    descent wherever the iteration ends.

    Parameters
    ----------
    product : callable
        p ↦ Hp for a symmetric positive definite H; returns a new array.
    g : ndarray of shape (k,)
    tol : float
        The iteration ends when ‖Hd + g‖ ≤ tol.
    max_iter : int

    Returns
    -------
    d : ndarray of shape (k,)
    n_iter : int
    """
    d, r = np.zeros_like(g), -g
    p, rr = r.copy(), ddot(r, r)
    for n_iter in range(max_iter):
        if rr <= tol * tol:
            return d, n_iter
        Hp = product(p)
        alpha = rr / ddot(p, Hp)
        daxpy(p, d, a=alpha)
        daxpy(Hp, r, a=-alpha)
        rr, previous = ddot(r, r), rr
        dscal(rr / previous, p)
        daxpy(r, p)
    return d, max_iter


def solve_finite_newton(
    rows, plus, minus, v=None, outputs=None, *, tol=1e-3, forcing=0.1, max_iter=50, max_cg=1000
):
    """Minimize F from v on.

    Parameters
    ----------
    rows : SparseRows, DenseRows or ClusterRows
        The n rows.
    plus, minus : ndarrays of shape (n,)
        Non-negative costs p and m of the labels +1 and −1.
    v : ndarray of shape (d + 1,), default=None
        Start; None means 0.
    outputs : ndarray of shape (n,), default=None
        X̃v, if it is known.
    tol : float, default=1e-3
        The search ends when ‖∇F(v)‖ ≤ tol ‖v‖. F is 1-strongly convex, hence ‖v − v*‖ ≤ ‖∇F(v)‖
        and F(v) − F(v*) ≤ ½‖∇F(v)‖²: the relative error of v is at most tol, that of F at most
        tol², because ½‖v‖² ≤ F(v).
    forcing : float, default=0.1
        Conjugate gradients reduce the gradient of the quadratic by this factor, or to what `tol`
        asks for if that is more.
    max_iter : int, default=50
        Largest number of Newton steps.
    max_cg : int, default=1000
        Largest number of iterations of conjugate gradients in one step.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib.finite_newton import linear_rows, solve_finite_newton
    >>> rows = linear_rows(np.array([[-2.0], [-1.0], [1.0], [2.0]]))
    >>> plus, minus = np.array([0.0, 0.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0, 0.0])
    >>> solution = solve_finite_newton(rows, plus, minus)
    >>> np.sign(solution.outputs).tolist(), solution.status
    ([-1.0, -1.0, 1.0, 1.0], 'converged')
    """
    n, k = rows.shape
    # The numbers are the lines of the chapter's algorithm. 1: outputs.
    v = np.zeros(k) if v is None else v.copy()
    o = (rows.outputs(v) if v.any() else np.zeros(n)) if outputs is None else outputs.copy()
    curvature, slope = np.empty(n), np.empty(n)
    n_iter, n_cg, status, before = 0, 0, "max_iter", (np.inf, np.inf)
    while True:
        # 2: which losses are active; 3: gradient and test.
        value = loss_and_slopes(plus, minus, o, curvature, slope) + 0.5 * (v @ v)
        gradient = v + rows.adjoint(slope)
        norm = float(np.linalg.norm(gradient))
        enough = tol * float(np.linalg.norm(v))
        if norm <= enough:
            status = "converged"
            break
        if value >= before[0] and norm >= before[1]:
            status = "no_step"  # the limit of double precision
            break
        if n_iter == max_iter:
            break
        # 4: conjugate gradients on the Hessian of the active losses, as exactly as pays.
        product = rows.curvature(curvature)
        d, used = conjugate_gradients(product, gradient, max(forcing * norm, 0.5 * enough), max_cg)
        # 5: the exact minimum along d.
        change = rows.outputs(d)
        s = line_search(plus, minus, o, change, v @ d, d @ d)
        if not np.isfinite(s):
            status = "no_step"  # to F rounding has no minimum along d
            break
        v += s * d
        o += s * change
        n_iter, n_cg, before = n_iter + 1, n_cg + used, (value, norm)
    return Solution(v, o, float(value), norm, n_iter, n_cg, status)
