"""Two tables that the site and the copies to run both show."""

from pathlib import Path

import compare
import nbformat

from s3vm_lib.datasets._load import SOURCES

CHAPTERS = Path(__file__).resolve().parents[1]
TOLERANCES = ("chapter", "cell", "lines that match", "may move by")
DATA_SETS = ("name", "rows × columns", "what it is")


def tolerances():
    """All numbers of the book that may differ from one processor to another, and how far."""
    for path in sorted(CHAPTERS.glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for rule in filter(compare.is_wide, compare.rules_of(cell.metadata)):
                lines = rule.get("lines", "all")
                yield path.stem, f"[{cell.execution_count}]", lines, compare.in_words(rule)


def data_sets():
    """What `s3vm_lib.datasets.load` knows."""
    for name, source in sorted(SOURCES.items()):
        what = source.description + ("" if source.urls else " Folder only.")
        yield name, f"{source.shape[0]:,} × {source.shape[1]:,}", what
