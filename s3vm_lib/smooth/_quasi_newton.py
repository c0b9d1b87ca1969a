"""Algorithm 1: quasi-Newton engines along the stages of C*, with the share of (12)."""

import numpy as np
from scipy.special import expit

from s3vm_lib.smooth._annealing import SMALL, Continuation, annealed
from s3vm_lib.smooth._engines import ENGINES, minimize_dense
from s3vm_lib.smooth._objective import ScaledObjective

# Factors of the unlabeled term, by name: eight in geometric progression, which pass the point where
# the objective stops being convex in small steps, and the paper's, which leap over it.
ANNEALING = {
    "geometric": tuple(10.0 ** (3 * k / 7 - 3) for k in range(8)),
    "paper": (1e-6, 1e-4, 1e-2, 0.1, 0.5, 1.0),
}
# Stages on the way, on large features in single precision, end at so many times tol and ftol.
ROUGHLY = 10, 100
# The smooth share of the tolerance form (12) is brought into its interval up to this excess, in
# at most this many rounds after the last stage; the count itself is then met exactly.
SHARE_TOL, SHARE_ROUNDS = 1e-4, 20
DOUBT = 0.2  # share of the labels that must be wrong before another separator is looked for
SIGN = 1.5  # standard errors by which that one must be better
_TIED = 1e-12  # relative: outputs nearer to each other are equal


class SharePenalty:
    """Augmented Lagrangian of the tolerance form (12), with a smooth share of positives.

    The share of positive outputs is replaced by h = Σ_U s̄_j σ(κ f_j), and h is held inside
    [p − ε, p + ε] by ½ρ·dist(h + μ/ρ, [p − ε, p + ε])² (Nocedal and Wright, section 17.3).

    Parameters
    ----------
    t, weight : ndarrays of shape (n,)
        See `ScaledObjective`.
    ratio, tol : float
        p and ε.
    sharpness : float
        κ.
    rho : float
        ρ.
    """

    def __init__(self, t, weight, ratio, tol, sharpness=5.0, rho=10.0):
        self.rows = np.flatnonzero(t == 0)
        self.weight = weight[self.rows]
        self.low, self.high = ratio - tol, ratio + tol
        self.sharpness, self.rho, self.multiplier = sharpness, rho, 0.0
        self.violation = np.inf  # of (12), when the multiplier was last set

    def add(self, f, slope):
        """Return the term at the outputs f; add its derivatives to ``slope``."""
        positive = expit(self.sharpness * f[self.rows])
        force = self._force(self.weight @ positive)
        slope[self.rows] += force * self.sharpness * self.weight * positive * (1.0 - positive)
        return 0.5 * force**2 / self.rho

    def numbers(self):
        """Return κ, ρ, the multiplier and both ends of the interval, for compiled code."""
        numbers = self.sharpness, self.rho, self.multiplier, self.low, self.high
        return tuple(float(number) for number in numbers)

    def _force(self, share):
        moved = share + self.multiplier / self.rho
        return self.rho * (moved - min(max(moved, self.low), self.high))

    def update(self, f):
        """Set the multiplier from the outputs f, and by how much they violate (12)."""
        share = self.weight @ expit(self.sharpness * f[self.rows])
        self.multiplier = self._force(share)
        self.violation = max(self.low - share, share - self.high, 0.0)


def offset_for_share(f, weight, ratio, tol):
    """Return the least change of the offset that brings the share of positives to within ``tol``.

    Parameters
    ----------
    f : ndarray of shape (u,)
        Outputs of the unlabeled rows.
    weight : ndarray of shape (u,)
        Their weights, summing to one.
    ratio, tol : float
        p and ε of (12).

    Returns
    -------
    float
        The change of b. Where no share lies within the tolerance (few or tied outputs), the one
        that comes closest.
    """
    order = np.argsort(-f, kind="stable")
    descending = f[order]
    # After a shift by −t the positives are the outputs above t: thresholds lie between outputs.
    shares = np.concatenate([[0.0], np.cumsum(weight[order])])
    upper = np.concatenate([[np.inf], descending])
    lower = np.concatenate([descending, [-np.inf]])
    possible = upper - lower > _TIED * np.abs(f).max(initial=0.0)
    distance = np.where(possible, np.abs(shares - ratio), np.inf)
    allowed = possible & (distance <= max(tol, distance.min() + 1e-12))
    # The threshold t in [lower, upper) nearest to 0, a little inside so that no output is 0.
    inside = 1e-3 * np.minimum(1.0, upper - lower)
    nearest = np.where(
        lower >= 0, lower + inside * (lower > 0), np.where(upper <= 0, upper - inside, 0.0)
    )
    thresholds = np.where(allowed, nearest, np.inf)
    return -float(thresholds[np.argmin(np.abs(thresholds))])


def _minimized(engine, function, unit, x, tol, *limits):
    """Run an engine, whose first step has length 1, in coefficients times ``unit``."""
    units = np.where(np.arange(x.size) < function.coordinates.dimension, unit, 1.0)

    def scaled(z):
        value, gradient = function(z / units)
        return value, gradient / units

    found = engine(scaled, units * x, tol / unit, *limits)
    return found._replace(x=found.x / units, gradient=units * found.gradient)


