"""The smooth core: differentiable objectives, and how they are minimized while C* grows.

Read in this order: `_engines` (BFGS and L-BFGS), `_coordinates` (where the search takes place),
`_blocked` (the same for rows that do not fit into memory, and which of all), `_objective` (value,
gradient, Hessian, rays), `_annealing` (the stages of C*), `_quasi_newton` (Algorithm 1, and another
separator where the first contradicts the labels).
"""

from s3vm_lib.smooth._annealing import Continuation, Solution, Stage, annealed, annealing_stages
from s3vm_lib.smooth._objective import ScaledObjective, losses_and_slopes

from s3vm_lib.smooth._blocked import (  # isort: skip
    CoordinateName, Coordinates, block_coordinates, megabytes_needed,
)  # fmt: skip
from s3vm_lib.smooth._coordinates import (  # isort: skip
    FeatureMap, RawCoefficients, centered, cholesky_coordinates, default_rank, eigen_coordinates,
    linear_coordinates, low_rank, mean_weight,
)  # fmt: skip
from s3vm_lib.smooth._engines import (  # isort: skip
    Minimum, bfgs_update, minimize_lbfgs, minimize_scipy, two_loop,
)  # fmt: skip
from s3vm_lib.smooth._quasi_newton import (  # isort: skip
    ANNEALING, contradicted, reconsidered, solve_quasi_newton,
)  # fmt: skip

__all__ = [
    "ANNEALING", "Continuation", "CoordinateName", "Coordinates", "FeatureMap", "Minimum",
    "RawCoefficients", "ScaledObjective", "Solution", "Stage", "annealed", "annealing_stages",
    "bfgs_update", "block_coordinates", "centered", "cholesky_coordinates", "contradicted",
    "default_rank", "eigen_coordinates", "linear_coordinates", "losses_and_slopes", "low_rank",
    "mean_weight", "megabytes_needed", "minimize_lbfgs", "minimize_scipy", "reconsidered",
    "solve_quasi_newton", "two_loop",
]  # fmt: skip
