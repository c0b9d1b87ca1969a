"""What the tables and figures of the QN-S3VM paper share: parameters, grids, data, selection.

The paper writes F = (1/l) Σ_L ℓ + (λ'/u) Σ_U exp(−3f²) + λ‖f‖²; the library's costs are
C = 1/(2λl) and C* = λ'/(2λu). Models with a linear kernel are rotation invariant, so that dense
features are first rotated into the span of the training rows, which loses nothing.
"""

import warnings
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from s3vm_lib import datasets
from s3vm_lib.datasets import hide_labels
from s3vm_lib.model_selection import SemiSupervisedKFold

LAMBDAS = [2.0**k for k in range(-10, 11)]  # of QN-S3VM; also the grid for the C of the SVM
LAMBDA_PRIMES = [0.01, 1.0, 100.0]
N_PARTITIONS = 10


class Partition(NamedTuple):
    """Training rows with hidden labels, their true classes, and the test part."""

    X: np.ndarray
    y: np.ndarray  # −1 where unlabeled
    y_true: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def qn(lam, lam_prime, y, **options):
    """`QNS3VM` with the paper's parameters for the target y.

    Parameters
    ----------
    lam, lam_prime : float
        λ and λ' of the paper.
    y : ndarray of shape (n,)
        Target with −1 for unlabeled rows: the factors depend on the two counts.
    **options
        Further parameters; by default the kernel is linear, the balance that of the labels.

    Returns
    -------
    QNS3VM
        Not fitted.
    """
    from s3vm_lib.quasi_newton import QNS3VM

    options = {"kernel": "linear", "annealing": "paper", "balance": "labels", **options}
    return QNS3VM(**{**costs(lam, lam_prime, y), **options})


def costs(lam, lam_prime, y):
    """C = 1/(2λl) and C* = λ'/(2λu) for the target y."""
    labeled, unlabeled = np.sum(y != -1), max(np.sum(y == -1), 1)
    return {"C": 1 / (2 * lam * labeled), "C_star": lam_prime / (2 * lam * unlabeled)}


def data(name):
    """Features and classes of a set of the paper.

    Parameters
    ----------
    name : str
        ``"G2C"``, ``"G4C"``, ``"pcmac"``, or a pair such as ``"C(3,6)"``, ``"M(1,7)"`` or
        ``"U(2,5)"``.

    Returns
    -------
    X : ndarray or CSR matrix
    y : ndarray
        Classes 0 and 1.
    """
    if name == "G2C":
        return datasets.make_g2c(random_state=2000)
    if name == "G4C":
        return datasets.make_g4c(random_state=4000)
    if name != "pcmac":
        family, pair = name[0], name[2:-1].replace(",", "_")
        name = {"C": "coil", "M": "mnist", "U": "usps"}[family] + "_" + pair
    bunch = datasets.load(name)
    X = bunch.data
    return (X if sp.issparse(X) else X.astype(np.float64)), bunch.target


def partitions(
    name,
    n_labeled,
    n_unlabeled,
    n_test,
    *,
    stratified=False,
    number=N_PARTITIONS,
    rotate=True,
):
    """Random partitions of a set into labeled, unlabeled and test rows.

    Parameters
    ----------
    name : str
        As for `data`.
    n_labeled, n_unlabeled, n_test : int
        Sizes; the sum may be smaller than the set, and what is left over is not used.
    stratified : bool, default=False
        Whether the labeled rows keep the shares of the classes. The paper does not say; without
        it a draw that lacks a class is repeated.
    number : int, default=10
        Number of partitions.
    rotate : bool, default=True
        Whether to rotate dense features into the span of the training rows.

    Yields
    ------
    Partition
    """
    X, y = data(name)
    for k in range(number):
        rng = np.random.default_rng([k, n_labeled, n_unlabeled])
        order = rng.permutation(len(y))
        training, test = np.split(order, [n_labeled + n_unlabeled])
        test = test[:n_test]
        while True:
            try:
                target = hide_labels(
                    y[training], n_labeled, stratified=stratified, random_state=rng
                )
                break
            except ValueError as error:
                if "one class only" not in str(error):
                    raise
        features = X[training], X[test]
        if rotate:
            features = rotated(*features)
        yield Partition(features[0], target, y[training], features[1], y[test])


def rotated(X, X_test):
    """Coordinates in the span of the training rows, if that is smaller than the feature space.

    Parameters
    ----------
    X, X_test : ndarray or CSR matrix
        Training and test rows; sparse ones are returned as they are.

    Returns
    -------
    X, X_test
    """
    if sp.issparse(X) or X.shape[1] <= X.shape[0]:
        return X, X_test
    basis = np.linalg.qr(X.T)[0]
    return X @ basis, X_test @ basis


