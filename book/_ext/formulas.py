"""Formulas typeset while the book is built: a page shows them at once, and without a script.

MathJax, from the package sphinx-mathjax-offline, runs in V8, from the package mini-racer; a page
gets the HTML that MathJax would make in the browser, with the MathML that screen readers read.
"""

import functools
import importlib.util
import json
import re
import shutil
from pathlib import Path

from docutils import nodes
from pages import write_subset
from py_mini_racer import MiniRacer
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

PARTS = (
    "startup.js",
    "core.js",
    "adaptors/liteDOM.js",
    "input/tex-full.js",
    "output/chtml.js",
    "output/chtml/fonts/tex.js",
    "a11y/assistive-mml.js",
)
FONTS = "output/chtml/fonts/woff-v2"
# Each part is followed by a number, as what it returns cannot leave V8.
START = """
MathJax.startup.defaultReady();
function typeset(tex, display) {
  return MathJax.startup.adaptor.outerHTML(MathJax.tex2chtml(tex, {display}));
}
0
"""
STYLES = "MathJax.startup.adaptor.textContent(MathJax.chtmlStylesheet())"
# The style of one glyph, such as `mjx-c.mjx-c1D465.TEX-I::before {...}`, and its class in a page.
GLYPH_STYLE = re.compile(
    r'^mjx-c\.(mjx-c[0-9A-F]+(?:\.TEX-\w+)?)::before \{(?:[^"}]|"(?:\\.|[^"\\])*")*\}', re.MULTILINE
)
GLYPH = re.compile(r'<mjx-c class="(mjx-c[0-9A-F]+(?: TEX-\w+)?)"')
TAG = re.compile(r"<(/?)mjx-[^>]*>")
SPACED = re.compile(r'<mjx-mo class="mjx-n" space="[34]"')
ZERO = "\ueffc"  # all that MathJax_Zero has, the first font of every formula
# What a style shows: in the font of a glyph, in the first one, or (a piece of a long arrow) in any.
CONTENT = re.compile(
    r'^mjx-(c\.mjx-c[0-9A-F]+(?:\.(TEX-\w+))?::before|[^{}\n]+) \{[^}]*?content: "(\\"|[^"]+)"',
    re.MULTILINE,
)
FACE = re.compile(r'font-family: MJX([\w-]+);\s*src: url\("mathjax/([^"]+)"')


def source():
    """The folder of MathJax in its package."""
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    return Path(package.origin).parent / "static" / "mathjax"


class Typesetter:
    """MathJax with the macros of the book."""

    def __init__(self, macros):
        self._engine = MiniRacer()
        config = {
            "startup": {"typeset": False},
            # Without this extension an unknown command is an error, not red text.
            "tex": {"macros": macros, "packages": {"[-]": ["noundefined"]}},
            "chtml": {"fontURL": "mathjax", "adaptiveCSS": False},
        }
        self._engine.eval(f"var global = globalThis; var MathJax = {json.dumps(config)}; 0")
        self._engine.eval("MathJax.startup.ready = () => {}; 0")  # until all parts are there
        for part in PARTS:
            self._engine.eval((source() / part).read_text(encoding="utf-8") + "\n;0")
        self._engine.eval(START)
        self._known = {}  # half of all formulas of a chapter are repetitions

    def html(self, tex, display):
        """The HTML of a formula."""
        if (tex, display) not in self._known:
            html = self._engine.eval(f"typeset({json.dumps(tex)}, {json.dumps(display)})")
            self._known[tex, display] = html if display else breakable(html)
        return self._known[tex, display]

    def styles(self, glyphs):
        """The style sheet of all formulas, with these glyphs (their classes in a page)."""
        css = self._engine.eval(STYLES)
        kept = {one.replace(" ", ".") for one in glyphs}
        css = GLYPH_STYLE.sub(lambda found: found[0] if found[1] in kept else "", css)
        return re.sub(r"\n\s*", "\n", css)


def breakable(html):
    """A formula that may go on in the next line after a relation or a sign of a sum, as in TeX.

    MathJax puts spaces around those. Fractions, roots and what stands in long brackets stay whole.
    """
    pieces, level, end, spaced = [], 0, 0, False
    for tag in TAG.finditer(html):
        level += -1 if tag[1] else 1
        if level == 3 and not tag[1]:  # inside of the container and the formula
            spaced = bool(SPACED.match(tag[0]))
        elif level == 2 and tag[1] and spaced:
            pieces += [html[end : tag.end()], "<wbr>"]
            end, spaced = tag.end(), False
    return "".join([*pieces, html[end:]])


