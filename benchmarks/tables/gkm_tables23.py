"""Tables 2 and 3 of the GKM paper: hinge and logistic loss with p = 1, 2, 3.

Nine tenths of each set for training, 80 % (Table 2) or 90 % (Table 3) of the labels hidden, five
runs, settings by 5-fold cross-validation on the labels (sets of more than 3000 rows: on a random
3000 of them). ``protocol`` "printed": complete graph, σ_s = σ_l, C and γ in 2^{-5, -3, ..., 5},
C' = C for p = 1 and the bound (5) for p = 2, 3, T = n steps, or 0.2 n from 8000 rows on. "ours":
the 10-NN graph with weights 1, C of the sum of the losses in {1, 10}, γ d in {1/4, 1, 4}, C' in
{0, 0.1, 1} times C l, and the library's rule of stopping (at most 50,000 steps). Scaling is not
stated: dense sets are standardized, sparse ones scaled to [-1, 1]. COIL20 (145), USPST (601) and
G50C (551) of the paper are reduced sets that are not at hand: the full ones stand in. "SVM2" and
"SVM3" are taken to be svmguide1 and svmguide3. CPU seconds are those of one fit with the setting
chosen.
"""

from benchmarks.gkm_paper import LARGE, SMALL, measure_method

ROWS = [
    {"set": name, "hidden": hidden, "loss": loss, "p": p, "protocol": protocol}
    for names in (SMALL, LARGE)
    for protocol in ("printed", "ours")
    for name in names
    for hidden in (0.8, 0.9)
    for loss in ("hinge", "logistic")
    for p in (1, 2, 3)
]


def measure(set, hidden, loss, p, protocol):
    """One row: see the protocol in the module's docstring."""
    return measure_method(set, hidden, "GKM", protocol, memory=False, loss=loss, p=float(p))
