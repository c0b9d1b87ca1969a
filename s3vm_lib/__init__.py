"""Semi-supervised support vector machines: every solver of the book, as scikit-learn estimators."""

from s3vm_lib._base import capabilities
from s3vm_lib._versions import show_versions
from s3vm_lib.annealing import DAS3VM
from s3vm_lib.branch_and_bound import BranchBoundS3VM
from s3vm_lib.budgeted import BGS3VM
from s3vm_lib.cccp import CCCPS3VM
from s3vm_lib.class_ratio import balance_profile
from s3vm_lib.graph_kernel_machine import GKM, GKMRegressor
from s3vm_lib.label_switching import MultiSwitchTSVM, S3VMLight
from s3vm_lib.labels import encode_labels, mark_unlabeled
from s3vm_lib.laplacian_svm import LapSVM
from s3vm_lib.nn_branch_and_bound import NNBBS3VM
from s3vm_lib.path_following import ILS3VM
from s3vm_lib.primal_newton import NewtonS3VM
from s3vm_lib.quasi_newton import QNS3VM
from s3vm_lib.s3vc import S3VC
from s3vm_lib.safe import SafeS3VM
from s3vm_lib.self_training import SelfTrainingKNN
from s3vm_lib.smo import SVM
from s3vm_lib.stochastic import FRS3VM, TSGS3VM

__version__ = "0.1.0"
__all__ = [
    "BGS3VM",
    "BranchBoundS3VM",
    "CCCPS3VM",
    "DAS3VM",
    "FRS3VM",
    "GKM",
    "GKMRegressor",
    "ILS3VM",
    "LapSVM",
    "MultiSwitchTSVM",
    "NNBBS3VM",
    "NewtonS3VM",
    "QNS3VM",
    "S3VC",
    "S3VMLight",
    "SVM",
    "SafeS3VM",
    "SelfTrainingKNN",
    "TSGS3VM",
    "balance_profile",
    "capabilities",
    "encode_labels",
    "mark_unlabeled",
    "show_versions",
]
