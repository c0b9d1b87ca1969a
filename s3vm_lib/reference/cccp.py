"""CCCP for S3VMs in plain NumPy: the twin of `s3vm_lib.cccp.solve_cccp` on a whole Gram matrix.

Numbers in comments are the lines of the algorithm in the chapter on CCCP. Rows of weight 1, and
always with the balance constraint.
"""

import numpy as np

from s3vm_lib.reference.smo import solve_smo
from s3vm_lib.smo import BIG, Costs


def with_mean_point(K, U):
    """Return the Gram matrix of the rows and, last, of the mean of the rows U in feature space."""
    m = U / U.sum()
    return np.block([[K, (K @ m)[:, None]], [(m @ K)[None, :], np.array([[m @ K @ m]])]])


def inner_costs(t, C, C_star, delta, mean_output):
    """Return the costs of the rows: hinges, |β − δ| for unlabeled rows, a line for the mean."""
    lo = np.append(np.where(t == 0, delta - C_star, np.minimum(C * t, 0)), -BIG)
    hi = np.append(np.where(t == 0, delta + C_star, np.maximum(C * t, 0)), BIG)
    mid = np.append(np.where(t == 0, delta, hi[:-1]), BIG)
    slopes = (np.append(np.where(t == 0, sign, -t), -mean_output) for sign in (-1.0, 1.0))
    return Costs(lo, mid, hi, *slopes)


def line_step(beta, costs, U, mean_output):
    """Minimize exactly along (1/u on U, −1 on the mean point), which leaves Kβ as it is."""
    u = U.sum()
    lo, mid, hi = (u * (part - beta)[:-1][U] for part in costs[:3])
    # Slope mean_output + (2 · number of kinks passed − u) / u: where does it turn positive?
    passed = int(np.ceil(u * (1 - mean_output) / 2 - 1e-9))
    step = np.clip(np.sort(mid)[min(max(passed, 1), u) - 1], lo.max(), hi.min())
    return beta + step * np.append(U / u, -1.0)


def objective(K, beta, f, t, C, C_star, s):
    """Return J at f = Kβ + b."""
    ramps = [np.minimum(1 - s, np.maximum(0, 1 - z)) for z in (f[t == 0], -f[t == 0])]
    hinges = np.maximum(0, 1 - t * f) @ (t != 0)
    return 0.5 * beta @ K @ beta + C * hinges + C_star * np.sum(ramps)


def fit(K, t, C, C_star, ratio, s=-0.3, tol=1e-3, max_iter=100):
    """Return coefficients, offset, outputs and the values of J, one per convex problem."""
    U, target, values = t == 0, 2 * ratio - 1, []
    Kt, beta, delta = with_mean_point(K, U), np.zeros(len(t) + 1), 0.0 * t  # 1
    for k in range(max_iter):
        costs = inner_costs(t, C, C_star if k else 0.0, delta, target)  # 2
        beta = np.clip(beta, costs.lo, costs.hi)  # 3
        beta[-1] = -beta[:-1].sum()
        beta = line_step(beta, costs, U, target)  # 4
        beta = solve_smo(Kt, costs, beta, tol)[0]  # 5
        F = Kt @ beta
        f = F[:-1] + target - F[-1]  # 6
        c = beta[:-1] + beta[-1] * U / U.sum()
        values.append(objective(K, c, f, t, C, C_star, s))
        new = C_star * U * (1.0 * (f > abs(s)) - 1.0 * (f < -abs(s)))  # 7
        if k and np.array_equal(new, delta):  # 8
            break
        delta = new
    return c, target - F[-1], f, values
