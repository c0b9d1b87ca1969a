"""Losses: values by hand, derivatives by differences, facts, DC splits, extreme outputs."""

import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from s3vm_lib import losses
from s3vm_lib.losses import (
    LABELED_LOSSES,
    UNLABELED_LOSSES,
    LabeledLoss,
    UnlabeledLoss,
    labeled_loss,
    unlabeled_loss,
)

LABELED = [
    *(LabeledLoss(name) for name in LABELED_LOSSES),
    LabeledLoss("smooth_hinge", 1.5),
    LabeledLoss("modified_logistic", 3.0),
    LabeledLoss("epsilon_insensitive", 0.7),
]
UNLABELED = [
    *(UnlabeledLoss(name) for name in UNLABELED_LOSSES),
    UnlabeledLoss("symmetric_ramp", 0.4),
    UnlabeledLoss("symmetric_ramp", 0.0),
    UnlabeledLoss("gaussian", 5.0),
    UnlabeledLoss("symmetric_smooth_hinge", 1.5),
    UnlabeledLoss("symmetric_modified_logistic", 3.0),
    UnlabeledLoss("symmetric_epsilon_insensitive", 0.7),
]


def name_of(loss):
    return f"{loss.name}-{loss.parameter}"


def away_from_kinks(f, distance=0.02):
    """Outputs that are not close to any kink of any loss above, for either label."""
    kinks = np.array([-1.7, -1.5, -1.1, -1, -0.9, -0.5, -0.4, -0.3, 0, 0.3, 0.4, 0.5, 0.9, 1, 1.1])
    kinks = np.r_[kinks, 1.5, 1.7]
    return f[np.abs(f[:, None] - kinks).min(axis=1) > distance]


def fourth_order_difference(function, f, h=1e-3):
    return (
        -function(f + 2 * h) + 8 * function(f + h) - 8 * function(f - h) + function(f - 2 * h)
    ) / (12 * h)


def end_slopes(loss, y):
    """Slopes far to the left and to the right; no slope of a convex loss lies outside of them."""
    slopes = loss.derivative(y, np.array([-1e9, 1e9]))
    return np.where(np.abs(slopes) > 1e6, np.copysign(math.inf, slopes), slopes)


OUTPUTS = away_from_kinks(np.linspace(-3, 3, 241))


@pytest.mark.parametrize("loss", LABELED, ids=name_of)
@pytest.mark.parametrize("y", [-1, 1])
def test_labeled_derivative_equals_differences(loss, y):
    # The fifth derivative of the modified logistic loss is of the order p⁴ = 160000.
    expected = fourth_order_difference(lambda f: loss.value(y, f), OUTPUTS, h=2e-4)
    assert_allclose(loss.derivative(y, OUTPUTS), expected, atol=2e-10, rtol=0)


@pytest.mark.parametrize("loss", UNLABELED, ids=name_of)
def test_unlabeled_derivative_equals_differences(loss):
    expected = fourth_order_difference(loss.value, OUTPUTS, h=2e-4)
    assert_allclose(loss.derivative(OUTPUTS), expected, atol=2e-10, rtol=0)


def test_values_by_hand():
    f = np.array([-2.0, 0.0, 0.5, 1.0, 3.0])
    expected = {
        "hinge": [3, 1, 0.5, 0, 0],
        "squared_hinge": [4.5, 0.5, 0.125, 0, 0],
        "smooth_hinge": [2.75, 0.75, 0.25, 0, 0],
        "logistic": np.log1p(np.exp(-f)),
        "modified_logistic": np.log1p(np.exp(20 * (1 - f))) / 20,
        "l1": [3, 1, 0.5, 0, 2],
        "epsilon_insensitive": [2.9, 0.9, 0.4, 0, 1.9],
    }
    missing = "a loss has no values by hand: enter them, in the order of the losses"
    assert list(expected) == list(LABELED_LOSSES), missing
    for name, values in expected.items():
        assert_allclose(LabeledLoss(name).value(1, f), values, rtol=1e-14, err_msg=name)
    expected = {
        "symmetric_hinge": [0, 1, 0.5, 0, 0],
        "squared_symmetric_hinge": [0, 0.5, 0.125, 0, 0],
        "symmetric_ramp": [1.3, 2, 1.8, 1.3, 1.3],
        "gaussian": np.exp(-3 * f**2),
        "symmetric_smooth_hinge": [0, 0.75, 0.25, 0, 0],
        "symmetric_logistic": np.log1p(np.exp(-abs(f))),
        "symmetric_modified_logistic": np.log1p(np.exp(20 * (1 - abs(f)))) / 20,
        "symmetric_l1": [1, 1, 0.5, 0, 2],
        "symmetric_epsilon_insensitive": [0.9, 0.9, 0.4, 0, 1.9],
    }
    assert list(expected) == list(UNLABELED_LOSSES), missing
    for name, values in expected.items():
        assert_allclose(UnlabeledLoss(name).value(f), values, rtol=1e-14, err_msg=name)


