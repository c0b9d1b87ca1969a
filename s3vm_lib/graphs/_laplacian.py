"""Laplacians: the quadratic energy as a matrix."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True, eq=False)
class Laplacian:
    """The quadratic form fᵀL^q f of a graph, by products with the sparse L alone.

    Parameters
    ----------
    matrix : CSR array (or ndarray) of shape (n, n)
        L = D − W, or its normalized form I − D^−½ W D^−½.
    degree : int
        The power q ≥ 1: the iterated Laplacian penalizes rougher functions more.
    n_edges : int
        |E| of the graph.
    flat : bool, default=False
        Whether L vanishes on constants.
    """

    matrix: sp.csr_array
    degree: int
    n_edges: int
    flat: bool = False

    @property
    def n(self):
        """Number of vertices."""
        return self.matrix.shape[0]

    def product(self, f):
        """L^q f for f of shape (n,) or (n, m)."""
        for _ in range(self.degree):
            f = self.matrix @ f
        return f

    def energy(self, f, power=2.0):
        """fᵀL^q f for f of shape (n,); `power` must be 2."""
        if power != 2:
            raise ValueError(f"power must be 2 for the energy of a Laplacian, got {power}")
        half = f
        for _ in range(self.degree // 2):
            half = self.matrix @ half
        other = self.matrix @ half if self.degree % 2 else half
        return max(0.0, float(half @ other))

    def energy_gradient(self, f, power=2.0):
        """2L^q f, shape (n,)."""
        if power != 2:
            raise ValueError(f"power must be 2 for the energy of a Laplacian, got {power}")
        return 2.0 * self.product(f)


def laplacian(graph, normalized=False, degree=1):
    """The Laplacian of a graph.

    Parameters
    ----------
    graph : Graph or CompleteGraph
        Of a complete graph the matrix is dense.
    normalized : bool, default=False
        I − D^−½ W D^−½ in place of D − W. A vertex without edges gets a row of zeros in both. The
        normalized form does not vanish on constants, but on multiples of D^½ 1.
    degree : int, default=1
        The power q of the iterated Laplacian L^q.

    Returns
    -------
    Laplacian
    """
    W = graph.adjacency()
    sums = np.asarray(W.sum(axis=1)).ravel()
    diagonal = sums
    if normalized:
        scale = np.divide(1.0, np.sqrt(sums), out=np.zeros_like(sums), where=sums > 0)
        diagonal = (sums > 0).astype(float)
        W = W * scale * scale[:, None] if isinstance(W, np.ndarray) else _scaled(W, scale)
    if isinstance(W, np.ndarray):
        L = -W
        L[np.diag_indices_from(L)] += diagonal
    else:
        L = sp.csr_array(sp.diags_array(diagonal) - W)
        L.sort_indices()
    return Laplacian(L, int(degree), graph.n_edges, not normalized)


def _scaled(W, scale):
    D = sp.diags_array(scale)
    return D @ W @ D
