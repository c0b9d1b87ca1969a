"""The share of a class: formulas against what others compute, profiles, names of balance."""

import functools
import itertools
import warnings
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import integrate, optimize, stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import s3vm_lib
from s3vm_lib import (
    CCCPS3VM,
    DAS3VM,
    FRS3VM,
    QNS3VM,
    SVM,
    TSGS3VM,
    NewtonS3VM,
    S3VMLight,
    balance_profile,
)
from s3vm_lib.base.classifier import Balance
from s3vm_lib.base.preparation import refits_of
from s3vm_lib.class_ratio import (
    RATIO_RULES,
    Evidence,
    Refits,
    black_box_shares,
    em_shares,
    label_posterior,
    pooled,
    powered_share,
    separation,
    structureless,
)
from s3vm_lib.class_ratio._profile import fold_ratios, ratio_grid
from s3vm_lib.utils.threads import thread_count

NAMES = ("auto", "bbse", "em", "gap", "labels", "objective", "posterior", "powered", "separation")


def two_clusters(n, share, gap=6.0, d=2, seed=0):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < round(share * n)).astype(int)
    X = rng.standard_normal((n, d))
    X[:, 0] += gap * (y - 0.5)
    order = rng.permutation(n)
    return X[order], y[order]


def hidden(y, rows):
    partly = np.full(y.size, -1)
    partly[rows] = y[rows]
    return partly


def misleading(seed=0, n=200, share=0.5, labels=(16, 8)):
    """Two clusters whose labels have another share than the rows."""
    X, y = two_clusters(n, share, seed=seed)
    rows = np.concatenate([np.flatnonzero(y == k)[:m] for k, m in zip((1, 0), labels, strict=True)])
    return X, y, hidden(y, rows)


# --- Formulas ---------------------------------------------------------------------------------


def test_label_posterior_is_bayes():
    grid = np.linspace(0, 1, 20001)[1:-1]
    density = grid**2.5 * (1 - grid) ** 6.5  # 3 of 10, Jeffreys' prior
    density /= np.trapezoid(density, grid)
    posterior = label_posterior(3, 7)
    np.testing.assert_allclose(posterior.mean(), np.trapezoid(grid * density, grid), rtol=1e-6)
    np.testing.assert_allclose(posterior.pdf(grid), density, rtol=1e-4, atol=1e-6)


def test_black_box_shares_invert_the_confusion():
    confusion = np.array([[0.9, 0.2, 0.0], [0.1, 0.7, 0.1], [0.0, 0.1, 0.9]])
    shares = np.array([0.5, 0.2, 0.3])
    np.testing.assert_allclose(black_box_shares(confusion, confusion @ shares), shares, atol=1e-12)
    # Predictions that no labeled row has had are all that is known.
    never = black_box_shares(np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([0.0, 1.0]))
    np.testing.assert_array_equal(never, [0.0, 1.0])
    # What no shares explain gives none that are negative.
    found = black_box_shares(np.array([[0.8, 0.3], [0.2, 0.7]]), np.array([0.9, 0.1]))
    assert np.all(found >= 0) and found.sum() == pytest.approx(1)


def test_em_shares_maximize_the_likelihood():
    rng = np.random.default_rng(0)
    chance = rng.beta(0.6, 1.1, 400)
    posterior, prior = np.column_stack([1 - chance, chance]), np.array([0.4, 0.6])
    weight = rng.integers(1, 4, 400).astype(float)

    def cost(r):
        return -weight @ np.log(posterior @ (np.array([1 - r, r]) / prior))

    best = optimize.minimize_scalar(cost, bounds=(0, 1), method="bounded", options={"xatol": 1e-9})
    found = em_shares(posterior, prior, weight, tol=1e-12)
    assert found[1] == pytest.approx(best.x, abs=1e-6)
    copies = np.repeat(posterior, weight.astype(int), axis=0)
    np.testing.assert_allclose(em_shares(copies, prior, tol=1e-12), found, atol=1e-8)


