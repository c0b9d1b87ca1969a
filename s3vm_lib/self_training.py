"""Self-training with k nearest neighbors: the oldest way to use unlabeled rows.

A classifier labels the unlabeled rows of which it is surest, counts them as labeled, and is fitted
again, until no row is left or none is sure enough. With k nearest neighbors the surest rows are
those whose labeled neighbors agree most. No objective is minimized, and an early mistake stays.
"""

from collections.abc import Callable
from numbers import Real
from typing import Annotated, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from s3vm_lib.base.findings import given, share_finding, warn, warn_of_time
from s3vm_lib.base.machine import BaseMachine, SemiSupervisedMixin
from s3vm_lib.kernels import Kernel
from s3vm_lib.utils.labels import Labels
from s3vm_lib.utils.limits import Count, Verbosity
from s3vm_lib.utils.linear import nearer
from s3vm_lib.utils.shortcuts import checked_new_rows
from s3vm_lib.utils.validation import Rows, checked_input, parameters, validated

__all__ = ["VoteRound", "SelfTrainingKNN", "Solution", "solve_self_training"]


class VoteRound(NamedTuple):
    """What happened in one round."""

    n_iter: int  # number of the round
    n_added: int  # rows that received a label
    n_left: int  # rows without one
    lowest: float  # smallest share of votes among the labels that were given


class Solution(NamedTuple):
    """Result of `solve_self_training`."""

    codes: np.ndarray  # class of each row, −1 where none was given, (n,)
    rounds: np.ndarray  # round in which it was given, 0 for labeled rows, −1 for none, (n,)
    n_iter: int
    status: str  # "converged" (nothing left to label), "max_iter" or "stopped"
    history: list  # of VoteRound


def solve_self_training(
    X, codes, n_classes, n_neighbors=1, weights="uniform", threshold=0.75, k_best=None,
    max_iter=100, callback=None,
):  # fmt: skip
    """Label unlabeled rows in rounds, by the votes of the nearest labeled rows.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
    codes : int ndarray of shape (n,)
        Classes 0, 1, … of labeled rows, −1 for unlabeled ones.
    n_classes : int
    n_neighbors : int, default=1
        Neighbors that vote; all labeled rows where there are fewer.
    weights : {"uniform", "distance"}, default="uniform"
        Whether votes count 1 or the inverse of the distance.
    threshold : float, default=0.75
        Share of the votes from which on a label is given.
    k_best : int, default=None
        Give at most this many labels in a round, those with the largest shares and among these
        those of the nearest neighbors; the threshold is then not used.
    max_iter : int, default=100
        Largest number of rounds.
    callback : callable, default=None
        Called with each `VoteRound`; a true value stops.

    Returns
    -------
    Solution
    """
    codes, history, status = codes.copy(), [], "max_iter"
    rounds = np.where(codes >= 0, 0, -1)
    while len(history) < max_iter:
        left = np.flatnonzero(codes < 0)
        if left.size == 0:
            status = "converged"
            break
        known = np.flatnonzero(codes >= 0)
        model = KNeighborsClassifier(min(n_neighbors, known.size), weights=weights)
        model.fit(X[known], codes[known])
        # A class that no labeled neighbor has gets no votes.
        shares = np.zeros((left.size, n_classes))
        shares[:, model.classes_] = model.predict_proba(X[left])
        sure = shares.max(axis=1)
        # All above the threshold, or the k best, of equal votes the nearest.
        if k_best is None:
            chosen = np.flatnonzero(sure >= threshold)
        else:
            distance = model.kneighbors(X[left])[0].mean(axis=1)
            chosen = np.sort(np.lexsort((distance, -sure))[:k_best])
        if chosen.size == 0:
            status = "converged"
            break
        codes[left[chosen]] = np.argmax(shares[chosen], axis=1)
        rounds[left[chosen]] = len(history) + 1
        lowest = float(sure[chosen].min())
        history.append(VoteRound(len(history) + 1, chosen.size, left.size - chosen.size, lowest))
        if callback is not None and callback(history[-1]):
            status = "stopped"
            break
    # The last round allowed may have labeled everything.
    if status == "max_iter" and not np.any(codes < 0):
        status = "converged"
    return Solution(codes, rounds, len(history), status, history)


