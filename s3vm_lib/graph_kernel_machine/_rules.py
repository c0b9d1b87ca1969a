"""Theorem 1 and what names stand for: weights and deviations by rule, numbers of steps, graphs."""

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from s3vm_lib.graphs import Graph, graph_from_weights, width_gamma


class Bounds(NamedTuple):
    """The constants of Lemmas 2-4 and of Theorem 1 (see `theorem_bounds`)."""

    holds: bool  # whether the conditions of Theorem 1 are met
    condition: str  # what was checked
    a: float  # p C' (2R)^p
    b: float  # C A
    M: float  # bound on ‖w_t‖, infinite where the conditions fail
    G: float  # bound on the norms of stochastic gradients
    R: float  # bound on √k(x, x)
    A: float  # bound on the norms of loss gradients


def largest_p_term(p):
    """Return (p − 2)^(p−2) / (p − 1)^(p−1): the largest a b^(p−2) allowed with p > 2."""
    return (p - 2) ** (p - 2) / (p - 1) ** (p - 1)


def theorem_bounds(C, C_graph, p, R, A):
    """Return conditions and constants of Theorem 1.

    With a = p C' (2R)^p and b = C A, the iterates stay in a ball of radius M and the stochastic
    gradients in one of radius G = M + C A + p C' (2R)^p M^(p−1), if p < 2, or p = 2 and a < 1,
    or p > 2 and a b^(p−2) ≤ (p−2)^(p−2) / (p−1)^(p−1). Then E J(w̄) − J* < 2G²/T.

    Parameters
    ----------
    C : float
        Weight of the *mean* labeled loss: C Σ s_i in the library's parameters.
    C_graph : float
        Weight C' of the mean over the edges.
    p : float
        Power of the smoothness function.
    R : float
        Bound on √k(x, x), the constant of the offset apart.
    A : float
        Bound on the norm of the gradient of a loss in w; infinite for the squared hinge.

    Returns
    -------
    Bounds

    References
    ----------
    The paper's Lemmas 2-4 and Theorem 1; edge weights are at most 1.
    """
    a, b = p * C_graph * (2 * R) ** p, C * A
    if not math.isfinite(b):
        condition, holds = "bounded loss gradients", False
    elif p < 2:
        condition, holds = "p < 2", True
    elif p == 2:
        condition, holds = f"a < 1 with a = {a:.4g}", a < 1
    else:
        left, right = a * b ** (p - 2), largest_p_term(p)
        condition = f"a b^(p-2) <= (p-2)^(p-2)/(p-1)^(p-1): {left:.4g} <= {right:.4g}"
        holds = left <= right * (1 + 1e-12)
    if not holds:
        return Bounds(False, condition, a, b, math.inf, math.inf, R, A)
    if p < 2:  # M of Lemma 2
        M = max(1.0, (a + b) ** (1 / (2 - p)))
    elif p == 2:
        M = b / (1 - a)
    else:
        M = (1 / ((p - 1) * a)) ** (1 / (p - 2)) if a > 0 else math.inf
    return Bounds(True, condition, a, b, M, M + b + a * M ** (p - 1), R, A)


def largest_C_graph(C, p, R, A, share=0.9):
    """Return a C' that meets the conditions of Theorem 1 for p ≥ 2, the paper's (5) for any R.

    Parameters
    ----------
    C, p, R, A : float
        As in `theorem_bounds`.
    share : float, default=0.9
        For p = 2, the value of a; the bound M = b/(1 − a) grows without limit towards 1.

    Returns
    -------
    float
        Infinite for p < 2, where no condition is needed.
    """
    if p < 2:
        return math.inf
    if p == 2:
        return share / (p * (2 * R) ** p)
    return largest_p_term(p) / (p * (2 * R) ** p * (C * A) ** (p - 2))


def largest_sigma_f(C, C_graph, p, lipschitz, offset, share=0.9):
    """Return an output deviation σ_f with which the conditions of Theorem 1 hold for p ≥ 2.

    For kernels with k(x, x) = σ_f². The paper's two closed forms are those without an offset;
    with the kernel k + 1 the constant enters A = lipschitz · √(σ_f² + 1).

    Parameters
    ----------
    C, C_graph, p : float
        As in `theorem_bounds`.
    lipschitz : float
        Largest slope of the loss.
    offset : bool
        Whether 1 is added to the kernel.
    share : float, default=0.9
        For p = 2, the value of a.

    Returns
    -------
    float
        1.0 for p < 2, where no condition is needed.
    """
    if p < 2 or C_graph == 0:
        return 1.0
    if p == 2:
        return 0.5 * (share / (p * C_graph)) ** (1 / p)
    if not offset:
        return (largest_p_term(p) / (p * C_graph * 2**p * (C * lipschitz) ** (p - 2))) ** (
            1 / (2 * p - 2)
        )
    low, high = 0.0, 1.0
    while theorem_bounds(C, C_graph, p, high, lipschitz * math.hypot(high, 1)).holds:
        high *= 2
    for _ in range(60):
        middle = 0.5 * (low + high)
        if theorem_bounds(C, C_graph, p, middle, lipschitz * math.hypot(middle, 1)).holds:
            low = middle
        else:
            high = middle
    return low


# --- What names stand for ------------------------------------------------------------------------


_LARGE = 8000  # rows from which on the paper makes a fifth of n steps
_PAIRS = 2**23  # of a complete graph that may be listed


def paper_steps(n):
    """Return the paper's number of steps T: n, or a fifth of it for large sets."""
    return max(1, round(0.2 * n)) if n >= _LARGE else n


def space_radius(kernel, X):
    """Return R = max √k(x, x)."""
    if kernel.name in ("rbf", "laplacian"):
        return float(kernel.sigma_f)
    return math.sqrt(max(0.0, float(np.max(kernel.diagonal(X)))))


def gradient_bound(loss, R, offset):
    """Return the bound A on the norm of the gradient of a loss, with the constant of an offset."""
    return loss.lipschitz * math.hypot(R, 1.0 if offset else 0.0)


def require_slope(loss, name):
    """Return the largest slope of a loss; refuse one without, which Theorem 1 has no bound for."""
    if not math.isfinite(loss.lipschitz):
        raise ValueError(
            f"{name}='theorem' needs a loss with a bounded slope, got loss={loss.name!r}"
        )
    return loss.lipschitz


# --- Graphs ---------------------------------------------------------------------------------------


def proportional_graph(graph):
    """Return a graph whose edges can be drawn in proportion to their weights."""
    if isinstance(graph, Graph):
        return graph
    if graph.n**2 > 2 * _PAIRS:
        raise ValueError(
            f"sampling='weight' lists all pairs of a complete graph, of which {graph.n_edges} "
            "are too many: join neighbors only, or use sampling='uniform'"
        )
    return graph_from_weights(graph.adjacency(), graph.labeled)


def length_gamma(graph, X):
    """Return 1/(2m²) with the mean length m of the edges, None without edges."""
    if graph.n_edges == 0:
        return None
    difference = X[graph.i] - X[graph.j]
    squares = difference.multiply(difference) if sp.issparse(X) else difference**2
    return width_gamma(float(np.sqrt(np.asarray(squares.sum(axis=1)).ravel()).mean()))
