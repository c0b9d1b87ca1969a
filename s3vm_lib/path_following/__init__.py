"""Following the path of solutions while samples come and go (IL-S3VM).

An S3VM with the symmetric hinge is, for fixed signs of the unlabeled outputs, a convex problem with
one signed variable per sample. As the coefficient of a new sample grows, all others move along a
piecewise linear path that is followed from event to event; where an unlabeled output crosses 0 its
sign changes, and with it the problem. With C* = 0 this is the incremental SVM.

Read in this order: `_path` (events and steps, compiled), `_state` (sets and outputs), `_ends` (how
operations begin and end, many samples at once), `_factor` (the linear system), `_rows` (kernel
values), `_follower` (operations on one problem), `_estimator` (`ILS3VM`).
"""

from s3vm_lib.path_following._estimator import ILS3VM
from s3vm_lib.path_following._factor import (
    append,
    backward,
    delete,
    forward,
    solve_bordered,
    triangular,
)
from s3vm_lib.path_following._follower import ORDERS, Follower, Operation
from s3vm_lib.path_following._path import LOG_FIELDS, follow
from s3vm_lib.path_following._rows import KernelStore, Values
from s3vm_lib.path_following._state import SAMPLE, State

__all__ = [
    "Follower",
    "ILS3VM",
    "KernelStore",
    "LOG_FIELDS",
    "ORDERS",
    "Operation",
    "SAMPLE",
    "State",
    "Values",
    "append",
    "backward",
    "delete",
    "follow",
    "forward",
    "solve_bordered",
    "triangular",
]
