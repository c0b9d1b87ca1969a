"""Try small random changes of the library, and print which of them its tests do not notice.

``python tasks.py mutate [room ...] --count 20 --seed 0`` finds places by the syntax of the sources:
a comparison is turned, a number raised by one, + and − are exchanged, a boolean is negated, min and
max are exchanged, a keyword argument is dropped, or the branch of an ``if`` is never taken. As many
as asked for are drawn, and made one by one in a copy of the tree, where the tests that import the
room run. A survivor needs a test of what it breaks, if anything. Nothing depends on the outcome.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import s3vm_lib

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("s3vm_lib", "s3vm_book", "tests", "benchmarks", "pyproject.toml")
TURNED = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
EXCHANGED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.And: ast.Or, ast.Or: ast.And}
EXTREMES = dict(min="max", max="min", minimum="maximum", maximum="minimum", argmin="argmax")


class Place(NamedTuple):
    """A change of one expression of a file below the root."""

    file: Path
    line: int
    kind: str
    span: tuple  # first and last byte of what is replaced
    old: str
    new: str

    @property
    def room(self):
        return self.file.parts[1].removesuffix(".py")

    def __str__(self):
        return f"{self.file}:{self.line} {self.kind}: {self.old} -> {self.new}"


def variants(node):
    """Yield (kind, node to take its place) for each change of an expression."""
    if isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            for turned in TURNED[type(op)]:
                ops = [*node.ops[:k], turned(), *node.ops[k + 1 :]]
                yield "comparison", ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        flipped = isinstance(node.value, bool)
        yield "constant", ast.Constant(not node.value if flipped else 2 * node.value + 1)
    elif type(getattr(node, "op", None)) in EXCHANGED:
        exchanged = copy.copy(node)
        exchanged.op = EXCHANGED[type(node.op)]()
        yield "operator", exchanged
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "boolean", node.operand
    elif isinstance(node, ast.Call):
        field = "attr" if isinstance(node.func, ast.Attribute) else "id"
        if getattr(node.func, field, None) in EXTREMES:
            function = copy.copy(node.func)
            setattr(function, field, EXTREMES[getattr(node.func, field)])
            yield "extreme", ast.Call(function, node.args, node.keywords)
        for k, keyword in enumerate(node.keywords):
            if keyword.arg is not None:
                left = node.keywords[:k] + node.keywords[k + 1 :]
                yield "keyword", ast.Call(node.func, node.args, left)


def expressions(node):
    """Yield the expressions below a node whose changes are worth a test, innermost included."""
    # Positions inside f-strings are wrong before Python 3.12; messages and types are left alone.
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "format_spec"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr):
                yield child
            if isinstance(child, ast.AST):
                yield from expressions(child)


def places(file, source):
    """List the changes of a source, given as bytes; ``file`` is what they are called by."""
    tree, starts = ast.parse(source), [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []

    def add(kind, node, new):
        last = starts[node.end_lineno - 1] + node.end_col_offset
        span = starts[node.lineno - 1] + node.col_offset, last
        old = " ".join(source[slice(*span)].decode().split())
        found.append(Place(file, node.lineno, kind, span, old, new))

    for node in expressions(tree):
        for kind, new in variants(node):
            add(kind, node, f"({ast.unparse(ast.fix_missing_locations(new))})")
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) != "TYPE_CHECKING":
            add("branch", node.test, "False")
    return found


def changed(source, place):
    """Return the source with a change made."""
    return source[: place.span[0]] + place.new.encode() + source[place.span[1] :]


def tests_of(root):
    """Map each room of the library to the test files that import it."""
    public = ((name, getattr(s3vm_lib, name)) for name in s3vm_lib.__all__)
    found, homes = {}, {name: thing.__module__.split(".")[1] for name, thing in public}
    for test in sorted((root / "tests").glob("test_*.py")):
        for node in ast.walk(ast.parse(test.read_bytes())):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                top = node.module == "s3vm_lib"
                names = [f"s3vm_lib.{homes.get(n, n)}" for n in names] if top else [node.module]
            for name in names:
                if (name or "").startswith("s3vm_lib."):
                    found.setdefault(name.split(".")[1], {})[f"tests/{test.name}"] = None
    # Tests that are named after the room notice most, and come first.
    return {
        one: sorted(files, key=lambda f: f"test_{one}" not in f) for one, files in found.items()
    }


def passes(root, tests):
    """Tell whether the tests of a tree pass, in a process of their own."""
    # Without byte code: it is taken for that of a file of the same size and second.
    own = dict(PYTHONPATH=str(root), NUMBA_CACHE_DIR=f"{root}/cache", PYTHONDONTWRITEBYTECODE="1")
    own["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # of which none is used
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        options = {"capture_output": True, "text": True, "timeout": 1200}  # seconds
        run = subprocess.run(command, cwd=root, env=os.environ | own, **options)
    except subprocess.TimeoutExpired:
        return False
    if run.returncode > 2:
        raise RuntimeError(f"pytest could not run {tests}:\n{run.stdout}{run.stderr}")
    return run.returncode == 0


def survives(root, place, tests):
    """Make a change in a copy, run the tests, undo it; tell whether they pass."""
    path, source = root / place.file, (root / place.file).read_bytes()
    path.write_bytes(changed(source, place))
    try:
        return passes(root, tests)
    finally:
        path.write_bytes(source)


def main(arguments=None, root=ROOT):
    """Draw changes, try them, and print the outcome of each; return the survivors."""
    parser = argparse.ArgumentParser(prog="tasks.py mutate", description=__doc__.split("\n")[0])
    parser.add_argument("rooms", nargs="*", help="rooms of s3vm_lib; all when absent")
    parser.add_argument("--count", type=int, default=20, help="changes that are drawn")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    args = parser.parse_args(arguments)
    tests = tests_of(root)
    found = []
    for path in sorted((root / "s3vm_lib").rglob("*.py")):
        found += places(path.relative_to(root), path.read_bytes())
    found = [place for place in found if place.room in (args.rooms or tests)]
    survivors, passed = [], {}
    drawn = random.Random(args.seed).sample(found, min(args.count, len(found)))
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        for name in filter(lambda name: (root / name).exists(), COPIED):
            copied = shutil.copytree if (root / name).is_dir() else shutil.copyfile
            copied(root / name, Path(folder) / name)
        for place in drawn:
            own = tests.get(place.room, [])
            if place.room not in passed:  # nothing can be learned from tests that fail anyway
                passed[place.room] = bool(own) and passes(Path(folder), own)
            alive = passed[place.room] and survives(Path(folder), place, own)
            outcome = "survived" if alive else "killed" if passed[place.room] else "no tests"
            survivors += [place] * alive
            print(f"{outcome:10s}", place, flush=True)
    print(f"{len(drawn)} of {len(found)} changes tried, {len(survivors)} survived")
    return survivors


if __name__ == "__main__":
    main()
