"""Random features and stochastic gradients: FRS3VM and TSGS3VM.

Read in this order: `s3vm_lib.random_features`, `_parameters` (what is given in groups; step
sizes), `_steps` (draws, slopes and the course of a run), `_stored` (features that stay: FRS3VM),
`_triply` (Algorithms 1 and 2 of TSGS3VM), `_blocks` (sums over blocks of rows, on one machine or
several), `_full_batch` (all rows in every gradient), `_common` and `_estimators`.
"""

from s3vm_lib.stochastic._blocks import BlockSum, BlockTask, block_features, block_sum, on_disk
from s3vm_lib.stochastic._estimators import FRS3VM, TSGS3VM
from s3vm_lib.stochastic._full_batch import Polished, solve_full_batch
from s3vm_lib.stochastic._parameters import Features, Polish, Schedule
from s3vm_lib.stochastic._steps import LABELED, UNLABELED, Progress, Run, Sampler
from s3vm_lib.stochastic._stored import solve_stored
from s3vm_lib.stochastic._triply import solve_triply_stochastic

__all__ = [
    "FRS3VM",
    "TSGS3VM",
    "Features",
    "Schedule",
    "Polish",
    "solve_stored",
    "solve_triply_stochastic",
    "Run",
    "Progress",
    "Sampler",
    "LABELED",
    "UNLABELED",
    "solve_full_batch",
    "Polished",
    "BlockSum",
    "BlockTask",
    "block_features",
    "block_sum",
    "on_disk",
]
