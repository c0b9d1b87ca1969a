"""The types of the public interface: complete, true of the defaults, and of use to a checker."""

import collections.abc
import inspect
import subprocess
import sys
import types
import typing
from pathlib import Path

import numpy as np
import pytest

import s3vm_lib
from s3vm_lib.calibration import CalibratedS3VM
from s3vm_lib.model_selection import WithUnlabeled

pytestmark = pytest.mark.interface

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = [getattr(s3vm_lib, name) for name in s3vm_lib.__all__]
PUBLIC = [cls for cls in PUBLIC if hasattr(cls, "fit")]
METHODS = ("fit", "partial_fit", "predict", "decision_function", "predict_proba", "score", "forget")


def conforms(value, hint):
    if typing.get_origin(hint) is typing.Literal:
        return value in typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        choices = typing.get_args(hint)
        if value is None:
            return type(None) in choices
        return any(conforms(value, one) for one in choices)
    if hint is typing.Any:
        return True
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


@pytest.mark.parametrize("cls", PUBLIC, ids=lambda cls: cls.__name__)
def test_constructors_say_the_types_of_all_parameters(cls):
    hints = typing.get_type_hints(cls.__init__)
    parameters = list(inspect.signature(cls).parameters.values())
    assert [p.name for p in parameters if p.name not in hints] == []
    wrong = [p for p in parameters if not conforms(p.default, hints[p.name])]
    assert wrong == []


@pytest.mark.parametrize(
    "cls", [*PUBLIC, WithUnlabeled, CalibratedS3VM], ids=lambda cls: cls.__name__
)
def test_methods_say_what_they_take_and_give(cls):
    for name in METHODS:
        method = inspect.getattr_static(cls, name, None)
        if not isinstance(method, types.FunctionType) or "sklearn" in method.__module__:
            continue
        hints = typing.get_type_hints(inspect.unwrap(method))
        taken = set(inspect.signature(method).parameters) - {"self"}
        assert taken | {"return"} == set(hints), name


def test_the_checks_of_the_types_can_fail():
    assert conforms("rbf", typing.Literal["rbf"]) and not conforms("rbf", float | None)
    assert not conforms(True, int) and not conforms(None, collections.abc.Callable)
    assert conforms(np.random.RandomState(0), int | np.random.RandomState)


GOOD = """\
import numpy as np
from s3vm_lib import QNS3VM, SVM, encode_labels

X = np.zeros((4, 2))
y = [0, -1, 1, None]
model = QNS3VM(C=10, gamma="scale", balance="labels").fit(X, y)
share: float = SVM(kernel="linear", class_weight={0: 2.0}).fit(X, [0, 0, 1, 1]).score(X, y)
sides: np.ndarray = model.predict(X)
codes, classes = encode_labels(["a", "b", None])
total: int = codes.size + classes.size
"""
BAD = {
    'SVM(C="large")': 'Argument "C" to "SVM" has incompatible type',
    'SVM(kernal="rbf")': 'Unexpected keyword argument "kernal"',
    'SVM(kernel="gaussian")': 'Argument "kernel" to "SVM" has incompatible type',
    "SVM().fit(X)": 'Missing positional argument "y"',
    "word: str = SVM().predict(X)": "Incompatible types in assignment",
}


def test_a_type_checker_finds_mistakes_and_nothing_else(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed: pip install -e .[dev] brings it")
    file = tmp_path / "use.py"
    start = GOOD.count("\n") + 1
    file.write_text(GOOD + "\n".join(BAD) + "\n")
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--follow-imports=silent"]
        + ["--cache-dir", tmp_path / "cache", file],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line for line in result.stdout.splitlines() if ": error: " in line]
    assert [line for line in found if int(line.split(":")[1]) < start] == []
    for number, message in enumerate(BAD.values(), start):
        here = [line for line in found if f":{number}: " in line]
        assert any(message in line for line in here), (list(BAD)[number - start], result.stdout)
