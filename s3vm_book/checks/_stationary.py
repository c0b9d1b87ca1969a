"""QN-S³VM and its smooth relatives: do the outputs balance, and is a point stationary?"""

import itertools

import numpy as np

from s3vm_book.checks._conditions import kernel_report
from s3vm_book.checks._objective import sizes_of, smooth_losses
from s3vm_book.checks._report import (
    ALIKE,
    MARKEDLY,
    Report,
    Suspect,
    accuse,
    finite,
    is_clear,
    ratio_names,
)
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import signed_labels


def check_balance(f, t, ratio, *, tol=1e-3):
    """Do the outputs have the mean 2r − 1 over the unlabeled rows?

    Parameters
    ----------
    f : array-like of shape (n,)
        Outputs of all rows, with the offset.
    t : array-like of shape (n,)
        Labels −1 and +1, and 0 for unlabeled rows.
    ratio : float
        Share r of positives.
    tol : float, default=1e-3

    Returns
    -------
    Report

    Examples
    --------
    >>> check_balance([1.0, -1.0, 0.5, 0.7], [1, -1, 0, 0], ratio=0.6).mistake
    'balance: r for 2r − 1'
    """
    t = signed_labels(t, unlabeled=True)
    f = finite("f", f, t.shape)
    if not 0 <= ratio <= 1:
        raise ValueError(f"ratio must lie in [0, 1], got {ratio}")
    U = t == 0
    if not U.any():
        raise ValueError("t must have unlabeled rows, marked by 0")
    target, mean = 2 * ratio - 1, f[U].mean()
    numbers = {"balance": abs(float(mean - target))}
    if numbers["balance"] <= tol:
        return Report(None, f"The mean output over the unlabeled rows is {target:.4g}.", numbers)
    say = f"the mean output over the unlabeled rows is {mean:.4g} and must be 2r − 1 = {target:.4g}"
    suspects = [
        Suspect("balance: r for 2r − 1", f"{say}: it is r itself.", abs(mean - ratio)),
        Suspect(
            "balance: sign", f"{say}: it is 1 − 2r, that of the other class.", abs(mean + target)
        ),
        Suspect(
            "balance: over all rows",
            f"{say}: the mean over all rows has that value.",
            abs(f.mean() - target),
        ),
        Suspect(
            "balance: over the labeled rows",
            f"{say}: the mean over the labeled rows has that value.",
            abs(f[~U].mean() - target) if (~U).any() else np.inf,
        ),
        Suspect(
            "balance: offset twice",
            f"{say}: it is twice that, the offset is added to outputs that hold it.",
            abs(mean - 2 * target) if target else np.inf,
        ),
        Suspect(
            "balance: signs for outputs",
            f"{say}: the share of positive signs is r, but the constraint is on the outputs.",
            abs(np.mean(f[U] > 0) - ratio) if U.sum() > 1 else np.inf,
        ),
    ]
    report = accuse(suspects, tol, numbers)
    return Report("balance", f"{say}.", numbers) if report is None else report


def check_s3vm(K, c, b, t, problem, *, tol=1e-3):
    """Is f = K c + b a stationary point of a smooth semi-supervised SVM?

    Being stationary is all that a local solver can promise: another stationary point may be lower.
    At one, c = −a − ν m with the slopes a of the losses and a multiplier ν of the balance. Where it
    is not, the C and C* are sought for which it would be.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Gram matrix; a centered one where c belongs to that.
    c : array-like of shape (n,)
        Coefficients of f = Σ c_i k(x_i, ·).
    b : float
        Offset.
    t : array-like of shape (n,)
        Labels −1 and +1, and 0 for unlabeled rows.
    problem : Problem
        With differentiable losses; ``balance`` "none" or "mean".
    tol : float, default=1e-3
        Share of J that may still be left to gain, by the length of the gradient.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        For labels, shapes, losses or a balance that do not fit.
    """
    t = signed_labels(t, unlabeled=True)
    n = len(t)
    K, c = finite("K", K, (n, n)), finite("c", c, (n,))
    b = float(finite("b", b, ()))
    smooth_losses(problem)
    if problem.balance not in ("none", "mean"):
        raise ValueError(f"problem.balance must be 'none' or 'mean', got {problem.balance!r}")
    numbers = {}
    report = kernel_report(K, numbers)
    if report is not None:
        return report
    if problem.balance == "mean":
        report = check_balance(K @ c + b, t, problem.ratio, tol=1e-2)
        numbers |= report.numbers
        if not report:
            return Report(report.mistake, report.message, numbers)
    point = _Point(K, c, b, t, problem)
    numbers["gain"] = gain = point.left(c, b, point.a) ** 2
    if gain <= tol:
        message = "The point is stationary: the gradient leaves nothing to gain."
        return Report(None, message, numbers)
    limit = min(tol, gain / MARKEDLY**2) ** 0.5
    if not point.plenty:
        limit /= 5
    report = accuse(_suspects(point), limit, numbers)
    if report is None:
        report = accuse(_other_weights(point), limit, numbers)
    if report is not None:
        return report
    message = (
        "the point is not stationary: along the gradient about"
        f" {100 * min(1, gain):.2g} % of J could still be gained."
    )
    if gain < 0.05:
        message += " As when the search ended early, or the losses are a little different ones."
        return Report("stopped early, or another objective", message, numbers)
    message += " Check value and gradient with check_s3vm_objective; if they are right, the search"
    message += (
        " ended too early, or at another offset, or c belongs to another K (centered, or not)."
    )
    return Report("not stationary", message, numbers)