@pytest.mark.parametrize("loss", UNLABELED, ids=name_of)
def test_unlabeled_losses_are_even_with_zero_slope_at_zero(loss):
    f = np.linspace(-4, 4, 4001)
    assert_allclose(loss.value(f), loss.value(-f), rtol=0, atol=1e-15)
    assert_allclose(loss.derivative(f), -loss.derivative(-f), rtol=0, atol=1e-15)
    assert loss.derivative(0.0) == 0.0


def over_their_ranges(make, names):
    """Losses with parameters from one end of what makes sense to the other."""
    for name in names:
        if make(name).parameter is None:
            yield make(name)
        elif name == "symmetric_ramp":
            yield from (make(name, s) for s in np.linspace(-0.99, 0.99, 12))
        else:
            yield from (make(name, p) for p in np.geomspace(0.01, 100.0, 13))


@pytest.mark.parametrize(
    "loss",
    [
        *over_their_ranges(LabeledLoss, LABELED_LOSSES),
        *over_their_ranges(UnlabeledLoss, UNLABELED_LOSSES),
    ],
    ids=lambda loss: f"{loss.name}-{loss.parameter:.3g}" if loss.parameter else loss.name,
)
def test_facts_hold_over_the_whole_range_of_the_parameter(loss):
    """Lipschitz constants, convexity and DC parts, on grids that follow what the loss bends at."""
    scales = np.geomspace(1e-3, 30.0, 60)
    kinks = np.r_[1.0, -1.0, 0.0]
    if loss.parameter is not None:
        kinks = np.r_[kinks, 1 + loss.parameter, 1 - loss.parameter, loss.parameter]
    width = 1.0 if loss.parameter is None else min(1.0, 1 / loss.parameter)
    reach = 1 + 40 * (width if loss.parameter is None or loss.parameter > 1 else 1 / loss.parameter)
    near = [k + s * width * scales for k in np.r_[kinks, -kinks] for s in (-1, 1)]
    f = np.unique(np.concatenate([np.linspace(-4, 4, 2001), *near]))
    f = np.unique(np.r_[f, np.linspace(-reach, reach, 4001)])
    labels = (1, -1) if isinstance(loss, LabeledLoss) else (None,)
    of = lambda part, y: getattr(loss, part)(*(() if y is None else (y,)), f)  # noqa: E731
    steepest, bend, convex = 0.0, 0.0, True
    for y in labels:
        slope = of("derivative", y)
        gaps = np.diff(f)
        steepest = max(steepest, np.abs(slope).max())
        bend = max(bend, np.abs(np.diff(slope)[gaps > 1e-7] / gaps[gaps > 1e-7]).max())
        convex &= bool(np.all(np.diff(slope) >= -1e-9))
    smoothest = {"squared_hinge": 1.0, "logistic": 0.25}.get(loss.name)
    if loss.parameter is not None:  # largest second derivatives
        p = loss.parameter
        smoothest = {"smooth_hinge": 1 / p, "modified_logistic": p / 4, "gaussian": 2 * p}.get(
            loss.name
        )
    assert loss.differentiable == (bend < 300)  # more is a jump, in one step of the grid
    if smoothest is not None:
        assert 0.9 * smoothest <= bend <= smoothest * (1 + 1e-5)
    if isinstance(loss, LabeledLoss):
        assert convex
        assert steepest <= loss.lipschitz * (1 + 1e-9) + 1e-12
        assert math.isinf(loss.lipschitz) or steepest >= 0.9 * loss.lipschitz
    else:
        (first, up), (second, down) = loss.convex_part(f), loss.concave_part(f)
        size = 1.0 + np.abs(first).max()
        assert_allclose(first + second, loss.value(f), rtol=0, atol=1e-12 * size)
        assert np.all(np.diff(up) >= -1e-9 * size) and np.all(np.diff(down) <= 1e-9 * size)


