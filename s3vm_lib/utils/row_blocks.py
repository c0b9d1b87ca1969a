"""Process many rows a block at a time: where blocks are kept, and rows that stay on the disk.

What a solver does with a million rows is mostly one pass over all of them, again and again. Cut
into blocks, a pass needs the memory of a block; its results are added in the order of the blocks,
so that bits depend neither on where a block is kept nor on which process works on it.
"""

import os
import shutil
import tempfile
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

_GOLDEN = 0.6180339887498949
_GROUP = 32  # blocks that are one task of a cluster


def row_slices(n, rows):
    """Cut n rows into consecutive slices of ``rows`` rows, the last one shorter.

    Examples
    --------
    >>> from s3vm_lib.utils.row_blocks import row_slices
    >>> row_slices(150, 100)
    [slice(0, 100, None), slice(100, 150, None)]
    """
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


def sized_slices(n, width, size=2**18, least=64):
    """Cut n rows of ``width`` numbers into slices of about ``size`` numbers.

    Parameters
    ----------
    n, width : int
    size : int, default=2**18
        Numbers in a block: two megabytes, which stay in the cache.
    least : int, default=64
        Rows in a block, except for the last one: BLAS is slow with few.

    Returns
    -------
    list of slice
    """
    step = max(least, size // max(1, width))
    return row_slices(n, step)


def spread(n, size):
    """Return about ``size`` of n positions, evenly spread, sorted; the same in every call.

    Multiples of the golden ratio modulo one fill an interval evenly and have no period, so that
    rows in a periodic order, such as classes in turns, do not fall into step with them.
    """
    if size >= n:
        return np.arange(n)
    return np.unique((np.arange(size) * _GOLDEN % 1.0 * n).astype(np.intp))


# --- Rows on the disk -----------------------------------------------------------------------------


class RowsOnDisk(NamedTuple):
    """A C-ordered matrix in a file, as `numpy.memmap` opens it."""

    path: str
    dtype: str
    offset: int  # bytes
    shape: tuple

    def open(self):
        """Map the rows, read-only."""
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)


class SparseRowsOnDisk(NamedTuple):
    """A CSR matrix whose three arrays are in files."""

    data: RowsOnDisk
    indices: RowsOnDisk
    indptr: RowsOnDisk
    shape: tuple

    def open(self):
        """Map the rows, read-only."""
        return sp.csr_matrix(tuple(part.open() for part in self[:3]), shape=self.shape)


def is_mapped(X):
    """Return whether an array, or the values of a CSR matrix, are a memory map or a view of one."""
    return _map_of(X.data if sp.issparse(X) and X.format == "csr" else X) is not None


def _map_of(X):
    """Return the memory map that X is, or is a view of, or None."""
    while X is not None and not isinstance(X, np.memmap):
        X = getattr(X, "base", None)
    return X


def on_disk(X):
    """Return the place on the disk of the rows of an array or a CSR matrix.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)

    Returns
    -------
    RowsOnDisk or SparseRowsOnDisk

    Raises
    ------
    ValueError
        If X is not a C-ordered view of a memory map, or three of them.
    """
    if not sp.issparse(X):
        return _file_of(X)
    return SparseRowsOnDisk(*map(_file_of, (X.data, X.indices, X.indptr)), X.shape)


def _file_of(X):
    base = _map_of(X)
    if base is None or base.filename is None or not X.flags.c_contiguous:
        raise ValueError(
            "X must be a C-ordered numpy.memmap of float32 or float64 with a client, so that the "
            "workers can open it, or a CSR matrix of three memory maps, those of the indices of "
            "type int32; rows of weight zero cannot be left out of it"
        )
    # A view of a view: offsets count from the map that opened the file.
    root = base
    while isinstance(root.base, np.memmap):
        root = root.base
    address = [a.__array_interface__["data"][0] for a in (X, root)]
    offset = root.offset + address[0] - address[1]
    return RowsOnDisk(os.path.abspath(root.filename), X.dtype.str, int(offset), X.shape)


def doubles(X):
    """Convert rows to double precision, dense or CSR; a copy is made only if needed."""
    if sp.issparse(X):
        return X.astype(np.float64, copy=False)
    return np.asarray(X, dtype=np.float64)


# --- Blocks that are kept -------------------------------------------------------------------------


