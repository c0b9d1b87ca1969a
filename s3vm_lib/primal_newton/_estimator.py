"""The estimator `NewtonS3VM`."""

from collections.abc import Sequence
from typing import Literal

from s3vm_lib.losses import LabeledLoss
from s3vm_lib.primal_newton._solver import ANNEALING, solve_newton
from s3vm_lib.quasi_newton import SmoothLoss, SmoothS3VM
from s3vm_lib.smooth import Coordinates
from s3vm_lib.utils.validation import parameters


@parameters
class NewtonS3VM(SmoothS3VM):
    """Semi-supervised support vector machine by Newton's method or gradients in the primal.

    Minimizes the differentiable, non-convex objective

        J(f, b) = ½‖f‖² + C Σ_L s_i ℓ(y_i, f(x_i) + b) + C* Σ_U s_j u(f(x_j) + b)

    for a growing C*: from the supervised solution on, the unlabeled term is multiplied by a factor
    that rises to 1, and each stage starts where the last one ended. The balance constraint
    Σ_U s_j (f(x_j) + b) / Σ_U s_j = 2r − 1 keeps all unlabeled rows from falling into one class.
    Newton's method uses the second derivatives of the losses, of which the unlabeled one has
    negative ones inside the margin: ``curvature`` says what becomes of them.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the labeled losses; the squared hinge carries a factor ½, so that it is 2C in the
        notation of ∇TSVM.
    C_star : float, default=None
        Weight of the unlabeled losses. None gives the labeled and the unlabeled part equal total
        weight.
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
    labeled_loss : {"squared_hinge", "modified_logistic", "smooth_hinge", "logistic"} or \
LabeledLoss, default="squared_hinge"
        Loss ℓ of labeled rows. An object says the parameter too:
        ``LabeledLoss("modified_logistic", 100.0)`` in place of a sharpness of 20, with which ℓ
        differs from the hinge by at most log(2)/20.
    unlabeled_loss : {"gaussian", "squared_symmetric_hinge"}, default="gaussian"
        Loss u of unlabeled rows. Only the Gaussian is differentiable at 0; the other one falls
        away from 0 to both sides, and its second derivative is positive wherever it exists.
    s : float, default=3.0
        The Gaussian loss is exp(−s f²). Not used by the other loss.
    balance : "auto", "labels", another name, float, dict or None, default="auto"
        Share r of the class ``classes_[1]`` among the unlabeled rows: estimated from labels and
        unlabeled rows together, by the share among the labeled rows, in another way that
        `s3vm_lib.class_ratio` has a name for, given (in a dict for each class), or not used.
    fit_intercept : bool, default=True
        Whether the model has an offset b. False needs ``balance=None``.
    solver : {"newton", "conjugate_gradient", "gradient"}, default="newton"
        Newton's method; conjugate gradients by the rule of Polak and Ribière, which ∇TSVM used; or
        steepest descent.
    curvature : {"drop", "modify", "trust"}, default="trust"
        What Newton's method does about negative curvature. ``"drop"`` leaves the negative second
        derivatives of the unlabeled loss out, so that the equations are those of a convex problem
        (NTS3VM). ``"modify"`` takes the absolute values of the eigenvalues of the Hessian,
        ``"trust"`` the minimizer of the quadratic model in a ball; both converge quadratically
        to a strict minimum and leave saddle points.
    system : {"auto", "dense", "krylov"}, default="auto"
        How Newton's equations are solved: with the Hessian, O(n r²) operations for r variables, or
        in a Krylov space by products with the features. ``"auto"`` forms the Hessian of at most
        100 variables, about where the costs meet.
    coordinates : {"cholesky", "eigen"} or Coordinates, default="cholesky"
        Variables of the search, by name or with their rank, see `Coordinates`: of its five, a low
        rank factor of the kernel matrix (the weights of the features themselves if the kernel is
        linear), or the full kernel.
    annealing : {"geometric", "doubling", "none"} or sequence of float, default="geometric"
        The factors on C*, one stage each; the last one must be 1. ``"geometric"`` is eight factors
        from 1e-3 to 1 in geometric progression, ``"doubling"`` is ∇TSVM's 2⁻¹⁰, 2⁻⁹, …, 1, and
        ``"none"`` starts at 1.
    tol : float, default=1e-5
        A stage ends when no entry of the gradient of J/(C Σ_L s) with respect to the coordinates
        exceeds this, or this times the mean √k(x, x) where that is below one.
    ftol : float, default=1e-9
        A stage also ends when an iteration lowers J/(C Σ_L s) by less than this, relative to the
        larger of its value and 1.
    max_iter : int, default=500
        Largest number of iterations of a stage.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
    verbose : int, default=0
        Print one line per stage; on stderr a line that rewrites itself shows the time left.
    callback : callable, default=None
        Called after each stage with a dict (alpha, value, gradient_norm, n_iter, n_evaluations,
        n_negative); a true value stops.

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
        As in `QNS3VM`.
    problem_ : Problem or list of Problem
        What was minimized, with the values that ``C_star``, ``gamma`` and ``balance`` stood for.
    n_iter_ : int
        Iterations of all stages, the largest number over the two-class problems.
    history_ : list
        One `NewtonStage` (alpha, value, gradient_norm, n_iter, n_evaluations, n_negative, status)
        per stage; the value is that of J/(C Σ_L s) with the unlabeled term multiplied by alpha, and
        n_negative counts the iterations that met negative curvature.
    termination_condition_ : str
        Status of the last stage: ``"converged"``, ``"max_iter"``, ``"no_step"`` (the line search
        met the limits of double precision) or ``"stopped"`` (by the callback); a list of these
        with more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    QNS3VM : The same family of objectives without second derivatives.
    SVM : The supervised baseline.

    Notes
    -----
    Where the classes have no gap between them, or one of them is rare, it is worse than `SVM` on
    sets of the book's comparison, most of all with the linear kernel and a class of fewer than one
    row in five. There `S3VC`, which asks held-out labels first, is the safer choice.

    Along a direction the outputs move on a line, so that a trial of the line search costs O(n) and
    no product with the features; no iteration raises J. On G2C, G4C and mixtures the three
    treatments of negative curvature end at the same errors, up to differences between draws;
    dropping it takes up to three times the iterations, since it converges linearly wherever the
    boundary runs through unlabeled rows. On two moons with a weak penalty (large C) the minimum of
    the trust region was the lowest on eight of ten draws, with `QNS3VM` among the others. The
    annealing matters as well: without it, a trust region reaches lower values of J on G4C, and far
    higher errors. At the default tolerance conjugate gradients take about the same time as
    Newton's method, or less.

    References
    ----------
    O. Chapelle and A. Zien, "Semi-supervised classification by low density separation", AISTATS
    2005, for ∇TSVM and its continuation; O. Chapelle, "Training a support vector machine in the
    primal", Neural Computation 19 (2007); O. Chapelle, V. Sindhwani and S. S. Keerthi,
    "Optimization techniques for semi-supervised support vector machines", JMLR 9 (2008).

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import NewtonS3VM
    >>> X = np.array([[-2.0], [-1.9], [-1.5], [1.4], [1.8], [2.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])
    >>> model = NewtonS3VM(kernel="linear").fit(X, y)
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    labeled_loss: SmoothLoss | LabeledLoss = "squared_hinge"
    solver: Literal["newton", "conjugate_gradient", "gradient"] = "newton"
    curvature: Literal["drop", "modify", "trust"] = "trust"
    system: Literal["auto", "dense", "krylov"] = "auto"
    coordinates: Literal["cholesky", "eigen"] | Coordinates = "cholesky"
    annealing: Literal["geometric", "doubling", "none"] | Sequence[float] = "geometric"

    _schedules = ANNEALING
    _searched = ("cholesky", "eigen")
    _largest_n = 100_000
    _memory = "n × rank numbers"

    def _fit_binary(self, data, coordinates, t, problem, index):
        stages = self._stages()
        with self._reporting("stages", 1 + len(stages)) as callback:
            solution = solve_newton(
                coordinates, t, data.loss_weight, problem,
                solver=self.solver, curvature=self.curvature, system=self.system,
                start=self._start(problem, index), callback=callback, **self._ends(stages),
            )  # fmt: skip
        return self._model(data, coordinates, t, problem, solution)
