"""Following the path of solutions while samples come and go (IL-S3VM).

An S3VM with the symmetric hinge is, for fixed signs of the unlabeled outputs, a convex problem with
one signed variable per sample. As the coefficient of a new sample grows, all others move along a
piecewise linear path that is followed from event to event; where an unlabeled output crosses 0 its
sign changes, and with it the problem. With C* = 0 this is the incremental SVM.

Read in this order: `_path` (events and steps, compiled), `_state` (sets and outputs), `_ends` (how
operations begin and end, many samples at once), `_factor` (the linear system), `_sums` (sums
over kernel values), `_follower` (operations on one problem), `_estimator` (`ILS3VM`).
"""

from s3vm_lib.path_following._estimator import ILS3VM as ILS3VM
from s3vm_lib.path_following._factor import solve_bordered as solve_bordered
from s3vm_lib.path_following._follower import Follower as Follower
from s3vm_lib.path_following._follower import Operation as Operation
from s3vm_lib.path_following._follower import Outcome as Outcome
from s3vm_lib.path_following._path import follow as follow

__all__ = [name for name in dir() if not name.startswith("_")]
