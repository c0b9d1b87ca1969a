"""Kernels: Gram blocks, rows, diagonals and the pivoted Cholesky factorization K ≈ GGᵀ.

Two roads lead to the same numbers. `Kernel.gram` computes whole blocks with BLAS in double
precision (prediction, factorizations, tests). `kernel_row` computes one row at a time inside
numba, in the precision of the data it is given: the road of SMO, which visits few rows. Between
them, `add_kernel_sums` takes the products of many rows from BLAS, in the precision of `kernel_row`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from s3vm_lib.utils.jit import njit
from s3vm_lib.utils.row_blocks import sized_slices
from s3vm_lib.utils.threads import in_threads

__all__ = [
    "FAR", "KERNELS", "LAPLACIAN", "LINEAR", "PRECOMPUTED", "RBF", "Kernel", "KernelRows",
    "LowRank", "add_kernel_sums", "add_symmetric_sums", "dense_kernel_rows", "dot", "exp_inplace",
    "kernel_row", "kernel_rows", "near_origin", "pivoted_cholesky", "rbf_among", "resolve_gamma",
    "squared_norms",
]  # fmt: skip

KERNELS = ("linear", "poly", "rbf", "laplacian", "precomputed")
LINEAR, POLY, RBF, LAPLACIAN, PRECOMPUTED = range(5)
_FEW = 2**14  # rows that are copied at once
_BLOCK = 512
FAR = 1e4  # squared distance from the origin, in that among the rows, which costs four digits
_FAR = 2.0**20  # distances from 0, in powers of the width of the kernel


def floats(X):
    """Return a dense or sparse X of numbers that do not wrap around: integers become doubles."""
    return X.astype(np.float64) if X.dtype.kind in "iub" else X


def center_of(X):
    """Return a median of nine of the dense rows of X, shape (d,): few outliers do not move it."""
    return np.sort(X[np.arange(9) * (X.shape[0] - 1) // 8], axis=0)[4]


def near_origin(X):
    """Return the rows without their mean where that is far from 0, as they are otherwise.

    What depends on differences of rows alone then keeps its digits in products.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)

    Returns
    -------
    X : ndarray or CSR matrix of shape (n, d)
        As given where the rows are sparse.
    center : ndarray of shape (d,), or None
        What was subtracted.
    """
    if sp.issparse(X):
        return X, None
    mean = X.mean(axis=0)
    return (X - mean, mean) if mean @ mean > FAR * X.var(axis=0).sum() else (X, None)


def squared_norms(X):
    """Return the squared Euclidean norms of the rows of a dense or sparse X, shape (n,)."""
    X = floats(X)
    if sp.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        squares = np.zeros(X.shape[0])
        for k in range(0, X.shape[0], _FEW):  # the squares would take as much as X
            start = X.indptr[k : k + _FEW + 1]
            part, full = X.data[start[0] : start[-1]], np.flatnonzero(np.diff(start))
            if full.size:
                squares[k + full] = np.add.reduceat(part * part, start[full] - start[0])
        return squares
    return np.einsum("ij,ij->i", X, X)


def is_far(kernel, X):
    """Return whether distances of the rows of X need differences, entry by entry.

    What ‖x‖² + ‖z‖² − 2⟨x, z⟩, or a shift of X, leaves of distances between near rows would then
    be seen in the values of the kernel, rbf or laplacian.
    """
    norms = squared_norms(X) if kernel.name == "rbf" else np.asarray(abs(X).sum(axis=1))
    return bool(kernel.gamma * norms.max(initial=0.0) > _FAR)


# Constants of the module cost the compiler less than calls of np.float32 in the loop.
_ZERO = np.float32(0.0)
_LEAST, _MOST = np.float32(-87.0), np.float32(88.0)
_PER_LOG2, _HALF, _ONE = np.float32(1.4426950408889634), np.float32(0.5), np.float32(1.0)
_LOG2, _LOG2_REST = np.float32(0.693359375), np.float32(2.12194440e-4)
_P0, _P1 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3)
_P2, _P3 = np.float32(8.3334519073e-3), np.float32(4.1665795894e-2)
_P4, _P5 = np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_BIAS, _SHIFT = np.int32(127), np.int32(23)


@njit
def exp_inplace(x):
    """Replace float32 x by exp(x).

    Range reduction x = k log 2 + r, a polynomial in r, and 2^k written into the exponent bits:
    the loop is free of calls and branches, so that it vectorizes. Relative error below 2e-7.
    """
    for i in range(x.size):
        v = min(max(x[i], _LEAST), _MOST)
        k = np.floor(v * _PER_LOG2 + _HALF)
        r = v - k * _LOG2
        r = r + k * _LOG2_REST
        p = ((((_P0 * r + _P1) * r + _P2) * r + _P3) * r + _P4) * r + _P5
        power = np.int32((np.int32(k) + _BIAS) << _SHIFT).view(np.float32)
        x[i] = (p * (r * r) + r + _ONE) * power


@njit
def _dot_block(XT, i, start, out):
    """Write out[j] = ⟨x_i, x_{start+j}⟩ for one block of columns of XT (d, n)."""
    d, m = XT.shape[0], out.size
    for j in range(m):
        out[j] = 0
    k = 0
    while k + 4 <= d:
        a0, a1, a2, a3 = XT[k, i], XT[k + 1, i], XT[k + 2, i], XT[k + 3, i]
        r0 = XT[k, start : start + m]
        r1 = XT[k + 1, start : start + m]
        r2 = XT[k + 2, start : start + m]
        r3 = XT[k + 3, start : start + m]
        for j in range(m):
            out[j] += (a0 * r0[j] + a1 * r1[j]) + (a2 * r2[j] + a3 * r3[j])
        k += 4
    while k < d:
        a0 = XT[k, i]
        r0 = XT[k, start : start + m]
        for j in range(m):
            out[j] += a0 * r0[j]
        k += 1


@njit
def _square_distance_block(XT, i, start, out):
    """Write out[j] = ‖x_i − x_{start+j}‖²; differences, so that near points lose no digits."""
    d, m = XT.shape[0], out.size
    for j in range(m):
        out[j] = 0
    k = 0
    while k + 4 <= d:
        a0, a1, a2, a3 = XT[k, i], XT[k + 1, i], XT[k + 2, i], XT[k + 3, i]
        r0 = XT[k, start : start + m]
        r1 = XT[k + 1, start : start + m]
        r2 = XT[k + 2, start : start + m]
        r3 = XT[k + 3, start : start + m]
        for j in range(m):
            d0, d1, d2, d3 = a0 - r0[j], a1 - r1[j], a2 - r2[j], a3 - r3[j]
            out[j] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
        k += 4
    while k < d:
        a0 = XT[k, i]
        r0 = XT[k, start : start + m]
        for j in range(m):
            d0 = a0 - r0[j]
            out[j] += d0 * d0
        k += 1


@njit
def _manhattan_block(XT, i, start, out):
    """Write out[j] = ‖x_i − x_{start+j}‖₁."""
    m = out.size
    for j in range(m):
        out[j] = 0
    for k in range(XT.shape[0]):
        a0 = XT[k, i]
        r0 = XT[k, start : start + m]
        for j in range(m):
            out[j] += abs(a0 - r0[j])


@njit
def _csr_dot_row(x, data, indices, indptr, out):
    """Write out[j] = ⟨x, x_j⟩ for a dense x and the rows of a CSR matrix."""
    for j in range(out.size):
        total = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            total += x[indices[k]] * data[k]
        out[j] = total


@njit
def manhattan_row(x, data, indices, indptr, out):
    """Write out[j] = ‖x − x_j‖₁ for a dense x and the rows of a CSR matrix."""
    norm = 0.0
    for k in range(x.size):
        norm += abs(x[k])
    for j in range(out.size):
        total = norm
        for k in range(indptr[j], indptr[j + 1]):
            v = x[indices[k]]
            total += abs(v - data[k]) - abs(v)
        out[j] = total


@njit
def csr_distance_row(x, present, data, indices, indptr, square, out):
    """Write distances between a dense x and the rows of a CSR matrix, entry by entry.

    Parameters
    ----------
    x : ndarray of shape (d,)
        Zero but in the columns ``present``.
    square : bool
        ‖x − x_j‖² in place of ‖x − x_j‖₁.
    out : ndarray
        Result.
    """
    seen = np.full(x.size, -1)
    for j in range(out.size):
        total = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            difference = abs(x[indices[k]] - data[k])
            total += difference * difference if square else difference
            seen[indices[k]] = j
        for k in present:
            if seen[k] != j:
                total += x[k] * x[k] if square else abs(x[k])
        out[j] = total


@njit
def _scale(variance, out):
    for j in range(out.size):
        out[j] *= variance


@njit
def _power(gamma, degree, coef0, variance, out):
    for j in range(out.size):
        base = gamma * out[j] + coef0
        value = variance
        for _ in range(degree):
            value *= base
        out[j] = value


@njit
def _decay(gamma, variance, out):
    for j in range(out.size):
        out[j] *= -gamma
    if out.itemsize == 4:
        exp_inplace(out)
    else:
        for j in range(out.size):
            out[j] = np.exp(out[j])
    if variance != 1.0:
        _scale(variance, out)


@njit
def _apply(code, gamma, degree, coef0, variance, out):
    """Turn inner products (linear, poly) or distances (rbf, laplacian) into kernel values."""
    if code == LINEAR:
        _scale(variance, out)
    elif code == POLY:
        _power(gamma, degree, coef0, variance, out)
    else:
        _decay(gamma, variance, out)


class KernelRows(NamedTuple):
    """Data and kernel in the form that `kernel_row` reads (see `kernel_rows`)."""

    code: int
    parameters: np.ndarray  # gamma, degree, coef0, σ_f²
    XT: np.ndarray  # dense data, transposed: (d, n); (d, 0) for CSR data
    squares: np.ndarray  # squared norms of CSR rows; empty where they `is_far`, and for dense data
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray  # size 1 for dense data


def kernel_rows(X, kernel, dtype=np.float64):
    """Prepare X and a kernel for `kernel_row`.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    kernel : Kernel
        Any kernel but ``precomputed``, whose rows are given.
    dtype : {np.float32, np.float64}, default=np.float64
        Precision of the rows.

    Returns
    -------
    KernelRows
    """
    if kernel.name == "precomputed":
        raise ValueError("kernel='precomputed' has its rows already")
    parameters = np.array([kernel.gamma, kernel.degree, kernel.coef0, kernel.sigma_f**2], dtype)
    if sp.issparse(X):
        squares = squared_norms(X).astype(dtype)
        if kernel.name in ("rbf", "laplacian") and is_far(kernel, X):
            squares = squares[:0]
        parts = (X.data.astype(dtype), X.indices.astype(np.int32), X.indptr.astype(np.int64))
        return KernelRows(
            kernel.code, parameters, np.empty((X.shape[1], 0), dtype), squares, *parts
        )
    parts = (np.empty(0, dtype), np.empty(0, np.int32), np.zeros(1, np.int64))
    if kernel.name in ("rbf", "laplacian"):
        X = floats(X)
        near = X - center_of(X)  # distances stay the same, and single precision keeps their digits
        if dtype == np.float32 or not is_far(kernel, near):
            X = near
    XT = np.ascontiguousarray(X.T, dtype=dtype)
    return KernelRows(kernel.code, parameters, XT, np.empty(0, dtype), *parts)


@njit
def kernel_row(rows, i, out):
    """Write the kernel values between row i and all rows into ``out``.

    Parameters
    ----------
    rows : KernelRows
    i : int
        Row.
    out : ndarray of shape (n,)
        Result, in the precision of ``rows``.
    """
    gamma, degree = rows.parameters[0], int(rows.parameters[1])
    coef0, variance = rows.parameters[2], rows.parameters[3]
    if rows.indptr.size > 1:
        x = np.zeros(rows.XT.shape[0], rows.data.dtype)
        for k in range(rows.indptr[i], rows.indptr[i + 1]):
            x[rows.indices[k]] = rows.data[k]
        far = rows.squares.size == 0 and (rows.code == RBF or rows.code == LAPLACIAN)
        if far:
            present = rows.indices[rows.indptr[i] : rows.indptr[i + 1]]
            square = rows.code == RBF
            csr_distance_row(x, present, rows.data, rows.indices, rows.indptr, square, out)
        elif rows.code == LAPLACIAN:
            manhattan_row(x, rows.data, rows.indices, rows.indptr, out)
        else:
            _csr_dot_row(x, rows.data, rows.indices, rows.indptr, out)
        if rows.code == RBF and not far:
            for j in range(out.size):
                out[j] = max(rows.squares[i] + rows.squares[j] - 2 * out[j], 0.0)
            out[i] = 0
        _apply(rows.code, gamma, degree, coef0, variance, out)
        return
    for start in range(0, out.size, _BLOCK):
        block = out[start : start + _BLOCK]
        if rows.code == RBF:
            _square_distance_block(rows.XT, i, start, block)
        elif rows.code == LAPLACIAN:
            _manhattan_block(rows.XT, i, start, block)
        else:
            _dot_block(rows.XT, i, start, block)
        _apply(rows.code, gamma, degree, coef0, variance, block)


# Whole matrices of dense data take one of these, so that only one is compiled.


@njit
def _linear_rows(XT, parameters, index, first, values, m):
    for k in range(index.size):
        for start in range(0, m, _BLOCK):
            block = values[first + k, start : min(start + _BLOCK, m)]
            _dot_block(XT, index[k], start, block)
            _scale(parameters[3], block)


@njit
def _poly_rows(XT, parameters, index, first, values, m):
    gamma, coef0, variance = parameters[0], parameters[2], parameters[3]
    for k in range(index.size):
        for start in range(0, m, _BLOCK):
            block = values[first + k, start : min(start + _BLOCK, m)]
            _dot_block(XT, index[k], start, block)
            _power(gamma, int(parameters[1]), coef0, variance, block)


@njit
def _rbf_rows(XT, parameters, index, first, values, m):
    for k in range(index.size):
        for start in range(0, m, _BLOCK):
            end = min(start + _BLOCK, m)
            block = values[first + k, start:end]
            _square_distance_block(XT, index[k], start, block)
            _decay(parameters[0], parameters[3], block)


@njit
def _laplacian_rows(XT, parameters, index, first, values, m):
    for k in range(index.size):
        for start in range(0, m, _BLOCK):
            end = min(start + _BLOCK, m)
            block = values[first + k, start:end]
            _manhattan_block(XT, index[k], start, block)
            _decay(parameters[0], parameters[3], block)


_MANY = {LINEAR: _linear_rows, POLY: _poly_rows, RBF: _rbf_rows, LAPLACIAN: _laplacian_rows}


def dense_kernel_rows(rows, index, first, values, m):
    """Run `kernel_row` for many rows of dense data, into consecutive rows of a matrix.

    Parameters
    ----------
    rows : KernelRows
        Of dense data.
    index : ndarray of shape (k,)
        Rows.
    first : int
        Where the first of them goes.
    values : ndarray of shape (slots, at least m)
        Result, in the precision of ``rows``.
    m : int
        How many columns are filled.
    """
    _MANY[rows.code](rows.XT, rows.parameters, index, first, values, m)


# --- Sums over many rows, in blocks --------------------------------------------------------------

_TILE = 256  # columns of a block, which with `_BLOCK` rows stays in the processor's cache


@njit(fastmath={"contract", "reassoc"})
def dot(x, y):
    """Return ⟨x, y⟩ in double precision, without the call that BLAS costs; in several sums."""
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@njit
def _rbf_sums(parameters, a, b, values, weights, out, others, across):
    """Make kernel values of inner products, and add their sums over rows to ``out``.

    Those over columns, with the weights ``others``, are added to ``across``; both may be empty.
    """
    for k in range(a.size):
        row = values[k]
        for j in range(b.size):
            square = (a[k] - row[j]) + (b[j] - row[j])
            row[j] = max(square, _ZERO)
        _decay(parameters[0], parameters[3], row)
        for j in range(out.size):
            out[j] += weights[k] * row[j]
        if others.size > 0:
            across[k] += dot(row, others)


def _tiles(n, start=0):
    return [slice(k, min(k + _TILE, n)) for k in range(start, n, _TILE)]


def add_kernel_sums(rows, squares, index, weights, out):
    """Add Σ_k weights_k k(x_{index_k}, x_j) to out_j, with values of rbf that BLAS begins.

    Parameters
    ----------
    rows : KernelRows
        Of dense data, with rbf.
    squares : ndarray of shape (n,)
        ‖x‖² of the data in ``rows``, in their precision.
    index : ndarray of shape (k,)
        Rows.
    weights : ndarray of shape (k,)
        Their factors.
    out : ndarray of shape (n,)
        Changed in place; sums are accumulated in double precision.
    """
    none = np.empty(0)
    for first in range(0, index.size, _BLOCK):
        part, w = index[first : first + _BLOCK], weights[first : first + _BLOCK]
        points = np.ascontiguousarray(rows.XT[:, part].T)
        for b in _tiles(squares.size):
            values = points @ rows.XT[:, b]
            _rbf_sums(rows.parameters, squares[part], squares[b], values, w, out[b], none, none)


def add_symmetric_sums(rows, squares, weights, out):
    """Add Kw to ``out``, with each pair of rows computed once; arguments as `add_kernel_sums`."""
    n, none = squares.size, np.empty(0)
    for first in range(0, n, _TILE):
        a = slice(first, min(first + _TILE, n))
        points = np.ascontiguousarray(rows.XT[:, a].T)
        for b in _tiles(n, first):
            values, other = points @ rows.XT[:, b], none if b == a else weights[b]
            _rbf_sums(
                rows.parameters, squares[a], squares[b], values, weights[a], out[b], other, out[a]
            )


def rbf_among(rows, squares, index):
    """Return the kernel values between the rows ``index``, as `add_kernel_sums` has them."""
    points = np.ascontiguousarray(rows.XT[:, index].T)
    values, own, none = points @ points.T, squares[index], np.empty(0)
    _rbf_sums(rows.parameters, own, own, values, none, none, none, none)
    return values


# --- Whole blocks ---------------------------------------------------------------------------------

_ROWS = 2**16  # rows that are read at once
_PARAMETERS = {
    "linear": ("sigma_f",),
    "poly": ("gamma", "degree", "coef0", "sigma_f"),
    "rbf": ("gamma", "sigma_f"),
    "laplacian": ("gamma", "sigma_f"),
    "precomputed": (),
}


@dataclass(frozen=True)
class Kernel:
    """A kernel function with its parameters.

    Parameters
    ----------
    name : {"linear", "poly", "rbf", "laplacian", "precomputed"}
        ``linear``: ⟨x, z⟩; ``poly``: (γ⟨x, z⟩ + coef0)^degree; ``rbf``: σ_f² exp(−γ‖x − z‖²);
        ``laplacian``: σ_f² exp(−γ‖x − z‖₁). With ``precomputed``, X itself holds the values: the
        n × n Gram matrix of the training rows, or m × n values between new and training rows.
    gamma : float, default=1.0
        Inverse squared width (rbf), inverse width (laplacian) or scale (poly).
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial kernel.
    sigma_f : float, default=1.0
        Output standard deviation; every kernel but ``precomputed`` is multiplied by its square.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib.kernels import Kernel
    >>> kernel = Kernel("poly", degree=2, coef0=1.0)
    >>> kernel.gram(np.array([[1.0], [2.0]]), np.array([[3.0]])).tolist()
    [[16.0], [49.0]]
    """

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    sigma_f: float = 1.0

    def __post_init__(self):
        if self.name not in KERNELS:
            raise ValueError(f"kernel must be one of {KERNELS}, got {self.name!r}")

    @property
    def code(self):
        """Integer code of the kernel for the compiled loops."""
        return KERNELS.index(self.name)

    @property
    def parameters(self):
        """The parameters that the values of this kernel depend on, by name."""
        return {name: getattr(self, name) for name in _PARAMETERS[self.name]}

    def gram(self, X, Y=None):
        """Return the kernel values between the rows of X and of Y.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n, d)
            Rows; with ``precomputed`` the kernel values themselves, returned as they are.
        Y : ndarray or CSR matrix of shape (m, d), default=None
            Other rows; None means X. Not allowed with ``precomputed``.

        Returns
        -------
        ndarray of shape (n, m)

        Notes
        -----
        Computed in blocks of rows, which stay in the processor's cache and are shared among the
        threads of the caller's ``n_jobs``. Without Y, dense values are computed once for (i, j)
        and (j, i). With rbf, dense rows are shifted by the median of nine rows of Y (of X without
        it), which few outliers do not move. Integers are converted to floats.
        """
        if self.name == "precomputed":
            if Y is not None:
                raise ValueError("kernel='precomputed' has no rows to compare: pass X alone")
            return np.asarray(X)
        sparse, once = sp.issparse(X) or sp.issparse(Y), Y is None
        X = floats(X)
        Y = X if once else floats(Y)
        far = False
        if self.name == "rbf" and not sparse and Y.shape[0]:
            # Distances of points near each other and far from 0 would lose their digits. Of Y, so
            # that what becomes of a row of X does not depend on the others.
            center = center_of(Y)
            near = Y - center
            far = is_far(self, near)
            if not far:
                X, Y = near if once else X - center, near
        elif sparse and self.name in ("rbf", "laplacian"):
            far = is_far(self, Y)
        squares = None
        if self.name == "rbf" and not far:
            rows = squared_norms(X)
            squares = rows, rows if once else squared_norms(Y)
        if sparse and (far or self.name == "laplacian"):
            X, Y = sp.csr_matrix(X, dtype=np.float64), sp.csr_matrix(Y, dtype=np.float64)
        dtype = np.result_type(X.dtype, Y.dtype)
        if self.name == "laplacian":
            dtype = np.dtype(float)
        K = np.empty((X.shape[0], Y.shape[0]), dtype)
        half = once and not sparse

        def block(b):
            if not half:
                self._fill(K[b], X[b], Y, None if squares is None else (squares[0][b], squares[1]))
                return
            after = slice(b.stop, None)
            for columns in (b, after):
                pair = None if squares is None else (squares[0][b], squares[1][columns])
                self._fill(K[b, columns], X[b], X[columns], pair)
            K[after, b] = K[b, after].T

        in_threads(block, sized_slices(*K.shape))
        if once and self.name == "rbf":
            np.fill_diagonal(K, self.sigma_f**2)
        return K

    def _fill(self, K, X, Y, squares):
        """Write the values between the rows of X and of Y into K.

        Those of rbf follow from the squares of the rows, or where these are None from differences.
        """
        if self.name == "laplacian" or (self.name == "rbf" and squares is None):
            self._distances(X, Y, K)
            K *= -self.gamma
            np.exp(K, out=K)
        elif sp.issparse(X) or sp.issparse(Y):
            products = X @ Y.T
            K[:] = products.toarray() if sp.issparse(products) else products
        else:
            np.matmul(X, Y.T, out=K)
        if squares is not None:
            K *= -2
            K += squares[0][:, None] + squares[1]  # the same for (i, j) and (j, i)
            np.maximum(K, 0, out=K)
            K *= -self.gamma
            np.exp(K, out=K)
        elif self.name == "poly":
            K *= self.gamma
            K += self.coef0
            power, rest = K.copy(), self.degree - 1  # `**` takes long where bases are negative
            while rest:
                if rest % 2:
                    K *= power
                power, rest = power * power if rest > 1 else power, rest // 2
        if self.sigma_f != 1:
            K *= self.sigma_f**2

    def _distances(self, X, Y, out):
        """Write distances between the rows, ‖x − z‖₁ or with rbf ‖x − z‖², by their differences."""
        if not sp.issparse(X):
            from scipy.spatial.distance import cdist

            out[:] = cdist(X, Y, "sqeuclidean" if self.name == "rbf" else "cityblock")
            return
        rows = Y.data, Y.indices, Y.indptr
        far = self.name == "rbf" or is_far(self, Y)
        for i in range(X.shape[0]):
            x, present = np.ravel(X[i].toarray()), X.indices[X.indptr[i] : X.indptr[i + 1]]
            if far:
                csr_distance_row(x, present, *rows, self.name == "rbf", out[i])
            else:
                manhattan_row(x, *rows, out[i])

    def diagonal(self, X):
        """Return values k(x, x) of the rows of X, shape (n,); X is square with ``precomputed``."""
        if self.name == "precomputed":
            return np.diagonal(X).copy()
        if self.name in ("rbf", "laplacian"):
            return np.full(X.shape[0], self.sigma_f**2)
        diagonal = squared_norms(X)
        if self.name == "poly":
            diagonal = (self.gamma * diagonal + self.coef0) ** self.degree
        return self.sigma_f**2 * diagonal

    def among(self, X, index):
        """Return the Gram matrix of the rows ``index`` of X."""
        return X[np.ix_(index, index)] if self.name == "precomputed" else self.gram(X[index])

    def columns(self, X, index):
        """Return the columns ``index`` of the Gram matrix of X, shape (n, len(index))."""
        return X[:, index] if self.name == "precomputed" else self.gram(X, X[index])


def resolve_gamma(gamma, X, sample_weight=None):
    """Return the number that ``gamma`` stands for on the data X.

    Parameters
    ----------
    gamma : {"scale", "variance", "auto"} or float
        ``"scale"`` means 1 / (d · Var X) with the variance of all entries together, as in
        scikit-learn: a column whose mean is far from the others' makes it small. ``"variance"``
        means one over the sum of the variances of the columns, which no shift of X changes; where
        the columns have the same mean both are equal. ``"auto"`` means 1 / d.
    X : ndarray or CSR matrix of shape (n, d)
        Training rows, labeled and unlabeled.
    sample_weight : ndarray of shape (n,), default=None
        Weights of the rows in the variance, so that a weight of k equals k copies of the row.

    Returns
    -------
    float
        1.0 where the variance is 0, rounding apart.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    d = X.shape[1]
    if gamma == "auto":
        return 1.0 / d
    s = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    # All entries are one sample, or those of each column are.
    pooled, width = (np.sum, d) if gamma == "scale" else (np.asarray, 1)
    total = s.sum() * width
    if sp.issparse(X):
        mean = pooled(s @ X) / total
        # In two passes: E x² − mean² would leave rounding of the size of mean².
        stored = np.repeat(s, np.diff(X.indptr))
        at, present = mean, stored.sum()
        if gamma == "variance":
            at, present = mean[X.indices], np.bincount(X.indices, stored, d)
            present[np.bincount(X.indices, minlength=d) == X.shape[0]] = total  # to the last bit
        squares = float(stored @ (X.data - at) ** 2) + float(np.sum((total - present) * mean**2))
    else:
        # Block by block, so that a memory map is read and not copied.
        blocks = [slice(k, k + _ROWS) for k in range(0, X.shape[0], _ROWS)]
        mean = sum(pooled(s[b] @ np.asarray(X[b], dtype=float)) for b in blocks) / total
        squares = sum(
            float(np.sum(s[b] @ (np.asarray(X[b], dtype=float) - mean) ** 2)) for b in blocks
        )
    variance = squares / total
    rounding = X.shape[0] * width * np.finfo(float).eps * np.linalg.norm(mean)  # of it, at most
    return 1.0 / (width * variance) if variance > rounding**2 else 1.0


