"""The path follower in plain NumPy, for watching: `follow` hands back every single step.

The algorithm of `s3vm_lib.path_following` and of its twin in this package, with frozen labels on
demand. Numbers in comments are the lines of the algorithm in the chapter on path following. The
state is a namespace of arrays that the functions change: ``beta``, ``b``, ``label``, ``upper``,
``free`` (True for unlabeled rows) and ``where``, one letter per row: O, M, E, A, "-" for a row that
is not there. ``K`` is the Gram matrix of all rows that may come; give it a ridge if rows repeat.
"""

from types import SimpleNamespace

import numpy as np

NEAR = 1e-10  # what counts as 0: in outputs, in α as a share of C, in rates of their terms


def empty(n):
    """Return the state before the first of n rows arrives."""
    parts = {name: np.zeros(n) for name in ("beta", "label", "upper")}
    return SimpleNamespace(
        **parts, b=0.0, free=np.zeros(n, bool), leaving=np.zeros(n, bool), where=np.full(n, "-")
    )


def targets(p, margin, alpha):
    """Return where the α of rows in A go: a row outside of its box first has to come in."""
    inside = alpha > -NEAR * p.upper
    return np.where(p.leaving | ((margin > 1 + NEAR) & inside), 0.0, p.upper)  # 9


def settle(p, margin, alpha):
    """Move rows of A that have arrived to O or E, or out; one at the margin may depend on M."""
    for i in np.flatnonzero(p.where == "A"):
        near = NEAR * p.upper[i]
        if p.leaving[i]:
            p.where[i] = "-" if abs(alpha[i]) < near else "A"
        elif abs(alpha[i]) < near and margin[i] > 1 - NEAR:
            p.where[i] = "O"
        elif abs(alpha[i] - p.upper[i]) < near and margin[i] < 1 + NEAR:
            p.where[i] = "E"


def rates(K, M, d):
    """Return the change of β and b per unit of η."""
    if M.size == 0:
        return (d, 0.0) if abs(d.sum()) <= NEAR * abs(d).sum() else (0 * d, np.sign(d.sum()))
    ones = np.ones((1, M.size))
    bordered = np.block([[np.zeros((1, 1)), ones], [ones.T, K[np.ix_(M, M)]]])
    rate_b, *rest = np.linalg.solve(bordered, -np.append(d.sum(), K[M] @ d))
    rate = d.copy()
    rate[M] = rest
    return rate, rate_b


def events(p, margin, alpha, rise, drift, hold, terms):
    """List (η, row, event) of all events ahead; ``terms``: the largest sum |k β| behind drift."""
    M, O, E, A = (p.where == name for name in "MOEA")
    still, flat, near = NEAR * np.abs(rise).max(), NEAR * terms, NEAR * p.upper
    A, flips = A & ~p.leaving, p.free & (drift < -flat) & (not hold)
    yield from ((alpha[i] / -rise[i], i, "O") for i in np.flatnonzero(M & (rise < -still)))
    ends = np.flatnonzero(M & (rise > still))
    yield from (((p.upper[i] - alpha[i]) / rise[i], i, "E") for i in ends)
    meets = (O & (drift < -flat)) | (E & (drift > flat))
    inside = A & (alpha > -near)
    meets |= inside & np.where(margin <= 1 + NEAR, drift > flat, drift < -flat)
    yield from (((1 - margin[i]) / drift[i], i, "M") for i in np.flatnonzero(meets))
    enters = np.flatnonzero(A & (alpha < -near) & (rise > still))
    yield from ((-alpha[i] / rise[i], i, "A") for i in enters)
    yield from ((margin[i] / -drift[i], i, "flip") for i in np.flatnonzero(flips & (E | A)))


def follow(K, p, hold=False):
    """Step until A is empty; yield (event, row, η, A) after each. ``hold`` freezes the labels."""
    while True:
        margin, alpha = p.label * (K @ p.beta + p.b), p.label * p.beta
        settle(p, margin, alpha)  # 3
        A = p.where == "A"
        if not A.any():
            return
        d = np.where(A, p.label * (targets(p, margin, alpha) - alpha), 0.0)  # 2
        rate, rate_b = rates(K, np.flatnonzero(p.where == "M"), d)  # 4
        drift = p.label * (K @ rate + rate_b)
        moving = rate != 0
        terms = abs(rate_b) + np.max(np.abs(K[:, moving]) @ np.abs(rate[moving]), initial=0.0)
        ahead = events(p, margin, alpha, p.label * rate, drift, hold, terms)
        end = (np.inf if np.any(d != rate) and not rate.any() else 1.0, -1, "arrive")
        eta, i, what = min(((max(e[0], 0.0), *e[1:]) for e in ahead), default=end)  # 5
        eta, i, what = min((eta, i, what), end)
        p.beta, p.b = p.beta + eta * rate, p.b + eta * rate_b  # 6
        if what == "flip":  # 8
            p.label[i], p.where[i] = -p.label[i], "A"
        elif i >= 0:
            p.where[i] = what  # 7
            if what in "OE":
                p.beta[i] = 0.0 if what == "O" else p.label[i] * p.upper[i]
        yield what, i, eta, np.flatnonzero(A)


def add(K, p, i, t, upper, hold=False):
    """Add row i with the label t, 0 for none; return the steps taken."""
    p.free[i], p.upper[i], p.where[i] = t == 0, upper, "A"
    p.label[i] = t or (1.0 if K[i] @ p.beta + p.b >= 0 else -1.0)
    return list(follow(K, p, hold))  # 1


def remove(K, p, i):
    """Remove row i; return the steps taken."""
    p.leaving[i], p.where[i] = True, "A"
    steps = list(follow(K, p))
    p.leaving[i], p.upper[i], p.beta[i] = False, 0.0, 0.0
    return steps
