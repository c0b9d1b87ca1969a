"""All formulas: one branch of each function for each labeled loss, and one line of facts."""

import math
from typing import NamedTuple

from s3vm_lib.utils.jit import njit


class Facts(NamedTuple):
    """What is known of a loss beside its formulas."""

    lipschitz: float  # largest |∂ℓ/∂f|
    differentiable: bool = True  # everywhere
    parameter: tuple | None = None  # meaning, default, least and largest value, both exclusive


FACTS = {
    "hinge": Facts(1.0, False),
    "squared_hinge": Facts(math.inf),
    "smooth_hinge": Facts(1.0, True, ("width", 0.5, 0.0, math.inf)),
    "logistic": Facts(1.0),
    "modified_logistic": Facts(1.0, True, ("sharpness", 20.0, 0.0, math.inf)),
    "l1": Facts(1.0, False),
    "epsilon_insensitive": Facts(1.0, False, ("epsilon", 0.1, 0.0, math.inf)),
}
LABELED_LOSSES = tuple(FACTS)
HINGE, SQUARED_HINGE, SMOOTH_HINGE, LOGISTIC, MODIFIED_LOGISTIC, L1, EPSILON_INSENSITIVE = range(7)


# --- Scalar formulas, for the inner loops --------------------------------------------------------
# In all of them ``code`` is that of a labeled loss, ``y`` a label −1 or +1 (any real target for L1
# and EPSILON_INSENSITIVE), and ``p`` the parameter of the loss, ignored by those that have none.


@njit
def softplus(t):
    """Return log(1 + exp(t)) for any finite t, without overflow."""
    return max(t, 0.0) + math.log1p(math.exp(-abs(t)))


@njit
def sigmoid(t):
    """Return 1 / (1 + exp(−t)), the derivative of `softplus`, without overflow."""
    e = math.exp(-abs(t))
    return 1.0 / (1.0 + e) if t >= 0 else e / (1.0 + e)


@njit
def labeled_value(code, y, f, p):
    """Return the loss ℓ(y, f) of one labeled point.

    Parameters
    ----------
    code : int
        Code of a labeled loss.
    y : float
        Label, −1 or +1 (any real target for L1 and EPSILON_INSENSITIVE).
    f : float
        Output.
    p : float
        The parameter of the loss; ignored by those that have none.

    Returns
    -------
    float
        NaN for a code that is no loss.
    """
    z = y * f
    if code == HINGE:
        return max(0.0, 1.0 - z)
    if code == SQUARED_HINGE:
        rest = max(0.0, 1.0 - z)
        return 0.5 * (rest * rest)
    if code == SMOOTH_HINGE:
        if z >= 1.0:
            return 0.0
        return 1.0 - z - 0.5 * p if z <= 1.0 - p else 0.5 * ((1.0 - z) * (1.0 - z)) / p
    if code == LOGISTIC:
        return softplus(-z)
    if code == MODIFIED_LOGISTIC:
        return softplus(p * (1.0 - z)) / p
    if code == L1:
        return abs(y - f)
    if code == EPSILON_INSENSITIVE:
        return max(0.0, abs(y - f) - p)
    return math.nan


@njit
def labeled_derivative(code, y, f, p):
    """Return the derivative of `labeled_value` with respect to the output f; same parameters."""
    z = y * f
    if code == HINGE:
        return -y if z < 1.0 else 0.0
    if code == SQUARED_HINGE:
        return -y * max(0.0, 1.0 - z)
    if code == SMOOTH_HINGE:
        if z >= 1.0:
            return 0.0
        return -y * min(1.0, (1.0 - z) / p)
    if code == LOGISTIC:
        return -y * sigmoid(-z)
    if code == MODIFIED_LOGISTIC:
        return -y * sigmoid(p * (1.0 - z))
    if code == L1 or code == EPSILON_INSENSITIVE:
        width = 0.0 if code == L1 else p
        if f - y > width:
            return 1.0
        return -1.0 if y - f > width else 0.0
    return math.nan


