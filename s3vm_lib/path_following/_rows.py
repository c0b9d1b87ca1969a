"""Kernel values of rows that come and go: a stored matrix, a cache of rows, or X itself.

The path needs the kernel rows of the points that move, those of the margin set and of the set A,
and of nobody else. Three ways to have them share one interface: the whole matrix ("full"), the
rows that are visited ("rows"), and with the linear kernel none at all ("linear"), because products
with the data cost O(d) each.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from s3vm_lib._numba import njit
from s3vm_lib.kernels import KernelRows, kernel_row, kernel_rows
from s3vm_lib.smo import Gram

FULL, CACHED, DENSE, SPARSE = range(4)  # kinds of storage; the last two belong to "linear"
INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called by compiled code alone
_SLACK = 64
_ROWS = 1000  # cached at first; the rows that move may ask for more


class Values(NamedTuple):
    """What the compiled functions see of a `KernelStore`."""

    kind: int
    values: np.ndarray  # (slots, capacity) kernel rows
    slot: np.ndarray  # slot of each row, or −1, (capacity,)
    owner: np.ndarray  # row in each slot, or −1, (slots,)
    stamp: np.ndarray  # time of last use, or with kind FULL how many columns are filled, (slots,)
    clock: np.ndarray  # (3,): the time, rows computed so far, the time of the last batch
    rows: KernelRows  # the data, where rows are computed or the kernel is linear
    X: np.ndarray  # (capacity, d) with kind DENSE, otherwise empty
    diagonal: np.ndarray  # k(x, x), (capacity,)
    total: np.ndarray  # workspace, (d,) with a linear kernel


@njit(**INNER, fastmath={"contract", "reassoc"})
def dot(x, y):
    """⟨x, y⟩, without the call that BLAS costs; in several sums, as BLAS has it, too."""
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


# --- Sums over kernel values ----------------------------------------------------------------------


@njit(**INNER)
def fill(v, i, n):
    """Complete row i of a full matrix from the rows that came later, which are complete."""
    if v.kind == FULL:
        row = v.values[i]
        for j in range(v.stamp[i], n):
            row[j] = v.values[j, i]
        v.stamp[i] = n


@njit(**INNER)
def fetch(v, i, n, x):
    """Have kernel row i in memory; False when every slot holds the row of a sample in T."""
    fill(v, i, n)
    if v.kind != CACHED:
        return True
    v.clock[0] += 1
    if v.slot[i] < 0:
        best = -1
        for s in range(v.owner.size):
            if v.owner[s] < 0:
                best = s
                break
            if x[v.owner[s]].touched == 0 and (best < 0 or v.stamp[s] < v.stamp[best]):
                best = s
        if best < 0:
            return False
        if v.owner[best] >= 0:
            v.slot[v.owner[best]] = -1
        kernel_row(v.rows, i, v.values[best, :n], np.empty(n, np.int32))
        v.slot[i], v.owner[best] = best, i
        v.clock[1] += 1
    v.stamp[v.slot[i]] = v.clock[0]
    return True


@njit(**INNER)
def weighted_row(v, index, weights, k):
    """total = Σ_a weights_a x_a over the first k of ``index``, times σ_f², with a linear kernel."""
    v.total[:] = 0.0
    for a in range(k):
        w, i = weights[a] * v.rows.parameters[3], index[a]
        if w == 0:
            continue
        if v.kind == DENSE:
            x = v.X[i]
            for j in range(v.total.size):
                v.total[j] += w * x[j]
        else:
            for e in range(v.rows.indptr[i], v.rows.indptr[i + 1]):
                v.total[v.rows.indices[e]] += w * v.rows.data[e]


@njit(**INNER)
def product(v, i):
    """⟨total, x_i⟩."""
    result = 0.0
    if v.kind == DENSE:
        return dot(v.X[i], v.total)
    for e in range(v.rows.indptr[i], v.rows.indptr[i + 1]):
        result += v.total[v.rows.indices[e]] * v.rows.data[e]
    return result


@njit(**INNER)
def combine(v, index, weights, k, targets, m, out, of_targets, again=False):
    """out_t = Σ_a weights_a K[index_a, target_t] for the first k indices and m targets.

    Rows of ``index`` must be in memory, or those of the targets where ``of_targets`` is true;
    ``again`` says that the weights are those of the last call.
    """
    if v.kind >= DENSE:
        if not again:
            weighted_row(v, index, weights, k)
        for t in range(m):
            out[t] = product(v, targets[t])
    elif of_targets:
        for t in range(m):
            row = v.values[v.slot[targets[t]]]
            a, b = 0.0, 0.0
            j = 0
            while j + 2 <= k:
                a += weights[j] * row[index[j]]
                b += weights[j + 1] * row[index[j + 1]]
                j += 2
            if j < k:
                a += weights[j] * row[index[j]]
            out[t] = a + b
    else:
        out[:m] = 0.0
        for a in range(k):
            w, row = weights[a], v.values[v.slot[index[a]]]
            for t in range(m):
                out[t] += w * row[targets[t]]


@njit(**INNER)
def combine_all(v, index, weights, k, n, out, again=False):
    """out_j += Σ_a weights_a K[index_a, j] for all j < n."""
    if v.kind >= DENSE:
        if not again:
            weighted_row(v, index, weights, k)
        if v.kind == DENSE:
            out[:n] += np.dot(v.X[:n], v.total)
            return
        for j in range(n):
            out[j] += product(v, j)
        return
    for start in range(0, n, 1024):
        end = min(n, start + 1024)
        block = out[start:end]
        a = 0
        while a + 4 <= k:
            w0, w1, w2, w3 = weights[a], weights[a + 1], weights[a + 2], weights[a + 3]
            r0 = v.values[v.slot[index[a]], start:end]
            r1 = v.values[v.slot[index[a + 1]], start:end]
            r2 = v.values[v.slot[index[a + 2]], start:end]
            r3 = v.values[v.slot[index[a + 3]], start:end]
            for j in range(end - start):
                block[j] += (w0 * r0[j] + w1 * r1[j]) + (w2 * r2[j] + w3 * r3[j])
            a += 4
        while a < k:
            w, row = weights[a], v.values[v.slot[index[a]], start:end]
            for j in range(end - start):
                block[j] += w * row[j]
            a += 1


@njit(**INNER)
def gather(v, index, weights, k, targets, m, n, out, all_of_them, again=False):
    """`combine`, by way of all n columns where they are many: whole kernel rows are read faster."""
    if 8 * m < n or v.kind >= DENSE:
        combine(v, index, weights, k, targets, m, out, False, again)
        return
    all_of_them[:n] = 0.0
    combine_all(v, index, weights, k, n, all_of_them, again)
    for t in range(m):
        out[t] = all_of_them[targets[t]]


@njit
def sums(v, index, weights, targets, n):
    """`combine` by the rows of the targets."""
    out = np.empty(targets.size)
    for i in targets:
        fill(v, i, n)
    combine(v, index, weights, index.size, targets, targets.size, out, True)
    return out


@njit
def feature_weights(v, index, weights):
    """`weighted_row`, as an array of its own."""
    weighted_row(v, index, weights, index.size)
    return v.total.copy()


# --- Storage --------------------------------------------------------------------------------------


def _larger(part, *shape, fill=0):
    """A larger array that begins with ``part``; in a matrix the rest is left as it comes."""
    new = np.empty(shape) if part.ndim == 2 else np.full(shape, fill, part.dtype)
    new[tuple(map(slice, part.shape))] = part
    return new


class KernelStore:
    """Kernel values of a growing set of rows.

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
        values : ndarray of shape (m, n + m), default=None
            With a precomputed kernel, the values between the new and all rows.
        room : int, default=0
            Rows to make memory for beyond these.

        Returns
        -------
        ndarray of int, shape (m,)
            Their positions.
        """
        if X is not None and self.center is not None:
            X = X - self.center
        m = len(values) if X is None else X.shape[0]
        start, end = self.n, self.n + m
        if m == 0 and self.view is not None:
            return np.arange(0)
        if end > self.capacity or self.view is None:
            self._grow(end + max(_SLACK, room, end // 4), X)
        if sp.issparse(X):
            self.X = X if self.X is None else sp.vstack([self.X, X], format="csr")
            self._show_csr()
        elif X is not None:
            self.X[start:end] = X
            if self.view.kind == CACHED:
                self.view.rows.XT[:, start:end] = X.T
        self.n = end
        self._append_values(X, values, start, end)
        return np.arange(start, end)

    def _show_csr(self):
        """Sparse rows for the compiled functions, which read arrays."""
        if self.view.kind in (SPARSE, CACHED):
            self.view = self.view._replace(rows=kernel_rows(self.X, self.kernel))

    def _append_values(self, X, values, start, end):
        v = self.view
        if values is not None:
            v.values[start:end, :end] = values
            v.stamp[start:end] = end
            v.diagonal[start:end] = np.diagonal(v.values)[start:end]
            return
        v.diagonal[start:end] = self.kernel.diagonal(X)
        if v.kind == FULL:  # `fill` does the columns of older rows when they are needed
            if start:
                v.values[start:end, :start] = self.kernel.gram(X, self.rows(slice(0, start)))
            v.values[start:end, start:end] = self.kernel.gram(X)
            v.stamp[start:end] = end
        elif v.kind == CACHED:
            # Rows that nobody has asked for since the last batch would cost time for nothing.
            idle = np.flatnonzero((v.owner >= 0) & (v.stamp <= v.clock[2]))
            v.slot[v.owner[idle]], v.owner[idle], v.clock[2] = -1, -1, v.clock[0]
            slots = np.flatnonzero(v.owner >= 0)
            if slots.size:
                block = self.kernel.gram(self.rows(v.owner[slots]), X)
                v.values[slots, start:end] = block

    def rows(self, index):
        """The data of the rows ``index``, centered as they are kept."""
        return self.X[: self.n][index] if isinstance(index, slice) else self.X[index]

    def gram(self, left, right):
        """Kernel values between the rows ``left`` and ``right``, ridge not included."""
        v = self.view
        if v.kind == FULL:
            left = np.asarray(left)[:, None]
            return v.values[np.maximum(left, right), np.minimum(left, right)]
        return self.kernel.gram(self.rows(left), self.rows(right))

    def smo_gram(self, rows, **options):
        """The kernel values between ``rows``, as `solve_smo` wants them."""
        if self.kernel.name == "precomputed":
            return Gram(self.gram(rows, rows), self.kernel)
        return Gram(self.rows(rows), self.kernel, self.megabytes, **options)

    def outputs(self, index, weights, targets):
        """Σ_a weights_a k(x_index_a, ·) at ``targets``."""
        if self.view.kind != CACHED:
            return sums(self.view, index, weights, targets, self.n)
        total = np.zeros(targets.size)
        for start in range(0, index.size, 1024):
            part = slice(start, start + 1024)
            total += self.gram(targets, index[part]) @ weights[part]
        return total

    def feature_weights(self, index, weights):
        """w = σ_f² Σ_a weights_a x_index_a, with the linear kernel."""
        return feature_weights(self.view, index, weights)

    # Memory ------------------------------------------------------------------------------------

    def _empty(self, X):
        """Memory for no row, of the kind that rows like X need."""
        k, d, none = self.kernel, 0 if X is None else X.shape[1], np.empty((0, 0))
        index, linear = np.empty(0, np.int64), SPARSE if sp.issparse(X) else DENSE
        kind = {"full": FULL, "rows": CACHED, "linear": linear}[self.storage]
        rows = KernelRows(
            k.code, np.array([k.gamma, k.degree, k.coef0, k.sigma_f**2], dtype=float), none,
            np.empty(0), np.empty(0), np.empty(0, np.int32), np.zeros(1, np.int64),
        )  # fmt: skip
        total = np.zeros(d if kind >= DENSE else 0)
        clock = np.zeros(3, np.int64)
        return Values(kind, none, index, index, index, clock, rows, none, np.empty(0), total)

    def _grow(self, capacity, X=None, slots=0):
        """Memory for ``capacity`` rows, in a cache with ``slots`` kernel rows at least."""
        if self.view is None:
            self.view = self._empty(X)
            if X is not None and not sp.issparse(X):
                self.X = np.empty((0, X.shape[1]))
        large = 8 * capacity**2 > self.megabytes * 2**20 and self.kernel.name != "precomputed"
        if self.view.kind == FULL and large:  # what moves is computed again
            self.storage = "rows"
            self.view = self._empty(X)._replace(diagonal=self.view.diagonal)
        v, kept = self.view, slice(None)
        if v.kind == CACHED:  # a row takes more memory now, and there may be room for fewer
            kept = np.flatnonzero(v.owner >= 0)
            fit = min(int(self.megabytes * 2**20 / (8 * capacity)), _ROWS)
            slots = max(slots, min(capacity, max(_SLACK, fit)), kept.size)
        slots = {FULL: capacity, CACHED: slots}.get(v.kind, 0)
        owner = np.arange(slots) if v.kind == FULL else _larger(v.owner[kept], slots, fill=-1)
        slot, used = np.full(capacity, -1), np.flatnonzero(owner >= 0)
        slot[owner[used]] = used
        self.view = v = v._replace(
            values=_larger(v.values[kept], slots, capacity), slot=slot, owner=owner,
            stamp=_larger(v.stamp[kept], slots), diagonal=_larger(v.diagonal, capacity),
        )  # fmt: skip
        if isinstance(self.X, np.ndarray):
            self.X = _larger(self.X, capacity, self.X.shape[1])
            if v.kind == CACHED:
                self.view = v._replace(rows=v.rows._replace(XT=np.ascontiguousarray(self.X.T)))
            elif v.kind == DENSE:
                self.view = v._replace(X=self.X)

    def more_slots(self):
        """Room for twice as many rows in the cache."""
        self._grow(self.capacity, slots=2 * self.view.owner.size)

    def compact(self, keep):
        """Drop all rows but ``keep`` (sorted positions), which take the positions 0, 1, …"""
        v, k = self.view, keep.size
        v.diagonal[:k] = v.diagonal[keep]
        if v.kind == FULL:
            for start in range(0, k, 256):  # upwards, so that nothing is overwritten before use
                part = keep[start : start + 256]
                rows = slice(start, start + part.size)
                v.values[rows, :k] = v.values[np.ix_(part, keep)]
                v.stamp[rows] = np.searchsorted(keep, v.stamp[part])
        elif v.kind == CACHED:
            place = np.full(v.slot.size, -1)
            place[keep], v.slot[:] = np.arange(k), -1
            v.owner[:] = np.where(v.owner < 0, -1, place[v.owner])
            used = np.flatnonzero(v.owner >= 0)
            v.slot[v.owner[used]] = used
            v.values[used, :k] = v.values[np.ix_(used, keep)]
        self.n = k
        if self.X is None:
            return
        if sp.issparse(self.X):
            self.X = self.X[keep]
            self._show_csr()
        else:
            self.X[:k] = self.X[keep]
            if v.kind == CACHED:
                v.rows.XT[:, :k] = v.rows.XT[:, keep]

    def save(self):
        """What `append` changes; rows are only ever added, so this costs nothing."""
        return self.n, self.X, self.view, self.storage

    def load(self, saved):
        """Back to what was saved."""
        self.n, self.X, self.view, self.storage = saved
        if self.view is not None and self.view.kind == CACHED:
            self.view.slot[:] = self.view.owner[:] = -1
        elif self.view is not None and self.view.kind == FULL:
            np.minimum(self.view.stamp, self.n, out=self.view.stamp)

    def __getstate__(self):
        """The data without spare memory; kernel values only where they cannot be computed."""
        state = self.__dict__.copy()
        state["view"] = state["values"] = None
        if self.kernel.name == "precomputed" and self.view is not None:
            values = np.tril(self.view.values[: self.n, : self.n])
            state["values"] = values + np.tril(values, -1).T
        if isinstance(self.X, np.ndarray):
            state["X"] = self.X[: self.n].copy()
        return state

    def __setstate__(self, state):
        X, values, center = state["X"], state.pop("values"), state["center"]
        self.__dict__.update(state, n=0, X=None, center=None)
        if X is not None or values is not None:
            self.append(X, values)
        self.center = center
