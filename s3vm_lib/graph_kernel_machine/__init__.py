"""The graph-based kernel machine (GKM): stochastic gradients on labeled rows and edges.

With feature vectors Φ, the paper's objective in the library's sum form is

    J(w) = ½‖w‖² + C Σ_L s_i ℓ(t_i, ⟨w, Φ_i⟩) + (C'/|E|) Σ_E μ_ij |⟨w, Φ_i − Φ_j⟩|^p,

and step t of Algorithm 1 draws a labeled row i and an edge (u, v) and sets

    ξ_t = C Σs ∇ℓ(t_i, ⟨w_t, Φ_i⟩) + C' μ_uv p sign(d)|d|^(p−1) (Φ_u − Φ_v),   d = ⟨w_t, Φ_u − Φ_v⟩,
    w_{t+1} = (t − 1)/(t + 1) w_t − 2/(t + 1) ξ_t,
    w̄_{t+1} = (t − 1)/(t + 1) w̄_t + 2/(t + 1) w_t.

The bars are lost in the paper's text; they follow from its Lemma 1. As vectors these recursions
cost O(n) per step. Multiplying the first by t(t + 1) turns both into plain sums (`Accumulators`) of
which each step changes three entries.

Read in this order: `_solver`, `_estimator` (Theorem 1, what names stand for, `GKM`), `_regressor`
(`GKMRegressor`).
"""

from s3vm_lib.graph_kernel_machine._estimator import (  # isort: skip
    GKM, Bounds, GraphClassifier, largest_C_graph, theorem_bounds,
)  # fmt: skip
from s3vm_lib.graph_kernel_machine._regressor import GKMRegressor

from s3vm_lib.graph_kernel_machine._solver import (  # isort: skip
    STATE, TOTALS, Accumulators, Solution, Stretch, draw_edges, draw_labeled, draw_steps, solve_gkm,
    terms_of,
)  # fmt: skip

__all__ = [
    "GKM", "STATE", "TOTALS", "Accumulators", "Bounds", "GKMRegressor", "GraphClassifier",
    "Solution", "Stretch", "draw_edges", "draw_labeled", "draw_steps", "largest_C_graph",
    "solve_gkm", "terms_of", "theorem_bounds",
]  # fmt: skip
