"""The share of a class among the unlabeled rows: what labels, scores and outputs say about it.

Read in this order: `_shares` (the formulas), `_profile` (one machine at many ratios), `_rules`
(what the names of the parameter ``balance`` stand for).
"""

from s3vm_lib.class_ratio._profile import (
    BalanceProfile,
    Refits,
    balance_profile,
    structureless,
)
from s3vm_lib.class_ratio._rules import Evidence  # enters the names of balance
from s3vm_lib.class_ratio._shares import (
    HeldOut,
    black_box_shares,
    em_shares,
    label_posterior,
    pooled,
    powered_share,
    separation,
)

__all__ = [
    "BalanceProfile",
    "Evidence",
    "HeldOut",
    "Refits",
    "balance_profile",
    "black_box_shares",
    "em_shares",
    "label_posterior",
    "pooled",
    "powered_share",
    "separation",
    "structureless",
]
