"""Machines that differ in kind, and the weights of their votes.

Member j has outputs f_j, of scale s_j: the median difference between the largest and the second
output over the unlabeled rows. Its loss on a label that was held out, with margin m (the output of
the right class less the largest other one), is the ramp min(1, max(0, (1 − m/s_j) / 2)). With L_j
the sum of these losses, the weight of its vote tanh(2 f_j / s_j) is

    w_j ∝ exp(−L_j − g_j − p_j),

the exponentially weighted average of Vovk, whose prior weights exp(−p_j) do not depend on the data.
g_j measures the unlabeled rows: the logarithm of the mean loss exp(−3 f²) that they have under
the member, less that which structureless rows of the same covariance have under the same machine;
and 8 (c_j − .15), where c_j is the share of the labels that the unlabeled rows' part of f_j puts
into the wrong class. It decides where there are few labels, and L_j where there are many.

References
----------
V. Vovk, "Aggregating strategies", COLT 1990; A. S. Dalalyan and A. B. Tsybakov, "Aggregation by
exponential weighting, sharp PAC-Bayesian bounds and sparsity", Machine Learning 72 (2008).
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from s3vm_lib.base.classifier import BaseS3VM
from s3vm_lib.base.findings import FitWarning
from s3vm_lib.base.machine import Training
from s3vm_lib.class_ratio import structureless
from s3vm_lib.graphs import NeighborGraph, distinct_rows
from s3vm_lib.kernels import Kernel
from s3vm_lib.safe import FEWEST, Sample, fitted, with_shares
from s3vm_lib.smooth import low_rank

FOLDS = 5, 3  # of two classes, and of more, where each fold takes a separator for each class
MOST_HELD_OUT = 500  # labels; where there are more, one fold of so many, or of half of them
MOST_ROWS = 2_000  # to which machines are fitted from which labels are held out
RANK = 100, 200  # columns at least and at most in which members with a kernel live, see `rank_of`
MOST_BYTES = 2**28  # of these columns, which are fewer than RANK of very many rows
RANK_TOL = 1e-6
MOST_COLUMNS = 500  # of sparse rows that are held out as dense ones, which compiled loops take
_GAPS = -2.0, 1.0  # bounds of the logarithm in g
CONTRADICTED = 8.0, 0.15  # the factor in g, and the share that speaks neither way


class Candidate(NamedTuple):
    """A machine before it is fitted."""

    name: str
    machine: Any  # what predicts
    supervised: bool  # whether it is given the labeled rows alone
    prior: float = 0.0  # p
    held_out: Any = None  # the same machine on `features`; None: the machine itself
    features: np.ndarray | None = None
    floor: float | None = None  # mean loss of structureless rows


class Member(NamedTuple):
    """A fitted machine with its vote."""

    name: str
    model: Any
    supervised: bool
    scale: float  # s
    known: np.ndarray  # labeled rows that were held out, fold after fold
    held_out: np.ndarray  # outputs of these, shape (n_known, n_classes)
    loss: float  # L
    wrong: int  # labels that were predicted wrong
    gap: float  # g
    penalty: float  # L + g + p

    def votes(self, F):
        """Return the votes that outputs stand for, each between −1 and 1.

        Where the two largest of several outputs are far from 0, all move: their votes would round
        to the same number.
        """
        middle = np.sort(F, axis=1)[:, -2:].mean(axis=1, keepdims=True)
        far = middle - np.clip(middle, -self.scale, self.scale)
        return np.tanh(2 * (F - far) / self.scale)


def outputs(model, X, n_classes):
    """Return the outputs of a model for each class, shape (m, n_classes)."""
    if not hasattr(model, "decision_function"):
        return np.eye(n_classes)[np.asarray(model.predict(X))]
    f = np.asarray(model.decision_function(X), dtype=float)
    return np.column_stack((-f, f)) if f.ndim == 1 else f


def margins(F, codes=None):
    """Return the output of a class, by default that of the largest, less the largest other one."""
    rows = np.arange(len(F))
    codes = F.argmax(axis=1) if codes is None else codes
    others = F.copy()
    others[rows, codes] = -np.inf
    return F[rows, codes] - others.max(axis=1)


def ramp(m, scale):
    """Return the losses of margins, each between 0 and 1."""
    return np.clip((1 - m / scale) / 2, 0, 1)


def held_out_folds(codes, random_state):
    """Split the labels of each class into folds; a class with a single label keeps it.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Class index of each row, −1 where nothing is to be held out.
    random_state : RandomState

    Returns
    -------
    list of ndarray
        Rows of each fold.
    """
    fold, dealt = np.full(codes.size, -1), 0
    for k in range(codes.max() + 1):
        rows = random_state.permutation(np.flatnonzero(codes == k))
        if rows.size > 1:
            fold[rows] = (dealt + np.arange(rows.size)) % FOLDS[int(codes.max() > 1)]
            dealt += rows.size
    found = [np.flatnonzero(fold == k) for k in range(fold.max() + 1)]
    if dealt > MOST_HELD_OUT:  # of each class its share, and never all
        share = min(0.5, MOST_HELD_OUT / dealt)
        classes = (np.flatnonzero((codes == k) & (fold >= 0)) for k in range(codes.max() + 1))
        dealt = [random_state.permutation(rows) for rows in classes]
        found = [np.concatenate([rows[: max(1, int(share * rows.size))] for rows in dealt])]
    return [rows for rows in found if rows.size]


def fit_one(machine, data, supervised):
    """Fit a machine to class indices, a supervised one to the labeled rows alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the answer of all is looked at
        warnings.simplefilter("ignore", ConvergenceWarning)
        if not supervised or isinstance(machine, BaseS3VM):
            return fitted(clone(machine), data, labels=not supervised)
        rows = np.flatnonzero(data.codes >= 0)
        weight = None if data.sample_weight is None else data.sample_weight[rows]
        return fitted(clone(machine), Sample(data.X[rows], data.codes[rows], weight), labels=False)


