"""L-BFGS on the sum over all rows: the smooth objectives of `QNS3VM` on random features."""

from typing import NamedTuple

import numpy as np

from s3vm_lib.smooth import ANNEALING, Continuation, ScaledObjective, annealed, minimize_lbfgs
from s3vm_lib.stochastic._blocks import BlockSum


class Polished(NamedTuple):
    """What `solve_full_batch` returns."""

    alpha: np.ndarray  # (T, m)
    offset: float
    n_iter: int
    status: str
    history: tuple  # of Stage


def loss_codes(problem):
    """The codes that `losses_and_slopes` takes."""
    return tuple(value for loss in problem.losses for value in (loss.code, loss.p))


class StreamFeatures:
    """The coordinates w = √D α of D features of a stream, with all sums taken by `BlockSum`.

    Parameters
    ----------
    stream, n_blocks, X, rows, n_jobs, client
        See `BlockSum`.
    t, weight : ndarrays of shape (n,)
        Labels, and scaled weights.
    problem : Problem
        With ``balance="mean"`` the features are centered on the unlabeled rows.
    mean : ndarray of shape (D,), default=None
        The mean of the features where it is known.
    """

    def __init__(
        self, stream, n_blocks, X, t, weight, problem, *,
        rows=None, n_jobs=None, client=None, mean=None,
    ):  # fmt: skip
        self._given, self._rows, self._n_jobs = (stream, n_blocks, X), rows, n_jobs
        self._problem, self._t, self._weight = problem, t, weight
        self._sum = BlockSum(
            stream, n_blocks, X, t, weight, loss_codes(problem),
            rows=rows, n_jobs=n_jobs, client=client,
        )  # fmt: skip
        self.dimension, self.block_size = self._sum.dimension, stream.block_size
        self.norm = stream.block(0).scale / np.sqrt(self.dimension)  # k ≈ z·z with z = norm · c
        self.mean = mean
        if mean is None and problem.balance == "mean":
            self.mean = self.norm * self._sum.mean()

    def shift(self, w, b):
        """The offset of uncentered features where b is that of centered ones."""
        return b if self.mean is None else b - float(self.mean @ w)

    def sums(self, w, b, lam, t, weight, codes, strength):
        """Value, gradient and sum of slopes, as those of other coordinates in blocks.

        The `BlockSum` has its own t, weight and codes, which are the same.
        """
        value, gradient, total = self._sum(strength, self.norm * w, self.shift(w, b))
        gradient = self.norm * gradient + 2.0 * lam * w
        if self.mean is not None:  # b moves along with w
            gradient -= total * self.mean
        return value, gradient, total

    def rows(self, index):
        """The same features on some rows only, with the same mean."""
        return StreamFeatures(
            *self._given, self._t[index], self._weight[index], self._problem,
            rows=index if self._rows is None else self._rows[index],
            n_jobs=self._n_jobs, mean=self.mean,
        )  # fmt: skip


def solve_full_batch(
    coordinates,
    t,
    sample_weight,
    problem,
    *,
    start=None,
    annealing=ANNEALING["geometric"],
    tol=1e-5,
    ftol=1e-9,
    max_iter=500,
    memory=50,
    callback=None,
):
    """L-BFGS on random features, with the annealing of QN-S3VM or from a given start.

    Parameters
    ----------
    coordinates : StreamFeatures
    t : ndarray of shape (n,)
        −1 and +1, and 0 for unlabeled rows; at least one labeled row.
    sample_weight : ndarray of shape (n,)
    problem : Problem
        With ``balance="mean"`` the offset is fixed at 2r − 1 above the mean of f over the
        unlabeled rows. Otherwise b is regularized (½b²), or absent with ``bias="none"``.
    start : tuple (alpha, offset), default=None
        Begin here, with the whole unlabeled term. None anneals it in.
    annealing : sequence of float
        Factors of the unlabeled term, after a first stage without it.
    tol, ftol, max_iter, memory
        Of L-BFGS, for each stage; see `s3vm_lib.smooth.minimize_lbfgs`.
    callback : callable, default=None
        Called with each `Stage`; a true value stops.

    Returns
    -------
    Polished
    """
    root = np.sqrt(coordinates.dimension)
    if start is not None:
        start = start[0].ravel() * root, start[1], problem.C_star
    stages = Continuation(coordinates, t, sample_weight, problem, start)
    factors = stages.factors(annealing) if start is None else (1.0,)

    def descend(alpha, x):
        function = ScaledObjective(*stages.at(alpha))
        found = minimize_lbfgs(function, x, tol, ftol, max_iter, memory)
        return found._replace(value=float(found.value))

    report = None if callback is None else lambda stage, x: callback(stage)
    x, history, status = annealed(factors, stages.start, descend, report)
    w, b = stages.split(x)
    alpha = (w / root).reshape(-1, coordinates.block_size)
    n_iter = sum(stage.n_iter for stage in history)
    return Polished(alpha, coordinates.shift(w, b), n_iter, status, tuple(history))
