#!/usr/bin/env bash
# SVMlight files may write a zero ("2:0"); it says the same as leaving it out.
# load_svmlight_file keeps it as a stored entry, and TfidfTransformer counts
# stored entries as documents that hold the word. Two files of equal
# numbers give equal matrices and other weights of words.
# Seen with scikit-learn 1.9.1; X.eliminate_zeros() heals, nothing warns.
# Labelled and unlabelled rows are often written by two programs.
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
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import TfidfTransformer

for name in ["numpy", "scipy", "scikit-learn"]:
    print(name, version(name))
short = b"1 1:2 3:1\n-1 1:1 2:3\n0 1:1\n"
long = b"1 1:2 2:0 3:1\n-1 1:1 2:3\n0 1:1 2:0\n"
one, two = (load_svmlight_file(io.BytesIO(text), n_features=3)[0] for text in (short, long))
print("equal matrices:", np.array_equal(one.toarray(), two.toarray()))
weights = [TfidfTransformer().fit(X).idf_ for X in (one, two)]
print("weights without written zeros:", weights[0])
print("weights with written zeros:   ", weights[1])
two.eliminate_zeros()
healed = TfidfTransformer().fit(two).idf_
assert np.array_equal(one.toarray(), two.toarray()), "the two files no longer hold equal numbers"
assert np.array_equal(healed, weights[0]), "eliminate_zeros no longer heals the weights"
assert weights[0][1] - weights[1][1] > 0.5, "written zeros no longer change the weights of words"
PYTHON
