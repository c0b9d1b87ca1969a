"""`S3VMLight` against SVMlight: CPU time and error on a mixture in 20 dimensions.

Instance mixture20(50, u, 2000, draw), RBF kernel with gamma = 1/32, C = 10, the share of the
classes from the 50 labels. ``settings`` "default" are those of the estimator (equal total weight,
C* = C l/u; all pairs are switched at once); "C_star=C" takes SVMlight's final cost; "SVMlight" also
its schedule: one pair at a time, costs equal for both labels and 1.5 times as large at each level.
Fits of draw 0 and the ``yardstick`` SVC(C=1, gamma=1/32, tol=1e-3, cache_size=1000) on
mixture20(5000, 0, 2000) take turns, median of five. Errors are those on the unlabeled points of the
draws 0-2 in per cent, beside those of `SVM` with the same C and gamma. ``peer`` is what SVMlight
6.11 took with -c 10 on draw 0 in a run in which the yardstick took 0.188 s; ``speedup``
is the ratio of the CPU times, each in units of its yardstick.
"""

import numpy as np

from benchmarks.harness import digits, race
from benchmarks.instances import MIXTURE_GAMMA, mixture20

SETTINGS = {
    "default": {},
    "C_star=C": {"C_star": 10.0},
    "SVMlight": {
        "C_star": 10.0,
        "switching": "pair",
        "annealing_factor": 1.5,
        "annealing_ratio": "equal",
    },
}
ROWS = [{"u": u, "settings": settings} for u in (2000, 4000) for settings in SETTINGS]
DRAWS = range(3)
PEER = {
    2000: {"cpu_seconds": 23.0, "error": 17.3},
    4000: {"cpu_seconds": 50.93, "error": 9.8},
}
PEER_YARDSTICK = 0.188


def _errors(model, instance):
    """Errors of the outputs and of the assigned labels on the unlabeled rows, in per cent."""
    unlabeled = slice(len(instance.y_labeled), None)
    truth = instance.y_unlabeled
    assigned = getattr(model, "assigned_", None)
    found = [model.transduction_[unlabeled]]
    if assigned is not None:
        found.append(assigned[0, unlabeled] > 0)
    return [digits(100 * np.mean(labels != truth)) for labels in found]


def measure(u, settings):
    """One row: see the protocol in the module's docstring."""
    from sklearn.svm import SVC

    from s3vm_lib import SVM, S3VMLight

    common = {"C": 10.0, "gamma": MIXTURE_GAMMA}
    chosen = {"balance": "labels", **common, **SETTINGS[settings]}
    X, y = mixture20(50, u, 2000, 0).training()
    X_yardstick, y_yardstick, *_ = mixture20(5000, 0, 2000)
    yardstick = SVC(C=1, gamma=MIXTURE_GAMMA, tol=1e-3, cache_size=1000)
    timings, models = race(
        {
            "S3VMLight": lambda: S3VMLight(**chosen).fit(X, y),
            "yardstick": lambda: yardstick.fit(X_yardstick, y_yardstick),
        }
    )
    columns = {"error": [], "error_of_assigned": [], "svm_error": [], "share": [], "true_share": []}
    for draw in DRAWS:
        instance = mixture20(50, u, 2000, draw)
        X, y = instance.training()
        outputs, assigned = _errors(S3VMLight(**chosen).fit(X, y), instance)
        values = (
            outputs,
            assigned,
            *_errors(SVM(**common).fit(X, y), instance),
            digits(instance.y_labeled.mean()),
            digits(instance.y_unlabeled.mean()),
        )
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    history = models["S3VMLight"].history_
    ours, unit = timings["S3VMLight"]["cpu_seconds"], timings["yardstick"]["cpu_seconds"]
    return {
        "timings": timings,
        "speedup": digits((PEER[u]["cpu_seconds"] / PEER_YARDSTICK) / (ours / unit), 3),
        "peer": PEER[u],
        "objective": digits(models["S3VMLight"].objective_, 6),
        "trainings": len(history),
        "switched": sum(round.n_switched for round in history),
        "smo_iterations": sum(round.smo_iter for round in history),
        "draws": columns,
        "mean_error": digits(np.mean(columns["error"])),
    }
