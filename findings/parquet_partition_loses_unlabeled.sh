#!/usr/bin/env bash
# to_parquet(partition_cols=["label"]) should keep all rows, the ones without a
# label in a part of their own. With the engine fastparquet (deprecated in
# pandas 3.1) they are not written at all, in silence: 3 rows of 5
# are left. With pyarrow they are, but then pandas cannot read its own
# file (the part without a label has no type); polars reads all 5 rows.
# Seen with pandas 3.1.1, fastparquet 2026.9.0, pyarrow 26.0.1, polars 2.1.0.
# Rows without a label are most of the rows here.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.4.6 pandas==3.1.1 pyarrow==26.0.1 fastparquet==2026.9.0 polars==2.1.0
cd "$folder"

venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import warnings

import pandas as pd
import polars as pl
import pyarrow

for name in ["numpy", "pandas", "pyarrow", "fastparquet", "polars"]:
    print(name, version(name))
warnings.simplefilter("ignore")
frame = pd.DataFrame({"x": range(5), "label": ["a", None, "b", None, "a"]})
frame.to_parquet("fast", partition_cols=["label"], engine="fastparquet")
frame.to_parquet("arrow", partition_cols=["label"], engine="pyarrow")
fast = pd.read_parquet("fast", engine="fastparquet")
through_polars = pl.read_parquet("arrow")
try:
    seen = f"{len(pd.read_parquet('arrow'))} rows"
except pyarrow.ArrowInvalid as error:
    seen = str(error)
print("fastparquet, read by pandas:", len(fast), "of", len(frame), "rows, labels", sorted(fast["label"]))
print("pyarrow, read by polars:", len(through_polars), "rows, without a label", through_polars["label"].null_count())
print("pyarrow, read by pandas:", seen)
assert len(through_polars) == 5 and through_polars["label"].null_count() == 2, "polars no longer reads all rows"
assert "null" in seen, "pandas now reads its own file"
assert len(fast) == 3, "fastparquet now writes the rows without a label"
PYTHON
