"""All rows in every gradient: the objective on stored features as a sum over blocks of rows.

The smooth objectives of `QNS3VM` in the weights w of D random features, with its annealing and its
L-BFGS. A sum over rows may be cut into blocks of rows, each of which needs w (D numbers) and gives
back a number and a vector of length D, whatever its size: blocks are the unit of work for threads,
for memory maps, and for the machines of a cluster.
"""

from typing import NamedTuple

import numpy as np

from s3vm_lib.quasi_newton import ANNEALING, Stage, losses_and_slopes, minimize_lbfgs
from s3vm_lib.random_features import in_threads, row_tiles, single

BLOCK_ROWS = 16384
CACHE = 2**24  # feature values that are kept in double precision, 128 MB
_MEAN_WIDTH = 64  # fixes the tiles of a mean: 1024 rows
CACHE_SINGLE = 2**26  # in single precision, 256 MB; beyond, they are computed again each time


class BlockTask(NamedTuple):
    """What the sum over a block of rows needs besides the rows."""

    t: np.ndarray  # labels, 0 where unlabeled
    weight: np.ndarray  # weights, scaled as in `losses_and_slopes`
    codes: tuple  # of the losses, see `losses_and_slopes`


def block_features(stream, blocks, X, dtype=np.float32):
    """Values c_j(x_i) of all blocks side by side, shape (n, D)."""
    m = stream.block_size
    Z = np.empty((X.shape[0], len(blocks) * m), dtype)
    for tile in row_tiles(X.shape[0], m):
        rows = single(X[tile])
        for k, block in enumerate(blocks):
            Z[tile, k * m : (k + 1) * m] = stream.values(rows, block)
    return Z


def block_sum(stream, blocks, X, task, strength, w, b, Z=None, dtype=None):
    """Losses of a block of rows, and their gradient.

    Parameters
    ----------
    stream : FeatureStream
    blocks : sequence of Block
    X : {ndarray, CSR matrix} of shape (n, d)
        The rows; not read where ``Z`` is given.
    task : BlockTask
    strength : float
        Factor of the unlabeled losses.
    w : ndarray of shape (D,)
        Coefficients of the features before their scale.
    b : float
        Offset.
    Z : ndarray of shape (n, D), default=None
        The features, if they are kept.
    dtype : dtype, default=None
        Compute Z in one piece and in this precision, where it is not kept but would be elsewhere:
        the numbers are then the same. None goes through the rows in tiles.

    Returns
    -------
    value : float
    gradient : ndarray of shape (D,)
        Σ_i a_i c(x_i) with the slopes a of the losses.
    total : float
        Σ_i a_i.
    """
    n = task.t.size
    slope = np.empty(n)
    if Z is None and dtype is not None:
        Z = block_features(stream, blocks, X, dtype)
    value, gradient = 0.0, np.zeros(w.size)
    for tile in row_tiles(n, w.size) if Z is None else [slice(0, n)]:
        part = block_features(stream, blocks, X[tile]) if Z is None else Z
        f = (part @ w.astype(part.dtype, copy=False)).astype(np.float64, copy=False) + b
        a = slope[tile]
        value += losses_and_slopes(*task.codes, task.t[tile], task.weight[tile], strength, f, a)
        gradient += a.astype(part.dtype, copy=False) @ part
    return value, gradient, float(slope.sum())


def block_mean(stream, blocks, X, weight):
    """Σ_i weight_i c(x_i) over a block of rows, shape (D,) float64."""
    return sum(
        _mean(block_features(stream, blocks, X[tile]), weight[tile])
        for tile in row_tiles(X.shape[0], _MEAN_WIDTH)
    )


def _mean(Z, weight):
    """Zᵀ·weight in double precision, tile by tile whatever the precision of Z."""
    total = np.zeros(Z.shape[1])
    for tile in row_tiles(Z.shape[0], _MEAN_WIDTH):
        total += weight[tile] @ Z[tile].astype(np.float64, copy=False)
    return total


def kept_type(entries):
    """Precision in which so many features are kept; None where they are too many."""
    if entries > CACHE_SINGLE:
        return None
    return np.float64 if entries <= CACHE else np.float32


class ThreadSum:
    """Sums over blocks of rows on this machine, by threads; the sum is taken in a fixed order.

    Parameters
    ----------
    stream : FeatureStream
    n_blocks : int
        Number of blocks of features.
    X : {ndarray, CSR matrix} of shape (n, d)
        May be a memory map.
    rows : ndarray of int or None
        Rows that take part; None means all.
    t, weight : ndarrays
        Labels and scaled weights of these rows.
    codes : tuple
        Of the losses.
    n_jobs : int, default=1
    block_rows : int, default=16384
    """

    def __init__(
        self, stream, n_blocks, X, rows, t, weight, codes, n_jobs=1, block_rows=BLOCK_ROWS
    ):
        self.stream, self.n_jobs = stream, n_jobs
        self.blocks = in_threads(stream.block, range(n_blocks), n_jobs)
        self.dimension = n_blocks * stream.block_size
        self.X, self.rows, self.t, self.weight, self.codes = X, rows, t, weight, codes
        self.slices = [slice(k, min(k + block_rows, t.size)) for k in range(0, t.size, block_rows)]
        dtype = kept_type(t.size * self.dimension)
        self.kept = None
        if dtype is not None:
            self.kept = in_threads(
                lambda s: block_features(stream, self.blocks, self._rows(s), dtype),
                self.slices,
                n_jobs,
            )

    def _rows(self, block):
        return self.X[block] if self.rows is None else self.X[self.rows[block]]

    def __call__(self, strength, w, b):
        """Value, gradient and sum of slopes over all rows (see `block_sum`)."""

        def part(k):
            s = self.slices[k]
            task = BlockTask(self.t[s], self.weight[s], self.codes)
            Z = None if self.kept is None else self.kept[k]
            rows = None if Z is not None else self._rows(s)
            return block_sum(self.stream, self.blocks, rows, task, strength, w, b, Z)

        return added(in_threads(part, range(len(self.slices)), self.n_jobs))

    def mean(self):
        """Mean of the features over the unlabeled rows, shape (D,)."""
        weight = np.where(self.t == 0, self.weight, 0.0)
        weight = weight / weight.sum()

        def part(k):
            s = self.slices[k]
            if self.kept is not None:
                return _mean(self.kept[k], weight[s])
            return block_mean(self.stream, self.blocks, self._rows(s), weight[s])

        return sum(in_threads(part, range(len(self.slices)), self.n_jobs))


