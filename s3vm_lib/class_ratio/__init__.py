"""The share of a class among the unlabeled rows: what labels, scores and outputs say about it.

Read in this order: `_shares` (the formulas), `_profile` (one machine at many ratios), `_rules`
(what the names of the parameter ``balance`` stand for). Fits are those of `s3vm_lib.smooth`.
"""

from s3vm_lib.class_ratio._profile import BalanceProfile as BalanceProfile
from s3vm_lib.class_ratio._profile import Refits as Refits
from s3vm_lib.class_ratio._profile import label_folds as label_folds
from s3vm_lib.class_ratio._profile import label_masses as label_masses
from s3vm_lib.class_ratio._profile import profile_of as profile_of
from s3vm_lib.class_ratio._profile import structureless as structureless
from s3vm_lib.class_ratio._profile import two_classes as two_classes
from s3vm_lib.class_ratio._rules import RATIO_RULES as RATIO_RULES
from s3vm_lib.class_ratio._rules import Evidence as Evidence
from s3vm_lib.class_ratio._shares import HeldOut as HeldOut
from s3vm_lib.class_ratio._shares import black_box_shares as black_box_shares
from s3vm_lib.class_ratio._shares import em_shares as em_shares
from s3vm_lib.class_ratio._shares import label_posterior as label_posterior
from s3vm_lib.class_ratio._shares import label_shares as label_shares
from s3vm_lib.class_ratio._shares import pooled as pooled
from s3vm_lib.class_ratio._shares import powered_share as powered_share
from s3vm_lib.class_ratio._shares import separation as separation

__all__ = [name for name in dir() if not name.startswith("_")]
