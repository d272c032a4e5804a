"""The law of switches under the coin: how many, how likely more, how far decisions drift, and what clipping costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy

from reticent._core._check import Array

if TYPE_CHECKING:
    from reticent.systems.pcomw._plan import Plan

# Gauss-Legendre on an interval no longer than 1/2: six nodes leave a relative error below 1e-12.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
# Normal variables beyond 12 standard deviations have mass 2e-33; they are added to the bound, not dropped.
_FAR = 12.0


def sigma(lipschitz: float, beta: float, lam: float, batch: int = 1, draws: int = 1) -> float:
    """Return the standard deviation of a normal variable that stands for the logarithm of the coin's ratio.

    >>> sigma(1.0, 0.02, 4.0)
    0.1
    """
    return batch * lipschitz * math.sqrt((1 + 1 / draws) * beta / lam)


def delta0(log_phi: float | Array, sigma: float | Array) -> Array:
    """Return `E (exp(h) / phi - 1)_+` for `h` normal with variance `sigma^2` and `E exp(h) = 1`.

    With `c = log_phi / sigma` this is `exp(-log_phi) Q(c - sigma/2) - Q(c + sigma/2)`, here without cancellation.

    >>> float(delta0(0.0, 1e-9) * math.sqrt(2 * math.pi) / 1e-9)
    1.0
    """
    return _loss_and_rate(log_phi, sigma)[0]


def clipping(log_phi: float | Array, step: float | Array, draws: int = 1, reach: float | Array = math.inf) -> Array:
    """Return the bound on the mass that clipping moves per coin, before the forced coin takes its share.

    `step` is `batch * lipschitz * sqrt(beta / lam)` and `reach` is `beta * batch * lipschitz * diameter`: nothing is
    clipped when `log_phi` is not below it. The mean of several lognormal variables is not lognormal, so with
    `draws > 1` the formula at the smaller `sigma` is multiplied by what that costs, a factor near 1.

    >>> float(clipping(0.5, 0.01, reach=0.5))
    0.0
    """
    a, s = np.asarray(log_phi, dtype=np.float64), np.asarray(step, dtype=np.float64)
    bound, _ = _loss_and_rate(a, math.sqrt(2) * s)
    if draws > 1:
        bound = np.minimum(bound, _averaged(a, s, draws))
    return np.where(a >= np.asarray(reach), 0.0, np.minimum(bound, 1.0))


def _averaged(a: Array, s: Array, draws: int) -> Array:
    """Return the bound for the mean of `draws` auxiliary draws.

    That mean is a lognormal variable of variance `sigma^2`, times an independent `R` of mean 1 that holds the spread
    of the draws around their own mean. The loss f(a) is log-concave in a, with slope -rate: f(a - log R) is at most
    f(a) R^rate above, and the lower clip loses at most f(a)/phi R^(1-rate) (docs/theory, P4).
    """
    part = 1 - 1 / draws
    loss, rate = _loss_and_rate(a, math.sqrt(1 + 1 / draws) * s)
    far = _FAR * s
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        curve = np.where(far < 1e-3, 1 + far / 2, 2 * (np.expm1(far) - far) / np.maximum(far, 1e-3) ** 2)
        used = rate * s * s * curve / draws
        grown = -0.5 * (draws - 1) * np.log1p(-np.minimum(used, 1.0)) - rate * s * s * part / 2
        lower = (rate - 1) * s * s * part / 2 - a
        factor = np.exp(np.maximum(grown, lower))
        exceptional = 2 * draws * scipy.special.ndtr(s - _FAR)
        total: Array = loss * factor + exceptional
    return np.where((used < 1) & (rate >= 1), total, 1.0)


def _loss_and_rate(log_phi: float | Array, sigma: float | Array) -> tuple[Array, Array]:
    """Return f(a) = E (exp(h - a) - 1)_+ and -f'(a) / f(a)."""
    a, width = np.broadcast_arrays(np.asarray(log_phi, dtype=np.float64), np.asarray(sigma, dtype=np.float64))
    c = a / width
    kept = np.exp(scipy.special.log_ndtr(width / 2 - c) - a)
    beyond = np.exp(scipy.special.log_ndtr(-width / 2 - c))
    loss = kept - beyond
    # For small sigma: the difference of two Mills ratios as the integral of 1 - x m(x) between them, times phi.
    half = np.minimum(width, 0.5)[..., None] / 2
    x = c[..., None] + half * _NODES
    mills = math.sqrt(math.pi / 2) * scipy.special.erfcx(x / math.sqrt(2))
    slope = np.where(x > 1e4, 0.0, 1 - x * mills)
    small = (half * _WEIGHTS * slope).sum(axis=-1) * np.exp(-((c + width / 2) ** 2) / 2) / math.sqrt(2 * math.pi)
    loss = np.where(width <= 0.5, small, loss)
    loss = np.maximum(loss, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(loss > 0, kept / loss, np.inf)
    return loss, rate


# The law of switches under the coin: how many, how likely more, and how far decisions drift from their measure.

Number = float | Array

# Steps in the sum over rounds of the chance that the budget is already spent: 256 lose about one percent of it.
_STEPS = 256


def rate(p: Number, log_phi: Number) -> Array:
    """Return the chance q = 1 - (1-p)/phi of a switch when nothing is clipped (docs/theory, P2).

    >>> float(rate(0.0, math.log(2.0)))
    0.5
    """
    forced = _array(p)
    return forced - (1 - forced) * np.expm1(-_array(log_phi))


def looked_at(p: Number, log_phi: Number) -> Array:
    """Return the chance (1-p)(1 - phi^-2) that a coin needs its auxiliary draws (docs/theory, P5)."""
    return -(1 - _array(p)) * np.expm1(-2 * _array(log_phi))


def variation(k: Number, p: Number, clip: Number) -> Array:
    """Return the distance in total variation of a decision from its measure after `k` coins (docs/theory, P4).

    A coin adds at most `clip`, and a forced switch resets the law: v_(k+1) <= (1-p) (v_k + clip).

    >>> float(variation(8, 0.0, 0.0625)), float(variation(10**9, 0.5, 1e-6))
    (0.5, 1e-06)
    """
    forced = _array(p)
    distance: Array = np.minimum(1.0, (1 - forced) * _array(clip) * _geometric(_array(k), forced))
    return distance


def variation_sum(n: Number, p: Number, clip: Number) -> Array:
    """Return the sum of `variation` over 0, ..., n-1 coins.

    >>> float(variation_sum(4, 0.0, 0.01))
    0.06
    """
    forced = _array(p)
    total: Array = np.minimum((1 - forced) * _array(clip) * _geometric_sum(_array(n), forced), _array(n))
    return total


def expected_switches(n: Number, p: Number, log_phi: Number, clip: Number) -> Array:
    """Return a bound on the expected number of switches over `n` coins, losses being oblivious (docs/theory, P4).

    >>> float(expected_switches(100, 0.0, math.log(2.0), 0.0))
    50.0
    """
    count, forced = _array(n), _array(p)
    extra = (1 - forced) * count * _array(clip) + looked_at(p, log_phi) * variation_sum(n, p, clip)
    # Whatever the law of the decision, a coin switches with a chance of p + (1-p)(1 - phi^-2) at most.
    most = count * (forced + looked_at(p, log_phi))
    bound: Array = np.minimum(count * rate(p, log_phi) + extra, most)
    return bound


def log_tail(j: Number, n: Number, p: Number, log_phi: Number, clip: Number) -> Array:
    """Return the logarithm of a bound on the chance of `j` switches or more over `n` coins (docs/theory, P4).

    >>> round(math.exp(float(log_tail(1, 1, 0.0, math.log(2.0), 0.0))), 12)
    0.5
    """
    least, count = _array(j), _array(n)
    q, drift = rate(p, log_phi), (1 - _array(p)) * _array(clip)
    sharp = _binomial_tail(least, count, (q + drift) / (1 + drift)) + count * np.log1p(drift)
    crude = _binomial_tail(least, count, np.minimum(_array(p) + looked_at(p, log_phi), 1.0))
    bound: Array = np.minimum(np.minimum(sharp, crude), 0.0)
    return bound


def overrun(budget: int, n: int, p: Number, log_phi: Number, clip: Number, steps: int = _STEPS) -> Array:
    """Return a bound on the sum over k = 0, ..., n of the chance of more than `budget` switches in `k` coins.

    The chance grows with k, so a step function through its values at the ends of `steps` stretches is a bound.

    >>> float(overrun(3, 3, 0.0, 5.0, 0.0))
    0.0
    """
    if n <= budget:
        return np.zeros(np.broadcast(p, log_phi, clip).shape)
    # Stretches get shorter towards n, where the chance is largest and changes most.
    part = np.linspace(0.0, 1.0, min(steps, n - budget) + 1)
    ends = np.unique(np.round(budget + (n - budget) * (1 - (1 - part) ** 2)).astype(np.int64))
    lengths = np.diff(ends)
    arguments = [_array(value)[..., None] for value in (p, log_phi, clip)]
    chance = np.exp(log_tail(budget + 1, ends[1:].astype(np.float64), *arguments))
    total: Array = (lengths * chance).sum(axis=-1)
    return total


def weighted_variation(horizon: int, batch: int, p: Number, clip: Number) -> float:
    """Return the sum over batches of their rounds times the distance of their decision from its measure.

    >>> weighted_variation(9, 2, 0.0, 0.01)
    0.16
    """
    coins, left = divmod(horizon, batch)
    return batch * float(variation_sum(coins, p, clip)) + left * float(variation(coins, p, clip))


def weighted_overrun(horizon: int, batch: int, budget: int, p: Number, log_phi: Number, clip: Number) -> float:
    """Return the sum over batches of their rounds times the chance that the budget is spent before.

    >>> weighted_overrun(9, 2, 4, 0.0, 5.0, 0.0)
    0.0
    """
    coins, left = divmod(horizon, batch)
    if not coins:
        return 0.0
    # The decision of the last full batch has n - 1 coins behind it, that of a shorter one after it n.
    bound = batch * float(overrun(budget, coins - 1, p, log_phi, clip))
    return bound + left * math.exp(float(log_tail(budget + 1, coins, p, log_phi, clip)))


def near_exact(horizon: int, switches: int, draws: int) -> float:
    """Return how exact draws must be for a plan without a privacy claim (docs/theory, P7).

    At most 1e-9, and less where the horizon is so long that inexact draws could otherwise take more than about a
    thousandth of the switches, or of a regret of the order of the root of the horizon.

    >>> near_exact(1000, 100, 4), near_exact(10**9, 10**6, 4) < 1e-14
    (1e-09, True)
    """
    number = 1 + 2 * min(switches, horizon) * (draws + 1)
    share = 1e-3 * min(max(switches, 1) / horizon, 0.3 / math.sqrt(horizon))
    return min(1e-9, share * math.sqrt(2 * math.pi) / number)


@dataclass(frozen=True)
class Switching:
    """The law of switches of one plan, with every bound as a number.

    >>> from reticent.domains import Interval
    >>> from reticent.planning import Plan
    >>> law = Switching(Plan(Interval(-1.0, 1.0), 100, 1.0, beta=0.1, lam=30.0, p=0.0, phi=1.25))
    >>> round(law.q, 6), law.clip, round(law.expected, 3)
    (0.2, 0.0, 20.0)
    """

    plan: Plan

    @cached_property
    def log_phi(self) -> float:
        """The logarithm of `plan.phi`."""
        return math.log(self.plan.phi)

    @cached_property
    def q(self) -> float:
        """The chance of a switch per coin when nothing is clipped."""
        return float(rate(self.plan.p, self.log_phi))

    @cached_property
    def clip(self) -> float:
        """The mass that clipping moves per coin."""
        plan = self.plan
        step = plan.batch * plan.lipschitz * math.sqrt(plan.beta / plan.lam)
        reach = plan.beta * plan.batch * plan.lipschitz * plan.domain.diameter
        return float(clipping(self.log_phi, step, plan.draws, reach))

    @cached_property
    def draws(self) -> float:
        """A bound on the expected number of draws, auxiliary ones and that of the first decision included."""
        plan, looked = self.plan, float(looked_at(self.plan.p, self.log_phi))
        return 1 + plan.coins * (plan.p + looked * (plan.draws + 1))

    @cached_property
    def failure(self) -> float:
        """A bound on the chance that some draw is not what an exact draw would have been (docs/theory, P7)."""
        return min(1.0, math.erf(self.plan.distance / math.sqrt(8)) * self.draws)

    @cached_property
    def expected(self) -> float:
        """A bound on the expected number of switches, inexact draws and the budget included."""
        plan, n = self.plan, self.plan.coins
        free = float(expected_switches(n, plan.p, self.log_phi, self.clip)) + n * self.failure
        # The chance of a look is the same whatever the draws are.
        looked = n * (plan.p + float(looked_at(plan.p, self.log_phi)))
        return min(free, looked, n, math.inf if plan.budget is None else plan.budget)

    def tail(self, j: int) -> float:
        """Return a bound on the chance of `j` switches or more, were there no budget."""
        bound = math.exp(float(log_tail(j, self.plan.coins, self.plan.p, self.log_phi, self.clip)))
        return min(1.0, bound + self.failure)

    def weighted_variation(self) -> float:
        """Return the sum over the batches of their rounds times the distance of their decision from its measure."""
        return weighted_variation(self.plan.horizon or 0, self.plan.batch, self.plan.p, self.clip)

    def weighted_overrun(self) -> float:
        """Return the sum over the batches of their rounds times the chance that the budget is spent before."""
        plan = self.plan
        if plan.budget is None:
            return 0.0
        return weighted_overrun(plan.horizon or 0, plan.batch, plan.budget, plan.p, self.log_phi, self.clip)


def _array(value: Number) -> Array:
    return np.asarray(value, dtype=np.float64)


def _binomial_tail(least: Array, n: Array, q: Array) -> Array:
    """Return log P(Bin(n, q) >= least), by the incomplete beta function or, where that underflows, by Chernoff."""
    j, count, chance = np.broadcast_arrays(least, n, np.clip(q, 0.0, 1.0))
    inside = (j > 0) & (j <= count)
    safe_j, safe_n = np.where(inside, j, 1.0), np.where(inside, count, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = np.log(scipy.special.betainc(safe_j, safe_n - safe_j + 1, chance))
        share = safe_j / safe_n
        chernoff = -safe_n * scipy.special.rel_entr(share, chance)
        chernoff = chernoff - safe_n * scipy.special.rel_entr(1 - share, 1 - chance)
        chernoff = np.where(share > chance, np.where(np.isnan(chernoff), 0.0, chernoff), 0.0)
    log_tail = np.where(exact > -650, exact, chernoff)
    return np.where(j <= 0, 0.0, np.where(j > count, -np.inf, log_tail))


def _geometric(count: Array, p: Array) -> Array:
    """Return the sum of (1-p)^i over 0 <= i < count, that is (1 - (1-p)^count) / p."""
    safe = np.clip(p, 1e-300, 1 - 1e-16)
    closed = -np.expm1(count * np.log1p(-safe)) / safe
    return np.where(p == 0, count, np.where(p == 1, np.minimum(count, 1.0), closed))


def _geometric_sum(count: Array, p: Array) -> Array:
    """Return the sum of `_geometric(k, p)` over 0 <= k < count, that is (count - _geometric(count, p)) / p."""
    # For small count * p the difference cancels; an alternating series cut after a positive term is a bound from above.
    pairs = count * (count - 1) / 2
    series = pairs * (1 - np.maximum(count - 2, 0) * p / 3 + np.maximum((count - 2) * (count - 3), 0) * p * p / 12)
    closed = (count - _geometric(count, p)) / np.maximum(p, 1e-300)
    return np.where(count * p < 1e-3, series, closed)
