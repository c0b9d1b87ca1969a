"""The conditions that an answer has to meet: a Gram matrix, the constraints, the margins."""

import numpy as np
from scipy.optimize import minimize_scalar

from s3vm_book.checks._report import Report
from s3vm_lib.objective import svm_infeasibility

FEASIBLE = 1e-3  # violation of a constraint that is a matter of tolerance, of the largest α


def row_errors(alpha, upper, slack):
    """By how much each row contradicts optimality, in units of the margin.

    A row with slack < 0 should have α = upper, one with slack > 0 should have α = 0. The error is
    ``|slack|`` times how far α is from there, as a share of upper, or of the largest α where none
    comes near its bound: so that an α of 1e-9 counts as 0, whatever solver it is from.
    """
    alpha = np.clip(alpha, 0, upper)
    top = np.minimum(upper, np.max(alpha, initial=0.0))
    raised = np.divide(alpha, top, out=np.zeros_like(alpha), where=top > 0)
    room = 1 - np.divide(alpha, upper, out=np.ones_like(alpha), where=upper > 0)
    return np.maximum(room * np.maximum(0, -slack), raised * np.maximum(0, slack))


def largest_error(F, alpha, b, t, upper):
    """Largest row error of outputs F + b, F without the offset."""
    return float(np.max(row_errors(alpha, upper, t * (F + b) - 1)))


def best_offset(F, alpha, t, upper):
    """The offset of the smallest error, and that error."""
    targets = t - F
    found = minimize_scalar(
        lambda b: largest_error(F, alpha, b, t, upper),
        bounds=(targets.min() - 1e-9, targets.max() + 1e-9),
        method="bounded",
        options={"xatol": 1e-10 * (1 + np.abs(targets).max())},
    )
    return float(found.x), float(found.fun)


def is_feasible(alpha, t, upper, total=True):
    """Whether the constraints hold within what solvers call a tolerance."""
    box, off = svm_infeasibility(t * alpha, t, upper)
    return box <= FEASIBLE and (off <= FEASIBLE or not total)


def unexplained(K, alpha, t, upper, F=None, b=None, total=True):
    """Error of α as an answer to the problem (K, t, upper); infinite where it is infeasible."""
    if not is_feasible(alpha, t, upper, total):
        return np.inf
    F = K @ (t * alpha) if F is None else F
    return best_offset(F, alpha, t, upper)[1] if b is None else largest_error(F, alpha, b, t, upper)


def kernel_report(K, numbers):
    """A report on a matrix that is no Gram matrix, or None."""
    size = np.abs(K).max() or 1.0
    off = np.abs(K - K.T)
    if off.max() > 1e-6 * size:
        i, j = np.unravel_index(np.argmax(off), K.shape)
        message = (
            f"K[{i}, {j}] = {K[i, j]:.4g} and K[{j}, {i}] = {K[j, i]:.4g}: a Gram matrix is"
            " symmetric. Are both arguments the same rows, in the same order?"
        )
        return Report("kernel not symmetric", message, numbers)
    try:
        np.linalg.cholesky(K + 1e-6 * max(np.trace(K), 0.0) * np.eye(len(K)))
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(K)[0]
        if least > -1e-6 * size * len(K):
            return None
        message = (
            f"K has the eigenvalue {least:.3g}: it is not positive semidefinite, no kernel gives"
            " it, and the dual is not concave. A sign in the exponent, or no kernel at all?"
        )
        return Report("kernel not positive semidefinite", message, numbers)
    return None
