"""Branch and bound in plain NumPy: hinge, symmetric hinge and a fixed mean output.

The twin of `s3vm_lib.branch_and_bound.solve_branch_and_bound`. With the features centered at the
mean of the unlabeled rows the offset is fixed, and the dual has no constraint but its bounds.
Numbers in comments are the lines of the algorithm in the chapter.

Examples
--------
>>> import numpy as np
>>> from s3vm_lib.reference.branch_and_bound import branch_and_bound
>>> x = np.array([-2.0, 2.0, -1.0, 1.0])  # the first two are labeled
>>> K, t = np.outer(x, x), np.array([-1, 1, 0, 0])
>>> objective, outputs, _ = branch_and_bound(K, t, C=1.0, C_star=1.0, ratio=0.5)
>>> round(float(objective), 6), outputs.round(6).tolist()
(0.5, [-2.0, 2.0, -1.0, 1.0])
"""

import numpy as np


def centered(K, unlabeled):
    """Return the Gram matrix of the features minus their mean over the unlabeled rows."""
    mean = K[:, unlabeled].mean(axis=1)
    return K - mean[:, None] - mean + mean[unlabeled].mean()


def relax(K, y, weight, b, sweeps=200):
    """Return a lower bound, β and the outputs of the SVM on the rows with a label, y != 0."""
    beta, f = np.zeros(len(y)), np.full(len(y), b)
    flattest = 1e-12 * (K.diagonal().max() or 1.0)
    for _ in range(sweeps):  # any number of them leaves a valid bound
        before = beta.copy()
        for i in np.flatnonzero(y):
            step = (y[i] - f[i]) / max(K[i, i], flattest)
            new = y[i] * np.clip(y[i] * (beta[i] + step), 0, weight[i])
            f, beta[i] = f + (new - beta[i]) * K[i], new
        if np.max(np.abs(beta - before)) < 1e-9 * weight.max():
            break
    return (y - b) @ beta - 0.5 * beta @ K @ beta, beta, f


def branch_and_bound(K, t, C, C_star, ratio, tol=1e-6):
    """Return objective, outputs and number of nodes; t is −1, +1, or 0 for unlabeled rows."""
    U, b = t == 0, 2 * ratio - 1  # 1
    K, weight = centered(K, U), np.where(U, C_star, C)
    best, n_nodes = (np.inf, None), 0
    stack = [np.array(t, dtype=float)]
    while stack:  # 2
        y = stack.pop()
        bound, beta, f = relax(K, y, weight, b)  # 3
        n_nodes += 1
        losses = np.maximum(0, 1 - np.where(U, np.abs(f), t * f))
        J = 0.5 * beta @ K @ beta + weight @ losses  # 4
        best = min(best, (J, f), key=lambda pair: pair[0])
        if bound >= best[0] * (1 - tol) or np.all(y != 0):  # 5
            continue
        j = np.argmax(np.where(y == 0, np.abs(f), -1))  # 6
        sign = 1.0 if f[j] >= 0 else -1.0  # sign 0 = +1: either label has its child
        for label in (-sign, sign):  # 7: the likelier label is on top of the stack
            child = y.copy()
            child[j] = label
            stack.append(child)
    return best[0], best[1], n_nodes
