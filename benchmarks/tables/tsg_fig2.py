"""Fig. 2 of the TSGS3VM paper: CPU time against the number of rows.

200 labels and n - 200 unlabeled rows of six of the eight sets (SUSY: the 30,000 rows at hand;
HEPMASS and Higgs are not at hand), split 10 of `tsg_accuracy`, C and gamma chosen on the labels as
there; C* gives both parts equal total weight, all with the balance from the labels. ``S3VMLight``,
``CCCPS3VM``, ``FRS3VM`` and ``TSGS3VM`` with their defaults; ``BGS3VM``: n steps and the paper's
budgets, 100 labeled and a fifth of the unlabeled rows; ``Algorithm 1``: the paper's batches,
features and losses, one pass with 256 unlabeled rows and ⌈√n⌉ features a step, hinge and symmetric
hinge, with the library's step sizes, ramp, mean of iterates and balance. CPU seconds of one ``fit``
after one on 400 rows. All methods end with their outputs on all rows (BGS3VM computes them when
first asked for, within the time); ``training`` has the seconds of those that can do without,
FRS3VM, TSGS3VM, BGS3VM and Algorithm 1. BGS3VM, whose time is quadratic in n with a budget of a
fifth, is not run beyond 32,000 rows; the text in the cell says so. ``peak``: MB of the process
after the row, all methods and the data together.
"""

import time
import warnings

from benchmarks.harness import digits
from benchmarks.tsg import N_LABELED, peak_megabytes, select, split

SIZES = (1000, 4000, 16_000, 32_000, 128_000)
ROWS = [
    {"set": name, "n": n}
    for name, largest in (
        ("cod-rna", 32_000),
        ("ijcnn1", 32_000),
        ("skin_nonskin", 128_000),
        ("w8a", 32_000),
        ("dota2", 32_000),
        ("susy_30k", 16_000),
    )
    for n in SIZES
    if n <= largest
]
LARGEST = {"BGS3VM": 32_000}
METHODS = ("S3VMLight", "CCCPS3VM", "BGS3VM", "FRS3VM", "TSGS3VM", "Algorithm 1")


def model(method, n, C, gamma, seed=0):
    """An estimator with the settings of this table."""
    import s3vm_lib

    if method == "Algorithm 1":
        return s3vm_lib.TSGS3VM(
            C=C, gamma=gamma, update="block", n_steps=-(-n // 256), labeled_loss="hinge",
            unlabeled_loss="symmetric_hinge", balance="labels", random_state=seed,
        )  # fmt: skip
    options = {} if method in ("S3VMLight", "CCCPS3VM") else {"random_state": seed}
    if method == "BGS3VM":
        options |= {"budget_unlabeled": "paper", "C_graph": "labels", "max_iter": n}
    else:
        options["balance"] = "labels"
    return getattr(s3vm_lib, method)(C=C, gamma=gamma, **options)


def measure(set, n):
    """One row: see the protocol in the module's docstring."""
    X, y, _, _ = split(set, 10)
    chosen = select(X[:N_LABELED], y[:N_LABELED], 10)
    X, y = X[:n], y[:n]
    result, training = {}, {}
    for method in METHODS:
        if n > LARGEST.get(method, n):
            result[method] = f"not run: more than {LARGEST[method]:,} rows"
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model(method, 400, **chosen).fit(X[:400], y[:400])
            if method in ("FRS3VM", "TSGS3VM", "Algorithm 1"):
                start = time.process_time()
                model(method, n, **chosen).set_params(transduce=False).fit(X, y)
                training[method] = digits(time.process_time() - start, 3)
            start = time.process_time()
            fitted = model(method, n, **chosen).fit(X, y)
            if method == "BGS3VM":
                training[method] = digits(time.process_time() - start, 3)
                assert fitted.transduction_.size == n  # computed when first asked for
        result[method] = digits(time.process_time() - start, 3)
    return {**result, "training": training, "peak": round(peak_megabytes())}
