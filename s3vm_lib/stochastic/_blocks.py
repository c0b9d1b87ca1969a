"""Sums over blocks of rows, by threads of this machine or by the workers of a Dask cluster.

A sum over rows may be cut into blocks of rows, each of which needs w (D numbers) and gives back a
number and a vector of length D, whatever its size. On a cluster paths go out, and one D-vector a
block comes back: the workers open the rows themselves (a memory map on a disk that all of them
see) and redraw the features from their seed, so that neither travels. One block is one task, and
should be a second of work: a task costs milliseconds whatever it does, which rules out one
mini-batch a task. Numbers in comments are the lines of "Value and gradient by blocks of rows".
"""

from typing import NamedTuple

import numpy as np

from s3vm_lib.random_features import row_tiles

from s3vm_lib.smooth import (  # isort: skip
    ANNEALING, Continuation, ScaledObjective, annealed, losses_and_slopes, minimize_lbfgs,
)  # fmt: skip
from s3vm_lib.stochastic._steps import Run, block_features
from s3vm_lib.utils.row_blocks import RowsOnDisk, on_disk, row_slices
from s3vm_lib.utils.threads import in_threads

BLOCK_ROWS = 16384
CACHE = 2**24  # feature values that are kept in double precision, 128 MB
_MEAN_WIDTH = 64  # fixes the tiles of a mean: 1024 rows
CACHE_SINGLE = 2**26  # in single precision, 256 MB; beyond, they are computed again each time


class BlockTask(NamedTuple):
    """What the sum over a block of rows needs besides the rows."""

    t: np.ndarray  # labels, 0 where unlabeled
    weight: np.ndarray  # weights, scaled as in `losses_and_slopes`
    codes: tuple  # of the losses, see `losses_and_slopes`


def block_sum(stream, blocks, X, task, strength, w, b, Z=None, dtype=None):
    """Return the losses of a block of rows, and their gradient.

    Parameters
    ----------
    stream : FeatureStream
    blocks : sequence of Block
    X : {ndarray, CSR matrix} of shape (n, d)
        The rows; not read where ``Z`` is given.
    task : BlockTask
    strength : float
        Factor of the unlabeled losses.
    w : ndarray of shape (D,)
        Coefficients of the features before their scale.
    b : float
        Offset.
    Z : ndarray of shape (n, D), default=None
        The features, if they are kept.
    dtype : dtype, default=None
        Compute Z in one piece and in this precision, where it is not kept but would be elsewhere:
        the numbers are then the same. None goes through the rows in tiles.

    Returns
    -------
    value : float
    gradient : ndarray of shape (D,)
        Σ_i a_i c(x_i) with the slopes a of the losses.
    total : float
        Σ_i a_i.
    """
    n = task.t.size
    slope = np.empty(n)
    if Z is None and dtype is not None:
        Z = block_features(stream, blocks, X, dtype)
    value, gradient = 0.0, np.zeros(w.size)
    for tile in row_tiles(n, w.size) if Z is None else [slice(0, n)]:  # 4
        part = block_features(stream, blocks, X[tile]) if Z is None else Z
        f = (part @ w.astype(part.dtype, copy=False)).astype(np.float64, copy=False) + b
        a = slope[tile]
        value += losses_and_slopes(*task.codes, task.t[tile], task.weight[tile], strength, f, a)
        gradient += a.astype(part.dtype, copy=False) @ part
    return value, gradient, float(slope.sum())


class Shard:
    """A block of rows with its labels and weights; on a worker it opens the file itself.

    Parameters
    ----------
    source : {ndarray, CSR matrix, RowsOnDisk}
        All rows.
    index : slice or ndarray of int
        Those of the block.
    task : BlockTask
    """

    def __init__(self, source, index, task):
        self.source, self.index, self.task = source, index, task
        self.X = source.open() if isinstance(source, RowsOnDisk) else source
        self.Z = None  # the features, where they are kept

    def __reduce__(self):
        return Shard, (self.source, self.index, self.task)  # 2: another worker opens it again

    @property
    def rows(self):
        return None if self.Z is not None else self.X[self.index]


def _sum(shard, stream, blocks, dtype, strength, w, b):
    blocks = _drawn(stream, blocks)
    return block_sum(stream, blocks, shard.rows, shard.task, strength, w, b, shard.Z, dtype)


