"""The batch solvers of the library on one grid, for tables that compare all of them.

A setting is (gamma, C, share): costs C on the labeled part and C* = share · C · l/u, so that share
1 gives both parts equal total weight. In the notation of the QN-S3VM paper C = 1/(2λl) and share =
λ'; in that of SVMlin C = 1/(λl) and share = λ'.
"""

import numpy as np

METHODS = (
    "SVM",
    "S3VMLight",
    "MultiSwitchTSVM",
    "DAS3VM",
    "NewtonS3VM",
    "QNS3VM",
    "QNS3VM as published",
    "CCCPS3VM",
)
LINEAR_ONLY = ("MultiSwitchTSVM", "DAS3VM")
# Raw coefficients, the paper's annealing, and the tolerance of the authors' program.
_PUBLISHED = {"coordinates": "raw", "annealing": "paper", "ftol": 2.2e-4}


def grid(method, costs, shares, gammas=(1.0,)):
    """Settings of a method from the strongest regularization to the weakest.

    Parameters
    ----------
    method : str
        One of ``METHODS``; the SVM has no share.
    costs, shares, gammas : sequence of float
        Values of C, of the share and of the kernel coefficient, ascending.

    Returns
    -------
    list of (float, float, float)
    """
    shares = (0.0,) if method == "SVM" else shares
    return [(gamma, C, share) for C in costs for share in shares for gamma in gammas]


def make(method, kernel="linear", **options):
    """Function (setting, y) -> estimator, as `benchmarks.qn_paper.compare` wants it.

    Parameters
    ----------
    method : str
        One of ``METHODS``.
    kernel : str, default="linear"
    **options
        Further parameters of the estimator.

    Returns
    -------
    callable
    """
    import s3vm_lib

    name, _, published = method.partition(" ")
    cls = getattr(s3vm_lib, name)
    if published:
        options = _PUBLISHED | options

    def estimator(setting, y):
        gamma, C, share = setting
        parameters = {"C": C, **options}
        if method not in LINEAR_ONLY:
            parameters |= {"kernel": kernel, "gamma": gamma}
        if method != "SVM":
            parameters = {"balance": "labels", **parameters}
            labeled, unlabeled = np.sum(y != -1), max(np.sum(y == -1), 1)
            parameters["C_star"] = share * C * labeled / unlabeled
        return cls(**parameters)

    return estimator
