"""The page of neighbours: a script for each of its lines, which installs the versions it names."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.interface

ROOT = Path(__file__).resolve().parents[1]
LINES = re.findall(
    r"^\| [^|]+ \| ([^|]*\d[^|]*) \| `(\w+)` \|$",
    (ROOT / "book" / "neighbours.md").read_text(encoding="utf-8"),
    re.M,
)
SCRIPTS = {path.stem: path for path in (ROOT / "findings").glob("*.sh")}


def test_each_script_has_a_line():
    assert sorted(name for _, name in LINES) == sorted(SCRIPTS)
    listed = (ROOT / "findings" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)`", listed, re.M)) == SCRIPTS.keys()


@pytest.mark.parametrize(("versions", "name"), LINES, ids=lambda value: value.split(",")[0])
def test_a_line_names_the_versions_of_its_script(versions, name):
    text = SCRIPTS[name].read_text(encoding="utf-8")
    for one in versions.split(", "):
        package, version = one.split(" ")
        assert f"{package}=={version}" in text
    assert text.count("assert ") >= 1
