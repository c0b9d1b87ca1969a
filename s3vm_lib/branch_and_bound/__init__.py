"""The global optimum by branch and bound (Chapelle, Sindhwani and Keerthi, 2006).

Read in this order: `_relaxation` (the convex problem of a node and its dual bound), `_gains`
(bounds that need no solve), `_decisions` (which labels may go together), `_search` (the tree),
`_estimator` (`BranchBoundS3VM`), `_nearest` (`NNBBS3VM`: the search over the neighbors of each new
row).
"""

from s3vm_lib.branch_and_bound._decisions import FLAT, Decisions, labeled_costs, piece_costs, twins
from s3vm_lib.branch_and_bound._estimator import BranchBoundS3VM
from s3vm_lib.branch_and_bound._gains import (
    Opening,
    joint_gain,
    open_rows,
    push_and_cap,
    reference,
    single_gains,
)
from s3vm_lib.branch_and_bound._nearest import (
    NNBBS3VM,
    Arrival,
    NearestSolution,
    nearest,
    solve_arrival,
)
from s3vm_lib.branch_and_bound._relaxation import (
    Bound,
    Folded,
    Relaxation,
    ascend,
    dual_cost,
    dual_value,
    feasible_dual,
    fold,
    level,
    newton,
    offset,
    primal_value,
    ridge,
    set_labels,
    slopes_and_curvatures,
    unfold,
)
from s3vm_lib.branch_and_bound._search import (
    Progress,
    Solution,
    Visit,
    solve_branch_and_bound,
)

__all__ = [
    "Arrival",
    "Bound",
    "BranchBoundS3VM",
    "Decisions",
    "FLAT",
    "Folded",
    "NNBBS3VM",
    "NearestSolution",
    "Opening",
    "Progress",
    "Relaxation",
    "Solution",
    "Visit",
    "ascend",
    "dual_cost",
    "dual_value",
    "feasible_dual",
    "fold",
    "joint_gain",
    "labeled_costs",
    "level",
    "nearest",
    "newton",
    "offset",
    "open_rows",
    "piece_costs",
    "primal_value",
    "push_and_cap",
    "reference",
    "ridge",
    "set_labels",
    "single_gains",
    "slopes_and_curvatures",
    "solve_arrival",
    "solve_branch_and_bound",
    "twins",
    "unfold",
]
