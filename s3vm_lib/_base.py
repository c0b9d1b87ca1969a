"""What all estimators share: validation, weights, one-vs-rest, balance and prediction.

Unlabeled rows have ``y == -1``, as everywhere in scikit-learn; any other values are the classes.
The labels −1 and +1 of the formulas exist only inside: a solver sees ``t`` with entries +1, −1
and 0, where 0 means unlabeled.
"""

import dataclasses
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Self,
    TypeVar,
    dataclass_transform,
    get_args,
)

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from s3vm_lib._limits import (
    COEF0,
    COUNT,
    DEGREE,
    SCALE,
    SHAPE,
    SIGMA,
    TOL,
    WEIGHT,
    check_kernel,
    check_reach,
    check_size,
    checked_gram,
    require_finite,
    require_finite_outputs,
)
from s3vm_lib._plain import checked_new_rows, checked_rows_and_labels, parameters_hold
from s3vm_lib._threads import MOST, in_threads, thread_count, using, with_threads
from s3vm_lib.kernels import KERNELS, Kernel, resolve_gamma
from s3vm_lib.labels import Labels, mark_missing, missing_entries, plain, split_labels
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.row_blocks import doubles, is_mapped, row_slices, sized_slices

if TYPE_CHECKING:  # scikit-learn has no types, and a base without types would allow any parameter

    class BaseEstimator:
        def __getattr__(self, name: str) -> Any: ...

    class ClassifierMixin:
        pass
else:
    from sklearn.base import BaseEstimator, ClassifierMixin

Rows = ArrayLike | sp.spmatrix | sp.sparray

_Method = TypeVar("_Method", bound=Callable)


def _typed(context) -> Callable[[_Method], _Method]:
    """A decorator that a type checker sees through."""
    return context


# What `fit` goes through first; the second also checks the parameters of estimators inside.
validated = _typed(_fit_context(prefer_skip_nested_validation=True))
validated_inside = _typed(_fit_context(prefer_skip_nested_validation=False))


N_JOBS = [
    Interval(Integral, 1, MOST, closed="both"),
    Interval(Integral, -MOST, -1, closed="both"),
    None,
]
_DELAY = 1.0  # seconds before a line of progress appears
_ROWS = 2**16  # rows of a linear model that are converted at once


class Training(NamedTuple):
    """Validated training data, rows of weight zero left out."""

    X: np.ndarray  # (n, d), dense or CSR; (n, n) Gram matrix with kernel="precomputed"
    rows: np.ndarray  # indices of these rows in the X that was given, (n,)
    codes: np.ndarray  # class index of each row, −1 where unlabeled, (n,)
    sample_weight: np.ndarray  # weights as given, (n,)
    loss_weight: np.ndarray  # weights times class weights, (n,)
    kernel: Kernel
    n_classes: int


class BinaryFit(NamedTuple):
    """What a solver reports of one two-class problem.

    What only one method knows travels in ``extra``. Names with a trailing underscore become
    attributes of the estimator: one value, or with several problems an array of numbers or a list.
    """

    dual: np.ndarray | None  # coefficients of k(x_i, ·) on the training rows, (n,)
    coef: np.ndarray | None  # weights of a linear model, (d,)
    intercept: float
    outputs: np.ndarray  # f(x_i) + b on the training rows, NaN where not computed, (n,)
    objective: float
    n_iter: int
    status: str
    history: list
    extra: dict | None = None


