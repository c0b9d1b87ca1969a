"""Kernel values in memory, for all solvers that read them row by row.

`Gram` holds those of a fixed set of rows: the whole matrix, or the rows that are visited, in a
cache that overwrites the row used longest ago. `KernelStore` holds those of rows that come and go:
a stored matrix, a cache of rows, or X itself.
"""

import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from s3vm_lib.kernels import (
    KernelRows,
    add_kernel_sums,
    add_symmetric_sums,
    dense_kernel_rows,
    kernel_row,
    kernel_rows,
    rbf_among,
    squared_norms,
)  # fmt: skip
from s3vm_lib.utils.jit import njit
from s3vm_lib.utils.threads import in_threads

__all__ = [
    "CACHED", "DENSE", "Gram", "KernelStore", "add_rows", "append_rows", "compute_row",
    "empty_cache", "fetch_rows", "give_slot", "rows_at_once", "used_slot", "write_border",
]  # fmt: skip

_NONE = np.empty(0, np.intp)


class RowCache(NamedTuple):
    """Kernel rows of a fixed set of points, see `Gram`."""

    values: np.ndarray  # (slots, n)
    slot: np.ndarray  # slot of each row or −1, (n,)
    owner: np.ndarray  # row in each slot or −1, (slots,)
    stamp: np.ndarray  # time of last use of each slot, (slots,)
    clock: np.ndarray  # the time, and how many slots have been given out, (2,)
    whole: np.ndarray  # values of the cache that this one is a sub-matrix of; empty at the top
    whole_slot: np.ndarray  # slots in that cache of the rows kept here
    columns: np.ndarray  # the columns kept here
    mean: np.ndarray  # kernel values of the mean point, which comes last; empty without one


def empty_cache(values, mean, whole=None, whole_slot=_NONE, columns=_NONE):
    """Return a `RowCache` over the memory ``values``, without a row in it."""
    slots, n = values.shape
    return RowCache(
        values, np.full(n, -1), np.full(slots, -1), np.zeros(slots, np.int64),
        np.zeros(2, np.int64), values[:0] if whole is None else whole, whole_slot, columns, mean,
    )  # fmt: skip


@njit(inline="always")
def give_slot(cache, s, i):
    """Give slot s to row i, away from the row that had it.

    ``cache`` is a `RowCache` or the `Values` of a `KernelStore`.
    """
    if cache.owner[s] >= 0:
        cache.slot[cache.owner[s]] = -1
    cache.slot[i], cache.owner[s] = s, i


@njit
def oldest(stamp):
    """Return the slot used longest ago, the first of equals; `np.argmin` compiles slowly."""
    s = 0
    for k in range(1, stamp.size):
        if stamp[k] < stamp[s]:
            s = k
    return s


@njit
def compute_row(cache, rows, i):
    """Compute row i of the kernel, which is not in memory, and keep it there.

    With ``rows=None`` it is in the cache that this one is a sub-matrix of, and nothing that
    computes kernel values is compiled.
    """
    s = cache.clock[1]
    if s < cache.owner.size:
        cache.clock[1] += 1
    else:
        s = oldest(cache.stamp)
    give_slot(cache, s, i)
    if cache.whole.size > 0 and cache.whole_slot[i] >= 0:
        row = cache.whole[cache.whole_slot[i]]
        for j in range(cache.columns.size):
            cache.values[s, j] = row[cache.columns[j]]
    elif i + 1 == cache.mean.size:
        for j in range(cache.mean.size):
            cache.values[s, j] = cache.mean[j]
    elif rows is not None:
        m = cache.slot.size - min(1, cache.mean.size)
        kernel_row(rows, i, cache.values[s, :m])
        if m < cache.slot.size:
            cache.values[s, m] = cache.mean[i]


@njit
def fetch_row(cache, rows, i):
    """Return the slot that holds row i of the kernel, computing the row if it is not there."""
    if cache.slot[i] < 0:
        compute_row(cache, rows, i)
    return used_slot(cache.slot, cache.stamp, cache.clock, i)


@njit
def used_slot(slot, stamp, clock, i):
    """Return the slot of row i, which is in the cache, and mark it as used now.

    Inner loops ask for it themselves: to hand a whole cache on counts the references to all of
    its arrays.
    """
    clock[0] += 1
    stamp[slot[i]] = clock[0]
    return slot[i]


