"""Read the files in which labelled and unlabelled rows come, and write those of SVMlight.

Each function returns a `Table`: rows and codes of classes, −1 where a row has no label. Every
program marks such rows in its own way. A value that may be a marker or a class raises an error that
names what to pass.
"""

import bz2
import gzip
import io
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.io import arff, loadmat
from sklearn.datasets import dump_svmlight_file, load_svmlight_files

from s3vm_lib.utils.labels import encode_labels, label_array, missing_entries

_OPEN = {".gz": gzip.open, ".bz2": bz2.open}
_WORD = re.compile(rb"\s(qid|sid|cost):(\S+)")  # of SVMlight, beside the features of a row
_NO_FEATURES = {"specid", "label", "scannr", "filename", "expmass", "calcmass", "peptide"}
_NO_FEATURES |= {"proteins"}


@dataclass
class Table:
    """Rows and codes of classes, ``X, y = table``, and what else the file holds.

    Attributes
    ----------
    X : ndarray, CSR matrix or data frame of shape (n, d)
    y : ndarray of int, shape (n,)
        Index of the class in ``classes``, −1 where the row has no label.
    classes : ndarray of shape (n_classes,)
        The labels as the file has them, sorted.
    names : list of str or None
        Names of the columns.
    index_base : int or None
        Number of the first column in a file of ``index:value`` pairs.
    extra : dict
        What belongs to the rows beside X and y, by name.

    Examples
    --------
    >>> import io
    >>> from s3vm_lib.exchange.readers import read_svmlight
    >>> table = read_svmlight(io.BytesIO(b"1 1:2\\n-1 2:1\\n0 1:1\\n"))
    >>> X, y = table
    >>> y.tolist(), table.classes.tolist()
    ([1, 0, -1], [-1, 1])
    >>> print(table)
    3 rows of 2 columns (first index 1); class -1: 1, class 1: 1, without a label: 1
    """

    X: Any
    y: np.ndarray
    classes: np.ndarray
    names: list[str] | None = None
    index_base: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def __iter__(self):
        return iter((self.X, self.y))

    def __str__(self):
        base = "" if self.index_base is None else f" (first index {self.index_base})"
        counts = np.bincount(self.y + 1, minlength=len(self.classes) + 1)
        parts = [f"class {c}: {m}" for c, m in zip(self.classes, counts[1:], strict=True)]
        rows = "{} rows of {} columns".format(*self.X.shape)
        return f"{rows}{base}; {', '.join(parts)}, without a label: {counts[0]}"


# --- Files of index:value pairs -------------------------------------------------------------------


def read_svmlight(*files, unlabeled="auto", index_base="auto", n_features=None):
    """Read files of SVMlight or LIBSVM.

    Parameters
    ----------
    *files : str, Path or binary file
        Read as one table, in which a column has the same index for all files. Those that end in
        .gz or .bz2 are unpacked.
    unlabeled : int, None or "auto", default="auto"
        Target of rows without a label; None where each target is a class. "auto" is SVMlight's 0
        where the targets are −1, 0 and 1, and None where no target may be a marker.
    index_base : {"auto", 0, 1}, default="auto"
        Number of the first column; "auto" is 0 if any file has an index 0, else 1.
    n_features : int, default=None
        Number of columns, by default that of the largest index.

    Returns
    -------
    Table
        `extra` has the position of each row's ``file``, and ``qid``, ``sid`` and ``cost`` where
        there are any, NaN for other rows.

    Raises
    ------
    ValueError
        If a file is malformed, or a target may be a class or a marker.
    """
    X, targets, base, extra = _pairs(files, index_base, n_features)
    return Table(X, *_coded(targets, unlabeled), index_base=base, extra=extra)


def read_universvm(file, unlabeled_file=None, *, index_base="auto", n_features=None):
    """Read files of UniverSVM, where −3 marks a row without a label.

    Parameters
    ----------
    file : str, Path or binary file
    unlabeled_file : str, Path or binary file, default=None
        Rows without labels, whose targets are ignored.
    index_base, n_features
        As in `read_svmlight`.

    Returns
    -------
    Table
    """
    files = [file] if unlabeled_file is None else [file, unlabeled_file]
    X, targets, base, extra = _pairs(files, index_base, n_features)
    targets[extra["file"] == 1] = -3
    return Table(X, *_coded(targets, -3 if -3 in targets else None), index_base=base, extra=extra)


