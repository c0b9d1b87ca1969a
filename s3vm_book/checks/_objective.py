"""The objective of QN-S³VM and its smooth relatives: are value and gradient right?"""

import itertools

import numpy as np

from s3vm_book.checks._gradients import check_gradient
from s3vm_book.checks._report import (
    Report,
    best_factor,
    finite,
    ratio_names,
    ratio_words,
)
from s3vm_lib.objective import signed_labels

LABELED = {
    "the hinge": lambda t, f, p: np.maximum(0, 1 - t * f),
    "the squared hinge": lambda t, f, p: np.maximum(0, 1 - t * f) ** 2,
    "the logistic loss log(1 + exp(−t f))": lambda t, f, p: np.logaddexp(0, -t * f),
    "the logistic loss without its factor γ inside": lambda t, f, p: np.logaddexp(0, 1 - t * f),
    "log(1 + exp(γ t f − γ)), with the sign of the margin turned": (
        lambda t, f, p: np.logaddexp(0, -p * (1 - t * f)) / p
    ),
    "log(1 + exp(γ(1 + t f))), with the sign of the label turned": (
        lambda t, f, p: np.logaddexp(0, p * (1 + t * f)) / p
    ),
    "log(1 + exp(γ(1 − f))), without the label": lambda t, f, p: np.logaddexp(0, p * (1 - f)) / p,
    "log(1 + exp(−γ t f)), without the margin 1": lambda t, f, p: np.logaddexp(0, -p * t * f) / p,
    "log(1 + exp(γ(1 − y f))), with classes y = 0 and 1 for labels": (
        lambda t, f, p: np.logaddexp(0, p * (1 - (t > 0) * f)) / p
    ),
    "the squared error (1 − t f)²": lambda t, f, p: (1 - t * f) ** 2,
}
UNLABELED = {
    **{
        f"exp(−{name} f²)": lambda f, p, q=q: np.exp(-q * f * f)
        for name, q in {
            "1": 1.0,
            "½": 0.5,
            "2": 2.0,
            "3": 3.0,
            "5": 5.0,
            "6": 6.0,
            "9": 9.0,
        }.items()
    },
    "exp(−s|f|), not squared": lambda f, p: np.exp(-p * np.abs(f)),
    "exp(−f²/s)": lambda f, p: np.exp(-f * f / p),
    "exp(−f²/(2s²))": lambda f, p: np.exp(-f * f / (2 * p * p)),
    "exp(+s f²)": lambda f, p: np.exp(np.minimum(p * f * f, 700)),
    "the symmetric hinge": lambda f, p: np.maximum(0, 1 - np.abs(f)),
    "the symmetric hinge, squared": lambda f, p: np.maximum(0, 1 - np.abs(f)) ** 2,
    "1 − exp(−s f²)": lambda f, p: 1 - np.exp(-p * f * f),
    "f²": lambda f, p: f * f,
    "the loss for the label +1": lambda f, p: np.maximum(0, 1 - f),
}


