"""Is this the gradient of that function, and if not, of what is it?"""

import itertools

import numpy as np

from s3vm_book.checks._report import Report, ratio_words, where
from s3vm_lib.checks import numerical_gradient


def check_gradient(f, gradient, x, *, parts=None, blocks=None, tol=1e-5):
    """Is this the gradient of f at x, and if not, what is missing?

    The gradient is compared with central differences. One that differs is written, by least
    squares, as a sum of the gradients of the parts of f: a part with the coefficient 0 was left
    out, one with −1 has the wrong sign, one with 2 a factor too many.

    Parameters
    ----------
    f : callable
        From an array of the shape of x to a float; smooth near x.
    gradient : callable or array-like
        From x to the gradient, or the gradient at x.
    x : array-like
        Point with no zero, kink or symmetry that could hide a mistake: a random one.
    parts : dict of str to callable, default=None
        The terms of f by name, with their signs: they add up to f.
    blocks : dict of str to index, default=None
        Names for parts of x, such as ``{"coefficients": slice(0, -1), "offset": -1}``.
    tol : float, default=1e-5
        Difference that counts as equal, relative to the largest entry of the differences.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        Where f is not a finite number, not the same when called twice, or not smooth at x, where
        parts do not add up to f, and for x that is not numeric.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_book.checks import check_gradient
    >>> terms = {"penalty": lambda w: w @ w / 2, "loss": lambda w: np.exp(w).sum()}
    >>> check_gradient(lambda w: w @ w / 2 + np.exp(w).sum(), np.exp, [0.3, -0.8, 0.5], parts=terms)
    missing term: the gradient has penalty 0 times in place of once.
    """
    x = np.array(x, dtype=float)
    value = _number(f, x)
    if _number(f, x) != value:
        raise ValueError("f must give the same value twice at the same x, got two")
    d, doubt = differences(lambda z: _number(f, z), x)
    size = max(np.abs(d).max(initial=0.0), 1e-8)
    if doubt.max(initial=0.0) > 0.3 * tol * size:
        raise ValueError(
            "f must be smooth near x, but differences with other steps disagree in"
            f" {_places(doubt > 0.3 * tol * size, blocks)}: choose another x, away from kinks, or"
            " compute f in double precision"
        )
    g = np.asarray(gradient(x.copy()) if callable(gradient) else gradient)
    if g.dtype.kind not in "iufb":
        return Report("not numeric", f"the gradient must be numeric, got {g.dtype}.")
    if g.shape != x.shape:
        hint = (
            " A sum over all entries?"
            if g.size == 1
            else " One axis too many?" * (g.size == x.size)
        )
        return Report(
            "shape", f"the gradient must have the shape {x.shape} of x, got {g.shape}.{hint}"
        )
    if not np.all(np.isfinite(g)):
        return Report(
            "not finite", f"the gradient is NaN or infinite in {_places(~np.isfinite(g), blocks)}."
        )
    g = g.astype(float)
    off = np.abs(g - d)
    numbers = {"error": float(off.max() / size)}
    bad = off > tol * size
    if not bad.any():
        message = f"The gradient agrees with differences to {max(numbers['error'], 1e-12):.0e}."
        return Report(None, message, numbers)
    explained = _explained(g, d, tol * size)
    if explained:
        return Report(*explained, numbers)
    if parts is not None:
        slopes = {name: differences(part, x)[0] for name, part in parts.items()}
        if np.abs(sum(slopes.values()) - d).max() > max(tol, 1e-6) * size:
            raise ValueError(f"parts must add up to f, got {list(parts)}, which do not")
        found, points = [g], []
        if callable(gradient):  # where gradients lie in a plane, one of them is any sum of parts
            rng = np.random.default_rng(0)
            points = [x * rng.uniform(0.3, 1.7, x.shape) for _ in range(3)]
            found += [np.asarray(gradient(z.copy()), dtype=float) for z in points]
            for name, part in parts.items():
                more = [differences(part, z)[0] for z in points]
                slopes[name] = np.concatenate([np.ravel(one) for one in (slopes[name], *more)])
        g_all = np.concatenate([np.ravel(one) for one in found])
        explained = explain_by_parts(g_all, slopes, tol * size, {"n": x.size})
        if explained:
            return Report(*explained, numbers)
    if blocks is not None:
        for name, index in blocks.items():
            inside = np.zeros(x.shape, bool)
            inside[index] = True
            if bad[inside].any() and not bad[~inside].any():
                words = _explained(g[inside], d[inside], tol * size)
                if words is None and not g[inside].any():
                    words = "missing term", "it is 0."
                tail = f" {words[1]}" if words else f" Worst is {_worst(g, d, off)}."
                message = f"only the entries of {name} are wrong.{tail}"
                return Report(f"{words[0]}, {name}" if words else name, message, numbers)
    multiple = x[bad] @ (d - g)[bad] / max(x[bad] @ x[bad], 1e-300)
    if bad.sum() > 1 and np.abs((d - g)[bad] - multiple * x[bad]).max() <= tol * size:
        message = (
            f"what is missing is {multiple:.4g} x"
            + ("" if bad.all() else f" in {_places(bad, blocks)}")
            + ": the derivative of the regularizer, or a wrong factor before it."
        )
        return Report("regularizer", message, numbers)
    share = f"{_places(bad, blocks)} of {x.size}" if not bad.all() else "all entries"
    message = f"it differs in {share}; worst is {_worst(g, d, off)}."
    return Report("gradient", message, numbers)


