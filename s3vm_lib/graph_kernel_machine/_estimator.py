"""Theorem 1 and its rules; `GKM`, and the parameters and fit that it shares with the regressor."""

import dataclasses
import math
from functools import cached_property
from numbers import Real
from typing import Annotated, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from s3vm_lib.base.classifier import ROUGH, checked_labeled_loss
from s3vm_lib.base.machine import BaseMachine, BinaryFit
from s3vm_lib.base.online import OnlineS3VM

from s3vm_lib.graph_kernel_machine._solver import (  # isort: skip
    Accumulators, KernelSums, solution_of, solve_gkm, streams, stretch_of,
)  # fmt: skip
from s3vm_lib.graphs import (  # isort: skip
    GRAPH_SHARE, CompleteGraph, Graph, GraphLike, NeighborGraph, check_graph, edge_sampler,
    extend_graph, graph_from_weights, graph_rule, joins_all, training_graph, width_gamma,
)  # fmt: skip
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.objective import Problem
from s3vm_lib.utils.limits import Count, RandomState, Tolerance, WeightOrZero
from s3vm_lib.utils.validation import KernelParameters, parameters

GraphWeight = Literal["labels", "paper"] | WeightOrZero
Power = Annotated[float, Interval(Real, 1, 20, closed="both")]
_PAIRS = 2**23  # of a complete graph that may be listed

# --- Theorem 1 ------------------------------------------------------------------------------------


class Bounds(NamedTuple):
    """The constants of Lemmas 2-4 and of Theorem 1 (see `theorem_bounds`)."""

    holds: bool  # whether the conditions of Theorem 1 are met
    condition: str  # what was checked
    a: float  # p C' (2R)^p
    b: float  # C A
    M: float  # bound on ‖w_t‖, infinite where the conditions fail
    G: float  # bound on the norms of stochastic gradients
    R: float  # bound on √k(x, x)
    A: float  # bound on the norms of loss gradients


def largest_p_term(p):
    """Return (p − 2)^(p−2) / (p − 1)^(p−1): the largest a b^(p−2) allowed with p > 2."""
    return (p - 2) ** (p - 2) / (p - 1) ** (p - 1)


def theorem_bounds(C, C_graph, p, R, A):
    """Return conditions and constants of Theorem 1.

    With a = p C' (2R)^p and b = C A, the iterates stay in a ball of radius M and the stochastic
    gradients in one of radius G = M + C A + p C' (2R)^p M^(p−1), if p < 2, or p = 2 and a < 1,
    or p > 2 and a b^(p−2) ≤ (p−2)^(p−2) / (p−1)^(p−1). Then E J(w̄) − J* < 2G²/T.

    Parameters
    ----------
    C : float
        Weight of the *mean* labeled loss: C Σ s_i in the library's parameters.
    C_graph : float
        Weight C' of the mean over the edges.
    p : float
        Power of the smoothness function.
    R : float
        Bound on √k(x, x), the constant of the offset apart.
    A : float
        Bound on the norm of the gradient of a loss in w; infinite for the squared hinge.

    Returns
    -------
    Bounds

    References
    ----------
    The paper's Lemmas 2-4 and Theorem 1; edge weights are at most 1.
    """
    a, b = p * C_graph * (2 * R) ** p, C * A
    # The condition depends on the power; losses of unbounded slope have none.
    if not math.isfinite(b):
        condition, holds = "bounded loss gradients", False
    elif p < 2:
        condition, holds = "p < 2", True
    elif p == 2:
        condition, holds = f"a < 1 with a = {a:.4g}", a < 1
    else:
        left, right = a * b ** (p - 2), largest_p_term(p)
        condition = f"a b^(p-2) <= (p-2)^(p-2)/(p-1)^(p-1): {left:.4g} <= {right:.4g}"
        holds = left <= right * (1 + 1e-12)
    if not holds:
        return Bounds(False, condition, a, b, math.inf, math.inf, R, A)
    if p < 2:  # M of Lemma 2
        M = max(1.0, (a + b) ** (1 / (2 - p)))
    elif p == 2:
        M = b / (1 - a)
    else:
        M = (1 / ((p - 1) * a)) ** (1 / (p - 2)) if a > 0 else math.inf
    return Bounds(True, condition, a, b, M, M + b + a * M ** (p - 1), R, A)


