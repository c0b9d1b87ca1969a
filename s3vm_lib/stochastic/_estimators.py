"""The estimators `FRS3VM` and `TSGS3VM`, and the two stages of a fit that they share."""

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
from s3vm_lib.stochastic._descent import solve_stored, solve_triply_stochastic

from s3vm_lib.stochastic._steps import (  # isort: skip
    POLISH, RULES, Features, Polish, Progress, Run, Sampler, Schedule,
)  # fmt: skip
from s3vm_lib.utils.limits import Count, CountOrZero, RandomState, WeightOrZero
from s3vm_lib.utils.linear import nearer
from s3vm_lib.utils.row_blocks import spread
from s3vm_lib.utils.validation import KernelParameters, parameters

_MOST = 2**27  # numbers that random features are made of, 512 MB
_FARTHEST = 2.0**20  # turns: single precision then resolves no more than an eighth of one
_BORNE = 2.0  # largest mean k(x, x) that steps of the default size bear
_CENTERED = 4096  # unlabeled rows whose mean is looked at
_FEWEST_ONLINE = 25  # steps of one call of partial_fit
LABELED_KEPT, UNLABELED_KEPT = 5000, 2000  # newest rows that partial_fit keeps from call to call
_BLOCK = 256  # features of one block of FRS3VM
_FEWEST_STEPS = 400
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

    Subclasses give the numbers of features and steps that they plan, and may implement ``_run``.
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
    _growth = 0  # steps after which a block of features joins; 0: all are drawn at the start

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
        losses = (
            checked_labeled_loss(self.labeled_loss, get_args(_LabeledLoss)),
            unlabeled_loss(self.unlabeled_loss, s),
        )
        return Problem(*losses, *self._penalties(data), data.kernel, bias, balance, ratio)

    def _offset_rule(self, ratio):
        """Return the kind of offset and of balance for this share (or None)."""
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
        """Count the features of a row in memory at once: not all where blocks are redrawn."""
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
        # The steps hold the labeled rows dense.
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
        # Where `partial_fit` goes on, and the rows of both stages.
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
                # The offset that meets the balance on all unlabeled rows, not on a sample.
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
        machine.unlabeled = machine.unlabeled.joined(data, t, old, UNLABELED_KEPT)
        machine.labeled = machine.labeled.joined(data, t, new, LABELED_KEPT)

    def _update(self, machine, data, t, problem, index):
        unlabeled = np.flatnonzero(t == 0)
        # Rows of earlier calls join a small batch, which would stand for all by itself otherwise.
        schedule = self._schedule
        rows = machine.unlabeled.joined(data, t, unlabeled, unlabeled.size + UNLABELED_KEPT)
        self._keep(machine, data, t)
        machine.problem = self._problem_so_far(machine, data, index)
        labeled, part, before = machine.labeled, rows.weight, machine.run
        if labeled.t.size:
            planned = max(_FEWEST_ONLINE, math.ceil(unlabeled.size / schedule.batch_size))
            # The unlabeled term has risen already.
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
        # Until both kinds of rows have come there is nothing to weigh.
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
    """Stack one matrix below the other, CSR if either is."""
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


# --- The two methods ------------------------------------------------------------------------------


