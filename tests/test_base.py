"""What all estimators share: labels, weights, ratios, penalties and prediction."""

import ast
import re
import tomllib
import warnings
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import s3vm_lib
from s3vm_lib import (
    ILS3VM,
    QNS3VM,
    S3VC,
    SVM,
    FitWarning,
    GKMRegressor,
    SafeS3VM,
    SelfTrainingKNN,
    capabilities,
    encode_labels,
    mark_unlabeled,
)
from s3vm_lib.base.classifier import BaseS3VM
from s3vm_lib.base.machine import BinaryFit
from s3vm_lib.calibration import CalibratedS3VM
from s3vm_lib.model_selection import S3VMSearchCV, WithUnlabeled
from s3vm_lib.objective import Problem
from s3vm_lib.utils import shortcuts
from s3vm_lib.utils.row_blocks import sized_slices

# --- Labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "unlabeled", "codes", "classes"),
    [
        ([-1, 1, 1, -1], None, [0, 1, 1, 0], [-1, 1]),
        ([-1, 1, 0, -1], 0, [0, 1, -1, 0], [-1, 1]),
        (["b", "a", "?", "b"], "?", [1, 0, -1, 1], ["a", "b"]),
        (["b", "a", None, "b"], None, [1, 0, -1, 1], ["a", "b"]),
        ([2.0, np.nan, 0.5], float("nan"), [1, -1, 0], [0.5, 2.0]),
        ([True, False, True], None, [1, 0, 1], [False, True]),
        (np.array(["b", "a", -1], dtype=object), -1, [1, 0, -1], ["a", "b"]),
        (["b", "a", -1], -1, [1, 0, -1], ["a", "b"]),
        (pd.Series(["b", "a", None], index=[5, 3, 1]), None, [1, 0, -1], ["a", "b"]),
        ([5, 7, 9, 5], None, [0, 1, 2, 0], [5, 7, 9]),
        ([1, 1], 1, [-1, -1], []),
    ],
)
def test_encode_labels(y, unlabeled, codes, classes):
    found, names = encode_labels(y, unlabeled)
    assert_array_equal(found, codes)
    assert names.tolist() == classes
    labeled = found >= 0
    assert names[found[labeled]].tolist() == [v for v, k in zip(y, labeled, strict=True) if k]


def test_encode_labels_refuses_a_matrix():
    with pytest.raises(ValueError, match=r"one-dimensional.*\(2, 2\)"):
        encode_labels([[1, 2], [3, 4]])


@pytest.mark.parametrize("absent", [np.nan, None, pd.NA])
def test_encode_labels_refuses_missing_labels_beside_a_marker(absent):
    for y in ([1, absent, 0, 2], np.array([1, absent, 0, 2], dtype=object)):
        with pytest.raises(ValueError, match=r"no missing labels .* unlabeled=0, row 1 is"):
            encode_labels(y, unlabeled=0)


@pytest.mark.parametrize("kind", ["M8[s]", "m8[h]"])
def test_dates_as_labels_have_no_room_for_minus_one(kind):
    X, dates = np.arange(12.0).reshape(6, 2), np.array([10, 20, 10, 20, 10, 20]).astype(kind)
    assert_array_equal(encode_labels(dates)[0], [0, 1] * 3)
    with pytest.raises(ValueError, match=r"y of dtype .* no -1 .*encode_labels"):
        mark_unlabeled(dates, np.arange(6) < 2)
    missing = dates.copy()
    missing[:2] = "NaT"
    with pytest.raises(ValueError, match=r"y of dtype .* no -1 .*encode_labels"):
        SVM(kernel="linear").fit(X, missing)
    model = SVM(kernel="linear").fit(X, missing, unlabeled_mask=np.isnat(missing))
    assert_array_equal(model.classes_, dates[:2])


@pytest.mark.parametrize(
    ("y", "mask", "expected"),
    [
        ([0, 1, 2], [True, False, False], [-1, 1, 2]),
        (["a", "b", "c"], [False, True, False], ["a", -1, "c"]),
        ([True, False], [False, True], [1, -1]),
        (np.array([3, 4], dtype=np.uint8), [True, False], [-1, 4]),
        ([0.5, 2.0], [False, True], [0.5, -1.0]),
        ([-1, 1], [True, False], [-1, 1]),
    ],
)
def test_mark_unlabeled(y, mask, expected):
    before = np.array(y)
    assert mark_unlabeled(y, mask).tolist() == expected
    assert_array_equal(np.array(y), before)


def test_mark_unlabeled_refuses_minus_one_as_a_label_and_other_masks():
    with pytest.raises(ValueError, match="encode_labels"):
        mark_unlabeled([-1, 1, 1], [False, False, True])
    with pytest.raises(ValueError, match=r"mask must be a boolean array of shape \(3,\)"):
        mark_unlabeled([0, 1, 1], [True, False])
    with pytest.raises(ValueError, match="boolean"):
        mark_unlabeled([0, 1, 1], [0, 0, 1])


