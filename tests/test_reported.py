"""What estimators report, over all of them, their attributes and the named values of parameters.

A slip in one place rarely changes predictions alone, or not at all: it stands in an attribute that
no test compares. So each test here says what must not change, and compares *everything* that ends
in an underscore, number by number; what is left out has a reason beside it.
"""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reported import assert_equal, attributes, leaves, numbers
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions
from test_estimators import ESTIMATORS

from s3vm_lib import (
    BGS3VM,
    CCCPS3VM,
    FRS3VM,
    GKM,
    ILS3VM,
    NNBBS3VM,
    QNS3VM,
    S3VC,
    TSGS3VM,
    BranchBoundS3VM,
    NewtonS3VM,
    S3VMLight,
    safe,
)
from s3vm_lib.objective import evaluate
from s3vm_lib.stochastic import Schedule

pytestmark = pytest.mark.filterwarnings("ignore")  # tiny problems may well be hard ones

# --- Settings -------------------------------------------------------------------------------------

# Fits that take no time: most facts hold bit for bit, however far the fits go.
DRAWN = dict(n_features=32)
SHORT = {
    FRS3VM: dict(DRAWN, n_steps=0),
    TSGS3VM: dict(DRAWN, n_steps=20),
    **{case.cls: case.exact for case in ESTIMATORS if case.ordered},
}
REFUSED = {
    ("kernel", "precomputed"): "the rows are a Gram matrix there",
    ("class_weight", "balanced"): "it is what is tested",
    ("fit_intercept", False): "with a balance it is refused; see test_without_an_offset",
    ("balance_mode", "counts"): "counted rows have no weights",
}


def made(case, setting, **options):
    """The estimator of a case with a setting."""
    return case(**{**SHORT.get(case.cls, {}), **options, **setting})


FURTHER = {  # numbers with which something else is done than without
    "balance_tol": 0.1,
    "sigma_f": 1.3,
    "power": 1.5,
    "laplacian_degree": 2,
    "s": 0.5,
}


def named_settings():
    """A case and a setting for each value that has a name, for some numbers, and for none."""
    for case in ESTIMATORS:
        model = made(case, {})
        yield pytest.param(case, {}, id=case.cls.__name__)
        for name in sorted(FURTHER.keys() & model.get_params().keys()):
            if getattr(model, name) != 0.05:  # of branch and bound, where it is no switch
                yield pytest.param(case, {name: FURTHER[name]}, id=f"{case.cls.__name__}-{name}")
        for name, constraints in model._parameter_constraints.items():
            if name not in model.get_params() or not isinstance(constraints, list):
                continue
            if name == "balance" and case.cls is not CCCPS3VM:
                continue  # shares are estimated from the rows, before the method is asked
            for one in constraints:
                values = sorted(one.options) if isinstance(one, StrOptions) else []
                for value in [True, False] if one == "boolean" else values:
                    if value != getattr(model, name) and (name, value) not in REFUSED:
                        label = f"{case.cls.__name__}-{name}-{value}"
                        yield pytest.param(case, {name: value}, id=label)


SETTINGS = list(named_settings())
everything = pytest.mark.parametrize(("case", "setting"), SETTINGS)


def online(case):
    return hasattr(case.cls, "partial_fit")


def tangled(n, n_labeled):
    """Two classes that overlap: solvers switch labels, meet negative curvature, take many steps."""
    rng = np.random.default_rng(3)
    y = np.arange(n) % 2
    X = rng.standard_normal((n, 2)) + np.c_[1.2 * y, 0.4 * y]
    y[n_labeled:] = -1
    return X, y


# --- Weights --------------------------------------------------------------------------------------

POSITIONS = re.compile("support_$|partition_")  # of rows among those that were given
BY_ROW = ("transduction_", "assigned_")  # a value for each row that was given


