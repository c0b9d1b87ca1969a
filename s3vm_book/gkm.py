"""Verdicts on the GKM paper (Le et al., 2016), and its theorem with smaller constants."""

import math

import numpy as np

from s3vm_book.rules import Basis, Verdict, difference
from s3vm_book.tables import printed, stored

OWN = {
    "coil20": "differs: a selection of its authors",
    "covtype": "differs: cut to 66,667 rows",
    "g50c": "differs: 551 rows, one more than the set",
    "uspst": "differs: a selection of its authors",
    "svm2": "differs: the set is not defined",
}
CONSTANT = 5.0  # per cent: with a smaller F1 next to nothing is called positive
_RULE = (
    "the mean of five runs within two standard errors of the printed one is reproduced; not"
    " resolved where two standard errors of ours exceed 3 points; larger class: they agree because"
    " our machine answers (nearly) all test rows with the larger class, F1 below 5 %"
)
_RUNS = "same: mean accuracy of five runs (the paper's spread is not printed)"
FULL = Basis(
    "same: Algorithm 1 with the printed numbers of steps, complete graph, σ_s = σ_l",
    "same sets, nine tenths for training, the same shares of labels hidden; our own splits and our"
    " own scaling, which the paper does not state",
    "same: the printed grids, cross-validation in five folds on the labels (from 8000 rows on in"
    " the first run only)",
    _RUNS,
    _RULE,
)
SHORT = FULL._replace(
    settings="differs: γ at the largest C, then C, on at most 800 labelled and 400 unlabelled rows",
    accounting="differs: three to five runs, at most 2000 test rows",
)
PEERS = SHORT._replace(
    method="differs: our solvers of the paper's methods",
    rows="differs: at most 22,222 rows of a set; CCCP sees 3000, self-training 5000, LapSVM a"
    " kernel of rank 500",
)


def _on(basis, name):
    return basis._replace(rows=OWN[name]) if name in OWN else basis


def mean_and_error(result, key="accuracy"):
    """Mean and standard error over the runs; None where there is no row."""
    if result is None:
        return None
    runs = result["runs"][key]
    return result[key], float(np.std(runs, ddof=1) / np.sqrt(len(runs)))


def results_of(table, *keys):
    """Results of a stored table by some keys of its rows."""
    return {tuple(one["row"][k] for k in keys): one["result"] for one in stored(table)}


def _verdict(place, claim, ours, basis):
    if ours is None:
        return Verdict(place, claim, "not run", "not run", basis)
    word = difference(ours[0], ours[1], float(claim), 0.0)
    return Verdict(place, claim, f"{ours[0]:.1f} ± {ours[1]:.1f}", word, basis)


def tables_23():
    """Verdicts on Tables 2 and 3, cell by cell: the full protocol where it was run.

    Returns
    -------
    dict of (int, str, str, int) to Verdict
        By share of hidden labels, set, loss and p.
    """
    full = results_of("gkm_full", "set", "hidden", "loss", "p")
    short = results_of("gkm_tables23", "set", "hidden", "loss", "p", "protocol")
    found = {}
    for line in printed("gkm_tables23"):
        name, hidden = line["set"], int(line["hidden"])
        for loss in ("hinge", "logistic"):
            for p in (1, 2, 3):
                key, basis = (name, hidden / 100, loss, p), FULL
                result = full.get(key)
                if result is None:
                    result, basis = short.get((*key, "printed")), SHORT
                place = f"Table {2 if hidden == 80 else 3}, {name}, {loss}, p = {p}"
                one = _verdict(
                    place, line[f"{loss} p={p}"], mean_and_error(result), _on(basis, name)
                )
                if one.word == "reproduced" and result["f1"] < CONSTANT:
                    one = one._replace(word="larger class")
                found[hidden, name, loss, p] = one
    return found


def table_4():
    """Verdicts on Table 4 and Figure 3, which show the same numbers.

    Returns
    -------
    dict of (str, str, int) to Verdict
        By set, "accuracy" or "F1", and share of hidden labels.
    """
    rows = results_of("gkm_table4", "set", "hidden", "protocol")
    for (name, hidden, loss, p, protocol), result in results_of(
        "gkm_tables23", "set", "hidden", "loss", "p", "protocol"
    ).items():
        if (loss, p) == ("hinge", 1):
            rows[name, hidden, protocol] = result
    found = {}
    for line in printed("gkm_table4"):
        for key, ours in (("accuracy", "accuracy"), ("F1", "f1")):
            for hidden in (50, 60, 70, 80, 90):
                result = rows.get((line["set"], hidden / 100, "printed"))
                place = f"Table 4, {line['set']}, {key}, {hidden} %"
                found[line["set"], key, hidden] = _verdict(
                    place,
                    line[f"{key} {hidden}"],
                    mean_and_error(result, ours),
                    _on(SHORT, line["set"]),
                )
    return found


