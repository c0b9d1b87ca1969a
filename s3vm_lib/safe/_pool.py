"""The pool: labelings of the unlabeled rows that explain the labels about as well."""

import copy
import inspect
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from s3vm_lib.base.classifier import BaseS3VM
from s3vm_lib.base.findings import FitWarning
from s3vm_lib.base.preparation import Preparation, class_shares, loss_weights
from s3vm_lib.cccp import CCCPS3VM
from s3vm_lib.label_switching import S3VMLight
from s3vm_lib.model_selection import S3VMSearchCV, WithUnlabeled
from s3vm_lib.quasi_newton import SmoothS3VM
from s3vm_lib.utils.limits import WEIGHT

# What these prepare depends neither on C*, as long as it is positive, nor on the number r of the
# balance, nor on the weights of labeled rows.
_REUSED = (SmoothS3VM, CCCPS3VM, S3VMLight)
FACTORS = (0.3, 3.0)  # further multiples of C* in the pool
_COUNTED = (ConvergenceWarning, FitWarning)  # warnings of the fits that are not passed on
_LABELS = "with a transduction_ for every row of X"
_DRAWN = {"random_state", "init"}  # settings that are drawn, and may change what is prepared


class Labeling(NamedTuple):
    """One labeling of the pool, and the model that made it."""

    setting: dict[str, Any]  # parameters that differ from those of the estimator
    model: Any  # fitted to class indices 0, 1, …
    labels: np.ndarray  # class index of each unlabeled row, (u,)
    objective: float  # J under the estimator's own C* and weights; NaN where it is not known
    copies: int = 1  # candidates with this labeling


class Sample(NamedTuple):
    """Checked training data."""

    X: Any  # (n, d), dense or CSR, or the Gram matrix
    codes: np.ndarray  # class index, −1 where unlabeled, (n,)
    sample_weight: np.ndarray | None  # as given, (n,)

    @property
    def weight(self):
        """Return the weights as an array: ones where none were given."""
        return np.ones(self.codes.size) if self.sample_weight is None else self.sample_weight


def fitted(model, data, sample_weight=None, labels=True):
    """Fit a model to class indices, with the weights and the mask where its `fit` takes them."""
    takes = inspect.signature(model.fit).parameters
    weight = data.sample_weight if sample_weight is None else sample_weight
    unlabeled = data.codes < 0
    options = {}
    if weight is not None:
        if "sample_weight" not in takes:
            raise ValueError(f"sample_weight must be None: {type(model).__name__} does not take it")
        options["sample_weight"] = weight
    if "unlabeled_mask" in takes:
        options["unlabeled_mask"] = unlabeled
    model.fit(data.X, data.codes, **options)
    if labels and np.shape(getattr(model, "transduction_", None)) != data.codes.shape:
        raise ValueError(f"estimator (solver of S3VC) must be a classifier {_LABELS}, got {model}")
    return model


def on_codes(estimator, classes):
    """Copy an estimator; what its parameters give by class label goes by class index.

    Parameters
    ----------
    estimator : estimator
        ``balance`` and ``class_weight`` are looked at, where it has them.
    classes : ndarray of shape (n_classes,)
        The labels; their positions are the indices.

    Returns
    -------
    estimator
        Not fitted.

    Raises
    ------
    ValueError
        If one of the two names what is no class, or ``balance`` not all of them.
    """
    classes, given = classes.tolist(), estimator.get_params()
    changed = {}
    for name in ("balance", "class_weight"):
        if isinstance(given.get(name), dict):
            unknown = [c for c in given[name] if c not in classes]
            if unknown or (name == "balance" and len(given[name]) < len(classes)):
                raise ValueError(
                    f"{name} must name the classes {classes} and no others, got {given[name]}"
                )
            changed[name] = {classes.index(c): value for c, value in given[name].items()}
    return clone(estimator).set_params(**changed)


