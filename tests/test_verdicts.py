"""Verdicts of the book: their rules, and that each tells what it compares with what."""

import base64
import csv
import io
import itertools
import re

import numpy as np
import pytest

import s3vm_book
from s3vm_book import Basis, Verdict, gkm, il, qn, rules, tables, tsg, verdicts

pytestmark = pytest.mark.interface

SAME = Basis("same: a", "same: b", "same: c", "same: d", "rule")


@pytest.fixture
def shown(monkeypatch):
    """The HTML that is displayed."""
    texts = []
    monkeypatch.setattr("IPython.display.display", lambda one: texts.append(one.data))
    return texts


@pytest.fixture(scope="module")
def groups():
    return verdicts.all_verdicts()


def test_every_group_of_verdicts_is_a_group_of_its_own(groups):
    seen = {}
    for name, found in groups.items():
        key = repr(found)
        assert key not in seen, f"{name} has the verdicts of {seen.get(key)}"
        seen[key] = name


def test_agreement_is_a_test_of_two_means_with_a_cap_on_our_own_error():
    noise = np.array([-1.0, 1.0] * 5)  # standard error 1.054 / √10 = 1/3
    assert s3vm_book.agreement(10 + noise, (10.6, 0.0)) == "reproduced"
    assert s3vm_book.agreement(10 + noise, (10.7, 0.0)) == "ours lower"
    assert s3vm_book.agreement(10 + noise, (9.3, 0.0)) == "ours higher"
    assert (
        s3vm_book.agreement(10 + noise, (10.7, 1.1)) == "reproduced"
    )  # their error counts as well
    assert s3vm_book.agreement(10 + noise, (10.7, 1.1), spread="none") == "ours lower"
    assert s3vm_book.agreement(10 + 4.4 * noise, (10.0, 0.0)) == "reproduced"
    assert s3vm_book.agreement(10 + 4.6 * noise, (10.0, 0.0)) == "not resolved"
    assert s3vm_book.agreement(10 + 50 * noise, (90.0, 50.0)) == "not resolved"


def test_counts():
    assert rules.counted(3, 3) == "reproduced" and rules.counted(0, 3) == "not reproduced"
    assert rules.counted(2, 3, "sets") == "in 2 of 3 sets" and rules.counted(0, 0) == "not run"


@pytest.mark.parametrize("side", rules.SIDES)
def test_where_one_side_differs_there_is_no_verdict(side):
    assert Verdict("", "", "", "reproduced", SAME).verdict == "reproduced"
    other = SAME._replace(**{side: "differs: something"})
    assert Verdict("", "", "", "reproduced", other).verdict == "not comparable"


def test_every_verdict_tells_method_rows_settings_accounting_and_rule(groups):
    for one in itertools.chain.from_iterable(groups.values()):
        assert one.place and one.claim and one.ours, one
        for side in rules.SIDES:
            text = getattr(one.basis, side)
            assert text.startswith(("same", "differs")) and len(text) > 5, (one.place, side)
        assert one.basis.rule and one.verdict, one


def test_no_noise_counts_as_a_success(groups):
    cells = [*gkm.tables_23().values(), *gkm.table_4().values(), *gkm.table_5().values()]
    for draw in qn.DRAWS:
        cells += [*qn.table_2(draw).values()]
    for one in cells:
        if one.verdict == "reproduced":
            ours, spread = map(float, one.ours.split("±"))
            theirs = float(one.claim.split("±")[0])
            n = 10 if "±" in one.claim else 1
            assert 2 * spread / np.sqrt(n) <= rules.RESOLUTION + 0.1, one
            if n == 1:
                assert abs(ours - theirs) <= rules.RESOLUTION + 0.1, one


def test_selections_of_others_and_short_protocols_are_not_compared():
    assert gkm.FULL.comparable and not gkm.SHORT.comparable and not gkm.PEERS.comparable
    assert not any(gkm._on(gkm.FULL, name).comparable for name in gkm.OWN)
    for (_, name, *_), one in gkm.tables_23().items():
        if name in gkm.OWN or name == "covtype":
            assert one.verdict in ("not comparable", "not run"), one
    assert {one.verdict for one in gkm.table_5().values()} <= {"not comparable", "not run"}
    for column in qn.COLUMNS:
        assert all(one.verdict == "not comparable" for one in qn.baselines_2(column).values())


