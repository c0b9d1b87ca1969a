"""Which coordinates: their name, their rank, and the memory that they may take."""

from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Literal

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from s3vm_lib.smooth._blocked import (
    block_coordinates,
    mapped_coordinates,
    megabytes_needed,
    reads_the_disk,
)
from s3vm_lib.smooth._coordinates import (
    RawCoefficients,
    cholesky_coordinates,
    default_rank,
    eigen_coordinates,
    kpca_coordinates,
    linear_coordinates,
    regressor_coordinates,
)
from s3vm_lib.utils.limits import Checked, Count, Megabytes
from s3vm_lib.utils.row_blocks import doubles
from s3vm_lib.utils.validation import Client

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
    memory : float, default=4000
        Memory in MiB for the coordinates with ``"cholesky"`` and ``"regressors"``. Where n times
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
    memory: Megabytes = 4000
    client: Client = None

    def of(self, data, center, random_state=None, tick=None):
        """Make the coordinates of the training rows; ``center``: weights of the mean, or None.

        Where they are made block by block, ``tick`` is called after each with the number of blocks
        made and of all.
        """
        X, kernel, n = data.X, data.kernel, data.codes.size
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
        if blocked and (self.client is not None or 16 * n * rank > self.memory * 2**20):
            needed = megabytes_needed(n, rank)
            if needed > self.memory:
                raise ValueError(
                    f"memory={self.memory} MiB is too little for rank={rank}, which takes "
                    f"at least {np.ceil(needed):.0f} MiB whatever the number of rows. "
                    "Increase memory or decrease rank"
                )
            places = {"megabytes": self.memory, "client": self.client, "tick": tick}
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
        """Sorted random subset of ``rank`` rows, with the labeled rows first in line."""
        order = generator.permutation(n)
        if rank < n:
            kept = generator.permutation(labeled)[: (rank + 1) // 2]
            order = np.concatenate([kept, order[~np.isin(order, kept)]])
        return np.sort(order[:rank])