def test_powered_share_is_unbiased_and_its_error_is_right():
    # A classifier that errs one-sidedly: 3 of 10 negatives are called positive.
    rng = np.random.default_rng(1)
    estimates, errors, label_shares = [], [], []
    for _ in range(2000):
        y = (rng.random(100) < 0.4).astype(float)
        predicted = np.maximum(y, rng.random(100) < 0.3)
        held = powered_share(y, predicted, 0.4 + 0.3 * 0.6)
        estimates.append(held.estimate)
        errors.append(held.error)
        label_shares.append(y.mean())
    assert np.mean(estimates) == pytest.approx(0.4, abs=3e-3)
    assert np.mean(errors) == pytest.approx(np.std(estimates), rel=0.1)
    assert np.std(estimates) < 0.85 * np.std(label_shares)


def test_powered_share_by_hand():
    y, predicted = np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 0, 0])
    # means 1/2 and 1/4, covariance 1/8, variance 3/16 and 1/16 for a quarter of a row: λ = 1/2
    held = powered_share(y, predicted, 0.35)
    assert held.estimate == pytest.approx(0.5 + 0.5 * (0.35 - 0.25))
    # y − p/2 is ½, 1, 0, 0, of variance 11/64, so misfit 1/16 + ¼·1/4 … over 4 rows
    assert held.error == pytest.approx(np.sqrt((11 / 64 + 1 / 16) / 4))
    nothing = powered_share(y, np.zeros(4), 0.0)
    assert nothing.estimate == 0.5
    twice = powered_share(np.repeat(y, 2), np.repeat(predicted, 2), 0.35)
    weighted = powered_share(y, predicted, 0.35, np.full(4, 2.0))
    np.testing.assert_allclose(weighted, twice)


def test_pooled_prefers_the_better_model():
    same = pooled([0.2, 0.6], [0.1, 0.1])
    assert same.estimate == pytest.approx(0.4) and same.error == pytest.approx(0.1)
    better = pooled([0.2, 0.6], [0.05, 0.1])
    assert better.estimate == pytest.approx((16 * 0.2 + 0.6) / 17)
    assert 0.05 < better.error < 0.1


def test_separation_is_a_difference_of_likelihoods():
    rng = np.random.default_rng(0)
    f = np.concatenate([rng.normal(-1, 0.4, 70), rng.normal(1.5, 0.4, 30)])
    top = np.sort(f)[-25:]
    rest = np.sort(f)[:-25]
    within = (25 * top.var() + 75 * rest.var()) / 100
    two = sum(
        stats.norm.logpdf(g, g.mean(), np.sqrt(within)).sum() + g.size * np.log(g.size / 100)
        for g in (top, rest)
    )
    one = stats.norm.logpdf(f, f.mean(), f.std()).sum()
    assert separation(f, 0.25) == pytest.approx((two - one) / 100, rel=1e-9)
    assert separation(f, 0.3) > max(separation(f, 0.25), separation(f, 0.35))
    assert separation(3 * f + 1, 0.3) == pytest.approx(separation(f, 0.3))
    assert separation(-f, 0.7) == pytest.approx(separation(f, 0.3))
    weight = rng.integers(1, 4, f.size)
    for share in np.linspace(0.01, 0.99, 50):  # also where the cut divides the copies of a row
        copies = separation(np.repeat(f, weight), share)
        assert separation(f, share, weight) == pytest.approx(copies, abs=1e-12)
    assert separation(np.ones(5), 0.4) == 0.0


def test_separation_agrees_with_a_mixture():
    """The best cut of a clear mixture has the shares that maximum likelihood finds."""
    rng = np.random.default_rng(3)
    f = np.concatenate([rng.normal(-1, 0.3, 850), rng.normal(1, 0.3, 150)])
    grid = np.linspace(0.05, 0.95, 91)
    best = grid[np.argmax([separation(f, r) for r in grid])]
    mixture = GaussianMixture(2, covariance_type="tied", random_state=0).fit(f[:, None])
    assert best == pytest.approx(mixture.weights_[np.argmax(mixture.means_)], abs=0.01)
    halves = rng.standard_normal(20000)
    assert separation(halves, 0.5) == pytest.approx(
        0.5 * np.log(np.pi / (np.pi - 2)) - np.log(2), abs=0.01
    )


