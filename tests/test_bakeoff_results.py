import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

from s3vm_book import bakeoff, ranking
from s3vm_book import ranking_printed as reference

# Demšar (2006), Table 6: AUC of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on fourteen sets.
AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],  # 0.975 twice, with the ranks 2 and 3
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_ranks_and_statistics_of_the_printed_example():
    found = ranking.friedman(-AUC)
    np.testing.assert_allclose(found.ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    # Printed without the correction for ties: 9.28 and 3.69.
    n, k = AUC.shape
    plain = 12 * n / (k * (k + 1)) * (np.sum(found.ranks**2) - k * (k + 1) ** 2 / 4)
    assert plain == pytest.approx(9.28, abs=0.01)
    assert (n - 1) * plain / (n * (k - 1) - plain) == pytest.approx(3.69, abs=0.01)
    assert found.chi_square > plain and 0.01 < found.p_F < found.p < 0.05
    assert ranking.critical_difference(14, 4) == pytest.approx(2.569 * np.sqrt(20 / 84), abs=1e-3)
    assert ranking.critical_difference(14, 4, 0.1) == pytest.approx(
        2.291 * np.sqrt(20 / 84), abs=1e-3
    )


@pytest.mark.parametrize("digits", [1, 8])
def test_friedman_is_that_of_scipy_with_and_without_ties(digits):
    errors = np.round(np.random.default_rng(0).random((9, 5)) + 0.1 * np.arange(5), digits)
    found, theirs = ranking.friedman(errors), stats.friedmanchisquare(*errors.T)
    assert found.chi_square == pytest.approx(theirs.statistic, rel=1e-12)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-9)
    assert found.p_F == pytest.approx(stats.f.sf(found.F, 4, 32), rel=1e-9)
    assert found.ranks.sum() == pytest.approx(15)


def test_friedman_at_its_ends_and_bad_input():
    same = ranking.friedman(np.ones((4, 3)))
    assert (same.chi_square, same.p) == (0, 1) and same.ranks.tolist() == [2, 2, 2]
    clear = ranking.friedman(np.tile([1.0, 2.0, 3.0], (6, 1)))
    assert clear.F == np.inf and clear.p_F == 0 and clear.chi_square == pytest.approx(12)
    with pytest.raises(ValueError, match=r"2 sets and 3 methods at least, got \(1, 3\)"):
        ranking.friedman([[1, 2, 3]])
    with pytest.raises(ValueError, match="finite"):
        ranking.friedman([[1, 2, 3], [1, np.nan, 3]])


def test_holm_by_hand_and_pairs_by_wilcoxon():
    # Demšar, section 3.2.2: 0.006 · 3; 0.036 · 2 < 0.0720 …; never below the one before.
    np.testing.assert_allclose(ranking.holm([0.02, 0.01, 0.04, 0.03]), [0.06, 0.04, 0.06, 0.06])
    np.testing.assert_allclose(ranking.holm([0.9, 0.6]), [1, 1])
    rng = np.random.default_rng(1)
    errors = rng.random((12, 3)) + [0, 0, 2]
    errors = np.column_stack((errors, errors[:, 0]))
    found = ranking.wilcoxon_holm(errors)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 1)
    assert found[0, 3] == 1 and found[0, 1] > 0.05
    # All twelve differences have one sign: 2 / 2^12; three such pairs, then the others.
    assert found[0, 2] == pytest.approx(6 * 2 / 2**12)
    assert found[1, 2] == pytest.approx(6 * 2 / 2**12) == found[2, 3]


def test_groups_are_the_largest_runs_without_a_difference():
    ranks = np.array([3.0, 1.0, 2.0, 4.5])
    alike = np.abs(ranks[:, None] - ranks) < 1.5
    assert ranking.groups(ranks, alike) == [[1, 2], [2, 0]]
    wider = np.abs(ranks[:, None] - ranks) < 2.5
    assert ranking.groups(ranks, wider) == [[1, 2, 0], [0, 3]]
    assert ranking.groups(ranks, np.eye(4, dtype=bool)) == []
    assert ranking.groups(ranks, np.ones((4, 4), dtype=bool)) == [[1, 2, 0, 3]]


def test_the_frontier_of_time_and_error():
    fig, ax = plt.subplots()
    found = ranking.time_and_error(ax, list("abcde"), [1, 2, 3, 0.5, 2], [10, 12, 5, 30, 9])
    assert found == ["d", "a", "e", "c"]
    assert {text.get_text() for text in ax.texts} == set("abcde") and ax.get_xscale() == "log"
    plt.close(fig)


