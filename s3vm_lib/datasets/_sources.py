"""The catalogue of benchmark sets, and how the original files are parsed.

The entries are in ``sources.toml``. A parser turns the downloaded files (a list of bytes) into
named arrays: ``X`` (dense or CSR), ``y`` in {−1, 0, +1} with 0 for unlabeled rows, and, where they
exist, ``y_multi`` (the classes before they were grouped into two) and ``labK`` (published splits:
row numbers of K labeled points).
"""

import bz2
import gzip
import hashlib
import io
import math
import re
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Source:
    """One benchmark set, an entry of ``sources.toml``.

    Parameters
    ----------
    shape : list of int
        Rows and columns.
    checksum : str
        `array_checksum` of the arrays.
    description : str
        Origin and meaning of the two classes.
    urls : list of str, default=()
        Files on the public host; empty if no host is known to serve this version.
    parser : str, default=""
        Name in `PARSERS`.
    positive : int, default=1
        Label in an svmlight file that becomes +1; others become −1.
    dense : bool, default=False
        Whether rows of an svmlight file become an ndarray.
    dtype : str, default="float32"
        Type of the feature values.
    grid : int, default=0
        If positive, values are multiples of 1/grid and are rounded to them, so that copies that
        went through different units agree.
    """

    shape: Sequence[int]
    checksum: str
    description: str
    urls: Sequence[str] = ()
    parser: str = ""
    positive: int = 1
    dense: bool = False
    dtype: str = "float32"
    grid: int = 0


def most_bytes(source):
    """Return how many bytes an unpacked file of a set has at most.

    32 bytes for each value, and 64 kB for whatever surrounds them.
    """
    return (1 << 16) + 32 * source.shape[0] * (source.shape[1] + 1)


def unpack(content, source):
    """Return a file without its compression; refuse one that is larger than the set can be.

    Sizes are read from headers, or no more is decompressed than the limit: a small file that
    unpacks to gigabytes must not fill the memory.
    """
    most, opened = most_bytes(source), io.BytesIO(content)
    if content[:3] == b"BZh":
        content = bz2.BZ2File(opened).read(most + 1)
    elif content[:2] == b"\x1f\x8b":
        content = gzip.GzipFile(fileobj=opened).read(most + 1)
    size = len(content)
    if content[:2] == b"PK":  # zip, and npz
        size = sum(part.file_size for part in zipfile.ZipFile(opened).infolist())
    elif content[:6] == b"MATLAB":
        from scipy.io import whosmat

        size = sum(8 * math.prod(shape) for _, shape, _ in whosmat(opened))
    if size > most:
        raise ValueError(f"unpacked it has more than {most} bytes, which this set cannot have")
    return content


