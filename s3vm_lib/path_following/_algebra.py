"""Sums over kernel values of a `KernelStore`, and the Cholesky factor of the margin block.

The factor is that of RᵀR = K_MM + ρI + σ11ᵀ, with one point more or less in O(m²).
The KKT system of the margin set is bordered, [0 1ᵀ; 1 K_MM + ρI], and indefinite. Along every
direction Σ_M β is given, so that σ11ᵀβ is known: with the shift σ the block is positive definite,
at once better conditioned, and one factor serves both unknowns. R is upper triangular in row-major
order, so that all loops run along its rows.
"""

import numpy as np
from scipy.linalg.lapack import dtrtrs

from s3vm_lib.gram import CACHED, DENSE
from s3vm_lib.kernels import dot
from s3vm_lib.utils.jit import njit

INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called by compiled code alone


# To assign to a part of an array, and ``+=`` on one, take many times as long to compile as a loop.
# Where the whole matrix is kept, ``rows`` is None, and nothing that reads them is compiled.


@njit(**INNER)
def weighted_row(v, rows, index, weights, k):
    """Write total = σ_f² Σ_a weights_a x_a over the first k of ``index`` (linear kernel)."""
    if rows is not None:
        total, variance = v.total, rows.parameters[3]
        for j in range(total.size):
            total[j] = 0.0
        for a in range(k):
            w, i = weights[a] * variance, index[a]
            # A row without a weight need not be read.
            if w == 0:
                continue
            if v.kind == DENSE:
                x = v.X[i]
                for j in range(total.size):
                    total[j] += w * x[j]
            else:
                # CSR rows: the stored entries alone.
                for e in range(rows.indptr[i], rows.indptr[i + 1]):
                    total[rows.indices[e]] += w * rows.data[e]


@njit(**INNER)
def product(v, rows, i):
    """Return ⟨total, x_i⟩."""
    result = 0.0
    if rows is not None:
        if v.kind == DENSE:
            return dot(v.X[i], v.total)
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            result += v.total[rows.indices[e]] * rows.data[e]
    return result


@njit(**INNER)
def add_products(v, rows, n, out):
    """Add ⟨total, x_j⟩ to out_j for all j < n."""
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
    """Write out_t = Σ_a weights_a K[index_a, target_t] for k indices and m targets.

    Rows of ``index`` must be in memory, or those of the targets where ``of_targets`` is true;
    With ``again`` the weights are those of the last call.
    """
    # Linear kernel: one vector of features stands for the whole sum.
    if v.kind >= DENSE:
        if not again:
            weighted_row(v, v.rows, index, weights, k)
        for t in range(m):
            out[t] = product(v, v.rows, targets[t])
    elif of_targets:
        for t in range(m):
            # Kernel rows of the targets; two sums need not wait for each other.
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
        # Kernel rows of the indices, each added to all targets.
        for t in range(m):
            out[t] = 0.0
        for a in range(k):
            w, row = weights[a], v.values[v.slot[index[a]]]
            for t in range(m):
                out[t] += w * row[targets[t]]


@njit(**INNER)
def combine_all(v, index, weights, k, n, out, again=False):
    """Add Σ_a weights_a K[index_a, j] to out_j for all j < n."""
    if v.kind >= DENSE:
        if not again:
            weighted_row(v, v.rows, index, weights, k)
        add_products(v, v.rows, n, out)
        return
    # Blocks of columns stay in the cache while four rows at a time are added to them.
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
    """Run `combine` by way of all n columns where they are many: whole rows are read faster."""
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
    """Return what `combine` finds by the rows of the targets."""
    out = np.empty(targets.size)
    combine(v, index, weights, index.size, targets, targets.size, out, True, False)
    return out


@njit
def feature_weights(v, index, weights):
    """Return w = σ_f² Σ_a weights_a x_index_a, with the linear kernel."""
    weighted_row(v, v.rows, index, weights, index.size)
    return v.total.copy()


def outputs(store, index, weights, targets):
    """Return Σ_a weights_a k(x_index_a, ·) at ``targets``; no row has to be in memory."""
    if store.view.kind != CACHED:
        return sums(store.view, index, weights, targets)
    # Kernel values that are not in memory are computed in blocks, and not kept.
    total = np.zeros(targets.size)
    for start in range(0, index.size, 1024):
        part = slice(start, start + 1024)
        total += store.gram(targets, index[part]) @ weights[part]
    return total


# --- The factor of the margin block ---------------------------------------------------------------

# Loops over whole views: the compiler does not vectorize those that have bounds of their own.


@njit
def take_off(x, a, row, b, other):
    """Subtract a row + b other from x."""
    for i in range(x.size):
        x[i] -= a * row[i] + b * other[i]


