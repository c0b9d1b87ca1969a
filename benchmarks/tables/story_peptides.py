"""Accepted spectra at 1 % false discoveries, by machines that have not seen the row.

Two Percolator input files: "yeast", 9,852 targets and 9,822 decoys found by SEQUEST, the example
of Percolator, in which 72 % of the targets are of shuffled proteins and so known to be wrong; and
"masked", 5,302 targets and 4,698 decoys with masked names, a test of mokapot. Ten seeds draw the
folds, three, the same for all machines of `benchmarks.story_rankings` but not for mokapot 0.10.0,
which draws its own (``PercolatorModel(rng=seed)`` and ``brew(rng=seed)``). A target competes with
the decoy of its spectrum and mass; one code counts q-values for all but mokapot. ``accepted``
counts targets, ``shuffled`` those of them from shuffled proteins. mokapot needs NumPy below 2: its
rows are measured where S3VM_MOKAPOT names the Python of an environment that holds it, and a seed
for which it stops has None.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.stories import SEEDS
from benchmarks.story_rankings import MACHINES, accepted
from s3vm_book.stories import is_shuffled, pin_file, spectra

MOKAPOT = """
import sys, json, gzip, warnings, logging
import numpy as np, mokapot
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
counts = []
for seed in range(int(sys.argv[2])):
    np.random.seed(seed)
    model = mokapot.PercolatorModel(rng=seed)
    try:
        found, _ = mokapot.brew(mokapot.read_pin(sys.argv[1]), model, rng=seed)
    except RuntimeError as error:
        counts.append([None, str(error)])
        continue
    table = found.confidence_estimates["psms"]
    kept = table[table["mokapot q-value"] <= 0.01]
    shuffled = kept["Proteins"].map(lambda names: all("mimic" in n for n in names.split("\\t")))
    counts.append([len(kept), int(shuffled.sum())])
print(json.dumps({"version": mokapot.__version__, "counts": counts}))
"""
ROWS = [
    {"file": file, "machine": machine}
    for file in ("yeast", "masked")
    for machine in (*MACHINES, "mokapot")
]


def measure(file, machine):
    """Accepted spectra of one machine, a value a seed."""
    if machine == "mokapot":
        return by_mokapot(file)
    table = spectra(file)
    shuffled = is_shuffled(table)
    found = [accepted(machine, table, seed)[0] for seed in range(SEEDS)]
    return {
        "accepted": [len(rows) for rows in found],
        "shuffled": [int(shuffled[rows].sum()) for rows in found],
    }


def by_mokapot(file):
    """The same by mokapot, in an environment of its own."""
    python = os.environ.get("S3VM_MOKAPOT")
    if not python:
        raise OSError("S3VM_MOKAPOT must name the Python of an environment with mokapot 0.10.0")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{file}.pin"
        path.write_bytes(pin_file(file))
        done = subprocess.run(
            [python, "-c", MOKAPOT, str(path), str(SEEDS)], capture_output=True, text=True
        )
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise RuntimeError("mokapot failed")
    found = json.loads(done.stdout.splitlines()[-1])
    return {
        "accepted": [count for count, _ in found["counts"]],
        "shuffled": [one if count is not None else None for count, one in found["counts"]],
        "stopped": [one for count, one in found["counts"] if count is None],
        "version": found["version"],
    }
