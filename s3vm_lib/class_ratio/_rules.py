"""What the names stand for that the parameter ``balance`` takes: shares of all classes.

Every share is positive. Where a machine gives all unlabeled rows one output, or predicts the
classes alike, rows and predictions do not tell the shares, and those of the labels are returned.
"""

import numpy as np
import scipy.sparse as sp

from s3vm_lib.class_ratio._profile import (
    PRIOR,
    Refits,
    black_box_shares,
    em_shares,
    fold_ratios,
    label_folds,
    label_masses,
    label_shares,
    pooled,
    profile_of,
    ratio_grid,
    structureless,
    two_classes,
)
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem
from s3vm_lib.smooth import (
    Coordinates,
    cholesky_coordinates,
    default_rank,
    mean_weight,
    reconsidered,
    solve_quasi_newton,
)
from s3vm_lib.utils.linear import nearer
from s3vm_lib.utils.row_blocks import doubles, is_mapped, row_slices

N_FOLDS = 5
FEWEST = 8  # labeled rows below which nothing is known but their share
LEAST = 1e-3  # share of a class: it has labels, so it is not empty
KNOBS = (0.15, 0.38, 0.62, 0.85)  # where in the range of ratios labels are held out
N_RATIOS = 9  # of the profile
N_SURROGATES = 6
LARGEST = 500  # unlabeled rows that are looked at
TOL, FTOL = 1e-3, 1e-5  # of these fits: finer ones come no nearer to the shares
LOSSES = LabeledLoss("modified_logistic"), UnlabeledLoss("gaussian", 3.0)
LARGEST_COLUMNS = 2**24  # kernel values with the labeled rows that are kept, 128 MB


def _near(X, kernel):
    """Return rows in memory as `nearer` does, in double precision, and what it subtracted."""
    if sp.issparse(X):
        return doubles(X), 0.0
    X, center = nearer(np.array(X, dtype=float), kernel)
    return X, 0.0 if center is None else center


