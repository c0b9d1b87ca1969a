"""The regressor `GKMRegressor`."""

import warnings
from collections.abc import Callable
from typing import Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from s3vm_lib._base import Labels, Rows, validated
from s3vm_lib._limits import (
    check_kernel,
    check_reach,
    check_size,
    checked_gram,
    require_finite,
    require_finite_outputs,
)
from s3vm_lib.graph_kernel_machine._common import (
    GRAPH_CONSTRAINTS,
    GraphMachine,
    predictions,
)
from s3vm_lib.graph_kernel_machine._rules import resolve_C_graph, space_radius
from s3vm_lib.graph_kernel_machine._solver import solve_gkm
from s3vm_lib.graphs import CompleteGraph, Graph
from s3vm_lib.kernels import Kernel, resolve_gamma
from s3vm_lib.objective import Problem

_LARGEST = 1e60  # of targets, as of outputs


class GKMRegressor(GraphMachine, RegressorMixin, BaseEstimator):
    """Graph-based semi-supervised kernel machine for real targets, by stochastic gradients.

    Minimizes ::

        J(f, b) = ½‖f‖² + ½b² + C Σ_L s_i ℓ(y_i − m, f(x_i) + b)
                  + (C_graph / |E|) Σ_E μ_ij |f(x_i) − f(x_j)|^p,

    where m is the weighted mean of the known targets, as `GKM` does for classes. Rows whose target
    is not known have y = NaN.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses of labeled rows. The paper's C weights their *mean*: it is C Σ_L s_i.
    C_graph : float, "paper", "theorem" or None, default=None
        Weight of the mean over the edges, see `GKM`.
    labeled_loss : {"epsilon_insensitive", "l1"}, default="epsilon_insensitive"
        Loss of labeled rows.
    epsilon : float, default=0.1
        Half width of the flat part of the epsilon-insensitive loss.
    power : float, default=2.0
        Power p of the differences over edges, p ≥ 1.
    kernel : {"linear", "poly", "rbf", "laplacian", "precomputed"}, default="rbf"
        Kernel function, see `Kernel`.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of rbf, poly and laplacian, see `resolve_gamma`.
    degree : int, default=3
        Degree of the polynomial kernel, at most 30.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, non-negative.
    sigma_f : float, default=1.0
        Output standard deviation: kernels are multiplied by its square.
    graph, n_neighbors, radius, edge_weights, edge_gamma, sampling
        The graph, see `GKM`.
    fit_intercept, projection, precision, tol, max_iter, random_state
        The method, see `GKM`.
    verbose : int, default=0
        Print one line whenever the average is looked at.
    callback : callable, default=None
        Called then with a dict (the fields of ``history_``); a true value stops.

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Rows with a nonzero coefficient.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, d)
        These rows; absent with ``kernel="precomputed"``.
    dual_coef_ : ndarray of shape (n_support,)
        Their coefficients in the averaged function.
    intercept_ : float
        b + m.
    target_mean_ : float
        The weighted mean m of the known targets.
    gamma_ : float
        The kernel coefficient that was used.
    graph_ : Graph or CompleteGraph
        The graph of the rows of positive weight.
    bounds_ : Bounds
        The conditions of Theorem 1 and its constants, see `theorem_bounds`.
    transduction_ : ndarray of shape (n,)
        A target for every training row: its own, or the predicted one. Computed when first asked
        for.
    objective_ : float
        J at the averaged function, computed when first asked for.
    problem_ : Problem
        What was minimized, for targets with m subtracted.
    n_iter_ : int
        Steps T.
    history_ : list
        One `Stretch` per look at the average.
    termination_condition_ : str
        ``"converged"``, ``"max_iter"``, ``"completed"`` or ``"stopped"``, see `GKM`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    GKM : The classifier, with notes on graphs, weights and memory.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import GKMRegressor
    >>> X = np.linspace(0, 3, 31)[:, None]
    >>> y = np.where(np.arange(31) % 5 == 0, np.sin(X[:, 0]), np.nan)
    >>> model = GKMRegressor(C=10.0, C_graph=0.01, random_state=0).fit(X, y)
    >>> bool(np.abs(model.transduction_ - np.sin(X[:, 0])).max() < 0.3)
    True
    """

    _parameter_constraints = {
        **{name: rule for name, rule in GRAPH_CONSTRAINTS.items() if name != "tau"},
        "sigma_f": GRAPH_CONSTRAINTS["sigma_f"][:1],
        "labeled_loss": [StrOptions({"epsilon_insensitive", "l1"})],
    }
    tau = None

    def __init__(
        self,
        *,
        C: float = 1.0,
        C_graph: Literal["paper", "theorem"] | float | None = None,
        labeled_loss: Literal["epsilon_insensitive", "l1"] = "epsilon_insensitive",
        epsilon: float = 0.1,
        power: float = 2.0,
        kernel: Literal["linear", "poly", "rbf", "laplacian", "precomputed"] = "rbf",
        gamma: Literal["scale", "auto"] | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        sigma_f: float = 1.0,
        graph: Literal["knn", "radius", "complete"] | Graph | CompleteGraph = "knn",
        n_neighbors: int = 5,
        radius: float = 1.0,
        edge_weights: Literal["gaussian", "binary"] = "gaussian",
        edge_gamma: Literal["kernel"] | float | None = None,
        sampling: Literal["uniform", "weight"] = "uniform",
        fit_intercept: bool = True,
        projection: Literal["auto"] | bool = "auto",
        precision: Literal["single", "double"] = "single",
        tol: float = 0.1,
        max_iter: Literal["paper"] | int = 200_000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        callback: Callable | None = None,
    ) -> None:
        self.C = C
        self.C_graph = C_graph
        self.labeled_loss = labeled_loss
        self.epsilon = epsilon
        self.power = power
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.sigma_f = sigma_f
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.edge_weights = edge_weights
        self.edge_gamma = edge_gamma
        self.sampling = sampling
        self.fit_intercept = fit_intercept
        self.projection = projection
        self.precision = precision
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @validated
    def fit(
        self,
        X: Rows,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        unlabeled_mask: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to rows with and without a known target.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Training rows; the n × n Gram matrix with ``kernel="precomputed"``.
        y : array-like of shape (n,)
            Targets; NaN where they are not known.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights of the losses; a weight of 0 leaves a row out.
        unlabeled_mask : array-like of bool, shape (n,), default=None
            True for further rows whose target is to be ignored.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            When no target is known, or when a parameter or an input is not valid.
        """
        before = self.__dict__.copy()
        try:
            return self._fit(X, y, sample_weight, unlabeled_mask)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X, y, sample_weight, unlabeled_mask):
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        X = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, order="C", ensure_min_samples=2
        )
        check_size(X)
        y = _targets(X, y, unlabeled_mask)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if self.kernel == "precomputed" and (sp.issparse(X) or X.shape[0] != X.shape[1]):
            raise ValueError("X must be the square, dense Gram matrix when kernel='precomputed'")
        if self.kernel == "precomputed":
            X = checked_gram(X)
        kept = np.flatnonzero(weight > 0)
        self._rows, self._targets = X, y
        if kept.size < weight.size:
            X = X[kept][:, kept] if self.kernel == "precomputed" else X[kept]
            y, weight = y[kept], weight[kept]
        labeled = ~np.isnan(y)
        if not labeled.any():
            raise ValueError("y must hold at least one known target of positive weight")
        kernel = self._kernel(X, weight)
        self.target_mean_ = float(np.average(y[labeled], weights=weight[labeled]))
        targets = np.where(labeled, y - self.target_mean_, 0.0)
        check_reach(float(self.C), weight[labeled], check_kernel(kernel, X))
        pool = self._make_pool(X, labeled, kernel)
        problem = self._make_problem(X, kernel, pool, weight[labeled].sum())
        self.bounds_ = self._bounds(problem, problem.C * weight[labeled].sum(), X)
        solution = solve_gkm(
            X,
            targets,
            labeled,
            weight,
            problem,
            pool.sampler,
            seed=self._seed(),
            radius=self._ball(problem, self.bounds_, targets[labeled], weight[labeled]),
            single=self.precision == "single",
            callback=lambda stretch: self._report(stretch._asdict()),
            **self._plan(X.shape[0]),
        )
        self._set(solution, X, kept, problem, (targets, labeled, weight))
        return self

    def _kernel(self, X, weight):
        gamma = 1.0
        if self.kernel not in ("linear", "precomputed"):
            gamma = resolve_gamma(self.gamma, X, weight)
        sigma_f = 1.0 if self.kernel == "precomputed" else float(self.sigma_f)
        return Kernel(self.kernel, gamma, self.degree, float(self.coef0), sigma_f)

    def _make_problem(self, X, kernel, pool, mass):
        loss, R = self._loss(), space_radius(kernel, X)
        rule = (self.C_graph, self.C * mass, self.power, R, loss, self.fit_intercept, self._share())
        return Problem(
            loss,
            C=float(self.C),
            kernel=kernel,
            bias="regularized" if self.fit_intercept else "none",
            C_graph=resolve_C_graph(*rule),
            graph=pool.graph,
            power=float(self.power),
        )

    def _set(self, solution, X, kept, problem, data):
        used = np.flatnonzero(solution.dual)
        self.support_ = kept[used]
        self.dual_coef_ = solution.dual[used]
        self.__dict__.pop("support_vectors_", None)
        if self.kernel != "precomputed":
            self.support_vectors_ = X[used]
        self.intercept_ = solution.b + self.target_mean_
        require_finite(type(self).__name__, self.dual_coef_, self.intercept_)
        self.gamma_, self.graph_, self.problem_ = problem.kernel.gamma, problem.graph, problem
        self.n_iter_, self.history_ = solution.n_iter, solution.history
        self.termination_condition_ = self._status(solution.status)
        self._data, self._kept = data, kept
        self._objective = self._outputs_ = None
        if self.termination_condition_ == "max_iter":
            warnings.warn(
                f"{type(self).__name__} stopped after max_iter={self.max_iter} steps without "
                "reaching tol; increase max_iter, scale the data or relax tol",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _report(self, state):
        if self.verbose:
            print(f"{type(self).__name__}: " + ", ".join(f"{k} {v:.6g}" for k, v in state.items()))
        return bool(self.callback(state)) if self.callback is not None else False

    def _values(self, X):
        if self.problem_.kernel.name == "precomputed":
            return X[:, self.support_] @ self.dual_coef_ + self.intercept_
        dual, b = self.dual_coef_[None], np.array([self.intercept_])
        return predictions(self.problem_.kernel, self.support_vectors_, dual, b, X)[:, 0]

    def predict(self, X: Rows) -> np.ndarray:
        """Predicted targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows; with ``kernel="precomputed"`` the kernel values between them and all training
            rows, shape (m, n).

        Returns
        -------
        ndarray of shape (m,)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            values = self._values(X)
        require_finite_outputs(values, X)
        return values

    @property
    def transduction_(self):
        """A target for every training row."""
        check_is_fitted(self)
        return np.where(np.isnan(self._targets), self._training_values(), self._targets)

    @property
    def objective_(self):
        """J at the averaged function."""
        check_is_fitted(self)
        if self._objective is None:
            targets, labeled, weight = self._data
            loss = self.problem_.labeled_loss
            f = self._training_values() - self.target_mean_
            b = self.intercept_ - self.target_mean_
            losses = loss.value(targets[labeled], f[self._kept][labeled])
            value = self.problem_.C * (weight[labeled] @ losses)
            penalty = 0.5 * self.dual_coef_ @ (f[self.support_] - b) + 0.5 * b**2
            graph = self.problem_.graph_term(f[self._kept], b)
            self._objective = float(value + penalty + graph)
        return self._objective

    def _training_values(self):
        if self._outputs_ is None:
            self._outputs_ = self._values(self._rows)
        return self._outputs_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.target_tags.required = True
        return tags


def _targets(X, y, unlabeled_mask):
    """Targets as floats, NaN where they are not known."""
    y = check_array(
        y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y",
        ensure_min_samples=0,
    )  # fmt: skip
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    largest = np.max(np.abs(y[~np.isnan(y)]), initial=0.0)
    if largest > _LARGEST:
        raise ValueError(
            f"y must not exceed {_LARGEST:g} in absolute value, got {largest:g}; scale the targets"
        )
    if unlabeled_mask is None:
        return y
    mask = np.asarray(unlabeled_mask)
    if mask.shape != y.shape or mask.dtype != bool:
        raise ValueError(
            f"unlabeled_mask must be a boolean array of shape {y.shape}, got dtype {mask.dtype} "
            f"and shape {mask.shape}"
        )
    return np.where(mask, np.nan, y)
