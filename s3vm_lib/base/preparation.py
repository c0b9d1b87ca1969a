"""Many settings of an estimator on the same rows, as searches try them."""

import numpy as np

from s3vm_lib.base.classifier import BaseS3VM
from s3vm_lib.class_ratio import Refits
from s3vm_lib.utils.shortcuts import parameters_hold
from s3vm_lib.utils.threads import using, with_threads


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
        if settings.get("C", -np.inf) > self._largest_C:
            model._check_scales(self._data)
            self._largest_C = settings["C"]
        model._previous = self._last if go_on else None
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


def training(estimator, X, y, sample_weight=None, unlabeled_mask=None):
    """Return the `Training` of a fit to these rows, checked as ``fit`` checks them."""
    estimator._validate_params()
    return estimator._validated(X, y, sample_weight, unlabeled_mask)[2]


def refits_of(estimator, data):
    """Return the `Refits` of a two-class problem by an estimator, whose attributes may change."""
    shared = estimator._prepare(data)

    def solve(data, t, ratio):
        return estimator._fit_binary(data, shared, t, estimator._problem(data, ratio), 0)

    return Refits(data, solve)


def warn_of_limits(estimator, fits, stacklevel):
    """Warn of the limits that these fits met, at the line so many calls above."""
    estimator._warn_of_limits(fits, stacklevel + 1)
