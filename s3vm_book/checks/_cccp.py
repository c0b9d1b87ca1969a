"""CCCP: is the convex problem solved, and is its solution a fixed point?"""

import numpy as np

from s3vm_book.checks._cccp_state import State
from s3vm_book.checks._cccp_suspects import suspects
from s3vm_book.checks._conditions import FEASIBLE, kernel_report
from s3vm_book.checks._report import MARKEDLY, Report, accuse, finite, where
from s3vm_book.checks._stationary import check_balance
from s3vm_lib.objective import signed_labels


def check_cccp(K, beta, b, t, C, C_star, *, s=-0.3, ratio=None, delta=None, tol=5e-3):
    """Is this a fixed point of the concave-convex procedure, and if not, where did it go wrong?

    Two questions are kept apart. *The inner problem*: for which slopes δ would β and b solve it,
    row by row? *The outer loop*: are these the slopes that the outputs ask for? So a missing round
    of the loop, a wrong sign of the linearization and an SMO that ended early are told apart,
    without knowing how β was found.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Gram matrix of all rows, each unlabeled one once; with ``ratio`` of shape (n + 1, n + 1),
        the last row being that of the mean of the unlabeled rows in feature space.
    beta : array-like of shape (n,) or (n + 1,)
        Signed dual variables, f = Σ β_i k(x_i, ·): between 0 and C t_i for labeled rows, δ_j − C*
        and δ_j + C* for unlabeled ones; with ``ratio`` the multiplier of the balance last. Of the
        doubled data set it is the sum of the two variables of an unlabeled row.
    b : float
        Offset.
    t : array-like of shape (n,)
        Labels −1 and +1, and 0 for unlabeled rows.
    C, C_star : float
        Weights of the labeled hinge and of the two ramps of an unlabeled row.
    s : float, default=-0.3
        Where the ramp ends: rows with ``|f| > |s|`` are decided.
    ratio : float, default=None
        Share r of positives, for the balance constraint; None without one.
    delta : array-like of shape (u,), default=None
        Slopes of the inner problem that was solved, C* where f > ``|s|``, −C* where f < −``|s|``,
        0 between: only this problem is checked then. None asks for a fixed point.
    tol : float, default=5e-3
        Error of a margin that is a matter of tolerance.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        For shapes, labels and weights that do not fit.
    """
    t = signed_labels(t, unlabeled=True)
    L, U = t != 0, t == 0
    n, u = len(t), int(U.sum())
    if not u or not L.any():
        raise ValueError("t must have labeled and unlabeled rows")
    for name, value in (("C", C), ("C_star", C_star)):
        if np.ndim(value) or not value > 0:
            raise ValueError(f"{name} must be a positive number, got {value}")
    if not -1 < s < 1:
        raise ValueError(f"s must lie between −1 and 1, got {s}")
    size = n if ratio is None else n + 1
    beta = np.asarray(beta)
    if beta.shape != (size,):
        hint = ""
        if beta.shape in ((n + u,), (n + u + 1,)):
            hint = "; of the doubled data set, add up the two variables of each unlabeled row"
        elif beta.shape == (n,):
            hint = "; with ratio, the multiplier of the balance comes last"
        raise ValueError(f"beta must have the shape ({size},), got {beta.shape}{hint}")
    K = finite("K", K, (size, size))
    numbers = {}
    beta = beta.astype(float)
    if not (np.all(np.isfinite(beta)) and np.isfinite(b)):
        return Report("not finite", "beta or b is NaN or infinite.", numbers)
    if delta is not None:
        delta = finite("delta", delta, (u,))
    report = kernel_report(K, numbers)
    if report is None and ratio is not None:
        report = _mean_row_report(K, U, numbers)
    if report is not None:
        return report
    state = State(K, beta, float(b), t, float(C), float(C_star), abs(s), ratio, delta)
    error, feasible = state.error(), state.feasible()
    numbers |= {"sum": abs(float(beta.sum())), "error": error}
    if feasible and error <= tol:
        if ratio is not None:
            report = check_balance(state.f(), t, ratio, tol=max(tol, 1e-3))
            if not report:
                return Report(report.mistake, report.message, numbers | report.numbers)
        what = "The point is a fixed point" if delta is None else "The convex problem is solved"
        return Report(None, f"{what}: bounds, Σβ = 0 and margins hold in all {n} rows.", numbers)
    report = accuse(suspects(state, tol), min(tol, state.left() / MARKEDLY), numbers)
    if report is None:
        report = _slopes_report(state, tol, numbers)
    return _failure(state, tol, numbers) if report is None else report


def _mean_row_report(K, U, numbers):
    """A report on a last row that is not that of the mean of the unlabeled rows, or None."""
    n, m = len(U), U / U.sum()
    row = K[:n, :n] @ m
    size = np.abs(K).max()
    if np.abs(K[:n, n] - row).max() <= 1e-6 * size and abs(K[n, n] - m @ row) <= 1e-6 * size:
        return None
    everything = K[:n, :n] @ np.full(n, 1 / n)
    if np.abs(K[:n, n] - everything).max() <= 1e-6 * size:
        message = (
            "the last row of K is that of the mean of all rows: take the unlabeled ones alone."
        )
    elif np.abs(K[:n, n] - row * U.sum()).max() <= 1e-6 * size * U.sum():
        message = "the last row of K is a sum over the unlabeled rows: the mean divides by u."
    elif np.abs(K[:n, n] - row).max() <= 1e-6 * size:
        message = (
            f"the last entry of K is {K[n, n]:.4g} and must be mᵀKm = {m @ row:.4g}, the mean over"
            " all pairs of unlabeled rows."
        )
    else:
        message = "the last row of K must be Km with m = 1/u on the unlabeled rows and 0 elsewhere."
    return Report("balance: row of the mean", message, numbers)


