"""Build, test and serve this repository, on any system, with nothing but Python.

The first task that needs packages makes a virtual environment in ``.venv`` and installs the project
into it; later ones find it there. ``make book`` and ``python tasks.py book`` do the same.
"""

import argparse
import functools
import hashlib
import http.server
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "s3vm-lib-installed.json"
CONSTRAINTS = ROOT / "constraints.txt"
SITE = ROOT / "_build" / "html"
BUILT = ROOT / "_build" / "book-built"  # as old as the beginning of the last whole build
NOTEBOOK_TOOL = ROOT / "book" / "_tools" / "notebooks.py"
LIVE_TOOL = ROOT / "book" / "_tools" / "live.py"
LIVE = ROOT / "live"
WORKSPACES = ROOT / "_build" / "lab"
MYST = ROOT / "book" / "_myst"

# Older processors that newer ones can imitate: the names by which OpenBLAS and numba know them, and
# the prefixes of the instruction sets that NumPy must not use.
PROCESSORS = {
    "nehalem": ("Nehalem", "generic", ("",)),  # 2008: SSE4.2, the oldest that NumPy supports
    "haswell": ("Haswell", "haswell", ("X86_V4", "AVX512")),  # 2013: AVX2 and FMA
}
NUMPY_FEATURES = """
try:
    from numpy._core import _multiarray_umath as core
except ImportError:  # before NumPy 2
    from numpy.core import _multiarray_umath as core
print(*(name for name in core.__cpu_dispatch__ if core.__cpu_features__[name]))
"""


def run(*command, check=True):
    """Run a command from the root of the repository; leave with its exit code when it fails."""
    code = subprocess.run([str(part) for part in command], cwd=ROOT).returncode
    if check and code:
        sys.exit(code)
    return code


def install(*extras):
    """Make ``.venv`` and install the project with ``extras``, unless that has been done."""
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    done = json.loads(STAMP.read_text()) if STAMP.exists() else {}
    have = set(done.get("extras", ())) if done.get("pyproject") == wanted else set()
    if PYTHON.exists() and set(extras) <= have:
        return
    if not PYTHON.exists():
        if sys.version_info < (3, 11):
            version = sys.version.split()[0]
            sys.exit(f"Python 3.11 or later is needed; this is {version} ({sys.executable}).")
        print(f"Creating {VENV.relative_to(ROOT)} ...", flush=True)
        run(sys.executable, "-m", "venv", VENV)
        have = set()
    extras = sorted(have | set(extras))
    print(f"Installing s3vm-lib[{','.join(extras)}]: a minute or two, once ...", flush=True)
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    target = ["--editable", f".[{','.join(extras)}]"]
    if run(*pip, "--constraint", CONSTRAINTS, *target, check=False):
        print("pip could not install the versions of constraints.txt (see above); trying others.")
        run(*pip, *target)
    STAMP.write_text(json.dumps({"pyproject": wanted, "extras": extras}))


def build_book(*options):
    """Build the HTML book; returns the exit code of jupyter-book."""
    code = run(PYTHON.parent / "jupyter-book", "build", ".", *options, check=False)
    if not code:  # what a page offers for download is what can be run
        run(PYTHON, LIVE_TOOL, "--force", "--to", SITE / "_sources" / "book")
    return code


def is_stale():
    """Whether the pages are not all made by the extensions, templates and scripts of today.

    Sphinx writes a page again where its text has changed, and knows nothing of these.
    """
    if not (SITE.exists() and BUILT.exists()):
        return True
    makers = [ROOT / "_config.yml", ROOT / "_toc.yml"]
    for folder in ("_ext", "_static", "_templates", "_tools"):
        makers += (ROOT / "book" / folder).rglob("*.*")
    built = BUILT.stat().st_mtime
    return any(path.stat().st_mtime > built for path in makers if path.suffix != ".pyc")


def notebook_paths():
    """The chapters that are notebooks, in alphabetical order."""
    return sorted((ROOT / "book").glob("*.ipynb"))


