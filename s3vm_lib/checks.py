"""Finite differences, stationarity, and the global optimum of small problems by enumeration."""

import itertools
from typing import NamedTuple

import numpy as np

from s3vm_lib.gram import Gram
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import dual_cost, dual_ridge
from s3vm_lib.objective import signed_labels
from s3vm_lib.smo import BIG, Costs, solve_smo


def numerical_gradient(function, x, step=1e-3):
    """Compute the gradient by central differences of fourth order.

    Parameters
    ----------
    function : callable
        From an array of the shape of x to a float; smooth within two steps of x.
    x : ndarray
        Point.
    step : float, default=1e-3
        Step h; the error is O(h⁴) plus rounding of order 1e-16 / h.

    Returns
    -------
    ndarray of the shape of x
    """
    x = np.asarray(x, dtype=float)
    gradient = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        h = np.zeros(x.shape)
        h[index] = step
        # Two central differences, whose errors of second order cancel.
        near = function(x + h) - function(x - h)
        far = function(x + 2 * h) - function(x - 2 * h)
        gradient[index] = (8 * near - far) / (12 * step)
    return gradient


def gradient_error(value_and_gradient, x, step=1e-3):
    """Compare a gradient with central differences; return the largest relative difference.

    Parameters
    ----------
    value_and_gradient : callable
        From x to (value, gradient).
    x : ndarray
    step : float, default=1e-3

    Returns
    -------
    float
        max_i |g_i − d_i| / max(1, max_i |d_i|).

    Raises
    ------
    ValueError
        For a gradient of another shape than x.
    """
    x = np.asarray(x, dtype=float)
    analytic = np.asarray(value_and_gradient(x)[1])
    if analytic.shape != x.shape:
        raise ValueError(f"the gradient must have the shape {x.shape} of x, got {analytic.shape}")
    numerical = numerical_gradient(lambda z: value_and_gradient(z)[0], x, step)
    return float(np.max(np.abs(analytic - numerical)) / max(1.0, np.max(np.abs(numerical))))


def stationarity(problem, K, c, b, t, sample_weight=None):
    """Measure how far (c, b) is from a stationary point of a smooth problem without a balance.

    In the space of functions the gradient of J is Σ_i (a_i + c_i) k(x_i, ·); its norm does not
    depend on how f is written.

    Parameters
    ----------
    problem : Problem
        With differentiable losses.
    K, c, b, t, sample_weight
        As in `Problem.value_and_gradient`.

    Returns
    -------
    float
        √((a + c)ᵀ K (a + c)) plus the size of the derivative in b.

    Raises
    ------
    ValueError
        For a loss with a kink, where a minimum need not have a vanishing gradient.
    """
    for loss in (problem.labeled_loss, problem.unlabeled_loss):
        if loss is not None and not loss.differentiable:
            raise ValueError(f"problem must have differentiable losses, got {loss.name!r}")
    _, gradient, gradient_b = problem.value_and_gradient(K, c, b, t, sample_weight)
    a = problem.output_gradient(K @ c + b, t, sample_weight)
    return float(np.sqrt(max(0.0, (a + c) @ gradient)) + abs(gradient_b))


class BruteForce(NamedTuple):
    """The global optimum of a small problem (see `brute_force`)."""

    objective: float
    labels: np.ndarray  # −1 and +1 for every row, 0 on the flat piece of the ramp, (n,)
    beta: np.ndarray  # signed dual variables of the rows, (n,)
    b: float
    n_solved: int  # labelings whose SVM was solved


def _loss_costs(loss, t, weight):
    """Return the arrays of `Costs`, and what the loss adds to the diagonal of K."""
    rows = list(zip(t, weight, strict=True))
    costs = np.array([dual_cost(loss.code, loss.p, *row) for row in rows]).T
    ridge = np.array([dual_ridge(loss.code, loss.p, c) for c in weight])
    if np.isnan(ridge).any():
        raise ValueError(f"losses must be piecewise quadratic, got {loss.name!r}")
    return np.clip(costs, -BIG, BIG), ridge


