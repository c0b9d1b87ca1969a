"""The pivoted Cholesky factorization K ≈ GGᵀ, from columns that are computed on demand."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from s3vm_lib.utils.row_blocks import sized_slices
from s3vm_lib.utils.threads import in_threads

_PART = 2**16  # numbers of a factor that are computed at once


class LowRank(NamedTuple):
    """A factorization K ≈ GGᵀ (see `pivoted_cholesky`)."""

    factor: np.ndarray  # G, shape (n, r)
    pivots: np.ndarray  # rows of the data that span the approximation, shape (r,)
    residual: float  # largest diagonal entry of K − GGᵀ, relative to that of K


def pivoted_cholesky(
    X, kernel, max_rank=None, tol=1e-6, *, first=None, pivoting="greedy", block=32
):
    """Low-rank Cholesky factor of a Gram matrix whose columns are computed on demand.

    The classical algorithm takes as its next pivot the row with the largest residual diagonal
    k(x, x) − ‖g(x)‖². Here ``block`` rows are proposed at once, factorized among themselves with
    pivoting, and kept as long as their own residual stays large enough: all heavy work becomes
    matrix products, and near-duplicates within a block are still turned down.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Data; the n × n Gram matrix itself with ``kernel="precomputed"``.
    kernel : Kernel
        Positive semi-definite kernel.
    max_rank : int, default=None
        Largest number of columns; None means n.
    tol : float, default=1e-6
        Stop when the largest diagonal entry of K − GGᵀ is at most tol times that of K.
    first : ndarray of shape (m,), default=None
        Rows that precede all others; linearly dependent ones are left out.
    pivoting : {"greedy", "residual"}, default="greedy"
        ``"greedy"`` proposes the rows with the largest residuals and keeps those that stay above
        half of the largest: the fastest way to a small residual. It visits outliers, however, and
        where the rank is far too small for the kernel the bulk of the data is seen last.
        ``"residual"`` proposes a systematic sample in proportion to the residual, together with
        the row of the largest. No random numbers are needed.
    block : int, default=32
        Number of rows proposed at once; 1 gives the classical algorithm.

    Returns
    -------
    LowRank
        ``factor`` (n, r), ``pivots`` (r,) and the relative ``residual``. ``factor[pivots]`` is
        lower triangular, so that coefficients α on the pivots alone reproduce f = Gw on every
        row, seen or unseen, by solving ``factor[pivots].T @ α = w``.

    References
    ----------
    S. Fine and K. Scheinberg, "Efficient SVM training using low-rank kernel representations",
    JMLR 2 (2001); H. Harbrecht, M. Peters and R. Schneider, "On the low-rank approximation by the
    pivoted Cholesky decomposition", Applied Numerical Mathematics 62 (2012); Y. Chen, E. N.
    Epperly, J. A. Tropp and R. J. Webber, "Randomly pivoted Cholesky", Communications on Pure and
    Applied Mathematics 78 (2025), for pivots in proportion to the residual.
    """
    if pivoting not in ("greedy", "residual"):
        raise ValueError(f"pivoting must be 'greedy' or 'residual', got {pivoting!r}")
    n = X.shape[0]
    max_rank = n if max_rank is None else min(int(max_rank), n)
    # The numbers are the lines of the chapter's algorithm, a block of pivots at a time. 1
    residual = np.asarray(kernel.diagonal(X), dtype=float)
    largest = max(residual.max(), np.finfo(float).tiny)
    # Below the floor a pivot is rounding noise of the columns before it.
    floor = max(tol, 4 * np.finfo(float).eps * n) * largest
    queue = [] if first is None else [first[k : k + block] for k in range(0, len(first), block)]
    G = np.empty((n, max_rank), order="F")
    pivots = np.empty(max_rank, dtype=np.intp)
    r = 0
    # 2, 3: the candidates are the rows that are told to come first, or have large residuals.
    while r < max_rank and residual.max() > floor:
        threshold = floor
        if queue:
            candidates = queue.pop(0)[: max_rank - r]
        elif pivoting == "residual":
            candidates = _systematic_sample(residual, min(block, max_rank - r))
        else:
            count = min(block, max_rank - r)
            # Stable: all residuals of an RBF kernel are equal at first, on every processor.
            candidates = np.argsort(-residual, kind="stable")[:count]
            threshold = max(0.5 * residual[candidates[0]], floor)
        # What is left of their own kernel values decides which of them become pivots.
        S = _square(X, kernel, candidates) - G[candidates, :r] @ G[candidates, :r].T
        chosen = _select(S, threshold)
        if chosen.size == 0:
            residual[candidates] = 0.0  # rounding had kept them above the floor
            continue
        new = candidates[chosen]
        # 4: their columns, less what is explained; 5: what is left of the diagonal.
        L = np.linalg.cholesky(S[np.ix_(chosen, chosen)])
        end, points = r + new.size, None if kernel.name == "precomputed" else X[new]
        known = G[new, :r].T

        def fill(b, r=r, end=end, new=new, points=points, known=known, L=L):
            values = X[b, new] if points is None else kernel.gram(X[b], points)
            part = solve_triangular(L, (values - G[b, :r] @ known).T, lower=True).T
            G[b, r:end] = part
            residual[b] -= np.einsum("ij,ij->i", part, part)

        in_threads(fill, sized_slices(n, 64, _PART))
        G[new, r:end] = L
        G[pivots[:r], r:end] = 0.0
        pivots[r:end] = new
        residual[pivots[:end]] = 0.0
        np.maximum(residual, 0.0, out=residual)
        r = end
    return LowRank(G[:, :r], pivots[:r], float(residual.max() / largest))


def _square(X, kernel, index):
    """Gram matrix of the rows ``index``."""
    return X[np.ix_(index, index)] if kernel.name == "precomputed" else kernel.gram(X[index])


def _systematic_sample(residual, size):
    """Up to ``size`` different rows, in proportion to the residual, the largest among them."""
    order = np.argsort(residual, kind="stable")
    mass = np.cumsum(residual[order])
    ticks = (np.arange(size) + 0.5) / size * mass[-1]
    sample = order[np.minimum(np.searchsorted(mass, ticks), order.size - 1)]
    sample[-1] = order[-1]
    return np.unique(sample)


def _select(S, threshold):
    """Pivots of a small S, largest first, whose own residual is above the threshold."""
    S = S.copy()
    order = []
    while len(order) < S.shape[0]:
        diagonal = np.diagonal(S).copy()
        diagonal[order] = 0.0
        p = int(np.argmax(diagonal))
        if diagonal[p] <= threshold:
            break
        order.append(p)
        S -= np.outer(S[:, p], S[p]) / diagonal[p]
    return np.array(order, dtype=np.intp)
