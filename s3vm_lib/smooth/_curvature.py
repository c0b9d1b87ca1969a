"""The objective with its Hessian, and the search along a ray."""

import math

import numpy as np

from s3vm_lib.losses import (
    labeled_curvature,
    labeled_derivative,
    labeled_value,
    unlabeled_curvature,
    unlabeled_derivative,
    unlabeled_value,
)
from s3vm_lib.utils.jit import njit

_ARMIJO = 1e-4
_SLACK = 1e-15  # rounding of the values that a line search compares, relative


@njit
def loss_derivatives(
    labeled_code, labeled_p, unlabeled_code, unlabeled_p, t, weight, strength, f, slope, curvature
):
    """Weighted sum of both losses; first and second derivatives in f are written.

    Parameters
    ----------
    labeled_code, labeled_p, unlabeled_code, unlabeled_p
        Losses and their parameters.
    t : ndarray of shape (n,)
        −1 or +1 for labeled rows, 0 for unlabeled ones.
    weight : ndarray of shape (n,)
        Weights of the rows.
    strength : float
        Factor of the unlabeled term.
    f : ndarray of shape (n,)
        Outputs.
    slope, curvature : ndarrays of shape (n,)
        Written: the vector a and the diagonal of D.

    Returns
    -------
    float
    """
    labeled, unlabeled = 0.0, 0.0
    for i in range(f.size):
        if t[i] != 0.0:
            labeled += weight[i] * labeled_value(labeled_code, t[i], f[i], labeled_p)
            slope[i] = weight[i] * labeled_derivative(labeled_code, t[i], f[i], labeled_p)
            curvature[i] = weight[i] * labeled_curvature(labeled_code, t[i], f[i], labeled_p)
        else:
            s = strength * weight[i]
            unlabeled += weight[i] * unlabeled_value(unlabeled_code, f[i], unlabeled_p)
            slope[i] = s * unlabeled_derivative(unlabeled_code, f[i], unlabeled_p)
            curvature[i] = s * unlabeled_curvature(unlabeled_code, f[i], unlabeled_p)
    return labeled + strength * unlabeled


@njit
def ray_derivatives(
    labeled_code, labeled_p, unlabeled_code, unlabeled_p, t, weight, strength, f, change, step
):
    """Loss terms at the outputs f + step·change, and their two derivatives in the step.

    Parameters as in `loss_derivatives`; ``change`` holds the outputs of the direction.

    Returns
    -------
    value, slope, curvature : float
    """
    value, slope, curvature = 0.0, 0.0, 0.0
    for i in range(f.size):
        g, c = f[i] + step * change[i], change[i]
        if t[i] != 0.0:
            value += weight[i] * labeled_value(labeled_code, t[i], g, labeled_p)
            slope += weight[i] * c * labeled_derivative(labeled_code, t[i], g, labeled_p)
            curvature += weight[i] * c * c * labeled_curvature(labeled_code, t[i], g, labeled_p)
        else:
            s = strength * weight[i]
            value += s * unlabeled_value(unlabeled_code, g, unlabeled_p)
            slope += s * c * unlabeled_derivative(unlabeled_code, g, unlabeled_p)
            curvature += s * c * c * unlabeled_curvature(unlabeled_code, g, unlabeled_p)
    return value, slope, curvature


@njit
def search_ray(
    labeled_code,
    labeled_p,
    unlabeled_code,
    unlabeled_p,
    t,
    weight,
    strength,
    f,
    change,
    penalty,
    linear,
    quadratic,
    step,
    accuracy,
    max_evaluations,
):
    """Step τ that lowers F along a ray: φ(τ) = losses(f + τ·change) + the penalty, a parabola in τ.

    A trial costs O(n), since the outputs move along a line. With χ = max(0, −φ''(0)) the step meets
    φ(τ) ≤ φ(0) + 1e-4 (τφ'(0) − ½τ²χ) and |φ'(τ)| ≤ accuracy (|φ'(0)| + τχ): the strong Wolfe
    conditions where the ray curves upward, and conditions that a ray of slope 0 and negative
    curvature can meet too (McCormick 1977; Moré and Sorensen 1979). Trials are Newton steps on φ',
    kept inside a bracket.

    Parameters
    ----------
    labeled_code, labeled_p, unlabeled_code, unlabeled_p, t, weight, strength, f, change
        As in `ray_derivatives`.
    penalty, linear, quadratic : float
        λ‖w‖², 2λ wᵀd and λ‖d‖² for the direction d: the coefficients of the parabola.
    step : float
        First trial; 0 means the Newton step on φ' from 0 where φ''(0) > 0, else a change of the
        outputs by 0.1 in the quadratic mean.
    accuracy : float
        See above; at least 1e-4.
    max_evaluations : int

    Returns
    -------
    step : float
        0.0 where none was found.
    evaluations : int
    bend : float
        φ''(0).
    """
    value0, slope0, bend = ray_derivatives(
        labeled_code, labeled_p, unlabeled_code, unlabeled_p, t, weight, strength, f, change, 0.0
    )
    value0 += penalty
    slope0 += linear
    bend += 2.0 * quadratic
    kappa = min(0.0, bend)
    if step == 0.0:
        # Without curvature to go by, change the outputs by a tenth in the quadratic mean.
        step = 0.1 * math.sqrt(f.size / max(change @ change, 1e-300))
        if bend > 0.0:
            step = -slope0 / bend
    low, high = 0.0, math.inf
    for evaluations in range(1, max_evaluations + 1):
        value, slope, curvature = ray_derivatives(
            labeled_code,
            labeled_p,
            unlabeled_code,
            unlabeled_p,
            t,
            weight,
            strength,
            f,
            change,
            step,
        )
        value += penalty + step * (linear + step * quadratic)
        slope += linear + 2.0 * step * quadratic
        curvature += 2.0 * quadratic
        allowed = value0 + _ARMIJO * step * (slope0 + 0.5 * step * kappa)
        if not value <= allowed + _SLACK * abs(value0):
            high = step
        elif abs(slope) <= accuracy * (abs(slope0) - step * kappa):
            return step, evaluations, bend
        elif slope > 0.0:
            high = step
        else:
            low = step
        trial = step - slope / curvature if curvature > 0.0 else math.inf
        if math.isinf(high):
            step = min(max(trial, 2.0 * low), 10.0 * low)
        elif low < trial < high:
            margin = 0.02 * (high - low)
            step = min(max(trial, low + margin), high - margin)
        else:
            step = 0.5 * (low + high)
    return low, max_evaluations, bend


