"""Fit `S3VC` to a file and predict another: ``python -m s3vm_lib fit FILE --label COLUMN``."""

import argparse
import csv
import os
import sys
import tempfile
from pathlib import Path

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from s3vm_lib.exchange import readers
from s3vm_lib.s3vc import S3VC

_TABLES = {".csv", ".tsv", ".parquet"}
_HEADERS = {".arff": readers.read_arff, ".dat": readers.read_keel}


def fit(options):
    """Read a file, fit, print what was read and fitted, and write what was asked for."""
    table = _read(options.file, options.label, options.unlabeled)
    print(table)
    model = make_pipeline(_columns(table.X), S3VC(random_state=options.seed))
    model.fit(table.X, table.y)
    print(model[-1].summary())
    kept = {"model": model, "classes": table.classes, "label": options.label}
    kept |= {"width": table.X.shape[1], "index_base": table.index_base}
    if options.predict:
        _write(options.predict, lambda path: _predictions(path, kept, table.X))
    if options.model:
        _write(options.model, lambda path: joblib.dump(kept, path))


def predict(options):
    """Load a model, and write predictions for the rows of a file."""
    kept = joblib.load(options.model)
    if not isinstance(kept, dict) or "model" not in kept:
        raise ValueError(f"{options.model} must be a model that `fit --model` has saved")
    path = Path(options.file)
    if path.suffix in _TABLES:
        X = readers.read_table(path).X  # the model takes its columns out, or names those missing
    else:
        X = _read(path, kept["label"], None, kept).X
    _write(options.predict, lambda path: _predictions(path, kept, X))


def _read(file, label, unlabeled, kept=None):
    """Read a file by its ending; SVMlight where that is none of the others."""
    path = Path(file)
    # A mark on the command line is text: it is a number where the column holds that number.
    mark = "auto" if unlabeled is None else unlabeled
    if path.suffix in _TABLES:
        if label is None:
            raise ValueError("--label must name the column with the labels")
        frame = readers.read_table(path).X
        if label in frame.columns and isinstance(mark := _number(mark), int):
            mark = mark if (frame[label] == mark).any() else str(mark)  # a column of text
        return readers.read_table(frame, label, unlabeled=mark)
    if path.suffix in _HEADERS:
        return _HEADERS[path.suffix](path, label)
    if kept is not None:  # columns as in the fit; targets of new rows mean nothing
        columns = {"n_features": kept["width"], "index_base": kept["index_base"]}
        return readers.read_svmlight(path, unlabeled=None, **columns)
    return readers.read_svmlight(path, unlabeled=_number(mark))


def _number(text):
    """Return a whole number where a text is one."""
    try:
        return int(text)
    except ValueError:
        return text


def _columns(X):
    """Fill gaps with medians, and give each value of a column of text a column of its own."""
    gaps = SimpleImputer(strategy="median", keep_empty_features=True)
    if not hasattr(X, "columns"):
        return "passthrough" if sp.issparse(X) else gaps
    text = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer(
        (gaps, make_column_selector(dtype_include="number")),
        (text, make_column_selector(dtype_exclude="number")),
    )


def _predictions(path, kept, X):
    """Write the class of each row, and its margin, the lead in output over the next class."""
    model, classes = kept["model"], kept["classes"]
    outputs = np.asarray(model.decision_function(X))
    # Of two classes there is one output f: f/2 and −f/2 lead by |f|.
    best = np.sort(outputs if outputs.ndim == 2 else np.c_[outputs, -outputs] / 2, axis=1)
    margins = best[:, -1] - best[:, -2]
    with open(path, "w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["row", "prediction", "margin"])
        answers = classes[model.predict(X)]
        rows.writerows(
            zip(range(len(margins)), answers, map("{:.6g}".format, margins), strict=True)
        )


def _write(target, make):
    """Write a file beside the target, and put it in its place once it is whole."""
    target = Path(target)
    handle, path = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    os.close(handle)
    try:
        make(path)
        os.replace(path, target)
    except BaseException:
        os.unlink(path)
        raise


def main(arguments=None):
    """Run a command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m s3vm_lib", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="{fit,predict}")
    one = commands.add_parser("fit", help="fit S3VC to csv, tsv, parquet, SVMlight, ARFF or KEEL")
    one.add_argument("file")
    one.add_argument("--label", help="column with the labels; rows without a label have none there")
    one.add_argument("--unlabeled", help="what marks a row without a label, if it is not a gap")
    one.add_argument("--predict", metavar="OUT", help="csv file to write, a class for each row")
    one.add_argument("--model", metavar="OUT", help="file to save the model in")
    one.add_argument("--seed", type=int, default=0, help="seed of S3VC (default 0)")
    one.set_defaults(run=fit)
    two = commands.add_parser("predict", help="predict the rows of a file by a saved model")
    two.add_argument("model", help="what `fit --model` saved; load only files you trust")
    two.add_argument("file")
    two.add_argument("--predict", metavar="OUT", required=True, help="csv file to write")
    two.set_defaults(run=predict)
    options = parser.parse_args(arguments)
    # One line for what the user can mend; anything else shows where it came from.
    try:
        options.run(options)
    except (ValueError, TypeError, OSError, ImportError, FloatingPointError) as error:
        print(f"error: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
