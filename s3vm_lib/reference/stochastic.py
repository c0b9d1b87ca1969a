"""Algorithms 1 and 2 of TSGS3VM as the paper prints them, with u' and its sign corrected."""

import numpy as np


def feature(stream, t, X):
    """Return φ_t(x_i) in double precision, from frequencies and phases of block t, shape (n, m)."""
    block = stream.block(t)
    turns = X @ block.W.astype(float) + block.b.astype(float)
    return np.sqrt(2) * np.cos(2 * np.pi * turns)


def predict(stream, alpha, X):
    """Run Algorithm 2: f(x_i) from the coefficients alone."""
    f = np.zeros(len(X))  # 1
    for t, a in enumerate(alpha):  # 2
        f += feature(stream, t, X) @ a  # 3, 4
    return f


def train(stream, labeled, unlabeled, C, C_star, eta):
    """Run Algorithm 1 with hinge and symmetric hinge; return α, shape (T, m), and the slopes.

    ``labeled`` is a list of (x, y), ``unlabeled`` one of x: the rows that are drawn, one step
    each (or a batch each: x of shape (B, d), y of shape (B,)). C and C* are those of the paper, in
    front of means; ``eta`` holds the step sizes. The slopes are those of the two terms of R at
    f_t, for the rows of every step.
    """
    alpha, slopes = [], []
    for t, step in enumerate(eta):  # 1
        x, y = (np.atleast_2d(labeled[t][0]), np.atleast_1d(labeled[t][1]))  # 2
        z = np.atleast_2d(unlabeled[t])  # 3
        f, g = predict(stream, alpha, x), predict(stream, alpha, z)  # 5, 6
        slope = C * np.where(y * f < 1, -y, 0) / len(x)
        slope_star = C_star * np.where(np.abs(g) < 1, -np.sign(g), 0) / len(z)  # printed: -1
        new = slope @ feature(stream, t, x) + slope_star @ feature(stream, t, z)  # 4, 7
        alpha = [(1 - step) * a for a in alpha] + [-step * new / new.size]  # 8
        slopes.append((slope, slope_star))
    return np.array(alpha), slopes


def twin(labeled, unlabeled, slopes, eta):
    """Return h of (8), the kernel in place of features: Σ_i w_i k(p_i, ·) as (points, weights).

    It makes the decisions of f: the slopes are those that `train` took at f_t, not at h_t.
    """
    points, weights = [], []
    for t, step in enumerate(eta):
        points += [np.atleast_2d(labeled[t][0]), np.atleast_2d(unlabeled[t])]
        weights = [(1 - step) * w for w in weights] + [-step * s for s in slopes[t]]
    return np.vstack(points), np.concatenate(weights)
