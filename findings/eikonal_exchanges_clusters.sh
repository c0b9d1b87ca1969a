#!/usr/bin/env bash
# gl.ssl.peikonal classifies a row by the label that is nearest along the
# graph, so clusters far apart, each with labels, should be its easiest case.
# If the graph falls into one component per class, all unlabelled rows get a
# wrong class: a row that a class cannot reach keeps distance 0 to it.
# Laplace learning on the same graph is right everywhere.
# Seen with graphlearning 1.7.5, no warning. The better the data are
# separated, the likelier it is, and few labels are left to notice.
# (pip builds this package: a C compiler is needed.)
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 matplotlib==3.11.2 graphlearning==1.7.5
cd "$folder"

venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import graphlearning as gl
import numpy as np

for name in ["numpy", "scipy", "scikit-learn", "matplotlib", "graphlearning"]:
    print(name, version(name))
rng = np.random.default_rng(0)
truth = np.arange(200) % 2
labeled = np.arange(10)
noise = rng.normal(size=(200, 2))
right = {}
for distance in (2, 8):
    W = gl.weightmatrix.knn(noise + distance * truth[:, None], 10)
    for name in ("peikonal", "laplace"):
        answers = getattr(gl.ssl, name)(W).fit_predict(labeled, truth[labeled])
        right[name, distance] = np.mean(answers[10:] == truth[10:])
        print("clusters", distance, "apart, connected", gl.graph(W).isconnected(), name,
              "right on unlabelled rows:", right[name, distance])
assert right["peikonal", 2] > 0.8, "peikonal is no longer good on a connected graph"
assert right["laplace", 8] == 1, "laplace is no longer right on two components"
assert right["peikonal", 8] == 0, "peikonal no longer exchanges the classes of two components"
PYTHON
