"""One call that decides: machines that differ in kind vote, held-out labels weigh their votes.

Read in this order: `_committee` (what the machines are, and what their votes weigh), `_estimator`
(the estimator `S3VC`).
"""

from s3vm_lib.s3vc._committee import Member as Member
from s3vm_lib.s3vc._estimator import S3VC as S3VC

__all__ = [name for name in dir() if not name.startswith("_")]
