"""L2-SVM by finite Newton, and multi-switch on it, in plain NumPy with dense, exact solves.

The twins of `s3vm_lib.finite_newton` and `s3vm_lib.label_switching.solve_multi_switch`; numbers in
comments are the lines of the two algorithms in the chapter on switching labels.
"""

import numpy as np


def loss(plus, minus, o):
    """Return ½ Σ [C⁺ max(0, 1 − o)² + C⁻ max(0, 1 + o)²]."""
    return 0.5 * (plus @ np.maximum(0, 1 - o) ** 2 + minus @ np.maximum(0, 1 + o) ** 2)


def line_search(v, d, o, change, plus, minus):
    """Minimize F(v + ρ d): find the segment between two kinks in which the slope vanishes."""

    def slope(step):
        f = o + step * change
        pull = minus * np.maximum(0, 1 + f) - plus * np.maximum(0, 1 - f)
        return v @ d + step * (d @ d) + pull @ change

    moving = change != 0
    kinks = np.concatenate([(1 - o[moving]) / change[moving], (-1 - o[moving]) / change[moving]])
    kinks = np.unique(np.append(kinks[kinks > 0], 0.0))
    low = max(step for step in kinks if slope(step) <= 0 or step == 0)
    high = min(kinks[kinks > low], default=low + 1.0)
    return low - slope(low) * (high - low) / (slope(high) - slope(low))


def train(X, plus, minus, v, tol=1e-10):
    """Minimize F for rows X with a last column of ones, from v on."""
    while True:
        o = X @ v  # 1
        active = plus * (o < 1) + minus * (o > -1)  # 2
        target = plus * (o < 1) - minus * (o > -1)
        gradient = v + X.T @ (active * o - target)  # 3
        if np.linalg.norm(gradient) <= tol * np.linalg.norm(v):
            return v
        d = np.linalg.solve(np.eye(v.size) + X.T @ (active[:, None] * X), -gradient)  # 4
        v = v + line_search(v, d, o, X @ d, plus, minus) * d  # 5


def top(o, n_positive):
    """Return +1 for the largest outputs, −1 for the others."""
    return np.where(np.argsort(np.argsort(-o, kind="stable")) < n_positive, 1, -1)


def multi_switch(X, t, C, C_star, n_positive, start=1e-5, factor=1.5):
    """Return weights v and labels; t is −1 or +1, and 0 on the unlabeled rows."""
    U, y = t == 0, t.astype(float)
    v = train(X, C * (t > 0), C * (t < 0), np.zeros(X.shape[1]))  # 1
    y[U] = top((X @ v)[U], n_positive)  # 2
    cost = min(C_star, start * C * np.sum(~U) / np.sum(U))  # 3
    while True:
        weight = np.where(U, cost, C)
        v = train(X, weight * (y > 0), weight * (y < 0), v)  # 4
        better = top((X @ v)[U], n_positive)  # 5
        if np.array_equal(better, y[U]):  # 6
            if cost == C_star:
                return v, y
            cost = min(factor * cost, C_star)  # 7
        y[U] = better
