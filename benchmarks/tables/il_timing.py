"""`ILS3VM`: CPU time of 20 arriving rows against warm CCCP, NN-BB and starting over.

Settings, data and numbers of labels of `benchmarks.il_paper`; n rows to begin with, to which
`ILS3VM` is fitted, the common base, then 20 labeled or 20 unlabeled rows; seeds 0-4. "ILS3VM": one
``partial_fit`` of all 20. "warm CCCP once": the 20 rows at once, from the dual variables, outputs
and stored Gram matrix of the base; "warm CCCP 20 times": one after the other; both to KKT residual
1e-6 in double and 1e-3 in single precision. "NN-BB": ``NNBBS3VM.partial_fit`` with five neighbors
(seed 0 only beyond n = 1000). "scratch": ``CCCPS3VM.fit`` of the n + 20 rows (seed 0 only beyond
n = 2000). Everyone computes the kernel values of the new rows; the base, its Gram matrix and copies
are not counted, and the spare memory of a copy has been written to. ILS3VM and warm CCCP: medians
of three repetitions, in turns, each right after the same call on another copy. Warm CCCP here is a
solver that checks no input and sets no attributes: "solver alone" is the `Follower` of ILS3VM
likewise, and the parameters of ``partial_fit`` are not validated.
``ratios`` are medians over the seeds of CPU seconds over those of ILS3VM: above 1, ILS3VM is
faster. ``margin`` counts rows with 0 < |β| < C or C*, ``flips`` the unlabeled rows of the base
whose sign has changed, ``residual`` is the largest KKT violation of ILS3VM over the seeds, and
``difference`` the median of J(ILS3VM)/J(warm CCCP once, 1e-6) − 1: the minima may differ.
"""

import copy

import numpy as np
from sklearn import config_context

from benchmarks import il_paper
from benchmarks.harness import digits

SIZES = {
    "CodRNA": (1000, 2000, 5000),
    "Usps": (1000, 1980),
    "Mushrooms": (1000, 2000, 5000),
    "A9a": (1000, 2000, 5000),
}
ROWS = [
    {"set": name, "n": n, "kernel": kernel}
    for name, sizes in SIZES.items()
    for n in sizes
    for kernel in il_paper.KERNELS
]
SEEDS, REPEATS = 5, 3


def measure(set, n, kernel):
    """One row: see the protocol in the module's docstring."""
    runs = {"labeled": [], "unlabeled": []}
    for seed in range(SEEDS):
        data = il_paper.stream(set, n, seed)
        model = il_paper.base(data, kernel)
        for kind, found in runs.items():
            found.append(arrivals(data, kernel, model, kind, seed))
    return {kind: summary(found) for kind, found in runs.items()}


def arrivals(data, kernel, model, kind, seed):
    """CPU seconds of every method on one base and one kind of rows."""
    from s3vm_lib import NNBBS3VM

    n, options = len(data.y), il_paper.KERNELS[kernel]
    y = data.y_new if kind == "labeled" else np.full(il_paper.ADDED, -1)
    t_new = 2.0 * y - 1 if kind == "labeled" else np.zeros(il_paper.ADDED)
    exact, coarse = (
        il_paper.warm(data, kernel, model, *v) for v in ((1e-6, np.float64), (1e-3, np.float32))
    )

    def online():
        other = il_paper.twin(model, "_kernel_store")
        return lambda: other.partial_fit(data.X_new, y)

    solver = il_paper.follower(data, kernel, model)

    def alone():
        other = il_paper.twin(solver, "store")
        return lambda: il_paper.arrive(other, data.X_new, t_new)

    def once(start):
        other = start.copy()
        return lambda: other.absorb(data.X_new, t_new)

    def singly(start):
        other = start.copy()

        def run():
            for j in range(il_paper.ADDED):
                other.absorb(data.X_new[j : j + 1], t_new[j : j + 1])
            return other

        return run

    prepared = {
        "ILS3VM": online,
        "solver alone": alone,
        "warm CCCP once, 1e-6": lambda: once(exact),
        "warm CCCP once, 1e-3": lambda: once(coarse),
        "warm CCCP 20 times, 1e-6": lambda: singly(exact),
        "warm CCCP 20 times, 1e-3": lambda: singly(coarse),
    }
    if seed == 0:  # compile
        for prepare in prepared.values():
            prepare()()
    seconds, values = {name: [] for name in prepared}, {}
    for _ in range(REPEATS):
        for name, prepare in prepared.items():
            with config_context(skip_parameter_validation=True):
                time, values[name] = il_paper.cpu(prepare(), rehearsal=prepare())
            seconds[name].append(time)
    seconds = {name: float(np.median(times)) for name, times in seconds.items()}
    if n <= 1000 or seed == 0:
        other = NNBBS3VM(C=il_paper.C, C_star=il_paper.C_STAR, **options).fit(data.X, data.y)
        if seed == 0:
            copy.deepcopy(other).partial_fit(data.X_new[:1], y[:1])
        seconds["NN-BB"], _ = il_paper.cpu(lambda: other.partial_fit(data.X_new, y))
    if n <= 2000 or seed == 0:
        X, labels = il_paper.joined(data.X, data.X_new), np.append(data.y, y)
        for tol in (1e-6, 1e-3):
            other = il_paper.cccp(kernel, tol)
            if seed == 0:
                il_paper.cccp(kernel, tol).fit(X[-200:], np.arange(200) % 3 - 1)
            seconds[f"scratch, {tol:.0e}"], _ = il_paper.cpu(
                lambda other=other: other.fit(X, labels)
            )
    found = il_paper.state(values["ILS3VM"], exact.copy(), data.X_new, t_new)
    warm = values["warm CCCP once, 1e-6"].objective()
    return {
        "seconds": seconds,
        "margin": found.margin,
        "flips": found.flips,
        "residual": found.residual,
        "difference": found.objective / warm - 1,
    }


def summary(runs):
    """Medians over the seeds."""
    names = {name for run in runs for name in run["seconds"]} - {"ILS3VM"}
    own = [run["seconds"]["ILS3VM"] for run in runs]
    ratios = {}
    for name in sorted(names):
        pairs = [r["seconds"][name] / r["seconds"]["ILS3VM"] for r in runs if name in r["seconds"]]
        ratios[name] = digits(np.median(pairs), 3)
    return {
        "cpu_ms": digits(1e3 * np.median(own), 3),
        "ratios": ratios,
        "margin": int(np.median([run["margin"] for run in runs])),
        "flips": [run["flips"] for run in runs],
        "residual": digits(max(run["residual"] for run in runs), 2),
        "difference": digits(np.median([run["difference"] for run in runs]), 3),
    }
