"""What `FRS3VM` and `TSGS3VM` share: parameters, the two stages of a fit, prediction."""

import math
from dataclasses import replace
from numbers import Real
from typing import Annotated, Literal, NamedTuple, get_args

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from s3vm_lib.base.classifier import Balance, checked_labeled_loss
from s3vm_lib.base.machine import BinaryFit
from s3vm_lib.base.online import OnlineS3VM
from s3vm_lib.losses import LabeledLoss, unlabeled_loss
from s3vm_lib.objective import Problem
from s3vm_lib.random_features import FeatureStream, outputs, single
from s3vm_lib.stochastic._blocks import CACHE, StreamFeatures, solve_full_batch
from s3vm_lib.stochastic._parameters import RULES, Features, Polish, Schedule
from s3vm_lib.stochastic._steps import POLISH, Progress, Run, Sampler
from s3vm_lib.stochastic._stored import solve_stored
from s3vm_lib.utils.limits import Count, CountOrZero, RandomState, WeightOrZero
from s3vm_lib.utils.linear import nearer
from s3vm_lib.utils.row_blocks import spread
from s3vm_lib.utils.validation import KernelParameters, parameters

_MOST = 2**27  # numbers that random features are made of, 512 MB
_FARTHEST = 2.0**20  # turns: single precision then resolves no more than an eighth of one
_BORNE = 2.0  # largest mean k(x, x) that steps of the default size bear
_CENTERED = 4096  # unlabeled rows whose mean is looked at
_FEWEST_ONLINE = 25  # steps of one call of partial_fit
# The losses that these methods were shown for.
_LabeledLoss = Literal["hinge", "squared_hinge", "smooth_hinge", "logistic", "modified_logistic"]


class KeptRows(NamedTuple):
    """The newest rows of their kind, as ``partial_fit`` keeps them."""

    X: np.ndarray  # in single precision, (n, d)
    t: np.ndarray
    weight: np.ndarray
    sample_weight: np.ndarray  # without class weights

    def joined(self, data, t, rows, limit):
        """Return the last ``limit`` of these rows and of some of a batch."""
        X = self.X
        if rows.size:
            X = _stacked(X, single(data.X[rows[-limit:]]))
        pairs = zip(self[1:], (t, data.loss_weight, data.sample_weight), strict=True)
        parts = (np.concatenate([kept, batch[rows]])[-limit:] for kept, batch in pairs)
        return KeptRows(X[max(0, X.shape[0] - limit) :], *parts)


class OnlineProblem:
    """What one two-class problem keeps between calls of ``partial_fit``."""

    def __init__(self, problem, X, run):
        self.problem = problem
        self.labeled = self.unlabeled = KeptRows(X, *3 * (np.zeros(0),))
        self.mass = 0.0  # Σ_U s of all rows so far
        self.run = run  # the model, all steps so far, and where the next ones begin


