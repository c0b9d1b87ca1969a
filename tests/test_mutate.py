"""The task that tries changes of the library, ``python tasks.py mutate``."""

import ast
import importlib.util
import random
from pathlib import Path

import mutate
import pytest

pytestmark = pytest.mark.interface

ROOT = Path(mutate.__file__).parents[1]
TOY = b'''"""A toy, 1 + 1."""


def largest(values, least: int = 0, sign=-1):
    """Return max(values) + 1."""
    if not values and least >= 0:
        return "\xc3\xbc", least - 2
    if False:
        raise ValueError(f"{least + 1}")
    return max(sorted(values, reverse=True)) + 1
'''


@pytest.mark.parametrize(
    ("given", "last"),
    [
        (["mutate", "--count", "9"], ["tests/mutate.py", "--count", "9"]),
        (["mutate", "smo", "--seed", "2"], ["tests/mutate.py", "smo", "--seed", "2"]),
        (["mutate", "--help"], ["tests/mutate.py", "--help"]),
        (["mutate"], ["tests/mutate.py"]),
        (["bench"], ["benchmarks.run", "--list"]),
        (["bench", "--list", "safe"], ["benchmarks.run", "--list", "safe"]),
        (["bench", "safe", "--results", "F"], ["benchmarks.run", "safe", "--results", "F"]),
    ],
    ids=" ".join,
)
def test_the_task_hands_all_its_options_on(given, last, monkeypatch):
    """Also one that comes first, as in ``make mutate ARGS=--help``."""
    spec = importlib.util.spec_from_file_location("tasks", ROOT / "tasks.py")
    tasks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tasks)
    commands = []
    monkeypatch.setattr(tasks, "install", lambda *extras: None)
    monkeypatch.setattr(tasks, "run", lambda *command: commands.append(command))
    arguments = tasks.parse_arguments(given)
    arguments.function(arguments)
    assert [list(command)[-len(last) :] for command in commands] == [last]


def test_places_of_every_kind_are_found_and_no_text_is_one():
    found = {(place.kind, place.old, place.new) for place in mutate.places(Path("toy.py"), TOY)}
    assert found == {
        ("constant", "0", "(1)"),  # of `least`, and of the comparison
        ("constant", "1", "(3)"),
        ("constant", "2", "(5)"),
        ("comparison", "least >= 0", "(least > 0)"),
        ("comparison", "least >= 0", "(least <= 0)"),
        ("operator", "not values and least >= 0", "(not values or least >= 0)"),
        ("boolean", "not values", "(values)"),
        ("constant", "False", "(True)"),
        ("constant", "True", "(False)"),
        ("operator", "least - 2", "(least + 2)"),
        (
            "operator",
            "max(sorted(values, reverse=True)) + 1",
            "(max(sorted(values, reverse=True)) - 1)",
        ),
        ("extreme", "max(sorted(values, reverse=True))", "(min(sorted(values, reverse=True)))"),
        ("keyword", "sorted(values, reverse=True)", "(sorted(values))"),
        ("branch", "not values and least >= 0", "False"),
        ("branch", "False", "False"),
    }


def test_changes_of_the_library_are_valid_and_change_something():
    paths = [*(ROOT / "s3vm_lib" / "smo").glob("*.py"), ROOT / "s3vm_lib" / "cccp.py"]
    drawn = random.Random(0)
    for path in paths:
        source = path.read_bytes()
        found = mutate.places(path, source)
        for place in drawn.sample(found, min(20, len(found))):
            tree = ast.parse(mutate.changed(source, place))
            assert ast.dump(tree) != ast.dump(ast.parse(source)), place


def test_the_tests_of_a_room_are_those_that_import_it():
    tests = mutate.tests_of(ROOT)
    assert tests["smo"][0] == "tests/test_smo.py" and "tests/test_safe.py" in tests["smo"]
    assert "tests/test_mutate.py" not in tests["smo"]


def test_a_change_that_a_test_notices_is_killed_and_another_survives(tmp_path, capsys):
    (tmp_path / "s3vm_lib").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "s3vm_lib" / "__init__.py").write_text("")
    toy = tmp_path / "s3vm_lib" / "toy.py"
    toy.write_text(
        "def rise(x, more=5):\n    return x + more\n\n\ndef fall(x):\n    return x - 3\n"
    )
    test = "from s3vm_lib import toy\n\n\ndef test_rise():\n    assert toy.rise(0) == 5\n"
    (tmp_path / "tests" / "test_toy.py").write_text(test)
    before = toy.read_text()
    survivors = mutate.main(["toy"], tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert toy.read_text() == before and lines[-1] == "4 of 4 changes tried, 2 survived"
    assert {place.new for place in survivors} == {"(x + 3)", "(7)"}
    assert sum(line.startswith("killed") for line in lines) == 2