def largest_C_graph(C, p, R, A, share=0.9):
    """Return a C' that meets the conditions of Theorem 1 for p ≥ 2, the paper's (5) for any R.

    Parameters
    ----------
    C, p, R, A : float
        As in `theorem_bounds`.
    share : float, default=0.9
        For p = 2, the value of a; the bound M = b/(1 − a) grows without limit towards 1.

    Returns
    -------
    float
        Infinite for p < 2, where no condition is needed.
    """
    if p < 2:
        return math.inf
    if p == 2:
        return share / (p * (2 * R) ** p)
    return largest_p_term(p) / (p * (2 * R) ** p * (C * A) ** (p - 2))


# --- What names stand for ------------------------------------------------------------------------


def space_radius(kernel, X):
    """Return R = max √k(x, x)."""
    if kernel.name in ("rbf", "laplacian"):
        return float(kernel.sigma_f)
    return math.sqrt(max(0.0, float(np.max(kernel.diagonal(X)))))


# --- Graphs ---------------------------------------------------------------------------------------


def proportional_graph(graph):
    """Return a graph whose edges can be drawn in proportion to their weights."""
    if isinstance(graph, Graph):
        return graph
    if graph.n**2 > 2 * _PAIRS:
        raise ValueError(
            f"sampling='weight' lists all pairs of a complete graph, of which {graph.n_edges} "
            "are too many: join neighbors only, or use sampling='uniform'"
        )
    return graph_from_weights(graph.adjacency(), graph.labeled)


def length_gamma(graph, X):
    """Return 1/(2m²) with the mean length m of the edges, None without edges."""
    if graph.n_edges == 0:
        return None
    difference = X[graph.i] - X[graph.j]
    squares = difference.multiply(difference) if sp.issparse(X) else difference**2
    return width_gamma(float(np.sqrt(np.asarray(squares.sum(axis=1)).ravel()).mean()))


# --- Parameters and fit ---------------------------------------------------------------------------


class Pool(NamedTuple):
    """What steps are drawn from: the rows so far, their graph, and a seed."""

    X: np.ndarray
    labeled: np.ndarray  # bool
    graph: Graph | CompleteGraph
    sampler: tuple | None  # None without edges
    seed: int
    gamma: float | None  # of the Gaussian weights of edges to come, None until it is known


