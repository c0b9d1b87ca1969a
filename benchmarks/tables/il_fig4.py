"""Figure 4 of the IL-S³VM paper: errors on unlabeled rows after 40 rows have arrived.

Settings, data and numbers of labels of `benchmarks.il_paper`, Gaussian kernel, ten trials. n rows,
then 20 labeled and 20 unlabeled ones. BL-S³VM is CCCP on all rows (tol = 1e-6), IL-S³VM and NN-BB
(five neighbors, up to n = 2000) take the 40 rows in. ``errors`` in per cent of the unlabeled rows,
trial by trial; ``same``: in how many trials IL-S³VM and BL-S³VM label all rows alike; "SVM": the
supervised machine on the labeled rows, C = 10; ``majority``: the error of the larger class. The
paper shows box plots without numbers. Without a balance constraint the methods may put all rows
into one class.
"""

import numpy as np

from benchmarks import il_paper
from benchmarks.harness import digits

SIZES = {
    "CodRNA": (2000, 10000),
    "Madelon": (1600,),
    "IJCNN1": (2000, 10000),
    "Text": (1600,),
    "Usps": (1600,),
    "A9a": (2000, 6000),
    "Mushrooms": (1500, 6000),
}
ROWS = [{"set": name, "n": n} for name, sizes in SIZES.items() for n in sizes]
TRIALS, NN_BB_LIMIT = 10, 2000


def measure(set, n):
    """One row: see the protocol in the module's docstring."""
    from s3vm_lib import NNBBS3VM, SVM

    errors, same, majority = {}, 0, []
    options = {"C": il_paper.C, **il_paper.KERNELS["rbf"]}
    for seed in range(TRIALS):
        data = il_paper.stream(set, n, seed, added=40)
        y_new = np.where(np.arange(40) < 20, data.y_new, -1)
        X, y = il_paper.joined(data.X, data.X_new), np.append(data.y, y_new)
        truth, U = np.append(data.truth, data.y_new), y < 0
        found = {
            "SVM": SVM(**options).fit(X, y).transduction_,
            "BL-S3VM": il_paper.cccp("rbf", 1e-6).fit(X, y).transduction_,
        }
        model = il_paper.base(data, "rbf").partial_fit(data.X_new, y_new)
        found["IL-S3VM"] = model.predict(X)
        if n <= NN_BB_LIMIT:
            other = NNBBS3VM(C_star=il_paper.C_STAR, **options).fit(data.X, data.y)
            found["NN-BB"] = other.partial_fit(data.X_new, y_new).transduction_
        for name, labels in found.items():
            wrong = 100 * np.mean(labels[U] != truth[U])
            errors.setdefault(name, []).append(digits(wrong, 4))
        same += np.array_equal(found["IL-S3VM"][U], found["BL-S3VM"][U])
        majority.append(100 * min(np.mean(truth[U]), np.mean(1 - truth[U])))
    return {
        "errors": errors,
        "mean": {name: digits(np.mean(values), 3) for name, values in errors.items()},
        "same": int(same),
        "majority": digits(np.mean(majority), 3),
    }
