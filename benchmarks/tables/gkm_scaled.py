"""The printed protocol of ``gkm_tables23`` with all features divided by √d.

The paper does not state how features are scaled, and its widths 2^{-5, -3, ..., 5} depend on it:
with d standardized features, two rows have a squared distance of about 2d, and for d above 50 the
kernel is almost the identity for every width of the grid. Dividing by √d (or γ by d, which is the
same) puts the grid where it can do something. Everything else is as printed; the hinge only.
"""

from benchmarks.gkm_paper import SMALL, measure_method

ROWS = [
    {"set": name, "hidden": hidden, "p": p}
    for name in (*SMALL, "mushrooms", "w5a")
    for hidden in (0.8, 0.9)
    for p in (1, 2)
]


def measure(set, hidden, p):
    """One row: see the protocol in the module's docstring."""
    return measure_method(set, hidden, "GKM", "scaled", memory=False, p=float(p))