def solve_quasi_newton(
    coordinates,
    t,
    sample_weight,
    problem,
    *,
    annealing=ANNEALING["geometric"],
    engine="scipy",
    memory=50,
    tol=1e-5,
    ftol=1e-9,
    max_iter=500,
    start=None,
    callback=None,
):
    """Anneal the unlabeled term in from the supervised solution: Algorithm 1 (QN-S3VM).

    Parameters
    ----------
    coordinates : FeatureMap or RawCoefficients
        Where the search takes place, for the kernel of the problem. With ``balance="mean"`` they
        must be centered on the weighted mean of the unlabeled rows.
    t : ndarray of shape (n,)
        −1 and +1, and 0 for unlabeled rows; at least one labeled row.
    sample_weight : ndarray of shape (n,)
        Weights s; their sum over the labeled rows is positive.
    problem : Problem
        Losses, C, C*, and one of: ``bias="none"`` with ``balance="none"``; a free bias with
        ``balance="none"``, ``"mean"`` (the offset is then fixed at 2r − 1, equation (13)) or
        ``"share"`` (the tolerance form (12)).
    annealing : sequence of float
        Factors α of the unlabeled term, one stage each; the stage α = 0 comes before them.
    engine : {"scipy", "lbfgs", "bfgs"}, default="scipy"
    memory : int, default=50
        Number of pairs of L-BFGS.
    tol : float, default=1e-5
        Largest gradient entry of F at the end of a stage, in the `unit` of the coordinates where
        that is below one. F is 1 or so at f = 0; where it falls far below a thousandth, both
        tolerances fall with it. Dense features of a million values are read in single precision by
        the stages between the first and the last, which end at ten times ``tol`` and a hundred
        times ``ftol``.
    ftol : float, default=1e-9
        Relative decrease of F below which a stage ends.
    max_iter : int, default=500
        Iterations of a stage.
    start : tuple (w, b, C*), default=None
        The solution for a smaller C*: the stages up to it are left out, 0 among them.
    callback : callable, default=None
        Called after each stage with the `Stage`, the coefficients and the offset; a true value
        stops.

    Returns
    -------
    Solution
    """
    stages = Continuation(coordinates, t, sample_weight, problem, start)
    unlabeled, penalty = t == 0, None
    if problem.balance == "share" and np.any(sample_weight[unlabeled] > 0):
        penalty = SharePenalty(t, stages.weight, problem.ratio, problem.balance_tol)
    # Short features have small gradients: at the same tolerance they would stop too early.
    tol *= min(1.0, coordinates.unit)
    # Only down: large features may be far from 0 and not large beside their mean.
    unit = 1024.0 ** min(0.0, np.round(0.1 * np.log2(coordinates.unit or 1.0)))
    # The numbers are the lines of the chapter's algorithm. 1 is the stage α = 0; 2: the others.
    factors, term = stages.factors(annealing), None

    def plan():
        nonlocal term
        for alpha in factors:
            term = penalty if alpha > 0 else None
            yield alpha
        term = penalty
        for _ in range(SHARE_ROUNDS if penalty is not None else 0):
            yield factors[-1]
            if penalty.violation <= SHARE_TOL:
                return

    def descend(alpha, x):
        function = ScaledObjective(*stages.at(alpha, everywhere=term is not None), share=term)
        stop = tol, ftol
        if 0 < alpha < factors[-1] and function.coarsen():
            stop = ROUGHLY[0] * tol, ROUGHLY[1] * ftol
        # 3 to 9: the engine begins without pairs, and ends where the gradient is small.
        arrays = function.arrays() if engine == "lbfgs" else None
        size, n_iter, n_evaluations = 1.0, 0, 0
        while True:
            ends = size * stop[0], size * stop[1], max_iter, memory
            if arrays is None:
                minimum = _minimized(ENGINES[engine], function, unit, x, *ends)
            else:
                minimum = minimize_dense(function, arrays, x, *ends)
            x = minimum.x  # 10: the next stage starts here
            n_iter, n_evaluations = n_iter + minimum.n_iter, n_evaluations + minimum.n_evaluations
            if minimum.status != "converged" or SMALL * abs(minimum.value) > 0.1 * size:
                break
            size = SMALL * abs(minimum.value)
        if term is not None:
            term.update(stages.outputs(x))
        return minimum._replace(n_iter=n_iter, n_evaluations=n_evaluations)

    report = None if callback is None else lambda stage, x: callback(stage, *stages.split(x))
    x, history, status = annealed(plan(), stages.start, descend, report)
    shift = 0.0
    if penalty is not None:  # a share that it has nearly met is met exactly by the offset
        f, weight = stages.outputs(x)[unlabeled], stages.weight[unlabeled]
        shift = offset_for_share(f, weight, problem.ratio, problem.balance_tol)
        share = weight @ (f + shift > 0)
        if abs(share - problem.ratio) > problem.balance_tol + 0.5 * weight.max():
            status = "failed"  # there is no such threshold
    return stages.solution(x, history, status, shift)


