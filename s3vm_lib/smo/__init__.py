"""Sequential minimal optimization (SMO) and the supervised support vector machine.

The problem is written in signed variables β_i = y_i α_i,

    minimize  ½ βᵀKβ + Σ_i φ_i(β_i)   subject to   Σ_i β_i = 0,   lo_i ≤ β_i ≤ hi_i,        (P)

with one convex piecewise-linear cost φ_i per point: slope s1_i on [lo_i, mid_i], s2_i ≥ s1_i on
[mid_i, hi_i]. The C-SVC has φ_i(β) = −y_i β on [0, C] or [−C, 0]; a kink in the middle is what
semi-supervised inner problems need. With F = Kβ let A_i = −φ_i'(β_i+) and B_i = −φ_i'(β_i−), minus
or plus infinity at a bound. Then β is optimal exactly when max_i (A_i − F_i) ≤ min_j (B_j − F_j),
and every b between the two is an offset.

Read in this order: `_iterations` (the compiled loop), `_lines` (steps of many variables at once),
`_solver` (shrinking, start and stop), `_estimator` (`SVM`).
"""

from s3vm_lib.smo._estimator import SVM as SVM
from s3vm_lib.smo._iterations import BIG as BIG
from s3vm_lib.smo._iterations import Costs as Costs
from s3vm_lib.smo._iterations import select_j as select_j
from s3vm_lib.smo._iterations import slope_down as slope_down
from s3vm_lib.smo._iterations import slope_up as slope_up
from s3vm_lib.smo._iterations import smo_iterations as smo_iterations
from s3vm_lib.smo._iterations import update_and_select_i as update_and_select_i
from s3vm_lib.smo._lines import face_step as face_step
from s3vm_lib.smo._lines import line_minimum as line_minimum
from s3vm_lib.smo._lines import null_step as null_step
from s3vm_lib.smo._solver import TAU as TAU
from s3vm_lib.smo._solver import Solution as Solution
from s3vm_lib.smo._solver import feasible as feasible
from s3vm_lib.smo._solver import solve_smo as solve_smo
from s3vm_lib.smo._solver import svc_costs as svc_costs

__all__ = [name for name in dir() if not name.startswith("_")]
