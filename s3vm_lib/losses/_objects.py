"""The losses as objects: on arrays, with their constants and DC parts."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from s3vm_lib.losses._formulas import (  # isort: skip
    FACTS, LABELED_LOSSES, SMOOTH_HINGE, UNLABELED_LOSSES, labeled_conjugate,
    labeled_derivative, labeled_value, unlabeled_derivative, unlabeled_value,
)  # fmt: skip
from s3vm_lib.utils.jit import njit

_LABELED_PARAMETERS = {name: facts.parameter for name, facts in FACTS.items()}
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


def _checked_parameter(kind, parameters, name, parameter):
    """Return the value of the parameter of a loss, or a ValueError that names it."""
    if name not in parameters:
        raise ValueError(f"{kind} must be one of {list(parameters)}, got {name!r}")
    if parameters[name] is None:
        if parameter is not None:
            raise ValueError(f"{kind} {name!r} has no parameter, got parameter={parameter!r}")
        return None
    meaning, default, low, high = parameters[name]
    if parameter is None:
        return default
    if not low < float(parameter) < high:
        raise ValueError(
            f"the parameter of {kind} {name!r} ({meaning}) must lie in ({low:g}, {high:g}), "
            f"got {parameter!r}"
        )
    return float(parameter)


# --- The objects ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Loss:
    """A name and a parameter, which a subclass checks with its ``_kind`` and ``_parameters``."""

    name: str
    parameter: float | None = None

    def __post_init__(self):
        value = _checked_parameter(self._kind, self._parameters, self.name, self.parameter)
        object.__setattr__(self, "parameter", value)

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
        """Fenchel conjugate sup over f of a·f − ℓ(y, f) at slopes ``a``; infinite off its domain.

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
        """Return value and (super)derivative of the concave part of u: u minus the convex part.

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
