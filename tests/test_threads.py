"""Threads: the same bits for any number of them, their own errors, and an end on Ctrl-C."""

import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits

import s3vm_lib
from s3vm_lib.gram import Gram
from s3vm_lib.kernels import Kernel, pivoted_cholesky
from s3vm_lib.utils import threads
from s3vm_lib.utils.row_blocks import sized_slices
from s3vm_lib.utils.threads import in_threads, thread_count, using

COUNTS = (1, 2, 3)


def same(results):
    first, *others = results
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert_array_equal(a, b)


def rows(n=900, d=6, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.fixture
def small_blocks(monkeypatch):
    """Many blocks on few rows."""
    small = lambda n, width, *size: sized_slices(n, width, 2**10, 16)  # noqa: E731
    for module in ("kernels", "base.machine"):
        monkeypatch.setattr(f"s3vm_lib.{module}.sized_slices", small)


# --- The crew -------------------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_items():
    def late_first(k):
        time.sleep(0.002 * (7 - k))
        return k * k

    for count in COUNTS:
        assert in_threads(late_first, range(7), count) == [k * k for k in range(7)]
    assert in_threads(late_first, [], 2) == []


def test_there_are_as_many_threads_as_asked_for():
    meet = threading.Barrier(2, timeout=20)
    in_threads(lambda _: meet.wait(), range(4), 2)  # ends only where two are there at once
    assert len(set(in_threads(lambda _: threading.get_ident(), range(9), 1))) == 1


def test_the_first_item_that_failed_says_why():
    def fail(k):
        if k == 0:
            time.sleep(0.05)
        if k in (0, 1, 4):
            raise KeyError(f"block {k}")
        return k

    for count in COUNTS:
        with pytest.raises(KeyError, match="block 0"):
            in_threads(fail, range(6), count)


def test_parts_within_parts_take_turns():
    def inner(_):
        return set(in_threads(lambda _: threading.get_ident(), range(5), None))

    for found in in_threads(inner, range(3), 2):
        assert len(found) == 1
    with using(2):
        for found in in_threads(inner, range(3)):
            assert len(found) == 1


def test_after_a_failure_nothing_more_is_begun():
    begun = []

    def fail(k):
        begun.append(k)
        if k == 0:
            raise KeyError(k)
        time.sleep(0.02)

    with pytest.raises(KeyError):
        in_threads(fail, range(200), 2)
    assert len(begun) < 150


def test_an_object_says_how_many_threads_its_methods_have():
    class Fitted:
        n_jobs = 3

        @threads.with_threads
        def count(self, extra):
            """Of threads."""
            return thread_count() + extra

    assert Fitted().count(extra=1) == 4 and Fitted.count.__doc__ == "Of threads."
    assert thread_count() == 1
    Fitted.n_jobs = None
    with using(2):
        assert Fitted().count(0) == 2


def test_what_numpy_ignores_is_ignored_in_threads():
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        in_threads(lambda k: np.exp(np.full(3, 1e4)), range(3), 2)
    with np.errstate(over="ignore"):
        in_threads(lambda k: np.exp(np.full(3, 1e4)), range(3), 2)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="signals reach the main thread alone",
)
def test_control_c_begins_nothing_more():
    begun = []

    def slow(k):
        begun.append(k)
        if k == 5:  # while items are under way, however busy the machine is
            signal.raise_signal(signal.SIGINT)
        if k >= 5:
            time.sleep(0.2)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    try:
        with pytest.raises(KeyboardInterrupt):
            in_threads(slow, range(200), 2)
    finally:
        signal.signal(signal.SIGINT, handler)
    before = len(begun)
    assert before < 150
    time.sleep(0.3)
    assert len(begun) == before  # and nothing goes on


