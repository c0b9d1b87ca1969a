"""The rules of the notebooks, each shown to bite; pyproject.toml as the only list of packages."""

import base64
import importlib.util
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

yaml = pytest.importorskip("yaml", reason="the book's tests need the extras book and test")
nbformat = pytest.importorskip("nbformat", reason="the book's tests need the extras book and test")

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))


sys.path.insert(0, str(ROOT / "book" / "_tools"))  # scripts, not a package: found from here on

import compare  # noqa: E402
import machine  # noqa: E402
import measure  # noqa: E402
import notebooks as tool  # noqa: E402
import prose  # noqa: E402

pytestmark = pytest.mark.interface


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_keeps_the_rules(path):
    problems = tool.find_problems(path.read_text(encoding="utf-8"))
    assert not problems, "\n".join(problems)


def png(value=1.0, shape=(4, 6)):
    """A base64 PNG of one grey value, as a notebook stores it."""
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


def glued(text, key="key"):
    metadata = {"scrapbook": {"name": key, "mime_prefix": "application/papermill.record/"}}
    data = {compare.GLUE: text}
    return nbformat.v4.new_output("display_data", data=data, metadata=metadata)


def captioned(name="fig-a-b", caption="A grey rectangle."):
    image = {"alt": "A rectangle, all grey."}
    return {"mystnb": {"figure": {"caption": caption, "name": name}, "image": image}}


def test_a_good_notebook_has_no_problems():
    alt = {"mystnb": {"image": {"alt": "A grey rectangle."}}}
    notebook = make_notebook(
        ("print(1)", [stream("1\n")], {}),
        ("plt.show()", [display(image__png=png(), text__plain="<Figure>")], alt),
        ("plt.show()", [display(image__png=png()), glued("7")], captioned()),
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
        ("f()", glued("0.48251290579006034"), {}, "4 digits are allowed"),
        ("f()", glued("3e-12"), {}, "needs a tolerance"),
        ("f()", glued("120", "smo-steps"), {}, "needs a tolerance"),
        ("glue('key', model.n_iter_)", glued("120"), {}, "needs a tolerance"),
        ("n = model.n_iter_\nshow(key=n)", glued("120"), {}, "needs a tolerance"),
        ("f()", glued("1.3"), {"tags": ["nbval-ignore-output"]}, "no test compares"),
        ("f()", None, {"tolerance": {"abs": -1}}, "at least 0"),
        ("f()", None, {"tolerance": {"lines": "J"}}, "a tolerance has"),
        ("f()", None, {"tolerance": {"lines": "(", "abs": 1}}, "unterminated"),
        ("plt.show()", display(image__png=png()), {}, "without alt text"),
        ("f()", display(text__html='<img src="data:image/png;base64,AA">'), {}, "without alt text"),
        ("f()", display(text__html='<script src="https://a.b/c.js"></script>'), {}, "another host"),
        ("plt.show()", display(image__png=png()), captioned(name="street"), "name is not like"),
        ("plt.show()", display(image__png=png()), captioned(caption=" "), "without a caption"),
        ("plt.show()", display(image__png=png()), captioned(caption="A\n\nB"), "one paragraph"),
        ("f()", stream("1"), captioned(), "shows 0 pictures under one caption"),
        ("f()", nbformat.v4.new_output("error", ename="E", evalue="", traceback=[]), {}, "raises"),
    ],
)
def test_each_rule_bites(source, output, metadata, message):
    notebook = make_notebook((source, [output] if output else [], metadata))
    problems = tool.find_problems(tool.dumps(notebook))
    assert any(message in problem for problem in problems), problems


def template():
    jupytext = pytest.importorskip("jupytext", reason="needs the extra book")
    text = (ROOT / "book" / "_tools" / "chapter.md").read_text(encoding="utf-8")
    return jupytext.reads(text, fmt="md:myst"), text


def test_the_template_is_a_chapter_that_runs(monkeypatch):
    notebook, _ = template()
    assert list(tool.part_problems(notebook)) == []
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    monkeypatch.setattr(plt, "show", plt.close)
    with plt.rc_context():
        exec(compile(code, "chapter.md", "exec"), {})


@pytest.mark.parametrize("part", tool.PARTS)
def test_a_chapter_without_one_of_its_parts_is_refused(part):
    _, text = template()
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell(text.replace(part, "elsewhere", 1))]
    )
    (problem,) = tool.part_problems(notebook)
    assert repr(part) in problem


