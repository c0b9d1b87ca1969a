"""The njit wrapper: with and without numba, bounds checks, and a cache that cannot go stale."""

import ast
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import s3vm_lib
from s3vm_lib.utils import jit
from s3vm_lib.utils.jit import njit

pytestmark = pytest.mark.interface

needs_numba = pytest.mark.skipif(not jit.HAVE_NUMBA, reason="numba is not installed")


def plain(x):
    return 2.0 * x + 1.0


@njit
def bare(x):
    return 2.0 * x + 1.0


@njit(error_model="python")
def with_options(x):
    return 2.0 * x + 1.0


called = njit(plain, cache=True)
uncached = njit(plain, cache=False)


@pytest.mark.parametrize("function", [bare, with_options, called, uncached])
def test_every_form_of_the_decorator_computes_the_same(function):
    assert function(3.0) == 7.0
    assert function.__name__ in ("bare", "with_options", "plain")


@njit
def reciprocal(x):
    return 1.0 / x


@needs_numba
def test_division_by_zero_follows_numpy():
    assert reciprocal(0.0) == np.inf


@needs_numba
@pytest.mark.skipif(jit.HAVE_NUMBA and jit.numba.config.DISABLE_JIT, reason="jit is off")
def test_machine_code_is_stored_in_the_directory_of_the_library():
    bare(1.0)
    directory = jit._cache_directory(Path(__file__).resolve())
    assert Path(bare.stats.cache_path).is_relative_to(directory)
    assert directory.is_relative_to(jit._cache_root())
    assert not hasattr(uncached.stats, "cache_path") or uncached.stats.cache_path is None


@needs_numba
def test_decorating_leaves_the_setting_of_others_alone():
    before = jit.numba.config.CACHE_DIR
    njit(plain)
    assert jit.numba.config.CACHE_DIR == before


@needs_numba
def test_a_function_inherits_no_options_of_its_first_caller():
    """Or its digits would depend on which of its callers are on the disk already."""

    @njit(cache=False)
    def product_and_sum(a, b, c):
        return a * b + c

    @njit(cache=False, fastmath={"contract"})
    def fast(a, b, c):
        return product_and_sum(a, b, c)

    @njit(cache=False)
    def exact(a, b, c):
        return product_and_sum(a, b, c)

    # The product rounds to 1; fused with the sum, as the option allows, it does not.
    numbers = 1 + 2.0**-30, 1 - 2.0**-30, -1.0
    assert fast(*numbers) == 0.0 and exact(*numbers) == 0.0


# --- Fresh processes ------------------------------------------------------------------------------

TINY = """
import numpy as np
from s3vm_lib import SVM

def fits(form=np.asarray):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    y = (X[:, 0] + 0.5 * rng.standard_normal(20) > 0).astype(int)
    y[::5] = -1
    rows = []
    for kernel, gram, tol in (
        ("linear", "full", 1e-8),
        ("poly", "rows", 1e-8),
        ("rbf", "rows", 1e-5),
        ("laplacian", "full", 1e-5),
    ):
        model = SVM(kernel=kernel, gram=gram, memory=4e-4, coef0=1.0, tol=tol)
        model.fit(form(X), y)
        rows.append([*model.decision_function(X), model.objective_, model.intercept_[0]])
    return np.array(rows)
"""
PRINT = "\nfor row in fits(): print(*row.tolist())\n"
PRINT_SPARSE = PRINT.replace("fits()", "fits(__import__('scipy.sparse').sparse.csr_matrix)")


def tiny():
    """The same fits in this process."""
    names = {}
    exec(TINY, names)
    return names["fits"]()


def assert_same_fits(text):
    """The printed fits are ours: up to rounding in double, up to tol in single precision."""
    found = np.array([[float(v) for v in line.split()] for line in text.strip().splitlines()])
    expected = tiny()
    assert_allclose(found[:2], expected[:2], atol=1e-6)
    assert_allclose(found[2:], expected[2:], atol=1e-4)
    assert_allclose(found[:, -2], expected[:, -2], rtol=1e-6)


def test_without_numba_the_library_gives_the_same_results(run_python):
    hide = "import sys; sys.modules['numba'] = None\n"
    check = "\nfrom s3vm_lib.utils import jit; assert not jit.HAVE_NUMBA\n"
    forms = """
from s3vm_lib.utils.jit import njit
@njit
def a(x): return x + 1
@njit(cache=False)
def b(x): return x + 2
c = njit(a, cache=True)
assert (a(1), b(1), c(1)) == (2, 3, 2)
"""
    assert_same_fits(run_python(hide + TINY + PRINT + check + forms))


@needs_numba
def test_with_the_compiler_switched_off_the_results_are_the_same(run_python):
    assert_same_fits(run_python(TINY + PRINT, NUMBA_DISABLE_JIT="1"))


@pytest.mark.nightly
@needs_numba
def test_with_bounds_checks_the_results_are_the_same(run_python, tmp_path):
    check = "\nimport numba; assert numba.config.BOUNDSCHECK == 1\n"
    # An index is checked whether or not the code is optimized, which is most of the compiling.
    unoptimized = {"NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(tmp_path)}
    text = run_python(TINY + PRINT + PRINT_SPARSE + check, NUMBA_BOUNDSCHECK="1", **unoptimized)
    lines = text.strip().splitlines()
    for part in (lines[:4], lines[4:]):
        assert_same_fits("\n".join(part))


PLANTED = """
from s3vm_lib.utils.jit import njit

@njit
def beyond(x):
    return x[x.size]
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the library that imports no more than it is asked to, to be changed at will."""
    source, copy = Path(s3vm_lib.__file__).parent, tmp_path / "s3vm_lib"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "__init__.py").write_text("")
    return copy


