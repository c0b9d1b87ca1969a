"""L-BFGS on the sum over all rows: the smooth objectives of `QNS3VM` on random features.

With its annealing, in the weights w of D features; what sums over rows ask for is `BlockSum`.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from s3vm_lib.smooth import ANNEALING, Stage, minimize_lbfgs


class Polished(NamedTuple):
    """What `solve_full_batch` returns."""

    alpha: np.ndarray  # (T, m)
    offset: float
    n_iter: int
    status: str
    history: tuple  # of Stage


def loss_codes(problem):
    """The codes that `losses_and_slopes` takes."""
    return tuple(value for loss in problem.losses for value in (loss.code, loss.p))


def solve_full_batch(
    sums,
    labeled_sums,
    problem,
    lam,
    strength,
    scale,
    *,
    start=None,
    annealing=ANNEALING["geometric"],
    tol=1e-5,
    ftol=1e-9,
    max_iter=500,
    memory=50,
    callback=None,
):
    """L-BFGS on random features, with the annealing of QN-S3VM or from a given start.

    Parameters
    ----------
    sums : BlockSum
        ``sums(strength, w, b)`` and ``sums.mean()`` over all rows.
    labeled_sums : BlockSum
        The same over the labeled rows, for the supervised stage.
    problem : Problem
        With ``balance="mean"`` the offset is fixed at 2r − 1 above the mean of f over the
        unlabeled rows. Otherwise b is regularized (½b²), or absent with ``bias="none"``.
    lam, strength : float
        See `Problem.scaled`.
    scale : float
        Factor of the features: φ = scale · c.
    start : tuple (alpha, offset), default=None
        Begin here, with the whole unlabeled term. None anneals it in.
    annealing : sequence of float
        Factors of the unlabeled term, after a first stage without it.
    tol, ftol, max_iter, memory
        Of L-BFGS, for each stage; see `s3vm_lib.quasi_newton.minimize_lbfgs`.
    callback : callable, default=None
        Called with each `Stage`; a true value stops.

    Returns
    -------
    Polished
    """
    objective = _Objective(sums, problem, lam, scale)
    x = objective.at(start)
    # From a start with the whole unlabeled term; otherwise from the labels alone, and it rises.
    plan = [1.0]
    if start is None:
        plan = [0.0, *(annealing if strength > 0 else ())]
    history, status = [], "stopped"
    for factor in plan:
        total = labeled_sums if factor == 0.0 else sums
        function = partial(objective.value, total, factor * strength)
        found = minimize_lbfgs(function, x, tol, ftol, max_iter, memory)
        x = found.x
        largest = float(np.abs(found.gradient).max(initial=0.0))
        counts = (found.n_iter, found.n_evaluations, found.status)
        history.append(Stage(factor, float(found.value), largest, *counts))
        if callback is not None and callback(history[-1]):
            break
    else:
        status = history[-1].status
    alpha = objective.coefficients(x).reshape(-1, sums.stream.block_size)
    n_iter = sum(stage.n_iter for stage in history)
    return Polished(alpha, objective.offset(x), n_iter, status, tuple(history))


class _Objective:
    """F at x: the weights √D α of features with k ≈ z·z', then b where it is regularized."""

    def __init__(self, sums, problem, lam, scale):
        self.D, self.lam = sums.dimension, lam
        self.norm = scale / np.sqrt(self.D)  # z = norm · c
        self.fixed = problem.balance == "mean"
        self.with_bias = not self.fixed and problem.bias == "regularized"
        if self.fixed:
            self.mean, self.target = self.norm * sums.mean(), 2.0 * problem.ratio - 1.0

    def at(self, start):
        """x of (alpha, offset); 0 for None."""
        x = np.zeros(self.D + self.with_bias)
        if start is not None:
            x[: self.D] = start[0].ravel() * np.sqrt(self.D)
            if self.with_bias:
                x[-1] = start[1]
        return x

    def coefficients(self, x):
        """α, in one row."""
        return x[: self.D] / np.sqrt(self.D)

    def offset(self, x):
        """b, which holds the mean output at its target where that is fixed."""
        if self.fixed:
            return self.target - float(self.mean @ x)
        return float(x[-1]) if self.with_bias else 0.0

    def value(self, total, strength, x):
        """F and its gradient, with the sums over these rows."""
        w = x[: self.D]
        value, gradient, slopes = total(strength, self.norm * w, self.offset(x))
        gradient = self.norm * gradient + 2.0 * self.lam * w
        value += self.lam * float(w @ w)
        if self.fixed:  # b moves along with w
            gradient -= slopes * self.mean
        elif self.with_bias:
            value += self.lam * x[-1] ** 2
            gradient = np.append(gradient, slopes + 2.0 * self.lam * x[-1])
        return value, gradient
