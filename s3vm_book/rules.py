"""What a verdict on a printed result is, and the rules by which it is computed."""

from typing import NamedTuple

import numpy as np

RESOLUTION = 3.0  # points: the largest two standard errors of ours that can confirm anything
SIDES = ("method", "rows", "settings", "accounting")


class Basis(NamedTuple):
    """What is compared with what: the same on both sides, or what differs.

    Each of the first four fields begins with "same" or "differs"; where one differs, there is no
    verdict but "not comparable".

    Parameters
    ----------
    method : str
        The algorithm and what it minimizes.
    rows : str
        The data, their number, how labels and test rows are drawn, the scaling.
    settings : str
        Parameters and how they are chosen.
    accounting : str
        What is counted and averaged: runs, what a time includes, what ± means.
    rule : str
        How the verdict follows from the numbers.
    """

    method: str
    rows: str
    settings: str
    accounting: str
    rule: str

    @property
    def comparable(self):
        """Whether all four sides are the same."""
        return all(getattr(self, side).startswith("same") for side in SIDES)


class Verdict(NamedTuple):
    """One line: what a source claims, what was measured, and what follows.

    Parameters
    ----------
    place : str
        Table, figure or section of the source.
    claim : str
        What the source prints or says.
    ours : str
        What was measured.
    word : str
        What the rule of the basis makes of it, were it comparable.
    basis : Basis
    """

    place: str
    claim: str
    ours: str
    word: str
    basis: Basis

    @property
    def verdict(self):
        """The word, or "not comparable"."""
        return self.word if self.basis.comparable else "not comparable"


def agreement(ours, theirs, n_theirs=10, spread="standard deviation"):
    """Whether our mean is that of a paper.

    Parameters
    ----------
    ours : sequence of float
        Our runs, in points.
    theirs : (float, float)
        Printed mean and standard deviation (over ``n_theirs`` runs) or, with ``spread`` "none",
        the mean alone.
    n_theirs : int, default=10
    spread : {"standard deviation", "none"}, default="standard deviation"

    Returns
    -------
    str
        "reproduced" if the means differ by at most two standard errors of their difference,
        otherwise "ours lower" or "ours higher"; "not resolved" if two standard errors of ours are
        above `RESOLUTION`.
    """
    mean, error = np.mean(ours), np.std(ours, ddof=1) / np.sqrt(len(ours))
    other = theirs[1] / np.sqrt(n_theirs) if spread == "standard deviation" else 0.0
    return difference(mean, error, theirs[0], other)


def difference(mean, error, other, other_error):
    """`agreement` of two means with their standard errors."""
    if not is_resolved(error):
        return "not resolved"
    if abs(mean - other) <= 2 * np.hypot(error, other_error):
        return "reproduced"
    return "ours lower" if mean < other else "ours higher"


def is_resolved(error):
    """Whether two standard errors are at most `RESOLUTION`."""
    return 2 * error <= RESOLUTION


def counted(met, total, of="cells"):
    """A verdict on a statement about many cells: in all, in none, or in how many it holds."""
    if not total:
        return "not run"
    return (
        "reproduced"
        if met == total
        else "not reproduced"
        if not met
        else f"in {met} of {total} {of}"
    )
