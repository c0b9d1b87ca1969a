"""What `summary()` says: each sentence, and each number in it counted again from the fit."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import beta
from test_s3vc import component_of

from s3vm_lib import QNS3VM, S3VC, SVM, LapSVM, SafeS3VM
from s3vm_lib.datasets import hide_labels, make_moons

NUMBER = r"(-?\d+(?:\.\d+)?)"


def same(shown, value):
    """Whether a number is what was shown of it, to the digits shown."""
    digits = len(shown.partition(".")[2])
    return abs(float(shown) - value) <= 0.5000001 * 10.0**-digits


def labels_of(fit):
    """Indices of the classes, of the labels and of the answers."""
    index = {c: k for k, c in enumerate(fit.model.classes_.tolist())}
    known = np.array([index.get(c, -1) for c in fit.y.tolist()])
    given = np.array([index[c] for c in fit.model.transduction_.tolist()])
    return known, given


class Fit:
    """A fit and what its sentences are to be compared with."""

    def __init__(self, model, X, y, weight=None):
        self.X, self.y = X.toarray() if sp.issparse(X) else X, y
        self.weight = np.ones(len(y)) if weight is None else weight
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = model.fit(X, y, sample_weight=weight)
        self.known, self.given = labels_of(self)
        self.labeled = self.known >= 0
        scaler = getattr(model, "scaler_", None)
        mean, deviation = moments(self)
        self.rows = self.X if scaler is None else (self.X - mean) / deviation

    def answers(self, machine):
        """Classes that a machine inside a guard gives to all rows, as indices."""
        return np.asarray(machine.predict(self.rows))  # which was fitted to indices

    def wrong(self, machine):
        counted = self.labeled & (self.weight > 0)
        return int(np.sum((self.answers(machine) != self.known)[counted]))


def counts(fit, groups):
    n, u, shown = groups
    assert (int(n), int(u)) == (fit.labeled.sum(), (~fit.labeled).sum())
    assert shown == str(np.bincount(fit.known[fit.labeled]).tolist())


def held_out(fit, groups):
    word, gain, n, error = groups
    right = fit.model.cv_right_
    assert (word == "gains") == (right[1:].mean() >= right[0])
    assert same(gain, abs(right[1:].mean() - right[0])) and int(n) == fit.labeled.sum()
    # Discordant labels: at least as many as the lead, at most all; and one. Folds are drawn twice.
    lead = abs(right[1:].max() - right[0])
    assert (1 + lead / 2) ** 0.5 - 0.06 <= float(error) <= (1 + int(n)) ** 0.5


def contradicted(fit, groups):
    machine = fit.model.estimator_
    separators = np.atleast_1d(machine.contradicted_)
    assert same(groups[0], 100 * separators.mean())
    assert (groups[1] is not None) == (separators.size > 1)
    assert groups[1] is None or int(groups[1]) == separators.size


def share_of(fit, those):
    """Share of the unlabeled rows; a weight of k is k copies."""
    return np.average(those, weights=fit.weight[~fit.labeled]) if those.size else 0.0


def pool(fit, groups):
    labelings = np.array([m.labels for m in fit.model.pool_])
    apart = (labelings != labelings[0]).any(axis=0)
    assert int(groups[0]) == len(labelings) and same(groups[1], 100 * share_of(fit, apart))


def worst_case(fit, groups):
    model = fit.model
    gain, times, bound = (float(g) for g in groups)
    assert times == model.loss_weight and gain <= bound and same(groups[2], 100 * model.bound_)
    supervised = fit.answers(model.baseline_)[~fit.labeled]
    found = fit.given[~fit.labeled]
    gains = [
        np.mean((found == m.labels) & (supervised != m.labels))
        - times * np.mean((found != m.labels) & (supervised == m.labels))
        for m in model.pool_
    ]
    assert model.taken_ != "vote" or same(groups[0], 100 * min(gains))


def changed(fit, groups):
    supervised = fit.answers(fit.model.baseline_)
    assert same(groups[-1], 100 * share_of(fit, (supervised != fit.given)[~fit.labeled]))


def estimator_taken(fit, groups):
    model = fit.model
    assert model.taken_ == "estimator"
    lead = float(np.max(model.cv_right_[1:]) - model.cv_right_[0])
    clear = model.trust is not None and lead >= max(model.trust * model.cv_error_, 1e-9)
    assert (groups[0] == "The lead leaves no doubt") == clear
    assert clear or np.sum(model.estimator_.contradicted_) <= model.contradiction
    assert np.array_equal(fit.given[~fit.labeled], fit.answers(model.estimator_)[~fit.labeled])
    changed(fit, groups)


def vote_taken(fit, groups):
    assert fit.model.taken_ == "vote"
    changed(fit, groups)


def kept(fit, groups):
    model = fit.model
    assert np.array_equal(fit.given[~fit.labeled], fit.answers(model.baseline_)[~fit.labeled])
    lead = np.mean(model.cv_right_[1:]) - model.cv_right_[0]
    reason = {
        "no label speaks for another": np.isnan(lead),
        "the labels advise it": lead < 0,
        "the lead on held-out labels leaves doubt": 0 <= lead < model.margin * model.cv_error_,
        "no labeling gains in every case": model.bound_ < 1e-9,
    }
    assert reason[groups[0]]


def kept_for_its_labels(fit, groups):
    name, wrong, n, own = groups
    model = fit.model
    assert name in ("estimator", "vote") and int(n) == fit.labeled.sum()
    assert int(own) == fit.wrong(model.baseline_)
    assert name == "vote" or int(wrong) == fit.wrong(model.estimator_)
    assert int(wrong) > int(own) + max(1, 0.02 * int(n))


def moments(fit):
    mean = np.average(fit.X, axis=0, weights=fit.weight)
    return mean, np.average((fit.X - mean) ** 2, axis=0, weights=fit.weight) ** 0.5


def scale(fit, groups):
    mean, deviation = moments(fit)
    ratio, apart = deviation.max() / deviation.min(), mean.std() / np.mean(deviation**2) ** 0.5
    assert np.isclose(float(groups[0]), ratio, rtol=0.006)
    assert np.isclose(float(groups[1]), apart, rtol=0.006, atol=1e-9)
    scaled = fit.model.scaler_ is not None
    assert scaled == (groups[2] == "were scaled to 1")


def shares(fit, groups):
    ratio = fit.model.class_ratio_
    own = np.bincount(fit.known[fit.labeled], fit.weight[fit.labeled])
    for part, name, share, label in zip(
        groups[0].split("), "), fit.model.classes_, ratio, own / own.sum(), strict=True
    ):
        found = re.match(rf"(.*) {NUMBER}% \(labels: {NUMBER}%", part)
        assert found[1] == str(name)
        assert same(found[2], 100 * share) and same(found[3], 100 * label)


def named(fit, groups):
    total, u = groups
    counted = np.bincount(fit.known[fit.labeled]).tolist()
    pairs = zip(counted, fit.model.classes_.tolist(), strict=True)
    assert total == ", ".join(f"{n} of class {c}" for n, c in pairs)
    assert int(u) == (~fit.labeled).sum()


def votes(fit):
    """Votes for the second of two classes, and their weights before any guard."""
    penalties = np.array([m.penalty for m in fit.model.members_])
    weights = np.exp(penalties.min() - penalties)
    scores = [m.model.decision_function(fit.rows) / m.scale for m in fit.model.members_]
    return weights / weights.sum(), np.tanh(2 * np.array(scores))


def member(fit, groups):
    name, rows, share, wrong, n = groups
    weights, shown = fit.model.weights_, [m.name for m in fit.model.members_]
    k = shown.index(name)
    one = fit.model.members_[k]
    assert same(share, 100 * weights[k])
    # An SVM is the only machine here that does not look at the unlabeled rows.
    assert (rows == "labeled rows alone") == isinstance(one.model, SVM)
    assert (n is None) == (one.known.size == 0)
    if one.known.size:
        answers = one.held_out.argmax(axis=1)
        assert int(n) == one.known.size and int(wrong) == np.sum(answers != fit.known[one.known])
    lines = [s for s in fit.model.summary().splitlines() if " of the vote" in s]
    order = [weights[shown.index(s.split(", fitted to")[0])] for s in lines]
    assert len(lines) == len(shown) and order == sorted(order, reverse=True)


def fell_back(fit, groups):
    wrong, own = groups
    weights, found = votes(fit)
    counted = fit.labeled & (fit.weight > 0)
    assert int(wrong) == np.sum(((weights @ found > 0) != fit.known)[counted])
    machine = fit.model.members_[fit.model.weights_.argmax()]
    assert machine.supervised and fit.model.weights_.max() == 1 and fit.model.kept_supervised_
    assert int(own) == fit.wrong(machine.model)
    assert int(wrong) > int(own) + max(1, 0.02 * counted.sum())


def left_out(fit, groups):
    assert float(groups[0]) == fit.model.max_seconds
    assert groups[1] == ", ".join(fit.model.left_out_)
    fitted = {m.name for m in fit.model.members_}
    assert len(fitted) >= 1 and not fitted & set(fit.model.left_out_)


def expected(fit, groups):
    """Each held-out label against the votes of machines that are weighed without it."""
    wrong, n, low, high = map(int, groups)
    members = fit.model.members_
    held = members[0].known
    assert n == held.size and np.isin(held, np.flatnonzero(fit.weight > 0)).all()
    counted = 0
    for k, i in enumerate(held):
        total = 0.0
        for m in members:
            f = m.held_out[k] / m.scale
            other = np.delete(f, fit.known[i]).max()
            loss = np.clip((1 - (f[fit.known[i]] - other)) / 2, 0, 1)
            weight = np.exp(-m.penalty + loss)
            if fit.model.weights_.max() == 1:
                weight = float(m is members[fit.model.weights_.argmax()])
            total = total + weight * np.tanh(2 * f)
        counted += total.argmax() != fit.known[i]
    assert wrong == counted and fit.model.expected_error_ == wrong / n
    limits = beta.ppf([0.025, 0.975], [max(wrong, 1e-300), wrong + 1], [n - wrong + 1, n - wrong])
    assert same(str(low), 100 * limits[0] if wrong else 0)
    assert same(str(high), 100 * limits[1] if wrong < n else 100)


def doubtful(fit, groups):
    F = np.asarray(fit.model.decision_function(fit.X))
    sure = np.abs(F) if F.ndim == 1 else np.diff(np.sort(F, axis=1))[:, -1] / 2
    rows = np.flatnonzero(~fit.labeled)
    if fit.model.weights_.max() < 1:  # else the outputs of the machine
        assert same(groups[0], 100 * np.mean(sure[rows] < 0.25))
    least = [int(i) for i in groups[1].split(", ")]
    assert len(set(least)) == min(5, rows.size) and set(least) <= set(rows)
    assert np.allclose(np.sort(sure[rows])[:5], sure[least])


def unreached(fit, groups):
    n, size, shown = int(groups[0]), int(groups[1]), [int(i) for i in groups[2].split(", ")]
    component = component_of(fit.rows)
    without = np.flatnonzero(~np.isin(component, component[fit.labeled]))
    assert (n, size) == (len(fit.y), without.size) and set(shown) <= set(without)
    different = np.unique(component[shown]).size
    assert different == len(shown) == min(5, np.unique(component[without]).size)


def probability(fit, groups):
    chances = fit.model.predict_proba(fit.X)
    classes = fit.model.classes_[chances.argmax(axis=1)]
    assert same(groups[0], 100 * np.mean(classes != fit.model.predict(fit.X)))


def warning(fit, groups):
    assert groups[0] in fit.model.findings_.values()
    never = re.match(rf"never predicts class (\S+) on unlabeled rows; {NUMBER}% were", groups[0])
    k = [str(c) for c in fit.model.classes_].index(never[1])
    assert not np.any(fit.given[~fit.labeled] == k)
    asked = getattr(fit.model, "estimator_", fit.model).class_ratio_[k]
    assert same(never[2], 100 * asked)


def true(claim):
    def check(fit, groups):
        assert claim(fit)

    return check


def alone(fit):
    return np.bincount(fit.known[fit.labeled]).min() == 1


SENTENCES = {
    rf"{NUMBER} labeled and {NUMBER} unlabeled rows, classes (\[.*\])\.": counts,
    "Without unlabeled rows this is the supervised machine.": true(lambda f: f.labeled.all()),
    r"No labels were held out \(n_folds=None\)\.": true(lambda f: f.model.n_folds is None),
    "With one label of a class none can be held out: there is no evidence.": true(alone),
    rf"On held-out labels the estimator (gains|loses) {NUMBER} of {NUMBER} against the supervised "
    rf"machine \(standard error {NUMBER}\)\.": held_out,
    rf"What the unlabeled rows add contradicts {NUMBER}% of the labels"
    rf"(?:, in the mean of the {NUMBER} separators)?\.": contradicted,
    rf"The pool has {NUMBER} labelings?; on {NUMBER}% of the unlabeled rows they do not all "
    r"agree\.": pool,
    rf"If one of them is true, the vote gains {NUMBER}% of the unlabeled rows or more, lost rows "
    rf"counted {NUMBER} times; no labeling is sure of more than {NUMBER}%\.": worst_case,
    r"(The lead leaves no doubt|The gap follows the labels): the estimator was taken as it is; "
    rf"{NUMBER}% of the unlabeled rows have another label than the supervised machine gives "
    r"them\.": estimator_taken,
    rf"The vote was taken: {NUMBER}% of the unlabeled rows have another label than the supervised "
    r"machine gives them\.": vote_taken,
    r"The supervised machine was kept: (no label\w* .*|the l.*)\.": kept,
    rf"The supervised machine was kept: the (\w+) contradicts {NUMBER} of the {NUMBER} labels, it "
    rf"contradicts {NUMBER}\.": kept_for_its_labels,
    rf"The standard deviations of the columns differ by a factor of {NUMBER}, their means by "
    rf"{NUMBER} of such deviations: they (were scaled to 1|stay as they are)\.": scale,
    "Sparse rows stay as they are.": true(lambda f: f.model.scaler_ is None),
    rf"(.*) are labeled, {NUMBER} rows are not\.": named,
    rf"(.*), fitted to (labeled rows alone|all rows), has {NUMBER}% of the vote"
    rf"(?:, wrong on {NUMBER} of {NUMBER} held-out labels)?\.": member,
    "No label can be held out: each class has one of positive weight.": true(
        lambda f: np.bincount(f.known[f.labeled]).max() == 1
    ),
    rf"The vote contradicts {NUMBER} of the labels, the supervised machine {NUMBER}: that was "
    r"kept\.": fell_back,
    rf"After {NUMBER} seconds there was no time for (.*)\.": left_out,
    rf"The vote is wrong on {NUMBER} of {NUMBER} held-out labels: if the labels are a random "
    r"sample, expect between (\d+)% and (\d+)% of wrong answers \(90% interval\)\.": expected,
    rf"Of the unlabeled rows {NUMBER}% have a confidence_ below 1/4\. The vote is least sure "
    r"of the rows (.*)\.": doubtful,
    r"Shares of the classes among the unlabeled rows: (.*)\.": shares,
    rf"Of {NUMBER} rows compared {NUMBER} have no path of nearest neighbors to a label: label one "
    r"row of each group, such as (.*)\.": unreached,
    rf"On {NUMBER}% of the rows the most probable class is not that of predict: the probabilities "
    r"assume the class shares of the labels\.": probability,
    r"Warning: it (.*)\.": warning,
}


class Turned(QNS3VM):
    """Answers rightly where few rows are asked for, wrongly where many are."""

    def predict(self, X):
        found = super().predict(X)
        return np.where(len(X) > 6, 1 - found, found) if self.classes_.size == 2 else found


class Outputs(LapSVM):
    """Has the right outputs where few rows are asked for, wrong ones where many are."""

    def decision_function(self, X):
        found = super().decision_function(X)
        return -found if len(X) > 6 else found


@pytest.fixture(scope="module")
def fits():
    rng = np.random.default_rng(0)
    truth = np.arange(200) % 2
    X = rng.standard_normal((200, 6)) * 1.6
    X[:, 0] += 5 * (truth - 0.5)
    y = hide_labels(truth, 20, random_state=0)
    one = np.where(np.cumsum(y == 1) <= 1, y, np.where(y == 0, 0, -1))
    rare = (np.arange(300) < 15).astype(int)
    Z = rng.normal(size=(300, 2)) + np.outer(rare, [4, 0])
    spam = np.full(300, -1, dtype=object)
    for k, count in ((0, 20), (1, 2)):
        spam[np.flatnonzero(rare == k)[:count]] = ("ham", "spam")[k]
    three = np.arange(120) % 3
    W = rng.normal(size=(120, 2)) + 5 * np.eye(3)[three][:, :2]
    moons, side = make_moons(160, noise=0.2, random_state=0)
    wrong = y.copy()
    wrong[y >= 0] = np.random.default_rng(4).permutation(y[y >= 0])
    noise = 3 * rng.standard_normal((200, 60))  # a gap that 30 labels do not see in it
    wide = np.c_[X + 8 * np.outer(truth - 0.5, np.arange(6) == 5), noise]
    many = hide_labels(truth, 30, random_state=0)
    careless = dict(trust=None, contradiction=None, random_state=0)
    linear = dict(C=1.0, kernel="linear", random_state=0)
    return [
        Fit(SafeS3VM(random_state=0), X, y),
        Fit(SafeS3VM(margin=-9.0, **careless), X, y),
        Fit(SafeS3VM(margin=1e3, **careless), X, y),
        Fit(SafeS3VM(estimator=SVM(), n_folds=None, **careless), X, y),
        Fit(SafeS3VM(random_state=0), X, wrong),
        Fit(SafeS3VM(estimator=QNS3VM(kernel="linear"), trust=1.0, random_state=0), wide, many),
        Fit(SafeS3VM(random_state=0), X, one),
        Fit(SafeS3VM(estimator=Turned(), contradiction=1.0, random_state=0), X, y),
        Fit(SafeS3VM(random_state=0), X, truth),
        Fit(SafeS3VM(random_state=0), W, hide_labels(three, 18, random_state=0)),
        Fit(
            SafeS3VM(
                estimator=QNS3VM(kernel="linear"),
                baseline=SVM(C=1e-9, kernel="linear"),
                n_folds=None,
                random_state=0,
            ),
            Z,
            spam,
        ),
        Fit(
            S3VC(C=1.0, kernel="rbf", random_state=0, probability=True),
            moons,
            hide_labels(side, 20, random_state=0),
        ),
        Fit(S3VC(**linear), X * np.logspace(0, 2, 6), y),
        Fit(S3VC(vote=False, **linear), X, y, np.where(np.arange(200) % 3, 1.0, 0.5)),
        Fit(S3VC(random_state=0), X, np.where(np.arange(200) < 2, truth, -1)),
        Fit(S3VC(max_seconds=0.0, random_state=0), X, one),
        Fit(S3VC(solver=Outputs(kernel="linear"), random_state=0), X, y),
        Fit(S3VC(solver=QNS3VM(kernel="linear"), guard=False, random_state=0), Z, spam),
        Fit(S3VC(**linear), sp.csr_matrix(X), y),
        Fit(S3VC(**linear), np.r_[X, X[:12] + 60, X[12:20] - 60], np.r_[y, np.full(20, -1)]),
        Fit(S3VC(random_state=0), W, hide_labels(three, 18, random_state=0)),
    ]


def test_each_sentence_is_so(fits):
    """All of them are met, and the numbers of each are those of the data and the machines."""
    met = set()
    for fit in fits:
        for line in fit.model.summary().splitlines():
            found = [(p, m) for p in SENTENCES if (m := re.fullmatch(p, line))]
            assert len(found) == 1, line
            pattern, match = found[0]
            SENTENCES[pattern](fit, match.groups())
            met.add((pattern, match.groups()[0] if match.groups() else ""))
    assert {pattern for pattern, _ in met} == set(SENTENCES)
    reasons = {first for _, first in met}
    for reason in (
        "no label speaks for another",
        "the labels advise it",
        "the lead on held-out labels leaves doubt",
        "no labeling gains in every case",
        "The lead leaves no doubt",
        "The gap follows the labels",
        "gains",
        "loses",
    ):
        assert reason in reasons, reason
