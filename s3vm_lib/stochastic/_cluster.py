"""The sum over blocks of rows on a Dask cluster: paths go out, one D-vector a block comes back.

The workers open the rows themselves (a memory map on a disk that all of them see) and redraw the
features from their seed, so that neither travels. One block is one task, and should be a second of
work: a task costs milliseconds whatever it does, which rules out one mini-batch a task.
"""

import os
from typing import NamedTuple

import numpy as np

from s3vm_lib.stochastic._full_batch import (
    BLOCK_ROWS,
    BlockTask,
    added,
    block_mean,
    block_sum,
    kept_type,
)


class RowsOnDisk(NamedTuple):
    """A C-ordered matrix in a file, as `numpy.memmap` opens it."""

    path: str
    dtype: str
    offset: int  # bytes
    shape: tuple

    def open(self):
        """The rows, read-only."""
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)


def on_disk(X):
    """The `RowsOnDisk` that an array is a view of.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)

    Returns
    -------
    RowsOnDisk

    Raises
    ------
    ValueError
        If X is not a C-ordered view of a memory map.
    """
    base = X
    while base is not None and not isinstance(base, np.memmap):
        base = getattr(base, "base", None)
    if base is None or base.filename is None or not X.flags.c_contiguous:
        raise ValueError(
            "X must be a C-ordered numpy.memmap of float32 or float64 with a client, so that the "
            "workers can open it; rows of weight zero cannot be left out of it"
        )
    root = base
    while isinstance(root.base, np.memmap):
        root = root.base
    address = [a.__array_interface__["data"][0] for a in (X, root)]
    offset = root.offset + address[0] - address[1]
    return RowsOnDisk(os.path.abspath(root.filename), X.dtype.str, int(offset), X.shape)


class Shard:
    """A block of rows on a worker: its file, open, with labels and weights."""

    def __init__(self, source, start, stop, task):
        self.arguments = source, start, stop, task
        self.X, self.task = source.open()[start:stop], task

    def __reduce__(self):
        return Shard, self.arguments  # another worker opens the file itself


def _part(shard, stream, n_blocks, dtype, strength, w, b):
    blocks = [stream.block(t) for t in range(n_blocks)]
    return block_sum(stream, blocks, shard.X, shard.task, strength, w, b, dtype=dtype)


def _mean(shard, stream, n_blocks, weight):
    blocks = [stream.block(t) for t in range(n_blocks)]
    return block_mean(stream, blocks, shard.X, weight)


class ClusterSum:
    """Like `ThreadSum`, with the blocks of rows on the workers of a Dask cluster.

    A worker that is lost takes nothing along: its blocks are opened again by others.

    Parameters
    ----------
    client : dask.distributed.Client
    stream : FeatureStream
    n_blocks : int
        Number of blocks of features.
    source : RowsOnDisk
    t, weight : ndarrays
        Labels and scaled weights of all rows.
    codes : tuple
        Of the losses.
    block_rows : int, default=16384
        Rows of a task.
    """

    def __init__(self, client, stream, n_blocks, source, t, weight, codes, block_rows=BLOCK_ROWS):
        self.client, self.stream, self.n_blocks = client, stream, n_blocks
        self.dimension = n_blocks * stream.block_size
        self.t, self.weight = t, weight
        self.slices = [slice(k, min(k + block_rows, t.size)) for k in range(0, t.size, block_rows)]
        self.dtype = kept_type(t.size * self.dimension)
        self.shards = [
            client.submit(
                Shard, source, s.start, s.stop, BlockTask(t[s], weight[s], codes), pure=False
            )
            for s in self.slices
        ]

    def __call__(self, strength, w, b):
        """Value, gradient and sum of slopes over all rows."""
        arguments = (self.stream, self.n_blocks, self.dtype, strength, w, b)
        parts = [self.client.submit(_part, s, *arguments, pure=False) for s in self.shards]
        return added(self.client.gather(parts))

    def mean(self):
        """Mean of the features over the unlabeled rows, shape (D,)."""
        weight = np.where(self.t == 0, self.weight, 0.0)
        weight = weight / weight.sum()
        parts = [
            self.client.submit(_mean, shard, self.stream, self.n_blocks, weight[s], pure=False)
            for shard, s in zip(self.shards, self.slices, strict=True)
        ]
        return sum(self.client.gather(parts))
