"""Operations on one two-class problem: rows arrive, take part, and leave."""

from typing import NamedTuple

import numpy as np

from s3vm_lib.gram import CACHED
from s3vm_lib.path_following import _ends as ends
from s3vm_lib.path_following import _state as sets
from s3vm_lib.path_following._algebra import outputs, triangular
from s3vm_lib.path_following._path import DONE, LIMIT, LOG_FIELDS, ROOM, ROWS, STALLED, follow
from s3vm_lib.path_following._state import GONE, IDLE, NOW, PLAIN_NOW, SAMPLE, E, M, O, State

SETS = "OMEA"
_LISTS = ("M", "A", "P", "Q", "T", "ids")
_NOBODY = np.zeros((), SAMPLE)
_NOBODY["where"] = GONE
_COUNTS = {  # names in `counters`, and in the dtype `NOW`
    "n_iter": "steps", "n_flips": "flips", "n_back_flips": "back_flips",
    "zero_steps": "zero_steps", "longest_zero_run": "longest_run",
    "outputs_computed": "promoted", "refreshes": "refreshes", "raised_pivots": "raised",
}  # fmt: skip
_LARGE_MARGIN = 100  # from here on rows are taken in by Newton steps over the sets
_ROUNDS = 20
_NEWTON = 20  # steps over the sets at most
_WORK = 2**26  # multiplications in one compiled call
_FALLS = 5
_LESS = 0.8  # share of the samples that move that a Newton step may leave on the move
_SNAP = 1e-7  # relative distance from a bound at which a start is on it


class Operation(NamedTuple):
    """What one operation took."""

    n_iter: int  # steps of the path; of SMO in a convex problem of CCCP
    n_flips: int  # changes of a sign
    objective: float  # J at the end


def _count(field, what):
    """Return a property that reads a counter of the dtype `NOW`."""
    return property(lambda follower: int(follower.now[field]), doc=what)


