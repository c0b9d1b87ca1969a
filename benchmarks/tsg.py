"""What the tables on random features share: splits, selection on labels, memory, synthetic rows."""

import resource
import sys

import numpy as np
import scipy.sparse as sp

SETS = ("cod-rna", "ijcnn1", "skin_nonskin", "w8a", "covtype", "usps")
N_LABELED = 200


def split(name, seed):
    """Training rows (200 labeled, then unlabeled), their y, and a fifth of the set for testing.

    Features are standardized over all training rows, or left as they are where they are sparse.
    """
    from s3vm_lib import datasets

    data = datasets.load(name)
    X, y = data.data, data.target
    X = sp.csr_matrix(X, dtype=np.float32) if sp.issparse(X) else np.asarray(X, np.float32)
    order = np.random.default_rng(seed).permutation(len(y))
    n = len(y) * 4 // 5
    training, test = order[:n], order[n:]
    # Both classes among the labels, in about their shares: the first 200 of the permutation.
    if np.unique(y[training[:N_LABELED]]).size < 2:
        other = np.flatnonzero(y[training] != y[training[0]])[0]
        training[[0, other]] = training[[other, 0]]
    X_train, X_test = X[training], X[test]
    if not sp.issparse(X):
        mean = X_train.mean(axis=0, dtype=float)
        scale = X_train.std(axis=0, dtype=float)
        scale[scale == 0] = 1.0
        X_train, X_test = (((A - mean) / scale).astype(np.float32) for A in (X_train, X_test))
    partly = y[training].copy()
    partly[N_LABELED:] = -1
    return X_train, partly, X_test, y[test]


def select(X, y, seed):
    """C and gamma by five-fold cross-validation of an SVC on the labeled rows alone."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    from s3vm_lib.kernels import resolve_gamma

    scale = resolve_gamma("scale", X)
    folds = max(2, min(5, int(np.bincount(y).min())))
    grid = {"C": [1.0, 10.0, 100.0], "gamma": [scale * f for f in (0.1, 0.3, 1.0, 3.0)]}
    cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
    found = GridSearchCV(SVC(), grid, cv=cv).fit(X, y)
    return found.best_params_


def rows_on_disk(path, n, d=30, seed=0):
    """A memory map of n float32 rows, two Gaussian classes, written block by block; and classes."""
    X = np.memmap(path, np.float32, "w+", shape=(n, d))
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(int)
    for start in range(0, n, 100_000):
        block = slice(start, min(start + 100_000, n))
        X[block] = rng.standard_normal((block.stop - start, d), dtype=np.float32)
        X[block, 0] += 2 * y[block]
        X[block, 1] += np.float32(0.5) * X[block, 0] ** 2
    X.flush()
    return np.memmap(path, np.float32, "r", shape=(n, d)), y


def peak_megabytes():
    """Largest resident memory of the process so far, file pages of memory maps included."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