@everything
def test_a_row_without_weight_is_absent_from_all_that_is_reported(case, setting):
    X, y = tangled(24, 13)
    kept = np.flatnonzero(np.arange(24) % 5 != 1)
    weight = np.zeros(24)
    weight[kept] = 1.3
    all_rows = attributes(made(case, setting).fit(X, y, weight))
    alone = attributes(made(case, setting).fit(X[kept], y[kept], weight[kept]))
    for name in BY_ROW:
        if name in all_rows:
            all_rows[name] = all_rows[name][..., kept]
    found, expected = numbers(all_rows), numbers(alone)
    for path in expected:
        if POSITIONS.match(path):
            expected[path] = kept[expected[path]]
    assert_equal(found, expected)


@everything
def test_weights_times_a_number_are_costs_times_it(case, setting):
    """Whatever is reported has nothing of the unit that weights are given in."""
    if setting.get("balance"):
        pytest.skip("an estimate has a prior: more rows say more")
    X, y = tangled(24, 13)
    weight = case.permitted(np.linspace(0.5, 2.0, 24), y)
    names = ["C", *(["C_star"] if not case.supervised and not case.graph else [])]
    C = dict.fromkeys(names, 0.5) | setting
    if isinstance(C.get("C_star"), str):
        names = ["C"]
    found, expected = (
        numbers(attributes(made(case, {**C, **{k: C[k] / c for k in names}}).fit(X, y, c * weight)))
        for c in (2.0**-10, 1.0)  # so small that the sum of all is below one, too
    )
    for found_one in (found, expected):
        for path in [p for p in found_one if re.search(r"\.C$|\.C_star$|C_plus|C_minus", p)]:
            del found_one[path]
    assert_equal(found, expected, rtol=1e-9)


@pytest.mark.parametrize(
    "case", [one for one in ESTIMATORS if one.kernels], ids=lambda case: case.cls.__name__
)
def test_sigma_f_is_a_factor_on_the_rows_of_a_linear_kernel(case):
    X, y = tangled(24, 13)
    options = {**case.exact, "kernel": "linear"}
    found = attributes(made(case, {}, **options, sigma_f=1.7).fit(X, y))
    expected = attributes(made(case, {}, **options).fit(1.7 * X, y))
    found["coef_"] = found["coef_"] / 1.7
    for one in (found, expected):
        one["gamma_"] = one["support_vectors_"] = one["bounds_"] = None
    without = {**NOT_OF_COPIES, "problem_.kernel|stream_": "what is compared"}
    rtol = 10 * max(1e-5, case.decimals)
    assert_equal(numbers(found, without), numbers(expected, without), rtol=rtol)


UNIT_OF_ITS_OWN = {
    ("sigma_f", 1.3): "it is what is tested",
    ("bias", "regularized"): "the offset is compared with the coefficients",
    ("C_graph", "paper"): "a cost that is not given",
    ("polish", False): "steps of a size for k(x, x) = 1",
    ("update", "block"): "steps of a size for k(x, x) = 1",
}


@pytest.mark.parametrize(("case", "setting"), [one for one in SETTINGS if one.values[0].kernels])
def test_the_unit_of_a_kernel_is_one_of_costs(case, setting):
    """Kernel values in a small unit, costs in its inverse: the same outputs, as exactly."""
    if setting.items() & UNIT_OF_ITS_OWN.keys():
        pytest.skip(UNIT_OF_ITS_OWN[next(iter(setting.items()))])
    X, y = tangled(24, 13)
    costs, unit = {"C": 1.0}, 2.0**-10
    if case.graph:
        costs["C_graph"] = 1.0
    elif not case.supervised:
        costs["C_star"] = 0.3
    options = {"gamma": 0.3} | ({"fit_intercept": False} if case.ordered else {})
    fits = []
    for factor in (1.0, unit):
        own = {name: cost / factor**2 for name, cost in costs.items()}
        fits.append(made(case, setting, sigma_f=factor, **own, **options).fit(X, y))
    outputs = [model.decision_function(X) for model in fits]
    assert_allclose(*outputs, atol=3e-3)
    values = [model.objective_ * factor**2 for model, factor in zip(fits, (1.0, unit), strict=True)]
    assert_allclose(*values, rtol=1e-4)
    assert fits[0].termination_condition_ == fits[1].termination_condition_


NO_CLASS_WEIGHTS = {  # what labels say about unlabeled rows counts rows, not costs
    "contradicted_": "a share of labels",
    "findings_": "shares, and numbers of labels",
}