def _mean(shard, stream, blocks, weight):
    """Return Σ_i weight_i c(x_i) over a block of rows, shape (D,), in double precision."""
    blocks, rows, total = _drawn(stream, blocks), shard.rows, 0.0
    for tile in row_tiles(weight.size, _MEAN_WIDTH):
        Z = block_features(stream, blocks, rows[tile]) if shard.Z is None else shard.Z[tile]
        total = total + weight[tile] @ Z.astype(np.float64, copy=False)
    return total


def _drawn(stream, blocks):
    """Return blocks of features (3), drawn if only their number is given."""
    return [stream.block(t) for t in range(blocks)] if isinstance(blocks, int) else blocks


class BlockSum:
    """Losses and gradient over all rows, by blocks of rows whose sums are added in their order.

    Threads draw the features once, and keep their values while there are at most 2²⁶ of them. The
    workers of a cluster draw them for every sum; one that is lost takes nothing along, its blocks
    are opened again by others.

    Parameters
    ----------
    stream : FeatureStream
    n_blocks : int
        Number of blocks of features.
    X : {ndarray, CSR matrix} of shape (n, d)
        May be a memory map, and has to be one with a client.
    t, weight : ndarrays
        Labels and scaled weights of the rows.
    codes : tuple
        Of the losses.
    rows : ndarray of int, default=None
        Rows of X that take part, not with a client; None means all.
    n_jobs : int, default=None
        Number of threads.
    client : dask.distributed.Client, default=None
        The cluster; None computes here.
    block_rows : int, default=16384
        Rows of a block.
    """

    def __init__(
        self, stream, n_blocks, X, t, weight, codes, *,
        rows=None, n_jobs=None, client=None, block_rows=BLOCK_ROWS,
    ):  # fmt: skip
        self.stream, self.n_jobs, self.client = stream, n_jobs, client
        self.dimension = n_blocks * stream.block_size
        self.n_blocks, self.X, self.index, self.t, self.weight = n_blocks, X, rows, t, weight
        self.slices = row_slices(t.size, block_rows)
        entries = t.size * self.dimension
        # The precision in which features are kept; None where they are too many.
        self.dtype = np.float64 if entries <= CACHE else np.float32
        self.dtype = None if entries > CACHE_SINGLE else self.dtype
        parts = [
            (s if rows is None else rows[s], BlockTask(t[s], weight[s], codes)) for s in self.slices
        ]
        # The workers of a cluster open the rows and draw the features themselves.
        if client is not None:
            source, self.blocks = on_disk(X), n_blocks
            self.shards = [client.submit(Shard, source, *part, pure=False) for part in parts]
            return
        # Here features are drawn once, and their values kept where they fit.
        self.blocks = in_threads(stream.block, range(n_blocks), n_jobs)
        self.shards = [Shard(X, *part) for part in parts]
        if self.dtype is not None:
            in_threads(self._keep, self.shards, n_jobs)

    def _keep(self, shard):
        shard.Z = block_features(self.stream, self.blocks, shard.rows, self.dtype)

    def _each(self, function, arguments):
        """Call ``function(shard, stream, blocks, *arguments)`` for every shard, in their order."""
        calls = list(zip(self.shards, arguments, strict=True))
        if self.client is None:
            return in_threads(
                lambda call: function(call[0], self.stream, self.blocks, *call[1]),
                calls,
                self.n_jobs,
            )
        futures = [
            self.client.submit(function, shard, self.stream, self.blocks, *given, pure=False)
            for shard, given in calls
        ]
        return self.client.gather(futures)

    def __call__(self, strength, w, b):
        """Return the value, the gradient and the sum of slopes over all rows (see `block_sum`)."""
        # 1 to 5: the same arguments for every block, the results in the order of the blocks.
        parts = self._each(_sum, [(self.dtype, strength, w, b)] * len(self.slices))
        value, gradient, total = parts[0]
        for part in parts[1:]:  # 6
            value, gradient, total = value + part[0], gradient + part[1], total + part[2]
        return value, gradient, total

    def mean(self):
        """Return the mean of the features over the unlabeled rows, shape (D,)."""
        weight = np.where(self.t == 0, self.weight, 0.0)
        weight = weight / weight.sum()
        return sum(self._each(_mean, [(weight[s],) for s in self.slices]))


