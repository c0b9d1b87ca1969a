"""Fits in a child process under limits of processor time and memory.

The child serves many fits and is replaced when a limit has ended it. What decides a number here
is `measure`; the rest only carries it.

Most fits of a cell begin with the same estimate of the class ratio, which costs more than all that
follows. A child computes it once, and charges its time and memory to every fit that uses it.
"""

import ctypes
import gc
import hashlib
import multiprocessing
import resource
import signal
import time
import warnings
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from s3vm_lib.class_ratio import RATIO_RULES

_COMPILED = 0.02  # share of a fit that may be compilation before it is timed again
_HUNG = (600, 10)  # wall seconds, and more per allowed CPU second, until a child counts as hung
_STATUS = Path("/proc/self/status")


class Task(NamedTuple):
    """What a child is asked: a cell, a method, a mode and the limits (seconds, MB, compilation)."""

    set: object
    labels: int
    draw: int
    method: object
    mode: str = "default"
    seconds: float = 10.0
    megabytes: float = 2000.0
    warm_seconds: float = 600.0


class Shared:
    """The rule "auto" for the class ratio, which remembers what it was asked, and what that took.

    Parameters
    ----------
    rule : callable
        ``(data, C) -> shares``, a function of its arguments alone.
    """

    def __init__(self, rule):
        self.rule = rule
        self.known = {}  # arguments -> shares, CPU seconds, megabytes
        self.begin()

    def begin(self, again=False):
        """A fit starts; one that is timed again computes what it has computed before."""
        for key in self.new if again else ():
            del self.known[key]
        self.new = []
        self.seconds = self.megabytes = 0.0  # to be charged

    def __call__(self, data, C):
        start = time.process_time()
        key = _digest(data, C)
        looked_up = time.process_time() - start
        if key in self.known:
            shares, seconds, megabytes = self.known[key]
            self.seconds += seconds
            self.megabytes = max(self.megabytes, megabytes)
        else:
            before = _peak()
            shares = self.rule(data, C)
            seconds = time.process_time() - start - looked_up
            self.known[key] = shares, seconds, _peak() - before
            self.new.append(key)
        self.seconds -= looked_up
        return shares.copy()


def _digest(data, C):
    """Whatever the shares can depend on."""
    X = data.X
    arrays = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]
    arrays += [data.rows, data.codes, data.sample_weight, data.loss_weight]
    facts = X.shape, [one.dtype.str for one in arrays], data.kernel, data.n_classes, float(C)
    digest = hashlib.blake2b(repr(facts).encode())
    for one in arrays:
        digest.update(np.ascontiguousarray(one))
    return digest.digest()


