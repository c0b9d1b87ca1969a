"""Loading benchmark sets by name: from a folder, from the cache, or from their public host."""

import io
import os
import tempfile
import urllib.request
from http.client import HTTPException
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from tqdm.auto import tqdm

from s3vm_lib.datasets._sources import (
    PAIR_NAME,
    PAIRS,
    PARSERS,
    SOURCES,
    array_checksum,
    canonical,
    most_bytes,
    names,
    unpack,
)

_TIMEOUT = 30  # seconds without an answer before a host counts as unreachable
_CHUNK = 1 << 16


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
