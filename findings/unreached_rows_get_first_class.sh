#!/usr/bin/env bash
# LabelSpreading and LabelPropagation give each row the class whose label
# arrives. Rows that no label can reach (a component of the graph without a
# label) would be expected to stay -1. They get the class that sorts first:
# exchange the names of the classes and all those rows change sides. fit warns
# of nothing, their distributions are zero, their predict_proba is nan.
# Seen with scikit-learn 1.9.1. With few labels whole clusters have none, and
# transduction_ alone does not show it.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
cd "$folder"

venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import warnings

import numpy as np
from sklearn.semi_supervised import LabelPropagation, LabelSpreading

for name in ["numpy", "scipy", "scikit-learn"]:
    print(name, version(name))
X = np.r_[0:4, 100:104, 200:204].astype(float)[:, None]
y = np.full(12, -1)

for model in (LabelSpreading(kernel="knn", n_neighbors=3), LabelPropagation(kernel="knn", n_neighbors=3)):
    for first, second in ((1, 2), (2, 1)):
        y[0], y[4] = first, second
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(X, y)
        lost = model.transduction_[8:]
        with np.errstate(invalid="ignore"):
            probability = model.predict_proba(X[8:])
        print(type(model).__name__, "labels", (first, second), "rows without a label get", lost,
              "with", model.label_distributions_[8], "and predict_proba", probability[0])
        assert np.all(lost == 1), "rows that no label reaches no longer get the first class"
        assert np.all(model.label_distributions_[8:] == 0), "their distributions are no longer zero"
        assert np.all(np.isnan(probability)), "their predict_proba is no longer nan"
PYTHON
