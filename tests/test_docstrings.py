"""The examples of the docstrings, run."""

import doctest
import importlib
import itertools
import pkgutil

import pytest

import s3vm_book
import s3vm_lib

pytestmark = pytest.mark.interface


def modules():
    packages = [s3vm_lib, s3vm_book]
    found = [pkgutil.walk_packages(one.__path__, f"{one.__name__}.") for one in packages]
    names = [module.name for module in itertools.chain(*found)]
    return ["s3vm_lib", *(name for name in names if name != "s3vm_lib.compile")]  # a command


def examples(name):
    module = importlib.import_module(name)
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


@pytest.mark.parametrize("name", [name for name in modules() if examples(name)])
def test_examples(name):
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in examples(name):
        out = []
        runner.run(test, out=out.append)
        assert not runner.failures, "".join(out)


def test_every_estimator_has_an_example():
    finder = doctest.DocTestFinder(recurse=False)
    classes = [cls for cls in map(s3vm_lib.__dict__.get, s3vm_lib.__all__) if hasattr(cls, "fit")]
    assert [cls.__name__ for cls in classes if not finder.find(cls)[0].examples] == []
