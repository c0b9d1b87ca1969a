"""The assignments: student versions belong to their solutions, which pass; wrong answers do not."""

import ast
import builtins
import copy
import importlib.util
import json
import re
import subprocess
import symtable
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "coursework"
SOURCES = sorted((FOLDER / "source").glob("*/*.ipynb"))
NAMES = [path.stem for path in SOURCES]
SVM = FOLDER.parent / "book" / "svm.ipynb"
POINTS = {
    "messy_file": 14,
    "replication": 9,
    "semi_supervised": 14,
    "smo": 13,
}  # by tests, as the text for teachers says


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make, grade = load("make"), load("grade")


def cell(notebook, name):
    """The cell with a grade_id."""
    return next(c for c in notebook.cells if grade.about(c).get("grade_id") == name)


def code(text):
    return nbformat.v4.new_code_cell(text)


def read(folder, name):
    return nbformat.read(FOLDER / folder / name / f"{name}.ipynb", as_version=4)


# --- Student versions -----------------------------------------------------------------------------


@pytest.mark.interface
def test_there_are_four_assignments():
    assert NAMES == ["messy_file", "replication", "semi_supervised", "smo"]


@pytest.mark.interface
def test_what_is_stored_is_derived_from_the_solutions():
    for path, text in make.released():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run coursework/make.py"
    assert sorted(p.stem for p in (FOLDER / "release").glob("*/*.ipynb")) == NAMES
    command = [sys.executable, FOLDER / "make.py", "--check"]
    assert subprocess.run(command, check=False).returncode == 0


@pytest.mark.interface
@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_a_student_version_tells_nothing_and_keeps_the_tests(path):
    source = nbformat.read(path, as_version=4)
    text = (FOLDER / "release" / path.relative_to(FOLDER / "source")).read_text(encoding="utf-8")
    release = nbformat.reads(text, as_version=4)
    nbformat.validate(source)
    nbformat.validate(release)
    for hidden in ("BEGIN", "END SOLUTION", "HIDDEN"):
        assert hidden not in text
    exercises = [c for c in source.cells if grade.about(c).get("solution")]
    assert text.count("NotImplementedError()") + text.count("YOUR ANSWER HERE") == len(exercises)
    assert len(release.cells) == len(source.cells)
    # Points are those of the text: the rubric's column adds up to 20 with the better part.
    parts = source.metadata.get("coursework", {}).get("best_of", [])
    points = {}
    for c in source.cells:
        if grade.about(c).get("grade"):
            part = grade.part_of(c, parts)
            points[part] = points.get(part, 0) + grade.about(c)["points"]
    assert points[""] + max((points[part] for part in parts), default=0) == 20
    assert len({points[part] for part in parts}) <= 1
    assert all(c.get("outputs", []) == [] for c in source.cells)


def globals_of(table):
    """Global names that a block of code looks up, nested functions included."""
    names = {one.get_name() for one in table.get_symbols() if one.is_global()}
    return names.union(*map(globals_of, table.get_children()))


@pytest.mark.interface
@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_a_test_needs_the_first_cell_and_answers_alone_and_says_what_is_wrong(path):
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    known = set(dir(builtins))
    for c in cells:
        about, table = grade.about(c), symtable.symtable(c.source, "cell", "exec")
        if not grade.is_test(c):
            if not about["grade"]:  # the first cell, and answers that tests call
                defined = (
                    one for one in table.get_symbols() if one.is_assigned() or one.is_imported()
                )
                known |= {one.get_name() for one in defined}
            continue
        tree = ast.parse(c.source)
        function, call = tree.body
        assert isinstance(function, ast.FunctionDef) and ast.unparse(call).endswith("test()")
        assert globals_of(table.get_children()[0]) <= known, about["grade_id"]
        bare = [ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Assert) and not n.msg]
        assert not bare


@pytest.mark.interface
@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_students_meet_public_names_only(path):
    for c in nbformat.read(path, as_version=4).cells:
        if c.cell_type == "code":
            for node in ast.walk(ast.parse(c.source)):
                if isinstance(node, ast.ImportFrom):
                    names = node.module.split(".") + [alias.name for alias in node.names]
                    assert not any(name.startswith("_") for name in names), names


