"""The estimator `SafeS3VM`."""

import warnings
from numbers import Integral, Real
from typing import Annotated, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from s3vm_lib.base import findings
from s3vm_lib.base.classifier import BaseS3VM
from s3vm_lib.base.findings import FitWarning
from s3vm_lib.base.machine import SemiSupervisedMixin
from s3vm_lib.kernels import KERNELS
from s3vm_lib.model_selection import SemiSupervisedKFold
from s3vm_lib.quasi_newton import QNS3VM
from s3vm_lib.safe._pool import (
    Sample,
    fitted,
    make_pool,
    on_codes,
    refuse_without_labels,
    representatives,
    with_shares,
)
from s3vm_lib.safe._vote import gains, solve_safe, votes
from s3vm_lib.smo import SVM
from s3vm_lib.utils.labels import Labels
from s3vm_lib.utils.limits import Count, RandomState, Share, Verbosity
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

REPEATS = 2  # times that the folds are drawn
FEWEST = 8  # labels from which on contradictions are counted
# Of QNS3VM, where it is fitted some twenty times: with finer ones the labels are as good.
QUICK = {"engine": "lbfgs", "tol": 1e-3, "ftol": 1e-6}
_SHARED = ("C", "kernel", "gamma", "degree", "coef0", "sigma_f", "class_weight")


def default_baseline(estimator):
    """Return the `SVM` with the C, kernel and class weights of an estimator.

    Raises
    ------
    ValueError
        Where it has a kernel or a C that `SVM` does not have.
    """
    given = estimator.get_params()
    # An estimator without a kernel is linear.
    shared = {"kernel": "linear", **{name: given[name] for name in _SHARED if name in given}}
    if get_tags(estimator).input_tags.pairwise:  # also where the kernel is that of one within
        shared["kernel"] = "precomputed"
    for name, known in (
        ("kernel", shared["kernel"] in KERNELS),
        ("C", not isinstance(shared.get("C"), str)),
    ):
        if not known:
            raise ValueError(
                f"baseline must be given, got None: {type(estimator).__name__} has "
                f"{name}={shared[name]!r}, which the default, an SVM, does not have; "
                "S3VC must have guard=False there"
            )
    return SVM(**shared)


