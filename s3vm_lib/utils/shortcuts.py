"""Short cuts past scikit-learn's checks, for what these checks would let through unchanged.

scikit-learn's checks convert, raise errors and warn, and take longer than the fit of a hundred
rows. An array of the right kind, or a parameter within its range, needs none of this. Everything
else goes to scikit-learn, so that it is refused with the same message.
"""

import functools
import textwrap
from contextlib import contextmanager

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.utils._param_validation import make_constraint
from sklearn.utils.validation import validate_data

_FILL = "fill the gaps with sklearn.impute.SimpleImputer in a pipeline"


def checked_rows_and_labels(estimator, X, y, dtypes, reset=True, least=1):
    """Check rows and labels; set ``n_features_in_`` or ask for as many features.

    Parameters
    ----------
    estimator : estimator
    X : {array-like, sparse matrix} of shape (n, d)
    y : array-like of shape (n,)
    dtypes : list of dtypes
        Those that X keeps; from others it is converted to the first.
    reset : bool, default=True
        Whether ``n_features_in_`` and ``feature_names_in_`` are those of this X.
    least : int, default=1
        Number of rows that are needed.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n, d)
        CSR with sorted indices, without duplicates.
    y : ndarray of shape (n,)
    """
    # What scikit-learn would hand back unchanged need not go through its checks.
    plain_labels = type(y) is np.ndarray and y.dtype.kind in "iub"
    if plain_labels and is_plain(X, dtypes) and y.shape == X.shape[:1] and y.size >= least:
        if reset:
            vars(estimator).pop("feature_names_in_", None)
            estimator.n_features_in_ = X.shape[1]
            return X, y
        if fits(estimator, X):
            return X, y
    X, y = validated_data(
        estimator, X, y, reset=reset, accept_sparse="csr", dtype=dtypes, order="C",
        ensure_min_samples=least,
    )  # fmt: skip
    return canonical(X), y


def checked_new_rows(estimator, X, dtypes):
    """Check rows to predict for; return an ndarray or a CSR matrix of shape (m, d)."""
    if is_plain(X, dtypes) and fits(estimator, X):
        return X
    return canonical(
        validated_data(estimator, X, accept_sparse="csr", dtype=dtypes, order="C", reset=False)
    )


def validated_data(estimator, X, y="no_validation", **options):
    """Call scikit-learn's `validate_data`; its errors name the remedy, see `explained`."""
    with explained(X, "X", y, getattr(estimator, "_precomputed", False)):
        return validate_data(estimator, X, y, **options)


@contextmanager
def explained(X, name, y=None, precomputed=False):
    """Say where rows are wrong that scikit-learn refuses, and what to do; refuse a masked X too.

    Parameters
    ----------
    X : array-like of shape (n, d)
    name : str
        What scikit-learn's messages call it.
    y : array-like of shape (n,), default=None
    precomputed : bool, default=False
        Whether X holds kernel values.
    """
    if isinstance(X, np.ma.MaskedArray) and np.ma.getmaskarray(X).any():
        raise ValueError(f"{name} must have no masked entries: set them to NaN, and {_FILL}")
    try:
        yield
    except (TypeError, ValueError) as error:
        message = _explanation(X, name, y, precomputed, str(error))
        if message is None:
            raise
        raise (TypeError if isinstance(error, TypeError) else ValueError)(message) from None


def _explanation(X, name, y, precomputed, said):
    """Return a message in place of what scikit-learn ``said``, or None."""
    # Arrays on a device are refused by their type: their columns cannot be looked at.
    for part in (X, y) if get_config()["array_api_dispatch"] else ():
        if hasattr(part, "device") and not isinstance(part, np.ndarray):
            kind = f"{type(part).__module__}.{type(part).__qualname__}"
            return f"X and y must be NumPy arrays, also with array_api_dispatch, got {kind}"
    if precomputed and "is expecting" in said:
        return f"X must hold a kernel value for each row and each of all training rows: {said}"
    gap = f"Input {name} contains NaN" in said or "NAType" in said
    infinite = f"Input {name} contains infinity" in said
    if said.startswith(("The feature names", "Feature names")):  # whatever the columns hold
        return None
    # scikit-learn says what is wrong; users need to know where.
    wrong = [k for k, entries in _columns(X) if _is_wrong(entries, gap, infinite)]
    if not wrong:
        return None
    columns = f"{wrong}" if len(wrong) <= 10 else f"[{str(wrong[:10])[1:-1]}, ...]"
    if gap:
        return f"Input {name} contains NaN in the columns {columns}: {_FILL}, or leave rows out"
    if infinite:
        return f"Input {name} contains infinity in the columns {columns}: leave rows out"
    said = textwrap.shorten(said.partition("\n")[0], 80, placeholder=" ...")
    return (
        f"{name} must hold numbers, the columns {columns} do not ({said}): encode categories with "
        "OneHotEncoder or TargetEncoder of sklearn.preprocessing in a pipeline, and make numbers "
        "of dates, such as days since the first"
    )


def _columns(X):
    """Return (name or number, entries) of each column; if sparse, of the wrong ones only."""
    if sp.issparse(X):
        X = X.tocoo()
        return [(int(k), X.data[X.col == k]) for k in np.unique(X.col[~np.isfinite(X.data)])]
    if hasattr(X, "columns"):
        return [(name, X[name]) for name in X.columns]
    table = np.asarray(X, dtype=None if hasattr(X, "dtype") else object)
    return list(enumerate(table.T)) if table.ndim == 2 else []


def _is_wrong(entries, gap, infinite):
    """Return whether a column has NaN or infinite entries or, without both, no numbers."""
    entries = np.asarray(entries)
    if entries.dtype.kind in "mMc":  # dates and complex numbers, which NumPy converts
        return not (gap or infinite)
    try:
        numbers = entries.astype(np.float64)
    except (TypeError, ValueError):
        return True
    return bool((gap and np.isnan(numbers).any()) or (infinite and np.isinf(numbers).any()))


def canonical(X):
    """Return X, or a sorted copy of a CSR matrix whose indices are not in order.

    SciPy sorts in place, on the way to a maximum too, and the arrays are those of the caller.
    """
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def is_plain(X, dtypes):
    """Return whether X is a finite matrix in C order, not empty, of one of the dtypes."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.size > 0
        and X.dtype in dtypes
        and X.flags.c_contiguous
        and bool(np.isfinite(X).all())
    )


def fits(estimator, X):
    """Return whether a fitted estimator without names of features takes rows like those of X."""
    # Names of features, where there are some, are for scikit-learn to compare.
    known = vars(estimator)
    return X.shape[1] == known.get("n_features_in_") and "feature_names_in_" not in known


def parameters_hold(estimator, names=None):
    """Return whether the parameters of an estimator, or those named, meet their constraints."""
    return all(
        any(constraint.is_satisfied_by(getattr(estimator, name)) for constraint in constraints)
        for name, constraints in _constraints(type(estimator))
        if names is None or name in names
    )


@functools.cache
def _constraints(cls):
    """List the parameters of a class, each with the constraints of which it must meet one."""
    known = cls._parameter_constraints
    return [
        (name, [make_constraint(constraint) for constraint in known[name]])
        for name in cls._get_param_names()
        if name in known and known[name] != "no_validation"
    ]
