"""Compile ahead of time, by small fits of every estimator that leave machine code on the disk."""

import argparse
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import s3vm_lib
from s3vm_lib.kernels import KERNELS
from s3vm_lib.utils.jit import no_notice

_ROWS = 24
_STREAM = slice(1), slice(12, 13), slice(13, 14), slice(None)  # one label, two rows without, all


def compile(estimators=None, *, progress=True):
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
    ``python -m s3vm_lib.compile``, with the names of estimators or without.
    """
    known = [name for name in s3vm_lib.__all__ if hasattr(getattr(s3vm_lib, name), "fit")]
    names = known if estimators is None else list(estimators)
    wrong = sorted(set(names) - set(known))
    if wrong:
        raise ValueError(f"{wrong[0]!r} is not an estimator; there are {', '.join(known)}")
    start = time.perf_counter()
    for name in names:
        begin = time.perf_counter()
        with no_notice(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # toy data: nothing to converge to, nothing to say
            fits = sum(_fit(model, X, y) for model, X, y in _cases(getattr(s3vm_lib, name)))
        if progress:
            seconds = time.perf_counter() - begin
            print(f"{name:16s} {fits:2d} fits {seconds:6.1f} s", flush=True)
    return time.perf_counter() - start


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
    """Run the command ``python -m s3vm_lib.compile [ESTIMATOR ...]``."""
    text = "Compile what estimators need, ahead of the first fit, and keep it on the disk."
    parser = argparse.ArgumentParser("python -m s3vm_lib.compile", description=text)
    parser.add_argument("estimators", nargs="*", metavar="ESTIMATOR", help="none: all estimators")
    names = parser.parse_args(arguments).estimators
    try:
        seconds = compile(names or None)
    except ValueError as error:
        sys.exit(str(error))
    print(f"Compiled in {seconds:.1f} s; what was there already took none.")
