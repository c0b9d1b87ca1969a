"""Estimates of a class's share from labels, scores and outputs, and one machine at many ratios."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy import stats
from scipy.integrate import trapezoid  # np.trapezoid needs NumPy 2.0
from scipy.optimize import nnls
from scipy.special import xlogy

PRIOR = 0.5  # of Jeffreys: half a row of each class
_MOST = 1e9  # labels: scipy has no interval of a share that is known much better
STRUCTURE = 6.0  # labeled rows that the separation of the outputs counts for, at most
_FINE = 401  # ratios of a posterior
_CONSISTENT = 0.1  # largest distance between a ratio and the share of positive outputs


def label_shares(data):
    """Return the share of each class among the labeled rows, by weight, shape (n_classes,)."""
    labeled = data.codes >= 0
    mass = np.bincount(data.codes[labeled], data.sample_weight[labeled], data.n_classes)
    return mass / mass.sum()


def label_posterior(positive, negative, prior=PRIOR):
    """Return the posterior of a share after a random sample of labels.

    Parameters
    ----------
    positive, negative : float
        Labeled rows of the class and of the others, or their total weights; more than 10⁹ count
        as so many.
    prior : float, default=0.5
        Rows of each kind that the prior is worth; 0.5 is Jeffreys', 1 the uniform one.

    Returns
    -------
    scipy.stats.rv_frozen
        The Beta distribution, with ``mean()``, ``interval(0.95)`` and ``logpdf``.

    Examples
    --------
    >>> from s3vm_lib.class_ratio import label_posterior
    >>> low, high = label_posterior(10, 15).interval(0.95)
    >>> print(f"{low:.2f} to {high:.2f}")
    0.23 to 0.59
    """
    factor = _MOST / max(positive + negative, _MOST)
    return stats.beta(factor * positive + prior, factor * negative + prior)


def black_box_shares(confusion, predicted):
    """Estimate the shares of the classes from the predictions of any classifier.

    If only the shares differ between two samples, the distribution of the predictions given the
    class is the same in both, and the shares w of the second solve ``confusion @ w = predicted``.

    Parameters
    ----------
    confusion : ndarray of shape (n_classes, n_classes)
        Column k: how often each class is predicted for rows of class k (held out of training).
    predicted : ndarray of shape (n_classes,)
        Share of rows for which each class is predicted in the second sample.

    Returns
    -------
    ndarray of shape (n_classes,)
        Non-negative least squares solution, divided by its sum; ``predicted`` where that is 0.

    References
    ----------
    Z. Lipton, Y.-X. Wang and A. Smola, "Detecting and correcting for label shift with black box
    predictors", ICML 2018.
    """
    predicted = np.asarray(predicted, dtype=float)
    shares = nnls(np.asarray(confusion, dtype=float), predicted)[0]
    return shares / shares.sum() if shares.any() else predicted


def em_shares(posterior, prior, weight=None, tol=1e-8, max_iter=10_000):
    """Find the shares of the classes under which a classifier's probabilities are most likely.

    Parameters
    ----------
    posterior : ndarray of shape (n, n_classes)
        Probabilities of the classes for each row, made for the shares ``prior``.
    prior : ndarray of shape (n_classes,)
        Positive shares of the classes in training.
    weight : ndarray of shape (n,), default=None
        Weights of the rows.
    tol : float, default=1e-8
        The iteration ends when no share changes by more.
    max_iter : int, default=10000
        Largest number of iterations.

    Returns
    -------
    ndarray of shape (n_classes,)

    References
    ----------
    M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a classifier to new a
    priori probabilities", Neural Computation 14 (2002), equations (2.9)-(2.10).
    """
    prior = np.asarray(prior, dtype=float)
    s = np.full(len(posterior), 1 / len(posterior)) if weight is None else weight / np.sum(weight)
    shares = prior.copy()
    for _ in range(max_iter):
        # Probabilities under the new shares by the rule of Bayes; their mean is the next guess.
        corrected = posterior * (shares / prior)
        found = s @ (corrected / corrected.sum(axis=1, keepdims=True))
        change = np.abs(found - shares).max()
        shares = found
        if change <= tol:
            break
    return shares


class HeldOut(NamedTuple):
    """An estimate of a share with its standard error."""

    estimate: float
    error: float


def powered_share(y, predicted, share, weight=None):
    """Estimate the share of positives by predictions that labels held out correct.

    The share of predicted positives among all rows is precise but biased, that of the labels
    unbiased but noisy. With s the first, ȳ the share of labels and p̄ that of the predictions for
    these very rows,

        estimate = ȳ + λ (s − p̄)

    is unbiased for every fixed λ, and has the smallest variance, (1 − ρ²) var(y)/l, for
    λ = cov(y, p)/var(p). Here λ is estimated, with a quarter of a row as prior, and kept in [0, 1].

    Parameters
    ----------
    y : ndarray of shape (l,)
        1 for labeled rows of the class, 0 for others.
    predicted : ndarray of shape (l,)
        1 or 0, as predicted for these rows by a model fitted without their labels.
    share : float
        Share of rows without label for which that model predicts 1.
    weight : ndarray of shape (l,), default=None
        Weights of the labeled rows.

    Returns
    -------
    HeldOut
        The estimate, and its standard error with half a row of misfit as least variance.

    References
    ----------
    A. Angelopoulos, S. Bates, C. Fannjiang, M. Jordan and T. Zrnic, "Prediction-powered
    inference", Science 382 (2023); A. Angelopoulos, J. Duchi and T. Zrnic, "PPI++", 2023, for λ.
    """
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    mass = weight.sum()
    s = weight / mass
    y_mean, p_mean = s @ y, s @ predicted
    covariance = s @ ((y - y_mean) * (predicted - p_mean))
    variance = s @ (predicted - p_mean) ** 2
    power = min(max(covariance / (variance + 0.25 / mass), 0.0), 1.0)
    rest = y - power * predicted
    spread = max(s @ (rest - s @ rest) ** 2, 0.5 / mass)
    return HeldOut(
        float(y_mean + power * (share - p_mean)), float(np.sqrt((spread + 0.25 / mass) / mass))
    )


def pooled(estimates, errors):
    """Combine the estimates of one share by several models, from the same labels.

    Parameters
    ----------
    estimates, errors : array-like of shape (m,)
        Of `powered_share`, one model each.

    Returns
    -------
    HeldOut
        The estimates, weighted by the inverse squares of their variances, so that models which
        predict held-out labels well count most. The error is that of a single one: all use the
        same labels.
    """
    errors = np.asarray(errors, dtype=float)
    weight = errors**-4.0 / np.sum(errors**-4.0)
    return HeldOut(float(weight @ estimates), float((weight @ errors**-2.0) ** -0.5))


def separation(outputs, share, weight=None):
    """Measure how much better two normal distributions explain the outputs than one, per row.

    The rows with the largest outputs, a share r of all, and the others get a normal distribution
    each, of a common variance W; all together have the variance T. The difference of the two
    log-likelihoods, each row counted for its own group, is

        ½ log(T/W) + r log r + (1 − r) log(1 − r)

    per row: the criterion of minimum error, which in contrast to the variance between the groups
    does not prefer groups of equal size.

    Parameters
    ----------
    outputs : ndarray of shape (u,)
        f(x_j) + b of the unlabeled rows.
    share : float
        r, in (0, 1); the row in which the first group ends is divided.
    weight : ndarray of shape (u,), default=None
        Weights of the rows.

    Returns
    -------
    float
        About −0.2 for one normal distribution cut in the middle, and large for two groups with a
        gap between them; 0 if all outputs are equal.

    References
    ----------
    J. Kittler and J. Illingworth, "Minimum error thresholding", Pattern Recognition 19 (1986),
    with a common variance.
    """
    order = np.argsort(-np.asarray(outputs, dtype=float), kind="stable")
    f = np.asarray(outputs, dtype=float)[order]
    s = np.full(f.size, 1.0 / f.size) if weight is None else (weight / np.sum(weight))[order]
    # A row in which the group ends belongs to both, so that copies are the same as a weight.
    top = np.clip(share - (np.cumsum(s) - s), 0.0, s)
    total = s @ (f - s @ f) ** 2
    if total <= 0:
        return 0.0
    r = top.sum()
    within = sum(g @ (f - g @ f / g.sum()) ** 2 for g in (top, s - top))
    within = max(within, 1e-12 * total)
    return float(0.5 * np.log(total / within) + xlogy(r, r) + xlogy(1 - r, 1 - r))


# --- One machine at many ratios -------------------------------------------------------------------


class Refits:
    """A two-class problem that is prepared once and solved for many ratios and hidden labels.

    Parameters
    ----------
    data : Training
        Of two classes; code 1 is the positive one.
    solve : callable
        From ``(data, t, ratio)``, with some labels hidden in the data and 0 for them in t, to a
        result with ``outputs``, ``objective`` and ``status``.
    """

    def __init__(self, data, solve):
        self.data, self.solve = data, solve
        self.unlabeled = np.flatnonzero(data.codes < 0)
        self.weight = data.sample_weight[self.unlabeled]
        self.last = {}  # result of each status

    def fit(self, ratio, hidden=()):
        """Solve at this ratio; the labels of the rows ``hidden`` are left out."""
        data = self.data
        if len(hidden):
            codes, weight = data.codes.copy(), data.loss_weight.copy()
            codes[hidden], weight[hidden] = -1, data.sample_weight[hidden]
            data = data._replace(codes=codes, loss_weight=weight)
        t = np.where(data.codes == 1, 1.0, -1.0)
        t[data.codes < 0] = 0.0
        found = self.solve(data, t, ratio)
        self.last[found.status] = found
        return found

    def share(self, outputs):
        """Return the share of unlabeled rows whose output is positive."""
        return float(self.weight @ (outputs[self.unlabeled] > 0) / self.weight.sum())

    def held_out(self, ratios, folds):
        """Return `powered_share` of fits without the labels of each fold, at one ratio a fold."""
        labeled = np.concatenate(folds)
        s = self.data.sample_weight
        predicted, share = np.zeros(self.data.codes.size), 0.0
        for ratio, rows in zip(ratios, folds, strict=True):
            outputs = self.fit(ratio, rows).outputs
            predicted[rows] = outputs[rows] > 0
            share += s[rows].sum() * self.share(outputs)
        y = (self.data.codes[labeled] == 1).astype(float)
        share /= s[labeled].sum()
        return powered_share(y, predicted[labeled], share, s[labeled])


def label_folds(margins, codes, n_folds):
    """Assign labeled rows to folds that depend on neither their order nor their copies.

    Within each class the rows are sorted by the margin that a supervised machine gives them and
    dealt out in turn; rows of equal margin, copies among them, stay together.

    Parameters
    ----------
    margins : ndarray of shape (n,)
        Margins of labeled rows; others are not looked at.
    codes : ndarray of int, shape (n,)
        Class index of each row, −1 where unlabeled.
    n_folds : int
        Number of folds, where every class has as many rows of different margin.

    Returns
    -------
    list of ndarray
        Rows of each fold; empty where a class has a single row.
    """
    number = np.full(codes.size, -1)
    fewest = n_folds
    for k in range(codes.max() + 1):
        rows = np.flatnonzero(codes == k)
        rows = rows[np.argsort(margins[rows], kind="stable")]
        # Rows of equal margins are copies, which stay together in one fold.
        step = np.diff(margins[rows]) > 1e-9 * np.abs(margins[codes >= 0]).max(initial=1e-300)
        number[rows] = np.concatenate([[0], np.cumsum(step)])
        fewest = min(fewest, 1 + int(step.sum()))
    if fewest < 2:
        return []
    return [np.flatnonzero((number >= 0) & (number % fewest == k)) for k in range(fewest)]


def structureless(data, random_state):
    """Draw training rows of the same mean and covariance, or of the same columns, without clusters.

    Dense rows become normal ones of the weighted mean and covariance of X; in a sparse matrix each
    column is shuffled. The labeled rows get their classes in the order in which they lie along the
    difference of the class means, as many of each as before.

    Parameters
    ----------
    data : Training
        Of two classes.
    random_state : RandomState

    Returns
    -------
    Training

    Raises
    ------
    ValueError
        With ``kernel="precomputed"``, where there are no rows.
    """
    X, n, s = data.X, data.codes.size, data.sample_weight
    if data.kernel.name == "precomputed":
        raise ValueError("surrogates need rows: kernel='precomputed' has none")
    # Sparse columns are shuffled one by one; dense rows are drawn with the same covariance.
    if sp.issparse(X):
        columns = X.tocsc(copy=True)
        for j in range(X.shape[1]):
            here = slice(columns.indptr[j], columns.indptr[j + 1])
            columns.indices[here] = random_state.choice(n, here.stop - here.start, replace=False)
        columns.sort_indices()
        Z = sp.csr_matrix(columns)
    else:
        mean = np.average(X, axis=0, weights=s)
        apart = np.sqrt(s)[:, None] * (X - mean)
        Z = mean + random_state.standard_normal((n, n)) @ apart / np.sqrt(s.sum())
    codes = data.codes.copy()
    labeled = np.flatnonzero(codes >= 0)
    first, second = (s[codes == k] @ X[codes == k] / s[codes == k].sum() for k in (0, 1))
    order = np.argsort(np.asarray(Z[labeled] @ (second - first)).ravel(), kind="stable")
    codes[labeled[order]] = np.sort(codes[labeled])
    return data._replace(X=Z, codes=codes)


class BalanceProfile(NamedTuple):
    """A machine along a grid of class ratios, see `s3vm_lib.balance_profile`."""

    ratios: np.ndarray  # (m,)
    objective: np.ndarray  # J at the solution, (m,)
    share: np.ndarray  # share of unlabeled rows with a positive output, (m,)
    separation: np.ndarray  # of the outputs, cut at the ratio, (m,)
    estimate: np.ndarray | None  # share as held-out labels correct it, (m,)
    error: np.ndarray | None  # its standard error, (m,)
    reference: np.ndarray | None  # log J of each structureless set, (surrogates, m)
    positive: float  # weight of the labeled rows of the class
    negative: float  # and of the others

    @property
    def label_share(self):
        """Share of the class among the labeled rows."""
        return self.positive / (self.positive + self.negative)

    @property
    def held_out(self):
        """The estimate from all ratios (`pooled`), or None where no labels were held out."""
        return None if self.estimate is None else pooled(self.estimate, self.error)

    def posterior(self, structure=None):
        """Return the density of the share by labels, held-out predictions and separation together.

        The logarithm of the density is that of the normal distribution of `held_out` (of the
        labels' Beta distribution where none were held out), plus ``structure`` times the
        separation.

        Parameters
        ----------
        structure : float, default=None
            Labeled rows that the separation counts for. None means 6, or a quarter of the labeled
            rows where that is less; 0 leaves it out.

        Returns
        -------
        grid, density : ndarray of shape (401,)
            On the range of the ratios.

        Raises
        ------
        ValueError
            With a single ratio, of which there is no density. So do `mean` and `interval`.
        """
        if self.ratios.size < 2:
            raise ValueError(f"a posterior needs two ratios or more, got {self.ratios.tolist()}")
        if structure is None:
            structure = min(STRUCTURE, 0.25 * (self.positive + self.negative))
        grid = np.linspace(self.ratios[0], self.ratios[-1], _FINE)
        held = self.held_out
        if held is None:
            density = label_posterior(self.positive, self.negative).logpdf(grid)
        else:
            density = -0.5 * ((grid - held.estimate) / held.error) ** 2
        density = density + structure * np.interp(grid, self.ratios, self.separation)
        density = np.exp(density - density.max())
        return grid, density / trapezoid(density, grid)

    def mean(self, structure=None):
        """Return the mean of `posterior`."""
        grid, density = self.posterior(structure)
        return float(trapezoid(grid * density, grid))

    def interval(self, level=0.95, structure=None):
        """Return the central interval that holds ``level`` of the `posterior`."""
        grid, density = self.posterior(structure)
        mass = np.cumsum(density)
        return tuple(np.interp([(1 - level) / 2, (1 + level) / 2], mass / mass[-1], grid))

    def best(self, criterion):
        """Return the ratio that one criterion alone prefers.

        Parameters
        ----------
        criterion : {"objective", "gap", "separation"}
            The lowest J; the largest mean of log J₀ − log J, with J₀ that of the structureless
            sets, where a local quadratic smooths the reference; or the largest separation. Only
            ratios count that the signs of the outputs reproduce within 0.1, if there are any.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            For another criterion, and for ``"gap"`` without surrogates.
        """
        if criterion == "objective":
            gain = -self.objective
        elif criterion == "separation":
            gain = self.separation
        elif criterion == "gap":
            if self.reference is None:
                raise ValueError("criterion='gap' needs a profile with surrogates, got none")
            gain = _smooth(self.ratios, self.reference.mean(axis=0)) - np.log(self.objective)
        else:
            raise ValueError(
                f"criterion must be 'objective', 'gap' or 'separation', got {criterion!r}"
            )
        # A ratio that the outputs do not follow is no candidate, where others are.
        consistent = np.abs(self.share - self.ratios) <= _CONSISTENT
        gain = np.where(consistent | ~consistent.any(), gain, -np.inf)
        return float(self.ratios[np.argmax(gain)])

    def plot(self, ax=None):
        """Draw the posterior, the label share and what the criteria see; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None

        Returns
        -------
        matplotlib.axes.Axes
        """
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1] if ax is None else ax
        grid, density = self.posterior()
        labels = label_posterior(self.positive, self.negative).pdf(grid)
        top = max(density.max(), labels.max())
        ax.fill_between(grid, density / top, color="#0072B2", alpha=0.25, label="posterior")
        ax.plot(grid, labels / top, color="#222222", ls=":", label="labels alone")
        for values, color, dash, name in (
            (-self.objective, "#D55E00", "--", "objective, downwards"),
            (self.separation, "#009E73", "-", "separation"),
        ):
            ax.plot(self.ratios, _unit(values), color=color, ls=dash, label=name)
        ax.axvline(self.label_share, color="#222222", lw=0.8)
        ax.set(xlabel="class ratio r", yticks=[], xlim=(grid[0], grid[-1]))
        ax.legend()
        return ax


def _unit(values):
    span = np.ptp(values)
    return (values - values.min()) / span if span > 0 else np.zeros(values.size)


def _smooth(x, y, width=0.12):
    """Return a local quadratic regression with normal weights."""
    smooth = np.empty(x.size)
    for i, center in enumerate(x):
        z = x - center
        root = np.exp(-0.25 * (z / width) ** 2)
        powers = np.vander(z, min(3, x.size))
        smooth[i] = np.linalg.lstsq(powers * root[:, None], y * root, rcond=None)[0][-1]
    return smooth


def ratio_grid(positive, negative, n_ratios):
    """Return an even grid on the 99.8 % interval of the labels' posterior, inside 1 to 99 %."""
    posterior = label_posterior(positive, negative)
    low, high = posterior.interval(0.998)
    mean = posterior.mean()
    low, high = max(low, min(0.01, mean / 2)), min(high, max(0.99, (1 + mean) / 2))
    return np.linspace(low, high, n_ratios)


def fold_ratios(data, folds, levels):
    """Return ratios at levels in [0, 1] of the grid of each fold, shape (n_levels, n_folds).

    The grid of a fold is that of the labels outside: with its own labels in it, the predictions
    for the fold would depend on the very labels that judge them.
    """
    ends = [ratio_grid(*label_masses(data, rows), 2) for rows in folds]
    return np.array([np.interp(levels, (0, 1), pair) for pair in ends]).T


def profile_of(refits, ratios=None, folds=(), references=()):
    """Return the `BalanceProfile` of a prepared problem."""
    data = refits.data
    positive, negative = label_masses(data)
    # Without ratios of the caller's, each fold has the range that its labels leave possible.
    if ratios is None:
        ratios = ratio_grid(positive, negative, 11)
        asked = fold_ratios(data, folds, np.linspace(0, 1, 11))
    else:
        asked = np.repeat(np.c_[ratios], len(folds), axis=1)
    fits = [refits.fit(r) for r in ratios]
    outputs = [fit.outputs[refits.unlabeled] for fit in fits]
    held = np.array([refits.held_out(r, folds) for r in asked]).T if folds else (None, None)
    log_J = [[np.log(other.fit(r).objective) for r in ratios] for other in references]
    return BalanceProfile(
        np.asarray(ratios, dtype=float),
        np.array([fit.objective for fit in fits]),
        np.array([refits.share(fit.outputs) for fit in fits]),
        np.array([separation(f, r, refits.weight) for f, r in zip(outputs, ratios, strict=True)]),
        *held,
        np.array(log_J) if log_J else None,
        positive,
        negative,
    )


def two_classes(codes, positive):
    """Return codes 1 for the class ``positive``, 0 for others, −1 for unlabeled rows."""
    return np.where(codes < 0, -1, (codes == positive).astype(int))


def label_masses(data, hidden=()):
    """Return the weights of labeled rows of class 1 and of the others, without those ``hidden``."""
    codes, s = (np.delete(part, hidden) for part in (data.codes, data.sample_weight))
    return tuple(float(s[codes == k].sum()) for k in (1, 0))
