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
    theorem_bounds,
)
from s3vm_lib.graph_kernel_machine._solver import Accumulators, KernelSums, solve_gkm

from s3vm_lib.graphs import (  # isort: skip
    CompleteGraph, Graph, GraphLike, NeighborGraph, check_graph, edge_sampler, graph_rule,
    joins_all, training_graph,
)  # fmt: skip
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

    def _on_graph(self, problem, mass, pool):
        """Return problem with the graph of a pool whose labeled rows have the weight ``mass``."""
        R = space_radius(problem.kernel, pool.X)
        C_graph = self._graph_weight(self.C * mass, R, problem.labeled_loss)
        return dataclasses.replace(problem, graph=pool.graph, C_graph=C_graph)

    def _graph_weight(self, mean_C, R, loss):
        """Return the number that ``C_graph`` stands for.

        On a complete graph, where far rows pull at each other, the weight of the loss itself made
        outputs constant on most data that were tried: the rule "labels" gives it a tenth of that.
        """
        share, power = 0.1 if joins_all(self._rule()) else 1.0, float(self.power)
        return resolve_C_graph(self.C_graph, mean_C, power, R, loss, self.fit_intercept, share)

    def _bounds(self, problem, mean_C, X):
        """Return Theorem 1 for this problem (`Bounds`)."""
        R = space_radius(problem.kernel, X)
        reach = math.hypot(R, 1.0 if self.fit_intercept else 0.0)  # with the constant of the offset
        A = problem.labeled_loss.lipschitz * reach
        return theorem_bounds(mean_C, problem.C_graph, problem.power, R, A)

    def _ball(self, problem, bounds, targets, weight):
        """Return the radius of the ball to project onto: ½‖w*‖² ≤ J(w*) ≤ J(0)."""
        if not self.projection or (self.projection == "auto" and bounds.holds):
            return math.inf
        losses = problem.labeled_loss.value(targets, np.zeros(targets.size))
        return math.sqrt(2 * problem.C * float(weight @ losses))

    # --- The solver ------------------------------------------------------------------------------

    def _accumulators(self, problem, pool):
        """Return where the steps are collected, without any so far."""
        sums = KernelSums(pool.X, problem.kernel, self.precision == "single")
        return Accumulators(sums, self.fit_intercept)

    def _steps(self, data, pool, targets, problem, accumulators):
        """Return the `BinaryFit` of a problem on its graph."""
        known, n = pool.labeled, data.X.shape[0]
        weight = data.loss_weight[known]
        bounds = self._bounds(problem, problem.C * weight.sum(), data.X)
        radius = self._ball(problem, bounds, targets[known], weight)
        # Tolerance, largest number of steps, and steps up to the first look at the average.
        limits, by_paper = (float(self.tol), self.max_iter, min(max(500, n), 4000)), False
        if self.max_iter == "paper":
            limits, by_paper = (0.0, paper_steps(n), paper_steps(n)), True
        tol, max_iter, first = limits
        solution = solve_gkm(
            data.X, targets, known, data.loss_weight, problem, pool.sampler, seed=pool.seed,
            tol=tol, max_iter=max_iter, first=first, radius=radius, accumulators=accumulators,
            callback=lambda stretch: self._report(stretch._asdict()),
        )  # fmt: skip
        if by_paper and solution.status == "max_iter":
            solution = solution._replace(status="completed")
        return self._reported(solution, data.X, problem, bounds)

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
