"""What the tables on IL-S³VM share: settings, data, and CCCP that starts from what it knows.

The paper's settings: C = 10, C* = 5, symmetric hinge, no balance constraint; a linear kernel,
(⟨x, x'⟩ + 1)², exp(−0.1‖x − x'‖²). Labeled rows per set follow from its Table 1 (samples minus
unlabeled samples). It does not say how the features are scaled: here cod-rna, madelon, ijcnn1 and
usps_t are scaled to [−1, 1] and the others, binary or tf-idf, are taken as they are. Digits 0-4
against 5-9 in usps_t. w6a with its 17,188 rows is not at hand.
"""

import copy
import gc
import time
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

C, C_STAR = 10.0, 5.0
KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "gamma": 1.0, "degree": 2, "coef0": 1.0},
    "rbf": {"kernel": "rbf", "gamma": 0.1},
}
# name in the paper: (name here, labeled rows, scaled)
SETS = {
    "CodRNA": ("cod-rna", 300, True),
    "Madelon": ("madelon", 200, True),
    "IJCNN1": ("ijcnn1", 200, True),
    "Text": ("text_lds", 146, False),
    "Usps": ("usps_t", 207, True),
    "A9a": ("a9a", 361, False),
    "Mushrooms": ("mushrooms", 224, False),
}
NOT_AT_HAND = ("W6a",)
ADDED = 20  # rows that arrive


class Stream(NamedTuple):
    """The rows to begin with and the rows that arrive, in two versions."""

    X: np.ndarray  # (n, d)
    y: np.ndarray  # 0, 1 and −1, (n,)
    truth: np.ndarray  # classes of the same rows
    X_new: np.ndarray  # (ADDED, d)
    y_new: np.ndarray  # their classes


def kernel(name):
    """The `Kernel` of a name in ``KERNELS``."""
    from s3vm_lib.kernels import Kernel

    options = dict(KERNELS[name])
    return Kernel(options.pop("kernel"), **options)


def data(name, scaled=True):
    """Features and classes 0 and 1 of a set of the paper; ``scaled`` False leaves all as it is."""
    from s3vm_lib import datasets

    source, _, known = SETS[name]
    scaled = scaled and known
    bunch = datasets.load(source)
    X, y = bunch.data, bunch.target
    if name == "Usps":
        y = (bunch.target_multi >= 5).astype(int)
    if scaled:
        X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
        low, high = X.min(axis=0), X.max(axis=0)
        X = 2 * (X - low) / np.where(high > low, high - low, 1.0) - 1
    elif sp.issparse(X) and X.shape[1] < 1000:
        X = X.toarray()
    return X.astype(float), y


