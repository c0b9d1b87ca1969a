"""`SVM` against scikit-learn's SVC (libsvm): objective, iterations and CPU time.

Instance mixture20(n, 0, 2000), RBF kernel with gamma = 1/32, tol = 1e-3, SVC(cache_size=1000). Both
fits include the kernel; they take turns, median of five. The dual objectives Σ|β| − ½ βᵀKβ of both
solutions are computed alike in double precision, and their relative difference is reported, with
the ratio of the iterations and of the CPU seconds.
"""

import numpy as np

from benchmarks.harness import digits, race
from benchmarks.instances import MIXTURE_GAMMA, mixture20

ROWS = [{"n": n, "C": C} for n in (100, 500, 2000, 5000, 10000) for C in (1.0, 100.0)]


def dual_objective(model, X):
    """Σ|β| − ½ βᵀKβ of a fitted two-class model with an RBF kernel.

    Parameters
    ----------
    model : SVM or SVC
        Fitted on X.
    X : ndarray of shape (n, d)
        Training rows.

    Returns
    -------
    float
    """
    from s3vm_lib.kernels import Kernel

    beta, rows = np.ravel(model.dual_coef_), X[model.support_]
    kernel = Kernel("rbf", gamma=MIXTURE_GAMMA)
    quadratic = 0.0
    for start in range(0, len(rows), 1000):  # in blocks: the Gram matrix of n = 10000 is large
        block = slice(start, start + 1000)
        quadratic += beta[block] @ (kernel.gram(rows[block], rows) @ beta)
    return np.abs(beta).sum() - 0.5 * quadratic


def measure(n, C):
    """One row: see the protocol in the module's docstring."""
    from sklearn.svm import SVC

    from s3vm_lib import SVM

    X, y, *_, X_test, y_test = mixture20(n, 0, 2000)
    options = {"C": C, "gamma": MIXTURE_GAMMA, "tol": 1e-3}
    timings, models = race(
        {
            "SVM": lambda: SVM(**options).fit(X, y),
            "SVC": lambda: SVC(**options, cache_size=1000).fit(X, y),
        }
    )
    objective = {name: dual_objective(model, X) for name, model in models.items()}
    iterations = {name: int(np.max(model.n_iter_)) for name, model in models.items()}
    return {
        "timings": timings,
        "cpu_ratio": digits(timings["SVC"]["cpu_seconds"] / timings["SVM"]["cpu_seconds"]),
        "dual_objective": {name: round(value, 6) for name, value in objective.items()},
        "objective_relative_difference": digits(
            abs(objective["SVM"] - objective["SVC"]) / abs(objective["SVC"])
        ),
        "iterations": iterations,
        "iteration_ratio": digits(iterations["SVM"] / iterations["SVC"]),
        "gram": models["SVM"].gram_,
        "test_error": {
            name: digits(100 * np.mean(model.predict(X_test) != y_test))
            for name, model in models.items()
        },
    }