@njit
def labeled_curvature(code, y, f, p):
    """Return second derivative of `labeled_value` with respect to the output f; same parameters.

    Where it jumps (at z = yf = 1 of the squared hinge, and at both ends of the curved part of the
    smooth hinge) the value of the flat side; 0 for the piecewise linear losses.
    """
    z = y * f
    if code == SQUARED_HINGE:
        return 1.0 if z < 1.0 else 0.0
    if code == SMOOTH_HINGE:
        return 1.0 / p if 1.0 - p < z < 1.0 else 0.0
    if code == LOGISTIC:
        return sigmoid(z) * sigmoid(-z)
    if code == MODIFIED_LOGISTIC:
        e = p * (1.0 - z)
        return p * sigmoid(e) * sigmoid(-e)
    if code == HINGE or code == L1 or code == EPSILON_INSENSITIVE:
        return 0.0
    return math.nan


# --- The dual side --------------------------------------------------------------------------------


@njit
def slope_range(code, y):
    """Return the least and the largest slope of f ↦ ℓ(y, f): the domain of its conjugate."""
    if code == L1 or code == EPSILON_INSENSITIVE:
        return -1.0, 1.0
    if code == SQUARED_HINGE:
        return (-math.inf, 0.0) if y > 0.0 else (0.0, math.inf)
    if code == HINGE or code == SMOOTH_HINGE or code == LOGISTIC or code == MODIFIED_LOGISTIC:
        return (-1.0, 0.0) if y > 0.0 else (0.0, 1.0)
    return math.nan, math.nan


@njit
def slope_piece(code, y, a):
    """Return the part of `slope_range` around the slope a on which the conjugate has no kink."""
    if code == EPSILON_INSENSITIVE:
        return (0.0, 1.0) if a > 0.0 else (-1.0, 0.0)
    return slope_range(code, y)


@njit
def _xlogx(a):
    return a * math.log(a) if a > 0 else 0.0


@njit
def labeled_conjugate(code, y, a, p):
    """Return the Fenchel conjugate ℓ*(y, a) = sup over f of a·f − ℓ(y, f) of one labeled point.

    It turns any dual point into a lower bound: ℓ(y, f) ≥ a·f − ℓ*(y, a) for every f and a, with
    equality at a = ∂ℓ/∂f.

    Parameters
    ----------
    code, y, p
        As in `labeled_value`.
    a : float
        Slope.

    Returns
    -------
    float
        Infinite where no line of slope a lies below the loss.
    """
    least, most = slope_range(code, y)
    if a < least or a > most:
        return math.inf
    v = y * a
    if code == HINGE or code == L1:
        return v
    if code == SQUARED_HINGE:
        return v + 0.5 * v * v
    if code == SMOOTH_HINGE:
        return v + 0.5 * p * v * v
    if code == LOGISTIC:
        return _xlogx(-v) + _xlogx(1.0 + v)
    if code == MODIFIED_LOGISTIC:
        return v + (_xlogx(-v) + _xlogx(1.0 + v)) / p
    if code == EPSILON_INSENSITIVE:
        return v + p * abs(a)
    return math.nan


@njit
def conjugate_curvature(code, a, p, c):
    """Return 1/(c ℓ'') where ``|∂ℓ/∂f|`` is ``|a|``: how the output moves with the slope of c ℓ.

    Parameters
    ----------
    code, p
        As in `labeled_value`.
    a : float
        Slope of ℓ, a label's sign left aside.
    c : float
        Weight of the loss, positive.

    Returns
    -------
    float
        0 at a kink, infinite where ℓ is straight.
    """
    size = abs(a)
    if code == SQUARED_HINGE:
        return 1.0 / c if size > 0.0 else math.inf
    if code == SMOOTH_HINGE:
        return p / c if 1e-12 < size < 1.0 - 1e-12 else math.inf
    if code == HINGE:
        return 0.0 if 1e-12 < size < 1.0 - 1e-12 else math.inf
    if code == L1 or code == EPSILON_INSENSITIVE:
        inside = size < 1.0 - 1e-12 and (code == L1 or size > 1e-12)
        return 0.0 if inside else math.inf
    if code == LOGISTIC or code == MODIFIED_LOGISTIC:
        sharpness = p if code == MODIFIED_LOGISTIC else 1.0
        return 1.0 / max(c * sharpness * size * (1.0 - size), 1e-300)
    return math.nan


