"""Multi-switch (Sindhwani and Keerthi, 2006): labels of the unlabeled rows, switched in bulk.

With a label y_j for every unlabeled row what is left is an L2-SVM,

    F(v, y) = ½‖v‖² + C Σ_L s_i ℓ(t_i, o_i) + C* Σ_U s_j ℓ(y_j, o_j),

and minimizing over the labels as well, round(r u) of them positive, is the problem of the S3VM.
The method alternates between the two: train, then give better labels to the same outputs. Either
step lowers F, so a level of C* ends after finitely many rounds. C* rises from almost nothing.
"""

from typing import NamedTuple

import numpy as np

from s3vm_lib.base.classifier import Balance
from s3vm_lib.base.machine import BinaryFit
from s3vm_lib.finite_newton import linear_rows, solve_finite_newton
from s3vm_lib.label_switching._light import LabelSwitching, top_labels, worst_pairs, wrong_signs
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.objective import Problem
from s3vm_lib.utils.limits import Count, Ratio, Tolerance, Weight, WeightOrZero
from s3vm_lib.utils.validation import Client, options, parameters

_TIE = 1e-10  # outputs that differ by less count as equal: identical rows, rounded differently


class Level(NamedTuple):
    """One value of C*."""

    C_star: float
    objectives: tuple  # F after each training
    n_rounds: int  # trainings
    n_switched: int  # labels that changed before one of the trainings
    n_iter: int  # Newton steps
    n_cg: int  # iterations of conjugate gradients
    status: str  # "converged", "max_rounds" or "max_iter"


class Solution(NamedTuple):
    """What `solve_multi_switch` returns."""

    v: np.ndarray  # weights of the features and, last, the offset, (d + 1,)
    outputs: np.ndarray  # (n,)
    labels: np.ndarray  # −1 and +1 for every row, those of the last training, (n,)
    objective: float  # J: unlabeled rows cost the smaller of the losses of both labels
    n_iter: int  # Newton steps of all levels
    status: str
    history: tuple  # Level by Level; the first has C* = 0


# --- Labels ---------------------------------------------------------------------------------------


def switch_labels(labels, outputs, n_switch=None, keep_counts=True):
    """Return the labels after one round of switching; every single switch lowers the loss.

    Giving a row of output o the label −1 in place of +1 costs h(o) = ½ max(0, 1 + o)² −
    ½ max(0, 1 − o)², which strictly increases. A pair of a positive row i and a negative row j
    gains h(o_j) − h(o_i) > 0 by exchanging labels if and only if o_i < o_j. Pairs are taken in the
    order of their gain: the lowest positive with the highest negative, and so on. Without a limit
    the positives are afterwards the largest outputs.

    Parameters
    ----------
    labels, outputs : ndarrays of shape (u,)
        Labels −1 and +1, and outputs.
    n_switch : int, default=None
        Largest number of pairs, or of single rows without counts.
    keep_counts : bool, default=True
        Whether rows exchange labels in pairs. Otherwise those change whose label is not the sign
        of their output, the most wrong first.

    Returns
    -------
    ndarray of shape (u,)
    """
    labels, rows = labels.copy(), np.arange(labels.size)
    if keep_counts:
        i, j = worst_pairs(outputs, labels, rows, _TIE)
        labels[i[:n_switch]], labels[j[:n_switch]] = -1.0, 1.0
    else:
        labels[wrong_signs(outputs, labels, rows, _TIE)[:n_switch]] *= -1
    return labels


def c_star_levels(C_star, start, factor):
    """Return start, factor · start, … below C*, and C* itself; none if C* is 0."""
    levels = []
    while start < C_star and start > 0:
        levels.append(start)
        start *= factor
    return (*levels, C_star) if C_star > 0 else ()


# --- The solver -----------------------------------------------------------------------------------