def notebook_of(*cells):
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def raw(text, **about):
    metadata = {"nbgrader": about} if about else {}
    return {"cell_type": "code", "source": text, "metadata": metadata, "outputs": [1]}


@pytest.mark.interface
def test_solutions_and_hidden_tests_are_cut_out():
    solution = raw(
        "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION\n",
        grade=False, solution=True, grade_id="a",
    )  # fmt: skip
    test = raw(
        "assert f(1) == 1\n### BEGIN HIDDEN TESTS\nassert f(2) == 2\n### END HIDDEN TESTS",
        grade=True, solution=False, grade_id="b", points=1,
    )  # fmt: skip
    first, second = make.student_version(notebook_of(solution, test))["cells"]
    body = "def f(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
    assert "".join(first["source"]) == body and first["outputs"] == []
    assert "".join(second["source"]) == "assert f(1) == 1"


@pytest.mark.interface
@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            [raw("### BEGIN SOLUTION\n1", grade=False, solution=True, grade_id="a")],
            "without '### END",
        ),
        (
            [raw("1\n### END SOLUTION", grade=False, solution=False, grade_id="a")],
            "without its partner",
        ),
        ([raw("### BEGIN SOLUTION\n1\n### END SOLUTION")], "markers and metadata"),
        ([raw("1", grade=False, solution=True, grade_id="a")], "markers and metadata"),
        ([raw("1", grade=True, solution=False, grade_id="a")], "must have points"),
        (
            [raw("1", grade=False, solution=False, grade_id="a")] * 2,
            "must be unique, got 'a' twice",
        ),
    ],
)
def test_a_source_with_a_mistake_is_refused(cells, message):
    with pytest.raises(ValueError, match=message):
        make.student_version(notebook_of(*cells))


@pytest.mark.interface
@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_every_section_that_an_assignment_names_exists(path):
    pages = {}
    for page in (FOLDER.parent / "book").glob("*.ipynb"):
        cells = nbformat.read(page, as_version=4).cells
        text = "\n".join(one.source for one in cells if one.cell_type == "markdown")
        title, *sections = re.findall("^#+ (.*)$", text, re.MULTILINE)
        exercises = re.findall(r"^`{3,}\{exercise\} (.*) \(", text, re.MULTILINE)
        pages[title] = sections, exercises
    text = nbformat.read(path, as_version=4).cells[0].source
    (advice,) = re.findall(r"\*\*Read first\.\*\* (.*)", text)
    named, chapter = 0, None
    for title, section in re.findall(r'\*([^*]+)\*|"([^"]+)"', advice):
        if title in pages:
            chapter = pages[title]
        else:  # of the chapter that was named last
            named += 1
            assert (title or section) in chapter[bool(title)], title or section
    assert named >= 3


@pytest.mark.interface
def test_equations_and_statements_that_an_assignment_quotes_exist():
    chapter = "\n".join(one.source for one in nbformat.read(SVM, as_version=4).cells)
    task = read("source", "semi_supervised").cells[5].source
    ((formula, section),) = re.findall(r'formula for \$(.*?)\$ in "(.*?)"', task)
    text = chapter.split(f"### {section}\n")[1].split("\n#")[0]
    assert f":label: svm-conjugate\n{formula} = " in text
    words = cell(read("source", "smo"), "smo-tolerance-words").source
    (name,) = re.findall(r'proposition "(.*?)"', words)
    assert f"{{prf:proposition}} {name}" in chapter


# --- Grading --------------------------------------------------------------------------------------


