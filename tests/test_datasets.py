import bz2
import dataclasses
import gzip
import hashlib
import http.client
import io
import os
import threading
import tracemalloc
import urllib.error
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.utils import Bunch

from s3vm_lib import datasets
from s3vm_lib.datasets import _load

GENERATORS = {
    "g2c": lambda seed: datasets.make_g2c(60, 12, random_state=seed),
    "g4c": lambda seed: datasets.make_g4c(60, 12, random_state=seed),
    "g50c": lambda seed: datasets.make_g50c(random_state=seed),
    "moons": lambda seed: datasets.make_moons(60, random_state=seed),
    "mixture": lambda seed: datasets.make_mixture(300, random_state=seed),
    "words": lambda seed: datasets.make_bag_of_words(100, 500, random_state=seed),
}
URL = "https://www.csie.ntu.edu.tw/toy.bz2"
DATA = os.environ.get("S3VM_LIB_DATA")
needs_data = pytest.mark.skipif(
    not DATA or not Path(DATA).is_dir(), reason="S3VM_LIB_DATA names no folder with data sets"
)


def _dense(X):
    return X.toarray() if sp.issparse(X) else X


@pytest.fixture
def no_folders(monkeypatch, tmp_path):
    monkeypatch.delenv("S3VM_LIB_DATA", raising=False)
    monkeypatch.setenv("S3VM_LIB_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def tiny(no_folders, monkeypatch):
    """A catalogue with one small svmlight set, served by a fake host."""
    text = b"+1 1:0.5 3:2\n-1 2:-1.25\n+1 1:1 2:3 3:0\n"
    arrays = {
        "X": sp.csr_matrix([[0.5, 0, 2, 0], [0, -1.25, 0, 0], [1, 3, 0, 0]]),
        "y": np.array([1, -1, 1]),
    }
    source = _load.Source((3, 4), "", "a toy.", (URL,), "svmlight")
    checksum = _load.array_checksum(_load.canonical(arrays, source))
    source = dataclasses.replace(source, checksum=checksum)
    monkeypatch.setitem(_load.SOURCES, "toy", source)
    served = Bunch(content=bz2.compress(text), length=None, error=None, requests=[])

    def urlopen(request, timeout):
        served.requests.append(request.full_url)
        if served.error:
            raise served.error
        response = io.BytesIO(served.content)
        response.headers = {"Content-Length": served.length or len(served.content)}
        return response

    monkeypatch.setattr(_load.urllib.request, "urlopen", urlopen)
    return served


# ---------------------------------------------------------------- generators


@pytest.mark.parametrize("name", GENERATORS)
def test_generators_return_two_known_classes_and_repeat(name):
    X, y = GENERATORS[name](3)
    again, y_again = GENERATORS[name](3)
    other, _ = GENERATORS[name](4)
    assert X.shape[0] == len(y) and set(np.unique(y)) == {0, 1} and y.dtype == np.int64
    np.testing.assert_array_equal(_dense(X), _dense(again))
    np.testing.assert_array_equal(y, y_again)
    assert not np.array_equal(_dense(X), _dense(other))


@pytest.mark.parametrize("source", [np.random.RandomState, np.random.default_rng])
def test_generators_accept_random_states_and_generators(source):
    X, _ = datasets.make_moons(20, random_state=source(5))
    again, _ = datasets.make_moons(20, random_state=source(5))
    np.testing.assert_array_equal(X, again)


def test_gaussians_have_the_stated_means():
    X, y = datasets.make_g2c(4000, 3, random_state=0)
    np.testing.assert_allclose(X[y == 1].mean(axis=0), [2.5, 0, 0], atol=0.1)
    np.testing.assert_allclose(X[y == 0].mean(axis=0), [-2.5, 0, 0], atol=0.1)
    np.testing.assert_allclose(X[y == 0].std(axis=0), 1, atol=0.05)
    X, y = datasets.make_g4c(4000, 3, random_state=0)
    for label in (0, 1):
        for side in (-1, 1):
            cluster = (y == label) & (np.sign(X[:, 1]) == side)
            mean = [2.5 * (2 * label - 1), 5 * side, 0]
            np.testing.assert_allclose(X[cluster].mean(axis=0), mean, atol=0.15)
            assert abs(cluster.sum() - 1000) < 100


def test_g50c_has_five_percent_bayes_error():
    X, y = datasets.make_g50c(20_000, random_state=1)
    wrong = (X.sum(axis=1) > 0) != (y == 1)
    assert wrong.mean() == pytest.approx(0.05, abs=0.006)  # four standard errors


def test_moons_alternate_and_lie_on_the_circles():
    X, y = datasets.make_moons(41, noise=0.0, random_state=0)
    np.testing.assert_array_equal(y, (np.arange(41) + 1) % 2)
    np.testing.assert_allclose(np.linalg.norm(X[y == 1], axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(X[y == 0] - [1, 0.5], axis=1), 1)
    assert (X[y == 1, 1] >= 0).all() and (X[y == 0, 1] <= 0.5).all()


@pytest.mark.parametrize("noise", [0.1, 0.4])
def test_the_noise_of_the_moons_has_the_stated_deviation(noise):
    still, _ = datasets.make_moons(5000, noise=0.0, random_state=3)
    noisy, _ = datasets.make_moons(5000, noise=noise, random_state=3)
    # Four standard errors of a deviation from 10000 numbers.
    assert (noisy - still).std() == pytest.approx(noise, rel=4 / np.sqrt(20_000))


def test_even_components_of_the_mixture_are_class_one():
    X, y = datasets.make_mixture(4000, 3, n_centers=2, random_state=0)
    centers = np.random.default_rng(7).standard_normal((2, 3)) * 1.5 * np.sqrt(5 / 3)
    for label, center in ((1, centers[0]), (0, centers[1])):
        np.testing.assert_allclose(X[y == label].mean(axis=0), center, atol=4 / np.sqrt(1900))


def test_mixture_draws_share_their_centers():
    a, ya = datasets.make_mixture(20_000, 4, n_centers=2, random_state=0)
    b, yb = datasets.make_mixture(20_000, 4, n_centers=2, random_state=1)
    for label in (0, 1):
        means = a[ya == label].mean(axis=0), b[yb == label].mean(axis=0)
        np.testing.assert_allclose(*means, atol=0.06)
    c, yc = datasets.make_mixture(20_000, 4, n_centers=2, centers_random_state=8, random_state=0)
    assert np.abs(c[yc == 0].mean(axis=0) - a[ya == 0].mean(axis=0)).max() > 0.3


def test_bag_of_words_has_unit_rows_and_few_terms():
    X, y = datasets.make_bag_of_words(400, 2000, n_terms=30, random_state=0)
    assert isinstance(X, sp.csr_matrix) and X.has_sorted_indices and (X.data >= 0).all()
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1)
    assert np.diff(X.indptr).max() <= 30
    # the two topics differ: the direction between their means separates them
    direction = np.asarray(X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)).ravel()
    scores = X @ direction
    assert ((scores > np.median(scores)) == (y == 1)).mean() > 0.9


