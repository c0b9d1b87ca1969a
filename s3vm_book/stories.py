"""Data of the true stories: documents and features of frozen encoders, spectra, patients, cells."""

import gzip
import io
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats
from sklearn.datasets import load_diabetes
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

from s3vm_book.tables import FOLDER
from s3vm_lib.exchange.readers import read_pin

CARD = (  # intents of BANKING77 that are about the card as a thing
    "activate_my_card card_about_to_expire card_acceptance card_arrival card_delivery_estimate "
    "card_linking card_not_working card_swallowed change_pin compromised_card "
    "contactless_not_working disposable_card_limits get_disposable_virtual_card get_physical_card "
    "getting_spare_card getting_virtual_card lost_or_stolen_card order_physical_card pin_blocked "
    "virtual_card_not_working visa_or_mastercard"
)
URGENT = (  # those in which money or a card may be in a stranger's hands
    "card_payment_not_recognised card_swallowed cash_withdrawal_not_recognised compromised_card "
    "direct_debit_payment_not_recognised lost_or_stolen_card lost_or_stolen_phone "
    "transaction_charged_twice"
)
#: For each question to the texts: the texts, and the labels that are class 1.
QUESTIONS = {
    "card": ("banking", CARD.split()),
    "urgent": ("banking", URGENT.split()),
    "spam": ("messages", ["spam"]),
    "praise": ("reviews", ["1"]),
}
ENCODERS = ("tf-idf", "wordllama", "e5")
#: Names of the types of cells in the file, and ours, from the most frequent to the rarest.
TYPES = {
    "Dendritic": "dendritic",
    "CD14+ Monocyte": "monocyte",
    "CD19+ B": "B",
    "CD4+/CD25 T Reg": "regulatory T",
    "CD8+ Cytotoxic T": "cytotoxic T",
    "CD8+/CD45RA+ Naive Cytotoxic": "naive cytotoxic T",
    "CD56+ NK": "natural killer",
    "CD4+/CD45RO+ Memory": "memory T",
    "CD34+": "stem cell",
    "CD4+/CD45RA+/CD25- Naive T": "naive helper T",
}
COMPONENTS = 50  # of the genes
KEPT_HIDDEN = 3  # cells of each type at least


@dataclass(frozen=True)
class Documents:
    """Texts with a class, and their features.

    Attributes
    ----------
    texts : list of str
    y : ndarray of shape (n,)
        1 or 0.
    X : ndarray or CSR matrix of shape (n, d)
        Features with a mean variance, or mean square, of 1; those of an encoder are centred.
    """

    texts: list
    y: np.ndarray
    X: object


def documents(question, encoder="e5"):
    """Texts of one question as rows.

    Parameters
    ----------
    question : {"card", "urgent", "spam", "praise"}
        Is a bank's customer asking about the card; is it urgent; is the message spam; does the
        reviewer praise?
    encoder : {"e5", "wordllama", "tf-idf"}, default="e5"
        The first two are stored, tf-idf is computed from the texts.

    Returns
    -------
    Documents
    """
    for name, value, allowed in (
        ("question", question, QUESTIONS),
        ("encoder", encoder, ENCODERS),
    ):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
    name, positive = QUESTIONS[question]
    texts = _strings(f"{name}_texts")
    y = np.isin(_strings(f"{name}_labels"), positive).astype(int)
    if encoder == "tf-idf":
        X = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(texts)
        return Documents(texts, y, X / np.sqrt(X.multiply(X).mean()))
    X = _file()[f"{name}_{encoder}"] * _file()[f"{name}_{encoder}_factor"]
    X = X - X.mean(axis=0)
    return Documents(texts, y, (X / X.std()).astype(float))


def spectra(name):
    """Spectra matched to peptides, as a Percolator input file holds them.

    Parameters
    ----------
    name : {"yeast", "masked"}
        Yeast by SEQUEST, the example of Percolator; spectra with masked names, a test of mokapot.

    Returns
    -------
    Table
        As `s3vm_lib.exchange.readers.read_pin` gives it.
    """
    return read_pin(io.BytesIO(pin_file(name)))


def pin_file(name):
    """The bytes of one of these files."""
    return gzip.decompress((FOLDER / "data" / f"{name}.pin.gz").read_bytes())


