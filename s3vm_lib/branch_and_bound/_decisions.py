"""What both searches share, and which pieces the unlabeled rows may take together at what cost."""

from typing import NamedTuple

import numpy as np

from s3vm_lib.branch_and_bound._relaxation import unfold
from s3vm_lib.losses import labeled_value
from s3vm_lib.utils.jit import njit

_ROUND = 100  # nodes between two reports


class SearchProgress(NamedTuple):
    """State of the search."""

    n_iter: int  # nodes so far
    objective: float  # best value found
    lower_bound: float  # no solution has a smaller one


class Solution(NamedTuple):
    """Result of `solve_branch_and_bound`."""

    beta: np.ndarray  # coefficients of f = Σ_i β_i k(x_i, ·), (n,)
    b: float  # offset
    outputs: np.ndarray  # f(x_i) + b, (n,)
    labels: np.ndarray  # −1 and +1 for every row, (n,)
    objective: float
    lower_bound: float  # no solution has a smaller objective, rounding errors included
    n_iter: int  # nodes whose convex problem was solved
    status: str  # "converged", "max_iter", "stopped" (by the callback) or "inexact": the gap,
    # though valid, is larger than ``tol``, because a convex problem took too many iterations or
    # because rounding errors may be as large
    history: list  # of SearchProgress


class Distinct:
    """A problem on rows of which none repeats another, where the labels of copies are not counted.

    Parameters
    ----------
    problem : Problem
    K : ndarray of shape (n, n)
        Gram matrix of all rows.
    t : array-like of shape (n,)
        Labels −1 and +1, and 0 for unlabeled rows.
    sample_weight : array-like of shape (n,), or None

    Attributes
    ----------
    kept : ndarray of int, shape (m,)
        The distinct rows.
    member : ndarray of int, shape (n,)
        Position among them of each row, or of its copy.
    K_kept, weight : ndarray of shape (m, m) and (m,)
        Their Gram matrix and the weights c of their losses.
    balance : tuple
        What `fold` takes beside their Gram matrix.
    """

    def __init__(self, problem, K, t, sample_weight):
        self.problem, self.K, self.t = problem, K, np.asarray(t, dtype=float)
        self.counted = problem.balance in ("counts", "share")
        self.s = np.ones(self.t.size)
        if sample_weight is not None:
            self.s = np.asarray(sample_weight, dtype=float)
        self.unlabeled = self.t == 0
        weight = np.where(self.unlabeled, problem.C_star, problem.C) * self.s
        U, leader = np.flatnonzero(self.unlabeled), np.arange(self.t.size)
        self.twin = twins(K, U, weight[U] if self.counted else None)
        if not self.counted:  # identical rows have one output, and so one piece
            leader[U] = U[self.twin]
        self.kept, self.member = np.unique(leader, return_inverse=True)
        self.weight = np.bincount(self.member, weights=weight)
        # Where no row repeats another the matrix is not copied.
        part = K if self.kept.size == self.t.size else K[np.ix_(self.kept, self.kept)]
        self.K_kept = np.ascontiguousarray(part, dtype=float)
        # The mean of the balance over all rows, and the same over the distinct ones.
        self.share, share, mean = None, None, 0.0
        if problem.balance == "mean" and U.size:
            self.share = np.where(self.unlabeled, self.s, 0.0) / self.s[U].sum()
            share, mean = np.bincount(self.member, weights=self.share), 2 * problem.ratio - 1
        self.balance = problem.bias, share, mean

    def expand(self, beta, b):
        """Return coefficients and offset on all rows of a function on the distinct ones."""
        full = np.zeros(self.t.size)
        full[self.kept] = beta[: self.kept.size]
        bias, _, mean = self.balance
        return unfold(full, b, self.K, bias, self.share, mean)


