"""Other libraries in the form of an estimator, with their own defaults.

They are measured in an environment that holds their packages beside this one:
modssc 1.2.2, sslearn 1.1.0, graphlearning 1.7.5.
"""

from types import SimpleNamespace

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


def _dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


class _Neighbor(ClassifierMixin, BaseEstimator):
    """Answers for rows of the last fit, in the order in which they were given."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def fit(self, X, y):
        """Keep what is answered for all rows of the fit."""
        self.transduction_ = np.asarray(self._answers(X.astype(np.float64), y))
        return self


class ModsscTSVM(_Neighbor):
    """``TSVMMethod`` of modssc, which asks for a graph and uses none."""

    def _data(self, X, y):
        known = y >= 0
        graph = SimpleNamespace(edge_index=np.zeros((2, 0), dtype=np.int64))
        masks = {"train_mask": known, "unlabeled_mask": ~known}
        return SimpleNamespace(X=X, y=y, graph=graph, masks=masks, meta=None)

    def _answers(self, X, y):
        from modssc.transductive.methods.classic.tsvm import TSVMMethod

        X = _dense(X)
        self.model_ = TSVMMethod().fit(self._data(X, y), seed=self.random_state)
        return self.predict(X)

    def predict(self, X):
        """Answer for any rows."""
        X = _dense(X)
        y = np.zeros(X.shape[0], dtype=np.int64)
        return np.argmax(self.model_.predict_proba(self._data(X, y)), axis=1)


class ModsscS4VM(_Neighbor):
    """``S4VMMethod`` of modssc around its rbf SVM of scikit-learn."""

    def _answers(self, X, y):
        from modssc.inductive.methods.s4vm import S4VMMethod, S4VMSpec
        from modssc.inductive.types import DeviceSpec, InductiveDataset

        X, known = _dense(X), y >= 0
        spec = S4VMSpec(classifier_id="svm_rbf", classifier_backend="sklearn")
        data = InductiveDataset(X_l=X[known], y_l=y[known], X_u=X[~known])
        self.model_ = S4VMMethod(spec)
        self.model_.fit(data, device=DeviceSpec(), seed=self.random_state)
        return self.predict(X)

    def predict(self, X):
        """Answer for any rows."""
        X = _dense(X)
        return np.argmax(self.model_.predict_proba(X), axis=1)


class SslearnTriTraining(_Neighbor):
    """``TriTraining`` of sslearn."""

    def _answers(self, X, y):
        from sslearn.wrapper import TriTraining

        self.model_ = TriTraining(random_state=self.random_state).fit(X, y)
        return self.predict(X)

    def predict(self, X):
        """Answer for any rows."""
        return self.model_.predict(X)


class GraphPoisson(_Neighbor):
    """``poisson`` of graphlearning on its graph of ten neighbors; new rows join the graph."""

    method = "poisson"

    def _answers(self, X, y):
        import graphlearning

        X = _dense(X)
        self.fit_X_, self.fit_y_ = X, y
        W = graphlearning.weightmatrix.knn(X, min(10, len(X) - 1))
        known = np.flatnonzero(y >= 0)
        return getattr(graphlearning.ssl, self.method)(W).fit_predict(known, y[known])

    def predict(self, X):
        """Answer for any rows."""
        X = _dense(X)
        n = len(self.fit_X_)
        y = np.append(self.fit_y_, np.full(len(X), -1))
        return type(self)()._answers(np.vstack((self.fit_X_, X)), y)[n:]


class GraphLaplace(GraphPoisson):
    """``laplace`` of graphlearning, label propagation."""

    method = "laplace"
