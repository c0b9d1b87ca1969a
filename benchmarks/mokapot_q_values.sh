#!/usr/bin/env bash
# q-values and accepted rows of s3vm_lib.model_selection.rankings against those
# of mokapot 0.10.0, given the same scores: all columns of a Percolator input
# file, both ways up, whole and rounded to make ties, and the scores of
# mokapot's own model. Run with the file data/10k_psms_test.pin of the
# repository wfondrie/mokapot, from the root of this repository:
#   bash benchmarks/mokapot_q_values.sh 10k_psms_test.pin
set -euo pipefail

file=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mokapot==0.10.0 "pandas<3" "numpy<2"

"$folder/venv/bin/python" - "$file" "$folder/theirs.npz" <<'PYTHON'
import sys

import mokapot
import numpy as np
from mokapot.qvalues import tdc

np.random.seed(0)
data = mokapot.read_pin(sys.argv[1])
target = np.asarray(data.targets)
columns = data.features.to_numpy(float).T
model = mokapot.PercolatorModel()
model.fit(data)
scores = [*columns, *-columns, *np.round(columns), model.predict(data)]
q = [tdc(np.asarray(s, dtype=float), target) for s in scores]
np.savez(sys.argv[2], scores=scores, q=q, target=target)
PYTHON

"${PYTHON:-python}" - "$folder/theirs.npz" "$file" <<'PYTHON'
import sys

import numpy as np

from s3vm_lib.exchange.readers import read_pin
from s3vm_lib.model_selection.rankings import accept, q_values

with np.load(sys.argv[1]) as theirs:
    scores, q, target = theirs["scores"], theirs["q"], theirs["target"]
assert np.array_equal(read_pin(sys.argv[2]).y == 1, target), "other targets than mokapot's"
ours = np.array([q_values(s, target) for s in scores])
print("rows", target.size, "rankings", len(scores), "largest difference", np.abs(ours - q).max())
assert np.abs(ours - q).max() < 1e-7  # theirs have single precision
for rate in (0.01, 0.05, 0.1, 0.2):
    taken = np.array([accept(s, target, rate) for s in scores])
    print("rate", rate, "accepted by mokapot's model", taken[-1].sum())
    assert np.array_equal(taken, (q <= rate) & target)
PYTHON