# --- Profiles ---------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_structureless_rows_keep_mean_and_covariance(weighted):
    X, _, partly = misleading()
    weight = np.where(weighted & (X[:, 0] > X[:, 0].mean()), 5.0, 1.0)
    model = QNS3VM()
    _, _, data = model._validated(X, partly, weight, None)
    generator = np.random.RandomState(0)
    means, covariances = zip(
        *[
            (Z.mean(axis=0), np.cov(Z.T))
            for Z in (structureless(data, generator).X for _ in range(300))
        ],
        strict=True,
    )
    mean, covariance = np.average(X, axis=0, weights=weight), np.cov(X.T, aweights=weight)
    np.testing.assert_allclose(np.mean(means, axis=0), mean, atol=0.05)
    np.testing.assert_allclose(np.mean(covariances, axis=0), covariance, rtol=0.05, atol=0.05)
    other = structureless(data, generator)
    np.testing.assert_array_equal(np.bincount(other.codes + 1), np.bincount(data.codes + 1))
    labeled = other.codes >= 0
    first, second = (
        np.average(X[partly == k], axis=0, weights=weight[partly == k]) for k in (0, 1)
    )
    along = other.X[labeled] @ (second - first)
    assert along[other.codes[labeled] == 1].min() > along[other.codes[labeled] == 0].max()


def test_structureless_sparse_rows_keep_their_columns():
    _, _, partly = misleading()
    A = sp.random(200, 30, 0.1, random_state=0, format="csr") + sp.csr_matrix(np.eye(200, 30))
    _, _, data = QNS3VM(kernel="linear")._validated(A, partly, None, None)
    other = structureless(data, np.random.RandomState(0)).X
    assert sp.issparse(other)
    np.testing.assert_allclose(np.sort(other.toarray(), axis=0), np.sort(A.toarray(), axis=0))
    assert np.abs(other - A).max() > 0


MACHINES = (
    QNS3VM(),
    NewtonS3VM(),
    CCCPS3VM(),
    S3VMLight(),
    DAS3VM(),
    s3vm_lib.MultiSwitchTSVM(),
    s3vm_lib.FRS3VM(random_state=0),
    TSGS3VM(random_state=0, n_steps=50),
)


@pytest.mark.parametrize("estimator", MACHINES, ids=lambda e: type(e).__name__)
def test_a_profile_is_what_single_fits_give(estimator):
    X, _, partly = misleading(n=80)
    profile = balance_profile(estimator, X, partly, [0.3, 0.5, 0.7])
    for k, r in enumerate((0.3, 0.5, 0.7)):
        alone = clone(estimator).set_params(balance=r).fit(X, partly)
        assert profile.objective[k] == pytest.approx(alone.objective_, rel=1e-6)
        share = np.mean(alone.decision_function(X[partly == -1]) > 0)
        assert profile.share[k] == pytest.approx(share, abs=0.02)
        f = alone.decision_function(X[partly == -1])
        assert profile.separation[k] == pytest.approx(separation(f, r), rel=1e-3, abs=1e-4)
    assert not hasattr(estimator, "classes_")
    assert (profile.positive, profile.negative) == (16, 8)


def test_a_profile_finds_the_share():
    X, y, partly = misleading()
    profile = balance_profile(
        QNS3VM(), X, partly, np.linspace(0.2, 0.9, 15), held_out=4, surrogates=2, random_state=0
    )
    assert profile.label_share == pytest.approx(2 / 3)
    true = y[partly == -1].mean()
    for criterion in ("gap", "separation"):
        assert abs(profile.best(criterion) - true) <= 0.08
    assert abs(profile.held_out.estimate - true) < 0.08
    assert abs(profile.mean() - true) < 0.06
    low, high = profile.interval(0.95)
    assert low < true < high and high - low < 0.3
    grid, density = profile.posterior()
    assert integrate.trapezoid(density, grid) == pytest.approx(1)
    assert profile.reference.shape == (2, 15)


