"""The writing side of the store: one text file per set, appended to, one line per fit.

The form is described and read in `s3vm_book.bakeoff`. A line is written at once, flushed and
synchronized under a lock that dies with its process; what a killed process left of a line is cut
off before the next one. The library's own results take lines from a committed tree only.
"""

import fcntl
import functools
import hashlib
import inspect
import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

from benchmarks import harness
from benchmarks.bakeoff import draws, worker
from s3vm_book import bakeoff as reader
from s3vm_lib.utils import jit

RESULTS = harness.RESULTS / "bakeoff"


@functools.cache
def _code(file):
    return hashlib.sha256(harness._code(file).encode()).hexdigest()


@functools.cache
def _code_of(cls):
    """Hash of a class's module, if it is ours, and of what that imports in the library."""
    if not cls.__module__.startswith("s3vm_lib."):
        return ""
    return "".join(_code(file) for file in jit._dependencies(Path(inspect.getfile(cls))))


def source_hash(one, method):
    """Hash of what decides a number: the two lines of the registries, and the code behind them."""
    ours = [Path(module.__file__) for module in (draws, worker)]
    sets = Path(draws.datasets.__file__).parent
    parts = [repr(one), repr(method), _code_of(method.type)]
    parts += [_code(file) for file in [*ours, *sorted(sets.glob("*.py"))]]
    parts.append((sets / "sources.toml").read_text(encoding="utf-8"))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:10]


def provenance():
    """The facts of `harness.provenance` that a session of rows shares."""
    facts = harness.provenance("bakeoff")
    return {name: fact for name, fact in facts.items() if name not in ("load", "sources")}


def require_commit(folder, commit):
    """Refuse to write into the project's own results what could not be traced.

    Raises
    ------
    RuntimeError
        If the sources have uncommitted changes, or are not those that the session began with: a
        child that is started again would run others.
    """
    if Path(folder).resolve() != RESULTS.resolve():
        return
    now = harness.provenance("bakeoff")["commit"]
    if harness.changes() or now != commit:
        raise RuntimeError(
            f"results are stored with the commit they belong to; this is {now}, the session began "
            f"with {commit}; uncommitted: {'; '.join(harness.changes()) or 'nothing'}"
        )


@contextmanager
def _opened(file):
    """The file, locked and repaired; another process may replace it while this one waits."""
    file.parent.mkdir(parents=True, exist_ok=True)
    while True:
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if not (file.exists() and os.path.samestat(os.fstat(handle), os.stat(file))):
                continue
            text = file.read_bytes()
            whole = text.rfind(b"\n") + 1
            if whole < len(text):
                os.ftruncate(handle, whole)
            os.lseek(handle, 0, os.SEEK_END)
            yield handle, text[:whole].decode()
            return
        finally:
            os.close(handle)  # which also unlocks


def append(folder, one, method, row, facts):
    """Add the line of one fit, and what it refers to where that is not in the file yet.

    Parameters
    ----------
    folder : path
    one : Set
    method : Method
    row : dict
        ``labels``, ``draw``, ``mode`` and what `worker.measure` returns.
    facts : dict
        `provenance` of the session.
    """
    with _opened(Path(folder) / f"{one.name}.txt") as (handle, text):
        lines = lines_of(text, one, method, row, facts).encode()
        if os.write(handle, lines) != len(lines):
            raise OSError(f"{folder}: a line could not be written whole; is the disk full?")
        os.fsync(handle)


def lines_of(text, one, method, row, facts):
    """The lines that a row adds to a file with this text."""
    new = "" if text else _json(_about(one)) + "\n"
    block, more = _number(text, "@", facts)
    new += more
    described = {
        "method": method.name,
        "mode": row["mode"],
        "kernel": method.kernel,
        "sources": source_hash(one, method),
        "block": block,
    }
    number, more = _number(text, "=", described)
    return new + more + reader.line(number, row) + "\n"


def _number(text, mark, content):
    """Number of a definition, and its line if it is new."""
    known = [line for line in text.splitlines() if line.startswith(mark)]
    line = mark + _json(content)
    return (known.index(line), "") if line in known else (len(known), line + "\n")


def _about(one):
    """The first line of a file: what the reading side has to know of a set."""
    whole_pool = draws.pool(one, 0)
    n, d = whole_pool.X.shape
    counts = [int((whole_pool.y == k).sum()) for k in range(whole_pool.y.max() + 1)]
    return {
        "set": one.name,
        "part": one.part,
        "kind": one.kind,
        "sparse": not isinstance(whole_pool.X, draws.np.ndarray),
        "train": n,
        "test": len(whole_pool.y_test),
        "features": d,
        "counts": counts,
    }


def _json(content):
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def compact(folder, one, methods):
    """Rewrite a file without replaced rows and unknown methods, in a fixed order."""
    file = Path(folder) / f"{one.name}.txt"
    with _opened(file) as (_, text):
        kept = [row for row in reader.parse(text).rows if row["method"] in methods]
        kept.sort(key=lambda r: (r["mode"], r["method"], r["labels"], r["draw"]))
        lines = text.splitlines()[:1]
        for row in kept:
            for mark, content in (("@", row["facts"]), ("=", None)):
                if mark == "=":
                    block = _number("\n".join(lines), "@", row["facts"])[0]
                    content = {k: row[k] for k in ("method", "mode", "kernel", "sources")}
                    content["block"] = block
                number, more = _number("\n".join(lines), mark, content)
                if more:
                    lines.append(more.rstrip("\n"))
            lines.append(reader.line(number, row))
        temporary = file.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.replace(temporary, file)


@contextmanager
def claimed(folder, name, wait):
    """Whether this process has the right to a piece of work; the right dies with the process."""
    place = hashlib.sha256(str(Path(folder).resolve()).encode()).hexdigest()[:16]
    locks = Path(tempfile.gettempdir()) / f"s3vm_lib-bakeoff-{os.getuid()}-{place}"
    locks.mkdir(exist_ok=True)
    handle = os.open(locks / name, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(handle)
