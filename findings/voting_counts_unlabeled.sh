#!/usr/bin/env bash
# A semi-supervised classifier inside VotingClassifier, BaggingClassifier or
# OneVsRestClassifier should still read -1 as "no label", as it does alone.
# The three take -1 for one more class when they count the classes, so that
# no row is unlabelled any more. They answer -1 for most new rows, in
# silence. Seen with scikit-learn 1.9.1. With few labels nearly all rows are
# unlabelled, so "unlabelled" is the class that wins.
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
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.semi_supervised import LabelSpreading

for name in ["numpy", "scipy", "scikit-learn"]:
    print(name, version(name))
rng = np.random.default_rng(0)
truth = np.arange(200) % 2
X = rng.normal(size=(200, 2)) + 4 * truth[:, None]
y = np.where(np.arange(200) < 20, truth, -1)

alone = LabelSpreading().fit(X, y).score(X, truth)
print("LabelSpreading alone: accuracy", alone)
assert alone > 0.95, "LabelSpreading alone no longer solves the task"
for wrapper in (
    VotingClassifier([("spread", LabelSpreading())]),
    BaggingClassifier(LabelSpreading(), random_state=0),
    OneVsRestClassifier(LabelSpreading()),
):
    answers = wrapper.fit(X, y).predict(X)
    share = np.mean(answers == -1)
    print(type(wrapper).__name__, "classes", wrapper.classes_, "answers -1 for a share of", share)
    assert share > 0.9, "the wrapper no longer takes -1 for a class"
PYTHON
