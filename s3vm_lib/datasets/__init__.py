"""Data sets: generators, scikit-learn's bundled sets, and the benchmark sets of the literature.

The generators and the bundled sets need no download and follow scikit-learn's conventions: they
return ``(X, y)`` with every label known, and `hide_labels` turns y into a semi-supervised target
(−1 = unlabeled). `load` fetches a benchmark set by name from a folder, from the cache or from its
public host.
"""

from s3vm_lib.datasets._generators import hide_labels as hide_labels
from s3vm_lib.datasets._generators import load_breast_cancer_scaled as load_breast_cancer_scaled
from s3vm_lib.datasets._generators import load_digits_pair as load_digits_pair
from s3vm_lib.datasets._generators import make_bag_of_words as make_bag_of_words
from s3vm_lib.datasets._generators import make_g2c as make_g2c
from s3vm_lib.datasets._generators import make_g4c as make_g4c
from s3vm_lib.datasets._generators import make_g50c as make_g50c
from s3vm_lib.datasets._generators import make_mixture as make_mixture
from s3vm_lib.datasets._generators import make_moons as make_moons
from s3vm_lib.datasets._load import data_home as data_home
from s3vm_lib.datasets._load import load as load
from s3vm_lib.datasets._sources import names as names

__all__ = [name for name in dir() if not name.startswith("_")]
