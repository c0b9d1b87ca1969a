"""S3VM-light in plain NumPy: the twin of `s3vm_lib.label_switching.solve_s3vm_light`.

Each training starts from β = 0; the library starts from where it stood and reaches the same SVM.
Numbers in comments are the lines of the algorithm in the chapter on switching labels.
"""

from collections import namedtuple

import numpy as np

from s3vm_lib.reference.smo import solve_smo
from s3vm_lib.smo import svc_costs

# After a training: costs C*_+ and C*_−, all labels, the SVM, its outputs f + b, and J(f, b, t).
Step = namedtuple("Step", "C_plus C_minus labels beta b outputs value")


def train(K, labels, upper, tol):
    """Train the SVM for given labels and upper bounds C_i of the dual variables."""
    beta, b, _ = solve_smo(K, svc_costs(labels, upper), tol=tol)
    f = K @ beta
    value = 0.5 * beta @ f + upper @ np.maximum(0, 1 - labels * (f + b))
    return labels.copy(), beta, b, f + b, value


def light_steps(K, t, n_plus, C, C_star, start=1e-5, factor=2.0, plus=None, pairs=None, tol=1e-6):
    """Yield a `Step` after each training; the last one is the solution.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix.
    t : ndarray of shape (n,)
        −1 and +1, and 0 for the u unlabeled rows.
    n_plus : int
        Number of unlabeled rows with label +1.
    C, C_star : float
        Costs of labeled and, in the end, of unlabeled rows.
    start, factor : float
        First costs relative to C*, and their growth.
    plus : float, default=None
        Share of C*_+ in C*_+ + C*_−; None means 1 − n_plus / u, the paper n_plus / u.
    pairs : int, default=None
        Pairs switched at once: 1 in the paper, None for all.
    tol : float, default=1e-6
        Tolerance of the SVM.

    Yields
    ------
    Step
    """
    U = np.flatnonzero(t == 0)
    labels, upper = np.where(t == 0, 1.0, t), np.where(t == 0, 0.0, C)
    step = Step(0.0, 0.0, *train(K, labels, upper, tol))  # 1
    yield step
    labels[U] = -1  # 2
    labels[U[np.argsort(-step.outputs[U], kind="stable")[:n_plus]]] = 1
    plus = 1 - n_plus / U.size if plus is None else plus
    scale, costs = start, (0.0, 0.0)
    while costs != (C_star, C_star):  # 3
        costs = tuple(C_star * min(1.0, 2 * scale * part) for part in (plus, 1 - plus))  # 4
        scale *= factor
        while True:
            upper[U] = np.where(labels[U] > 0, *costs)
            step = Step(*costs, *train(K, labels, upper, tol))  # 5
            yield step
            f = step.outputs
            i, j = U[labels[U] > 0], U[labels[U] < 0]
            i = i[np.argsort(f[i], kind="stable")]  # 6: the worst of both kinds meet
            j = j[np.argsort(-f[j], kind="stable")]
            m = min(i.size, j.size, U.size if pairs is None else pairs)
            wrong = f[j[:m]] - f[i[:m]] > 2 * tol  # the outputs are known up to tol
            if not wrong.any():  # 7
                break
            labels[i[:m][wrong]], labels[j[:m][wrong]] = -1, 1  # 8
