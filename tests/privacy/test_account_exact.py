"""The accountant against closed forms and enumeration that share no code with it."""

import itertools
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, norm

import reticent as rt
from reticent.privacy import account
from reticent.privacy._coins import Coin, many_coins, pmf
from reticent.privacy._compose import Composed
from reticent.privacy._exposure import Exposure, adaptive
from reticent.privacy._losses import hockey_stick


def plan(horizon=1000, **changes):
    values = {"beta": 0.01, "lam": 400.0, "p": 0.2, "phi": 1.1, "distance": 0.0} | changes
    return rt.Plan(rt.Ball(2), horizon, 1.0, **values)


def stick(pairs, epsilon):
    """The hockey stick of two lists of probabilities."""
    return math.fsum(max(a - math.exp(epsilon) * b, 0.0) for a, b in pairs)


@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.3, 0.4999, 0.5001, 2.0, 30.0])
def test_normal_hockey_stick_against_many_digits(mu):
    for x in (-9.0, -1.0, 0.0, 0.5, 3.0, 12.0):
        epsilon = x * mu
        with mpmath.workdps(60):
            m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
            truth = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert float(hockey_stick(mu, epsilon)) == pytest.approx(float(truth), rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_draws_alone_are_a_gaussian_mechanism(epsilon):
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    found = account(plan(p=1.0, horizon=2000))
    mu = 2 * math.sqrt(0.01 / 400) * math.sqrt(2000)
    truth = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert found.delta(epsilon) == pytest.approx(truth, rel=1e-9)
    theirs = GaussianPrivacyLoss(1 / mu).get_delta_for_epsilon(epsilon)
    assert found.delta(epsilon) == pytest.approx(theirs, rel=1e-9)
    assert found.epsilon(truth) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(("p", "eta"), [(0.2, 0.3), (0.05, 1.5), (0.6, 0.4), (0.45, 0.25), (0.9, 2.0)])
@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_coins_alone_against_all_their_outcomes(p, eta, count):
    high = 1 - (1 - p) * math.exp(-eta)
    a, b = (p, high) if p + high <= 1 else (1 - high, 1 - p)
    one = [(b, a), (a, b), (1 - a - b, 1 - a - b)]
    pairs = [tuple(map(math.prod, zip(*outcome, strict=True))) for outcome in itertools.product(one, repeat=count)]
    losses = many_coins(Coin(p, eta), count)
    for epsilon in (0.0, 0.05, 0.4, 1.3, 3.0):
        assert float(losses.delta(0.0, epsilon)) == pytest.approx(stick(pairs, epsilon), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(("p", "eta"), [(0.2, 0.3), (0.6, 0.4), (0.01, 0.05)])
def test_symmetric_pair_is_above_coins_of_one_direction(p, eta):
    high, count = 1 - (1 - p) * math.exp(-eta), 60
    switches = np.arange(count + 1)
    up, down = binom.pmf(switches, count, high), binom.pmf(switches, count, p)
    losses = many_coins(Coin(p, eta), count)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        ours = float(losses.delta(0.0, epsilon))
        assert ours >= stick(zip(up, down, strict=True), epsilon) - 1e-12
        assert ours >= stick(zip(down, up, strict=True), epsilon) - 1e-12


def test_symmetric_pair_without_a_neutral_outcome_is_binomial():
    eta = math.log(0.52 / 0.48)  # p = 0.48 and p' = 0.52
    coin = Coin(0.48, math.log(0.52 / 0.48))
    assert coin.high == pytest.approx(0.52, rel=1e-12)
    losses, count = many_coins(coin, 400), 400
    k = np.arange(count + 1)
    up, down = binom.pmf(k, count, 0.52), binom.pmf(k, count, 0.48)
    for epsilon in (0.0, 1.0, 4.0):
        assert float(losses.delta(0.0, epsilon)) == pytest.approx(stick(zip(up, down, strict=True), epsilon), rel=1e-9)
    assert eta == pytest.approx(coin.step, rel=1e-12)


@pytest.mark.parametrize(("low", "high", "count"), [(0.01, 0.011, 3000), (1e-6, 2e-6, 1000), (0.2, 0.5, 400)])
def test_walk_has_relative_accuracy_far_into_its_tail(low, high, count):
    law = np.ones(1)
    for _ in range(count):
        law = np.convolve(law, [low, 1 - low - high, high])
    first, mass, beyond = pmf(low, high, count)
    places = np.arange(first, first + mass.size)
    inside = np.abs(places) <= count
    truth = law[places[inside] + count]
    # What is lost by subtracting from 1 - low - high in the reference is about 1e-13.
    right = (places[inside] >= count * (high - low)) & (truth > 1e-36)
    np.testing.assert_allclose(mass[inside][right], truth[right], rtol=1e-9)
    assert beyond <= 1e-40
    assert mass.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("count", [40_000, 200_001])
def test_merged_walk_is_above_and_close(count):
    coin = Coin(0.3, 0.002)
    merged = many_coins(coin, count)
    first, mass, _ = pmf(coin.low, coin.high, count)
    value = (first + np.arange(mass.size)) * coin.step
    assert merged.value.size < value.size
    for epsilon in (0.5, 2.0):
        truth = float(mass @ hockey_stick(0.3, epsilon - value))
        assert truth <= float(merged.delta(0.3, epsilon)) * (1 + 1e-9)
        assert float(merged.delta(0.3, epsilon)) <= truth * 1.002


def test_walk_that_keeps_its_parity_is_still_bounded():
    for count in (40_001, 2_000_000):
        p = 0.5 - 1e-5
        even = Coin(p, -math.log1p(-2e-5 / (1 - p)))  # p + p' = 1
        nearby = Coin(p * 0.999, even.eta)
        a, b = (float(many_coins(coin, count).delta(0.1, 0.2)) for coin in (even, nearby))
        assert a <= b * (1 + 1e-9)
        assert a == pytest.approx(b, rel=2e-2)


def brute_force(found: Exposure, epsilon: float) -> float:
    """All outcomes of all coins, and the draws on a fine grid of a normal variable: nothing composed in closed form."""
    p, mu = found.p, found.shift * math.sqrt(found.draws)
    high = 1 - (1 - p) * math.exp(-found.eta)
    special = 1 - (1 - p) * math.exp(-found.eta_special)
    a, b = (p, high) if p + high <= 1 else (1 - high, 1 - p)
    coin = [(b, a), (a, b), (1 - a - b, 1 - a - b)]
    edges = np.linspace(-12, 12 + mu, 400_001)
    upper, lower = np.diff(norm.cdf(edges - mu)), np.diff(norm.cdf(edges))
    worst = 0.0
    for first in ([(special, p), (1 - special, 1 - p)], [(p, special), (1 - p, 1 - special)]):
        total = 0.0
        for outcome in itertools.product(first, *([coin] * found.later)):
            one, two = map(math.prod, zip(*outcome, strict=True))
            total += float(np.maximum(one * upper - math.exp(epsilon) * two * lower, 0.0).sum())
        worst = max(worst, total)
    return worst


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("changes", [{}, {"p": 0.05, "beta": 0.05}, {"p": 0.7, "phi": 2.0, "beta": 0.3, "lam": 8.0}])
def test_everything_together_against_brute_force(rounds, changes):
    given = plan(rounds, **({"beta": 0.2, "lam": 5.0, "phi": 1.5} | changes))
    found = account(given)
    for epsilon in (0.0, 0.2, 0.9, 2.0):
        assert found.delta(epsilon) == pytest.approx(brute_force(found.exposure, epsilon), rel=1e-6, abs=1e-10)


def test_leaving_out_the_special_coin_would_be_caught():
    given = plan(3, beta=0.2, lam=5.0, phi=1.5)
    found = account(given).exposure
    broken = Composed(adaptive(replace(found, special=False))).delta(0.5)
    assert broken < 0.9 * brute_force(found, 0.5)


def test_edges():
    assert account(plan(p=0.0)).epsilon(1e-6) == math.inf
    assert account(plan(p=0.0, phi=1.0)).epsilon(1e-6) == 0.0
    assert account(plan(budget=0)).epsilon(1e-6) == 0.0
    assert account(plan(5, batch=6)).epsilon(1e-6) == 0.0
    assert account(plan(p=0.3, phi=1.0)).epsilon(1e-6) == account(plan(p=1.0)).epsilon(1e-6)
    one = account(plan(6, batch=6))
    assert (one.draws, one.coins, one.exposure.later) == (1, 1, 0)
    # p = 0: a switch that the other world cannot make costs delta, once for every coin.
    few = account(plan(3, p=0.0))
    eta, first = few.exposure.eta, few.exposure.eta_special
    assert few.delta(100.0) == pytest.approx(-math.expm1(-2 * eta - first), rel=1e-9)


def test_zero_out_is_half_of_replace():
    replaced, zeroed = account(plan()).exposure, account(plan(neighbors="zero-out")).exposure
    assert replaced.shift == 2 * zeroed.shift
    assert replaced.eta == 2 * zeroed.eta
    assert account(plan(neighbors="zero-out")).epsilon(1e-6) < account(plan()).epsilon(1e-6)


@pytest.mark.parametrize("p", [0.001, 0.02, 0.3, 0.5, 0.9])
def test_a_billion_rounds_cost_no_more_points(p):
    found = account(plan(10**9, p=p, beta=1e-4, lam=4e4, phi=1.01))
    epsilon = found.epsilon(1e-6)
    assert math.isfinite(epsilon)
    assert sum(curve.bound.points for curve in found._curves) < 20_000


def test_refusals():
    with pytest.raises(ValueError, match=r"delta must be at least 1e-30 and less than 1, got 0"):
        account(plan()).epsilon(0.0)
    with pytest.raises(ValueError, match="epsilon must be at least 0, got -1"):
        account(plan()).delta(-1)
    with pytest.raises(ValueError, match="method must be one of 'pld', 'rdp', 'theorem', got 'moments'"):
        account(plan(), method="moments")
    with pytest.raises(ValueError, match=r"plan.epoch\(0\) is the first"):
        account(plan(None))
