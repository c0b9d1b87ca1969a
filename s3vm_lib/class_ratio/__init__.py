"""Estimate the share of a class among the unlabeled rows, from labels, scores and outputs.

Read in this order: `_profile` (the formulas, and one machine at many ratios), `_rules` (what the
names of the parameter ``balance`` stand for). Fits are those of `s3vm_lib.smooth`.
"""

from s3vm_lib.class_ratio._rules import RATIO_RULES, Evidence

from s3vm_lib.class_ratio._profile import (  # isort: skip
    BalanceProfile, HeldOut, Refits, black_box_shares, em_shares, label_folds, label_masses,
    label_posterior, label_shares, pooled, powered_share, profile_of, separation, structureless,
    two_classes,
)  # fmt: skip

__all__ = [
    "RATIO_RULES", "BalanceProfile", "Evidence", "HeldOut", "Refits", "black_box_shares",
    "em_shares", "label_folds", "label_masses", "label_posterior", "label_shares", "pooled",
    "powered_share", "profile_of", "separation", "structureless", "two_classes",
]  # fmt: skip
