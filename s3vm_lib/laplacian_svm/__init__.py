"""Laplacian SVM: a kernel machine whose outputs vary little along the edges of a graph.

    J(f, b) = ½‖f‖² + C Σ_{i∈L} s_i ℓ(t_i, f(x_i) + b) + (C_graph / |E|) fᵀMf,

where M is a graph Laplacian, or a power of one, and f in the last term stands for the values on all
rows. With κ = C_graph / |E| the two quadratic terms are half the squared norm ‖f‖² + 2κ fᵀMf of a
space whose kernel is K̃ = (I + 2κKM)⁻¹K on the rows (V. Sindhwani, P. Niyogi and M. Belkin, ICML
2005): a Laplacian SVM is an SVM on the *labeled* rows alone, in a kernel that the unlabeled rows
have deformed.

Read in this order: `_deformed` (the deformed kernel, Newton and SMO on the labeled rows),
`_gradients` (conjugate gradients on all rows), `_rules` (the papers' parameters, memory),
`_estimator` (`LapSVM`).
"""

from s3vm_lib.laplacian_svm._deformed import BlockDeformedKernel as BlockDeformedKernel
from s3vm_lib.laplacian_svm._deformed import DeformedKernel as DeformedKernel
from s3vm_lib.laplacian_svm._deformed import LowRankDeformedKernel as LowRankDeformedKernel
from s3vm_lib.laplacian_svm._deformed import Solution as Solution
from s3vm_lib.laplacian_svm._deformed import solve_deformed as solve_deformed
from s3vm_lib.laplacian_svm._deformed import solve_hinge as solve_hinge
from s3vm_lib.laplacian_svm._estimator import LapSVM as LapSVM
from s3vm_lib.laplacian_svm._gradients import Stopping as Stopping
from s3vm_lib.laplacian_svm._gradients import Watch as Watch
from s3vm_lib.laplacian_svm._gradients import solve_pcg as solve_pcg
from s3vm_lib.laplacian_svm._rules import COARSE as COARSE
from s3vm_lib.laplacian_svm._rules import belkin_penalties as belkin_penalties
from s3vm_lib.laplacian_svm._rules import choose_blocks as choose_blocks
from s3vm_lib.laplacian_svm._rules import choose_rank as choose_rank
from s3vm_lib.laplacian_svm._rules import melacci_penalties as melacci_penalties

__all__ = [name for name in dir() if not name.startswith("_")]
