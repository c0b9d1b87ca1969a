"""Derive the copies of the chapters that are run: plain Markdown that any front end shows.

    python book/_tools/live.py [--to live]

The chapters are written with MyST roles and directives, which only the site understands. A live
copy has everything in place instead: numbers from the stored outputs, citations, and the numbers
that theorems, equations, exercises and sections have on the site, as links. It needs neither
Sphinx nor an extension of Jupyter.
"""

import argparse
import hashlib
import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import catalogue
import compare
import nbformat
import yaml

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
# Pages without code that the chapters point to; others are reached on the site only.
TEXT_PAGES = ("notation", "errata", "datasets", "bibliography")
PROOF_KINDS = ("theorem", "proposition", "lemma", "corollary", "definition", "algorithm")
HIDDEN = {
    "hide-input": {"source_hidden": True},
    "remove-input": {"source_hidden": True},
    "hide-output": {"outputs_hidden": True},
    "remove-output": {"outputs_hidden": True},
    "hide-cell": {"source_hidden": True, "outputs_hidden": True},
    "remove-cell": {"source_hidden": True, "outputs_hidden": True},
}
WORKS = "bibliography"  # the cell that lists them
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
INSTALL = """\
# Installs the library where it is missing, as in Colab; elsewhere this cell does nothing.
import importlib.util

if importlib.util.find_spec("s3vm_lib") is None:
    %pip install --quiet "{package}"
"""
EDITED = "{path} holds changes of yours and stays as it is; --force overwrites it."

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|:{3,})(?P<rest>.*)$")
DIRECTIVE = re.compile(r"^\{(?P<name>[\w:-]+)\} *(?P<title>.*)$")
OPTION = re.compile(r"^ *:([\w-]+): *(.*)$")
HEADING = re.compile(r"^(#{1,6}) +(.*)$")
TARGET = re.compile(r"^\(([\w-]+)\)=$")
INLINE = re.compile(
    r"(?P<code>``.+?``(?!`))"
    r"|\{(?P<role>[\w:-]+)\}`(?P<body>[^`]+)`"
    r"|(?P<span>`[^`\n]+`)"
    r"|\$\$(?P<display>.+?)\$\$"
    r"|(?P<escape>\\.)"
    r"|\$(?P<math>(?:\\.|[^$\\])+?)\$"
    r"|(?P<image>!\[[^\]]*\]\([^)\s]+\))"
    r"|\[(?P<text>[^\]\n]*)\]\((?P<target>[^)\s]+)\)",
    re.DOTALL,
)
NAMED = re.compile(r"^(?P<text>.*?)\s*<(?P<target>[^<>]+)>$", re.DOTALL)


@dataclass
class Block:
    """A piece of a page: text, code, a heading, a target or a directive with blocks inside."""

    kind: str
    text: str = ""
    options: dict = field(default_factory=dict)
    inside: list = field(default_factory=list)
    indent: str = ""
    level: int = 0
    number: str = ""

    @property
    def label(self):
        return self.text if self.kind == "target" else self.options.get("label")


@dataclass
class Cell:
    """A cell of a live copy: blocks of text, or the code cell it comes from."""

    id: str
    blocks: list = field(default_factory=list)
    source: object = None
    solution: bool = False


@dataclass
class Page:
    """A page of the book."""

    name: str
    number: int | None
    part: str | None
    cells: list = field(default_factory=list)
    title: str = ""
    glued: dict = field(default_factory=dict)


@dataclass
class Place:
    """What a label stands for: where it is, and what a reference says."""

    page: Page
    cell: str
    anchor: str
    words: str


def parse(text):
    """Blocks of a MyST text.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of Block

    Raises
    ------
    ValueError
        For a fence that does not end.
    """
    blocks, plain = [], []
    lines = iter(text.split("\n"))

    def end_text():
        if "".join(plain).strip():
            blocks.append(Block("text", "\n".join(plain).strip("\n")))
        plain.clear()

    for line in lines:
        if match := FENCE.match(line):
            close = re.compile(rf"^ *{match['fence']}{match['fence'][0]}* *$")
            body = []
            for inner in lines:
                if close.match(inner):
                    break
                body.append(inner.removeprefix(match["indent"]))
            else:
                raise ValueError(f"a fence does not end: {line!r}")
            if directive := DIRECTIVE.match(match["rest"]):
                end_text()
                blocks.append(_directive(directive, body, match["indent"]))
            else:  # code: nothing in it is ours
                plain.append(line)
                plain += [match["indent"] + one for one in body] + [inner]
        elif match := HEADING.match(line):
            end_text()
            blocks.append(Block("heading", match[2].strip(), level=len(match[1])))
        elif match := TARGET.match(line):
            end_text()
            blocks.append(Block("target", match[1]))
        elif not line.startswith("% "):  # a comment
            plain.append(line)
    end_text()
    return blocks


