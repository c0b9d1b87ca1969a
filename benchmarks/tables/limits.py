"""How far each solver is from what its workload must cost: limit, ours, ratio (CPU s).

The limit is a count that the algorithm cannot do without, times rates that are measured in the same
run, on one thread: kernel values of the precision that the solver keeps, in the best form that we
have (``single``: the matrix of SMO; ``double``: `Kernel.gram`, both for rows like these); values of
random features; BLAS at that shape (gemm, Cholesky); reading memory in order, once (``stream``: a
product of a matrix with a vector, of 256 MB or, where the data are smaller, of their size).
``parts`` has the seconds of each count. Each is a lower bound for the algorithm, with the
iterations that it took, for these reasons.

- `SVM`: to move a variable takes its kernel row, and every support vector was moved; each iteration
  reads F and two kernel rows (16 bytes) of each active point.
- `CCCPS3VM`: the kernel values of the mean point take all rows.
- `S3VMLight`: in the end all rows are variables, and with so few of them all are kept.
- `QNS3VM`: K ≈ GGᵀ needs the columns of the r pivots and n r² operations, and each evaluation two
  products with the factor (Zw and Zᵀa may share one read), which count as one pass, of four
  bytes a value in the stages that work in single precision.
- `NewtonS3VM`: the same factor, and one Cholesky factorization of r × r at least.
- `LapSVM`: the values of a symmetric matrix, and one factorization of n × n.
- `DAS3VM`, `MultiSwitchTSVM`: every iteration of Newton's method takes the outputs of all rows, one
  pass over the sparse matrix (12 bytes a value), and each of conjugate gradients reads the rows
  that have a curvature, which a second run counts.
- `FRS3VM`, `TSGS3VM`: the features of all rows, for the outputs in the end; each step reads those
  of its rows (4 bytes), as many as there are by then, and each evaluation of the polish those of
  all rows (8 bytes). Drawing the frequencies counts for nothing.
- `GKM`: of two rows in the sum, the later one was drawn while the other was there, so that their
  kernel value is needed; each step sums over the rows of the stretch before at three rows (4
  bytes). The graph counts for nothing.
- `BGS3VM`: the kernel values among the rows that stay; each step sums over as many at three rows,
  and each row that is given up looks for the nearest (8 bytes).
- `ILS3VM`, row by row (``n_iter``) after a fit of 100: the output of a new row takes its kernel
  values with all support vectors; each step along the path moves all outputs, by the columns of the
  margin set.
- `NNBBS3VM`, the same: neighbors take the kernel values of a new row with all; the solution of a
  node differs from that of its parent, which takes a kernel row (8 bytes a value).
- `BranchBoundS3VM`: the kernel values of a symmetric matrix; for a node the same.

For the last two and `BGS3VM` these counts are a small part of what a step must do, and the limits
are loose. `SafeS3VM` and `S3VC` run these solvers and are left out. Ours: fits with
balance="labels" where there is a balance (to estimate the shares is not the solver's work), median
of five, compiled before.
"""

from itertools import pairwise
from unittest import mock

import numpy as np

from benchmarks.harness import REPEATS, digits, race
from benchmarks.instances import MIXTURE_GAMMA, bag_of_words, mixture20

ROWS = [
    *({"solver": "SVM", "n": n, "C": C} for n in (500, 2000, 5000) for C in (1.0, 100.0)),
    {"solver": "CCCPS3VM", "n": 2000, "C": 10.0},
    {"solver": "CCCPS3VM", "n": 8000, "C": 10.0},
    {"solver": "S3VMLight", "n": 1000, "C": 1.0},
    {"solver": "QNS3VM", "n": 4000, "C": 1.0},
    {"solver": "QNS3VM", "n": 8000, "C": 1.0},
    {"solver": "NewtonS3VM", "n": 2000, "C": 1.0},
    {"solver": "LapSVM", "n": 2000, "C": 1.0},
    {"solver": "DAS3VM", "n": 10_000, "C": 1.0},
    {"solver": "MultiSwitchTSVM", "n": 10_000, "C": 1.0},
    {"solver": "FRS3VM", "n": 8000, "C": 1.0},
    {"solver": "TSGS3VM", "n": 8000, "C": 1.0},
    {"solver": "GKM", "n": 2000, "C": 1.0},
    {"solver": "BGS3VM", "n": 2000, "C": 1.0},
    {"solver": "ILS3VM", "n": 1000, "C": 1.0},
    {"solver": "NNBBS3VM", "n": 300, "C": 1.0},
    {"solver": "BranchBoundS3VM", "n": 30, "C": 1.0},
]
_SPARSE = ("DAS3VM", "MultiSwitchTSVM")
_ONLINE = ("ILS3VM", "NNBBS3VM")
_FIRST = 100  # rows of the fit before rows come one by one
_LABELED = {"BranchBoundS3VM": 10}  # rows with a label, otherwise 50


