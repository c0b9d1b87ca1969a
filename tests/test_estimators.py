"""The contract of all estimators: scikit-learn's checks, labels, weights, bad input, tools around.

A new estimator joins by one line in ``ESTIMATORS``.
"""

import inspect
import pickle
import re
import warnings
from typing import NamedTuple

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks
from threadpoolctl import threadpool_limits

import s3vm_lib
from s3vm_lib import SVM, FitWarning, encode_labels, mark_unlabeled
from s3vm_lib.annealing import DAS3VM
from s3vm_lib.base.classifier import BaseS3VM
from s3vm_lib.branch_and_bound import BranchBoundS3VM
from s3vm_lib.budgeted import BGS3VM
from s3vm_lib.calibration import CalibratedS3VM
from s3vm_lib.cccp import CCCPS3VM
from s3vm_lib.graph_kernel_machine import GKM
from s3vm_lib.graphs import NeighborGraph
from s3vm_lib.kernels import Kernel
from s3vm_lib.label_switching import MultiSwitchTSVM, S3VMLight
from s3vm_lib.laplacian_svm import LapSVM
from s3vm_lib.model_selection import SemiSupervisedKFold, labeled_accuracy_scorer
from s3vm_lib.nn_branch_and_bound import NNBBS3VM
from s3vm_lib.objective import evaluate
from s3vm_lib.path_following import ILS3VM
from s3vm_lib.primal_newton import NewtonS3VM
from s3vm_lib.quasi_newton import QNS3VM
from s3vm_lib.stochastic import FRS3VM, TSGS3VM, Polish


class Case(NamedTuple):
    """An estimator class and the parameters with which it solves its problem to many digits."""

    cls: type
    exact: dict
    supervised: bool = False  # unlabeled rows have no influence
    decimals: float = 1e-6  # agreement of two exact solutions
    rows: int = 700  # of a problem that takes several rounds
    kernels: bool = True  # has a kernel; the others are linear
    counts: bool = False  # counts labels: unlabeled rows must all have one weight
    balances: bool = True  # has a balance constraint; others run without one
    graph: bool = False  # unlabeled rows enter through a graph: no C_star, no balance
    several: dict = {}  # parameters with which a fit takes several iterations
    ordered: bool = False  # draws rows at random: the result depends on their order
    dual: bool = True  # a kernel model is carried by training rows; otherwise by random features
    precomputed: bool = True  # takes a Gram matrix; random features need the rows themselves
    options: dict = {}  # of every model in these tests: a seed

    def __call__(self, **parameters):
        parameters = {**self.options, **parameters}
        if self.cls in (FRS3VM, TSGS3VM):  # of their only stage with a tolerance
            of_polish = {k: parameters.pop(k) for k in ("tol", "max_iter") if k in parameters}
            if of_polish:
                parameters["polish"] = Polish(**of_polish)
        if self.balances and not self.supervised:
            # An estimate of the class ratio would be most of each fit, and has tests of its own.
            parameters.setdefault("balance", "labels")
        else:
            parameters.pop("balance", None)
        if not self.kernels:
            for name in ("kernel", "gamma", "degree", "coef0", "sigma_f"):
                parameters.pop(name, None)
        return self.cls(**parameters)

    def permitted(self, weight, y):
        """The weights, those of unlabeled rows made equal for a method that counts labels."""
        return np.where(y < 0, (weight > 0).astype(weight.dtype), weight) if self.counts else weight


EXACT = Polish(rows=None, tol=1e-10, ftol=0.0)
ESTIMATORS = [
    Case(SVM, dict(tol=1e-10), supervised=True),
    Case(CCCPS3VM, dict(tol=1e-10)),
    Case(QNS3VM, dict(tol=1e-10, ftol=0.0), decimals=1e-5),
    Case(NewtonS3VM, dict(tol=1e-10, ftol=0.0), decimals=1e-5),
    Case(S3VMLight, dict(tol=1e-10), counts=True),
    Case(MultiSwitchTSVM, dict(tol=1e-10, path_tol=1e-10), kernels=False, counts=True),
    Case(DAS3VM, dict(tol=1e-10, path_tol=1e-10), kernels=False),
    Case(BranchBoundS3VM, dict(tol=1e-10), rows=35),
    Case(NNBBS3VM, dict(tol=1e-10), balances=False),
    Case(ILS3VM, dict(tol=1e-10, start_tol=1e-8), balances=False),
    Case(
        LapSVM,
        dict(tol=1e-10),
        graph=True,
        balances=False,
        several=dict(solver="pcg", stopping="gradient"),
    ),
    # With this tolerance a fit ends at its second look, after 1000 steps up to 500 rows.
    Case(
        GKM,
        dict(precision="double", tol=10.0, graph=NeighborGraph(weights="binary")),
        graph=True,
        balances=False,
        several=dict(tol=0.5),
        ordered=True,
        options=dict(random_state=0),
    ),
    Case(
        BGS3VM,
        dict(tol=10.0, graph=NeighborGraph(weights="binary")),
        graph=True,
        balances=False,
        several=dict(tol=3.0),
        ordered=True,
        options=dict(random_state=0),
    ),
    # Stochastic steps depend on the order of the rows; what L-BFGS goes on to find does not.
    # Features are in single precision.
    Case(
        FRS3VM,
        dict(polish=EXACT, n_steps=0),
        decimals=2e-5,
        dual=False,
        precomputed=False,
        options=dict(random_state=0, n_features=512),
    ),
    Case(
        TSGS3VM,
        dict(polish=EXACT, n_steps=200),
        decimals=2e-5,
        dual=False,
        precomputed=False,
        options=dict(random_state=0, n_features=512),
    ),
]