def solve_multi_switch(
    rows, t, sample_weight, problem, *, start=1e-5, factor=1.5, n_switch=None, max_rounds=1000,
    tol=1e-3, path_tol=0.03, max_iter=50, callback=None,
):  # fmt: skip
    """Train with assigned labels, switch them until no switch gains, then raise C* and repeat.

    Parameters
    ----------
    rows : SparseRows, DenseRows or ClusterRows
        The n rows.
    t : ndarray of shape (n,)
        −1 and +1, and 0 for unlabeled rows; at least one labeled row.
    sample_weight : ndarray of shape (n,)
        Weights s; equal on the unlabeled rows if the problem counts labels.
    problem : Problem
        Squared hinge and squared symmetric hinge, regularized bias, balance "counts" or "none".
    start : float, default=1e-5
        First C*, as a multiple of the one that gives both parts equal total weight.
    factor : float, default=1.5
        Ratio of successive C*; the last one is that of the problem.
    n_switch : int, default=None
        Largest number of pairs (without counts: of rows) that one round switches.
    max_rounds : int, default=1000
        Largest number of trainings at one C*.
    tol : float, default=1e-3
        Precision of the last training, see `solve_finite_newton`.
    path_tol : float, default=0.03
        Precision of the trainings before, if that is coarser than `tol`.
    max_iter : int, default=50
        Largest number of Newton steps of one training.
    callback : callable, default=None
        Called after each level with the `Level`; a true value stops.

    Returns
    -------
    Solution
    """
    labeled = t != 0
    index, unlabeled = np.flatnonzero(labeled), np.flatnonzero(~labeled)
    counts = problem.balance == "counts"
    path_tol = max(tol, path_tol)

    def costs(labels, C_star):
        weight = np.where(labeled, problem.C, C_star) * sample_weight
        return np.where(labels > 0, weight, 0.0), np.where(labels < 0, weight, 0.0)

    # The numbers are the lines of the chapter's algorithm. 1: labeled rows alone.
    first = tuple(cost[index] for cost in costs(t, 0.0))
    now = solve_finite_newton(rows.take(index), *first, tol=tol, max_iter=max_iter)
    now = now._replace(outputs=rows.outputs(now.v))
    history = [Level(0.0, (now.objective,), 1, 0, now.n_iter, now.n_cg, now.status)]
    stopped = callback is not None and callback(history[-1])
    labels, levels = t.astype(float), ()
    if unlabeled.size:
        # 2
        outputs = now.outputs[unlabeled]
        n_positive = round(problem.ratio * unlabeled.size) if counts else None
        labels[unlabeled] = found = top_labels(outputs, n_positive)
        # 3, 7: the costs, up to C*.
        equal = problem.C * sample_weight[labeled].sum() / sample_weight[unlabeled].sum()
        levels = c_star_levels(problem.C_star, start * equal, factor)
    for C_star in levels:
        if stopped:
            break
        objectives, switched, n_iter, n_cg, status = [], 0, 0, 0, "max_rounds"
        precision = path_tol
        while len(objectives) < max_rounds:
            switched += int(np.count_nonzero(found != labels[unlabeled]))
            labels[unlabeled] = found
            # 4: from the last weights on.
            plus, minus = costs(labels, C_star)
            now = solve_finite_newton(
                rows, plus, minus, now.v, now.outputs, tol=precision, max_iter=max_iter
            )
            objectives.append(now.objective)
            n_iter, n_cg = n_iter + now.n_iter, n_cg + now.n_cg
            # 5, 6: the labels that fit these outputs best; again while one changes. They are taken
            # with the next training, so that what is returned was trained on its labels.
            found = switch_labels(labels[unlabeled], now.outputs[unlabeled], n_switch, counts)
            if np.any(found != labels[unlabeled]):
                continue
            # Settled at the precision of the path: the last cost is solved to the end.
            if C_star == levels[-1] and precision > tol:
                precision = tol
            else:
                status = "converged"
                break
        status = "max_iter" if now.status == "max_iter" else status
        history.append(
            Level(C_star, tuple(objectives), len(objectives), switched, n_iter, n_cg, status)
        )
        stopped = callback is not None and callback(history[-1])
    v = now.v
    value = problem.value(now.outputs, t, v[:-1] @ v[:-1], v[-1], sample_weight)
    failed = any(level.status != "converged" and level.status != "no_step" for level in history)
    n_iter = sum(level.n_iter for level in history)
    status = "stopped" if stopped else "max_iter" if failed else "converged"
    return Solution(v, now.outputs, labels, float(value), n_iter, status, tuple(history))


