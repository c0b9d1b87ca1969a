"""Parameters in groups; draws, slopes and the course of a run, which both solvers share."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Literal, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from s3vm_lib.random_features import DATA, row_tiles, single
from s3vm_lib.smooth import ANNEALING, annealing_stages

from s3vm_lib.utils.limits import (  # isort: skip
    Checked, Count, Share, Tolerance, ToleranceOrZero, Weight, WeightOrZero,
)  # fmt: skip
from s3vm_lib.utils.random_numbers import hash_key, integers, uniforms
from s3vm_lib.utils.threads import in_threads
from s3vm_lib.utils.validation import Client

# Streams below the one of the data: draws of labeled and unlabeled rows, of the rows on which
# features are centered, and of those that the polish reads.
LABELED, UNLABELED, CENTER, POLISH = range(4)
REPORTS = 10  # stages of a run

# --- Parameters in groups -------------------------------------------------------------------------

# Step sizes, and their constant where none is given.
RULES = {"sqrt": 50.0, "constant": 0.02, "horizon": 1.0}


@dataclass(frozen=True, kw_only=True)
class Features(Checked):
    """How random features are drawn, for the parameter ``features``; see `FeatureStream`.

    Parameters
    ----------
    paired : bool, default=True
        Cosine and sine of every random frequency, in place of the paper's random phases.
    orthogonal : bool, default=False
        Orthogonal frequencies, rbf only.
    block_size : int, default=None
        `TSGS3VM` alone: features m drawn in a step. None means 64 with ``update="all"``, and the
        square root of the number of rows with ``"block"``, as in the paper.
    window : int, default=8
        `TSGS3VM` alone: steps of ``update="block"`` whose rows are evaluated together, so that old
        features are redrawn once for all of them. It has no influence on the result but by
        rounding.

    Raises
    ------
    ValueError
        For a value out of range, naming the parameter.
    """

    paired: bool = True
    orthogonal: bool = False
    block_size: Count | None = None
    window: Count = 8


@dataclass(frozen=True, kw_only=True)
class Schedule(Checked):
    """How stochastic steps are taken, for the parameter ``schedule``.

    Parameters
    ----------
    batch_size : int, default=256
        Unlabeled rows of a step.
    labeled_batch : int, default=None
        Labeled rows drawn in a step; None takes all of them. Give a number where labels abound.
    rule : {"sqrt", "constant", "horizon"}, default="sqrt"
        Step sizes: eta0/(C Σ_L s √t); eta0, which is the paper's 1/η; eta0/T^(3/4), with the
        paper's θ of Theorems 1 and 2.
    eta0 : float, default=None
        Constant of the rule; None means 50, 0.02 and 1, in ``fit`` divided by half the mean
        k(x, x) of the labeled rows where that is above 2: longer steps would overshoot.
    max_step : float, default=0.5
        Largest step size.
    average : float, default=0.5
        The mean of this last share of the iterates is taken; 0 takes the last one.
    ramp : float, default=0.5
        C* rises from 0 to its value over this first share of the steps.
    balance_penalty : float, default=None
        None fixes the mean output over the unlabeled rows at 2r − 1, by features that are centered
        on them. A number ρ adds ½ρ C Σ_L s (mean − (2r − 1))² to the objective of the steps
        instead, with the mean taken over each batch; ρ then limits the step size, so that a
        large one makes learning slow.

    Raises
    ------
    ValueError
        For a value out of range, naming the parameter.
    """

    batch_size: Count = 256
    labeled_batch: Count | None = None
    rule: Literal["sqrt", "constant", "horizon"] = "sqrt"
    eta0: Weight | None = None
    max_step: Annotated[float, Interval(Real, 0, 1, closed="right")] = 0.5
    average: Share = 0.5
    ramp: Share = 0.5
    balance_penalty: WeightOrZero | None = None

    def step_sizes(self, n_steps, weight=1.0, first=0):
        """Return the step sizes γ_t of a run.

        Parameters
        ----------
        n_steps : int
            Length T of the run.
        weight : float, default=1.0
            C Σ_L s, which is the paper's C: the function moves by γ_t times this.
        first : int, default=0
            Number of steps taken before, which counts for ``"sqrt"``.

        Returns
        -------
        ndarray of shape (n_steps,)
        """
        eta0 = RULES[self.rule] if self.eta0 is None else float(self.eta0)
        t = np.arange(first + 1, first + n_steps + 1, dtype=float)
        if self.rule == "sqrt":
            gamma = eta0 / (weight * np.sqrt(t))
        elif self.rule == "constant":
            gamma = np.full(n_steps, eta0)
        else:
            gamma = np.full(n_steps, eta0 * max(1, n_steps) ** -0.75)
        return np.minimum(gamma, self.max_step)

    def share(self, step, n_steps):
        """Return the share of C* at a step of a run, 0 ≤ step < n_steps."""
        rise = self.ramp * n_steps
        return 1.0 if rise <= 0 else min(1.0, (step + 1) / rise)

    def averaged(self, n_steps):
        """Return the number of the last iterates of a run whose mean is taken."""
        return max(1, round(self.average * n_steps))


@dataclass(frozen=True, kw_only=True)
class Polish(Checked):
    """L-BFGS on the features that were drawn, for the parameter ``polish``.

    Parameters
    ----------
    rows : int, default=10000
        Largest number of unlabeled rows that L-BFGS takes, a random sample; None means all.
    annealing : {"geometric", "paper"} or sequence of float, default="geometric"
        Factors of C* with ``n_steps=0``, see `QNS3VM`. After stochastic steps there is no need.
    tol : float, default=1e-5
        L-BFGS ends when no entry of the gradient of J/(C Σ_L s) with respect to the coefficients
        of the features exceeds this, or this times the mean √k(x, x) where that is below one.
    ftol : float, default=1e-9
        It also ends when an iteration lowers J/(C Σ_L s) by less than this, relative to the larger
        of its value and 1.
    max_iter : int, default=500
        Largest number of iterations (of a stage).
    client : dask.distributed.Client, default=None
        The sums, over all rows whatever ``rows`` is, are taken on this cluster, by blocks of
        rows; the rows have to be given as a `numpy.memmap` that all workers can open. A clone of
        the estimator has the client, a pickle or a copy has None.

    Raises
    ------
    ValueError
        For a value out of range, naming the parameter.
    """

    rows: Count | None = 10_000
    annealing: Literal["geometric", "paper"] | Sequence[float] = "geometric"
    tol: Tolerance = 1e-5
    ftol: ToleranceOrZero = 1e-9
    max_iter: Count = 500
    client: Client = None

    def __post_init__(self):
        super().__post_init__()
        if not isinstance(self.annealing, str):  # a tuple: what is frozen has no arrays
            object.__setattr__(self, "annealing", annealing_stages(self.annealing, ANNEALING))

    @property
    def stages(self):
        """The factors of C*, one for each stage."""
        return annealing_stages(self.annealing, ANNEALING)


# --- Steps ----------------------------------------------------------------------------------------


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
        """Return the rows number start, …, start + count − 1, as indices of shape (count,)."""
        if self.cumulative is None:
            index = np.empty(count, np.int64)
            integers(self.key, start, self.rows.size, index)
        else:
            # By the inverse of the distribution function.
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
    """Return the mean of the features c_j (before the scale) over some rows, float64 (T, m).

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
        # The balance as a penalty, where it is no constraint.
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
        # The mean over the batch stands for the sum over U.
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
    """The course of a run: the rows of its steps, their gradients and sizes, and what is reported.

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
        """Return at most ``size`` unlabeled rows to center on, and their counts (None: equal)."""
        unlabeled = np.flatnonzero(self.t == 0)
        sampler = Sampler(unlabeled, self.row_weight[unlabeled], self.seed, CENTER)
        rows, counts = sampler.sample(size)
        return single(self.X[rows]), counts

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
            # A steep penalty shortens the step.
            if slopes.rho > 0:
                center = scale * pool.Z.mean(axis=0, dtype=float)
                gamma = slopes.capped(gamma, center, count, self.problem.bias == "regularized")
            gradient = gradient + a.astype(np.float32) @ pool.Z
            total += a.sum()
        gradient = gradient.astype(np.float64)
        # Features are centered: Σ a_i (φ(x_i) − mean).
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
        # About ten reports, one of them at the end.
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
