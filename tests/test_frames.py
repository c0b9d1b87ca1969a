"""Data frames of pandas and polars, however they hold numbers: names kept, checked and told."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from s3vm_lib import GKM, ILS3VM, QNS3VM, S3VC, SVM, SelfTrainingKNN
from s3vm_lib.calibration import CalibratedS3VM
from s3vm_lib.model_selection.rankings import bagged_scores, out_of_fold

RNG = np.random.default_rng(0)
TRUTH = np.arange(60) % 2
X = np.round(RNG.normal(size=(60, 2)) + 4 * TRUTH[:, None], 1)
Y = np.where(np.arange(60) < 20, TRUTH, -1)
PANDAS = pd.DataFrame(X, columns=["size", "age"])


def arrow():
    pytest.importorskip("pyarrow")
    return PANDAS.astype("double[pyarrow]")


FRAMES = {
    "pandas": lambda: PANDAS,
    "nullable floats": lambda: PANDAS.astype("Float64"),
    "nullable integers": lambda: (10 * PANDAS).round().astype("Int64"),
    "categories of numbers": lambda: PANDAS.astype({"age": "category"}),
    "pyarrow": arrow,
    "polars": lambda: pl.DataFrame(X, schema=["size", "age"]),
    "polars integers": lambda: pl.DataFrame((10 * X).round().astype(int), schema=["size", "age"]),
}
MODELS = [
    *(QNS3VM(), ILS3VM(), GKM(), SelfTrainingKNN(), S3VC(random_state=0)),
    CalibratedS3VM(QNS3VM(), cv=2),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("kind", FRAMES)
def test_names_are_kept_checked_and_told(kind, model):
    frame = FRAMES[kind]()
    model = clone(model).fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["size", "age"]
    answers = model.predict(frame)
    assert np.mean(answers == TRUTH) > 0.95
    plain = clone(model).fit(frame.to_numpy().astype(float), Y)
    assert np.array_equal(plain.predict(frame.to_numpy().astype(float)), answers)
    with pytest.raises(ValueError, match=r"(?s)[Ff]eature names.*same order"):
        model.predict(frame[["age", "size"]])
    names = {"age": "weight"}
    other = frame.rename(columns=names) if hasattr(frame, "iloc") else frame.rename(names)
    with pytest.raises(ValueError, match=r"(?s)weight.*age"):
        model.predict(other)


@pytest.mark.parametrize("kind", FRAMES)
def test_scores_of_a_frame_are_those_of_its_numbers(kind):
    frame = FRAMES[kind]()
    numbers = frame.to_numpy().astype(float)
    for scored in (lambda A: out_of_fold(SVM(), A, Y), lambda A: bagged_scores(SVM(), A, Y == 1)):
        np.testing.assert_allclose(scored(frame), scored(numbers))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_pipeline_for_gaps_and_words_answers_in_a_column(make):
    towns = np.array(["Oslo", "Rome"], dtype=object)[TRUTH]
    labels = [None if label < 0 else ("no", "yes")[label] for label in Y]
    columns = {"size": [None, *X[1:, 0]], "town": towns.tolist(), "good": labels}
    frame = make(columns)
    rows = frame[["size", "town"]]
    with pytest.raises(ValueError, match=r"columns \['town'\] do not.*OneHotEncoder"):
        QNS3VM().fit(rows, frame["good"])
    with pytest.raises(ValueError, match=r"NaN in the columns \['size'\]: .*SimpleImputer"):
        QNS3VM().fit(frame[["size"]], frame["good"])
    prepared = make_column_transformer(
        (SimpleImputer(), ["size"]), (OneHotEncoder(sparse_output=False), ["town"])
    )
    model = make_pipeline(prepared, QNS3VM()).fit(rows, frame["good"])
    answers = model.predict(rows)
    if make is pd.DataFrame:
        told = frame.assign(answer=answers)["answer"]
    else:
        told = frame.with_columns(answer=pl.Series(answers.tolist()))["answer"]
    assert np.mean(told.to_numpy() == np.array(["no", "yes"])[TRUTH]) == 1.0