@parameters
class SafeS3VM(MetaEstimatorMixin, SemiSupervisedMixin, BaseEstimator):
    """Safe semi-supervised support vector machine (S4VM) around any solver.

    Three guards protect the supervised machine from the unlabeled rows. The first asks whether the
    gap follows the classes: the estimator is taken as it is where the part of it that the unlabeled
    rows carry contradicts hardly a label, and held-out labels do not speak against it. The second
    asks held-out labels alone: it is also taken where it leads the supervised machine beyond doubt.
    Where it leads, but not beyond doubt, the third asks the worst case: a pool of labelings is
    fitted, any of which may be the truth, and the labeling is returned that gains most over the
    supervised one in the worst of these cases. Otherwise the supervised machine is kept.

    Parameters
    ----------
    estimator : estimator, default=None
        A semi-supervised classifier with a ``transduction_``. None is `QNS3VM` with
        ``reconsider=True``, ``engine="lbfgs"``, ``tol=1e-3`` and ``ftol=1e-6``.
    baseline : estimator, default=None
        The supervised classifier. None is `SVM` with the C, kernel and class weights of the
        estimator; linear, where that has no kernel. It must be given where that has a kernel or a C
        which `SVM` does not have, such as the ``"auto"`` of `S3VC`.
    loss_weight : float, default=3.0
        λ: a row that is lost against the baseline counts this many rows that are won. At least 1.
    n_starts : int, default=0
        Further members from random starts: labeled rows weighted by the Bayesian bootstrap,
        ``init`` and ``random_state`` drawn where the estimator has them. S4VM takes 100.
    n_members : int, default=10
        At most this many labelings form the pool: the best of each cluster of all that were found.
    n_folds : int or None, default=5
        Folds in which labels are held out, 2 or more; fewer where a class has fewer of them. With
        one label of a class none is held out, and only the first guard can answer. None holds none
        out, and leaves the second guard out.
    margin : float, default=1.25
        The vote of the pool is asked where the lead of the estimator on held-out labels is at least
        this many standard errors.
    trust : float or None, default=1.5
        The estimator itself is taken where its lead on held-out labels is at least this many
        standard errors. None never does.
    contradiction : float or None, default=0.08
        It is also taken where its ``contradicted_`` is at most this, eight labels or more are
        known, and its lead on held-out labels is not negative, or none was held out. None never
        does, and nothing happens with an estimator that has no ``contradicted_``.
    random_state : int, RandomState instance or None, default=None
        Folds, starts and clusters.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores.
        Estimators inside have their own, or else this one. The result is the same for any number.
    verbose : int, default=0
        Print the summary after a fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    transduction_ : ndarray of shape (n,)
        A label for every training row: its own, or the one found where it was unlabeled.
    taken_ : {"supervised", "vote", "estimator"}
        Whose labels these are.
    kept_supervised_ : bool
        Whether the baseline was kept.
    baseline_ : estimator
        The supervised machine, fitted to class indices.
    pool_ : list of Labeling
        The labelings, with the setting and model that made each, its objective under the settings
        of the estimator itself, and how many candidates had the same one.
    weights_ : ndarray of shape (n_members,)
        Weights α of the members in the vote.
    gains_ : ndarray of shape (n_members,)
        Gain of ``transduction_`` over the baseline if each member were the truth, as a share of the
        (weight of the) unlabeled rows; 0 where the baseline was kept.
    worst_gain_ : float
        The smallest of them.
    bound_ : float
        Optimum of the linear program: no labeling has a larger worst gain.
    cv_gain_ : float
        Held-out labels that the estimator wins against the baseline, less those it loses: the mean
        over the repeats. NaN where no label was held out.
    cv_error_ : float
        Standard error of that difference, from label to label: the root of 1 + the sum of the
        squared differences, so that few labels, or none, that tell the two apart decide nothing.
    cv_right_ : ndarray of shape (2,)
        Held-out labels that the baseline and the estimator predict, means over the repeats.
    estimator_ : estimator or None
        The estimator with its own settings, fitted to class indices; None without unlabeled rows.
    contradicted_ : float
        That of this estimator, summed over the classes with more than two; NaN where it has none,
        or fewer than eight labels are known.
    changed_ : float
        Share of the unlabeled rows whose label is not that of the baseline.
    wrong_labels_ : dict of str to int
        Labels of the training rows that the ``"supervised"`` machine contradicts, and the
        ``"estimator"`` or the ``"vote"``, where one of them was about to be taken. What contradicts
        more of them than the supervised machine, by more than one label and 2 %, is not taken.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`: ``"limit"``, ``"share"``,
        ``"kernel"``.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    SVM : The supervised baseline.

    Notes
    -----
    What is guaranteed: if one labeling of the pool is the truth, as many of the unlabeled rows are
    right as by the baseline, or more; it is enough that the truth gives the returned labeling a
    gain that is no lower than under some mixture of the members. What is not: that the truth is
    like that. On data whose clusters do not follow the classes all members may share one mistake,
    and only labels can tell, which is what the other guards ask them for.

    Those are rules of thumb, chosen on the tuning sets of the library's comparison.

    The labeling is a vote among the members, so that it has an answer for new rows too, where the
    votes for the baseline's answer count λ times. A larger pool is safer and gains less.

    References
    ----------
    Y.-F. Li and Z.-H. Zhou, "Towards making unlabeled data never hurt", IEEE Transactions on
    Pattern Analysis and Machine Intelligence 37 (2015), 175-188.

    Examples
    --------
    >>> from s3vm_lib import QNS3VM, SafeS3VM
    >>> from s3vm_lib.datasets import hide_labels, make_moons
    >>> X, truth = make_moons(400, random_state=0)
    >>> new, truth_of_new = X[300:], truth[300:]
    >>> y = hide_labels(truth[:300], 20, random_state=0)
    >>> model = SafeS3VM(estimator=QNS3VM(gamma=8), random_state=0).fit(X[:300], y)
    >>> model.kept_supervised_
    False
    >>> model.predict(new[:3]).tolist(), model.score(new, truth_of_new) > 0.95
    ([1, 0, 1], True)
    """

    estimator: Estimator | None = None
    baseline: Estimator | None = None
    loss_weight: Annotated[float, Interval(Real, 1, 1e6, closed="both")] = 3.0
    n_starts: Annotated[int, Interval(Integral, 0, 10_000, closed="both")] = 0
    n_members: Count = 10
    n_folds: Annotated[int, Interval(Integral, 2, 2**31 - 1, closed="both")] | None = 5
    margin: Annotated[float, Interval(Real, -1e6, 1e6, closed="both")] = 1.25
    trust: Annotated[float, Interval(Real, 0, 1e6, closed="both")] | None = 1.5
    contradiction: Share | None = 0.08
    random_state: RandomState = None
    n_jobs: Jobs = None
    verbose: Verbosity = 0

    _largest_n = 20_000
    _memory = "that of the estimator, and one model per member"

    @validated_inside
    def fit(
        self,
        X: Rows,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        unlabeled_mask: ArrayLike | None = None,
    ) -> Self:
        """Fit the baseline and the pool, and choose the safest labeling.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Training rows, labeled and unlabeled; the n × n Gram matrix where the estimator has
            ``kernel="precomputed"``.
        y : array-like of shape (n,)
            Labels; −1 marks unlabeled rows, and so do missing labels (None, NaN, pandas.NA).
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights of labeled and unlabeled rows. Folds hold out labels of positive
            weight, and count rows.
        unlabeled_mask : array-like of bool, shape (n,), default=None
            True for unlabeled rows. With it −1 is a label like any other.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            When fewer than two classes are labeled, or when a parameter or an input is not valid.
        """
        with using(self.n_jobs):
            return self._fit(X, y, sample_weight, unlabeled_mask)

    def _fit(self, X, y, sample_weight, unlabeled_mask):
        estimator, baseline = self.estimator, self.baseline
        if estimator is None:
            estimator = QNS3VM(reconsider=True, **QUICK)
        refuse_without_labels("estimator", estimator, type(self).__name__)
        if baseline is None:
            baseline = default_baseline(estimator)
        X, codes, weight = checked_input(self, X, y, sample_weight, unlabeled_mask)
        findings.warn_of_time(self, codes.size, 5)
        estimator = on_codes(estimator, self.classes_)
        baseline = on_codes(baseline, self.classes_)
        data, random_state = Sample(X, codes, weight), check_random_state(self.random_state)
        unlabeled = codes < 0
        lead_of, self.cv_right_ = np.full(1, np.nan), np.full(2, np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # only what is returned is looked at
            self.baseline_ = self._supervised(baseline, data)
            if data.weight[unlabeled].any():
                estimator = with_shares(estimator, data)
                held_out = self._held_out(estimator, baseline, data, random_state)
                lead_of, self.cv_right_ = held_out
        if unlabeled_mask is None:
            self._warn_of_no_unlabeled(codes)
        self._decide(data, estimator, lead_of, random_state)
        findings.warn(type(self).__name__, self.findings_, 4)
        if self.verbose:
            print(self.summary())
        return self

    def _decide(self, data, estimator, lead_of, random_state):
        """Fit the pool, choose between the three answers, and set the fitted attributes."""
        X, codes, weight = data.X, data.codes, data.weight
        unlabeled = codes < 0
        supervised = codes[:0]
        if unlabeled.any():
            supervised = np.asarray(self.baseline_.predict(X[unlabeled]))
        # The pool needs unlabeled rows with weight; without them the baseline is all there is.
        self.pool_, self.estimator_, n_stopped = [], None, 0
        if weight[unlabeled].any():
            found = make_pool(estimator, data, self.n_starts, random_state)
            members, self.estimator_, n_stopped = found
            self.pool_ = representatives(members, self.n_members, self.classes_.size, random_state)
        labels = np.array([m.labels for m in self.pool_], dtype=int)
        labels = labels.reshape(len(self.pool_), supervised.size)
        rest = weight[unlabeled]
        solution = solve_safe(labels, supervised, self.loss_weight, rest)
        self.cv_gain_ = lead = float(lead_of.sum())
        # One discordant label more than were seen: two of two decide nothing yet, nor none of none.
        self.cv_error_ = float(np.sqrt(1.0 + np.sum(lead_of**2)))
        self.contradicted_ = self._contradicted(self.estimator_, data)
        self.weights_, self.bound_, self._tie = solution.shares, solution.bound, solution.tie
        self._vote_weight = float(self.loss_weight)
        # Evidence for the estimator: its gap follows the labels, or its lead on them is large.
        follows = self.contradiction is not None and self.contradicted_ <= self.contradiction
        trails = lead < 0  # a NaN is no answer, and neither trails nor leads
        certain = self.trust is not None and lead >= max(self.trust * self.cv_error_, 1e-9)
        self._allowed = bool(self.n_folds is None or lead >= self.margin * self.cv_error_)
        voted = self._allowed and solution.status != "baseline"
        # The first answer that its evidence allows and that spares the labels; else the baseline.
        self.taken_, found, self.wrong_labels_ = "supervised", supervised, {}
        self._contradicts("supervised", data)
        if (certain or (follows and not trails)) and not self._contradicts("estimator", data):
            self.taken_, found = "estimator", np.asarray(self.estimator_.transduction_)[unlabeled]
        elif voted and not self._contradicts("vote", data):
            self.taken_, found = "vote", solution.labels
        self.kept_supervised_ = self.taken_ == "supervised"
        # What `summary` reports.
        self.gains_ = gains(found, labels, supervised, self.loss_weight, rest)
        self.worst_gain_ = float(self.gains_.min(initial=np.inf)) if labels.size else 0.0
        mass = max(rest.sum(), 1e-300)
        self.changed_ = float(rest @ (found != supervised) / mass)
        self._possible = solution.objective
        self._disagreement = float(rest @ (labels != labels[:1]).any(axis=0) / mass)
        kept = codes[weight > 0]
        self._counts = np.bincount(kept[kept >= 0]), int(np.sum(kept < 0))
        self._certain = bool(certain)
        full = codes.copy()
        full[unlabeled] = found
        self.transduction_ = self.classes_[full]
        asked = getattr(self.estimator_, "class_ratio_", None)
        problem, kernel = getattr(self.estimator_, "problem_", None), None
        if problem is not None:
            first = problem[0] if isinstance(problem, list) else problem
            kernel = findings.kernel_finding(first.kernel, X, first.C * weight.sum())
        limit = (
            f"stopped {n_stopped} fits of the pool at their limits, before their tolerance was "
            "reached; increase max_iter of the estimator, scale the data or relax tol"
        )
        share = findings.share_finding(codes, weight, full, self.classes_, asked)
        self.findings_ = findings.given(
            limit=limit if n_stopped else None, share=share, kernel=kernel
        )

    def _contradicts(self, taken, data):
        """Count the labels that an answer contradicts, and compare with the supervised machine."""
        labeled = (data.codes >= 0) & (data.weight > 0)
        # Labels of rows without weight were not trained on, and prove nothing.
        found = self._answers(taken, data.X[labeled])
        wrong = self.wrong_labels_
        wrong[taken] = int(np.sum(found != data.codes[labeled]))
        return wrong[taken] > wrong["supervised"] + findings.spared(found.size)

    @property
    def _precomputed(self):
        return self.estimator is not None and get_tags(self.estimator).input_tags.pairwise

    @staticmethod
    def _supervised(baseline, data):
        """Fit the baseline; one that does not read −1 as unlabeled gets the labeled rows alone."""
        model = clone(baseline)
        if isinstance(model, BaseS3VM):
            return fitted(model, data, labels=False)
        rows = np.flatnonzero(data.codes >= 0)
        given = data.sample_weight  # not all take weights
        options = {} if given is None else {"sample_weight": given[rows]}
        return model.fit(data.X[rows], data.codes[rows], **options)

    def _held_out(self, estimator, baseline, data, random_state):
        """Hold out each label once per repeat; count 1 for one that is won, −1 for one lost.

        Held-out rows stay among the unlabeled ones, as the rows of a transduction do.

        Returns
        -------
        lead : ndarray of shape (n,)
            Means over the repeats; NaN where no label can be held out.
        right : ndarray of shape (2,)
            Labels that the baseline and the estimator predict, likewise.
        """
        asked = np.where(data.weight > 0, data.codes, -1)
        self._asked = 0 if self.n_folds is None else int(np.sum(asked >= 0))
        fewest = np.bincount(asked[asked >= 0]).min()
        lead = np.zeros(asked.size)
        if self.n_folds is None or fewest < 2:
            return lead + np.nan, np.full(2, np.nan)
        baseline_right = 0
        for _ in range(REPEATS):
            # Both machines are judged on the same folds.
            seed = random_state.randint(2**31 - 1)
            folds = SemiSupervisedKFold(
                int(min(self.n_folds, fewest)), shuffle=True, random_state=seed
            )
            for _, test in folds.split(None, asked):
                codes = data.codes.copy()
                codes[test] = -1
                part, X, truth = data._replace(codes=codes), data.X[test], data.codes[test]
                right = self._supervised(baseline, part).predict(X) == truth
                baseline_right += int(np.sum(right))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    model = fitted(clone(estimator), part)
                lead[test] += (model.predict(X) == truth).astype(float) - right
        right = baseline_right + np.append(0.0, lead.sum())
        return lead / REPEATS, right / REPEATS

    @staticmethod
    def _contradicted(model, data):
        """Return ``contradicted_`` of a fitted estimator, or NaN where there is none."""
        if data.weight[data.codes >= 0].sum() < FEWEST or not hasattr(model, "contradicted_"):
            return np.nan
        return float(np.sum(model.contradicted_))

    def summary(self) -> str:
        """Say what was done, and give the numbers behind it.

        Returns
        -------
        str
            One sentence per line.
        """
        check_is_fitted(self)
        counts, u = self._counts
        lines = [f"{counts.sum()} labeled and {u} unlabeled rows, classes {counts.tolist()}."]
        if not self.pool_:
            return f"{lines[0]}\nWithout unlabeled rows this is the supervised machine."
        if not self._asked:
            lines.append("No labels were held out (n_folds=None).")
        elif np.isnan(self.cv_gain_):
            lines.append("With one label of a class none can be held out: there is no evidence.")
        else:
            word = "gains" if self.cv_gain_ >= 0 else "loses"
            lines.append(
                f"On held-out labels the estimator {word} {abs(self.cv_gain_):.1f} of "
                f"{self._asked} against the supervised machine (standard error "
                f"{self.cv_error_:.1f})."
            )
        if not np.isnan(self.contradicted_):
            k = len(counts) if len(counts) > 2 else 1  # separators
            mean = f", in the mean of the {k} separators" if k > 1 else ""
            lines.append(
                f"What the unlabeled rows add contradicts {self.contradicted_ / k:.0%} of the "
                f"labels{mean}."
            )
        lines.append(
            f"The pool has {len(self.pool_)} labeling{'s' * (len(self.pool_) > 1)}; on "
            f"{self._disagreement:.1%} of the unlabeled rows they do not all agree."
        )
        lines.append(
            f"If one of them is true, the vote gains {self._possible:.1%} of the unlabeled rows or "
            f"more, lost rows counted {self._vote_weight:g} times; no labeling is sure of more "
            f"than {self.bound_:.1%}."
        )
        if self.taken_ == "estimator":
            lines.append(
                f"{'The lead leaves no doubt' if self._certain else 'The gap follows the labels'}: "
                f"the estimator was taken as it is; {self.changed_:.1%} of the unlabeled rows have "
                "another label than the supervised machine gives them."
            )
        elif self.kept_supervised_:
            n, wrong = counts.sum(), dict(self.wrong_labels_)
            own = wrong.pop("supervised")
            if wrong:
                shown = " and ".join(f"the {name} contradicts {k}" for name, k in wrong.items())
                reason = f"{shown} of the {n} labels, it contradicts {own}"
            elif self._allowed:
                reason = "no labeling gains in every case"
            elif np.isnan(self.cv_gain_):
                reason = "no label speaks for another"
            elif self.cv_gain_ < 0:
                reason = "the labels advise it"
            else:
                reason = "the lead on held-out labels leaves doubt"
            lines.append(f"The supervised machine was kept: {reason}.")
        else:
            lines.append(
                f"The vote was taken: {self.changed_:.1%} of the unlabeled rows have another label "
                "than the supervised machine gives them."
            )
        lines += [f"Warning: it {text}." for text in self.findings_.values()]
        return "\n".join(lines)

    def _checked(self, X):
        check_is_fitted(self)
        return checked_new_rows(self, X, [np.float64])

    def _answers(self, taken, X):
        """Return the class indices that the baseline, the estimator or the vote gives to rows."""
        if taken == "vote":
            return self._votes(X).argmax(axis=1)
        return np.asarray((self.estimator_ if taken == "estimator" else self.baseline_).predict(X))

    def _votes(self, X):
        pool = np.array([np.asarray(member.model.predict(X)) for member in self.pool_])
        supervised = np.asarray(self.baseline_.predict(X))
        return votes(
            pool, supervised, self.weights_, self._vote_weight, self._tie, self.classes_.size
        )

    @with_threads
    def decision_function(self, X: Rows) -> np.ndarray:
        """Return the sum of the members' votes; those for the baseline's answer count λ times.

        Where the baseline was kept, or the estimator taken, return its ``decision_function``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows; with a precomputed kernel the kernel values between them and all training rows.

        Returns
        -------
        ndarray of shape (m,), or (m, n_classes) with more than two classes
            With two classes the votes for ``classes_[1]`` less those for ``classes_[0]``.
        """
        X = self._checked(X)
        if self.kept_supervised_:
            return self.baseline_.decision_function(X)
        if self.taken_ == "estimator":
            return self.estimator_.decision_function(X)
        found = self._votes(X)
        return found[:, 1] - found[:, 0] if found.shape[1] == 2 else found

    @with_threads
    def predict(self, X: Rows) -> np.ndarray:
        """Predict the class of each row by what was taken: baseline, estimator or vote.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            Rows, as in `decision_function`.

        Returns
        -------
        ndarray of shape (m,)
        """
        X = self._checked(X)
        return self.classes_[self._answers(self.taken_, X)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        estimator = QNS3VM() if self.estimator is None else self.estimator
        tags.input_tags.sparse = get_tags(estimator).input_tags.sparse
        tags.input_tags.pairwise = self._precomputed
        return tags