def read_svmlin(rows_file, labels_file=None, *, n_features=None):
    """Read files of SVMlin: rows without targets, and a label a line, 0 where there is none.

    Parameters
    ----------
    rows_file : str, Path or binary file
        The first column has the index 1.
    labels_file : str, Path or binary file, default=None
        Without it no row has a label.
    n_features : int, default=None
        Number of columns, by default that of the largest index.

    Returns
    -------
    Table
    """
    rows = b"\n".join(b"0 " + line for line in _content(rows_file).splitlines())
    X, targets, base, _ = _pairs([io.BytesIO(rows)], 1, n_features)
    if labels_file is not None:
        labels = _numbers("labels_file", _content(labels_file).split())
        if labels.size != targets.size:
            raise ValueError(
                f"labels_file must have a label for each of the {targets.size} rows, got "
                f"{labels.size}: with -A 1 SVMlin writes those of labeled rows only"
            )
        targets = labels
    return Table(X, *_coded(targets, 0 if 0 in targets else None), index_base=base)


def write_svmlight(file, X, y, classes=None, *, unlabeled=0):
    """Write a file that SVMlight, LIBSVM and scikit-learn read; the first index is 1.

    Parameters
    ----------
    file : str, Path or binary file
    X : array-like or sparse matrix of shape (n, d)
        Written with 16 significant digits.
    y : array-like of int, shape (n,)
        Codes of classes, −1 where the row has no label.
    classes : array-like of shape (n_classes,), default=None
        Target of each code, by default −1 and 1 for two classes, and 1, 2, … for more.
    unlabeled : int or None, default=0
        Target of rows without a label. None allows no such rows, as LIBSVM does.

    Raises
    ------
    ValueError
        If ``unlabeled`` is a class, or None where a row has no label; if X is not finite.
    """
    y = np.asarray(y)
    n_classes = max(2, int(y.max(initial=-1)) + 1)
    if classes is None:
        classes = [-1, 1] if n_classes == 2 else np.arange(1, n_classes + 1)
    classes = np.asarray(classes)
    if classes.size < n_classes:
        raise ValueError(f"classes must have {n_classes} entries, got {classes.size}")
    if unlabeled is None and np.any(y < 0):
        raise ValueError(f"unlabeled must be a number for {np.sum(y < 0)} rows without a label")
    if unlabeled in classes.tolist():
        raise ValueError(f"unlabeled must be no class, got {unlabeled} of {classes.tolist()}")
    if not np.isfinite(X.data if sp.issparse(X) else np.asarray(X, dtype=float)).all():
        raise ValueError("X must be finite: files of SVMlight have no gaps")
    targets = np.where(y < 0, 0 if unlabeled is None else unlabeled, classes[y])
    dump_svmlight_file(X, targets, str(file) if isinstance(file, Path) else file, zero_based=False)


def _pairs(files, index_base, n_features):
    """Return the rows, the targets, the number of the first column and extras of such files."""
    if not files:
        raise ValueError("files must name at least one file")
    if index_base not in ("auto", 0, 1):
        raise ValueError(f"index_base must be 'auto', 0 or 1, got {index_base!r}")
    contents, words = [_content(file) for file in files], []
    if any(map(_WORD.search, contents)):
        for k, content in enumerate(contents):
            lines = [line.partition(b"#")[0] for line in content.splitlines()]
            words += [dict(_WORD.findall(line)) for line in lines if line.strip()]
            contents[k] = b"\n".join(_WORD.sub(b"", line) for line in lines)
    if index_base == "auto":
        index_base = int(not any(re.search(rb"\s0+:", content) for content in contents))
    try:
        found = load_svmlight_files(
            [io.BytesIO(content) for content in contents],
            n_features=n_features,
            zero_based=index_base == 0,
        )
    except (ValueError, IndexError, OverflowError) as error:
        raise ValueError(f"files must have lines 'target index:value …': {error}") from error
    X, targets = sp.vstack(found[::2], format="csr"), np.concatenate(found[1::2])
    extra = {"file": np.repeat(np.arange(len(files)), [part.size for part in found[1::2]])}
    for word in {word for row in words for word in row}:
        name = word.decode()
        extra[name] = _numbers(f"{name}:", [row.get(word, "nan") for row in words])
    return X, targets, index_base, extra


def _content(file):
    """Return the bytes of a file, unpacked."""
    if hasattr(file, "read"):
        content = file.read()
        return content.encode() if isinstance(content, str) else content
    with _OPEN.get(Path(file).suffix, open)(file, "rb") as stream:
        return stream.read()


def _coded(targets, unlabeled):
    """Return codes and classes of labels that are numbers; ``unlabeled`` as in `read_svmlight`."""
    known = np.unique(targets)
    if not np.array_equal(known, np.round(known)):
        raise ValueError(f"labels must be whole numbers, got {known[known != np.round(known)][0]}")
    targets, known = targets.astype(int), known.astype(int).tolist()
    if unlabeled == "auto":
        unlabeled = 0 if known == [-1, 0, 1] else None
        marks = [k for k in known if k == 0 or k < -1] if unlabeled is None else []
        if marks and len(known) > 1:
            raise ValueError(
                f"labels are {known[:10]}: pass unlabeled={marks[0]} if {marks[0]} marks rows "
                "without a label, or unlabeled=None if every label is a class"
            )
    if unlabeled is None:
        classes, codes = np.unique(targets, return_inverse=True)
        return codes, classes
    return encode_labels(targets, unlabeled)


