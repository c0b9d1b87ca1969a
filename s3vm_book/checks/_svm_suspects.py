"""Mistakes in an SMO, by where they are made: what each leaves unexplained of an answer."""

import numpy as np

from s3vm_book.checks._conditions import FEASIBLE, unexplained
from s3vm_book.checks._report import Suspect, best_factor, is_clear, ratio_names, ratio_words, where
from s3vm_lib.objective import svm_infeasibility


def suspects(K, alpha, b, t, upper, whole, tol):
    """Mistakes in α, one after the other, with what they leave unexplained.

    Parameters
    ----------
    K, alpha, b, t
        As `check_svm` takes them.
    upper : ndarray of shape (n,)
        Upper bounds of α.
    whole : bool
        Whether α came as integers.
    tol : float
        Error of a row that counts as none.

    Yields
    ------
    Suspect
    """
    yield from _beyond_doubt(K, alpha, t, upper, whole, tol)
    changes = _of_the_labels(K, alpha, t, upper, tol)
    changes += _of_the_problem(K, alpha, b, t, upper, tol)
    for name, message, change in changes:
        yield Suspect(
            name, message, unexplained(**{"K": K, "alpha": alpha, "upper": upper} | change, t=t)
        )
    if alpha.min() < 0:
        yield from _outside_the_box(K, alpha, b, t, upper)
    yield from _of_a_factor(K, alpha, t, upper)


def _sizes(t, upper):
    """The numbers that a factor may be."""
    return {"n": len(t), "C": upper[0] if np.ptp(upper) == 0 else 0.0}


def _beyond_doubt(K, alpha, t, upper, whole, tol):
    """What the numbers show."""
    out = K @ (t * alpha)
    target = t - out
    signed = np.abs(t * (out + (target.min() + target.max()) / 2) - 1).max() <= tol
    for name, message, seen in (
        (
            "no step taken",
            "alpha is 0 everywhere: no step was taken, or each was cut to length 0.",
            not alpha.any(),
        ),
        (
            "all at the bound",
            "alpha is C everywhere: each step went up to the wall. Is the sign of its length"
            " right?",
            np.all(alpha >= (1 - 1e-9) * upper),
        ),
        (
            "integer array",
            "alpha holds integers, every step was rounded: start from np.zeros(n).",
            whole,
        ),
        (
            "box: no clipping",
            f"every row stands exactly on its margin, α from {alpha.min():.3g} to"
            f" {alpha.max():.3g}: these α solve linear equations. After each step clip to the box,"
            " 0 ≤ α ≤ C.",
            signed,
        ),
    ):
        if seen:
            yield Suspect(name, message, 0.0)


def _of_the_labels(K, alpha, t, upper, tol):
    """Labels and signs: with what the answer would be right."""
    out = K @ (t * alpha)
    changes = [
        (
            "labels twice",
            "alpha is negative where t is: these are the signed β = t α; pass t * beta.",
            dict(alpha=t * alpha),
        ),
        (
            "sign",
            "minus alpha would be right: the dual was minimized in place of maximized.",
            dict(alpha=-alpha),
        ),
        (
            "labels twice",
            "K[i, j] is t_i t_j k(x_i, x_j) already, and the labels are multiplied in a second"
            " time: either K without labels and F = K @ (t * alpha), or Q with them and Q @ alpha.",
            dict(K=K * np.outer(t, t)),
        ),
    ]
    # Where outputs that stay 0 would do as well, outputs have no say.
    if unexplained(K, alpha, t, upper, F=0 * out) > tol:
        changes += [
            (
                "labels forgotten in the outputs",
                "the outputs were K @ alpha: the function is Σ t_j α_j k(x_j, ·), with the labels.",
                dict(F=K @ alpha),
            ),
            (
                "labels twice",
                "the outputs were t_i times F_i before they met t_i again in the margin.",
                dict(F=t * out),
            ),
            (
                "sign of the gradient update",
                "alpha is optimal for minus its outputs: F += Δβ_i K[:, i] + Δβ_j K[:, j].",
                dict(F=-out),
            ),
        ]
    return changes


