"""The estimators `FRS3VM` and `TSGS3VM`."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from s3vm_lib._limits import COUNT
from s3vm_lib.stochastic._common import RandomFeatureS3VM
from s3vm_lib.stochastic._stored import solve_stored
from s3vm_lib.stochastic._triply import solve_triply_stochastic

_BLOCK = 256  # features of one block of FRS3VM
_FEWEST_STEPS = 400


class FRS3VM(RandomFeatureS3VM):
    """Semi-supervised support vector machine on a fixed set of random features (FRS3VM).

    Minimizes

        J(f, b) = ½‖f‖² + C Σ_L s_i ℓ(y_i, f(x_i) + b) + C* Σ_U s_j u(f(x_j) + b)

    over the functions f = Σ_j c_j φ_j of D random features, where ‖f‖² = D Σ_j c_j² stands for the
    norm in the RKHS. The fit has two stages, either of which can be left out: stochastic gradient
    steps on mini-batches of unlabeled rows, and L-BFGS on the same features, with sums over all
    rows or a sample of them (``polish``). With ``n_steps=0`` the second stage alone does what
    `QNS3VM` does, annealing included, by sums over blocks of rows: by threads, from a memory map,
    or on a cluster.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the labeled losses. In the paper, which takes means, C Σ_L s.
    C_star : float or "paper", default=None
        Weight of the unlabeled losses. None gives the labeled and the unlabeled part equal total
        weight. ``"paper"`` is the rule C n_l/n_u in front of a *mean* over the unlabeled rows, as
        it is printed: with few labels it switches the unlabeled term off.
    kernel : {"rbf", "laplacian", "poly", "linear"}, default="rbf"
        Kernel function, see `Kernel`. The features of ``"linear"`` are those of the rows.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of rbf, laplacian and poly, see `resolve_gamma`.
    degree : int, default=3
        Degree of the polynomial kernel, at most 30.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, non-negative.
    sigma_f : float, default=1.0
        Output standard deviation: kernels are multiplied by its square.
    labeled_loss : {"modified_logistic", "hinge", "squared_hinge", "smooth_hinge", "logistic"}, \
