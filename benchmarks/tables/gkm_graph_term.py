"""Where the graph term helps: test error of GKM against C', ten draws of few labels.

Unlabeled rows are the test rows. ``moons``: 400 points, noise 0.15, three labels per class; the
other sets: at most 1500 rows, 25 labels per class in balanced draws. Hinge, rbf kernel with
gamma = ``width`` / (d Var X), C = 10 of the sum, tol = 0.05, at most 100,000 steps. ``graph``
"knn": ten neighbors, weights 1; "complete": Gaussian weights with σ_s = σ_l, as in the paper. C'
is ``shares`` times C l; 0 is the same machine without a graph, and ``SVM`` the library's SVM
with the same C and gamma. ``gain`` is the mean of the paired differences to C' = 0 with its
standard error: positive where the graph helps. No setting is chosen: all are shown.
"""

import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from benchmarks.harness import digits
from s3vm_lib import GKM, SVM, datasets
from s3vm_lib.graphs import NeighborGraph

DRAWS = 10
SHARES = (0.0, 0.1, 1.0, 10.0, 100.0)
SETS = ("moons", "uspst", "coil20", "g50c", "ssl_usps", "australian", "a1a", "svmguide3")
ROWS = [
    {"set": name, "graph": graph, "p": p, "width": width}
    for name in SETS
    for graph, p in (("knn", 2), ("knn", 1), ("complete", 1))
    for width in (1, 5)
]


def draw(name, seed):
    """Rows, classes, and labels with −1 where hidden."""
    rng = np.random.default_rng(seed)
    if name == "moons":
        X, y = datasets.make_moons(400, noise=0.15, random_state=seed)
    else:
        data = datasets.load(name)
        X = data.data.toarray() if sp.issparse(data.data) else data.data
        X, y = np.asarray(X, dtype=float), data.target
        rows = rng.permutation(len(y))[:1500]
        X, y = X[rows], y[rows]
        if name in ("australian", "svmguide3"):  # features in very different units
            X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    per_class = 3 if name == "moons" else 25
    labels = np.full(len(y), -1)
    for k in (0, 1):
        labels[rng.permutation(np.flatnonzero(y == k))[:per_class]] = k
    return X, y, labels


def measure(set, graph, p, width):
    """One row: see the protocol in the module's docstring."""
    errors, svm = {share: [] for share in SHARES}, []
    for seed in range(DRAWS):
        X, y, labels = draw(set, seed)
        hidden, l = labels < 0, int(np.sum(labels >= 0))
        gamma = width / (X.shape[1] * X.var())
        model = SVM(C=10.0, gamma=gamma).fit(X, labels)
        svm.append(100 * np.mean(model.predict(X[hidden]) != y[hidden]))
        for share in SHARES:
            rule = NeighborGraph(10, weights="binary")
            if graph == "complete":
                rule = NeighborGraph("all", gamma="kernel")
            model = GKM(
                C=10.0, C_graph=share * 10 * l, power=float(p), gamma=gamma, tol=0.05,
                max_iter=100_000, random_state=seed, graph=rule,
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, labels)
            errors[share].append(100 * np.mean(model.predict(X[hidden]) != y[hidden]))
    base = np.array(errors[0.0])
    gains = {share: base - np.array(errors[share]) for share in SHARES[1:]}
    return {
        "shares": list(SHARES),
        "error": [digits(np.mean(errors[share])) for share in SHARES],
        "gain": [digits(np.mean(g)) for g in gains.values()],
        "gain_standard_error": [digits(np.std(g, ddof=1) / np.sqrt(DRAWS)) for g in gains.values()],
        "SVM": digits(np.mean(svm)),
        "errors": {str(share): [digits(e) for e in errors[share]] for share in SHARES},
    }
