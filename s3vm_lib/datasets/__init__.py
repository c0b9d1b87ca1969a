"""Data sets: generators, scikit-learn's bundled sets, and the benchmark sets of the literature.

The generators and the bundled sets need no download and follow scikit-learn's conventions: they
return ``(X, y)`` with every label known, and `hide_labels` turns y into a semi-supervised target
(−1 = unlabeled). `load` fetches a benchmark set by name from a folder, from the cache or from its
public host.
"""

from s3vm_lib.datasets._load import data_home, load, names

from s3vm_lib.datasets._generators import (  # isort: skip
    hide_labels, load_breast_cancer_scaled, load_digits_pair, make_bag_of_words, make_g2c, make_g4c,
    make_g50c, make_mixture, make_moons,
)  # fmt: skip

__all__ = [
    "data_home", "hide_labels", "load", "load_breast_cancer_scaled", "load_digits_pair",
    "make_bag_of_words", "make_g2c", "make_g4c", "make_g50c", "make_mixture", "make_moons", "names",
]  # fmt: skip
