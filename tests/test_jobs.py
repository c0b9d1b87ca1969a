"""The whole jobs of the page on files: from a file to predictions, in a dozen lines at most."""

import re
from pathlib import Path

import numpy as np
import pytest

nbformat = pytest.importorskip("nbformat", reason="the book's tests need the extras book and test")

PAGE = Path(__file__).resolve().parents[1] / "book" / "files.ipynb"
JOBS = {  # title: the file of the job, and what it ends with
    "an SVMlight file": ("texts.svm", "answers"),
    "a table with gaps and words": ("loans.csv", "answers"),
    "a Percolator input file": ("spectra.pin", "taken"),
    "texts": ("texts.npz", "answers"),
    "a table that grows": ("texts.npz", "answers"),
}


def shown(cell):
    return cell.cell_type == "code" and not {"hide-input", "remove-input"} & set(
        cell.metadata.get("tags", [])
    )


def parts():
    """Cells of each section, by its title, and those before the first one."""
    found, title = {}, ""
    for cell in nbformat.read(PAGE, as_version=4).cells:
        heading = re.search(r"^## (?:I have )?(.*)", cell.source, re.M)
        title = heading[1] if cell.cell_type == "markdown" and heading else title
        found.setdefault(title, []).append(cell)
    return found


@pytest.mark.parametrize("title", JOBS)
def test_a_job_takes_a_dozen_lines(title):
    file, result = JOBS[title]
    sections = parts()
    (job,) = filter(shown, sections[title])
    lines = [line for line in job.source.splitlines() if line.strip()]
    assert len(lines) <= 12
    assert f'folder / "{file}"' in job.source
    space = {}
    for cell in [*sections[""], *sections[title]]:  # the checks of the page among them
        if cell.cell_type == "code":
            exec(cell.source, space)
    answers = space[result]
    rows = {"texts.svm": 600, "loans.csv": 400, "spectra.pin": 6000, "texts.npz": 455}
    assert answers.shape == (rows[file],) and np.unique(answers).size == 2
