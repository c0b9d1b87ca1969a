"""Estimators that misbehave, for children of the bake-off, and a small bake-off to kill."""

import os
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from benchmarks.bakeoff import draws, plan
from benchmarks.bakeoff.methods import Method


class Toy(ClassifierMixin, BaseEstimator):
    """Says class `answer` of everything, after something bad."""

    def __init__(self, what="", answer=1, random_state=None):
        self.what, self.answer, self.random_state = what, answer, random_state

    def fit(self, X, y):
        self.n_seen_, self.classes_ = len(y), np.unique(y[y != -1])
        self.n_iter_ = np.array([3, 7])
        if self.what == "endless":
            while True:
                self.n_seen_ += 1
        if self.what == "hungry":
            self.held_ = [np.empty(2**27) for _ in range(1000)]
        if self.what == "raises":
            raise RuntimeError("no luck")
        if self.what == "dies":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.what == "warns":
            warnings.warn("not yet", ConvergenceWarning, stacklevel=1)
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.answer)


class Small(Toy):
    """Refuses more than ten rows by its own account."""

    _largest_n = 10


def method(what, **params):
    """A method of the registry."""
    cls = "Small" if what == "small" else "Toy"
    return Method(what, f"bakeoff_toys:{cls}", {"what": what, **params}, "rbf")


TOY_SETS = [
    draws.Set(f"toy{k}", part, "generated", "make_moons()", {"n_samples": 90}, labels=(4, 8))
    for k, part in enumerate(("tuning", "reported"))
]


class Slow:
    """A worker that needs a moment, in this process."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None

    def measure(self, task):
        time.sleep(0.01)
        wrong = task.labels + 10 * task.draw
        return {"status": "ok", "wrong": wrong, "wrong_test": wrong + 1, "cpu": 0.5}


def small_plan(n_draws=4, n_methods=6):
    """Two sets, two numbers of labels: 96 fits by default."""
    methods = [method(f"m{k}") for k in range(n_methods)]
    return plan.Plan(TOY_SETS, methods, None, list(range(n_draws)))
