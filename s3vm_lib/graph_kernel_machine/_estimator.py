"""The classifier `GKM`."""

import dataclasses
import math
from collections.abc import Callable
from numbers import Real
from typing import Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from s3vm_lib._base import BaseS3VM, BinaryFit
from s3vm_lib._online import OnlineS3VM
from s3vm_lib._rng import hash_key
from s3vm_lib.graph_kernel_machine._common import (
    GRAPH_CONSTRAINTS,
    GraphMachine,
    Pool,
)
from s3vm_lib.graph_kernel_machine._rules import (
    extend_graph,
    length_gamma,
    resolve_C_graph,
    resolve_sigma_f,
    space_radius,
)
from s3vm_lib.graph_kernel_machine._solver import (
    Accumulators,
    KernelSums,
    solution_of,
    solve_gkm,
    stretch_of,
)
from s3vm_lib.graphs import CompleteGraph, Graph
from s3vm_lib.objective import Problem


class Machine:
    """What `GKM` keeps of a two-class problem between the calls of ``partial_fit``."""

    def __init__(self, pool, accumulators, keys) -> None:
        self.pool = pool
        self.accumulators = accumulators
        self.keys = keys
        self.t = np.empty(0)
        self.weight = np.empty(0)
        self.owed = 0.0  # a fraction of a step