def check_s3vm_objective(function, K, t, problem, *, b=0.0, scale=1.0, random_state=0, tol=1e-5):
    """Are these the value and the gradient of a smooth semi-supervised SVM?

    The function is called at a few random points. Its values are written as a sum of penalty,
    labeled and unlabeled losses: which of them is missing, has a wrong factor (½, a mean for a sum,
    λ for C) or is another loss follows from the weights. Then the gradient is compared with
    differences and taken apart in the same way.

    Parameters
    ----------
    function : callable
        From coefficients c of shape (n,) to (value, gradient), where f = K c + b; with ``b=None``
        from n + 1 numbers, the coefficients and then the offset.
    K : array-like of shape (n, n)
        Gram matrix.
    t : array-like of shape (n,)
        Labels −1 and +1, and 0 for unlabeled rows.
    problem : Problem
        What the value should be: losses, C, C* and bias. Of an objective with means,
        (1/l)Σℓ + (λ'/u)Σu + λ‖f‖², `Problem.penalties` gives C and C*; its ``scale`` is 2λ.
    b : float or None, default=0.0
        The offset, where it is fixed; None where it is the last variable.
    scale : float, default=1.0
        The value should be ``scale`` times J.
    random_state : int, default=0
        Seed of the points.
    tol : float, default=1e-5
        Relative error that counts as equal.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        For labels, shapes and losses that do not fit: the losses must be differentiable.
    """
    t = signed_labels(t, unlabeled=True)
    n = len(t)
    K = finite("K", K, (n, n))
    smooth_losses(problem)
    if not (t != 0).any() or not (t == 0).any():
        raise ValueError("t must have labeled and unlabeled rows")
    rng = np.random.default_rng(random_state)
    size = n if b is not None else n + 1
    spread = 0.7 / np.sqrt(max(np.mean(np.einsum("ij,ij->i", K, K)), 1e-300))  # outputs around 0.7
    points = spread * rng.standard_normal((10, size))
    if b is None:
        points[:, -1] = 0.3 * rng.standard_normal(10)
    split = (lambda x: (x, b)) if b is not None else (lambda x: (x[:-1], x[-1]))
    values = []
    for x in points:
        given = x.copy()
        result = function(given)
        if not np.array_equal(given, x):
            message = "the function changes its argument in place: c += … should be c = c + …."
            return Report("argument changed", message, {})
        if not (isinstance(result, tuple | list) and len(result) == 2):
            return Report("not a pair", "the function must return (value, gradient).", {})
        value = np.asarray(result[0])
        if value.size != 1:
            message = (
                f"the value must be one number, got the shape {value.shape}: a sum is missing."
            )
            return Report("value not a number", message, {})
        values.append(float(value.reshape(())))
    values = np.array(values)
    if not np.all(np.isfinite(values)):
        return Report("not finite", "the value is NaN or infinite at outputs around 1.", {})
    states = [(*split(x), K @ split(x)[0]) for x in points]
    rows = [_parts(problem, K, c, offset, Kc + offset, t, scale) for c, offset, Kc in states]
    expected = np.sum(rows, axis=1)
    numbers = {"value": float(np.max(np.abs(values - expected) / np.maximum(1, np.abs(expected))))}
    if numbers["value"] > tol:
        return _value_report(values, np.array(rows), states, K, t, problem, scale, tol, numbers)
    with np.errstate(all="ignore"):
        far = function(points[0] * 1e3)[0]
    if not np.isfinite(far):
        message = (
            "far from 0 the value overflows: log(1 + exp(v)) is np.logaddexp(0, v), and its slope"
            " scipy.special.expit(v)."
        )
        return Report("overflow", message, numbers)

    def part(k):
        def value(x):
            c, offset = split(x)
            return _parts(problem, K, c, offset, K @ c + offset, t, scale)[k]

        return value

    names = ("the penalty", "the labeled term", "the unlabeled term")

    # The value is right, so that the gradient is judged by the problem: also in single precision.
    def gradient(x):
        return np.asarray(function(x.copy())[1])

    x = points[1]
    report = check_gradient(
        lambda z: sum(part(k)(z) for k in range(3)),
        gradient,
        x,
        parts={name: part(k) for k, name in enumerate(names)},
        blocks=None if b is not None else {"c": slice(0, n), "the offset": n},
        tol=max(tol, 1e-5),
    )
    numbers |= report.numbers
    if report.mistake in ("gradient", "regularizer"):
        report = _gradient_report(gradient, points[1:5], split, K, t, problem, scale, report)
    if report:
        return Report(None, "Value and gradient are those of the problem.", numbers)
    return Report(f"gradient: {report.mistake}", report.message, numbers)


def smooth_losses(problem):
    """A ValueError for losses with kinks, or without an unlabeled one."""
    for loss in (problem.labeled_loss, problem.unlabeled_loss):
        if loss is None or not loss.differentiable:
            name = None if loss is None else loss.name
            raise ValueError(f"problem must have two differentiable losses, got {name!r}")


def _parts(problem, K, c, b, f, t, scale):
    """Penalty, labeled and unlabeled term of the problem."""
    penalty = 0.5 * c @ K @ c + (0.5 * b * b if problem.bias == "regularized" else 0.0)
    return [scale * value for value in (penalty, *problem.data_terms(f, t))]


