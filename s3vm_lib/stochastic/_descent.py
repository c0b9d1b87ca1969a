"""Stochastic gradients on features that stay, and on a fresh block in every step.

Features that stay are drawn at the start or block by block (FRS3VM, and TSGS3VM by default).
Those that are drawn anew are Algorithms 1 and 2 of TSGS3VM.
"""

import numpy as np

from s3vm_lib.random_features import outputs, single
from s3vm_lib.stochastic._steps import Course, Outputs, Schedule, block_features, feature_means
from s3vm_lib.utils.threads import in_threads

STORED_CENTER_ROWS = 4096  # the mean of stored features is taken over at most so many rows
CENTER_ROWS = 1024  # rows on which each fresh block is centered for the exact balance
CARRIED = 4096  # outputs of at most this many labeled rows are carried along

# --- Features that stay ---------------------------------------------------------------------------


def solve_stored(
    X, t, sample_weight, problem, stream, n_blocks, n_steps, schedule=None, *,
    seed=0, growth=0, start=None, first=0, n_jobs=None, callback=None, tick=None,
):  # fmt: skip
    """Descend by stochastic gradients in the space of all features drawn so far (FRS3VM).

    With D features in the end, f = Σ_j c_j φ_j + b and ‖f‖² = D Σ_j c_j², a step is

        c ← (1 − γ) c − (γ/D) Σ_i a_i φ(x_i),

    where a_i are the slopes of `Slopes` on the labeled rows and a batch of unlabeled ones. D is the
    final number from the first step on: while features are few, each would otherwise be moved by
    D over that number, and the coefficients of the first of them keep an influence to the end.

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
        self.X_labeled = single(self.X[course.slopes.labeled])
        self.blocks, self.count, self.size = [], 0, 0
        self.scale = stream.block(0).scale
        self.Z_labeled = np.empty((self.X_labeled.shape[0], 0), np.float32)
        self.mean = None  # of the features on the rows that they are centered on
        if course.centered:
            self.mean, self.center = np.empty(0), course.center_rows(STORED_CENTER_ROWS)

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


# --- A fresh block in every step ------------------------------------------------------------------


def solve_triply_stochastic(
    X, t, sample_weight, problem, stream, n_steps, schedule=None, *,
    window=8, seed=0, start=None, first=0, n_jobs=None, callback=None, tick=None,
):  # fmt: skip
    """Run Algorithm 1 of TSGS3VM in windows: old features are redrawn once for several steps.

    Step t draws a new block of m features, which gets the coefficients

        α_t = −(γ_t/m) Σ_i a_i φ_t(x_i),

    where a_i are the slopes of `Slopes` at the current f; all older coefficients are multiplied
    by 1 − γ_t. The outputs of f on the rows of the next steps, as many as the window has, are
    computed together, so that every old block is drawn once per window; those of the labeled rows
    are carried along, unless they are drawn from more than 4096. What the steps of a window add to
    the outputs of the later ones is added as they are taken: a window changes the order of the
    additions and nothing else.

    Parameters
    ----------
    X, t, sample_weight, problem, n_steps, schedule, seed, n_jobs, callback, tick
        As in `solve_stored`.
    stream : FeatureStream
        Step number k draws block k.
    window : int, default=8
        Steps between two evaluations of old features.
    start : tuple (alpha, offset), default=None
        Where to begin, the blocks of ``first`` steps; None begins at 0.
    first : int, default=0
        Number of steps taken before.

    Returns
    -------
    Run
        Memory: T·m numbers for the coefficients, and twice as many for their mean.
    """
    schedule, m = schedule or Schedule(), stream.block_size
    course = Course(X, t, sample_weight, problem, n_steps, schedule, seed, first, callback, tick)
    blocks, b = (np.zeros((0, m)), 0.0) if start is None else start
    old, alpha = len(blocks), _Scaled(blocks, n_steps)
    known = _Known(course, stream, n_jobs, blocks)
    target, mean, sum_b = course.slopes.target, None, 0.0
    if course.centered:
        center = course.center_rows(CENTER_ROWS)
        b = target if start is None else b
    # The numbers are the lines of Algorithm 1; lines 5 and 6 are Algorithm 2.
    for step in range(n_steps):  # 1
        if step % window == 0:  # 2, 3, 5, 6: for all steps of the window
            known.look_ahead(step, min(window, n_steps - step), alpha.values())
        # 4: a new block, and its values on the rows of this step.
        block = stream.block(old + step)
        labeled, pool = known.of_step(step % window, block, b)
        # 7: its coefficients, from the slopes at f; with an exact balance, features are centered.
        if course.centered:
            mean = feature_means(stream, [block], *center)[0]
        gradient, total, gamma = course.gradient(labeled, pool, block.scale, m, mean)
        new = -gamma / m * block.scale * gradient
        # 8: the factor 1 − γ of all older blocks, and what the step does to the known outputs.
        alpha.add(new, 1.0 - gamma)
        known.follow(step % window, block, 1.0 - gamma, (block.scale * new).astype(np.float32))
        # The offset holds the mean output at its target, or is the coefficient of a feature 1.
        if course.centered:
            fall = block.scale * float(mean @ new)
            b = target + (1.0 - gamma) * (b - target) - fall
        elif course.regularized:
            b = (1.0 - gamma) * b - gamma * total
        if course.averages:
            alpha.include()
            sum_b += b
        if course.stops(labeled, pool, gamma, alpha.count * m):
            break
    last = (alpha.values(), b)
    if course.n_averaged == 0:
        return course.run(last, last)
    return course.run((alpha.sums() / course.n_averaged, sum_b / course.n_averaged), last)


class _Known:
    """Outputs, without the offset, of the rows that the coming steps ask for.

    Those of the labeled rows are carried from step to step, unless they are drawn from more than
    4096. Those of all rows of a window are computed when it begins.
    """

    def __init__(self, course, stream, n_jobs, alpha):
        self.X, self.labeled, self.draws = course.X, course.slopes.labeled, course.draws
        self.stream, self.n_jobs = stream, n_jobs
        draws = self.draws
        carried = draws.size == 0 or self.labeled.size <= CARRIED
        self.X_labeled = single(self.X[self.labeled if carried else self.labeled[:0]])
        self.f_labeled = outputs(stream, self.X_labeled, alpha, n_jobs=n_jobs)
        # Rows of a step in the window: drawn labeled ones unless they are carried, then the batch.
        self.ahead = 0 if carried else draws.size
        self.width = self.ahead + draws.batch

    def look_ahead(self, first, K, alpha):
        """Draw the rows of K steps, and every old block once for all of them."""
        steps = range(first, first + K)
        self.drawn, chosen = [self.draws.labeled(step) for step in steps], []
        for drawn, step in zip(self.drawn, steps, strict=True):
            if self.ahead:
                chosen.append(self.labeled[drawn])
            if self.draws.batch:
                chosen.append(self.draws.unlabeled(step))
        self.rows, self.f = self.X_labeled[:0], np.zeros(0)
        if chosen:
            self.rows = single(self.X[np.concatenate(chosen)])
            self.f = outputs(self.stream, self.rows, alpha, n_jobs=self.n_jobs)

    def of_step(self, k, block, b):
        """Return the `Outputs` of the labeled rows of step k of the window, and of its batch."""
        here, drawn = slice(k * self.width, (k + 1) * self.width), self.drawn[k]
        self.Z_labeled = self.stream.values(self.X_labeled, block)
        # Rows of one step by themselves: matrix products of one shape round in one way.
        f, Z = self.f[here] + b, self.stream.values(self.rows[here], block)
        pool = Outputs(f[self.ahead :], Z[self.ahead :]) if self.draws.batch else None
        if self.ahead:
            return Outputs(f[: self.ahead], Z[: self.ahead], drawn), pool
        which = slice(None) if drawn is None else drawn
        return Outputs(self.f_labeled[which] + b, self.Z_labeled[which], drawn), pool

    def follow(self, k, block, shrink, step):
        """Add what step k of the window adds to the outputs of the later ones."""
        self.f_labeled *= shrink
        self.f_labeled += self.Z_labeled @ step
        later = slice((k + 1) * self.width, None)
        if self.f[later].size:
            self.f[later] *= shrink
            self.f[later] += self.stream.values(self.rows[later], block) @ step


class _Scaled:
    """Blocks α_t = P·a_t under a common factor P, so that line 8 of Algorithm 1 costs nothing.

    The sum of the iterates of a block is a_t times the sum of the factors since it was added, and
    what it had come to when P was last set back to 1.
    """

    def __init__(self, alpha, more):
        self.a = np.concatenate([alpha, np.zeros((more, alpha.shape[1]))])
        self.past = np.zeros_like(self.a)  # sums of the iterates before the factor was set to 1
        self.before = np.zeros(len(self.a))  # Σ of the factors before the block was added
        self.count, self.factor, self.total = len(alpha), 1.0, 0.0

    def add(self, new, shrink):
        """Multiply all blocks by ``shrink`` and add one."""
        self.factor *= shrink
        if self.factor < 1e-100 + 1e-6 * self.total:
            # Before the factor underflows, or where a step of size 1 removes all; and while
            # the total, to which it is added, still has its digits.
            self.past[: self.count] += self._recent()
            self.a[: self.count] *= self.factor
            self.before[: self.count] = 0.0
            self.total, self.factor = 0.0, 1.0
        self.a[self.count] = new / self.factor
        self.before[self.count] = self.total
        self.count += 1

    def include(self):
        """Let the present iterate enter the sums."""
        self.total += self.factor

    def values(self):
        """Return the blocks, of shape (count, m)."""
        return self.factor * self.a[: self.count]

    def sums(self):
        """Return sums of the iterates of each block, of shape (count, m)."""
        return self.past[: self.count] + self._recent()

    def _recent(self):
        """Return the part of `sums` since the factor was set to 1."""
        return (self.total - self.before[: self.count])[:, None] * self.a[: self.count]
