"""Do the tests notice when the library is wrong? Single changes, and the tests of their module.

``python tasks.py mutate [module ...]`` reads ``tests/mutations.toml``: changes of one place each,
grouped by module, with the test files that have to notice. Each is made in a copy of the library,
where these test files run until one test fails. A change that none of them notices has *survived*:
it needs a test of the behaviour that it breaks, or, where it breaks none, the reason as its
``equivalent``. The score is stored in ``tests/mutations_score.json``.

The copy has a fixed place and a numba cache of its own, and files keep their time stamps there:
what a change does not touch is compiled once and for all.
"""

import argparse
import hashlib
import importlib.metadata
import json
import multiprocessing
import os
import platform
import queue
import shutil
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "mutations.toml"
SCORE = ROOT / "tests" / "mutations_score.json"
COPIED = ("s3vm_lib", "s3vm_book", "tests", "benchmarks", "pyproject.toml")
CPU_SECONDS = 400  # of one run of the tests; an endless loop is noticed too
KILLED, SURVIVED, EQUIVALENT = "killed", "survived", "equivalent"

# Where processes can be forked, each run begins with these packages in memory.
FORKS = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
PRELOADED = ("numba", "pytest", "scipy.stats", "sklearn.neighbors", "sklearn.svm")


def read_list():
    """The modules of the list: {name: {"tests": [...], "mutations": [...]}}."""
    return tomllib.loads(LIST.read_text(encoding="utf-8"))


def mutated(root, mutation):
    """Path and changed text of the file of a mutation below ``root``."""
    path = root / mutation["file"]
    text = path.read_text(encoding="utf-8")
    found = text.count(mutation["old"])
    if found != 1:
        raise ValueError(
            f"{mutation['what']!r}: the old text must occur once in {mutation['file']}, "
            f"it occurs {found} times; write old and new anew in tests/mutations.toml"
        )
    return path, text.replace(mutation["old"], mutation["new"])


class Copy:
    """A copy of the library and its tests, at a fixed place."""

    def __init__(self, number):
        key = hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]
        self.root = Path(tempfile.gettempdir()) / f"s3vm_lib-mutations-{key}" / str(number)
        self.passed = set()
        wanted = {}
        for name in COPIED:
            top = ROOT / name
            files = [top] if top.is_file() else top.rglob("*")
            wanted.update({f.relative_to(ROOT): f for f in files if f.is_file()})
        wanted = {path: f for path, f in wanted.items() if "__pycache__" not in path.parts}
        for name in COPIED:
            for old in list((self.root / name).rglob("*")):
                path = old.relative_to(self.root)
                if old.is_file() and "__pycache__" not in path.parts and path not in wanted:
                    old.unlink()
        for path, source in wanted.items():
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.is_file() or target.read_bytes() != source.read_bytes():
                shutil.copyfile(source, target)

    def test(self, files, keep_bytecode=True):
        """Exit code of pytest (negative: a signal), and the test that failed."""
        output = self.root / "output.txt"
        process = FORKS.Process(target=run_tests, args=(self.root, files, output, keep_bytecode))
        process.start()
        process.join()
        lines = output.read_text(encoding="utf-8").splitlines() if output.exists() else []
        failed = [line.split(" ", 1)[1] for line in lines if line.startswith(("FAILED", "ERROR"))]
        failed = [line.split(" - ")[0] for line in failed]
        return process.exitcode, (failed or [line for line in lines if line] or [""])[-1]

    def passes(self, tests):
        """Whether the tests pass without any change; nothing can be learned from others."""
        todo = [name for name in tests if name not in self.passed]
        if todo and self.test(todo)[0] == 0:
            self.passed.update(todo)
        return self.passed.issuperset(tests)

    def judge(self, mutation, files, killer=None):
        """Make one change, run the tests, undo it: the verdict, and the test that noticed.

        The test that noticed it the last time goes first, and alone.
        """
        path, text = mutated(self.root, mutation)
        before, stamp = path.read_bytes(), path.stat()
        caches = self.root / "numba_cache" / "s3vm_lib"
        for tests in ([killer], files) if killer else (files,):
            if not self.passes(tests):
                if tests is files:
                    sys.exit(f"Without any change the tests fail: {', '.join(tests)}")
                continue  # that test has another name now
            known = set(caches.iterdir())
            try:
                path.write_text(text, encoding="utf-8")
                code, line = self.test(tests, keep_bytecode=False)
            finally:
                path.write_bytes(before)
                os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
                for folder in set(caches.iterdir()) - known:
                    shutil.rmtree(folder)
            if code in (3, 4, 5):
                raise RuntimeError(f"pytest could not run {tests}: {line}")
            if code:
                return KILLED, line if code > 0 else f"signal {-code}"
        return SURVIVED, ""


