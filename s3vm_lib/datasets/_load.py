"""Benchmark sets by name, from a folder, the cache or their public host: catalogue and parsers.

The entries of the catalogue are in ``sources.toml``. A parser turns the downloaded files (a list of
bytes) into named arrays: ``X`` (dense or CSR), ``y`` in {−1, 0, +1} with 0 for unlabeled rows, and,
where they exist, ``y_multi`` (the classes before they were grouped into two) and ``labK``
(published splits: row numbers of K labeled points).
"""

import bz2
import gzip
import hashlib
import io
import math
import os
import re
import tempfile
import tomllib
import urllib.request
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from tqdm.auto import tqdm

_TIMEOUT = 30  # seconds without an answer before a host counts as unreachable
_CHUNK = 1 << 16


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


# --- Loading --------------------------------------------------------------------------------------


def data_home():
    """Return the directory of the cache: ``S3VM_LIB_CACHE``, or ``~/.cache/s3vm_lib/data``.

    Returns
    -------
    pathlib.Path
        The directory, which need not exist yet.
    """
    return Path(os.environ.get("S3VM_LIB_CACHE") or Path.home() / ".cache" / "s3vm_lib" / "data")


def load(name, *, download=True, progress=True):
    """Load a benchmark set by name.

    The set is looked for as ``<name>.npz`` in the folder named by the environment variable
    ``S3VM_LIB_DATA``, then in the cache (`data_home`), and is then downloaded from its public host
    into the cache. In each case the arrays are compared with a stored checksum.

    Parameters
    ----------
    name : str
        One of `names`, or a pair: ``"usps_2_5"`` (training and test part together), ``"mnist_1_7"``
        (training part) or ``"coil_3_6"`` (20 × 20 pixels).
    download : bool, default=True
        Whether to download a set that is in neither folder.
    progress : bool, default=True
        Whether to show a progress bar while downloading.

    Returns
    -------
    sklearn.utils.Bunch
        data : ndarray or CSR matrix of shape (n_samples, n_features)
            Features in the type of the source: float32, or uint8 for pixels and colors.
        target : ndarray of shape (n_samples,)
            Classes 0 and 1, and −1 for rows that are unlabeled in the source. In a pair, 0 is the
            first of the two named classes and 1 the second.
        target_multi : ndarray of shape (n_samples,) or None
            The classes before they were grouped into two, where there are such.
        splits : dict of str to ndarray
            Published splits: ``splits["lab50"][k]`` holds the rows of the 50 labeled points of
            split k.
        DESCR : str
            Origin and meaning of the classes.

    Raises
    ------
    ValueError
        If the name is unknown, a file cannot be read as that set, or its arrays differ from the
        stored checksum.
    FileNotFoundError
        If the set is in neither folder and cannot or may not be downloaded.
    ConnectionError
        If the download fails.

    Notes
    -----
    An .npz file holds ``y`` in {−1, 0, +1} (0 = unlabeled) and either ``X`` or the four arrays
    ``data, indices, indptr, shape`` of a CSR matrix; optionally ``y_multi`` and ``labK``.
    """
    from sklearn.utils import Bunch

    pair = PAIR_NAME.fullmatch(name)
    if pair:  # such as usps_2_5
        return _load_pair(*pair.groups(), download=download, progress=progress)
    if name == "pcmac":
        name = "text_lds"
    if name not in SOURCES:
        raise ValueError(
            f"unknown data set {name!r}; known are {', '.join(names())} and the pairs usps_a_b, "
            "mnist_a_b (digits 0-9) and coil_a_b (objects 1-20)"
        )
    arrays = _arrays(name, download, progress)
    X, y = arrays["X"], arrays["y"]
    return Bunch(
        data=X,
        target=np.select([y > 0, y < 0], [1, 0], -1),
        target_multi=arrays["y_multi"].astype(np.int64) if "y_multi" in arrays else None,
        splits={key: rows for key, rows in arrays.items() if key.startswith("lab")},
        DESCR=f"{name}: {X.shape[0]} x {X.shape[1]}. {SOURCES[name].description}",
    )


def _load_pair(family, a, b, **options):
    """Load two classes of a set with many."""
    from sklearn.utils import Bunch

    a, b = int(a), int(b)
    if a == b or not {a, b} <= set(PAIRS[family]):
        low, high = PAIRS[family][0], PAIRS[family][-1]
        raise ValueError(f"{family}_a_b needs two different classes {low}-{high}, got {a} and {b}")
    parts = {"usps": ["usps", "usps_t"], "mnist": ["mnist"], "coil": ["coil20"]}[family]
    sets = [load(part, **options) for part in parts]
    data = np.concatenate([s.data[np.isin(s.target_multi, (a, b))] for s in sets])
    multi = np.concatenate([s.target_multi[np.isin(s.target_multi, (a, b))] for s in sets])
    if family == "mnist":
        data = data.astype(np.float32) / np.float32(255)  # grey levels in [0, 1], as usps has
    elif family == "coil":
        data = _resize(data, 32, 20)
    return Bunch(
        data=data,
        target=(multi == b).astype(np.int64),
        target_multi=multi,
        splits={},
        DESCR=f"{family}_{a}_{b}: class {a} (0) against class {b} (1) of {sets[0].DESCR}",
    )


