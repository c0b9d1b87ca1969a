"""Checks that a solver did not compute itself: for the tests, and for students.

Functions whose names begin with ``check`` judge an answer and say what is wrong with it. Each
returns a `Report`, which is true when nothing is, prints as a sentence, and names the mistake. They
take labels −1 and +1, and 0 for unlabeled rows, as solvers use them; of y with classes 0 and 1, and
−1 for unlabeled rows, that is ``np.where(y == -1, 0, 2 * y - 1)``.

The others compute: finite differences, stationarity, and the global optimum of small problems by
enumeration.
"""

from s3vm_lib.checks._cccp import check_cccp as check_cccp
from s3vm_lib.checks._gradients import check_gradient as check_gradient
from s3vm_lib.checks._kernel import check_kernel as check_kernel
from s3vm_lib.checks._numerical import BruteForce as BruteForce
from s3vm_lib.checks._numerical import brute_force as brute_force
from s3vm_lib.checks._numerical import fixed_label_svm as fixed_label_svm
from s3vm_lib.checks._numerical import gradient_error as gradient_error
from s3vm_lib.checks._numerical import numerical_gradient as numerical_gradient
from s3vm_lib.checks._numerical import stationarity as stationarity
from s3vm_lib.checks._objective import check_s3vm_objective as check_s3vm_objective
from s3vm_lib.checks._report import Report as Report
from s3vm_lib.checks._stationary import check_balance as check_balance
from s3vm_lib.checks._stationary import check_s3vm as check_s3vm
from s3vm_lib.checks._svm import check_svm as check_svm

__all__ = [name for name in dir() if not name.startswith("_")]