def test_blas_has_one_thread_for_each_of_ours():
    def blas(_=None):
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = blas()
        for count in COUNTS:
            for found in in_threads(blas, range(3), count):
                assert set(found) <= {1}
            assert blas() == before
        assert in_threads(blas, range(2)) == [before, before]  # nobody asked for threads
        with pytest.raises(ZeroDivisionError):
            in_threads(lambda _: 1 / 0, range(3), 2)
        assert blas() == before

        def nested(_):
            in_threads(blas, range(2), 1)  # whoever ends first gives nothing back
            return blas()

        for count in COUNTS:
            for found in in_threads(nested, range(3), count):
                assert set(found) <= {1}
        assert blas() == before


# --- How many -------------------------------------------------------------------------------------


def test_n_jobs_means_what_it_does_in_scikit_learn():
    from joblib import cpu_count, parallel_config

    assert thread_count() == thread_count(1) == 1
    assert thread_count(-1) == cpu_count()
    assert thread_count(-(10**6)) == 1
    assert thread_count(10**6) == threads.MOST
    with parallel_config("threading", n_jobs=3):
        assert thread_count() == 3
        assert thread_count(2) == 2
        with using(5):
            assert thread_count() == 5
    with using(None):
        assert thread_count() == 1


@pytest.mark.parametrize("wrong", [0, 1.5, "two", True])
def test_no_number_of_threads(wrong):
    with pytest.raises(ValueError, match="n_jobs must be None or an integer other than 0"):
        thread_count(wrong)
    with pytest.raises(ValueError, match="n_jobs"):
        s3vm_lib.SVM(n_jobs=wrong).fit(rows(4), [0, 1, 0, 1]) if wrong is not True else using(
            True
        ).__enter__()


# --- Parts of the library -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "laplacian"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_gram_blocks(name, kind, small_blocks):
    kernel, X = Kernel(name, gamma=0.3, sigma_f=1.3, coef0=0.5), rows(150)
    X[np.abs(X) < 0.5] = 0
    X = kind(X)
    results = []
    for count in (None, *COUNTS):
        with using(count):
            results.append((kernel.gram(X), kernel.gram(X[:70], X[70:]), kernel.gram(X[70:], X)))
    same(results)
    K, cross, _ = results[0]
    if kind is np.asarray:
        assert_array_equal(K, K.T)
    np.testing.assert_allclose(K[:70, 70:], cross, rtol=1e-12, atol=1e-12)
    Z = X if kind is np.asarray else X.toarray()
    expected = {
        "linear": Z @ Z.T,
        "poly": (0.3 * (Z @ Z.T) + 0.5) ** 3,
        "rbf": np.exp(-0.3 * ((Z[:, None] - Z) ** 2).sum(axis=2)),
        "laplacian": np.exp(-0.3 * np.abs(Z[:, None] - Z).sum(axis=2)),
    }[name]
    np.testing.assert_allclose(K, 1.3**2 * expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 7, 30])
def test_powers_of_a_polynomial_kernel(degree):
    X = rows(20)
    K = Kernel("poly", gamma=0.1, degree=degree, coef0=1.0).gram(X)
    np.testing.assert_allclose(K, (0.1 * (X @ X.T) + 1.0) ** degree, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "laplacian"])
def test_the_matrix_of_smo(name):
    results = []
    for count in COUNTS:
        with using(count):
            results.append([Gram(rows(700), Kernel(name, gamma=0.3), storage="full").cache.values])
    same(results)


def test_low_rank_factors():
    X, kernel, results = rows(3000), Kernel("rbf", gamma=0.1), []
    for count in COUNTS:
        with using(count):
            results.append(
                pivoted_cholesky(X, kernel, 200, first=np.arange(9), pivoting="residual", block=64)
            )
    same(results)
    G, pivots, _ = results[0]
    assert_array_equal(G[pivots], np.tril(G[pivots]))
    assert np.max(np.abs((G @ G[pivots].T) - kernel.gram(X, X[pivots]))) < 1e-8


def three_classes(n=240):
    rng = np.random.default_rng(1)
    truth = np.arange(n) % 3
    X = rng.standard_normal((n, 4)) + 2.5 * np.eye(3, 4)[truth]
    return X, np.where(np.arange(n) < 60, truth, -1)


