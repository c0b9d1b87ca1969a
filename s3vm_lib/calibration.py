"""Probabilities from outputs, by calibration on the labeled rows."""

import warnings
from dataclasses import field
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from s3vm_lib.base.findings import FitWarning, warn
from s3vm_lib.base.machine import SemiSupervisedMixin
from s3vm_lib.model_selection import WithUnlabeled
from s3vm_lib.utils.labels import Labels
from s3vm_lib.utils.limits import Count
from s3vm_lib.utils.shortcuts import validated_data
from s3vm_lib.utils.validation import Array, Rows, checked_input, parameters, validated_inside


@parameters
class _ByLabel(WithUnlabeled):
    """`WithUnlabeled` for `cross_val_predict`, which numbers the classes, within the folds alone.

    Parameters of the estimator may be keyed by label: it is fitted to labels in either case.
    """

    classes: Array = field(kw_only=False)

    def fit(self, X, y):
        numbered = not np.array_equal(np.unique(y), self.classes)  # every fold has all classes
        labeled = np.zeros(len(y), dtype=bool)  # whatever they are called
        return super().fit(X, self.classes[y] if numbered else y, labeled)


@parameters
class CalibratedS3VM(SemiSupervisedMixin, MetaEstimatorMixin, BaseEstimator):
    """A semi-supervised classifier with ``predict_proba``.

    The labeled rows are parted into folds. The estimator is fitted to all unlabeled rows and all
    folds but one, and its outputs on the fold left out are what the map from outputs to
    probabilities is fitted to. The model that predicts is fitted to all rows. The work is done by
    `sklearn.calibration.CalibratedClassifierCV`.

    Parameters
    ----------
    estimator : estimator
        A classifier with ``decision_function``, such as those of this library.
    method : {"sigmoid", "isotonic"}, default="sigmoid"
        "sigmoid" has two parameters per class (Platt, 1999). "isotonic" is any increasing map;
        scikit-learn advises it from a thousand labeled rows on.
    cv : int, default=5
        Folds of the labeled rows, at least 2; fewer where a class has fewer labels.

    Attributes
    ----------
    estimator_ : estimator
        The model, fitted to all rows.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or that of ``estimator_``.
    findings_ : dict of str to str
        What a look at ``estimator_`` found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    The probabilities are as good as the labeled rows are many and drawn like the others. Two
    parameters fitted to twenty outputs are known roughly; and where the classes do not have the
    same shares among the labels as among all rows, the probabilities have those of the labels.
    `predict` takes the most probable class, which near the boundary may differ from what
    ``estimator_`` predicts.

    References
    ----------
    J. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
    likelihood methods", in Advances in Large Margin Classifiers (1999), 61-74.

    Examples
    --------
    >>> from s3vm_lib import QNS3VM
    >>> from s3vm_lib.calibration import CalibratedS3VM
    >>> from s3vm_lib.datasets import hide_labels, make_moons
    >>> X, truth = make_moons(400, random_state=0)
    >>> new, truth_of_new = X[300:], truth[300:]
    >>> y = hide_labels(truth[:300], 30, random_state=0)
    >>> model = CalibratedS3VM(QNS3VM(gamma=8)).fit(X[:300], y)
    >>> model.predict_proba(new[:2]).shape
    (2, 2)
    >>> model.predict(new[:3]).tolist(), model.score(new, truth_of_new) > 0.95
    ([1, 0, 1], True)
    """

    estimator: Annotated[BaseEstimator, HasMethods(["fit", "decision_function"])] = field(
        kw_only=False
    )
    method: Literal["sigmoid", "isotonic"] = "sigmoid"
    cv: Count = 5

    @validated_inside
    def fit(self, X: Rows, y: Labels, unlabeled_mask: ArrayLike | None = None) -> Self:
        """Fit the model, and the map from its outputs to probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Training rows, labeled and unlabeled.
        y : array-like of shape (n,)
            Labels; −1 or a missing label marks unlabeled rows.
        unlabeled_mask : array-like of bool, shape (n,), default=None
            True for unlabeled rows. With it −1 is a label like any other.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a class has fewer than two labeled rows, or the kernel is precomputed.
        """
        if self.cv < 2:
            raise ValueError(f"cv must be at least 2, got {self.cv}")
        if get_tags(self.estimator).input_tags.pairwise:
            raise ValueError(
                "estimator must not have kernel='precomputed': the folds need other kernel values"
            )
        X, codes, _ = checked_input(self, X, y, unlabeled_mask=unlabeled_mask)
        labeled = codes >= 0
        counts = np.bincount(codes[labeled])
        if counts.min() < 2:
            raise ValueError(
                "y must hold at least two labeled rows of every class, which calibration leaves "
                f"out in turn; it holds one of {self.classes_.tolist()[np.argmin(counts)]!r}"
            )
        labels = self.classes_[np.where(labeled, codes, 0)]
        # The labeled rows leave in turn, while the unlabeled ones are in every fold.
        self._calibrated = CalibratedClassifierCV(
            _ByLabel(self.estimator, X[~labeled], self.classes_),
            method=self.method,
            cv=StratifiedKFold(min(int(self.cv), int(counts.min()))),
            ensemble=False,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # of the folds
            self._calibrated.fit(X[labeled], labels[labeled])
        model = self._calibrated.calibrated_classifiers_[0].estimator
        self.estimator_ = model.estimator_
        self.findings_ = getattr(self.estimator_, "findings_", {})
        self.transduction_ = labels
        if labeled.all():
            found = labels[:0]
        elif hasattr(model, "transduction_"):
            found = model.transduction_
        else:  # a pipeline has none
            found = model.predict(X[~labeled])
        self.transduction_[~labeled] = found
        warn(type(self).__name__, self.findings_, 3)
        return self

    def _checked(self, X):
        check_is_fitted(self)
        return validated_data(self, X, accept_sparse="csr", reset=False)

    def predict_proba(self, X: Rows) -> np.ndarray:
        """Return the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m, n_classes)
            Columns in the order of ``classes_``; rows sum to one.
        """
        X = self._checked(X)
        return self._calibrated.predict_proba(X)

    def predict(self, X: Rows) -> np.ndarray:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m,)
        """
        chances = self.predict_proba(X)
        return self.classes_[np.argmax(chances, axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
