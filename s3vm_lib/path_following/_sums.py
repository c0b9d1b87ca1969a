"""What the path computes with kernel values: sums over rows of a `KernelStore`."""

import numpy as np

from s3vm_lib.gram import CACHED, DENSE
from s3vm_lib.utils.jit import njit

INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called by compiled code alone


@njit(**INNER, fastmath={"contract", "reassoc"})
def dot(x, y):
    """⟨x, y⟩, without the call that BLAS costs; in several sums, as BLAS has it, too."""
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


# To assign to a part of an array, and ``+=`` on one, take many times as long to compile as a loop.
# Where the whole matrix is kept, ``rows`` is None, and nothing that reads them is compiled.


@njit(**INNER)
def weighted_row(v, rows, index, weights, k):
    """total = Σ_a weights_a x_a over the first k of ``index``, times σ_f², with a linear kernel."""
    if rows is not None:
        total, variance = v.total, rows.parameters[3]
        for j in range(total.size):
            total[j] = 0.0
        for a in range(k):
            w, i = weights[a] * variance, index[a]
            if w == 0:
                continue
            if v.kind == DENSE:
                x = v.X[i]
                for j in range(total.size):
                    total[j] += w * x[j]
            else:
                for e in range(rows.indptr[i], rows.indptr[i + 1]):
                    total[rows.indices[e]] += w * rows.data[e]


@njit(**INNER)
def product(v, rows, i):
    """⟨total, x_i⟩."""
    result = 0.0
    if rows is not None:
        if v.kind == DENSE:
            return dot(v.X[i], v.total)
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            result += v.total[rows.indices[e]] * rows.data[e]
    return result


@njit(**INNER)
def add_products(v, rows, n, out):
    """out_j += ⟨total, x_j⟩ for all j < n."""
    if rows is not None:
        if v.kind == DENSE:
            part = np.dot(v.X[:n], v.total)
            for j in range(n):
                out[j] += part[j]
        else:
            for j in range(n):
                out[j] += product(v, rows, j)


@njit(**INNER)
def combine(v, index, weights, k, targets, m, out, of_targets, again=False):
    """out_t = Σ_a weights_a K[index_a, target_t] for the first k indices and m targets.

    Rows of ``index`` must be in memory, or those of the targets where ``of_targets`` is true;
    ``again`` says that the weights are those of the last call.
    """
    if v.kind >= DENSE:
        if not again:
            weighted_row(v, v.rows, index, weights, k)
        for t in range(m):
            out[t] = product(v, v.rows, targets[t])
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
        for t in range(m):
            out[t] = 0.0
        for a in range(k):
            w, row = weights[a], v.values[v.slot[index[a]]]
            for t in range(m):
                out[t] += w * row[targets[t]]


@njit(**INNER)
def combine_all(v, index, weights, k, n, out, again=False):
    """out_j += Σ_a weights_a K[index_a, j] for all j < n."""
    if v.kind >= DENSE:
        if not again:
            weighted_row(v, v.rows, index, weights, k)
        add_products(v, v.rows, n, out)
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
    for j in range(n):
        all_of_them[j] = 0.0
    combine_all(v, index, weights, k, n, all_of_them, again)
    for t in range(m):
        out[t] = all_of_them[targets[t]]


@njit
def sums(v, index, weights, targets):
    """`combine` by the rows of the targets."""
    out = np.empty(targets.size)
    combine(v, index, weights, index.size, targets, targets.size, out, True, False)
    return out


@njit
def feature_weights(v, index, weights):
    """w = σ_f² Σ_a weights_a x_index_a, with the linear kernel."""
    weighted_row(v, v.rows, index, weights, index.size)
    return v.total.copy()


def outputs(store, index, weights, targets):
    """Σ_a weights_a k(x_index_a, ·) at ``targets``; no row has to be in memory."""
    if store.view.kind != CACHED:
        return sums(store.view, index, weights, targets)
    total = np.zeros(targets.size)
    for start in range(0, index.size, 1024):
        part = slice(start, start + 1024)
        total += store.gram(targets, index[part]) @ weights[part]
    return total
