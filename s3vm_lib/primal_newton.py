"""Gradients and Newton in the primal: ∇TSVM, NTS3VM and a trust region.

Newton's equations where the Hessian is indefinite, dense or from products alone; descent along
rays, and continuation in C*; `NewtonS3VM`. The objective is in `s3vm_lib.smooth`.
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, eigh, eigh_tridiagonal
from scipy.optimize import brentq

from s3vm_lib.losses import LabeledLoss
from s3vm_lib.quasi_newton import SmoothLoss, SmoothS3VM
from s3vm_lib.smooth import Continuation, Coordinates, ScaledObjective, annealed
from s3vm_lib.utils.validation import parameters

# Factors of the unlabeled term, by name: the default of `QNS3VM`, those of ∇TSVM, and no
# continuation.
ANNEALING = {
    "geometric": tuple(10.0 ** (3 * k / 7 - 3) for k in range(8)),
    "doubling": tuple(2.0 ** (k - 10) for k in range(11)),
    "none": (1.0,),
}
DENSE_LIMIT = 100  # with more variables than this "auto" does without the Hessian
# Curvature is told from 0 at this share of the curvature 2λ of the penalty.
FLOOR = 1e-3
_ACCURACY = 0.1  # of the search along a ray: |φ'(τ)| ≤ 0.1 |φ'(0)|
_KRYLOV = 100  # most products for one direction
_TEST = 20  # products of the test for negative curvature
_CHECK_EVERY = 4  # Krylov steps between two looks at the small problem


def model_step(values, gradient, curvature, radius, floor):
    """Return the step in the eigenbasis of a Hessian, shape (k,).

    Parameters
    ----------
    values : ndarray of shape (k,)
        Eigenvalues in increasing order.
    gradient : ndarray of shape (k,)
        Components of the gradient along the eigenvectors.
    curvature : {"drop", "modify", "trust"}
        ``"modify"`` (and ``"drop"``, whose Hessian has no negative eigenvalue to begin with): every
        eigenvalue is replaced by its absolute value. ``"trust"``: the minimizer of the quadratic
        model in the ball of the given radius if an eigenvalue is negative (Moré and Sorensen,
        1983), and the Newton step if none is.
    radius : float
        Radius of the ball.
    floor : float
        Smallest curvature that a step divides by.

    Returns
    -------
    ndarray of shape (k,)
        p with gradientᵀp < 0 unless the gradient vanishes.
    """
    if curvature != "trust" or values[0] >= floor:
        return -gradient / np.maximum(np.abs(values), floor)
    # The smallest shift that makes the Hessian positive definite; a larger one, a shorter step.
    least, reach = floor - values[0], np.linalg.norm(gradient) / radius
    if reach < 1e-6 * least or values[0] + least < 0.5 * floor:  # much would be rounded away
        values, least, reach = (values - values[0]) + floor, 0.0, 2.0 * reach
    p = -gradient / (values + least)
    missing = radius**2 - p @ p
    if missing >= 0:  # the "hard case": go on along the eigenvector of the most negative curvature
        p[0] += np.copysign(np.sqrt(missing + p[0] ** 2) - abs(p[0]), p[0])
        return p

    def excess(shift):
        return 1.0 / radius - 1.0 / np.linalg.norm(gradient / (values + shift))

    return -gradient / (values + brentq(excess, least, least + reach, rtol=1e-10))


def dense_direction(hessian, gradient, curvature, radius, floor):
    """Return the step for a dense Hessian: by Cholesky if it is positive definite, or `model_step`.

    Parameters
    ----------
    hessian : ndarray of shape (d, d)
    gradient : ndarray of shape (d,)
    curvature, radius, floor
        See `model_step`.

    Returns
    -------
    direction : ndarray of shape (d,)
    negative : bool
        Whether an eigenvalue was found negative.
    """
    try:
        factor = cholesky(hessian, lower=True, check_finite=False)
        # The squared diagonal bounds the lowest eigenvalue from above; rounding can hide a zero.
        if np.diag(factor).min() ** 2 >= floor:
            return -cho_solve((factor, True), gradient, check_finite=False), False
    except LinAlgError:
        pass
    # Line 6 of the chapter's algorithm, where the Hessian is indefinite; the step is line 7.
    values, vectors = eigh(hessian, check_finite=False)
    step = model_step(values, vectors.T @ gradient, curvature, radius, floor)
    return vectors @ step, bool(values[0] < 0)


def krylov_direction(product, gradient, curvature, radius, floor, tol, max_iter):
    """Return the step in the Krylov space of the gradient, from products with the Hessian.

    The Lanczos process turns the Hessian into a tridiagonal matrix T on an orthonormal basis of
    span{g, Hg, H²g, …}; the step is `model_step` for T. Where T is positive definite this is the
    iterate of conjugate gradients, with ``"trust"`` that of Gould, Lucidi, Roma and Toint (1999).

    Parameters
    ----------
    product : callable
        From a vector to the Hessian times it.
    gradient : ndarray of shape (d,)
    curvature, radius, floor
        See `model_step`.
    tol : float
        Stop when the residual of the linear system is below tol times the norm of the gradient.
    max_iter : int
        Largest number of products.

    Returns
    -------
    direction : ndarray of shape (d,)
    negative : bool
        Whether an eigenvalue of T was negative.
    products : int
    """
    norm = np.linalg.norm(gradient)
    for values, vectors, basis, last in lanczos(product, gradient, max_iter):  # noqa: B007 (used after the loop)
        step = model_step(values, norm * vectors[0], curvature, radius, floor)
        if last * abs(vectors[-1] @ step) <= tol * norm:
            break
    return (vectors @ step) @ basis, bool(values[0] < 0), len(basis)


def lanczos(product, start, max_iter):
    """Yield eigenpairs of a symmetric operator on growing Krylov spaces, by the Lanczos process.

    Every new vector is made orthogonal to all before it, which costs O(k d) and keeps copies of
    the same eigenvalue away.

    Parameters
    ----------
    product : callable
        From a vector to the operator times it.
    start : ndarray of shape (d,)
        Not zero.
    max_iter : int
        Largest number of products.

    Yields
    ------
    values : ndarray of shape (k,)
        Eigenvalues of the tridiagonal matrix T, increasing.
    vectors : ndarray of shape (k, k)
        Its eigenvectors, as columns.
    basis : ndarray of shape (k, d)
        Orthonormal rows; the first is start/‖start‖.
    last : float
        Next off-diagonal entry of T: 0 where the space holds its own image.
    """
    max_iter = min(max_iter, start.size)
    basis = np.empty((max_iter, start.size))
    diagonal, beside = [], []
    vector, scale = start / np.linalg.norm(start), 0.0
    for k in range(1, max_iter + 1):
        basis[k - 1] = vector
        vector = product(vector)
        diagonal.append(vector @ basis[k - 1])
        for _ in range(2):  # twice is enough (Kahan and Parlett)
            vector -= (basis[:k] @ vector) @ basis[:k]
        last = float(np.linalg.norm(vector))
        scale = max(scale, abs(diagonal[-1]), last)
        done = k == max_iter or last <= 1e-14 * scale
        if done or k % _CHECK_EVERY == 0:
            yield *eigh_tridiagonal(diagonal, beside), basis[:k], last
        if done:
            return
        beside.append(last)
        vector /= last


def most_negative(hessian, start, max_iter, floor):
    """Return a direction of negative curvature, if there is one below −floor.

    Parameters
    ----------
    hessian : ndarray of shape (d, d), or callable
        The Hessian, or its products with vectors.
    start : ndarray of shape (d,)
        Start of the Lanczos process; not used with a dense Hessian.
    max_iter : int
        Largest number of products.
    floor : float

    Returns
    -------
    ndarray of shape (d,) or None
        Eigenvector of the lowest eigenvalue, of length 1 (with a callable: as far as the process
        found it).
    """
    if callable(hessian):
        for values, vectors, basis, _ in lanczos(hessian, start, max_iter):
            if values[0] < -floor:
                return vectors[:, 0] @ basis
        return None
    try:
        cholesky(hessian + floor * np.eye(start.size), lower=True, check_finite=False)
        return None
    except LinAlgError:
        return eigh(hessian, subset_by_index=[0, 0], check_finite=False)[1][:, 0]


class NewtonStage(NamedTuple):
    """One stage of the continuation."""

    alpha: float  # share of the unlabeled term
    value: float  # scaled objective F at the end
    gradient_norm: float  # largest gradient entry at the end
    n_iter: int
    n_evaluations: int  # trials along rays, O(n) each
    n_negative: int  # iterations that met negative curvature
    status: str


class NewtonMinimum(NamedTuple):
    """What `minimize` returns."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    n_iter: int
    n_evaluations: int
    n_negative: int
    status: str  # "converged", "max_iter" or "no_step"


