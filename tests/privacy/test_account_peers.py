"""The accountant beside dp_accounting: its compositions of the same pairs, and our events in its accountants."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant
from scipy.stats import norm

import reticent as rt
from reticent.privacy import account, distribution, dp_event
from reticent.privacy._coins import Coin, many_coins
from reticent.privacy._events import gdp

PLAN = rt.Plan(rt.Ball(2), 3000, 1.0, beta=0.02, lam=200.0, p=0.1, phi=1.2, batch=3, budget=300, distance=0.0)


def ternary(coin):
    """The symmetric pair on the grid of its own loss, as dp_accounting composes it without rounding."""
    masses = {-1: coin.low, 0: 1 - coin.low - coin.high, 1: coin.high}
    return pld.PrivacyLossDistribution.create_from_rounded_probability(masses, 0.0, coin.step, True)


@pytest.mark.parametrize(("p", "eta", "count"), [(0.1, 0.05, 7), (0.1, 0.05, 900), (0.7, 0.02, 2000), (0.02, 0.3, 50)])
def test_coins_agree_with_their_self_composition(p, eta, count):
    coin = Coin(p, eta)
    theirs = ternary(coin).self_compose(count)
    losses = many_coins(coin, count)
    for epsilon in np.array([0.1, 0.7, 2.0]) * coin.step * math.sqrt(count * 2 * coin.low):
        ours = float(losses.delta(0.0, epsilon))
        # Theirs adds up to 1e-15 of truncated tails, and its Fourier transforms are exact to about 1e-15.
        assert ours == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("interval", [1e-3, 1e-4])
def test_whole_account_is_below_their_pessimistic_grid_and_close(interval):
    found = account(PLAN)
    assert found.exposure.special_coin.low == PLAN.p
    whole = distribution(PLAN, interval)
    for delta in (1e-4, 1e-7):
        ours, theirs = found.epsilon(delta), whole.get_epsilon_for_delta(delta)
        assert ours <= theirs * (1 + 1e-9)
        # The rest is the special coin, taken in its symmetric form there.
        assert theirs <= ours * 1.05


def test_draws_and_coins_agree_with_their_grid():
    """Without the special coin both compute the same thing: theirs from above, within its discretisation."""
    found = account(PLAN)
    part = replace(found, exposure=replace(found.exposure, special=False))
    e = found.exposure
    gaussian = pld.from_gaussian_mechanism(1 / (e.shift * math.sqrt(e.draws)), value_discretization_interval=1e-4)
    losses = many_coins(e.coin, e.later).on_grid(1e-4)
    masses = {round(v / 1e-4): m for v, m in zip(losses.value, losses.mass, strict=True)}
    coins = pld.PrivacyLossDistribution.create_from_rounded_probability(masses, losses.infinite, 1e-4, True)
    theirs = gaussian.compose(coins)
    for epsilon in (0.2, 0.8, 1.5):
        ours = part.delta(epsilon)
        assert ours <= theirs.get_delta_for_epsilon(epsilon) * (1 + 1e-9)
        assert ours == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=1e-4)


@pytest.mark.parametrize(("p", "eta"), [(0.5, 0.1), (0.1, 0.5), (0.01, 0.02), (0.8, 1.0)])
def test_gaussian_of_a_coin_dominates_it_and_is_the_smallest(p, eta):
    coin = Coin(p, eta)
    mu, high = gdp(coin), p + coin.gap
    for epsilon in np.linspace(-3, 8, 200):
        limit = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        for a, b in ((high, p), (p, high)):
            value = max(a - math.exp(epsilon) * b, 0) + max(1 - a - math.exp(epsilon) * (1 - b), 0)
            assert value <= limit + 1e-12
    # The corner of the trade-off function lies on that of the Gaussian.
    assert norm.cdf(norm.ppf(1 - p) - mu) == pytest.approx(1 - high, rel=1e-9)


@pytest.mark.parametrize("p", [0.5, 0.1, 0.02])
def test_stock_events_are_an_upper_bound_and_how_loose(p):
    plan = replace(PLAN, p=p)
    ours = account(plan).epsilon(1e-6)
    event = dp_event(plan)
    loose = PLDAccountant().compose(event).get_epsilon(1e-6)
    renyi = RdpAccountant().compose(event).get_epsilon(1e-6)
    assert ours <= loose <= renyi
    # Said in the docstring: the fewer forced switches, the looser.
    assert loose / ours < {0.5: 1.1, 0.1: 1.4, 0.02: 3.0}[p]


def test_events_of_edge_cases():
    from dp_accounting import dp_event as events

    assert dp_event(replace(PLAN, budget=0)) == events.NoOpDpEvent()
    assert dp_event(replace(PLAN, p=0.0)) == events.NonPrivateDpEvent()
    only = dp_event(replace(PLAN, p=1.0))
    assert len(only.events) == 1
    assert PLDAccountant().compose(only).get_epsilon(1e-6) == pytest.approx(
        account(replace(PLAN, p=1.0)).epsilon(1e-6), rel=1e-3
    )
    with pytest.raises(ValueError, match="draws must be exact"):
        dp_event(replace(PLAN, distance=1e-9))


def test_import_is_light():
    import subprocess
    import sys

    heavy = ("dp_accounting", "scipy.stats", "numba", "scipy.optimize")
    code = f"import sys, reticent.privacy; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout.strip() == "[]"
