"""Deterministic annealing in plain NumPy: the twin of `s3vm_lib.annealing`.

Numbers in comments are the lines of the algorithm in the chapter on deterministic annealing.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, xlogy

from s3vm_lib.reference.finite_newton import loss, train


def soften(o, ratio, T):
    """Return p_j = σ((ν − G_j)/T) at the outputs o, with the ν for which the mean of p is r."""
    gap = 0.5 * (np.maximum(0, 1 - o) ** 2 - np.maximum(0, 1 + o) ** 2)
    ends = gap.min() + T * logit(ratio) - 1, gap.max() + T * logit(ratio) + 1
    nu = brentq(lambda nu: np.mean(expit((nu - gap) / T)) - ratio, *ends, xtol=1e-15, rtol=1e-15)
    return expit((nu - gap) / T)


def divergence(p, q):
    """Return the mean of p log(p/q) + (1 − p) log((1 − p)/(1 − q))."""
    q, rest = np.maximum(q, 1e-300), np.maximum(1 - q, 1e-300)
    return np.mean(xlogy(p, p) - xlogy(p, q) + xlogy(1 - p, 1 - p) - xlogy(1 - p, rest))


def entropy(p):
    """Sum of −p log p − (1 − p) log(1 − p)."""
    return -np.sum(xlogy(p, p) + xlogy(1 - p, 1 - p))


def anneal(X, t, C, C_star, ratio, temperature=5.0, cooling=1.5, steps=30, p_tol=1e-6):
    """Return the v of the lowest J on the path, and a list of (T, Φ_T) after every round."""
    U, path, visited = t == 0, [], []

    def fit(p, v, T):
        plus, minus = C * (t > 0.0), C * (t < 0.0)
        plus[U], minus[U] = C_star * p, C_star * (1 - p)
        v = train(X, plus, minus, v)
        gap = np.maximum(0, 1 - np.where(U, abs(X @ v), t * (X @ v)))
        visited.append((0.5 * (v @ v + np.where(U, C_star, C) @ gap**2), v))
        path.append((T, 0.5 * v @ v + loss(plus, minus, X @ v) - T * C_star * entropy(p)))
        return v

    p = np.full(U.sum(), ratio)  # 1
    v = fit(p, np.zeros(X.shape[1]), 0.0)  # 2
    for k in range(steps):
        T, before = temperature / cooling**k, None  # 3
        while before is None or divergence(p, before) >= p_tol:
            before, p = p, soften((X @ v)[U], ratio, T)  # 4
            v = fit(p, v, T)  # 5
        if entropy(p) < p_tol * p.size:  # 6
            break
    return min(visited, key=lambda pair: pair[0])[1], path[1:]  # 7
