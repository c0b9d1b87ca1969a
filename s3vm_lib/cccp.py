"""The concave-convex procedure (CCCP) for semi-supervised support vector machines.

The unlabeled loss is a convex minus a convex function, u = v − h with

    v(f) = max(0, 1 − f) + max(0, 1 + f),   h(f) = max(0, s − f) + max(0, s + f)    (symmetric ramp)
    v(f) = max(0, |f| − 1),                 h(f) = |f| − 1                         (symmetric hinge)

and CCCP replaces h, again and again, by its tangent at the last outputs f. What is left is convex,
touches J there and lies above it everywhere else, so that J cannot rise. With the slopes
δ_j = C* s_j h'(f_j) ∈ {−C* s_j, 0, C* s_j} its dual is the problem (P) of `s3vm_lib.smo` with one
signed variable for each row,

    labeled    φ_i(β) = −t_i β      on [0, C s_i] or [−C s_i, 0]
    unlabeled  φ_j(β) = |β − δ_j|   on [δ_j − C* s_j, δ_j + C* s_j],                      (1)

and, where the mean output over U is to be 2r − 1, one more for the mean of the unlabeled rows in
feature space, φ_0(β) = −(2r − 1)β without bounds. Collobert et al. write the same problem with
every unlabeled row twice, once for each label: of the two variables μ⁺, μ⁻ of a row only
β = μ⁺ + μ⁻ enters the quadratic term, and eliminating the other leaves (1).
"""

from dataclasses import replace
from numbers import Real
from typing import Annotated, Literal, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from s3vm_lib.base.classifier import Balance, BaseS3VM
from s3vm_lib.base.machine import BinaryFit
from s3vm_lib.gram import Gram, add_rows
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem
from s3vm_lib.smo import BIG, Costs, block_steps, feasible, solve_smo
from s3vm_lib.utils.limits import Count, Megabytes, Tolerance, WeightOrZero
from s3vm_lib.utils.linear import centered, linear_model
from s3vm_lib.utils.validation import Array, KernelParameters, Storage, options, parameters

__all__ = [
    "CCCPS3VM", "Loop", "Solution", "concave_slopes", "inner_costs", "solve_cccp",
    "supervised_problem",
]  # fmt: skip

_FACE_STEPS = 10  # of SMO in each convex problem


class Loop(NamedTuple):
    """What happened in one convex problem."""

    objective: float  # J at its solution
    n_changed: int  # rows whose slope δ is another one at its solution
    n_iter: int  # iterations of SMO
    violation: float  # of the optimality conditions when SMO ended
    balance_residual: float  # by how much the mean output misses 2r − 1


class Solution(NamedTuple):
    """Result of `solve_cccp`."""

    beta: np.ndarray  # coefficients of k(x_i, ·), the mean point shared out among U, (n,)
    b: float  # offset
    outputs: np.ndarray  # f(x_i) + b, (n,)
    objective: float  # J
    n_iter: int  # convex problems solved
    status: str  # "converged", "max_iter" or "stopped" (by the callback)
    history: list  # of Loop


# --- The convex problem --------------------------------------------------------------------------


def concave_slopes(loss, f, upper):
    """Return δ_j = C* s_j h'(f_j): slopes of the part of the unlabeled loss that is linearized.

    Parameters
    ----------
    loss : UnlabeledLoss
        ``symmetric_ramp`` or ``symmetric_hinge``.
    f : ndarray of shape (u,)
        Outputs of the unlabeled rows.
    upper : ndarray of shape (u,)
        Weights C* s_j.

    Returns
    -------
    ndarray of shape (u,)
    """
    return -upper * loss.concave_part(f)[1]


