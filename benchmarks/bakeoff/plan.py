"""Which fits there are, in which order they are measured, and how far that is."""

import time
from collections import Counter
from typing import NamedTuple

from benchmarks.bakeoff import store
from benchmarks.bakeoff.methods import registry
from benchmarks.bakeoff.sets import SETS
from benchmarks.bakeoff.worker import Task, Worker
from s3vm_book import bakeoff as reader

SECONDS = {"default": 10.0, "search": 60.0}  # of CPU, for a row
ENDED = ("time", "memory", "hung")  # by a limit
_PATIENCE = 2  # rows of a method on a set that a limit may end before it is given up there


class Plan(NamedTuple):
    """A product of sets, methods, numbers of labels (None: those of each set) and draws."""

    sets: list
    methods: list
    labels: list
    draws: list
    mode: str = "default"

    def fits(self, one):
        """(draw, labels, method) of a set, in order."""
        chosen = [l for l in one.labels if self.labels is None or l in self.labels]
        return [(d, l, m) for d in self.draws for l in chosen for m in self.methods]


def sets(names=None):
    """Lines of the registry by name or part; all if None.

    Raises
    ------
    ValueError
        If there is no such set or part.
    """
    found = [s for s in SETS if names is None or s.name in names or s.part in names]
    known = {s.name for s in SETS} | {s.part for s in SETS}
    _refuse("set", set(names or ()) - known, known)
    return found


def methods(names=None, mode="default"):
    """Methods by name, or by a beginning followed by ``*``; in a search those that have a grid.

    Raises
    ------
    ValueError
        If there is no such method.
    """
    everything = registry()
    wanted = list(everything) if names is None else []
    for name in names or ():
        matching = [
            known
            for known in everything
            if known == name or (name.endswith("*") and known.startswith(name[:-1]))
        ]
        _refuse("method", set() if matching else {name}, everything)
        wanted += [known for known in matching if known not in wanted]
    return [everything[name] for name in wanted if mode != "search" or everything[name].grid]


def _refuse(what, unknown, known):
    if unknown:
        raise ValueError(
            f"unknown {what} {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}"
        )


def stored(folder, one):
    """What is in the file of a set; nothing if there is none."""
    file = store.Path(folder) / f"{one.name}.txt"
    return reader.parse(file.read_text(encoding="utf-8") if file.is_file() else "")


def missing(work, folder, one, draw, redo=""):
    """(labels, method) of a draw that is still to be measured, in order."""
    known = {
        (r["method"], r["labels"]): r["sources"]
        for r in stored(folder, one).rows
        if r["draw"] == draw and r["mode"] == work.mode
    }
    for _, labels, method in work._replace(draws=[draw]).fits(one):
        old = known.get((method.name, labels))
        stale = redo == "stale" and old != store.source_hash(one, method)
        if old is None or redo == "again" or stale:
            yield labels, method


def ended(folder, one, mode, limits):
    """How many rows of each method on a set these limits, or higher ones, have ended.

    Returns
    -------
    Counter
        By name and source: other code gets another chance.
    """
    return Counter(
        (r["method"], r["sources"])
        for r in stored(folder, one).rows
        if r["status"] in ENDED
        and r["mode"] == mode
        and all(l <= r["facts"]["limits"][k] for k, l in enumerate(limits))
    )


def run(work, folder, *, seconds=None, limits=(10.0, 2000.0), redo="", worker=Worker):
    """Measure what is missing: draws outermost, then sets, labels, methods.

    A set and a draw are the work of one process at a time. In a second round each process waits
    for what others were at in the first, and measures what is still missing.

    Returns
    -------
    int
        Number of fits.

    Raises
    ------
    RuntimeError
        Where `store.require_commit` raises it, before each set and draw.
    """
    start, n, facts = time.monotonic(), 0, dict(store.provenance(), limits=list(limits))
    seen = {}  # what limits have ended here, where nothing that is stored counts
    with worker() as child:
        for wait in (False, True):
            for draw in work.draws:
                for one in work.sets:
                    name = f"{one.name}-{draw}-{work.mode}"
                    with store.claimed(folder, name, wait) as mine:
                        if not mine:
                            continue
                        store.require_commit(folder, facts.get("commit"))
                        again = redo if not wait else redo.replace("again", "")
                        failed = seen.setdefault(one.name, Counter())
                        if redo != "again":
                            failed = ended(folder, one, work.mode, limits)
                        for labels, method in list(missing(work, folder, one, draw, again)):
                            if seconds is not None and time.monotonic() - start > seconds:
                                print("time is up; run again to go on", flush=True)
                                return n
                            task = Task(one, labels, draw, method, work.mode, *limits)
                            key = method.name, store.source_hash(one, method)
                            hopeless = failed[key] >= _PATIENCE
                            row = {"status": "given_up"} if hopeless else child.measure(task)
                            failed[key] += row["status"] in ENDED
                            row.update(labels=labels, draw=draw, mode=work.mode)
                            store.append(folder, one, method, row, facts)
                            n += 1
                            if row["status"] not in (*reader.ANSWERED, "skipped", "given_up"):
                                why = row.get("error", "")
                                print(f"{one.name} {labels} {draw} {method.name}:", end=" ")
                                print(row["status"], why, flush=True)
    return n


def listing(work, folder):
    """Sets and methods, with the number of rows that are stored, missing and stale."""
    lines = []
    for one in work.sets:
        fits = work.fits(one)
        known = {
            (r["draw"], r["labels"], r["method"]): r["sources"]
            for r in stored(folder, one).rows
            if r["mode"] == work.mode
        }
        have = [fit for fit in fits if (fit[0], fit[1], fit[2].name) in known]
        stale = sum(known[d, l, m.name] != store.source_hash(one, m) for d, l, m in have)
        count = f"{len(have):5d} of {len(fits):5d} rows, {stale} stale"
        lines.append(f"{one.name:14s} {one.part:9s} {one.kind:10s} {count}")
    return "\n".join([*lines, "methods: " + ", ".join(m.name for m in work.methods)])


def shown(work, folder):
    """Mean errors of the unlabeled rows, %, over what is stored, and failures, per method."""
    rows = [
        dict(r, error=100 * r["wrong"] / (f.about["train"] - r["labels"]) if r["wrong"] is not None
             else None)
        for f in (stored(folder, one) for one in work.sets)
        for r in f.rows
        if r["mode"] == work.mode
    ]  # fmt: skip
    lines = [f"{'method':38s} {'rows':>5s} {'failed':>6s} {'error':>6s} {'CPU s':>8s} {'most':>7s}"]
    for method in work.methods:
        mine = [r for r in rows if r["method"] == method.name]
        good = [r for r in mine if r["error"] is not None]
        if good:
            mean = sum(r["error"] for r in good) / len(good)
            cpu = [r["cpu"] for r in good]
            text = f"{mean:6.2f} {sum(cpu) / len(cpu):8.3f} {max(cpu):7.2f}"
            lines.append(f"{method.name:38s} {len(mine):5d} {len(mine) - len(good):6d} {text}")
        elif mine:
            lines.append(f"{method.name:38s} {len(mine):5d} {len(mine):6d}")
    return "\n".join(lines)