def those(condition):
    """Run a test for every estimator that meets the condition."""
    cases = [case for case in ESTIMATORS if condition(case)]
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.cls.__name__)


def with_kernels(*kernels, condition=lambda case: True):
    """Run a test for every estimator and kernel; a linear method takes part as kernel="linear"."""
    pairs = [
        pytest.param(case, kernel, id=f"{case.cls.__name__}-{kernel}")
        for case in ESTIMATORS
        for kernel in kernels
        if condition(case)
        and (case.kernels or kernel == "linear")
        and (case.precomputed or kernel != "precomputed")
    ]
    return pytest.mark.parametrize(("case", "kernel"), pairs)


every = those(lambda case: True)
semi = those(lambda case: not case.supervised and not case.graph)
precomputable = those(lambda case: case.kernels and case.precomputed)


def test_every_public_estimator_is_tested():
    public = {getattr(s3vm_lib, name) for name in s3vm_lib.__all__}
    classes = {c for c in public if isinstance(c, type) and issubclass(c, BaseS3VM)}
    missing = classes - {case.cls for case in ESTIMATORS}
    assert not missing, f"a line is missing in ESTIMATORS above: {missing}"


# --- scikit-learn's own checks --------------------------------------------------------------------

EXPECTED = {
    "check_classifiers_classes": "the check fits the labels {-1, 1}, of which -1 means unlabeled; "
    "scikit-learn exempts its own semi-supervised classifiers by name"
}


SHUFFLED = (
    "the check shuffles the copies, and rows are drawn by their position; copies side by side "
    "equal weights (test_a_weight_of_k_is_k_copies_and_zero_is_absence)"
)
SINGLE = (
    "agreement to 1e-7 is more than features in single precision can promise, whose rounding "
    "depends on the position of a row and on the BLAS; "
    "test_a_weight_of_k_is_k_copies_and_zero_is_absence has their own tolerance"
)


def expected(estimator):
    if any(case.ordered and isinstance(estimator, case.cls) for case in ESTIMATORS):
        name = "check_sample_weight_equivalence_on_{}_data"
        return {**EXPECTED, **{name.format(kind): SHUFFLED for kind in ("dense", "sparse")}}
    return EXPECTED


@pytest.mark.interface
@parametrize_with_checks(
    [case(**case.exact) for case in ESTIMATORS], expected_failed_checks=expected
)
def test_scikit_learn_checks(estimator, check):
    features = any(not case.dual and isinstance(estimator, case.cls) for case in ESTIMATORS)
    if features and check.func.__name__ == "check_sample_weight_equivalence_on_dense_data":
        pytest.skip(SINGLE)
    check(estimator)


@pytest.mark.interface
@every
def test_minus_one_is_a_class_where_every_row_is_labeled(case):
    """In the only check of scikit-learn that has such labels."""

    class FullyLabeled(case.cls):
        def fit(self, X, y, sample_weight=None):
            return super().fit(X, y, sample_weight, np.zeros(len(y), dtype=bool))

    check_classifiers_classes("FullyLabeled", FullyLabeled(**case.exact))


# --- Attributes -----------------------------------------------------------------------------------


@every
def test_attributes(case, semi_supervised):
    X, y = semi_supervised()
    model = case()
    assert model.fit(X, y) is model
    assert_array_equal(model.classes_, [0, 1])
    assert model.n_features_in_ == 2
    assert model.intercept_.shape == (1,)
    if case.kernels and case.dual:
        assert model.dual_coef_.shape == (1, len(model.support_))
        assert_array_equal(model.support_vectors_, X[model.support_])
    elif case.kernels:
        assert model.feature_coef_.shape[0] == 1
    else:
        assert model.coef_.shape == (1, 2)
    assert model.transduction_.shape == (80,)
    assert isinstance(model.objective_, float)
    assert isinstance(model.n_iter_, int)
    assert model.n_iter_ >= 1
    assert len(model.history_) >= 1
    assert model.termination_condition_ == "converged"


@those(lambda case: case.balances and not case.supervised)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_estimated_ratio_is_one_that_can_be_given(case, semi_supervised, n_classes):
    X, y = semi_supervised(n_labeled=20, n_classes=n_classes)
    estimated = case(balance="auto", **case.exact).fit(X, y)
    assert estimated.class_ratio_.shape == (n_classes,) and np.all(estimated.class_ratio_ > 0)
    assert estimated.class_ratio_.sum() == pytest.approx(1, abs=1e-12)
    given = case(balance=dict(enumerate(estimated.class_ratio_)), **case.exact).fit(X, y)
    outputs = given.decision_function(X), estimated.decision_function(X)
    assert_allclose(*outputs, atol=10 * case.decimals)


@with_kernels("linear", "rbf")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_objective_is_that_of_the_problem_it_names(case, semi_supervised, kernel, n_classes):
    X, y = semi_supervised(n_labeled=30, n_classes=n_classes)
    weight = case.permitted(np.random.default_rng(0).uniform(0.5, 2, 80), y)
    model = case(kernel=kernel, C=2.0, sigma_f=1.3, **case.exact).fit(X, y, sample_weight=weight)
    if n_classes == 2:
        found = evaluate(model, X, y, model.problem_, weight)
        assert_allclose(found.objective, model.objective_, rtol=1e-6)
        # Counted labels bind no outputs; those of the other methods meet their constraint.
        assert found.balance_residual < 1e-8 or case.counts
        return
    assert len(model.problem_) == 3
    for k, problem in enumerate(model.problem_):
        f = model.decision_function(X)[:, k]
        t = np.where(y < 0, 0.0, np.where(y == k, 1.0, -1.0))
        if kernel == "linear":
            norm2 = np.sum(model.coef_[k] ** 2) / problem.kernel.sigma_f**2
        elif not case.dual:
            norm2 = model.feature_coef_[k].size * np.sum(model.feature_coef_[k] ** 2)
        else:
            K = problem.kernel.gram(model.support_vectors_)
            norm2 = model.dual_coef_[k] @ K @ model.dual_coef_[k]
        value = problem.value(f, t, norm2, model.intercept_[k], weight)
        assert_allclose(value, model.objective_[k], rtol=1e-6)


