"""The list of changes that the tests must notice: it still fits the library, and so does its score.

The changes themselves are tried by ``python tasks.py mutate``.
"""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.interface

PATH = Path(__file__).with_name("mutate.py")
SPEC = importlib.util.spec_from_file_location("mutate", PATH)
mutate = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mutate)

MODULES = mutate.read_list()
CHANGES = [(name, change) for name, module in MODULES.items() for change in module["mutations"]]


@pytest.mark.parametrize("name", MODULES)
def test_every_change_fits_the_library(name):
    module = MODULES[name]
    assert all((mutate.ROOT / path).is_file() for path in module["tests"])
    for change in module["mutations"]:
        path, text = mutate.mutated(mutate.ROOT, change)
        assert change["new"] != change["old"]
        compile(text, str(path), "exec")
        assert change.keys() <= {"what", "file", "old", "new", "equivalent"}
        assert change.get("equivalent", "a reason")


@pytest.mark.parametrize(
    ("given", "last"),
    [
        (["mutate", "--open"], ["tests/mutate.py", "--open"]),
        (["mutate", "smo", "--jobs", "2"], ["tests/mutate.py", "smo", "--jobs", "2"]),
        (["mutate", "--help"], ["tests/mutate.py", "--help"]),
        (["mutate"], ["tests/mutate.py"]),
        (["bench"], ["benchmarks.run", "--list"]),
        (["bench", "--list", "safe"], ["benchmarks.run", "--list", "safe"]),
        (["bench", "safe", "--results", "F"], ["benchmarks.run", "safe", "--results", "F"]),
    ],
    ids=" ".join,
)
def test_the_task_hands_all_its_options_on(given, last, monkeypatch):
    """Also one that comes first, as in ``make mutate ARGS=--open``."""
    spec = importlib.util.spec_from_file_location("tasks", PATH.parents[1] / "tasks.py")
    tasks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tasks)
    commands = []
    monkeypatch.setattr(tasks, "install", lambda *extras: None)
    monkeypatch.setattr(tasks, "run", lambda *command: commands.append(command))
    arguments = tasks.parse_arguments(given)
    arguments.function(arguments)
    assert [list(command)[-len(last) :] for command in commands] == [last]


def test_a_text_that_is_gone_is_an_error(tmp_path):
    (tmp_path / "module.py").write_text("x = 1\ny = 1\n")
    change = {"what": "one more", "file": "module.py", "old": "= 1", "new": "= 2"}
    with pytest.raises(ValueError, match=r"'one more'.* must occur once in module\.py, .* 2 times"):
        mutate.mutated(tmp_path, change)
    assert mutate.mutated(tmp_path, change | {"old": "x = 1"})[1] == "= 2\ny = 1\n"


def test_the_stored_score_is_that_of_the_list():
    stored = mutate.read_verdicts()
    assert list(stored) == [mutate.key(*item) for item in CHANGES]
    for item in CHANGES:
        verdict, _ = stored[mutate.key(*item)]
        assert verdict == (mutate.EQUIVALENT if "equivalent" in item[1] else mutate.KILLED)
