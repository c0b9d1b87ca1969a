"""Newton and gradients in the primal: solvers, curvatures and systems, against quasi-Newton.

All methods of a row minimize the same problem (squared hinge, exp(−3f²), mean output 2r − 1 with
the ratio of the labels) from the same start with the same continuation (eight geometric factors of
C*) and stopping rule (tol=1e-5, ftol=1e-9). λ and λ' are those of the QN-S3VM paper: C = 1/(2λl),
C* = λ'/(2λu). Instances: ``moons``: moons(2000, per_class=2), exp(−8‖x − x'‖²), λ = 1e-3, λ' = 1;
``mixture``: mixture20(50, u, 0), RBF kernel with gamma = 1/32, λ = 2^-10, λ' = 1; ``words``:
bag_of_words(10000), linear and sparse, λ = 1e-3, λ' = 1. ``coordinates`` "cholesky" is the pivoted
Cholesky factor of the default rank, "eigen" the full kernel, "linear" the features. Times are CPU
seconds of the solver alone in `race` (median of three); ``factor`` is the time of the coordinates.
Methods: "qn" is L-BFGS, "cg" conjugate gradients, "gradient" steepest descent, the others Newton
with "curvature/system"; dense systems only up to 600 variables. ``F`` is J/(C Σ_L s), ``error``
that on the unlabeled points (%), ``test_error`` that on the test part; ``negative`` counts the
iterations that met negative curvature.

Rows with ``fit`` measure whole fits of the estimators on draws 0-4 of the mixture: "default"
(`NewtonS3VM`), "tsvm" (∇TSVM: conjugate gradients, the full kernel, C* doubling), "qn" (`QNS3VM`
with the squared hinge), median CPU seconds and errors. The ``yardstick`` is the CPU time of
SVC(C=100, gamma=1/32, cache_size=1000) on mixture20(5000, 0, 2000) in the same process.
"""

import time

import numpy as np

from benchmarks import qn_paper
from benchmarks.harness import digits, race
from benchmarks.instances import MIXTURE_GAMMA, bag_of_words, mixture20, moons
from benchmarks.tables.qn_variants import yardstick

ROWS = [
    {"instance": "moons", "coordinates": "cholesky"},
    {"instance": "moons", "coordinates": "eigen"},
    {"instance": "mixture", "u": 2000, "coordinates": "cholesky"},
    {"instance": "mixture", "u": 2000, "coordinates": "eigen"},
    {"instance": "mixture", "u": 4000, "coordinates": "cholesky"},
    {"instance": "words", "coordinates": "linear"},
    *({"instance": "mixture", "u": u, "fit": method} for u in (1000, 2000) for method in
      ("default", "tsvm", "qn")),
    *({"instance": "mixture", "u": 4000, "fit": method} for method in ("default", "qn")),
]  # fmt: skip
DRAWS = range(5)
DENSE_LIMIT = 600


def _instance(instance, u=None):
    """(instance, kernel, λ)."""
    from s3vm_lib.kernels import Kernel

    if instance == "moons":
        return moons(2000), Kernel("rbf", 8.0), 1e-3
    if instance == "words":
        return bag_of_words(10_000), Kernel("linear"), 1e-3
    return mixture20(50, u, 0), Kernel("rbf", MIXTURE_GAMMA), 2.0**-10


def _coordinates(name, X, t, kernel):
    from s3vm_lib.smooth import (
        cholesky_coordinates,
        default_rank,
        eigen_coordinates,
        linear_coordinates,
        mean_weight,
    )

    center = mean_weight(np.ones(t.size), t == 0)
    if name == "linear":
        return linear_coordinates(X, 1.0, center)
    if name == "eigen":
        return eigen_coordinates(kernel.gram(X), mean_weight=center)
    rank, labeled = default_rank(t.size), np.flatnonzero(t != 0)
    return cholesky_coordinates(X, kernel, rank, 1e-6, center, labeled)