class Supervised:
    """The machine that the labeled rows alone give, and its outputs everywhere.

    Parameters
    ----------
    data : Training
        Of two classes.
    C : float
    """

    def __init__(self, data, C):
        self.data = data
        self.labeled = np.flatnonzero(data.codes >= 0)
        self.rows, n = None, data.codes.size
        kernel = data.kernel
        large = n * self.labeled.size > LARGEST_COLUMNS or is_mapped(data.X)
        if large and kernel.name != "precomputed":
            # Too many values to keep, or rows of a file: others are computed when asked for.
            self.rows, self.center = _near(data.X[self.labeled], kernel)
            columns = kernel.gram(self.rows)
            unit = float(np.mean(kernel.diagonal(self.rows))) or 1.0
        else:
            X = doubles(data.X)
            columns = kernel.columns(X, self.labeled)
            unit = float(np.mean(kernel.diagonal(X)[self.labeled])) or 1.0
        self.columns, self.unit = columns / unit, unit  # tiny values would stop the engine early
        self.problem = Problem(*LOSSES, C * unit, kernel=Kernel("precomputed"))

    def outputs(self, hidden=()):
        """Return outputs on all rows, (n,); labeled rows ``hidden`` are left out of training."""
        seen = np.flatnonzero(~np.isin(self.labeled, hidden))
        rows = self.labeled[seen]
        data = self.data
        among = self.columns[rows] if self.rows is None else self.columns[seen]
        K, every = np.ascontiguousarray(among[:, seen]), np.arange(rows.size)
        weight = data.sample_weight[rows]
        coordinates = cholesky_coordinates(
            K, self.problem.kernel, default_rank(rows.size),
            mean_weight=weight / weight.sum(), first=every,
        )  # fmt: skip
        t = np.where(data.codes[rows] == 1, 1.0, -1.0)
        found = solve_quasi_newton(coordinates, t, data.loss_weight[rows], self.problem)
        support, coefficients, b = coordinates.model(found.w)
        dual, b = np.zeros(rows.size), found.b + b
        dual[support] = coefficients
        if self.rows is None:
            return self.columns[:, seen] @ dual + b
        gram, pivots, dual = data.kernel.gram, self.rows[seen], dual / self.unit
        step = max(1, LARGEST_COLUMNS // (4 * seen.size))
        slices = row_slices(data.codes.size, step)
        parts = [gram(doubles(data.X[s]) - self.center, pivots) @ dual for s in slices]
        return np.concatenate(parts) + b


def thinned(data, outputs, largest=LARGEST):
    """Return all labeled rows and at most ``largest`` unlabeled ones, even over the outputs.

    The weight of the unlabeled rows is divided into equal parts along the outputs, and each part
    goes to the row in its middle: the whole keeps its weight, and a row of weight k is what k
    copies are. Neither the order of the rows nor chance decides which of them stay.
    """
    unlabeled = np.flatnonzero(data.codes < 0)
    if unlabeled.size <= largest:
        return data
    order = unlabeled[np.argsort(outputs[unlabeled], kind="stable")]
    # A systematic sample along the outputs: each row kept stands for its neighbors there.
    reached = np.cumsum(data.sample_weight[order])
    levels = (np.arange(largest) + 0.5) / largest * reached[-1]
    chosen, times = np.unique(order[np.searchsorted(reached, levels)], return_counts=True)
    rows = np.sort(np.concatenate([np.flatnonzero(data.codes >= 0), chosen]))
    weight, loss_weight = data.sample_weight[rows].copy(), data.loss_weight[rows].copy()
    here = data.codes[rows] < 0
    factor = times * reached[-1] / largest / weight[here]
    weight[here] *= factor
    loss_weight[here] *= factor
    X = data.X[rows]
    if data.kernel.name == "precomputed":
        X = np.ascontiguousarray(X[:, rows])
    return data._replace(
        X=X, rows=data.rows[rows], codes=data.codes[rows], sample_weight=weight,
        loss_weight=loss_weight,
    )  # fmt: skip


class Evidence:
    """What is known of the share of one class against the others.

    The profiles are those of `solve_quasi_newton` with the kernel and the C of the estimator, and
    equal weight to both parts: its fits take milliseconds once the kernel is factorized, and the
    share that is looked for is a property of the rows, not of a solver.

    Parameters
    ----------
    data : Training
    positive : int
        Code of the class.
    C : float
    """

    def __init__(self, data, positive, C=1.0):
        self.C, self.two = C, data.n_classes == 2
        data = data._replace(codes=two_classes(data.codes, positive), n_classes=2)
        outputs = Supervised(data, C).outputs()
        self.indistinct = indistinct(outputs[data.codes < 0])
        self.data = thinned(data, outputs)
        self.data = self.data._replace(X=_near(self.data.X, data.kernel)[0])
        margins = np.zeros(self.data.codes.size)
        margins[self.data.codes >= 0] = outputs[data.codes >= 0]  # thinning keeps their order
        margins[self.data.codes == 0] *= -1
        self.folds = label_folds(margins, self.data.codes, N_FOLDS)
        self.refits = self.prepared(self.data)

    def prepared(self, data):
        """Prepare quasi-Newton annealing of thinned rows, balanced by the mean of the outputs."""
        center = mean_weight(data.sample_weight, data.codes < 0)
        coordinates = Coordinates().of(data, center, memory=600)

        def solve(data, t, ratio):
            s, unlabeled = data.sample_weight, t == 0
            C_star = float(self.C * s[~unlabeled].sum() / s[unlabeled].sum())
            balance = {"balance": "mean", "ratio": ratio}
            problem = Problem(*LOSSES, self.C, C_star, data.kernel, **balance)

            def annealed(coordinates, start):
                return solve_quasi_newton(
                    coordinates, t, data.loss_weight, problem,
                    engine="lbfgs", tol=TOL, ftol=FTOL, start=start,
                )  # fmt: skip

            found = annealed(coordinates, None)
            if self.two:  # one class against many has no gap that follows the labels
                found = reconsidered(found, coordinates, t, s, problem, annealed)
            return found

        return Refits(data, solve)

    def profile(self, references=()):
        """Return the `BalanceProfile` on the range of ratios that the labels leave possible."""
        ratios = ratio_grid(*label_masses(self.data), N_RATIOS)
        return profile_of(self.refits, ratios, (), references)

    def held_out(self):
        """Return estimates and errors of a few models."""
        knobs = fold_ratios(self.data, self.folds, KNOBS)
        return np.array([self.refits.held_out(r, self.folds) for r in knobs]).T

    # What the names stand for --------------------------------------------------------------------

    def label_share(self):
        positive, negative = label_masses(self.data)
        return positive / (positive + negative)

    def auto(self):
        if not self.folds:
            return self.label_share()
        estimate, error = self.held_out()
        return self.profile()._replace(estimate=estimate, error=error).mean()

    def powered(self):
        if not self.folds:
            return self.label_share()
        low, high = ratio_grid(*label_masses(self.data), 2)
        return float(np.clip(pooled(*self.held_out()).estimate, low, high))

    def best(self, criterion):
        """Return the ratio that one criterion of `BalanceProfile.best` prefers."""
        if self.indistinct:
            return self.label_share()
        # Only this criterion compares with rows that have no clusters.
        references = []
        if criterion == "gap":
            generator = np.random.RandomState(0)  # any sets will do, the same in every fit
            sets = [structureless(self.data, generator) for _ in range(N_SURROGATES)]
            references = [self.prepared(other) for other in sets]
        return self.profile(references).best(criterion)


def indistinct(outputs):
    """Return whether all rows have one output, which then has no information on the classes."""
    return bool(np.all(np.ptp(outputs, axis=0) <= 1e-12 * np.abs(outputs).max()))


def _posterior_mean(data, C):
    labeled = data.codes >= 0
    mass = data.sample_weight[labeled].sum() * label_shares(data) + PRIOR
    return mass / mass.sum()


def _by_class(ask, *given):
    """Return a rule that asks `Evidence` of each class against the rest; its shares sum to one."""

    def rule(data, C):
        classes = [1] if data.n_classes == 2 else range(data.n_classes)
        shares = [ask(Evidence(data, k, C), *given) for k in classes]
        if data.n_classes == 2:
            return np.array([1 - shares[0], shares[0]])
        return np.array(shares) / sum(shares)

    return rule


def _auto(data, C):
    labeled = data.sample_weight[data.codes >= 0].sum()
    return label_shares(data) if labeled < FEWEST else _by_class(Evidence.auto)(data, C)


def held_out_scores(data, C):
    """Return supervised outputs of each class against the rest, of labeled rows when held out.

    Returns
    -------
    scores : ndarray of shape (n, 1), or (n, n_classes) with more than two classes
        Of labeled rows by machines fitted without their label, of others by one fitted to all.
    """
    classes = [1] if data.n_classes == 2 else range(data.n_classes)
    scores = np.empty((data.codes.size, len(classes)))
    for column, k in enumerate(classes):
        part = data._replace(codes=two_classes(data.codes, k), n_classes=2)
        supervised = Supervised(part, C)
        outputs = supervised.outputs()
        margins = np.where(part.codes == 1, outputs, -outputs)
        folds = label_folds(margins, part.codes, N_FOLDS)
        scores[:, column] = outputs
        # A labeled row has the output of a machine that has not seen its label.
        for rows in folds:
            scores[rows, column] = supervised.outputs(rows)[rows]
    return scores


def _black_box(data, C):
    scores = held_out_scores(data, C)
    predicted = np.argmax(scores, axis=1) if data.n_classes > 2 else (scores[:, 0] > 0).astype(int)
    s, K = data.sample_weight, data.n_classes
    labeled = data.codes >= 0
    confusion = np.zeros((K, K))
    np.add.at(confusion, (predicted[labeled], data.codes[labeled]), s[labeled])
    if np.linalg.matrix_rank(confusion, 1e-9 * confusion.max()) < K:
        return label_shares(data)  # classes with equal predictions: any shares explain those of U
    share = np.bincount(predicted[~labeled], s[~labeled], K)
    return _not_empty(black_box_shares(confusion / confusion.sum(axis=0), share / share.sum()))


def _em(data, C):
    from sklearn.linear_model import LogisticRegression  # a slow import, and rarely asked for

    scores = held_out_scores(data, C)
    labeled = data.codes >= 0
    if indistinct(scores[~labeled]):
        return label_shares(data)
    s = data.sample_weight
    model = LogisticRegression().fit(scores[labeled], data.codes[labeled], s[labeled])
    chances = model.predict_proba(scores[~labeled])
    return _not_empty(em_shares(chances, label_shares(data), s[~labeled]))


def _not_empty(shares):
    shares = np.maximum(shares, LEAST)
    return shares / shares.sum()


# Estimates of the shares of all classes by name, from the data and C.
RATIO_RULES = {
    "posterior": _posterior_mean,
    "bbse": _black_box,
    "em": _em,
    "auto": _auto,
    "powered": _by_class(Evidence.powered),
    **{name: _by_class(Evidence.best, name) for name in ("separation", "objective", "gap")},
}
