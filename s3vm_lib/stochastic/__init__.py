"""Random features and stochastic gradients: FRS3VM and TSGS3VM.

Read in this order: `s3vm_lib.random_features`, `_parameters` (what is given in groups; step
sizes), `_steps` (draws, slopes and the course of a run), `_stored` (features that stay: FRS3VM),
`_triply` (Algorithms 1 and 2 of TSGS3VM), `_blocks` (sums over blocks of rows, on one machine or
several, and L-BFGS with them), `_common` and `_estimators`.
"""

from s3vm_lib.stochastic._blocks import BlockSum as BlockSum
from s3vm_lib.stochastic._blocks import BlockTask as BlockTask
from s3vm_lib.stochastic._blocks import block_sum as block_sum
from s3vm_lib.stochastic._blocks import on_disk as on_disk
from s3vm_lib.stochastic._blocks import solve_full_batch as solve_full_batch
from s3vm_lib.stochastic._estimators import FRS3VM as FRS3VM
from s3vm_lib.stochastic._estimators import TSGS3VM as TSGS3VM
from s3vm_lib.stochastic._parameters import Features as Features
from s3vm_lib.stochastic._parameters import Polish as Polish
from s3vm_lib.stochastic._parameters import Schedule as Schedule
from s3vm_lib.stochastic._steps import LABELED as LABELED
from s3vm_lib.stochastic._steps import UNLABELED as UNLABELED
from s3vm_lib.stochastic._steps import Progress as Progress
from s3vm_lib.stochastic._steps import Run as Run
from s3vm_lib.stochastic._steps import Sampler as Sampler
from s3vm_lib.stochastic._steps import block_features as block_features
from s3vm_lib.stochastic._stored import solve_stored as solve_stored
from s3vm_lib.stochastic._triply import solve_triply_stochastic as solve_triply_stochastic

__all__ = [name for name in dir() if not name.startswith("_")]
