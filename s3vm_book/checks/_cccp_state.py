"""An answer to a convex problem of CCCP, with what can be changed in it and in the problem."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from s3vm_book.checks._conditions import FEASIBLE, row_errors


def shifted(delta, width):
    """Lower bound, kink and upper bound of the unlabeled rows."""
    return delta - width, delta, delta + width


def _unit(delta, width):
    """Slopes of their costs below and above the kink."""
    return -1.0, 1.0


@dataclass
class State:
    """An answer to the convex problem, with what can be changed in it and in the problem."""

    K: np.ndarray
    beta: np.ndarray
    b: float
    t: np.ndarray
    C: float
    C_star: float
    s: float
    ratio: float | None
    delta: np.ndarray | None
    box: Callable = shifted  # of δ and C*: lower bound, kink, upper bound
    slopes: Callable = _unit  # of δ and C*: those of the costs below and above the kink
    floor: float | np.ndarray = 0.0  # lower bound of the labeled α
    margin: float | np.ndarray = 1.0  # of the labeled rows
    F: np.ndarray | None = None

    def __post_init__(self):
        self.L, self.U = self.t != 0, self.t == 0
        if self.F is None:
            self.F = self.K @ self.beta

    def but(self, **changes):
        """The same with something changed."""
        if changes.keys() & {"K", "beta"}:
            changes["F"] = None
        return replace(self, **changes)

    def f(self):
        """Outputs of the rows."""
        return self.F[: len(self.t)] + self.b

    def asked(self):
        """δ as given, or as the outputs ask for."""
        if self.delta is not None:
            return self.delta
        f = self.f()[self.U]
        return self.C_star * (1.0 * (f > self.s) - 1.0 * (f < -self.s))

    def feasible(self):
        """Whether Σβ = 0 within tolerance."""
        return abs(self.beta.sum()) <= FEASIBLE * max(np.abs(self.beta).max(), 1e-300)

    def labeled_errors(self):
        """Row errors of the labeled rows; those outside the box count with their distance."""
        L, t = self.L, self.t[self.L]
        alpha = t * self.beta[: len(self.t)][L]
        size = max(np.abs(alpha).max(), 1e-300)
        if np.ndim(self.floor):
            alpha = alpha - self.floor[L]
        margin = self.margin[L] if np.ndim(self.margin) else self.margin
        outside = np.maximum(np.maximum(-alpha, alpha - self.C), 0.0)
        outside[outside <= FEASIBLE * size] = 0.0
        upper = np.full(len(t), self.C)
        return row_errors(alpha, upper, t * self.f()[L] - margin) + outside / self.C

    def unlabeled_errors(self, delta=None):
        """Row errors of the unlabeled rows for slopes δ.

        β is lower bound + p + q, with p up to the kink and q beyond: p belongs to the hinge that
        ends at minus the slope below the kink, 1, and q to that which ends at −1.
        """
        f = self.f()[self.U]
        delta = self.asked() if delta is None else delta
        beta, width = self.beta[: len(self.t)][self.U], self.C_star
        lo, kink, hi = (part + 0 * beta for part in self.box(delta, width))
        outside = np.maximum(np.maximum(lo - beta, beta - hi), 0.0) / width
        outside[outside <= FEASIBLE] = 0.0
        below, above = self.slopes(delta, width)
        # An infinitesimal α must count as 0 of C*, so the largest is C*: a row of it is appended.
        errors = [
            row_errors(np.append(part, width), np.append(upper, width), np.append(slack, 0.0))[:-1]
            for part, upper, slack in (
                (np.clip(beta, lo, kink) - lo, kink - lo, f + below),
                (np.clip(beta, kink, hi) - kink, hi - kink, f + above),
            )
        ]
        return np.maximum(*errors) + outside

    def near_kink(self):
        """Least error over the slopes that rows near ±|s| may have."""
        f = self.f()[self.U]
        best = self.unlabeled_errors()
        if self.delta is None:
            for side in (-1.0, 1.0):
                doubtful = np.abs(f - side * self.s) <= 5e-3
                for delta in (0.0, side * self.C_star):
                    other = self.unlabeled_errors(np.where(doubtful, delta, self.asked()))
                    best = np.where(doubtful, np.minimum(best, other), best)
        return best

    def error(self):
        """Largest row error."""
        return float(max(self.labeled_errors().max(), self.near_kink().max()))

    def with_offset(self):
        """The same with the offset of the smallest error."""
        if self.ratio is not None:
            return self.but(b=2 * self.ratio - 1 - self.F[-1])
        F = self.F[: len(self.t)]
        # Some row stands on a margin, or b lies between two offsets with which one would.
        kinks = np.sort(np.concatenate([self.t[self.L] - F[self.L], 1 - F[self.U], -1 - F[self.U]]))
        offsets = np.concatenate([kinks, (kinks[1:] + kinks[:-1]) / 2])
        return min((self.but(b=float(b)) for b in offsets), key=lambda one: one.error())

    def left(self):
        """What a suspect leaves unexplained."""
        return self.error() if self.feasible() else np.inf
