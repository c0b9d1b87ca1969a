"""What a search returns, whatever it branches on."""

from typing import NamedTuple

import numpy as np


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


def final_status(status, objective, lower_bound, tol):
    """The status of a search, in view of what it returns: that has been polished and rounded."""
    narrow = objective - lower_bound <= (1.01 * tol + 2e-8) * abs(objective)
    return "inexact" if status == "converged" and not narrow else status
