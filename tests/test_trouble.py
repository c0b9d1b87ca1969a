"""Trouble of real data ends in the right machine or in words; and the oracle that says so can fail.

What is tried, and what is asked of it, is in ``tests/trouble.py``.
"""

import collections
import warnings
from dataclasses import replace

import numpy as np
import pytest
import trouble
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from trouble import Trial, complaints

from s3vm_lib import (
    CCCPS3VM,
    ILS3VM,
    NNBBS3VM,
    QNS3VM,
    S3VC,
    SVM,
    BranchBoundS3VM,
    LapSVM,
    MultiSwitchTSVM,
)
from s3vm_lib.kernels import Kernel
from s3vm_lib.objective import evaluate

BLOCK = 50
# Trials (seed, number) that once had a complaint, by what was wrong.
MENDED = {
    "J of sums that had drifted": "0:182 0:560 0:284 0:698 0:589 0:91 1:157 100:56 100:157 100:171 "
    "100:420 100:499 100:542 100:560 100:582 100:697 100:841 103:691",
    "sides of rows": "1:434 3:560 36:434",
    "a mean output that was missed": "100:74",
    "a share that was missed": "0:623",
    "converged above a constant": "0:311 0:587 100:179 100:305 100:467 100:563 100:711 101:94",
    "a stream above a constant": "100:297 100:729",
    "above the supervised machine": "101:636",
    "labels contradicted in silence": "0:84 0:444 100:534",
    "a rare class in a few rows": "1:216",
    "overflow": "100:238 100:377 101:323 103:152",
    "sparse rows far from 0": "101:304",
    "steps of batches that diverged": "103:593",
    "shares of rows of a file far from 0": "101:134 101:748",
    "a graph term of the offset alone": "201:169",
    "tolerances that a large C met at once": "103:460",
    "a short fit above a constant": "200:275 204:383",
    "steps that overflow": "203:581",
    "units of rows that are far from 0": "300:605 300:641 300:911",
    "C* of another call": "200:27 201:801 202:675 202:711 204:333",
    "a minimum of a stream": "200:708 201:258 201:852 202:189 204:816",
    "a supervised machine without digits": "200:405 200:855 201:909",
    "half a row too much or too little": "103:602 200:355 200:872 201:836 204:643",
    "labels without a cost": "100:811 201:37 204:757",
    "steps that one large number had shortened": "103:883",
    "rounding that was taken for progress": "0:625",
    "a supervised machine that had not converged": "402:226",
    "coefficients beyond single precision": "403:383",
    "rounding that was said": "300:679 400:2",
    "outputs of the supervised machine at 0": "401:22",
    "a start to start_tol": "403:186",
}


