"""What runs on other people's machines: pinned, and nothing is published before the tests pass."""

from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.interface

FOLDER = Path(__file__).resolve().parents[1] / ".github"
WORKFLOWS = {path.name: path for path in sorted((FOLDER / "workflows").glob("*.yml"))}


def uses(name):
    """The actions and workflows that a workflow uses."""
    for job in yaml.safe_load(WORKFLOWS[name].read_text(encoding="utf-8"))["jobs"].values():
        yield from (one["uses"] for one in [job, *job.get("steps", [])] if "uses" in one)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned_by_hash(name):
    used = list(uses(name))
    assert used
    hashes = [one.partition("@")[2] for one in used if not one.startswith("./")]
    assert [one for one in hashes if len(one) != 40 or set(one) - set("0123456789abcdef")] == []


def writers():
    for name, path in WORKFLOWS.items():
        jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
        for job, content in jobs.items():
            if "write" in (content.get("permissions") or {}).values():
                yield name, job, jobs


def test_what_is_published_has_passed_the_tests():
    found = list(writers())
    assert {name for name, _, _ in found} == {"book.yml", "release.yml"}
    for name, job, jobs in found:
        needed = jobs[job]["needs"]
        assert any(jobs[one].get("uses") == "./.github/workflows/tests.yml" for one in needed), name


@pytest.mark.parametrize("name", WORKFLOWS)
def test_only_a_job_that_publishes_may_write(name):
    workflow = yaml.safe_load(WORKFLOWS[name].read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    missing = [
        job
        for job, content in workflow["jobs"].items()
        if "steps" in content and "timeout-minutes" not in content and not content.get("needs")
    ]
    assert missing == []
