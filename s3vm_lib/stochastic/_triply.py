"""Triply stochastic gradients, Algorithms 1 and 2: a fresh block of features in every step."""

import numpy as np

from s3vm_lib.random_features import outputs
from s3vm_lib.stochastic._steps import (
    CENTER,
    Draws,
    Sampler,
    Slopes,
    step_sizes,
    take,
)
from s3vm_lib.stochastic._stored import REPORTS, Run, feature_means, progress

CENTER_ROWS = 1024  # rows on which each block is centered for the exact balance
CARRIED = 4096  # outputs of at most this many labeled rows are carried along


def solve_triply_stochastic(
    X,
    t,
    weight,
    problem,
    stream,
    schedule,
    *,
    seed=0,
    unlabeled_from="unlabeled",
    start=None,
    n_jobs=1,
    callback=None,
    tick=None,
):
    """Algorithm 1 of TSGS3VM in windows: old features are redrawn once for several steps.

    In step t a block of m features is drawn that nobody has seen, and gets the coefficients

        α_t = −(γ_t/m) Σ_i a_i φ_t(x_i),

    where a_i are the slopes of `Slopes` at the current f; all older coefficients are multiplied
    by 1 − γ_t. The outputs of f on the rows of the next K = ``schedule.window`` steps are computed
    together, so that every old block is drawn once per window; those of the labeled rows are
    carried along, unless they are drawn from more than 4096. What the steps of a window add to
    the outputs of the later ones is added as they are taken: a window changes the order of the
    additions and nothing else.

    Parameters
    ----------
    X, t, weight, problem, seed, unlabeled_from, n_jobs, callback, tick
        As in `solve_stored`.
    stream : FeatureStream
        Step number k draws block k.
    schedule : Schedule
    start : tuple (alpha, offset), default=None
        Where to begin, ``schedule.first`` blocks; None begins at 0.

    Returns
    -------
    Run
        Memory: T·m numbers for the coefficients, and as many for their mean.
    """
    n_steps, m = schedule.n_steps, stream.block_size
    slopes = Slopes(problem, t, weight, schedule, unlabeled_from)
    gammas = step_sizes(
        schedule.rule, schedule.eta0, n_steps, slopes.total, schedule.power, schedule.max_step,
        schedule.first,
    )  # fmt: skip
    known = _Known(X, slopes, Draws(slopes, schedule, seed), stream, n_jobs)
    centered = problem.balance == "mean" and slopes.pool.size > 0
    if centered:
        unlabeled = np.flatnonzero(t == 0)
        rows, counts = Sampler(unlabeled, weight[unlabeled], seed, CENTER).sample(CENTER_ROWS)
        X_center, every_row = take(X, rows), np.arange(rows.size)
    old = 0 if start is None else len(start[0])
    alpha, b = _Scaled(old + n_steps, m), slopes.target if centered else 0.0
    if start is not None:
        alpha.start(start[0])
        b = start[1]
        known.start(alpha.values(old))
    mean_b, averaged = 0.0, 0
    first_averaged = n_steps - max(1, round(schedule.average * n_steps))
    history, status, done, every = [], "completed", 0, max(1, n_steps // REPORTS)
    while done < n_steps and status == "completed":
        K = min(schedule.window, n_steps - done)
        known.look_ahead(done, K, alpha.values(old + done))  # lines 2, 3, 5 and 6 of K steps
        for k in range(K):
            # 4
            block = stream.block(old + done)
            labeled, pool = known.of_step(k, block, b)
            # 7
            gradient, total, gamma = slopes.gradient(
                done, gammas[done], labeled, pool, block.scale, m
            )
            middle = 0.0
            if centered:
                middle = feature_means(stream, [block], X_center, every_row, counts)[0]
                gradient -= total * middle
            new = -gamma / m * block.scale * gradient
            # 8
            alpha.add(new, 1.0 - gamma)
            known.follow(k, block, 1.0 - gamma, (block.scale * new).astype(np.float32))
            if centered:
                fall = block.scale * float(middle @ new)
                b = slopes.target + (1.0 - gamma) * (b - slopes.target) - fall
            elif problem.bias == "regularized":
                b = (1.0 - gamma) * b - gamma * total
            if done >= first_averaged:
                alpha.include()
                mean_b += b
                averaged += 1
            done += 1
            if tick is not None:
                tick(done)
            if done % every == 0:
                n_iter, n_features = schedule.first + done, (old + done) * m
                history.append(progress(problem, slopes, labeled, pool, n_iter, gamma, n_features))
                if callback is not None and callback(history[-1]):
                    status = "stopped"
                    break
    last = (alpha.values(old + done), b)
    if averaged == 0:
        return Run(*last, done, status, tuple(history), last)
    mean = alpha.sums(old + done) / averaged
    return Run(mean, mean_b / averaged, done, status, tuple(history), last)


class _Known:
    """Outputs, without the offset, of the rows that the coming steps ask for.

    Those of the labeled rows are carried from step to step, unless they are drawn from more than
    4096. Those of all rows of a window are computed when it begins.
    """

    def __init__(self, X, slopes, draws, stream, n_jobs):
        self.X, self.slopes, self.draws = X, slopes, draws
        self.stream, self.n_jobs = stream, n_jobs
        carried = draws.size == 0 or slopes.labeled.size <= CARRIED
        self.X_labeled = take(X, slopes.labeled if carried else slopes.labeled[:0])
        self.f_labeled = np.zeros(self.X_labeled.shape[0])
        # Rows of a step in the window: drawn labeled ones unless they are carried, then the batch.
        self.ahead = 0 if carried else draws.size
        self.width = self.ahead + draws.batch

    def start(self, alpha):
        """Begin with these blocks."""
        self.f_labeled += outputs(self.stream, self.X_labeled, alpha, n_jobs=self.n_jobs)

    def look_ahead(self, done, K, alpha):
        """Draw the rows of K steps, and every old block once for all of them."""
        steps = range(done, done + K)
        self.drawn, chosen = [self.draws.labeled(step) for step in steps], []
        for drawn, step in zip(self.drawn, steps, strict=True):
            if self.ahead:
                chosen.append(self.slopes.labeled[drawn])
            if self.draws.batch:
                chosen.append(self.draws.unlabeled(step))
        self.rows, self.f = self.X_labeled[:0], np.zeros(0)
        if chosen:
            self.rows = take(self.X, np.concatenate(chosen))
            self.f = outputs(self.stream, self.rows, alpha, n_jobs=self.n_jobs)

    def of_step(self, k, block, b):
        """Outputs and features of the rows of step k of the window, as `Slopes.gradient` asks."""
        here, drawn = slice(k * self.width, (k + 1) * self.width), self.drawn[k]
        self.Z_labeled = self.stream.values(self.X_labeled, block)
        # Rows of one step by themselves: matrix products of one shape round in one way.
        f, Z = self.f[here] + b, self.stream.values(self.rows[here], block)
        pool = (f[self.ahead :], Z[self.ahead :]) if self.draws.batch else None
        if self.ahead:
            return (f[: self.ahead], Z[: self.ahead], drawn), pool
        which = slice(None) if drawn is None else drawn
        return (self.f_labeled[which] + b, self.Z_labeled[which], drawn), pool

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

    The sum of the iterates of a block is a_t times the sum of the factors since it was added.
    """

    def __init__(self, n_blocks, m):
        self.a = np.zeros((n_blocks, m))
        self.before = np.zeros(n_blocks)  # Σ of the factors before the block was added
        self.count, self.factor, self.total = 0, 1.0, 0.0

    def start(self, alpha):
        self.a[: len(alpha)] = alpha
        self.count = len(alpha)

    def add(self, new, shrink):
        """Multiply all blocks by ``shrink`` and add one."""
        self.factor *= shrink
        if self.factor < 1e-100:
            # Before the factor underflows, or where a step of size 1 forgets everything.
            self.a[: self.count] *= self.factor
            scale = self.factor if self.factor > 0 else np.inf
            self.before /= scale
            self.total, self.factor = self.total / scale, 1.0
        self.a[self.count] = new / self.factor
        self.before[self.count] = self.total
        self.count += 1

    def include(self):
        """Let the present iterate enter the sums."""
        self.total += self.factor

    def values(self, count):
        return self.factor * self.a[:count]

    def sums(self, count):
        return (self.total - self.before[:count])[:, None] * self.a[:count]
