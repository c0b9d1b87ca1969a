"""A grid search that prepares rows and kernel once for all settings that share them."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from itertools import combinations
from numbers import Integral, Real
from typing import Annotated, Any, Literal, NamedTuple, Self

import joblib
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import _safe_indexing, check_array, get_tags
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from s3vm_lib.base.machine import BaseMachine, SemiSupervisedMixin
from s3vm_lib.base.preparation import Preparation, late_parameters
from s3vm_lib.kernels import resolve_gamma
from s3vm_lib.model_selection._labeled import (
    PreferSmallest,
    SemiSupervisedKFold,
    is_labeled_accuracy,
    labeled_accuracy_scorer,
    labeled_rows,
    rank,
)
from s3vm_lib.model_selection._with_unlabeled import told_unlabeled
from s3vm_lib.utils.labels import Labels, mark_missing, plain, split_labels
from s3vm_lib.utils.limits import Verbosity
from s3vm_lib.utils.validation import (
    Estimator,
    Jobs,
    Rows,
    checked_input,
    checked_weight,
    parameters,
    validated_inside,
)

# --- Which settings are tried, and which share their preparation ----------------------------------

TIES = ("C", "C_star", "gamma")


class Setting(NamedTuple):
    """One setting of one estimator."""

    name: str | None  # of the estimator; None where there is but one
    settings: dict

    @property
    def params(self):
        """Return the setting as ``cv_results_`` shows it."""
        return self.settings if self.name is None else {"estimator": self.name, **self.settings}


def default_grid(estimator, X, codes, weight):
    """Make a grid of C, C* and γ around the values that the defaults stand for.

    C is 0.1, 1, 10 or 100, C* 0.01, 0.1 or 1 times the value that gives the unlabeled rows together
    the weight of the labeled ones, γ 0.1, 1 or 10 times that of ``gamma="scale"``; what the
    estimator does not have is left out, and γ where the kernel has none.
    """
    known = estimator.get_params(deep=False)
    if "C" not in known:
        raise ValueError(f"param_grid must be given for {type(estimator).__name__}, which has no C")
    grid = {}
    if known.get("kernel") in ("rbf", "laplacian", "poly"):
        rows = check_array(X, accept_sparse="csr")
        scale = resolve_gamma("scale", rows, weight)
        grid["gamma"] = [0.1 * scale, scale, 10.0 * scale]
    mass, unlabeled = weight[codes >= 0].sum(), weight[codes < 0].sum()
    grids = []
    # C* is a multiple of C, so that each C has a grid of its own.
    for C in (0.1, 1.0, 10.0, 100.0):
        one = {"C": [C], **grid}
        if "C_star" in known and unlabeled > 0:
            one["C_star"] = [share * C * mass / unlabeled for share in (0.01, 0.1, 1.0)]
        grids.append(one)
    return grids


def candidates(estimators, param_grid, X, codes, weight):
    """List every setting of every estimator, in the order of the grid.

    Parameters
    ----------
    estimators : dict of (str or None) to estimator
    param_grid : dict, list of dict, or None
        With several estimators each takes the parameters that it has.
    X, codes, weight
        What `default_grid` needs.

    Returns
    -------
    list of Setting

    Raises
    ------
    ValueError
        If no estimator has one of the parameters.
    """
    grids = [param_grid] if isinstance(param_grid, Mapping) else param_grid
    found = {}  # by their hash: arrays answer no comparison with one word
    for name, estimator in estimators.items():
        known = estimator.get_params()
        own = default_grid(estimator, X, codes, weight) if grids is None else grids
        if len(estimators) > 1 and grids is not None:
            own = [{k: v for k, v in grid.items() if k in known} for grid in grids]
        for settings in ParameterGrid(own):
            unknown = sorted(set(settings) - set(known))
            if unknown:
                raise ValueError(
                    f"param_grid names {unknown}, which are not among the parameters of "
                    f"{type(estimator).__name__}: {sorted(known)}"
                )
            found.setdefault(joblib.hash((name, settings)), Setting(name, settings))
    # With several estimators a name must belong to one of them, at least.
    for grid in grids or []:
        lost = [k for k in grid if not any(k in e.get_params() for e in estimators.values())]
        if lost:
            raise ValueError(f"param_grid names {lost}, which none of {list(estimators)} has")
    return list(found.values())


def groups(found, estimators, exact=True):
    """Group candidates that differ in nothing that is read before the solver starts.

    With ``exact=False`` they come in an order in which each may go on from the one before.

    Returns
    -------
    list of (estimator, list of (int, dict))
        A clone with the common parameters, and the position and other parameters of each candidate.
    """
    together = {}
    for position, (name, settings) in enumerate(found):
        late = late_parameters(estimators[name])
        # What the preparation reads must be equal; the rest may differ within a group.
        early = {k: v for k, v in settings.items() if k not in late}
        members = together.setdefault((name, joblib.hash(early)), (early, []))[1]
        members.append((position, {k: v for k, v in settings.items() if k in late}))
    if not exact:
        for _, members in together.values():
            members.sort(key=_rising)
    return [
        (clone(estimators[name]).set_params(**clone(early, safe=False)), members)
        for (name, _), (early, members) in together.items()
    ]


def _rising(member):
    """Sort by the settings apart from C*, then by C*: each may go on from the one before."""
    settings = dict(member[1])
    C_star = settings.pop("C_star", None)
    return repr(sorted(settings.items())), np.inf if C_star is None else C_star


def _ties(found, estimators):
    """Return the names of what `PreferSmallest` compares, and the values in each setting."""
    given = {name: estimator.get_params() for name, estimator in estimators.items()}
    whole = []
    for name, settings in found:
        known = given[name]
        whole.append({"C_star": 0.0, **{k: known[k] for k in TIES if k in known}, **settings})
    varied = [k for k in TIES if any(k in candidate.settings for candidate in found)]
    return [k for k in varied if all(isinstance(s.get(k, ""), Real | None) for s in whole)], whole


def precedence(found, estimators):
    """Return a key of each setting; of settings that tie, `smallest` takes the least."""
    named, whole = _ties(found, estimators)
    return [(*(rank(s[k]) for k in named), position) for position, s in enumerate(whole)]


def smallest(found, estimators):
    """Make a `PreferSmallest` of those of C, C_star and gamma that all settings have as numbers.

    An estimator without ``C_star`` counts as one with 0. Where the results hold the ``stability``,
    it decides before.
    """
    named, whole = _ties(found, estimators)
    rule = PreferSmallest(*named)

    def choose(results):
        mean = results["mean_test_score"]
        if "stability" in results and np.isfinite(mean).any():
            tied = mean >= np.nanmax(mean) - rule.tolerance
            mean = np.where(tied, results["stability"], np.nan)
        return rule({**results, "params": whole, "mean_test_score": mean})

    return choose


# --- One setting on one fold ----------------------------------------------------------------------


class Trial(NamedTuple):
    """One setting on one fold."""

    score: float
    fit_time: float
    score_time: float
    labels: np.ndarray | None = None  # of the unlabeled rows, where wanted
    error: str | None = None


def _part(estimator, X, rows, columns):
    """Return rows of X, and of a Gram matrix the columns, too."""
    if get_tags(estimator).input_tags.pairwise:
        return X[np.ix_(rows, columns)]
    return _safe_indexing(X, rows)


def _fit_arguments(estimator, y, weight, mask):
    """Return the arguments of `fit` besides X."""
    y, given = (y, {}) if mask is None else told_unlabeled(estimator, y, mask)
    if weight is not None:
        if not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(f"{type(estimator).__name__} takes no sample_weight")
        given["sample_weight"] = weight
    return {"y": y, **given}


class Shared(NamedTuple):
    """What all folds of a search share."""

    X: Any  # (n, d), or the Gram matrix
    y: np.ndarray  # labels as given, (n,)
    weight: np.ndarray | None  # of the rows, (n,)
    mask: np.ndarray | None  # True for unlabeled rows, (n,)
    watched: np.ndarray  # unlabeled rows whose labels are wanted
    scorer: Callable | None  # None is the accuracy
    error_score: float | str
    go_on: bool  # whether a solver may begin at the last solution


class Fold:
    """Training and test rows of one fold, for the settings of one group.

    Rows are prepared when the first setting is tried, once for all settings.
    """

    def __init__(self, estimator, shared, train, test):
        self.estimator, self.shared, self.train, self.test = estimator, shared, train, test
        self.prepared = self.arguments = None

    def trial(self, late):
        """Fit and score one setting."""
        begin = time.perf_counter()
        try:
            if self.arguments is None:
                self._take_rows()
            model = self._fitted(late)
            middle = time.perf_counter()
            value = self._score(model)
            labels = self._labels(model) if self.shared.watched.size else None
            return Trial(value, middle - begin, time.perf_counter() - middle, labels)
        except Exception as error:
            if self.shared.error_score == "raise":
                raise
            spent = time.perf_counter() - begin
            message = f"{type(error).__name__}: {error}"
            return Trial(float(self.shared.error_score), spent, 0.0, None, message)

    def _score(self, model):
        if self.shared.scorer is not None:
            return float(self.shared.scorer(model, self.X_test, self.y_test))
        found = (model if self.prepared is None else self.prepared).predict(self.X_test)
        return float(np.mean(found == self.y_test))

    def _take_rows(self):
        X, *rows = self.shared[:4]
        chosen = [None if v is None else v[self.train] for v in rows]
        self.X_train = _part(self.estimator, X, self.train, self.train)
        self.X_test = _part(self.estimator, X, self.test, self.train)
        self.y_test = plain(self.shared.y[self.test])  # metrics take no object array of numbers
        self.arguments = _fit_arguments(self.estimator, *chosen)

    def _fitted(self, late):
        late = clone(late, safe=False)
        if not late_parameters(self.estimator):  # nothing that settings could share
            model = clone(self.estimator).set_params(**late)
            return model.fit(self.X_train, **self.arguments)
        if self.prepared is None:
            self.prepared = Preparation(clone(self.estimator), self.X_train, **self.arguments)
        every = self.shared.scorer is not None or self.shared.watched.size > 0
        return self.prepared.fit(every, self.shared.go_on, **late)

    def _labels(self, model):
        if hasattr(model, "transduction_"):
            order = np.argsort(self.train)
            places = np.searchsorted(self.train, self.shared.watched, sorter=order)
            return model.transduction_[order[places]]
        rows = _part(self.estimator, self.shared.X, self.shared.watched, self.train)
        return model.predict(rows)


def _run(fold, settings):
    """Try settings for which one preparation is enough on one fold."""
    return [fold.trial(late) for late in settings]


class Leader(NamedTuple):
    """The best setting so far."""

    mean: float = -np.inf
    key: tuple = ()

    def is_beaten_by(self, mean, key):
        """Return whether a setting that has this mean, or can still reach it, would be taken."""
        level = abs(mean - self.mean) <= PreferSmallest().tolerance
        return key < self.key if level else mean > self.mean


def _race(members, folds, leader, lost):
    """Try the settings of one group, as far as they can decide which setting is taken.

    A fold adds at most 1 to the sum of a setting's scores. The setting is stopped when that sum,
    with a 1 for each fold that is left, would not make it the leader. Folds on which settings have
    lost most come first.

    Parameters
    ----------
    members : list of (tuple, dict)
        Key of `precedence` and parameters of each setting.
    folds : list of Fold
    leader : Leader
    lost : list of list of float
        What each setting lost on each fold so far, added to.

    Returns
    -------
    trials : list of list of Trial
    leader : Leader
    n_prepared : int
        Folds on which a setting was tried.
    """
    every = [[Trial(np.nan, 0.0, 0.0)] * len(folds) for _ in members]
    for place in sorted(range(len(members)), key=lambda k: members[k][0]):
        (key, late), mean = members[place], 1.0
        for fold in sorted(range(len(folds)), key=lambda k: -np.nanmean(lost[k])):
            if not leader.is_beaten_by(mean, key):
                break
            every[place][fold] = trial = folds[fold].trial(late)
            lost[fold].append(1.0 - trial.score)
            mean -= lost[fold][-1] / len(folds)
        if leader.is_beaten_by(mean, key):
            leader = Leader(mean, key)
    return every, leader, sum(fold.arguments is not None for fold in folds)


def _best_has(name):
    def check(self):
        getattr(getattr(self, "best_estimator_", None) or self._first(), name)
        return True

    return check


@parameters
class S3VMSearchCV(SemiSupervisedMixin, MetaEstimatorMixin, BaseEstimator):
    """Cross-validation over C, C*, γ, any other parameter, and over methods, in one call.

    What it chooses is what ``GridSearchCV(estimator, param_grid, cv=SemiSupervisedKFold(cv),
    scoring=labeled_accuracy_scorer, refit=PreferSmallest("C", "C_star"))`` of scikit-learn
    chooses: the labeled rows alone are split, a fold's labeled rows are left out of training, and
    all unlabeled rows stay in. It takes less time, because settings that differ only in
    parameters which nothing reads before the solver starts, such as C and C*, share the checked
    rows, the kernel values and their factorization; `QNS3VM` and `CCCPS3VM` share the supervised
    machine that they begin with among those of one C, too.

    Parameters
    ----------
    estimator : estimator, or dict of str to estimator
        What is fitted: any classifier that reads −1 as "unlabeled", also a pipeline. A dict
        compares several methods, and adds ``"estimator"`` to their parameters.
    param_grid : dict or list of dict, default=None
        Values to try by the name of their parameter, as in ``GridSearchCV``. Of several methods
        each takes the parameters that it has. None means C in 0.1, 1, 10, 100, C* in 0.01, 0.1, 1
        times the value that gives the unlabeled rows together the weight of the labeled ones, and
        γ in 0.1, 1, 10 times that of ``gamma="scale"`` on all rows: 36 settings of an S3VM.
    cv : int, splitter or iterable, default=5
        A number of folds means `SemiSupervisedKFold`. Only labeled rows of a test part count.
    scoring : str or callable, default=None
        A scorer of scikit-learn, which gets the labeled rows of a test part. None is accuracy.
    criterion : {"stability"}, default=None
        Among settings that share the best mean score, take those whose labels of the unlabeled rows
        change least from fold to fold, before the rule of ``refit``: the mean share of rows on
        which two folds agree. By itself it is no measure: one class for all rows is stable.
    refit : bool or callable, default=True
        Whether the best setting is fitted to all rows. A callable takes ``cv_results_`` and
        returns the index of the best setting, as `PreferSmallest` does. Otherwise, among settings
        that share the best mean score, the one with the smallest C is the best, then with the
        smallest ``C_star`` (0 for a method without), then with the smallest ``gamma``, then the
        first; a parameter with other values than numbers and None does not take part.
    error_score : "raise" or float, default=nan
        Score of a setting whose fit fails, with one warning for all.
    exact : bool or "choice", default=True
        True computes what fits of their own compute. ``"choice"`` ends in the same setting with
        the same score in less time: a setting is stopped as soon as right answers on all rows
        that are left would not make it the best, and what it was not tried on is NaN in
        ``cv_results_``; it needs the default of ``scoring``, ``criterion`` and the rule for ties,
        keeps the preparations of all folds in memory, and uses one process. False lets `QNS3VM`
        and `NewtonS3VM` anneal on from the solution of the next smaller C*, in half the time on
        rows of few features. Both end in local minima, not always in the same one.
    n_jobs : int, default=None
        Number of processes, as in scikit-learn; the threads of a fit are those of the estimator.
    verbose : int, default=0
        Print how many settings share how many preparations.

    Attributes
    ----------
    cv_results_ : dict of str to ndarray or list
        ``params``, ``param_*``, ``split*_test_score``, ``mean_test_score``, ``std_test_score``,
        ``rank_test_score``, ``stability`` with that criterion, and mean and std of ``fit_time`` and
        ``score_time`` in seconds. What is shared counts for the setting that comes first.
    best_index_, best_params_, best_score_ : int, dict, float
        The chosen setting and its mean score.
    best_estimator_ : estimator
        Fitted to all rows with these parameters. Present if ``refit``.
    refit_time_ : float
        Seconds that took.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    transduction_ : ndarray of shape (n,)
        A label for every training row, where ``best_estimator_`` has it.
    n_features_in_ : int
        Number of features.
    n_splits_ : int
        Number of folds.
    n_preparations_ : int
        How often rows and kernel were prepared; ``n_splits_`` times the number of settings where
        nothing is shared, and fewer with ``exact="choice"``.

    See Also
    --------
    SemiSupervisedKFold : The folds.
    PreferSmallest : The rule for ties by itself.

    Notes
    -----
    Weights count in the fits, not in the scores. Fits of folds do not warn of limits that a
    solver met; the last one, on all rows, does.

    Examples
    --------
    >>> from s3vm_lib import QNS3VM, SVM
    >>> from s3vm_lib.datasets import hide_labels, make_moons
    >>> from s3vm_lib.model_selection import S3VMSearchCV
    >>> X, truth = make_moons(200, random_state=0)
    >>> y = hide_labels(truth, 20, random_state=0)
    >>> search = S3VMSearchCV(QNS3VM(), {"C": [1, 10], "C_star": [0.1, 1], "gamma": [1, 8]})
    >>> search.fit(X, y).best_params_
    {'C': 10, 'C_star': 0.1, 'gamma': 1}
    >>> search.n_preparations_
    10
    """

    estimator: Estimator | dict[str, BaseEstimator] = field(kw_only=False)
    param_grid: dict | list[dict] | None = field(default=None, kw_only=False)
    cv: Annotated[
        Any, Interval(Integral, 2, None, closed="left"), HasMethods(["split"]), Iterable
    ] = 5
    scoring: str | Callable | None = None
    criterion: Literal["stability"] | None = None
    refit: bool | Callable = True
    error_score: float | Literal["raise"] = np.nan
    exact: bool | Literal["choice"] = True
    n_jobs: Jobs = None
    verbose: Verbosity = 0

    def _estimators(self):
        return self.estimator if isinstance(self.estimator, dict) else {None: self.estimator}

    def _first(self):
        return next(iter(self._estimators().values()))

    @validated_inside
    def fit(
        self,
        X: Rows,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        unlabeled_mask: ArrayLike | None = None,
    ) -> Self:
        """Try every setting on every fold, and fit the best one to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Rows, labeled and unlabeled; the Gram matrix where the estimator takes one.
        y : array-like of shape (n,)
            Labels, −1 or missing where unlabeled.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows, for every fit.
        unlabeled_mask : array-like of bool, shape (n,), default=None
            True for unlabeled rows; with it −1 is a label like any other.

        Returns
        -------
        self : object
            The fitted search.

        Raises
        ------
        ValueError
            If ``param_grid`` names a parameter that does not exist, if every fit fails, or if the
            rows, labels or weights are not what the estimators take.
        """
        estimators = self._estimators()
        if not estimators:
            raise ValueError("estimator must be an estimator or a dict with at least one")
        given = X  # with the names of its columns
        if all(isinstance(one, BaseMachine) for one in estimators.values()):
            # What no setting can be fitted to is refused once, as a fit of its own would.
            X, _, sample_weight = checked_input(
                clone(self._first()), X, y, sample_weight, unlabeled_mask
            )
        elif not hasattr(X, "shape"):
            X = np.asarray(X)
        y = column_or_1d(mark_missing(y, unlabeled_mask))
        if y.shape != X.shape[:1]:
            raise ValueError(f"y must be of shape {X.shape[:1]}, as X has rows, got {y.shape}")
        # Folds and scores need the classes, whatever the estimators make of them.
        codes, self.classes_ = split_labels(y, unlabeled_mask)
        mask = None if unlabeled_mask is None else np.asarray(unlabeled_mask)
        weight = np.ones(len(y))
        if sample_weight is not None:
            sample_weight = weight = checked_weight(sample_weight, np.empty(len(y)))
        if self.exact == "choice":
            self._check_race()
        folds = self._folds(X, codes)
        found = candidates(estimators, self.param_grid, X, codes, weight)
        shared = groups(found, estimators, bool(self.exact))
        scorer = None
        # The accuracy of labels is counted in the folds, without the machinery of a scorer.
        if self.scoring is not None and not is_labeled_accuracy(self.scoring):
            scorer = check_scoring(self._first(), self.scoring)
        if self.verbose:
            print(
                f"S3VMSearchCV: {len(found)} settings, {len(shared)} preparations, "
                f"{len(folds)} folds"
            )
        watched = np.flatnonzero(codes < 0) if self.criterion is not None else np.arange(0)
        if watched.size and not all(np.isin(watched, train).all() for train, _ in folds):
            raise ValueError(
                "cv must keep all unlabeled rows in every training part for criterion='stability'"
            )
        if watched.size and len(folds) < 2:
            raise ValueError(
                "cv must have two folds or more for criterion='stability', which compares them, "
                f"got {len(folds)}"
            )
        common = Shared(
            X, y, sample_weight, mask, watched, scorer, self.error_score, not self.exact
        )
        # One trial for each setting and fold; a race leaves out those that cannot be best.
        trials = np.empty((len(found), len(folds)), dtype=object)
        if self.exact == "choice":
            self.n_preparations_ = self._race_all(trials, found, shared, common, folds)
        else:
            every = Parallel(n_jobs=self.n_jobs)(
                delayed(_run)(Fold(estimator, common, *fold), [late for _, late in members])
                for estimator, members in shared
                for fold in folds
            )
            for number, part in enumerate(every):
                group, fold = divmod(number, len(folds))
                for (position, _), trial in zip(shared[group][1], part, strict=True):
                    trials[position, fold] = trial
            self.n_preparations_ = len(every)
        self._warn_of_failures(trials)
        self.n_splits_ = len(folds)
        self.scorer_ = labeled_accuracy_scorer if scorer is None else scorer
        self.cv_results_ = _results([candidate.params for candidate in found], trials)
        if watched.size:
            self.cv_results_["stability"] = np.array([_agreement(row) for row in trials])
        # Choose by the mean score; ties go to the smallest values.
        rule = self.refit if callable(self.refit) else smallest(found, estimators)
        self.best_index_ = int(rule(self.cv_results_))
        self.best_params_ = found[self.best_index_].params
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        if self.refit:
            self._refit(found[self.best_index_], given, y, sample_weight, mask)
        return self

    def _check_race(self):
        """Refuse scores and rules for ties of which no bound is known, see `_race`."""
        for name, allowed in (
            ("scoring", self.scoring is None or is_labeled_accuracy(self.scoring)),
            ("criterion", self.criterion is None),
            ("refit", not callable(self.refit)),
            ("error_score", self.error_score == "raise" or not self.error_score > 1),
        ):
            if not allowed:
                raise ValueError(
                    f"exact='choice' needs the default of {name}, got {getattr(self, name)!r}"
                )

    def _race_all(self, trials, found, shared, common, folds):
        """Fill in the trials that can decide the choice; the number of preparations."""
        keys = precedence(found, self._estimators())
        leader, prepared, lost = Leader(), 0, [[0.0] for _ in folds]
        for estimator, members in shared:
            entered = [(keys[position], late) for position, late in members]
            group = [Fold(estimator, common, *fold) for fold in folds]
            tried, leader, number = _race(entered, group, leader, lost)
            prepared += number
            for (position, _), row in zip(members, tried, strict=True):
                trials[position, :] = row
        return prepared

    def _folds(self, X, codes):
        """List the (training rows, labeled test rows) of each fold."""
        cv = SemiSupervisedKFold(self.cv) if isinstance(self.cv, Integral) else check_cv(self.cv)
        folds = []
        for train, test in cv.split(X, codes):
            train, test = np.arange(codes.size)[train], np.arange(codes.size)[test]  # of masks too
            test = test[codes[test] >= 0]
            if not test.size:
                raise ValueError("cv must leave a labeled row in every test part")
            folds.append((train, test))
        return folds

    def _warn_of_failures(self, trials):
        errors = [trial.error for trial in trials.ravel() if trial.error is not None]
        if not errors:
            return
        tried = sum(trial.error is not None or trial.fit_time > 0 for trial in trials.ravel())
        message = f"{len(errors)} of {tried} fits failed, the first with {errors[0]}"
        if len(errors) == tried:
            raise ValueError(message)
        warnings.warn(
            f"{message}; their score is error_score={self.error_score}",
            FitFailedWarning,
            stacklevel=4,
        )

    def _refit(self, best, X, y, weight, mask):
        model = clone(self._estimators()[best.name])
        model.set_params(**clone(best.settings, safe=False))
        begin = time.perf_counter()
        model.fit(X, **_fit_arguments(model, y, weight, mask))
        self.refit_time_ = time.perf_counter() - begin
        self.best_estimator_ = model
        for name in ("n_features_in_", "transduction_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def _best(self):
        check_is_fitted(self)
        if not self.refit:
            raise AttributeError("S3VMSearchCV(refit=False) has no best_estimator_: refit the best")
        return self.best_estimator_

    def predict(self, X: Rows) -> np.ndarray:
        """Predict the class of each row by ``best_estimator_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m,)
        """
        return self._best().predict(X)

    @available_if(_best_has("decision_function"))
    def decision_function(self, X: Rows) -> np.ndarray:
        """Return the outputs of ``best_estimator_``; see `predict` for the rows."""
        return self._best().decision_function(X)

    @available_if(_best_has("predict_proba"))
    def predict_proba(self, X: Rows) -> np.ndarray:
        """Return the probabilities of ``best_estimator_``; see `predict` for the rows."""
        return self._best().predict_proba(X)

    def score(self, X: Rows, y: Labels, unlabeled_mask: ArrayLike | None = None) -> float:
        """Score ``best_estimator_`` by ``scoring``.

        Where that is None or `labeled_accuracy_scorer`, it is the share of right predictions on the
        labeled rows, as in the ``score`` of the estimators: rows whose label is missing or −1 are
        left out, and −1 counts where it is a class of the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows.
        y : array-like of shape (m,)
            Labels.
        unlabeled_mask : array-like of bool, shape (m,), default=None
            True for rows that are left out, whatever their label.

        Returns
        -------
        float
        """
        best = self._best()
        if is_labeled_accuracy(self.scorer_):
            return super().score(X, y, unlabeled_mask=unlabeled_mask)
        if unlabeled_mask is not None:
            rows, y = labeled_rows(y, unlabeled_mask)
            X = _safe_indexing(X, rows)
        return self.scorer_(best, X, y)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inside = get_tags(self._first()).input_tags
        tags.input_tags.sparse, tags.input_tags.pairwise = inside.sparse, inside.pairwise
        return tags


def _agreement(trials):
    """Return the mean share of unlabeled rows to which two folds give the same label."""
    if any(trial.labels is None for trial in trials):
        return np.nan
    pairs = combinations([trial.labels for trial in trials], 2)
    return float(np.mean([np.mean(one == other) for one, other in pairs]))


def _results(params, trials):
    """Make ``cv_results_`` as scikit-learn does."""
    results = {}
    for key in ("fit_time", "score_time"):
        values = np.array([[getattr(trial, key) for trial in row] for row in trials])
        results[f"mean_{key}"], results[f"std_{key}"] = values.mean(axis=1), values.std(axis=1)
    for name in dict.fromkeys(name for setting in params for name in setting):
        column = np.ma.masked_all(len(params), dtype=object)
        for position, setting in enumerate(params):
            if name in setting:
                column[position] = setting[name]
        results[f"param_{name}"] = column
    results["params"] = params
    scores = np.array([[trial.score for trial in row] for row in trials])
    for fold in range(scores.shape[1]):
        results[f"split{fold}_test_score"] = scores[:, fold]
    mean = np.average(scores, axis=1)
    results["mean_test_score"], results["std_test_score"] = mean, scores.std(axis=1)
    worst = np.nanmin(mean) - 1 if np.isfinite(mean).any() else 0.0
    ranks = rankdata(-np.nan_to_num(mean, nan=worst), method="min")
    results["rank_test_score"] = ranks.astype(np.int32)
    return results