@every
def test_a_linear_model_has_weights(case, semi_supervised):
    X, y = semi_supervised()
    model = case(kernel="linear", sigma_f=1.7).fit(X, y)
    assert model.coef_.shape == (1, 2)
    assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0])
    if not case.kernels:
        return
    assert not hasattr(case().fit(X, y), "coef_")
    assert not hasattr(model.set_params(kernel="rbf").fit(X, y), "coef_")


@every
def test_transduction_labels_every_row_and_keeps_given_labels(case, semi_supervised):
    X, y = semi_supervised()
    model = case().fit(X, y)
    labeled = y >= 0
    assert_array_equal(model.transduction_[labeled], y[labeled])
    assert_array_equal(model.transduction_[~labeled], model.predict(X[~labeled]))


@with_kernels("linear", "poly", "rbf", "laplacian")
def test_the_sign_of_the_decision_function_is_the_second_class(case, semi_supervised, kernel):
    X, y = semi_supervised()
    model = case(kernel=kernel).fit(X, y)
    assert_array_equal(model.predict(X) == model.classes_[1], model.decision_function(X) > 0)
    truth = (X[:, 0] < 0).astype(int)
    if kernel != "poly":
        assert np.mean(model.predict(X) == truth) > 0.9


@every
def test_fit_leaves_its_arguments_alone(case, semi_supervised):
    X, y = semi_supervised()
    weight, mask = case.permitted(np.linspace(0, 1, 80), y), y < 0
    arguments = (X, y, weight, mask)
    copies = [a.copy() for a in arguments]
    case().fit(*arguments)
    for a, b in zip(arguments, copies, strict=True):
        assert_array_equal(a, b)
        a.setflags(write=False)
    case().fit(*arguments)
    sparse = sp.csr_matrix(X)
    for part in (sparse.data, sparse.indices, sparse.indptr):
        part.setflags(write=False)
    model = case().fit(sparse, y, weight)
    model.predict(sparse)
    # The columns in falling order, each in two halves.
    halves, columns = np.repeat(X[:, ::-1] / 2, 2, axis=1).ravel(), np.tile([1, 1, 0, 0], 80)
    disordered = sp.csr_matrix((halves, columns, np.arange(0, 321, 4)), X.shape)
    for part in (disordered.data, disordered.indices, disordered.indptr):
        part.setflags(write=False)
    other = case().fit(disordered, y, weight)
    assert_array_equal(other.decision_function(disordered), model.decision_function(sparse))


# --- Labels ---------------------------------------------------------------------------------------


@pytest.mark.interface
@every
@pytest.mark.parametrize("labels", [[-1, 1], [-1.0, 1.0]])
def test_targets_minus_one_and_one_are_refused_with_the_way_out(case, semi_supervised, labels):
    X, y = semi_supervised(n_labeled=80)
    with pytest.raises(ValueError, match=r"two labeled classes, got 1 class.*-1 means unlabeled.*"
                       r"encode_labels\(y\).*unlabeled_mask"):  # fmt: skip
        case().fit(X, np.array(labels)[y])


@every
def test_both_ways_out_of_the_trap_lead_to_the_same_model(case, semi_supervised):
    X, y = semi_supervised(n_labeled=80)
    signs, hidden = 2 * y - 1, np.arange(80) % 4 != 0
    codes, classes = encode_labels(signs)
    first = case().fit(X, mark_unlabeled(codes, hidden))
    second = case().fit(X, signs, unlabeled_mask=hidden)
    assert_array_equal(second.classes_, [-1, 1])
    assert_array_equal(second.decision_function(X), first.decision_function(X))
    assert_array_equal(second.predict(X), classes[first.predict(X)])
    assert_array_equal(second.transduction_, classes[first.transduction_])


@every
def test_labels_under_the_mask_are_ignored(case, semi_supervised):
    X, y = semi_supervised()
    expected = case().fit(X, y).decision_function(X)
    for junk in (0, 1, 99):
        found = case().fit(X, np.where(y < 0, junk, y), unlabeled_mask=(y < 0).tolist())
        assert_array_equal(found.classes_, [0, 1])
        assert_array_equal(found.decision_function(X), expected)
    mask = pd.Series(y < 0, index=np.arange(80)[::-1])
    assert_array_equal(case().fit(X, y, unlabeled_mask=mask).decision_function(X), expected)


@pytest.mark.interface
@every
@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (np.array(["no", "yes", -1], dtype=object), ["no", "yes"]),
        (np.array([2, 5, -1]), [2, 5]),
        (np.array([2, 5, -1], dtype=np.int8), [2, 5]),
        (np.array([0.0, 1.0, -1.0]), [0.0, 1.0]),
        (np.array([0, 1, -1], dtype=object), [0, 1]),
        (np.array([-2, 3, -1]), [-2, 3]),
    ],
    ids=["strings", "integers", "int8", "floats", "objects", "negative"],
)
@pytest.mark.filterwarnings("ignore:y holds the classes .-2, 3.:UserWarning")
def test_labels_of_any_type(case, semi_supervised, values, classes):
    X, y = semi_supervised()
    expected = case().fit(X, y)
    model = case().fit(X, values[y])
    assert model.classes_.tolist() == classes
    assert model.classes_.dtype != object
    assert_array_equal(model.decision_function(X), expected.decision_function(X))
    assert_array_equal(model.predict(X), model.classes_[expected.predict(X)])
    assert set(model.transduction_.tolist()) <= set(classes)


