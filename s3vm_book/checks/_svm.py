"""The dual of the support vector machine: is an answer right, and if not, what was done?"""

import numpy as np

from s3vm_book.checks._conditions import (
    FEASIBLE,
    best_offset,
    is_feasible,
    kernel_report,
    row_errors,
    unexplained,
)
from s3vm_book.checks._offset import offset_report
from s3vm_book.checks._report import (
    MARKEDLY,
    Report,
    accuse,
    finite,
    where,
)
from s3vm_book.checks._svm_suspects import suspects
from s3vm_lib.objective import signed_labels, svm_infeasibility
from s3vm_lib.reference.smo import solve_smo
from s3vm_lib.smo import Costs, feasible


def check_svm(K, alpha, b, t, C, *, F=None, tol=5e-3):
    """Is this the support vector machine, and if not, which mistake was made?

    The answer is judged by the constraints and the optimality conditions alone, so that any solver,
    any order of steps and any of several optimal offsets passes. One that fails is tried again with
    one thing changed at a time (the sign of b, a factor ½, another C, labels multiplied in or left
    out, another width of the kernel, …); the change with which it would be markedly better is
    reported, and changes that do equally well are named together. Then a solution is computed, to
    find rows that were lost or put in another order. Otherwise the report tells which condition
    fails, in which rows, and by how much.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Gram matrix of the labeled rows, without labels in it.
    alpha : array-like of shape (n,)
        Dual variables, 0 ≤ α ≤ C: 0 for rows that are no support vectors.
    b : float
        Offset: the decision is the sign of K @ (t * alpha) + b.
    t : array-like of shape (n,)
        Labels −1 and +1.
    C : float or array-like of shape (n,)
        Weight of the hinge losses, in ½‖f‖² + C Σ max(0, 1 − t f); one per row for weighted rows or
        classes.
    F : array-like of shape (n,), default=None
        The outputs, errors or gradient that your program keeps up to date: K @ (t * alpha), with or
        without b, minus t, or multiplied by t. Compared with the truth where given.
    tol : float, default=5e-3
        Error of a margin that is a matter of tolerance.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        For arrays of the wrong shape, labels that are not −1 and +1, C that is not positive, and K
        that is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_book.checks import check_svm
    >>> K, t = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([1, -1])
    >>> check_svm(K, [0.5, 0.5], 0.0, t, C=1.0)
    The machine is optimal: constraints and margins hold in all 2 rows.
    >>> check_svm(K, [1.0, 1.0], 0.0, t, C=2.0).mistake
    'factor ½'
    """
    t = signed_labels(t)
    n = len(t)
    K = finite("K", K, (n, n))
    alpha = np.asarray(alpha)
    whole = alpha.dtype.kind in "iu"
    alpha = _vector("alpha", alpha, n).astype(float)
    b = float(_vector("b", np.ravel(b), 1)[0])
    upper = np.broadcast_to(finite("C", C), (n,) if np.ndim(C) == 0 else np.shape(C)).astype(float)
    if upper.shape != (n,) or np.any(upper <= 0):
        raise ValueError(f"C must be positive, one number or one per row ({n}), got {C}")
    numbers = {}
    if not (np.all(np.isfinite(alpha)) and np.isfinite(b)):
        lost = f"alpha in {where(~np.isfinite(alpha))}" if np.isfinite(b) else "b"
        message = (
            f"NaN or infinity in {lost}: a step divided by K_ii + K_jj − 2K_ij = 0 (a pair of equal"
            " rows, or i = j), or a mean was taken over no rows."
        )
        return Report("not finite", message, numbers)
    report = kernel_report(K, numbers)
    if report is not None:
        return report
    beta = t * alpha
    out = K @ beta
    box, _ = svm_infeasibility(beta, t, upper)
    errors = row_errors(alpha, upper, t * (out + b) - 1)
    numbers |= {"box": box, "sum": abs(float(beta.sum())), "margin": float(errors.max())}
    if F is not None:
        report = _cache_report(K, _vector("F", np.asarray(F), n), alpha, b, t, numbers)
        if report is not None:  # of a machine with another kernel F is right, and K is not
            limit = min(tol, unexplained(K, alpha, t, upper) / MARKEDLY)
            other = accuse(suspects(K, alpha, b, t, upper, whole, tol), limit, numbers)
            return other if "kernel" in getattr(other, "mistake", "") else report
    if is_feasible(alpha, t, upper):
        if errors.max() <= tol:
            message = f"The machine is optimal: constraints and margins hold in all {n} rows."
            return Report(None, message, numbers)
        report = offset_report(out, alpha, b, t, upper, tol, numbers)
        if report is not None:
            return report
    limit = min(tol, unexplained(K, alpha, t, upper) / MARKEDLY)
    report = accuse(suspects(K, alpha, b, t, upper, whole, tol), limit, numbers)
    if report is None:
        report = _solution_report(K, alpha, t, upper, tol, numbers)
    return _failure(K, alpha, b, t, upper, F is not None, numbers) if report is None else report


