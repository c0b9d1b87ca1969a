"""`OnlineS3VM`: classes over calls, validation of batches, a state that errors do not change."""

import warnings
from numbers import Integral
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.utils._param_validation import Interval

from s3vm_lib.base.machine import BinaryFit
from s3vm_lib.base.online import OnlineS3VM, RowTable
from s3vm_lib.kernels import Kernel, resolve_gamma
from s3vm_lib.objective import Problem
from s3vm_lib.path_following import ILS3VM
from s3vm_lib.stochastic import FRS3VM
from s3vm_lib.utils import validation


class Machine:
    """Sums of rows by label."""

    def __init__(self, d):
        self.w, self.n = np.zeros(d), 0


class Sums(OnlineS3VM):
    """The smallest online learner: w = Σ t_i s_i x_i."""

    _parameter_constraints = {"limit": [Interval(Integral, 1, None, closed="left")]}

    def __init__(self, *, limit=100, kernel="linear", sigma_f=1.0, class_weight=None, max_iter=1):
        self.limit = limit
        self.kernel = kernel
        self.sigma_f = sigma_f
        self.class_weight = class_weight
        self.max_iter = max_iter

    def _prepare(self, data):
        return None

    def _problem(self, data, ratio):
        return Problem(kernel=Kernel("linear"))

    def _start(self, data, problem, index):
        return Machine(data.X.shape[1])

    def _fit_binary(self, data, shared, t, problem, index):
        self._machines.append(self._start(data, problem, index))
        return self._update(self._machines[-1], data, t, problem, index)

    def _update(self, machine, data, t, problem, index):
        machine.w += np.asarray((t * data.loss_weight) @ data.X)
        machine.n += t.size
        if machine.n > self.limit:
            raise RuntimeError("too many rows")
        status = "max_iter" if machine.n == self.limit else "converged"
        outputs = np.asarray(data.X @ machine.w)
        return BinaryFit(None, machine.w.copy(), 0.0, outputs, 0.0, 1, status, [])


def rows(n=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = (X[:, 0] > 0).astype(int)
    y[n // 2 :] = -1
    return X, y


def test_batches_add_up_to_the_fit_of_all():
    X, y = rows()
    whole = Sums().fit(X, y)
    parts = Sums().partial_fit(X[:7], y[:7], classes=[0, 1])
    assert parts.partial_fit(X[7:], y[7:]) is parts
    np.testing.assert_allclose(parts.coef_, whole.coef_)
    assert_array_equal(parts.classes_, [0, 1])
    sparse = Sums().partial_fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.coef_, whole.coef_)
    # Afterwards `fit` starts over.
    np.testing.assert_allclose(parts.fit(X, y).coef_, whole.coef_)
    np.testing.assert_allclose(parts.partial_fit(X, y).coef_, 2 * whole.coef_)


def test_the_kernel_is_that_of_the_first_batch():
    kernels = []

    class Recorded(ILS3VM):
        def _update(self, machine, data, t, problem, index):
            kernels.append(data.kernel)
            return super()._update(machine, data, t, problem, index)

    X, y = rows()
    model = Recorded(kernel="rbf").partial_fit(X, y)
    model.partial_fit(10 * X, y).partial_fit(X[:1], y[:1])
    assert kernels == kernels[:1] * 3
    assert model.gamma_ == kernels[0].gamma == resolve_gamma("scale", X)


def test_classes_come_first_or_with_two_labels():
    X, y = rows()
    assert_array_equal(Sums().partial_fit(X, y).classes_, [0, 1])
    names = np.array(["no", "yes", -1], dtype=object)
    model = Sums().partial_fit(X, names[y])
    assert model.partial_fit(X[:1], ["yes"]).classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match=r"two labeled classes, got 1 class"):
        Sums().partial_fit(X[:5], np.zeros(5, int))
    only = Sums().partial_fit(X[:5], np.full(5, -1), classes=[3, 7])
    assert set(only.predict(X).tolist()) <= {3, 7}
    only.partial_fit(X[5:6], [7])
    three = Sums().partial_fit(X[:2], [0, 2], classes=[2, 1, 0])
    assert three.decision_function(X).shape == (20, 3)
    assert len(three._machines) == 3
    signs = Sums().partial_fit(X, 2 * y - 1, unlabeled_mask=y < 0, classes=[-1, 1])
    assert_array_equal(signs.classes_, [-1, 1])


