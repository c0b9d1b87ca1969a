"""The short cuts past scikit-learn's checks refuse, convert, warn and set what these checks do."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.utils.validation import validate_data

import s3vm_lib.utils.shortcuts as plain
from s3vm_lib import CCCPS3VM, ILS3VM, SVM
from s3vm_lib.losses import LabeledLoss

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 3))
Y = np.array([0, 1, -1, 0, 1, -1])


def spoiled(value, place=(5, 2)):
    other = X.copy()
    other[place] = value
    return other


INPUTS = {
    "plain": (X, Y),
    "one class more": (X, np.array([0, 1, 2, 0, 1, 2])),
    "small integers": (X, Y.astype(np.int8)),
    "truth values": (X, Y > 0),
    "unsigned": (X, np.array([0, 1, 255, 0, 1, 255], np.uint8)),
    "floats as labels": (X, Y.astype(float)),
    "continuous labels": (X, Y + 0.5),
    "strings": (X, np.array(["a", "b", -1, "a", "b", -1], dtype=object)),
    "lists": (X.tolist(), Y.tolist()),
    "a column of labels": (X, Y[:, None]),
    "a matrix of labels": (X, np.c_[Y, Y]),
    "too few labels": (X, Y[:5]),
    "no labels": (X, None),
    "one row": (X[:1], Y[:1]),
    "no row": (X[:0], Y[:0]),
    "no feature": (X[:, :0], Y),
    "one axis": (X[:, 0], Y),
    "three axes": (X[:, :, None], Y),
    "NaN": (spoiled(np.nan), Y),
    "inf": (spoiled(np.inf), Y),
    "-inf": (spoiled(-np.inf, (0, 0)), Y),
    "huge": (spoiled(1e200), Y),
    "single precision": (X.astype(np.float32), Y),
    "integers": (np.arange(18).reshape(6, 3), Y),
    "objects": (X.astype(object), Y),
    "complex": (X + 1j, Y),
    "columns first": (np.asfortranarray(X), Y),
    "every second row": (np.repeat(X, 2, axis=0)[::2], Y),
    "other bytes": (X.astype(">f8"), Y),
    "np.matrix": (np.asmatrix(X), Y),
    "masked": (np.ma.masked_array(X), Y),
    "frame": (pd.DataFrame(X, columns=["a", "b", "c"]), Y),
    "series": (X, pd.Series(Y)),
    "sparse": (sp.csr_matrix(X), Y),
    "COO": (sp.coo_matrix(X), Y),
    "dates": (X.astype("datetime64[s]"), Y),
}


def outcome(call):
    """What a call returns, or its error; and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:
            result = type(error), str(error)
    return result, [(w.category, str(w.message)) for w in caught]


def state(model):
    """The fitted attributes as text."""
    return {k: repr(v) for k, v in vars(model).items() if k.endswith("_")}


def both(monkeypatch, call):
    """The outcomes with the short cuts, and without."""
    with monkeypatch.context() as patch:
        patch.setattr(plain, "is_plain", lambda *_: False)
        patch.setattr(plain, "parameters_hold", lambda *_: False)
        for module in ("base.machine", "base.preparation"):
            patch.setattr(f"s3vm_lib.{module}.parameters_hold", lambda *_: False)
        slow = outcome(call)
    return outcome(call), slow


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("cls", [SVM, CCCPS3VM])
def test_fit(monkeypatch, cls, name):
    rows, labels = INPUTS[name]
    quick, slow = both(monkeypatch, lambda: state(cls(kernel="linear").fit(rows, labels)))
    assert quick == slow


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("fitted_on", ["plain", "frame"])
def test_prediction(monkeypatch, name, fitted_on):
    model = SVM(kernel="linear").fit(*INPUTS[fitted_on])
    rows = INPUTS[name][0]
    quick, slow = both(monkeypatch, lambda: model.decision_function(rows).tolist())
    assert quick == slow


@pytest.mark.parametrize("width", [2, 4])
def test_prediction_with_another_number_of_features(monkeypatch, width):
    model = SVM().fit(X, Y)
    quick, slow = both(monkeypatch, lambda: model.predict(np.zeros((2, width))))
    assert quick == slow
    assert "features" in quick[0][1]


@pytest.mark.parametrize("name", INPUTS)
def test_partial_fit(monkeypatch, name):
    rows, labels = INPUTS[name]

    def learn():
        model = ILS3VM(kernel="linear", C_star=0.1).fit(X, Y)
        return state(model.partial_fit(rows, labels))

    quick, slow = both(monkeypatch, learn)
    assert quick == slow


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"C": 0.0},
        {"C": -1},
        {"C": np.float64(2)},
        {"C": np.nan},
        {"C": "1"},
        {"C": True},
        {"C": None},
        {"kernel": "cubic"},
        {"kernel": LabeledLoss("hinge")},
        {"gamma": "large"},
        {"gamma": np.inf},
        {"degree": 2.0},
        {"max_iter": 0},
        {"max_iter": np.int32(1000)},
        {"verbose": -1},
        {"callback": 3},
        {"class_weight": "even"},
        {"class_weight": {0: 1.0}},
        {"gram": None},
        {"shrinking": 1},
    ],
    ids=repr,
)
def test_parameters(monkeypatch, parameters):
    quick, slow = both(monkeypatch, lambda: state(SVM(**parameters).fit(X, Y)))
    assert quick == slow


def test_every_parameter_is_looked_at():
    names = {name for name, _ in plain._constraints(SVM)}
    assert names == set(SVM().get_params())


def test_a_fit_to_plain_rows_forgets_the_names_of_columns():
    model = SVM().fit(*INPUTS["frame"])
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(model.fit(X, Y), "feature_names_in_")


def test_where_scikit_learn_is_told_not_to_look_for_what_is_not_finite():
    """The check of the sizes refuses it all the same."""
    with sklearn.config_context(assume_finite=True):
        with pytest.raises(ValueError, match="scale the data"):
            SVM().fit(spoiled(np.inf), Y)


def test_parameters_are_not_checked_where_scikit_learn_is_told_so():
    with sklearn.config_context(skip_parameter_validation=True):
        assert SVM(verbose=-1, kernel="linear").fit(X, Y).verbose == -1


def test_the_rows_are_not_copied():
    rows, labels = plain.checked_rows_and_labels(SVM(), X, Y, [np.float64], least=2)
    assert rows is X
    assert labels is Y
    expected = validate_data(SVM(), X, Y, accept_sparse="csr", dtype=[np.float64], order="C")
    assert expected[0] is X
