"""Unlabeled rows only where they do no harm: the worst case over a pool of labelings.

Several labelings of the unlabeled rows may explain the same labels, and each could be the truth.
The labeling that is returned gains most over the supervised machine in the worst of these cases;
where no labeling gains in all of them the supervised machine is kept (Li and Zhou, S4VM).
"""

from s3vm_lib.safe._estimator import FEWEST, QUICK, SafeS3VM, default_baseline
from s3vm_lib.safe._vote import Solution, gains, solve_safe, votes

from s3vm_lib.safe._pool import (  # isort: skip
    Labeling, Sample, fitted, on_codes, refuse_without_labels, with_shares,
)  # fmt: skip

__all__ = [
    "FEWEST", "QUICK", "Labeling", "SafeS3VM", "Sample", "Solution", "default_baseline", "fitted",
    "gains", "on_codes", "refuse_without_labels", "solve_safe", "votes", "with_shares",
]  # fmt: skip
