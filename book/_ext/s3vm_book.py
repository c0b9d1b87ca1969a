"""The local Sphinx extension of the book: no outside request, honest links, accessible pages."""

import importlib.util
import inspect
import os
import re
import shutil
import sys
from pathlib import Path

import nbformat
from docutils import nodes
from numba.core.dispatcher import Dispatcher
from sphinx.ext.autodoc import FunctionDocumenter
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import unwrap_all

from s3vm_lib.datasets._sources import SOURCES

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "_tools"))  # scripts, not a package: found from here on

import compare  # noqa: E402

REPOSITORY = os.environ.get("BOOK_REPOSITORY_URL", "").rstrip("/")
BRANCH = os.environ.get("BOOK_REPOSITORY_BRANCH", "main")

# What tex-chtml.js may load when it meets a formula; speech and menus need 20 MB more.
MATHJAX_PARTS = ("tex-chtml.js", "input/tex/extensions", "output/chtml/fonts/woff-v2")

# What a screen reader stumbles over in the HTML of docutils 0.21 and sphinx-book-theme 1.3.
ACCESSIBLE = (
    # A button with a text needs no second name, and an icon in a named button none at all.
    (
        re.compile(
            r'(<button class="btn search-button-field[^>]*?) title="[^"]*" aria-label="[^"]*"'
        ),
        r"\1",
    ),
    (re.compile(r'(<i class="theme-switch [^>]*?)\s*title="[^"]*"'), r'\1 aria-hidden="true"'),
    # The arrow that unfolds a part of the table of contents has no text.
    (
        re.compile(r'<summary>(?=<span class="toctree-toggle")'),
        '<summary aria-label="Show the pages of this section">',
    ),
    # A fold of code that says "Show code cell source" needs no other name.
    (re.compile(r'<summary aria-label="Toggle hidden content">'), "<summary>"),
    # The logo stands outside all landmarks.
    (
        re.compile(r'(<div id="pst-primary-sidebar" class="[^"]*")(?=>)'),
        r'\1 role="region" aria-label="Sidebar"',
    ),
    # ARIA has no list whose items are bibliography entries.
    (re.compile(r'<div role="list" class="citation-list">'), '<div class="citation-list">'),
    (re.compile(r'(<div class="citation"[^>]*?) role="doc-biblioentry"'), r"\1"),
)


class JittedFunctionDocumenter(FunctionDocumenter):
    """Documents what numba compiled like the Python function it was compiled from."""

    objtype = "jitted"
    directivetype = "function"
    priority = FunctionDocumenter.priority + 10

    @classmethod
    def can_document_member(cls, member, membername, isattr, parent):
        return isinstance(member, Dispatcher)

    def import_object(self, raiseerror=False):
        found = super().import_object(raiseerror)
        if found and isinstance(self.object, Dispatcher):
            self.object = self.object.py_func
        return found


class DataSetTable(SphinxDirective):
    """The catalogue behind `s3vm_lib.datasets.load` as a table."""

    WIDTHS = (18, 16, 66)

    def run(self):
        rows = [
            (
                nodes.literal(text=name),
                nodes.inline(text=f"{source.shape[0]:,} × {source.shape[1]:,}"),
                nodes.inline(text=source.description + ("" if source.urls else " Folder only.")),
            )
            for name, source in sorted(SOURCES.items())
        ]
        return [table(("name", "rows × columns", "what it is"), rows, self.WIDTHS)]


class ToleranceTable(SphinxDirective):
    """All numbers of the book that may differ from one processor to another, and how far."""

    WIDTHS = (25, 15, 40, 20)

    def run(self):
        rows = []
        for path in sorted((ROOT / "book").glob("*.ipynb")):
            self.env.note_dependency(str(path))
            for cell in nbformat.read(path, as_version=4).cells:
                for rule in filter(is_wide, compare.rules_of(cell.metadata)):
                    place = (path.stem, f"[{cell.execution_count}]")
                    row = [nodes.inline(text=text) for text in (*place, compare.in_words(rule))]
                    rows.append([*row[:2], nodes.literal(text=rule.get("lines", "all")), row[2]])
        return [table(("chapter", "cell", "lines that match", "may move by"), rows, self.WIDTHS)]


def table(titles, rows, widths):
    """A table of nodes with one line of titles."""
    header = [nodes.inline(text=text) for text in titles]
    group = nodes.tgroup(cols=len(widths))
    group += [nodes.colspec(colwidth=width) for width in widths]
    group += nodes.thead("", _row(header))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group)


def _row(cells):
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))


def is_wide(rule):
    """True unless the rule says that a number is exact."""
    return any(rule.get(width) for width in ("abs", "rel", "figure"))


