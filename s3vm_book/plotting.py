"""Figures of the book: one palette, one style, and the few plots that chapters share.

The palette is that of Okabe and Ito, which color-blind readers can tell apart, restricted to pairs
that also differ in grey. Classes differ in marker and in color, lines in color and in dashes. Every
figure is an opaque white card with dark text, so that it reads the same on a light and a dark page.

Alternative text of a figure is a matter of the notebook, not of this module: a cell that ends in
``plt.show()`` carries the metadata ``{"mystnb": {"image": {"alt": "..."}}}``, which myst-nb writes
into the page. A `player` is HTML of its own and takes its alternative text as an argument.
"""

import contextlib
import hashlib
import re
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILION = "#D55E00"
PURPLE = "#8E4585"
INK = "#222222"
GREY = "#8C8C8C"

#: Colors of the classes 0 and 1, their markers, and the pale versions for regions.
CLASS_COLORS = (BLUE, ORANGE)
CLASS_MARKERS = ("o", "^")
REGION_COLORS = ("#BCD7E8", "#FDF1D8")
#: Colors and dashes of lines, in order.
LINE_COLORS = (BLUE, VERMILION, GREEN, PURPLE, INK)
LINE_DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))

MAX_FRAMES = 20

_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.facecolor": "white",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.prop_cycle": (mpl.cycler(color=LINE_COLORS) + mpl.cycler(linestyle=LINE_DASHES)),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "figure.figsize": (6.4, 3.8),
    "font.size": 10,
    "grid.color": "#E4E4E4",
    "grid.linestyle": "-",
    "legend.frameon": True,
    "legend.framealpha": 1.0,
    "legend.edgecolor": "#CCCCCC",
    "lines.linewidth": 1.8,
    "savefig.facecolor": "white",
    "savefig.transparent": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def set_style():
    """Use the book's style for all figures that follow; chapters call this once.

    In a notebook figures then have two pixels for one of the page, for screens that have them.
    """
    mpl.rcParams.update(_STYLE)
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("retina")


def style():
    """The book's style for the figures made inside a ``with`` block.

    Returns
    -------
    context manager

    Examples
    --------
    >>> from s3vm_book import plotting
    >>> with plotting.style():
    ...     pass
    """
    return mpl.rc_context(_STYLE)


def scatter(ax, X, y, *, classes=None, size=46, unlabeled_size=7, label=True):
    """Labeled points in the marker of their class, unlabeled points as small grey dots.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    X : array-like of shape (n_samples, 2)
        Points in the plane.
    y : array-like of shape (n_samples,)
        Classes, −1 for unlabeled points. Two classes at most.
    classes : sequence of length 2, default=None
        The classes in the order of the palette; None means the sorted classes of y.
    size, unlabeled_size : float, default=46, 7
        Areas of the markers in points squared.
    label : bool, default=True
        Whether to name the groups for a legend.

    Returns
    -------
    list of matplotlib.collections.PathCollection
        Unlabeled points (if there are any), then one collection per class.

    Raises
    ------
    ValueError
        If X is not two-dimensional with two columns, or there are more than two classes.
    """
    X, y = np.asarray(X), np.asarray(y)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must have shape (n_samples, 2), got {X.shape}")
    if classes is None:
        classes = np.unique(y[y != -1])
    if len(classes) > 2:
        raise ValueError(f"the palette has colors for two classes, got {list(classes)}")
    drawn = []
    hidden = y == -1
    if np.any(hidden):
        name = "unlabelled" if label else None
        drawn.append(ax.scatter(*X[hidden].T, s=unlabeled_size, c=GREY, lw=0, label=name, zorder=2))
    for value, color, marker in zip(classes, CLASS_COLORS, CLASS_MARKERS, strict=False):
        drawn.append(
            ax.scatter(
                *X[y == value].T,
                s=size,
                c=color,
                marker=marker,
                edgecolors=INK,
                linewidths=0.8,
                label=f"class {value}" if label else None,
                zorder=3,
            )
        )
    return drawn


def regions(ax, estimator, X=None, *, resolution=200, margins=True):
    """Decision regions of a binary classifier in the plane, with f = 0 and f = ±1 as lines.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw; limits are set from X if it is given, and kept otherwise.
    estimator : object
        A fitted classifier with a ``decision_function`` (positive for the second class).
    X : array-like of shape (n_samples, 2), default=None
        Points that should be visible, with a margin of 8 %.
    resolution : int, default=200
        Grid points along each axis.
    margins : bool, default=True
        Whether to draw the lines f = ±1 (dashed) besides f = 0.

    Returns
    -------
    matplotlib.contour.QuadContourSet
        The lines.
    """
    if X is not None:
        low, high = np.min(X, axis=0), np.max(X, axis=0)
        pad = 0.08 * np.where(high > low, high - low, 1.0)
        ax.set_xlim(low[0] - pad[0], high[0] + pad[0])
        ax.set_ylim(low[1] - pad[1], high[1] + pad[1])
    x1, x2 = np.meshgrid(
        np.linspace(*ax.get_xlim(), resolution), np.linspace(*ax.get_ylim(), resolution)
    )
    f = estimator.decision_function(np.column_stack((x1.ravel(), x2.ravel())))
    f = np.asarray(f).reshape(x1.shape)
    ax.grid(False)
    ax.contourf(x1, x2, f > 0, levels=[-0.5, 0.5, 1.5], colors=REGION_COLORS, zorder=0)
    levels, dashes, widths = [0.0], ["-"], [1.6]
    if margins:
        levels, dashes, widths = [-1.0, 0.0, 1.0], ["--", "-", "--"], [0.9, 1.6, 0.9]
    with _quiet_contours():
        return ax.contour(
            x1, x2, f, levels=levels, colors=INK, linestyles=dashes, linewidths=widths, zorder=1
        )


