"""Losses of labeled and of unlabeled points: all formulas, and the constants that theory needs.

Two views of the same formulas. The compiled scalar functions, such as `labeled_value` and
`unlabeled_derivative`, take an integer code and are called from the inner loops of the solvers; a
code of no loss gives NaN. The frozen dataclasses `LabeledLoss` and `UnlabeledLoss`
apply them to arrays and carry constants and DC parts.

With z = y·f for a label y = ±1 and an output f, the labeled losses are

====================  ===========================================  ==========================
name                  ℓ(y, f)                                      parameter p
====================  ===========================================  ==========================
hinge                 max(0, 1 − z)
squared_hinge         ½ max(0, 1 − z)²
smooth_hinge          0, (1 − z)²/(2p) or 1 − z − p/2              width of the curved part
logistic              log(1 + exp(−z))
modified_logistic     log(1 + exp(p(1 − z)))/p                     sharpness
l1                    ``|y − f|``
epsilon_insensitive   ``max(0, |y − f| − p)``                      half width of the flat part
====================  ===========================================  ==========================

and the unlabeled losses, all of them even functions of f,

=============================  ==================================  ==========================
name                           u(f)                                parameter p
=============================  ==================================  ==========================
symmetric_hinge                ``max(0, 1 − |f|)``
squared_symmetric_hinge        ``½ max(0, 1 − |f|)²``
symmetric_ramp                 R(f) + R(−f), where                 where the ramp ends: R is
                               R(z) = min(1 − p, max(0, 1 − z))    constant for z ≤ p
gaussian                       exp(−p f²)                          inverse squared width
symmetric_smooth_hinge         the smooth hinge at ``z = |f|``     width of the curved part
symmetric_logistic             ``log(1 + exp(−|f|))``
symmetric_modified_logistic    ``log(1 + exp(p(1 − |f|)))/p``      sharpness
symmetric_l1                   ``|1 − |f||``
symmetric_epsilon_insensitive  ``max(0, |1 − |f|| − p)``           half width of the flat part
=============================  ==================================  ==========================

All but the ramp and the Gaussian are *effective* losses, the least loss over both labels:
min over y = ±1 of ℓ(y, f), which is ``ℓ(1, |f|)`` (`LabeledLoss.effective`).

Where a loss has a kink the derivative returned is one of its subgradients: that of the flat side
at a margin, and 0 at the kink of symmetry f = 0.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from s3vm_lib.utils.jit import njit

__all__ = [
    "LABELED_LOSSES", "UNLABELED_LOSSES", "LabeledLoss", "Pieces", "UnlabeledLoss",
    "conjugate_curvature", "dual_cost", "dual_ridge", "labeled_conjugate", "labeled_curvature",
    "labeled_derivative", "labeled_loss", "labeled_value", "sigmoid", "slope_piece",
    "slope_range", "unlabeled_curvature", "unlabeled_derivative", "unlabeled_loss",
    "unlabeled_value",
]  # fmt: skip


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
    """Return the second derivative of `labeled_value` with respect to f; same parameters.

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
    """Return the second derivative of `unlabeled_value` with respect to f; same parameters.

    2s(2sf² − 1) exp(−sf²) for the Gaussian: negative for ``|f| < 1/√(2s)``. The squared symmetric
    hinge has 1 inside the margin; its downward kink at 0, where the slope falls from 1 to −1, is
    not seen by a second derivative.
    """
    if code == GAUSSIAN:
        return 2.0 * p * (2.0 * p * f * f - 1.0) * math.exp(-p * f * f)
    if code == SYMMETRIC_RAMP:
        return 0.0
    return labeled_curvature(labeled_code(code), 1.0, abs(f), p)


_LABELED_PARAMETERS = {name: facts.parameter for name, facts in FACTS.items()}
# A label that each point picks for itself leaves the least of the two losses.
_EFFECTIVE_OF = {
    "symmetric_hinge": "hinge",
    "squared_symmetric_hinge": "squared_hinge",
    **{f"symmetric_{name}": name for name in LABELED_LOSSES[SMOOTH_HINGE:]},
}
_UNLABELED_PARAMETERS = {
    name: _LABELED_PARAMETERS.get(_EFFECTIVE_OF.get(name)) for name in UNLABELED_LOSSES
} | {"symmetric_ramp": ("s", -0.3, -1.0, 1.0), "gaussian": ("s", 3.0, 0.0, math.inf)}


# --- The formulas on arrays -----------------------------------------------------------------


