#!/usr/bin/env bash
# Normalizer(norm="max") divides a row by its largest absolute value. The graph
# that skl2onnx writes for it divides by the largest value: a row whose
# largest entry is negative has its signs turned, and where the largest is
# small and positive the row is not scaled to 1.
# Seen with skl2onnx 1.20.0, onnxruntime 1.32.0, scikit-learn 1.9.1; "l1"
# and "l2" are right. Nothing warns, and a classifier behind it answers for
# rows unlike all that it was fitted on.
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
from sklearn.preprocessing import Normalizer

for name in ["numpy", "scipy", "scikit-learn", "onnx", "onnxruntime", "skl2onnx"]:
    print(name, version(name))
X = np.array([[-4, -2], [3, -4], [3, 4]], dtype=np.float32)
results = {}
for norm in ("l1", "l2", "max"):
    model = Normalizer(norm=norm).fit(X)
    session = onnxruntime.InferenceSession(to_onnx(model, X).SerializeToString())
    results[norm] = model.transform(X), session.run(None, {"X": X})[0]
    print(norm, "scikit-learn", results[norm][0].tolist(), "ONNX", results[norm][1].tolist())
assert np.allclose(*results["l1"]) and np.allclose(*results["l2"]), "l1 or l2 now differ too"
assert np.allclose(results["max"][0][2], results["max"][1][2]), "a row of positive entries now differs"
assert np.allclose(results["max"][1][0], [2, 1]), "the graph no longer divides by the largest value"
PYTHON
