"""QN-S3VM: quasi-Newton annealing (Gieseke, Airola, Pahikkala and Kramer, 2014).

The solver is in `s3vm_lib.smooth`. Here are `SmoothS3VM`, which has what the estimators for
differentiable objectives share, and `QNS3VM`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from s3vm_lib.base.classifier import Balance, BaseS3VM, checked_labeled_loss
from s3vm_lib.base.machine import BinaryFit
from s3vm_lib.losses import LabeledLoss, unlabeled_loss
from s3vm_lib.objective import Problem

from s3vm_lib.smooth import (  # isort: skip
    ANNEALING, CoordinateName, Coordinates, FeatureMap, annealing_stages, contradicted,
    mean_weight, reconsidered, solve_quasi_newton,
)  # fmt: skip
from s3vm_lib.utils.limits import (  # isort: skip
    Count, InnerShare, RandomState, Shape, Tolerance, ToleranceOrZero, WeightOrZero,
)  # fmt: skip
from s3vm_lib.utils.validation import KernelParameters, options, parameters

SmoothLoss = Literal["modified_logistic", "squared_hinge", "smooth_hinge", "logistic"]


@parameters
class SmoothS3VM(KernelParameters, BaseS3VM):
    """Losses by name, coordinates, stages of annealing, and the model that coordinates stand for.

    Subclasses have the parameters ``labeled_loss``, ``unlabeled_loss``, ``s``,
    ``fit_intercept`` and ``annealing``, and name their schedules in ``_schedules``. Those with
    ``coordinates`` name the ones they can search in (``_searched``).
    """

    C_star: WeightOrZero | None = None
    unlabeled_loss: Literal["gaussian", "squared_symmetric_hinge"] = "gaussian"
    s: Shape = 3.0
    balance: Balance = "auto"
    fit_intercept: bool = True
    tol: Tolerance = 1e-5
    ftol: ToleranceOrZero = 1e-9
    max_iter: Count = 500

    _reads_maps = True
    _side_by_side = True
    _late = frozenset("C C_star labeled_loss unlabeled_loss s annealing tol ftol max_iter".split())

    def _prepare(self, data):
        """Return the coordinates, which all two-class problems share."""
        # The constraint fixes the offset: without one it has nothing to act on.
        if not self.fit_intercept and self.balance is not None:
            raise ValueError(
                "fit_intercept=False needs balance=None, because the balance constraint sets the "
                f"offset; got balance={self.balance!r}"
            )
        chosen = Coordinates(name) if isinstance(name := self.coordinates, str) else name
        if chosen.name not in self._searched:
            raise ValueError(
                f"coordinates of {type(self).__name__} must be one of {list(self._searched)}, got "
                f"{chosen!r}"
            )
        center = mean_weight(data.sample_weight, data.codes < 0) if self.fit_intercept else None
        with self._progress("blocks") as tick:
            seed = getattr(self, "random_state", None)
            return chosen.of(data, center, self._coordinate_memory, seed, tick)

    def _asked(self, solver):
        """Return the options of a solver, with the factors of C* as ``annealing``."""
        return options(self, solver) | {
            "annealing": annealing_stages(self.annealing, self._schedules)
        }

    def _problem(self, data, ratio):
        """Return what is minimized; ``ratio`` None leaves the balance constraint out."""
        s = self.s if self.unlabeled_loss == "gaussian" else None
        balance_tol = getattr(self, "balance_tol", None)
        balance = "mean" if balance_tol is None else "share"
        losses = (
            checked_labeled_loss(self.labeled_loss, get_args(SmoothLoss)),
            unlabeled_loss(self.unlabeled_loss, s),
        )
        bias = "free" if self.fit_intercept else "none"
        balance = "none" if ratio is None else balance, ratio, balance_tol or 0.0
        return Problem(*losses, *self._penalties(data), data.kernel, bias, *balance)

    def _start(self, problem, index):
        """Return where the solution for a smaller C* lies, if `Preparation` has one."""
        earlier, fit = self._easier(problem, index)
        return None if fit is None else (*fit.extra["end"], earlier.C_star)

    def _model(self, data, coordinates, t, problem, solution):
        """Return the solution in coordinates as a `BinaryFit`."""
        wrong, total = contradicted(coordinates, solution, t, data.sample_weight, problem)
        support, coefficients, constant = coordinates.model(solution.w)
        # Coordinates without support rows are columns of X: the model has weights alone.
        dual, coef = None, None
        if support is None:
            coef = data.kernel.sigma_f * coefficients
        else:
            dual = np.zeros(data.codes.size)
            dual[support] = coefficients
            if data.kernel.name == "linear":
                coef = data.kernel.sigma_f**2 * (dual @ data.X)
        extra = {"end": (solution.w, solution.b), "contradicted_": wrong / total}
        return BinaryFit.of(solution, dual, coef, solution.b + constant, solution.outputs, extra)


@parameters
class QNS3VM(SmoothS3VM):
    """Semi-supervised support vector machine by quasi-Newton annealing (QN-S3VM).

    Minimizes the differentiable, non-convex objective

        J(f, b) = ½‖f‖² + C Σ_L s_i ℓ(y_i, f(x_i) + b) + C* Σ_U s_j u(f(x_j) + b)

    from the supervised solution on: the unlabeled term is multiplied by α and α is raised from 0
    to 1 in a few stages, each of them a quasi-Newton descent. The balance constraint
    Σ_U s_j (f(x_j) + b) / Σ_U s_j = 2r − 1 keeps all unlabeled rows from falling into one class.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the labeled losses; 1/(2λl) in the notation of the paper. On the tuning sets of
        the library's comparison 10 errs on one row in a hundred less with the rbf kernel, and on as
        many with the linear one; the default is that of scikit-learn, and `S3VC` takes 10.
    C_star : float, default=None
        Weight of the unlabeled losses; λ′/(2λu) in the notation of the paper. None gives the
        labeled and the unlabeled part equal total weight, which is λ′ = 1.
    kernel : {"linear", "poly", "rbf", "laplacian", "precomputed"}, default="rbf"
        Kernel function, see `Kernel`. With ``"linear"`` the weights of the features are the
        variables, and sparse data stay sparse.
    gamma : {"scale", "variance", "auto"} or float, default="scale"
        Kernel coefficient of rbf, poly and laplacian, see `resolve_gamma`.
    degree : int, default=3
        Degree of the polynomial kernel, at most 30.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, non-negative.
    sigma_f : float, default=1.0
        Output standard deviation: kernels are multiplied by its square.
    labeled_loss : {"modified_logistic", "squared_hinge", "smooth_hinge", "logistic"} or \
