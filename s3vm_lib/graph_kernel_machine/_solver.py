"""Sums over kernel values, the two lazy accumulators, compiled windows of steps, the algorithm."""

import copy
import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from s3vm_lib.gram import append_rows
from s3vm_lib.graphs import power_slope, sample_edge
from s3vm_lib.kernels import exp_inplace
from s3vm_lib.losses import labeled_derivative, labeled_value
from s3vm_lib.utils.jit import njit
from s3vm_lib.utils.random_numbers import hash_key, uniform

_ROWS = 256  # support rows whose kernel values are computed together: fits the cache
SMALLEST_SCALE = 1e-6
_CHUNK = 2**21  # kernel values computed at once in double precision
_DENSE = 4096  # features up to which sparse rows are made dense
_PROBES = 256  # rows at which the average is watched
_LARGEST_EXPONENT = 1e4  # γ‖x‖² that is resolved to about 1e-3 in float32

# --- Compiled: draws, kernel sums, a window of steps ----------------------------------------------

_STATE = (
    "h",  # Σ scale_t / (t − 1)
    "sum_a", "sum_b",  # Σ a of the losses, and Σ b
    "norm2", "scale",  # ‖Σ a_j Φ_j‖², and the factor of all a
)  # fmt: skip
_TOTALS = (
    "loss", "smooth", "regularizer",  # sums over the steps: C ℓ, C' factor |d|^p and ½‖w_t‖²
    "norm", "gradient",  # largest ‖w_t‖, and largest norm of a stochastic gradient
    "given_up",  # support rows given up for a budget
)  # fmt: skip
STATE = np.dtype((np.record, [(name, float) for name in _STATE]))
TOTALS = np.dtype((np.record, [(name, float) for name in _TOTALS]))


class Terms(NamedTuple):
    """What the steps minimize."""

    loss: int  # code of the labeled loss, and its parameter
    p: float
    C: float  # weight of the mean loss
    C_graph: float  # C'
    power: float
    offset: float  # 1.0 with an offset, else 0.0
    radius: float  # of the ball, infinite for none


def terms_of(problem, mass, offset, radius):
    """Return the `Terms` of a problem whose labeled rows have the weight ``mass``."""
    loss, weights = problem.labeled_loss, (problem.C * mass, problem.C_graph, problem.power)
    return Terms(loss.code, loss.p, *map(float, weights), offset, float(radius))


@njit
def draw_labeled(cumulative, key, first, out):
    """Draw positions of labeled rows in proportion to their weights: draws first, first + 1, …

    Parameters
    ----------
    cumulative : ndarray of shape (l,)
        Cumulative weights.
    key : int
        Key of the stream.
    first : int
        Number of the first draw.
    out : int ndarray of shape (steps,)
        Receives the positions.
    """
    last = cumulative.size - 1
    for s in range(out.size):
        mark = uniform(key, first + s) * cumulative[last]
        # The first position whose cumulative weight exceeds the mark, or the last one
        low, high = 0, last
        while low < high:
            middle = (low + high) // 2
            if cumulative[middle] <= mark:
                low = middle + 1
            else:
                high = middle
        out[s] = low


@njit
def draw_edges(sampler, key, first, i, j, factor):
    """Draw edges first, first + 1, … into the three output arrays of shape (steps,)."""
    for s in range(i.size):
        i[s], j[s], factor[s] = sample_edge(sampler, key, first + s)


def draw_steps(cumulative, sampler, keys, first, m):
    """Draw the labeled rows and the edges of m steps, whose factor is 0 without a sampler."""
    drawn, i, j = np.zeros((3, m), np.int64)
    factor = np.zeros(m)
    draw_labeled(cumulative, keys[0], first, drawn)
    if sampler is not None:
        draw_edges(sampler, keys[1], first, i, j, factor)
    return drawn, i, j, factor


