"""Random Fourier features in NumPy: the definition, without a stream of counters or tiles."""

import numpy as np


def fourier_features(X, n_features, gamma, rng, paired=False):
    """Return φ_j(x_i) for exp(−γ‖x − x'‖²), shape (n, D); the kernel is about ZZᵀ/D."""
    count = n_features // 2 if paired else n_features
    omega = rng.normal(scale=np.sqrt(2 * gamma), size=(X.shape[1], count))  # 4
    if paired:
        return np.sqrt(2) * np.hstack([np.cos(X @ omega), np.sin(X @ omega)])  # 6
    return np.sqrt(2) * np.cos(X @ omega + rng.uniform(0, 2 * np.pi, count))  # 4, 6


def orthogonal_frequencies(d, gamma, rng):
    """Draw orthogonal ω_1, …, ω_d with the lengths of independent normal vectors, shape (d, d)."""
    Q, R = np.linalg.qr(rng.normal(size=(d, d)))  # 5
    lengths = np.sqrt(rng.chisquare(d, size=d))
    return np.sqrt(2 * gamma) * Q * np.sign(np.diagonal(R)) * lengths


def sign_features(X, n_features, gamma, coef0, degree, rng):
    """Return φ_j(x_i) for the kernel (γ x·x' + coef0)^degree, shape (n, D)."""
    X = np.hstack([np.sqrt(gamma) * X, np.full((len(X), 1), np.sqrt(coef0))])
    signs = rng.choice([-1.0, 1.0], size=(degree, X.shape[1], n_features))
    return np.prod(X @ signs, axis=0)
