"""What the chapters share: stored results, printed tables, and verdicts computed from both."""

from s3vm_lib._book.results import digest, printed, programs, stored
from s3vm_lib._book.rules import Basis, Verdict, agreement, counted, difference, is_resolved
from s3vm_lib._book.show import show_table, show_verdicts

__all__ = [
    "Basis",
    "Verdict",
    "agreement",
    "counted",
    "difference",
    "digest",
    "is_resolved",
    "printed",
    "programs",
    "show_table",
    "show_verdicts",
    "stored",
]
