import inspect
import itertools
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / "benchmarks").is_dir() or sys.platform == "win32":
    pytest.skip(
        "the benchmarks are not installed, and their limits are POSIX", allow_module_level=True
    )
sys.path.insert(0, str(ROOT))

import bakeoff_toys as toys  # noqa: E402

import s3vm_lib  # noqa: E402
from benchmarks import harness, run  # noqa: E402
from benchmarks.bakeoff import __main__ as command  # noqa: E402
from benchmarks.bakeoff import draws, plan, store, worker  # noqa: E402
from benchmarks.bakeoff.methods import registry, variant  # noqa: E402
from benchmarks.bakeoff.sets import SETS  # noqa: E402
from benchmarks.stories import TenMinuteUser  # noqa: E402
from s3vm_book import bakeoff as reader  # noqa: E402
from s3vm_lib import datasets  # noqa: E402

pytestmark = pytest.mark.interface
FACTS = {"commit": "abc", "limits": [10.0, 2000.0]}


def test_the_sets_are_in_two_parts_of_every_kind():
    assert len({one.name for one in SETS}) == len(SETS)
    for part in ("tuning", "reported"):
        mine = [one for one in SETS if one.part == part]
        assert {one.kind for one in mine} == {"generated", "image", "tabular", "text"}
        assert any(one.multi for one in mine)
    sources = {part: {s.source for s in SETS if s.part == part} for part in ("tuning", "reported")}
    shared = sources["tuning"] & sources["reported"]
    assert shared == {
        "make_bag_of_words()",
        "two_gaussians()",
        "gaussians()",
    }  # generated, with other options
    for one in SETS:
        if one.source.endswith("()"):
            name = one.source[:-2]
            assert callable(getattr(draws, name, None) or getattr(datasets, name))
        else:
            assert (
                one.source in datasets.names() or one.source == "usps_2_5" or "mnist_" in one.source
            )


GENERATED = [one for one in SETS if one.source.endswith("()")]


@pytest.mark.parametrize("one", GENERATED, ids=lambda one: one.name)
def test_cells_of_generated_sets(one):
    whole = draws.pool(one, 3)
    n = len(whole.y)
    again = draws.pool(one, 3)
    np.testing.assert_array_equal(whole.y, again.y)
    assert (whole.X != again.X).sum() == 0
    other = draws.pool(one, 4)
    assert other.X.shape != whole.X.shape or (other.X != whole.X).sum() > 0
    assert n <= draws.ROWS and 2 * len(whole.y_test) >= min(n, 2 * draws.ROWS) - 1
    least = {}
    for l in one.labels:
        cell = draws.cell(whole, l)
        labeled = cell.y != -1
        assert labeled.sum() == l and labeled[:l].all()
        np.testing.assert_array_equal(cell.y[labeled], cell.truth[labeled])
        least[l] = np.bincount(cell.y[labeled], minlength=whole.y.max() + 1).min()
    assert least[one.labels[0]] >= 1 and least[one.labels[1]] >= 2
    if sp.issparse(whole.X):
        return
    if one.kind == "generated":  # the scale is part of what was made
        rows = draws.whole(one, 3)[0]
        assert np.isin(whole.X[:20, 0], rows[:, 0]).all()
        return
    # All rows of the training part, labeled or not, and no test row, decide the scale.
    np.testing.assert_allclose(whole.X.mean(axis=0), 0, atol=1e-10)
    spread = whole.X.std(axis=0)
    assert np.all((np.abs(spread - 1) < 1e-10) | (spread < 1e-10))
    assert np.abs(whole.X_test.mean(axis=0)).max() > 1e-6


def test_labels_are_drawn_at_random_and_not_by_class():
    one = next(s for s in SETS if s.name == "gauss20")
    shares = [draws.pool(one, k).y[:25].mean() for k in range(8)]
    assert np.ptp(shares) >= 0.08  # stratified ones would all be 0.2
    # 0.2, and a little more by the condition on two rows of each class.
    assert abs(np.mean(shares) - 0.2) < 4 * np.sqrt(0.16 / 25 / 8)
    with pytest.raises(RuntimeError, match="no order of 6 rows has all classes"):
        draws._order(np.array([0, 0, 0, 0, 0, 1]), (1, 2), np.random.default_rng(0))