def test_a_constant_answer_reproduces_nothing():
    full = gkm.results_of("gkm_full", "set", "hidden", "loss", "p")
    constant = [key for key, result in full.items() if result["f1"] == 0]
    assert constant
    for name, hidden, loss, p in constant:
        verdict = gkm.tables_23()[round(100 * hidden), name, loss, p].verdict
        assert verdict in ("larger class", "ours lower", "ours higher", "not resolved")


def test_one_rule_for_ties_and_all_counts_of_table_2():
    counts = qn.counts_2()
    assert set(counts) == set(itertools.product(qn.DRAWS, qn.TIES))
    assert all(len(words) == 33 for words in counts.values())
    for draw in qn.DRAWS:
        shown = [one.word for one in qn.table_2(draw).values()]
        assert shown == counts[draw, "cv_ties"]


def test_one_size():
    assert il.one_size([10, 1], [29, 1]) and not il.one_size([10, 1], [32, 1])
    assert il.one_size([10, 60], [32, 1])  # within two standard errors
    assert il.one_size([0, 0], [0.2, 0]) and not il.one_size([0, 0], [0.25, 0])


def test_reached():
    curve = {"iterations": [1, 2, 4, 8], "error": [9.0, 5.4, 5.0, 5.2]}
    assert tsg.reached(curve) == 2 and tsg.reached(curve, within=0.1) == 4


def test_a_digest_changes_with_a_result_and_not_with_its_date(tmp_path, monkeypatch):
    import json

    (tmp_path / "results").mkdir()
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    rows = [{"row": {"n": 1}, "result": {"error": 2.0}, "provenance": {"date": "today"}}]

    def digest():
        text = json.dumps({"rows": rows})
        (tmp_path / "results" / "toy.json").write_text(text, encoding="utf-8")
        return s3vm_book.digest("toy")

    first = digest()
    rows[0]["provenance"]["date"] = "tomorrow"
    assert digest() == first
    rows[0]["result"]["error"] = 2.1
    assert digest() != first


def test_an_unknown_table_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"name='missing' is no table in results; .*qn_table2"):
        s3vm_book.stored("missing")
    with pytest.raises(ValueError, match=r"name='missing' is no table in paper; .*programs"):
        s3vm_book.printed("missing")


def test_a_finer_start_counts_minima_and_iterations(monkeypatch):
    def part(objective, *means):
        kinds = zip(("labeled", "unlabeled"), means, strict=True)
        counts = {kind: {"iterations": [m, 1.0], "changing": [m / 4, 1.0]} for kind, m in kinds}
        return {"objective": objective, **counts}

    fits = [
        {**part(10.0, 2.0, 4.0), "finer": part(10.0, 2.0, 4.0)},
        {**part(10.0, 2.0, 0.0), "finer": part(10.1, 6.0, 3.0)},
        {**part(10.0, 1.0, 1.0), "finer": part(10.0 + 1e-8, 1.0, 5.0)},
    ]
    monkeypatch.setattr(il, "stored", lambda name: [{"result": fit} for fit in fits])
    assert il.finer_start() == (3, 1, 3.0, 1, 21.0, 5.25)


def test_what_a_page_says_once_is_left_out_below_its_verdicts(shown):
    open_rows = SAME._replace(rows="same sets; the scaling is not stated", rule="smaller")
    other = open_rows._replace(method="differs: a reconstruction")
    found = [Verdict("Fig. 1", "a", "b", "reproduced", basis) for basis in (open_rows, other)]
    s3vm_book.show_verdicts(found)
    s3vm_book.show_verdicts(found, known=("rows",))
    _, table, _, lines = shown
    assert table.count("the scaling is not stated") == 2 and "scaling" not in lines
    for below in (table, lines):
        assert below.count("smaller") == 2 and below.count("a reconstruction") == 1


def test_a_table_behind_a_link_is_the_table(shown):
    s3vm_book.offer_table(["set", "error"], iter([["a, b", 1.5], ["µ", 2]]), "errors")
    link = r'download="errors.csv" href="data:text/csv;charset=utf-8;base64,([^"]*)"'
    text = base64.b64decode(re.search(link, shown[0])[1]).decode("utf-8")
    rows = list(csv.reader(io.StringIO(text)))
    assert rows == [["set", "error"], ["a, b", "1.5"], ["µ", "2"]]
    assert "All 2 rows" in shown[0]
