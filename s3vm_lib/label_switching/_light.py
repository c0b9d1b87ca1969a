"""S3VM-light (Joachims, 1999): the switches, the annealing loop and the estimator `S3VMLight`.

With a label t_j for every unlabeled row, what is minimized is

    J(f, b, t) = ½‖f‖² + C Σ_L s_i ξ_i + Σ_U s_j C*_{t_j} ξ_j,   ξ_i = max(0, 1 − t_i (f(x_i) + b)),

over f, b and all t with a given number of positives: an SVM for fixed t, and for fixed f and b a
matter of sorting. The costs C*_+ and C*_− of the two labels start small and end at C*.
"""

from numbers import Real
from typing import Annotated, Literal, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from s3vm_lib.base.classifier import Balance, BaseS3VM
from s3vm_lib.base.machine import BinaryFit
from s3vm_lib.gram import Gram
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.objective import Problem
from s3vm_lib.smo import solve_smo, svc_costs
from s3vm_lib.utils.limits import Count, Megabytes, Ratio, Tolerance, WeightOrZero
from s3vm_lib.utils.linear import centered, linear_model
from s3vm_lib.utils.validation import KernelParameters, Storage, options, parameters


class Round(NamedTuple):
    """One training of the SVM, with the switches made just before it."""

    n_iter: int  # trainings so far
    C_plus: float  # C*_+; 0 in the supervised round
    C_minus: float  # C*_−
    n_switched: int  # labels changed before this training
    gain: float  # by how much these changes lowered J(f, b, t) at the old f and b
    value: float  # J(f, b, t) after training
    gap: float  # duality gap: how much of it a longer training could take away
    smo_iter: int  # SMO iterations


class LightSolution(NamedTuple):
    """What `solve_s3vm_light` returns."""

    beta: np.ndarray  # signed dual variables, (n,)
    f: np.ndarray  # Kβ, outputs without the offset, (n,)
    b: float
    labels: np.ndarray  # t: −1 or +1 for every row, (n,)
    objective: float  # J of the problem, in which unlabeled rows cost max(0, 1 − |f|)
    n_iter: int  # trainings
    status: str  # "converged", "max_iter" or "stopped" (by the callback)
    history: list  # Round by Round; the first is supervised


# --- Switches -------------------------------------------------------------------------------------


def switch_gain(f_plus, f_minus, C_plus, C_minus):
    """Return by how much J falls when i (label +1) and j (label −1) switch labels at fixed f and b.

    G(f_i) − G(f_j) with G(z) = C*_+ max(0, 1 − z) − C*_− max(0, 1 + z). G is strictly decreasing,
    so that a switch lowers J exactly when f_i < f_j, whatever the two costs.

    Parameters
    ----------
    f_plus, f_minus : float or ndarray
        Outputs f_i of rows with label +1 and f_j of rows with label −1.
    C_plus, C_minus : float
        Costs C*_+ and C*_− of the labels.

    Returns
    -------
    float or ndarray
    """

    def G(z):
        return C_plus * np.maximum(0, 1 - z) - C_minus * np.maximum(0, 1 + z)

    return G(f_plus) - G(f_minus)


def top_labels(f, n_positive=None):
    """Return labels +1 for the largest outputs and −1 for the others, ties to the earlier rows.

    Parameters
    ----------
    f : ndarray of shape (u,)
        Outputs.
    n_positive : int, default=None
        Number of labels +1; None takes the signs.

    Returns
    -------
    ndarray of shape (u,)
    """
    if n_positive is None:
        return np.where(f > 0, 1.0, -1.0)
    labels = np.full(f.size, -1.0)
    labels[np.argsort(-f, kind="stable")[:n_positive]] = 1.0
    return labels


