"""The kernel values of a fixed set of rows: the whole matrix, or a cache of its rows."""

import copy

import numpy as np
import scipy.sparse as sp

from s3vm_lib.gram._cache import add_rows, empty_cache, fetch_all
from s3vm_lib.kernels import kernel_rows, squared_norms

# Kernel values outside, or whose rounding a tolerance would notice, are kept in double precision.
_RANGE_SINGLE = (1e-25, 1e30)
_LEAST = 2.0**40  # k(x, x), in units of the smallest normal number: it leaves room for shares of it
_TOL_SINGLE = 1e-5  # least tolerance with single precision
_ROUNDING = 0.1 / np.finfo(np.float32).eps  # largest kernel value, in units of the tolerance


def _stretch(X, rows, kernel):
    """How many times their own rounding kernel values feel that of the rows, at least 1.

    Rows near each other and far from 0 lose digits of the difference x − z (rbf and laplacian),
    sparse ones with rbf more, of ‖x‖² + ‖z‖² − 2⟨x, z⟩. Dense ones are centered in ``rows``.
    """
    x = X if sp.issparse(X) else rows.XT.T
    if kernel.name == "laplacian":
        return max(1.0, kernel.gamma * float(abs(x).sum(axis=1).max()))
    if kernel.name == "rbf":
        square = kernel.gamma * float(squared_norms(x).max())
        return max(1.0, square if sp.issparse(X) else np.sqrt(square))
    return 1.0


