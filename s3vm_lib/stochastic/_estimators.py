"""The estimators `FRS3VM` and `TSGS3VM`."""

import math
from typing import Literal

from s3vm_lib.stochastic._common import RandomFeatureS3VM
from s3vm_lib.stochastic._parameters import Features
from s3vm_lib.stochastic._triply import solve_triply_stochastic
from s3vm_lib.utils.validation import parameters

_BLOCK = 256  # features of one block of FRS3VM
_FEWEST_STEPS = 400


@parameters
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
    gamma : {"scale", "variance", "auto"} or float, default="scale"
        Kernel coefficient of rbf, laplacian and poly, see `resolve_gamma`.
    degree : int, default=3
        Degree of the polynomial kernel, at most 30.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, non-negative.
    sigma_f : float, default=1.0
        Output standard deviation: kernels are multiplied by its square.
    labeled_loss : {"modified_logistic", "hinge", "squared_hinge", "smooth_hinge", "logistic"} or \
LabeledLoss, default="modified_logistic"
        Loss ℓ of labeled rows. L-BFGS wants a smooth one; the paper has the hinge. An object
        says the parameter too: ``LabeledLoss("modified_logistic", 100.0)`` in place of a sharpness
        of 20, with which ℓ differs from the hinge by at most log(2)/20.
    unlabeled_loss : {"gaussian", "symmetric_hinge", "squared_symmetric_hinge", \
"symmetric_ramp"}, default="gaussian"
        Loss u of unlabeled rows.
    s : float, default=None
        The Gaussian loss is exp(−s f²), and the ramp ends at s. None means 3 and −0.3; the paper
        has 5 for the Gaussian.
    balance : "auto", "labels", another name, float, dict or None, default="auto"
        Share r of the class ``classes_[1]`` among the unlabeled rows: estimated from labels and
        unlabeled rows together, by the share among the labeled rows (as always in
        ``partial_fit``), in another way that `s3vm_lib.class_ratio` has a name for, given (in a
        dict for each class), or not used. It fixes the mean output, or enters the stochastic steps
        as a penalty (`Schedule`). Where classes are very unequal, the mean output is a poor
        stand-in for the share, and None is often better.
    fit_intercept : bool, default=True
        Whether there is an offset b. It follows from the balance where that is exact, and is
        regularized, ½b², otherwise: the kernel then is k + 1.
    n_features : int, default=1024
        Number D of features, raised a little so that blocks of at most 256 have one size.
    features : Features, default=None
        How they are drawn: in pairs or with phases, orthogonal or not. None means `Features()`.
    n_steps : int, default=None
        Number T of stochastic steps. None means one pass over the unlabeled rows, but at least 400
        and at most 2000. 0 leaves the stochastic stage out.
    schedule : Schedule, default=None
        How the steps are taken: batches, step sizes, mean of the iterates. None means `Schedule()`.
    polish : bool or Polish, default=True
        Whether and how L-BFGS goes on with the features of the stochastic steps; True
        means `Polish()`. With ``n_steps=0`` L-BFGS is the whole fit, and False means the same.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
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
    class_ratio_ : ndarray of shape (n_classes,), or None
        Shares of the classes among the unlabeled rows, as ``balance`` gave them, after
        ``partial_fit`` from all rows so far; None without.
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
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features of the rows.

    See Also
    --------
    TSGS3VM : Features that grow with the steps.
    Features, Schedule, Polish : Parameters in groups, in `s3vm_lib.stochastic`.
    QNS3VM : The same objective with the kernel itself.

    Notes
    -----
    It should not be used with the linear kernel where one class is rare, fewer than one row in
    five: on such sets of the book's comparison it is much worse than `SVM`. Where the classes have
    no gap between them it is also worse, with any kernel. There `S3VC` lets held-out labels
    weigh it against an `SVM`.

    Standardize the features. Of the stochastic steps nothing converges in the sense of a
    tolerance: a planned number is taken, and with ``polish=False`` the status is ``"completed"``.

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
    >>> model = FRS3VM(random_state=0).fit(X, y)
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    _largest_n = 1_000_000
    _memory = "D numbers; (labeled + batch + polish rows) × D while fitting"

    def _n_blocks(self, stream=None):
        return 1 if self.kernel == "linear" else math.ceil(self.n_features / _BLOCK)

    def _block_size(self, n):
        for name in ("block_size", "window"):
            given = getattr(self._features, name)
            if given != getattr(Features, name):
                raise ValueError(
                    f"features must leave {name} as it is with FRS3VM, which has all features from "
                    f"the start; got {name}={given}"
                )
        return math.ceil(self.n_features / self._n_blocks())

    def _planned(self, one_pass):
        return min(max(_FEWEST_STEPS, one_pass), 2000)


