"""Types of blood cells from a few labels of each: errors on cells whose type was hidden.

700 of 68,000 cells (Zheng and others, 2017), ten types, the molecules of 765 genes: logarithms of
counts in 10,000, standardized, at most ten deviations, 50 principal components. Ten seeds draw
which cells are labeled, equally many of each type, but so that three of each type stay hidden; all
other cells are unlabeled rows, and errors are counted on them. Methods are those of
`benchmarks.stories`, and the Laplacian machine on a normalized graph; S3VC is in the table
story_s3vc. "labels alone" is the same machine without the unlabeled rows. "told" knows how many of
the unlabeled cells are of each type: `QNS3VM` by ``balance`` with ``balance_tol=0.01``, the SVM by
an offset for each type, so that this share of its outputs is positive. "held out" is what
`SVM(C=10)` says of the labels in five folds: ``missed`` of each type in percent, and ``false``, how
many labels of other types get its name.
"""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from benchmarks.harness import digits
from benchmarks.stories import SEEDS, build, compare_types, fitted
from s3vm_book.stories import cells, label_each
from s3vm_lib import QNS3VM, SVM, LapSVM

ALONE = ", labels alone"
METHODS = (
    "ten-minute user",
    "LogisticRegression",
    "LabelSpreading",
    "SelfTraining",
    "SVM(C=10)",
    "SVM, searched",
    "QNS3VM(C=10)",
    "QNS3VM(C=10)" + ALONE,
    "MultiSwitchTSVM(C=10)",
    "LapSVM(C=10, normalized)",
    "LapSVM(C=10, normalized)" + ALONE,
    "SVM(C=10), told",
    "QNS3VM(C=10), told",
)
ROWS = [
    {"labels": labels, "method": method}
    for labels in (5, 10, 20)
    for method in (*METHODS, "held out")
]


class LabelsAlone(ClassifierMixin, BaseEstimator):
    """A semi-supervised machine that does not see the unlabeled rows."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        self.model.fit(X[y != -1], y[y != -1])
        return self

    def predict(self, X):
        return self.model.predict(X)


class ToldSVM(ClassifierMixin, BaseEstimator):
    """An SVM with an offset for each class, so that these shares of its outputs are positive."""

    def __init__(self, shares):
        self.shares = shares

    def fit(self, X, y):
        self.model_ = fitted(SVM(C=10), X, y)
        outputs = self.model_.decision_function(X[y == -1])
        pairs = zip(outputs.T, self.shares, strict=True)
        self.offsets_ = np.array([np.quantile(values, 1 - share) for values, share in pairs])
        return self

    def predict(self, X):
        return np.argmax(self.model_.decision_function(X) - self.offsets_, axis=1)


def make(method, truth, y, seed):
    """A method by its name."""
    if method.endswith(ALONE):
        return LabelsAlone(make(method.removesuffix(ALONE), truth, y, seed))
    if method == "LapSVM(C=10, normalized)":
        return LapSVM(C=10, normalized=True)
    if not method.endswith(", told"):
        return build(method, seed)
    hidden = truth[y == -1]
    shares = np.bincount(hidden) / len(hidden)
    if method.startswith("SVM"):
        return ToldSVM(shares)
    return QNS3VM(C=10, balance=dict(enumerate(shares)), balance_tol=0.01)


def held_out(X, truth, labels):
    """What an SVM says of labels that it has not seen, a value a seed."""
    found = {"missed": [], "false": []}
    for seed in range(SEEDS):
        y = label_each(truth, labels, seed)
        right = y[y != -1]
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        said = cross_val_predict(SVM(C=10), X[y != -1], right, cv=folds)
        types = range(truth.max() + 1)
        found["missed"].append([digits(100 * np.mean(said[right == k] != k)) for k in types])
        found["false"].append([int(np.sum((said == k) & (right != k))) for k in types])
    return found


def measure(labels, method):
    """Errors of one method, a value a seed."""
    found = cells()
    if method == "held out":
        return held_out(found.X, found.y, labels)
    return compare_types(lambda y, seed: make(method, found.y, y, seed), found.X, found.y, labels)
