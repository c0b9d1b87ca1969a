"""The task that tries changes of the library, ``python tasks.py mutate``."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.interface

PATH = Path(__file__).with_name("mutate.py")
SPEC = importlib.util.spec_from_file_location("mutate", PATH)
mutate = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mutate)


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


def test_a_change_whose_text_is_gone_is_left_out():
    """The task names it: rewording a line of the library must not fail a test."""
    fitting = {"what": "a", "file": "tests/mutate.py", "old": "def sorted_out(work)", "new": ""}
    gone = fitting | {"old": "no such text " + "in the file"}
    assert mutate.sorted_out([("m", fitting), ("m", gone)]) == (
        [("m", fitting)],
        [("m", gone)],
    )
