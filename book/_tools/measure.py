"""How long the chapters are: ``python book/_tools/measure.py [svm ...]``.

What is folded (proofs, solutions, with their cells) is counted apart: a reader opens it or not. A
formula is one word. Screens are of 1280 × 900 pixels, of the built site, where there is one and a
browser.
"""

import re
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import nbformat
from local_site import SITE, find_browser, serve

BOOK = Path(__file__).resolve().parents[1]
WORDS, CELLS, SCREENS, ALGORITHM = 5000, 20, 25, 1 / 3  # at most, for a chapter
HEIGHT = 900  # pixels

FENCE = re.compile(r"^(`{3,}|:{3,})\s*(\{[^}]*\})?(.*)$")
OPTION = re.compile(r"^:[\w-]+:.*$")
INLINE = re.compile(r"\$[^$]+\$|\{[\w:]+\}`[^`]*`|`[^`]*`")


class Size(NamedTuple):
    """Size of a chapter."""

    words: int  # outside of folds
    folded: int  # words inside
    cells: int  # code cells outside of solutions
    algorithm: float | None  # share of the words before the first algorithm
    pictures: int
    captions: int


def measured(notebook):
    """The `Size` of a notebook."""
    words, folded, cells, algorithm = 0, 0, 0, None
    pictures = captions = 0
    solution = False
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cells += not solution
            shown = any("image/png" in output.get("data", {}) for output in cell.outputs)
            captioned = "figure" in cell.metadata.get("mystnb", {})
            pictures += shown or captioned
            captions += captioned
            continue
        stack, math = [], False  # of open directives: whether each is folded
        for line in cell.source.split("\n"):
            found = FENCE.match(line.strip())
            if line.strip() == "$$":
                math = not math
                continue
            if found:
                name, title = found[2], found[3]
                if name == "{solution-end}":
                    solution = False
                if name and name.startswith("{solution-start"):
                    solution = True
                if name == "{prf:algorithm}" and algorithm is None:
                    algorithm = words
                if name or title or not stack:
                    stack.append(["{math}" == name, False])
                    line = title if name not in ("{solution-start}", "{solution-end}") else ""
                else:
                    stack.pop()
                    continue
            elif OPTION.match(line.strip()) and stack:
                if "dropdown" in line:
                    stack[-1][1] = True
                continue
            if math or any(one[0] for one in stack):
                continue
            count = len([w for w in INLINE.sub("formula", line).split() if re.search(r"\w", w)])
            if solution or any(one[1] for one in stack):
                folded += count
            else:
                words += count
    if algorithm is not None:
        algorithm /= words
    return Size(words, folded, cells, algorithm, pictures, captions)


def screens(names):
    """Heights of pages of the built site, in screens; nothing without a browser or a site."""
    found = find_browser() if SITE.is_dir() else None
    if found is None:
        return {}
    from playwright.sync_api import sync_playwright

    with serve() as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": HEIGHT})
        heights = {}
        for name in names:
            if (SITE / "book" / f"{name}.html").exists():
                page.goto(f"{address}/book/{name}.html", wait_until="load")
                page.wait_for_timeout(1000)
                height = page.evaluate("document.querySelector('.bd-article').scrollHeight")
                heights[name] = height / HEIGHT
        browser.close()
        server.shutdown()
    return heights


def main(names):
    """Print a table of the chapters named, or of all notebooks."""
    paths = [BOOK / f"{name}.ipynb" for name in names] or sorted(BOOK.glob("*.ipynb"))
    heights = screens([path.stem for path in paths])
    print("chapter                 words  folded  cells  screens  algorithm at  pictures  captions")
    for path in paths:
        size = measured(nbformat.read(path, as_version=4))
        at = "" if size.algorithm is None else f"{100 * size.algorithm:.0f} %"
        tall = f"{heights[path.stem]:.0f}" if path.stem in heights else ""
        print(f"{path.stem:22s} {size.words:6d} {size.folded:7d} {size.cells:6d} {tall:>8s} "
              f"{at:>13s} {size.pictures:9d} {size.captions:9d}")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
