#!/usr/bin/env bash
# The mean of a float32 column of zeros and ones is the share of a class. NumPy
# adds in pairs and gives .5 for 40 million rows, half of them 1. The same
# mean under numba.njit gives .419: it adds one by one in single precision,
# and from 16,777,216 on adding 1 changes nothing.
# Seen with numba 0.68.1 and NumPy 2.4.6; mean and sum alike, no warning,
# and float64 is right. Unlabelled rows come in such numbers, and their class
# ratio is what a semi-supervised SVM is told.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.4.6 numba==0.68.1
cd "$folder"

venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import numba
import numpy as np

for name in ["numpy", "numba"]:
    print(name, version(name))


def share(y):
    return np.mean(y)


y = np.zeros(40_000_000, dtype=np.float32)
y[::2] = 1
plain, compiled, double = share(y), numba.njit(share)(y), numba.njit(share)(y.astype(np.float64))
print("NumPy float32:", plain, "numba float32:", compiled, "numba float64:", double)
assert plain == 0.5 and double == 0.5, "NumPy or float64 no longer give one half"
assert abs(compiled - 2**24 / y.size) < 1e-6, "numba's mean of float32 no longer stops at 2**24"
PYTHON
