"""The coordinates in which the objective is minimized.

Every choice offers the same three operations on a coefficient vector w: the outputs f on the
training rows (offset apart), the squared norm of f in the RKHS, and the gradient of the whole
objective from the derivatives of the losses, whose size is that of the ``unit``. Outputs have
weighted mean zero over the unlabeled rows where a ``mean`` is given: that is the centering of the
balance constraint (13).
"""

from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, solve_triangular
from scipy.sparse.linalg import eigsh

from s3vm_lib.kernels import pivoted_cholesky, squared_norms

_LARGE = 2**20  # values of Z from which its products take as long as reading it


class FeatureMap:
    """f = Zw − (μᵀw)·1 and ‖f‖² = wᵀw: rows of Z are features, μ their mean, never subtracted.

    Centering Z would fill a sparse matrix. Subtracting the number μᵀw from every output, and
    μ·Σa from the gradient, costs O(n + d) and leaves Z as it is (footnote 5 of the paper).

    Parameters
    ----------
    Z : ndarray or CSR matrix of shape (n, d)
        Features of the training rows.
    mean_weight : ndarray of shape (n,) or None
        Weights that sum to one and define μ = Zᵀ·mean_weight; None means μ = 0.
    expand : callable, default=None
        Maps w to the pair (indices of training rows, their coefficients α) with Zw = K·α; None
        where w itself is the model (linear kernel).
    shift : callable, default=None
        Maps w to a constant of the model that is not in μ; None means 0.
    """

    def __init__(self, Z, mean_weight=None, expand=None, shift=None):
        self.Z = Z
        self.dimension = Z.shape[1]
        self.mean = None if mean_weight is None else np.asarray(Z.T @ mean_weight)
        self.expand = expand
        self.shift = shift
        self._by_rows = self._coarse = None

    @cached_property
    def unit(self):
        """Root mean square of √k(x, x) over the rows."""
        return float(np.sqrt(squared_norms(self.Z).mean()))

    def coarse(self):
        """Return the features in single precision where Z is dense and large; None elsewhere."""
        Z = self.Z
        # On small features a product takes no longer in double precision.
        if type(Z) is not np.ndarray or Z.dtype != np.float64 or Z.size < _LARGE:
            return None
        if self._coarse is None:
            coarse = SingleFeatures(Z.astype(np.float32))
            coarse.mean = self.mean
            self._coarse = coarse  # whole: the problems of several classes share it in threads
        return self._coarse

    def arrays(self):
        """Return Z in C order, and μ (empty for 0); None where Z is sparse or in float32."""
        if type(self.Z) is not np.ndarray or self.Z.dtype != np.float64:
            return None
        if self._by_rows is None:
            self._by_rows = np.ascontiguousarray(self.Z)
        return self._by_rows, np.empty(0) if self.mean is None else self.mean

    def _times(self, w):
        return self.Z @ w

    def _adjoint(self, a):
        return self.Z.T @ a

    def outputs(self, w):
        """Return outputs f, shape (n,), without the offset."""
        f = self._times(w)
        if self.mean is not None:
            f -= self.mean @ w
        return f

    def squared_norm(self, w, f):
        """Return ‖f‖² in the RKHS."""
        return w @ w

    def gradient(self, a, w, lam):
        """Return the gradient Zᵀa − μ·Σa + 2λw, with the derivatives ``a``, (n,), of the losses."""
        g = self._adjoint(a)
        if self.mean is not None:
            g -= a.sum() * self.mean
        g += 2.0 * lam * w
        return g

    def applied(self, a):
        """Return K̃a with the Gram matrix K̃ of the (centered) features, shape (n,)."""
        return self.outputs(self.gradient(a, 0.0, 0.0))

    def weighted_gram(self, D):
        """Return Σ_i D_i z̃_i z̃_iᵀ and Σ_i D_i z̃_i over the centered features z̃_i = z_i − μ.

        What losses with second derivatives D add to the Hessian in w, and in w and the offset.

        Parameters
        ----------
        D : ndarray of shape (n,)
            Factors of either sign; rows of factor 0 cost nothing.

        Returns
        -------
        gram : ndarray of shape (d, d)
            Dense, by O(n d²) operations of BLAS for dense features.
        column : ndarray of shape (d,)
        """
        # Σ D (z − μ)(z − μ)ᵀ, multiplied out: Z itself is never centered.
        gram = self._gram_of(D)
        column = self._adjoint(D)
        if self.mean is not None:
            crossed = np.outer(self.mean, column - 0.5 * D.sum() * self.mean)
            gram -= crossed + crossed.T
            column -= D.sum() * self.mean
        return gram, column

    def _gram_of(self, D):
        """Return ZᵀDZ as a difference of two products AᵀA, which BLAS does at half cost."""
        gram = np.zeros((self.dimension, self.dimension))
        for sign in (1.0, -1.0):
            index = np.flatnonzero(sign * D > 0)
            if index.size:
                root = np.sqrt(np.abs(D[index]))[:, None]
                part = self.Z if index.size == D.size else self.Z[index]
                if sp.issparse(part):
                    scaled = part.multiply(root).tocsr()
                    gram += sign * (scaled.T @ scaled).toarray()
                else:
                    scaled = part * root
                    gram += sign * (scaled.T @ scaled)
        return gram

    def rows(self, index):
        """Return the same features on some rows only, with the same μ."""
        part = FeatureMap(self.Z[index])
        part.mean = self.mean
        return part

    def model(self, w):
        """Return coefficients and constant of f on new points.

        Returns
        -------
        support : ndarray of shape (m,) or None
            Training rows; None for the linear kernel.
        coefficients : ndarray of shape (m,) or (d,)
            α of f(x) = Σ α_i k(x_i, x) + constant, or the weight vector.
        constant : float
        """
        constant = 0.0 if self.mean is None else -float(self.mean @ w)
        if self.shift is not None:
            constant += self.shift(w)
        if self.expand is None:
            return None, w, constant
        return *self.expand(w), constant


