"""What all semi-supervised classifiers share: labels, one-vs-rest, balance and prediction.

Unlabeled rows have ``y == -1``, as everywhere in scikit-learn; any other values are the classes.
The labels −1 and +1 of the formulas exist only inside: a solver gets ``t`` with entries +1, −1
and 0, where 0 means unlabeled.
"""

import dataclasses
import inspect
import warnings
from collections.abc import Iterable
from contextlib import closing, nullcontext
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from s3vm_lib.base.findings import (
    COMPARED,
    constant_objective,
    given,
    kernel_finding,
    label_finding,
    parted,
    recounted,
    share_finding,
    warn_of_time,
)
from s3vm_lib.base.machine import BaseMachine, SemiSupervisedMixin
from s3vm_lib.class_ratio import RATIO_RULES, label_shares
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.utils.labels import Labels
from s3vm_lib.utils.limits import SHAPE, InnerShare, require_finite_outputs
from s3vm_lib.utils.linear import nearer
from s3vm_lib.utils.row_blocks import spread
from s3vm_lib.utils.shortcuts import checked_new_rows
from s3vm_lib.utils.threads import in_threads, thread_count, using, with_threads
from s3vm_lib.utils.validation import Rows, accepted, checked_input, parameters, validated

Balance = (
    Literal[
        "auto", "labels", "posterior", "powered", "bbse", "em", "separation", "objective", "gap"
    ]
    | InnerShare
    | dict
    | None
)
_SEEN = 2**13  # kernel values, or products, with which the outputs of a solver are compared
ROUGH = 1.2  # `_largest_J` where steps are completed, and nothing is to converge
_FEWEST_SEEN = 8  # and rows, at least


def checked_labeled_loss(loss, names):
    """Return the `LabeledLoss` that a parameter of an estimator names or is.

    Parameters
    ----------
    loss : str or LabeledLoss
    names : sequence of str
        Losses that the estimator was proved for.

    Raises
    ------
    ValueError
        For another loss, or for one whose parameter is beyond the limits.
    """
    if isinstance(loss, str):
        return LabeledLoss(loss)
    if loss.name not in names or not (loss.parameter is None or loss.parameter in SHAPE):
        raise ValueError(f"labeled_loss must be one of {names}, its parameter {SHAPE}, got {loss}")
    return loss


def _copies(shared, count):
    """Return what two-class problems share, once for each that is solved beside others, or None."""
    if type(shared) is not tuple:
        return [shared] * count
    grams = [part for part in shared if hasattr(part, "apart")]
    if any(gram.rows is not None for gram in grams):
        return None  # its rows are computed by whoever is the first to visit them
    return [
        tuple(part.apart() if hasattr(part, "apart") else part for part in shared)
        for _ in range(count)
    ]


def positives(data):
    """Return the class that is positive in each two-class problem."""
    return [1] if data.n_classes == 2 else range(data.n_classes)


def targets(data, k):
    """Return labels of the problem of class k against the rest, 0 where unlabeled, shape (n,)."""
    return np.where(data.codes < 0, 0.0, np.where(data.codes == k, 1.0, -1.0))


