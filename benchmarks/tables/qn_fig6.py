"""Figure 6 of the QN-S3VM paper: CPU seconds of a fit at λ = λ' = C = 1, linear kernel.

Six sets; a quarter, a half, three quarters and all of the training part, with the labeled share of
the larger l of Table 2. Median of five fits, features as they are stored (no rotation, sparse stays
sparse). The paper's own times (2012 hardware) are in its figure only and not repeated here.
"""

from benchmarks import qn_paper
from benchmarks.harness import race
from benchmarks.tables.qn_table2 import paper

SETS = {"G2C": 50, "G4C": 50, "C(3,6)": 28, "M(1,7)": 50, "U(2,5)": 32, "pcmac": 291}
ROWS = [{"set": name, "quarters": quarters} for name in SETS for quarters in (1, 2, 3, 4)]


def measure(set, quarters):
    """One row: see the protocol in the module's docstring."""
    from s3vm_lib import SVM

    n_labeled, n_unlabeled, n_test = paper()[set, SETS[set]]["sizes"]
    n_labeled = max(4, n_labeled * quarters // 4)
    n_unlabeled = n_unlabeled * quarters // 4
    parts = qn_paper.partitions(
        set, n_labeled, n_unlabeled, n_test, stratified=True, number=1, rotate=False
    )
    part = next(parts)
    timings, models = race(
        {
            "SVM": lambda: SVM(C=1.0, kernel="linear").fit(part.X, part.y),
            "QN": lambda: qn_paper.qn(1.0, 1.0, part.y).fit(part.X, part.y),
        }
    )
    return {
        "l": n_labeled,
        "u": n_unlabeled,
        "d": part.X.shape[1],
        "timings": timings,
        "qn_iterations": models["QN"].n_iter_,
    }
