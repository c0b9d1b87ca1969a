"""The estimator `LapSVM`, the penalties of a paper in its terms, and what fits into memory."""

import dataclasses
from contextlib import suppress
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError

from s3vm_lib.base.classifier import BaseS3VM
from s3vm_lib.base.machine import BinaryFit

from s3vm_lib.graphs import (  # isort: skip
    GRAPH_SHARE, GraphLike, Laplacian, NeighborGraph, check_graph, graph_rule, laplacian,
    training_graph,
)  # fmt: skip
from s3vm_lib.kernels import FAR, Kernel, LowRank, near_origin, pivoted_cholesky

from s3vm_lib.laplacian_svm._deformed import (  # isort: skip
    COLUMNS, BlockDeformedKernel, DeformedKernel, LowRankDeformedKernel, solve_deformed,
    solve_hinge,
)  # fmt: skip
from s3vm_lib.laplacian_svm._gradients import StoppingRule, Watch, solve_pcg
from s3vm_lib.losses import LabeledLoss
from s3vm_lib.objective import Problem
from s3vm_lib.utils.limits import Count, Degree, Megabytes, Tolerance, WeightOrZero, scaling
from s3vm_lib.utils.row_blocks import doubles
from s3vm_lib.utils.validation import Client, KernelParameters, parameters

_SHARE = 0.015  # of labels or errors that may change where gradients stop early
_NEAR = 1e-6  # relative rounding of J that is always accepted
_RANK_TOL = 1e-6  # largest entry of the diagonal of K − GGᵀ, as a share of that of K


class SharedKernel(NamedTuple):
    """What all two-class problems of a fit have in common."""

    # The first for gradients.
    kernel: np.ndarray | DeformedKernel | LowRankDeformedKernel | BlockDeformedKernel
    laplacian: Laplacian
    kappa: float  # C_graph / |E|
    labeled: np.ndarray  # indices
    X: np.ndarray  # rows, those of a linear kernel moved to the origin where they are far from it
    # What was subtracted from them, or the means of the rows of the Gram matrix that was centered.
    shift: np.ndarray | None

    def close(self):
        """Delete files of the kernel at the end of a fit."""
        if isinstance(self.kernel, BlockDeformedKernel):
            self.kernel.features.close()