@njit
def fetch_rows(cache, rows, index):
    """Compute those of the rows ``index`` that are not in memory, which holds all of them."""
    for i in index:
        fetch_row(cache, rows, i)


@njit
def add_stored(values, slots, weights, out):
    """Add Σ_k weights_k values[slots_k] to out, four rows in one pass, in their order."""
    k = 0
    while k + 4 <= slots.size:
        K0, K1 = values[slots[k]], values[slots[k + 1]]
        K2, K3 = values[slots[k + 2]], values[slots[k + 3]]
        w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for j in range(out.size):
            out[j] = (((out[j] + w0 * K0[j]) + w1 * K1[j]) + w2 * K2[j]) + w3 * K3[j]
        k += 4
    while k < slots.size:
        add_row(values[slots[k]], weights[k], out)
        k += 1


@njit
def add_part(cache, rows, weights, start, end, out):
    """Run `add_rows` for the rows from ``start`` to ``end``."""
    # Four rows in one pass where none of them drives another out.
    slots, factors, k = np.empty(4, np.int64), np.empty(4), 0
    together = 4 if cache.owner.size >= 4 else 1
    for i in range(start, end):
        if weights[i] != 0:
            slots[k], factors[k] = fetch_row(cache, rows, i), weights[i]
            k += 1
            if k == together:
                add_stored(cache.values, slots[:k], factors[:k], out)
                k = 0
    add_stored(cache.values, slots[:k], factors[:k], out)


@njit
def add_row(row, weight, out):
    """Add weight · row to out."""
    for j in range(out.size):
        out[j] += weight * row[j]


# --- Long work in parts, between which Python answers Ctrl-C --------------------------------------

_WORK = 2**28  # multiplications in one call, some tenths of a second
_TOGETHER = 256  # rows of a matrix, however little work they are: what threads share


