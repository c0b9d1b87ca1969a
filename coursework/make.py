"""The student versions of the assignments, derived from their solutions.

    python coursework/make.py            writes coursework/release from coursework/source
    python coursework/make.py --check    fails if they do not belong together

The conventions are nbgrader's: what lies between ``### BEGIN SOLUTION`` and ``### END SOLUTION``
becomes an exercise, what lies between ``### BEGIN HIDDEN TESTS`` and ``### END HIDDEN TESTS`` is
left out, and the metadata of a cell say what it is worth. Only the standard library is needed.
"""

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SOURCE, RELEASE = FOLDER / "source", FOLDER / "release"
EXERCISE = {
    "code": ["# YOUR CODE HERE", "raise NotImplementedError()"],
    "markdown": ["YOUR ANSWER HERE"],
}


def cut(text, begin, end, replacement):
    """The text with each part from a line ``begin`` to a line ``end`` replaced by lines."""
    lines, kept, inside = text.split("\n"), [], False
    for number, line in enumerate(lines, 1):
        marker = line.strip()
        if marker in (begin, end):
            if (marker == end) != inside:
                raise ValueError(f"line {number}: {marker!r} without its partner in {text[:60]!r}")
            if not inside:
                indent = line[: len(line) - len(line.lstrip())]
                kept += [indent + new for new in replacement]
            inside = not inside
        elif not inside:
            kept.append(line)
    if inside:
        raise ValueError(f"{begin!r} without {end!r} in {text[:60]!r}")
    return "\n".join(kept)


def student_version(notebook):
    """A notebook without solutions, hidden tests and outputs.

    Parameters
    ----------
    notebook : dict
        The solution, as read by json.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        For markers without their partner, a solution in a cell that is not marked as one, and a
        graded cell without points or with the id of another.
    """
    seen, cells = set(), []
    for cell in notebook["cells"]:
        text, about = "".join(cell["source"]), cell["metadata"].get("nbgrader")
        if about:
            name = about["grade_id"]
            if name in seen:
                raise ValueError(f"grade_id must be unique, got {name!r} twice")
            seen.add(name)
            if about["grade"] and not about.get("points", 0) > 0:
                raise ValueError(f"the graded cell {name!r} must have points")
        if ("### BEGIN SOLUTION" in text) != bool(about and about["solution"]):
            raise ValueError(
                f"a solution needs markers and metadata, got one of them in {text[:60]!r}"
            )
        text = cut(text, "### BEGIN SOLUTION", "### END SOLUTION", EXERCISE.get(cell["cell_type"]))
        text = cut(text, "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS", [])
        new = {**cell, "source": text.rstrip("\n").splitlines(keepends=True)}
        if cell["cell_type"] == "code":
            new |= {"outputs": [], "execution_count": None}
        cells.append(new)
    return {**notebook, "cells": cells}


def text_of(notebook):
    """A notebook as it is stored."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def released():
    """Path and text of every student version."""
    for path in sorted(SOURCE.glob("*/*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        yield RELEASE / path.relative_to(SOURCE), text_of(student_version(notebook))


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    stale = []
    for path, text in released():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.relative_to(FOLDER))
        if not arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote coursework/{stale[-1]}")
    if arguments and stale:
        sys.exit(f"not derived from its source, run make.py: {', '.join(map(str, stale))}")


if __name__ == "__main__":
    main(sys.argv[1:])
