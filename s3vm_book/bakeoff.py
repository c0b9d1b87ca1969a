"""The bake-off: its store, and what the book computes from it.

A file of the store describes one set. Its first line is a JSON object about the set; a line that
begins with ``@`` is a block of provenance, one that begins with ``=`` a method in a mode (both JSON
objects, numbered from 0 in their order; the field ``block`` of a method is the number of its
provenance), and any other line is a fit, fields between blanks::

    method labels draw wrong wrong_test cpu megabytes status n_iter [JSON]

``wrong`` of the unlabeled and ``wrong_test`` of the test rows are counts, ``-`` is for what is not
there. A later line about the same cell, method and mode replaces an earlier one; a last line
without its end is the rest of an interrupted write and is not read.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from s3vm_book.tables import FOLDER

STORE = FOLDER / "results" / "bakeoff"
FRONT = FOLDER / "results" / "front"  # draws from 10 on, opened once, of what a newcomer compares
ANSWERED = ("ok", "warned")
_PLAIN = ("labels", "draw", "wrong", "wrong_test", "cpu", "megabytes", "status", "n_iter")
_EXTRA = ("best", "error", "ratio", "chosen", "C")
# The arrays of `Results`.
ARRAYS = ("error", "test_error", "linear", "cpu", "megabytes", "status", "larger_C")


class File(NamedTuple):
    """What one file holds: a dict about the set, and one dict per fit."""

    about: dict[str, Any]
    rows: list[dict[str, Any]]


def line(number, row):
    """The line of a fit.

    Parameters
    ----------
    number : int
        Number of its method.
    row : dict

    Returns
    -------
    str
        Without the end of the line.
    """
    fields = [str(number)]
    for name in _PLAIN:
        value = row.get(name)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            fields.append("-")
        else:
            fields.append(f"{value:.3g}" if isinstance(value, float) else str(value))
    more = {name: row[name] for name in _EXTRA if name in row}
    if more:
        fields.append(json.dumps(more, ensure_ascii=False, separators=(",", ":")))
    return " ".join(fields)


def parse(text):
    """Read a file of the store.

    Parameters
    ----------
    text : str

    Returns
    -------
    File
        Rows in the order in which their cells were first measured, each with the fields of a fit,
        those of its method, and its provenance as ``facts``.
    """
    about, facts, methods, rows = None, [], [], {}
    for entry in text[: text.rfind("\n") + 1].splitlines():
        if about is None:
            about = json.loads(entry)
        elif entry.startswith("@"):
            facts.append(json.loads(entry[1:]))
        elif entry.startswith("="):
            methods.append(json.loads(entry[1:]))
        else:
            number, *fields = entry.split(" ", len(_PLAIN) + 1)
            row = dict(zip(_PLAIN, fields, strict=False))
            row = {key: _value(key, value) for key, value in row.items()}
            if len(fields) > len(_PLAIN):
                row.update(json.loads(fields[-1]))
            method = methods[int(number)]
            row.update(method, facts=facts[method["block"]])
            rows[row["method"], row["mode"], row["labels"], row["draw"]] = row
    return File(about or {}, list(rows.values()))


def _value(name, field):
    if field == "-" or name == "status":
        return None if field == "-" else field
    return float(field) if name in ("cpu", "megabytes") else int(field)


class Results(NamedTuple):
    """A store as arrays of shape (sets, methods, numbers of labels, draws).

    Parameters
    ----------
    sets : list of dict
        The first lines of the files.
    methods : list of str
    labels, draws : list of int
    error, test_error : ndarray
        Wrong answers in percent, of the unlabeled and of the test rows; NaN without an answer.
    linear : ndarray of bool
        Whether the machine was linear: the kernel of the method, or the one that it chose.
    cpu, megabytes : ndarray
        Processor seconds and memory of the fits.
    status : ndarray of str
        "" where nothing has been measured.
    larger_C : ndarray of bool
        Whether the method chose C = 10 for itself.
    """

    sets: list
    methods: list
    labels: list
    draws: list
    error: np.ndarray
    test_error: np.ndarray
    linear: np.ndarray
    cpu: np.ndarray
    megabytes: np.ndarray
    status: np.ndarray
    larger_C: np.ndarray

    def gain(self, method, measure="error", baseline=None):
        """Points by which a method is better than the SVM with its kernel, cell by cell.

        A method without one of these kernels is compared with the SVM with the default kernel, and
        all with the default C. Gains are rounded to nine digits: a difference of exactly one point
        must not be above one by the rounding of two quotients.

        Parameters
        ----------
        method : str
        measure : {"error", "test_error"}, default="error"
        baseline : str, default=None
            Another method to compare with in all cells; ``"same C"`` is the SVM with the kernel and
            the C that the method chose.

        Returns
        -------
        ndarray of shape (sets, numbers of labels, draws)
            NaN where one of both was not measured.

        Raises
        ------
        ValueError
            If the method or a baseline has not been measured.
        """
        error, k = self.filled(measure), self.index(method)
        if baseline not in (None, "same C"):
            return np.round(error[:, self.index(baseline)] - error[:, k], 9)
        linear, larger = self.linear[:, k], self.larger_C[:, k] & (baseline == "same C")
        theirs = np.full(error[:, k].shape, np.nan)
        for name, cells in (
            ("SVM[linear]", linear & ~larger),
            ("SVM", ~linear & ~larger),
            ("SVM[linear, C=10]", linear & larger),
            ("SVM[C=10]", ~linear & larger),
        ):
            if np.any(cells & (self.status[:, k] != "")):
                theirs[cells] = error[:, self.index(name)][cells]
        return np.round(theirs - error[:, k], 9)

    def index(self, method):
        """Place of a method on the second axis."""
        if method not in self.methods:
            raise ValueError(f"method={method!r} is not measured; there are {self.methods}")
        return self.methods.index(method)

    def filled(self, measure="error"):
        """`error` or `test_error`, and for a fit without an answer the error of a constant guess.

        A fit that failed, or that a limit has ended, counts as the guess that all rows are of the
        larger class. What was not measured, or not run because the set is too large for the method,
        stays NaN.
        """
        guess = np.array([100 * (1 - max(one["counts"]) / sum(one["counts"])) for one in self.sets])
        error = getattr(self, measure)
        ended = np.isnan(error) & ~np.isin(self.status, ("", "skipped"))
        return np.where(ended, guess[:, None, None, None], error)


def load(folder=STORE, *, mode="default", part=None):
    """Read the store into arrays.

    Parameters
    ----------
    folder : path, default=STORE
    mode : {"default", "search"}, default="default"
    part : {"tuning", "reported"} or None, default=None
        None means both.

    Returns
    -------
    Results

    Raises
    ------
    ValueError
        If there is nothing of this kind.
    """
    files = [parse(file.read_text(encoding="utf-8")) for file in sorted(Path(folder).glob("*.txt"))]
    files = [one for one in files if part is None or one.about.get("part") == part]
    rows = [(k, row) for k, one in enumerate(files) for row in one.rows if row["mode"] == mode]
    if not rows:
        raise ValueError(f"mode={mode!r}, part={part!r}: nothing is stored in {folder}")
    methods, labels, draws = (
        sorted({row[name] for _, row in rows}) for name in ("method", "labels", "draw")
    )
    shape = len(files), len(methods), len(labels), len(draws)
    numbers = {name: np.full(shape, np.nan) for name in ("error", "test_error", "cpu", "megabytes")}
    status = np.full(shape, "", dtype="U8")
    linear, larger_C = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for k, row in rows:
        about = files[k].about
        method, l, draw = row["method"], row["labels"], row["draw"]
        at = (k, methods.index(method), labels.index(l), draws.index(draw))
        status[at] = row["status"]
        linear[at] = row.get("chosen", row["kernel"]) == "linear"
        larger_C[at] = row.get("C") == 10.0
        numbers["cpu"][at] = np.nan if row["cpu"] is None else row["cpu"]
        numbers["megabytes"][at] = np.nan if row["megabytes"] is None else row["megabytes"]
        if row["status"] in ANSWERED:
            numbers["error"][at] = 100 * row["wrong"] / (about["train"] - l)
            numbers["test_error"][at] = 100 * row["wrong_test"] / about["test"]
    return Results(
        [f.about for f in files],
        methods,
        labels,
        draws,
        **numbers,
        linear=linear,
        status=status,
        larger_C=larger_C,
    )


def digest(folder=STORE):
    """Hash of the answers in a store, whenever and wherever measured; twelve hexadecimal digits."""
    found = []
    for file in sorted(Path(folder).glob("*.txt")):
        one = parse(file.read_text(encoding="utf-8"))
        keys = ("method", "mode", "labels", "draw", "wrong", "wrong_test", "status")
        found.append([one.about, sorted([str(row[key]) for key in keys] for row in one.rows)])
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()[:12]


class Count(NamedTuple):
    """Cells in which a method was better, as good or worse than its SVM, by more than a margin.

    ``failed`` counts fits without an answer (they are also among the better, equal or worse ones,
    with the error of a constant guess); ``largest_loss`` is the largest mean loss of a set, in
    points, 0 if it never loses, and ``worst`` the name of that set. ``loss`` is the mean loss in
    the cells that count as worse.
    """

    better: int
    equal: int
    worse: int
    failed: int
    largest_loss: float
    worst: str
    loss: float

    @property
    def cells(self):
        """Number of cells."""
        return self.better + self.equal + self.worse


def count(results, method, *, margin=1.0, measure="error", baseline=None):
    """Win, tie, loss of a method against the SVM with the same kernel, over all measured cells.

    Parameters
    ----------
    results : Results
    method : str
    margin : float, default=1.0
        Points; a difference of exactly so much is a tie.
    measure : {"error", "test_error"}, default="error"
    baseline : str, default=None
        Another method to compare with.

    Returns
    -------
    Count
    """
    gain, k = results.gain(method, measure, baseline), results.index(method)
    known = ~np.isnan(gain)
    failed = known & ~np.isin(results.status[:, k], ANSWERED)
    losses = [(-float(np.mean(g[m])), one["set"])
              for g, m, one in zip(gain, known, results.sets, strict=True) if m.any()]  # fmt: skip
    largest, worst = max([(0.0, ""), *(one for one in losses if one[0] > 0)])
    return Count(
        int((gain > margin).sum()),
        int((np.abs(gain) <= margin).sum()),
        int((gain < -margin).sum()),
        int(failed.sum()),
        largest,
        worst,
        float(-gain[gain < -margin].mean()) if np.any(gain < -margin) else 0.0,
    )


class Mean(NamedTuple):
    """Mean error of a method on a set, and the mean gain over its SVM with its standard error.

    All in points, over ``n`` draws in which both were measured; the standard error is that of the
    paired differences (NaN with one draw).
    """

    error: float
    gain: float
    standard_error: float
    n: int


def mean(results, name, method, n_labeled, *, measure="error"):
    """Mean error on one set with so many labels, paired with the SVM with the same kernel.

    Parameters
    ----------
    results : Results
    name : str
        The set.
    method : str
    n_labeled : int
    measure : {"error", "test_error"}, default="error"

    Returns
    -------
    Mean or None
        None where nothing has been measured.
    """
    k = [one["set"] for one in results.sets].index(name)
    l = results.labels.index(n_labeled)
    mine = results.filled(measure)[k, results.index(method), l]
    gain = results.gain(method, measure)[k, l]
    known = ~np.isnan(gain)
    n = int(known.sum())
    if n == 0:
        return None
    gain = gain[known]
    spread = gain.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    return Mean(float(mine[known].mean()), float(gain.mean()), float(spread), n)


def paired(differences):
    """Mean of differences over a set's cells, and its standard error over draws.

    Numbers of labels of one draw share their rows, so that their mean is one observation.

    Parameters
    ----------
    differences : array-like of shape (numbers of labels, draws)
        NaN where something is missing.

    Returns
    -------
    mean, standard_error : float
        NaN without cells, and without a second draw.
    """
    differences = np.asarray(differences, dtype=float)
    known = ~np.isnan(differences).all(axis=0)
    if not known.any():
        return np.nan, np.nan
    per_draw = np.nanmean(differences[:, known], axis=0)
    n = per_draw.size
    spread = per_draw.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    return float(per_draw.mean()), float(spread)


def over_sets(cells):
    """Mean over sets of their means, and its standard error over the draws of these sets.

    Parameters
    ----------
    cells : array-like of shape (sets, numbers of labels, draws)
        NaN where something is missing; sets without any cell are left out.

    Returns
    -------
    mean, standard_error : float
        NaN without cells, and where a set has no second draw.
    """
    found = np.array([paired(one) for one in cells]).reshape(-1, 2)
    found = found[~np.isnan(found[:, 0])]
    if not len(found):
        return np.nan, np.nan
    return float(found[:, 0].mean()), float(np.sqrt(np.sum(found[:, 1] ** 2)) / len(found))


def common(results, methods, cells=None):
    """What some methods did where all of them were measured, and none was skipped.

    Parameters
    ----------
    results : Results
    methods : list of str
    cells : array-like of bool of shape (sets, numbers of labels, draws), default=None
        Cells to keep; None means all.

    Returns
    -------
    Results
        Of these methods, in this order; other cells are empty, sets without a cell are left out.
    """
    wanted = [results.index(name) for name in methods]
    shared = ~np.isnan(results.filled()[:, wanted]).any(axis=1)
    if cells is not None:
        shared &= cells
    kept = shared.any(axis=(1, 2))
    shared = shared[kept][:, None]

    def cut(values):
        nothing = np.nan if values.dtype.kind == "f" else values.dtype.type()
        return np.where(shared, values[kept][:, wanted], nothing)

    return results._replace(
        sets=[one for one, keep in zip(results.sets, kept, strict=True) if keep],
        methods=list(methods),
        **{name: cut(getattr(results, name)) for name in ARRAYS},
    )


class Searched(NamedTuple):
    """A method with its defaults, and after a search, in the cells where both are known.

    ``cells`` is of shape (sets, numbers of labels, draws) of the searches. ``default`` and
    ``searched`` are the results there, with those of the SVMs.
    """

    cells: np.ndarray
    default: Results
    searched: Results

    @property
    def draws(self):
        """Number of draws with a cell."""
        return int(self.cells.any(axis=(0, 1)).sum())


def with_search(default, searched, method, cells=None):
    """What the defaults and what a search did, of a method and of the SVMs.

    Parameters
    ----------
    default, searched : Results
        Of the same sets; the searches may be of fewer numbers of labels, draws and methods.
    method : str
    cells : ndarray of bool of shape (sets, numbers of labels, draws), default=None
        Cells of the searches to keep; None means all.

    Returns
    -------
    Searched
    """
    label_at = [default.labels.index(l) for l in searched.labels]
    draw_at = [default.draws.index(d) for d in searched.draws]
    default = default._replace(
        labels=searched.labels,
        draws=searched.draws,
        **{name: getattr(default, name)[:, :, label_at][..., draw_at] for name in ARRAYS},
    )
    names = list(dict.fromkeys([method, "SVM", "SVM[linear]"]))
    known = np.ones(searched.error[:, 0].shape, dtype=bool) if cells is None else cells
    for part in (default, searched):
        known = known & ~np.isnan(part.filled()[:, [part.index(m) for m in names]]).any(axis=1)
    return Searched(known, common(default, names, known), common(searched, names, known))


class Between(NamedTuple):
    """How much of the way between two methods a third one goes; errors are means over sets.

    ``harmed`` lists the sets on which the third is worse than the lower one by more than a point
    and two standard errors, with both.
    """

    lower: float
    middle: float
    upper: float
    share: float
    harmed: list


def between(results, lower, middle, upper, *, measure="error"):
    """Compare three methods where all of them were measured.

    Parameters
    ----------
    results : Results
    lower, middle, upper : str
        Methods, of which the third is thought to be the best.
    measure : {"error", "test_error"}, default="error"

    Returns
    -------
    Between
    """
    error = results.filled(measure)
    trio = np.stack([error[:, results.index(name)] for name in (lower, middle, upper)])
    trio[:, np.isnan(trio).any(axis=0)] = np.nan
    sets = [k for k in range(trio.shape[1]) if not np.isnan(trio[0, k]).all()]
    means = np.array([[paired(one[k])[0] for k in sets] for one in trio]).mean(axis=1)
    harmed = []
    for k in sets:
        worse, spread = paired(trio[1, k] - trio[0, k])
        if worse > 1 and worse > 2 * spread:
            harmed.append((results.sets[k]["set"], worse, spread))
    share = (means[0] - means[1]) / (means[0] - means[2])
    return Between(*map(float, means), float(share), harmed)


def table(results, name, *, methods=None, measure="error"):
    """Lines of the table of one set: a method, and mean errors by number of labels.

    Returns
    -------
    list of dict
        ``method`` and, per number of labels, "error (gain ± standard error)", "" where there is
        nothing; a gain over the SVM with the same kernel is positive.
    """
    lines = []
    for method in methods or results.methods:
        line = {"method": method}
        for l in results.labels:
            one = mean(results, name, method, l, measure=measure)
            line[str(l)] = (
                f"{one.error:.1f} ({one.gain:+.1f} ± {one.standard_error:.1f})" if one else ""
            )
        lines.append(line)
    return lines


def by_set(results, methods=None, *, measure="error"):
    """Mean errors per set, for rankings: methods with an answer, or a failure, in all cells.

    Parameters
    ----------
    results : Results
    methods : list of str, default=None
        None means all.
    measure : {"error", "test_error"}, default="error"

    Returns
    -------
    errors : ndarray of shape (n_sets, n_methods)
        Means over the cells (number of labels and draw) in which all of the methods were measured,
        to nine decimals, so that equal means are equal numbers; sets without such a cell are left
        out.
    names : list of str
        The methods that were run at all on every set that has been begun; the others, too slow for
        these sets, are left out.
    """
    error = results.filled(measure)
    wanted = [results.index(m) for m in methods or results.methods]
    begun = (results.status[:, wanted] != "").all(axis=1)
    begun = begun.any(axis=(1, 2))  # sets with a cell that all were asked to do
    run = [k for k in wanted if not np.isnan(error[begun, k]).all(axis=(1, 2)).any()]
    shared = ~np.isnan(error[:, run]).any(axis=1)
    kept = [k for k in range(len(error)) if shared[k].any()]
    means = [error[k][run][:, shared[k]].mean(axis=1) for k in kept]
    means = np.round(np.array(means).reshape(len(kept), len(run)), 9)
    return means, [results.methods[k] for k in run]