class CurvedObjective:
    """F_α = J_α / (C Σ_L s) with gradient and Hessian, in the coefficients and a free offset.

    F_α(x) = Σ_L s̄_i ℓ(t_i, f_i) + strength Σ_U s̄_j u(f_j) + λ‖w‖² with x = w, or (w, b) where the
    offset is free. With a and D from `loss_derivatives` and the centered features Z̃

        ∇F = Z̃ᵀa + 2λw,   ∇²F = Z̃ᵀDZ̃ + 2λI,

    and a row and a column of one more feature, 1 on every row and without penalty, for b.

    Parameters
    ----------
    coordinates : Features
    t : ndarray of shape (n,)
        −1, +1, and 0 for unlabeled rows.
    weight : ndarray of shape (n,)
        s̄: weights divided by their sum over the labeled or over the unlabeled rows.
    labeled_loss : LabeledLoss
    unlabeled_loss : UnlabeledLoss
    strength : float
    lam : float
        λ.
    offset : float or None
        The fixed offset b; None appends b to the coefficients.
    """

    def __init__(self, coordinates, t, weight, labeled_loss, unlabeled_loss, strength, lam, offset):
        self.coordinates, self.lam, self.offset = coordinates, lam, offset
        codes = (labeled_loss.code, labeled_loss.p, unlabeled_loss.code, unlabeled_loss.p)
        self.losses = (*codes, t, weight, float(strength))
        self.dimension = coordinates.dimension + (offset is None)
        self.slope, self.curvature = np.empty(t.size), np.empty(t.size)

    def outputs(self, x):
        """Outputs f at x, offset included, shape (n,)."""
        f = self.change(x)
        return f + self.offset if self.offset else f

    def change(self, d):
        """Change of the outputs along the direction d, shape (n,)."""
        if self.offset is not None:
            return self.coordinates.outputs(d)
        return self.coordinates.outputs(d[:-1]) + d[-1]

    def at(self, x, f):
        """Value and gradient at x with outputs f; `slope` and `curvature` keep a and D."""
        w = x if self.offset is not None else x[:-1]
        value = loss_derivatives(*self.losses, f, self.slope, self.curvature)
        gradient = self.coordinates.gradient(self.slope, w, self.lam)
        if self.offset is None:
            gradient = np.append(gradient, self.slope.sum())
        return value + self.lam * (w @ w), gradient

    def hessian(self, D):
        """Z̃ᵀDZ̃ + 2λI, dense, with the row and the column of a free offset."""
        gram, column = self.coordinates.weighted_gram(D)
        gram[np.diag_indices_from(gram)] += 2.0 * self.lam
        if self.offset is None:
            gram = np.block([[gram, column[:, None]], [column[None, :], np.array([[D.sum()]])]])
        return gram

    def product(self, D, d):
        """The Hessian times d by two products with the features, O(n d) or O(nonzeros)."""
        a = D * self.change(d)
        w = d if self.offset is not None else d[:-1]
        product = self.coordinates.gradient(a, w, self.lam)
        return product if self.offset is not None else np.append(product, a.sum())

    def search(self, x, f, d, change, step, accuracy, max_evaluations=40):
        """Step along d by `search_ray`: (step, evaluations, curvature of the ray at 0)."""
        w, v = (x, d) if self.offset is not None else (x[:-1], d[:-1])
        lam = self.lam
        terms = (lam * (w @ w), 2.0 * lam * (w @ v), lam * (v @ v))
        return search_ray(*self.losses, f, change, *terms, step, accuracy, max_evaluations)
