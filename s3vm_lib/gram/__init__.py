"""Kernel values in memory, for all solvers that read them row by row.

`Gram` holds those of a fixed set of rows: the whole matrix, or the rows that are visited, in a
cache where the one used longest ago makes room. `KernelStore` holds those of rows that come and go.

Read in this order: `_cache` (compiled), `_matrix` (`Gram`), `_store` (`KernelStore`).
"""

from s3vm_lib.gram._cache import (
    RowCache,
    add_rows,
    compute_row,
    fetch_row,
    fetch_rows,
    give_slot,
    rows_at_once,
    used_slot,
)
from s3vm_lib.gram._matrix import Gram
from s3vm_lib.gram._store import CACHED, DENSE, KernelStore, Values, append_rows, write_border

__all__ = [
    "CACHED",
    "DENSE",
    "Gram",
    "KernelStore",
    "RowCache",
    "Values",
    "add_rows",
    "append_rows",
    "compute_row",
    "fetch_row",
    "fetch_rows",
    "give_slot",
    "rows_at_once",
    "used_slot",
    "write_border",
]
