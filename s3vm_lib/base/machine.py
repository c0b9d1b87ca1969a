"""What classifiers and regressors share: training data, fitted attributes, outputs, reports."""

import copy
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from s3vm_lib.base.findings import warn
from s3vm_lib.kernels import Kernel, resolve_gamma
from s3vm_lib.utils.labels import Labels, listed, plain, rows_without_score
from s3vm_lib.utils.limits import (
    Verbosity,
    Weight,
    check_kernel,
    check_reach,
    require_finite,
    scaling,
    without_client,
)
from s3vm_lib.utils.row_blocks import doubles, row_slices, sized_slices
from s3vm_lib.utils.shortcuts import parameters_hold
from s3vm_lib.utils.threads import in_threads
from s3vm_lib.utils.validation import Jobs, Rows, parameters

if TYPE_CHECKING:  # scikit-learn has no types, and a base without types would allow any parameter

    class BaseEstimator:
        def __getattr__(self, name: str) -> Any: ...

    class ClassifierMixin:
        pass
else:
    from sklearn.base import BaseEstimator, ClassifierMixin

_DELAY = 1.0  # seconds before a line of progress appears
_STEEP = 1e-3  # gradients of means, from which on an end without a step is none
_WIDE = 0.01  # share of J from which on a gap that rounding leaves is worth a warning
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

    What only one method reports is in ``extra``. Names with a trailing underscore become
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

    @classmethod
    def of(cls, solution, dual, coef, intercept, outputs, extra=None):
        """Report a solution: what its solver counts, and the model on the training rows."""
        objective, n_iter, status = solution.objective, solution.n_iter, solution.status
        history = list(solution.history)
        return cls(dual, coef, intercept, outputs, objective, n_iter, status, history, extra)


class _NoProbabilities:
    """A method that an estimator does not have, and the advice which one has it."""

    def __get__(self, instance, owner):
        raise AttributeError(
            f"{owner.__name__} has no predict_proba: use "
            "s3vm_lib.calibration.CalibratedS3VM(estimator), which makes probabilities of outputs"
        )


class SemiSupervisedMixin(ClassifierMixin):
    """A score that leaves unlabeled rows out, and a warning where a fit has none."""

    predict_proba: Any = _NoProbabilities()
    __metadata_request__score = {"unlabeled_mask": True}  # where scikit-learn routes it

    def score(
        self,
        X: Rows,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        unlabeled_mask: ArrayLike | None = None,
    ) -> float:
        """Return the share of right predictions on the labeled rows.

        Rows whose label is missing or −1 are left out, so that the default of scikit-learn's
        cross-validation is right with partly labeled data; −1 counts where it is a class of the
        model, and then a mask is needed to leave out rows that hold it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows, as in `predict`.
        y : array-like of shape (m,)
            Labels.
        sample_weight : array-like of shape (m,), default=None
            Weights of the rows.
        unlabeled_mask : array-like of bool, shape (m,), default=None
            True for rows that are left out, whatever their label; all others count. Requested by
            default where scikit-learn routes metadata.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If no row is labeled, or if a row that the mask calls labeled has no label.
        """
        check_is_fitted(self)
        labels, unlabeled = rows_without_score(y, self.classes_, unlabeled_mask)
        if not unlabeled.any():
            return super().score(X, plain(labels), sample_weight)
        if unlabeled.all():
            raise ValueError("y must hold at least one labeled row, all labels are -1 or missing")
        rows = np.flatnonzero(~unlabeled)
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return super().score(_safe_indexing(X, rows), plain(labels[rows]), weight)

    def _warn_of_no_unlabeled(self, codes):
        """Warn where no row is unlabeled: in tools that number labels again −1 becomes a class."""
        if not np.any(codes < 0):
            warnings.warn(
                f"y holds no unlabeled rows (-1): {type(self).__name__} learns from labels alone. "
                f"Its classes are {listed(self.classes_.tolist())}. "
                "Inside a meta-estimator that encodes labels -1 has become a class: use "
                "s3vm_lib.model_selection.WithUnlabeled there. If no row is meant to be unlabeled, "
                "say so by unlabeled_mask",
                UserWarning,
                stacklevel=5,
            )


