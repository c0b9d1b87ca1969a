"""Stochastic gradients on features that stay: fixed from the start, or growing block by block."""

from typing import NamedTuple

import numpy as np

from s3vm_lib.random_features import in_threads, row_tiles, single
from s3vm_lib.stochastic._steps import (
    CENTER,
    Draws,
    Sampler,
    Slopes,
    step_sizes,
    take,
)

CENTER_ROWS = 4096  # the mean of the features is taken over at most this many unlabeled rows
REPORTS = 10  # stages of a run


class Progress(NamedTuple):
    """A stretch of the run."""

    n_iter: int  # steps so far
    step: float  # size γ_t of the last one
    labeled: float  # C Σ_L s ℓ at the last step (estimated where labeled rows are drawn)
    unlabeled: float  # C* Σ_U s u, estimated on the last batch, without the factor of the ramp
    n_features: int


class Run(NamedTuple):
    """What a stochastic solver returns: f(x) = Σ_t Σ_j α_tj φ_tj(x) + offset."""

    alpha: np.ndarray  # (T, m)
    offset: float
    n_iter: int
    status: str  # "completed" or "stopped"
    history: tuple  # of Progress
    last: tuple  # (alpha, offset) of the last iterate, from which a run can go on


def feature_means(stream, blocks, X, rows, counts=None, n_jobs=1):
    """Mean of the features c_j (before the scale) over some rows, shape (T, m) float64.

    Parameters
    ----------
    stream : FeatureStream
    blocks : sequence of Block
    X : {ndarray, CSR matrix} of shape (n, d)
    rows : ndarray of int
        Rows over which the mean is taken.
    counts : ndarray, default=None
        Their weights; None means equal ones.
    n_jobs : int, default=1

    Returns
    -------
    ndarray of shape (T, m)
    """
    weight = np.ones(rows.size) if counts is None else counts
    weight = weight / weight.sum()
    tiles = row_tiles(rows.size, stream.block_size)

    def part(tile):
        Z = single(X[rows[tile]])
        w = weight[tile]
        return np.array([w @ stream.values(Z, block).astype(np.float64) for block in blocks])

    return sum(in_threads(part, tiles, n_jobs))


