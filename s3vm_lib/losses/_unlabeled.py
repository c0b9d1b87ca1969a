"""Unlabeled losses: the ramp, the Gaussian, and the effective losses of the labeled ones."""

import math

from s3vm_lib.losses._labeled import (
    HINGE,
    LABELED_LOSSES,
    SMOOTH_HINGE,
    SQUARED_HINGE,
    labeled_curvature,
    labeled_derivative,
    labeled_value,
)
from s3vm_lib.utils.jit import njit

UNLABELED_LOSSES = (
    "symmetric_hinge",
    "squared_symmetric_hinge",
    "symmetric_ramp",
    "gaussian",
    *(f"symmetric_{name}" for name in LABELED_LOSSES[SMOOTH_HINGE:]),
)
SYMMETRIC_HINGE, SQUARED_SYMMETRIC_HINGE, SYMMETRIC_RAMP, GAUSSIAN = range(4)
_FIRST = 4  # code of the effective loss of the smooth hinge; those that follow keep their order


@njit
def labeled_code(code):
    """Code of the labeled loss ℓ with u(f) = ``ℓ(1, |f|)``; −1 for the ramp and the Gaussian."""
    if code == SYMMETRIC_HINGE:
        return HINGE
    if code == SQUARED_SYMMETRIC_HINGE:
        return SQUARED_HINGE
    if code < _FIRST:
        return -1
    return code - _FIRST + SMOOTH_HINGE


@njit
def unlabeled_value(code, f, p):
    """Loss u(f) of one unlabeled point.

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
    """Derivative of `unlabeled_value` with respect to the output f; same parameters."""
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
    """Second derivative of `unlabeled_value` with respect to the output f; same parameters.

    2s(2sf² − 1) exp(−sf²) for the Gaussian: negative for ``|f| < 1/√(2s)``. The squared symmetric
    hinge has 1 inside the margin; its downward kink at 0, where the slope falls from 1 to −1, is
    not seen by a second derivative.
    """
    if code == GAUSSIAN:
        return 2.0 * p * (2.0 * p * f * f - 1.0) * math.exp(-p * f * f)
    if code == SYMMETRIC_RAMP:
        return 0.0
    return labeled_curvature(labeled_code(code), 1.0, abs(f), p)