def _vector(name, value, n):
    """A numeric vector of n entries, or the error that a student needs to read."""
    if value.dtype.kind not in "iufb":
        raise ValueError(f"{name} must be numeric, got {value.dtype}")
    if value.shape != (n,):
        hint = ""
        if value.size == n:
            hint = f"; use {name}.ravel()"
        elif name == "alpha" and value.ndim == 1 and value.size < n:
            hint = "; with 0 in the rows that are no support vectors"
        raise ValueError(f"{name} must have the shape ({n},), got {value.shape}{hint}")
    return value


def _cache_report(K, F, alpha, b, t, numbers):
    """A report on outputs that were not kept up to date, or None."""
    beta = t * alpha
    out = K @ beta
    forms = [out, out + b, out - t, out + b - t, t * out - 1, t * (out + b) - 1, t * out]
    forms += [t - out, t - out - b, 1 - t * out]
    size = 1e-6 * (1 + np.abs(out).max())
    off = min((F - form for form in forms), key=lambda difference: np.abs(difference).max())
    if not np.abs(off).max() > max(size, 1e-3 if F.dtype == np.float32 else 0.0):
        return None
    numbers["outputs"] = float(np.abs(off).max())
    if np.abs(F - K @ alpha).max() <= size:
        message = "F is K @ alpha; the function is K @ (t * alpha), its terms carry the labels."
        return Report("labels forgotten in the outputs", message, numbers)
    for factor, name in ((2.0, "2"), (0.5, "½")):
        if np.abs(F - factor * out).max() <= size or np.abs(F - factor * out - b).max() <= size:
            message = f"F is {name} K @ (t * alpha): the gradient of ½βᵀKβ is Kβ."
            return Report("factor ½", message, numbers)
    if min(np.abs(F + out).max(), np.abs(F + out + t).max()) <= size:
        message = "F has the sign of −K @ (t * alpha): F += Δβ_i K[:, i] + Δβ_j K[:, j]."
        return Report("sign of the gradient update", message, numbers)
    squares = np.maximum(np.einsum("ij,ij->j", K, K), 1e-300)
    for form in forms[:4]:
        missing = form - F
        steps = (K @ missing) / squares  # of each column alone
        left = np.abs(missing[:, None] - K * steps).max(axis=0)
        i = int(np.argmin(left))
        if left[i] <= 1e-3 * np.abs(missing).max():
            message = (
                f"F lacks {steps[i]:+.3g} times column {i} of K: of a pair of variables that moved,"
                " only one was added to F. Both belong there, F += Δβ_i K[:, i] + Δβ_j K[:, j]."
            )
            return Report("gradient update missing", message, numbers)
    message = (
        f"F differs from K @ (t * alpha) by up to {np.abs(off).max():.3g}: an update is missing,"
        " incomplete or of the wrong sign, so that pairs are chosen, and the end is declared, by"
        " numbers that are not those of alpha. Both variables of each step change all entries of F."
    )
    return Report("gradient update missing", message, numbers)


# --- The dual variables ---------------------------------------------------------------------------


