"""Time and memory against n: synthetic rows of 30 dimensions, up to a million.

Two Gaussian classes, 200 labels, float32 rows on disk. ``frs`` and ``tsg``: default settings
(1024 features, at most 2000 steps of ``frs``, one pass of ``tsg``), outputs on all rows included.
``frs-full``: L-BFGS over all rows with 256 features, 10 iterations a stage; features are kept on up
to 100,000 rows, and computed again for every sum on more. ``tsg-block``: one pass of Algorithm 1
with 256 features a step, without the outputs on all rows. Each row runs in a process of its own;
memory is the largest resident size minus the largest up to then, after a fit to 2000 rows, in MiB,
pages of the file included ("extra"), and the largest size ("peak").
"""

import json
import os
import subprocess
import sys
import tempfile

ROWS = [
    *(
        {"method": method, "n": n}
        for method in ("frs", "tsg", "frs-full")
        for n in (10_000, 100_000, 300_000, 1_000_000)
    ),
    *({"method": "tsg-block", "n": n} for n in (10_000, 30_000, 100_000, 300_000, 1_000_000)),
]

_CODE = """
import json, sys, time, warnings
import numpy as np
from benchmarks.tsg import peak_megabytes, rows_on_disk
from s3vm_lib import FRS3VM, TSGS3VM
from s3vm_lib.stochastic import Features, Polish
method, n, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
X, y = rows_on_disk(path, n)
partly = np.where(np.arange(n) < 200, y, -1)
common = dict(gamma=0.5 / 30, random_state=0, C=10.0, balance="labels")
model = {
    "frs": lambda: FRS3VM(**common),
    "tsg": lambda: TSGS3VM(**common),
    "frs-full": lambda: FRS3VM(
        n_steps=0, n_features=256,
        polish=Polish(rows=None, max_iter=10, annealing=[0.1, 1.0]), **common
    ),
    "tsg-block": lambda: TSGS3VM(
        update="block", features=Features(block_size=256), n_steps=-(-n // 256),
        transduce=False, **common
    ),
}[method]()
warnings.simplefilter("ignore")
model.fit(X[:2000], partly[:2000])
before = peak_megabytes()
start, wall = time.process_time(), time.perf_counter()
model.fit(X, partly)
seconds, wall = time.process_time() - start, time.perf_counter() - wall
after = peak_megabytes()
wrong = model.predict(X[-20_000:]) != y[-20_000:]
print(json.dumps(dict(cpu_seconds=round(seconds, 3), wall_seconds=round(wall, 3),
    extra_mb=round(after - before, 1), peak_mb=round(after, 1), file_mb=round(X.nbytes / 2**20, 1),
    steps=model.n_iter_, error=round(100 * float(wrong.mean()), 3))))
"""


def measure(method, n):
    """One row: see the protocol in the module's docstring."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows")
        run = subprocess.run(
            [sys.executable, "-c", _CODE, method, str(n), path],
            capture_output=True,
            text=True,
            check=False,
        )
    if run.returncode != 0:
        raise RuntimeError(run.stderr[-2000:])
    return json.loads(run.stdout.splitlines()[-1])