class NewtonDirections:
    """Newton's direction at a point, with one of three ways to treat negative curvature.

    Parameters
    ----------
    objective : ScaledObjective
    x : ndarray of shape (d,)
        Start; the first radius of the trust region is the larger of its norm and 1.
    curvature : {"drop", "modify", "trust"}
        See `solve_newton`.
    dense : bool
        Whether to form the Hessian or only multiply by it.
    """

    def __init__(self, objective, x, curvature, dense):
        self.objective, self.curvature, self.dense = objective, curvature, dense
        self.floor = FLOOR * 2.0 * objective.lam
        self.radius = max(1.0, float(np.linalg.norm(x)))

    def __call__(self, x, gradient):
        """Return (direction, first step, whether the curvature was negative)."""
        objective, D = self.objective, self.objective.curvature
        dropped = False
        if self.curvature == "drop":
            dropped = bool(D.min(initial=0.0) < 0)
            D = np.maximum(D, 0.0)
        rule = (self.curvature, self.radius, self.floor)
        if self.dense:
            d, negative = dense_direction(objective.hessian(D), gradient, *rule)
        else:
            tol = min(0.1, np.sqrt(np.linalg.norm(gradient)))
            d, negative, _ = krylov_direction(
                lambda v: objective.product(D, v), gradient, *rule, tol, _KRYLOV
            )
        return d, 1.0, negative or dropped

    def moved(self, length):
        """Adapt the radius to the length of the step that was taken."""
        self.radius = max(2.0 * length, 0.25 * self.radius)

    def escape(self, x, gradient):
        """Return a direction along which a stationary point is no minimum, or None."""
        objective, D = self.objective, self.objective.curvature
        if self.curvature == "drop" or D.min(initial=0.0) >= 0:
            return None
        # Fixed noise, drawn to the directions in which the losses bend down.
        start = objective.product(np.minimum(D, 0.0), np.cos(np.arange(x.size, dtype=float) ** 2))
        hessian = objective.hessian(D) if self.dense else lambda v: objective.product(D, v)
        d = most_negative(hessian, start, _TEST, self.floor)
        return d if d is None or gradient @ d <= 0 else -d


