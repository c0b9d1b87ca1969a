"""Rules that choose C, C* and γ with twenty labels, judged on the labels that were hidden.

200 rows, 20 of them labeled (at random, both classes present in their shares). `QNS3VM` with
``balance="labels"`` and 18 settings: C 1, 10, 100; C* 0.1 and 1 times the value that gives both
parts equal weight; γ 0.1, 1, 10 times that of ``gamma="scale"``. Five folds of the labeled rows.
Errors in percent on the 180 unlabeled rows: ``svm``: SVM, C and γ by cross-validation; ``default``:
QNS3VM as it comes; ``cv``: the best mean score, ties to the smallest C, C*, γ; ``ties``: mean over
the settings that tie, the expectation of a choice by lot; ``stability`` and ``density``: the tied
setting whose labels change least from fold to fold, and the one with the smallest share of
unlabeled rows inside the margin; ``stability_alone``, ``density_alone``: the same over all 18
settings; ``best_tie`` and ``hindsight``: the lowest error among the ties and among all, which needs
the hidden labels; ``mean``: over all settings. ``cv_error`` is 100 minus the best mean score.
"""

import warnings

import numpy as np

from benchmarks.harness import digits
from s3vm_lib import QNS3VM, SVM
from s3vm_lib.datasets import hide_labels, load_digits_pair, make_g2c, make_g4c, make_moons
from s3vm_lib.kernels import resolve_gamma
from s3vm_lib.model_selection import S3VMSearchCV

SETS = ("moons", "g2c", "digits 3/8", "g4c", "overlap")
ROWS = [{"set": name, "seed": seed} for seed in range(10) for name in SETS]


def instance(name, seed):
    """200 rows with all their labels."""
    if name == "moons":
        return make_moons(200, noise=0.15, random_state=seed)
    if name in ("g2c", "g4c"):
        return (make_g2c if name == "g2c" else make_g4c)(200, 200, random_state=seed)
    generator = np.random.default_rng(seed)
    if name == "overlap":
        y = np.arange(200) % 2
        return generator.standard_normal((200, 2)) + np.outer(2 * y - 1, [0.7, 0.7]), y
    X, y = load_digits_pair(3, 8)
    chosen = generator.permutation(len(y))[:200]
    return X[chosen], y[chosen]


def settings(X, u):
    """The grid of QNS3VM, one dict for each C, as C* is in units of it."""
    scale = resolve_gamma("scale", X)
    return [
        {
            "C": [C],
            "C_star": [k * C * 20 / u for k in (0.1, 1.0)],
            "gamma": [k * scale for k in (0.1, 1.0, 10.0)],
        }
        for C in (1.0, 10.0, 100.0)
    ]


def chosen(values, among, order):
    """The row with the largest value; ties to the smallest C, C*, γ."""
    best = values[among].max()
    return min(np.flatnonzero(among & (values >= best - 1e-12)), key=lambda k: order[k])


def measure(set, seed):
    """Errors of all rules on one draw."""
    warnings.simplefilter("ignore")
    X, truth = instance(set, seed)
    y = hide_labels(truth, 20, random_state=seed)
    hidden = y == -1

    def error(model):
        return 100 * float(np.mean(model.fit(X, y).predict(X[hidden]) != truth[hidden]))

    machine = QNS3VM(balance="labels")
    grid = settings(X, hidden.sum())
    search = S3VMSearchCV(machine, grid, criterion="stability", refit=False).fit(X, y)
    score, stable = (search.cv_results_[name] for name in ("mean_test_score", "stability"))
    order, errors, inside = [], [], []
    for setting in search.cv_results_["params"]:
        order.append((setting["C"], setting["C_star"], setting["gamma"]))
        model = QNS3VM(balance="labels", **setting)
        errors.append(error(model))
        inside.append(float(np.mean(np.abs(model.decision_function(X[hidden])) < 1)))
    errors, empty = np.array(errors), -np.array(inside)
    every = np.ones(len(order), dtype=bool)
    tied = score >= score.max() - 1e-12
    plain = {"C": [1.0, 10.0, 100.0], "gamma": grid[0]["gamma"]}
    found = {
        "svm": error(S3VMSearchCV(SVM(), plain)),
        "default": error(machine),
        "cv": errors[chosen(score, every, order)],
        "ties": errors[tied].mean(),
        "stability": errors[chosen(stable, tied, order)],
        "density": errors[chosen(empty, tied, order)],
        "stability_alone": errors[chosen(stable, every, order)],
        "density_alone": errors[chosen(empty, every, order)],
        "best_tie": errors[tied].min(),
        "hindsight": errors.min(),
        "mean": errors.mean(),
        "cv_error": 100 * (1 - score.max()),
    }
    picked = chosen(stable, every, order)
    return {
        **{name: digits(value) for name, value in found.items()},
        "tied": int(tied.sum()),
        "largest_stability": digits(stable[picked]),
    }
