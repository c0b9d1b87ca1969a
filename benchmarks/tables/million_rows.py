"""Up to a million rows: CPU and wall seconds, memory, and the error on the unlabeled rows.

``qn``: `QNS3VM` with at most 500 pivots on the first n rows of mixture20(50, 999950, 0), so that
the 50 labeled rows of a draw are the same for every n; C = 1/(2λl) with λ = 2^-10, λ' = 1,
gamma = 1/32, the share of positives estimated from all rows (``balance="auto"``). The rows are a
memory map in double precision. Three draws: medians of the seconds and the memory, mean of the
errors. ``qn-disk``: the same with 500 MiB for the coordinates, which then lie in a temporary file.
``multi_switch`` and ``annealing``: `MultiSwitchTSVM` and `DAS3VM` on n documents of 100 words over
20,000 features (``make_bag_of_words``), 50 of them labeled, λ = 1e-3, λ' = 1, that is C = 1/(50 λ)
and C* = 1/((n - 50) λ); one draw, and the error on 5,000 further documents too.

Seconds are those of ``fit`` in a process of its own, after a small fit that compiles; outputs on
all rows and ``transduction_`` included. ``peak_mb`` is the largest resident size of that process,
of which ``before_mb`` was there before the fit: interpreter, libraries and, with documents, X.
Needs Linux, which has it in /proc.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from benchmarks.harness import digits
from benchmarks.instances import mixture20

MOST = 1_000_000
DRAWS = 3
ROWS = [
    *({"method": "qn", "n": n} for n in (20_000, 100_000, MOST)),
    {"method": "qn-disk", "n": MOST},
    *({"method": method, "n": MOST} for method in ("multi_switch", "annealing")),
]

_CODE = """
import json, sys, time, warnings
import numpy as np, scipy.sparse as sp
from s3vm_lib import DAS3VM, MultiSwitchTSVM, QNS3VM
from s3vm_lib.smooth import Coordinates
method, n, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def peak_megabytes():
    # What getrusage says begins with the size of the process that started this one.
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1024
warnings.simplefilter("ignore")
def load(name, mode=None):
    return np.load(f"{folder}/{name}.npy", mmap_mode=mode)
truth = load("classes")
y = truth[:n].copy()
y[50:] = -1
if method.startswith("qn"):
    X = load("rows", "r")[:n]
    def model(**options):
        return QNS3VM(C=1024 / 100, gamma=1 / 32, coordinates=Coordinates(**options))
    model(rank=40, memory=20).fit(load("rows", "r")[:40_000], np.r_[y[:50], np.full(39_950, -1)])
    final = model(rank=500, memory=500 if method == "qn-disk" else 4000)
else:
    start = load("indptr")
    def rows(first, last):
        part = slice(start[first], start[last])
        cut = [np.array(load(name, "r")[part]) for name in ("data", "indices")]
        return sp.csr_matrix((*cut, start[first : last + 1] - start[first]), (last - first, 20_000))
    X, kind = rows(0, n), {"multi_switch": MultiSwitchTSVM, "annealing": DAS3VM}[method]
    kind().fit(X[:2000], y[:2000])
    final = kind(C=1 / (50 * 1e-3), C_star=1 / ((n - 50) * 1e-3), balance="labels")
before = peak_megabytes()
seconds, wall = time.process_time(), time.perf_counter()
final.fit(X, y)
seconds, wall = time.process_time() - seconds, time.perf_counter() - wall
found = dict(cpu_seconds=seconds, wall_seconds=wall, before_mb=before, peak_mb=peak_megabytes(),
    error=100 * np.mean(final.transduction_[50:] != truth[50:n]), iterations=final.n_iter_)
if not method.startswith("qn"):
    found["test_error"] = 100 * np.mean(final.predict(rows(n, n + 5000)) != truth[n:])
    found["nonzeros"] = X.nnz / n
else:
    found["evaluations"] = sum(stage.n_evaluations for stage in final.history_[1:])
print(json.dumps({k: float(v) for k, v in found.items()}))
"""


def measure(method, n):
    """One row: see the protocol in the module's docstring."""
    draws = [_draw(method, n, seed) for seed in range(DRAWS if method.startswith("qn") else 1)]
    means = ("error", "test_error")
    return {
        **{
            name: digits((np.mean if name in means else np.median)([d[name] for d in draws]))
            for name in draws[0]
        },
        "cpu_all": [digits(draw["cpu_seconds"]) for draw in draws],
        "errors": [digits(draw["error"]) for draw in draws],
    }


def _draw(method, n, seed):
    with tempfile.TemporaryDirectory() as folder:
        _write(method, n, seed, folder)
        run = subprocess.run(
            [sys.executable, "-c", _CODE, method, str(n), folder],
            capture_output=True,
            text=True,
            check=False,
        )
    if run.returncode != 0:
        raise RuntimeError(run.stderr[-2000:])
    return json.loads(run.stdout.splitlines()[-1])


def _write(method, n, seed, folder):
    """The rows and their classes, as files that the process of the fit maps."""
    if method.startswith("qn"):
        instance = mixture20(50, MOST - 50, 0, seed)
        y = np.concatenate([instance.y_labeled, instance.y_unlabeled])
        parts = {"rows": instance.training()[0], "classes": y}
    else:
        from s3vm_lib.datasets import make_bag_of_words

        X, y = make_bag_of_words(n + 5000, 20_000, n_terms=100, random_state=50 + seed)
        parts = {name: getattr(X, name) for name in ("data", "indices", "indptr")}
        parts["classes"] = y
    for name, values in parts.items():
        np.save(os.path.join(folder, f"{name}.npy"), values)
