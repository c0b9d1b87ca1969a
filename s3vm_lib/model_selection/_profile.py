"""One estimator at many class ratios: `balance_profile`."""

from copy import copy
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from s3vm_lib.base.classifier import BaseS3VM
from s3vm_lib.base.preparation import refits_of, training, warn_of_limits
from s3vm_lib.class_ratio import (
    BalanceProfile,
    label_folds,
    label_masses,
    profile_of,
    structureless,
    two_classes,
)
from s3vm_lib.utils.labels import Labels
from s3vm_lib.utils.threads import using
from s3vm_lib.utils.validation import Rows


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
    data = training(machine, X, y, sample_weight, unlabeled_mask)
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
    data = data._replace(codes=two_classes(data.codes, code), n_classes=2)
    if hasattr(machine, "transduce"):  # the outputs are what is looked at
        machine.set_params(transduce=True)
    folds = ()
    with using(getattr(machine, "n_jobs", None)):
        refits = refits_of(machine, data)
        if held_out:
            positive, negative = label_masses(data)
            outputs = refits.fit(positive / (positive + negative)).outputs
            folds = label_folds(np.where(data.codes == 1, outputs, -outputs), data.codes, held_out)
            if not folds:
                raise ValueError("held_out needs two labeled rows of each class that differ")
        generator = check_random_state(random_state)
        sets = [structureless(data, generator) for _ in range(surrogates)]
        others = [refits_of(copy(machine), one) for one in sets]
        profile = profile_of(refits, ratios, folds, others)
    fits = [fit for one in (refits, *others) for fit in one.last.values()]
    warn_of_limits(machine, fits, stacklevel=3)
    return profile
