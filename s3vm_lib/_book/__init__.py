"""What the chapters share: helpers, stored results, printed tables, and verdicts from both."""

from s3vm_lib._book.cells import draw_edges, glue, percent_wrong, sayer, show_source
from s3vm_lib._book.rules import Basis, Verdict, agreement, counted, difference, is_resolved
from s3vm_lib._book.show import show_decision, show_table, show_verdicts
from s3vm_lib._book.tables import digest, printed, programs, stored

__all__ = [
    "Basis",
    "Verdict",
    "agreement",
    "counted",
    "difference",
    "digest",
    "draw_edges",
    "glue",
    "is_resolved",
    "percent_wrong",
    "printed",
    "programs",
    "sayer",
    "show_decision",
    "show_source",
    "show_table",
    "show_verdicts",
    "stored",
]
