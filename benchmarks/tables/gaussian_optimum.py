"""How often QNS3VM and NewtonS3VM find the global optimum of their own problem.

Both minimize the Gaussian loss exp(−3f²) of the unlabeled points, the former with the modified
logistic loss and the latter with the squared hinge on the labeled ones, under the balance
constraint; defaults at C = 1, C* = 1/2 and ratio 1/2. The optimum J* is certified by
`BranchBoundS3VM` up to a relative gap of 1e-6. ``set``: two (G2C) or four (G4C) Gaussians in 2
dimensions and a linear kernel, or half circles (moons) and exp(−2‖x − x'‖²); u + 4 points as in
`exact_hits`. A hit is a J at most 1e-3 above J*, relatively; ``gap`` is the mean of J/J* − 1 in per
cent, ``least_gap`` the smallest J/J* − 1; ``nodes`` and ``cpu_ms`` are those of the exact solver.
"""

import time

import numpy as np

from benchmarks.harness import digits
from benchmarks.tables.exact_hits import HIT, instance

ROWS = [
    {"method": method, "set": name, "u": 8, "instances": 20}
    for method in ("QNS3VM", "NewtonS3VM")
    for name in ("G2C 2-d", "G4C 2-d", "moons")
]


def measure(method, u, instances, **row):
    """One row: see the protocol in the module's docstring."""
    import s3vm_lib
    from s3vm_lib.branch_and_bound import solve_branch_and_bound

    gaps, nodes, seconds = [], [], []
    for seed in range(-1, instances):  # the first one compiles
        X, t, _, kernel = instance(row["set"], u, max(seed, 0))
        K = kernel.gram(X)
        model = getattr(s3vm_lib, method)(C=1.0, C_star=0.5, balance=0.5, kernel="precomputed")
        model.fit(K, np.where(t == 0, -1, (t > 0).astype(int)))
        start = time.process_time()
        exact = solve_branch_and_bound(model.problem_, K, t)
        elapsed = time.process_time() - start
        if exact.status != "converged":
            raise RuntimeError(f"no certificate for {row} seed {seed}: {exact.status}")
        if seed >= 0:
            gaps.append(model.objective_ / exact.objective - 1)
            nodes.append(exact.n_iter)
            seconds.append(elapsed)
    return {
        "hits": digits(100 * np.mean(np.array(gaps) <= HIT), 3),
        "gap": digits(100 * np.mean(gaps), 3),
        "least_gap": digits(min(gaps), 3),
        "nodes": {"mean": digits(np.mean(nodes)), "largest": int(np.max(nodes))},
        "cpu_ms": {
            "mean": digits(1e3 * np.mean(seconds), 3),
            "largest": digits(1e3 * np.max(seconds), 3),
        },
    }
