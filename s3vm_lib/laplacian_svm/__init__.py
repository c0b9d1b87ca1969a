"""Laplacian SVM: a kernel machine whose outputs vary little along the edges of a graph.

    J(f, b) = ½‖f‖² + C Σ_{i∈L} s_i ℓ(t_i, f(x_i) + b) + (C_graph / |E|) fᵀMf,

where M is a graph Laplacian, or a power of one, and f in the last term stands for the values on all
rows. With κ = C_graph / |E| the two quadratic terms are half the squared norm ‖f‖² + 2κ fᵀMf of a
space whose kernel is K̃ = (I + 2κKM)⁻¹K on the rows (V. Sindhwani, P. Niyogi and M. Belkin, ICML
2005): a Laplacian SVM is an SVM on the *labeled* rows alone, in a kernel that the unlabeled rows
have deformed.

Read in this order: `_deformed` (the deformed kernel, Newton and SMO on the labeled rows),
`_gradients` (conjugate gradients on all rows), `_estimator` (`LapSVM`, the papers' parameters,
memory).
"""

from s3vm_lib.laplacian_svm._deformed import DeformedKernel, Solution, solve_deformed, solve_hinge
from s3vm_lib.laplacian_svm._gradients import Watch, solve_pcg

from s3vm_lib.laplacian_svm._estimator import (  # isort: skip
    COARSE, LapSVM, choose_blocks, choose_rank, melacci_penalties,
)  # fmt: skip

__all__ = [
    "COARSE", "DeformedKernel", "LapSVM", "Solution", "Watch", "choose_blocks", "choose_rank",
    "melacci_penalties", "solve_deformed", "solve_hinge", "solve_pcg",
]  # fmt: skip
