"""QN-S3VM: quasi-Newton annealing (Gieseke, Airola, Pahikkala and Kramer, 2014).

Read in this order: `_engines` (BFGS and L-BFGS), `_coordinates` (where the search takes place),
`_blocked` (the same for rows that do not fit into memory), `_stages` (what a continuation in C*
keeps), `_solver` (the objective and the annealing), `_estimator` (`QNS3VM`).
"""

from s3vm_lib.quasi_newton._blocked import BlockFeatures, block_coordinates, megabytes_needed
from s3vm_lib.quasi_newton._coordinates import (
    Features,
    RawCoefficients,
    centered,
    cholesky_coordinates,
    default_rank,
    eigen_coordinates,
    linear_coordinates,
    mean_weight,
)
from s3vm_lib.quasi_newton._engines import (
    Minimum,
    bfgs_update,
    minimize_bfgs,
    minimize_lbfgs,
    minimize_scipy,
    two_loop,
    wolfe_step,
)
from s3vm_lib.quasi_newton._estimator import QNS3VM
from s3vm_lib.quasi_newton._smooth import Coordinates, SmoothLoss, SmoothS3VM, annealing_stages
from s3vm_lib.quasi_newton._solver import (
    ANNEALING,
    ScaledObjective,
    Stage,
    losses_and_slopes,
    solve_quasi_newton,
)
from s3vm_lib.quasi_newton._stages import Continuation, Solution

__all__ = [
    "ANNEALING",
    "BlockFeatures",
    "Continuation",
    "Coordinates",
    "Features",
    "Minimum",
    "QNS3VM",
    "RawCoefficients",
    "ScaledObjective",
    "SmoothLoss",
    "SmoothS3VM",
    "Solution",
    "Stage",
    "annealing_stages",
    "bfgs_update",
    "block_coordinates",
    "centered",
    "cholesky_coordinates",
    "default_rank",
    "eigen_coordinates",
    "linear_coordinates",
    "losses_and_slopes",
    "mean_weight",
    "megabytes_needed",
    "minimize_bfgs",
    "minimize_lbfgs",
    "minimize_scipy",
    "solve_quasi_newton",
    "two_loop",
    "wolfe_step",
]