@parameters
class BaseS3VM(SemiSupervisedMixin, BaseMachine):
    """Validation, labels, one-vs-rest and prediction; subclasses add ``_fit_binary``.

    A subclass implements ``_prepare(data)``, which returns whatever its two-class problems share
    (a Gram matrix, a factorization), ``_problem(data, ratio)``, which returns what is minimized,
    and ``_fit_binary(data, shared, t, problem, index)``, which returns a `BinaryFit`. A fit that
    raises leaves the estimator as it was.
    """

    class_weight: Literal["balanced"] | dict | None = None

    _wants_unlabeled = True
    # Whether `_fit_binary` changes nothing but a `Gram`, so that classes may be fitted at once.
    _side_by_side = False
    # Parameters that neither the checks of the rows nor `_prepare` read: see `Preparation`.
    _late = frozenset()
    _largest_J = 1.01  # in units of the least J of constants
    _previous = None  # problems and fits of a `Preparation` that this fit may go on from

    @validated
    def fit(
        self,
        X: Rows,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        unlabeled_mask: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to labeled and unlabeled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Training rows, labeled and unlabeled; the n × n Gram matrix with
            ``kernel="precomputed"``.
        y : array-like of shape (n,)
            Labels; −1 marks unlabeled rows, and so do missing labels (None, NaN, pandas.NA). With
            string labels use an object array.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights of labeled and unlabeled rows; a weight of k equals k copies of
            the row, and a weight of 0 leaves it out.
        unlabeled_mask : array-like of bool, shape (n,), default=None
            True for unlabeled rows. With it −1 is a label like any other, and ``y`` is ignored
            where the mask is True.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            When fewer than two classes are labeled, or when a parameter or an input is not valid.
        """
        with using(self.n_jobs):
            return self._fit(X, y, sample_weight, unlabeled_mask)

    def _fit(self, X, y, sample_weight, unlabeled_mask):
        X, codes, data = self._validated(X, y, sample_weight, unlabeled_mask)
        if self._wants_unlabeled and unlabeled_mask is None:
            self._warn_of_no_unlabeled(codes)
        warn_of_time(self, self._n_solved(data), 4)
        fits, single = self._solved(X, data)
        # Single precision was not enough: once more with kernel values in double precision.
        if single and any(fit.status == "stalled" for fit in fits):
            self._precise = True
            try:
                fits = self._solved(X, data)[0]
            finally:
                del self._precise
        found = self._transduce(X, codes, data.rows, fits)
        self._look(data, fits, None if found is None else found[data.rows])
        return self

    def _solved(self, X, data):
        """Return the fits, and whether kernel values would gain digits in double precision."""
        shared = self._prepare(data)
        # Files are closed here: an error keeps what it has passed through alive.
        with closing(shared) if hasattr(shared, "close") else nullcontext():
            problems, fits = self._fit_prepared(data, shared, self._ratios(data))
            parts = shared if type(shared) is tuple and not self._precomputed else ()
            grams = [part for part in parts if hasattr(part, "apart")]
            single = any(gram.diagonal.dtype == np.float32 for gram in grams)
        return self._audited(X, data, problems, fits), single

    def _audited(self, X, data, problems, fits):
        """Return the fits with outputs, offsets and J of the machines that their coefficients are.

        The sums that a solver carries along part from these where rounding is large; then it has
        not converged. With many rows a part is looked at, which takes a fraction of a millisecond.
        """
        known = np.flatnonzero(~np.isnan(fits[0].outputs))
        if not known.size or (fits[0].dual is None and fits[0].coef is None):
            return fits
        # As many rows as a fixed number of products allows, spread over all.
        size = len(fits) * (X.shape[1] if fits[0].dual is None else self.support_.size)
        rows = known[spread(known.size, max(_FEWEST_SEEN, _SEEN // max(size, 1)))]
        seen, every, audited = self._outputs(X[data.rows[rows]]), None, []
        own = np.column_stack([fit.outputs[rows] for fit in fits])
        apart = np.any(self._decide(seen) != self._decide(own)) if len(fits) > 1 else False
        # Not the ``problems``: those of the estimator have their graphs.
        for index, (problem, fit) in enumerate(zip(self._problems, fits, strict=True)):
            t = targets(data, positives(data)[index])
            if apart or parted(problem, fit, seen[:, index], rows, t, data.loss_weight):
                every = self._outputs(X[data.rows]) if every is None else every
                fit = recounted(problem, fit, every[:, index], t, data.loss_weight)
            audited.append(fit)
        if every is not None:
            self._store(data, problems, audited)
            self._check_result()
        return audited

    def _n_solved(self, data):
        """Return the number of rows that the time of a fit depends on."""
        return data.codes.size

    def _look(self, data, fits, found, stacklevel=6, whole=None):
        """Look at the result, keep what contradicts labels, shares or objective, and warn once.

        Where ``data`` are some of the rows, J is that of the ``whole``.
        """
        findings = self._objective_finding(whole or data, fits) | self._answer_findings(data, found)
        reach = float(self.C) * data.loss_weight.sum()
        findings |= given(kernel=kernel_finding(data.kernel, data.X, reach))
        if any(fit.status == "failed" for fit in fits):
            findings.setdefault("share", "misses the share that was asked for: outputs are equal")
        self._warn_of_limits(fits, stacklevel, findings, data.X)

    def _objective_finding(self, data, fits):
        """Report where a constant has a lower objective: then the solver has not converged."""
        found, statuses = {}, [fit.status for fit in fits]
        for index, k in enumerate(positives(data)):
            J = fits[index].objective
            constant = constant_objective(self._problems[index], targets(data, k), data.loss_weight)
            largest = ROUGH if statuses[index] == "completed" else self._largest_J
            if J > largest * constant or J < 0:  # a NaN is not known
                if statuses[index] in ("converged", "completed"):
                    statuses[index] = "failed"
                found["objective"] = (
                    f"ends at the objective {J:.4g}, while a constant output has {constant:.4g}: "
                    "scale the columns of X, take more steps or less extreme parameters"
                )
        if found:
            self.termination_condition_ = statuses[0] if len(fits) == 1 else statuses
        return found

    def _answer_findings(self, data, found):
        """Report which shares or labels the classes found contradict."""
        problem = self._problems[0]
        supervised = problem.unlabeled_loss is None and problem.graph is None
        if found is None or not np.any(data.codes < 0):
            return {}
        asked = getattr(self, "class_ratio_", None)
        share = share_finding(data.codes, data.sample_weight, found, self.classes_, asked)
        if supervised:
            return given(share=share)
        if share is not None:
            if asked is not None and getattr(self, "balance_tol", 0) is None:
                share += "; balance_tol=0.01 holds the share itself"
        labels = label_finding(data.codes, found, lambda: self._supervised_errors(data))
        return given(share=share, labels=labels)

    def _supervised_errors(self, data):
        """Count the labels that an SVM with this kernel and C contradicts.

        With many labels, count those that are not of the largest class.
        """
        labeled = np.flatnonzero(data.codes >= 0)
        codes, weight = data.codes[labeled], data.loss_weight[labeled]
        # With many labels an SVM takes too long: a constant answer is the yardstick.
        minority = int(labeled.size - np.bincount(codes).max())
        if labeled.size > COMPARED:
            return minority
        from sklearn.svm import SVC

        X = nearer(data.X[labeled], data.kernel)[0]
        K = X[:, labeled] if self._precomputed else data.kernel.gram(X)
        model = SVC(C=float(self.C), kernel="precomputed", max_iter=100_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model.fit(K, codes, weight)
            except ValueError:  # costs beyond what LIBSVM can solve
                return minority
        if data.n_classes == 2:  # as `predict` does, which takes longer than the sums
            found = (model.dual_coef_ @ K[model.support_] + model.intercept_)[0] > 0
        else:
            found = model.predict(K)
        return int(np.sum(found != codes))

    def _fit_prepared(self, data, shared, ratios):
        """Do the part of a fit on which the parameters in ``_late`` have an influence."""
        problems, fits = self._solve_all(data, shared, ratios)
        self._store(data, problems, fits)
        self._check_result()
        return problems, fits

    def _easier(self, problem, index):
        """Return the earlier problem and its fit if it has a smaller C* alone, or None."""
        if self._previous is not None:
            earlier, fit = (part[index] for part in self._previous)
            same = dataclasses.replace(earlier, C_star=problem.C_star) == problem
            if same and earlier.C_star <= problem.C_star:
                return earlier, fit
        return None, None

    def _validated(self, X, y, sample_weight, unlabeled_mask):
        """Return the checked rows, all their codes, and the `Training` of those with weight."""
        X, codes, weight = checked_input(self, X, y, sample_weight, unlabeled_mask)
        if weight is None:
            weight = np.ones(codes.size)
        data = self._training(X, codes, weight, self.classes_)
        self._check_scales(data)
        self.gamma_ = data.kernel.gamma
        return X, codes, data

    def _solve_all(self, data, shared, ratios):
        """Solve each two-class problem, with one entry of ``ratios``: return problems and fits."""
        problems = [self._problem(data, ratio) for ratio in ratios]

        def one(index, k, shared=shared):
            return self._fit_binary(data, shared, targets(data, k), problems[index], index)

        pairs = list(enumerate(positives(data)))
        # What looks on from outside is called by one thread, in the order of the classes.
        alone = not self._side_by_side or self.verbose or self.callback is not None
        if alone or thread_count() == 1 or (copies := _copies(shared, len(pairs))) is None:
            return problems, [one(*pair) for pair in pairs]
        return problems, in_threads(lambda pair: one(*pair, copies[pair[0]]), pairs)

    def _ratios(self, data):
        """Return the share r of positives of each two-class problem, or None without balance."""
        if not hasattr(self, "balance"):
            return [None for _ in positives(data)]
        unused = self.balance is None or not np.any(data.codes < 0)
        self.class_ratio_ = None if unused else self._shares(self.balance, data)
        return [None if unused else float(self.class_ratio_[k]) for k in positives(data)]

    def _shares(self, balance, data):
        """Return the share of every class among the unlabeled rows, shape (n_classes,)."""
        classes = self.classes_.tolist()
        if isinstance(balance, str):
            if balance == "labels" or getattr(self, "C_star", None) == 0:
                return label_shares(data)
            # The outputs that it looks at have a free offset.
            near = data._replace(X=nearer(data.X, data.kernel)[0])
            return RATIO_RULES[balance](near, float(self.C))
        if isinstance(balance, dict):
            missing = [c for c in classes if c not in balance]
            if missing or len(balance) > len(classes):
                raise ValueError(
                    f"balance must give the share of each of the classes {classes}, got {balance}"
                )
            try:
                shares = np.array([float(balance[c]) for c in classes])
            except (TypeError, ValueError):
                raise ValueError(f"the shares of balance must be numbers, got {balance}") from None
            if not (np.all(shares > 0) and abs(shares.sum() - 1) <= 1e-6):
                raise ValueError(
                    f"the shares of balance must be positive with sum 1, got {balance}"
                )
            return shares / shares.sum()
        if len(classes) > 2:
            raise ValueError(
                f"balance must be a name, None or a dict of shares with {len(classes)} classes, "
                f"got {balance}: one number cannot give the share of every class"
            )
        return np.array([1.0 - balance, balance])

    def _penalties(self, data):
        """Return (C, C*): the default C* gives labeled and unlabeled rows equal total weight."""
        unlabeled = data.codes < 0
        mass = data.sample_weight[unlabeled].sum()
        if mass == 0:
            return float(self.C), 0.0
        if self.C_star is None:
            return float(self.C), float(self.C * data.sample_weight[~unlabeled].sum() / mass)
        return float(self.C), float(self.C_star)

    def _transduce(self, X, codes, rows, fits):
        """Give every training row a label: its own, or the one that the fit gave it.

        Returns
        -------
        ndarray of int, shape (n,), or None
            The class that the machine gives each row, also where that has a label.
        """
        outputs = np.full((codes.size, len(fits)), np.nan)
        outputs[rows] = np.column_stack([fit.outputs for fit in fits])
        unknown = np.flatnonzero(np.isnan(outputs[:, 0]))
        if unknown.size:
            outputs[unknown] = self._outputs(X[unknown])
        found = self._decide(outputs)
        self.transduction_ = self.classes_[np.where(codes >= 0, codes, found)]
        return found

    @staticmethod
    def _decide(outputs):
        if outputs.shape[1] == 1:
            return (outputs[:, 0] > 0).astype(int)
        return np.argmax(outputs, axis=1)

    @with_threads
    def decision_function(self, X: Rows) -> np.ndarray:
        """Return outputs f(x) + b; positive means ``classes_[1]``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows; with ``kernel="precomputed"`` the kernel values between them and all n training
            rows, shape (m, n).

        Returns
        -------
        ndarray of shape (m,), or (m, n_classes) with more than two classes
            With more than two classes, one column per class against the rest.
        """
        check_is_fitted(self)
        X = checked_new_rows(self, X, accepted(self, X))
        with np.errstate(over="ignore", invalid="ignore"):
            outputs = self._outputs(X)
        require_finite_outputs(outputs, X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: Rows) -> np.ndarray:
        """Return the class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows, as in `decision_function`.

        Returns
        -------
        ndarray of shape (m,)
        """
        scores = self.decision_function(X)
        return self.classes_[self._decide(scores[:, None] if scores.ndim == 1 else scores)]


def capabilities(estimators: Iterable[type]) -> list[dict[str, Any]]:
    """List what each estimator class can do, by its tags, parameters and methods.

    Parameters
    ----------
    estimators : iterable of classes
        Subclasses of `BaseMachine`.

    Returns
    -------
    list of dict
        Per class: ``estimator`` (name), ``kernels``, ``sparse``, ``weights``, ``online`` (bool),
        ``largest_n`` (rows that were fitted within about a minute) and ``memory``.
    """
    rows = []
    for cls in estimators:
        fit_parameters = inspect.signature(cls.fit).parameters
        rows.append(
            {
                "estimator": cls.__name__,
                "kernels": "kernel" in cls().get_params(),
                "sparse": cls().__sklearn_tags__().input_tags.sparse,
                "weights": "sample_weight" in fit_parameters,
                "online": hasattr(cls, "partial_fit"),
                "largest_n": cls._largest_n,
                "memory": cls._memory,
            }
        )
    return rows