def rows_at_once(cache, rows):
    """Return how many kernel rows one compiled call may compute."""
    n = cache.slot.size
    if rows is None:
        return max(1, _WORK // n)
    per_value = rows.XT.shape[0] if rows.indptr.size == 1 else rows.data.size // max(n, 1)
    return max(1, _WORK // (n * (per_value + 1)))


def add_rows(cache, rows, weights, out):
    """Add Σ_i weights_i K_i to out, computing the rows that are not in the cache."""
    index = np.flatnonzero(weights)
    if index.size == 0:
        return
    step = rows_at_once(cache, rows)
    slots = cache.slot[index]
    if rows is None and slots.min() >= 0:  # takes less to compile
        for start in range(0, index.size, step):
            part = slice(start, start + step)
            add_stored(cache.values, slots[part], weights[index[part]], out)
        return
    for start in range(0, weights.size, step):
        add_part(cache, rows, weights, start, min(start + step, weights.size), out)


def fetch_all(cache, rows):
    """Compute the rows that are not in the cache, which has room for all, but for the mean."""
    if rows is None:
        return
    step, size = rows_at_once(cache, rows), cache.slot.size
    if rows.indptr.size > 1:
        for start in range(0, size, step):
            fetch_rows(cache, rows, np.arange(start, min(start + step, size)))
        return
    m = size - min(1, cache.mean.size)
    index = np.flatnonzero(cache.slot < 0)
    index, first = index[index < m], cache.clock[1]

    def block(start):
        dense_kernel_rows(rows, index[start : start + step], first + start, cache.values, m)

    step = min(step, _TOGETHER)
    in_threads(block, range(0, index.size, step))
    slots = np.arange(first, first + index.size)
    cache.slot[index], cache.owner[slots] = slots, index
    cache.clock[1] += index.size
    if m < size:
        last = cache.clock[1]
        cache.slot[m], cache.owner[last] = last, m
        cache.clock[1] += 1


# --- The matrix ----------------------------------------------------------------------------------


# Kernel values outside, or whose rounding a tolerance would notice, are kept in double precision.
_RANGE_SINGLE = (1e-25, 1e30)
_LEAST = 2.0**40  # k(x, x), in units of the smallest normal number: it leaves room for shares of it
_TOL_SINGLE = 1e-5  # least tolerance with single precision
_DENSE, _THIN = 2**24, 4  # numbers and rows a column of sparse rows that are taken as dense ones
_ROUNDING = 0.1 / np.finfo(np.float32).eps  # largest kernel value, in units of the tolerance
_TOL_BLOCKS = 1e-3  # where no tolerance is given
_MANY = 2**13  # rows beyond which sums of many kernel rows are computed in blocks


def _stretch(X, rows, kernel):
    """Return the rounding of values that comes from the rows, in units of their own, at least 1.

    Rows near each other and far from 0 lose digits of the difference x − z (rbf and laplacian),
    sparse ones with rbf more, of ‖x‖² + ‖z‖² − 2⟨x, z⟩. Dense ones are centered in ``rows``.
    """
    x = X if sp.issparse(X) else rows.XT.T
    if kernel.name == "laplacian":
        return max(1.0, kernel.gamma * float(abs(x).sum(axis=1).max()))
    if kernel.name == "rbf":
        square = kernel.gamma * float(squared_norms(x).max())
        return max(1.0, square if sp.issparse(X) else np.sqrt(square))
    return 1.0


class Gram:
    """Kernel values of one data set, as a row cache or as the whole matrix.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Rows; the n × n Gram matrix with ``kernel="precomputed"``.
    kernel : Kernel
    megabytes : float, default=1000
        Memory for kernel values; at least two rows are kept in any case.
    storage : {"auto", "full", "rows"}, default="auto"
        ``"full"`` computes the whole matrix at once, ``"rows"`` rows as they are visited.
        ``"auto"`` takes the matrix when it fits and most of its rows will be visited: when it is
        small, or when ``n_solves > 1`` problems share it.
    dtype : {np.float32, np.float64}, default=np.float32
        Precision of the values; sums over them are always accumulated in double precision. Single
        precision becomes double for values that it cannot hold, or not precisely enough for
        ``tol``.
    n_solves : int, default=1
        Number of problems that will be solved with these values.
    mean_weights : ndarray of shape (n,), default=None
        Weights ω with Σω = 1: adds the mean Σ_j ω_j φ(x_j) of the rows in feature space as one
        more point, the last one. Constraints on the mean output need it.
    tol : float, default=np.inf
        Precision that outputs are to have: double precision below 1e-5, and where the rounding of
        single precision, relative to the largest k(x, x), exceeds a tenth of it. With rbf and
        laplacian it is that of the rows where it moves values more: with rows, or groups of them,
        at a distance of hundreds of widths of the kernel. Coefficients, which multiply the
        rounding, are not known here: outputs with a C far above 1 may keep fewer digits.

    Attributes
    ----------
    storage : {"full", "rows"}
        What was chosen.
    diagonal : ndarray of shape (n,) or (n + 1,)
        Values k(x, x), and a tiny number in place of 0.
    rows : KernelRows or None
        What computes the values; None where all are in memory.
    in_blocks : bool
        Whether `among` and `add` compute kernel values in blocks, whatever the cache holds: with
        rbf and more than 8,192 dense rows near enough to each other for ‖x‖² + ‖z‖² − 2⟨x, z⟩.
    null : ndarray of shape (n + 1,) or None
        (ω, −1) with a mean point: a direction v with Kv = 0 and Σv = 0 exactly.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib.gram import Gram
    >>> from s3vm_lib.kernels import Kernel
    >>> gram = Gram(np.array([[1.0], [2.0], [4.0]]), Kernel("linear"))
    >>> gram.storage, gram.diagonal.tolist()
    ('full', [1.0, 4.0, 16.0])
    """

    _SMALL = 1500

    def __init__(
        self, X, kernel, megabytes=1000, storage="auto", dtype=np.float32, n_solves=1,
        mean_weights=None, tol=np.inf,
    ):  # fmt: skip
        n = X.shape[0]
        size = n if mean_weights is None else n + 1
        precomputed = kernel.name == "precomputed"
        diagonal = kernel.diagonal(X)
        if not np.all(np.isfinite(diagonal)):
            raise ValueError(
                f"X is too large for kernel={kernel.name!r}: kernel values overflow; scale the data"
            )
        if precomputed:
            dtype = X.dtype
        else:
            sizes = (diagonal.max(), np.abs(X).max() ** 2, kernel.gamma)
            if min(sizes) < _RANGE_SINGLE[0] or max(sizes) > _RANGE_SINGLE[1]:
                dtype = np.float64
            rows = kernel_rows(X, kernel, dtype)
            if dtype == np.float32 and (
                tol < _TOL_SINGLE or diagonal.max() * _stretch(X, rows, kernel) > _ROUNDING * tol
            ):
                dtype = np.float64
                rows = kernel_rows(X, kernel)
        slots = int(megabytes * 2**20 / (size * np.dtype(dtype).itemsize))
        # The mean of any kernel but the linear one takes the rows of all its points.
        visits_all = mean_weights is not None and kernel.name != "linear"
        if precomputed:
            storage = "full"
        elif storage == "auto":
            most = n <= self._SMALL or n_solves > 1 or visits_all
            storage = "full" if slots >= size and most else "rows"
        self.storage = storage
        slots = size if storage == "full" else min(max(slots, 2), size)
        mean = np.zeros(0 if mean_weights is None else size, dtype)
        if precomputed:
            values = X if mean_weights is None else np.pad(X, (0, 1))
            values = np.require(values, requirements=["C", "W"])  # which the compiled loops require
            self.rows = None
        else:
            values = np.empty((slots, size), dtype)
            self.rows = rows
        self.cache, self._blocks = empty_cache(values, mean), None
        # By n alone, not by memory, which must not change a result.
        if kernel.name == "rbf" and n > _MANY and not sp.issparse(X):
            squares = squared_norms(rows.XT.T)
            far = diagonal.max() * max(1.0, kernel.gamma * float(squares.max()))
            if np.finfo(dtype).eps * far <= 0.1 * min(tol, _TOL_BLOCKS):
                self._blocks = rows, squares
        self.in_blocks = self._blocks is not None
        self._linear = (X, kernel.sigma_f) if kernel.name == "linear" else None
        if precomputed:
            self.cache.slot[:] = self.cache.owner[:] = np.arange(size)
            self.cache.clock[1] = size
        self.null = None
        if mean_weights is not None:
            self.null = np.append(mean_weights, -1.0)
            if storage == "full":
                self._fetch_all()
            mean[:] = self._mean(X, kernel, mean_weights)
            used = self.cache.clock[1]
            values[:used, n] = mean[self.cache.owner[:used]]
            if storage == "full":
                values[self.cache.slot[n]] = mean
            diagonal = np.append(diagonal, mean[n])
        self.diagonal = np.maximum(diagonal, _LEAST * np.finfo(dtype).tiny).astype(dtype)
        if storage == "full":
            self._fetch_all()

    def _fetch_all(self):
        fetch_all(self.cache, self.rows)
        self.rows = None

    def _mean(self, X, kernel, weights):
        """Return kernel values between the mean point and all points, itself included: (n + 1,)."""
        n = weights.size
        if kernel.name == "linear":
            mean = kernel.sigma_f**2 * np.asarray(X @ (X.T @ weights)).ravel()
        elif kernel.name == "precomputed":
            mean = np.asarray(weights @ X, dtype=float)
        elif self.in_blocks:
            mean = np.zeros(n)
            add_symmetric_sums(*self._blocks, weights, mean)
        else:
            mean = np.zeros(n + 1)
            add_rows(self.cache, self.rows, weights, mean)
            mean = mean[:n]
        return np.append(mean, weights @ mean)

    def among(self, index):
        """Return the kernel values between the points ``index``, sorted; where `in_blocks`."""
        mean = self.cache.mean
        m = np.searchsorted(index, self._blocks[1].size)  # the mean point comes last
        K = np.empty((index.size, index.size), self.cache.values.dtype)
        K[:m, :m] = rbf_among(*self._blocks, index[:m])
        if m < index.size:
            K[m] = K[:, m] = mean[index]
        return K

    def add(self, index, weights, out):
        """Add Σ_k weights_k K_k, over the points ``index``, sorted, to out; where `in_blocks`."""
        n, mean = self._blocks[1].size, self.cache.mean
        m = np.searchsorted(index, n)
        add_kernel_sums(*self._blocks, index[:m], weights[:m], out[:n])
        if mean.size:
            out[n] += weights[:m] @ mean[index[:m]].astype(float)
        if m < index.size:
            out += weights[m] * mean

    @cached_property
    def points(self):
        """Points whose products the values are, or None: with a linear kernel, d < n.

        Sparse ones stay so where they are many or have many columns.
        """
        if self._linear is None:
            return None
        X, scale = self._linear
        n, d = X.shape
        if sp.issparse(X) and n * d <= _DENSE and _THIN * d <= n:
            X = X.toarray()
        if d >= n and not sp.issparse(X):
            return None
        if self.null is not None:
            mean = np.atleast_2d(X.T @ self.null[:-1])
            X = sp.vstack([X, mean], format="csr") if sp.issparse(X) else np.vstack([X, mean])
        return X if scale == 1 else scale * X

    def apart(self):
        """Return the same values, all in memory, for a thread of its own."""
        twin, cache = copy.copy(self), self.cache
        twin.cache = cache._replace(stamp=cache.stamp.copy(), clock=cache.clock.copy())
        return twin

    def restrict(self, keep):
        """Return (cache, rows) for the sub-matrix of ``keep``, filled from this cache."""
        top = self.cache
        slots = min(keep.size, max(2, top.values.size // keep.size))
        values = np.empty((slots, keep.size), top.values.dtype)
        mean, points = top.mean[:0], keep
        if top.mean.size and keep[-1] + 1 == top.mean.size:
            mean, points = top.mean[keep], keep[:-1]
        cache = empty_cache(values, mean, top.values, top.slot[keep], keep)
        r = self.rows
        if r is None:
            return cache, None
        if r.indptr.size > 1:
            counts = np.diff(r.indptr)[points]
            indptr = np.r_[0, np.cumsum(counts)]
            take = np.repeat(r.indptr[points] - indptr[:-1], counts) + np.arange(indptr[-1])
            squares = r.squares[points] if r.squares.size else r.squares  # empty for rows far away
            return cache, r._replace(
                squares=squares, data=r.data[take], indices=r.indices[take], indptr=indptr
            )
        return cache, r._replace(XT=np.ascontiguousarray(r.XT[:, points]))


# --- Rows that come and go ------------------------------------------------------------------------

FULL, CACHED, DENSE, SPARSE = range(4)  # kinds of storage; the last two belong to "linear"
_SLACK = 64
_ROWS = 1000  # cached at first; the rows that move may ask for more


class Values(NamedTuple):
    """What the compiled functions see of a `KernelStore`."""

    kind: int
    values: np.ndarray  # (slots, capacity) kernel rows
    slot: np.ndarray  # slot of each row, or −1, (capacity,)
    owner: np.ndarray  # row in each slot of a cache, or −1, (slots,)
    stamp: np.ndarray  # time of last use of each slot, 0 where nothing is in it, (slots,)
    clock: np.ndarray  # the time, and that of the last batch, (2,)
    rows: KernelRows | None  # the data, where rows are computed or the kernel is linear
    X: np.ndarray  # (capacity, d) with kind DENSE, otherwise empty
    diagonal: np.ndarray  # k(x, x), (capacity,)
    total: np.ndarray  # workspace, (d,) with a linear kernel


def append_rows(memory, n, X, spare):
    """Return ``memory`` with the rows X after its first n, which may be None: n = 0.

    Dense rows are written in place where there is room, and into a larger array with ``spare`` more
    rows otherwise, also where ``memory`` is a file that is read only; sparse ones always come as a
    new matrix.
    """
    if sp.issparse(X):
        return X if memory is None else sp.vstack([memory, X], format="csr")
    end = n + X.shape[0]
    if memory is None or end > len(memory) or not memory.flags.writeable:
        old, memory = memory, np.empty((end + spare, X.shape[1]), X.dtype)
        if n:
            memory[:n] = old[:n]
    memory[n:end] = X
    return memory


def write_border(K, kernel, old, new):
    """Write the kernel values of new rows, after those of the old ones, into K."""
    start, end = old.shape[0], old.shape[0] + new.shape[0]
    if start:
        K[start:end, :start] = kernel.gram(new, old)
        K[:start, start:end] = K[start:end, :start].T
    K[start:end, start:end] = kernel.gram(new)


def _larger(part, *shape, fill=0):
    """Return a larger array that begins with ``part``; in a matrix the rest is left as it comes."""
    new = np.empty(shape) if part.ndim == 2 else np.full(shape, fill, part.dtype)
    new[tuple(map(slice, part.shape))] = part
    return new


class KernelStore:
    """Kernel values of a growing set of rows.

    A solution path needs the kernel rows of the points that move and no others. Three ways to
    have them share one interface: the whole matrix ("full"), the rows that are visited ("rows"),
    and with the linear kernel none at all ("linear"), because products with the data cost O(d)
    each.

    Parameters
    ----------
    kernel : Kernel
    storage : {"full", "rows"}, default="rows"
        Keep the whole matrix or the rows that are visited. Of no effect with the linear kernel,
        which keeps X alone. A precomputed kernel is always "full".
    megabytes : float, default=1000
        Memory for kernel values. A full matrix that outgrows it becomes a cache of rows; a cache
        holds at least the rows that move at the same time.
    center : ndarray of shape (d,), default=None
        Subtracted from dense rows, which changes no distance, and no output of a linear model but
        by a constant: centered data keep their digits.

    Attributes
    ----------
    n : int
        Rows held, those that left included until `compact`.
    view : Values
        What the compiled functions work on. Replaced whenever memory grows.
    """

    def __init__(self, kernel, storage="rows", megabytes=1000, center=None):
        self.kernel, self.megabytes, self.center = kernel, float(megabytes), center
        if kernel.name == "precomputed":
            storage = "full"
        self.storage = "linear" if kernel.name == "linear" else storage
        self.n, self.X, self.view = 0, None, None

    @property
    def capacity(self):
        """Rows for which there is memory."""
        return 0 if self.view is None else self.view.slot.size

    # Rows --------------------------------------------------------------------------------------

    def append(self, X, values=None, room=0):
        """Take in new rows.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (m, d), or None with a precomputed kernel
            Kept in the form of the first rows.
        values : ndarray of shape (m, n + m), default=None
            With a precomputed kernel, the values between the new and all rows.
        room : int, default=0
            Rows to make memory for beyond these.

        Returns
        -------
        ndarray of int, shape (m,)
            Their positions.
        """
        if X is not None and self.X is not None and sp.issparse(X) != sp.issparse(self.X):
            X = X.toarray() if sp.issparse(X) else sp.csr_matrix(X)
        if self.center is not None:
            X = X - self.center
        m = len(values) if X is None else X.shape[0]
        start, end = self.n, self.n + m
        if m == 0 and self.view is not None:
            return np.arange(0)
        if self.view is None or end > self.capacity:
            self._grow(end + max(_SLACK, room, end // 4), X)
        if X is None:
            self.view.values[start:end, :end] = values
            self.view.values[:start, start:end] = values[:, :start].T
            self.view.diagonal[start:end] = np.diagonal(values[:, start:])
        else:
            self._append_data(X, start, end)
        self.n = end
        return np.arange(start, end)

    def _append_data(self, X, start, end):
        """Store the new rows, and their values beside those that are kept."""
        before, self.X = self.X, append_rows(self.X, start, X, self.capacity - end)
        if self.X is not before:
            self._show()
        elif self.view.kind == CACHED:
            self.view.rows.XT[:, start:end] = X.T
        v = self.view
        v.diagonal[start:end] = self.kernel.diagonal(X)
        if v.kind == FULL:
            write_border(v.values, self.kernel, self.X[:start], X)
        elif v.kind == CACHED:
            # Rows that were not used since the last batch would cost time for nothing.
            self._drop((v.owner >= 0) & (v.stamp <= v.clock[1]))
            v.clock[1] = v.clock[0]
            slots = np.flatnonzero(v.owner >= 0)
            if slots.size:
                block = self.kernel.gram(self.X[v.owner[slots]], X)
                v.values[slots, start:end] = block

    def _drop(self, slots):
        """Free the marked slots of a cache: they are the next to be taken."""
        v = self.view
        v.slot[v.owner[slots]] = -1
        v.owner[slots], v.stamp[slots] = -1, 0

    def _show(self):
        """Put data in new memory before the compiled functions, which read arrays."""
        v, X = self.view, self.X
        if v.kind == DENSE:
            self.view = v._replace(X=X)
        elif v.kind != FULL and sp.issparse(X):
            self.view = v._replace(rows=kernel_rows(X, self.kernel))
        elif v.kind == CACHED:
            self.view = v._replace(rows=v.rows._replace(XT=np.ascontiguousarray(X.T)))

    def gram(self, left, right):
        """Return the kernel values between the rows ``left`` and ``right``, ridge not included."""
        if self.view.kind == FULL:  # the lower triangle: rounding makes the two of a batch differ
            left = np.asarray(left)[:, None]
            return self.view.values[np.maximum(left, right), np.minimum(left, right)]
        return self.kernel.gram(self.X[left], self.X[right])

    def smo_gram(self, rows, **options):
        """Return the kernel values between ``rows``, in the form that `solve_smo` takes."""
        if self.kernel.name == "precomputed":
            return Gram(self.gram(rows, rows), self.kernel)
        return Gram(self.X[rows], self.kernel, self.megabytes, **options)

    # Memory ------------------------------------------------------------------------------------

    def _empty(self, X):
        """Return the memory for no row, of the kind that rows like X need."""
        linear = SPARSE if sp.issparse(X) else DENSE
        kind = {"full": FULL, "rows": CACHED, "linear": linear}[self.storage]
        rows = None if kind == FULL else kernel_rows(np.zeros((1, 0)), self.kernel)  # no data yet
        none, index = np.empty((0, 0)), np.empty(0, np.int64)
        total = np.zeros(X.shape[1] if kind >= DENSE else 0)
        return Values(
            kind, none, index, index, index, np.zeros(2, np.int64), rows, none, np.empty(0), total
        )

    def _grow(self, capacity, X=None, slots=0):
        """Make memory for ``capacity`` rows, in a cache with ``slots`` kernel rows at least."""
        v = self._empty(X) if self.view is None else self.view
        large = 8 * capacity**2 > self.megabytes * 2**20 and self.kernel.name != "precomputed"
        if v.kind == FULL and large:  # what moves is computed again
            self.storage = "rows"
            v = self._empty(X)._replace(diagonal=v.diagonal)
        kept, slot, values = np.flatnonzero(v.owner >= 0), np.full(capacity, -1), v.values
        if v.kind == FULL:
            slots, slot = capacity, np.arange(capacity)
        elif v.kind == CACHED:  # a row takes more memory now, and there may be room for fewer
            fit = min(int(self.megabytes * 2**20 / (8 * capacity)), _ROWS)
            slots = max(slots, min(capacity, max(_SLACK, fit)), kept.size)
            slot[v.owner[kept]], values = np.arange(kept.size), values[kept]
        self.view = v._replace(
            values=_larger(values, slots, capacity), slot=slot,
            owner=_larger(v.owner[kept], slots, fill=-1), stamp=_larger(v.stamp[kept], slots),
            diagonal=_larger(v.diagonal, capacity),
        )  # fmt: skip

    def more_slots(self):
        """Make room for twice as many rows in the cache."""
        self._grow(self.capacity, slots=2 * self.view.owner.size)

    def compact(self, keep):
        """Drop all rows but ``keep`` (sorted positions), which take the positions 0, 1, …"""
        v, k = self.view, keep.size
        v.diagonal[:k] = v.diagonal[keep]
        if v.kind == FULL:
            for start in range(0, k, 256):  # upwards, so that nothing is overwritten before use
                part = keep[start : start + 256]
                v.values[start : start + part.size, :k] = v.values[np.ix_(part, keep)]
        elif v.kind == CACHED:
            place = np.full(v.slot.size, -1)
            place[keep] = np.arange(k)
            self._drop((v.owner >= 0) & (place[v.owner] < 0))
            used = np.flatnonzero(v.owner >= 0)
            v.owner[used], v.slot[:] = place[v.owner[used]], -1
            v.slot[v.owner[used]] = used
            v.values[used, :k] = v.values[np.ix_(used, keep)]
        self.n = k
        if sp.issparse(self.X):
            self.X = self.X[keep]
        elif self.X is not None:
            self.X[:k] = self.X[keep]
        self._show()

    def save(self):
        """Return what `append` changes; rows are only ever added, so this costs nothing."""
        return self.n, self.X, self.view, self.storage

    def load(self, saved):
        """Restore what was saved."""
        self.n, self.X, self.view, self.storage = saved
        if self.view is not None and self.view.kind == CACHED:
            self._drop(self.view.owner >= 0)

    def __getstate__(self):
        """Return data without spare memory; kernel values only where they cannot be computed."""
        n, state = self.n, self.__dict__ | {"view": None, "values": None}
        if self.kernel.name == "precomputed" and self.view is not None:
            state["values"] = self.view.values[:n, :n].copy()
        if isinstance(self.X, np.ndarray):
            state["X"] = self.X[:n].copy()
        return state

    def __setstate__(self, state):
        X, values, center = state["X"], state.pop("values"), state["center"]
        self.__dict__.update(state, n=0, X=None, center=None)
        if X is not None or values is not None:
            self.append(X, values)
        self.center = center
