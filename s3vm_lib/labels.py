"""Labels: −1 for unlabeled rows, classes as codes, and what pandas has for missing ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets

Labels = ArrayLike | Sequence[Any]


def encode_labels(y: Labels, unlabeled: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Class indices 0, 1, … in place of arbitrary labels, −1 where unlabeled.

    The way out of the {−1, +1} trap: there −1 is a class, while scikit-learn and this library
    read it as "unlabeled".

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any sortable type.
    unlabeled : object, default=None
        The value that marks unlabeled rows, for example 0 or ``"?"``. None means that the missing
        entries None, NaN and pandas.NA mark them, if there are any.

    Returns
    -------
    codes : ndarray of int, shape (n,)
        Index of the class, −1 for unlabeled rows.
    classes : ndarray of shape (n_classes,)
        The labels in sorted order: ``classes[codes]`` gives back the labeled entries.

    Raises
    ------
    ValueError
        If a label is missing where ``unlabeled`` is another value.

    Examples
    --------
    >>> from s3vm_lib import encode_labels
    >>> codes, classes = encode_labels([-1, 1, 0, 1], unlabeled=0)
    >>> codes.tolist(), classes.tolist()
    ([0, 1, -1, 1], [-1, 1])
    """
    if not isinstance(y, np.ndarray) and any(isinstance(v, str) or missing(v) for v in y):
        y = np.array(list(y), dtype=object)  # a plain array would turn the marker into a string
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one-dimensional, got an array of shape {y.shape}")
    mask = missing_entries(y)
    if not missing(unlabeled):
        if mask.any():
            raise ValueError(
                f"y must hold no missing labels (None, NaN, pandas.NA) with unlabeled={unlabeled!r}"
                f", row {np.flatnonzero(mask)[0]} is missing: mark all unlabeled rows in one way"
            )
        mask = np.asarray(y == unlabeled, dtype=bool)
    codes = np.full(len(y), -1)
    labeled = plain(y[~mask])
    classes, codes[~mask] = np.unique(labeled, return_inverse=True)
    return codes, classes


