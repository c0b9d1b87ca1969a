"""Do stored rows still hold? Three rows of each table, measured again and compared.

Tables were measured on other days, with the code of those days. Here three rows of each, drawn
from those that took less than a minute and a half, or have no time on record, by a generator that
is seeded with the name of the table, are measured with the code of the commit that this row
belongs to. All numbers of a stored result are compared, with the digits that are stored, but for
times and memory (``cpu...``, ``memory...``, ``yardstick``). ``equal`` counts rows in which all are
the same, ``differ`` the numbers that are not, and ``most`` shows the one of these that has moved
most. Tables of times are not in the list.
"""

import json
import random

from benchmarks import harness

TABLES = (
    "exact_hits",
    "gaussian_optimum",
    "gaussians_blind",
    "gaussians_cv",
    "gaussians_g2c_g4c",
    "gkm_fig2",
    "gkm_full",
    "gkm_graph_term",
    "gkm_scaled",
    "gkm_table4",
    "gkm_table5",
    "gkm_tables23",
    "il_fig4",
    "il_hits",
    "il_mu",
    "il_tables23",
    "lapsvm_choice",
    "lapsvm_splits",
    "model_selection_rules",
    "primal_newton_variants",
    "published_splits",
    "qn_fig4",
    "qn_fig5",
    "qn_table2",
    "qn_table2_baselines",
    "qn_variants",
    "text_splits",
    "tsg_accuracy",
    "tsg_fig3",
    "tsg_fig3_printed",
    "tsg_fig4",
    "wrong_axis",
)
ROWS = [{"table": name} for name in TABLES]
ROWS_OF_A_TABLE = 3
MINUTES = 1.5


def numbers(result, path=""):
    """All that a result holds, by its place, without times and memory."""
    if isinstance(result, dict):
        for key, value in result.items():
            if not key.startswith(("cpu", "memory", "yardstick")):
                yield from numbers(value, f"{path}/{key}" if path else key)
    elif isinstance(result, list):
        for k, value in enumerate(result):
            yield from numbers(value, f"{path}[{k}]")
    else:
        yield path, result


def distance(pair):
    """How far apart two values are: infinite if one is no number, or not there."""
    then, now = pair
    both = all(isinstance(value, int | float) for value in pair)
    return abs(then - now) if both else float("inf")


def chosen(table):
    """The stored rows of a table that are measured again."""
    cheap = [
        entry
        for entry in harness.read(table)
        if (entry["provenance"].get("minutes") or 0.0) < MINUTES
    ]
    return random.Random(table).sample(cheap, min(ROWS_OF_A_TABLE, len(cheap)))


def measure(table):
    """One row: see the protocol in the module's docstring."""
    module, lines = harness.table(table), []
    for entry in chosen(table):
        then = dict(numbers(entry["result"]))
        now = dict(numbers(json.loads(json.dumps(module.measure(**entry["row"])))))
        pairs = {place: (value, now.get(place)) for place, value in then.items()}
        moved = {place: pair for place, pair in pairs.items() if pair[0] != pair[1]}
        line = {"row": entry["row"], "numbers": len(pairs), "differ": len(moved)}
        if moved:
            place = max(moved, key=lambda key: distance(moved[key]))
            line["most"] = [place, *moved[place]]
        lines.append(line)
    return {
        "rows": len(lines),
        "equal": sum(line["differ"] == 0 for line in lines),
        "numbers": sum(line["numbers"] for line in lines),
        "differ": sum(line["differ"] for line in lines),
        "lines": lines,
    }
