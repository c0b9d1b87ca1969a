"""Generators of artificial sets, scikit-learn's bundled sets, and the hiding of labels."""

import numbers

import numpy as np
import scipy.sparse as sp

from s3vm_lib.utils.labels import mark_missing, mark_unlabeled


def _generator(random_state):
    """Make a `numpy.random.Generator` of whatever scikit-learn accepts as `random_state`."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)


def _positive_integer(name, value, minimum=1):
    if not isinstance(value, numbers.Integral) or value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}")
    return int(value)


def _normal_rows(n_samples, n_features, shuffle, random_state, least=1):
    """Draw normal rows, of which the first half has class 1, and an order to return them in."""
    n = _positive_integer("n_samples", n_samples, 2)
    rng = _generator(random_state)
    X = rng.standard_normal((n, _positive_integer("n_features", n_features, least)))
    order = rng.permutation(n) if shuffle else np.arange(n)
    return X, (np.arange(n) < n // 2).astype(np.int64), order


def make_g2c(n_samples=500, n_features=500, *, shuffle=True, random_state=None):
    """Draw two Gaussian clusters, one per class: the set G2C of Gieseke et al. [1]_.

    Class 1 is N((2.5, 0, ..., 0), I) and class 0 is N((−2.5, 0, ..., 0), I). The Bayes error is
    Φ(−2.5) = 0.6 %.

    Parameters
    ----------
    n_samples : int, default=500
        Number of points; class 1 has ``n_samples // 2`` of them.
    n_features : int, default=500
        Dimension.
    shuffle : bool, default=True
        Whether to permute the rows; otherwise class 1 comes first.
    random_state : int, Generator, RandomState or None, default=None
        Source of randomness; pass an int for the same set every time.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.

    References
    ----------
    .. [1] Gieseke, F., Airola, A., Pahikkala, T. and Kramer, O. (2014). Fast and simple
       gradient-based optimization for semi-supervised support vector machines. Neurocomputing 123.

    Examples
    --------
    >>> from s3vm_lib.datasets import hide_labels, make_g2c
    >>> X, y = make_g2c(random_state=0)
    >>> y_train = hide_labels(y, 25, random_state=0)
    >>> int((y_train != -1).sum())
    25
    """
    X, y, order = _normal_rows(n_samples, n_features, shuffle, random_state)
    X[:, 0] += 2.5 * (2 * y - 1)
    return X[order], y[order]


def make_g4c(n_samples=500, n_features=500, *, shuffle=True, random_state=None):
    """Draw four Gaussian clusters, two per class: the misleading set G4C of Gieseke et al. [1]_.

    The means are (±2.5, ±5, 0, ..., 0) with identity covariance; the class is the sign of the
    first coordinate of the mean, although the widest gap runs along the second.

    Parameters
    ----------
    n_samples : int, default=500
        Number of points; class 1 has ``n_samples // 2`` of them.
    n_features : int, default=500
        Dimension, at least 2.
    shuffle : bool, default=True
        Whether to permute the rows; otherwise class 1 comes first and clusters alternate.
    random_state : int, Generator, RandomState or None, default=None
        Source of randomness; pass an int for the same set every time.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.

    References
    ----------
    .. [1] Gieseke, F., Airola, A., Pahikkala, T. and Kramer, O. (2014). Fast and simple
       gradient-based optimization for semi-supervised support vector machines. Neurocomputing 123.
    """
    X, y, order = _normal_rows(n_samples, n_features, shuffle, random_state, 2)
    X[:, 0] += 2.5 * (2 * y - 1)
    X[:, 1] += np.where(np.arange(len(y)) % 2 == 1, 5.0, -5.0)  # the widest gap misleads
    return X[order], y[order]


def make_g50c(n_samples=550, n_features=50, *, shuffle=True, random_state=None):
    """Draw two Gaussians whose Bayes error is 5 %, after the set g50c of Chapelle and Zien [1]_.

    Both classes are normal with identity covariance; their means lie 3.29 apart, along the
    diagonal, so that Φ(−3.29/2) = 5 %. The published draw itself is ``load("g50c")``.

    Parameters
    ----------
    n_samples : int, default=550
        Number of points; class 1 has ``n_samples // 2`` of them.
    n_features : int, default=50
        Dimension.
    shuffle : bool, default=True
        Whether to permute the rows; otherwise class 1 comes first.
    random_state : int, Generator, RandomState or None, default=None
        Source of randomness; pass an int for the same set every time.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.

    References
    ----------
    .. [1] Chapelle, O. and Zien, A. (2005). Semi-supervised classification by low density
       separation. AISTATS, 57-64.
    """
    X, y, order = _normal_rows(n_samples, n_features, shuffle, random_state)
    d, half_distance = X.shape[1], 1.6448536269514722  # the 95 % point of the standard normal
    X += np.outer(2 * y - 1, np.full(d, half_distance / np.sqrt(d)))
    return X[order], y[order]


def make_moons(n_samples=200, *, noise=0.1, random_state=None):
    """Draw two interleaved half circles, with classes that alternate row by row.

    Row i belongs to class 1 for even i, so that the first 2k rows hold k points of each class:
    ``y[2 * k:] = -1`` labels exactly k points per class.

    Parameters
    ----------
    n_samples : int, default=200
        Number of points.
    noise : float, default=0.1
        Standard deviation of the Gaussian noise added to both coordinates.
    random_state : int, Generator, RandomState or None, default=None
        Source of randomness; pass an int for the same set every time.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
        Classes 0 (lower moon) and 1 (upper moon).
    """
    n = _positive_integer("n_samples", n_samples, 2)
    if not noise >= 0:
        raise ValueError(f"noise must be >= 0, got {noise!r}")
    rng = _generator(random_state)
    angle = np.pi * rng.random(n)
    y = (np.arange(n) % 2 == 0).astype(np.int64)
    upper = np.column_stack((np.cos(angle), np.sin(angle)))
    X = np.where(y[:, None] == 1, upper, np.array([1.0, 0.5]) - upper)
    return X + noise * rng.standard_normal((n, 2)), y


def make_mixture(
    n_samples=1000, n_features=20, *, n_centers=8, centers_random_state=7, random_state=None
):
    """Draw a mixture of Gaussians whose components alternate between the two classes.

    The centers are drawn once from N(0, (1.5² · 5 / n_features) I), the points from N(center, I).
    At the default size (eight components in 20 dimensions, named ``mixture20`` in the benchmarks)
    the classes overlap and an RBF kernel with gamma = 1/32 suits them.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points.
    n_features : int, default=20
        Dimension.
    n_centers : int, default=8
        Number of components; component k belongs to class 1 for even k.
    centers_random_state : int, Generator, RandomState or None, default=7
        Source of randomness of the centers; fixed, so that draws with different `random_state`
        come from the same distribution (a training and a test set, for instance).
    random_state : int, Generator, RandomState or None, default=None
        Source of randomness of the points.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.
    """
    n = _positive_integer("n_samples", n_samples)
    d = _positive_integer("n_features", n_features)
    k = _positive_integer("n_centers", n_centers, 2)
    # A generator of their own: the centers stay when other points are drawn.
    centers = _generator(centers_random_state).standard_normal((k, d))
    centers = 1.5 * centers / np.sqrt(d) * np.sqrt(5)
    rng = _generator(random_state)
    component = rng.integers(0, k, n)
    X = centers[component] + rng.standard_normal((n, d))
    return X, (component % 2 == 0).astype(np.int64)


def make_bag_of_words(
    n_samples=1000, n_features=20_000, *, n_terms=60, tilt=0.55, random_state=None
):
    """Draw short documents on two topics over a Zipf vocabulary, as sparse tf-idf rows.

    Word j has the base frequency 1/j; each topic multiplies it by exp(±tilt · z_j) with z_j
    standard normal. A document is `n_terms` words drawn independently; entries are
    (1 + log count) · log(n_samples / document frequency), and rows have unit length.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of documents.
    n_features : int, default=20000
        Size of the vocabulary.
    n_terms : int, default=60
        Words per document, repetitions included.
    tilt : float, default=0.55
        How far the two topics are apart.
    random_state : int, Generator, RandomState or None, default=None
        Source of randomness; pass an int for the same set every time.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Classes 0 and 1, each with probability 1/2.
    """
    n = _positive_integer("n_samples", n_samples, 2)
    d = _positive_integer("n_features", n_features)
    m = _positive_integer("n_terms", n_terms)
    rng = _generator(random_state)
    base = 1 / np.arange(1, d + 1)
    base /= base.sum()
    exponent = tilt * rng.standard_normal(d)
    y = (rng.random(n) < 0.5).astype(np.int64)
    # Words are drawn by inverting the distribution function of the topic.
    quantile = rng.random((n, m))
    words = np.empty((n, m), dtype=np.int64)
    for topic, sign in ((1, 1), (0, -1)):
        cumulative = np.cumsum(base * np.exp(sign * exponent))
        words[y == topic] = np.searchsorted(cumulative / cumulative[-1], quantile[y == topic])
    words = np.minimum(words, d - 1)
    counts = (np.ones(n * m), words.ravel(), np.arange(0, n * m + 1, m))
    X = sp.csr_matrix(counts, shape=(n, d))
    X.sum_duplicates()
    document_frequency = np.maximum(np.bincount(X.indices, minlength=d), 1)
    X.data = (1 + np.log(X.data)) * np.log(n / document_frequency)[X.indices]
    # A word of every document weighs nothing, and a row of such words has no length to divide by.
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data *= np.repeat(1 / np.where(length > 0, length, 1.0), np.diff(X.indptr))
    return X, y


def load_digits_pair(a=3, b=8):
    """Load two of the ten classes of scikit-learn's bundled 8 × 8 digits.

    Parameters
    ----------
    a, b : int, default=3, 8
        Two different digits.

    Returns
    -------
    X : ndarray of shape (n_samples, 64)
        Pixels in [0, 1], in the order of the bundled set.
    y : ndarray of shape (n_samples,)
        0 for digit `a`, 1 for digit `b`.

    Raises
    ------
    ValueError
        If a and b are not two different digits.
    """
    from sklearn.datasets import load_digits

    if a == b or not {a, b} <= set(range(10)):
        raise ValueError(f"a and b must be two different digits 0-9, got {a!r} and {b!r}")
    digits = load_digits()
    keep = np.isin(digits.target, (a, b))
    return digits.data[keep] / 16.0, (digits.target[keep] == b).astype(np.int64)


def load_breast_cancer_scaled():
    """Load scikit-learn's breast cancer set, every feature with mean 0 and variance 1.

    Returns
    -------
    X : ndarray of shape (569, 30)
    y : ndarray of shape (569,)
        0 for malignant, 1 for benign.
    """
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y.astype(np.int64)


def hide_labels(y, n_labeled, *, stratified=True, random_state=None):
    """Keep the labels of a few rows and mark all others as unlabeled (−1).

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels: any values but −1. Rows that are already −1, or whose label is missing, stay
        unlabeled.
    n_labeled : int or float
        Number of labels to keep, or their share of the labeled rows if it is a float below 1.
    stratified : bool, default=True
        True: every class keeps its share of the labels (largest remainders; at least one label
        per class). False: the rows are drawn without regard to their class, as when labels
        are bought at random.
    random_state : int, Generator, RandomState or None, default=None
        Source of randomness; pass an int for the same rows every time.

    Returns
    -------
    ndarray of shape (n_samples,)
        A copy of y with −1 for the hidden labels; of dtype object if y holds strings.

    Raises
    ------
    ValueError
        If fewer than two classes are labeled, if more labels are asked for than there are, if
        the random rows hold one class only, or if y holds dates.

    Examples
    --------
    >>> from s3vm_lib.datasets import hide_labels
    >>> hide_labels([0, 0, 0, 1, 1, 1], 2, random_state=0).tolist()
    [-1, -1, 0, 1, -1, -1]
    """
    y = np.asarray(mark_missing(y))
    if y.ndim != 1:
        raise ValueError(f"y must be one-dimensional, got shape {y.shape}")
    # Strings and -1 can only live together in an object array.
    y = y.astype(object) if y.dtype.kind in "USO" else y
    labeled = np.flatnonzero(y != -1)
    classes, membership = np.unique(y[labeled], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes besides -1 (unlabeled), got {classes.tolist()}; "
            "targets in {-1, +1} need another code first, for instance (y + 1) // 2"
        )
    if isinstance(n_labeled, float) and 0 < n_labeled < 1:
        n_labeled = max(len(classes), round(n_labeled * len(labeled)))
    n_labeled = _positive_integer("n_labeled", n_labeled, len(classes))
    if n_labeled > len(labeled):
        raise ValueError(f"n_labeled={n_labeled} exceeds the {len(labeled)} labeled rows of y")
    rng = _generator(random_state)
    order = rng.permutation(len(labeled))
    if stratified:
        quota = _shares(np.bincount(membership), n_labeled)
        keep = [order[membership[order] == k][: quota[k]] for k in range(len(classes))]
        keep = labeled[np.concatenate(keep)]
    else:
        keep = labeled[order[:n_labeled]]
        if len(np.unique(y[keep])) < 2:
            raise ValueError(
                f"the {n_labeled} rows drawn at random hold one class only; "
                "use stratified=True, more labels or another random_state"
            )
    hidden = np.ones(len(y), dtype=bool)
    hidden[keep] = False
    return mark_unlabeled(y, hidden)


def _shares(counts, total):
    """Split `total` like `counts`: largest remainders, at least 1, at most the count."""
    ideal = total * counts / counts.sum()
    quota = np.clip(np.floor(ideal).astype(int), 1, counts)
    while quota.sum() != total:
        step = 1 if quota.sum() < total else -1
        allowed = quota < counts if step > 0 else quota > 1
        k = np.argmax(np.where(allowed, step * (ideal - quota), -np.inf))
        quota[k] += step
    return quota