@parameters
class FRS3VM(RandomFeatureS3VM):
    """Semi-supervised support vector machine on a fixed set of random features (FRS3VM).

    Minimizes

        J(f, b) = ½‖f‖² + C Σ_L s_i ℓ(y_i, f(x_i) + b) + C* Σ_U s_j u(f(x_j) + b)

    over the functions f = Σ_j c_j φ_j of D random features, where ‖f‖² = D Σ_j c_j² stands for the
    norm in the RKHS. The fit has two stages, either of which can be left out: stochastic gradient
    steps on mini-batches of unlabeled rows, and L-BFGS on the same features, with sums over all
    rows or a sample of them (``polish``). With ``n_steps=0`` the second stage alone does what
    `QNS3VM` does, annealing included, by sums over blocks of rows: by threads, from a memory map,
    or on a cluster.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the labeled losses. In the paper, which takes means, C Σ_L s.
    C_star : float or "paper", default=None
        Weight of the unlabeled losses. None gives the labeled and the unlabeled part equal total
        weight. ``"paper"`` is the rule C n_l/n_u in front of a *mean* over the unlabeled rows, as
        it is printed: with few labels it switches the unlabeled term off.
    kernel : {"rbf", "laplacian", "poly", "linear"}, default="rbf"
        Kernel function, see `Kernel`. The features of ``"linear"`` are those of the rows.
    gamma : {"scale", "variance", "auto"} or float, default="scale"
        Kernel coefficient of rbf, laplacian and poly, see `resolve_gamma`.
    degree : int, default=3
        Degree of the polynomial kernel, at most 30.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, non-negative.
    sigma_f : float, default=1.0
        Output standard deviation: kernels are multiplied by its square.
    labeled_loss : {"modified_logistic", "hinge", "squared_hinge", "smooth_hinge", "logistic"} or \
LabeledLoss, default="modified_logistic"
        Loss ℓ of labeled rows. L-BFGS needs a smooth one; the paper has the hinge. An object
        holds the parameter too: ``LabeledLoss("modified_logistic", 100.0)`` in place of a sharpness
        of 20, with which ℓ differs from the hinge by at most log(2)/20.
    unlabeled_loss : {"gaussian", "symmetric_hinge", "squared_symmetric_hinge", \
"symmetric_ramp"}, default="gaussian"
        Loss u of unlabeled rows.
    s : float, default=None
        The Gaussian loss is exp(−s f²), and the ramp ends at s. None means 3 and −0.3; the paper
        has 5 for the Gaussian.
    balance : "auto", "labels", another name, float, dict or None, default="auto"
        Share r of the class ``classes_[1]`` among the unlabeled rows: estimated from labels and
        unlabeled rows together, by the share among the labeled rows (as always in
        ``partial_fit``), in another way that `s3vm_lib.class_ratio` has a name for, given (in a
        dict for each class), or not used. It fixes the mean output, or enters the stochastic steps
        as a penalty (`Schedule`). Where classes are very unequal, the mean output is a poor
        stand-in for the share, and None is often better.
    fit_intercept : bool, default=True
        Whether there is an offset b. It follows from the balance where that is exact, and is
        regularized, ½b², otherwise: the kernel then is k + 1.
    n_features : int, default=1024
        Number D of features, raised a little so that blocks of at most 256 have one size.
    features : Features, default=None
        How they are drawn: in pairs or with phases, orthogonal or not. None means `Features()`.
    n_steps : int, default=None
        Number T of stochastic steps. None means one pass over the unlabeled rows, but at least 400
        and at most 2000. 0 leaves the stochastic stage out.
    schedule : Schedule, default=None
        How the steps are taken: batches, step sizes, mean of the iterates. None means `Schedule()`.
    polish : bool or Polish, default=True
        Whether and how L-BFGS goes on with the features of the stochastic steps; True
        means `Polish()`. With ``n_steps=0`` L-BFGS is the whole fit, and False means the same.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
    transduce : bool, default=True
        Whether to evaluate the model on all training rows in the end, which is needed for
        ``transduction_``, for ``objective_`` and for an offset that meets the balance to the last
        digit. Costs one prediction.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    random_state : int, RandomState instance or None, default=None
        Seed of features and draws.
    verbose : int, default=0
        1 shows a progress bar on stderr in the stochastic stage, and prints one line per stage of
        L-BFGS; 2 also prints about ten lines in the stochastic stage.
    callback : callable, default=None
        Called with a dict about ten times in the stochastic stage (n_iter, step, labeled,
        unlabeled, n_features) and after each stage of L-BFGS (alpha, value, gradient_norm, n_iter,
        n_evaluations); a true value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_ratio_ : ndarray of shape (n_classes,), or None
        Shares of the classes among the unlabeled rows, as ``balance`` gave them, after
        ``partial_fit`` from all rows so far; None without.
    feature_coef_ : ndarray of shape (n_problems, T, m)
        Coefficients of T blocks of m features; f(x) = Σ_t Σ_j α_tj φ_tj(x) + b.
    stream_ : FeatureStream
        Where the features come from: ``stream_.block(t)`` draws block t.
    coef_ : ndarray of shape (n_problems, d)
        Weights of the features, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (n_problems,)
        Offsets b.
    squared_norm_ : float or ndarray of shape (n_classes,)
        ‖f‖² in the space of the features.
    gamma_ : float
        The kernel coefficient that was used.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the one found where it was unlabeled.
    objective_ : float or ndarray of shape (n_classes,)
        J at the solution; NaN without ``transduce``.
    problem_ : Problem or list of Problem
        What was minimized, with the values that ``C_star``, ``gamma`` and ``balance`` stood for.
    n_iter_ : int
        Stochastic steps and iterations of L-BFGS together.
    history_ : list
        `Progress` of the stochastic stage, then one `Stage` for each stage of L-BFGS.
    termination_condition_ : str
        Status of the last stage: ``"converged"``, ``"max_iter"`` or ``"no_step"`` (L-BFGS),
        ``"completed"`` (stochastic steps alone) or ``"stopped"`` (by the callback); a list of
        these with more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features of the rows.

    See Also
    --------
    TSGS3VM : Features that grow with the steps.
    Features, Schedule, Polish : Parameters in groups, in `s3vm_lib.stochastic`.
    QNS3VM : The same objective with the kernel itself.

    Notes
    -----
    It should not be used with the linear kernel where one class is rare, fewer than one row in
    five: on such sets of the book's comparison it is much worse than `SVM`. Where the classes have
    no gap between them it is also worse, with any kernel. There `S3VC` lets held-out labels
    weigh it against an `SVM`.

    Standardize the features. Of the stochastic steps nothing converges in the sense of a
    tolerance: a planned number is taken, and with ``polish=False`` the status is ``"completed"``.

    References
    ----------
    A. Rahimi and B. Recht, "Random features for large-scale kernel machines", NIPS 2007;
    X. Geng, B. Gu, X. Li, W. Shi, G. Zheng and H. Huang, "Scalable semi-supervised SVM via triply
    stochastic gradients", IJCAI 2019, whose baseline FRS3VM is.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import FRS3VM
    >>> X = np.array([[-2.0], [-1.9], [-1.5], [1.4], [1.8], [2.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])
    >>> model = FRS3VM(random_state=0).fit(X, y)
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    _largest_n = 1_000_000
    _memory = "D numbers; (labeled + batch + polish rows) × D while fitting"

    def _n_blocks(self, stream=None):
        return 1 if self.kernel == "linear" else math.ceil(self.n_features / _BLOCK)

    def _block_size(self, n):
        for name in ("block_size", "window"):
            given = getattr(self._features, name)
            if given != getattr(Features, name):
                raise ValueError(
                    f"features must leave {name} as it is with FRS3VM, which has all features from "
                    f"the start; got {name}={given}"
                )
        return math.ceil(self.n_features / self._n_blocks())

    def _planned(self, one_pass):
        return min(max(_FEWEST_STEPS, one_pass), 2000)


@parameters
class TSGS3VM(RandomFeatureS3VM):
    """Semi-supervised support vector machine by triply stochastic gradients (TSGS3VM).

    Minimizes

        J(f, b) = ½‖f‖² + C Σ_L s_i ℓ(y_i, f(x_i) + b) + C* Σ_U s_j u(f(x_j) + b)

    by steps that are random in three ways: labeled rows, unlabeled rows and random features are
    drawn anew in each of them. The labeled rows are few, and by default all of them enter every
    step. Two updates are offered:

    ``update="block"``
        Algorithm 1 of the paper. Step t draws a new block of features and sets
        their coefficients once and for all, up to the factors 1 − γ of later steps. Nothing but
        coefficients is kept: features are redrawn from (seed, t) whenever f is evaluated. Time
        grows with the square of the number of steps, memory with the number itself.
    ``update="all"``
        What is drawn is kept in use: a step moves the coefficients of *all* features drawn so far,
        which costs little since they have been evaluated anyway. New blocks join until there are
        ``n_features``; from then on time is linear in the number of steps.

    With C* = 0 and ``update="block"`` this is the doubly stochastic SVM of Dai et al.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the labeled losses. In the paper, which takes means, C Σ_L s.
    C_star : float or "paper", default=None
        Weight of the unlabeled losses. None gives the labeled and the unlabeled part equal total
        weight. ``"paper"`` is the rule C n_l/n_u in front of a *mean* over the unlabeled rows, as
        it is printed: with few labels it switches the unlabeled term off.
    kernel : {"rbf", "laplacian", "poly", "linear"}, default="rbf"
        Kernel function, see `Kernel`. The features of ``"linear"`` are those of the rows.
    gamma : {"scale", "variance", "auto"} or float, default="scale"
        Kernel coefficient of rbf, laplacian and poly, see `resolve_gamma`.
    degree : int, default=3
        Degree of the polynomial kernel, at most 30.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, non-negative.
    sigma_f : float, default=1.0
        Output standard deviation: kernels are multiplied by its square.
    labeled_loss : {"modified_logistic", "hinge", "squared_hinge", "smooth_hinge", "logistic"} or \