@every
@pytest.mark.parametrize(
    ("values", "dtype"),
    [(["no", "yes"], "U3"), (["no", "yes"], object), ([True, False], bool), ([0, 1], np.uint8)],
)
def test_no_row_unlabeled(case, semi_supervised, values, dtype):
    X, y = semi_supervised(n_labeled=80)
    model = case().fit(X, np.array(values, dtype=dtype)[y])
    assert_array_equal(model.transduction_, np.array(values)[y])
    assert set(model.predict(X).tolist()) == set(values)
    assert model.score(X, np.array(values)[y]) > 0.9


@pytest.mark.interface
@every
@pytest.mark.parametrize(
    "y",
    [
        np.array(["a", "b", "-1"] * 3),
        ["a", "b", -1] * 3,
        np.array(["a", "b", "-1"] * 3, dtype=object),
        pd.Series(["a", "b", "-1"] * 3),
    ],
    ids=["string array", "list", "object array", "pandas"],
)
def test_minus_one_as_a_string_is_refused(case, y):
    X = np.random.default_rng(0).standard_normal((9, 2))
    with pytest.raises(ValueError, match=r"'-1'.*object.*unlabeled_mask"):
        case().fit(X, y)


@pytest.mark.interface
@every
def test_strings_and_numbers_as_classes_are_refused(case):
    X = np.random.default_rng(0).standard_normal((9, 2))
    with pytest.raises((ValueError, TypeError)):
        case().fit(X, np.array([1, "a", -1] * 3, dtype=object))


@every
def test_three_classes(case, semi_supervised):
    X, y = semi_supervised(n=90, n_labeled=18, n_classes=3)
    names = np.array(["x", "y", "z", -1], dtype=object)
    model = case().fit(X, names[y])
    assert model.decision_function(X).shape == (90, 3)
    assert_array_equal(
        model.predict(X), model.classes_[np.argmax(model.decision_function(X), axis=1)]
    )
    angle = np.arctan2(X[:, 1], X[:, 0])
    truth = np.array(["x", "y", "z"])[np.round(angle / (2 * np.pi / 3)).astype(int) % 3]
    assert np.mean(model.transduction_ == truth) > 0.9
    assert_array_equal(model.transduction_[y >= 0], names[y[y >= 0]].astype(str))
    assert model.objective_.shape == (3,)
    assert len(model.history_) == len(model.termination_condition_) == 3
    if case.kernels and case.dual:
        assert model.dual_coef_.shape == (3, len(model.support_))
    linear = case(kernel="linear").fit(X, y)
    assert linear.coef_.shape == (3, 2)


# --- Weights (in all that is reported: see test_reported) -----------------------------------------


@with_kernels("linear", "rbf")
def test_a_weight_of_k_is_k_copies_and_zero_is_absence(case, semi_supervised, kernel):
    X, y = semi_supervised(n=60, n_labeled=20, seed=1)
    weight = case.permitted(np.random.default_rng(0).integers(0, 4, 60), y)
    model = case(kernel=kernel, class_weight="balanced", **case.exact)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    copies = clone(model).fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    assert_allclose(weighted.decision_function(X), copies.decision_function(X), atol=case.decimals)
    assert_allclose(weighted.objective_, copies.objective_, rtol=case.decimals)
    assert weighted.transduction_.shape == (60,)


@every
def test_unit_weights_change_nothing(case, semi_supervised):
    X, y = semi_supervised()
    expected = case().fit(X, y).decision_function(X)
    for weight in (None, np.ones(80), 1.0, [1] * 80):
        found = case().fit(X, y, sample_weight=weight).decision_function(X)
        assert_array_equal(found, expected)


@every
def test_balanced_class_weight_counts_labeled_rows_only(case, semi_supervised):
    X, y = semi_supervised(n=60, n_labeled=21)
    y[np.flatnonzero(y == 1)[:5]] = 0
    count = np.bincount(y[y >= 0])
    explicit = dict(enumerate((count.sum() / (2 * count)).tolist()))
    balanced = case(class_weight="balanced").fit(X, y)
    given = case(class_weight=explicit).fit(X, y)
    assert_allclose(balanced.decision_function(X), given.decision_function(X), atol=1e-12)


# --- The same model by every road -----------------------------------------------------------------


@with_kernels("linear", "poly", "rbf", "laplacian")
def test_dense_sparse_and_precomputed_agree(case, semi_supervised, kernel):
    X, y = semi_supervised(n=70, n_labeled=16)
    X[np.abs(X) < 0.3] = 0
    options = dict(kernel=kernel, gamma=0.3, coef0=1.0, **case.exact)
    dense, sparse = case(**options).fit(X, y), case(**options).fit(sp.csr_matrix(X), y)
    K = Kernel(kernel, 0.3, 3, 1.0).gram(X)
    expected = dense.decision_function(X)
    others = [(sparse, sp.csr_matrix(X)), (sparse, sp.csc_array(X))]
    # The distance that a Gram matrix tells has the neighbors of the rows with these two alone.
    if case.precomputed and case.kernels and (not case.graph or kernel in ("linear", "rbf")):
        others.append((case(kernel="precomputed", **case.exact).fit(K, y), K))
    for other, rows in others:
        assert_allclose(other.decision_function(rows), expected, atol=10 * case.decimals)
        assert_allclose(other.objective_, dense.objective_, rtol=case.decimals)
        assert_array_equal(other.transduction_, dense.transduction_)


