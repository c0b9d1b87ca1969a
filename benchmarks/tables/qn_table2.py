"""Table 2 of the QN-S3VM paper: test errors, linear kernel, settings by cross-validation.

Ten random partitions of each set into l labeled, u unlabeled and t test points. Settings by 5-fold
cross-validation on the labels: λ in 2^-10..2^10 and λ' in {.01, 1, 100} for QN-S3VM, C in
2^-10..2^10 for the SVM; balance from the labels. Many settings tie in cross-validation, so the
result is given for three rules (strongest regularization first, weakest first, mean over the tied
settings), beside the best setting in hindsight, which looks at the test labels. The paper does not
say whether the labeled points were drawn with the shares of the classes: ``labels`` is "random" or
"stratified". G2C and G4C are one draw each; MNIST pairs are the first rows of random orders of the
training part. Sets that are not at hand (real-sim, gcat, ccat, aut-avn: 20 rows) are not run.
"""

from benchmarks import qn_paper
from s3vm_book import printed

METHODS = ("LIBSVM", "UniverSVM", "TSVMlin", "DA", "QN-S3VM")
NOT_AT_HAND = ("real-sim", "gcat", "ccat", "aut-avn")


def paper():
    """The printed rows, from ``s3vm_book/paper/qn_table2.csv``.

    Returns
    -------
    dict of (str, int) to dict
        ``sizes`` (l, u, t) and, per method, [mean, standard deviation] in percent or None where
        the paper has no number, by set and l.
    """
    rows = {}
    for line in printed("qn_table2"):
        row = {"sizes": [int(line[part]) for part in "lut"]}
        for method in METHODS:
            cell = line[method], line[f"{method} sd"]
            row[method] = [float(v) for v in cell] if all(cell) else None
        rows[line["set"], row["sizes"][0]] = row
    return rows


ROWS = [
    {"set": name, "l": n_labeled, "labels": labels}
    for labels in ("random", "stratified")
    for name, n_labeled in paper()
    if name not in NOT_AT_HAND
]


def measure(set, l, labels):
    """One row: see the protocol in the module's docstring."""
    sizes = paper()[set, l]["sizes"]
    methods, orders = qn_paper.linear_methods()
    parts = qn_paper.partitions(set, *sizes, stratified=labels == "stratified")
    return {"sizes": sizes, **qn_paper.compare(parts, methods, sizes[2], orders)}
