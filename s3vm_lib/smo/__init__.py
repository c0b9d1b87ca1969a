"""Sequential minimal optimization (SMO) and the supervised support vector machine.

The problem is written in signed variables β_i = y_i α_i,

    minimize  ½ βᵀKβ + Σ_i φ_i(β_i)   subject to   Σ_i β_i = 0,   lo_i ≤ β_i ≤ hi_i,        (P)

with one convex piecewise-linear cost φ_i per point: slope s1_i on [lo_i, mid_i], s2_i ≥ s1_i on
[mid_i, hi_i]. The C-SVC has φ_i(β) = −y_i β on [0, C] or [−C, 0]; a kink in the middle is what
semi-supervised inner problems need. With F = Kβ let A_i = −φ_i'(β_i+) and B_i = −φ_i'(β_i−), minus
or plus infinity at a bound. Then β is optimal exactly when max_i (A_i − F_i) ≤ min_j (B_j − F_j),
and every b between the two is an offset.

Read in this order: `_iterations` (the compiled loop), `_linear` (linear kernels, in the weights),
`_solver` (steps of many variables at once, shrinking, start and stop), `_estimator` (`SVM`).
"""

from s3vm_lib.smo._estimator import SVM
from s3vm_lib.smo._iterations import BIG, Costs, slope_down, slope_up, smo_iterations

from s3vm_lib.smo._solver import (  # isort: skip
    TAU, Solution, block_steps, feasible, line_minimum, null_step, solve_smo, svc_costs,
)  # fmt: skip

__all__ = [
    "BIG", "SVM", "TAU", "Costs", "Solution", "block_steps", "feasible", "line_minimum",
    "null_step", "slope_down", "slope_up", "smo_iterations", "solve_smo", "svc_costs",
]  # fmt: skip
