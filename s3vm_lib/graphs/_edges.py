"""Lists of edges and complete graphs, with the energy of outputs on them."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from s3vm_lib.kernels import Kernel
from s3vm_lib.utils.jit import njit

_CHUNK = 2**22  # pairs of a complete graph that are looked at together


@njit
def edge_energy(i, j, weights, f, power):
    """Σ_e μ_e |f_i − f_j|^p over a list of edges.

    Parameters
    ----------
    i, j : int ndarrays of shape (n_edges,)
        Ends of the edges.
    weights : ndarray of shape (n_edges,)
        Weights μ.
    f : ndarray of shape (n,)
        Outputs.
    power : float
        Exponent p ≥ 1.

    Returns
    -------
    float
    """
    total = 0.0
    for e in range(i.size):
        difference = abs(f[i[e]] - f[j[e]])
        if power == 2.0:
            total += weights[e] * difference * difference
        elif power == 1.0:
            total += weights[e] * difference
        else:
            total += weights[e] * difference**power
    return total


@njit
def power_slope(difference, power):
    """Derivative p sign(d) |d|^(p−1) of |d|^p; 0 at the kink d = 0 of p = 1.

    Parameters
    ----------
    difference : float
        d = f_i − f_j.
    power : float
        Exponent p ≥ 1.

    Returns
    -------
    float
    """
    if power == 2.0:
        return 2.0 * difference
    if difference == 0.0:
        return 0.0
    size = power * abs(difference) ** (power - 1.0)
    return size if difference > 0.0 else -size


@njit
def edge_energy_gradient(i, j, weights, f, power, out):
    """Add the derivatives of `edge_energy` in the outputs to ``out``, shape (n,)."""
    for e in range(i.size):
        slope = weights[e] * power_slope(f[i[e]] - f[j[e]], power)
        out[i[e]] += slope
        out[j[e]] -= slope


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph as a list of edges.

    Parameters
    ----------
    n : int
        Number of vertices, the rows of the training data.
    i, j : ndarrays of int64, shape (n_edges,)
        Ends of the edges, i < j, sorted by i and then by j; every edge once.
    weights : ndarray of shape (n_edges,)
        Weights μ > 0.
    """

    n: int
    i: np.ndarray
    j: np.ndarray
    weights: np.ndarray

    @property
    def n_edges(self):
        """Number of edges |E|."""
        return int(self.i.size)

    @property
    def total_weight(self):
        """Σ_E μ_ij."""
        return float(self.weights.sum())

    def adjacency(self):
        """The symmetric matrix W of the weights, CSR of shape (n, n)."""
        rows, columns = np.r_[self.i, self.j], np.r_[self.j, self.i]
        return sp.csr_array((np.r_[self.weights, self.weights], (rows, columns)), (self.n, self.n))

    def induced(self, rows):
        """The graph on some of the vertices, given by ascending indices."""
        place = np.full(self.n, -1)
        place[rows] = np.arange(len(rows))
        i, j = place[self.i], place[self.j]
        kept = (i >= 0) & (j >= 0)
        return Graph(len(rows), i[kept], j[kept], self.weights[kept])

    def energy(self, f, power=2.0):
        """Σ_E μ_ij |f_i − f_j|^p at outputs f of shape (n,)."""
        return float(edge_energy(self.i, self.j, self.weights, _outputs(f), float(power)))

    def energy_gradient(self, f, power=2.0):
        """Derivatives of `energy` in the outputs, shape (n,); 0 at a kink."""
        out = np.zeros(self.n)
        edge_energy_gradient(self.i, self.j, self.weights, _outputs(f), float(power), out)
        return out


@dataclass(frozen=True, eq=False)
class CompleteGraph:
    """All pairs of rows, joined with weights that are computed when they are needed.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    gamma : float or None
        Weights exp(−γ‖x_i − x_j‖²); None means weights 1.
    labeled : ndarray of bool, shape (n,), default=None
        Two rows marked here are not joined. None joins all pairs.
    """

    X: np.ndarray
    gamma: float | None
    labeled: np.ndarray | None = None

    @property
    def n(self):
        """Number of vertices."""
        return self.X.shape[0]

    @property
    def n_edges(self):
        """Number of edges |E|."""
        l = 0 if self.labeled is None else int(np.sum(self.labeled))
        return self.n * (self.n - 1) // 2 - l * (l - 1) // 2

    @property
    def total_weight(self):
        """Σ_E μ_ij, by a pass over all pairs."""
        return sum(float(weights.sum()) for _, _, weights in self._blocks())

    def _blocks(self):
        """(first row, end, weights (end − first, n)), each edge in one entry, the others 0."""
        step = max(1, _CHUNK // max(1, self.n))
        for start in range(0, self.n, step):
            end = min(self.n, start + step)
            if self.gamma is None:
                W = np.ones((end - start, self.n))
            else:
                W = Kernel("rbf", self.gamma).gram(self.X[start:end], self.X)
            W[np.arange(start, end)[:, None] >= np.arange(self.n)] = 0.0
            if self.labeled is not None:
                W[np.ix_(self.labeled[start:end], self.labeled)] = 0.0
            yield start, end, W

    def induced(self, rows):
        """The graph on some of the vertices, given by ascending indices."""
        labeled = None if self.labeled is None else np.asarray(self.labeled)[rows]
        return CompleteGraph(self.X[rows], self.gamma, labeled)

    def adjacency(self):
        """The symmetric matrix W of the weights, dense, of shape (n, n)."""
        W = np.concatenate([weights for _, _, weights in self._blocks()])
        return W + W.T

    def energy(self, f, power=2.0):
        """Σ_E μ_ij |f_i − f_j|^p at outputs f of shape (n,), by a pass over all pairs."""
        f = _outputs(f)
        return sum(
            float(np.sum(W * np.abs(f[start:end, None] - f) ** power))
            for start, end, W in self._blocks()
        )

    def energy_gradient(self, f, power=2.0):
        """Derivatives of `energy` in the outputs, shape (n,); 0 at a kink."""
        f, out = _outputs(f), np.zeros(self.n)
        for start, end, W in self._blocks():
            difference = f[start:end, None] - f
            slope = W * np.sign(difference) * power * np.abs(difference) ** (power - 1)
            out[start:end] += slope.sum(axis=1)
            out -= slope.sum(axis=0)
        return out


def _outputs(f):
    return np.ascontiguousarray(f, dtype=np.float64)
