"""SMO in plain NumPy: the twin of `s3vm_lib.smo.solve_smo` on a whole Gram matrix.

From β = 0 it takes the same steps as the compiled solver without shrinking. Numbers in comments
are the lines of the algorithm in the chapter on support vector machines.
"""

from collections import namedtuple

import numpy as np

TAU = 1e-12  # smallest curvature along a pair, relative to K_ii
# State before a step: β and F = Kβ, the arrays A and B, max(A − F) − min(B − F), and the pair.
Step = namedtuple("Step", "beta F A B violation pair")


def slopes(costs, beta):
    """Return A and B: minus the slope of φ to the right and left of β, infinite at a bound."""
    A = np.where(beta < costs.mid, -costs.s1, np.where(beta < costs.hi, -costs.s2, -np.inf))
    B = np.where(beta > costs.mid, -costs.s2, np.where(beta > costs.lo, -costs.s1, np.inf))
    return A, B


def curvatures(K, i):
    """Return a_ij for all j, kept away from 0, which it is for identical points."""
    diagonal = np.diag(K)
    return np.maximum((diagonal - K[i]) + (K[i, i] - K[i]), TAU * max(K[i, i], 1e-290))


def second_order(K, F, A, B):
    """Choose the pair (i, j) of largest violation in i and, given i, of largest gain in j."""
    i = np.argmax(A - F)  # 4
    v = np.maximum((A[i] - F[i]) + F - B, 0.0)  # 5
    v[i] = 0.0  # rounding may leave i a partner of itself
    return i, np.argmax(v**2 / curvatures(K, i))


def smo_steps(K, costs, beta=None, select=second_order):
    """Yield a `Step` before each step, without end: the caller decides when to stop.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix.
    costs : Costs
        Piecewise-linear costs, see `s3vm_lib.smo.Costs`.
    beta : ndarray of shape (n,), default=None
        Feasible start; None means 0, which must then be feasible.
    select : callable, default=second_order
        From (K, F, A, B) to the working pair (i, j).

    Yields
    ------
    Step
    """
    beta = np.zeros(len(K)) if beta is None else np.array(beta, dtype=float)  # 1
    F = K @ beta
    while True:
        A, B = slopes(costs, beta)  # 2
        i, j = select(K, F, A, B)
        yield Step(beta.copy(), F.copy(), A, B, np.max(A - F) - np.min(B - F), (i, j))  # 3
        stop_i = costs.mid[i] if beta[i] < costs.mid[i] else costs.hi[i]  # 6
        stop_j = costs.mid[j] if beta[j] > costs.mid[j] else costs.lo[j]
        step = ((A[i] - F[i]) + F[j] - B[j]) / curvatures(K, i)[j]  # 7
        step = min(step, stop_i - beta[i], beta[j] - stop_j)
        beta[i] = stop_i if step == stop_i - beta[i] else beta[i] + step  # 8
        beta[j] = stop_j if step == beta[j] - stop_j else beta[j] - step
        F += step * (K[i] - K[j])  # 9


def solve_smo(K, costs, beta=None, tol=1e-3, max_iter=100_000, select=second_order):
    """Minimize ½βᵀKβ + Σφ_i(β_i) subject to Σβ = 0 and the bounds of the costs.

    Parameters
    ----------
    K, costs, beta, select
        As in `smo_steps`.
    tol : float, default=1e-3
        Stop when the violation is below it.
    max_iter : int, default=100_000
        Largest number of steps.

    Returns
    -------
    beta : ndarray of shape (n,)
    b : float
        Offset: the mean of A − F over the points between breakpoints, where A = B; without such
        points the middle of the interval.
    n_iter : int
    """
    for n_iter, step in enumerate(smo_steps(K, costs, beta, select)):  # 3
        if step.violation < tol or n_iter == max_iter:
            break
    free = step.A == step.B
    if free.any():  # 10
        return step.beta, np.mean((step.A - step.F)[free]), n_iter
    return step.beta, (np.max(step.A - step.F) + np.min(step.B - step.F)) / 2, n_iter