def _methods(coordinates, t, problem):
    """The solvers of a row, as functions without arguments."""
    from s3vm_lib.primal_newton import solve_newton
    from s3vm_lib.smooth import solve_quasi_newton

    arguments = (coordinates, t, np.ones(t.size), problem)
    methods = {
        "qn": lambda: solve_quasi_newton(*arguments),
        "cg": lambda: solve_newton(*arguments, solver="conjugate_gradient"),
        "gradient": lambda: solve_newton(*arguments, solver="gradient"),
    }
    for system in ("krylov", "dense"):
        if system == "krylov" or coordinates.dimension <= DENSE_LIMIT:
            for curvature in ("drop", "modify", "trust"):
                methods[f"{curvature}/{system}"] = lambda curvature=curvature, system=system: (
                    solve_newton(*arguments, curvature=curvature, system=system)
                )
    return methods


def _race(coordinates, **named):
    from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
    from s3vm_lib.objective import Problem

    instance, kernel, lam = _instance(**named)
    X, y = instance.training()
    t = np.where(y == -1, 0.0, 2.0 * y - 1)
    labeled = t != 0
    C, C_star = Problem.penalties(lam, 1.0, labeled.sum(), (~labeled).sum())
    losses = LabeledLoss("squared_hinge"), UnlabeledLoss("gaussian")
    ratio = float(y[labeled].mean())
    problem = Problem(*losses, C, C_star, kernel, balance="mean", ratio=ratio)
    start = time.process_time()
    built = _coordinates(coordinates, X, t, kernel)
    factor = digits(time.process_time() - start)
    timings, found = race(_methods(built, t, problem), repeats=3)
    result = {"factor": factor, "variables": built.dimension}
    for name, solution in found.items():
        wrong = (solution.outputs[~labeled] > 0) != (instance.y_unlabeled == 1)
        stages = solution.history
        result[name] = {
            "cpu_seconds": timings[name]["cpu_seconds"],
            "F": digits(solution.objective / (C * labeled.sum()), 7),
            "error": digits(100 * wrong.mean()),
            "iterations": int(solution.n_iter),
            "evaluations": int(sum(stage.n_evaluations for stage in stages)),
            "negative": int(sum(getattr(stage, "n_negative", 0) for stage in stages)),
            "at_limit": int(sum(stage.status == "max_iter" for stage in stages)),
        }
        if len(instance.y_test):
            _, weights, constant = built.model(solution.w)
            outputs = instance.X_test @ weights + solution.b + constant
            wrong = (outputs > 0) != (instance.y_test == 1)
            result[name]["test_error"] = digits(100 * wrong.mean())
    return result


def _fit(u, fit):
    from s3vm_lib import QNS3VM, NewtonS3VM

    build, options = {
        "default": (NewtonS3VM, {}),
        "tsvm": (
            NewtonS3VM,
            {"solver": "conjugate_gradient", "coordinates": "eigen", "annealing": "doubling"},
        ),
        "qn": (QNS3VM, {"labeled_loss": "squared_hinge"}),
    }[fit]
    seconds, errors, values = [], [], []
    for draw in DRAWS:
        instance = mixture20(50, u, 0, draw)
        X, y = instance.training()
        costs = qn_paper.qn(2.0**-10, 1.0, y)
        costs = {"C": costs.C, "C_star": costs.C_star, "balance": "labels"}
        model = build(gamma=MIXTURE_GAMMA, **costs, **options)
        if draw == 0:
            model.fit(X[:300], y[:300])  # compiles
        start = time.process_time()
        model.fit(X, y)
        seconds.append(digits(time.process_time() - start))
        errors.append(digits(100 * np.mean(model.transduction_[50:] != instance.y_unlabeled)))
        values.append(digits(model.objective_ / (model.C * 50), 6))
    return {
        "cpu_seconds": digits(np.median(seconds)),
        "mean_error": digits(np.mean(errors)),
        "draws": {"cpu_seconds": seconds, "error": errors, "F": values},
    }


def measure(instance, **options):
    """One row: see the protocol in the module's docstring."""
    if "fit" in options:
        result = _fit(**options)
    else:
        result = _race(instance=instance, **options)
    return {**result, "yardstick": yardstick()}
