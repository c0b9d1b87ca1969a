"""Execute, normalize and check the notebooks of the book.

    python book/_tools/notebooks.py execute book/svm.ipynb ...
    python book/_tools/notebooks.py normalize book/svm.ipynb ...
    python book/_tools/notebooks.py check book/svm.ipynb ...

The committed notebooks are the only source of the chapters, with their outputs. ``normalize``
removes from them whatever differs between two runs of the same code, so that a difference in
version control is a difference a reader would see; ``find_problems`` lists what must not be in one.
"""

import ast
import base64
import copy
import hashlib
import io
import itertools
import queue
import re
import sys
import time
from pathlib import Path

import nbformat
from compare import GLUE, compare_outputs, picture_difference, rule_for, rules_of
from PIL import Image

import s3vm_book
from s3vm_book import bakeoff

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python"}
KEPT_METADATA = ("mystnb", "tags", "tolerance")
TAGS = {
    "full-width",
    "hide-cell",
    "hide-input",
    "hide-output",
    "nbval-ignore-output",
    "remove-cell",
    "remove-input",
    "remove-output",
}
WIDGET = "application/vnd.jupyter.widget"
MAX_BYTES = 1_500_000
MAX_CODE_CELLS = 25
# What a chapter has, in this order. A notebook with exercises is a chapter.
PARTS = (
    "## What you will be able to do",
    "**Prerequisites.**",
    "**Running time",
    "## The objective",
    "```{prf:algorithm}",
    "## Reference implementation",
    "## The library",
    "## Experiments",
    "## What goes wrong",
    "## Exercises",
    "## Summary",
    "## Further reading",
)
CELL_TIMEOUT = 3600  # seconds: for what hangs, not for what a busy machine does slowly
LOOK_AGAIN = 10  # seconds
SAME_PICTURE = 0.2  # root mean square, of 255: less than a reader can see
MAX_DIGITS = 4  # of a glued number with a decimal point

ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/-])/(?:home|root|tmp|usr|Users|opt|var|private|mnt|srv|work|content)/\w"
    r"|(?<!\w)[A-Za-z]:\\{1,2}\w"
)
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
GLUED_SCALAR = re.compile(r"np\.\w+\(")
OUTSIDE = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//"""
)
HTML_IMAGE = re.compile(r"<img\b[^>]*>")
ALT = re.compile(r"""\balt=(["'])\s*\S.*?\1""", re.DOTALL)
EMPTY_MARKDOWN_ALT = re.compile(r"!\[\s*\]\(")
# What rounding decides: how many steps were made, and how far from zero a residual ended.
COUNT = re.compile(
    r"n_iter|iterations|history_|effort"
    r"|(?<![a-z])(steps|evaluations|sweeps|rounds|walks|solves|nodes|nit|nfev)(?![a-z])"
)
EXPONENT = re.compile(r"\d[eE][-+]?\d")
DECIMAL = re.compile(r"\d*\.\d+|\d+\.")


def code_cells(notebook):
    """Code cells that hold code."""
    return [c for c in notebook.cells if c.cell_type == "code" and c.source.strip()]


def _text(value):
    return "".join(value) if isinstance(value, list) else value


def results_read(notebook):
    """The stored results that a notebook reads, by itself or through `s3vm_book`.

    Parameters
    ----------
    notebook : NotebookNode

    Returns
    -------
    dict of str to str
        `digest` of each table that is named in the code.
    """
    source = "\n".join(cell.source for cell in code_cells(notebook))
    folder = s3vm_book.tables.FOLDER
    files = {
        folder / f"{alias.name}.py"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module == s3vm_book.__name__
        for alias in node.names
    }
    found = {"bakeoff": bakeoff.digest()} if folder / "bakeoff.py" in files else {}
    if folder / "verdicts.py" in files:
        files |= set(folder.glob("*.py"))
    source += "".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
    named = set(re.findall(r"""["'/](\w+)(?:\.json)?["']""", source))
    tables = sorted(file.stem for file in (folder / "results").glob("*.json"))
    return {**found, **{name: s3vm_book.digest(name) for name in tables if name in named}}