@with_kernels("linear", "rbf")
def test_row_order_and_label_swap(case, semi_supervised, kernel):
    X, y = semi_supervised(n=70, n_labeled=16)
    options = dict(kernel=kernel, gamma=0.3, **case.exact)
    model = case(**options).fit(X, y)
    expected = model.decision_function(X)
    swapped = case(**options).fit(X, np.where(y < 0, -1, 1 - y))
    assert_allclose(swapped.decision_function(X), -expected, atol=10 * case.decimals)
    if case.ordered:
        return
    order = np.random.default_rng(1).permutation(70)
    permuted = case(**options).fit(X[order], y[order])
    assert_allclose(permuted.decision_function(X), expected, atol=10 * case.decimals)
    assert_array_equal(permuted.transduction_, model.transduction_[order])


@every
def test_rotation_of_a_linear_model(case, semi_supervised):
    X, y = semi_supervised(n=70, n_labeled=16)
    Q = np.array([[0.6, -0.8], [0.8, 0.6]])
    options = dict(kernel="linear", **case.exact)
    expected = case(**options).fit(X, y).decision_function(X)
    rotated = case(**options).fit(X @ Q, y).decision_function(X @ Q)
    assert_allclose(rotated, expected, atol=10 * case.decimals)


@every
def test_two_fits_are_equal_bit_by_bit(case, semi_supervised):
    X, y = semi_supervised()
    first, second = case().fit(X, y), case().fit(X, y)
    assert_array_equal(first.decision_function(X), second.decision_function(X))
    assert first.objective_ == second.objective_
    refit = first.fit(X, y)
    assert_array_equal(refit.decision_function(X), second.decision_function(X))


@pytest.mark.interface
@every
def test_threads_of_blas_do_not_change_the_result(case):
    n = min(60, case.rows)
    X = np.random.default_rng(0).standard_normal((n, 3))
    y = np.where(np.arange(n) < 10, X[:, 0] > 0, -1)
    outputs = []
    for count in (1, 2):
        with threadpool_limits(count):
            outputs.append(case(balance="auto").fit(X, y).decision_function(X))
    assert_allclose(*outputs, atol=1e-8)


# --- Bad input ------------------------------------------------------------------------------------


def replaced(X, value):
    X = X.copy()
    X[3, 1] = value
    return X


BAD = {
    "nan": (lambda X, y: (replaced(X, np.nan), y), "NaN"),
    "infinity": (lambda X, y: (replaced(X, np.inf), y), "infinity"),
    "sparse nan": (lambda X, y: (sp.csr_matrix(replaced(X, np.nan)), y), "NaN"),
    "no rows": (lambda X, y: (X[:0], y[:0]), "0 sample"),
    "one row": (lambda X, y: (X[:1], y[:1]), "1 sample|1 class|minimum of 2"),
    "no features": (lambda X, y: (X[:, :0], y), r"0 feature"),
    "one-dimensional X": (lambda X, y: (X[:, 0], y), "2D array"),
    "three-dimensional X": (lambda X, y: (X[:, :, None], y), "dim"),
    "lengths differ": (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
    "matrix of labels": (lambda X, y: (X, np.c_[y, y]), "1d array"),
    "no labels": (lambda X, y: (X, None), "y"),
    "strings in X": (lambda X, y: (np.array([["a", "b"]] * len(y)), y), "convert|string"),
    "complex X": (lambda X, y: (X + 1j, y), "[Cc]omplex"),
    "one class": (lambda X, y: (X, np.where(y == 1, -1, y)), r"classes, got 1 class: \[0\]"),
    "all unlabeled": (lambda X, y: (X, np.full(len(y), -1)), "labeled classes, got 0 classes"),
    "continuous y": (lambda X, y: (X, np.linspace(0, 1, len(y))), "[Uu]nknown label|continuous"),
    "nan in y": (lambda X, y: (X, np.where(y == 1, np.nan, y)), "NaN"),
}  # fmt: skip


@pytest.mark.interface
@every
@pytest.mark.parametrize("name", BAD)
def test_bad_data(case, semi_supervised, name):
    change, message = BAD[name]
    X, y = change(*semi_supervised(n=40))
    model = case()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "classes_")
    assert not hasattr(model, "n_features_in_")


@pytest.mark.interface
@every
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (dict(class_weight={7: 2.0}), r"class_weight names \[7\].*\[0, 1\]"),
        (dict(class_weight={0: -2.0}), "class_weight must be positive"),
    ],
    ids=repr,
)
def test_bad_parameters_are_named(case, semi_supervised, parameters, message):
    X, y = semi_supervised(n=40)
    with pytest.raises(ValueError, match=message):
        case(**parameters).fit(X, y)


@pytest.mark.interface
@every
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(sample_weight=-np.ones(40)), "[Nn]egative"),
        (dict(sample_weight=np.ones(39)), "sample_weight"),
        (dict(sample_weight=np.ones((40, 2))), "[Ss]ample.weight"),
        (dict(sample_weight=np.full(40, np.nan)), "NaN"),
        (dict(sample_weight=np.zeros(40)), "sample_weight|[Ww]eight"),
        (dict(unlabeled_mask=np.zeros(39, bool)), r"unlabeled_mask must be .* shape \(40,\)"),
        (dict(unlabeled_mask=np.zeros(40, int)), "unlabeled_mask must be a boolean array"),
        (dict(unlabeled_mask=np.ones(40, bool)), "two labeled classes, got 0"),
    ],
)
def test_bad_weights_and_masks(case, semi_supervised, arguments, message):
    X, y = semi_supervised(n=40)
    with pytest.raises(ValueError, match=message):
        case().fit(X, y, **arguments)


