"""The regressor `GKMRegressor`."""

from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from s3vm_lib.graph_kernel_machine._estimator import GraphMachine, GraphWeight, Power
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.utils.labels import Labels, checked_mask, label_array
from s3vm_lib.utils.limits import Shape, require_finite_outputs
from s3vm_lib.utils.shortcuts import canonical, checked_new_rows, validated_data
from s3vm_lib.utils.threads import using, with_threads
from s3vm_lib.utils.validation import Rows, checked_rows, checked_weight, parameters, validated

_LARGEST = 1e60  # of targets, as of outputs


@parameters
class GKMRegressor(RegressorMixin, GraphMachine):
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
    C_graph : float, "labels", "paper" or None, default="labels"
        Weight of the mean over the edges, see `GKM`.
    labeled_loss : {"epsilon_insensitive", "l1"}, default="epsilon_insensitive"
        Loss of labeled rows.
    epsilon : float, default=0.1
        Half width of the flat part of the epsilon-insensitive loss.
    power : float, default=2.0
        Power p of the differences over edges, p ≥ 1.
    kernel : {"linear", "poly", "rbf", "laplacian", "precomputed"}, default="rbf"
        Kernel function, see `Kernel`.
    gamma : {"scale", "variance", "auto"} or float, default="scale"
        Kernel coefficient of rbf, poly and laplacian, see `resolve_gamma`.
    degree : int, default=3
        Degree of the polynomial kernel, at most 30.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, non-negative.
    sigma_f : float, default=1.0
        Output standard deviation: kernels are multiplied by its square.
    graph, n_neighbors, sampling
        The graph, see `GKM`.
    fit_intercept, projection, precision, tol, max_iter, random_state
        The method, see `GKM`.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
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
        ``"converged"``, ``"max_iter"`` or ``"stopped"``, see `GKM`.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
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
    >>> new = np.array([[0.33], [1.27], [2.18]])
    >>> bool(np.abs(model.predict(new) - np.sin(new[:, 0])).max() < 0.3)
    True
    >>> model.score(new, np.sin(new[:, 0])) > 0.5  # R²
    True
    """

    C_graph: GraphWeight | None = "labels"
    labeled_loss: Literal["epsilon_insensitive", "l1"] = "epsilon_insensitive"
    epsilon: Shape = 0.1
    power: Power = 2.0
    projection: Literal["auto"] | bool = "auto"
    precision: Literal["single", "double"] = "single"

    _computed_later = (*GraphMachine._computed_later, "_values")

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
        with using(self.n_jobs):
            return self._fit(X, y, sample_weight, unlabeled_mask)

    def _fit(self, X, y, sample_weight, unlabeled_mask):
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        X = validated_data(
            self, X, accept_sparse="csr", dtype=self._dtype, order="C", ensure_min_samples=2
        )
        X = canonical(X)
        y = _targets(X, y, unlabeled_mask)
        X = checked_rows(X, self._precomputed)
        weight = checked_weight(sample_weight, X)
        known = ~np.isnan(y)
        if not np.any(weight[known] > 0):
            raise ValueError("y must hold at least one known target of positive weight")
        # To the base, rows with a target are those of a class.
        data = self._training(X, np.where(known, 0, -1), weight, np.zeros(1))
        self._check_scales(data)
        self.gamma_ = data.kernel.gamma
        y_kept, labeled = y[data.rows], data.codes >= 0
        mass = data.loss_weight[labeled]
        self.target_mean_ = float(np.average(y_kept[labeled], weights=mass))
        targets = np.where(labeled, y_kept - self.target_mean_, 0.0)
        fit, _ = self._steps(data, self._prepare(data), targets, self._problem(data, None))
        self._store(data, [fit.extra["problem_"]], [fit._replace(coef=None)])
        self.dual_coef_ = self.dual_coef_[0]
        self.intercept_ = fit.intercept + self.target_mean_
        self._check_result()
        self._data = X, y, data.rows, data.loss_weight  # for what is computed later
        self._warn_of_limits([fit])
        return self

    def _loss(self):
        epsilon = self.epsilon if self.labeled_loss == "epsilon_insensitive" else None
        return LabeledLoss(self.labeled_loss, epsilon)

    @with_threads
    def predict(self, X: Rows) -> np.ndarray:
        """Return predicted targets.

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
        X = checked_new_rows(self, X, self._dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            values = self._outputs(X)[:, 0]
        require_finite_outputs(values, X)
        return values

    @cached_property
    def transduction_(self):
        """A target for every training row."""
        check_is_fitted(self)
        _, y, _, _ = self._data
        return np.where(np.isnan(y), self._values, y)

    @cached_property
    def objective_(self):
        """J at the averaged function."""
        check_is_fitted(self)
        problem, (_, y, rows, weight) = self.problem_, self._data
        f, b = self._values - self.target_mean_, self.intercept_ - self.target_mean_
        labeled = ~np.isnan(y[rows])
        known = rows[labeled]
        losses = problem.labeled_loss.value(y[known] - self.target_mean_, f[known])
        value = problem.C * (weight[labeled] @ losses)
        penalty = 0.5 * self.dual_coef_ @ (f[self.support_] - b) + 0.5 * b**2
        return float(value + penalty + problem.graph_term(f[rows], b))

    @cached_property
    def _values(self):
        """Predictions for all rows of the fit."""
        return self._outputs(self._data[0])[:, 0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _targets(X, y, unlabeled_mask):
    """Return the targets as floats, NaN where they are not known."""
    if isinstance(y, np.ma.MaskedArray):
        y = label_array(y)
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
    return np.where(checked_mask(unlabeled_mask, y.shape), np.nan, y)
