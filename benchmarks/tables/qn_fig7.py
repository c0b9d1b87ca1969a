"""Figure 7 of the QN-S3VM paper: CPU seconds on MNIST pairs, 2,000 to 10,000 points.

MNIST(1,7) and MNIST(3,8), λ = λ' = C = C* = 1, linear kernel as elsewhere in the paper, 10 % of the
training points labeled (the paper does not say how many). QN-S3VM in three ways: ``regressors``,
the paper's approximation with r = 2000 random basis vectors; ``cholesky``, our pivoted Cholesky
factorization of the same kernel, which stops by itself at the rank of the data; ``weights``, the
linear model in its 784 weights, which needs no kernel matrix. Beside it the counterparts of the
paper's other programs: ``CCCP`` (UniverSVM), ``multi-switch`` (TSVMlin) and ``annealing`` (DA),
with the costs of ``qn_fig6``. Medians of five fits after one that compiles, with the test error
on 2,000 other points.
"""

import numpy as np

from benchmarks import qn_paper
from benchmarks.harness import digits, race
from s3vm_lib.smooth import Coordinates

ROWS = [
    {"set": name, "n": n, "method": method}
    for name in ("M(1,7)", "M(3,8)")
    for method in ("weights", "cholesky", "regressors", "CCCP", "multi-switch", "annealing")
    for n in (2000, 4000, 6000, 8000, 10000)
]
# A polynomial kernel of degree one is the linear kernel, treated as a kernel.
AS_KERNEL = {"kernel": "poly", "degree": 1, "gamma": 1.0, "coef0": 0.0}
REGRESSORS = Coordinates("regressors", rank=2000)
OPTIONS = {
    "weights": {"kernel": "linear"},
    "cholesky": {**AS_KERNEL, "coordinates": Coordinates(rank=2000)},
    "regressors": {**AS_KERNEL, "coordinates": REGRESSORS, "random_state": 0},
}


def model(method, y):
    """An estimator with the settings of this table."""
    from s3vm_lib import CCCPS3VM, DAS3VM, MultiSwitchTSVM

    if method in OPTIONS:
        return qn_paper.qn(1.0, 1.0, y, **OPTIONS[method])
    if method == "CCCP":
        return CCCPS3VM(kernel="linear", C=1.0, C_star=1.0, balance="labels")
    means = {"C": 1 / np.sum(y != -1), "C_star": 1 / np.sum(y == -1), "balance": "labels"}
    return {"multi-switch": MultiSwitchTSVM, "annealing": DAS3VM}[method](**means)


def measure(set, n, method):
    """One row: see the protocol in the module's docstring."""
    n_labeled = n // 10
    parts = qn_paper.partitions(
        set, n_labeled, n - n_labeled, 2000, stratified=True, number=1, rotate=False
    )
    part = next(parts)
    timings, models = race({method: lambda: model(method, part.y).fit(part.X, part.y)})
    fitted = models[method]
    return {
        "cpu_seconds": timings[method]["cpu_seconds"],
        "wall_seconds": timings[method]["wall_seconds"],
        "iterations": int(np.max(fitted.n_iter_)),
        "test_error": digits(100 * np.mean(fitted.predict(part.X_test) != part.y_test)),
    }
