"""Compile the library, and let matplotlib build its font cache.

A first import of matplotlib and a first fit are slow and may write to stderr, which a notebook
would record; and processes that fill one numba cache at the same time get in each other's way. So
the tests, the notebooks and Binder's image all begin with this script.
"""

import matplotlib.font_manager  # noqa: F401  (building the font cache is what is wanted)

import s3vm_lib

if __name__ == "__main__":
    print(f"Warmed the numba cache in {s3vm_lib.compile():.1f} s.")
