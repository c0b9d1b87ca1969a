"""Files of other programs: each format, each marker of a row without a label, and bad files."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.io import savemat
from sklearn.datasets import load_svmlight_file

from s3vm_lib import SVM
from s3vm_lib.exchange import readers as r


def file(text):
    return io.BytesIO(text.encode())


def dense(table):
    return table.X.toarray() if sp.issparse(table.X) else np.asarray(table.X)


# --- SVMlight, LIBSVM, UniverSVM, SVMlin ----------------------------------------------------------


def test_svmlight_marks_a_row_without_a_label_by_zero():
    table = r.read_svmlight(file("1 1:2 3:4 # first\n-1 2:.5\n\n0 1:1\n"))
    X, y = table
    assert X.toarray().tolist() == [[2, 0, 4], [0, 0.5, 0], [1, 0, 0]] and y.tolist() == [1, 0, -1]
    assert table.classes.tolist() == [-1, 1] and table.index_base == 1
    assert str(table).endswith("class -1: 1, class 1: 1, without a label: 1")
    assert X.indices.dtype == np.int32  # SVC refuses 64 bits
    SVM(kernel="linear").fit(X, y)


@pytest.mark.parametrize("targets", [(0, 1), (0, 1, 2), (-1, 0), (-3, -1, 1), (-9, 1), (0, 3, 7)])
def test_a_target_that_may_be_a_marker_is_asked_about(targets):
    text = "\n".join(f"{t} 1:1" for t in targets)
    mark = min(targets) if min(targets) < -1 else 0
    with pytest.raises(ValueError, match=f"unlabeled={mark} if"):
        r.read_svmlight(file(text))
    assert r.read_svmlight(file(text), unlabeled=None).y.tolist() == list(range(len(targets)))
    marked = r.read_svmlight(file(text), unlabeled=mark)
    assert (marked.y == -1).tolist() == [t == mark for t in targets]


@pytest.mark.parametrize("targets", [(-1, 1), (1, 2, 3), (1,)])
def test_targets_that_mark_nothing_are_classes(targets):
    table = r.read_svmlight(file("\n".join(f"{t} 1:1" for t in targets)))
    assert table.classes.tolist() == list(targets) and np.all(table.y >= 0)


def test_a_marker_that_does_not_occur_is_refused():
    with pytest.raises(ValueError, match="unlabeled=7 must be in y"):
        r.read_svmlight(file("1 1:1\n-1 1:2"), unlabeled=7)


def test_several_files_have_one_index_base():
    first, second = "1 0:1 2:3\n-1 1:1\n", "1 1:5\n0 2:7\n"
    table = r.read_svmlight(file(first), file(second))
    assert dense(table).tolist() == [[1, 0, 3], [0, 1, 0], [0, 5, 0], [0, 0, 7]]
    assert table.index_base == 0 and table.extra["file"].tolist() == [0, 0, 1, 1]
    assert dense(r.read_svmlight(file(second), index_base=0, unlabeled=0)).tolist() == [
        [0, 5, 0],
        [0, 0, 7],
    ]
    assert r.read_svmlight(file(first), n_features=9).X.shape == (2, 9)


def test_words_beside_the_features_are_kept():
    text = "1 qid:3 1:1 2:1\n-1 qid:4 sid:7 cost:2.5 2:1\n0 1:1 # cost: none\n"
    table = r.read_svmlight(file(text))
    assert dense(table).tolist() == [[1, 1], [0, 1], [1, 0]]
    nan = np.nan
    for word, values in (("qid", [3, 4, nan]), ("sid", [nan, 7, nan]), ("cost", [nan, 2.5, nan])):
        np.testing.assert_array_equal(table.extra[word], values)
    both = r.read_svmlight(file("1 1:1"), file("-1 cost:2 1:1"))
    np.testing.assert_array_equal(both.extra["cost"], [nan, 2])


@pytest.mark.parametrize("name", ["rows.txt", "rows.gz", "rows.bz2"])
def test_files_may_be_packed(name, tmp_path):
    with r._OPEN.get(Path(name).suffix, open)(tmp_path / name, "wb") as stream:
        stream.write(b"1 1:1\n-1 2:1\n")
    assert r.read_svmlight(tmp_path / name).y.tolist() == [1, 0]
    assert r.read_svmlight(str(tmp_path / name)).y.tolist() == [1, 0]


@pytest.mark.parametrize("text", ["1 1:x\n", "a 1:1\n", "1 -1:2\n", "1.5 1:1\n", "nan 1:1\n"])
def test_malformed_svmlight(text):
    with pytest.raises(ValueError, match="must"):
        r.read_svmlight(file(text))


def test_parameters_of_svmlight():
    with pytest.raises(ValueError, match="index_base must be 'auto', 0 or 1, got 2"):
        r.read_svmlight(file("1 1:1"), index_base=2)
    with pytest.raises(ValueError, match="at least one file"):
        r.read_svmlight()


def test_universvm_marks_by_minus_three_or_by_a_file():
    text = "1 1:1\n-1 2:1\n-3 1:2\n"
    table = r.read_universvm(file(text))
    assert table.y.tolist() == [1, 0, -1] and table.classes.tolist() == [-1, 1]
    table = r.read_universvm(file("0 1:1\n1 2:1\n2 1:3\n"), file("5 3:1\n0 1:2\n"))
    assert table.y.tolist() == [0, 1, 2, -1, -1] and table.classes.tolist() == [0, 1, 2]
    assert table.X.shape == (5, 3)
    assert r.read_universvm(file("1 1:1\n-1 2:1\n")).y.tolist() == [1, 0]


def test_svmlin_has_labels_in_a_file_of_their_own():
    rows = "1:1 3:2\n2:4\n\n1:1\n"
    table = r.read_svmlin(file(rows), file("1\n-1\n0\n0\n"))
    assert dense(table).tolist() == [[1, 0, 2], [0, 4, 0], [0, 0, 0], [1, 0, 0]]
    assert table.y.tolist() == [1, 0, -1, -1] and table.classes.tolist() == [-1, 1]
    assert r.read_svmlin(file(rows)).y.tolist() == [-1] * 4
    with pytest.raises(ValueError, match="each of the 4 rows, got 2"):
        r.read_svmlin(file(rows), file("1\n-1\n"))
    with pytest.raises(ValueError, match="labels_file must hold numbers"):
        r.read_svmlin(file(rows), file("+\n-\n+\n+\n"))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_written_is_read_again(seed, tmp_path):
    rng = np.random.default_rng(seed)
    n_classes, n, d = int(rng.integers(2, 5)), int(rng.integers(4, 30)), int(rng.integers(1, 8))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-12, 12, size=d)
    X[rng.random((n, d)) < 0.5] = 0.0
    X[0] = 1.0  # no column is empty
    y = rng.integers(-1, n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)[:n]
    y[-1] = -1
    rows = sp.csr_matrix(X) if seed % 2 else X
    r.write_svmlight(tmp_path / "rows", rows, y)
    table = r.read_svmlight(tmp_path / "rows", unlabeled=0)
    np.testing.assert_allclose(table.X.toarray(), X, rtol=1e-15)
    assert np.array_equal(table.y, y) and table.index_base == 1
    wanted = [-1, 1] if n_classes == 2 else list(range(1, n_classes + 1))
    assert table.classes.tolist() == wanted
    _, targets = load_svmlight_file(str(tmp_path / "rows"))
    assert np.array_equal(targets == 0, y < 0)


def test_a_writer_refuses_what_a_reader_would_take_for_something_else(tmp_path):
    X, y = np.eye(3), [0, 1, -1]
    for options, message in (
        ({"unlabeled": None}, "must be a number for 1 rows"),
        ({"classes": [0, 1]}, "unlabeled must be no class, got 0"),
        ({"classes": [1]}, "classes must have 2 entries, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            r.write_svmlight(tmp_path / "rows", X, y, **options)
    with pytest.raises(ValueError, match="X must be finite"):
        r.write_svmlight(tmp_path / "rows", X * np.nan, y)
    assert not (tmp_path / "rows").exists()
    r.write_svmlight(tmp_path / "rows", X[:2], y[:2], classes=[0, 1], unlabeled=None)
    assert r.read_svmlight(tmp_path / "rows", unlabeled=None).classes.tolist() == [0, 1]


# --- KEEL, Weka, Percolator -----------------------------------------------------------------------

ARFF = """% a comment
@RELATION weather
@ATTRIBUTE temperature NUMERIC
@ATTRIBUTE outlook {sunny, rainy}
@ATTRIBUTE play {yes, no}
@DATA
21.5, sunny, yes
?, rainy, no
18, ?, ?
"""
KEEL = """@relation toy
@attribute width real[0.0,5.0]
@attribute count integer [1, 9]
@attribute colour{red, blue}
@attribute class {a, b}
@inputs width, count, colour
@outputs class
@data
1.5, 3, red, a
2.5, 9, blue, unlabeled
<null>, 1, red, b
"""
PIN = (
    "SpecId\tLabel\tScanNr\tExpMass\tscore\tcharge\tPeptide\tProteins\n"
    "DefaultDirection\t-\t-\t-\t1\t0\n"
    "t1\t1\t7\t900.5\t2.5\t2\tK.AC.D\tP1\tP2\n"
    "d1\t-1\t8\t901.5\t.5\t3\tK.CA.D\trev_P1\n"
)


def test_arff_marks_gaps_and_missing_labels_alike():
    table = r.read_arff(file(ARFF))
    assert table.names == ["temperature", "outlook=sunny", "outlook=rainy"]
    nan = np.nan
    np.testing.assert_array_equal(table.X, [[21.5, 1, 0], [nan, 0, 1], [18, nan, nan]])
    assert table.y.tolist() == [1, 0, -1] and table.classes.tolist() == ["no", "yes"]
    by_outlook = r.read_arff(file(ARFF), "outlook")
    assert by_outlook.y.tolist() == [1, 0, -1] and by_outlook.names[0] == "temperature"
    number = r.read_arff(
        file(ARFF.replace("{yes, no}", "numeric").replace("yes", "1").replace("no\n", "0\n"))
    )
    assert number.y.tolist() == [1, 0, -1]


def test_keel_marks_by_a_word():
    table = r.read_keel(file(KEEL))
    assert table.names == ["width", "count", "colour=red", "colour=blue"]
    np.testing.assert_array_equal(table.X, [[1.5, 3, 1, 0], [2.5, 9, 0, 1], [np.nan, 1, 1, 0]])
    assert table.y.tolist() == [0, -1, 1] and table.classes.tolist() == ["a", "b"]
    assert r.read_keel(file(KEEL.replace("{a, b}", "{a, b, unlabeled}"))).y.tolist() == [0, -1, 1]
    assert r.read_keel(file(KEEL), "colour").classes.tolist() == ["blue", "red"]


def test_pin_keeps_lists_of_proteins_and_reads_scores():
    table = r.read_pin(file(PIN))
    assert table.names == ["score", "charge"] and table.X.tolist() == [[2.5, 2], [0.5, 3]]
    assert table.y.tolist() == [1, 0] and table.classes.tolist() == [-1, 1]
    assert table.extra["Proteins"] == [["P1", "P2"], ["rev_P1"]]
    assert table.extra["SpecId"].tolist() == ["t1", "d1"]


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (r.read_arff, "no header", "ARFF"),
        (r.read_arff, ARFF.replace("{sunny, rainy}", "string"), "ARFF"),
        (r.read_arff, ARFF.replace("21.5", "warm"), "ARFF"),
        (r.read_arff, ARFF.replace("rainy, no", "snow, no"), "ARFF"),
        (r.read_keel, KEEL.replace("@data", "data"), "@data"),
        (r.read_keel, KEEL.replace("blue, unl", "green, unl"), "ARFF"),
        (r.read_pin, "SpecId\tscore\n", "Label"),
        (r.read_pin, "", "Label"),
        (r.read_pin, PIN.replace("d1\t-1", "d1\t0"), "Label must be 1 or -1, got 0"),
        (r.read_pin, PIN.replace("2.5", "high"), "'score' must hold numbers"),
        (r.read_pin, PIN + "x\t1\n", "row 2 must have 8 entries, got 2"),
    ],
)
def test_malformed_headers(read, text, message):
    with pytest.raises(ValueError, match=message):
        read(file(text))


def test_a_label_that_is_no_attribute():
    with pytest.raises(ValueError, match=r"label must be one of .* got 'x'"):
        r.read_arff(file(ARFF), "x")


# --- MATLAB files and tables ----------------------------------------------------------------------


def test_splits_of_the_ssl_book_begin_with_one(tmp_path):
    X, y = np.arange(10.0).reshape(5, 2), np.array([[1], [-1], [1], [-1], [1]])
    savemat(tmp_path / "data.mat", {"X": X, "y": y})
    savemat(
        tmp_path / "splits.mat", {"idxLabs": [[1, 2], [5, 4]], "idxUnls": [[3, 4, 5], [1, 2, 3]]}
    )
    for split, wanted in ((0, [1, 0, -1, -1, -1]), (1, [-1, -1, -1, 0, 1])):
        table = r.read_ssl_book(tmp_path / "data.mat", tmp_path / "splits.mat", split)
        assert table.y.tolist() == wanted and np.array_equal(table.X, X)
        assert table.extra["truth"].tolist() == [1, 0, 1, 0, 1]
    assert r.read_ssl_book(tmp_path / "data.mat").y.tolist() == [1, 0, 1, 0, 1]
    with pytest.raises(ValueError, match="split must be from 0 to 1, got 2"):
        r.read_ssl_book(tmp_path / "data.mat", tmp_path / "splits.mat", 2)
    savemat(tmp_path / "data.mat", {"T": sp.csc_matrix(X.T), "y": y.astype(np.uint8) % 2})
    table = r.read_ssl_book(tmp_path / "data.mat")
    assert np.array_equal(table.X.toarray(), X) and table.X.format == "csr"
    savemat(tmp_path / "data.mat", {"y": y})
    with pytest.raises(ValueError, match=r"X .or T. and y"):
        r.read_ssl_book(tmp_path / "data.mat")


FRAME = {"age": [3, None, 5, 6], "kind": ["a", "b", "a", None], "good": ["yes", None, "no", None]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_missing_labels_of_data_frames(make, tmp_path):
    table = r.read_table(make(FRAME), "good")
    assert table.y.tolist() == [1, -1, 0, -1] and table.classes.tolist() == ["no", "yes"]
    assert table.names == ["age", "kind"] and list(table.X.columns) == ["age", "kind"]
    with pytest.raises(ValueError, match=r"label must be one of the columns .* got 'bad'"):
        r.read_table(make(FRAME), "bad")


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_files_with_a_label_column(ending, tmp_path):
    path = tmp_path / f"rows.{ending}"
    pd.DataFrame(FRAME).to_csv(path, sep="\t" if ending == "tsv" else ",", index=False)
    table = r.read_table(path, "good")
    assert table.y.tolist() == [1, -1, 0, -1] and table.X.shape == (4, 2)
    assert np.isnan(table.X["age"][1])


@pytest.mark.parametrize(
    ("labels", "mark"),
    [
        (["yes", "?", "no"], "?"),
        (["yes", "unlabeled", "no"], "unlabeled"),
        (["a", "unknown", "b"], "unknown"),
        ([-1, 0, 1], -1),
        ([-1, 3, 7], -1),
        ([-3, -1, 1], -3),
        (["-1", "1", "0"], "-1"),
    ],
)
def test_a_label_that_may_be_a_marker_is_asked_about(labels, mark):
    frame = pd.DataFrame({"x": range(3), "y": labels})
    with pytest.raises(ValueError, match="unlabeled"):
        r.read_table(frame, "y")
    assert (r.read_table(frame, "y", unlabeled=mark).y == -1).sum() == 1


@pytest.mark.parametrize(
    ("labels", "codes"),
    [
        ([0, 1, None], [0, 1, -1]),
        ([-1, 1, None], [0, 1, -1]),
        ([True, False, None], [1, 0, -1]),
        ([0, 1, 1], [0, 1, 1]),
        ([-1, 1, 1], [0, 1, 1]),
    ],
)
def test_a_missing_entry_marks_beside_any_numbers(labels, codes):
    column = pd.Series(labels, dtype="object").convert_dtypes()
    frame = pd.DataFrame({"x": range(3), "y": column})
    assert r.read_table(frame, "y").y.tolist() == codes
    assert r.read_table(pl.DataFrame({"x": [0, 1, 2], "y": labels}), "y").y.tolist() == codes
