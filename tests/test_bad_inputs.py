"""No silent nonsense: every input ends in finite numbers, or in an error that says what is wrong.

What is tried is in ``tests/bad_inputs.py``. Trials run in a worker process, so that a crash or a
loop without end is a verdict on the trial and not the end of the tests.
"""

import os
import signal
import warnings
from numbers import Integral
from pathlib import Path

import bad_inputs
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import make_constraint

import s3vm_lib
from s3vm_lib import CCCPS3VM, DAS3VM, GKM, ILS3VM, SVM, GKMRegressor, annealing
from s3vm_lib.branch_and_bound import BranchBoundS3VM
from s3vm_lib.finite_newton import solve_finite_newton
from s3vm_lib.utils.limits import checked_gram

WORKER = Path(bad_inputs.__file__)


def verdicts(seed, first, last):
    return bad_inputs.verdicts(WORKER, seed, first, last)


def described(seed, wrong):
    """Every failure with its trial and how to see it again."""
    return "\n\n".join(
        f"python tests/bad_inputs.py {seed} {number}\n{bad_inputs.trial(seed, number)}\n{verdict}"
        for number, verdict in wrong.items()
    )


@pytest.fixture(scope="module")
def known():
    return verdicts("known", 0, len(bad_inputs.KNOWN))


@pytest.mark.parametrize("number", range(len(bad_inputs.KNOWN)), ids=bad_inputs.KNOWN)
def test_what_once_went_wrong(known, number):
    assert number not in known, known[number]


@pytest.mark.interface
def test_some_bad_inputs():
    wrong = verdicts(1, 0, 200)
    assert not wrong, described(1, wrong)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_many_bad_inputs(part):
    wrong = verdicts(0, 500 * part, 500 * (part + 1))
    assert not wrong, described(0, wrong)


@pytest.mark.interface
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no timer of CPU time")
def test_the_worker_reports_hangs_crashes_and_silence(tmp_path, monkeypatch):
    """The generator is worth what its verdicts are."""
    planted = tmp_path / "planted.py"
    planted.write_text(
        "import ctypes, sys\n"
        f"sys.path.insert(0, {str(WORKER.parent)!r})\n"
        "import bad_inputs\n"
        "class Attempt:\n"
        "    name = 'SVM'\n"
        "def loop():\n"
        "    while True: pass\n"
        "bad_inputs.SECONDS = 0.5\n"
        "bad_inputs.trial = lambda seed, number: number\n"
        "acts = [lambda: 'not finite', lambda: 1 / 0, loop, lambda: ctypes.string_at(0)]\n"
        "bad_inputs.run = lambda number: acts[number]()\n"
        "bad_inputs.main(sys.argv[1], *map(int, sys.argv[2:]))\n"
    )
    monkeypatch.setitem(globals(), "WORKER", planted)
    wrong = verdicts(0, 0, 4)
    assert wrong[0] == "not finite"
    assert "ZeroDivisionError" in wrong[1]
    assert wrong[2].startswith("a hang")
    assert "loop" in wrong[2]  # where it was
    assert wrong[3].startswith("a crash")


def test_messages_that_name_nothing_and_results_that_are_not_finite_are_failures():
    attempt = bad_inputs.trial(0, 0)
    assert not bad_inputs._says_what(ValueError("something is wrong"), attempt)
    assert bad_inputs._says_what(ValueError("the 'C' parameter must be positive"), attempt)
    assert bad_inputs._not_finite(np.array([1.0, np.nan]))
    assert not bad_inputs._not_finite(np.array([1.0, 2.0]))


# --- Ranges ---------------------------------------------------------------------------------------


def test_every_numeric_parameter_has_an_upper_end_and_every_limit_a_default():
    for name, cls in bad_inputs.estimators().items():
        for parameter, constraints in cls._parameter_constraints.items():
            for constraint in constraints:
                if isinstance(constraint, bad_inputs.Interval):
                    assert constraint.right is not None, (name, parameter)
                    assert np.isfinite(constraint.right), (name, parameter)
        for parameter, value in cls().get_params().items():
            if parameter in bad_inputs.WORK and isinstance(value, int | float):
                assert 0 <= value <= 10**7, (name, parameter)