def keep_what_agrees(notebook, before):
    """Put stored outputs back where the new ones say the same.

    Text is kept where it agrees within the tolerance of its cell, a figure where it looks the same.

    Parameters
    ----------
    notebook : NotebookNode
        The executed notebook, changed in place.
    before : NotebookNode
        The notebook as it was stored; cells are matched by their ids.
    """
    stored = {cell.id: cell for cell in before.cells if cell.cell_type == "code"}
    for cell in code_cells(notebook):
        if cell.id not in stored:
            continue
        old = stored[cell.id].outputs
        if cell.metadata.get("tolerance") and not compare_outputs(old, cell.outputs, cell.metadata):
            cell.outputs = old
        for new, kept in zip(cell.outputs, old, strict=False):
            fresh, png = (one.get("data", {}).get("image/png") for one in (new, kept))
            if fresh and png and picture_difference(png, fresh) <= SAME_PICTURE:
                new["data"]["image/png"] = png


def with_palette(png):
    """A PNG image with at most 256 colors, where that is smaller.

    Parameters
    ----------
    png : str
        The image as base64 text.

    Returns
    -------
    str
    """
    data = base64.b64decode(png)
    image = Image.open(io.BytesIO(data))
    if image.mode == "P":
        return png
    small = io.BytesIO()
    image.convert("RGB").quantize(256, Image.Quantize.MEDIANCUT).save(small, "PNG", optimize=True)
    return png if small.tell() >= len(data) else base64.b64encode(small.getvalue()).decode() + "\n"


def _normalize_outputs(cell):
    outputs = []
    for output in cell.outputs:
        if "image/png" in output.get("data", {}):
            output.data["image/png"] = with_palette(output.data["image/png"])
        if any(mime.startswith(WIDGET) for mime in output.get("data", ())):
            continue  # without its state a widget shows nothing; a live kernel makes it again
        if "execution_count" in output:
            output.execution_count = cell.execution_count
        last = outputs[-1] if outputs else {}
        if output.output_type == "stream" and last.get("name") == output.name:
            last["text"] = _text(last["text"]) + _text(output["text"])
            continue
        outputs.append(output)
    cell.outputs = outputs


def normalize(notebook):
    """Remove in place what differs between runs, and number the code cells from 1.

    Parameters
    ----------
    notebook : NotebookNode
        Of format 4.5.

    Returns
    -------
    NotebookNode
        The same object.
    """
    kept = {"results": notebook.metadata["results"]} if notebook.metadata.get("results") else {}
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": KERNELSPEC, "language_info": LANGUAGE, **kept}
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    count = 0
    for position, cell in enumerate(notebook.cells):
        if not cell.get("id"):
            cell.id = hashlib.md5(f"{position}{cell.source}".encode()).hexdigest()[:8]
        cell.metadata = nbformat.from_dict(
            {key: cell.metadata[key] for key in KEPT_METADATA if cell.metadata.get(key)}
        )
        if "tags" in cell.metadata:
            cell.metadata.tags = sorted(cell.metadata.tags)
        if cell.cell_type != "code":
            continue
        if cell.source.strip():
            count += 1
            cell.execution_count = count
        else:
            cell.execution_count = None
        _normalize_outputs(cell)
    return notebook


def dumps(notebook):
    """The text of a notebook as it is stored."""
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def _printed(output):
    """What an output says, as text; images and other binary data are left out."""
    if output.output_type == "stream":
        return _text(output.text)
    if output.output_type == "error":
        return "\n".join(output.traceback)
    data = output.get("data", {})
    html = re.sub(r"data:image/\w+;base64,[^\"']*", "", _text(data.get("text/html", "")))
    plain = (_text(text) for mime, text in data.items() if mime in ("text/plain", "text/markdown"))
    return "\n".join((*plain, html))


