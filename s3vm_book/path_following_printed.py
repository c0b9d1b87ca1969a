"""IL-S³VM as printed (Gu et al., 2018): Algorithm 1 with two copies of every unlabeled row.

Plain NumPy and SciPy, and longer than the other twins, for it is the whole algorithm of the paper:
equations (5)-(8), (10)-(22) and the QR decomposition of Remark 2. What is wrong in the print can
be switched on and off by name, see ``ERRATA``, so that each error is seen by running it. Numbers
in comments are the lines of Algorithm 1. `s3vm_lib.path_following` is the version for use: it has
one variable per row.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, qr, qr_delete, qr_insert, solve_triangular

ERRATA = {
    "bounds": "(8): the upper bound of an unlabeled copy with y = +1 is C* − μ, not −μ",
    "vertex": "(5): at f = 0 one of the two copies has μ = C*; the print gives both μ = 0",
    "closed": "(15), (16), (18) and the sets of Section 2.3 need ≥ and ≤; the print has > and <",
    "swapped": "(21) and (22) hold with the opposite signs: g ≤ 0 for y = +1, g ≥ 0 for y = −1",
    "outside": "(19), (20): after a change of μ a copy starts outside of its box; stop at the "
    "target, from whichever side",
    "empty": "(12) has no solution when M is empty and the sum of d is not 0; then b moves alone",
}
TOL = 1e-9  # what counts as 0: in outputs, where rounding is less, and in α, times the largest C


class Stalled(Exception):
    """The printed rules admit no further step; ``equation`` names the one to blame."""

    def __init__(self, equation, message):
        super().__init__(f"{equation}: {message}")
        self.equation = equation


class Step(NamedTuple):
    """One pass of lines 7-9."""

    equation: str  # the inequality that bound η
    row: int  # of the copy that it speaks of
    eta: float
    ties: int  # inequalities that bind at this η, the one above included
    energy: float  # W, the dual objective (6), after the step
    added: bool  # whether the new row is in A
    others: bool  # whether other rows are


# --- The linear system (12) -----------------------------------------------------------------------


def bordered(H):
    """The matrix H̃ of (12): H with a row and a column of ones, and 0 in the corner."""
    ones = np.ones((1, len(H)))
    return np.block([[np.zeros((1, 1)), ones], [ones.T, H]])


def pivoted_qr(H, right, tol=1e-10):
    """Basic solution of (12) by QR with column pivoting; dependent columns get β = 0.

    The border has the size of H instead of 1, so that the rank does not depend on the unit of k.
    """
    unit = np.ones(len(right))
    unit[0] = np.abs(H).max(initial=0.0) or 1.0
    Q, R, order = qr(bordered(H) * np.outer(unit, unit), pivoting=True)
    size = np.abs(np.diag(R))
    rank = int(np.sum(size > tol * size[0]))
    solution = np.zeros(right.shape)
    sides = (unit * right.T).T
    solution[order[:rank]] = solve_triangular(R[:rank, :rank], Q[:, :rank].T @ sides)
    return (unit * solution.T).T


def cholesky(H, right):
    """Solution of (12) from the Cholesky factor of H + σ11ᵀ.

    The sum of β is given, so that adding σ11ᵀ changes β_b by a constant and nothing else. Affinely
    dependent rows need a ridge in the Gram matrix from which H is taken: one in this place alone
    would let g drift away from 0 on M.
    """
    m = len(H)
    if m == 0:
        return np.zeros(1)
    scale = np.trace(H) / m or 1.0
    factor = cho_factor(H + scale)
    u, v = cho_solve(factor, np.ones(m)), cho_solve(factor, right[1:])
    shifted = (v.sum() - right[0]) / u.sum()
    return np.append(shifted + scale * right[0], v - shifted * u)


class UpdatedQR:
    """QR factors of H̃ that are updated when rows enter and leave M, in O(m²), as Section 4.2 asks.

    No update keeps the pivot order of Remark 2: the columns stay where they were inserted.
    """

    def __init__(self):
        self.Q, self.R = np.ones((1, 1)), np.zeros((1, 1))  # H̃ of an empty M

    def insert(self, h, diagonal):
        """A row with kernel values h to the rows in M, and k(x, x) = ``diagonal``."""
        m = len(self.R)
        side = np.append(1.0, h)
        self.Q, self.R = qr_insert(self.Q, self.R, side, m, which="row")
        self.Q, self.R = qr_insert(self.Q, self.R, np.append(side, diagonal), m, which="col")

    def delete(self, k):
        """The k-th of the rows in M."""
        self.Q, self.R = qr_delete(self.Q, self.R, k + 1, which="row")
        self.Q, self.R = qr_delete(self.Q, self.R, k + 1, which="col")

    def solve(self, right):
        """R⁻¹Qᵀ right, without any defense against a small r_kk."""
        return solve_triangular(self.R, self.Q.T @ right)


# --- The algorithm --------------------------------------------------------------------------------


class PrintedPath:
    """State of Algorithm 1: copies of rows, their weights α, and the sets M, E, O and A.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix of all rows that will be added.
    t : ndarray of shape (n,)
        Labels −1 and +1, and 0 for unlabeled rows.
    C, C_star : float
        Weights of the losses.
    corrected : iterable of str, default=all of ``ERRATA``
        Errors to correct; the others stay as printed.
    solve : callable, default=pivoted_qr
        From (H_MM, right side) to the solution (β_b, β_M) of (12).
    together : bool, default=False
        Add the two copies of an unlabeled row at once; Algorithm 1 adds one after the other.
    max_steps : int, default=5000
        Guard for each addition.
    cut : float, default=None
        Rates γ of (13) up to it count as 0: a row that depends on rows in M has γ = 0, and must not
        enter M on its rounding. None is nε (1 + Σ_j |w_ij|) times the largest Σ|k_ij β_j| + |β_b|,
        with the coordinates w_i of row i with respect to M, Φ_i = Σ_j w_ij Φ_j where it depends on
        M: the rates of M are rounded to a share ε of the terms of their sums, and w_i multiplies
        that where M is nearly degenerate. A number is taken as it is, as a share of max(1, |γ|) and
        whatever the terms: where rounding exceeds it, the walk may have no end.

    Attributes
    ----------
    row, y, alpha, mu, place : ndarray
        Per copy: its row, its label, its weight, μ of (5), and the name of its set.
    b : float
    steps : list of Step
    """

    def __init__(
        self, K, t, C, C_star, corrected=tuple(ERRATA), solve=pivoted_qr, together=False,
        max_steps=5000, cut=None,
    ):  # fmt: skip
        self.K, self.t, self.C, self.C_star = K, np.asarray(t, float), C, C_star
        self.corrected, self.solve = frozenset(corrected), solve
        self.together, self.max_steps, self.cut = together, max_steps, cut
        self.row, self.place = np.empty(0, int), np.empty(0, "U1")
        self.y, self.alpha, self.mu = np.empty((3, 0))
        self.b, self.steps, self.added = 0.0, [], -1
        self.tol_alpha = TOL * max(C, C_star)
        terms = 2 * max(C, C_star) * np.abs(K).sum(axis=1).max(initial=0.0)
        self.tol = max(TOL, 2 * len(K) * np.finfo(float).eps * terms)

    @property
    def free(self):
        """Whether a copy stems from an unlabeled row."""
        return self.t[self.row] == 0

    def outputs(self, rows=None):
        """f = Σ α_j k(x_j, ·) + b at the copies, or at the given rows."""
        rows = self.row if rows is None else rows
        return self.K[np.ix_(rows, self.row)] @ self.alpha + self.b

    def gradient(self):
        """g of (11)."""
        return self.outputs() - self.y

    def energy(self):
        """W of (6)."""
        return 0.5 * self.alpha @ (self.outputs() - self.b) - self.y @ self.alpha

    def objective(self):
        """J of (1); −W at a solution of (6) whose μ agrees with (5)."""
        rows = np.unique(self.row)
        f, t = self.outputs(rows), self.t[rows]
        losses = np.where(t == 0, np.maximum(0, 1 - np.abs(f)), np.maximum(0, 1 - t * f))
        norm2 = self.alpha @ (self.outputs() - self.b)
        return 0.5 * norm2 + np.where(t == 0, self.C_star, self.C) @ losses

    def bounds(self, corrected=None):
        """(7) and (8)."""
        positive, cost = self.y > 0, np.where(self.free, self.C_star, self.C)
        lower = np.where(positive, -self.mu, self.mu - cost)
        if "bounds" not in (self.corrected if corrected is None else corrected):
            cost = np.where(self.free, 0.0, cost)
        return lower, np.where(positive, cost - self.mu, self.mu)

    def residual(self):
        """Largest violation of (10), of the correct boxes, of (11) and of the signs of (5)."""
        lower, upper = self.bounds(ERRATA)
        g, short = self.gradient(), self.tol_alpha
        below = np.where(self.alpha > lower + short, g, 0.0)  # g > 0 asks for the lower bound
        above = np.where(self.alpha < upper - short, -g, 0.0)
        box = np.maximum(lower - self.alpha, self.alpha - upper)
        sign = np.where(self.free, np.where(self.mu > 0, 1.0, -1.0) * self.y * self.outputs(), 0.0)
        parts = [below, above, box, sign, [abs(self.alpha.sum())]]
        return float(max(np.max(part, initial=0.0) for part in parts))

    def add(self, k):
        """Lines 2-10 for row k; for both copies of an unlabeled one."""
        labels = [self.t[k]] if self.t[k] else [1.0, -1.0]
        groups = [labels] if self.together else [[y] for y in labels]
        self.added, first = k, len(self.steps)
        for group in groups:  # 2, 3
            new = np.arange(len(self.row), len(self.row) + len(group))
            self.row, self.y = np.append(self.row, [k] * len(group)), np.append(self.y, group)
            self.alpha, self.mu = (np.append(a, 0.0 * new) for a in (self.alpha, self.mu))  # 4
            self.place = np.append(self.place, ["A"] * len(group))
            if self.t[k] == 0:
                self._set_mu(k, self.outputs([k])[0])
            self._classify(new)  # 5
            self._settle()
            while np.any(self.place == "A"):  # 6
                self._advance()
                self._settle()
                if len(self.steps) - first > self.max_steps:
                    raise Stalled("Theorem 4", f"no end after {self.max_steps} steps")
        return self

    def _set_mu(self, k, f):
        """(5) for the copies of row k at the output f, or at the side of 0 that is ahead."""
        if "vertex" in self.corrected:
            # Both copies alike, also where f is 0 but for rounding.
            f = 1.0 if f >= -self.tol else -1.0
        copies = self.row == k
        self.mu[copies] = np.where(self.y[copies] * f < -self.tol, self.C_star, 0.0)

    def _classify(self, copies):
        """The sets of Section 2.3; A for what fits none."""
        g, (lower, upper) = self.gradient(), self.bounds()
        near, short = self.tol if "closed" in self.corrected else -self.tol, self.tol_alpha
        for i in copies:
            at_lower = abs(self.alpha[i] - lower[i]) <= short
            at_upper = abs(self.alpha[i] - upper[i]) <= short
            inside = lower[i] - short <= self.alpha[i] <= upper[i] + short
            if at_lower and g[i] > -near:
                self.place[i] = "O"
            elif at_upper and g[i] < near:
                self.place[i] = "E"
            else:
                self.place[i] = "M" if inside and abs(g[i]) <= self.tol else "A"

    def _targets(self):
        lower, upper = self.bounds()
        return np.where(self.y > 0, upper, lower)

    def _settle(self):
        """Copies that have reached their targets leave A: at η = 1 all of them do."""
        target = self._targets()
        near = np.abs(self.alpha - target) <= self.tol_alpha
        for i in np.flatnonzero((self.place == "A") & near):
            self.alpha[i], self.place[i] = target[i], "E" if self.y[i] > 0 else "O"

    def direction(self):
        """Rates of α and b with η, by (12)."""
        A, M = np.flatnonzero(self.place == "A"), np.flatnonzero(self.place == "M")
        rate = np.zeros(len(self.row))
        d = (self._targets() - self.alpha)[A]
        if M.size == 0 and "empty" in self.corrected and abs(d.sum()) > self.tol_alpha:
            return rate, np.sign(d.sum())
        H = self.K[np.ix_(self.row, self.row)]
        right = -np.append(d.sum(), H[np.ix_(M, A)] @ d)
        solution = self.solve(H[np.ix_(M, M)], right)
        rate[A], rate[M] = d, solution[1:]
        return rate, solution[0]

    def inequalities(self, rate, rate_b):
        """(14)-(22) as rows (equation, copy, value, slope, least): value + η slope ≥ 0, or > 0.

        ``least`` is the smallest value that counts as ≥ 0, or as > 0.
        """
        y, mu, alpha, g = self.y, self.mu, self.alpha, self.gradient()
        H = self.K[np.ix_(self.row, self.row)]
        gamma = H @ rate + rate_b  # (13)
        if self.cut is None:
            terms = np.max(np.abs(H) @ np.abs(rate)) + abs(rate_b)
            M = np.flatnonzero(self.place == "M")
            w = pivoted_qr(H[np.ix_(M, M)], np.vstack([np.ones(len(H)), H[M]]))[1:]
            cut = len(H) * np.finfo(float).eps * terms * (1 + np.abs(w).sum(axis=0))
        else:
            cut = self.cut * max(1.0, np.abs(gamma).max())
        gamma[np.abs(gamma) <= cut] = 0.0
        lower, upper = self.bounds()
        short, strict = -self.tol_alpha, -self.tol if "closed" in self.corrected else self.tol
        system = []

        def state(equation, where, value, slope, least=-self.tol):
            system.extend((equation, i, value[i], slope[i], least) for i in np.flatnonzero(where))

        M, E, O, A = (self.place == name for name in "MEOA")
        state("(14) lower", M, alpha - lower, rate, short)
        state("(14) upper", M, upper - alpha, -rate, short)
        state("(15)", O, g, gamma, strict)
        state("(16)", E, -g, -gamma, strict)
        state("(17)", self.free & (mu == 0), y * g + 1, y * gamma)
        state("(18)", self.free & (mu > 0), -(y * g + 1), -y * gamma, strict)
        if "outside" in self.corrected:
            far = np.abs(self._targets() - alpha)
            state("(19)", A & (y > 0), far, -np.abs(rate), short)
            state("(20)", A & (y < 0), far, -np.abs(rate), short)
        else:
            state("(19)", A & (y > 0), upper - alpha, -rate, short)
            state("(20)", A & (y < 0), alpha - lower, rate, short)
        side = 1 if "swapped" in self.corrected else -1
        state("(21)", A & (y > 0), -side * g, -side * gamma)
        state("(22)", A & (y < 0), side * g, side * gamma)
        return system

    def _advance(self):
        rate, rate_b = self.direction()  # 7
        system = self.inequalities(rate, rate_b)
        for equation, i, value, _, least in system:
            if value < least:
                raise Stalled(
                    equation[:4],
                    f"row {self.row[i]} violates it at η = 0 already, "
                    f"by {round(max(0.0, -value), 9):.3g}",
                )
        limits = [  # 8
            (max(0.0, value) / -slope, equation, i)
            for equation, i, value, slope, _ in system
            if slope < 0
        ]
        if not limits:
            raise Stalled("(14)-(22)", "no inequality bounds η")
        eta, equation, i = min(limits, key=lambda limit: limit[0])
        ties = sum(limit[0] <= eta + TOL for limit in limits)
        in_A = self.row[self.place == "A"]
        self.alpha, self.b = self.alpha + eta * rate, self.b + eta * rate_b  # 9
        before = self.mu.copy(), self.place.copy()
        self._event(equation, i)
        new, others = bool(np.any(in_A == self.added)), bool(np.any(in_A != self.added))
        self.steps.append(
            Step(equation[:4], int(self.row[i]), eta, ties, self.energy(), new, others)
        )
        same = np.array_equal(before[0], self.mu) and np.array_equal(before[1], self.place)
        if eta <= TOL and same:
            blame = "(5)" if equation in ("(17)", "(18)") else equation
            raise Stalled(blame, f"a step of length 0 at row {self.row[i]} changes nothing")

    def _event(self, equation, i):
        """Fig. 2: which set the copy moves to, or a change of μ."""
        lower, upper = self.bounds()
        if equation.startswith("(14)"):
            low = equation.endswith("lower")
            self.alpha[i], self.place[i] = (lower[i], "O") if low else (upper[i], "E")
        elif equation in ("(15)", "(16)", "(21)", "(22)"):
            self.place[i] = "M"
        elif equation in ("(19)", "(20)"):
            self.alpha[i], self.place[i] = self._targets()[i], "E" if self.y[i] > 0 else "O"
        else:
            k = self.row[i]
            side = self.y[i] * (1.0 if self.mu[i] > 0 else -1.0)  # where f is heading
            self._set_mu(k, side if "vertex" in self.corrected else 0.0)
            self._classify(np.flatnonzero(self.row == k))
