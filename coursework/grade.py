"""Grade a submitted notebook, and write what Gradescope reads.

    python coursework/grade.py submission.ipynb results.json [--timeout 600] [--total 3600]

The tests are the cells of the solution in ``coursework/source``, hidden ones included: those in the
submission are replaced by them, and those that are missing are added. Before each test the first
cell runs again, so that a test finds the names that it was written with, whatever the submission
has made of them. A test cell that ends without an error earns its points; of one that does not, the
error is shown, which is the sentence of the check. Answers in words are graded by hand. Of parts to
choose from (``best_of`` in the metadata of the notebook) the one with more points counts.

Instead of a notebook a folder that holds one can be given. What cannot be graded has no points, and
the reason as its output.
"""

import argparse
import asyncio
import json
from collections import Counter
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

SOURCE = Path(__file__).resolve().parent / "source"


def about(cell):
    """nbgrader's metadata of a cell; empty where it has none."""
    return cell.metadata.get("nbgrader", {})


def is_test(cell):
    """Whether a cell is a test that earns points."""
    return bool(about(cell).get("grade") and not about(cell).get("solution"))


def assignment_of(submission):
    """The solution that a submission belongs to, by the ids of its cells."""
    ids = {about(cell).get("grade_id") for cell in submission.cells} - {None}
    shared = {}
    for path in sorted(SOURCE.glob("*/*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        shared[path] = len(ids & {about(cell).get("grade_id") for cell in notebook.cells})
    best = max(shared, key=shared.get)
    if not shared[best]:
        raise ValueError("the submission has no cell of an assignment: were the metadata removed?")
    return nbformat.read(best, as_version=4)


def with_our_tests(submission, solution):
    """The submission with the locked cells of the solution; tests that it lacks come at the end."""
    ours = {about(cell)["grade_id"]: cell for cell in solution.cells if about(cell).get("locked")}
    given = [cell for cell in ours.values() if not is_test(cell)]
    missing, cells = dict(ours), []
    for cell in submission.cells:
        name = about(cell).get("grade_id")
        if name in ours:
            cell = missing.pop(name, None)
            if cell is None:
                continue  # a copy of a test is no second test
        cells.append(cell)
    first = [cell for cell in given if about(cell)["grade_id"] in missing]
    last = [cell for cell in missing.values() if is_test(cell)]
    cells = [*first, *cells, *last]
    for k, cell in enumerate(cells):
        if is_test(cell) and about(cell)["grade_id"] in ours:
            source = "\n\n\n".join([one.source for one in given] + [cell.source])
            cells[k] = nbformat.from_dict({**cell, "source": source})
    merged = nbformat.from_dict({**submission, "cells": cells})
    merged.metadata["kernelspec"] = solution.metadata["kernelspec"]
    return merged


def run(notebook, timeout, folder, total=None):
    """Execute a notebook in place, errors and endless loops included; a note if it did not end."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata.pop("status", None)
    client = NotebookClient(
        notebook,
        timeout=timeout,
        allow_errors=True,
        interrupt_on_timeout=True,
        resources={"metadata": {"path": str(folder)}},
        on_cell_executed=lambda cell, cell_index, execute_reply: cell.metadata.update(
            status=execute_reply["content"]["status"]
        ),
    )

    async def execute():
        try:
            async with asyncio.timeout(total) as limit:
                await client.async_execute()
        except (DeadKernelError, TimeoutError) as error:
            if limit.expired():
                return f"Stopped after {total:g} seconds, cells after that were not run."
            return f"The kernel died, cells after that were not run: {error}"
        return ""

    return asyncio.run(execute())


def failure(cell):
    """Why a test failed, in one line; empty if it passed."""
    if cell.metadata.get("status") == "ok":
        return ""
    for output in cell.outputs:
        if output.output_type == "error":
            if output.ename == "KeyboardInterrupt":
                return "stopped, as a cell has a time limit: is there a loop that does not end?"
            lines = output.evalue.strip().splitlines()
            return f"{output.ename}: {lines[0] if lines else ''}"
    return "was not run, or did not end"


def grade(submission, solution, timeout=600, folder=".", total=None):
    """What Gradescope's autograder reads.

    Parameters
    ----------
    submission, solution : NotebookNode
    timeout : float, default=600
        Seconds that a cell may take.
    folder : str, default="."
        Where the notebook is run.
    total : float, default=None
        Seconds for the whole notebook; None for no limit.

    Returns
    -------
    dict
        ``score``, ``output``, one entry of ``tests`` for each test cell, and in ``extra_data`` the
        ``max_score`` of all.
    """
    merged = with_our_tests(submission, solution)
    return points_of(merged, solution, run(merged, timeout, folder, total))


def points_of(merged, solution, note=""):
    """The result of `grade`, from a notebook with our tests that has been run."""
    parts = solution.metadata.get("coursework", {}).get("best_of", [])
    run = {about(cell).get("grade_id"): cell for cell in merged.cells}
    tests, scored, most, by_hand = [], Counter(), Counter(), Counter()
    for cell in solution.cells:
        if about(cell).get("grade") and about(cell).get("solution"):
            by_hand[part_of(cell, parts)] += about(cell)["points"]
    for cell in filter(is_test, solution.cells):  # those that are expected, whatever was run
        found = run.get(about(cell)["grade_id"])
        points = about(cell)["points"]
        error = "the test is missing in what was run" if found is None else failure(found)
        score = 0 if error else points
        tests.append(
            {
                "name": about(cell)["grade_id"],
                "score": score,
                "max_score": points,
                "status": "failed" if error else "passed",
                "output": error or "passed",
            }
        )
        scored[part_of(cell, parts)] += score
        most[part_of(cell, parts)] += points
    counted = [""]
    if parts:
        counted.append(max(parts, key=lambda part: scored[part]))
        note += f" Of the parts to choose from, {counted[-1].rstrip('-')} counts."
    note += f" {sum(by_hand[part] for part in counted)} more points are given by hand."
    return {
        "score": sum(scored[part] for part in counted),
        "tests": tests,
        "output": note.strip(),
        "extra_data": {"max_score": sum(most[part] for part in counted)},
    }


def part_of(cell, parts):
    """The part to choose that a cell belongs to, by the beginning of its id; "" for none."""
    return next((part for part in parts if about(cell)["grade_id"].startswith(part)), "")


def notebook_in(path):
    """The notebook itself, or the only one in a folder; what systems hide does not count."""
    if not path.is_dir():
        return path
    found = [
        one
        for one in sorted(path.rglob("*.ipynb"))
        if not any(part.startswith((".", "__")) for part in one.relative_to(path).parts)
    ]
    if len(found) != 1:
        names = ", ".join(one.name for one in found) or "none"
        raise ValueError(f"one notebook (.ipynb) must be submitted, got {names}")
    return found[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("submission", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--timeout", type=float, default=600, help="seconds for a cell")
    parser.add_argument("--total", type=float, default=3600, help="seconds for the notebook")
    arguments = parser.parse_args()
    try:
        path = notebook_in(arguments.submission)
        submission = nbformat.read(path, as_version=4)
        solution = assignment_of(submission)
    except (ValueError, nbformat.ValidationError) as error:
        results = {"score": 0, "tests": [], "output": f"Not graded: {error}"}
    else:
        folder = path.resolve().parent
        results = grade(submission, solution, arguments.timeout, folder, arguments.total)
    results_text = json.dumps(results, indent=1, ensure_ascii=False)
    arguments.results.write_text(results_text + "\n", encoding="utf-8")
    most = results.get("extra_data", {}).get("max_score", 0)
    print(f"{results['score']} of {most} points; {arguments.results}")


if __name__ == "__main__":
    main()
