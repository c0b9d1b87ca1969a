"""Stored results of the benchmarks, and the tables that the papers print."""

import csv
import hashlib
import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def _file(folder, name, suffix):
    """A file of the package's data, or an error that lists what there is."""
    file = FOLDER / folder / f"{name}{suffix}"
    if not file.is_file():
        known = ", ".join(sorted(one.stem for one in (FOLDER / folder).glob(f"*{suffix}")))
        raise ValueError(f"name={name!r} is no table in {folder}; there are {known}")
    return file


def stored(name):
    """Rows of a stored benchmark.

    Parameters
    ----------
    name : str
        Name of the table.

    Returns
    -------
    list of dict
        ``{"row": ..., "result": ..., "provenance": ...}``.

    Raises
    ------
    ValueError
        If nothing of that name has been measured.
    """
    return json.loads(_file("results", name, ".json").read_text(encoding="utf-8"))["rows"]


def digest(name):
    """Hash of the rows and results of a stored benchmark, whenever and wherever measured.

    Parameters
    ----------
    name : str

    Returns
    -------
    str
        Twelve hexadecimal digits.
    """
    rows = json.dumps([(one["row"], one["result"]) for one in stored(name)], ensure_ascii=False)
    return hashlib.sha256(rows.encode()).hexdigest()[:12]


def printed(name):
    """Lines of a table as a paper prints it.

    Parameters
    ----------
    name : str
        Name of a file in ``s3vm_book/paper``.

    Returns
    -------
    list of dict of str to str

    Raises
    ------
    ValueError
        If there is no such file.
    """
    with _file("paper", name, ".csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def programs(name):
    """What other programs reached: measured by us once, not repeated.

    Parameters
    ----------
    name : str
        Name of the program, without its version.

    Returns
    -------
    dict of (str, str) to float
        By method and instance; units and conditions are in ``paper/programs.csv``.
    """
    return {
        (line["what"], line["instance"]): float(line["value"])
        for line in printed("programs")
        if line["program"].split()[0] == name
    }
