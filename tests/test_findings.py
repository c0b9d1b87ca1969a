"""The look at the result of a fit: what it finds, what it leaves alone, and that it warns once."""

import itertools
import pickle
import re
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import trouble
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from test_estimators import ESTIMATORS

from s3vm_lib import (
    BGS3VM,
    CCCPS3VM,
    DAS3VM,
    GKM,
    ILS3VM,
    NNBBS3VM,
    QNS3VM,
    S3VC,
    SVM,
    FitWarning,
    LapSVM,
    MultiSwitchTSVM,
    NewtonS3VM,
    S3VMLight,
    SafeS3VM,
    SelfTrainingKNN,
)
from s3vm_lib.base.findings import (
    constant_objective,
    kernel_finding,
    label_finding,
    share_finding,
    spared,
)
from s3vm_lib.base.machine import BinaryFit
from s3vm_lib.calibration import CalibratedS3VM
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem, evaluate


def rare(n=400, positive=20, labels=(20, 2)):
    """Two clouds, one of them rare, and a few labels of each."""
    rng = np.random.default_rng(0)
    truth = (np.arange(n) < positive).astype(int)
    X = rng.normal(size=(n, 2))
    X[truth == 1] += [4, 0]
    y = np.full(n, -1)
    for k, count in enumerate(labels):
        y[np.flatnonzero(truth == k)[:count]] = k
    return X, y, truth


