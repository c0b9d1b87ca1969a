"""Compare the stored outputs of a cell with fresh ones: text, numbers and pictures.

Everything must be equal, unless the cell declares in its metadata how far numbers may move from one
processor to another:

    "tolerance": [{"lines": "CPU|steps", "rel": 0.2}, {"abs": 0.1}]

Each rule holds for the lines of text that its regular expression ``lines`` finds (all without it;
a glued value is the line ``key = value``), and the first rule that fits a line decides. A number x
may become y when |x − y| ≤ abs + rel |x|; the text between numbers, runs of blanks apart, may not
change. ``"figure": 3`` is for pictures: the root mean square difference of the pixels, of 255.
"""

import base64
import io
import math
import re

FIGURE_RMS = 1.0  # of 255: less than the change of one digit in a title
GLUE = "application/papermill.record/text/plain"
NUMBER = re.compile(
    r"(?<![\w.])[-+−]?(?:\d+(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])"
    r"|(?<!\w)[-+−]?(?:nan|inf)(?!\w)"
)
SHOWN = 60  # characters of a line in a message
KEYS = {"lines", "abs", "rel", "figure"}


def rules_of(metadata):
    """The tolerances that a cell declares, as a list of dicts.

    Raises
    ------
    ValueError
        For a rule that is not one.
    """
    rules = metadata.get("tolerance", [])
    rules = [rules] if isinstance(rules, dict) else list(rules)
    for rule in rules:
        widths = [rule[key] for key in ("abs", "rel", "figure") if key in rule]
        if set(rule) - KEYS or not widths:
            raise ValueError(
                f"a tolerance has abs, rel or figure, and lines if need be, not {rule}"
            )
        if not all(isinstance(w, int | float) and 0 <= w < math.inf for w in widths):
            raise ValueError(f"a tolerance is a finite number, at least 0, not {rule}")
        re.compile(rule.get("lines", ""))
    return rules


def is_wide(rule):
    """True unless the rule says that a number is exact."""
    return any(rule.get(width) for width in ("abs", "rel", "figure"))


def in_words(rule):
    """How far a rule lets numbers move, for a reader: ``± 0.1``, ``± 20 %``."""
    if "figure" in rule:
        return f"pixels ± {rule['figure']:g} of 255"
    absolute, relative = rule.get("abs", 0), rule.get("rel", 0)
    parts = [f"{absolute:g}"] if absolute or not relative else []
    return "± " + " ± ".join(parts + ([f"{100 * relative:g} %"] if relative else []))


def rule_for(line, rules):
    """The first rule for a line of text, or None: exact."""
    for rule in rules:
        if "figure" not in rule and re.search(rule.get("lines", ""), line):
            return rule
    return None


def _text(value):
    return "".join(value) if isinstance(value, list) else value


def lines_of(outputs):
    """All lines of text in a cell's outputs; widgets and pictures are left out.

    Parameters
    ----------
    outputs : list of dict
        As a notebook stores them.

    Returns
    -------
    dict of str to list of str
        By kind: ``stdout``, ``text/html`` and so on; ``glued`` holds lines ``key = value``.
    """
    found = {}
    for output in outputs:
        data = output.get("data", {})
        if output["output_type"] == "stream":
            # A stream may arrive in pieces: what counts is all that was printed.
            found.setdefault(output["name"], []).append(_text(output["text"]))
        elif output["output_type"] == "error":
            found.setdefault("error", []).append(f"{output['ename']}: {output['evalue']}\n")
        elif GLUE in data:
            key = output["metadata"]["scrapbook"]["name"]
            found.setdefault("glued", []).append(f"{key} = {_text(data[GLUE])}\n")
        elif not any("widget" in mime for mime in data):
            for mime, content in data.items():
                if not mime.startswith("image/"):
                    content = content if isinstance(content, str | list) else repr(content)
                    found.setdefault(mime, []).append(_text(content) + "\n")
    return {kind: "".join(pieces).splitlines() for kind, pieces in found.items()}


