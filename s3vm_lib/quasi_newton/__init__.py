"""QN-S3VM: quasi-Newton annealing (Gieseke, Airola, Pahikkala and Kramer, 2014).

Read in this order: `_engines` (BFGS and L-BFGS), `_coordinates` (where the search takes place),
`_blocked` (the same for rows that do not fit into memory), `_stages` (what a continuation in C*
keeps), `_solver` (the objective and the annealing), `_estimator` (`QNS3VM`).
"""

from s3vm_lib.quasi_newton._blocked import BlockFeatures as BlockFeatures
from s3vm_lib.quasi_newton._blocked import block_coordinates as block_coordinates
from s3vm_lib.quasi_newton._blocked import megabytes_needed as megabytes_needed
from s3vm_lib.quasi_newton._coordinates import Features as Features
from s3vm_lib.quasi_newton._coordinates import RawCoefficients as RawCoefficients
from s3vm_lib.quasi_newton._coordinates import centered as centered
from s3vm_lib.quasi_newton._coordinates import cholesky_coordinates as cholesky_coordinates
from s3vm_lib.quasi_newton._coordinates import default_rank as default_rank
from s3vm_lib.quasi_newton._coordinates import eigen_coordinates as eigen_coordinates
from s3vm_lib.quasi_newton._coordinates import linear_coordinates as linear_coordinates
from s3vm_lib.quasi_newton._coordinates import mean_weight as mean_weight
from s3vm_lib.quasi_newton._engines import Minimum as Minimum
from s3vm_lib.quasi_newton._engines import bfgs_update as bfgs_update
from s3vm_lib.quasi_newton._engines import minimize_bfgs as minimize_bfgs
from s3vm_lib.quasi_newton._engines import minimize_lbfgs as minimize_lbfgs
from s3vm_lib.quasi_newton._engines import minimize_scipy as minimize_scipy
from s3vm_lib.quasi_newton._engines import two_loop as two_loop
from s3vm_lib.quasi_newton._engines import wolfe_step as wolfe_step
from s3vm_lib.quasi_newton._estimator import QNS3VM as QNS3VM
from s3vm_lib.quasi_newton._smooth import Coordinates as Coordinates
from s3vm_lib.quasi_newton._smooth import SmoothLoss as SmoothLoss
from s3vm_lib.quasi_newton._smooth import SmoothS3VM as SmoothS3VM
from s3vm_lib.quasi_newton._smooth import annealing_stages as annealing_stages
from s3vm_lib.quasi_newton._solver import ANNEALING as ANNEALING
from s3vm_lib.quasi_newton._solver import ScaledObjective as ScaledObjective
from s3vm_lib.quasi_newton._solver import Stage as Stage
from s3vm_lib.quasi_newton._solver import losses_and_slopes as losses_and_slopes
from s3vm_lib.quasi_newton._solver import solve_quasi_newton as solve_quasi_newton
from s3vm_lib.quasi_newton._stages import Continuation as Continuation
from s3vm_lib.quasi_newton._stages import Solution as Solution

__all__ = [name for name in dir() if not name.startswith("_")]
