"""Relabelling in plain NumPy: train on guessed labels, take the signs of the outputs, train again.

For the hinge, the symmetric hinge and a fixed mean output. Numbers in comments are lines of the
two algorithms of the chapters: relabelling, and relabelling with a growing weight.
"""

import numpy as np

from s3vm_lib.reference.branch_and_bound import centered, relax


def relabel(K, t, labels, C, C_star, ratio):
    """Return labels that reproduce themselves, their outputs, and the value of each round.

    t is −1, +1, or 0 for the unlabeled rows; labels has a guess for those.
    """
    U, b, values = t == 0, 2 * ratio - 1, []
    K, weight = centered(K, U), np.where(U, C_star, C)
    while True:
        _, beta, z = relax(K, labels, weight, b)  # 1
        values.append(0.5 * beta @ K @ beta + weight @ np.maximum(0, 1 - labels * z))
        new = np.where(U & (z != 0), np.sign(z), labels)  # 2
        if np.array_equal(new, labels) or values[-1] > min(values):  # 3
            return labels, z, values
        labels = new


def grow(K, t, C, weights, ratio):
    """Call `relabel` with growing weights of the unlabeled rows; return its last result."""
    U, b = t == 0, 2 * ratio - 1
    _, _, z = relax(centered(K, U), t, np.where(U, 0.0, C), b)  # 1
    labels = np.where(U, np.where(z > 0, 1.0, -1.0), t)
    for C_star in weights:  # 2
        labels, z, values = relabel(K, t, labels, C, C_star, ratio)  # 3
    return labels, z, values
