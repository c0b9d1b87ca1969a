"""Kernel values in memory, for all solvers that read them row by row.

`Gram` holds those of a fixed set of rows: the whole matrix, or the rows that are visited, in a
cache where the one used longest ago makes room. `KernelStore` holds those of rows that come and go.

Read in this order: `_matrix` (compiled parts and `Gram`), `_store` (`KernelStore`).
"""

from s3vm_lib.gram._store import CACHED, DENSE, KernelStore, append_rows, write_border

from s3vm_lib.gram._matrix import (  # isort: skip
    Gram, add_rows, compute_row, fetch_rows, give_slot, rows_at_once, used_slot,
)  # fmt: skip

__all__ = [
    "CACHED", "DENSE", "Gram", "KernelStore", "add_rows", "append_rows", "compute_row",
    "fetch_rows", "give_slot", "rows_at_once", "used_slot", "write_border",
]  # fmt: skip