@everything
def test_class_weights_are_weights_in_all_that_is_reported(case, setting):
    if setting.keys() & {"balance", "C_star", "C_graph", "reconsider"}:
        pytest.skip("it goes by what labels count, not by what they cost")
    if setting.get("gamma") == "variance":
        pytest.skip("it goes by the weights of the rows")
    X, y = tangled(24, 13)
    factors = {0: 3.0, 1: 0.5}
    options = {"gamma": 0.3} | ({"C_graph": 1.0} if case.graph else {})
    if not case.graph and not case.supervised:
        options |= {"C_star": 0.1, "balance": 0.4}
    by_class = made(case, setting, class_weight=factors, **options).fit(X, y)
    by_row = made(case, setting, **options).fit(X, y, [factors.get(k, 1.0) for k in y.tolist()])
    found, expected = (numbers(attributes(model), NO_CLASS_WEIGHTS) for model in (by_class, by_row))
    assert_equal(found, expected)


NOT_OF_COPIES = {
    "n_iter_|counters_|termination_condition_": "rounding may lead another way to the same end",
    "history_": "its last value is compared",
    "support_|support_vectors_|dual_coef_|partition_|path_": "which copies are taken is free; the "
    "sum of the coefficients is compared, and the outputs",
    "graph_|problem_.graph": "copies are joined to each other; the term is compared",
    "transduction_|assigned_": "compared row by row",
    "bounds_": "of single rows",
}
OF_THE_WAY = (
    "change",
    "gradient",
    "gradient_norm",
    "step",
    "labeled",
)  # how far the last steps went
NOT_SOLVED = {
    ("polish", False): "steps that draw rows by their position",
    ("update", "block"): "steps that draw rows by their position",
    ("budget_unlabeled", "paper"): "the number of rows is what it depends on",
    ("balance", "gap"): "draws rows by their position",
}


@everything
def test_weights_are_copies_in_all_that_is_reported(semi_supervised, case, setting):
    if setting.items() & NOT_SOLVED.keys():
        pytest.skip(NOT_SOLVED[next(iter(setting.items()))])
    X, y = semi_supervised(n=30, n_labeled=15, seed=1)
    weight = case.permitted(np.random.default_rng(0).integers(1, 4, 30), y).astype(int)
    many, labels = np.repeat(X, weight, 0), np.repeat(y, weight)
    options = case.exact if case.dual else case.exact | DRAWN | dict(n_steps=0)
    weighted = made(case, setting, **options).fit(X, y, weight)
    copied = made(case, setting, **options).fit(many, labels)
    reported, of_copies = attributes(weighted), attributes(copied)
    rtol = max(1e-5, 20 * case.decimals)
    assert_equal(numbers(reported, NOT_OF_COPIES), numbers(of_copies, NOT_OF_COPIES), rtol=rtol)
    for name in BY_ROW:
        if name in reported:
            assert np.array_equal(np.repeat(reported[name], weight, -1), of_copies[name])
    assert_allclose(
        np.repeat(weighted.decision_function(X), weight), copied.decision_function(many), atol=rtol
    )
    if "dual_coef_" in reported:
        sums = reported["dual_coef_"].sum(), of_copies["dual_coef_"].sum()
        assert_allclose(*sums, atol=rtol)
    last, of_last = (dict(leaves(part["history_"][-1], "")) for part in (reported, of_copies))
    for path in (path for path in last if isinstance(last[path], float)):
        if not path.endswith(OF_THE_WAY):
            assert_allclose(last[path], of_last[path], rtol=rtol, atol=rtol, err_msg=path)
    terms = evaluate(weighted, X, y, weighted.problem_, weight)
    of_terms = evaluate(copied, many, labels, copied.problem_)
    assert_equal(dict(leaves(terms, "")), dict(leaves(of_terms, "")), rtol=rtol)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("cls", [FRS3VM, TSGS3VM])
