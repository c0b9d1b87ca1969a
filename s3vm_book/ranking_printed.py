"""Mean ranks over many sets, Friedman's statistic and Nemenyi's difference, as they are stated."""

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm


def mean_ranks(errors):
    """Return the mean rank of each method (column) over the sets (rows); ties share ranks."""
    ranks = np.empty(errors.shape)
    for i, one in enumerate(errors):  # line 2
        for j, mine in enumerate(one):
            ranks[i, j] = 1 + np.sum(one < mine) + (np.sum(one == mine) - 1) / 2
    return ranks.mean(axis=0)  # line 3


def friedman(errors):
    """Return Friedman's χ² and the F of Iman and Davenport; no correction for ties."""
    N, M = errors.shape
    R = mean_ranks(errors)
    chi_square = 12 * N / (M * (M + 1)) * np.sum((R - (M + 1) / 2) ** 2)  # line 4
    return chi_square, (N - 1) * chi_square / (N * (M - 1) - chi_square)


def range_probability(q, M):
    """Return P(range of M standard normal variables ≤ q), integrated over the smallest of them."""

    def density(z):
        return M * norm.pdf(z) * (norm.cdf(z + q) - norm.cdf(z)) ** (M - 1)

    return quad(density, -9, 9)[0]


def critical_difference(N, M, alpha=0.05):
    """Return Nemenyi's critical difference of two mean ranks."""
    q = brentq(lambda q: range_probability(q, M) - (1 - alpha), 0.1, 20)
    return q * np.sqrt(M * (M + 1) / (12 * N))  # line 5
