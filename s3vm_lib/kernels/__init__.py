"""Kernels: Gram blocks, rows, diagonals and the pivoted Cholesky factorization K ≈ GGᵀ.

Two roads lead to the same numbers. `Kernel.gram` computes whole blocks with BLAS in double
precision (prediction, factorizations, tests). `kernel_row` computes one row at a time inside
numba, in the precision of the data it is given: the road of SMO, which visits few rows.

Read in this order: `_rows` (compiled), `_kernel` (`Kernel` and the factorization).
"""

from s3vm_lib.kernels._kernel import Kernel, LowRank, pivoted_cholesky, resolve_gamma

from s3vm_lib.kernels._rows import (  # isort: skip
    FAR, KERNELS, LAPLACIAN, LINEAR, PRECOMPUTED, RBF, KernelRows, dense_kernel_rows,
    exp_inplace, kernel_row, kernel_rows, near_origin, squared_norms,
)  # fmt: skip

__all__ = [
    "FAR", "KERNELS", "LAPLACIAN", "LINEAR", "PRECOMPUTED", "RBF", "Kernel", "KernelRows",
    "LowRank", "dense_kernel_rows", "exp_inplace", "kernel_row", "kernel_rows", "near_origin",
    "pivoted_cholesky", "resolve_gamma", "squared_norms",
]  # fmt: skip