class Follower:
    """A solution of one two-class problem, kept exact while rows come and go.

    Parameters
    ----------
    store : KernelStore
        Holds the rows; several followers may share it.
    ridge : float, default=1e-8
        ρ relative to the mean diagonal of the kernel matrix.
    order : {"simultaneous", "finite"}, default="simultaneous"
        When signs change: at once, as in the paper, or only where the sample that came first has
        arrived and all its consequences with it, which provably ends.
    tol : float, default=1e-10
        Violations above it are followed up at the end of an operation.
    record : bool, default=False
        Keep one row of `LOG_FIELDS` per step in ``log``.

    Attributes
    ----------
    state : State
    fallbacks : int
        Operations that went on in the finite order, after a limit or a stall.
    """

    def __init__(self, store, ridge=1e-8, order="simultaneous", tol=1e-10, record=False):
        self.store, self.ridge, self.order, self.tol = store, ridge, order, tol
        self.log, self.record, self.problem = [], record, None
        self.fallbacks = self.refactored = 0
        self.solved = 0, 0.0  # rows and C* of the last start
        self._begin()

    def _begin(self):
        """Set the state before the first row."""
        now, none = np.zeros(1, NOW), [np.zeros(0, np.int64) for _ in _LISTS]
        now["seed"], now["slack"], now["radius"], now["allowed"] = 1, -1.0, -1.0, np.inf
        x, w, R = np.full(0, _NOBODY), np.zeros((5, 0)), np.zeros((32, 32))
        self.state = State(x, *none, w=w, R=R, now=now)
        self.now = self.state.now.view(PLAIN_NOW)[0]  # the numbers themselves, no copy of them

    @property
    def _all(self):
        """What compiled functions take: kernel values, state, and number of rows."""
        return self.store.view, self.state, self.store.n

    # Rows --------------------------------------------------------------------------------------

    def take(self, ids, label, weight):
        """Register rows of the store, which are not part of the problem yet.

        Parameters
        ----------
        ids : ndarray of int, shape (m,)
            Their positions in the store: new ones, or of rows that have left.
        label : ndarray of shape (m,)
            −1, +1, or 0 for unlabeled.
        weight : ndarray of shape (m,)
            Weights c of their losses; 0 keeps a row idle.
        """
        if self.state.x.size != self.store.capacity:
            self._resize(self.store.capacity)
        self._fetched()
        p, now, x = self.state, self.now, np.zeros(ids.size, SAMPLE)
        x["s"], x["free"] = np.where(label == 0, 1.0, label), label == 0
        x["c"], x["where"] = weight, IDLE
        if ids.size == 0:
            return
        if p.x["touched"][ids].any():
            self._settled()  # α of a row that has just left still counts in what has changed
        p.x[ids] = _NOBODY
        # Outputs of the new rows at the last refresh.
        support = np.flatnonzero(p.x["alpha0"][: self.store.n])
        x["f"] = now["b0"]
        if support.size:
            x["f"] += outputs(self.store, support, p.x["alpha0"][support], ids)
        x["f0"] = x["f"]
        p.x[ids] = x
        diagonal = self.store.view.diagonal
        now["largest"] = np.sqrt(diagonal[: self.store.n].max())
        self._choose_ridge()

    def _choose_ridge(self):
        """Set ρ and σ by the size of the kernel, again when that has changed much."""
        p, now = self.state, self.now
        scale = float(np.mean(self.store.view.diagonal[: self.store.n])) or 1.0
        if now["sigma"] == 0 or not 0.25 < scale / now["sigma"] < 4:
            # With one class alone M holds a row whose α is 0: the factor is there nevertheless.
            some = bool(p.x["alpha"][: self.store.n].any()) or self.n_margin > 0
            before = now["rho"]
            if some:
                self._settled()  # by the factor and the outputs of the old ρ and σ
            now["rho"], now["sigma"] = self.ridge * scale, scale
            if some:
                p.x["f"] += (now["rho"] - before) * p.x["alpha"]
                sets.reference(p, self.store.n)
                self.factorize()

    def _resize(self, size):
        """Make memory for ``size`` rows that begins with what is known."""
        known = self._known(self.state.x.size)
        new = {name: np.zeros(size, np.int64) for name in _LISTS} | {"x": np.full(size, _NOBODY)}
        for name, part in new.items():
            part[: known[name].size] = known[name][:size]
        self.state = self.state._replace(**new, w=np.zeros((5, size)))

    def _known(self, n):
        """Return what is known of the first n rows."""
        return {name: getattr(self.state, name)[:n] for name in ("x", *_LISTS)}

    def start(self, alpha, s):
        """Cross over from an approximate solution, for example one of CCCP.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
            Signed dual variables of all rows of the store.
        s : ndarray of shape (n,)
            Signs −1 and +1; for labeled rows their labels.
        """
        p, now, n = self.state, self.now, self.store.n
        x = p.x[:n]
        gone = (x["where"] == GONE) | (x["leaving"] == 1)
        x["leaving"] = x["flipped"] = now["n_moving"] = 0
        c = np.where(gone, 0.0, x["c"])
        a = np.clip(s * alpha, 0, c)
        # A coefficient next to an end of its box is put there.
        near = _SNAP * c
        a = np.where(a <= near, 0.0, np.where(a >= c - near, c, a))
        inside = np.flatnonzero((a > 0) & (a < c))
        x["s"], x["alpha"], x["alpha0"] = s, s * a, 0.0
        # The sets follow from the coefficients: M inside the box, O and E at its ends.
        x["where"] = np.where(gone, GONE, np.where(c == 0, IDLE, np.where(a == 0, O, E)))
        x["where"][inside], x["place"][inside] = M, np.arange(inside.size)
        p.M[: inside.size], now["n_margin"] = inside, inside.size
        support = np.flatnonzero(a)
        now["b"] = now["b0"] = 0.0
        x["f"] = outputs(self.store, support, x["alpha"][support], np.arange(n))
        x["f"] += now["rho"] * x["alpha"]
        sets.reference(p, n)
        self.factorize()
        self.energy()

    def present(self):
        """Return the rows that take part and stay, or wait to take part; their t and c."""
        x = self.state.x[: self.store.n]
        rows = np.flatnonzero((x["c"] > 0) & (x["where"] <= IDLE) & (x["leaving"] == 0))
        part = x[rows]
        return rows, np.where(part["free"] == 1, 0.0, part["s"]), part["c"].copy()

    def pending(self):
        """Return the rows that were taken, have a weight, and do not take part yet."""
        x = self.state.x[: self.store.n]
        return np.flatnonzero((x["where"] == IDLE) & (x["c"] > 0))

    def reweigh(self, ids, weight):
        """Set other weights for rows of the store; `run` or `learn` next, as A is not empty."""
        self.take(ids[:0], weight[:0], weight[:0])  # memory for all rows of the store
        new = self.state.x["c"][ids] != weight
        ends.reweigh(self.store.view, self.state, ids[new], weight[new], self.store.n)

    def mode(self):
        """Return how rows are to be added where ``update`` is "auto"."""
        return "block" if self.n_margin > _LARGE_MARGIN else "together"

    def learn(self, ids, block=False, max_steps=None, work=np.inf):
        """Let rows that were taken take part, all at once, and finish what is under way.

        Parameters
        ----------
        ids : ndarray of int
        block : bool, default=False
            By `rounds`, and a path for what they leave.
        max_steps : int, default=None
            Newton steps included; `run` may go on where it stopped.
        work : float, default=np.inf
            Multiplications that the path may take.

        Returns
        -------
        status : str
            "converged", "max_iter" or, when it has cost too much, "given up".
        operation : Operation
        """
        before, now = (self.n_iter, self.n_flips), self.now
        now["allowed"] = now["spent"] + work
        if len(ids):
            ends.enter(self.store.view, self.state, np.asarray(ids, dtype=int), self.store.n)
        if block:
            self.rounds(max_steps)
        left = None if max_steps is None else max_steps - (self.n_iter - before[0])
        arrived = self.run(left)
        done = Operation(self.n_iter - before[0], self.n_flips - before[1], self.objective)
        too_long = self._too_much_work() and (max_steps is None or done.n_iter < max_steps)
        now["allowed"] = np.inf
        return "converged" if arrived else "given up" if too_long else "max_iter", done

    def _too_much_work(self):
        return bool(self.now["spent"] > self.now["allowed"] and self.now["n_moving"] > 0)

    def leave(self, ids):
        """Mark rows to go; their positions stay reserved until `compact`. `run` removes them."""
        for i in ids:
            ends.leave(self.store.view, self.state, i, self.store.n)

    def compact(self, keep):
        """Follow `KernelStore.compact`, after `finish`, with A empty."""
        p, now, k = self.state, self.now, keep.size
        place = np.full(p.x.size, -1)
        place[keep] = np.arange(k)
        p.x[:k] = p.x[keep]
        p.x[k:] = _NOBODY
        for part, count in ((p.M, now["n_margin"]), (p.T, now["n_touched"])):
            part[:count] = place[part[:count]]

    # The path ----------------------------------------------------------------------------------

    def rounds(self, max_steps=None):
        """Take Newton steps over the sets until A is empty or does not become smaller.

        Each decides for the samples of A where they will end, solves for M, and moves
        misplaced samples into A. A few that remain are left to the path. Where more and more
        samples move, as with kernels of low rank, all is taken back, and False returned.
        """
        start, now = self.save(), self.now
        first = before = now["n_moving"]
        for k in range(_NEWTON if max_steps is None else min(_NEWTON, max_steps)):
            count, m = now["n_moving"], now["n_margin"]
            if count == 0 or m == 0:
                break
            # The first step may stir up many; each later one must leave fewer on the move.
            most = max(2 * first, m // 2) if k == 1 else max(_LESS * before, 2)
            if k > 0 and count > most:
                if count <= first:
                    break
                self.load(start)
                return False
            before = count
            if m + count + 1 > len(self.state.R):
                self._more_room(m + count + 1)
            self._fetched()
            self._newton_step()
            sets.refresh(*self._all)
            ends.violators(*self._all, False, self.tol)
        self.energy()
        return True

    def _newton_step(self):
        """Choose new samples of M and targets of A, and step to where both end."""
        v, p, now = self.store.view, self.state, self.now
        X = ends.candidates(v, p)
        if X.size:
            X = triangular(p.R, now["n_margin"], X.T).T
        ends.propose(v, p, X)
        m = now["n_margin"]
        r, r0 = ends.demand(v, p)
        top, one = triangular(p.R, m, r + now["sigma"] * r0), triangular(p.R, m, np.ones(m))
        delta = (top @ one - r0) / (one @ one)
        ends.to_targets(p, triangular(p.R, m, top - delta * one, 1), delta)

    def run(self, max_steps=None, budget=np.inf):
        """Follow the path until A is empty; return False if ``max_steps`` or ``budget`` ends it.

        Without ``max_steps`` the finite order takes over where the path has become long.
        """
        now, hold, steps = self.now, self.order == "finite", self.n_iter
        if now["n_moving"] + now["n_locked"] == 0 and not hold and self.store.view.kind != CACHED:
            now["zero_run"] = 0  # no sample moves, and no kernel rows are to be fetched
            return True
        log = np.zeros((256 if self.record else 0, len(LOG_FIELDS)))
        limit, falls, since = 20 * (self.store.n + 10), 0, steps
        allowed = limit
        while True:
            bound = since + allowed if max_steps is None else steps + max_steps
            left = min(bound, steps + budget) - now["steps"]
            m, k = now["n_margin"], now["n_moving"]
            # Some tenths of a second of work, after which Python can answer Ctrl-C.
            few = 1 + _WORK // ((self.store.n + m) * (1 + m + k))
            code = follow(*self._all, min(left, few), hold, log)
            # Only this portion of the work is over.
            if code == LIMIT and few < left and not self._too_much_work():
                continue
            if self.record:
                self.log.extend(log[: now["logged"]].tolist())
                now["logged"] = 0
            if code == ROOM:
                self._more_room()
            elif code == ROWS:
                if now["n_touched"] > now["n_margin"] + now["n_moving"]:
                    self._settled()
                else:
                    self.store.more_slots()
            elif code == LIMIT and (
                max_steps is not None or self._too_much_work() or now["steps"] >= steps + budget
            ):
                return False
            elif code in (STALLED, LIMIT):
                if falls == _FALLS:
                    return False
                # The finite order takes over, with more steps each time.
                hold, allowed, falls = True, limit + allowed, falls + 1
                since = now["steps"]
                self.fallbacks += 1
            elif code == DONE:
                if not hold:
                    return True
                self._settled()
                if not ends.flip_worst(*self._all):
                    return True

    def _more_room(self, least=0):
        """Make room for half as many rows on the margin again."""
        R = self.state.R
        size = 8 + 3 * max(len(R), least) // 2
        larger = np.zeros((size, size))
        larger[: len(R), : len(R)] = R
        self.state = self.state._replace(R=larger)

    def _fetched(self):
        """Fetch the kernel rows of T, which copies and rows of other followers may displace."""
        if self.store.view.kind == CACHED:
            while not sets.fetch_touched(*self._all):
                self.store.more_slots()

    def _settled(self):
        """Bring all outputs up to date, and those of M to ±1 exactly; return what is left."""
        self._fetched()
        worst = sets.polish(self.store.view, self.state)
        sets.refresh(*self._all)
        return worst

    def finish(self, follow_up=True, budget=np.inf):
        """Compute all outputs, and prove that nothing was overlooked.

        Parameters
        ----------
        follow_up : bool, default=True
            Follow up violations of the optimality conditions; False only computes the outputs.
        budget : float, default=np.inf
            Steps that this may take; what is under way then stays in A.

        Returns
        -------
        float
            The residual, see `residual`.
        """
        end = self.n_iter + budget
        for _ in range(_ROUNDS if follow_up else 1):
            # A factor that has drifted is computed anew.
            if self._settled() > self.tol:
                self.factorize()
                self._settled()
            if not follow_up or not ends.violators(*self._all, False, self.tol):
                break
            if not self.run(budget=end - self.n_iter) and self.n_iter >= end:
                self._settled()
                break
        self.energy()
        return self.residual()

    def factorize(self):
        """Compute the factor of the margin block from scratch."""
        now, m = self.now, self.n_margin
        index = self.state.M[:m]
        self.refactored += 1
        if len(self.state.R) <= m:
            self._more_room(m + 1)
        if m:
            S = self.store.gram(index, index) + now["sigma"]
            S.flat[:: m + 1] += now["rho"]
            self.state.R[:m, :m] = np.linalg.cholesky(S).T

    # What was found ----------------------------------------------------------------------------

    @property
    def b(self):
        """The offset."""
        return float(self.now["b"])

    n_iter = _count("steps", "Steps so far.")
    n_flips = _count("flips", "Changes of sign so far.")
    n_margin = _count("n_margin", "Size of M.")
    n_moving = _count("n_moving", "Size of A.")

    @property
    def objective(self):
        """−W, which is J, ridge included, where A is empty."""
        return float(-self.now["energy"])

    def read(self, ids):
        """Return α, outputs, b and ρ of the rows ``ids``."""
        x, now = self.state.x, self.now
        return x["alpha"][ids], x["f"][ids], float(now["b"]), float(now["rho"])

    def energy(self):
        """Return W = ½αᵀ(K + ρI)α − Σ a, minus the objective where A is empty; computed anew."""
        return ends.energy(self.state, self.store.n)

    def value(self, leaving):
        """Return J of the rows that take part or wait to, without the ridge; all outputs current.

        ``leaving`` is what `of_leaving` returns.
        """
        return ends.value(self.state, self.store.n, leaving)

    def of_leaving(self):
        """Return what rows that are being removed still add to all outputs, shape (n,)."""
        n = self.store.n
        x = self.state.x[:n]
        rows = np.flatnonzero((x["leaving"] == 1) & (x["alpha"] != 0))
        if rows.size == 0:
            return np.zeros(n)
        return outputs(self.store, rows, x["alpha"][rows], np.arange(n))

    def residual(self):
        """Return the largest violation of the KKT, box, sign and sum conditions, after `finish`."""
        return ends.residual(self.state, self.store.n)

    def sets(self, ids):
        """Return indices into ``ids`` of the members of O, M, E and A; negative ids are ignored."""
        where = np.where(ids < 0, GONE, self.state.x["where"][ids])
        return {name: np.flatnonzero(where == k) for k, name in enumerate(SETS)}

    def counters(self):
        """Return the numbers of steps, flips and alarms of the guards since the beginning."""
        counts = {name: int(self.now[field]) for name, field in _COUNTS.items()}
        return counts | {"fallbacks": self.fallbacks, "factorizations": self.refactored}

    def take_log(self):
        """Return the log as one array per field, and empty it."""
        rows = np.array(self.log).reshape(-1, len(LOG_FIELDS))
        self.log = []
        parts = {name: rows[:, k].copy() for k, name in enumerate(LOG_FIELDS)}
        whole = ("event", "sample", "n_margin", "n_moving", "case")
        return {name: part.astype(int) if name in whole else part for name, part in parts.items()}

    # Copies ------------------------------------------------------------------------------------

    def save(self):
        """Return copies of all arrays that an operation changes, the factor apart."""
        known = self._known(self.store.n)
        # NumPy copies records field by field, and bytes at once.
        known = {name: part.view(np.uint8).copy() for name, part in known.items()}
        rest = (len(self.log), self.fallbacks, self.refactored, self.problem, self.solved)
        return known, self.state.now.copy(), rest

    def load(self, saved):
        """Restore what was saved; the store must have been restored before."""
        known, now, (n_log, self.fallbacks, refactored, self.problem, self.solved) = saved
        # Rows after those that were saved are unknown again.
        self.state.x[:] = _NOBODY
        for name, part in known.items():
            getattr(self.state, name).view(np.uint8)[: part.size] = part
        self.state.now[:] = now
        self.log = self.log[:n_log]
        self.factorize()
        self.refactored = refactored

    def __getstate__(self):
        """Return the state without workspace, and without the factor, which is computed again."""
        return self.__dict__ | {"state": None, "now": None, "saved": self.save()}

    def __setstate__(self, state):
        saved = state.pop("saved")
        self.__dict__.update(state)
        self._begin()
        self._resize(self.store.capacity)
        self.load(saved)
