"""Rows block by block: the same model as in memory, in bounded memory, and nothing left behind."""

import itertools
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from s3vm_lib import (
    DAS3VM,
    FRS3VM,
    QNS3VM,
    LapSVM,
    MultiSwitchTSVM,
    NewtonS3VM,
    datasets,
    finite_newton,
)
from s3vm_lib.base import machine as base_machine
from s3vm_lib.graphs import NeighborGraph, laplacian
from s3vm_lib.kernels import squared_norms
from s3vm_lib.laplacian_svm._deformed import BlockDeformedKernel, LowRankDeformedKernel
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem
from s3vm_lib.smooth import Coordinates, ScaledObjective, _blocked, block_coordinates
from s3vm_lib.smooth._annealing import Continuation
from s3vm_lib.smooth._coordinates import low_rank
from s3vm_lib.smooth._quasi_newton import Without
from s3vm_lib.stochastic import Polish
from s3vm_lib.utils.row_blocks import (
    BlockStore,
    doubles,
    is_mapped,
    on_disk,
    row_slices,
    sized_slices,
    spread,
)

BLOCKED = Coordinates(rank=40, memory=20)  # MiB; all rows would take 24


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(_blocked, "_VALUES", 2**15)


@pytest.fixture(scope="module")
def mixture():
    X, y = datasets.make_mixture(40_000, random_state=0)
    partly = y.copy()
    partly[60:] = -1
    return X, y, partly


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where temporary files are made during a test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def mapped(X, path, dtype=np.float64):
    rows = np.memmap(path, dtype, "w+", shape=X.shape)
    rows[:] = X
    rows.flush()
    return np.memmap(path, dtype, "r", shape=X.shape)


def model(coordinates=BLOCKED, cls=QNS3VM, **options):
    return cls(C=10.0, gamma=1 / 32, balance="labels", coordinates=coordinates, **options)


def seen_in(monkeypatch, *names):
    """What `block_coordinates` returns, fit by fit."""
    found, make = [], _blocked.BlockFeatures.__init__

    def spy(self, *arguments):
        make(self, *arguments)
        found.append(self)

    monkeypatch.setattr(_blocked.BlockFeatures, "__init__", spy)
    return found


def open_files(folder):
    """Files of this process below a folder, those without a name included."""
    links = Path("/proc/self/fd")
    if not links.is_dir():
        return []
    found = []
    for link in links.iterdir():
        try:
            found.append(os.readlink(link))
        except FileNotFoundError:
            continue
    return [name for name in found if name.startswith(str(folder))]


# --- Parts ----------------------------------------------------------------------------------------


def test_slices_cover_the_rows_once():
    slices = row_slices(10, 4)
    assert [np.arange(10)[s].tolist() for s in slices] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [s.stop for s in slices] == [4, 8, 10]
    assert row_slices(0, 4) == []


def test_slices_fit_the_cache_but_are_not_too_thin():
    assert sized_slices(1000, 100, 20_000)[0] == slice(0, 200)
    assert sized_slices(1000, 10**6)[0] == slice(0, 64)
    assert sized_slices(10, 0) == [slice(0, 10)]
    assert sized_slices(2**18, 8)[0] == slice(0, 2**15)  # two megabytes


def test_spread_has_no_period():
    chosen = spread(100_000, 5000)
    assert np.all(np.diff(chosen) > 0) and chosen[0] >= 0 and chosen[-1] < 100_000
    assert chosen.size > 4900
    for period in (2, 3, 4, 10, 16):
        counts = np.bincount(chosen % period, minlength=period)
        assert counts.max() - counts.min() <= 0.05 * chosen.size
    assert spread(7, 9).tolist() == spread(7, 7).tolist() == list(range(7))
    gaps = np.diff(np.r_[0, chosen, 100_000])
    assert gaps.max() <= 4 * gaps.mean()  # even, to both ends


@pytest.mark.parametrize("megabytes", [0, 1])
def test_a_store_returns_what_it_was_given(megabytes, folder):
    Z = np.random.default_rng(0).standard_normal((1000, 7)).astype(np.float32)
    store = BlockStore(1000, 7, 64, megabytes)
    assert store.on_disk == (megabytes == 0) == bool(open_files(folder))
    for k, s in enumerate(store.slices):
        store[k] = Z[s]
    assert np.array_equal(np.vstack([store[k] for k in range(len(store))]), Z)
    assert store[0].flags.writeable != store.on_disk
    store.close()
    assert open_files(folder) == [] and list(folder.iterdir()) == []


def test_a_store_goes_to_the_disk_where_it_would_take_more(folder):
    for rows, on_file in ((2**18, False), (2**18 + 1, True)):  # numbers of four bytes
        store = BlockStore(rows, 1, 2**10, 1)
        assert store.on_disk == on_file
        store.close()


def test_the_system_may_write_a_block_in_pieces(folder):
    class Slow:
        def __init__(self, file):
            self.file, self.fileno, self.seek, self.flush = file, file.fileno, file.seek, file.flush
            self.tell, self.read, self.close = file.tell, file.read, file.close

        def write(self, part):
            return self.file.write(part[:100])

    Z = np.random.default_rng(0).standard_normal((90, 7)).astype(np.float32)
    store = BlockStore(90, 7, 40, 0)
    store._file = Slow(store._file)
    for k, s in enumerate(store.slices):
        store[k] = Z[s]
    assert np.array_equal(np.vstack([store[k] for k in range(len(store))]), Z)
    store.close()