def _of_the_problem(K, alpha, b, t, upper, tol):
    """Another offset, ½, box, C, loss or order: with what the answer would be right."""
    n, C, largest = len(t), upper[0], np.max(alpha / upper)
    everywhere = np.full(n, np.inf)
    changes = [
        (
            "equality constraint",
            f"Σ t α = {t @ alpha:.3g} in place of 0, and alpha is optimal for a machine without"
            " offset: the equality constraint was forgotten. Two variables must move together.",
            dict(b=0.0, total=False),
        ),
        (
            "factor ½",
            "alpha is optimal for 2K: the ½ of ½βᵀKβ was left out. The gradient of ½βᵀKβ is Kβ,"
            " and a step is (E_i − E_j)/(K_ii + K_jj − 2K_ij).",
            dict(K=2 * K),
        ),
        (
            "factor ½",
            "alpha is optimal for K/2: the factor ½ was applied twice.",
            dict(K=K / 2),
        ),
    ]
    if abs(t @ alpha - b) < tol:
        message = f"Σ t α = {t @ alpha:.3g} = b: alpha is optimal for a penalized offset, ½b²."
        changes.append(("offset penalized", message, dict(K=K + 1, b=0.0, total=False)))
    for sign, shift in (("+", 1.0), ("−", -1.0)):
        message = f"alpha is optimal for K {sign} 1 and Σ t α free."
        changes.append(("offset penalized", message, dict(K=K + shift, b=0.0, total=False)))
    if largest > 1 + FEASIBLE:
        message = (
            f"α reaches {largest:.3g} C and is optimal without the upper bound, or for a larger C:"
            " the hard-margin machine. Clip to C as well as to 0."
        )
        changes.append(("box: upper bound C missing", message, dict(upper=everywhere)))
    if is_clear(largest, _sizes(t, upper)):
        changes.append((*_other_C(largest, alpha, t, upper), dict(upper=largest * upper)))
    if np.ptp(upper) == 0:
        for extra, words in ((1 / C, "1/C"), (0.5 / C, "1/(2C)")):
            message = (
                f"alpha is optimal for K + {words} on the diagonal and no upper bound: the squared"
                " hinge. The hinge has 0 ≤ α ≤ C and K as it is."
            )
            ridge = dict(K=K + extra * np.eye(n), upper=everywhere)
            changes.append(("squared hinge", message, ridge))
    elif np.all([np.any(t == side) and np.ptp(upper[t == side]) == 0 for side in (-1, 1)]):
        message = "alpha is optimal with the two C exchanged between the classes."
        swapped = np.where(t > 0, upper[t < 0][0], upper[t > 0][0])
        changes.append(("C of the classes exchanged", message, dict(upper=swapped)))
    orders = [(np.arange(n)[::-1], "in reverse order")]
    for sign, first in ((1, "negative"), (-1, "positive")):
        orders.append((np.argsort(sign * t, kind="stable"), f"sorted by class, {first} ones first"))
    for order, words in orders:
        message = f"alpha belongs to the rows {words}."
        changes.append(("order of the rows", message, dict(alpha=alpha[np.argsort(order)])))
    return changes


def _outside_the_box(K, alpha, b, t, upper):
    """Answers with a negative α."""
    out = K @ (t * alpha)
    if alpha.min() < 0:
        for values, note in ((alpha, ""), (t * alpha, ", given as signed variables")):
            squares = np.abs(t * (K @ (t * values) + b) - 1 + values / upper).max()
            message = (
                f"each margin is 1 − α/C, also where α is negative{note}: these α solve the linear"
                " equations of the least squares SVM. The hinge asks for inequalities."
            )
            yield Suspect("least squares SVM", message, squares)
        message = (
            f"α is negative in {where(alpha < -FEASIBLE * np.abs(alpha).max())} and these rows"
            " stand on their margins: the lower bound 0 is missing. Clip to 0 as well as to C."
        )
        low = np.where(alpha < (1 - 1e-5) * upper, np.abs(t * (out + b) - 1), 0.0)
        share = low.max() if svm_infeasibility(t * alpha, t, upper)[1] <= FEASIBLE else np.inf
        yield Suspect("box: lower bound 0 missing", message, share)