def _directive(match, body, indent):
    options = {}
    while body and (option := OPTION.match(body[0])):
        options[option[1]] = option[2].strip()
        body = body[1:]
    text = "\n".join(body).strip("\n")
    if match["name"] == "math":
        return Block("math", text, options, indent=indent)
    return Block(match["name"], match["title"].strip(), options, parse(text), indent)


def walk(blocks):
    """All blocks, those inside of directives too."""
    for block in blocks:
        yield block
        yield from walk(block.inside)


def pages_of(toc):
    """Pages of the table of contents that get a live copy, in order, with their numbers."""
    found, number = [], 0
    for part in toc["parts"]:
        for chapter in part["chapters"]:
            number += bool(part.get("numbered"))
            name = chapter["file"].removeprefix("book/")
            if name in TEXT_PAGES or (BOOK / f"{name}.ipynb").is_file():
                own = number if part.get("numbered") else None
                found.append(Page(name, own, part.get("caption")))
    return found


def _text(value):
    return "".join(value) if isinstance(value, list) else value


def read(page):
    """Read a page into cells: one for each heading, theorem, exercise and label."""
    path = BOOK / f"{page.name}.ipynb"
    if path.is_file():
        sources = nbformat.read(path, as_version=4).cells
    else:
        text = (BOOK / f"{page.name}.md").read_text(encoding="utf-8")
        sources = [nbformat.v4.new_markdown_cell(text, id=page.name)]
    solution = False
    for source in sources:
        if source.cell_type == "code":
            page.cells.append(Cell(source.id, source=source, solution=solution))
            for output in source.outputs:
                if compare.GLUE in output.get("data", {}):
                    key = output.metadata["scrapbook"]["name"]
                    page.glued[key] = _text(output.data[compare.GLUE]).strip("\"'")
        else:
            solution = _split(page, source, solution)


def _split(page, source, solution):
    """Append the cells of a text; the answer is whether it ends inside a solution."""
    current, count = Cell(source.id, solution=solution), 1
    page.cells.append(current)

    def begin(label=None):
        nonlocal current, count
        if current.blocks:
            count += 1
            current = Cell(f"{source.id}-{count}")
            page.cells.append(current)
        current.id, current.solution = label or current.id, solution

    targets_only = False  # of the current cell
    for block in parse(source.source):
        kind = block.kind.removeprefix("prf:")
        own = kind in (*PROOF_KINDS, "exercise")
        if kind == "solution-start":
            solution = True
            begin(f"solution-{block.text}")
        elif kind == "solution-end":
            solution = False
            begin()
            continue
        elif kind == "target" or own:
            begin(block.label)
        elif kind == "heading" and not targets_only:
            begin()
        current.blocks.append(block)
        targets_only = kind == "target"
        if own or kind == "solution-start":  # a fold hides what follows the cell of a heading
            begin()
    return solution


