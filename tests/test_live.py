"""The copies of the chapters that are run: nothing raw is left, and all numbers are the site's."""

import copy
import html
import importlib.util
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from importlib import metadata
from pathlib import Path

import pytest

for package in ("pybtex", "yaml"):
    pytest.importorskip(package, reason="live copies need the extra chapters")
nbformat = pytest.importorskip("nbformat", reason="live copies need the extra chapters")

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html" / "book"
sys.path.insert(0, str(ROOT / "book" / "_tools"))  # scripts, not a package: found from here on

import compare  # noqa: E402
import live  # noqa: E402
import notebooks as tool  # noqa: E402
from test_site import PATIENCE, browser, unavailable  # noqa: E402, F401  (a fixture)

pytestmark = pytest.mark.interface

NAMES = [path.stem for path in sorted((ROOT / "book").glob("*.ipynb"))]
LINK = re.compile(r"\[([^\[\]]+)\]\(([^)\s]+)\)")
MATH = re.compile(r"\$\$.+?\$\$|\$(?:\\.|[^$\\])+\$", re.DOTALL)
RAW = re.compile(
    r"\{[a-z][\w:.+-]*\}`"  # a role
    r"|^ *[`:]{3,} *\{"  # a directive
    r"|^\([\w-]+\)=$"  # a target
    r"|^ *:(?:label|class|name):",
    re.MULTILINE,
)


class Recorder(live.Book):
    """A book that notes which numbers of the cells it quotes."""

    def __init__(self, *args, **options):
        self.quoted = {}
        super().__init__(*args, **options)

    def _glued(self, page, body):
        value = super()._glued(page, body)
        self.quoted.setdefault(page.name, []).append(value)
        return value


@pytest.fixture(scope="module")
def book():
    return Recorder()


@pytest.fixture(scope="module")
def notebooks(book):
    return book.notebooks()