# --- The estimator --------------------------------------------------------------------------------


@parameters
class MultiSwitchTSVM(LabelSwitching):
    """Linear transductive support vector machine by multi-switch (SVMlin's TSVM).

    Minimizes over w, b and a label y_j for each unlabeled row

        ½‖w‖² + ½b² + C Σ_L s_i ℓ(t_i, o_i) + C* Σ_U s_j ℓ(y_j, o_j),    ℓ(y, o) = ½ max(0, 1 − yo)²

    with outputs o = w·x + b, where round(r u) of the u labels y_j must be positive. Training with
    given labels and giving better labels to the same outputs take turns until neither changes
    anything, while C* rises to its value from almost nothing; each training is a modified finite
    Newton method on the sparse or dense rows, started at the last one.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the labeled losses; 1/(λl) in the notation of SVMlin, for its option -W λ.
    C_star : float, default=None
        Weight of the unlabeled losses; λ′/(λu) in the notation of SVMlin, for its option -U λ′.
        None gives the labeled and the unlabeled part equal total weight, which is λ′ = 1.
    balance : "auto", "labels", another name, float, dict or None, default="auto"
        Share r of the class ``classes_[1]`` among the labels of the unlabeled rows: estimated from
        labels and unlabeled rows together, by the share among the labeled rows, in another way
        that `s3vm_lib.class_ratio` has a name for, or given (in a dict for each class). None lets
        rows change their label one by one.
    start : float, default=1e-5
        First C*, as a multiple of the one that gives both parts equal total weight.
    factor : float, default=1.5
        Ratio of two successive C*.
    n_switch : int, default=None
        Largest number of pairs that switch before the next training; None means all that gain.
        (SVMlin: 10000.)
    max_rounds : int, default=1000
        Largest number of trainings at one C*.
    tol : float, default=1e-3
        Largest relative error of (w, b) as a minimizer for the final labels: the last training
        ends when ‖∇F‖ ≤ tol ‖(w, b)‖.
    path_tol : float, default=0.03
        The same for the trainings before, where it is coarser than `tol`. SVMlin's trainings are
        all tight; the errors do not differ.
    max_iter : int, default=50
        Largest number of Newton steps of one training.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
    verbose : int, default=0
        Print one line per level of C*; on stderr a line that rewrites itself shows the time left.
    client : dask.distributed.Client, default=None
        The workers of this cluster open the rows, keep them, and take the products with them. X has
        to be a `numpy.memmap` that all workers can open, or a CSR matrix of three of them. A clone
        of the estimator has the client, a pickle or a copy has None.
    callback : callable, default=None
        Called after each level with a dict (C_star, n_rounds, n_switched, n_iter, n_cg); a true
        value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_ratio_ : ndarray of shape (n_classes,), or None
        Shares of the classes among the unlabeled rows, as ``balance`` gave them; None without.
    coef_ : ndarray of shape (n_problems, d)
        Weights w; one row for two classes, otherwise one per class.
    intercept_ : ndarray of shape (n_problems,)
        Offsets b. They are regularized: b is the weight of a further feature that is always 1.
    gamma_ : float
        Not used by linear methods.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the sign of its output where it was unlabeled.
    assigned_ : ndarray of shape (n_problems, n)
        The labels at the end, those of the last training: +1 for ``classes_[1]``, or for each class
        against the rest, −1 otherwise, 0 for rows of no weight. Among the unlabeled rows round(r u)
        are +1; the signs of the outputs may differ from them.
    objective_ : float or ndarray of shape (n_classes,)
        J at the solution: every unlabeled row costs the smaller of the losses of both labels.
        ``history_[-1].objectives[-1]`` is the objective with the labels as they were assigned; it
        is larger where counting forced a label on a row that its output contradicts.
    problem_ : Problem or list of Problem
        What was minimized. `Problem.balance_residual` of the outputs is how many of their signs
        contradict the count, which binds the assigned labels only.
    n_iter_ : int
        Newton steps of all trainings, the largest number over the two-class problems.
    history_ : list
        One `Level` (C_star, objectives, n_rounds, n_switched, n_iter, n_cg, status) per value of
        C*; the first has C* = 0 and is the supervised model.
    termination_condition_ : str
        ``"converged"``, ``"max_iter"`` (a level, or the last training of one, met its limit) or
        ``"stopped"`` (by the callback); a list of these with more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    Raises
    ------
    ValueError
        From ``fit``, for unlabeled rows of unequal positive weights together with a balance:
        labels are counted, and a count has no weights.

    See Also
    --------
    DAS3VM : The same losses by deterministic annealing; slower.

    Notes
    -----
    Where one class of sparse rows is rare, a few in a hundred, or no plane separates the classes,
    it is worse than a linear `SVM` on sets of the book's comparison; `S3VC` lets held-out
    labels weigh it against an `SVM`.

    Scale the rows to unit length (text), or center the features: the offset is regularized, so the
    origin matters. That has a use: where r is estimated from a few labels and wrong, a free offset
    would follow it. With more features than rows any labeling can be fitted, and the first labels
    stay unless C is small. For ‖x‖² = R begin the search near C = 50/(R l).

    References
    ----------
    V. Sindhwani and S. S. Keerthi, "Large scale semi-supervised linear SVMs", SIGIR 2006,
    section 3; S. S. Keerthi and D. DeCoste, "A modified finite Newton method for fast solution of
    large scale linear SVMs", JMLR 6, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import MultiSwitchTSVM
    >>> X = np.array([[-2.0], [-1.9], [-1.5], [1.4], [1.8], [2.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])
    >>> model = MultiSwitchTSVM().fit(X, y)
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    C_star: WeightOrZero | None = None
    balance: Balance = "auto"
    start: Weight = 1e-5
    factor: Ratio = 1.5
    n_switch: Count | None = None
    max_rounds: Count = 1000
    tol: Tolerance = 1e-3
    path_tol: Tolerance = 0.03
    max_iter: Count = 50
    client: Client = None

    _largest_n = 1_000_000
    _memory = "n × d numbers, or the non-zeros"
    _side_by_side = True
    _further_limits = ("max_rounds",)
    _late = frozenset({"C", "C_star"})

    def _prepare(self, data):
        """Return the rows, which all two-class problems share."""
        self._check_weights(data)
        return linear_rows(data.X, self.client)

    def _problem(self, data, ratio):
        """Return what is minimized; ``ratio`` None leaves the counts out."""
        loss, balance = LabeledLoss("squared_hinge"), "none" if ratio is None else "counts"
        terms = loss, loss.effective, *self._penalties(data)
        return Problem(*terms, data.kernel, "regularized", balance, ratio)

    def _fit_binary(self, data, rows, t, problem, index):
        mass, rest = data.loss_weight[t != 0].sum(), data.loss_weight[t == 0].sum()
        least = self.start * problem.C * mass / rest if rest > 0 else 0.0
        levels = c_star_levels(problem.C_star, least, self.factor) if rest > 0 else ()
        with self._reporting("levels of C*", 1 + len(levels)) as callback:
            asked = options(self, solve_multi_switch)
            solution = solve_multi_switch(
                rows, t, data.loss_weight, problem, callback=callback, **asked
            )
        coef, b = solution.v[:-1], float(solution.v[-1])
        extra = {"labels": solution.labels}
        return BinaryFit.of(solution, None, coef, b, solution.outputs, extra)