def test_posterior_without_structure_is_that_of_the_labels():
    X, _, partly = misleading()
    profile = balance_profile(QNS3VM(), X, partly, np.linspace(0.01, 0.99, 9))
    assert profile.estimate is None and profile.held_out is None
    grid, density = profile.posterior(structure=0)
    np.testing.assert_allclose(density, label_posterior(16, 8).pdf(grid), rtol=1e-3, atol=1e-6)
    assert profile.mean(structure=0) == pytest.approx(label_posterior(16, 8).mean(), abs=1e-4)
    low, high = profile.interval(0.9, structure=0)
    np.testing.assert_allclose((low, high), label_posterior(16, 8).interval(0.9), atol=0.01)
    with pytest.raises(ValueError, match="surrogates"):
        profile.best("gap")
    with pytest.raises(ValueError, match="criterion must be"):
        profile.best("luck")


@pytest.mark.parametrize("ask", ["auto", "powered", "profile"])
def test_the_ratios_of_a_fold_are_those_of_the_labels_outside(monkeypatch, ask):
    X, _, partly = misleading(n=60, labels=(9, 7))
    data = QNS3VM()._validated(X, partly, None, None)[2]
    seen, solve = {}, Refits.fit

    def fit(self, ratio, hidden=()):
        if len(hidden):
            seen.setdefault(tuple(hidden), []).append(ratio)
        return solve(self, ratio, hidden)

    monkeypatch.setattr(Refits, "fit", fit)
    if ask == "profile":
        balance_profile(QNS3VM(), X, partly, held_out=5)
    else:
        RATIO_RULES[ask](data, 1.0)
    assert len(seen) == 5
    levels = np.linspace(0, 1, 11) if ask == "profile" else (0.15, 0.38, 0.62, 0.85)
    for rows, ratios in seen.items():
        outside = np.delete(partly, rows)
        ends = ratio_grid(np.sum(outside == 1), np.sum(outside == 0), 2)
        np.testing.assert_allclose(ratios, np.interp(levels, (0, 1), ends), rtol=1e-12)


def test_the_held_out_share_has_no_bias():
    """The expectation of an estimate with power 1, exactly, for a fold of 4 among 20 labels.

    The machine calls the top share r of infinitely many rows positive; outputs are normal, with
    means 1.5 apart, and 3 rows of 10 are positive. If the labels of the fold have a part in r, the
    estimates at the outer ratios are off by -0.9 and +0.5 points.
    """
    levels, bias = (0.15, 0.38, 0.62, 0.85), np.zeros(4)
    for a, b in itertools.product(range(5), range(17)):  # positives in the fold and outside
        codes = np.repeat([1, 0, 1, 0], [a, 4 - a, b, 16 - b])
        data = SimpleNamespace(codes=codes, sample_weight=np.ones(20))
        chance = stats.binom.pmf(a, 4, 0.3) * stats.binom.pmf(b, 16, 0.3)
        for k, r in enumerate(fold_ratios(data, [np.arange(4)], levels)[:, 0]):
            hits, false = called_positive(r)
            bias[k] += chance * (r - (a * hits + (4 - a) * false) / 4)
    np.testing.assert_allclose(bias, 0.0, atol=1e-12)


@functools.cache
def called_positive(r):
    """Shares of the positives and of the negatives that are among the top share r of all."""

    def shares(cut):
        return stats.norm.sf(cut - 1.5), stats.norm.sf(cut)

    cut = optimize.brentq(lambda x: np.dot((0.3, 0.7), shares(x)) - r, -10, 12, xtol=1e-14)
    return shares(cut)