@pytest.mark.interface
@every
def test_weights_that_remove_a_class_are_refused_by_its_name(case, semi_supervised):
    X, y = semi_supervised(n=40)
    names = np.array(["no", "yes", -1], dtype=object)[y]
    with pytest.raises(
        ValueError, match=r"sample_weight leaves no labeled row of the class \['yes'\]"
    ):
        case().fit(X, names, sample_weight=(y != 1).astype(float))


@pytest.mark.interface
@those(lambda case: case.counts)
def test_unequal_weights_of_counted_rows_are_refused_by_name(case, semi_supervised):
    X, y = semi_supervised(n=40)
    weight = np.where(y < 0, 2.0, 1.0)
    case().fit(X, y, sample_weight=weight)
    weight[np.flatnonzero(y < 0)[3]] = 1.0
    with pytest.raises(ValueError, match=r"sample_weight.*unlabeled.*equal"):
        case().fit(X, y, sample_weight=weight)


@pytest.mark.interface
@precomputable
def test_bad_gram_matrices(case, semi_supervised):
    X, y = semi_supervised(n=40)
    model = case(kernel="precomputed")
    with pytest.raises(ValueError, match=r"square|Gram matrix"):
        model.fit(X, y)
    with pytest.raises((ValueError, TypeError), match=r"dense|[Ss]parse"):
        model.fit(sp.csr_matrix(X @ X.T), y)
    model.fit(X @ X.T, y)
    with pytest.raises(ValueError, match="40 features"):
        model.predict(X @ X[:10].T)


@pytest.mark.interface
@every
def test_prediction_wants_the_features_of_the_fit(case, semi_supervised):
    X, y = semi_supervised(n=40)
    with pytest.raises(NotFittedError):
        case().predict(X)
    with pytest.raises(NotFittedError):
        case().decision_function(X)
    model = case().fit(X, y)
    with pytest.raises(ValueError, match=r"3 features.*2 features"):
        model.predict(np.c_[X, X[:, 0]])
    with pytest.raises(ValueError, match="NaN"):
        model.decision_function(replaced(X, np.nan))


@pytest.mark.interface
@every
def test_a_fit_that_fails_leaves_the_estimator_untouched(case, semi_supervised):
    X, y = semi_supervised(n=40)
    model = case().fit(X, y)
    before, outputs = dict(vars(model)), model.decision_function(X)
    for bad in ((replaced(np.c_[X, X], np.nan), y), (X, np.full(40, -1)), (X[:, :1], y[:-1])):
        with pytest.raises(ValueError):
            model.fit(*bad)
        assert vars(model) == before
    frame = pd.DataFrame(X, columns=["u", "v"])
    with pytest.raises(ValueError):
        model.fit(frame, np.full(40, -1))
    assert not hasattr(model, "feature_names_in_")

    def interrupt(state):
        raise KeyboardInterrupt

    model.set_params(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:30], y[:30])
    model.set_params(callback=None)
    assert vars(model) == before
    assert_array_equal(model.decision_function(X), outputs)