LabeledLoss, default="modified_logistic"
        Loss ℓ of labeled rows. L-BFGS needs a smooth one; the paper has the hinge. An object
        holds the parameter too: ``LabeledLoss("modified_logistic", 100.0)`` in place of a sharpness
        of 20, with which ℓ differs from the hinge by at most log(2)/20.
    unlabeled_loss : {"gaussian", "symmetric_hinge", "squared_symmetric_hinge", \
"symmetric_ramp"}, default="gaussian"
        Loss u of unlabeled rows.
    s : float, default=None
        The Gaussian loss is exp(−s f²), and the ramp ends at s. None means 3 and −0.3; the paper
        has 5 for the Gaussian.
    balance : "auto", "labels", another name, float, dict or None, default="auto"
        Share r of the class ``classes_[1]`` among the unlabeled rows: estimated from labels and
        unlabeled rows together, by the share among the labeled rows (as always in
        ``partial_fit``), in another way that `s3vm_lib.class_ratio` has a name for, given (in a
        dict for each class), or not used. It fixes the mean output, or enters the stochastic steps
        as a penalty (`Schedule`). Where classes are very unequal, the mean output is a poor
        stand-in for the share, and None is often better.
    fit_intercept : bool, default=True
        Whether there is an offset b. It follows from the balance where that is exact, and is
        regularized, ½b², otherwise: the kernel then is k + 1.
    update : {"all", "block"}, default="all"
        See above.
    n_features : int, default=1024
        Number of features in the end with ``update="all"``. With ``"block"`` it has no bound:
        block_size times n_steps.
    features : Features, default=None
        How they are drawn: in pairs or with phases, orthogonal or not, how many in a block. None
        means `Features()`.
    n_steps : int, default=None
        Number T of stochastic steps. None means one pass over the unlabeled rows, but at least
        400. 0 leaves the stochastic stage out.
    schedule : Schedule, default=None
        How the steps are taken: batches, step sizes, mean of the iterates. None means `Schedule()`.
    polish : bool or Polish, default=True
        Whether and how L-BFGS goes on with the features of the stochastic steps, not with
        ``update="block"``; True
        means `Polish()`. With ``n_steps=0`` L-BFGS is the whole fit, and False means the same.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
    transduce : bool, default=True
        Whether to evaluate the model on all training rows in the end, which is needed for
        ``transduction_``, for ``objective_`` and for an offset that meets the balance to the last
        digit. Costs one prediction.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    random_state : int, RandomState instance or None, default=None
        Seed of features and draws.
    verbose : int, default=0
        1 shows a progress bar on stderr in the stochastic stage, and prints one line per stage of
        L-BFGS; 2 also prints about ten lines in the stochastic stage.
    callback : callable, default=None
        Called with a dict about ten times in the stochastic stage (n_iter, step, labeled,
        unlabeled, n_features) and after each stage of L-BFGS (alpha, value, gradient_norm, n_iter,
        n_evaluations); a true value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_ratio_ : ndarray of shape (n_classes,), or None
        Shares of the classes among the unlabeled rows, as ``balance`` gave them, after
        ``partial_fit`` from all rows so far; None without.
    feature_coef_ : ndarray of shape (n_problems, T, m)
        Coefficients of T blocks of m features; f(x) = Σ_t Σ_j α_tj φ_tj(x) + b.
    stream_ : FeatureStream
        Where the features come from: ``stream_.block(t)`` draws block t.
    coef_ : ndarray of shape (n_problems, d)
        Weights of the features, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (n_problems,)
        Offsets b.
    squared_norm_ : float or ndarray of shape (n_classes,)
        ‖f‖² in the space of the features.
    gamma_ : float
        The kernel coefficient that was used.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the one found where it was unlabeled.
    objective_ : float or ndarray of shape (n_classes,)
        J at the solution; NaN without ``transduce``.
    problem_ : Problem or list of Problem
        What was minimized, with the values that ``C_star``, ``gamma`` and ``balance`` stood for.
    n_iter_ : int
        Stochastic steps and iterations of L-BFGS together.
    history_ : list
        `Progress` of the stochastic stage, then one `Stage` for each stage of L-BFGS.
    termination_condition_ : str
        Status of the last stage: ``"converged"``, ``"max_iter"`` or ``"no_step"`` (L-BFGS),
        ``"completed"`` (stochastic steps alone) or ``"stopped"`` (by the callback); a list of
        these with more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features of the rows.

    See Also
    --------
    FRS3VM : All features from the start.
    Features, Schedule, Polish : Parameters in groups, in `s3vm_lib.stochastic`.

    Notes
    -----
    It should not be used with the linear kernel where one class is rare, fewer than one row in
    five: on such sets of the book's comparison it is much worse than `SVM`. Where the classes have
    no gap between them, or several clusters each, it is also worse, with the rbf kernel as well.
    There `S3VC` lets held-out labels weigh it against an `SVM`.

    Standardize the features. Algorithm 1 to the letter: ``update="block",
    features=Features(block_size=1, paired=False), labeled_loss="hinge",
    unlabeled_loss="symmetric_hinge", schedule=Schedule(batch_size=1, labeled_batch=1,
    rule="constant", eta0=1/η, max_step=1, average=0, ramp=0), balance=None, fit_intercept=False,
    polish=False``, with C and C* divided by the numbers of rows that the paper's means divide by.

    References
    ----------
    X. Geng, B. Gu, X. Li, W. Shi, G. Zheng and H. Huang, "Scalable semi-supervised SVM via triply
    stochastic gradients", IJCAI 2019, Algorithms 1 and 2; B. Dai, B. Xie, N. He, Y. Liang, A. Raj,
    M.-F. Balcan and L. Song, "Scalable kernel methods via doubly stochastic gradients", NIPS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import TSGS3VM
    >>> X = np.array([[-2.0], [-1.9], [-1.5], [1.4], [1.8], [2.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])
    >>> model = TSGS3VM(random_state=0).fit(X, y)
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    update: Literal["all", "block"] = "all"

    _largest_n = 1_000_000
    _memory = 'as FRS3VM; block_size × n_steps numbers with update="block"'
    _growth = 1

    def _block_size(self, n):
        if self._features.block_size is not None:
            return self._features.block_size
        return min(64, self.n_features) if self.update == "all" else math.ceil(math.sqrt(n))

    def _n_blocks(self, stream):
        return 1 if self.kernel == "linear" else math.ceil(self.n_features / stream.block_size)

    def _planned(self, one_pass):
        return max(_FEWEST_STEPS, one_pass)

    def _polishes(self, n_steps):
        return super()._polishes(n_steps) and (self.update == "all" or n_steps == 0)

    def _run(self, X, t, weight, problem, stream, n_steps, schedule, **options):
        if self.update == "all":
            return super()._run(X, t, weight, problem, stream, n_steps, schedule, **options)
        options["window"] = int(self._features.window)
        return solve_triply_stochastic(X, t, weight, problem, stream, n_steps, schedule, **options)
