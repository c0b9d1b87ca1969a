"""How often the heuristics find the global optimum that branch and bound certifies.

Hinge and symmetric hinge, C = 1, C* = 1/2, mean output 0 on the unlabeled points. ``set``:
two (G2C) or four (G4C) Gaussians in 2 or 50 dimensions and a linear kernel, or half circles
(moons) and exp(−2‖x − x'‖²); u + 4 points, half of them in each class, two of each class labeled,
so that the ratio of the labels is nearly that of the unlabeled points. Every method may take its
own losses: the signs of its outputs on the unlabeled points become labels, the SVM of these labels
is solved under the balance constraint, and its signs become labels again until they repeat. A hit
is a J at most 1e-3 above the optimum J*, relatively; ``gap`` is the mean of J/J* − 1 in per cent.
"balanced SVM" is the SVM of the labeled points under the balance constraint; the others run with
their defaults at C = 1, C* = 1/2 and ratio 1/2, linear methods on the root of the Gram matrix.
``least_gap`` is the smallest J/J* − 1 of all runs, ``nodes`` and ``cpu_ms`` are those of the exact
solver, and ``error_of_the_optimum`` counts wrong labels of the unlabeled points in per cent.
"""

import time

import numpy as np

from benchmarks.harness import digits

HIT = 1e-3
# name: (estimator, its parameters beside C, C_star, balance and kernel)
METHODS = {
    "balanced SVM": (None, {}),
    "QNS3VM": ("QNS3VM", {}),
    "QNS3VM, raw coefficients": ("QNS3VM", {"coordinates": "raw", "annealing": "paper"}),
    "CCCPS3VM, s = −0.3": ("CCCPS3VM", {"s": -0.3}),
    "CCCPS3VM, s = 0": ("CCCPS3VM", {"s": "paper"}),
    "NewtonS3VM": ("NewtonS3VM", {}),
    "S3VMLight": ("S3VMLight", {}),
    "MultiSwitchTSVM": ("MultiSwitchTSVM", {}),
    "DAS3VM": ("DAS3VM", {}),
}
LINEAR_ONLY = ("MultiSwitchTSVM", "DAS3VM")
ROWS = [
    *(
        {"set": name, "u": 16, "instances": 100}
        for name in ("G2C 2-d", "G4C 2-d", "G2C 50-d", "moons")
    ),
    *({"set": name, "u": 32, "instances": 30} for name in ("G2C 50-d", "moons")),
]


def instance(name, u, seed):
    """Rows, labels −1, +1 and 0, true labels, and the kernel."""
    from s3vm_lib import datasets
    from s3vm_lib.kernels import Kernel

    if name == "moons":
        X, y = datasets.make_moons(u + 4, noise=0.1, random_state=seed)
        kernel = Kernel("rbf", 2.0)
    else:
        kind, d = name.split()
        make = {"G2C": datasets.make_g2c, "G4C": datasets.make_g4c}[kind]
        X, y = make(u + 4, int(d.removesuffix("-d")), random_state=seed)
        kernel = Kernel("linear")
    truth, t = 2.0 * y - 1, np.zeros(u + 4)
    for label in (-1, 1):
        t[np.flatnonzero(truth == label)[:2]] = label
    return X, t, truth, kernel


def relabel(problem, K, t, labels):
    """J of the labels' SVM, and of its signs' SVM and so on until labels repeat: the least."""
    from s3vm_lib.checks import fixed_label_svm

    best, seen = np.inf, set()
    while labels.tobytes() not in seen:
        seen.add(labels.tobytes())
        value, beta, b = fixed_label_svm(problem, K, labels, t != 0)
        best = min(best, value)
        labels = np.where(t != 0, t, np.where(K @ beta + b > 0, 1.0, -1.0))
    return best


def measure(u, instances, **row):
    """One row: see the protocol in the module's docstring."""
    import s3vm_lib
    from s3vm_lib.branch_and_bound import solve_branch_and_bound
    from s3vm_lib.checks import fixed_label_svm
    from s3vm_lib.losses import LabeledLoss
    from s3vm_lib.objective import Problem

    gaps = {name: [] for name, (cls, _) in METHODS.items() if cls is None or hasattr(s3vm_lib, cls)}
    nodes, seconds, errors = [], [], []
    loss = LabeledLoss("hinge")
    for seed in range(-1, instances):  # the first one compiles
        X, t, truth, kernel = instance(row["set"], u, max(seed, 0))
        K = kernel.gram(X)
        problem = Problem(loss, loss.effective, 1.0, 0.5, kernel, balance="mean", ratio=0.5)
        start = time.process_time()
        exact = solve_branch_and_bound(problem, K, t)
        elapsed = time.process_time() - start
        if exact.status != "converged":
            raise RuntimeError(f"no certificate for {row} seed {seed}: {exact.status}")
        if seed < 0:
            continue
        seconds.append(elapsed)
        nodes.append(exact.n_iter)
        errors.append(100 * np.mean(exact.labels[t == 0] != truth[t == 0]))
        values, vectors = np.linalg.eigh(K)
        root = vectors * np.sqrt(np.maximum(values, 0))
        y = np.where(t == 0, -1, (t > 0).astype(int))
        for name in gaps:
            cls, options = METHODS[name]
            if cls is None:
                _, beta, b = fixed_label_svm(problem, K, t, t != 0)
                f = K @ beta + b
            else:
                own = {} if cls in LINEAR_ONLY else {"kernel": "precomputed"}
                model = getattr(s3vm_lib, cls)(C=1.0, C_star=0.5, balance=0.5, **own, **options)
                rows = root if cls in LINEAR_ONLY else K
                f = model.fit(rows, y).decision_function(rows)
            labels = np.where(t != 0, t, np.where(f > 0, 1.0, -1.0))
            value = relabel(problem, K, t, labels)
            gaps[name].append(value / exact.objective - 1)
    return {
        "hits": {name: digits(100 * np.mean(np.array(g) <= HIT), 3) for name, g in gaps.items()},
        "gap": {name: digits(100 * np.mean(g), 3) for name, g in gaps.items()},
        "least_gap": digits(min(min(g) for g in gaps.values()), 3),
        "nodes": {"mean": digits(np.mean(nodes)), "largest": int(np.max(nodes))},
        "cpu_ms": {
            "mean": digits(1e3 * np.mean(seconds), 3),
            "largest": digits(1e3 * np.max(seconds), 3),
        },
        "error_of_the_optimum": digits(np.mean(errors), 3),
    }
