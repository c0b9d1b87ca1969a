"""Changes of μ in IL-S³VM: three guesses why the paper counts so many more than we do.

As ``il_tables23``, at 1000 rows of each set and its three kernels, with one thing changed at a
time. ``base`` "path": the rows of the base came in one by one on the path as well, in random
order, labeled rows anywhere, and not from a batch solver. ``features`` "stored": the features as
they are published, not scaled to [−1, 1] (the rbf kernel of width .1 is then nearly the identity
matrix for cod-rna and madelon; madelon with the polynomial kernel, whose values are near 1e16, is
left out, since CCCP takes long on it). ``rows`` "on the line": of 400 candidates the 20 that arrive
are those with the least |f|, which makes a change of sign near them as likely as can be. Counts of
20 labeled and 20 unlabeled arrivals: ``iterations``, ``changing`` and ``moves``, sums.
"""

import copy

import numpy as np

from benchmarks import il_paper
from benchmarks.tables.il_tables23 import COUNTS, TRIALS

VARIANTS = (
    {"base": "cccp", "features": "scaled", "rows": "random"},
    {"base": "path", "features": "scaled", "rows": "random"},
    {"base": "cccp", "features": "stored", "rows": "random"},
    {"base": "cccp", "features": "scaled", "rows": "on the line"},
)
ROWS = [
    {"set": name, "kernel": kernel, **variant}
    for name, (_, _, scaled) in il_paper.SETS.items()
    for kernel in il_paper.KERNELS
    for variant in VARIANTS
    if scaled or variant["features"] == "scaled"
    if (name, kernel, variant["features"]) != ("Madelon", "poly", "stored")
]
N, CANDIDATES = 1000, 400


def measure(set, kernel, base, features, rows):
    """One row: see the protocol in the module's docstring."""
    added = CANDIDATES if rows == "on the line" else il_paper.ADDED
    data = il_paper.stream(set, N, 0, added=added, scaled=features == "scaled")
    if base == "path":
        order = np.random.default_rng(0).permutation(N)
        data = data._replace(X=data.X[order], y=data.y[order], truth=data.truth[order])
    model = il_paper.base(data, kernel, update="path", start=base, record=True)
    chosen = np.arange(TRIALS)
    if rows == "on the line":
        chosen = np.argsort(np.abs(model.decision_function(data.X_new)))[:TRIALS]
    result = {"positive_share": round(float(np.mean(model.decision_function(data.X) > 0)), 3)}
    for kind in ("labeled", "unlabeled"):
        found = []
        for k in chosen:
            other = copy.deepcopy(model)
            y = data.y_new[k : k + 1] if kind == "labeled" else [-1]
            other.partial_fit(data.X_new[k : k + 1], y)
            found.append([*il_paper.counts(other)[-1], il_paper.moves(other, data.y)])
        sums = np.sum(found, axis=0).tolist()
        result[kind] = dict(zip(COUNTS, sums, strict=True))
    return result
