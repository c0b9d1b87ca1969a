"""The first second: what an import brings along, what compiling says, and compiling ahead."""

import ast
import builtins
import importlib
from pathlib import Path

import pytest

import s3vm_lib
from s3vm_lib import _compile
from s3vm_lib.utils import jit

pytestmark = pytest.mark.interface

needs_numba = pytest.mark.skipif(
    not jit.HAVE_NUMBA or jit.numba.config.DISABLE_JIT, reason="nothing is compiled"
)
ESTIMATORS = [name for name in s3vm_lib.__all__ if hasattr(getattr(s3vm_lib, name), "fit")]
FLOOR = """
import sys
import numba, numpy, scipy.linalg, scipy.optimize, scipy.sparse, scipy.stats
import sklearn.base, sklearn.utils.multiclass, sklearn.utils.validation
floor = set(sys.modules)
"""
NEW = """
new = {name.partition(".")[0] for name in set(sys.modules) - floor} - sys.stdlib_module_names
print(*sorted(new))
"""


def test_the_import_of_the_package_imports_no_other(run_python):
    """Each estimator comes, with all that it needs, when it is asked for."""
    assert run_python(f"import sys\nfloor = set(sys.modules)\nimport s3vm_lib{NEW}") == "s3vm_lib\n"
    code = "import sys, s3vm_lib\nprint(sum(name.startswith('s3vm_lib.') for name in sys.modules))"
    assert run_python(code) == "0\n"


def test_an_estimator_imports_no_more_than_it_needs_and_its_first_fit_nothing_slow(run_python):
    """Nor do six of them; and the cost of an import does not move to a fit."""
    names = "SVM, CCCPS3VM, QNS3VM, LapSVM, DAS3VM, ILS3VM"
    slow = ("matplotlib", "tqdm", "sklearn.model_selection", "sklearn.linear_model")
    fit = f"""
X = numpy.random.default_rng(0).standard_normal((20, 2))
QNS3VM().fit(X, numpy.where(numpy.arange(20) < 10, X[:, 0] > 0, -1))
print([name for name in {slow} if name in sys.modules and name not in floor])
"""
    assert run_python(f"{FLOOR}from s3vm_lib import {names}{NEW}{fit}") == "s3vm_lib\n[]\n"


