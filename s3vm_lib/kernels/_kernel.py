"""The kernel functions: blocks of values, diagonals, and what ``gamma`` stands for."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from s3vm_lib.kernels._rows import (
    KERNELS,
    center_of,
    csr_distance_row,
    floats,
    is_far,
    manhattan_row,
    squared_norms,
)
from s3vm_lib.utils.row_blocks import sized_slices
from s3vm_lib.utils.threads import in_threads

_ROWS = 2**16  # rows that are read at once
_PARAMETERS = {
    "linear": ("sigma_f",),
    "poly": ("gamma", "degree", "coef0", "sigma_f"),
    "rbf": ("gamma", "sigma_f"),
    "laplacian": ("gamma", "sigma_f"),
    "precomputed": (),
}


@dataclass(frozen=True)
class Kernel:
    """A kernel function with its parameters.

    Parameters
    ----------
    name : {"linear", "poly", "rbf", "laplacian", "precomputed"}
        ``linear``: ⟨x, z⟩; ``poly``: (γ⟨x, z⟩ + coef0)^degree; ``rbf``: σ_f² exp(−γ‖x − z‖²);
        ``laplacian``: σ_f² exp(−γ‖x − z‖₁). With ``precomputed``, X itself holds the values: the
        n × n Gram matrix of the training rows, or m × n values between new and training rows.
    gamma : float, default=1.0
        Inverse squared width (rbf), inverse width (laplacian) or scale (poly).
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial kernel.
    sigma_f : float, default=1.0
        Output standard deviation; every kernel but ``precomputed`` is multiplied by its square.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib.kernels import Kernel
    >>> kernel = Kernel("poly", degree=2, coef0=1.0)
    >>> kernel.gram(np.array([[1.0], [2.0]]), np.array([[3.0]])).tolist()
    [[16.0], [49.0]]
    """

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    sigma_f: float = 1.0

    def __post_init__(self):
        if self.name not in KERNELS:
            raise ValueError(f"kernel must be one of {KERNELS}, got {self.name!r}")

    @property
    def code(self):
        """Integer code of the kernel for the compiled loops."""
        return KERNELS.index(self.name)

    @property
    def parameters(self):
        """The parameters that the values of this kernel depend on, by name."""
        return {name: getattr(self, name) for name in _PARAMETERS[self.name]}

    def gram(self, X, Y=None):
        """Kernel values between the rows of X and of Y.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n, d)
            Rows; with ``precomputed`` the kernel values themselves, returned as they are.
        Y : ndarray or CSR matrix of shape (m, d), default=None
            Other rows; None means X. Not allowed with ``precomputed``.

        Returns
        -------
        ndarray of shape (n, m)

        Notes
        -----
        Computed in blocks of rows, which stay in the processor's cache and are shared among the
        threads of the caller's ``n_jobs``. Without Y, dense values are computed once for (i, j)
        and (j, i). With rbf, dense rows are shifted by the median of nine rows of Y (of X without
        it), which few outliers do not move. Integers are converted to floats.
        """
        if self.name == "precomputed":
            if Y is not None:
                raise ValueError("kernel='precomputed' has no rows to compare: pass X alone")
            return np.asarray(X)
        sparse, once = sp.issparse(X) or sp.issparse(Y), Y is None
        X = floats(X)
        Y = X if once else floats(Y)
        far = False
        if self.name == "rbf" and not sparse and Y.shape[0]:
            # Distances of points near each other and far from 0 would lose their digits. Of Y, so
            # that what becomes of a row of X does not depend on the others.
            center = center_of(Y)
            near = Y - center
            far = is_far(self, near)
            if not far:
                X, Y = near if once else X - center, near
        elif sparse and self.name in ("rbf", "laplacian"):
            far = is_far(self, Y)
        squares = None
        if self.name == "rbf" and not far:
            rows = squared_norms(X)
            squares = rows, rows if once else squared_norms(Y)
        if sparse and (far or self.name == "laplacian"):
            X, Y = sp.csr_matrix(X, dtype=np.float64), sp.csr_matrix(Y, dtype=np.float64)
        dtype = np.result_type(X.dtype, Y.dtype)
        if self.name == "laplacian":
            dtype = np.dtype(float)
        K = np.empty((X.shape[0], Y.shape[0]), dtype)
        half = once and not sparse

        def block(b):
            if not half:
                self._fill(K[b], X[b], Y, None if squares is None else (squares[0][b], squares[1]))
                return
            after = slice(b.stop, None)
            for columns in (b, after):
                pair = None if squares is None else (squares[0][b], squares[1][columns])
                self._fill(K[b, columns], X[b], X[columns], pair)
            K[after, b] = K[b, after].T

        in_threads(block, sized_slices(*K.shape))
        if once and self.name == "rbf":
            np.fill_diagonal(K, self.sigma_f**2)
        return K

    def _fill(self, K, X, Y, squares):
        """Write the values between the rows of X and of Y into K.

        Those of rbf follow from the squares of the rows, or where these are None from differences.
        """
        if self.name == "laplacian" or (self.name == "rbf" and squares is None):
            self._distances(X, Y, K)
            K *= -self.gamma
            np.exp(K, out=K)
        elif sp.issparse(X) or sp.issparse(Y):
            K[:] = _dense(X @ Y.T)
        else:
            np.matmul(X, Y.T, out=K)
        if squares is not None:
            K *= -2
            K += squares[0][:, None] + squares[1]  # the same for (i, j) and (j, i)
            np.maximum(K, 0, out=K)
            K *= -self.gamma
            np.exp(K, out=K)
        elif self.name == "poly":
            K *= self.gamma
            K += self.coef0
            power, rest = K.copy(), self.degree - 1  # `**` takes long where bases are negative
            while rest:
                if rest % 2:
                    K *= power
                power, rest = power * power if rest > 1 else power, rest // 2
        if self.sigma_f != 1:
            K *= self.sigma_f**2

    def _distances(self, X, Y, out):
        """Distances between the rows, ‖x − z‖₁ or with rbf ‖x − z‖², by their differences."""
        if not sp.issparse(X):
            from scipy.spatial.distance import cdist

            out[:] = cdist(X, Y, "sqeuclidean" if self.name == "rbf" else "cityblock")
            return
        rows = Y.data, Y.indices, Y.indptr
        far = self.name == "rbf" or is_far(self, Y)
        for i in range(X.shape[0]):
            x, present = np.ravel(X[i].toarray()), X.indices[X.indptr[i] : X.indptr[i + 1]]
            if far:
                csr_distance_row(x, present, *rows, self.name == "rbf", out[i])
            else:
                manhattan_row(x, *rows, out[i])

    def diagonal(self, X):
        """The values k(x, x) of the rows of X, shape (n,); X is square with ``precomputed``."""
        if self.name == "precomputed":
            return np.diagonal(X).copy()
        if self.name in ("rbf", "laplacian"):
            return np.full(X.shape[0], self.sigma_f**2)
        diagonal = squared_norms(X)
        if self.name == "poly":
            diagonal = (self.gamma * diagonal + self.coef0) ** self.degree
        return self.sigma_f**2 * diagonal

    def columns(self, X, index):
        """The columns ``index`` of the Gram matrix of X, shape (n, len(index))."""
        return X[:, index] if self.name == "precomputed" else self.gram(X, X[index])


def _dense(K):
    return K.toarray() if sp.issparse(K) else np.asarray(K)


def resolve_gamma(gamma, X, sample_weight=None):
    """The number that ``gamma`` stands for on the data X.

    Parameters
    ----------
    gamma : {"scale", "variance", "auto"} or float
        ``"scale"`` means 1 / (d · Var X) with the variance of all entries together, as in
        scikit-learn: a column whose mean is far from the others' makes it small. ``"variance"``
        means one over the sum of the variances of the columns, which no shift of X changes; where
        the columns have the same mean both are equal. ``"auto"`` means 1 / d.
    X : ndarray or CSR matrix of shape (n, d)
        Training rows, labeled and unlabeled.
    sample_weight : ndarray of shape (n,), default=None
        Weights of the rows in the variance, so that a weight of k equals k copies of the row.

    Returns
    -------
    float
        1.0 where the variance is 0, rounding apart.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    d = X.shape[1]
    if gamma == "auto":
        return 1.0 / d
    s = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    # All entries are one sample, or those of each column are.
    pooled, width = (np.sum, d) if gamma == "scale" else (np.asarray, 1)
    total = s.sum() * width
    if sp.issparse(X):
        mean = pooled(s @ X) / total
        # In two passes: E x² − mean² would leave rounding of the size of mean².
        stored = np.repeat(s, np.diff(X.indptr))
        at, present = mean, stored.sum()
        if gamma == "variance":
            at, present = mean[X.indices], np.bincount(X.indices, stored, d)
            present[np.bincount(X.indices, minlength=d) == X.shape[0]] = total  # to the last bit
        squares = float(stored @ (X.data - at) ** 2) + float(np.sum((total - present) * mean**2))
    else:
        # Block by block, so that a memory map is read and not copied.
        blocks = [slice(k, k + _ROWS) for k in range(0, X.shape[0], _ROWS)]
        mean = sum(pooled(s[b] @ np.asarray(X[b], dtype=float)) for b in blocks) / total
        squares = sum(
            float(np.sum(s[b] @ (np.asarray(X[b], dtype=float) - mean) ** 2)) for b in blocks
        )
    variance = squares / total
    rounding = X.shape[0] * width * np.finfo(float).eps * np.linalg.norm(mean)  # of it, at most
    return 1.0 / (width * variance) if variance > rounding**2 else 1.0