@contextmanager
def unchanged_on_error(estimator):
    """Give an estimator the attributes back that it had, where what is done within fails."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException as error:
        vars(estimator).clear()
        vars(estimator).update(before)
        # Ctrl-C while numba makes arrays of a compiled function's results.
        if isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise


@contextmanager
def released(shared):
    """What the two-class problems of a fit share, and the end of it: files that it has are closed.

    An error keeps what it has passed through alive, so that nothing would be closed by itself.
    """
    try:
        yield shared
    finally:
        if hasattr(shared, "close"):
            shared.close()


def checked_input(estimator, X, y, sample_weight=None, unlabeled_mask=None):
    """The arguments of ``fit``, checked; sets ``classes_`` and ``n_features_in_``.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n, d)
        The n × n Gram matrix where the estimator takes one.
    codes : ndarray of int, shape (n,)
        Class index of each row, −1 where unlabeled.
    weight : ndarray of shape (n,), or None as ``sample_weight``
    """
    y = mark_missing(y, unlabeled_mask)
    dtype = accepted(estimator, X)
    X, y = checked_rows_and_labels(estimator, X, y, dtype, least=2)
    X = checked_rows(X, getattr(estimator, "_precomputed", False))
    codes, estimator.classes_ = split_labels(y, unlabeled_mask)
    if sample_weight is not None:
        sample_weight = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
    return X, codes, sample_weight


def accepted(estimator, X):
    """The types of numbers that an estimator takes as they are.

    Some leave single precision alone in a memory map too, where a copy is what nobody wants; they
    convert it block by block.
    """
    dtypes = getattr(estimator, "_dtype", [np.float64])
    if getattr(estimator, "_reads_maps", False) and is_mapped(X) and not estimator._precomputed:
        return [*dtypes, np.float32]
    return dtypes


def checked_rows(X, precomputed=False):
    """The rows, of numbers whose squares are numbers; or a Gram matrix that is one."""
    check_size(X)
    if not precomputed:
        return X
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X must be the square Gram matrix when kernel='precomputed', got shape {X.shape}"
        )
    if sp.issparse(X):
        raise ValueError("X must be dense when kernel='precomputed', got a sparse matrix")
    return checked_gram(X)


def checked_labeled_loss(loss, names):
    """The `LabeledLoss` that a parameter of an estimator names or is.

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


# --- Linear models --------------------------------------------------------------------------------


def centered(X, kernel):
    """Dense rows of a linear kernel without their mean: with Σβ = 0 a shift moves only b.

    What is far from 0 would lose its digits in products.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    kernel : Kernel

    Returns
    -------
    X : ndarray or CSR matrix of shape (n, d)
        As given where the rows are sparse, or the kernel is another one.
    center : ndarray of shape (d,), or None
        What was subtracted.
    """
    if kernel.name != "linear" or sp.issparse(X) or not len(X):
        return X, None
    center = X.mean(axis=0)
    return X - center, center


def linear_model(kernel, dual, X, b, center=None):
    """Weights and offset of the linear model Σ_i β_i k(x_i, ·) + b.

    Parameters
    ----------
    kernel : Kernel
    dual : ndarray of shape (n,)
        Coefficients β.
    X : ndarray or CSR matrix of shape (n, d)
        Rows as they were given.
    b : float
        Offset where rows are `centered`.
    center : ndarray of shape (d,), default=None

    Returns
    -------
    coef : ndarray of shape (d,), or None with another kernel
    b : float
        Offset for rows as they were given.
    """
    if kernel.name != "linear":
        return None, b
    coef = kernel.sigma_f**2 * (dual @ X)
    return coef, b if center is None else b - coef @ center


# --- The estimator base ---------------------------------------------------------------------------


class SemiSupervisedMixin(ClassifierMixin):
    """A score that leaves unlabeled rows out, and a warning where a fit has none."""

    def score(self, X: Rows, y: Labels, sample_weight: ArrayLike | None = None) -> float:
        """Share of right predictions on the labeled rows.

        Rows whose label is missing or −1 are left out, so that the default of scikit-learn's
        cross-validation is right with partly labeled data; −1 counts where it is a class of the
        model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows, as in `predict`.
        y : array-like of shape (m,)
            Labels.
        sample_weight : array-like of shape (m,), default=None
            Weights of the rows.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If no row is labeled.
        """
        check_is_fitted(self)
        labels = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None).ravel()
        unlabeled = missing_entries(labels)
        if -1 not in self.classes_.tolist():
            unlabeled[~unlabeled] = labels[~unlabeled] == -1
        if not unlabeled.any():
            return super().score(X, y, sample_weight)
        if unlabeled.all():
            raise ValueError("y must hold at least one labeled row, all labels are -1 or missing")
        rows = np.flatnonzero(~unlabeled)
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return super().score(_safe_indexing(X, rows), plain(labels[rows]), weight)

    def _warn_of_no_unlabeled(self, codes):
        """−1 becomes a class like others in tools that number the labels again, without a word."""
        if not np.any(codes < 0):
            warnings.warn(
                f"y holds no unlabeled rows (-1): {type(self).__name__} learns from labels alone. "
                "Inside a meta-estimator that encodes labels -1 has become a class: use "
                "s3vm_lib.model_selection.WithUnlabeled there. If no row is meant to be unlabeled, "
                "say so by unlabeled_mask",
                UserWarning,
                stacklevel=5,
            )