def test_words_weigh_one_plus_log_tf_times_idf():
    """Ratios within a row survive its normalization: those of counts 1, 2, … of one word."""
    X, _ = datasets.make_bag_of_words(300, 12, n_terms=8, random_state=0)
    frequency = np.bincount(X.indices, minlength=12)
    idf = np.log(300 / frequency)
    multiples = set()
    for i in range(300):
        row = X[i]
        used = idf[row.indices] > 0
        raw = row.data[used] / idf[row.indices][used]
        if raw.size < 2:
            continue
        # Eight words in all: counts of one word more than once, and of another once, in most rows.
        multiples.update(np.round(raw / raw.min(), 6))
    assert round(1 + np.log(2), 6) in multiples
    ones = [k for k in multiples if k != 1]
    allowed = [(1 + np.log(a)) / (1 + np.log(b)) for a in range(1, 9) for b in range(1, a)]
    assert all(np.min(np.abs(np.array(allowed) - k)) < 1e-5 for k in ones)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.make_g2c(1), "n_samples"),
        (lambda: datasets.make_g4c(10, 1), "n_features"),
        (lambda: datasets.make_moons(10, noise=-1), "noise"),
        (lambda: datasets.make_moons(10, noise=np.nan), "noise"),
        (lambda: datasets.make_mixture(10, n_centers=1), "n_centers"),
        (lambda: datasets.make_bag_of_words(10, n_terms=0), "n_terms"),
        (lambda: datasets.load_digits_pair(3, 3), "two different digits"),
        (lambda: datasets.load_digits_pair(3, 10), "two different digits"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_bundled_sets():
    X, y = datasets.load_digits_pair(8, 0)
    assert X.shape == (174 + 178, 64) and X.min() == 0 and X.max() == 1
    assert (y == 0).sum() == 174  # the eights come first
    X, y = datasets.load_breast_cancer_scaled()
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1)
    assert (y == 0).sum() == 212


