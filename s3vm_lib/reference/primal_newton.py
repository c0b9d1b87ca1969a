"""Newton in the primal on the full kernel, in coordinates w with f = Zw + b and ‖f‖ = ‖w‖.

Numbers in comments are the lines of the algorithm in the chapter on gradients and Newton.
"""

import numpy as np

DOUBLING = tuple(2.0**k for k in range(-10, 1))  # factors of C* in ∇TSVM


def coordinates(K, t):
    """Return Z with ZZᵀ = K̃, the Gram matrix centered on the unlabeled rows (t = 0)."""
    left = np.eye(len(t)) - (t == 0) / max(1, np.sum(t == 0))
    values, vectors = np.linalg.eigh(left @ K @ left.T)
    keep = values > 1e-12 * values[-1]
    return vectors[:, keep] * np.sqrt(values[keep])


def objective(w, Z, t, C, C_star, b=0.0):
    """Return J, its gradient and the curvatures D of the losses at w; t is 0 for unlabeled rows."""
    f = Z @ w + b
    gap = np.where(t != 0, np.maximum(0, 1 - t * f), 0)
    bump = np.where(t == 0, np.exp(-3 * f**2), 0)
    J = 0.5 * w @ w + 0.5 * C * gap @ gap + C_star * bump.sum()
    a = -C * t * gap - 6 * C_star * f * bump
    D = C * (gap > 0) + 6 * C_star * (6 * f**2 - 1) * bump
    return J, w + Z.T @ a, D


def direction(g, Z, D, curvature):
    """Return −B⁻¹g, where B is the Hessian I + ZᵀDZ without its negative curvature."""
    if curvature == "drop":
        D = np.maximum(D, 0)  # 5
    values, vectors = np.linalg.eigh(np.eye(len(g)) + Z.T @ (D[:, None] * Z))  # 6
    return -vectors @ (vectors.T @ g / np.maximum(np.abs(values), 1e-3))  # 7


def fit(K, t, C, C_star, b=0.0, curvature="drop", annealing=DOUBLING, tol=1e-8):
    """Return w, the outputs f and J after one stage for each factor α of C*, from α = 0 on."""
    Z = coordinates(K, t)
    w = np.zeros(Z.shape[1])  # 1
    for alpha in (0.0, *annealing):  # 2
        J, g, D = objective(w, Z, t, C, alpha * C_star, b)  # 3
        while np.abs(g).max() > tol * C * np.sum(t != 0):  # 4
            p, step = direction(g, Z, D, curvature), 1.0
            while (new := objective(w + step * p, Z, t, C, alpha * C_star, b))[0] > (
                J + 1e-4 * step * g @ p
            ):
                step /= 2  # 8
            w, (J, g, D) = w + step * p, new  # 9
    return w, Z @ w + b, J