@dataclass_transform(kw_only_default=True, eq_default=False)
def parameters(cls: type) -> type:
    """Make the annotated fields of a class the parameters of its constructor, given by name.

    As scikit-learn wants it, the constructor stores what it is given, and nothing else.
    """
    return dataclass(kw_only=True, eq=False, repr=False)(cls)


@parameters
class KernelParameters:
    """The kernel of an estimator."""

    kernel: Literal["linear", "poly", "rbf", "laplacian", "precomputed"] = "rbf"
    gamma: Literal["scale", "auto"] | float = "scale"
    degree: int = 3
    coef0: float = 0.0
    sigma_f: float = 1.0


@parameters
class BaseMachine(BaseEstimator):
    """What classifiers and regressors share: checks, kernels, attributes, outputs, reports."""

    C: float = 1.0
    n_jobs: int | None = None
    verbose: int = 0
    callback: Callable | None = None

    _kernel_constraints = {
        "C": [WEIGHT],
        "kernel": [StrOptions(set(KERNELS))],
        "gamma": [StrOptions({"scale", "auto"}), SCALE],
        "degree": [DEGREE],
        "coef0": [COEF0],
        "sigma_f": [SIGMA],
        "tol": [TOL],
        "max_iter": [COUNT],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
        "callback": [callable, None],
    }
    _dtype = [np.float64]  # dtypes that are kept; others become the first
    _reads_maps = False  # whether memory maps in single precision are kept too
    _kept = None  # what a `Preparation` keeps from fit to fit: name to (key, value)

    def _validate_params(self):
        """scikit-learn's check of the parameters, asked for its words where one is wrong."""
        if not parameters_hold(self):
            super()._validate_params()

    def _warn_of_limits(self, fits):
        """A warning, at the line that called `fit`, when a solver met its limit."""
        if any(fit.status == "max_iter" for fit in fits):
            warnings.warn(
                f"{type(self).__name__} stopped after max_iter={self._limit} iterations without "
                "reaching tol; increase max_iter, scale the data or relax tol",
                ConvergenceWarning,
                stacklevel=5,
            )
        if any(fit.status == "stalled" for fit in fits):
            warnings.warn(
                f"{type(self).__name__} stopped where rounding lets no step make progress, before "
                f"tol={self.tol} was reached: scale the data, or take less extreme parameters",
                ConvergenceWarning,
                stacklevel=5,
            )

    @property
    def _limit(self):
        """The ``max_iter`` of `_warn_of_limits`, wherever an estimator keeps it."""
        return self.max_iter

    def _check_scales(self, data):
        """Refuse kernel values and weights whose products overflow."""
        check_reach(
            float(getattr(self, "C", 1.0)), data.loss_weight, check_kernel(data.kernel, data.X)
        )

    def _check_result(self):
        """Refuse a model that is not finite."""
        found = vars(self)
        names = ["intercept_", "coef_", "dual_coef_"]
        if getattr(self, "transduce", True):  # without it J is not computed
            names.append("objective_")
        require_finite(type(self).__name__, *(found.get(name) for name in names))

    def _training(self, X, codes, weight, classes):
        """Drop rows of weight zero, apply class weights, resolve gamma."""
        kept = np.flatnonzero(weight > 0)
        present = np.bincount(codes[kept] + 1, minlength=classes.size + 1)[1:]
        if not present.all():
            missing = np.flatnonzero(present == 0)
            raise ValueError(
                "sample_weight leaves no labeled row of the class"
                f"{'' if missing.size == 1 else 'es'} {classes[missing].tolist()}"
            )
        if kept.size < weight.size:
            X = X[kept]
            if self._precomputed:
                X = X[:, kept]
            codes, weight = codes[kept], weight[kept]
        if sp.issparse(X):
            X = sp.csr_matrix(X)
            X.sort_indices()
        loss_weight = weight * self._class_weights(codes, weight, classes)
        kernel = self._resolve_kernel(X, weight)
        return Training(X, kept, codes, weight, loss_weight, kernel, classes.size)

    def _resolve_kernel(self, X, weight, sigma_f=None):
        """The kernel with the number that ``gamma`` stands for on these rows."""
        if not hasattr(self, "kernel"):
            return Kernel("linear")
        sigma_f = self.sigma_f if sigma_f is None else sigma_f
        if self.kernel in ("linear", "precomputed"):
            # Neither has a scale; gamma="scale" would cost a pass over the data.
            return Kernel(self.kernel, sigma_f=sigma_f if self.kernel == "linear" else 1.0)
        gamma = resolve_gamma(self.gamma, X, weight)
        return Kernel(self.kernel, gamma, self.degree, float(self.coef0), float(sigma_f))

    def _class_weights(self, codes, weight, classes):
        """Factor of each row; 1 on unlabeled rows."""
        factor = np.ones(codes.size)
        if getattr(self, "class_weight", None) is None:
            return factor
        labeled = codes >= 0
        if isinstance(self.class_weight, str):
            mass = np.bincount(codes[labeled], weights=weight[labeled], minlength=classes.size)
            per_class = mass.sum() / (classes.size * mass)
        else:
            unknown = [c for c in self.class_weight if c not in classes.tolist()]
            if unknown:
                raise ValueError(
                    f"class_weight names {unknown}, which are not among the classes "
                    f"{classes.tolist()}"
                )
            per_class = np.array([float(self.class_weight.get(c, 1.0)) for c in classes.tolist()])
            if np.any(per_class <= 0) or not np.all(np.isfinite(per_class)):
                raise ValueError(f"class_weight must be positive, got {self.class_weight}")
        factor[labeled] = per_class[codes[labeled]]
        return factor

    @property
    def _precomputed(self):
        return getattr(self, "kernel", "linear") == "precomputed"

    def _store(self, data, problems, fits):
        """Set the fitted attributes from the two-class problems."""
        self._store_model(data.rows, data.X, problems, fits)

    def _store_model(self, rows, X, problems, fits):
        """Attributes of a model on the rows X, ``rows`` of those that were given.

        Support vectors are not stored where X is None.
        """
        for name in ("dual_coef_", "support_", "support_vectors_", "coef_"):
            self.__dict__.pop(name, None)  # of an earlier fit, perhaps with another kernel
        self.intercept_ = np.array([fit.intercept for fit in fits], dtype=float)
        if fits[0].dual is not None:
            dual = np.array([fit.dual for fit in fits])
            used = np.flatnonzero(np.any(dual != 0, axis=0))
            self.support_ = rows[used]
            self.dual_coef_ = dual[:, used]
            if X is not None and not self._precomputed:
                self.support_vectors_ = self._again(
                    "support",
                    used.tobytes(),
                    lambda: doubles(X[used]) if self._reads_maps else X[used],
                )
        if fits[0].coef is not None:
            self.coef_ = np.array([fit.coef for fit in fits])
        single = len(fits) == 1
        self.problem_ = problems[0] if single else problems
        self.objective_ = fits[0].objective if single else np.array([f.objective for f in fits])
        self.history_ = fits[0].history if single else [fit.history for fit in fits]
        self.n_iter_ = int(max(fit.n_iter for fit in fits))
        self.termination_condition_ = fits[0].status if single else [fit.status for fit in fits]
        for name in filter(lambda name: name.endswith("_"), fits[0].extra or ()):
            values = [fit.extra[name] for fit in fits]
            numbers = np.array(values) if isinstance(values[0], float) else values
            setattr(self, name, values[0] if single else numbers)

    def _again(self, name, key, make):
        """``make()``, or what it was in the last fit of a `Preparation`, if that had this key."""
        if self._kept is None:
            return make()
        if name not in self._kept or self._kept[name][0] != key:
            self._kept[name] = key, make()
        return self._kept[name][1]

    def _outputs(self, X):
        """f(x) + b of every two-class problem, shape (m, n_problems)."""
        if hasattr(self, "coef_"):
            if self._reads_maps and X.dtype == np.float32:  # never all of it in double precision
                blocks = [doubles(X[s]) @ self.coef_.T for s in row_slices(X.shape[0], _ROWS)]
                return np.concatenate(blocks) + self.intercept_
            return np.asarray(X @ self.coef_.T) + self.intercept_
        dual = np.atleast_2d(self.dual_coef_)  # one row where there is one target
        # The kernel that was fitted with, whatever set_params has changed since.
        problem = self.problem_[0] if isinstance(self.problem_, list) else self.problem_
        kernel = problem.kernel
        if kernel.name == "precomputed":
            return X[:, self.support_] @ dual.T + self.intercept_

        slices = sized_slices(X.shape[0], self.support_.size)

        def values(b):
            return kernel.gram(doubles(X[b]), self.support_vectors_)

        def block(b):
            if len(slices) > 1:
                return values(b) @ dual.T
            return self._again("values", self.support_.tobytes(), lambda: values(b)) @ dual.T

        return np.concatenate(in_threads(block, slices)) + self.intercept_

    @contextmanager
    def _progress(self, unit, total=None):
        """A line on stderr that rewrites itself and says how much time is left, with ``verbose``.

        It appears where something takes more than a second. Yields a function of what is done so
        far, and perhaps of the total; None without ``verbose``.
        """
        if not self.verbose:
            yield None
            return
        from tqdm import tqdm

        options = {"desc": type(self).__name__, "unit": f" {unit}", "leave": False}
        with tqdm(total=total, delay=_DELAY, **options) as bar:

            def tick(done, total=None):
                bar.total = total or bar.total
                bar.update(done - bar.n)

            yield tick

    @contextmanager
    def _reporting(self, unit, total):
        """The callback of a solver: it reports the numbers of a stage, and a line counts stages."""
        with self._progress(unit, total) as tick:
            done = 0

            def callback(stage, *_):
                nonlocal done
                done += 1
                if tick is not None:
                    tick(min(done, total))
                fields = stage._asdict().items()
                return self._report({k: v for k, v in fields if isinstance(v, Real)})

            yield callback

    def _report(self, state):
        """Progress of a solver: print with ``verbose``, hand on to ``callback``."""
        if self.verbose:
            from tqdm import tqdm

            line = ", ".join(f"{k} {v:.6g}" for k, v in state.items())
            tqdm.write(f"{type(self).__name__}: {line}")  # beside a bar, where there is one
        return bool(self.callback(state)) if self.callback is not None else False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._precomputed
        tags.input_tags.pairwise = self._precomputed
        return tags


