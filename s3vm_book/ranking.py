"""Comparison of many methods over many sets, after Demšar (2006), JMLR 7, 1-30.

Rows of an array of errors are sets, columns are methods; less is better.
"""

from typing import NamedTuple

import numpy as np
from matplotlib.patches import ConnectionPatch
from scipy import special, stats

from s3vm_book.plotting import GREY, INK


class Friedman(NamedTuple):
    """Mean ranks of the methods (1 is best), and two tests that all are equally good.

    ``chi_square`` is Friedman's statistic, corrected for ties; ``F`` that of Iman and Davenport
    (F_F of the source), which is less conservative; ``p`` and ``p_F`` are their significances.
    """

    ranks: np.ndarray
    chi_square: float
    p: float
    F: float
    p_F: float


def friedman(errors):
    """Mean ranks, and whether they differ by more than chance.

    Parameters
    ----------
    errors : array-like of shape (n_sets, n_methods)

    Returns
    -------
    Friedman

    Raises
    ------
    ValueError
        With fewer than two sets or three methods, or values that are not finite.
    """
    errors = np.asarray(errors, dtype=float)
    if errors.ndim != 2 or errors.shape[0] < 2 or errors.shape[1] < 3:
        raise ValueError(f"errors must have 2 sets and 3 methods at least, got {errors.shape}")
    if not np.isfinite(errors).all():
        raise ValueError("errors must be finite: a ranking needs each method on each set")
    n, k = errors.shape
    ranks = stats.rankdata(errors, axis=1)
    mean = ranks.mean(axis=0)
    # Equal to 12 n / (k (k + 1)) Σ (R_j − (k + 1) / 2)² without ties; 0/0 where all are tied.
    within = ((ranks - (k + 1) / 2) ** 2).sum()
    between = n * ((mean - (k + 1) / 2) ** 2).sum()
    chi = n * (k - 1) * between / within if within > 0 else 0.0
    room = n * (k - 1) - chi
    F = (n - 1) * chi / room if room > 1e-12 * n * k else np.inf
    p_F = float(special.fdtrc(k - 1, (k - 1) * (n - 1), F)) if np.isfinite(F) else 0.0
    return Friedman(mean, float(chi), float(special.chdtrc(k - 1, chi)), float(F), p_F)


