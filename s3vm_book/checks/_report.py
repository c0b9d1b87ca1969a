"""What the checks have in common: a report, and the search for the change that mends an answer."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar


@dataclass(frozen=True, repr=False)
class Report:
    """What a check found: true when nothing is wrong, and a sentence when printed.

    Parameters
    ----------
    mistake : str or None
        A few words that name the mistake; None when nothing is wrong.
    message : str
        What is wrong and where, or what was checked.
    numbers : dict of str to float, default={}
        The residuals behind the sentence.

    Examples
    --------
    >>> from s3vm_book.checks import check_gradient
    >>> report = check_gradient(lambda x: x @ x, lambda x: -2 * x, [1.0, 2.0])
    >>> bool(report), report.mistake
    (False, 'sign')
    """

    mistake: str | None
    message: str
    numbers: dict = field(default_factory=dict)

    def __bool__(self):
        return self.mistake is None

    def __str__(self):
        return self.message if self else f"{self.mistake}: {self.message}"

    __repr__ = __str__


class Suspect(NamedTuple):
    """A mistake that would explain an answer, and what is left of the error if it is the one.

    A residual of 0 is for what the numbers show beyond doubt.
    """

    mistake: str
    message: str
    residual: float


MARKEDLY = 20  # times smaller must an error become before a change counts as its explanation
ALIKE = 3  # times as much may one explanation leave as another that is not better for it
ROUNDING = 1e-6  # residuals below this are all alike


def accuse(suspects, limit, numbers):
    """A report on the suspect that explains the answer, or None.

    Residuals must be within the limit. Of suspects that leave about the least, the first gives the
    name, and up to two more are named with it: more explanations are none.
    """
    guilty = []
    for suspect in suspects:
        if suspect.residual == 0:
            return Report(suspect.mistake, suspect.message, numbers)
        if suspect.residual <= limit:
            guilty.append(suspect._replace(residual=max(suspect.residual, ROUNDING)))
    if not guilty:
        return None
    best = min(one.residual for one in guilty)
    unique = {one.mistake: one for one in reversed(guilty) if one.residual <= ALIKE * best}
    alike = list(reversed(unique.values()))
    if len(alike) > 3:
        return None
    mistake = ", or ".join(one.mistake for one in alike)
    message = " Or else ".join(one.message for one in alike)
    for other in guilty:
        if other.mistake not in unique and other.residual <= MARKEDLY * best:
            message += f" (Nearly the same numbers would follow from: {other.mistake}.)"
            break
    return Report(mistake, message, numbers)


def finite(name, value, shape=None):
    """The argument as a float array; a ValueError that names it where it cannot be used."""
    value = np.asarray(value)
    if value.dtype.kind not in "iufb":
        raise ValueError(f"{name} must be numeric, got {value.dtype}")
    if shape is not None and value.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, got {value.shape}")
    if not np.all(np.isfinite(value)):
        raise ValueError(
            f"{name} must be finite, got NaN or infinity in {where(~np.isfinite(value))}"
        )
    return value.astype(float)


def where(mask, most=5):
    """Row numbers in words: "row 3", "rows 1, 4 and 7", "rows 0, 1, 2, 3, 4, … (60 in all)"."""
    rows = np.unique(np.nonzero(mask)[0])
    shown = ", ".join(str(row) for row in rows[:most])
    if len(rows) > most:
        return f"rows {shown}, … ({len(rows)} in all)"
    return f"row{'s' if len(rows) > 1 else ''} {shown}"


def ratio_names(ratio, sizes, tol=5e-3):
    """What a wrong factor looks like: twice, half, a mean, 1/C.

    Parameters
    ----------
    ratio : float
        What was found over what is right.
    sizes : dict of str to float
        Numbers that may have got into the factor, by name; a quotient ("l/u") counts as it is, of
        others also the double, the inverse and its square.

    Returns
    -------
    list of str
        At most three; none where nothing fits.
    """
    known = {"2": 2.0, "½": 0.5, "4": 4.0, "¼": 0.25, "−1": -1.0, "−2": -2.0, "−½": -0.5}
    for name, size in sizes.items():
        size = float(size)
        if "/" in name:
            known[name] = size
        elif size > 0 and abs(size - 1) > 1e-9:
            known |= {name: size, f"1/{name}": 1 / size, f"1/(2{name})": 0.5 / size}
            known |= {f"2{name}": 2 * size, f"1/{name}²": size**-2, f"1/(2{name}²)": 0.5 / size**2}
    return [name for name, value in known.items() if abs(ratio - value) <= tol * abs(value)][:3]


def is_clear(factor, sizes, low=1e-9):
    """Whether a factor may be accused: not as extreme as the search allows, and far or round.

    A solution that is not exact, or of a K that is nearly singular, is often a little nearer to
    that of 0.96 K.
    """
    tenths = max(1, round(10 * factor)) / 10
    if not 1.1 * low < factor < 0.9 / low or abs(factor - 1) <= 0.01:
        return False
    is_round = bool(ratio_names(factor, sizes)) or abs(factor - tenths) <= 5e-3 * tenths
    return is_round or not 0.8 <= factor <= 1.25


def ratio_words(ratio, sizes):
    """The same in words: "½ or 1/C", "20 (γ or 2l)"; or just the number."""
    names = ratio_names(ratio, sizes)
    if not names:
        return f"{ratio:.3g}"
    words = " or ".join(names)
    return words if set(names[0]) <= set("−½¼124") else f"{ratio:.3g} ({words})"


def best_factor(residual, low, high, n=41):
    """The p in [low, high] with the smallest residual(p), and that residual; p is a factor."""

    def at(x):
        return min(residual(np.exp(x)), 1e9)  # the search does not bear infinity

    grid = np.linspace(np.log(low), np.log(high), n)
    values = [at(x) for x in grid]
    k = int(np.argmin(values))
    near = grid[max(k - 1, 0)], grid[min(k + 1, n - 1)]
    found = minimize_scalar(at, bounds=near, method="bounded", options={"xatol": 1e-9})
    if found.fun < values[k]:
        return float(np.exp(found.x)), float(found.fun)
    return float(np.exp(grid[k])), float(values[k])
