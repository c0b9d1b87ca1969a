"""Compile every kernel once, and let matplotlib build its font cache.

A first import of matplotlib and a first fit are slow and may write to stderr, which a notebook
would record; and processes that fill one numba cache at the same time get in each other's way. So
the tests, the notebooks and Binder's image all begin with this script.
"""

import time
import warnings

import matplotlib.font_manager  # noqa: F401  (building the font cache is what is wanted)
import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import s3vm_lib


def main():
    start = time.perf_counter()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 3))
    y = (X[:, 0] > 0).astype(int)
    partly = np.where(np.arange(24) < 12, y, -1)
    fits = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # toy data, nothing to converge to
        for name in s3vm_lib.__all__:
            estimator = getattr(s3vm_lib, name)
            if not hasattr(estimator, "fit"):
                continue
            labels = y if name == "SVM" else partly
            kernels = ("linear", "poly", "rbf") if "kernel" in estimator().get_params() else ()
            models = [estimator(kernel=kernel) for kernel in kernels] or [estimator()]
            for model in models:
                model.fit(X, labels).predict(X)
            models[0].fit(sparse.csr_matrix(X), labels)
            fits += len(models) + 1
    print(f"Warmed the numba cache with {fits} fits in {time.perf_counter() - start:.1f} s.")


if __name__ == "__main__":
    main()