def _resize(images, size, new_size):
    """Resize square images: each new pixel is the mean of the area that it covers."""
    edges = np.arange(new_size + 1) * (size / new_size)
    left = np.maximum(edges[:-1, None], np.arange(size))
    right = np.minimum(edges[1:, None], np.arange(size) + 1)
    # Row i of the weights: how much of each old pixel the new pixel i covers, in one direction.
    weight = np.maximum(right - left, 0) * (new_size / size)
    cube = images.reshape(-1, size, size).astype(np.float64)
    return (weight @ cube @ weight.T).reshape(len(images), -1).astype(images.dtype)


def _arrays(name, download, progress):
    """Return the arrays of a set from the folder, the cache or the host, in this order."""
    source = SOURCES[name]
    folder = os.environ.get("S3VM_LIB_DATA")
    # The user's own folder comes first; what is found is checked in the same way in both places.
    places = ([Path(folder)] if folder else []) + [data_home()]
    for place in places:
        file = place / f"{name}.npz"
        if file.is_file():
            return _checked([file.read_bytes()], name, file)
    searched = " nor in ".join(str(place) for place in places)
    way_out = (
        f"put {name}.npz into a folder and name the folder in S3VM_LIB_DATA, "
        "or use one of the generators s3vm_lib.datasets.make_*"
    )
    if not source.urls:
        raise FileNotFoundError(
            f"{name} is not in {searched}, and no public host is known to serve this version: "
            + way_out
        )
    if not download:
        raise FileNotFoundError(f"{name} is not in {searched}: use download=True, or {way_out}")
    try:
        files = [_fetch(url, most_bytes(source), progress) for url in source.urls]
    except (OSError, HTTPException, ValueError) as error:  # all that urllib raises
        raise ConnectionError(
            f"could not download {name} from {source.urls[0]} ({error}). "
            f"Without a connection, {way_out}."
        ) from error
    arrays = _checked(files, name, source.urls[0])
    _store(data_home() / f"{name}.npz", arrays)
    return arrays


def _checked(files, name, origin):
    """Return the arrays of files that were downloaded or stored, if the checksum is right."""
    source = SOURCES[name]
    try:
        files = [unpack(content, source) for content in files]
        if isinstance(origin, Path):
            with np.load(io.BytesIO(files[0]), allow_pickle=False) as stored:
                arrays = dict(stored)
        else:
            arrays = PARSERS[source.parser](files, source)
        arrays = canonical(arrays, source)
        found = array_checksum(arrays)
    except Exception as error:  # a parser given another file can fail in any way
        raise ValueError(
            f"what {origin} holds cannot be read as {name}: {type(error).__name__}, {error}"
        ) from error
    if found != source.checksum:
        raise ValueError(
            f"the arrays of {origin} are not those of the catalogue: checksum {found[:16]}..., "
            f"expected {source.checksum[:16]}...; the file is damaged or another version"
        )
    return arrays


def _store(file, arrays):
    """Write under a temporary name and rename, so that no interrupted write leaves a file."""
    packed = dict(arrays)
    if sp.issparse(packed["X"]):
        X = packed.pop("X")
        packed.update(data=X.data, indices=X.indices, indptr=X.indptr, shape=np.array(X.shape))
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:  # one folder for each thread
        temporary = Path(folder) / file.name
        np.savez_compressed(temporary, **packed)
        os.replace(temporary, file)


def _fetch(url, most, progress):
    """Download one file into memory; stop as soon as it is larger than the set can be."""
    request = urllib.request.Request(url, headers={"User-Agent": "s3vm_lib"})
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
        total = int(response.headers.get("Content-Length") or 0)
        content = bytearray()
        name = url.rsplit("/", 1)[-1]
        with tqdm(
            desc=name, total=total or None, unit="B", unit_scale=True, disable=not progress
        ) as bar:
            while chunk := response.read(_CHUNK):
                content += chunk
                bar.update(len(chunk))
                # Checked while the file arrives: the header may name no length, or a wrong one.
                if len(content) > most:
                    raise OSError(f"{url}: more than {most} bytes, which this set cannot have")
    if total and len(content) != total:
        raise OSError(f"{url}: {len(content)} of {total} bytes arrived")
    return bytes(content)
