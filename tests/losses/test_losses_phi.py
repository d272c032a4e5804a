"""The univariate functions: convexity, slopes, curvature and the piecewise description."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reticent._core._check import Array
from reticent.gibbs._phi import rise
from reticent.losses import Absolute, GeneralisedLinear, Hinge, Huber, Logistic, Pinball, Squared

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
margin = st.floats(-30, 30)
GRID = np.linspace(-6, 6, 2411)


def naive(loss: GeneralisedLinear, m: float) -> float:
    match loss:
        case Absolute():
            return abs(m)
        case Pinball(tau):
            r = -m
            return max(tau * r, (tau - 1) * r)
        case Hinge(edge):
            return max(0.0, edge - m)
        case Huber(w):
            return m * m / 2 if abs(m) <= w else w * abs(m) - w * w / 2
        case Logistic():
            return float(np.log1p(np.exp(-m)))
        case Squared():
            return m * m / 2
    raise AssertionError(loss)


def midpoint_convex(phi: Callable[[Array], Array], a: float, b: float) -> bool:
    ends = phi(np.array([a, b]))
    return bool(phi(np.array([(a + b) / 2]))[0] <= ends.mean() + 1e-12 * (1 + np.abs(ends).max()))


@quick
@given(m=margin)
def test_phi_is_the_naive_formula(glm: GeneralisedLinear, m: float) -> None:
    assert glm.phi(np.array([m]))[0] == pytest.approx(naive(glm, m), rel=1e-12, abs=1e-14)


@quick
@given(a=margin, b=margin)
def test_phi_is_convex_and_dphi_a_subgradient(glm: GeneralisedLinear, a: float, b: float) -> None:
    assert midpoint_convex(glm.phi, a, b)
    at_a, at_b = glm.phi(np.array([a, b]))
    assert at_b >= at_a + glm.dphi(np.array([a]))[0] * (b - a) - 1e-11 * (1 + abs(at_a) + abs(at_b))


def test_the_convexity_check_catches_a_function_that_is_not_convex() -> None:
    assert not midpoint_convex(np.sin, 0.5, 2.5)
    assert not midpoint_convex(lambda m: np.minimum(np.abs(m), 1.0), 0.0, 4.0)


def test_slopes_at_kinks_are_the_mean_of_both_sides() -> None:
    for loss, kink in ((Absolute(), 0.0), (Pinball(0.3), 0.0), (Hinge(0.4), 0.4)):
        below, at, above = loss.dphi(np.array([kink - 1, kink, kink + 1]))
        assert at == pytest.approx((below + above) / 2)
        assert loss.d2phi(np.array([kink])) == 0


def test_derivatives_match_differences(glm: GeneralisedLinear) -> None:
    h = 1e-4
    pieces = glm.pieces()
    breaks = np.array([]) if pieces is None else pieces[0]
    m = GRID[np.all(np.abs(GRID[:, None] - breaks) > 2 * h, axis=1)]
    first = (glm.phi(m + h) - glm.phi(m - h)) / (2 * h)
    second = (glm.dphi(m + h) - glm.dphi(m - h)) / (2 * h)
    np.testing.assert_allclose(glm.dphi(m), first, atol=1e-7)
    np.testing.assert_allclose(glm.d2phi(m), second, atol=1e-7)


@quick
@given(a=st.floats(-6, 6), b=st.floats(-6, 6))
def test_bounds_over_a_range_hold_and_are_tight(glm: GeneralisedLinear, a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    inside = np.linspace(low, high, 401)
    lower, upper = glm.curvature_bounds(np.array([low]), np.array([high]))
    slope = glm.slope_bound(np.array([low]), np.array([high]))
    assert lower[0] <= glm.d2phi(inside).min() + 1e-15
    assert upper[0] >= glm.d2phi(inside).max() - 1e-15
    assert slope[0] >= np.abs(glm.dphi(inside)).max() - 1e-15
    if high - low > 1e-3:
        quotients = np.diff(glm.dphi(inside)) / np.diff(inside)
        assert quotients.max() <= upper[0] + 1e-6
        assert quotients.min() >= lower[0] - 1e-6
        if isinstance(glm, Logistic):
            assert upper[0] <= glm.d2phi(inside).max() * 1.001
        if glm.curved or isinstance(glm, Huber):
            assert slope[0] == pytest.approx(np.abs(glm.dphi(inside)).max())
        if not np.isfinite(upper[0]):
            pieces = glm.pieces()
            assert pieces is not None
            assert low <= pieces[0][0] <= high


def test_curvature_bounds_of_chosen_ranges() -> None:
    low, high = np.array([-2.0, 0.5, -0.5, 2.0]), np.array([-1.0, 3.0, 0.5, 4.0])
    inf = np.inf
    np.testing.assert_array_equal(Absolute().curvature_bounds(low, high)[1], [0, 0, inf, 0])
    np.testing.assert_array_equal(Hinge().curvature_bounds(low, high)[1], [0, inf, 0, 0])
    lower, upper = Huber().curvature_bounds(low, high)
    np.testing.assert_array_equal(lower, [0, 0, 1, 0])
    np.testing.assert_array_equal(upper, [1, 1, 1, 0])
    logistic = Logistic()
    lower, upper = logistic.curvature_bounds(low, high)
    np.testing.assert_allclose(lower, logistic.d2phi(np.array([-2.0, 3.0, 0.5, 4.0])))
    np.testing.assert_allclose(upper, logistic.d2phi(np.array([-1.0, 0.5, 0.0, 2.0])))


def test_slope_bounds_of_chosen_ranges() -> None:
    low, high = np.array([-2.0, 0.5, -0.5]), np.array([-1.0, 3.0, 0.5])
    np.testing.assert_allclose(Pinball(0.3).slope_bound(low, high), [0.3, 0.7, 0.7])
    np.testing.assert_allclose(Hinge(0.4).slope_bound(low, high), [1, 0, 1])
    np.testing.assert_allclose(Squared().slope_bound(low, high), [2, 3, 0.5])
    np.testing.assert_allclose(Huber().slope_bound(low, high), [1, 1, 0.5])


def test_pieces_integrate_back_to_phi(glm: GeneralisedLinear) -> None:
    pieces = glm.pieces()
    if pieces is None:
        assert glm.curved
        return
    breaks, slope_jumps, curvature_jumps, slope0 = pieces
    past = np.maximum(GRID[:, None] - breaks, 0.0)
    rebuilt = slope0 * GRID + past @ slope_jumps + 0.5 * past**2 @ curvature_jumps
    actual = glm.phi(GRID)
    np.testing.assert_allclose(actual - actual[0], rebuilt - rebuilt[0], atol=1e-12)


@pytest.mark.parametrize("reach", [0.0, 0.5, 2.0, 6.0])
def test_logistic_self_concordance_is_the_smallest_constant(reach: float) -> None:
    loss, h = Logistic(), 1e-4
    m = np.linspace(-reach, reach, 801)
    third = (loss.d2phi(m + h) - loss.d2phi(m - h)) / (2 * h)
    ratio = np.abs(third) / loss.d2phi(m)
    constant = loss.self_concordance(reach)
    assert ratio.max() <= constant + 1e-6
    assert ratio.max() >= constant - 1e-6


def test_self_concordance_of_the_others(glm: GeneralisedLinear) -> None:
    if isinstance(glm, Squared):
        assert glm.self_concordance(3.0) == 0
    elif not isinstance(glm, Logistic):
        assert glm.self_concordance(3.0) is None


def test_logistic_does_not_overflow() -> None:
    m = np.array([-1e4, -800.0, 800.0, 1e4])
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(Logistic().phi(m), [1e4, 800, 0, 0], atol=1e-300)
        np.testing.assert_allclose(Logistic().dphi(m), [-1, -1, 0, 0], atol=1e-300)
        assert np.all(Logistic().d2phi(m) >= 0)


def test_codes_and_parameters(glm: GeneralisedLinear) -> None:
    order = [Absolute, Pinball, Hinge, Huber, Logistic, Squared]
    assert glm.code == order.index(type(glm))
    expected = {Pinball(0.3): 0.3, Hinge(): 1.0, Hinge(0.4): 0.4, Huber(): 1.0, Huber(0.25): 0.25}
    assert glm.parameter == expected.get(glm, 0.0)


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.8])
def test_the_minimiser_of_the_pinball_loss_is_the_quantile(tau: float) -> None:
    y = np.random.default_rng(3).normal(size=201)
    ones = np.ones((len(y), 1))
    totals = [Pinball(tau).values([x], ones, y).sum() for x in np.sort(y)]
    best = np.sort(y)[int(np.argmin(totals))]
    assert best == np.quantile(y, tau, method="inverted_cdf")


def exact_rise(loss: GeneralisedLinear, m: float, v: float) -> mpmath.mpf:
    """The rise in 500 digits."""
    with mpmath.workdps(500):
        start, end = mpmath.mpf(m), mpmath.mpf(m) + mpmath.mpf(v)
        if isinstance(loss, Logistic):
            return mpmath.log1p(mpmath.exp(-end)) - mpmath.log1p(mpmath.exp(-start))
        values = []
        for at in (start, end):
            match loss:
                case Absolute():
                    values.append(abs(at))
                case Pinball(tau):
                    values.append(max(-tau * at, (1 - mpmath.mpf(tau)) * at))
                case Hinge(edge):
                    values.append(max(mpmath.mpf(0), edge - at))
                case Huber(w):
                    values.append(at * at / 2 if abs(at) <= w else w * abs(at) - mpmath.mpf(w) ** 2 / 2)
                case _:
                    values.append(at * at / 2)
        return values[1] - values[0]


far = st.floats(-1e6, 1e6) | st.floats(-1e20, 1e20) | st.floats(-3, 3) | st.sampled_from([0.0, 1.0, -1.0, 700.5])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(m=far, v=st.floats(-3, 3) | st.floats(-1e-9, 1e-9) | st.floats(-100, 100))
def test_rises_have_the_digits_of_the_step_however_far_out_it_is(glm: GeneralisedLinear, m: float, v: float) -> None:
    exact = exact_rise(glm, m, v)
    steepest = float(glm.slope_bound(np.array([min(m, m + v)]), np.array([max(m, m + v)]))[0])
    # Where the logistic loss is hardly steep at all, exp(-m) has the digits of m: there the claim is for the slope 1.
    room = 2.0**-50 * (1.0 if isinstance(glm, Logistic) else steepest) * abs(v) + 1e-300
    found = float(glm.rise(np.array([m]), np.array([v]))[0])
    shifted = m - glm.margin if isinstance(glm, Hinge) else m
    for value in (found, rise(glm.code, glm.parameter, shifted, v)):
        assert abs(value - exact) <= room + 2.0**-52 * (abs(v) if isinstance(glm, Hinge) and abs(m) < 100 else 0.0)
    # The difference of two losses has nothing left of it.
    assert glm.phi(np.array([1e20 + 0.5]))[0] - glm.phi(np.array([1e20]))[0] in (0.0, -0.0)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_rises_have_the_digits_of_the_slope_too_where_a_level_is_extreme(side: float) -> None:
    """A round may be as long as its slope is small: of 1e12 times a slope of 1e-12 nothing was left but 4 digits."""
    level = 1e-12 if side < 0 else 1 - 1e-12
    loss, m, v = Pinball(level), side * 1e20, 1e12 * 0.3
    exact = exact_rise(loss, m, v)
    for value in (float(loss.rise(np.array([m]), np.array([v]))[0]), rise(loss.code, loss.parameter, m, v)):
        assert abs(value - exact) <= 2.0**-50 * abs(exact)
    assert abs((v if m > 0 else 0.0) - level * v - exact) > 1e-6 * abs(exact) or side < 0  # the negative control
