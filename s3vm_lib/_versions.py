"""Print versions: the last cell of every chapter, and the first question about an error."""

import platform
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
    import s3vm_lib

    print("s3vm_lib", s3vm_lib.__version__)
    for package in PACKAGES:
        try:
            print(package, metadata.version(package))
        except metadata.PackageNotFoundError:
            print(package, "is not installed")
    print("Python", platform.python_version(), "on", platform.machine())
