"""Figure 2 of the GKM paper: T (J(w̄) − J*) and accuracy on g50c, two losses, p = 1, 2, 3.

90 % of g50c for training, 80 % of its labels hidden (split 0 of ``gkm_tables23``), standardized,
rbf kernel with γ = 1/50, an offset by the kernel k + 1, the 5-NN graph with Gaussian weights.
The weight of the mean loss is C = 32 and C' = 32 for p = 1, and otherwise what Theorem 1 allows.
J* is the optimum of an interior point method (cvxpy, CLARABEL) on the whole Gram matrix. Five
seeds; ``bound`` is 2G² of Theorem 1, ``sharp`` the same with the smallest M that the proof
allows.
"""

import numpy as np

from benchmarks.gkm_paper import load, split
from benchmarks.harness import digits
from s3vm_book.gkm import sharpened
from s3vm_lib.graph_kernel_machine import largest_C_graph, solve_gkm, theorem_bounds
from s3vm_lib.graphs import edge_sampler, knn_graph
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.objective import Problem

C = 32.0  # of the mean loss: the largest of the paper's grid
STEPS = [2**k for k in range(7, 16)]
ROWS = [{"loss": loss, "p": p} for loss in ("hinge", "logistic") for p in (1, 2, 3)]


def optimum(problem, K1, t):
    """J* by cvxpy."""
    import cvxpy as cp

    values, vectors = np.linalg.eigh(K1)
    keep = values > 1e-10 * values[-1]
    L = vectors[:, keep] * np.sqrt(values[keep])
    z = cp.Variable(L.shape[1])
    l, graph = t != 0, problem.graph
    margins = cp.multiply(t[l], L[l] @ z)
    hinge = problem.labeled_loss.name == "hinge"
    losses = cp.sum(cp.pos(1 - margins)) if hinge else cp.sum(cp.logistic(-margins))
    differences = (L[graph.i] - L[graph.j]) @ z
    weight = problem.C_graph / graph.n_edges * graph.weights
    smooth = cp.sum(cp.multiply(weight, cp.power(cp.abs(differences), problem.power)))
    value = 0.5 * cp.sum_squares(z) + problem.C * losses + smooth
    return float(cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL))


def measure(loss, p):
    """One row: see the protocol in the module's docstring."""
    X, y, _, X_test, y_test = split(*load("g50c"), 0.8, 0)
    t = np.where(y < 0, 0.0, 2.0 * y - 1)
    labeled, kernel = t != 0, Kernel("rbf", 1 / 50)
    R, A = 1.0, np.sqrt(2.0)
    C_graph = min(C, largest_C_graph(C, p, R, A))
    graph = knn_graph(X, 5, labeled=labeled)
    problem = Problem(
        LabeledLoss(loss), C=C / labeled.sum(), kernel=kernel, bias="regularized",
        C_graph=C_graph, graph=graph, power=float(p),
    )  # fmt: skip
    K, K_test = kernel.gram(X), kernel.gram(X_test, X)
    best = optimum(problem, K + 1, t)
    gaps, accuracy = [], []
    for T in STEPS:
        found = [
            solve_gkm(
                X, t, labeled, np.ones(len(t)), problem, edge_sampler(graph), seed=seed, max_iter=T,
                first=T, single=False,
            )
            for seed in range(5)
        ]  # fmt: skip
        values = [
            problem.value(K @ s.beta + s.b, t, s.beta @ (K @ s.beta), s.b) - best for s in found
        ]
        hits = [np.mean((K_test @ s.beta + s.b > 0) == (y_test == 1)) for s in found]
        gaps.append([digits(T * v) for v in values])
        accuracy.append([digits(100 * v) for v in hits])
    loose = theorem_bounds(C, C_graph, float(p), R, A)
    bounds = loose, sharpened(loose, float(p))
    return {
        "steps": STEPS,
        "optimum": digits(best, 8),
        "scaled_gap": gaps,
        "accuracy": accuracy,
        "C_graph": digits(C_graph),
        "bound": digits(2 * bounds[0].G ** 2),
        "sharp": digits(2 * bounds[1].G ** 2),
    }
