"""The command line: from a file to predictions, and errors that leave nothing behind."""

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs

from s3vm_lib.__main__ import main
from s3vm_lib.exchange import readers


def clouds(n=80, seed=0):
    X, y = make_blobs(n, centers=[[0, 0, 0], [4, 4, 4]], random_state=seed)
    partly = y.copy()
    partly[12:] = -1
    return X, y, partly


def frame(with_labels=True):
    X, y, partly = clouds()
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table.loc[3, "a"] = np.nan
    table["town"] = np.where(y == 1, "Rome", "Oslo")
    if with_labels:
        table["good"] = [None if k < 0 else ("no", "yes")[k] for k in partly]
    return table, np.array(["no", "yes"])[y]


def test_a_csv_file_with_gaps_and_text(tmp_path, capsys):
    table, truth = frame()
    table.to_csv(tmp_path / "rows.csv", index=False)
    out, kept = tmp_path / "out.csv", tmp_path / "model"
    options = ["--label", "good", "--predict", str(out), "--model", str(kept)]
    assert main(["fit", str(tmp_path / "rows.csv"), *options]) == 0
    said = capsys.readouterr().out
    assert (
        "80 rows of 4 columns" in said and "class yes: 9" in said and "without a label: 68" in said
    )
    found = pd.read_csv(out)
    assert list(found.columns) == ["row", "prediction", "margin"] and (found.margin >= 0).all()
    assert np.mean(found.prediction == truth) > 0.97
    new, truth = frame(with_labels=False)
    new["town"] = "Lima"  # unknown, and in another order
    new[["town", "c", "b", "a"]].to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(kept), str(tmp_path / "new.csv"), "--predict", str(out)]) == 0
    assert np.mean(pd.read_csv(out).prediction == truth) > 0.9
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "model",
        "new.csv",
        "out.csv",
        "rows.csv",
    ]


@pytest.mark.parametrize("zero", [True, False])
def test_an_svmlight_file(zero, tmp_path, capsys):
    X, y, partly = clouds()
    classes = [-1, 1] if zero else [3, 5]
    readers.write_svmlight(tmp_path / "rows", X, partly, classes)
    out, kept = tmp_path / "out", tmp_path / "model"
    mark = [] if zero else ["--unlabeled", "0"]
    done = main(["fit", str(tmp_path / "rows"), *mark, "--predict", str(out), "--model", str(kept)])
    assert done == 0 and "first index 1" in capsys.readouterr().out
    assert np.mean(pd.read_csv(out).prediction == np.array(classes)[y]) > 0.97
    narrow = X.copy()
    narrow[:, 2] = 0.0  # the file does not show the third column
    readers.write_svmlight(tmp_path / "new", narrow, np.full(80, -1))
    assert main(["predict", str(kept), str(tmp_path / "new"), "--predict", str(out)]) == 0
    assert len(pd.read_csv(out)) == 80


def test_new_rows_have_the_columns_of_the_fit(tmp_path):
    """A file whose first index is 0, and a new one in which column 0 does not occur."""
    X, _, partly = clouds()
    lines = [
        f"{(0 if k < 0 else 2 * k - 1)} 0:{a} 1:{b} 2:{c}"
        for k, (a, b, c) in zip(partly, X, strict=True)
    ]
    (tmp_path / "rows").write_text("\n".join(lines))
    (tmp_path / "new").write_text("0 2:4\n0 1:4\n")
    kept, out = str(tmp_path / "model"), str(tmp_path / "out")
    assert main(["fit", str(tmp_path / "rows"), "--model", kept]) == 0
    assert main(["predict", kept, str(tmp_path / "new"), "--predict", out]) == 0
    model = joblib.load(kept)["model"]
    wanted = np.abs(model.decision_function(sp.csr_matrix([[0, 0, 4.0], [0, 4.0, 0]])))
    np.testing.assert_allclose(pd.read_csv(out).margin, wanted, rtol=1e-5)


@pytest.mark.parametrize("mark", ["0", "?", "9"])
def test_a_marker_of_choice(mark, tmp_path):
    table, _ = frame()
    table["good"] = table["good"].map({"no": "4", "yes": "5"}).fillna(mark)
    table.to_csv(tmp_path / "rows.csv", index=False)
    options = ["--label", "good", "--unlabeled", mark, "--predict", str(tmp_path / "out")]
    assert main(["fit", str(tmp_path / "rows.csv"), *options]) == 0
    assert set(pd.read_csv(tmp_path / "out").prediction.astype(str)) == {"4", "5"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "none.csv", "--label", "good"], "none.csv"),
        (["fit", "rows.csv"], "--label must name"),
        (["fit", "rows.csv", "--label", "bad"], "label must be one of the columns"),
        (["fit", "marked.csv", "--label", "good"], "pass unlabeled="),
        (["predict", "other", "rows.csv"], "must be a model"),
        (["predict", "model", "short.csv"], "columns are missing"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, _ = frame()
    table.to_csv("rows.csv", index=False)
    table.fillna({"good": "?"}).to_csv("marked.csv", index=False)
    table[["a"]].to_csv("short.csv", index=False)
    joblib.dump([1], "other")
    assert main(["fit", "rows.csv", "--label", "good", "--model", "model"]) == 0
    capsys.readouterr()
    before = sorted(tmp_path.iterdir())
    assert main([*arguments, "--predict", "out"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ") and message in said.err and said.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
