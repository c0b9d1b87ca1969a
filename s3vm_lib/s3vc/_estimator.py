"""The estimator `S3VC`."""

import functools
import time
from numbers import Real
from typing import Annotated, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from s3vm_lib import safe
from s3vm_lib.base.classifier import Balance
from s3vm_lib.base.findings import given, label_finding, share_finding, spared, warn, warn_of_time
from s3vm_lib.base.machine import SemiSupervisedMixin
from s3vm_lib.kernels import Kernel, resolve_gamma
from s3vm_lib.laplacian_svm import LapSVM
from s3vm_lib.quasi_newton import QNS3VM

from s3vm_lib.s3vc._committee import (  # isort: skip
    Candidate, asked_shares, described, fit_one, join, kernel_candidates, held_out_folds,
    margins, null_of, outputs, part_of, ramp, rank_of, rows_of, unlabeled_components, weights,
)  # fmt: skip
from s3vm_lib.smo import SVM
from s3vm_lib.smooth import Coordinates
from s3vm_lib.utils.labels import Labels
from s3vm_lib.utils.limits import RandomState, Scale, Verbosity, Weight
from s3vm_lib.utils.shortcuts import checked_new_rows
from s3vm_lib.utils.threads import using, with_threads
from s3vm_lib.utils.validation import (
    Estimator,
    Jobs,
    Rows,
    checked_input,
    parameters,
    validated_inside,
)

UNLIKE = 10.0  # ratio of standard deviations from which columns are not of one unit
COSTS = 1.0, 10.0
WIDTHS = 0.25, 1.0, 4.0  # multiples of gamma
LESS = 1.0  # p of the supervised machines and of the narrowest kernel
LEVEL = 0.9  # of the interval of the expected error
_BINOMIAL_LEVEL = 0.95  # of the binomial interval that has this level in trials
RARE = 0.25  # share of one of two classes below which the share of positive outputs is held
SHARE_TOL = 0.01  # of this share
_LEAST_SURE = 5  # rows that the summary names
_UNLIKE_PREDICT = 0.2  # share of rows whose most probable class may be another than predict's


def rarest_share(balance):
    """Return the smaller share of two classes, 0 where none is given."""
    if isinstance(balance, dict):
        return min(balance.values())
    return min(balance, 1 - balance) if isinstance(balance, Real) else 0.0


def _wants_probability(estimator):
    if not estimator.probability:
        raise AttributeError("predict_proba needs a fit with probability=True, got False")
    return True


