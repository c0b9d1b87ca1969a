"""`ILS3VM`: what one ``partial_fit`` of one row costs with 1000 rows held.

RBF kernel, 50 of the rows labeled, C* = C/19, the default for the first 1000 rows. ``moons``:
``make_moons(noise=0.15)``, gamma = 1; ``mixture``: mixture20(50, 1150, 1), gamma = 1/32. After a
fit of 1000 rows and one row that warms up, a hundred rows come one by one. ``milliseconds``: CPU
time of a call, the median of the hundred, median of five runs; ``mean`` likewise their mean.
``margin``: rows with 0 < |β| < C or C* at the end.
"""

import time

import numpy as np

from benchmarks.harness import REPEATS, digits
from benchmarks.il_paper import on_margin
from benchmarks.instances import MIXTURE_GAMMA, mixture20

N, LABELED, NEW = 1000, 50, 100
ROWS = [
    {"set": "moons", "C": 10.0},
    {"set": "moons", "C": 1.0},
    {"set": "mixture", "C": 1.0},
    {"set": "mixture", "C": 10.0},
]


def measure(set, C):
    """One row: see the protocol in the module's docstring."""
    from s3vm_lib import ILS3VM
    from s3vm_lib.datasets import make_moons

    if set == "moons":
        X, truth = make_moons(N + NEW + 1, noise=0.15, random_state=0)
        y, gamma = np.where(np.arange(len(truth)) < LABELED, truth, -1), 1.0
    else:
        (X, y), gamma = mixture20(LABELED, 1150, 1).training(), MIXTURE_GAMMA
    medians, means = [], []
    for _ in range(REPEATS):
        model = ILS3VM(C=C, C_star=C * LABELED / (N - LABELED), gamma=gamma).fit(X[:N], y[:N])
        seconds = []
        for k in range(N, N + NEW + 1):
            start = time.process_time()
            model.partial_fit(X[k : k + 1], y[k : k + 1])
            seconds.append(time.process_time() - start)
        medians.append(np.median(seconds[1:]))
        means.append(np.mean(seconds[1:]))
    return {
        "milliseconds": digits(1e3 * np.median(medians)),
        "mean": digits(1e3 * np.median(means)),
        "margin": on_margin(model, y[: N + NEW + 1]),
    }
