"""What the tables on the GKM paper share: data sets, splits, settings, methods, memory."""

import time
import tracemalloc
import warnings
from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, f1_score
from sklearn.preprocessing import maxabs_scale, scale

from benchmarks.harness import digits
from s3vm_lib import datasets
from s3vm_lib.graphs import NeighborGraph, graph_from_weights, knn_graph
from s3vm_lib.model_selection import SemiSupervisedKFold

SMALL = ("g50c", "coil20", "uspst", "australian", "a1a", "svmguide3", "svmguide1")
LARGE = ("mushrooms", "w5a", "w8a", "cod-rna", "ijcnn1", "covtype")
RUNS, RUNS_LARGE = 5, 3
PRINTED = tuple(2.0**k for k in (-5, -3, -1, 1, 3, 5))  # of C and gamma
PENALTIES = (1e-6, 1e-4, 1e-2, 0.1, 1.0, 10.0, 100.0)  # of LapSVM, printed
NEIGHBORS = 10
FOLDS = 3
TUNING = (800, 400)  # labeled and unlabeled rows on which a setting is chosen
ROWS_USED, ROWS_PRINTED = 22_222, 66_667  # of a set, training and test; the second for the GKM
TEST_ROWS = 2000
STEPS = 20_000  # most steps of the GKM, "ours"
# Most training rows, labeled or not, of methods whose time grows too fast: the first ones.
TRAINING_ROWS = {"CCCP": 3000, "Self-KNN": 5000}


def rows_used(method, protocol):
    """Largest number of rows of a set."""
    return ROWS_USED if method != "GKM" or protocol == "ours" else ROWS_PRINTED


@lru_cache(maxsize=2)
def load(name, most=ROWS_PRINTED):
    """Rows and classes: dense sets standardized, sparse ones scaled to [−1, 1]; all are dense then.

    The paper does not state its scaling. Sets of more than two classes are grouped as
    `s3vm_lib.datasets.load` does. Of a set with more rows, ``most`` random ones.
    """
    data = datasets.load(name)
    X, y = data.data, data.target
    if sp.issparse(X):
        X = maxabs_scale(sp.csr_matrix(X, dtype=np.float64)).toarray()
    else:
        X = scale(np.asarray(X, dtype=np.float64))
    if len(y) > most:
        rows = np.sort(np.random.default_rng(0).permutation(len(y))[:most])
        X, y = X[rows], y[rows]
    return X, y


@lru_cache(maxsize=1)
def neighbors(name):
    """Weights of the 10-NN graph of all rows of a set: it needs no labels, and is built once."""
    return knn_graph(load(name, ROWS_USED)[0], NEIGHBORS, weights="binary").adjacency().tocsr()


def split_rows(y, hidden, run):
    """Nine tenths for training with a share of labels hidden, at least three labels per class.

    Returns
    -------
    training : ndarray
        Training rows.
    labels : ndarray
        Their labels, −1 where hidden.
    test : ndarray
        Test rows.
    """
    rng = np.random.default_rng(1000 + run)
    order = rng.permutation(len(y))
    cut = round(0.9 * len(y))
    training, test = order[:cut], order[cut:]
    y_full = y[training]
    labels = y_full.copy()
    labels[rng.random(cut) < hidden] = -1
    for k in (0, 1):
        rows = np.flatnonzero(y_full == k)[:3]
        labels[rows] = k
    return training, labels, test


def split(X, y, hidden, run):
    """The rows of `split_rows`: X, labels and true classes for training, X and y for the test."""
    training, labels, test = split_rows(y, hidden, run)
    return X[training], labels, y[training], X[test], y[test]


def part(labels, n_labeled, n_unlabeled):
    """At most so many labeled and unlabeled rows, the first of each kind, in their order."""
    labeled, unlabeled = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
    return np.sort(np.r_[labeled[:n_labeled], unlabeled[:n_unlabeled]])