def texts(notebook):
    """Markdown cells without code, and without brackets in formulas: those are no links."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"(?ms)^ *(```+).*?^ *\1 *$|``.+?``(?!`)|`[^`\n]+`", "", cell.source)
            yield MATH.sub(lambda match: re.sub(r"[\[\]]", "|", match[0]), text)


def test_every_chapter_has_a_copy_that_is_a_valid_notebook(book, notebooks):
    assert {f"{name}.ipynb" for name in NAMES} < set(notebooks)
    for name, notebook in notebooks.items():
        nbformat.validate(notebook)
        ids = [cell.id for cell in notebook.cells]
        assert len(set(ids)) == len(ids), name
    chapters = re.findall(r"\((\w+\.ipynb)\)", notebooks["index.ipynb"].cells[0].source)
    assert chapters == [f"{name}.ipynb" for name in book.pages]


def test_nothing_is_left_that_only_the_site_understands(book, notebooks):
    macros = [re.compile(rf"\\{name}(?![A-Za-z])") for name in book.macros]
    for name, notebook in notebooks.items():
        for text in texts(notebook):
            for pattern in (RAW, *macros):
                assert not (found := pattern.search(text)), (name, text[found.start() :][:80])
            assert text.count("<details>") == text.count("</details>")


def test_every_link_leads_somewhere(notebooks):
    anchors = {
        name: re.findall(r'<(?:a|div) id="([\w-]+)"', "\n".join(texts(one)))
        for name, one in notebooks.items()
    }
    assert all(len(set(one)) == len(one) for one in anchors.values())
    count = 0
    for name, notebook in notebooks.items():
        for text in texts(notebook):
            for words, target in LINK.findall(text):
                if target.startswith("https://"):
                    continue
                file, _, fragment = target.partition("#")
                assert words and (file or name) in anchors, (name, words, target)
                assert not fragment or fragment in anchors[file or name], (name, target)
                count += 1
    assert count > 500


@pytest.mark.parametrize("name", NAMES)
def test_the_code_is_that_of_the_chapter(notebooks, name):
    chapter = nbformat.read(ROOT / "book" / f"{name}.ipynb", as_version=4)
    stored = [cell for cell in chapter.cells if cell.cell_type == "code"]
    copied = [cell for cell in notebooks[f"{name}.ipynb"].cells if cell.cell_type == "code"]
    assert [cell.source for cell in copied] == [cell.source for cell in stored]
    for new, old in zip(copied, stored, strict=True):
        tags = old.metadata.get("tags", ())
        hidden = new.metadata.get("jupyter", {}).get("source_hidden", False)
        assert hidden == bool({"hide-input", "hide-cell", "remove-input"} & set(tags))
        shown = [one for one in old.outputs if compare.GLUE not in one.get("data", {})]
        assert new.outputs == shown


# --- Against the site -----------------------------------------------------------------------------


def words_of(markup):
    """What a reader sees of a piece of HTML."""
    text = html.unescape(re.sub(r"<[^>]+>", "", markup))
    return re.sub(r"\s+", " ", re.sub(r"\\\((.*?)\\\)", r"$\1$", text)).strip()


def on_the_site(markup, pages):
    """Section numbers, captions, equation numbers, references and quoted numbers of a page."""
    article = re.search(r"<article.*?</article>", markup, re.DOTALL)[0]
    # A solution names its exercise as a link, which a live copy has as plain text above; the words
    # below sliders that do not move, and the fold of what another processor may change, are for the
    # site alone: a copy runs on the reader's processor, and its sliders move.
    only_here = (
        r'<p class="(?:admonition-title">Solution to|sliders">).*?</p>'
        r'|<div class="[^"]*\btolerance\b[^"]*">.*?</div>'
    )
    prose = re.sub(only_here, "", article, flags=re.DOTALL)
    references = []
    for target, words in re.findall(
        r'<a class="reference internal" href="([^"]*)"[^>]*>(.*?)</a>', prose, re.DOTALL
    ):
        page = target.partition("#")[0].removesuffix(".html")
        if not page or page in pages:
            references.append(words_of(words))
    return {
        "sections": re.findall(r'<h[1-6]><span class="section-number">([\d.]+)', article),
        "captions": re.findall(r'<span class="caption-number">(\w+ [\d.]*\d) *</span>', article),
        "equations": re.findall(r'<span class="eqno">\(([\d.]+)\)', article),
        "references": references,
        "quoted": [words_of(one) for one in re.findall(r'"pasted-text">(.*?)</span>', article)],
    }


def in_the_copy(notebook):
    prose = "\n\n".join(texts(notebook))
    references = []
    for words, target in LINK.findall(prose):
        if not target.startswith("https://"):
            references.append(re.sub(r"\*", "", words))
    kinds = "|".join(kind.capitalize() for kind in (*live.PROOF_KINDS, "exercise", "figure"))
    return {
        "sections": re.findall(r"(?m)^#{1,6} ((?:\d+\.)+) ", prose),
        "captions": re.findall(rf"(?m)^(?:\*\*|#+ )((?:{kinds}) [\d.]*\d)(?= |\*|$)", prose),
        "equations": re.findall(r"\\tag\{([\d.]+)\}", prose),
        "references": references,
    }


@pytest.mark.parametrize("name", [*NAMES, *live.TEXT_PAGES])
def test_all_numbers_and_references_are_those_of_the_site(book, notebooks, name):
    page = SITE / f"{name}.html"
    if not page.is_file():
        unavailable("there is no built book (make book)")
    expected = on_the_site(page.read_text(encoding="utf-8"), book.pages)
    found = {**in_the_copy(notebooks[f"{name}.ipynb"]), "quoted": book.quoted.get(name, [])}
    for kind, values in expected.items():
        for there, here in itertools.zip_longest(values, found[kind]):
            assert here == there, (kind, there, here)
    if name in book.pages and book.pages[name].number:
        needed = {"sections", "references"}
        if name.startswith("story_"):
            needed |= {"captions"}
        elif not name.startswith(("paper_", "how_to_read")):  # have what their subjects ask for
            needed |= {"captions", "equations"}
        missing = [kind for kind in needed if not expected[kind]]
        assert not missing, f"a chapter has sections, captions, equations, references: {missing}"


# --- The rules, each shown to bite ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{glue:text}`svm-nothing`", "no cell glues 'svm-nothing'"),
        ("{cite:t}`nobody1900`", "references.bib does not have"),
        ("{prf:ref}`svm-thm-nothing`", "nothing has the label"),
        ("{eq}`svm-thm-representer`", "nothing has the label"),  # a theorem, no equation
        ("{doc}`nowhere`", "no page 'nowhere'"),
        ("[here](nowhere)", "no page 'nowhere'"),
        ("{colour}`red`", "the role 'colour'"),
        ("```{colour} red\n```", "the directive 'colour'"),
        ("```{math}\nx", "does not end"),
        ("![](a.png)", "no images"),
    ],
)
def test_what_cannot_be_derived_is_an_error(book, text, message):
    page = book.pages["svm"]
    with pytest.raises(ValueError, match=message):
        book.write(live.parse(text), page, [1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"$\R^2$ and `$\R$`", r"$\mathbb{R}^2$ and `$\R$`"),
        ("``{eq}`x` ``", "``{eq}`x` ``"),
        ("```python\n{eq}`x` $\\R$\n```", "```python\n{eq}`x` $\\R$\n```"),
        ("costs \\$5 and $5$", "costs \\$5 and $5$"),
        ("{doc}`words <notation>`", "[words](notation.ipynb)"),
        ("{py:func}`~s3vm_lib.datasets.load`", "`load()`"),
        ("{glue:text}`svm_steps_apart:.0f`", None),
        ("```{math}\na \\\\ b\n```", "$$\n\\begin{split}\na \\\\ b\n\\end{split}\n$$"),
        (
            "{cite}`cortes1995support`",
            "([Cortes and Vapnik, 1995](bibliography.ipynb#cortes1995support)",
        ),
        ("{prf:ref}`svm-thm-loo`", "[Theorem {svm}.3](#svm-thm-loo)"),
        (
            "{prf:ref}`svm-thm-representer`",
            "[Theorem {kernels}.2](kernels.ipynb#svm-thm-representer)",
        ),
        ("{eq}`eq-balance`", "[({unlabelled}.4)](unlabelled.ipynb#equation-eq-balance)"),
        ("```{prf:proof}\n- one\n```", "*Proof.*\n\n- one ∎"),
    ],
)
def test_roles_and_directives_in_plain_markdown(book, text, expected):
    written = book.write(live.parse(text), book.pages["svm"], [1])
    if expected is None:
        value = book.pages["svm"].glued["svm_steps_apart"]
        assert written == format(float(value), ".0f")
    else:
        for name in ("svm", "kernels", "unlabelled"):
            expected = expected.replace(f"{{{name}}}", str(book.pages[name].number))
        assert written.startswith(expected)


def test_a_figure_has_its_caption_below_it_and_is_referred_to(book, notebooks):
    chapter = nbformat.read(ROOT / "book" / "class_ratio.ipynb", as_version=4)
    figures = [one.metadata.mystnb.figure for one in chapter.cells if live.figure_of(as_read(one))]
    assert len(figures) > 3
    number, cells = book.pages["class_ratio"].number, notebooks["class_ratio.ipynb"].cells
    for k, figure in enumerate(figures, 1):
        (place,) = (j for j, cell in enumerate(cells) if cell.id == figure["name"])
        assert cells[place - 1].cell_type == "code"
        start = f'<a id="{figure["name"]}"></a>\n\n**Figure {number}.{k}** '
        assert cells[place].source.startswith(start)
        link = book.inline(f"{{numref}}`{figure['name']}`", book.pages["svm"])
        assert link == f"[Figure {number}.{k}](class_ratio.ipynb#{figure['name']})"


def as_read(cell):
    return live.Cell(cell.id, source=cell if cell.cell_type == "code" else None)


def test_links_for_colab_and_a_cell_that_installs(book):
    colab = "https://colab.research.google.com/github/a/b/blob/live"
    made = live.Book("s3vm-lib @ git+https://github.com/a/b@main", colab, "https://a.github.io/b")
    notebook = made.notebook(made.pages["cccp"])
    text = "\n".join(texts(notebook))
    assert f"]({colab}/kernels.ipynb#scrollTo=svm-thm-representer)" in text
    assert f"]({colab}/bibliography.ipynb#scrollTo=bibliography)" in text
    assert "](#cccp-thm-which)" in text
    assert all(cell.metadata["id"] == cell.id for cell in notebook.cells)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    assert '%pip install --quiet "s3vm-lib @ git+https://github.com/a/b@main"' in first.source
    assert 'find_spec("s3vm_lib") is None' in first.source
    pages = "".join(cell.source for cell in made.notebook(made.pages["how_to_read"]).cells)
    assert "](https://a.github.io/b/book/api/index.html)" in pages
    own = next(c for c in book.notebook(book.pages["cccp"]).cells if c.cell_type == "code")
    assert "pip" not in own.source


def test_files_by_time_are_in_the_order_of_the_book(notebooks, tmp_path):
    live.store(notebooks, tmp_path)
    found = sorted(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime)
    assert [path.name for path in found] == list(notebooks)
    assert found[0].name == "index.ipynb" and [path.name for path in found] != sorted(notebooks)


def test_what_a_reader_has_changed_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    made = live._empty()
    made.cells = [nbformat.v4.new_code_cell("x = 1", id="a")]
    folder = tmp_path / "live"
    assert live.store({"a.ipynb": live._signed(made)}, folder) == []
    path = folder / "a.ipynb"

    executed = nbformat.read(path, as_version=4)
    executed.cells[0].execution_count = 7  # run, not changed
    nbformat.write(executed, path)
    assert live.store({"a.ipynb": made}, folder) == []
    assert nbformat.read(path, as_version=4).cells[0].execution_count is None

    executed.cells[0].source = "x = 2"
    nbformat.write(executed, path)
    assert live.store({"a.ipynb": made}, folder) == [path]
    assert nbformat.read(path, as_version=4).cells[0].source == "x = 2"
    assert live.store({"a.ipynb": made}, folder, force=True) == []
    assert nbformat.read(path, as_version=4).cells[0].source == "x = 1"


# --- In a notebook server -------------------------------------------------------------------------

SHOWN = ("svm", "model_selection", "cccp", "random_features")
RUN = "model_selection"  # one is enough to see that it runs there: all are executed elsewhere
IN_SIGHT = """id => {
  const place = document.querySelector(`[data-jupyter-id="${id}"]`);
  const box = place.getBoundingClientRect();  // of no height where it is an empty anchor
  return place.checkVisibility() && box.bottom > 0 && box.top < innerHeight;
}"""
RUN_ALL = """
const panel = window.jupyterapp.shell.currentWidget;
await panel.context.ready;
await panel.sessionContext.ready;
await window.jupyterapp.commands.execute('notebook:run-all-cells');
"""


@pytest.fixture(scope="module")
def server(notebooks, tmp_path_factory):
    """Address of a JupyterLab without extensions that shows the live copies."""
    pytest.importorskip("jupyterlab", reason="needs the extra chapters")
    home = tmp_path_factory.mktemp("lab")
    environment = {
        **os.environ,
        **{f"JUPYTER_{kind}_DIR": str(home / kind) for kind in ("CONFIG", "DATA", "RUNTIME")},
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    # Neither what renders MyST nor what asks the reader about news.
    extensions = ("jupyterlab-myst", "@jupyterlab/apputils-extension:announcements")
    disabled = {"disabledExtensions": dict.fromkeys(extensions, True)}
    (home / "CONFIG" / "labconfig").mkdir(parents=True)
    (home / "CONFIG" / "labconfig" / "page_config.json").write_text(json.dumps(disabled))
    before = os.environ.get("JUPYTER_DATA_DIR")
    os.environ["JUPYTER_DATA_DIR"] = environment["JUPYTER_DATA_DIR"]
    live.store(notebooks, home / "live")
    spec = importlib.util.spec_from_file_location("tasks", ROOT / "tasks.py")
    tasks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tasks)
    tasks.sort_files(home / "workspaces")
    if before is None:
        del os.environ["JUPYTER_DATA_DIR"]
    else:
        os.environ["JUPYTER_DATA_DIR"] = before
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "ServerApp.root_dir": home / "live",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "IdentityProvider.token": "",
        "LabApp.expose_app_in_browser": "True",
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--{name}={value}" for name, value in options.items()]
    address = f"http://127.0.0.1:{port}/"
    with (home / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"{address}api", timeout=5).close()
                    break
                except OSError:
                    assert process.poll() is None, (home / "log").read_text()
                    time.sleep(0.2)
            yield address
        finally:
            process.terminate()
            process.wait()


@pytest.fixture
def lab(request, server):
    """A page of JupyterLab, which asks no other host for anything."""
    page = request.getfixturevalue("browser").new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    asked = []

    def answer(route):
        if route.request.url.startswith((server, "data:", "blob:")):
            route.continue_()
        else:
            asked.append(route.request.url)
            route.abort()

    page.route("**/*", answer)
    yield page
    page.close()
    assert asked == []


@pytest.mark.slow
@pytest.mark.browser
def test_jupyterlab_lists_the_chapters_in_their_order(lab, server, notebooks):
    """Before the others, which reset what JupyterLab keeps of its window."""
    lab.goto(f"{server}lab/tree/index.ipynb")
    expected = list(notebooks)
    lab.wait_for_function(
        "expected => [...document.querySelectorAll('.jp-DirListing-itemText')]"
        ".map(e => e.innerText.trim()).join() === expected",
        arg=",".join(expected),
        timeout=60_000,
    )
    assert expected != sorted(expected)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("name", SHOWN)
def test_a_chapter_in_jupyterlab(lab, server, notebooks, name):
    """It reads well, and its links lead on; it runs, and its slider changes the picture."""
    lab.goto(f"{server}lab/tree/{name}.ipynb?reset")
    lab.wait_for_selector(".jp-Notebook .jp-MarkdownOutput h1")
    # Cells join the page one by one, so those that are there do not tell whether all are.
    n_cells = sum(cell.cell_type == "markdown" for cell in notebooks[f"{name}.ipynb"].cells)
    lab.wait_for_function(
        "n => [...document.querySelectorAll('.jp-Notebook .jp-MarkdownCell .jp-RenderedMarkdown')]"
        ".filter(text => text.textContent.trim()).length === n",
        arg=n_cells,
    )
    lab.wait_for_function("document.querySelectorAll('.jp-Notebook mjx-container').length > 100")
    text = "\n".join(lab.locator(".jp-Notebook .jp-RenderedMarkdown").all_text_contents())
    assert not RAW.search(text)
    assert lab.locator(".jp-Notebook mjx-merror").count() == 0
    assert lab.locator(".jp-Notebook .jp-RenderedMarkdown [style*='border-left']").count() > 3

    lab.wait_for_function(  # cells are rendered one by one
        "[...document.querySelectorAll('.jp-RenderedMarkdown a[href^=\"#\"]')]"
        ".filter(a => !a.classList.contains('jp-InternalAnchorLink'))"
        '.every(a => document.querySelector(`[data-jupyter-id="${a.hash.slice(1)}"]`))'
    )
    links = lab.locator(".jp-RenderedMarkdown a[href^='#']:not(.jp-InternalAnchorLink)")
    if folder := os.environ.get("S3VM_SCREENSHOTS"):
        lab.screenshot(path=f"{folder}/{name}.png")
    link = links.first
    target = link.get_attribute("href")[1:]
    link.scroll_into_view_if_needed()
    link.click()
    lab.wait_for_function(IN_SIGHT, arg=target)

    if name != RUN:
        return
    lab.evaluate(f"(async () => {{ {RUN_ALL} }})()")
    lab.wait_for_function(
        "![...document.querySelectorAll('.jp-InputPrompt')].some(p => p.textContent.includes('*'))"
    )
    errors = "[data-mime-type='application/vnd.jupyter.stderr'], [data-mime-type*='jupyter.error']"
    assert lab.locator(errors).all_inner_texts() == []

    handle = lab.locator(".jp-OutputArea .noUi-handle").first
    handle.scroll_into_view_if_needed()
    area = handle.locator("xpath=ancestor::*[contains(@class, 'widget-interact')]")
    before = area.locator("img").get_attribute("src")
    handle.focus()
    lab.keyboard.press("ArrowRight")
    lab.wait_for_function(
        "before => [...document.querySelectorAll('.widget-interact img')]"
        ".some(img => img.complete && img.naturalWidth && img.src !== before)",
        arg=before,
    )


@pytest.mark.slow
@pytest.mark.browser
def test_a_link_opens_the_other_notebook_at_its_place(lab, server):
    theorem = live.Book().places["svm-thm-representer"].words
    lab.goto(f"{server}lab/tree/cccp.ipynb?reset")
    link = lab.locator(".jp-RenderedMarkdown a", has_text=theorem).first
    place = lab.locator("[data-jupyter-id='svm-thm-representer']")
    link.click()
    place.wait_for()
    assert place.text_content().strip().startswith(f"{theorem} (Representer theorem")
    # JupyterLab goes to a place only in a notebook that is open already, and beside it where cells
    # above it were not laid out before: a reader clicks again.
    for _ in range(20):
        lab.locator("li.lm-TabBar-tab", has_text="cccp.ipynb").click()
        link.click()
        lab.locator(".lm-mod-current", has_text="kernels.ipynb").wait_for()
        for _ in range(10):  # half a second each
            lab.wait_for_timeout(500)
            if lab.evaluate(IN_SIGHT, "svm-thm-representer"):
                return
    pytest.fail("the place is never in sight")


# --- Where there is nothing but the wheel, ipykernel and ipywidgets -------------------------------

BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def closure(names):
    """Installed distributions that some need, directly or through others."""
    from packaging.requirements import Requirement

    found, waiting = set(), [Requirement(name) for name in names]
    while waiting:
        one = waiting.pop()
        key = re.sub(r"[-_.]+", "-", one.name).lower()
        if key in found or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        found.add(key)
        waiting += map(Requirement, metadata.requires(key) or ())
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, unpacked, and beside it what hides all packages that it does not need."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-book"):
        shutil.copy(ROOT / name, source)
    for name in ("s3vm_lib", "s3vm_book"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    command = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source]
    subprocess.run([sys.executable, *command], check=True)
    (file,) = folder.glob("*.whl")
    shutil.unpack_archive(file, folder, "zip")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    present = closure([*declared["dependencies"], "ipykernel", "ipywidgets"])
    hidden = {
        top
        for top, owners in metadata.packages_distributions().items()
        if not {re.sub(r"[-_.]+", "-", owner).lower() for owner in owners} & present
    } - {"s3vm_lib", "s3vm_book"}
    (folder / "sitecustomize.py").write_text(BLOCKER.format(names=hidden))
    return folder


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("random_features", marks=pytest.mark.nightly),  # it compiles for long
        pytest.param("how_to_read", marks=pytest.mark.slow),
        pytest.param("with_scikit_learn", marks=pytest.mark.slow),
    ],
)
def test_a_chapter_runs_from_the_wheel_in_any_folder(notebooks, wheel, tmp_path, monkeypatch, name):
    pytest.importorskip("nbclient", reason="needs the extra book")
    monkeypatch.setenv("PYTHONPATH", str(wheel))
    notebook = copy.deepcopy(notebooks[f"{name}.ipynb"])
    first = "import s3vm_lib, sys\nprint(s3vm_lib.__file__)\ntry:\n    import myst_nb\n"
    first += "except ImportError as error:\n    print(error)"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(first))
    tool.client_of(notebook, tmp_path).execute()
    printed = notebook.cells[0].outputs[0].text
    assert printed.startswith(str(wheel)) and "No module named 'myst_nb'" in printed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "book/index.md"])
def test_a_newcomer_runs_the_ten_lines_from_the_wheel(wheel, tmp_path, page):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(wheel)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == code.rsplit("# ", 1)[1].strip()


def test_launch_buttons_open_the_copies(monkeypatch):
    pytest.importorskip("sphinx", reason="needs the extra book")
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    import extension

    base = "https://mybinder.org/v2/gh/one/two/main?urlpath=lab/tree/book/svm.ipynb"
    colab = "https://colab.research.google.com/github/one/two/blob/main/book/svm.ipynb"
    source = "https://github.com/one/two/blob/main/book/svm.ipynb"
    group = {"type": "group", "buttons": [{"url": base}, {"url": colab}]}
    context = {"header_buttons": [group, {"url": source}]}
    extension.launch_copies(None, "book/svm", "page.html", context, None)
    opened = [button["url"] for button in group["buttons"]]
    assert opened == [
        base.replace("/book/", "/live/"),
        colab.replace("/main/book/", "/live/"),
    ]
    assert context["header_buttons"][1] == {"url": source}