# --- All rows in every gradient -------------------------------------------------------------------


def loss_codes(problem):
    """Return the codes that `losses_and_slopes` takes."""
    return tuple(value for loss in problem.losses for value in (loss.code, loss.p))


class StreamFeatures(BlockSum):
    """The coordinates w = √D α of D features of a stream, with all sums taken by `BlockSum`.

    Parameters
    ----------
    stream, n_blocks, X, t, weight, **where
        See `BlockSum`.
    problem : Problem
        With ``balance="mean"`` the features are centered on the unlabeled rows.
    center : ndarray of shape (D,), default=None
        The mean of the features where it is known.
    """

    def __init__(self, stream, n_blocks, X, t, weight, problem, *, center=None, **where):
        super().__init__(stream, n_blocks, X, t, weight, loss_codes(problem), **where)
        self.problem, self.center = problem, center
        self.norm = stream.block(0).scale / np.sqrt(self.dimension)  # k ≈ z·z with z = norm · c
        if center is None and problem.balance == "mean":
            self.center = self.norm * self.mean()

    def shift(self, w, b):
        """Return the offset of uncentered features where b is that of centered ones."""
        return b if self.center is None else b - float(self.center @ w)

    def sums(self, w, b, lam, t, weight, codes, strength):
        """Return the value, the gradient and the sum of slopes.

        The signature is that of other coordinates in blocks; t, weight and codes are not used,
        since the blocks hold the same.
        """
        value, gradient, total = self(strength, self.norm * w, self.shift(w, b))
        gradient = self.norm * gradient + 2.0 * lam * w
        if self.center is not None:  # b moves along with w
            gradient -= total * self.center
        return value, gradient, total

    def rows(self, index):
        """Return the same features on some rows only, with the same mean."""
        return StreamFeatures(
            self.stream, self.n_blocks, self.X, self.t[index], self.weight[index], self.problem,
            rows=index if self.index is None else self.index[index],
            n_jobs=self.n_jobs, center=self.center,
        )  # fmt: skip


def solve_full_batch(
    coordinates, t, sample_weight, problem, *, start=None, annealing=ANNEALING["geometric"],
    tol=1e-5, ftol=1e-9, max_iter=500, callback=None,
):  # fmt: skip
    """Run L-BFGS on random features, with the annealing of QN-S3VM or from a given start.

    Parameters
    ----------
    coordinates : StreamFeatures
    t : ndarray of shape (n,)
        −1 and +1, and 0 for unlabeled rows; at least one labeled row.
    sample_weight : ndarray of shape (n,)
    problem : Problem
        With ``balance="mean"`` the offset is fixed at 2r − 1 above the mean of f over the
        unlabeled rows. Otherwise b is regularized (½b²), or absent with ``bias="none"``.
    start : tuple (alpha, offset), default=None
        Begin here, with the whole unlabeled term. None anneals it in.
    annealing : sequence of float
        Factors of the unlabeled term, after a first stage without it.
    tol, ftol, max_iter
        Of L-BFGS, for each stage; see `s3vm_lib.smooth.minimize_lbfgs`.
    callback : callable, default=None
        Called with each `Stage`; a true value stops.

    Returns
    -------
    Run
    """
    root = np.sqrt(coordinates.dimension)
    if start is not None:
        start = start[0].ravel() * root, start[1], problem.C_star
    stages = Continuation(coordinates, t, sample_weight, problem, start)
    # From a given start there is nothing to anneal.
    factors = stages.factors(annealing) if start is None else (1.0,)

    def descend(alpha, x):
        function = ScaledObjective(*stages.at(alpha))
        found = minimize_lbfgs(function, x, tol, ftol, max_iter)
        return found._replace(value=float(found.value))

    report = None if callback is None else lambda stage, x: callback(stage)
    x, history, status = annealed(factors, stages.start, descend, report)
    w, b = stages.split(x)
    alpha = (w / root).reshape(coordinates.n_blocks, -1)
    n_iter = sum(stage.n_iter for stage in history)
    return Run(alpha, coordinates.shift(w, b), n_iter, status, tuple(history), None)