@functools.cache
def typesetter(macros):
    """The one typesetter of this process for these macros (as JSON)."""
    return Typesetter(json.loads(macros))


def of(config):
    """The typesetter for the macros in the configuration of the book."""
    return typesetter(json.dumps(config.mathjax3_config["tex"]["macros"], sort_keys=True))


def write(translator, node, tex, display):
    """Append the HTML of a formula to a page."""
    html = of(translator.builder.config).html(tex, display)
    if error := re.search(r'data-mjx-error="([^"]*)"', html):
        logger.warning("MathJax: %s in %s", error[1], tex, location=node)
    translator.body.append(html)


def visit_math(self, node):
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    write(self, node, node.astext(), False)
    self.body.append("</span>")
    raise nodes.SkipNode


def visit_math_block(self, node):
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    tex = node.astext()
    if not node["nowrap"] and "amsmath" not in node["classes"]:
        tex = rf"\begin{{split}}{tex}\end{{split}}" if r"\\" in tex else tex
    write(self, node, tex, True)
    self.body.append("</div>\n")
    raise nodes.SkipNode


# Docstrings write formulas as a terminal shows them. In TeX, in this order:
PLAIN = (
    (r"\\sum ", r"Σ ?"),
    (r"_{\\mathrm{\1}}", r"_([A-Za-z]{3,})"),
    (r"_{\1}", r" ?_([A-Za-z]+)"),
    (r"^*", r"(?<=[Cλ])\*"),
    (r"\\tfrac12 ", r"½"),
    (r"\\lVert \1\\rVert", r"‖([^‖]*)‖"),
    (r"^2", "²"),
    (r"\\\1", r"\b(max|min|log|exp)(?=\()"),
    (r"^\\top ", r"ᵀ"),
)
FORMULA = re.compile(r"[Σ‖].*[=(‖]", re.DOTALL)


def in_tex(text):
    """The TeX of a formula in plain text, its lines aligned where the first has its sign."""
    for tex, plain in PLAIN:
        text = re.sub(plain, tex, text)
    lines = [line.strip() for line in text.strip().rstrip(",").splitlines()]
    if len(lines) > 1:
        lines[0] = re.sub(r" = ", " ={}& ", lines[0], count=1)
        lines[1:] = [f"&{line}" for line in lines[1:]]
    return r" \\ ".join(lines)


def set_formulas(app, doctree):
    """Typeset what stands as a formula of its own, or in a column of formulas, on an API page."""
    if not app.env.docname.startswith("book/api/"):
        return
    for block in [*doctree.findall(nodes.block_quote), *doctree.findall(nodes.literal_block)]:
        text = block.astext()
        if FORMULA.search(text) and ">>>" not in text:
            options = {"docname": app.env.docname, "number": None, "label": None, "nowrap": False}
            tex = in_tex(text)
            block.replace_self(nodes.math_block(tex, tex, **options))
    for group in doctree.findall(nodes.tgroup):
        titles = [entry.astext() for entry in next(iter(group.findall(nodes.row)))]
        for row in list(group.findall(nodes.row))[1:]:
            for title, entry in zip(titles, row, strict=True):
                text = re.sub(r"\b(or|where)\b", r"\\text{ \1 }", entry.astext())
                if re.fullmatch(r"[ℓu]\(.*\)", title) and " the " not in f" {text}":
                    tex = in_tex(text.replace("\n", " "))
                    entry.children = []
                    entry += nodes.paragraph("", "", nodes.math(tex, tex))


def copy_fonts(app, exception):
    """Put the style sheet of the formulas, and fonts with what it shows, beside the pages."""
    if exception or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "mathjax"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    glyphs = set()
    for path in Path(app.outdir).rglob("*.html"):
        glyphs.update(GLYPH.findall(path.read_text(encoding="utf-8")))
    css = of(app.config).styles(glyphs)
    (Path(app.outdir) / "_static" / "mathjax.css").write_text(css, encoding="utf-8", newline="\n")
    shown = {"": ZERO}
    for style, font, content in CONTENT.findall(css):
        letters = re.sub(r"\\([0-9A-F]+)", lambda code: chr(int(code[1], 16)), content)
        font = font or ("TEX" if style.startswith("c.") else "")
        shown[font] = shown.get(font, "") + letters
    for font, name in FACE.findall(css):
        letters = shown[""] + shown.get(font, "")
        write_subset(source() / FONTS / name, letters, target / name)


def setup(app):
    app.add_html_math_renderer("typeset", (visit_math, None), (visit_math_block, None))
    app.add_css_file("mathjax.css")
    app.connect("doctree-read", set_formulas)
    app.connect("build-finished", copy_fonts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": False}