class SingleFeatures(FeatureMap):
    """`FeatureMap` whose products are taken in single precision: half as much of Z to read."""

    def _times(self, w):
        return (self.Z @ w.astype(np.float32)).astype(float)

    def _adjoint(self, a):
        return (self.Z.T @ a.astype(np.float32)).astype(float)


class RawCoefficients:
    """f = K̃c and ‖f‖² = cᵀK̃c: the paper's own coordinates, equations (4) and (5).

    K̃ is the Gram matrix of the centered features, K̃ = (I − 1mᵀ) K (I − m1ᵀ) with the weights m
    of the mean, or K itself.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix.
    mean_weight : ndarray of shape (n,) or None
        Weights m that sum to one.
    """

    def __init__(self, K, mean_weight=None):
        self.column_mean = None if mean_weight is None else K @ mean_weight
        self.K = centered(K, mean_weight)
        self.mean_weight = mean_weight
        self.dimension = K.shape[0]

    @property
    def unit(self):
        """Mean of k(x, x) over the rows."""
        return float(np.diagonal(self.K).mean())

    def applied(self, a):
        """Return K̃a, shape (n,)."""
        return self.K @ a

    def outputs(self, c):
        """Return outputs f = K̃c, shape (n,), without the offset."""
        return self.applied(c)

    def squared_norm(self, c, f):
        """Return ‖f‖² = cᵀf in the RKHS."""
        return c @ f

    def gradient(self, a, c, lam):
        """Return the gradient K̃a + 2λK̃c of equation (5), by one product with K̃."""
        return self.applied(a + 2.0 * lam * c)

    def model(self, c):
        """Return coefficients and constant of f on new points (see `FeatureMap.model`)."""
        support = np.arange(self.dimension)
        if self.mean_weight is None:
            return support, c, 0.0
        # Coefficients of the features as they are, in place of the centered ones.
        alpha = c - c.sum() * self.mean_weight
        return support, alpha, -float(self.column_mean @ alpha)


