"""The full-batch sum on a Dask cluster of local processes against threads of one process.

n synthetic rows of 30 dimensions on disk, 256 features, blocks of 16384 rows: wall seconds of one
value and gradient over all rows, best of three, for threads and for worker processes. Workers draw
the features in every sum; threads keep them from before the timing on up to 100,000 rows, and draw
them in every sum on more. The overhead of a task is the same sum over 64 rows in one block.
``difference`` is the largest between the gradients of the cluster and of one thread. Needs
``dask.distributed``.
"""

import os
import tempfile
import time

import numpy as np

from benchmarks.harness import digits
from benchmarks.tsg import rows_on_disk

PLACES = (("threads", 1), ("threads", 2), ("dask", 1), ("dask", 2), ("dask", 4))
ROWS = [
    {"backend": backend, "workers": workers, "n": n}
    for n in (64, 100_000, 300_000, 1_000_000, 10_000_000)
    for backend, workers in PLACES
]


def measure(backend, workers, n):
    """One row: see the protocol in the module's docstring."""
    from s3vm_lib.kernels import Kernel
    from s3vm_lib.random_features import FeatureStream
    from s3vm_lib.stochastic import BlockSum

    codes = (3, 0.0, 3, 3.0)
    with tempfile.TemporaryDirectory() as folder:
        X, y = rows_on_disk(os.path.join(folder, "rows"), n)
        t = np.where(np.arange(n) < 32, 2.0 * y - 1, 0.0)
        weight = np.full(n, 1.0 / n)
        stream = FeatureStream(Kernel("rbf", 0.5 / 30), 30, 256, 0)
        w = np.random.default_rng(0).standard_normal(256) / 16
        alone = BlockSum(stream, 1, X, t, weight, codes)
        if backend == "threads":
            sums = BlockSum(stream, 1, X, t, weight, codes, n_jobs=workers)
            return _timed(sums, w, alone)
        try:
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise OSError("dask.distributed is not installed") from error
        start = time.perf_counter()
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
        ):
            started = time.perf_counter() - start
            sums = BlockSum(stream, 1, X, t, weight, codes, client=client)
            return {**_timed(sums, w, alone), "start_seconds": digits(started)}


def _timed(sums, w, alone):
    expected = alone(1.0, w, 0.1)
    found, best = sums(1.0, w, 0.1), np.inf
    for _ in range(3):
        start = time.perf_counter()
        sums(1.0, w, 0.1)
        best = min(best, time.perf_counter() - start)
    return {
        "wall_seconds": digits(best),
        "difference": float(np.abs(found[1] - expected[1]).max()),
    }
