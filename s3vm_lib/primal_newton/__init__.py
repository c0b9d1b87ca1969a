"""Gradients and Newton in the primal: ∇TSVM, NTS3VM and a trust region.

Read in this order: `_curvature` (second derivatives, the Hessian, the search along a ray),
`_directions` (Newton's equations where the Hessian is indefinite), `_solver` (descent and
continuation in C*), `_estimator` (`NewtonS3VM`).
"""

from s3vm_lib.primal_newton._curvature import (
    CurvedObjective,
)
from s3vm_lib.primal_newton._directions import (
    dense_direction,
    model_step,
)
from s3vm_lib.primal_newton._estimator import NewtonS3VM
from s3vm_lib.primal_newton._solver import (
    ANNEALING,
    GradientDirections,
    Minimum,
    NewtonDirections,
    Stage,
    minimize,
    solve_newton,
)

__all__ = [
    "ANNEALING",
    "CurvedObjective",
    "GradientDirections",
    "Minimum",
    "NewtonDirections",
    "NewtonS3VM",
    "Stage",
    "dense_direction",
    "minimize",
    "model_step",
    "solve_newton",
]
