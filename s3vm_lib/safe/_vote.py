"""The linear program of the worst case, and the weighted vote that solves it.

Rows i have a weight s_i, the baseline gives b_i, member t of the pool gives ŷ_ti. If ŷ_t were the
truth, a labeling y would gain

    g_t(y) = Σ_i s_i ([y_i = ŷ_ti, b_i ≠ ŷ_ti] − λ [y_i ≠ ŷ_ti, b_i = ŷ_ti]) / Σ_i s_i

over the baseline. For distributions p_i over the classes in place of y_i, max_p min_t g_t(p) is a
linear program. Its dual has one variable per member,

    min_α Σ_i s_i max(0, max_{k ≠ b_i} (V_ik − λ V_i,b_i)) / Σ_i s_i,    V_ik = Σ_t α_t [ŷ_ti = k],

over α ≥ 0 with Σ_t α_t = 1, and a row takes the class with the most votes, those for the baseline's
class counted λ times.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

_TIE = 1e-7  # votes that differ by less are equal


class Solution(NamedTuple):
    """Result of `solve_safe`."""

    labels: np.ndarray  # class of each row, (u,)
    shares: np.ndarray  # weights α of the members, (T,)
    objective: float  # worst gain of `labels`, a share of all weight; 0 for the baseline
    bound: float  # optimum of the linear program: no labeling has a larger worst gain
    gains: np.ndarray  # gain of `labels` if each member were the truth, (T,)
    fractions: np.ndarray  # p of the linear program, (u, n_classes)
    tie: float  # what the vote adds to the baseline's class; 0 where the baseline is kept
    n_iter: int  # iterations of the simplex method
    status: str  # "optimal", or "baseline" where no labeling gained in every case


def gains(labels, pool, baseline, loss_weight=3.0, sample_weight=None):
    """Compute the gain g_t of a labeling over the baseline, if member t of the pool is the truth.

    Parameters
    ----------
    labels : int ndarray of shape (u,)
        Classes 0, 1, … of the rows.
    pool : int ndarray of shape (T, u)
        Labelings, of which each may be the truth.
    baseline : int ndarray of shape (u,)
    loss_weight : float, default=3.0
        λ: a row that is lost counts this many rows that are won.
    sample_weight : ndarray of shape (u,), default=None
        Weights of the rows.

    Returns
    -------
    ndarray of shape (T,)
        Shares of the total weight.
    """
    weight = np.ones(labels.size) if sample_weight is None else sample_weight
    won = (labels == pool) & (baseline != pool)
    lost = (labels != pool) & (baseline == pool)
    return (won @ weight - loss_weight * (lost @ weight)) / max(weight.sum(), np.finfo(float).tiny)


def votes(pool, baseline, shares, loss_weight, tie, n_classes):
    """Count the votes for each class, those for the class of the baseline λ times.

    Parameters
    ----------
    pool : int ndarray of shape (T, m)
        Answers of the members on rows, which need not be those of the linear program.
    baseline : int ndarray of shape (m,)
    shares : ndarray of shape (T,)
        Weights α of the members.
    loss_weight : float
        λ.
    tie : float
        Added to the votes for the baseline's class, to break ties.
    n_classes : int

    Returns
    -------
    ndarray of shape (m, n_classes)
    """
    found = np.stack([shares @ (pool == k) for k in range(n_classes)], axis=1)
    rows = np.arange(baseline.size)
    found[rows, baseline] = loss_weight * found[rows, baseline] + tie
    return found


def solve_safe(pool, baseline, loss_weight=3.0, sample_weight=None):
    """Find the labeling with the largest gain over the baseline in the worst case of the pool.

    Parameters
    ----------
    pool : int ndarray of shape (T, u)
        Labelings of the rows by classes 0, 1, …; each may be the truth.
    baseline : int ndarray of shape (u,)
        Labeling of the supervised machine.
    loss_weight : float, default=3.0
        λ: a row that is lost counts this many rows that are won. From 1 on the labeling is as
        accurate as the baseline whenever the truth is in the pool.
    sample_weight : ndarray of shape (u,), default=None
        Weights of the rows.

    Returns
    -------
    Solution

    Notes
    -----
    Rows on which all labelings agree in the same way are one row of the program. The vote leaves
    ties open: they go to the baseline, or all against it, whichever has the larger worst gain.
    """
    weight = np.ones(baseline.size) if sample_weight is None else np.asarray(sample_weight, float)
    n_classes = 1 + max(pool.max(initial=0), baseline.max(initial=0))
    kept = np.zeros(pool.shape[0])
    if not (weight.sum() > 0 and pool.shape[0]):
        fractions = np.eye(n_classes)[baseline]
        return Solution(baseline, kept, 0.0, 0.0, kept, fractions, 0.0, 0, "baseline")
    # Rows to which all give the same classes are one variable of the program.
    patterns, of_row = np.unique(np.vstack([baseline, pool]), axis=1, return_inverse=True)
    of_row = of_row.ravel()
    mass = np.bincount(of_row, weight) / weight.sum()
    shares, bound, moved, n_iter = _dual(patterns[1:], patterns[0], mass, loss_weight, n_classes)
    best, objective, tie = baseline, 0.0, 0.0
    # Ties for the baseline, then against it: the better of both is taken.
    for side in (_TIE, -_TIE):
        labels = votes(pool, baseline, shares, loss_weight, side, n_classes).argmax(axis=1)
        worst = gains(labels, pool, baseline, loss_weight, weight).min()
        if worst > objective:
            best, objective, tie = labels, float(worst), side
    found = gains(best, pool, baseline, loss_weight, weight)
    status = "optimal" if tie else "baseline"
    return Solution(best, shares, objective, bound, found, moved[of_row], tie, n_iter, status)


def _dual(pool, baseline, mass, loss_weight, n_classes):
    """Solve the dual in α and bounds z_i ≥ max(0, V_ik − λ V_i,b_i), whose multipliers are p."""
    T, m = pool.shape
    # One inequality per row and class that some member prefers to the baseline's.
    rows, classes = np.nonzero(
        np.stack([((pool == k) & (baseline != k)).any(axis=0) for k in range(n_classes)], axis=1)
    )
    votes_for = (pool[:, rows] == classes).astype(float)
    difference = votes_for - loss_weight * (pool[:, rows] == baseline[rows])
    of_rows = sp.csr_matrix((-np.ones(rows.size), (np.arange(rows.size), rows)), (rows.size, m))
    result = linprog(
        np.concatenate([np.zeros(T), mass]),
        A_ub=sp.hstack([sp.csr_matrix(difference.T), of_rows], format="csr"),
        b_ub=np.zeros(rows.size),
        A_eq=sp.csr_matrix(np.concatenate([np.ones(T), np.zeros(m)])[None]),
        b_eq=[1.0],
        method="highs-ds",  # a vertex: few rows are divided between classes
    )
    if result.status != 0:
        raise RuntimeError(f"the linear program of the worst case failed: {result.message}")
    shares = np.maximum(result.x[:T], 0)
    fractions = np.zeros((m, n_classes))
    part = -result.ineqlin.marginals
    fractions[rows, classes] = np.divide(
        part, mass[rows], out=np.zeros(rows.size), where=mass[rows] > 0
    )
    fractions[np.arange(m), baseline] = 1 - fractions.sum(axis=1)
    return shares / shares.sum(), float(result.fun), fractions, int(result.nit)