@pytest.mark.slow
@pytest.mark.parametrize("block", range(200 // BLOCK))
def test_two_hundred_trials(block):
    found = trouble.verdicts(1, BLOCK * block, BLOCK * (block + 1))
    text = trouble.described(1, found)
    assert not text, text


@pytest.mark.slow
@pytest.mark.parametrize("kind", MENDED)
def test_what_was_mended_stays_so(kind):
    for name in MENDED[kind].split():
        seed, number = map(int, name.split(":"))
        found = trouble.verdict(seed, number)
        assert all(key.startswith(trouble.COUNTED) for key, _ in found), (name, found)


# --- The generator --------------------------------------------------------------------------------


def test_trials_are_the_same_for_the_same_seed_and_number():
    one, two, other = trouble.trial(3, 7), trouble.trial(3, 7), trouble.trial(4, 7)
    assert str(one) == str(two) != str(other)
    assert np.array_equal(one.X, two.X) and np.array_equal(one.codes, two.codes)


def test_all_estimators_and_all_kinds_of_trouble_are_tried():
    trials = [trouble.trial(0, number) for number in range(500)]
    assert {one.name for one in trials} == set(trouble.estimators())
    assert {one.extra for one in trials} == set(trouble.EXTRAS)
    words = collections.Counter(word.split(" ")[0] for one in trials for word in one.words)
    expected = "years constant offset scales amounts far size sentinel duplicates weights labels:"
    assert all(words[word] >= 5 for word in expected.split())
    shares = [np.bincount(one.codes[one.codes >= 0]) for one in trials]
    assert all(counts.min() > 0 and counts.size >= 2 for counts in shares)
    assert sum(counts.max() == 1 for counts in shares) >= 50  # one label a class
    assert any(len(one.X) > 100 for one in trials)


# --- What is computed anew ------------------------------------------------------------------------


def rows(n=40, n_labeled=12, distance=3.0, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    X = rng.standard_normal((n, 2))
    X[:, 0] += distance * truth
    return X, np.where(np.arange(n) < n_labeled, truth, -1)


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "laplacian"])
def test_kernel_values_are_those_of_the_definition(name):
    X, _ = rows()
    kernel = Kernel(name, 0.3, 2, 1.0, 1.5)
    assert_allclose(trouble.gram(kernel, X, X[:3]), kernel.gram(X, X[:3]), rtol=1e-10)
    if name in ("rbf", "laplacian"):  # and no offset spoils them: 2²⁰ moves no digit of these rows
        Z = np.round(X * 2**20) / 2**20
        assert np.array_equal(
            trouble.gram(kernel, Z + 2**20, Z + 2**20), trouble.gram(kernel, Z, Z)
        )


def test_objectives_are_those_of_the_problem():
    X, y = rows()
    for model in (CCCPS3VM(gamma=0.5), QNS3VM(kernel="linear"), LapSVM(gamma=0.5)):
        model.fit(X, y)
        (task,) = trouble.tasks(model, X, y)
        assert_allclose(task.J, evaluate(model, X, y, model.problem_).objective, rtol=1e-6)
        assert task.slack < 1e-3 * task.J


def test_the_constant_is_the_best_that_is_feasible():
    X, y = rows()
    y[y == 1] = np.where(np.arange((y == 1).sum()) < 2, 1, -1)  # six labels beside two
    (task,) = trouble.tasks(SVM().fit(X, y), X, y)
    assert trouble.of_constants(task) == pytest.approx(4.0)  # −1 everywhere: two losses of 2
    (task,) = trouble.tasks(CCCPS3VM(balance=0.5, C_star=0.1).fit(X, y), X, y)
    u = task.problem.unlabeled_loss.value(np.zeros(1))[0]
    assert trouble.of_constants(task) == pytest.approx(8 + 0.1 * (y < 0).sum() * u)


# --- Faults on purpose ----------------------------------------------------------------------------


def judged(
    cls, extra="order", monkeypatch=None, parameters=None, data=None, weight=None, name=None
):
    """The keys of the complaints about an estimator, on ordinary rows."""
    name = name or cls.__name__
    known = {**trouble.estimators(), name: cls}
    monkeypatch.setattr(trouble, "estimators", lambda: known)
    X, y = rows() if data is None else data
    one = Trial(name, parameters or {}, X, y, weight, extra, [0], [])
    return {key.split(":")[0] for key, _ in complaints(one)}


def spoiled(base, change, before=None):
    """An estimator that does something to itself after a fit, or to its parameters before it."""

    class Spoiled(base):
        def fit(self, X, y, *arguments, **named):
            if before is not None:
                before(self, np.asarray(X.toarray() if hasattr(X, "toarray") else X), X, y)
            super().fit(X, y, *arguments, **named)
            change(self)
            return self

    return Spoiled


def nothing(model):
    pass


def constant(model):
    model.dual_coef_ = 0 * model.dual_coef_
    model.objective_ = 1e3


def one_sided(model):
    model.intercept_ = model.intercept_ - 100


def turned(model):
    model.dual_coef_, model.intercept_ = -model.dual_coef_, -model.intercept_


def of_the_origin(model, X, *_):
    model.C = 0.02 / (1.0 + abs(X.mean()))


def of_the_first_row(model, X, *_):
    model.C = 0.02 * (1.0 + abs(X[0, 0]))


def of_sparse_rows(model, _, X, y):
    model.C = 0.02 + 0.02 * hasattr(X, "toarray")


def of_strings(model, _, X, y):
    model.C = 0.02 + 0.02 * (np.asarray(y).dtype == object)


def of_the_number_of_rows(model, X, *_):
    model.C = 0.5 / len(X)


GAMMA = dict(gamma=0.5)


@pytest.mark.parametrize(
    ("cls", "extra", "parameters", "key"),
    [
        (spoiled(CCCPS3VM, constant), "order", GAMMA, "above constant"),
        (spoiled(CCCPS3VM, constant), "order", GAMMA, "objective is not J"),
        (
            spoiled(CCCPS3VM, lambda m: setattr(m, "objective_", -1.0)), "order", GAMMA,
            "negative objective",
        ),
        (spoiled(CCCPS3VM, one_sided), "order", GAMMA, "never predicted"),
        (spoiled(CCCPS3VM, one_sided), "order", GAMMA, "balance"),
        (spoiled(CCCPS3VM, turned), "order", GAMMA, "own labels"),
        (spoiled(CCCPS3VM, turned), "order", GAMMA, "transduction"),
        (spoiled(SVM, nothing, of_the_origin), "shift", GAMMA, "shift"),
        (spoiled(SVM, nothing, of_the_first_row), "order", GAMMA, "order"),
        (spoiled(SVM, nothing, of_strings), "names", GAMMA, "names"),
        (spoiled(SVM, nothing, of_sparse_rows), "container", GAMMA, "container"),
        (spoiled(SVM, nothing, of_the_number_of_rows), "copies", GAMMA, "copies"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_fault_is_found(cls, extra, parameters, key, monkeypatch):
    weight = None
    if extra == "copies":
        weight = np.arange(40) % 3 + 1.0
    if extra == "container":
        monkeypatch.setattr(trouble, "CONTAINERS", {"CSR": trouble.CONTAINERS["CSR"]})
    if extra == "names":
        # Of the three kinds of names two are strings.
        monkeypatch.setattr(trouble.np.random, "default_rng", _second_kind(trouble))
    found = judged(cls, extra, monkeypatch, parameters, weight=weight)
    assert key in found
    clean = cls.__mro__[1]
    assert judged(clean, extra, monkeypatch, parameters, weight=weight, name="Clean") == set()


def test_votes_against_their_labels_are_found(monkeypatch):
    """Of the one door, with the guard or without."""

    def against(model):
        model._votes = lambda X, weight=None: -S3VC._votes(model, X, weight)

    for guard in (True, False):
        options = dict(guard=guard, kernel="auto", random_state=0)
        bad = judged(spoiled(S3VC, against), "shift", monkeypatch, options, name="S3VC")
        assert {"own labels", "transduction"} <= bad
        assert judged(S3VC, "shift", monkeypatch, options) == set()


def _second_kind(trouble):
    """A source of numbers that always takes the second of several kinds."""
    original = np.random.default_rng

    class Source:
        def __init__(self, seed):
            self._rng = original(seed)

        def __getattr__(self, name):
            return getattr(self._rng, name)

        def integers(self, *arguments, **named):
            return 1 if arguments == (3,) else self._rng.integers(*arguments, **named)

    return lambda seed=None: Source(seed)


def test_copies_with_a_share_may_gain_but_not_lose(monkeypatch):
    def more_with_rows(model, X, *_):
        model.C = 1e-4 * len(X) ** 3

    options = dict(kernel="linear", balance=0.5, balance_mode="share", balance_tol=0.2)
    X, y = rows(12, 6, 0.5)
    weight = np.arange(12) % 2 + 1.0
    for change, expected in ((None, set()), (more_with_rows, {"copies"})):
        cls = spoiled(BranchBoundS3VM, nothing, change)
        name = "BranchBoundS3VM"
        assert judged(cls, "copies", monkeypatch, options, (X, y), weight, name) == expected


def test_half_a_row_is_no_reason_to_turn_classes_but_no_excuse(monkeypatch):
    """Of 11 unlabeled rows round(5.5) are positive, whichever class that is."""
    half = trouble.trial(200, 872)

    class Faulty(MultiSwitchTSVM):
        def fit(self, X, y, *arguments, **named):
            self.C = 1.0 + (np.asarray(y).dtype == object)
            return super().fit(X, y, *arguments, **named)

    for cls in (MultiSwitchTSVM, Faulty):
        known = {**trouble.estimators(), "MultiSwitchTSVM": cls}
        monkeypatch.setattr(trouble, "estimators", lambda known=known: known)
        trials = [half._replace(seed=[seed]) for seed in range(12)]
        found = {key for one in trials for key, _ in complaints(one)}
        assert found == (set() if cls is MultiSwitchTSVM else {"names:MultiSwitchTSVM"})


def test_what_rounding_alone_changes_is_no_complaint(monkeypatch):
    """C depends on the last digit of a sum: another order, and rows beside these, change it too."""

    def of_the_last_digits(model, X, *_):
        model.C = 0.02 * (1.0 + 4.0 * ((1e11 * abs(X.sum())) % 1.0))

    found = judged(spoiled(SVM, nothing, of_the_last_digits), "shift", monkeypatch, GAMMA)
    assert found == {"fragile"}


def test_a_share_that_is_not_given_is_found(monkeypatch):
    def half(model):
        model.class_ratio_ = np.array([0.2, 0.8])

    assert "silent share" in judged(spoiled(QNS3VM, half), "order", monkeypatch, GAMMA)

    def said(model):
        half(model)
        model.findings_ = {"share": "predicts ..."}

    assert "silent share" not in judged(spoiled(QNS3VM, said), "order", monkeypatch, GAMMA)


@pytest.mark.parametrize(
    ("error", "key"),
    [
        (np.linalg.LinAlgError("X: take another matrix"), "raw linear algebra"),
        (ZeroDivisionError("division by zero"), "raw ZeroDivisionError"),
        (IndexError("X must be longer"), "raw IndexError"),
        (ValueError("f(a) and f(b) must have different signs"), "raw ValueError"),
        (ValueError("the columns of X are far from the origin"), "raw ValueError"),  # and now?
        (ValueError("scale the column 'amount' of X by 1e-6"), "refused"),
        (FloatingPointError("gamma is too large, take a smaller one"), "refused"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_errors_help_or_are_found(error, key, monkeypatch):
    def raising(model):
        raise error

    assert judged(spoiled(SVM, raising), "order", monkeypatch) == {key}


def test_warnings_of_numpy_and_slow_fits_are_found(monkeypatch):
    def warning(model):
        warnings.warn("divide by zero", RuntimeWarning, stacklevel=1)

    assert judged(spoiled(SVM, warning), "order", monkeypatch, GAMMA) == {"raw RuntimeWarning"}
    monkeypatch.setattr(trouble, "SECONDS", 0.0)
    assert judged(SVM, "order", monkeypatch, GAMMA) == {"slow"}


def test_a_limit_that_is_said_excuses_a_machine(monkeypatch):
    def said(model):
        constant(model)
        model.termination_condition_ = "max_iter"
        warnings.warn("stopped after max_iter", ConvergenceWarning, stacklevel=1)

    def silent(model):
        constant(model)
        model.termination_condition_ = "max_iter"

    assert "above constant" not in judged(spoiled(SVM, said), "order", monkeypatch, GAMMA)
    assert "above constant" in judged(spoiled(SVM, silent), "order", monkeypatch, GAMMA)


def test_streams_that_end_elsewhere_are_found(monkeypatch):
    class Forgetful(ILS3VM):
        def partial_fit(self, X, y, **options):
            C, self.C = self.C, self.C * (1 + hasattr(self, "classes_"))
            super().partial_fit(X, y, **options)
            self.C, self.objective_ = C, self.objective_ * (1 + (self.C > C))
            return self

        def fit(self, X, y, *arguments, **named):
            super().fit(X, y, *arguments, **named)
            self.objective_ = 0.5 * self.objective_
            return self

    data = rows(16, 16)
    found = judged(Forgetful, "stream", monkeypatch, GAMMA, data, name="ILS3VM")
    assert "stream" in found


def test_another_C_star_in_a_stream_is_found(monkeypatch):
    class Wandering(NNBBS3VM):
        def partial_fit(self, X, y, **options):
            first = not hasattr(self, "classes_")
            super().partial_fit(X, y, **options)
            if first:
                self.problem_ = replace(self.problem_, C_star=2 * self.problem_.C_star)
            return self

    (X, y), found = rows(12, 6), {}
    for cls in (NNBBS3VM, Wandering):
        known = {**trouble.estimators(), "NNBBS3VM": cls}
        monkeypatch.setattr(trouble, "estimators", lambda known=known: known)
        trials = [Trial("NNBBS3VM", GAMMA, X, y, None, "stream", [seed], []) for seed in range(12)]
        found[cls] = {key for one in trials for key, _ in complaints(one)}
    assert not found[NNBBS3VM] and "stream C*:NNBBS3VM" in found[Wandering]


def test_markers_that_become_classes_in_silence_are_found(monkeypatch):
    class Silent(SVM):
        def fit(self, X, y, *arguments, **named):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                y = [f"{label}" for label in y] if np.asarray(y).dtype.kind == "O" else y
                return super().fit(X, y, *arguments, **named)

    found = set()
    X, y = rows()
    known = {**trouble.estimators(), "Silent": Silent}
    monkeypatch.setattr(trouble, "estimators", lambda: known)
    for seed in range(60):
        found |= {
            key for key, _ in complaints(Trial("Silent", GAMMA, X, y, None, "marker", [seed], []))
        }
    assert {"marker ?", "marker unlabeled", "marker unknown", "marker empty"} <= found


def test_probabilities_against_predictions_are_found(monkeypatch):
    class Contrary(SVM):
        """Has chances of its own."""

        def predict_proba(self, X):
            p = 1 / (1 + np.exp(self.decision_function(X)))
            return np.column_stack([1 - p, p])

    assert judged(Contrary, "order", monkeypatch, GAMMA) == {"argmax"}


def test_twins_with_other_objectives_are_found(monkeypatch):
    class Lazy(SVM):
        def fit(self, *arguments, **named):
            self.tol = 1.9
            return super().fit(*arguments, **named)

    monkeypatch.setattr(trouble, "_around", trouble._around_twin)
    twin = lambda trial, base: trouble._around_twin(trial, base, None)  # noqa: E731
    monkeypatch.setitem(trouble.EXTRAS, "around", twin)
    data = rows(60, 60, 1.0)
    assert "twin" in judged(Lazy, "around", monkeypatch, GAMMA, data, name="SVM")
    monkeypatch.undo()
    monkeypatch.setitem(trouble.EXTRAS, "around", twin)
    assert judged(SVM, "around", monkeypatch, GAMMA, data) == set()


# --- The task -------------------------------------------------------------------------------------


def test_the_task_counts_complaints_and_prints_how_to_see_them_again(monkeypatch, capsys):
    verdicts = {
        3: [["shift:LapSVM", "J 1 and 2"]],
        4: [["fragile:SVM", "J 1 and 2"]],
        5: "a hang, 9",
    }
    monkeypatch.setattr(trouble.bad_inputs, "verdicts", lambda *_: verdicts)
    assert trouble.main(["--trials", "10", "--seed", "2", "--workers", "1"]) == 1
    printed = capsys.readouterr().out
    assert "python tests/trouble.py 2 3" in printed and "python tests/trouble.py 2 4" not in printed
    assert "1  shift:LapSVM\n" in printed and "1  a hang\n" in printed
    assert "1  fragile:SVM (no complaint)" in printed
    verdicts.clear()
    assert trouble.main(["--trials", "10", "--workers", "1"]) == 0
