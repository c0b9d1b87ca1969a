"""Laplacian SVM with the squared hinge, in plain NumPy: the twin of `s3vm_lib.laplacian_svm`.

Numbers in comments are the lines of the two algorithms in the chapter on graphs. Rows of weight 1;
``kappa`` is C_graph / |E| and ``M`` the Laplacian.
"""

import numpy as np


def objective(K, M, kappa, C, c, b, t):
    """Return J = ½cᵀKc + κ fᵀMf + ½ C Σ_L max(0, 1 − t (f + b))², f = Kc."""
    f = K @ c
    return 0.5 * c @ f + kappa * f @ M @ f + 0.5 * C * np.sum(slack(f + b, t) ** 2)


def slack(f, t):
    """Return max(0, 1 − t f) on labeled rows, 0 on the others."""
    return np.where(t != 0, np.maximum(0, 1 - t * f), 0.0)


def offset(f, t):
    """Return the best b for outputs f, by bisection: Σ_L t max(0, 1 − t (f + b)) falls in b."""
    low, high = -1 - np.abs(f).max(), 1 + np.abs(f).max()
    for _ in range(100):
        b = 0.5 * (low + high)
        low, high = (b, high) if np.sum(t * slack(f + b, t)) > 0 else (low, b)
    return b


def newton(K, M, kappa, C, t, tol=1e-16, max_iter=100):
    """Return all n coefficients and the offset by Newton's method, with backtracking."""
    c = np.zeros(len(t))  # 1
    for _ in range(max_iter):
        f, b = K @ c, offset(K @ c, t)  # 2
        J, z = objective(K, M, kappa, C, c, b, t), slack(f + b, t)
        r = C * t * z - 2 * kappa * M @ f - c  # 3
        if r @ K @ r <= 2 * tol * J:
            break
        active = z > 0
        S = C * (np.diag(active) - np.outer(active, active / max(1, active.sum())))  # 4
        d = np.linalg.solve(np.eye(len(t)) + (2 * kappa * M + S) @ K, S @ t) - c  # 5
        step, least = 1.0, 1e-4 * (d @ K @ r)
        while objective(K, M, kappa, C, c + step * d, offset(f + step * K @ d, t), t) > (
            J - step * least
        ):
            step /= 2  # 6
        c = c + step * d  # 7
    return c, float(b)


def conjugate_gradients(K, M, kappa, C, t, tol=1e-10, max_iter=1000):
    """Return the same by conjugate gradients, preconditioned by K, to a duality gap of tol J."""
    c, p, r_old = np.zeros(len(t)), None, None  # 1
    for _ in range(max_iter):
        f, b = K @ c, offset(K @ c, t)  # 2
        J, z = objective(K, M, kappa, C, c, b, t), slack(f + b, t)
        r = C * t * z - 2 * kappa * M @ f - c  # 3
        if r @ K @ r <= 2 * tol * J:  # 4
            break
        p = r if p is None else r + max(0, r @ K @ (r - r_old) / (r_old @ K @ r_old)) * p  # 5
        Kp, r_old = K @ p, r
        change = np.where(z > 0, Kp - Kp[z > 0].mean(), 0.0)
        step = (Kp @ r) / (p @ Kp + 2 * kappa * Kp @ M @ Kp + C * change @ change)  # 6
        while objective(K, M, kappa, C, c + step * p, offset(f + step * Kp, t), t) > J:
            step /= 2  # 7
        c = c + step * p  # 8
    return c, float(b)