def _output_problems(cell):
    has_alt = bool(str(cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")).strip())
    for output in cell.outputs:
        data = output.get("data", {})
        text = _printed(output)
        if output.output_type == "error":
            yield "raises; show an expected error with try/except"
        if output.get("name") == "stderr":
            yield "writes to stderr"
        if match := ABSOLUTE_PATH.search(text):
            yield f"prints an absolute path: {text[match.start() : match.end() + 30]!r}"
        if match := ADDRESS.search(text):
            yield f"prints an object's address: {match.group()}"
        if any(mime.startswith(WIDGET) for mime in data):
            yield "stores a widget"
        if any(mime.startswith("image/") for mime in data) and not has_alt:
            yield "has a figure without alt text (cell metadata mystnb.image.alt)"
        html = _text(data.get("text/html", ""))
        if OUTSIDE.search(html):
            yield "asks another host for a file"
        if not all(ALT.search(tag) for tag in HTML_IMAGE.findall(html)):
            yield "has an <img> without alt text"


def _caption_problems(cell):
    figure = cell.metadata.get("mystnb", {}).get("figure")
    if figure is None:
        return
    if not re.fullmatch(r"fig-[a-z0-9-]+", str(figure.get("name", ""))):
        yield (
            "has a figure whose name is not like fig-svm-street: lower-case letters, digits and "
            "hyphens (metadata mystnb.figure.name)"
        )
    if not str(figure.get("caption", "")).strip():
        yield "has a figure without a caption (metadata mystnb.figure.caption)"
    elif "\n\n" in figure["caption"]:
        yield "has a caption of more than one paragraph"
    shown = [one for one in cell.outputs if {"image/png", "text/html"} & set(one.get("data", {}))]
    if len(shown) != 1 or any("text/markdown" in one.get("data", {}) for one in cell.outputs):
        yield f"shows {len(shown)} pictures under one caption: it stands below each of them"


def _names(node):
    """Identifiers in an expression, joined by blanks."""
    names = (getattr(n, "id", None) or getattr(n, "attr", None) for n in ast.walk(node))
    return " ".join(filter(None, names))


def _glued_from(source):
    """For each key, or end of one, that a cell glues: the names that its value is computed from."""
    tree = ast.parse(source)
    origin = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for name in (
                n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)
            ):
                origin[name] = origin.get(name, "") + " " + _names(node.value)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            values = [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg]
            if getattr(node.func, "id", "") == "glue" and len(node.args) > 1:
                key = node.args[0]
                values.append((getattr(key, "value", ""), node.args[1]))  # "": any key
            for key, value in values:
                names = _names(value)
                found.append((key, " ".join([names, *(origin.get(n, "") for n in names.split())])))
    return found


def _glue_problems(cell):
    glued = {
        output.metadata["scrapbook"]["name"]: _text(output.data[GLUE])
        for output in cell.outputs
        if GLUE in output.get("data", {})
    }
    if not glued:
        return
    if "nbval-ignore-output" in cell.metadata.get("tags", ()):
        yield "glues a number that no test compares (nbval-ignore-output)"
    sources = _glued_from(cell.source)
    rules = rules_of(cell.metadata)
    for key, value in glued.items():
        if GLUED_SCALAR.search(value):
            yield f"glues a NumPy scalar, which shows its type: {key} = {value}"
        for number in DECIMAL.findall(value):
            if len(number.replace(".", "").strip("0")) > MAX_DIGITS:
                yield f"glues {key} = {value}: {MAX_DIGITS} digits are allowed"
        ends = ((end, n) for end, n in sources for end in (end, end.replace("_", "-")))
        names = " ".join(n for end, n in ends if key.endswith(end))
        fragile = EXPONENT.search(value) or COUNT.search(f"{key} {names}")
        if fragile and rule_for(f"{key} = {value}", rules) is None:
            yield (
                f"glues {key} = {value}: a count of steps or a residual, which rounding decides, "
                "needs a tolerance (0 where it is exact)"
            )


def _exercises_at(notebook):
    """Position of the heading of the exercises, or None."""
    for position, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown" and re.search(r"^##? Exercises\b", cell.source, re.M):
            return position
    return None


def part_problems(notebook):
    """Parts of a chapter that are missing or out of order, and exercises without a solution."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    places = {part: text.find(part) for part in PARTS}
    for part, place in places.items():
        if place < 0:
            yield f"the chapter has no {part!r}"
    present = [part for part in PARTS if places[part] >= 0]
    for one, next_one in itertools.pairwise(present):
        if places[one] > places[next_one]:
            yield f"{one!r} comes after {next_one!r}"
    solved = set(re.findall(r"\{solution-start\} ([\w-]+)", text))
    for label in re.findall(r"```\{exercise\}[^`]*?:label: ([\w-]+)", text):
        if label not in solved:
            yield f"exercise {label!r} has no solution"


def find_problems(text):
    """What is wrong with a notebook of the book.

    Parameters
    ----------
    text : str
        The content of the ``.ipynb`` file.

    Returns
    -------
    list of str
        One sentence per problem; empty for a notebook that keeps all rules.
    """
    notebook = nbformat.reads(text, as_version=4)
    problems = []
    for position, cell in enumerate(notebook.cells):
        where = f"cell {position} ({cell.cell_type})"
        unknown = set(cell.metadata.get("tags", ())) - TAGS
        if unknown:
            problems.append(f"{where} has tags that are not allowed: {sorted(unknown)}")
        if cell.cell_type == "markdown" and EMPTY_MARKDOWN_ALT.search(cell.source):
            problems.append(f"{where} has an image without alt text")
        if cell.cell_type == "code":
            if cell.source.rstrip().endswith(";"):
                problems.append(f"{where} ends with a semicolon; end it with plt.show()")
            problems += [f"{where} {problem}" for problem in _output_problems(cell)]
            problems += [f"{where} {problem}" for problem in _caption_problems(cell)]
            problems += [f"{where} {problem}" for problem in _glue_problems(cell)]
            try:
                rules_of(cell.metadata)
            except (ValueError, re.error) as error:
                problems.append(f"{where}: {error}")
    counts = [cell.execution_count for cell in code_cells(notebook)]
    if counts != list(range(1, len(counts) + 1)):
        problems.append(f"the code cells were not executed once and in order: {counts}")
    read, known = results_read(notebook), notebook.metadata.get("results", {})
    for name in sorted({*read, *known}):
        if read.get(name) != known.get(name):
            problems.append(f"results of {name} are others than when it was executed; do it again")
    if "widgets" in notebook.metadata:
        problems.append("the metadata hold the state of widgets")
    exercises = _exercises_at(notebook)
    if exercises is not None:
        before = sum(cell.cell_type == "code" for cell in notebook.cells[:exercises])
        if before > MAX_CODE_CELLS:
            problems.append(
                f"{before} code cells before the exercises; {MAX_CODE_CELLS} are allowed"
            )
        problems += part_problems(notebook)
    if len(text.encode()) > MAX_BYTES:
        problems.append(f"{len(text.encode()):,} bytes; {MAX_BYTES:,} are allowed")
    if not problems and dumps(normalize(copy.deepcopy(notebook))) != text:
        problems.append("not normalized: run `python tasks.py notebooks` with the chapter's name")
    return problems


def client_of(notebook, folder):
    """A client that looks again for answers.

    The asynchronous sockets of the client now and then do not report a message that has arrived:
    the kernel is idle, and the client waits for it (ZMQ_EVENTS has POLLIN, its file descriptor is
    not readable; seen with pyzmq 26.4 and 27.3). Asking anew brings it to light.
    """
    from nbclient import NotebookClient

    class Client(NotebookClient):
        async def async_start_new_kernel_client(self):
            client = await super().async_start_new_kernel_client()
            channel = client.shell_channel
            plain = channel.get_msg

            async def get_msg(timeout=None):
                end = time.monotonic() + (CELL_TIMEOUT if timeout is None else timeout)
                while True:
                    left = end - time.monotonic()
                    try:
                        return await plain(timeout=max(0, min(LOOK_AGAIN, left)))
                    except queue.Empty:
                        if left <= LOOK_AGAIN:
                            raise

            channel.get_msg = get_msg
            return client

    return Client(
        notebook,
        timeout=CELL_TIMEOUT,
        startup_timeout=600,
        kernel_name=KERNELSPEC["name"],
        resources={"metadata": {"path": str(folder)}},
    )


def execute(path):
    """Execute a notebook in its folder, normalize it and store it; stops at the first error."""
    before = nbformat.read(path, as_version=4)
    notebook = copy.deepcopy(before)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    start = time.perf_counter()
    client_of(notebook, path.parent).execute()
    notebook.metadata["results"] = results_read(notebook)
    normalize(notebook)
    keep_what_agrees(notebook, before)
    store(path, notebook)
    print(f"{path.name}: {time.perf_counter() - start:.1f} s", flush=True)


def store(path, notebook):
    """Write a notebook unless its text is there already."""
    text = dumps(notebook)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8", newline="\n")


def main(argv):
    if len(argv) < 2 or argv[0] not in ("execute", "normalize", "check"):
        sys.exit(__doc__)
    failed = False
    for path in map(Path, argv[1:]):
        if argv[0] == "execute":
            execute(path.resolve())
        elif argv[0] == "normalize":
            store(path, normalize(nbformat.read(path, as_version=4)))
        if argv[0] != "normalize":
            for problem in find_problems(path.read_text(encoding="utf-8")):
                failed = True
                print(f"{path.name}: {problem}")
    sys.exit(failed)


if __name__ == "__main__":
    main(sys.argv[1:])