def worst_pairs(f, labels, rows, tol=0.0):
    """Return the disjoint pairs whose switch lowers J, worst first.

    The positive row of lowest output meets the negative row of highest output, then the next two
    meet, as long as f_i < f_j. Switching all of them gives +1 to the rows of highest output: the
    best labels for this f that keep their number of positives.

    Parameters
    ----------
    f : ndarray of shape (n,)
        Outputs.
    labels : ndarray of shape (n,)
        Labels −1 and +1.
    rows : ndarray of int
        Rows whose labels may change.
    tol : float, default=0.0
        A pair needs f_j − f_i > tol.

    Returns
    -------
    i, j : ndarrays of int, shape (n_pairs,)
        Rows with label +1 and their partners with label −1.
    """
    plus, minus = rows[labels[rows] > 0], rows[labels[rows] < 0]
    # Only rows beyond the best of the other side can be in a pair; these few are sorted.
    i = plus[f[plus] < f[minus].max(initial=-np.inf)]
    j = minus[f[minus] > f[plus].min(initial=np.inf)]
    i = i[np.argsort(f[i], kind="stable")]
    j = j[np.argsort(-f[j], kind="stable")]
    m = min(i.size, j.size)
    m = np.count_nonzero(f[j[:m]] - f[i[:m]] > tol)  # the differences fall along the list
    return i[:m], j[:m]


def wrong_signs(f, labels, rows, tol=0.0):
    """Return the rows whose output contradicts their label, t_j f_j < −tol, worst first.

    Without a constraint on the number of positives, flipping any of them lowers J.

    Parameters
    ----------
    f, labels, rows, tol
        As in `worst_pairs`.

    Returns
    -------
    ndarray of int
    """
    agreement = labels[rows] * f[rows]
    order = np.argsort(agreement, kind="stable")
    return rows[order[: np.count_nonzero(agreement < -tol)]]


def settle(beta, costs, gradient):
    """Restore Σβ = 0 inside the box at the smallest first-order price.

    What the sum is off by is taken from the variables in the order of their derivatives, each as
    far as its bound: few variables leave their bounds, where a projection would move all of them.

    Parameters
    ----------
    beta : ndarray of shape (n,)
        Dual variables inside the box.
    costs : Costs
        A feasible point must exist.
    gradient : ndarray of shape (n,)
        Derivatives (Kβ)_i + φ_i' of the dual objective.

    Returns
    -------
    ndarray of shape (n,)
    """
    excess = beta.sum()
    if abs(excess) <= 1e-12 * np.abs(beta).sum():
        return beta
    sign = np.sign(excess)
    # Variables for which one unit costs least move first, as far as their box allows.
    order = np.argsort(-sign * gradient, kind="stable")
    room = (beta - costs.lo if excess > 0 else costs.hi - beta)[order]
    taken = np.clip(abs(excess) - (np.cumsum(room) - room), 0, room)
    result = beta.copy()
    result[order] -= sign * taken
    return np.clip(result, costs.lo, costs.hi)


# --- Annealing ------------------------------------------------------------------------------------


def annealing_levels(C_star, start=1e-5, factor=2.0, plus=0.5):
    """Yield the costs (C*_+, C*_−) of the two labels, level by level, both C* at the end.

    Their mean is C*·start at first, and C*_+ has the share ``plus`` in their sum. Both are
    multiplied by ``factor`` at each level and capped at C*.

    Parameters
    ----------
    C_star : float
        C*.
    start : float, default=1e-5
        First mean of the two costs, relative to C*.
    factor : float, default=2.0
        Growth from level to level.
    plus : float, default=0.5
        Share of C*_+, strictly between 0 and 1.

    Yields
    ------
    (float, float)
    """
    scale, costs = start, None
    while costs != (C_star, C_star):
        parts = (2 * scale * plus, 2 * scale * (1 - plus))
        costs = tuple(C_star * min(1.0, part) for part in parts)
        yield costs
        scale *= factor


