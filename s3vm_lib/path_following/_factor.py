"""Cholesky factor of the margin block: RᵀR = K_MM + ρI + σ11ᵀ, one point more or less in O(m²).

The KKT system of the margin set is bordered, [0 1ᵀ; 1 K_MM + ρI], and indefinite. Along every
direction Σ_M β is given, so that σ11ᵀβ is known: with the shift σ the block is positive definite,
at once better conditioned, and one factor serves both unknowns. R is upper triangular in row-major
order, so that all loops run along its rows.
"""

import numpy as np
from scipy.linalg.lapack import dtrtrs

from s3vm_lib.path_following._sums import dot
from s3vm_lib.utils.jit import njit

# Loops over whole views: the compiler does not vectorize those that have bounds of their own.


@njit
def take_off(x, a, row, b, other):
    """x −= a row + b other."""
    for i in range(x.size):
        x[i] -= a * row[i] + b * other[i]


@njit
def rotate(row, other, c, s):
    """One rotation of two rows, in place."""
    for i in range(row.size):
        a, b = row[i], other[i]
        row[i] = c * a + s * b
        other[i] = c * b - s * a


@njit
def forward(R, m, x, y):
    """Solve Rᵀ[x y] = [x y] in place, two right-hand sides at one reading of R, rows by pairs."""
    for j in range(0, m - 1, 2):
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
    """R⁻ᵀb, or R⁻¹b with ``trans=1``, by LAPACK; ``b`` is in column-major order and overwritten."""
    return dtrtrs(R[:m].T, b, lower=1, trans=trans, overwrite_b=1)[0]


@njit
def backward(R, m, x):
    """Solve Rx = x in place."""
    for j in range(m - 1, -1, -1):
        x[j] = (x[j] - dot(R[j, j + 1 : m], x[j + 1 : m])) / R[j, j]


@njit
def solve_bordered(R, m, sigma, r0, beta, ones):
    """Solve Σβ = r0 and (K_MM + ρI)β + δ1 = r; returns δ.

    With p = R⁻ᵀ(r + σr0 1) and q = R⁻ᵀ1 the first equation gives δ = (pᵀq − r0)/qᵀq, and
    β = R⁻¹(p − δq). ``beta`` holds r on entry and the solution on return, ``ones`` is workspace;
    both have at least m entries.
    """
    for j in range(m):
        beta[j] += sigma * r0
        ones[j] = 1.0
    forward(R, m, beta, ones)
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
        while start < m:
            end = places[shift] if shift < places.size else m
            target, source = row[start - shift : end - shift], R[j, start:end]
            for i in range(source.size):
                target[i] = source[i]
            start, shift = end + 1, shift + 1
        if going:
            gone += 1
            continue
        for q in range(gone):
            x, y = row[k], w[q, k]
            r = np.sqrt(x * x + y * y)
            row[k] = r
            rotate(row[k + 1 : size], w[q, k + 1 : size], x / r, y / r)
