"""The estimator `ILS3VM`."""

from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from s3vm_lib.base.machine import BinaryFit
from s3vm_lib.base.online import KeepingS3VM
from s3vm_lib.cccp import solve_cccp
from s3vm_lib.gram import Gram, KernelStore
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem
from s3vm_lib.path_following._algebra import feature_weights
from s3vm_lib.path_following._follower import Follower, Operation

from s3vm_lib.utils.limits import (  # isort: skip
    Count, Megabytes, Tolerance, WeightOrZero, check_size, checked_gram,
)  # fmt: skip
from s3vm_lib.utils.linear import centered
from s3vm_lib.utils.shortcuts import validated_data
from s3vm_lib.utils.threads import using
from s3vm_lib.utils.validation import KernelParameters, Storage, parameters, validated

_CHUNK = 256  # new rows that are stored at a time
_GROUP = 20  # new rows on one path
_FEW, _GROWTH = 500, 1 / 16  # rows, and their growth or that of C*, before CCCP is due again
_ERROR = 1e-2  # in outputs, beyond which a solution is none
_WORK_LEAST, _WORK = 2e7, 4  # multiplications, these and so many per n²: what CCCP may cost


class Tally:
    """What one call has had one machine do."""

    def __init__(self, machine) -> None:
        self.machine, self.first = machine, machine.n_iter
        self.history, self.n_convex, self.status = [], 0, "converged"
        self.stop = False  # whether the callback has stopped the call

    @property
    def n_iter(self):
        """Steps of the path and convex problems."""
        return self.n_convex + self.machine.n_iter - self.first