def solve_stored(
    X,
    t,
    weight,
    problem,
    stream,
    n_blocks,
    schedule,
    *,
    seed=0,
    growth=0,
    unlabeled_from="unlabeled",
    start=None,
    n_jobs=1,
    callback=None,
    tick=None,
):
    """Stochastic gradient descent in the space of all features drawn so far (FRS3VM).

    With D features in the end, f = Σ_j c_j φ_j + b and ‖f‖² = D Σ_j c_j², a step is

        c ← (1 − γ) c − (γ/D) Σ_i a_i φ(x_i),

    where a_i are the slopes of `Slopes` on the labeled rows and a batch of unlabeled ones. D is the
    final number from the first step on: while features are few, each would otherwise be moved by
    D over that number, and what the first of them are made to say is never quite unlearned.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        May be a memory map: only the rows of a batch are read.
    t : ndarray of shape (n,)
        −1 and +1, and 0 for unlabeled rows.
    weight : ndarray of shape (n,)
        Weights s.
    problem : Problem
        With ``balance="mean"`` the features are centered on the unlabeled rows, and the offset is
        fixed at 2r − 1; otherwise b, if there is one, is the weight of a further feature 1.
    stream : FeatureStream
    n_blocks : int
        Number of blocks in the end.
    schedule : Schedule
    seed : int, default=0
        Seed of the draws of rows.
    growth : int, default=0
        0 draws all blocks before the first step. Otherwise one more block joins every ``growth``
        steps, beyond those of ``start``.
    unlabeled_from : {"unlabeled", "all"}, default="unlabeled"
    start : tuple (alpha, offset), default=None
        Where to begin; None begins at 0.
    n_jobs : int, default=1
        Threads; the result does not depend on it.
    callback : callable, default=None
        Called with a `Progress` about ten times in a run; a true value stops.
    tick : callable, default=None
        Called with the number of steps done, after each of them.

    Returns
    -------
    Run
    """
    n_steps, D = schedule.n_steps, n_blocks * stream.block_size
    slopes = Slopes(problem, t, weight, schedule, unlabeled_from)
    gammas = step_sizes(
        schedule.rule, schedule.eta0, n_steps, slopes.total, schedule.power, schedule.max_step,
        schedule.first,
    )  # fmt: skip
    draws = Draws(slopes, schedule, seed)
    features = _Growing(stream, n_blocks, X, slopes.labeled, n_jobs)
    centered = problem.balance == "mean" and slopes.pool.size > 0
    if centered:
        unlabeled = np.flatnonzero(t == 0)
        features.center(*Sampler(unlabeled, weight[unlabeled], seed, CENTER).sample(CENTER_ROWS))
    c, b = np.zeros(D), 0.0
    if start is not None:
        c[: start[0].size] = start[0].ravel()
        b = start[1]
        features.grow(len(start[0]))
    old = features.count
    mean, mean_b, averaged = np.zeros_like(c), 0.0, 0
    first_averaged = n_steps - max(1, round(schedule.average * n_steps))
    history, status, done, every = [], "completed", 0, max(1, n_steps // REPORTS)
    for k in range(n_steps):
        features.grow(n_blocks if growth == 0 else old + k // growth + 1)
        w = c[: features.size]
        if centered:
            b = features.offset(slopes.target, w)
        # The outputs of the rows of this step.
        drawn, pool = draws.labeled(k), None
        labeled = (*features.of_labeled(w, b, drawn), drawn)
        if slopes.uses_pool:
            pool = features.of_rows(take(X, draws.unlabeled(k)), w, b)
        # c ← (1 − γ) c − (γ/D) Σ a_i φ(x_i), and b like the coefficient of a feature 1.
        gradient, total, gamma = slopes.gradient(k, gammas[k], labeled, pool, features.scale, D)
        if centered:
            gradient -= total * features.mean
        w *= 1.0 - gamma
        w -= gamma / D * features.scale * gradient
        if not centered and problem.bias == "regularized":
            b = (1.0 - gamma) * b - gamma * total
        if k >= first_averaged:
            mean += c
            mean_b += b
            averaged += 1
        done = k + 1
        if tick is not None:
            tick(done)
        if done % every == 0 or (callback is not None and done == n_steps):
            n_iter = schedule.first + done
            history.append(progress(problem, slopes, labeled, pool, n_iter, gamma, w.size))
            if callback is not None and callback(history[-1]):
                status = "stopped"
                break
    shape = (features.count, stream.block_size)
    last = c[: features.size].reshape(shape)
    alpha = (mean[: features.size] / averaged).reshape(shape) if averaged else last
    offset = mean_b / averaged if averaged else b
    if centered:
        flat = features.mean * features.scale
        offset = slopes.target - float(flat @ alpha.ravel())
        b = slopes.target - float(flat @ last.ravel())
    return Run(alpha, offset, done, status, tuple(history), (last, b))


def progress(problem, slopes, labeled, pool, n_iter, gamma, n_features):
    """A `Progress` from the outputs of the last step, given as in `Slopes.gradient`."""
    f, _, drawn = labeled
    if drawn is None:
        part = float(slopes.weight @ problem.labeled_loss.value(slopes.t, f))
    else:
        losses = problem.labeled_loss.value(slopes.t[drawn], f)
        part = slopes.total * float(losses.mean())
    rest = 0.0
    if pool is not None and problem.unlabeled_loss is not None:
        rest = slopes.star * float(problem.unlabeled_loss.value(pool[0]).mean())
    return Progress(n_iter, float(gamma), part, rest, n_features)


class _Growing:
    """The blocks drawn so far, side by side, with their values on the labeled rows."""

    def __init__(self, stream, n_blocks, X, labeled, n_jobs):
        self.stream, self.n_blocks, self.n_jobs = stream, n_blocks, n_jobs
        self.X, self.labeled = X, labeled
        self.X_labeled = take(X, labeled)
        self.blocks, self.count, self.size = [], 0, 0
        self.scale = stream.block(0).scale
        self.Z_labeled = np.empty((labeled.size, 0), np.float32)
        self.mean, self.rows = None, None

    def center(self, rows, counts):
        """Center on the mean over these rows."""
        self.rows, self.counts, self.mean = take(self.X, rows), counts, np.empty(0)

    def grow(self, count):
        """Draw blocks until there are ``count``, but at most n_blocks."""
        count = min(count, self.n_blocks)
        if count <= self.count:
            return
        new = in_threads(self.stream.block, range(self.count, count), self.n_jobs)
        self.blocks += new
        Z = [self.stream.values(self.X_labeled, block) for block in new]
        self.Z_labeled = np.hstack([self.Z_labeled, *Z])
        if self.mean is not None:
            index = np.arange(self.rows.shape[0])
            means = feature_means(self.stream, new, self.rows, index, self.counts, self.n_jobs)
            self.mean = np.concatenate([self.mean, means.ravel()])
        self.count, self.size = count, count * self.stream.block_size

    def values(self, rows):
        """Features of some rows, float32 of shape (n, size), block by block."""
        m = self.stream.block_size
        Z = np.empty((rows.shape[0], self.size), np.float32)
        parts = [(tile, block) for tile in row_tiles(rows.shape[0], m) for block in self.blocks]

        def fill(part):
            tile, block = part
            k = block.index
            Z[tile, k * m : (k + 1) * m] = self.stream.values(rows[tile], block)

        in_threads(fill, parts, self.n_jobs)
        return Z

    def offset(self, target, w):
        """The offset with which the mean output of the rows of `center` is ``target``."""
        return target - float(self.mean @ w) * self.scale

    def of_labeled(self, w, b, drawn):
        """Outputs and features of the labeled rows, or of draws among them."""
        Z = self.Z_labeled if drawn is None else self.Z_labeled[drawn]
        return self.scale * (Z @ w.astype(np.float32)).astype(np.float64) + b, Z

    def of_rows(self, rows, w, b):
        """Outputs and features of other rows."""
        Z = self.values(rows)
        return self.scale * (Z @ w.astype(np.float32)).astype(np.float64) + b, Z
