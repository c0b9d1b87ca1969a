#!/usr/bin/env bash
# An array of text labels saved by scipy.io.savemat and loaded by loadmat
# should hold the same labels. A MATLAB char matrix has rows of one length, so
# shorter labels come back with blanks at the end: "ham" is "ham ",
# and the empty mark of an unlabelled row is four blanks, a class of its
# own. A comparison with the label finds nothing, in silence.
# Seen with SciPy 1.17.1; an array of objects becomes a cell array and is
# kept. Labels travel in .mat files in the collections of this field.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.4.6 scipy==1.17.1
cd "$folder"

venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from scipy.io import loadmat, savemat

for name in ["numpy", "scipy"]:
    print(name, version(name))
y = np.array(["spam", "ham", "", "ham"])
savemat("labels.mat", {"text": y, "objects": y.astype(object)})
back = loadmat("labels.mat")
cells = [str(cell[0]) if cell.size else "" for cell in back["objects"].ravel()]
print("saved", y.tolist(), "loaded", back["text"].tolist(), "as objects", cells)
print("rows of class ham: saved", np.sum(y == "ham"), "loaded", np.sum(back["text"] == "ham"))
assert cells == y.tolist(), "an array of objects no longer comes back as it was"
assert back["text"].tolist() == ["spam", "ham ", "    ", "ham "], "text labels now come back without blanks"
PYTHON
