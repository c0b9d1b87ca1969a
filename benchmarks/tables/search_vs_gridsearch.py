"""A search over C, C* and γ: `S3VMSearchCV` against scikit-learn's ``GridSearchCV``.

At most 1000 rows, 20 of them labeled, real sets standardized; 5 × 5 × 3 settings (of SVM 5 × 3),
5 folds. C from 0.1 to 1000, C* from 0.01 to 100 times the 20 labels over the number of unlabeled
rows, γ 0.1, 1 and 10 times that of ``gamma="scale"`` on all rows. Both break ties by the smallest
C, C*, γ. CPU seconds of one run each, on a single thread, after a warm-up on 60 rows; the number
of settings whose mean scores are equal, and whether the choices are.
"""

import time
import warnings

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from s3vm_lib import CCCPS3VM, QNS3VM, SVM
from s3vm_lib.datasets import hide_labels, load, make_g2c, make_moons
from s3vm_lib.kernels import resolve_gamma
from s3vm_lib.model_selection import (
    PreferSmallest,
    S3VMSearchCV,
    SemiSupervisedKFold,
    labeled_accuracy_scorer,
)

METHODS = {"QNS3VM": QNS3VM, "CCCPS3VM": CCCPS3VM, "SVM": SVM}
MAKERS = {"moons": make_moons, "g2c": make_g2c}
ROWS = [
    {"set": name, "method": method, "seed": seed}
    for seed in range(10)
    for name in ("moons", "g2c", "g50c", "ssl_usps")
    for method in METHODS
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


def searches(method, X, y):
    """GridSearchCV, and S3VMSearchCV exact and going on."""
    scale, share = resolve_gamma("scale", X), 20 / np.sum(y == -1)
    grid = {"C": [0.1, 1, 10, 100, 1000], "gamma": [k * scale for k in (0.1, 1, 10)]}
    if "C_star" in METHODS[method]().get_params():
        grid["C_star"] = [k * share for k in (0.01, 0.1, 1, 10, 100)]
    names = [name for name in ("C", "C_star", "gamma") if name in grid]
    peer = GridSearchCV(
        METHODS[method](),
        grid,
        cv=SemiSupervisedKFold(5),
        scoring=labeled_accuracy_scorer,
        refit=PreferSmallest(*names),
    )
    ours = [S3VMSearchCV(METHODS[method](), grid, exact=exact) for exact in (True, False)]
    return dict(zip(("grid", "exact", "going_on"), (peer, *ours), strict=True))


def measure(set, method, seed):
    """CPU seconds of each search, and how far it agrees with GridSearchCV."""
    warnings.simplefilter("ignore")
    for search in searches(method, *instance("moons", 0, 60)).values():
        search.fit(*instance("moons", 0, 60))
    X, y = instance(set, seed)
    found, result = searches(method, X, y), {}
    for name, search in found.items():
        begin = time.process_time()
        search.fit(X, y)
        result[f"cpu_{name}"] = time.process_time() - begin
    scores = {name: search.cv_results_["mean_test_score"] for name, search in found.items()}
    result["settings"] = len(scores["grid"])
    for name in ("exact", "going_on"):
        result[f"ratio_{name}"] = result["cpu_grid"] / result[f"cpu_{name}"]
        result[f"equal_{name}"] = int(np.sum(scores[name] == scores["grid"]))
        result[f"same_choice_{name}"] = found[name].best_params_ == found["grid"].best_params_
    return result