class Gram:
    """Kernel values of one data set, as a row cache or as the whole matrix.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Rows; the n × n Gram matrix with ``kernel="precomputed"``.
    kernel : Kernel
    megabytes : float, default=1000
        Memory for kernel values; at least two rows are kept whatever it says.
    storage : {"auto", "full", "rows"}, default="auto"
        ``"full"`` computes the whole matrix at once, ``"rows"`` rows as they are visited.
        ``"auto"`` takes the matrix when it fits and most of its rows will be visited: when it is
        small, or when ``n_solves > 1`` problems share it.
    dtype : {np.float32, np.float64}, default=np.float32
        Precision of the values; sums over them are always accumulated in double precision. Single
        precision becomes double for values that it cannot hold, or not precisely enough for
        ``tol``.
    n_solves : int, default=1
        Number of problems that will be solved with these values.
    mean_weights : ndarray of shape (n,), default=None
        Weights ω with Σω = 1: adds the mean Σ_j ω_j φ(x_j) of the rows in feature space as one
        more point, the last one. Constraints on the mean output need it.
    tol : float, default=np.inf
        Precision that outputs are to have: double precision below 1e-5, and where the rounding of
        single precision, relative to the largest k(x, x), exceeds a tenth of it. With rbf and
        laplacian it is that of the rows where it moves values more: with rows, or groups of them,
        at a distance of hundreds of widths of the kernel. Coefficients, which multiply the
        rounding, are not known here: outputs with a C far above 1 may keep fewer digits.

    Attributes
    ----------
    storage : {"full", "rows"}
        What was chosen.
    diagonal : ndarray of shape (n,) or (n + 1,)
        Values k(x, x), and a tiny number in place of 0.
    rows : KernelRows or None
        What computes the values; None where all are there.
    null : ndarray of shape (n + 1,) or None
        (ω, −1) with a mean point: a direction v with Kv = 0 and Σv = 0 exactly.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib.gram import Gram
    >>> from s3vm_lib.kernels import Kernel
    >>> gram = Gram(np.array([[1.0], [2.0], [4.0]]), Kernel("linear"))
    >>> gram.storage, gram.diagonal.tolist()
    ('full', [1.0, 4.0, 16.0])
    """

    _SMALL = 1500

    def __init__(
        self,
        X,
        kernel,
        megabytes=1000,
        storage="auto",
        dtype=np.float32,
        n_solves=1,
        mean_weights=None,
        tol=np.inf,
    ):
        n = X.shape[0]
        size = n if mean_weights is None else n + 1
        precomputed = kernel.name == "precomputed"
        diagonal = kernel.diagonal(X)
        if not np.all(np.isfinite(diagonal)):
            raise ValueError(
                f"X is too large for kernel={kernel.name!r}: kernel values overflow; scale the data"
            )
        if precomputed:
            dtype = X.dtype
        else:
            sizes = (diagonal.max(), np.abs(X).max() ** 2, kernel.gamma)
            if min(sizes) < _RANGE_SINGLE[0] or max(sizes) > _RANGE_SINGLE[1]:
                dtype = np.float64
            rows = kernel_rows(X, kernel, dtype)
            if dtype == np.float32 and (
                tol < _TOL_SINGLE or diagonal.max() * _stretch(X, rows, kernel) > _ROUNDING * tol
            ):
                dtype = np.float64
                rows = kernel_rows(X, kernel)
        slots = int(megabytes * 2**20 / (size * np.dtype(dtype).itemsize))
        # The mean of any kernel but the linear one takes the rows of all its points.
        visits_all = mean_weights is not None and kernel.name != "linear"
        if precomputed:
            storage = "full"
        elif storage == "auto":
            most = n <= self._SMALL or n_solves > 1 or visits_all
            storage = "full" if slots >= size and most else "rows"
        self.storage = storage
        slots = size if storage == "full" else min(max(slots, 2), size)
        mean = np.zeros(0 if mean_weights is None else size, dtype)
        if precomputed:
            values = X if mean_weights is None else np.pad(X, (0, 1))
            values = np.require(values, requirements=["C", "W"])  # as the compiled loops want it
            self.rows = None
        else:
            values = np.empty((slots, size), dtype)
            self.rows = rows
        self.cache = empty_cache(values, mean)
        if precomputed:
            self.cache.slot[:] = self.cache.owner[:] = np.arange(size)
            self.cache.clock[1] = size
        self.null = None
        if mean_weights is not None:
            self.null = np.append(mean_weights, -1.0)
            if storage == "full":
                self._fetch_all()
            mean[:] = self._mean(X, kernel, mean_weights)
            used = self.cache.clock[1]
            values[:used, n] = mean[self.cache.owner[:used]]
            if storage == "full":
                values[self.cache.slot[n]] = mean
            diagonal = np.append(diagonal, mean[n])
        self.diagonal = np.maximum(diagonal, _LEAST * np.finfo(dtype).tiny).astype(dtype)
        if storage == "full":
            self._fetch_all()

    def _fetch_all(self):
        fetch_all(self.cache, self.rows)
        self.rows = None

    def _mean(self, X, kernel, weights):
        """Kernel values between the mean point and all points, itself included, shape (n + 1,)."""
        n = weights.size
        if kernel.name == "linear":
            mean = kernel.sigma_f**2 * np.asarray(X @ (X.T @ weights)).ravel()
        elif kernel.name == "precomputed":
            mean = np.asarray(weights @ X, dtype=float)
        else:
            mean = np.zeros(n + 1)
            add_rows(self.cache, self.rows, weights, mean)
            mean = mean[:n]
        return np.append(mean, weights @ mean)

    def apart(self):
        """The same values, all of them there, for a thread of its own."""
        twin, cache = copy.copy(self), self.cache
        twin.cache = cache._replace(stamp=cache.stamp.copy(), clock=cache.clock.copy())
        return twin

    def restrict(self, keep):
        """(cache, rows) for the sub-matrix of the indices ``keep``, filled from this cache."""
        top = self.cache
        slots = min(keep.size, max(2, top.values.size // keep.size))
        values = np.empty((slots, keep.size), top.values.dtype)
        mean, points = top.mean[:0], keep
        if top.mean.size and keep[-1] + 1 == top.mean.size:
            mean, points = top.mean[keep], keep[:-1]
        cache = empty_cache(values, mean, top.values, top.slot[keep], keep)
        r = self.rows
        if r is None:
            return cache, None
        if r.indptr.size > 1:
            counts = np.diff(r.indptr)[points]
            indptr = np.r_[0, np.cumsum(counts)]
            take = np.repeat(r.indptr[points] - indptr[:-1], counts) + np.arange(indptr[-1])
            return cache, r._replace(
                squares=r.squares[points], data=r.data[take], indices=r.indices[take], indptr=indptr
            )
        return cache, r._replace(XT=np.ascontiguousarray(r.XT[:, points]))