@njit
def _labeled_values(code, y, f, p, out):
    for i in range(out.size):
        out[i] = labeled_value(code, y[i], f[i], p)


@njit
def _labeled_derivatives(code, y, f, p, out):
    for i in range(out.size):
        out[i] = labeled_derivative(code, y[i], f[i], p)


@njit
def _labeled_conjugates(code, y, a, p, out):
    for i in range(out.size):
        out[i] = labeled_conjugate(code, y[i], a[i], p)


@njit
def _unlabeled_values(code, f, p, out):
    for i in range(out.size):
        out[i] = unlabeled_value(code, f[i], p)


@njit
def _unlabeled_derivatives(code, f, p, out):
    for i in range(out.size):
        out[i] = unlabeled_derivative(code, f[i], p)


def _apply(loop, code, *arrays_and_parameter):
    """Run a compiled loop over broadcast arrays; the result has the floating type of the last."""
    *arrays, parameter = arrays_and_parameter
    arrays = [np.asarray(a) for a in arrays]
    dtype = arrays[-1].dtype if arrays[-1].dtype == np.float32 else np.float64
    shape = arrays[-1].shape
    if arrays[0].shape != shape:
        shape = np.broadcast_shapes(arrays[0].shape, shape)
        arrays = [np.broadcast_to(a, shape) for a in arrays]
    flat = [a.astype(np.float64, copy=False).ravel() for a in arrays]
    out = np.empty(flat[0].size)
    # Double precision inside: a loss of float32 outputs is then rounded once, and never overflows.
    loop(code, *flat, parameter, out)
    return out.astype(dtype, copy=False).reshape(shape)[()]


# --- The objects: constants and DC parts ----------------------------------------------------------


@dataclass(frozen=True)
class _Loss:
    """A name and a parameter, which a subclass checks with its ``_kind`` and ``_parameters``."""

    name: str
    parameter: float | None = None

    def __post_init__(self):
        kind, known, given = self._kind, self._parameters, self.parameter
        if self.name not in known:
            raise ValueError(f"{kind} must be one of {list(known)}, got {self.name!r}")
        if known[self.name] is None:
            if given is not None:
                raise ValueError(f"{kind} {self.name!r} has no parameter, got parameter={given!r}")
            return
        meaning, default, low, high = known[self.name]
        if given is not None and not low < float(given) < high:
            raise ValueError(
                f"the parameter of {kind} {self.name!r} ({meaning}) must lie in "
                f"({low:g}, {high:g}), got {given!r}"
            )
        object.__setattr__(self, "parameter", default if given is None else float(given))

    @property
    def code(self):
        """Integer code for the compiled functions."""
        return list(self._parameters).index(self.name)

    @property
    def p(self):
        """The parameter as the compiled functions take it: 0.0 where there is none."""
        return 0.0 if self.parameter is None else self.parameter