def test_scaling_of_sparse_and_of_almost_dense_matrices():
    X = sp.random(60, 40, 0.05, format="csr", random_state=0)
    kept, _ = draws._scaled(X, X[:5])
    assert sp.issparse(kept) and (kept != X).nnz == 0
    dense, test = draws._scaled(sp.csr_matrix(np.arange(12.0).reshape(4, 3) + 1), sp.eye(1, 3))
    np.testing.assert_allclose(dense.std(axis=0), 1)
    np.testing.assert_allclose(test[0, 0], (1 - 5.5) / np.std([1, 4, 7, 10]))
    constant, _ = draws._scaled(np.full((5, 2), 0.3), np.zeros((1, 2)))
    np.testing.assert_array_equal(constant, 0)


@pytest.mark.skipif("S3VM_LIB_DATA" not in os.environ, reason="S3VM_LIB_DATA names no folder")
@pytest.mark.parametrize("name", ["w1a", "dota2", "uspst10", "ijcnn1"])
def test_cells_of_real_sets(name):
    one = next(s for s in SETS if s.name == name)
    try:
        whole = draws.pool(one, 0)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert whole.X.shape[0] == 1000 and len(whole.y_test) == 1000
    assert whole.X.shape[1] == {"w1a": 300, "dota2": 113, "uspst10": 256, "ijcnn1": 22}[name]
    assert sp.issparse(whole.X) == (name in ("w1a", "dota2"))
    assert len(np.unique(whole.y)) == (10 if name == "uspst10" else 2)
    assert len(np.unique(whole.y[: one.labels[0]])) == len(np.unique(whole.y))


def test_generators_are_what_they_say():
    X, y = draws.two_gaussians(40_000, 3, 0.1, 4.0, 0)
    assert abs(y.mean() - 0.1) < 0.006
    assert abs(X[y == 1, 0].mean() - X[y == 0, 0].mean() - 4) < 0.08
    np.testing.assert_allclose(X[y == 0].std(axis=0), 1, atol=0.03)
    X, y = draws.rings(5000, 0.1, 0)
    radius = np.linalg.norm(X, axis=1)
    assert abs(radius[y == 1].mean() - 1) < 0.02 and abs(radius[y == 0].mean() - 3) < 0.02
    X, y = draws.spirals(5000, 0.0, 0)
    angle = np.linalg.norm(X, axis=1)
    arm = X / angle[:, None] * np.where(y == 1, -1, 1)[:, None]
    np.testing.assert_allclose(arm, np.column_stack((np.cos(angle), np.sin(angle))), atol=1e-9)


def test_every_estimator_is_in_the_registry_with_its_kernels():
    methods = registry()
    for name in s3vm_lib.__all__:
        cls = getattr(s3vm_lib, name)
        if not hasattr(cls, "fit") or name.endswith("Regressor"):
            continue
        defaults = inspect.signature(cls).parameters
        assert methods[name].params == {} and isinstance(methods[name].build(0), cls)
        assert (f"{name}[linear]" in methods) == ("kernel" in defaults)
    for one in methods.values():
        assert one.baseline in methods
        valid = one.type().get_params() if not one.wrap else {}
        assert set(one.grid) <= set(valid), one.name
        model = one.build(5)
        inner = model.estimator if one.wrap else model
        if "random_state" in inner.get_params():
            assert inner.random_state == 5
    assert methods["DAS3VM"].baseline == methods["QNS3VM[linear]"].baseline == "SVM[linear]"
    assert methods["QNS3VM"].baseline == methods["sk.RandomForest"].baseline == "SVM"
    candidate = variant("LapSVM", "C_graph=10", C_graph=10.0)
    assert candidate.name == "LapSVM[C_graph=10]" and candidate.build(0).C_graph == 10
    assert repr(candidate) != repr(variant("LapSVM", "C_graph=10", C_graph=11.0))


@pytest.fixture(scope="module")
def child():
    with worker.Worker() as one:
        yield one


