"""The benchmark sets of the literature: fetched by name from a folder, the cache or their host."""

from s3vm_book.benchmark_sets._load import data_home, load
from s3vm_book.benchmark_sets._sources import names

__all__ = ["data_home", "load", "names"]
