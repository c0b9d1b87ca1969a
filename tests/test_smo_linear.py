"""Linear kernels: the interior-point method and coordinate descent against SMO and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.svm import SVC

from s3vm_lib import CCCPS3VM, SVM
from s3vm_lib.cccp import inner_costs
from s3vm_lib.gram import Gram
from s3vm_lib.kernels import Kernel, squared_norms
from s3vm_lib.smo import _solver as solver
from s3vm_lib.smo import feasible, solve_smo, svc_costs
from s3vm_lib.smo._linear import linear_solution


def instance(seed, n=300, d=7, kind="plain"):
    """Return rows, labels with noise, and a generator."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if kind == "scaled":
        X[:, -1] *= 1e4
    elif kind == "copies":
        X = np.repeat(X[: n // 2], 2, axis=0)
    elif kind == "collinear":
        X[:, 1] = X[:, 0]
    elif kind == "sparse":
        X = X * (rng.random(X.shape) < 0.3)
    return X, np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0), rng


def problem(seed, mean, semi, **options):
    """Return rows, costs and the weights of the mean point of a supervised or a CCCP problem."""
    X, t, rng = instance(seed, **options)
    if not semi:
        return X, svc_costs(t, 3.0 * rng.choice([1.0, 2.0], t.size)), None
    t[rng.random(t.size) < 0.6] = 0.0
    width = np.full(np.sum(t == 0), 0.2)
    delta = width * rng.choice([-1.0, 0.0, 1.0], width.size)
    costs = inner_costs(t, np.full(t.size, 3.0), width, delta, 0.1 if mean else None)
    return X, costs, np.where(t == 0, 1.0 / width.size, 0.0) if mean else None


def started(points, costs, tol):
    """Return β and F that SMO begins with."""
    start = feasible(np.zeros(costs.lo.size), costs)
    return solver._linear_start(points, costs, start, points @ (start @ points), tol)


@pytest.mark.parametrize("kind", ["plain", "scaled", "copies", "collinear"])
@pytest.mark.parametrize(("mean", "semi"), [(False, False), (False, True), (True, True)])
@pytest.mark.parametrize("seed", range(3))
def test_the_interior_point_method_solves_the_problem(seed, mean, semi, kind):
    X, costs, weights = problem(seed, mean, semi, kind=kind)
    gram = Gram(X, Kernel("linear", sigma_f=2.0), dtype=np.float64, mean_weights=weights)
    points = gram.points
    assert_allclose(points @ points.T, gram.cache.values, rtol=1e-9, atol=1e-9)
    found = linear_solution(points, costs, np.zeros(costs.lo.size), 1e-6)
    assert abs(found.sum()) < 1e-8 * np.abs(found).sum()
    assert np.all((found >= costs.lo) & (found <= costs.hi))
    beta, F = started(points, costs, 1e-6)
    # As it is, and not only after SMO has mended it; a sum that is not 0 moves wide rows most.
    assert solver._offset(costs, beta, F)[1] < (0.1 if kind == "scaled" else 1e-4)
    if kind != "scaled":  # which SMO does not solve in a million iterations
        plain = Gram(X @ X.T * 4.0 if weights is None else gram.cache.values, Kernel("precomputed"))
        best = solve_smo(plain, costs, feasible(np.zeros(beta.size), costs), tol=1e-6)
        assert best.status == "converged"
        value = solver._value(costs, beta, F)
        assert_allclose(value, best.objective, rtol=1e-7)


@pytest.mark.parametrize(("mean", "semi"), [(False, False), (False, True), (True, True)])
@pytest.mark.parametrize("seed", range(3))
def test_coordinate_descent_solves_the_problem(seed, mean, semi):
    X, costs, weights = problem(seed, mean, semi, n=120, d=200, kind="sparse")
    gram = Gram(sp.csr_matrix(X), Kernel("linear"), dtype=np.float64, mean_weights=weights)
    assert sp.issparse(gram.points)
    beta, F = started(gram.points, costs, 1e-4)
    assert abs(beta.sum()) < 1e-12 * np.abs(beta).sum()
    assert solver._offset(costs, beta, F)[1] < (1e-3 if mean else 1e-4)
    best = solve_smo(
        Gram(gram.cache.values, Kernel("precomputed")), costs,
        feasible(np.zeros(beta.size), costs), tol=1e-7,
    )  # fmt: skip
    assert_allclose(solver._value(costs, beta, F), best.objective, rtol=1e-5)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_many_rows_need_no_iteration_of_smo(C):
    X, t, _ = instance(5, n=6000, d=5)
    model = SVM(kernel="linear", C=C).fit(X, t > 0)
    assert model.n_iter_ == 1 and model.termination_condition_ == "converged"
    f = X @ model.coef_[0] + model.intercept_[0]
    primal = 0.5 * np.sum(model.coef_**2) + C * np.maximum(0, 1 - t * f).sum()
    beta = model.dual_coef_[0]
    dual = t[model.support_] @ beta - 0.5 * np.sum((beta @ X[model.support_]) ** 2)
    assert abs(beta.sum()) < 1e-9 * np.abs(beta).sum()
    assert_allclose([primal, model.objective_], dual, rtol=1e-6)
    # Rows off the margin have variables at their bounds, exactly.
    free = np.sum((beta != 0) & (np.abs(beta) != C))
    assert 0 < free <= 12


def test_dense_and_sparse_rows_have_one_machine():
    X, t, _ = instance(2, n=3000, d=6, kind="sparse")
    dense = SVM(kernel="linear", tol=1e-5).fit(X, t > 0)
    wide = sp.hstack([sp.csr_matrix(X), sp.csr_matrix((3000, 6000))], format="csr")
    for rows in (sp.csr_matrix(X), wide):
        model = SVM(kernel="linear", tol=1e-5).fit(rows, t > 0)
        assert_allclose(model.coef_[0][:6], dense.coef_[0], atol=1e-4)
        assert_allclose(model.objective_, dense.objective_, rtol=1e-6)
    peer = SVC(kernel="linear", tol=1e-5).fit(X[:1000], t[:1000])
    ours = SVM(kernel="linear", tol=1e-5).fit(X[:1000], t[:1000] > 0)
    assert_allclose(ours.coef_, peer.coef_, atol=1e-4)


def test_a_wide_column_costs_no_iterations():
    X, t, _ = instance(3, n=100, d=5, kind="scaled")
    model = SVM(kernel="linear").fit(X, t > 0)
    assert model.termination_condition_ == "converged" and model.n_iter_ < 60_000


def test_cccp_with_a_linear_kernel_takes_the_same_steps(monkeypatch):
    X, t, rng = instance(4, n=400, d=4)
    y = np.where(rng.random(400) < 0.8, -1, t > 0)
    fits = []
    for late in (0, 10**12):
        monkeypatch.setattr(solver, "_LATE", late)
        fits.append(CCCPS3VM(kernel="linear", tol=1e-6).fit(X, y))
    assert_allclose(fits[0].coef_, fits[1].coef_, atol=1e-4)
    assert_allclose(fits[0].objective_, fits[1].objective_, rtol=1e-6)
    assert sum(loop.n_iter for loop in fits[0].history_) < 0.5 * sum(
        loop.n_iter for loop in fits[1].history_
    )


def test_columns_that_are_many_for_the_rows_give_smo_more_iterations(monkeypatch):
    starts = []
    begin = solver._linear_start
    monkeypatch.setattr(solver, "_linear_start", lambda *of: starts.append(1) or begin(*of))
    monkeypatch.setattr(solver, "_LATE", 0)
    X, t, _ = instance(5, n=2000, d=200)
    for rows, columns, expected in ((300, 5, 1), (300, 200, 0), (2000, 200, 1)):
        starts.clear()
        model = SVM(kernel="linear").fit(X[:rows, :columns], t[:rows] > 0)
        assert len(starts) == expected and model.termination_condition_ == "converged"


def test_sparse_rows_far_away_can_be_set_aside():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5)) * (rng.random((600, 5)) < 0.5)
    X[:300] += 1e5 * (X[:300] != 0)
    y = rng.random(600) < 0.5
    dense, sparse = (
        SVM(gamma=1.0, gram="rows").fit(rows, y) for rows in (X, sp.csr_matrix(X))
    )  # fmt: skip
    assert len({active for *_, active in sparse.history_}) > 1
    assert_allclose(sparse.objective_, dense.objective_, rtol=1e-4)


def test_squared_norms_of_sparse_rows():
    X = sp.csr_matrix(([1.0, 2.0, 3.0, -1.0], [2, 0, 2, 1], [0, 0, 3, 3, 4]), shape=(4, 3))
    data = X.data.copy()
    assert squared_norms(X).tolist() == [0.0, 4.0 + 16.0, 0.0, 1.0]  # entries twice add up
    assert X.data.tolist() == data.tolist()
    assert squared_norms(sp.csr_matrix((3, 2))).tolist() == [0.0] * 3
    many = sp.random(40_000, 3, 0.4, format="csr", random_state=0)
    assert_allclose(squared_norms(many), np.sum(many.toarray() ** 2, axis=1))
