"""What the classifier and the regressor share: parameters and how they are resolved."""

import math
from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from s3vm_lib._base import BaseS3VM
from s3vm_lib._limits import COUNT, SCALE, SHAPE, WEIGHT, ZERO
from s3vm_lib.graph_kernel_machine._rules import (
    build_graph,
    make_loss,
    paper_steps,
    proportional_graph,
    space_radius,
    weight_gamma,
)
from s3vm_lib.graph_kernel_machine._theory import theorem_bounds
from s3vm_lib.graphs import CompleteGraph, Graph, edge_sampler

_CHUNK = 2**24  # kernel values computed at once in prediction


class Pool(NamedTuple):
    """The rows that steps are drawn from, and their graph."""

    X: np.ndarray
    labeled: np.ndarray  # bool
    graph: Graph | CompleteGraph
    sampler: tuple | None  # None without edges
    gamma: float | None  # of the weights


GRAPH_CONSTRAINTS = {
    **{k: v for k, v in BaseS3VM._kernel_constraints.items() if k != "class_weight"},
    "C_graph": [WEIGHT, ZERO, StrOptions({"paper", "theorem"}), None],
    "tau": [SHAPE],
    "epsilon": [SHAPE],
    "power": [Interval(Real, 1, 20, closed="both")],
    "sigma_f": [*BaseS3VM._kernel_constraints["sigma_f"], StrOptions({"theorem"})],
    "graph": [StrOptions({"knn", "radius", "complete"}), Graph, CompleteGraph],
    "n_neighbors": [COUNT],
    "radius": [SCALE],
    "edge_weights": [StrOptions({"gaussian", "binary"})],
    "edge_gamma": [
        StrOptions({"kernel"}),
        None,
        SCALE,
    ],
    "sampling": [StrOptions({"uniform", "weight"})],
    "fit_intercept": ["boolean"],
    "projection": ["boolean", StrOptions({"auto"})],
    "precision": [StrOptions({"single", "double"})],
    "max_iter": [COUNT, StrOptions({"paper"})],
    "random_state": ["random_state"],
}


class GraphMachine:
    """Resolves the parameters that `GKM` and `GKMRegressor` have in common."""

    def _loss(self):
        return make_loss(self.labeled_loss, self.tau, self.epsilon)

    def _share(self):
        """What the graph gets by default, as a share of the weight of the mean loss.

        On a complete graph, where far rows pull at each other, the weight of the loss itself made
        outputs constant on most data that were tried.
        """
        complete = self.graph == "complete" or isinstance(self.graph, CompleteGraph)
        return 0.1 if complete else 1.0

    def _seed(self):
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _make_pool(self, X, labeled, kernel):
        """Graph and sampler of the rows."""
        gamma = weight_gamma(self.edge_gamma, kernel)
        if not isinstance(self.graph, str):
            graph = self.graph
            if graph.n != X.shape[0]:
                raise ValueError(
                    f"graph must have one vertex for each of the {X.shape[0]} rows of positive "
                    f"weight, got {graph.n}"
                )
        else:
            if self.graph == "complete" and kernel.name == "precomputed":
                raise ValueError("graph='complete' needs the rows: kernel='precomputed' has none")
            metric = "precomputed" if kernel.name == "precomputed" else "euclidean"
            options = dict(n_neighbors=self.n_neighbors, radius=self.radius)
            options.update(weights=self.edge_weights, gamma=gamma)
            graph = build_graph(self.graph, X, labeled, metric, **options)
        return Pool(X, labeled, graph, self._sampler(graph), gamma)

    def _sampler(self, graph):
        """Where edges are drawn from, None without edges."""
        if graph.n_edges == 0:
            return None
        if self.sampling == "uniform":
            return edge_sampler(graph)
        return edge_sampler(proportional_graph(graph), proportional=True)

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
        if self.projection is False or (self.projection == "auto" and bounds.holds):
            return math.inf
        losses = problem.labeled_loss.value(targets, np.zeros(targets.size))
        return math.sqrt(2 * problem.C * float(weight @ losses))

    def _plan(self, n):
        """Options of `solve_gkm`: tolerance and numbers of steps."""
        if self.max_iter == "paper":
            T = paper_steps(n)
            return dict(tol=0.0, max_iter=T, first=T)
        return dict(tol=float(self.tol), max_iter=self.max_iter, first=min(max(500, n), 4000))

    def _status(self, status):
        return "completed" if status == "max_iter" and self.max_iter == "paper" else status


def predictions(kernel, support, dual, intercept, X):
    """f(x) + b for each row of dual coefficients, shape (m, r)."""
    if support.shape[0] == 0:
        return np.tile(intercept, (X.shape[0], 1)).astype(float)
    step = max(1, _CHUNK // support.shape[0])
    blocks = [
        kernel.gram(X[start : start + step], support) @ dual.T
        for start in range(0, X.shape[0], step)
    ]
    return np.concatenate(blocks) + intercept
