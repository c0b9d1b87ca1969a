"""Text, 50 labels: `MultiSwitchTSVM` and `DAS3VM` over λ and λ' on the published splits.

The ten published splits of text_lds (mac against windows); all rows without a label are unlabeled
and the error is counted on them. One setting for all splits: C = 1/(50 λ), C* = λ'/(λ u); rows of
unit length, as they are published. ``ratio`` "labels" estimates the share of the classes from the
50 labels, "true" gives it. The grid is shown whole: picking its best entry would be picking on the
labels that are to be predicted. SVMlin itself has 8.5 % (multi-switch, λ = .01, λ' = 1) and 6.2 %
(DA, λ = .001, λ' = 1) on the first five splits, with which ``first_five`` compares.
"""

import time

import numpy as np

from benchmarks.harness import digits, mean_and_error
from s3vm_lib import datasets

ROWS = [
    {"method": method, "lambda": lam, "lambda_prime": prime, "ratio": ratio}
    for ratio in ("labels", "true")
    for method in ("multi_switch", "annealing")
    for lam in (1e-3, 3e-3, 1e-2, 3e-2)
    for prime in (1.0, 3.0, 10.0)
]


def measure(method, ratio, **setting):
    """One row: see the protocol in the module's docstring."""
    from s3vm_lib import DAS3VM, MultiSwitchTSVM

    bunch = datasets.load("text_lds")
    estimator = {"multi_switch": MultiSwitchTSVM, "annealing": DAS3VM}[method]
    lam, prime = setting["lambda"], setting["lambda_prime"]
    errors, seconds = [], []
    for labeled in bunch.splits["lab50"]:
        y = np.full(len(bunch.target), -1)
        y[labeled] = bunch.target[labeled]
        hidden = y == -1
        truth = bunch.target[hidden]
        balance = "labels" if ratio == "labels" else float(truth.mean())
        C_star = prime / (lam * hidden.sum())
        model = estimator(C=1 / (lam * len(labeled)), C_star=C_star, balance=balance)
        start = time.process_time()
        model.fit(bunch.data, y)
        seconds.append(time.process_time() - start)
        errors.append(digits(100 * np.mean(model.transduction_[hidden] != truth)))
    return {
        **mean_and_error(errors),
        "first_five": digits(np.mean(errors[:5])),
        "errors": errors,
        "cpu_seconds": digits(np.median(seconds)),
    }