def measure(cell, method, mode, draw):
    """Fit once and count.

    Returns
    -------
    dict
        ``wrong`` (of the unlabeled rows), ``wrong_test``, ``cpu``, ``status``, ``n_iter``, and,
        where there are such, ``ratio``, ``chosen`` (the kernel), ``C`` (likewise) and ``best``.
    """
    from sklearn.exceptions import ConvergenceWarning

    unlabeled = cell.y == -1
    X, y = (cell.X[~unlabeled], cell.y[~unlabeled]) if method.supervised else (cell.X, cell.y)
    model = method.build(draw)
    if method.told:
        classes, counts = np.unique(cell.truth[unlabeled], return_counts=True)
        shares = np.maximum(counts / counts.sum(), 1e-3)
        model.set_params(balance=dict(zip(classes.tolist(), shares / shares.sum(), strict=True)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        model, found = search(model, method, X, y) if mode == "search" else (model.fit(X, y), {})
        cpu = time.process_time() - start
        if not method.supervised and hasattr(model, "transduction_"):
            predicted = np.array(model.transduction_[unlabeled])
            silent = predicted == -1  # self-training leaves rows that it is not sure of
            if silent.any():
                predicted[silent] = model.predict(cell.X[unlabeled][silent])
        else:
            predicted = model.predict(cell.X[unlabeled])
        predicted_test = model.predict(cell.X_test)
    warned = any(issubclass(one.category, ConvergenceWarning) for one in caught)
    chosen = getattr(getattr(model, "problem_", None), "ratio", None)
    if chosen is not None and abs(chosen - np.mean(cell.y[~unlabeled])) > 1e-9:
        found["ratio"] = float(f"{chosen:.4g}")  # not the share among the labels
    if hasattr(model, "kernel_"):
        found["chosen"] = model.kernel_
    if hasattr(model, "C_"):
        found["C"] = model.C_
    n_iter = getattr(model, "n_iter_", None)
    return {
        "wrong": int(np.sum(predicted != cell.truth[unlabeled])),
        "wrong_test": int(np.sum(predicted_test != cell.y_test)),
        "cpu": cpu,
        "status": "warned" if warned else "ok",
        "n_iter": None if n_iter is None else int(np.max(n_iter)),
        **found,
    }


def search(model, method, X, y):
    """The setting with the best cross-validation score on the labels, and the model with it.

    Stratified folds, five or as many as the rarer class has labels; unlabeled rows are in every
    training part; among settings that tie the smallest values, `PreferSmallest`. Where a class has
    one label there is no cross-validation, and the defaults stay. `S3VMSearchCV` chooses what
    `GridSearchCV` chooses, in less time.
    """
    from sklearn.model_selection import GridSearchCV

    from s3vm_lib.model_selection import (
        PreferSmallest,
        S3VMSearchCV,
        SemiSupervisedKFold,
        labeled_accuracy_scorer,
    )

    folds = min(5, int(np.unique(y[y != -1], return_counts=True)[1].min()))
    if folds < 2:
        return model.fit(X, y), {"best": {}}
    options = {
        "scoring": labeled_accuracy_scorer,
        "cv": SemiSupervisedKFold(folds),
        "refit": PreferSmallest(*method.grid),
    }
    if method.type.__module__.startswith("s3vm_lib."):
        grid = S3VMSearchCV(model, method.grid, **options).fit(X, y)
    else:
        grid = GridSearchCV(model, method.grid, **options).fit(X, y)
    return grid.best_estimator_, {"best": grid.best_params_}


@contextmanager
def _limited(seconds, megabytes):
    """Soft limits of this process, counted from now; reaching that of time kills it."""
    used = time.process_time()
    size = 4096 * int(Path("/proc/self/statm").read_text().split()[0]) if _STATUS.exists() else 0
    old = [resource.getrlimit(kind) for kind in (resource.RLIMIT_CPU, resource.RLIMIT_AS)]
    new = (int(used + seconds) + 1, int(size + megabytes * 2**20))
    for kind, soft, (_, hard) in zip(
        (resource.RLIMIT_CPU, resource.RLIMIT_AS), new, old, strict=True
    ):
        resource.setrlimit(kind, (soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, old[1])
        resource.setrlimit(resource.RLIMIT_CPU, old[0])


def _peak(reset=False):
    """Megabytes that the process has held at most since the last reset (Linux), else NaN."""
    if not _STATUS.exists():
        return float("nan")
    if reset:  # what earlier fits have left in the heap would hide what this one takes
        gc.collect()
        getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
        Path("/proc/self/clear_refs").write_text("5")
    lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024


def _timed_compilation():
    """Seconds that numba's compiler was busy, as a list that grows; nothing without numba."""
    spent, stack = [], ExitStack()
    try:
        from numba.core import event
    except ImportError:
        return stack, spent
    stack.enter_context(event.install_timer("numba:compiler_lock", spent.append))
    return stack, spent


def _answer(task, pools, warm, say, shared):
    from benchmarks.bakeoff import draws

    key = task.set.name, task.draw
    if key not in pools:
        pools.clear()
        shared.known.clear()
        pools[key] = draws.pool(task.set, task.draw)
    cell = draws.cell(pools[key], task.labels)
    if cell.X.shape[0] > getattr(task.method.type, "_largest_n", np.inf):
        return {"status": "skipped"}
    kind = task.method.name, type(cell.X), len(np.unique(cell.truth)) > 2
    if kind not in warm:  # machine code is compiled, and stored for later processes
        small = slice(0, task.labels + 60)
        few = cell._replace(X=cell.X[small], y=cell.y[small], truth=cell.truth[small])
        # What fails here fails again below, and is recorded there.
        with suppress(Exception), _limited(task.warm_seconds, 10 * task.megabytes):
            measure(few, task.method, "default", task.draw)
        warm.add(kind)
        say(kind)
    for attempt in range(2):
        stack, compiled = _timed_compilation()
        shared.begin(again=attempt > 0)
        before = _peak(reset=True)
        try:
            with stack, _limited(task.seconds, task.megabytes):
                result = measure(cell, task.method, task.mode, task.draw)
        except MemoryError:
            return {"status": "memory"}
        except Exception as error:  # a row that tells what happened
            return {"status": "failed", "error": f"{type(error).__name__}: {error}"[:160]}
        result["megabytes"] = max(_peak() - before, shared.megabytes)
        result["cpu"] += shared.seconds
        if attempt or sum(compiled) <= _COMPILED * result["cpu"]:
            return result if result["cpu"] <= task.seconds else {"status": "time"}
    raise AssertionError("unreachable")


def serve(connection):
    """Answer tasks until the other side is gone."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pools = {}
    shared = RATIO_RULES["auto"] = Shared(RATIO_RULES["auto"])
    while True:
        try:
            task, warm = connection.recv()
        except EOFError:
            return
        connection.send(_answer(task, pools, warm, connection.send, shared))


class Worker:
    """A child process that measures, and is started again when a limit has ended it."""

    def __init__(self):
        self.process = None
        self.warm = set()  # what children have compiled, the present one or an earlier one

    def measure(self, task):
        """The result of one task, whatever becomes of the child; see `measure`."""
        if self.process is None or not self.process.is_alive():
            self._start()
        self.connection.send((task, self.warm))
        allowed = _HUNG[0] + _HUNG[1] * (task.seconds + task.warm_seconds)
        try:
            while self.connection.poll(allowed):
                said = self.connection.recv()
                if isinstance(said, dict):
                    return said
                self.warm.add(said)
            self.close()
            return {"status": "hung"}
        except (EOFError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode
            self.process = None
        if code == -signal.SIGXCPU:
            return {"status": "time"}
        name = signal.Signals(-code).name if code < 0 else f"exit {code}"
        return {"status": "crashed", "error": name}

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def close(self):
        """End the child."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
            self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
