"""`LapSVM`: CPU time of its parts, and the objective against the direct solver's.

Rows with ``u``: mixture20(50, u, 0, seed), seeds 0, 1, 2, RBF kernel of width σ = 4, 10 nearest
neighbors, weights 1, D − W, γ_A = 1e-6, γ_I = 1e-2 in Σ max(0, 1 − t f)² + γ_A ‖f‖² + γ_I fᵀLf.
``gram``, ``graph`` and ``solver`` are the CPU seconds of the kernel matrix, of the graph with its
Laplacian and of the conjugate gradients with the default stopping rule (duality gap ≤ 1e-4 J);
``newton`` those of the direct solver; ``stability`` those of conjugate gradients with Melacci's
stopping rule. ``excess``: objective over that of the direct solver, minus 1, largest over the
seeds. Medians over the seeds of the median of three; errors on the unlabeled rows, %, mean over the
seeds. ``ratio``: solver, and all parts together, over the times of LapSVMp 0.2 (MATLAB; conjugate
gradients with its early stop), scaled by the yardstick: SVC(C=1, gamma=1/32, tol=1e-3,
cache_size=1000) on mixture20(n, 0, 2000), n = 2000, 5000, 10000, took 0.047, 0.158 and 0.521 s on
the machine where LapSVMp was timed.

Row with ``n``: the same instance with n rows in all, fitted by the estimator with a memory budget
that sends it into the low-rank mode, in a process of its own; ``peak_mb`` is the largest memory of
that process.
"""

import time

import numpy as np

from benchmarks.harness import digits, race
from benchmarks.instances import MIXTURE_GAMMA, mixture20

YARDSTICK = {2000: 0.047, 5000: 0.158, 10000: 0.521}
# Unlabeled points: solver, total (seconds), error (%) of LapSVMp with conjugate gradients.
LAPSVMP = {
    500: (0.02, 0.07, 16.5),
    1000: (0.02, 0.16, 18.7),
    2000: (0.23, 0.84, 16.0),
    4000: (1.29, 4.06, 25.5),
}
ROWS = [*({"u": u} for u in LAPSVMP), {"n": 30_000, "memory": 1500}]


def measure(u=None, n=None, memory=None):
    """One row: see the protocol in the module's docstring."""
    return parts(u) if n is None else low_rank(n, memory)


def parts(u):
    """CPU seconds of the parts at u unlabeled points."""
    from sklearn.svm import SVC

    results = [_seed(u, seed) for seed in range(3)]
    functions = {}
    for n in YARDSTICK:
        X, y = mixture20(n, 0, 2000).training()
        model = SVC(C=1.0, gamma=MIXTURE_GAMMA, tol=1e-3, cache_size=1000)
        functions[n] = lambda model=model, X=X, y=y: model.fit(X, y)
    yardstick, _ = race(functions, repeats=3)
    factor = np.median([yardstick[n]["cpu_seconds"] / s for n, s in YARDSTICK.items()])
    names = ("gram", "graph", "solver", "newton", "stability")
    seconds = {name: float(np.median([r["seconds"][name] for r in results])) for name in names}
    total = seconds["gram"] + seconds["graph"] + seconds["solver"]
    solver, whole, error = LAPSVMP[u]
    return {
        "seconds": {name: digits(value) for name, value in seconds.items()},
        "total": digits(total),
        "excess": {
            name: digits(max(r["excess"][name] for r in results)) for name in ("pcg", "stability")
        },
        "error": {
            name: digits(np.mean([r["error"][name] for r in results]))
            for name in ("newton", "pcg", "stability")
        },
        "iterations": [r["iterations"] for r in results],
        "yardstick_factor": digits(factor),
        "ratio": {
            "solver": digits(seconds["solver"] / (solver * factor)),
            "total": digits(total / (whole * factor)),
        },
        "lapsvmp_error": error,
    }


