"""The local Sphinx extension of the book; its larger parts are the modules beside it."""

import base64
import inspect
import os
import re
import sys
from pathlib import Path

import nbformat
from docutils import nodes
from node_tables import table
from numba.core.dispatcher import Dispatcher
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import unwrap_all

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "_tools"))  # scripts, not a package: found from here on

import catalogue  # noqa: E402
import compare  # noqa: E402

REPOSITORY = os.environ.get("BOOK_REPOSITORY_URL", "").rstrip("/")
BRANCH = os.environ.get("BOOK_REPOSITORY_BRANCH", "main")


class DataSetTable(SphinxDirective):
    """The catalogue behind `s3vm_lib.datasets.load` as a table."""

    WIDTHS = (18, 16, 66)

    def run(self):
        rows = [
            (nodes.literal(text=name), nodes.inline(text=size), nodes.inline(text=what))
            for name, size, what in catalogue.data_sets()
        ]
        return [table(catalogue.DATA_SETS, rows, self.WIDTHS)]


class NotebookFigure(SphinxDirective):
    """The first picture of a notebook, with its text for those who cannot see it."""

    required_arguments = 1

    def run(self):
        path = ROOT / "book" / f"{self.arguments[0]}.ipynb"
        self.env.note_dependency(str(path))
        image, alt = first_picture(path)
        target = Path(self.env.app.outdir).parent / "figures" / f"{path.stem}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(image)
        uri = os.path.relpath(target, Path(self.env.doc2path(self.env.docname)).parent)
        return [nodes.image(uri=Path(uri).as_posix(), alt=alt)]


def first_picture(path):
    """The bytes and the alternative text of the first picture of a notebook."""
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", ()):
            if image := output.get("data", {}).get("image/png"):
                return base64.b64decode(image), cell.metadata["mystnb"]["image"]["alt"]
    raise ValueError(f"notebook-figure: {path.name} has no picture")


class ToleranceTable(SphinxDirective):
    """All numbers of the book that may differ from one processor to another, and how far."""

    WIDTHS = (25, 15, 40, 20)

    def run(self):
        for path in (ROOT / "book").glob("*.ipynb"):
            self.env.note_dependency(str(path))
        rows = [
            (
                nodes.inline(text=chapter),
                nodes.inline(text=cell),
                nodes.literal(text=lines),
                nodes.inline(text=width),
            )
            for chapter, cell, lines, width in catalogue.tolerances()
        ]
        return [table(catalogue.TOLERANCES, rows, self.WIDTHS)]


def which_lines(rule, text):
    """The lines of an output that a rule is for, by the words in them that it asks for."""
    if "lines" not in rule:
        return ""
    found = dict.fromkeys(one[0].strip(" =-") for one in re.finditer(rf"(?m){rule['lines']}", text))
    named = len(found) <= 4 and all(re.search("[^\\W\\d]", one) for one in found)
    return f" in lines with {', '.join(found)}" if named else " in some lines"


def is_titled(node):
    """Whether a node is a section of the page; a solution is one without a title."""
    return isinstance(node, nodes.section) and isinstance(node[0], nodes.title)


def tell_tolerances(app, doctree):
    """List in a fold at the end of a page how far its numbers may move on another processor."""
    notes = nodes.bullet_list()
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") != "cell_code" or not cell.children:
            continue
        output = cell.children[-1]
        if output.get("nb_element") != "cell_code_output":
            continue
        words = []
        for rule in filter(compare.is_wide, compare.rules_of(cell["cell_metadata"])):
            if "figure" in rule or re.search(rule.get("lines", ""), output.astext(), re.MULTILINE):
                words.append(compare.in_words(rule) + which_lines(rule, output.astext()))
        if words:
            place, section = f"moves-{len(notes) + 1}", cell.parent
            while not is_titled(section):
                section = section.parent
            cell["ids"].append(place)
            link = nodes.reference("", section[0].astext(), internal=True, refid=place)
            line = nodes.paragraph("", "", link, nodes.Text(f": {'; '.join(words)}"))
            notes += nodes.list_item("", line)
    if len(notes):
        title = nodes.title("", "Numbers that another processor may change")
        *_, last = doctree.findall(is_titled)
        last += nodes.admonition("", title, notes, classes=["dropdown", "tolerance"])


