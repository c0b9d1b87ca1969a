"""The objective of all smooth solvers: value, gradient, Hessian, and the search along a ray."""

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
def losses_and_slopes(
    labeled_code, labeled_p, unlabeled_code, unlabeled_p, t, weight, strength, f, slope, bend=None
):
    """Sum both losses by weight; the derivatives with respect to f go to ``slope``.

    Parameters
    ----------
    labeled_code, unlabeled_code : int
        Losses (see `s3vm_lib.losses`).
    labeled_p, unlabeled_p : float
        Their parameters.
    t : ndarray of shape (n,)
        −1 or +1 for labeled rows, 0 for unlabeled ones.
    weight : ndarray of shape (n,)
        Weights, which sum to one over the labeled and to one over the unlabeled rows.
    strength : float
        Factor αλ′ of the unlabeled term.
    f : ndarray of shape (n,)
        Outputs.
    slope : ndarray of shape (n,)
        Written: the vector a of equation (5).
    bend : ndarray of shape (n,), default=None
        Written, where it is given: the second derivatives, the diagonal of D.

    Returns
    -------
    float
        Labeled term plus ``strength`` times the unlabeled term.
    """
    labeled, unlabeled = 0.0, 0.0
    for i in range(f.size):
        s = weight[i]
        if t[i] != 0.0:
            labeled += s * labeled_value(labeled_code, t[i], f[i], labeled_p)
            slope[i] = s * labeled_derivative(labeled_code, t[i], f[i], labeled_p)
            if bend is not None:
                bend[i] = s * labeled_curvature(labeled_code, t[i], f[i], labeled_p)
        else:
            # The strength multiplies the sum of the values once, but each of the derivatives.
            unlabeled += s * unlabeled_value(unlabeled_code, f[i], unlabeled_p)
            s = strength * s
            slope[i] = s * unlabeled_derivative(unlabeled_code, f[i], unlabeled_p)
            if bend is not None:
                bend[i] = s * unlabeled_curvature(unlabeled_code, f[i], unlabeled_p)
    return labeled + strength * unlabeled