@parameters
class LapSVM(KernelParameters, BaseS3VM):
    """Laplacian support vector machine: outputs vary little along a graph of all rows.

    Minimizes the convex objective

        J(f, b) = ½‖f‖² + C Σ_L s_i ℓ(t_i, f(x_i) + b) + (C_graph / |E|) fᵀMf

    for the squared hinge ℓ = ½ max(0, 1 − t f)², or the hinge. M is the Laplacian of a graph of the
    labeled and unlabeled rows, so that fᵀMf = Σ_E μ_ij (f_i − f_j)², or its normalized form, or a
    power of either. Predictions for new rows come from the kernel expansion of f.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the labeled losses.
    C_graph : float, "labels" or None, default=None
        Weight of the mean of μ_ij (f_i − f_j)² over the edges. None means C Σ_L s_i / 20 with the
        weights of the losses, ``class_weight`` included, which harms little where the neighbors do
        not follow the classes; where they do, on manifolds, far more is better, and with two labels
        the default can be worse than no graph. ``"labels"`` is C Σ_L s_i: the graph counts as much
        as the labeled rows together.
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
    labeled_loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        Loss of labeled rows.
    fit_intercept : bool, default=True
        Whether the model has an offset b. Melacci's program has none by default.
    graph : NeighborGraph, Graph, CompleteGraph or matrix of shape (n, n), default=None
        Which rows are joined, labeled ones with each other too, see `NeighborGraph`. A given graph
        of the n rows is taken as it is; so is a dense or sparse matrix of weights for the rows in
        their order, of which the larger of W_ij and W_ji counts. None is ``NeighborGraph(10,
        weights="binary")``. With ``kernel="precomputed"`` distances are those of feature space.
    n_neighbors : int, default=None
        k in short for ``graph=NeighborGraph(k, weights="binary")``; only one of the two can be
        given.
    normalized : bool, default=False
        Whether to use I − D^−½ W D^−½ in place of D − W. The offset b is no part of the f in the
        graph term, which makes a difference here alone.
    laplacian_degree : int, default=1
        The power q of the iterated Laplacian M = L^q.
    solver : {"auto", "newton", "pcg"}, default="auto"
        ``"newton"`` factorizes an n × n matrix once, then takes Newton steps (for the hinge: SMO)
        on the labeled rows. ``"pcg"`` are preconditioned conjugate gradients on all rows, for the
        squared hinge; with ``stopping="gap"`` a space of 100 functions takes out the slowest
        directions. ``"auto"`` takes the first up to 2500 rows and for the hinge. Gradients need
        many iterations where the kernel is wide: for many rows, a ``rank`` is then better.
    stopping : {"gap", "stability", "validation", "gradient", "change"}, default="gap"
        When conjugate gradients stop. ``"gap"``: J is proved to be within tol of its minimum.
        ``"stability"`` and ``"validation"``, of Melacci and Belkin: every √n / 2 iterations, see
        whether the labels of more than 1.5 % of the unlabeled rows still change, or whether the
        error on every fifth labeled row of each class, held out for the purpose, still falls by
        more than that. Both may stop far from the minimum.
        ``"gradient"``: the preconditioned gradient has fallen by tol. ``"change"``: an iteration
        lowers J by less than tol J.
    memory : float, default=1000
        Memory in MiB for kernel values and what is made of them. The graph of all rows, which is
        sparse, is not counted, nor what looking for neighbors takes.
    rank : int, default=None
        None keeps the full kernel of up to 10,000 rows, and of more with a ``solver`` that is
        named, where ``memory`` allows it. Otherwise it takes as many columns of a pivoted Cholesky
        factor as ``memory`` allows, at most 500 and two for each of up to 500 labeled rows (or 500
        in blocks, where it allows next to none): with hundreds of labels in hundreds of features
        and a large C that can cost a point of error, elsewhere less than .3. A number asks for
        that many: where they do not fit they are made block by block, from pivots among a part of
        the rows, and kept in single precision, in memory or in a temporary file. The factor G ends
        sooner where no diagonal entry of K − GGᵀ exceeds 1e-6 of the largest of K.
    client : dask.distributed.Client, default=None
        The workers of this cluster make the factor in blocks and keep it, as many columns as
        ``rank`` gives, or 500. They open the rows themselves: X has to be a `numpy.memmap` that all
        workers can open, or a CSR matrix of three of them. The graph stays in this process, which
        takes X and, a few at a time, columns of the factor into its memory. A clone of the
        estimator has the client, a pickle or a copy has None.
    tol : float, default=1e-4
        Tolerance: of Newton and ``stopping="gap"``, the duality gap relative to J; of the hinge,
        the largest violation of the optimality conditions.
    max_iter : int, default=1000
        Largest number of iterations; of SMO, per labeled row.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
    verbose : int, default=0
        Print one line per iteration (per round of SMO).
    callback : callable, default=None
        Called after each iteration with a dict (n_iter, objective, gap), or for the hinge after
        each round (n_iter, violation, n_active); a true value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    support_ : ndarray of shape (n_support,)
        Training rows with a nonzero coefficient: all of them as a rule, the pivots in the low-rank
        mode.
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
    graph_ : Graph or CompleteGraph
        The graph of the rows with positive weight. Where it was made of neighbors, identical rows
        are one vertex, the first of them.
    solver_ : {"newton", "pcg"}
        What was used.
    rank_ : int or None
        Columns of the low-rank kernel; None for the full kernel.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the predicted class where it was unlabeled.
    objective_ : float or ndarray of shape (n_classes,)
        Value of the objective at the solution.
    gap_ : float or ndarray of shape (n_classes,)
        Duality gap: no function (of the low-rank space, in that mode) has an objective below
        ``objective_ - gap_``. With ``stopping="validation"`` it is that of conjugate gradients on
        the rows that were not held out, while ``objective_`` has all labeled ones, and no bound.
    problem_ : Problem or list of Problem
        What was minimized, per class with more than two; ready for `evaluate`.
    n_iter_ : int
        Iterations, the largest number over the two-class problems.
    history_ : list
        One dict (n_iter, objective, gap) per iteration; for the hinge (n_iter, violation,
        n_active) per round.
    termination_condition_ : str
        ``"converged"``, ``"max_iter"``, ``"no_step"`` (the limit of double precision),
        ``"stalled"`` (the same before ``tol``, or with values of J that rounding may have changed
        by more) or ``"stopped"`` (by the callback); a list of these with more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    SVM : The supervised baseline, which is ``C_graph=0`` with the hinge.

    Notes
    -----
    It should not be used with the linear kernel where a plane cannot follow the graph (clusters in
    many dimensions, rings) or on sparse text: on such sets of the book's comparison it is much
    worse than a linear `SVM`.

    Parameters of the papers. Belkin, Niyogi and Sindhwani minimize (1/l) Σ ℓ + γ_A ‖f‖² +
    (γ_I/n²) fᵀMf with the hinge: C = 1/(2γ_A l) and C_graph = |E| γ_I/(2γ_A n²). Melacci's program
    minimizes Σ max(0, 1 − t f)² + γ_A ‖f‖² + γ_I fᵀMf: our squared hinge carries a factor ½, hence
    C = 1/γ_A and C_graph = |E| γ_I/(2γ_A).

    With few labels C = 1 lets the norm rule: C = 100 and more did better on half moons, Gaussians
    and digits, and the weight of the graph that does best differs by orders of magnitude between
    data sets. Where D − W does badly, the normalized Laplacian to the power 2 or 5 may do well.

    A row of weight 0 is left out. Any other weight counts in the loss of a labeled row, and nowhere
    else: a graph of neighbors has one vertex for all identical rows, so that a weight of k equals k
    copies for unlabeled rows, too. With a complete graph, whose Laplacian takes 8n² bytes more,
    unequal weights of unlabeled rows are refused.

    With an offset and without ``normalized`` J depends on differences of rows alone, and so does
    the machine: linear kernels are computed of rows without their mean where that is far from 0,
    and the same is done with the feature vectors of other kernels. Where kernel values and weights
    still leave too few digits, a slower method on a factor of the Gram matrix takes over. If not
    even that is certain of J, the fit ends ``"stalled"``, with a warning that names the column to
    scale, if there is one, or with a FloatingPointError.

    To leave out the edges between labeled rows, as `GKM` does, give the graph ready made:
    ``graph=NeighborGraph(10).build(X, labeled=y != -1)``.

    Memory is 8n² bytes for conjugate gradients, three times that for the direct solver, and
    8n(r + 96) bytes with a low-rank kernel of r columns. If not even 50 columns (or twice the
    labeled rows, up to 1000) fit, or not as many as ``rank`` asks for, the columns go to blocks; of
    all rows, a few columns at a time are then in memory, for the products with the graph. If that
    does not fit either, or a matrix of all pairs of labeled rows does not, which the direct solver
    takes, ``fit`` raises a ValueError.

    References
    ----------
    M. Belkin, P. Niyogi and V. Sindhwani, "Manifold regularization", JMLR 7 (2006); V. Sindhwani,
    P. Niyogi and M. Belkin, "Beyond the point cloud", ICML 2005, for the deformed kernel;
    S. Melacci and M. Belkin, "Laplacian support vector machines trained in the primal", JMLR 12
    (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import LapSVM
    >>> X = np.array([[-2.0], [-1.9], [-1.5], [1.4], [1.8], [2.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])
    >>> model = LapSVM(kernel="linear", n_neighbors=2).fit(X, y)
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    C_graph: Literal["labels"] | WeightOrZero | None = None
    labeled_loss: Literal["squared_hinge", "hinge"] = "squared_hinge"
    fit_intercept: bool = True
    graph: GraphLike | None = None
    n_neighbors: Count | None = None
    normalized: bool = False
    laplacian_degree: Degree = 1
    solver: Literal["auto", "newton", "pcg"] = "auto"
    stopping: StoppingRule = "gap"
    memory: Megabytes = 1000
    rank: Count | None = None
    client: Client = None
    tol: Tolerance = 1e-4
    max_iter: Count = 1000

    _side_by_side = True
    _largest_n = 100_000
    _memory = "n × n, or n × rank numbers"

    def _rule(self):
        return graph_rule(self.graph, self.n_neighbors, NeighborGraph(10, weights="binary"))

    def _training(self, X, codes, weight, classes):
        check_graph(self._rule(), codes, weight)
        return super()._training(X, codes, weight, classes)

    def _prepare(self, data):
        """Return the graph and the (full, deformed or factorized) kernel, which problems share."""
        n, labeled = data.X.shape[0], np.flatnonzero(data.codes >= 0)
        if self.labeled_loss == "hinge" and self.solver == "pcg":
            raise ValueError("solver='pcg' is for labeled_loss='squared_hinge', got 'hinge'")
        solver, rank, columns = self._what_fits(n, labeled.size)
        X, shift = doubles(data.X), None
        self.graph_ = training_graph(self._rule(), X, data.rows, None, data.kernel)
        # With a free offset, which a normalized Laplacian does not measure, J depends on
        # differences of feature vectors alone.
        movable = self.fit_intercept and not self.normalized
        linear = data.kernel.name == "linear"
        if movable and linear and self.client is None:
            X, shift = near_origin(X)
            data = data if shift is None else data._replace(X=X)
        lap = laplacian(self.graph_, self.normalized, self.laplacian_degree)
        kappa = self._graph_weight(data) / max(lap.n_edges, 1) if lap.n_edges else 0.0
        try:
            if columns:
                kernel = self._in_blocks(data, rank, columns, lap, kappa, labeled)
                rank = kernel.features.dimension
            elif rank is not None:
                low = pivoted_cholesky(X, data.kernel, rank, _RANK_TOL, first=labeled)
                kernel, rank = LowRankDeformedKernel(low, lap, kappa, labeled), low.factor.shape[1]
            else:
                kernel = np.ascontiguousarray(data.kernel.gram(X))
                if movable and not linear:
                    kernel, shift = _centered_gram(kernel)
                if solver == "newton":
                    kernel = DeformedKernel(kernel, lap, kappa, labeled)
        except LinAlgError:
            raise _spoiled(data.X, data.kernel) from None
        self.solver_, self.rank_ = solver, rank
        return SharedKernel(kernel, lap, kappa, labeled, data.X, shift)

    def _what_fits(self, n, n_labeled):
        """Return the solver, the rank (or None), and how many columns a factor in blocks has."""
        if self.client is not None and (self._precomputed or self.solver == "pcg"):
            raise ValueError(
                "client needs a kernel of rows and solver='auto' or 'newton', got "
                f"kernel={self.kernel!r} and solver={self.solver!r}"
            )
        options = (self.memory, self.rank, self.labeled_loss, self.solver, self._precomputed)
        solver, rank, needed = choose_rank(n, n_labeled, *options)
        columns, what, less = 0, f"{n} rows: a low-rank kernel", "decrease rank or fit fewer rows"
        if self.client is not None or solver is None:
            if not self._precomputed:
                rank, columns, least = choose_blocks(n, self.memory, self.rank)
                needed = least if self.client is not None else min(needed, least)
            solver = "newton" if columns else None
        pairs = 8.0 * n_labeled**2 / 2**20
        if solver is not None and rank is not None and pairs > self.memory:
            solver, needed, less = None, pairs, "label fewer rows"
            what = f"{n_labeled} labeled rows: the matrix of their pairs"
        if solver is None:
            raise ValueError(
                f"memory={self.memory} MiB is too little for {what} takes at least "
                f"{np.ceil(needed):.0f} MiB. Increase memory, {less}"
            )
        return solver, rank, columns

    def _in_blocks(self, data, rank, columns, lap, kappa, labeled):
        """Return the deformed kernel of a factor that does not fit into memory."""
        from s3vm_lib.smooth import block_coordinates  # a slow import, and rarely needed

        with self._progress("blocks") as tick:
            features = block_coordinates(
                data.X, data.kernel, rank, _RANK_TOL, None, labeled,
                megabytes=self.memory / 2, client=self.client, tick=tick,
            )  # fmt: skip
        try:
            return BlockDeformedKernel(features, columns, lap, kappa, labeled)
        except BaseException:
            features.close()
            raise

    def _graph_weight(self, data):
        """Return C_graph, resolved."""
        mass = float(self.C * data.loss_weight[data.codes >= 0].sum())
        rules = {None: GRAPH_SHARE * mass, "labels": mass}
        return rules[self.C_graph] if self.C_graph in rules else float(self.C_graph)

    def _problem(self, data, ratio):
        """Return what is minimized, but for the Laplacian, which `_fit_binary` adds."""
        loss, C_graph = LabeledLoss(self.labeled_loss), self._graph_weight(data)
        bias = "free" if self.fit_intercept else "none"
        return Problem(loss, C=float(self.C), kernel=data.kernel, bias=bias, C_graph=C_graph)

    def _fit_binary(self, data, shared, t, problem, index):
        problem, fits = dataclasses.replace(problem, graph=shared.laplacian), []
        # The fast way first; where rounding spoils it, one that keeps more digits.
        for careful in (False, True):
            with suppress(LinAlgError), np.errstate(over="ignore", invalid="ignore"):
                fits += self._solve(data, shared, t, problem, careful)
                if fits and fits[-1].status != "stalled":
                    return fits[-1]
        fits = [fit for fit in fits if fit.objective >= 0]
        if not fits:
            raise _spoiled(shared.X, data.kernel)
        return min(fits, key=lambda fit: fit.objective)

    def _factored(self, kernel, shared):
        """Return a factor of the kernel for where rounding spoils the fit, or None."""
        X, (fast, lap, kappa, labeled, *_) = shared.X, shared
        if kernel.name == "linear" and not sp.issparse(X) and X.shape[1] <= X.shape[0]:
            low = LowRank(kernel.sigma_f * doubles(X), None, 0.0)
        elif isinstance(fast, DeformedKernel):
            low = pivoted_cholesky(fast.K, Kernel("precomputed"), tol=0.0, first=labeled)
        else:
            return fast if isinstance(fast, LowRankDeformedKernel) else None
        return LowRankDeformedKernel(low, lap, kappa, labeled)

    def _solve(self, data, shared, t, problem, careful):
        """Return the fit in a list, "stalled" if rounding has spoiled it; [] without a factor."""
        kernel, lap, kappa, labeled, X, shift = shared
        kernel = self._factored(data.kernel, shared) if careful else kernel
        if kernel is None:
            return []
        upper = self.C * data.loss_weight[labeled]
        options = dict(offset=self.fit_intercept, tol=self.tol, max_iter=self.max_iter)
        options["callback"] = self._report
        if isinstance(kernel, np.ndarray):
            watch, used = self._watch(t, labeled)
            rows = labeled[used]
            # The early stops are those of the method as published, and depend on its steps.
            options["coarse"] = COARSE if watch.rule == "gap" else 0
            solution = solve_pcg(kernel, lap, kappa, rows, t[rows], upper[used], watch, **options)
            c, f, norm2 = solution.c, solution.f, float(solution.c @ solution.f)
        elif careful:
            Q, H = np.linalg.qr(kernel.half)
            if self.labeled_loss == "hinge":
                solution = solve_hinge(kernel.block, t[labeled], upper, **options)
                w = kernel.weights(kernel.half @ solution.beta)
            else:
                solution = solve_deformed(kernel.block, t[labeled], upper, factor=H, **options)
                w = kernel.weights(Q @ solution.beta)
            c, f, norm2 = kernel.expand(w=w)
        else:
            solve = solve_hinge if self.labeled_loss == "hinge" else solve_deformed
            solution = solve(kernel.block, t[labeled], upper, **options)
            c, f, norm2 = kernel.expand(solution.beta)
        b, gap, status = solution.b, solution.gap, solution.status
        objective = float(problem.value(f + b, t, norm2, b, data.loss_weight))
        # What rounding may have done to J: in the solver, and in the kernel values.
        doubt = 0.0 if solution.c is not None else abs(objective - solution.objective)
        exact = careful and kernel.pivots is None
        if not exact:
            dual = -2.0 * kappa * lap.product(f)
            dual[labeled] -= problem.output_gradient(f + b, t, data.loss_weight)[labeled]
            size = np.maximum(np.abs(dual), np.abs(c))
            size = size @ np.sqrt(np.maximum(data.kernel.diagonal(X), 0.0))
            doubt += 0.5 * np.finfo(float).eps * size * size
        if status == "no_step" or gap < 0:
            doubt += abs(gap)
        if status != "stopped" and not doubt <= max(self.tol, _NEAR) * objective:
            gap, status = gap + doubt, "stalled"
        if shift is not None:
            c = c - c.mean()  # which changes nothing but digits
        coef, used = None, np.flatnonzero(c)
        if data.kernel.name == "linear":
            factor = data.kernel.sigma_f
            coef = factor * w if exact else factor**2 * np.ravel(c[used] @ doubles(X[used]))
        if shift is not None:
            b = b - (c if coef is None else coef) @ shift
        extra = {"gap_": float(max(0.0, gap)), "problem_": problem}
        n_iter, history = max(solution.n_iter, 1), solution.history
        return [BinaryFit(c, coef, b, f + solution.b, objective, n_iter, status, history, extra)]

    def _watch(self, t, labeled):
        """Return what the stopping rule looks at, and which labeled rows take part in the fit."""
        used, rows = np.ones(labeled.size, dtype=bool), np.flatnonzero(t == 0)
        if self.stopping == "validation":
            for sign in (-1.0, 1.0):
                used[np.flatnonzero(t[labeled] == sign)[4::5]] = False
            rows = labeled[~used]
            if not rows.size:
                raise ValueError(
                    "stopping='validation' holds out every fifth labeled row of each class, and "
                    "needs five of one class at least"
                )
        every = max(1, round(np.sqrt(t.size) / 2))
        return Watch(self.stopping, rows, t[rows], every, _SHARE), used


def _centered_gram(K):
    """Return K less its mean in feature space if that is far from 0, and row means."""
    near = K[:: 1 + K.shape[0] // 64].mean()  # of some rows, at next to no cost
    if not near > FAR * (np.trace(K) / K.shape[0] - near):
        return K, None
    means = K.mean(axis=1)
    half = means - 0.5 * means.mean()
    K = K - half  # a copy: a precomputed one is not ours
    K -= half[:, None]
    return K, means


def _spoiled(X, kernel):
    what = "scale the data" if kernel.name == "precomputed" else scaling(X)
    return FloatingPointError(
        f"LapSVM cannot be fitted in double precision: {what}, or take less extreme parameters"
    )


# --- Rules ---------------------------------------------------------------------------------------


COARSE = 100  # rows of the space that makes conjugate gradients fast
# Up to this many rows "auto" factorizes: slower than gradients at best, but never stuck.
_DIRECT = 2500
_EXACT = 10_000  # and up to this many keeps the full kernel: 763 MiB


def melacci_penalties(gamma_A, gamma_I, n_edges):
    """Return C and C_graph for Σ_L max(0, 1 − t f)² + γ_A ‖f‖² + γ_I fᵀMf.

    Parameters
    ----------
    gamma_A, gamma_I : float
        γ_A > 0 and γ_I ≥ 0 of Melacci and Belkin (2011), who use sums and the squared hinge without
        a factor ½.
    n_edges : int
        |E|.

    Returns
    -------
    C, C_graph : float
        1/γ_A and |E| γ_I/(2γ_A): J is their objective divided by 2γ_A.
    """
    return 1 / gamma_A, n_edges * gamma_I / (2 * gamma_A)


def choose_blocks(n, megabytes, rank):
    """Return what of a factor in blocks fits into memory where the factor itself does not.

    Parameters
    ----------
    n : int
        Rows.
    megabytes : float
        Budget in MiB.
    rank : int or None
        Largest rank asked for; None means 500.

    Returns
    -------
    rank : int
    columns : int
        Columns of the factor that are in memory at once with their products, in half of the
        budget; 0 where nothing fits.
    needed : float
        The least budget of which anything fits.
    """
    from s3vm_lib.smooth import megabytes_needed  # a slow import, and rarely needed

    rank = min(n, 500 if rank is None else rank)
    unit = 3 * 8.0 * n / 2**20  # one column, its product, and what the product needs
    least = megabytes_needed(n, rank)
    columns = int((megabytes / 2) / unit) if least <= megabytes / 2 else 0
    return rank, min(columns, rank), 2 * max(least, unit)


def choose_rank(n, n_labeled, megabytes, rank, loss, solver, precomputed=False):
    """Return what fits into memory: the solver, and the number of columns of a low-rank kernel.

    Parameters
    ----------
    n, n_labeled : int
        Rows, and labeled rows.
    megabytes : float
        Budget in MiB.
    rank : int or None
        Largest rank asked for; None leaves the choice to the budget.
    loss : {"squared_hinge", "hinge"}
    solver : {"auto", "newton", "pcg"}
    precomputed : bool, default=False
        Whether the Gram matrix is in memory already.

    Returns
    -------
    solver : {"newton", "pcg"} or None
        None where nothing fits.
    rank : int or None
        None for the full kernel; otherwise the solver is ``"newton"``.
    needed : float
        MiB of what was chosen, or of the smallest choice where nothing fits.
    """
    unit = 8.0 * n / 2**20  # one column
    if rank is None and (n <= _EXACT or solver != "auto" or precomputed):
        if solver == "auto":
            solver = "newton" if loss == "hinge" or n <= _DIRECT else "pcg"
        # The direct method holds K, MK and its factors; conjugate gradients hold K and vectors.
        vectors = 30 if solver == "newton" else 30 + 3 * min(n, COARSE)
        needed = unit * (n * (3 if solver == "newton" else 1 - precomputed) + vectors)
        if needed <= megabytes:
            return solver, None, needed
    # The factor G, and of a few columns their products with M and what these need.
    more, least = 3 * COLUMNS, max(50, 2 * min(n_labeled, 500))
    most = min(n, 500 + 2 * min(n_labeled, 500) if rank is None else rank)
    fits = int(megabytes / unit) - more
    least = most if rank is not None else min(least, most)
    if fits < least:
        return None, None, unit * (least + more)
    return "newton", min(most, fits), unit * (min(most, fits) + more)
