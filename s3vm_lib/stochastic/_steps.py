"""Draws, slopes and the course of a run: what both stochastic solvers share."""

from typing import NamedTuple

import numpy as np

from s3vm_lib.random_features import DATA, row_tiles, single
from s3vm_lib.utils.random_numbers import hash_key, integers, uniforms
from s3vm_lib.utils.threads import in_threads

# Streams below the one of the data: draws of labeled and unlabeled rows, of the rows on which
# features are centered, and of those that the polish sees.
LABELED, UNLABELED, CENTER, POLISH = range(4)
REPORTS = 10  # stages of a run


class Progress(NamedTuple):
    """A stretch of the run."""

    n_iter: int  # steps so far
    step: float  # size γ_t of the last one
    labeled: float  # C Σ_L s ℓ at the last step (estimated where labeled rows are drawn)
    unlabeled: float  # C* Σ_U s u, estimated on the last batch, without the factor of the ramp
    n_features: int


class Run(NamedTuple):
    """What the solvers return: f(x) = Σ_t Σ_j α_tj φ_tj(x) + offset."""

    alpha: np.ndarray  # (T, m)
    offset: float
    n_iter: int
    status: str  # "completed" or "stopped"; of L-BFGS as in `Stage`
    history: tuple  # of Progress, or of Stage
    last: tuple | None  # (alpha, offset) of the last iterate, from which steps can go on


class Outputs(NamedTuple):
    """What f is on some rows of a step."""

    f: np.ndarray  # outputs, offset included, (n,)
    Z: np.ndarray  # features before their scale, float32, (n, D)
    drawn: np.ndarray | None = None  # positions among the labeled rows; None for all of them


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
        """Return rows number start, …, start + count − 1, as indices of shape (count,)."""
        if self.cumulative is None:
            index = np.empty(count, np.int64)
            integers(self.key, start, self.rows.size, index)
        else:
            u = np.empty(count, np.float32)
            uniforms(self.key, start, u)
            index = np.searchsorted(self.cumulative, u, side="right")
        return self.rows[np.minimum(index, self.rows.size - 1)]

    def sample(self, size):
        """Return all rows, or ``size`` draws where there are more, and their weights.

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
    first : int
        Number of steps taken before.
    """

    def __init__(self, slopes, schedule, seed, first):
        self.first, self.size = first, int(schedule.labeled_batch or 0)
        self.batch = int(schedule.batch_size) if slopes.uses_pool else 0
        self._labeled = Sampler(np.arange(slopes.labeled.size), slopes.weight, seed, LABELED)
        self._pool = Sampler(slopes.pool, slopes.pool_weight, seed, UNLABELED)

    def labeled(self, k):
        """Return positions among the labeled rows in step k; None for all of them."""
        return self._labeled.draw((self.first + k) * self.size, self.size) if self.size else None

    def unlabeled(self, k):
        """Return rows of the batch of step k, in ascending order."""
        return np.sort(self._pool.draw((self.first + k) * self.batch, self.batch))


def take(X, rows):
    """Return rows of an array, memory map or CSR matrix in single precision."""
    return single(X[rows])


def block_features(stream, blocks, X, dtype=np.float32, n_jobs=None):
    """Return values c_j(x_i) of all blocks side by side, shape (n, D)."""
    m = stream.block_size
    Z = np.empty((X.shape[0], len(blocks) * m), dtype)

    def fill(part):
        tile, k = part
        Z[tile, k * m : (k + 1) * m] = stream.values(single(X[tile]), blocks[k])

    parts = [(tile, k) for tile in row_tiles(X.shape[0], m) for k in range(len(blocks))]
    in_threads(fill, parts, n_jobs)
    return Z


def feature_means(stream, blocks, X, counts=None, n_jobs=None):
    """Mean of the features c_j (before the scale) over some rows, shape (T, m) float64.

    Parameters
    ----------
    stream : FeatureStream
    blocks : sequence of Block
    X : {ndarray, CSR matrix} of shape (n, d)
    counts : ndarray of shape (n,), default=None
        Weights of the rows; None means equal ones.
    n_jobs : int, default=None

    Returns
    -------
    ndarray of shape (T, m)
    """
    weight = np.ones(X.shape[0]) if counts is None else counts
    weight = weight / weight.sum()

    def part(tile):
        Z, w = single(X[tile]), weight[tile]
        return np.array([w @ stream.values(Z, block).astype(np.float64) for block in blocks])

    return sum(in_threads(part, row_tiles(X.shape[0], stream.block_size), n_jobs))


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
    """

    def __init__(self, problem, t, weight, schedule):
        labeled = t != 0
        self.labeled = np.flatnonzero(labeled)
        self.t = t[self.labeled]
        self.weight = problem.C * weight[self.labeled]
        self.total = float(self.weight.sum())
        self.pool, self.pool_weight = np.flatnonzero(~labeled), weight[~labeled]
        self.losses, mass = problem.losses, float(self.pool_weight.sum())
        self.star = 0.0 if problem.unlabeled_loss is None else problem.C_star * mass
        self.rho, self.target = 0.0, None
        if problem.ratio is not None:
            self.rho = (schedule.balance_penalty or 0.0) * self.total
            self.target = 2.0 * problem.ratio - 1.0
        self.uses_pool = self.pool.size > 0 and (self.star > 0 or self.rho > 0)

    def of_labeled(self, f, index=None):
        """Return slopes of the labeled rows, or of draws among them, by their ``index``."""
        if index is None:
            return self.weight * self.losses[0].derivative(self.t, f)
        return self.total / index.size * self.losses[0].derivative(self.t[index], f)

    def of_pool(self, f, share):
        """Return slopes of the drawn unlabeled rows when C* has risen to this share."""
        out = share * self.star / f.size * self.losses[1].derivative(f)
        if self.rho > 0:
            out += self.rho / f.size * (f.mean() - self.target)
        return out

    def capped(self, gamma, mean, count, offset):
        """Return the step size γ, or less where the balance penalty is steep.

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
        curvature = float(mean @ mean) / count + float(offset)
        return min(gamma, 1.0 / (1.0 + self.rho * curvature))