@pytest.mark.parametrize("loss", UNLABELED, ids=name_of)
def test_dc_split(loss):
    f = np.linspace(-3, 3, 1201)
    convex, convex_slope = loss.convex_part(f)
    concave, concave_slope = loss.concave_part(f)
    assert_allclose(convex + concave, loss.value(f), rtol=0, atol=1e-12)
    assert np.all(np.diff(convex_slope) >= -1e-9)
    assert np.all(np.diff(concave_slope) <= 1e-9)
    assert_allclose(
        fourth_order_difference(lambda g: loss.convex_part(g)[0], OUTPUTS, h=2e-4),
        loss.convex_part(OUTPUTS)[1],
        atol=1e-9,
    )
    assert_allclose(
        fourth_order_difference(lambda g: loss.concave_part(g)[0], OUTPUTS, h=2e-4),
        loss.concave_part(OUTPUTS)[1],
        atol=1e-9,
    )
    assert_allclose(
        loss.convex_part(OUTPUTS)[1] + loss.concave_part(OUTPUTS)[1],
        loss.derivative(OUTPUTS),
        atol=1e-12,
    )


@pytest.mark.parametrize("labeled", LABELED, ids=name_of)
def test_effective_loss_is_the_least_loss_over_both_labels(labeled):
    loss = labeled.effective
    assert (loss.effective_of, loss.parameter) == (labeled.name, labeled.parameter)
    f = np.linspace(-2, 2, 401)
    assert_allclose(
        loss.value(f), np.minimum(labeled.value(1, f), labeled.value(-1, f)), atol=1e-15
    )
    slope = np.where(f > 0, labeled.derivative(1, f), labeled.derivative(-1, f))
    assert_allclose(loss.derivative(f), np.where(f == 0, 0, slope), atol=1e-15)


@pytest.mark.parametrize("loss", UNLABELED, ids=name_of)
def test_pieces_have_the_loss_as_their_minimum(loss):
    if loss.name == "gaussian":
        assert loss.pieces is None and loss.effective_of is None
        return
    labeled, height, base = loss.pieces
    f = np.linspace(-3, 3, 601)
    least = np.minimum(np.minimum(labeled.value(1, f), labeled.value(-1, f)), height)
    assert_allclose(loss.value(f), base + least, atol=1e-14)
    assert_allclose(base, loss.value(np.r_[f, -60.0, 60.0]).min(), atol=2e-3)
    assert math.isinf(height) == (loss.name != "symmetric_ramp")


def test_the_only_convex_unlabeled_loss():
    wide = LabeledLoss("epsilon_insensitive", 1.2).effective
    assert np.all(np.diff(wide.value(np.linspace(-4, 4, 401)), 2) >= -1e-12)
    assert_allclose(wide.convex_part(OUTPUTS)[0], wide.value(OUTPUTS))


@pytest.mark.parametrize("loss", LABELED, ids=name_of)
@pytest.mark.parametrize("y", [-1, 1])
def test_conjugate_is_the_largest_of_a_f_minus_loss(loss, y):
    f = np.linspace(-60, 60, 240_001)
    slopes = np.array([-0.999, -0.7, -0.2, 0.0, 0.2, 0.7, 0.999])
    for a in slopes:
        largest = np.max(a * f - loss.value(y, f))
        found = loss.conjugate(y, a)
        if math.isinf(found):
            assert largest > 0.1 * 60 * abs(a)  # grows with the range of f
        else:
            assert_allclose(found, largest, atol=2e-4)
            assert found >= largest - 1e-12
    # The line through a point with the slope there touches the loss.
    a = loss.derivative(y, OUTPUTS)
    assert_allclose(a * OUTPUTS - loss.conjugate(y, a), loss.value(y, OUTPUTS), atol=1e-12)
    least, most = end_slopes(loss, y)
    for a in (-1.01, 1.01):
        assert math.isinf(loss.conjugate(y, a)) == (not least <= a <= most)


@pytest.mark.parametrize("loss", LABELED, ids=name_of)
@pytest.mark.parametrize("y", [-1, 1])
def test_labeled_curvature_equals_differences(loss, y):
    found = [losses.labeled_curvature(loss.code, y, f, loss.p) for f in OUTPUTS]
    expected = fourth_order_difference(lambda f: loss.derivative(y, f), OUTPUTS, 1e-4)
    assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("loss", UNLABELED, ids=name_of)
