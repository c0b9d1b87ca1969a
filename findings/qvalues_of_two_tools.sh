#!/usr/bin/env bash
# Two libraries compute q-values of target and decoy scores; the same scores
# should give much the same rows at one per cent. By default pyteomics counts
# decoys twice and adds nothing, mokapot adds one decoy: of 90 targets
# above the first decoy pyteomics accepts all, mokapot none. Told
# formula=1, correction=1, pyteomics gives the q-values of mokapot.
# Seen with pyteomics 5.0.1 and mokapot 0.10.0.
# Small samples with few sure rows are where the one decoy decides.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.9.1 numba==0.68.1 lxml==6.1.3 mokapot==0.10.0 pyteomics==5.0.1
cd "$folder"

venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
from mokapot.qvalues import tdc
from pyteomics import auxiliary

for name in ["numpy", "scipy", "pandas", "scikit-learn", "numba", "lxml", "mokapot", "pyteomics"]:
    print(name, version(name))
rng = np.random.default_rng(0)
target = np.r_[np.ones(90, bool), rng.random(310) < 0.6]
target[90] = False
scores = np.arange(400, 0, -1).astype(float)
table = pd.DataFrame({"score": scores, "decoy": ~target})


def by_pyteomics(**how):
    full = auxiliary.qvalues(table, key="score", is_decoy="decoy", reverse=True, full_output=True, **how)
    return full.sort_values("score", ascending=False)["q"].to_numpy()


q = {"mokapot": tdc(scores, target), "pyteomics": by_pyteomics(), "told": by_pyteomics(formula=1, correction=1)}
accepted = {}
for rate in (0.01, 0.05, 0.2, 0.5):
    accepted[rate] = {name: int(np.sum(target & (values <= rate))) for name, values in q.items()}
    print("targets accepted at", rate, accepted[rate])
assert np.allclose(q["told"], q["mokapot"], rtol=1e-12), "formula=1, correction=1 no longer gives mokapot's q-values"
assert accepted[0.01]["pyteomics"] == 90, "pyteomics now accepts another number"
assert accepted[0.01]["mokapot"] == 0, "mokapot now accepts without a first decoy"
PYTHON