def canonical(arrays, source):
    """Convert the arrays of a set to one form: types, order of the indices, no stored zeros.

    Parameters
    ----------
    arrays : dict of ndarray
        As a parser returns them, or as they are stored in an .npz file, where a CSR matrix is
        the four arrays ``data``, ``indices``, ``indptr`` and ``shape``.
    source : Source
        The entry of the catalogue.

    Returns
    -------
    dict
        ``X`` (ndarray or CSR matrix), ``y`` (int8) and the optional arrays.
    """
    arrays = dict(arrays)
    if "indptr" in arrays:
        parts = tuple(arrays.pop(key) for key in ("data", "indices", "indptr"))
        arrays["X"] = sp.csr_matrix(parts, shape=tuple(int(v) for v in arrays.pop("shape")))
    X = arrays.pop("X")
    if sp.issparse(X):
        X = sp.csr_matrix(X, dtype=source.dtype, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
    elif source.grid:
        X = (np.rint(np.asarray(X, dtype=np.float64) * source.grid) / source.grid + 0.0).astype(
            source.dtype
        )
    else:
        X = np.ascontiguousarray(X, dtype=source.dtype)
        if X.dtype.kind == "f":
            X = X + X.dtype.type(0)  # turns −0.0 into 0.0, which has other bytes
    types = {"y": np.int8, "y_multi": np.int8}
    out = {key: np.asarray(a, dtype=types.get(key, np.int32)) for key, a in arrays.items()}
    return {**out, "X": X}


def array_checksum(arrays):
    """Return the SHA-256 of canonical arrays, which does not depend on the file format.

    Parameters
    ----------
    arrays : dict
        The result of `canonical`.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for key in sorted(arrays):
        a = arrays[key]
        if sp.issparse(a):
            parts = (a.data, a.indices.astype(np.int32), a.indptr.astype(np.int64))
        else:
            parts = (a,)
        # The shape belongs to it: two arrays of different shapes may have the same bytes.
        digest.update(f"{key}{a.shape}".encode())
        for part in parts:
            little_endian = np.ascontiguousarray(part).astype(part.dtype.newbyteorder("<"))
            digest.update(little_endian.dtype.str.encode())
            digest.update(little_endian.tobytes())
    return digest.hexdigest()


# --- Parsers: files without their compression, and the source, to arrays --------------------------


def _read_svmlight(content, n_features):
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(io.BytesIO(content), n_features=n_features, zero_based=False)


def _parse_svmlight(files, source):
    X, labels = _read_svmlight(files[0], source.shape[1])
    y = np.where(labels == source.positive, 1, -1)
    return {"X": X.toarray() if source.dense else X, "y": y}


def _parse_usps(files, source):
    X, labels = _read_svmlight(files[0], 256)
    digit = labels.astype(int) - 1  # the file numbers the digits 1-10 and scales to [-1, 1]
    return {"X": (X.toarray() + 1) / 2, "y": np.where(digit >= 5, 1, -1), "y_multi": digit}


def _read_idx(content):
    """Read an array of bytes in the format of MNIST."""
    rank = content[3]  # then the sizes, four bytes each, and the entries
    shape = np.frombuffer(content, dtype=">i4", count=rank, offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * rank).reshape(shape)


def _parse_mnist(files, source):
    images, digit = _read_idx(files[0]), _read_idx(files[1])
    return {
        "X": images.reshape(len(images), -1),
        "y": np.where(digit >= 5, 1, -1),
        "y_multi": digit,
    }


def _parse_ssl_book(files, source):
    from scipy.io import loadmat

    data = loadmat(io.BytesIO(files[0]))
    classes = data["y"].ravel().astype(int)
    arrays = {"X": data["X"], "y": classes}
    if len(np.unique(classes)) > 2:
        arrays.update(y=np.where(classes >= 3, 1, -1), y_multi=classes)
    for content in files[1:]:
        rows = loadmat(io.BytesIO(content))["idxLabs"].astype(int) - 1
        arrays[f"lab{rows.shape[1]}"] = rows
    return arrays


def _parse_skin(files, source):
    table = np.loadtxt(io.BytesIO(files[0]), dtype=np.int64)
    return {"X": table[:, :3], "y": np.where(table[:, 3] == 1, 1, -1)}


def _parse_dota2(files, source):
    with zipfile.ZipFile(io.BytesIO(files[0])) as archive:
        tables = [
            np.loadtxt(io.BytesIO(archive.read(part)), delimiter=",", dtype=np.int64)
            for part in ("dota2Train.csv", "dota2Test.csv")
        ]
    table = np.concatenate(tables)
    return {"X": sp.csr_matrix(table[:, 1:]), "y": table[:, 0]}


PARSERS = {
    "svmlight": _parse_svmlight,
    "usps": _parse_usps,
    "mnist": _parse_mnist,
    "ssl_book": _parse_ssl_book,
    "skin": _parse_skin,
    "dota2": _parse_dota2,
}
_CATALOGUE = Path(__file__).with_name("sources.toml").read_text(encoding="utf-8")
SOURCES = {name: Source(**entry) for name, entry in tomllib.loads(_CATALOGUE).items()}
PAIRS = {"usps": range(10), "mnist": range(10), "coil": range(1, 21)}
PAIR_NAME = re.compile(r"(usps|mnist|coil)_(\d+)_(\d+)")


def names():
    """List the names that `load` accepts.

    Returns
    -------
    list of str
        The sets of the catalogue and ``pcmac``. Besides these, ``usps_a_b``, ``mnist_a_b`` (digits
        0-9) and ``coil_a_b`` (objects 1-20) name two-class pairs.
    """
    return sorted([*SOURCES, "pcmac"])