def test_no_room_for_the_file_is_an_error_that_says_where(folder, monkeypatch):
    usage = shutil.disk_usage(folder)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OSError, match=r"do not fit into the folder .* set TMPDIR"):
        BlockStore(10_000, 100, 64, 1)


def test_views_of_a_map_are_known(tmp_path):
    X = mapped(np.arange(12.0).reshape(6, 2), tmp_path / "rows")
    assert is_mapped(X) and is_mapped(np.asarray(X[2:])) and not is_mapped(np.array(X))
    assert is_mapped(np.asarray(X[2:])[1:].reshape(-1))
    for form in ("csr", "csc", "coo", "dok", "lil", "dia", "bsr"):  # asked before they are checked
        assert not is_mapped(sp.eye_array(3, format=form))
    assert not is_mapped([[1.0]]) and not is_mapped(None)
    np.save(tmp_path / "rows.npy", X)  # with a header, which is skipped
    for Y in (X, np.load(tmp_path / "rows.npy", mmap_mode="r")):
        for part in (Y, np.asarray(Y)[2:], Y[1:][2:], np.asarray(Y[1:])[2:5]):
            found = on_disk(part)
            assert np.array_equal(found.open(), part) and not found.open().flags.writeable
        for part in (Y[::2], Y[:, :1], Y.T, np.array(Y)):
            with pytest.raises(ValueError, match="C-ordered"):
                on_disk(part)


def test_rows_in_double_precision_are_not_copied():
    X = np.eye(3)
    assert doubles(X) is X and doubles(sp.csr_matrix(X).astype(np.float32)).dtype == np.float64
    assert doubles(X.astype(np.float32)).dtype == np.float64
    S = sp.csr_matrix(X)
    assert np.shares_memory(doubles(S).data, S.data)


def test_squared_norms_of_many_sparse_rows():
    X = sp.random(40_000, 30, 0.2, "csr", random_state=0)
    assert np.array_equal(squared_norms(X), np.ravel(X.multiply(X).sum(axis=1)))


# --- Coordinates ----------------------------------------------------------------------------------


def problem_of(model_, X, y):
    data = model_._validated(X, y, None, None)[2]
    t = np.where(data.codes == 1, 1.0, -1.0)
    t[data.codes < 0] = 0.0
    return data, t, model_._problem(data, 0.5)


@pytest.mark.parametrize("name", ["cholesky", "regressors"])
def test_blocks_are_features_in_single_precision(name, mixture):
    X, _, partly = mixture
    data, t, problem = problem_of(model(), X[:6000], partly[:6000])
    center = np.where(t == 0, 1.0, 0.0) / np.sum(t == 0)
    index = None if name == "cholesky" else np.arange(0, 6000, 200)
    made = _blocked.block_coordinates(
        data.X, data.kernel, 30, 1e-6, center, np.flatnonzero(t), index, megabytes=100
    )
    Z = np.vstack([made.blocks[k] for k in range(len(made.blocks.slices))])
    assert len(made.blocks.slices) > 3 and Z.dtype == np.float32
    from s3vm_lib.smooth import FeatureMap

    whole = FeatureMap(Z.astype(float), center, made.expand)
    generator = np.random.default_rng(0)
    w, a = generator.standard_normal(made.dimension), generator.standard_normal(t.size)
    np.testing.assert_allclose(made.outputs(w), whole.outputs(w), atol=1e-12)
    np.testing.assert_allclose(made.gradient(a, w, 0.1), whole.gradient(a, w, 0.1), atol=1e-10)
    assert made.unit == pytest.approx(whole.unit, rel=1e-12)
    for found, expected in zip(made.weighted_gram(a), whole.weighted_gram(a), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    chosen = np.array([0, 5, 4000, 5999])
    np.testing.assert_allclose(made.rows(chosen).outputs(w), whole.outputs(w)[chosen], atol=1e-12)
    # One pass over the blocks against two products with the matrix.
    scaled = problem.scaled(t, np.ones(t.size))
    for offset in (0.1, None):
        x = w if offset is not None else np.append(w, 0.3)
        terms = (t, scaled[0], *problem.losses, scaled[2], scaled[1], offset)
        value, gradient = ScaledObjective(made, *terms)(x)
        expected, slope = ScaledObjective(whole, *terms)(x)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, slope, atol=1e-12)
    # The model on rows of its own is what the coordinates say of them.
    support, alpha, constant = made.model(w)
    f = data.kernel.gram(X[:50], X[support]) @ alpha + constant
    np.testing.assert_allclose(f, made.outputs(w)[:50], atol=2e-4)


def test_with_all_rows_in_the_sample_the_pivots_are_those_of_the_factor(mixture):
    X, _, partly = mixture
    data, t, _ = problem_of(model(), X[:900], partly[:900])
    from s3vm_lib.smooth import cholesky_coordinates

    labeled = np.flatnonzero(t)
    made = _blocked.block_coordinates(data.X, data.kernel, 40, 1e-6, None, labeled, megabytes=100)
    whole = cholesky_coordinates(data.X, data.kernel, 40, 1e-6, None, labeled)
    Z = np.vstack([made.blocks[k] for k in range(len(made.blocks.slices))])
    np.testing.assert_allclose(Z, whole.Z, atol=1e-5)


