"""QN-S3VM as the paper prints it: raw coefficients c, equations (4) and (5), Algorithm 1."""

import numpy as np
from scipy.optimize import fmin_l_bfgs_b
from scipy.special import expit


def centered_gram(K, t):
    """Return the Gram matrix of the features centered on the unlabeled rows (t = 0), for (13)."""
    m = (t == 0) / np.sum(t == 0)
    return K - np.outer(K @ m, np.ones(len(t))) - np.outer(np.ones(len(t)), K @ m) + m @ K @ m


def objective(c, K, t, lam, lam_u, b=0.0, gamma=20.0, s=3.0):
    """Return value (4) and gradient (5) at c; t is −1 or +1, and 0 for unlabeled rows."""
    L, U = t != 0, t == 0
    Kc = K @ c
    f = Kc + b
    margin = gamma * (1 - t[L] * f[L])
    bump = np.exp(-s * f[U] ** 2)
    F = np.logaddexp(0, margin).sum() / gamma / L.sum() + lam * c @ Kc
    a = np.zeros(len(t))
    a[L] = -t[L] * expit(margin) / L.sum()
    if lam_u > 0:
        F += lam_u / U.sum() * bump.sum()
        a[U] = -2 * s * lam_u / U.sum() * f[U] * bump
    return F, K @ a + 2 * lam * Kc


def fit(K, t, lam, lam_u, b=0.0, annealing=(1e-6, 1e-4, 1e-2, 0.1, 0.5, 1.0), memory=50, **stop):
    """Return coefficients c and the value F: lines 1-11 of Algorithm 1 with the authors' engine."""
    c = np.zeros(len(t))
    for alpha in (0.0, *annealing):
        arguments = (K, t, lam, alpha * lam_u, b)
        c, F, _ = fmin_l_bfgs_b(objective, c, args=arguments, m=memory, **stop)
    return c, F
