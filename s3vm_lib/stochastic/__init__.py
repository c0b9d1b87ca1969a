"""Random features and stochastic gradients: FRS3VM and TSGS3VM.

Read in this order: `s3vm_lib.random_features`, `_steps` (step sizes, draws and slopes), `_stored`
(features that stay: FRS3VM), `_triply` (Algorithms 1 and 2 of TSGS3VM), `_full_batch` (all rows in
every gradient, by blocks), `_cluster` (the same on several machines), `_common` and `_estimators`.
"""

from s3vm_lib.stochastic._cluster import ClusterSum, RowsOnDisk, on_disk
from s3vm_lib.stochastic._estimators import FRS3VM, TSGS3VM
from s3vm_lib.stochastic._full_batch import (
    BlockTask,
    Polished,
    ThreadSum,
    block_features,
    block_mean,
    block_sum,
    scaled_weights,
    solve_full_batch,
)
from s3vm_lib.stochastic._steps import (
    LABELED,
    RULES,
    UNLABELED,
    Sampler,
    Schedule,
    Slopes,
    step_sizes,
)
from s3vm_lib.stochastic._stored import Progress, Run, feature_means, solve_stored
from s3vm_lib.stochastic._triply import solve_triply_stochastic

__all__ = [
    "FRS3VM",
    "LABELED",
    "RULES",
    "TSGS3VM",
    "UNLABELED",
    "BlockTask",
    "ClusterSum",
    "Polished",
    "Progress",
    "RowsOnDisk",
    "Run",
    "Sampler",
    "Schedule",
    "Slopes",
    "ThreadSum",
    "block_features",
    "block_mean",
    "block_sum",
    "feature_means",
    "on_disk",
    "scaled_weights",
    "solve_full_batch",
    "solve_stored",
    "solve_triply_stochastic",
    "step_sizes",
]
