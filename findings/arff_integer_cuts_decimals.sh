#!/usr/bin/env bash
# Weka treats "integer" in an ARFF header as another word for "numeric", and
# such files hold decimals. SciPy reads them as they are. liac-arff cuts
# them off towards zero, without a word: 2.7 is 2, 0.4 is 0, -1.5 is -1.
# Seen with liac-arff 2.5.0 and SciPy 1.17.1: the same file, other data.
# Columns scaled to [0, 1] under an old header become constant, and with
# few labels nobody sees from the error that a column is gone.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.4.6 scipy==1.17.1 liac-arff==2.5.0
cd "$folder"

venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import io

import arff
from scipy.io.arff import loadarff

for name in ["numpy", "scipy", "liac-arff"]:
    print(name, version(name))
text = "@relation r\n@attribute dose integer\n@attribute class {no,yes}\n@data\n2.7,no\n0.4,yes\n-1.5,no\n"
liac = [row[0] for row in arff.loads(text)["data"]]
scipy = loadarff(io.StringIO(text))[0]["dose"].tolist()
print("liac-arff:", liac)
print("SciPy:    ", scipy)
assert scipy == [2.7, 0.4, -1.5], "SciPy no longer keeps the decimals"
assert liac == [2, 0, -1], "liac-arff no longer cuts the decimals"
PYTHON
