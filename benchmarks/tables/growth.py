"""How time, memory and error grow with the number of rows, for each estimator and for peers.

Instance mixture20(50, n - 50, 2000, 0), RBF kernel with gamma = 1/32 where there is a kernel, all
else by default; `MultiSwitchTSVM` and `DAS3VM`, which are linear, and `LinearSVC` take
bag_of_words(n). The supervised methods (`SVM`, SVC, LinearSVC) get the labels of all rows, the
others those of the first 50 (`BranchBoundS3VM`, `NNBBS3VM`: 10). The sizes are 1, 2, 5 times powers
of ten, up to the first fit of more than 20 seconds or 8 GB, or to the million.

The code is compiled ahead (`s3vm_lib.compile`). Each fit runs in a process of its own, which has
made the data and fitted a few rows before. ``cpu_seconds``: median of five fits, or of one that
takes more than four seconds. ``megabytes``: largest resident memory in the first of them above what
there was before, or 1. ``error``: in per cent, on the unlabeled rows, or on the test rows where all
rows have a label. ``seconds_exponent`` and ``megabytes_exponent``: slopes of the least-squares line
of the logarithms over the sizes that are within a factor of ten of the largest (memory: of those
that need 8 MB at least, if there are three). Needs Linux.
"""

import json
import subprocess
import sys

import numpy as np

import s3vm_lib
from benchmarks.harness import digits

SECONDS, MEGABYTES = 20, 8000  # no larger size after such a fit
SIZES = [k * 10**e for e in range(1, 7) for k in (1, 2, 5)][:-2]
FIRST = {"BranchBoundS3VM": 10, "NNBBS3VM": 50}  # size, otherwise 500
MOST = {"BranchBoundS3VM": 100}
OURS = (
    *(
        "SVM",
        "CCCPS3VM",
        "S3VMLight",
        "QNS3VM",
        "NewtonS3VM",
        "LapSVM",
        "MultiSwitchTSVM",
        "DAS3VM",
    ),
    *("FRS3VM", "TSGS3VM", "GKM", "BGS3VM", "ILS3VM", "SelfTrainingKNN", "SafeS3VM", "S3VC"),
    *("NNBBS3VM", "BranchBoundS3VM"),
)
PEERS = ("SVC", "LinearSVC", "SelfTraining[SVC]", "LabelSpreading")
ROWS = [{"method": method} for method in (*OURS, *PEERS)]

_CODE = """
import inspect, json, sys, time, warnings
import numpy as np
import s3vm_lib
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC, LinearSVC
from benchmarks.instances import MIXTURE_GAMMA, bag_of_words, mixture20
method, n = sys.argv[1], int(sys.argv[2])
warnings.simplefilter("ignore")
peers = {
    "SVC": lambda: SVC(gamma=MIXTURE_GAMMA),
    "LinearSVC": lambda: LinearSVC(loss="hinge", random_state=0),
    "SelfTraining[SVC]": lambda: SelfTrainingClassifier(SVC(gamma=MIXTURE_GAMMA, probability=True)),
    "LabelSpreading": lambda: LabelSpreading(gamma=MIXTURE_GAMMA),
}
def model():
    if method in peers:
        return peers[method]()
    estimator = getattr(s3vm_lib, method)()
    wanted = dict(gamma=MIXTURE_GAMMA, random_state=0)
    known = estimator.get_params()
    return estimator.set_params(**{key: v for key, v in wanted.items() if key in known})
labeled = min(10 if method in ("BranchBoundS3VM", "NNBBS3VM") else 50, n - 1)
supervised = method in ("SVM", "SVC", "LinearSVC")
def data(n):
    if method in ("MultiSwitchTSVM", "DAS3VM", "LinearSVC"):
        part = bag_of_words(n, n_labeled=labeled, n_test=2000)
    else:
        part = mixture20(labeled, n - labeled, 2000)
    X, y = part.training()
    truth = np.r_[part.y_labeled, part.y_unlabeled]
    return X, truth if supervised else y, truth, part.X_test, part.y_test
def status(name):
    with open("/proc/self/status") as lines:
        return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024
X, y, truth, X_test, y_test = data(n)
small = data(min(n, 400))
for _ in range(2):
    model().fit(*small[:2])
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak begins anew
before, seconds = status("VmRSS"), []
while len(seconds) < 5 and (not seconds or seconds[0] < 4):
    fitted, start = model(), time.process_time()
    fitted.fit(X, y)
    seconds.append(time.process_time() - start)
    if len(seconds) == 1:
        after = status("VmHWM")
found = fitted.predict(X_test) if supervised else fitted.transduction_
expected = y_test if supervised else truth
wrong = (found != expected)[0 if supervised else labeled:]
print(json.dumps([float(np.median(seconds)), max(1.0, after - before), 100 * float(wrong.mean())]))
"""


def exponent(n, values):
    """Slope of log values against log n over the last decade of n."""
    n, values = np.asarray(n, dtype=float), np.asarray(values, dtype=float)
    last = n >= n.max() / 10
    return digits(np.polyfit(np.log(n[last]), np.log(values[last]), 1)[0], 3)


def measure(method):
    """One row: see the protocol in the module's docstring."""
    if method in OURS:
        s3vm_lib.compile([method], progress=False)
    n, found = [], []
    for size in SIZES:
        if size < FIRST.get(method, 500) or size > MOST.get(method, SIZES[-1]):
            continue
        run = subprocess.run(
            [sys.executable, "-c", _CODE, method, str(size)], capture_output=True, text=True
        )
        if run.returncode != 0:
            raise RuntimeError(run.stderr[-2000:])
        n.append(size)
        found.append(json.loads(run.stdout.splitlines()[-1]))
        print(f"  {method} {size} {found[-1]}", flush=True)
        if found[-1][0] > SECONDS or found[-1][1] > MEGABYTES:
            break
    seconds, megabytes, error = np.transpose(found)
    large = megabytes >= 8 if np.sum(megabytes >= 8) >= 3 else megabytes > 0
    return {
        "n": n,
        "cpu_seconds": [digits(v) for v in seconds],
        "megabytes": [digits(v) for v in megabytes],
        "error": [digits(v) for v in error],
        "seconds_exponent": exponent(n, seconds),
        "megabytes_exponent": exponent(np.asarray(n)[large], megabytes[large]),
    }