class Course:
    """The course of a run: the rows of its steps, their gradients and sizes, and what is told.

    Parameters
    ----------
    X, t, weight, problem, n_steps, schedule, seed, first, callback, tick
        As in `solve_stored`.

    Attributes
    ----------
    slopes : Slopes
    draws : Draws
    centered : bool
        Whether features are centered on unlabeled rows, so that the offset is fixed.
    regularized : bool
        Whether the offset is learned, like the coefficient of a feature 1.
    done : int
        Steps taken.
    """

    def __init__(self, X, t, weight, problem, n_steps, schedule, seed, first, callback, tick):
        self.X, self.t, self.row_weight, self.seed = X, t, weight, seed
        self.problem, self.schedule, self.n_steps, self.first = problem, schedule, n_steps, first
        self.callback, self.tick = callback, tick
        self.slopes = Slopes(problem, t, weight, schedule)
        self.draws = Draws(self.slopes, schedule, seed, first)
        self.sizes = schedule.step_sizes(n_steps, self.slopes.total, first)
        self.centered = problem.balance == "mean" and self.slopes.pool.size > 0
        self.regularized = not self.centered and problem.bias == "regularized"
        self.first_averaged = n_steps - schedule.averaged(n_steps)
        self.done, self.status, self.history = 0, "completed", []

    def center_rows(self, size):
        """At most ``size`` unlabeled rows to center on, and their counts (None: equal ones)."""
        unlabeled = np.flatnonzero(self.t == 0)
        sampler = Sampler(unlabeled, self.row_weight[unlabeled], self.seed, CENTER)
        rows, counts = sampler.sample(size)
        return take(self.X, rows), counts

    def gradient(self, labeled, pool, scale, count, mean=None):
        """Return Σ_i a_i φ(x_i) before the scale, Σ_i a_i over the rows of the step, and its size.

        Parameters
        ----------
        labeled : Outputs
            Of the labeled rows.
        pool : Outputs or None
            Of the batch.
        scale : float
            Factor of the features.
        count : int
            As in `Slopes.capped`.
        mean : ndarray of shape (D,), default=None
            Center of the features, before the scale.

        Returns
        -------
        gradient : ndarray of float64, shape (D,)
        total, gamma : float
        """
        slopes, gamma = self.slopes, self.sizes[self.done]
        a = slopes.of_labeled(labeled.f, labeled.drawn)
        gradient, total = a.astype(np.float32) @ labeled.Z, a.sum()
        if pool is not None:
            a = slopes.of_pool(pool.f, self.schedule.share(self.done, self.n_steps))
            if slopes.rho > 0:
                center = scale * pool.Z.mean(axis=0, dtype=float)
                gamma = slopes.capped(gamma, center, count, self.problem.bias == "regularized")
            gradient = gradient + a.astype(np.float32) @ pool.Z
            total += a.sum()
        gradient = gradient.astype(np.float64)
        if mean is not None:
            gradient -= total * mean
        return gradient, total, gamma

    @property
    def averages(self):
        """Whether the iterate after the present step enters the mean."""
        return self.done >= self.first_averaged

    @property
    def n_averaged(self):
        """Number of iterates in the mean."""
        return max(0, self.done - self.first_averaged)

    def stops(self, labeled, pool, gamma, n_features):
        """End a step: count it, report about ten of them, ask whether the run stops here."""
        self.done += 1
        if self.tick is not None:
            self.tick(self.done)
        if self.done % max(1, self.n_steps // REPORTS) and self.done < self.n_steps:
            return False
        self.history.append(self._progress(labeled, pool, gamma, n_features))
        if self.callback is not None and self.callback(self.history[-1]):
            self.status = "stopped"
        return self.status == "stopped"

    def _progress(self, labeled, pool, gamma, n_features):
        """Return a `Progress` from the outputs of the last step."""
        slopes, (loss, u) = self.slopes, self.slopes.losses
        if labeled.drawn is None:
            part = float(slopes.weight @ loss.value(slopes.t, labeled.f))
        else:
            part = slopes.total * float(loss.value(slopes.t[labeled.drawn], labeled.f).mean())
        rest = 0.0
        if pool is not None:
            rest = slopes.star * float(u.value(pool.f).mean())
        return Progress(self.first + self.done, float(gamma), part, rest, n_features)

    def run(self, model, last):
        """Return the `Run` with this (alpha, offset), and the last iterate."""
        return Run(*model, self.done, self.status, tuple(self.history), last)