class _SwitchedSVM:
    """The SVM on all rows under changing labels and costs; each training starts at the last."""

    def __init__(self, gram, labels, upper, max_inner_iter) -> None:
        self.gram, self.labels, self.upper = gram, labels, upper
        self.max_inner_iter = max_inner_iter
        self.beta, self.f = np.zeros(labels.size), np.zeros(labels.size)

    def train(self, tol):
        """Train; return (J, duality gap, SMO iterations)."""
        costs = svc_costs(self.labels, self.upper)
        start = settle(self.beta, costs, self.f + costs.s1)
        solution = solve_smo(self.gram, costs, start, tol=tol, max_iter=self.max_inner_iter)
        self.beta, self.f, self.b = solution.beta, solution.f, solution.b
        self.outputs, self.status = solution.f + solution.b, solution.status
        slack = np.maximum(0, 1 - self.labels * self.outputs)
        value = float(0.5 * self.beta @ self.f + self.upper @ slack)
        return value, value + solution.objective, solution.n_iter

    def set_upper(self, rows, upper):
        """Set new upper bounds for rows; variables that were at their bound follow it."""
        follow = rows[np.abs(self.beta[rows]) >= self.upper[rows]]
        self.upper[rows] = upper
        self.beta[follow] = self.labels[follow] * self.upper[follow]

    def next_switch(self, rows, counted, switching, tol):
        """Return the rows i to switch, and their partners j; None without a count.

        Outputs are known up to tol, so that two of them have to differ by more than 2 tol.
        """
        if not counted:
            i = wrong_signs(self.outputs, self.labels, rows, tol)
            return (i[:1] if switching == "pair" else i), None
        i, j = worst_pairs(self.outputs, self.labels, rows, 2 * tol)
        return (i[:1], j[:1]) if switching == "pair" else (i, j)

    def gains(self, i, j, costs):
        """Return what each switch gains at unit weight; a flip has a partner on the boundary."""
        if j is None:
            return switch_gain(self.labels[i] * self.outputs[i], 0.0, *costs)
        return switch_gain(self.outputs[i], self.outputs[j], *costs)

    def switch(self, i, j):
        """Let partners exchange labels, costs and dual variables, which leaves Σβ as it was."""
        if j is None:
            self.labels[i] *= -1
            self.beta[i] *= -1
        else:
            for part in (self.labels, self.upper, self.beta):
                part[i], part[j] = part[j], part[i]


