import hashlib
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / "benchmarks").is_dir():
    pytest.skip("the benchmarks are not part of an installed package", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from benchmarks import harness, instances, run  # noqa: E402

pytestmark = pytest.mark.interface


def _digest(arrays):
    """Checksum of arrays rounded to 1e-6: libraries of elementary functions differ in last bits."""
    digest = hashlib.sha256()
    for a in arrays:
        if sp.issparse(a):
            a = sp.csr_matrix(a, copy=True)
            a.sort_indices()
            for index in (a.indices, a.indptr):
                digest.update(np.ascontiguousarray(index, dtype="<i8").tobytes())
            a = a.data
        scaled = np.rint(np.asarray(a, dtype=float) * 1e6) + 0.0
        digest.update(np.ascontiguousarray(scaled, dtype="<i8").tobytes())
    return digest.hexdigest()[:16]


@pytest.mark.parametrize(
    ("name", "arguments", "options", "parts", "digest"),
    [
        ("mixture20", (50, 200, 100), {}, 6, "56d9acc89f7c4fee"),
        ("mixture20", (2000, 0, 2000), {}, 6, "d1ffe73715215ef8"),
        ("mixture20", (50, 2000, 0), {"seed": 9}, 6, "18dbc8f3058485fc"),
        ("bag_of_words", (2000,), {}, 6, "69fe46a093ae3ee8"),
        ("bag_of_words", (2000,), {"seed": 2, "n_test": 100}, 6, "fae85aa754cad21d"),
        ("gaussians", ("G2C",), {}, 6, "8a295a9eb1190b83"),
        ("gaussians", ("G2C", 29), {"stratified": True}, 6, "91e8e6e7b5337bf3"),
        ("gaussians", ("G4C", 3), {"n_labeled": 50}, 6, "4ae3e0709801b696"),
        ("gaussians", ("G4C", 3), {"stratified": True}, 6, "290a0a94d9ffb982"),
        ("moons", (2000,), {}, 4, "a8379e177dee8927"),
        ("moons", (400,), {"seed": 4, "noise": 0.15, "per_class": 1}, 4, "b20169dcbb358d68"),
    ],
)
def test_instances_are_the_agreed_numbers(name, arguments, options, parts, digest):
    instance = getattr(instances, name)(*arguments, **options)
    assert _digest(instance[:parts]) == digest
    assert all(len(part) == 0 for part in instance[parts:])


def test_training_part_of_an_instance():
    instance = instances.mixture20(10, 20, 5)
    X, y = instance.training()
    np.testing.assert_array_equal(X[:10], instance.X_labeled)
    np.testing.assert_array_equal(y, np.r_[instance.y_labeled, np.full(20, -1)])
    X, _ = instances.bag_of_words(300, n_features=400, n_test=10).training()
    assert isinstance(X, sp.csr_matrix) and X.shape == (300, 400)


@pytest.fixture
def toy_table(monkeypatch):
    data = []

    def measure(n):
        if n == 3:
            raise RuntimeError("no memory")
        if n == 4 and not data:
            raise FileNotFoundError("the set is not at hand")
        return {"square": n * n}

    module = types.ModuleType("benchmarks.tables.toy", "A toy.\n\nProtocol of the toy.")
    module.ROWS, module.measure, module.data = [{"n": n} for n in range(5)], measure, data
    real = harness.table
    monkeypatch.setattr(harness, "table", lambda name: module if name == "toy" else real(name))
    monkeypatch.setattr(harness, "tables", lambda: ["toy"])
    for name in run.THREADS:
        monkeypatch.setenv(name, "1")
    return module


def test_rows_are_stored_in_order_resumed_and_replaced(toy_table, tmp_path, capsys):
    folder = ["--results", str(tmp_path)]
    assert run.main(["toy", "--rows", "2", "0", *folder]) == 0
    assert [e["row"]["n"] for e in harness.read("toy", tmp_path)] == [0, 2]
    assert run.main(["toy", *folder]) == 1  # row 3 fails, the others are measured
    printed = capsys.readouterr()
    assert "RuntimeError: no memory" in printed.err
    assert 'row 4 {"n": 4} not run: the set is not at hand\n' in printed.err
    assert 'row 0 {"n": 0}' in printed.out
    toy_table.data.append("now it is")
    assert run.main(["toy", *folder]) == 1
    entries = harness.read("toy", tmp_path)
    assert [e["result"]["square"] for e in entries] == [0, 1, 4, 16]
    assert {"date", "processor", "threads", "versions", "sources"} <= set(entries[0]["provenance"])
    toy_table.measure = lambda n: {"square": -1}
    run.main(["toy", "--rows", "0-1", "--again", *folder])
    assert [e["result"]["square"] for e in harness.read("toy", tmp_path)] == [-1, -1, 4, 16]
    stored = json.loads((tmp_path / "toy.json").read_text(encoding="utf-8"))
    assert stored["protocol"] == "A toy. Protocol of the toy."
    assert [file.name for file in tmp_path.iterdir()] == ["toy.json"]
    capsys.readouterr()
    run.main(["toy", "--show", *folder])
    assert '3 {"n": 3} (not measured)' in capsys.readouterr().out
    run.main(["--list", *folder])
    assert capsys.readouterr().out.split() == "toy 4 of 5 rows A toy.".split()


def test_a_row_tells_the_code_that_measured_it(toy_table, tmp_path, monkeypatch, capsys):
    run.main(["toy", "--rows", "0-2", "--results", str(tmp_path)])
    first = harness.read("toy", tmp_path)[0]["provenance"]
    assert first["sources"] == harness.source_hash("toy") and first["commit"]
    assert first["load"] >= 0 and first["minutes"] >= 0
    toy_table.measure = lambda n: {"square": -n}
    run.main(["toy", "--rows", "0-2", "--stale", "--results", str(tmp_path)])
    assert [e["result"]["square"] for e in harness.read("toy", tmp_path)] == [0, 1, 4]
    monkeypatch.setattr(harness, "source_hash", lambda name: "other code")
    run.main(["toy", "--rows", "1", "--stale", "--results", str(tmp_path)])
    assert [e["result"]["square"] for e in harness.read("toy", tmp_path)] == [0, -1, 4]


def test_the_hash_follows_code_and_nothing_else(tmp_path, monkeypatch):
    file = tmp_path / "a.py"
    file.write_text('"""Doc."""\nx = 1  # why\n\n\ndef f():\n    """Doc."""\n    return x\n')
    code = harness._code(file)
    file.write_text('"""Other."""\n\nx = 1\n\n\ndef f():\n    """No."""\n    return x\n')
    assert harness._code(file) == code
    file.write_text(file.read_text().replace("x = 1", "x = 2"))
    assert harness._code(file) != code
    names = [f.name for f in harness._imported(ROOT / "benchmarks" / "tables" / "il_fig3.py")]
    assert names == ["il_paper.py", "il_fig3.py", "il_tables23.py"]
    assert harness.source_hash("il_fig3") != harness.source_hash("qn_fig4")
    seen = []
    monkeypatch.setattr(harness, "_code", lambda file: seen.append(file) or "")
    harness.source_hash.__wrapped__("il_fig3")
    folders = {file.parts[-2] for file in seen}
    assert "path_following" in folders and not folders & {"s3vm_book", "reference"}


def test_rows_that_are_measured_again(toy_table, monkeypatch):
    from benchmarks.tables import measured_again

    def stored(name):
        assert name == "toy"
        result = {"square": 4, "names": ["a", 1.5], "cpu_ms": 3.0, "of": {"memory_mb": 7}}
        minutes = {0: None, 1: 0.2, 2: 1.4, 3: 1.6}
        return [
            {"row": {"n": n}, "result": {**result, "square": n * n}, "provenance": {"minutes": m}}
            for n, m in minutes.items()
        ]

    monkeypatch.setattr(harness, "read", stored)
    again = measured_again.chosen("toy")
    assert sorted(entry["row"]["n"] for entry in again) == [0, 1, 2]  # not the one that is dear
    assert again == measured_again.chosen("toy")
    now = {"cpu_ms": 9.0, "names": ["a", 1.5], "of": {}, "more": 1}
    toy_table.measure = lambda n: {**now, "square": n * n}
    found = measured_again.measure("toy")
    assert [found[key] for key in ("rows", "equal", "numbers", "differ")] == [3, 3, 9, 0]
    toy_table.measure = lambda n: {**now, "square": n + n, "names": ["b", 1.25]}
    found = measured_again.measure("toy")
    assert [found[key] for key in ("rows", "equal", "numbers", "differ")] == [3, 0, 9, 7]
    assert [line["most"] for line in found["lines"]] == 3 * [["names[0]", "a", "b"]]
    toy_table.measure = lambda n: {"square": n + n, "names": ["a"]}
    lines = {line["row"]["n"]: line for line in measured_again.measure("toy")["lines"]}
    assert lines[1]["most"] == ["names[1]", 1.5, None] and lines[1]["differ"] == 2
    toy_table.measure = lambda n: {"square": n + n, "names": ["a", 1.0]}
    lines = {line["row"]["n"]: line for line in measured_again.measure("toy")["lines"]}
    assert lines[1]["most"] == ["square", 1, 2] and lines[2]["most"] == ["names[1]", 1.5, 1.0]


def test_results_come_from_a_committed_tree(toy_table, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness, "changes", lambda: [" M s3vm_lib/svm.py"])
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    assert run.main(["toy", "--rows", "0"]) == 1
    assert "M s3vm_lib/svm.py" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match=r"uncommitted:  M s3vm_lib/svm\.py"):
        harness.write("toy", {"n": 0}, {}, tmp_path)
    assert not list(tmp_path.iterdir())
    assert run.main(["toy", "--rows", "0", "--results", str(tmp_path / "elsewhere")]) == 0
    stored = harness.read("toy", tmp_path / "elsewhere")
    assert stored[0]["provenance"]["commit"].endswith("+")


