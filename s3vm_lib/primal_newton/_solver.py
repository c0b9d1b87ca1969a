"""One stage of minimization, and the continuation in C*."""

from functools import partial
from typing import NamedTuple

import numpy as np

from s3vm_lib.primal_newton._directions import dense_direction, krylov_direction, most_negative
from s3vm_lib.smooth import Continuation, ScaledObjective, annealed

# Factors of the unlabeled term, by name: the default of `QNS3VM`, those of ∇TSVM, and no
# continuation.
ANNEALING = {
    "geometric": tuple(10.0 ** (3 * k / 7 - 3) for k in range(8)),
    "doubling": tuple(2.0 ** (k - 10) for k in range(11)),
    "none": (1.0,),
}
DENSE_LIMIT = 100  # with more variables than this "auto" does without the Hessian
# Curvature is told from 0 at this share of the curvature 2λ of the penalty.
FLOOR = 1e-3
_ACCURACY = 0.1  # of the search along a ray: |φ'(τ)| ≤ 0.1 |φ'(0)|
_KRYLOV = 100  # most products for one direction
_TEST = 20  # products of the test for negative curvature


class NewtonStage(NamedTuple):
    """One stage of the continuation."""

    alpha: float  # share of the unlabeled term
    value: float  # scaled objective F at the end
    gradient_norm: float  # largest gradient entry at the end
    n_iter: int
    n_evaluations: int  # trials along rays, O(n) each
    n_negative: int  # iterations that met negative curvature
    status: str


