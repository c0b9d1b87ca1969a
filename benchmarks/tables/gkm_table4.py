"""Table 4 and Fig. 3 of the GKM paper: accuracy and F1 against the share of hidden labels.

Hinge and p = 1, 50, 60 and 70 % of the labels hidden, with the setting chosen at 80 %; 80 and 90 %
are rows of ``gkm_tables23``, whose splits, protocols and deviations are the same. F1 is that of
class 1 as the positive one. ``positives`` is the share of class 1, from which follows what pairs of
accuracy and F1 are possible at all.
"""

from benchmarks.gkm_paper import LARGE, SMALL, measure_method

ROWS = [
    {"set": name, "hidden": hidden, "protocol": protocol}
    for names in (SMALL, LARGE)
    for name in names
    for protocol in ("printed", "ours")
    for hidden in (0.5, 0.6, 0.7)
]


def measure(set, hidden, protocol):
    """One row: see the protocol in the module's docstring."""
    return measure_method(set, hidden, "GKM", protocol, memory=False, tuned=0.8)