# --- Files with a header --------------------------------------------------------------------------


def read_arff(file, label=None):
    """Read a file of Weka; ``?`` marks a row without a label, and a gap.

    Parameters
    ----------
    file : str, Path or binary file
        Read by SciPy, which knows no strings and no sparse rows.
    label : str, default=None
        Attribute with the labels, by default the last one.

    Returns
    -------
    Table
        A nominal attribute becomes one column of zeros and ones for each value, named
        ``name=value``; gaps are NaN.
    """
    return _arff(_content(file).decode("utf-8-sig"), label, {"?"})


def read_keel(file, label=None):
    """Read a file of KEEL, where ``unlabeled`` marks a row without a label.

    Parameters
    ----------
    file : str, Path or binary file
    label : str, default=None
        Attribute with the labels, by default that of ``@outputs``, or the last one.

    Returns
    -------
    Table
        As that of `read_arff`; ``<null>`` is a gap.
    """
    parts = re.split(r"(?im)^(\s*@data\b.*)$", _content(file).decode("utf-8-sig"), maxsplit=1)
    if len(parts) != 3:
        raise ValueError("file must have a line @data after its header")
    head, data, body = parts
    outputs = re.search(r"(?im)^\s*@outputs?\s+(\S+)", head)
    label = label or (outputs and outputs[1])
    head = re.sub(r"(?im)^\s*@(in|out)puts?\b.*$", "", head)
    # ARFF has no ranges, and a blank between a name and its type.
    head = re.sub(r"(?im)^(\s*@attribute\s.*?\b(?:real|integer))\s*\[.*\]", r"\1", head)
    head = re.sub(r"(?im)^(\s*@attribute\s+[^\s{]+)\{", r"\1 {", head)
    head = re.sub(r"\{(?![^}]*\bunlabeled\b)([^}]*)\}", r"{\1, unlabeled}", head)
    return _arff(head + data + body.replace("<null>", "?"), label, {"?", "unlabeled"})


def _arff(text, label, marks):
    """Return the table of a text in ARFF, whose labels are missing where they are in ``marks``."""
    try:
        rows, meta = arff.loadarff(io.StringIO(text))
    except (arff.ArffError, NotImplementedError, ValueError, StopIteration) as error:
        raise ValueError(
            f"file must be in ARFF, with numbers and nominal values: {error}"
        ) from error
    names = meta.names()
    label = names[-1] if label is None else label
    if label not in names:
        raise ValueError(f"label must be one of {names}, got {label!r}")
    labels = rows[label]
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8").astype(object)
        labels[np.isin(labels, list(marks))] = None
    columns, titles = [], []
    for name in names:
        if name == label:
            continue
        kind, values = meta[name]
        if kind == "date":
            raise ValueError(f"attribute {name!r} must be a number or nominal, got dates")
        if kind == "nominal":
            values = [value for value in values if value != "unlabeled"]
            hits = rows[name] == np.array([value.encode() for value in values], "S")[:, None]
            columns += list(np.where(hits.any(axis=0), hits, np.nan))  # a gap is no value
            titles += [f"{name}={value}" for value in values]
        else:
            columns.append(rows[name])
            titles.append(name)
    return Table(np.column_stack(columns), *encode_labels(labels), names=titles)


def read_pin(file):
    """Read a Percolator input file: spectra matched to targets, 1, and to decoys, −1.

    Parameters
    ----------
    file : str, Path or binary file
        Columns between tabs; the last one, the proteins, may hold tabs.

    Returns
    -------
    Table
        Decoys are class 0, targets class 1: a decoy is known to be wrong, a target may be right.
        Identifiers and masses are no columns of X but in `extra`, by the names in the header.
    """
    lines = [line for line in _content(file).decode("utf-8-sig").splitlines() if line.strip()]
    names = lines[0].split("\t") if lines else []
    low = [name.lower() for name in names]
    if "label" not in low:
        raise ValueError(f"file must begin with names between tabs, one of them Label, got {names}")
    body = lines[2:] if lines[1:] and lines[1].lower().startswith("defaultdirection") else lines[1:]
    rows = [line.split("\t", len(names) - 1) for line in body]
    for number, row in enumerate(rows):
        if len(row) < len(names):
            raise ValueError(f"row {number} must have {len(names)} entries, got {len(row)}")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
    used = [name for name, key in zip(names, low, strict=True) if key not in _NO_FEATURES]
    wanted = [names[low.index("label")], *used]
    numbers = {name: _numbers(f"column {name!r}", columns[name]) for name in wanted}
    targets = numbers.pop(names[low.index("label")])
    if not np.isin(targets, [-1, 1]).all():
        raise ValueError(f"Label must be 1 or -1, got {np.setdiff1d(targets, [-1, 1])[0]:g}")
    extra = {name: np.array(columns[name]) for name in names if name not in numbers}
    if low[-1] == "proteins":
        extra[names[-1]] = [entry.split("\t") for entry in columns[names[-1]]]
    X = np.column_stack(list(numbers.values()))
    return Table(X, (targets > 0).astype(int), np.array([-1, 1]), names=used, extra=extra)


