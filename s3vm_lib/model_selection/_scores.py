"""Scores of the labeled rows, and a documented rule for ties."""

import numbers

import numpy as np
from sklearn.metrics import accuracy_score, make_scorer

from s3vm_lib.model_selection._splitters import labeled_rows


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

    def __init__(self, metric):
        self.metric = metric

    def __eq__(self, other):
        return type(self) is type(other) and self.metric == other.metric

    def __hash__(self):
        return hash((type(self), self.metric))

    def __call__(self, y_true, y_pred, *, sample_weight=None, unlabeled_mask=None, **options):
        """Value of the metric on the rows whose ``y_true`` is neither −1 nor missing.

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
        if y_pred.dtype == object:  # metrics want plain labels
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
    """Whether a ``scoring`` is `labeled_accuracy_scorer`, or the copy that a clone has of it."""
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
    score : str, default="score"
        Name of the score, where several are computed.

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

    def __init__(self, *parameters, tolerance=1e-12, score="score"):
        self.parameters = parameters
        self.tolerance = tolerance
        self.score = score

    def __call__(self, cv_results):
        """Index of the chosen setting.

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
        scores = np.asarray(cv_results[f"mean_test_{self.score}"], dtype=float)
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
    """Where `PreferSmallest` puts a value: None after all numbers."""
    if value is None:
        return np.inf
    if not isinstance(value, numbers.Real):
        raise ValueError(f"ties can be broken by numbers only, got {value!r}")
    return value