def test_without_a_repository_nothing_is_stored(monkeypatch, tmp_path):
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    with pytest.raises(RuntimeError, match="the commit they belong to"):
        harness.changes()


def test_time_limit_and_bad_arguments(toy_table, tmp_path, capsys):
    assert run.main(["toy", "--seconds", "1e-9", "--results", str(tmp_path)]) == 0
    assert harness.read("toy", tmp_path) == [] and "time is up" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="0 to 4"):
        run.main(["toy", "--rows", "3-7", "--results", str(tmp_path)])
    with pytest.raises(SystemExit):
        run.main([])


def test_a_held_lock_is_reported(toy_table, tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "_LOCK_SECONDS", 0.1)
    (tmp_path / "toy.lock").touch()
    with pytest.raises(TimeoutError, match=r"toy\.lock"):
        harness.write("toy", {"n": 0}, {}, tmp_path)


def test_race_takes_turns_and_reports_medians():
    calls = []
    timings, values = harness.race(
        {"a": lambda: calls.append("a") or 1, "b": lambda: calls.append("b") or 2}, repeats=3
    )
    assert calls == ["a", "b"] * 4 and values == {"a": 1, "b": 2}
    assert len(timings["a"]["cpu_all"]) == 3
    assert timings["a"]["cpu_seconds"] == np.median(timings["a"]["cpu_all"])


