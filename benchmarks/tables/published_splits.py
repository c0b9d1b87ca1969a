"""Real sets with published splits: the SVM and every batch solver.

G50C, USPST and Text (mac against windows) have ten published choices of 50 labeled rows, the sets
of the SSL book (binary ones; COIL and Text among them) twelve of 10 and of 100. All other rows are
unlabeled, and the error is counted on them. Text sets with the linear kernel, the others with an
RBF kernel, γ in {1/4, 1, 4} times ``"scale"`` for G50C and USPST and ``"scale"`` for the SSL-book
sets; linear-only methods run on all sets, dense rows divided by their root mean square norm. C in
{.1, 1, 10, 100} ({1, 10, 100} for the SSL-book sets), unlabeled part weighted by {.1, 1} times the
labeled one; ``SVM, linear`` is the supervised baseline of the linear methods. Settings by 5-fold
cross-validation on the labels, ties to the smallest C, then the smallest C*, then the smallest γ
(``cv_strong``; ``cv_ties`` is the mean over the tied settings); beside it the best single setting
in hindsight, which looks at the labels that are to be predicted.
The balance is estimated from the labels. ``cpu_seconds`` is the median CPU time of one fit on a
whole training set.
"""

import time

import numpy as np
import scipy.sparse as sp

from benchmarks import batch_solvers, qn_paper
from benchmarks.harness import digits
from s3vm_lib import datasets
from s3vm_lib.kernels import resolve_gamma

SHARES = (0.1, 1.0)
LINEAR_SVM = "SVM, linear"
METHODS = [name for name in batch_solvers.METHODS if " " not in name]
_BOOK = tuple(f"ssl_{name}" for name in ("bci", "coil", "g241c", "g241d", "text", "usps"))
ROWS = [
    {"set": name, "l": 50, "method": method}
    for name in ("g50c", "uspst", "text_lds")
    for method in [*METHODS, *([LINEAR_SVM] if name != "text_lds" else [])]
] + [
    {"set": name, "l": l, "method": method}
    for l in (10, 100)
    for name in _BOOK
    for method in [*METHODS, *([LINEAR_SVM] if name != "ssl_text" else [])]
]


def measure(set, l, method):
    """One row: see the protocol in the module's docstring."""
    bunch = datasets.load(set)
    X = bunch.data if sp.issparse(bunch.data) else bunch.data.astype(np.float64)
    linear = sp.issparse(X) or method in (*batch_solvers.LINEAR_ONLY, LINEAR_SVM)
    method = method.removesuffix(", linear")
    widths = (1.0,) if set in _BOOK else (0.25, 1.0, 4.0)
    gammas = [1.0] if linear else [width * resolve_gamma("scale", X) for width in widths]
    costs = (1.0, 10.0, 100.0) if set in _BOOK else (0.1, 1.0, 10.0, 100.0)
    if linear and not sp.issparse(X):
        X /= np.sqrt(np.mean(np.sum(X**2, axis=1)))
    settings = batch_solvers.grid(method, costs, SHARES, gammas)
    make, seconds = batch_solvers.make(method, "linear" if linear else "rbf"), []

    def timed(setting, y):
        model = make(setting, y)
        fit = model.fit

        def measured(X, y):
            start = time.process_time()
            fitted = fit(X, y)
            if len(y) == len(bunch.target):
                seconds.append(time.process_time() - start)
            return fitted

        model.fit = measured
        return model

    n_hidden = len(bunch.target) - l
    compared = qn_paper.compare(
        _partitions(X, bunch, f"lab{l}"), {method: (settings, timed)}, n_hidden
    )
    counts = np.array(compared["counts"][method]["test"])
    return {
        "kernel": "linear" if linear else "rbf",
        "error": compared["error"][method],
        "best_setting": settings[int(np.argmin(counts.mean(axis=0)))],
        "settings": settings,
        "per_setting": [digits(100 * column.mean() / n_hidden) for column in counts.T],
        "cpu_seconds": digits(np.median(seconds)),
        "unconverged": compared["unconverged"][method],
    }


def _partitions(X, bunch, splits):
    for labeled in bunch.splits[splits]:
        hidden = np.setdiff1d(np.arange(len(bunch.target)), labeled)
        y = bunch.target.copy()
        y[hidden] = -1
        yield qn_paper.Partition(X, y, bunch.target, X[hidden], bunch.target[hidden])
