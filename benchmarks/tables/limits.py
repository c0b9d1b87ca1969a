"""How far each solver is from what its workload must cost: limit, ours, ratio (CPU s).

The limit is a count that the algorithm cannot do without, times rates that are measured in the same
run, on one thread: kernel values of the precision that the solver keeps, in the best form that we
have (``single``: the matrix of SMO; ``double``: `Kernel.gram`, both for rows like these); BLAS at
that shape (gemm, Cholesky); reading memory in order, once (``stream``: a product of a matrix with
a vector, of 256 MB or, where the data are smaller, of their size). ``parts`` has the seconds of
each count. Each is a lower bound for the algorithm, with the iterations that it took, for these
reasons. `SVM`: to move a variable takes its kernel row, and every support vector was moved; each
iteration reads F and two kernel rows (16 bytes) of each active point. `CCCPS3VM`: the kernel values
of the mean point take all rows. `S3VMLight`: in the end all rows are variables,
and with so few of them all are kept. `QNS3VM`: K ≈ GGᵀ needs the columns of the r pivots and n r²
operations, and each evaluation two products with the factor (Zw and Zᵀa may share one read), which
count as one pass, of four bytes a value in the stages that work in single precision.
`NewtonS3VM`: the same factor, and one Cholesky factorization of r × r at least.
`LapSVM`: the values of a symmetric matrix, and one factorization of n × n. `DAS3VM`,
`MultiSwitchTSVM`: every iteration of Newton's method takes the outputs of all rows, one pass over
the sparse matrix (12 bytes a value); steps of conjugate gradients read the rows that have a
curvature, and count for nothing here. Ours: fits with balance="labels" where there is a balance
(to estimate the shares is not the solver's work), median of five, compiled before.
"""

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
]
_SPARSE = ("DAS3VM", "MultiSwitchTSVM")


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

    kernel, Y = Kernel("rbf", gamma=MIXTURE_GAMMA), None if columns is None else X[:columns]
    return _seconds(lambda: kernel.gram(X, Y)) / (len(X) * (columns or len(X)))


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


def _parts(solver, model, X):
    """Seconds of what a fit cannot do without, by name."""
    n = X.shape[0]
    if solver in _SPARSE:
        size = 12 * X.nnz
        iterations = sum(stage.n_iter for stage in model.history_)
        return {"passes": iterations * size * _stream(size)}
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
        X, y = mixture20(50, n - 50, 1).training()
    if solver not in _SPARSE:
        options["gamma"] = MIXTURE_GAMMA
    if hasattr(getattr(s3vm_lib, solver)(), "balance"):
        options["balance"] = "labels"
    timings, models = race({"ours": lambda: getattr(s3vm_lib, solver)(**options).fit(X, y)})
    parts, ours = _parts(solver, models["ours"], X), timings["ours"]["cpu_seconds"]
    limit = sum(parts.values())
    return {
        "timings": timings,
        "parts": {name: digits(value) for name, value in parts.items()},
        "limit": digits(limit),
        "ours": ours,
        "ratio": digits(ours / limit),
        "n_iter": int(np.max(models["ours"].n_iter_)),
    }
