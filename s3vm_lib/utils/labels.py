"""Labels: −1 for unlabeled rows, classes as codes, and what pandas has for missing ones."""

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets

Labels = ArrayLike | Sequence[Any]

# What files and tables hold in place of a label, in lower case.
_MARKERS = {"", "?", "-1", "na", "n/a", "<na>", "nan", "nat", "none", "null", "missing", "unknown"}
_MARKERS |= {"unlabeled", "unlabelled", "-", "."}
_MISSING = {-9, -99, -999, -9999}
# The remedy for rows without labels that are given in an array of their own.
APART = "unlabeled rows belong into X, with -1 in y (or NaN), or into model_selection.WithUnlabeled"


def label_array(y):
    """Convert labels to an array that keeps each of them, None where a masked array has a gap.

    NumPy drops the mask, makes floats of the integers of a table that has gaps, and one entry of a
    generator.
    """
    if isinstance(y, list | tuple):
        return np.asarray(y, dtype=object)
    if hasattr(y, "__iter__") and not hasattr(y, "__len__"):
        return np.array(list(y), dtype=object)
    labels = np.asarray(y)
    if labels.dtype.kind == "T" or (isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y)):
        labels = labels.astype(object)
        labels[np.ma.getmaskarray(y)] = None
    elif labels.dtype.kind == "f" and type(y) is not np.ndarray and np.isnan(labels).any():
        if labels.shape[1:] == (1,) and hasattr(y, "iloc"):
            return label_array(y.iloc[:, 0])[:, None]
        return np.array(list(y), dtype=object) if labels.ndim == 1 else labels
    return labels


