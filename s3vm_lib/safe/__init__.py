"""Unlabeled rows only where they do no harm: the worst case over a pool of labelings.

Several labelings of the unlabeled rows may explain the same labels, and each could be the truth.
The labeling that is returned gains most over the supervised machine in the worst of these cases;
where no labeling gains in all of them the supervised machine is kept (Li and Zhou, S4VM).
"""

from s3vm_lib.safe._estimator import FEWEST as FEWEST
from s3vm_lib.safe._estimator import QUICK as QUICK
from s3vm_lib.safe._estimator import SafeS3VM as SafeS3VM
from s3vm_lib.safe._estimator import default_baseline as default_baseline
from s3vm_lib.safe._pool import Member as Member
from s3vm_lib.safe._pool import Sample as Sample
from s3vm_lib.safe._pool import fitted as fitted
from s3vm_lib.safe._pool import on_codes as on_codes
from s3vm_lib.safe._pool import refuse_without_labels as refuse_without_labels
from s3vm_lib.safe._pool import with_shares as with_shares
from s3vm_lib.safe._vote import Solution as Solution
from s3vm_lib.safe._vote import gains as gains
from s3vm_lib.safe._vote import solve_safe as solve_safe
from s3vm_lib.safe._vote import votes as votes

__all__ = [name for name in dir() if not name.startswith("_")]
