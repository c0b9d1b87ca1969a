"""Tables of docutils nodes."""

from docutils import nodes


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