def solve_s3vm_light(
    gram, t, sample_weight, problem, *, n_positive=None, annealing_start=1e-5, annealing_factor=2.0,
    annealing_ratio="balanced", switching="all", tol=1e-3, annealing_tol=1e-3, max_iter=100_000,
    max_inner_iter=1_000_000, callback=None,
):  # fmt: skip
    """Switch labels under growing costs C*_+ and C*_−, from the labels of the supervised SVM.

    Parameters
    ----------
    gram : Gram
        Kernel values of all rows, labeled and unlabeled.
    t : ndarray of shape (n,)
        −1 and +1, and 0 for unlabeled rows.
    sample_weight : ndarray of shape (n,)
        Weights s, equal on unlabeled rows when their positives are counted.
    problem : Problem
        Hinge and symmetric hinge with C, C* and a free bias.
    n_positive : int, default=None
        Number of unlabeled rows with label +1; None does not constrain it.
    annealing_start, annealing_factor : float
        See `annealing_levels`.
    annealing_ratio : {"balanced", "equal", "paper"}, default="balanced"
        C*_+ : C*_− before the last level, where r is the share of positives: 1 − r : r, 1 : 1 or
        r : 1 − r.
    switching : {"all", "pair"}, default="all"
        Before the next training switch every pair (without a count: every row) that lowers J, or
        only the worst one.
    tol : float, default=1e-3
        Tolerance of the SVM at the last level; pairs with f_j − f_i ≤ 2 tol stay as they are.
    annealing_tol : float, default=1e-3
        The same at the levels before, where it is larger than ``tol``.
    max_iter : int, default=100_000
        Largest number of trainings.
    max_inner_iter : int, default=1_000_000
        Largest number of SMO iterations of one training.
    callback : callable, default=None
        Called with each `Round`; a true value stops.

    Returns
    -------
    LightSolution
    """
    unlabeled = np.flatnonzero(t == 0)
    upper = np.where(t == 0, 0.0, problem.C * sample_weight)
    machine = _SwitchedSVM(gram, np.where(t == 0, 1.0, t), upper, max_inner_iter)
    semi_supervised = unlabeled.size > 0 and problem.C_star > 0
    loose = max(tol, annealing_tol)
    history = []

    def train(tol, costs=(0.0, 0.0), n_switched=0, gain=0.0):
        """Record one `Round`; return whether the callback stops after it."""
        report = machine.train(tol)
        history.append(Round(len(history) + 1, *costs, n_switched, gain, *report))
        return callback is not None and bool(callback(history[-1]))

    def finish(status):
        f, b = machine.f, machine.b
        value = problem.value(f + b, t, machine.beta @ f, b, sample_weight)
        labels, n_iter = machine.labels, len(history)
        return LightSolution(machine.beta, f, b, labels, float(value), n_iter, status, history)

    # The numbers are the lines of the chapter's algorithm. 1: labeled points alone.
    stopped = train(loose if semi_supervised else tol)
    # 2
    machine.labels[unlabeled] = top_labels(machine.outputs[unlabeled], n_positive)
    if stopped or not semi_supervised:
        return finish("stopped" if stopped else machine.status)
    plus = 0.5
    if n_positive is not None and 0 < n_positive < unlabeled.size and annealing_ratio != "equal":
        plus = n_positive / unlabeled.size
        plus = plus if annealing_ratio == "paper" else 1 - plus
    # 3, 4: from small costs up to C*.
    for costs in annealing_levels(problem.C_star, annealing_start, annealing_factor, plus):
        if len(history) >= max_iter:  # what was trained last is not touched any more
            return finish("max_iter")
        level_tol = tol if costs == (problem.C_star, problem.C_star) else loose
        by_label = np.where(machine.labels[unlabeled] > 0, *costs)
        machine.set_upper(unlabeled, sample_weight[unlabeled] * by_label)
        n_switched, gain, seen = 0, 0.0, set()
        while True:
            # 5
            if train(level_tol, costs, n_switched, gain):
                return finish("stopped")
            seen.add(machine.labels[unlabeled].tobytes())
            # 6, 7: the pairs, or rows without a fixed number of labels, whose switch lowers J.
            i, j = machine.next_switch(unlabeled, n_positive is not None, switching, level_tol)
            if i.size == 0:
                break
            if len(history) >= max_iter:
                return finish("max_iter")
            # 8
            gain = float(sample_weight[i] @ machine.gains(i, j, costs))
            n_switched = i.size if j is None else 2 * i.size
            machine.switch(i, j)
            # An inexact training could lead back to labels that it had left.
            if machine.labels[unlabeled].tobytes() in seen:
                machine.switch(i, j)
                break
    return finish(machine.status)


# --- The estimator --------------------------------------------------------------------------------


class LabelSwitching(BaseS3VM):
    """Counts of rows need equal weights; the labels of a fit are kept as ``assigned_``."""

    def _check_weights(self, data):
        weight = data.sample_weight[data.codes < 0]
        if self.balance is not None and weight.size and np.ptp(weight) > 0:
            raise ValueError(
                "sample_weight must give all unlabeled rows an equal weight (or 0), because "
                f"{type(self).__name__} counts them, got values from {weight.min():g} to "
                f"{weight.max():g}; balance=None allows any weights"
            )

    def _transduce(self, X, codes, rows, fits):
        found = super()._transduce(X, codes, rows, fits)
        assigned = np.zeros((len(fits), codes.size))
        assigned[:, rows] = [fit.extra["labels"] for fit in fits]
        self.assigned_ = assigned
        return found