LONG = {  # twenty draws by plain Python, and the printed grids of a paper
    "semi_supervised": [pytest.mark.slow],
    "replication": [pytest.mark.nightly],
}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=name, marks=LONG.get(name, []))
        for path, name in zip(SOURCES, NAMES, strict=True)
    ],
)
def test_a_students_copy_with_the_solutions_filled_in_has_all_points(path):
    solution, submission = (read(folder, path.stem) for folder in ("source", "release"))
    for ours, theirs in zip(solution.cells, submission.cells, strict=True):
        if grade.about(ours).get("solution"):
            theirs.source = ours.source
    merged = grade.with_our_tests(submission, solution)
    results = grade.points_of(merged, solution, grade.run(merged, 600, FOLDER))
    failed = {test["name"]: test["output"] for test in results["tests"] if test["score"] == 0}
    assert not failed
    assert results["score"] == results["extra_data"]["max_score"] == POINTS[path.stem]
    for c in merged.cells:  # the cells that are graded by hand run too
        if c.cell_type == "code":
            assert grade.failure(c) == "", c.source


@pytest.mark.interface
@pytest.mark.parametrize("name", NAMES)
def test_an_empty_submission_has_none(name, tmp_path):
    path = tmp_path / "submission" / "mine.ipynb"
    path.parent.mkdir()
    path.write_text((FOLDER / "release" / name / f"{name}.ipynb").read_text(encoding="utf-8"))
    hidden = path.parent / ".ipynb_checkpoints"
    hidden.mkdir()
    (hidden / "mine-checkpoint.ipynb").write_text("{}")
    target = tmp_path / "results.json"
    subprocess.run([sys.executable, FOLDER / "grade.py", path.parent, target], check=True)
    results = json.loads(target.read_text(encoding="utf-8"))
    assert (results["score"], results["extra_data"]["max_score"]) == (0, POINTS[name])
    assert all("Error" in test["output"] for test in results["tests"])
    assert f"{20 - POINTS[name]} more points are given by hand." in results["output"]


@pytest.mark.interface
def test_a_wrong_answer_loses_its_points_and_is_told_why():
    solution, submission = read("source", "smo"), read("release", "smo")
    for name in ("smo-gram", "smo-solver", "smo-gap"):
        cell(submission, name).source = cell(solution, name).source
    wrong = cell(submission, "smo-solver")
    wrong.source = wrong.source.replace("return t * beta, b, values", "return t * beta, -b, values")
    # A helper of the student stays; tests that were tampered with, copied or removed do not, and
    # neither does the first cell, nor what its names mean in a test.
    cell(submission, "smo-solver-right").source = "pass"
    submission.cells.append(copy.deepcopy(cell(submission, "smo-gram-test")))
    submission.cells.remove(cell(submission, "smo-gap-test"))
    submission.cells.remove(cell(submission, "smo-setup"))
    other = "assert helper\ncheck_svm, moons, t, K = (lambda *a, **b: True), None, 3, 4\n1 / 0"
    submission.cells.insert(0, code("helper = 1"))
    generous = {"grade": True, "solution": False, "grade_id": "mine", "points": 100}
    submission.cells[0].metadata["nbgrader"] = generous
    submission.cells.insert(submission.cells.index(wrong) + 1, code(other))
    results = grade.grade(submission, solution)
    score = {test["name"]: test["score"] for test in results["tests"]}
    assert score == {
        "smo-gram-test": 2,
        "smo-solver-right": 0,
        "smo-solver-dual": 2,
        "smo-solver-others": 0,
        "smo-gap-test": 3,
    }
    output = next(t["output"] for t in results["tests"] if t["name"] == "smo-solver-right")
    assert output.startswith("AssertionError: sign of the threshold")