# ---------------------------------------------------------------- hiding labels


def test_stratified_labels_keep_the_shares():
    y = np.repeat([5, 6, 7], [100, 60, 40])
    hidden = datasets.hide_labels(y, 20, random_state=0)
    kept = hidden != -1
    np.testing.assert_array_equal(hidden[kept], y[kept])
    assert np.bincount(hidden[kept])[5:].tolist() == [10, 6, 4]
    rare = datasets.hide_labels(np.repeat([0, 1], [99, 1]), 5, random_state=0)
    assert (rare == 1).sum() == 1 and (rare == 0).sum() == 4


@pytest.mark.parametrize("counts", [(990, 5, 5), (1, 1, 998), (500, 499, 1)])
@pytest.mark.parametrize("n_labeled", [3, 4, 10, 0.001, 0.02])
def test_stratified_labels_leave_no_class_out(counts, n_labeled):
    y = np.repeat(np.arange(3), counts)
    hidden = datasets.hide_labels(y, n_labeled, random_state=0)
    kept = np.flatnonzero(hidden != -1)
    np.testing.assert_array_equal(hidden[kept], y[kept])
    np.testing.assert_array_equal(np.unique(hidden[kept]), np.arange(3))
    assert kept.size == (n_labeled if n_labeled >= 1 else max(3, round(1000 * n_labeled)))


def test_random_labels_vary_in_their_share():
    y = np.repeat([0, 1], 50)
    shares = [
        (datasets.hide_labels(y, 10, stratified=False, random_state=s) == 1).sum()
        for s in range(40)
    ]
    assert len(set(shares)) >= 4 and abs(np.mean(shares) - 5) < 1


@pytest.mark.parametrize("unlabeled", [0, 1, 30, 70])
def test_a_share_is_one_of_the_labels_that_there_are(unlabeled):
    y = np.where(np.arange(100) < unlabeled, -1, np.arange(100) % 3)
    for share in (0.01, 0.1, 0.5, 0.9):
        hidden = datasets.hide_labels(y, share, random_state=0)
        assert np.sum(hidden != -1) == max(3, round(share * (100 - unlabeled)))


def test_hidden_labels_of_other_kinds():
    words = datasets.hide_labels(["spam", "ham"] * 5, 4, random_state=0)
    assert words.dtype == object and (words == -1).sum() == 6
    flags = datasets.hide_labels(np.array([True, False] * 5), 0.4, random_state=0)
    assert flags.dtype == np.int64 and (flags != -1).sum() == 4
    y = np.array([-1, 0, 1, 0, 1, -1])
    assert (datasets.hide_labels(y, 4, random_state=0) == y).all()
    for missing in (np.nan, None):
        there = [missing, 0, 1, 0, 1, missing]
        assert (datasets.hide_labels(there, 4, random_state=0) == y).all()