class Book:
    """All pages, what their labels stand for, and how they are written.

    Parameters
    ----------
    package : str, default=None
        What pip installs where the library is missing; None leaves that cell out.
    colab : str, default=None
        Address in Colab of the folder of the copies, for links that work there.
    site : str, default=None
        Address of the site, for pages without a copy; None makes them plain text.
    """

    def __init__(self, package=None, colab=None, site=None):
        config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
        toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
        self.title = config["title"]
        self.macros = config["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]
        self.package, self.colab, self.site = package, colab, site
        self.pages = {page.name: page for page in pages_of(toc)}
        self.places, self.equations, self.entries = {}, {}, _bibliography()
        for page in self.pages.values():
            read(page)
            self._count(page)

    def _count(self, page):
        """Number what is numbered on a page, and note where its labels are."""
        counts, sections = {}, [0] * 6
        prefix = "" if page.number is None else f"{page.number}."

        def following(kind):
            counts[kind] = counts.get(kind, 0) + 1
            return f"{prefix}{counts[kind]}"

        for cell in page.cells:
            if figure := figure_of(cell):
                if figure["name"] in self.places:
                    raise ValueError(f"{page.name}: the label {figure['name']!r} is there twice")
                words = f"Figure {following('figure')}"
                name = figure["name"]
                self.places[name] = Place(page, name, name, words)
            waiting = []
            for block in walk(cell.blocks):
                kind, words = block.kind.removeprefix("prf:"), block.text
                if kind == "target":
                    waiting.append(block.label)
                    continue
                if kind == "heading":
                    sections[block.level - 1] += 1
                    sections[block.level :] = [0] * (6 - block.level)
                    if page.number is not None:
                        below = sections[1 : block.level]
                        block.number = ".".join(map(str, [page.number, *below])) + "."
                    page.title = page.title or block.text
                elif kind == "math" and block.label:
                    block.number = words = f"({following('math')})"
                elif kind in PROOF_KINDS or kind == "exercise":
                    block.number = words = f"{kind.capitalize()} {following(kind)}"
                for label in filter(None, (*waiting, block.label)):
                    # Equations have a name space of their own, as on the site.
                    places = self.equations if kind == "math" else self.places
                    if label in places:
                        raise ValueError(f"{page.name}: the label {label!r} is there twice")
                    places[label] = Place(page, cell.id, _anchor(kind, label), words)
                waiting = []

    # --- Links --------------------------------------------------------------------------------

    def link(self, words, here, page, anchor="", cell=""):
        """A link to a page, or to an anchor in a cell of this page or of another."""
        if page is here and anchor:
            return f"[{words}](#{anchor})"
        if self.colab:  # knows the cells of another notebook only
            fragment = f"#scrollTo={cell}" if cell else ""
            return f"[{words}]({self.colab}/{page.name}.ipynb{fragment})"
        return f"[{words}]({page.name}.ipynb{anchor and '#'}{anchor})"

    def _reference(self, here, place, words=""):
        words = words or self.inline(place.words, here)
        return self.link(words, here, place.page, place.anchor, place.cell)

    def _document(self, here, target, words=""):
        name = re.sub(r"\.(md|ipynb)$", "", target)
        if name in self.pages:
            page = self.pages[name]
            return self.link(words or self.inline(page.title, page), here, page)
        file = BOOK / f"{name}.md"
        if not file.is_file():
            raise ValueError(f"{here.name}: there is no page {target!r}")
        words = words or HEADING.match(file.read_text(encoding="utf-8").split("\n", 1)[0])[2]
        return f"[{words}]({self.site}/book/{name}.html)" if self.site else words

    # --- Inside of a line ---------------------------------------------------------------------

    def inline(self, text, page):
        """A text with its roles, links and formulas as plain Markdown and TeX."""

        def change(match):
            if match["role"]:
                return self._role(match["role"], match["body"], page)
            if match["display"] is not None:
                return display(self._tex(match["display"]))
            if match["math"] is not None:
                return f"${self._tex(match['math'])}$"
            if match["image"]:
                raise ValueError(f"{page.name}: live copies have no images: {match['image']}")
            target = match["target"]
            if target is None or re.match(r"https?:|#", target):
                return match[0]
            if target in self.places:
                return self._reference(page, self.places[target], match["text"])
            return self._document(page, target, match["text"])

        return INLINE.sub(change, text)

    def _tex(self, tex):
        for name, meaning in self.macros.items():
            # A function, for a backslash in the meaning is not an escape.
            tex = re.sub(rf"\\{name}(?![A-Za-z])", lambda _, to=meaning: to, tex)
        return tex

    def _role(self, role, body, page):
        named = NAMED.match(body)
        words, target = (named["text"], named["target"]) if named else ("", body)
        if role in ("eq", "ref", "prf:ref", "numref"):
            places = self.equations if role == "eq" else self.places
            if target not in places:
                raise ValueError(f"{page.name}: nothing has the label {target!r}")
            return self._reference(page, places[target], words)
        if role == "doc":
            return self._document(page, target.removeprefix("/book/"), words)
        if role == "glue:text":
            return self._glued(page, body)
        if role in ("cite", "cite:p"):
            cited = [f"{_authors(one)}, {one.fields['year']}" for one in self._cited(page, body)]
            links = map(self._entry, [page] * len(cited), cited, body.split(","))
            return f"({'; '.join(links)})"
        if role == "cite:t":
            keys = zip(self._cited(page, body), body.split(","), strict=True)
            return " and ".join(
                f"{_authors(one)} ({self._entry(page, one.fields['year'], key)})"
                for one, key in keys
            )
        if role == "math":
            return f"${self._tex(body)}$"
        if role == "term":
            return words or target
        if role.removeprefix("py:") in ("func", "meth", "class", "mod", "attr", "data", "obj"):
            short = target.rsplit(".", 1)[-1] if target.startswith("~") else target
            return f"`{words or short}{'()' * (role[-4:] in ('func', 'meth') and not words)}`"
        raise ValueError(f"{page.name}: live copies do not know the role {role!r}")

    def _cited(self, page, body):
        unknown = [key for key in body.split(",") if key not in self.entries]
        if unknown:
            raise ValueError(f"{page.name} cites what references.bib does not have: {unknown}")
        return [self.entries[key] for key in body.split(",")]

    def _entry(self, page, words, key):
        return self.link(words, page, self.pages["bibliography"], key, WORKS)

    def _glued(self, page, body):
        key, _, spec = body.partition(":")
        if key not in page.glued:
            raise ValueError(f"{page.name}: no cell glues {key!r}")
        value = page.glued[key]
        if not spec:
            return value
        return format((int if spec[-1] in "bcdoxX" else float)(value), spec)

    # --- Blocks -------------------------------------------------------------------------------

    def write(self, blocks, page, level):
        """Markdown of some blocks; ``level`` is that of the last heading, a list of one."""
        pieces = []
        for block in blocks:
            text = self._block(block, page, level)
            if text:
                pieces.append(re.sub("(?m)^(?=.)", block.indent, text))
        return "\n\n".join(pieces)

    def _block(self, block, page, level):
        kind = block.kind.removeprefix("prf:")
        if kind == "target":
            return f'<a id="{block.label}"></a>'
        if kind == "text":
            # What stands in a fence is code.
            parts = re.split(r"(?ms)(^ *(`{3,})[^\n]*\n.*?^ *\2`* *$)", block.text)
            return "".join(
                part if k % 3 else self.inline(part, page)
                for k, part in enumerate(parts)
                if k % 3 != 2
            )
        if kind == "math":
            formula = display(f"\n{self._tex(block.text)}\n", block.number[1:-1])
            if not block.label:
                return formula
            return f'<div id="{_anchor(kind, block.label)}">\n\n{formula}\n\n</div>'
        title = self.inline(block.text, page)
        if kind == "heading":
            level[0] = block.level
            return " ".join(filter(None, ("#" * block.level, block.number, title)))
        name = f"{block.number} ({title})" if title else block.number
        if kind == "exercise":
            heading = "#" * min(level[0] + 1, 6)
            anchor = f'<a id="{block.label}"></a>\n\n' if block.label else ""
            return f"{anchor}{heading} {name}\n\n{self.write(block.inside, page, level)}"
        if kind == "solution-start":
            exercise = self.places[block.text].words
            return f"{'#' * min(level[0] + 2, 6)} Solution to {exercise}"
        if kind == "tolerance-table":
            return _tolerance_table()
        if kind == "data-set-table":
            return _data_set_table()
        inside = self.write(block.inside, page, level)
        if kind in PROOF_KINDS:
            return framed(f"**{name}**\n\n{inside}", block.label)
        if kind == "proof":
            before = "\n\n" if re.match(r"[-*] |\d+\. |\$\$", inside) else " "
            after = "\n\n" if inside.endswith("$$") else " "
            return f"*Proof.*{before}{inside}{after}∎"
        if kind == "admonition":
            if "dropdown" in block.options.get("class", ""):
                return f"<details><summary>{title}</summary>\n\n{inside}\n\n</details>"
            return framed(f"**{title}**\n\n{inside}")
        if kind == "bibliography":
            return "\n\n".join(_formatted(self.entries))
        raise ValueError(f"{page.name}: live copies do not know the directive {block.kind!r}")

    # --- Notebooks ----------------------------------------------------------------------------

    def notebook(self, page):
        """The live copy of a page.

        Parameters
        ----------
        page : Page

        Returns
        -------
        NotebookNode
        """
        notebook, level = _empty(), [1]
        for cell in page.cells:
            if cell.source is not None:
                notebook.cells.append(_code(cell.source))
                if figure := figure_of(cell):
                    name, caption = figure["name"], self.inline(figure["caption"], page)
                    text = f'<a id="{name}"></a>\n\n**{self.places[name].words}** {caption}'
                    notebook.cells.append(nbformat.v4.new_markdown_cell(text, id=name))
            elif text := self.write(cell.blocks, page, level):
                made = nbformat.v4.new_markdown_cell(text, id=cell.id)
                if self._can_fold(page, cell):
                    made.metadata["jp-MarkdownHeadingCollapsed"] = True
                notebook.cells.append(made)
        code = [k for k, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
        if code and self.package:
            source = INSTALL.format(package=self.package)
            install = nbformat.v4.new_code_cell(source.rstrip(), id="install")
            install.metadata["jupyter"] = {"source_hidden": True}
            notebook.cells.insert(code[0], install)
        if self.colab:
            for cell in notebook.cells:
                cell.metadata["id"] = cell.id  # what Colab's links scroll to
        return _signed(notebook)

    def _can_fold(self, page, cell):
        """Whether a cell begins a solution whose fold, up to the next heading, hides no more."""
        if not (cell.blocks and cell.blocks[0].kind == "solution-start"):
            return False
        for one in page.cells[page.cells.index(cell) + 1 :]:
            if one.blocks and one.blocks[0].kind in ("heading", "exercise", "target"):
                return True
            if not one.solution and (one.blocks or one.source):
                return False
        return True

    def contents(self):
        """The notebook that a reader opens first."""
        notebook, part = _empty(), None
        lines = [
            f"# {self.title}",
            "Each chapter below is a notebook: run it from top to bottom (*Run*, *Run All Cells*), "
            "then change what you like. Cells that only draw are folded, and a click on the dots "
            "opens one; solutions fold too. Numbers in the text are those of the book: they stay "
            "as they are when you run a cell with other settings, the output below it does not. "
            "The first run after an installation compiles the library, which takes a minute. The "
            "files at the left are in the order of the book where they are sorted by *Modified*.",
        ]
        for page in self.pages.values():
            if page.part != part:
                part = page.part
                lines.append(f"## {part}")
            number = f"{page.number}. " if page.number else ""
            lines.append(f"- {number}{self._document(page, page.name)}")
        text = re.sub(r"(?m)^(- .*)\n\n(?=- )", r"\1\n", "\n\n".join(lines))
        notebook.cells.append(nbformat.v4.new_markdown_cell(text, id="contents"))
        return _signed(notebook)

    def notebooks(self):
        """All live copies.

        Returns
        -------
        dict of str to NotebookNode
            By file name.
        """
        made = {f"{name}.ipynb": self.notebook(page) for name, page in self.pages.items()}
        return {"index.ipynb": self.contents(), **made}


def figure_of(cell):
    """Name and caption of the figure that a code cell draws, or None."""
    metadata = {} if cell.source is None else cell.source.metadata
    return metadata.get("mystnb", {}).get("figure")


def display(tex, tag=""):
    """A displayed formula; several lines are aligned as on the site."""
    margin = re.match(r"\n? *", tex)[0]  # inside of a list
    if r"\\" in tex and not tex.strip().startswith(r"\begin{"):
        tex = f"{margin}\\begin{{split}}{tex.rstrip()}{margin}\\end{{split}}{margin}"
    number = f"\\tag{{{tag}}}{margin}" if tag else ""
    return f"$${tex}{number}$$"


def framed(text, anchor=None):
    """A block with a line at its left, where a front end allows it."""
    name = f'id="{anchor}" ' if anchor else ""
    style = "border-left: 4px solid #0072B2; padding-left: 1em"
    return f'<div {name}style="{style}">\n\n{text}\n\n</div>'


def _anchor(kind, label):
    return f"equation-{label}" if kind == "math" else label


def _table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _tolerance_table():
    rows = [
        (chapter, rf"\[{cell[1:-1]}\]", "`" + lines.replace("|", r"\|") + "`", width)
        for chapter, cell, lines, width in catalogue.tolerances()
    ]
    return _table(catalogue.TOLERANCES, rows)


def _data_set_table():
    rows = [(f"`{name}`", size, what) for name, size, what in catalogue.data_sets()]
    return _table(catalogue.DATA_SETS, rows)


def _bibliography():
    from pybtex.database import parse_file

    return parse_file(str(BOOK / "references.bib"), bib_format="bibtex").entries


def _authors(entry):
    """Names as the site writes them: one, two, or the first and others."""
    from pybtex.richtext import Text

    persons = entry.persons.get("author") or entry.persons["editor"]
    names = [
        str(Text(" ").join([*one.rich_prelast_names, *one.rich_last_names])) for one in persons
    ]
    return f"{names[0]} *et al.*" if len(names) > 2 else " and ".join(names)


def _formatted(entries):
    """Markdown of each work, in the order of the site."""
    from pybtex.backends.markdown import Backend
    from pybtex.style.formatting.plain import Style

    for one in Style().format_entries(entries.values()):
        yield f'<a id="{one.key}"></a>' + one.text.render(Backend("utf-8"))


def _empty():
    notebook = nbformat.v4.new_notebook()
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    )
    return notebook


def _code(source):
    """A code cell as stored; what only the site's tools understand is left out."""
    cell = nbformat.v4.new_code_cell(source.source, id=source.id)
    cell.execution_count = source.execution_count
    cell.outputs = [one for one in source.outputs if compare.GLUE not in one.get("data", {})]
    hidden = {}
    for tag in source.metadata.get("tags", ()):
        hidden |= HIDDEN.get(tag, {})
    if hidden:
        cell.metadata["jupyter"] = hidden
    return cell


def _digest(notebook):
    sources = "\0".join(_text(cell.source) for cell in notebook.cells)
    return hashlib.sha256(sources.encode()).hexdigest()[:12]


def _signed(notebook):
    notebook.metadata["s3vm_lib"] = {"derived": _digest(notebook)}
    return notebook


def is_edited(path):
    """Whether somebody has changed a live copy since it was derived."""
    notebook = nbformat.read(path, as_version=4)
    return notebook.metadata.get("s3vm_lib", {}).get("derived") != _digest(notebook)


def store(notebooks, folder, force=False):
    """Write live copies into a folder; those that a reader has changed are kept.

    The list of files in Jupyter knows two orders, by name and by time: by time, the oldest first,
    they are in the order of the book.

    The players run before the first cell does: a copy is trusted, as if it had been run here.

    Parameters
    ----------
    notebooks : dict of str to NotebookNode
        By file name.
    folder : path
    force : bool, default=False
        Overwrite changed ones too.

    Returns
    -------
    list of path
        Those that were kept.
    """
    from nbformat.sign import NotebookNotary

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    kept, now = [], time.time()
    for place, (name, notebook) in enumerate(notebooks.items()):
        path = folder / name
        if path.exists() and not force and is_edited(path):
            kept.append(path)
            continue
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8", newline="\n")
        os.utime(path, (now + 60 * (place - len(notebooks)),) * 2)
        NotebookNotary().sign(notebook)
    return kept


def main(argv=None):
    repository = os.environ.get("BOOK_REPOSITORY_URL", "").rstrip("/")
    branch = os.environ.get("BOOK_REPOSITORY_BRANCH", "main")
    parser = argparse.ArgumentParser(prog="live.py", description=__doc__.splitlines()[0])
    parser.add_argument("--to", default=ROOT / "live", type=Path, help="folder of the copies")
    parser.add_argument("--force", action="store_true", help="overwrite what you have changed")
    parser.add_argument(
        "--package",
        default=f"s3vm-lib @ git+{repository}@{branch}" if repository else None,
        help="what pip installs where the library is missing (a name, a file, an address); "
        "from BOOK_REPOSITORY_URL if it is set, else there is no such cell",
    )
    parser.add_argument(
        "--colab",
        metavar="BRANCH",
        help="links for Colab, to copies at the root of this branch of BOOK_REPOSITORY_URL",
    )
    parser.add_argument("--site", default=os.environ.get("BOOK_SITE_URL"), help="its address")
    options = parser.parse_args(argv)
    colab = None
    if options.colab:
        github = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+)", repository)
        if not github:
            parser.error(
                f"--colab needs a GitHub address in BOOK_REPOSITORY_URL, not {repository!r}"
            )
        colab = f"https://colab.research.google.com/github/{github[1]}/blob/{options.colab}"
    site = options.site.rstrip("/") if options.site else None
    notebooks = Book(options.package, colab, site).notebooks()
    for path in store(notebooks, options.to, options.force):
        print(EDITED.format(path=path))
    print(f"{len(notebooks)} notebooks to run are in {options.to}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
