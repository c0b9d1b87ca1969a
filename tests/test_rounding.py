"""No unit and no last bit decides: data, kernels and weights rescaled, perturbed and reordered.

A problem is the same when the kernel is multiplied by c and C divided by it, or when the weights
are multiplied and C is divided. A solver whose tolerances are shares of the size of what they are
compared with then takes the same steps; with powers of two, whose products are exact, to the last
bit.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from test_estimators import ESTIMATORS

from s3vm_lib.branch_and_bound import BranchBoundS3VM
from s3vm_lib.budgeted import BGS3VM
from s3vm_lib.cccp import CCCPS3VM
from s3vm_lib.graph_kernel_machine import GKM
from s3vm_lib.kernels import Kernel, resolve_gamma
from s3vm_lib.label_switching import S3VMLight
from s3vm_lib.laplacian_svm import LapSVM
from s3vm_lib.nn_branch_and_bound import NNBBS3VM
from s3vm_lib.path_following import ILS3VM
from s3vm_lib.primal_newton import NewtonS3VM
from s3vm_lib.quasi_newton import QNS3VM
from s3vm_lib.reference import branch_and_bound as bb_twin
from s3vm_lib.reference import path_following as path_twin
from s3vm_lib.reference import path_steps
from s3vm_lib.smo import SVM, feasible, svc_costs
from s3vm_lib.stochastic import FRS3VM, TSGS3VM
from s3vm_lib.utils.linear import nearer

SCALES = [2.0**20, 2.0**-20, 1e6, 1e-6]

# GKM and BGS3VM take part without an offset: theirs is penalized like a weight.
# Their coordinates, first steps and trust regions have a unit: other steps, to the same minimum.
COORDINATES = (QNS3VM, NewtonS3VM, FRS3VM, TSGS3VM)
WITHOUT_OFFSET = (GKM, BGS3VM)
HINT = "a method whose steps have a unit of their own is named at the top of this file"

VARIANTS = [
    (LapSVM, dict(solver="pcg")),
    (LapSVM, dict(labeled_loss="hinge")),
    (BranchBoundS3VM, dict(unlabeled_loss="gaussian", labeled_loss="squared_hinge")),
    (BranchBoundS3VM, dict(labeled_loss="squared_hinge")),
]


def fit(case, X, y, kernel, weight=None, **parameters):
    """The model that an estimator of the table finds with its exact parameters."""
    options = dict(kernel=kernel, gamma=0.5, C=1.0, **case.exact)
    if case.cls in WITHOUT_OFFSET:
        options["fit_intercept"] = False
    if hasattr(case.cls, "balance"):  # estimates of it are tested on their own
        options.setdefault("balance", "labels")
    return case(**{**options, **parameters}).fit(X, y, sample_weight=weight)


def data(case, semi_supervised, seed=0):
    small = case.rows < 100
    return semi_supervised(n=30 if small else 60, n_labeled=10 if small else 14, seed=seed)


def cases(condition=lambda case: True):
    return pytest.mark.parametrize(
        ("case", "kernel"),
        [
            pytest.param(case, kernel, id=f"{case.cls.__name__}-{kernel}")
            for case in ESTIMATORS
            for kernel in (("linear", "rbf") if case.kernels else ("linear",))
            if condition(case)
        ],
    )


def rescaled(way, a, X, kernel):
    """The rows, weights and parameters of the same problem in another unit."""
    if way == "weights":
        return X, np.full(X.shape[0], a), dict(C=1 / a)
    if way == "kernel":
        return X, None, dict(sigma_f=a, C=1 / a**2)
    return a * X, None, dict(C=1 / a**2) if kernel == "linear" else dict(gamma=0.5 / a**2)


# --- Other units ----------------------------------------------------------------------------------


@cases()
@pytest.mark.parametrize("way", ["rows", "kernel", "weights"])
def test_the_unit_of_data_kernel_and_weights_is_free(case, kernel, way, semi_supervised):
    X, y = data(case, semi_supervised)
    model = fit(case, X, y, kernel)
    if model.problem_.bias == "regularized" and way != "weights":
        pytest.skip("a penalized offset is the weight of a feature 1, which keeps its unit")
    expected = model.decision_function(X)
    for a in SCALES:
        rows, weight, parameters = rescaled(way, a, X, kernel)
        found = fit(case, rows, y, kernel, weight, **parameters)
        # eta0 of TSGS3VM is in units of the kernel, too.
        exact = np.log2(a) % 1 == 0 and (way == "weights" or case.cls not in COORDINATES)
        atol = 1e-12 if exact else case.decimals
        assert_allclose(found.decision_function(rows), expected, atol=atol, err_msg=HINT)
        assert_array_equal(found.transduction_, model.transduction_)
        if case.cls is ILS3VM:
            assert found.residual_ < 1e-10


@pytest.mark.parametrize(
    ("cls", "options"), VARIANTS, ids=lambda value: getattr(value, "__name__", None) or str(value)
)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_it_is_free_in_every_variant(cls, options, kernel, semi_supervised):
    case = next(case for case in ESTIMATORS if case.cls is cls)
    X, y = semi_supervised(n=24, n_labeled=10) if case.rows < 100 else data(case, semi_supervised)
    expected = fit(case, X, y, kernel, **options).decision_function(X)
    for way in ("rows", "kernel", "weights"):
        for a in (2.0**30, 2.0**-30):
            rows, weight, parameters = rescaled(way, a, X, kernel)
            found = fit(case, rows, y, kernel, weight, **parameters, **options)
            assert_allclose(found.decision_function(rows), expected, atol=1e-12)


@pytest.mark.parametrize("c", [2.0**40, 2.0**-40, 1e12, 1e-12])
def test_the_twins_know_no_unit_either(c, semi_supervised):
    X, y = semi_supervised(n=16, n_labeled=6)
    t = np.where(y < 0, 0.0, 2.0 * y - 1)
    K = Kernel("rbf", 0.5).gram(X) + 1e-8 * np.eye(16)

    def path(K, C):
        p = path_twin.empty(16)
        for k in range(16):
            path_twin.insert(K, p, k, t[k], C)
        path_twin.remove(K, p, 0)
        return p.f

    def steps(K, C):
        p = path_steps.empty(16)
        for k in range(16):
            path_steps.add(K, p, k, t[k], C)
        path_steps.remove(K, p, 0)
        return K @ p.beta + p.b

    def search(K, C):
        return bb_twin.branch_and_bound(K, t, C, C, 0.5)[1]

    for twin in (path, steps, search):
        assert_allclose(twin(c * K, 1 / c), twin(K, 1.0), atol=1e-6)


@pytest.mark.parametrize("c", [2.0**-60, 2.0**40])
def test_a_feasible_point_is_found_in_any_unit(c):
    rng = np.random.default_rng(0)
    t = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    upper = rng.uniform(0.5, 2, 30)
    beta = rng.standard_normal(30)
    expected = feasible(beta, svc_costs(t, upper))
    assert np.count_nonzero(expected * t < upper) > 2
    assert_allclose(feasible(c * beta, svc_costs(t, c * upper)) / c, expected, atol=1e-12)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e6 / 3, 1e-6 / 3])
def test_the_variance_of_constant_features_is_no_rounding_error(value):
    X = np.full((70, 3), value)
    weight = np.random.default_rng(0).uniform(0.5, 2, 70)
    for rows in (X, sp.csr_matrix(X)):
        for s in (None, weight):
            assert resolve_gamma("scale", rows, s) == 1.0
    X[:35] *= 1 + 1e-6  # little, but no rounding
    expected = 1 / (3 * X.var())
    for rows in (X, sp.csr_matrix(X)):
        assert_allclose(resolve_gamma("scale", rows), expected, rtol=1e-6)


# --- Other last bits ------------------------------------------------------------------------------

# Two blobs with a gap between them. The convex problems have one solution; the others reach the
# minimum whose boundary lies in the gap, from starts on which few bits have no influence.
CONVEX = (SVM, LapSVM)


@cases()
def test_the_last_bits_of_the_data_decide_nothing(case, kernel, semi_supervised):
    tolerance = 1e-9 if case.cls in CONVEX else case.decimals
    for seed in range(2):
        X, y = data(case, semi_supervised, seed)
        model = fit(case, X, y, kernel)
        expected = model.decision_function(X)
        rng = np.random.default_rng(seed)
        for size in (1e-15, 1e-14, 1e-13, 1e-12):
            rows = X * (1 + size * rng.choice([-1.0, 1.0], X.shape))
            found = fit(case, rows, y, kernel)
            assert_allclose(found.decision_function(X), expected, atol=tolerance)
            assert_array_equal(found.transduction_, model.transduction_)


@cases(lambda case: not case.ordered)
def test_the_order_of_the_sums_decides_nothing(case, kernel, semi_supervised):
    tolerance = 1e-9 if case.cls in CONVEX else case.decimals
    X, y = data(case, semi_supervised)
    model = fit(case, X, y, kernel)
    expected = model.decision_function(X)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(y.size)
        found = fit(case, X[order], y[order], kernel)
        assert_allclose(found.decision_function(X), expected, atol=tolerance)
        assert_array_equal(found.transduction_, model.transduction_[order])


@cases(lambda case: not case.graph and case.dual)
def test_the_origin_decides_nothing(case, kernel, semi_supervised):
    """A free offset makes up for a shift of the rows, whose products are rounded to 1e-12 then."""
    X, y = data(case, semi_supervised)
    model = fit(case, X, y, kernel)
    if model.problem_.bias == "regularized":
        pytest.skip("a penalized offset does not make up for a shift")
    expected = model.decision_function(X)
    found = fit(case, X + 100, y, kernel).decision_function(X + 100)
    assert_allclose(found, expected, atol=case.decimals, err_msg=HINT)


# --- Where the origin is --------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("first", [0, 40, 80])
@pytest.mark.parametrize("c", [2.0**-30, 1.0, 2.0**30])
def test_whether_the_origin_is_far_is_a_matter_of_all_rows_in_any_unit(form, first, c):
    """Of deviations: rows that are alike may stand anywhere."""
    X = np.random.default_rng(0).normal(size=(120, 3))
    X[first : first + 40] = [1.0, 2.0, 3.0]
    for shift in (5.0, 500.0):
        rows = form(c * (X + shift))
        found, center = nearer(rows, Kernel("linear"))
        if shift == 5.0:
            assert found is rows and center is None
        else:
            assert_allclose(center, c * (X + shift).mean(axis=0))
            assert_allclose(found + center, c * (X + shift))


# Without a regularized offset, drawn features or a polynomial kernel a shift of X changes nothing.
WITHOUT_ORIGIN = [
    (SVM, {}),
    (CCCPS3VM, {}),
    (CCCPS3VM, {"balance": "em"}),
    (S3VMLight, {}),
    (QNS3VM, {}),
    (NewtonS3VM, {}),
    (NNBBS3VM, {}),
    (BranchBoundS3VM, {}),
    (FRS3VM, {"random_state": 0}),
]


@pytest.mark.parametrize(
    ("Estimator", "options"), WITHOUT_ORIGIN, ids=lambda v: getattr(v, "__name__", str(v))
)
def test_a_shift_of_the_rows_leaves_the_machine_alone(Estimator, options):
    """Nor does it change the estimated share of the classes."""
    rng = np.random.default_rng(1)
    n = 12 if Estimator is BranchBoundS3VM else 60
    truth = np.arange(n) % 2
    X = rng.normal(size=(n, 3)) + 2.5 * truth[:, None] * [1, 0, 0]
    y = np.where(np.arange(n) < 0.6 * n, truth, -1)
    kernels = ["linear"] if Estimator is FRS3VM else ["linear", "rbf", "laplacian"]
    shifts = 2.0 ** np.array([[7, 7, 7], [13, 13, 13], [17, 17, 17], [17, 0, 0]])
    X = np.round(X * 2**20) / 2**20  # so that the sums are exact
    for kernel in kernels:
        model = Estimator(kernel=kernel, gamma="variance", **options)
        expected = model.fit(X, y).objective_
        for shift in shifts:
            for form in (np.asarray, sp.csr_matrix) if kernel == "linear" else (np.asarray,):
                found = model.fit(form(X + shift), y)
                assert_allclose(found.objective_, expected, rtol=1e-3)
                assert found.termination_condition_ in ("converged", "inexact")
        constant = np.c_[X, np.full(n, 1e5)]
        assert_allclose(model.fit(constant, y).objective_, expected, rtol=1e-3)