LabeledLoss, default="modified_logistic"
        Loss ℓ of labeled rows. An object holds the parameter too:
        ``LabeledLoss("modified_logistic", 100.0)`` in place of a sharpness of 20, with which ℓ
        differs from the hinge by at most log(2)/20.
    unlabeled_loss : {"gaussian", "squared_symmetric_hinge"}, default="gaussian"
        Loss u of unlabeled rows. Only the Gaussian is differentiable at 0.
    s : float, default=3.0
        The Gaussian loss is exp(−s f²). Not used by the other loss.
    balance : "auto", "labels", another name, float, dict or None, default="auto"
        Share r of the class ``classes_[1]`` among the unlabeled rows: estimated from labels and
        unlabeled rows together, by the share among the labeled rows, in another way that
        `s3vm_lib.class_ratio` has a name for, given (in a dict for each class), or not used.
    balance_tol : float, default=None
        None fixes the mean output at 2r − 1. A number ε lets the offset free and holds instead
        the share of unlabeled rows with a positive output within ε of r.
    fit_intercept : bool, default=True
        Whether the model has an offset b. False needs ``balance=None``.
    coordinates : {"cholesky", "eigen", "raw", "regressors", "kpca"} or Coordinates, \
default="cholesky"
        Variables of the search, by name or with their rank, see `Coordinates`.
    annealing : {"geometric", "paper"} or sequence of float, default="geometric"
        The factors α, one stage each; the last one must be 1. ``"geometric"`` is eight factors
        from 1e-3 to 1 in geometric progression, ``"paper"`` is (1e-6, 1e-4, .01, .1, .5, 1). The
        default was chosen on moons, G2C and G4C with stratified labels; the chapter compares both
        schedules on G4C, in the minima they find and the evaluations they take.
    reconsider : bool, default=False
        Whether another separator is looked for where ``contradicted_`` is a fifth or more: with
        the direction of the first one left out, and then from there in all directions. It is
        taken where it contradicts fewer labels, by 1.5 standard errors, and the first one kept
        where the callback stops before. Not with ``coordinates="raw"``.
    engine : {"scipy", "lbfgs", "bfgs"}, default="scipy"
        SciPy's L-BFGS-B, or the L-BFGS and BFGS of this library. On dense features "lbfgs" is one
        compiled loop, without the steps of an engine in Python.
    tol : float, default=1e-5
        A stage ends when no entry of the gradient of J/(C Σ_L s) with respect to the coordinates
        exceeds this, or this times the mean √k(x, x) where that is below one. Where rows times
        rank is a million or more, the stages between the first and the last work in single
        precision, and end at ten times this and a hundred times ``ftol``.
    ftol : float, default=1e-9
        A stage also ends when an iteration lowers J/(C Σ_L s) by less than this, relative to the
        larger of its value and 1.
    max_iter : int, default=500
        Largest number of iterations of a stage.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    random_state : int, RandomState instance or None, default=None
        Choice of the rows with ``coordinates="regressors"``; nothing else is random.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
    verbose : int, default=0
        Print one line per stage; on stderr a line that rewrites itself shows the time left.
    callback : callable, default=None
        Called after each stage with a dict (alpha, value, gradient_norm, n_iter, n_evaluations);
        a true value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_ratio_ : ndarray of shape (n_classes,), or None
        Shares of the classes among the unlabeled rows, as ``balance`` gave them; None without.
    support_ : ndarray of shape (n_support,)
        Training rows that carry the model; absent where the search was in the weights of the
        features.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, d)
        These rows; absent with ``kernel="precomputed"``.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Their coefficients; one row for two classes, otherwise one per class.
    coef_ : ndarray of shape (n_problems, d)
        Weights of the features, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (n_problems,)
        Constants of the decision functions.
    gamma_ : float
        The kernel coefficient that was used.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the one found where it was unlabeled.
    objective_ : float or ndarray of shape (n_classes,)
        J at the solution.
    contradicted_ : float or ndarray of shape (n_classes,)
        Share (of the weight) of the labeled rows that the part of f which the unlabeled rows carry
        puts into the wrong class. A gap that follows the classes contradicts few of them, one that
        runs across about half.
    problem_ : Problem or list of Problem
        What was minimized, with the values that ``C_star``, ``gamma`` and ``balance`` stood for.
    n_iter_ : int
        Iterations of all stages, the largest number over the two-class problems.
    history_ : list
        One `Stage` (alpha, value, gradient_norm, n_iter, n_evaluations, status) per stage; the
        value is that of J/(C Σ_L s) with the unlabeled term multiplied by alpha. With
        ``reconsider`` the stages of all separators that were tried, the first one's first.
    termination_condition_ : str
        Status of the last stage of the model: ``"converged"``, ``"max_iter"``, ``"no_step"`` (the
        line search met the limits of double precision) or ``"stopped"`` (by the callback); a list
        of these with more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    SVM : The supervised baseline.

    Notes
    -----
    Where the classes have no gap between them, or one of them is rare, it is worse than `SVM` on
    sets of the book's comparison, most of all with the linear kernel and a class of fewer than one
    row in five. With a linear kernel and dense rows it loses less there where the share itself is
    held, ``balance_tol=0.01``; `S3VC` lets held-out labels weigh it against an `SVM`.

    The objective has many local minima. Which one is found is decided most of all by the share r
    (give ``balance`` as a number if you know it better than a few labels do), then by whether the
    labeled rows are among the pivots of a low-rank kernel, then by the annealing: a single stage
    ends in higher minima. Neither the engine nor the tolerance changes much. A lower objective is
    not always a lower error: compare with `SVM` on labeled rows held out.

    References
    ----------
    F. Gieseke, A. Airola, T. Pahikkala and O. Kramer, "Fast and simple gradient-based
    optimization for semi-supervised support vector machines", Neurocomputing 123 (2014),
    Algorithm 1 and equations (4)-(13); O. Chapelle and A. Zien, "Semi-supervised classification
    by low density separation", AISTATS 2005, for the unlabeled loss and the balance constraint.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import QNS3VM
    >>> X = np.array([[-2.0], [-1.9], [-1.5], [1.4], [1.8], [2.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])
    >>> model = QNS3VM(kernel="linear").fit(X, y)
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    labeled_loss: SmoothLoss | LabeledLoss = "modified_logistic"
    balance_tol: InnerShare | None = None
    coordinates: CoordinateName | Coordinates = "cholesky"
    annealing: Literal["geometric", "paper"] | Sequence[float] = "geometric"
    reconsider: bool = False
    engine: Literal["scipy", "lbfgs", "bfgs"] = "scipy"
    random_state: RandomState = None

    _schedules = ANNEALING
    _searched = get_args(CoordinateName)
    _largest_n = 1_000_000
    _coordinate_memory = 600  # MiB; blocks in single precision cost no time
    _memory = "n × rank numbers"

    def _prepare(self, data):
        coordinates = super()._prepare(data)
        if self.reconsider and not isinstance(coordinates, FeatureMap):
            raise ValueError("reconsider must be False with coordinates='raw', got True")
        return coordinates

    def _fit_binary(self, data, coordinates, t, problem, index):
        asked = self._asked(solve_quasi_newton)

        def solve(coordinates, start, **other):
            given = asked | {"start": start} | other
            with self._reporting("stages", 1 + len(given["annealing"])) as callback:
                rows = t, data.loss_weight
                return solve_quasi_newton(coordinates, *rows, problem, callback=callback, **given)

        start = self._start(problem, index)
        silent = self.callback is None and not self.verbose
        # In a search the stage α = 0, the same for every C*, is solved once.
        alike = problem.C_star > 0 and problem.balance != "share"
        if start is None and self._kept is not None and silent and alike:
            key = replace(problem, C_star=0.0), self.tol, self.ftol, self.max_iter
            first = self._again(
                f"first {index}", key, lambda: solve(coordinates, None, annealing=())
            )
            solution = solve(coordinates, (first.w.copy(), first.b, 0.0))
            solution = solution._replace(
                n_iter=first.n_iter + solution.n_iter, history=first.history + solution.history
            )
        else:
            solution = solve(coordinates, start)
        if self.reconsider and solution.status != "stopped":
            rows = t, data.sample_weight, problem
            solution = reconsidered(solution, coordinates, *rows, solve)
        return self._model(data, coordinates, t, problem, solution)