class RawLinearCoefficients(RawCoefficients):
    """The paper's coordinates c for the linear kernel, without the Gram matrix.

    Kc = Z(Zᵀc) costs two products with the data (equation (8), Theorems 2 and 3); the centered
    features are Z − 1μᵀ and never formed.

    Parameters
    ----------
    Z : ndarray or CSR matrix of shape (n, d)
        Data, times the output standard deviation of the kernel.
    mean_weight : ndarray of shape (n,) or None
        Weights that sum to one and define μ = Zᵀ·mean_weight; None means μ = 0.
    """

    def __init__(self, Z, mean_weight=None):
        self.features = FeatureMap(Z, mean_weight)
        self.dimension = Z.shape[0]

    @property
    def unit(self):
        """Mean of k(x, x) over the rows."""
        return self.features.unit**2

    def applied(self, a):
        """Return K̃a, shape (n,)."""
        return self.features.applied(a)

    def model(self, c):
        """Return the weight vector and constant of f on new points (see `FeatureMap.model`)."""
        return self.features.model(self.features.gradient(c, 0.0, 0.0))


def centered(K, mean_weight):
    """Center a Gram matrix on the mean of its features: (I − 1mᵀ) K (I − m1ᵀ); K where m is None.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    mean_weight : ndarray of shape (n,) or None
        Weights m that sum to one.

    Returns
    -------
    ndarray of shape (n, n)
    """
    if mean_weight is None:
        return K
    column = K @ mean_weight
    return K - column[:, None] - column[None, :] + mean_weight @ column


def mean_weight(sample_weight, unlabeled):
    """Return weights of the mean that centers the features: the unlabeled rows, or all without any.

    Parameters
    ----------
    sample_weight : ndarray of shape (n,)
    unlabeled : ndarray of bool, shape (n,)

    Returns
    -------
    ndarray of shape (n,)
        Sums to one.
    """
    weight = np.where(unlabeled, sample_weight, 0.0) if unlabeled.any() else sample_weight
    return weight / weight.sum()