@contextlib.contextmanager
def _quiet_contours():
    """A classifier with one region has no line to draw, which is no reason to warn."""
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="No contour levels were found")
        yield


def loss_curves(ax, losses, *, limits=(-2.5, 2.5), derivative=False):
    """Curves of loss functions against the output f; labeled losses are shown for y = +1.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    losses : sequence of LabeledLoss or UnlabeledLoss, or dict of str to loss
        The losses; in a dict, the keys are the names in the legend.
    limits : (float, float), default=(-2.5, 2.5)
        Range of f.
    derivative : bool, default=False
        Whether to draw derivatives instead of values.

    Returns
    -------
    list of matplotlib.lines.Line2D
    """
    if not isinstance(losses, dict):
        losses = {loss.name.replace("_", " "): loss for loss in losses}
    f = np.linspace(*limits, 1001)
    drawn = []
    for name, loss in losses.items():
        function = loss.derivative if derivative else loss.value
        unlabeled = hasattr(loss, "convex_part")
        values = function(f) if unlabeled else function(np.ones_like(f), f)
        drawn.extend(ax.plot(f, values, label=name))
    ax.set_xlabel("output f")
    ax.set_ylabel("derivative" if derivative else "loss")
    ax.legend()
    return drawn


_GLYPHS = {
    "fa-minus": "−",
    "fa-fast-backward": "«",
    "fa-step-backward": "‹",
    "fa-play fa-flip-horizontal": "◂",
    "fa-pause": "‖",
    "fa-play": "▸",
    "fa-step-forward": "›",
    "fa-fast-forward": "»",
    "fa-plus": "+",
}


def player(fig, update, n_frames, alt, *, interval=700):
    """An animation with buttons that lives in the page: no kernel, no outside request.

    Parameters
    ----------
    fig : matplotlib.figure.Figure
        The figure; it is closed afterwards, so that the notebook shows the player alone.
    update : callable
        ``update(k)`` draws frame k, for k = 0, ..., n_frames − 1, in any order.
    n_frames : int
        Number of frames, at most 20 (each is a picture of its own inside the page).
    alt : str
        Alternative text: what the animation shows, for readers who do not see it.
    interval : int, default=700
        Milliseconds between frames while playing.

    Returns
    -------
    IPython.display.HTML
        The same bytes for the same frames: ids are derived from the content.

    Raises
    ------
    ValueError
        If `n_frames` is not between 1 and 20 or `alt` is empty.
    """
    from html import escape

    from IPython.display import HTML
    from matplotlib.animation import FuncAnimation

    if not 1 <= n_frames <= MAX_FRAMES:
        raise ValueError(f"n_frames must be between 1 and {MAX_FRAMES}, got {n_frames}")
    if not alt.strip():
        raise ValueError("alt must say what the animation shows")
    with mpl.rc_context({"savefig.dpi": 72, "animation.embed_limit": 50}):
        animation = FuncAnimation(
            fig, lambda k: update(int(k)), frames=int(n_frames), init_func=lambda: None
        )
        html = animation.to_jshtml(fps=1000 / interval, default_mode="once")
    plt.close(fig)
    alt = escape(" ".join(alt.split()), quote=True)
    # The icon font would be fetched from a public host; plain characters need no font.
    html = re.sub(r'<link rel="stylesheet"\s+href="[^"]*font-awesome[^"]*">\s*', "", html)
    for icon, glyph in _GLYPHS.items():
        html = html.replace(
            f'<i class="fa {icon}"></i>', f'<span aria-hidden="true">{glyph}</span>'
        )
    html = html.replace("width: 374px;", "width: 374px; max-width: 95%;")
    html = html.replace(
        '<div class="animation">', f'<div class="animation" role="group" aria-label="{alt}">'
    )
    html = html.replace('<img id="', f'<img style="max-width: 100%" alt="{alt}" id="')
    html = html.replace('class="anim-slider"', 'class="anim-slider" aria-label="Frame"')
    identifier = re.search(r'id="_anim_img([0-9a-f]+)"', html).group(1)
    content = hashlib.sha256(html.replace(identifier, "").encode()).hexdigest()[: len(identifier)]
    return HTML(html.replace(identifier, content))