# A test that fails, its assignment, and a change of the solution that students of the release,
# without the hidden tests, must be told about with these words.
WRONG = {
    "C is always 2": (
        "smo", "smo-solver-right", "np.maximum(0, C * t)", "np.maximum(0, 2 * t)", "",
    ),
    "the offset is 0 without free rows": (
        "smo", "smo-solver-others", "else (pull[up].max() + pull[down].min()) / 2", "else 0.0",
        "two rows at the bound: threshold",
    ),
    "F is stale": (
        "smo", "smo-solver-dual", "F += step * (K[i] - K[j])", "F += step * K[i]", "F is stale",
    ),
    "half a step": (
        "smo", "smo-solver-dual", "step = (pull[i] - pull[j])", "step = (pull[i] - pull[j]) / 2",
        "that of task 2 (b)?",
    ),
    "twice the step": (
        "smo", "smo-solver-dual", "tol or step_number == max_steps:\n            break\n",
        "tol or step_number == min(max_steps, 2000):\n            break\n        pull = 2 * pull\n",
        "that of task 2 (b)?",
    ),
    "another formula of D": (
        "smo", "smo-solver-dual", "values.append(t @ beta - 0.5", "values.append(t @ beta - 1.0",
        "those of the D of task 2",
    ),
    "the last value is missing": (
        "smo", "smo-solver-dual", "return t * beta, b, values", "return t * beta, b, values[:-1]",
        "from D at alpha",
    ),
    "the mean of the losses": (
        "smo", "smo-gap-test", "(f + b)).sum()", "(f + b)).mean()", "their sum, times C",
    ),
    "half the square": ("smo", "smo-gap-test", "0.5 * beta @ f + C", "beta @ f + C", "its ½"),
    "costs with C = 2": (
        "semi_supervised", "cccp-costs-test", "np.maximum(0, C * t)", "np.maximum(0, 2 * t)", "",
    ),
    "costs with C* = 0.3": (
        "semi_supervised", "cccp-costs-test", "shift + C_star", "shift + 0.3", "",
    ),
    "boxes without a feasible point": (
        "semi_supervised", "cccp-costs-test", "np.where(U, shift - C_star, np.minimum(0, C * t))",
        "np.where(U, shift, np.maximum(0, C * t)) + 0.1", "lo <= mid <= hi must hold, row 0",
    ),
    "J without its offset": (
        "semi_supervised", "cccp-loop-descent", "z = K @ beta + b\n", "z = K @ beta\n", "J",
    ),
    "J with one ramp": (
        "semi_supervised", "cccp-loop-descent", " + np.clip(1 + z[U], 0, 1 - s)", "", "both ramps",
    ),
    "C* from the start": (
        "semi_supervised", "cccp-loop-descent", "C_star if k else 0.0", "C_star",
        "J at the supervised machine",
    ),
    **{
        f"{what}, {test}": ("semi_supervised", f"cccp-loop-{test}", old, new, words)
        for test in ("fixed", "others")
        for what, old, new, words in (
            ("no loop", "if k and np.array_equal(new, delta)", "if k", "not a fixed point"),
            (
                "stopped by J", "if k and np.array_equal(new, delta)",
                "if k and values[-2] - values[-1] < 0.01 * values[-1]", "not a fixed point",
            ),
            ("s = 0", "slopes(z[U], C_star, s)", "slopes(z[U], C_star, 0.0)", "end of the ramp"),
            ("sign(z)", "slopes(z[U], C_star, s)", "C_star * np.sign(z[U])", "end of the ramp"),
            ("the offset is forgotten", "slopes(z[U], ", "slopes(z[U] - b, ", "not a fixed point"),
            (
                "the sign of s", "slopes(z[U], C_star, s)",
                "C_star * np.sign(z[U]) * (np.abs(z[U]) > s)", "end of the ramp",
            ),
        )
    },
    "overflow": (
        "semi_supervised", "qn-objective-test", "np.logaddexp(0, margin)",
        "np.log(1 + np.exp(margin))", "overflow",
    ),
    "objective with C = 2": (
        "semi_supervised", "qn-objective-test", "a[L] = -C *", "a[L] = -2 *", "",
    ),
    "the mean of the means is forgotten": (
        "semi_supervised", "qn-centre-test", " + m @ row", "", "",
    ),
    "the ratio is forgotten": ("semi_supervised", "qn-fit-test", ", 2 * ratio - 1", ", 0.0", ""),
    "the last stage is 0.3": ("semi_supervised", "qn-fit-test", "0.3, 1.0)", "0.3)", ""),
    "stages of its own": (
        "semi_supervised", "qn-fit-test", "for stage in stages", "for stage in (0.0, 1.0)",
        "stages=(0, 0.1) should end",
    ),
    "α on C too": (
        "semi_supervised", "qn-fit-test", "(Kc, t, C, stage", "(Kc, t, stage * C, stage",
        "stages=(0, 0.1) should end",
    ),
    "the kernel is not centred": (
        "semi_supervised", "qn-fit-test", "Kc, c, b = centred(K, t),", "Kc, c, b = K,", "another K",
    ),
    "labels −1 and +1 for SVM": (
        "semi_supervised", "semi-experiment-test",
        ".fit(K[np.ix_(L, L)], (t[L] + 1) / 2)",
        ".fit(K, t); machine.decision_function = lambda Z, f=machine.decision_function: f(K[U])",
        "the supervised error of draw 0 is 20.2 %, yours",
    ),
    "one draw twenty times": (
        "semi_supervised", "semi-experiment-test", "moons(seed)", "moons(1)", "is the seed used?",
    ),
    "another partition each time": (
        "replication", "replication-partition-test", "default_rng(seed)", "default_rng()",
        "the same seed",
    ),
    "a side is forgotten": (
        "replication", "replication-verdict-test", "for side in SIDES", "for side in SIDES[1:]",
        "method differs",
    ),
    "every run decides": (
        "replication", "replication-verdict-test", "if 2 * error > 3", "if False", "'not resolved'",
    ),
    "samples occur twice": (
        "messy_file", "messy-read-test", "return list(rows),",
        "return list(rows) + list(rows)[:9],", "a sample that occurs twice",
    ),
    "areas in two units": (
        "messy_file", "messy-read-test", "100 if", "1 if", "area error: a tenth of the values",
    ),
    "the order of the file": (
        "messy_file", "messy-read-test", "in sorted(row)", "in row", "alphabetical",
    ),
    "pending is a class": (
        "messy_file", "messy-read-test", 'label if label in ("benign", "malignant")',
        "label if label", "diagnoses must be benign and malignant",
    ),
    "zero for what is missing": (
        "messy_file", "messy-read-test", "np.nan if cell in", "0.0 if cell in", "is missing",
    ),
    "the mean of the folds": (
        "messy_file", "messy-compare-test", "int(np.sum(predicted == y[fold]))",
        "np.mean(predicted == y[fold]) / 4", "the sum over the folds",
    ),
    "a normal interval": (
        "messy_file", "messy-interval-test",
        "stats.beta.ppf([0.025, 0.975], right + 0.5, total - right + 0.5)",
        "right / total + np.array([-2, 2]) * np.sqrt(right * (total - right) / total**3)",
        "leave room for some errors",
    ),
    "everything is benign": (
        "messy_file", "messy-label-test", "machine.predict(X_new)", '["benign"] * len(X_new)',
        "% of the new samples are right",
    ),
}  # fmt: skip


