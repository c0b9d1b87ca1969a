#!/usr/bin/env bash
# A CSR matrix may hold an entry twice; SciPy says that the values add up, and
# its own recipe for a matrix of terms, in the docs of csr_array, makes such
# entries. SVC multiplies sparse rows without adding them up first, so
# it learns from other data than those of X.toarray(). TfidfTransformer and
# StandardScaler go wrong too, LinearSVC does not; X.sum_duplicates() heals.
# Seen with scikit-learn 1.9.1 and SciPy 1.17.1, nothing warns. Counts of
# words are the usual data where texts are many and labels few.
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
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import SVC, LinearSVC

for name in ["numpy", "scipy", "scikit-learn"]:
    print(name, version(name))
words = "aab cac bbba ccd dadd bb ccccccad".split()
y = [0, 1, 0, 1, 1, 0, 1]
columns = [ord(letter) - ord("a") for word in words for letter in word]
starts = np.r_[0, np.cumsum([len(word) for word in words])]
X = sparse.csr_matrix((np.ones(len(columns)), columns, starts))
dense = X.toarray()
summed = X.copy()
summed.sum_duplicates()

gap = {}
for model in (SVC(kernel="linear"), SVC(kernel="rbf", gamma=1.0), LinearSVC()):
    right = model.fit(dense, y).decision_function(dense)
    gap[str(model)] = np.abs(model.fit(X.copy(), y).decision_function(X.copy()) - right).max()
    healed = np.abs(model.fit(summed, y).decision_function(summed) - right).max()
    print(model, "sparse against dense:", gap[str(model)], "after sum_duplicates:", healed)
    assert healed < 1e-3, "sum_duplicates no longer heals the matrix"
tfidf = TfidfTransformer().fit_transform
gap["tfidf"] = np.abs(tfidf(X.copy()).toarray() - tfidf(dense).toarray()).max()
print("TfidfTransformer sparse against dense:", gap["tfidf"])
assert gap["LinearSVC()"] < 1e-3, "LinearSVC no longer adds the entries up"
assert gap["SVC(kernel='linear')"] > 0.1, "SVC now adds repeated entries up"
assert gap["tfidf"] > 0.1, "TfidfTransformer now adds repeated entries up"
PYTHON