def test_a_chapter_out_of_order_or_without_a_solution_is_refused():
    _, text = template()
    swapped = text.replace("## Summary", "##").replace("## Exercises", "## Summary")
    swapped = swapped.replace("##\n", "## Exercises\n")
    unsolved = text.replace("{solution-start} new-ex-paper", "{solution-start} another")
    for changed, message in ((swapped, "comes after"), (unsolved, "has no solution")):
        cells = [nbformat.v4.new_markdown_cell(changed)]
        problems = list(tool.part_problems(nbformat.v4.new_notebook(cells=cells)))
        assert any(message in problem for problem in problems)


CHAPTERS = [path for path in NOTEBOOKS if "## Exercises" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_pictures_have_captions_and_exercises_a_level(path):
    notebook = nbformat.read(path, as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    size = measure.measured(notebook)
    assert size.captions == size.pictures
    titles = re.findall(r"```\{exercise\} (.*)", text)
    assert [one for one in titles if not re.search(r" \((warm-up|core|research)\)$", one)] == []


def test_what_is_folded_is_measured_apart():
    markdown = nbformat.v4.new_markdown_cell
    cells = [
        markdown("# Two words\n\nA formula $a + b$ {cite:t}`x2000`.\n\n$$\na + b\n$$\n"),
        markdown("```{math}\n:label: a-b\nx = y\n```\n\n```{prf:algorithm} Name\n1. line\n```"),
        markdown("```{admonition} Proof\n:class: dropdown\nFour words are folded.\n```\nThe end."),
        markdown("```{solution-start} a-b\n:class: dropdown\n```\nShort answer.\n"),
        nbformat.v4.new_code_cell("x = 1"),
        markdown("```{solution-end}\n```"),
        nbformat.v4.new_code_cell("x = 2"),
    ]
    size = measure.measured(nbformat.v4.new_notebook(cells=cells))
    # Two words, A formula x x, Name, 1. line, Proof, The end
    assert size[:3] == (12, 6, 1) and size.algorithm == 6 / 12
    assert size.pictures == size.captions == 0


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


def test_a_chapter_executed_with_other_results_is_reported():
    """In the code itself, and through the modules that compute verdicts."""
    known = tool.results_read(nbformat.v4.new_notebook())
    assert known == {}
    for source, tables in (
        ('rows = stored("qn_fig4")', {"qn_fig4"}),
        ('path = "elsewhere/results/svm_vs_svc.json"', {"svm_vs_svc"}),
        ("from s3vm_book import bakeoff, ranking", {"bakeoff"}),
        ("from s3vm_book import il as replication", {"il_tables23", "il_fig3", "il_fig4"}),
        (
            "from s3vm_book import (\n    il,\n    show_table,\n)",
            {"il_tables23", "il_fig3", "il_fig4"},
        ),
    ):
        notebook = make_notebook((source, [], {}))
        read = tool.results_read(notebook)
        assert set(read) == tables
        problems = tool.find_problems(tool.dumps(notebook))
        assert len(problems) == len(tables) and "are others than when" in problems[0]
        notebook.metadata["results"] = read
        assert tool.find_problems(tool.dumps(tool.normalize(notebook))) == []
        notebook.metadata["results"] = dict.fromkeys(read, "0123456789ab")
        assert len(tool.find_problems(tool.dumps(notebook))) == len(tables)
    everything = make_notebook(("from s3vm_book import show_table, verdicts", [], {}))
    assert {"qn_table2", "gkm_fig2", "tsg_fig2", "gaussians_cv"} <= set(
        tool.results_read(everything)
    )


def test_the_client_asks_again_for_an_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "LOOK_AGAIN", 0.05)
    path = tmp_path / "slow.ipynb"
    source = "import time\ntime.sleep(0.5)\nprint(1)"
    path.write_text(tool.dumps(make_notebook((source, [], {}))), encoding="utf-8")
    tool.execute(path)
    assert nbformat.read(path, as_version=4).cells[0].outputs[0]["text"] == "1\n"


def test_a_chapter_that_asks_for_more_than_binder_gives_is_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(machine, "BOOK", tmp_path)
    monkeypatch.setattr(machine, "START", 600)  # a busy machine is no error here
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    source = "import time\n\nimport numpy as np\n\nblock = np.ones(40_000_000)\ntime.sleep(1)"
    child = "import subprocess\nimport sys\n\nsubprocess.run([sys.executable, '-c', {!r}])"
    notebook = make_notebook((source, [], {}), ("del block\n" + child.format(source), [], {}))
    (tmp_path / "large.ipynb").write_text(tool.dumps(notebook), encoding="utf-8")
    with pytest.raises(SystemExit) as end:
        machine.main(["large"])
    assert end.value.code is None
    name, start, first, total, peak = capsys.readouterr().out.splitlines()[1].split()
    assert name == "large" and 1 <= float(first) < float(total) and float(start) > 0
    assert 350 < int(peak) < 700
    monkeypatch.setattr(machine, "MEGABYTES", 300)
    with pytest.raises(SystemExit, match=r"^large: \d+ MB, 300 are allowed$"):
        machine.main(["large"])


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
    tool.keep_what_agrees(after, before)
    expected = tool.with_palette(png(0.5) if kept else fresh)
    assert after.cells[0].outputs[0]["data"]["image/png"] == expected


def test_a_palette_makes_a_figure_smaller_and_changes_nothing_one_sees():
    figure, ax = plt.subplots(figsize=(4, 3), dpi=100)
    ax.plot(np.sin(np.linspace(0, 9, 200)))
    ax.imshow(np.random.default_rng(0).random((5, 5)), extent=(0, 100, -1, 1), aspect="auto")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    plt.close(figure)
    plain = base64.b64encode(buffer.getvalue()).decode() + "\n"
    small = tool.with_palette(plain)
    assert len(small) < 0.6 * len(plain)
    assert 0 < compare.picture_difference(plain, small) < compare.FIGURE_RMS
    assert tool.with_palette(small) == small


@pytest.mark.parametrize(("fresh", "kept"), [("13.1\n", "13.2\n"), ("13.6\n", "13.6\n")])
def test_numbers_within_their_tolerance_stay_as_they_are_stored(fresh, kept):
    cells = [("f()", [stream(text)], {"tolerance": {"abs": 0.2}}) for text in ("13.2\n", fresh)]
    before, after = map(make_notebook, cells)
    tool.keep_what_agrees(after, before)
    assert after.cells[0].outputs[0].text == kept


def test_a_declared_tolerance_allows_a_count_of_steps():
    rule = {"tolerance": [{"lines": "^smo-steps", "rel": 0.1}]}
    notebook = make_notebook(("f()", [glued("120", "smo-steps")], rule))
    assert tool.find_problems(tool.dumps(notebook)) == []


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


# --- Stored against fresh outputs -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "fresh", "tolerance", "message"),
    [
        ("error 13.2 %", "error 13.2 %", None, None),
        ("error 13.2 %", "error 13.0 %", None, "stored 13.2, now 13.0, allowed 0 in"),
        ("error 13.2 %", "error 13.20 %", None, "stored 13.2, now 13.20, allowed 0 in"),
        ("error 13.2 %", "error 13.0 %", {"abs": 0.1}, "stored 13.2, now 13.0, allowed 0.1 in"),
        ("error 13.2 %", "error 13.3 %", {"abs": 0.1}, None),
        ("1,234 steps", "1,300 steps", {"rel": 0.1}, None),
        ("1,234 steps", "1,500 steps", {"rel": 0.1}, "stored 1,234, now 1,500, allowed 123 in"),
        ("residual 2.5e-05", "residual −2.4e-05", {"rel": 0.1}, "now −2.4e-05"),
        ("a   9.9  b 1", "a  10.0  b 1", {"abs": 0.1}, None),
        ("moons 1.0", "digits 1.0", {"abs": 0.1}, "stored 'moons 1.0', now 'digits 1.0'"),
        ("error nan", "error 1.0", {"abs": 0.1}, "stored nan, now 1.0"),
        ("g50c", "g51c", {"abs": 5}, "stored 'g50c', now 'g51c'"),
        ("steps 10, J 2.0", "steps 11, J 2.0", {"lines": "^steps", "abs": 1}, None),
        ("J 2.0", "J 2.1", {"lines": "^steps", "abs": 1}, "stored 2.0, now 2.1, allowed 0 in"),
        ("J 2.0", "J 2.1", [{"lines": "J", "abs": 0}, {"abs": 1}], "allowed 0 in"),
    ],
)
def test_numbers_may_move_as_far_as_the_cell_declares(stored, fresh, tolerance, message):
    metadata = {} if tolerance is None else {"tolerance": tolerance}
    found = compare.compare_outputs([stream(stored)], [stream(fresh)], metadata)
    assert bool(found) == (message is not None), found
    assert message is None or message in found[0]