def sizes_of(problem, t):
    """Numbers that get into factors."""
    return {
        "l": np.sum(t != 0),
        "u": np.sum(t == 0),
        "n": len(t),
        "C": problem.C,
        "C*": problem.C_star,
        "γ": problem.labeled_loss.p,
        "l/u": np.sum(t != 0) / np.sum(t == 0),
        "u/l": np.sum(t == 0) / np.sum(t != 0),
        "l/n": np.mean(t != 0),
        "u/n": np.mean(t == 0),
    }


NAMES = ("penalty", "labeled term", "unlabeled term")


def _value_report(values, rows, states, K, t, problem, scale, tol, numbers):
    """A wrong value: of which terms would it be the sum?"""
    size = np.maximum(1, np.abs(values)).max()
    sizes = sizes_of(problem, t)
    p, s = problem.labeled_loss.p, problem.unlabeled_loss.p
    L, U = t != 0, t == 0

    def fit(A):
        """Weights of the columns of A, a constant last, and the largest error."""
        A = np.column_stack([A, np.ones(len(A))])
        unit = np.maximum(np.abs(A).max(axis=0), 1e-300)
        weights = np.linalg.lstsq(A / unit, values, rcond=1e-12)[0]
        return weights / unit, np.abs(A / unit @ weights - values).max()

    weights, error = fit(rows)
    if error <= tol * size:
        return _weights_report(weights, rows, sizes, numbers)
    outputs = {
        "": lambda c, b, Kc: Kc + b,
        "f = K c without the offset": lambda c, b, Kc: Kc,
        "f = K c − b": lambda c, b, Kc: Kc - b,
        "f = K (t c), labels in the sum though c carries them": lambda c, b, Kc: K @ (t * c) + b,
        "f = c, without K": lambda c, b, Kc: c + b,
    }
    penalties = {
        "": lambda c, b, Kc: c @ Kc,
        "cᵀc in place of cᵀKc": lambda c, b, Kc: c @ c,
        "‖Kc‖² in place of cᵀKc": lambda c, b, Kc: Kc @ Kc,
        "√(cᵀKc), without the square": lambda c, b, Kc: np.sqrt(max(c @ Kc, 0.0)),
        "the penalty with b²": lambda c, b, Kc: c @ Kc + b * b,
        "the sum of |c|": lambda c, b, Kc: np.abs(c).sum(),
    }
    labeled = {"": lambda f: problem.labeled_loss.value(t[L], f[L]).sum()}
    labeled |= {
        f"{name} in place of the labeled loss": lambda f, v=v: v(t[L], f[L], p).sum()
        for name, v in LABELED.items()
    }
    labeled["the labeled loss over all rows, the unlabeled ones with t = 0"] = lambda f: (
        problem.labeled_loss.value(np.where(L, t, 0.0), f).sum()
    )
    for label in (-1.0, 1.0):
        y = np.where(L, t, label)
        labeled[f"the labeled loss over all rows, the unlabeled ones as {label:+g}"] = (
            lambda f, y=y: problem.labeled_loss.value(y, f).sum()
        )
    unlabeled = {"": lambda f: problem.unlabeled_loss.value(f[U]).sum()}
    unlabeled |= {
        f"{name} in place of the unlabeled loss": lambda f, v=v: v(f[U], s).sum()
        for name, v in UNLABELED.items()
    }
    unlabeled["the unlabeled loss over all rows"] = lambda f: problem.unlabeled_loss.value(f).sum()
    unlabeled["the unlabeled loss over the labeled rows"] = lambda f: problem.unlabeled_loss.value(
        f[L]
    ).sum()
    unlabeled["the unlabeled loss at the mean output"] = lambda f: float(
        problem.unlabeled_loss.value(np.array([f[U].mean()]))[0]
    )
    choices = sorted(
        itertools.product(outputs, penalties, labeled, unlabeled),
        key=lambda names: sum(name != "" for name in names),
    )
    sums = {}
    for names in choices[1:]:
        if sum(name != "" for name in names) > 2:
            break
        o, pen, lab, unl = names
        for kind, key, table in (("l", lab, labeled), ("u", unl, unlabeled)):
            if (kind, o, key) not in sums:
                sums[kind, o, key] = np.array([table[key](outputs[o](*one)) for one in states])
        if ("p", pen) not in sums:
            sums["p", pen] = np.array([penalties[pen](*one) for one in states])
        A = np.column_stack([sums["p", pen], sums["l", o, lab], sums["u", o, unl]])
        weights, error = fit(A)
        if error <= tol * size and np.all(
            np.abs(weights[:3]) * np.abs(A).max(axis=0) > 1e-3 * size / 1e3
        ):
            found = " and ".join(name for name in names if name)
            kind = (
                "outputs"
                if o
                else "penalty"
                if pen
                else "labeled loss"
                if lab
                else "unlabeled loss"
            )
            return Report(f"value: {kind}", f"the value is that with {found}.", numbers)
    losses = problem.labeled_loss, problem.unlabeled_loss
    for k, name in (
        (1, "sharpness γ of the labeled loss"),
        (0, "exponent s of the unlabeled loss"),
    ):
        if losses[1 - k].parameter is None:
            continue

        def error_at(q, k=k):
            other = type(losses[1 - k])(losses[1 - k].name, q)
            terms = [
                (other.value(t[L], (Kc + b)[L]) if k else other.value((Kc + b)[U])).sum()
                for _, b, Kc in states
            ]
            return fit(np.column_stack([np.delete(rows, 2 - k, axis=1), terms]))[1]

        q, error = best_factor(error_at, 0.02, 200, 81)
        if error <= tol * size:
            message = f"the value is that with {q:.4g} for the {name}, {losses[1 - k].p:g}."
            kind = "labeled loss" if k else "unlabeled loss"
            return Report(f"value: {kind}", message, numbers)
    k = int(np.argmax(np.abs(values - rows.sum(axis=1))))
    message = (
        f"the value is not a sum of penalty and losses of the problem, with whatever factors: at a"
        f" random point it is {values[k]:.6g}, and should be {rows[k].sum():.6g} ="
        f" {rows[k][0]:.4g} (penalty) + {rows[k][1]:.4g} (labeled) + {rows[k][2]:.4g} (unlabeled)."
    )
    return Report("value", message, numbers)


