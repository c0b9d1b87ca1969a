"""Gradients and Newton in the primal: ∇TSVM, NTS3VM and a trust region.

Read in this order: `_directions` (Newton's equations where the Hessian is indefinite), `_solver`
(descent and continuation in C*), `_estimator` (`NewtonS3VM`). `s3vm_lib.smooth` has the objective.
"""

from s3vm_lib.primal_newton._directions import dense_direction as dense_direction
from s3vm_lib.primal_newton._directions import model_step as model_step
from s3vm_lib.primal_newton._estimator import NewtonS3VM as NewtonS3VM
from s3vm_lib.primal_newton._solver import ANNEALING as ANNEALING
from s3vm_lib.primal_newton._solver import GradientDirections as GradientDirections
from s3vm_lib.primal_newton._solver import NewtonDirections as NewtonDirections
from s3vm_lib.primal_newton._solver import NewtonMinimum as NewtonMinimum
from s3vm_lib.primal_newton._solver import NewtonStage as NewtonStage
from s3vm_lib.primal_newton._solver import minimize as minimize
from s3vm_lib.primal_newton._solver import solve_newton as solve_newton

__all__ = [name for name in dir() if not name.startswith("_")]
