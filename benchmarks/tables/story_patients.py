"""A table of patients on which unlabeled rows do not help, and the warnings that come.

scikit-learn's diabetes table (Efron and others, 2004): 442 patients, ten columns of a visit, and a
measure of the disease a year later; class 1 is a measure above the median. Columns are
standardized. Ten seeds draw which patients are labeled, half of them of each class; errors are
counted on all others. Methods are those of `benchmarks.stories`; S3VC is in the table story_s3vc.
"share": the offset of the SVM gives the unlabeled rows the share of the labels.
"warnings": `contradicted`, the share in percent of labels that `QNS3VM(C=10)` fits on the other
side of the gap, `inside`, that of unlabeled rows within its margin, and `taken`, what
`SafeS3VM(QNS3VM(C=10))` decides.
"""

import warnings

import numpy as np

from benchmarks.harness import digits
from benchmarks.stories import METHODS, SEEDS, compare
from s3vm_book.stories import patients
from s3vm_lib import QNS3VM, SafeS3VM
from s3vm_lib.datasets import hide_labels

ROWS = [
    {"labels": labels, "method": method}
    for labels in (10, 25, 50, 100, 200)
    for method in (*METHODS, "warnings")
]


def measure(labels, method):
    """Errors of one method, or the warnings, a value a seed."""
    _, X, truth = patients()
    if method != "warnings":
        return compare(method, X, truth, labels)
    found = {"contradicted": [], "inside": [], "taken": []}
    warnings.simplefilter("ignore")
    for seed in range(SEEDS):
        y = hide_labels(truth, labels, random_state=seed)
        model = QNS3VM(C=10).fit(X, y)
        outputs = model.decision_function(X[y == -1])
        found["contradicted"].append(digits(100 * model.contradicted_))
        found["inside"].append(digits(100 * np.mean(np.abs(outputs) < 1)))
        safe = SafeS3VM(estimator=QNS3VM(C=10), random_state=seed).fit(X, y)
        found["taken"].append(safe.taken_)
    return found