@njit
def dual_cost(code, p, y, weight):
    """Return the dual cost φ(β) = c ℓ*(y, −β/c) of a loss whose conjugate is piecewise quadratic.

    φ is finite on [lo, hi], has the slopes s1 below mid and s2 above, and the quadratic part
    ½ `dual_ridge` β², which adds to K_ii.

    Parameters
    ----------
    code, p, y
        As in `labeled_value`; a row with y = 0 is closed: β = 0.
    weight : float
        c.

    Returns
    -------
    lo, mid, hi, s1, s2 : float
        As `s3vm_lib.smo.Costs` takes them; infinite where there is no bound, NaN for the logistic
        losses.
    """
    if y == 0.0:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    if code == L1 or code == EPSILON_INSENSITIVE:
        width = p if code == EPSILON_INSENSITIVE else 0.0
        return -weight, 0.0, weight, -y - width, -y + width
    if code == HINGE or code == SQUARED_HINGE or code == SMOOTH_HINGE:
        top = math.inf if code == SQUARED_HINGE else weight
        if y > 0:
            return 0.0, top, top, -y, -y
        return -top, 0.0, 0.0, -y, -y
    return math.nan, math.nan, math.nan, math.nan, math.nan


@njit
def dual_ridge(code, p, weight):
    """Return what φ of `dual_cost` adds to K_ii: 1/c (squared), p/c (smooth hinge), else 0.

    NaN for the logistic losses, whose φ is not piecewise quadratic.
    """
    if code == HINGE or code == L1 or code == EPSILON_INSENSITIVE:
        return 0.0
    if code == SQUARED_HINGE:
        return 1.0 / weight if weight > 0.0 else 0.0
    if code == SMOOTH_HINGE:
        return p / weight if weight > 0.0 else 0.0
    return math.nan


# --- Unlabeled losses: the ramp, the Gaussian, and the effective losses of the labeled ones -------

UNLABELED_LOSSES = ("symmetric_hinge", "squared_symmetric_hinge", "symmetric_ramp", "gaussian")
UNLABELED_LOSSES += tuple(f"symmetric_{name}" for name in LABELED_LOSSES[SMOOTH_HINGE:])
SYMMETRIC_HINGE, SQUARED_SYMMETRIC_HINGE, SYMMETRIC_RAMP, GAUSSIAN = range(4)
_FIRST = 4  # code of the effective loss of the smooth hinge; those that follow keep their order


@njit
def labeled_code(code):
    """Return the code of the ℓ with u(f) = ``ℓ(1, |f|)``; −1 for the ramp and the Gaussian."""
    if code == SYMMETRIC_HINGE:
        return HINGE
    if code == SQUARED_SYMMETRIC_HINGE:
        return SQUARED_HINGE
    if code < _FIRST:
        return -1
    return code - _FIRST + SMOOTH_HINGE


@njit
def unlabeled_value(code, f, p):
    """Return the loss u(f) of one unlabeled point.

    Parameters
    ----------
    code : int
        Loss: the place of its name in ``UNLABELED_LOSSES``.
    f : float
        Output.
    p : float
        The parameter of the loss; ignored by those that have none.

    Returns
    -------
    float
        NaN for a code that is no loss.
    """
    if code == GAUSSIAN:
        return math.exp(-p * f * f)
    if code == SYMMETRIC_RAMP:
        return min(1.0 - p, max(0.0, 1.0 - f)) + min(1.0 - p, max(0.0, 1.0 + f))
    return labeled_value(labeled_code(code), 1.0, abs(f), p)


@njit
def unlabeled_derivative(code, f, p):
    """Return the derivative of `unlabeled_value` with respect to the output f; same parameters."""
    if code == GAUSSIAN:
        return -2.0 * p * f * math.exp(-p * f * f)
    if code == SYMMETRIC_RAMP:
        return (1.0 if p < -f < 1.0 else 0.0) - (1.0 if p < f < 1.0 else 0.0)
    if f == 0.0:
        return 0.0
    slope = labeled_derivative(labeled_code(code), 1.0, abs(f), p)
    return slope if f > 0 else -slope


@njit
def unlabeled_curvature(code, f, p):
    """Return second derivative of `unlabeled_value` with respect to the output f; same parameters.

    2s(2sf² − 1) exp(−sf²) for the Gaussian: negative for ``|f| < 1/√(2s)``. The squared symmetric
    hinge has 1 inside the margin; its downward kink at 0, where the slope falls from 1 to −1, is
    not seen by a second derivative.
    """
    if code == GAUSSIAN:
        return 2.0 * p * (2.0 * p * f * f - 1.0) * math.exp(-p * f * f)
    if code == SYMMETRIC_RAMP:
        return 0.0
    return labeled_curvature(labeled_code(code), 1.0, abs(f), p)
