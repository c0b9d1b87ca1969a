"""`ILS3VM`: 20,000 cod-rna rows from nothing, one after the other: CPU seconds and memory.

Features scaled to [−1, 1], exp(−0.1‖x − x'‖²), C = 10, C* = 5; 300 of the rows are labeled, the
``first`` ones or ``anywhere``. The rows come in calls of ``partial_fit`` with ``call`` rows each.
Every row of the table is measured in a process of its own, after a short stream that compiles.
``cpu_seconds``: of all calls. ``peak_megabytes``: the largest resident memory of the process, and
``megabytes_before`` that before the stream, when all is imported and the data are in memory.
"""

import json
import subprocess
import sys
from pathlib import Path

ROWS = [
    {"labels": labels, "call": call} for labels in ("first", "anywhere") for call in (1, 100, 20000)
]
N, LABELED = 20_000, 300


def stream(labels, call, n=N, seed=0):
    """Run in the process of a row: see the protocol in the module's docstring."""
    import resource
    import time

    import numpy as np

    from benchmarks import il_paper
    from benchmarks.harness import digits
    from s3vm_lib import ILS3VM

    X, truth = il_paper.data("CodRNA")
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(truth))[:n]
    X, truth = X[rows], truth[rows]
    labeled = np.arange(LABELED) if labels == "first" else rng.permutation(n)[:LABELED]
    y = np.full(n, -1)
    y[labeled] = truth[labeled]

    def learn(count):
        model = ILS3VM(C=il_paper.C, C_star=il_paper.C_STAR, **il_paper.KERNELS["rbf"])
        for start in range(0, count, call):
            stop = min(start + call, count)
            model.partial_fit(X[start:stop], y[start:stop], classes=[0, 1])
        return model

    def megabytes():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    learn(min(n, 400))
    before = megabytes()
    start = time.process_time()
    model = learn(n)
    seconds = time.process_time() - start
    hidden = y < 0
    counts = il_paper.counts(model)
    return {
        "cpu_seconds": digits(seconds),
        "peak_megabytes": digits(megabytes()),
        "megabytes_before": digits(before),
        "objective": digits(model.objective_, 6),
        "support": len(model.support_),
        "unlabeled_error": digits(100 * (model.predict(X[hidden]) != truth[hidden]).mean(), 3),
        "positive_share": digits((model.decision_function(X[hidden]) > 0).mean(), 3),
        "last_call": {"iterations": sum(c[0] for c in counts), "flips": sum(c[1] for c in counts)},
    }


def measure(labels, call):
    """One row: see the protocol in the module's docstring."""
    code = (
        "import sys, json; from benchmarks import run; run.one_thread(); "
        "from benchmarks.tables import il_stream; "
        "print(json.dumps(il_stream.stream(*json.loads(sys.argv[1]))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps([labels, call])],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)
