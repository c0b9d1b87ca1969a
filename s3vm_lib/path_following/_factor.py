"""Cholesky factor of the margin block: RᵀR = K_MM + ρI + σ11ᵀ, one point more or less in O(m²).

The KKT system of the margin set is bordered, [0 1ᵀ; 1 K_MM + ρI], and indefinite. Along every
direction Σ_M β is given, so that σ11ᵀβ is known: with the shift σ the block is positive definite,
at once better conditioned, and one factor serves both unknowns. R is upper triangular in row-major
order, so that all loops run along its rows.
"""

import numpy as np

from s3vm_lib._numba import njit

_SHORT = 48  # below this a plain loop beats the call of BLAS


@njit
def forward(R, m, x, y):
    """Solve Rᵀ[x y] = [x y] in place, two right-hand sides at one reading of R."""
    for j in range(m):
        row = R[j]
        x[j] /= row[j]
        y[j] /= row[j]
        a, b = x[j], y[j]
        for i in range(j + 1, m):
            x[i] -= a * row[i]
            y[i] -= b * row[i]


@njit
def forward_many(R, m, X):
    """Solve RᵀXᵀ = Xᵀ in place, one right-hand side in each row of X: four rows of R at a time."""
    j = 0
    while j + 4 <= m:
        r0, r1, r2, r3 = R[j], R[j + 1], R[j + 2], R[j + 3]
        for k in range(X.shape[0]):
            x = X[k]
            x[j] /= r0[j]
            x[j + 1] = (x[j + 1] - x[j] * r0[j + 1]) / r1[j + 1]
            x[j + 2] = (x[j + 2] - x[j] * r0[j + 2] - x[j + 1] * r1[j + 2]) / r2[j + 2]
            rest = x[j] * r0[j + 3] + x[j + 1] * r1[j + 3] + x[j + 2] * r2[j + 3]
            x[j + 3] = (x[j + 3] - rest) / r3[j + 3]
            a, b, c, d = x[j], x[j + 1], x[j + 2], x[j + 3]
            for i in range(j + 4, m):
                x[i] -= (a * r0[i] + b * r1[i]) + (c * r2[i] + d * r3[i])
        j += 4
    while j < m:
        for k in range(X.shape[0]):
            X[k, j] /= R[j, j]
            for i in range(j + 1, m):
                X[k, i] -= X[k, j] * R[j, i]
        j += 1


@njit
def backward(R, m, x):
    """Solve Rx = x in place."""
    for j in range(m - 1, -1, -1):
        row, total = R[j], 0.0
        if m - j > _SHORT:
            total = np.dot(row[j + 1 : m], x[j + 1 : m])
        else:
            for i in range(j + 1, m):
                total += row[i] * x[i]
        x[j] = (x[j] - total) / row[j]


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
    for j in range(m):
        row = R[j]
        column[j] /= row[j]
        a = column[j]
        pivot -= a * a
        for i in range(j + 1, m):
            column[i] -= a * row[i]
        row[m] = a
    good = pivot >= least
    R[m, m] = np.sqrt(pivot if good else least)
    return good


@njit
def delete(R, m, p, w):
    """Remove point p: the rows above lose a column, those below take up row p by rotations."""
    for i in range(p + 1, m):
        w[i - 1] = R[p, i]
    for j in range(p):
        row = R[j]
        for i in range(p + 1, m):
            row[i - 1] = row[i]
    for j in range(p, m - 1):
        below, row = R[j + 1], R[j]
        x, y = below[j + 1], w[j]
        r = np.hypot(x, y)
        c, s = x / r, y / r
        row[j] = r
        for i in range(j + 1, m - 1):
            a, b = below[i + 1], w[i]
            row[i] = c * a + s * b
            w[i] = c * b - s * a
