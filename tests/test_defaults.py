"""Documented defaults are the defaults: of every class and function of the library."""

import ast
import contextlib
import importlib
import inspect
import pkgutil
import re

import s3vm_lib

# "name : type, default=value", perhaps with several names, and one value for each or for all.
DOCUMENTED = re.compile(r"^(\w+(?:, \w+)*) : .*?\bdefault=(.*)$", re.MULTILINE)


def documented():
    """(name, object) of all classes, methods and functions with a docstring."""
    for info in pkgutil.walk_packages(s3vm_lib.__path__, "s3vm_lib."):
        if info.name == "s3vm_lib.compile":  # a command
            continue
        module = importlib.import_module(info.name)
        for name, thing in vars(module).items():
            if getattr(thing, "__module__", None) != info.name or not callable(thing):
                continue
            yield f"{info.name}.{name}", thing
            for key, method in vars(thing).items() if inspect.isclass(thing) else ():
                if inspect.isfunction(method) and method.__module__ == info.name:
                    yield f"{info.name}.{name}.{key}", method


def stated_defaults(thing):
    """{parameter: default} of the docstring, for the defaults that are Python literals."""
    found = {}
    for names, text in DOCUMENTED.findall(inspect.getdoc(thing) or ""):
        names = names.split(", ")
        parts = re.split(r" and |, ", text) if len(names) > 1 else [text]
        for name, part in zip(names, parts * len(names) if len(parts) == 1 else parts, strict=True):
            with contextlib.suppress(SyntaxError, ValueError):  # words
                found[name] = ast.literal_eval(part)
    return found


def test_documented_defaults_are_those_of_the_signatures():
    compared, wrong = 0, []
    for name, thing in documented():
        stated = stated_defaults(thing)
        parameters = (
            inspect.signature(getattr(thing, "py_func", thing)).parameters if stated else {}
        )
        for parameter in stated.keys() & parameters.keys():
            compared += 1
            default = parameters[parameter].default
            if repr(default) == "<factory>":  # of a dataclass
                default = thing.__dataclass_fields__[parameter].default_factory()
            if default != stated[parameter]:
                wrong.append((name, parameter, stated[parameter], default))
    assert wrong == []
    assert compared