def test_encode_then_mark_is_the_way_out_of_the_trap():
    codes, classes = encode_labels([-1, 1, 1, -1])
    y = mark_unlabeled(codes, [False, False, True, True])
    assert y.tolist() == [0, 1, -1, -1]
    assert classes.tolist() == [-1, 1]


# --- How files and tables mark unlabeled rows -----------------------------------------------------

TRUTH = np.arange(24) % 2
HIDDEN = np.arange(24) >= 6
X24 = np.column_stack([3.0 * TRUTH - 1.5, np.linspace(-1, 1, 24)])
SIGNS, WORDS = 2 * TRUTH - 1, np.array(["no", "yes"])[TRUTH]


def strings(marker):
    return np.where(HIDDEN, marker, WORDS)


def masked(labels):
    return np.ma.array(np.where(HIDDEN, labels[0], labels), mask=HIDDEN)


def polars(labels):
    return pytest.importorskip("polars").Series(list(labels))


def new_strings(labels, **options):
    if not hasattr(np.dtypes, "StringDType"):
        pytest.skip("NumPy 2 has them")
    return np.array(labels.tolist(), dtype=np.dtypes.StringDType(**options))


ZEROS = np.where(HIDDEN, 0, SIGNS)
NONE = np.where(HIDDEN, None, WORDS.astype(object))
GAPS = pd.Series(TRUTH, dtype="Int64").mask(HIDDEN)
# What becomes of the rows: read as unlabeled, or the name that the warning says, or an error.
MARKED = {
    "SVMlight: 0 among floats": (lambda: np.where(HIDDEN, 0.0, SIGNS), "0.0"),
    "SVMlin: 0 among integers": (lambda: np.where(HIDDEN, 0, SIGNS), "0"),
    "a list of them": (lambda: np.where(HIDDEN, 0, SIGNS).tolist(), "0"),
    "few zeros among floats": (lambda: np.where(np.arange(24) > 20, 0.0, SIGNS), "0.0"),
    "0 in three fifths": (lambda: np.where(np.arange(24) >= 10, 0, SIGNS), "0"),
    "0 beside three classes": (lambda: np.where(np.arange(24) == 9, 2.0, ZEROS), "0.0"),
    "SPSS: -999": (lambda: np.where(HIDDEN, -999, TRUTH), "-999"),
    "SPSS: -9 among floats": (lambda: np.where(HIDDEN, -9.0, TRUTH), "-9.0"),
    "a dash": (lambda: strings("-"), "'-'"),
    "UniverSVM: -3": (lambda: np.where(HIDDEN, -3, SIGNS), "-3"),
    "UniverSVM: -3 among floats": (lambda: np.where(HIDDEN, -3.0, SIGNS), "-3.0"),
    "KEEL: 'unlabeled'": (lambda: strings("unlabeled"), "'unlabeled'"),
    "Weka: '?'": (lambda: strings("?"), "'?'"),
    "Weka by SciPy: b'?'": (lambda: strings("?").astype("S"), TypeError),
    "nothing": (lambda: strings(""), "''"),
    "another spelling": (lambda: strings(" Unlabelled"), "' Unlabelled'"),
    "unknown": (lambda: strings("unknown").tolist(), "'unknown'"),
    "NaN as a string": (lambda: pd.Series(NONE).astype(str), ("'None'", "'nan'", None)),
    "NA as a string": (lambda: strings("<NA>"), "'<NA>'"),
    "sslearn: '-1'": (lambda: strings("-1"), ValueError),
    "scikit-learn: -1": (lambda: np.where(HIDDEN, -1, TRUTH), None),
    "-1 among floats": (lambda: np.where(HIDDEN, -1.0, TRUTH), None),
    "-1 among objects": (lambda: np.where(HIDDEN, -1, WORDS.astype(object)), None),
    "NaN": (lambda: np.where(HIDDEN, np.nan, TRUTH), None),
    "NaN beside a class -1": (lambda: np.where(HIDDEN, np.nan, SIGNS), ValueError),
    "None": (lambda: NONE, None),
    "pandas.NA": (lambda: pd.Series(NONE).astype("string"), None),
    "pandas.NA among integers": (lambda: GAPS, None),
    "pandas.NA in a column": (lambda: GAPS.to_frame("y"), None),
    "no category": (lambda: pd.Series(pd.Categorical(NONE)), None),
    "polars.null": (lambda: polars(NONE), None),
    "polars.null among integers": (lambda: polars(np.where(HIDDEN, None, TRUTH)), None),
    "a mask": (lambda: masked(TRUTH), None),
    "a mask on strings": (lambda: masked(WORDS), None),
    "a mask and a class -1": (lambda: masked(SIGNS), ValueError),
    "NumPy's strings": (lambda: new_strings(strings("?")), "'?'"),
    "NumPy's strings with None": (lambda: new_strings(NONE, na_object=None), None),
}


