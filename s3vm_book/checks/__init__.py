"""Judge the answers of students' solvers and name the mistake.

Each function returns a `Report`, which is true when nothing is wrong, and prints as a sentence.
Labels are −1 and +1, and 0 for unlabeled rows, as solvers use them; of y with classes 0 and 1, and
−1 for unlabeled rows, that is ``np.where(y == -1, 0, 2 * y - 1)``.

What the checks measure with is in `s3vm_lib.checks`.
"""

from s3vm_book.checks._cccp import check_cccp as check_cccp
from s3vm_book.checks._gradients import check_gradient as check_gradient
from s3vm_book.checks._kernel import check_kernel as check_kernel
from s3vm_book.checks._objective import check_s3vm_objective as check_s3vm_objective
from s3vm_book.checks._report import Report as Report
from s3vm_book.checks._stationary import check_balance as check_balance
from s3vm_book.checks._stationary import check_s3vm as check_s3vm
from s3vm_book.checks._svm import check_svm as check_svm

__all__ = [name for name in dir() if not name.startswith("_")]
