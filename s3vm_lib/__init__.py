"""Semi-supervised support vector machines: every solver of the book, as scikit-learn estimators."""

import importlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # at run time each comes with its first use, and what it needs comes with it
    from s3vm_lib._compile import compile as compile
    from s3vm_lib._versions import show_versions as show_versions
    from s3vm_lib.annealing import DAS3VM as DAS3VM
    from s3vm_lib.base.classifier import capabilities as capabilities
    from s3vm_lib.base.findings import FitWarning as FitWarning
    from s3vm_lib.branch_and_bound import BranchBoundS3VM as BranchBoundS3VM
    from s3vm_lib.budgeted import BGS3VM as BGS3VM
    from s3vm_lib.cccp import CCCPS3VM as CCCPS3VM
    from s3vm_lib.graph_kernel_machine import GKM as GKM
    from s3vm_lib.graph_kernel_machine import GKMRegressor as GKMRegressor
    from s3vm_lib.label_switching import MultiSwitchTSVM as MultiSwitchTSVM
    from s3vm_lib.label_switching import S3VMLight as S3VMLight
    from s3vm_lib.laplacian_svm import LapSVM as LapSVM
    from s3vm_lib.model_selection import balance_profile as balance_profile
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

__version__ = "0.1.0"

_HOMES = {
    "capabilities": "base.classifier",
    "compile": "_compile",
    "FitWarning": "base.findings",
    "show_versions": "_versions",
    "DAS3VM": "annealing",
    "BranchBoundS3VM": "branch_and_bound",
    "BGS3VM": "budgeted",
    "CCCPS3VM": "cccp",
    "balance_profile": "model_selection",
    "GKM": "graph_kernel_machine",
    "GKMRegressor": "graph_kernel_machine",
    "MultiSwitchTSVM": "label_switching",
    "S3VMLight": "label_switching",
    "encode_labels": "utils.labels",
    "mark_unlabeled": "utils.labels",
    "LapSVM": "laplacian_svm",
    "NNBBS3VM": "nn_branch_and_bound",
    "ILS3VM": "path_following",
    "NewtonS3VM": "primal_newton",
    "QNS3VM": "quasi_newton",
    "S3VC": "s3vc",
    "SafeS3VM": "safe",
    "SelfTrainingKNN": "self_training",
    "SVM": "smo",
    "FRS3VM": "stochastic",
    "TSGS3VM": "stochastic",
}
__all__ = sorted(_HOMES.keys() - {"compile"})  # `import *` must not hide Python's own


if not TYPE_CHECKING:  # to whom it would say that every name exists

    def __getattr__(name):
        """A public name, from its module, or a module, when it is first asked for."""
        if name in _HOMES:
            value = getattr(importlib.import_module(f"s3vm_lib.{_HOMES[name]}"), name)
            globals()[name] = value
            return value
        if not name.startswith("_") and importlib.util.find_spec(f"s3vm_lib.{name}"):
            return importlib.import_module(f"s3vm_lib.{name}")
        raise AttributeError(f"module 's3vm_lib' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_HOMES})