@needs_numba
def test_bounds_checks_raise_in_a_cache_directory_of_their_own(run_python, package, tmp_path):
    (package / "planted.py").write_text(PLANTED)
    code = """
import numpy as np
from s3vm_lib.planted import beyond
try:
    beyond(np.zeros(4))
    print("silent")
except IndexError:
    print("raised")
print(beyond.stats.cache_path)
"""
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    # Without checks first, so that their machine code would be found if the directory were shared.
    silent, unchecked = run_python(code, **environment, NUMBA_BOUNDSCHECK="0").split()
    raised, checked = run_python(code, **environment, NUMBA_BOUNDSCHECK="1").split()
    assert (silent, raised) == ("silent", "raised")
    assert unchecked != checked
    assert Path(checked).is_relative_to(tmp_path / "cache")


@needs_numba
@pytest.mark.parametrize(
    "statement",
    [
        "from s3vm_lib.layer import constant",
        "from s3vm_lib.layer import (\n    # why\n    constant as constant,\n)",
        "from s3vm_lib import layer\nconstant = layer.constant",
        "import s3vm_lib.layer\nconstant = s3vm_lib.layer.constant",
    ],
    ids=["name", "names in parentheses", "module", "dotted module"],
)
def test_the_cache_knows_what_a_module_imports(run_python, package, tmp_path, statement):
    """A change two imports away recompiles the caller; a change elsewhere does not."""
    header = "from s3vm_lib.utils.jit import njit\n"
    callee = header + "@njit\ndef constant():\n    return {}\n"
    (package / "layer").mkdir()
    (package / "layer" / "__init__.py").write_text("from s3vm_lib.layer.callee import constant\n")
    (package / "layer" / "callee.py").write_text(callee.format(10))
    (package / "caller.py").write_text(
        header + statement + "\n@njit\ndef double():\n    return 2 * constant()\n"
    )
    code = """
from s3vm_lib.caller import double
print(double.stats.cache_path, double(), sum(double.stats.cache_hits.values()))
"""
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    cold = run_python(code, **environment).split()
    with open(package / "plotting.py", "a") as elsewhere:
        elsewhere.write("# a remark\n")
    warm = run_python(code, **environment).split()
    (package / "layer" / "callee.py").write_text(callee.format(11))
    changed = run_python(code, **environment).split()
    assert cold[1:] == ["20", "0"]
    assert warm == [cold[0], "20", "1"]
    assert changed[1:] == ["22", "0"]
    assert changed[0] != cold[0]


@needs_numba
def test_every_import_of_the_library_is_seen():
    """The imports found by their text are those that Python's own parser finds."""
    package = Path(s3vm_lib.__file__).parent
    for file in package.rglob("*.py"):
        expected = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("s3vm_lib"):
                for alias in node.names:
                    inner = jit._source(f"{node.module}.{alias.name}")
                    expected.add(inner or jit._source(node.module))
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
                expected |= {jit._source(n) for n in names if n.startswith("s3vm_lib")}
            assert not (isinstance(node, ast.ImportFrom) and node.level), "relative imports"
        assert expected <= jit._imports(file.resolve()), file


@needs_numba
def test_old_caches_are_deleted_and_recent_ones_kept(tmp_path):
    old, recent = tmp_path / "old", tmp_path / "recent"
    old.mkdir()
    recent.mkdir()
    past = time.time() - 86400 * (jit._CACHE_DAYS + 1)
    os.utime(old, (past, past))
    jit._prune(tmp_path)
    assert not old.exists()
    assert recent.exists()


@needs_numba
def test_a_read_only_home_leads_to_the_temporary_directory(tmp_path, monkeypatch):
    occupied = tmp_path / "file"
    occupied.write_text("no directory can be made below a file")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(occupied))
    monkeypatch.setattr(jit.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    directory = jit._cache_directory.__wrapped__(Path(__file__).resolve())
    assert directory.is_relative_to(tmp_path / "temporary")


@needs_numba
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owner here")
def test_a_cache_of_another_user_is_not_used(tmp_path, monkeypatch):
    home, temporary, file = tmp_path / "home", tmp_path / "temporary", Path(__file__).resolve()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(home))
    monkeypatch.setattr(jit.tempfile, "gettempdir", lambda: str(temporary))
    find, lstat, theirs = jit._cache_directory.__wrapped__, Path.lstat, set()

    def owned(path):
        about = list(lstat(path))
        about[4] += path in theirs
        return os.stat_result(about)

    monkeypatch.setattr(jit.Path, "lstat", owned)
    ours = find(file)
    assert ours.is_relative_to(home)
    for path in (ours, ours.parent):  # one entry, and the folder in which others can be put
        theirs.clear()
        theirs.add(path)
        assert find(file).is_relative_to(temporary)
    theirs.update(temporary.iterdir())
    assert find(file) is None


@needs_numba
def test_without_any_writable_directory_functions_still_compile(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "_cache_directory", lambda file: None)
    assert njit(plain)(1.0) == 3.0
    assert njit(plain, cache=True)(1.0) == 3.0


def test_two_fits_are_equal_bit_by_bit():
    assert_array_equal(tiny(), tiny())