@pytest.mark.parametrize("name", bad_inputs.estimators())
def test_each_parameter_refuses_what_it_does_not_allow_by_its_name(name):
    """No value, no number, no word that it knows, and numbers beside its intervals."""
    cls, (X, y) = bad_inputs.estimators()[name], rows()
    y = np.where(y < 0, np.nan, y) if name == "GKMRegressor" else y
    for parameter, constraints in cls._parameter_constraints.items():
        allowed = [make_constraint(one) for one in constraints if one != "no_validation"]
        ends = [one for one in allowed if isinstance(one, bad_inputs.Interval)]
        values = [None, object(), np.nan, "none of these"]
        for one in ends:
            values += [one.left - 1, one.left, one.right, 2 * one.right + 1]
        for value in values:
            if allowed and not any(one.is_satisfied_by(value) for one in allowed):
                with pytest.raises(ValueError, match=f"'{parameter}' parameter"):
                    cls(**{parameter: value}).fit(X, y)


def rows(n=30, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.standard_normal((n, 2)) + 2.0 * y[:, None]
    return X, np.where(np.arange(n) < 10, y, -1)


@pytest.mark.parametrize("name", bad_inputs.estimators())
def test_true_as_a_count_is_one_or_refused_by_name(name):
    """numpy refuses True where it wants an integer, without saying whose it was."""
    X, y = rows()
    y = np.where(y < 0, np.nan, y) if name == "GKMRegressor" else y
    cls = bad_inputs.estimators()[name]
    for parameter, constraints in cls._parameter_constraints.items():
        if any(getattr(one, "type", None) is Integral for one in constraints):
            model = cls(**bad_inputs.QUICK.get(name, {}) | {parameter: True})
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    model.fit(X, y)
            except ValueError as refused:
                assert parameter in str(refused)


@pytest.mark.parametrize("scale", [1e-160, 1e160])
def test_data_whose_squares_are_no_numbers_are_refused_with_their_size(scale):
    X, y = rows()
    with pytest.raises(ValueError, match=r"absolute value of X .* got [\d.]+e[-+]1"):
        SVM().fit(scale * X, y)


def test_weights_and_kernel_values_out_of_range_are_refused_with_their_sizes():
    X, y = rows()
    with pytest.raises(ValueError, match=r"sample_weight .* got 1 × 3e\+301"):
        SVM().fit(X, np.abs(y), sample_weight=np.full(30, 1e300))
    with pytest.raises(ValueError, match=r"k\(x, x\) of kernel='linear' .* scale the data"):
        SVM(kernel="linear").fit(1e30 * X, y)
    with pytest.raises(ValueError, match="divide the Gram matrix X by a number"):
        SVM(kernel="precomputed").fit(1e60 * X @ X.T, y)


@pytest.mark.parametrize("part", ["objective", "intercept", "dual"])
def test_a_fit_that_leaves_floating_point_is_an_error_and_changes_nothing(part, monkeypatch):
    original = SVM._fit_binary

    def overflown(self, *arguments):
        fit = original(self, *arguments)
        return fit._replace(**{part: getattr(fit, part) + np.inf})

    X, y = rows()
    model = SVM().fit(X[:10], y[:10])
    before = dict(vars(model))
    monkeypatch.setattr(SVM, "_fit_binary", overflown)
    with pytest.raises(FloatingPointError, match="SVM left the range of floating point"):
        model.fit(X, np.abs(y))
    assert vars(model) == before


def test_annealing_without_any_finite_objective_is_such_an_error(monkeypatch):
    def failing(rows, *arguments, **limits):
        found = solve_finite_newton(rows, *arguments, **limits)
        return found._replace(v=np.nan * found.v, outputs=np.nan * found.outputs)

    monkeypatch.setattr(annealing, "solve_finite_newton", failing)
    with pytest.raises(FloatingPointError, match="DAS3VM left the range"):
        DAS3VM(n_temperatures=2, max_rounds=2).fit(*rows())


def test_predictions_that_overflow_name_the_row():
    X, y = rows()
    model = SVM(kernel="poly", degree=5).fit(X, y)
    new = np.array([[1.0, 1.0], [1e100, 1.0], [0.0, 1e120]])
    with pytest.raises(
        FloatingPointError, match=r"2 of 3 rows of X, the first of them row 1,.*1e\+120"
    ):
        model.decision_function(new)
    with pytest.raises(FloatingPointError, match="rows of X"):
        model.predict(sp.csr_matrix(new))
    regressor = GKMRegressor(kernel="poly", degree=5, tol=1e3, random_state=0)
    regressor.fit(X, np.where(y < 0, np.nan, y))
    with pytest.raises(FloatingPointError, match="rows of X"):
        regressor.predict(new)


# --- Gram matrices --------------------------------------------------------------------------------


def test_gram_matrices_are_taken_as_they_are_made_symmetric_or_refused():
    X, _ = rows(300)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    assert checked_gram(K) is K
    noisy = K * (1 + 1e-9 * np.random.default_rng(0).standard_normal(K.shape))
    found = checked_gram(noisy)
    assert np.array_equal(found, found.T)
    np.testing.assert_allclose(found, K, rtol=1e-8)
    single = (X.astype(np.float32) @ X.T.astype(np.float32)).astype(float)
    checked_gram(single)  # of low rank: its least eigenvalue is rounding
    K[3, 7] += 0.25
    with pytest.raises(ValueError, match=r"symmetric Gram matrix .* differ by up to 0\.25"):
        checked_gram(K)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda K: -K, r"least diagonal entry is -1"),
        (lambda K: np.where(np.eye(len(K)) > 0, 0.01, K), "exceeds"),
        (lambda K: 1.0 - K + np.eye(len(K)), "block of 256 rows has the eigenvalue -"),
    ],
)
def test_indefinite_gram_matrices_are_refused(change, message):
    X, y = rows(300)
    K = change(np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2)))
    for cls in (SVM, GKM, ILS3VM, BranchBoundS3VM):
        model = cls(kernel="precomputed")
        with pytest.raises(ValueError, match=message):
            model.fit(K, y)
        assert not hasattr(model, "classes_")