def test_lines_and_kinds_of_output_must_be_the_same():
    one, two = [stream("a 1\n")], [stream("a 1\n"), stream("b 2\n")]
    assert compare.compare_outputs(one, one) == []
    assert compare.compare_outputs(two, [stream("a 1\nb 2\n")]) == []  # one stream in two pieces
    for stored, fresh in ((one, two), (two, one), (one, [display(text__html="a 1")]), (one, [])):
        assert compare.compare_outputs(stored, fresh), (stored, fresh)
    assert compare.compare_outputs([glued("1.2")], [glued("1.3")]) == [
        "glued line 1: stored 1.2, now 1.3, allowed 0 in 'key = 1.2'"
    ]
    assert compare.compare_outputs([glued("1.2", "a")], [glued("1.2", "b")])


def test_figures_are_compared():
    def found(fresh, **metadata):
        old, new = ([display(image__png=image)] for image in (png(0.5), fresh))
        return compare.compare_outputs(old, new, metadata)

    assert found(png(0.5)) == found(png(0.501)) == []
    assert found(png(0.6)) == ["figure 1: differs by 26.0 of 255, allowed 1"]
    assert found(png(0.6), tolerance={"figure": 30}) == []
    assert "inf" in found(png(0.5, shape=(5, 6)), tolerance={"figure": 30})[0]
    assert compare.compare_outputs([display(image__png=png())], []) == ["stored 1 figures, now 0"]


