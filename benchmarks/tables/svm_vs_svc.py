"""`SVM` against SVC of scikit-learn (libsvm) and, with many rows, of scikit-learn-intelex.

Instance mixture20(n, 0, 2000), RBF kernel with gamma = 1/32, tol = 1e-3, SVC(cache_size=1000). Both
fits include the kernel; they take turns, median of five, or three with 20,000 rows and more. Each
is timed directly after an untimed one of the same kind, which finds the caches as a second fit of a
user does: a virtual machine that gives idle memory back to its host takes up to half a second to
get 250 MB of it again. The dual objectives Σ|β| − ½ βᵀKβ of both solutions are computed alike in
double precision, and their relative difference is reported, with the ratio of the iterations and of
the CPU seconds. With 20,000 rows and more SVC of scikit-learn-intelex (oneDAL) on one thread is a
third, where it is installed.
"""

import numpy as np

from benchmarks.harness import REPEATS, digits, race
from benchmarks.instances import MIXTURE_GAMMA, mixture20

SIZES = (100, 500, 2000, 5000, 10000, 20000, 50000)
ROWS = [{"n": n, "C": C} for n in SIZES for C in (1.0, 100.0)]
LARGE = 20_000


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


def _intelex():
    """SVC of scikit-learn-intelex, on one thread, or None."""
    try:
        import daal4py
        from sklearnex.svm import SVC
    except ImportError:
        return None
    daal4py.daalinit(1)
    return SVC


def measure(n, C):
    """One row: see the protocol in the module's docstring."""
    from sklearn.svm import SVC

    from s3vm_lib import SVM

    X, y, *_, X_test, y_test = mixture20(n, 0, 2000)
    options = {"C": C, "gamma": MIXTURE_GAMMA, "tol": 1e-3}
    functions = {
        "SVM": lambda: SVM(**options).fit(X, y),
        "SVC": lambda: SVC(**options, cache_size=1000).fit(X, y),
    }
    intelex = _intelex() if n >= LARGE else None
    if intelex is not None:
        functions["intelex"] = lambda: intelex(**options, cache_size=1000).fit(X, y)
    twice = {
        key: f for name, f in functions.items() for key, f in ((f"before {name}", f), (name, f))
    }
    timings, models = race(twice, REPEATS if n < LARGE else 3)

    def ratio(peer):
        return digits(timings[peer]["cpu_seconds"] / timings["SVM"]["cpu_seconds"])

    objective = {name: dual_objective(models[name], X) for name in functions}
    iterations = {name: int(np.max(models[name].n_iter_)) for name in ("SVM", "SVC")}
    return {
        "timings": timings,
        "cpu_ratio": ratio("SVC"),
        **({} if intelex is None else {"intelex_ratio": ratio("intelex")}),
        "dual_objective": {name: round(value, 6) for name, value in objective.items()},
        "objective_relative_difference": digits(
            abs(objective["SVM"] - objective["SVC"]) / abs(objective["SVC"])
        ),
        "iterations": iterations,
        "iteration_ratio": digits(iterations["SVM"] / iterations["SVC"]),
        "gram": models["SVM"].gram_,
        "test_error": {
            name: digits(100 * np.mean(models[name].predict(X_test) != y_test))
            for name in functions
        },
    }