def run_tests(root, files, output, keep_bytecode):
    """Run pytest in the copy below ``root``: the work of a fresh process."""
    if os.name == "posix":
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    os.chdir(root)
    os.environ.update(PYTHONPATH=str(root), NUMBA_CACHE_DIR=str(root / "numba_cache"))
    sys.path.insert(0, str(root))
    # Byte code is told apart by size and full seconds, which two changes can share.
    sys.dont_write_bytecode = not keep_bytecode
    import pytest

    with open(output, "w", encoding="utf-8") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
        code = pytest.main(["-x", "-q", "--no-header", "--tb=no", *files])
        sys.stdout.flush()
    os._exit(int(code))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="tasks.py mutate", description=__doc__.split("\n")[0])
    parser.add_argument("modules", nargs="*", help="modules of the list; all when absent")
    parser.add_argument("--jobs", type=int, default=1, help="copies at work at the same time")
    parser.add_argument("--match", default="", help="only changes whose description has this")
    parser.add_argument(
        "--equivalent", action="store_true", help="also try changes that are known as equivalent"
    )
    parser.add_argument(
        "--open", action="store_true", help="only changes without a verdict, and survivors"
    )
    return parser.parse_args()


def sorted_out(work):
    """The changes that still fit the library, and those whose old text is gone."""
    fitting, outdated = [], []
    for name, mutation in work:
        try:
            mutated(ROOT, mutation)
        except ValueError:
            outdated.append((name, mutation))
        else:
            fitting.append((name, mutation))
    return fitting, outdated


def main():
    args = parse_arguments()
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    if os.name == "posix":
        FORKS.set_forkserver_preload(list(PRELOADED))
    modules = read_list()
    unknown = set(args.modules) - set(modules)
    if unknown:
        sys.exit(f"No such module: {', '.join(sorted(unknown))}. There are: {', '.join(modules)}.")
    names = args.modules or list(modules)
    work = [
        (name, mutation)
        for name in names
        for mutation in modules[name]["mutations"]
        if args.match in mutation["what"]
    ]
    work, outdated = sorted_out(work)
    for name, mutation in outdated:
        print(f"outdated   {key(name, mutation)}", flush=True)
    verdicts = read_verdicts()
    if args.open:
        work = [item for item in work if verdicts.get(key(*item), (SURVIVED,))[0] == SURVIVED]
    copies = queue.SimpleQueue()
    for number in range(args.jobs):
        copies.put(Copy(number))

    def judge(item):
        name, mutation = item
        if "equivalent" in mutation and not args.equivalent:
            return EQUIVALENT, mutation["equivalent"]
        copy, (_, last) = copies.get(), verdicts.get(key(*item), ("", ""))
        try:
            return copy.judge(mutation, modules[name]["tests"], last if "::" in last else None)
        finally:
            copies.put(copy)

    survived = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        for item, (verdict, why) in zip(work, pool.map(judge, work), strict=True):
            survived += verdict == SURVIVED
            print(f"{verdict:10s} {key(*item)} | {why}", flush=True)
            if not args.equivalent:
                verdicts[key(*item)] = verdict, why if verdict == KILLED else ""
                store(verdicts, modules)
    print(f"{len(work)} changes, {survived} survived; {len(outdated)} are outdated.")
    sys.exit(survived > 0)


def key(name, mutation):
    """What a change is called in the stored score."""
    return f"{name}: {mutation['what']}"


def read_verdicts():
    """The stored verdicts, {change: (verdict, test that noticed)}."""
    if not SCORE.exists():
        return {}
    stored = json.loads(SCORE.read_text(encoding="utf-8"))["changes"]
    return {name: tuple(verdict.partition(" by ")[::2]) for name, verdict in stored.items()}


def store(verdicts, modules):
    """Write the verdicts of all changes of the list, in its order, and their counts."""
    known, counts = {}, {}
    for name, module in modules.items():
        counts[name] = dict.fromkeys((KILLED, EQUIVALENT, SURVIVED), 0)
        for mutation in module["mutations"]:
            if key(name, mutation) in verdicts:
                verdict, by = verdicts[key(name, mutation)]
                counts[name][verdict] += 1
                known[key(name, mutation)] = f"{verdict} by {by}" if by else verdict
    score = {
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("numpy", "numba", "pytest")},
        "modules": counts,
        "changes": known,
    }
    SCORE.write_text(json.dumps(score, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