@parameters
class RandomFeatureS3VM(KernelParameters, OnlineS3VM):
    """The fit in two stages: stochastic steps, then L-BFGS on the features that were drawn.

    Subclasses say how many features and steps they plan, and may implement ``_run``.
    """

    C_star: WeightOrZero | Literal["paper"] | None = None
    kernel: Literal["rbf", "laplacian", "poly", "linear"] = "rbf"
    labeled_loss: _LabeledLoss | LabeledLoss = "modified_logistic"
    unlabeled_loss: Literal[
        "symmetric_hinge", "squared_symmetric_hinge", "symmetric_ramp", "gaussian"
    ] = "gaussian"
    s: Annotated[float, Interval(Real, -1, 1e10, closed="right")] | None = None
    balance: Balance = "auto"
    fit_intercept: bool = True
    n_features: Count = 1024
    features: Features | None = None
    n_steps: CountOrZero | None = None
    schedule: Schedule | None = None
    polish: bool | Polish = True
    transduce: bool = True
    random_state: RandomState = None

    _dtype = [np.float64, np.float32]
    _growth = 0  # steps after which a block of features joins; 0: all are there from the start

    # --- Parameters in groups ---------------------------------------------------------------------

    @property
    def _features(self):
        return self.features or Features()

    @property
    def _schedule(self):
        return self.schedule or Schedule()

    @property
    def _polishing(self):
        return self.polish if isinstance(self.polish, Polish) else Polish()

    @property
    def _limit(self):
        return self._polishing.max_iter

    # --- What is minimized ------------------------------------------------------------------------

    def _penalties(self, data):
        if not isinstance(self.C_star, str):
            return super()._penalties(data)
        unlabeled = data.codes < 0
        mass = data.sample_weight[unlabeled].sum()
        if mass == 0:
            return float(self.C), 0.0
        # C n_l/n_u in front of a mean over U: in front of a sum, once more divided by n_u.
        ratio = float(data.sample_weight[~unlabeled].sum() / mass)
        return float(self.C), float(self.C) * ratio**2

    def _problem(self, data, ratio):
        s = self.s if self.unlabeled_loss in ("gaussian", "symmetric_ramp") else None
        bias, balance = self._offset_rule(ratio)
        return Problem(
            checked_labeled_loss(self.labeled_loss, get_args(_LabeledLoss)),
            unlabeled_loss(self.unlabeled_loss, s),
            *self._penalties(data),
            data.kernel,
            bias,
            balance,
            ratio,
        )

    def _offset_rule(self, ratio):
        """Say what becomes of the offset and of the balance when the share is this (or None)."""
        if ratio is not None and self._schedule.balance_penalty is None and self.fit_intercept:
            return "free", "mean"
        return ("regularized" if self.fit_intercept else "none"), "none"

    def _planned_steps(self, n_unlabeled):
        """Return the number of steps of a whole fit."""
        if self.n_steps is not None:
            return int(self.n_steps)
        return self._planned(math.ceil(n_unlabeled / self._schedule.batch_size))

    # --- Fit --------------------------------------------------------------------------------------

    def _prepare(self, data):
        """Decide where features come from; refuse what takes too much memory."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        features, kernel, X = self._features, data.kernel, data.X
        given = kernel, X.shape[1], self._block_size(X.shape[0]), seed
        stream = FeatureStream(*given, features.paired, features.orthogonal)
        factors = kernel.degree if kernel.name == "poly" else 1
        wanted = self._held_features(stream)
        numbers = X.shape[1] * wanted * factors
        if kernel.name != "linear" and numbers > _MOST:
            raise ValueError(
                f"{wanted} random features of the {X.shape[1]} columns of X with kernel="
                f"{kernel.name!r} take {4e-9 * numbers:.3g} GB: lower n_features or block_size, "
                "reduce the columns (sklearn.decomposition.TruncatedSVD), or use kernel='linear'"
            )
        if stream.turns(X) > _FARTHEST:
            raise ValueError(
                "X is too large for random features of this gamma in single precision; scale the "
                "data"
            )
        self.stream_ = stream
        n_labeled = np.count_nonzero(data.codes >= 0)
        if self._planned_steps(data.codes.size - n_labeled) > 0:
            self._check_memory(X, n_labeled)
        return stream

    def _held_features(self, stream):
        """Count the features of a row that are there at once: not all where blocks are redrawn."""
        if stream.kernel.name == "linear" or getattr(self, "update", "all") == "block":
            return stream.block_size
        return max(stream.block_size, self.n_features)

    def _check_memory(self, X, n_labeled):
        """Refuse steps that hold too many features of rows, or too many sparse rows dense."""
        schedule, stream = self._schedule, self.stream_
        linear, remedy = stream.kernel.name == "linear", "n_features"
        if linear:
            remedy = "the number of columns (sklearn.decomposition.TruncatedSVD)"
        batch = max(schedule.batch_size, schedule.labeled_batch or 0)
        held = batch * self._held_features(stream)
        if held > _MOST:
            raise ValueError(
                f"a batch of {batch} rows takes {4e-9 * held:.3g} GB: lower batch_size, "
                f"labeled_batch or {remedy}"
            )
        held = n_labeled * X.shape[1]
        if linear and sp.issparse(X) and held > _MOST:
            raise ValueError(
                f"the {n_labeled} labeled rows of X, which the steps hold dense, take "
                f"{4e-9 * held:.3g} GB with {X.shape[1]} columns: lower {remedy}"
            )

    def _fit_binary(self, data, stream, t, problem, index):
        weight, n_steps = data.loss_weight, self._planned_steps(np.sum(t == 0))
        # Single precision keeps little of what is far from 0.
        X, center = nearer(data.X, data.kernel) if problem.balance == "mean" else (data.X, None)
        machine, rows = self._start(data, problem, index), (X, t, weight)
        run = machine.run
        if n_steps > 0:
            run = self._steps(rows, problem, n_steps, self._schedule, run)
        n_taken = run.n_iter
        if self._polishes(n_steps) and run.status != "stopped":
            run = self._polish(rows, problem, run)
        fit, last = self._binary_fit(rows, problem, run), run.last
        if center is not None:
            fit = fit._replace(intercept=float(fit.intercept - fit.coef @ center))
            if last is not None:
                last = last[0], last[1] - float(_coef(stream, last[0]) @ center)
        self._keep(machine, data, t)
        last = last or (run.alpha, fit.intercept)
        machine.run = run._replace(offset=fit.intercept, n_iter=n_taken, last=last)
        self._machines.append(machine)
        return fit

    def _polishes(self, n_steps):
        return bool(self.polish) or n_steps == 0

    def _polish(self, rows, problem, run):
        """Go on with L-BFGS on the features of a run, or on n_features new ones."""
        X, t, weight = rows
        polish, stream, labeled, index = self._polishing, self.stream_, t != 0, None
        # Short features have small gradients: at the same tolerance they would stop too early.
        unit = float(np.sqrt(problem.kernel.diagonal(X[np.flatnonzero(labeled)]).mean()))
        limit = None if polish.client is not None else polish.rows
        if limit is not None and np.sum(~labeled) > limit:
            unlabeled = np.flatnonzero(~labeled)
            sampler = Sampler(unlabeled, weight[unlabeled], stream.seed, POLISH)
            drawn, counts = sampler.sample(int(limit))
            index = np.concatenate([np.flatnonzero(labeled), drawn])
            part = np.concatenate([weight[labeled], counts * weight[unlabeled].sum() / limit])
            t, weight = t[index], part
        coordinates = StreamFeatures(
            stream, len(run.alpha) or self._n_blocks(stream), X, t, problem.scaled(t, weight)[0],
            problem, rows=index, n_jobs=self.n_jobs, client=polish.client,
        )  # fmt: skip
        found = solve_full_batch(
            coordinates, t, weight, problem,
            start=(run.alpha, run.offset) if len(run.alpha) else None, annealing=polish.stages,
            tol=polish.tol * min(1.0, unit), ftol=polish.ftol, max_iter=polish.max_iter,
            callback=self._report_stage,
        )  # fmt: skip
        counts = run.n_iter + found.n_iter, found.status, run.history + found.history
        return Run(found.alpha, found.offset, *counts, None)

    def _steps(self, rows, problem, n_steps, schedule, before):
        """Take stochastic steps after those ``before``; the result is finite, or an error."""
        if schedule.eta0 is None:
            eta0 = RULES[schedule.rule] / _steepness(*rows, problem)
            schedule = replace(schedule, eta0=eta0)
        with (
            np.errstate(over="ignore", invalid="ignore"),
            self._progress("steps", n_steps, leave=True, delay=0) as tick,
        ):
            run = self._run(
                *rows, problem, self.stream_, n_steps, schedule, seed=self.stream_.seed,
                start=before.last, first=before.n_iter, n_jobs=self.n_jobs,
                callback=self._report_stage, tick=tick,
            )  # fmt: skip
        if not (np.all(np.isfinite(run.alpha)) and np.all(np.isfinite(run.last[0]))):
            raise ValueError(
                f"the stochastic steps diverged: eta0={schedule.eta0} with rule={schedule.rule!r} "
                f"in schedule is too large for C={self.C} and labeled_loss={self.labeled_loss!r}"
            )
        return run

    def _run(self, X, t, weight, problem, stream, n_steps, schedule, **options):
        n_blocks, options["growth"] = self._n_blocks(stream), self._growth
        return solve_stored(X, t, weight, problem, stream, n_blocks, n_steps, schedule, **options)

    def _report_stage(self, stage):
        if isinstance(stage, Progress) and self.verbose == 1:  # the bar shows it
            return bool(self.callback(stage._asdict())) if self.callback is not None else False
        return self._report({k: v for k, v in stage._asdict().items() if k != "status"})

    def _binary_fit(self, rows, problem, run, exact=True):
        """Compute outputs on all rows, the offset that meets the balance (``exact``), and J."""
        X, t, weight = rows
        stream, kernel, offset, coef = self.stream_, problem.kernel, run.offset, None
        norm = float(run.alpha.size * np.sum(run.alpha**2))  # D Σ α²
        if kernel.name == "linear":  # of weights: ‖w‖²/σ_f²
            coef = _coef(stream, run.alpha)
            norm = float(coef @ coef) / kernel.sigma_f**2
        f, objective = np.full(t.size, np.nan), float("nan")
        if self.transduce:
            f = _outputs(stream, X, run.alpha, coef, self.n_jobs)
            s = weight[t == 0]
            if exact and problem.balance == "mean" and s.size:
                offset = 2.0 * problem.ratio - 1.0 - float(s @ f[t == 0] / s.sum())
            f = f + offset
            objective = problem.value(f, t, norm, offset, weight)
        return BinaryFit(
            None, coef, float(offset), f, float(objective), run.n_iter, run.status,
            list(run.history), {"feature_coef": run.alpha, "squared_norm_": norm},
        )  # fmt: skip

    # --- One batch after the other ----------------------------------------------------------------

    def _start(self, data, problem, index):
        if index == 0 and not hasattr(self, "stream_"):  # not called by fit
            self._prepare(data)
        run = Run(np.zeros((0, self.stream_.block_size)), 0.0, 0, "completed", (), None)
        return OnlineProblem(problem, single(data.X[:0]), run)

    def _keep(self, machine, data, t):
        """Add the rows of a batch to those that are kept, and count the unlabeled ones."""
        old, new = np.flatnonzero(t == 0), np.flatnonzero(t != 0)
        machine.mass = machine.mass + float(data.loss_weight[old].sum())
        limit = self._schedule.unlabeled_kept
        machine.unlabeled = machine.unlabeled.joined(data, t, old, limit)
        limit = self._schedule.labeled_kept
        machine.labeled = machine.labeled.joined(data, t, new, limit)

    def _update(self, machine, data, t, problem, index):
        unlabeled = np.flatnonzero(t == 0)
        # Rows of earlier calls join a small batch, which would stand for all by itself otherwise.
        schedule = self._schedule
        most = unlabeled.size + schedule.unlabeled_kept
        rows = machine.unlabeled.joined(data, t, unlabeled, most)
        self._keep(machine, data, t)
        machine.problem = self._problem_so_far(machine, data, index)
        labeled, part, before = machine.labeled, rows.weight, machine.run
        if labeled.t.size:
            planned = max(_FEWEST_ONLINE, math.ceil(unlabeled.size / schedule.batch_size))
            if before.n_iter:
                schedule = replace(schedule, ramp=0.0)
            X = _stacked(labeled.X, rows.X)
            self._check_memory(X, labeled.t.size)
            # These rows stand for all unlabeled rows so far.
            part = part * (machine.mass / part.sum()) if part.size else part
            sample = X, np.append(labeled.t, rows.t), np.append(labeled.weight, part)
            n_steps = int(self.n_steps or planned)
            run = self._steps(sample, machine.problem, n_steps, schedule, before)
            machine.run = run._replace(n_iter=before.n_iter + run.n_iter)
        batch = data.X, t, data.loss_weight
        return self._binary_fit(batch, machine.problem, machine.run, exact=False)

    def _problem_so_far(self, machine, data, index):
        """Return C* and the share of positives as they follow from all batches so far."""
        labeled, problem = machine.labeled, machine.problem
        mass = float(labeled.sample_weight.sum())
        rest, C_star = machine.mass, self.C_star
        if rest == 0 or mass == 0:
            C_star = 0.0
        elif C_star is None or isinstance(C_star, str):
            C_star = self.C * (mass / rest) ** (1 if C_star is None else 2)
        ratio = None
        if rest > 0 and mass > 0 and self.balance is not None:
            if isinstance(self.balance, str):
                ratio = float(labeled.sample_weight[labeled.t > 0].sum() / mass)
            else:
                positive = 1 if data.n_classes == 2 else index
                ratio = float(self._shares(self.balance, data)[positive])
        bias, balance = self._offset_rule(ratio)
        return replace(problem, C_star=float(C_star), ratio=ratio, bias=bias, balance=balance)

    def _store_batch(self, data, problems, fits, X, codes):
        problems = [machine.problem for machine in self._machines]
        ratios = [problem.ratio for problem in problems]
        self.class_ratio_ = None
        if ratios[0] is not None:
            self.class_ratio_ = np.array([1.0 - ratios[0], *ratios] if len(ratios) == 1 else ratios)
        super()._store_batch(data, problems, fits, X, codes)

    def _store(self, data, problems, fits):
        super()._store(data, problems, fits)
        parts = [fit.extra["feature_coef"] for fit in fits]
        self.feature_coef_ = np.zeros((len(parts), max(map(len, parts)), parts[0].shape[1]))
        for k, alpha in enumerate(parts):
            self.feature_coef_[k, : len(alpha)] = alpha

    def _transduce(self, X, codes, rows, fits):
        if self.transduce:
            return super()._transduce(X, codes, rows, fits)
        self.__dict__.pop("transduction_", None)
        return None

    # --- Prediction -------------------------------------------------------------------------------

    def _outputs(self, X):
        if hasattr(self, "coef_"):
            return super()._outputs(X)
        n_jobs = self.n_jobs
        parts = [_outputs(self.stream_, X, alpha, None, n_jobs) for alpha in self.feature_coef_]
        return np.column_stack(parts) + self.intercept_


def _stacked(A, B):
    """One matrix below the other, CSR if either is."""
    if sp.issparse(A) or sp.issparse(B):
        return sp.vstack([A, B]).tocsr()
    return np.concatenate([A, B])


def _steepness(X, t, weight, problem):
    """Return the mean k(x, x) of the labeled rows, as a multiple of what steps bear; at least 1.

    A step moves the output of a row by k(x, x) times what it does with the rbf kernel. Where that
    is some units, the first steps overshoot, what rounding has changed grows with every step, and
    it decides in which minimum the fit ends. Features that are centered are shorter.
    """
    kernel, labeled = problem.kernel, np.flatnonzero(t != 0)
    rows, s = single(X[labeled]), weight[labeled]
    with np.errstate(over="ignore"):  # of single precision: the largest multiple is left
        size = s @ kernel.diagonal(rows)
    if kernel.name == "linear" and problem.balance == "mean":
        others = np.flatnonzero(t == 0)
        others = others[spread(others.size, _CENTERED)]
        mean = weight[others] @ single(X[others]) / weight[others].sum()
        size += kernel.sigma_f**2 * (s.sum() * (mean @ mean) - 2 * s @ (rows @ mean))
    return min(max(1.0, float(size / s.sum()) / _BORNE), 1e30)


def _coef(stream, alpha):
    """Return weights of the columns, with the linear kernel."""
    return math.sqrt(stream.n_dims) * stream.kernel.sigma_f * alpha.sum(axis=0)


def _outputs(stream, X, alpha, coef, n_jobs):
    if coef is not None:
        return np.asarray(X @ coef, dtype=float)
    return outputs(stream, X, alpha, None, n_jobs, double=X.shape[0] * alpha.size <= CACHE)