class _Point:
    """A point, and what is left to gain there if the slopes a of the losses were others."""

    def __init__(self, K, c, b, t, problem):
        self.K, self.c, self.b, self.t, self.problem = K, c, b, t, problem
        self.L, self.U, self.f = t != 0, t == 0, K @ c + b
        self.balanced = problem.balance == "mean"
        self.J = max(problem.value(self.f, t, c @ K @ c, b), 1e-300)
        self.a = problem.output_gradient(self.f, t)
        # In a space of few dimensions some change or other explains every point.
        self.plenty = np.linalg.matrix_rank(K, tol=1e-6 * np.abs(K).max()) > 8

    def left(self, c, b, a):
        """Root of what is left to gain, as a share of J."""
        pull = -a.sum() if self.balanced else 0.0
        r = a + c + pull * self.U / max(1, self.U.sum())
        free = self.problem.bias == "free" and not self.balanced
        slope = (a.sum() if free else 0.0) + b * (self.problem.bias == "regularized")
        size = max(np.abs(a).sum(), 1e-300)
        return float(np.sqrt(0.5 * max(r @ self.K @ r, 0.0) / self.J + (slope / size) ** 2))

    def with_slopes(self, a):
        """The same for other slopes at the point."""
        return self.left(self.c, self.b, a)

    def weighted(self, ratio_C, ratio_U):
        """The same for multiples of C and C*."""
        return self.with_slopes(np.where(self.L, ratio_C, ratio_U) * self.a)

    def moved(self, c, b):
        """The same at another point."""
        return self.left(c, b, self.problem.output_gradient(self.K @ c + b, self.t))


