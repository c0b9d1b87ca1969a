"""Seconds until a first fit: imports and first calls in fresh processes, median of five.

Two kinds of processes take turns, all with a warm numba cache. ``library``: import numba,
scikit-learn's base and validation, SciPy's sparse, linalg and optimize (the floor); then import
s3vm_lib with the estimator; then fit it on 40 points (RBF kernel, 20 labels), twice. ``jit``:
import numba, then call a trivial cached jitted function for the first time. Reported are the import
of the library beyond the floor and the first fit beyond the trivial first call, in wall seconds.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import REPEATS, digits

ROWS = [{"estimator": name} for name in ("SVM", "QNS3VM")]

_FLOOR = """
import json, time
start = time.perf_counter()
import numba, numpy as np
import scipy.linalg, scipy.optimize, scipy.sparse
import sklearn.base, sklearn.utils.validation, sklearn.utils.multiclass
floor = time.perf_counter() - start
"""
_LIBRARY = (
    _FLOOR
    + """
start = time.perf_counter()
from s3vm_lib import {estimator}
imported = time.perf_counter() - start
rng = np.random.default_rng(0)
X = rng.standard_normal((40, 2)); y = np.arange(40) % 2; X[:, 0] += 3 * y; y[20:] = -1
model = {estimator}(kernel="rbf", gamma=0.5)
if hasattr(model, "balance"):
    model.set_params(balance="labels")
start = time.perf_counter()
model.fit(X, y)
first = time.perf_counter() - start
start = time.perf_counter()
model.fit(X, y)
second = time.perf_counter() - start
print(json.dumps(dict(floor=floor, imported=imported, first=first, second=second)))
"""
)
_JIT = """
import json, sys, time
import numba
sys.path.insert(0, {folder!r})
from trivial import add
start = time.perf_counter()
add(1.0, 2.0)
print(json.dumps(dict(jit=time.perf_counter() - start)))
"""
_TRIVIAL = """
import numba

@numba.njit(cache=True)
def add(a, b):
    return a + b
"""


def _run(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    return json.loads(done.stdout)


def measure(estimator):
    """One row: see the protocol in the module's docstring."""
    seen = {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "trivial.py").write_text(_TRIVIAL)
        codes = [_LIBRARY.format(estimator=estimator), _JIT.format(folder=folder)]
        for repeat in range(REPEATS + 1):
            for code in codes:
                for name, seconds in _run(code).items():
                    if repeat > 0:  # the first round fills the caches
                        seen.setdefault(name, []).append(seconds)
    median = {name: float(np.median(values)) for name, values in seen.items()}
    return {
        "floor_import_seconds": digits(median["floor"]),
        "import_beyond_floor_seconds": digits(median["imported"]),
        "first_fit_seconds": digits(median["first"]),
        "second_fit_seconds": digits(median["second"]),
        "trivial_jit_call_seconds": digits(median["jit"]),
        "first_fit_beyond_jit_seconds": digits(median["first"] - median["jit"]),
    }
