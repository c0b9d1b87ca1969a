"""Neighbors and power of the Laplacian for `LapSVM` on digits, without a label of USPST.

The rows are the digits of USPS (7291 for training and 2007 for testing), grouped into two classes
as USPST is, without those that are the nearest one of a row of USPST (whose rows are digits of USPS
in another scaling); pixels are mapped to [-0.9375, 0.9375], the range of USPST. Five random subsets
of 2007 rows, the size of USPST, and six draws of 50 labels in each. σ = 9.4, normalized Laplacian,
Gaussian weights, no offset, γ_A = 1e-6, γ_I = 1e-2 as in ``lapsvm_splits``; one row per power q.
``error`` is that of the unlabeled rows, %, by number of neighbors.
"""

import numpy as np

from benchmarks.harness import mean_and_error
from s3vm_lib import datasets

NEIGHBORS = (3, 4, 5, 6, 7, 10, 15, 20)
ROWS = [{"q": q} for q in (1, 2, 3, 5)]


def other_digits():
    """Digits that are not in USPST, and labels −1 and +1."""
    from sklearn.neighbors import NearestNeighbors

    parts = [datasets.load(name) for name in ("usps", "usps_t")]
    X = 0.9375 * (2 * np.concatenate([p.data for p in parts]).astype(np.float64) - 1)
    t = 2.0 * np.concatenate([p.target for p in parts]) - 1
    found = NearestNeighbors(n_neighbors=1).fit(X)
    near = found.kneighbors(datasets.load("uspst").data.astype(np.float64))[1]
    keep = np.ones(len(t), dtype=bool)
    keep[near.ravel()] = False
    return X[keep], t[keep]


def measure(q):
    """One row: see the protocol in the module's docstring."""
    from s3vm_lib.graphs import knn_graph, laplacian
    from s3vm_lib.kernels import Kernel
    from s3vm_lib.laplacian_svm import DeformedKernel, solve_deformed

    X_all, t_all = other_digits()
    errors = {k: [] for k in NEIGHBORS}
    for subset in range(5):
        rng = np.random.default_rng(subset)
        rows = rng.permutation(len(t_all))[:2007]
        X, t = X_all[rows], t_all[rows]
        draws = [rng.permutation(len(t))[:50] for _ in range(6)]
        K, everywhere = Kernel("rbf", 0.5 / 9.4**2).gram(X), np.unique(np.concatenate(draws))
        for k in NEIGHBORS:
            lap = laplacian(knn_graph(X, k), normalized=True, degree=q)
            deformed = DeformedKernel(K, lap, 1e-2 / 2e-6, everywhere)
            for draw in draws:
                here, beta = np.searchsorted(everywhere, draw), np.zeros(len(everywhere))
                block = np.ascontiguousarray(deformed.block[np.ix_(here, here)])
                found = solve_deformed(block, t[draw], np.full(50, 1e6), offset=False)
                beta[here] = found.beta
                wrong = deformed.expand(beta)[1] * t <= 0
                errors[k].append(100 * np.mean(np.delete(wrong, draw)))
    return {"digits": len(t_all), "error": {str(k): mean_and_error(e) for k, e in errors.items()}}