@parameters
class S3VMLight(KernelParameters, LabelSwitching):
    """Semi-supervised support vector machine by switching labels (S3VM-light, Joachims' TSVM).

    Minimizes

        ½‖f‖² + C Σ_L s_i max(0, 1 − t_i (f(x_i) + b)) + C* Σ_U s_j max(0, 1 − t_j (f(x_j) + b))

    over f, b and the labels t_j ∈ {−1, +1} of the unlabeled rows, of which round(r u) are +1. The
    labels start as the supervised SVM orders the rows. Under costs that grow from nearly 0 to C*,
    the SVM is trained on all rows and pairs of a positive and a negative label are switched where
    that lowers the objective, until no pair is left.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the hinge losses of labeled rows.
    C_star : float, default=None
        Weight of the hinge losses of unlabeled rows at the end. None gives the labeled and the
        unlabeled part equal total weight; SVMlight takes C_star = C.
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
    balance : "auto", "labels", another name, float, dict or None, default="auto"
        Share r of the class ``classes_[1]`` among the assigned labels: estimated from labels and
        unlabeled rows together, by the share among the labeled rows, in another way that
        `s3vm_lib.class_ratio` has a name for, given (in a dict for each class), or
        free. When it is free the labels start as the signs of the supervised outputs, and single
        labels are flipped.
    switching : {"all", "pair"}, default="all"
        Switch every disjoint pair that lowers the objective before the next training, or only the
        worst pair, as in the paper and in SVMlight.
    annealing_start : float, default=1e-5
        Costs of the unlabeled rows at the first level, relative to ``C_star``.
    annealing_factor : float, default=2.0
        Growth of the costs from level to level; 1.5 in SVMlight.
    annealing_ratio : {"balanced", "equal", "paper"}, default="balanced"
        Ratio of the costs of the labels +1 and −1 before the last level. ``"balanced"``, 1 − r : r,
        gives both labels the same total weight; ``"paper"``, r : 1 − r, gives more to the label
        that is more frequent anyway.
    tol : float, default=1e-3
        Largest violation of the optimality conditions of the last SVM, in units of its outputs;
        pairs whose outputs differ by at most twice as much stay as they are. Below 1e-5, or below
        1.2e-6 times the largest k(x, x), kernel values are kept in double instead of single
        precision.
    annealing_tol : float, default=1e-3
        The same at the levels before the last, where it is larger than ``tol``.
    max_iter : int, default=100_000
        Largest number of trainings.
    max_inner_iter : int, default=1_000_000
        Largest number of SMO iterations of one training.
    gram : {"auto", "full", "rows"}, default="auto"
        Keep the whole Gram matrix or the rows that are visited, see `Gram`.
    memory : float, default=1000
        Memory for kernel values in MiB.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
    verbose : int, default=0
        Print one line per training.
    callback : callable, default=None
        Called after each training with the `Round` as a dict; a true value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_ratio_ : ndarray of shape (n_classes,), or None
        Shares of the classes among the unlabeled rows, as ``balance`` gave them; None without.
    support_ : ndarray of shape (n_support,)
        Training rows with a nonzero dual variable.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, d)
        These rows; absent with ``kernel="precomputed"``.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Signed dual variables β_i = t_i α_i; one row for two classes, otherwise one per class.
    coef_ : ndarray of shape (n_problems, d)
        Weights of the features, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (n_problems,)
        Offsets b.
    gamma_ : float
        The kernel coefficient that was used.
    gram_ : {"full", "rows"}
        How kernel values were kept.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the predicted class where it was unlabeled.
    assigned_ : ndarray of shape (n_problems, n)
        The labels t at the end: +1 for ``classes_[1]``, or for each class against the rest, −1
        otherwise, 0 for rows without influence (no weight, or C* = 0). Among the unlabeled rows
        round(r u) are +1; the signs of the outputs may differ from them, see Notes.
    objective_ : float or ndarray of shape (n_classes,)
        Value of ``problem_`` at the solution, where an unlabeled row costs C* max(0, 1 − |f|).
    problem_ : Problem or list of Problem
        What was minimized. `Problem.balance_residual` of the outputs is by how many their
        signs miss the count of the assigned labels.
    n_iter_ : int
        Trainings, the largest number over the two-class problems.
    history_ : list
        One `Round` (n_iter, C_plus, C_minus, n_switched, gain, value, gap, smo_iter) per training;
        the first is supervised. Its value is the objective above with the costs of its level.
    termination_condition_ : str
        ``"converged"``, ``"max_iter"`` (too few trainings, or SMO iterations in the last one) or
        ``"stopped"`` (by the callback); a list of these with more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    SVM : The supervised baseline.

    Notes
    -----
    Where the classes have no gap between them, or one of them is rare, it is worse than `SVM` on
    sets of the book's comparison, most of all with the linear kernel and a few rows in a hundred of
    one class. There `S3VC` lets held-out labels weigh it against an `SVM`.

    For fixed f and b, switching the labels of a positive row i and a negative row j lowers the
    objective exactly when f(x_i) < f(x_j), also while the two labels have different costs. At the
    end every row with label +1 has an output at least as high as every row with label −1, up to
    2 ``tol``; in terms of the paper, no pair has ξ_i + ξ_j > 2.

    The count is a constraint on the labels and not on the outputs. Where a share r does not suit
    the data, the boundary f = 0 may leave some rows on the side of the other label, and their loss
    in ``problem_``, that of the nearer label, is then lower than with the assigned label.
    ``history_[-1].value`` has the objective with the assigned labels.

    Rows are counted, not weighed: the weights of unlabeled rows must be equal unless ``balance``
    is None.

    References
    ----------
    T. Joachims, "Transductive inference for text classification using support vector machines",
    ICML 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import S3VMLight
    >>> X = np.array([[-2.0], [-1.9], [-1.5], [1.4], [1.8], [2.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])
    >>> model = S3VMLight(kernel="linear").fit(X, y)
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    C_star: WeightOrZero | None = None
    balance: Balance = "auto"
    switching: Literal["all", "pair"] = "all"
    annealing_start: Annotated[float, Interval(Real, 1e-20, 1, closed="both")] = 1e-5
    annealing_factor: Ratio = 2.0
    annealing_ratio: Literal["balanced", "equal", "paper"] = "balanced"
    tol: Tolerance = 1e-3
    annealing_tol: Tolerance = 1e-3
    max_iter: Count = 100_000
    max_inner_iter: Count = 1_000_000
    gram: Storage = "auto"
    memory: Megabytes = 1000

    _largest_n = 20_000
    _memory = "n × n numbers"
    _side_by_side = True
    _further_limits = ("max_inner_iter",)
    _late = frozenset({"C", "annealing_start", "annealing_factor", "annealing_ratio"})

    def _prepare(self, data):
        """Return rows that matter, their kernel values, and what they were shifted by."""
        unlabeled = data.codes < 0
        self._check_weights(data)
        C_star = self._penalties(data)[1]
        rows = np.flatnonzero(~unlabeled) if C_star == 0 else np.arange(unlabeled.size)
        X = data.X[rows]
        if self._precomputed:
            X = np.ascontiguousarray(X[:, rows])
        X, center = centered(X, data.kernel)
        gram = Gram(X, data.kernel, self.memory, self.gram, n_solves=2, tol=self._kernel_tol)
        self.gram_ = gram.storage
        return rows, gram, center

    def _problem(self, data, ratio):
        loss, balance = LabeledLoss("hinge"), "none" if ratio is None else "counts"
        terms = loss, loss.effective, *self._penalties(data)
        return Problem(*terms, data.kernel, balance=balance, ratio=ratio)

    def _fit_binary(self, data, shared, t, problem, index):
        rows, gram, center = shared
        n_positive = None if problem.ratio is None else round(problem.ratio * np.sum(t == 0))
        solution = solve_s3vm_light(
            gram, t[rows], data.loss_weight[rows], problem, n_positive=n_positive,
            callback=lambda round: self._report(round._asdict()), **options(self, solve_s3vm_light),
        )  # fmt: skip
        b = solution.b
        dual, outputs, labels = np.zeros(t.size), np.full(t.size, np.nan), np.zeros(t.size)
        dual[rows], outputs[rows], labels[rows] = solution.beta, solution.f + b, solution.labels
        coef, b = linear_model(data.kernel, dual, data.X, b, center)
        return BinaryFit.of(solution, dual, coef, b, outputs, {"labels": labels})
