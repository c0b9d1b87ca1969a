"""What the book adds to the library: stored results, verdicts, plots, and checks for students."""

from s3vm_book.cells import draw_edges, glue, percent_wrong, sayer, show_source
from s3vm_book.rules import Basis, Verdict, agreement, counted, difference, is_resolved
from s3vm_book.show import offer_table, show_decision, show_table, show_verdicts
from s3vm_book.tables import digest, printed, programs, stored

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
    "offer_table",
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