class BlockStore:
    """The blocks of rows of one matrix, in memory or in a temporary file.

    A block of the file is mapped while somebody works on it and no longer, so that the process
    never holds more than that. The file has no name where the system allows that (otherwise it is
    deleted when it is closed): nothing is left behind by an error, by Ctrl-C, or by a process that
    is killed. (A traceback that holds a block keeps the file while it lives itself.) It lies in the
    folder of `tempfile.gettempdir`, which the variable ``TMPDIR`` moves.

    Parameters
    ----------
    n, width : int
        Shape of the matrix.
    rows : int
        Rows of a block.
    megabytes : float
        A matrix that takes more goes to the disk.
    dtype : dtype, default=numpy.float32

    Attributes
    ----------
    slices : list of slice
        The rows of each block.
    on_disk : bool

    Raises
    ------
    OSError
        When the folder has no room for the file.
    """

    def __init__(self, n, width, rows, megabytes, dtype=np.float32):
        self.slices, self.width, self.dtype = row_slices(n, rows), width, np.dtype(dtype)
        size = n * width * self.dtype.itemsize
        self.on_disk = size > megabytes * 2**20
        self._file = self._matrix = None
        if not self.on_disk:
            self._matrix = np.empty((n, width), self.dtype)
            return
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        if size > free:
            raise OSError(
                f"coordinates of {size / 2**30:.3g} GiB do not fit into the folder {folder!r}, "
                f"which has {free / 2**30:.3g} GiB left: set TMPDIR to another one, or take a "
                "lower rank"
            )
        self._file = tempfile.TemporaryFile(prefix="s3vm_lib-", buffering=0)

    def __len__(self):
        return len(self.slices)

    def __getitem__(self, k):
        """Return block k, read-only where it is on the disk."""
        s = self.slices[k]
        if not self.on_disk:
            return self._matrix[s]
        shape = s.stop - s.start, self.width
        offset = s.start * self.width * self.dtype.itemsize
        return np.memmap(self._file, self.dtype, "r", offset, shape).view(np.ndarray)

    def __setitem__(self, k, block):
        """Store block k; on the disk blocks are stored in their order."""
        if not self.on_disk:
            self._matrix[self.slices[k]] = block
            return
        left = memoryview(np.ascontiguousarray(block, self.dtype)).cast("B")
        while left:
            left = left[self._file.write(left) :]

    def close(self):
        """Delete the blocks and the file."""
        self._matrix = None
        if self._file is not None:
            self._file.close()


class ClusterBlocks:
    """Blocks that the workers of a Dask cluster make of rows, and keep.

    They open the rows themselves. The blocks of a worker that is lost are made again by others.

    Parameters
    ----------
    client : dask.distributed.Client
    X : {ndarray, CSR matrix} of shape (n, d)
        Memory maps in files that all workers can open.
    make : callable
        Of some rows; returns what is kept of them.
    rows : int
        Rows of a block.

    Attributes
    ----------
    slices : list of slice
        The rows of each block.

    Raises
    ------
    ValueError
        If X is not in a file.
    """

    def __init__(self, client, X, make, rows):
        self.client, source = client, on_disk(X)
        self.slices = row_slices(X.shape[0], rows)
        sent = client.submit(_same, make, pure=False)
        self.groups = row_slices(len(self.slices), _GROUP)
        self.parts = [
            client.submit(_made_group, source, self.slices[group], sent, pure=False)
            for group in self.groups
        ]
        self._sent = None, []

    def each(self, function, rows, *given):
        """Call ``function(block, *parts, *given)`` for every block; generate the results in order.

        Parameters
        ----------
        function : callable
        rows : tuple of ndarray
            Arrays over all rows; the function gets the parts of its block. Those that come again
            and again, and are not written to, stay with the workers from the second time on.
        *given
            What is the same for all blocks.

        Yields
        ------
        object
        """
        cut = [[tuple(a[s] for a in rows) for s in self.slices[group]] for group in self.groups]
        # Arrays that come again stay with the workers: from the second call on they are not sent.
        last, futures = self._sent
        if last is None or [id(a) for a in rows] != [id(a) for a in last]:
            self._sent, futures = (rows, cut), cut
        elif rows and isinstance(futures[0], list):
            futures = [self.client.submit(_same, part, pure=False) for part in futures]
            self._sent = rows, futures
        calls = [
            self.client.submit(_of_group, function, blocks, part, given, pure=False)
            for blocks, part in zip(self.parts, futures, strict=True)
        ]
        for found in self.client.gather(calls):
            yield from found

    def close(self):
        """Delete the blocks on the workers."""
        self.parts, self._sent = [], (None, [])


def _same(value):
    return value


def _made_group(source, slices, make):
    X = source.open()
    return [make(X[s]) for s in slices]


def _of_group(function, blocks, parts, given):
    given = [_usable(a) for a in given]
    return [
        function(block, *map(_usable, part), *given)
        for block, part in zip(blocks, parts, strict=True)
    ]


def _usable(a):
    """Align an array that came through a socket: NumPy sums unaligned ones in another order."""
    return np.require(a, requirements=("A", "W")) if isinstance(a, np.ndarray) else a