@njit
def rbf_sums(support, points, coefficients, out):
    """Add Σ_j coefficients[j, r] exp(−γ‖s_j − z_q‖²) to out[q, r] in single precision.

    Rows come extended, (√(2γ) x, −γ‖x‖², 1) in ``support`` and (√(2γ) z, 1, −γ‖z‖²) in
    ``points``, so that one matrix product gives all exponents.
    """
    for start in range(0, support.shape[0], _ROWS):
        end = min(start + _ROWS, support.shape[0])
        E = np.dot(points, support[start:end].T)
        for q in range(E.shape[0]):
            exp_inplace(E[q])
        part = np.dot(E, coefficients[start:end])
        for q in range(out.shape[0]):
            for r in range(out.shape[1]):
                out[q, r] += part[q, r]


@njit
def window(first, labeled, left, right, factor, y, F, K, terms, state, totals, slopes, counts):
    """Take steps first + 1, first + 2, … of the algorithm on rows that were drawn beforehand.

    Comments number the lines of the algorithm in the chapter on the graph kernel machine.

    Parameters
    ----------
    first : int
        Number of steps done before.
    labeled, left, right : int ndarrays of shape (steps,)
        Positions in F of the labeled row and of the two ends of the edge of each step; ``left``
        is −1 where no edge is needed.
    factor : ndarray of shape (steps,)
        Weight of the edge, see `s3vm_lib.graphs.sample_edge`.
    y : ndarray of shape (steps,)
        Targets of the labeled rows.
    F : ndarray of shape (q,)
        Sums Σ_j a_j k(x_j, ·) at the rows of the window; kept up to date.
    K : ndarray of shape (q, q)
        Kernel values between these rows.
    terms : Terms
    state : ndarray of `STATE`, shape (1,)
        Kept up to date.
    totals : ndarray of `TOTALS`, shape (1,)
        Sums over the steps are added, largest norms are kept.
    slopes : ndarray of shape (steps, 2)
        Receives what is added to a: at the labeled row, and at ``left`` (its negative at
        ``right``).
    counts : ndarray of shape (steps,)
        Receives h.

    Returns
    -------
    int
        Number of steps done: fewer than asked for when the scale has become so small that h would
        lose its digits, see `Accumulators`.
    """
    now, total, C_graph = state[0], totals[0], terms.C_graph
    for s in range(labeled.size):  # line 2
        t = first + s + 1
        l, u, v = labeled[s], left[s], right[s]
        # Line 5 is kept as h, of which w̄ is made at the end (see `Accumulators`).
        c = 0.0  # w_t = −2 scale a / ((t − 1) t), and w_1 = 0
        if t > 1:
            now.h += now.scale / (t - 1)
            c = -2.0 * now.scale / ((t - 1.0) * t)
        # Line 3: the slope of the loss, and the pull of the edge on its ends.
        f = c * (F[l] + terms.offset * now.sum_a)
        slope = terms.C * labeled_derivative(terms.loss, y[s], f, terms.p)
        smooth, pull = 0.0, 0.0
        if u >= 0:
            d = c * (F[u] - F[v])
            pull = C_graph * factor[s] * power_slope(d, terms.power)
            smooth = C_graph * factor[s] * abs(d) ** terms.power
        norm2 = c * c * now.norm2
        total.loss += terms.C * labeled_value(terms.loss, y[s], f, terms.p)
        total.smooth += smooth
        total.regularizer += 0.5 * norm2
        total.norm = max(total.norm, math.sqrt(norm2))
        # ‖ξ_t‖² and ⟨a, ξ_t⟩ from kernel values at hand; the constant is seen by the loss alone.
        inner = slope * (F[l] + terms.offset * now.sum_a)
        square = slope * slope * (K[l, l] + terms.offset)
        if pull != 0.0:
            inner += pull * (F[u] - F[v])
            square += pull * pull * (K[u, u] + K[v, v] - 2.0 * K[u, v])
            square += 2.0 * slope * pull * (K[l, u] - K[l, v])
        total.gradient = max(total.gradient, math.sqrt(max(0.0, norm2 + 2.0 * c * inner + square)))
        # Line 4: a ← a + t ξ_t, of which the outputs F follow.
        weight = t / now.scale
        slopes[s, 0], slopes[s, 1], counts[s] = weight * slope, weight * pull, now.h
        now.norm2 = max(0.0, now.norm2 + 2.0 * weight * inner + weight * weight * square)
        now.sum_a += slopes[s, 0]
        if slope != 0.0:
            for q in range(F.size):
                F[q] += slopes[s, 0] * K[l, q]
        if pull != 0.0:
            for q in range(F.size):
                F[q] += slopes[s, 1] * (K[u, q] - K[v, q])
        # The projection of line 4, where there is one: a factor of all coefficients.
        norm = 2.0 * now.scale * math.sqrt(now.norm2) / (t * (t + 1.0))
        if norm > terms.radius:
            now.scale *= terms.radius / norm
            if now.scale < SMALLEST_SCALE:
                return s + 1
    return labeled.size


