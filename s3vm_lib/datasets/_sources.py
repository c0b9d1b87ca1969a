"""The catalogue of benchmark sets: shape, checksum, origin, and how the original files are parsed.

A parser turns the downloaded files (a list of bytes) into named arrays: ``X`` (dense or CSR), ``y``
in {−1, 0, +1} with 0 for unlabeled rows, and, where they exist, ``y_multi`` (the classes before
they were grouped into two) and ``labK`` (published splits: row numbers of K labeled points).
"""

import bz2
import gzip
import hashlib
import io
import math
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
SSL_BOOK = "http://olivier.chapelle.cc/ssl-book/"
UCI = "https://archive.ics.uci.edu/"


@dataclass(frozen=True)
class Source:
    """One set of the catalogue.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns.
    checksum : str
        `array_checksum` of the arrays.
    description : str
        Origin and meaning of the two classes.
    urls : tuple of str, default=()
        Files on the public host; empty if no host is known to serve this version.
    parse : callable, default=None
        ``parse(files) -> dict`` of arrays; of files that `unpack` has seen.
    dtype : str, default="float32"
        Type of the feature values.
    grid : int, default=0
        If positive, values are multiples of 1/grid and are rounded to them, so that copies that
        went through different units agree.
    """

    shape: tuple
    checksum: str
    description: str
    urls: tuple = ()
    parse: Callable | None = None
    dtype: str = "float32"
    grid: int = 0


def most_bytes(source):
    """Bytes that an unpacked file of a set cannot exceed: 32 for each value, and some around."""
    return (1 << 16) + 32 * source.shape[0] * (source.shape[1] + 1)


def unpack(content, source):
    """A file without its compression, refused before it takes more memory than the set can."""
    most, opened = most_bytes(source), io.BytesIO(content)
    if content[:3] == b"BZh":
        content = bz2.BZ2File(opened).read(most + 1)
    elif content[:2] == b"\x1f\x8b":
        content = gzip.GzipFile(fileobj=opened).read(most + 1)
    size = len(content)
    if content[:2] == b"PK":
        size = sum(part.file_size for part in zipfile.ZipFile(opened).infolist())
    elif content[:6] == b"MATLAB":
        from scipy.io import whosmat

        size = sum(8 * math.prod(shape) for _, shape, _ in whosmat(opened))
    if size > most:
        raise ValueError(f"unpacked it has more than {most} bytes, which this set cannot have")
    return content


def canonical(arrays, source):
    """The arrays of a set in one agreed form: types, order of the indices, no stored zeros.

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
            X = X + X.dtype.type(0)  # no negative zeros
    types = {"y": np.int8, "y_multi": np.int8}
    out = {key: np.asarray(a, dtype=types.get(key, np.int32)) for key, a in arrays.items()}
    return {**out, "X": X}


def array_checksum(arrays):
    """SHA-256 of canonical arrays, whatever file they came from.

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
        digest.update(f"{key}{a.shape}".encode())
        for part in parts:
            little_endian = np.ascontiguousarray(part).astype(part.dtype.newbyteorder("<"))
            digest.update(little_endian.dtype.str.encode())
            digest.update(little_endian.tobytes())
    return digest.hexdigest()


def _svmlight(n_features, positive=1, dense=False):
    """Parser of svmlight text, plain or bz2; the label `positive` becomes +1, others −1."""

    def parse(files):
        X, labels = _read_svmlight(files[0], n_features)
        return {"X": X.toarray() if dense else X, "y": np.where(labels == positive, 1, -1)}

    return parse


def _read_svmlight(content, n_features):
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(io.BytesIO(content), n_features=n_features, zero_based=False)


def _parse_usps(files):
    X, labels = _read_svmlight(files[0], 256)
    digit = labels.astype(int) - 1  # the file numbers the digits 1-10 and scales to [-1, 1]
    return {"X": (X.toarray() + 1) / 2, "y": np.where(digit >= 5, 1, -1), "y_multi": digit}


def _read_idx(content):
    rank = content[3]
    shape = np.frombuffer(content, dtype=">i4", count=rank, offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * rank).reshape(shape)


def _parse_mnist(files):
    images, digit = _read_idx(files[0]), _read_idx(files[1])
    return {
        "X": images.reshape(len(images), -1),
        "y": np.where(digit >= 5, 1, -1),
        "y_multi": digit,
    }