@parameters
class GraphMachine(KernelParameters, BaseMachine):
    """Parameters and fit of `GKM` and `GKMRegressor`; each has a ``_loss()`` of its own."""

    C_graph: GraphWeight | None = None
    graph: GraphLike | None = None
    n_neighbors: Count | None = None
    sampling: Literal["uniform", "weight"] = "uniform"
    fit_intercept: bool = True
    tol: Tolerance = 0.1
    max_iter: Count = 200_000
    random_state: RandomState = None

    _largest_n = 100_000
    _memory = "rows visited"
    # Computed when first asked for, and then kept.
    _computed_later = ("objective_", "transduction_")

    # --- Before the solver -----------------------------------------------------------------------

    def _rule(self):
        return graph_rule(self.graph, self.n_neighbors, NeighborGraph())

    def _training(self, X, codes, weight, classes):
        check_graph(self._rule(), codes, weight)
        return super()._training(X, codes, weight, classes)

    def _prepare(self, data):
        """Return the pool that all two-class problems draw from."""
        labeled = data.codes >= 0
        graph = training_graph(self._rule(), data.X, data.rows, labeled, data.kernel)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return Pool(data.X, labeled, graph, self._sampler(graph), seed, None)

    def _sampler(self, graph):
        """Return where edges are drawn from, None without edges."""
        if graph.n_edges == 0:
            return None
        if self.sampling == "uniform":
            return edge_sampler(graph)
        listed = proportional_graph(graph)
        if listed.n_edges == 0:
            return None
        sampler = edge_sampler(listed, proportional=True)
        # The mean is over all edges, those too whose weight is 0 in floating point.
        return sampler._replace(mean=sampler.mean * (listed.n_edges / graph.n_edges))

    def _problem(self, data, ratio):
        """Return what is minimized, but for the graph (see `_on_graph`); ``ratio`` is not used."""
        bias = "regularized" if self.fit_intercept else "none"
        power = float(self.power)
        return Problem(self._loss(), C=float(self.C), kernel=data.kernel, bias=bias, power=power)

    def _on_graph(self, problem, pool, targets, weight):
        """Return a problem with its graph, Theorem 1 for it, and the radius of its ball.

        ``targets`` and ``weight`` are those of labeled rows. Where iterates are projected, the ball
        holds the solution: ½‖w*‖² ≤ J(w*) ≤ J(0).
        """
        loss, mean_C = problem.labeled_loss, problem.C * weight.sum()
        R = space_radius(problem.kernel, pool.X)
        C_graph = self._graph_weight(mean_C)
        problem = dataclasses.replace(problem, graph=pool.graph, C_graph=C_graph)
        A = loss.lipschitz * math.hypot(R, float(self.fit_intercept))  # 1 is the constant of b
        bounds, radius = theorem_bounds(mean_C, C_graph, problem.power, R, A), math.inf
        if self.projection and not (self.projection == "auto" and bounds.holds):
            # J(0), which J of the solution does not exceed.
            losses = loss.value(targets, np.zeros(targets.size))
            radius = math.sqrt(2 * problem.C * float(weight @ losses))
        return problem, bounds, radius

    def _graph_weight(self, mean_C):
        """Return the number that ``C_graph`` stands for.

        On a complete graph, where far rows pull at each other, the weight of the loss itself made
        outputs constant on most data that were tried: the rule "labels" gives it a tenth of that.
        """
        rule, p = self.C_graph, float(self.power)
        if rule is None:
            return GRAPH_SHARE * mean_C
        if rule == "labels":
            return (0.1 if joins_all(self._rule()) else 1.0) * mean_C
        if rule != "paper":
            return float(rule)
        if mean_C == 0 or p < 2:
            return mean_C
        return largest_C_graph(mean_C, p, 1.0, 1.0, share=1.0)  # its bounds suppose R = A = 1

    # --- The solver ------------------------------------------------------------------------------

    def _accumulators(self, problem, pool):
        """Return where the steps are collected, without any so far."""
        sums = KernelSums(pool.X, problem.kernel, self.precision == "single")
        return Accumulators(sums, self.fit_intercept)

    def _steps(self, data, pool, targets, problem):
        """Return the `BinaryFit` of a problem on its graph, and the accumulators of its steps."""
        known, n = pool.labeled, data.X.shape[0]
        problem, bounds, radius = self._on_graph(
            problem, pool, targets[known], data.loss_weight[known]
        )
        accumulators = self._accumulators(problem, pool)
        first = min(max(500, n), 4000)  # steps up to the first look at the average
        solution = solve_gkm(
            data.X, targets, known, data.loss_weight, problem, pool.sampler, seed=pool.seed,
            tol=float(self.tol), max_iter=self.max_iter, first=first, radius=radius,
            accumulators=accumulators, callback=lambda stretch: self._report(stretch._asdict()),
        )  # fmt: skip
        return self._reported(solution, data.X, problem, bounds), accumulators

    def _reported(self, solution, X, problem, bounds):
        """Return the `BinaryFit` of a solution; J and outputs are computed when asked for."""
        dual, b, _, _, *counts = solution  # iterations, status and history
        coef, outputs = None, np.full(X.shape[0], np.nan)
        if problem.kernel.name == "linear":
            coef = problem.kernel.sigma_f**2 * np.asarray(dual @ X).ravel()
        extra = {"bounds_": bounds, "problem_": problem}
        return BinaryFit(dual, coef, b, outputs, math.nan, *counts, extra)

    def _store(self, data, problems, fits):
        super()._store(data, problems, fits)
        self.graph_ = fits[0].extra["problem_"].graph
        for name in self._computed_later:
            self.__dict__.pop(name, None)


# --- The classifiers -----------------------------------------------------------------------------


_LOOKED_AT = 32, 400  # labeled rows, and unlabeled ones, whose outputs are looked at
_CHEAP = 32  # steps a row beyond those, beside which J takes no time

LOSSES = {
    *("hinge", "squared_hinge", "smooth_hinge", "logistic", "modified_logistic"),
    *("l1", "epsilon_insensitive"),
}


@dataclasses.dataclass
class GraphState:
    """The state of a two-class problem, from which ``partial_fit`` goes on."""

    pool: Pool | None = None  # all rows so far; the same object for all problems
    accumulators: Accumulators | None = None
    t: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0))
    weight: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0))
    owed: float = 0.0  # a fraction of a step