def caught(function):
    """What a call returns, and the warnings that it issues."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        return function(), found


# --- Shares ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [[0, 1], ["ham", "spam"]])
@pytest.mark.parametrize(
    ("given", "asked", "found"),
    [
        (0, 0.09, "never predicts class {} on unlabeled rows; 9.0% were asked for"),
        (2, 0.09, "predicts class {} on 2.0% of the unlabeled rows; 9.0% were asked for"),
        (4, 0.09, None),  # odds of .041 and .099: less than a factor of three
        (24, 0.5, "predicts class {} on 24.0% of the unlabeled rows; 50.0% were asked for"),
        (26, 0.5, None),
        (0, 0.02, None),  # two rows are no evidence
        (50, None, None),
        (0, None, "never predicts class {} on unlabeled rows; 20.0% of the labels are of it"),
        (2, None, None),  # labels may have been drawn class by class
    ],
)
def test_shares_given_and_asked_for(classes, given, asked, found):
    codes = np.repeat([0, 1, -1], [8, 2, 100])
    answer = np.r_[np.zeros(8, int), np.ones(2, int), np.arange(100) < given]
    asked = None if asked is None else np.array([1 - asked, asked])
    said = share_finding(codes, np.ones(110), answer, np.array(classes), asked)
    assert said == (found and found.format(classes[1]))
    # Of the other class, by the same rule, and with weights in place of copies.
    turned = np.where(codes < 0, -1, 1 - codes)
    asked = None if asked is None else asked[::-1]
    said = share_finding(turned, np.ones(110), 1 - answer, np.array(classes), asked)
    assert said == (found and found.format(classes[0]))
    rows, copies = np.unique(np.c_[codes, answer], axis=0, return_counts=True)
    said = share_finding(*rows.T[:1], copies * 1.0, rows[:, 1], np.array(classes))
    if asked is None:  # fewer rows say less
        assert said in (None, found and found.format(classes[1]))


@pytest.mark.parametrize("heavy", [1, 5, 40])
@pytest.mark.parametrize("light", [1, 3])
def test_the_share_that_is_given_is_one_of_weight(heavy, light):
    """Of rows with few different weights, as their copies give it."""
    codes = np.repeat([0, 1, -1], [10, 10, 400])
    answer = np.r_[np.zeros(10, int), np.ones(10, int), np.arange(400) < 20]
    weight = np.where(answer == 1, heavy, light)
    asked = np.array([0.5, 0.5])
    said = share_finding(codes, weight.astype(float), answer, np.arange(2), asked)
    copies = (np.repeat(part, weight) for part in (codes, answer))
    codes, answer = copies
    expected = share_finding(codes, np.ones(codes.size), answer, np.arange(2), asked)
    assert said == expected and (said is None) == (heavy == 40)


def test_the_share_of_the_labels_is_one_of_weight():
    """Where none was asked for, that of the labels is told: of weighted ones as of their copies."""
    codes = np.repeat([0, 1, -1], [10, 10, 400])
    weight = np.repeat([1, 3, 1], [10, 10, 400])
    answer = np.zeros(420, int)
    said = share_finding(codes, weight.astype(float), answer, np.arange(2))
    copies = (np.repeat(part, weight) for part in (codes, answer))
    codes, answer = copies
    assert said == share_finding(codes, np.ones(codes.size), answer, np.arange(2))
    assert "75.0% of the labels" in said


def test_the_class_that_is_starved_is_named_of_three():
    codes = np.repeat([0, 1, 2, -1], [5, 5, 5, 90])
    answer = np.r_[codes[:15], np.repeat([0, 1], [50, 40])]
    said = share_finding(codes, np.ones(105), answer, np.array(["a", "b", "c"]))
    assert said == "never predicts class c on unlabeled rows; 33.3% of the labels are of it"
    assert share_finding(codes[:15], np.ones(15), answer[:15], np.arange(3)) is None


def test_a_supervised_machine_that_never_predicts_a_class_is_said_to():
    rng = np.random.default_rng(0)
    t = np.arange(60) % 2
    X = np.c_[rng.normal(size=60) + 3 * t, rng.normal(size=60)]
    y = np.where((np.arange(60) < 20) & ((t == 0) | (np.arange(60) < 4)), t, -1)
    model, warned = caught(lambda: SVM(C=0.01).fit(X, y))
    said = "never predicts class 1 on unlabeled rows; 16.7% of the labels are of it"
    assert model.findings_ == {"share": said} and len(warned) == 1
    assert SVM(C=0.01).fit(X[y >= 0], y[y >= 0]).findings_ == {}  # nothing to compare
    assert SVM(C=1.0).fit(X, y).findings_ == {}


# --- Labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "least", "n", "found"),
    [
        (1, 0, 10, False),  # one label is spared
        (2, 0, 10, True),
        (2, 1, 10, False),
        (3, 0, 200, False),  # 2 % are
        (5, 0, 200, True),
        (5, 1, 200, False),
    ],
)
def test_labels_contradicted(wrong, least, n, found):
    codes = np.r_[np.zeros(n, int), -np.ones(5, int)]
    answer = np.r_[np.arange(n) < wrong, np.ones(5, bool)].astype(int)
    said = label_finding(codes, answer, lambda: least)
    assert (said is not None) == found == (wrong - least > spared(n))
    assert (
        not found
        or said == f"contradicts {wrong} of its {n} labels, the supervised machine {least}"
    )


def test_the_supervised_machine_is_asked_only_where_it_matters():
    def asked():
        raise AssertionError

    assert label_finding(np.array([0, 1, 1]), np.array([0, 1, 0]), asked) is None


@pytest.mark.parametrize("class_weight", [None, {0: 1.0, 1: 2.0}])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_the_supervised_machine_is_an_svm_with_the_same_kernel_and_C(kernel, class_weight):
    """Told to put half of the rows on the side of the rare class, the machine errs on labels."""
    X, y, truth = rare(200, 100, (30, 30))
    rng = np.random.default_rng(1)
    X, y = X + 3 * rng.normal(size=X.shape), np.where(truth == 1, np.where(y < 0, -1, 1), y)
    rows = X @ X.T if kernel == "precomputed" else X
    options = dict(kernel=kernel, gamma=0.5, C=0.5, class_weight=class_weight)
    model = QNS3VM(**options, balance=0.98, balance_tol=0.005)
    model, said = caught(lambda: model.fit(rows, y))
    L = y >= 0
    given = X[L] @ X[L].T if kernel == "precomputed" else X[L]
    plain = SVC(**options).fit(given, y[L])
    wrong, least = (
        int(np.sum(one.predict(part) != y[L])) for one, part in ((model, rows[L]), (plain, given))
    )
    assert wrong > least + spared(60)
    assert f"contradicts {wrong} of its 60 labels, the supervised machine {least}" in str(
        said[0].message
    )


# --- The objective --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("balance", "bias"), [*itertools.product(["none", "mean"], ["free", "regularized"])]
)
def test_the_objective_of_a_constant_is_that_of_the_problem(balance, bias):
    rng = np.random.default_rng(0)
    t, s = np.array([1.0, -1, 1, 0, 0, 0]), rng.random(6)
    problem = Problem(
        LabeledLoss("hinge"), UnlabeledLoss("symmetric_hinge"), 2.0, 0.5, bias=bias,
        balance=balance, ratio=0.7,
    )  # fmt: skip
    level = 0.4 if balance == "mean" else 0.0
    by_hand = problem.value(np.full(6, level), t, 0.0, level, s)
    assert constant_objective(problem, t, s) == pytest.approx(by_hand)
    assert problem.balance_residual(np.full(6, level), t, s) < 1e-12


def test_without_a_constant_that_is_feasible_nothing_is_compared():
    share = Problem(balance="share", ratio=0.3)
    assert constant_objective(share, np.array([1.0, -1, 0]), np.ones(3)) == np.inf
    through = Problem(balance="mean", ratio=0.3, bias="none")
    assert constant_objective(through, np.array([1.0, -1, 0]), np.ones(3)) == np.inf


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_ends_above_a_constant_has_not_converged(semi_supervised, n_classes):
    """A solver that returns nonsense with a good conscience."""
    X, y = semi_supervised(n_classes=n_classes)

    class Broken(CCCPS3VM):
        def _fit_binary(self, data, shared, t, problem, index):
            fit = super()._fit_binary(data, shared, t, problem, index)
            return fit._replace(objective=1e9) if index == n_classes - 2 else fit

    with pytest.warns(FitWarning, match=r"Broken ends at the objective 1e\+09, .* constant output"):
        model = Broken().fit(X, y)
    assert set(model.findings_) == {"objective"}
    expected = "failed" if n_classes == 2 else ["converged", "failed", "converged"]
    assert model.termination_condition_ == expected


def test_the_constant_of_a_convex_problem_may_be_a_class():
    t, s = np.array([1.0, -1, -1, -1]), np.array([2.0, 1, 1, 1])
    assert constant_objective(Problem(C=3.0), t, s) == 12  # −1 everywhere: one loss of 2
    regularized = Problem(C=3.0, bias="regularized")
    assert constant_objective(regularized, t, s) == 12.5
    assert constant_objective(Problem(C=3.0, bias="none"), t, s) == 15
    no_loss = Problem(C=3.0, C_star=1.0, unlabeled_loss=UnlabeledLoss("symmetric_hinge"))
    assert constant_objective(no_loss, np.append(t, 0), np.append(s, 1.0)) == 16


# --- Sums that a solver carries along -------------------------------------------------------------

CARRYING = [
    *(CCCPS3VM(), SVM(), LapSVM(), S3VMLight(), QNS3VM(), NewtonS3VM(), NNBBS3VM(), ILS3VM()),
    *(CCCPS3VM(kernel="linear"), QNS3VM(kernel="linear"), DAS3VM(), MultiSwitchTSVM()),
]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", CARRYING, ids=str)
def test_outputs_and_J_are_those_of_the_coefficients(model, n_classes, semi_supervised):
    """A solver whose sums have drifted by 0.2, and with them J."""
    X, y = semi_supervised(n_classes=n_classes)

    class Drifting(type(model)):
        def _fit_binary(self, *arguments):
            fit = super()._fit_binary(*arguments)
            return fit._replace(outputs=fit.outputs + 0.2, objective=0.5 * fit.objective)

    right = caught(lambda: clone(model).fit(X, y))[0]
    drifting = Drifting(**model.get_params())
    with pytest.warns(ConvergenceWarning, match="rounding"):
        drifting.fit(X, y)
    assert_allclose(drifting.objective_, right.objective_, rtol=1e-3)
    assert np.unique(drifting.termination_condition_).tolist() == ["stalled"]
    assert np.array_equal(drifting.transduction_[y < 0], drifting.predict(X)[y < 0])


def test_a_mean_output_that_was_missed_is_met(semi_supervised):
    X, y = semi_supervised(n_classes=2)

    class Missing(CCCPS3VM):
        def _fit_binary(self, *arguments):
            fit = super()._fit_binary(*arguments)
            return fit._replace(outputs=fit.outputs + 0.02, intercept=fit.intercept + 0.02)

    model = caught(lambda: Missing(balance=0.4).fit(X, y))[0]
    assert model.decision_function(X)[y < 0].mean() == pytest.approx(-0.2, abs=1e-6)


def test_single_precision_that_does_not_suffice_is_left():
    """Kernel values up to 300 and C = 3e4: J of their sums is 42.8, that of the machine is 60.2."""
    one = trouble.trial(100, 157)
    model, said = caught(lambda: one.model().fit(one.X, one.codes))
    J = evaluate(model, one.X, one.codes, model.problem_).objective
    assert said == [] and model.termination_condition_ == "converged"
    assert_allclose(model.objective_, J, rtol=1e-3)
    assert model.objective_ < 45


# --- Ends without a step --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "norm", "gap", "said"),
    [
        ("no_step", 0.3, 0.0, True),
        ("no_step", 1e-5, 0.0, False),
        ("converged", 0.3, 0.0, False),
        ("inexact", 0.0, 0.5, True),
        ("inexact", 0.0, 1e-5, False),
    ],
)
def test_an_end_without_a_step_is_one_where_the_gradient_is_small(status, norm, gap, said):
    stage = SimpleNamespace(gradient_norm=norm)
    fit = BinaryFit(None, None, 0.0, np.zeros(1), 1.0, 1, status, [stage], {"gap_": gap})
    model = QNS3VM()
    found = caught(lambda: model._warn_of_limits([fit]))[1]
    assert [w.category for w in found] == [ConvergenceWarning] * said
    assert ("rounding" in model.findings_) == said


def test_a_share_between_equal_outputs_is_said_to_be_missed():
    """Far apart, all unlabeled rows have one output: none of them can be alone on one side."""
    X = np.arange(43.0)[:, None] * 1e4
    y = np.full(43, -1)
    y[:8], y[8] = 0, 1
    model, said = caught(lambda: QNS3VM(gamma=1.0, balance=0.03, balance_tol=0.01).fit(X, y))
    assert model.termination_condition_ == "failed" and "share" in model.findings_
    assert len(said) == 1 and "misses the share" in str(said[0].message)


# --- The kernel -----------------------------------------------------------------------------------


def test_kernels_without_differences_and_without_similarities():
    X = np.random.default_rng(0).normal(size=(40, 3))
    for gamma, word in ((1e-9, "at least 1.000"), (1.0, None), (1e6, "at most")):
        for name in ("rbf", "laplacian"):
            said = kernel_finding(Kernel(name, gamma), X, 10.0)
            assert (said is None) if word is None else word in said and f"gamma={gamma:.3g}" in said
    assert kernel_finding(Kernel("rbf", 1e-9), X, 1e12) is None  # a C that makes up for it
    assert kernel_finding(Kernel("linear"), X + 1e9, 1.0) is None
    K = Kernel("rbf", 1e-9).gram(X)
    assert "almost equal" in kernel_finding(Kernel("precomputed"), K, 10.0)
    assert kernel_finding(Kernel("precomputed"), Kernel("rbf", 1.0).gram(X), 10.0) is None
    assert "almost equal" in kernel_finding(Kernel("poly", 1e-9, 2, 1.0), X, 10.0)
    assert kernel_finding(Kernel("poly", 1.0, 2, 1.0), X, 10.0) is None
    assert "all kernel values are equal" in kernel_finding(Kernel("rbf"), np.ones((5, 2)), 1.0)


@pytest.mark.parametrize("first", [0, 40, 80])
def test_a_kernel_is_looked_at_in_all_rows(first):
    """Rows that differ may stand anywhere among rows that are almost equal."""
    X = 1e-6 * np.random.default_rng(0).normal(size=(120, 2))
    assert kernel_finding(Kernel("rbf"), X, 1.0) is not None
    X[first : first + 40] += [1.0, 0.0]
    assert kernel_finding(Kernel("rbf"), X, 1.0) is None


@pytest.mark.parametrize("exponent", [-30, -5, 5, 30])
def test_what_is_said_of_a_kernel_has_no_unit(exponent):
    """Kernel values times c are costs times c: the look at c k and C / c is that at k and C."""
    X, c = np.random.default_rng(0).normal(size=(40, 3)), 2.0**exponent
    said = set()
    for name in ("rbf", "laplacian", "poly"):
        for gamma in 10.0 ** np.arange(-9, 7):
            kernel = Kernel(name, gamma, 2, 1.0)
            for reach in (1.0, 1e4, 1e8):
                found = kernel_finding(kernel, X, reach)
                other = replace(kernel, sigma_f=2.0 ** (exponent / 2))
                assert (kernel_finding(other, X, reach / c) is None) == (found is None)
                given = kernel_finding(Kernel("precomputed"), c * kernel.gram(X), reach / c)
                assert given == kernel_finding(Kernel("precomputed"), kernel.gram(X), reach)
                said.add((found or "").partition(":")[0])
    assert len(said) >= 3  # nothing, almost no difference, no similarity


KERNEL_MACHINES = [case for case in ESTIMATORS if case.kernels]


@pytest.mark.parametrize("case", KERNEL_MACHINES, ids=lambda case: case.cls.__name__)
def test_whether_a_kernel_is_constant_depends_on_the_cost_of_all_rows(case):
    """Differences count beside 1 / (C Σs): four times C, or the weights, or the values, are one."""
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    y[14:] = -1
    weight = case.permitted(np.full(30, 0.5), y)
    gamma = 1e-6

    def found(C=1.0, factor=1.0, **options):
        """Whether the kernel is found constant at C times what is on the edge of it."""
        model = case(kernel="rbf", gamma=gamma, C=C * edge, max_iter=20, **options)
        return "kernel" in model.fit(X, y, factor * weight).findings_

    K = Kernel("rbf", gamma).gram(X)
    edge = 1 / ((1 - K.min()) * weight.sum())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found(0.5)
        assert not found(2.0)
        assert not found(0.5, 4.0)
        assert not found(0.5, sigma_f=2.0)
        assert not found(0.5, class_weight={0: 20.0, 1: 20.0})


@pytest.mark.parametrize("cls", [QNS3VM, NewtonS3VM, LapSVM], ids=lambda cls: cls.__name__)
def test_a_constant_column_that_makes_the_kernel_constant_is_seen(cls):
    """gamma="scale" takes the variance of all entries, which an offset of a column swells."""
    rng = np.random.default_rng(0)
    truth = np.arange(16) % 2
    X = np.c_[rng.normal(size=16) + 3 * truth, rng.normal(size=16), np.full(16, 1e4)]
    y = np.where(np.arange(16) < 12, truth, -1)
    model, said = caught(lambda: cls().fit(X, y))
    assert len(said) == 1 and said[0].category is FitWarning and said[0].filename == __file__
    assert {"labels", "kernel"} <= set(model.findings_)
    assert "all kernel values are at least 0.99999" in str(said[0].message)
    model, said = caught(lambda: cls(gamma=0.5).fit(X, y))
    assert said == [] and model.findings_ == {} and model.score(X, truth) > 0.9


# --- All estimators -------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [QNS3VM, NewtonS3VM, CCCPS3VM], ids=lambda cls: cls.__name__)
def test_a_rare_class_that_a_linear_machine_starves_is_named(cls):
    X, y, _ = rare()
    model, said = caught(lambda: cls(kernel="linear").fit(X, y))
    assert len(said) == 1 and said[0].category is FitWarning
    text = str(said[0].message)
    assert re.match(f"{cls.__name__} never predicts class 1 on unlabeled rows; .* asked for", text)
    assert ("balance_tol=0.01 holds the share itself" in text) == (cls is QNS3VM)
    assert pickle.loads(pickle.dumps(model)).findings_ == model.findings_ != {}


@pytest.mark.parametrize(
    "model",
    [
        QNS3VM(kernel="linear", balance_tol=0.01, balance=0.05),
        S3VMLight(kernel="linear"),
        MultiSwitchTSVM(),
        DAS3VM(),
        SVM(kernel="linear"),
        SelfTrainingKNN(),
        S3VC(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_finds_the_rare_class_is_left_alone(model):
    X, y, truth = rare()
    model, said = caught(lambda: model.fit(X, y))
    assert said == [] and model.findings_ == {}
    assert model.predict(X)[truth == 1].mean() > 0.5


def test_a_limit_and_a_finding_are_one_warning():
    X, y, _ = rare()
    model, said = caught(lambda: QNS3VM(kernel="linear", max_iter=1).fit(X, y))
    assert [w.category for w in said] == [ConvergenceWarning]
    assert next(iter(model.findings_)) == "limit" and "share" in model.findings_
    assert "stopped after max_iter=1 iterations" in str(said[0].message)
    assert ". It never predicts class 1" in str(said[0].message)


def test_a_later_fit_forgets_what_an_earlier_one_found():
    X, y, _ = rare()
    model, _ = caught(lambda: QNS3VM(kernel="linear").fit(X, y))
    assert model.findings_ != {}
    assert model.set_params(balance_tol=0.01, balance=0.05).fit(X, y).findings_ == {}


def test_a_calibrated_machine_warns_once_of_the_one_that_predicts():
    X, y, _ = rare()
    model, said = caught(lambda: CalibratedS3VM(QNS3VM(kernel="linear"), cv=2).fit(X, y))
    assert len(said) == 1 and "CalibratedS3VM never predicts class 1" in str(said[0].message)
    assert model.findings_ == model.estimator_.findings_
    inside = make_pipeline(
        StandardScaler(), QNS3VM(kernel="linear", balance_tol=0.01, balance=0.05)
    )
    model, said = caught(lambda: CalibratedS3VM(inside, cv=2).fit(X, y))
    assert said == [] and model.findings_ == {}
    assert np.array_equal(model.transduction_[y < 0], model.estimator_.predict(X[y < 0]))


@pytest.mark.parametrize("guard", [True, False])
def test_the_one_door_names_classes_and_shares(guard):
    X, y, _ = rare()
    named = np.array(["ham", "spam", -1], dtype=object)[y]
    model = S3VC(kernel="linear", solver=QNS3VM(kernel="linear"), guard=guard, random_state=0)
    model, said = caught(lambda: model.fit(X, named))
    never = not np.any(model.transduction_[y < 0] == "spam")
    assert never == (not guard) and len(said) == 1
    told = "never predicts class spam on" if never else "predicts class spam on 1.3% of the"
    assert f"S3VC {told} unlabeled rows" in str(said[0].message)
    assert f"Warning: it {told}" in model.summary()


# --- Time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        QNS3VM(),
        SVM(),
        S3VC(guard=False, kernel="linear", C=1.0),
        S3VC(kernel="linear", C=1.0),
        SafeS3VM(),
        SelfTrainingKNN(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("largest", [40, 90])
def test_a_fit_that_may_take_minutes_says_so_at_once(model, largest, monkeypatch, semi_supervised):
    """Once, before it begins, at the line that called it."""
    X, y = semi_supervised(n=60)
    monkeypatch.setattr(type(model), "_largest_n", largest)
    model, said = caught(lambda: clone(model).fit(X, y))
    slow = largest == 40 and not isinstance(model, SVM)  # which reads the labeled rows alone
    assert [w.category for w in said] == [FitWarning] * slow
    if slow:
        assert said[0].filename == __file__
        text = (
            f"{type(model).__name__} was made for up to 40 rows, .* with 60 rows the fit may take"
        )
        assert re.match(text, str(said[0].message))


def test_the_one_door_shows_how_far_it_is(semi_supervised, capsys):
    X, y = semi_supervised(n=60)
    model = S3VC(verbose=1, random_state=0).fit(X, y)
    said = capsys.readouterr().out.splitlines()
    shown = [line.removeprefix("S3VC: ") for line in said if line.startswith("S3VC: ")]
    names = [re.sub(r"^QNS3VM\(C=\d+, ", "QNS3VM(", member.name) for member in model.members_]
    assert shown == list(dict.fromkeys(names))  # of two C one line
    assert said[-1] == model.summary().splitlines()[-1]


@pytest.mark.parametrize("cls", [GKM, BGS3VM], ids=lambda cls: cls.__name__)
def test_of_a_graph_machine_a_few_rows_are_looked_at(cls, monkeypatch):
    """More of them where these are doubtful, so that a class of one row in ten is not missed."""
    rng = np.random.default_rng(0)
    truth = np.arange(900) % 10 == 0
    X = np.c_[4.0 * truth + rng.normal(size=900), np.full(900, 1e4)]
    y = np.where(np.arange(900) < 100, truth, -1).astype(int)
    model, said = caught(lambda: cls(gamma=0.5, random_state=0).fit(X, y))
    assert said == [] and model.findings_ == {}
    asked = []
    outputs = cls._outputs
    monkeypatch.setattr(cls, "_outputs", lambda self, X: asked.append(len(X)) or outputs(self, X))
    model, said = caught(lambda: cls(random_state=0).fit(X, y))
    assert len(said) == 1 and {"share", "kernel"} <= set(model.findings_)
    assert "never predicts class 1" in model.findings_["share"] and len(asked) == 2
    assert asked[0] <= 64 < asked[1] <= 500


def test_probabilities_add_no_second_warning():
    X, y, _ = rare()
    named = np.array(["ham", "spam", -1], dtype=object)[y]
    solver = QNS3VM(kernel="linear")
    model = S3VC(solver=solver, guard=False, probability=True, random_state=0)
    _, said = caught(lambda: model.fit(X, named))
    assert [w.category for w in said] == [FitWarning]
    assert "S3VC never predicts class spam" in str(said[0].message)
