"""One thread and two: wall and CPU seconds of each part that n_jobs shares out; same bits.

Rows of mixture20(50, n − 50, 1), RBF kernel with gamma = 1/32. ``gram``: the matrix in double
precision; ``smo matrix``: that of SMO, in single precision; ``low rank``: `pivoted_cholesky` with
500 pivots; ``one-vs-rest``: `SVM` with four classes, which are the quadrants of the first two
columns; ``prediction``: outputs of a model with 2000 kernels on new rows; ``search``:
`S3VMSearchCV` over three C and three gamma of `CCCPS3VM`, by processes, with balance="labels"
(to estimate the shares takes many times what the fits take). n_jobs = 1 and 2 take turns, median
of five, BLAS with one thread. The ratio is that of wall seconds and asks for two idle cores:
``cpu_over_wall`` says how many a run with two threads had, and ``cpu_overhead`` what the threads
cost in CPU seconds; both mean nothing for the search, whose processes are not counted.
"""

import numpy as np

from benchmarks.harness import digits, race
from benchmarks.instances import MIXTURE_GAMMA, mixture20

ROWS = [
    {"part": "gram", "n": 6000},
    {"part": "smo matrix", "n": 6000},
    {"part": "low rank", "n": 20_000},
    {"part": "one-vs-rest", "n": 4000},
    {"part": "prediction", "n": 40_000},
    {"part": "search", "n": 4000},
]


def _work(part, n):
    """A function of n_jobs that does the work and returns an array with its result."""
    from s3vm_lib import CCCPS3VM, SVM
    from s3vm_lib.gram import Gram
    from s3vm_lib.kernels import Kernel, pivoted_cholesky
    from s3vm_lib.model_selection import S3VMSearchCV
    from s3vm_lib.utils.threads import using

    kernel = Kernel("rbf", gamma=MIXTURE_GAMMA)
    instance = mixture20(50, n - 50, 1)
    X, y = instance.training()

    def within(function):
        def run(n_jobs):
            with using(n_jobs):
                return function()

        return run

    if part == "gram":
        return within(lambda: kernel.gram(X))
    if part == "smo matrix":
        return within(lambda: Gram(X, kernel, storage="full").cache.values)
    if part == "low rank":
        return within(lambda: pivoted_cholesky(X, kernel, 500, pivoting="residual", block=64)[0])
    if part == "one-vs-rest":
        quadrants = (X[:, 0] > 0) + 2 * (X[:, 1] > 0)
        options = {"C": 10.0, "gamma": MIXTURE_GAMMA, "gram": "full"}
        return lambda n_jobs: SVM(**options, n_jobs=n_jobs).fit(X, quadrants).dual_coef_
    if part == "prediction":
        model = SVM(gamma=MIXTURE_GAMMA).fit(X[:2000], X[:2000, 0] * X[:2000, 1] > 0)
        model.support_, model.support_vectors_ = np.arange(2000), X[:2000]
        model.dual_coef_ = np.linspace(-1.0, 1.0, 2000)[None]
        return lambda n_jobs: model.set_params(n_jobs=n_jobs).decision_function(X)
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [k * MIXTURE_GAMMA for k in (0.25, 1.0, 4.0)]}
    inner = CCCPS3VM(balance="labels")
    return lambda n_jobs: (
        S3VMSearchCV(inner, grid, n_jobs=n_jobs).fit(X, y).cv_results_["mean_test_score"]
    )


def measure(part, n):
    """One row: see the protocol in the module's docstring."""
    work = _work(part, n)
    timings, values = race({"one": lambda: work(1), "two": lambda: work(2)})
    one, two = timings["one"], timings["two"]
    return {
        "timings": timings,
        "wall_ratio": digits(one["wall_seconds"] / two["wall_seconds"]),
        "cpu_over_wall": digits(two["cpu_seconds"] / two["wall_seconds"]),
        "cpu_overhead": digits(two["cpu_seconds"] / one["cpu_seconds"]),
        "same_bits": bool(np.array_equal(values["one"], values["two"])),
    }