def test_held_out_labels_are_not_seen():
    """Predictions of a fold are those of a fit in which its labels are −1."""
    X, _, partly = misleading(n=60)
    model = QNS3VM(balance=0.4)
    _, _, data = model._validated(X, partly, None, None)
    rows = np.flatnonzero(partly >= 0)[::5]
    less = partly.copy()
    less[rows] = -1
    refits = refits_of(clone(model), data)
    found = refits.fit(0.4, rows).outputs
    other = data._replace(codes=data.codes.copy())
    other.codes[rows] = 1 - data.codes[rows]
    np.testing.assert_array_equal(refits_of(clone(model), other).fit(0.4, rows).outputs, found)
    alone = model.fit(X, less)
    outputs = alone.decision_function(X)
    # The center of the coordinates is that of the rows without label before the fold was hidden.
    np.testing.assert_array_equal(found > 0, outputs > 0)
    np.testing.assert_allclose(found, outputs, atol=0.15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(ratios=[0.5, 0.4]), "ratios must be increasing"),
        (dict(ratios=[0.0, 0.4]), "ratios must be increasing"),
        (dict(positive=7), "positive must be one of the classes"),
        (dict(estimator=SVM()), "estimator must have a parameter balance"),
        (dict(estimator=QNS3VM(gamma=-1.0)), "'gamma' parameter of QNS3VM"),
        (dict(estimator=QNS3VM(tol=-1.0)), "'tol' parameter of QNS3VM"),
        (dict(estimator=QNS3VM(max_iter=0)), "'max_iter' parameter of QNS3VM"),
        (dict(y=None), "y must hold unlabeled rows"),
        (dict(held_out=1), "held_out must be 0 or an integer from 2 on, got 1"),
        (dict(held_out=-3), "held_out must be 0 or an integer from 2 on, got -3"),
        (dict(surrogates=-3), "surrogates must be an integer from 0 on, got -3"),
        (dict(estimator=QNS3VM(kernel="precomputed"), surrogates=1), "surrogates need rows"),
    ],
)
def test_profile_refuses(change, message):
    X, y, partly = misleading(n=40)
    arguments = dict(estimator=QNS3VM(), X=X, y=partly) | change
    if arguments["y"] is None:
        arguments["y"] = y
    if arguments["estimator"].get_params().get("kernel") == "precomputed":
        arguments["X"] = X @ X.T
    with pytest.raises(ValueError, match=message):
        balance_profile(**arguments)


def test_profile_needs_two_labels_to_hold_out():
    X, y = two_clusters(30, 0.5)
    rows = [np.flatnonzero(y == 0)[0], np.flatnonzero(y == 1)[0]]
    with pytest.raises(ValueError, match="held_out needs two labeled rows"):
        balance_profile(QNS3VM(), X, hidden(y, rows), held_out=5)


