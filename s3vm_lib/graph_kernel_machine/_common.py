"""What the classifier and the regressor share: parameters, how they are resolved, and a fit."""

import dataclasses
import math
from numbers import Real
from typing import Annotated, Literal, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from s3vm_lib.base.machine import BaseMachine, BinaryFit
from s3vm_lib.graph_kernel_machine._rules import (
    paper_steps,
    proportional_graph,
    resolve_C_graph,
    space_radius,
)
from s3vm_lib.graph_kernel_machine._solver import Accumulators, KernelSums, solve_gkm
from s3vm_lib.graph_kernel_machine._theory import theorem_bounds
from s3vm_lib.graphs import (
    CompleteGraph,
    Graph,
    GraphLike,
    NeighborGraph,
    check_graph,
    edge_sampler,
    graph_rule,
    joins_all,
    training_graph,
)
from s3vm_lib.objective import Problem
from s3vm_lib.utils.limits import Count, RandomState, Tolerance, WeightOrZero
from s3vm_lib.utils.validation import KernelParameters, parameters

GraphWeight = Literal["labels", "paper", "theorem"] | WeightOrZero
Power = Annotated[float, Interval(Real, 1, 20, closed="both")]


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
    max_iter: Literal["paper"] | Count = 200_000
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
        """The pool that all two-class problems draw from."""
        labeled = data.codes >= 0
        graph = training_graph(self._rule(), data.X, data.rows, labeled, data.kernel)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return Pool(data.X, labeled, graph, self._sampler(graph), seed, None)

    def _sampler(self, graph):
        """Where edges are drawn from, None without edges."""
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
        """What is minimized, but for the graph (see `_on_graph`); ``ratio`` is not used."""
        bias = "regularized" if self.fit_intercept else "none"
        power = float(self.power)
        return Problem(self._loss(), C=float(self.C), kernel=data.kernel, bias=bias, power=power)

    def _on_graph(self, problem, mass, pool):
        """The problem with the graph of a pool whose labeled rows have the weight ``mass``."""
        C_graph = resolve_C_graph(
            self.C_graph,
            self.C * mass,
            problem.power,
            space_radius(problem.kernel, pool.X),
            problem.labeled_loss,
            self.fit_intercept,
            self._share(),
        )
        return dataclasses.replace(problem, graph=pool.graph, C_graph=C_graph)

    def _share(self):
        """What the rule "labels" gives the graph, as a share of the weight of the mean loss.

        On a complete graph, where far rows pull at each other, the weight of the loss itself made
        outputs constant on most data that were tried.
        """
        return 0.1 if joins_all(self._rule()) else 1.0

    def _bounds(self, problem, mean_C, X):
        """Theorem 1 for this problem (`Bounds`)."""
        R = space_radius(problem.kernel, X)
        A = problem.labeled_loss.lipschitz * self._reach(R)
        return theorem_bounds(mean_C, problem.C_graph, problem.power, R, A)

    def _reach(self, R):
        """Bound on the norm of a feature vector, with the constant of the offset."""
        return math.hypot(R, 1.0 if self.fit_intercept else 0.0)

    def _ball(self, problem, bounds, targets, weight):
        """Radius of the ball to project onto: ½‖w*‖² ≤ J(w*) ≤ J(0)."""
        if not self.projection or (self.projection == "auto" and bounds.holds):
            return math.inf
        losses = problem.labeled_loss.value(targets, np.zeros(targets.size))
        return math.sqrt(2 * problem.C * float(weight @ losses))

    # --- The solver ------------------------------------------------------------------------------

    def _accumulators(self, problem, pool):
        """Where the steps are collected, without any so far."""
        sums = KernelSums(pool.X, problem.kernel, self.precision == "single")
        return Accumulators(sums, self.fit_intercept)

    def _steps(self, data, pool, targets, problem, accumulators):
        """The `BinaryFit` of a problem on its graph."""
        known, n = pool.labeled, data.X.shape[0]
        weight = data.loss_weight[known]
        bounds = self._bounds(problem, problem.C * weight.sum(), data.X)
        solution = solve_gkm(
            data.X,
            targets,
            known,
            data.loss_weight,
            problem,
            pool.sampler,
            seed=pool.seed,
            radius=self._ball(problem, bounds, targets[known], weight),
            accumulators=accumulators,
            callback=lambda stretch: self._report(stretch._asdict()),
            **self._plan(n),
        )
        by_paper = solution.status == "max_iter" and self.max_iter == "paper"
        status = "completed" if by_paper else solution.status
        return self._reported(solution, data.X, problem, status, bounds)

    def _plan(self, n):
        """Options of `solve_gkm`: tolerance and numbers of steps."""
        if self.max_iter == "paper":
            T = paper_steps(n)
            return dict(tol=0.0, max_iter=T, first=T)
        return dict(tol=float(self.tol), max_iter=self.max_iter, first=min(max(500, n), 4000))

    def _reported(self, solution, X, problem, status, bounds):
        coef = None
        if problem.kernel.name == "linear":
            coef = problem.kernel.sigma_f**2 * np.asarray(solution.beta @ X).ravel()
        outputs = np.full(X.shape[0], np.nan)  # computed when asked for
        extra = {"bounds_": bounds, "problem_": problem}
        n_iter, history = solution.n_iter, solution.history
        return BinaryFit(
            solution.beta, coef, solution.b, outputs, math.nan, n_iter, status, history, extra
        )

    def _store(self, data, problems, fits):
        super()._store(data, problems, fits)
        self.graph_ = fits[0].extra["problem_"].graph
        for name in self._computed_later:
            self.__dict__.pop(name, None)
