"""Step sizes, draws and slopes: what both stochastic solvers share."""

from typing import NamedTuple

import numpy as np

from s3vm_lib._numba import njit
from s3vm_lib._rng import hash_key, integers, uniforms
from s3vm_lib.losses import labeled_derivative, unlabeled_derivative
from s3vm_lib.random_features import DATA, single

RULES = {"sqrt": 50.0, "constant": 0.02, "horizon": 1.0, "inverse": 1.0}
# Streams below the one of the data: draws of labeled and unlabeled rows, and of the rows on which
# features are centered.
LABELED, UNLABELED, CENTER, POLISH = range(4)


class Schedule(NamedTuple):
    """How the steps of a run are taken."""

    n_steps: int = 400
    batch_size: int = 256  # unlabeled rows of a step
    labeled_batch: int | None = None  # labeled rows of a step; None takes all of them
    rule: str = "sqrt"
    eta0: float = 50.0
    power: float = 0.75
    max_step: float = 0.5
    average: float = 0.5  # the mean of this last share of the iterates is returned
    ramp: float = 0.5  # C* rises from 0 over this first share of the steps
    penalty: float | None = None  # ρ of the balance penalty; None with the exact balance
    window: int = 8  # steps between two evaluations of old features (block updates only)
    first: int = 0  # steps that were taken before


def step_sizes(rule, eta0, n_steps, weight=1.0, power=0.75, max_step=0.5, first=0):
    """The step sizes γ_t of a run.

    Parameters
    ----------
    rule : {"sqrt", "constant", "horizon", "inverse"}
        eta0/(weight·√t); eta0, the paper's 1/η; eta0·T^(−power), the paper's θ/T^(3/4) of
        Theorems 1 and 2; eta0/t, that of doubly stochastic gradients.
    eta0 : float
        Constant of the rule.
    n_steps : int
        Length T of the run.
    weight : float, default=1.0
        C Σ_L s, which is the paper's C: the function moves by γ_t times this.
    power : float, default=0.75
        Of ``"horizon"``.
    max_step : float, default=0.5
        Largest γ_t, at most 1.
    first : int, default=0
        Number of steps taken before, which counts for ``"sqrt"`` and ``"inverse"``.

    Returns
    -------
    ndarray of shape (n_steps,)
    """
    t = np.arange(first + 1, first + n_steps + 1, dtype=float)
    if rule == "sqrt":
        gamma = eta0 / (weight * np.sqrt(t))
    elif rule == "constant":
        gamma = np.full(n_steps, eta0)
    elif rule == "horizon":
        gamma = np.full(n_steps, eta0 * max(1, n_steps) ** -power)
    else:
        gamma = eta0 / t
    return np.minimum(gamma, max_step)


class Sampler:
    """Draws of rows in proportion to their weights; draw number i depends on (seed, i) alone.

    Parameters
    ----------
    rows : ndarray of int, shape (n,)
        Rows to draw from, by index.
    weight : ndarray of shape (n,)
        Their weights.
    seed : int
    stream : int
        ``LABELED``, ``UNLABELED``, …
    """

    def __init__(self, rows, weight, seed, stream):
        self.rows = rows
        self.key = hash_key(hash_key(seed, DATA), stream)
        self.cumulative = None
        if rows.size and np.ptp(weight) > 0:
            self.cumulative = np.cumsum(weight) / weight.sum()

    def draw(self, start, count):
        """Rows number start, …, start + count − 1, as indices of shape (count,)."""
        if self.cumulative is None:
            index = np.empty(count, np.int64)
            integers(self.key, start, self.rows.size, index)
        else:
            u = np.empty(count, np.float32)
            uniforms(self.key, start, u)
            index = np.searchsorted(self.cumulative, u, side="right")
        return self.rows[np.minimum(index, self.rows.size - 1)]

    def sample(self, size):
        """All rows if there are at most ``size``, otherwise that many draws; with their weights.

        Returns
        -------
        rows : ndarray of int
            Sorted, each of them once.
        counts : ndarray of float or None
            How often each was drawn; None where all rows are returned.
        """
        if self.rows.size <= size:
            return self.rows, None
        rows, counts = np.unique(self.draw(0, size), return_counts=True)
        return rows, counts.astype(float)


class Draws:
    """The rows of each step: labeled ones, all of them or drawn, and a batch of others.

    Parameters
    ----------
    slopes : Slopes
    schedule : Schedule
    seed : int
    """

    def __init__(self, slopes, schedule, seed):
        self.first, self.size = schedule.first, schedule.labeled_batch or 0
        self.batch = schedule.batch_size if slopes.uses_pool else 0
        self._labeled = Sampler(np.arange(slopes.labeled.size), slopes.weight, seed, LABELED)
        self._pool = Sampler(slopes.pool, slopes.pool_weight, seed, UNLABELED)

    def labeled(self, k):
        """Positions among the labeled rows in step k; None for all of them."""
        return self._labeled.draw((self.first + k) * self.size, self.size) if self.size else None

    def unlabeled(self, k):
        """Rows of the batch of step k, in ascending order."""
        return np.sort(self._pool.draw((self.first + k) * self.batch, self.batch))


def take(X, rows):
    """Rows of an array, memory map or CSR matrix in single precision."""
    return single(X[rows])