def wrong_labels(make, settings, part, n_splits=5):
    """Errors of every setting: in cross-validation on the labels, and on the test part.

    Parameters
    ----------
    make : callable
        ``make(setting, y)`` returns an estimator for a target y.
    settings : list
        The grid.
    part : Partition
    n_splits : int, default=5
        Folds; where a training fold holds one class only, that class is predicted.

    Returns
    -------
    cv, test : list of int
        Numbers of wrong labels per setting.
    unconverged : int
        Fits that ended for another reason than convergence.
    """
    cv, test, unconverged = [], [], 0
    with warnings.catch_warnings():
        # A class with fewer labels than folds is part of the protocol, and fits that reach the
        # limit are counted below.
        warnings.filterwarnings("ignore", message="The least populated class")
        warnings.simplefilter("ignore", ConvergenceWarning)
        folds = []
        if n_splits:
            folds = list(SemiSupervisedKFold(n_splits).split(part.X, part.y))
        for setting in settings:
            wrong = 0
            for train, held_out in folds:
                X, y = part.X[train], part.y[train]
                classes = np.unique(y[y != -1])
                if len(classes) == 1:
                    predicted = classes
                else:
                    model = make(setting, y).fit(X, y)
                    predicted = model.predict(part.X[held_out])
                    unconverged += model.termination_condition_ != "converged"
                wrong += int(np.sum(predicted != part.y[held_out]))
            cv.append(wrong)
            model = make(setting, part.y).fit(part.X, part.y)
            unconverged += model.termination_condition_ != "converged"
            test.append(int(np.sum(model.predict(part.X_test) != part.y_test)))
    return cv, test, unconverged


def compare(parts, methods, n_test, orders=None, n_splits=5):
    """Errors of several methods on the same partitions.

    Parameters
    ----------
    parts : iterable of Partition
    methods : dict of str to (list, callable)
        Per method the grid and ``make(setting, y)``.
    n_test : int
        Size of the test part.
    orders : dict of str to list of int, default=None
        Per method the order of the settings from strong to weak, see `selections`.
    n_splits : int, default=5
        Folds of the cross-validation.

    Returns
    -------
    dict
        ``error`` (see `selected`), ``counts`` (all numbers of wrong labels, from which other rules
        can be worked out) and ``unconverged``, each by method.
    """
    counts = {name: {"cv": [], "test": []} for name in methods}
    unconverged = dict.fromkeys(methods, 0)
    for part in parts:
        for name, (settings, make) in methods.items():
            cv, test, failed = wrong_labels(make, settings, part, n_splits)
            counts[name]["cv"].append(cv)
            counts[name]["test"].append(test)
            unconverged[name] += int(failed)
    error = {
        name: selected(c["cv"], c["test"], n_test, (orders or {}).get(name))
        for name, c in counts.items()
    }
    return {"error": error, "unconverged": unconverged, "counts": counts}


def selections(cv, test, n_test, order=None):
    """Test errors (%) of every partition under several rules of selection.

    Parameters
    ----------
    cv, test : array-like of shape (n_partitions, n_settings)
        Numbers of wrong labels.
    n_test : int
        Size of the test part.
    order : list of int, default=None
        The settings from the strongest to the weakest regularization; None: as given.

    Returns
    -------
    dict of str to ndarray of shape (n_partitions,)
        ``cv_strong`` and ``cv_weak``: best in cross-validation, ties to the first and to the last
        of `order`; ``cv_ties``: mean over all tied settings, the expectation of a random choice;
        ``best_setting``: the one setting with the best mean test error, and
        ``best_per_partition``, both chosen on the test part (optimistic).
    """
    cv, test = np.asarray(cv), 100 * np.asarray(test) / n_test
    order = np.arange(cv.shape[1]) if order is None else np.asarray(order)
    cv, test = cv[:, order], test[:, order]
    rows, tied = np.arange(len(cv)), cv == cv.min(axis=1, keepdims=True)
    return {
        "cv_strong": test[rows, tied.argmax(axis=1)],
        "cv_weak": test[rows, tied.shape[1] - 1 - tied[:, ::-1].argmax(axis=1)],
        "cv_ties": (test * tied).sum(axis=1) / tied.sum(axis=1),
        "best_setting": test[:, test.mean(axis=0).argmin()],
        "best_per_partition": test.min(axis=1),
    }


def selected(cv, test, n_test, order=None):
    """Mean and standard deviation over the partitions of `selections`, rounded to .01 %."""
    return {
        name: [round(float(e.mean()), 2), round(float(e.std(ddof=1)), 2)]
        for name, e in selections(cv, test, n_test, order).items()
    }


def linear_methods(lambdas=LAMBDAS, lambda_primes=LAMBDA_PRIMES):
    """The SVM and QN-S3VM with a linear kernel over the paper's grids.

    Parameters
    ----------
    lambdas, lambda_primes : list of float
        Grids of λ (also of the C of the SVM) and λ'.

    Returns
    -------
    methods, orders : dict
        Arguments for `compare`: small C first for the SVM; large λ, then small λ' for QN-S3VM.
    """
    from s3vm_lib import SVM

    grid = [(lam, prime) for lam in lambdas for prime in lambda_primes]
    methods = {
        "SVM": (list(lambdas), lambda C, y: SVM(C=C, kernel="linear")),
        "QN": (grid, lambda setting, y: qn(*setting, y)),
    }
    return methods, {"QN": sorted(range(len(grid)), key=lambda k: (-grid[k][0], grid[k][1]))}
