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
from s3vm_lib.base.preparation import Preparation
from s3vm_lib.cccp import CCCPS3VM
from s3vm_lib.class_ratio import label_posterior
from s3vm_lib.label_switching import S3VMLight
from s3vm_lib.model_selection import S3VMSearchCV, WithUnlabeled
from s3vm_lib.quasi_newton import SmoothS3VM
from s3vm_lib.utils.limits import WEIGHT
from s3vm_lib.utils.threads import using

# What these prepare depends neither on C*, as long as it is positive, nor on the number r of the
# balance, nor on the weights of labeled rows.
_REUSED = (SmoothS3VM, CCCPS3VM, S3VMLight)
_COUNTED = (ConvergenceWarning, FitWarning)  # warnings of the fits that are not passed on
_LABELS = "with a transduction_ for every row of X"
_DRAWN = {"random_state", "init"}  # settings that are drawn, and may change what is prepared


class Member(NamedTuple):
    """One labeling of the pool, and the model that made it."""

    name: str  # of the estimator
    setting: dict[str, Any]  # parameters that differ from those of the estimator
    model: Any  # fitted to class indices 0, 1, …
    labels: np.ndarray  # class index of each unlabeled row, (u,)
    objective: float  # J under the estimator's own C* and weights; NaN where it is not known
    copies: int = 1  # candidates with this labeling


class Rows(NamedTuple):
    """Checked training data."""

    X: Any  # (n, d), dense or CSR, or the Gram matrix
    codes: np.ndarray  # class index, −1 where unlabeled, (n,)
    sample_weight: np.ndarray | None  # as given, (n,)


def fitted(model, data, sample_weight=None, labels=True):
    """A model fitted to class indices, with what it has of weights and masks; asked for labels."""
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
    """A copy of an estimator whose parameters by class label go by class index.

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
    data : Rows
    """

    def __init__(self, estimator, data):
        self.estimator, self.data = estimator, data
        self._prepared = self._gamma = None

    def fit(self, setting, sample_weight=None):
        """``clone(estimator).set_params(**setting).fit``, with other weights of labeled rows."""
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
    """Refuse what is known not to label every row, or is a search over that."""
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
    """The estimator with the class shares as numbers that its ``balance`` is a name for.

    They are estimated once, from all labels: for all members of the pool, and for machines from
    which some labels are held out. What is no solver of this library, such as `S3VC`, estimates
    its own in every fit.
    """
    named = isinstance(estimator, BaseS3VM) and isinstance(
        estimator.get_params().get("balance"), str
    )
    if not named:
        return estimator
    model = clone(estimator)
    model._validate_params()
    unlabeled = data.codes < 0
    with using(model.n_jobs):
        _, _, training = model._validated(data.X, data.codes, data.sample_weight, unlabeled)
        model._ratios(training)
    if model.class_ratio_ is None:
        return estimator
    shares = dict(enumerate(model.class_ratio_.tolist()))
    return clone(estimator).set_params(balance=shares)


def settings(estimator, data, factors, n_ratios, confidence):
    """Settings of one estimator: multiples of C* times class ratios that the labels allow.

    Parameters
    ----------
    estimator : estimator
    data : Rows
    factors : sequence of float
        Multiples of C*; only 1 where the estimator has none, or makes it of a C that it chooses.
    n_ratios : int
        Class ratios, spread over the central interval of this ``confidence`` of the labels'
        posterior. 1 leaves ``balance`` as it is, and so do several classes.
    confidence : float

    Returns
    -------
    list of dict
    """
    given, unlabeled = estimator.get_params(), data.codes < 0
    weight = np.ones(unlabeled.size) if data.sample_weight is None else data.sample_weight
    found = [{}]
    if n_ratios > 1 and isinstance(given.get("balance"), dict) and data.codes.max() == 1:
        labeled = data.codes >= 0
        ones = weight[labeled & (data.codes == 1)].sum()
        levels = np.linspace(1 - confidence, 1 + confidence, n_ratios) / 2
        ratios = label_posterior(ones, weight[labeled].sum() - ones).ppf(levels)
        found = [{"balance": float(r)} for r in np.clip(ratios, 1e-3, 1 - 1e-3)]
    C_star, C = given.get("C_star"), given.get("C")
    if C_star is not None or ("C_star" in given and not isinstance(C, str)):
        factors = sorted(factors, key=lambda factor: factor != 1)  # its own C* comes first
        if C_star is None:
            C_star = C * weight[~unlabeled].sum() / weight[unlabeled].sum()
        least = WEIGHT.left if C_star > 0 else 0.0  # multiples stay where solvers take them
        values = [float(np.clip(factor * C_star, least, WEIGHT.right)) for factor in factors]
        found = [
            setting if factor == 1 else {**setting, "C_star": value}
            for setting in found
            for factor, value in zip(factors, values, strict=True)
        ]
    return found