class GKM(GraphMachine, OnlineS3VM):
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
    C_graph : float, "paper", "theorem" or None, default=None
        Weight C' of the mean over the edges. None means C Σ_L s_i, that of the mean loss, or a
        tenth of it with a complete graph. With p = 2 on a k-NN graph more of it often helps.
        ``"paper"`` is C' = C Σ_L s_i for p < 2, and the paper's bounds for p = 2 and p > 2, which
        suppose k(x, x) = 1 and no offset. ``"theorem"`` is the default, or less where Theorem 1
        asks for it with the kernel and the offset that are used.
    labeled_loss : str, default="hinge"
        ``"hinge"``, ``"smooth_hinge"``, ``"logistic"``, ``"l1"``, ``"epsilon_insensitive"``,
        ``"modified_logistic"`` or ``"squared_hinge"``. The slopes of the last have no bound, which
        puts it outside Theorem 1 unless iterates are projected.
    tau : float, default=0.5
        Width of the smooth hinge.
    epsilon : float, default=0.1
        Half width of the flat part of the epsilon-insensitive loss.
    power : float, default=2.0
        Power p of the differences over edges, p ≥ 1.
    kernel : {"linear", "poly", "rbf", "laplacian", "precomputed"}, default="rbf"
        Kernel function, see `Kernel`.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of rbf, poly and laplacian, see `resolve_gamma`.
    degree : int, default=3
        Degree of the polynomial kernel, at most 30.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, non-negative.
    sigma_f : float or "theorem", default=1.0
        Output standard deviation: kernels are multiplied by its square. ``"theorem"`` is the
        largest with which Theorem 1 holds for p ≥ 2 (rbf and laplacian).
    graph : {"knn", "radius", "complete"}, Graph or CompleteGraph, default="knn"
        Which rows are joined: each one to its ``n_neighbors`` nearest, rows within ``radius``, all
        of them (the paper), or the edges of a given graph of the rows. With
        ``kernel="precomputed"`` distances are those of feature space.
    n_neighbors : int, default=5
        Neighbors of the k-NN graph.
    radius : float, default=1.0
        Largest length of an edge of the radius graph.
    edge_weights : {"gaussian", "binary"}, default="gaussian"
        Weights μ = exp(−γ_s‖x_i − x_j‖²), or 1.
    edge_gamma : "kernel", float or None, default=None
        γ_s of Gaussian weights; None means 1/(2m²) for the mean length m of the edges, and
        ``"kernel"`` that of the kernel, where it is rbf or laplacian (the paper's σ_s = σ_l).
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
        up to 256 rows) by at most this share of their size, or of 1 if that is larger.
    max_iter : int or "paper", default=200_000
        Largest number of steps T. ``"paper"`` makes n steps, or 0.2 n from 8000 rows on, and does
        not look at ``tol``.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    random_state : int, RandomState instance or None, default=None
        Source of the rows and edges that are drawn.
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
        ``"converged"``, ``"max_iter"``, ``"completed"`` (the paper's number of steps, or
        ``partial_fit``) or ``"stopped"`` (by the callback); a list with more than two classes.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    GKMRegressor : The same machine for real targets.
    BGS3VM : With a limit on the number of support rows.

    Notes
    -----
    Memory grows with the rows visited, at most one and two ends of an edge per step; no Gram matrix
    is kept. A step costs three kernel sums over the rows visited so far, so that T steps cost
    O(T² d), or O(T n d) once all rows have been seen.

    The training rows are kept, not copied: they must not be changed in place.

    A row of weight 0 is left out. Any other weight counts in the loss of a labeled row, and nowhere
    else: k-NN and radius graphs have one vertex for all identical rows, so that a weight of k
    equals k copies for unlabeled rows, too. With ``graph="complete"`` unequal weights of unlabeled
    rows are refused.

    ``partial_fit`` adds rows to those to draw from, joins them to the graph, and goes on with the
    step sizes 2/(t + 1). If no more rows come, the average converges to the solution for all rows
    seen, at the rate of Theorem 1. Neighbors of earlier rows are not looked for again, and copies
    are vertices of their own here, which take places among the neighbors of a row.

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
    >>> GKM(n_neighbors=2, random_state=0).fit(X, y).transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    _parameter_constraints = {
        **GRAPH_CONSTRAINTS,
        "class_weight": BaseS3VM._kernel_constraints["class_weight"],
        "labeled_loss": [
            StrOptions(
                {
                    *("hinge", "squared_hinge", "smooth_hinge", "logistic", "modified_logistic"),
                    *("l1", "epsilon_insensitive"),
                }
            )
        ],
        "online_steps": [Interval(Real, 0, 1e6, closed="both")],
    }
    _largest_n = 100_000
    _memory = "rows visited"

    def __init__(
        self,
        *,
        C: float = 1.0,
        C_graph: Literal["paper", "theorem"] | float | None = None,
        labeled_loss: str = "hinge",
        tau: float = 0.5,
        epsilon: float = 0.1,
        power: float = 2.0,
        kernel: Literal["linear", "poly", "rbf", "laplacian", "precomputed"] = "rbf",
        gamma: Literal["scale", "auto"] | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        sigma_f: Literal["theorem"] | float = 1.0,
        graph: Literal["knn", "radius", "complete"] | Graph | CompleteGraph = "knn",
        n_neighbors: int = 5,
        radius: float = 1.0,
        edge_weights: Literal["gaussian", "binary"] = "gaussian",
        edge_gamma: Literal["kernel"] | float | None = None,
        sampling: Literal["uniform", "weight"] = "uniform",
        fit_intercept: bool = True,
        projection: Literal["auto"] | bool = "auto",
        precision: Literal["single", "double"] = "single",
        online_steps: float = 1.0,
        tol: float = 0.1,
        max_iter: Literal["paper"] | int = 200_000,
        class_weight: Literal["balanced"] | dict | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        callback: Callable | None = None,
    ) -> None:
        self.C = C
        self.C_graph = C_graph
        self.labeled_loss = labeled_loss
        self.tau = tau
        self.epsilon = epsilon
        self.power = power
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.sigma_f = sigma_f
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.edge_weights = edge_weights
        self.edge_gamma = edge_gamma
        self.sampling = sampling
        self.fit_intercept = fit_intercept
        self.projection = projection
        self.precision = precision
        self.online_steps = online_steps
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    # --- Before the solver -----------------------------------------------------------------------

    def _resolve_kernel(self, X, weight, sigma_f=None):
        if self.sigma_f != "theorem":
            return super()._resolve_kernel(X, weight, sigma_f)
        if self.kernel not in ("rbf", "laplacian"):
            raise ValueError(
                f"sigma_f='theorem' needs kernel='rbf' or 'laplacian', got {self.kernel!r}"
            )
        if self.C_graph == "theorem":
            raise ValueError("only one of C_graph and sigma_f can be 'theorem'")
        return super()._resolve_kernel(X, weight, 1.0)  # until `_with_sigma_f`

    def _training(self, X, codes, weight, classes):
        self._pool = None
        unlabeled = weight[(codes < 0) & (weight > 0)]
        if unlabeled.size and np.ptp(unlabeled) > 0 and self.graph == "complete":
            raise ValueError(
                "sample_weight must be equal on all unlabeled rows of positive weight with "
                "graph='complete', whose edges have no weights but those of the distances"
            )
        return self._with_sigma_f(super()._training(X, codes, weight, classes))

    def _with_sigma_f(self, data):
        """The data with the output deviation that the rule gives."""
        if self.sigma_f != "theorem":
            return data
        mean_C = self.C * data.loss_weight[data.codes >= 0].sum()
        loss = self._loss()
        C_graph = resolve_C_graph(
            self.C_graph, mean_C, self.power, 1.0, loss, self.fit_intercept, self._share()
        )
        sigma_f = resolve_sigma_f(mean_C, C_graph, self.power, loss, self.fit_intercept)
        return data._replace(kernel=dataclasses.replace(data.kernel, sigma_f=sigma_f))

    def _prepare(self, data):
        self._pool = self._make_pool(data.X, data.codes >= 0, data.kernel)
        self._draws = self._seed()

    def _problem(self, data, ratio):
        """What is minimized; ``ratio`` is not used."""
        if self._pool is None:  # the first call of partial_fit
            self._prepare(data)
        mean_C = self.C * data.loss_weight[data.codes >= 0].sum()
        R, loss = space_radius(data.kernel, data.X), self._loss()
        offset = self.fit_intercept
        C_graph = resolve_C_graph(self.C_graph, mean_C, self.power, R, loss, offset, self._share())
        return Problem(
            loss,
            C=float(self.C),
            kernel=data.kernel,
            bias="regularized" if self.fit_intercept else "none",
            C_graph=C_graph,
            graph=self._pool.graph,
            power=float(self.power),
        )

    # --- The solver ------------------------------------------------------------------------------

    def _fit_binary(self, data, shared, t, problem, index):
        machine = self._start(data, problem, index)
        machine.t, machine.weight = t, data.loss_weight
        self._machines.append(machine)
        labeled = t != 0
        weight = data.loss_weight[labeled]
        bounds = self._bounds(problem, problem.C * weight.sum(), data.X)
        solution = solve_gkm(
            data.X,
            t,
            labeled,
            data.loss_weight,
            problem,
            self._pool.sampler,
            seed=self._draws,
            radius=self._ball(problem, bounds, t[labeled], weight),
            accumulators=machine.accumulators,
            callback=lambda stretch: self._report(stretch._asdict()),
            **self._plan(data.X.shape[0]),
        )
        return self._reported(solution, data.X, problem, self._status(solution.status), bounds)

    def _reported(self, solution, X, problem, status, bounds):
        coef = None
        if problem.kernel.name == "linear":
            coef = problem.kernel.sigma_f**2 * np.asarray(solution.dual @ X).ravel()
        outputs = np.full(X.shape[0], np.nan)  # computed when asked for
        return BinaryFit(
            solution.dual,
            coef,
            solution.b,
            outputs,
            math.nan,
            solution.n_iter,
            status,
            solution.history,
            {"bounds_": bounds},
        )

    # --- After the solver ------------------------------------------------------------------------

    def _store(self, data, problems, fits):
        super()._store(data, problems, fits)
        self._objective = self._labels = None
        self.graph_ = self._pool.graph

    def _transduce(self, X, codes, rows, fits):
        self._rows, self._codes = X, codes

    @property
    def transduction_(self):
        """A label for every training row."""
        check_is_fitted(self)
        if self._labels is None:
            found = self._decide(self._outputs(self._rows))
            self._labels = self.classes_[np.where(self._codes >= 0, self._codes, found)]
        return self._labels

    @property
    def objective_(self):
        """J at the averaged function."""
        check_is_fitted(self)
        if self._objective is None:
            problems = self.problem_ if isinstance(self.problem_, list) else [self.problem_]
            values = [self._value(k, problem) for k, problem in enumerate(problems)]
            self._objective = values[0] if len(values) == 1 else np.array(values)
        return self._objective

    @objective_.setter
    def objective_(self, value):
        self._objective = value

    def _value(self, k, problem):
        """J of the k-th two-class problem."""
        machine = self._machines[k]
        accumulators = machine.accumulators
        dual, b = accumulators.average()
        f = np.concatenate(
            [
                accumulators.outputs(part)
                for part in np.array_split(np.arange(machine.t.size), 1 + machine.t.size // 512)
            ]
        )
        norm2 = float(dual @ (f[accumulators.listed] - b))
        return problem.value(f, machine.t, norm2, b, machine.weight)

    # --- More rows -------------------------------------------------------------------------------

    def _start(self, data, problem, index):
        keys = hash_key(self._draws, 0), hash_key(self._draws, 1)
        return Machine(self._pool, self._accumulators(problem), keys)

    def _accumulators(self, problem):
        sums = KernelSums(self._pool.X, problem.kernel, self.precision == "single")
        return Accumulators(sums, self.fit_intercept)

    def _batch(self, X, codes, weight, classes, first):
        if first:
            self._pool = None
        if not isinstance(self.graph, str):
            raise ValueError(
                "partial_fit needs graph='knn', 'radius' or 'complete': a given graph has no place "
                "for new rows"
            )
        data = super()._batch(X, codes, weight, classes, first)
        return self._with_sigma_f(data) if first else data

    def _update(self, machine, data, t, problem, index):
        if index == 0:
            self._pool = self._extended(machine, data)
            self._current = []
        pool, accumulators = self._pool, machine.accumulators
        m, machine.pool = t.size, pool
        machine.t = np.concatenate([machine.t, t])
        machine.weight = np.concatenate([machine.weight, data.loss_weight])
        accumulators.extend(pool.X, pool.labeled)
        targets, weight = machine.t[pool.labeled], machine.weight[pool.labeled]
        problem = self._grown(problem, weight.sum(), pool)
        bounds = self._bounds(problem, problem.C * weight.sum(), pool.X) if m else None
        self._current.append(problem)
        machine.owed += m * self.online_steps
        steps = int(machine.owed)
        machine.owed -= steps
        history = []
        if weight.size and steps:
            accumulators.forget()
            accumulators.advance(
                steps,
                np.flatnonzero(pool.labeled),
                targets,
                np.cumsum(weight),
                pool.sampler,
                problem,
                machine.keys,
                self._ball(problem, bounds, targets, weight),
            )
            history.append(stretch_of(accumulators, steps))
            self._report(history[-1]._asdict())
        solution = solution_of(accumulators, "completed", history)
        return self._reported(solution, pool.X, problem, "completed", bounds)

    def _extended(self, machine, data):
        """The rows so far with those of the batch, and their graph."""
        old = machine.pool
        if machine.t.size == 0:  # the first call: the graph is that of this batch
            return old
        stack = sp.vstack if sp.issparse(old.X) or sp.issparse(data.X) else np.concatenate
        X = stack([old.X, data.X])
        X = sp.csr_matrix(X) if sp.issparse(X) else X
        labeled = np.concatenate([old.labeled, data.codes >= 0])
        gamma = old.gamma
        if gamma is None and self.graph != "complete" and self.edge_weights == "gaussian":
            gamma = length_gamma(old.graph, old.X)
        graph = old.graph
        if data.codes.size:
            graph = extend_graph(
                graph,
                X,
                old.X.shape[0],
                labeled,
                kind=self.graph,
                n_neighbors=self.n_neighbors,
                radius=self.radius,
                weights=self.edge_weights,
                gamma=gamma,
            )
        return Pool(X, labeled, graph, self._sampler(graph), gamma)

    def _grown(self, problem, mass, pool):
        """The problem on all rows so far."""
        mean_C, R = self.C * mass, space_radius(problem.kernel, pool.X)
        C_graph = resolve_C_graph(
            self.C_graph,
            mean_C,
            problem.power,
            R,
            problem.labeled_loss,
            self.fit_intercept,
            self._share(),
        )
        return dataclasses.replace(problem, graph=pool.graph, C_graph=C_graph)

    def _store_batch(self, data, problems, fits, X, codes):
        everything = data._replace(X=self._pool.X, rows=np.arange(self._pool.X.shape[0]))
        self._store(everything, self._current, fits)
        self._rows, self._codes = X, codes

    def _snapshot(self, machine):
        """A copy of what `_update` changes in place; arrays that it replaces are only kept."""
        accumulators = machine.accumulators
        inner = {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in vars(accumulators).items()
        }
        # Rows beyond the size of the list may be overwritten, those within never are.
        return dict(vars(machine)), inner, dict(vars(accumulators.sums))

    def _restore(self, machine, snapshot):
        outer, inner, sums = snapshot
        for target, values in ((machine, outer), (machine.accumulators, inner)):
            vars(target).clear()
            vars(target).update(values)
        vars(machine.accumulators.sums).clear()
        vars(machine.accumulators.sums).update(sums)