@pytest.mark.parametrize(
    ("what", "status", "error"),
    [
        ("", "ok", None),
        ("warns", "warned", None),
        ("small", "skipped", None),
        ("raises", "failed", "RuntimeError: no luck"),
        ("hungry", "memory", None),
        ("dies", "crashed", "SIGSEGV"),
        ("endless", "time", None),
    ],
)
def test_whatever_a_fit_does_there_is_a_row(child, what, status, error):
    limits = dict(seconds=1, megabytes=500, warm_seconds=1000 if what == "" else 1)
    task = worker.Task(toys.TOY_SETS[0], 4, 0, toys.method(what), **limits)
    row = child.measure(task)
    assert (row["status"], row.get("error")) == (status, error)
    if status in ("ok", "warned"):
        cell = draws.cell(draws.pool(task.set, 0), 4)
        assert row["wrong"] == int((cell.truth[4:] != 1).sum())
        assert row["wrong_test"] == int((cell.y_test != 1).sum())
        assert row["n_iter"] == 7 and 0 <= row["cpu"] < 1
        assert "ratio" not in row and "best" not in row


@pytest.mark.skipif(not worker._STATUS.exists(), reason="peak memory is read from /proc")
def test_peak_memory_is_that_of_one_fit():
    for megabytes in (80, 10):  # the second is not hidden by what the first has left
        before = worker._peak(reset=True)
        held = np.ones(megabytes * 2**17)
        del held
        assert megabytes * 0.9 < worker._peak() - before < megabytes + 5


def test_a_child_that_hangs_is_ended(monkeypatch):
    class Silent:
        poll = staticmethod(lambda seconds: False)
        send = close = staticmethod(lambda *_: None)

    with worker.Worker() as one:
        one._start()
        process, one.connection = one.process, Silent
        row = one.measure(worker.Task(toys.TOY_SETS[0], 4, 0, toys.method("")))
        assert row == {"status": "hung"} and not process.is_alive()


def test_measure_counts_a_real_fit_and_its_search():
    one = next(s for s in SETS if s.name == "g2c")
    cell = draws.cell(draws.pool(one, 0), 25)
    method = registry()["SVM[linear]"]
    row = worker.measure(cell, method, "default", 0)
    model = s3vm_lib.SVM(kernel="linear").fit(cell.X, cell.y)
    assert row["wrong"] == (model.transduction_ != cell.truth).sum()
    assert row["wrong_test"] == (model.predict(cell.X_test) != cell.y_test).sum()
    found = worker.measure(cell, method, "search", 0)
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.svm import SVC

    X, y = cell.X[:25], cell.y[:25]  # the choice sees the labels alone
    folds = StratifiedKFold(min(5, np.bincount(y).min()))
    scores = {
        C: cross_val_score(SVC(C=C, kernel="linear"), X, y, cv=folds).mean()
        for C in method.grid["C"]
    }
    best = min(C for C in scores if scores[C] >= max(scores.values()) - 1e-12)
    assert found["best"] == {"C": best}
    assert (
        found["wrong"]
        == (
            s3vm_lib.SVM(kernel="linear", C=best).fit(cell.X, cell.y).transduction_ != cell.truth
        ).sum()
    )
    few = cell._replace(y=np.where(np.cumsum(cell.y == 1) <= 1, cell.y, -1))
    few.y[np.flatnonzero(few.y == 0)[3:]] = -1
    assert worker.measure(few, method, "search", 0)["best"] == {}
    share = variant("QNS3VM", "r", kernel="linear", balance=0.375)
    assert worker.measure(cell, share, "default", 0)["ratio"] == 0.375
    chosen = worker.measure(cell, variant("S3VC", "", guard=False), "default", 0)["chosen"]
    assert chosen == s3vm_lib.S3VC(guard=False, random_state=0).fit(cell.X, cell.y).kernel_