def answers(solution, test, old, new):
    """What the first cell and the answers define, with one change."""
    names, changed = {}, 0
    for c in solution.cells:
        about = grade.about(c)
        if c.cell_type == "code" and not about["grade"]:
            changed += c.source.count(old)
            exec(c.source.replace(old, new), names)
    assert changed == 1
    if test == "semi-experiment-test":  # the mistakes are not in what twenty draws fit for long
        names["fit"] = lambda K, t, *_: (
            np.linalg.solve(names["centred"](K, t) + np.eye(len(t)), t), 0.0
        )  # fmt: skip
    return names


@pytest.mark.interface
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # some of the mistakes divide by zero
@pytest.mark.parametrize(("name", "test", "old", "new", "words"), WRONG.values(), ids=WRONG)
def test_the_visible_tests_tell_a_student_what_is_wrong(name, test, old, new, words):
    solution, release = read("source", name), read("release", name)
    names = answers(solution, test, old, new)
    with pytest.raises((AssertionError, ValueError)) as error:
        exec(cell(release, test).source, names)
    assert words in str(error.value)
    assert len(str(error.value)) > 20


# The same for mistakes that only the hidden tests notice.
HIDDEN = {
    "Σ t α = 0 is forgotten": (
        "smo", "smo-gap-test", " or abs(beta.sum()) > size", "", "a constraint too",
    ),
    "an absolute tolerance": (
        "smo", "smo-gap-test", "1e-6 * np.abs(alpha).max()", "1e-6", "should be infinite",
    ),
    "each stage begins at 0": (
        "semi_supervised", "qn-fit-test", "c = minimize(objective, c,",
        "c = minimize(objective, 0 * c,", "does each stage begin",
    ),
    "the default C for SVM": (
        "semi_supervised", "semi-experiment-test", "SVM(C=C, ", "SVM(",
        "the supervised error of draw 3",
    ),
    "tested on the training rows": (
        "replication", "replication-partition-test",
        "order[n_labeled + n_unlabeled :][:n_test]", "order[:n_test]", "training rows too",
    ),
    "capitals and spaces": (
        "messy_file", "messy-read-test", ".strip().lower()", "", "have a diagnosis",
    ),
    "the last copy decides": (
        "messy_file", "messy-read-test", "labels.get(name) or known", "known", "the other copy",
    ),
    "the first copy decides": (
        "messy_file", "messy-read-test", "labels.get(name) or known", "labels.get(name, known)",
        "the other copy",
    ),
    "columns in the order of the file": (
        "messy_file", "messy-read-test", "in sorted(row)",
        'in (sorted(row) if "samples" in str(path) else row)', "in the same order",
    ),
    "the labels of the training rows": (
        "messy_file", "messy-compare-test", "machine.fit(X[training], y[training])",
        "machine.fit(X, y)", "held out from the machine",
    ),
    "a quantile of five per cent": (
        "messy_file", "messy-interval-test", "[0.025, 0.975]", "[0.05, 0.95]", "2.5 % on each side",
    ),
    "n in the denominator": (
        "replication", "replication-verdict-test", "ddof=1", "ddof=0", "m − 1 below",
    ),
    "s for its error": (
        "replication", "replication-verdict-test", " / np.sqrt(len(values))", "", "2 s / √m",
    ),
    "the printed s for its error": (
        "replication", "replication-verdict-test", "printed[1] / np.sqrt(10)", "printed[1]",
        "s / √10",
    ),
    "one error for two": (
        "replication", "replication-verdict-test", "<= 2 * np.hypot", "<= np.hypot", "an error too",
    ),
    "our error alone": (
        "replication", "replication-verdict-test", "np.hypot(error, printed[1] / np.sqrt(10))",
        "error", "an error too",
    ),
    "s above 3": (
        "replication", "replication-verdict-test", "2 * error > 3", "np.std(values, ddof=1) > 3",
        "2 s / √m",
    ),
    "ten for m": (
        "replication", "replication-verdict-test", "np.sqrt(len(values))", "np.sqrt(10)",
        "not always ten",
    ),
    "a sum of errors": (
        "replication", "replication-verdict-test", "np.hypot(error, printed[1] / np.sqrt(10))",
        "(error + printed[1] / np.sqrt(10))", "as squares",
    ),
    "the word same alone": (
        "replication", "replication-verdict-test", '.startswith("same")', ' == "same"',
        "begins so",
    ),
    "the word same anywhere": (
        "replication", "replication-verdict-test", 'basis[side].startswith("same")',
        '"same" in basis[side]', "begins so",
    ),
}  # fmt: skip