@parameters
class GraphClassifier(GraphMachine, OnlineS3VM):
    """What `GKM` and `BGS3VM` share: the fit, and ``partial_fit``, which goes on with it."""

    online_steps: Annotated[float, Interval(Real, 0, 1e6, closed="both")] = 1.0

    _largest_J = ROUGH

    # --- Before the solver -----------------------------------------------------------------------

    def _loss(self):
        return checked_labeled_loss(self.labeled_loss, sorted(LOSSES))

    # --- The solver ------------------------------------------------------------------------------

    def _fit_binary(self, data, pool, t, problem, index):
        fit, accumulators = self._steps(data, pool, t, problem)
        self._machines.append(GraphState(pool, accumulators, t, data.loss_weight))
        return fit

    # --- After the solver ------------------------------------------------------------------------

    def _transduce(self, X, codes, rows, fits):
        self._last_batch = X, codes

    def _look(self, data, fits, found, stacklevel=6):
        """Look at a few rows, and at more where these are doubtful: outputs take long here."""
        for most in _LOOKED_AT:
            parts = np.flatnonzero(data.codes >= 0), np.flatnonzero(data.codes < 0)
            rows = np.concatenate([part[:: 1 + part.size // most] for part in parts])
            found = self._decide(self._outputs(data.X[rows]))
            names = ("codes", "sample_weight", "loss_weight")
            few = {name: getattr(data, name)[rows] for name in names}
            X = data.X[rows][:, rows] if self._precomputed else data.X[rows]
            part = data._replace(X=X, **few)
            answers = np.unique(found[part.codes < 0]).size  # a rare class may be among the others
            if answers in (0, data.n_classes) and not self._answer_findings(part, found):
                break
        if min(fit.n_iter for fit in fits) >= _CHEAP * (data.codes.size - _LOOKED_AT[-1]):
            values = np.atleast_1d(self.objective_)
            fits = [fit._replace(objective=J) for fit, J in zip(fits, values, strict=True)]
        super()._look(part, fits, found, stacklevel + 1, data)

    @cached_property
    def transduction_(self):
        """A label for every training row."""
        check_is_fitted(self)
        X, codes = self._last_batch
        found = self._decide(self._outputs(X))
        return self.classes_[np.where(codes >= 0, codes, found)]

    @cached_property
    def objective_(self):
        """J at the averaged function."""
        check_is_fitted(self)
        problems = self.problem_ if isinstance(self.problem_, list) else [self.problem_]
        pairs = zip(self._machines, problems, strict=True)
        values = [self._value(machine, problem) for machine, problem in pairs]
        return values[0] if len(values) == 1 else np.array(values)

    def _value(self, machine, problem):
        """Return J of a two-class problem."""
        accumulators, n = machine.accumulators, machine.t.size
        dual, b = accumulators.average()
        parts = np.array_split(np.arange(n), 1 + n // 512)
        f = np.concatenate([accumulators.outputs(part) for part in parts])
        norm2 = float(dual @ (f[accumulators.listed] - b))
        return problem.value(f, machine.t, norm2, b, machine.weight)

    # --- More rows -------------------------------------------------------------------------------

    def _start(self, data, problem, index):
        return GraphState()

    def _batch(self, X, codes, weight, classes, first):
        rule, earlier = self._rule(), GraphState() if first else self._machines[0]
        if not isinstance(rule, NeighborGraph):
            raise ValueError(
                "partial_fit needs a NeighborGraph: a given graph has no place for new rows"
            )
        labeled = np.append(earlier.t != 0, codes >= 0)
        check_graph(rule, np.where(labeled, 0, -1), np.append(earlier.weight, weight))
        return super()._batch(X, codes, weight, classes, first)

    def _update(self, machine, data, t, problem, index):
        # The first problem joins the batch to the graph, and the others take it from there.
        pool = self._machines[0].pool if index else self._grown(machine.pool, data)
        machine.pool = pool
        if machine.accumulators is None:
            machine.accumulators = self._accumulators(problem, pool)
        accumulators = machine.accumulators
        accumulators.extend(pool.X, pool.labeled)
        machine.t = np.append(machine.t, t)
        machine.weight = np.append(machine.weight, data.loss_weight)
        targets, weight = machine.t[pool.labeled], machine.weight[pool.labeled]
        problem, bounds, radius = self._on_graph(problem, pool, targets, weight)
        # A fraction of a step is owed to the next call.
        owed = machine.owed + t.size * self.online_steps
        steps, history = int(owed), []
        machine.owed = owed - steps
        # Before the first label there is nothing to learn.
        if weight.size and steps:
            accumulators.forget()
            rows, keys = np.flatnonzero(pool.labeled), streams(pool.seed)
            drawn = rows, targets, np.cumsum(weight), pool.sampler, problem, keys
            accumulators.advance(steps, *drawn, radius)
            history.append(stretch_of(accumulators, steps))
            self._report(history[-1]._asdict())
        solution = solution_of(accumulators, "completed", history)
        return self._reported(solution, pool.X, problem, bounds)

    def _grown(self, pool, data):
        """Return the rows so far with those of the batch, and their graph."""
        if pool is None:  # the first call: the graph is that of this batch
            return self._prepare(data)
        stack = sp.vstack if sp.issparse(pool.X) or sp.issparse(data.X) else np.concatenate
        X = stack([pool.X, data.X])
        X = sp.csr_matrix(X) if sp.issparse(X) else X
        labeled = np.concatenate([pool.labeled, data.codes >= 0])
        rule, graph, gamma = self._rule(), pool.graph, pool.gamma
        # New edges get weights of the width that the first batch had.
        if gamma is None and isinstance(graph, Graph) and rule.weights == "gaussian":
            gamma = rule.weight_gamma(data.kernel)
            gamma = length_gamma(graph, X) if gamma is None else gamma
        if joins_all(graph) or joins_all(rule):
            graph = rule.build(X, labeled, data.kernel)
        else:
            graph = extend_graph(graph, X, labeled, rule, gamma)
        return Pool(X, labeled, graph, self._sampler(graph), pool.seed, gamma)

    def _store_batch(self, data, problems, fits, X, codes):
        rows = self._machines[0].pool.X
        everything = data._replace(X=rows, rows=np.arange(rows.shape[0]))
        self._store(everything, problems, fits)
        self._transduce(X, codes, data.rows, fits)

    def _snapshot(self, machine):
        """Return the present model; later steps change a copy of the accumulators."""
        before = dict(vars(machine))
        machine.accumulators = machine.accumulators.copied()
        return before


@parameters
class GKM(GraphClassifier):
    """Graph-based semi-supervised kernel machine, by stochastic gradients.

    Minimizes ::

        J(f, b) = ½‖f‖² + ½b² + C Σ_L s_i ℓ(t_i, f(x_i) + b)
                  + (C_graph / |E|) Σ_E μ_ij |f(x_i) − f(x_j)|^p

    over a graph of the labeled and unlabeled rows that has no edge between two labeled ones. Each
    step looks at one labeled row and one edge, and the weighted average of all iterates is kept.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses of labeled rows. The paper's C weights their *mean*: it is C Σ_L s_i.
    C_graph : float, "labels", "paper" or None, default=None
        Weight C' of the mean over the edges. None means C Σ_L s_i / 20 with the weights of the
        losses, ``class_weight`` included, which harms little where the neighbors do not follow the
        classes; where they do, with p = 2 on a k-NN graph, more of it often helps. ``"labels"`` is
        C Σ_L s_i, that of the mean loss, or a tenth of it with a complete graph. ``"paper"`` is
        C' = C Σ_L s_i for p < 2, and the paper's bounds for p = 2 and p > 2, which suppose
        k(x, x) = 1 and no offset.
    labeled_loss : str or LabeledLoss, default="hinge"
        ``"hinge"``, ``"smooth_hinge"``, ``"logistic"``, ``"l1"``, ``"epsilon_insensitive"``,
        ``"modified_logistic"`` or ``"squared_hinge"``; a `LabeledLoss` where its parameter is to be
        another one. The slopes of the last have no bound, which puts it outside Theorem 1 unless
        iterates are projected.
    power : float, default=2.0
        Power p of the differences over edges, p ≥ 1.
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
        Which rows are joined, see `NeighborGraph`; ``NeighborGraph("all", gamma="kernel")`` is the
        graph of the paper. Two labeled rows are not joined then. A given graph of the n rows, or a
        matrix of its weights, is taken as it is. None is ``NeighborGraph()``: 5 neighbors and
        Gaussian weights. With ``kernel="precomputed"`` distances are those of feature space.
    n_neighbors : int, default=None
        k in short for ``graph=NeighborGraph(k)``; only one of the two can be given.
    sampling : {"uniform", "weight"}, default="uniform"
        Draw edges uniformly, or in proportion to their weights: the same objective, with less
        noise where most weights are tiny. Of a complete graph the latter lists all pairs.
    fit_intercept : bool, default=True
        Add 1 to the kernel, which gives the offset b and the term ½b².
    projection : bool or "auto", default="auto"
        Project iterates onto the ball ‖(f, b)‖² ≤ 2 J(0), in which the solution lies.
        ``"auto"`` does so where Theorem 1 makes no promise, and the method as printed may diverge.
    precision : {"single", "double"}, default="single"
        Of the values of an rbf kernel.
    online_steps : float, default=1.0
        Steps that ``partial_fit`` makes for each new row.
    tol : float, default=0.1
        Stop when doubling the number of steps changes the averaged outputs (root mean square over
        up to 256 rows) by at most this share of their size, or of 1 if that is larger, and J
        exceeds that of f = 0 by no more than this share.
    max_iter : int, default=200_000
        Largest number of steps T; the paper makes n, and a fifth of that from 8000 rows on.
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
        Rows with a nonzero coefficient; after ``partial_fit``, counted over all calls without rows
        of weight zero.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, d)
        These rows; absent with ``kernel="precomputed"``.
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
        The conditions of Theorem 1 and its constants, see `theorem_bounds`.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the one found where it was unlabeled. Computed
        when first asked for: with many rows it takes longer than the fit. After ``partial_fit``,
        of the rows of the last call.
    objective_ : float or ndarray of shape (n_classes,)
        J at the averaged function over all rows so far, computed when first asked for.
    problem_ : Problem or list of Problem
        What was minimized.
    n_iter_ : int
        Steps T.
    history_ : list
        One `Stretch` (n_iter, objective, norm, gradient, n_support, change) per look at the
        average. ``objective`` is the mean of the one-row, one-edge estimates of J at the iterates.
    termination_condition_ : str
        ``"converged"``, ``"max_iter"``, ``"completed"`` (by ``partial_fit``) or ``"stopped"`` (by
        the callback); a list with more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    GKMRegressor : The same machine for real targets.
    BGS3VM : With a limit on the number of support rows.

    Notes
    -----
    It should not be used on sparse text, nor with the linear kernel on clusters in many dimensions:
    on such sets of the book's comparison it is worse than `SVM`.

    Memory grows with the rows visited, at most one and two ends of an edge per step; no Gram matrix
    is kept. A step costs three kernel sums over the rows visited so far, so that T steps cost
    O(T² d), or O(T n d) once all rows have been seen.

    The training rows are kept, not copied: they must not be changed in place.

    A row of weight 0 is left out. Any other weight counts in the loss of a labeled row, and nowhere
    else: k-NN and radius graphs have one vertex for all identical rows, so that a weight of k
    equals k copies for unlabeled rows, too. With a complete graph unequal weights of unlabeled rows
    are refused, by ``partial_fit`` those of different calls too.

    ``partial_fit`` adds rows to those to draw from, joins them to the graph, and goes on with the
    step sizes 2/(t + 1). If no more rows come, the average converges to the solution for all rows
    seen, at the rate of Theorem 1. Neighbors of earlier rows are not looked for again, and copies
    are vertices of their own here, which take places among the neighbors of a row. Where the γ of
    Gaussian weights is to follow from the lengths of the edges, a complete graph has that of all
    rows so far; one of neighbors keeps that of the first call whose rows were joined (1 for their
    own edges, if a call came before): give a number where that call holds only a few rows.
    Where ``graph`` changes between two calls to all pairs, or from them to neighbors, the next call
    makes the graph of all rows anew.

    References
    ----------
    T. Le, K. Nguyen, V. Nguyen, T. D. Nguyen and D. Phung, "Scalable semi-supervised learning with
    graph-based kernel machine", arXiv:1606.06793; S. Lacoste-Julien, M. Schmidt and F. Bach, "A
    simpler approach to obtaining an O(1/t) convergence rate for the projected stochastic
    subgradient method", arXiv:1212.2002.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import GKM
    >>> X = np.array([[-2.0], [-1.9], [-1.5], [1.4], [1.8], [2.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])
    >>> model = GKM(n_neighbors=2, random_state=0).fit(X, y)
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    labeled_loss: Annotated[str, StrOptions(LOSSES)] | LabeledLoss = "hinge"
    power: Power = 2.0
    projection: Literal["auto"] | bool = "auto"
    precision: Literal["single", "double"] = "single"
