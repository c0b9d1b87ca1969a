"""What happens to the pages once they are written: lean, accessible, and known to those who link.

The theme loads an icon program of 1.5 MB and the search index on every page; the pages of the book
get a font with the icons they use, and the index when somebody searches.
"""

import json
import os
import re
from pathlib import Path

from docutils import nodes
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

# The address at which the book is published, if there is one.
SITE = os.environ.get("BOOK_SITE_URL", "").rstrip("/")

# The picture of the front page, which messengers show.
CARD = "how_to_read.png"

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
    # The theme's names for what opens the list of pages and the one of sections.
    (re.compile(r'(?<=title=)"Toggle primary sidebar"'), '"All pages"'),
    (re.compile(r'(?<=title=)"Toggle secondary sidebar"'), '"Sections of this page"'),
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
    # The corner of a table is no header of anything.
    (re.compile(r"<th(?: class=\"[^\"]*\")?>(?:\s|&nbsp;|&#160;|<p></p>)*</th>"), "<td></td>"),
)
LEAN = (
    (re.compile(r"\s*<!-- So that users can add custom icons -->"), ""),
    (re.compile(r'\s*<script defer src="[^"]*/fontawesome\.js[^"]*"></script>'), ""),
    (re.compile(r'\s*<meta name="docsearch:[^>]*>'), ""),
    (re.compile(r'<meta name="viewport" content="width=device-width, initial-scale=1" ?/>'), ""),
    # book.js follows the reader; the program of the theme knows the panel by this name.
    (re.compile(r'<nav id="pst-page-toc-nav"'), '<nav id="page-contents"'),
)
# Extensions add their files to every page: what shows that a page needs one.
NEEDED = {
    "mathjax.css": "<mjx-container",
    "sphinx-design.min.css": 'class="sd-',
    "design-tabs.js": 'class="sd-tab-',
    "sphinx-thebe.css": 'class="thebe',
    "proof.css": 'class="proof ',
    "exercise.css": 'class="exercise ',
    "mystnb.": 'class="cell',
    "togglebutton.css": 'class="dropdown admonition',
    "togglebutton.js": 'class="dropdown admonition',
}
LINK = r'\s*<(?:link rel="stylesheet"|script)[^>]*["/]_static/{}[^>]*>(?:</script>)?'
SEARCH_INDEX = re.compile(r'\s*<script src="[^"]*searchindex\.js"></script>')

# Where a narrow column may break the name of a class.
TABLE = re.compile(r"<table.*?</table>", re.DOTALL)
NAME = re.compile(r'(?<=<span class="pre">)[A-Za-z0-9]+(?=</span>)')
PARTS = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

SOURCE_LINK = re.compile(r'(<a class="viewcode-back" href=)"([^"#]*)\.html#([^"]*)"')

# Anchors of sections, figures, equations and statements; not those that Sphinx numbers.
ARTICLE = re.compile(r"<article.*</article>", re.DOTALL)
ANCHOR = re.compile(r'\sid="([a-z]+(?:-[a-z0-9-]+)+)"')

ICON = re.compile(r'class="([^"]*\bfa-[^"]*)"')
ICON_RULE = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"(?:\\([0-9a-f]+) ?|([^"]+))"\}')
ICON_FONT = re.compile(
    r'src:url\((\.\./vendor/fontawesome/webfonts/([a-z0-9-]+))\.woff2\) format\("woff2"\),'
    r'url\([^)]*\.ttf\) format\("truetype"\)'
)
SCRIPTED_ICONS = {"fa-xmark"}  # those that the theme's program adds
# Where fonts keep icons, as style sheets write them: the letter itself, or its number.
PRIVATE = re.compile(r"[\ue000-\uf8ff]|(?<=\\)[ef][0-9a-f]{3}(?![0-9a-f])")


def finish_pages(app, exception):
    """Mend every page that has been written, and give the theme the icons of these pages."""
    if exception or app.builder.format != "html":
        return
    icons = set(SCRIPTED_ICONS)
    for path in Path(app.outdir).rglob("*.html"):
        before = html = path.read_text(encoding="utf-8")
        for pattern, replacement in (*ACCESSIBLE, *LEAN):
            html = pattern.sub(replacement, html)
        html = TABLE.sub(part_names, html)
        for name, sign in NEEDED.items():
            if sign not in html:
                html = re.sub(LINK.format(re.escape(name)), "", html)
        if path.name != "search.html":
            html = SEARCH_INDEX.sub("", html)
        html = mend_source_links(app, path, html)
        for classes in ICON.findall(html):
            icons.update(classes.split())
        if html != before:
            path.write_text(html, encoding="utf-8", newline="\n")
    subset_icons(Path(app.outdir) / "_static", icons)


def part_names(table):
    """A table whose names of classes break between their words."""
    return NAME.sub(lambda name: PARTS.sub("<wbr>", name[0]), table[0])


def mend_source_links(app, path, html):
    """Lead [docs] back to the entry of a name, or of what inherits it on the page that is linked.

    viewcode writes the module of the first name it met there for all of them.
    """
    known = app.env.domains["py"].objects
    module = ".".join(path.relative_to(app.outdir).with_suffix("").parts[1:])

    def mend(link):
        page, name = link[2], link[3]
        ending = "." + name.rpartition(".")[2]
        candidates = [name, f"{module}.{name.removeprefix('s3vm_lib.')}"]
        candidates += [one for one in known if one.endswith(ending)]
        entries = (known[one] for one in candidates if one in known)
        entry = next((one for one in entries if page.endswith(one.docname)), None)
        return f'{link[1]}"{page}.html#{entry.node_id}"' if entry else "<a"

    return SOURCE_LINK.sub(mend, html) if "_modules" in path.relative_to(app.outdir).parts else html


