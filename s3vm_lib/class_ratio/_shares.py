"""What labels, scores and outputs say about the share of a class, one formula each."""

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import nnls
from scipy.special import xlogy

PRIOR = 0.5  # of Jeffreys: half a row of each class
_MOST = 1e9  # labels: scipy has no interval of a share that is known much better


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
        1 or 0, as predicted for these rows by a model that has not seen their labels.
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
    """Combine what several models say of one share, from the same labels.

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
