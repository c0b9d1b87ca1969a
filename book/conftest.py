"""The notebooks as tests: nbval executes each cell, and `compare.py` judges its outputs.

nbval's own comparison knows no numbers and no pictures; here a number may move as far as its cell
declares, pictures are compared pixel by pixel, and a difference is reported in one line.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_tools"))

import compare
import matplotlib.font_manager  # noqa: F401  (builds its cache, which a cell would report)
import nbval.plugin

# The outputs are those of one thread, in the kernels too, and of code that is compiled already.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "S3VM_LIB_QUIET"):
    os.environ.setdefault(name, "1")

SLOW_MACHINE = 120  # seconds to wait for the output of a cell that has ended


class ChapterCell(nbval.plugin.IPyNbCell):
    """A code cell of a chapter, with a comparison that knows numbers and pictures."""

    def runtest(self):
        self.output_timeout = SLOW_MACHINE
        super().runtest()

    def compare_outputs(self, test, ref, skip_compare=None):
        found = compare.compare_outputs(ref, test, self.cell.metadata)
        where = f"{self.path.stem}, cell [{self.cell.execution_count}]"
        self.comparison_traceback = [f"{where}, {message}" for message in found]
        return not found

    def repr_failure(self, excinfo):
        error = excinfo.value
        if isinstance(error, nbval.plugin.NbCellError) and str(error) == "Cell outputs differ":
            return error.inner_traceback
        return super().repr_failure(excinfo)


def pytest_itemcollected(item):
    """nbval makes its own cells and has no setting for their class."""
    if type(item) is nbval.plugin.IPyNbCell:
        item.__class__ = ChapterCell