def _of_a_factor(K, alpha, t, upper):
    """A factor of the kernel's width, of K or of α, that has to be searched for."""
    n, sizes = len(t), _sizes(t, upper)

    def left(K=K, alpha=alpha):
        return unexplained(K, alpha, t, upper)

    if K.min() > 0 and np.allclose(np.diagonal(K), 1) and K.min() < 1 - 1e-9:
        distance = np.sqrt(np.maximum(-np.log(K), 0))
        factor, error = best_factor(lambda p: left(K=np.exp(-p * distance)), 0.1, 10, 11)
        message = f"alpha is optimal for exp(−{factor:.3g} √γ ‖x − z‖): the distance is squared."
        yield Suspect("kernel: distance not squared", message, error)
        error = best_factor(lambda p: left(K=p * np.log(K)), 1e-3, 1e3, 61)[1]  # −‖x − z‖²
        message = "alpha is optimal for xᵀz, the linear kernel, in place of exp(−γ‖x − z‖²)."
        yield Suspect("kernel: linear", message, error)
        factor, error = best_factor(lambda p: left(K=K**p), 1e-3, 1e3, 61)
        message = (
            f"alpha is optimal for the width {ratio_words(factor, {'n': n})} γ in place of γ: is it"
            " exp(−γ‖x − z‖²), or did σ = γ or γ = 1/(2σ²) come in between?"
        )
        if is_clear(factor, sizes, 1e-3):
            yield Suspect("kernel width", message, error)
    factor, error = best_factor(lambda p: left(K=p * K), 1e-3, 1e3, 61)
    message = f"alpha is optimal for {ratio_words(factor, {'n': n})} times K: another scale of rows"
    if is_clear(factor, sizes, 1e-3) and not {"½", "2"} & set(ratio_names(factor, {}, 0.02)):
        yield Suspect("kernel scale", f"{message} or kernel.", error)
    factor, error = best_factor(lambda p: left(alpha=alpha / p), 1e-4, 1e4, 81)
    message = f"alpha is {ratio_words(factor, sizes)} times the solution: it was scaled at the end."
    if is_clear(factor, sizes, 1e-4):
        yield Suspect("alpha scaled", message, error)


def _other_C(ratio, alpha, t, upper):
    """Name and message for an α that is optimal for another C."""
    sizes = _sizes(t, upper)
    names = ratio_names(ratio, sizes)
    name, hint = "λ for C", "λ‖f‖² + mean loss has C = 1/(2λn), λ/2 ‖f‖² + Σ has C = 1/λ"
    means = {"1/(2Cn)": (2.0, "λ‖f‖²"), "1/(Cn)": (1.0, "λ/2 ‖f‖²")}
    taken = [
        f"it is {form}, C was taken for the λ of {penalty} + mean loss"
        for form, (factor, penalty) in means.items()
        if not names and abs(ratio * factor * len(t) * sizes["C"] ** 2 - 1) <= 5e-3
    ]
    if taken:
        hint = taken[0]
    elif {"½", "2"} & set(names):
        name = "C/2" if "½" in names else "2C"
        hint = "½‖f‖² + C Σ hinge has the bound C, not C/2 or 2C"
    elif {"n", "1/n"} & set(names):
        name, hint = "mean for sum", "C multiplies the sum of the losses, not their mean"
    elif not names:
        name, hint = "another C", "look where the bound comes from"
    value = f"{alpha.max():.4g}" if np.ptp(upper) == 0 else f"{ratio:.3g} times yours"
    words = ratio_words(ratio, sizes)
    return name, f"alpha is optimal for C = {value}, {words} times the C of the problem: {hint}."
