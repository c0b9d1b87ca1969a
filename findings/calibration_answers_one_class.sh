#!/usr/bin/env bash
# CalibratedClassifierCV is what scikit-learn offers for probabilities of a
# classifier. Around SelfTrainingClassifier or LabelSpreading, with -1 for
# unlabelled rows, it fits without a word and then gives every row the first
# class with probability 1, although the same classifier alone is right
# everywhere: the splits and the calibrators count -1 as a third class.
# Seen with scikit-learn 1.9.1. A wrong certainty is worse than none
# where there are too few labels to find it out.
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
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

for name in ["numpy", "scipy", "scikit-learn"]:
    print(name, version(name))
rng = np.random.default_rng(0)
truth = np.arange(200) % 2
X = rng.normal(size=(200, 2)) + 4 * truth[:, None]
y = np.where(np.arange(200) < 20, truth, -1)

for base in (SelfTrainingClassifier(LogisticRegression()), LabelSpreading()):
    alone = base.fit(X, y).score(X, truth)
    model = CalibratedClassifierCV(base, cv=5).fit(X, y)
    probability = model.predict_proba(X)
    print(type(base).__name__, "alone", alone, "calibrated", model.score(X, truth))
    print("  classes", model.classes_, "largest and smallest probability of class 0:",
          probability[:, 1].max(), probability[:, 1].min())
    assert alone > 0.95, "the classifier alone no longer solves the task"
    assert np.all(model.predict(X) == 0), "the calibrated classifier no longer answers one class"
    assert probability[:, 1].min() > 0.99, "the calibrated classifier is no longer certain"
PYTHON
