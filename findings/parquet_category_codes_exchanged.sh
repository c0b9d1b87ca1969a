#!/usr/bin/env bash
# A pandas Categorical keeps the order of its categories, and .cat.codes (with
# -1 for missing) is the usual y for a classifier. A parquet file keeps them
# too. Read and written once by polars, the file comes back to pandas with
# categories in order of appearance: the codes of two classes are exchanged,
# the order and the class without rows are gone, missing is still -1.
# Seen with pandas 3.1.1, polars 2.1.0, pyarrow 26.0.1. A model kept with
# classes 0 and 1 then names every new row the other way round.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.4.6 pandas==3.1.1 pyarrow==26.0.1 polars==2.1.0
cd "$folder"

venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import pandas as pd
import polars as pl

for name in ["numpy", "pandas", "pyarrow", "polars"]:
    print(name, version(name))
kind = pd.CategoricalDtype(["tumour", "healthy", "unclear"], ordered=True)
frame = pd.DataFrame({"y": pd.Series(["healthy", "tumour", "healthy", None], dtype=kind)})
frame.to_parquet("one.parquet")
pl.read_parquet("one.parquet").write_parquet("two.parquet")
series = {name: pd.read_parquet(name)["y"] for name in ("one.parquet", "two.parquet")}
for name, y in series.items():
    print(name, y.tolist(), "codes", y.cat.codes.tolist(), "categories", y.cat.categories.tolist(),
          "ordered", y.cat.ordered)
one, two = series.values()
assert one.dtype == kind and one.cat.codes.tolist() == [1, 0, 1, -1], "pandas alone no longer keeps the codes"
assert two.astype(object).equals(one.astype(object)), "the labels themselves are no longer the same"
assert two.cat.codes.tolist() == [0, 1, 0, -1], "the way through polars no longer exchanges the codes"
assert len(two.cat.categories) == 2, "the way through polars now keeps the class without rows"
PYTHON
