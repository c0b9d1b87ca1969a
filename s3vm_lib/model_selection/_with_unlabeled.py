"""The unlabeled rows as a parameter, for tools that would take −1 for a class."""

from dataclasses import field
from typing import Annotated, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _get_feature_names, check_is_fitted, has_fit_parameter

from s3vm_lib.base.machine import SemiSupervisedMixin
from s3vm_lib.utils.labels import (
    Labels,
    checked_mask,
    mark_missing,
    mark_unlabeled,
    plain,
    warn_of_marks,
)
from s3vm_lib.utils.shortcuts import explained, validated_data
from s3vm_lib.utils.validation import Estimator, Rows, parameters, validated_inside


def _fitted_has(name):
    return lambda self: hasattr(getattr(self, "estimator_", self.estimator), name)


def told_unlabeled(estimator, y, mask):
    """Return labels and parameters for ``fit``.

    Where −1 is no class, the labels hold −1 and there are no parameters; otherwise
    ``unlabeled_mask`` is one.
    """
    # Without routing, a pipeline hands arguments to its last step by its name, as step__argument.
    prefix = ""
    while isinstance(estimator, Pipeline) and not get_config()["enable_metadata_routing"]:
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    needed = not prefix or np.any(np.asarray(y[~mask] == -1, dtype=bool))
    if not needed or not has_fit_parameter(estimator, "unlabeled_mask"):
        return mark_unlabeled(y, mask), {}
    y = np.where(mask, y[~mask][0], y) if prefix else y  # hidden labels are hidden from all steps
    return y, {f"{prefix}unlabeled_mask": mask}


@parameters
class WithUnlabeled(SemiSupervisedMixin, MetaEstimatorMixin, BaseEstimator):
    """A semi-supervised classifier that carries its unlabeled rows along.

    To the outside it is a supervised one: `fit` takes labeled rows alone, and the unlabeled ones
    are a parameter. So every tool of scikit-learn treats it right, also those that number the
    classes again and would take −1 for one of them: bagging, voting, stacking, calibration, any
    splitter and any score.

    Parameters
    ----------
    estimator : estimator
        A classifier that reads −1 in y as "unlabeled", of this library or of scikit-learn.
    X_unlabeled : {array-like, sparse matrix} of shape (n_unlabeled, d)
        The unlabeled rows.

    Attributes
    ----------
    estimator_ : estimator
        The classifier, fitted to the labeled rows, which come first, and the unlabeled ones.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    transduction_ : ndarray of shape (n_unlabeled,)
        Labels of the unlabeled rows, where ``estimator_`` has a ``transduction_``.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from sklearn.ensemble import BaggingClassifier
    >>> from s3vm_lib import QNS3VM
    >>> from s3vm_lib.datasets import hide_labels, make_moons
    >>> from s3vm_lib.model_selection import WithUnlabeled
    >>> X, truth = make_moons(300, random_state=0)
    >>> labeled = hide_labels(truth, 30, random_state=0) != -1
    >>> model = WithUnlabeled(QNS3VM(gamma=8), X[~labeled])
    >>> bag = BaggingClassifier(model, n_estimators=5, random_state=0)
    >>> bag.fit(X[labeled], truth[labeled]).classes_.tolist()
    [0, 1]
    """

    estimator: Estimator = field(kw_only=False)
    X_unlabeled: Annotated[Rows, "array-like", "sparse matrix"] = field(kw_only=False)

    @validated_inside
    def fit(self, X: Rows, y: Labels, unlabeled_mask: ArrayLike | None = None) -> Self:
        """Fit the classifier to these labeled rows and the unlabeled ones.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Labeled rows.
        y : array-like of shape (n,)
            Their labels; −1 is one like any other if the estimator, or the last step of a pipeline,
            takes ``unlabeled_mask``.
        unlabeled_mask : array-like of bool, shape (n,), default=None
            True for rows of X that join the unlabeled ones, whatever their ``y``.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If ``X_unlabeled`` has another number of features than X or other names of columns, or
            y misses a label.
        """
        hidden = np.zeros(np.shape(y)[:1], bool) if unlabeled_mask is None else unlabeled_mask
        X, y = validated_data(self, X, mark_missing(y, hidden), accept_sparse="csr")
        hidden = checked_mask(hidden, y.shape)
        known = plain(y[~hidden])
        check_classification_targets(known)
        pool = self._checked_pool()
        mask = np.concatenate([hidden, np.ones(pool.shape[0], dtype=bool)])
        # Labeled rows come first, with any label for the others: the mask tells them apart.
        stack = sp.vstack if sp.issparse(X) or sp.issparse(pool) else np.vstack
        rows = stack([X, pool])
        labels = np.concatenate([y, np.repeat(y[:1], pool.shape[0])])
        estimator = clone(self.estimator)
        labels, options = told_unlabeled(estimator, labels, mask)
        try:
            estimator.fit(rows, labels, **options)
        except TypeError as error:
            if options or labels.dtype != object:
                raise
            name = type(estimator).__name__
            message = "takes no -1 among strings: make numbers of y by s3vm_lib.encode_labels"
            raise TypeError(f"{name} {message} ({error})") from error
        self.estimator_ = estimator
        self.classes_ = np.unique(known)
        if unlabeled_mask is None:
            warn_of_marks(self.classes_)
        if hasattr(estimator, "transduction_"):
            self.transduction_ = np.asarray(estimator.transduction_)[X.shape[0] :]
        return self

    def _checked_pool(self):
        """Return the unlabeled rows; refuse those with other columns than X."""
        with explained(self.X_unlabeled, "X_unlabeled"):
            options = {"accept_sparse": "csr", "ensure_min_samples": 0}
            pool = check_array(self.X_unlabeled, input_name="X_unlabeled", **options)
        n, names = self.n_features_in_, vars(self).get("feature_names_in_")
        if pool.shape[1] != n:
            raise ValueError(f"X_unlabeled must have the {n} features of X, got {pool.shape[1]}")
        given = _get_feature_names(self.X_unlabeled)
        if given is not None and names is not None and list(given) != list(names):
            columns = f"{list(names)}, got {list(given)}"
            raise ValueError(f"X_unlabeled must have the columns of X, {columns}")
        return pool

    def _checked(self, X):
        check_is_fitted(self)
        return validated_data(self, X, accept_sparse="csr", reset=False)

    def predict(self, X: Rows) -> np.ndarray:
        """Predict the class of each row by the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m,)
        """
        X = self._checked(X)
        return self.estimator_.predict(X)

    @available_if(_fitted_has("decision_function"))
    def decision_function(self, X: Rows) -> np.ndarray:
        """Return the outputs of the classifier; see `predict` for the rows."""
        X = self._checked(X)
        return self.estimator_.decision_function(X)

    @available_if(_fitted_has("predict_proba"))
    def predict_proba(self, X: Rows) -> np.ndarray:
        """Return the probabilities of the classifier; see `predict` for the rows."""
        X = self._checked(X)
        return self.estimator_.predict_proba(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