@parameters
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
    gamma : {"scale", "variance", "auto"} or float, default="scale"
        Kernel coefficient of rbf, laplacian and poly, see `resolve_gamma`.
    degree : int, default=3
        Degree of the polynomial kernel, at most 30.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, non-negative.
    sigma_f : float, default=1.0
        Output standard deviation: kernels are multiplied by its square.
    labeled_loss : {"modified_logistic", "hinge", "squared_hinge", "smooth_hinge", "logistic"} or \
LabeledLoss, default="modified_logistic"
        Loss ℓ of labeled rows. L-BFGS wants a smooth one; the paper has the hinge. An object
        says the parameter too: ``LabeledLoss("modified_logistic", 100.0)`` in place of a sharpness
        of 20, with which ℓ differs from the hinge by at most log(2)/20.
    unlabeled_loss : {"gaussian", "symmetric_hinge", "squared_symmetric_hinge", \
"symmetric_ramp"}, default="gaussian"
        Loss u of unlabeled rows.
    s : float, default=None
        The Gaussian loss is exp(−s f²), and the ramp ends at s. None means 3 and −0.3; the paper
        has 5 for the Gaussian.
    balance : "auto", "labels", another name, float, dict or None, default="auto"
        Share r of the class ``classes_[1]`` among the unlabeled rows: estimated from labels and
        unlabeled rows together, by the share among the labeled rows (as always in
        ``partial_fit``), in another way that `s3vm_lib.class_ratio` has a name for, given (in a
        dict for each class), or not used. It fixes the mean output, or enters the stochastic steps
        as a penalty (`Schedule`). Where classes are very unequal, the mean output is a poor
        stand-in for the share, and None is often better.
    fit_intercept : bool, default=True
        Whether there is an offset b. It follows from the balance where that is exact, and is
        regularized, ½b², otherwise: the kernel then is k + 1.
    update : {"all", "block"}, default="all"
        See above.
    n_features : int, default=1024
        Number of features in the end with ``update="all"``. With ``"block"`` it has no bound:
        block_size times n_steps.
    features : Features, default=None
        How they are drawn: in pairs or with phases, orthogonal or not, how many in a block. None
        means `Features()`.
    n_steps : int, default=None
        Number T of stochastic steps. None means one pass over the unlabeled rows, but at least
        400. 0 leaves the stochastic stage out.
    schedule : Schedule, default=None
        How the steps are taken: batches, step sizes, mean of the iterates. None means `Schedule()`.
    polish : bool or Polish, default=True
        Whether and how L-BFGS goes on with the features of the stochastic steps, not with
        ``update="block"``; True
        means `Polish()`. With ``n_steps=0`` L-BFGS is the whole fit, and False means the same.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
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
    class_ratio_ : ndarray of shape (n_classes,), or None
        Shares of the classes among the unlabeled rows, as ``balance`` gave them, after
        ``partial_fit`` from all rows so far; None without.
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
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features of the rows.

    See Also
    --------
    FRS3VM : All features from the start.
    Features, Schedule, Polish : Parameters in groups, in `s3vm_lib.stochastic`.

    Notes
    -----
    It should not be used with the linear kernel where one class is rare, fewer than one row in
    five: on such sets of the book's comparison it is much worse than `SVM`. Where the classes have
    no gap between them, or several clusters each, it is also worse, with the rbf kernel as well.
    There `S3VC` lets held-out labels weigh it against an `SVM`.

    Standardize the features. Algorithm 1 to the letter: ``update="block",
    features=Features(block_size=1, paired=False), labeled_loss="hinge",
    unlabeled_loss="symmetric_hinge", schedule=Schedule(batch_size=1, labeled_batch=1,
    rule="constant", eta0=1/η, max_step=1, average=0, ramp=0), balance=None, fit_intercept=False,
    polish=False``, with C and C* divided by the numbers of rows that the paper's means divide by.

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
    >>> model = TSGS3VM(random_state=0).fit(X, y)
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    update: Literal["all", "block"] = "all"

    _largest_n = 1_000_000
    _memory = 'as FRS3VM; block_size × n_steps numbers with update="block"'
    _growth = 1

    def _block_size(self, n):
        if self._features.block_size is not None:
            return self._features.block_size
        return min(64, self.n_features) if self.update == "all" else math.ceil(math.sqrt(n))

    def _n_blocks(self, stream):
        return 1 if self.kernel == "linear" else math.ceil(self.n_features / stream.block_size)

    def _planned(self, one_pass):
        return max(_FEWEST_STEPS, one_pass)

    def _polishes(self, n_steps):
        return super()._polishes(n_steps) and (self.update == "all" or n_steps == 0)

    def _run(self, X, t, weight, problem, stream, n_steps, schedule, **options):
        if self.update == "all":
            return super()._run(X, t, weight, problem, stream, n_steps, schedule, **options)
        options["window"] = int(self._features.window)
        return solve_triply_stochastic(X, t, weight, problem, stream, n_steps, schedule, **options)
