"""`SVM` with a linear kernel against LinearSVC (liblinear) with the hinge loss.

Two Gaussians whose means are a distance of 2 apart, n rows of d columns, or 20,000 documents of
bag_of_words; C = 1 and 100. `SVM` with its default tolerance; LinearSVC with its default tolerance
and at most 1,000 iterations, which penalizes the offset too (``intercept_scaling=1``), so that its
problem is another one. Fits take turns, median of five CPU times. ``ratio``: seconds of LinearSVC
over those of SVM; ``objective_relative_difference``: ½ ‖w‖² + C Σ hinge of LinearSVC over that of
`SVM`, minus 1.
"""

import numpy as np

from benchmarks.harness import digits, race
from benchmarks.instances import bag_of_words

SIZES = {
    "5,000 x 12": (5000, 12),
    "20,000 x 20": (20_000, 20),
    "100,000 x 50": (100_000, 50),
    "1,000 x 256": (1000, 256),
    "5,000 x 257": (5000, 257),
}
ROWS = [{"set": name, "C": C} for name in (*SIZES, "documents") for C in (1.0, 100.0)]


def rows(name):
    """Rows and classes of a set."""
    if name == "documents":
        X, y, *_ = bag_of_words(20_000, n_labeled=20_000)
        return X, y
    n, d = SIZES[name]
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return rng.standard_normal((n, d)) + (2 * y[:, None] - 1) / np.sqrt(d), y


def measure(set, C):
    """One row: see the protocol in the module's docstring."""
    from sklearn.svm import LinearSVC

    from s3vm_lib import SVM
    from s3vm_lib.kernels import Kernel
    from s3vm_lib.objective import Problem, evaluate

    X, y = rows(set)
    timings, models = race(
        {
            "SVM": lambda: SVM(kernel="linear", C=C).fit(X, y),
            "LinearSVC": lambda: LinearSVC(loss="hinge", C=C, random_state=0).fit(X, y),
        }
    )
    problem = Problem(C=C, kernel=Kernel("linear"))
    J = {name: evaluate(model, X, y, problem).objective for name, model in models.items()}
    return {
        "timings": timings,
        "ratio": digits(timings["LinearSVC"]["cpu_seconds"] / timings["SVM"]["cpu_seconds"]),
        "objective": {name: digits(value, 7) for name, value in J.items()},
        "objective_relative_difference": digits(J["LinearSVC"] / J["SVM"] - 1, 3),
        "liblinear_iterations": int(np.max(models["LinearSVC"].n_iter_)),
    }