def test_statistics_and_digits():
    summary = harness.mean_and_error([1, 2, 3, 6])
    assert summary["mean"] == 3 and summary["median"] == 2.5
    assert summary["standard_error"] == pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 2, rel=1e-3)
    assert harness.digits(0.00123456) == 0.001235


@pytest.mark.parametrize("name", harness.tables())
def test_tables_follow_the_convention(name):
    module = harness.table(name)
    assert len(module.__doc__.strip().splitlines()[0]) <= 90
    keys = [json.dumps(row) for row in module.ROWS]
    assert len(set(keys)) == len(keys) > 0 and callable(module.measure)
    assert [json.loads(key) for key in keys] == module.ROWS
    for entry in harness.read(name):
        assert entry["row"] in module.ROWS
        assert json.loads(json.dumps(entry["result"])) == entry["result"]


def test_unknown_table():
    with pytest.raises(ValueError, match=r"unknown table 'x'; there are .*svm_vs_svc"):
        harness.table("x")


def test_the_command_names_the_tables_when_asked_for_another(capsys, monkeypatch):
    for name in run.THREADS:
        monkeypatch.setenv(name, "1")
    with pytest.raises(SystemExit) as left:
        run.main(["nosuch"])
    assert left.value.code == 2
    assert "unknown table 'nosuch'; there are" in capsys.readouterr().err


def test_the_command_uses_one_thread():
    code = (
        "import sys; from benchmarks import run; run.main(['--list']); "
        "from threadpoolctl import threadpool_info; import numba; "
        "assert numba.config.NUMBA_NUM_THREADS == 1; "
        "assert {p['num_threads'] for p in threadpool_info()} <= {1}"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in run.THREADS},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "svm_vs_svc" in done.stdout