def critical_difference(n_sets, n_methods, alpha=0.05):
    """Nemenyi's critical difference of two mean ranks, q_α √(k (k + 1) / (6 n)).

    Parameters
    ----------
    n_sets, n_methods : int
    alpha : float, default=0.05

    Returns
    -------
    float
    """
    q = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def holm(p):
    """Significances adjusted for their number, step by step (Holm 1979).

    Parameters
    ----------
    p : array-like of shape (m,)

    Returns
    -------
    ndarray of shape (m,)
        At least the given ones, at most 1, in the same order.
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def wilcoxon_holm(errors):
    """Pairwise signed-rank tests over the sets, adjusted by `holm`.

    Differences of 0 are split between both signs (Pratt's rule would drop their ranks, Demšar's
    splits them); a pair without any difference has p = 1.

    Parameters
    ----------
    errors : array-like of shape (n_sets, n_methods)

    Returns
    -------
    ndarray of shape (n_methods, n_methods)
        Adjusted significances, 1 on the diagonal.
    """
    errors = np.asarray(errors, dtype=float)
    k = errors.shape[1]
    first, second = np.triu_indices(k, 1)
    raw = [
        stats.wilcoxon(errors[:, a], errors[:, b], zero_method="zsplit").pvalue
        if np.any(errors[:, a] != errors[:, b])
        else 1.0
        for a, b in zip(first, second, strict=True)
    ]
    found = np.ones((k, k))
    found[first, second] = found[second, first] = holm(raw)
    return found


def groups(ranks, alike):
    """Largest runs of methods, in the order of their ranks, in which every pair is alike.

    Parameters
    ----------
    ranks : array-like of shape (n_methods,)
    alike : array-like of bool of shape (n_methods, n_methods)

    Returns
    -------
    list of list of int
        Method numbers; runs of one method, and those inside another run, are left out.
    """
    order, alike = np.argsort(ranks, kind="stable"), np.asarray(alike)
    found, end = [], 0
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and alike[order[stop], order[start:stop]].all():
            stop += 1
        if stop > end and stop - start > 1:
            found.append(order[start:stop].tolist())
        end = max(end, stop)
    return found


def ladder(ax, names, ranks, alike, *, difference=None):
    """Draw the mean ranks below each other, and a bar beside each group that cannot be told apart.

    The critical-difference diagram, upright: it has room for many methods.

    Parameters
    ----------
    ax : Axes
    names : list of str
    ranks : array-like of shape (n_methods,)
    alike : array-like of bool of shape (n_methods, n_methods)
        Pairs whose difference is not significant.
    difference : float or None, default=None
        A critical difference to be drawn as a scale.
    """
    ranks = np.asarray(ranks, dtype=float)
    order = np.argsort(ranks, kind="stable")
    place = np.argsort(order, kind="stable")
    worst = ranks.max()
    ax.hlines(range(len(order)), 0, ranks[order], color=GREY, lw=0.6)
    ax.plot(ranks[order], range(len(order)), "o", color=INK, ms=4, ls="none")
    for one, rank in enumerate(ranks[order]):
        ax.text(rank + 0.025 * worst, one, f"{rank:.1f}", va="center", fontsize="small")
    for number, group in enumerate(groups(ranks, alike)):
        x = worst * (1.14 + 0.045 * number)
        ends = [place[group[0]] - 0.25, place[group[-1]] + 0.25]
        ax.plot([x, x], ends, color=INK, lw=2.5, ls="-", solid_capstyle="butt")
    if difference is not None:
        ax.plot([0.2, 0.2 + difference], [-1.2, -1.2], color=INK, lw=2, ls="-")
        ax.text(0.5 + difference, -1.2, f"CD = {difference:.1f}", va="center", fontsize="small")
    ax.set_yticks(range(len(order)), [names[k] for k in order], fontsize="small")
    ax.set(xlabel="mean rank (1 is best)", xlim=(0, None), ylim=(len(order) - 0.4, -2))
    ax.grid(False)


def frontier(seconds, errors):
    """Numbers of the methods than which none is faster and at least as good, the fastest first.

    Parameters
    ----------
    seconds, errors : array-like of shape (n_methods,)

    Returns
    -------
    list of int
    """
    seconds, errors = np.asarray(seconds, dtype=float), np.asarray(errors, dtype=float)
    order = np.lexsort((errors, seconds))
    return [m for p, m in enumerate(order) if errors[m] < min(errors[order[:p]], default=np.inf)]


def time_and_error(ax, names, seconds, errors):
    """Draw each method as a point: mean error over processor seconds, and the frontier of both.

    The names stand in a column on the right, as evenly as their points allow.

    Parameters
    ----------
    ax : Axes
    names : list of str
    seconds, errors : array-like of shape (n_methods,)

    Returns
    -------
    list of str
        The `frontier`.
    """
    seconds, errors = np.asarray(seconds, dtype=float), np.asarray(errors, dtype=float)
    best = frontier(seconds, errors)
    ax.plot(seconds, errors, "o", color=INK, ms=4, mfc="white", ls="none")
    ax.plot(seconds[best], errors[best], "o", color=INK, ms=4, ls="none")
    ax.step(seconds[best], errors[best], where="post", color=INK, lw=1, ls="--")
    low, high = errors.min(), errors.max()
    margin = 0.04 * (high - low) or 1.0
    ax.set(xscale="log", xlabel="CPU seconds of a fit (mean)", ylabel="error (%, mean over sets)")
    ax.set_ylim(low - margin, high + margin)
    right, frame = 10 ** (np.log10(seconds.max()) + 0.1), ax.get_yaxis_transform()
    for m, y in zip(*_apart(errors, low - margin, high + margin), strict=True):
        weight = "bold" if m in best else "normal"
        ax.text(1.12, y, names[m], transform=frame, va="center", fontsize="small", weight=weight)
        ax.plot([seconds[m], right], [errors[m], errors[m]], color=GREY, lw=0.4, ls="-", zorder=1)
        ax.add_artist(
            ConnectionPatch(
                (1.11, y), (right, errors[m]), frame, "data", color=GREY, lw=0.4, clip_on=False
            )
        )
    ax.set_xlim(None, right)
    return [names[m] for m in best]


def _apart(values, low, high):
    """Numbers in the order of their values, and places for them that are a line apart."""
    order = np.argsort(values, kind="stable")
    step = (high - low) / max(len(values), 1)
    places = np.array(values, dtype=float)[order]
    for k in range(1, len(places)):
        places[k] = max(places[k], places[k - 1] + step)
    over = places[-1] - high
    if over > 0:
        places[-1] = high
        for k in range(len(places) - 2, -1, -1):
            places[k] = min(places[k], places[k + 1] - step)
    return order, places