def tell_sliders(app, doctree):
    """Say below a cell of sliders, which a page cannot move, where they do move."""
    for cell in list(doctree.findall(nodes.container)):
        if cell.get("nb_element") != "cell_code" or "interact(" not in cell.astext():
            continue
        note = nodes.paragraph("", "The sliders of this cell move ", classes=["sliders"])
        target = {"refdomain": "std", "reftype": "doc", "reftarget": "how_to_read"}
        link = addnodes.pending_xref(
            "", nodes.inline(text="where the chapter is run"), refexplicit=True, **target
        )
        note += [link, nodes.Text(".")]
        cell.parent.insert(cell.parent.index(cell) + 1, note)


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


def launch_copies(app, pagename, templatename, context, doctree):
    """Launch buttons open the copies that are made for running, not the sources of the pages."""
    name = pagename.rpartition("/")[2]
    places = {
        f"lab/tree/{pagename}.ipynb": f"lab/tree/live/{name}.ipynb",  # Binder makes the folder
        f"/blob/{BRANCH}/{pagename}.ipynb": f"/blob/live/{name}.ipynb",  # a branch of its own
    }
    waiting = list(context.get("header_buttons", ()))
    while waiting:
        button = waiting.pop()
        waiting += button.get("buttons", ())
        if "mybinder" in button.get("url", "") or "colab" in button.get("url", ""):
            for source, copy in places.items():
                button["url"] = button["url"].replace(source, copy)


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
    """Leave out compiled functions, and what namedtuple and scikit-learn's routing generate."""
    field = (obj.__doc__ or "").startswith("Alias for field number")
    request = re.fullmatch(r"set_\w+_request", name.rsplit(".", 1)[-1])
    return True if field or request or isinstance(obj, Dispatcher) else None


def use_dashes(app, doctree, docname):
    """Put a dash between a name and its description, where Sphinx puts two hyphens."""
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, nodes.paragraph) and " -- " in text:
            text.parent.replace(text, nodes.Text(text.replace(" -- ", " – ", 1)))


def list_fields(app, what, name, obj, options, lines):
    """The fields of a named tuple, which the comments behind them explain."""
    if what != "class" or not hasattr(obj, "_fields") or not obj.__annotations__:
        return
    field, fields = None, {}
    for line in inspect.getsource(obj).splitlines():
        if match := re.match(r"    (\w+): ([^=#]+?)(?: = .*?)?(?:  # (.*))?$", line):
            field = match[1]
            fields[field] = [match[2].removeprefix("np."), match[3] or ""]
        elif field and (match := re.match(r" +# (.*)", line)):
            fields[field][1] += " " + match[1]
        else:
            field = None
    lines += ["", "Attributes", "----------"]
    for field in obj._fields:
        kind, meaning = fields[field]
        lines += [f"{field} : {kind}", f"    {meaning}"]


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


def setup(app):
    app.setup_extension("sphinx.ext.linkcode" if REPOSITORY else "sphinx.ext.viewcode")
    app.add_directive("data-set-table", DataSetTable)
    app.add_directive("notebook-figure", NotebookFigure)
    app.add_directive("tolerance-table", ToleranceTable)
    app.connect("doctree-read", tell_tolerances)
    app.connect("doctree-read", tell_sliders)
    app.connect("doctree-resolved", use_dashes)
    app.connect("config-inited", set_repository_links, priority=100)
    app.connect("html-page-context", launch_copies, priority=900)
    app.connect("builder-inited", drop_thebe)
    app.connect("autodoc-skip-member", skip_generated)
    app.connect("autodoc-process-docstring", list_fields, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", list_references)
    app.connect("autodoc-process-docstring", keep_absolute_values)
    for part in ("formulas", "crossrefs", "finding", "pages"):
        app.setup_extension(part)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
