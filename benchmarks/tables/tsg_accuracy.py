"""Test error with 200 labels on six sets: random features, baselines, each term by itself.

Splits: a permutation (seeds 0-9), a fifth of the set for testing, the first 200 of the rest labeled
and all others unlabeled; dense features standardized over the training rows. C and gamma are chosen
by five-fold cross-validation of scikit-learn's SVC on the 200 labels, with C in {1, 10, 100} and
gamma in {0.1, 0.3, 1, 3} times 1/(d Var X), and used by all methods. ``frs`` and ``tsg``: default
settings. ``-steps``: without L-BFGS. ``-supervised``: C* = 0 and no balance; ``-balance``: C* = 0;
``-unlabeled``: no balance. ``tsg-block``: Algorithm 1 with 64 features a step and 400 steps.
``features-full``: no stochastic steps, L-BFGS with annealing. ``paper``: FRS steps with the paper's
rule for C*. ``rbf-sampler``: RBFSampler(1024) and SGDClassifier with hinge, on the labels, alpha =
1/(200 C). ``self-training``: SelfTrainingClassifier(SVC, threshold 0.8) with Platt scaling on the
labels and 5,000 unlabeled rows. Errors in per cent; CPU seconds of ``fit``.
"""

import time

import numpy as np

from benchmarks.harness import digits, mean_and_error
from benchmarks.tsg import N_LABELED, SETS, select, split

STEPS = dict(polish=False)
METHODS = {
    "svm": None,
    "rbf-sampler": None,
    "self-training": None,
    "frs": ("FRS3VM", {}),
    "frs-supervised": ("FRS3VM", dict(C_star=0.0, balance=None)),
    "frs-balance": ("FRS3VM", dict(C_star=0.0)),
    "frs-unlabeled": ("FRS3VM", dict(balance=None)),
    "frs-steps": ("FRS3VM", STEPS),
    "paper": ("FRS3VM", dict(C_star="paper", balance=None, **STEPS)),
    "features-full": ("FRS3VM", dict(n_steps=0)),
    "tsg": ("TSGS3VM", {}),
    "tsg-supervised": ("TSGS3VM", dict(C_star=0.0, balance=None)),
    "tsg-balance": ("TSGS3VM", dict(C_star=0.0)),
    "tsg-unlabeled": ("TSGS3VM", dict(balance=None)),
    "tsg-steps": ("TSGS3VM", STEPS),
    "tsg-block": ("TSGS3VM", dict(update="block", block_size=64, n_steps=400, **STEPS)),
}
ROWS = [{"data": name, "method": method} for name in SETS for method in METHODS]
SEEDS = range(10)


def _model(method, C, gamma, seed):
    """The estimator, and whether it sees the unlabeled rows: none, some or all."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.semi_supervised import SelfTrainingClassifier
    from sklearn.svm import SVC

    import s3vm_lib

    if method == "svm":
        return s3vm_lib.SVM(C=C, gamma=gamma), N_LABELED
    if method == "rbf-sampler":
        sgd = SGDClassifier(alpha=1 / (N_LABELED * C), random_state=seed)
        sampler = RBFSampler(gamma=gamma, n_components=1024, random_state=seed)
        return make_pipeline(sampler, sgd), N_LABELED
    if method == "self-training":
        base = SVC(C=C, gamma=gamma, probability=True, random_state=seed)
        return SelfTrainingClassifier(base, threshold=0.8), N_LABELED + 5000
    name, options = METHODS[method]
    estimator = getattr(s3vm_lib, name)
    return (
        estimator(C=C, gamma=gamma, random_state=seed, transduce=False, **options),
        None,
    )


def measure(data, method):
    """One row: see the protocol in the module's docstring."""
    errors, seconds = [], []
    for seed in SEEDS:
        X, y, X_test, y_test = split(data, seed)
        chosen = select(X[:N_LABELED], y[:N_LABELED], seed)
        model, rows = _model(method, chosen["C"], chosen["gamma"], seed)
        start = time.process_time()
        model.fit(X[:rows], y[:rows])
        seconds.append(digits(time.process_time() - start))
        errors.append(digits(100 * np.mean(model.predict(X_test) != y_test)))
    return {
        **mean_and_error(errors),
        "errors": errors,
        "cpu_seconds": digits(np.median(seconds)),
        "cpu_all": seconds,
    }
