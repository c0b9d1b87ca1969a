"""What all smooth solvers share: the stages of C*, one descent after the other, the result."""

from typing import NamedTuple

import numpy as np

SMALL = 1e3  # tolerances fall with the scaled objective where this times F, 1 at f = 0, is below 1
_RISE = 10 * (1 + 1e-9)  # of C* from one stage to the next, where the start is a solution
_WIDE, _NEAR = 10.0, 0.01  # times F: bounds on the distance to the minimum, to go on and to end
_LEAST = 1e-30  # smallest ftol


class Stage(NamedTuple):
    """One stage of the annealing."""

    alpha: float  # share of the unlabeled term
    value: float  # scaled objective F at the end
    gradient_norm: float  # largest gradient entry at the end
    n_iter: int
    n_evaluations: int
    status: str


class Solution(NamedTuple):
    """What `solve_quasi_newton` and `s3vm_lib.primal_newton.solve_newton` return."""

    w: np.ndarray  # coefficients in the coordinates of the solver
    b: float  # offset; under the constraint (13) the mean output over the unlabeled rows
    outputs: np.ndarray  # f on the training rows, offset included
    objective: float  # J, in sum form
    n_iter: int  # iterations of all stages together
    status: str  # of the last stage, or "stopped" (by the callback)
    history: tuple  # Stage by Stage; the first has alpha = 0


def annealed(factors, x, descend, callback=None, kind=Stage):
    """Minimize F_α for one factor α after the other, each from where the last one ended.

    Parameters
    ----------
    factors : iterable of float
    x : ndarray of shape (d,)
        Start.
    descend : callable
        From (α, x) to a `Minimum`.
    callback : callable, default=None
        Called after each stage with what is kept of it and x; a true value stops.
    kind : type, default=Stage
        What is kept of a stage: α, the value, the largest gradient entry, and all that the minimum
        counts.

    Returns
    -------
    x : ndarray of shape (d,)
    history : list of Stage
    status : str
        Of the last stage, or ``"stopped"``.
    """
    history, status = [], "stopped"
    for alpha in factors:
        minimum = descend(alpha, x)
        x = minimum.x
        norm = float(np.abs(minimum.gradient).max(initial=0.0))
        history.append(kind(alpha, minimum.value, norm, *minimum[3:]))
        if callback is not None and callback(history[-1], x):
            break
    else:
        status = minimum.status
    return x, history, status


