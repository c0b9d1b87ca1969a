"""Mistakes in CCCP, by where they are made: what each leaves unexplained of an answer."""

import numpy as np

from s3vm_book.checks._cccp_state import shifted
from s3vm_book.checks._report import Suspect, is_clear, ratio_names, ratio_words, where


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


def suspects(state, tol):
    """Mistakes, with what they leave unexplained.

    Parameters
    ----------
    state : State
    tol : float
        Error of a row that counts as none.

    Yields
    ------
    Suspect
    """
    costs = [one for one in COSTS if one[0] != BOTH or abs(state.C_star - 1) > 0.02]
    yield from _left_out(state, costs, tol)
    yield from _of_the_solution(state)
    yield from _of_the_costs(state, costs)
    yield from _of_the_linearization(state)
    yield from _of_the_weights(state)


def _left_out(state, costs, tol):
    """The supervised machine."""
    n, U = len(state.t), state.U
    beta_U = state.beta[:n][U]
    if not beta_U.any() and state.feasible() and state.labeled_errors().max() <= tol:
        message = "β is 0 in all unlabeled rows: this is the supervised machine, as when they are"
        message += " left out, or C* is 0 in the costs"
        name = "unlabeled rows left out"
        if state.asked().any():
            words = []
            if state.but(delta=np.zeros(len(beta_U))).error() <= tol:
                words.append("δ is 0 in all rows")
            if state.delta is None and state.but(s=1.0).error() <= tol:
                words.append(f"δ is set beyond the margin 1: rows are decided beyond {state.s:g}")
            wrong = [one[1] for one in costs if state.but(**one[2]).error() <= tol]
            if state.delta is None and len(wrong) > 1:
                words.append("the costs of these rows have a wrong kink, slope or bound")
            else:
                words += [one[:-1] for one in wrong]
            if words:
                name = "unlabeled rows without effect"
                message += "".join(f"; or as when {one}" for one in words)
        yield Suspect(name, f"{message}.", 0.0)


def _of_the_solution(state):
    """Signs, labels and threshold of a solution that is right otherwise."""
    t, U, n = state.t, state.U, len(state.t)
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


def _of_the_costs(state, costs):
    """Bounds, kinks and slopes of the rows, and the rows' order."""
    t, U, n, C_star = state.t, state.U, len(state.t), state.C_star
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


def _of_the_linearization(state):
    """The slopes δ of the concave part."""
    asked, C_star = state.asked(), state.C_star
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


def _of_the_weights(state):
    """C, C*, the doubled rows, and the factor of K."""
    U, n, C_star, asked = state.U, len(state.t), state.C_star, state.asked()
    beta_U = state.beta[:n][U]
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
        box = {"box": lambda delta, width: shifted(delta, swap * width)}
        bounds = state.but(C=C_star, delta=asked, **box)
        yield Suspect("C and C* exchanged", f"{message} in the bounds, δ as it is.", bounds.left())
    u = int(U.sum())
    for factor, words in ((0.5, "C*/2"), (2.0, "2C*"), (1 / u, "C*/u")):
        message = f"the bounds of unlabeled rows are δ ∓ {words}: they are δ ∓ C*, where δ is ±C*."
        box = {"box": lambda delta, width, factor=factor: shifted(delta, factor * width)}
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
