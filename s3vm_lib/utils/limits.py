"""Validity limits for parameters, data and kernel values, and checks of what a fit has found.

The ranges are wide. They keep products of admitted values finite: outputs are at most
Σ C s_i max k(x, x), objectives and curvatures powers of that. `check_kernel` and `check_reach`
refuse combinations that are out of range before a fit, and `require_finite` refuses a result that
is not finite after it.
"""

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import (
    Interval,
    Options,
    StrOptions,
    validate_parameter_constraints,
)

# Weights of terms: C, C_star, C_graph.
WEIGHT = Interval(Real, 1e-40, 1e40, closed="both")
# Lengths and inverse lengths: gamma, radius. Data may have any scale whose squares are numbers.
SCALE = Interval(Real, 1e-100, 1e100, closed="both")
# Pure numbers that enter exponentials or powers: sharpness, temperature, the ends of losses.
SHAPE = Interval(Real, 1e-10, 1e10, closed="both")
COUNT = Interval(Integral, 1, 2**31 - 1, closed="both")

# Types of parameters, with their limits.
Weight = Annotated[float, WEIGHT]
WeightOrZero = Annotated[float, WEIGHT, Options(Real, {0})]
Scale = Annotated[float, SCALE]
Shape = Annotated[float, SHAPE]
Share = Annotated[float, Interval(Real, 0, 1, closed="both")]
InnerShare = Annotated[float, Interval(Real, 0, 1, closed="neither")]
# Steps of a geometric sequence: with a smaller one it takes thousands of them to get anywhere.
Ratio = Annotated[float, Interval(Real, 1.001, 1e6, closed="both")]
# Below the resolution of double precision no tolerance is ever met.
Tolerance = Annotated[float, Interval(Real, 1e-16, 1e10, closed="both")]
ToleranceOrZero = Annotated[float, Interval(Real, 0, 1e10, closed="both")]
# Of a relative gap: with more than all of it anything goes.
Gap = Annotated[float, Interval(Real, 1e-16, 0.5, closed="both")]
Megabytes = Annotated[float, Interval(Real, 0, 1e9, closed="right")]
Count = Annotated[int, COUNT]
CountOrZero = Annotated[int, Interval(Integral, 0, 2**31 - 1, closed="both")]
# Values of neighboring rows differ by orders of magnitude long before this degree.
Degree = Annotated[int, Interval(Integral, 1, 30, closed="both")]
# A polynomial kernel with a negative constant is not positive semi-definite.
Constant = Annotated[float, Interval(Real, 0, 1e20, closed="both")]
Deviation = Annotated[float, Interval(Real, 1e-15, 1e15, closed="both")]
RandomState = Annotated[int | np.random.RandomState | None, "random_state"]
Verbosity = Annotated[int, "verbose"]

_ENTRIES = (1e-150, 1e150)  # of X: squares of others underflow or overflow
_VALUES = (1e-50, 1e50)  # of kernels, the largest on the training rows
_REACH = 1e60  # of outputs, whose cubes must be numbers too
_MASS = 1e-50  # least total weight
_ASYMMETRY = 1e-6  # relative: what single precision leaves of a symmetric matrix
_NEGATIVE = 1e-6  # least eigenvalue, relative to the largest kernel value times the rows
_PROBED = 256  # rows whose eigenvalues are looked at
_BLOCK = 2**22  # entries that are compared at once


# What scikit-learn checks where a type has no limits.
_PLAIN = {
    bool: "boolean", float: Real, int: Integral, NoneType: None,
    Callable: callable, Sequence: "array-like",
}  # fmt: skip


def constraints(hint):
    """Return what scikit-learn is to check for the type of a parameter, as a list."""
    kind = get_origin(hint) or hint
    if kind is Annotated:
        return list(hint.__metadata__)
    if kind in (Union, UnionType):
        return [one for part in get_args(hint) for one in constraints(part)]
    return [StrOptions(set(get_args(hint))) if kind is Literal else _PLAIN.get(kind, kind)]


class Checked:
    """Base of frozen groups of parameters: fields are checked as those of an estimator are."""

    def __init_subclass__(cls):
        cls._constraints = {name: constraints(hint) for name, hint in cls.__annotations__.items()}

    def __post_init__(self):
        validate_parameter_constraints(self._constraints, vars(self), type(self).__name__)

    def __getstate__(self):
        return without_client(vars(self))

    def __sklearn_clone__(self):
        return self  # what is frozen needs no copy, and a client has none


def without_client(state):
    """Return the state of an object without its connection to a cluster, which has no copy."""
    return {k: None if k == "client" else v for k, v in state.items()}


def scaling(X):
    """Say how to scale X: the largest column and a factor for it."""
    size = abs(X).max(axis=0)
    size = np.ravel(size.toarray() if sp.issparse(size) else size)
    worst = int(np.argmax(size))
    if not 10.0 < size[worst] < np.inf:
        return "scale the data"
    factor = 10.0 ** round(np.log10(size[worst]))
    return (
        f"scale the data (column {worst} of X has absolute values up to {size[worst]:.3g}: divide "
        f"it by {factor:g}, or use sklearn.preprocessing.StandardScaler)"
    )


def check_size(X):
    """Refuse rows whose squares overflow, or all vanish."""
    if X.shape[0] == 0 or X.shape[1] == 0:
        return
    largest = max(float(X.max()), -float(X.min()))
    if largest > _ENTRIES[1] or 0 < largest < _ENTRIES[0]:
        raise ValueError(
            f"the largest absolute value of X must be 0 or between {_ENTRIES[0]:g} and "
            f"{_ENTRIES[1]:g}, got {largest:g}; {scaling(X)}"
        )


