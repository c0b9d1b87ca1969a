"""Triply stochastic gradients, Algorithms 1 and 2: a fresh block of features in every step."""

import numpy as np

from s3vm_lib.random_features import outputs
from s3vm_lib.stochastic._steps import (
    CENTER,
    LABELED,
    UNLABELED,
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
    n_steps, batch, m = schedule.n_steps, schedule.batch_size, stream.block_size
    slopes = Slopes(problem, t, weight, schedule, unlabeled_from)
    gammas = step_sizes(
        schedule.rule, schedule.eta0, n_steps, slopes.total, schedule.power, schedule.max_step,
        schedule.first,
    )  # fmt: skip
    pool = Sampler(slopes.pool, slopes.pool_weight, seed, UNLABELED)
    among = Sampler(np.arange(slopes.labeled.size), slopes.weight, seed, LABELED)
    draws_labeled = schedule.labeled_batch or 0
    carried = draws_labeled == 0 or slopes.labeled.size <= CARRIED
    X_labeled = take(X, slopes.labeled if carried else slopes.labeled[:0])
    # Rows of one step in the window: drawn labeled ones unless they are carried, then the batch.
    ahead = 0 if carried else draws_labeled
    width = ahead + (batch if slopes.uses_pool else 0)
    centered = problem.balance == "mean" and slopes.pool.size > 0
    if centered:
        unlabeled = np.flatnonzero(t == 0)
        rows, counts = Sampler(unlabeled, weight[unlabeled], seed, CENTER).sample(CENTER_ROWS)
        X_center = take(X, rows)
    old = 0 if start is None else len(start[0])
    alpha = _Scaled(old + n_steps, m)
    b = 0.0
    f_labeled = np.zeros(X_labeled.shape[0])  # without the offset
    if start is not None:
        alpha.start(start[0])
        b = start[1]
        f_labeled += outputs(stream, X_labeled, alpha.values(old), n_jobs=n_jobs)
    elif centered:
        b = slopes.target
    mean_b, averaged = 0.0, 0
    first_averaged = n_steps - max(1, round(schedule.average * n_steps))
    history, status, done = [], "completed", 0
    while done < n_steps and status == "completed":
        K = min(schedule.window, n_steps - done)
        base = old + done
        chosen, index = [], []
        for step in range(schedule.first + done, schedule.first + done + K):
            if draws_labeled:
                index.append(among.draw(step * draws_labeled, draws_labeled))
            if ahead:
                chosen.append(slopes.labeled[index[-1]])
            if slopes.uses_pool:
                chosen.append(np.sort(pool.draw(step * batch, batch)))
        f_window, rows = np.zeros(0), X_labeled[:0]
        if chosen:
            rows = take(X, np.concatenate(chosen))
            f_window = outputs(stream, rows, alpha.values(base), n_jobs=n_jobs)
        for k in range(K):
            gamma = gammas[done + k]
            block = stream.block(base + k)
            Z_labeled = stream.values(X_labeled, block)
            # Rows of one step by themselves: matrix products of one shape round in one way.
            Z = stream.values(rows[k * width : (k + 1) * width], block)
            drawn = index[k] if draws_labeled else None
            if ahead:
                f, part = f_window[k * width : k * width + ahead] + b, Z[:ahead]
            elif draws_labeled:
                f, part = f_labeled[drawn] + b, Z_labeled[drawn]
            else:
                f, part = f_labeled + b, Z_labeled
            a = slopes.of_labeled(f, drawn)
            gradient, total, now = a.astype(np.float32) @ part, a.sum(), None
            if slopes.uses_pool:
                now = f_window[k * width + ahead : (k + 1) * width] + b
                a = slopes.of_pool(now, slopes.share(done + k))
                if slopes.rho > 0:
                    mean = block.scale * Z[ahead:].mean(axis=0, dtype=float)
                    gamma = slopes.capped(gamma, mean, m, problem.bias == "regularized")
                gradient = gradient + a.astype(np.float32) @ Z[ahead:]
                total += a.sum()
            gradient = gradient.astype(np.float64)
            middle = 0.0
            if centered:
                every = np.arange(X_center.shape[0])
                middle = feature_means(stream, [block], X_center, every, counts)[0]
                gradient -= total * middle
            shrink = 1.0 - gamma
            new = -gamma / m * block.scale * gradient
            alpha.add(new, shrink)
            step = (block.scale * new).astype(np.float32)
            f_labeled *= shrink
            f_labeled += Z_labeled @ step
            if k + 1 < K and width:
                rest = f_window[(k + 1) * width :]
                rest *= shrink
                rest += stream.values(rows[(k + 1) * width :], block) @ step
            if centered:
                b = slopes.target + shrink * (b - slopes.target) - block.scale * float(middle @ new)
            elif problem.bias == "regularized":
                b = shrink * b - gamma * total
            if done + k >= first_averaged:
                alpha.include()
                mean_b += b
                averaged += 1
            n = done + k + 1
            if tick is not None:
                tick(n)
            if n % max(1, n_steps // REPORTS) == 0:
                n_iter, n_features = schedule.first + n, (base + k + 1) * m
                history.append(progress(problem, slopes, f, drawn, now, n_iter, gamma, n_features))
                if callback is not None and callback(history[-1]):
                    status, K = "stopped", k + 1
                    break
        done += K
    last = (alpha.values(old + done), b)
    if averaged == 0:
        return Run(*last, done, status, tuple(history), last)
    mean = alpha.sums(old + done) / averaged
    return Run(mean, mean_b / averaged, done, status, tuple(history), last)


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