# Estimators of class shares by name, (data, C) -> shares. `class_ratio`, which stands above this
# module, enters them; it is imported when one is asked for, so that nobody else pays for it.
RATIO_RULES: dict[str, Callable] = {}
Balance = (
    Literal[
        "auto", "labels", "posterior", "powered", "bbse", "em", "separation", "objective", "gap"
    ]
    | float
    | dict
    | None
)
BALANCE = [
    StrOptions(set(get_args(get_args(Balance)[0]))),
    Interval(Real, 0, 1, closed="neither"),
    dict,
    None,
]


def label_shares(data):
    """Share of each class among the labeled rows, by weight, shape (n_classes,)."""
    labeled = data.codes >= 0
    mass = np.bincount(data.codes[labeled], data.sample_weight[labeled], data.n_classes)
    return mass / mass.sum()


def _copies(shared, count):
    """What two-class problems share, once for each that is solved beside others, or None."""
    if type(shared) is not tuple:
        return [shared] * count
    grams = [part for part in shared if hasattr(part, "apart")]
    if any(gram.rows is not None for gram in grams):
        return None  # its rows are computed by whoever is the first to visit them
    return [
        tuple(part.apart() if hasattr(part, "apart") else part for part in shared)
        for _ in range(count)
    ]


def _positives(data):
    """The class that is positive in each two-class problem."""
    return [1] if data.n_classes == 2 else range(data.n_classes)


