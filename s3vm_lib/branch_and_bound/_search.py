"""Depth-first search over the labels of the unlabeled rows, the choice of a search, the estimator.

A node decides the pieces of some unlabeled rows: label −1, label +1 or, with the ramp, the flat
piece. Rows without a decision cost nothing, so the minimum of its convex problem bounds every
completion from below. A node whose bound reaches the best value known is closed with all its
completions.

The Gaussian loss has no pieces; `solve_branch_and_bound` hands it to `solve_intervals`.
"""

from dataclasses import replace
from numbers import Real
from typing import Annotated, Literal, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from s3vm_lib.base.classifier import Balance, BaseS3VM, checked_labeled_loss
from s3vm_lib.base.machine import BinaryFit

from s3vm_lib.branch_and_bound._decisions import (  # isort: skip
    FLAT, Decisions, Distinct, Search, labeled_costs, piece_costs,
)  # fmt: skip
from s3vm_lib.branch_and_bound._gains import joint_gain, single_gains
from s3vm_lib.branch_and_bound._intervals import solve_intervals

from s3vm_lib.branch_and_bound._relaxation import (  # isort: skip
    LOGISTIC_LOSSES, PROVED, UNIT, Relaxation, fold, fold_sizes, require_proof,
)  # fmt: skip
from s3vm_lib.losses import LabeledLoss, Pieces, unlabeled_loss
from s3vm_lib.objective import Problem
from s3vm_lib.utils.limits import Count, Gap, WeightOrZero
from s3vm_lib.utils.linear import centered, linear_model
from s3vm_lib.utils.validation import KernelParameters, options, parameters

_LEAST = 1e-3  # added to both gains of a row, relative to the largest of all, in their product


class _Node(NamedTuple):
    bound: float  # as computed: it steers the search
    sure: float  # less what rounding may have added: it is what is claimed
    decided: np.ndarray  # per unlabeled row: 0, −1, +1 or FLAT
    beta: np.ndarray


# --- The search -----------------------------------------------------------------------------------


class _Search(Search):
    def __init__(self, of, tol, relaxation, decisions, rows, base, branching, start):
        super().__init__(of, tol)
        self.relaxation, self.decisions = relaxation, decisions
        self.t, self.rows, self.base = of.t[of.kept], rows, base
        self.labeled, self.branching, self.start = np.flatnonzero(self.t), branching, start

    @property
    def cutoff(self):
        return self.objective * (1 - self.tol)

    def take(self):
        return self.open.pop()

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
        """Relabel to a fixed point from a relaxation, keeping the best."""
        while True:
            value, decided = self.judge(bound, decided)
            if value < self.objective:
                self.objective, self.best = value, (decided, bound)
            key = decided.tobytes()
            if not np.isfinite(value) or key in self.seen:
                return
            self.seen.add(key)
            y, flat = self.labels(decided)
            start = self.relaxation.project(y, bound.beta)
            bound = self.relaxation.solve(y, start, self.cutoff - flat, last=True)
            if bound.value + flat >= self.cutoff:
                return

    def choose(self, open_, found, value, opening, dual):
        """Return the row to branch on and its children (label, bound, own bound), the best last."""
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
        self.open.append(_Node(self.base, self.base, root, start))
        return self.walk(max_iter, callback)

    def finish(self, tol):
        """Return the best solution to many digits: its value, its decisions and its relaxation."""
        decided, bound = self.best
        value, start = self.objective * (1 + 1e-8), bound.beta
        while True:
            # Solve for these labels to the end; where others fit better, go on with them.
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
        if value < self.cutoff:
            self.improve(found, node.decided if last else None)
        # 5
        if value >= self.cutoff or last:
            self.closed = min(self.closed, sure)
            return
        # 6, 7: the more promising child is put on top.
        row, children = self.choose(open_, found, value, opening, dual)
        for label, bound, own in children:
            decided = self.decisions.decide(node.decided, row, label)
            if decided is not None:
                claimed = max(sure, own - rounding)
                self.open.append(_Node(bound, claimed, decided, found.beta))


