"""Rank rows by scores of machines that have not seen them, and accept those on top.

In screening some rows, decoys, are known to be wrong, and others, targets, may be right. The
number of decoys above a score estimates how many of the targets above it are wrong. Elsewhere some
rows are known to be right, positives, and of the others nothing is known.
"""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing, check_random_state

from s3vm_lib.utils.labels import mark_missing


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
    # Unlabeled rows are a stratum of their own, so that each is left out once, too.
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
    # (decoys + 1) / targets from a score upwards; a q-value is the least of these up to it.
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
    """Return which targets to accept at a false discovery rate.

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
    # Wrong targets score like decoys: half of them lie below this median, and hardly a right one.
    median = np.median(scores[~is_target])
    targets = scores[is_target]
    below = np.sum(targets < median) + 0.5 * np.sum(targets == median)
    return float(max(0.0, 1.0 - 2.0 * below / targets.size))


def bagged_scores(estimator, X, positive, *, n_bags=30, random_state=0):
    """Score rows by machines for which a few of the rows without a label are negatives.

    Each machine is fitted to four fifths of the positives and to as many other rows, drawn anew. A
    row's score is the mean output of the machines that were not fitted to it (Mordelet and Vert).

    Parameters
    ----------
    estimator : estimator
        Has `decision_function`; a clone is fitted for each bag.
    X : {array-like, sparse matrix} of shape (n, d)
    positive : array-like of bool, shape (n,)
        True for rows that are known to be positive; the others may be so, too.
    n_bags : int, default=30
        Number of machines, at least 20.
    random_state : int, RandomState or None, default=0
        Source of randomness of the bags.

    Returns
    -------
    ndarray of shape (n,)
        Large where a row is likely to be positive.

    References
    ----------
    F. Mordelet and J.-P. Vert, "A bagging SVM to learn from positive and unlabeled examples",
    Pattern Recognition Letters 37 (2014), 201-209.
    """
    total, positive = _checked(np.zeros(X.shape[0]), positive, "positive")
    rows, others = np.flatnonzero(positive), np.flatnonzero(~positive)
    if min(rows.size, others.size) < 2 or n_bags < 20:
        raise ValueError("positive must be True and False twice, and n_bags at least 20")
    random, count = check_random_state(random_state), np.zeros(total.size)
    orders = [random.permutation(rows) for _ in range(0, n_bags, 5)]  # each row is left out in each
    for k in range(n_bags):
        kept = np.delete(orders[k // 5], np.s_[k % 5 :: 5])
        # A third of the others at most: each has to be left out of many bags.
        drawn = random.permutation(others)[: max(1, min(kept.size, others.size // 3))]
        train = np.r_[kept, drawn]
        model = clone(estimator).fit(_safe_indexing(X, train), positive[train].astype(int))
        test = np.setdiff1d(np.arange(total.size), train)
        total[test] += model.decision_function(_safe_indexing(X, test))
        count[test] += 1
    return total / count


def from_positives(
    scores: ArrayLike, positive: ArrayLike, share: float | None = None
) -> tuple[np.ndarray, float]:
    """Label the lowest scores negative, so that a machine has both classes to learn from.

    The share of positives among the rows without a label is, if the positives are drawn at random
    from all of them, at most the ratio of the shares above any score, of these rows and of the
    positives. The estimate is the ratio at the score where it is least beside its error. Half of
    the rows that are then negative are labeled so, those with the lowest scores.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Large where a row is likely to be positive; for example `bagged_scores`.
    positive : array-like of bool, shape (n,)
        True for rows that are known to be positive.
    share : float, default=None
        Share of positives among the other rows, if it is known.

    Returns
    -------
    labels : ndarray of int, shape (n,)
        1 for positives, 0 for rows that are taken to be negative, −1 for all others.
    share : float
        Share of positives among the rows with −1, for the parameter ``balance``.

    References
    ----------
    S. Garg, Y. Wu, A. Smola, S. Balakrishnan and Z. Lipton, "Mixture proportion estimation and PU
    learning: a modern approach", NeurIPS 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib.model_selection.rankings import from_positives
    >>> labels, share = from_positives(np.arange(8), np.arange(8) > 5, share=0.5)
    >>> labels.tolist(), share
    ([0, -1, -1, -1, -1, -1, 1, 1], 0.6)
    """
    scores, positive = _checked(scores, positive, "positive")
    known, others = np.sort(scores[positive]), np.sort(scores[~positive])
    if share is None:
        # Known positives above a threshold, and unlabeled rows there: their ratio bounds the share.
        above = 1 - np.searchsorted(others, known) / others.size
        own = 1 - np.searchsorted(known, known) / known.size
        error = np.sqrt(np.log(40) / 2) * (others.size**-0.5 + known.size**-0.5)  # of 90 %
        best = np.argmin((above + error) / own)
        share = above[best] / own[best]
    elif not 0 < share < 1:
        raise ValueError(f"share must be above 0 and below 1, got {share}")
    lowest = np.argsort(np.where(positive, np.inf, scores), kind="stable")
    labels = np.where(positive, 1, -1)
    labels[lowest[: max(1, int((1 - share) * others.size / 2))]] = 0
    n_open = max(1, np.sum(labels < 0))
    return labels, float(np.clip(share * others.size / n_open, 0.5 / n_open, 1 - 0.5 / n_open))


def _checked(scores, is_target, name="is_target"):
    scores, is_target = np.asarray(scores, dtype=float), np.asarray(is_target)
    if scores.ndim != 1 or is_target.shape != scores.shape:
        raise ValueError(
            f"scores and {name} must be one-dimensional and of one length, got the shapes "
            f"{scores.shape} and {is_target.shape}"
        )
    if is_target.dtype != bool and not np.isin(is_target, [0, 1]).all():
        raise ValueError(f"{name} must hold True and False")
    is_target = is_target.astype(bool)
    if not np.isfinite(scores).all():
        raise ValueError("scores must be finite")
    if is_target.all() or not is_target.any():
        raise ValueError(f"{name} must be True of some rows and False of others")
    return scores, is_target
