#!/usr/bin/env bash
# An exported classifier should give the classes that the original gives.
# SGDClassifier(loss="modified_huber") with three classes decides by its
# decision values; the graph of skl2onnx takes the largest probability. With this
# loss they are cut at 0 and 1, so rows far out tie, and ties go to the first
# class. A third of the rows here change class, with equal probabilities.
# Seen with skl2onnx 1.20.0, onnxruntime 1.32.0, scikit-learn 1.9.1. Self-training
# on many rows uses this loss: a fast linear model with probabilities.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 onnx==1.23.2 onnxruntime==1.32.0 skl2onnx==1.20.0
cd "$folder"

venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import onnxruntime
from skl2onnx import to_onnx
from sklearn.linear_model import SGDClassifier

for name in ["numpy", "scipy", "scikit-learn", "onnx", "onnxruntime", "skl2onnx"]:
    print(name, version(name))
rng = np.random.default_rng(1)
truth = np.arange(300) % 3
X = (rng.normal(size=(300, 4)) + 1.5 * np.eye(4)[truth]).astype(np.float32)
differ = {}
for loss in ("modified_huber", "log_loss"):
    model = SGDClassifier(loss=loss, random_state=0).fit(X, truth)
    graph = to_onnx(model, X[:1], options={"zipmap": False})
    labels, there = onnxruntime.InferenceSession(graph.SerializeToString()).run(None, {"X": X})
    wrong = labels != model.predict(X)
    differ[loss] = wrong.mean()
    print(loss, "share of rows with another class:", differ[loss], "largest difference of probabilities:",
          np.abs(there - model.predict_proba(X)).max(), "classes given to them:", np.unique(labels[wrong]))
    assert np.allclose(there, model.predict_proba(X), atol=1e-5), "the probabilities now differ too"
assert differ["log_loss"] < 0.01, "another loss now differs too"
assert differ["modified_huber"] > 0.03, "the exported labels now follow the decision values"
PYTHON