@parameters
class BaseS3VM(SemiSupervisedMixin, BaseMachine):
    """Validation, labels, one-vs-rest and prediction; subclasses add ``_fit_binary``.

    A subclass implements ``_prepare(data)``, which returns whatever its two-class problems share
    (a Gram matrix, a factorization), ``_problem(data, ratio)``, which says what is minimized, and
    ``_fit_binary(data, shared, t, problem, index)``, which returns a `BinaryFit`. A fit that raises
    leaves the estimator as it was.
    """

    class_weight: Literal["balanced"] | dict | None = None

    _wants_unlabeled = True
    # Whether `_fit_binary` changes nothing but a `Gram`, so that classes may be fitted at once.
    _side_by_side = False
    # Parameters that neither the checks of the rows nor `_prepare` read: see `Preparation`.
    _late = frozenset()
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
            True for unlabeled rows. With it −1 is a label like any other, and what ``y`` says of
            the unlabeled rows is ignored.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            When fewer than two classes are labeled, or when a parameter or an input is not valid.
        """
        with unchanged_on_error(self), using(self.n_jobs):
            return self._fit(X, y, sample_weight, unlabeled_mask)

    def _fit(self, X, y, sample_weight, unlabeled_mask):
        X, codes, data = self._validated(X, y, sample_weight, unlabeled_mask)
        if self._wants_unlabeled and unlabeled_mask is None:
            self._warn_of_no_unlabeled(codes)
        with released(self._prepare(data)) as shared:
            fits = self._fit_prepared(data, shared, self._ratios(data))[1]
        self._transduce(X, codes, data.rows, fits)
        self._warn_of_limits(fits)
        return self

    def _fit_prepared(self, data, shared, ratios):
        """The part of a fit that the parameters in ``_late`` have an influence on."""
        problems, fits = self._solve_all(data, shared, ratios)
        self._store(data, problems, fits)
        self._check_result()
        return problems, fits

    def _easier(self, problem, index):
        """The earlier problem, with its fit, that is this one but for a smaller C*, or None."""
        if self._previous is not None:
            earlier, fit = (part[index] for part in self._previous)
            same = dataclasses.replace(earlier, C_star=problem.C_star) == problem
            if same and earlier.C_star <= problem.C_star:
                return earlier, fit
        return None, None

    def _validated(self, X, y, sample_weight, unlabeled_mask):
        """The checked rows, the codes of all of them, and the `Training` of those with weight."""
        X, codes, weight = checked_input(self, X, y, sample_weight, unlabeled_mask)
        if weight is None:
            weight = np.ones(codes.size)
        data = self._training(X, codes, weight, self.classes_)
        self._check_scales(data)
        self.gamma_ = data.kernel.gamma
        return X, codes, data

    def _solve_all(self, data, shared, ratios):
        """Problem and `BinaryFit` of each two-class problem; ``ratios`` has one entry for each."""
        problems = [self._problem(data, ratio) for ratio in ratios]

        def one(index, k, shared=shared):
            t = np.where(data.codes == k, 1.0, -1.0)
            t[data.codes < 0] = 0.0
            return self._fit_binary(data, shared, t, problems[index], index)

        pairs = list(enumerate(_positives(data)))
        # What looks on from outside is called by one thread, in the order of the classes.
        alone = not self._side_by_side or self.verbose or self.callback is not None
        if alone or thread_count() == 1 or (copies := _copies(shared, len(pairs))) is None:
            return problems, [one(*pair) for pair in pairs]
        return problems, in_threads(lambda pair: one(*pair, copies[pair[0]]), pairs)

    def _ratios(self, data):
        """Share r of positives of each two-class problem, or None without balance."""
        if not hasattr(self, "balance"):
            return [None for _ in _positives(data)]
        unused = self.balance is None or not np.any(data.codes < 0)
        self.class_ratio_ = None if unused else self._shares(self.balance, data)
        return [None if unused else float(self.class_ratio_[k]) for k in _positives(data)]

    def _shares(self, balance, data):
        """Share of every class among the unlabeled rows, shape (n_classes,)."""
        classes = self.classes_.tolist()
        if isinstance(balance, str):
            if balance == "labels" or getattr(self, "C_star", None) == 0:
                return label_shares(data)
            if balance not in RATIO_RULES:
                importlib.import_module("s3vm_lib.class_ratio")
            return RATIO_RULES[balance](data, float(self.C))
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
                f"got {balance}: one number cannot say the share of every class"
            )
        return np.array([1.0 - balance, balance])

    def _penalties(self, data):
        """(C, C*): the default C* gives the labeled and the unlabeled part equal total weight."""
        unlabeled = data.codes < 0
        mass = data.sample_weight[unlabeled].sum()
        if mass == 0:
            return float(self.C), 0.0
        if self.C_star is None:
            return float(self.C), float(self.C * data.sample_weight[~unlabeled].sum() / mass)
        return float(self.C), float(self.C_star)

    def _transduce(self, X, codes, rows, fits):
        """A label for every training row: its own, or the one that the fit gave it."""
        outputs = np.full((codes.size, len(fits)), np.nan)
        outputs[rows] = np.column_stack([fit.outputs for fit in fits])
        unknown = np.flatnonzero(np.isnan(outputs[:, 0]))
        if unknown.size:
            outputs[unknown] = self._outputs(X[unknown])
        found = self._decide(outputs)
        self.transduction_ = self.classes_[np.where(codes >= 0, codes, found)]

    @staticmethod
    def _decide(outputs):
        if outputs.shape[1] == 1:
            return (outputs[:, 0] > 0).astype(int)
        return np.argmax(outputs, axis=1)

    @with_threads
    def decision_function(self, X: Rows) -> np.ndarray:
        """Outputs f(x) + b; positive means ``classes_[1]``.

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
        """Class of each row.

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
        self._X, self._codes, self._data = estimator._validated(X, y, sample_weight, unlabeled_mask)
        self._shared = estimator._prepare(self._data)
        self._last, self._ratios, self._kept, self._asked = None, {}, {}, None

    def fit(self, transduce=True, go_on=False, sample_weight=None, **settings):
        """The model of ``clone(estimator).set_params(**settings).fit(X, y, ...)``.

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
        """``predict`` of the last model; its kernel values stay for one with the same support."""
        if X is not self._asked:
            self._kept.pop("values", None)
            self._asked = X
        self.estimator._kept = self._kept
        try:
            return self.estimator.predict(X)
        finally:
            del self.estimator._kept

    def warn_of_limits(self):
        """The warning of ``fit``, where the solver met its limit in the last one."""
        self.estimator._warn_of_limits(self._last[1])

    def _known_ratios(self, model):
        """The ratios, estimated once: they depend on the rows, the kernel, ``balance`` and C."""
        if not hasattr(model, "balance"):
            return model._ratios(self._data)
        key = repr(model.balance), model.C, getattr(model, "C_star", None) == 0
        if key not in self._ratios:
            self._ratios[key] = model._ratios(self._data), model.class_ratio_
        ratios, model.class_ratio_ = self._ratios[key]
        return ratios


def capabilities(estimators: Iterable[type]) -> list[dict[str, Any]]:
    """What each estimator class can do, read off its tags, parameters and methods.

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
