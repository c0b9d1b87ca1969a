"""Splits and scores of the labeled rows alone, and a documented rule for ties.

scikit-learn's splitters would put unlabeled rows (−1) into the test part, where every prediction
counts as an error. Here unlabeled rows stay in the training part.
"""

import numbers
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import column_or_1d

from s3vm_lib.utils.labels import label_array, mark_missing, plain, unlabeled_rows


def labeled_rows(y, unlabeled_mask=None):
    """Return the numbers of the labeled rows, and their labels."""
    y = column_or_1d(label_array(mark_missing(y, unlabeled_mask)))
    rows = np.flatnonzero(~unlabeled_rows(y, unlabeled_mask))
    if len(rows) == 0:
        raise ValueError("y holds no labeled rows (all are -1 or missing)")
    return rows, plain(y[rows])


class SemiSupervisedKFold(StratifiedKFold):
    """Stratified folds of the labeled rows; unlabeled rows are always in training.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2 and at most the number of labels of the largest class.
    shuffle : bool, default=False
        Whether to shuffle the labeled rows of each class first.
    random_state : int, RandomState or None, default=None
        Source of randomness where `shuffle` is set.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib.model_selection import SemiSupervisedKFold
    >>> y = np.array([0, -1, 1, 0, -1, 1])
    >>> for train, test in SemiSupervisedKFold(2).split(None, y):
    ...     print(train, test)
    [1 3 4 5] [0 2]
    [0 1 2 4] [3 5]
    """

    __metadata_request__split = {"groups": UNUSED, "unlabeled_mask": True}

    def split(self, X, y, groups=None, unlabeled_mask=None):
        """Generate the rows of the training and of the test part.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Ignored, except that it must have as many rows as y.
        y : array-like of shape (n_samples,)
            Classes; −1 or a missing label (None, NaN, pandas.NA) for unlabeled rows.
        groups : None
            Ignored, present for compatibility with scikit-learn.
        unlabeled_mask : array-like of bool, shape (n_samples,), default=None
            True for unlabeled rows; with it −1 is a label like any other. Requested by default
            where scikit-learn routes metadata. Where it does not, `cross_val_score` hands its
            ``params`` to `fit` alone: give it ``cv=list(folds.split(X, y, unlabeled_mask=mask))``.

        Yields
        ------
        train : ndarray
            Row numbers, sorted: the labeled rows outside the fold and all unlabeled rows.
        test : ndarray
            Row numbers, sorted: labeled rows only.

        Raises
        ------
        ValueError
            If no row is labeled, if −1 and missing labels both occur, if the labeled rows beside −1
            are of one class, if X and y differ in length, or if scikit-learn's splitter finds too
            few labeled rows per class.
        """
        if X is not None and (X.shape[0] if hasattr(X, "shape") else len(X)) != len(y):
            raise ValueError("X and y must have the same number of rows")
        # Unlabeled rows have nothing to test: they are in every training part.
        labeled, labels = labeled_rows(y, unlabeled_mask)
        unlabeled = np.delete(np.arange(len(y)), labeled)
        # The classes are passed as numbers: scikit-learn takes 0.5 and 1.5 for a regression.
        classes, codes = np.unique(labels, return_inverse=True)
        if unlabeled_mask is None and unlabeled.size and classes.size == 1:
            raise ValueError(
                f"y must hold two labeled classes or more, got {classes.tolist()}. -1 means "
                "unlabeled: if it is a class, pass unlabeled_mask or encode_labels(y)[0]"
            )
        for kept, tested in super().split(np.zeros(len(labeled)), codes):
            train = np.concatenate([unlabeled, labeled[kept]])
            yield np.sort(train), np.sort(labeled[tested])