def _weights_report(weights, rows, sizes, numbers):
    """The terms are right, their factors are not."""
    if np.all(np.abs(weights[:3] - 1) < 1e-3):
        message = f"the value is off by the constant {weights[3]:.4g}."
        return Report("value: constant", message, numbers)
    ratios = weights[:3]
    if np.ptp(ratios) < 1e-3 * abs(ratios).max():
        words = ratio_words(ratios[0], sizes)
        if ratios[0] < 0:
            message = f"the value is {words} times what it should be: it is to be minimized."
            return Report("value: sign", message, numbers)
        message = f"the value is {words} times what it should be: another scale (2λ, 1/C or l)."
        return Report("value: scale", message, numbers)
    words = []
    for name, ratio in zip(NAMES, ratios, strict=True):
        if abs(ratio - 1) > 1e-3:
            times = "0" if abs(ratio) < 1e-3 else ratio_words(ratio, sizes)
            words.append(f"the {name} {times} times")
    wrong = [k for k in range(3) if abs(ratios[k] - 1) > 1e-3]
    kind = _kind(ratios, wrong, sizes)
    message = f"the value has {' and '.join(words)} in place of once. {_advice(kind)}"
    return Report(f"value: {kind}", message.strip(), numbers)


def _kind(ratios, wrong, sizes):
    """A name for wrong factors of penalty, labeled and unlabeled term."""
    first = ratios[wrong[0]]
    if any(abs(ratios[k]) < 1e-3 for k in wrong):
        k = next(k for k in wrong if abs(ratios[k]) < 1e-3)
        return f"{NAMES[k]} missing"
    if any(ratios[k] < 0 for k in wrong):
        k = next(k for k in wrong if ratios[k] < 0)
        return f"sign of the {NAMES[k]}"
    if (wrong == [0] and abs(first - 2) < 1e-2) or (wrong == [0] and abs(first - 0.5) < 1e-2):
        return "factor ½ of the penalty"
    if 1 not in wrong and abs(ratios[0] * ratios[2] - 1) < 5e-3:
        return "λ and λ' exchanged"
    counts = {f"{a}{b}" for a in ("", "1/") for b in "lun"} | {"l/u", "u/l", "l/n", "u/n"}
    if any(counts & set(ratio_names(ratios[k], sizes)) for k in wrong):
        return "mean and sum"
    if any("C" in name for k in wrong for name in ratio_names(ratios[k], sizes)):
        return "λ for C"
    return f"factor of the {NAMES[wrong[0]]}"