@njit
def ray_derivatives(
    labeled_code, labeled_p, unlabeled_code, unlabeled_p, t, weight, strength, f, change, step
):
    """Return the loss terms at the outputs f + step·change, and their two derivatives in the step.

    Parameters as in `losses_and_slopes`; ``change`` holds the outputs of the direction.

    Returns
    -------
    value, slope, curvature : float
    """
    value, slope, curvature = 0.0, 0.0, 0.0
    for i in range(f.size):
        # Chain rule: every derivative in the step carries a factor c.
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
def search_ray(losses, f, change, parabola, step, accuracy, max_evaluations):
    """Find a step τ that lowers φ(τ) = losses(f + τ·change) + the penalty, a parabola in τ.

    A trial costs O(n), since the outputs move along a line. With χ = max(0, −φ''(0)) the step meets
    φ(τ) ≤ φ(0) + 1e-4 (τφ'(0) − ½τ²χ) and |φ'(τ)| ≤ accuracy (|φ'(0)| + τχ): the strong Wolfe
    conditions where the ray curves upward, and conditions that a ray of slope 0 and negative
    curvature can meet too (McCormick 1977; Moré and Sorensen 1979). Trials are Newton steps on φ',
    kept inside a bracket.

    Parameters
    ----------
    losses : tuple
        What `ray_derivatives` takes before f: codes, parameters, t, weights, strength.
    f, change : ndarrays of shape (n,)
        Outputs, and those of the direction d.
    parabola : tuple of float
        Coefficients of the penalty along the ray: λ‖w‖², 2λ wᵀd and λ‖d‖².
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
    penalty, linear, quadratic = parabola
    value0, slope0, bend = ray_derivatives(*losses, f, change, 0.0)
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
        value, slope, curvature = ray_derivatives(*losses, f, change, step)
        value += penalty + step * (linear + step * quadratic)
        slope += linear + 2.0 * step * quadratic
        curvature += 2.0 * quadratic
        allowed = value0 + _ARMIJO * step * (slope0 + 0.5 * step * kappa)
        # Too long where F has not fallen enough (or is a NaN); else the slope decides.
        if not value <= allowed + _SLACK * abs(value0):
            high = step
        elif abs(slope) <= accuracy * (abs(slope0) - step * kappa):
            return step, evaluations, bend
        elif slope > 0.0:
            high = step
        else:
            low = step
        # Newton's step on φ', at most tenfold without an upper end, else inside the bracket.
        trial = step - slope / curvature if curvature > 0.0 else math.inf
        if math.isinf(high):
            step = min(max(trial, 2.0 * low), 10.0 * low)
        elif low < trial < high:
            margin = 0.02 * (high - low)
            step = min(max(trial, low + margin), high - margin)
        else:
            step = 0.5 * (low + high)
    return low, max_evaluations, bend


class ScaledObjective:
    """F_α = J_α / (C Σ_L s) as a function of the coefficients, and of the offset if it is free.

    F_α(w, b) = Σ_L s̄_i ℓ(t_i, f_i) + αλ′ Σ_U s̄_j u(f_j) + λ‖f‖², the paper's (4), where s̄ are
    the weights divided by their sum over the labeled or the unlabeled rows. With the first and
    second derivatives a and D of the losses and centered features Z̃

        ∇F = Z̃ᵀa + 2λw,   ∇²F = Z̃ᵀDZ̃ + 2λI,

    and a row and a column of one more feature, 1 on every row and without penalty, for b. Second
    derivatives, and a search along a ray, need `FeatureMap`.

    Parameters
    ----------
    coordinates : FeatureMap or RawCoefficients
    t : ndarray of shape (n,)
        −1, +1, and 0 for unlabeled rows.
    weight : ndarray of shape (n,)
        s̄ (see above).
    labeled_loss : LabeledLoss
    unlabeled_loss : UnlabeledLoss
    strength : float
        αλ′.
    lam : float
        λ.
    offset : float or None
        The fixed offset b; None appends b to the coefficients.
    regularized : bool, default=False
        Whether λb² is added for a free offset. Needs coordinates with ``sums``.
    share : SharePenalty or None
        Extra term of the tolerance form (12).
    """

    def __init__(
        self, coordinates, t, weight, labeled_loss, unlabeled_loss, strength, lam, offset,
        regularized=False, share=None,
    ):  # fmt: skip
        self.coordinates, self.t, self.weight = coordinates, t, weight
        self.codes = (labeled_loss.code, labeled_loss.p, unlabeled_loss.code, unlabeled_loss.p)
        self.strength, self.lam, self.offset, self.share = float(strength), lam, offset, share
        self.ridge = lam if regularized else 0.0
        self.dimension = coordinates.dimension + (offset is None)
        self.slope, self.curvature = np.empty(t.size), None

    def __call__(self, x):
        """Return the value and the gradient at x, shape (d,) or (d + 1,) with a free offset."""
        w, b = self.split(x)
        if self.share is None and hasattr(self.coordinates, "sums"):
            return self._by_blocks(w, b)
        f = self.coordinates.outputs(w)
        norm = self.coordinates.squared_norm(w, f)
        if b != 0.0:
            f += b
        return self._summed(w, f, norm)

    def at(self, x, f):
        """Return the value and the gradient at x with outputs f; store a and D."""
        if self.curvature is None:
            self.curvature = np.empty(f.size)
        w = self.split(x)[0]
        return self._summed(w, f, w @ w, self.curvature)

    def _summed(self, w, f, norm, curvature=None):
        bend = () if curvature is None else (curvature,)  # what is left out is not compiled
        value = losses_and_slopes(*self.losses, f, self.slope, *bend)
        if self.share is not None:
            value += self.share.add(f, self.slope)
        gradient = self.coordinates.gradient(self.slope, w, self.lam)
        if self.offset is None:
            gradient = np.append(gradient, self.slope.sum())
        return value + self.lam * norm, gradient

    @property
    def losses(self):
        return *self.codes, self.t, self.weight, self.strength

    def _by_blocks(self, w, b):
        """Return the value and the gradient by one pass over the rows."""
        arguments = self.t, self.weight, self.codes, self.strength
        value, gradient, total = self.coordinates.sums(w, b, self.lam, *arguments)
        value += self.lam * float(w @ w)
        if self.offset is None:
            if self.ridge:
                value, total = value + self.ridge * b**2, total + 2.0 * self.ridge * b
            gradient = np.append(gradient, total)
        return value, gradient

    def split(self, x):
        """Return coefficients and offset."""
        return (x, self.offset) if self.offset is not None else (x[:-1], x[-1])

    def outputs(self, x):
        """Return outputs f at x, offset included, shape (n,)."""
        f = self.change(x)
        return f + self.offset if self.offset else f

    def change(self, d):
        """Return the change of the outputs along the direction d, shape (n,)."""
        if self.offset is not None:
            return self.coordinates.outputs(d)
        return self.coordinates.outputs(d[:-1]) + d[-1]

    def hessian(self, D):
        """Return Z̃ᵀDZ̃ + 2λI, dense, with the row and the column of a free offset."""
        gram, column = self.coordinates.weighted_gram(D)
        gram[np.diag_indices_from(gram)] += 2.0 * self.lam
        if self.offset is None:
            gram = np.block([[gram, column[:, None]], [column[None, :], np.array([[D.sum()]])]])
        return gram

    def product(self, D, d):
        """Return the Hessian times d by two products with the features, O(n d) or O(nonzeros)."""
        a = D * self.change(d)
        product = self.coordinates.gradient(a, self.split(d)[0], self.lam)
        return product if self.offset is not None else np.append(product, a.sum())

    def search(self, x, f, d, change, step, accuracy, max_evaluations=40):
        """Find a step along d by `search_ray`: (step, evaluations, curvature of the ray at 0)."""
        w, v, lam = self.split(x)[0], self.split(d)[0], self.lam
        terms = (lam * (w @ w), 2.0 * lam * (w @ v), lam * (v @ v))
        return search_ray(self.losses, f, change, terms, step, accuracy, max_evaluations)

    def coarsen(self):
        """Go on in single precision where that pays, and return whether it does."""
        coarse = getattr(self.coordinates, "coarse", lambda: None)()
        if coarse is not None:
            self.coordinates = coarse
        return coarse is not None

    def arrays(self):
        """Return dense features and their mean, which compiled code can work on, or None."""
        arrays = getattr(self.coordinates, "arrays", None)
        return None if arrays is None else arrays()