def test_a_map_has_the_coordinates_of_the_linear_kernel(tmp_path):
    from s3vm_lib.smooth import linear_coordinates

    generator = np.random.default_rng(0)
    X, w = generator.standard_normal((3000, 20)), generator.standard_normal(20)
    rows, center = mapped(X, tmp_path / "rows", np.float32), np.full(3000, 1 / 3000)
    a = generator.standard_normal(3000)
    for scale in (1.0, 1.7):
        made = _blocked.mapped_coordinates(rows, scale, center)
        whole = linear_coordinates(np.array(rows, dtype=float), scale, center)
        assert len(made.blocks.slices) > 1 and made.dimension == 20 and made.expand is None
        np.testing.assert_allclose(made.outputs(w), whole.outputs(w), rtol=1e-5, atol=1e-5)
        gradients = made.gradient(a, w, 0.1), whole.gradient(a, w, 0.1)
        np.testing.assert_allclose(*gradients, rtol=1e-5, atol=1e-4)
        assert made.unit == pytest.approx(whole.unit, rel=1e-6)


def test_the_number_of_blocks_changes_nothing_but_rounding(mixture, monkeypatch):
    X, _, partly = mixture
    objectives, outputs = [], []
    for values in (2**13, 2**15, 2**19):
        monkeypatch.setattr(_blocked, "_VALUES", values)
        fitted = model().fit(X, partly)
        objectives.append(fitted.objective_)
        outputs.append(fitted.transduction_)
    np.testing.assert_allclose(objectives, objectives[0], rtol=1e-5)
    assert all(np.mean(found != outputs[0]) < 1e-3 for found in outputs)


# --- Fits -----------------------------------------------------------------------------------------


def test_array_map_and_sparse_rows_give_the_same_model(mixture, tmp_path, monkeypatch):
    X, _, partly = mixture
    X = X.astype(np.float32).astype(np.float64)
    made = seen_in(monkeypatch)
    first = model().fit(X, partly)
    same = [mapped(X, tmp_path / "double"), mapped(X, tmp_path / "single", np.float32)]
    for rows in same:
        other = model().fit(rows, partly)
        assert np.array_equal(other.dual_coef_, first.dual_coef_)
        assert np.array_equal(other.transduction_, first.transduction_)
        assert np.array_equal(other.decision_function(rows), first.decision_function(X))
        assert other.support_vectors_.dtype == np.float64
    sparse = model().fit(sp.csr_matrix(X), partly)
    assert sparse.objective_ == pytest.approx(first.objective_, rel=1e-5)
    assert np.mean(sparse.transduction_ != first.transduction_) < 1e-3
    assert len(made) == 4


def test_memory_and_disk_give_the_same_bits(mixture, folder, monkeypatch):
    X, _, partly = mixture
    made = seen_in(monkeypatch)
    # Single precision takes 6 MiB, and half of what is left beside the sample may be taken.
    models = [model(Coordinates(rank=40, memory=m)).fit(X, partly) for m in (5, 10, 20)]
    assert [part.blocks.on_disk for part in made] == [True, True, False]
    assert np.array_equal(models[0].dual_coef_, models[2].dual_coef_)
    assert models[0].history_ == models[2].history_
    assert open_files(folder) == []


@pytest.mark.parametrize(("cls", "megabytes"), [(QNS3VM, 600), (NewtonS3VM, 4000)])
def test_coordinates_without_a_bound_take_that_of_the_estimator(
    mixture, monkeypatch, cls, megabytes
):
    X, _, partly = mixture
    made = seen_in(monkeypatch)
    assert cls._coordinate_memory == megabytes
    whole = model(Coordinates(rank=40), cls).fit(X, partly)
    assert made == []
    monkeypatch.setattr(cls, "_coordinate_memory", 20)
    found = model(Coordinates(rank=40), cls).fit(X, partly)
    assert len(made) == 1 and found.objective_ != whole.objective_
    assert np.array_equal(found.dual_coef_, model(BLOCKED, cls).fit(X, partly).dual_coef_)


def test_the_error_is_that_of_a_fit_in_memory(mixture):
    X, y, partly = mixture
    blocked, whole = model().fit(X, partly), model(Coordinates(rank=40)).fit(X, partly)
    wrong = [np.mean(m.transduction_[60:] != y[60:]) for m in (blocked, whole)]
    assert abs(wrong[0] - wrong[1]) < 0.02
    assert np.mean(blocked.predict(X) != blocked.transduction_) < 1e-3


def test_many_labeled_rows_stay_in_their_blocks(mixture, monkeypatch):
    X, _, partly = mixture
    few = model().fit(X, partly)
    monkeypatch.setattr(_blocked, "_PICKED", 0)
    many = model().fit(X, partly)
    assert many.objective_ == pytest.approx(few.objective_, rel=1e-4)
    assert np.mean(many.transduction_ != few.transduction_) < 1e-3


