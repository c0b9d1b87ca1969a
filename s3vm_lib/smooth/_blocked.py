"""The coordinates of many rows, block by block, and the choice among all coordinates.

Blocks are in memory, in a temporary file, or on a cluster. The rows of Z are made once, in single
precision, and kept; each evaluation of the objective is one pass over them. All sums are taken in
double precision, within a block by compiled code and over the blocks in their order: where the
blocks lie has no influence on a single bit.
"""

from dataclasses import dataclass
from functools import partial
from numbers import Real
from operator import getitem, matmul
from typing import Annotated, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from s3vm_lib.kernels import Kernel, squared_norms
from s3vm_lib.smooth._coordinates import (
    FeatureMap,
    RawCoefficients,
    cholesky_coordinates,
    default_rank,
    eigen_coordinates,
    inverse_root,
    kpca_coordinates,
    linear_coordinates,
    low_rank,
    regressor_coordinates,
)
from s3vm_lib.smooth._engines import add_losses
from s3vm_lib.smooth._objective import losses_and_slopes
from s3vm_lib.utils.limits import Checked, Count, Megabytes
from s3vm_lib.utils.row_blocks import (
    BlockStore,
    ClusterBlocks,
    doubles,
    is_mapped,
    on_disk,
    row_slices,
    spread,
)
from s3vm_lib.utils.validation import Client

_VALUES = 2**19  # values of Z in a block: 2 MB
_SAMPLED = 2**22  # kernel values among which the pivots are chosen
_PICKED = 2**24  # values of Z that leave their blocks: 128 MB


class KernelMap(NamedTuple):
    """Rows x as z = L⁻¹k(P, x), or z = Wᵀk(P, x), for rows P that carry the model."""

    kernel: Kernel
    pivots: np.ndarray  # P, (r, d), dense or CSR
    root: np.ndarray  # L, lower triangular, or W, (r, width)
    triangular: bool

    @property
    def width(self):
        """Number of coordinates."""
        return self.root.shape[1]

    def __call__(self, X):
        """Return coordinates of some rows, shape (m, width)."""
        K = self.kernel.gram(doubles(X), self.pivots)
        if not self.triangular:
            return K @ self.root
        options = {"lower": True, "overwrite_b": True, "check_finite": False}
        return solve_triangular(self.root, K.T, **options).T


class LinearMap(NamedTuple):
    """Rows as they are, times the output standard deviation σ_f of the linear kernel."""

    scale: float
    width: int

    def __call__(self, X):
        """Return coordinates of some rows, shape (m, width)."""
        return X if self.scale == 1.0 else self.scale * X


# --- What is done with a block --------------------------------------------------------------------


def _sum(Z, t, weight, w, shift, codes, strength):
    """Return (value, Zᵀa, Σa) of a block of rows."""
    if isinstance(Z, np.ndarray) and Z.dtype == np.float32:
        gradient, p = np.zeros(w.size), (float(codes[1]), float(codes[3]))
        pair, strength = (codes[0], codes[2]), float(strength)
        value, total, _, _ = add_losses(
            Z, w, float(shift), t, weight, pair, p, strength, 0.0, 0.0, gradient, np.zeros(0)
        )
        return value, gradient, total
    f, a = Z @ w + shift, np.empty(t.size)
    value = losses_and_slopes(*codes, t, weight, strength, f, a)
    return value, Z.T @ a, float(a.sum())


def _moments(Z, weight):
    """Return Zᵀ·weight and Σ‖z‖² of a block of rows."""
    Z = doubles(Z)
    return np.asarray(Z.T @ weight), float(squared_norms(Z).sum())


def _adjoint(Z, a):
    return Z.T @ a


def _gram(Z, D):
    return FeatureMap(doubles(Z))._gram_of(D)


# --- Where the blocks are -------------------------------------------------------------------------


def made(features, X):
    """Return the coordinates of a block of rows as they are kept."""
    Z = features(X)
    return Z if sp.issparse(Z) else np.ascontiguousarray(Z, dtype=np.float32)


class LocalBlocks(BlockStore):
    """Blocks that this process makes, in memory or in a temporary file.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        May be a memory map.
    features : KernelMap
    megabytes : float
        Coordinates that take more go to the disk.
    tick : callable, default=None
        Called with the number of blocks made and of all, after each of them.
    """

    def __init__(self, X, features, megabytes, tick=None):
        super().__init__(X.shape[0], features.width, block_rows(features.width), megabytes)
        try:
            for k, s in enumerate(self.slices):
                self[k] = made(features, X[s])
                if tick is not None:
                    tick(k + 1, len(self))
        except BaseException:
            self.close()
            raise

    def each(self, function, rows, *given):
        """Yield ``function(Z, *parts, *given)`` for every block, as in `ClusterBlocks`."""
        for k, s in enumerate(self.slices):
            yield function(self[k], *(a[s] for a in rows), *given)


