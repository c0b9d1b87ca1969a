"""S4VM's linear program as it is stated, in the labels of the rows: two classes, −1 and +1."""

import numpy as np
from scipy.optimize import linprog


def gain_terms(pool, baseline, loss_weight):
    """Return c_ti and d_t of the gain Σ_i c_ti y_i + d_t of labels y, if member t is the truth."""
    agree = baseline * pool
    c = ((1 + loss_weight) * pool + (loss_weight - 1) * baseline) / 4
    d = ((1 - loss_weight) - (1 + loss_weight) * agree).sum(axis=1) / 4
    return c, d


def worst_case(pool, baseline, loss_weight=3.0):
    """Maximize the smallest gain τ over y in [−1, 1]^u, with τ ≤ c_t·y + d_t for each member."""
    c, d = gain_terms(pool, baseline, loss_weight)
    T, u = pool.shape
    result = linprog(
        np.append(np.zeros(u), -1.0),
        A_ub=np.column_stack([-c, np.ones(T)]),
        b_ub=d,
        bounds=[(-1, 1)] * u + [(None, None)],
    )
    return result.x[:-1], -result.fun