def test_weights():
    X, y = rows()
    weight = np.random.default_rng(0).integers(0, 3, 20)
    found = Sums().partial_fit(X, y, sample_weight=weight)
    copies = Sums().partial_fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    assert found._machines[0].n == np.count_nonzero(weight)  # rows of weight zero are not learned
    np.testing.assert_allclose(found.coef_, copies.coef_)
    before = found.coef_
    found.partial_fit(X[:2], [1 - y[0], 1], sample_weight=[0, 1])
    np.testing.assert_allclose(found.coef_[0], before[0] + X[1])
    by_class = Sums(class_weight={1: 3.0}).partial_fit(X, y)
    by_row = Sums().partial_fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_allclose(by_class.coef_, by_row.coef_)


@pytest.mark.parametrize("version", ["this one", "before 1.9"])
def test_a_batch_without_any_weight_is_refused_by_all_versions_of_scikit_learn(
    monkeypatch, version
):
    if version == "before 1.9":  # which let such weights pass
        monkeypatch.setattr(validation, "_check_sample_weight", lambda weight, X, **_: weight)
    X, y = rows()
    for model in (Sums(), Sums().fit(X, y)):
        before = dict(vars(model))
        with pytest.raises(ValueError, match=r"[Ss]ample.weight.* at least one non-zero number"):
            model.partial_fit(X, y, sample_weight=np.zeros(20))
        assert vars(model) == before


def test_the_limit_is_reported_at_the_line_that_called():
    X, y = rows()
    with pytest.warns(ConvergenceWarning, match="Sums stopped") as record:
        Sums(limit=20).partial_fit(X, y)
    assert record[0].filename == __file__