def test_one_digit_in_the_title_of_a_figure_is_seen():
    plt = pytest.importorskip("matplotlib.pyplot")

    def figure(title):
        import base64
        import io

        fig, axes = plt.subplots(figsize=(6.4, 4.8))
        axes.plot([0, 1], [0, 1])
        axes.set_title(title)
        buffer = io.BytesIO()
        fig.savefig(buffer, format="png", dpi=72)
        plt.close(fig)
        return base64.b64encode(buffer.getvalue()).decode()

    assert compare.picture_difference(figure("error 13.2 %"), figure("error 13.2 %")) == 0
    difference = compare.picture_difference(figure("error 13.2 %"), figure("error 13.3 %"))
    assert difference > compare.FIGURE_RMS


def changed(line, metadata):
    """Copies of a line, each with one number moved by a little more than it may."""
    rule = compare.rule_for(line, compare.rules_of(metadata)) or {}
    for match in compare.NUMBER.finditer(line):
        value = compare._value(match.group())
        if not np.isfinite(value):
            continue
        allowed = rule.get("abs", 0.0) + rule.get("rel", 0.0) * abs(value)
        moved = value + 1.01 * allowed + max(1e-6 * abs(value), 1e-300)
        yield line[: match.start()] + repr(moved) + line[match.end() :], match.group()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_stored_number_and_figure_is_guarded(path):
    """What a run of the notebooks compares: each number moved beyond its tolerance is reported."""
    notebook = nbformat.read(path, as_version=4)
    numbers = 0
    for cell in tool.code_cells(notebook):
        if "nbval-ignore-output" in cell.metadata.get("tags", ()):
            continue
        for output in cell.outputs:
            if output.output_type == "stream":
                for position, line in enumerate(lines := output.text.splitlines()):
                    for copy, number in changed(line, cell.metadata):
                        text = "\n".join([*lines[:position], copy, *lines[position + 1 :], ""])
                        fresh = [{**output, "text": text}]
                        (found,) = compare.compare_outputs([output], fresh, cell.metadata)
                        assert f"line {position + 1}: stored {number}, now" in found
                        numbers += 1
            elif compare.GLUE in output.data:
                line = compare.lines_of([output])["glued"][0]
                for copy, _ in changed(line, cell.metadata):
                    fresh = {**output, "data": {compare.GLUE: copy.partition(" = ")[2]}}
                    if copy.partition(" = ")[0] == line.partition(" = ")[0]:
                        assert compare.compare_outputs([output], [fresh], cell.metadata)
                        numbers += 1
            elif "image/png" in output.data:
                blank = {**output, "data": {**output.data, "image/png": png()}}
                assert "figure 1" in compare.compare_outputs([output], [blank], cell.metadata)[0]
    assert numbers >= 2, "a notebook has two numbers or more that are compared: print or say() them"