def is_shuffled(table):
    """Which rows name shuffled proteins only, so that they are wrong though they are no decoys.

    Parameters
    ----------
    table : Table

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    names = table.extra["Proteins"]
    return np.array([all(name.startswith("mimic|") for name in row) for row in names])


def patients():
    """The diabetes table of scikit-learn, with a class in place of its measure.

    Returns
    -------
    raw : DataFrame of shape (442, 11)
        The columns of the visit, and the measure a year later, ``target``.
    X : ndarray of shape (442, 10)
        The columns of the visit, standardized.
    y : ndarray of shape (442,)
        Whether the measure is above the median.
    """
    raw = load_diabetes(as_frame=True, scaled=False).frame
    measure = raw["target"]
    X = StandardScaler().fit_transform(raw.drop(columns="target").to_numpy())
    return raw, X, (measure > measure.median()).astype(int).to_numpy()


@dataclass(frozen=True)
class Cells:
    """Blood cells with a type, and the molecules that were counted in them.

    Attributes
    ----------
    counts : ndarray of shape (700, 765)
        Molecules of each gene.
    totals : ndarray of shape (700,)
        Molecules of all genes, of which the 765 are a part.
    genes : list of str
    y : ndarray of shape (700,)
        Types, numbered as in `TYPES`.
    X : ndarray of shape (700, 50)
        Principal components of the standardized logarithms.
    place : ndarray of shape (700, 2)
        On a map (UMAP) that knows no types.
    """

    counts: np.ndarray
    totals: np.ndarray
    genes: list
    y: np.ndarray
    X: np.ndarray
    place: np.ndarray


def cells():
    """Blood cells as rows.

    Returns
    -------
    Cells
    """
    file = _file("cells")
    counts, totals = (file[name].astype(int) for name in ("counts", "totals"))
    names = list(TYPES)
    y = np.array([names.index(name) for name in _strings("types", "cells")])
    rows = StandardScaler().fit_transform(np.log1p(1e4 * counts / totals[:, None])).clip(-10, 10)
    X = PCA(COMPONENTS, svd_solver="full").fit_transform(rows)
    return Cells(counts, totals, _strings("genes", "cells"), y, X, file["place"])


def label_each(truth, labels, random_state):
    """Keep some labels of each class, and mark all other rows as unlabeled (−1).

    Parameters
    ----------
    truth : ndarray of shape (n,)
        Class indices.
    labels : int
        Labels of each class; fewer where otherwise fewer than three of its rows were hidden.
    random_state : int

    Returns
    -------
    ndarray of shape (n,)
    """
    rng = np.random.default_rng(random_state)
    y = np.full(len(truth), -1)
    for k in range(truth.max() + 1):
        rows = np.flatnonzero(truth == k)
        y[rng.choice(rows, min(labels, len(rows) - KEPT_HIDDEN), replace=False)] = k
    return y


@cache
def _file(name="documents"):
    with np.load(FOLDER / "data" / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def _strings(name, file="documents"):
    return _file(file)[name].tobytes().decode().split("\0")


def find(rows, **key):
    """The result of the row of a stored benchmark that has these entries.

    Parameters
    ----------
    rows : list of dict
        As `s3vm_book.stored` gives them.
    **key
        Entries of the row.

    Returns
    -------
    dict or None
        None if it has not been measured.
    """
    found = [one["result"] for one in rows if all(one["row"].get(k) == v for k, v in key.items())]
    return found[0] if found else None


@dataclass(frozen=True)
class Difference:
    """Mean difference of pairs, half the width of its 95 % interval, and what that says.

    Attributes
    ----------
    mean, half : float
    verdict : {"win", "tie", "loss"}
        A tie where the interval holds 0.
    """

    mean: float
    half: float
    verdict: str

    def __str__(self):
        return f"{self.mean:+.1f} ± {self.half:.1f}, {self.verdict}"


def difference(ours, theirs, larger_is_better=False):
    """Compare two methods by the same draws.

    Parameters
    ----------
    ours, theirs : sequence of float
        A value a draw, in the same order.
    larger_is_better : bool, default=False

    Returns
    -------
    Difference
        Of ours minus theirs, with Student's interval over the draws.
    """
    gaps = np.subtract(ours, theirs)
    mean = float(gaps.mean())
    half = float(stats.t.ppf(0.975, gaps.size - 1) * gaps.std(ddof=1) / gaps.size**0.5)
    gain = mean if larger_is_better else -mean
    verdict = "tie" if abs(mean) <= half else "win" if gain > 0 else "loss"
    return Difference(mean, half, verdict)
