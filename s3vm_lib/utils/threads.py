"""Start threads, which nothing else does: parts of a computation side by side, the same result.

What may run side by side is cut into parts by the data alone, never by the number of threads, and
every part writes its own result: so not a bit depends on how many threads there are. Compiled
functions and BLAS release Python's lock, so that threads save time. BLAS has
one thread for each of them.
"""

import contextlib
import contextvars
import functools
import sys
import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from numbers import Integral

MOST = 1024  # threads
_PATIENCE = 0.2  # seconds between looks at Ctrl-C
_chosen = contextvars.ContextVar("n_jobs", default=None)  # set by `using`
_lock, _limiting, _held = threading.Lock(), [], [0]


def thread_count(n_jobs=None):
    """Return the number of threads that ``n_jobs`` stands for.

    Parameters
    ----------
    n_jobs : int, default=None
        As in scikit-learn: −1 means all cores, −2 all but one, and None what `using` or else
        ``joblib.parallel_config`` says, 1 where neither says anything.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If it is 0 or no integer.
    """
    n_jobs = _chosen.get() if n_jobs is None else n_jobs
    if n_jobs is None and "joblib" not in sys.modules:
        return 1
    if n_jobs is not None and (
        isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0
    ):
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}")
    if n_jobs is not None and n_jobs > 0:
        return min(int(n_jobs), MOST)
    from joblib import effective_n_jobs

    return min(effective_n_jobs(n_jobs), MOST)


@contextlib.contextmanager
def using(n_jobs):
    """Set the number of threads for all calls within that give none.

    Parameters
    ----------
    n_jobs : int or None
        None changes nothing.
    """
    if n_jobs is None:
        yield
        return
    thread_count(n_jobs)
    token = _chosen.set(n_jobs)
    try:
        yield
    finally:
        _chosen.reset(token)


def with_threads(method):
    """Decorate a method so that `using` is called with the ``n_jobs`` of its object."""

    @functools.wraps(method)
    def run(self, *args, **kwargs):
        with using(getattr(self, "n_jobs", None)):
            return method(self, *args, **kwargs)

    return run


def in_threads(function, items, n_jobs=None):
    """Call a function on each of the items in threads; return the results in their order.

    Parts within parts take turns. With n_jobs other than None BLAS has one thread meanwhile, also
    where n_jobs is 1: products by several of its threads may be rounded in another way.

    Parameters
    ----------
    function : callable
        Of one item; writes nothing that the others read.
    items : iterable
    n_jobs : int, default=None
        See `thread_count`.

    Returns
    -------
    list

    Raises
    ------
    BaseException
        What the first of the items that failed raised. After Ctrl-C no further item is begun, and
        those under way are waited for.
    """
    items = list(items)
    count = min(thread_count(n_jobs), len(items))
    asked = n_jobs is not None or _chosen.get() is not None
    if count < 2:
        with _one_blas_thread() if asked and len(items) else contextlib.nullcontext():
            return [function(item) for item in items]
    with _one_blas_thread():
        return _in_pool(function, items, count)


def _in_pool(function, items, count):
    # A context for each: one cannot be entered twice, and holds NumPy's errstate.
    contexts = [contextvars.copy_context() for _ in items]

    def alone(k):
        _chosen.set(1)
        return function(items[k])

    with ThreadPoolExecutor(count) as pool:
        parts = [pool.submit(contexts[k].run, alone, k) for k in range(len(items))]
        try:
            # Not for ever: Ctrl-C may wake up another thread.
            while wait(parts, _PATIENCE, FIRST_EXCEPTION).not_done:
                if any(part.done() and part.exception() for part in parts):
                    break
        finally:  # items before a failed one were begun before it, and are finished
            pool.shutdown(cancel_futures=True)
    return [part.result() for part in parts if not part.cancelled()]


@contextlib.contextmanager
def _one_blas_thread():
    """Give BLAS one thread until the last caller is done."""
    from sklearn.utils.parallel import _get_threadpool_controller

    controller = _get_threadpool_controller()
    with _lock:
        _held[0] += 1
        # To set the number takes longer than to look at it.
        if _held[0] == 1 and any(
            info["num_threads"] != 1 for info in controller.info() if info["user_api"] == "blas"
        ):
            _limiting.append(controller.limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            _held[0] -= 1
            if _held[0] == 0 and _limiting:
                _limiting.pop().restore_original_limits()