def part_of(data, folds, random_state):
    """Choose rows for machines from which labels are held out: all of weight, or some at random.

    Parameters
    ----------
    data : Sample
    folds : list of ndarray
        Held-out rows, which are among the chosen ones.
    random_state : RandomState

    Returns
    -------
    ndarray of int
        At most half of them are labeled beyond those that are held out.
    """
    n = data.codes.size
    kept = np.arange(n) if data.sample_weight is None else np.flatnonzero(data.sample_weight > 0)
    if kept.size <= MOST_ROWS:
        return kept
    chosen = np.concatenate([*folds, np.zeros(0, dtype=int)]).astype(int)
    labeled = random_state.permutation(np.setdiff1d(kept[data.codes[kept] >= 0], chosen))
    first = np.unique(data.codes[labeled], return_index=True)[1]  # no class may be missing
    labeled = np.append(labeled[first], np.delete(labeled, first))
    room = max(MOST_ROWS // 2 - chosen.size, first.size)
    chosen = np.append(chosen, labeled[:room])
    others = random_state.permutation(kept[data.codes[kept] < 0])
    return np.sort(np.append(chosen, others[: MOST_ROWS - chosen.size]))


def rows_of(data, part, gram):
    """Return the sample of some rows; of a Gram matrix the columns, too."""
    if part.size == data.codes.size:
        return data
    X = data.X[part][:, part] if gram else data.X[part]
    weight = None if data.sample_weight is None else data.sample_weight[part]
    return Sample(X, data.codes[part], weight)


def held_out_outputs(candidate, part, folds):
    """Fit without each fold; return what comes out for its rows, fold after fold."""
    n_classes = part.codes.max() + 1
    found, machine, X = [np.zeros((0, n_classes))], candidate.machine, part.X
    if candidate.held_out is not None:
        machine, X = candidate.held_out, candidate.features
    for rows in folds:
        codes = part.codes.copy()
        codes[rows] = -1
        model = fit_one(machine, Sample(X, codes, part.sample_weight), candidate.supervised)
        found.append(outputs(model, X[rows], n_classes))
    return np.vstack(found)


def join(candidate, data, rows, part, folds):
    """Fit a candidate, hold out labels, and count what its vote weighs.

    Parameters
    ----------
    candidate : Candidate
    data : Sample
    rows : ndarray of int
        See `part_of`.
    part : Sample
        Of these rows.
    folds : list of ndarray
        See `held_out_folds`.

    Returns
    -------
    Member
    """
    model = fit_one(candidate.machine, data, candidate.supervised)
    held_out = held_out_outputs(candidate, part, [np.searchsorted(rows, fold) for fold in folds])
    unlabeled = data.codes < 0
    if data.sample_weight is not None:
        unlabeled &= data.sample_weight > 0
    asked = unlabeled if unlabeled.any() else np.ones_like(unlabeled)
    F = outputs(model, data.X[asked], held_out.shape[1])
    scale = max(float(np.median(margins(F))), 1e-150)  # no quotient may overflow
    known = np.concatenate(folds) if folds else np.zeros(0, dtype=int)
    m = margins(held_out, data.codes[known])
    loss = float(ramp(m, scale).sum())
    gap = 0.0
    if candidate.floor is not None:
        lost = np.log(max(unlabeled_loss(F), 1e-300) / max(candidate.floor, 1e-300))
        gap = float(np.clip(lost, *_GAPS))
    if F.shape[1] == 2 and hasattr(model, "contradicted_") and np.sum(data.codes >= 0) >= FEWEST:
        factor, neutral = CONTRADICTED
        gap += factor * (float(model.contradicted_) - neutral)
    told = scale, known, held_out, loss, int(np.sum(m <= 0)), gap, loss + gap + candidate.prior
    return Member(candidate.name, model, candidate.supervised, *told)


def unlabeled_loss(F):
    """Return the mean of exp(−3 f²), two classes."""
    return float(np.mean(np.exp(-3 * F[:, 1] ** 2)))


def weights(penalties):
    """Return weights that sum to one."""
    w = np.exp(-(np.asarray(penalties) - np.min(penalties)))
    return w / w.sum()


def unlabeled_components(part, gram):
    """Return the connected components of the neighbor graph that hold no label.

    Parameters
    ----------
    part : Sample
        See `part_of`.
    gram : bool
        Whether X is a Gram matrix.

    Returns
    -------
    list of ndarray
        Rows of each component.
    """
    graph = NeighborGraph().build(part.X, kernel=Kernel("precomputed") if gram else None)
    # Copies have no edges: they are where the first of them is.
    component = connected_components(graph.adjacency())[1][distinct_rows(part.X)[1]]
    without = np.setdiff1d(component, component[part.codes >= 0])
    return [np.flatnonzero(component == k) for k in without]


# --- The machines of an `S3VC` without a solver of its own ----------------------------------------


def features_of(X, kernel, codes, solver):
    """Return features of low rank whose inner products are kernel values; X for the linear one."""
    if kernel.name == "linear":
        return X.toarray() if sp.issparse(X) and X.shape[1] <= MOST_COLUMNS else X
    return low_rank(X, kernel, solver.coordinates.rank, RANK_TOL, np.flatnonzero(codes >= 0))[0]


def rank_of(codes):
    """Return how many columns stand for a kernel: four times the labels of a class, within RANK."""
    columns = int(np.clip(4 * np.sum(codes >= 0) // (codes.max() + 1), *RANK))
    return max(1, min(columns, MOST_BYTES // (8 * codes.size)))


def null_of(part, random_state):
    """Return rows without structure, of the same covariance; None for sparse rows and Grams."""
    if sp.issparse(part.X) or part.codes.max() > 1:
        return None
    weight = np.ones(part.codes.size) if part.sample_weight is None else part.sample_weight
    kept = np.flatnonzero(weight > 0)
    if not np.any(part.codes[kept] < 0):
        return None
    linear = Kernel("linear")
    real = Training(part.X[kept], kept, part.codes[kept], weight[kept], weight[kept], linear, 2)
    null = structureless(real, random_state)
    return Sample(null.X, null.codes, None if part.sample_weight is None else weight[kept])


def in_features(solver, kernel, data):
    """Return features of the rows, and a solver for them that stands for one with the kernel."""
    Z = features_of(data.X, kernel, data.codes, solver)
    return Z, clone(solver).set_params(kernel="linear", coordinates="cholesky")


def asked_shares(solver, kernel, data):
    """Return the class shares that the name ``balance`` stands for with a kernel."""
    Z, own = in_features(solver, kernel, data)
    return with_shares(own, data._replace(X=Z)).balance


def kernel_candidates(kernel, costs, solver, part, null):
    """Yield the semi-supervised machines of one kernel, one for each C; features are found once.

    Parameters
    ----------
    kernel : Kernel
    costs : sequence of float
    solver : QNS3VM
        With all parameters but C and the kernel.
    part : Sample
        See `part_of`.
    null : Sample or None
        See `null_of`.

    Yields
    ------
    Candidate
        Without a prior.
    """
    Z, own = in_features(solver, kernel, part)
    if Z.shape[1] > RANK[1]:  # a second separator costs most there
        own.set_params(reconsider=False)
    if null is not None:
        null = null._replace(X=features_of(null.X, kernel, null.codes, solver))
    for C in costs:
        machine, held_out = (clone(one).set_params(C=C) for one in (solver, own))
        floor = None
        if null is not None:
            model = fit_one(held_out, null, False)
            floor = unlabeled_loss(outputs(model, null.X[null.codes < 0], 2))
        shown = f"QNS3VM(C={C:g}, {described(kernel)})"
        yield Candidate(shown, machine, False, 0.0, held_out, Z, floor)


def described(kernel):
    """Return a kernel in words."""
    if kernel.name in ("linear", "precomputed"):
        return f"kernel={kernel.name!r}"
    return f"kernel={kernel.name!r}, gamma={kernel.gamma:.3g}"
