"""One door to the library: the estimator that chooses, guards and says what it did."""

import itertools
import warnings
from typing import Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from s3vm_lib import safe
from s3vm_lib.base.classifier import Balance
from s3vm_lib.base.findings import FitWarning, given, share_finding, warn, warn_of_time
from s3vm_lib.base.machine import SemiSupervisedMixin
from s3vm_lib.calibration import CalibratedS3VM
from s3vm_lib.class_ratio import separation
from s3vm_lib.quasi_newton import QNS3VM
from s3vm_lib.safe import QUICK, SafeS3VM
from s3vm_lib.stochastic import FRS3VM
from s3vm_lib.utils.labels import Labels
from s3vm_lib.utils.limits import RandomState, Scale, Verbosity, Weight
from s3vm_lib.utils.shortcuts import checked_new_rows
from s3vm_lib.utils.threads import using, with_threads
from s3vm_lib.utils.validation import (
    Estimator,
    Jobs,
    Rows,
    checked_input,
    parameters,
    validated_inside,
)

UNLIKE = 10.0  # ratio of standard deviations from which columns are not of one unit
LARGEST_KERNEL = 10_000  # rows up to which the kernel itself is used
COSTS = 1.0, 10.0  # between which held-out labels choose
LEAD = 0.75  # standard errors by which they must speak for the second
SHARE_TOL = 0.01  # of the share of positive outputs
_UNLIKE_PREDICT = 0.2  # share of rows whose most probable class may be another than predict's


class _IfProbability:
    """A method that there is with ``probability=True`` alone."""

    def __init__(self, method):
        self.method = method

    def __get__(self, instance, owner):
        if instance is not None and not instance.probability:
            raise AttributeError("predict_proba needs a fit with probability=True, got False")
        return self.method.__get__(instance, owner)