# --- The factorization, from columns that are computed on demand ---------------------------------


_PART = 2**16  # numbers of a factor that are computed at once


class LowRank(NamedTuple):
    """A factorization K ≈ GGᵀ (see `pivoted_cholesky`)."""

    factor: np.ndarray  # G, shape (n, r)
    pivots: np.ndarray  # rows of the data that span the approximation, shape (r,)
    residual: float  # largest diagonal entry of K − GGᵀ, relative to that of K


def pivoted_cholesky(
    X, kernel, max_rank=None, tol=1e-6, *, first=None, pivoting="greedy", block=32
):
    """Return the low-rank Cholesky factor of a Gram matrix whose columns are computed on demand.

    The classical algorithm takes as its next pivot the row with the largest residual diagonal
    k(x, x) − ‖g(x)‖². Here ``block`` rows are proposed at once, factorized among themselves with
    pivoting, and kept as long as their own residual stays large enough: all heavy work becomes
    matrix products, and near-duplicates within a block are still turned down.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Data; the n × n Gram matrix itself with ``kernel="precomputed"``.
    kernel : Kernel
        Positive semi-definite kernel.
    max_rank : int, default=None
        Largest number of columns; None means n.
    tol : float, default=1e-6
        Stop when the largest diagonal entry of K − GGᵀ is at most tol times that of K.
    first : ndarray of shape (m,), default=None
        Rows that precede all others; linearly dependent ones are left out.
    pivoting : {"greedy", "residual"}, default="greedy"
        ``"greedy"`` proposes the rows with the largest residuals and keeps those that stay above
        half of the largest: the fastest way to a small residual. It visits outliers, however, and
        where the rank is far too small for the kernel the bulk of the data comes last.
        ``"residual"`` proposes a systematic sample in proportion to the residual, together with
        the row of the largest. No random numbers are needed.
    block : int, default=32
        Number of rows proposed at once; 1 gives the classical algorithm.

    Returns
    -------
    LowRank
        ``factor`` (n, r), ``pivots`` (r,) and the relative ``residual``. ``factor[pivots]`` is
        lower triangular, so that coefficients α on the pivots alone reproduce f = Gw on every
        row, seen or unseen, by solving ``factor[pivots].T @ α = w``.

    References
    ----------
    S. Fine and K. Scheinberg, "Efficient SVM training using low-rank kernel representations",
    JMLR 2 (2001); H. Harbrecht, M. Peters and R. Schneider, "On the low-rank approximation by the
    pivoted Cholesky decomposition", Applied Numerical Mathematics 62 (2012); Y. Chen, E. N.
    Epperly, J. A. Tropp and R. J. Webber, "Randomly pivoted Cholesky", Communications on Pure and
    Applied Mathematics 78 (2025), for pivots in proportion to the residual.
    """
    if pivoting not in ("greedy", "residual"):
        raise ValueError(f"pivoting must be 'greedy' or 'residual', got {pivoting!r}")
    n = X.shape[0]
    max_rank = n if max_rank is None else min(int(max_rank), n)
    # The numbers are the lines of the chapter's algorithm, a block of pivots at a time. 1
    residual = np.asarray(kernel.diagonal(X), dtype=float)
    largest = max(residual.max(), np.finfo(float).tiny)
    # Below the floor a pivot is rounding noise of the columns before it.
    floor = max(tol, 4 * np.finfo(float).eps * n) * largest
    queue = [] if first is None else [first[k : k + block] for k in range(0, len(first), block)]
    G = np.empty((n, max_rank), order="F")
    pivots = np.empty(max_rank, dtype=np.intp)
    r = 0
    # 2, 3: the candidates are the rows of ``first``, or those with large residuals.
    while r < max_rank and residual.max() > floor:
        threshold = floor
        if queue:
            candidates = queue.pop(0)[: max_rank - r]
        elif pivoting == "residual":
            candidates = _systematic_sample(residual, min(block, max_rank - r))
        else:
            count = min(block, max_rank - r)
            # Stable: all residuals of an RBF kernel are equal at first, on every processor.
            candidates = np.argsort(-residual, kind="stable")[:count]
            threshold = max(0.5 * residual[candidates[0]], floor)
        # What is left of their own kernel values decides which of them become pivots.
        S = kernel.among(X, candidates) - G[candidates, :r] @ G[candidates, :r].T
        chosen = _select(S, threshold)
        if chosen.size == 0:
            residual[candidates] = 0.0  # rounding had kept them above the floor
            continue
        new = candidates[chosen]
        # 4: their columns, less what is explained; 5: what is left of the diagonal.
        L = np.linalg.cholesky(S[np.ix_(chosen, chosen)])
        end, points = r + new.size, None if kernel.name == "precomputed" else X[new]
        known = G[new, :r].T

        def fill(b, r=r, end=end, new=new, points=points, known=known, L=L):
            values = X[b, new] if points is None else kernel.gram(X[b], points)
            part = solve_triangular(L, (values - G[b, :r] @ known).T, lower=True).T
            G[b, r:end] = part
            residual[b] -= np.einsum("ij,ij->i", part, part)

        in_threads(fill, sized_slices(n, 64, _PART))
        G[new, r:end] = L
        G[pivots[:r], r:end] = 0.0
        pivots[r:end] = new
        residual[pivots[:end]] = 0.0
        np.maximum(residual, 0.0, out=residual)
        r = end
    return LowRank(G[:, :r], pivots[:r], float(residual.max() / largest))


def _systematic_sample(residual, size):
    """Return up to ``size`` rows in proportion to the residual, the largest among them."""
    order = np.argsort(residual, kind="stable")
    mass = np.cumsum(residual[order])
    ticks = (np.arange(size) + 0.5) / size * mass[-1]
    sample = order[np.minimum(np.searchsorted(mass, ticks), order.size - 1)]
    sample[-1] = order[-1]
    return np.unique(sample)


def _select(S, threshold):
    """Return the pivots of a small S, largest first, whose own residual is above the threshold."""
    S = S.copy()
    order = []
    while len(order) < S.shape[0]:
        diagonal = np.diagonal(S).copy()
        diagonal[order] = 0.0
        p = int(np.argmax(diagonal))
        if diagonal[p] <= threshold:
            break
        order.append(p)
        S -= np.outer(S[:, p], S[p]) / diagonal[p]
    return np.array(order, dtype=np.intp)