def solve_branch_and_bound(
    problem, K, t, sample_weight=None, *, tol=1e-6, max_iter=1_000_000, branching="gain",
    start=None, callback=None,
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
            asked = dict(tol=tol, max_iter=max_iter, callback=callback)
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
    search = _Search(of, tol, relaxation, decisions, rows, constant, branching, start)
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
    """Return each row's labeled loss (code, parameter), the height of the flat piece, and base."""
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


# --- The estimator --------------------------------------------------------------------------------


@parameters
class BranchBoundS3VM(KernelParameters, BaseS3VM):
    """Global optimum of the semi-supervised support vector machine by branch and bound.

    Minimizes

        J(f, b) = ½‖f‖² + C Σ_L s_i ℓ(y_i, f(x_i) + b) + C* Σ_U s_j u(f(x_j) + b)

    over all functions and all labels of the unlabeled rows: u is the least of the losses ℓ(−1, ·)
    and ℓ(1, ·), the symmetric ramp, or the Gaussian loss. The search decides one label after the
    other. The convex problem of the rows decided so far bounds from below what any completion can
    reach, and is abandoned as soon as that is no better than the best solution found. With the
    Gaussian loss it cuts intervals of the outputs instead, on which the loss has a convex envelope.
    Practical up to about 32 unlabeled rows, and more where the classes are well separated; with the
    Gaussian loss up to about 10.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the labeled losses.
    C_star : float, default=None
        Weight of the unlabeled losses. None gives the labeled and the unlabeled part equal total
        weight.
    kernel : {"linear", "poly", "rbf", "laplacian", "precomputed"}, default="rbf"
        Kernel function, see `Kernel`.
    gamma : {"scale", "variance", "auto"} or float, default="scale"
        Kernel coefficient of rbf, poly and laplacian, see `resolve_gamma`.
    degree : int, default=3
        Degree of the polynomial kernel, at most 30.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, non-negative.
    sigma_f : float, default=1.0
        Output standard deviation: kernels are multiplied by its square.
    labeled_loss : {"hinge", "squared_hinge", "smooth_hinge", "logistic", "modified_logistic", \
"l1", "epsilon_insensitive"} or LabeledLoss, default="hinge"
        Loss ℓ of labeled rows; a `LabeledLoss` has a parameter of its own.
    unlabeled_loss : {"effective", "symmetric_ramp", "gaussian"}, default="effective"
        Loss u of unlabeled rows: min over y = ±1 of ℓ(y, f); the symmetric ramp, which goes with
        any ℓ but the two logistic losses; or exp(−s f²), which goes with any ℓ and has no labels
        to count, so that ``balance_mode`` must be ``"mean"``.
    s : float, default=None
        Where the symmetric ramp ends, in (−1, 1), or the inverse squared width of the Gaussian
        loss, positive. None takes −0.3 for the ramp and 3 for the Gaussian. Not used by the
        effective loss.
    bias : {"free", "regularized", "none"}, default="free"
        Whether the offset b is unpenalized, enters the objective as ½b², or is 0.
    balance : "auto", "labels", another name, float, dict or None, default="labels"
        Share r of the class ``classes_[1]`` among the unlabeled rows: estimated from labels and
        unlabeled rows together, by the share among the labeled rows, in another way that
        `s3vm_lib.class_ratio` has a name for, given (in a dict for each class), or not used.
    balance_mode : {"mean", "counts", "share"}, default="mean"
        What r asks for: the mean output 2r − 1; round(r u) unlabeled rows that are charged as
        positive; a share of such rows, by ``sample_weight``, within ``balance_tol`` of r. Where
        no labels have such a share, because the rows are few or their weights unequal, `fit`
        raises an error that names the nearest one. With ``C_star=0`` no labels are asked for.
    balance_tol : float, default=0.05
        Tolerance of ``balance_mode="share"``, both ends included. Not used by the others.
    branching : {"gain", "confidence"}, default="gain"
        Decide next the row with the largest product of what either label adds to the bound in
        one step, or the row with the output farthest from 0, as in the paper. Not used with the
        Gaussian loss: the interval is cut whose envelope is farthest below the loss.
    tol : float, default=1e-6
        Largest gap between the objective and its lower bound at the end, relative to the
        objective.
    max_iter : int, default=100_000
        Largest number of nodes.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
    verbose : int, default=0
        Print a line at each better solution and at least every 100 nodes.
    callback : callable, default=None
        Called as often with a dict (n_iter, objective, lower_bound); a true value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_ratio_ : ndarray of shape (n_classes,), or None
        Shares of the classes among the unlabeled rows, as ``balance`` gave them; None without.
    support_ : ndarray of shape (n_support,)
        Training rows that carry the model.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, d)
        These rows; absent with ``kernel="precomputed"``.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Their coefficients; one row for two classes, otherwise one per class.
    coef_ : ndarray of shape (n_problems, d)
        Weights of the features, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (n_problems,)
        Offsets b.
    gamma_ : float
        The kernel coefficient that was used.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the one found where it was unlabeled.
    objective_ : float or ndarray of shape (n_classes,)
        J at the solution; with the balance modes ``"counts"`` and ``"share"`` each unlabeled row
        is charged for the label that the balance gives it.
    lower_bound_ : float or ndarray of shape (n_classes,)
        No function has a smaller objective, rounding errors included (see Notes).
    gap_ : float or ndarray of shape (n_classes,)
        ``objective_ - lower_bound_``; at most about ``tol * objective_`` where the status is
        ``"converged"``.
    problem_ : Problem or list of Problem
        What was minimized, with the values that ``C_star``, ``gamma`` and ``balance`` stood for.
    n_iter_ : int
        Nodes whose convex problem was solved, the largest number over the two-class problems.
    history_ : list
        One `SearchProgress` (n_iter, objective, lower_bound) per report.
    termination_condition_ : str
        ``"converged"``, ``"max_iter"``, ``"stopped"`` (by the callback) or ``"inexact"``
        (``gap_``, though valid, is larger than ``tol`` asks for: a convex problem took too many
        iterations, or rounding errors may be as large); a list of these with more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    SVM : The supervised baseline.

    Notes
    -----
    The number of nodes grows exponentially with the unlabeled rows that no bound decides: those
    between the classes. Identical unlabeled rows are decided together. With the balance modes
    ``"counts"`` and ``"share"`` the constraint is one on labels, as in S3VM-light, and an output
    may have another sign than the label that its row is charged for. With the symmetric ramp no
    row is charged for more than the flat piece; whatever it is charged for, it has a label.

    The certificate holds in floating point. What is computed for a dual value, or for what labels
    add to it, is lowered by a bound of its rounding errors, a multiple (of the order of n times
    1.1e-16) of the sum of the absolute values of its terms, before it counts for ``lower_bound_``.
    That is for the kernel values in double precision, of which those of identical rows are taken
    as equal where they differ by rounding, and for ``C``, ``C_star`` and weights as given.
    ``objective_`` is J as computed. The allowance is about 1e-11 of J or less in ordinary
    problems. It grows with C, and with kernel values that are large beside their differences.

    With the Gaussian loss part of ½‖f‖² is lent to the losses of the unlabeled rows before their
    envelopes are taken, which leaves few nodes. A node counts as solved, and the search ends, where
    J is convex on a box or no better than the best solution.

    References
    ----------
    O. Chapelle, V. Sindhwani and S. Keerthi, "Branch and bound for semi-supervised support vector
    machines", NIPS 19 (2006).

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import BranchBoundS3VM
    >>> X = np.array([[-2.0], [2.0], [-1.5], [-1.0], [1.0], [1.5]])
    >>> y = np.array([0, 1, -1, -1, -1, -1])
    >>> model = BranchBoundS3VM(kernel="linear").fit(X, y)
    >>> model.transduction_.tolist(), round(model.objective_, 4), model.termination_condition_
    ([0, 1, 0, 0, 1, 1], 0.5, 'converged')
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    C_star: WeightOrZero | None = None
    labeled_loss: Annotated[str, StrOptions(PROVED)] | LabeledLoss = "hinge"
    unlabeled_loss: Literal["effective", "symmetric_ramp", "gaussian"] = "effective"
    s: Annotated[float, Interval(Real, -1, 1e10, closed="right")] | None = None
    bias: Literal["free", "regularized", "none"] = "free"
    balance: Balance = "labels"
    balance_mode: Literal["mean", "counts", "share"] = "mean"
    balance_tol: Annotated[float, Interval(Real, 0, 1, closed="left")] = 0.05
    branching: Literal["gain", "confidence"] = "gain"
    tol: Gap = 1e-6
    max_iter: Count = 100_000

    _largest_n = 100
    _memory = "n² numbers"

    def _prepare(self, data):
        """Return the Gram matrix, which all problems share, and the point it is centered at."""
        if self.balance_mode == "counts" and self.balance is not None:
            weight = data.sample_weight[data.codes < 0]
            if np.ptp(weight) > 0 if weight.size else False:
                raise ValueError(
                    "sample_weight must be equal on all unlabeled rows with "
                    "balance_mode='counts', which counts them"
                )
        X, center = centered(data.X, data.kernel) if self.bias == "free" else (data.X, None)
        return data.kernel.gram(X), center

    def _problem(self, data, ratio):
        """Return what is minimized; ``ratio`` None leaves the balance constraint out."""
        labeled = checked_labeled_loss(self.labeled_loss, sorted(PROVED))
        if self.unlabeled_loss == "effective":
            unlabeled = labeled.effective
        else:
            unlabeled = unlabeled_loss(self.unlabeled_loss, self.s)
        mode = "none" if ratio is None else self.balance_mode
        if self.unlabeled_loss == "gaussian" and mode in ("counts", "share"):
            raise ValueError(
                f"balance_mode must be 'mean' with unlabeled_loss='gaussian', got {mode!r}: "
                "'counts' and 'share' constrain labels, and the Gaussian loss has none"
            )
        balance = self.bias, mode, ratio, self.balance_tol if mode == "share" else 0.0
        return Problem(labeled, unlabeled, *self._penalties(data), data.kernel, *balance)

    def _fit_binary(self, data, shared, t, problem, index):
        K, center = shared
        asked = options(self, solve_branch_and_bound)
        solution = solve_branch_and_bound(
            problem, K, t, data.loss_weight, callback=self._report, **asked
        )
        bound = solution.lower_bound
        coef, b = linear_model(data.kernel, solution.beta, data.X, solution.b, center)
        extra = {"lower_bound_": bound, "gap_": solution.objective - bound}
        return BinaryFit.of(solution, solution.beta, coef, b, solution.outputs, extra)