def inner_costs(t, upper, width, delta, mean_output=None):
    """Return the costs (1) of the convex problem.

    Parameters
    ----------
    t : ndarray of shape (n,)
        Labels −1, +1, and 0 for unlabeled rows.
    upper : ndarray of shape (n,)
        Weights C s_i of the labeled rows; entries of unlabeled rows are not used.
    width : ndarray of shape (u,)
        Weights C* s_j of the unlabeled rows; 0 leaves them out.
    delta : ndarray of shape (u,)
        Slopes δ_j.
    mean_output : float, default=None
        2r − 1, which adds the mean point; None for no balance constraint.

    Returns
    -------
    Costs
        With n entries, or n + 1 with the mean point, which is last.
    """
    size = t.size if mean_output is None else t.size + 1
    lo, mid, hi, s1, s2 = np.zeros((5, size))
    L, U = np.flatnonzero(t), np.flatnonzero(t == 0)
    lo[L], hi[L] = np.where(t[L] > 0, 0.0, -upper[L]), np.where(t[L] > 0, upper[L], 0.0)
    mid[L], s1[L], s2[L] = hi[L], -t[L], -t[L]
    lo[U], mid[U], hi[U], s1[U], s2[U] = delta - width, delta, delta + width, -1.0, 1.0
    if mean_output is not None:
        lo[-1], mid[-1], hi[-1], s1[-1], s2[-1] = -BIG, BIG, BIG, -mean_output, -mean_output
    return Costs(lo, mid, hi, s1, s2)


# --- The solver ----------------------------------------------------------------------------------


def supervised_problem(gram, t, sample_weight, problem, **options):
    """Solve the first convex problem, C* = 0 under the balance constraint, by SMO.

    It does not depend on C*: `solve_cccp` takes the solution as ``first``.

    Parameters
    ----------
    gram, t, sample_weight, problem
        See `solve_cccp`.
    **options
        Of `solve_smo`.

    Returns
    -------
    s3vm_lib.smo.Solution
    """
    target = None if problem.balance == "none" else 2 * problem.ratio - 1
    nothing = np.zeros(np.count_nonzero(t == 0))
    costs = inner_costs(t, problem.C * sample_weight, nothing, nothing, target)
    return solve_smo(gram, costs, **options)


