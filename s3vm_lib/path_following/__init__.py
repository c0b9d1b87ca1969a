"""Following the path of solutions while samples come and go (IL-S3VM).

An S3VM with the symmetric hinge is, for fixed signs of the unlabeled outputs, a convex problem with
one signed variable per sample. As the coefficient of a new sample grows, all others move along a
piecewise linear path that is followed from event to event; where an unlabeled output crosses 0 its
sign changes, and with it the problem. With C* = 0 this is the incremental SVM.

Read in this order: `_path` (events and steps, compiled), `_state` (sets and outputs), `_ends` (how
operations begin and end, many samples at once), `_algebra` (the linear system, and sums over kernel
values), `_follower` (operations on one problem), `_estimator` (`ILS3VM`).
"""

from s3vm_lib.path_following._estimator import ILS3VM
from s3vm_lib.path_following._follower import Follower, Operation

__all__ = ["ILS3VM", "Follower", "Operation"]
