"""Kernel rows in memory, where the one used longest ago makes room for a new one: compiled."""

from typing import NamedTuple

import numpy as np

from s3vm_lib.kernels import dense_kernel_rows, kernel_row
from s3vm_lib.utils.jit import njit
from s3vm_lib.utils.threads import in_threads

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
    """A `RowCache` over the memory ``values``, without a row in it."""
    slots, n = values.shape
    return RowCache(
        values, np.full(n, -1), np.full(slots, -1), np.zeros(slots, np.int64),
        np.zeros(2, np.int64), values[:0] if whole is None else whole, whole_slot, columns, mean,
    )  # fmt: skip


@njit(inline="always")
def give_slot(cache, s, i):
    """Slot s to row i, away from the row that had it.

    ``cache`` is a `RowCache` or the `Values` of a `KernelStore`.
    """
    if cache.owner[s] >= 0:
        cache.slot[cache.owner[s]] = -1
    cache.slot[i], cache.owner[s] = s, i


@njit
def oldest(stamp):
    """The slot used longest ago, the first of them: what `np.argmin` takes longer to compile."""
    s = 0
    for k in range(1, stamp.size):
        if stamp[k] < stamp[s]:
            s = k
    return s


@njit
def compute_row(cache, rows, i):
    """Have row i of the kernel, which is not there, in memory.

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
    """Slot that holds row i of the kernel, computing the row if it is not there."""
    if cache.slot[i] < 0:
        compute_row(cache, rows, i)
    return used_slot(cache.slot, cache.stamp, cache.clock, i)


@njit
def used_slot(slot, stamp, clock, i):
    """Slot that holds row i, which is there, and was last used now.

    Inner loops ask for it themselves: to hand a whole cache on counts the references to all of
    its arrays.
    """
    clock[0] += 1
    stamp[slot[i]] = clock[0]
    return slot[i]


@njit
def fetch_rows(cache, rows, index):
    """Have the rows ``index`` in memory, which has room for all of them."""
    for i in index:
        fetch_row(cache, rows, i)


@njit
def add_stored(values, slots, weights, out):
    """out += Σ_k weights_k values[slots_k], four rows in one pass, added in their order."""
    k = 0
    while k + 4 <= slots.size:
        K0, K1, K2, K3 = (
            values[slots[k]],
            values[slots[k + 1]],
            values[slots[k + 2]],
            values[slots[k + 3]],
        )
        w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for j in range(out.size):
            out[j] = (((out[j] + w0 * K0[j]) + w1 * K1[j]) + w2 * K2[j]) + w3 * K3[j]
        k += 4
    while k < slots.size:
        add_row(values[slots[k]], weights[k], out)
        k += 1


@njit
def add_part(cache, rows, weights, start, end, out):
    """`add_rows` for the rows from ``start`` to ``end``."""
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
    """out += weight · row."""
    for j in range(out.size):
        out[j] += weight * row[j]


# --- Long work in parts, between which Python answers Ctrl-C --------------------------------------

_WORK = 2**28  # multiplications in one call, some tenths of a second
_TOGETHER = 256  # rows of a matrix, however little work they are: what threads share


def rows_at_once(cache, rows):
    """How many kernel rows one compiled call may compute."""
    n = cache.slot.size
    if rows is None:
        return max(1, _WORK // n)
    per_value = rows.XT.shape[0] if rows.indptr.size == 1 else rows.data.size // max(n, 1)
    return max(1, _WORK // (n * (per_value + 1)))


def add_rows(cache, rows, weights, out):
    """out += Σ_i weights_i K_i, computing the rows that are not in the cache."""
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
