#!/usr/bin/env bash
# predict_proba of LinearDiscriminantAnalysis for two classes is the logistic
# function of its decision value. The graph that skl2onnx writes is right
# about the classes, and its probabilities look right, but every log-odds
# is twice what it should be: 0.82 becomes 0.96. Three classes are right.
# Seen with skl2onnx 1.20.0, onnxruntime 1.32.0, scikit-learn 1.9.1, no warning.
# Who lets the model label rows above a probability of 0.9 takes twice as
# many, and a comparison of labels, the usual check, finds nothing.
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
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

for name in ["numpy", "scipy", "scikit-learn", "onnx", "onnxruntime", "skl2onnx"]:
    print(name, version(name))
rng = np.random.default_rng(0)
error = {}
for classes in (2, 3):
    truth = np.arange(600) % classes
    X = (rng.normal(size=(600, 3)) + np.eye(3)[truth]).astype(np.float32)
    model = LinearDiscriminantAnalysis().fit(X, truth)
    graph = to_onnx(model, X[:1], options={"zipmap": False})
    labels, there = onnxruntime.InferenceSession(graph.SerializeToString()).run(None, {"X": X})
    here = model.predict_proba(X)
    error[classes] = np.abs(there - here).max()
    print(classes, "classes: labels equal", np.array_equal(labels, model.predict(X)),
          "largest difference of probabilities", error[classes],
          "rows above .9:", np.sum(here.max(axis=1) > 0.9), np.sum(there.max(axis=1) > 0.9))
    assert np.array_equal(labels, model.predict(X)), "the labels now differ too"
    if classes == 2:
        ratio = np.log(there[:, 1] / there[:, 0]) / np.log(here[:, 1] / here[:, 0])
        print("log-odds of ONNX over those of scikit-learn: median", np.median(ratio))
        assert abs(np.median(ratio) - 2) < 1e-3, "the log-odds are no longer doubled"
assert error[3] < 1e-5 and error[2] > 0.1, "two and three classes no longer differ in this"
PYTHON