@pytest.mark.interface
@pytest.mark.parametrize(("name", "test", "old", "new", "words"), HIDDEN.values(), ids=HIDDEN)
def test_the_hidden_tests_notice_what_the_visible_ones_let_pass(name, test, old, new, words):
    solution, release = read("source", name), read("release", name)
    names = answers(solution, test, old, new)
    exec(cell(release, test).source, names)
    with pytest.raises(AssertionError) as error:
        exec(cell(solution, test).source, names)
    assert words in str(error.value)


def tiny(best_of=()):
    """A solution with two parts to choose from."""
    cells = []
    for name, points, solution in (
        ("a-t", 2, False),
        ("b-t", 3, False),
        ("c-t", 1, False),
        ("a-p", 4, True),
    ):
        one = code(f"assert '{name}' in done")
        one.metadata["nbgrader"] = {
            "grade": True,
            "solution": solution,
            "locked": not solution,
            "grade_id": name,
            "points": points,
        }
        cells.append(one)
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata |= {
        "kernelspec": {"name": "python3", "display_name": "x", "language": "python"}
    }
    notebook.metadata["coursework"] = {"best_of": list(best_of)}
    return notebook


@pytest.mark.interface
@pytest.mark.parametrize(
    ("done", "score", "most", "words"),
    [
        (("a-t", "b-t", "c-t"), 4, 4, "b counts. 0 more points"),
        (("a-t", "c-t"), 3, 3, "a counts. 4 more points"),
        ((), 0, 3, "a counts"),
    ],
)
def test_the_better_part_counts(done, score, most, words):
    solution = tiny(["a-", "b-"])
    submission = copy.deepcopy(solution)
    submission.cells.insert(0, code(f"done = {done!r}"))
    results = grade.grade(submission, solution)
    assert (results["score"], results["extra_data"]["max_score"]) == (score, most)
    assert words in results["output"]
    assert grade.grade(submission, tiny())["extra_data"]["max_score"] == 6


