"""Figure 3 of the IL-S³VM paper: CPU seconds of 20 arriving rows, three methods.

Settings, data and numbers of labels of `benchmarks.il_paper`, sizes and kernels of the paper. n
rows, then 20 labeled or 20 unlabeled ones. BL-S³VM is ``CCCPS3VM.fit`` of all n + 20 rows (CCCP on
SMO, tol = 1e-3), as in the paper "from scratch"; NN-BB is ``NNBBS3VM.partial_fit`` with five
neighbors, up to n = 2000; IL-S³VM is ``ILS3VM.partial_fit`` with ``update="path"``, the paper's
path of every row, and "ILS3VM" the same with the library's default, which follows the path of one
row in larger steps. One run each after a first one that compiles; kernel values of the n rows are
not counted for the incremental methods (a copy of the base has those of its margin set computed
before the clock starts). Means over ``trials`` base states: 5 up to n = 2000, 2 beyond (20 in the
paper). ``margin``: rows with 0 < |β| < C or C* in the base, mean. The paper's seconds (MATLAB) are
in its figure only and not repeated. `il_timing` compares more evenly.
"""

import copy

import numpy as np

from benchmarks import il_paper
from benchmarks.harness import digits
from benchmarks.tables.il_tables23 import ROWS as CELLS

ROWS = list(CELLS)
NN_BB_LIMIT = 2000


def measure(set, n, kernel):
    """One row: see the protocol in the module's docstring."""
    from s3vm_lib import NNBBS3VM

    trials = 5 if n <= 2000 else 2
    seconds, margin = {}, []
    for seed in range(trials):
        data = il_paper.stream(set, n, seed)
        model = il_paper.base(data, kernel)
        row_by_row = copy.deepcopy(model).set_params(update="path")
        margin.append(il_paper.on_margin(model, data.y))
        other = NNBBS3VM(C=il_paper.C, C_star=il_paper.C_STAR, **il_paper.KERNELS[kernel])
        if n <= NN_BB_LIMIT:
            other.fit(data.X, data.y)
        X = il_paper.joined(data.X, data.X_new)
        if seed == 0:
            for one in (model, row_by_row):
                copy.deepcopy(one).partial_fit(data.X_new, data.y_new)
            il_paper.cccp(kernel, 1e-3).fit(X[-200:], np.arange(200) % 3 - 1)
            if n <= NN_BB_LIMIT:
                copy.deepcopy(other).partial_fit(data.X_new[:1], data.y_new[:1])
        for kind in ("labeled", "unlabeled"):
            y = data.y_new if kind == "labeled" else np.full(il_paper.ADDED, -1)
            labels, run = np.append(data.y, y), seconds.setdefault(kind, {})
            path, online = (copy.deepcopy(m).forget([]) for m in (row_by_row, model))
            nearest = copy.deepcopy(other)
            functions = {
                "IL-S3VM": lambda m=path, d=data, y=y: m.partial_fit(d.X_new, y),
                "ILS3VM": lambda m=online, d=data, y=y: m.partial_fit(d.X_new, y),
                "BL-S3VM": lambda X=X, y=labels: il_paper.cccp(kernel, 1e-3).fit(X, y),
            }
            if n <= NN_BB_LIMIT:
                functions["NN-BB"] = lambda m=nearest, d=data, y=y: m.partial_fit(d.X_new, y)
            for name, function in functions.items():
                run.setdefault(name, []).append(il_paper.cpu(function)[0])
    return {
        "trials": trials,
        "margin": digits(np.mean(margin), 3),
        **{
            kind: {name: digits(np.mean(values)) for name, values in run.items()}
            for kind, run in seconds.items()
        },
    }