def test_the_ladder_has_a_bar_per_group_and_the_best_on_top():
    fig, ax = plt.subplots()
    ranks = np.array([3.0, 1.0, 2.0, 4.0])
    alike = np.abs(ranks[:, None] - ranks) < 1.5
    ranking.ladder(ax, list("abcd"), ranks, alike, difference=1.5)
    assert [label.get_text() for label in ax.get_yticklabels()] == list("bcad")  # the best on top
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    assert {text.get_text() for text in ax.texts} == {"1.0", "2.0", "3.0", "4.0", "CD = 1.5"}
    bars = [line for line in ax.lines if line.get_linewidth() == 2.5]
    ends = [tuple(np.round(line.get_ydata())) for line in bars]
    assert ends == [(0, 1), (1, 2), (2, 3)]  # b with c, c with a, a with d
    assert len({line.get_xdata()[0] for line in bars}) == 3
    plt.close(fig)


def test_names_beside_the_frontier_do_not_overlap():
    for values in ([5.0, 5.0, 5.0, 1.0], [9.0, 9.1, 8.9, 9.05], [*range(11), 9.5], [3.0]):
        order, places = ranking._apart(values, 0.0, 10.0)
        assert sorted(order) == list(range(len(values)))
        assert np.all(np.diff(np.asarray(values)[order]) >= 0)
        assert np.all(np.diff(places) >= 10 / len(values) - 1e-9)
        assert 0 <= places.min() and places.max() <= 10
    _, places = ranking._apart([1.0, 5.0, 9.0], 0.0, 10.0)
    np.testing.assert_allclose(places, [1, 5, 9])  # with room each stays at its point


def test_the_twin_finds_the_same_ranks_statistics_and_differences():
    rng = np.random.default_rng(2)
    errors = rng.random((11, 6))
    found, theirs = ranking.friedman(errors), stats.friedmanchisquare(*errors.T)
    assert reference.friedman(errors) == pytest.approx((found.chi_square, found.F), rel=1e-12)
    assert reference.friedman(errors)[0] == pytest.approx(theirs.statistic, rel=1e-12)
    rounded = np.round(errors, 1)  # with ties
    assert len(np.unique(rounded)) < rounded.size
    ranks = ranking.friedman(rounded).ranks
    np.testing.assert_allclose(reference.mean_ranks(rounded), ranks, rtol=1e-12)
    for N, M, alpha in ((4, 3, 0.05), (14, 4, 0.1), (28, 23, 0.05)):
        expected = ranking.critical_difference(N, M, alpha)
        assert reference.critical_difference(N, M, alpha) == pytest.approx(expected, rel=1e-5)
    # The range of two normal variables is |Z| √2.
    assert reference.range_probability(1.0, 2) == pytest.approx(2 * stats.norm.cdf(0.5**0.5) - 1)


