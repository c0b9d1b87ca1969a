"""Rank rows by scores of machines that have not seen them, and accept those on top.

In screening some rows, decoys, are known to be wrong, and others, targets, may be right. How many
decoys lie above a score says how many of the targets above it are wrong.
"""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from s3vm_lib.utils.labels import mark_missing

__all__ = ["accept", "out_of_fold", "q_values", "share_of_right_targets"]


def out_of_fold(estimator, X, y, *, n_splits=5, random_state=0):
    """Return outputs for all rows, each of a machine that was fitted without that row.

    Parameters
    ----------
    estimator : estimator
        Has `decision_function`; a clone is fitted for each fold.
    X : {array-like, sparse matrix} of shape (n, d)
    y : array-like of shape (n,)
        Labels, −1 or missing where there are none.
    n_splits : int, default=5
        Number of folds, stratified by class; rows without a label are a class of their own.
    random_state : int, RandomState or None, default=0
        Source of randomness of the folds.

    Returns
    -------
    ndarray of shape (n,) or (n, n_classes)
    """
    labels = mark_missing(y)
    strata = np.unique(labels.astype(str), return_inverse=True)[1]
    folds = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    outputs = None
    for train, test in folds.split(np.zeros(len(strata)), strata):
        model = clone(estimator).fit(_safe_indexing(X, train), labels[train])
        found = model.decision_function(_safe_indexing(X, test))
        if outputs is None:
            outputs = np.empty((len(strata), *found.shape[1:]))
        outputs[test] = found
    return outputs


def q_values(
    scores: ArrayLike, is_target: ArrayLike, *, right_share: float | None = None
) -> np.ndarray:
    """Estimate the false discovery rate at which each row is accepted.

    Above a score s there are d decoys and t targets. The rate is estimated as (d + 1) / t where
    each decoy has competed with a target, and as (1 − π) (d + 1) / t · n_targets / n_decoys where
    both were scored apart and a share π of the targets is right. The q-value of a row is the least
    rate of all scores that accept it, at most 1.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Large where a row is likely to be right; of machines that have not seen the row.
    is_target : array-like of bool, shape (n,)
        False for decoys, or rows that are labeled wrong.
    right_share : float, default=None
        The share π, for example by `share_of_right_targets`; None where decoys competed.

    Returns
    -------
    ndarray of shape (n,)

    References
    ----------
    J. E. Elias and S. P. Gygi, "Target-decoy search strategy for increased confidence in
    large-scale protein identifications by mass spectrometry", Nature Methods 4 (2007), 207-214.

    Examples
    --------
    >>> from s3vm_lib.model_selection.rankings import q_values
    >>> q_values([5, 4, 3, 2, 1], [True, True, False, True, False]).round(2).tolist()
    [0.5, 0.5, 0.67, 0.67, 1.0]
    """
    scores, is_target = _checked(scores, is_target)
    factor = 1.0
    if right_share is not None:
        if not 0 <= right_share < 1:
            raise ValueError(f"right_share must be at least 0 and below 1, got {right_share}")
        factor = (1 - right_share) * is_target.sum() / (~is_target).sum()
    values, index = np.unique(-scores, return_inverse=True)  # from the top; equal scores together
    targets = np.cumsum(np.bincount(index, is_target, values.size))
    decoys = np.cumsum(np.bincount(index, ~is_target, values.size))
    rates = np.ones(values.size)
    np.divide(factor * (decoys + 1), targets, out=rates, where=targets > 0)
    return np.minimum(np.minimum.accumulate(rates[::-1])[::-1], 1.0)[index]


def accept(
    scores: ArrayLike,
    is_target: ArrayLike,
    rate: float = 0.01,
    *,
    right_share: float | None = None,
) -> np.ndarray:
    """Say which targets to accept at a false discovery rate.

    Parameters
    ----------
    scores, is_target, right_share
        As in `q_values`.
    rate : float, default=0.01
        Largest q-value.

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    if not 0 < rate <= 1:
        raise ValueError(f"rate must be above 0 and at most 1, got {rate}")
    chosen = q_values(scores, is_target, right_share=right_share) <= rate
    return chosen & np.asarray(is_target, dtype=bool)


def share_of_right_targets(scores: ArrayLike, is_target: ArrayLike) -> float:
    """Estimate the share of targets that are right, from the lower half of the decoys.

    Wrong targets are scored as decoys are, so that half of them lie below the median of the decoys,
    where right ones are rare. Targets minus decoys is another estimate, which holds only where each
    decoy has competed with a target.

    Parameters
    ----------
    scores, is_target
        As in `q_values`.

    Returns
    -------
    float
        From 0 to 1.
    """
    scores, is_target = _checked(scores, is_target)
    median = np.median(scores[~is_target])
    targets = scores[is_target]
    below = np.sum(targets < median) + 0.5 * np.sum(targets == median)
    return float(max(0.0, 1.0 - 2.0 * below / targets.size))


def _checked(scores, is_target):
    scores, is_target = np.asarray(scores, dtype=float), np.asarray(is_target)
    if scores.ndim != 1 or is_target.shape != scores.shape:
        raise ValueError(
            "scores and is_target must be one-dimensional and of one length, got the shapes "
            f"{scores.shape} and {is_target.shape}"
        )
    if is_target.dtype != bool and not np.isin(is_target, [0, 1]).all():
        raise ValueError("is_target must hold True and False")
    is_target = is_target.astype(bool)
    if not np.isfinite(scores).all():
        raise ValueError("scores must be finite")
    if is_target.all() or not is_target.any():
        raise ValueError("is_target must have targets and decoys")
    return scores, is_target