def _solution_report(K, alpha, t, upper, tol, numbers):
    """A report on an answer that has the right values, but not in all rows; or None."""
    size = alpha.max()
    if alpha.min() < -FEASIBLE * size or np.any(alpha > (1 + FEASIBLE) * upper):
        return None

    def solve(lo, hi):
        """The best α with signed variables between lo and hi, and its error."""
        costs = Costs(lo, hi, hi, -t, -t)
        start = feasible(np.clip(np.zeros(len(t)), lo, hi), costs)
        if abs(start.sum()) > 1e-9 * size:
            return start, np.inf
        best = t * solve_smo(K, costs, start, 0.1 * tol, 20_000)[0]
        return best, best_offset(K @ (t * best), best, t, upper)[1]

    lo, hi = np.minimum(0, t * upper), np.maximum(0, t * upper)
    kept = alpha > 1e-5 * np.minimum(upper, size)
    free = kept & (alpha < (1 - 1e-5) * upper)
    if not kept.all():
        # Can the rows with α = 0 be completed to a solution, with the others as they are?
        beta = t * np.where(kept, alpha, 0.0)
        whole, error = solve(np.where(kept, beta, lo), np.where(kept, beta, hi))
        lost = ~kept & (whole > FEASIBLE * size)
        if error <= tol and 0 < lost.sum() < free.sum():
            message = (
                f"alpha is right in all rows but {where(lost)}, where it is 0 and should be"
                f" {'up to ' if lost.sum() > 1 else ''}{whole[lost].max():.3g}: set only rests of"
                " rounding to 0 (1e-8 C), and leave no support vector out."
            )
            return Report("support vectors dropped", message, numbers)
    right, error = solve(lo, hi)
    inside = (right > FEASIBLE * upper) & (right < (1 - FEASIBLE) * upper)
    off = np.abs(np.sort(alpha) - np.sort(right)).max()
    moved = np.abs(alpha - right)
    apart = np.ptp(K @ (t * (alpha - right)))  # small where α is merely one of many, or inexact
    near = off <= min(0.02 * size, moved.max() / MARKEDLY)
    if error <= tol and near and apart > 0.3 and inside.sum() >= 3:
        i = int(np.argmax(moved))
        j = int(np.argmin(np.abs(right - alpha[i])))
        message = (
            f"alpha holds the values of the solution in other rows: {alpha[i]:.4g}, in row {i}, is"
            f" that of row {j}, say. Were the rows shuffled or sorted on the way, or K, t and alpha"
            " taken from different orders?"
        )
        return Report("order of the rows", message, numbers)
    return None