def differences(f, x):
    """Gradient by differences: the step that agrees best with the next, and how well."""
    steps = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5)
    found = [numerical_gradient(f, x, step) for step in steps]
    off = [np.abs(fine - coarse) for coarse, fine in itertools.pairwise(found)]
    k = int(np.argmin([one.max(initial=0.0) for one in off]))
    return found[k + 1], off[k]


def explain_by_parts(g, slopes, tol, sizes):
    """Which multiples of the gradients of the parts add up to g: (mistake, message), or None."""
    names = list(slopes)
    A = np.column_stack([np.ravel(slopes[name]) for name in names])
    weights = np.linalg.lstsq(A, np.ravel(g), rcond=1e-10)[0]
    if np.abs(A @ weights - np.ravel(g)).max() > tol:
        return None
    wrong = [k for k in range(len(names)) if abs(weights[k] - 1) > 1e-3]
    if not wrong:
        return None
    words = []
    for k in wrong:
        times = "0" if abs(weights[k]) < 1e-3 else ratio_words(weights[k], sizes)
        words.append(f"{names[k]} {times} times in place of once")
    ratio = weights[wrong[0]]
    kind = "missing term" if abs(ratio) < 1e-3 else "sign" if abs(ratio + 1) < 1e-3 else "factor"
    return kind, f"the gradient has {', '.join(words)}."


def _number(f, x):
    """f(x) as a float."""
    value = np.asarray(f(x.copy()))
    if value.size != 1 or value.dtype.kind not in "iuf" or not np.isfinite(value).all():
        raise ValueError(f"f must give a finite number, got {value} at x")
    return float(value.reshape(()))


def _explained(g, d, tol):
    """One factor that explains the whole gradient: (mistake, message), or None."""
    if not g.any():
        return "missing term", "the gradient is 0."
    factor = (g * d).sum() / max((d * d).sum(), 1e-300)
    if np.abs(g - factor * d).max() <= tol * max(1.0, abs(factor)) and factor != 0:
        words = ratio_words(factor, {"n": g.size})
        kind = "sign" if abs(factor + 1) < 1e-3 else "factor"
        what = "minus the gradient" if kind == "sign" else f"{words} times the gradient"
        return kind, f"it is {what}."
    if g.ndim == 2 and g.shape[0] == g.shape[1] and np.abs(g.T - d).max() <= tol:
        return "transposed", "its transpose is the gradient."
    return None


def _places(mask, blocks):
    """Entries in words, with the names of the blocks they belong to."""
    text = where(mask).replace("rows", "entries").replace("row", "entry")
    inside = []
    for name, index in (blocks or {}).items():
        block = np.zeros(mask.shape, bool)
        block[index] = True
        if (mask & block).any():
            inside.append(name)
    return f"{text} ({', '.join(inside)})" if inside else text


def _worst(g, d, off):
    """The entry that is most off, in words."""
    k = np.unravel_index(np.argmax(off), off.shape)
    name = ", ".join(str(i) for i in k) or "it"
    return f"entry {name}: {g[k]:.6g}, differences say {d[k]:.6g}"