def test_a_class_ratio_is_estimated_once_and_charged_to_each_fit():
    asked = []

    def rule(data, C):
        asked.append(C)
        start = time.process_time()
        while time.process_time() < start + 0.05:
            pass
        return np.array([0.25, 0.75])

    one = next(s for s in SETS if s.name == "g2c")
    cell = draws.cell(draws.pool(one, 0), 10)
    _, codes, data = s3vm_lib.QNS3VM()._validated(cell.X, cell.y, None, None)
    shared = worker.Shared(rule)
    assert shared(data, 1.0).tolist() == [0.25, 0.75] and shared.seconds <= 0
    shared.begin()
    shares = shared(data._replace(X=data.X.copy()), 1)
    assert shares.tolist() == [0.25, 0.75] and len(asked) == 1
    assert shared.seconds > 0.04  # less what looking up took
    shares[:] = 0.0  # a caller's own copy
    assert shared(data, 1.0).tolist() == [0.25, 0.75]
    assert shared.seconds > 0.08  # two charges

    other = np.where(np.arange(len(codes)) == np.flatnonzero(codes < 0)[0], 1, data.codes)
    kernel = data.kernel.__class__("linear")
    csr = data._replace(X=sp.csr_matrix(data.X))
    for changed in (
        data._replace(codes=other),
        data._replace(kernel=kernel),
        data._replace(sample_weight=2 * data.sample_weight),
        data._replace(X=data.X + 1e-12),
        csr,
    ):
        shared.begin()
        known = len(asked)
        shared(changed, 1.0)
        assert len(asked) == known + 1 and shared.seconds <= 0
    shared(csr, 1.0)
    assert len(asked) == 6
    shared.begin(again=True)  # of the last fit: csr alone
    shared(csr, 1.0)
    shared(data, 1.0)
    assert len(asked) == 7


def test_a_child_finds_what_a_fit_by_itself_finds_and_limits_the_charged_time(child):
    task = worker.Task(toys.TOY_SETS[0], 8, 0, registry()["QNS3VM"])
    cell = draws.cell(draws.pool(task.set, 0), 8)
    wrong = int((s3vm_lib.QNS3VM().fit(cell.X, cell.y).transduction_ != cell.truth)[8:].sum())
    rows = [child.measure(task) for _ in range(2)]
    assert [row["wrong"] for row in rows] == [wrong, wrong]
    row = child.measure(task._replace(seconds=rows[1]["cpu"] / 2))
    assert row == {"status": "time"}


def _row(labels, draw, **more):
    row = {"mode": "default", "labels": labels, "draw": draw, "status": "ok"}
    return {**row, "wrong": 3, "wrong_test": 4, "cpu": 0.5, "megabytes": 1.25, "n_iter": 9, **more}


def _appended(folder, rows, one=toys.TOY_SETS[0], facts=FACTS):
    for what, row in rows:
        store.append(folder, one, toys.method(what), row, facts)
    return folder / f"{one.name}.txt"


def test_a_row_comes_back_and_a_later_one_replaces_it(tmp_path):
    rows = [
        ("a", _row(4, 0)),
        ("b", _row(4, 0, best={"C": 0.1}, ratio=0.25)),
        ("a", {"mode": "default", "labels": 8, "draw": 0, "status": "failed", "error": "E: x y"}),
        ("a", _row(4, 0, wrong=7)),
        ("a", _row(4, 0, mode="search", cpu=float("nan"))),
    ]
    file = _appended(tmp_path, rows)
    about, found = reader.parse(file.read_text())
    assert about["set"] == "toy0" and about["train"] == 60 and sum(about["counts"]) == 60
    assert [(r["method"], r["mode"], r["labels"], r["wrong"]) for r in found] == [
        ("a", "default", 4, 7),
        ("b", "default", 4, 3),
        ("a", "default", 8, None),
        ("a", "search", 4, 3),
    ]
    assert found[1]["best"] == {"C": 0.1} and found[1]["ratio"] == 0.25
    assert found[2]["error"] == "E: x y" and found[2]["n_iter"] is None and found[3]["cpu"] is None
    assert all(r["facts"] == FACTS and len(r["sources"]) == 10 for r in found)
    assert (found[0]["cpu"], found[0]["megabytes"], found[0]["n_iter"]) == (0.5, 1.25, 9)
    size = len(file.read_text())
    _appended(tmp_path, [("a", _row(4, 3))])
    assert len(file.read_text()) - size < 40  # what is known is not written again
    store.compact(tmp_path, toys.TOY_SETS[0], {"a"})
    _, kept = reader.parse(file.read_text())
    expected = [r for r in found if r["method"] == "a"]
    strip = lambda r: {key: r[key] for key in r if key != "block"}  # noqa: E731
    assert [strip(r) for r in kept if r["draw"] == 0] == [strip(r) for r in expected]
    assert len(file.read_text().splitlines()) == 1 + 1 + 2 + 4
    text = file.read_text()
    store.compact(tmp_path, toys.TOY_SETS[0], {"a"})
    assert file.read_text() == text and [p.name for p in tmp_path.iterdir()] == ["toy0.txt"]