@pytest.mark.parametrize("first", [0, 300, 600])
def test_eigenvalues_are_looked_at_in_all_rows(first):
    K, part = np.eye(900), slice(first, first + 300)
    K[part, part] = 1.5 * np.eye(300) - 0.5
    with pytest.raises(ValueError, match="a block of 256 rows has the eigenvalue -"):
        checked_gram(K)


# --- Rounding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_tolerance_that_rounding_cannot_meet_ends_at_the_limits_of_rounding(kernel, C):
    X, y = rows(60)
    model = SVM(kernel=kernel, C=C, tol=1e-16, max_iter=300_000).fit(X, y)
    assert model.termination_condition_ == "converged"
    close = SVM(kernel=kernel, C=C, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), close.decision_function(X), atol=1e-6)


def test_a_solver_that_cannot_move_warns():
    model = CCCPS3VM()
    fit = s3vm_lib.base.machine.BinaryFit(None, None, 0.0, np.zeros(30), 0.0, 1, "stalled", [])
    with pytest.warns(ConvergenceWarning, match=r"rounding lets no step .* tol=0\.001"):
        model._warn_of_limits([fit])


# --- Ctrl-C ---------------------------------------------------------------------------------------

# Long fits: schedules of very many steps, or tolerances that are met late if at all. What
# cannot be long (SelfTrainingKNN, a fit by NNBBS3VM) is left out.
LONG = {
    "BGS3VM": "X, y = data(3000, 200); model = lib.BGS3VM(max_iter=10**8, tol=1e-16)",
    "BranchBoundS3VM": "X, y = data(120, 3); model = lib.BranchBoundS3VM(max_iter=10**8)",
    "CCCPS3VM": "X, y = data(6000, 40); model = lib.CCCPS3VM(C=1e6, tol=1e-12)",
    "DAS3VM": "X, y = data(6000, 40); model = lib.DAS3VM(n_temperatures=10**6, cooling=1.001, "
    "p_tol=1e-16, max_rounds=10**6)",
    "FRS3VM": "X, y = data(6000, 100); model = lib.FRS3VM(n_steps=10**7)",
    "GKM": "X, y = data(3000, 100); model = lib.GKM(max_iter=10**8, tol=1e-16)",
    "GKMRegressor": "X, y = data(3000, 100); y = np.where(y < 0, np.nan, y); "
    "model = lib.GKMRegressor(max_iter=10**8, tol=1e-16)",
    "ILS3VM": "X, y = data(4000, 20); model = lib.ILS3VM(C=1e3)",
    "LapSVM": "X, y = data(1000, 3); model = lib.LapSVM(max_iter=10**8, tol=1e-16, solver='pcg', "
    "C=1e10)",
    "MultiSwitchTSVM": "X, y = data(20000, 40); model = lib.MultiSwitchTSVM(n_switch=1, "
    "max_rounds=10**6, factor=1.001)",
    "NNBBS3VM": "X, y = data(2000, 3); model = lib.NNBBS3VM(n_neighbors=300, max_iter=10**8, "
    "C_star=1.0)",
    "NewtonS3VM": "X, y = data(1000, 20); model = lib.NewtonS3VM(solver='gradient', tol=1e-16, "
    "ftol=0, max_iter=10**8, annealing=np.linspace(1e-4, 1, 10**5))",
    "QNS3VM": "X, y = data(3000, 40); model = lib.QNS3VM(tol=1e-16, ftol=0, max_iter=10**8, "
    "engine='lbfgs', annealing=np.linspace(1e-4, 1, 10**5))",
    "S3VMLight": "X, y = data(1000, 3); model = lib.S3VMLight(annealing_start=1e-20, "
    "annealing_factor=1.001, C=1e6, tol=1e-12)",
    "SVM": "X, y = data(20000, 100); y = np.arange(20000) % 2; model = lib.SVM(C=1e8, tol=1e-12)",
    "TSGS3VM": "X, y = data(6000, 100); model = lib.TSGS3VM(update='block', n_steps=10**6)",
}  # fmt: skip


