"""`S3VC`: how often its 90 % interval of the expected error holds the error.

Sets and draws of the bake-off: the tuning sets with draws 223 to 225, on which the level of the
exact interval behind it was chosen (0.9, 0.95, 0.97, 0.98 or 0.99: the least that covers 90 % at
each number of labels), and the reported sets with draws 20 to 22. For each level: the share of
cells whose interval holds the error on the unlabeled rows, with the standard error of a share of so
many cells, and its mean width.
"""

import warnings

import numpy as np
from scipy.stats import binomtest

from benchmarks.harness import digits

LEVELS = (0.9, 0.95, 0.97, 0.98, 0.99)
DRAWS = {"tuning": (223, 224, 225), "reported": (20, 21, 22)}
ROWS = [{"part": part, "labels": n} for part in DRAWS for n in (10, 25, 50, 100)]


def measure(part, labels):
    """One row: see the protocol in the module's docstring."""
    from benchmarks.bakeoff.draws import cell, pool
    from benchmarks.bakeoff.plan import sets
    from s3vm_lib import S3VC

    found = []
    for draw in DRAWS[part]:
        for one in sets([part]):
            if labels not in one.labels:
                continue
            X, y, truth, *_ = cell(pool(one, draw), labels)
            hidden = y < 0
            if not hidden.any():
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = S3VC(random_state=0).fit(X, y)
            error = np.mean(model.transduction_[hidden] != truth[hidden])
            n = model.members_[0].known.size
            found.append((error, round(model.expected_error_ * n), n))
    result = {"cells": len(found)}
    for level in LEVELS:
        ends = [binomtest(wrong, n).proportion_ci(level) for _, wrong, n in found]
        held = [e.low <= error <= e.high for e, (error, *_) in zip(ends, found, strict=True)]
        result[f"{level:g}"] = {
            "covered": digits(np.mean(held), 3),
            "standard_error": digits(np.std(held) / np.sqrt(len(held)), 2),
            "width": digits(np.mean([e.high - e.low for e in ends]), 3),
        }
    return result