def _file(folder, name, part, rows, counts=(60, 40), test=50):
    about = {"set": name, "part": part, "kind": "generated", "train": sum(counts), "test": test}
    lines = [json.dumps({**about, "counts": list(counts), "features": 2, "sparse": False})]
    lines.append("@" + json.dumps({"commit": "abc", "limits": [10, 2000]}))
    methods = []
    for row in rows:
        if row["method"] not in methods:
            methods.append(row["method"])
            kernel = "linear" if "linear" in row["method"] else "rbf"
            facts = {"method": row["method"], "mode": "default", "kernel": kernel, "sources": "s"}
            lines.append("=" + json.dumps({**facts, "block": 0}))
        lines.append(bakeoff.line(methods.index(row["method"]), row))
    (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _fit(method, draw, wrong=None, labels=20, status=None, cpu=1.0):
    status = status or ("ok" if wrong is not None else "failed")
    row = {"method": method, "labels": labels, "draw": draw, "status": status, "wrong": wrong}
    return {**row, "wrong_test": wrong, "cpu": cpu, "megabytes": 2.0, "n_iter": 3}


@pytest.fixture
def store(tmp_path):
    rows = [_fit("SVM", d, w) for d, w in enumerate((8, 16, 24, 8))]
    rows += [_fit("QN", d, w) for d, w in enumerate((8, 8, 28))] + [_fit("QN", 3)]
    rows += [_fit("SVM[linear]", 0, 4), _fit("QN[linear]", 0, 12), _fit("BB", 0, status="skipped")]
    _file(tmp_path, "one", "tuning", rows)
    rows = [_fit("SVM", 0, 8), _fit("QN", 0, 4, cpu=3.0), _fit("QN", 1, 4), _fit("SVM", 0, 40, 60)]
    _file(tmp_path, "two", "reported", rows, counts=(50, 50))
    return tmp_path


def test_the_store_as_arrays(store):
    found = bakeoff.load(store)
    assert [one["set"] for one in found.sets] == ["one", "two"]
    assert found.methods == ["BB", "QN", "QN[linear]", "SVM", "SVM[linear]"]
    assert (found.labels, found.draws) == ([20, 60], [0, 1, 2, 3])
    svm, qn = found.index("SVM"), found.index("QN")
    np.testing.assert_array_equal(found.error[0, svm, 0], [10, 20, 30, 10])
    np.testing.assert_array_equal(found.test_error[0, svm, 0], [16, 32, 48, 16])
    assert found.error[1, svm, 1, 0] == 100 and np.isnan(found.error[1, svm, 1, 1])
    assert found.cpu[1, qn, 0, 0] == 3 and found.megabytes[1, qn, 0, 0] == 2
    assert found.status[0, qn, 0].tolist() == ["ok", "ok", "ok", "failed"]
    assert np.isnan(found.error[0, qn, 0, 3]) and found.filled()[0, qn, 0, 3] == 40
    assert np.isnan(found.filled()[0, found.index("BB"), 0, 0])  # it was never asked
    assert np.isnan(found.filled()[1, qn, 0, 2])
    linear = found.index("QN[linear]")
    np.testing.assert_array_equal(
        found.gain("QN[linear]"),
        found.filled()[:, found.index("SVM[linear]")] - found.filled()[:, linear],
    )
    np.testing.assert_array_equal(found.gain("SVM")[~np.isnan(found.gain("SVM"))], 0)
    # A row that chose its kernel is compared with the SVM that has it.
    chose = found.linear.copy()
    chose[0, qn, 0, 0] = True
    expected = found.gain("QN").copy()
    expected[0, 0, 0] += found.error[0, found.index("SVM[linear]"), 0, 0] - 10
    np.testing.assert_array_equal(found._replace(linear=chose).gain("QN"), expected)
    assert bakeoff.load(store, part="reported").error.shape == (1, 2, 2, 2)
    with pytest.raises(ValueError, match="mode='search', part=None: nothing is stored"):
        bakeoff.load(store, mode="search")
    with pytest.raises(ValueError, match="method='X' is not measured; there are"):
        found.index("X")


def test_wins_ties_and_losses_against_the_svm_with_the_same_kernel(store):
    found = bakeoff.load(store)
    # QN: 10-10, 20-10, 30-35, 10-40 (failed), and 10-5 on the other set.
    assert bakeoff.count(found, "QN") == (2, 1, 2, 1, 6.25, "one", 17.5)
    assert bakeoff.count(found, "QN").cells == 5
    assert bakeoff.count(found, "QN", margin=5.0) == (1, 3, 1, 1, 6.25, "one", 30.0)
    assert bakeoff.count(found, "QN", measure="test_error") == (2, 1, 2, 1, 4.0, "one", 16.0)
    assert bakeoff.count(found, "QN[linear]") == (0, 0, 1, 0, 10.0, "one", 10.0)
    assert bakeoff.count(found, "SVM") == (0, 6, 0, 0, 0.0, "", 0.0)
    assert bakeoff.count(found, "BB") == (0, 0, 0, 0, 0.0, "", 0.0)


@pytest.mark.parametrize("baseline", [None, "SVM", "same C"])
def test_a_difference_of_exactly_the_margin_is_a_tie_however_quotients_round(tmp_path, baseline):
    # Nine of 900 rows are one point, but 100 · 9 / 900 − 0 and its kind are not all 1.0.
    rows = [_fit(m, d, d + more) for d in range(400) for m, more in (("SVM", 9), ("QN", 0))]
    _file(tmp_path, "one", "tuning", rows, counts=(500, 420))
    found = bakeoff.load(tmp_path)
    plain = found.error[0, found.index("SVM")] - found.error[0, found.index("QN")]
    assert len(set(plain.ravel())) > 1  # what rounding alone would decide
    assert bakeoff.count(found, "QN", baseline=baseline)[:3] == (0, 400, 0)


def test_another_method_can_be_the_baseline(store):
    found = bakeoff.load(store)
    gain = found.gain("SVM", baseline="QN")
    np.testing.assert_array_equal(gain, -found.gain("QN", baseline="SVM"))
    assert gain[0, 0].tolist() == [0, -10, 5, 30] and gain[1, 0, 0] == -5
    assert bakeoff.count(found, "SVM", baseline="QN") == (2, 1, 2, 0, 5.0, "two", 7.5)
    with pytest.raises(ValueError, match="method='X' is not measured"):
        found.gain("SVM", baseline="X")


def test_the_baseline_can_have_the_kernel_and_the_C_that_were_chosen(tmp_path):
    svms = {"SVM": 8, "SVM[linear]": 16, "SVM[C=10]": 24, "SVM[linear, C=10]": 32}
    rows = [_fit(name, d, wrong) for name, wrong in svms.items() for d in range(4)]
    chosen = [("rbf", 1.0), ("linear", 1.0), ("rbf", 10.0), ("linear", 10.0)]
    rows += [{**_fit("door", d, 4), "chosen": k, "C": C} for d, (k, C) in enumerate(chosen)]
    _file(tmp_path, "one", "reported", rows)
    found = bakeoff.load(tmp_path)
    assert found.gain("door", baseline="same C")[0, 0].tolist() == [5, 15, 25, 35]
    assert found.gain("door")[0, 0].tolist() == [5, 15, 5, 15]
    assert bakeoff.count(found, "door", margin=10.0, baseline="same C").better == 3
    both = bakeoff.common(found, ["door", *svms])
    assert both.gain("door", baseline="same C")[0, 0].tolist() == [5, 15, 25, 35]


def test_what_methods_have_in_common(store):
    found = bakeoff.load(store)
    both = bakeoff.common(found, ["QN", "SVM"])
    assert both.methods == ["QN", "SVM"] and [one["set"] for one in both.sets] == ["one", "two"]
    # Draw 1 of the second set and its 60 labels have one of them only; draw 3 of the first failed.
    assert (both.status[1] != "").sum(axis=(1, 2)).tolist() == [1, 1]
    assert both.status[0, 0, 0].tolist() == ["ok", "ok", "ok", "failed"]
    np.testing.assert_array_equal(both.filled()[0, 0, 0], [10, 10, 35, 40])
    assert np.isnan(both.cpu[1]).sum() == both.cpu[1].size - 2 and not both.linear.any()
    linear = bakeoff.common(found, ["SVM", "QN[linear]"])
    assert [one["set"] for one in linear.sets] == ["one"] and linear.linear.sum() == 1
    assert bakeoff.common(found, ["QN", "BB"]).sets == []  # one of them was never run
    first = np.zeros((2, 2, 4), dtype=bool)
    first[:, :, 0] = True
    assert (bakeoff.common(found, ["QN", "SVM"], first).status != "").sum() == 4


def test_a_search_is_shown_beside_the_defaults_of_the_same_cells(store):
    default = bakeoff.load(store)
    # Searched: 20 labels, draws 1 and 3, and QN only in the first of them.
    at = [default.index(m) for m in ("QN", "SVM", "SVM[linear]")]
    parts = {
        name: getattr(default, name)[:, at][:, :, :1][..., [1, 3]].copy() for name in bakeoff.ARRAYS
    }
    parts["error"][:, :, 0] = [[[11, 7], [12, 8], [13, 9]], [[1, 2], [3, 4], [5, 6]]]
    parts["status"][:] = "ok"
    for name, nothing in (("error", np.nan), ("status", "")):
        parts[name][:, 0, 0, 1] = nothing
    methods = ["QN", "SVM", "SVM[linear]"]
    searched = default._replace(methods=methods, labels=[20], draws=[1, 3], **parts)
    default.error[0, default.index("SVM[linear]"), 0] = 25
    default.status[0, default.index("SVM[linear]"), 0] = "ok"

    one = bakeoff.with_search(default, searched, "QN")
    assert one.cells.tolist() == [[[True, False]], [[False, False]]] and one.draws == 1
    assert one.default.filled()[0, :, 0, 0].tolist() == [10, 20, 25]
    assert one.searched.filled()[0, :, 0, 0].tolist() == [11, 12, 13]
    assert bakeoff.over_sets(one.default.gain("QN"))[0] == 10
    assert bakeoff.over_sets(one.searched.gain("QN"))[0] == 1
    two = bakeoff.with_search(default, searched, "SVM")
    assert two.draws == 2 and two.default.methods == ["SVM", "SVM[linear]"]
    assert bakeoff.with_search(default, searched, "SVM", one.cells).draws == 1


def test_means_over_sets_have_the_errors_of_their_draws():
    nan = np.nan
    cells = [[[1, 3], [3, 5]], [[0, 6], [nan, nan]], [[nan, nan], [nan, nan]]]
    mean, error = bakeoff.over_sets(cells)
    assert mean == pytest.approx((3 + 3) / 2)
    assert error == pytest.approx(np.sqrt(1**2 + 3**2) / 2)  # of 2 and 4, of 0 and 6
    assert np.isnan(bakeoff.over_sets([[[1.0, nan]], [[2.0, 4.0]]])[1])  # one draw has none
    assert np.isnan(bakeoff.over_sets([[[nan]]])).all()


def test_draws_are_the_observations_of_a_set():
    nan = np.nan
    mean, error = bakeoff.paired([[1, 3, nan], [5, nan, nan]])
    assert (mean, error) == (3, 0) and bakeoff.paired([[2, 4], [nan, 8]]) == (4, 2)
    assert np.isnan(bakeoff.paired([[nan]])).all() and np.isnan(bakeoff.paired([[1]])[1])


def test_the_way_between_two_methods(tmp_path):
    def rows(svm, low, mid, top):
        names = {"SVM": svm, "low": low, "mid": mid, "top": top}
        return [_fit(m, d, w) for m, wrong in names.items() for d, w in enumerate(wrong)]

    _file(tmp_path, "one", "tuning", rows((8, 8), (8, 4), (6, 4), (4, 2)))
    _file(tmp_path, "two", "tuning", rows((8, 8), (4, 8), (6, 10), (4, 8)))
    _file(tmp_path, "three", "tuning", rows((8, 8), (8, 8), (8, 8), (8, 7)) + [_fit("low", 2, 0)])
    found = bakeoff.load(tmp_path)
    way = bakeoff.between(found, "low", "mid", "top")  # in percent, of 80 rows
    assert way[:3] == pytest.approx((25 / 3, 26.25 / 3, 20.625 / 3))
    assert way.share == pytest.approx(-1.25 / 4.375) and way.harmed == [("two", 2.5, 0.0)]


def test_means_have_paired_standard_errors(store):
    found = bakeoff.load(store)
    gains = np.array([0, 10, -5, -30])
    one = bakeoff.mean(found, "one", "QN", 20)
    assert one == pytest.approx((23.75, gains.mean(), gains.std(ddof=1) / 2, 4))
    alone = bakeoff.mean(found, "two", "QN", 20)
    assert alone[:2] == (5, 5) and np.isnan(alone.standard_error) and alone.n == 1
    assert bakeoff.mean(found, "two", "QN", 60) is None
    lines = bakeoff.table(found, "one", methods=["QN", "BB"])
    assert lines[0] == {"method": "QN", "20": "23.8 (-6.2 ± 8.5)", "60": ""}
    assert lines[1] == {"method": "BB", "20": "", "60": ""}


def test_rankings_are_of_cells_that_all_were_asked_to_do(store):
    found = bakeoff.load(store)
    errors, names = bakeoff.by_set(found, ["SVM", "QN"])
    assert names == ["SVM", "QN"]
    np.testing.assert_allclose(errors, [[17.5, 23.75], [10, 5]])
    again, names = bakeoff.by_set(found, ["SVM", "QN", "BB"])  # the last is too slow for a set
    assert names == ["SVM", "QN"] and again.tolist() == errors.tolist()
    errors, names = bakeoff.by_set(found, ["SVM", "QN[linear]"])
    assert errors.tolist() == [[10, 15]]


def test_equal_means_tie_whatever_the_order_of_the_sum(tmp_path):
    wrong = {"SVM": (7, 11, 14), "QN": (11, 14, 7), "CC": (14, 7, 11), "BB": (14, 11, 7)}
    rows = [_fit(m, d, w) for m, draws in wrong.items() for d, w in enumerate(draws)]
    _file(tmp_path, "one", "tuning", rows, counts=(43, 40))  # 63 rows without a label
    errors, _ = bakeoff.by_set(bakeoff.load(tmp_path))
    assert len(set(errors[0])) == 1


def test_the_digest_follows_answers_and_not_times(store):
    before = bakeoff.digest(store)
    text = (store / "two.txt").read_text()
    (store / "two.txt").write_text(text.replace(" 3 2 ok", " 4 2 ok").replace("abc", "def"))
    assert (store / "two.txt").read_text() != text and bakeoff.digest(store) == before
    (store / "two.txt").write_text(text.replace("4 4 3 2 ok", "4 5 3 2 ok"))
    assert bakeoff.digest(store) != before


def test_what_is_stored_with_the_book_can_be_read():
    if not any(bakeoff.STORE.glob("*.txt")):
        pytest.skip("nothing has been measured yet")
    found = bakeoff.load()
    assert np.nanmin(found.error) >= 0 and np.nanmax(found.error) <= 100


def test_an_interrupted_line_is_not_read(store):
    text = (store / "two.txt").read_text()
    (store / "two.txt").write_text(text + "0 20 9 7")
    assert len(bakeoff.parse((store / "two.txt").read_text()).rows) == 4
    assert bakeoff.load(store).draws == [0, 1, 2, 3]