class MemberFits:
    """Fits of one estimator under many settings, which share what can be prepared once.

    Parameters
    ----------
    estimator : estimator
    data : Sample
    """

    def __init__(self, estimator, data):
        self.estimator, self.data = estimator, data
        self._prepared = self._gamma = None

    def fit(self, setting, sample_weight=None):
        """Fit a clone of the estimator under a setting, with other weights of the labeled rows."""
        if not isinstance(self.estimator, _REUSED) or _DRAWN & setting.keys():
            model = clone(self.estimator).set_params(**setting)
            if sample_weight is not None and self._gamma is not None:
                model.set_params(gamma=self._gamma)  # of all rows alike, or ‖f‖ is another norm
            model = fitted(model, self.data, sample_weight)
            if hasattr(model, "gamma") and sample_weight is None:
                self._gamma = getattr(model, "gamma_", None)
            return model
        if self._prepared is None:
            weight, unlabeled = self.data.sample_weight, self.data.codes < 0
            self._prepared = Preparation(
                clone(self.estimator), self.data.X, self.data.codes, weight, unlabeled
            )
        own = {name: self.estimator.get_params()[name] for name in ("C_star", "balance")}
        model = self._prepared.fit(sample_weight=sample_weight, **{**own, **setting})
        self._prepared.warn_of_limits()
        return copy.copy(model)


def refuse_without_labels(name, estimator, around):
    """Refuse an estimator that does not label every row, or a search over one, with a remedy."""
    search = isinstance(estimator, S3VMSearchCV)
    inside = estimator.estimator if search else estimator
    for one in inside.values() if isinstance(inside, dict) else [inside]:
        kind, home = type(one).__name__, type(one).__module__
        if isinstance(one, Pipeline):
            *steps, last = (f"{type(step).__name__}()" for _, step in one.steps)
            last = f"S3VMSearchCV({last}, ...)" if search else last
            steps.append(f"{around}({name}={last})")
            way = f"put {around} at its end, make_pipeline({', '.join(steps)})"
        elif isinstance(one, WithUnlabeled):
            way = "give the estimator in it, and X_unlabeled as rows of X with -1 in y"
        elif home.startswith("sklearn.") and not home.startswith("sklearn.semi_supervised."):
            way = "give one of s3vm_lib or sklearn.semi_supervised, to search S3VMSearchCV"
        else:
            continue
        kind = f"S3VMSearchCV around a {kind}" if search else f"a {kind}"
        raise ValueError(f"{name} must be a classifier {_LABELS}, got {kind}: {way}")


def with_shares(estimator, data):
    """Replace a ``balance`` that is a name by the class shares that it stands for.

    They are estimated once, from all labels: for all members of the pool, and for machines from
    which some labels are held out. An estimator that is no solver of this library, such as `S3VC`,
    estimates its own in every fit.
    """
    if not isinstance(estimator, BaseS3VM):
        return estimator
    if not isinstance(estimator.get_params().get("balance"), str):
        return estimator
    shares = class_shares(clone(estimator), *data)
    if shares is None:
        return estimator
    return clone(estimator).set_params(balance=dict(enumerate(shares.tolist())))


def settings(estimator, data):
    """List the settings of one estimator in the pool: its own, and other multiples of C*.

    Parameters
    ----------
    estimator : estimator
        Its own setting is the only one where it has no C*, or makes it of a C that it chooses.
    data : Sample

    Returns
    -------
    list of dict
    """
    given, unlabeled = estimator.get_params(), data.codes < 0
    C_star, C = given.get("C_star"), given.get("C")
    if C_star is None:
        if "C_star" not in given or isinstance(C, str):
            return [{}]
        C_star = C * data.weight[~unlabeled].sum() / data.weight[unlabeled].sum()
    least = WEIGHT.left if C_star > 0 else 0.0  # multiples stay where solvers take them
    values = [float(np.clip(factor * C_star, least, WEIGHT.right)) for factor in FACTORS]
    return [{}, *({"C_star": value} for value in values)]


def starts(estimator, data, n_starts, random_state):
    """Draw settings and weights of labeled rows, so that searches end in other optima.

    The Bayesian bootstrap weighs the labeled rows (exponential weights, those of a class with the
    same sum as before). ``random_state`` and ``init`` are drawn where the estimator has them, the
    latter as in S4VM: signs at random.

    Parameters
    ----------
    estimator : estimator
    data : Sample
    n_starts : int
    random_state : RandomState

    Yields
    ------
    setting : dict
    sample_weight : ndarray of shape (n,), or None where the estimator takes no weights
    """
    given = estimator.get_params()
    weighted = "sample_weight" in inspect.signature(estimator.fit).parameters
    n, K = data.codes.size, data.codes.max() + 1
    for _ in range(n_starts):
        setting, weight = {}, None
        if "random_state" in given and not isinstance(estimator, SmoothS3VM):
            setting["random_state"] = int(random_state.randint(2**31 - 1))
        if "init" in given:
            shape = (n,) if K == 2 else (n, K)
            setting["init"] = random_state.choice([-1.0, 1.0], size=shape)
        if weighted:
            weight = data.weight.copy()
            labeled = np.flatnonzero(data.codes >= 0)
            total = weight[labeled].sum()
            weight[labeled] *= random_state.exponential(size=labeled.size)
            weight[labeled] *= total / weight[labeled].sum()
        yield setting, weight


