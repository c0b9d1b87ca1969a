#!/usr/bin/env bash
# The linear TSVMMethod of modssc separates two clusters that lie on both sides
# of the origin. Move all rows by (6, 3), which changes nothing between them, and
# it errs on two rows in five: its steps of gradients have a fixed length and
# number, and its constant term does not come to its place. scikit-learn's SVM
# is right on every row of both.
# Seen with modssc 1.2.2. Columns that are not centred are the rule; a comparison
# without a scaler in front would call the method a failure.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.3.5 scipy==1.17.1 scikit-learn==1.9.1 modssc==1.2.2
cd "$folder"

venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
from modssc.transductive.methods.classic.tsvm import TSVMMethod
from sklearn.svm import SVC

for name in ["numpy", "scikit-learn", "modssc"]:
    print(name, version(name))
truth = np.arange(400) % 2
known = np.arange(400) < 40
y = np.where(known, truth, -1)
graph = SimpleNamespace(edge_index=np.zeros((2, 0), dtype=np.int64))
errors = {}
for move in ((0, 0), (6, 3)):
    rows = np.random.default_rng(0).normal(size=(400, 2))
    rows[:, 0] += 6 * truth - 3
    X = rows + np.array(move)
    data = SimpleNamespace(X=X, y=y, graph=graph, masks={"train_mask": known}, meta=None)
    answers = np.argmax(TSVMMethod().fit(data).predict_proba(data), axis=1)
    svm = SVC(kernel="linear").fit(X[known], truth[known])
    errors[move] = np.mean(answers[~known] != truth[~known]), 1 - svm.score(X, truth)
    print(f"moved by {move}: TSVM errs on {100 * errors[move][0]:.1f} %, SVC on {100 * errors[move][1]:.1f} %")
assert errors[0, 0][0] < 0.02, "TSVM no longer separates the centred rows"
assert errors[6, 3][0] > 0.3, "TSVM separates the moved rows, too"
assert max(errors[0, 0][1], errors[6, 3][1]) < 0.02, "SVC errs"
PYTHON