def test_a_profile_warns_of_limits():
    X, _, partly = misleading(n=40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        balance_profile(QNS3VM(), X, partly, [0.4, 0.6], held_out=2)
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=1") as caught:
        balance_profile(QNS3VM(max_iter=1), X, partly, [0.4, 0.6], held_out=2)
    assert len(caught) == 1 and caught[0].filename == __file__


def test_a_profile_needs_no_transduction():
    X, _, partly = misleading(n=60)
    profiles = [
        balance_profile(
            FRS3VM(random_state=0, transduce=asked),
            X,
            partly,
            [0.3, 0.6],
            surrogates=1,
            random_state=0,
        )
        for asked in (True, False)
    ]
    np.testing.assert_array_equal(profiles[0].share, profiles[1].share)
    np.testing.assert_array_equal(profiles[0].objective, profiles[1].objective)
    assert np.all(np.isfinite(profiles[0].reference))


def test_a_profile_has_the_threads_of_its_estimator(monkeypatch):
    X, _, partly = misleading(n=40)
    seen = []
    solve = Refits.fit
    monkeypatch.setattr(
        Refits, "fit", lambda self, *ask: seen.append(thread_count()) or solve(self, *ask)
    )
    balance_profile(QNS3VM(n_jobs=2), X, partly, [0.4, 0.6], held_out=2, surrogates=1)
    assert set(seen) == {2}


def test_one_ratio_has_no_density():
    X, _, partly = misleading(n=40)
    profile = balance_profile(QNS3VM(), X, partly, [0.5])
    assert profile.best("objective") == 0.5 and profile.objective.shape == (1,)
    for ask in (profile.posterior, profile.mean, profile.interval):
        with pytest.raises(ValueError, match=r"needs two ratios or more, got \[0\.5\]"):
            ask()


def test_the_posterior_needs_no_numpy_2(monkeypatch):
    X, _, partly = misleading(n=40)
    profile = balance_profile(QNS3VM(), X, partly, [0.3, 0.5, 0.7])
    expected = profile.mean()
    monkeypatch.delattr(np, "trapezoid", raising=False)
    assert profile.mean() == expected


def test_plot_draws_all_there_is():
    pytest.importorskip("matplotlib").use("Agg")
    X, _, partly = misleading(n=40)
    ax = balance_profile(QNS3VM(), X, partly, [0.3, 0.5, 0.7], held_out=2).plot()
    assert {t.get_text() for t in ax.get_legend().get_texts()} >= {"posterior", "labels alone"}


# --- Names of balance ---------------------------------------------------------------------------


def test_every_name_has_a_rule():
    assert tuple(sorted(get_args(get_args(Balance)[0]))) == NAMES
    assert set(RATIO_RULES) == set(NAMES) - {"labels"}


@pytest.mark.parametrize("name", NAMES)
def test_names_give_a_share(name):
    X, y, partly = misleading()
    model = QNS3VM(balance=name).fit(X, partly)
    true = y[partly == -1].mean()
    assert model.class_ratio_.sum() == pytest.approx(1)
    assert model.problem_.ratio == model.class_ratio_[1]
    # Labels of the wrong share mislead those who look at nothing else.
    limit = {"labels": 0.21, "posterior": 0.2}.get(name, 0.07)
    assert abs(model.class_ratio_[1] - true) < limit, model.class_ratio_
    if name in ("labels", "posterior"):
        assert abs(model.class_ratio_[1] - true) > 0.15


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"gap"}))
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_names_do_not_depend_on_order_copies_or_naming(name, kernel):
    X, _, partly = misleading(n=60, labels=(8, 5))
    rng = np.random.default_rng(0)

    def fitted(X, partly, weight=None):
        A = X @ X.T if kernel == "precomputed" else X
        model = QNS3VM(balance=name, kernel=kernel, gamma=0.5, C_star=0.5)
        return model.fit(A, partly, sample_weight=weight).class_ratio_[1]

    there = fitted(X, partly)
    order = rng.permutation(60)
    assert fitted(X[order], partly[order]) == pytest.approx(there, abs=1e-6)
    swapped = np.where(partly < 0, -1, 1 - partly)
    assert fitted(X, swapped) == pytest.approx(1 - there, abs=1e-6)
    weight = rng.integers(1, 3, 60)
    copies = np.repeat(np.arange(60), weight)
    several = fitted(X[copies], partly[copies])
    assert fitted(X, partly, weight.astype(float)) == pytest.approx(several, abs=1e-6)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"gap"}))
def test_names_with_three_classes(name):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], (60, 30, 30))
    X = rng.standard_normal((120, 2)) + 6 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    rows = np.concatenate([np.flatnonzero(y == k)[:6] for k in range(3)])
    model = QNS3VM(balance=name).fit(X, hidden(y, rows))
    assert model.class_ratio_.shape == (3,)
    assert model.class_ratio_.sum() == pytest.approx(1)
    if name not in ("labels", "posterior"):
        assert model.class_ratio_[0] > 0.4  # the labels say a third


def test_shares_may_be_given_by_class():
    X, _, partly = misleading(n=60)
    number = QNS3VM(balance=0.3).fit(X, partly)
    named = QNS3VM(balance={0: 0.7, 1: 0.3}).fit(X, partly)
    np.testing.assert_allclose(named.dual_coef_, number.dual_coef_)
    np.testing.assert_allclose(named.class_ratio_, [0.7, 0.3])
    assert QNS3VM(balance=None).fit(X, partly).class_ratio_ is None


