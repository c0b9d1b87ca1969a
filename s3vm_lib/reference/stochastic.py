"""Algorithms 1 and 2 of TSGS3VM as the paper prints them, with u' and its sign corrected."""

import numpy as np


def feature(stream, t, X):
    """φ_t(x_i) in double precision, from the frequencies and phases of block t, shape (n, m)."""
    block = stream.block(t)
    turns = X @ block.W.astype(float) + block.b.astype(float)
    return np.sqrt(2) * np.cos(2 * np.pi * turns)


def predict(stream, alpha, X):
    """Algorithm 2: f(x_i) from the coefficients alone."""
    f = np.zeros(len(X))  # 1
    for t, a in enumerate(alpha):  # 2
        f += feature(stream, t, X) @ a  # 3, 4
    return f


def train(stream, labeled, unlabeled, C, C_star, gamma):
    """Algorithm 1 with hinge and symmetric hinge: coefficients α, shape (T, m).

    ``labeled`` is a list of (x, y), ``unlabeled`` one of x: the rows that are drawn, one step
    each (or a batch each: x of shape (B, d), y of shape (B,)). C and C* are those of the paper, in
    front of means; ``gamma`` holds the step sizes.
    """
    alpha = []
    for t, step in enumerate(gamma):  # 1
        x, y = (np.atleast_2d(labeled[t][0]), np.atleast_1d(labeled[t][1]))  # 2
        z = np.atleast_2d(unlabeled[t])  # 3
        f, g = predict(stream, alpha, x), predict(stream, alpha, z)  # 5, 6
        slope = np.where(y * f < 1, -y, 0)
        slope_star = np.where(np.abs(g) < 1, -np.sign(g), 0)  # printed without the sign of g
        new = C * slope @ feature(stream, t, x) / len(x)  # 4, 7
        new = new + C_star * slope_star @ feature(stream, t, z) / len(z)
        alpha = [(1 - step) * a for a in alpha] + [-step * new / new.size]  # 8
    return np.array(alpha)


def twin(labeled, unlabeled, C, C_star, gamma, kernel):
    """h_t of (8), with the kernel in place of features and the same draws: (points, weights)."""
    points, weights = np.zeros((0, len(np.ravel(unlabeled[0])))), np.zeros(0)
    for t, step in enumerate(gamma):
        (x, y), z = labeled[t], unlabeled[t]
        h = kernel(np.array([x, z]), points) @ weights
        slopes = C * (-y if y * h[0] < 1 else 0), C_star * (-np.sign(h[1]) if abs(h[1]) < 1 else 0)
        points = np.vstack([points, x, z])
        weights = np.append((1 - step) * weights, -step * np.array(slopes))
    return points, weights