def pictures_of(outputs):
    """The PNG images in a cell's outputs, as base64 text."""
    return [
        _text(output["data"]["image/png"])
        for output in outputs
        if "image/png" in output.get("data", {})
    ]


def _value(number):
    return float(number.replace(",", "").replace("−", "-"))


def _frame(line):
    """The text between the numbers, with one blank for any run of them."""
    return re.sub(r"\s+", " ", NUMBER.sub("#", line)).replace(" #", "#").strip()


def _quoted(line):
    line = line.strip()
    return repr(line if len(line) <= SHOWN else line[:SHOWN] + "…")


def compare_lines(stored, fresh, rules):
    """What differs between two lines: a list of messages, empty when they agree."""
    if stored == fresh:
        return []
    rule = rule_for(stored, rules)
    if _frame(stored) != _frame(fresh):
        return [f"stored {_quoted(stored)}, now {_quoted(fresh)}"]
    found = []
    for old, new in zip(NUMBER.findall(stored), NUMBER.findall(fresh), strict=True):
        x, y = _value(old), _value(new)
        allowed = 0.0
        if rule is not None:
            allowed = rule.get("abs", 0.0) + rule.get("rel", 0.0) * abs(x)
        # Decimal digits are rounded in binary: 13.3 - 13.2 is a little more than 0.1.
        close = x == y or abs(x - y) <= allowed * (1 + 1e-9) or (x != x and y != y)
        if (rule is None and old != new) or not close:
            found.append(f"stored {old}, now {new}, allowed {allowed:.3g}")
    if not found and rule is None:
        found.append(f"stored {_quoted(stored)}, now {_quoted(fresh)}")  # blanks moved
    return [f"{message} in {_quoted(stored)}" for message in found]


def picture(png):
    """Pixels of a base64 PNG image, rows × columns × 3, from 0 to 255."""
    from matplotlib import image

    return 255 * image.imread(io.BytesIO(base64.b64decode(png)), format="png")[..., :3]


def picture_difference(stored, fresh):
    """Root mean square difference of two base64 PNG images, of 255; inf for unequal sizes."""
    if stored.strip() == fresh.strip():
        return 0.0
    a, b = picture(stored), picture(fresh)
    return float(((a - b) ** 2).mean() ** 0.5) if a.shape == b.shape else math.inf


def compare_outputs(stored, fresh, metadata=()):
    """Compare the outputs of one cell.

    Parameters
    ----------
    stored, fresh : list of dict
        Outputs in the notebook's format.
    metadata : dict, default=()
        The cell's metadata, with the key ``tolerance`` or without.

    Returns
    -------
    list of str
        One message for each difference that is not allowed; empty when the outputs agree.
    """
    rules = rules_of(dict(metadata))
    old, new = lines_of(stored), lines_of(fresh)
    found = []
    for kind in sorted({*old, *new}):
        a, b = old.get(kind, []), new.get(kind, [])
        if len(a) != len(b):
            found.append(f"{kind}: stored {len(a)} lines, now {len(b)}")
        for i, (before, after) in enumerate(zip(a, b, strict=False), 1):
            messages = compare_lines(before, after, rules)
            found += [f"{kind} line {i}: {message}" for message in messages]
            if messages and len(a) != len(b):
                break  # what follows is shifted
    allowed = next((rule["figure"] for rule in rules if "figure" in rule), FIGURE_RMS)
    old, new = pictures_of(stored), pictures_of(fresh)
    if len(old) != len(new):
        found.append(f"stored {len(old)} figures, now {len(new)}")
    for i, (before, after) in enumerate(zip(old, new, strict=False), 1):
        difference = picture_difference(before, after)
        if difference > allowed:
            found.append(f"figure {i}: differs by {difference:.1f} of 255, allowed {allowed:g}")
    return found