@njit
def labeled_slopes(code, p, t, weight, f, out):
    """out_i = weight_i ℓ'(t_i, f_i)."""
    for i in range(out.size):
        out[i] = weight[i] * labeled_derivative(code, t[i], f[i], p)


@njit
def unlabeled_slopes(code, p, factor, f, out):
    """out_i = factor u'(f_i)."""
    for i in range(out.size):
        out[i] = factor * unlabeled_derivative(code, f[i], p)


class Slopes:
    """Derivatives of the data terms on the rows of one step, in the sum form.

    With all labeled rows in every step the labeled part is exact: C s_i ℓ'(t_i, f_i). Rows that
    were drawn stand for all: C Σ_L s / (number of rows drawn) times ℓ', and C* Σ_U s / (number)
    times u'.

    Parameters
    ----------
    problem : Problem
    t, weight : ndarrays
        Labels (0 where unlabeled) and weights of all rows.
    schedule : Schedule
    unlabeled_from : {"unlabeled", "all"}
        Which rows stand for the distribution of the data.
    """

    def __init__(self, problem, t, weight, schedule, unlabeled_from="unlabeled"):
        self.problem, self.schedule = problem, schedule
        labeled = t != 0
        self.labeled = np.flatnonzero(labeled)
        self.t = t[self.labeled]
        self.weight = problem.C * weight[self.labeled]
        self.total = float(self.weight.sum())
        pool = labeled < 1 if unlabeled_from == "unlabeled" else np.ones(t.size, dtype=bool)
        self.pool = np.flatnonzero(pool)
        u = problem.unlabeled_loss
        mass = float(weight[~labeled].sum())
        self.star = problem.C_star * mass if u is not None else 0.0
        self.pool_weight = weight[self.pool]
        self.rho = 0.0 if schedule.penalty is None else schedule.penalty * self.total
        self.target = None if problem.ratio is None else 2.0 * problem.ratio - 1.0
        self.uses_pool = self.pool.size > 0 and (self.star > 0 or self.rho > 0)
        ell = problem.labeled_loss
        self.codes = (ell.code, ell.p), (u.code, u.p) if u is not None else (0, 0.0)

    def of_labeled(self, f, index=None):
        """Slopes of the labeled rows, or of draws among them (``index`` into the labeled)."""
        out = np.empty(f.size)
        if index is None:
            labeled_slopes(*self.codes[0], self.t, self.weight, f, out)
        else:
            weight = np.full(index.size, self.total / index.size)
            labeled_slopes(*self.codes[0], self.t[index], weight, f, out)
        return out

    def of_pool(self, f, share):
        """Slopes of the drawn unlabeled rows when C* has risen to this share."""
        out = np.empty(f.size)
        unlabeled_slopes(*self.codes[1], share * self.star / f.size, f, out)
        if self.rho > 0 and self.target is not None:
            out += self.rho / f.size * (f.mean() - self.target)
        return out

    def capped(self, gamma, mean, count, offset):
        """The step size γ, or less where the balance penalty is steep.

        A step multiplies the mean output of its batch by 1 − γ − γρκ, where ρ is the total weight
        of the penalty and κ = ‖mean of the features‖² (+ 1 with a regularized offset). Beyond
        γ(1 + ρκ) = 1 it would overshoot, and beyond 2 the mean would grow from step to step.

        Parameters
        ----------
        gamma : float
        mean : ndarray of shape (D,)
            Mean of the features φ over the batch.
        count : int
            D, by which the norm is divided.
        offset : bool
            Whether the offset moves along.

        Returns
        -------
        float
        """
        if self.rho == 0 or self.target is None:
            return gamma
        curvature = float(mean @ mean) / count + float(offset)
        return min(gamma, 1.0 / (1.0 + self.rho * curvature))

    def gradient(self, step, gamma, labeled, pool, scale, count):
        """Σ_i a_i φ(x_i) before the scale and Σ_i a_i over the rows of a step, and its size.

        Parameters
        ----------
        step : int
            Step of the run.
        gamma : float
            Its size, before `capped`.
        labeled : tuple (f, Z, drawn)
            Outputs and features of the labeled rows, and which they are, as in `of_labeled`.
        pool : tuple (f, Z) or None
            Those of the batch.
        scale : float
            Factor of the features.
        count : int
            As in `capped`.

        Returns
        -------
        gradient : ndarray of float64, shape (D,)
        total, gamma : float
        """
        f, Z, drawn = labeled
        a = self.of_labeled(f, drawn)
        gradient, total = a.astype(np.float32) @ Z, a.sum()
        if pool is not None:
            f, Z = pool
            a = self.of_pool(f, self.share(step))
            if self.rho > 0:
                mean = scale * Z.mean(axis=0, dtype=float)
                gamma = self.capped(gamma, mean, count, self.problem.bias == "regularized")
            gradient = gradient + a.astype(np.float32) @ Z
            total += a.sum()
        return gradient.astype(np.float64), total, gamma

    def share(self, step):
        """Share of C* at a step of the run, 0 ≤ step < n_steps."""
        rise = self.schedule.ramp * self.schedule.n_steps
        return 1.0 if rise <= 0 else min(1.0, (step + 1) / rise)
