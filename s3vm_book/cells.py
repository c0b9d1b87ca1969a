"""What the cells of several chapters call: numbers for the text, source code, errors, edges."""

import inspect
import re

import numpy as np


def glue(key, value):
    """Store a number in the output of the cell, without showing it: the text quotes it by its key.

    Parameters
    ----------
    key : str
        Unique in the book.
    value : object
        What `repr` shows of it is quoted; NumPy scalars become Python's.
    """
    from IPython.core.formatters import format_display_data
    from IPython.display import display

    prefix = "application/papermill.record/"  # by which MyST-NB finds it
    data, metadata = format_display_data(value.item() if isinstance(value, np.generic) else value)
    metadata["scrapbook"] = {"name": key, "mime_prefix": prefix}
    display({prefix + mime: text for mime, text in data.items()}, raw=True, metadata=metadata)


def sayer(prefix):
    """A function ``say(**numbers)`` that glues numbers under the keys of one chapter.

    Parameters
    ----------
    prefix : str
        With "cccp", ``say(first_step=3)`` glues ``cccp-first-step``.

    Returns
    -------
    callable
    """

    def say(**numbers):
        for name, number in numbers.items():
            glue(f"{prefix}-{name.replace('_', '-')}", number)

    return say


def show_source(*objects, docstrings=False):
    """Show the source text of functions as installed.

    Parameters
    ----------
    *objects : callable
        Compiled functions too.
    docstrings : bool, default=False
        Whether to keep the docstrings.
    """
    from IPython.display import Markdown, display

    sources = [inspect.getsource(getattr(one, "py_func", one)).rstrip() for one in objects]
    if not docstrings:
        sources = [re.sub(r' *"""[\s\S]*?"""\n', "", one, count=1) for one in sources]
    text = "\n\n\n".join(sources)
    display(Markdown(f"```python\n{text}\n```"))


def percent_wrong(model, X, y):
    """Rows in percent to which a model gives another label than y."""
    return 100 * float(np.mean(model.predict(X) != y))


def draw_edges(ax, graph, X):
    """Thin grey lines for the edges of a graph with a list of edges."""
    from matplotlib.collections import LineCollection

    lines = np.stack([X[graph.i], X[graph.j]], axis=1)
    ax.add_collection(LineCollection(lines, colors="#B0B0B0", linewidths=0.5, zorder=1.5))
