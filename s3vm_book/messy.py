"""A table as two laboratories export it: real rows for an assignment that begins with a file."""

import csv
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

from s3vm_lib.datasets import hide_labels

COMMENTS = (
    "# exported 2024-03-01; separator ; and decimal comma",
    "# laboratory south gives all areas in hundreds of the unit of laboratory north",
)


def write_export(folder, random_state=0, *, n_labeled=24):
    """Write ``samples.csv`` and ``new.csv``: tissue samples, of which a doctor diagnosed a few.

    Parameters
    ----------
    folder : str or Path
        An existing folder.
    random_state : int, default=0
        Decides which samples are diagnosed, and what is wrong in the files.
    n_labeled : int, default=24
        Number of samples with a diagnosis in ``samples.csv``, of 400.

    Returns
    -------
    dict of str
        The diagnosis of each sample in either file, the hidden ones included.
    """
    rng = np.random.default_rng(random_state)
    table = load_breast_cancer()
    order = rng.permutation(len(table.target))
    names = [f"T-{number:04d}" for number in rng.permutation(10_000)[: len(order)]]
    truth = [str(table.target_names[k]) for k in table.target[order]]
    known = hide_labels(table.target[order][:400], n_labeled, random_state=rng) != -1
    areas = [k for k, name in enumerate(table.feature_names) if "area" in name]
    rows = []
    for name, values, diagnosis in zip(names, table.data[order], truth, strict=True):
        laboratory = rng.choice(["north", "south"])
        values = values.copy()
        values[areas] /= 100 if laboratory == "south" else 1
        cells = [f"{value:.6g}".replace(".", ",") for value in values]
        for k in np.flatnonzero(rng.random(len(cells)) < 0.02):
            cells[k] = rng.choice(["", "n/a", "-"])
        row = {"sample": name, "laboratory": laboratory}
        row |= dict(zip(table.feature_names, cells, strict=True))
        if len(rows) < 400:
            told = known[len(rows)]
            spellings = (diagnosis, diagnosis.upper(), f"{diagnosis} ", diagnosis.capitalize())
            row["treatment"] = {"malignant": "surgery", "benign": "none"}[diagnosis] if told else ""
            row["diagnosis"] = rng.choice(spellings if told else ("", "?", "pending"))
        rows.append(row)
    # Some samples were exported twice; of a diagnosed one either copy may be "pending".
    twice = np.concatenate(
        [rng.choice(np.flatnonzero(known), 6, replace=False), rng.choice(400, 12, replace=False)]
    )
    copies = [rows[k] for k in twice]
    pending = {"treatment": "", "diagnosis": "pending"}
    for k in twice[:2]:
        rows[k] = rows[k] | pending
    copies[2] = copies[2] | pending
    columns = list(rows[0])
    for name, part, header in (
        ("samples.csv", rows[:400] + copies, columns),
        ("new.csv", rows[400:], [*rng.permutation(columns[:-2])]),
    ):
        with open(Path(folder) / name, "w", newline="", encoding="utf-8-sig") as file:
            file.writelines(f"{line}\n" for line in COMMENTS)
            writer = csv.DictWriter(file, header, delimiter=";", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(part)
    return dict(zip(names, truth, strict=True))
