"""Stochastic gradients on features that stay: fixed from the start, or growing block by block."""

import numpy as np

from s3vm_lib.stochastic._parameters import Schedule
from s3vm_lib.stochastic._steps import Course, Outputs, block_features, feature_means, take
from s3vm_lib.utils.threads import in_threads

CENTER_ROWS = 4096  # the mean of the features is taken over at most this many unlabeled rows


def solve_stored(
    X,
    t,
    sample_weight,
    problem,
    stream,
    n_blocks,
    n_steps,
    schedule=None,
    *,
    seed=0,
    growth=0,
    start=None,
    first=0,
    n_jobs=None,
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
    sample_weight : ndarray of shape (n,)
        Weights s.
    problem : Problem
        With ``balance="mean"`` the features are centered on the unlabeled rows, and the offset is
        fixed at 2r − 1; otherwise b, if there is one, is the weight of a further feature 1.
    stream : FeatureStream
    n_blocks : int
        Number of blocks in the end.
    n_steps : int
        Number of steps.
    schedule : Schedule, default=None
        None means `Schedule()`.
    seed : int, default=0
        Seed of the draws of rows.
    growth : int, default=0
        0 draws all blocks before the first step. Otherwise one more block joins every ``growth``
        steps, beyond those of ``start``.
    start : tuple (alpha, offset), default=None
        Where to begin; None begins at 0.
    first : int, default=0
        Number of steps taken before.
    n_jobs : int, default=None
        Threads; the result does not depend on it.
    callback : callable, default=None
        Called with a `Progress` about ten times in a run; a true value stops.
    tick : callable, default=None
        Called with the number of steps done, after each of them.

    Returns
    -------
    Run
    """
    schedule = schedule or Schedule()
    course = Course(X, t, sample_weight, problem, n_steps, schedule, seed, first, callback, tick)
    features = _Growing(stream, n_blocks, course, n_jobs)
    D = n_blocks * stream.block_size
    c, b = np.zeros(D), 0.0
    if start is not None:
        c[: start[0].size], b = start[0].ravel(), start[1]
        features.grow(len(start[0]))
    old, sums, sum_b = features.count, np.zeros(D), 0.0
    # The numbers are the lines of Algorithm 1, which would give coefficients to new features only.
    for k in range(n_steps):  # 1
        # 4: features that join, and stay; none after the first step without growth.
        features.grow(n_blocks if growth == 0 else old + k // growth + 1)
        w = c[: features.size]
        if course.centered:
            b = features.offset(w)
        # 2, 3, 5, 6
        labeled, pool = features.of_step(k, w, b)
        # 7: the gradient with respect to the coefficients of all features, old and new.
        gradient, total, gamma = course.gradient(labeled, pool, features.scale, D, features.mean)
        # 8: they shrink, and move along it; b moves like the coefficient of a feature 1.
        w *= 1.0 - gamma
        w -= gamma / D * features.scale * gradient
        if course.regularized:
            b = (1.0 - gamma) * b - gamma * total
        if course.averages:
            sums += c
            sum_b += b
        if course.stops(labeled, pool, gamma, w.size):
            break
    last = features.model(c, b)
    if course.n_averaged == 0:
        return course.run(last, last)
    mean = features.model(sums / course.n_averaged, sum_b / course.n_averaged)
    return course.run(mean, last)


class _Growing:
    """The blocks drawn so far, side by side, with their values on the labeled rows."""

    def __init__(self, stream, n_blocks, course, n_jobs):
        self.stream, self.n_blocks, self.n_jobs = stream, n_blocks, n_jobs
        self.course, self.X = course, course.X
        self.X_labeled = take(self.X, course.slopes.labeled)
        self.blocks, self.count, self.size = [], 0, 0
        self.scale = stream.block(0).scale
        self.Z_labeled = np.empty((self.X_labeled.shape[0], 0), np.float32)
        self.mean = None  # of the features on the rows that they are centered on
        if course.centered:
            self.mean, self.center = np.empty(0), course.center_rows(CENTER_ROWS)

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
            means = feature_means(self.stream, new, *self.center, self.n_jobs)
            self.mean = np.concatenate([self.mean, means.ravel()])
        self.count, self.size = count, count * self.stream.block_size

    def offset(self, w):
        """Return the offset with which the mean output of the centered rows is the target."""
        return self.course.slopes.target - float(self.mean @ w) * self.scale

    def of_step(self, k, w, b):
        """Return the `Outputs` of the labeled rows of step k, and of its batch if there is one."""
        draws, pool = self.course.draws, None
        drawn = draws.labeled(k)
        Z = self.Z_labeled if drawn is None else self.Z_labeled[drawn]
        labeled = Outputs(self._f(Z, w, b), Z, drawn)
        if draws.batch:
            Z = block_features(
                self.stream, self.blocks, self.X[draws.unlabeled(k)], n_jobs=self.n_jobs
            )
            pool = Outputs(self._f(Z, w, b), Z)
        return labeled, pool

    def _f(self, Z, w, b):
        return self.scale * (Z @ w.astype(np.float32)).astype(np.float64) + b

    def model(self, c, b):
        """Return (alpha, offset) of these coefficients."""
        w = c[: self.size]
        return w.reshape(self.count, -1), b if self.mean is None else self.offset(w)