def _seconds(function):
    """CPU seconds of a function without arguments, median of five."""
    return race({"it": function}, REPEATS)[0]["it"]["cpu_seconds"]


def _single(X):
    """Seconds for one kernel value in single precision."""
    from s3vm_lib.gram import Gram
    from s3vm_lib.kernels import Kernel

    X, kernel = X[:2000], Kernel("rbf", gamma=MIXTURE_GAMMA)
    return _seconds(lambda: Gram(X, kernel, storage="full")) / len(X) ** 2


def _double(X, columns=None):
    """Seconds for one kernel value in double precision; of a symmetric matrix without columns."""
    from s3vm_lib.kernels import Kernel

    if len(X) < 2000:  # a call costs more than so few values
        X = mixture20(50, 1950, 1).training()[0]
    kernel, Y = Kernel("rbf", gamma=MIXTURE_GAMMA), None if columns is None else X[:columns]
    return _seconds(lambda: kernel.gram(X, Y)) / (len(X) * (columns or len(X)))


def _features(stream, X):
    """Seconds for one value of a random feature."""
    from s3vm_lib.random_features import single

    X, block = single(X[:2000]), stream.block(0)
    return _seconds(lambda: stream.values(X, block)) / (len(X) * block.size)


def _stream(size):
    """Seconds to read one byte of ``size`` bytes in order."""
    rows = max(1, int(min(size, 2**28)) // 8000)
    A, x = np.ones((rows, 1000)), np.ones(1000)
    times = max(1, 2**26 // A.nbytes)
    return _seconds(lambda: [A @ x for _ in range(times)]) / (times * A.nbytes)


def _gemm(n, r):
    """Seconds for one multiplication with addition in a product like those of the factor."""
    A, B = np.ones((n, r)), np.ones((r, 64))
    return _seconds(lambda: A @ B) / (n * r * 64)


def _cholesky(n):
    """Seconds to factorize n × n."""
    A = np.eye(n) + 0.5 / n
    return _seconds(lambda: np.linalg.cholesky(A))


def _fitted(model, X, y, after=lambda model: None):
    """The fitted model; of a method that learns row by row, by rows after the first ones."""
    if type(model).__name__ not in _ONLINE:
        return model.fit(X, y)
    model.fit(X[:_FIRST], y[:_FIRST])
    for k in range(_FIRST, len(y)):
        model.partial_fit(X[k : k + 1], y[k : k + 1])
        after(model)
    return model


def _read_by_gradients(model, X, y):
    """Values of the sparse matrix that conjugate gradients read in a fit."""
    from s3vm_lib.finite_newton import SparseRows

    read, curvature = [0], SparseRows.curvature

    def counting(rows, c):
        product, active = curvature(rows, c), int(np.diff(rows.X.indptr)[c != 0].sum())

        def counted(p):
            read[0] += active
            return product(p)

        return counted

    with mock.patch.object(SparseRows, "curvature", counting):
        model.fit(X, y)
    return read[0]


def _parts_of_features(model, X):
    """`FRS3VM` and `TSGS3VM`: features, the steps on them, and the polish."""
    n, (_, blocks, m) = X.shape[0], np.shape(model.feature_coef_)
    steps = max(stage.n_iter for stage in model.history_ if hasattr(stage, "n_features"))
    evaluations = sum(getattr(stage, "n_evaluations", 0) for stage in model.history_)
    D, rows = blocks * m, 50 + 256  # of a step, with or without a label
    growing = type(model).__name__ == "TSGS3VM"
    width = np.minimum(D, m * np.arange(1, steps + 1)).sum() if growing else steps * D
    return {
        "features": n * D * _features(model.stream_, X),
        "steps": 4 * rows * width * _stream(4 * rows * D),
        "passes": 8 * evaluations * n * D * _stream(8 * n * D),
    }


def _parts_of_sums(model, X):
    """`GKM` and `BGS3VM`: sums over the rows so far."""
    double, S = type(model).__name__ == "BGS3VM", len(model.support_)
    sums = sum(
        (3 * (now.n_iter - old.n_iter) + now.given_up - old.given_up) * old.n_support
        for old, now in pairwise(model.history_)
    )
    rate, size = (_double(X), 8) if double else (_single(X), 4)
    return {"kernel values": S**2 / 2 * rate, "passes": size * sums * _stream(size * S**2)}


def _parts_of_rows(solver, X, y, options):
    """`ILS3VM` and `NNBBS3VM`: what came with each row, from a second run."""
    import s3vm_lib

    model, values, read = getattr(s3vm_lib, solver)(**options), [_FIRST**2 / 2], [0]
    if solver == "ILS3VM":
        model.set_params(record=True)

    def look(model):
        n = _FIRST + len(values)
        if solver == "ILS3VM":
            values.append(len(model.support_) - 1)
            read.append(n * int(model.path_["n_margin"].sum()))
        else:
            values.append(n)
            read.append(n * model.history_[-1].n_iter)

    _fitted(model, X, y, look)
    passes = 8 * sum(read) * _stream(8 * len(y) ** 2)
    return {"kernel values": sum(values) * _double(X), "passes": passes}


def _parts(solver, model, X, y, options):
    """Seconds of what a fit cannot do without, by name."""
    n = X.shape[0]
    if solver in _SPARSE:
        rate = 12 * _stream(12 * X.nnz)
        iterations = sum(stage.n_iter for stage in model.history_)
        read = _read_by_gradients(model, X, y)
        return {"passes": iterations * X.nnz * rate, "conjugate gradients": read * rate}
    if solver in ("FRS3VM", "TSGS3VM"):
        return _parts_of_features(model, X)
    if solver in ("GKM", "BGS3VM"):
        return _parts_of_sums(model, X)
    if solver in _ONLINE:
        return _parts_of_rows(solver, X, y, options)
    if solver == "BranchBoundS3VM":
        passes = 8 * model.n_iter_ * n * _stream(8 * n * n)
        return {"kernel values": n**2 * _double(X), "passes": passes}
    if solver in ("SVM", "CCCPS3VM", "S3VMLight"):
        values = n * (len(model.support_) if solver == "SVM" else n)
        parts = {"kernel values": values * _single(X)}
        if solver == "SVM":
            done, visits = 0, 0
            for n_iter, _, n_active in model.history_:
                visits += (n_iter - done) * n_active
                done = n_iter
            parts["passes"] = 16 * visits * _stream(16 * n)
        return parts
    if solver == "LapSVM":
        return {"kernel values": n**2 * _double(X), "factorization": _cholesky(n)}
    r = len(model.support_)
    parts = {"kernel values": n * r * _double(X, r), "factor": n * r * r / 2 * _gemm(n, r)}
    if solver == "QNS3VM":
        values = {4: 0, 8: 0}  # read in single and in double precision
        for stage in model.history_:
            single = 0 < stage.alpha < 1 and n * r >= 2**20
            values[4 if single else 8] += stage.n_evaluations * n * r
        parts["passes"] = sum(size * read * _stream(size * n * r) for size, read in values.items())
    else:
        parts["factorization"] = _cholesky(r)
    return parts


def measure(solver, n, C):
    """One row: see the protocol in the module's docstring."""
    import s3vm_lib

    options = {"C": C}
    if solver in _SPARSE:
        X, y = bag_of_words(n).training()
    elif solver == "SVM":
        X, y = mixture20(n, 0, 1)[:2]
    else:
        labeled = _LABELED.get(solver, 50)
        X, y = mixture20(labeled, n - labeled, 1).training()
    if solver not in _SPARSE:
        options["gamma"] = MIXTURE_GAMMA
    if hasattr(getattr(s3vm_lib, solver)(), "balance"):
        options["balance"] = "labels"
    if solver in ("FRS3VM", "TSGS3VM", "GKM", "BGS3VM"):
        options["random_state"] = 0
    estimator = getattr(s3vm_lib, solver)
    timings, models = race({"ours": lambda: _fitted(estimator(**options), X, y)})
    parts = _parts(solver, models["ours"], X, y, options)
    ours = timings["ours"]["cpu_seconds"]
    limit = sum(parts.values())
    return {
        "timings": timings,
        "parts": {name: digits(value) for name, value in parts.items()},
        "limit": digits(limit),
        "ours": ours,
        "ratio": digits(ours / limit),
        "n_iter": n - _FIRST if solver in _ONLINE else int(np.max(models["ours"].n_iter_)),
    }
