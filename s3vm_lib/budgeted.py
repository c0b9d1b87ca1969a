"""A budgeted S3VM: the graph kernel machine with a limit on the number of its support rows.

The method is that of `s3vm_lib.graph_kernel_machine` with the hinge and p = 1. Its memory grows
with every row that is visited; here rows that carried a label and all others get a budget each, B_l
and B_u, and after a step that exceeds one of them the row with the smallest coefficient is removed,

- *removal*: as it is;
- *projection*: onto the nearest row r' that stays, which takes over the share k(r, r')/k(r', r');
- *merging*: together with that row, both replaced by one point between the two (rbf kernel).

What is done to the accumulator a is done to b as well, so that the average stays the average of the
iterates. A step costs O((B_l + B_u) d), and T steps are linear in T.

This is a reconstruction: the article that proposes the method was not available, and what is
written here follows from how two later papers describe it.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import block_diag

from s3vm_lib.graph_kernel_machine import (  # isort: skip
    STATE, TOTALS, Accumulators, GraphClassifier, draw_steps, terms_of,
)  # fmt: skip
from s3vm_lib.kernels import LAPLACIAN, LINEAR, PRECOMPUTED, RBF
from s3vm_lib.utils.jit import njit
from s3vm_lib.utils.limits import Count
from s3vm_lib.utils.validation import parameters

__all__ = ["BGS3VM", "BudgetedAccumulators", "budgeted_steps", "kernel_value", "merge_point"]

MAINTENANCE = ("projection", "removal", "merging")
PROJECTION, REMOVAL, MERGING = range(3)
_LARGEST = 2**25  # values that are kept dense, 256 MB
_WORK = 2**27  # multiplications in one compiled call


# --- Kernel values and merged points --------------------------------------------------------------


@njit
def kernel_value(code, parameters, x, z, row):
    """Return k(x, z) of two dense rows; entry ``row`` of x where x is a row of a Gram matrix."""
    if code == PRECOMPUTED:
        return x[row]
    total = 0.0
    # As `s3vm_lib.kernels` has them, one pair at a time.
    if code == RBF:
        for k in range(x.size):
            total += (x[k] - z[k]) ** 2
        return parameters[3] * math.exp(-parameters[0] * total)
    if code == LAPLACIAN:
        for k in range(x.size):
            total += abs(x[k] - z[k])
        return parameters[3] * math.exp(-parameters[0] * total)
    for k in range(x.size):
        total += x[k] * z[k]
    if code == LINEAR:
        return parameters[3] * total
    return parameters[3] * (parameters[0] * total + parameters[2]) ** parameters[1]


@njit
def _kept(a_r, a_s, kappa, h):
    """Return the length of a_r Φ_r + a_s Φ_s projected onto Φ_z, z = h x_r + (1 − h) x_s."""
    return abs(a_r * kappa ** ((1.0 - h) ** 2) + a_s * kappa ** (h * h))


@njit
def merge_point(a_r, a_s, kappa):
    """Return where two points of an rbf kernel merge: h of z = h x_r + (1 − h) x_s.

    z maximizes ``|a_r κ^((1−h)²) + a_s κ^(h²)|``, the length of the projection of
    a_r Φ_r + a_s Φ_s onto Φ_z, with κ = k(x_r, x_s) / σ_f². Of coefficients of opposite signs one
    end is best, which is a projection.

    Parameters
    ----------
    a_r, a_s : float
        Coefficients.
    kappa : float
        0 ≤ κ ≤ 1.

    Returns
    -------
    float
        0 ≤ h ≤ 1, from a grid of 33 values and 30 golden sections.
    """
    best, top = 0.0, -1.0
    # A grid, since there may be two maxima, then golden section around its best point.
    for k in range(33):
        value = _kept(a_r, a_s, kappa, k / 32.0)
        if value > top:
            best, top = k / 32.0, value
    low, high = max(0.0, best - 1.0 / 32.0), min(1.0, best + 1.0 / 32.0)
    golden = 0.6180339887498949
    for _ in range(30):
        one, two = high - golden * (high - low), low + golden * (high - low)
        if _kept(a_r, a_s, kappa, one) > _kept(a_r, a_s, kappa, two):
            high = two
        else:
            low = one
    middle = 0.5 * (low + high)
    return middle if _kept(a_r, a_s, kappa, middle) > top else best


# --- Slots ----------------------------------------------------------------------------------------


class Slots(NamedTuple):
    """The support rows, in B_l + B_u + 3 slots of which the first are in use."""

    S: np.ndarray  # points, (m, d)
    ids: np.ndarray  # row numbers, −1 for merged points, (m,)
    kinds: np.ndarray  # 0 for rows that carry a label, 1 for others, (m,)
    a: np.ndarray  # the two accumulators, (m,)
    b: np.ndarray
    counts: np.ndarray  # slots in use of each kind, (2,)


class StepRows(NamedTuple):
    """The rows of some steps: the labeled row and both ends of the edge of each."""

    points: np.ndarray  # (3, steps, d)
    rows: np.ndarray  # their numbers, (3, steps)
    kinds: np.ndarray  # as in `Slots`, (3, steps)
    factor: np.ndarray  # weights of the edges, (steps,)
    y: np.ndarray  # labels −1 and +1, (steps,)


@njit
def _sum_at(code, parameters, x, slots):
    total = 0.0
    for j in range(slots.counts[0] + slots.counts[1]):
        total += slots.a[j] * kernel_value(code, parameters, x, slots.S[j], slots.ids[j])
    return total


@njit
def _put(x, row, kind, delta, h, slots):
    """Add ``delta`` to a and h · delta to b at the slot of a row, or at a new one."""
    size = slots.counts[0] + slots.counts[1]
    for j in range(size):
        if slots.ids[j] == row:
            slots.a[j] += delta
            slots.b[j] += h * delta
            return
    # A row that comes for the first time takes the next slot.
    slots.ids[size], slots.kinds[size] = row, kind
    for k in range(x.size):  # a loop compiles ten times faster than an array put into another
        slots.S[size, k] = x[k]
    slots.a[size], slots.b[size] = delta, h * delta
    slots.counts[kind] += 1


@njit
def _drop(r, slots):
    """Remove slot r; the last one takes its place."""
    last = slots.counts[0] + slots.counts[1] - 1
    slots.counts[slots.kinds[r]] -= 1
    slots.ids[r], slots.kinds[r] = slots.ids[last], slots.kinds[last]
    for k in range(slots.S.shape[1]):
        slots.S[r, k] = slots.S[last, k]
    slots.a[r], slots.b[r] = slots.a[last], slots.b[last]


@njit
def _maintain(code, parameters, maintenance, kind, slots):
    """Free one slot of a kind (0: labeled rows, 1: others)."""
    S, ids, kinds, a, b, counts = slots
    size = counts[0] + counts[1]
    # The slot to go: that of the smallest coefficient.
    r = -1
    for j in range(size):
        if kinds[j] == kind and (r < 0 or abs(a[j]) < abs(a[r])):
            r = j
    if maintenance == REMOVAL:
        _drop(r, slots)
        return
    # Its nearest slot, of the same kind if they are to be merged.
    near, largest = -1, -math.inf
    for j in range(size):
        if j == r or (maintenance == MERGING and kinds[j] != kind):
            continue
        value = kernel_value(code, parameters, S[r], S[j], ids[j])
        self_value = kernel_value(code, parameters, S[j], S[j], ids[j])
        # The cosine: with kernels of one length it is the nearest row.
        cosine = value / math.sqrt(self_value) if self_value > 0.0 else -math.inf
        if cosine > largest:
            near, largest = j, cosine
    if near >= 0 and maintenance == PROJECTION:
        value = kernel_value(code, parameters, S[r], S[near], ids[near])
        share = value / kernel_value(code, parameters, S[near], S[near], ids[near])
        # What becomes of a becomes of b: w̄ stays the average of the iterates.
        a[near] += share * a[r]
        b[near] += share * b[r]
    elif near >= 0:
        kappa = kernel_value(code, parameters, S[r], S[near], ids[near]) / parameters[3]
        h = merge_point(a[r], a[near], kappa)
        to_r, to_near = kappa ** ((1.0 - h) ** 2), kappa ** (h * h)
        a[near] = to_r * a[r] + to_near * a[near]
        b[near] = to_r * b[r] + to_near * b[near]
        for k in range(S.shape[1]):
            S[near, k] = h * S[r, k] + (1.0 - h) * S[near, k]
        ids[near] = -1
    _drop(r, slots)


@njit
def budgeted_steps(
    first, draws, terms, code, parameters, maintenance, budgets, slots, state, totals
):
    """Take steps of the hinge machine with p = 1, on rows drawn beforehand, within two budgets.

    Comments number the lines of the algorithm in the chapter on the graph kernel machine, to which
    the budgets are added.

    Parameters
    ----------
    first : int
        Number of steps done before.
    draws : StepRows
    terms : Terms
        See `s3vm_lib.graph_kernel_machine`; the loss is the hinge, and there is no ball.
    code, parameters
        The kernel, see `s3vm_lib.kernels.kernel_rows`.
    maintenance : int
        ``PROJECTION``, ``REMOVAL`` or ``MERGING``.
    budgets : int ndarray of shape (2,)
        B_l and B_u.
    slots : Slots
        Changed in place.
    state, totals : ndarrays of shape (1,)
        As in `s3vm_lib.graph_kernel_machine`; changed in place.
    """
    now, total = state[0], totals[0]
    for s in range(draws.y.size):  # line 2
        t, y = first + s + 1, draws.y[s]
        # Line 5 is kept as h, of which w̄ is made at the end (see `Accumulators`).
        c = 0.0  # w_t = −2a / ((t − 1) t), and w_1 = 0
        if t > 1:
            now.h += 1.0 / (t - 1)
            c = -2.0 / ((t - 1.0) * t)
        # Line 3: the slope of the loss, and the pull of the edge on its ends.
        output = _sum_at(code, parameters, draws.points[0, s], slots)
        margin = y * (c * (output + terms.offset * now.sum_a))
        slope = -terms.C * y if margin < 1.0 else 0.0
        total.loss += terms.C * max(0.0, 1.0 - margin)
        pull = 0.0
        if draws.factor[s] > 0.0:
            d = c * (
                _sum_at(code, parameters, draws.points[1, s], slots)
                - _sum_at(code, parameters, draws.points[2, s], slots)
            )
            total.smooth += terms.C_graph * draws.factor[s] * abs(d)
            if d != 0.0:
                pull = terms.C_graph * draws.factor[s] * (1.0 if d > 0.0 else -1.0)
        # Line 4: a ← a + t ξ_t, at the slots of the three rows.
        now.sum_a += t * slope
        now.sum_b += now.h * t * slope
        for k in range(3):
            delta = t * (slope if k == 0 else pull if k == 1 else -pull)
            if delta != 0.0:
                row, kind = draws.rows[k, s], draws.kinds[k, s]
                _put(draws.points[k, s], row, kind, delta, now.h, slots)
        # The budgets: rows beyond them are removed, the smallest coefficients first.
        for kind in range(2):
            while slots.counts[kind] > budgets[kind]:
                _maintain(code, parameters, maintenance, kind, slots)
                total.given_up += 1.0


class BudgetedAccumulators(Accumulators):
    """`Accumulators` on a limited number of slots.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows; the n × n Gram matrix with ``precomputed``.
    labeled : ndarray of bool, shape (n,)
        Which rows count against B_l.
    kernel : Kernel
    offset : bool
        Whether 1 is added to the kernel.
    budgets : tuple of two int
        B_l and B_u.
    maintenance : {"projection", "removal", "merging"}
    """

    def __init__(self, X, labeled, kernel, offset, budgets, maintenance) -> None:
        self.X, self.labeled, self.kernel = X, labeled, kernel
        self.offset, self.n_iter = float(offset), 0
        self.maintenance = MAINTENANCE.index(maintenance)
        self.S, self.a, self.b = np.zeros((0, X.shape[1])), np.zeros(0), np.zeros(0)
        self.ids, self.kinds = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.counts = np.zeros(2, np.int64)
        self.allow(budgets)
        self.state, self.totals = np.zeros(1, STATE), np.zeros(1, TOTALS)
        self.state["scale"] = 1.0

    def allow(self, budgets):
        """Set new budgets; the next step removes the rows beyond them."""
        self.budgets = np.asarray(budgets, dtype=np.int64)
        more = int(self.budgets.sum()) + 3 - self.a.size
        for name in ("S", "ids", "kinds", "a", "b") if more > 0 else ():
            slots = getattr(self, name)
            new = np.zeros((more, *slots.shape[1:]), slots.dtype)
            setattr(self, name, np.concatenate([slots, new]))

    def extend(self, X, labeled):
        """Take over more rows; X begins with those before."""
        self.X, self.labeled = X, labeled

    @property
    def size(self):
        """Slots in use."""
        return int(self.counts.sum())

    @property
    def listed(self):
        """Rows of the slots, −1 for merged points."""
        return self.ids[: self.size]

    @property
    def ab(self):
        """a and b of the slots, shape (m, 2)."""
        return np.column_stack([self.a[: self.size], self.b[: self.size]])

    def spread(self, on_listed):
        """Return the coefficients of the slots, as they are: a merged point is no training row."""
        return on_listed

    def gram(self):
        """Return the kernel values between the slots, shape (m, m)."""
        if self.kernel.name == "precomputed":
            return self.X[np.ix_(self.listed, self.listed)]
        return self.kernel.gram(self.S[: self.size])

    def norm2(self):
        """Return ‖f‖² as in `Accumulators`; a merged point is no row."""
        dual = self.average()[0]
        return float(dual @ self.gram() @ dual)

    def outputs(self, index):
        """Return the averaged function at the rows ``index``, offset included."""
        dual, b = self.average()
        if self.kernel.name == "precomputed":
            return self.X[index][:, self.listed] @ dual + b
        return self.kernel.gram(self.X[index], self.S[: self.size]) @ dual + b

    def advance(self, n_steps, rows, targets, cumulative, sampler, problem, keys, radius, width=64):
        """Run steps; parameters as in `Accumulators.advance`."""
        kernel = problem.kernel
        parameters = np.array([kernel.gamma, kernel.degree, kernel.coef0, kernel.sigma_f**2])
        end, terms = self.n_iter + n_steps, terms_of(problem, cumulative[-1], self.offset, radius)
        slots = Slots(self.S, self.ids, self.kinds, self.a, self.b, self.counts)
        # Some tenths of a second of work, after which Python can answer Ctrl-C.
        width = min(width, 1 + _WORK // (3 * self.S.size))
        while self.n_iter < end:
            first, m = self.n_iter, min(width, end - self.n_iter)
            edges = sampler if problem.C_graph > 0 else None
            drawn, i, j, factor = draw_steps(cumulative, edges, keys, first, m)
            index = np.stack([rows[drawn], i, j])
            points = self.X[index.ravel()]
            points = points.toarray() if sp.issparse(points) else points
            kinds = 1 - self.labeled[index].astype(np.int64)
            draws = StepRows(points.reshape(3, m, -1), index, kinds, factor, targets[drawn])
            budgeted_steps(
                first, draws, terms, kernel.code, parameters, self.maintenance, self.budgets,
                slots, self.state, self.totals,
            )  # fmt: skip
            self.n_iter += m


# --- The estimator --------------------------------------------------------------------------------


@parameters
class BGS3VM(GraphClassifier):
    """Budgeted graph-based S3VM: a `GKM` with a limit on its support rows.

    Minimizes, approximately, the objective of `GKM` with the hinge and p = 1, ::

        J(f, b) = ½‖f‖² + ½b² + C Σ_L s_i max(0, 1 − t_i (f(x_i) + b))
                  + (C_graph / |E|) Σ_E μ_ij |f(x_i) − f(x_j)|,

    by stochastic gradients that keep at most B_l labeled and B_u other rows.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses of labeled rows.
    C_graph : float, "labels", "paper" or None, default=None
        Weight of the mean over the edges, see `GKM`.
    budget_labeled : int, default=100
        B_l: largest number of support rows that carry a label.
    budget_unlabeled : int or "paper", default=200
        B_u: largest number of other support rows; ``"paper"`` is a fifth of the unlabeled rows
        (so far, in ``partial_fit``).
    maintenance : {"projection", "removal", "merging"}, default="projection"
        What happens to the row of the smallest coefficient when a budget is exceeded: the nearest
        row takes its share over, it is left out, or it is merged with the nearest one of its kind
        (rbf kernel).
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
    graph : NeighborGraph, Graph, CompleteGraph or matrix of shape (n, n), default=None
        Which rows are joined, see `GKM`; None is ``NeighborGraph()``.
    n_neighbors : int, default=None
        k in short for ``graph=NeighborGraph(k)``.
    sampling : {"uniform", "weight"}, default="uniform"
        How edges are drawn, see `GKM`.
    fit_intercept : bool, default=True
        Add 1 to the kernel. What rows that are left out gave to the offset stays.
    online_steps : float, default=1.0
        Steps that ``partial_fit`` makes for each new row.
    tol : float, default=0.1
        Stop when doubling the number of steps changes the averaged outputs (root mean square over
        up to 256 rows) by at most this share of their size, or of 1 if that is larger, and J
        exceeds that of f = 0 by no more than this share.
    max_iter : int, default=200_000
        Largest number of steps, see `GKM`.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    random_state : int, RandomState instance or None, default=None
        Source of the rows and edges that are drawn.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
    verbose : int, default=0
        Print one line whenever the average is looked at.
    callback : callable, default=None
        Called then with a dict (the fields of ``history_``); a true value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    support_ : ndarray of shape (n_support,)
        Rows that were kept, −1 for merged points. With more than two classes each has its own, one
        after the other.
    support_vectors_ : ndarray of shape (n_support, d)
        These rows and points; absent with ``kernel="precomputed"``.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Their coefficients in the averaged function.
    coef_ : ndarray of shape (n_problems, d)
        Weights of the features, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (n_problems,)
        Offsets b.
    gamma_ : float
        The kernel coefficient that was used.
    graph_ : Graph or CompleteGraph
        The graph of the rows of positive weight.
    bounds_ : Bounds or list of Bounds
        The constants of Theorem 1, for the method without budgets.
    transduction_ : ndarray of shape (n,)
        A label for every training row, computed when first asked for, see `GKM`.
    objective_ : float or ndarray of shape (n_classes,)
        J at the averaged function, computed when first asked for.
    problem_ : Problem or list of Problem
        What is minimized, approximately.
    n_iter_ : int
        Steps T.
    history_ : list
        One `Stretch` per look at the average; its ``norm`` and ``gradient`` are not computed (0),
        so that its ``objective`` is without ½‖f‖² + ½b², which `objective_` has, and ``given_up``
        is the number of rows given up so far.
    termination_condition_ : str
        ``"converged"``, ``"max_iter"``, ``"completed"`` or ``"stopped"``, see `GKM`.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    GKM : Without budgets.

    Notes
    -----
    It should not be used with the linear kernel where there are as many features as rows: within
    its budget and number of steps it is much worse than a linear `SVM` on such sets of the book's
    comparison.

    A reconstruction: the article that proposes the method was not available. That it has the
    objective of the graph kernel machine with the hinge and p = 1, two budgets, and these three
    kinds of maintenance, is taken from the later papers that compare with it.

    Budgets limit the support rows, not the training rows, which are kept to draw from. Time is
    linear in the number of steps. The guarantee of Theorem 1 is lost: the average tends to a
    neighborhood of the solution whose size depends on what is given up.

    References
    ----------
    T. Le, P. Duong, M. Dinh, T. D. Nguyen, V. Nguyen and D. Phung, "Budgeted semi-supervised
    support vector machine", UAI 2016; Z. Wang, K. Crammer and S. Vucetic, "Breaking the curse of
    kernelization: budgeted stochastic gradient descent for large-scale SVM training", JMLR 13
    (2012), for the three kinds of maintenance.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import BGS3VM
    >>> X = np.array([[-2.0], [-1.9], [-1.5], [1.4], [1.8], [2.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])
    >>> model = BGS3VM(budget_unlabeled=2, n_neighbors=2, random_state=0).fit(X, y)
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    budget_labeled: Count = 100
    budget_unlabeled: Literal["paper"] | Count = 200
    maintenance: Literal["projection", "removal", "merging"] = "projection"

    _largest_n = 100_000
    _memory = "budget"
    labeled_loss, power, projection = "hinge", 1.0, False  # of `GKM`, fixed by the method

    def _budgets(self, pool):
        """Return B_l and B_u for these rows."""
        budget = self.budget_unlabeled
        if budget == "paper":
            budget = max(1, round(0.2 * np.sum(~pool.labeled)))
        slots, d = self.budget_labeled + budget + 3, pool.X.shape[1]
        if slots * d > _LARGEST:
            raise ValueError(
                f"BGS3VM keeps budget_labeled + budget_unlabeled + 3 = {slots} rows dense, which "
                f"is {8e-9 * slots * d:.3g} GB with the {d} columns of X: lower the budgets, "
                "reduce the columns (sklearn.decomposition.TruncatedSVD), or use GKM, which keeps "
                "sparse rows sparse"
            )
        return self.budget_labeled, budget

    def _accumulators(self, problem, pool):
        if self.maintenance == "merging" and self.kernel != "rbf":
            raise ValueError(f"maintenance='merging' needs kernel='rbf', got {self.kernel!r}")
        limits = self._budgets(pool), self.maintenance
        rows = pool.X, pool.labeled, problem.kernel
        return BudgetedAccumulators(*rows, self.fit_intercept, *limits)

    def _grown(self, pool, data):
        pool = super()._grown(pool, data)
        for machine in self._machines:
            if machine.accumulators is not None:
                machine.accumulators.allow(self._budgets(pool))
        return pool

    def _reported(self, solution, X, problem, bounds):
        # The coefficients are those of slots, which `_store` sets beside their points.
        empty = solution._replace(beta=np.zeros(X.shape[0]))
        return super()._reported(empty, X, problem, bounds)._replace(coef=None)

    def _store(self, data, problems, fits):
        super()._store(data, problems, fits)
        parts = [machine.accumulators for machine in self._machines]
        duals = [part.average()[0] for part in parts]
        self.dual_coef_ = block_diag(*duals)
        listed = np.concatenate([part.listed for part in parts])
        self.support_ = np.where(listed >= 0, data.rows[listed], -1)
        points = np.concatenate([part.S[: part.size] for part in parts])
        if self.kernel == "linear":
            self.coef_ = problems[0].kernel.sigma_f ** 2 * (self.dual_coef_ @ points)
        if self.kernel != "precomputed":
            self.support_vectors_ = points

    def _value(self, machine, problem):
        part = machine.accumulators
        f = part.outputs(np.arange(machine.t.size))
        return problem.value(f, machine.t, part.norm2(), part.average()[1], machine.weight)
