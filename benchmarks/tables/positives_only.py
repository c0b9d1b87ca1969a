"""Labels of one class only: ways to learn from them, and the share of that class.

The tuning sets of the bake-off with two classes: of the training part, at most 1000 rows, the first
10, 25 or 50 rows of class 1 in the order of the draw have a label, if these are at most half of the
class. Errors in percent on all other rows of that part. Kernel rbf, of texts linear, else defaults.
``naive``: SVM, rows without a label as negatives; ``weighted``: the same with both classes of
equal total weight (``class_weight="balanced"``); ``weighted_cut``: its outputs out of fold, cut so
that the estimated share is above; ``elkan_noto``: each row without a label twice, as positive and
as negative, with the weights of Elkan and Noto (2008) from a logistic curve through those outputs;
``upu``: the unbiased risk of du Plessis et al. (2015) with the logistic loss; ``nnpu``: the
non-negative risk of Kiryo et al. (2017) with the sigmoid loss, 300 steps of Adam; both with the
estimated share, f in the span of the kernel, and ‖f‖²/2n beside the risk;
``bags_cut``: `bagged_scores`, cut at the estimated share; ``bags_auto``: QNS3VM after
`from_positives`, with the balance of its own; ``bags``: with the share that is returned;
``bags_told``, ``upu_told``: with the true share; ``both``: an SVM with as many labels of each
class; ``share``, ``estimate``: the true share and that of `from_positives`.
"""

import warnings

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from benchmarks.bakeoff import draws
from benchmarks.bakeoff.sets import SETS
from benchmarks.harness import digits
from s3vm_lib import QNS3VM, SVM
from s3vm_lib.kernels import resolve_gamma
from s3vm_lib.model_selection.rankings import bagged_scores, from_positives, out_of_fold

TUNING = {one.name: one for one in SETS if one.part == "tuning" and not one.multi}
ROWS = [{"set": name, "draw": draw} for draw in range(5) for name in TUNING]


def elkan_noto(X, positive, scores, kernel):
    """Labels of an SVM to which each row without a label is given twice."""
    curve = LogisticRegression(C=1e3).fit(scores[:, None], positive)
    g = curve.predict_proba(scores[:, None])[:, 1]
    c = g[positive].mean()  # of the positives, the share that has a label
    weight = np.clip((1 - c) / c * g / np.maximum(1 - g, 1e-9), 1e-9, 1 - 1e-9)
    others = ~positive
    stack = sp.vstack if sp.issparse(X) else np.vstack
    rows, y = stack([X, X[others]]), np.r_[np.ones(len(g), int), np.zeros(others.sum(), int)]
    weights = np.r_[np.where(positive, 1.0, weight), 1 - weight[others]]
    return SVM(kernel=kernel).fit(rows, y, sample_weight=weights).predict(X)


def span(K):
    """Columns Z so that f = Zw + b has the norm ‖w‖, for all f in the span of the kernel."""
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-6 * values[-1]
    return np.c_[vectors[:, kept] * np.sqrt(values[kept]), np.ones(len(K))]


def upu(Z, positive, share):
    """Labels by the unbiased risk, whose minimum is exact: it is convex."""
    P, U = Z[positive], Z[~positive]

    def objective(w):
        f = U @ w
        risk = np.logaddexp(0, f).mean() - share * (P @ w).mean()
        slope = U.T @ expit(f) / len(U) - share * P.mean(axis=0)
        flat = np.r_[w[:-1], 0] / len(Z)
        return risk + 0.5 * flat @ w, slope + flat

    w = minimize(objective, np.zeros(Z.shape[1]), jac=True, method="L-BFGS-B").x
    return (Z @ w > 0).astype(int)


def nnpu(Z, positive, share, steps=300, rate=0.02):
    """Labels by the non-negative risk."""
    P, U = Z[positive], Z[~positive]
    w, m, v = np.zeros((3, Z.shape[1]))

    def risk(A, sign):  # of the sigmoid loss 1 / (1 + exp(sign · f)), with its gradient
        loss = expit(-sign * (A @ w))
        return np.r_[loss.mean(), -sign * A.T @ (loss * (1 - loss)) / len(A)]

    for k in range(1, steps + 1):
        rest = risk(U, -1) - share * risk(P, -1)
        g = share * risk(P, 1)[1:] + rest[1:] if rest[0] >= 0 else -rest[1:]
        g = g + np.r_[w[:-1], 0] / len(Z)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        w = w - rate * (m / (1 - 0.9**k)) / (np.sqrt(v / (1 - 0.999**k)) + 1e-8)
    return (Z @ w > 0).astype(int)


def measure(set, draw):
    """Errors, %, for each number of labels."""
    warnings.simplefilter("ignore")
    one = TUNING[set]
    X, _, truth, _, _ = draws.pool(one, draw)
    kernel = "linear" if sp.issparse(X) else "rbf"
    K = linear_kernel(X, dense_output=True)
    if kernel == "rbf":
        K = rbf_kernel(X, gamma=resolve_gamma("scale", X))
    Z, found = span(K), {}
    for n in (10, 25, 50):
        rows = np.flatnonzero(truth == 1)
        if 2 * n <= rows.size:
            found[str(n)] = compared(X, truth, np.isin(np.arange(len(truth)), rows[:n]), kernel, Z)
    return found


def compared(X, truth, positive, kernel, Z):
    """Errors, %, and shares, for these positives."""
    others, s, n = ~positive, positive.astype(int), positive.sum()

    def error(labels):
        return digits(100 * np.mean(labels[others] != truth[others]))

    def cut(scores, share):
        return (scores > np.quantile(scores[others], 1 - share)).astype(int)

    def total(labels, share):  # among all rows without a label
        return share * np.sum(labels < 0) / others.sum()

    weighted = SVM(kernel=kernel, class_weight="balanced")
    outputs = out_of_fold(weighted, X, s)
    bags = bagged_scores(SVM(kernel=kernel), X, positive)
    labels, share = from_positives(bags, positive)
    true = float(np.mean(truth[others]))
    told, told_share = from_positives(bags, positive, share=true)
    estimate = total(labels, share)
    both = np.full(len(s), -1)
    both[positive], both[np.flatnonzero(truth == 0)[:n]] = 1, 0
    return {
        "share": digits(true),
        "estimate": digits(estimate),
        "naive": error(SVM(kernel=kernel).fit(X, s).predict(X)),
        "weighted": error(weighted.fit(X, s).predict(X)),
        "weighted_cut": error(cut(outputs, total(*from_positives(outputs, positive)))),
        "elkan_noto": error(elkan_noto(X, positive, outputs, kernel)),
        "upu": error(upu(Z, positive, estimate)),
        "upu_told": error(upu(Z, positive, true)),
        "nnpu": error(nnpu(Z, positive, estimate)),
        "bags_cut": error(cut(bags, estimate)),
        "bags_auto": error(QNS3VM(kernel=kernel).fit(X, labels).predict(X)),
        "bags": error(QNS3VM(kernel=kernel, balance=share).fit(X, labels).predict(X)),
        "bags_told": error(QNS3VM(kernel=kernel, balance=told_share).fit(X, told).predict(X)),
        "both": error(SVM(kernel=kernel).fit(X, both).predict(X)),
    }
