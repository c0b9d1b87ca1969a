"""Kernels: Gram blocks, rows, diagonals and the pivoted Cholesky factorization K ≈ GGᵀ.

Two roads lead to the same numbers. `Kernel.gram` computes whole blocks with BLAS in double
precision (prediction, factorizations, tests). `kernel_row` computes one row at a time inside
numba, in the precision of the data it is given: the road of SMO, which visits few rows.

Read in this order: `_rows` (compiled), `_kernel` (`Kernel`), `_low_rank` (the factorization).
"""

from s3vm_lib.kernels._kernel import Kernel as Kernel
from s3vm_lib.kernels._kernel import resolve_gamma as resolve_gamma
from s3vm_lib.kernels._low_rank import LowRank as LowRank
from s3vm_lib.kernels._low_rank import pivoted_cholesky as pivoted_cholesky
from s3vm_lib.kernels._rows import FAR as FAR
from s3vm_lib.kernels._rows import KERNELS as KERNELS
from s3vm_lib.kernels._rows import LAPLACIAN as LAPLACIAN
from s3vm_lib.kernels._rows import LINEAR as LINEAR
from s3vm_lib.kernels._rows import POLY as POLY
from s3vm_lib.kernels._rows import PRECOMPUTED as PRECOMPUTED
from s3vm_lib.kernels._rows import RBF as RBF
from s3vm_lib.kernels._rows import KernelRows as KernelRows
from s3vm_lib.kernels._rows import dense_kernel_rows as dense_kernel_rows
from s3vm_lib.kernels._rows import exp_inplace as exp_inplace
from s3vm_lib.kernels._rows import kernel_row as kernel_row
from s3vm_lib.kernels._rows import kernel_rows as kernel_rows
from s3vm_lib.kernels._rows import near_origin as near_origin
from s3vm_lib.kernels._rows import squared_norms as squared_norms

__all__ = [name for name in dir() if not name.startswith("_")]