def test_unlabeled_curvature_equals_differences(loss):
    found = [losses.unlabeled_curvature(loss.code, f, loss.p) for f in OUTPUTS]
    expected = fourth_order_difference(loss.derivative, OUTPUTS, 1e-4)
    assert_allclose(found, expected, atol=1e-6)
    if loss.name == "gaussian":
        assert losses.unlabeled_curvature(loss.code, 0.0, loss.p) == -2 * loss.p


@pytest.mark.parametrize("loss", LABELED, ids=name_of)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_the_dual_side_is_that_of_the_conjugate(loss, y):
    """Domain, kinks, curvature and dual cost, against the conjugate itself."""
    least, most = losses.slope_range(loss.code, y)
    assert_array_equal([least, most], end_slopes(loss, y))
    a = np.linspace(max(least, -3.0), min(most, 3.0), 41)
    assert np.isfinite(loss.conjugate(y, a)).all()
    outside = [edge for edge in (least - 1e-9, most + 1e-9) if np.isfinite(edge)]
    assert np.isinf(loss.conjugate(y, np.array(outside))).all()

    inside, c, h = a[(a - a.min() > 0.01) & (a.max() - a > 0.01) & (np.abs(a) > 0.01)], 0.7, 1e-4
    values = [loss.conjugate(y, inside + step) for step in (-h, 0.0, h)]
    bend = (values[0] - 2 * values[1] + values[2]) / h**2
    found = [losses.conjugate_curvature(loss.code, one, loss.p, c) for one in inside]
    assert_allclose(found, bend / c, rtol=1e-3, atol=1e-6)
    for one in inside:
        low, high = losses.slope_piece(loss.code, y, one)
        assert least <= low <= one <= high <= most
        middle = 0.5 * (max(low, -3.0) + min(high, 3.0))  # where a kink would be
        near, at, far = loss.conjugate(y, np.array([middle - h, middle, middle + h]))
        assert abs(near - 2 * at + far) < 100 * h**2, "the conjugate has a kink in slope_piece"

    beta = -c * a
    lo, mid, hi, below, above = losses.dual_cost(loss.code, loss.p, y, c)
    ridge = losses.dual_ridge(loss.code, loss.p, c)
    if "logistic" in loss.name:
        assert np.isnan([lo, mid, hi, below, above, ridge]).all()
        return
    assert (lo, hi) == (-c * most, -c * least)
    anchor = mid if np.isfinite(mid) and mid not in (lo, hi) else 0.0
    cost = np.where(beta < anchor, below, above) * beta + 0.5 * ridge * beta**2
    assert_allclose(cost, c * loss.conjugate(y, a), atol=1e-12)
    assert_array_equal(losses.dual_cost(loss.code, loss.p, 0.0, c), 0.0)
    assert losses.dual_ridge(loss.code, loss.p, 0.0) == 0.0


def test_a_code_that_is_no_loss_gives_nan():
    for code in (-1, len(LABELED_LOSSES)):
        for function in ("value", "derivative", "curvature", "conjugate"):
            assert math.isnan(getattr(losses, f"labeled_{function}")(code, 1.0, -0.5, 0.5))
        assert math.isnan(losses.conjugate_curvature(code, -0.5, 0.5, 1.0))
        assert math.isnan(losses.dual_ridge(code, 0.5, 1.0))
        assert np.isnan(losses.slope_range(code, 1.0)).all()
        assert np.isnan(losses.slope_piece(code, 1.0, -0.5)).all()
        assert np.isnan(losses.dual_cost(code, 0.5, 1.0, 1.0)).all()
    for code in (-1, len(UNLABELED_LOSSES)):
        for function in ("value", "derivative", "curvature"):
            assert math.isnan(getattr(losses, f"unlabeled_{function}")(code, 0.5, 0.5))


def test_symmetric_ramp_is_a_difference_of_hinges_and_the_hinge_plus_one_at_zero():
    f = np.linspace(-2, 2, 401)
    hinge = lambda a, z: np.maximum(0, a - z)  # noqa: E731
    for s in (-0.3, 0.0, 0.4):
        expected = sum(hinge(1, z) - hinge(s, z) for z in (f, -f))
        assert_allclose(UnlabeledLoss("symmetric_ramp", s).value(f), expected, atol=1e-14)
    difference = UnlabeledLoss("symmetric_ramp", 0.0).value(f)
    assert_allclose(difference, 1 + UnlabeledLoss("symmetric_hinge").value(f), atol=1e-14)