def test_many_labeled_rows_stay_in_their_blocks_without_a_direction_too(mixture, monkeypatch):
    X, _, partly = mixture
    made = seen_in(monkeypatch)
    model().fit(X, partly)
    t = np.where(partly < 0, 0.0, 2.0 * partly - 1.0)
    losses = LabeledLoss("squared_hinge"), UnlabeledLoss("gaussian")
    monkeypatch.setattr(_blocked, "_PICKED", 0)
    rest = Without(made[0], np.ones(made[0].dimension))
    stages = Continuation(rest, t, np.ones(t.size), Problem(*losses, 1.0, 1.0))
    assert stages.at(0.0)[0] is rest  # and not its labeled rows alone, in memory


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "lbfgs"},
        {"balance_tol": 0.05},
        {"reconsider": True},
        {"class_weight": "balanced"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_other_options_work_on_blocks(options, mixture):
    X, y, partly = mixture
    fitted = model(**options).fit(X, partly)
    assert np.mean(fitted.transduction_ != y) < 0.4


def test_newton_works_on_blocks(mixture, folder, monkeypatch):
    X, _, partly = mixture
    made = seen_in(monkeypatch)
    blocked = model(cls=NewtonS3VM).fit(X, partly)
    assert len(made) == 1
    whole = model(Coordinates(rank=40), cls=NewtonS3VM).fit(X, partly)
    assert blocked.objective_ == pytest.approx(whole.objective_, rel=0.05)
    assert open_files(folder) == []


def test_a_linear_kernel_reads_a_map_in_single_precision_by_blocks(mixture, tmp_path, monkeypatch):
    X, _, partly = mixture
    rows = mapped(X[:4000], tmp_path / "rows", np.float32)
    made = seen_in(monkeypatch)
    options = {"kernel": "linear", "balance": "labels"}
    blocked = QNS3VM(**options).fit(rows, partly[:4000])
    assert len(made) == 1
    whole = QNS3VM(**options).fit(np.array(rows), partly[:4000])
    assert len(made) == 1
    np.testing.assert_allclose(blocked.coef_, whole.coef_, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(
        blocked.decision_function(rows), blocked.decision_function(np.array(rows)), rtol=1e-12
    )


def test_small_maps_are_fitted_as_arrays_are(mixture, tmp_path):
    X, _, partly = mixture
    rows = mapped(X[:600], tmp_path / "rows", np.float32)
    for options in ({}, {"engine": "lbfgs"}):
        first = QNS3VM(**options).fit(np.array(rows), partly[:600])
        other = QNS3VM(**options).fit(rows, partly[:600])
        assert np.array_equal(first.dual_coef_, other.dual_coef_)


def test_the_share_is_estimated_from_many_rows_by_blocks(mixture, monkeypatch):
    from s3vm_lib.class_ratio import _rules

    X, _, partly = mixture
    options = {"C": 10.0, "gamma": 1 / 32, "coordinates": BLOCKED}
    first = QNS3VM(**options).fit(X, partly)
    monkeypatch.setattr(_rules, "LARGEST_COLUMNS", 2**16)
    other = QNS3VM(**options).fit(X, partly)
    np.testing.assert_allclose(other.class_ratio_, first.class_ratio_, rtol=1e-3)


ELSEWHERE = ["labels", "posterior", "powered", "bbse", "em", "separation", "objective", "auto"]


@pytest.mark.parametrize(
    ("balance", "scale"), [*itertools.product(ELSEWHERE, (1.0, 1e3)), ("em", 5.0)]
)
def test_rows_of_a_file_have_the_shares_and_the_model_of_rows_in_memory(
    balance, scale, mixture, tmp_path, monkeypatch
):
    """A few rows, in many blocks, and of any size: by a map, by blocks and on a cluster."""
    monkeypatch.setattr(_blocked, "_VALUES", 2**11)
    monkeypatch.setattr(finite_newton, "_BLOCK", 2**11)
    X, y, _ = mixture
    rows = mapped(scale * X[:300, :4], tmp_path / "rows", np.float32)
    partly = np.where(np.arange(300) < 40, y[:300], -1)
    linear = {"kernel": "linear", "balance": balance, "C": 10.0 / scale**2}
    rbf = {"gamma": 0.05 / scale**2, "balance": balance, "C": 10.0}
    exact = {"tol": 1e-8, "ftol": 1e-12}
    there = Coordinates(client=Here())
    cases = [
        (QNS3VM(**linear, **exact), {}),
        (QNS3VM(**linear, **exact), {"coordinates": there}),
        (
            QNS3VM(coordinates=Coordinates(rank=120), **rbf, **exact),
            {"coordinates": Coordinates(rank=120, client=Here())},
        ),
    ]
    if balance in ("labels", "em"):  # the same estimate goes before these
        cases += [
            (NewtonS3VM(**linear, **exact), {}),
            (NewtonS3VM(**linear, **exact), {"coordinates": there}),
            (DAS3VM(balance=balance, C=10.0 / scale**2), {"client": Here()}),
            (MultiSwitchTSVM(balance=balance, C=10.0 / scale**2), {"client": Here()}),
        ]
    for estimator, options in cases:
        found = clone(estimator).set_params(**options).fit(rows, partly)
        alone = clone(estimator).fit(np.array(rows, dtype=float), partly)
        np.testing.assert_allclose(found.class_ratio_, alone.class_ratio_, rtol=2e-3)
        np.testing.assert_allclose(found.objective_, alone.objective_, rtol=5e-3)
        assert np.mean(found.transduction_ != alone.transduction_) < 0.01


# --- With a graph ---------------------------------------------------------------------------------


@pytest.mark.parametrize("normalized", [False, True])
def test_a_graph_kernel_in_blocks_is_that_in_memory(normalized, mixture, folder):
    X, _, partly = mixture
    X, partly = X[:20_000, :3], partly[:20_000]
    options = {"rank": 50, "gamma": 0.1, "n_neighbors": 5, "normalized": normalized, "tol": 1e-8}
    held = []

    def look(state):
        held.append(len(open_files(folder)))

    whole = LapSVM(**options).fit(X, partly)
    # The factor and what is made of it would take 22 MiB.
    for memory, files in ((8, 1), (21.5, 0)):
        blocked = LapSVM(memory=memory, callback=look, **options).fit(X, partly)
        assert set(held) == {files}
        held.clear()
        assert open_files(folder) == []
        assert blocked.solver_ == "newton" and blocked.rank_ == 50
        assert blocked.objective_ == pytest.approx(whole.objective_, rel=1e-3)
        assert np.mean(blocked.transduction_ != whole.transduction_) < 0.01
        assert np.mean(blocked.predict(X) != blocked.transduction_) < 1e-3


def test_a_graph_kernel_with_all_rows_in_the_sample(mixture, monkeypatch):
    X, _, partly = mixture
    X, partly = X[:600, :3], partly[:600]
    data = LapSVM(gamma=0.1)._validated(X, partly, None, None)[2]
    labeled = np.flatnonzero(data.codes >= 0)
    lap = laplacian(NeighborGraph(5).build(X))
    low = low_rank(data.X, data.kernel, 150, 1e-6, labeled)
    made = block_coordinates(data.X, data.kernel, 150, 1e-6, None, labeled, megabytes=100)
    beta = np.random.default_rng(0).standard_normal(labeled.size)
    for kappa in (0.0, 0.3):
        whole = LowRankDeformedKernel(low, lap, kappa, labeled)
        blocked = BlockDeformedKernel(made, 7, lap, kappa, labeled)
        np.testing.assert_allclose(blocked.block, whole.block, atol=1e-5)
        for found, expected in zip(blocked.expand(beta)[1:], whole.expand(beta)[1:], strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_nothing_is_left_behind_by_a_graph(mixture, folder, monkeypatch):
    X, _, partly = mixture

    def fails(self, product, columns):
        assert len(open_files(folder)) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(_blocked.BlockFeatures, "quadratic", fails)
    with pytest.raises(KeyboardInterrupt):
        LapSVM(rank=60, memory=8, n_neighbors=5).fit(X[:8000, :3], partly[:8000])
    assert open_files(folder) == []


# --- On a cluster ---------------------------------------------------------------------------------


class Here:
    """The part of a Dask client that is used; what is sent goes through pickle."""

    def submit(self, function, *arguments, pure):
        assert not pure  # the scheduler must not look at the arguments
        return function(*pickle.loads(pickle.dumps(arguments)))

    def gather(self, futures):
        return futures


def test_workers_give_the_bits_of_this_process(mixture, tmp_path):
    X, partly = mixture[0][:10_000], mixture[2][:10_000]
    rows = mapped(X, tmp_path / "rows", np.float32)
    for options in ({}, {"balance_tol": 0.05}, {"cls": NewtonS3VM}):
        alone = model(Coordinates(rank=40, memory=5), **options).fit(rows, partly)
        found = model(Coordinates(rank=40, memory=5, client=Here()), **options).fit(rows, partly)
        assert np.array_equal(found.dual_coef_, alone.dual_coef_)
        assert np.array_equal(found.transduction_, alone.transduction_)
    linear = {"kernel": "linear", "balance": "labels"}
    alone = QNS3VM(**linear).fit(rows, partly)
    found = QNS3VM(coordinates=Coordinates(client=Here()), **linear).fit(rows, partly)
    assert np.array_equal(found.coef_, alone.coef_)


def sparse_rows(dtype, folder=None):
    """Long sparse rows, three classes by two planes; with a folder as a view of files."""
    rng = np.random.default_rng(0)
    X = sp.random(1200, 200, 0.05, "csr", dtype=dtype, random_state=0)
    X.data += dtype(0.1)
    codes = np.digitize(X @ rng.standard_normal(200), (-0.6, 0.6))
    if folder is not None:
        files = {name: folder / f"{name}.npy" for name in ("data", "indices", "indptr")}
        for name, file in files.items():
            np.save(file, getattr(X, name))
        arrays = tuple(np.load(file, mmap_mode="r") for file in files.values())
        X = sp.csr_matrix(arrays, shape=X.shape)
    return X, np.where(np.arange(codes.size) < 60, codes, -1)


@pytest.mark.parametrize("cls", [MultiSwitchTSVM, DAS3VM])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_linear_products_on_workers(cls, dtype, form, mixture, tmp_path, monkeypatch):
    if form == "sparse":
        (X, partly), X_here = sparse_rows(dtype, tmp_path), sparse_rows(dtype)[0]
    else:
        X_here, partly = mixture[0][:1200].astype(dtype), mixture[2][:1200]
        X = mapped(X_here, tmp_path / "rows", dtype)
    options = {"balance": "labels", "C": 0.1}
    alone, hidden = cls(**options).fit(X_here, partly), partly == -1
    for size in (2**12, 2**14):  # some blocks, and fewer
        monkeypatch.setattr(finite_newton, "_BLOCK", size)
        found = cls(client=Here(), **options).fit(X, partly)
        np.testing.assert_allclose(found.objective_, alone.objective_, rtol=1e-12)
        np.testing.assert_allclose(found.coef_, alone.coef_, rtol=1e-6, atol=1e-10)
        assert np.array_equal(found.transduction_, alone.transduction_)
        assert np.array_equal(found.predict(X)[hidden], found.transduction_[hidden])
    if form == "sparse":  # classes side by side, and the same bits
        threads = cls(client=Here(), n_jobs=2, **options).fit(X, partly)
        assert np.array_equal(threads.coef_, found.coef_)


def test_products_on_workers_are_those_of_what_arrays_hold_now(tmp_path, monkeypatch):
    """Arrays that are written to between calls, as a solver does it."""
    monkeypatch.setattr(finite_newton, "_BLOCK", 2**8)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 5))
    there = finite_newton.linear_rows(mapped(X, tmp_path / "rows"), Here())
    here = finite_newton.linear_rows(X)
    z, c, p, v = (np.empty(k) for k in (120, 120, 6, 6))
    for name, array in (("adjoint", z), ("outputs", v)):
        for _ in range(4):  # what comes again and again stays with the workers
            array[:] = rng.standard_normal(array.size)
            products = (getattr(rows, name)(array) for rows in (there, here))
            np.testing.assert_allclose(*products, rtol=1e-12)
    c[:], p[:] = rng.standard_normal(120), rng.standard_normal(6)
    expected = p + np.append(X.T @ (c * (X @ p[:5] + p[5])), c @ (X @ p[:5] + p[5]))
    product = there.curvature(c)
    for _ in range(3):  # c is that of the time of the call
        np.testing.assert_allclose(product(p), expected, rtol=1e-10)
        c[:] = 0.0


@pytest.mark.parametrize("cls", [QNS3VM, NewtonS3VM])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_coordinates_on_workers(cls, dtype, tmp_path, monkeypatch):
    (X, partly), X_here = sparse_rows(dtype, tmp_path), sparse_rows(dtype)[0]
    monkeypatch.setattr(_blocked, "_VALUES", 2**11)
    n_blocks = []

    class Counting(Here):
        def submit(self, function, *arguments, pure):
            if function.__name__ == "_made_group":
                n_blocks.append(len(arguments[1]))
            return super().submit(function, *arguments, pure=pure)

    options = {"kernel": "linear", "balance": "labels", "ftol": 1e-12, "tol": 1e-8}
    alone = cls(**options).fit(X_here, partly)
    found = cls(coordinates=Coordinates(client=Counting()), **options).fit(X, partly)
    assert sum(n_blocks) == -(-1200 // (2**11 // 10))  # ten values in a row, of 200 columns
    np.testing.assert_allclose(found.objective_, alone.objective_, rtol=1e-5)
    assert np.mean(found.transduction_ == alone.transduction_) > 0.998
    assert np.mean(found.predict(X) == alone.predict(X_here)) > 0.998


class Unaligned(Here):
    """Arrays arrive as a socket may deliver them: not aligned, and read-only."""

    def submit(self, function, *arguments, pure):
        buffers = []
        sent = pickle.dumps(arguments, protocol=5, buffer_callback=buffers.append)
        moved = [(b"1234" + bytes(buffer)) for buffer in buffers]
        return function(*pickle.loads(sent, buffers=[memoryview(part)[4:] for part in moved]))


@pytest.mark.parametrize("cls", [MultiSwitchTSVM, DAS3VM])
def test_how_arrays_arrive_is_no_matter(cls, mixture, tmp_path):
    X, partly = mixture[0][:9000], mixture[2][:9000]  # NumPy's buffer holds 8192 numbers
    rows = mapped(X, tmp_path / "rows", np.float32)
    one, other = (cls(client=place(), balance=0.5).fit(rows, partly) for place in (Here, Unaligned))
    assert np.array_equal(one.coef_, other.coef_)


def test_rows_stay_in_their_file_until_a_worker_opens_them(tmp_path):
    X, partly = sparse_rows(np.float32, tmp_path)
    for cls in (MultiSwitchTSVM, DAS3VM, LapSVM):
        data = cls(client=Here())._validated(X, partly, None, None)[2]
        assert is_mapped(data.X) and data.X.dtype == np.float32
        assert not is_mapped(cls()._validated(X, partly, None, None)[2].X)
    opened = pickle.loads(pickle.dumps(on_disk(X))).open()
    assert abs(opened - X).max() == 0 and is_mapped(opened)


@pytest.mark.parametrize("options", [{"gamma": 0.1}, {"kernel": "linear"}, {"n_neighbors": 3}])
def test_a_graph_kernel_on_workers_has_the_bits_of_this_process(options, mixture, tmp_path):
    X, _, partly = mixture
    rows, partly = mapped(X[:8000], tmp_path / "rows", np.float32), partly[:8000]
    options = {"rank": 60, "memory": 8, **options}
    alone = LapSVM(**options).fit(rows, partly)
    found = LapSVM(client=Here(), **options).fit(rows, partly)
    assert found.rank_ == alone.rank_
    assert np.array_equal(found.dual_coef_, alone.dual_coef_)
    assert np.array_equal(found.transduction_, alone.transduction_)
    if "kernel" in options:
        assert np.array_equal(found.coef_, alone.coef_)
    # On workers they lie in blocks even where there is room.
    roomy = LapSVM(client=Here(), **(options | {"memory": 4000})).fit(rows, partly)
    assert roomy.objective_ == pytest.approx(alone.objective_, rel=1e-9)


def test_a_graph_kernel_of_sparse_rows_on_workers(tmp_path):
    X, partly = sparse_rows(np.float64, tmp_path)
    partly[20:] = -1  # labeled rows are at most half of the pivots
    options = {"rank": 80, "n_neighbors": 4, "tol": 1e-8}
    alone = LapSVM(**options).fit(sparse_rows(np.float64)[0], partly)
    found = LapSVM(client=Here(), **options).fit(X, partly)
    assert found.rank_ == alone.rank_ == 80 and found.solver_ == "newton"
    np.testing.assert_allclose(found.objective_, alone.objective_, rtol=0.01)
    assert np.mean(found.transduction_ == alone.transduction_) > 0.95


def test_workers_need_a_map(mixture, tmp_path):
    X, _, partly = mixture
    S, few = sparse_rows(np.float64, tmp_path)
    wide = sp.csr_matrix(S.shape)
    wide.data, wide.indices, wide.indptr = S.data, np.array(S.indices), S.indptr
    ones = np.ones(few.size)
    ones[7] = 0.0
    for machine, rows, y, weight in (
        (model(Coordinates(rank=40, client=Here())), X[:500], partly[:500], None),
        (MultiSwitchTSVM(client=Here()), X[:500], partly[:500], None),
        (LapSVM(client=Here()), X[:500], partly[:500], None),
        (DAS3VM(client=Here()), wide, few, None),  # its indices are in memory
        (DAS3VM(client=Here()), S, few, ones),
    ):
        with pytest.raises(ValueError, match=r"numpy\.memmap"):
            machine.fit(rows, y, weight)
        assert not hasattr(machine, "coef_") and not hasattr(machine, "classes_")


def test_a_graph_kernel_that_workers_cannot_make(mixture, tmp_path):
    X, _, partly = mixture
    rows, partly = mapped(X[:500], tmp_path / "rows"), partly[:500]
    with pytest.raises(ValueError, match="client needs a kernel of rows and solver='auto'"):
        LapSVM(client=Here(), solver="pcg").fit(rows, partly)
    with pytest.raises(ValueError, match=r"client needs a kernel of rows.*'precomputed'"):
        LapSVM(client=Here(), kernel="precomputed").fit(X[:500] @ X[:500].T, partly)
    with pytest.raises(ValueError, match=r"memory=1 MiB is too little for 500 rows.*at least"):
        LapSVM(client=Here(), memory=1).fit(rows, partly)


class Connection(Here):
    """Can be neither copied nor pickled, as a client of Dask."""

    def __reduce_ex__(self, protocol):
        raise TypeError("cannot pickle a connection")


@pytest.mark.parametrize(
    "machine",
    [
        lambda client: MultiSwitchTSVM(client=client),
        lambda client: LapSVM(client=client),
        lambda client: QNS3VM(coordinates=Coordinates(client=client)),
        lambda client: FRS3VM(polish=Polish(client=client)),
    ],
)
def test_a_clone_has_the_client_and_a_pickle_none(machine):
    client = Connection()
    made = machine(client)
    found = clone(made)
    group = getattr(found, "coordinates", None) or getattr(found, "polish", found)
    assert group.client is client and type(found) is type(made)
    read = pickle.loads(pickle.dumps(made))
    group = getattr(read, "coordinates", None) or getattr(read, "polish", read)
    assert group.client is None and repr(read) == repr(machine(None))


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker(mixture, tmp_path):
    distributed = pytest.importorskip("distributed")
    X, partly = mixture[0][:10_000], mixture[2][:10_000]
    rows = mapped(X, tmp_path / "rows", np.float32)
    alone = model(Coordinates(rank=40, memory=5)).fit(rows, partly)
    killed = []

    def kill(state):
        if state["alpha"] > 0 and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = model(Coordinates(rank=40, client=client), callback=kill).fit(rows, partly)
        assert killed and np.array_equal(found.dual_coef_, alone.dual_coef_)
        # What was lost is there again; products with rows are the same wherever they are taken.
        one, other = (DAS3VM(client=place).fit(rows, partly) for place in (Here(), client))
        assert np.array_equal(one.coef_, other.coef_)


# --- What goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_nothing_is_left_behind(error, mixture, folder, monkeypatch):
    X, _, partly = mixture
    held = []

    def stop(state):
        held.append(open_files(folder))
        raise error

    with pytest.raises(error):
        model(Coordinates(rank=40, memory=5), callback=stop).fit(X, partly)
    assert len(held[0]) == 1  # it was there
    assert open_files(folder) == [] and list(folder.iterdir()) == []

    def fails(first, second):
        held.append(open_files(folder))
        del first  # of _moments, a block: a map of the file, which a traceback would keep
        raise error

    for name in ("_moments", "made"):
        monkeypatch.setattr(_blocked, name, fails)
        with pytest.raises(error) as caught:  # the traceback holds what the fit held
            model(Coordinates(rank=40, memory=5)).fit(X, partly)
        assert len(set(held[-1])) == 1 and caught.value is not None  # a map holds it again
        assert open_files(folder) == [] and list(folder.iterdir()) == []


def test_too_little_memory_is_an_error_that_says_how_much():
    X, y = datasets.make_mixture(3000, random_state=0)
    y[30:] = -1
    with pytest.raises(ValueError, match=r"memory=0.1 MiB is too little for rank=500.* at least"):
        QNS3VM(coordinates=Coordinates(rank=500, memory=0.1)).fit(X, y)


@pytest.mark.parametrize(
    "options", [{"memory": 0}, {"memory": "much"}, {"client": 3}], ids=lambda o: next(iter(o))
)
def test_bad_limits_are_refused_by_name(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Coordinates(**options)


@pytest.mark.parametrize("name", ["raw", "eigen", "kpca"])
def test_other_coordinates_refuse_a_cluster(name, mixture):
    class Client:
        submit = gather = len

    X, _, partly = mixture
    with pytest.raises(ValueError, match="client needs coordinates='cholesky' or 'regressors'"):
        model(Coordinates(name, client=Client())).fit(X[:200], partly[:200])


def test_rows_that_are_not_numbers_are_found_in_a_map(mixture, tmp_path):
    X = mixture[0][:500].copy()
    X[77, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model().fit(mapped(X, tmp_path / "rows", np.float32), mixture[2][:500])


_CHILD = """
import json, sys
import numpy as np
from s3vm_lib import QNS3VM
from s3vm_lib.smooth import Coordinates, _blocked
n, memory, path = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
X = np.memmap(path, np.float32, "r", shape=(n, 20))
y = np.full(n, -1)
y[:50] = np.load(path + ".npy")
def peak():  # getrusage would begin with the size of the process that started this one
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1024
def fit(m, rows, memory):
    coordinates = Coordinates(rank=m, memory=memory)
    return QNS3VM(gamma=1 / 32, C=10.0, coordinates=coordinates).fit(X[:rows], y[:rows])
fit(40, 60_000, 20)  # what is compiled takes memory once
before = peak()
model = fit(150, n, memory)
model.predict(X[:20_000])
print(json.dumps({"extra": peak() - before, "rows": X.nbytes / 2**20}))
"""


@pytest.mark.slow
def test_memory_is_bounded(tmp_path):
    if not Path("/proc/self/status").is_file():
        pytest.skip("the memory of a process is read from /proc")
    n, memory = 200_000, 40  # the coordinates of all rows: 229 MiB
    X, y = datasets.make_mixture(n, random_state=0)
    path = str(tmp_path / "rows")
    mapped(X, path, np.float32)
    np.save(path + ".npy", y[:50])
    run = subprocess.run(
        [sys.executable, "-c", _CHILD, str(n), str(memory), path],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(run.stdout.splitlines()[-1])
    # The limit, the pages of the file that were read, and a few numbers for each row.
    assert found["extra"] < memory + found["rows"] + 20 * 8 * n / 2**20


# --- Progress -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [QNS3VM, NewtonS3VM, MultiSwitchTSVM, DAS3VM])
def test_a_line_on_stderr_says_how_much_time_is_left(cls, mixture, monkeypatch, capsys):
    X, _, partly = mixture
    unit = {MultiSwitchTSVM: "levels", DAS3VM: "temperatures"}.get(cls, "stages")
    monkeypatch.setattr(base_machine, "_DELAY", 0.0)
    cls().fit(X[:300], partly[:300])
    assert capsys.readouterr() == ("", "")
    fitted = cls(verbose=1).fit(X[:300], partly[:300])
    out, err = capsys.readouterr()
    assert out.count(cls.__name__) == len(fitted.history_)  # a line for each stage
    assert "\r" in err and unit in err and cls.__name__ in err
    assert err.split("\r")[-1].strip() == ""  # it goes away


@pytest.mark.parametrize("cls", [QNS3VM, NewtonS3VM, MultiSwitchTSVM, DAS3VM])
def test_a_callback_gets_the_numbers_of_a_stage(cls, mixture):
    X, _, partly = mixture
    states = []
    fitted = cls(callback=states.append).fit(X[:300], partly[:300])
    assert len(states) == len(fitted.history_) > 1
    for state, stage in zip(states, fitted.history_, strict=True):
        fields = stage._asdict()
        assert state.items() <= fields.items() and "n_iter" in state
        left_out = [fields[name] for name in fields.keys() - state.keys()]
        assert all(isinstance(value, str | tuple) for value in left_out)


def test_blocks_are_counted_too(mixture, monkeypatch, capsys):
    X, _, partly = mixture
    monkeypatch.setattr(base_machine, "_DELAY", 0.0)
    model(verbose=1).fit(X, partly)
    assert "blocks" in capsys.readouterr().err