def test_wherever_a_write_was_cut_off_nothing_is_lost_and_the_next_row_is_whole(tmp_path):
    rows = [("a", _row(4, 0)), ("b", _row(8, 1, best={"C": 1.0})), ("b", _row(8, 2))]
    file = _appended(tmp_path, rows)
    whole = file.read_bytes()
    for cut in range(len(whole)):
        file.write_bytes(whole[:cut])
        before = reader.parse(whole[:cut].decode()).rows
        assert len(before) == sum(
            line[:1].isdigit()
            for line in whole[: whole[:cut].rfind(b"\n") + 1].decode().splitlines()
        )
        _appended(tmp_path, [("c", _row(4, 9, wrong=1))])
        after = reader.parse(file.read_text())
        assert after.about["set"] == "toy0" and len(after.rows) == len(before) + 1
        assert [(r["method"], r["draw"]) for r in after.rows] == [
            *((r["method"], r["draw"]) for r in before), ("c", 9)
        ]  # fmt: skip


def _raw(folder):
    """Every fit in the files, also if it is there twice."""
    found = []
    for file in sorted(Path(folder).glob("*.txt")):
        lines = file.read_text().splitlines()
        methods = [json.loads(line[1:])["method"] for line in lines if line.startswith("=")]
        for line in lines:
            if line[0].isdigit():
                number, labels, draw, wrong, *_ = line.split()
                found.append((file.stem, methods[int(number)], int(labels), int(draw), int(wrong)))
    return found


def test_killed_at_random_moments_it_loses_and_repeats_no_row(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "provenance", lambda: {"commit": "toy"})
    rng, sizes, fork = np.random.default_rng(0), [0], multiprocessing.get_context("fork")
    while sizes[-1] < 50:
        # Two processes share the work; both are killed without warning.
        pair = [
            fork.Process(
                target=plan.run, args=(toys.small_plan(), tmp_path), kwargs={"worker": toys.Slow}
            )
            for _ in range(2)
        ]
        for one in pair:
            one.start()
        time.sleep(rng.uniform(0.02, 0.15))
        for one in pair:
            one.kill()
            one.join()
        sizes.append(len(_raw(tmp_path)))
    assert sizes == sorted(sizes) and len(sizes) > 3 and sizes[-1] < 96
    before = _raw(tmp_path)
    assert plan.run(toys.small_plan(), tmp_path, worker=toys.Slow) == 96 - len(before)
    found = _raw(tmp_path)
    expected = [
        (one.name, f"m{k}", labels, draw, labels + 10 * draw)
        for one, k, labels, draw in itertools.product(toys.TOY_SETS, range(6), (4, 8), range(4))
    ]
    assert sorted(found) == sorted(expected) and set(before) <= set(found)
    assert plan.run(toys.small_plan(), tmp_path, worker=toys.Slow) == 0


