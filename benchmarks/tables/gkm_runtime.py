"""CPU time of GKM and BGS3VM: 8 features, a tenth of the rows labeled, hinge and p = 1.

``GKM``: n rows, T steps on the complete graph with C' = C/10 of the means, in single precision,
median of five. ``BGS3VM``: budgets 100 and 200, projection, the 5-NN graph built beforehand; T
grows at n = 20,000. What is timed is the solver: the graph, J and the outputs at the rows are
not.
"""

import numpy as np

from benchmarks.harness import race
from s3vm_lib.budgeted import BudgetedAccumulators
from s3vm_lib.graph_kernel_machine import solve_gkm
from s3vm_lib.graphs import CompleteGraph, edge_sampler, knn_graph
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.objective import Problem

ROWS = [
    *({"method": "GKM", "n": n, "T": T} for n, T in ((5000, 5000), (10_000, 10_000))),
    *({"method": "GKM", "n": 50_000, "T": T} for T in (2500, 5000, 10_000, 20_000)),
    *({"method": "BGS3VM", "n": 20_000, "T": T} for T in (5000, 10_000, 20_000, 40_000)),
]


def instance(n):
    """Rows, labels, and which of them are labeled."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 8))
    return X, np.sign(X[:, 0] * X[:, 1]), np.arange(n) < n // 10


def measure(method, n, T):
    """One row: see the protocol in the module's docstring."""
    X, t, labeled = instance(n)
    kernel, l = Kernel("rbf", 1 / 16), int(labeled.sum())
    complete = method == "GKM"
    graph = CompleteGraph(X, 1 / 16, labeled) if complete else knn_graph(X, 5, labeled=labeled)
    problem = Problem(
        LabeledLoss("hinge"), C=512 / l, kernel=kernel, bias="regularized", C_graph=51.2,
        graph=graph, power=1.0,
    )  # fmt: skip
    sampler = edge_sampler(graph)

    def solve():
        slots = None
        if method == "BGS3VM":
            slots = BudgetedAccumulators(X, labeled, kernel, True, (100, 200), "projection")
        return solve_gkm(
            X, t, labeled, np.ones(n), problem, sampler, max_iter=T, first=T, accumulators=slots
        )

    timings, values = race({method: solve})
    return {**timings[method], "support": int(np.count_nonzero(values[method].beta))}