def fixed_label_svm(problem, K, t, labeled, sample_weight=None, tol=1e-8):
    """Solve the convex problem that is left when every row has a label.

    Parameters
    ----------
    problem : Problem
        With losses as in `brute_force`, and ``balance`` "none", "mean" or "counts"; counts are a
        matter of the labels alone and constrain nothing here.
    K : ndarray of shape (n, n)
        Gram matrix.
    t : ndarray of shape (n,)
        A label −1 or +1 for every row; 0 for a row that costs nothing.
    labeled : ndarray of bool, shape (n,)
        True for the rows that cost C ℓ, False for those that cost C* times the labeled loss that
        the unlabeled one is made of (without an unlabeled loss, the labeled one itself).
    sample_weight : ndarray of shape (n,), default=None
    tol : float, default=1e-8
        Largest violation of the optimality conditions.

    Returns
    -------
    objective, beta, b : float, ndarray of shape (n,), float

    Raises
    ------
    ValueError
        For other labels, and for a labeled row without one.

    Notes
    -----
    The balance Σ_U s_j (f_j + b) = (2r − 1) Σ_U s_j is one more point, the weighted mean of the
    unlabeled rows in feature space, with the linear cost −(2r − 1)β and no bounds.
    """
    n = len(t)
    t, labeled = np.asarray(t, dtype=float), np.asarray(labeled)
    if not np.all(np.isin(t, (-1, 0, 1))) or np.any(t[labeled] == 0):
        raise ValueError(
            "t must be −1 or +1 for labeled rows, and may be 0 for others, got "
            f"{np.unique(t[labeled])} for the labeled; from classes 0 and 1: 2 * y - 1"
        )
    s = np.ones(n) if sample_weight is None else sample_weight
    weight = np.where(labeled, problem.C, problem.C_star) * s
    losses = [problem.labeled_loss]
    if problem.unlabeled_loss is not None and not labeled.all():
        losses.append(problem.unlabeled_loss.pieces.loss)
    parts = [_loss_costs(loss, t, weight) for loss in losses]
    # A squared loss is a ridge on the diagonal of K, others are costs of the dual variables.
    costs, ridge = (np.where(labeled, a, b) for a, b in zip(parts[0], parts[-1], strict=True))
    balanced = problem.balance == "mean" and not labeled.all()
    if balanced:  # see the notes
        share = np.where(labeled, 0.0, s) / s[~labeled].sum()
        row = K @ share
        K = np.block([[K, row[:, None]], [row[None, :], np.array([[share @ row]])]])
        linear = 1 - 2 * problem.ratio
        costs = np.column_stack([costs, [-BIG, BIG, BIG, linear, linear]])
        ridge = np.append(ridge, 0.0)
    gram = Gram(np.ascontiguousarray(K + np.diag(ridge)), Kernel("precomputed"), dtype=np.float64)
    solution = solve_smo(gram, Costs(*costs), tol=tol, shrinking=False)
    beta = solution.beta[:n] + (solution.beta[n] * share if balanced else 0.0)
    f = (solution.f - ridge * solution.beta)[:n] + solution.b
    objective = 0.5 * solution.beta @ (solution.f - ridge * solution.beta)
    for loss, rows in zip((losses[0], losses[-1]), (labeled, ~labeled), strict=True):
        rows = rows & (t != 0)
        objective += weight[rows] @ loss.value(t[rows], f[rows])
    return float(objective), beta, solution.b


def brute_force(problem, K, t, sample_weight=None):
    """Find the global optimum of a small problem, over all labelings of its unlabeled rows.

    An effective loss is min(ℓ(1, f), ℓ(−1, f)), for the hinge max(0, ``1 − |f|``): the best f and
    the best labeling can be found together, and for each of the 2^u labelings the problem in f is
    convex. The symmetric ramp has a third, flat piece, and 3^u choices.

    Parameters
    ----------
    problem : Problem
        Any losses but the logistic ones and the Gaussian; ``bias="free"``; ``balance`` "none",
        "mean" or "counts" (the latter not with the ramp).
    K : ndarray of shape (n, n)
        Gram matrix.
    t : ndarray of shape (n,)
        Labels −1 and +1, and 0 for the unlabeled rows, at most 20 (12 with the ramp).
    sample_weight : ndarray of shape (n,), default=None

    Returns
    -------
    BruteForce

    Raises
    ------
    ValueError
        For another loss, bias or balance, more unlabeled rows, or labels that are classes.
    """
    pieces = getattr(problem.unlabeled_loss, "pieces", None)
    names = (problem.labeled_loss.name, getattr(problem.unlabeled_loss, "name", None))
    if pieces is None or any("logistic" in name for name in names):
        raise ValueError(
            f"losses must be a labeled loss, not logistic, and an effective loss or the ramp, got "
            f"{names}"
        )
    ramp = np.isfinite(pieces.height)
    if problem.bias != "free" or problem.balance == "share":
        raise ValueError(
            "bias must be 'free' and balance 'none', 'mean' or 'counts', got "
            f"{problem.bias!r} and {problem.balance!r}"
        )
    if ramp and problem.balance == "counts":
        raise ValueError("balance must be 'none' or 'mean' with the symmetric ramp, got 'counts'")
    t = np.asarray(t)
    unlabeled, most = np.flatnonzero(t == 0), 12 if ramp else 20
    if unlabeled.size > most:
        raise ValueError(f"t must leave at most {most} rows unlabeled, got {unlabeled.size}")
    t = signed_labels(t, unlabeled=True)
    labeled = t != 0
    s = np.ones(len(t)) if sample_weight is None else sample_weight
    weight = problem.C_star * s[unlabeled]
    # Every row takes each label in turn, and on the ramp its flat piece.
    best, solved = None, 0
    for signs in itertools.product(
        (-1.0, 0.0, 1.0) if ramp else (-1.0, 1.0), repeat=len(unlabeled)
    ):
        if problem.balance == "counts":  # a matter of the labels alone
            if signs.count(1.0) != round(problem.ratio * unlabeled.size):
                continue
        labels = t.copy()
        labels[unlabeled] = signs
        objective, beta, b = fixed_label_svm(problem, K, labels, labeled, sample_weight)
        flat = pieces.height * weight[labels[unlabeled] == 0].sum() if ramp else 0.0
        objective += pieces.base * weight.sum() + flat
        solved += 1
        if best is None or objective < best[0]:
            best = (objective, labels, beta, b)
    return BruteForce(*best, solved)
