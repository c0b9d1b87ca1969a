"""The only place that imports numba: ``njit``, with a cache that cannot go stale.

numba's on-disk cache looks at the file of the decorated function alone: when a function that it
*calls* changes in another module, the caller keeps serving the old machine code. ``njit`` therefore
points the cache, while decorating, at a directory whose name is a hash of all sources of the
library, numba's version and the processor. Without numba the decorator returns the function
unchanged, and the library runs slowly and correctly.
"""

import hashlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

try:
    import numba
except ImportError:
    numba = None

HAVE_NUMBA = numba is not None
_CACHE_DAYS = 14


def _cache_root():
    """Directory below which the caches of all versions of the library live."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"]) / "s3vm_lib"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "s3vm_lib" / "numba"


def _cache_key():
    """Hash of every source file of the library, numba's version, processor and bounds checking."""
    import llvmlite.binding

    digest = hashlib.sha256()
    package = Path(__file__).parent
    for source in sorted(package.rglob("*.py")):
        digest.update(source.relative_to(package).as_posix().encode())
        digest.update(source.read_bytes())
    for fact in (numba.__version__, llvmlite.binding.get_host_cpu_name(), sys.version):
        digest.update(fact.encode())
    # Machine code with and without bounds checks must never share a directory.
    digest.update(str(numba.config.BOUNDSCHECK).encode())
    return digest.hexdigest()[:16]


def _prune(root):
    """Delete the caches of versions of the library that were last used long ago."""
    oldest = time.time() - _CACHE_DAYS * 86400
    for directory in root.iterdir():
        if directory.is_dir() and directory.stat().st_mtime < oldest:
            shutil.rmtree(directory, ignore_errors=True)


def _make_cache_directory():
    for root in (_cache_root(), Path(tempfile.gettempdir()) / "s3vm_lib-numba"):
        directory = root / _cache_key()
        try:
            if not directory.is_dir():
                directory.mkdir(parents=True, exist_ok=True)
                _prune(root)
            os.utime(directory)
            if os.access(directory, os.W_OK):
                return directory
        except OSError:
            continue  # a read-only home: try the next root
    return None


CACHE_DIRECTORY = _make_cache_directory() if HAVE_NUMBA else None


def njit(function=None, **options):
    """``numba.njit`` with caching in the library's own directory and NumPy's division rules.

    Parameters
    ----------
    function : callable, optional
        The function to compile, when used as ``@njit`` or ``njit(f, cache=True)``.
    **options
        Passed to ``numba.njit``. Defaults: ``cache=True`` where a cache directory is writable and
        ``error_model="numpy"`` (division by zero gives inf or NaN, so that loops vectorize).

    Returns
    -------
    callable
        The compiled function, the function itself without numba, or a decorator when called
        without a function.
    """
    if function is None:
        return lambda f: njit(f, **options)
    if not HAVE_NUMBA:
        return function
    options.setdefault("cache", CACHE_DIRECTORY is not None)
    options.setdefault("error_model", "numpy")
    if not options["cache"] or CACHE_DIRECTORY is None:
        options["cache"] = False
        return numba.njit(**options)(function)
    # numba reads the setting when a function is decorated, not when it is compiled.
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(CACHE_DIRECTORY)
    try:
        return numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = previous