def _parse_ssl_book(files):
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


def _parse_skin(files):
    table = np.loadtxt(io.BytesIO(files[0]), dtype=np.int64)
    return {"X": table[:, :3], "y": np.where(table[:, 3] == 1, 1, -1)}


def _parse_dota2(files):
    with zipfile.ZipFile(io.BytesIO(files[0])) as archive:
        tables = [
            np.loadtxt(io.BytesIO(archive.read(part)), delimiter=",", dtype=np.int64)
            for part in ("dota2Train.csv", "dota2Test.csv")
        ]
    table = np.concatenate(tables)
    return {"X": sp.csr_matrix(table[:, 1:]), "y": table[:, 0]}


def _libsvm(shape, checksum, description, file, folder="binary/", **options):
    parse = options.pop("parse", None) or _svmlight(
        shape[1], options.pop("positive", 1), options.pop("dense", False)
    )
    return Source(shape, checksum, description, (LIBSVM + folder + file,), parse, **options)


def _ssl_book(number, shape, checksum, description):
    files = ["data", "splits,labeled=10", "splits,labeled=100"]
    urls = tuple(f"{SSL_BOOK}SSL,set={number},{file}.mat" for file in files)
    text = f"{description} SSL-book benchmark (Chapelle, Schölkopf and Zien, 2006), set {number}."
    return Source(shape, checksum, text, urls, _parse_ssl_book)


_ADULT = "Census records (UCI Adult, prepared by J. Platt): income above 50,000 (1) or not (0)."
_WEB = "Web pages (J. Platt): one category (1) against all others (0)."
_IJCNN = "IJCNN 2001 challenge (D. Prokhorov): misfire (1) or normal firing (0)."
_DIGITS = "digits 5-9 (1) against 0-4 (0); target_multi holds the digit."
_USPS = f"US Postal Service digits (J. Hull, 1994), 16 × 16 grey levels in [0, 1]: {_DIGITS}"
_MNIST = f"MNIST (LeCun, Cortes and Burges), 28 × 28 grey levels 0-255: {_DIGITS}"
_COIL = (
    "COIL-20 (Nene, Nayar and Murase, 1996), 32 × 32 grey levels in [0, 1]: objects 11-20 (1) "
    "against 1-10 (0); target_multi holds the object."
)
_DOTA2 = (
    "UCI Dota2 Games Results: team 1 won (1) or lost (0); columns are cluster id, game mode, game "
    "type and 113 heroes; training rows, then test rows."
)
_LDS = "Benchmark of Chapelle and Zien (2005) with ten splits of 50 labels."
_NEWSGROUPS = "20 Newsgroups, mac (1) against ms-windows (0), tf-idf, unit rows."
_SVMLIN = f"{_NEWSGROUPS} The example of SVMlin (V. Sindhwani)"