def _seed(u, seed):
    from s3vm_lib.graphs import knn_graph, laplacian
    from s3vm_lib.kernels import Kernel
    from s3vm_lib.laplacian_svm import (
        COARSE,
        DeformedKernel,
        Watch,
        melacci_penalties,
        solve_deformed,
        solve_pcg,
    )

    instance = mixture20(50, u, 0, seed)
    X, y = instance.training()
    labeled, n = np.flatnonzero(y >= 0), len(y)
    t, unlabeled = 2.0 * y[labeled] - 1, np.flatnonzero(y < 0)
    kernel = Kernel("rbf", MIXTURE_GAMMA)

    def graph():
        return laplacian(knn_graph(X, 10, weights="binary"))

    K, lap = kernel.gram(X), graph()
    C, C_graph = melacci_penalties(1e-6, 1e-2, lap.n_edges)
    kappa, upper = C_graph / lap.n_edges, np.full(t.size, C)

    def gradients(rule):
        watch = Watch(rule, unlabeled, np.zeros(u), max(1, round(np.sqrt(n) / 2)), 0.015)
        coarse = COARSE if rule == "gap" else 0  # as the estimator does
        return solve_pcg(K, lap, kappa, labeled, t, upper, watch, coarse=coarse)

    def newton():
        deformed = DeformedKernel(K, lap, kappa, labeled)
        solution = solve_deformed(deformed.block, t, upper)
        c, f, _ = deformed.expand(solution.beta)
        return solution._replace(c=c, f=f)

    functions = {
        "gram": lambda: kernel.gram(X),
        "graph": graph,
        "solver": lambda: gradients("gap"),
        "newton": newton,
        "stability": lambda: gradients("stability"),
    }
    timings, found = race(functions, repeats=3)

    def objective(solution):
        c, f, b = solution.c, solution.f, solution.b
        slack = np.maximum(0, 1 - t * (f[labeled] + b))
        return 0.5 * c @ f + kappa * lap.energy(f) + 0.5 * C * slack @ slack

    names = {"newton": "newton", "pcg": "solver", "stability": "stability"}
    J = {name: objective(found[key]) for name, key in names.items()}
    signs = {name: found[key].f[unlabeled] + found[key].b > 0 for name, key in names.items()}
    return {
        "seconds": {name: timings[name]["cpu_seconds"] for name in functions},
        "excess": {name: J[name] / J["newton"] - 1 for name in J},
        "error": {name: 100 * np.mean(s != instance.y_unlabeled) for name, s in signs.items()},
        "iterations": {name: found[key].n_iter for name, key in names.items()},
    }


def low_rank(n, memory):
    """CPU seconds and peak memory of the estimator on n rows."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_low_rank, n, memory).result()


def _low_rank(n, memory):
    import resource

    from s3vm_lib import SVM, LapSVM
    from s3vm_lib.graphs import knn_graph
    from s3vm_lib.laplacian_svm import melacci_penalties

    instance = mixture20(50, n - 50, 0)
    X, y = instance.training()
    LapSVM(rank=50).fit(X[:300], y[:300])  # compiles
    start = time.process_time()
    n_edges = knn_graph(X, 10, weights="binary").n_edges
    graph_seconds = time.process_time() - start
    C, C_graph = melacci_penalties(1e-6, 1e-2, n_edges)
    start, begun = time.process_time(), time.perf_counter()
    model = LapSVM(C=C, C_graph=C_graph, gamma=MIXTURE_GAMMA, memory=memory).fit(X, y)
    seconds, wall = time.process_time() - start, time.perf_counter() - begun
    svm = SVM(C=10.0, gamma=MIXTURE_GAMMA).fit(X, y)
    return {
        "cpu_seconds": digits(seconds),
        "wall_seconds": digits(wall),
        "graph_seconds": digits(graph_seconds),
        "peak_mb": digits(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "rank": model.rank_,
        "edges": n_edges,
        "error": digits(100 * np.mean(model.transduction_[50:] != instance.y_unlabeled)),
        "svm_error": digits(100 * np.mean(svm.transduction_[50:] != instance.y_unlabeled)),
    }
