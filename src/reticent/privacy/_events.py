"""Coins and draws as stock events of dp_accounting (docs/theory, Q10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import scipy

from reticent._core._check import positive
from reticent.privacy._coins import Coin, many_coins
from reticent.privacy._exposure import Exposure
from reticent.privacy._losses import Losses


def event_of(found: Exposure) -> Any:
    """Return stock events whose composition reveals at least as much as these draws and coins.

    Others can compose them with events of their own, in dp_accounting's RDP and PLD accountants alike. All are
    Gaussian: one for each draw, and one for each coin, with the mean `gdp` that makes it dominate the coin in both
    directions. That is exact for the draws and loose for the coins: their variance grows by p (1-p) / phi(N^-1(p))^2
    against coins of one direction, 1.6 times at p = 1/2, 3 at 0.1 and 14 at 0.01. To certify a plan by itself, use
    `account`; to compose with others without that loss, `distribution`.
    """
    draws = [(found.shift, found.draws)]
    return gaussian_events([*draws, (gdp(found.coin), found.later), (gdp(found.special_coin), int(found.special))])


def gaussian_events(releases: Sequence[tuple[float, int]]) -> Any:
    """Return the event of releases that are mu-GDP, each `count` times; what reveals nothing is left out.

    >>> len(gaussian_events([(0.5, 10), (0.0, 3), (0.1, 1)]).events)
    2
    """
    from dp_accounting import dp_event as events

    parts = []
    for mu, count in releases:
        if not count or not mu:
            continue
        if math.isinf(mu):
            return events.NonPrivateDpEvent()
        once = events.GaussianDpEvent(1 / mu)
        parts.append(once if count == 1 else events.SelfComposedDpEvent(once, count))
    if not parts:
        return events.NoOpDpEvent()
    one = len(parts) == 1 and isinstance(parts[0], events.GaussianDpEvent)
    return parts[0] if one else events.ComposedDpEvent(parts)


def distribution_of(found: Exposure, interval: float) -> Any:
    """Return the privacy loss distribution of these draws and coins on the grid of `interval`, rounded upwards."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    step = positive("interval", interval)
    coins = losses_on_grid(many_coins(found.coin, found.later), step)
    if found.special:
        coins = coins.compose(losses_on_grid(many_coins(found.special_coin, 1), step))
    if not found.draws or not found.shift:
        return coins
    noise = 1 / (found.shift * math.sqrt(found.draws))
    return coins.compose(pld.from_gaussian_mechanism(noise, value_discretization_interval=step))


def gdp(coin: Coin) -> float:
    """Return the smallest mu for which a coin of either direction is mu-GDP, N^-1(p') - N^-1(p), rounded upwards.

    The trade-off function of a coin has one corner, (p, 1 - p'); a convex function below it there is below it.

    The difference loses its digits where p' is close to p. Then (p' - p) over the smaller of the normal densities at
    the two quantiles is a close bound: a density with one peak is smallest at an end of an interval.

    >>> round(gdp(Coin(0.5, 0.1)), 6)
    0.119553
    """
    keep = (1 - coin.p) * math.exp(-coin.eta)
    if coin.silent:
        return 0.0
    if coin.p == 0 or keep == 0:
        return math.inf
    low, high = _quantile(coin.p, 1 - coin.p), _quantile(coin.p + coin.gap, keep)
    # Quantiles are exact to a few units in the last place, densities to as many times 1 + z^2.
    far = max(abs(low), abs(high))
    difference = high - low + 1e-14 * far
    log_mean = math.log(coin.gap) + far * far / 2 + math.log(2 * math.pi) / 2 + 1e-14 * (1 + far * far)
    return min(difference, math.exp(min(log_mean, 700.0)))


def _quantile(chance: float, rest: float) -> float:
    """Return the standard normal quantile of `chance`, `rest` being 1 - `chance` without cancellation."""
    return float(scipy.special.ndtri(chance) if chance < 0.5 else -scipy.special.ndtri(rest))


def losses_on_grid(losses: Losses, step: float) -> Any:
    """Return the symmetric privacy loss distribution of finitely many losses on the grid of `step`, never smaller."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    placed = losses.on_grid(step) if losses.value.size else losses
    masses = {round(value / step): float(mass) for value, mass in zip(placed.value, placed.mass, strict=True)}
    return pld.PrivacyLossDistribution.create_from_rounded_probability(masses, placed.infinite, step, True)