@pytest.mark.parametrize(
    ("y", "n_labeled", "message"),
    [
        ([-1, 1, -1, 1], 2, r"\{-1, \+1\}"),
        ([0, 1, 0, 1], 5, "exceeds"),
        ([0, 1, 0, 1], 1, "n_labeled"),
        ([0, 1, 0, 1], 2.5, "n_labeled"),
        ([[0, 1]], 2, "one-dimensional"),
        (np.array(["2020", "2021"] * 2, "M8[Y]"), 2, r"no -1 .*encode_labels"),
    ],
)
def test_impossible_labels_are_refused(y, n_labeled, message):
    with pytest.raises(ValueError, match=message):
        datasets.hide_labels(y, n_labeled)


def test_random_labels_of_one_class_are_refused():
    with pytest.raises(ValueError, match="one class only"):
        datasets.hide_labels([0] * 50 + [1], 2, stratified=False, random_state=0)


# ---------------------------------------------------------------- loading


def test_unknown_names_list_the_known_ones(no_folders):
    with pytest.raises(ValueError, match=r"a9a.*pcmac.*usps_a_b"):
        datasets.load("a9")
    with pytest.raises(ValueError, match="two different classes 1-20"):
        datasets.load("coil_3_3")
    with pytest.raises(ValueError, match="two different classes 0-9"):
        datasets.load("mnist_1_12")


def test_download_parses_checks_and_caches(tiny):
    bunch = datasets.load("toy", progress=False)
    assert tiny.requests == [URL]
    assert bunch.data.dtype == np.float32 and bunch.data.shape == (3, 4)
    np.testing.assert_array_equal(
        bunch.data.toarray(), [[0.5, 0, 2, 0], [0, -1.25, 0, 0], [1, 3, 0, 0]]
    )
    np.testing.assert_array_equal(bunch.target, [1, 0, 1])
    assert bunch.target_multi is None and bunch.splits == {} and "a toy." in bunch.DESCR
    assert [file.name for file in datasets.data_home().iterdir()] == ["toy.npz"]
    again = datasets.load("toy", download=False)
    assert len(tiny.requests) == 1
    np.testing.assert_array_equal(again.data.toarray(), bunch.data.toarray())


def test_download_shows_progress(tiny, capsys):
    datasets.load("toy")
    assert "toy.bz2" in capsys.readouterr().err


def test_other_content_from_the_host_is_refused(tiny):
    tiny.content = b"+1 1:0.5 3:2\n-1 2:-1.25\n+1 1:1 2:3.5\n"
    with pytest.raises(ValueError, match="checksum"):
        datasets.load("toy", progress=False)
    assert not datasets.data_home().exists()


def test_an_error_page_is_refused(tiny):
    tiny.content = b"<html>moved</html>"
    with pytest.raises(ValueError, match="cannot be read as toy"):
        datasets.load("toy", progress=False)


def test_truncated_download_is_refused(tiny):
    tiny.length = 10_000
    with pytest.raises(ConnectionError, match="of 10000 bytes"):
        datasets.load("toy", progress=False)


ANSWERS = {
    "an incomplete part": {"error": http.client.IncompleteRead(b"", 7)},
    "a bad status line": {"error": http.client.BadStatusLine("")},
    "a redirection to nowhere": {"error": ValueError("Invalid IPv6 URL")},
    "a broken connection": {"error": ConnectionResetError(104, "reset by peer")},
    "a length that is no number": {"length": "many"},
    "more than the set can be": {"content": bytes(1 << 20)},
}


@pytest.mark.parametrize("what", ANSWERS)
def test_whatever_a_host_answers_is_the_one_error(tiny, what):
    tiny.update(ANSWERS[what])
    with pytest.raises(ConnectionError, match=r"could not download toy from .*S3VM_LIB_DATA"):
        datasets.load("toy", progress=False)


def archive_of(part):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", part)
    return file.getvalue()


def matrix_of(part):
    file = io.BytesIO()
    scipy.io.savemat(file, {"X": np.frombuffer(part)}, do_compression=True)
    return file.getvalue()