def tell_tolerances(app, doctree):
    """Say below the output of a cell how far its numbers may move on another processor."""
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") != "cell_code" or not cell.children:
            continue
        output = cell.children[-1]
        if output.get("nb_element") != "cell_code_output":
            continue
        words = []
        for rule in filter(is_wide, compare.rules_of(cell["cell_metadata"])):
            pattern = rule.get("lines", "")
            if "figure" in rule or re.search(pattern, output.astext(), re.MULTILINE):
                where = f" in lines with {pattern}" if pattern else ""
                words.append(compare.in_words(rule) + where)
        if words:
            note = f"On another processor: {'; '.join(words)}."
            output += nodes.paragraph("", note, classes=["tolerance"])


def linkcode_resolve(domain, info):
    """Address of a documented object's source in the repository, for sphinx.ext.linkcode."""
    if domain != "py" or not info["module"]:
        return None
    found = sys.modules.get(info["module"])
    for name in info["fullname"].split("."):
        found = getattr(found, name, None)
    found = unwrap_all(getattr(found, "py_func", found))
    try:
        path = Path(inspect.getsourcefile(found)).resolve().relative_to(ROOT)
        lines, first = inspect.getsourcelines(found)
    except (TypeError, OSError, ValueError):
        return None  # a constant or a property: it has no lines of its own
    return f"{REPOSITORY}/blob/{BRANCH}/{path.as_posix()}#L{first}-L{first + len(lines) - 1}"


def set_repository_links(app, config):
    """Launch and source buttons for the repository the book is published from, or none at all."""
    options = config.html_theme_options
    for key in ("repository_url", "repository_branch", "path_to_docs", "launch_buttons"):
        options.pop(key, None)
    if REPOSITORY:
        options.update(
            repository_url=REPOSITORY,
            repository_branch=BRANCH,
            path_to_docs="",
            use_repository_button=True,
            use_source_button=True,
            launch_buttons={
                "notebook_interface": "jupyterlab",
                "binderhub_url": "https://mybinder.org",
                "colab_url": "https://colab.research.google.com",
            },
        )
        config.linkcode_resolve = linkcode_resolve


def drop_thebe(app):
    """Undo sphinx-thebe, which jupyter-book always loads and which asks a CDN for a script."""
    for listeners in app.events.listeners.values():
        listeners[:] = [
            one for one in listeners if not one.handler.__module__.startswith("sphinx_thebe")
        ]


def keep_absolute_values(app, what, name, obj, options, lines):
    """Escape the bars of ``|x|`` in docstrings, which would name a substitution."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", "|", "+")):
            parts = re.split(r"(``.+?``)", line)
            parts[::2] = [re.sub(r"(?<!\\)\|(?=\S)", r"\\|", part) for part in parts[::2]]
            lines[i] = "".join(parts)


def skip_generated(app, what, name, obj, skip, options):
    """Leave out what namedtuple and scikit-learn's metadata routing generate."""
    field = (obj.__doc__ or "").startswith("Alias for field number")
    request = re.fullmatch(r"set_\w+_request", name.rsplit(".", 1)[-1])
    return True if field or request else None


def list_references(app, what, name, obj, options, lines):
    """Turn numpydoc's ``[1]_`` and ``.. [1]`` into text: on a shared page their targets clash."""
    inside = False
    for i, line in enumerate(lines):
        if match := re.match(r"\s*\.\. (\[\d+\]) (.*)", line):
            lines[i], inside = f"* {match[1]} {match[2]}", True
        elif inside and line.startswith(" "):
            lines[i] = "  " + line.strip()
        else:
            lines[i], inside = re.sub(r"(\[\d+\])_(?!\w)", r"\1", line), False


def make_accessible(app, exception):
    """Mend the names and roles in every page that has been written."""
    if exception or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        before = html = path.read_text(encoding="utf-8")
        for pattern, replacement in ACCESSIBLE:
            html = pattern.sub(replacement, html)
        if html != before:
            path.write_text(html, encoding="utf-8", newline="\n")


def copy_mathjax(app, exception):
    """Copy the part of the offline MathJax that the book uses."""
    if exception or app.builder.format != "html":
        return
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    source = Path(package.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    for part in MATHJAX_PARTS:
        if (source / part).is_dir():
            shutil.copytree(source / part, target / part, dirs_exist_ok=True)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / part, target / part)


def setup(app):
    app.setup_extension("sphinx.ext.linkcode" if REPOSITORY else "sphinx.ext.viewcode")
    app.add_autodocumenter(JittedFunctionDocumenter)
    app.add_directive("data-set-table", DataSetTable)
    app.add_directive("tolerance-table", ToleranceTable)
    app.connect("doctree-read", tell_tolerances)
    app.connect("config-inited", set_repository_links, priority=100)
    app.connect("builder-inited", drop_thebe)
    app.connect("autodoc-skip-member", skip_generated)
    app.connect("autodoc-process-docstring", list_references)
    app.connect("autodoc-process-docstring", keep_absolute_values)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", make_accessible)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
