"""Semi-supervised support vector machines: every solver of the book, as scikit-learn estimators."""

import importlib
import importlib.util

__version__ = "0.1.0"

# The stub names every public name once. A name is imported when it is first asked for, so that
# `import s3vm_lib` takes a few milliseconds, and an estimator brings no more than it needs.
_HOMES = {}
with open(f"{__file__}i", encoding="utf-8") as _stub:
    for _line in _stub:
        if _line.startswith("from s3vm_lib."):
            _, _module, _, _name, *_ = _line.split()
            _HOMES[_name] = _module
__all__ = sorted(_HOMES.keys() - {"compile"})  # `import *` must not hide Python's own


def __getattr__(name):
    """Import a public name from its module, or a module, when it is first asked for."""
    if name in _HOMES:
        globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
        return globals()[name]
    if not name.startswith("_") and importlib.util.find_spec(f"s3vm_lib.{name}"):
        return importlib.import_module(f"s3vm_lib.{name}")
    raise AttributeError(f"module 's3vm_lib' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_HOMES})