class Scripted:
    """A worker whose answers are given, and that remembers what it was asked."""

    def __init__(self, status="ok"):
        self.status, self.asked = status, []

    def __call__(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None

    def measure(self, task):
        self.asked.append((task.set.name, task.labels, task.draw, task.method.name))
        return {"status": self.status, "wrong": 1, "wrong_test": 2, "cpu": 0.1}


def test_draws_are_outermost_so_that_part_of_the_work_is_balanced(tmp_path):
    worker = Scripted()
    assert plan.run(toys.small_plan(2, 2), tmp_path, worker=worker) == 16
    methods = ("m0", "m1")
    assert worker.asked == [
        (s, l, d, m) for d in range(2) for s in ("toy0", "toy1") for l in (4, 8) for m in methods
    ]
    assert plan.run(toys.small_plan(2, 2), tmp_path, seconds=-1.0, redo="again", worker=worker) == 0
    assert plan.run(toys.small_plan(2, 2), tmp_path, redo="again", worker=worker) == 16


def test_work_that_another_process_has_claimed_is_left_to_it(tmp_path):
    with store.claimed(tmp_path, "toy0-0-default", wait=False) as mine:
        assert mine
        with store.claimed(tmp_path, "toy0-0-default", wait=False) as second:
            assert not second
        worker = Scripted()
        with pytest.MonkeyPatch.context() as patch:
            seen = []
            real = store.claimed
            patch.setattr(
                store, "claimed", lambda f, n, w: seen.append((n, w)) or real(f, n, False)
            )
            plan.run(toys.small_plan(1, 1), tmp_path, worker=worker)
        assert {name for name, *_ in worker.asked} == {"toy1"}
        assert ("toy0-0-default", True) in seen  # it comes back and waits
    plan.run(toys.small_plan(1, 1), tmp_path, worker=worker)
    assert {name for name, *_ in worker.asked} == {"toy0", "toy1"}


def test_a_method_that_limits_have_ended_twice_on_a_set_is_given_up_there(tmp_path, monkeypatch):
    worker = Scripted("time")
    plan.run(toys.small_plan(2, 1), tmp_path, worker=worker)
    assert len(worker.asked) == 4  # two on each set, of four
    status = [r["status"] for r in plan.stored(tmp_path, toys.TOY_SETS[0]).rows]
    assert status == ["time", "time", "given_up", "given_up"]
    plan.run(toys.small_plan(2, 1), tmp_path, worker=worker)
    assert len(worker.asked) == 4
    plan.run(toys.small_plan(3, 1), tmp_path, worker=worker)
    assert len(worker.asked) == 4  # in a later run too
    plan.run(toys.small_plan(2, 1), tmp_path, redo="again", worker=worker)
    assert len(worker.asked) == 8
    patient = Scripted()
    limits = (100.0, 2000.0)  # higher ones: another chance
    plan.run(toys.small_plan(2, 1), tmp_path, redo="again", limits=limits, worker=patient)
    assert len(patient.asked) == 8
    monkeypatch.setattr(store, "source_hash", lambda one, method: "other code")
    plan.run(toys.small_plan(2, 1), tmp_path, redo="stale", worker=patient)
    assert len(patient.asked) == 16
    plan.run(toys.small_plan(2, 1), tmp_path, redo="stale", worker=patient)
    assert len(patient.asked) == 16


def test_the_hash_of_a_row_follows_its_set_its_method_and_their_code(monkeypatch):
    methods, one = registry(), toys.TOY_SETS[0]
    mine = store.source_hash(one, methods["QNS3VM"])
    assert mine == store.source_hash(one, methods["QNS3VM"])
    others = [
        store.source_hash(toys.TOY_SETS[1], methods["QNS3VM"]),
        store.source_hash(one, methods["QNS3VM[linear]"]),
        store.source_hash(one, methods["sk.SVC"]),
    ]
    assert len({mine, *others}) == 4
    changed = ROOT / "s3vm_lib" / "smooth" / "_quasi_newton.py"
    real = store._code
    monkeypatch.setattr(store, "_code", lambda file: "other" if file == changed else real(file))
    store._code_of.cache_clear()
    assert store.source_hash(one, methods["QNS3VM"]) != mine
    assert store.source_hash(one, methods["sk.SVC"]) == others[2]
    store._code_of.cache_clear()


def test_results_come_from_a_committed_tree(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness, "changes", lambda: [" M s3vm_lib/svm.py"])
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    with pytest.raises(RuntimeError, match=r"uncommitted:  M s3vm_lib/svm\.py"):
        plan.run(toys.small_plan(), tmp_path, worker=Scripted())
    assert not list(tmp_path.iterdir())
    plan.run(toys.small_plan(1, 1), tmp_path / "elsewhere", worker=Scripted())
    monkeypatch.setattr(harness, "changes", lambda: [])
    with pytest.raises(RuntimeError, match=r"session began with old; uncommitted: nothing"):
        store.require_commit(tmp_path, "old")
    monkeypatch.setattr(harness, "changes", lambda: [" M s3vm_lib/svm.py"])
    for name in run.THREADS:
        monkeypatch.setenv(name, "1")
    assert command.main(["--sets", "g2c", "--methods", "SVM"]) == 1
    assert "M s3vm_lib/svm.py" in capsys.readouterr().err


def test_the_command(tmp_path, monkeypatch, capsys):
    for name in run.THREADS:
        monkeypatch.setenv(name, "1")
    defaults = {**plan.run.__kwdefaults__, "worker": Scripted()}
    monkeypatch.setattr(plan.run, "__kwdefaults__", defaults)
    words = "--sets g2c --methods SVM SVM[linear] --labels 10 25 --results".split()
    words.append(str(tmp_path))
    assert command.main([*words, "--draws", "0-1"]) == 0
    assert len(_raw(tmp_path)) == 8
    capsys.readouterr()
    command.main([*words, "--list"])
    printed = capsys.readouterr().out
    assert "g2c            tuning    generated      8 of    40 rows, 0 stale" in printed
    assert "methods: SVM, SVM[linear]" in printed
    command.main([*words, "--show"])
    assert "SVM[linear]                                4      0   0.32    0.100    0.10" in (
        capsys.readouterr().out
    )
    command.main([*words, "--compact"])
    assert len(_raw(tmp_path)) == 8
    unknown = ((["--sets", "x"], "unknown set x"), (["--methods", "y*"], "unknown method y*"))
    for wrong, word in unknown:
        with pytest.raises(SystemExit):
            command.main([*wrong, "--list"])
        assert word in capsys.readouterr().err
    assert {m.name for m in plan.methods(None, "search")} < set(registry())
    assert {s.part for s in plan.sets(["tuning"])} == {"tuning"}
    assert [s.name for s in plan.sets(["tuning", "mnist"])][-1] == "mnist"


def test_rows_that_self_training_leaves_are_predicted():
    """Its transduction has no class for them."""
    rng = np.random.default_rng(0)
    X, truth = rng.normal(size=(60, 2)), np.arange(60) % 2
    y = np.where(np.arange(60) < 10, truth, -1)
    cell = draws.Cell(X, y, truth, X, truth)
    method = registry()["sk.SelfTraining[logistic]"]
    row, model = worker.measure(cell, method, "default", 0), method.build(0).fit(X, y)
    assert np.sum(model.transduction_ == -1) > 5
    found = np.where(model.transduction_ == -1, model.predict(X), model.transduction_)
    assert row["wrong"] == np.sum(found[10:] != truth[10:])


def test_several_gaussians_have_their_shares_and_distances():
    random_state = np.random.default_rng(0)
    X, y = draws.gaussians(20_000, 40, (0.5, 0.3, 0.2), 5.0, random_state)
    np.testing.assert_allclose(np.bincount(y) / y.size, (0.5, 0.3, 0.2), atol=0.02)
    centers = np.array([X[y == k].mean(axis=0) for k in range(3)])
    apart = [np.linalg.norm(centers[i] - centers[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert 3.5 < np.mean(apart) < 6.5
    np.testing.assert_allclose((X - centers[y]).std(axis=0), 1, atol=0.05)


def test_the_user_of_ten_minutes_takes_what_its_folds_say():
    rng = np.random.default_rng(0)
    truth = np.arange(80) % 2
    X = rng.normal(size=(80, 2)) + 5 * truth[:, None]
    y = np.where(np.arange(80) < 20, truth, -1)
    assert np.mean(TenMinuteUser().fit(X, y).predict(X) == truth) > 0.95
    lone = np.where(np.arange(80) < 3, truth, -1)  # two of class 0, one of class 1
    assert TenMinuteUser().fit(X, lone).model_.C == 1