# --- Methods --------------------------------------------------------------------------------------


def make(method, protocol, setting, y, W, large=False, loss="hinge", p=1.0, steps=STEPS):
    """An estimator with one setting (a dict) for the labels y and the graph W of the rows."""
    from sklearn.semi_supervised import LabelSpreading

    from s3vm_lib import CCCPS3VM, GKM, SVM, LapSVM, SelfTrainingKNN
    from s3vm_lib.laplacian_svm import melacci_penalties

    labeled = y >= 0
    l = int(labeled.sum())
    if method == "GKM" and protocol != "ours":
        return GKM(
            C=setting["C"] / l, C_graph="paper", labeled_loss=loss, power=p,
            gamma=setting["gamma"], graph=NeighborGraph("all", gamma="kernel"), tol=1e-12,
            max_iter=round(0.2 * len(y)) if large else len(y), random_state=0,
        )  # fmt: skip
    if method == "GKM":
        return GKM(
            C=setting["C"], C_graph=setting["share"] * setting["C"] * l, labeled_loss=loss, power=p,
            gamma=setting["gamma"], graph=graph_from_weights(W, labeled), max_iter=steps,
            random_state=0,
        )  # fmt: skip
    if method == "LapSVM" and protocol == "printed":
        penalties = setting["gamma_A"], setting["gamma_I"]
        C, C_graph = melacci_penalties(*penalties, graph_from_weights(W).n_edges)
        return LapSVM(C=C, C_graph=C_graph, gamma=setting["gamma"], graph=W, rank=_rank(y))
    if method == "LapSVM":
        C, share = setting["C"], setting["share"]
        options = dict(C=C, C_graph=share * C * l, gamma=setting["gamma"])
        return LapSVM(graph=W, rank=_rank(y), **options)
    if method == "CCCP":
        options = {"s": "paper"} if protocol == "printed" else {}
        return CCCPS3VM(balance="labels", **options, **setting)
    if method == "Self-KNN":
        return SelfTrainingKNN(k_best=max(10, len(y) // 50), **setting)
    if method == "LabelSpreading":
        return LabelSpreading(kernel="knn", n_neighbors=setting["n_neighbors"], alpha=0.2)
    return SVM(**setting)


def _rank(y):
    return None if len(y) <= 2000 else 500


def grid(method, protocol, d):
    """Settings that are searched one list of changes after the other, and where it starts."""

    def one(key, values):
        return [{key: v} for v in values]

    if method in ("Self-KNN", "LabelSpreading"):
        values = (1, 3, 5) if method == "Self-KNN" else (5, 10)
        return [one("n_neighbors", values)], {}
    if protocol == "printed" and method == "LapSVM":
        lists = [one("gamma", PRINTED), one("gamma_I", PENALTIES), one("gamma_A", PENALTIES)]
        return lists, {"gamma_I": 1e-2, "gamma_A": 1e-2}
    if protocol != "ours":
        widths = [g / d if protocol == "scaled" else g for g in PRINTED]
        return [one("gamma", widths), one("C", PRINTED[::-1])], {"C": PRINTED[-1]}
    pairs = [{"gamma": w / d, "C": c} for c in (100.0, 10.0, 1.0) for w in (0.25, 1.0, 4.0)]
    if method in ("GKM", "LapSVM"):
        shares = (0.1, 1.0, 0.0) if method == "GKM" else (0.1, 1.0, 10.0, 0.0)
        return [pairs, one("share", shares)], {"share": 0.1}
    return [pairs], {}


@lru_cache(maxsize=64)
def choose(name, hidden, method, protocol, p=1.0, full=False):
    """A setting by cross-validated accuracy on the labels of run 0.

    At most 800 labeled and 400 unlabeled rows take part. Of ties the first in the order of `grid`.
    """
    X, y = load(name, rows_used(method, protocol))
    training, labels, _ = split_rows(y, hidden, 0)
    labels = y[training] if full else labels
    rows = part(labels, *TUNING)
    rows = np.unique(np.r_[rows, *(np.flatnonzero(labels == k)[:FOLDS] for k in (0, 1))])
    X, labels = X[training[rows]], labels[rows]
    W = _graph(method, protocol, name, training[rows])
    folds = list(SemiSupervisedKFold(FOLDS, shuffle=True, random_state=0).split(X, labels))
    scores = {}

    def score(setting):
        key = tuple(sorted(setting.items()))
        if key not in scores:
            hits = []
            for train, test in folds:
                known, sub = labels[train], None if W is None else W[train][:, train]
                model = make(method, protocol, setting, known, sub, p=p, steps=STEPS // 2)
                found = model.fit(X[train], known).predict(X[test])
                hits.append(np.mean(found == labels[test]))
            scores[key] = float(np.mean(hits))
        return scores[key]

    lists, setting = grid(method, protocol, X.shape[1])
    for changes in lists:
        setting = max(({**setting, **change} for change in changes), key=score)
    return setting


def _graph(method, protocol, name, rows):
    if method == "LapSVM" or (method == "GKM" and protocol == "ours"):
        return neighbors(name)[rows][:, rows]
    return None


def measure_method(name, hidden, method, protocol, memory=True, tuned=None, loss="hinge", p=1.0):
    """Accuracy, F1, time and memory over the runs, with the setting of `choose`.

    ``method`` may end in " (all labels)": the fully labeled milestone. ``tuned`` is the share of
    hidden labels with which the setting is chosen, by default that of the runs.
    """
    full = method.endswith(" (all labels)")
    method, large = method.removesuffix(" (all labels)"), name in LARGE
    columns = {"accuracy": [], "f1": [], "cpu_seconds": [], "memory_mb": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # LabelSpreading divides by zero where no label arrives.
        warnings.filterwarnings("ignore", "invalid value", RuntimeWarning)
        # p = 3 takes the setting of p = 2, and all losses that of the hinge.
        options = dict(p=min(p, 2.0)) if method == "GKM" else dict(full=full)
        setting = choose(name, tuned or hidden, method, protocol, **options)
        X, y = load(name, rows_used(method, protocol))
        for run in range(RUNS_LARGE if large else RUNS):
            training, labels, test = split_rows(y, hidden, run)
            labels, test = y[training] if full else labels, test[:TEST_ROWS]
            most = TRAINING_ROWS.get(method, len(labels))
            training, labels = training[:most], labels[:most]
            W = _graph(method, protocol, name, training)
            model = make(method, protocol, setting, labels, W, large, loss, p)
            X_run = X[training]
            if run == 0 and memory:
                tracemalloc.start()
                model.fit(X_run, labels)
                columns["memory_mb"].append(digits(tracemalloc.get_traced_memory()[1] / 1e6))
                tracemalloc.stop()
            start = time.process_time()
            model.fit(X_run, labels)
            columns["cpu_seconds"].append(digits(time.process_time() - start))
            found = model.predict(X[test])
            columns["accuracy"].append(digits(100 * accuracy_score(y[test], found)))
            columns["f1"].append(digits(100 * f1_score(y[test], found, zero_division=0)))
    return {
        "accuracy": digits(np.mean(columns["accuracy"])),
        "accuracy_sd": digits(np.std(columns["accuracy"], ddof=1)),
        "f1": digits(np.mean(columns["f1"])),
        "f1_sd": digits(np.std(columns["f1"], ddof=1)),
        "cpu_seconds": digits(np.median(columns["cpu_seconds"])),
        "majority": digits(100 * max(np.mean(y == 0), np.mean(y == 1))),
        "positives": digits(100 * np.mean(y == 1)),
        "rows": len(labels),
        "labels": int(np.sum(labels >= 0)),
        "setting": {k: digits(v) for k, v in setting.items()},
        "runs": columns,
    }