def solve_cccp(
    gram, t, sample_weight, problem, start=None, *, tol=1e-3, max_iter=100,
    max_inner_iter=1_000_000, null_steps=True, face_steps=_FACE_STEPS, first=None, callback=None,
):  # fmt: skip
    """Minimize J by CCCP: convex problems, each solved by SMO from the solution of the last.

    Parameters
    ----------
    gram : Gram
        Kernel values of the n rows, with the mean point of the unlabeled rows if and only if the
        problem has ``balance="mean"``.
    t : ndarray of shape (n,)
        Labels −1, +1, and 0 for unlabeled rows.
    sample_weight : ndarray of shape (n,)
        Weights s.
    problem : Problem
        Hinge, symmetric ramp or symmetric hinge, a free bias, balance ``"mean"`` or ``"none"``.
    start : ndarray of shape (n,), default=None
        Outputs where h is linearized first. None means those of the supervised problem, C* = 0
        under the same balance constraint, which is then the first convex problem.
    tol : float, default=1e-3
        Largest violation of the optimality conditions of a convex problem, see `solve_smo`.
    max_iter : int, default=100
        Largest number of convex problems.
    max_inner_iter : int, default=1_000_000
        Largest number of SMO iterations in each.
    null_steps, face_steps : bool, int, default=True, 10
        Steps of many variables in SMO, see `solve_smo`.
    first : s3vm_lib.smo.Solution, default=None
        What `supervised_problem` returns with the same options, where it is known.
    callback : callable, default=None
        Called with each `Loop`; a true value stops.

    Returns
    -------
    Solution

    Notes
    -----
    It ends when no slope changes, in which case the next problem would be the same one, or when J
    does not fall any more, which with inexact inner solutions can happen before: J at one of them
    is above the minimum of the convex problem by at most ``violation`` times Σ_i (hi_i − lo_i).

    References
    ----------
    R. Collobert, F. Sinz, J. Weston and L. Bottou, "Large scale transductive SVMs", JMLR 7
    (2006), Algorithm 1 and equations (12)-(20).
    """
    # The numbers are the lines of the chapter's algorithm. 1: the Gram holds the mean point.
    n, U = t.size, np.flatnonzero(t == 0)
    target = None if problem.balance == "none" else 2 * problem.ratio - 1
    upper = problem.C * sample_weight
    width = problem.C_star * sample_weight[U]
    semi = bool(np.any(width > 0))
    supervised = start is None or not semi
    delta = np.zeros(U.size)
    if not supervised:
        delta = concave_slopes(problem.unlabeled_loss, start[U], width)
    beta = np.zeros(gram.diagonal.size)
    F = np.zeros(beta.size)
    history, status = [], "max_iter"
    while len(history) < max_iter:
        # 2: supervised in the first round, unless a start is given.
        if supervised and first is not None:
            inner = first._replace(f=first.f.copy())
        else:
            costs = inner_costs(t, upper, 0 * width if supervised else width, delta, target)
            # 3: Rows whose variable stays inside its new box cost nothing here.
            nearby = feasible(beta, costs, shift=False)
            change, n_block = nearby - beta, 0
            if not gram.in_blocks:
                add_rows(gram.cache, gram.rows, change, F)
            else:  # most rows without a label move, once
                moved = np.flatnonzero(change)
                gram.add(moved, change[moved], F)
                n_block = block_steps(gram, costs, nearby, F, tol, max_inner_iter)
            # 4 and 5: the exact step along the null direction opens each round of SMO.
            inner = solve_smo(
                gram, costs, nearby, F, tol=tol, max_iter=max_inner_iter - n_block,
                null_steps=null_steps, face_steps=face_steps,
            )  # fmt: skip
            inner = inner._replace(n_iter=n_block + inner.n_iter)
        # 6
        beta, F = inner.beta, inner.f
        b = inner.b if target is None else float(target - F[n])
        outputs = F[:n] + b
        objective = float(problem.value(outputs, t, beta @ F, b, sample_weight))
        # 7
        slopes = concave_slopes(problem.unlabeled_loss, outputs[U], width) if semi else delta
        n_changed = int(np.sum(slopes != delta))
        # 8: no slope has changed, or J has not fallen.
        falls = not history or objective < history[-1].objective
        if falls:
            best = beta, b, outputs, objective
        residual = float(problem.balance_residual(outputs, t, sample_weight))
        history.append(Loop(objective, n_changed, inner.n_iter, inner.violation, residual))
        settled = not semi if supervised else n_changed == 0 or not falls
        if callback is not None and callback(history[-1]) and not settled:
            status = "stopped"
            break
        if settled:
            status = inner.status
            break
        delta, supervised = slopes, False
    # Of two inexact solutions the later one can be the higher.
    beta, b, outputs, objective = best
    dual = beta[:n] if target is None else beta[:n] + beta[n] * gram.null[:n]
    return Solution(dual, b, outputs, objective, len(history), status, history)


# --- The estimator -------------------------------------------------------------------------------


