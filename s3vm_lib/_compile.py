"""Compile ahead of time, by small fits of every estimator that leave machine code on the disk."""

import argparse
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import clone

import s3vm_lib
from s3vm_lib.kernels import KERNELS
from s3vm_lib.utils.jit import no_notice

_ROWS = 24
_STREAM = slice(1), slice(12, 13), slice(13, 14), slice(None)  # one label, two rows without, all


def compile(estimators=None, *, progress=True, n_jobs=1):
    """Compile what the fits of estimators need, ahead of the first one.

    The library compiles a function when it is called for the first time, and keeps the machine
    code on the disk: below the folder that ``NUMBA_CACHE_DIR`` names, or in the user's folder for
    caches; a folder of another user is not used. Call this once when an image is built, or before
    a lesson, to avoid the compile time of the first fits. What has been compiled already is not
    compiled again.

    Parameters
    ----------
    estimators : list of str, default=None
        Names of estimators, such as ``["SVM", "QNS3VM"]``; None means all.
    progress : bool, default=True
        Print a line for each estimator to the standard output.
    n_jobs : int, default=1
        Processes; -1 means one for each core.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    ValueError
        If a name is not that of an estimator.

    Notes
    -----
    The fits are those of each kernel, on dense and on sparse rows, with the defaults of the
    estimator; where it has ``partial_fit`` and ``forget``, they are called, too. What other
    parameters choose is compiled when it is first used. As a command:
    ``python -m s3vm_lib.compile --jobs -1``, with the names of estimators or without.
    """
    known = [name for name in s3vm_lib.__all__ if hasattr(getattr(s3vm_lib, name), "fit")]
    names = known if estimators is None else list(estimators)
    wrong = sorted(set(names) - set(known))
    if wrong:
        raise ValueError(f"{wrong[0]!r} is not an estimator; there are {', '.join(known)}")
    start = time.perf_counter()
    for line in Parallel(n_jobs, return_as="generator_unordered")(map(delayed(_fits), names)):
        if progress:
            print(line, flush=True)
    if n_jobs != 1:  # of two processes that store one function at once, one may be lost
        list(map(_fits, names))
    return time.perf_counter() - start


def _fits(name):
    """Fit all models of an estimator, and return a line on how many and how long."""
    start = time.perf_counter()
    with no_notice(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # toy data: nothing to converge to, nothing to say
        fits = sum(_fit(model, X, y) for model, X, y in _cases(getattr(s3vm_lib, name)))
    return f"{name:16s} {fits:2d} fits {time.perf_counter() - start:6.1f} s"


def _cases(estimator):
    """Generate models with data, one for each kernel and storage that the estimator takes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((_ROWS, 3))
    classes = (X[:, 0] > 0).astype(int)
    known = np.arange(_ROWS) < _ROWS // 2
    y = np.where(known, classes, -1)
    if estimator is s3vm_lib.SVM:
        y = classes
    elif estimator is s3vm_lib.GKMRegressor:
        y = np.where(known, X[:, 0], np.nan)
    parameters = estimator().get_params()
    sparse = sp.csr_matrix(X)
    of_rows = [kernel for kernel in KERNELS if kernel != "precomputed"]
    for kernel in of_rows if "kernel" in parameters else (None,):
        chosen = {} if kernel is None else {"kernel": kernel}
        yield estimator(**chosen), X, y
        yield estimator(**chosen), sparse, y
        if "gram" in parameters:  # steps of many variables between their bounds
            yield estimator(C=100.0, **chosen), X + rng.standard_normal(X.shape), y
        # What larger data take: rows of kernel values that are computed as they are visited.
        if parameters.get("gram") == "auto" and kernel != "linear":
            yield estimator(gram="rows", **chosen), X, y
            yield estimator(gram="rows", **chosen), sparse, y
    if estimator.__name__ in ("CCCPS3VM", "FRS3VM"):
        yield estimator(), np.tile(X, (1000, 1)), np.tile(y, 1000)  # other functions


def _fit(model, X, y):
    """Call what compiles, ``partial_fit`` too; tell whether the estimator takes such data."""
    try:
        model.fit(X, y).predict(X[:2])
        if hasattr(model, "partial_fit"):  # after `fit`, and as the first call
            for one, classes in ((model, None), (clone(model), model.classes_)):
                for rows in _STREAM if isinstance(one, s3vm_lib.ILS3VM) else _STREAM[-1:]:
                    one.partial_fit(X[rows], y[rows], classes=classes).predict(X[:2])
                if hasattr(one, "forget"):
                    one.forget(np.arange(_ROWS))
    except (TypeError, ValueError):  # sparse rows, or this kernel
        return False
    return True


def main(arguments=None):
    """Run the command ``python -m s3vm_lib.compile [--jobs N] [ESTIMATOR ...]``."""
    text = "Compile what estimators need, ahead of the first fit, and keep it on the disk."
    parser = argparse.ArgumentParser("python -m s3vm_lib.compile", description=text)
    parser.add_argument("estimators", nargs="*", metavar="ESTIMATOR", help="none: all estimators")
    parser.add_argument("--jobs", type=int, default=1, help="processes; -1: one for each core")
    options = parser.parse_args(arguments)
    try:
        seconds = compile(options.estimators or None, n_jobs=options.jobs)
    except ValueError as error:
        sys.exit(str(error))
    print(f"Compiled in {seconds:.1f} s; what was there already took none.")
