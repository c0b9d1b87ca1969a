"""What the search of the book is given to find."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="needs the extra book")
pytestmark = pytest.mark.interface

EXTENSION = Path(__file__).resolve().parents[1] / "book" / "_ext"


def build(folder):
    """The entries of the search after a build: words, and where they lead."""
    command = [sys.executable, "-m", "sphinx", "-W", "-q", folder, folder / "html"]
    subprocess.run(command, check=True)
    text = (folder / "html" / "searchindex.js").read_text("utf-8")
    found = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    return {
        word: sorted((found["docnames"][page], place, bool(main)) for page, place, main in places)
        for word, places in found["indexentries"].items()
    }


def test_entries_of_pages_that_stay_as_they_are(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(EXTENSION)!r})\nextensions = ['finding']\n"
    )
    first = tmp_path / "index.rst"
    first.write_text("Front\n=====\n\n.. toctree::\n\n   book/svm\n   other\n", "utf-8")
    (tmp_path / "book" / "svm.rst").write_text("Machine\n=======\n\nOne.\n", "utf-8")
    (tmp_path / "other.rst").write_text(
        "Other\n=====\n\n.. index:: Nyström\n   pair: saddle; S³VM\n\nTwo.\n", "utf-8"
    )
    whole = build(tmp_path)
    assert whole["balance of forces"] == [("book/svm", "machine", True)]
    assert [page for page, *_ in whole["nystrom"]] == ["other"]
    assert whole["saddle"] == whole["s3vm"]
    first.write_text(first.read_text("utf-8") + "\nMore.\n", "utf-8")
    assert build(tmp_path) == whole
    index = (tmp_path / "html" / "genindex.html").read_text("utf-8")
    assert "Nyström" in index and "balance of forces" in index
