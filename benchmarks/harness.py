"""Timing, provenance and storage of results; nothing here knows about a particular table."""

import ast
import gc
import hashlib
import importlib
import json
import os
import pkgutil
import platform
import subprocess
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "s3vm_book" / "results"  # the book plots them, installed too
REPEATS = 5
_LOCK_SECONDS = 30


def race(functions, repeats=REPEATS):
    """Time several functions in turns: warm-up of each, then `repeats` rounds of all.

    Parameters
    ----------
    functions : dict of str to callable
        Called without arguments.
    repeats : int, default=5
        Rounds.

    Returns
    -------
    timings : dict of str to dict
        ``cpu_seconds`` and ``wall_seconds`` (medians), ``cpu_all`` (every round) and
        ``warmup_wall_seconds`` (the first call, compilation included).
    values : dict of str to object
        What each function returned in the last round.
    """
    warmup, cpu, wall, values = {}, {}, {}, {}
    for name, function in functions.items():
        start = time.perf_counter()
        function()
        warmup[name] = time.perf_counter() - start
        cpu[name], wall[name] = [], []
    for _ in range(repeats):
        for name, function in functions.items():
            gc.collect()
            gc.disable()
            start_cpu, start = time.process_time(), time.perf_counter()
            values[name] = function()
            cpu[name].append(time.process_time() - start_cpu)
            wall[name].append(time.perf_counter() - start)
            gc.enable()
    timings = {
        name: {
            "cpu_seconds": digits(np.median(cpu[name])),
            "wall_seconds": digits(np.median(wall[name])),
            "cpu_all": [digits(v) for v in cpu[name]],
            "warmup_wall_seconds": digits(warmup[name]),
        }
        for name in functions
    }
    return timings, values


def digits(value, n=4):
    """A float with n significant digits: what a result file keeps of a measured time."""
    return float(f"{float(value):.{n}g}")


def mean_and_error(values):
    """Mean, standard error, standard deviation (ddof=1) and median of a sample."""
    values = np.asarray(values, dtype=float)
    deviation = values.std(ddof=1) if len(values) > 1 else float("nan")
    return {
        "mean": digits(values.mean()),
        "standard_error": digits(deviation / np.sqrt(len(values))),
        "standard_deviation": digits(deviation),
        "median": digits(np.median(values)),
    }


def provenance(name):
    """Where and with what a row of a table was measured.

    Returns
    -------
    dict
        Among others ``commit`` (with "+" where the tree had changes), ``sources`` (`source_hash`)
        and ``load`` (processes that wanted a processor, mean over the last minute, this one
        included).
    """
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "sources": source_hash(name),
        "load": digits(os.getloadavg()[0], 3) if hasattr(os, "getloadavg") else None,
        "cores": os.cpu_count(),
        "processor": _processor(),
        "threads": 1,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in packages},
    }


def changes():
    """What differs from the commit, results apart: a row of these sources could not be traced.

    Returns
    -------
    list of str
        Lines of ``git status``.

    Raises
    ------
    RuntimeError
        If the folder is no repository, or git is not installed.
    """
    folders = ("s3vm_lib", "benchmarks")
    return _git("status", "--porcelain", "--", *folders).splitlines()


def _commit():
    try:
        return _git("rev-parse", "--short=12", "HEAD") + ("+" if changes() else "")
    except RuntimeError:  # rows of an archive can be tried, not stored with the project's
        return "unknown"


def _git(*arguments):
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        why = getattr(error, "stderr", None) or error
        raise RuntimeError(f"results are stored with the commit they belong to: {why}") from error
    return done.stdout.strip()


def _processor():
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


@cache
def source_hash(name):
    """Hash of what a table computes: equal hashes, equal numbers, on one processor.

    It covers the library and the modules of the benchmarks that the table imports, without
    docstrings and comments; the twins are left out.
    """
    import s3vm_lib

    package = Path(s3vm_lib.__file__).parent
    twins = package / "reference"
    files = [file for file in sorted(package.rglob("*.py")) if twins not in file.parents]
    digest = hashlib.sha256()
    for file in [*files, *_imported(Path(__file__).parent / "tables" / f"{name}.py")]:
        digest.update(file.relative_to(package.parent).as_posix().encode())
        digest.update(_code(file).encode())
    return digest.hexdigest()[:12]


def _imported(file):
    """A module of the benchmarks and those it imports, without this one."""
    found, todo = set(), [file]
    while todo:
        file = todo.pop()
        if file in found or file.name == Path(__file__).name or not file.is_file():
            continue
        found.add(file)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "benchmarks":
                folder = ROOT.joinpath(*node.module.split("."))
                todo += [folder.with_suffix(".py")]
                todo += [folder / f"{alias.name}.py" for alias in node.names]
    return sorted(found)


def _code(file):
    """Source text without docstrings and comments."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            if isinstance(getattr(body[0].value, "value", None), str):
                node.body = body[1:]
    return ast.unparse(tree)


def tables():
    """Names of all tables.

    Returns
    -------
    list of str
    """
    import benchmarks.tables

    return sorted(module.name for module in pkgutil.iter_modules(benchmarks.tables.__path__))


def table(name):
    """The module of a table, with its docstring (protocol), `ROWS` and `measure`.

    Raises
    ------
    ValueError
        If there is no such table.
    """
    if name not in tables():
        raise ValueError(f"unknown table {name!r}; there are {', '.join(tables())}")
    return importlib.import_module(f"benchmarks.tables.{name}")


def read(name, folder=RESULTS):
    """Stored rows of a table.

    Parameters
    ----------
    name : str
        Name of the table.
    folder : path, default=RESULTS
        Folder of the result files.

    Returns
    -------
    list of dict
        ``{"row": ..., "result": ..., "provenance": ...}`` in the order of the table's `ROWS`.
    """
    file = Path(folder) / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8"))["rows"] if file.is_file() else []


def write(name, row, result, folder=RESULTS, minutes=None):
    """Add one measured row to the result file, replacing an older one with the same key.

    Raises
    ------
    RuntimeError
        If it is to go into the project's own results and the sources have uncommitted changes.
    """
    module = table(name)
    if Path(folder).resolve() == RESULTS.resolve() and changes():
        raise RuntimeError(
            "results are stored with the commit they belong to; uncommitted: "
            + "; ".join(changes())
        )
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    entry = {"row": row, "result": result, "provenance": provenance(name)}
    if minutes is not None:
        entry["provenance"]["minutes"] = digits(minutes, 3)
    with _locked(file.with_suffix(".lock")):
        kept = [old for old in read(name, folder) if old["row"] in module.ROWS]
        entries = [old for old in kept if old["row"] != row] + [entry]
        entries.sort(key=lambda e: module.ROWS.index(e["row"]))
        protocol = " ".join(module.__doc__.split())
        lines = ",\n".join(f"  {json.dumps(e, ensure_ascii=False)}" for e in entries)
        text = (
            f'{{"table": "{name}",\n "protocol": {json.dumps(protocol, ensure_ascii=False)},\n'
            f' "rows": [\n{lines}\n]}}\n'
        )
        temporary = file.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, file)


@contextmanager
def _locked(path):
    """Several processes may measure rows of one table; a file that only one can create decides."""
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} is held by another run; delete it if none is") from None
            time.sleep(0.05)
    try:
        yield
    finally:
        os.unlink(path)
