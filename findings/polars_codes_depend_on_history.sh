#!/usr/bin/env bash
# The codes of a polars Categorical column (to_physical) look like class
# numbers for a classifier, and one would expect them to depend on the column.
# They are numbers in a table that the whole process shares: any column that
# was made before, in other code too, moves them. The same labels are [0, 1]
# in one run, [1, 0] in another and [3, 0] in a third, in silence.
# Seen with polars 2.1.0; an Enum column keeps its order. Training and
# prediction are two runs, and y is coded in both.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.4.6 polars==2.1.0
cd "$folder"

venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import subprocess
import sys

for name in ["numpy", "polars"]:
    print(name, version(name))
code = '''
import polars as pl
other = pl.Series({other}, dtype=pl.Categorical)
y = ["spam", "ham"]
print(pl.Series(y, dtype=pl.Categorical).to_physical().to_list(),
      pl.Series(y, dtype=pl.Enum(["spam", "ham"])).to_physical().to_list())
'''.replace("\n    ", "\n")
seen = {}
for other in ([], ["ham", "spam"], ["ham", "Monday", "Tuesday"]):
    run = [sys.executable, "-c", code.format(other=other)]
    seen[str(other)] = subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()
    print("another column", other, "-> codes of spam, ham (Categorical, Enum):", seen[str(other)])
assert all(line.endswith("[0, 1]") for line in seen.values()), "an Enum no longer keeps its order"
assert len(set(seen.values())) == 3, "the codes of a Categorical no longer depend on other columns"
PYTHON