def test_nbval_reports_a_changed_number_and_a_changed_figure_in_one_line(tmp_path):
    pytest.importorskip("nbval", reason="needs the extra test")
    pytest.importorskip("ipykernel", reason="needs the extra book")
    book = tmp_path / "book"
    shutil.copytree(ROOT / "book" / "_tools", book / "_tools")
    shutil.copy(ROOT / "book" / "conftest.py", book)
    draw = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    notebook = make_notebook(
        ("print('error', 26.4 / 2)", [stream("error 13.3\n")], {"tolerance": {"abs": 0.2}}),
        ("print('error', 26.4 / 2)", [stream("error 13.0\n")], {"tolerance": {"abs": 0.1}}),
        (draw, [], {}),
    )
    path = book / "chapter.ipynb"
    path.write_text(tool.dumps(notebook))
    tool.execute(path)  # stores the figure, and 13.2 for 13.0
    stored = json.loads(path.read_text())
    assert stored["cells"][0]["outputs"][0]["text"] == ["error 13.3\n"]
    stored["cells"][1]["outputs"][0]["text"] = ["error 13.0\n"]
    data = stored["cells"][2]["outputs"][0]["data"]
    data["image/png"] = png(shape=compare.picture(data["image/png"]).shape[:2])
    path.write_text(json.dumps(stored))
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider"]
        + ["--rootdir", tmp_path, path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in result.stdout and "2 failed" in result.stdout, result.stdout
    expected = (
        "chapter, cell [2], stdout line 1: stored 13.0, now 13.2, allowed 0.1 in 'error 13.0'"
    )
    assert expected in result.stdout
    assert re.search(r"chapter, cell \[3\], figure 1: differs by \d+", result.stdout)


@pytest.fixture
def tasks(monkeypatch):
    spec = importlib.util.spec_from_file_location("tasks", ROOT / "tasks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PYTHON", sys.executable)
    monkeypatch.setattr(module, "install", lambda *extras: None)
    return module


@pytest.mark.parametrize(("user", "allowed"), [(0, True), (1000, False)])
def test_lab_starts_for_every_user(tasks, user, allowed, tmp_path, monkeypatch):
    """Jupyter refuses root, the only user of many a container, unless it is told."""
    (tmp_path / "index.ipynb").touch()
    monkeypatch.setattr(tasks, "LIVE", tmp_path)
    monkeypatch.setattr(tasks, "WORKSPACES", tmp_path / "lab")
    monkeypatch.setattr(tasks.os, "geteuid", lambda: user, raising=False)
    commands = []
    monkeypatch.setattr(tasks, "run", lambda *command: commands.append(command))
    arguments = tasks.parse_arguments(["lab", "--no-browser"])
    arguments.function(arguments)
    assert "jupyterlab" in commands[-1] and ("--allow-root" in commands[-1]) == allowed
    assert f"--LabApp.workspaces_dir={tmp_path / 'lab'}" in commands[-1]
    assert "--LabApp.default_url=/lab/tree/index.ipynb" in commands[-1]


def test_pages_are_all_built_again_when_what_makes_them_changes(tasks, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "ROOT", tmp_path)
    monkeypatch.setattr(tasks, "SITE", tmp_path / "_build" / "html")
    monkeypatch.setattr(tasks, "BUILT", tmp_path / "_build" / "book-built", raising=False)
    script, extension = (tmp_path / "book" / name for name in ("_static/book.js", "_ext/pages.py"))
    for path in (tmp_path / "_config.yml", tmp_path / "_toc.yml", script, extension):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (1e9, 1e9))
    built, code = [], 0

    def build_book(*options):
        tasks.SITE.mkdir(parents=True, exist_ok=True)
        (tasks.SITE / f"page{len(built)}.html").touch()
        built.append(options)
        return code

    monkeypatch.setattr(tasks, "build_book", build_book)

    def options(*given):
        arguments = tasks.parse_arguments(["book", *given])
        try:
            arguments.function(arguments)
        except SystemExit as left:
            assert left.code == code
        return built[-1]

    assert (options(), options(), options("--all")) == (("--all",), (), ("--all",))
    assert [path.name for path in tasks.SITE.iterdir()] == ["page2.html"]
    for path in (script, extension, tmp_path / "_config.yml"):
        assert options() == ()
        later = tasks.BUILT.stat().st_mtime + 1
        os.utime(path, (later, later))
        assert options() == ("--all",)
        os.utime(path, (1e9, 1e9))
    code = 1
    assert options("--all") == options() == ("--all",)  # a build that failed is none
    code = 0
    assert (options(), options()) == (("--all",), ())


