"""G2C and G4C without tuning: what the class ratio costs, 25 labels, seeds 0-29.

Instance gaussians(kind, seed): n = d = 500, half training, half test, linear kernel. ``labels``
says where the ratio comes from: "random" (25 labels drawn at random, ratio from the labels),
"stratified" (12 and 13 labels, ratio from the labels), "true ratio" (random labels, the share of
the unlabeled training points given). One setting for all seeds: λ = 2^-4, λ' = 1 ("fixed"); beside
it the estimator's defaults, and λ in {2^-1, 2^-4, 2^-7} with λ' in {1, 10}. ``coordinates`` "w" are
the weights with the library's annealing, "c" the paper's coefficients with its own. On G4C some
draws split along the wrong axis; the number of draws with an error above 30 % is given. The
Bayes error is 0.6 %.
"""

import numpy as np

from benchmarks import qn_paper
from benchmarks.harness import digits, mean_and_error
from benchmarks.instances import gaussians

SEEDS = range(30)
LABELS = ("random", "stratified", "true ratio")
_FIXED = {"lambda": 2.0**-4, "lambda_prime": 1.0, "coordinates": "w"}
_OTHERS = [
    {**_FIXED, "coordinates": "c"},
    {"lambda": "default", "lambda_prime": "default", "coordinates": "w"},
    *(
        {"lambda": 2.0**power, "lambda_prime": prime, "coordinates": "w"}
        for power in (-1, -4, -7)
        for prime in (1.0, 10.0)
        if (power, prime) != (-4, 1.0)
    ),
]
ROWS = [
    {"kind": kind, "labels": labels, **setting}
    for setting in [_FIXED, *_OTHERS]
    for kind in ("G2C", "G4C")
    for labels in LABELS
]


def measure(kind, labels, coordinates, **setting):
    """One row: see the protocol in the module's docstring."""
    from s3vm_lib import SVM
    from s3vm_lib.quasi_newton import QNS3VM

    errors = {"SVM": [], "QN": []}
    share_errors = []
    for seed in SEEDS:
        instance = gaussians(kind, seed, stratified=labels == "stratified")
        X, y = instance.training()
        options = {"annealing": "geometric", "balance": "labels"}
        if labels == "true ratio":
            options["balance"] = float(instance.y_unlabeled.mean())
        if coordinates == "c":
            options = {**options, "coordinates": "raw", "annealing": "paper"}
        if setting["lambda"] == "default":
            model = QNS3VM(kernel="linear", **options)
        else:
            model = qn_paper.qn(setting["lambda"], setting["lambda_prime"], y, **options)
        for name, fitted in (("SVM", SVM(kernel="linear").fit(X, y)), ("QN", model.fit(X, y))):
            wrong = fitted.predict(instance.X_test) != instance.y_test
            errors[name].append(digits(100 * wrong.mean()))
        share_errors.append(abs(y[y != -1].mean() - instance.y_unlabeled.mean()))
    return {
        name: {
            **mean_and_error(values),
            "worst": max(values),
            "above_30": int(np.sum(np.array(values) > 30)),
            "errors": values,
        }
        for name, values in errors.items()
    } | {"share_error_of_labels": [digits(v) for v in share_errors]}
