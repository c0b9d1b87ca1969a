"""Which rows to label next: three rules against chance, from 10 to 50 labels.

The tuning sets of the bake-off with two classes, by its protocol: the first ten labels of a draw,
of both classes, then four times ten more. `QNS3VM` with its defaults, the kernel linear for texts,
is fitted to all rows of the training part after each ten; errors in percent on the test part.
``random``: the next rows in the order of the draw; ``margin``: those with the smallest outputs;
``density``: those for which the mean similarity to the rows without a label (a Gaussian kernel,
``gamma="scale"``; of texts the cosine) over 1 + |output| is largest; ``pool``: those on which the
machines of `SafeS3VM`, fitted with its defaults, are least of one mind, ties by the output.
"""

import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel

from benchmarks.bakeoff import draws
from benchmarks.bakeoff.sets import SETS
from benchmarks.harness import digits
from s3vm_lib import QNS3VM, SafeS3VM
from s3vm_lib.kernels import resolve_gamma

TUNING = {one.name: one for one in SETS if one.part == "tuning" and not one.multi}
ROWS = [{"set": name, "draw": draw} for draw in range(5) for name in TUNING]
LABELS = (10, 20, 30, 40, 50)
RULES = ("random", "margin", "density", "pool")


def asked(rule, X, y, model, similarity, kernel, draw):
    """The ten rows without a label that a rule asks for."""
    rows = np.flatnonzero(y == -1)
    if rule == "random":
        return rows[:10]
    worth = -np.abs(model.decision_function(X[rows]))
    if rule == "density":
        worth = similarity[np.ix_(rows, rows)].mean(axis=1) / (1 - worth)
    if rule == "pool":
        machine = SafeS3VM(estimator=QNS3VM(kernel=kernel), random_state=draw).fit(X, y)
        votes = np.mean([member.labels for member in machine.pool_], axis=0)
        worth = 1e-6 * worth - np.abs(votes - 0.5)
    return rows[np.argsort(-worth, kind="stable")[:10]]


def measure(set, draw):
    """Errors after each ten labels, %, of each rule."""
    warnings.simplefilter("ignore")
    X, _, truth, X_test, y_test = draws.pool(TUNING[set], draw)
    kernel = "linear" if sp.issparse(X) else "rbf"
    if kernel == "linear":
        similarity = cosine_similarity(X)
    else:
        similarity = rbf_kernel(X, gamma=resolve_gamma("scale", X))
    found = {}
    for rule in RULES:
        y = np.where(np.arange(len(truth)) < LABELS[0], truth, -1)
        errors = []
        for _ in LABELS:
            model = QNS3VM(kernel=kernel).fit(X, y)
            errors.append(digits(100 * np.mean(model.predict(X_test) != y_test)))
            rows = asked(rule, X, y, model, similarity, kernel, draw)
            y[rows] = truth[rows]
        found[rule] = errors
    return found