@parameters
class BaseMachine(BaseEstimator):
    """What classifiers and regressors share: checks, kernels, attributes, outputs, reports."""

    C: Weight = 1.0
    n_jobs: Jobs = None
    verbose: Verbosity = 0
    callback: Callable | None = None

    _dtype = [np.float64]  # dtypes that are kept; others become the first
    _further_limits = ()  # parameters beside max_iter that "max_iter" may be about
    _precise = False  # whether single precision has not sufficed
    _kept = None  # what a `Preparation` keeps from fit to fit: name to (key, value)

    @property
    def _reads_maps(self):
        """Whether memory maps in single precision are kept too."""
        return getattr(self, "client", None) is not None

    def __getstate__(self):
        return without_client(super().__getstate__())

    def __sklearn_clone__(self):
        found = BaseEstimator.__sklearn_clone__(copy.copy(self))
        return found if not hasattr(self, "client") else found.set_params(client=self.client)

    def _validate_params(self):
        """Check the parameters; scikit-learn does it where one is wrong, for its message."""
        if not parameters_hold(self):
            super()._validate_params()

    def _warn_of_limits(self, fits, stacklevel=5, findings=(), X=None):
        """Keep what is wrong with the fits in ``findings_``; warn at the line that called `fit`.

        The warning names the column of X to scale, where X is given.
        """
        found, statuses = {}, {fit.status for fit in fits}
        for fit in fits:
            end = fit.history[-1] if fit.history else None
            steep = fit.status == "no_step" and getattr(end, "gradient_norm", 0.0) > _STEEP
            gap = (fit.extra or {}).get("gap_", 0.0) if fit.status == "inexact" else 0.0
            if steep or gap > _WIDE * fit.objective:
                statuses.add("stalled")
        if statuses & {"max_iter", "stalled"}:
            scale = "scale the data" if X is None or self._precomputed else scaling(X)
        if "max_iter" in statuses:
            limits = {"max_iter": self._limit}
            limits |= {name: getattr(self, name) for name in self._further_limits}
            met = " or ".join(f"{name}={value}" for name, value in limits.items())
            found["limit"] = (
                f"stopped after {met} iterations without reaching tol; "
                f"increase {' or '.join(limits)}, {scale} or relax tol"
            )
        if "stalled" in statuses:
            tol = getattr(self, "tol", "that of polish")
            found["rounding"] = (
                "stopped where rounding lets no step make progress, before "
                f"tol={tol} was reached: {scale}, or take less extreme parameters"
            )
        self.findings_ = {**found, **dict(findings)}
        warn(type(self).__name__, self.findings_, stacklevel)

    @property
    def _kernel_tol(self):
        """The ``tol`` of a `Gram`: 0 asks for double precision."""
        return 0.0 if self._precise else self.tol

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
        present = np.bincount(codes[weight > 0] + 1, minlength=classes.size + 1)[1:]
        if not present.all():
            missing = np.flatnonzero(present == 0)
            raise ValueError(
                "sample_weight leaves no labeled row of the class"
                f"{'' if missing.size == 1 else 'es'} {classes[missing].tolist()}"
            )
        return self._with_weight(X, codes, weight, classes)

    def _with_weight(self, X, codes, weight, classes, kernel=None):
        """Return the `Training` without rows of weight zero; gamma is resolved without a kernel."""
        kept = np.flatnonzero(weight > 0)
        if kept.size < weight.size:
            X = X[kept]
            if self._precomputed:
                X = X[:, kept]
            codes, weight = codes[kept], weight[kept]
        if sp.issparse(X):
            X = sp.csr_matrix(X)
            X.sort_indices()
        loss_weight = weight * self._class_weights(codes, weight, classes)
        kernel = self._resolve_kernel(X, weight) if kernel is None else kernel
        return Training(X, kept, codes, weight, loss_weight, kernel, classes.size)

    def _resolve_kernel(self, X, weight):
        """Return the kernel with the number that ``gamma`` stands for on these rows."""
        if not hasattr(self, "kernel"):
            return Kernel("linear")
        if self.kernel in ("linear", "precomputed"):
            # Neither has a scale; gamma="scale" would cost a pass over the data.
            return Kernel(self.kernel, sigma_f=self.sigma_f if self.kernel == "linear" else 1.0)
        gamma = resolve_gamma(self.gamma, X, weight)
        return Kernel(self.kernel, gamma, self.degree, float(self.coef0), float(self.sigma_f))

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
    def _problems(self):
        """The two-class problems that were solved, as a list."""
        return self.problem_ if isinstance(self.problem_, list) else [self.problem_]

    @property
    def _precomputed(self):
        return getattr(self, "kernel", "linear") == "precomputed"

    def _store(self, data, problems, fits):
        """Set the fitted attributes from the two-class problems."""
        self._store_model(data.rows, data.X, problems, fits)

    def _store_model(self, rows, X, problems, fits):
        """Set the attributes of a model that was fitted to the rows X.

        ``rows`` are their positions among those given to ``fit``. Where X is None, support vectors
        are not stored.
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
        """Return ``make()``, or its value in the last fit of a `Preparation` with this key."""
        if self._kept is None:
            return make()
        if name not in self._kept or self._kept[name][0] != key:
            self._kept[name] = key, make()
        return self._kept[name][1]

    def _outputs(self, X):
        """Return f(x) + b of every two-class problem, shape (m, n_problems)."""
        if hasattr(self, "coef_"):
            if self._reads_maps and X.dtype == np.float32:  # never all of it in double precision
                blocks = [doubles(X[s]) @ self.coef_.T for s in row_slices(X.shape[0], _ROWS)]
                return np.concatenate(blocks) + self.intercept_
            return np.asarray(X @ self.coef_.T) + self.intercept_
        dual = np.atleast_2d(self.dual_coef_)  # one row where there is one target
        # The kernel that was fitted with, whatever set_params has changed since.
        problem = self._problems[0]
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
    def _progress(self, unit, total=None, **options):
        """Show a line on stderr that rewrites itself and has the time left, with ``verbose``.

        It appears where something takes more than a second. Yields a function of what is done so
        far, and perhaps of the total; None without ``verbose``. Options are those of tqdm.
        """
        if not self.verbose:
            yield None
            return
        from tqdm import tqdm

        options = {"leave": False, "delay": _DELAY} | options
        with tqdm(desc=type(self).__name__, unit=f" {unit}", total=total, **options) as bar:

            def tick(done, total=None):
                bar.total = total or bar.total
                bar.update(done - bar.n)

            yield tick

    @contextmanager
    def _reporting(self, unit, total):
        """Make the callback of a solver, which reports a stage; a line counts the stages."""
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
        """Report progress: print it with ``verbose``, hand it on to ``callback``."""
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
