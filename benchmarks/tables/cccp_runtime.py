"""`CCCPS3VM`: CPU time against UniverSVM by a yardstick, and what the line step saves.

Rows with ``u``: instance mixture20(50, u, 2000, seed), RBF kernel with gamma = 1/32, C = 10,
C* = 1, s = −0.3, the class ratio from the 50 labels, tol = 1e-3; seeds 0, 1, 2 (u = 8000: seed 0).
Training times include the kernel; they take turns with the yardstick, scikit-learn's
SVC(C=1, gamma=1/32, tol=1e-3, cache_size=1000) on mixture20(n, 0, 2000), n = 2000, 5000, 10000,
median of three. Reported are the median over the seeds of the CPU seconds, the mean error on the
unlabeled points, and ``ratio``: seconds over those that UniverSVM 1.22 (C++; 1.57, 4.98 and
23.73 s for u = 2000, 4000, 8000, with mean errors of 16.0, 11.6 and 13.1 %) took on a machine where
the yardstick took 0.047, 0.158 and 0.521 s, multiplied by the median factor of the yardsticks.

Rows with ``C_star``: G2C, gaussians("G2C", 2), linear kernel, C = 1, tol = 1e-3: 5 of the 25
labels are positive, half of the unlabeled points are, so that the balance contradicts the data.
Iterations of SMO and CPU seconds in the first convex problem after the supervised start and in all
of them, without and with the exact line step along the direction that changes neither Kβ nor Σβ,
and with Newton steps on the free variables besides; at most 300,000 iterations in each problem.
"""

import numpy as np

from benchmarks.harness import digits, race
from benchmarks.instances import MIXTURE_GAMMA, gaussians, mixture20

UNIVERSVM = {2000: (1.57, 16.0), 4000: (4.98, 11.6), 8000: (23.73, 13.1)}
YARDSTICK = {2000: 0.047, 5000: 0.158, 10000: 0.521}
ROWS = [{"u": u} for u in UNIVERSVM] + [{"C_star": c} for c in (0.01, 0.1, 1.0, 10.0, 227.0)]


def measure(u=None, C_star=None):
    """One row: see the protocol in the module's docstring."""
    return runtime(u) if C_star is None else line_step(C_star)


def runtime(u):
    """CPU seconds, errors and the ratio to UniverSVM at u unlabeled points."""
    from sklearn.svm import SVC

    from s3vm_lib import CCCPS3VM

    seeds = (0,) if u == 8000 else (0, 1, 2)
    instances = {seed: mixture20(50, u, 2000, seed) for seed in seeds}
    options = {"gamma": MIXTURE_GAMMA, "tol": 1e-3}
    costs = {"C": 10.0, "C_star": 1.0, "balance": "labels"}
    functions = {}
    for seed, instance in instances.items():
        data = instance.training()
        functions[f"seed {seed}"] = lambda data=data: CCCPS3VM(**costs, **options).fit(*data)
    for n in YARDSTICK:
        data = mixture20(n, 0, 2000).training()
        functions[f"SVC {n}"] = lambda data=data: SVC(C=1.0, cache_size=1000, **options).fit(*data)
    timings, models = race(functions, repeats=3)
    factor = np.median(
        [timings[f"SVC {n}"]["cpu_seconds"] / seconds for n, seconds in YARDSTICK.items()]
    )
    seconds = np.median([timings[f"seed {seed}"]["cpu_seconds"] for seed in seeds])
    errors = [
        digits(100 * np.mean(models[f"seed {s}"].transduction_[50:] != i.y_unlabeled))
        for s, i in instances.items()
    ]
    return {
        "timings": timings,
        "cpu_seconds": digits(seconds),
        "yardstick_factor": digits(factor),
        "universvm_scaled_seconds": digits(UNIVERSVM[u][0] * factor),
        "ratio": digits(seconds / (UNIVERSVM[u][0] * factor)),
        "errors": errors,
        "error": digits(np.mean(errors)),
        "universvm_error": UNIVERSVM[u][1],
        "convex_problems": [models[f"seed {s}"].n_iter_ for s in seeds],
        "smo_iterations": [sum(h.n_iter for h in models[f"seed {s}"].history_) for s in seeds],
    }


def line_step(C_star):
    """SMO iterations on the instance with a conflicting balance."""
    from s3vm_lib.cccp import solve_cccp
    from s3vm_lib.gram import Gram
    from s3vm_lib.kernels import Kernel
    from s3vm_lib.losses import UnlabeledLoss
    from s3vm_lib.objective import Problem

    instance = gaussians("G2C", 2)
    X, y = instance.training()
    t = np.where(y < 0, 0.0, 2.0 * y - 1)
    problem = Problem(
        unlabeled_loss=UnlabeledLoss("symmetric_ramp"),
        C_star=C_star,
        balance="mean",
        ratio=float(instance.y_labeled.mean()),
    )
    X, mean, weight = X - X.mean(axis=0), (t == 0) / np.sum(t == 0), np.ones(t.size)
    gram = Gram(X, Kernel("linear"), storage="full", mean_weights=mean)
    functions = {}
    start = solve_cccp(gram, t, weight, problem, max_iter=1).outputs

    for name, line, newton in (("plain", False, 0), ("line", True, 0), ("line, Newton", True, 10)):
        options = {"max_inner_iter": 300_000, "null_steps": line, "face_steps": newton}
        functions[name] = lambda options=options: solve_cccp(
            gram, t, weight, problem, start, **options
        )
    timings, found = race(functions, repeats=3)
    return {
        "timings": timings,
        "first": {name: solution.history[0].n_iter for name, solution in found.items()},
        "total": {name: sum(h.n_iter for h in s.history) for name, s in found.items()},
        "convex_problems": {name: solution.n_iter for name, solution in found.items()},
        "objective": {name: digits(solution.objective, 7) for name, solution in found.items()},
    }
