"""Print versions: the last cell of every chapter, and the first question about an error."""

import platform
import sys
from importlib import metadata

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "matplotlib")


def show_versions():
    """Print the versions of Python, this library and what it stands on.

    Packages that are not installed are named, too.

    Examples
    --------
    >>> import s3vm_lib
    >>> s3vm_lib.show_versions()  # doctest: +ELLIPSIS
    s3vm_lib 0.1.0
    ...
    """
    package = sys.modules[__name__.partition(".")[0]]  # this library, above this module
    print("s3vm_lib", package.__version__)
    for package in PACKAGES:
        try:
            print(package, metadata.version(package))
        except metadata.PackageNotFoundError:
            print(package, "is not installed")
    print("Python", platform.python_version(), "on", platform.machine())