@njit
def rotate(row, other, c, s):
    """Rotate two rows in place."""
    for i in range(row.size):
        a, b = row[i], other[i]
        row[i] = c * a + s * b
        other[i] = c * b - s * a


@njit
def forward(R, m, x, y):
    """Solve Rᵀ[x y] = [x y] in place, two right-hand sides at one reading of R, rows by pairs."""
    for j in range(0, m - 1, 2):
        # The 2 × 2 triangle of both rows, then what they take off the rest.
        p, q, c = R[j, j], R[j + 1, j + 1], R[j, j + 1]
        x0, y0 = x[j] / p, y[j] / p
        x1, y1 = (x[j + 1] - x0 * c) / q, (y[j + 1] - y0 * c) / q
        x[j], x[j + 1], y[j], y[j + 1] = x0, x1, y0, y1
        first, second = R[j, j + 2 : m], R[j + 1, j + 2 : m]
        take_off(x[j + 2 : m], x0, first, x1, second)
        take_off(y[j + 2 : m], y0, first, y1, second)
    if m % 2 == 1:
        x[m - 1] /= R[m - 1, m - 1]
        y[m - 1] /= R[m - 1, m - 1]


def triangular(R, m, b, trans=0):
    """Return R⁻ᵀb, or R⁻¹b with ``trans=1``, by LAPACK; ``b`` (columns) is overwritten."""
    return dtrtrs(R[:m].T, b, lower=1, trans=trans, overwrite_b=1)[0]


@njit
def backward(R, m, x):
    """Overwrite x by R⁻¹x."""
    for j in range(m - 1, -1, -1):
        x[j] = (x[j] - dot(R[j, j + 1 : m], x[j + 1 : m])) / R[j, j]


@njit
def solve_bordered(R, m, sigma, r0, beta, ones):
    """Solve Σβ = r0 and (K_MM + ρI)β + δ1 = r; returns δ.

    With p = R⁻ᵀ(r + σr0 1) and q = R⁻ᵀ1 the first equation gives δ = (pᵀq − r0)/qᵀq, and
    β = R⁻¹(p − δq). ``beta`` holds r on entry and the solution on return, ``ones`` is workspace;
    both have at least m entries.
    """
    # σ11ᵀβ = σr0 1 is known, and moves to the right-hand side.
    for j in range(m):
        beta[j] += sigma * r0
        ones[j] = 1.0
    forward(R, m, beta, ones)
    # The first equation, solved for δ.
    top, bottom = -r0, 0.0
    for j in range(m):
        top += beta[j] * ones[j]
        bottom += ones[j] * ones[j]
    delta = top / bottom
    for j in range(m):
        beta[j] -= delta * ones[j]
    backward(R, m, beta)
    return delta


@njit
def append(R, m, column, diagonal, least):
    """Add a point: ``column`` holds its m shifted values and is overwritten.

    Returns False when its pivot was below ``least`` and was raised to it: K is not positive
    semi-definite, or the ridge is lost in rounding.
    """
    # The new column of R solves Rᵀr = column; what is left of the diagonal is the pivot.
    pivot = diagonal
    for j in range(0, m - 1, 2):
        a = column[j] / R[j, j]
        b = (column[j + 1] - a * R[j, j + 1]) / R[j + 1, j + 1]
        pivot -= a * a + b * b
        take_off(column[j + 2 : m], a, R[j, j + 2 : m], b, R[j + 1, j + 2 : m])
        R[j, m], R[j + 1, m] = a, b
    if m % 2 == 1:
        a = column[m - 1] / R[m - 1, m - 1]
        pivot -= a * a
        R[m - 1, m] = a
    good = pivot >= least
    R[m, m] = np.sqrt(pivot if good else least)
    return good


@njit
def delete(R, m, places, w):
    """Remove the points at ``places``, which ascend: their rows wait in ``w`` to be taken up.

    Columns close up, and every row that stays takes up those above it that are gone by rotations.
    ``w`` is workspace for one row of m entries per place.
    """
    gone, size = 0, m - places.size
    for j in range(m):
        k = j - gone  # the new place of row j, or of the next one that stays
        going = gone < places.size and places[gone] == j
        row = w[gone] if going else R[k]
        start, shift = j + 1 if going else j, gone + 1 if going else gone
        if shift == 0:
            start, shift = places[0] + 1, 1
        # Copy what stays of the row over the columns that go.
        while start < m:
            end = places[shift] if shift < places.size else m
            target, source = row[start - shift : end - shift], R[j, start:end]
            for i in range(source.size):
                target[i] = source[i]
            start, shift = end + 1, shift + 1
        if going:
            gone += 1
            continue
        # Rotations take the waiting rows up, so that R is triangular again.
        for q in range(gone):
            x, y = row[k], w[q, k]
            r = np.sqrt(x * x + y * y)
            row[k] = r
            rotate(row[k + 1 : size], w[q, k + 1 : size], x / r, y / r)