def test_students_install_what_runs_chapters_and_no_more():
    text = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
    assert re.findall(r'pip install -e "\.\[(\w+)\]"', text) == ["chapters"]


@pytest.mark.parametrize("processor", [None, pytest.param("nehalem", marks=pytest.mark.nightly)])
def test_a_chapter_alone_passes_where_nothing_is_compiled(tasks, processor, tmp_path):
    """A first call compiles for seconds and says so, and so does a first picture."""
    pytest.importorskip("nbval", reason="needs the extra test")
    if processor and platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("only x86-64 processors can be imitated")
    environment = tasks.imitate(processor) if processor else dict(os.environ)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "S3VM_LIB_QUIET"):
        environment.pop(name, None)
    environment |= {"NUMBA_CACHE_DIR": str(tmp_path), "MPLCONFIGDIR": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-m", ""]
    command += ["-p", "no:cacheprovider", "book/architecture.ipynb"]
    result = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout


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
    assert listed == pages, f"only in _toc.yml, or only in book/: {sorted(listed ^ pages)}"


def test_environment_yml_defers_to_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    packages = environment["dependencies"]
    names = [re.split(r"[=<>]", one)[0] for one in packages if isinstance(one, str)]
    assert names == ["python", "pip"]
    assert packages[-1] == {"pip": ["-c constraints.txt", "-e .[chapters]"]}
    # The versions of constraints.txt belong to one version of Python.
    first = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[0]
    assert f"({packages[0].replace('python=', 'Python ')}, Linux)" in first


def test_binder_starts_what_it_has_compiled():
    """One target for postBuild and start, or each session compiles anew."""
    build, start = ((ROOT / name).read_text(encoding="utf-8") for name in ("postBuild", "start"))
    (target,) = set(re.findall(r"NUMBA_CPU_NAME=\w+", build))
    assert target in start and start.rstrip().endswith('exec "$@"')
    assert all(os.access(ROOT / name, os.X_OK) for name in ("postBuild", "start"))


def test_constraints_only_name_versions_of_known_packages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in ("chapters", "book", "onnx", "test", "bench"):
        wanted += project["optional-dependencies"][extra]
    wanted = {re.match(r"[\w-]+", one).group().lower() for one in wanted} - {"s3vm-lib"}
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[\w.]+", pin) for pin in pins)
    assert wanted <= {pin.split("==")[0].lower().replace("_", "-") for pin in pins}


def test_citation_and_changelog_name_the_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == project["version"]
    assert f"[{project['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_prose_has_one_spelling():
    """British; identifiers and docstrings of the library have the spelling of scikit-learn."""
    pages = [*(ROOT / "book").rglob("*.md"), *ROOT.glob("*.md")]
    texts = {path: path.read_text("utf-8") for path in pages}
    for path in (ROOT / "book").glob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        texts[path] = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    code = re.compile(r"```.*?```|`[^`]*`|\"[^\"]*\"|\]\([^)]*\)", re.DOTALL)
    found = [
        f"{path.relative_to(ROOT)}: {match}"
        for path, text in texts.items()
        for match in re.findall(r"(?i)\b(?:un)?label(?:ed|ing)\b", code.sub("", text))
    ]
    assert found == []


def test_prose_counts_what_an_editor_looks_at(tmp_path):
    page = tmp_path / "page.md"
    clean = "# 7 methods\n\nThe error falls from 4 % to 3 % on 20 draws, with $n = 5$ labels.\n"
    page.write_text(clean + "\n| 1 | 2 | 3 | 4 |\n", encoding="utf-8")
    words, numbers, crowded, avoided = prose.report(page)
    assert (numbers, crowded, avoided) == (3, [], []) and 10 < words < 20
    page.write_text(clean + "\nNobody knows 1, 2, 3 or 4.\n", encoding="utf-8")
    _, numbers, crowded, avoided = prose.report(page)
    assert (numbers, crowded, avoided) == (7, ["Nobody knows 1, 2, 3 or 4."], ["Nobody"])
