"""CPU time of random features, of one pass of TSGS3VM, and of whole fits on large sets.

``evaluation``: 64 blocks of 256 stored features on 4096 rows of d dimensions, RBF kernel, in
nanoseconds per feature and row, best of 15 (paired and with random phases; features given, and
redrawn). ``pass``: Algorithm 1 with 256 unlabeled rows a step until all have been drawn as often as
there are, m features a step, 200 labeled rows, hinge and symmetric hinge, windows of 8, without
the outputs on all rows. ``fit``: default settings on a set with 200 labels, split 0, C and gamma
chosen on the labels. Seconds are CPU seconds: median of three for ``pass``, one run for ``fit``.
"""

import time

import numpy as np

from benchmarks.harness import digits
from benchmarks.tsg import N_LABELED, select, split

ROWS = [
    *({"what": "evaluation", "d": d} for d in (3, 8, 22, 30, 64)),
    *(
        {"what": "pass", "n": n, "d": d, "m": m}
        for n, d, m in ((20_000, 22, 142), (50_000, 8, 224), (50_000, 22, 224), (100_000, 30, 256))
    ),
    *(
        {"what": "fit", "data": data, "estimator": estimator}
        for data in ("cod-rna", "ijcnn1", "skin_nonskin", "covtype")
        for estimator in ("FRS3VM", "TSGS3VM")
    ),
]


def _evaluation(d):
    from s3vm_lib.kernels import Kernel
    from s3vm_lib.random_features import FeatureStream, outputs

    rng = np.random.default_rng(0)
    X = rng.standard_normal((4096, d)).astype(np.float32)
    alpha = rng.standard_normal((64, 256))
    result = {}
    for paired in (True, False):
        stream = FeatureStream(Kernel("rbf", 0.5 / d), d, 256, 0, paired=paired)
        blocks = [stream.block(t) for t in range(64)]
        for redrawn in (False, True):
            best = np.inf
            for _ in range(15):
                start = time.process_time()
                outputs(stream, X, alpha, None if redrawn else blocks)
                best = min(best, time.process_time() - start)
            name = f"{'paired' if paired else 'phases'}{' redrawn' if redrawn else ''}"
            result[name] = digits(1e9 * best / (4096 * alpha.size), 3)
    return {"nanoseconds": result}


def _pass(n, d, m):
    from s3vm_lib import TSGS3VM
    from s3vm_lib.stochastic import Features

    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.4).astype(int)
    X = rng.standard_normal((n, d)).astype(np.float32)
    X[:, 0] += 2 * y
    partly = np.where(np.arange(n) < N_LABELED, y, -1)
    model = TSGS3VM(
        update="block", features=Features(block_size=m), n_steps=-(-n // 256), labeled_loss="hinge",
        unlabeled_loss="symmetric_hinge", gamma=0.5 / d, balance="labels", transduce=False,
        random_state=0,
    )  # fmt: skip
    model.fit(X[:2000], partly[:2000])
    seconds = []
    for _ in range(3):
        start = time.process_time()
        model.fit(X, partly)
        seconds.append(digits(time.process_time() - start))
    wrong = model.predict(X[-5000:]) != y[-5000:]
    return {"cpu_seconds": digits(np.median(seconds)), "error": digits(100 * wrong.mean())}


def _fit(data, estimator):
    import s3vm_lib

    X, y, X_test, y_test = split(data, 0)
    chosen = select(X[:N_LABELED], y[:N_LABELED], 0)
    model = getattr(s3vm_lib, estimator)(balance="labels", random_state=0, **chosen)
    model.fit(X[:1000], y[:1000])
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    wrong = model.predict(X_test) != y_test
    return {
        "cpu_seconds": digits(seconds),
        "n": X.shape[0],
        "error": digits(100 * wrong.mean()),
        **chosen,
    }


def measure(what, **setting):
    """One row: see the protocol in the module's docstring."""
    return {"evaluation": _evaluation, "pass": _pass, "fit": _fit}[what](**setting)