def _slopes_report(state, tol, numbers):
    """A report on an inner problem that is solved for other slopes, whichever; or None.

    A row beyond a margin, or between them, says exactly what δ was: β + C*, β or β − C*.
    """
    n, U, width, asked = len(state.t), state.U, state.C_star, state.asked()
    f, beta = state.f()[U], state.beta[: len(state.t)][U]
    ends = [np.where(f > -1 + tol, beta, beta - width), np.where(f < 1 - tol, beta, beta + width)]
    ends = np.where(f > 1 + tol, beta + width, np.where(f < -1 - tol, beta - width, ends))
    steps = np.clip(np.round(ends.mean(axis=0) / width), -1, 1) * width
    low, high = ends.min(axis=0) - 0.02 * width, ends.max(axis=0) + 0.02 * width
    wrong = (low > asked) | (high < asked)
    if not wrong.any() or state.but(delta=steps).left() > tol:
        return None
    count = f"{wrong.sum()} of {U.sum()} unlabeled rows"
    places = where(np.isin(np.arange(n), np.flatnonzero(U)[wrong]))
    opposite, both = np.sum(steps * asked < 0), np.sum(steps * asked != 0)
    message = f"the inner problem is solved, but for other slopes: in {count} ({places}) δ is not"
    message += " what the outputs ask for" if state.delta is None else " the given one"
    if opposite >= max(3, 0.15 * both) and (state.delta is None or opposite >= 0.9 * both):
        # An early end leaves out rows, and hardly any changes sides.
        message += (
            f", and in {opposite} it has the opposite sign: a row on the positive side has δ = +C*,"
            " which adds −δ f. With the wrong sign the outer loop runs to and fro."
        )
        if opposite >= 0.9 * both:
            return Report("sign of the linearization", message, numbers)
        message += " The same is seen when δ is used in other rows than those that it belongs to."
        return Report("sign of the linearization, or order of the slopes", message, numbers)
    if state.delta is None:
        message += (
            ". As when the outer loop ended early, when δ was not computed again after the last"
            " convex problem, or was computed with another s."
        )
        return Report("not a fixed point", message, numbers)
    between = np.abs(f) < 1 - tol
    if between.sum() >= 3 and np.all(np.abs(beta - asked)[between] > (1 - FEASIBLE) * width):
        message += ". Or the slopes of the costs below and above the kink are exchanged."
        return Report("other slopes than given, or exchanged at the kink", message, numbers)
    return Report("other slopes than given", f"{message}.", numbers)


def _failure(state, tol, numbers):
    """No suspect fits: which condition fails, where, and by how much."""
    n, t, L, U = len(state.t), state.t, state.L, state.U
    alpha = (t * state.beta[:n])[L]
    rows_L, rows_U = np.flatnonzero(L), np.flatnonzero(U)
    size = np.abs(state.beta[:n]).max()

    def named(mask, rows):
        return where(np.isin(np.arange(n), rows[mask]))

    low, high = alpha < -FEASIBLE * size, alpha > state.C * (1 + FEASIBLE)
    if low.any() or high.any():
        parts = []
        if low.any():
            parts.append(f"t β < 0 in {named(low, rows_L)}")
        if high.any():
            parts.append(f"t β > C in {named(high, rows_L)}, up to {alpha.max():.3g}")
        return Report("box violated", f"labeled: {'; '.join(parts)}. Clip to 0 ≤ t β ≤ C.", numbers)
    beta_U, delta = state.beta[:n][U], state.asked()
    outside = np.abs(beta_U - delta) > state.C_star * (1 + FEASIBLE)
    if outside.any():
        j = int(np.argmax(np.abs(beta_U - delta)))
        message = (
            f"unlabeled: β is outside [δ − C*, δ + C*] in {named(outside, rows_U)}; row {rows_U[j]}"
            f" has β = {beta_U[j]:.3g} and δ = {delta[j]:.3g}, C* = {state.C_star:.3g}. The box of"
            " a decided row reaches from 0 to ±2C*: it is shifted by δ."
        )
        return Report("box of the unlabeled rows", message, numbers)
    if not state.feasible():
        message = f"Σβ = {state.beta.sum():.3g} must be 0"
        message += ", the multiplier of the balance included." if state.ratio is not None else "."
        return Report("equality constraint", message, numbers)
    if state.ratio is not None:
        report = check_balance(state.f(), t, state.ratio, tol=10 * tol)
        if not report:
            return Report(report.mistake, report.message, numbers | report.numbers)
    errors_L, errors_U = state.labeled_errors(), state.near_kink()
    bad_L, bad_U = errors_L > tol, errors_U > tol
    f = state.f()
    parts = []
    if bad_L.any():
        k = rows_L[int(np.argmax(errors_L))]
        parts.append(
            f"labeled {named(bad_L, rows_L)}; worst is row {k}, α = {t[k] * state.beta[k]:.3g},"
            f" margin {t[k] * f[k]:.3g}"
        )
    if bad_U.any():
        j = int(np.argmax(errors_U))
        parts.append(
            f"unlabeled {named(bad_U, rows_U)}; worst is row {rows_U[j]}, output"
            f" {f[rows_U[j]]:.3g}, β − δ = {(beta_U - delta)[j]:.3g} with C* = {state.C_star:.3g}"
        )
    message = f"the bounds hold, the margins do not: {'; '.join(parts)}."
    if bad_U.any():
        message += (
            " Of an unlabeled row, β − δ is −C* beyond f = 1, 0 between −1 and 1, C* below −1."
        )
    if max(errors_L.max(), errors_U.max()) < 0.1:
        return Report("stopped early", message + " Close: the inner solver ended early.", numbers)
    return Report("inner problem not solved", message, numbers)