def default_rank(n):
    """Rank of a kernel over n rows where none is given: n/5 within [500, 1000], at most n."""
    return min(n, max(500, n // 5), 1000)


def inverse_root(K, tol=1e-12):
    """Return W, (n, r), with WᵀKW = I on the eigenvectors above tol times the largest."""
    values, vectors = eigh(K)
    # What is left below is rounding, whose inverse root would be enormous.
    keep = values > tol * max(values[-1], np.finfo(float).tiny)
    return vectors[:, keep] / np.sqrt(values[keep])


def linear_coordinates(X, scale=1.0, mean_weight=None, raw=False):
    """Search for a linear kernel in w or in c, dense or CSR (Theorems 2 and 3).

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    scale : float, default=1.0
        Output standard deviation σ_f of the kernel.
    mean_weight : ndarray of shape (n,) or None
        See `FeatureMap`.
    raw : bool, default=False
        Search in c instead of w.

    Returns
    -------
    FeatureMap or RawLinearCoefficients
    """
    Z = X if scale == 1.0 else scale * X
    Z = sp.csr_matrix(Z) if sp.issparse(Z) else Z
    return RawLinearCoefficients(Z, mean_weight) if raw else FeatureMap(Z, mean_weight)


def cholesky_coordinates(X, kernel, max_rank=500, tol=1e-6, mean_weight=None, first=None):
    """Factor K ≈ GGᵀ by pivoted Cholesky, columns of K on demand; the variables are w = Gᵀc.

    The model lives on the r pivots alone. The penalty becomes wᵀw: in c its curvature 2λK spreads
    over as many orders of magnitude as the spectrum of K, in w it is 2λI.

    With the labeled rows among the pivots the supervised solution, from which the annealing
    starts, is represented exactly (with a fixed offset: up to the part of the mean of the features
    outside their span). Without them a low rank spoils the start, and with it the local minimum
    that is found.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    kernel : Kernel
    max_rank : int, default=500
        Largest number of pivots.
    tol : float, default=1e-6
        See `s3vm_lib.kernels.pivoted_cholesky`.
    mean_weight : ndarray of shape (n,) or None
        See `FeatureMap`.
    first : ndarray of shape (m,), default=None
        Rows that are taken as pivots before all others, usually the labeled ones; at most half of
        the pivots, or all if they are all rows. The others are then spread in proportion to the
        residual. None chooses every pivot greedily.

    Returns
    -------
    FeatureMap
    """
    factor, pivots, _ = low_rank(X, kernel, max_rank, tol, first)
    corner = factor[pivots]

    def expand(w):
        return pivots, solve_triangular(corner, w, lower=True, trans="T")

    return FeatureMap(np.asfortranarray(factor), mean_weight, expand)


def low_rank(X, kernel, max_rank, tol, first=None):
    """Return the factorization of `cholesky_coordinates`; same parameters.

    Returns
    -------
    LowRank
    """
    if first is None:
        return pivoted_cholesky(X, kernel, max_rank, tol)
    # Labeled rows take half of the pivots at most, the best of them where there are more.
    room = max_rank if first.size == X.shape[0] else (max_rank + 1) // 2
    if first.size > room:
        part = X[np.ix_(first, first)] if kernel.name == "precomputed" else X[first]
        first = first[pivoted_cholesky(part, kernel, room, tol).pivots]
    return pivoted_cholesky(X, kernel, max_rank, tol, first=first, pivoting="residual", block=64)


def eigen_coordinates(K, tol=1e-12, mean_weight=None):
    """Whiten the full kernel: w = Λ^½Vᵀc with K = VΛVᵀ.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    tol : float, default=1e-12
        Eigenvalues below tol times the largest are dropped.
    mean_weight : ndarray of shape (n,) or None
        See `FeatureMap`.

    Returns
    -------
    FeatureMap
    """
    return regressor_coordinates(K, K, np.arange(K.shape[0]), tol, mean_weight)


def regressor_coordinates(columns, corner, index, tol=1e-12, mean_weight=None):
    """Whiten a subset of regressors (9): ĉ = K_RR^{-½} w, so that ĉᵀK_RRĉ = wᵀw.

    Parameters
    ----------
    columns : ndarray of shape (n, r)
        Kernel values between all rows and the regressors.
    corner : ndarray of shape (r, r)
        Kernel values among the regressors.
    index : ndarray of shape (r,)
        Training rows that are the regressors.
    tol : float, default=1e-12
        Eigenvalues of the corner below tol times the largest are dropped.
    mean_weight : ndarray of shape (n,) or None
        See `FeatureMap`.

    Returns
    -------
    FeatureMap
    """
    W = inverse_root(corner, tol)
    return FeatureMap(columns @ W, mean_weight, lambda w: (index, W @ w))


def kpca_coordinates(K, rank, mean_weight=None):
    """Map rows by kernel PCA: the ``rank`` leading eigenvectors of K̃, times the root of each value.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    rank : int
        Number of components.
    mean_weight : ndarray of shape (n,) or None
        Weights of the mean that is subtracted in feature space (see `centered`).

    Returns
    -------
    FeatureMap
    """
    n = K.shape[0]
    K_centered = centered(K, mean_weight)
    # A few of many eigenvectors by Lanczos, from a start that is the same in every run.
    if rank < n // 4 and K_centered.any():  # with 0 ARPACK cannot begin
        values, vectors = eigsh(K_centered, k=rank, v0=np.linspace(1.0, 2.0, n))
    else:
        values, vectors = eigh(K_centered, subset_by_index=[max(0, n - rank), n - 1])
    keep = values > 1e-12 * max(values.max(), np.finfo(float).tiny)
    W = vectors[:, keep] / np.sqrt(values[keep])
    column_mean = None if mean_weight is None else K @ mean_weight

    def expand(w):
        alpha = W @ w
        if mean_weight is not None:
            alpha = alpha - alpha.sum() * mean_weight
        return np.arange(n), alpha

    def shift(w):
        return 0.0 if mean_weight is None else -float(column_mean @ expand(w)[1])

    return FeatureMap(K_centered @ W, None, expand, shift)
