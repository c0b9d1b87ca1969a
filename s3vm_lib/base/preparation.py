"""Many settings, or many class ratios, of an estimator on the same rows."""

from copy import copy
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from s3vm_lib.base.classifier import BaseS3VM
from s3vm_lib.class_ratio import (
    BalanceProfile,
    Refits,
    label_folds,
    label_masses,
    profile_of,
    structureless,
    two_classes,
)
from s3vm_lib.utils.labels import Labels
from s3vm_lib.utils.shortcuts import parameters_hold
from s3vm_lib.utils.threads import using, with_threads
from s3vm_lib.utils.validation import Rows


def late_parameters(estimator):
    """Return the parameters for whose values one `Preparation` is enough."""
    if isinstance(estimator, BaseS3VM) and not getattr(estimator, "warm_start", False):
        return estimator._late
    return frozenset()


def class_shares(estimator, X, codes, sample_weight=None):
    """Estimate the shares of the classes that a fit would give to the solver.

    Parameters
    ----------
    estimator : BaseS3VM
        Its attributes change.
    X, codes, sample_weight
        Rows, class indices with −1 where unlabeled, and weights.

    Returns
    -------
    ndarray of shape (n_classes,), or None without a balance constraint
    """
    estimator._validate_params()
    with using(estimator.n_jobs):
        _, _, data = estimator._validated(X, codes, sample_weight, codes < 0)
        estimator._ratios(data)
    return estimator.class_ratio_


def loss_weights(estimator, codes, sample_weight):
    """Return the weight of each row's loss in a fitted estimator: sample times class weight."""
    return sample_weight * estimator._class_weights(codes, sample_weight, estimator.classes_)


class Preparation:
    """The rows of one fit, checked and prepared once for many settings of an estimator.

    Parameters
    ----------
    estimator : BaseS3VM
        Fitted again and again, in place.
    X, y, sample_weight, unlabeled_mask
        As in its `fit`.
    """

    def __init__(self, estimator, X, y, sample_weight=None, unlabeled_mask=None):
        estimator._validate_params()
        self.estimator, self._largest_C = estimator, getattr(estimator, "C", None)
        self._given = {name: getattr(estimator, name) for name in estimator._late}
        self.n_jobs = estimator.n_jobs
        with using(self.n_jobs):
            checked = estimator._validated(X, y, sample_weight, unlabeled_mask)
            self._X, self._codes, self._data = checked
            self._shared = estimator._prepare(self._data)
        self._last, self._ratios, self._kept, self._asked = None, {}, {}, None

    @with_threads
    def fit(self, transduce=True, go_on=False, sample_weight=None, **settings):
        """Fit the model of ``clone(estimator).set_params(**settings).fit(X, y, ...)``.

        Parameters
        ----------
        transduce : bool, default=True
            Without it the model has no ``transduction_``, which costs outputs of all rows.
        go_on : bool, default=False
            Whether the solver may begin at the last solution, where that is one for a smaller C*.
        sample_weight : ndarray of shape (n,), default=None
            Other weights of the labeled rows, of which none is left out; what was prepared and
            ``gamma="scale"`` stay those of the first weights.
        **settings
            Values of parameters in ``_late``.

        Returns
        -------
        BaseS3VM
            The estimator, which the next call fits again.
        """
        model = self.estimator
        vars(model).update(self._given | settings)  # set_params would take a millisecond
        if not parameters_hold(model, settings):
            model._validate_params()
        # Scales were checked for the largest C so far.
        if settings.get("C", -np.inf) > self._largest_C:
            model._check_scales(self._data)
            self._largest_C = settings["C"]
        model._previous = self._last if go_on else None
        # Other weights change losses and ratios, and nothing of what was prepared.
        if sample_weight is None:
            data, ratios = self._data, self._known_ratios(model)
            model._kept = self._kept
        else:
            weight = sample_weight[self._data.rows]
            factor = model._class_weights(self._data.codes, weight, model.classes_)
            data = self._data._replace(sample_weight=weight, loss_weight=weight * factor)
            ratios = model._ratios(data)
        try:
            self._last = model._fit_prepared(data, self._shared, ratios)
        finally:
            for name in ("_previous", "_kept"):
                vars(model).pop(name, None)
        if transduce:
            model._transduce(self._X, self._codes, self._data.rows, self._last[1])
        return model

    def predict(self, X):
        """Predict by the last model; its kernel values stay for one with the same support."""
        if X is not self._asked:
            self._kept.pop("values", None)
            self._asked = X
        self.estimator._kept = self._kept
        try:
            return self.estimator.predict(X)
        finally:
            del self.estimator._kept

    def warn_of_limits(self):
        """Warn as ``fit`` does, where the solver met its limit in the last one."""
        self.estimator._warn_of_limits(self._last[1])

    def _known_ratios(self, model):
        """Return the ratios, estimated once: they depend on rows, kernel, ``balance`` and C."""
        if not hasattr(model, "balance"):
            return model._ratios(self._data)
        key = repr(model.balance), model.C, getattr(model, "C_star", None) == 0
        if key not in self._ratios:
            self._ratios[key] = model._ratios(self._data), model.class_ratio_
        ratios, model.class_ratio_ = self._ratios[key]
        return ratios


