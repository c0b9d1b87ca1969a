"""The estimator `SVM`."""

import numpy as np

from s3vm_lib.base.classifier import BaseS3VM
from s3vm_lib.base.machine import BinaryFit
from s3vm_lib.gram import Gram
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.objective import Problem
from s3vm_lib.smo._solver import solve_smo, svc_costs
from s3vm_lib.utils.limits import Count, Megabytes, Tolerance
from s3vm_lib.utils.linear import centered, linear_model
from s3vm_lib.utils.validation import KernelParameters, Storage, options, parameters

_SMALL = 200  # rows, of which one solve visits most


@parameters
class SVM(KernelParameters, BaseS3VM):
    """Support vector machine trained by SMO: the supervised baseline of the book.

    Minimizes

        J(f, b) = ½‖f‖² + C Σ_i s_i max(0, 1 − t_i (f(x_i) + b))

    over the labeled rows. Unlabeled rows are allowed and have no influence; they receive a label in
    ``transduction_``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the hinge losses.
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
    tol : float, default=1e-3
        Largest violation of the optimality conditions at the end. Below 1e-5, or below 1.2e-6
        times the largest k(x, x), kernel values are kept in double instead of single precision
        (see `Gram`, also on rows in groups far apart). In single precision rounding can leave a
        larger violation where C times the largest k(x, x) is above 1e3; ``tol=9e-6`` avoids that.
    max_iter : int, default=10_000_000
        Largest number of SMO iterations. A linear kernel of many rows needs few or none: an
        interior-point method goes before them, with many sparse columns coordinate descent.
    shrinking : bool, default=True
        Set points aside that rest at a bound, and check them at the end.
    gram : {"auto", "full", "rows"}, default="auto"
        Keep the whole Gram matrix or the rows that are visited, see `Gram`. With two classes
        ``"auto"`` keeps the matrix of at most 200 rows.
    memory : float, default=250
        Memory for kernel values in MiB. While points are set aside, a copy of the part that is
        still needed may take as much again.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
    verbose : int, default=0
        Print one line per round of iterations.
    callback : callable, default=None
        Called after each round with a dict (n_iter, violation, n_active); a true value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    support_ : ndarray of shape (n_support,)
        Training rows with a nonzero dual variable.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, d)
        These rows; absent with ``kernel="precomputed"``.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Signed dual variables β_i = t_i α_i; one row for two classes, otherwise one per class.
    coef_ : ndarray of shape (n_problems, d)
        Weights of the features, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (n_problems,)
        Offsets b.
    gamma_ : float
        The kernel coefficient that was used.
    gram_ : {"full", "rows"}
        How kernel values were kept.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the predicted class where it was unlabeled.
    objective_ : float or ndarray of shape (n_classes,)
        Value of the objective at the solution.
    problem_ : Problem or list of Problem
        What was minimized, per class with more than two; ready for `evaluate`.
    n_iter_ : int
        SMO iterations, the largest number over the two-class problems.
    history_ : list
        (n_iter, violation, active points) after each round.
    termination_condition_ : str
        ``"converged"``, ``"max_iter"`` or ``"stopped"`` (by the callback); a list of these with
        more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    References
    ----------
    J. Platt, "Fast training of support vector machines using sequential minimal optimization",
    in Advances in Kernel Methods (1999); R.-E. Fan, P.-H. Chen and C.-J. Lin, JMLR 6 (2005).

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import SVM
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0], [0.5]])
    >>> y = np.array([0, 0, 1, 1, -1])
    >>> model = SVM(kernel="linear").fit(X, y)
    >>> model.transduction_.tolist()
    [0, 0, 1, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    tol: Tolerance = 1e-3
    max_iter: Count = 10_000_000
    shrinking: bool = True
    gram: Storage = "auto"
    memory: Megabytes = 250

    _largest_n = 200_000
    _memory = "visited kernel rows"

    _wants_unlabeled = False
    _side_by_side = True
    _late = frozenset({"C", "max_iter", "shrinking"})

    def _prepare(self, data):
        labeled = np.flatnonzero(data.codes >= 0)
        X = data.X[labeled]
        if self._precomputed:
            X = np.ascontiguousarray(X[:, labeled])
        X, center = centered(X, data.kernel)
        storage = self.gram
        if storage == "auto" and data.n_classes == 2 and labeled.size > _SMALL:
            storage = "rows"
        n_solves = 1 if data.n_classes == 2 else data.n_classes
        gram = Gram(X, data.kernel, self.memory, storage, n_solves=n_solves, tol=self._kernel_tol)
        self.gram_ = gram.storage
        return labeled, gram, center

    def _n_solved(self, data):
        return int(np.sum(data.codes >= 0))

    def _problem(self, data, ratio):
        return Problem(LabeledLoss("hinge"), None, float(self.C), 0.0, data.kernel)

    def _fit_binary(self, data, shared, t, problem, index):
        labeled, gram, center = shared
        upper = self.C * data.loss_weight[labeled]
        costs = svc_costs(t[labeled], upper)
        solution = solve_smo(gram, costs, callback=self._report, **options(self, solve_smo))
        f, b = solution.f, solution.b
        norm2 = solution.beta @ f
        objective = problem.value(f + b, t[labeled], norm2, b, data.loss_weight[labeled])
        dual, outputs = np.zeros(t.size), np.full(t.size, np.nan)
        dual[labeled], outputs[labeled] = solution.beta, f + b
        coef, b = linear_model(data.kernel, dual, data.X, b, center)
        solution = solution._replace(objective=float(objective), n_iter=max(solution.n_iter, 1))
        return BinaryFit.of(solution, dual, coef, b, outputs)