class MappedBlocks(LocalBlocks):
    """Blocks that are rows of a file, read again by each pass: the linear kernel.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        A view of a memory map.
    features : LinearMap
    """

    def __init__(self, X, features):
        self.source, self.features = on_disk(X), features
        self.slices = row_slices(X.shape[0], block_rows(X.shape[1]))

    def __getitem__(self, k):
        return made(self.features, self.source.open()[self.slices[k]])

    def close(self):
        """Keep the file, which is the user's."""


def block_rows(width):
    """Return rows of a block, the same whatever memory there is."""
    return max(16, _VALUES // max(1, width))


# --- The coordinates ------------------------------------------------------------------------------


class BlockFeatures(FeatureMap):
    """`FeatureMap` whose rows lie in blocks.

    Parameters
    ----------
    blocks : LocalBlocks, MappedBlocks or ClusterBlocks
    width : int
        Number of coordinates.
    mean_weight : ndarray of shape (n,) or None
        As in `FeatureMap`.
    expand : callable, default=None
        As in `FeatureMap`.
    """

    def __init__(self, blocks, width, mean_weight=None, expand=None):
        self.blocks, self.dimension = blocks, width
        self.expand, self.shift, self.mean = expand, None, None
        n, mean, squares = blocks.slices[-1].stop, np.zeros(width), 0.0
        weight = np.zeros(n) if mean_weight is None else mean_weight
        try:
            for part in blocks.each(_moments, (weight,)):
                mean, squares = mean + part[0], squares + part[1]
        except BaseException:  # Ctrl-C too: the file must not stay open
            blocks.close()
            raise
        if mean_weight is not None:
            self.mean = mean
        self.unit = float(np.sqrt(squares / n))

    @property
    def most_rows(self):
        """Rows of which `rows` may be asked: what it returns is all in memory."""
        return _PICKED // max(1, self.dimension)

    def arrays(self):
        """Return None: there is no matrix Z."""
        return None

    coarse = arrays  # in single precision they are already

    def sums(self, w, b, lam, t, weight, codes, strength):
        """Sum losses at the outputs f + b, their gradient in w and their slopes, in one pass.

        Parameters
        ----------
        w, b, lam : ndarray of shape (d,), float, float
            The gradient is that of the losses and of λ‖w‖².
        t, weight, codes, strength
            See `s3vm_lib.smooth.ScaledObjective`.

        Returns
        -------
        value : float
        gradient : ndarray of shape (d,)
        total : float
        """
        shift = b if self.mean is None else b - float(self.mean @ w)
        value, gradient, total = 0.0, np.zeros(w.size), 0.0
        for part in self.blocks.each(_sum, (t, weight), w, shift, codes, strength):
            value, total = value + part[0], total + part[2]
            gradient += part[1]
        if self.mean is not None:
            gradient -= total * self.mean
        gradient += 2.0 * lam * w
        return value, gradient, total

    def _times(self, w):
        return np.concatenate(list(self.blocks.each(matmul, (), w)))

    def _adjoint(self, a):
        return sum(self.blocks.each(_adjoint, (a,)))

    def _gram_of(self, D):
        return sum(self.blocks.each(_gram, (D,)))

    def quadratic(self, product, columns):
        """Return ZᵀMZ for a symmetric M of shape (n, n), some columns of Z at a time.

        Parameters
        ----------
        product : callable
            F ↦ MF for F of shape (n, m).
        columns : int
            Columns that are in memory at once, all rows of them.

        Returns
        -------
        ndarray of shape (d, d)
        """
        found = np.empty((self.dimension, self.dimension))
        for part in row_slices(self.dimension, columns):
            pieces = list(self.blocks.each(getitem, (), (slice(None), part)))  # in single precision
            F = product(np.concatenate(pieces, dtype=np.float64))
            found[:, part] = self._adjoint(F)
        return found

    def rows(self, index):
        """Return the same features on some rows only, with the same μ."""
        wanted = np.zeros(self.blocks.slices[-1].stop, dtype=bool)
        wanted[index] = True  # sorted, as those of the labeled rows are
        parts = [doubles(part) for part in self.blocks.each(getitem, (wanted,))]
        chosen = FeatureMap(sp.vstack(parts, "csr") if sp.issparse(parts[0]) else np.vstack(parts))
        chosen.mean = self.mean
        return chosen

    def close(self):
        """Delete the coordinates, and their file if there is one."""
        self.blocks.close()


# --- From rows to coordinates ---------------------------------------------------------------------


def megabytes_needed(n, rank):
    """Return the memory that `block_coordinates` needs: the sample of the pivots, some blocks."""
    sample = min(n, _sample_size(rank))
    return 8 * (3 * sample * rank + 2 * rank**2 + 4 * max(_VALUES, 16 * rank)) / 2**20


def _sample_size(rank):
    """Return rows among which so many pivots are chosen."""
    return max(4 * rank, min(32 * rank, _SAMPLED // rank))


def block_coordinates(
    X, kernel, rank, tol, mean_weight, first, index=None, *, megabytes, client=None, tick=None
):
    """Return the coordinates of `cholesky_coordinates` or `regressor_coordinates`, block by block.

    The pivots are chosen among the rows ``first`` and others that are spread evenly over all rows,
    some multiple of the rank of them. With these pivots the coordinates are those of the
    factorization of all rows, up to single precision.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        May be a memory map.
    kernel : Kernel
    rank : int
        Largest number of pivots.
    tol : float
        See `s3vm_lib.kernels.pivoted_cholesky`.
    mean_weight : ndarray of shape (n,) or None
        See `FeatureMap`.
    first : ndarray of shape (m,) or None
        As in `cholesky_coordinates`.
    index : ndarray of shape (r,), default=None
        Rows that are the regressors; None chooses pivots.
    megabytes : float
        Memory for the coordinates, at least `megabytes_needed`.
    client : dask.distributed.Client, default=None
        The workers that make and keep the blocks. Needs a memory map.
    tick : callable, default=None
        See `LocalBlocks`.

    Returns
    -------
    BlockFeatures
    """
    if index is None:
        index, features, solved = _pivot_map(X, kernel, rank, tol, first)
    else:
        rows = doubles(X[index])
        W = inverse_root(kernel.gram(rows))
        features = KernelMap(kernel, rows, W, False)
        solved = W.dot
    if client is not None:
        blocks = _on_workers(client, X, features, features.width)
    else:
        room = (megabytes - megabytes_needed(X.shape[0], rank)) / 2
        blocks = LocalBlocks(X, features, max(room, 0.0), tick)
    return BlockFeatures(blocks, features.width, mean_weight, lambda w: (index, solved(w)))


def mapped_coordinates(X, scale, mean_weight, client=None):
    """Make coordinates of the linear kernel on a memory map, whose rows each pass reads again.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        A view of a memory map; with a client also a CSR matrix of three.
    scale, mean_weight
        As in `linear_coordinates`.
    client : dask.distributed.Client, default=None

    Returns
    -------
    BlockFeatures
    """
    features = LinearMap(scale, X.shape[1])
    if client is None:
        blocks = MappedBlocks(X, features)
    else:
        kept = X.nnz // X.shape[0] if sp.issparse(X) else features.width
        blocks = _on_workers(client, X, features, kept)
    return BlockFeatures(blocks, features.width, mean_weight)


def _on_workers(client, X, features, kept):
    """Return blocks of rows of which so many values are kept, each."""
    return ClusterBlocks(client, X, partial(made, features), block_rows(kept))


def reads_the_disk(X):
    """Return whether the linear kernel should read X in each pass: else it would be copied."""
    return not sp.issparse(X) and X.dtype == np.float32 and is_mapped(X)


def _pivot_map(X, kernel, rank, tol, first):
    """Return pivots among a part of the rows, the map that they define, and w ↦ α on them."""
    sample = spread(X.shape[0], _sample_size(rank))
    if first is not None:
        first = first[spread(first.size, sample.size)]
        sample = np.union1d(first, sample)
        first = np.searchsorted(sample, first)
    part = doubles(X[sample])
    factor, pivots, _ = low_rank(part, kernel, rank, tol, first)
    corner = factor[pivots]

    def solved(w):
        return solve_triangular(corner, w, lower=True, trans="T")

    return sample[pivots], KernelMap(kernel, part[pivots], corner, True), solved


# --- Which coordinates: their name, their rank, and the memory that they may take -----------------

CoordinateName = Literal["cholesky", "eigen", "raw", "regressors", "kpca"]


@dataclass(frozen=True)
class Coordinates(Checked):
    """The variables in which `QNS3VM` and `NewtonS3VM` search, where the name alone is not enough.

    Parameters
    ----------
    name : {"cholesky", "eigen", "raw", "regressors", "kpca"}, default="cholesky"
        ``"cholesky"``: w = Gᵀc with K ≈ GGᵀ of rank at most ``rank``, or the weights w of the
        features themselves if the kernel is linear; ``"eigen"``: w = K^½c, the full kernel;
        ``"raw"``: c itself, as in the paper; ``"regressors"``: a random subset of ``rank`` rows
        carries the model, whitened by the inverse root of their kernel matrix; ``"kpca"``: the
        ``rank`` leading kernel principal components.
    rank : int, default=None
        Largest number of variables with ``"cholesky"``, ``"regressors"`` and ``"kpca"``. None
        means a fifth of the training rows, but at least 500 and at most 1000. The labeled rows come
        first among the pivots or regressors (as far as they fill at most half of it), so that the
        supervised start can be represented.
    rank_tol : float, default=1e-6
        ``"cholesky"`` stops when no diagonal entry of K − GGᵀ exceeds this share of the largest
        of K.
    memory : float, default=None
        Memory in MiB for the coordinates with ``"cholesky"`` and ``"regressors"``; None means 600
        for `QNS3VM` and 4000 for `NewtonS3VM`, to which blocks cost time. Where n times
        ``rank`` numbers in double precision, and one copy of them, take more, the coordinates are
        made block by block and kept in single precision, in memory or, if they take half of it, in
        a temporary file, which is deleted after the fit. The pivots are then chosen among a part of
        the rows. The rows X themselves and a few numbers for each of them are not counted.
    client : dask.distributed.Client, default=None
        The coordinates are made and kept, in single precision, by the workers of this cluster. They
        open the rows themselves: X has to be a `numpy.memmap` that all workers can open, or a CSR
        matrix of three of them, whose rows stay sparse with the linear kernel. With ``"cholesky"``,
        also of the linear kernel, and with ``"regressors"``. A clone of the estimator has the
        client, a pickle or a copy has None.

    Raises
    ------
    ValueError
        If a value is not one of those above.

    Examples
    --------
    >>> from s3vm_lib import QNS3VM
    >>> from s3vm_lib.quasi_newton import Coordinates
    >>> model = QNS3VM(coordinates=Coordinates("kpca", rank=50))
    """

    name: CoordinateName = "cholesky"
    rank: Count | None = None
    rank_tol: Annotated[float, Interval(Real, 0, 1, closed="left")] = 1e-6
    memory: Megabytes | None = None
    client: Client = None

    def of(self, data, center, memory, random_state=None, tick=None):
        """Make the coordinates of the training rows; ``center``: weights of the mean, or None.

        ``memory`` is the bound in MiB where the coordinates have none.

        Where they are made block by block, ``tick`` is called after each with the number of blocks
        made and of all.
        """
        X, kernel, n = data.X, data.kernel, data.codes.size
        memory = memory if self.memory is None else self.memory
        linear = kernel.name == "linear" and self.name in ("cholesky", "raw")
        blocked = self.name in ("cholesky", "regressors") and kernel.name != "precomputed"
        if self.client is not None and not blocked:
            raise ValueError(
                "client needs coordinates='cholesky' or 'regressors' and a kernel of rows, got "
                f"{self.name!r} with kernel={kernel.name!r}"
            )
        if linear and blocked and (self.client is not None or reads_the_disk(X)):
            return mapped_coordinates(X, kernel.sigma_f, center, self.client)
        if linear:
            return linear_coordinates(doubles(X), kernel.sigma_f, center, self.name == "raw")
        rank = default_rank(n) if self.rank is None else min(n, self.rank)
        labeled = np.flatnonzero(data.codes >= 0)
        index = None
        if self.name == "regressors":
            index = self._regressors(labeled, n, rank, check_random_state(random_state))
        if blocked and (self.client is not None or 16 * n * rank > memory * 2**20):
            needed = megabytes_needed(n, rank)
            if needed > memory:
                raise ValueError(
                    f"memory={memory} MiB is too little for rank={rank}, which takes "
                    f"at least {np.ceil(needed):.0f} MiB whatever the number of rows. "
                    "Increase memory or decrease rank"
                )
            places = {"megabytes": memory, "client": self.client, "tick": tick}
            return block_coordinates(
                X, kernel, rank, self.rank_tol, center, labeled, index, **places
            )
        X = doubles(X)
        if self.name == "cholesky":
            return cholesky_coordinates(X, kernel, rank, self.rank_tol, center, labeled)
        if self.name == "regressors":
            columns = kernel.columns(X, index)
            return regressor_coordinates(columns, columns[index], index, mean_weight=center)
        K = kernel.gram(X)
        if self.name == "raw":
            return RawCoefficients(K, center)
        if self.name == "eigen":
            return eigen_coordinates(K, mean_weight=center)
        return kpca_coordinates(K, rank, center)

    def _regressors(self, labeled, n, rank, generator):
        """Draw a sorted random subset of ``rank`` rows, with the labeled rows first in line."""
        order = generator.permutation(n)
        if rank < n:
            kept = generator.permutation(labeled)[: (rank + 1) // 2]
            order = np.concatenate([kept, order[~np.isin(order, kept)]])
        return np.sort(order[:rank])
