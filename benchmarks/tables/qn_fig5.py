"""Figure 5 of the QN-S3VM paper: how many labeled and unlabeled points it takes on G4C.

G4C with 250 training and 250 test points, ten partitions, linear kernel. Panel a: a share of the
training points is labeled and the rest unlabeled. Panel b: 20 % are labeled, and a share of the
training points is unlabeled; what is left over is not used. Settings by 5-fold cross-validation on
the labels over λ in 2^-10, 2^-8, ..., 2^10 (also the C of the SVM) and λ' in {.01, 1, 100}; ties
are treated in the ways of ``qn_table2``. Balance from the labels, which are drawn at random.
"""

from benchmarks import qn_paper

SHARES = [5, 10, 20, 30, 40, 50, 60, 70, 80]
ROWS = [{"panel": panel, "share": share} for panel in "ab" for share in SHARES]


def measure(panel, share):
    """One row: see the protocol in the module's docstring."""
    part = round(250 * share / 100)
    n_labeled, n_unlabeled = (part, 250 - part) if panel == "a" else (50, part)
    methods, orders = qn_paper.linear_methods(qn_paper.LAMBDAS[::2])
    parts = qn_paper.partitions("G4C", n_labeled, n_unlabeled, 250)
    result = qn_paper.compare(parts, methods, 250, orders)
    result.pop("counts")
    return {"l": n_labeled, "u": n_unlabeled, **result}
