"""A search over C, C* and γ: `S3VMSearchCV` against scikit-learn's ``GridSearchCV``.

1000 rows, 20 of them labeled, the real set standardized; 5 × 5 × 3 settings, 5 folds. C from 0.1
to 1000, C* from 0.01 to 100 times the 20 labels over the number of unlabeled rows, γ 0.1, 1 and 10
times that of ``gamma="scale"`` on all rows; everything else default, or ``balance="labels"``. All
break ties by the smallest C, C*, γ. CPU seconds of one run each, on a single thread, after a
warm-up on 60 rows: of GridSearchCV, and of S3VMSearchCV with ``exact=True`` and
``exact="choice"``; how many of the mean scores are equal to those of GridSearchCV, whether the
choices are, how many fits ``"choice"`` made, and how many settings share the best score.
"""

import time
import warnings

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from benchmarks.harness import digits
from s3vm_lib import CCCPS3VM, QNS3VM
from s3vm_lib.datasets import hide_labels, load, make_g2c, make_moons
from s3vm_lib.kernels import resolve_gamma
from s3vm_lib.model_selection import (
    PreferSmallest,
    S3VMSearchCV,
    SemiSupervisedKFold,
    labeled_accuracy_scorer,
)

METHODS = {"QNS3VM": QNS3VM, "CCCPS3VM": CCCPS3VM}
MAKERS = {"moons": make_moons, "g2c": make_g2c}
SETS = ("moons", "g2c", "ssl_usps")
ROWS = [
    {"set": name, "method": method, "balance": balance, "seed": 0}
    for balance in ("labels", "auto")
    for method in METHODS
    for name in SETS
]


def instance(name, seed, n=1000):
    """Rows, and labels of which 20 are known."""
    if name in MAKERS:
        X, y = MAKERS[name](n, random_state=seed)
    else:
        stored = load(name)
        known = np.flatnonzero(stored.target != -1)
        rows = np.random.default_rng(seed).permutation(known)[:n]
        X, y = StandardScaler().fit_transform(stored.data[rows]), stored.target[rows]
    return X, hide_labels(y, 20, random_state=seed)


def searches(method, balance, X, y):
    """GridSearchCV, and S3VMSearchCV with all scores and with the choice alone."""
    scale, share = resolve_gamma("scale", X), 20 / np.sum(y == -1)
    grid = {
        "C": [0.1, 1, 10, 100, 1000],
        "C_star": [k * share for k in (0.01, 0.1, 1, 10, 100)],
        "gamma": [k * scale for k in (0.1, 1, 10)],
    }
    peer = GridSearchCV(
        METHODS[method](balance=balance),
        grid,
        cv=SemiSupervisedKFold(5),
        scoring=labeled_accuracy_scorer,
        refit=PreferSmallest(*grid),
    )
    ours = {
        name: S3VMSearchCV(METHODS[method](balance=balance), grid, exact=exact)
        for name, exact in (("exact", True), ("choice", "choice"))
    }
    return {"grid": peer, **ours}


def measure(set, method, balance, seed):
    """CPU seconds of each search, and how far it agrees with GridSearchCV."""
    warnings.simplefilter("ignore")
    X, y = instance("moons", 0, 60)
    METHODS[method](balance=balance).fit(X, y).predict(X)
    X, y = instance(set, seed)
    found, result = searches(method, balance, X, y), {}
    for name, search in found.items():
        begin = time.process_time()
        search.fit(X, y)
        result[f"cpu_{name}"] = digits(time.process_time() - begin)
    scores = {name: search.cv_results_["mean_test_score"] for name, search in found.items()}
    result["settings"] = len(scores["grid"])
    result["tied"] = int(np.sum(scores["grid"] >= scores["grid"].max() - 1e-12))
    result["best_score"] = digits(scores["grid"].max())
    result["fits_choice"] = sum(
        int(np.sum(~np.isnan(found["choice"].cv_results_[f"split{k}_test_score"])))
        for k in range(5)
    )
    for name in ("exact", "choice"):
        result[f"ratio_{name}"] = digits(result["cpu_grid"] / result[f"cpu_{name}"])
        result[f"equal_{name}"] = int(np.sum(scores[name] == scores["grid"]))
        result[f"same_choice_{name}"] = found[name].best_params_ == found["grid"].best_params_
    return result