@dataclass(frozen=True)
class LabeledLoss(_Loss):
    """A loss ℓ(y, f) of labeled points.

    Parameters
    ----------
    name : str
        One of ``LABELED_LOSSES``; the table at the top of the module gives the formulas.
    parameter : float, default=None
        Width of ``smooth_hinge`` (0.5), sharpness of ``modified_logistic`` (20) or half width of
        ``epsilon_insensitive`` (0.1); None takes the value in brackets. The other losses have
        none.

    Raises
    ------
    ValueError
        For an unknown name, a parameter out of its range, or one where the loss has none.

    Notes
    -----
    ``squared_hinge`` carries a factor ½, so that the least loss over both labels is the unlabeled
    ``squared_symmetric_hinge``: C here is 2C of a squared hinge without it. For p → 0 the smooth
    hinge, and for p → ∞ the modified logistic loss, tend to the hinge; the latter is larger than
    the hinge by at most log(2)/p, which it is at z = 1.

    References
    ----------
    T. Zhang and F. J. Oles, "Text categorization based on regularized linear classification
    methods", Information Retrieval 4 (2001), for the modified logistic loss; S. Shalev-Shwartz
    and T. Zhang, "Stochastic dual coordinate ascent methods for regularized loss minimization",
    JMLR 14 (2013), for the smooth hinge.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib.losses import LabeledLoss
    >>> loss = LabeledLoss("squared_hinge")
    >>> loss.value(1, np.array([-1.0, 0.0, 2.0]))
    array([2. , 0.5, 0. ])
    >>> loss.derivative(1, np.array([-1.0, 0.0, 2.0]))
    array([-2., -1., -0.])
    """

    _kind, _parameters = "labeled_loss", _LABELED_PARAMETERS

    def value(self, y, f):
        """Return the loss of labels ``y`` and outputs ``f``, arrays; float32 stays float32."""
        return _apply(_labeled_values, self.code, y, f, self.p)

    def derivative(self, y, f):
        """Return the derivative of the loss with respect to ``f`` (see the module for kinks)."""
        return _apply(_labeled_derivatives, self.code, y, f, self.p)

    def conjugate(self, y, a):
        """Return sup over f of a·f − ℓ(y, f), the conjugate at slopes ``a``; it may be infinite.

        Examples
        --------
        >>> LabeledLoss("hinge").conjugate(1, np.array([-1.0, -0.5, 0.5]))
        array([-1. , -0.5,  inf])
        """
        return _apply(_labeled_conjugates, self.code, y, a, self.p)

    @property
    def effective(self):
        """The `UnlabeledLoss` min over y = ±1 of ℓ(y, f): what a point costs that picks its label.

        Examples
        --------
        >>> LabeledLoss("squared_hinge").effective
        UnlabeledLoss(name='squared_symmetric_hinge', parameter=None)
        """
        name = next(n for n, labeled in _EFFECTIVE_OF.items() if labeled == self.name)
        return UnlabeledLoss(name, self.parameter)

    @property
    def lipschitz(self):
        """Largest ``|∂ℓ/∂f|``; infinite for the squared hinge."""
        return FACTS[self.name].lipschitz

    @property
    def differentiable(self):
        """Whether the derivative exists and is continuous everywhere."""
        return FACTS[self.name].differentiable


class Pieces(NamedTuple):
    """u(f) = base + min(ℓ(1, f), ℓ(−1, f), height): a least of two or three convex functions."""

    loss: LabeledLoss  # ℓ
    height: float  # of the flat piece; infinite where there is none
    base: float  # least value of u


