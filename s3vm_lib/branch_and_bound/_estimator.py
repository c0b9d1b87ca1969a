"""The estimator `BranchBoundS3VM`."""

from numbers import Real
from typing import Annotated, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from s3vm_lib.base.classifier import Balance, BaseS3VM, checked_labeled_loss
from s3vm_lib.base.machine import BinaryFit
from s3vm_lib.branch_and_bound._relaxation import PROVED
from s3vm_lib.branch_and_bound._search import solve_branch_and_bound
from s3vm_lib.losses import LabeledLoss, unlabeled_loss
from s3vm_lib.objective import Problem
from s3vm_lib.utils.limits import Count, Gap, WeightOrZero
from s3vm_lib.utils.linear import centered, linear_model
from s3vm_lib.utils.validation import KernelParameters, options, parameters


@parameters
class BranchBoundS3VM(KernelParameters, BaseS3VM):
    """Global optimum of the semi-supervised support vector machine by branch and bound.

    Minimizes

        J(f, b) = ½‖f‖² + C Σ_L s_i ℓ(y_i, f(x_i) + b) + C* Σ_U s_j u(f(x_j) + b)

    over all functions and all labels of the unlabeled rows: u is the least of the losses ℓ(−1, ·)
    and ℓ(1, ·), the symmetric ramp, or the Gaussian loss. The search decides one label after the
    other. The convex problem of the rows decided so far bounds from below what any completion can
    reach, and is abandoned as soon as that is no better than the best solution found. With the
    Gaussian loss it cuts intervals of the outputs instead, on which the loss has a convex envelope.
    Practical up to about 32 unlabeled rows, and more where the classes are well separated; with the
    Gaussian loss up to about 10.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the labeled losses.
    C_star : float, default=None
        Weight of the unlabeled losses. None gives the labeled and the unlabeled part equal total
        weight.
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
    labeled_loss : {"hinge", "squared_hinge", "smooth_hinge", "logistic", "modified_logistic", \
"l1", "epsilon_insensitive"} or LabeledLoss, default="hinge"
        Loss ℓ of labeled rows; a `LabeledLoss` has a parameter of its own.
    unlabeled_loss : {"effective", "symmetric_ramp", "gaussian"}, default="effective"
        Loss u of unlabeled rows: min over y = ±1 of ℓ(y, f); the symmetric ramp, which goes with
        any ℓ but the two logistic losses; or exp(−s f²), which goes with any ℓ and has no labels
        to count, so that ``balance_mode`` must be ``"mean"``.
    s : float, default=None
        Where the symmetric ramp ends, in (−1, 1), or the inverse squared width of the Gaussian
        loss, positive. None takes −0.3 for the ramp and 3 for the Gaussian. Not used by the
        effective loss.
    bias : {"free", "regularized", "none"}, default="free"
        Whether the offset b is unpenalized, enters the objective as ½b², or is 0.
    balance : "auto", "labels", another name, float, dict or None, default="labels"
        Share r of the class ``classes_[1]`` among the unlabeled rows: estimated from labels and
        unlabeled rows together, by the share among the labeled rows, in another way that
        `s3vm_lib.class_ratio` has a name for, given (in a dict for each class), or not used.
    balance_mode : {"mean", "counts", "share"}, default="mean"
        What r asks for: the mean output 2r − 1; round(r u) unlabeled rows that are charged as
        positive; a share of such rows, by ``sample_weight``, within ``balance_tol`` of r. Where
        no labels have such a share, because the rows are few or their weights unequal, `fit`
        raises an error that names the nearest one. With ``C_star=0`` no labels are asked for.
    balance_tol : float, default=0.05
        Tolerance of ``balance_mode="share"``, both ends included. Not used by the others.
    branching : {"gain", "confidence"}, default="gain"
        Decide next the row with the largest product of what either label adds to the bound in
        one step, or the row with the output farthest from 0, as in the paper. Not used with the
        Gaussian loss: the interval is cut whose envelope is farthest below the loss.
    tol : float, default=1e-6
        Largest gap between the objective and its lower bound at the end, relative to the
        objective.
    max_iter : int, default=100_000
        Largest number of nodes.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
    verbose : int, default=0
        Print a line at each better solution and at least every 100 nodes.
    callback : callable, default=None
        Called as often with a dict (n_iter, objective, lower_bound); a true value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_ratio_ : ndarray of shape (n_classes,), or None
        Shares of the classes among the unlabeled rows, as ``balance`` gave them; None without.
    support_ : ndarray of shape (n_support,)
        Training rows that carry the model.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, d)
        These rows; absent with ``kernel="precomputed"``.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Their coefficients; one row for two classes, otherwise one per class.
    coef_ : ndarray of shape (n_problems, d)
        Weights of the features, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (n_problems,)
        Offsets b.
    gamma_ : float
        The kernel coefficient that was used.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the one found where it was unlabeled.
    objective_ : float or ndarray of shape (n_classes,)
        J at the solution; with the balance modes ``"counts"`` and ``"share"`` each unlabeled row
        is charged for the label that the balance gives it.
    lower_bound_ : float or ndarray of shape (n_classes,)
        No function has a smaller objective, rounding errors included (see Notes).
    gap_ : float or ndarray of shape (n_classes,)
        ``objective_ - lower_bound_``; at most about ``tol * objective_`` where the status is
        ``"converged"``.
    problem_ : Problem or list of Problem
        What was minimized, with the values that ``C_star``, ``gamma`` and ``balance`` stood for.
    n_iter_ : int
        Nodes whose convex problem was solved, the largest number over the two-class problems.
    history_ : list
        One `Progress` (n_iter, objective, lower_bound) per report.
    termination_condition_ : str
        ``"converged"``, ``"max_iter"``, ``"stopped"`` (by the callback) or ``"inexact"``
        (``gap_``, though valid, is larger than ``tol`` asks for: a convex problem took too many
        iterations, or rounding errors may be as large); a list of these with more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    SVM : The supervised baseline.

    Notes
    -----
    The number of nodes grows exponentially with the unlabeled rows that no bound decides: those
    between the classes. Identical unlabeled rows are decided together. With the balance modes
    ``"counts"`` and ``"share"`` the constraint is one on labels, as in S3VM-light, and an output
    may have another sign than the label that its row is charged for. With the symmetric ramp no
    row is charged for more than the flat piece; whatever it is charged for, it has a label.

    The certificate holds in floating point. What is computed for a dual value, or for what labels
    add to it, is lowered by a bound of its rounding errors, a multiple (of the order of n times
    1.1e-16) of the sum of the absolute values of its terms, before it counts for ``lower_bound_``.
    That is for the kernel values in double precision, of which those of identical rows are taken
    as equal where they differ by rounding, and for ``C``, ``C_star`` and weights as given.
    ``objective_`` is J as computed. The allowance is about 1e-11 of J or less in ordinary
    problems. It grows with C, and with kernel values that are large beside their differences.

    With the Gaussian loss part of ½‖f‖² is lent to the losses of the unlabeled rows before their
    envelopes are taken, which leaves few nodes. A node counts as solved, and the search ends, where
    J is convex on a box or no better than the best solution.

    References
    ----------
    O. Chapelle, V. Sindhwani and S. Keerthi, "Branch and bound for semi-supervised support vector
    machines", NIPS 19 (2006).

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import BranchBoundS3VM
    >>> X = np.array([[-2.0], [2.0], [-1.5], [-1.0], [1.0], [1.5]])
    >>> y = np.array([0, 1, -1, -1, -1, -1])
    >>> model = BranchBoundS3VM(kernel="linear").fit(X, y)
    >>> model.transduction_.tolist(), round(model.objective_, 4), model.termination_condition_
    ([0, 1, 0, 0, 1, 1], 0.5, 'converged')
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    C_star: WeightOrZero | None = None
    labeled_loss: Annotated[str, StrOptions(PROVED)] | LabeledLoss = "hinge"
    unlabeled_loss: Literal["effective", "symmetric_ramp", "gaussian"] = "effective"
    s: Annotated[float, Interval(Real, -1, 1e10, closed="right")] | None = None
    bias: Literal["free", "regularized", "none"] = "free"
    balance: Balance = "labels"
    balance_mode: Literal["mean", "counts", "share"] = "mean"
    balance_tol: Annotated[float, Interval(Real, 0, 1, closed="left")] = 0.05
    branching: Literal["gain", "confidence"] = "gain"
    tol: Gap = 1e-6
    max_iter: Count = 100_000

    _largest_n = 100
    _memory = "n² numbers"

    def _prepare(self, data):
        """Return the Gram matrix, which all problems share, and the point it is centered at."""
        if self.balance_mode == "counts" and self.balance is not None:
            weight = data.sample_weight[data.codes < 0]
            if np.ptp(weight) > 0 if weight.size else False:
                raise ValueError(
                    "sample_weight must be equal on all unlabeled rows with "
                    "balance_mode='counts', which counts them"
                )
        X, center = centered(data.X, data.kernel) if self.bias == "free" else (data.X, None)
        return data.kernel.gram(X), center

    def _problem(self, data, ratio):
        """Return what is minimized; ``ratio`` None leaves the balance constraint out."""
        labeled = checked_labeled_loss(self.labeled_loss, sorted(PROVED))
        if self.unlabeled_loss == "effective":
            unlabeled = labeled.effective
        else:
            unlabeled = unlabeled_loss(self.unlabeled_loss, self.s)
        mode = "none" if ratio is None else self.balance_mode
        if self.unlabeled_loss == "gaussian" and mode in ("counts", "share"):
            raise ValueError(
                f"balance_mode must be 'mean' with unlabeled_loss='gaussian', got {mode!r}: "
                "'counts' and 'share' constrain labels, and the Gaussian loss has none"
            )
        balance = self.bias, mode, ratio, self.balance_tol if mode == "share" else 0.0
        return Problem(labeled, unlabeled, *self._penalties(data), data.kernel, *balance)

    def _fit_binary(self, data, shared, t, problem, index):
        K, center = shared
        asked = options(self, solve_branch_and_bound)
        solution = solve_branch_and_bound(
            problem, K, t, data.loss_weight, callback=self._report, **asked
        )
        bound = solution.lower_bound
        coef, b = linear_model(data.kernel, solution.beta, data.X, solution.b, center)
        extra = {"lower_bound_": bound, "gap_": solution.objective - bound}
        return BinaryFit.of(solution, solution.beta, coef, b, solution.outputs, extra)
