"""The command ``python -m s3vm_lib.compile``; in Python, `compile` is a function of the package."""

if __name__ != "__main__":
    # As a module it would take the place of the function in the package.
    raise ImportError("s3vm_lib.compile is a function: from s3vm_lib import compile")

from s3vm_lib._compile import main

main()