@parameters
class CCCPS3VM(KernelParameters, BaseS3VM):
    """Semi-supervised support vector machine by the concave-convex procedure (CCCP).

    Minimizes

        J(f, b) = ½‖f‖² + C Σ_L s_i max(0, 1 − t_i (f(x_i) + b)) + C* Σ_U s_j u(f(x_j) + b)

    with the symmetric ramp or the symmetric hinge u, by a sequence of convex problems, each of
    them solved by SMO. The balance constraint Σ_U s_j (f(x_j) + b) / Σ_U s_j = 2r − 1 keeps all
    unlabeled rows from falling into one class.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the hinge losses of labeled rows.
    C_star : float, default=None
        Weight of the unlabeled losses. None gives the labeled and the unlabeled part equal total
        weight, the rule U C* = L C of the paper.
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
    unlabeled_loss : {"symmetric_ramp", "symmetric_hinge"}, default="symmetric_ramp"
        Loss u of unlabeled rows.
    s : float or "paper", default=-0.3
        Where the ramp ends, in (−1, 1): the procedure takes no side on rows with ``|f| < |s|``.
        Since s and −s give losses that differ by a constant, only its size matters. ``"paper"``
        is 0, for which the ramp is the symmetric hinge plus 1; from there the procedure rarely
        leaves the neighborhood of its start. Not used by the other loss.
    balance : "auto", "labels", another name, float, dict or None, default="auto"
        Share r of the class ``classes_[1]`` among the unlabeled rows: estimated from labels and
        unlabeled rows together, by the share among the labeled rows, in another way that
        `s3vm_lib.class_ratio` has a name for, given (in a dict for each class), or not used.
    init : array-like of shape (n,) or (n, n_classes), default=None
        Outputs to start from, for example the ``decision_function`` of another model on X; those
        of labeled rows are ignored. None starts from the supervised problem under the balance
        constraint.
    tol : float, default=1e-3
        Largest violation of the optimality conditions of each convex problem. Below 1e-5, or below
        1.2e-6 times the largest k(x, x), kernel values are kept in double instead of single
        precision.
    max_iter : int, default=100
        Largest number of convex problems.
    max_inner_iter : int, default=1_000_000
        Largest number of SMO iterations in each of them.
    gram : {"auto", "full", "rows"}, default="auto"
        Keep the whole Gram matrix or the rows that are visited, see `Gram`.
    memory : float, default=250
        Memory for kernel values in MiB. While points are set aside, a copy of the part that is
        still needed may take as much again.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
    verbose : int, default=0
        Print one line per convex problem.
    callback : callable, default=None
        Called after each convex problem with a dict (the fields of ``history_``); a true value
        stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_ratio_ : ndarray of shape (n_classes,), or None
        Shares of the classes among the unlabeled rows, as ``balance`` gave them; None without.
    support_ : ndarray of shape (n_support,)
        Training rows with a nonzero coefficient. The balance constraint involves the mean of the
        unlabeled rows, and with it all of them.
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
    gram_ : {"full", "rows"}
        How kernel values were kept.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the one found where it was unlabeled.
    objective_ : float or ndarray of shape (n_classes,)
        J at the solution.
    problem_ : Problem or list of Problem
        What was minimized, with the values that ``C_star``, ``gamma`` and ``balance`` stood for.
    n_iter_ : int
        Convex problems solved, the supervised start included; the largest number over the
        two-class problems.
    history_ : list
        One `Loop` (objective, n_changed, n_iter, violation, balance_residual) per convex problem;
        the first is the supervised start unless ``init`` is given.
    termination_condition_ : str
        ``"converged"``, ``"max_iter"`` (of the convex problems, or within the last of them) or
        ``"stopped"`` (by the callback); a list of these with more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    SVM : The supervised baseline, and the solver of the convex problems.
    QNS3VM : Quasi-Newton annealing for a smooth version of the objective.

    Notes
    -----
    Where the classes have no gap between them, or one of them is rare, it is worse than `SVM` on
    sets of the book's comparison, most of all with the linear kernel and a class of fewer than one
    row in five. There `S3VC` lets held-out labels weigh it against an `SVM`.

    J falls from one convex problem to the next, up to ``tol``, and the procedure ends after
    finitely many of them at a point that solves its own convex problem. That need not be the best
    minimum, and the best one need not have the lowest error. What matters most is the share r: give
    ``balance`` as a number if you know it better than a few labels do. A small C makes the decision
    rest on the clusters more than on single labels. Raising C* in stages, or s, was tried on data
    of four clusters and split them along the wrong axis more often, not less; neither is offered.

    References
    ----------
    R. Collobert, F. Sinz, J. Weston and L. Bottou, "Large scale transductive SVMs", JMLR 7
    (2006); A. L. Yuille and A. Rangarajan, "The concave-convex procedure", Neural Computation 15
    (2003).

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import CCCPS3VM
    >>> X = np.array([[-2.0], [-1.9], [-1.5], [1.4], [1.8], [2.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])
    >>> model = CCCPS3VM(kernel="linear").fit(X, y)
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    C_star: WeightOrZero | None = None
    unlabeled_loss: Literal["symmetric_ramp", "symmetric_hinge"] = "symmetric_ramp"
    s: Literal["paper"] | Annotated[float, Interval(Real, -1, 1, closed="neither")] = -0.3
    balance: Balance = "auto"
    init: Array | None = None
    tol: Tolerance = 1e-3
    max_iter: Count = 100
    max_inner_iter: Count = 1_000_000
    gram: Storage = "auto"
    memory: Megabytes = 250

    _largest_n = 200_000
    _memory = "n² kernel values, or fewer and more time"
    _side_by_side = True
    _further_limits = ("max_inner_iter",)
    _late = frozenset({"C", "C_star", "unlabeled_loss", "s", "max_iter", "max_inner_iter"})

    def _prepare(self, data):
        """Return the kernel values and the start, which all two-class problems share."""
        mean_weights = None
        unlabeled = data.codes < 0
        if self.balance is not None and unlabeled.any():
            mean_weights = np.where(unlabeled, data.sample_weight, 0.0)
            mean_weights /= mean_weights.sum()
        X, center = centered(data.X, data.kernel)
        n_solves = 1 if data.n_classes == 2 else data.n_classes
        wanted = dict(n_solves=n_solves, mean_weights=mean_weights, tol=self._kernel_tol)
        gram = Gram(X, data.kernel, self.memory, self.gram, **wanted)
        self.gram_ = gram.storage
        starts = None
        if self.init is not None:
            starts = np.asarray(self.init, dtype=float)[data.rows].reshape(data.rows.size, -1)
        return gram, center, starts

    def _training(self, X, codes, weight, classes):
        columns = 1 if classes.size == 2 else classes.size
        shape = (X.shape[0],) if columns == 1 else (X.shape[0], columns)
        if self.init is not None:
            start = np.asarray(self.init, dtype=float)
            if start.shape != shape or not np.all(np.isfinite(start)):
                raise ValueError(
                    f"init must hold finite numbers in an array of shape {shape}, got an array "
                    f"of shape {start.shape}"
                )
        return super()._training(X, codes, weight, classes)

    def _problem(self, data, ratio):
        """Return what is minimized; ``ratio`` None leaves the balance constraint out."""
        s, balance = None, "none" if ratio is None else "mean"
        if self.unlabeled_loss == "symmetric_ramp":
            s = 0.0 if self.s == "paper" else float(self.s)
        losses = LabeledLoss("hinge"), UnlabeledLoss(self.unlabeled_loss, s)
        penalties = self._penalties(data)
        return Problem(*losses, *penalties, data.kernel, balance=balance, ratio=ratio)

    def _fit_binary(self, data, shared, t, problem, index):
        gram, center, starts = shared
        first = None
        # In a search the first convex problem is the same for every C*.
        if self._kept is not None and starts is None:
            asked = {"tol": self.tol, "max_iter": self.max_inner_iter, "face_steps": _FACE_STEPS}
            first = self._again(
                f"first {index}",
                (replace(problem, C_star=0.0, unlabeled_loss=None), self.max_inner_iter),
                lambda: supervised_problem(gram, t, data.loss_weight, problem, **asked),
            )
        start = None if starts is None else starts[:, index]
        solution = solve_cccp(
            gram, t, data.loss_weight, problem, start, first=first,
            callback=lambda loop: self._report(loop._asdict()), **options(self, solve_cccp),
        )  # fmt: skip
        coef, b = linear_model(data.kernel, solution.beta, data.X, solution.b, center)
        return BinaryFit.of(solution, solution.beta, coef, b, solution.outputs)
