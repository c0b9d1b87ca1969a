import itertools
import re

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb
from sklearn.svm import SVC

from s3vm_book import plotting
from s3vm_lib.datasets import make_moons
from s3vm_lib.losses import labeled_loss, unlabeled_loss


@pytest.fixture
def ax():
    with plotting.style():
        fig, ax = plt.subplots()
        yield ax
        plt.close(fig)


def _luminance(color):
    channel = np.array(to_rgb(color))
    linear = np.where(channel <= 0.04045, channel / 12.92, ((channel + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def _contrast(a, b):
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_palette_reads_in_greyscale_and_on_white():
    assert _contrast(*plotting.CLASS_COLORS) > 2
    assert all(_contrast(color, "white") > 3 for color in plotting.LINE_COLORS)
    assert _contrast(plotting.INK, "white") > 7
    for region in plotting.REGION_COLORS:
        assert _contrast(plotting.INK, region) > 7
    assert len(set(plotting.CLASS_MARKERS)) == 2
    for (c1, d1), (c2, d2) in itertools.combinations(
        zip(plotting.LINE_COLORS, plotting.LINE_DASHES, strict=True), 2
    ):
        assert c1 != c2 and d1 != d2


def test_style_is_an_opaque_card_and_ends_with_its_block():
    before = mpl.rcParams["axes.grid"], mpl.rcParams["figure.figsize"]
    with plotting.style():
        assert mpl.rcParams["figure.facecolor"] == "white"
        assert mpl.rcParams["savefig.transparent"] is False
        assert mpl.rcParams["axes.grid"] is True
    assert (mpl.rcParams["axes.grid"], mpl.rcParams["figure.figsize"]) == before
    with mpl.rc_context():
        plotting.set_style()
        assert mpl.rcParams["axes.grid"] is True


def test_scatter_draws_unlabeled_points_first_and_smaller(ax):
    X, y = make_moons(20, random_state=0)
    y[4:] = -1
    grey, lower, upper = plotting.scatter(ax, X, y)
    np.testing.assert_array_equal(grey.get_offsets(), X[4:])
    np.testing.assert_array_equal(lower.get_offsets(), X[:4][y[:4] == 0])
    np.testing.assert_array_equal(upper.get_offsets(), X[:4][y[:4] == 1])
    assert grey.get_sizes()[0] < lower.get_sizes()[0] == upper.get_sizes()[0]
    assert not np.array_equal(lower.get_facecolor(), upper.get_facecolor())
    labels = [text.get_text() for text in ax.legend().get_texts()]
    assert labels == ["unlabelled", "class 0", "class 1"]


def test_scatter_keeps_the_order_of_given_classes(ax):
    X = np.arange(6.0).reshape(3, 2)
    words = np.array(["yes", -1, "no"], dtype=object)
    _, first, second = plotting.scatter(ax, X, words, classes=["yes", "no"], label=False)
    np.testing.assert_array_equal(first.get_offsets(), X[:1])
    np.testing.assert_array_equal(second.get_offsets(), X[2:])
    assert ax.get_legend_handles_labels() == ([], [])


def test_scatter_refuses_what_it_cannot_draw(ax):
    with pytest.raises(ValueError, match="shape"):
        plotting.scatter(ax, np.zeros((3, 3)), [0, 1, 0])
    with pytest.raises(ValueError, match="two classes"):
        plotting.scatter(ax, np.zeros((3, 2)), [0, 1, 2])


def test_regions_follow_the_decision_function(ax):
    X = np.array([[-1.0, 0], [1, 0], [-1, 1], [1, 1]])
    model = SVC(kernel="linear", C=1e6).fit(X, [0, 1, 0, 1])  # f(x) = x_1
    lines = plotting.regions(ax, model, X, resolution=50)
    np.testing.assert_array_equal(lines.levels, [-1, 0, 1])
    middle = lines.get_paths()[1].vertices
    np.testing.assert_allclose(middle[:, 0], 0, atol=1e-4)
    assert ax.get_xlim() == pytest.approx((-1.16, 1.16))
    assert ax.get_ylim() == pytest.approx((-0.08, 1.08))
    np.testing.assert_array_equal(
        plotting.regions(ax, model, margins=False, resolution=10).levels, [0]
    )


@pytest.mark.filterwarnings("error")
def test_regions_of_a_constant_classifier(ax):
    class Constant:
        def decision_function(self, X):
            return np.full(len(X), 3.0)

    plotting.regions(ax, Constant(), np.eye(2), resolution=5)


def test_loss_curves(ax):
    hinge, gaussian = labeled_loss("hinge"), unlabeled_loss("gaussian")
    lines = plotting.loss_curves(ax, {"hinge": hinge, "gaussian": gaussian}, limits=(-1, 1))
    f = lines[0].get_xdata()
    np.testing.assert_allclose(lines[0].get_ydata(), 1 - f)
    np.testing.assert_allclose(lines[1].get_ydata(), np.exp(-3 * f**2))
    (slope,) = plotting.loss_curves(ax, [labeled_loss("squared_hinge")], derivative=True)
    assert slope.get_label() == "squared hinge" and ax.get_ylabel() == "derivative"


def _moving_line(n_frames=3, **options):
    fig, ax = plt.subplots(figsize=(2, 1))
    (line,) = ax.plot([0, 1], [0, 1])
    seen = []

    def update(k):
        seen.append(k)
        line.set_ydata([0, k + 1])

    options = {"alt": 'A line that "rises" & rises.', **options}
    return fig, plotting.player(fig, update, n_frames, **options).data, seen


def test_player_is_self_contained_and_accessible():
    fig, html, seen = _moving_line()
    assert seen == [0, 1, 2] and not plt.fignum_exists(fig.number)
    assert not re.search(r"https?://|font-awesome|class=\"fa ", html)
    assert len(re.findall(r"frames\[\d+\] = \"data:image/png;base64,", html)) == 3
    alt = "A line that &quot;rises&quot; &amp; rises."
    assert f'<img style="max-width: 100%" alt="{alt}"' in html
    assert f'role="group" aria-label="{alt}"' in html
    assert 'aria-label="Frame"' in html and "max-width: 95%" in html
    assert html.count("<button") == html.count('<span aria-hidden="true">') == 9


def test_player_bytes_depend_on_the_content_only():
    _, html, _ = _moving_line()
    _, again, _ = _moving_line()
    _, other, _ = _moving_line(alt="Another line.")
    assert html == again

    def identifier(text):
        return re.search(r"_anim_img(\w+)", text).group(1)

    assert identifier(html) != identifier(other)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"n_frames": 21}, "n_frames"), ({"n_frames": 0}, "n_frames"), ({"alt": " "}, "alt")],
)
def test_player_refuses_too_much_and_too_little(options, message):
    with pytest.raises(ValueError, match=message):
        _moving_line(**options)
    plt.close("all")


@pytest.mark.filterwarnings("error")  # matplotlib's, where both ends of an axis are one
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("constant", [False, True])
def test_regions_leave_room_around_rows_of_any_size(ax, scale, constant):
    X, y = make_moons(20, random_state=0)
    X = scale * (X * [1.0, 0.0] + [0.0, 3.0] if constant else X)
    plotting.regions(ax, SVC(gamma=1 / scale**2).fit(X, y), X, resolution=5)
    for (low, high), column in zip((ax.get_xlim(), ax.get_ylim()), X.T, strict=True):
        room = column.min() - low, high - column.max()
        assert min(room) > 0.01 * max(np.ptp(column), 1e-9) and max(room) < 10 * max(scale, 1.0)