@pytest.mark.interface
@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("fitted", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", MARKED)
def test_no_marker_of_the_field_becomes_a_class_in_silence(kind, fitted):
    make, becomes = MARKED[kind]
    y, model = make(), ILS3VM(kernel="linear") if fitted == "partial_fit" else SVM(kernel="linear")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if isinstance(becomes, type):
            with pytest.raises(becomes):
                getattr(model, fitted)(X24, y)
            return
        getattr(model, fitted)(X24, y)
    said = [w for w in caught if "y holds the classes" in str(w.message)]
    if not said:
        assert becomes is None or None in becomes
        expected = SVM(kernel="linear").fit(X24, np.where(HIDDEN, -1, TRUTH))
        assert model.classes_.dtype.kind != "O" and model.classes_.size == 2
        assert_array_equal(model.predict(X24) == model.classes_[1], expected.predict(X24) == 1)
        return
    names = (becomes,) if isinstance(becomes, str) else becomes
    assert any(f"If {name} marks" in str(said[0].message) for name in names)
    assert said[0].filename == __file__  # the line that called


@pytest.mark.parametrize("kind", [k for k, (_, becomes) in MARKED.items() if type(becomes) is str])
def test_what_the_warning_says_is_the_way_out(kind):
    y = MARKED[kind][0]()
    with pytest.warns(UserWarning, match="y holds the classes") as caught:
        SVM(kernel="linear").fit(X24, y)
    marker = ast.literal_eval(re.search(r"unlabeled=(.*)\); if", str(caught[0].message)).group(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codes = encode_labels(y, unlabeled=marker)[0]
        assert_array_equal(codes[:6], TRUTH[:6])
        SVM(kernel="linear").fit(X24, codes)
        # The other way out: what is a class in spite of its name.
        SVM(kernel="linear").fit(X24, y, unlabeled_mask=np.arange(24) == 0)


@pytest.mark.parametrize(
    "y",
    [
        np.where(HIDDEN, -1, TRUTH),
        np.where(np.arange(24) >= 20, -1, TRUTH),
        np.where(HIDDEN, -1, TRUTH + 1),
        np.where(HIDDEN, -1, np.arange(24) % 3),
        np.where(HIDDEN, -1, TRUTH).astype(float),
        np.where(np.arange(24) >= 20, np.nan, TRUTH),
        np.where(np.arange(24) >= 20, np.nan, TRUTH).tolist(),
        TRUTH * 1.0,
        SIGNS - 5,
        SIGNS - 8,
        2 * (np.arange(24) % 3) - 2,
        np.where(np.arange(24) >= 20, -1.0, np.arange(24) % 3),
        np.where(np.arange(24) >= 16, -1, TRUTH),
        np.where(TRUTH, "+", "-"),
        np.array(["-", "0", "+"])[np.arange(24) % 3],
        np.where(HIDDEN, -1, WORDS.astype(object)),
        pd.Series(TRUTH, dtype=float).where(np.arange(24) < 20),
    ],
    ids=str,
)
def test_ordinary_labels_do_not_warn(y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FitWarning)
        SVM(kernel="linear").fit(X24, y)
        ILS3VM(kernel="linear").partial_fit(X24, y)


def test_markers_are_said_around_other_estimators_too():
    y = strings("?")
    for model in (WithUnlabeled(SVM(), X24), CalibratedS3VM(SVM()), SelfTrainingKNN()):
        with pytest.warns(UserWarning, match=r"If '\?' marks") as caught:
            model.fit(X24, y)
        assert len([w for w in caught if "marks" in str(w.message)]) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", FitWarning)
            model.fit(X24, y, unlabeled_mask=np.arange(24) == 0)


def test_masked_targets_are_unknown():
    y = X24 @ [1.0, 2.0]
    given = np.ma.array(np.where(HIDDEN, 1e9, y), mask=HIDDEN)
    models = [
        GKMRegressor(random_state=0).fit(X24, t) for t in (given, np.where(HIDDEN, np.nan, y))
    ]
    assert_array_equal(models[0].predict(X24), models[1].predict(X24))


def test_classes_that_are_named_are_believed():
    y = np.where(HIDDEN, 0, SIGNS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ILS3VM(kernel="linear").partial_fit(X24, y, classes=[0, 1])


def test_what_is_said_without_unlabeled_rows_names_the_classes():
    # 0 = "unlabeled" beside classes 1 and 2 is a class like any other.
    with pytest.warns(UserWarning, match=r"no unlabeled rows .*Its classes are \[0, 1, 2\]"):
        QNS3VM(kernel="linear", balance="labels").fit(X24, np.where(HIDDEN, 0, TRUTH + 1))


def test_nullable_integers_without_gaps_stay_integers():
    y = pd.Series([0, 1, 2, 0, 1, 2], dtype="Int64")
    with pytest.warns(UserWarning, match="no unlabeled rows"):
        classes = QNS3VM().fit(np.random.default_rng(0).normal(size=(6, 2)), y).classes_
    assert classes.dtype.kind == "i" and classes.tolist() == [0, 1, 2]


@pytest.mark.parametrize("large", [2**53, -(2**53) - 8])
def test_integers_beside_gaps_stay_the_integers_they_are(large):
    for container in (
        GAPS + large,
        masked(TRUTH + large),
        polars(np.where(HIDDEN, None, TRUTH + large)),
    ):
        model = SVM(kernel="linear").fit(X24, container)
        assert model.classes_.tolist() == [large, large + 1] and model.classes_.dtype == int
        assert model.score(X24, container) == 1
        codes, classes = encode_labels(container)
        assert classes.tolist() == [large, large + 1]
        assert_array_equal(codes, np.where(HIDDEN, -1, TRUTH))


@pytest.mark.parametrize(
    ("y", "marker"),
    [
        (np.array([b"a", b"?", b"b"]), "?"),
        (np.array(["a", "-1", "b"]), -1),
        (["a", "b", "a"], "?"),
        ([1, 2, 1], "0"),
        ([1.0, 2.0, -1.0], 0),
        (masked(WORDS).compressed(), ""),
    ],
)
def test_encode_labels_refuses_a_marker_that_is_not_there(y, marker):
    with pytest.raises(
        ValueError, match=rf"unlabeled={re.escape(repr(marker))} must be in y, .*\["
    ):
        encode_labels(y, unlabeled=marker)


@pytest.mark.parametrize("marker", [[1], (1, 2), np.array([1, 2, 3]), [[1]]], ids=repr)
def test_encode_labels_takes_one_marker(marker):
    with pytest.raises(ValueError, match="unlabeled must be one label or None, got "):
        encode_labels([1, 2, 3], marker)


def test_encode_labels_says_what_may_be_a_marker():
    for y, name in ((["a", "?", "b"], "'?'"), (np.array([b"a", b"?"]), "b'?'")):
        with pytest.warns(UserWarning, match=re.escape(f"If {name} marks")):
            encode_labels(y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encode_labels(["1", "-1"])[1].tolist() == ["-1", "1"]  # two classes need both
        assert encode_labels(["a", "none", "?"], unlabeled="?")[1].tolist() == ["a", "none"]


def test_encode_labels_reads_tables_and_generators():
    with pytest.raises(ValueError, match=r"one-dimensional, got an array of shape \(24, 1\)"):
        encode_labels(pd.DataFrame({"y": TRUTH}))
    codes, classes = encode_labels(v for v in ["b", "a", None])
    assert codes.tolist() == [1, 0, -1] and classes.tolist() == ["a", "b"]
    y = np.where(HIDDEN, -1, TRUTH)
    model = SVM(kernel="linear").fit(X24, (v for v in y.tolist()))
    assert_array_equal(model.dual_coef_, SVM(kernel="linear").fit(X24, y).dual_coef_)


def test_marks_are_added_to_every_container():
    for container in (masked(WORDS), pd.Series(NONE).astype("string"), GAPS):
        found = mark_unlabeled(container, np.arange(24) < 2)
        assert found[:2].tolist() == [-1, -1] and found[2] == container[2]


# --- What is said of rows that cannot be read -----------------------------------------------------

TABLE = pd.DataFrame(X24, columns=["size", "age"])
Y24 = np.where(HIDDEN, -1, TRUTH)


def replaced(value, dtype=object):
    table = TABLE.astype({"age": dtype})
    table.loc[3, "age"] = value
    return table


def sparse_with(value):
    X = X24.copy()
    X[3, 1] = value
    return sp.csr_matrix(X)


UNREADABLE = {
    "text": (replaced("old"), r"columns \['age'\] .*'old'.*OneHotEncoder or TargetEncoder"),
    "text in a list": ([[1.0, "old"]] * 24, r"columns \[1\] .*OneHotEncoder"),
    "categories": (TABLE.assign(age=pd.Categorical(WORDS)), r"columns \[('age'|1)\] .*OneHot"),
    "dates": (TABLE.assign(age=pd.Timestamp("2020")), r"'age'\] .* \.\.\.\): .* numbers of dates"),
    "durations": (TABLE.assign(age=pd.Timedelta(1)), r"columns \['age'\] .* numbers of dates"),
    "NaN": (replaced(np.nan, float), r"NaN in the columns \['age'\].*SimpleImputer"),
    "None": (replaced(None), r"NaN in the columns \['age'\].*SimpleImputer"),
    "NA": (replaced(pd.NA), r"NaN in the columns \['age'\].*SimpleImputer"),
    "NaN in an array": (replaced(np.nan, float).to_numpy(), r"NaN in the columns \[1\].*SimpleIm"),
    "NaN in CSR": (sparse_with(np.nan), r"NaN in the columns \[1\].*SimpleImputer"),
    "inf": (replaced(np.inf, float), r"infinity in the columns \['age'\]"),
    "inf in CSR": (sparse_with(-np.inf), r"infinity in the columns \[1\]"),
    "a mask": (np.ma.array(X24, mask=X24 > 1), r"no masked entries.*SimpleImputer"),
}


@pytest.mark.interface
@pytest.mark.parametrize("kind", UNREADABLE)
def test_rows_that_cannot_be_read_are_named(kind):
    X, message = UNREADABLE[kind]
    search = S3VMSearchCV(SVM(kernel="linear"), {"C": [1.0]}, cv=2)
    pool = TABLE if isinstance(X, pd.DataFrame) else X24
    for model, Z in (
        (SVM(kernel="linear"), X),
        (ILS3VM(), X),
        (GKMRegressor(), X),
        (SelfTrainingKNN(), X),
        (CalibratedS3VM(SVM(kernel="linear")), X),
        (search, X),
        (WithUnlabeled(SVM(kernel="linear"), X), pool),
    ):
        y = TRUTH if isinstance(model, WithUnlabeled) else Y24
        if kind == "categories" and isinstance(model, WithUnlabeled):
            continue  # scikit-learn's check lets them through, and makes an array of the table
        with pytest.raises((TypeError, ValueError), match=message) as caught:
            model.fit(Z, y)
        assert "HistGradient" not in str(caught.value)
        assert ("X_unlabeled" in str(caught.value)) == isinstance(model, WithUnlabeled)
    with pytest.raises((TypeError, ValueError), match=message):
        ILS3VM().partial_fit(X, Y24, classes=[0, 1])
    for model in (SVM(kernel="linear"), SelfTrainingKNN(), CalibratedS3VM(SVM(kernel="linear"))):
        with pytest.raises((TypeError, ValueError), match=message):
            model.fit(pool, Y24).predict(X)


def test_columns_of_other_names_are_what_is_said_whatever_they_hold():
    for table, message in (
        (
            TABLE.rename(columns={"age": "years"}).assign(years="old"),
            r"names should match.*\n- age",
        ),
        (TABLE.assign(more="old"), r"names should match.*\n- more"),
    ):
        with pytest.raises(ValueError, match=rf"(?s){message}") as caught:
            SVM(kernel="linear").fit(TABLE, Y24).predict(table)
        assert "categories" not in str(caught.value)
    with pytest.raises(TypeError, match="convert them all to strings"):
        SVM(kernel="linear").fit(TABLE.set_axis([0, "age"], axis=1).assign(age="old"), Y24)


@pytest.mark.parametrize("name", ["X_unlabeled", "unlabeled"])
def test_what_fit_takes_is_said_and_where_unlabeled_rows_belong(name):
    given, way = {name: X24}, "unlabeled rows belong into X, .*WithUnlabeled"
    for model in (SVM(), S3VC(), SafeS3VM(), GKMRegressor(), SelfTrainingKNN(), ILS3VM()):
        takes = rf"{type(model).__name__}\.fit takes X, y, .*unlabeled_mask, got {name}: "
        with pytest.raises(TypeError, match=takes + way):
            model.fit(X24, Y24, **given)
    with pytest.raises(TypeError, match=rf"partial_fit takes X, .*, classes, got {name}: {way}"):
        ILS3VM().partial_fit(X24, Y24, **given)
    with pytest.raises(TypeError, match=r"ILS3VM\.forget takes indices, got rows$"):
        ILS3VM().fit(X24, Y24).forget(rows=[0])


def test_a_masked_array_without_gaps_is_an_array():
    model = SVM(kernel="linear").fit(np.ma.array(X24, mask=False), np.ma.array(Y24, mask=False))
    assert_array_equal(model.coef_, SVM(kernel="linear").fit(X24, Y24).coef_)


def test_kernel_values_are_called_so():
    model = SVM(kernel="precomputed").fit(X24 @ X24.T, Y24)
    with pytest.raises(ValueError, match="a kernel value for each row and each of all training"):
        model.predict(X24)


@pytest.mark.parametrize(
    "model", [SVM(), ILS3VM(), GKMRegressor(), SelfTrainingKNN(), CalibratedS3VM(SVM())], ids=str
)
def test_unlabeled_rows_as_a_third_argument_are_shown_their_place(model):
    for rows in (X24, TABLE):
        with pytest.raises(ValueError, match=r"belong into X, with -1 in y.*WithUnlabeled"):
            model.fit(X24, Y24, rows)
    if hasattr(model, "partial_fit"):
        with pytest.raises(ValueError, match=r"belong into X, with -1 in y.*WithUnlabeled"):
            model.partial_fit(X24, Y24, X24, classes=[0, 1])


@pytest.mark.parametrize("foreign", ["X", "y"])
def test_arrays_of_other_libraries_are_refused_by_name(monkeypatch, foreign):
    class Tensor(list):
        device = "cpu"

    def refuse(*_, **__):  # as scikit-learn does with tensors where it dispatches
        raise TypeError("asarray(): argument 'dtype' must be torch.dtype, not type")

    monkeypatch.setattr(shortcuts, "validate_data", refuse)
    given = {"X": X24.tolist(), "y": Y24.tolist()}
    given[foreign] = Tensor(given[foreign])
    with pytest.raises(TypeError, match=r"torch\.dtype"):  # something else, without the dispatch
        SVM().fit(**given)
    monkeypatch.setattr(shortcuts, "get_config", lambda: {"array_api_dispatch": True})
    with pytest.raises(TypeError, match=r"must be NumPy arrays.*got .*Tensor"):
        SVM().fit(**given)


def test_who_has_probabilities_is_said():
    for model in (SVM(), QNS3VM().fit(X24, Y24)):
        assert not hasattr(model, "predict_proba") and not hasattr(type(model), "predict_proba")
        with pytest.raises(AttributeError, match=f"{type(model).__name__}.*CalibratedS3VM"):
            model.predict_proba(X24)
    assert hasattr(SelfTrainingKNN(), "predict_proba")


# --- What a solver is given -----------------------------------------------------------------------


class Recorder(BaseS3VM):
    """Keeps what it is asked to solve; its model is the mean of the labels it sees."""

    def __init__(self, *, C=1.0, C_star=None, kernel="rbf", gamma="scale", balance="labels",
                 class_weight=None, fail_at=None):  # fmt: skip
        self.C = C
        self.C_star = C_star
        self.kernel = kernel
        self.gamma = gamma
        self.balance = balance
        self.class_weight = class_weight
        self.fail_at = fail_at
        self.degree, self.coef0, self.sigma_f = 3, 0.0, 1.0
        self.tol, self.max_iter, self.verbose, self.callback = 1e-3, 10, 0, None

    def _prepare(self, data):
        self.data_ = data
        self.problems_ = []
        return self._penalties(data)

    def _problem(self, data, ratio):
        return Problem(kernel=data.kernel, ratio=ratio)

    def _audited(self, X, data, problems, fits):
        return fits  # the outputs below are not those of the coefficients

    def _fit_binary(self, data, shared, t, problem, index):
        if index == self.fail_at:
            raise RuntimeError("the solver gave up")
        self.problems_.append((t, problem.ratio, shared))
        outputs = np.full(t.size, np.nan)
        labeled = t != 0
        outputs[labeled] = t[labeled]
        dual = data.loss_weight * t
        return BinaryFit(dual, None, 0.25, outputs, 1.0 + index, 3 + index, "converged", [index])


X6 = np.array([[0.0, 1], [1, 0], [2, 2], [3, 1], [0, 3], [1, 1]])
Y6 = np.array([4, 7, -1, 7, -1, 7])


def test_targets_are_signs_with_zero_for_unlabeled_rows():
    model = Recorder().fit(X6, Y6)
    ((t, ratio, penalties),) = model.problems_
    assert_array_equal(t, [-1, 1, 0, 1, 0, 1])
    assert ratio == 0.75
    assert penalties == (1.0, 2.0)
    assert_array_equal(model.classes_, [4, 7])
    assert_array_equal(model.support_, [0, 1, 3, 5])
    assert_array_equal(model.dual_coef_, [[-1, 1, 1, 1]])
    assert_array_equal(model.support_vectors_, X6[[0, 1, 3, 5]])
    assert (model.objective_, model.n_iter_, model.history_) == (1.0, 3, [0])
    assert model.gamma_ == pytest.approx(1 / (2 * X6.var()))


def test_weights_reach_the_share_and_the_default_of_C_star():
    weight = np.array([3.0, 0.5, 2, 0.25, 2, 0.25])
    model = Recorder(C=2.0).fit(X6, Y6, sample_weight=weight)
    ((_, ratio, penalties),) = model.problems_
    assert ratio == pytest.approx(1 / 4)
    assert penalties == (2.0, pytest.approx(2.0 * 4 / 4))
    assert_array_equal(model.data_.sample_weight, weight)
    assert_array_equal(model.data_.loss_weight, weight)


def test_a_given_ratio_and_C_star_are_passed_on():
    ((_, ratio, penalties),) = Recorder(balance=0.4, C_star=0.125).fit(X6, Y6).problems_
    assert (ratio, penalties) == (0.4, (1.0, 0.125))
    ((_, ratio, _),) = Recorder(balance=None).fit(X6, Y6).problems_
    assert ratio is None


def test_without_unlabeled_rows_there_is_no_balance_and_no_C_star():
    ((t, ratio, penalties),) = (
        Recorder(balance=0.4, C_star=5.0).fit(X6, [0, 0, 0, 1, 1, 1]).problems_
    )
    assert ratio is None
    assert penalties == (1.0, 0.0)
    assert np.all(t != 0)


def test_rows_of_weight_zero_are_dropped_and_still_transduced():
    weight = np.array([1.0, 0, 0, 1, 1, 1])
    model = Recorder().fit(X6, Y6, sample_weight=weight)
    assert_array_equal(model.data_.rows, [0, 3, 4, 5])
    assert_array_equal(model.data_.X, X6[[0, 3, 4, 5]])
    assert_array_equal(model.support_, [0, 3, 5])
    assert model.transduction_.shape == (6,)
    assert_array_equal(model.transduction_[[0, 1, 3, 5]], [4, 7, 7, 7])
    assert_array_equal(model.transduction_[[2, 4]], model.predict(X6[[2, 4]]))
    assert model.gamma_ == pytest.approx(1 / (2 * X6[[0, 3, 4, 5]].var()))


def test_rows_of_weight_zero_are_dropped_from_both_sides_of_a_gram_matrix():
    K = X6 @ X6.T
    weight = np.array([1.0, 0, 1, 1, 1, 1])
    model = Recorder(kernel="precomputed").fit(K, Y6, sample_weight=weight)
    kept = [0, 2, 3, 4, 5]
    assert_array_equal(model.data_.X, K[np.ix_(kept, kept)])
    assert_array_equal(model.support_, [0, 3, 5])
    expected = K[:, [0, 3, 5]] @ [-1, 1, 1] + 0.25
    assert_allclose(model.decision_function(K), expected)


def test_class_weights_multiply_labeled_rows_only():
    model = Recorder(class_weight={4: 2.0}).fit(X6, Y6, sample_weight=np.full(6, 0.5))
    assert_array_equal(model.data_.loss_weight, [1, 0.5, 0.5, 0.5, 0.5, 0.5])
    balanced = Recorder(class_weight="balanced").fit(X6, Y6)
    assert_allclose(balanced.data_.loss_weight, [2, 2 / 3, 1, 2 / 3, 1, 2 / 3])
    weight = np.array([3.0, 1, 5, 0.5, 5, 0.5])
    heavy = Recorder(class_weight="balanced").fit(X6, Y6, sample_weight=weight).data_
    assert heavy.loss_weight[0] == pytest.approx(heavy.loss_weight[[1, 3, 5]].sum())
    assert heavy.loss_weight[Y6 >= 0].sum() == pytest.approx(weight[Y6 >= 0].sum())


def test_one_problem_per_class_beyond_two():
    y = np.array([0, 1, 2, -1, 2, -1])
    model = Recorder().fit(X6, y)
    assert len(model.problems_) == 3
    for k, (t, ratio, _) in enumerate(model.problems_):
        assert_array_equal(t, np.where(y == k, 1, np.where(y < 0, 0, -1)))
        assert ratio == np.mean(y[y >= 0] == k)
    assert model.dual_coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert_array_equal(model.objective_, [1, 2, 3])
    assert model.history_ == [[0], [1], [2]]
    assert model.termination_condition_ == ["converged"] * 3
    assert model.n_iter_ == 5
    scores = model.decision_function(X6)
    assert scores.shape == (6, 3)
    assert_array_equal(model.predict(X6), np.argmax(scores, axis=1))


def test_one_number_cannot_balance_three_classes():
    with pytest.raises(
        ValueError, match=r"balance must be a name, None or a dict .* with 3 classes, got 0\.3"
    ):
        Recorder(balance=0.3).fit(X6, [0, 1, 2, -1, 2, -1])


def test_csr_data_arrive_sorted_and_as_csr():
    data = sp.csr_matrix(X6)
    for start, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        data.indices[start:end] = data.indices[start:end][::-1]
        data.data[start:end] = data.data[start:end][::-1]
    data.has_sorted_indices = False
    for X in (data, data.tocoo(), sp.csc_array(X6)):
        model = Recorder().fit(X, Y6)
        assert model.data_.X.format == "csr"
        assert model.data_.X.has_sorted_indices
        assert_array_equal(model.data_.X.toarray(), X6)


def test_a_solver_that_raises_leaves_the_estimator_as_it_was():
    model = Recorder().fit(X6, Y6)
    before = dict(model.__dict__)
    model.fail_at = 2
    before["fail_at"] = 2
    with pytest.raises(RuntimeError, match="gave up"):
        model.fit(X6, [0, 1, 2, -1, 2, -1])
    assert model.__dict__ == before
    fresh = Recorder(fail_at=0)
    with pytest.raises(RuntimeError, match="gave up"):
        fresh.fit(X6, Y6)
    assert not hasattr(fresh, "classes_")
    assert not hasattr(fresh, "n_features_in_")


def test_attributes_of_an_earlier_fit_with_another_kernel_are_gone():
    model = Recorder().fit(X6, Y6)
    assert hasattr(model, "support_vectors_")
    model.set_params(kernel="precomputed").fit(X6 @ X6.T, Y6)
    assert not hasattr(model, "support_vectors_")


def test_attributes_of_the_classes_are_those_of_their_problems():
    y = np.array([4, 7, -1, 9, -1, 7])
    weight = np.full(6, 9.0)  # no constant has as low an objective
    model = Recorder(balance=None).fit(X6, y, weight)
    assert model.n_iter_ == 5
    assert_array_equal(model.objective_, [1.0, 2.0, 3.0])
    assert model.history_ == [[0], [1], [2]]
    assert model.termination_condition_ == ["converged"] * 3


def test_an_output_of_zero_is_the_first_class():
    assert BaseS3VM._decide(np.array([[-1.0], [0.0], [1e-300]])).tolist() == [0, 0, 1]


@pytest.mark.parametrize("changes", [dict(gamma=9.0), dict(kernel="linear")])
def test_prediction_is_that_of_the_fit_whatever_is_set_since(changes):
    model = Recorder().fit(X6, Y6)
    before = model.decision_function(X6)
    model.set_params(**changes)
    assert_array_equal(model.decision_function(X6), before)


@pytest.mark.parametrize("value", [1e151, -1e151])
def test_entries_whose_squares_overflow_are_refused(value):
    X = X6.copy()
    X[2, 1] = value
    with pytest.raises(ValueError, match=r"X must be 0 or between 1e-150 and 1e\+150"):
        Recorder().fit(X, Y6)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({4: 0.0}, "class_weight must be positive"),
        ({4: np.inf}, "class_weight must be positive"),
        ({5: 2.0}, r"class_weight names \[5\], which are not among the classes \[4, 7\]"),
    ],
)
def test_class_weights_that_make_no_sense_are_named(class_weight, message):
    with pytest.raises(ValueError, match=message):
        Recorder(class_weight=class_weight).fit(X6, Y6)


def test_balanced_class_weights_count_weights():
    weight = np.array([3.0, 1, 1, 1, 1, 2])
    data = Recorder(class_weight="balanced").fit(X6, Y6, sample_weight=weight).data_
    factor = data.loss_weight / data.sample_weight
    # Seven units of weight, two classes: 3 of the first and 4 of the second.
    assert_allclose(factor, np.array([7 / 6, 7 / 8, 1, 7 / 8, 1, 7 / 8]))


def test_prediction_in_chunks_equals_prediction_at_once(monkeypatch):
    model = Recorder().fit(X6, Y6)
    new = np.random.default_rng(0).standard_normal((37, 2))
    expected = model.decision_function(new)
    small = partial(sized_slices, size=20, least=3)
    assert len(small(37, model.support_.size)) > 5
    monkeypatch.setattr("s3vm_lib.base.machine.sized_slices", small)
    assert_allclose(model.decision_function(new), expected, rtol=1e-14)


def test_capabilities_are_read_off_the_estimators():
    classes = (SVM, QNS3VM, GKMRegressor)
    for cls, row in zip(classes, capabilities(classes), strict=True):
        assert row["estimator"] == cls.__name__
        assert row["kernels"] is True and row["weights"] is True and row["online"] is False
        assert row["sparse"] is cls().__sklearn_tags__().input_tags.sparse is True
        assert row["largest_n"] >= 10_000 and row["memory"]


def test_versions_are_those_of_all_that_runs(capsys, monkeypatch):
    """Of each package that the library needs but tqdm, which computes nothing; numba is missing."""
    with open(Path(__file__).parents[1] / "pyproject.toml", "rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    names = [re.match(r"[\w-]+", line)[0] for line in needed]
    version = metadata.version

    def without_numba(name):
        if name == "numba":
            raise metadata.PackageNotFoundError
        return version(name)

    monkeypatch.setattr(metadata, "version", without_numba)
    s3vm_lib.show_versions()
    said = capsys.readouterr().out.splitlines()
    assert "numba is not installed" in said
    for name in set(names) - {"numba", "tqdm"}:
        assert f"{name} {version(name)}" in said
