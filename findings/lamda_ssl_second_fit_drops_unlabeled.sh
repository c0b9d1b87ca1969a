#!/usr/bin/env bash
# TSVM of LAMDA-SSL uses the unlabeled rows in the first fit only. A fit raises the
# parameter Cu to Cl and leaves it there, and rows without a label are learned
# from while Cu < Cl. So the second fit of the same object, on the same data, is a
# supervised SVC: a loop over draws, or fit after a trial, compares something else.
# Seen with LAMDA-SSL 1.0.2, scikit-learn 1.5.2.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip=("$folder/venv/bin/pip" install --quiet --disable-pip-version-check)
"${pip[@]}" numpy==1.26.4 scipy==1.13.1 scikit-learn==1.5.2 setuptools==75.6.0
"${pip[@]}" --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0+cpu
"${pip[@]}" --no-deps LAMDA-SSL==1.0.2
cd "$folder"

venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from LAMDA_SSL.Algorithm.Classification.TSVM import TSVM
from sklearn.datasets import make_moons
from sklearn.svm import SVC

for name in ["numpy", "scikit-learn", "LAMDA-SSL"]:
    print(name, version(name))
X, truth = make_moons(200, noise=0.1, random_state=0)
known = np.concatenate([np.flatnonzero(truth == k)[:3] for k in (0, 1)])
hidden = np.setdiff1d(np.arange(200), known)
data = X[known], truth[known], X[hidden]

model = TSVM(evaluation=None)
first = np.array(model.fit(*data).predict(Transductive=True))
second = np.array(model.fit(*data).predict(Transductive=True))
svc = SVC(C=15).fit(X[known], truth[known]).predict(X[hidden])
for name, answer in (("first fit", first), ("second fit", second), ("SVC", svc)):
    print(f"{name:10s} errs on {100 * np.mean(answer != truth[hidden]):.1f} % of the hidden rows")
assert np.any(first != second), "both fits give the same answers"
assert np.all(second == svc), "the second fit is no supervised machine"
PYTHON
