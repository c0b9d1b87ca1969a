"""Compile with numba, which nothing else imports: ``njit``, with a cache that cannot go stale.

numba's on-disk cache looks at the file of the decorated function alone: when a function that it
*calls* changes in another module, the caller keeps serving the old machine code. ``njit`` therefore
points the cache, while decorating, at a directory whose name is a hash of the function's module, of
the modules of the library that it imports, directly or through others, and of numba's version. An
edit recompiles what it can have changed and nothing else. Without numba the decorator returns the
function unchanged, and the library runs slowly and correctly.

What makes a first call slow is that numba optimizes and translates every function for itself, with
all that it calls inside, and then again inside of each of its callers. Here a function that is
called by compiled code is handed to its caller as it was written, and optimized once, with the
caller; machine code, and a place on the disk, is for what Python calls.
"""

import contextlib
import functools
import gc
import hashlib
import inspect
import logging
import os
import re
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
_USER = os.getuid() if hasattr(os, "getuid") else 0  # Windows: every file has 0
_PATIENCE = 2.0  # seconds of compiling in one process after which a message appears
_NOTICE = (
    "s3vm_lib is compiling, which takes some seconds and is done once; "
    "`python -m s3vm_lib.compile` does it for all estimators ahead of time"
)
_log = logging.getLogger("s3vm_lib")
_PACKAGE = Path(__file__).resolve().parents[1]
_IMPORT = re.compile(
    rf"^[ \t]*(?:from[ ]+({_PACKAGE.name}[\w.]*)[ ]+import[ ]+(\([^)]*\)|[^\n]*)"
    rf"|import[ ]+({_PACKAGE.name}[\w.]*))",
    re.MULTILINE,
)


def _cache_root():
    """Return the directory that holds the caches of all versions of the library."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"]) / "s3vm_lib"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "s3vm_lib" / "numba"


def _source(module):
    """Return the file of a module of the library, given by its dotted name, or None."""
    path = _PACKAGE.joinpath(*module.split(".")[1:])
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


@functools.cache
def _imports(file):
    """Return the files of the library that a file imports, by the text of its imports."""
    found = set()
    for module, names, plain in _IMPORT.findall(file.read_text(encoding="utf-8")):
        if plain:
            found.add(_source(plain))
            continue
        for name in re.findall(r"\w+", re.sub(r"\bas\s+\w+|#.*", "", names)):
            # A name is a module, or lives in what stands before it.
            found.add(_source(f"{module}.{name}") or _source(module))
    return found - {None}


def _dependencies(file):
    """List the file and all files of the library that it imports, directly or through others."""
    seen, waiting = set(), [file]
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting.extend(_imports(one))
    return sorted(seen)


@functools.cache
def _digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


@functools.cache
def _cache_key(file):
    """Hash a file, what it imports, numba's version and whether bounds are checked.

    The processor is part of the index that numba keeps inside the directory.
    """
    # Machine code with and without bounds checks must never share a directory.
    facts = [numba.__version__, sys.version, str(numba.config.BOUNDSCHECK)]
    for one in _dependencies(file):
        facts += [one.name, _digest(one)]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]


def _prune(root):
    """Delete the caches of sources that were last used long ago."""
    oldest = time.time() - _CACHE_DAYS * 86400
    for directory in root.iterdir():
        if directory.is_dir() and directory.stat().st_mtime < oldest:
            shutil.rmtree(directory, ignore_errors=True)


@functools.cache
def _cache_directory(file):
    """Return the directory for the machine code of a source file; None if none can be written.

    What another user owns is left alone: whoever writes machine code decides what it does.
    """
    for root in (_cache_root(), Path(tempfile.gettempdir()) / f"s3vm_lib-numba-{_USER}"):
        directory = root / f"{file.stem}-{_cache_key(file)}"
        try:
            root.mkdir(parents=True, exist_ok=True)
            if any(one.lstat().st_uid != _USER for one in (root, directory) if one.exists()):
                continue
            if not directory.is_dir():
                directory.mkdir(exist_ok=True)
                _prune(root)
            os.utime(directory)
            if os.access(directory, os.W_OK):
                return directory
        except OSError:
            continue  # a read-only home: try the next root
    return None


# --- How a function is compiled -------------------------------------------------------------------

_spent = [0.0]  # seconds of compiling in this process; empty once the message has appeared
if os.environ.get("S3VM_LIB_QUIET", "0") not in ("", "0"):
    _spent.clear()


def _account(seconds):
    """Say once in a process that time goes into compiling."""
    if _spent:
        _spent[0] += seconds
        if _spent[0] > _PATIENCE:
            _spent.clear()
            _log.warning(_NOTICE)


@contextlib.contextmanager
def no_notice():
    """Suppress the notice, for compiling that was asked for."""
    before = _spent[:]
    _spent.clear()
    try:
        yield
    finally:
        _spent[:] = before


if HAVE_NUMBA:
    from numba.core.codegen import CPUCodegen, JITCodeLibrary
    from numba.core.compiler import Compiler, Flags

    # What `_Part` overrides or leaves out is not part of numba's documented interface; where a
    # version of numba has something else in its place, its own way of compiling is taken.
    _KNOWN = {
        "_optimize_functions",
        "_optimize_final_module",
        "_finalize_final_module",
        "_get_module_for_linking",
    }
    # Before llvmlite's new pass managers these were made for one module.
    _MANAGER = inspect.signature(getattr(CPUCodegen, "_function_pass_manager", len)).parameters
    _PARTS = _KNOWN <= set(dir(JITCodeLibrary)) and list(_MANAGER) == ["self", "kwargs"]

    _IDLE = {"with_lifting", "inline_closure_likes", "inline_overloads", "nopython_rewrites"}

    class _WithoutEnvironment:
        """The code generator, but that machine code of a `_Part` has no variables to be set."""

        def __init__(self, codegen):
            self._codegen = codegen

        def __getattr__(self, name):
            return getattr(self._codegen, name)

        def set_env(self, env_name, env):
            pass

    class _Part(JITCodeLibrary):
        """What is compiled in order to be linked into its callers, and optimized there."""

        @property
        def codegen(self):
            return _WithoutEnvironment(self._codegen)

        def _optimize_functions(self, ll_module):
            # What it only declares needs no passes, and one set of passes serves all the others.
            ll_module.data_layout = self._codegen._data_layout
            passes, builder = self._codegen._function_pass_manager()
            for function in ll_module.functions:
                if not function.is_declaration:
                    passes.run(function, builder)

        def _get_module_for_linking(self):
            # Nothing else is done with this module: no need for a copy.
            if self._shared_module is None:
                for function in self._final_module.functions:
                    if not function.is_declaration and function.linkage.name == "external":
                        function.linkage = "linkonce_odr"
                self._shared_module = self._final_module
            return self._shared_module

        def _optimize_final_module(self):
            pass

        def _finalize_final_module(self):
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name):
            return 0

    _SAME = hash(Flags())  # numba hashes the names of the options alone

    class _Flags(Flags):
        """The options of one function, which numba compares thousands of times, by what was set."""

        __slots__ = ()

        def __eq__(self, other):
            same = isinstance(other, _Flags) and self._values == other._values
            return same or super().__eq__(other)

        def __hash__(self):
            return _SAME

    @contextlib.contextmanager
    def _no_collection():
        """Switch the garbage collector off: it costs a tenth, and finds nothing until the end."""
        collects = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if collects:
                gc.enable()

    class _Lean(Compiler):
        """A compiler without the passes for closures, which this library does not have."""

        def define_pipelines(self):
            managers = super().define_pipelines()
            for manager in managers:
                manager.passes[:] = [one for one in manager.passes if one[0].name() not in _IDLE]
            return managers

        def compile_extra(self, func):
            self.state.flags = _Flags(self.state.flags)
            return super().compile_extra(func)

    class _Inner(_Lean):
        """Compiles a function that is called by compiled code."""

        def compile_extra(self, func):
            self.state.library = _Part(self.state.targetctx.codegen(), func.__qualname__)
            return super().compile_extra(func)

    class _Entry(_Lean):
        """Compiles a function that is called by Python, and numba's own that it calls as parts."""

        def compile_extra(self, func):
            start = time.perf_counter()
            codegen = self.state.targetctx.codegen()
            before = getattr(codegen, "_library_class", None)
            if _PARTS and before is not None:
                self.state.library = codegen.create_library(func.__qualname__)
                self.state.library.enable_object_caching()
                codegen._library_class = _Part  # numba holds its lock while it compiles
            try:
                with _no_collection():
                    return super().compile_extra(func)
            finally:
                if before is not None:
                    codegen._library_class = before
                _account(time.perf_counter() - start)