def _failure(K, alpha, b, t, upper, outputs_right, numbers):
    """No suspect fits: which condition fails, where, and by how much."""
    out = K @ (t * alpha)
    size = np.abs(alpha).max()
    low, high = alpha < -FEASIBLE * size, alpha > upper + FEASIBLE * size
    total = float(t @ alpha)
    parts = []
    if low.any():
        parts.append(f"α < 0 in {where(low)}, down to {alpha.min():.3g}")
    if high.any():
        parts.append(f"α > C in {where(high)}, up to {alpha.max():.3g}")
    if parts:
        message = "; ".join(parts) + ". Clip to the box 0 ≤ α ≤ C after each step."
        if abs(total) > FEASIBLE * size:
            message += (
                f" Further Σ t α = {total:.3g} must be 0: what shortens the step of one variable"
                " shortens that of the other too."
            )
        end = (
            ""
            if low.any() and high.any()
            else ": lower bound 0"
            if low.any()
            else ": upper bound C"
        )
        return Report(f"box violated{end}", message, numbers)
    if abs(total) > FEASIBLE * size:
        message = f"Σ t α = {total:.3g} must be 0: a pair step leaves t_i α_i + t_j α_j unchanged. "
        kept = alpha > 1e-5 * np.minimum(upper, size)
        if best_offset(out, alpha, t, upper)[1] <= 0.05:
            message += (
                "All margins are nearly right, as when each α is clipped by itself (after clipping"
                " α_j, move α_i by t_i t_j times what α_j has really moved), when small α were set"
                " to 0 at the end, or when the offset is penalized."
            )
        elif best_offset(out[kept], alpha[kept], t[kept], upper[kept])[1] <= 0.3:
            message += (
                "The margins of the rows with α > 0 are nearly right, those with α = 0 are not: as"
                " when support vectors were dropped at the end, or each α is clipped by itself."
            )
        else:
            message += (
                "The margins are wrong too: as when a step has no sign or the wrong one (α_i moves"
                " by t_i ρ, α_j by −t_j ρ), or when alpha belongs to rows in another order than K."
                " Print t @ alpha after each step: off from the first one on, it is the step; 0 to"
                " the end of the loop, it is what you do with alpha afterwards."
            )
        return Report("equality constraint", message, numbers)
    errors = row_errors(alpha, upper, t * (out + b) - 1)
    slack = t * (out + b) - 1
    at_0, at_C = alpha <= 1e-5 * size, alpha >= (1 - 1e-5) * upper
    wrong = errors > 0.1 * errors.max()
    counts = [
        (np.sum(wrong & at_0), "with α = 0 inside the margin"),
        (np.sum(wrong & at_C), "with α = C outside it"),
        (np.sum(wrong & ~at_0 & ~at_C), "with 0 < α < C off it"),
    ]
    listed = ", ".join(f"{count} {what}" for count, what in counts if count)
    pull = t - out
    i, j = _pair(pull, np.where(t > 0, ~at_C, ~at_0), np.where(t > 0, ~at_0, ~at_C))
    violation = pull[i] - pull[j]
    numbers["violation"] = float(violation)
    worst = int(np.argmax(errors))
    message = (
        f"the constraints hold, the margins do not: {listed}; worst is row {worst}, α ="
        f" {alpha[worst]:.3g}, margin {1 + slack[worst]:.3g}. Moving the pair ({i}, {j}) would"
        f" still gain (violation {violation:.3g}). "
    )
    times, step = _replay(K, alpha, t, upper)
    if times == 2:
        message += (
            "alpha is where steps of twice (E_i − E_j)/(K_ii + K_jj − 2K_ij) lead: each jumps to"
            " the mirror point of its parabola, and the next one back."
        )
        return Report("twice the step", message, numbers)
    if times:
        message += f"alpha is that of step {step} of the pair that violates most: the loop ended"
        return Report("stopped early", f"{message} there. Stop by the violation.", numbers)
    rest = np.where(t > 0, alpha < upper, alpha > 0), np.where(t > 0, alpha > 0, alpha < upper)
    stuck = [row for row in _pair(pull, *rest) if at_0[row] and alpha[row] > 0]
    stuck += [row for row in _pair(pull, *rest) if at_C[row] and alpha[row] < upper[row]]
    if stuck:
        row = stuck[0]
        message += (
            f"But alpha[{row}] = {alpha[row]:.17g} misses its bound by rounding, and a loop that"
            f" takes it for free chooses row {row} again and again, with steps of length 0: set a"
            " variable that is cut off exactly to 0 or C, or call it free only 1e-12 C inside. A"
            " loop that does so ended early"
        )
        if violation < 0.3:
            return Report("stopped early, or stuck by rounding", f"{message}.", numbers)
        name = "stuck by rounding, or stopped early"
        if not outputs_right:
            name += ", or gradient out of date"
            message += ", or its errors or gradient are out of date: pass them as F= to find out"
        return Report(name, f"{message}.", numbers)
    if violation < 0.3:
        message += "Close: the loop ended early. Stop by the violation, not by a count of rounds."
        return Report("stopped early", message, numbers)
    if outputs_right:
        message += (
            "The F that you pass is right and shows such a pair: the loop ended early, or looks at"
            " the wrong pairs. β_i = t_i α_i can go up where t_i = 1 and α_i < C, or t_i = −1 and"
            " α_i > 0; down in the other two cases."
        )
    else:
        message += (
            "As when your loop sees no such pair, because its errors or gradient are out of date or"
            " have a wrong sign (pass them as F= to find out) or it looks at the wrong pairs; when"
            " it was stopped early; when rows were put in another order; or with another kernel"
            " than K (see check_kernel)."
        )
    return Report("not optimal", message, numbers)


def _replay(K, alpha, t, upper, most=2000):
    """How long the steps of the pair that violates most were, and how many led to α; or (0, 0)."""
    low, high = np.minimum(0, t * upper), np.maximum(0, t * upper)
    for times in (1, 2):
        beta, F = np.zeros(len(t)), np.zeros(len(t))
        for step in range(1, most):
            i, j = _pair(t - F, beta < high - 1e-12 * upper, beta > low + 1e-12 * upper)
            rho = times * (t[i] - F[i] - t[j] + F[j]) / max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
            rho = min(rho, high[i] - beta[i], beta[j] - low[j])
            beta[[i, j]] += rho, -rho
            F += rho * (K[i] - K[j])
            if np.abs(t * beta - alpha).max() <= 1e-9 * upper.max():
                return times, step
    return 0, 0


def _pair(pull, up, down):
    """The row that pulls up most among those that can, and the one that pulls down most."""
    return int(np.argmax(np.where(up, pull, -np.inf))), int(np.argmin(np.where(down, pull, np.inf)))
