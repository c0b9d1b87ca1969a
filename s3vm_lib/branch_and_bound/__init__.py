"""The global optimum by branch and bound (Chapelle, Sindhwani and Keerthi, 2006).

Read in this order: `_relaxation` (the convex problem of a node and its dual bound), `_gains`
(bounds that need no solve), `_decisions` (what both searches share, and which labels may go
together), `_search` (the tree over labels, and `BranchBoundS3VM`). The Gaussian loss has a tree
over intervals of outputs instead: `_envelopes` (the loss on an interval, and its conjugate),
`_intervals` (the convex problem of a box, and the tree).
"""

from s3vm_lib.branch_and_bound._decisions import SearchProgress, Solution
from s3vm_lib.branch_and_bound._intervals import solve_intervals
from s3vm_lib.branch_and_bound._search import BranchBoundS3VM, solve_branch_and_bound

__all__ = [
    "BranchBoundS3VM", "SearchProgress", "Solution", "solve_branch_and_bound", "solve_intervals",
]  # fmt: skip
