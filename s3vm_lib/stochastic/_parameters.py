"""What the estimators are told in groups: their features, their steps, and the polish."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Literal

import numpy as np
from sklearn.utils._param_validation import Interval

from s3vm_lib.smooth import ANNEALING, annealing_stages
from s3vm_lib.utils.limits import (
    Checked,
    Count,
    Share,
    Tolerance,
    ToleranceOrZero,
    Weight,
    WeightOrZero,
)
from s3vm_lib.utils.validation import Client

# Step sizes, and their constant where none is given.
RULES = {"sqrt": 50.0, "constant": 0.02, "horizon": 1.0, "inverse": 1.0}


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
    rule : {"sqrt", "constant", "horizon", "inverse"}, default="sqrt"
        Step sizes: eta0/(C Σ_L s √t); eta0, which is the paper's 1/η; eta0·T^(−power), the
        paper's θ/T^(3/4) in Theorems 1 and 2; eta0/t, that of doubly stochastic gradients.
    eta0 : float, default=None
        Constant of the rule; None means 50, 0.02, 1 and 1, in ``fit`` divided by half the mean
        k(x, x) of the labeled rows where that is above 2: longer steps would overshoot.
    power : float, default=0.75
        Of ``"horizon"``.
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
    labeled_kept : int, default=5000
        Labeled rows that ``partial_fit`` keeps from call to call, the newest ones.
    unlabeled_kept : int, default=2000
        Unlabeled rows that it keeps, the newest ones; they take part in the steps of the next call.

    Raises
    ------
    ValueError
        For a value out of range, naming the parameter.
    """

    batch_size: Count = 256
    labeled_batch: Count | None = None
    rule: Literal["sqrt", "constant", "horizon", "inverse"] = "sqrt"
    eta0: Weight | None = None
    power: Share = 0.75
    max_step: Annotated[float, Interval(Real, 0, 1, closed="right")] = 0.5
    average: Share = 0.5
    ramp: Share = 0.5
    balance_penalty: WeightOrZero | None = None
    labeled_kept: Annotated[int, Interval(Integral, 2, 2**31 - 1, closed="both")] = 5000
    unlabeled_kept: Count = 2000

    def step_sizes(self, n_steps, weight=1.0, first=0):
        """Return the step sizes γ_t of a run.

        Parameters
        ----------
        n_steps : int
            Length T of the run.
        weight : float, default=1.0
            C Σ_L s, which is the paper's C: the function moves by γ_t times this.
        first : int, default=0
            Number of steps taken before, which counts for ``"sqrt"`` and ``"inverse"``.

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
        elif self.rule == "horizon":
            gamma = np.full(n_steps, eta0 * max(1, n_steps) ** -self.power)
        else:
            gamma = eta0 / t
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
        Largest number of unlabeled rows that L-BFGS sees, a random sample; None means all.
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
        The sums, over all rows whatever ``rows`` says, are taken on this cluster, by blocks of
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