@parameters
class S3VC(SemiSupervisedMixin, MetaEstimatorMixin, BaseEstimator):
    """Semi-supervised support vector classifier: one door to the solvers, with a guard.

    It scales columns of different units, chooses kernel and C by held-out labels, a solver by the
    number of rows, estimates the class ratio, gives the labeled and the unlabeled part equal
    weight, and keeps the supervised machine where labels or the worst case advise it.
    `summary` says in words and numbers what was chosen and why.

    Parameters
    ----------
    C : "auto" or float, default="auto"
        Weight of the labeled losses. ``"auto"`` is 1, and 10 where that predicts more held-out
        labels, by three quarters of a standard error or more. With a ``solver`` of one's own it is
        the C of that.
    C_star : float, default=None
        Weight of the unlabeled losses. None gives both parts equal total weight.
    kernel : {"auto", "linear", "poly", "rbf", "laplacian", "precomputed"}, default="auto"
        ``"auto"`` is linear for sparse rows and where there are as many columns as rows, and
        otherwise linear or rbf: that with which the solver or the supervised machine predicts most
        held-out labels; linear in a tie, where a class has one label and where no row is unlabeled.
        For each kernel and C each label is held out twice, with more than two classes once. With a
        ``solver`` of one's own ``"auto"`` is its kernel, and others but ``"linear"`` need a solver
        that has one.
    gamma : {"scale", "variance", "auto"} or float, default="scale"
        Kernel coefficient, see `resolve_gamma`.
    scale : {"auto", True, False}, default="auto"
        Whether columns are brought to mean 0 and variance 1. ``"auto"`` does it to dense rows whose
        columns have standard deviations that differ by more than a factor of ten, or means that
        differ by more than ten deviations: within that they may well have one unit, and then the
        larger ones often are what matters.
    solver : "auto" or estimator, default="auto"
        ``"auto"`` is `QNS3VM` (with ``reconsider=True`` for two classes, and with ``tol=1e-3`` and
        ``ftol=1e-6``), and `FRS3VM` with the rbf kernel for more than 10,000 rows. `QNS3VM` holds
        the share of positive outputs (``balance_tol=0.01``): with the mean output, a linear machine
        starves a rare class. Another estimator keeps its own parameters, except for
        those that are given here with another value than their default, which it must have.
    balance : "auto", "labels", another name, float, dict or None, default="auto"
        Share of the classes among the unlabeled rows, see `s3vm_lib.class_ratio`; a dict has the
        share of each class label. A name is asked for each kernel and C that is tried, with more
        than two classes once.
    guard : bool, default=True
        Whether `SafeS3VM` decides between the machine and the supervised one. Without it the
        machine is returned as it is.
    probability : bool, default=False
        Whether `predict_proba` is wanted, which costs five more fits. Each class needs two labeled
        rows; not with a precomputed kernel, nor with sample weights other than one.
    random_state : int, RandomState instance or None, default=None
        Folds of the labels, and the solver where it draws numbers.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores.
        Estimators inside have their own, or else this one. The result is the same for any number.
    verbose : int, default=0
        Print the summary after a fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the one found where it was unlabeled.
    kernel_ : str
        The kernel that was chosen.
    C_ : float or None
        The C that was chosen; None with a solver that has none.
    scaler_ : StandardScaler or None
        What was done to the columns.
    solver_ : estimator
        The solver with all its parameters, not fitted.
    class_ratio_ : ndarray of shape (n_classes,), or None
        Shares of the classes that the solver was given.
    model_ : estimator
        What predicts, on scaled rows: a `SafeS3VM`, or the solver where there is no guard.
    kept_supervised_ : bool
        Whether the supervised machine was kept.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    SafeS3VM : The guard.
    SVM : The supervised machine.

    Notes
    -----
    What is guaranteed is what `SafeS3VM` guarantees. Probabilities come from outputs on labeled
    rows that were held out, see `CalibratedS3VM` for their limits. They assume the class shares of
    the labels, and `predict` does not: near the boundary the most probable class may be another.
    Both can be had: `predict`, and the class with the largest of the probabilities.

    The two values of C, and by how much the larger one has to lead, are rules of thumb, chosen on
    the tuning sets of the library's comparison.

    Examples
    --------
    >>> from s3vm_lib import S3VC
    >>> from s3vm_lib.datasets import hide_labels, make_moons
    >>> X, truth = make_moons(400, random_state=0)
    >>> new, truth_of_new = X[300:], truth[300:]
    >>> y = hide_labels(truth[:300], 20, random_state=0)
    >>> model = S3VC(random_state=0).fit(X[:300], y)
    >>> model.kernel_
    'rbf'
    >>> model.predict(new[:3]).tolist(), model.score(new, truth_of_new) > 0.85
    ([1, 0, 1], True)
    """

    C: Literal["auto"] | Weight = "auto"
    C_star: Weight | None = None
    kernel: Literal["auto", "linear", "poly", "rbf", "laplacian", "precomputed"] = "auto"
    gamma: Literal["scale", "variance", "auto"] | Scale = "scale"
    scale: Literal["auto"] | bool = "auto"
    solver: Literal["auto"] | Estimator = "auto"
    balance: Balance = "auto"
    guard: bool = True
    probability: bool = False
    random_state: RandomState = None
    n_jobs: Jobs = None
    verbose: Verbosity = 0

    _largest_n = 4_000
    _memory = "that of the solver, and of one model per member of the pool"

    @validated_inside
    def fit(
        self,
        X: Rows,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        unlabeled_mask: ArrayLike | None = None,
    ) -> Self:
        """Choose, fit and guard.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Training rows, labeled and unlabeled; the n × n Gram matrix with
            ``kernel="precomputed"``.
        y : array-like of shape (n,)
            Labels; −1 marks unlabeled rows, and so do missing labels (None, NaN, pandas.NA).
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights of labeled and unlabeled rows.
        unlabeled_mask : array-like of bool, shape (n,), default=None
            True for unlabeled rows. With it −1 is a label like any other.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            When fewer than two classes are labeled, when a parameter or an input is not valid, or
            when ``solver`` cannot take the kernel or another parameter that is given here, or
            ``probability`` these rows or weights.
        """
        with using(self.n_jobs):
            return self._fit(X, y, sample_weight, unlabeled_mask)

    def _fit(self, X, y, sample_weight, unlabeled_mask):
        X, codes, weight = checked_input(self, X, y, sample_weight, unlabeled_mask)
        if unlabeled_mask is None:
            self._warn_of_no_unlabeled(codes)
        safe.refuse_without_labels("solver", self.solver, type(self).__name__)
        warn_of_time(self, codes.size, 4)
        labels = self._label_counts(codes, weight)
        if self.probability:
            self._check_probability(labels, weight)
        self._said = []
        X = self._scaled(X, weight)
        data = safe.Sample(X, codes, weight)
        found = self._tried(data, self._kernels(X, labels), self._costs(labels))
        taken = self._chosen(found, labels.sum())
        self.solver_, model, compared = found[taken]
        self.kernel_, self.C_ = taken[1], getattr(self.solver_, "C", None)
        if compared is not None:
            safe.decide(model, compared, self.classes_)
        self._said.append(f"The solver is {type(self.solver_).__name__}.")
        wrong = {}  # labels that a machine contradicts which would not be returned with a guard
        if not self.guard and compared is not None:
            if model.estimator_ and safe.contradicts(model, "estimator", data):
                wrong = model.wrong_labels_
            model = model.estimator_ or model.baseline_
        self.model_ = model
        self._report_shares(codes, weight)
        self.kept_supervised_ = bool(getattr(model, "kept_supervised_", False))
        self.transduction_ = self.classes_[np.where(codes >= 0, codes, model.transduction_)]
        self._say_gap(X, codes, weight)
        self.findings_ = dict(model.findings_) if hasattr(model, "findings_") else {}
        if self.guard:
            self._said += model.summary().splitlines()[1:]
        else:
            if wrong:
                self.findings_["labels"] = (
                    f"contradicts {wrong['estimator']} of its {labels.sum()} labels, the "
                    f"supervised machine {wrong['supervised']}"
                )
            self._name_classes(codes, weight)
        self._calibrated = None
        if self.probability:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FitWarning)  # the model has been looked at
                self._calibrated = CalibratedS3VM(self._frozen()).fit(X, codes, codes < 0)
            chances = self._calibrated.predict_proba(X)
            other = np.mean(chances.argmax(axis=1) != np.asarray(model.predict(X)))
            if other > _UNLIKE_PREDICT:
                self.findings_["probability"] = (
                    f"gives {other:.0%} of the rows another most probable class than predict: "
                    "there are too few labels, or their class shares are not those of all rows"
                )
            self._said.append(
                f"On {other:.1%} of the rows the most probable class is not that of predict: the "
                "probabilities assume the class shares of the labels."
            )
        warn(type(self).__name__, self.findings_, 4)
        if self.verbose:
            print(self.summary())
        return self

    @property
    def _precomputed(self):
        if self.kernel == "auto" and not isinstance(self.solver, str):
            return get_tags(self.solver).input_tags.pairwise
        return self.kernel == "precomputed"

    # What is refused, in the words of this estimator: inside, classes are numbers -----------------

    def _label_counts(self, codes, weight):
        """Count the labeled rows of positive weight of each class, shape (n_classes,)."""
        labeled = codes >= 0 if weight is None else (codes >= 0) & (weight > 0)
        counts = np.bincount(codes[labeled], minlength=self.classes_.size)
        if not counts.all():
            raise ValueError(
                "sample_weight must be positive for a labeled row of every class, got 0 for all of "
                f"the classes {self.classes_[counts == 0].tolist()}"
            )
        return counts

    def _check_probability(self, labels, weight):
        """Refuse what `CalibratedS3VM` cannot do, before anything is fitted."""
        if self._precomputed:
            raise ValueError(
                "probability must be False with a precomputed kernel, got True: the folds of its "
                "calibration need other kernel values"
            )
        if weight is not None and np.any(weight != 1):
            raise ValueError(
                "sample_weight must be None or 1 everywhere with probability=True, got weights from"
                f" {weight.min():g} to {weight.max():g}: the calibration takes none"
            )
        if not isinstance(self.solver, str) and not hasattr(self.solver, "decision_function"):
            raise ValueError(
                "probability must be False with a solver that has no decision_function, got True "
                f"and {type(self.solver).__name__}"
            )
        if labels.min() < 2:
            raise ValueError(
                "y must hold two labeled rows or more of every class with probability=True, got "
                f"one of {self.classes_[labels < 2].tolist()}"
            )

    def _name_classes(self, codes, weight):
        """Replace class indices in the findings of a machine without a guard by class labels."""
        every = np.ones(codes.size) if weight is None else weight
        found = np.searchsorted(self.classes_, self.transduction_)
        share = share_finding(codes, every, found, self.classes_, self.class_ratio_)
        self.findings_ = given(**{**self.findings_, "share": share})
        self._said += [f"Warning: it {text}." for text in self.findings_.values()]

    # What is chosen ------------------------------------------------------------------------------

    def _scaled(self, X, weight):
        """Scale the columns to variance 1, where that is wanted."""
        self.scaler_ = None
        if self._precomputed:
            return X
        if sp.issparse(X):
            if self.scale and self.scale != "auto":
                raise ValueError("scale must be 'auto' or False with sparse rows, got True")
            self._said.append("Sparse rows stay as they are.")
            return X
        scaler = StandardScaler().fit(X, sample_weight=weight)
        deviation = np.sqrt(scaler.var_[scaler.var_ > 0])
        ratio = deviation.max() / deviation.min() if deviation.size else 1.0
        spread = np.mean(deviation**2) if deviation.size else 0.0
        apart = np.sqrt(np.var(scaler.mean_) / spread) if spread > 0 else 0.0
        unlike = ratio > UNLIKE or apart > UNLIKE
        wanted = unlike if self.scale == "auto" else self.scale
        self._said.append(
            f"The standard deviations of the columns differ by a factor of {ratio:.3g}, their "
            f"means by {apart:.3g} of such deviations: they "
            f"{'were scaled to 1' if wanted else 'stay as they are'}."
        )
        if not wanted:
            return X
        self.scaler_ = scaler
        return scaler.transform(X)

    def _kernels(self, X, labels):
        """Return the kernel, or the two between which held-out labels decide."""
        fixed = self.solver != "auto" and not hasattr(self.solver, "kernel")
        if fixed and self.kernel not in ("auto", "linear"):
            raise ValueError(
                f"kernel must be 'auto' or 'linear' with solver={type(self.solver).__name__}, "
                f"which has no parameter kernel, got {self.kernel!r}"
            )
        if self._precomputed:
            return ("precomputed",)
        if self.kernel != "auto":
            return (self.kernel,)
        if self.solver != "auto":
            return (getattr(self.solver, "kernel", "linear"),)
        if sp.issparse(X):
            reason = ", as for all sparse rows."
        elif X.shape[1] >= X.shape[0]:
            reason = ": there are as many columns as rows, or more."
        elif labels.min() < 2:
            reason = ": with one label of a class none can be held out."
        else:
            return "linear", "rbf"
        self._said.append(f"The kernel is linear{reason}")
        return ("linear",)

    def _costs(self, labels):
        """Return C, or the two between which held-out labels decide."""
        if self.C != "auto" or self.solver != "auto":
            return (self.C,)
        if labels.min() < 2:
            self._said.append("C is 1: with one label of a class none can be held out.")
            return COSTS[:1]
        return COSTS

    def _tried(self, data, kernels, costs):
        """Fit by C and kernel; return solver, model, and the `Comparison` of a guard, or None."""
        two, several = self.classes_.size == 2, len(costs) * len(kernels) > 1
        solvers = {
            (C, kernel): self._solver(data.X, kernel, C, two)
            for C, kernel in itertools.product(costs, kernels)
        }
        models = {pair: safe.on_codes(solver, self.classes_) for pair, solver in solvers.items()}
        if several and not two:  # where fits take longest the shares are asked for once
            shares = safe.with_shares(models[costs[0], kernels[-1]], data).balance
            models = {pair: model.set_params(balance=shares) for pair, model in models.items()}
        found = {}
        for number, (pair, model) in enumerate(models.items(), 1):
            compared = None
            if self.verbose and self.guard:
                shown = "kernel {1}, C = {0}".format(*pair)
                print(f"S3VC: machine {number} of {len(models)}, {shown}", flush=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FitWarning)
                if self.guard or several:
                    model = SafeS3VM(estimator=model, random_state=self.random_state)
                    repeats = 2 if two else 1  # each fit of several classes takes longer
                    compared = safe.compare(model, *data, data.codes < 0, n_repeats=repeats)
                else:
                    safe.fitted(model, data)
            found[pair] = solvers[pair], model, compared
        return found

    def _chosen(self, found, n_labels):
        """Choose the C and kernel with which either machine predicts most held-out labels."""
        pairs = list(found)
        if len(pairs) == 1:
            return pairs[0]
        costs, kernels = (tuple(dict.fromkeys(values)) for values in zip(*pairs, strict=True))
        right = {pair: found[pair][1].cv_right_ for pair in pairs}
        if np.isnan(right[pairs[0]]).all():
            for name, values in (("C", costs), ("The kernel", kernels)):
                if len(values) > 1:
                    first = values[0] if isinstance(values[0], str) else f"{values[0]:g}"
                    self._said.append(
                        f"{name} is {first}: without unlabeled rows no label is held out."
                    )
            return pairs[0]
        # Of equal ones `max` takes the first, which is linear.
        best = [max(((C, k) for k in kernels), key=lambda pair: right[pair].max()) for C in costs]
        taken = best[0]
        if len(costs) > 1:
            few, many = (right[pair].max() for pair in best)
            needed = LEAD * np.sqrt(1 + n_labels - few)
            taken = best[int(many - few >= needed)]
            self._said.append(
                f"C is {taken[0]:g}: of {n_labels} held-out labels the machine predicts {few:g} "
                f"with C = {costs[0]:g} and {many:g} with C = {costs[1]:g}, which needs "
                f"{needed:.1f} more."
            )
        if len(kernels) > 1:
            shown = ", ".join(
                f"{own:g} with {kernel} ({plain:g} without unlabeled rows)"
                for (C, kernel), (plain, own) in right.items()
                if C == taken[0]
            )
            self._said.append(
                f"The kernel is {taken[1]}: of {n_labels} held-out labels the machine predicts "
                f"{shown}."
            )
        return taken

    def _solver(self, X, kernel, C, two):
        """Return the solver with its parameters, not fitted."""
        mine = {
            "C": C if C == "auto" else float(C),
            "C_star": self.C_star,
            "kernel": kernel,
            "gamma": self.gamma,
            "balance": self.balance,
            "random_state": self.random_state,
        }
        solver = self.solver
        if solver == "auto":
            large = X.shape[0] > LARGEST_KERNEL and kernel not in ("linear", "precomputed")
            solver = FRS3VM() if large else QNS3VM(reconsider=two, balance_tol=SHARE_TOL, **QUICK)
        elif self.kernel == "auto":  # chosen with the solver
            del mine["kernel"]
        given, default = solver.get_params(), type(self)().get_params()
        if self.solver != "auto":
            mine = {name: value for name, value in mine.items() if value != default[name]}
        for name in mine.keys() - given.keys() - {"kernel", "random_state"}:
            raise ValueError(
                f"{name} must be {default[name]!r} with solver={type(solver).__name__}, which has "
                f"no parameter {name}, got {mine[name]!r}"
            )
        changed = {name: value for name, value in mine.items() if name in given}
        return clone(solver).set_params(**changed)

    # What is said --------------------------------------------------------------------------------

    def _report_shares(self, codes, weight):
        """Report the shares that the solver was given, and those of the labels."""
        model = self.model_
        while hasattr(model, "pool_"):
            if not model.pool_:
                break
            model = model.pool_[0].model
        self.class_ratio_ = getattr(model, "class_ratio_", None)
        if self.class_ratio_ is not None:
            labeled = codes >= 0
            counts = np.bincount(codes[labeled], None if weight is None else weight[labeled])
            shown = ", ".join(
                f"{name} {share:.1%} (labels: {n / counts.sum():.1%})"
                for name, share, n in zip(
                    self.classes_.tolist(), self.class_ratio_, counts, strict=True
                )
            )
            self._said.append(f"Shares of the classes among the unlabeled rows: {shown}.")

    def _say_gap(self, X, codes, weight):
        """Report whether the outputs of the solver's machine fall into two groups."""
        model = self.model_.pool_[0].model if getattr(self.model_, "pool_", None) else self.model_
        unlabeled = np.flatnonzero(codes < 0 if weight is None else (codes < 0) & (weight > 0))
        if self.classes_.size > 2 or not unlabeled.size or not hasattr(model, "decision_function"):
            return
        f = np.asarray(model.decision_function(X[unlabeled]), dtype=float)
        weight = None if weight is None else weight[unlabeled]
        share = float(np.average(f > 0, weights=weight))
        if not 0 < share < 1 or np.ptp(f) == 0:
            return
        found = separation(f, share, weight)
        normal = np.random.RandomState(0).standard_normal(20_000)
        expected = separation(normal, share)
        word = "fall into two groups" if found > max(expected, 0.0) else "show no gap"
        self._said.append(
            f"The outputs on the unlabeled rows {word} (separation {found:.2f}; one normal "
            f"distribution, cut at the same share, has {expected:.2f})."
        )

    def summary(self) -> str:
        """Say what was chosen, and give the numbers behind it.

        Returns
        -------
        str
            One sentence per line.
        """
        check_is_fitted(self)
        return "\n".join(self._said)

    # What is predicted ---------------------------------------------------------------------------

    def _frozen(self):
        """Return the machine that predicts, not fitted, with what was chosen as numbers."""
        model = self.model_
        solver = safe.on_codes(self.solver_, self.classes_)
        if self.class_ratio_ is not None:
            solver.set_params(balance=dict(enumerate(self.class_ratio_.tolist())))
        if not self.guard or model.taken_ == "estimator":
            return solver
        if model.taken_ == "supervised":
            return clone(model.baseline_)
        return clone(model).set_params(estimator=solver, n_folds=None)

    def _rows(self, X):
        check_is_fitted(self)
        X = checked_new_rows(self, X, [np.float64])
        return X if self.scaler_ is None else self.scaler_.transform(X)

    @with_threads
    def decision_function(self, X: Rows) -> np.ndarray:
        """Return the outputs of the machine that was taken; positive means ``classes_[1]``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows; with a precomputed kernel the kernel values between them and all training rows.

        Returns
        -------
        ndarray of shape (m,), or (m, n_classes) with more than two classes
        """
        X = self._rows(X)
        return self.model_.decision_function(X)

    @with_threads
    def predict(self, X: Rows) -> np.ndarray:
        """Predict the class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows, as in `decision_function`.

        Returns
        -------
        ndarray of shape (m,)
        """
        X = self._rows(X)
        return self.classes_[np.asarray(self.model_.predict(X))]

    @_IfProbability
    def predict_proba(self, X: Rows) -> np.ndarray:
        """Return the probability of each class; only with ``probability=True``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows, as in `decision_function`.

        Returns
        -------
        ndarray of shape (m, n_classes)
            Columns in the order of ``classes_``; rows sum to one.

        Raises
        ------
        NotFittedError
            Where ``probability`` was False in the last fit.
        """
        X = self._rows(X)
        if self._calibrated is None:
            raise NotFittedError(
                "predict_proba needs a fit with probability=True, got one with False; fit again"
            )
        return self._calibrated.predict_proba(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        solver = QNS3VM() if isinstance(self.solver, str) else self.solver
        tags.input_tags.sparse = get_tags(solver).input_tags.sparse
        tags.input_tags.pairwise = self._precomputed
        return tags
