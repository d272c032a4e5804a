"""What candidates for a private plan cost: the largest step that the goal leaves room for, and the regret there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from reticent._check import Array
from reticent.planning._clipping import clipping
from reticent.planning._private_account import adaptive, coins_variance, gaussian, oblivious
from reticent.planning._private_first import FirstTerms
from reticent.planning._private_goal import Goal
from reticent.planning._switching import log_tail, rate, variation_sum

# Rounds of the secant rule; the logarithm of 1 / sqrt(-log delta) is nearly linear in that of the step.
_FAR, _NEAR = 12, 6
# A coin that keeps less than once in exp(3) times is no better than p = 1.
_STEEP = 3.0


@dataclass(frozen=True)
class Candidates:
    """Arrays of equal length: one candidate in each place.

    `c` is log phi over the deviation of the coin's ratio, `margin` says how many deviations the budget is above the
    mean number of switches, `precision` is beta lam R^2 / d.
    """

    batch: Array
    p: Array
    c: Array
    margin: Array
    precision: Array

    @classmethod
    def of(cls, points: Array) -> Candidates:
        """Read rows of coordinates: logarithms of batch, p and precision, the others as they are."""
        return cls(np.exp(points[:, 0]), np.exp(points[:, 1]), points[:, 2], points[:, 3], np.exp(points[:, 4]))


@dataclass(frozen=True)
class Law:
    """What follows from candidates and their steps G sqrt(beta/lam)."""

    log_phi: Array
    beta: Array
    clip: Array
    budget: Array
    mean: Array
    deviation: Array


class Costs:
    """Regret in units of G R, over candidates, for one goal."""

    def __init__(self, goal: Goal, first: FirstTerms) -> None:
        """Take the goal and the table of first terms."""
        self.goal, self._first = goal, first
        self.most = largest_mu(goal.epsilon, goal.delta)

    def total(self, at: Candidates, near: float | None = None) -> tuple[Array, Array]:
        """Return the regret and the step of each candidate; `near` is a step not far from theirs, if one is known."""
        goal, step = self.goal, self.step(at, near)
        law, n = law_of(goal, at, step), goal.horizon / at.batch
        regret = self.measure(step, at.precision, at.batch)
        drift = at.batch * variation_sum(n, at.p, law.clip)
        regret = regret + goal.wide * (drift + at.batch * self._overrun(n, at.p, law))
        # No candidate is one where the secant rule has lost its way, or whose coin hardly ever says "keep".
        missed = np.abs(np.log(self.delta(at, step)) - math.log(goal.delta)) > 0.3
        missed |= law.log_phi > _STEEP
        return np.where(missed | ~np.isfinite(regret), np.inf, regret), step

    def precisions(self, number: int) -> Array:
        """Return precisions all over the table."""
        low, high = self._first.precisions
        return np.geomspace(low, high, number)

    def measure(self, step: Array, precision: Array, batch: Array) -> Array:
        """Return first term and stability."""
        lam = np.sqrt(precision * self.goal.domain.chart_dim) / step
        return self._first(step, precision) + self.goal.horizon * batch / (2 * lam)

    def step(self, at: Candidates, near: float | None = None) -> Array:
        """Return the steps at which the quick account of each candidate has the delta of the goal."""
        goal = self.goal
        aim = -0.5 * math.log(-math.log(goal.delta))
        if near is None:
            share = np.minimum(1.0, at.p + 0.05)
            x = np.log(self.most / goal.change / np.sqrt(np.maximum(1.0, share * goal.horizon / at.batch)))
        else:
            x = np.full(at.p.shape, math.log(near))
        slope = np.ones_like(x)
        last_x = last_y = np.full_like(x, np.nan)
        low, high = np.full_like(x, -np.inf), np.full_like(x, np.inf)
        for _ in range(_FAR if near is None else _NEAR):
            y = self._level(at, x) - aim
            with np.errstate(invalid="ignore", divide="ignore"):
                secant = (y - last_y) / (x - last_x)
            slope = np.where(np.isfinite(secant), np.clip(secant, 0.4, 6.0), slope)
            last_x, last_y = x, y
            low, high = np.where(y <= 0, np.maximum(low, x), low), np.where(y > 0, np.minimum(high, x), high)
            x = x - np.clip(y / slope, -2.0, 2.0)
            # Back between the bounds, by halves, where the rule would leave them.
            with np.errstate(invalid="ignore"):
                x = np.where((x > low) & (x < high) | ~np.isfinite(high - low), x, (low + high) / 2)
        return np.exp(x)

    def _level(self, at: Candidates, x: Array) -> Array:
        level: Array = -0.5 * np.log(-np.log(self.delta(at, np.exp(x))))
        return level

    def delta(self, at: Candidates, step: Array) -> Array:
        """Return the quick account of each candidate at the epsilon of the goal."""
        goal = self.goal
        law = law_of(goal, at, step)
        eta = np.minimum(at.batch * step**2 * goal.change, 2 * law.log_phi)
        variance = coins_variance(goal.horizon / at.batch - 1, at.p, eta)
        shift = goal.change * step
        mu = np.sqrt(shift**2 * law.budget + variance)
        confined = (at.batch - 1) * step**2 * goal.change + law.beta * goal.change * goal.wide
        special = np.minimum(2 * law.log_phi, confined)
        delta = adaptive(mu, at.p, special, goal.epsilon)
        if goal.oblivious:
            drift = (1 - at.p) * law.clip * (np.minimum(1 / at.p, goal.horizon / at.batch) + 2)
            found = oblivious(mu, at.p, law.log_phi, shift, at.batch * step, drift, goal.epsilon)
            delta = np.minimum(delta, found)  # whoever fixes the losses in advance is one who may adapt them
        return np.clip(delta, 1e-300, 0.99)

    def _overrun(self, n: Array, p: Array, law: Law) -> Array:
        """Return about the sum over coins of the chance that more switches than the budget were wanted before."""
        # The chance at the end is that of docs/theory.md, P4; how long before it counts, that of a normal walk.
        place = (law.budget - law.mean) / law.deviation
        tail = np.maximum(scipy.special.ndtr(-place), 1e-300)
        excess = np.maximum(np.exp(-(place**2) / 2) / math.sqrt(2 * math.pi) - place * tail, 0.0)
        chance = np.exp(log_tail(np.ceil(law.budget) + 1, n - 1, p, law.log_phi, law.clip))
        waiting = chance * np.minimum(excess / tail, np.maximum(-place, 0) + 1 / (np.abs(place) + 0.5))
        waiting = waiting * law.deviation * n / law.mean
        return np.where(law.budget >= n - 1, 0.0, np.minimum(waiting, n))


def law_of(goal: Goal, at: Candidates, step: Array) -> Law:
    """Return budgets and what they follow from (docs/theory.md, P4)."""
    n = goal.horizon / at.batch
    length = at.batch * step
    log_phi = at.c * math.sqrt(1 + 1 / goal.draws) * length
    beta = np.sqrt(at.precision * goal.domain.chart_dim) * step
    clip = clipping(log_phi, length, goal.draws, beta * at.batch * goal.wide)
    drift = (1 - at.p) * clip
    q = np.minimum((rate(at.p, log_phi) + drift) / (1 + drift), 1.0)
    deviation = np.sqrt(n * q * (1 - q)) + 1e-9
    budget = n * q + deviation * np.sqrt(at.margin**2 + 2 * n * drift)
    return Law(log_phi, beta, clip, np.clip(budget, 1.0, np.minimum(goal.cap, n)), n * q, deviation)


def largest_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu of a release that is (epsilon, delta)-private.

    >>> round(largest_mu(1.0, float(gaussian(np.array(1.0), 1.0))), 9)
    1.0
    """
    found = scipy.optimize.brentq(
        lambda x: float(gaussian(np.array(math.exp(x)), epsilon)) - delta, math.log(1e-12), math.log(1e6), xtol=1e-12
    )
    return math.exp(found)
