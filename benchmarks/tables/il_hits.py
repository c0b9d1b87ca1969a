"""`ILS3VM`: how often it ends in the global minimum, and how often where warm CCCP ends.

Rows with ``u``: four labeled and u unlabeled points of ``set`` arrive one after the other from
nothing, labeled ones first; C = 1, C* = 1/2 or C = 10, C* = 5, no balance constraint; a linear
kernel for Gaussians, exp(−2‖x − x'‖²) for moons. The minimum is certified by branch and bound. A
hit is J ≤ (1 + 1e-3) J* (the ridge alone costs about 1e-6 C); ``gap`` is the mean of J/J* − 1 in
per cent and ``least_gap`` its least value. Beside it NN-BB (five neighbors) on the same stream and
CCCP on all points at once.

Rows with ``insertions``: settings and sets of `benchmarks.il_paper`, n rows, then rows one after
the other, labeled and unlabeled in turns. Before each of them warm CCCP starts from the state of
`ILS3VM` and takes in the same row, to KKT residual 1e-8. Of the insertions during which `ILS3VM`
changed a sign (``flipped``): in how many both end with the same signs (``same``), and where not,
how often J of `ILS3VM` is lower and higher; and ``same_of_all``, which most insertions, without any
change of sign, make vacuous.
"""

import numpy as np

from benchmarks import il_paper
from benchmarks.harness import digits

ROWS = [
    *(
        {"set": name, "u": 12, "C": C, "instances": 100}
        for name in ("G2C 2-d", "G4C 2-d", "G2C 50-d", "moons")
        for C in (1.0, 10.0)
    ),
    *(
        {"set": name, "n": 500, "kernel": kernel, "insertions": 200}
        for name in ("CodRNA", "Usps", "Mushrooms", "A9a")
        for kernel in il_paper.KERNELS
    ),
]
HIT = 1e-3


def measure(set, **row):
    """One row: see the protocol in the module's docstring."""
    return exact(set, **row) if "u" in row else agreement(set, **row)


def exact(set, u, C, instances):
    """Streams of few points against the certified minimum."""
    from benchmarks.tables.exact_hits import instance
    from s3vm_lib import ILS3VM, NNBBS3VM
    from s3vm_lib.branch_and_bound import solve_branch_and_bound
    from s3vm_lib.losses import LabeledLoss
    from s3vm_lib.objective import Problem

    hinge = LabeledLoss("hinge")
    gaps = {"ILS3VM": [], "NNBBS3VM": [], "CCCPS3VM": []}
    for seed in range(instances):
        X, t, _, kernel = instance(set, u, seed)
        order = np.argsort(t == 0, kind="stable")
        X, t = X[order], t[order]
        y = np.where(t == 0, -1, (t > 0).astype(int))
        problem = Problem(hinge, hinge.effective, C, C / 2, kernel)
        best = solve_branch_and_bound(problem, kernel.gram(X), t, tol=1e-9)
        if best.status != "converged":
            raise RuntimeError(f"no certificate for {set} seed {seed}: {best.status}")
        options = {"C": C, "C_star": C / 2, "kernel": kernel.name, "gamma": kernel.gamma}
        for name, cls in (("ILS3VM", ILS3VM), ("NNBBS3VM", NNBBS3VM)):
            model = cls(**options)
            for k in range(len(t)):
                model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
            gaps[name].append(model.objective_ / best.objective - 1)
        batch = il_paper.cccp("rbf", 1e-8).set_params(**options).fit(X, y)
        gaps["CCCPS3VM"].append(batch.objective_ / best.objective - 1)
    return {
        "hits": {k: digits(100 * np.mean(np.array(g) <= HIT), 3) for k, g in gaps.items()},
        "gap": {k: digits(100 * np.mean(g), 3) for k, g in gaps.items()},
        "least_gap": digits(min(min(g) for g in gaps.values()), 3),
    }


def agreement(set, n, kernel, insertions):
    """Warm CCCP from the same state, insertion by insertion."""
    data = il_paper.stream(set, n, 0, added=insertions)
    model = il_paper.base(data, kernel, update="path")
    y_new = np.where(np.arange(insertions) % 2 == 0, data.y_new, -1)
    same, flipped, lower, higher = [], [], 0, 0
    warm = il_paper.warm(data, kernel, model, 1e-8, room=insertions)
    for k in range(insertions):
        X, y = data.X_new[k : k + 1], y_new[k : k + 1]
        warm.load(*il_paper.coefficients(model, warm.n))
        other = warm.copy()
        other.absorb(X, np.where(y < 0, 0.0, 2.0 * y - 1))
        model.partial_fit(X, y)
        _, flips = il_paper.counts(model)[-1]
        warm.take(X, np.where(y < 0, 0.0, 2.0 * y - 1))
        warm.load(*il_paper.coefficients(model, warm.n))
        signs = [(w.F[: w.n] + w.b > 0)[w.t[: w.n] == 0] for w in (warm, other)]
        same.append(np.array_equal(*signs))
        flipped.append(flips > 0)
        if flips > 0 and not same[-1]:
            difference = warm.objective() - other.objective()
            lower, higher = lower + (difference < 0), higher + (difference > 0)
    same, flipped = np.array(same), np.array(flipped)
    return {
        "flipped": int(flipped.sum()),
        "same": int(np.sum(same & flipped)),
        "lower": int(lower),
        "higher": int(higher),
        "same_of_all": int(same.sum()),
    }