def _numbers(what, entries):
    try:
        return np.array(entries, dtype=float)
    except ValueError as error:
        raise ValueError(f"{what} must hold numbers: {error}") from None


# --- Matrices and tables --------------------------------------------------------------------------


def read_ssl_book(file, splits_file=None, split=0):
    """Read a benchmark set of the book *Semi-Supervised Learning* (Chapelle et al., 2006).

    Parameters
    ----------
    file : str, Path or binary file
        The MATLAB file with ``X``, or ``T``, and ``y``.
    splits_file : str, Path or binary file, default=None
        The file with ``idxLabs``, whose indices begin with 1. Without it all rows have labels.
    split : int, default=0
        Row of ``idxLabs``.

    Returns
    -------
    Table
        ``extra["truth"]`` has the codes of all rows.
    """
    found = loadmat(file)
    key = "X" if "X" in found else "T"
    if key not in found or "y" not in found:
        raise ValueError(f"file must have X (or T) and y, got {sorted(found)}")
    X, labels = found[key], found["y"].ravel()
    X = X if X.shape[0] == labels.size else X.T
    X = sp.csr_matrix(X, dtype=float) if sp.issparse(X) else np.asarray(X, dtype=float)
    truth, classes = _coded(labels.astype(float), None)
    y = truth
    if splits_file is not None:
        index = loadmat(splits_file)["idxLabs"]
        if not 0 <= split < len(index):
            raise ValueError(f"split must be from 0 to {len(index) - 1}, got {split}")
        y = np.full(truth.size, -1)
        y[index[split] - 1] = truth[index[split] - 1]
    return Table(X, y, classes, extra={"truth": truth})


def read_table(source, label=None, *, unlabeled="auto"):
    """Read a csv or parquet file, or take a data frame apart.

    Parameters
    ----------
    source : str, Path, or data frame of pandas or polars
        Files are read by pandas, or by polars where that is not installed; of a .tsv file tabs part
        the columns.
    label : str, default=None
        Column with the labels; without it no row has a label.
    unlabeled : object, None or "auto", default="auto"
        Label of rows without a label. None is a missing entry, and "auto" too, but refuses other
        values that may be markers, such as ``"?"``, or −1 beside 0 and 1.

    Returns
    -------
    Table
        X is a data frame with the other columns; gaps and categories are left to a pipeline.
    """
    frame = source if hasattr(source, "columns") else _frame(Path(source))
    if label is None:
        return Table(frame, np.full(len(frame), -1), np.empty(0), names=list(frame.columns))
    if label not in frame.columns:
        raise ValueError(f"label must be one of the columns {list(frame.columns)}, got {label!r}")
    X = frame.drop(columns=[label]) if hasattr(frame, "iloc") else frame.drop(label)
    labels = label_array(frame[label])
    gaps = missing_entries(labels)
    with warnings.catch_warnings():
        if unlabeled == "auto":
            warnings.filterwarnings("error", r"y holds the classes")
        try:
            codes, classes = encode_labels(labels, None if unlabeled == "auto" else unlabeled)
        except UserWarning as error:
            text = f"column {label!r} may hold a marker: pass unlabeled=…, or None if there is none"
            raise ValueError(f"{text}. {error}") from None
    odd = classes.dtype.kind in "if" and classes.size > 1 and classes[0] < 0
    if unlabeled == "auto" and not gaps.any() and odd and classes.tolist() != [-1, 1]:
        raise ValueError(
            f"column {label!r} has the labels {classes.tolist()[:10]}: pass unlabeled={classes[0]} "
            "if that marks rows without a label, or None if it is a class"
        )
    return Table(X, codes, classes, names=[str(name) for name in X.columns])


def _frame(path):
    """Read a file by pandas or polars."""
    try:
        import pandas as frames
    except ImportError:
        import polars as frames
    if path.suffix == ".parquet":
        return frames.read_parquet(path)
    word = "sep" if frames.__name__ == "pandas" else "separator"
    return frames.read_csv(path, **{word: "\t" if path.suffix == ".tsv" else ","})
