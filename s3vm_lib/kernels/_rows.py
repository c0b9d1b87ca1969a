"""Kernel values one row at a time, compiled, in the precision of the data."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from s3vm_lib.utils.jit import njit

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
        Any kernel but ``precomputed``, whose rows are there already.
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