def subset_icons(static, names):
    """Keep the icons with these class names, and those that the style sheet itself shows."""
    sheet = static / "styles" / "pydata-sphinx-theme.css"
    css = sheet.read_text(encoding="utf-8")
    glyphs = set()

    def keep(rule):
        if not names & set(re.findall(r"\.(fa-[a-z0-9-]+):", rule[1])):
            return ""
        glyphs.add(chr(int(rule[2], 16)) if rule[2] else rule[3])
        return rule[0]

    sheet.write_text(css := ICON_RULE.sub(keep, css), encoding="utf-8", newline="\n")
    for path in static.rglob("*.css"):  # what they show without a name in a page
        found = PRIVATE.findall(path.read_text(encoding="utf-8"))
        glyphs.update(one if len(one) == 1 else chr(int(one, 16)) for one in found)
    for _, name in set(ICON_FONT.findall(css)):
        path = static / "vendor" / "fontawesome" / "webfonts" / f"{name}.ttf"
        write_subset(path, "".join(sorted(glyphs)), path.with_suffix(".woff"))
    css = ICON_FONT.sub(r'src:url(\1.woff) format("woff")', css)
    sheet.write_text(css, encoding="utf-8", newline="\n")
    for path in [*static.rglob("*.map"), static / "scripts" / "fontawesome.js"]:
        path.unlink(missing_ok=True)


def write_subset(path, letters, target):
    """Write a font that has only these letters."""
    font = TTFont(path)
    subsetter = Subsetter(Options(notdef_outline=True, hinting=False))
    subsetter.populate(text=letters)
    subsetter.subset(font)
    font.flavor = "woff"
    font.save(target)


def name_parts(app, doctree):
    """Give the insides of theorems and exercises ids of their own, and proofs none."""
    shared = ("proof-content", "exercise-content", "solution-content")
    for part in doctree.findall(nodes.Element):
        if part["ids"] == ["proof"]:
            part["ids"] = []
        elif part["ids"] and part["ids"][0] in shared:
            part["ids"] = [f"{one}-content" for one in part.parent["ids"][:1]]


def describe(app, pagename, templatename, context, doctree):
    """What search engines and messengers show of a page."""
    if doctree is None:
        return
    if context["title"] == context["docstitle"]:
        context["docstitle"] = ""  # the front page does not say its name twice
    text = first_sentences(doctree)
    entries = [f'<meta name="description" content="{text}" />'] if text else []
    title = context["title"].replace('"', "&quot;")
    properties = {
        "og:type": "article" if pagename != app.config.root_doc else "website",
        "og:site_name": app.config.html_title,
        "og:title": re.sub(r"<[^>]+>", "", title),
        "og:description": text,
    }
    if SITE:
        properties["og:url"] = f"{SITE}/{pagename}.html"
        properties["og:image"] = f"{SITE}/_images/{CARD}"
        entries.append('<meta name="twitter:card" content="summary_large_image" />')
    entries += [
        f'<meta property="{name}" content="{value}" />'
        for name, value in properties.items()
        if value
    ]
    context["metatags"] = "\n    ".join([context.get("metatags", ""), *entries])


def first_sentences(doctree, length=200):
    """The beginning of a page's text, for an attribute of HTML; formulas are left out."""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section) and not any(paragraph.findall(nodes.math)):
            text = " ".join(paragraph.astext().split())
            if len(text) > 40:
                break
    else:
        return ""
    if len(text) > length:
        text = text[:length].rsplit(" ", 1)[0] + " …"
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def write_sitemap(app, exception):
    """List the pages for search engines, where the address of the site is known."""
    if exception or app.builder.format != "html" or not SITE:
        return
    pages = [f"  <url><loc>{SITE}/{name}.html</loc></url>" for name in sorted(app.env.found_docs)]
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
        *pages,
        "</urlset>",
    ]
    target = Path(app.outdir) / "sitemap.xml"
    target.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    robots = Path(app.outdir) / "robots.txt"
    robots.write_text(f"Sitemap: {SITE}/sitemap.xml\n", encoding="utf-8", newline="\n")


def write_places(app, exception):
    """List the page of each anchor that only one chapter has.

    `book.js` asks for it where an address names an anchor that its page does not have: a part may
    have moved to another page.
    """
    if exception or app.builder.format != "html":
        return
    pages = {}
    for path in sorted((Path(app.outdir) / "book").glob("*.html")):
        article = ARTICLE.search(path.read_text(encoding="utf-8"))
        for anchor in set(ANCHOR.findall(article[0])) if article else ():
            pages.setdefault(anchor, []).append(path.name)
    places = {anchor: names[0] for anchor, names in sorted(pages.items()) if len(names) == 1}
    target = Path(app.outdir) / "_static" / "places.json"
    target.write_text(json.dumps(places), encoding="utf-8", newline="\n")


def set_address(app, config):
    """Canonical addresses, where the address of the site is known."""
    if SITE:
        config.html_baseurl = f"{SITE}/"
        config.html_context["site_address"] = SITE


def setup(app):
    app.connect("config-inited", set_address)
    app.connect("doctree-read", name_parts)
    app.connect("html-page-context", describe)
    app.connect("build-finished", finish_pages)
    app.connect("build-finished", write_places)
    app.connect("build-finished", write_sitemap)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