def missing(value):
    """Whether a label is None, NaN, NaT or pandas.NA, which answers no comparison."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.generic) and bool(value != value)


def missing_entries(labels):
    """Which labels of an array are missing."""
    if labels.dtype.kind in "iubcSU":
        return np.zeros(labels.shape, dtype=bool)
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    return np.array([missing(v) for v in labels.ravel()], dtype=bool).reshape(labels.shape)


def mark_missing(y, unlabeled_mask=None):
    """Labels with −1 where they are missing, which is how pandas marks unlabeled rows.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels; None, NaN, NaT and pandas.NA are missing ones.
    unlabeled_mask : array-like of bool, shape (n,), default=None
        The unlabeled rows, where they are given apart.

    Returns
    -------
    array-like of shape (n,)
        ``y`` itself if no label is missing.

    Raises
    ------
    ValueError
        If −1 is used too, so that one of the two may be a class, if a label is missing in a row
        that ``unlabeled_mask`` calls labeled, and if one is missing among dates without that mask.
    """
    if y is None or sp.issparse(y):
        return y
    values = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    absent = missing_entries(values)
    if not absent.any():
        return y
    if unlabeled_mask is None:
        refuse_dates(values)
    if unlabeled_mask is None and np.any(np.asarray(values[~absent] == -1, dtype=bool)):
        raise ValueError(
            "y holds both -1 and missing labels (None, NaN, pandas.NA), and either marks unlabeled "
            "rows: if -1 is a class, encode the labels with s3vm_lib.encode_labels(y) or pass "
            "unlabeled_mask to fit; if it is not, use one of the two"
        )
    if np.shape(unlabeled_mask) == values.shape:
        lost = np.flatnonzero(absent & ~np.asarray(unlabeled_mask, dtype=bool))
        if lost.size:
            raise ValueError(
                "y must hold a label in every row that unlabeled_mask calls labeled; it is "
                f"missing in row {lost[0]}"
            )
    marked = values.copy()
    marked[absent] = -1
    return marked


def refuse_dates(labels):
    """Refuse an array of dates or durations: one that is set to −1 becomes 1969-12-31."""
    if labels.dtype.kind in "mM":
        raise ValueError(
            f"y of dtype {labels.dtype} has no -1 to mark unlabeled rows: make numbers of its "
            "classes first, with s3vm_lib.encode_labels(y)"
        )


def plain(labels):
    """Labels of an object array as an array of their own type."""
    if labels.dtype != object or not labels.size:
        return labels
    strings = sum(isinstance(v, str) for v in labels)
    if 0 < strings < labels.size:
        raise ValueError("y must not mix strings with numbers among its labels")
    return np.array(labels.tolist())


def mark_unlabeled(y: Labels, mask: ArrayLike) -> np.ndarray:
    """A copy of y with −1 where ``mask`` is true.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels, none of them −1.
    mask : array-like of bool, shape (n,)
        True for the rows whose label is to be hidden.

    Returns
    -------
    ndarray of shape (n,)
        Of dtype object when the labels are strings.

    Raises
    ------
    ValueError
        When −1 is itself a label of a row that stays labeled, and for dates: use `encode_labels`
        first.
    """
    y, mask = np.asarray(y), np.asarray(mask)
    refuse_dates(y)
    if mask.shape != y.shape or mask.dtype != bool:
        raise ValueError(
            f"mask must be a boolean array of shape {y.shape}, got dtype {mask.dtype} and "
            f"shape {mask.shape}"
        )
    out = y.astype(object) if y.dtype.kind in "USO" else y.copy()
    if out.dtype.kind in "ub":
        out = out.astype(int)
    if np.any(np.asarray(out[~mask] == -1, dtype=bool)):
        raise ValueError("y already holds −1 as a label: encode it first with encode_labels(y)")
    out[mask] = -1
    return out


def _two_labels(labels):
    """`numpy.unique` with the inverse where there are two different labels, otherwise None twice.

    Without a sort, which takes longer than all else that is done with a few labels.
    """
    if labels.size:
        low, high = labels.min(), labels.max()
        upper = labels == high
        if low != high and bool(np.all(upper | (labels == low))):
            return np.array([low, high]), upper.astype(np.intp)
    return None, None


def split_labels(y, unlabeled_mask=None, classes=None):
    """Class index of each row, −1 where unlabeled.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels, −1 where unlabeled unless a mask says it.
    unlabeled_mask : array-like of bool, shape (n,), default=None
    classes : ndarray of shape (n_classes,), default=None
        The classes, sorted. None means those in ``y``, of which there must be two.

    Returns
    -------
    codes : ndarray of int, shape (n,)
    classes : ndarray of shape (n_classes,)

    Raises
    ------
    ValueError
        For a label that is not among ``classes``, for fewer than two classes, for a mask of
        another shape, and where −1 is the string '-1'.
    """
    if unlabeled_mask is None:
        if y.dtype.kind in "USO" and np.any(np.asarray(y == "-1", dtype=bool)):
            raise ValueError(
                "y holds the string '-1'. To mark unlabeled rows among string "
                "labels use an object array, np.array(labels, dtype=object), with the integer -1, "
                "or pass unlabeled_mask to fit"
            )
        mask = np.asarray(y == -1, dtype=bool)
    else:
        mask = np.asarray(unlabeled_mask)
        if mask.shape != y.shape or mask.dtype != bool:
            raise ValueError(
                f"unlabeled_mask must be a boolean array of shape {y.shape}, got dtype "
                f"{mask.dtype} and shape {mask.shape}"
            )
    labeled = plain(y[~mask])
    integers = labeled.dtype.kind in "iub"
    if labeled.size and not integers:
        check_classification_targets(labeled)
    found, inverse = _two_labels(labeled) if integers else (None, None)
    if found is None:
        found, inverse = np.unique(labeled, return_inverse=True)
    if integers and classes is None and found.size > 2:  # warns of as many classes as rows
        check_classification_targets(labeled)
    if classes is not None:
        known = classes.tolist()
        unknown = [label for label in found.tolist() if label not in known]
        if unknown:
            raise ValueError(f"y holds {unknown}, which are not among the classes {known}")
        inverse = np.array([known.index(label) for label in found.tolist()], dtype=int)[inverse]
    elif found.size < 2:
        count = f"{found.size} class{'' if found.size == 1 else 'es'}"
        message = f"y must hold at least two labeled classes, got {count}: {found.tolist()}."
        if mask.any() and unlabeled_mask is None:
            message += (
                " -1 means unlabeled. If your targets are {-1, +1}, encode them with "
                "s3vm_lib.encode_labels(y), or pass unlabeled_mask to fit."
            )
        raise ValueError(message)
    codes = np.full(y.size, -1)
    codes[~mask] = inverse
    return codes, found if classes is None else classes