class GradientDirections:
    """Steepest descent, or conjugate gradients by the rule of Polak and Ribière.

    Parameters
    ----------
    conjugate : bool
    """

    def __init__(self, conjugate):
        self.conjugate = conjugate
        self.gradient = self.direction = None

    def __call__(self, x, gradient):
        """Return (direction, first step, False); a step of 0 leaves the choice to `search_ray`."""
        d = -gradient
        if self.conjugate and self.gradient is not None:
            change = gradient - self.gradient
            beta = max(0.0, (gradient @ change) / (self.gradient @ self.gradient))
            d = d + beta * self.direction
            if gradient @ d >= 0:
                d = -gradient
        self.gradient, self.direction = gradient, d
        return d, 0.0, False

    def moved(self, length):
        """Do nothing: there is nothing to adapt."""

    def escape(self, x, gradient):
        """Return None: first derivatives are 0 at a saddle point and at a minimum."""


def minimize(objective, x, directions, tol=1e-5, ftol=1e-9, max_iter=500, certify=True):
    """Descend from x along directions of descent, each searched as a ray.

    Parameters
    ----------
    objective : ScaledObjective
    x : ndarray of shape (d,)
        Start.
    directions : NewtonDirections or GradientDirections
    tol, ftol, max_iter
        See `solve_newton`.
    certify : bool, default=True
        Whether to look for negative curvature where the descent ends. False does so only if it
        ends where it began, as it does at a saddle point that the stage before has left behind.

    Returns
    -------
    NewtonMinimum
    """
    # Line 3 of the chapter's algorithm.
    f = objective.outputs(x)
    value, gradient = objective.at(x, f)
    n_iter, n_evaluations, n_negative, decrease = 0, 1, 0, np.inf
    while True:
        # 4: at a point that seems stationary a direction of negative curvature is looked for.
        small = np.abs(gradient).max(initial=0.0) <= tol or decrease < ftol * max(1.0, abs(value))
        d = directions.escape(x, gradient) if small and (certify or n_iter == 0) else None
        if small and d is None:
            status = "converged"
            break
        if n_iter == max_iter:
            status = "max_iter"
            break
        if small:
            step, negative = 0.0, True
        else:
            # 5 to 7
            d, step, negative = directions(x, gradient)
        # 8: along the ray the outputs are linear, so that trials are cheap.
        change = objective.change(d)
        step, evaluations, bend = objective.search(x, f, d, change, step, _ACCURACY)
        n_evaluations += evaluations
        n_negative += negative or bend < 0
        if step == 0.0:
            status = "converged" if small else "no_step"
            break
        n_iter += 1
        # 9
        x, f = x + step * d, f + step * change
        before = value
        value, gradient = objective.at(x, f)
        decrease = max(0.0, before - value)  # rounding may turn the last ones around
        directions.moved(step * np.linalg.norm(d))
    return NewtonMinimum(x, value, gradient, n_iter, n_evaluations, int(n_negative), status)