def _compiled(function, cache, options):
    """Make the dispatcher of a function, and within it the one for compiled callers."""
    if numba.config.DISABLE_JIT:
        return function
    options.setdefault("no_cfunc_wrapper", True)
    entry = numba.njit(cache=cache, pipeline_class=_Entry, **options)(function)
    if _PARTS and options.get("inline", "never") == "never":

        @functools.cache
        def inner():
            own = options | {"no_cpython_wrapper": True}
            return numba.njit(cache=False, pipeline_class=_Inner, **own)(function)

        def get_call_template(args, kws):
            # numba compiles a function for each constant with which it is called: once will do
            args = tuple(map(numba.types.unliteral, args))
            kws = {name: numba.types.unliteral(kind) for name, kind in kws.items()}
            return inner().get_call_template(args, kws)

        entry.get_call_template = get_call_template
        entry.get_overload = lambda sig: inner().get_overload(sig)
    return entry


def as_written(function):
    """Return the Python function inside of a compiled one, for few calls."""
    return getattr(function, "py_func", function)


def njit(function=None, **options):
    """Compile with ``numba.njit``, the library's own cache and NumPy's division rules.

    Parameters
    ----------
    function : callable, optional
        The function to compile, when used as ``@njit`` or ``njit(f, cache=True)``.
    **options
        Passed to ``numba.njit``. Defaults: ``cache=True`` where a cache directory is writable,
        ``error_model="numpy"`` (division by zero gives inf or NaN, so that loops vectorize), and
        ``nogil=True``.

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
    options.setdefault("error_model", "numpy")
    options.setdefault("nogil", True)  # so that threads can run compiled code side by side
    # numba lets a function inherit this of the caller for which it is compiled first in a process:
    # its last digits would depend on what is on the disk already.
    options.setdefault("fastmath", False)
    file = Path(function.__code__.co_filename)
    directory = None
    if options.pop("cache", True) and file.is_file():  # a notebook's cell has no file
        directory = _cache_directory(file.resolve())
    if directory is None:
        return _compiled(function, False, options)
    # numba reads the setting when a function is decorated, not when it is compiled.
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(directory)
    try:
        return _compiled(function, True, options)
    finally:
        numba.config.CACHE_DIR = previous
