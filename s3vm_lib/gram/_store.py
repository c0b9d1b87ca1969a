"""Kernel values of rows that come and go: a stored matrix, a cache of rows, or X itself."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from s3vm_lib.gram._matrix import Gram
from s3vm_lib.kernels import KernelRows, kernel_rows

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
        """Forget what the marked slots of a cache hold: they are the next to be taken."""
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
