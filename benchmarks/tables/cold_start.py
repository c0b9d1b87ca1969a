"""CPU seconds of the first second: import, first fit ever, first fit of another process.

Each figure is that of fresh processes, which take turns; CPU seconds of the process and of its
children, of 40 points with 20 labels, with the defaults of the estimator. ``floor``: import numba,
scikit-learn's base and validation, SciPy's sparse, linalg and optimize; then ``import``: the
estimator, from s3vm_lib. ``cold``: the fit that follows, with an empty folder for machine code,
median of three; ``warm``: the same with what the cold run left there, and ``second``: the next fit
in the same process, medians of five. ``jit``: import numba, then call a trivial function that is on
the disk; this part of a warm fit is numba's own. ``compiled`` counts the functions that the cold
fit compiled, numba's own and those inside of others included, and ``longest`` has the three that
Python called for which it took longest, in seconds.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import REPEATS, digits

ESTIMATORS = (
    "SVM",
    "CCCPS3VM",
    "S3VMLight",
    "MultiSwitchTSVM",
    "DAS3VM",
    "NewtonS3VM",
    "QNS3VM",
    "LapSVM",
    "ILS3VM",
    "NNBBS3VM",
    "BranchBoundS3VM",
    "FRS3VM",
    "TSGS3VM",
    "GKM",
    "GKMRegressor",
    "BGS3VM",
    "SelfTrainingKNN",
    "SafeS3VM",
    "S3VC",
)
ROWS = [{"estimator": name} for name in ESTIMATORS]
COLD = 3  # rounds

_CLOCK = """
import json, os, sys, warnings

def cpu():
    return sum(os.times()[:4])
"""
_FIT = (
    _CLOCK
    + """
start = cpu()
import numba, numpy as np
import scipy.linalg, scipy.optimize, scipy.sparse
import sklearn.base, sklearn.utils.validation, sklearn.utils.multiclass
floor = cpu() - start
start = cpu()
from s3vm_lib import {estimator}
imported = cpu() - start

from numba.core import event

class Compiled(event.Listener):
    stack, seconds, count = [], {{}}, 0
    def on_start(self, event):
        self.stack.append(cpu())
        Compiled.count += 1
    def on_end(self, event):
        took = cpu() - self.stack.pop()
        if not self.stack:
            function = event.data["dispatcher"].py_func
            name = function.__module__.removeprefix("s3vm_lib.") + "." + function.__name__
            self.seconds[name] = self.seconds.get(name, 0.0) + took

event.register("numba:compile", Compiled())
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.standard_normal((40, 3))
y = (X[:, 0] > 0).astype(int)
if {estimator!r} == "GKMRegressor":
    y = np.where(np.arange(40) < 20, X[:, 0], np.nan)
elif {estimator!r} != "SVM":
    y = np.where(np.arange(40) < 20, y, -1)
seconds = []
for _ in range(2):
    start = cpu()
    {estimator}().fit(X, y)
    seconds.append(cpu() - start)
print(json.dumps(dict(
    floor=floor, imported=imported, first=seconds[0], second=seconds[1],
    compiled=Compiled.count, longest=Compiled.seconds,
)))
"""
)
_JIT = (
    _CLOCK
    + """
import numba
sys.path.insert(0, {folder!r})
from trivial import add
start = cpu()
add(1.0, 2.0)
print(json.dumps(dict(jit=cpu() - start)))
"""
)
_TRIVIAL = """
import numba

@numba.njit(cache=True)
def add(a, b):
    return a + b
"""


def _run(code, cache):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "S3VM_LIB_QUIET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    return json.loads(done.stdout)


def measure(estimator):
    """One row: see the protocol in the module's docstring."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "trivial.py").write_text(_TRIVIAL)
        fit, jit = _FIT.format(estimator=estimator), _JIT.format(folder=folder)
        _run(fit, Path(folder) / "first")  # what Python keeps of the sources on the disk
        cold = [_run(fit, Path(folder) / f"cold{k}") for k in range(COLD)]
        _run(jit, folder)
        warm, trivial = [], []
        for _ in range(REPEATS):
            warm.append(_run(fit, Path(folder) / "cold0"))
            trivial.append(_run(jit, folder)["jit"])
    seconds = {
        name: float(np.median([run[name] for run in warm])) for name in warm[0] if name != "longest"
    }
    longest = sorted(cold[0]["longest"].items(), key=lambda item: -item[1])[:3]
    return {
        "floor_import": digits(seconds["floor"]),
        "import": digits(seconds["imported"]),
        "cold_fit": digits(np.median([run["first"] for run in cold])),
        "warm_fit": digits(seconds["first"]),
        "second_fit": digits(seconds["second"]),
        "jit": digits(np.median(trivial)),
        "compiled": cold[0]["compiled"],
        "compiled_warm": max(run["compiled"] for run in warm),
        "longest": {name: digits(value, 3) for name, value in longest},
    }
