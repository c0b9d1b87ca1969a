"""Spectra, targets and decoys: the machines of the story of peptides, and their protocol."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.preprocessing import StandardScaler

from s3vm_lib import MultiSwitchTSVM
from s3vm_lib.model_selection.rankings import accept, out_of_fold, share_of_right_targets

RATE = 0.01
FOLDS = 3


class BestFeature(BaseEstimator):
    """The column, up or down, that accepts most targets among the rows of the fit."""

    def fit(self, X, y):
        found = [
            (accept(sign * X[:, k], y == 1, RATE).sum(), sign, k)
            for k in range(X.shape[1])
            for sign in (1, -1)
        ]
        _, self.sign_, self.column_ = max(found)
        return self

    def decision_function(self, X):
        return self.sign_ * X[:, self.column_]


class DecoyMachine(BaseEstimator):
    """A linear machine that learns decoys from sure targets, and may look at the other targets.

    Parameters
    ----------
    share : {None, "decoys", "difference"}, default="decoys"
        None: the other targets are left out. Else they are unlabeled rows, of which a share is
        right: estimated from the lower half of the decoys, or as targets minus decoys.
    rounds : int, default=10
        How often the sure targets are chosen: first by the best feature, then by the outputs.
        Ten is the default of Percolator and mokapot.
    C : float, default=1.0
    """

    def __init__(self, share="decoys", rounds=10, C=1.0):
        self.share = share
        self.rounds = rounds
        self.C = C

    def fit(self, X, y):
        target = y == 1
        self.scaler_ = StandardScaler().fit(X)
        rows = self.scaler_.transform(X)
        scores = BestFeature().fit(X, y).decision_function(X)
        for _ in range(self.rounds):
            sure = accept(scores, target, RATE)
            labels = np.where(sure, 1, np.where(target, -1, 0))
            model = MultiSwitchTSVM(C=self.C)
            if self.share is None:
                known = labels != -1
                self.model_ = model.fit(rows[known], labels[known])
            else:
                model.set_params(balance=self._balance(scores, target, sure))
                self.model_ = model.fit(rows, labels)
            scores = self.model_.decision_function(rows)
        # As Percolator does, so that outputs of several folds can be ranked together: the last
        # accepted target has 0, the median decoy −1.
        accepted = scores[accept(scores, target, RATE)]
        self.zero_ = accepted.min() if accepted.size else scores.max()
        self.unit_ = self.zero_ - np.median(scores[~target])
        return self

    def _balance(self, scores, target, sure):
        """Share of right ones among the targets that are not sure."""
        right = share_of_right_targets(scores, target)
        if self.share == "difference":
            right = max(0.0, 1 - (~target).sum() / target.sum())
        rest = target.sum() - sure.sum()
        return float(np.clip((right * target.sum() - sure.sum()) / rest, 0.01, 0.99))

    def decision_function(self, X):
        outputs = self.model_.decision_function(self.scaler_.transform(X))
        return (outputs - self.zero_) / self.unit_


MACHINES = {
    "best feature": BestFeature(),
    "sure targets once": DecoyMachine(share=None, rounds=1),
    "sure targets": DecoyMachine(share=None),
    "all targets": DecoyMachine(),
    "all targets, share by difference": DecoyMachine(share="difference"),
}


def winners(scores, spectrum):
    """Rows that score best of their spectrum: a target competes with its decoy."""
    order = np.lexsort((-scores, spectrum))
    first = np.r_[True, spectrum[order][1:] != spectrum[order][:-1]]
    return np.sort(order[first])


def accepted(machine, table, seed):
    """Rows accepted at 1 %, by outputs of machines that have not seen them.

    Parameters
    ----------
    machine : str
        A key of `MACHINES`.
    table : Table
        A file as `s3vm_book.stories.spectra` reads it.
    seed : int
        Draws the folds.

    Returns
    -------
    rows : ndarray of int
        Accepted targets.
    scores : ndarray of shape (n,)
    """
    X, y = table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = out_of_fold(clone(MACHINES[machine]), X, y, n_splits=FOLDS, random_state=seed)
    spectrum = np.unique(
        np.char.add(np.char.add(table.extra["ScanNr"], " "), table.extra["ExpMass"]),
        return_inverse=True,
    )[1]
    kept = winners(scores, spectrum)
    return kept[accept(scores[kept], y[kept] == 1, RATE)], scores