@dataclass(frozen=True, repr=False)
class LabeledMetric:
    """A metric of scikit-learn restricted to the labeled rows.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, y_pred, **options)``.

    Examples
    --------
    >>> from sklearn.metrics import f1_score, make_scorer
    >>> from s3vm_lib.model_selection import LabeledMetric
    >>> scorer = make_scorer(LabeledMetric(f1_score), average="macro")
    """

    metric: Callable

    def __call__(self, y_true, y_pred, *, sample_weight=None, unlabeled_mask=None, **options):
        """Return the metric of the rows whose ``y_true`` is neither −1 nor missing.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Classes; −1 or a missing label (None, NaN, pandas.NA) for unlabeled rows.
        y_pred : array-like of shape (n_samples,)
            Predicted classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        unlabeled_mask : array-like of bool, shape (n_samples,), default=None
            True for rows that are left out; with it −1 is a label like any other.
        **options
            Passed to the metric.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If no row is labeled, or if −1 and missing labels both occur.
        """
        rows, y_true = labeled_rows(y_true, unlabeled_mask)
        y_pred = np.asarray(y_pred)[rows]
        if y_pred.dtype == object:  # metrics refuse arrays of objects
            y_pred = np.array(y_pred.tolist())
        if sample_weight is not None:
            options["sample_weight"] = np.asarray(sample_weight)[rows]
        return self.metric(y_true, y_pred, **options)

    @property
    def __name__(self):
        return f"labeled_{getattr(self.metric, '__name__', self.metric)}"

    def __repr__(self):
        return f"LabeledMetric({getattr(self.metric, '__name__', self.metric)})"


labeled_accuracy = LabeledMetric(accuracy_score)
labeled_accuracy_scorer = make_scorer(labeled_accuracy)


def is_labeled_accuracy(scoring):
    """Return whether a ``scoring`` is `labeled_accuracy_scorer`, or a clone's copy of it."""
    mine = labeled_accuracy_scorer
    return type(scoring) is type(mine) and vars(scoring) == vars(mine)


class PreferSmallest:
    """A rule for ties in a grid search: among the best settings, the one with the smallest values.

    With twenty labels many settings share the best cross-validation score, and which one of them is
    taken moves the mean error by points. Pass the rule as ``GridSearchCV(..., refit=rule)``.

    Parameters
    ----------
    *parameters : str
        Names as in the grid, the most important first: the smallest value of the first decides,
        then that of the second, and so on. For an S3VM ``PreferSmallest("C", "C_star")`` takes
        the strongest regularization first and the least trust in unlabeled points second.
    tolerance : float, default=1e-12
        Settings whose mean score is within this distance of the best count as tied.

    Notes
    -----
    Values of None (a default that depends on the data) come after all numbers. If ties remain,
    the first setting in the order of the grid is taken; settings whose score is NaN are ignored.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import SVC
    >>> from s3vm_lib.model_selection import PreferSmallest
    >>> search = GridSearchCV(SVC(), {"C": [100, 10, 1]}, refit=PreferSmallest("C"))
    """

    def __init__(self, *parameters, tolerance=1e-12):
        self.parameters = parameters
        self.tolerance = tolerance

    def __call__(self, cv_results):
        """Return the index of the chosen setting.

        Parameters
        ----------
        cv_results : dict
            ``GridSearchCV.cv_results_``.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If a named parameter is not in the grid, or every score is NaN.
        """
        scores = np.asarray(cv_results["mean_test_score"], dtype=float)
        settings = cv_results["params"]
        for name in self.parameters:
            if any(name not in setting for setting in settings):
                raise ValueError(f"{name!r} is not in the grid, which has {sorted(settings[0])}")
        if np.isnan(scores).all():
            raise ValueError("every setting of the grid failed (all scores are NaN)")
        tied = np.flatnonzero(scores >= np.nanmax(scores) - self.tolerance)
        return int(min(tied, key=lambda k: [rank(settings[k][p]) for p in self.parameters]))

    def __repr__(self):
        parameters = ", ".join(repr(p) for p in self.parameters)
        return f"PreferSmallest({parameters})"


def rank(value):
    """Return the key by which `PreferSmallest` sorts a value: None comes after all numbers."""
    if value is None:
        return np.inf
    if not isinstance(value, numbers.Real):
        raise ValueError(f"ties can be broken by numbers only, got {value!r}")
    return value