# --- Another separator ----------------------------------------------------------------------------

# At a stationary point w = −Σ_i a_i φ̃_i, with the slopes a of the losses and centered features
# φ̃. The part of the unlabeled rows, w_U = −Σ_U a_j φ̃_j, depends on the labels only by the side
# of the gap on which it lies. Rows in a gap that runs across the classes get half of the labels
# wrong; the labeled rows are then held on their sides by other directions of a space that has
# enough of them, and neither J nor the training error shows it.


class Without:
    """Coordinates in which one direction of w has no influence on the outputs.

    Parameters
    ----------
    coordinates : FeatureMap
    direction : ndarray of shape (d,)
        Not zero.
    """

    def __init__(self, coordinates, direction):
        self.coordinates = coordinates
        self.direction = direction / np.linalg.norm(direction)
        self.dimension, self.unit = coordinates.dimension, coordinates.unit
        if hasattr(coordinates, "most_rows"):
            self.most_rows = coordinates.most_rows

    def arrays(self):
        """Return those of the coordinates, with rows orthogonal to the direction, or None."""
        found = self.coordinates.arrays()
        if found is None:
            return None
        Z, mean = found
        Z = Z - np.outer(Z @ self.direction, self.direction)
        return Z, self._rest(mean) if mean.size else mean

    def _rest(self, w):
        return w - (self.direction @ w) * self.direction

    def outputs(self, w):
        """Return outputs f, shape (n,), without the offset."""
        return self.coordinates.outputs(self._rest(w))

    def squared_norm(self, w, f):
        """Return ‖w‖²."""
        return w @ w

    def gradient(self, a, w, lam):
        """Return the gradient of the objective, with the derivatives ``a``, (n,), of the losses."""
        return self._rest(self.coordinates.gradient(a, 0.0, 0.0)) + 2.0 * lam * w

    def applied(self, a):
        """Return K̃a with the Gram matrix K̃ of these coordinates."""
        return self.outputs(self.coordinates.gradient(a, 0.0, 0.0))

    def rows(self, index):
        """Return the same coordinates on some rows only."""
        return Without(self.coordinates.rows(index), self.direction)


def contradicted(coordinates, solution, t, sample_weight, problem):
    """Weigh the labeled rows that the part of the unlabeled rows puts into the wrong class.

    Parameters
    ----------
    coordinates : FeatureMap, RawCoefficients, RawLinearCoefficients or Without
    solution : Solution
    t : ndarray of shape (n,)
        −1, +1, and 0 for unlabeled rows.
    sample_weight : ndarray of shape (n,)
    problem : Problem

    Returns
    -------
    wrong : float
        A row of output 0 is wrong. 0 where unlabeled rows have no influence.
    total : float
        Weight of all labeled rows.
    """
    labeled = t != 0
    weight = sample_weight[labeled]
    f, a = solution.outputs, np.zeros(t.size)
    a[~labeled] = sample_weight[~labeled] * problem.unlabeled_loss.derivative(f[~labeled])
    if not (problem.C_star > 0 and a.any()):
        return 0.0, float(weight.sum())
    outputs = solution.b - problem.C_star * coordinates.applied(a)[labeled]
    return float(weight[outputs * t[labeled] <= 0].sum()), float(weight.sum())


def reconsidered(first, coordinates, t, sample_weight, problem, solve):
    """Return the separator, or the next one where it contradicts the labels and that one does not.

    The next one is what Algorithm 1 finds where the direction of the first has no influence; from
    there one more descent, in all directions, ends in a stationary point of J.

    Parameters
    ----------
    first : Solution
    coordinates : FeatureMap
    t, sample_weight, problem
        As in `contradicted`.
    solve : callable
        Takes coordinates and a start, see `solve_quasi_newton`; returns a `Solution`.

    Returns
    -------
    Solution
        With the stages of all that was tried. The first one, with the status ``"stopped"``, where
        the search for the next one is stopped: half of an annealing has no meaning.
    """
    wrong, total = contradicted(coordinates, first, t, sample_weight, problem)
    if wrong < DOUBT * total or not wrong > 0 or not first.w.any():
        return first
    rest = Without(coordinates, first.w)
    other = solve(rest, None)
    if other.status == "stopped":
        return _after(first, other, taken=first._replace(status="stopped"))
    wrong_too = contradicted(rest, other, t, sample_weight, problem)[0]
    if wrong - wrong_too < SIGN * np.sqrt(wrong + wrong_too):
        return _after(first, other, taken=first)
    second = solve(coordinates, (other.w, other.b, problem.C_star))
    return _after(first, other, second, taken=second)


def _after(*tried, taken):
    """Return the solution ``taken``, with the stages of all that was ``tried``."""
    return taken._replace(
        n_iter=sum(one.n_iter for one in tried),
        history=sum((one.history for one in tried), ()),
    )
