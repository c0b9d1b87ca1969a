"""Linear kernels: (P) in the weights w = Xᵀβ, without kernel values.

With few columns an interior-point method: one iteration costs one matrix X̃ᵀDX̃, however wide the
bounds are and however alike the columns, and most rows are left out of most of them. With many
columns, most of them zero, coordinate descent: one step costs the entries of one row.
"""

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dpotrf, dpotrs

from s3vm_lib.kernels import squared_norms
from s3vm_lib.smo._iterations import BIG, slope_down, slope_up
from s3vm_lib.utils.jit import njit
from s3vm_lib.utils.random_numbers import hash_key, integer

_PER_COLUMN = 320  # parts of costs a column that are solved for at once
_EIGHTH = 8  # the rows of a first guess are every eighth
_BLOCK = 1024  # rows whose products stay in the cache of the processor
_MOST = 80  # iterations, of which 15 to 25 are needed
_SMALLEST = 1e-15  # complementarity that rounding lets through, in units of the first


def linear_solution(X, costs, beta, tol):
    """Return β near the solution of (P) for K = XXᵀ, perhaps not finite where rounding spoils it.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows; dense ones with d < n.
    costs : Costs
        One variable at most may have no bounds.
    beta : ndarray of shape (n,)
        Where coordinate descent starts.
    tol : float
        Violation of the optimality conditions to aim at.

    Returns
    -------
    ndarray of shape (n,)
        Most bounds and kinks are met exactly, Σβ = 0 up to the tolerance.

    References
    ----------
    M. C. Ferris and T. S. Munson, "Interior-point methods for massive support vector machines",
    SIAM J. Optim. 13 (2002); S. Mehrotra, "On the implementation of a primal-dual interior point
    method", SIAM J. Optim. 2 (1992). C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and
    S. Sundararajan, "A dual coordinate descent method for large-scale linear SVM", ICML 2008.
    """
    if sp.issparse(X):
        return _descent(X, costs, beta.copy(), 0.1 * tol)
    lo, mid, hi, s1, s2 = costs
    unbound = np.flatnonzero(hi - lo >= BIG)
    if unbound.size:  # its output is known, and with it b; Σβ = 0 determines its β
        k = unbound[0]
        rows, shift, ridge = X - X[k], -s1[k], np.ones(X.shape[1])
        lo, mid, hi = (np.where(hi - lo >= BIG, 0.0, part) for part in (lo, mid, hi))
    else:
        rows, shift = np.column_stack([X, np.ones(len(X))]), 0.0
        ridge = np.append(np.ones(X.shape[1]), 0.0)
    # Parts of the costs, each with one slope: z of a part goes from 0 to its width.
    width = np.concatenate([mid - lo, hi - mid])
    at = np.flatnonzero(width > 0)
    width, slope, at = width[at], (np.concatenate([s1, s2]) + shift)[at], at % lo.size
    with np.errstate(all="ignore"):
        z = _parts(rows, ridge, at, width, slope, lo, tol)[0]
    beta = lo + np.bincount(at, z, lo.size)
    if unbound.size:
        beta[k] = -beta.sum()
    return beta