PACKERS = {"bz2": bz2.compress, "gzip": gzip.compress, "zip": archive_of, "mat": matrix_of}


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_what_unpacks_to_more_than_the_set_is_refused_before_it_does(pack):
    source = _load.Source((3, 4), "", "")
    small, content = pack(bytes(1 << 10)), pack(bytes(1 << 26))
    _load.unpack(small, source)
    tracemalloc.start()
    with pytest.raises(ValueError, match="has more than 66016 bytes"):
        _load.unpack(content, source)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 23 or pack is matrix_of  # which is read by 128 packed kilobytes


def test_an_archive_in_the_cache_is_unpacked_no_further_than_the_set_goes(tiny):
    datasets.data_home().mkdir(parents=True)
    (datasets.data_home() / "toy.npz").write_bytes(archive_of(bytes(1 << 26)))
    with pytest.raises(ValueError, match=r"toy\.npz holds cannot be read as toy.*more than"):
        datasets.load("toy")


def test_threads_may_store_one_set(tiny, monkeypatch):
    both, save, failed = threading.Barrier(2, timeout=60), np.savez_compressed, []

    def slow(path, **arrays):
        both.wait()  # both have begun
        save(path, **arrays)
        both.wait()  # both have written

    def load():
        try:
            datasets.load("toy", progress=False)
        except Exception as error:
            failed.append(error)

    monkeypatch.setattr(_load.np, "savez_compressed", slow)
    threads = [threading.Thread(target=load) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed
    assert [file.name for file in datasets.data_home().iterdir()] == ["toy.npz"]
    datasets.load("toy", download=False)


def test_a_damaged_file_in_the_cache_is_refused(tiny):
    datasets.load("toy", progress=False)
    file = datasets.data_home() / "toy.npz"
    with np.load(file) as stored:
        arrays = dict(stored)
    arrays["data"][0] += 1
    np.savez_compressed(file, **arrays)
    with pytest.raises(ValueError, match=r"toy\.npz.*checksum"):
        datasets.load("toy")


@pytest.mark.parametrize("what", ["cut off", "empty", "text", "another key", "one array"])
def test_a_file_that_cannot_be_read_is_named(tiny, what):
    datasets.load("toy", progress=False)
    file = datasets.data_home() / "toy.npz"
    content = file.read_bytes()
    if what == "another key":
        np.savez(file, rows=np.eye(3), y=np.ones(3))
    elif what == "one array":
        with file.open("wb") as opened:
            np.save(opened, np.eye(3))
    else:
        file.write_bytes({"cut off": content[:-30], "empty": b"", "text": b"moved"}[what])
    with pytest.raises(ValueError, match=r"toy\.npz holds cannot be read as toy: \w+, ."):
        datasets.load("toy")


def test_offline_message_names_the_ways_out(tiny, monkeypatch):
    def offline(request, timeout):
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr(_load.urllib.request, "urlopen", offline)
    with pytest.raises(ConnectionError, match=r"toy.*csie.*S3VM_LIB_DATA.*make_"):
        datasets.load("toy", progress=False)
    with pytest.raises(FileNotFoundError, match="download=True"):
        datasets.load("toy", download=False)


def test_sets_without_a_host_say_so(no_folders):
    with pytest.raises(FileNotFoundError, match=r"g50c.*no public host.*S3VM_LIB_DATA"):
        datasets.load("g50c")


def test_the_folder_comes_before_the_cache(tiny, monkeypatch, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    X = np.array([[0.5, 0, 2, 0], [0, -1.25, 0, 0], [1, 3, 0, 0]], dtype=np.float32)
    S = sp.csr_matrix(X)
    np.savez(
        folder / "toy.npz",
        data=S.data,
        indices=S.indices,
        indptr=S.indptr.astype(np.int64),
        shape=np.array(S.shape),
        y=np.array([1, -1, 1], dtype=np.int8),
    )
    monkeypatch.setenv("S3VM_LIB_DATA", str(folder))
    np.testing.assert_array_equal(datasets.load("toy").data.toarray(), X)
    assert tiny.requests == []


def test_unlabeled_rows_become_minus_one(no_folders, monkeypatch):
    X = np.arange(8.0).reshape(4, 2)
    arrays = {"X": X, "y": np.array([1, 0, -1, 0]), "lab2": np.array([[0, 2]])}
    source = _load.Source((4, 2), "", "half labeled.")
    packed = _load.canonical(arrays, source)
    source = _load.Source((4, 2), _load.array_checksum(packed), "half labeled.")
    monkeypatch.setitem(_load.SOURCES, "half", source)
    datasets.data_home().mkdir(parents=True)
    np.savez(datasets.data_home() / "half.npz", **arrays)
    bunch = datasets.load("half")
    np.testing.assert_array_equal(bunch.target, [1, -1, 0, -1])
    np.testing.assert_array_equal(bunch.splits["lab2"], [[0, 2]])


# ---------------------------------------------------------------- parsers and checksums


def test_checksums_depend_on_every_array_but_not_on_storage():
    source = _load.Source((2, 3), "", "")
    X = np.array([[0.0, 1.5, 0], [2, 0, -0.0]])
    y = np.array([1, -1])

    def digest(**arrays):
        return _load.array_checksum(_load.canonical(arrays, source))

    reference = digest(X=X, y=y)
    assert digest(X=np.asfortranarray(X), y=y.astype(float)) == reference
    unsorted = sp.csr_matrix(([0.0, 1.5, 2.0], [2, 1, 0], [0, 2, 3]), shape=(2, 3))
    assert digest(X=unsorted, y=y) == digest(X=sp.csr_matrix(X), y=y) != reference
    assert digest(X=X + [[0, 0, 0], [0, 1e-6, 0]], y=y) != reference
    assert digest(X=X, y=-y) != reference
    assert digest(X=X, y=y, lab2=[[0, 1]]) != digest(X=X, y=y, lab2=[[1, 0]])


def parsed(name, *files):
    return _load.PARSERS[name](files, None)


def test_svmlight_parser_takes_the_named_label_as_positive_and_makes_rows_dense():
    source = _load.Source((2, 3), "", "", parser="svmlight", positive=2, dense=True)
    arrays = _load.PARSERS["svmlight"]([b"2 1:0.5\n1 3:4\n"], source)
    assert arrays["y"].tolist() == [1, -1] and arrays["X"].tolist() == [[0.5, 0, 0], [0, 0, 4]]


def test_usps_parser_restores_digits_and_grey_levels():
    arrays = parsed("usps", b"7 1:-1 2:-0.999 256:1\n1 1:0.5\n")
    assert arrays["y_multi"].tolist() == [6, 0] and arrays["y"].tolist() == [1, -1]
    X = _load.canonical(arrays, _load.SOURCES["usps"])["X"]
    np.testing.assert_array_equal(X[0, [0, 1, 255]], np.float32([0, 0.0005, 1]))


def test_idx_parser():
    images = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    head = bytes([0, 0, 8, 3]) + np.array([2, 3, 3], dtype=">i4").tobytes()
    labels = bytes([0, 0, 8, 1]) + np.array([2], dtype=">i4").tobytes() + bytes([4, 9])
    arrays = parsed("mnist", head + images.tobytes(), labels)
    np.testing.assert_array_equal(arrays["X"], images.reshape(2, 9))
    assert arrays["y_multi"].tolist() == [4, 9] and arrays["y"].tolist() == [-1, 1]


def test_ssl_book_parser():
    def mat(**arrays):
        file = io.BytesIO()
        scipy.io.savemat(file, arrays)
        return file.getvalue()

    X = np.array([[1.0, 0], [0, 2], [3, 0]])
    splits = mat(idxLabs=np.array([[1, 3]]))
    two = parsed("ssl_book", mat(X=sp.csc_matrix(X), y=[[1], [-1], [1]]), splits)
    np.testing.assert_array_equal(two["X"].toarray(), X)
    assert two["y"].tolist() == [1, -1, 1] and two["lab2"].tolist() == [[0, 2]]
    many = parsed("ssl_book", mat(X=X, y=[[0], [3], [5]]))
    assert many["y"].tolist() == [-1, 1, 1] and many["y_multi"].tolist() == [0, 3, 5]


def test_uci_parsers():
    skin = parsed("skin", b"74\t85\t123\t1\n10\t11\t12\t2\n")
    assert skin["X"].tolist() == [[74, 85, 123], [10, 11, 12]] and skin["y"].tolist() == [1, -1]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("dota2Test.csv", "-1,3,0,0\n1,0,0,2\n")
        archive.writestr("dota2Train.csv", "1,7,0,-1\n-1,0,0,0\n")
    dota = parsed("dota2", file.getvalue())
    assert dota["y"].tolist() == [1, -1, -1, 1]
    assert dota["X"].toarray().tolist() == [[7, 0, -1], [0, 0, 0], [3, 0, 0], [0, 0, 2]]


def test_resizing_keeps_the_mean_and_whole_blocks():
    images = np.random.default_rng(0).random((3, 32 * 32))
    small = _load._resize(images, 32, 20)
    assert small.shape == (3, 400)
    np.testing.assert_allclose(small.mean(axis=1), images.mean(axis=1))
    blocks = images.reshape(3, 16, 2, 16, 2).mean(axis=(2, 4)).reshape(3, 256)
    np.testing.assert_allclose(_load._resize(images, 32, 16), blocks)


def test_the_catalogue_is_complete():
    checksums = [source.checksum for source in _load.SOURCES.values()]
    assert len(set(checksums)) == len(checksums)
    for name, source in _load.SOURCES.items():
        assert len(source.checksum) == len(hashlib.sha256().hexdigest()), name
        assert source.parser in (_load.PARSERS if source.urls else [""]), name
        assert source.description.endswith((".", "labels.")), name


# ---------------------------------------------------------------- real files, where present


@needs_data
@pytest.mark.parametrize("name", ["a1a", "g50c", "usps_t", "ssl_coil", "svmlin_example_train"])
def test_real_sets(name):
    if not (Path(DATA) / f"{name}.npz").is_file():
        pytest.skip(f"{name}.npz is not in S3VM_LIB_DATA")
    bunch = datasets.load(name, download=False)
    source = _load.SOURCES[name]
    assert bunch.data.shape == tuple(source.shape) and len(bunch.target) == source.shape[0]
    assert set(np.unique(bunch.target)) <= {-1, 0, 1}
    for key, rows in bunch.splits.items():
        assert rows.shape[1] == int(key[3:])
        assert rows.min() >= 0 and rows.max() < source.shape[0]


@needs_data
@pytest.mark.parametrize(
    ("name", "shape", "files"),
    [
        ("usps_8_0", (2261, 256), ("usps", "usps_t")),
        ("coil_3_6", (144, 400), ("coil20",)),
        ("pcmac", (1946, 7511), ("text_lds",)),
    ],
)
def test_real_pairs(name, shape, files):
    for file in files:
        if not (Path(DATA) / f"{file}.npz").is_file():
            pytest.skip(f"{file}.npz is not in S3VM_LIB_DATA")
    bunch = datasets.load(name, download=False)
    assert bunch.data.shape == shape
    assert bunch.data.min() >= 0 and bunch.data.max() <= 1
    if bunch.target_multi is not None:
        first, second = (int(v) for v in name.split("_")[1:])
        assert set(bunch.target_multi[bunch.target == 0]) == {first}
        assert set(bunch.target_multi[bunch.target == 1]) == {second}


def test_the_second_number_of_a_pair_is_the_positive_class(monkeypatch):
    multi = np.array([3, 5, 8, 3, 8])
    stored = Bunch(data=np.eye(5), target_multi=multi, DESCR="five digits")
    monkeypatch.setattr(_load, "load", lambda part, **options: stored)
    for a, b in ((3, 8), (8, 3)):
        bunch = _load._load_pair("mnist", str(a), str(b))
        np.testing.assert_array_equal(bunch.target_multi, [3, 8, 3, 8])
        np.testing.assert_array_equal(bunch.target, bunch.target_multi == b)
        assert bunch.data.dtype == np.float32
        assert bunch.data.max() == np.float32(1 / 255)
