"""Incremental learning by branch and bound over the neighbors of what arrives (NN-BB).

When a row arrives, the labels of its k nearest unlabeled neighbors are decided anew, the best of
all 2^k choices, while the other unlabeled rows keep the signs that their outputs have. With N the
neighbors and t̂_j the signs, the problem of one arrival is

    ½‖f‖² + C Σ_L s_i ℓ(t_i, f_i) + C* Σ_{U∖N} s_j ℓ(t̂_j, f_j) + C* Σ_N s_j u(f_j)

with the hinge ℓ and u(f) = min(ℓ(−1, f), ℓ(1, f)). `solve_branch_and_bound` takes it as it is: U∖N
are labeled rows of weight s_j C*/C.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from s3vm_lib.base.machine import BinaryFit
from s3vm_lib.base.online import KeepingS3VM
from s3vm_lib.branch_and_bound import solve_branch_and_bound
from s3vm_lib.cccp import solve_cccp
from s3vm_lib.gram import Gram, append_rows, write_border
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.objective import Problem
from s3vm_lib.utils.limits import Count, CountOrZero, Gap, WeightOrZero
from s3vm_lib.utils.linear import centered, linear_model
from s3vm_lib.utils.validation import KernelParameters, options, parameters


class Arrival(NamedTuple):
    """What `NNBBS3VM` reports of an arrival."""

    objective: float  # J
    frozen_objective: float  # the same with the old signs, see `NearestSolution`
    n_iter: int  # nodes whose convex problem was solved
    status: str


class NearestSolution(NamedTuple):
    """Result of `solve_arrival`."""

    beta: np.ndarray  # coefficients of f = Σ_i β_i k(x_i, ·), (n,)
    b: float  # offset
    outputs: np.ndarray  # f(x_i) + b, (n,)
    objective: float  # J: every unlabeled row is charged for the sign of its output
    frozen_objective: float  # the rows outside N are charged for the sign that they had before
    neighbors: np.ndarray  # N
    n_iter: int  # nodes whose convex problem was solved
    status: str  # as in the `Solution` of `solve_branch_and_bound`


def solve_arrival(
    problem, K, t, sample_weight, outputs, new, n_neighbors, beta=None, *, tol=1e-6,
    max_iter=100_000, callback=None,
):  # fmt: skip
    """Solve the problem of one arrival.

    Parameters
    ----------
    problem : Problem
        Hinge, its effective loss, a free bias and no balance.
    K : ndarray of shape (n, n)
        Gram matrix, the new row included.
    t : ndarray of shape (n,)
        Labels −1, +1, and 0 for unlabeled rows.
    sample_weight : ndarray of shape (n,)
        Weights s.
    outputs : ndarray of shape (n,)
        Outputs f(x_i) + b before the arrival; their signs are kept outside of N, and 0 counts as
        positive.
    new : int
        The row that arrived.
    n_neighbors : int
        How many unlabeled rows N has, the new one included if it is unlabeled; 0 keeps all signs.
    beta : ndarray of shape (n,), default=None
        Coefficients before the arrival, from which the first convex problem starts.
    tol, max_iter, callback
        As in `solve_branch_and_bound`.

    Returns
    -------
    NearestSolution
    """
    U = np.flatnonzero(t == 0)
    # N: the rows nearest to the new one in feature space, of equally near ones the first.
    distance = K[new, new] + np.diag(K)[U] - 2 * K[new, U]
    chosen = U[np.argsort(distance, kind="stable")[:n_neighbors]]
    # Outside of N an unlabeled row is a labeled one of weight C* s with its old sign.
    labels, s = t.copy(), sample_weight.copy()
    labels[U] = np.where(outputs[U] >= 0, 1.0, -1.0)
    s[U] *= problem.C_star / problem.C
    labels[chosen], s[chosen] = 0.0, sample_weight[chosen]
    costs = np.flatnonzero(s > 0)  # C* = 0 leaves U out
    if costs.size == 0:  # then f = 0 and any b are optimal
        full = np.zeros(t.size)
        return NearestSolution(full, 0.0, full.copy(), 0.0, 0.0, chosen, 0, "converged")
    part = K if costs.size == t.size else K[np.ix_(costs, costs)]
    found = solve_branch_and_bound(
        problem, part, labels[costs], s[costs], tol=tol, max_iter=max_iter, callback=callback,
        start=None if beta is None else beta[costs],
    )  # fmt: skip
    full = np.zeros(t.size)
    full[costs] = found.beta
    raw = K @ full
    f = raw + found.b
    objective = problem.value(f, t, full @ raw, found.b, sample_weight)
    return NearestSolution(
        full, found.b, f, float(objective), found.objective, chosen, found.n_iter, found.status
    )


# --- The estimator --------------------------------------------------------------------------------


class Kept(NamedTuple):
    """The rows given to an estimator so far, those of weight zero left out.

    Nothing is written to, unlike a `KernelStore`: after an error the old one is still there.
    """

    X: np.ndarray  # (n, d), dense or CSR; (n, n) with kernel="precomputed"
    K: np.ndarray  # Gram matrix, (n, n)
    center: np.ndarray | None  # what is subtracted from dense rows with a linear kernel

    @classmethod
    def first(cls, X, kernel):
        """Return the rows of the first call, which may be none."""
        rows, center = centered(X, kernel)
        return cls(X, kernel.gram(rows) if X.shape[0] else np.empty((0, 0)), center)

    def extended(self, new, kernel):
        """Return these rows followed by those of another batch."""
        old, n = len(self.K), len(self.K) + new.shape[0]
        if old in (0, n):
            return self if old else Kept.first(new, kernel)
        if sp.issparse(self.X):
            new = sp.csr_matrix(new)
        elif sp.issparse(new):
            new = new.toarray()
        # Kernel values are those of centered rows; rows are kept as they came.
        own, others, K = new, self.X, np.empty((n, n))
        if self.center is not None:
            own, others = new - self.center, self.X - self.center
        K[:old, :old] = self.K
        write_border(K, kernel, others, own)
        return Kept(append_rows(self.X, old, new, 0), K, self.center)


class NeighborState:
    """What `NNBBS3VM` keeps of a two-class problem. Arrays are replaced, never written to."""

    def __init__(self, rows, t) -> None:
        self.rows, self.t = rows, t
        self.beta, self.b, self.outputs = np.zeros(t.size), 0.0, np.zeros(t.size)
        self.objective = 0.0


@parameters
class NNBBS3VM(KernelParameters, KeepingS3VM):
    """Incremental S3VM by branch and bound over the neighbors of each new row (NN-BB).

    Lowers, without a guarantee of a local minimum,

        J(f, b) = ½‖f‖² + C Σ_L s_i max(0, 1 − t_i f_i) + C* Σ_U s_j max(0, 1 − |f_j|)

    with f_i = f(x_i) + b. When a row arrives, the labels of its nearest unlabeled neighbors are
    chosen anew, by an exact search, together with f and b; the other unlabeled rows keep their
    signs. A baseline: the method is reconstructed from how other papers describe Emara et al.
    (2007), whose text and program were not available.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the hinge losses of labeled rows.
    C_star : float, default=None
        Weight of the unlabeled losses. None gives the labeled and the unlabeled part of the first
        call equal total weight.
    kernel : {"linear", "poly", "rbf", "laplacian", "precomputed"}, default="rbf"
        Kernel function, see `Kernel`. ``"precomputed"`` is for `fit` only.
    gamma : {"scale", "variance", "auto"} or float, default="scale"
        Kernel coefficient of rbf, poly and laplacian, see `resolve_gamma`.
    degree : int, default=3
        Degree of the polynomial kernel, at most 30.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, non-negative.
    sigma_f : float, default=1.0
        Output standard deviation: kernels are multiplied by its square.
    n_neighbors : int, default=5
        How many unlabeled rows are decided anew when a row arrives: those nearest to it in feature
        space, an unlabeled row itself included. 0 keeps all signs.
    tol : float, default=1e-6
        Largest relative gap between the value that the search finds and its lower bound; in `fit`,
        largest violation of the optimality conditions.
    max_iter : int, default=100_000
        Largest number of nodes per arrival; in `fit`, of convex problems.
    max_inner_iter : int, default=1_000_000
        Largest number of SMO iterations in each convex problem of `fit`.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only, and is for `fit` only.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
    verbose : int, default=0
        Print a line at each better solution and at least every 100 nodes; in `fit`, one per convex
        problem.
    callback : callable, default=None
        Called as often with a dict (the fields that are printed); a true value stops the search.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    support_ : ndarray of shape (n_support,)
        Rows that carry the model, counted from the first row ever given.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, d)
        These rows; absent with ``kernel="precomputed"``.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Their coefficients; one row for two classes, otherwise one per class.
    coef_ : ndarray of shape (n_problems, d)
        Weights of the features, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (n_problems,)
        Offsets b.
    gamma_ : float
        The kernel coefficient, which stays that of the first call.
    transduction_ : ndarray of shape (n,)
        A label for every row ever given: its own, or the one found where it was unlabeled. A row of
        weight zero keeps the one it had when it came.
    objective_ : float or ndarray of shape (n_classes,)
        J on all rows.
    problem_ : Problem or list of Problem
        What is minimized, with the values that ``C_star`` and ``gamma`` stood for.
    n_iter_ : int
        Nodes whose convex problem was solved in the last call of `partial_fit`, or convex problems
        in `fit`; the largest number over the two-class problems.
    history_ : list
        One `Arrival` per row of the last call of `partial_fit`, or one `Loop` of CCCP per convex
        problem in `fit`.
    termination_condition_ : str
        ``"converged"``, ``"max_iter"`` (in `fit` also within the last convex problem),
        ``"stopped"`` (by the callback) or ``"inexact"``, see `BranchBoundS3VM`; a list of these
        with more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    BranchBoundS3VM : The search, over all unlabeled rows.
    CCCPS3VM : What `fit` starts from.

    Notes
    -----
    With few labels and the rbf kernel it should not be used with its defaults, nor on sparse text
    with any kernel: on such sets of the book's comparison it is worse than `SVM`. Take a small
    ``C_star``, and compare with ``C_star=0``.

    `fit` is CCCP with the symmetric hinge (`CCCPS3VM` with ``balance=None``); only `partial_fit` is
    incremental. There is no balance constraint: all unlabeled rows may end in one class. An
    arrival costs several support vector machines on all rows. The Gram matrix is kept.

    References
    ----------
    W. Emara, M. Kantardzic, M. Karnstedt, K.-U. Sattler, D. Habich and W. Lehner, "An approach for
    incremental semi-supervised SVM", ICDM Workshops (2007); B. Gu, X.-T. Yuan, S. Chen and
    H. Huang, "New incremental learning algorithm for semi-supervised support vector machine",
    KDD (2018), where it is called NN-BB.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import NNBBS3VM
    >>> X = np.array([[-2.0], [2.0], [-1.5], [1.5]])
    >>> model = NNBBS3VM(kernel="linear").fit(X, np.array([0, 1, -1, -1]))
    >>> model.partial_fit([[-1.0], [1.2]], [-1, -1]).transduction_.tolist()
    [0, 1, 0, 1, 0, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    C_star: WeightOrZero | None = None
    n_neighbors: CountOrZero = 5
    tol: Gap = 1e-6
    max_iter: Count = 100_000
    max_inner_iter: Count = 1_000_000

    _largest_n = 10_000
    _memory = "n² numbers"
    _further_limits = ("max_inner_iter",)

    def _prepare(self, data):
        """Return the rows and their Gram matrix, which all two-class problems share."""
        return Kept.first(data.X, data.kernel)

    def _problem(self, data, ratio):
        """Return what is minimized."""
        hinge = LabeledLoss("hinge")
        C, C_star = self._penalties(data)
        if self.C_star is not None:  # unlabeled rows may come later
            C_star = float(self.C_star)
        return Problem(hinge, hinge.effective, C, C_star, data.kernel)

    def _fit_binary(self, data, shared, t, problem, index):
        machine = NeighborState(shared, t)
        self._machines.append(machine)
        solution = solve_cccp(
            Gram(shared.K, Kernel("precomputed"), dtype=np.float64), t, data.loss_weight, problem,
            callback=lambda loop: self._report(loop._asdict()), **options(self, solve_cccp),
        )  # fmt: skip
        machine.beta, machine.b = solution.beta, solution.b
        machine.outputs, machine.objective = solution.outputs, solution.objective
        return self._result(machine, problem, solution.n_iter, solution.status, solution.history)

    def _start(self, data, problem, index):
        return NeighborState(Kept.first(data.X[:0], data.kernel), np.empty(0))

    def _update(self, machine, data, t, problem, index):
        if self.C_star is None and problem.C_star == 0 and np.any(t == 0):
            raise ValueError(
                "C_star must be a number when the first call holds no labeled or no unlabeled "
                "rows: None is short for their ratio there"
            )
        rows = self._machines[0].rows  # the first machine has taken the batch in already
        if index == 0:
            rows = rows.extended(data.X, data.kernel)
        machine.rows, old, weight = rows, machine.t.size, self._held.loss_weight[self._held.used]
        arrivals, asked = [], options(self, solve_arrival)
        machine.t = np.append(machine.t, t)
        machine.beta = np.append(machine.beta, np.zeros(t.size))
        # All rows of the batch join with the outputs of the present function.
        new = rows.K[old:] @ machine.beta + machine.b
        machine.outputs = np.append(machine.outputs, new)
        for k in range(old, old + t.size):
            n = k + 1
            found = solve_arrival(
                problem, rows.K[:n, :n], machine.t[:n], weight[:n], machine.outputs[:n], k,
                self.n_neighbors, machine.beta[:n], callback=self._report, **asked,
            )  # fmt: skip
            machine.beta = np.append(found.beta, np.zeros(old + t.size - n))
            machine.b, machine.objective = found.b, found.objective
            # Rows still to be solved for see the new function.
            rest = rows.K[n:, :n] @ found.beta + found.b
            machine.outputs = np.append(found.outputs, rest)
            arrivals.append(Arrival(*(getattr(found, name) for name in Arrival._fields)))
        failed = [arrival.status for arrival in arrivals if arrival.status != "converged"]
        status, n_iter = ["converged", *failed][-1], sum(arrival.n_iter for arrival in arrivals)
        return self._result(machine, problem, n_iter, status, arrivals)

    def _result(self, machine, problem, n_iter, status, history):
        """Return the machine as a `BinaryFit` on all its rows."""
        rows = machine.rows
        coef, b = linear_model(problem.kernel, machine.beta, rows.X, machine.b, rows.center)
        return BinaryFit(
            machine.beta, coef, b, machine.outputs, machine.objective, n_iter, status, history
        )

    def _kept_X(self):
        return self._machines[0].rows.X

    def _next_place(self):
        return len(self._machines[0].rows.K)

    def _snapshot(self, machine):
        return dict(vars(machine))
