"""Model selection with few labels: splitters, scorers and a documented rule for ties.

scikit-learn's splitters would put unlabeled rows (−1) into the test part, where every prediction
counts as an error. Here the labeled rows alone are split, and unlabeled rows stay in training.
"""

import numbers
from typing import Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils import check_array, get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from s3vm_lib._base import Rows, validated_inside
from s3vm_lib.labels import Labels, mark_unlabeled


def _labeled_rows(y):
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one-dimensional, got shape {y.shape}")
    rows = np.flatnonzero(y != -1)
    if len(rows) == 0:
        raise ValueError("y holds no labeled rows (all are -1)")
    return rows, y[rows]


class _LabeledSplit:
    """What both splitters share: split the labeled rows, add the others to training."""

    def split(self, X, y, groups=None):
        """Rows of the training and of the test part.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Ignored, except that it must have as many rows as y.
        y : array-like of shape (n_samples,)
            Classes, −1 for unlabeled rows.
        groups : None
            Ignored, present for compatibility with scikit-learn.

        Yields
        ------
        train : ndarray
            Row numbers, sorted: the labeled rows outside the fold and all unlabeled rows.
        test : ndarray
            Row numbers, sorted: labeled rows only.

        Raises
        ------
        ValueError
            If no row is labeled, if X and y differ in length, or if scikit-learn's splitter
            finds too few labeled rows per class.
        """
        if X is not None and (X.shape[0] if hasattr(X, "shape") else len(X)) != len(y):
            raise ValueError("X and y must have the same number of rows")
        labeled, classes = _labeled_rows(y)
        # The classes are passed as numbers: an object array of strings and -1 is no target type.
        codes = np.unique(classes, return_inverse=True)[1]
        for kept, tested in self._splitter().split(np.zeros(len(labeled)), codes):
            train = np.asarray(y) == -1
            train[labeled[kept]] = True
            yield np.flatnonzero(train), np.sort(labeled[tested])

    def get_n_splits(self, X=None, y=None, groups=None):
        """Number of splits; the arguments are ignored, as in scikit-learn.

        Returns
        -------
        int
        """
        return self.n_splits

    def __repr__(self):
        parameters = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"{type(self).__name__}({parameters})"


class SemiSupervisedKFold(_LabeledSplit):
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

    def __init__(self, n_splits=5, *, shuffle=False, random_state=None):
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        self._splitter()

    def _splitter(self):
        return StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)


class SemiSupervisedShuffleSplit(_LabeledSplit):
    """Random stratified splits of the labeled rows; unlabeled rows are always in training.

    Parameters
    ----------
    n_splits : int, default=10
        Number of splits.
    test_size : float, int or None, default=None
        Share or number of the *labeled* rows in the test part; None means the rest of
        `train_size`, or 0.1.
    train_size : float, int or None, default=None
        Share or number of the labeled rows in the training part; None means the rest. Labeled
        rows in neither part are left out.
    random_state : int, RandomState or None, default=None
        Source of randomness.
    """

    def __init__(self, n_splits=10, *, test_size=None, train_size=None, random_state=None):
        self.n_splits = n_splits
        self.test_size = test_size
        self.train_size = train_size
        self.random_state = random_state
        self._splitter()

    def _splitter(self):
        return StratifiedShuffleSplit(
            self.n_splits,
            test_size=self.test_size,
            train_size=self.train_size,
            random_state=self.random_state,
        )


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

    def __call__(self, y_true, y_pred, *, sample_weight=None, **options):
        """Value of the metric on the rows with ``y_true != -1``.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Classes, −1 for unlabeled rows.
        y_pred : array-like of shape (n_samples,)
            Predicted classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        **options
            Passed to the metric.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If no row is labeled.
        """
        rows, y_true = _labeled_rows(y_true)
        y_pred = np.asarray(y_pred)[rows]
        if y_true.dtype == object:  # strings beside -1: metrics want plain strings
            y_true, y_pred = np.array(y_true.tolist()), np.array(y_pred.tolist())
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
        return int(min(tied, key=lambda k: [_rank(settings[k][p]) for p in self.parameters]))

    def __repr__(self):
        parameters = ", ".join(repr(p) for p in self.parameters)
        return f"PreferSmallest({parameters})"


def _rank(value):
    if value is None:
        return np.inf
    if not isinstance(value, numbers.Real):
        raise ValueError(f"ties can be broken by numbers only, got {value!r}")
    return value


def _fitted_has(name):
    return lambda self: hasattr(getattr(self, "estimator_", self.estimator), name)


class WithUnlabeled(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
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

    _parameter_constraints = {
        "estimator": [HasMethods(["fit", "predict"])],
        "X_unlabeled": ["array-like", "sparse matrix"],
    }

    def __init__(self, estimator: BaseEstimator, X_unlabeled: Rows) -> None:
        self.estimator = estimator
        self.X_unlabeled = X_unlabeled

    @validated_inside
    def fit(self, X: Rows, y: Labels) -> Self:
        """Fit the classifier to these labeled rows and the unlabeled ones.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Labeled rows.
        y : array-like of shape (n,)
            Their labels; −1 is one like any other if the estimator takes ``unlabeled_mask``.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If ``X_unlabeled`` has another number of features than X, or y misses a label.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        pool = check_array(
            self.X_unlabeled, accept_sparse="csr", ensure_min_samples=0, input_name="X_unlabeled"
        )
        if pool.shape[1] != X.shape[1]:
            raise ValueError(
                f"X_unlabeled must have the {X.shape[1]} features of X, got {pool.shape[1]}"
            )
        mask = np.arange(X.shape[0] + pool.shape[0]) >= X.shape[0]
        stack = sp.vstack if sp.issparse(X) or sp.issparse(pool) else np.vstack
        rows = stack([X, pool])
        labels = np.concatenate([y, np.repeat(y[:1], pool.shape[0])])
        estimator = clone(self.estimator)
        if has_fit_parameter(estimator, "unlabeled_mask"):
            estimator.fit(rows, labels, unlabeled_mask=mask)
        else:
            estimator.fit(rows, mark_unlabeled(labels, mask))
        self.estimator_ = estimator
        self.classes_ = np.unique(y)
        if hasattr(estimator, "transduction_"):
            self.transduction_ = np.asarray(estimator.transduction_)[mask]
        return self

    def _checked(self, X):
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", reset=False)

    def predict(self, X: Rows) -> np.ndarray:
        """Class of each row, as the classifier predicts it.

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
        """Outputs of the classifier; see `predict` for the rows."""
        X = self._checked(X)
        return self.estimator_.decision_function(X)

    @available_if(_fitted_has("predict_proba"))
    def predict_proba(self, X: Rows) -> np.ndarray:
        """Probabilities of the classifier; see `predict` for the rows."""
        X = self._checked(X)
        return self.estimator_.predict_proba(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