class Continuation:
    """A problem in the units of equation (4), stage by stage.

    Parameters
    ----------
    coordinates : FeatureMap or RawCoefficients
    t : ndarray of shape (n,)
        −1 and +1, and 0 for unlabeled rows; at least one labeled row.
    sample_weight : ndarray of shape (n,)
        Weights s; their sum over the labeled rows is positive.
    problem : Problem
    start : tuple (w, b, C*), default=None
        A solution for a smaller C*, and that C*: the stages up to it are left out.

    Attributes
    ----------
    weight, lam, strength
        s̄, λ and λ′ (see `Problem.scaled`).
    offset : float or None
        b where it is fixed: 0 without one, 2r − 1 with ``balance="mean"``. None: one more variable,
        which is regularized, ½b², with ``bias="regularized"``.
    start : ndarray of shape (d,) or (d + 1,)
        Zeros, or the given start.
    """

    def __init__(self, coordinates, t, sample_weight, problem, start=None):
        self.coordinates, self.t, self.sample_weight = coordinates, t, sample_weight
        self.problem = problem
        self.weight, self.lam, self.strength = problem.scaled(t, sample_weight)
        self.offset = None
        if problem.bias == "none":
            self.offset = 0.0
        elif problem.balance == "mean" and np.any(sample_weight[t == 0] > 0):
            self.offset = 2.0 * problem.ratio - 1.0
        self.start = np.zeros(coordinates.dimension + (self.offset is None))
        self._passed = -1.0
        if start is not None:
            w, b, C_star = start
            self.start = np.append(w, b) if self.offset is None else w
            self._passed = C_star / problem.C_star if problem.C_star > 0 else 0.0

    def factors(self, annealing):
        """Return the factors α of the stages, from 0 on, or after that of the start.

        After a given start, C* rises at most tenfold in a stage.
        """
        # Stages up to that of the start are done; beyond it C* rises tenfold at a time at most.
        every = (0.0, *(annealing if self.strength > 0 else ()))
        left = [alpha for alpha in every if alpha > self._passed] or [every[-1]]
        chosen, passed = [], self._passed
        for alpha, following in zip(left, (*left[1:], np.inf), strict=True):
            if passed <= 0 or following > _RISE * passed:
                chosen.append(alpha)
                passed = alpha if self._passed > 0 else passed
        return tuple(chosen)

    def at(self, alpha, everywhere=False):
        """Return what defines F_α, as `ScaledObjective` takes it.

        Without the unlabeled term only the labeled rows matter, unless the objective needs outputs
        ``everywhere``.
        """
        coordinates, rows = self.coordinates, slice(None)
        # At α = 0 unlabeled rows have no weight: the labeled ones alone are read.
        if alpha == 0.0 and not everywhere and hasattr(coordinates, "rows"):
            labeled = np.flatnonzero(self.t)
            if labeled.size <= getattr(coordinates, "most_rows", labeled.size):
                rows, coordinates = labeled, coordinates.rows(labeled)
        terms = (*self.problem.losses, alpha * self.strength, self.lam, self.offset)
        regularized = self.problem.bias == "regularized" and self.offset is None
        return coordinates, self.t[rows], self.weight[rows], *terms, regularized

    def polished(self, descend, minimum, tol, ftol):
        """Go on with `descend` at smaller tolerances where F asks for it; return the `Minimum`.

        Where F is convex it is above its minimum by ‖∇F‖² / (4λ) at most. With a large C, which
        makes λ and F small, that may exceed F although tolerances in units of losses are met.
        """
        # Of coefficients c of the rows the penalty bends by λ times their kernel values.
        bound = _WIDE
        bend = self.lam * (1.0 if hasattr(self.coordinates, "rows") else self.coordinates.unit)
        while minimum.status == "converged":
            if minimum.gradient @ minimum.gradient <= 4.0 * bend * bound * minimum.value:
                break
            tol, ftol, bound = 0.01 * tol, 0.01 * ftol, _NEAR
            if ftol < _LEAST:
                return minimum._replace(status="stalled")
            found = descend(minimum.x, tol=tol, ftol=ftol)
            counts = found.n_iter + minimum.n_iter, found.n_evaluations + minimum.n_evaluations
            minimum = found._replace(n_iter=counts[0], n_evaluations=counts[1])
        return minimum

    def split(self, x):
        """Return coefficients and offset."""
        return (x[:-1], float(x[-1])) if self.offset is None else (x, self.offset)

    def outputs(self, x):
        """Return f(x_i) + b, shape (n,)."""
        w, b = self.split(x)
        return self.coordinates.outputs(w) + b

    def solution(self, x, history, status, shift=0.0):
        """Return the `Solution` at x, with b moved by ``shift``."""
        w, b = self.split(x)
        f = self.outputs(x)
        norm2 = self.coordinates.squared_norm(w, f - b)
        f = f + shift
        value = sum(self.problem.data_terms(f, self.t, self.sample_weight)) + 0.5 * norm2
        n_iter = sum(stage.n_iter for stage in history)
        return Solution(w, b + shift, f, float(value), n_iter, status, tuple(history))


def annealing_stages(annealing, schedules):
    """Return the factors of C*, one for each stage of an annealing.

    Parameters
    ----------
    annealing : str or sequence of float
        One of the names, or the factors themselves.
    schedules : dict of str to tuple
        The factors that the names stand for.

    Returns
    -------
    tuple of float

    Raises
    ------
    ValueError
        For a sequence that does not increase from a positive number to 1.
    """
    if isinstance(annealing, str):
        return schedules[annealing]
    stages = np.asarray(annealing, dtype=float)
    rising = stages.ndim == 1 and stages.size > 0 and np.all(np.diff(stages) > 0)
    if not (rising and stages[0] > 0 and stages[-1] == 1):
        raise ValueError(
            f"annealing must be one of {sorted(schedules)} or an increasing sequence of "
            f"positive numbers that ends with 1, got {annealing!r}"
        )
    return tuple(stages.tolist())