@parameters
class S3VC(SemiSupervisedMixin, MetaEstimatorMixin, BaseEstimator):
    """Semi-supervised support vector classifier: machines that differ in kind, and their vote.

    It scales columns of different units, estimates the class ratio, fits linear and kernel
    machines with and without the unlabeled rows, and lets them vote. A vote weighs the more, the
    fewer labels the machine gets wrong that were held out from it; where there are few labels, the
    more the wider the gap that it found among the unlabeled rows. `summary` reports in words and
    numbers what was compared, which error to expect, and of which rows the vote is least sure.

    Parameters
    ----------
    C : "auto" or float, default="auto"
        Weight of the labeled losses. ``"auto"`` is 10; a linear `QNS3VM` and an `SVM` with the rbf
        kernel vote with 1, too. With a ``solver`` of one's own it is the C of that.
    C_star : float, default=None
        Weight of the unlabeled losses. None gives both parts equal total weight.
    kernel : {"auto", "linear", "poly", "rbf", "laplacian", "precomputed"}, default="auto"
        ``"auto"`` is linear, and rbf with a quarter, one and four times ``gamma``: each has its
        machine. With a ``solver`` of one's own ``"auto"`` is its kernel, and others but
        ``"linear"`` need a solver that has one.
    gamma : {"scale", "variance", "auto"} or float, default="scale"
        Kernel coefficient, see `resolve_gamma`.
    scale : {"auto", True, False}, default="auto"
        Whether columns are brought to mean 0 and variance 1. ``"auto"`` does it to dense rows whose
        columns have standard deviations that differ by more than a factor of ten, or means that
        differ by more than ten deviations: within that they may well have one unit, and then the
        larger ones often are what matters.
    solver : "auto" or estimator, default="auto"
        ``"auto"`` is `QNS3VM` (with ``tol=1e-3`` and ``ftol=1e-6``; with a kernel in 100 to 200
        coordinates; the linear one of two classes with ``reconsider=True``), and with more than two
        classes also `LapSVM` on a normalized graph. `QNS3VM` holds the mean output where both of
        two classes have a share of a quarter or more, and otherwise the share of positive outputs
        (``balance_tol=0.01``): with the mean output, a linear machine starves a rare class. Another
        estimator keeps its own parameters, except for those that are given here with another value
        than their default, which it must have; it votes beside the supervised machine alone.
    balance : "auto", "labels", another name, float, dict or None, default="auto"
        Share of the classes among the unlabeled rows, see `s3vm_lib.class_ratio`; a dict has the
        share of each class label. A name is asked once, with the widest kernel.
    class_weight : dict or "balanced", default=None
        Factors of the labeled losses of each class label, in every machine; ``"balanced"`` gives
        all classes equal total weight. The held-out labels count alike.
    guard : bool, default=True
        Whether supervised machines vote, too, and the best of them is kept where the vote
        contradicts more of the labels than it does, by more than one label and 2 %.
    vote : bool, default=True
        False takes the machine with the largest weight alone, which can be exported.
    max_seconds : float, default=None
        Begin no further machine after so many seconds of wall time; ``left_out_`` names what was
        left out. At least one machine is fitted. None is no limit.
    probability : bool, default=False
        Whether `predict_proba` is wanted. Each class needs two labeled rows.
    random_state : int, RandomState instance or None, default=None
        Folds of the labels, and the solver where it draws numbers.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores.
        Estimators inside have their own, or else this one. The result is the same for any number.
    verbose : int, default=0
        Say what is fitted, and print the summary after a fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the one found where it was unlabeled.
    confidence_ : ndarray of shape (n,)
        By how much the votes for the class of a training row exceed those for the next one, between
        0 and 1.
    unreached_ : ndarray of int
        Unlabeled rows from which no path in the graph of five nearest neighbors leads to a label,
        among at most 2,000 rows that are compared. They may be of a class without labels. Empty
        where there are so many labels that some are not compared.
    expected_error_ : float
        Share of the held-out labels on which the vote is wrong; NaN where none was held out. The
        weights of the vote on a label do not depend on that label.
    expected_error_interval_ : tuple of two floats
        A 90 % interval for labels that are a random sample: Clopper and Pearson's of 95 %, a level
        chosen on tuning sets. On other sets it held the error in 85 to 90 % of fits, and their
        exact 90 % interval in 75 to 87 % (benchmark ``coverage``).
    members_ : list of Member
        The machines, with the losses on held-out labels and the penalties that their weights stand
        for.
    weights_ : ndarray of shape (n_members,)
        Weights of their votes.
    left_out_ : list of str
        What ``max_seconds`` left no time for.
    model_ : estimator
        The machine with the largest weight, fitted to scaled rows and class indices.
    kernel_, C_ : str, float or None
        Its kernel and C.
    solver_ : estimator
        The same, not fitted.
    scaler_ : StandardScaler or None
        What was done to the columns.
    class_ratio_ : ndarray of shape (n_classes,), or None
        Shares of the classes that the heaviest semi-supervised machine was given.
    kept_supervised_ : bool
        Whether supervised machines have more than half of the vote.
    wrong_labels_ : dict of str to int
        Labels of the training rows that the ``"vote"`` and the best ``"supervised"`` machine
        contradict.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    SafeS3VM : A guard around one solver, by held-out labels and a pool of labelings.
    SVM : The supervised machine.

    Notes
    -----
    A vote is tanh(2 f / s), where s is the median difference of the two largest outputs over the
    unlabeled rows. Its weight is exp(−L − g − p) with the ramp losses L of held-out labels and
    p = 1 for supervised machines and for the narrowest kernel, else 0. With two classes g is the
    gap against structureless rows (of dense rows), and eight times what the share of contradicted
    labels exceeds .15 by. The machines, p and the rule were chosen on the tuning sets of the
    library's comparison.

    With more than 2,000 rows labels are held out from machines of 2,000 of them; with more than
    500 labels 500 are held out. Probabilities are a logistic regression on held-out votes. They
    assume the class shares of the labels, and `predict` does not: near the boundary the most
    probable class may be another.

    References
    ----------
    V. Vovk, "Aggregating strategies", COLT 1990.

    Examples
    --------
    >>> from s3vm_lib import S3VC
    >>> from s3vm_lib.datasets import hide_labels, make_moons
    >>> X, truth = make_moons(400, random_state=0)
    >>> new, truth_of_new = X[300:], truth[300:]
    >>> y = hide_labels(truth[:300], 20, random_state=0)
    >>> model = S3VC(random_state=0).fit(X[:300], y)
    >>> model.predict(new[:3]).tolist(), model.score(new, truth_of_new) > 0.9
    ([1, 0, 1], True)
    """

    C: Literal["auto"] | Weight = "auto"
    C_star: Weight | None = None
    kernel: Literal["auto", "linear", "poly", "rbf", "laplacian", "precomputed"] = "auto"
    gamma: Literal["scale", "variance", "auto"] | Scale = "scale"
    scale: Literal["auto"] | bool = "auto"
    solver: Literal["auto"] | Estimator = "auto"
    balance: Balance = "auto"
    class_weight: Literal["balanced"] | dict | None = None
    guard: bool = True
    vote: bool = True
    max_seconds: Annotated[float, Interval(Real, 0, 1e9, closed="both")] | None = None
    probability: bool = False
    random_state: RandomState = None
    n_jobs: Jobs = None
    verbose: Verbosity = 0

    _largest_n = 1_000_000
    _memory = "8 n rank bytes for one kernel at a time, and the models"

    @validated_inside
    def fit(
        self,
        X: Rows,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        unlabeled_mask: ArrayLike | None = None,
    ) -> Self:
        """Choose, fit and guard.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Training rows, labeled and unlabeled; the n × n Gram matrix with
            ``kernel="precomputed"``.
        y : array-like of shape (n,)
            Labels; −1 marks unlabeled rows, and so do missing labels (None, NaN, pandas.NA).
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights of labeled and unlabeled rows.
        unlabeled_mask : array-like of bool, shape (n,), default=None
            True for unlabeled rows. With it −1 is a label like any other.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            When fewer than two classes are labeled, when a parameter or an input is not valid, or
            when ``solver`` cannot take the kernel or another parameter that is given here, or
            ``probability`` these rows or weights.
        """
        with using(self.n_jobs):
            return self._fit(X, y, sample_weight, unlabeled_mask)

    def _fit(self, X, y, sample_weight, unlabeled_mask):
        begun = time.perf_counter()
        X, codes, weight = checked_input(self, X, y, sample_weight, unlabeled_mask)
        if unlabeled_mask is None:
            self._warn_of_no_unlabeled(codes)
        safe.refuse_without_labels("solver", self.solver, type(self).__name__)
        warn_of_time(self, codes.size, 4)
        labels = self._label_counts(codes, weight)
        if self.probability:
            self._check_probability(labels)
        self._said = []
        X = self._scaled(X, weight)
        data = safe.Sample(X, codes, weight)
        random_state = check_random_state(self.random_state)
        asked = codes if weight is None else np.where(weight > 0, codes, -1)
        folds = held_out_folds(asked, random_state)
        rows = part_of(data, folds, random_state)
        part = rows_of(data, rows, self._precomputed)
        self.members_, self.left_out_ = [], []
        for name, made in self._candidates(data, part, random_state):
            if self.members_ and self._late(begun):
                self.left_out_.append(name)
                continue
            if self.verbose:
                print(f"S3VC: {name}", flush=True)
            self.members_ += [join(candidate, data, rows, part, folds) for candidate in made()]
        self.weights_ = weights([member.penalty for member in self.members_])
        if not self.vote:
            self.weights_ = np.eye(self.weights_.size)[self.weights_.argmax()]
        self._known = self.members_[0].known
        self._guard(data, np.flatnonzero(asked >= 0))
        best = self.members_[self.weights_.argmax()]
        self.model_, self.solver_ = best.model, self._on_labels(best.model)
        gram = "precomputed" if self._precomputed else "linear"
        self.kernel_ = getattr(best.model, "kernel", gram)
        self.C_ = getattr(best.model, "C", None)
        self._report_members(codes)
        self._report_shares(codes, weight)
        votes = self._votes(X)
        found = np.where(codes >= 0, codes, votes.argmax(axis=1))
        self.transduction_ = self.classes_[found]
        self.confidence_ = margins(votes) / 2
        self._report_errors(data, votes)
        self._report_unreached(rows, part, np.sum(asked >= 0))
        every = np.ones(codes.size) if weight is None else weight
        share = share_finding(codes, every, found, self.classes_, self.class_ratio_)
        own = {**getattr(best.model, "findings_", {}), "share": share}
        if self.weights_.max() < 1:  # what a machine contradicts the others may outvote
            own["labels"] = None if self.guard else self._contradicted(data, asked, votes)
        self.findings_ = given(**own)
        self._calibrated = None
        if self.probability:
            self._calibrate(data, votes)
        self._said += [f"Warning: it {text}." for text in self.findings_.values()]
        warn(type(self).__name__, self.findings_, 4)
        if self.verbose:
            print(self.summary())
        return self

    def _late(self, begun):
        return self.max_seconds is not None and time.perf_counter() - begun > self.max_seconds

    @property
    def _precomputed(self):
        if self.kernel == "auto" and not isinstance(self.solver, str):
            return get_tags(self.solver).input_tags.pairwise
        return self.kernel == "precomputed"

    # What is refused, in the words of this estimator: inside, classes are numbers -----------------

    def _label_counts(self, codes, weight):
        """Count the labeled rows of positive weight of each class, shape (n_classes,)."""
        labeled = codes >= 0 if weight is None else (codes >= 0) & (weight > 0)
        counts = np.bincount(codes[labeled], minlength=self.classes_.size)
        if not counts.all():
            raise ValueError(
                "sample_weight must be positive for a labeled row of every class, got 0 for all of "
                f"the classes {self.classes_[counts == 0].tolist()}"
            )
        return counts

    def _check_probability(self, labels):
        """Refuse what leaves no held-out labels of some class, before anything is fitted."""
        if labels.min() < 2:
            raise ValueError(
                "y must hold two labeled rows or more of every class with probability=True, got "
                f"one of {self.classes_[labels < 2].tolist()}"
            )

    # What is chosen ------------------------------------------------------------------------------

    def _scaled(self, X, weight):
        """Return X with columns scaled to variance 1 if ``scale`` requires it."""
        self.scaler_ = None
        if self._precomputed:
            return X
        if sp.issparse(X):
            if self.scale and self.scale != "auto":
                raise ValueError("scale must be 'auto' or False with sparse rows, got True")
            self._said.append("Sparse rows stay as they are.")
            return X
        scaler = StandardScaler().fit(X, sample_weight=weight)
        deviation = np.sqrt(scaler.var_[scaler.var_ > 0])
        ratio = deviation.max() / deviation.min() if deviation.size else 1.0
        spread = np.mean(deviation**2) if deviation.size else 0.0
        apart = np.sqrt(np.var(scaler.mean_) / spread) if spread > 0 else 0.0
        unlike = ratio > UNLIKE or apart > UNLIKE
        wanted = unlike if self.scale == "auto" else self.scale
        self._said.append(
            f"The standard deviations of the columns differ by a factor of {ratio:.3g}, their "
            f"means by {apart:.3g} of such deviations: they "
            f"{'were scaled to 1' if wanted else 'stay as they are'}."
        )
        if not wanted:
            return X
        self.scaler_ = scaler
        return scaler.transform(X)

    def _candidates(self, data, part, random_state):
        """List names, and functions that yield candidates for the vote; cheap ones first."""
        unlabeled = data.codes < 0
        if data.sample_weight is not None:
            unlabeled = unlabeled & (data.sample_weight > 0)
        semi = bool(unlabeled.any())
        if self.solver != "auto":
            return self._around_solver(data, semi)
        costs = COSTS if self.C == "auto" else (float(self.C),)
        two = self.classes_.size == 2
        supervised, others, kernels = [], [], self._kernels(data)
        widest = kernels[1 if len(kernels) > 1 else 0][0]
        solver = self._solver(part, widest, costs[-1], rank_of(data.codes))
        gram = self._precomputed
        null = functools.cache(lambda: None if gram else null_of(part, random_state))
        for kernel, width in kernels:
            if width == 1.0 and (self.guard or not semi):
                own = SVM(kernel=kernel.name, gamma=kernel.gamma, class_weight=self.class_weight)
                own = safe.on_codes(own, self.classes_)
                for C in costs[-1:] if kernel.name == "linear" else costs[::-1]:
                    name, machine = f"SVM(C={C:g}, {described(kernel)})", clone(own).set_params(C=C)
                    alone = [Candidate(name, machine, True, LESS)]
                    supervised.append((name, functools.partial(iter, alone)))
            if semi:
                several = costs if kernel.name == "linear" and two else costs[-1:]
                name = f"QNS3VM({described(kernel)})"
                prior = LESS * (width > 1)
                made = self._semi_supervised(kernel, several, prior, solver, part, null)
                others.append((name, made))
        if semi and self.classes_.size > 2 and self.kernel == "auto":
            others.append(("LapSVM", lambda: [self._graph_machine(data, costs[-1])]))
        return supervised + others

    def _kernels(self, data):
        """Return kernels with multiples of gamma; the one that is given alone."""
        if self.kernel == "precomputed":
            return [(Kernel(self.kernel), 1.0)]
        gamma = float(resolve_gamma(self.gamma, data.X, data.sample_weight))
        if self.kernel != "auto":
            return [(Kernel(self.kernel, gamma), 1.0)]
        widths = [(Kernel("rbf", gamma=width * gamma), width) for width in WIDTHS]
        if self.classes_.size > 2:  # a separator for each takes longest
            widths = widths[:2]
        return [(Kernel("linear"), 1.0), *widths]

    def _solver(self, part, kernel, C, rank):
        """Return a function for `QNS3VM` without its kernel; the first call asks for the shares."""
        two = self.classes_.size == 2
        own = {"C_star": self.C_star, "balance": self.balance, "class_weight": self.class_weight}
        own["coordinates"] = Coordinates("cholesky", rank=rank)
        solver = QNS3VM(C=C, balance_tol=SHARE_TOL, reconsider=two, **own, **safe.QUICK)
        solver = safe.on_codes(solver, self.classes_)

        @functools.cache
        def told():
            balance = asked_shares(solver, kernel, part)
            mean = two and rarest_share(balance) >= RARE
            return solver.set_params(balance=balance, balance_tol=None if mean else SHARE_TOL)

        return told

    def _semi_supervised(self, kernel, costs, prior, solver, part, null):
        own = {"kernel": kernel.name, "gamma": kernel.gamma}
        if kernel.name == "linear":
            own["coordinates"] = "cholesky"
        else:  # a second separator gains nothing
            own["reconsider"] = False

        def made():
            machine = clone(solver()).set_params(**own)
            for candidate in kernel_candidates(kernel, costs, machine, part, null()):
                yield candidate._replace(prior=prior)

        return made

    def _on_labels(self, model):
        """Copy a machine, not fitted; what its parameters give by class index goes by label."""
        named = {
            name: {self.classes_[k]: value for k, value in one.items()}
            for name, one in model.get_params(deep=False).items()
            if name in ("balance", "class_weight") and isinstance(one, dict)
        }
        return clone(model).set_params(**named)

    def _graph_machine(self, data, C):
        every = np.ones(data.codes.size) if data.sample_weight is None else data.sample_weight
        gamma = float(resolve_gamma(self.gamma, data.X, data.sample_weight))
        mass = float(every[data.codes >= 0].sum())
        model = LapSVM(C=C, C_graph=10 * C * mass, gamma=gamma, normalized=True)
        model = safe.on_codes(model.set_params(class_weight=self.class_weight), self.classes_)
        return Candidate(f"LapSVM(C={C:g}, normalized=True)", model, False)

    def _around_solver(self, data, semi):
        """The solver of one's own, and the supervised machine beside it."""
        solver = safe.on_codes(self._own_solver(), self.classes_)
        name, found = type(solver).__name__, []
        if self.guard or not semi:
            baseline = safe.default_baseline(solver)
            found.append(("SVM", lambda: [Candidate("SVM", baseline, True, LESS)]))
        if semi:
            solver = safe.with_shares(solver, data)
            found.append((name, lambda: [Candidate(name, solver, False)]))
        return found

    def _own_solver(self):
        """Return the solver that was given, with what is given here beside it."""
        solver, default = self.solver, type(self)().get_params()
        if self.kernel not in ("auto", "linear") and not hasattr(solver, "kernel"):
            raise ValueError(
                f"kernel must be 'auto' or 'linear' with solver={type(solver).__name__}, "
                f"which has no parameter kernel, got {self.kernel!r}"
            )
        names = ("C", "C_star", "kernel", "gamma", "balance", "class_weight", "random_state")
        mine = {n: getattr(self, n) for n in names if getattr(self, n) != default[n]}
        known = solver.get_params()
        for name in mine.keys() - known.keys() - {"kernel", "random_state"}:
            raise ValueError(
                f"{name} must be {default[name]!r} with solver={type(solver).__name__}, which has "
                f"no parameter {name}, got {mine[name]!r}"
            )
        return clone(solver).set_params(**{n: v for n, v in mine.items() if n in known})

    # How the votes are counted --------------------------------------------------------------------

    def _guard(self, data, labeled):
        """Keep the best supervised machine where the vote contradicts more labels than it does."""
        supervised = [j for j, member in enumerate(self.members_) if member.supervised]
        self.wrong_labels_ = {"vote": self._wrong(data, labeled, self.weights_)}
        self._fell_back = False
        if self.guard and supervised:
            best = min(supervised, key=lambda j: self.members_[j].penalty)
            alone = np.eye(self.weights_.size)[best]
            self.wrong_labels_["supervised"] = self._wrong(data, labeled, alone)
            most = self.wrong_labels_["supervised"] + spared(labeled.size)
            if self.wrong_labels_["vote"] > most:
                self.weights_, self._fell_back = alone, True
        self.kept_supervised_ = bool(self.weights_[supervised].sum() > 0.5)

    def _contradicted(self, data, asked, votes):
        """Compare labels that the vote contradicts with those that a supervised machine does."""
        rows = np.flatnonzero(asked >= 0)

        def supervised():
            model = fit_one(safe.default_baseline(self.solver_), data, True)
            return int(np.sum(model.predict(data.X[rows]) != asked[rows]))

        return label_finding(asked, votes.argmax(axis=1), supervised)

    def _wrong(self, data, rows, weight):
        return int(np.sum(self._votes(data.X[rows], weight).argmax(axis=1) != data.codes[rows]))

    def _votes(self, X, weight=None):
        """Return the weighted votes for each class, shape (m, n_classes)."""
        weight, n = self.weights_ if weight is None else weight, self.classes_.size
        pairs = zip(weight, self.members_, strict=True)
        return sum(w * m.votes(outputs(m.model, X, n)) for w, m in pairs if w > 0)

    def _held_out_votes(self, codes):
        """Return the votes on labels that were held out; each weighs the others, not itself."""
        own = [ramp(margins(m.held_out, codes[self._known]), m.scale) for m in self.members_]
        penalties = np.array([m.penalty for m in self.members_])[:, None] - own
        w = np.exp(penalties.min(axis=0) - penalties)
        if not self.vote or self._fell_back:
            w = np.tile(self.weights_[:, None], (1, self._known.size))
        votes = [m.votes(m.held_out) for m in self.members_]
        return np.einsum("jk,jkc->kc", w / w.sum(axis=0), votes)

    def _calibrate(self, data, votes):
        """Fit the map from votes to probabilities on labels that were held out."""
        codes, known = data.codes, self._known
        weight = None if data.sample_weight is None else data.sample_weight[known]
        columns = slice(1, 2) if self.classes_.size == 2 else slice(None)
        self._calibrated = LogisticRegression(C=1.0, max_iter=1000)
        self._calibrated.fit(self._held_out_votes(codes)[:, columns], codes[known], weight)
        chances = self._calibrated.predict_proba(votes[:, columns])
        other = np.mean(chances.argmax(axis=1) != votes.argmax(axis=1))
        if other > _UNLIKE_PREDICT:
            self.findings_["probability"] = (
                f"gives {other:.0%} of the rows another most probable class than predict: "
                "there are too few labels, or their class shares are not those of all rows"
            )
        self._said.append(
            f"On {other:.1%} of the rows the most probable class is not that of predict: the "
            "probabilities assume the class shares of the labels."
        )

    # The report ----------------------------------------------------------------------------------

    def _report_members(self, codes):
        """Report what was compared, and what the votes weigh."""
        labeled, n = codes >= 0, self._known.size
        counts = np.bincount(codes[labeled]).tolist()
        shown = ", ".join(f"{k} of class {c}" for k, c in zip(counts, self.classes_, strict=True))
        self._said.append(f"{shown} are labeled, {np.sum(~labeled)} rows are not.")
        for j in np.argsort(-self.weights_, kind="stable"):
            member = self.members_[j]
            told = f", wrong on {member.wrong} of {n} held-out labels" if n else ""
            kind = "labeled rows alone" if member.supervised else "all rows"
            self._said.append(
                f"{member.name}, fitted to {kind}, has {self.weights_[j]:.0%} of the vote{told}."
            )
        if not n:
            self._said.append("No label can be held out: each class has one of positive weight.")
        if self._fell_back:
            self._said.append(
                f"The vote contradicts {self.wrong_labels_['vote']} of the labels, the supervised "
                f"machine {self.wrong_labels_['supervised']}: that was kept."
            )
        if self.left_out_:
            self._said.append(
                f"After {self.max_seconds:g} seconds there was no time for "
                f"{', '.join(self.left_out_)}."
            )

    def _report_shares(self, codes, weight):
        """Report the shares that the heaviest semi-supervised machine was given."""
        order = np.argsort(-self.weights_, kind="stable")
        models = [self.members_[j].model for j in order if not self.members_[j].supervised]
        self.class_ratio_ = next(
            (m.class_ratio_ for m in models if hasattr(m, "class_ratio_")), None
        )
        if self.class_ratio_ is not None:
            labeled = codes >= 0
            counts = np.bincount(codes[labeled], None if weight is None else weight[labeled])
            shown = ", ".join(
                f"{name} {share:.1%} (labels: {n / counts.sum():.1%})"
                for name, share, n in zip(
                    self.classes_.tolist(), self.class_ratio_, counts, strict=True
                )
            )
            self._said.append(f"Shares of the classes among the unlabeled rows: {shown}.")

    def _report_errors(self, data, votes):
        """Estimate the error from held-out labels, and name rows of which the vote is not sure."""
        codes, n = data.codes, self._known.size
        self.expected_error_, self.expected_error_interval_ = np.nan, (0.0, 1.0)
        if n:
            votes_held_out = self._held_out_votes(codes)
            wrong = int(np.sum(votes_held_out.argmax(axis=1) != codes[self._known]))
            self.expected_error_ = wrong / n
            interval = binomtest(wrong, n).proportion_ci(_BINOMIAL_LEVEL)
            low, high = self.expected_error_interval_ = float(interval.low), float(interval.high)
            self._said.append(
                f"The vote is wrong on {wrong} of {n} held-out labels: if the labels are a random "
                f"sample, expect between {low:.0%} and {high:.0%} of wrong answers ({LEVEL:.0%} "
                "interval)."
            )
        unlabeled = np.flatnonzero(codes < 0)
        if unlabeled.size:
            order = unlabeled[np.argsort(self.confidence_[unlabeled], kind="stable")]
            self._said.append(
                f"Of the unlabeled rows {np.mean(self.confidence_[unlabeled] < 0.25):.0%} have a "
                "confidence_ below 1/4. The vote is least sure of the rows "
                f"{', '.join(map(str, order[:_LEAST_SURE]))}."
            )

    def _report_unreached(self, rows, part, n_labels):
        """Name rows of components without a label, where all labels are among the rows."""
        known = np.sum(part.codes >= 0) == n_labels < rows.size
        found = unlabeled_components(part, self._precomputed) if known else []
        self.unreached_ = np.sort(rows[np.concatenate([*found, np.zeros(0, dtype=int)])])
        if found:
            first = [rows[one[0]] for one in sorted(found, key=len, reverse=True)]
            self._said.append(
                f"Of {rows.size} rows compared {self.unreached_.size} have no path of nearest "
                "neighbors to a label: label one row of each group, such as "
                f"{', '.join(map(str, first[:_LEAST_SURE]))}."
            )

    def summary(self) -> str:
        """Say what was chosen, and give the numbers behind it.

        Returns
        -------
        str
            One sentence per line.
        """
        check_is_fitted(self)
        return "\n".join(self._said)

    # What is predicted ---------------------------------------------------------------------------

    def _rows(self, X):
        check_is_fitted(self)
        X = checked_new_rows(self, X, [np.float64])
        return X if self.scaler_ is None else self.scaler_.transform(X)

    @with_threads
    def decision_function(self, X: Rows) -> np.ndarray:
        """Return the votes, or the outputs of a single machine; positive means ``classes_[1]``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows; with a precomputed kernel the kernel values between them and all training rows.

        Returns
        -------
        ndarray of shape (m,), or (m, n_classes) with more than two classes
        """
        X = self._rows(X)
        if self.weights_.max() == 1:
            F = outputs(self.model_, X, self.classes_.size)
        else:
            F = self._votes(X)
        return F[:, 1] if self.classes_.size == 2 else F

    @with_threads
    def predict(self, X: Rows) -> np.ndarray:
        """Predict the class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows, as in `decision_function`.

        Returns
        -------
        ndarray of shape (m,)
        """
        found = self._votes(self._rows(X)).argmax(axis=1)
        return self.classes_[found]

    @available_if(_wants_probability)
    def predict_proba(self, X: Rows) -> np.ndarray:
        """Return the probability of each class; only with ``probability=True``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows, as in `decision_function`.

        Returns
        -------
        ndarray of shape (m, n_classes)
            Columns in the order of ``classes_``; rows sum to one.

        Raises
        ------
        NotFittedError
            Where ``probability`` was False in the last fit.
        """
        X = self._rows(X)
        if self._calibrated is None:
            raise NotFittedError(
                "predict_proba needs a fit with probability=True, got one with False; fit again"
            )
        votes = self._votes(X)
        return self._calibrated.predict_proba(votes[:, 1:] if self.classes_.size == 2 else votes)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        solver = QNS3VM() if isinstance(self.solver, str) else self.solver
        tags.input_tags.sparse = get_tags(solver).input_tags.sparse
        tags.input_tags.pairwise = self._precomputed
        return tags