def _advice(kind):
    return {
        "mean and sum": "J has sums; means, (1/l)Σ, belong to λ and λ', with C = 1/(2λl).",
        "λ for C": "C multiplies the losses, λ the penalty: C = 1/(2λl), C* = λ'/(2λu).",
        "factor ½ of the penalty": "J has ½‖f‖², the form with λ has λ‖f‖²: C = 1/(2λl).",
    }.get(kind, "")


def _gradient_report(gradient, points, split, K, t, problem, scale, report):
    """A wrong gradient: which formula gives it, at all of the points?"""
    found, forms = [], {}
    for x in points:
        c, b = split(x)
        found.append(gradient(x)[: len(t)])
        for kind, words, form in _gradients(c, b, K, t, problem):
            forms.setdefault((kind, words), []).append(scale * form)
    size = 1e-5 * max(1.0, np.abs(found).max())
    for (kind, words), form in forms.items():
        if np.abs(np.array(found) - form).max() <= size:
            return Report(kind, f"it is {words}.", report.numbers)
    return report


def _gradients(c, b, K, t, problem):
    """Wrong gradients in c, before the scale: what is wrong, in words, and the array."""
    Kc = K @ c
    L, U = t != 0, t == 0
    f = Kc + b
    a = problem.output_gradient(f, t)
    a_L, a_U = np.where(L, a, 0.0), np.where(U, a, 0.0)
    yield "factor K", "a + c: the factor K before the bracket is missing, ∇ = K(a + c)", a + c
    yield "factor K", "a + K c: the part of the losses lacks the factor K, ∂f/∂c = K", a + Kc
    yield "factor K", "K a + c: the derivative of ½cᵀKc is K c, not c", K @ a + c
    yield "factor K", "K(a + K c), one K too many in the penalty", K @ (a + Kc)
    yield "factor K", "K K(a + c), one K too many", K @ (K @ (a + c))
    yield "factor K", "the labeled part that lacks the factor K", a_L + K @ (a_U + c)
    yield "factor K", "the unlabeled part that lacks the factor K", a_U + K @ (a_L + c)
    lacks = "the slope of the labeled loss that lacks its label t"
    yield "inner derivative", lacks, K @ (t * a_L + a_U + c)
    for offset, words in ((0.0, "f = K c, without the offset"), (-b, "f = K c − b")):
        other = problem.output_gradient(Kc + offset, t)
        yield "outputs", f"that at {words}, unlike the value", K @ (other + c)
    if problem.unlabeled_loss.name == "gaussian":
        s = problem.unlabeled_loss.p
        bump = problem.C_star * np.exp(-s * f**2) * U
        for words, slope in (
            ("−2s exp(−s f²): the inner derivative f is missing", -2 * s * bump),
            ("−2f exp(−s f²): the factor s is missing", -2 * f * bump),
            ("−s f exp(−s f²): the factor 2 is missing", -s * f * bump),
            ("exp(−s f²): the inner derivative −2 s f is missing", bump),
            ("−exp(−s f²): the inner derivative −2 s f is missing", -bump),
        ):
            words = f"that of unlabeled rows with the slope {words}"
            yield "inner derivative", words, K @ (a_L + slope + c)
        for q in (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 6.0):
            slope = -2 * q * f * problem.C_star * np.exp(-q * f**2) * U
            words = f"that of exp(−{q:g} f²), unlike the value, which has s = {s:g}"
            yield "exponent", words, K @ (a_L + slope + c)