def _parts(rows, ridge, at, width, slope, lo, tol):
    """Return z of all parts, and (w, b), from the parts that a guess by fewer rows leaves open."""
    n, few = len(rows), at.size // _EIGHTH
    if at.size <= _PER_COLUMN * ridge.size:
        return _interior(rows[at], ridge, width, slope, lo @ rows, np.zeros(ridge.size), tol)
    some = np.flatnonzero(at % _EIGHTH == 0)
    sparse = rows[::_EIGHTH]
    factor = n / len(sparse)
    v = _parts(
        sparse, ridge, at[some] // _EIGHTH, factor * width[some], slope[some],
        factor * lo[::_EIGHTH], max(tol, 0.01),
    )[1]  # fmt: skip
    slack, near = (rows @ v)[at] + slope, np.zeros(at.size, dtype=bool)
    few *= 2
    while True:
        up, size = slack < 0, np.abs(slack)
        near |= size <= np.partition(size, few - 1)[few - 1]
        z = np.where(up & ~near, width, 0.0)
        fixed = (lo + np.bincount(at, z, n)) @ rows
        z[near], v = _interior(rows[at[near]], ridge, width[near], slope[near], fixed, v, tol)
        new = (rows @ v)[at] + slope
        wrong = ~near & (np.where(up, -new, new) < -0.25 * tol)
        if not wrong.any():
            return z, v
        if np.sum(wrong) < few // _EIGHTH:
            slack, near, few = new, wrong, max(few // 2, at.size // _EIGHTH)
        else:  # a poor guess, of which more rows are left open
            few = min(2 * few, at.size)


def _interior(A, ridge, width, slope, fixed, v, tol):
    """Return z and v of min ½wᵀw + Σ slope·z for w = Aᵀz + fixed, 0 ≤ z ≤ width; ends are exact."""
    # p and q belong to the bounds z ≥ 0 and y = width − z ≥ 0; v holds w and b.
    m, o = width.size, A @ v
    r = o + slope
    size = np.mean(np.abs(slope))
    z = 0.5 * width
    y = width - z
    p, q = np.maximum(r, 0.0) + size, np.maximum(-r, 0.0) + size
    end = _SMALLEST * size * np.mean(width)
    for _ in range(_MOST):
        mu = (p @ z + q @ y) / (2 * m)
        if not mu > max(end, 1e-3 * tol * tol / m):
            break
        rest = fixed + z @ A - ridge * v
        p_z, q_y = p / z, q / y
        D = 1.0 / (p_z + q_y)
        H = np.diag(ridge)
        for start in range(0, m, _BLOCK):
            part = A[start : start + _BLOCK]
            H += (part * D[start : start + _BLOCK, None]).T @ part
        factor, failed = dpotrf(H, overwrite_a=True)
        if failed:  # rounding
            break
        to_p = to_q = 0.0
        for last in (False, True):
            r = to_p / z - to_q / y - o - slope
            dv = dpotrs(factor, (D * r) @ A + rest)[0]
            do = A @ dv
            dz = D * (r - do)
            dp, dq = to_p / z - p - p_z * dz, to_q / y - q + q_y * dz
            least = min((dz / z).min(), (dp / p).min(), (dq / q).min(), -(dz / y).max())
            step = 1.0 / max(1.0, -least)
            if not last:
                after = (p + step * dp) @ (z + step * dz) + (q + step * dq) @ (y - step * dz)
                target = mu * (after / (2 * m * mu)) ** 3
                to_p, to_q = target - dz * dp, target + dz * dq
        step = step if step == 1.0 else 0.995 * step
        z, y, p, q = z + step * dz, y - step * dz, p + step * dp, q + step * dq
        v, o = v + step * dv, o + step * do
    z[p > 0.25 * tol], z[q > 0.25 * tol] = 0.0, width[q > 0.25 * tol]
    return z, v


# --- Coordinate descent ---------------------------------------------------------------------------

# Indices are unsigned: numba then leaves out the test for negative ones.
_ONE = np.uint32(1)
_SWEEPS = 200
_PENALTY = 0.03  # of (Σβ)², in units of the mean k(x, x)


@njit
def _sweep(data, indices, indptr, squares, c, beta, w, order, active, limits, b, total, rho, key):
    """Visit active rows once in random order; rows at a kink beyond the limits become inactive.

    Returns the number of active rows, the largest and least slope met, and Σβ.
    """
    for k in range(active - 1, 0, -1):
        j = integer(key, k, k + 1)
        order[k], order[j] = order[j], order[k]
    highest, lowest, k = 0.0, 0.0, 0
    while k < active:
        i = order[k]
        start, end = indptr[i], indptr[i + _ONE]
        f, old = b + rho * total, beta[i]
        for e in range(start, end):
            f += data[e] * w[indices[e]]
        rise, fall = f - slope_up(c, i, old), f - slope_down(c, i, old)
        if rise > limits[0] and fall < limits[1]:
            active -= 1
            order[k], order[active] = order[active], i
            continue
        k += 1
        lowest, highest = min(lowest, rise), max(highest, fall)
        new = old
        if rise < 0.0:
            new = min(old - rise / (squares[i] + rho), c.mid[i] if old < c.mid[i] else c.hi[i])
        elif fall > 0.0:
            new = max(old - fall / (squares[i] + rho), c.mid[i] if old > c.mid[i] else c.lo[i])
        step = new - old
        if step != 0.0:
            beta[i] = new
            total += step
            for e in range(start, end):
                w[indices[e]] += step * data[e]
    return active, highest, lowest, total


def _descent(X, costs, beta, tol):
    """Minimize (P) by coordinate descent from β on, updated in place; Σβ = 0 by multipliers."""
    n, unsigned = beta.size, np.dtype(f"u{X.indices.dtype.itemsize}")
    arrays = X.data, X.indices.view(unsigned), X.indptr.view(unsigned), squared_norms(X)
    w, order, active = beta @ X, np.arange(n), n
    mean = max(np.mean(arrays[3]), np.finfo(float).tiny)
    rho = _PENALTY * mean
    b, total, limits = 0.0, float(beta.sum()), (np.inf, -np.inf)
    for sweep in range(_SWEEPS):
        active, highest, lowest, total = _sweep(
            *arrays, costs, beta, w, order, active, limits, b, total, rho, hash_key(0, sweep)
        )
        b += rho * total
        if highest - lowest <= tol and abs(mean * total) <= tol:
            if active == n:
                break
            active, limits = n, (np.inf, -np.inf)
        else:
            limits = highest or np.inf, lowest or -np.inf
    return beta
