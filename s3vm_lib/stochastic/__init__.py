"""Random features and stochastic gradients: FRS3VM and TSGS3VM.

Read in this order: `s3vm_lib.random_features`, `_steps` (what is given in groups, step sizes;
draws, slopes and the course of a run), `_descent` (features that stay: FRS3VM; Algorithms 1 and 2
of TSGS3VM), `_blocks` (sums over blocks of rows, on one machine or several, and L-BFGS with them),
`_estimators`.
"""

from s3vm_lib.stochastic._blocks import BlockSum, BlockTask, block_sum, on_disk, solve_full_batch
from s3vm_lib.stochastic._descent import solve_stored, solve_triply_stochastic
from s3vm_lib.stochastic._estimators import FRS3VM, TSGS3VM

from s3vm_lib.stochastic._steps import (  # isort: skip
    LABELED, UNLABELED, Features, Polish, Progress, Run, Sampler, Schedule, block_features,
)  # fmt: skip

__all__ = [
    "FRS3VM", "LABELED", "TSGS3VM", "UNLABELED", "BlockSum", "BlockTask", "Features", "Polish",
    "Progress", "Run", "Sampler", "Schedule", "block_features", "block_sum", "on_disk",
    "solve_full_batch", "solve_stored", "solve_triply_stochastic",
]  # fmt: skip
