"""The global optimum by branch and bound (Chapelle, Sindhwani and Keerthi, 2006).

Read in this order: `_relaxation` (the convex problem of a node and its dual bound), `_gains`
(bounds that need no solve), `_decisions` (which labels may go together), `_results` (what a search
returns), `_search` (the tree over labels), `_estimator` (`BranchBoundS3VM`), `_nearest`
(`NNBBS3VM`: the search over the neighbors of each new row). The Gaussian loss has a tree over
intervals of outputs instead: `_envelopes` (the loss on an interval, and its conjugate),
`_intervals` (the convex problem of a box, and the tree).
"""

from s3vm_lib.branch_and_bound._decisions import FLAT, Decisions, labeled_costs, piece_costs, twins
from s3vm_lib.branch_and_bound._envelopes import (
    envelope,
    envelope_slope,
    envelope_value,
    interval_conjugate,
    least_bend,
    set_envelopes,
    turning_point,
)
from s3vm_lib.branch_and_bound._estimator import BranchBoundS3VM
from s3vm_lib.branch_and_bound._gains import (
    Opening,
    joint_gain,
    open_rows,
    push_and_cap,
    reference,
    single_gains,
)
from s3vm_lib.branch_and_bound._intervals import (
    BoxBound,
    Bracket,
    Costs,
    dual_bound,
    share_penalty,
    solve_box,
    solve_intervals,
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
from s3vm_lib.branch_and_bound._results import Progress, Solution, Visit
from s3vm_lib.branch_and_bound._search import solve_branch_and_bound

__all__ = [
    "Arrival",
    "Bound",
    "BoxBound",
    "Bracket",
    "BranchBoundS3VM",
    "Costs",
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
    "dual_bound",
    "dual_cost",
    "dual_value",
    "envelope",
    "envelope_slope",
    "envelope_value",
    "feasible_dual",
    "fold",
    "interval_conjugate",
    "joint_gain",
    "labeled_costs",
    "least_bend",
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
    "set_envelopes",
    "set_labels",
    "share_penalty",
    "single_gains",
    "slopes_and_curvatures",
    "solve_arrival",
    "solve_box",
    "solve_branch_and_bound",
    "solve_intervals",
    "turning_point",
    "twins",
    "unfold",
]
