"""Figure 6 of the QN-S3VM paper: CPU seconds of a fit at λ = λ' = C = C* = 1, linear kernel.

QN-S3VM beside the counterparts of the other programs: CCCP (UniverSVM), multi-switch (TSVMlin) and
deterministic annealing (DA).
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
    from s3vm_lib import CCCPS3VM, DAS3VM, SVM, MultiSwitchTSVM

    n_labeled, n_unlabeled, n_test = paper()[set, SETS[set]]["sizes"]
    n_labeled = max(4, n_labeled * quarters // 4)
    n_unlabeled = n_unlabeled * quarters // 4
    parts = qn_paper.partitions(
        set, n_labeled, n_unlabeled, n_test, stratified=True, number=1, rotate=False
    )
    part = next(parts)
    X, y = part.X, part.y
    ones, means = {"C": 1.0, "C_star": 1.0}, {"C": 1 / n_labeled, "C_star": 1 / n_unlabeled}
    share = {"balance": "labels"}
    timings, models = race(
        {
            "SVM": lambda: SVM(C=1.0, kernel="linear").fit(X, y),
            "QN": lambda: qn_paper.qn(1.0, 1.0, y).fit(X, y),
            "CCCP": lambda: CCCPS3VM(kernel="linear", **ones, **share).fit(X, y),
            "multi-switch": lambda: MultiSwitchTSVM(**means, **share).fit(X, y),
            "annealing": lambda: DAS3VM(**means, **share).fit(X, y),
        }
    )
    return {
        "l": n_labeled,
        "u": n_unlabeled,
        "d": part.X.shape[1],
        "timings": timings,
        "qn_iterations": models["QN"].n_iter_,
    }
