"""Print the built book into one PDF with Chromium: ``python book/_tools/pdf.py _build/book.pdf``.

The chapters are taken from the built site in the order of ``_toc.yml`` and joined into one page, so
that every cross-reference is a link within the file. Folded parts are open, code is wrapped, a
player shows three of its frames, and what is wider than the paper is scaled until it fits. The API
reference is left out: it is made for looking things up, and is shorter on the screen.
"""

import html
import re
import sys
import threading
import urllib.parse
from pathlib import Path

import yaml
from bs4 import BeautifulSoup
from local_site import BROWSERS, SITE, find_browser, serve

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = re.compile(r"book/api/")
FRAMES = re.compile(r'frames\[\d+\] = "(data:image/png;base64,[^"]*)"')
HEARD = re.compile("<mjx-assistive-mml.*?</mjx-assistive-mml>", re.DOTALL)
SMALLEST = 0.55  # what does not fit at this scale is reported

STYLE = """
@page { size: A4; margin: 20mm 18mm 20mm 18mm; }
html { font-size: 10.5px !important; background: white; }
body { font: 10.5px/1.45 serif; color: black; }
h1, h2, h3, h4 { break-after: avoid; }
section.page { break-before: page; }
.cover { text-align: center; padding-top: 35%; }
.contents a { color: inherit; text-decoration: none; display: flex; gap: 0.5em; }
.contents a::before { content: attr(data-title); }
.contents a::after { content: attr(data-page); margin-left: auto; }
.contents .part { font-weight: bold; margin: 0.8em 0 0.2em; }
pre { white-space: pre-wrap !important; overflow-wrap: anywhere; font-size: 8px !important; }
.highlight, .cell_output pre { overflow: visible !important; }
img, figure, table { max-width: 100%; }
img, figure, tr, div.algorithm { break-inside: avoid; }
div.proof, div.exercise, div.solution, div.admonition {
  border-left: 2px solid #0072b2; padding: 0 0 0 8px; margin: 1em 0;
}
div.proof.proof-type-proof, div.solution { border-left-color: #bbb; }
:is(.proof, .exercise, .solution, .admonition) > :is(.proof-title, .admonition-title) {
  font-weight: bold; margin: 0.2em 0;
}
figure { margin: 0.8em 0; }
figcaption { font-size: 9.5px; margin-top: 0.3em; }
figcaption p { margin: 0; }
.caption-number { font-weight: bold; }
table { border-collapse: collapse; }
:is(th, td) { padding: 1px 6px; text-align: left; vertical-align: top; }
.cell_input { margin-top: 0.8em; }
.frames { display: flex; gap: 1%; }
.frames img { width: 32%; }
:is(a.headerlink, button, .anim-controls, summary) { display: none !important; }
details > *, .toggle, .toggle-hidden { visibility: visible !important; height: auto !important; }
div[style*="overflow"] { overflow: visible !important; max-height: none !important; }
"""

# Everything that is wider than the column becomes smaller; returns what does not fit even so.
FIT = """(smallest) => {
    const found = [];
    const boxes = "table, mjx-container[display='true'], pre, img, .highlight";
    for (const box of document.querySelectorAll(boxes)) {
        if (box.closest("table") && !box.matches("table")) continue;
        const room = box.parentElement.clientWidth;
        const inner = box.matches("mjx-container") ? box.querySelector("mjx-math") : box;
        const width = Math.max(inner.scrollWidth, inner.getBoundingClientRect().width);
        if (!room || width <= room + 1) continue;
        box.style.zoom = Math.max(smallest, room / width * 0.99);
        if (room / width < smallest) {
            found.push(`${box.closest("section.page").id}: ${box.textContent.trim().slice(0, 60)}`);
        }
    }
    return found;
}"""


def pages():
    """Parts and pages in the order of the table of contents.

    Returns
    -------
    list of (str, list of str)
        Caption of each part and the names of its pages, such as ``book/svm``.
    """
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    parts = [("", [toc["root"]])]
    for part in toc["parts"]:
        files = [chapter["file"] for chapter in part["chapters"]]
        parts.append((part["caption"], [file for file in files if not LEFT_OUT.match(file)]))
    return parts


def anchor(page, fragment=""):
    """The id in the joined page of an id in one of the pages."""
    return f"{page.replace('/', '-')}{'--' + fragment if fragment else ''}"