def starts(estimator, data, n_starts, random_state):
    """Settings and weights of labeled rows drawn at random, from which searches end elsewhere.

    The Bayesian bootstrap weighs the labeled rows (exponential weights, those of a class with the
    same sum as before). ``random_state`` and ``init`` are drawn where the estimator has them, the
    latter as in S4VM: signs at random.

    Parameters
    ----------
    estimator : estimator
    data : Rows
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
            weight = np.ones(n) if data.sample_weight is None else data.sample_weight.copy()
            labeled = np.flatnonzero(data.codes >= 0)
            total = weight[labeled].sum()
            weight[labeled] *= random_state.exponential(size=labeled.size)
            weight[labeled] *= total / weight[labeled].sum()
        yield setting, weight


def common_objective(model, base, data, sample_weight=None):
    """J of a model under the problems and weights of another one; NaN where it is not known.

    Both differ in C*, in r and in the weights of labeled rows, none of which changes ‖f‖².
    """
    if not isinstance(model, BaseS3VM) or not hasattr(model, "problem_"):
        return np.nan
    outputs = model.decision_function(data.X).reshape(data.codes.size, -1)
    total = float(np.sum(model.objective_))
    plain = np.ones(data.codes.size) if data.sample_weight is None else data.sample_weight
    own = plain if sample_weight is None else sample_weight
    problems = [m.problem_ if isinstance(m.problem_, list) else [m.problem_] for m in (model, base)]
    pairs = zip(*problems, strict=True)
    for k, (problem, wanted) in enumerate(pairs):
        t = np.where(data.codes == (1 if outputs.shape[1] == 1 else k), 1.0, -1.0)
        t[data.codes < 0] = 0.0
        for sign, terms, weight in ((1, wanted, plain), (-1, problem, own)):
            factor = model._class_weights(data.codes, weight, model.classes_)
            total += sign * sum(terms.data_terms(outputs[:, k], t, weight * factor))
    return total


def make_pool(estimators, data, factors, n_ratios, confidence, n_starts, random_state):
    """Members with distinct labelings, in the order in which they were found.

    Parameters
    ----------
    estimators : list of (str, estimator)
    data : Rows
    factors, n_ratios, confidence
        See `settings`.
    n_starts : int
        See `starts`.
    random_state : RandomState

    Returns
    -------
    members : list of Member
        The one with the lowest objective of those that agree on every row.
    bases : list of estimator
        Each estimator, fitted with its own settings.
    n_stopped : int
        Fits that warned of their limits.
    """
    found, bases, n_stopped, unlabeled = {}, [], 0, data.codes < 0
    for name, estimator in estimators:
        fits = MemberFits(estimator, data)
        plans = [(s, None) for s in settings(estimator, data, factors, n_ratios, confidence)]
        plans += starts(estimator, data, n_starts, random_state)
        base = None  # under its own settings: what objectives are compared under
        if ({}, None) not in plans[:1]:
            base = fits.fit({})
        for setting, weight in plans:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = fits.fit(setting, weight)
            limits = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
            n_stopped += bool(limits)
            for other in (w for w in caught if not issubclass(w.category, _COUNTED)):
                warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
            base = model if base is None else base
            labels = np.asarray(model.transduction_)[unlabeled]
            shown = setting if weight is None else {**setting, "sample_weight": "bootstrap"}
            J = common_objective(model, base, data, weight)
            member, before = Member(name, shown, model, labels, J), found.get(labels.tobytes())
            if before is not None:
                better = J < before.objective
                member = (member if better else before)._replace(copies=before.copies + 1)
            found[labels.tobytes()] = member
        bases.append(base)
    return list(found.values()), bases, n_stopped


def representatives(members, n_members, n_classes, random_state):
    """The best of each cluster of labelings (k-means on their indicators), at most ``n_members``.

    Parameters
    ----------
    members : list of Member
    n_members : int
    n_classes : int
    random_state : RandomState

    Returns
    -------
    list of Member
        Of each cluster the one with the lowest objective, or where none is known the one nearest
        to the center.
    """
    if len(members) <= n_members:
        return members
    labels = np.array([member.labels for member in members])
    points = np.concatenate([labels == k for k in range(1, n_classes)], axis=1).astype(float)
    kmeans = KMeans(n_members, n_init=10, random_state=random_state).fit(points)
    distance = np.linalg.norm(points - kmeans.cluster_centers_[kmeans.labels_], axis=1)
    J = np.array([member.objective for member in members])
    order = np.lexsort((distance, np.where(np.isnan(J), np.inf, J)))
    first = [order[kmeans.labels_[order] == c][0] for c in range(n_members)]
    return [members[i] for i in sorted(first)]