def stream(name, n, seed, added=ADDED, scaled=True, cache={}):  # noqa: B006
    """n rows with the paper's number of labels (both classes among them), then ``added`` rows."""
    if (name, scaled) not in cache:
        cache.clear()
        cache[name, scaled] = data(name, scaled)
    X, y = cache[name, scaled]
    n_labeled = min(SETS[name][1], n // 2)
    rng = np.random.default_rng(seed)
    while True:
        rows = rng.permutation(len(y))[: n + added]
        if np.unique(y[rows[:n_labeled]]).size == 2:
            break
    hidden = np.where(np.arange(n) < n_labeled, y[rows[:n]], -1)
    return Stream(X[rows[:n]], hidden, y[rows[:n]], X[rows[n:]], y[rows[n:]])


def problem(kernel):
    """What all methods minimize."""
    from s3vm_lib.losses import LabeledLoss
    from s3vm_lib.objective import Problem

    hinge = LabeledLoss("hinge")
    return Problem(hinge, hinge.effective, C, C_STAR, kernel)


class WarmCCCP:
    """CCCP that keeps dual variables and outputs while rows arrive, in a stored Gram matrix.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
    t : ndarray of shape (n,)
        Labels −1, +1 and 0.
    room : int
        How many rows will arrive.
    tol : float
        Largest violation of the optimality conditions.
    dtype : type, default=np.float64
        Precision of kernel values.
    """

    def __init__(self, kernel, X, t, room, tol, dtype=np.float64):
        self.kernel, self.X, self.tol, self.n = kernel, X, tol, len(t)
        self.problem = problem(kernel)
        size = self.n + room
        self.K = np.zeros((size, size), dtype)
        self.K[: self.n, : self.n] = kernel.gram(X)
        self.t, self.weight = np.append(t, np.zeros(room)), np.zeros(size)
        self.weight[: self.n] = 1.0
        self.beta, self.F, self.b = np.zeros(size), np.zeros(size), 0.0
        self.n_problems, self.status = 0, "converged"

    def copy(self):
        """With a Gram matrix and variables of its own."""
        other = object.__new__(WarmCCCP)
        vars(other).update(vars(self))
        for name in ("K", "t", "weight", "beta", "F"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def load(self, beta, b):
        """Take over a solution for the rows so far."""
        self.beta[: self.n], self.b = beta, b
        self.F = self.K.astype(float) @ self.beta
        return self

    def absorb(self, X_new, t_new):
        """Add rows, and solve again from where things stand."""
        self.take(X_new, t_new)
        return self.solve()

    def take(self, X_new, t_new):
        """Add rows, with dual variables 0."""
        m, first = len(t_new), self.n
        block = self.kernel.gram(X_new, self.X)
        own = self.kernel.gram(X_new)
        self.X = joined(self.X, X_new)
        rows = slice(first, first + m)
        self.K[rows, :first], self.K[:first, rows], self.K[rows, rows] = block, block.T, own
        self.t[rows], self.weight[rows], self.n = t_new, 1.0, first + m
        self.F[rows] = block @ self.beta[:first]

    def solve(self):
        """CCCP from the present outputs and dual variables; rows yet to come have no weight."""
        from s3vm_lib.cccp import concave_slopes, inner_costs
        from s3vm_lib.gram import Gram, add_rows
        from s3vm_lib.kernels import Kernel
        from s3vm_lib.smo import feasible, solve_smo

        gram = Gram(self.K, Kernel("precomputed"))
        U = np.flatnonzero(self.t == 0)
        upper, width = C * self.weight, C_STAR * self.weight[U]
        delta = concave_slopes(self.problem.unlabeled_loss, self.F[U] + self.b, width)
        for _ in range(100):
            costs = inner_costs(self.t, upper, width, delta)
            nearby = feasible(self.beta, costs, shift=False)
            add_rows(gram.cache, gram.rows, nearby - self.beta, self.F)
            inner = solve_smo(gram, costs, nearby, self.F, tol=self.tol, face_steps=10)
            self.beta, self.F, self.b = inner.beta, inner.f, inner.b
            self.n_problems, self.status = self.n_problems + 1, inner.status
            slopes = concave_slopes(self.problem.unlabeled_loss, self.F[U] + self.b, width)
            if np.array_equal(slopes, delta):
                break
            delta = slopes
        return self

    def objective(self):
        """J on the rows that have arrived."""
        rows = slice(0, self.n)
        norm2 = self.beta @ self.F
        return self.problem.value(self.F[rows] + self.b, self.t[rows], norm2)


class State(NamedTuple):
    """A solution after the arrival, judged with the Gram matrix of `WarmCCCP`."""

    objective: float
    residual: float  # largest KKT violation, in units of the margin
    margin: int  # rows with 0 < |β| < C or C*
    flips: int  # unlabeled rows of the base with another sign


def base(data, kernel, **options):
    """`ILS3VM` fitted to the rows to begin with."""
    from s3vm_lib import ILS3VM

    return ILS3VM(C=C, C_star=C_STAR, **KERNELS[kernel], **options).fit(data.X, data.y)


def counts(model):
    """Steps and changes of sign of every operation of the last call of ``partial_fit``."""
    return [(operation.n_iter, operation.n_flips) for operation in model.history_]


def moves(model, y):
    """Steps of the last call that ended with an unlabeled row of the base in another set."""
    samples = model.path_["sample"].astype(int)
    return int(np.sum(y[samples[samples < len(y)]] < 0))


def follower(data, kernel_name, model):
    """The solver of a fitted `ILS3VM` at the same solution, without the estimator around it."""
    from s3vm_lib.gram import KernelStore
    from s3vm_lib.path_following import Follower

    center = None
    if kernel_name == "linear" and not sp.issparse(data.X):
        center = data.X.mean(axis=0)
    machine = Follower(KernelStore(kernel(kernel_name), "full", center=center))
    ids, t = machine.store.append(data.X, room=ADDED), np.where(data.y < 0, 0.0, 2.0 * data.y - 1)
    machine.take(ids, t, np.where(t == 0, C_STAR, C))
    f = model.decision_function(data.X)
    machine.start(coefficients(model, len(t))[0], np.where(t != 0, t, np.where(f < 0, -1.0, 1.0)))
    machine.finish()
    return machine


def twin(model, store):
    """A copy of an `ILS3VM` or a `Follower`; ``store`` names its kernel values.

    The spare memory of the copy has been written to, as that of `WarmCCCP.copy` has: the first
    time costs more, and in a stream it comes once for many calls.
    """
    other = copy.deepcopy(model)
    kept = getattr(other, store)
    kept.view.values[kept.n :] = 0.0
    return other


def arrive(machine, X_new, t_new):
    """Rows arrive at a `Follower`, which does what ``partial_fit`` has it do."""
    ids = machine.store.append(X_new)
    machine.take(ids, t_new, np.where(t_new == 0, C_STAR, C))
    machine.learn(ids, machine.mode() == "block")
    machine.finish()
    return machine


def cccp(kernel, tol):
    """The batch solver of the same problem, not fitted."""
    from s3vm_lib import CCCPS3VM

    return CCCPS3VM(
        C=C, C_star=C_STAR, unlabeled_loss="symmetric_hinge", balance=None, tol=tol,
        **KERNELS[kernel],
    )  # fmt: skip


def coefficients(model, n):
    """β of all rows and the offset of a fitted two-class estimator."""
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    return beta, float(model.intercept_[0])


def on_margin(model, y):
    """How many rows of an `ILS3VM`, fitted to labels y, have 0 < |β| < C or C*."""
    size, problem = np.abs(coefficients(model, len(y))[0]), model.problem_
    cost = np.where(y < 0, problem.C_star, problem.C)
    return int(np.sum((size > 1e-9 * problem.C) & (size < cost * (1 - 1e-9))))


def warm(data, kernel_name, model, tol, dtype=np.float64, room=ADDED):
    """`WarmCCCP` at the solution of a fitted estimator."""
    t = np.where(data.y < 0, 0.0, 2.0 * data.y - 1)
    start = WarmCCCP(kernel(kernel_name), data.X, t, room, tol, dtype)
    return start.load(*coefficients(model, len(t)))


def state(model, before, X_new, t_new):
    """Judge an estimator after the arrival; ``before``, a `WarmCCCP` at the base, is used up."""
    from s3vm_lib.cccp import concave_slopes, inner_costs
    from s3vm_lib.reference.smo import slopes

    n = before.n
    old = before.F[:n] + before.b
    before.take(X_new, t_new)
    before.load(*coefficients(model, before.n))
    rows = slice(0, before.n)
    t, beta, F = before.t[rows], before.beta[rows], before.F[rows]
    f, U = F + before.b, np.flatnonzero(t == 0)
    delta = concave_slopes(before.problem.unlabeled_loss, f[U], np.full(U.size, C_STAR))
    costs = inner_costs(t, np.full(t.size, C), np.full(U.size, C_STAR), delta)
    snapped = beta.copy()
    for part in (costs.lo, costs.mid, costs.hi):
        snapped = np.where(np.abs(beta - part) <= 1e-9 * C, part, snapped)
    A, B = slopes(costs, snapped)
    size, cost = np.abs(snapped), np.where(t == 0, C_STAR, C)
    return State(
        float(before.objective()),
        float(max(0.0, np.max(A - F) - np.min(B - F))),
        int(np.sum((size > 1e-9 * C) & (size < cost * (1 - 1e-9)))),
        int(np.sum(((old > 0) != (f[:n] > 0)) & (t[:n] == 0))),
    )


def joined(X, X_new):
    """Rows below rows."""
    return sp.vstack([X, X_new], format="csr") if sp.issparse(X) else np.concatenate([X, X_new])


def cpu(function, rehearsal=None):
    """CPU seconds of a call, and its value.

    ``rehearsal``, the same on a copy, comes right before: in a stream, code and what it always
    needs are in the caches, after a garbage collection and deep copies they are not.
    """
    gc.collect()
    gc.disable()
    if rehearsal is not None:
        rehearsal()
    start = time.process_time()
    value = function()
    seconds = time.process_time() - start
    gc.enable()
    return seconds, value