# --- Results --------------------------------------------------------------------------------------


class Stretch(NamedTuple):
    """What happened since the last look at the average (see `solve_gkm`)."""

    n_iter: int  # steps done
    objective: float  # mean of ½‖w_t‖² + C ℓ + C' factor |d|^p over the steps of the stretch
    norm: float  # largest ‖w_t‖ so far
    gradient: float  # largest norm of a stochastic gradient so far
    n_support: int  # rows visited
    change: float  # of the averaged outputs, relative; infinite at the first look
    given_up: int  # support rows given up for a budget so far (`BGS3VM`)


class Solution(NamedTuple):
    """Result of `solve_gkm`."""

    beta: np.ndarray  # coefficients of k(x_i, ·) in the averaged function, (n,)
    b: float  # its offset, the sum of the coefficients of the losses, or 0
    last: np.ndarray  # coefficients of the last iterate, (n,)
    last_b: float
    n_iter: int
    status: str  # "converged", "max_iter" or "stopped" (by the callback)
    history: list  # of Stretch


# --- The accumulators -----------------------------------------------------------------------------


class KernelSums:
    """Sums Σ_j a_j k(x_j, x) over a growing list of rows.

    It uses no store of `s3vm_lib.gram`: each sum is of other rows, and no kernel value is kept.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows; the n × n Gram matrix with ``precomputed``.
    kernel : Kernel
    single : bool, default=True
        Compute sums of an rbf kernel in single precision.
    """

    def __init__(self, X, kernel, single=True):
        self.kernel = kernel
        self.single = single and kernel.name == "rbf" and X.shape[1] <= _DENSE
        self.center = None
        if self.single:  # distances stay the same, and single precision keeps their digits
            self.center = np.asarray(X.sum(axis=0)).ravel() / max(1, X.shape[0])
            self.single = self._largest_exponent(X) <= _LARGEST_EXPONENT
        self.size = 0
        self._kept = None
        self.X = X

    def _largest_exponent(self, X):
        """Return max γ‖x‖² of the centered rows."""
        largest, step = 0.0, _CHUNK // max(1, X.shape[1]) + 1
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step]
            rows = (rows.toarray() if sp.issparse(rows) else rows) - self.center
            largest = max(largest, float(np.einsum("ij,ij->i", rows, rows).max()))
        return self.kernel.gamma * largest

    def extend(self, X):
        """Take over the rows X, of which those before are the first."""
        if self.single and self._largest_exponent(X[self.X.shape[0] :]) > _LARGEST_EXPONENT:
            raise ValueError(
                "X of partial_fit is too far from the first rows for single precision with this "
                "gamma: scale the data or set precision='double'"
            )
        self.X = X

    def rows(self, index):
        """Return the rows ``index``, dense unless they are long and sparse."""
        X = self.X[index]
        return X.toarray() if sp.issparse(X) and X.shape[1] <= _DENSE else X

    def gram(self, index):
        """Return the kernel values between the rows ``index``."""
        if self.kernel.name == "precomputed":
            return np.ascontiguousarray(self.X[np.ix_(index, index)])
        if not self.single:
            return self.kernel.gram(self.rows(index))
        points = self._lengthened(index, True)
        K = np.exp(np.minimum(self._lengthened(index, False) @ points.T, 0)).astype(np.float64)
        return self.kernel.sigma_f**2 * K

    def append(self, index):
        """Add the rows ``index`` to the list."""
        self.size += index.size
        if self.kernel.name == "precomputed":
            return
        new = self._lengthened(index, False) if self.single else self.rows(index)
        spare = max(self.size, 1024 - self.size)
        self._kept = append_rows(self._kept, self.size - index.size, new, spare)

    def _lengthened(self, index, as_points):
        """Return (√(2γ) x, −γ‖x‖², 1), or the last two exchanged, in single precision."""
        scaled = (self.rows(index) - self.center) * math.sqrt(2 * self.kernel.gamma)
        out = np.ones((index.size, scaled.shape[1] + 2), np.float32)
        out[:, :-2] = scaled
        half = out[:, :-2].astype(np.float64)
        out[:, -1 if as_points else -2] = -0.5 * np.einsum("ij,ij->i", half, half)
        return out

    def at(self, index, listed, coefficients):
        """Return the sums at the rows ``index``.

        Parameters
        ----------
        index : int ndarray of shape (q,)
        listed : int ndarray of shape (m,)
            The rows in the list, in the order in which they were added.
        coefficients : ndarray of shape (m, r)

        Returns
        -------
        ndarray of shape (q, r)
        """
        if self.kernel.name == "precomputed":
            return self.X[index][:, listed] @ coefficients
        if self.single:
            out = np.zeros((index.size, coefficients.shape[1]), np.float32)
            # Weights that single precision cannot hold are scaled by a power of 2.
            unit = _single_unit(coefficients)
            with np.errstate(over="ignore"):  # of steps that diverge; fit raises
                weights = np.ascontiguousarray(coefficients / unit, np.float32)
            rbf_sums(self._kept[: self.size], self._lengthened(index, True), weights, out)
            return self.kernel.sigma_f**2 * unit * out.astype(np.float64)
        points, out = self.rows(index), np.zeros((index.size, coefficients.shape[1]))
        step = max(1, _CHUNK // index.size)
        for start in range(0, self.size, step):
            end = min(start + step, self.size)
            out += self.kernel.gram(self._kept[start:end], points).T @ coefficients[start:end]
        return out


def _single_unit(values):
    """Return 1, or a power of 2 without which the largest value would leave single precision."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0 or 1e-25 < largest < 1e25 or not math.isfinite(largest):
        return 1.0
    return 2.0 ** math.frexp(largest)[1]


class Accumulators:
    """The two accumulators of the lazy form, and the step counter.

    With ξ_i = C ∇ℓ + C' ∇|d|^p at step i, a = Σ_i i ξ_i and b = Σ_i i H_{i−1} ξ_i with the harmonic
    numbers H, the iterates and their weighted average are

        w_t = −2a / ((t − 1) t),   w̄_{T+1} = −4 (H_{T−1} a − b) / (T (T + 1)).

    A projection w ← c w multiplies a by c. This factor is kept apart as ``scale``, and then a and b
    collect i ξ_i / scale and h times that, with h = Σ scale_t / (t − 1) in place of H.

    Parameters
    ----------
    sums : KernelSums
    offset : bool
        Whether 1 is added to the kernel.
    """

    def __init__(self, sums, offset):
        self.sums = sums
        self.offset = float(offset)
        self.n_iter = 0
        self.state, self.totals = np.zeros(1, STATE), np.zeros(1, TOTALS)
        self.state["scale"] = 1.0
        self._listed = np.empty(1024, np.int64)
        self._ab = np.zeros((1024, 2))
        self.place = np.full(sums.X.shape[0], -1, np.int64)

    def extend(self, X, labeled):
        """Take over more rows; X begins with those before, and ``labeled`` marks labeled ones."""
        self.sums.extend(X)
        more = X.shape[0] - self.place.size
        self.place = np.concatenate([self.place, np.full(more, -1, np.int64)])

    def copied(self):
        """Return a copy of all but the rows, to be changed in its place.

        Arrays of a model in a memory map cannot be written to. Of the list of `KernelSums` rows
        within its size are never overwritten, and those beyond belong to no copy.
        """
        other = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, KernelSums):
                setattr(other, name, copy.copy(value))
            elif isinstance(value, np.ndarray) and name != "X":
                setattr(other, name, np.array(value))
        return other

    @property
    def listed(self):
        """Rows with a coefficient, in the order in which they were visited."""
        return self._listed[: self.sums.size]

    @property
    def ab(self):
        """a and b at these rows, shape (m, 2)."""
        return self._ab[: self.sums.size]

    def average(self):
        """Return the coefficients of w̄ on the listed rows, and its offset."""
        T, now = max(self.n_iter, 1), self.state[0]
        factor = -4.0 / (T * (T + 1.0))
        dual = factor * (now.h * self.ab[:, 0] - self.ab[:, 1])
        return dual, self.offset * factor * (now.h * now.sum_a - now.sum_b)

    def last(self):
        """Return the coefficients of w_{T+1} on the listed rows, and its offset."""
        T, now = max(self.n_iter, 1), self.state[0]
        factor = -2.0 * now.scale / (T * (T + 1.0))
        return factor * self.ab[:, 0], self.offset * factor * now.sum_a

    def spread(self, on_listed):
        """Return the coefficients of all rows from those of the listed ones."""
        out = np.zeros(self.place.size)
        out[self.listed] = on_listed
        return out

    def outputs(self, index):
        """Return the averaged function at the rows ``index``, offset included."""
        if self.listed.size == 0:
            return np.zeros(index.size)
        dual, b = self.average()
        return self.sums.at(index, self.listed, dual[:, None])[:, 0] + b

    def norm2(self):
        """Return ‖w̄‖², the offset apart."""
        dual, b = self.average()
        return float(dual @ (self.outputs(self.listed) - b))

    def add(self, rows, slopes, counts):
        """Add slopes to a and counts · slopes to b at the rows, listing those that are new."""
        used = slopes != 0.0
        rows, slopes, counts = rows[used], slopes[used], counts[used]
        # Rows with a first slope join the list.
        new = np.unique(rows[self.place[rows] < 0])
        if new.size:
            start, end = self.sums.size, self.sums.size + new.size
            if end > self._listed.size:
                more = max(end, self._listed.size)
                self._listed = np.concatenate([self._listed, np.empty(more, np.int64)])
                self._ab = np.concatenate([self._ab, np.zeros((more, 2))])
            self._listed[start:end] = new
            self.place[new] = np.arange(start, end)
            self.sums.append(new)
        at = self.place[rows]
        # A row may be drawn several times in one window.
        np.add.at(self._ab[:, 0], at, slopes)
        np.add.at(self._ab[:, 1], at, counts * slopes)

    def forget(self):
        """Begin the sums of a stretch anew; the largest norms are those of all steps."""
        for name in ("loss", "smooth", "regularizer"):
            self.totals[name] = 0.0

    def rescale(self):
        """Set the scale to 1 and h to 0, which leaves w and w̄ as they are.

        In w̄ only the differences of h to its last value count, and they drown in its first terms
        when the scale has become small.
        """
        now = self.state[0]
        self._ab[:, 1] -= now.h * self._ab[:, 0]
        self._ab[:, 0] *= now.scale
        now.sum_b -= now.h * now.sum_a
        now.sum_a *= now.scale
        now.norm2 *= now.scale**2
        now.h, now.scale = 0.0, 1.0

    @np.errstate(over="ignore", invalid="ignore")  # steps that diverge end in an error
    def advance(self, n_steps, rows, targets, cumulative, sampler, problem, keys, radius, width=64):
        """Run steps of Algorithm 1, whose lines the comments number as in the chapter.

        Parameters
        ----------
        n_steps : int
            Number of steps.
        rows : int ndarray of shape (l,)
            The labeled rows.
        targets : ndarray of shape (l,)
            Their targets: −1 and +1, or real numbers for regression.
        cumulative : ndarray of shape (l,)
            Cumulative weights of the labeled rows.
        sampler : EdgeSampler or None
            Where edges come from, None for no graph.
        problem : Problem
            Losses, C (in sum form), C_graph, power.
        keys : tuple of two int
            Streams of labeled rows and of edges.
        radius : float
            Iterates are projected onto this ball; infinite for the algorithm as it is.
        width : int, default=64
            Steps whose kernel sums are computed together; the result is the same for every width.
        """
        sampler = sampler if problem.C_graph > 0 else None
        terms, now = terms_of(problem, cumulative[-1], self.offset, radius), self.state[0]
        end, ahead = self.n_iter + n_steps, width
        while self.n_iter < end:
            first = self.n_iter
            m = min(ahead, end - first)
            # Line 3, the draws of the window: a row of labels and an edge per step.
            drawn, i, j, factor = draw_steps(cumulative, sampler, keys, first, m)
            pulled = np.flatnonzero(factor)
            index = np.concatenate([rows[drawn], i[pulled], j[pulled]])
            left, right = np.full((2, m), -1)
            left[pulled] = m + np.arange(pulled.size)
            right[pulled] = left[pulled] + pulled.size
            # The sums over the rows visited so far, by matrix products for the whole window.
            F = np.zeros(index.size)
            if self.listed.size:
                a = self.ab[:, :1]
                F = np.ascontiguousarray(self.sums.at(index, self.listed, a)[:, 0])
            # Lines 2 to 6.
            slopes, counts = np.zeros((m, 2)), np.zeros(m)
            done = window(
                first, np.arange(m), left, right, factor, targets[drawn], F,
                self.sums.gram(index), terms, self.state, self.totals, slopes, counts,
            )  # fmt: skip
            pull = slopes[pulled, 1]
            self.add(
                index,
                np.concatenate([slopes[:, 0], pull, -pull]),
                np.concatenate([counts, counts[pulled], counts[pulled]]),
            )
            now.sum_b += float(counts @ slopes[:, 0])
            self.n_iter += done
            # What is computed for steps after a scale that is too small is lost.
            ahead = done if now.scale < SMALLEST_SCALE else min(width, 2 * ahead)
            if now.scale < 1.0:
                self.rescale()


# --- The algorithm --------------------------------------------------------------------------------


def solve_gkm(
    X, targets, labeled, sample_weight, problem, sampler, *, seed=0, tol=0.0, max_iter=10_000,
    first=None, radius=math.inf, single=True, width=64, callback=None, accumulators=None,
):  # fmt: skip
    """Minimize the objective of a graph kernel machine by stochastic gradients (Algorithm 1).

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows; the Gram matrix with a precomputed kernel.
    targets : ndarray of shape (n,)
        Targets of labeled rows, −1 and +1 or real numbers; others are not read.
    labeled : ndarray of bool, shape (n,)
    sample_weight : ndarray of shape (n,)
        Weights of the losses.
    problem : Problem
        With ``bias`` ``"regularized"`` or ``"none"``.
    sampler : EdgeSampler or None
        See `s3vm_lib.graphs.edge_sampler`.
    seed : int, default=0
        0 ≤ seed < 2⁶³.
    tol : float, default=0.0
        Stop when doubling the number of steps changed the averaged outputs, at up to 256 rows, by
        at most this share of their root mean square, or of that of the targets if it is larger,
        unless J exceeds that of f = 0 by more than this share.
    max_iter : int, default=10_000
        Largest number of steps T.
    first : int, default=None
        Steps before the first look; each later one comes after twice as many. None: n, at least
        500.
    radius : float, default=inf
        Radius of the ball that iterates are projected onto.
    single : bool, default=True
        Single precision for the values of an rbf kernel.
    width : int, default=64
        Steps done together.
    callback : callable, default=None
        Called with each `Stretch`; a true value stops.
    accumulators : Accumulators, default=None
        Where to collect, without any step so far; None makes new ones.

    Returns
    -------
    Solution
    """
    rows = np.flatnonzero(labeled)
    weight, known = sample_weight[rows], targets[rows]
    cumulative = np.cumsum(weight)
    if accumulators is None:
        sums = KernelSums(X, problem.kernel, single)
        accumulators = Accumulators(sums, problem.bias == "regularized")
    keys, n = streams(seed), X.shape[0]
    # Where the average is watched, and what its changes are compared with.
    probes = np.unique(np.linspace(0, n - 1, min(n, _PROBES)).astype(np.int64))
    size = math.sqrt(np.average(known**2, weights=weight))
    look = max(500, n) if first is None else first
    status, history, before, values, done = "max_iter", [], None, None, 0
    while True:
        # Line 2, up to the next look at the average: after twice as many steps as the last one.
        look = min(look, max_iter)
        accumulators.forget()
        accumulators.advance(
            look - done, rows, known, cumulative, sampler, problem, keys,
            radius, width,
        )  # fmt: skip
        before, values = values, accumulators.outputs(probes)
        history.append(stretch_of(accumulators, look - done, before, values, size))
        done = look
        stop = callback is not None and callback(history[-1])
        parts = known, rows, weight, problem
        if history[-1].change <= tol and not _worse(accumulators, history[-1], tol, *parts):
            status = "converged"
        elif stop:
            status = "stopped"
        if status != "max_iter" or done >= max_iter:
            break
        look *= 2
    return solution_of(accumulators, status, history)


def _worse(accumulators, stretch, tol, t, rows, weight, problem):
    """Return whether J at the average is above that of f = 0: what is enormous changes slowly, too.

    By more than the share ``tol``, since f = 0 may be the minimum. The mean of J at the iterates,
    where it is small, answers without the price of kernel values.
    """
    zero = problem.C * weight @ problem.labeled_loss.value(t, np.zeros(t.size)) * (1.0 + tol)
    if stretch.objective <= zero:
        return False
    loss = problem.C * weight @ problem.labeled_loss.value(t, accumulators.outputs(rows))
    return loss > zero or loss + 0.5 * accumulators.norm2() > zero


def streams(seed):
    """Return the keys of the draws of labeled rows and of edges."""
    return hash_key(seed, 0), hash_key(seed, 1)


def solution_of(accumulators, status, history):
    """Return the `Solution` that accumulators stand for."""
    dual, b = accumulators.average()
    last, last_b = accumulators.last()
    spread, n_iter = accumulators.spread, accumulators.n_iter
    return Solution(spread(dual), b, spread(last), last_b, n_iter, status, history)


def stretch_of(accumulators, n_steps, before=None, values=None, size=1.0):
    """Return the `Stretch` of the last steps, whose sums are in ``totals``."""
    change = math.inf
    if before is not None:
        size = max(size, float(np.sqrt(np.mean(values**2))))
        change = float(np.sqrt(np.mean((values - before) ** 2))) / size if size > 0 else 0.0
    total, seen = accumulators.totals[0], accumulators.listed.size
    mean = float(total.loss + total.smooth + total.regularizer) / max(1, n_steps)
    largest = float(total.norm), float(total.gradient)
    return Stretch(accumulators.n_iter, mean, *largest, seen, change, int(total.given_up))
