#!/usr/bin/env bash
# A matrix written by dump_svmlight_file and read by load_svmlight_file should
# come back as it was: 17 digits name every 64-bit number. The writer prints
# 16, so four values in ten come back changed in their last bit and
# hardly a row of ten columns is equal to what it was.
# Seen with scikit-learn 1.9.1; np.savetxt writes enough of them.
# Who looks for labelled rows among the unlabelled ones by equality, to keep
# test rows out, finds none.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
cd "$folder"

venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import io

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

for name in ["numpy", "scipy", "scikit-learn"]:
    print(name, version(name))
X = np.random.default_rng(0).normal(size=(1000, 10))
file = io.BytesIO()
dump_svmlight_file(X, np.zeros(1000), file, zero_based=False)
file.seek(0)
back = load_svmlight_file(file, n_features=10, zero_based=False)[0].toarray()
text = io.StringIO()
np.savetxt(text, X)
text.seek(0)
table = np.loadtxt(text)
changed, rows = np.mean(back != X), np.mean(np.all(back == X, axis=1))
print("SVMlight: share of values changed", changed, "of rows unchanged", rows)
print("savetxt: share of values changed", np.mean(table != X))
print("largest relative change", np.max(np.abs(back / X - 1)))
assert np.allclose(back, X, rtol=1e-14), "more than the last digits are lost"
assert np.array_equal(table, X), "np.savetxt now loses digits too"
assert changed > 0.2 and rows < 0.05, "dump_svmlight_file now writes all digits"
PYTHON