BAD = {
    "other label": (lambda X, y: dict(X=X, y=y + 3), r"y holds \[2, 3, 4\].* classes \[0, 1\]"),
    "features": (lambda X, y: dict(X=X[:, :2], y=y), "2 features.*3 features"),
    "nan": (lambda X, y: dict(X=np.where(X > 2, X, np.nan), y=y), "NaN"),
    "huge": (lambda X, y: dict(X=1e200 * X, y=y), "scale the data"),
    "lengths": (lambda X, y: dict(X=X, y=y[:-1]), "inconsistent"),
    "weights": (lambda X, y: dict(X=X, y=y, sample_weight=-np.ones(20)), "[Nn]egative"),
    "mask": (lambda X, y: dict(X=X, y=y, unlabeled_mask=y), "unlabeled_mask must be a boolean"),
    "other classes": (lambda X, y: dict(X=X, y=y, classes=[0, 2]), "those of the first call"),
    "one class": (lambda X, y: dict(X=X, y=y, classes=[0]), "at least two"),
    "rows of classes": (
        lambda X, y: dict(X=X, y=y, classes=[[0, 1], [0, 1]]),
        r"classes must be one-dim.*got \[\[0",
    ),
    "infinite": (lambda X, y: dict(X=np.where(X > 0, np.inf, X), y=y), "infinity"),
    "one row": (lambda X, y: dict(X=X[0], y=y[:1]), "1D array"),
    "two columns": (lambda X, y: dict(X=X, y=np.c_[y, y]), "1d array"),
    "no rows": (lambda X, y: dict(X=X[:0], y=y[:0]), "0 sample"),
    "minus one": (lambda X, y: dict(X=X, y=np.array(["-1"] * 20)), "'-1'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_batches_change_nothing(name):
    X, y = rows()
    bad, message = BAD[name]
    model = Sums().fit(X, y)
    before, w = dict(vars(model)), model._machines[0].w.copy()
    with pytest.raises(ValueError, match=message):
        model.partial_fit(**bad(X, y))
    assert vars(model) == before
    assert_array_equal(model._machines[0].w, w)


def test_all_forms_of_a_batch_are_the_same():
    X, y = rows()
    X, y = np.ascontiguousarray(X, dtype=float), np.asarray(y)
    plain = Sums().fit(X, y).partial_fit(X, y)
    forms = [
        (X.tolist(), y.tolist()),
        (np.asfortranarray(X), y),
        (X, y.astype(float)),
        (X, y[:, None]),
    ]
    for A, b in forms:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataConversionWarning)
            other = Sums().fit(X, y).partial_fit(A, b)
        np.testing.assert_allclose(other.coef_, plain.coef_)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.warns(UserWarning, match="feature names"):
        Sums().fit(frame, y).partial_fit(X, y)


def test_an_error_half_way_changes_nothing():
    X, y = rows()
    model = Sums(limit=25).partial_fit(X, y)
    before, w = dict(vars(model)), model._machines[0].w.copy()
    with pytest.raises(RuntimeError):
        model.partial_fit(X[:8], y[:8])
    assert vars(model) == before
    assert_array_equal(model._machines[0].w, w)
    assert model._machines[0].n == 20
    fresh = Sums(limit=5)
    with pytest.raises(RuntimeError):
        fresh.partial_fit(X, y)
    assert not hasattr(fresh, "classes_")
    assert not hasattr(fresh, "n_features_in_")


def test_what_needs_all_rows_is_refused_by_name():
    X, y = rows()
    with pytest.raises(ValueError, match="class_weight='balanced'"):
        Sums(class_weight="balanced").partial_fit(X, y)
    with pytest.raises(ValueError, match=r"kernel='precomputed'.*Sums"):
        Sums(kernel="precomputed").partial_fit(X @ X.T, y)
    with pytest.raises(ValueError, match="classes must not hold -1"):
        Sums().partial_fit(X, y, classes=[-1, 1])
    with pytest.raises(ValueError, match="'limit' parameter"):
        Sums(limit=0).partial_fit(X, y)


def test_a_table_gives_places_to_the_rows_that_have_a_weight():
    data = SimpleNamespace(rows=np.array([0, 2]), loss_weight=np.array([1.0, 6.0]))
    codes, weight = np.array([1, 0, -1]), np.array([1.0, 0.0, 3.0])
    first = RowTable.of(data, codes, weight)
    both = first.extended(RowTable.of(data, codes, weight, first=2))
    assert_array_equal(both.place, [0, -1, 1, 2, -1, 3])
    assert_array_equal(both.loss_weight, [1, 0, 6, 1, 0, 6])
    assert_array_equal(both.used, [0, 2, 3, 5])
    assert_array_equal(both.take([5, 0]).place, [3, 0])
    assert_array_equal(first.place, [0, -1, 1])  # never written to


@pytest.mark.parametrize("first", [1, 9, 10])
@pytest.mark.parametrize("cls", [ILS3VM, FRS3VM])
def test_a_gamma_of_few_rows_is_said(cls, first):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((first, 2)), rng.integers(0, 2, first)
    for options, few in (({}, True), ({"gamma": 0.5}, False), ({"kernel": "linear"}, False)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = cls(**options).partial_fit(X, y, classes=[0, 1])
            model.partial_fit(X[:1] + 0.1, [-1])
        said = [str(w.message) for w in caught if "first batch" in str(w.message)]
        assert len(said) == (few and first < 10)
        assert all(f"{model.gamma_:.3g} by the first batch of {first} row" in s for s in said)
        assert all(w.filename == __file__ for w in caught if "first batch" in str(w.message))
