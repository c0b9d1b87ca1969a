"""Kernel values in memory, for all solvers that read them row by row.

`Gram` holds those of a fixed set of rows: the whole matrix, or the rows that are visited, in a
cache where the one used longest ago makes room. `KernelStore` holds those of rows that come and go.

Read in this order: `_cache` (compiled), `_matrix` (`Gram`), `_store` (`KernelStore`).
"""

from s3vm_lib.gram._cache import RowCache as RowCache
from s3vm_lib.gram._cache import add_rows as add_rows
from s3vm_lib.gram._cache import compute_row as compute_row
from s3vm_lib.gram._cache import fetch_row as fetch_row
from s3vm_lib.gram._cache import fetch_rows as fetch_rows
from s3vm_lib.gram._cache import give_slot as give_slot
from s3vm_lib.gram._cache import rows_at_once as rows_at_once
from s3vm_lib.gram._cache import used_slot as used_slot
from s3vm_lib.gram._matrix import Gram as Gram
from s3vm_lib.gram._store import CACHED as CACHED
from s3vm_lib.gram._store import DENSE as DENSE
from s3vm_lib.gram._store import KernelStore as KernelStore
from s3vm_lib.gram._store import Values as Values
from s3vm_lib.gram._store import append_rows as append_rows
from s3vm_lib.gram._store import write_border as write_border

__all__ = [name for name in dir() if not name.startswith("_")]
