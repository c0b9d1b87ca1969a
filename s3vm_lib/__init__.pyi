# The public names, each with its module: read by type checkers, and by `__init__.py`.
from s3vm_lib._compile import compile as compile
from s3vm_lib.annealing import DAS3VM as DAS3VM
from s3vm_lib.base.classifier import capabilities as capabilities
from s3vm_lib.base.findings import FitWarning as FitWarning
from s3vm_lib.base.preparation import balance_profile as balance_profile
from s3vm_lib.branch_and_bound import BranchBoundS3VM as BranchBoundS3VM
from s3vm_lib.budgeted import BGS3VM as BGS3VM
from s3vm_lib.cccp import CCCPS3VM as CCCPS3VM
from s3vm_lib.graph_kernel_machine import GKM as GKM
from s3vm_lib.graph_kernel_machine import GKMRegressor as GKMRegressor
from s3vm_lib.label_switching import MultiSwitchTSVM as MultiSwitchTSVM
from s3vm_lib.label_switching import S3VMLight as S3VMLight
from s3vm_lib.laplacian_svm import LapSVM as LapSVM
from s3vm_lib.nn_branch_and_bound import NNBBS3VM as NNBBS3VM
from s3vm_lib.path_following import ILS3VM as ILS3VM
from s3vm_lib.primal_newton import NewtonS3VM as NewtonS3VM
from s3vm_lib.quasi_newton import QNS3VM as QNS3VM
from s3vm_lib.s3vc import S3VC as S3VC
from s3vm_lib.safe import SafeS3VM as SafeS3VM
from s3vm_lib.self_training import SelfTrainingKNN as SelfTrainingKNN
from s3vm_lib.smo import SVM as SVM
from s3vm_lib.stochastic import FRS3VM as FRS3VM
from s3vm_lib.stochastic import TSGS3VM as TSGS3VM
from s3vm_lib.utils.labels import encode_labels as encode_labels
from s3vm_lib.utils.labels import mark_unlabeled as mark_unlabeled
from s3vm_lib.utils.versions import show_versions as show_versions

__version__: str