INTERRUPT = """
import os, signal, threading, numpy as np, s3vm_lib as lib
signal.signal(signal.SIGINT, signal.default_int_handler)
def data(n, d):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.standard_normal((n, d)) + 0.1 * y[:, None]
    return X, np.where(np.arange(n) < n // 10, y, -1)
def interrupt():  # again: in a callback of llvmlite, while machine code is loaded, it is lost
    while not ended.wait(0.7):
        os.kill(os.getpid(), signal.SIGINT)
"""
INTERRUPT_ONE = """
{made}
before, ended = dict(vars(model)), threading.Event()
threading.Thread(target=interrupt, daemon=True).start()
try:
    model.{method}(X, y)
    ended.set()
    print("{name} ended by itself")
except KeyboardInterrupt:
    ended.set()
    print("{name}", vars(model) == before)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="SIGINT cannot be sent to one process")
def test_ctrl_c_ends_a_long_fit_and_leaves_the_estimator_as_it_was(run_python):
    code = INTERRUPT
    for name, made in LONG.items():
        method = "partial_fit" if name == "NNBBS3VM" else "fit"
        code += INTERRUPT_ONE.format(made=made, method=method, name=name)
    assert run_python(code).splitlines() == [f"{name} True" for name in LONG]


def test_ctrl_c_between_compiled_code_and_python_is_ctrl_c(monkeypatch):
    """numba reports what interrupts the boxing of a result as a SystemError that it has caused."""

    def interrupted(self, *arguments):
        self.n_iter_ = 1
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as cause:
            raise SystemError("a result with an exception set") from cause

    monkeypatch.setattr(SVM, "_fit", interrupted)
    model = SVM()
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit([[0.0], [1.0]], [0, 1])
    assert vars(model) == before
