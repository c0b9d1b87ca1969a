"""`MultiSwitchTSVM` and `DAS3VM` against SVMlin 1.03 (C++): CPU time and error on documents.

Instance bag_of_words(n): n documents, 50 of them labeled, 20,000 features, 5,000 test documents;
λ' = 1, that is C = 1/(50 λ) and C* = 1/((n − 50) λ), all other parameters at their defaults. The
estimators' time is that of ``fit`` on the CSR matrix, validation included: CPU seconds, median of
five. ``svmlin`` holds the CPU seconds and the test error of SVMlin's options -A 2 (multi-switch)
and -A 3 (DA) with -W λ -U 1 on the same files, as measured before on an idle machine of the same
kind, without reading the files and with its default tolerances. The ``yardstick`` is
SVC(C=1, gamma=1/32, cache_size=1000) on mixture20(2000, 0, 2000) in the same process; with SVMlin
it took 0.047 s. ``ratio`` is SVMlin's time divided by ours, scaled by the two yardsticks.
"""

import numpy as np

from benchmarks.harness import REPEATS, digits, race
from benchmarks.instances import MIXTURE_GAMMA, bag_of_words, mixture20

# (method, n, λ): CPU seconds and test error (%) of SVMlin
SVMLIN = {
    ("multi_switch", 2_000, 1e-3): (0.12, 0.94),
    ("multi_switch", 10_000, 1e-3): (0.74, 0.36),
    ("multi_switch", 40_000, 1e-3): (5.58, 0.56),
    ("multi_switch", 2_000, 1e-2): (0.07, 4.22),
    ("multi_switch", 10_000, 1e-2): (0.37, 2.58),
    ("multi_switch", 40_000, 1e-2): (2.34, 2.76),
    ("annealing", 2_000, 1e-3): (0.71, 0.94),
    ("annealing", 10_000, 1e-3): (2.09, 0.26),
    ("annealing", 40_000, 1e-3): (12.90, 0.46),
    ("annealing", 2_000, 1e-2): (0.18, 4.10),
    ("annealing", 10_000, 1e-2): (0.74, 2.58),
    ("annealing", 40_000, 1e-2): (4.92, 2.76),
}
SVMLIN_YARDSTICK = 0.047
ROWS = [{"method": method, "n": n, "lambda": lam} for method, n, lam in SVMLIN]


def measure(method, n, **setting):
    """One row: see the protocol in the module's docstring."""
    from sklearn.svm import SVC

    from s3vm_lib import DAS3VM, MultiSwitchTSVM

    lam = setting["lambda"]
    instance = bag_of_words(n)
    X, y = instance.training()
    estimator = {"multi_switch": MultiSwitchTSVM, "annealing": DAS3VM}[method]
    model = estimator(C=1 / (50 * lam), C_star=1 / ((n - 50) * lam), balance="labels")
    X_dense, y_dense, *_ = mixture20(2000, 0, 2000)
    svc = SVC(C=1, gamma=MIXTURE_GAMMA, tol=1e-3, cache_size=1000)
    timings, _ = race(
        {"fit": lambda: model.fit(X, y), "SVC": lambda: svc.fit(X_dense, y_dense)}, REPEATS
    )
    seconds, yardstick = (timings[name]["cpu_seconds"] for name in ("fit", "SVC"))
    peer_seconds, peer_error = SVMLIN[method, n, lam]
    return {
        "cpu_seconds": seconds,
        "cpu_all": timings["fit"]["cpu_all"],
        "test_error": digits(100 * np.mean(model.predict(instance.X_test) != instance.y_test)),
        "svmlin": {"cpu_seconds": peer_seconds, "test_error": peer_error},
        "ratio": digits(peer_seconds / SVMLIN_YARDSTICK * yardstick / seconds, 3),
        "yardstick": yardstick,
        "newton_steps": model.n_iter_,
        "cg_iterations": sum(part.n_cg for part in model.history_),
        "rounds": sum(part.n_rounds for part in model.history_),
        "objective": digits(model.objective_, 6),
        "termination": model.termination_condition_,
    }
