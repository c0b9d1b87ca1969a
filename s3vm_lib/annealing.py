"""Deterministic annealing for linear S3VMs (Sindhwani and Keerthi, 2006).

Each unlabeled row is positive with a probability p_j, and what is minimized is the expected
objective minus the temperature T times the entropy S(p) = −p log p − (1 − p) log(1 − p),

    Φ_T(v, p) = ½‖v‖² + C Σ_L s_i ℓ(t_i, o_i)
                + C* Σ_U s_j [ p_j ℓ(1, o_j) + (1 − p_j) ℓ(−1, o_j) − T S(p_j) ],

subject to Σ_U s_j p_j = r Σ_U s_j. For given p that is an L2-SVM, for given v the p have a closed
form up to one multiplier; the two steps alternate. In the limit of high temperatures all p are
equal and the problem is convex; as T falls, the p move to 0 and 1, and Φ_T becomes the objective
of the S3VM.
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from s3vm_lib.base.classifier import Balance, BaseS3VM
from s3vm_lib.base.machine import BinaryFit
from s3vm_lib.finite_newton import linear_rows, solve_finite_newton
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.objective import Problem
from s3vm_lib.utils.jit import njit
from s3vm_lib.utils.limits import Count, Ratio, Shape, Tolerance, WeightOrZero
from s3vm_lib.utils.validation import Client, options, parameters

_TINY = 1e-300
_MOST_HALVINGS = 2200  # from the largest interval of doubles to the smallest


class Temperature(NamedTuple):
    """One temperature."""

    temperature: float  # T; infinite for the start, where all p are equal
    free_energies: tuple  # Φ_T after each round
    objective: float  # J at the end
    entropy: float  # weighted mean of S(p) at the end, in nats
    multiplier: float  # ν of the balance at the end
    n_rounds: int  # pairs of steps in p and v
    n_iter: int  # Newton steps
    n_cg: int  # iterations of conjugate gradients
    status: str  # "converged", "max_rounds" or "max_iter"


class Solution(NamedTuple):
    """What `solve_deterministic_annealing` returns."""

    v: np.ndarray  # weights of the features and, last, the offset, (d + 1,)
    outputs: np.ndarray  # (n,)
    probabilities: np.ndarray  # of +1 on the unlabeled rows, at the last temperature, (u,)
    objective: float  # J at v
    n_iter: int  # Newton steps
    status: str
    history: tuple  # Temperature by Temperature


# --- The step in p --------------------------------------------------------------------------------


@njit
def loss_gaps(o, gap):
    """Write G_j = ℓ(1, o_j) − ℓ(−1, o_j) = ½ max(0, 1 − o_j)² − ½ max(0, 1 + o_j)² to ``gap``."""
    for j in range(o.size):
        above, below = max(0.0, 1.0 - o[j]), max(0.0, 1.0 + o[j])
        gap[j] = 0.5 * (above * above - below * below)


@njit
def probabilities(gap, share, nu, T, p):
    """Return p_j = 1 / (1 + exp((G_j − ν)/T)), the minimizer of Φ_T in p for the multiplier ν.

    Parameters
    ----------
    gap, share : ndarrays of shape (u,)
        G, and weights that sum to one.
    nu, T : float
        ν and T.
    p : ndarray of shape (u,)
        Written.

    Returns
    -------
    mean, spread : float
        Weighted means of p and of p(1 − p), which is T times the derivative of the mean in ν.
    """
    mean, spread = 0.0, 0.0
    for j in range(gap.size):
        x = (nu - gap[j]) / T
        e = math.exp(-abs(x))
        q = 1.0 / (1.0 + e)
        p[j] = q if x >= 0.0 else e * q
        mean += share[j] * p[j]
        spread += share[j] * e * q * q
    return mean, spread


@njit
def balance_multiplier(gap, share, ratio, T, nu, p):
    """Return the multiplier ν with Σ_j share_j p_j = r; the p are written.

    The mean of p increases in ν, is at most r at min G + T log(r/(1 − r)) and at least r at
    max G + T log(r/(1 − r)): Newton steps inside this bracket, bisection where they leave it.

    Parameters
    ----------
    gap, share : ndarrays of shape (u,)
        G, and weights that sum to one.
    ratio, T : float
        r in (0, 1) and the temperature.
    nu : float
        First guess.
    p : ndarray of shape (u,)
        Written.

    Returns
    -------
    float
        ν, to the last bit that doubles allow or to 1e-13 in the mean.
    """
    shift = T * math.log(ratio / (1.0 - ratio))
    low, high = gap[0], gap[0]
    for g in gap:
        low, high = min(low, g), max(high, g)
    low, high = low + shift, high + shift
    nu = min(max(nu, low), high)
    for _ in range(_MOST_HALVINGS):
        mean, spread = probabilities(gap, share, nu, T, p)
        if abs(mean - ratio) <= 1e-13:
            return nu
        if mean < ratio:
            low = nu
        else:
            high = nu
        step = nu - (mean - ratio) * T / spread if spread > 0.0 else low
        if not low < step < high:
            step = 0.5 * (low + high)
            if not low < step < high:
                return nu
        nu = step
    return nu


@njit
def mean_divergence(p, q, share):
    """Return the weighted mean of p log(p/q) + (1 − p) log((1 − p)/(1 − q))."""
    total = 0.0
    for j in range(p.size):
        if p[j] > 0.0:
            total += share[j] * p[j] * math.log(p[j] / max(q[j], _TINY))
        if p[j] < 1.0:
            total += share[j] * (1.0 - p[j]) * math.log((1.0 - p[j]) / max(1.0 - q[j], _TINY))
    return total


@njit
def mean_entropy(p, share):
    """Return the weighted mean of −p log p − (1 − p) log(1 − p)."""
    total = 0.0
    for j in range(p.size):
        if 0.0 < p[j] < 1.0:
            total -= share[j] * (p[j] * math.log(p[j]) + (1.0 - p[j]) * math.log(1.0 - p[j]))
    return total


# --- The solver -----------------------------------------------------------------------------------


class AnnealingPath:
    """The state of the annealing: p, v, and the v of the lowest J so far.

    Parameters
    ----------
    rows, t, sample_weight, problem
        As in `solve_deterministic_annealing`.
    tol, max_iter
        Of each training.
    """

    def __init__(self, rows, t, sample_weight, problem, tol, max_iter) -> None:
        self.rows, self.t, self.sample_weight, self.problem = rows, t, sample_weight, problem
        self.tol, self.max_iter = tol, max_iter
        self.plus = np.where(t > 0, problem.C * sample_weight, 0.0)
        self.minus = np.where(t < 0, problem.C * sample_weight, 0.0)
        self.unlabeled = np.flatnonzero(t == 0) if problem.C_star > 0 else np.empty(0, dtype=int)
        self.cost = problem.C_star * sample_weight[self.unlabeled]
        self.share = self.cost / max(self.cost.sum(), _TINY)
        self.p = np.full(self.cost.size, 0.5 if problem.ratio is None else problem.ratio)
        self.gap, self.nu = np.empty(self.cost.size), 0.0
        self.now, self.value, self.best, self.lowest = None, np.inf, None, np.inf
        self.n_iter, self.n_cg, self.failed = 0, 0, False

    def train(self, start=None, tol=None):
        """Minimize Φ in v for the present p, from the present v or another start on."""
        self.plus[self.unlabeled] = self.cost * self.p
        self.minus[self.unlabeled] = self.cost * (1.0 - self.p)
        start = start or self.now
        known = () if start is None else (start.v, start.outputs)
        limits = {"tol": tol or self.tol, "max_iter": self.max_iter}
        # Without unlabeled rows the labeled ones alone are read.
        if self.p.size:
            found = solve_finite_newton(self.rows, self.plus, self.minus, *known, **limits)
        else:
            index = np.flatnonzero(self.t)
            found = solve_finite_newton(
                self.rows.take(index), self.plus[index], self.minus[index], **limits
            )
            found = found._replace(outputs=self.rows.outputs(found.v))
        v, f = found.v, found.outputs
        value = self.problem.value(f, self.t, v[:-1] @ v[:-1], v[-1], self.sample_weight)
        self.now, self.value = found, float(value)
        if self.best is None or self.value < self.lowest:
            self.best, self.lowest = (found, self.p.copy()), self.value
        self.n_iter, self.n_cg = self.n_iter + found.n_iter, self.n_cg + found.n_cg
        self.failed |= found.status == "max_iter"

    def soften(self, T):
        """Minimize Φ_T in p for the present v; returns the mean divergence from the p before."""
        before = self.p.copy()
        loss_gaps(self.now.outputs[self.unlabeled], self.gap)
        # Without a balance ν is 0.
        if self.problem.ratio is None:
            probabilities(self.gap, self.share, 0.0, T, self.p)
        else:
            args = self.gap, self.share, self.problem.ratio, T, self.nu, self.p
            self.nu = balance_multiplier(*args)
        return mean_divergence(self.p, before, self.share)

    def stage(self, T, energies, status):
        """Return the `Temperature` that ends here; what it counts starts again from zero."""
        counts, self.n_iter, self.n_cg = (len(energies), self.n_iter, self.n_cg), 0, 0
        status = "max_iter" if self.now.status == "max_iter" else status
        state = self.value, mean_entropy(self.p, self.share), self.nu
        return Temperature(float(T), energies, *state, *counts, status)


def solve_deterministic_annealing(
    rows, t, sample_weight, problem, *, temperature=5.0, cooling=1.5, n_temperatures=30, p_tol=1e-6,
    max_rounds=100, keep="best", tol=1e-3, path_tol=0.03, max_iter=50, callback=None,
):  # fmt: skip
    """Alternate between p and v while the temperature falls.

    Parameters
    ----------
    rows : SparseRows, DenseRows or ClusterRows
        The n rows.
    t : ndarray of shape (n,)
        −1 and +1, and 0 for unlabeled rows; at least one labeled row.
    sample_weight : ndarray of shape (n,)
        Weights s.
    problem : Problem
        Squared hinge and squared symmetric hinge, regularized bias, balance "none". Its ``ratio``
        is r, the mean of p; None leaves p free (ν = 0).
    temperature : float, default=5.0
        First T, in units of the loss of one row.
    cooling : float, default=1.5
        Each temperature is the one before divided by this, a number above 1, until that would be
        less than 1e-300 of the first; all others are the same.
    n_temperatures : int, default=30
        Largest number of temperatures.
    p_tol : float, default=1e-6
        A temperature ends when the mean divergence between two successive p is below this, the
        annealing when the mean entropy is.
    max_rounds : int, default=100
        Largest number of rounds at one temperature.
    keep : {"best", "last"}, default="best"
        Return the v of the smallest J of the whole path, or the last one.
    tol : float, default=1e-3
        Precision of the v that is returned, see `solve_finite_newton`.
    path_tol : float, default=0.03
        Precision on the way, if that is coarser than `tol`.
    max_iter : int, default=50
        Largest number of Newton steps of one training.
    callback : callable, default=None
        Called after each temperature with the `Temperature`; a true value stops.

    Returns
    -------
    Solution
    """
    tight = tol if t.all() or problem.C_star == 0.0 else max(tol, path_tol)
    path = AnnealingPath(rows, t, sample_weight, problem, tight, max_iter)
    # The numbers are the lines of the chapter's algorithm. 1 is done; 2: v for equal p.
    path.train()
    history = [path.stage(np.inf, (path.now.objective,), "converged")]
    stopped = callback is not None and callback(history[-1])
    coldest = int(-math.log(_TINY) / math.log(cooling))  # with the last power that is a number
    for k in range(n_temperatures if path.p.size else 0):
        # 6: nearly every p is 0 or 1.
        if stopped or history[-1].entropy < p_tol:
            break
        # 3
        T, energies, divergence = temperature / cooling ** min(k, coldest), [], np.inf
        while divergence >= p_tol and len(energies) < max_rounds:
            # 4: p for this v; 5: v for this p; again while p changes.
            divergence = path.soften(T)
            path.train()
            entropy = mean_entropy(path.p, path.share)
            energies.append(path.now.objective - T * path.cost.sum() * entropy)  # Φ_T
        status = "converged" if divergence < p_tol else "max_rounds"
        history.append(path.stage(T, tuple(energies), status))
        stopped = callback is not None and callback(history[-1])
    n_iter, probability = sum(stage.n_iter for stage in history), path.p.copy()
    # 7: the lowest J on the way, or the last one.
    chosen, path.p = path.best if keep == "best" else (path.now, path.p)
    value = path.lowest if keep == "best" else path.value
    if path.p.size and tol < path_tol:
        # What is kept was found at the precision of the path.
        path.train(chosen, tol)
        n_iter += path.now.n_iter
        if keep == "last" or path.value < value:
            chosen, value = path.now, path.value
    status = "stopped" if stopped else "max_iter" if path.failed else "converged"
    return Solution(chosen.v, chosen.outputs, probability, value, n_iter, status, tuple(history))


# --- The estimator --------------------------------------------------------------------------------


@parameters
class DAS3VM(BaseS3VM):
    """Linear semi-supervised support vector machine by deterministic annealing (SVMlin's DA).

    Looks for a low value of

        J(w, b) = ½‖w‖² + ½b² + C Σ_L s_i ½ max(0, 1 − t_i o_i)² + C* Σ_U s_j ½ max(0, 1 − |o_j|)²

    with outputs o = w·x + b. Every unlabeled row gets a probability p_j of being positive in place
    of a label. What is minimized over (w, b) and p is the expected objective minus T times the
    entropy of p, where the weighted mean of p is r. In the limit of high temperatures T all p_j
    are r, and the problem is convex; as T falls the p_j move to 0 and 1. Steps in p (closed form)
    and in (w, b) (a modified finite Newton method, on sparse or dense rows) take turns, and the
    (w, b) of the lowest J on the whole path is returned.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the labeled losses; 1/(λl) in the notation of SVMlin, for its option -W λ.
    C_star : float, default=None
        Weight of the unlabeled losses; λ′/(λu) in the notation of SVMlin, for its option -U λ′.
        None gives the labeled and the unlabeled part equal total weight, which is λ′ = 1.
    balance : "auto", "labels", another name, float, dict or None, default="auto"
        Mean r of the probabilities of ``classes_[1]`` over the unlabeled rows: estimated from
        labels and unlabeled rows together, by the share among the labeled rows, in another way
        that `s3vm_lib.class_ratio` has a name for, or given (in a dict for each class).
        None leaves the mean free. It is a constraint on p, not on the outputs that are returned.
    temperature : float, default=5.0
        First temperature, in units of the loss ½ max(0, 1 − yo)² of one row. SVMlin's start 10 λ′
        belongs to the loss without the ½ and is the same.
    cooling : float, default=1.5
        Each temperature is the one before divided by this, until that would be less than 1e-300 of
        the first; all others are the same.
    n_temperatures : int, default=30
        Largest number of temperatures.
    p_tol : float, default=1e-6
        A temperature ends when the mean Kullback-Leibler divergence between two successive p is
        below this, the annealing when the mean entropy of p is (in nats).
    max_rounds : int, default=100
        Largest number of rounds at one temperature.
    keep : {"best", "last"}, default="best"
        Whether to return the model of the lowest J of the whole path, or the last one.
    tol : float, default=1e-3
        Largest relative error of the last (w, b) as a minimizer for its p: its training ends when
        the norm of the gradient is at most tol ‖(w, b)‖. The model that is kept is trained once
        more to this precision, and the result taken if its J is lower.
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
        Print one line per temperature; on stderr a line that rewrites itself shows the time left.
    client : dask.distributed.Client, default=None
        The workers of this cluster open the rows, keep them, and take the products with them. X has
        to be a `numpy.memmap` that all workers can open, or a CSR matrix of three of them. A clone
        of the estimator has the client, a pickle or a copy has None.
    callback : callable, default=None
        Called after each temperature with a dict (temperature, objective, entropy, multiplier,
        n_rounds, n_iter, n_cg); a true value stops.

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
    objective_ : float or ndarray of shape (n_classes,)
        J at the solution.
    problem_ : Problem or list of Problem
        J, without a balance constraint: the share r acts on the p of the path only. Its ``ratio``
        is r.
    n_iter_ : int
        Newton steps of all trainings, the largest number over the two-class problems.
    history_ : list
        One `Temperature` (temperature, free_energies, objective, entropy, multiplier, n_rounds,
        n_iter, n_cg, status) each; the first has T = ∞ and all p equal to r.
    termination_condition_ : str
        ``"converged"``, ``"max_iter"`` (a training met its limit) or ``"stopped"`` (by the
        callback); a list of these with more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MultiSwitchTSVM : The same losses with assigned labels; faster.

    Notes
    -----
    It is made for long sparse rows. On dense rows with as many features as rows, on images and
    where no plane separates the classes, it is worse than a linear `SVM` on sets of the book's
    comparison; `S3VC` lets held-out labels weigh it against an `SVM`.

    Scale the rows to unit length (text), or center the features: the offset is regularized, so the
    origin matters. That has a use: where r is estimated from a few labels and wrong, a free offset
    would follow it. With more features than rows any labeling can be fitted, and the p freeze where
    they happen to be unless C is small. For ‖x‖² = R begin the search near C = 50/(R l).

    References
    ----------
    V. Sindhwani and S. S. Keerthi, "Large scale semi-supervised linear SVMs", SIGIR 2006,
    section 4; V. Sindhwani, S. S. Keerthi and O. Chapelle, "Deterministic annealing for
    semi-supervised kernel machines", ICML 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import DAS3VM
    >>> X = np.array([[-2.0], [-1.9], [-1.5], [1.4], [1.8], [2.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])
    >>> model = DAS3VM().fit(X, y)
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    C_star: WeightOrZero | None = None
    balance: Balance = "auto"
    temperature: Shape = 5.0
    cooling: Ratio = 1.5
    n_temperatures: Count = 30
    p_tol: Tolerance = 1e-6
    max_rounds: Count = 100
    keep: Literal["best", "last"] = "best"
    tol: Tolerance = 1e-3
    path_tol: Tolerance = 0.03
    max_iter: Count = 50
    client: Client = None

    _largest_n = 1_000_000
    _memory = "n × d numbers, or the non-zeros"
    _side_by_side = True
    _late = frozenset({"C", "C_star"})

    def _prepare(self, data):
        """Return the rows, which all two-class problems share."""
        return linear_rows(data.X, self.client)

    def _problem(self, data, ratio):
        """Return what is minimized; the balance is one of p, not of the outputs."""
        loss, penalties = LabeledLoss("squared_hinge"), self._penalties(data)
        return Problem(loss, loss.effective, *penalties, data.kernel, "regularized", ratio=ratio)

    def _fit_binary(self, data, rows, t, problem, index):
        with self._reporting("temperatures", 1 + self.n_temperatures) as callback:
            asked = options(self, solve_deterministic_annealing)
            solution = solve_deterministic_annealing(
                rows, t, data.loss_weight, problem, callback=callback, **asked
            )
        coef, b = solution.v[:-1], float(solution.v[-1])
        return BinaryFit.of(solution, None, coef, b, solution.outputs)
