"""Semi-supervised support vector machines: every solver of the book, as scikit-learn estimators."""

from s3vm_lib._base import capabilities, encode_labels, mark_unlabeled
from s3vm_lib.annealing import DAS3VM
from s3vm_lib.branch_and_bound import BranchBoundS3VM
from s3vm_lib.cccp import CCCPS3VM
from s3vm_lib.label_switching import MultiSwitchTSVM, S3VMLight
from s3vm_lib.path_following import ILS3VM
from s3vm_lib.primal_newton import NewtonS3VM
from s3vm_lib.quasi_newton import QNS3VM
from s3vm_lib.smo import SVM

__version__ = "0.1.0"
__all__ = [
    "BranchBoundS3VM",
    "CCCPS3VM",
    "DAS3VM",
    "ILS3VM",
    "MultiSwitchTSVM",
    "NewtonS3VM",
    "QNS3VM",
    "S3VMLight",
    "SVM",
    "capabilities",
    "encode_labels",
    "mark_unlabeled",
]