@parameters
class SelfTrainingKNN(SemiSupervisedMixin, BaseEstimator):
    """Self-training with k nearest neighbors.

    Parameters
    ----------
    n_neighbors : int, default=1
        Neighbors that vote.
    weights : {"uniform", "distance"}, default="uniform"
        Whether votes count 1 or the inverse of the distance.
    threshold : float, default=0.75
        Share of the votes from which on an unlabeled row receives a label.
    k_best : int or None, default=10
        Give at most this many labels in a round, in place of all above ``threshold``: the nearest
        rows come first, so that labels spread along clusters. None uses the threshold.
    max_iter : int or None, default=None
        Largest number of rounds, None for as many as it takes.
    verbose : int, default=0
        Print one line per round.
    callback : callable, default=None
        Called after each round with a dict (the fields of ``history_``); a true value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, the one it received, or the predicted one.
    labeled_iter_ : ndarray of shape (n,)
        Round in which each row received its label: 0 for labeled rows, −1 for none.
    n_iter_ : int
        Times that neighbors were searched: the rounds, and once more at the end.
    history_ : list
        One `VoteRound` (n_iter, n_added, n_left, lowest) per round.
    termination_condition_ : str
        ``"converged"``, ``"max_iter"`` or ``"stopped"`` (by the callback).
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`: ``"share"``.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    sklearn.semi_supervised.SelfTrainingClassifier : The same idea with any classifier that has
        ``predict_proba``.

    Notes
    -----
    It is a baseline, and should not be used for itself where there are more than a few features or
    the classes overlap: on such sets of the book's comparison it is much worse than `SVM`.

    There is no sample_weight: votes count rows.

    References
    ----------
    X. Zhu and A. B. Goldberg, "Introduction to semi-supervised learning", Synthesis Lectures on
    Artificial Intelligence and Machine Learning 3 (2009), section 2.5.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import SelfTrainingKNN
    >>> X = np.array([[0.0], [1.0], [2.0], [4.0], [5.0]])
    >>> model = SelfTrainingKNN(k_best=1).fit(X, [0, -1, -1, -1, 1])
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[0.5], [4.5]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[0.5], [4.5]], [0, 1])
    1.0
    """

    n_neighbors: Count = 1
    weights: Literal["uniform", "distance"] = "uniform"
    threshold: Annotated[float, Interval(Real, 0, 1, closed="right")] = 0.75
    k_best: Count | None = 10
    max_iter: Count | None = None
    verbose: Verbosity = 0
    callback: Callable | None = None

    _largest_n = 5_000
    _memory = "rows"

    @validated
    def fit(self, X: Rows, y: Labels, unlabeled_mask: ArrayLike | None = None) -> Self:
        """Fit the model to labeled and unlabeled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Training rows, labeled and unlabeled.
        y : array-like of shape (n,)
            Labels; −1 marks unlabeled rows, and so do missing labels (None, NaN, pandas.NA). With
            string labels use an object array.
        unlabeled_mask : array-like of bool, shape (n,), default=None
            True for unlabeled rows. With it −1 is a label like any other.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            When fewer than two classes are labeled, or when a parameter or an input is not valid.
        """
        X, codes, _ = checked_input(self, X, y, unlabeled_mask=unlabeled_mask)
        if unlabeled_mask is None:
            self._warn_of_no_unlabeled(codes)
        warn_of_time(self, codes.size, 3)
        X, self._center = nearer(X, Kernel("linear"))  # distances stay, with more digits
        max_iter = np.inf if self.max_iter is None else self.max_iter
        solution = solve_self_training(
            X, codes, self.classes_.size, int(self.n_neighbors), self.weights, self.threshold,
            self.k_best, max_iter, lambda state: self._report(state._asdict()),
        )  # fmt: skip
        known = solution.codes >= 0
        # Predictions are votes of all labels, those that were found too.
        self._model = KNeighborsClassifier(
            min(int(self.n_neighbors), int(known.sum())), weights=self.weights
        ).fit(X[known], solution.codes[known])
        found = solution.codes.copy()
        if not known.all():
            found[~known] = self._model.predict(X[~known])
        self.transduction_ = self.classes_[found]
        self.labeled_iter_ = solution.rounds
        self.n_iter_, self.history_ = solution.n_iter + 1, solution.history
        self.termination_condition_ = solution.status
        answers, U = codes.copy(), codes < 0
        if U.any():  # as `predict` does it, where a row is one of its neighbors
            answers[U] = self._model.predict(X[U])
        share = share_finding(codes, np.ones(codes.size), answers, self.classes_)
        self.findings_ = given(share=share)
        warn(type(self).__name__, self.findings_, 3)
        return self

    _report = BaseMachine._report

    def predict_proba(self, X: Rows) -> np.ndarray:
        """Return the shares of the votes of the nearest labeled rows, shape (m, n_classes)."""
        check_is_fitted(self)
        X = checked_new_rows(self, X, [np.float64])
        if self._center is not None:
            X = (X.toarray() if sp.issparse(X) else X) - self._center
        return self._model.predict_proba(X)

    def predict(self, X: Rows) -> np.ndarray:
        """Return the class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m,)
        """
        found = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[found]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
