"""The law of many coins against the same law in forty digits: never below, and hardly above (docs/theory, Q4e)."""

import itertools
import math

import mpmath
import numpy as np
import pytest

import reticent as rt
from reticent.privacy import _coins, account
from reticent.privacy._coins import Coin, many_coins, pmf
from reticent.privacy._losses import hockey_stick


def exact(low: float, high: float, count: int) -> list[mpmath.mpf]:
    """Return the probabilities of -count, ..., count, by the differential equation of a power of a polynomial.

    From either end to the middle all terms of the recurrence are positive: nothing cancels.
    """
    low, high = mpmath.mpf(low), mpmath.mpf(high)
    stay = 1 - low - high

    def half(a, c):
        found, before = [a**count], mpmath.mpf(0)
        for j in range(count):
            after = (stay * (count - j) * found[-1] + c * (2 * count - j + 1) * before) / (a * (j + 1))
            before = found[-1]
            found.append(after)
        return found

    return half(low, high)[:-1] + half(high, low)[::-1]


def exact_deltas(coin: Coin, count: int, epsilons: list[float]) -> list[mpmath.mpf]:
    law, r = exact(coin.low, coin.high, count), mpmath.mpf(coin.step)
    places = range(-count, count + 1)
    return [
        mpmath.fsum(m * (1 - mpmath.exp(e - k * r)) for k, m in zip(places, law, strict=True) if k * r > e)
        for e in map(mpmath.mpf, epsilons)
    ]


def errors(coin: Coin, count: int) -> list[float]:
    """Return the relative errors of delta over the whole range of epsilon, where delta can be asked for."""
    ends = [share * count * coin.step for share in (0.0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.75, 0.9, 0.95, 0.99)]
    spread = math.sqrt(count * (coin.low + coin.high - coin.gap**2)) * coin.step
    ends += [max(count * coin.gap * coin.step + z * spread, 0.0) for z in (-3, 0, 2, 4, 6, 8)]
    losses = many_coins(coin, count)
    with mpmath.workdps(40):
        truth = exact_deltas(coin, count, ends)
        # Beyond 1e-40 the rest is an infinite loss: below 1e-26 that is what shows.
        return [float(losses.delta(0.0, e) / t - 1) for e, t in zip(ends, truth, strict=True) if t > 1e-26]


@pytest.mark.parametrize("count", [1, 2, 3, 40, 127, 254, 512, 513, 625, 661, 700, 1500])
@pytest.mark.parametrize(
    "p", [1e-4, 0.1315, 0.97, *(pytest.param(p, marks=pytest.mark.slow) for p in (1e-9, 0.0117, 0.35, 0.5))]
)
def test_delta_is_never_below_and_hardly_above(count: int, p: float) -> None:
    for eta in (1e-4, 0.03, 0.6, 2.285, 12.0):
        found = errors(Coin(p, eta), count)
        assert found
        assert min(found) >= -1e-12
        assert max(found) <= 1e-9


def test_every_tail_is_covered() -> None:
    """Any delta is a mean of right tails, so these are what must not be low."""
    for low, high, count in [
        (0.05, 0.83, 661),
        (1e-5, 2e-3, 900),
        (0.3, 0.31, 800),
        (0.4999, 0.5, 601),
        (0.0, 0.1, 600),
    ]:
        first, mass, beyond = pmf(low, high, count)
        tails = beyond + np.cumsum(mass[::-1])[::-1]
        with mpmath.workdps(40):
            law = exact(low or 1e-300, high, count)
            right, truth = mpmath.mpf(0), {}
            for k in range(count, -count - 1, -1):
                right += law[k + count]
                truth[k] = right
            for place, tail in zip(range(first, first + mass.size), tails, strict=True):
                if -count <= place <= count and truth[place] > 1e-26:
                    assert -1e-12 <= tail / truth[place] - 1 <= 1e-9


def made_by_hand(eta: float = 2.285) -> rt.Plan:
    """Return a plan of 661 rounds, one draw and 660 later coins, whose account was 0.39 of the truth at 1322."""
    return rt.Plan(rt.Ball(2), 661, 1.0, beta=eta / 2, lam=1.0, p=0.1315, phi=1e6, budget=1, distance=0.0)


def test_the_account_of_many_telling_coins() -> None:
    found = account(made_by_hand())
    e = found.exposure
    assert (e.later, e.draws) == (660, 1)
    coin = Coin(e.p, e.eta)
    value = np.arange(-660, 661) * coin.step
    with mpmath.workdps(40):
        law = np.array([float(m) for m in exact(coin.low, coin.high, 660)])
    first = Coin(e.p, e.eta_special)
    for epsilon in (1300.0, 1322.0, 1340.0):
        truth = max(
            sum(
                m * float(law @ hockey_stick(e.shift, epsilon - v - value))
                for v, m in zip(one.value, one.mass, strict=True)
            )
            for one in first.directions()
        )
        assert 1e-7 < truth < 1e-3
        assert found.delta(epsilon) == pytest.approx(truth, rel=1e-9)
        assert found.delta(epsilon) >= truth * (1 - 1e-12)


def test_tilts_that_lie_far_apart_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the four tilts of old, as parts of the one whose mean is the right end, without the bound."""
    coin, count, epsilon = Coin(0.1315, 2.285), 660, 1322.0
    last = _coins._end(coin.low, coin.high, count)[1]
    tilts = [part * last for part in (0.0, 0.3, 0.6, 0.9)]
    means = [_coins._mean(coin.low, coin.high, count, t) for t in tilts]
    stops = [(a + b) / 2 for a, b in itertools.pairwise(means)] + [math.inf]
    monkeypatch.setattr(_coins, "_pieces", lambda *_: tuple(zip(tilts, stops, strict=True)))
    monkeypatch.setattr(_coins, "_UNIT", 0.0)
    broken = many_coins.__wrapped__(coin, count).delta(0.0, epsilon)
    with mpmath.workdps(40):
        (truth,) = exact_deltas(coin, count, [epsilon])
    assert broken < 0.9 * truth
