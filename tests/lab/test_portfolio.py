"""Wealth net of costs against bisection, day-by-day simulation and arithmetic by hand."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import brentq

import reticent as rt
from reticent.lab import portfolio as pf

SIZES = st.tuples(st.integers(1, 12), st.integers(2, 5))


def markets(shape):
    return hnp.arrays(float, shape, elements=st.floats(0.5, 2.0))


def portfolios(shape):
    rows = hnp.arrays(float, shape, elements=st.floats(0.0, 1.0)).filter(lambda w: (w.sum(axis=1) > 0.1).all())
    return rows.map(lambda w: w / w.sum(axis=1, keepdims=True))


COSTS = st.sampled_from([0.0, 1.0, 10.0, 50.0, 1000.0, 9000.0])


def simulated(relatives, targets, basis_points, days_with_trade):
    """The wealth, one day after the other, with amounts of money and a root finder."""
    c = basis_points / 1e4
    cash, held, curve = 1.0, np.zeros(relatives.shape[1]), []
    for day, (move, target) in enumerate(zip(relatives, targets, strict=True)):
        if day in days_with_trade:
            worth = cash + held.sum()
            after = brentq(
                lambda w, x=target, h=held, all_=worth: w + c * np.abs(w * x - h).sum() - all_, 0.0, worth, xtol=1e-15
            )
            cash, held = 0.0, after * target
        held = held * move
        curve.append(held.sum())
    return np.array(curve)


@given(SIZES.flatmap(lambda s: st.tuples(portfolios(s), portfolios(s))), COSTS)
def test_what_a_trade_leaves_solves_its_equation(pair, basis_points):
    before, target = pair
    c = basis_points / 1e4
    for row, k in enumerate(pf.kept(before, target, basis_points)):
        root = brentq(lambda w, r=row: w + c * np.abs(w * target[r] - before[r]).sum() - 1, 0.0, 1.0, xtol=1e-15)
        assert k == pytest.approx(root, abs=1e-12)


@settings(deadline=None)
@given(SIZES.flatmap(lambda s: st.tuples(markets(s), portfolios(s), st.lists(st.booleans(), min_size=12))), COSTS)
def test_wealth_is_that_of_a_plain_simulation(drawn, basis_points):
    relatives, targets, changes = drawn
    days = len(relatives)
    changed = [0] + [day for day in range(1, days) if changes[day]]
    targets = targets[np.maximum.accumulate([day if day in changed else 0 for day in range(days)])]
    truly = [0] + [day for day in range(1, days) if (targets[day] != targets[day - 1]).any()]
    lazy = pf.wealth(relatives, targets, basis_points)
    daily = pf.wealth(relatives, targets, basis_points, rebalance="daily")
    np.testing.assert_allclose(lazy.curve, simulated(relatives, targets, basis_points, truly), rtol=1e-9)
    np.testing.assert_allclose(daily.curve, simulated(relatives, targets, basis_points, range(days)), rtol=1e-9)
    third = pf.wealth(relatives, targets, basis_points, rebalance=3)
    both = {*truly, *range(0, days, 3)}
    np.testing.assert_allclose(third.curve, simulated(relatives, targets, basis_points, both), rtol=1e-9)
    assert lazy.trades <= len(truly) - 1
    assert (lazy.curve > 0).all()
    assert (daily.curve > 0).all()


@settings(deadline=None)
@given(SIZES.flatmap(lambda s: st.tuples(markets(s), portfolios(s))), st.sampled_from(["daily", "on change"]))
def test_more_costs_never_make_richer(pair, rebalance):
    finals = [pf.wealth(*pair, basis_points, rebalance).final for basis_points in (0, 1, 10, 100, 5000)]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(finals))


@settings(deadline=None)
@given(SIZES.flatmap(lambda s: st.tuples(markets(s), portfolios(s))), COSTS)
def test_without_trades_it_is_bought_and_held(pair, basis_points):
    relatives, targets = pair
    still = pf.wealth(relatives, np.repeat(targets[:1], len(relatives), axis=0), basis_points)
    assert (still.trades, still.turnover) == (0, 0.0)
    expected = targets[0] @ relatives.prod(axis=0) / (1 + basis_points / 1e4)
    assert still.final == pytest.approx(expected, rel=1e-12)
    assert still.final == pf.buy_and_hold(relatives, targets[0], basis_points).final


@given(SIZES.flatmap(lambda s: st.tuples(markets(s), portfolios(s))))
def test_without_costs_daily_wealth_is_a_product(pair):
    relatives, targets = pair
    found = pf.wealth(relatives, targets, rebalance="daily")
    np.testing.assert_allclose(found.curve, np.cumprod((relatives * targets).sum(axis=1)), rtol=1e-12)


def test_two_assets_by_hand():
    # One unit of cash buys 1/1.01; asset 0 doubles: 2/3 and 1/3 of 1.5/1.01. Back to halves with c = 1 percent:
    # what is sold and bought is 2/3 - k/2 and k/2 - 1/3, together 1/3, so k = 1 - 0.01/3. Then asset 1 doubles.
    found = pf.wealth([[2.0, 1.0], [1.0, 2.0]], [0.5, 0.5], basis_points=100.0, rebalance="daily")
    k = 1 - 0.01 / 3
    np.testing.assert_allclose(found.curve, [1.5 / 1.01, 1.5 / 1.01 * k * 1.5], rtol=1e-14)
    assert found.turnover == pytest.approx(1 / 3)
    assert found.trades == 1
    held = pf.buy_and_hold([[2.0, 1.0], [1.0, 2.0]], basis_points=100.0)
    np.testing.assert_allclose(held.curve, [1.5 / 1.01, 2.0 / 1.01], rtol=1e-14)


def test_from_one_asset_wholly_into_the_other():
    # Selling 1 costs c, buying k costs c k: k (1 + c) = 1 - c.
    assert pf.kept([[1.0, 0.0]], [[0.0, 1.0]], 50.0)[0] == pytest.approx(0.995 / 1.005, rel=1e-15)


def test_a_trace_and_its_decisions_are_worth_the_same():
    relatives = 1 + np.random.default_rng(3).uniform(-0.02, 0.021, size=(300, 3))
    plan = rt.best_plan(rt.Simplex(3), 300, pf.lipschitz(3, 0.02), rt.Squared(), max_switches=10)
    trace = rt.make(plan, rt.Squared(), seed=0).observe_many(*pf.rounds(relatives, 0.02))
    found = pf.wealth(relatives, trace, 10.0)
    np.testing.assert_array_equal(found.curve, pf.wealth(relatives, trace.decisions(), 10.0).curve)
    assert found.trades == len(trace.starts) - 1


@settings(deadline=None)
@given(st.tuples(st.integers(1, 30), st.integers(1, 5)).flatmap(markets))
def test_no_constant_portfolio_beats_the_best_by_more_than_its_gap(relatives):
    best = pf.best_constant(relatives)
    assert 0 <= best.gap <= 1e-6
    rng = np.random.default_rng(0)
    others = np.vstack([np.eye(relatives.shape[1]), rng.dirichlet(np.full(relatives.shape[1], 0.3), size=200)])
    assert np.log(relatives @ others.T).sum(axis=0).max() <= best.log_wealth + best.gap + 1e-9
    assert best.wealth == pytest.approx(pf.wealth(relatives, best.portfolio, rebalance="daily").final)


def test_the_best_constant_portfolio_of_two_assets_by_search():
    relatives = np.random.default_rng(5).lognormal(0.0, 0.3, size=(100, 2))
    shares = np.linspace(0, 1, 100_001)
    values = sum(np.log(a * shares + b * (1 - shares)) for a, b in relatives)
    best = pf.best_constant(relatives, gap=1e-9)
    assert best.log_wealth == pytest.approx(values.max(), abs=1e-6)
    assert best.portfolio[0] == pytest.approx(shares[values.argmax()], abs=1e-3)


def test_assets_that_are_the_same_do_no_harm():
    relatives = np.random.default_rng(6).lognormal(0.0, 0.1, size=(50, 2))
    doubled = pf.best_constant(np.hstack([relatives, relatives]))
    assert doubled.log_wealth == pytest.approx(pf.best_constant(relatives).log_wealth, abs=2e-6)


def test_the_loss_is_minus_log_growth_to_second_order():
    relatives = 1 + np.random.default_rng(7).uniform(-0.03, 0.03, size=(50, 4))
    x = np.array([0.1, 0.2, 0.3, 0.4])
    features, targets = pf.rounds(relatives)
    off = rt.Squared().values(x, features, targets) - (0.5 - np.log(relatives @ x))
    assert np.abs(off).max() <= 0.03**3 / 3 / (1 - 0.03)


@given(st.tuples(st.integers(1, 6), st.integers(2, 8)).flatmap(markets), st.sampled_from([0.05, 0.3, 0.9]))
def test_no_round_is_steeper_than_stated(relatives, limit):
    features, targets = pf.rounds(relatives, limit)
    along = features - features.mean(axis=1, keepdims=True)  # the part of a gradient that moves within the simplex
    residuals = np.abs(features - targets[:, None]).max(axis=1)  # largest at a vertex
    slopes = residuals * np.linalg.norm(along, axis=1)
    assert slopes.max() <= pf.lipschitz(relatives.shape[1], limit) * (1 + 1e-12)


def test_the_stated_slope_is_reached():
    features, targets = pf.rounds([[0.5, 2.0, 0.5, 2.0]], 0.3)
    along = features - features.mean()
    slope = np.abs(features - targets).max() * np.linalg.norm(along)
    assert slope == pytest.approx(pf.lipschitz(4, 0.3), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pf.wealth([[1.0, 0.0]], [0.5, 0.5]), "got 0.0 on day 0 of asset 1"),
        (lambda: pf.wealth(np.ones((0, 2)), [0.5, 0.5]), "at least one day"),
        (lambda: pf.wealth([[1.0, np.nan]], [0.5, 0.5]), "must be finite"),
        (lambda: pf.wealth([[1.0, 1.0]], [0.5, 0.6]), "divide it by its sum"),
        (lambda: pf.wealth([[1.0, 1.0]], [1.5, -0.5]), "smallest entry -0.5"),
        (lambda: pf.wealth([[1.0, 1.0]], [0.5, 0.3, 0.2]), "rows of 2 numbers"),
        (lambda: pf.wealth([[1.0, 1.0]] * 3, [[0.5, 0.5]] * 2), "each of the 3 days"),
        (lambda: pf.wealth([[1.0, 1.0]], [0.5, 0.5], -1.0), "at least 0"),
        (lambda: pf.wealth([[1.0, 1.0]], [0.5, 0.5], 10_000), "less than 10,000"),
        (lambda: pf.wealth([[1.0, 1.0]], [0.5, 0.5], rebalance="weekly"), "got 'weekly'"),
        (lambda: pf.wealth([[1.0, 1.0]], [0.5, 0.5], rebalance=0), "rebalance must be a whole number"),
        (lambda: pf.buy_and_hold([[1.0, 1.0]], [1.0]), "length 2"),
        (lambda: pf.kept([[1.0]], [[0.5, 0.5]], 1.0), "one shape"),
        (lambda: pf.rounds([[1.0, 1.0]], limit=1.0), "less than 1"),
        (lambda: pf.lipschitz(1), "at least 2"),
        (lambda: pf.best_constant([[1.0, 2.0]], gap=0.0), "greater than 0"),
        (lambda: pf.best_constant([[1.0, 2.0], [2.0, 1.0]], gap=1e-300), "room for rounding"),
    ],
)
def test_mistakes_are_named(call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_trace_of_other_days_is_refused():
    plan = rt.best_plan(rt.Simplex(2), 20, 1.0, rt.Squared(), max_switches=2)
    trace = rt.make(plan, rt.Squared(), seed=0).observe_many(*pf.rounds(np.ones((20, 2))))
    with pytest.raises(ValueError, match="trace of the 19 days"):
        pf.wealth(np.ones((19, 2)), trace)
