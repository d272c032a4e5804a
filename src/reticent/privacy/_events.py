"""A plan as dp_accounting sees it: stock events, and a privacy loss distribution (docs/theory.md, Q10)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import scipy

from reticent._check import positive
from reticent.privacy._coin import Coin
from reticent.privacy._exposure import Exposure, exposure
from reticent.privacy._losses import Losses
from reticent.privacy._walk import walk

if TYPE_CHECKING:
    from reticent.planning import Plan


def dp_event(plan: Plan) -> Any:
    """Return stock dp_accounting events whose composition reveals at least as much as a run of `plan`.

    Others can compose them with events of their own, in dp_accounting's RDP and PLD accountants alike. All are
    Gaussian: one for each draw, and one for each coin, with the mean `gdp` that makes it dominate the coin in both
    directions. That is exact for the draws and loose for the coins: their variance grows by p (1-p) / phi(N^-1(p))^2
    against coins of one direction, 1.6 times at p = 1/2, 3 at 0.1 and 14 at 0.01. To certify a plan by itself, use
    `account`; to compose with others without that loss, `distribution`.

    Use dp_accounting's default neighbouring relation: what neighbours are is in the events already, and REPLACE_ONE
    would double the sensitivity once more.

    >>> import reticent as rt
    >>> plan = rt.Plan(rt.Ball(2), 1000, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1, distance=0.0)
    >>> len(dp_event(plan).events)
    3
    """
    from dp_accounting import dp_event as events

    found = _exact(plan)
    parts: list[Any] = []
    if found.draws and found.shift:
        parts.append(events.SelfComposedDpEvent(events.GaussianDpEvent(1 / found.shift), found.draws))
    for coin, count in ((found.coin, found.later), (found.special_coin, int(found.special))):
        if not count or coin.silent:
            continue
        if math.isinf(coin.step):
            return events.NonPrivateDpEvent()
        parts.append(events.SelfComposedDpEvent(events.GaussianDpEvent(1 / gdp(coin)), count))
    return events.ComposedDpEvent(parts) if parts else events.NoOpDpEvent()


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


def distribution(plan: Plan, interval: float = 1e-4) -> Any:
    """Return a dp_accounting PrivacyLossDistribution of a whole run, on the grid of `interval`, rounded upwards.

    It composes with other distributions of the same interval, and is the certificate for an adaptive adversary whatever
    `plan.adversary` is, a little larger than `account`: the special coin too is taken in its symmetric form.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    step = positive("interval", interval)
    found = _exact(plan)
    coins = _mapped(walk(found.coin, found.later), step, pld)
    if found.special:
        coins = coins.compose(_mapped(walk(found.special_coin, 1), step, pld))
    if not found.draws or not found.shift:
        return coins
    noise = 1 / (found.shift * math.sqrt(found.draws))
    return coins.compose(pld.from_gaussian_mechanism(noise, value_discretization_interval=step))


def _mapped(losses: Losses, step: float, pld: Any) -> Any:
    placed = losses.on_grid(step) if losses.value.size else losses
    masses = {round(value / step): float(mass) for value, mass in zip(placed.value, placed.mass, strict=True)}
    return pld.PrivacyLossDistribution.create_from_rounded_probability(masses, placed.infinite, step, True)


def _exact(plan: Plan) -> Exposure:
    if plan.distance > 0:
        claim = "" if plan.private else "this plan makes no privacy claim (plan_private plans one that does), and "
        raise ValueError(
            f"{claim}draws must be exact (distance=0) for an event, got distance={plan.distance:g}: no stock event "
            "stands for one that is only nearly exact; use dataclasses.replace(plan, distance=0.0), or account(plan)"
        )
    return exposure(plan)
