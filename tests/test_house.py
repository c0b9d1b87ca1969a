"""The rules of the house: imports run downwards, twins are short, estimators are documented."""

import ast
import graphlib
import inspect
from pathlib import Path

import pytest

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
# The ground floor, each with what stands below it; all else may import it.
GROUND = {
    "utils": set(),
    "losses": {"utils"},
    "kernels": {"utils"},
    "gram": {"utils", "kernels"},
    "graphs": {"utils", "kernels"},
    "objective": {"losses", "kernels", "graphs", "utils"},
}
ESTIMATORS = [name for name in s3vm_lib.__all__ if hasattr(getattr(s3vm_lib, name), "fit")]
LONGEST = 40  # lines of code of a twin
# Files with more than one twin.
LONGER = {"laplacian_svm": 2 * LONGEST, "path_steps": 2 * LONGEST}


def imports(path):
    """Modules of the library that a file imports, with the line where it does."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("s3vm_lib"):
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                yield (below if below in MODULES else node.module), node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("s3vm_lib"):
                    yield alias.name, node.lineno


def room(module):
    """The module or package of the library that a module belongs to."""
    return (module.split(".") + [""])[1]


def test_no_circles():
    graph = {
        name: {found for found, _ in imports(path)} - {name, "s3vm_lib"}
        for name, path in MODULES.items()
    }
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) >= len(MODULES) - 1
    rooms = {}
    for name, targets in graph.items():
        rooms.setdefault(room(name), set()).update(map(room, targets))
    rooms = {name: targets - {name} for name, targets in rooms.items() if name}
    list(graphlib.TopologicalSorter(rooms).static_order())  # a circle is an error


@pytest.mark.parametrize("name", GROUND)
def test_the_ground_floor_stands_on_itself(name):
    found = {
        room(target)
        for module, path in MODULES.items()
        if room(module) == name
        for target, _ in imports(path)
    }
    assert found - {name} <= GROUND[name]


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
