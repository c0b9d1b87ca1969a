"""What both searches share, whatever they branch on: the loop over nodes and what it returns."""

from typing import NamedTuple

import numpy as np

_ROUND = 100  # nodes between two reports


class Progress(NamedTuple):
    """State of the search."""

    n_iter: int  # nodes so far
    objective: float  # best value found
    lower_bound: float  # no solution has a smaller one


class Visit(NamedTuple):
    """A node of the tree, in the order of the search (entry of ``Solution.trace``)."""

    parent: int  # its index in the trace, −1 at the root
    depth: int
    row: int  # the row that was decided last, −1 at the root (and for the offset, see `low`)
    label: int  # and how: −1, +1 or FLAT; −1 and +1 are the lower and the upper part of an interval
    bound: float  # lower bound on all completions, rounding errors included
    objective: float  # J at the outputs of the node, NaN where it was not solved
    incumbent: float  # best value found, this node included
    outcome: str  # "branched", "bound" (closed by its bound), "unsolved" (so, by the parent's
    # bound and one step) or "leaf" (every row is decided)
    labels: np.ndarray  # decisions of all rows, given labels included, (n,); with intervals the
    # sign of the outputs that are left, 0 if they have both
    beta: np.ndarray | None  # coefficients of its function, (n,), None where it was not solved
    b: float
    low: np.ndarray | None = None  # with intervals, the least and the largest output of each
    high: np.ndarray | None = None  # unlabeled row, infinite for the others, (n,)


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
    history: list  # of Progress
    trace: list  # of Visit; empty unless asked for


class Search:
    """A search whose subclass says how to `take`, `visit` and list (`nodes`) open nodes."""

    def __init__(self, tol):
        self.tol, self.objective, self.best = tol, np.inf, None
        self.closed = np.inf  # least bound of the nodes that were closed
        self.seen, self.n_iter, self.history = set(), 0, []

    @property
    def lower_bound(self):
        """What no solution can be below."""
        return min([self.objective, self.closed, *(node.sure for node in self.nodes())])

    def report(self, callback):
        """Keep the state of the search; true when the callback stops it."""
        progress = Progress(self.n_iter, self.objective, self.lower_bound)
        self.history.append(progress)
        return callback is not None and bool(callback(progress._asdict()))

    def record(self, trace, node, bound, J, outcome, found, *ends):
        """Add a visit to the trace, if there is one; return its index there."""
        if trace is None:
            return -1
        trace.append((node, bound, J, self.objective, outcome, found, *ends))
        return len(trace) - 1

    def walk(self, max_iter, callback, trace):
        """Visit nodes until none is open; return the status."""
        reported = Progress(0, np.inf, 0.0)
        while self.nodes() and self.n_iter < max_iter:
            self.visit(self.take(), trace)
            better = self.objective < reported.objective
            if better or self.n_iter >= reported.n_iter + _ROUND:
                if self.report(callback):
                    return "stopped"
                reported = self.history[-1]
        if self.n_iter > reported.n_iter or not self.history:
            self.report(callback)
        if self.lower_bound >= self.cutoff:
            return "converged"
        return "max_iter" if self.nodes() else "inexact"

    def solution(self, beta, b, outputs, labels, value, bound, status, visits):
        """Return the `Solution`, "inexact" where polishing and rounding have left a wide gap."""
        bound, value = float(min(bound, value)), float(value)
        narrow = value - bound <= (1.01 * self.tol + 2e-8) * abs(value)
        status = "inexact" if status == "converged" and not narrow else status
        found = beta, b, outputs, labels, value, bound
        return Solution(*found, self.n_iter, status, self.history, visits)