def common_objective(model, base, data, sample_weight=None):
    """Return J of a model under the problems and weights of another; NaN where it is unknown.

    Both differ in C*, in r and in the weights of labeled rows, none of which changes ‖f‖².
    """
    if not isinstance(model, BaseS3VM) or not hasattr(model, "problem_"):
        return np.nan
    outputs = model.decision_function(data.X).reshape(data.codes.size, -1)
    total = float(np.sum(model.objective_))
    plain = data.weight
    own = plain if sample_weight is None else sample_weight
    problems = [m.problem_ if isinstance(m.problem_, list) else [m.problem_] for m in (model, base)]
    pairs = zip(*problems, strict=True)
    for k, (problem, wanted) in enumerate(pairs):
        t = np.where(data.codes == (1 if outputs.shape[1] == 1 else k), 1.0, -1.0)
        t[data.codes < 0] = 0.0
        # The norm stays; the model's own data terms are replaced by those of the base.
        for sign, terms, weight in ((1, wanted, plain), (-1, problem, own)):
            weight = loss_weights(model, data.codes, weight)
            total += sign * sum(terms.data_terms(outputs[:, k], t, weight))
    return total


def make_pool(estimator, data, n_starts, random_state):
    """Fit the members of the pool, and keep one of those with the same labeling.

    Parameters
    ----------
    estimator : estimator
    data : Sample
    n_starts : int
        See `starts`.
    random_state : RandomState

    Returns
    -------
    members : list of Labeling
        The one with the lowest objective of those that agree on every row.
    base : estimator
        The estimator, fitted with its own settings.
    n_stopped : int
        Fits that warned of their limits.
    """
    found, base, n_stopped, unlabeled = {}, None, 0, data.codes < 0
    fits = MemberFits(estimator, data)
    plans = [(setting, None) for setting in settings(estimator, data)]
    plans += starts(estimator, data, n_starts, random_state)
    for setting, weight in plans:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = fits.fit(setting, weight)
        n_stopped += any(issubclass(w.category, ConvergenceWarning) for w in caught)
        for other in (w for w in caught if not issubclass(w.category, _COUNTED)):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
        base = model if base is None else base  # the first setting is the estimator's own
        labels = np.asarray(model.transduction_)[unlabeled]
        shown = setting if weight is None else {**setting, "sample_weight": "bootstrap"}
        J = common_objective(model, base, data, weight)
        # Of equal labelings the one with the lowest J stays, and counts the others.
        member, before = Labeling(shown, model, labels, J), found.get(labels.tobytes())
        if before is not None:
            better = J < before.objective
            member = (member if better else before)._replace(copies=before.copies + 1)
        found[labels.tobytes()] = member
    return list(found.values()), base, n_stopped


def representatives(members, n_members, n_classes, random_state):
    """Choose the best of each cluster of labelings (k-means on their indicators).

    Parameters
    ----------
    members : list of Labeling
    n_members : int
    n_classes : int
    random_state : RandomState

    Returns
    -------
    list of Labeling
        Of each cluster the one with the lowest objective, or where none is known the one nearest
        to the center.
    """
    if len(members) <= n_members:
        return members
    labels = np.array([member.labels for member in members])
    # One indicator a class, but for the first, which the others imply.
    points = np.concatenate([labels == k for k in range(1, n_classes)], axis=1).astype(float)
    kmeans = KMeans(n_members, n_init=10, random_state=random_state).fit(points)
    distance = np.linalg.norm(points - kmeans.cluster_centers_[kmeans.labels_], axis=1)
    J = np.array([member.objective for member in members])
    order = np.lexsort((distance, np.where(np.isnan(J), np.inf, J)))
    first = [order[kmeans.labels_[order] == c][0] for c in range(n_members)]
    return [members[i] for i in sorted(first)]
