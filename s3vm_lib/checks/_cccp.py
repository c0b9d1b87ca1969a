"""CCCP: is the convex problem solved, and is its solution a fixed point?"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from s3vm_lib.checks._conditions import FEASIBLE, kernel_report, row_errors
from s3vm_lib.checks._report import (
    MARKEDLY,
    Report,
    Suspect,
    accuse,
    finite,
    is_clear,
    ratio_names,
    ratio_words,
    where,
)
from s3vm_lib.checks._stationary import check_balance
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
    state = _State(K, beta, float(b), t, float(C), float(C_star), abs(s), ratio, delta)
    error, feasible = state.error(), state.feasible()
    numbers |= {"sum": abs(float(beta.sum())), "error": error}
    if feasible and error <= tol:
        if ratio is not None:
            report = check_balance(state.f(), t, ratio, tol=max(tol, 1e-3))
            if not report:
                return Report(report.mistake, report.message, numbers | report.numbers)
        what = "The point is a fixed point" if delta is None else "The convex problem is solved"
        return Report(None, f"{what}: bounds, Σβ = 0 and margins hold in all {n} rows.", numbers)
    report = accuse(_suspects(state, tol), min(tol, state.left() / MARKEDLY), numbers)
    if report is None:
        report = _slopes_report(state, tol, numbers)
    return _failure(state, tol, numbers) if report is None else report


def _shifted(delta, width):
    """Lower bound, kink and upper bound of the unlabeled rows."""
    return delta - width, delta, delta + width


def _unit(delta, width):
    """Slopes of their costs below and above the kink."""
    return -1.0, 1.0


@dataclass
class _State:
    """An answer to the convex problem, with what can be changed in it and in the problem."""

    K: np.ndarray
    beta: np.ndarray
    b: float
    t: np.ndarray
    C: float
    C_star: float
    s: float
    ratio: float | None
    delta: np.ndarray | None
    box: Callable = _shifted  # of δ and C*: lower bound, kink, upper bound
    slopes: Callable = _unit  # of δ and C*: those of the costs below and above the kink
    floor: float | np.ndarray = 0.0  # lower bound of the labeled α
    margin: float | np.ndarray = 1.0  # of the labeled rows
    F: np.ndarray | None = None

    def __post_init__(self):
        self.L, self.U = self.t != 0, self.t == 0
        if self.F is None:
            self.F = self.K @ self.beta

    def but(self, **changes):
        """The same with something changed."""
        if changes.keys() & {"K", "beta"}:
            changes["F"] = None
        return replace(self, **changes)

    def f(self):
        """Outputs of the rows."""
        return self.F[: len(self.t)] + self.b

    def asked(self):
        """δ as given, or as the outputs ask for."""
        if self.delta is not None:
            return self.delta
        f = self.f()[self.U]
        return self.C_star * (1.0 * (f > self.s) - 1.0 * (f < -self.s))

    def feasible(self):
        """Whether Σβ = 0 within tolerance."""
        return abs(self.beta.sum()) <= FEASIBLE * max(np.abs(self.beta).max(), 1e-300)

    def labeled_errors(self):
        """Row errors of the labeled rows; those outside the box count with their distance."""
        L, t = self.L, self.t[self.L]
        alpha = t * self.beta[: len(self.t)][L]
        size = max(np.abs(alpha).max(), 1e-300)
        if np.ndim(self.floor):
            alpha = alpha - self.floor[L]
        margin = self.margin[L] if np.ndim(self.margin) else self.margin
        outside = np.maximum(np.maximum(-alpha, alpha - self.C), 0.0)
        outside[outside <= FEASIBLE * size] = 0.0
        upper = np.full(len(t), self.C)
        return row_errors(alpha, upper, t * self.f()[L] - margin) + outside / self.C

    def unlabeled_errors(self, delta=None):
        """Row errors of the unlabeled rows for slopes δ.

        β is lower bound + p + q, with p up to the kink and q beyond: p belongs to the hinge that
        ends at minus the slope below the kink, 1, and q to that which ends at −1.
        """
        f = self.f()[self.U]
        delta = self.asked() if delta is None else delta
        beta, width = self.beta[: len(self.t)][self.U], self.C_star
        lo, kink, hi = (part + 0 * beta for part in self.box(delta, width))
        outside = np.maximum(np.maximum(lo - beta, beta - hi), 0.0) / width
        outside[outside <= FEASIBLE] = 0.0
        below, above = self.slopes(delta, width)
        # An infinitesimal α must count as 0 of C*, so the largest is C*: a row of it is appended.
        errors = [
            row_errors(np.append(part, width), np.append(upper, width), np.append(slack, 0.0))[:-1]
            for part, upper, slack in (
                (np.clip(beta, lo, kink) - lo, kink - lo, f + below),
                (np.clip(beta, kink, hi) - kink, hi - kink, f + above),
            )
        ]
        return np.maximum(*errors) + outside

    def near_kink(self):
        """Least error over the slopes that rows near ±|s| may have."""
        f = self.f()[self.U]
        best = self.unlabeled_errors()
        if self.delta is None:
            for side in (-1.0, 1.0):
                doubtful = np.abs(f - side * self.s) <= 5e-3
                for delta in (0.0, side * self.C_star):
                    other = self.unlabeled_errors(np.where(doubtful, delta, self.asked()))
                    best = np.where(doubtful, np.minimum(best, other), best)
        return best

    def error(self):
        """Largest row error."""
        return float(max(self.labeled_errors().max(), self.near_kink().max()))

    def with_offset(self):
        """The same with the offset of the smallest error."""
        if self.ratio is not None:
            return self.but(b=2 * self.ratio - 1 - self.F[-1])
        F = self.F[: len(self.t)]
        # Some row stands on a margin, or b lies between two offsets with which one would.
        kinks = np.sort(np.concatenate([self.t[self.L] - F[self.L], 1 - F[self.U], -1 - F[self.U]]))
        offsets = np.concatenate([kinks, (kinks[1:] + kinks[:-1]) / 2])
        return min((self.but(b=float(b)) for b in offsets), key=lambda one: one.error())

    def left(self):
        """What a suspect leaves unexplained."""
        return self.error() if self.feasible() else np.inf


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


def _at_zero(delta, width):
    """Bounds that are shifted, with a kink that is not."""
    return delta - width, 0 * delta, delta + width


BOTH = "kink and slopes of the unlabeled rows"
# Costs of the unlabeled rows that would explain an answer: name, message, what is changed.
COSTS = [
    (
        "box of the unlabeled rows",
        "all conditions hold for the box [−C*, C*] in every unlabeled row: it must be shifted by δ,"
        " to [δ − C*, δ + C*], which is from 0 to ±2C* for a decided row.",
        {"box": lambda delta, width: (-width, np.clip(delta, -width, width), width)},
    ),
    (
        "kink of the unlabeled rows",
        "the bounds are shifted by δ, the kink between them is not: it is at δ, not at 0.",
        {"box": _at_zero},
    ),
    (
        "slopes of the unlabeled rows",
        "the costs of unlabeled rows have the slopes ±C*: they are ±1, C* belongs to the bounds.",
        {"slopes": lambda delta, width: (-width, width)},
    ),
    (
        "slopes of the unlabeled rows",
        "the costs of unlabeled rows have the slopes δ ± C*: they are ±1, δ and C* belong to the"
        " bounds.",
        {"slopes": lambda delta, width: (delta - width, delta + width)},
    ),
    (
        "slopes of the unlabeled rows",
        "the costs of unlabeled rows have the slope 0, −t of a row without label: it is −1 below"
        " the kink and 1 above.",
        {"slopes": lambda delta, width: (0.0, 0.0)},
    ),
    (
        BOTH,
        "the kink of unlabeled rows is at 0 in place of δ, and their slopes are ±C* in place of"
        " ±1.",
        {
            "box": _at_zero,
            "slopes": lambda delta, width: (-width, width),
        },
    ),
    *(
        (
            "one hinge of two",
            f"unlabeled rows have {words}: they have two hinges, one from δ − C* to the kink at δ,"
            " one from there to δ + C*.",
            {"box": lambda delta, width, ends=ends: tuple(delta + end * width for end in ends)},
        )
        for words, ends in (
            ("the slope −1 up to δ + C*", (-1, 1, 1)),
            ("the slope 1 from δ − C* on", (-1, -1, 1)),
            ("the bounds δ and δ + C*", (0, 0, 1)),
            ("the bounds δ − C* and δ", (-1, 0, 0)),
        )
    ),
]


def _suspects(state, tol):
    """Mistakes, with what they leave unexplained."""
    t, U, n = state.t, state.U, len(state.t)
    C_star, beta_U = state.C_star, state.beta[:n][U]
    costs = [one for one in COSTS if one[0] != BOTH or abs(C_star - 1) > 0.02]
    if not beta_U.any() and state.feasible() and state.labeled_errors().max() <= tol:
        message = "β is 0 in all unlabeled rows: this is the supervised machine, as when they are"
        message += " left out, or C* is 0 in the costs"
        name = "unlabeled rows left out"
        if state.asked().any():
            others = [("δ is 0 in all rows.", dict(delta=np.zeros(len(beta_U))))]
            others += [(words, changes) for _, words, changes in costs]
            for words, changes in others:
                if state.but(**changes).error() <= tol:
                    name = "unlabeled rows without effect"
                    message += f"; or as when {words[:-1]}"
        yield Suspect(name, f"{message}.", 0.0)

    # The threshold, the labels, the balance
    message = f"with −b = {-state.b:.4g} all conditions hold: the decision is K β + b, not − b."
    yield Suspect("sign of the threshold", message, state.but(b=-state.b).left())
    signed = state.beta.copy()
    signed[:n] *= np.where(U, 1.0, t)
    message = "in the labeled rows beta holds α: the signed variables are t α."
    yield Suspect("labels twice", message, state.but(beta=signed).left())
    mirrored = state.beta.copy()
    mirrored[:n] *= np.where(U, -1.0, 1.0)
    message = "in the unlabeled rows minus beta would be right: β is δ − C* beyond f = 1."
    yield Suspect("sign of the unlabeled rows", message, state.but(beta=mirrored).left())
    message = "minus beta would be right: the coefficients have the wrong sign."
    yield Suspect("sign", message, state.but(beta=-state.beta).left())
    public = np.where(t == -1, 0.0, np.where(t == 0, -1.0, 1.0))
    if state.ratio is None and (public != 0).any() and (public == 0).any() and state.delta is None:
        message = "t holds classes 0 and 1, and −1 for unlabeled rows:"
        message += " np.where(y == -1, 0, 2 * y - 1)."
        yield Suspect("labels 0 and 1", message, state.but(t=public).left())
    settled = state.with_offset()
    message = f"beta is right, b = {state.b:.4g} is not: it must be {settled.b:.4g}"
    message += (
        " = 2r − 1 − F_0, with F_0 the output at the mean."
        if state.ratio is not None
        else ", from labeled rows with 0 < α < C, or unlabeled ones between bound and kink."
    )
    if settled.feasible():
        name = "threshold" if state.b else "threshold forgotten"
        yield Suspect(name, message, settled.left())

    # The costs of the rows
    for name, message, changes in costs:
        yield Suspect(name, message, state.but(**changes).left())
    for margin, words in (
        (state.C, "−C t: C belongs to the bounds, the slopes are −t"),
        (t, "−1 whatever the label: they are −t"),
        (-1.0, "t: they are −t"),
    ):
        if np.ndim(margin) or abs(margin - 1) > 0.02:
            message = f"the labeled rows have the slopes {words}, since a margin is t f = 1."
            changed = state.but(margin=margin)
            yield Suspect("slopes of the labeled rows", message, changed.left())
            if abs(C_star - 1) > 0.02:
                both = changed.but(slopes=lambda delta, width: (-width, width))
                message = f"{message[:-1]}; those of the unlabeled rows are ±C* in place of ±1."
                yield Suspect("slopes of the rows", message, both.left())
    message = "labeled rows have the bounds 0 and C for β also where t = −1: there −C and 0."
    floor = np.where(t < 0, -state.C, 0.0)
    yield Suspect("box of the labeled rows", message, state.but(floor=floor).left())
    asked = state.asked()
    for last, name in ((U, "the labeled"), (~U, "the unlabeled")):
        order = np.argsort(last, kind="stable")
        message = (
            f"the costs are those of the rows in another order, {name} ones first: each belongs to"
            " its own row, as in costs[U] = …."
        )
        yield Suspect("order of the rows", message, state.but(t=t[order], delta=asked).left())
        back = state.beta.copy()
        back[:n][order] = state.beta[:n]
        message = f"beta is in another order than the rows of K, {name} ones first."
        yield Suspect("order of the rows", message, state.but(beta=back).left())

    # The slopes of the concave part
    decided = np.sign(asked)
    given = "the outputs ask for" if state.delta is None else "δ is given as"
    if np.any(asked):
        message = (
            f"the inner problem is solved for −δ: its slopes have the wrong sign. A row on the"
            f" positive side has δ = +C* ({given} {where(decided > 0)} so), which adds −δ f."
        )
        yield Suspect("sign of the linearization", message, state.but(delta=-asked).left())
        message = (
            "the inner problem is solved for δ = 0 in all rows: the concave part was never"
            " linearized, or δ not passed on."
        )
        yield Suspect("linearization missing", message, state.but(delta=0 * asked).left())
    for factor, name in ((2.0, "2C*"), (0.5, "C*/2"), (1 / C_star, "1, without the factor C*")):
        if abs(factor - 1) > 0.02:
            message = f"the inner problem is solved for δ = ±{name} in place of ±C*."
            left = state.but(delta=factor * asked).left()
            yield Suspect("factor of the linearization", message, left)
    if state.delta is None:
        for other, name in ((0.0, "s = 0"), (1.0, "the margin 1"), (abs(1 - state.s), "1 − |s|")):
            if abs(other - state.s) > 1e-9:
                message = (
                    f"δ was set where |f| > {other:g}, by {name}: rows are decided beyond |s| ="
                    f" {state.s:g}."
                )
                yield Suspect("end of the ramp", message, state.but(s=other).left())
        if np.any(decided < 0) and np.any(decided > 0):
            for side, name in ((1, "positive"), (-1, "negative")):
                one = np.where(decided == side, asked, 0.0)
                message = f"δ was set in rows on the {name} side only: both sides have a ramp."
                yield Suspect("one ramp of two", message, state.but(delta=one).left())

    # The weights and the doubled rows
    for factor, name in ((2.0, "half"), (0.5, "twice")):
        doubled = state.beta.copy()
        doubled[:n][U] *= factor
        message = (
            f"β is {name} of what it must be in the unlabeled rows: of the doubled data set, β_j is"
            " the sum of the two variables of row j, and the row occurs once in K."
        )
        yield Suspect("doubled rows", message, state.but(beta=doubled).left())
    swap = state.C / C_star
    if abs(swap - 1) > 0.01:
        message = (
            f"all conditions hold for {1 / swap:.3g} times C and {swap:.3g} times C*, exchanged"
        )
        both = state.but(C=C_star, C_star=state.C)
        if state.delta is not None:
            both = both.but(delta=swap * asked)
        yield Suspect("C and C* exchanged", f"{message}.", both.left())
        box = {"box": lambda delta, width: _shifted(delta, swap * width)}
        bounds = state.but(C=C_star, delta=asked, **box)
        yield Suspect("C and C* exchanged", f"{message} in the bounds, δ as it is.", bounds.left())
    u = int(U.sum())
    for factor, words in ((0.5, "C*/2"), (2.0, "2C*"), (1 / u, "C*/u")):
        message = f"the bounds of unlabeled rows are δ ∓ {words}: they are δ ∓ C*, where δ is ±C*."
        box = {"box": lambda delta, width, factor=factor: _shifted(delta, factor * width)}
        yield Suspect("width of the unlabeled box", message, state.but(**box).left())
    sizes = {"n": n, "l": int(state.L.sum()), "u": u, "C": state.C, "C*": C_star}
    largest = np.abs(state.beta[:n][state.L]).max() / state.C
    span = np.abs(beta_U).max() / C_star
    factors = [(largest, 1.0), (1.0, 2.0), (1.0, 0.5), (1.0, span), (largest, span)]
    factors += [(largest, largest), (1.0, swap), (1 / swap, 1.0)]
    factors += [(1.0, factor) for factor in (1 / u, sizes["l"] / u, u)]
    for pair in factors:
        changed = [is_clear(factor, sizes) for factor in pair]
        if not any(changed) or not all(c or f == 1.0 for f, c in zip(pair, changed, strict=True)):
            continue
        weights = {"C": pair[0] * state.C, "C_star": pair[1] * C_star}
        if state.delta is not None:
            weights["delta"] = pair[1] * state.delta
        named = [
            (factor, weight)
            for factor, weight, clear in zip(pair, ("C", "C*"), changed, strict=True)
            if clear
        ]
        words = [f"{ratio_words(factor, sizes)} times {weight}" for factor, weight in named]
        message = f"all conditions hold for {' and '.join(words)}."
        found = {name for factor, _ in named for name in ratio_names(factor, sizes)}
        mean = {"1/l", "1/u", "1/n"} & found
        kind = "mean for sum" if mean else f"another {named[0][1]}"
        yield Suspect(kind, message, state.but(**weights).left())
    for factor in (2.0, 0.5):
        message = (
            f"all conditions hold for {'2K' if factor > 1 else 'K/2'}: a factor ½ too few or many."
        )
        other = state.but(K=factor * state.K)
        yield Suspect("factor ½", message, other.left())


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