def test_type_checkers_and_python_see_the_same_names():
    tree = ast.parse(Path(s3vm_lib.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    found = {
        alias.asname: node.module  # `import X as X` is how a stub says that X is public
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert found == s3vm_lib._HOMES and len(found) > 20
    assert {*s3vm_lib.__all__, "compile"} == set(found)
    assert set(found) < set(dir(s3vm_lib))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        s3vm_lib.nothing  # noqa: B018


def test_compile_is_a_function_and_hides_nobody():
    assert callable(s3vm_lib.compile)
    with pytest.raises(ImportError, match="from s3vm_lib import compile"):
        importlib.import_module("s3vm_lib.compile")
    assert callable(s3vm_lib.compile)
    names = {}
    exec("from s3vm_lib import *", names)
    assert names.get("compile", builtins.compile) is builtins.compile


# --- Compiling ------------------------------------------------------------------------------------

FIT = """
import warnings
import numpy as np
import s3vm_lib

warnings.simplefilter("ignore")
rng = np.random.default_rng(1)
X = rng.standard_normal((60, 4))
classes = (X[:, 0] > 0).astype(int)

def fit(name, **parameters):
    y = classes if name == "SVM" else np.where(np.arange(60) < 20, classes, -1)
    if name == "GKMRegressor":
        y = np.where(np.arange(60) < 20, X[:, 0], np.nan)
    estimator = getattr(s3vm_lib, name)
    estimator(**parameters).fit(X, y).predict(X)
    if not parameters and "kernel" in estimator().get_params():
        fit(name, kernel="laplacian")

def stream(name, **parameters):
    # After `fit` and as the first call, rows in numbers and one by one; some are forgotten.
    estimator = getattr(s3vm_lib, name)
    fit(name)
    if hasattr(estimator, "partial_fit"):
        y = np.where(np.arange(60) < 20, classes, -1)
        for model in (estimator(**parameters).fit(X, y), estimator(**parameters)):
            model.partial_fit(X, y, classes=[0, 1]).partial_fit(X[:1], y[:1]).predict(X)
            if hasattr(model, "forget"):
                model.forget(range(0, 40, 2)).predict(X)
        model = estimator(**parameters)
        if name == "NNBBS3VM":  # wants rows of both kinds in the first call
            model.partial_fit(X, y, classes=[0, 1])
        for i in (0, *range(20, 30), *range(1, 20), *range(30, 60)):  # each row by itself
            model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1]).predict(X)
        if not parameters and "kernel" in estimator().get_params():
            stream(name, kernel="linear")
"""
COUNT = """
from numba.core import event

class Compiled(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
for name in {names}:
    {call}(name)
    print(name, *Compiled.names)
    Compiled.names.clear()
"""
# What is compiled, or found on the disk, for a call is an overload of the function from then on.
CALLED = """
import gc
from numba.core.dispatcher import Dispatcher

def called():
    return {
        (one.py_func.__module__, one.py_func.__qualname__, signature)
        for one in gc.get_objects()
        if isinstance(one, Dispatcher)
        for signature in one.signatures
    }
"""
BEYOND = """
s3vm_lib.compile({names}, progress=False)
for name in {names}:
    before = called()
    stream(name)
    if name == "ILS3VM":  # what is taken for large margin sets
        stream(name, update="block")
    print(name, *sorted(name for _, name, _ in called() - before))
"""


@needs_numba
def test_after_compile_a_fit_compiles_nothing(run_python, tmp_path):
    """In an empty cache."""
    names, cache = ["QNS3VM"], {"NUMBA_CACHE_DIR": str(tmp_path)}
    run_python(f"import s3vm_lib; s3vm_lib.compile({names})", **cache)
    assert run_python(FIT + COUNT.format(names=names, call="fit"), **cache).splitlines() == names


@pytest.mark.nightly
@needs_numba
def test_after_compile_no_fit_compiles_anything(run_python):
    """Whatever a cache holds already: no fit asks for more than `compile` has asked for."""
    assert run_python(FIT + CALLED + BEYOND.format(names=ESTIMATORS)).splitlines() == ESTIMATORS
    # All of it is on the disk.
    count = COUNT.format(names=ESTIMATORS, call="stream")
    assert run_python(FIT + count).splitlines() == ESTIMATORS


@needs_numba
def test_after_compile_many_rows_compile_nothing(run_python, tmp_path):
    """In two processes, which compile and store the same functions at the same time."""
    names, cache = ["CCCPS3VM", "FRS3VM"], {"NUMBA_CACHE_DIR": str(tmp_path)}
    said = run_python(f"import s3vm_lib; s3vm_lib.compile({names}, n_jobs=2)", **cache)
    assert sorted(line.split()[0] for line in said.splitlines()) == names
    code = FIT.replace("(60", "(20_000").replace("arange(60)", "arange(20_000)")
    assert run_python(code + COUNT.format(names=names, call="fit"), **cache).splitlines() == names


@needs_numba
def test_after_compile_no_row_that_comes_or_goes_compiles_anything(run_python):
    names = ["ILS3VM"]
    assert run_python(FIT + CALLED + BEYOND.format(names=names)).splitlines() == names


def test_the_command_has_a_usage(capsys):
    for arguments, code in ((["--help"], 0), (["--nothing"], 2)):
        with pytest.raises(SystemExit) as end:
            _compile.main(arguments)
        assert end.value.code == code
        shown = capsys.readouterr()
        usage = "usage: python -m s3vm_lib.compile [-h] [--jobs JOBS] [ESTIMATOR ...]"
        assert usage in shown.out + shown.err
    with pytest.raises(SystemExit, match="'SVC' is not an estimator"):
        _compile.main(["SVC"])


@needs_numba
def test_a_whole_matrix_needs_nothing_that_computes_kernel_rows(run_python):
    code = FIT + CALLED + "fit('ILS3VM')\nprint(*(name for _, name, _ in called()))"
    found = set(run_python(code).split())
    assert {"smo_iterations", "polish", "violators"} <= found
    assert not {"kernel_row", "add_part"} & found


def test_compile_knows_its_estimators(capsys):
    with pytest.raises(ValueError, match="'SVC' is not an estimator; there are"):
        s3vm_lib.compile(["SVC"])
    assert s3vm_lib.compile(["SelfTrainingKNN"]) > 0
    assert capsys.readouterr().out.split()[:3] == ["SelfTrainingKNN", "2", "fits"]
    s3vm_lib.compile(["SelfTrainingKNN"], progress=False)
    assert capsys.readouterr().out == ""


NOTICE = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(name)s %(levelname)s %(message)s")
from s3vm_lib.utils import jit
jit._PATIENCE = {patience}

@jit.njit
def inner(x):
    return x + 1.0

@jit.njit
def first(x):
    return inner(x)

@jit.njit
def second(x):
    return 2.0 * x

with jit.no_notice():
    first(1)
first(1.0), second(1.0)
"""


@needs_numba
def test_long_compiling_is_said_once(run_python):
    said = run_python(NOTICE.format(patience=0.0), S3VM_LIB_QUIET="0").splitlines()
    assert len(said) == 1
    assert said[0].startswith("s3vm_lib WARNING s3vm_lib is compiling")
    assert "python -m s3vm_lib.compile" in said[0]
    assert run_python(NOTICE.format(patience=1e3), S3VM_LIB_QUIET="0") == ""
    assert run_python(NOTICE.format(patience=0.0), S3VM_LIB_QUIET="1") == ""


@jit.njit
def add_one(x):
    return x + 1.0


@jit.njit
def add_two(x):
    return add_one(add_one(x))


@needs_numba
def test_what_compiled_code_calls_is_compiled_as_a_part_of_it():
    assert add_two(1.0) == 3.0
    assert add_one.signatures == []  # no machine code of its own
    assert add_one(1.0) == 2.0  # until Python asks for it
    assert len(add_one.signatures) == 1


@needs_numba
def test_where_numba_is_not_as_expected_its_own_way_is_taken(run_python):
    code = """
from s3vm_lib.utils import jit
jit._PARTS = False

@jit.njit
def inner(x):
    return x + 1.0

@jit.njit
def outer(x):
    return inner(inner(x))

print(outer(1.0), len(inner.signatures))
"""
    assert run_python(code) == "3.0 1\n"
