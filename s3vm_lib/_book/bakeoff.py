"""The bake-off: its store, and what the book computes from it.

A file of the store describes one set. Its first line is a JSON object about the set; a line that
begins with ``@`` is a block of provenance, one that begins with ``=`` a method in a mode (both JSON
objects, numbered from 0 in their order; the field ``block`` of a method is the number of its
provenance), and any other line is a fit, fields between blanks::

    method labels draw wrong wrong_test cpu megabytes status n_iter [JSON]

``wrong`` of the unlabeled and ``wrong_test`` of the test rows are counts, ``-`` is for what is not
there. A later line about the same cell, method and mode replaces an earlier one; a last line
without its end is the rest of an interrupted write and is not read.
"""

import json
import math
from typing import Any, NamedTuple

from s3vm_lib._book.tables import FOLDER

STORE = FOLDER / "results" / "bakeoff"
ANSWERED = ("ok", "warned")
_PLAIN = ("labels", "draw", "wrong", "wrong_test", "cpu", "megabytes", "status", "n_iter")
_EXTRA = ("best", "error", "ratio")


class File(NamedTuple):
    """What one file holds: a dict about the set, and one dict per fit."""

    about: dict[str, Any]
    rows: list[dict[str, Any]]


def line(number, row):
    """The line of a fit.

    Parameters
    ----------
    number : int
        Number of its method.
    row : dict

    Returns
    -------
    str
        Without the end of the line.
    """
    fields = [str(number)]
    for name in _PLAIN:
        value = row.get(name)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            fields.append("-")
        else:
            fields.append(f"{value:.3g}" if isinstance(value, float) else str(value))
    more = {name: row[name] for name in _EXTRA if name in row}
    if more:
        fields.append(json.dumps(more, ensure_ascii=False, separators=(",", ":")))
    return " ".join(fields)


def parse(text):
    """Read a file of the store.

    Parameters
    ----------
    text : str

    Returns
    -------
    File
        Rows in the order in which their cells were first measured, each with the fields of a fit,
        those of its method, and its provenance as ``facts``.
    """
    about, facts, methods, rows = None, [], [], {}
    for entry in text[: text.rfind("\n") + 1].splitlines():
        if about is None:
            about = json.loads(entry)
        elif entry.startswith("@"):
            facts.append(json.loads(entry[1:]))
        elif entry.startswith("="):
            methods.append(json.loads(entry[1:]))
        else:
            number, *fields = entry.split(" ", len(_PLAIN) + 1)
            row = dict(zip(_PLAIN, fields, strict=False))
            row = {key: _value(key, value) for key, value in row.items()}
            if len(fields) > len(_PLAIN):
                row.update(json.loads(fields[-1]))
            method = methods[int(number)]
            row.update(method, facts=facts[method["block"]])
            rows[row["method"], row["mode"], row["labels"], row["draw"]] = row
    return File(about or {}, list(rows.values()))


def _value(name, field):
    if field == "-" or name == "status":
        return None if field == "-" else field
    return float(field) if name in ("cpu", "megabytes") else int(field)
