#!/usr/bin/env bash
# sslearn offers wrappers around classifiers of scikit-learn. Its SelfTraining
# cannot be fitted at all: it hands its classifier to scikit-learn under a name
# that scikit-learn no longer has, and reads another one. Setred, built in the
# same way, is right on every row of the same data.
# Seen with sslearn 1.1.0 and scikit-learn 1.9.1, which its requirements allow.
# A comparison that counts failures as results would rank the method last.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.9.1 sslearn==1.1.0
cd "$folder"

venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from sklearn.linear_model import LogisticRegression
from sslearn.wrapper import SelfTraining, Setred

for name in ["numpy", "scikit-learn", "sslearn"]:
    print(name, version(name))
rng = np.random.default_rng(0)
truth = np.arange(100) % 2
X = rng.normal(size=(100, 2)) + 6 * truth[:, None]
y = np.where(np.arange(100) < 10, truth, -1)

right = Setred(LogisticRegression()).fit(X, y).score(X, truth)
print("Setred:", right)
try:
    SelfTraining(LogisticRegression()).fit(X, y)
    raised = ""
except AttributeError as error:
    raised = str(error)
print("SelfTraining:", raised or "fitted")
assert right == 1.0, "Setred no longer solves the task"
assert "base_estimator" in raised, "SelfTraining can be fitted"
PYTHON
