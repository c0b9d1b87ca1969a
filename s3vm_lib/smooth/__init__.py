"""The smooth core: differentiable objectives, and how they are minimized while C* grows.

Read in this order: `_engines` (BFGS and L-BFGS), `_coordinates` (where the search takes place),
`_blocked` (the same for rows that do not fit into memory), `_choice` (which of them), `_objective`
(value, gradient, Hessian, rays), `_annealing` (the stages of C*), `_quasi_newton` (Algorithm 1, and
another separator where the first contradicts the labels).
"""

from s3vm_lib.smooth._annealing import Continuation as Continuation
from s3vm_lib.smooth._annealing import Solution as Solution
from s3vm_lib.smooth._annealing import Stage as Stage
from s3vm_lib.smooth._annealing import annealed as annealed
from s3vm_lib.smooth._annealing import annealing_stages as annealing_stages
from s3vm_lib.smooth._blocked import block_coordinates as block_coordinates
from s3vm_lib.smooth._blocked import megabytes_needed as megabytes_needed
from s3vm_lib.smooth._choice import CoordinateName as CoordinateName
from s3vm_lib.smooth._choice import Coordinates as Coordinates
from s3vm_lib.smooth._coordinates import Features as Features
from s3vm_lib.smooth._coordinates import RawCoefficients as RawCoefficients
from s3vm_lib.smooth._coordinates import centered as centered
from s3vm_lib.smooth._coordinates import cholesky_coordinates as cholesky_coordinates
from s3vm_lib.smooth._coordinates import default_rank as default_rank
from s3vm_lib.smooth._coordinates import eigen_coordinates as eigen_coordinates
from s3vm_lib.smooth._coordinates import linear_coordinates as linear_coordinates
from s3vm_lib.smooth._coordinates import low_rank as low_rank
from s3vm_lib.smooth._coordinates import mean_weight as mean_weight
from s3vm_lib.smooth._engines import Minimum as Minimum
from s3vm_lib.smooth._engines import bfgs_update as bfgs_update
from s3vm_lib.smooth._engines import minimize_lbfgs as minimize_lbfgs
from s3vm_lib.smooth._engines import minimize_scipy as minimize_scipy
from s3vm_lib.smooth._engines import two_loop as two_loop
from s3vm_lib.smooth._objective import ScaledObjective as ScaledObjective
from s3vm_lib.smooth._objective import losses_and_slopes as losses_and_slopes
from s3vm_lib.smooth._quasi_newton import ANNEALING as ANNEALING
from s3vm_lib.smooth._quasi_newton import contradicted as contradicted
from s3vm_lib.smooth._quasi_newton import reconsidered as reconsidered
from s3vm_lib.smooth._quasi_newton import solve_quasi_newton as solve_quasi_newton

__all__ = [name for name in dir() if not name.startswith("_")]