def largest_value(kernel, X):
    """Return an upper bound on |k(x, z)| over the rows of X."""
    if X.shape[0] == 0:
        return 0.0
    if kernel.name in ("rbf", "laplacian"):
        return kernel.sigma_f**2
    if kernel.name == "precomputed":  # of new rows there is no diagonal
        return max(float(X.max()), -float(X.min()))
    with np.errstate(over="ignore", under="ignore"):
        return float(np.max(kernel.diagonal(X)))


def check_kernel(kernel, X):
    """Refuse kernel values out of range on the rows of X; returns the largest one."""
    largest = largest_value(kernel, X)
    inside = _VALUES[0] <= largest <= _VALUES[1]
    if not inside and (largest != 0 or np.any((X.data if sp.issparse(X) else X) != 0)):
        if kernel.name == "precomputed":
            remedy = "divide the Gram matrix X by a number"
        else:
            remedy = f"{scaling(X)}, or change gamma, degree, coef0 or sigma_f"
        raise ValueError(
            f"the largest value k(x, x) of kernel={kernel.name!r} on X must lie between "
            f"{_VALUES[0]:g} and {_VALUES[1]:g}, got {largest:g}; {remedy}"
        )
    return largest


def check_reach(C, weight, largest):
    """Refuse weights of losses so large or small that outputs leave double precision.

    Parameters
    ----------
    C : float
        Factor on the weights.
    weight : ndarray of shape (n,)
        ``sample_weight`` times ``class_weight``.
    largest : float
        Largest kernel value.
    """
    if weight.size == 0:
        return
    with np.errstate(over="ignore"):
        mass = float(weight.sum())
        reach = C * mass * max(largest, 1.0)
    if not (_MASS <= mass and reach <= _REACH):
        raise ValueError(
            f"C × the sum of sample_weight × class_weight × the largest kernel value must be at "
            f"most {_REACH:g}, and that sum at least {_MASS:g}: got {C:g} × {mass:g} × "
            f"{max(largest, 1.0):g}; change C or scale sample_weight, class_weight or the data"
        )


def checked_gram(K):
    """Return the square Gram matrix K, exactly symmetric; refuse one that is no Gram matrix.

    Costs one pass over K, and the eigenvalues of a block of at most `_PROBED` rows: a principal
    block of a positive semi-definite matrix is one. What passes and is not, solvers meet.

    Parameters
    ----------
    K : ndarray of shape (n, n)

    Returns
    -------
    ndarray of shape (n, n)
        K itself where it is symmetric, otherwise (rounding apart) ½(K + Kᵀ).

    Raises
    ------
    ValueError
        When K differs from Kᵀ by more than 1e-6 of its largest entry, or is not positive
        semi-definite.
    """
    n = K.shape[0]
    if n == 0 or (n == 1 and K[0, 0] >= 0):  # one new row, in less time than a look at all
        return K
    step = max(1, _BLOCK // n)
    diagonal = np.diagonal(K)
    root = np.sqrt(np.maximum(diagonal, 0.0))
    largest, asymmetry, excess = 0.0, 0.0, 0.0
    # Block by block, so that no second matrix is made: symmetry, and |K_ij| ≤ √(K_ii K_jj).
    for start in range(0, n, step):
        rows = K[start : start + step]
        size = np.abs(rows)
        largest = max(largest, float(size.max()))
        asymmetry = max(asymmetry, float(np.abs(rows - K[:, start : start + step].T).max()))
        size -= root[start : start + step, None] * root
        excess = max(excess, float(size.max()))
    if asymmetry > _ASYMMETRY * largest:
        raise ValueError(
            "X must be a symmetric Gram matrix when kernel='precomputed': X and its transpose "
            f"differ by up to {asymmetry:.3g}, the largest absolute value is {largest:.3g}"
        )
    if diagonal.min() < -_NEGATIVE * largest or excess > _NEGATIVE * largest:
        raise ValueError(
            "X must be a positive semi-definite Gram matrix when kernel='precomputed': its least "
            f"diagonal entry is {diagonal.min():.3g}, and |k(x, z)| exceeds √(k(x, x) k(z, z)) by "
            f"up to {excess:.3g}"
        )
    # A block of a positive semi-definite matrix is one, too.
    probe = np.unique(np.linspace(0, n - 1, min(n, _PROBED)).astype(int))
    block = K[np.ix_(probe, probe)]
    least = float(np.linalg.eigvalsh(0.5 * block + 0.5 * block.T)[0])
    if least < -_NEGATIVE * largest * probe.size:
        raise ValueError(
            "X must be a positive semi-definite Gram matrix when kernel='precomputed': a block of "
            f"{probe.size} rows has the eigenvalue {least:.3g}; shift, clip or square the spectrum"
        )
    return K if asymmetry == 0 else 0.5 * (K + K.T)


def require_finite(name, *values):
    """Refuse what a fit has found where it is not finite.

    Parameters
    ----------
    name : str
        Of the estimator.
    *values : ndarrays, floats or None
    """
    for value in values:
        if value is not None and not np.isfinite(value).all():
            raise FloatingPointError(
                f"{name} left the range of floating point during the fit: scale X and "
                "sample_weight, or take less extreme parameters C, gamma, degree and sigma_f"
            )


def require_finite_outputs(outputs, X):
    """Refuse predictions that are not finite, with the scale of the rows that lead to them."""
    if np.isfinite(outputs).all():
        return
    bad = np.flatnonzero(~np.isfinite(outputs.reshape(outputs.shape[0], -1)).all(axis=1))
    size = float(abs(X[bad]).max()) if X.shape[1] else 0.0
    raise FloatingPointError(
        f"outputs overflow on {bad.size} of {outputs.shape[0]} rows of X, the first of them row "
        f"{bad[0]}, with absolute values up to {size:.3g}: scale X as the training rows were"
    )