def test_weights_are_copies_in_what_steps_begin_with(semi_supervised, monkeypatch, cls, kernel):
    """Which rows are drawn goes by their number; sizes of steps and the problem do not."""
    X, y = semi_supervised(n=30, n_labeled=15, seed=1)
    X = 5 * X + np.arange(30)[:, None]  # k(x, x) and means depend on which rows count
    weight = np.random.default_rng(0).integers(1, 4, 30)
    seen, steps = [], cls._run

    def spy(self, X, t, weight, problem, stream, n_steps, schedule, **options):
        seen.append(numbers({"schedule": schedule, "problem": problem}))
        return steps(self, X, t, weight, problem, stream, n_steps, schedule, **options)

    monkeypatch.setattr(cls, "_run", spy)
    model = cls(kernel=kernel, gamma=0.3, n_features=16, n_steps=2, balance=0.4, random_state=0)
    clone(model).partial_fit(X, y, weight)  # as does a first batch
    model.fit(X, y, weight)
    model.fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    assert_equal(seen[0], seen[1], rtol=1e-5)
    assert_equal(seen[0], seen[2], rtol=1e-5)


# --- The last problem -----------------------------------------------------------------------------

SHARED = {  # attributes of all problems together
    "classes_|class_ratio_": "one value for each class",
    "n_iter_": "the largest of all; compared by itself",
    "support_|support_vectors_|dual_coef_": "rows that any of the problems takes; the coefficients "
    "are compared row by row",
    "transduction_|findings_": "of all problems together",
    "feature_coef_": "padded with zeros to the longest",
}


def padded(model, k=0):
    """The coefficients of problem k on all rows, or of all features."""
    if hasattr(model, "feature_coef_"):
        return model.feature_coef_[k]
    if not hasattr(model, "dual_coef_"):
        return np.zeros(0)
    full = np.zeros(30)
    np.add.at(full, model.support_, model.dual_coef_[k])
    return full


@everything
def test_each_problem_is_that_of_its_class_against_the_rest(semi_supervised, case, setting):
    X, y = semi_supervised(n=30, n_labeled=18, n_classes=3, seed=2)
    y[np.flatnonzero(y == 2)[:2]] = 1  # problems of different sizes
    together = made(case, setting).fit(X, y)
    reported, n_iter = attributes(together), []
    for k in range(3):
        options = {}
        if getattr(together, "class_ratio_", None) is not None:
            share = together.class_ratio_[k]
            options = {"balance": {0: 1.0 - share, 1: share}}
        alone = made(case, setting | options)
        alone.fit(X, np.where(y < 0, -1, (y == k).astype(int)))
        n_iter.append(alone.n_iter_)
        own = {}
        for name, value in reported.items():
            several = isinstance(value, list | np.ndarray) and len(value) == 3
            own[name] = value[k] if several else value
        expected = attributes(alone)
        for name in ("intercept_", "coef_", "assigned_"):
            if name in expected:
                expected[name] = expected[name][0]
        assert_equal(numbers(own, SHARED), numbers(expected, SHARED), rtol=1e-12)
        found, coefficients = padded(together, k), padded(alone)
        assert_allclose(found[: len(coefficients)], coefficients, atol=1e-12)
        assert not found[len(coefficients) :].any()
    assert reported["n_iter_"] == max(n_iter)


def hard_for_one(seed=0):
    """Three classes, of which the last but one lies within the first."""
    rng = np.random.default_rng(seed)
    y = np.arange(36) % 3
    X = 0.8 * rng.standard_normal((36, 2)) + np.array([[0, 0], [0.3, 0], [7, 0]])[y]
    y[24:] = -1
    return X, y


@pytest.mark.parametrize("case", ESTIMATORS, ids=lambda case: case.cls.__name__)
def test_a_limit_that_one_problem_meets_is_reported_wherever_it_stands(case):
    """Each order of the classes: the one hard problem comes first, in the middle and last."""
    X, y = hard_for_one()
    mixed = False
    for limit in (1, 2, 4, 8, 16, 32, 64, 128, 512, 1100):
        options = {**case.exact, **case.several, "max_iter": limit, "kernel": "linear"}
        for order in ([0, 1, 2], [0, 2, 1], [1, 2, 0]):
            renamed = np.append(order, -1)[y]
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                model = case(**options).fit(X, renamed)
            statuses = model.termination_condition_
            met = "max_iter" in statuses
            assert met == ("limit" in model.findings_), (limit, order, statuses)
            said = [one for one in told if f"max_iter={limit} " in str(one.message)]
            assert len(said) == met, (limit, order, statuses)
            assert all(issubclass(one.category, ConvergenceWarning) for one in said)
        mixed |= met and len(set(statuses)) > 1
        if mixed or not met:
            break