def encode_labels(y: Labels, unlabeled: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Encode arbitrary labels as class indices 0, 1, …, and −1 where unlabeled.

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
        If ``unlabeled`` is not one value, if it occurs nowhere in ``y``, as ``"?"`` does not
        among bytes, and if a label is missing where it is another value.

    Examples
    --------
    >>> from s3vm_lib import encode_labels
    >>> codes, classes = encode_labels([-1, 1, 0, 1], unlabeled=0)
    >>> codes.tolist(), classes.tolist()
    ([0, 1, -1, 1], [-1, 1])
    """
    y = label_array(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one-dimensional, got an array of shape {y.shape}")
    if np.ndim(unlabeled):
        raise ValueError(f"unlabeled must be one label or None, got {unlabeled!r}")
    mask = missing_entries(y)
    if not missing(unlabeled):
        if mask.any():
            raise ValueError(
                f"y must hold no missing labels (None, NaN, pandas.NA) with unlabeled={unlabeled!r}"
                f", row {np.flatnonzero(mask)[0]} is missing: mark all unlabeled rows in one way"
            )
        mask = np.broadcast_to(np.asarray(y == unlabeled, dtype=bool), y.shape)
    codes = np.full(len(y), -1)
    classes, codes[~mask] = np.unique(plain(y[~mask]), return_inverse=True)
    if missing(unlabeled):
        warn_of_marks(classes)
    elif not mask.any():
        raise ValueError(
            f"unlabeled={unlabeled!r} must be in y, which has the labels {listed(classes.tolist())}"
        )
    return codes, classes


def listed(names):
    """List names in brackets, at most the first ten."""
    return f"[{', '.join(map(repr, names[:10]))}{', ...' if len(names) > 10 else ''}]"


def warn_of_marks(classes, codes=None):
    """Warn of classes that may stand for "unlabeled" in the file that the labels come from.

    They stay classes, because a zero or ``"none"`` may well be one. What is taken for a marker: a
    word such as ``"?"``; a negative number beside −1; −9, −99 and so on beside two classes; a zero
    where more rows have it than −1, and one third or less another label; and a zero beside −1 and
    1, where these are floats, as SVMlight files give them, and −1 is not in most rows.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The classes, sorted.
    codes : ndarray of int, shape (n,), default=None
        Class index of each row, −1 where ``y`` holds −1. Without them numbers are not looked at.
    """
    kind, names, suspects, minus = classes.dtype.kind, classes.tolist(), [], 0
    if kind in "US":
        texts = [name if kind == "U" else name.decode("latin-1") for name in names]
        opposite = len(names) == 2 or "+" in texts
        markers = _MARKERS - {"-1", "-"} if opposite else _MARKERS
        suspects = [names[k] for k, text in enumerate(texts) if text.strip().lower() in markers]
    elif kind in "if" and codes is not None:
        minus, zeros = np.count_nonzero(codes < 0), np.count_nonzero(codes == 0)
        many = zeros > minus and 3 * (zeros + minus) >= 2 * codes.size
        rare = kind == "f" and names == [0, 1] and 2 * minus <= codes.size  # most: −1 is unlabeled
        beside_minus = minus and (names[0] < 0 or (names[0] == 0 and (many or rare)))
        if beside_minus or (names[0] in _MISSING and len(names) > 2):
            suspects = names[:1]
    if suspects:
        beside = ", beside -1, which means unlabeled" if minus else ""
        warnings.warn(
            f"y holds the classes {listed(names)}{beside}. If {suspects[0]!r} marks rows without a "
            "label, as in files of SVMlight, UniverSVM or Weka, encode y by s3vm_lib.encode_labels("
            f"y, unlabeled={suspects[0]!r}); if it is a class, say so by unlabeled_mask",
            stacklevel=_level_of_caller(),
        )


def _level_of_caller():
    """Return the ``stacklevel`` of the caller's caller outside of this library and scikit-learn."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(("s3vm_lib", "sklearn")):
        frame, level = frame.f_back, level + 1
    return level


def missing(value):
    """Return whether a label is None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.generic) and bool(value != value)


def missing_entries(labels):
    """Return which labels of an array are missing."""
    if labels.dtype.kind in "iubcSU":
        return np.zeros(labels.shape, dtype=bool)
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    return np.array([missing(v) for v in labels.ravel()], dtype=bool).reshape(labels.shape)


def mark_missing(y, unlabeled_mask=None):
    """Replace missing labels, by which pandas marks unlabeled rows, by −1.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels; None, NaN, NaT and pandas.NA are missing ones.
    unlabeled_mask : array-like of bool, shape (n,), default=None
        The unlabeled rows, where they are given apart.

    Returns
    -------
    array-like of shape (n,)
        ``y`` itself if no label is missing, or an array of its labels.

    Raises
    ------
    ValueError
        If −1 is used too, so that one of the two may be a class, if a label is missing in a row
        that ``unlabeled_mask`` calls labeled, and if one is missing among dates without that mask.
    """
    if y is None or sp.issparse(y):
        return y
    values = label_array(y)
    absent = missing_entries(values)
    if not absent.any():
        # scikit-learn makes floats of pandas' nullable integers.
        kept = isinstance(y, list | tuple) or values.dtype.kind not in "Oiu"
        return y if kept else values
    if unlabeled_mask is None:
        refuse_dates(values)
    if unlabeled_mask is None and np.any(np.asarray(values[~absent] == -1, dtype=bool)):
        raise ValueError(
            "y holds both -1 and missing labels (None, NaN, pandas.NA), and either marks unlabeled "
            "rows: if -1 is a class, encode the labels with s3vm_lib.encode_labels(y) or pass "
            "unlabeled_mask to fit; if it is not, use one of the two"
        )
    if unlabeled_mask is not None and np.size(unlabeled_mask) == values.size:
        lost = np.flatnonzero(absent.ravel() & ~np.asarray(unlabeled_mask, dtype=bool).ravel())
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
    """Convert the labels of an object array to an array of their own type."""
    if labels.dtype != object or not labels.size:
        return labels
    strings = sum(isinstance(v, str) for v in labels)
    if 0 < strings < labels.size:
        raise ValueError("y must not mix strings with numbers among its labels")
    return np.array(labels.tolist())


def mark_unlabeled(y: Labels, mask: ArrayLike) -> np.ndarray:
    """Copy y with −1 where ``mask`` is true.

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
    y = label_array(y)
    refuse_dates(y)
    mask = checked_mask(mask, y.shape, "mask")
    out = y.astype(object) if y.dtype.kind in "USO" else y.copy()
    if out.dtype.kind in "ub":
        out = out.astype(int)
    if np.any(np.asarray(out[~mask & ~missing_entries(out)] == -1, dtype=bool)):
        raise ValueError("y already holds −1 as a label: encode it first with encode_labels(y)")
    out[mask] = -1
    return out


def checked_mask(mask, shape, name="unlabeled_mask"):
    """Return a mask as an array; refuse another shape than that of the labels."""
    mask = np.asarray(mask)
    if mask.shape != shape or mask.dtype != bool:
        raise ValueError(
            f"{name} must be a boolean array of shape {shape}, got dtype {mask.dtype} and shape "
            f"{mask.shape}{': ' + APART if mask.ndim == 2 else ''}"
        )
    return mask


def unlabeled_rows(y, unlabeled_mask=None):
    """Return which rows are unlabeled: those of the mask, or without it those of the label −1.

    Parameters
    ----------
    y : ndarray of shape (n,)
    unlabeled_mask : array-like of bool, shape (n,), default=None

    Returns
    -------
    ndarray of bool, shape (n,)

    Raises
    ------
    ValueError
        For a mask of another shape, and where −1 is the string '-1'.
    """
    if unlabeled_mask is not None:
        return checked_mask(unlabeled_mask, y.shape)
    if y.dtype.kind in "USO" and np.any(np.asarray(y == "-1", dtype=bool)):
        raise ValueError(
            "y holds the string '-1'. To mark unlabeled rows among string "
            "labels use an object array, np.array(labels, dtype=object), with the integer -1, "
            "or pass unlabeled_mask to fit"
        )
    return np.asarray(y == -1, dtype=bool)


def rows_without_score(y, classes, unlabeled_mask=None):
    """Return the labels, and the rows to leave out: those of the mask, or else −1 and missing ones.

    Without a mask −1 counts where it is one of the classes.
    """
    labels = label_array(y).ravel()
    if unlabeled_mask is not None:
        mark_missing(labels, unlabeled_mask)
        return labels, unlabeled_rows(labels, unlabeled_mask)
    unlabeled = missing_entries(labels)
    if -1 not in classes.tolist():
        unlabeled[~unlabeled] = unlabeled_rows(labels[~unlabeled])
    return labels, unlabeled


def split_labels(y, unlabeled_mask=None, classes=None):
    """Return the class index of each row, −1 where unlabeled.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels, −1 where unlabeled unless a mask marks them.
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
    mask = unlabeled_rows(y, unlabeled_mask)
    labeled = plain(y[~mask])
    integers = labeled.dtype.kind in "iub"
    if labeled.size and not integers:
        check_classification_targets(labeled)
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
        if mask.any() and found.size:
            message += ' If one class has all labels, see the page "I have positives only".'
        raise ValueError(message)
    codes = np.full(y.size, -1)
    codes[~mask] = inverse
    return codes, found if classes is None else classes