class Search:
    """The loop of a search on a `Distinct` problem, and what it reports.

    A subclass defines `take`, which removes a node from those that are ``open``, `visit`, and how
    good a bound closes a node, the ``cutoff``.
    """

    def __init__(self, rows, tol):
        self.of, self.tol, self.objective, self.best = rows, tol, np.inf, None
        self.closed = np.inf  # least bound of the nodes that were closed
        self.open, self.seen, self.n_iter, self.history = [], set(), 0, []

    @property
    def lower_bound(self):
        """What no solution can be below."""
        return min([self.objective, self.closed, *(node.sure for node in self.open)])

    def report(self, callback):
        """Record the state of the search; return whether the callback stops it."""
        progress = SearchProgress(self.n_iter, self.objective, self.lower_bound)
        self.history.append(progress)
        return callback is not None and bool(callback(progress._asdict()))

    def walk(self, max_iter, callback):
        """Visit nodes until none is open; return the status."""
        reported = SearchProgress(0, np.inf, 0.0)
        while self.open and self.n_iter < max_iter:
            self.visit(self.take())
            # A better solution is reported at once, anything else now and then.
            better = self.objective < reported.objective
            if better or self.n_iter >= reported.n_iter + _ROUND:
                if self.report(callback):
                    return "stopped"
                reported = self.history[-1]
        if self.n_iter > reported.n_iter or not self.history:
            self.report(callback)
        if self.lower_bound >= self.cutoff:
            return "converged"
        return "max_iter" if self.open else "inexact"

    def solution(self, beta, b, bound, status, value=None, assign=None):
        """Return the `Solution`, "inexact" where polishing and rounding have left a wide gap.

        ``assign`` changes labels, given the outputs, and ``value`` is what they cost; without it
        both are those of the outputs.
        """
        rows = self.of
        beta, b = rows.expand(beta, b)
        outputs = rows.K @ beta + b
        labels = np.where(rows.unlabeled, np.where(outputs > 0, 1.0, -1.0), rows.t)
        if assign is None:
            value = rows.problem.value(outputs, rows.t, beta @ rows.K @ beta, b, rows.s)
        else:
            assign(labels, outputs)
        bound, value = float(min(bound, value)), float(value)
        narrow = value - bound <= (1.01 * self.tol + 2e-8) * abs(value)
        status = "inexact" if status == "converged" and not narrow else status
        found = beta, b, outputs, labels, value, bound
        return Solution(*found, self.n_iter, status, self.history)


# --- Decisions -----------------------------------------------------------------------------------


FLAT = 2  # the decision for the flat piece; −1 and +1 are labels, 0 is none
_MOST_TOTALS = 2**20  # of half of the rows
_SAME = 1e-14  # squared distance of rows that may be identical, relative to their squares
_ROUNDING = 8 * np.finfo(float).eps  # of kernel values, relative to the largest


@njit
def labeled_costs(code, p, weight, t, f, rows):
    """Return Σ c_i ℓ(t_i, f_i) over the given rows."""
    value = 0.0
    for i in rows:
        value += weight[i] * labeled_value(code[i], t[i], f[i], p[i])
    return value


@njit
def piece_costs(code, p, weight, f, rows, negative, positive):
    """Write c ℓ(−1, f) and c ℓ(+1, f) of the given rows."""
    for k in range(rows.size):
        i = rows[k]
        negative[k] = weight[i] * labeled_value(code[i], -1.0, f[i], p[i])
        positive[k] = weight[i] * labeled_value(code[i], 1.0, f[i], p[i])