# --- Batches --------------------------------------------------------------------------------------

ONLINE = [one for one in SETTINGS if hasattr(one.values[0].cls, "partial_fit")]
KEEPING = (NNBBS3VM, ILS3VM, GKM, BGS3VM)  # the others report of the last rows alone


def problem_numbers(model, without):
    """What a model says that it minimizes."""
    names = ("problem_", "classes_", "class_ratio_", "gamma_", "n_features_in_", "bounds_")
    found = attributes(model)
    return numbers({name: found[name] for name in names if name in found}, without)


@pytest.mark.parametrize(("case", "setting"), ONLINE)
def test_one_batch_and_several_have_the_problem_of_a_fit(semi_supervised, case, setting):
    """Masses, shares and scales of all rows so far: sums, whatever the batches are."""
    if setting.get("gamma") == "variance":
        pytest.skip("it goes by the rows of the first batch")
    X, y = semi_supervised(n=30, n_labeled=15, seed=1)
    weight = np.linspace(0.5, 2.0, 30) * (np.arange(30) % 7 != 3)
    options = {"gamma": 0.3, "class_weight": {0: 2.0, 1: 0.7}}
    if case.cls in (NNBBS3VM, ILS3VM):
        options["C_star"] = 0.2
    make = lambda: made(case, setting, **options)  # noqa: E731
    whole = make().fit(X, y, weight)
    once = make().partial_fit(X, y, weight)
    assert_equal(problem_numbers(once, ()), problem_numbers(whole, ()), rtol=1e-12)
    several = make()
    for rows in (np.arange(11), np.arange(11, 12), np.arange(12, 30)):
        several.partial_fit(X[rows], y[rows], weight[rows], classes=[0, 1])
        so_far = np.arange(rows[-1] + 1)
        if case.cls in KEEPING:  # J is that of all rows so far
            kept = so_far[weight[so_far] > 0]
            cost = weight * np.select([y == 0, y == 1], [2.0, 0.7], 1.0)
            value = evaluate(several, X[kept], y[kept], several.problem_, cost[kept]).objective
            assert_allclose(several.objective_, value, rtol=1e-5, atol=1e-8)
    # New rows are joined to those that are there: other edges than of all rows at once.
    without = ("problem_.graph", *(["bounds_"] if case.graph else []))
    assert_equal(problem_numbers(several, without), problem_numbers(whole, without), rtol=1e-12)


@pytest.mark.parametrize("cls", [FRS3VM, TSGS3VM])
def test_rows_that_are_kept_stand_for_all_rows_so_far(semi_supervised, monkeypatch, cls):
    X, y = semi_supervised(n=60, n_labeled=20, seed=1)
    weight = np.linspace(0.5, 2.0, 60)
    seen, steps = [], cls._steps

    def spy(self, rows, problem, *arguments):
        _, t, weight = rows
        seen.append((weight[t == 0].sum(), weight[t != 0].sum(), problem.C_star))
        return steps(self, rows, problem, *arguments)

    monkeypatch.setattr(cls, "_steps", spy)
    monkeypatch.setattr("s3vm_lib.stochastic._estimators.UNLABELED_KEPT", 4)
    model = cls(n_features=16, n_steps=2, class_weight={0: 2.0}, random_state=0)
    for start, end in ((0, 20), (20, 25), (25, 45), (45, 60)):
        batch = slice(start, end)
        model.partial_fit(X[batch], y[batch], weight[batch], classes=[0, 1])
        labeled = y[:end] >= 0
        masses = weight[:end][~labeled].sum(), weight[:end][labeled].sum()
        cost = masses[1] + weight[:end][y[:end] == 0].sum()
        assert_allclose(seen[-1], [masses[0], cost, masses[1] / masses[0]])


