"""The rules of the notebooks, each shown to bite; pyproject.toml as the only list of packages."""

import importlib.util
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

yaml = pytest.importorskip("yaml", reason="the book's tests need the extras book and test")
nbformat = pytest.importorskip("nbformat", reason="the book's tests need the extras book and test")

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))


def load_tool():
    spec = importlib.util.spec_from_file_location(
        "notebooks", ROOT / "book" / "_tools" / "notebooks.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = load_tool()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_keeps_the_rules(path):
    problems = tool.find_problems(path.read_text(encoding="utf-8"))
    assert not problems, "\n".join(problems)


def png(value=1.0, shape=(4, 6)):
    """A base64 PNG of one grey value, as a notebook stores it."""
    import base64
    import io

    from matplotlib import image

    buffer = io.BytesIO()
    image.imsave(buffer, np.full((*shape, 3), value), format="png")
    return base64.b64encode(buffer.getvalue()).decode() + "\n"


def make_notebook(*cells):
    """A normalized notebook from code cells given as (source, outputs, metadata)."""
    notebook = nbformat.v4.new_notebook()
    for position, (source, outputs, metadata) in enumerate(cells):
        cell = nbformat.v4.new_code_cell(source, outputs=outputs, metadata=metadata)
        cell.id = f"cell-{position}"
        notebook.cells.append(cell)
    return tool.normalize(notebook)


def stream(text, name="stdout"):
    return nbformat.v4.new_output("stream", name=name, text=text)


def display(**data):
    data = {mime.replace("__", "/").replace("_", "-"): text for mime, text in data.items()}
    return nbformat.v4.new_output("display_data", data=data)


def glued(text):
    return nbformat.v4.new_output("display_data", data={tool.GLUE: text})


def test_a_good_notebook_has_no_problems():
    alt = {"mystnb": {"image": {"alt": "A grey rectangle."}}}
    notebook = make_notebook(
        ("print(1)", [stream("1\n")], {}),
        ("plt.show()", [display(image__png=png(), text__plain="<Figure>")], alt),
    )
    assert tool.find_problems(tool.dumps(notebook)) == []


@pytest.mark.parametrize(
    ("source", "output", "metadata", "message"),
    [
        ("f()", None, {"tags": ["nbval-skip"]}, "tags that are not allowed"),
        ("f()", stream("careful", "stderr"), {}, "writes to stderr"),
        ("f()", stream("wrote /home/anna/x.npz"), {}, "absolute path"),
        ("f()", stream(r"wrote C:\Users\anna"), {}, "absolute path"),
        ("f()", stream("<object at 0x7f3c2a1b9d60>"), {}, "object's address"),
        ("plt.plot(x);", None, {}, "semicolon"),
        ("f()", glued("np.int64(32)"), {}, "NumPy scalar"),
        ("plt.show()", display(image__png=png()), {}, "without alt text"),
        ("f()", display(text__html='<img src="data:image/png;base64,AA">'), {}, "without alt text"),
        ("f()", display(text__html='<script src="https://a.b/c.js"></script>'), {}, "another host"),
        ("f()", nbformat.v4.new_output("error", ename="E", evalue="", traceback=[]), {}, "raises"),
    ],
)
def test_each_rule_bites(source, output, metadata, message):
    notebook = make_notebook((source, [output] if output else [], metadata))
    problems = tool.find_problems(tool.dumps(notebook))
    assert any(message in problem for problem in problems), problems


def test_rules_on_the_whole_notebook_bite():
    notebook = make_notebook(("print(1)", [stream("1\n")], {}), ("print(2)", [stream("2\n")], {}))
    notebook.cells[1].execution_count = 7
    assert "not executed once and in order" in tool.find_problems(tool.dumps(notebook))[0]

    notebook = make_notebook(("print(1)", [stream("1\n")], {}))
    notebook.cells[0].metadata["collapsed"] = True
    assert "not normalized" in tool.find_problems(tool.dumps(notebook))[0]

    notebook = make_notebook(("print(1)", [stream("1\n")], {}))
    notebook.metadata["widgets"] = {}
    assert "state of widgets" in tool.find_problems(tool.dumps(notebook))[0]

    cells = [(f"x = {i}", [], {}) for i in range(tool.MAX_CODE_CELLS + 1)]
    notebook = make_notebook(*cells)
    notebook.cells.append(nbformat.v4.new_markdown_cell("## Exercises", id="exercises"))
    assert "before the exercises" in tool.find_problems(tool.dumps(notebook))[0]

    notebook = make_notebook(("x = 1", [], {}))
    notebook.cells.append(nbformat.v4.new_markdown_cell("![](_static/a.png)", id="image"))
    assert "image without alt text" in tool.find_problems(tool.dumps(notebook))[0]


def test_normalize_drops_widgets_and_merges_streams():
    outputs = [stream("a\n"), widget_view("x" * 32), stream("b\n")]
    notebook = make_notebook(("show()", outputs, {"collapsed": True, "tags": []}))
    (cell,) = notebook.cells
    assert [output.text for output in cell.outputs] == ["a\nb\n"]
    assert cell.metadata == {}
    assert tool.find_problems(tool.dumps(notebook)) == []


def widget_view(key):
    data = {"application/vnd.jupyter.widget-view+json": {"model_id": key}, "text/plain": "HBox()"}
    return nbformat.v4.new_output("display_data", data=data)


@pytest.mark.parametrize(
    ("fresh", "kept"),
    [(png(0.501), True), (png(0.9), False), (png(0.5, shape=(5, 6)), False)],
    ids=["same to the eye", "other colour", "other size"],
)
def test_unchanged_figures_keep_their_bytes(fresh, kept):
    before = make_notebook(("plt.show()", [display(image__png=png(0.5))], {}))
    after = make_notebook(("plt.show()", [display(image__png=fresh)], {}))
    tool.keep_unchanged_figures(after, before)
    expected = png(0.5) if kept else fresh
    assert after.cells[0].outputs[0]["data"]["image/png"] == expected


def test_execute_stores_outputs_and_is_repeatable(tmp_path):
    pytest.importorskip("nbclient", reason="needs the extra book")
    pytest.importorskip("ipykernel", reason="needs the extra book")
    path = tmp_path / "chapter.ipynb"
    path.write_text(tool.dumps(make_notebook(("print(6 * 7)", [stream("41\n")], {}))))
    tool.execute(path)
    text = path.read_text()
    assert "42" in text and "41" not in text
    assert tool.find_problems(text) == []
    tool.execute(path)
    assert path.read_text() == text


@pytest.mark.parametrize("name", ["README.md", "book/index.md"])
def test_example_prints_what_its_comment_says(name, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)
    exec(compile(example, name, "exec"), {})
    assert capsys.readouterr().out.strip() == example.rsplit("# ", 1)[1].strip()


def test_toc_lists_existing_pages_and_all_of_them():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = set(re.findall(r"book/[\w/]+", str(toc)))
    pages = {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for pattern in ("*.ipynb", "*.md", "api/*.md")
        for path in (ROOT / "book").glob(pattern)
    }
    assert listed == pages


def test_environment_yml_defers_to_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    packages = environment["dependencies"]
    names = [re.split(r"[=<>]", one)[0] for one in packages if isinstance(one, str)]
    assert names == ["python", "pip"]
    assert packages[-1] == {"pip": ["-e .[book]"]}


def test_constraints_only_name_versions_of_known_packages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in ("book", "test", "bench"):
        wanted += project["optional-dependencies"][extra]
    wanted = {re.match(r"[\w-]+", one).group().lower() for one in wanted}
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[\w.]+", pin) for pin in pins)
    assert wanted <= {pin.split("==")[0].lower().replace("_", "-") for pin in pins}


def test_citation_and_changelog_name_the_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == project["version"]
    assert f"[{project['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