def chosen_notebooks(names):
    """Notebooks named on the command line (``svm`` or ``book/svm.ipynb``), or all of them."""
    known = {path.stem: path for path in notebook_paths()}
    stems = [Path(name).stem for name in names]
    unknown = [stem for stem in stems if stem not in known]
    if unknown:
        sys.exit(f"No such chapter: {', '.join(unknown)}. There are: {', '.join(known)}.")
    return [known[stem] for stem in stems] if names else list(known.values())


def book(args):
    install("book")
    start, whole = time.time(), args.all or is_stale()
    if whole:
        shutil.rmtree(SITE, ignore_errors=True)
        BUILT.unlink(missing_ok=True)
    code = build_book(*(["--all"] if whole else []))
    if code:
        sys.exit(code)
    if whole:
        BUILT.touch()
        os.utime(BUILT, (start, start))
    print(f"\nThe book is built. Open {SITE / 'index.html'}\nor run `make serve`.")


def imitate(processor):
    """The environment in which OpenBLAS, NumPy and numba use no newer instructions."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        sys.exit(
            f"Only x86-64 processors can be imitated, on such a one; this is {platform.machine()}."
        )
    blas, numba, hidden = PROCESSORS[processor]
    command = [PYTHON, "-c", NUMPY_FEATURES]
    present = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return {
        **os.environ,
        "OPENBLAS_CORETYPE": blas,
        "NPY_DISABLE_CPU_FEATURES": " ".join(name for name in present if name.startswith(hidden)),
        "NUMBA_CPU_NAME": numba,
        "NUMBA_CPU_FEATURES": "",  # those of the named processor, not of this one
        "NUMBA_CACHE_DIR": str(ROOT / "_build" / f"numba-{processor}"),
    }


def test(args):
    if args.processor and args.again:
        sys.exit("--again is for what ran on this processor; --processor hides it from all.")
    install("book", "test", "bench", "distributed")
    if args.processor:
        os.environ.update(imitate(args.processor))
    elif SITE.exists() and not (args.notebooks or args.nightly):
        shutil.rmtree(SITE)  # pages that the book no longer has would be tested too
    older = imitate(args.again) if args.again else None
    # Before all tests, as two processes that fill one cache get in each other's way; while the book
    # is built, which compiles nothing.
    warm = [PYTHON, "book/_tools/warm_cache.py"]
    warming = subprocess.Popen(warm, cwd=ROOT)
    # A timeout is for what hangs, not for what a busy machine does slowly.
    pytest = [PYTHON, "-m", "pytest", "--durations=10"]
    patience = ["--nbval-cell-timeout=3600", "--nbval-kernel-startup-timeout=600"]
    notebook = [*pytest, "--nbval", "--nbval-current-env", *patience, "--dist=loadfile"]
    notebook += ["-n", "auto", "-m", "", *notebook_paths()]
    chosen = ["nightly"] if args.nightly else ["not nightly", *(() if args.slow else ("not slow",))]
    if args.processor:
        chosen.append("not interface")  # asks nothing of a processor
    # One more than there are cores: some tests wait for a browser, a server or another process.
    workers = str((os.cpu_count() or 1) + 1)
    unit = ["--dist=worksteal", "-n", workers, "-m", " and ".join(chosen)]
    stages = {
        "book": lambda: build_book("--all", "-W", "-n", "--keep-going"),
        "tests": lambda: run(*pytest, *unit, check=False),
        "notebooks": lambda: run(*notebook, check=False),
    }
    if args.processor:
        del stages["book"]  # a page shows what is stored
    if args.notebooks or args.nightly:
        only = "notebooks" if args.notebooks else "tests"
        stages = {only: stages[only]}
    rows = []

    def finish(name, start, code):
        rows.append((name, code, time.perf_counter() - start))

    with tempfile.TemporaryFile() as log:
        for name, stage in stages.items():
            print(f"\n== {name} ".ljust(80, "="), flush=True)
            start = time.perf_counter()
            if name != "book" and warming.wait():
                sys.exit(warming.returncode)
            if name == "tests" and older:  # its own cache is filled beside them
                warming = subprocess.Popen(warm, cwd=ROOT, env=older)
            if name == "notebooks" and older:
                # Both at once: neither pass leaves a core without work while its last chapter runs.
                second = subprocess.Popen(
                    notebook, cwd=ROOT, env=older, stdout=log, stderr=subprocess.STDOUT
                )
            finish(name, start, stage())
        if older:
            print(f"\n== notebooks, {args.again} ".ljust(80, "="), flush=True)
            code = second.wait()
            log.seek(0)
            print(log.read().decode(errors="replace"))
            finish(args.again, start, code)
    print()
    for name, code, seconds in rows:
        print(f"{name:10s} {'FAILED' if code else 'passed'} {seconds:7.1f} s")
    sys.exit(any(code for _, code, _ in rows))


def serve(args):
    if not (SITE / "index.html").exists():
        sys.exit("There is no built book yet: run `make book` first.")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", args.port), handler) as server:
        print(f"The book is at http://127.0.0.1:{args.port}/ (Ctrl-C stops).", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def sort_files(folder):
    """Let JupyterLab list files by time, the oldest first: the copies in the order of the book.

    It keeps the order in its workspace, of which the first one has this name.
    """
    path = folder / "default-37a8.jupyterlab-workspace"
    if not path.exists():  # later it holds what the reader has chosen
        folder.mkdir(parents=True, exist_ok=True)
        order = {"direction": "descending", "key": "last_modified"}
        state = {"file-browser-filebrowser:columns": {"sizes": {}, "sortState": order}}
        path.write_text(json.dumps({"data": state, "metadata": {"id": "default"}}))


def lab(args):
    install("chapters")
    run(PYTHON, LIVE_TOOL, "--to", LIVE, *(["--force"] if args.force else []))
    names = [path.stem for path in LIVE.glob("*.ipynb")]
    if args.name not in names:
        sys.exit(f"No such chapter: {args.name}. There are: {', '.join(sorted(names))}.")
    sort_files(WORKSPACES)
    settings = {
        "ServerApp.root_dir": LIVE,
        "LabApp.workspaces_dir": WORKSPACES,
        "LabApp.default_url": f"/lab/tree/{args.name}.ipynb",
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",  # asks no other host
    }
    options = [f"--{name}={value}" for name, value in settings.items()]
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # in a container, say
        options.append("--allow-root")
    run(PYTHON, "-m", "jupyterlab", *options, *(["--no-browser"] if args.no_browser else []))


def notebooks(args):
    install("book")
    run(PYTHON, "book/_tools/warm_cache.py")
    run(PYTHON, NOTEBOOK_TOOL, "execute", *chosen_notebooks(args.names))


def edit(args):
    install("book")
    MYST.mkdir(exist_ok=True)
    for path in chosen_notebooks(args.names):
        copy = MYST / f"{path.stem}.md"
        if copy.exists() and copy.stat().st_mtime > path.stat().st_mtime and not args.force:
            sys.exit(
                f"{copy.relative_to(ROOT)} is newer than its notebook: sync it or use --force."
            )
        run(PYTHON, "-m", "jupytext", "--quiet", "--to", "md:myst", "--output", copy, path)
        print(f"Edit {copy.relative_to(ROOT)}, then run `python tasks.py sync {path.stem}`.")


def sync(args):
    install("book")
    for copy in sorted(MYST.glob("*.md")):
        path = ROOT / "book" / f"{copy.stem}.ipynb"
        if args.names and copy.stem not in {Path(name).stem for name in args.names}:
            continue
        if path.exists() and path.stat().st_mtime >= copy.stat().st_mtime:
            continue
        update = ["--update"] if path.exists() else []
        run(
            *(PYTHON, "-m", "jupytext", "--quiet", "--from", "md:myst", "--to", "ipynb"),
            *(*update, "--output", path, copy),
        )
        run(PYTHON, NOTEBOOK_TOOL, "normalize", path)
        os.utime(copy, (path.stat().st_mtime,) * 2)
        print(
            f"{path.relative_to(ROOT)} has the new text; `python tasks.py notebooks {path.stem}` "
            "computes its outputs."
        )


def bench(args):
    install("bench")
    run(PYTHON, "-m", "benchmarks.run", *(args.options or ["--list"]))


def mutate(args):
    install("test")
    run(PYTHON, "tests/mutate.py", *args.options)


def trouble(args):
    install("test")
    run(PYTHON, "tests/trouble.py", *(args.options or ["--trials", "5000"]))


def machine(args):
    install("book")
    run(PYTHON, "book/_tools/warm_cache.py")
    run(PYTHON, "book/_tools/machine.py", *args.options)


def clean(args):
    doomed = [ROOT / "_build", ROOT / ".pytest_cache", ROOT / ".ruff_cache"]
    for folder in ("s3vm_lib", "s3vm_book", "tests", "book", "benchmarks"):
        doomed += sorted((ROOT / folder).rglob("__pycache__"))
    if args.all:
        doomed.append(VENV)
    for path in doomed:
        if path.exists():
            shutil.rmtree(path)
            print(f"removed {path.relative_to(ROOT)}")


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="tasks.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="task", required=True, metavar="task")

    def add(function, text, **settings):
        command = commands.add_parser(function.__name__, help=text, description=text, **settings)
        command.set_defaults(function=function)
        return command

    add(book, "build the book and say which file to open").add_argument(
        "--all", action="store_true", help="rebuild every page"
    )
    command = add(test, "unit tests, strict notebook tests, book with warnings as errors")
    command.add_argument("--slow", action="store_true", help="also the tests marked slow")
    command.add_argument(
        "--processor",
        choices=PROCESSORS,
        help="only what depends on the processor, with newer instructions hidden",
    )
    group = command.add_mutually_exclusive_group()
    group.add_argument("--notebooks", action="store_true", help="the notebooks alone")
    group.add_argument("--nightly", action="store_true", help="the tests marked nightly alone")
    group.add_argument(
        "--again",
        choices=PROCESSORS,
        help="the notebooks a second time, with newer instructions hidden",
    )
    add(serve, "serve the built book on this machine").add_argument(
        "--port", type=int, default=8000
    )
    command = add(lab, "open the chapters in JupyterLab, as notebooks to run")
    command.add_argument("name", nargs="?", default="index", help="a chapter, such as svm")
    command.add_argument("--force", action="store_true", help="overwrite what you have changed")
    command.add_argument("--no-browser", action="store_true", help="only print the address")
    for function, text in (
        (notebooks, "execute chapters again, normalize them and store their outputs"),
        (edit, "write MyST text copies of chapters into book/_myst"),
        (sync, "put edited MyST copies back into their notebooks"),
    ):
        command = add(function, text)
        command.add_argument("names", nargs="*", help="chapters, such as svm; all when absent")
        if function is edit:
            command.add_argument("--force", action="store_true", help="overwrite edited copies")
    for function, text in (
        (bench, "run one benchmark, or list them"),
        (mutate, "try random changes of the library, and print which its tests do not notice"),
        (trouble, "fit every estimator to the trouble that real data bring"),
        (machine, "memory and time that each chapter asks for, against what Binder gives"),
    ):
        # All of it, --help too, is for another parser: nothing is an option here, whose names would
        # begin with a "+" (a leading option is none of argparse.REMAINDER).
        command = add(function, text, add_help=False, prefix_chars="+")
        command.add_argument("options", nargs="*")
    add(clean, "remove what was built").add_argument(
        "--all", action="store_true", help="also the virtual environment"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    # The stored outputs of the book were computed with one thread, and the last digits of a
    # non-convex result depend on it; on small matrices more threads are slower besides.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("S3VM_LIB_QUIET", "1")  # a notebook would record what compiling says
    arguments = parse_arguments(sys.argv[1:])
    arguments.function(arguments)
