#!/usr/bin/env bash
# Weka's ARFF format lets a row end in its weight in braces: "1,a,{5}".
# SciPy's loadarff reads such a file without a word and without the weights:
# neither the data nor the header hold them. liac-arff refuses the file.
# Seen with SciPy 1.17.1 and liac-arff 2.5.0.
# Weights are how a file says which labels to trust or how often a row was
# met; a result from all ones looks as good.
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
head = "@relation r\n@attribute x real\n@attribute class {a,b}\n@data\n"
weighted, plain = head + "1,a,{5}\n2,b,{0.5}\n", head + "1,a\n2,b\n"
data, header = loadarff(io.StringIO(weighted))
print("SciPy with weights:   ", data, data.dtype.names, header.names())
print("SciPy without weights:", loadarff(io.StringIO(plain))[0])
try:
    arff.loads(weighted)
    liac = "read"
except arff.BadLayout as error:
    liac = f"refused ({error})"
print("liac-arff:", liac)
assert liac.startswith("refused"), "liac-arff now reads weights of rows"
assert data.dtype.names == ("x", "class"), "SciPy now returns the weights of rows"
assert data.tolist() == loadarff(io.StringIO(plain))[0].tolist(), "SciPy now tells the two files apart"
PYTHON