SIDE_BY_SIDE = [
    name for name in s3vm_lib.__all__ if getattr(getattr(s3vm_lib, name), "_side_by_side", False)
]


def test_who_fits_classes_side_by_side():
    expected = "CCCPS3VM DAS3VM LapSVM MultiSwitchTSVM NewtonS3VM QNS3VM S3VMLight SVM"
    assert sorted(SIDE_BY_SIDE) == expected.split()


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_one_vs_rest_and_prediction(name, small_blocks):
    X, y = three_classes()
    results = []
    for count in (None, *COUNTS):
        model = getattr(s3vm_lib, name)(n_jobs=count).fit(X, y)
        results.append(
            (
                model.decision_function(X + 0.1), model.transduction_, model.intercept_,
                model.objective_, getattr(model, "dual_coef_", 0), str(model.history_),
            )
        )  # fmt: skip
    same(results)


def test_classes_run_side_by_side_and_fail_with_their_own_error(monkeypatch):
    X, y = three_classes()
    meet, before = threading.Barrier(2, timeout=60), s3vm_lib.SVM._fit_binary

    def together(self, data, shared, t, problem, index):
        if index < 2:
            meet.wait()
        return before(self, data, shared, t, problem, index)

    monkeypatch.setattr(s3vm_lib.SVM, "_fit_binary", together)
    s3vm_lib.SVM(n_jobs=2).fit(X, y)

    def fail(self, data, shared, t, problem, index):
        if index == 1:
            raise RuntimeError("of class 1")
        return before(self, data, shared, t, problem, index)

    monkeypatch.setattr(s3vm_lib.SVM, "_fit_binary", fail)
    model = s3vm_lib.SVM(n_jobs=2)
    with pytest.raises(RuntimeError, match="of class 1"):
        model.fit(X, y)
    assert not hasattr(model, "classes_")


def test_a_cache_that_is_filled_on_the_way_is_not_shared():
    X, y = three_classes()
    same(
        [
            [s3vm_lib.SVM(n_jobs=count, gram="rows").fit(X, y).decision_function(X)]
            for count in COUNTS
        ]
    )


def test_a_callback_is_called_by_the_thread_that_fits():
    X, y = three_classes()
    threads = set()
    s3vm_lib.SVM(n_jobs=3, callback=lambda _: threads.add(threading.get_ident())).fit(X, y)
    assert threads == {threading.get_ident()}


def test_joblib_says_how_many(monkeypatch):
    from joblib import parallel_config

    X, y = three_classes()
    seen, before = [], s3vm_lib.SVM._fit_binary

    def note(self, *arguments):
        seen.append(threading.get_ident())
        return before(self, *arguments)

    monkeypatch.setattr(s3vm_lib.SVM, "_fit_binary", note)
    with parallel_config("threading", n_jobs=2):
        s3vm_lib.SVM().fit(X, y)
    assert threading.get_ident() not in seen
    seen.clear()
    s3vm_lib.SVM().fit(X, y)
    assert set(seen) == {threading.get_ident()}


@pytest.mark.parametrize("name", ["S3VC", "SafeS3VM"])
def test_those_that_hold_estimators_hand_it_on(name, monkeypatch):
    counts, before = set(), s3vm_lib.QNS3VM._fit_binary

    def note(self, *arguments):
        counts.add(thread_count())
        return before(self, *arguments)

    monkeypatch.setattr(s3vm_lib.QNS3VM, "_fit_binary", note)
    X, y = three_classes(120)
    X, y = X[y != 2], y[y != 2]
    options = {"estimator": s3vm_lib.QNS3VM()} if name == "SafeS3VM" else {}
    results = []
    for count in (1, 2):
        model = getattr(s3vm_lib, name)(n_jobs=count, random_state=0, **options).fit(X, y)
        results.append([model.transduction_, model.decision_function(X)])
    same(results)
    assert counts == {1, 2}