default="modified_logistic"
        Loss ℓ of labeled rows. L-BFGS wants a smooth one; the paper has the hinge.
    sharpness : float, default=20.0
        Sharpness of the modified logistic loss; with it ℓ differs from the hinge by at most
        log(2)/sharpness.
    unlabeled_loss : {"gaussian", "symmetric_hinge", "squared_symmetric_hinge", \
"symmetric_ramp"}, default="gaussian"
        Loss u of unlabeled rows.
    s : float, default=None
        The Gaussian loss is exp(−s f²), and the ramp ends at s. None means 3 and −0.3; the paper
        has 5 for the Gaussian.
    balance : "labels", float or None, default="labels"
        Share r of the class ``classes_[1]`` among the unlabeled rows: estimated by the share
        among the labeled rows, given, or not used. Where classes are very unequal, the mean output
        is a poor stand-in for the share, and None is often better.
    balance_penalty : float, default=None
        None fixes the mean output over the unlabeled rows at 2r − 1, by features that are centered
        on them. A number ρ adds ½ρ C Σ_L s (mean − (2r − 1))² to the objective of the stochastic
        steps instead, with the mean taken over each batch; ρ then limits the step size, so that a
        large one makes learning slow.
    fit_intercept : bool, default=True
        Whether there is an offset b. It follows from the balance where that is exact, and is
        regularized, ½b², otherwise: the kernel then is k + 1.
    n_features : int, default=1024
        Number D of features, raised a little so that blocks of at most 256 have one size.
    paired : bool, default=True
        Cosine and sine of every random frequency, in place of the paper's random phases.
    orthogonal : bool, default=False
        Orthogonal frequencies, rbf only; see `FeatureStream`.
    n_steps : int, default=None
        Number T of stochastic steps. None means one pass over
        the unlabeled rows, but at least 400 and at most 2000. 0 leaves the stochastic stage out.
    batch_size : int, default=256
        Unlabeled rows of a step.
    labeled_batch : int, default=None
        Labeled rows drawn in a step; None takes all of them. Give a number where labels abound.
    learning_rate : {"sqrt", "constant", "horizon", "inverse"}, default="sqrt"
        Step sizes: eta0/(C Σ_L s √t); eta0, which is the paper's 1/η; eta0·T^(−power), the
        paper's θ/T^(3/4) in its theorems; eta0/t.
    eta0 : float, default=None
        Constant of the rule; None means 50, 0.02, 1 and 1.
    power : float, default=0.75
        Of ``"horizon"``.
    max_step : float, default=0.5
        Largest step size.
    average : float, default=0.5
        The mean of this last share of the iterates is taken; 0 takes the last one.
    ramp : float, default=0.5
        C* rises from 0 to its value over this first share of the steps.
    unlabeled_from : {"unlabeled", "all"}, default="unlabeled"
        Whether the rows of a batch are drawn from the unlabeled rows or from all.
    polish : bool, default=True
        Whether L-BFGS goes on with the features of the stochastic steps.
    polish_rows : int, default=10000
        Largest number of unlabeled rows that L-BFGS sees, a random sample; None means all.
    annealing : {"geometric", "paper"} or sequence of float, default="geometric"
        Factors of C* with ``n_steps=0``, see `QNS3VM`. After stochastic steps there is no need.
    tol : float, default=1e-5
        L-BFGS ends when no entry of the gradient of J/(C Σ_L s) with respect to the coefficients
        of the features exceeds this, or this times the mean √k(x, x) where that is below one.
    ftol : float, default=1e-9
        It also ends when an iteration lowers J/(C Σ_L s) by less than this, relative to the larger
        of its value and 1.
    max_iter : int, default=500
        Largest number of iterations of L-BFGS (of a stage).
    memory : int, default=50
        Number of steps that L-BFGS remembers.
    n_jobs : int, default=1
        Number of threads. The result is the same for any number.
    client : dask.distributed.Client, default=None
        The sums of L-BFGS, over all rows, are taken on this cluster, by blocks of rows; the rows
        have to be given as a `numpy.memmap` that all workers can open.
    labeled_kept : int, default=5000
        Labeled rows that `partial_fit` keeps from call to call, the newest ones.
    unlabeled_kept : int, default=2000
        Unlabeled rows that it keeps, the newest ones; they take part in the steps of the next call.
    transduce : bool, default=True
        Whether to evaluate the model on all training rows in the end, which is needed for
        ``transduction_``, for ``objective_`` and for an offset that meets the balance to the last
        digit. Costs one prediction.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    random_state : int, RandomState instance or None, default=None
        Seed of features and draws.
    verbose : int, default=0
        1 shows a progress bar on stderr in the stochastic stage, and prints one line per stage of
        L-BFGS; 2 also prints about ten lines in the stochastic stage.
    callback : callable, default=None
        Called with a dict about ten times in the stochastic stage (n_iter, step, labeled,
        unlabeled, n_features) and after each stage of L-BFGS (alpha, value, gradient_norm, n_iter,
        n_evaluations); a true value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    feature_coef_ : ndarray of shape (n_problems, T, m)
        Coefficients of T blocks of m features; f(x) = Σ_t Σ_j α_tj φ_tj(x) + b.
    stream_ : FeatureStream
        Where the features come from: ``stream_.block(t)`` draws block t.
    coef_ : ndarray of shape (n_problems, d)
        Weights of the features, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (n_problems,)
        Offsets b.
    squared_norm_ : float or ndarray of shape (n_classes,)
        ‖f‖² in the space of the features.
    gamma_ : float
        The kernel coefficient that was used.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the one found where it was unlabeled.
    objective_ : float or ndarray of shape (n_classes,)
        J at the solution; NaN without ``transduce``.
    problem_ : Problem or list of Problem
        What was minimized, with the values that ``C_star``, ``gamma`` and ``balance`` stood for.
    n_iter_ : int
        Stochastic steps and iterations of L-BFGS together.
    history_ : list
        `Progress` of the stochastic stage, then one `Stage` for each stage of L-BFGS.
    termination_condition_ : str
        Status of the last stage: ``"converged"``, ``"max_iter"`` or ``"no_step"`` (L-BFGS),
        ``"completed"`` (stochastic steps alone) or ``"stopped"`` (by the callback); a list of
        these with more than two classes.
    n_features_in_ : int
        Number of features of the rows.

    See Also
    --------
    TSGS3VM : Features that grow with the steps.
    QNS3VM : The same objective with the kernel itself.

    Notes
    -----
    Standardize the features. Of the stochastic steps nothing converges in the sense of ``tol``: a
    planned number is taken, and with ``polish=False`` the status is ``"completed"``.

    References
    ----------
    A. Rahimi and B. Recht, "Random features for large-scale kernel machines", NIPS 2007;
    X. Geng, B. Gu, X. Li, W. Shi, G. Zheng and H. Huang, "Scalable semi-supervised SVM via triply
    stochastic gradients", IJCAI 2019, whose baseline FRS3VM is.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import FRS3VM
    >>> X = np.array([[-2.0], [-1.9], [-1.5], [1.4], [1.8], [2.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])
    >>> FRS3VM(random_state=0).fit(X, y).transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    _parameter_constraints = {**RandomFeatureS3VM._parameter_constraints}
    _largest_n = 1_000_000
    _memory = "D numbers; (labeled + batch + polish rows) × D while fitting"

    def __init__(
        self,
        *,
        C: float = 1.0,
        C_star: Literal["paper"] | float | None = None,
        kernel: Literal["rbf", "laplacian", "poly", "linear"] = "rbf",
        gamma: Literal["scale", "auto"] | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        sigma_f: float = 1.0,
        labeled_loss: str = "modified_logistic",
        sharpness: float = 20.0,
        unlabeled_loss: str = "gaussian",
        s: float | None = None,
        balance: Literal["labels"] | float | None = "labels",
        balance_penalty: float | None = None,
        fit_intercept: bool = True,
        n_features: int = 1024,
        paired: bool = True,
        orthogonal: bool = False,
        n_steps: int | None = None,
        batch_size: int = 256,
        labeled_batch: int | None = None,
        learning_rate: Literal["sqrt", "constant", "horizon", "inverse"] = "sqrt",
        eta0: float | None = None,
        power: float = 0.75,
        max_step: float = 0.5,
        average: float = 0.5,
        ramp: float = 0.5,
        unlabeled_from: Literal["unlabeled", "all"] = "unlabeled",
        polish: bool = True,
        polish_rows: int = 10_000,
        annealing: Literal["geometric", "paper"] | Sequence[float] = "geometric",
        tol: float = 1e-5,
        ftol: float = 1e-9,
        max_iter: int = 500,
        memory: int = 50,
        n_jobs: int = 1,
        client: Any | None = None,
        labeled_kept: int = 5000,
        unlabeled_kept: int = 2000,
        transduce: bool = True,
        class_weight: Literal["balanced"] | dict | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        callback: Callable | None = None,
    ) -> None:
        self.C = C
        self.C_star = C_star
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.sigma_f = sigma_f
        self.labeled_loss = labeled_loss
        self.sharpness = sharpness
        self.unlabeled_loss = unlabeled_loss
        self.s = s
        self.balance = balance
        self.balance_penalty = balance_penalty
        self.fit_intercept = fit_intercept
        self.n_features = n_features
        self.paired = paired
        self.orthogonal = orthogonal
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.labeled_batch = labeled_batch
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power = power
        self.max_step = max_step
        self.average = average
        self.ramp = ramp
        self.unlabeled_from = unlabeled_from
        self.polish = polish
        self.polish_rows = polish_rows
        self.annealing = annealing
        self.tol = tol
        self.ftol = ftol
        self.max_iter = max_iter
        self.memory = memory
        self.n_jobs = n_jobs
        self.client = client
        self.labeled_kept = labeled_kept
        self.unlabeled_kept = unlabeled_kept
        self.transduce = transduce
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _n_blocks(self, stream=None):
        return 1 if self.kernel == "linear" else math.ceil(self.n_features / _BLOCK)

    def _block_size(self, n):
        return math.ceil(self.n_features / self._n_blocks())

    def _planned(self, one_pass):
        return min(max(_FEWEST_STEPS, one_pass), 2000)

    def _run(self, X, t, weight, problem, stream, schedule, seed, start=None, tick=None):
        return solve_stored(
            X,
            t,
            weight,
            problem,
            stream,
            self._n_blocks(stream),
            schedule,
            seed=seed,
            unlabeled_from=self.unlabeled_from,
            start=start,
            n_jobs=self.n_jobs,
            callback=self._report_stage,
            tick=tick,
        )


class TSGS3VM(RandomFeatureS3VM):
    """Semi-supervised support vector machine by triply stochastic gradients (TSGS3VM).

    Minimizes

        J(f, b) = ½‖f‖² + C Σ_L s_i ℓ(y_i, f(x_i) + b) + C* Σ_U s_j u(f(x_j) + b)

    by steps that are random in three ways: labeled rows, unlabeled rows and random features are
    drawn anew in each of them. The labeled rows are few, and by default all of them enter every
    step. Two updates are offered:

    ``update="block"``
        Algorithm 1 of the paper. Step t draws a block of features that nobody has seen and sets
        their coefficients once and for all, up to the factors 1 − γ of later steps. Nothing but
        coefficients is kept: features are redrawn from (seed, t) whenever f is evaluated. Time
        grows with the square of the number of steps, memory with the number itself.
    ``update="all"``
        What is drawn is kept in use: a step moves the coefficients of *all* features drawn so far,
        which costs little since they have been evaluated anyway. New blocks join until there are
        ``n_features``; from then on time is linear in the number of steps.

    With C* = 0 and ``update="block"`` this is the doubly stochastic SVM of Dai et al.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the labeled losses. In the paper, which takes means, C Σ_L s.
    C_star : float or "paper", default=None
        Weight of the unlabeled losses. None gives the labeled and the unlabeled part equal total
        weight. ``"paper"`` is the rule C n_l/n_u in front of a *mean* over the unlabeled rows, as
        it is printed: with few labels it switches the unlabeled term off.
    kernel : {"rbf", "laplacian", "poly", "linear"}, default="rbf"
        Kernel function, see `Kernel`. The features of ``"linear"`` are those of the rows.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of rbf, laplacian and poly, see `resolve_gamma`.
    degree : int, default=3
        Degree of the polynomial kernel, at most 30.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, non-negative.
    sigma_f : float, default=1.0
        Output standard deviation: kernels are multiplied by its square.
    labeled_loss : {"modified_logistic", "hinge", "squared_hinge", "smooth_hinge", "logistic"}, \
default="modified_logistic"
        Loss ℓ of labeled rows. L-BFGS wants a smooth one; the paper has the hinge.
    sharpness : float, default=20.0
        Sharpness of the modified logistic loss; with it ℓ differs from the hinge by at most
        log(2)/sharpness.
    unlabeled_loss : {"gaussian", "symmetric_hinge", "squared_symmetric_hinge", \
"symmetric_ramp"}, default="gaussian"
        Loss u of unlabeled rows.
    s : float, default=None
        The Gaussian loss is exp(−s f²), and the ramp ends at s. None means 3 and −0.3; the paper
        has 5 for the Gaussian.
    balance : "labels", float or None, default="labels"
        Share r of the class ``classes_[1]`` among the unlabeled rows: estimated by the share
        among the labeled rows, given, or not used. Where classes are very unequal, the mean output
        is a poor stand-in for the share, and None is often better.
    balance_penalty : float, default=None
        None fixes the mean output over the unlabeled rows at 2r − 1, by features that are centered
        on them. A number ρ adds ½ρ C Σ_L s (mean − (2r − 1))² to the objective of the stochastic
        steps instead, with the mean taken over each batch; ρ then limits the step size, so that a
        large one makes learning slow.
    fit_intercept : bool, default=True
        Whether there is an offset b. It follows from the balance where that is exact, and is
        regularized, ½b², otherwise: the kernel then is k + 1.
    update : {"all", "block"}, default="all"
        See above.
    n_features : int, default=1024
        Number of features in the end with ``update="all"``. With ``"block"`` it has no bound:
        block_size times n_steps.
    block_size : int, default=None
        Features m drawn in a step. None means 64 with ``update="all"``, and the square root of the
        number of rows with ``"block"``, as in the paper.
    window : int, default=8
        Steps of ``update="block"`` whose rows are evaluated together, so that old features are
        redrawn once for all of them. It has no influence on the result but by rounding.
    paired : bool, default=True
        Cosine and sine of every random frequency, in place of the paper's random phases.
    orthogonal : bool, default=False
        Orthogonal frequencies, rbf only; see `FeatureStream`.
    n_steps : int, default=None
        Number T of stochastic steps. None means one pass over
        the unlabeled rows, but at least 400. 0 leaves the stochastic stage out.
    batch_size : int, default=256
        Unlabeled rows of a step.
    labeled_batch : int, default=None
        Labeled rows drawn in a step; None takes all of them. Give a number where labels abound.
    learning_rate : {"sqrt", "constant", "horizon", "inverse"}, default="sqrt"
        Step sizes: eta0/(C Σ_L s √t); eta0, which is the paper's 1/η; eta0·T^(−power), the
        paper's θ/T^(3/4) in its theorems; eta0/t.
    eta0 : float, default=None
        Constant of the rule; None means 50, 0.02, 1 and 1.
    power : float, default=0.75
        Of ``"horizon"``.
    max_step : float, default=0.5
        Largest step size.
    average : float, default=0.5
        The mean of this last share of the iterates is taken; 0 takes the last one.
    ramp : float, default=0.5
        C* rises from 0 to its value over this first share of the steps.
    unlabeled_from : {"unlabeled", "all"}, default="unlabeled"
        Whether the rows of a batch are drawn from the unlabeled rows or from all.
    polish : bool, default=True
        Whether L-BFGS goes on with the features of the stochastic steps; not
        with ``update="block"``.
    polish_rows : int, default=10000
        Largest number of unlabeled rows that L-BFGS sees, a random sample; None means all.
    annealing : {"geometric", "paper"} or sequence of float, default="geometric"
        Factors of C* with ``n_steps=0``, see `QNS3VM`. After stochastic steps there is no need.
    tol : float, default=1e-5
        L-BFGS ends when no entry of the gradient of J/(C Σ_L s) with respect to the coefficients
        of the features exceeds this, or this times the mean √k(x, x) where that is below one.
    ftol : float, default=1e-9
        It also ends when an iteration lowers J/(C Σ_L s) by less than this, relative to the larger
        of its value and 1.
    max_iter : int, default=500
        Largest number of iterations of L-BFGS (of a stage).
    memory : int, default=50
        Number of steps that L-BFGS remembers.
    n_jobs : int, default=1
        Number of threads. The result is the same for any number.
    client : dask.distributed.Client, default=None
        The sums of L-BFGS, over all rows, are taken on this cluster, by blocks of rows; the rows
        have to be given as a `numpy.memmap` that all workers can open.
    labeled_kept : int, default=5000
        Labeled rows that `partial_fit` keeps from call to call, the newest ones.
    unlabeled_kept : int, default=2000
        Unlabeled rows that it keeps, the newest ones; they take part in the steps of the next call.
    transduce : bool, default=True
        Whether to evaluate the model on all training rows in the end, which is needed for
        ``transduction_``, for ``objective_`` and for an offset that meets the balance to the last
        digit. Costs one prediction.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows only.
    random_state : int, RandomState instance or None, default=None
        Seed of features and draws.
    verbose : int, default=0
        1 shows a progress bar on stderr in the stochastic stage, and prints one line per stage of
        L-BFGS; 2 also prints about ten lines in the stochastic stage.
    callback : callable, default=None
        Called with a dict about ten times in the stochastic stage (n_iter, step, labeled,
        unlabeled, n_features) and after each stage of L-BFGS (alpha, value, gradient_norm, n_iter,
        n_evaluations); a true value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    feature_coef_ : ndarray of shape (n_problems, T, m)
        Coefficients of T blocks of m features; f(x) = Σ_t Σ_j α_tj φ_tj(x) + b.
    stream_ : FeatureStream
        Where the features come from: ``stream_.block(t)`` draws block t.
    coef_ : ndarray of shape (n_problems, d)
        Weights of the features, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (n_problems,)
        Offsets b.
    squared_norm_ : float or ndarray of shape (n_classes,)
        ‖f‖² in the space of the features.
    gamma_ : float
        The kernel coefficient that was used.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the one found where it was unlabeled.
    objective_ : float or ndarray of shape (n_classes,)
        J at the solution; NaN without ``transduce``.
    problem_ : Problem or list of Problem
        What was minimized, with the values that ``C_star``, ``gamma`` and ``balance`` stood for.
    n_iter_ : int
        Stochastic steps and iterations of L-BFGS together.
    history_ : list
        `Progress` of the stochastic stage, then one `Stage` for each stage of L-BFGS.
    termination_condition_ : str
        Status of the last stage: ``"converged"``, ``"max_iter"`` or ``"no_step"`` (L-BFGS),
        ``"completed"`` (stochastic steps alone) or ``"stopped"`` (by the callback); a list of
        these with more than two classes.
    n_features_in_ : int
        Number of features of the rows.

    See Also
    --------
    FRS3VM : All features from the start.

    Notes
    -----
    Standardize the features. Algorithm 1 to the letter: ``update="block",
    block_size=1, paired=False, batch_size=1, labeled_batch=1, labeled_loss="hinge",
    unlabeled_loss="symmetric_hinge", learning_rate="constant", eta0=1/η, max_step=1, average=0,
    ramp=0, balance=None, fit_intercept=False, polish=False``, with C and C* divided by the numbers
    of rows that the paper's means divide by.

    References
    ----------
    X. Geng, B. Gu, X. Li, W. Shi, G. Zheng and H. Huang, "Scalable semi-supervised SVM via triply
    stochastic gradients", IJCAI 2019, Algorithms 1 and 2; B. Dai, B. Xie, N. He, Y. Liang, A. Raj,
    M.-F. Balcan and L. Song, "Scalable kernel methods via doubly stochastic gradients", NIPS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import TSGS3VM
    >>> X = np.array([[-2.0], [-1.9], [-1.5], [1.4], [1.8], [2.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])
    >>> TSGS3VM(random_state=0).fit(X, y).transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    _parameter_constraints = {
        **RandomFeatureS3VM._parameter_constraints,
        "update": [StrOptions({"all", "block"})],
        "block_size": [COUNT, None],
        "window": [COUNT],
    }
    _largest_n = 1_000_000
    _memory = 'as FRS3VM; block_size × n_steps numbers with update="block"'

    def __init__(
        self,
        *,
        C: float = 1.0,
        C_star: Literal["paper"] | float | None = None,
        kernel: Literal["rbf", "laplacian", "poly", "linear"] = "rbf",
        gamma: Literal["scale", "auto"] | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        sigma_f: float = 1.0,
        labeled_loss: str = "modified_logistic",
        sharpness: float = 20.0,
        unlabeled_loss: str = "gaussian",
        s: float | None = None,
        balance: Literal["labels"] | float | None = "labels",
        balance_penalty: float | None = None,
        fit_intercept: bool = True,
        update: Literal["all", "block"] = "all",
        n_features: int = 1024,
        block_size: int | None = None,
        window: int = 8,
        paired: bool = True,
        orthogonal: bool = False,
        n_steps: int | None = None,
        batch_size: int = 256,
        labeled_batch: int | None = None,
        learning_rate: Literal["sqrt", "constant", "horizon", "inverse"] = "sqrt",
        eta0: float | None = None,
        power: float = 0.75,
        max_step: float = 0.5,
        average: float = 0.5,
        ramp: float = 0.5,
        unlabeled_from: Literal["unlabeled", "all"] = "unlabeled",
        polish: bool = True,
        polish_rows: int = 10_000,
        annealing: Literal["geometric", "paper"] | Sequence[float] = "geometric",
        tol: float = 1e-5,
        ftol: float = 1e-9,
        max_iter: int = 500,
        memory: int = 50,
        n_jobs: int = 1,
        client: Any | None = None,
        labeled_kept: int = 5000,
        unlabeled_kept: int = 2000,
        transduce: bool = True,
        class_weight: Literal["balanced"] | dict | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        callback: Callable | None = None,
    ) -> None:
        self.C = C
        self.C_star = C_star
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.sigma_f = sigma_f
        self.labeled_loss = labeled_loss
        self.sharpness = sharpness
        self.unlabeled_loss = unlabeled_loss
        self.s = s
        self.balance = balance
        self.balance_penalty = balance_penalty
        self.fit_intercept = fit_intercept
        self.update = update
        self.n_features = n_features
        self.block_size = block_size
        self.window = window
        self.paired = paired
        self.orthogonal = orthogonal
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.labeled_batch = labeled_batch
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power = power
        self.max_step = max_step
        self.average = average
        self.ramp = ramp
        self.unlabeled_from = unlabeled_from
        self.polish = polish
        self.polish_rows = polish_rows
        self.annealing = annealing
        self.tol = tol
        self.ftol = ftol
        self.max_iter = max_iter
        self.memory = memory
        self.n_jobs = n_jobs
        self.client = client
        self.labeled_kept = labeled_kept
        self.unlabeled_kept = unlabeled_kept
        self.transduce = transduce
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _block_size(self, n):
        if self.block_size is not None:
            return self.block_size
        return min(64, self.n_features) if self.update == "all" else math.ceil(math.sqrt(n))

    def _n_blocks(self, stream):
        return 1 if self.kernel == "linear" else math.ceil(self.n_features / stream.block_size)

    def _planned(self, one_pass):
        return max(_FEWEST_STEPS, one_pass)

    def _polishes(self, schedule):
        return super()._polishes(schedule) and (self.update == "all" or schedule.n_steps == 0)

    def _run(self, X, t, weight, problem, stream, schedule, seed, start=None, tick=None):
        options = dict(
            seed=seed,
            unlabeled_from=self.unlabeled_from,
            start=start,
            n_jobs=self.n_jobs,
            callback=self._report_stage,
            tick=tick,
        )
        if self.update == "block":
            return solve_triply_stochastic(X, t, weight, problem, stream, schedule, **options)
        n_blocks = self._n_blocks(stream)
        return solve_stored(X, t, weight, problem, stream, n_blocks, schedule, growth=1, **options)