SOURCES = {
    "a1a": _libsvm(
        (1605, 123),
        "7cb097e7e194a8fa11979f620a51e17f377c4cfa6834e40343990cba5c5efaf3",
        _ADULT,
        "a1a",
    ),
    "a9a": _libsvm(
        (32561, 123),
        "764939e867c9eea860113da71ed9eddf8d819ad490c8414913105592a6401cd7",
        _ADULT,
        "a9a",
    ),
    "a9a_t": _libsvm(
        (16281, 123),
        "d6ba2ab0356707cb96d9ffcfd1444679390e1cb6391fc0aab03b9637c8f9412e",
        _ADULT,
        "a9a.t",
    ),
    "australian": _libsvm(
        (690, 14),
        "d17ced0d83f0d9dd485a7ea30bd5f26f96d93252a283b113d8410100cc9eeb1e",
        "UCI Statlog (Australian Credit Approval), unscaled.",
        "australian",
        dense=True,
    ),
    "cod-rna": _libsvm(
        (59535, 8),
        "64b49b9d99bb2c81195170884c9943a47fae1e9e385e92915cd6eac00aa30d0f",
        "Non-coding RNA (1) or not (0) (Uzilov et al., 2006), unscaled.",
        "cod-rna",
        dense=True,
    ),
    "coil20": Source(
        (1440, 1024),
        "37bd76b8939f1ad102ba5d5b88ed5b89776928930372c50cdaf536e15dd9accd",
        _COIL,
    ),
    "covtype": _libsvm(
        (581012, 54),
        "944e1b8cc0d4c9055924fb698ce8a231f619fcc5f4861c2d8b82d2ce5efee331",
        "UCI Covertype, unscaled: lodgepole pine (1) against the other six covers (0).",
        "covtype.libsvm.binary.bz2",
        dense=True,
        positive=2,
    ),
    "dota2": Source(
        (102944, 116),
        "0ba8d8a50cd2aea5e91a39e9162dbe76203daa2624eb350c132e68b8c3bdb2a5",
        _DOTA2,
        (UCI + "static/public/367/dota2+games+results.zip",),
        _parse_dota2,
    ),
    "g10n": Source(
        (550, 10),
        "9b31bc2dcccd36ee2d565f1f4831a7b164469408eb9f2af3d505dd93e2584475",
        f"A deterministic problem in ten dimensions. {_LDS}",
    ),
    "g50c": Source(
        (550, 50),
        "b237ef53f13af8faef8e78a6f05ca54f67c3180aac943f34e3bc85522d5934fa",
        f"Two Gaussians with 5 % Bayes error in 50 dimensions. {_LDS}",
    ),
    "ijcnn1": _libsvm(
        (49990, 22),
        "a95ae26afa7c85c21aa19ed01328aaba4609145e9355a376d45243516e156bef",
        _IJCNN,
        "ijcnn1.bz2",
    ),
    "ijcnn1_t": _libsvm(
        (91701, 22),
        "b76e0ba4e1f928ec8a0c4d25436b3ce798bc2ef2a80a77aa2a9e6f6b594bc088",
        _IJCNN,
        "ijcnn1.t.bz2",
    ),
    "madelon": _libsvm(
        (2000, 500),
        "aa54885635fddd3d7854f32f93d16ff6e7c9eb7948cdbaba102f862dd2670b9b",
        "NIPS 2003 challenge (I. Guyon), training part, integer features.",
        "madelon",
        dense=True,
    ),
    "mnist": Source(
        (60000, 784),
        "fadfa71289ec4aaf274432d246c3b62d4f47bee0b7b4cb94d05c4b7f8181bb47",
        _MNIST,
        tuple(f"{MNIST}train-{part}-ubyte.gz" for part in ("images-idx3", "labels-idx1")),
        _parse_mnist,
        dtype="uint8",
    ),
    "mnist_t": Source(
        (10000, 784),
        "a7f6d58d49a05ac78e46060eb6fb944408c7a7af32405dc2da19493bcab13637",
        _MNIST,
        tuple(f"{MNIST}t10k-{part}-ubyte.gz" for part in ("images-idx3", "labels-idx1")),
        _parse_mnist,
        dtype="uint8",
    ),
    "mushrooms": _libsvm(
        (8124, 112),
        "22548a913f849f9254d63d09788109bbf69487161c5886298a2e864d000adefb",
        "UCI Mushroom: poisonous (1) or edible (0), binary features.",
        "mushrooms",
    ),
    "skin_nonskin": Source(
        (245057, 3),
        "4152c5896f9b49faf678faca8def41163758c1c116da8643398940723589f94d",
        "UCI Skin Segmentation, columns B, G, R: skin (1) or not (0).",
        (UCI + "ml/machine-learning-databases/00229/Skin_NonSkin.txt",),
        _parse_skin,
        dtype="uint8",
    ),
    "ssl_bci": _ssl_book(
        4,
        (400, 117),
        "c236db9af4b2c2c68b6ef3f19956142cf56d965c4068c09a7124b14a1def15eb",
        "Brain-computer interface, imagined movements.",
    ),
    "ssl_coil": _ssl_book(
        6,
        (1500, 241),
        "b558631d88f46c4dbb6e42d8678e1527c130cede75363d156f178e2daa22f042",
        "Disguised COIL images; target_multi holds the six classes.",
    ),
    "ssl_g241c": _ssl_book(
        5,
        (1500, 241),
        "fd94c6ecd12e0a7dc85647c9bf7874808fbccb2467c05b8a3eed648184bd823f",
        "Two Gaussians.",
    ),
    "ssl_g241d": _ssl_book(
        7,
        (1500, 241),
        "c0676825c98458105aeb896d0689dca0085ca8415be1aafdaa9a45ac2a80b96f",
        "Two classes whose clusters mislead.",
    ),
    "ssl_text": _ssl_book(
        9,
        (1500, 11960),
        "da32021fc0c5db5fcea5534f0a998c126d551c4c22c6cf42c0868307df47d158",
        "Newsgroup articles.",
    ),
    "ssl_usps": _ssl_book(
        2,
        (1500, 241),
        "3ecd20b8c9e7e3ec22981c4590dda06c32a8a73497802dc4d2af8d724f134b13",
        "Disguised USPS digits 2 and 5 against the others.",
    ),
    "susy_30k": Source(
        (30000, 18),
        "3b294ba086960fb815537931280a014e73032ff1ce22aa60cf82e4c4d22d1914",
        "UCI SUSY (Baldi, Sadowski and Whiteson, 2014), 30,000 rows: signal (1) or background (0).",
    ),
    "svmguide1": _libsvm(
        (3089, 4),
        "8bd962d8b4ceeeef0f536d38bbce448b970e577135d686a82ec9a7569b825cd1",
        "Astroparticles (Hsu, Chang and Lin, guide to SVM).",
        "svmguide1",
        dense=True,
    ),
    "svmguide1_t": _libsvm(
        (4000, 4),
        "dac110f8058c0b654e5d3da96f8f76c0c0dff73fe515418dc209c19631aeb91f",
        "Astroparticles (Hsu, Chang and Lin, guide to SVM), test part.",
        "svmguide1.t",
        dense=True,
    ),
    "svmguide3": _libsvm(
        (1243, 21),
        "c1df7a6072269894eea5f41466a9223c7c7ebe4846e7b3f79255815716c7c32d",
        "Vehicles (Hsu, Chang and Lin, guide to SVM).",
        "svmguide3",
        dense=True,
    ),
    "svmlin_example_test": Source(
        (486, 7511),
        "6aee48f93f4c2fcce5b3117525113195442a806c846fb8f42fc4e702832c4da8",
        f"{_SVMLIN}, test part.",
    ),
    "svmlin_example_train": Source(
        (1460, 7511),
        "d90c82c1f6fbbff6b0b69a7e15b717a5d8e9e31179a64a52b4dcddd8d0057c10",
        f"{_SVMLIN}, training part: 50 labels.",
    ),
    "text_lds": Source(
        (1946, 7511),
        "7186f5d15a257c207ee2f3c96935e4d5049aec7bec8146f430b80de94b0a913a",
        f"{_NEWSGROUPS} {_LDS}",
    ),
    "usps": _libsvm(
        (7291, 256),
        "69aa36b400a64eb7c5e934102e4d7a2876f315a8393ffd83b37902b3133fd440",
        _USPS,
        "usps.bz2",
        folder="multiclass/",
        parse=_parse_usps,
        grid=2000,
    ),
    "usps_t": _libsvm(
        (2007, 256),
        "985bc7fc899e4b7b64eb4c362d4e8bcfd5833f6e082bb95a422b292dec71d589",
        _USPS,
        "usps.t.bz2",
        folder="multiclass/",
        parse=_parse_usps,
        grid=2000,
    ),
    "uspst": Source(
        (2007, 256),
        "cca67561b3b876274644f289049ebb830ba2f8b13caa3c7f170eecffa8ece135",
        f"USPS digits in 31 grey levels, not the official test part: {_DIGITS} {_LDS}",
    ),
    "w1a": _libsvm(
        (2477, 300), "32836b45f6302d44c4057c99cb3dec6bc9b4f745a46d8f1a1b0367e9ad66ba5a", _WEB, "w1a"
    ),
    "w5a": _libsvm(
        (9888, 300), "fc0232f444113b800b7ad49d56ab76517d90d81eb95ede1a9c5d6f978b5eab7d", _WEB, "w5a"
    ),
    "w8a": _libsvm(
        (49749, 300),
        "fa5d5b4d379cf489357730f96d0af303e0f654a8770c49c1621da6bfd670aabb",
        _WEB,
        "w8a",
    ),
}

PAIRS = {"usps": range(10), "mnist": range(10), "coil": range(1, 21)}
PAIR_NAME = re.compile(r"(usps|mnist|coil)_(\d+)_(\d+)")


def names():
    """Names that `load` knows.

    Returns
    -------
    list of str
        The sets of the catalogue and ``pcmac``. Besides these, ``usps_a_b``, ``mnist_a_b`` (digits
        0-9) and ``coil_a_b`` (objects 1-20) name two-class pairs.
    """
    return sorted([*SOURCES, "pcmac"])
