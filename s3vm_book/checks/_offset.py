"""The offset of a support vector machine whose α is right: from which rows is it?"""

import numpy as np

from s3vm_book.checks._conditions import best_offset, largest_error, row_errors
from s3vm_book.checks._report import MARKEDLY, Report, Suspect, accuse, where


def offset_report(out, alpha, b, t, upper, tol, numbers):
    """A report on an offset that is wrong while α is right; None where it is α that is not."""
    best, error = best_offset(out, alpha, t, upper)
    if error > tol:
        return None
    target = t - out  # the offset with which a row stands on its margin
    support = alpha > 1e-5 * np.minimum(upper, alpha.max())
    bound = alpha > (1 - 1e-5) * upper
    free = support & ~bound
    errors = row_errors(alpha, upper, t * (out + b) - 1)
    if free.any() and target[free].min() - 1e-9 <= b <= target[free].max() + 1e-9:
        message = (
            f"b = {b:.4g} is from the free rows, 0 < α < C, as it should be, but these ask for"
            f" offsets from {target[free].min():.4g} to {target[free].max():.4g}: alpha is not"
            f" exact enough, margins are off by up to {errors.max():.3g}. The loop ended early."
        )
        return Report("stopped early", message, numbers)
    limit = min(tol, errors.max() / MARKEDLY)
    right = f"with these α the offset is {best:.4g}"
    use = (
        "average t_i − F_i over the free rows, 0 < α_i < C, alone"
        if free.any()
        else "no row is free here: take the middle of the offsets that all rows allow"
    )

    def is_b(value):
        """0 where b is this number, for `accuse`."""
        return 0.0 if abs(b - value) <= 1e-4 * max(1.0, abs(value)) else np.inf

    def mean(rows, values=target):
        return values[rows].mean() if rows.any() else np.nan

    def suspects():
        message = (
            f"b = {b:.4g}, but {right}: the decision is F + b, with b = t_i − F_i on the margin,"
            " not F − b; or the two classes are exchanged."
        )
        turned = largest_error(out, alpha, -b, t, upper) <= limit
        yield Suspect("sign of the threshold", message, 0.0 if turned else np.inf)
        if b == 0:
            message = f"b is 0, but {right}: it was never computed; {use}."
            yield Suspect("threshold forgotten", message, 0.0)
        at_C = "the rows at the bound C"
        all_of_them = "all support vectors, those at the bound C included"
        inside = (alpha > 0) & (alpha < upper)
        positive, negative = out[t > 0], out[t < 0]
        hard = -(positive.min() + negative.max()) / 2 if len(positive) and len(negative) else np.nan
        for source, value in (
            (all_of_them, mean(support)),
            (all_of_them, mean(alpha > 0)),
            (at_C, mean(bound)),
            (at_C, mean(alpha == upper)),
            ("the rows that are no support vectors", mean(~support)),
            (
                "the rows with 0 < α < C, some of which are at a bound but for rounding",
                mean(inside),
            ),
            ("all rows", target.mean()),
            ("the support vectors of the positive class", mean(support & (t > 0))),
            ("the support vectors of the negative class", mean(support & (t < 0))),
            ("the two closest rows of the classes, which is the formula without slack", hard),
        ):
            for sign, note in ((1, ""), (-1, ", and with the wrong sign")):
                message = f"b = {b:.4g} is taken from {source}{note}, but {right}: {use}."
                yield Suspect("threshold from the wrong rows", message, is_b(sign * value))
        exact = np.minimum(np.abs(target - b), np.abs(target + b)) <= 1e-6 * (1 + abs(b))
        if exact.any():
            row = int(np.argmax(exact))
            state = "0" if not support[row] else "C" if bound[row] else f"{alpha[row]:.3g}"
            message = f"b = ±(t − F) of row {row}, whose α is {state}; {right}: {use}."
            yield Suspect("threshold from the wrong rows", message, 0.0)
        some = free if free.any() else support
        message = (
            f"b = {b:.4g} is the mean of 1 − F_i, but {right}: on its margin t_i(F_i + b) = 1."
        )
        yield Suspect("label forgotten in the threshold", message, is_b(mean(some, 1 - out)))
        for rows in (some, inside):
            value, is_sum = target[rows].sum(), f"b = {b:.4g} is the sum over the free rows"
            message = f"{is_sum} divided by n, but {right}: divide by their number."
            left = min(is_b(value / len(t)), is_b(-value / len(t)))
            yield Suspect("threshold averaged over all", message, left)
            message = f"{is_sum}, but {right}: divide by their number."
            left = min(is_b(value), is_b(-value))
            yield Suspect("threshold summed, not averaged", message, left)
        for factor, name in ((2.0, "half"), (0.5, "twice")) if free.any() else ():
            message = f"b = {b:.4g} is {name} of what it must be; {right}."
            left = largest_error(out, alpha, factor * b, t, upper)
            yield Suspect(f"threshold {name}", message, left)

    report = accuse(suspects(), limit, numbers)
    if report is not None:
        return report
    message = (
        f"alpha is optimal, but b = {b:.4g} is not: {right}; {use}. Most off:"
        f" {where(errors == errors.max())}, by {errors.max():.3g}. A b that was updated along the"
        " way must be computed again at the end."
    )
    return Report("threshold", message, numbers)