def refits_of(estimator, data):
    """Return the `Refits` of a two-class problem by an estimator, whose attributes may change."""
    shared = estimator._prepare(data)

    def solve(data, t, ratio):
        return estimator._fit_binary(data, shared, t, estimator._problem(data, ratio), 0)

    return Refits(data, solve)


def balance_profile(
    estimator: BaseS3VM,
    X: Rows,
    y: Labels,
    ratios=None,
    *,
    positive=None,
    held_out=0,
    surrogates=0,
    sample_weight=None,
    unlabeled_mask=None,
    random_state=None,
) -> BalanceProfile:
    """Fit a machine for a grid of class ratios and keep what tells the right one from others.

    What does not depend on the ratio, a Gram matrix or a factorization, is computed once. Fits that
    stop at their limits are warned of, once for all.

    Parameters
    ----------
    estimator : BaseS3VM
        An estimator with a parameter ``balance``; it is not changed.
    X : {array-like, sparse matrix} of shape (n, d)
        Labeled and unlabeled rows.
    y : array-like of shape (n,)
        Labels, −1 where unlabeled.
    ratios : array-like of shape (m,), default=None
        Shares in (0, 1), increasing; two or more for a `BalanceProfile.posterior`. None means
        eleven on the 99.8 % interval of the labels' posterior.
    positive : object, default=None
        The class whose share is meant. None means the second one of two.
    held_out : int, default=0
        Folds of the labels that are held out in turn, 2 or more; 0 for none. They cost as many
        profiles.
    surrogates : int, default=0
        Structureless sets that are fitted for comparison; each costs a profile.
    sample_weight : array-like of shape (n,), default=None
    unlabeled_mask : array-like of bool, shape (n,), default=None
        As in ``fit``.
    random_state : int, RandomState or None, default=None
        Source of the surrogates.

    Returns
    -------
    BalanceProfile

    Raises
    ------
    ValueError
        If the estimator has no ``balance`` or a parameter that is not valid, a ratio is not in
        (0, 1) or they do not increase, no row is unlabeled, ``positive`` is not a class or is
        needed, ``held_out`` or ``surrogates`` is not such a number, or labels cannot be held out
        because a class has only one.

    Examples
    --------
    >>> from s3vm_lib import QNS3VM, balance_profile
    >>> from s3vm_lib.datasets import hide_labels, make_g50c
    >>> X, truth = make_g50c(300, random_state=0)
    >>> y = hide_labels(truth, 20, random_state=0)
    >>> profile = balance_profile(QNS3VM(), X, y, [0.3, 0.4, 0.5, 0.6, 0.7])
    >>> profile.best("separation")
    0.5
    """
    if "balance" not in estimator.get_params():
        raise ValueError(f"estimator must have a parameter balance, got {type(estimator).__name__}")
    if not isinstance(held_out, Integral) or held_out < 0 or held_out == 1:
        raise ValueError(f"held_out must be 0 or an integer from 2 on, got {held_out!r}")
    if not isinstance(surrogates, Integral) or surrogates < 0:
        raise ValueError(f"surrogates must be an integer from 0 on, got {surrogates!r}")
    machine = clone(estimator)
    machine._validate_params()
    _, _, data = machine._validated(X, y, sample_weight, unlabeled_mask)
    if not np.any(data.codes < 0):
        raise ValueError("y must hold unlabeled rows (-1), whose share is looked for")
    classes = machine.classes_.tolist()
    if positive is None and len(classes) > 2:
        raise ValueError(f"positive must name one of the classes {classes}, got None")
    if positive is not None and positive not in classes:
        raise ValueError(f"positive must be one of the classes {classes}, got {positive!r}")
    code = 1 if positive is None else classes.index(positive)
    if ratios is not None:
        ratios = np.asarray(ratios, dtype=float)
        inside = ratios.ndim == 1 and ratios.size > 0 and np.all((ratios > 0) & (ratios < 1))
        if not inside or np.any(np.diff(ratios) <= 0):
            raise ValueError(f"ratios must be increasing numbers in (0, 1), got {ratios}")
    # The class that is asked for against all others.
    data = data._replace(codes=two_classes(data.codes, code), n_classes=2)
    if hasattr(machine, "transduce"):  # the outputs are what is looked at
        machine.set_params(transduce=True)
    folds = ()
    with using(machine.n_jobs):
        refits = refits_of(machine, data)
        # Folds are dealt out along the outputs of a machine that has seen all labels.
        if held_out:
            positive, negative = label_masses(data)
            outputs = refits.fit(positive / (positive + negative)).outputs
            folds = label_folds(np.where(data.codes == 1, outputs, -outputs), data.codes, held_out)
            if not folds:
                raise ValueError("held_out needs two labeled rows of each class that differ")
        # Rows without clusters: what the same machine reaches where there is no gap to find.
        generator = check_random_state(random_state)
        sets = [structureless(data, generator) for _ in range(surrogates)]
        others = [refits_of(copy(machine), one) for one in sets]
        profile = profile_of(refits, ratios, folds, others)
    fits = [fit for one in (refits, *others) for fit in one.last.values()]
    machine._warn_of_limits(fits, 3)
    return profile
