"""Table 5 of the GKM paper: GKM and its peers, with time and memory.

Splits and protocols as in ``gkm_tables23``. Methods: GKM with the hinge and p = 1 (what the text of
the paper says) and p = 2 (what its numbers equal), LapSVM, CCCP (s = 0 in "printed"), self-training
with nearest neighbors, LabelSpreading, the SVM on the same labels, and the SVM on all labels.
Memory is the peak of what a fit allocates (tracemalloc). Not run: CCCP and self-training above
8200 rows, LapSVM above 10,000, LabelSpreading above 20,000; the SVM on all labels of covtype sees
60,000.
"""

from benchmarks.gkm_paper import LARGE, LARGEST, SMALL, measure_method

SIZES = {
    "mushrooms": 8124, "w5a": 9888, "w8a": 49_749, "cod-rna": 59_535, "ijcnn1": 49_990,
    "covtype": 581_012,
}  # fmt: skip
METHODS = (
    "GKM p=1", "GKM p=2", "LapSVM", "CCCP", "Self-KNN", "LabelSpreading", "SVM", "SVM (all labels)",
)  # fmt: skip
ROWS = [
    {"set": name, "hidden": hidden, "method": method, "protocol": protocol}
    for names in (SMALL, LARGE)
    for protocol in ("ours", "printed")
    for name in names
    for hidden in (0.8, 0.9)
    for method in METHODS
    if SIZES.get(name, 0) <= LARGEST.get(method, 10**7)
    # These have one grid, and the milestone does not depend on what is hidden.
    if protocol == "ours" or method not in ("Self-KNN", "LabelSpreading")
    if hidden == 0.9 or method != "SVM (all labels)"
]


def measure(set, hidden, method, protocol):
    """One row: see the protocol in the module's docstring."""
    if method.startswith("GKM"):
        return measure_method(set, hidden, "GKM", protocol, loss="hinge", p=float(method[-1]))
    return measure_method(set, hidden, method, protocol)
