#!/usr/bin/env bash
# SelfTrainingClassifier.fit says that it passes parameters, such as
# sample_weight, on to its classifier when metadata routing is on.
# With one weight per row it raises: the rows are cut down to the labelled
# ones before the classifier is fitted, the weights are not. Only a fit
# without any unlabelled row takes weights. Seen with scikit-learn 1.9.1.
# Weights by trust in a label are what people with few labels have.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
cd "$folder"

venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import SelfTrainingClassifier

for name in ["numpy", "scipy", "scikit-learn"]:
    print(name, version(name))
rng = np.random.default_rng(0)
truth = np.arange(200) % 2
X = rng.normal(size=(200, 2)) + 4 * truth[:, None]
y = np.where(np.arange(200) < 20, truth, -1)

base = LogisticRegression()
with sklearn.config_context(enable_metadata_routing=True):
    base.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    print("LogisticRegression with 200 weights:", base.fit(X, truth, sample_weight=np.ones(200)).score(X, truth))
    try:
        SelfTrainingClassifier(base).fit(X, y, sample_weight=np.ones(200))
        seen = "no error"
    except ValueError as error:
        seen = str(error)
print("SelfTrainingClassifier with 200 weights:", seen)
assert "sample_weight" in seen and "20" in seen, "SelfTrainingClassifier now takes one weight per row"
PYTHON
