"""Triply stochastic gradients, Algorithms 1 and 2: a fresh block of features in every step."""

import numpy as np

from s3vm_lib.random_features import outputs
from s3vm_lib.stochastic._parameters import Schedule
from s3vm_lib.stochastic._steps import Course, Outputs, feature_means, take

CENTER_ROWS = 1024  # rows on which each block is centered for the exact balance
CARRIED = 4096  # outputs of at most this many labeled rows are carried along


def solve_triply_stochastic(
    X,
    t,
    sample_weight,
    problem,
    stream,
    n_steps,
    schedule=None,
    *,
    window=8,
    seed=0,
    start=None,
    first=0,
    n_jobs=None,
    callback=None,
    tick=None,
):
    """Algorithm 1 of TSGS3VM in windows: old features are redrawn once for several steps.

    In step t a block of m features is drawn that nobody has seen, and gets the coefficients

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
    known = _Known(course, stream, n_jobs)
    target = course.slopes.target
    old = 0 if start is None else len(start[0])
    alpha, b = _Scaled(old + n_steps, m), 0.0
    mean, sum_b = None, 0.0
    if course.centered:
        b, center = target, course.center_rows(CENTER_ROWS)
    if start is not None:
        alpha.start(start[0])
        known.start(start[0])
        b = start[1]
    # The numbers are the lines of Algorithm 1; lines 5 and 6 are Algorithm 2.
    for step in range(n_steps):  # 1
        if step % window == 0:  # 2, 3, 5, 6: for all steps of the window
            known.look_ahead(step, min(window, n_steps - step), alpha.values())
        # 4: a block that nobody has seen, and its values on the rows of this step.
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

    def __init__(self, course, stream, n_jobs):
        self.X, self.labeled, self.draws = course.X, course.slopes.labeled, course.draws
        self.stream, self.n_jobs = stream, n_jobs
        draws = self.draws
        carried = draws.size == 0 or self.labeled.size <= CARRIED
        self.X_labeled = take(self.X, self.labeled if carried else self.labeled[:0])
        self.f_labeled = np.zeros(self.X_labeled.shape[0])
        # Rows of a step in the window: drawn labeled ones unless they are carried, then the batch.
        self.ahead = 0 if carried else draws.size
        self.width = self.ahead + draws.batch

    def start(self, alpha):
        """Begin with the coefficients of these blocks."""
        self.f_labeled += outputs(self.stream, self.X_labeled, alpha, n_jobs=self.n_jobs)

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
            self.rows = take(self.X, np.concatenate(chosen))
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

    def __init__(self, n_blocks, m):
        self.a = np.zeros((n_blocks, m))
        self.past = np.zeros((n_blocks, m))  # sums of the iterates before the factor was set to 1
        self.before = np.zeros(n_blocks)  # Σ of the factors before the block was added
        self.count, self.factor, self.total = 0, 1.0, 0.0

    def start(self, alpha):
        """Begin with these blocks."""
        self.a[: len(alpha)] = alpha
        self.count = len(alpha)

    def add(self, new, shrink):
        """Multiply all blocks by ``shrink`` and add one."""
        self.factor *= shrink
        if self.factor < 1e-100 + 1e-6 * self.total:
            # Before the factor underflows, or where a step of size 1 forgets everything; and while
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
