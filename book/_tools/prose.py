"""Count what an editor would look at: python book/_tools/prose.py [book/svm.ipynb ...]

For each page: words, numbers per 1,000 words, paragraphs with more than three numbers, and words
that the rules in CONTRIBUTING.md avoid. It gates nothing; the list is where to read again.
"""

import json
import re
import sys
from pathlib import Path

BOOK = Path(__file__).resolve().parents[1]
MOST_NUMBERS = 3
AVOIDED = re.compile(
    r"\b(errs?|nobody|everybody|whoever|wants?|wish(es)?|live kernel|pays? (nothing|for)|pencil|"
    r"player|knobs?|optimi[z]er|majori[z]er|factori[z]ation|standardi[z]ed)\b",
    re.IGNORECASE,
)
HIDDEN = re.compile(
    r"^```(?:\w|\{(?:math|code)).*?^```$|\$\$.*?\$\$|^:.*?$|^\s*\|.*?$|^#.*?$|^\([\w-]+\)=$|^```.*?$",
    re.DOTALL | re.MULTILINE,
)
NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?!\w)")


def paragraphs(path):
    """Paragraphs and items of a page, without mathematics, code, tables and headings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    text = re.sub(r"\{glue:text\}`[^`]*`", "7", re.sub(r"\$[^$\n]+\$", "", HIDDEN.sub("", text)))
    text = re.sub(r"(?m)^\s*\d+\. ", "\n\n", text)  # the number of an item
    parts = re.split(r"\n\s*\n|\n- ", re.sub(r"`[^`]*`|\]\([^)]*\)", "", text))
    return [" ".join(part.split()) for part in parts if part.strip()]


def report(path):
    """(words, numbers, paragraphs with too many numbers, avoided words) of a page."""
    found = paragraphs(path)
    counts = [len(NUMBER.findall(part)) for part in found]
    crowded = [part for part, n in zip(found, counts, strict=True) if n > MOST_NUMBERS]
    avoided = [match.group() for part in found for match in AVOIDED.finditer(part)]
    return sum(len(part.split()) for part in found), sum(counts), crowded, avoided


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]) if sys.argv[1:] else sorted(BOOK.glob("*.[im][pd]*")):
        words, numbers, crowded, avoided = report(page)
        rate = 1000 * numbers / max(1, words)
        print(f"{page.stem:22} {words:6} words, {rate:5.1f} numbers per 1,000,", end=" ")
        print(f"{len(crowded)} crowded paragraphs; {', '.join(sorted(set(avoided)))}".rstrip("; "))
        for part in crowded if len(sys.argv) > 1 else []:
            print("   ", part[:100])