@pytest.mark.parametrize(
    ("balance", "message"),
    [
        ({0: 0.5}, "balance must give the share of each"),
        ({0: 0.5, 1: 0.3, 2: 0.2}, "balance must give the share of each"),
        ({0: 0.5, 1: 0.4}, "positive with sum 1"),
        ({0: 1.0, 1: 0.0}, "positive with sum 1"),
        ({0: np.nan, 1: 0.5}, "positive with sum 1"),
        ({0: "half", 1: 0.5}, "shares of balance must be numbers"),
        ({0: None, 1: 0.5}, "shares of balance must be numbers"),
        ("best", "'balance' parameter"),
        (1.5, "'balance' parameter"),
    ],
)
def test_wrong_shares_are_refused(balance, message):
    X, _, partly = misleading(n=40)
    with pytest.raises(ValueError, match=message):
        QNS3VM(balance=balance).fit(X, partly)


def test_below_eight_labels_auto_is_their_share():
    X, y = two_clusters(200, 0.5)
    for n_positive, trusted in ((5, True), (6, False)):
        rows = [*np.flatnonzero(y == 0)[:2], *np.flatnonzero(y == 1)[:n_positive]]
        ratio = QNS3VM().fit(X, hidden(y, rows)).class_ratio_[1]
        assert (ratio == n_positive / (2 + n_positive)) == trusted