def _key_frames(soup, script):
    """Three frames of a player in place of the player."""
    frames = [re.sub(r"\\\n", "", frame) for frame in FRAMES.findall(script.string or "")]
    player = script.find_previous(class_="animation")
    if not frames or player is None:
        return
    row = soup.new_tag("div", attrs={"class": "frames"})
    for frame in (frames[0], frames[len(frames) // 2], frames[-1]):
        row.append(soup.new_tag("img", src=frame, alt=""))
    player.replace_with(row)


def article(page, known, draft=False):
    """The text of a page, with ids and links as they are in the joined page."""
    source = (SITE / f"{page}.html").read_text(encoding="utf-8")
    soup = BeautifulSoup(HEARD.sub("", source) if draft else source, "html.parser")
    text = soup.find("article")
    for script in text.find_all("script"):
        _key_frames(soup, script)
        script.decompose()
    for details in text.find_all("details"):
        details["open"] = ""
    for tag in text.find_all(id=True):
        tag["id"] = anchor(page, tag["id"])
    base = f"{page}.html"
    for image in text.find_all("img", src=True):
        if not image["src"].startswith("data:"):
            image["src"] = urllib.parse.urljoin(base, image["src"])
    for link in text.find_all("a", href=True):
        if re.match(r"\w+:", link["href"]):
            continue
        target, _, fragment = urllib.parse.urljoin(base, link["href"]).partition("#")
        name = target.removesuffix(".html")
        if name in known:
            link["href"] = f"#{anchor(name, fragment)}"
        else:
            link.unwrap()  # a page that is not printed
    number = f'<section class="page" id="{anchor(page)}">'
    return number + text.decode_contents() + "</section>", text.find("h1")


def _title(heading):
    for link in heading.find_all(class_="headerlink"):
        link.decompose()
    return heading.get_text().strip()


def joined(parts, numbers, draft=False):
    """The whole book as one HTML page.

    Parameters
    ----------
    parts : list of (str, list of str)
        As from `pages`.
    numbers : dict of str to int
        Page of each chapter, for the table of contents; empty at first.
    draft : bool, default=False
        Whether to leave out what only screen readers see: the formulas once more, as MathML.

    Returns
    -------
    str
    """
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    known = {name for _, names in parts for name in names}
    body, contents = [], []
    for caption, names in parts:
        if caption:
            contents.append(f'<p class="part">{caption}</p>')
        for name in names:
            text, heading = article(name, known, draft)
            body.append(text)
            if caption:
                contents.append(
                    f'<a href="#{anchor(name)}" data-title="{html.escape(_title(heading))}"'
                    f' data-page="{numbers.get(anchor(name), "")}"></a>'
                )
    styles = sorted(path.relative_to(SITE) for path in (SITE / "_static").glob("*.css"))
    links = "".join(f'<link rel="stylesheet" href="{path.as_posix()}">' for path in styles)
    return f"""<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8">
<title>{config["title"]}</title>{links}<style>{STYLE}</style>
</head>
<body><div class="cover"><h1>{config["title"]}</h1><p>{config["author"]}</p>
<p>Text and figures: CC BY 4.0. Code: BSD 3-Clause.</p></div>
<section class="page contents"><h1>Contents</h1>{"".join(contents)}</section>
{"".join(body)}</body></html>"""


def page_numbers(path):
    """The page, from 1, on which each named place of a PDF is."""
    from pypdf import PdfReader

    reader = PdfReader(path)
    return {
        name.lstrip("/"): reader.get_destination_page_number(place) + 1
        for name, place in reader.named_destinations.items()
    }


def missing_glyphs(text):
    """Characters of a text that no installed font can draw."""
    from matplotlib import font_manager, ft2font

    wanted = {character for character in text if ord(character) > 126 and not character.isspace()}
    for file in font_manager.findSystemFonts():
        if not wanted:
            break
        try:
            covered = ft2font.FT2Font(file).get_charmap()
        except RuntimeError:  # the browser cannot open such a font either
            continue
        wanted = {character for character in wanted if ord(character) not in covered}
    return sorted(wanted)


def write(path, draft=False):
    """Print the book.

    Parameters
    ----------
    path : Path
        The file to write.
    draft : bool, default=False
        Whether to print what is seen and no more, in a third of the time: without the page numbers
        in the table of contents, for which all is printed twice, and without what screen readers
        and outlines need.

    Returns
    -------
    list of str
        What is not right: parts wider than the paper, characters without a glyph.
    """
    from playwright.sync_api import sync_playwright

    executable = find_browser()
    if executable is None:
        sys.exit(
            f"The PDF is printed by a browser, and none of {', '.join(BROWSERS)} is installed."
        )
    parts, numbers, problems = pages(), {}, []
    file = SITE / "_print.html"
    with (
        serve() as server,
        sync_playwright() as playwright,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for _ in range(1 if draft else 2):  # the second time with the page numbers of the first
            file.write_text(joined(parts, numbers, draft), encoding="utf-8")
            page = browser.new_page(viewport={"width": 658, "height": 970})
            page.set_default_timeout(0)
            page.emulate_media(media="print")
            page.goto(f"http://127.0.0.1:{server.server_port}/{file.name}", wait_until="load")
            page.evaluate("document.fonts.ready")
            problems = [f"too wide: {one}" for one in page.evaluate(FIT, SMALLEST)]
            text = page.evaluate("document.body.innerText")
            page.pdf(
                path=path,
                prefer_css_page_size=True,
                outline=not draft,
                tagged=not draft,
                display_header_footer=True,
                header_template="<span></span>",
                footer_template='<div style="font-size:8px;width:100%;text-align:center">'
                '<span class="pageNumber"></span></div>',
            )
            page.close()
            numbers = page_numbers(path)
        browser.close()
        server.shutdown()
    file.unlink()
    return problems + [f"no glyph: {one!r} U+{ord(one):04X}" for one in missing_glyphs(text)]


def main(argv):
    path = Path(argv[1] if len(argv) > 1 else ROOT / "_build" / "book.pdf")
    problems = write(path)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main(sys.argv)