def solve_newton(
    coordinates, t, sample_weight, problem, *, solver="newton", curvature="trust", system="auto",
    annealing=ANNEALING["geometric"], tol=1e-5, ftol=1e-9, max_iter=500, start=None, callback=None,
):  # fmt: skip
    """Minimize in the primal by Newton's method or gradient descent, with continuation in C*.

    Parameters
    ----------
    coordinates : FeatureMap
        Where the search takes place, for the kernel of the problem. With ``balance="mean"`` they
        must be centered on the weighted mean of the unlabeled rows.
    t : ndarray of shape (n,)
        −1 and +1, and 0 for unlabeled rows; at least one labeled row.
    sample_weight : ndarray of shape (n,)
        Weights s; their sum over the labeled rows is positive.
    problem : Problem
        Losses, C, C*, and one of: ``bias="none"`` with ``balance="none"``; a free bias with
        ``balance="none"`` or ``"mean"`` (the offset is then fixed at 2r − 1).
    solver : {"newton", "conjugate_gradient", "gradient"}, default="newton"
    curvature : {"drop", "modify", "trust"}, default="trust"
        What Newton does about negative curvature: leave the negative entries of D out, replace
        negative eigenvalues of the Hessian by their absolute values, or step inside a trust region.
        The latter two also leave stationary points where the Hessian has a negative eigenvalue.
    system : {"auto", "dense", "krylov"}, default="auto"
        Whether Newton's equations are solved with the Hessian or with products alone; ``"auto"``
        forms the Hessian of at most 100 variables.
    annealing : sequence of float
        Factors α of the unlabeled term, one stage each; the stage α = 0 comes before them.
    tol : float, default=1e-5
        Largest gradient entry of F at the end of a stage, in the `unit` of the coordinates where
        that is below one.
    ftol : float, default=1e-9
        Decrease of F by one iteration, relative to max(1, F), below which a stage ends.
    max_iter : int, default=500
        Iterations of a stage.
    start : tuple (w, b, C*), default=None
        The solution for a smaller C*: the stages up to it are left out, 0 among them.
    callback : callable, default=None
        Called after each stage with the `NewtonStage`, the coefficients and the offset; a true
        value stops.

    Returns
    -------
    Solution
    """
    stages = Continuation(coordinates, t, sample_weight, problem, start)
    dense = coordinates.dimension <= DENSE_LIMIT if system == "auto" else system == "dense"
    # Short features have small gradients: at the same tolerance they would stop too early.
    tol *= min(1.0, coordinates.unit)
    # The numbers are the lines of the chapter's algorithm. 1: x = 0; 2: the stages.
    factors = stages.factors(annealing)

    def descend(alpha, x):
        function = ScaledObjective(*stages.at(alpha))
        if solver == "newton":
            directions = NewtonDirections(function, x, curvature, dense)
        else:
            directions = GradientDirections(solver == "conjugate_gradient")
        # 3 to 10. Only the last stage must prove that it ended in no saddle.
        go_on = partial(minimize, function, directions=directions, max_iter=max_iter)
        minimum = go_on(x, tol=tol, ftol=ftol, certify=alpha == factors[-1])
        return stages.polished(go_on, minimum, tol, ftol)

    report = None if callback is None else lambda stage, x: callback(stage, *stages.split(x))
    x, history, status = annealed(factors, stages.start, descend, report, NewtonStage)
    return stages.solution(x, history, status)


@parameters
class NewtonS3VM(SmoothS3VM):
    """Semi-supervised support vector machine by Newton's method or gradients in the primal.

    Minimizes the differentiable, non-convex objective

        J(f, b) = ½‖f‖² + C Σ_L s_i ℓ(y_i, f(x_i) + b) + C* Σ_U s_j u(f(x_j) + b)

    for a growing C*: from the supervised solution on, the unlabeled term is multiplied by a factor
    that rises to 1, and each stage starts where the last one ended. The balance constraint
    Σ_U s_j (f(x_j) + b) / Σ_U s_j = 2r − 1 keeps all unlabeled rows from falling into one class.
    Newton's method uses the second derivatives of the losses, of which the unlabeled one has
    negative ones inside the margin: ``curvature`` names what replaces them.

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
        Loss ℓ of labeled rows. An object holds the parameter too:
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
    row in five. There `S3VC` lets held-out labels weigh it against an `SVM`.

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
    _largest_n = 200_000
    _coordinate_memory = 4000  # MiB; blocks cost time
    _memory = "n × rank numbers"

    def _fit_binary(self, data, coordinates, t, problem, index):
        asked = self._asked(solve_newton) | {"start": self._start(problem, index)}
        with self._reporting("stages", 1 + len(asked["annealing"])) as callback:
            rows = t, data.loss_weight
            solution = solve_newton(coordinates, *rows, problem, callback=callback, **asked)
        return self._model(data, coordinates, t, problem, solution)