def test_modified_logistic_lies_above_the_hinge_by_at_most_log2_over_sharpness():
    f = np.linspace(-3, 5, 801)
    hinge = LabeledLoss("hinge").value(1, f)
    for sharpness in (5.0, 20.0, 500.0):
        gap = LabeledLoss("modified_logistic", sharpness).value(1, f) - hinge
        assert gap.min() >= -1e-15
        assert_allclose(gap.max(), math.log(2) / sharpness, rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e3, 1e6])
def test_extreme_outputs_are_safe_and_keep_their_type(dtype, size):
    f = np.array([-size, size], dtype=dtype)
    with np.errstate(all="raise", under="ignore"):
        for loss in LABELED:
            for y in (-1, 1):
                value, slope = loss.value(y, f), loss.derivative(y, f)
                assert value.dtype == slope.dtype == dtype
                assert np.isfinite(value).all() and np.isfinite(slope).all()
            if loss.name in ("hinge", "modified_logistic", "logistic"):
                assert_allclose(loss.value(1, f), [size, 0], rtol=2e-3)
                assert_array_equal(loss.derivative(1, f), [-1, 0])
        for loss in UNLABELED:
            value, slope = loss.value(f), loss.derivative(f)
            assert value.dtype == slope.dtype == dtype
            assert np.isfinite(value).all()
            far = 0.0
            if loss.effective_of is not None:
                far = losses.slope_range(losses.labeled_code(loss.code), 1.0)[1]
            if math.isfinite(far):
                assert_array_equal(slope, [-far, far])
                assert_allclose(value, far * size, rtol=0, atol=2.0)  # as margins are at ±1


def test_arrays_of_any_shape_scalars_and_integers():
    loss = LabeledLoss("hinge")
    assert loss.value(np.array([[1], [-1]]), np.zeros((2, 3))).shape == (2, 3)
    assert loss.value(1, 0) == 1.0
    assert loss.value(np.array([1, -1]), np.array([0, 2])).dtype == np.float64
    assert UnlabeledLoss("gaussian").derivative(np.zeros((2, 0))).shape == (2, 0)


def test_scalar_functions_agree_with_arrays():
    f = np.linspace(-2, 2, 31)
    for loss in LABELED:
        one = [losses.labeled_value(loss.code, -1.0, v, loss.p) for v in f]
        assert_array_equal(one, loss.value(-1, f))
        one = [losses.labeled_derivative(loss.code, -1.0, v, loss.p) for v in f]
        assert_array_equal(one, loss.derivative(-1, f))
    for loss in UNLABELED:
        one = [losses.unlabeled_value(loss.code, v, loss.p) for v in f]
        assert_array_equal(one, loss.value(f))
        one = [losses.unlabeled_derivative(loss.code, v, loss.p) for v in f]
        assert_array_equal(one, loss.derivative(f))


def test_codes_names_equality_and_pickle():
    for code, name in enumerate(LABELED_LOSSES):
        assert getattr(losses, name.upper()) == labeled_loss(name).code == code
    for code, name in enumerate(UNLABELED_LOSSES):
        assert code >= 4 or getattr(losses, name.upper()) == code
        assert code == unlabeled_loss(name).code == code
    loss = labeled_loss("modified_logistic")
    assert loss == LabeledLoss("modified_logistic", 20.0)
    assert labeled_loss(loss) is loss
    assert unlabeled_loss(unlabeled_loss("gaussian", 2)).parameter == 2.0
    assert pickle.loads(pickle.dumps(loss)) == loss


@pytest.mark.parametrize(
    ("make", "name", "parameter", "message"),
    [
        (labeled_loss, "hinged", None, "labeled_loss must be one of .*'hinge'.*got 'hinged'"),
        (labeled_loss, "hinge", 1.0, "labeled_loss 'hinge' has no parameter"),
        (labeled_loss, "modified_logistic", 0.0, r"sharpness.*\(0, inf\), got 0"),
        (labeled_loss, "smooth_hinge", -1.0, r"width.*got -1"),
        (labeled_loss, "epsilon_insensitive", math.nan, r"epsilon.*got nan"),
        (unlabeled_loss, "hinge", None, "unlabeled_loss must be one of .*'gaussian'.*got 'hinge'"),
        (unlabeled_loss, "symmetric_ramp", 1.0, r"\(s\) must lie in \(-1, 1\), got 1"),
        (unlabeled_loss, "gaussian", -3, r"got -3"),
    ],
)
def test_bad_names_and_parameters(make, name, parameter, message):
    with pytest.raises(ValueError, match=message):
        make(name, parameter)