@with_kernels("linear", "poly", "rbf", "laplacian")
def test_constant_features_and_identical_rows(case, semi_supervised, kernel):
    X, y = semi_supervised(n=40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = case(kernel=kernel).fit(np.c_[X, np.full((40, 2), 3.0)], y)
        assert np.all(np.isfinite(model.decision_function(np.c_[X, np.full((40, 2), 3.0)])))
        warnings.simplefilter("ignore", FitWarning)  # nothing can tell the classes apart
        for constant in (0.0, 2.5):
            rows = np.full((40, 3), constant)
            model = case(kernel=kernel).fit(rows, y)
            assert np.ptp(model.decision_function(rows)) < 1e-6
            assert np.all(np.isfinite(model.decision_function(rows)))


@with_kernels("linear", "rbf")
def test_rows_both_labeled_and_unlabeled_and_contradictory_labels(case, semi_supervised, kernel):
    X, y = semi_supervised(n=40)
    labeled = y >= 0
    more, labels = np.r_[X, X, X[labeled]], np.r_[y, np.full(40, -1), 1 - y[labeled]]
    model = case(kernel=kernel).fit(more, labels)
    assert np.all(np.isfinite(model.decision_function(X)))
    assert_array_equal(model.transduction_[: len(labels)][labels >= 0], labels[labels >= 0])


@every
def test_the_smallest_data_set(case):
    model = case(gamma=1.0).fit([[0.0], [1.0]], [0, 1])
    assert_array_equal(model.predict([[-0.5], [1.5]]), [0, 1])
    # With balance="labels" the mean output over the one unlabeled row would have to be 0.
    options = {} if case.supervised or case.graph else {"balance": None}
    model = case(gamma=1.0, **options).fit([[0.0], [1.0], [0.9]], [0, 1, -1])
    assert_array_equal(model.transduction_, [0, 1, 1])


# --- Progress -------------------------------------------------------------------------------------


@pytest.mark.interface
@every
def test_one_warning_when_the_limit_on_iterations_is_met(case, two_gaussians):
    X, t = two_gaussians(n=80)
    y = np.where(np.arange(80) < 40, t + 2, -1)
    with pytest.warns(ConvergenceWarning, match=f"{case.cls.__name__}.*max_iter=1 ") as record:
        model = case(max_iter=1, **case.several).fit(X, y)
    assert len(record) == 1
    assert record[0].filename == __file__
    assert model.termination_condition_ == "max_iter"
    assert np.all(np.isfinite(model.decision_function(X)))


@every
def test_no_warning_and_no_output_otherwise(case, semi_supervised, capsys):
    X, y = semi_supervised()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        case().fit(X, y)
        case(kernel="linear").fit(sp.csr_matrix(X), y).predict(X)
    assert capsys.readouterr() == ("", "")


@pytest.mark.interface
@every
def test_verbose_prints_progress(case, semi_supervised, capsys):
    X, y = semi_supervised()
    case(verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    silent = [line for line in lines if "n_iter" not in line]
    assert silent == [], "each stage in the history of a solution has a field n_iter"


@pytest.mark.interface
@every
def test_a_callback_sees_every_round_and_can_stop(case, mixture):
    X, t = mixture(case.rows)
    y = np.where(np.arange(case.rows) < 6 * case.rows // 7, t + 2, -1)
    states = []
    full = case(C=100.0, callback=states.append, **case.several).fit(X, y)
    assert len(states) == len(full.history_) >= 2, "a solver calls it for each stage of its history"
    assert all("n_iter" in state for state in states)
    assert all(np.isscalar(value) for state in states for value in state.values())
    stopped = case(C=100.0, callback=lambda state: True, **case.several).fit(X, y)
    assert stopped.termination_condition_ == "stopped"
    assert stopped.n_iter_ < full.n_iter_
    again = case(C=100.0, **case.several).fit(X, y)
    assert_array_equal(again.decision_function(X), full.decision_function(X))


# --- Tools around ---------------------------------------------------------------------------------


@pytest.mark.interface
@every
def test_clone_and_parameters(case):
    model = case(C=3.0, kernel="poly", degree=2, class_weight={0: 1.0, 1: 2.0})
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy is not model
    with pytest.raises(TypeError):
        case.cls(1.0)  # parameters go by name
    assert case.cls.__name__ in repr(model)


@pytest.mark.interface
@with_kernels("linear", "rbf", "precomputed")
@pytest.mark.parametrize(("n_classes", "form"), [(2, sp.csr_matrix), (3, np.asarray)])
def test_pickle_and_skops(case, semi_supervised, kernel, n_classes, form):
    skops = pytest.importorskip("skops.io")
    X, y = semi_supervised(n_classes=n_classes)
    rows = X @ X.T if kernel == "precomputed" else form(X)
    model = case(kernel=kernel).fit(rows, y)
    data = skops.dumps(model)
    trusted = skops.get_untrusted_types(data=data)
    assert all(name.startswith(("s3vm_lib.", "scipy.sparse.")) for name in trusted)
    for copy in (pickle.loads(pickle.dumps(model)), skops.loads(data, trusted=trusted)):
        assert_array_equal(copy.decision_function(rows), model.decision_function(rows))
        assert_array_equal(copy.transduction_, model.transduction_)
        assert copy.get_params() == model.get_params()
        assert list(copy.history_) == list(model.history_)


@pytest.mark.interface
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_a_calibrated_model_is_saved_with_types_of_two_packages(method, semi_supervised):
    """As *Your own data* tells those who are to trust the file."""
    skops = pytest.importorskip("skops.io")
    X, y = semi_supervised()
    model = CalibratedS3VM(QNS3VM(), method=method).fit(X, y)
    data = skops.dumps(model)
    trusted = skops.get_untrusted_types(data=data)
    assert {name.split(".")[0] for name in trusted} == {"s3vm_lib", "sklearn"}
    copy = skops.loads(data, trusted=trusted)
    assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


@pytest.mark.interface
@every
def test_pipeline_and_grid_search(case, semi_supervised):
    X, y = semi_supervised(n=60, n_labeled=30)
    labeled = y >= 0
    pipeline = make_pipeline(StandardScaler(), case())
    step = case.cls.__name__.lower()
    assert pipeline.fit(X, y).score(X[labeled], y[labeled]) > 0.9
    search = GridSearchCV(pipeline, {f"{step}__C": [0.1, 10.0]}, cv=3)
    search.fit(X[labeled], y[labeled])
    assert search.best_score_ > 0.8
    assert_array_equal(search.predict(X), search.best_estimator_.predict(X))
    if case.kernels and case.precomputed:
        assert cross_val_score(case(kernel="precomputed"), X @ X.T, np.abs(y), cv=3).shape == (3,)


@pytest.mark.interface
@every
def test_grid_search_over_partly_labeled_data(case, semi_supervised):
    X, y = semi_supervised(n=90, n_labeled=24)
    search = GridSearchCV(
        case(), {"C": [0.1, 10.0]}, cv=SemiSupervisedKFold(3), scoring=labeled_accuracy_scorer
    )
    assert search.fit(X, y).best_score_ > 0.8
    assert search.best_estimator_.transduction_.shape == (90,)


@pytest.mark.interface
@every
def test_the_mask_and_weights_are_routed(case, semi_supervised):
    X, y = semi_supervised(n=60, n_labeled=60)
    signs, hidden = 2 * y - 1, np.arange(60) % 3 == 0
    weight = case.permitted(np.linspace(0.5, 2, 60), np.where(hidden, -1, y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = case().set_fit_request(unlabeled_mask=True, sample_weight=True)
        expected = clone(model).fit(X, signs, weight, hidden)
        pipeline = make_pipeline("passthrough", model)
        pipeline.fit(X, signs, unlabeled_mask=hidden, sample_weight=weight)
        assert_array_equal(pipeline.classes_, [-1, 1])
        assert_array_equal(pipeline.decision_function(X), expected.decision_function(X))
        search = GridSearchCV(
            case().set_fit_request(unlabeled_mask=True, sample_weight=False)
            .set_score_request(sample_weight=False),
            {"C": [0.5, 5.0]},
            cv=2,
            error_score="raise",
        )  # fmt: skip
        search.fit(X, signs, unlabeled_mask=hidden)
        best = clone(search.best_estimator_).fit(X, signs, unlabeled_mask=hidden)
        assert_array_equal(search.decision_function(X), best.decision_function(X))


@those(lambda case: hasattr(case.cls, "partial_fit"))
@pytest.mark.parametrize("changes", [{}, {"kernel": "linear"}], ids=["default", "linear"])
def test_a_model_in_a_memory_map_goes_on_learning(case, changes, semi_supervised, tmp_path):
    X, y = semi_supervised(n=120, n_labeled=24)
    # Two batches before, after which there is room for more, and two behind.
    model = case(**changes).fit(X[:70], y[:70]).partial_fit(X[70:80], y[70:80])
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    before = (tmp_path / "model").read_bytes()
    for rows in (slice(80, 90), slice(90, 120)):
        model.partial_fit(X[rows], y[rows])
        mapped.partial_fit(X[rows], y[rows])
        with pytest.raises(ValueError, match="NaN"):
            mapped.partial_fit(replaced(X[rows], np.nan), y[rows])
        assert_allclose(mapped.decision_function(X), model.decision_function(X), rtol=1e-9)
    assert (tmp_path / "model").read_bytes() == before


@pytest.mark.interface
@every
def test_pandas(case, semi_supervised):
    X, y = semi_supervised()
    frame = pd.DataFrame(X, columns=["left", "right"], index=np.arange(80)[::-1])
    labels = pd.Series(np.array(["no", "yes", -1], dtype=object)[y], index=frame.index)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = case().fit(frame, labels)
        found = model.decision_function(frame)
    assert model.feature_names_in_.tolist() == ["left", "right"]
    assert model.classes_.tolist() == ["no", "yes"]
    assert_array_equal(found, case().fit(X, y).decision_function(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["right", "left"]])
    weight = pd.Series(case.permitted(np.linspace(0.5, 2, 80), y), index=frame.index)
    by_series = case().fit(frame, labels, sample_weight=weight)
    by_array = case().fit(X, y, sample_weight=weight.to_numpy())
    assert_array_equal(by_series.decision_function(frame), by_array.decision_function(X))


@every
def test_other_number_types(case, semi_supervised):
    X, y = semi_supervised()
    X = np.round(4 * X)
    expected = case().fit(X, y).decision_function(X)
    for form in (np.float32, np.int64, np.int8, np.float16):
        found = case().fit(X.astype(form), y)
        assert_array_equal(found.decision_function(X.astype(form)), expected)
    for rows in (np.asfortranarray(X), X[:, ::-1][:, ::-1], X.tolist()):
        assert_array_equal(case().fit(rows, y).decision_function(rows), expected)


@pytest.mark.interface
@every
def test_tags(case):
    tags = get_tags(case())
    assert tags.estimator_type == "classifier"
    assert tags.input_tags.sparse
    assert not tags.input_tags.pairwise
    assert tags.classifier_tags.multi_class
    assert tags.target_tags.required
    if not (case.kernels and case.precomputed):
        return
    given = get_tags(case(kernel="precomputed"))
    assert given.input_tags.pairwise
    assert not given.input_tags.sparse


@pytest.mark.interface
@every
def test_the_docstring_names_every_parameter_and_attribute(case, semi_supervised):
    text = inspect.cleandoc(case.cls.__doc__)  # Python 3.13 has removed the indentation
    named = set(re.findall(r"^(\w+) : ", text, re.MULTILINE))
    X, y = semi_supervised()
    names = set(case().get_params())
    for options in ({}, {"kernel": "linear"}):
        names |= {name for name in vars(case(**options).fit(X, y)) if name.endswith("_")}
    missing = {name for name in names - named if not name.startswith("_")}
    assert missing == set(), "Parameters and Attributes of the docstring do not name them all"


# --- Unlabeled rows -------------------------------------------------------------------------------


@with_kernels("linear", "rbf", condition=lambda case: not case.supervised)
def test_unlabeled_rows_of_no_weight_or_no_cost_have_no_influence(case, semi_supervised, kernel):
    X, y = semi_supervised(n=60, n_labeled=20)
    options = dict(kernel=kernel, gamma=0.3, **case.exact)
    none = {"C_graph": 0.0} if case.graph else {"C_star": 0.0}
    if not case.graph:
        options["balance"] = None
    labeled = y >= 0
    expected = case(**options).fit(X[labeled], y[labeled]).decision_function(X)
    weightless = case(**options).fit(X, y, sample_weight=labeled.astype(float))
    assert_allclose(weightless.decision_function(X), expected, atol=case.decimals)
    if case.graph:  # which joins labeled rows, too
        expected = case(**none, **options).fit(X[labeled], y[labeled]).decision_function(X)
    free = case(**none, **options).fit(X, y)
    assert_allclose(free.decision_function(X), expected, atol=100 * case.decimals)


@semi
def test_unlabeled_rows_help_where_classes_are_clusters(case):
    rng = np.random.default_rng(0)
    truth = np.arange(200) % 2
    X = np.c_[0.4 * rng.standard_normal(200) + 3 * truth, 1.5 * rng.standard_normal(200)]
    # The labeled rows alone suggest a slanted boundary.
    X[:4] = [[0.5, -1.5], [2.5, 1.5], [0.4, -1.5], [2.6, 1.5]]
    X -= X.mean(axis=0)  # a regularized offset wants the origin between the classes
    y = np.where(np.arange(200) < 4, truth, -1)
    unlabeled = y < 0
    error = np.mean(case(kernel="linear").fit(X, y).transduction_[unlabeled] != truth[unlabeled])
    baseline = np.mean(SVM(kernel="linear").fit(X, y).transduction_[unlabeled] != truth[unlabeled])
    assert error < 0.02
    assert baseline > 0.1
