"""Unlabeled rows only where they do no harm: the worst case over a pool of labelings.

Several labelings of the unlabeled rows may explain the same labels, and each could be the truth.
The labeling that is returned gains most over the supervised machine in the worst of these cases;
where no labeling gains in all of them the supervised machine is kept (Li and Zhou, S4VM).
"""

from s3vm_lib.safe._estimator import QUICK, SafeS3VM
from s3vm_lib.safe._pool import Member, Rows, fitted, on_codes, refuse_pipeline, with_shares
from s3vm_lib.safe._vote import Solution, gains, solve_safe, votes

__all__ = [
    "QUICK",
    "Member",
    "Rows",
    "SafeS3VM",
    "Solution",
    "fitted",
    "gains",
    "on_codes",
    "refuse_pipeline",
    "solve_safe",
    "votes",
    "with_shares",
]
