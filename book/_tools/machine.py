"""What machine a chapter asks for: ``python book/_tools/machine.py [--cluster] [svm ...]``.

One chapter after the other (all when none is named) is executed in a kernel of its own, with what
`environment.yml` installs, as on Binder; nothing is stored. With ``--cluster`` the chapter on more
than one machine starts one, where Dask is installed. The memory is that of the kernel and of all
processes that it starts: on Linux what cannot be given back to files, and what several of them
share counts once; elsewhere all that is resident. More than Binder gives is an error.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import nbformat
import notebooks
import psutil

BOOK = Path(__file__).resolve().parents[1]
MEGABYTES, START = 1200, 5  # at most: of all processes, and seconds until a kernel answers
ROLLUP = "/proc/{}/smaps_rollup" if Path("/proc/self/smaps_rollup").exists() else None
COUNTED = ("Pss_Anon", "Pss_Shmem")
PAUSE = 0.1  # seconds between two looks at the memory


class Needs(NamedTuple):
    """What one chapter asks for."""

    start: float  # seconds until the kernel answers
    first: float  # seconds of the first cell: the imports
    total: float  # seconds of everything
    peak: float  # MB

    def problems(self):
        """What is more than Binder gives, in words."""
        found = []
        if self.peak > MEGABYTES:
            found.append(f"{self.peak:.0f} MB, {MEGABYTES} are allowed")
        if self.start > START:
            found.append(f"the kernel starts in {self.start:.1f} s, {START} are allowed")
        return found


def _memory():
    """MB of all processes that this one has started."""
    total = 0
    for process in psutil.Process().children(recursive=True):
        try:
            total += process.memory_info().rss if ROLLUP is None else _anonymous(process.pid)
        except (psutil.Error, OSError):  # it has ended
            continue
    return total / 1e6


def _anonymous(pid):
    with open(ROLLUP.format(pid)) as lines:
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(COUNTED))


def needs(path):
    """Execute a notebook.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Needs
    """
    client = notebooks.client_of(nbformat.read(path, as_version=4), path.parent)
    ended, peak, times = threading.Event(), [0.0], []

    def watch():
        while not ended.wait(PAUSE):
            peak[0] = max(peak[0], _memory())

    client.on_cell_start = lambda cell, cell_index: times.append(time.perf_counter())
    client.on_cell_executed = lambda **_: times.append(time.perf_counter())
    watching = threading.Thread(target=watch)
    begin = time.perf_counter()
    watching.start()
    try:
        client.execute()
    finally:
        ended.set()
        watching.join()
    code = next(k for k, cell in enumerate(client.nb.cells) if cell.cell_type == "code")
    return Needs(
        times[0] - begin, times[code + 1] - times[code], time.perf_counter() - begin, peak[0]
    )


def main(argv):
    parser = argparse.ArgumentParser("machine.py", description=__doc__.split("\n\n")[1])
    parser.add_argument("names", nargs="*", help="chapters, such as svm; all when absent")
    parser.add_argument("--cluster", action="store_true", help="with Dask, if it is installed")
    options = parser.parse_args(argv)
    paths = [BOOK / f"{Path(name).stem}.ipynb" for name in options.names]
    folder = tempfile.TemporaryDirectory()
    if not options.cluster:
        (Path(folder.name) / "distributed.py").write_text("raise ImportError('not on Binder')\n")
        path = [folder.name, *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(path)
    wrong = []
    print("chapter                start s  first cell s  all s    MB")
    for path in paths or sorted(BOOK.glob("*.ipynb")):
        found = needs(path)
        print(
            f"{path.stem:<22} {found.start:7.1f} {found.first:13.1f} {found.total:6.0f}"
            f" {found.peak:5.0f}",
            flush=True,
        )
        wrong += [f"{path.stem}: {problem}" for problem in found.problems()]
    folder.cleanup()
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main(sys.argv[1:])