def _suspects(point):
    """Mistakes, with what they leave to gain."""
    c, b, t, f, problem = point.c, point.b, point.t, point.f, point.problem
    L, U = point.L, point.U
    if not c.any():
        message = (
            "c is 0 everywhere: the search took no step, as when its gradient has a wrong sign"
        )
        message += " or does not belong to its value (see check_s3vm_objective)."
        yield Suspect("no step taken", message, 0.0)
    message = "−c would be stationary: the coefficients have the wrong sign."
    yield Suspect("sign", message, point.moved(-c, b))
    message = "with −b the point is stationary: f = K c + b, not − b."
    yield Suspect("sign of the offset", message, point.moved(c, -b))
    message = "with b = 0 it is stationary, b was added later."
    yield Suspect("offset forgotten", message, point.moved(c, 0.0))
    message = "in the labeled rows t c would be right: f = Σ c_i k(x_i, ·), the labels are in c."
    yield Suspect("labels twice", message, point.moved(np.where(L, t * c, c), b))

    # The weights
    message = (
        "it is the supervised machine, stationary for C* = 0: the unlabeled rows play no part, or"
        " with a weight far below C*, as after the first stages of an annealing, or C*/u."
    )
    missing = point.weighted(1, 0)
    yield Suspect("unlabeled term missing", message, missing)
    C, C_star, l, u, n = problem.C, problem.C_star, L.sum(), U.sum(), len(t)
    sums = "C and C* belong to sums and ½‖f‖²; to means belong λ and λ', with C = 1/(2λl)."
    forms, shares = [], (1,)
    if C_star > 0:
        forms = [
            ("C and C* exchanged", "they are exchanged.", (C_star / C, C / C_star)),
            ("C for C*", "the unlabeled rows have the weight C.", (1, C / C_star)),
            ("C* left out", "C* is missing, or has this factor.", (1, 1 / C_star)),
        ]
        shares = (1, C_star**-2, 0.5 * C_star**-2, 0.5 / (C * u), 0.5 / C, 1 / C)
    forms += [
        ("factor ½", "J has ½‖f‖², without a factor in the losses.", (0.5, 0.5)),
        ("factor ½", "J has ½‖f‖², and the factor ½ is in no loss.", (2, 2)),
    ]
    means = ((1 / l, 1 / u), (1 / l, 1), (1, 1 / u), (1 / n, 1 / n), (1, 1 / n), (1 / n, 1))
    means += ((l, u), (l, 1), (1, u), (1, l / u), (1, u / l), (1 / l, 1 / l))
    forms += [("mean and sum", sums, pair) for pair in means]
    stages = (0.5, 0.3, 0.2, 0.1, 0.03, 0.01, 0.003, 0.001)
    last = "the last stage, at the full C*, is missing, or C* has a wrong factor."
    forms += [("annealing unfinished", last, (1, stage)) for stage in stages]
    lambdas = (1 / C**2, 0.5 / C**2, 0.5 / (C**2 * l), 0.5 / (C**2 * n))
    forms += [("λ for C", sums, pair) for pair in itertools.product(lambdas, shares) if C != 1]
    for name, words, pair in forms:
        left = point.weighted(*pair)
        tiny = pair[0] == 1 and pair[1] < 1 and ALIKE * left > missing
        if not (tiny or np.allclose(pair, 1, rtol=0.02)):
            message = f"it is stationary for {_times(pair, {})}: {words}"
            yield Suspect(name, message, left)

    # Which rows, which loss
    weighted = C_star * problem.unlabeled_loss.derivative(f)
    for name, slopes in (
        ("all rows", point.a + np.where(L, weighted, 0.0)),
        ("the labeled rows", np.where(L, point.a + weighted, 0.0)),
    ):
        message = f"it is stationary for the unlabeled loss over {name}: it is for rows with t = 0."
        yield Suspect("rows of the unlabeled loss", message, point.with_slopes(slopes))
    for label in (-1.0, 1.0):
        extra = np.where(U, C * problem.labeled_loss.derivative(np.where(U, label, t), f), 0.0)
        only = np.where(L, point.a, extra)
        for slopes, words in ((point.a + extra, ", and as unlabeled"), (only, "")):
            message = f"it is stationary if unlabeled rows count as labeled {label:+g}{words}: the"
            message += " labeled loss is for rows with t = ±1."
            yield Suspect("rows of the labeled loss", message, point.with_slopes(slopes))
    message = "it is stationary for −C*: the unlabeled loss is subtracted."
    yield Suspect("sign of the unlabeled term", message, point.weighted(1.0, -1.0))
    sharpness = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
    labeled = [("hinge", None), ("logistic", None), ("squared_hinge", None)]
    for name, p in labeled + [("modified_logistic", p) for p in sharpness]:
        a_L = C * LabeledLoss(name, p).derivative(t, f)
        words = f"the labeled loss {name.replace('_', ' ')}{f' with γ = {p:g}' if p else ''}"
        forms = {"": 1.0, ", without its ½": 2.0} if name == "squared_hinge" else {"": 1.0}
        for end, factor in forms.items():
            if (name, p) != (problem.labeled_loss.name, problem.labeled_loss.parameter):
                left = point.with_slopes(np.where(L, factor * a_L, point.a))
                yield Suspect("another labeled loss", f"it is stationary for {words}{end}.", left)
    unlabeled = [("symmetric_hinge", None), ("squared_symmetric_hinge", None)]
    for name, p in unlabeled + [("gaussian", s) for s in (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 6.0)]:
        a_U = C_star * UnlabeledLoss(name, p).derivative(f)
        same = name == problem.unlabeled_loss.name
        words = f"exp(−{p:g} f²)" if p else f"the {name.replace('_', ' ')}"
        if same:
            words += f" in place of exp(−{problem.unlabeled_loss.p:g} f²)"
        kind = "exponent of the unlabeled loss" if same else "another unlabeled loss"
        forms = {"": 1.0, ", without its ½": 2.0} if "squared" in name else {"": 1.0}
        for end, factor in forms.items():
            if (name, p) != (problem.unlabeled_loss.name, problem.unlabeled_loss.parameter):
                left = point.with_slopes(np.where(U, factor * a_U, point.a))
                yield Suspect(kind, f"it is stationary for {words}{end}.", left)


def _times(pair, sizes):
    """The factors of C and C* in words."""
    return " and ".join(
        f"{' or '.join(ratio_names(ratio, sizes)) or f'{ratio:.2g}'} times {weight}"
        for ratio, weight in zip(pair, ("C", "C*"), strict=True)
        if abs(ratio - 1) >= 0.02
    )


def _other_weights(point):
    """The C and C* for which the point would be stationary."""
    K, a, c = point.K, point.a, point.c
    sizes = sizes_of(point.problem, point.t) | {"γ": 0.0}
    columns = [np.where(part, a, 0.0) for part in (point.L, point.U)]
    if point.balanced:
        m = point.U / max(1, point.U.sum())
        columns = [column - column.sum() * m for column in columns]
    root = K @ np.column_stack(columns)
    G = np.column_stack(columns).T @ root
    kappa = np.linalg.lstsq(G, -root.T @ c, rcond=1e-12)[0]
    both = kappa.mean()
    for pair in ((1.0, kappa[1]), (both, both), (kappa[0], 1.0), tuple(kappa)):
        if not point.plenty:  # only round ones count
            pair = tuple(float(f"{ratio:.1g}") for ratio in pair)
        if min(pair) < 1e-3 or not any(is_clear(ratio, sizes) for ratio in pair):
            continue
        if abs(pair[0] - 1) >= 0.02:
            name, words = "λ for C", "C = 1/(2λl), C* = λ'/(2λu), or the factors of the losses."
        else:
            name = "annealing unfinished" if pair[1] < 1 else "factor of the unlabeled term"
            words = "the last stage, at the full C*, is missing, or C* has a wrong factor."
        message = f"it is stationary for {_times(pair, sizes)}: {words}"
        yield Suspect(name, message, point.weighted(*pair))
