"""The rules of the house: imports run downwards, twins are short, estimators are documented."""

import ast
import graphlib
import inspect
import io
import tokenize
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import s3vm_lib

pytestmark = pytest.mark.interface

PACKAGE = Path(s3vm_lib.__file__).parent
ROOT = PACKAGE.parent
MODULES = {
    ".".join(("s3vm_lib", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
# The floors from below. A room that is not named here stands on the floor of the methods.
METHODS = "methods"
FLOORS = {
    "basement": {"utils"},
    "ground": {
        "losses",
        "kernels",
        "gram",
        "graphs",
        "objective",
        "random_features",
        "datasets",
    },
    "core": {"smooth", "finite_newton"},
    "class ratio": {"class_ratio"},
    "base": {"base"},
    METHODS: set(),
    "practice": {
        "model_selection",
        "calibration",
        "safe",
        "s3vc",
        "checks",
        "reference",
        "compile",
        "_compile",
        "exchange",
    },
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
LOADERS = ("import_module", "__import__")
MOST_ROOMS, MOST_FLOORS, MOST_FILES = 35, 8, 120
BUDGET = "the library stays small: take something away, or say in the commit why the limit rises"
MOST_LINES = 17_805
FEWEST_COMMENTS = 4  # lines with a comment, among 100 of code
ESTIMATORS = [name for name in s3vm_lib.__all__ if hasattr(getattr(s3vm_lib, name), "fit")]
LONGEST = 40  # lines of code of a twin
# Files with more than one twin.
LONGER = {"laplacian_svm": 2 * LONGEST, "path_steps": 2 * LONGEST}


def imports(path):
    """Modules of the library that a file imports, with the line where it does.

    Inside functions, and by a name that is given to ``import_module``, too.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("s3vm_lib"):
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                yield (below if below in MODULES else node.module), node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("s3vm_lib"):
                    yield alias.name, node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(LOADERS) and node.args:
            name = getattr(node.args[0], "value", None)
            yield (name if isinstance(name, str) else "unknown"), node.lineno


def room(module):
    """The module or package of the library that a module belongs to; "" for the front doors."""
    return (module.split(".") + [""])[1].replace("__main__", "")


def test_no_circles():
    graph = {
        name: {found for found, _ in imports(path)} - {name, "s3vm_lib", "unknown"}
        for name, path in MODULES.items()
    }
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) >= len(MODULES) - 1
    rooms = {}
    for name, targets in graph.items():
        rooms.setdefault(room(name), set()).update(map(room, targets))
    rooms = {name: targets - {name} for name, targets in rooms.items() if name}
    list(graphlib.TopologicalSorter(rooms).static_order())  # a circle is an error


def floor_of(name):
    """The number of the floor on which a room stands."""
    named = [k for k, rooms in enumerate(FLOORS.values()) if name in rooms]
    return named[0] if named else list(FLOORS).index(METHODS)


def test_no_import_leads_upwards():
    wrong = []
    for name, path in MODULES.items():
        for target, line in imports(path):
            # The front door loads what is asked for, by a name that it is given.
            if room(name) and (
                target == "unknown" or floor_of(room(target)) > floor_of(room(name))
            ):
                wrong.append(f"{path.relative_to(ROOT)}:{line} {target}")
    assert wrong == []


def test_the_floors_name_rooms():
    rooms = {room(name) for name in MODULES} - {""}
    named = [name for part in FLOORS.values() for name in part]
    assert set(named) <= rooms
    assert len(named) == len(set(named))
    assert len(rooms) <= MOST_ROOMS, BUDGET
    assert len(FLOORS) <= MOST_FLOORS, BUDGET


@pytest.mark.parametrize(
    "statement",
    [
        "from s3vm_lib.base import machine",
        "def f():\n    from s3vm_lib.base.machine import Training",
        "import importlib\nimportlib.import_module('s3vm_lib.base.machine')",
        "def f():\n    __import__('s3vm_lib.base.machine')",
    ],
)
def test_every_way_to_import_is_seen(tmp_path, statement):
    (tmp_path / "module.py").write_text(statement)
    assert [name for name, _ in imports(tmp_path / "module.py")] == ["s3vm_lib.base.machine"]


def test_the_house_stays_small_and_explained():
    """Lines with code, without docstrings, comments and blanks, and lines with a comment."""
    skipped = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    n_lines = n_comments = 0
    for path in MODULES.values():
        text = path.read_text(encoding="utf-8")
        docstrings = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, DOCUMENTED) and ast.get_docstring(node):
                docstrings |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
        code, comments = set(), set()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            lines = range(token.start[0], token.end[0] + 1)
            if token.type == tokenize.COMMENT:
                comments |= set(lines)
            elif token.type not in skipped:
                code |= set(lines)
        n_lines += len(code - docstrings)
        n_comments += len(comments)
    assert n_lines <= MOST_LINES, BUDGET
    assert len(MODULES) <= MOST_FILES, BUDGET
    assert n_comments >= FEWEST_COMMENTS * n_lines / 100


def test_a_class_has_a_name_of_its_own():
    """Each solver returns a `Solution`; any other name means one thing across the library."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in MODULES.values()]
    names = [node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    assert {name for name in names if names.count(name) > 1} == {"Solution"}


def test_the_library_stands_without_the_book():
    texts = {path: path.read_text(encoding="utf-8") for path in MODULES.values()}
    assert [path for path, text in texts.items() if "s3vm_book" in text] == []


def test_what_is_private_stays_in_its_package():
    wrong = []
    for name, path in MODULES.items():
        for target, line in imports(path):
            parts = target.split(".")[2:]  # below a room
            if any(part.startswith("_") for part in parts) and room(target) != room(name):
                wrong.append(f"{path.relative_to(ROOT)}:{line} {target}")
    assert wrong == []


def private_names(path):
    """Private functions, classes, methods and attributes that a file defines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.attr if isinstance(node, ast.Attribute) else node.id


def test_private_methods_and_attributes_stay_in_their_room():
    """``x._name`` of another object; what a class inherits, and hooks that `base` calls, apart."""
    homes = {}
    for module, path in MODULES.items():
        for name in private_names(path):
            homes.setdefault(name, set()).add(room(module))
    found = []
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
                continue
            if hasattr(BaseEstimator, node.attr) or module == "s3vm_lib.utils.jit":
                continue  # scikit-learn's own, and numba's
            own = ast.unparse(node.value) in ("self", "cls", "super()")
            known = homes.get(node.attr, {room(module)})
            if not (own or node.attr.startswith("__") or room(module) in known | {"base"}):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}")
    assert found == []


def code_lines(function):
    """Lines of a function without its docstring and its comments."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return 1 + sum(len(ast.unparse(statement).splitlines()) for statement in body)


TWINS = [path for path in sorted((PACKAGE / "reference").glob("*.py")) if path.stem != "__init__"]


@pytest.mark.parametrize("path", TWINS, ids=lambda path: path.stem)
def test_twins_are_short(path):
    body = ast.parse(path.read_text(encoding="utf-8")).body
    lines = sum(code_lines(node) for node in body if isinstance(node, ast.FunctionDef))
    longest = LONGER.get(path.stem, LONGEST)
    assert lines <= longest, f"{lines} lines of code, at most {longest}"
    page = (ROOT / "book" / "api" / "reference.md").read_text("utf-8")
    assert f"s3vm_lib.reference.{path.stem}\n" in page, "enter the twin in book/api/reference.md"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_person_can_hold_the_parameters(name):
    # As many as the estimator of scikit-learn that has the most; n_jobs has no part in the result.
    found = set(inspect.signature(getattr(s3vm_lib, name)).parameters) - {"n_jobs"}
    assert len(found) <= 24


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_has_a_page_of_the_reference(name):
    pages = (ROOT / "book" / "api").glob("*.md")
    assert any(f"autoclass:: {name}\n" in page.read_text("utf-8") for page in pages), (
        f"document {name} on a page of book/api; a new page is listed in _toc.yml"
    )
    assert {"_largest_n", "_memory"} <= set(dir(getattr(s3vm_lib, name)))  # of the map of methods