@parameters
class ILS3VM(KernelParameters, KeepingS3VM):
    """Semi-supervised support vector machine that learns and forgets rows one by one, exactly.

    Minimizes ::

        J(f, b) = ½‖f‖² + C Σ_L s_i max(0, 1 − t_i (f(x_i) + b))
                        + C* Σ_U s_j max(0, 1 − |f(x_j) + b|)

    to a point that solves its own convex problem, as CCCP does, and keeps it there while rows
    come and go: `partial_fit` and `forget` follow the path of solutions along which the
    coefficient of a new row grows from 0, or that of an old one shrinks to 0.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the hinge losses of labeled rows.
    C_star : float, default=None
        Weight of the unlabeled losses; 0 gives the incremental supervised machine. None gives the
        labeled and the unlabeled part equal total weight among all rows held: C* changes with every
        row that comes or goes, and the solution with it, which takes several times as long. Up to
        500 rows, and above when they or C* have changed by a sixteenth, a call then ends with CCCP
        on all of them, so that it finds what `fit` finds. Without labeled rows C* stays as it is.
    kernel : {"linear", "poly", "rbf", "laplacian", "precomputed"}, default="rbf"
        Kernel function, see `Kernel`.
    gamma : {"scale", "variance", "auto"} or float, default="scale"
        Kernel coefficient of rbf, poly and laplacian, see `resolve_gamma`; frozen at the first
        call.
    degree : int, default=3
        Degree of the polynomial kernel, at most 30.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, non-negative.
    sigma_f : float, default=1.0
        Output standard deviation: kernels are multiplied by its square.
    order : {"simultaneous", "finite"}, default="simultaneous"
        When an unlabeled row changes sides. ``"simultaneous"``, the order of the paper: as soon as
        its output crosses 0. ``"finite"``: only when all that the new row set going has come to
        rest. The latter provably ends, and takes over where the former does not.
    update : {"auto", "path", "together", "block"}, default="auto"
        How several new rows are added. ``"path"``: one after the other. ``"together"``: up to 20 on
        one path. ``"block"``: Newton steps over the sets, and a path for what they leave undone,
        which is fast where the margin set is large. ``"auto"`` chooses between ``"together"`` and
        ``"block"`` by the size of the margin set, and, with kernel values stored, gives a path up
        for CCCP on all rows once it has cost as much as that is expected to. All end at an exact
        solution, if not always at the same one.
    start_tol : float, default=1e-3
        Largest violation of the optimality conditions in the convex problems of CCCP, with which
        `fit` begins before it crosses over to an exact solution.
    ridge : float, default=1e-8
        Added to the diagonal of the kernel matrix, relative to its mean: it makes duplicates and
        other dependent rows harmless. The predictions leave it out.
    tol : float, default=1e-10
        Violations of the optimality conditions above it are followed up at the end of a call.
    max_iter : int, default=1_000_000
        Largest number of steps in one call: events on the path, Newton steps, convex problems.
    gram : {"auto", "full", "rows"}, default="auto"
        Keep the whole kernel matrix or the rows that are visited. ``"auto"``: the matrix after
        `fit` where it has room, rows for a model that begins with `partial_fit`. Of no effect with
        the linear kernel, which needs the data alone.
    memory : float, default=1000
        Memory for kernel values in MiB. The rows of the margin set are kept beyond it.
    record : bool, default=False
        Keep what happened in each step in ``path_``.
    class_weight : dict or "balanced", default=None
        Factors on C per class; ``"balanced"`` counts labeled rows, and is for `fit` only.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless ``joblib.parallel_config`` says
        otherwise, −1 all cores. The result is the same for any number.
    verbose : int, default=0
        Print one line per convex problem and per operation of the path.
    callback : callable, default=None
        Called after each of them with a dict (the fields of ``history_``); a true value stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    support_ : ndarray of shape (n_support,)
        Rows with a nonzero coefficient, counted over all rows given and not forgotten.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, d)
        These rows; absent with ``kernel="precomputed"``.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Their coefficients α; one row for two classes, otherwise one per class.
    coef_ : ndarray of shape (n_problems, d)
        Weights of the features, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (n_problems,)
        Offsets b.
    gamma_ : float
        The kernel coefficient that was used.
    gram_ : {"full", "rows", "linear"}
        How kernel values are kept.
    partition_ : dict of ndarrays, or list of dicts
        The rows in each set: ``"O"`` (beyond the margin, α = 0), ``"M"`` (at the margin), ``"E"``
        (inside, α at its bound) and ``"A"`` (still on their way, empty unless stopped).
    transduction_ : ndarray of shape (n,)
        A label for every row: its own, or the one found where it was unlabeled.
    objective_ : float or ndarray of shape (n_classes,)
        J at the solution.
    residual_ : float
        Largest violation of the optimality conditions, those of margins, bounds, signs and Σα = 0.
    problem_ : Problem or list of Problem
        What is minimized.
    n_iter_ : int
        Steps in the last call; the largest number over the two-class problems.
    history_ : list
        One `Operation` (n_iter, n_flips, objective) per convex problem, and per row or block of
        rows that came or went, of the last call.
    counters_ : dict or list of dicts
        Totals since the beginning: steps, flips and back-flips, zero-length steps and the longest
        run of them, operations that fell back to the finite order, outputs that were computed.
    path_ : dict of ndarrays, or list of dicts
        With ``record=True``, the steps of the last call: their length ``eta``, the energy
        W = ½αᵀKα − Σ a before and after, the ``event`` at the end and its ``sample``, the sizes of
        M and A, and the ``case`` (0: no row that moves has changed its sign, 1: all have, 2: some;
        4 more when a row is leaving).
    termination_condition_ : str
        ``"converged"``, ``"max_iter"``, ``"stalled"`` (the ridge or rounding changes outputs by
        more than 0.01: scale the data) or ``"stopped"`` (by the callback, between two operations;
        the next call goes on with what was left). A list of these with more than two classes.
    findings_ : dict of str to str
        What a look at the result found wrong, see `FitWarning`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    CCCPS3VM : The same problem in batch, with a balance constraint.
    SVM : The supervised machine that ``C_star=0`` keeps up to date.

    Notes
    -----
    There is no balance constraint, so that with few labels all unlabeled rows may end on one side.
    With few labels, the rbf kernel and all defaults it should not be used, nor on sparse text with
    any kernel: on such sets of the book's comparison it is worse than `SVM`. Take a small
    ``C_star``, and compare with ``C_star=0``.

    For a fixed set U it would be one more variable without bounds, always in the margin set, whose
    kernel row is the mean of the rows of U. But with every row that comes or goes that mean is
    another one, and the path would have to move it too.

    A solution has all outputs of unlabeled rows on the side that their coefficients assume, and is
    a local minimum unless one of them is 0. Different orders, and different updates, may lead to
    different ones; none is better in general.

    Whatever a call of `partial_fit` learns, it costs about a millisecond, and more with the number
    of rows held, to check its input and to set the attributes. Where many rows come at once, give a
    hundred at a time.

    The outputs that `decision_function` returns leave out the ridge, and differ from those that the
    optimality conditions are checked for by at most ``ridge`` times C times the mean diagonal of
    the kernel matrix.

    References
    ----------
    B. Gu, X.-T. Yuan, S. Chen and H. Huang, "New incremental learning algorithm for
    semi-supervised support vector machine", KDD (2018); G. Cauwenberghs and T. Poggio,
    "Incremental and decremental support vector machine learning", NIPS (2000).

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import ILS3VM
    >>> X = np.array([[-2.0], [-1.9], [-1.5], [1.4], [1.8], [2.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])
    >>> model = ILS3VM(kernel="linear").fit(X[:4], [0, -1, -1, 1])
    >>> model.partial_fit(X[4:], y[4:]).forget([3]).transduction_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[-1.7], [1.6]]).tolist()  # new rows
    [0, 1]
    >>> model.score([[-1.7], [1.6]], [0, 1])
    1.0
    """

    C_star: WeightOrZero | None = None
    order: Literal["simultaneous", "finite"] = "simultaneous"
    update: Literal["auto", "path", "together", "block"] = "auto"
    start_tol: Tolerance = 1e-3
    ridge: Annotated[float, Interval(Real, 0, 1e-3, closed="right")] = 1e-8
    tol: Tolerance = 1e-10
    max_iter: Count = 1_000_000
    gram: Storage = "auto"
    memory: Megabytes = 1000
    record: bool = False

    _largest_n = 100_000
    _memory = "n² kernel values, or those of the margin set"
    _kernel_store = None

    def _problem(self, data, ratio):
        """Return the symmetric hinge without a balance constraint."""
        C, C_star = self._penalties(data)
        if self.C_star is not None:
            C_star = float(self.C_star)  # unlabeled rows may come later
        loss = UnlabeledLoss("symmetric_hinge")
        return Problem(LabeledLoss("hinge"), loss, C, C_star, data.kernel)

    # Rows, in the order in which they were given ------------------------------------------------

    def _training(self, X, codes, weight, classes):
        self._kernel_store = None
        return super()._training(X, codes, weight, classes)

    def _checked_batch(self, X, y, first):
        """Check kernel values between the new rows and all, the new ones last, if precomputed."""
        if not self._precomputed:
            return super()._checked_batch(X, y, first)
        X, y = validated_data(self, X, y, dtype=self._dtype, order="C")
        rows = X.shape[0] + (0 if first else self._held.place.size)
        if X.shape[1] != rows:
            raise ValueError(
                f"X must hold kernel values between {X.shape[0]} new rows and all {rows} rows, the "
                f"new ones last, when kernel='precomputed'; got shape {X.shape}"
            )
        check_size(X)
        square = X[:, -X.shape[0] :]
        symmetric = checked_gram(square)
        if symmetric is not square:
            X = np.hstack([X[:, : -X.shape[0]], symmetric])
        return X, y

    def _next_place(self):
        return self._kernel_store.n

    def _kept_X(self):
        return None

    def _new_store(self, data, fitting):
        storage, n = self.gram, data.X.shape[0]
        if storage == "auto":
            # Room for some rows to come, so that the matrix need not grow at once.
            capacity = n + n // 4 + 64
            fits = fitting and 8 * capacity**2 <= self.memory * 2**20
            storage = "full" if fits else "rows"
        center = centered(data.X, data.kernel)[1]
        self._kernel_store = KernelStore(data.kernel, storage, self.memory, center)
        return self._kernel_store

    def _append(self, X):
        """Store the next rows that have a place."""
        store, place = self._kernel_store, self._held.place
        if not self._precomputed:
            return store.append(X)
        end = store.n + len(X)
        known = np.flatnonzero((place >= 0) & (place < end))
        values = np.zeros((len(X), end))
        values[:, place[known]] = X[:, known]
        return store.append(None, values)

    # Fitting -----------------------------------------------------------------------------------

    def _prepare(self, data):
        """Return the kernel values, and in a second form those that CCCP works with."""
        store = self._new_store(data, True)
        store.append(*((None, data.X) if self._precomputed else (data.X,)))
        if store.storage == "full":
            values = np.ascontiguousarray(store.view.values[: store.n, : store.n])
            return Gram(values, Kernel("precomputed"))
        X = data.X if store.center is None else data.X - store.center
        n_solves = 1 if data.n_classes == 2 else data.n_classes
        return Gram(X, data.kernel, self.memory, self.gram, n_solves=n_solves, tol=self.start_tol)

    def _start(self, data, problem, index):
        store = self._kernel_store or self._new_store(data, False)
        machine = Follower(store, self.ridge, self.order, self.tol, self.record)
        machine.problem = problem
        return machine

    def _fit_binary(self, data, shared, t, problem, index):
        machine = self._start(data, problem, index)
        self._machines.append(machine)
        ids, tally = np.arange(t.size), Tally(machine)
        machine.take(ids, t, self._upper(problem, t, data.loss_weight))
        tally.status = self._cross_over(tally, shared, ids, t, data.loss_weight)
        if tally.status == "converged":
            self._learn(tally, ids[:0], "block")
        return self._result(tally)

    @staticmethod
    def _upper(problem, t, loss_weight):
        """Return the weights c of the losses."""
        return np.where(t == 0, problem.C_star, problem.C) * loss_weight

    def _update(self, machine, data, t, problem, index):
        tally, end = Tally(machine), self._kernel_store.n - (0 if index == 0 else t.size)
        due = self._follow_C_star(tally, index, end)
        c = self._upper(machine.problem, t, data.loss_weight)
        # Rows that do not take part yet cost time with every refresh: not too many of them.
        for start in range(0, max(t.size, 1), _CHUNK):
            part = slice(start, start + _CHUNK)
            if index == 0:
                self._append(data.X[part])
            machine.take(np.arange(end, end + t.size)[part], t[part], c[part])
            if tally.status == "converged" and not due:
                self._learn(tally, machine.pending())
        if due:
            self._start_over(tally)
        return self._result(tally)

    def _learn(self, tally, ids, update=None):
        """Let rows take part, after all that is under way in A; see ``update``."""
        machine, store, work = tally.machine, self._kernel_store, np.inf
        update = update or (machine.mode() if self.update == "auto" else self.update)
        if self.update == "auto" and update != "path" and store.storage != "linear":
            work = _WORK_LEAST + _WORK * store.n**2
        # How many of the rows walk together.
        size = {"path": 1, "together": _GROUP}.get(update, max(ids.size, 1))
        for start in range(0, max(ids.size, 1), size):
            if tally.stop and ids.size:  # perhaps at rows that came before these
                tally.status = "stopped"
                return
            group, left = ids[start : start + size], self.max_iter - tally.n_iter
            status, done = "max_iter", None
            if left > 0:
                status, done = machine.learn(group, update == "block", left, work)
            if status == "max_iter":
                tally.status = status
                return
            if status == "given up":  # all the other groups with it
                self._start_over(tally)
                return
            self._note(tally, done)

    def _note(self, tally, operation):
        """Report an operation; return whether the callback stops the call."""
        tally.history.append(operation)
        tally.stop |= self._report(operation._asdict())
        return tally.stop

    def _cross_over(self, tally, gram, rows, t, weight):
        """Run CCCP on ``rows`` and go to an exact solution near its end; return its status."""

        def note(loop):
            tally.n_convex += 1
            return self._note(tally, Operation(loop.n_iter, loop.n_changed, loop.objective))

        machine = tally.machine
        machine.solved = rows.size, machine.problem.C_star
        found = solve_cccp(
            gram, t, weight, machine.problem, tol=self.start_tol,
            max_iter=self.max_iter - tally.n_iter, callback=note,
        )  # fmt: skip
        dual, sign = np.zeros(self._kernel_store.n), np.ones(self._kernel_store.n)
        dual[rows] = found.beta
        sign[rows] = np.where(t != 0, t, np.where(found.outputs < 0, -1.0, 1.0))
        machine.start(dual, sign)
        return found.status

    def _start_over(self, tally):
        """Run CCCP on all rows, after much growth or when the path has cost as much as CCCP should.

        If that expectation is right, the two cost at most twice as much as the better one of them.
        """
        machine, problem = tally.machine, tally.machine.problem
        rows, t, c = machine.present()
        gram = self._kernel_store.smo_gram(rows, storage=self.gram, tol=self.start_tol)
        weight = c / np.where(t == 0, problem.C_star, problem.C)
        tally.status = self._cross_over(tally, gram, rows, t, weight)
        # No row moves, but in the finite order signs may have to change one by one.
        machine.run(budget=self.max_iter - tally.n_iter)
        self._finish(tally)

    def _follow_C_star(self, tally, index, end):
        """Where ``C_star`` is None, set that of all rows held; return whether CCCP has to run.

        Otherwise a path brings α of the rows at places before ``end`` to the new weights.
        """
        machine, held = tally.machine, self._held
        if self.C_star is not None or np.all(held.codes[held.used] < 0):
            return False
        held = held.take(held.used)
        free = held.codes < 0
        labeled, unlabeled = held.weight[~free].sum(), held.weight[free].sum()
        C_star = float(machine.problem.C * labeled / unlabeled) if unlabeled else 0.0
        machine.problem = replace(machine.problem, C_star=C_star)
        known = held.take(free & (held.place < end))
        weight = C_star * known.loss_weight
        share = np.mean(held.codes[~free] == (1 if self.classes_.size == 2 else index))
        now, then = np.array([free.size, C_star]), np.array(machine.solved)
        # Other rows, or another C*, may be too far away for the path.
        changed = np.any(abs(now - then) > (0 if now[0] <= _FEW else _GROWTH) * then)
        if changed and unlabeled and 0 < share < 1:
            machine.state.x["c"][known.place] = weight
            return True
        for start in range(0, weight.size, _CHUNK):  # a cache need not hold more kernel rows
            part = slice(start, start + _CHUNK)
            if tally.status == "converged":
                machine.reweigh(known.place[part], weight[part])
                self._learn(tally, known.place[:0])
        return False

    @validated
    def forget(self, indices: ArrayLike) -> Self:
        """Unlearn rows: the solution becomes one of the problem without them.

        Parameters
        ----------
        indices : array-like of int
            Positions among all rows given so far and not forgotten, in the order in which they
            came, as in `numpy.delete`. Those that come later move up.

        Returns
        -------
        self : object
            The estimator. After an error it is exactly as it was before the call.

        Raises
        ------
        ValueError
            For an index that is out of range, repeated, or no integer.
        """
        check_is_fitted(self)
        n = self._held.place.size
        rows = np.atleast_1d(np.asarray(indices))
        if rows.size == 0:
            rows = rows.astype(int)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise ValueError(f"indices must be integers, got {indices!r}")
        if np.any((rows < -n) | (rows >= n)):
            raise ValueError(f"indices must lie in [{-n}, {n - 1}] with {n} rows, got {indices!r}")
        rows = rows.astype(np.intp) % max(n, 1)  # in eight bits there may be no n
        if np.unique(rows).size < rows.size:
            raise ValueError(f"indices must not repeat a row, got {indices!r}")
        with self._unchanged_on_error(), using(self.n_jobs):
            self._forget(rows)
        return self

    @contextmanager
    def _unchanged_on_error(self):
        with super()._unchanged_on_error():
            yield
        self._compact()  # afterwards: it overwrites what an error would have to give back

    def _forget(self, rows):
        gone = self._held.place[rows]
        self._held = self._held.take(np.delete(np.arange(self._held.place.size), rows))
        if self._precomputed:
            self.n_features_in_ = self._held.place.size
        fits = []
        for index, machine in enumerate(self._machines):
            tally = Tally(machine)
            machine.leave(gone[gone >= 0])
            if self._follow_C_star(tally, index, self._kernel_store.n):
                self._start_over(tally)
            else:
                self._learn(tally, machine.pending())
            fits.append(self._result(tally))
        self._store(None, None, fits)
        self._check_result()
        self._transduce(None, None, None, fits)
        self._warn_of_limits(fits)

    def _compact(self):
        """Give the memory of forgotten rows back once they are the majority, and have left."""
        if any(machine.n_moving for machine in self._machines):
            return
        held, store = self._held, self._kernel_store
        if store.n > 2 * held.used.size + 64:
            ids = np.sort(held.place[held.used])
            store.compact(ids)
            for machine in self._machines:
                machine.compact(ids)
            place = np.where(held.place < 0, -1, np.searchsorted(ids, held.place))
            self._held = held._replace(place=place)

    # Attributes --------------------------------------------------------------------------------

    def _finish(self, tally):
        """Prove that the solution is one, unless a limit comes before."""
        machine = tally.machine
        if tally.status == "converged":
            residual = machine.finish(budget=max(self.max_iter - tally.n_iter, 0))
            if machine.n_moving and tally.n_iter >= self.max_iter:
                tally.status = "max_iter"
            elif machine.n_moving or residual > _ERROR:
                tally.status = "stalled"
        else:
            machine.finish(False)

    def _result(self, tally):
        """Return the solution of one machine, shown without the ridge."""
        machine, store, held = tally.machine, self._kernel_store, self._held
        self._finish(tally)
        ids, coef = held.place[held.place >= 0], None
        alpha, f, b, rho = machine.read(ids)
        if tally.status == "converged" and rho * np.abs(alpha).max(initial=0) > _ERROR:
            tally.status = "stalled"  # the outputs that are shown leave the ridge out
        # Rows that a limit kept from leaving are no part of the model that is shown.
        leaving = machine.of_leaving()
        if store.storage == "linear":
            # With a linear kernel the weights of the features are the model.
            coef = feature_weights(store.view, ids, alpha)
            if store.center is not None:
                b -= coef @ store.center
        J = machine.value(leaving)
        if tally.status == "converged" and J > 1.01 * machine.objective:
            tally.status = "stalled"  # the ridge hides a part of J
        extra = {"partition_": machine.sets(held.place), "counters_": machine.counters()}
        if self.record:
            extra["path_"] = machine.take_log()
        return BinaryFit(
            alpha, coef, b, f - rho * alpha - leaving[ids], J,
            max(tally.n_iter, 1), tally.status, tally.history, extra,
        )  # fmt: skip

    def _store(self, data, problems, fits):
        self.__dict__.pop("path_", None)
        super()._store(data, [machine.problem for machine in self._machines], fits)
        self.residual_ = max(machine.residual() for machine in self._machines)
        self.gram_ = self._kernel_store.storage

    @property
    def support_vectors_(self):
        """The rows with a nonzero coefficient, computed when asked for."""
        if self._precomputed or not hasattr(self, "support_"):
            raise AttributeError("support_vectors_")
        store = self._kernel_store
        X = store.X[self._held.place[self.support_]]  # centered
        return X if store.center is None else X + store.center

    def _snapshot(self, machine):
        return machine.save(), self._kernel_store.save()

    def _restore(self, machine, snapshot):
        machine.store.load(snapshot[1])
        machine.load(snapshot[0])
