"""Depth-first search over the labels of the unlabeled rows, and the choice of the search.

A node decides the pieces of some unlabeled rows: label −1, label +1 or, with the ramp, the flat
piece. Rows without a decision cost nothing, so the minimum of its convex problem bounds every
completion from below. A node whose bound reaches the best value known is closed with all its
completions.

The Gaussian loss has no pieces; `solve_branch_and_bound` hands it to `solve_intervals`.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from s3vm_lib.branch_and_bound._decisions import (  # isort: skip
    FLAT, Decisions, Distinct, Search, labeled_costs, piece_costs,
)  # fmt: skip
from s3vm_lib.branch_and_bound._gains import joint_gain, single_gains
from s3vm_lib.branch_and_bound._intervals import solve_intervals

from s3vm_lib.branch_and_bound._relaxation import (  # isort: skip
    LOGISTIC_LOSSES, UNIT, Relaxation, fold, fold_sizes, require_proof,
)  # fmt: skip
from s3vm_lib.losses import Pieces

_LEAST = 1e-3  # added to both gains of a row, relative to the largest of all, in their product


class _Node(NamedTuple):
    bound: float  # as computed: it steers the search
    sure: float  # less what rounding may have added: it is what is claimed
    decided: np.ndarray  # per unlabeled row: 0, −1, +1 or FLAT
    beta: np.ndarray
    parent: int
    depth: int
    row: int


# --- The search -----------------------------------------------------------------------------------


class _Search(Search):
    def __init__(self, of, tol, trace, relaxation, decisions, rows, base, branching, start):
        super().__init__(of, tol, trace)
        self.relaxation, self.decisions, self.stack = relaxation, decisions, []
        self.t, self.rows, self.base = of.t[of.kept], rows, base
        self.labeled, self.branching, self.start = np.flatnonzero(self.t), branching, start

    @property
    def cutoff(self):
        return self.objective * (1 - self.tol)

    def nodes(self):
        return self.stack

    def take(self):
        return self.stack.pop()

    def described(self, node):
        labels, row, label = self.t.copy(), -1, 0
        labels[self.rows] = node.decided
        if node.row >= 0:
            row, label = int(self.of.kept[self.rows[node.row]]), int(node.decided[node.row])
        return row, label, labels[self.of.member]

    def labels(self, decided):
        """Return the labels of all rows, 0 where closed, and the cost of the flat pieces."""
        y = self.t.copy()
        if not self.decisions.has_flat:
            y[self.rows] = decided
            return y, self.base
        flat = decided == FLAT
        y[self.rows] = np.where(flat, 0, decided)
        return y, self.base + float(self.decisions.flat[flat].sum())

    def judge(self, bound, known=None):
        """Return J at the outputs of a relaxation, and the cheapest decisions there that are found.

        ``known`` decisions that keep the balance stand unless others are cheaper.
        """
        r, f = self.relaxation, bound.f
        negative, positive = np.empty((2, self.rows.size))
        piece_costs(r.code, r.p, r.weight, f, self.rows, negative, positive)
        decided, cost = self.decisions.assign(negative, positive)
        if known is not None:
            own = self.decisions.cost(known, negative, positive)
            if own < cost:
                decided, cost = known, own
        labeled = labeled_costs(r.code, r.p, r.weight, self.t, f, self.labeled)
        value = r.folded.constant + 0.5 * bound.norm2 + labeled + cost + self.base
        return value, decided

    def improve(self, bound, decided=None):
        """Relabel to a fixed point from a relaxation, keeping the best; J at its outputs."""
        first = None
        while True:
            value, decided = self.judge(bound, decided)
            first = value if first is None else first
            if value < self.objective:
                self.objective, self.best = value, (decided, bound)
            key = decided.tobytes()
            if not np.isfinite(value) or key in self.seen:
                return first
            self.seen.add(key)
            y, flat = self.labels(decided)
            start = self.relaxation.project(y, bound.beta)
            bound = self.relaxation.solve(y, start, self.cutoff - flat, last=True)
            if bound.value + flat >= self.cutoff:
                return first

    def choose(self, open_, found, value, opening, dual):
        """Return row to branch on, and (label, bound, own bound) of children, unlikeliest first."""
        output, flat = found.f[self.rows[open_]], self.decisions.flat[open_]
        gains = np.zeros((open_.size, 2)) if opening is None else single_gains(*opening)
        if self.branching == "gain" and gains.any():
            k = int((gains + _LEAST * gains.max()).prod(axis=1).argmax())
        else:
            k = int(np.abs(output).argmax())
        labels = (-1, 1, FLAT) if np.isfinite(flat[k]) else (-1, 1)
        own = dict.fromkeys(labels, dual)
        for side, label in enumerate(labels if opening is not None else ()):
            gain = joint_gain(*opening, flat, k, side)
            if label != FLAT:
                gain = max(gain, gains[k, side])
            own[label] = dual + gain
        children = {label: max(value, bound) for label, bound in own.items()}
        # The likelier child is searched first; it is the last one on the stack. Sign 0 is +1.
        sign = 1 if output[k] >= 0 else -1
        order = sorted(children, key=lambda label: (-children[label], label == sign))
        return int(open_[k]), [(label, children[label], own[label]) for label in order]

    def run(self, max_iter, callback):
        """Search until the stack is empty; the status."""
        root = np.zeros(self.rows.size, dtype=int)
        start = self.relaxation.start()
        if self.start is not None:
            start = self.relaxation.project(self.labels(root)[0], self.start)
        self.stack.append(_Node(self.base, self.base, root, start, -1, 0, -1))
        return self.walk(max_iter, callback)

    def finish(self, tol):
        """Return the best solution to many digits: its value, its decisions and its relaxation."""
        decided, bound = self.best
        value, start = self.objective * (1 + 1e-8), bound.beta
        while True:
            y, _ = self.labels(decided)
            found = self.relaxation.polish(y, self.relaxation.project(y, start), tol)
            found_value, cheapest = self.judge(found, decided)
            if not found_value < value:
                return value, decided, bound
            value, bound = found_value, found
            if np.array_equal(cheapest, decided):
                return value, decided, bound
            decided, start = cheapest, found.beta

    def visit(self, node):
        # The numbers are the lines of the chapter's algorithm. A node may be closed unsolved since.
        if node.bound >= self.cutoff:
            self.closed = min(self.closed, node.sure)
            self.record(node, node.sure, np.nan, "unsolved")
            return
        self.n_iter += 1
        # 3: the convex problem of the labels decided so far, and its dual bound.
        y, flat = self.labels(node.decided)
        open_ = (node.decided == 0).nonzero()[0]
        last = not open_.size
        found = self.relaxation.solve(y, node.beta, self.cutoff - flat, last)
        dual, opening = found.value + flat, None
        # More than the dual: what the undecided rows cost at least, whatever their labels.
        own, value = dual, max(node.bound, dual)
        if not last and value < self.cutoff:
            opening = self.relaxation.opening(y, found, self.rows[open_])
            if opening is not None:
                flats = self.decisions.flat[open_]
                own = max(dual, dual + joint_gain(*opening, flats, -1, 0))
                value = max(value, own)
        rounding = self.relaxation.rounding(y, found, self.rows[open_], opening)
        rounding += UNIT * (2 * y.size + 10) * flat
        sure = max(node.sure, own - rounding)
        # 4: the outputs are feasible for the whole problem.
        J = np.nan
        if value < self.cutoff:
            J = self.improve(found, node.decided if last else None)
        # 5
        if value >= self.cutoff or last:
            self.closed = min(self.closed, sure)
            self.record(node, sure, J, "leaf" if last else "bound", (found.beta, found.b))
            return
        index = self.record(node, sure, J, "branched", (found.beta, found.b))
        # 6, 7: the more promising child is put on top.
        row, children = self.choose(open_, found, value, opening, dual)
        for label, bound, own in children:
            decided = self.decisions.decide(node.decided, row, label)
            if decided is not None:
                claimed = max(sure, own - rounding)
                child = _Node(bound, claimed, decided, found.beta, index, node.depth + 1, row)
                self.stack.append(child)


def solve_branch_and_bound(
    problem, K, t, sample_weight=None, *, tol=1e-6, max_iter=1_000_000, branching="gain",
    start=None, trace=False, callback=None,
):  # fmt: skip
    """Find the global minimum of a problem by branch and bound.

    Parameters
    ----------
    problem : Problem
        The labeled loss is one of those of `BranchBoundS3VM`; the unlabeled loss is an effective
        loss, the symmetric ramp or the Gaussian (see `solve_intervals`). Logistic losses may be
        mixed with the Gaussian, but with no other loss. With ``balance="counts"`` and ``"share"``
        the constraint is one on the labels that the unlabeled rows are charged for; the Gaussian
        has none, and refuses both.
    K : ndarray of shape (n, n)
        Gram matrix.
    t : ndarray of shape (n,)
        Labels −1 and +1, and 0 for unlabeled rows.
    sample_weight : ndarray of shape (n,), default=None
        Positive weights.
    tol : float, default=1e-6
        Relative gap between the objective and its lower bound at the end.
    max_iter : int, default=1_000_000
        Largest number of nodes.
    branching : {"gain", "confidence"}, default="gain"
        Decide the row with the largest product of what either label adds to the bound in one
        step, or the row with the largest ``|f(x_j) + b|``, as in the paper. Not used with the
        Gaussian loss, where it is the row whose cost exceeds its envelope most.
    start : ndarray of shape (n,), default=None
        Coefficients of a similar problem, from which the root starts; those of labeled rows must
        not exceed their weights C s_i in size. Only for a free offset without ``balance="mean"``,
        and not used with the Gaussian loss.
    trace : bool, default=False
        Keep every node of the tree.
    callback : callable, default=None
        Called with a dict (n_iter, objective, lower_bound) at each better solution and at least
        every 100 nodes; a true value stops.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError
        For a loss without a proof, losses that do not mix, a share of positive labels that no
        labels of the unlabeled rows have (or none that the search met before it was stopped), one
        of so many unequal weights that this is not known, or what `solve_intervals` refuses.

    References
    ----------
    O. Chapelle, V. Sindhwani and S. Keerthi, "Branch and bound for semi-supervised support vector
    machines", NIPS 19 (2006).
    """
    require_proof(problem)
    if problem.unlabeled_loss is not None and problem.unlabeled_loss.pieces is None:
        if np.any(np.asarray(t) == 0) and problem.C_star > 0:
            asked = dict(tol=tol, max_iter=max_iter, trace=trace, callback=callback)
            return solve_intervals(problem, K, t, sample_weight, **asked)
        problem = replace(problem, unlabeled_loss=None)  # what is left is convex
    of = Distinct(problem, K, t, sample_weight)
    code, p, height, base = _charges(problem, of.unlabeled)
    relaxation = Relaxation(
        fold(of.K_kept, *of.balance), code[of.kept], p[of.kept], of.weight, tol=0.5 * tol,
        sizes=fold_sizes(of.K_kept, *of.balance),
    )  # fmt: skip
    # Without weight the unlabeled rows have nothing to decide.
    rows = np.flatnonzero(of.unlabeled[of.kept] & (of.weight > 0))
    flat, free, s_U = of.weight[rows] * height, np.zeros(rows.size, dtype=int), of.s[of.unlabeled]
    if of.counted and rows.size:
        decisions = Decisions(flat, *_label_balance(problem, s_U), of.twin)
    else:
        decisions = Decisions(flat, np.ones(rows.size), 0.0, float(rows.size), np.arange(rows.size))
    if not decisions.possible(free):
        raise ValueError(
            f"no labels of the unlabeled rows have a share of positives within "
            f"balance_tol={problem.balance_tol} of {problem.ratio:.4g}: the nearest is "
            f"{decisions.nearest(free) / decisions.mass.sum():.4g}"
        )
    constant = problem.C_star * s_U.sum() * base
    if start is not None:
        start = np.bincount(of.member, weights=start)
    search = _Search(of, tol, trace, relaxation, decisions, rows, constant, branching, start)
    status = search.run(max_iter, callback)
    if search.best is None and problem.balance == "none":
        raise FloatingPointError(
            "no solution with a finite objective was found: scale X, or take less extreme C and tol"
        )
    if search.best is None:
        raise ValueError(
            f"no labels of the unlabeled rows were found whose share of positives is within "
            f"balance_tol={problem.balance_tol} of {problem.ratio:.4g}"
        )
    value, decided, bound = search.finish(min(tol, 1e-6))

    def assign(labels, outputs):
        labels[rows] = decisions.label(decided, outputs[rows])

    counts = (value, assign) if of.counted else ()
    return search.solution(bound.beta, bound.b, search.lower_bound, status, *counts)


def _charges(problem, unlabeled):
    """Return code and parameter of the labeled loss of each row, height of the flat piece, base."""
    labeled, u = problem.labeled_loss, problem.unlabeled_loss
    pieces = Pieces(labeled, np.inf, 0.0) if u is None else u.pieces
    if (labeled.name in LOGISTIC_LOSSES) != (pieces.loss.name in LOGISTIC_LOSSES):
        raise ValueError(
            f"logistic losses do not mix with others, got {labeled.name!r} and {u.name!r}"
        )
    code = np.where(unlabeled, pieces.loss.code, labeled.code)
    p = np.where(unlabeled, pieces.loss.p, labeled.p)
    return code, p, pieces.height, pieces.base


def _label_balance(problem, s):
    """Return the mass of each unlabeled row and the least and largest mass of the positive ones."""
    if problem.balance == "counts":
        count = float(round(problem.ratio * s.size))
        return np.ones(s.size), count, count
    low, high = problem.ratio - problem.balance_tol, problem.ratio + problem.balance_tol
    return s / s.sum(), max(low, 0.0), min(high, 1.0)
