"""Fig. 4 of the TSGS3VM paper: test error against the number of iterations.

The sets of ``tsg_fig3``, splits 10-14 of `tsg_accuracy`, C and gamma chosen on the 200 labels as
there, equal total weight and the balance from the labels. ``Algorithm 1``: 256 unlabeled rows and
64 features a step; ``TSGS3VM`` and ``FRS3VM``: their stochastic steps alone, up to 1024 features.
Each number of steps is a run of its own with the default step sizes and the mean of its last half.
Test errors in per cent on at most 20,000 rows, mean and standard deviation over the splits.
"""

import numpy as np

from benchmarks.harness import digits
from benchmarks.tsg import FURTHER_SETS, N_LABELED, PAPER_SETS, estimator, select, split

ROWS = [{"set": name} for name in (*PAPER_SETS, *FURTHER_SETS)]
SEEDS = range(10, 15)
ITERATIONS = (8, 16, 32, 64, 128, 256, 512, 1024)
METHODS = {
    "Algorithm 1": ("TSGS3VM", dict(update="block", block_size=64)),
    "TSGS3VM": ("TSGS3VM", {}),
    "FRS3VM": ("FRS3VM", {}),
}
LARGEST = {"Algorithm 1": 512}  # time is quadratic in the number of steps


def measure(set):
    """One row: see the protocol in the module's docstring."""
    errors = {name: {} for name in METHODS}
    for seed in SEEDS:
        X, y, X_test, y_test = split(set, seed)
        X_test, y_test = X_test[:20_000], y_test[:20_000]
        chosen = select(X[:N_LABELED], y[:N_LABELED], seed)
        for name, (cls, options) in METHODS.items():
            for n_steps in ITERATIONS:
                if n_steps > LARGEST.get(name, n_steps):
                    continue
                model = estimator(
                    cls, n_steps=n_steps, polish=False, transduce=False, random_state=seed,
                    **options, **chosen,
                )  # fmt: skip
                wrong = model.fit(X, y).predict(X_test) != y_test
                errors[name].setdefault(n_steps, []).append(100 * np.mean(wrong))
    return {
        name: {
            "iterations": list(found),
            "error": [digits(np.mean(v)) for v in found.values()],
            "sd": [digits(np.std(v, ddof=1)) for v in found.values()],
        }
        for name, found in errors.items()
    }