@dataclass(frozen=True)
class UnlabeledLoss(_Loss):
    """A loss u(f) of unlabeled points: even, non-convex, small away from the decision boundary.

    Parameters
    ----------
    name : str
        One of ``UNLABELED_LOSSES``; the table at the top of the module gives the formulas.
    parameter : float, default=None
        ``s`` of ``symmetric_ramp`` (−0.3) or of ``gaussian`` (3), or the parameter of the labeled
        loss that this is the effective loss of; None takes the value in brackets, or that of
        `LabeledLoss`. The other losses have none.

    Raises
    ------
    ValueError
        For an unknown name, a parameter out of its range, or one where the loss has none.

    Notes
    -----
    Every loss is split as u = convex + concave (`convex_part`, `concave_part`), which is what the
    concave-convex procedure needs. With H_a(z) = max(0, a − z) the ramp is R = H_1 − H_s exactly,
    so that the symmetric ramp tends to the constant 1 − s, not to 0, for large ``|f|``; with
    s = 0 it is the symmetric hinge plus 1.

    References
    ----------
    O. Chapelle and A. Zien, "Semi-supervised classification by low density separation", AISTATS
    2005, for the Gaussian; R. Collobert, F. Sinz, J. Weston and L. Bottou, "Large scale
    transductive SVMs", JMLR 7 (2006), for the symmetric ramp.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib.losses import UnlabeledLoss
    >>> UnlabeledLoss("symmetric_hinge").value(np.array([-2.0, 0.0, 0.25]))
    array([0.  , 1.  , 0.75])
    """

    _kind, _parameters = "unlabeled_loss", _UNLABELED_PARAMETERS

    def value(self, f):
        """Return the loss of the outputs ``f``, an array; float32 stays float32."""
        return _apply(_unlabeled_values, self.code, f, self.p)

    def derivative(self, f):
        """Return the derivative of the loss (see the module for kinks)."""
        return _apply(_unlabeled_derivatives, self.code, f, self.p)

    @property
    def differentiable(self):
        """Whether the derivative exists and is continuous everywhere."""
        return self.name == "gaussian"

    @property
    def effective_of(self):
        """Name of the labeled loss with u(f) = min over y = ±1 of ℓ(y, f), or None.

        The Gaussian is a smooth stand-in for the symmetric hinge; the symmetric ramp is the sum
        of a truncated hinge over both labels.
        """
        return _EFFECTIVE_OF.get(self.name)

    @property
    def pieces(self):
        """The convex pieces that u is the least of, or None for the Gaussian.

        Of the effective losses these are the two labels. The ramp has a third, flat one:
        u(f) = 1 − s + min(H_1(f), H_1(−f), ``1 − |s|``).

        Returns
        -------
        Pieces or None
        """
        if self.name == "symmetric_ramp":
            return Pieces(LabeledLoss("hinge"), 1.0 - abs(self.p), 1.0 - self.p)
        if self.name == "gaussian":
            return None
        return Pieces(LabeledLoss(self.effective_of, self.parameter), math.inf, 0.0)

    @property
    def _slope_at_zero(self):
        """κ = −u'(0+) of an effective loss: adding ``κ|f|`` to it leaves a convex function."""
        return -float(LabeledLoss(self.effective_of, self.parameter).derivative(1.0, 1e-300))

    def convex_part(self, f):
        """Return the value and derivative of the convex part of u.

        ``max(0, |f| − 1)`` for the symmetric hinge; ½(1 + f²) up to ``|f| = 1`` and ``|f|``
        beyond for its square; H_1(f) + H_1(−f) for the ramp; exp(−sf²) + sf² for the Gaussian;
        ``u(f) − u'(0+)|f|`` for the other effective losses.

        Parameters
        ----------
        f : ndarray
            Outputs.

        Returns
        -------
        value, derivative : ndarrays of the shape of f
        """
        f = np.asarray(f, dtype=None if np.asarray(f).dtype.kind == "f" else float)
        a, sign = np.abs(f), np.sign(f)
        if self.name == "symmetric_hinge":
            return np.maximum(0, a - 1), np.where(a > 1, sign, 0)
        if self.name == "squared_symmetric_hinge":
            return np.where(a < 1, (1 + f * f) / 2, a), np.clip(f, -1, 1)
        if self.name == "symmetric_ramp":
            return _hinge_pair(1.0, f)
        if self.name != "gaussian":
            kink = self._slope_at_zero
            return self.value(f) + kink * a, self.derivative(f) + kink * sign
        return self.value(f) + self.p * f * f, self.derivative(f) + 2 * self.p * f

    def concave_part(self, f):
        """Return the value and the (super)derivative of u minus its convex part.

        ``1 − |f|`` for the symmetric hinge; ``−|f|`` for its square; −H_s(f) − H_s(−f) for the
        ramp; −sf² for the Gaussian; ``u'(0+)|f|`` for the other effective losses.

        Parameters
        ----------
        f : ndarray
            Outputs.

        Returns
        -------
        value, derivative : ndarrays of the shape of f
        """
        f = np.asarray(f, dtype=None if np.asarray(f).dtype.kind == "f" else float)
        if self.name == "symmetric_hinge":
            return 1 - np.abs(f), -np.sign(f)
        if self.name == "squared_symmetric_hinge":
            return -np.abs(f), -np.sign(f)
        if self.name == "symmetric_ramp":
            value, derivative = _hinge_pair(self.p, f)
            return -value, -derivative
        if self.name != "gaussian":
            kink = self._slope_at_zero
            return -kink * np.abs(f), -kink * np.sign(f)
        return -self.p * f * f, -2 * self.p * f


def _hinge_pair(a, f):
    """Return H_a(f) + H_a(−f) and its derivative, 0 being taken at the kinks' flat side."""
    one, zero = f.dtype.type(1), f.dtype.type(0)
    value = np.maximum(zero, f.dtype.type(a) - f) + np.maximum(zero, f.dtype.type(a) + f)
    return value, np.where(f > -a, one, zero) - np.where(f < a, one, zero)


def labeled_loss(name, parameter=None):
    """Return the labeled loss called ``name``; a `LabeledLoss` is returned unchanged.

    Parameters
    ----------
    name : str or LabeledLoss
        One of ``LABELED_LOSSES``.
    parameter : float, default=None
        See `LabeledLoss`.

    Returns
    -------
    LabeledLoss
    """
    return name if isinstance(name, LabeledLoss) else LabeledLoss(name, parameter)


def unlabeled_loss(name, parameter=None):
    """Return the unlabeled loss called ``name``; an `UnlabeledLoss` is returned unchanged.

    Parameters
    ----------
    name : str or UnlabeledLoss
        One of ``UNLABELED_LOSSES``.
    parameter : float, default=None
        See `UnlabeledLoss`.

    Returns
    -------
    UnlabeledLoss
    """
    return name if isinstance(name, UnlabeledLoss) else UnlabeledLoss(name, parameter)