@pytest.mark.parametrize("setting", [{}, {"kernel": "linear"}, {"update": "block"}], ids=str)
@pytest.mark.parametrize("cls", [FRS3VM, TSGS3VM])
def test_C_star_rises_in_the_first_batch_alone(semi_supervised, cls, setting):
    if cls is FRS3VM and "update" in setting:
        pytest.skip("its features are there from the beginning")
    X, y = semi_supervised(n=60, n_labeled=20, seed=1)
    X = 0.2 * X  # outputs stay where losses of unlabeled rows have slopes

    def outputs(first, later):
        model = cls(n_features=16, n_steps=4, random_state=0, schedule=Schedule(ramp=first))
        model.set_params(**setting).partial_fit(X[:40], y[:40])
        model.set_params(schedule=Schedule(ramp=later))
        return model.partial_fit(X[40:], y[40:]).partial_fit(X, y).decision_function(X)

    expected = outputs(0.5, 0.5)
    assert np.array_equal(outputs(0.5, 1.0), expected)
    assert not np.allclose(outputs(1.0, 0.5), expected, atol=1e-4)


# --- Counts ---------------------------------------------------------------------------------------


@everything
def test_counts_are_those_that_an_observer_makes(semi_supervised, case, setting):
    """A callback sees each round once: as many as the history has, and none that it has not."""
    X, y = semi_supervised(n=30, n_labeled=18, n_classes=3, seed=2)
    y[y == 2] = 1
    states = []
    options = {"C": 10.0, "callback": lambda state: states.append(dict(state))}
    model = made(case, setting, **options).fit(X, y)
    assert len(states) == len(model.history_)
    for state, entry in zip(states, model.history_, strict=True):
        told = entry._asdict() if hasattr(entry, "_asdict") else {}
        for name in told.keys() & state.keys():
            assert np.array_equal(state[name], told[name]), name
    total = [state["n_iter"] for state in states]
    if case.cls in (QNS3VM, NewtonS3VM, FRS3VM):  # of each stage
        assert model.n_iter_ == sum(total)
    elif case.cls in (CCCPS3VM, NNBBS3VM):  # of the problem within each round
        assert model.n_iter_ == len(states)
    elif case.cls in (GKM, BGS3VM, BranchBoundS3VM, S3VMLight):  # so far
        assert model.n_iter_ == total[-1]


# --- The one door ---------------------------------------------------------------------------------


def test_a_row_without_weight_is_absent_from_what_the_one_door_reports(monkeypatch):
    # Sums of other length round otherwise, which steps to a coarse tolerance magnify.
    monkeypatch.setattr(safe, "QUICK", safe.QUICK | {"tol": 1e-9, "ftol": 0.0})
    X, y = tangled(40, 20)
    kept = np.arange(40) % 5 != 1
    X[~kept] *= 50  # seen in every mean, scale and distance
    weight = np.where(kept, 1.3, 0.0)
    all_rows = attributes(S3VC(random_state=0).fit(X, y, weight))
    alone = attributes(S3VC(random_state=0).fit(X[kept], y[kept], weight[kept]))
    all_rows["transduction_"] = all_rows["transduction_"][kept]
    for one in (all_rows, alone):
        parts = one["members_"] = [member._asdict() for member in one["members_"]]
        rows = np.flatnonzero(kept) if one is all_rows else np.arange(kept.sum())
        for part in parts:
            part["known"] = np.searchsorted(rows, part["known"])
    all_rows["confidence_"] = all_rows["confidence_"][kept]
    sure = alone["confidence_"] > 0.05
    assert np.mean(sure) > 0.8
    for one in (all_rows, alone):
        one["transduction_"] = one["transduction_"][sure]
    within = [r"(model_|members_\[\d+\]\.model)\.", r"members_\[\d+\]\.held_out"]
    assert_equal(numbers(all_rows, within), numbers(alone, within), rtol=1e-4)
    for one, other in zip(all_rows["members_"], alone["members_"], strict=True):
        assert_allclose(one["held_out"], other["held_out"], rtol=0, atol=1e-3)
