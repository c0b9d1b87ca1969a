"""The methods that each story compares, with their controls."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from benchmarks.harness import digits
from s3vm_book.stories import label_each
from s3vm_lib import QNS3VM, S3VC, SVM, MultiSwitchTSVM
from s3vm_lib.datasets import hide_labels
from s3vm_lib.model_selection import S3VMSearchCV, SemiSupervisedKFold

SEEDS = 10
#: Without S3VC, whose rows are in a table of their own, so that one command measures them again.
METHODS = (
    "ten-minute user",
    "LogisticRegression",
    "KNeighbors",
    "LabelSpreading",
    "SelfTraining",
    "SVM(C=10)",
    "SVM(linear, C=10)",
    "SVM, searched",
    "QNS3VM(C=10)",
    "MultiSwitchTSVM(C=10)",
    "SVM(C=10), share",
    "SVM(linear, C=10), share",
)


class ShareSVM(ClassifierMixin, BaseEstimator):
    """An SVM with the offset that gives the unlabeled rows the labels' share of class 1.

    The control for the share that an S3VM knows: the unlabeled rows set the offset, and no more.
    """

    def __init__(self, kernel="rbf"):
        self.kernel = kernel

    def fit(self, X, y):
        self.model_ = fitted(SVM(kernel=self.kernel, C=10), X, y)
        share = np.mean(y[y != -1] == 1)
        self.offset_ = np.quantile(self.model_.decision_function(X[y == -1]), 1 - share)
        return self

    def predict(self, X):
        return (self.model_.decision_function(X) > self.offset_).astype(int)


class TenMinuteUser(ClassifierMixin, BaseEstimator):
    """The best of four by five folds of the labeled rows; the first where they tie.

    Fewer folds where a class has fewer labels; with a single one of a class, the first.
    """

    def fit(self, X, y):
        self.classes_ = np.unique(y[y != -1])
        candidates = (SVC(C=1), SVC(C=10), LogisticRegression(max_iter=1000), spreading())
        n_folds, best = min(5, np.unique(y[y != -1], return_counts=True)[1].min()), 0
        if n_folds > 1:
            folds = list(SemiSupervisedKFold(n_folds, shuffle=True, random_state=0).split(X, y))
            scores = [np.mean([self._score(c, X, y, *fold) for fold in folds]) for c in candidates]
            best = int(np.argmax(scores))
        self.model_ = fitted(candidates[best], X, y)
        return self

    def _score(self, model, X, y, train, test):
        test = test[y[test] != -1]
        return accuracy_score(y[test], fitted(clone(model), X[train], y[train]).predict(X[test]))

    def predict(self, X):
        return self.model_.predict(X)


def spreading():
    """Label spreading on a graph of neighbors; its default kernel needs a width by hand."""
    return LabelSpreading(kernel="knn", n_neighbors=7)


def supervised(model):
    """Whether a model would take unlabeled rows for a class."""
    return isinstance(model, (SVC, SVM, LogisticRegression, KNeighborsClassifier, S3VMSearchCV))


def fitted(model, X, y):
    """The model, fitted to the labeled rows alone if it is supervised."""
    if isinstance(model, LabelSpreading) and hasattr(X, "toarray"):
        X = X.toarray()  # it adds up a sparse graph and sparse rows, and fails
    rows = y != -1 if supervised(model) else slice(None)
    return model.fit(X[rows], y[rows])


def build(method, seed):
    """A method by its name."""
    models = {
        "ten-minute user": TenMinuteUser,
        "LogisticRegression": lambda: LogisticRegression(max_iter=1000),
        "KNeighbors": lambda: KNeighborsClassifier(1),
        "LabelSpreading": spreading,
        "SelfTraining": lambda: SelfTrainingClassifier(LogisticRegression(max_iter=1000)),
        "SVM(C=10)": lambda: SVM(C=10),
        "SVM(linear, C=10)": lambda: SVM(kernel="linear", C=10),
        "SVM(C=10), share": ShareSVM,
        "SVM(linear, C=10), share": lambda: ShareSVM("linear"),
        "SVM, searched": lambda: S3VMSearchCV(
            SVM(), {"kernel": ["linear", "rbf"], "C": [1.0, 10.0]}
        ),
        "QNS3VM(C=10)": lambda: QNS3VM(C=10),
        "MultiSwitchTSVM(C=10)": lambda: MultiSwitchTSVM(C=10),
        "S3VC": lambda: S3VC(random_state=seed),
    }
    return models[method]()


def compare(method, X, truth, labels):
    """Errors of one method on the rows whose labels were hidden, in percent, a value a seed.

    ``error`` of all hidden rows, ``balanced`` mean of the errors of both classes, ``missed`` of the
    hidden rows of class 1. A seed draws which rows are labeled, at random, in the ratio of the
    classes.
    """
    warnings.simplefilter("ignore")
    found = {"error": [], "balanced": [], "missed": []}
    for seed in range(SEEDS):
        y = hide_labels(truth, labels, random_state=seed)
        hidden = y == -1
        rows = X[hidden]
        model = fitted(build(method, seed), X, y)
        if hasattr(rows, "toarray") and isinstance(getattr(model, "model_", model), LabelSpreading):
            rows = rows.toarray()
        wrong = model.predict(rows) != truth[hidden]
        by_class = [100 * wrong[truth[hidden] == k].mean() for k in (0, 1)]
        found["error"].append(digits(100 * wrong.mean()))
        found["balanced"].append(digits(np.mean(by_class)))
        found["missed"].append(digits(by_class[1]))
    return found


def compare_types(make, X, truth, labels):
    """Errors of one method with many classes, in percent of the hidden rows, a value a seed.

    ``error`` of all hidden rows, ``balanced`` mean of the errors of the classes, ``missed`` of the
    rows of each class, and ``false``, how many rows of other classes get the name of each. A seed
    draws equally many labels of each class (`label_each`); ``make(y, seed)`` returns the method.
    """
    warnings.simplefilter("ignore")
    classes = range(truth.max() + 1)
    found = {"error": [], "balanced": [], "missed": [], "false": []}
    for seed in range(SEEDS):
        y = label_each(truth, labels, seed)
        hidden = y == -1
        said, right = fitted(make(y, seed), X, y).predict(X[hidden]), truth[hidden]
        missed = [100 * np.mean(said[right == k] != k) for k in classes]
        found["error"].append(digits(100 * np.mean(said != right)))
        found["balanced"].append(digits(np.mean(missed)))
        found["missed"].append([digits(value) for value in missed])
        found["false"].append([int(np.sum((said == k) & (right != k))) for k in classes])
    return found