def test_the_range_of_a_rare_class_holds_its_share():
    for positive, negative in ((5, 2000), (1, 300), (1e-3, 1e20), (1e20, 1e19), (1e30, 1e30)):
        grid = ratio_grid(positive, negative, 9)
        assert np.all(np.diff(grid) > 0) and 0 < grid[0] and grid[-1] < 1
        share = positive / (positive + negative)
        assert share < 1e-9 or grid[0] < share < grid[-1]
    np.testing.assert_allclose(ratio_grid(1, 3, 2), (0.01, label_posterior(1, 3).isf(1e-3)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_equal_rows_leave_the_share_of_the_labels(name, kernel):
    """Classes that no machine tells apart: neither their predictions nor a gap say a share."""
    y = np.repeat([1, 0, -1], [6, 10, 44])
    ratio = QNS3VM(balance=name, kernel=kernel).fit(np.ones((60, 2)), y).class_ratio_[1]
    assert ratio == pytest.approx(6.5 / 17 if name == "posterior" else 6 / 16)


def test_bbse_of_three_classes_of_which_two_are_equal_is_the_share_of_the_labels():
    y = np.r_[np.repeat([0, 1, 2], [3, 4, 5]), np.full(30, -1)]
    X = np.where(y == 2, 3.0, 0.0)[:, None] * np.ones((42, 2))
    ratio = QNS3VM(balance="bbse").fit(X, y).class_ratio_
    np.testing.assert_allclose(ratio, np.array([3, 4, 5]) / 12)


@pytest.mark.parametrize("name", ["bbse", "em"])
def test_no_share_is_zero(name):
    X, y = two_clusters(80, 0.0)
    y[:4] = 1
    X[:4, 0] += 12.0  # the unlabeled rows are all of one class
    rows = np.arange(12)
    ratio = QNS3VM(balance=name).fit(X, hidden(y, rows)).class_ratio_
    np.testing.assert_allclose(ratio, [0.999, 0.001], atol=1e-4)


def test_one_label_of_a_class_is_enough_for_a_fit():
    X, y = two_clusters(60, 0.5)
    rows = [np.flatnonzero(y == 0)[0], *np.flatnonzero(y == 1)[:4]]
    for name in NAMES:
        ratio = QNS3VM(balance=name).fit(X, hidden(y, rows)).class_ratio_[1]
        assert 0 < ratio < 1


def test_many_rows_are_thinned_evenly():
    X, y = two_clusters(3000, 0.3)
    partly = hidden(y, np.random.default_rng(0).permutation(3000)[:30])
    _, _, data = QNS3VM()._validated(X, partly, None, None)
    evidence = Evidence(data, 1)
    unlabeled = evidence.data.codes < 0
    assert unlabeled.sum() == 500 and (~unlabeled).sum() == 30
    assert evidence.data.sample_weight[unlabeled].sum() == pytest.approx(2970)
    kept = np.mean(y[evidence.data.rows[unlabeled]])
    assert abs(kept - y[partly == -1].mean()) < 0.01
    assert abs(evidence.auto() - 0.3) < 0.02


def test_thinned_rows_of_a_weight_are_copies():
    X, y = two_clusters(1200, 0.5)
    partly = hidden(y, np.random.default_rng(0).permutation(1200)[:20])
    weight = np.where((y == 1) & (partly == -1), 9, 1)
    _, _, data = QNS3VM()._validated(X, partly, weight.astype(float), None)
    thin = Evidence(data, 1).data
    unlabeled = thin.codes < 0
    s = thin.sample_weight[unlabeled]
    np.testing.assert_array_equal(thin.loss_weight[unlabeled], s)
    rows = partly == -1
    true = weight[rows] @ y[rows] / weight[rows].sum()
    assert s @ y[thin.rows[unlabeled]] / s.sum() == pytest.approx(true, abs=0.005)
    assert s.sum() == pytest.approx(weight[rows].sum())
    copies = QNS3VM()._validated(
        np.repeat(X, weight, axis=0), np.repeat(partly, weight), None, None
    )[2]
    for name in ("auto", "powered", "separation", "objective"):
        found, expected = (RATIO_RULES[name](rows, 1.0) for rows in (data, copies))
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_machine_without_unlabeled_term_asks_nobody():
    X, _, partly = misleading(n=40)
    model = QNS3VM(C_star=0.0).fit(X, partly)
    assert model.class_ratio_[1] == pytest.approx(2 / 3)


def test_partial_fit_takes_shares_too():
    X, _, partly = misleading(n=60)
    number = TSGS3VM(balance=0.4, random_state=0).partial_fit(X, partly)
    named = TSGS3VM(balance={0: 0.6, 1: 0.4}, random_state=0).partial_fit(X, partly)
    assert number.problem_.ratio == named.problem_.ratio == 0.4
    assert TSGS3VM(random_state=0).partial_fit(X, partly).problem_.ratio == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", ["auto", "powered", "separation", "bbse"])
@pytest.mark.parametrize("a", [2.0**20, 1e-6])
def test_the_unit_of_rows_and_kernel_is_free(name, a):
    X, _, partly = misleading(n=80)
    there = QNS3VM(balance=name, kernel="linear").fit(X, partly).class_ratio_[1]
    rows = QNS3VM(balance=name, kernel="linear", C=1 / a**2).fit(a * X, partly)
    assert rows.class_ratio_[1] == pytest.approx(there, abs=1e-4)
    kernel = QNS3VM(balance=name, kernel="linear", sigma_f=a, C=1 / a**2).fit(X, partly)
    assert kernel.class_ratio_[1] == pytest.approx(there, abs=1e-4)


def test_single_precision_is_double_for_the_ratio():
    X, _, partly = misleading(n=80)
    X = np.round(4 * X)
    double = TSGS3VM(random_state=0, n_steps=20).fit(X, partly)
    single = TSGS3VM(random_state=0, n_steps=20).fit(X.astype(np.float32), partly)
    assert single.class_ratio_[1] == double.class_ratio_[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["auto", "bbse", "powered"])
def test_rows_of_a_file_far_from_the_origin_have_the_ratio_of_others(name, dtype, tmp_path):
    X, _, partly = misleading(n=80)
    X = np.round(4 * X) + 2**22
    rows = np.memmap(tmp_path / "rows", dtype, "w+", shape=X.shape)
    rows[:] = X
    here, there = (NewtonS3VM(balance=name, kernel="linear").fit(Z, partly) for Z in (X, rows))
    assert there.class_ratio_ == pytest.approx(here.class_ratio_, rel=1e-6)
    assert here.class_ratio_[1] != pytest.approx(2 / 3)  # the share of the labels
