"""Tables on a page: they scroll on narrow screens. A long one is a file behind a link."""

import base64
import csv
import io
from pathlib import Path

from s3vm_book.rules import SIDES


def _row(tag, cells):
    inside = "".join(f"<{tag}>{cell}</{tag}>" for cell in cells)
    return f"<tr>{inside}</tr>"


def show_table(heads, lines, title="", size=0.75, height=None, wrap=False, fold=False):
    """Show a table.

    Parameters
    ----------
    heads : sequence of str
    lines : iterable of sequence of str
        HTML in the cells is kept.
    title : str, default=""
        Stands above it.
    size : float, default=0.75
        Of the letters, in units of the text's.
    height : str, default=None
        A CSS length beyond which the table scrolls.
    wrap : bool, default=False
        Whether cells may break into lines.
    fold : bool, default=False
        Whether a click on the title shows the table.
    """
    from IPython.display import HTML, display

    style = f"overflow: auto; font-size: {size}em" + ("" if wrap else "; white-space: nowrap")
    style += f"; max-height: {height}" if height else ""
    body = _row("th", heads) + "".join(_row("td", line) for line in lines)
    table = f'<div style="{style}"><table class="table close">{body}</table></div>'
    if fold:
        table = f"<details><summary>{title}</summary>{table}</details>"
    elif title:
        table = f'<p style="margin: 1em 0 0.3em"><strong>{title}</strong></p>{table}'
    display(HTML(table))


def offer_table(heads, lines, name):
    """Show a link that saves a table, too long for a page, as comma-separated values.

    Parameters
    ----------
    heads : sequence of str
    lines : iterable of sequence
    name : str
        Of the file, without its ending.
    """
    from IPython.display import HTML, display

    lines, text = list(lines), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(lines)
    data = base64.b64encode(text.getvalue().encode("utf-8")).decode("ascii")
    link = (
        f'<a download="{name}.csv" href="data:text/csv;charset=utf-8;base64,{data}">{name}.csv</a>'
    )
    display(HTML(f"<p>All {len(lines)} rows as a file: {link}</p>"))


def show_decision():
    """Show the questions to ask before a semi-supervised machine is used, as a flow chart."""
    from IPython.display import HTML, display

    text = (Path(__file__).parent / "decision.svg").read_text(encoding="utf-8")
    display(HTML(f'<div style="text-align: center">{text}</div>'))


def show_verdicts(verdicts, title="", known=()):
    """Show verdicts, and below them the rules, and what is not the same on both sides.

    Parameters
    ----------
    verdicts : iterable of Verdict
    title : str, default=""
    known : collection of str, default=()
        Sides, such as "rows", of which the page says once what was left open. Then the rules are
        lines of text, with what the other sides leave open.
    """
    from IPython.display import HTML, display

    verdicts = list(verdicts)
    bases = list(dict.fromkeys(one.basis for one in verdicts))
    marks = {basis: chr(ord("a") + k) for k, basis in enumerate(bases)}
    show_table(
        ["where", "paper", "ours", "verdict", ""],
        ([one.place, one.claim, one.ours, one.verdict, marks[one.basis]] for one in verdicts),
        title,
        wrap=True,
    )
    lines = []
    for basis, mark in marks.items():
        sides = ((side, getattr(basis, side)) for side in SIDES)
        other = [
            f"<em>{side}</em>: {text.removeprefix('differs: ')}"
            for side, text in sides
            if not _settled(text) and side not in known
        ]
        lines.append([mark, basis.rule, other])
    if known:
        rules = "<br>".join(f"{mark}. {'; '.join([rule, *other])}" for mark, rule, other in lines)
        display(HTML(f'<p style="font-size: 0.75em">{rules}</p>'))
        return
    lines = [[mark, rule, "<br>".join(other) or "–"] for mark, rule, other in lines]
    show_table(["", "rule", "what differs or was left open"], lines, size=0.65, wrap=True)


def _settled(text):
    """Whether one side of a comparison is the same, and the source left nothing open."""
    return text.startswith("same") and "silent" not in text and "not stated" not in text
