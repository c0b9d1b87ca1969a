"""Table 4 and Fig. 3 of the GKM paper: accuracy and F1 against the share of hidden labels.

Hinge and p = 1, shares 50 to 90 %; splits, settings and ``protocol`` as in ``gkm_tables23``. F1 is
that of the smaller class as positive where the set says so (class 1). ``positives`` is the share of
class 1, from which follows what pairs of accuracy and F1 are possible at all.
"""

from benchmarks.gkm_paper import LARGE, SMALL, load, measure_method
from benchmarks.harness import digits

ROWS = [
    {"set": name, "hidden": hidden, "protocol": protocol}
    for names in (SMALL, LARGE)
    for protocol in ("printed", "ours")
    for name in names
    for hidden in (0.5, 0.6, 0.7, 0.8, 0.9)
]


def measure(set, hidden, protocol):
    """One row: see the protocol in the module's docstring."""
    result = measure_method(set, hidden, "GKM", protocol, memory=False, loss="hinge", p=1.0)
    return {**result, "positives": digits(100 * load(set)[1].mean())}