def table_5():
    """Verdicts on the accuracies of Table 5.

    Returns
    -------
    dict of (str, str, int) to Verdict
        By set, method and share of hidden labels.
    """
    rows = results_of("gkm_table5", "set", "hidden", "method", "protocol")
    for (name, hidden, loss, p, protocol), result in results_of(
        "gkm_tables23", "set", "hidden", "loss", "p", "protocol"
    ).items():
        if (loss, p) == ("hinge", 1):
            rows[name, hidden, "GKM", protocol] = result
    found = {}
    for line in printed("gkm_table5"):
        name, method = line["set"], line["method"]
        for hidden in (80, 90):
            key = name, hidden / 100, method
            if method == "SVM":
                key = name, 0.9, "SVM (all labels)"
            result = rows.get((*key, "printed"), rows.get((*key, "ours")))
            found[name, method, hidden] = _verdict(
                f"Table 5, {name}, {method}, {hidden} %",
                line[f"accuracy {hidden}"],
                mean_and_error(result),
                _on(SHORT if method == "GKM" else PEERS, name),
            )
    return found


def figure_2():
    """Verdicts on Figure 2.

    Returns
    -------
    list of Verdict
    """
    basis = Basis(
        "same: Algorithm 1; J* by an interior point method",
        "differs: g50c in full, the graph of five neighbours (complete in the paper)",
        "differs: C = 32 for the mean, C' = 32 for p = 1 and from the condition of Theorem 1 for"
        " p = 2, 3 (the paper's rule), γ = 1/50; the paper's C is not stated",
        "same: T (J − J*) and accuracy against T; five seeds",
        "bounded: below the bound 2G² at all T; decreasing: the mean at the last T is the smallest;"
        " improving: the mean accuracy at the last T is above that at the first",
    )
    rows = [one["result"] for one in stored("gkm_fig2")]
    bounded = sum(np.max(r["scaled_gap"]) <= r["bound"] for r in rows)
    falling = sum(np.argmin(np.mean(r["scaled_gap"], axis=1)) == len(r["steps"]) - 1 for r in rows)
    rising = sum(np.mean(r["accuracy"][-1]) > np.mean(r["accuracy"][0]) for r in rows)
    of = f"of {len(rows)} curves"
    return [
        Verdict("Fig. 2", claim, f"{count} {of}", f"in {count} {of}", basis)
        for claim, count in (
            ("T ΔJ is bounded by a constant", bounded),
            ('T ΔJ "tends to decrease"', falling),
            ("the accuracy improves", rising),
        )
    ]


# --- Theorem 1 with the smallest norms that its proof allows --------------------------------------


def smallest_norm_bound(a, b, p):
    """Return the smallest M ≥ 0 with a M^(p−1) + b ≤ M: all that the induction of Lemma 3 needs.

    Parameters
    ----------
    a, b : float
        Non-negative constants, see `Bounds`.
    p : float
        Power of the smoothness function, p ≥ 1.

    Returns
    -------
    float
        Infinite where there is none.
    """
    if p == 1:
        return a + b
    if p == 2:
        return b / (1 - a) if a < 1 else math.inf
    M = 0.0
    for _ in range(10_000):  # from below: monotone, up to the smallest fixed point
        larger = a * M ** (p - 1) + b
        if larger > 1e100:
            return math.inf
        if larger <= M * (1 + 1e-13):
            return larger * (1 + 1e-12)
        M = larger
    return math.inf if p > 2 else max(1.0, (a + b) ** (1 / (2 - p)))  # that of Lemma 2


def sharpened(bounds, p):
    """Return `Bounds` that hold with the smallest M that the proof allows in place of the paper's.

    Parameters
    ----------
    bounds : Bounds
        Of `s3vm_lib.graph_kernel_machine.theorem_bounds`.
    p : float
        Power of the smoothness function.

    Returns
    -------
    Bounds
    """
    if not bounds.holds:
        return bounds
    M = smallest_norm_bound(bounds.a, bounds.b, p)
    return bounds._replace(M=M, G=M + bounds.b + bounds.a * M ** (p - 1))
