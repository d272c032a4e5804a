"""The law of switches under the coin: how many, how likely more, and how far decisions drift from their measure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from reticent._check import Array
from reticent.planning._clipping import clipping
from reticent.planning._plan import Plan

Number = float | Array

# Steps in the sum over rounds of the chance that the budget is already spent: 256 lose about one percent of it.
_STEPS = 256


def rate(p: Number, log_phi: Number) -> Array:
    """Return the chance q = 1 - (1-p)/phi of a switch when nothing is clipped (docs/theory.md, P2).

    >>> float(rate(0.0, math.log(2.0)))
    0.5
    """
    forced = _array(p)
    return forced - (1 - forced) * np.expm1(-_array(log_phi))


def looked_at(p: Number, log_phi: Number) -> Array:
    """Return the chance (1-p)(1 - phi^-2) that a coin needs its auxiliary draws (docs/theory.md, P5)."""
    return -(1 - _array(p)) * np.expm1(-2 * _array(log_phi))


def variation(k: Number, p: Number, clip: Number) -> Array:
    """Return the distance in total variation of a decision from its measure after `k` coins (docs/theory.md, P4).

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
    """Return a bound on the expected number of switches over `n` coins, losses being oblivious (docs/theory.md, P4).

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
    """Return the logarithm of a bound on the chance of `j` switches or more over `n` coins (docs/theory.md, P4).

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


def near_exact(horizon: int, switches: int, draws: int) -> float:
    """Return how exact draws must be for a plan without a privacy claim (docs/theory.md, P7).

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
        """A bound on the chance that some draw is not what an exact draw would have been (docs/theory.md, P7)."""
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
        plan = self.plan
        full = plan.batch * float(variation_sum(plan.coins, plan.p, self.clip))
        return full + self._left_over() * float(variation(plan.coins, plan.p, self.clip))

    def weighted_overrun(self) -> float:
        """Return the sum over the batches of their rounds times the chance that the budget is spent before."""
        plan = self.plan
        if plan.budget is None or plan.coins == 0:
            return 0.0
        # The decision of the last full batch has n - 1 coins behind it, that of a shorter one after it n.
        bound = plan.batch * float(overrun(plan.budget, plan.coins - 1, plan.p, self.log_phi, self.clip))
        last = math.exp(float(log_tail(plan.budget + 1, plan.coins, plan.p, self.log_phi, self.clip)))
        return bound + self._left_over() * last

    def _left_over(self) -> int:
        return (self.plan.horizon or 0) - self.plan.coins * self.plan.batch


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