def added(parts):
    """Sum of triples (value, gradient, total), in their order."""
    value, gradient, total = parts[0]
    for part in parts[1:]:
        value, gradient, total = value + part[0], gradient + part[1], total + part[2]
    return value, gradient, total


class Polished(NamedTuple):
    """What `solve_full_batch` returns."""

    alpha: np.ndarray  # (T, m)
    offset: float
    n_iter: int
    status: str
    history: tuple  # of Stage
    mean: np.ndarray | None  # mean features over the unlabeled rows


def scaled_weights(problem, t, weight):
    """Weights that sum to one over both parts, λ, and the factor of the unlabeled losses.

    F = J/(C Σ_L s) = Σ_L s̄ ℓ + strength Σ_U s̄ u + λ‖f‖².
    """
    labeled = t != 0
    mass, mass_u = weight[labeled].sum(), weight[~labeled].sum()
    strength = problem.C_star * mass_u / (problem.C * mass)
    if problem.unlabeled_loss is None:
        strength = 0.0
    scaled = weight / np.where(labeled, mass, max(mass_u, 1e-300))
    return scaled, 0.5 / (problem.C * mass), float(strength)


def loss_codes(problem):
    """The codes that `losses_and_slopes` takes."""
    ell, u = problem.labeled_loss, problem.unlabeled_loss
    return ell.code, ell.p, *((u.code, u.p) if u is not None else (3, 3.0))


def solve_full_batch(
    sums,
    labeled_sums,
    problem,
    lam,
    strength,
    scale,
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
    sums : ThreadSum or the like
        ``sums(strength, w, b)`` and ``sums.mean()`` over all rows.
    labeled_sums : ThreadSum
        The same over the labeled rows, for the supervised stage.
    problem : Problem
        With ``balance="mean"`` the offset is fixed at 2r − 1 above the mean of f over the
        unlabeled rows. Otherwise b is regularized (½b²), or absent with ``bias="none"``.
    lam, strength : float
        See `scaled_weights`.
    scale : float
        Factor of the features: φ = scale · c.
    start : tuple (alpha, offset), default=None
        Begin here, with the whole unlabeled term. None anneals it in.
    annealing : sequence of float
        Factors of the unlabeled term, after a first stage without it.
    tol, ftol, max_iter, memory
        Of L-BFGS, for each stage; see `s3vm_lib.quasi_newton.minimize_lbfgs`.
    callback : callable, default=None
        Called with each `Stage`; a true value stops.

    Returns
    -------
    Polished
    """
    D = sums.dimension
    norm = scale / np.sqrt(D)  # z = norm · c are features with k ≈ z·z'
    fixed = problem.balance == "mean"
    mean = norm * sums.mean() if fixed else None
    target = 2.0 * problem.ratio - 1.0 if fixed else 0.0
    with_bias = problem.bias == "regularized"

    def offset(x):
        if fixed:
            return target - float(mean @ x)
        return float(x[-1]) if with_bias else 0.0

    def function(total, factor):
        def evaluate(x):
            w = x[:D]
            value, gradient, slopes = total(factor, norm * w, offset(x))
            gradient = norm * gradient + 2.0 * lam * w
            value += lam * float(w @ w)
            if fixed:
                gradient -= slopes * mean
            elif with_bias:
                value += lam * x[-1] ** 2
                gradient = np.append(gradient, slopes + 2.0 * lam * x[-1])
            return value, gradient

        return evaluate

    x = np.zeros(D + (with_bias and not fixed))
    plan = [1.0]
    if start is not None:
        x[:D] = start[0].ravel() * np.sqrt(D)
        if x.size > D:
            x[-1] = start[1]
    else:
        plan = [0.0, *(annealing if strength > 0 else ())]
    history, status = [], "stopped"
    for factor in plan:
        total = labeled_sums if factor == 0.0 else sums
        found = minimize_lbfgs(function(total, factor * strength), x, tol, ftol, max_iter, memory)
        x = found.x
        largest = float(np.abs(found.gradient).max(initial=0.0))
        counts = (found.n_iter, found.n_evaluations, found.status)
        history.append(Stage(factor, float(found.value), largest, *counts))
        if callback is not None and callback(history[-1]):
            break
    else:
        status = history[-1].status
    alpha = (x[:D] / np.sqrt(D)).reshape(-1, sums.stream.block_size)
    n_iter = sum(stage.n_iter for stage in history)
    return Polished(alpha, offset(x), n_iter, status, tuple(history), mean)