class NewtonMinimum(NamedTuple):
    """What `minimize` returns."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    n_iter: int
    n_evaluations: int
    n_negative: int
    status: str  # "converged", "max_iter" or "no_step"


class NewtonDirections:
    """Newton's direction at a point, with one of three ways to treat negative curvature.

    Parameters
    ----------
    objective : ScaledObjective
    x : ndarray of shape (d,)
        Start; the first radius of the trust region is the larger of its norm and 1.
    curvature : {"drop", "modify", "trust"}
        See `solve_newton`.
    dense : bool
        Whether to form the Hessian or only multiply by it.
    """

    def __init__(self, objective, x, curvature, dense):
        self.objective, self.curvature, self.dense = objective, curvature, dense
        self.floor = FLOOR * 2.0 * objective.lam
        self.radius = max(1.0, float(np.linalg.norm(x)))

    def __call__(self, x, gradient):
        """(direction, first step, whether the curvature was negative)."""
        objective, D = self.objective, self.objective.curvature
        dropped = False
        if self.curvature == "drop":
            dropped = bool(D.min(initial=0.0) < 0)
            D = np.maximum(D, 0.0)
        rule = (self.curvature, self.radius, self.floor)
        if self.dense:
            d, negative = dense_direction(objective.hessian(D), gradient, *rule)
        else:
            tol = min(0.1, np.sqrt(np.linalg.norm(gradient)))
            d, negative, _ = krylov_direction(
                lambda v: objective.product(D, v), gradient, *rule, tol, _KRYLOV
            )
        return d, 1.0, negative or dropped

    def moved(self, length):
        """Adapt the radius to the length of the step that was taken."""
        self.radius = max(2.0 * length, 0.25 * self.radius)

    def escape(self, x, gradient):
        """A direction along which a stationary point is no minimum, or None."""
        objective, D = self.objective, self.objective.curvature
        if self.curvature == "drop" or D.min(initial=0.0) >= 0:
            return None
        # Fixed noise, drawn to the directions in which the losses bend down.
        start = objective.product(np.minimum(D, 0.0), np.cos(np.arange(x.size, dtype=float) ** 2))
        hessian = objective.hessian(D) if self.dense else lambda v: objective.product(D, v)
        d = most_negative(hessian, start, _TEST, self.floor)
        return d if d is None or gradient @ d <= 0 else -d


class GradientDirections:
    """Steepest descent, or conjugate gradients by the rule of Polak and Ribière.

    Parameters
    ----------
    conjugate : bool
    """

    def __init__(self, conjugate):
        self.conjugate = conjugate
        self.gradient = self.direction = None

    def __call__(self, x, gradient):
        """(direction, first step, False); a first step of 0 leaves the choice to `search_ray`."""
        d = -gradient
        if self.conjugate and self.gradient is not None:
            change = gradient - self.gradient
            beta = max(0.0, (gradient @ change) / (self.gradient @ self.gradient))
            d = d + beta * self.direction
            if gradient @ d >= 0:
                d = -gradient
        self.gradient, self.direction = gradient, d
        return d, 0.0, False

    def moved(self, length):
        """Nothing to adapt."""

    def escape(self, x, gradient):
        """None: first derivatives do not tell a saddle point from a minimum."""


def minimize(objective, x, directions, tol=1e-5, ftol=1e-9, max_iter=500, certify=True):
    """Descend from x along directions of descent, each searched as a ray.

    Parameters
    ----------
    objective : ScaledObjective
    x : ndarray of shape (d,)
        Start.
    directions : NewtonDirections or GradientDirections
    tol, ftol, max_iter
        See `solve_newton`.
    certify : bool, default=True
        Whether to look for negative curvature where the descent ends. False does so only if it
        ends where it began, as it does at a saddle point that the stage before has left behind.

    Returns
    -------
    NewtonMinimum
    """
    # Line 3 of the chapter's algorithm.
    f = objective.outputs(x)
    value, gradient = objective.at(x, f)
    n_iter, n_evaluations, n_negative, decrease = 0, 1, 0, np.inf
    while True:
        # 4: at a point that seems stationary a direction of negative curvature is looked for.
        small = np.abs(gradient).max(initial=0.0) <= tol or decrease < ftol * max(1.0, abs(value))
        d = directions.escape(x, gradient) if small and (certify or n_iter == 0) else None
        if small and d is None:
            status = "converged"
            break
        if n_iter == max_iter:
            status = "max_iter"
            break
        if small:
            step, negative = 0.0, True
        else:
            # 5 to 7
            d, step, negative = directions(x, gradient)
        # 8: along the ray the outputs are linear, so that trials are cheap.
        change = objective.change(d)
        step, evaluations, bend = objective.search(x, f, d, change, step, _ACCURACY)
        n_evaluations += evaluations
        n_negative += negative or bend < 0
        if step == 0.0:
            status = "converged" if small else "no_step"
            break
        n_iter += 1
        # 9
        x, f = x + step * d, f + step * change
        before = value
        value, gradient = objective.at(x, f)
        decrease = max(0.0, before - value)  # rounding may turn the last ones around
        directions.moved(step * np.linalg.norm(d))
    return NewtonMinimum(x, value, gradient, n_iter, n_evaluations, int(n_negative), status)


def solve_newton(
    coordinates,
    t,
    sample_weight,
    problem,
    *,
    solver="newton",
    curvature="trust",
    system="auto",
    annealing=ANNEALING["geometric"],
    tol=1e-5,
    ftol=1e-9,
    max_iter=500,
    start=None,
    callback=None,
):
    """Newton's method, or gradient descent, in the primal with continuation in C*.

    Parameters
    ----------
    coordinates : Features
        Where the search takes place, for the kernel of the problem. With ``balance="mean"`` they
        must be centered on the weighted mean of the unlabeled rows.
    t : ndarray of shape (n,)
        −1 and +1, and 0 for unlabeled rows; at least one labeled row.
    sample_weight : ndarray of shape (n,)
        Weights s; their sum over the labeled rows is positive.
    problem : Problem
        Losses, C, C*, and one of: ``bias="none"`` with ``balance="none"``; a free bias with
        ``balance="none"`` or ``"mean"`` (the offset is then fixed at 2r − 1).
    solver : {"newton", "conjugate_gradient", "gradient"}, default="newton"
    curvature : {"drop", "modify", "trust"}, default="trust"
        What Newton does about negative curvature: leave the negative entries of D out, replace
        negative eigenvalues of the Hessian by their absolute values, or step inside a trust region.
        The latter two also leave stationary points where the Hessian has a negative eigenvalue.
    system : {"auto", "dense", "krylov"}, default="auto"
        Whether Newton's equations are solved with the Hessian or with products alone; ``"auto"``
        forms the Hessian of at most 100 variables.
    annealing : sequence of float
        Factors α of the unlabeled term, one stage each; the stage α = 0 comes before them.
    tol : float, default=1e-5
        Largest gradient entry of F at the end of a stage, in the `unit` of the coordinates where
        that is below one.
    ftol : float, default=1e-9
        Decrease of F by one iteration, relative to max(1, F), below which a stage ends.
    max_iter : int, default=500
        Iterations of a stage.
    start : tuple (w, b, C*), default=None
        The solution for a smaller C*: the stages up to it are left out, 0 among them.
    callback : callable, default=None
        Called after each stage with the `NewtonStage`, the coefficients and the offset; a true
        value stops.

    Returns
    -------
    Solution
    """
    stages = Continuation(coordinates, t, sample_weight, problem, start)
    dense = coordinates.dimension <= DENSE_LIMIT if system == "auto" else system == "dense"
    # Short features have small gradients: at the same tolerance they would stop too early.
    tol *= min(1.0, coordinates.unit)
    # The numbers are the lines of the chapter's algorithm. 1: x = 0; 2: the stages.
    factors = stages.factors(annealing)

    def descend(alpha, x):
        function = ScaledObjective(*stages.at(alpha))
        if solver == "newton":
            directions = NewtonDirections(function, x, curvature, dense)
        else:
            directions = GradientDirections(solver == "conjugate_gradient")
        # 3 to 10. Only the last stage must prove that it ended in no saddle.
        go_on = partial(minimize, function, directions=directions, max_iter=max_iter)
        minimum = go_on(x, tol=tol, ftol=ftol, certify=alpha == factors[-1])
        return stages.polished(go_on, minimum, tol, ftol)

    report = None if callback is None else lambda stage, x: callback(stage, *stages.split(x))
    x, history, status = annealed(factors, stages.start, descend, report, NewtonStage)
    return stages.solution(x, history, status)