class Decisions:
    """Which decisions the unlabeled rows may take together, and what they cost.

    Parameters
    ----------
    flat : ndarray of shape (u,)
        Costs of the flat piece, infinite where there is none.
    mass : ndarray of shape (u,)
        What a row contributes to the balance of the labels.
    low, high : float
        Least and largest total mass of the rows with label +1.
    twin : ndarray of shape (u,)
        Rows of equal number may be exchanged; all numbers differ where no two may.
    """

    def __init__(self, flat, mass, low, high, twin):
        self.flat, self.mass, self.low, self.high, self.twin = flat, mass, low, high, twin
        self.has_flat = bool(np.any(np.isfinite(flat)))
        self.bounded = low > 0 or high < mass.sum()
        self.slack = 1e-9 * mass.sum()

    def assign(self, negative, positive):
        """Return the decisions that keep the balance, and their cost (infinite if none were found).

        They are the cheapest if all rows have the same mass. Otherwise the rows with label +1 are
        those that gain most by it, as many as it takes, and better choices may be missed.
        """
        if not self.bounded:
            decided = np.where(positive <= negative, 1, -1)
            least = np.minimum(positive, negative)
        else:
            # Gains by label +1 over label −1, each or the flat piece where that is cheaper.
            difference = np.minimum(negative, self.flat) - np.minimum(positive, self.flat)
            order = np.argsort(-difference, kind="stable")
            total = np.r_[0.0, np.cumsum(self.mass[order])]
            value = np.r_[0.0, np.cumsum(-difference[order])]
            # How many positive rows keep the balance.
            allowed = (total >= self.low - self.slack) & (total <= self.high + self.slack)
            if not allowed.any():
                return np.zeros(len(order), dtype=int), np.inf
            count = np.flatnonzero(allowed)[np.argmin(value[allowed])]
            decided = np.full(len(order), -1)
            decided[order[:count]] = 1
            least = np.where(decided > 0, positive, negative)
        decided = np.where(least <= self.flat, decided, FLAT)
        return decided, float(np.minimum(least, self.flat).sum())

    def cost(self, decided, negative, positive):
        """Return what complete decisions cost."""
        label = np.where(decided > 0, positive, negative)
        return float(np.where(decided == FLAT, self.flat, label).sum())

    def decide(self, decided, row, label):
        """Add a decision and all that follow from it; return None if they break the balance."""
        decided = decided.copy()
        decided[row] = label
        if not self.bounded or self.has_flat:
            return decided if self.possible(decided) else None
        if label < 0:  # if a twin were +1, the two could be exchanged
            decided[(decided == 0) & (self.twin == self.twin[row])] = -1
        if not self._bounds_hold(decided):
            return None
        # Rows that are too heavy for what is left of one side go to the other.
        undecided = decided == 0
        positive = self.mass[decided == 1].sum()
        negative = self.mass[decided == -1].sum()
        decided[undecided & (positive + self.mass > self.high + self.slack)] = -1
        most = self.mass.sum() - self.low + self.slack
        decided[undecided & (decided == 0) & (negative + self.mass > most)] = 1
        return decided if self._bounds_hold(decided) else None

    def _bounds_hold(self, decided):
        positive = self.mass[decided == 1].sum()
        negative = self.mass[decided == -1].sum()
        return (
            positive <= self.high + self.slack
            and self.mass.sum() - negative >= self.low - self.slack
        )

    def nearest(self, decided):
        """Return the total mass with label +1 that is nearest to the balance.

        Rows without a decision and those on the flat piece may have either label.
        """
        positive = self.mass[decided == 1].sum()
        free = np.sort(self.mass[(decided == 0) | (decided == FLAT)])
        middle = 0.5 * (self.low + self.high)
        totals = positive + np.cumsum(np.append(0.0, free))  # is one of the simplest good enough?
        best = totals[np.argmin(np.abs(totals - middle))]
        if self._meets(best):
            return best
        # Halves meet in the middle: to each total of the one the nearest totals of the other.
        some, others = _totals(free[::2]), _totals(free[1::2])
        place = np.searchsorted(others, middle - positive - some)
        for shift in (-1, 0):
            found = positive + some + others[np.clip(place + shift, 0, others.size - 1)]
            best = min(
                best, found[np.argmin(np.abs(found - middle))], key=lambda x: abs(x - middle)
            )
        return best

    def possible(self, decided):
        """Return whether labels of the rows that are free keep the balance."""
        if not self.bounded:
            return True
        return self._bounds_hold(decided) and self._meets(self.nearest(decided))

    def _meets(self, total):
        return self.low - self.slack <= total <= self.high + self.slack

    def label(self, decided, outputs):
        """Return the labels that keep the balance: those decided, and on the flat piece the signs.

        As many signs as can be kept are, of the largest outputs first.
        """
        labels = decided.copy()
        for j in sorted(np.flatnonzero(decided == FLAT), key=lambda j: -abs(outputs[j])):
            labels[j] = 1 if outputs[j] > 0 else -1
            if not self.possible(labels):
                labels[j] = -labels[j]
        return labels


def _totals(mass):
    """Return the sums of all subsets of some masses, increasing."""
    totals = np.zeros(1)
    for m in mass:
        totals = np.unique(np.round(np.append(totals, totals + m), 12))
        if totals.size > _MOST_TOTALS:
            raise ValueError(
                f"balance_tol is too small for {mass.size} unlabeled rows or more of unequal "
                "sample_weight: whether any labels have such a share takes too long to find out"
            )
    return totals


def twins(K, rows, weight=None):
    """Return a number per row; rows of equal number are identical in feature space, and in weight.

    They are where their kernel values with all rows are, but for rounding. Their distance alone
    does not show this: far from the origin it is small beside its own rounding error.
    """
    twin = np.arange(rows.size)
    diagonal = np.diag(K)[rows]
    rounding = _ROUNDING * np.diag(K).max(initial=0.0)
    for k in range(1, rows.size):
        distance = diagonal[:k] + diagonal[k] - 2 * K[rows[k], rows[:k]]
        # Near each other in feature space, and alike in all kernel values.
        same = distance <= _SAME * (diagonal[:k] + diagonal[k])
        if weight is not None:
            same &= weight[:k] == weight[k]
        for j in np.flatnonzero(same & (twin[:k] == np.arange(k))):
            if np.abs(K[rows[k]] - K[rows[j]]).max() <= rounding:
                twin[k] = j
                break
    return twin