@pytest.mark.interface
def test_a_test_that_was_not_run_counts_as_failed():
    solution = tiny()
    merged = copy.deepcopy(solution)
    merged.cells.insert(0, code("done = ('a-t', 'b-t', 'c-t')"))
    assert grade.run(merged, 60, ".") == ""
    assert grade.points_of(merged, solution)["score"] == 6
    merged.cells[1].metadata["nbgrader"]["points"] = 100  # the solution says what a test is worth
    del merged.cells[2]
    results = grade.points_of(merged, solution)
    assert (results["score"], results["extra_data"]["max_score"]) == (3, 6)
    assert [test["status"] for test in results["tests"]] == ["passed", "failed", "passed"]
    assert "missing" in results["tests"][1]["output"]


@pytest.mark.interface
def test_endless_loops_and_dead_kernels_end():
    solution = tiny()
    submission = copy.deepcopy(solution)
    submission.cells.insert(0, code("done = ('a-t', 'b-t', 'c-t')"))
    submission.cells.insert(1, code("while True:\n    pass"))
    assert grade.grade(submission, solution, timeout=3)["score"] == 6
    submission.cells[1] = code("import os\nos._exit(1)")
    results = grade.grade(submission, solution)
    assert results["score"] == 0 and "The kernel died" in results["output"]
    assert all(test["output"] == "was not run, or did not end" for test in results["tests"])


@pytest.mark.interface
def test_a_loop_in_a_test_costs_that_test_and_what_cannot_be_interrupted_all_that_follow():
    solution = tiny()
    submission = copy.deepcopy(solution)
    loop = """
import time
class Done:
    def __contains__(self, name):
        while name == "b-t":
            {body}
        return True
done = Done()
"""
    submission.cells.insert(0, code(loop.format(body="time.sleep(0.01)")))
    results = grade.grade(submission, solution, timeout=1)
    assert [test["score"] for test in results["tests"]] == [2, 0, 1]
    assert "a loop that does not end?" in results["tests"][1]["output"]
    stubborn = """
            try:
                time.sleep(0.01)
            except BaseException:
                pass"""
    submission.cells[0] = code(loop.format(body=stubborn.strip()))
    results = grade.grade(submission, solution, timeout=1, total=5)
    assert [test["score"] for test in results["tests"]] == [2, 0, 0]
    assert results["output"].startswith("Stopped after 5 seconds")


@pytest.mark.interface
def test_what_is_no_submission_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no cell of an assignment"):
        grade.assignment_of(nbformat.v4.new_notebook(cells=[code("1")]))
    with pytest.raises(ValueError, match=r"one notebook .* got none"):
        grade.notebook_in(tmp_path)
    for name in ("a.ipynb", "b.ipynb"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match=r"got a.ipynb, b.ipynb"):
        grade.notebook_in(tmp_path)
    for text in ("{}", "no notebook"):  # Gradescope wants results whatever was submitted
        (tmp_path / "b.ipynb").write_text(text)
        target = tmp_path / "results.json"
        command = [sys.executable, FOLDER / "grade.py", tmp_path / "b.ipynb", target]
        subprocess.run(command, check=True)
        results = json.loads(target.read_text(encoding="utf-8"))
        assert results["score"] == 0 and results["output"].startswith("Not graded: ")
