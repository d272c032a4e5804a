"""The search for the best private plan, on quick accounts: from a coarse grid to a pattern that shrinks.

The later coins count as one more normal variable of the same variance. What is found with it goes through the real
accountant before it is called a plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from reticent._core._check import Array
from reticent.domains import Domain
from reticent.privacy._losses import delta_with_failure, gaussian_delta, largest_mu, largest_mu_with_failure
from reticent.systems._checks import within_failures
from reticent.systems._grid import COIN, DRAW, Rounding
from reticent.systems.pcomw._regret import first_term
from reticent.systems.pcomw._switching import clipping, log_tail, rate, variation_sum


@dataclass(frozen=True)
class PrivateGoal:
    """The question put to the planner of private plans.

    >>> from reticent.domains import Ball
    >>> PrivateGoal(Ball(2), 1000, 3.0, 1.0, 1e-6, "replace", "adaptive", None, 4).change
    2.0
    """

    domain: Domain
    horizon: int
    lipschitz: float
    epsilon: float
    delta: float
    neighbors: str
    adversary: str
    max_switches: int | None
    draws: int

    @property
    def change(self) -> float:
        """The Lipschitz constant of the difference of neighbouring losses, in units of `lipschitz`."""
        return 2.0 if self.neighbors == "replace" else 1.0

    @property
    def oblivious(self) -> bool:
        """Whether the plan may use the certificate for losses that do not depend on the decisions."""
        return self.adversary == "oblivious"

    @property
    def wide(self) -> float:
        """The diameter in units of the radius."""
        return self.domain.diameter / self.domain.radius

    @property
    def cap(self) -> float:
        """The largest budget allowed."""
        return math.inf if self.max_switches is None else float(self.max_switches)

    @property
    def machine(self) -> Rounding:
        """What floating point may add to the account of one draw."""
        return Rounding.of(self.domain, self.horizon, 1, near=DRAW, cut=True)

    @property
    def within_failures(self) -> PrivateGoal:
        """What draws that may fail leave of this goal: plans for one are plans for the other."""
        epsilon, switches = within_failures(self.machine, self.horizon, self.epsilon, self.delta, self.max_switches)
        return replace(self, epsilon=epsilon, max_switches=switches)

    @property
    def source(self) -> str:
        """Where a plan for this goal comes from."""
        also = "" if self.max_switches is None else f", never more than {self.max_switches:,} switches"
        return f"plan_private, epsilon {self.epsilon:g} at delta {self.delta:g}{also}"


# The first term of regret as a smooth function of two numbers, from a table: for searches.


class FirstTerms:
    """The first term in units of G R, for steps G sqrt(beta/lam) and precisions beta lam R^2 / d around given ones.

    Its logarithm is a spline in both logarithms; outside the table it is infinite.

    >>> from reticent.domains import Ball
    >>> terms = FirstTerms(Ball(3), 10_000, (1e-3, 1e-1), (1.0, 1e3), (9, 9))
    >>> lam = math.sqrt(3 * 20.0) / 0.01
    >>> exact = first_term(Ball(3), lam * 0.01**2, lam, 1e4, quick=True)
    >>> abs(float(terms(np.array(0.01), np.array(20.0))) / exact - 1) < 0.01
    True
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        steps: tuple[float, float],
        precisions: tuple[float, float],
        size: tuple[int, int],
    ) -> None:
        """Fill the table."""
        self._d, R = domain.chart_dim, domain.radius
        self._x = np.linspace(math.log(steps[0]), math.log(steps[1]), size[0])
        self._y = np.linspace(math.log(precisions[0]), math.log(precisions[1]), size[1])
        values = np.empty(size)
        for i, step in enumerate(np.exp(self._x)):
            for j, precision in enumerate(np.exp(self._y)):
                lam = math.sqrt(precision * self._d) / step
                beta = lam * step**2
                # G = 1 / R and beta in its units: first_term is asked for with lengths as they are.
                values[i, j] = first_term(domain, beta, lam / R**2, horizon / R, quick=True)
        self._spline = scipy.interpolate.RectBivariateSpline(self._x, self._y, np.log(np.maximum(values, 1e-300)))

    @property
    def precisions(self) -> tuple[float, float]:
        """The least and the largest precision of the table, a little inside its edges."""
        return math.exp(self._y[0]) * (1 + 1e-9), math.exp(self._y[-1]) * (1 - 1e-9)

    def __call__(self, step: Array, precision: Array) -> Array:
        """Return the first term at each pair."""
        x, y = np.log(step), np.log(precision)
        outside = (x < self._x[0]) | (x > self._x[-1]) | (y < self._y[0]) | (y > self._y[-1])
        value = np.exp(self._spline.ev(np.clip(x, self._x[0], self._x[-1]), np.clip(y, self._y[0], self._y[-1])))
        return np.where(outside, np.inf, value)


# A quick stand-in for the accountant: what many candidate plans reveal, all at once. For searches, not for claims.

# Nodes for the normal law of the losses, on both sides of the place where the coin's hockey stick has its corner, and
# the standard deviations around the mean that count.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_LEFT, _RIGHT = -5.0, 14.0


def coins_variance(count: Array, p: Array, eta: Array) -> Array:
    """Return the variance of the privacy losses of the later coins (docs/theory, Q2)."""
    gap = -(1 - p) * np.expm1(-eta)
    folded = 2 * p + gap > 1
    step = np.where(folded, eta, np.log1p(gap / p))
    total = np.where(folded, (1 - p) * (1 + np.exp(-eta)), 2 * p + gap)
    variance: Array = np.maximum(count, 0.0) * total * step**2
    return variance


def adaptive(mu: Array, p: Array, special: Array, epsilon: float | Array) -> Array:
    """Return delta with the coin of the changed batch, whose chances to keep differ by exp(`special`) (Q3 and Q4b)."""
    gap = -(1 - p) * np.expm1(-special)
    rise = np.log1p(gap / p)
    more = (1 - p - gap) * gaussian_delta(mu, epsilon + special) + (p + gap) * gaussian_delta(mu, epsilon - rise)
    less = p * gaussian_delta(mu, epsilon + rise) + (1 - p) * gaussian_delta(mu, epsilon - special)
    return np.maximum(more, less)


def oblivious(mu: Array, p: Array, log_phi: Array, shift: Array, length: Array, epsilon: float | Array) -> Array:
    """Return delta for losses that do not depend on the decisions (docs/theory, Q6), with a few values of t only.

    `mu` is that of everything but the coin of the changed batch, `shift` that of one draw, `length` that of a batch's
    losses. What clipping moves is left out.
    """
    keep = (1 - p) * np.exp(-np.minimum(log_phi, 50.0))
    kept = keep * gaussian_delta(np.hypot(mu, shift), epsilon)
    corner = np.clip((epsilon - mu**2 / 2) / mu, _LEFT + 0.1, _RIGHT - 6.0)
    switched = np.zeros_like(mu)
    # Six deviations to the right of the corner: beyond it the normal density falls at least as fast as around 0.
    for low, high in ((np.full_like(mu, _LEFT), corner), (corner, np.maximum(corner, 0.0) + 6.0)):
        half = (high - low)[..., None] / 2
        place = low[..., None] + half * (_NODES + 1)
        density = half * _WEIGHTS * np.exp(-(place**2) / 2) / math.sqrt(2 * math.pi)
        loss = (mu**2 / 2)[..., None] + mu[..., None] * place
        parts = _switch(
            np.asarray(epsilon)[..., None] - loss, p[..., None], keep[..., None], shift[..., None], length[..., None]
        )
        switched = switched + (parts * density).sum(axis=-1)
    delta: Array = kept + switched
    return delta


def _switch(e: Array, p: Array, keep: Array, shift: Array, length: Array) -> Array:
    """Return T at exp(e), for a switch in the changed batch."""
    with np.errstate(over="ignore"):
        less = -np.expm1(-np.abs(e))  # 1 - exp(-|e|)
    excess = np.expm1(np.minimum(np.abs(e), 50.0))  # alpha - 1 for the alpha >= 1 among alpha and 1/alpha
    best = keep * _hockey(excess * p / (1 - p), shift)
    for times in (2.0, 3.0, 4.0, 5.0):
        t = times * length
        rest = np.exp(-t) / keep - 1
        best = np.minimum(best, keep * _hockey(excess * rest, shift) + excess * np.exp(-t) * _hockey(t, length))
    # Exchanging the two worlds for alpha < 1.
    return np.where(e >= 0, best, (1 - keep) * less + (1 - less) * best)


def _hockey(gap: Array, shift: Array) -> Array:
    """Return c h(log 1/c) for c = 1 - gap and a small shift: the mean excess of a normal variable over gap."""
    x = np.maximum(gap, 0.0) / shift
    x = np.minimum(x, 30.0)
    value: Array = shift * (np.exp(-x * x / 2) / math.sqrt(2 * math.pi) - x * scipy.special.ndtr(-x))
    return np.maximum(value, 0.0)


# What candidates for a private plan cost: the largest step that privacy and the cap on switches leave room for, and the
# regret there. A goal that asks for less leaves more room, hence never has a worse answer.

# Rounds of the secant rule; the logarithm of 1 / sqrt(-log delta) is nearly linear in that of the step.
_FAR, _NEAR = 12, 6
# Where failures take most of delta it hardly depends on the step: the least slope that the rule believes in.
FLATTEST = 0.01
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

    def some(self, which: NDArray[Any]) -> Candidates:
        """Return those at the places of an index."""
        return Candidates(self.batch[which], self.p[which], self.c[which], self.margin[which], self.precision[which])


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

    def __init__(self, goal: PrivateGoal, first: FirstTerms) -> None:
        """Take the goal and the table of first terms."""
        self.goal, self._first = goal, first
        self.most = largest_mu(goal.epsilon, goal.delta)
        self._machine = goal.machine

    def total(self, at: Candidates, near: float | None = None) -> tuple[Array, Array]:
        """Return the regret and the step of each candidate; `near` is a step not far from theirs, if one is known."""
        goal = self.goal
        step, arrived = self.step(at, near)
        law, n = law_of(goal, at, step), goal.horizon / at.batch
        regret = self.measure(step, at.precision, at.batch)
        drift = at.batch * variation_sum(n, at.p, law.clip)
        regret = regret + goal.wide * (drift + at.batch * self._overrun(n, at.p, law))
        # No candidate is one where the secant rule has lost its way, or whose coin hardly ever says "keep".
        missed, rest = law.log_phi > _STEEP, np.flatnonzero(~arrived)
        if rest.size:
            left = at.some(rest)
            off = np.log(self.delta(left, step[rest])) - math.log(goal.delta)
            missed[rest] |= (off > 0.3) | ((off < -0.3) & (step[rest] < limit(goal, left)))
        return np.where(missed | ~np.isfinite(regret), np.inf, regret), step

    def precisions(self, number: int) -> Array:
        """Return precisions all over the table."""
        low, high = self._first.precisions
        return np.geomspace(low, high, number)

    def measure(self, step: Array, precision: Array, batch: Array) -> Array:
        """Return the part of the regret that the measure alone decides: first term plus stability (P6)."""
        lam = np.sqrt(precision * self.goal.domain.chart_dim) / step
        return self._first(step, precision) + self.goal.horizon * batch / (2 * lam)

    def step(self, at: Candidates, near: float | None = None) -> tuple[Array, NDArray[np.bool_]]:
        """Return the steps at which the quick account of each candidate has the delta of the goal, or at its limit.

        And whether the rule has come to them: where it has not, it may have lost its way.
        """
        goal = self.goal
        aim = -0.5 * math.log(-math.log(goal.delta))
        turns, close = (_FAR, 1e-4) if near is None else (_NEAR, 1e-6)
        top = np.log(limit(goal, at))
        if near is None:
            share = np.minimum(1.0, at.p + 0.05)
            x = np.log(self.most / goal.change / np.sqrt(np.maximum(1.0, share * goal.horizon / at.batch)))
        else:
            x = np.full(at.p.shape, math.log(near))
        x = np.minimum(x, top)
        found, live = x.copy(), np.arange(x.size)
        slope = np.ones_like(x)
        last_x = last_y = np.full_like(x, np.nan)
        low, high = np.full_like(x, -np.inf), np.full_like(x, np.inf)
        for _ in range(turns):
            y = self._level(at, x) - aim
            with np.errstate(invalid="ignore", divide="ignore"):
                secant = (y - last_y) / (x - last_x)
            slope = np.where(np.isfinite(secant), np.clip(secant, FLATTEST, 6.0), slope)
            last_x, last_y = x, y
            low, high = np.where(y <= 0, np.maximum(low, x), low), np.where(y > 0, np.minimum(high, x), high)
            x = x - np.clip(y / slope, -2.0, 2.0)
            # Back between the bounds, by halves, where the rule would leave them.
            with np.errstate(invalid="ignore"):
                x = np.where((x > low) & (x < high) | ~np.isfinite(high - low), x, (low + high) / 2)
            x = np.minimum(x, top)
            found[live] = x
            # Only what has not arrived goes on: next to its aim, or at its limit with something to spare.
            on = (np.abs(y) > close) & ((last_x < top) | (y > 0))
            if not on.all():
                at, live = at.some(on), live[on]
                x, top, slope, last_x, last_y, low, high = (
                    one[on] for one in (x, top, slope, last_x, last_y, low, high)
                )
            if not live.size:
                break
        arrived = np.full(found.shape, True)
        arrived[live] = False
        return np.exp(found), arrived

    def _level(self, at: Candidates, x: Array) -> Array:
        level: Array = -0.5 * np.log(-np.log(self.delta(at, np.exp(x))))
        return level

    def delta(self, at: Candidates, step: Array) -> Array:
        """Return the quick account of each candidate at the epsilon of the goal."""
        goal = self.goal
        law = law_of(goal, at, step)
        eta = np.minimum(at.batch * step**2 * goal.change, 2 * law.log_phi) + 2 * COIN
        variance = coins_variance(goal.horizon / at.batch - 1, at.p, eta)
        shift = self._machine.widened(goal.change * step)
        mu = np.sqrt(shift**2 * law.budget + variance)
        failure = self._machine.failure * law.budget
        confined = (at.batch - 1) * step**2 * goal.change + law.beta * goal.change * goal.wide
        special = np.minimum(2 * law.log_phi, confined)
        delta = delta_with_failure(adaptive, (mu, at.p, special), goal.epsilon, failure, goal.delta)
        if goal.oblivious:
            failure = failure + (1 - at.p) * law.clip * (np.minimum(1 / at.p, goal.horizon / at.batch) + 2)
            place = mu, at.p, law.log_phi, shift, at.batch * step
            found = delta_with_failure(oblivious, place, goal.epsilon, failure, goal.delta)
            delta = np.minimum(delta, found)  # whoever fixes the losses in advance is one who may adapt them
        return np.clip(delta, 1e-300, 0.99)

    def forced_step(self, draws: Array) -> Array:
        """Return the steps at which so many forced draws have the delta of the goal, next to none where they cannot."""
        goal, machine = self.goal, self._machine
        mu = largest_mu_with_failure(goal.epsilon, goal.delta, machine.failure * draws) / np.sqrt(draws)
        step: Array = (mu - 2 * machine.distance) / (machine.stretch * goal.change)
        return np.maximum(step, 1e-9 * self.most)

    def _overrun(self, n: Array, p: Array, law: Law) -> Array:
        """Return about the sum over coins of the chance that more switches than the budget were wanted before."""
        # The chance at the end is that of docs/theory, P4; how long before it counts, that of a normal walk.
        place = (law.budget - law.mean) / law.deviation
        tail = np.maximum(scipy.special.ndtr(-place), 1e-300)
        excess = np.maximum(np.exp(-(place**2) / 2) / math.sqrt(2 * math.pi) - place * tail, 0.0)
        chance = np.exp(log_tail(np.ceil(law.budget) + 1, n - 1, p, law.log_phi, law.clip))
        waiting = chance * np.minimum(excess / tail, np.maximum(-place, 0) + 1 / (np.abs(place) + 0.5))
        waiting = waiting * law.deviation * n / law.mean
        return np.where(law.budget >= n - 1, 0.0, np.minimum(waiting, n))


def law_of(goal: PrivateGoal, at: Candidates, step: Array) -> Law:
    """Return budgets and what they follow from (docs/theory, P4)."""
    n = goal.horizon / at.batch
    length = at.batch * step
    log_phi = at.c * math.sqrt(1 + 1 / goal.draws) * length
    beta = np.sqrt(at.precision * goal.domain.chart_dim) * step
    clip = clipping(log_phi, length, goal.draws, beta * at.batch * goal.wide)
    drift = (1 - at.p) * clip
    q = np.minimum((rate(at.p, log_phi) + drift) / (1 + drift), 1.0)
    deviation = np.sqrt(n * q * (1 - q)) + 1e-9
    budget = n * q + deviation * (np.sqrt(np.maximum(at.margin, 0.0) ** 2 + 2 * n * drift) + np.minimum(at.margin, 0.0))
    return Law(log_phi, beta, clip, np.clip(budget, 1.0, np.minimum(goal.cap, n)), n * q, deviation)


def limit(goal: PrivateGoal, at: Candidates) -> Array:
    """Return the largest steps with which, but for clipping, the budget asked for is within the cap.

    >>> from reticent.domains import Ball
    >>> goal = PrivateGoal(Ball(2), 1000, 1.0, 1.0, 1e-6, "replace", "adaptive", 100, 4)
    >>> at = Candidates.of(np.array([[0.0, math.log(0.01), 2.0, 1.5, 0.0]]))
    >>> round(float(law_of(goal, at, limit(goal, at) * (1 - 1e-6)).budget[0]))
    100
    """
    n = goal.horizon / at.batch
    s, m = np.minimum(goal.cap / n, 1.0), at.margin
    # The rate q at which n q + m sqrt(n q (1-q)) is the cap, and the scale of the coin which that leaves to p.
    q = (s + m**2 / (2 * n) - m / np.sqrt(n) * np.sqrt(s * (1 - s) + m**2 / (4 * n))) / (1 + m**2 / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_phi = np.log1p(-np.minimum(at.p, 1.0)) - np.log1p(-np.minimum(q, 1.0))
        steps = np.maximum(log_phi, 1e-30) / (at.c * math.sqrt(1 + 1 / goal.draws) * at.batch)
    return np.where((s >= 1) | (at.p >= 1), np.inf, steps)


# The search for the best private plan, on quick accounts: from a coarse grid to a pattern that shrinks.

# With a cap on switches: parts of it that forced switches may take, margins to start from, and the least one, since it
# may pay to run out of switches.
_SHARES, _MARGINS, _LEAST_MARGIN = (0.03, 0.1, 0.25, 0.5, 0.8), (1.0, 3.0), -6.0
_Range = tuple[float, float]

# The first steps of the pattern, by what it shrinks, where it stops, and the number of starts.
_SIZES = np.array([0.5, 0.7, 0.5, 0.5, 0.7])
_SHRINK, _LAST, _BANDS = 0.55, 0.02, 4
_TURNS = 60
_FEW = 60  # draws


@dataclass(frozen=True)
class Found:
    """A candidate with its step, budget and cost."""

    cost: float
    batch: int
    p: float
    c: float
    margin: float
    precision: float
    step: float

    def budget(self, goal: PrivateGoal, step: float) -> int:
        """Return the budget that goes with a step: the number of switches grows with it."""
        if self.p >= 1:
            return int(forced_budget(goal.horizon, self.batch))
        law = law_of(goal, Candidates.of(self.point[None]), np.array([step]))
        return min(max(1, math.ceil(float(law.budget[0]))), goal.horizon // self.batch)

    def limit(self, goal: PrivateGoal) -> float:
        """Return the largest step that the cap on switches leaves room for."""
        return float(limit(goal, Candidates.of(self.point[None]))[0])

    @property
    def point(self) -> Array:
        """The coordinates of the search."""
        return np.array([math.log(self.batch), math.log(self.p), self.c, self.margin, math.log(self.precision)])


def search(goal: PrivateGoal) -> list[Found]:
    """Return the best candidate that resamples at every batch, and those with coins that two starts lead to."""
    steps, precisions = _ranges(goal)
    rows = math.ceil(math.log10(precisions[1] / precisions[0]))
    size = 10 + round(3 * math.log10(_weaker(goal))), rows
    wide = Costs(goal, _table(goal.domain, goal.horizon, steps, precisions, size))
    tables = _Tables(goal)
    forced, starts = _forced(wide), _coarse(wide)
    result = [_forced(tables.around(forced))]
    # Downhill from each start, roughly, and from the best of what is found with all care.
    rough = [_walk(wide, start.point, 2 * _SIZES, last=0.2) for start in starts]
    best = min(rough, key=lambda walked: walked[1], default=None)
    if best is not None:
        start = _found(*best)
        result.append(_refined(tables.around(start), start))
    return [found for found in result if math.isfinite(found.cost) or found.p == 1]


class _Tables:
    """Costs with a finer table of first terms around a candidate, made when none of those made before will do."""

    def __init__(self, goal: PrivateGoal) -> None:
        self._goal = goal
        self._made: list[tuple[Found, Costs]] = []

    def around(self, found: Found) -> Costs:
        for other, costs in self._made:
            if max(abs(math.log(found.step / other.step)), abs(math.log(found.precision / other.precision))) < 0.5:
                return costs
        steps, precisions = (found.step / 5, found.step * 5), (found.precision / 8, found.precision * 8)
        costs = Costs(self._goal, _table(self._goal.domain, self._goal.horizon, steps, precisions, (6, 6)))
        self._made.append((found, costs))
        return costs


@lru_cache(maxsize=8)  # both searches for an oblivious goal ask for the wide one
def _table(
    domain: Domain, horizon: int, steps: tuple[float, float], precisions: tuple[float, float], size: tuple[int, int]
) -> FirstTerms:
    return FirstTerms(domain, horizon, steps, precisions, size)


def _ranges(goal: PrivateGoal) -> tuple[_Range, _Range]:
    """Return all the steps and precisions that may be wanted."""
    mu = largest_mu(goal.epsilon, goal.delta)
    most = mu / goal.change
    # With batches of b rounds lam is about sqrt(T b) at least, and few switches mean long batches.
    few = max(1.0, min(goal.cap, goal.horizon, goal.machine.most(mu, goal.delta)))
    longest = (most * goal.horizon / few) ** 2 / goal.domain.chart_dim
    low = most / (10 * math.sqrt(goal.horizon)) / _weaker(goal)
    return (low, most * 1.01), (0.02, max(1e5, 100 * longest))


def _weaker(goal: PrivateGoal) -> float:
    """Return by how much smaller than privacy asks for steps may have to be so that few switches suffice."""
    most = largest_mu(goal.epsilon, goal.delta) / goal.change
    return max(1.0, most * math.sqrt(goal.horizon) / (goal.cap + 1))


def _least_batch(goal: PrivateGoal) -> int:
    """Return the shortest batch at which every coin may be a switch."""
    return 1 if goal.max_switches is None else math.ceil(goal.horizon / (goal.max_switches + 1))


def _coarse(costs: Costs) -> list[Found]:
    """Return the best points of a grid, one for each band of p, leaving out hopeless ones."""
    goal = costs.goal
    T = goal.horizon
    least = min(1e-3, 30 / T)
    axes = [
        np.log(np.unique(np.round(np.geomspace(1, max(1, T**0.6), 11)))),
        np.linspace(math.log(least), math.log(0.7), 11),
        np.array([2.0, 3.5, 5.0] if goal.oblivious else [1.5, 3.0]),
        np.array([3.0]),
        np.log([2.0, 12.0, *np.geomspace(100.0, max(100.0, 1e-3 * _ranges(goal)[1][1]), 3)]),
    ]
    points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    if goal.max_switches is not None:
        axes[1], axes[3] = np.log(_SHARES), np.array(_MARGINS)
        sharing = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        allowed = math.log(min(goal.cap / T, 1.0))
        sharing[:, 1] = np.minimum(sharing[:, 1] + sharing[:, 0] + allowed, math.log(0.7))
        points = np.concatenate([points, sharing])
        least = min(least, 0.9 * _SHARES[0] * goal.cap / T)
    total, step = costs.total(Candidates.of(points))
    starts = []
    for band in range(_BANDS):
        low, high = (math.log(least) * (1 - part / _BANDS) for part in (band, band + 1))
        here = np.where((points[:, 1] >= low - 1e-9) & (points[:, 1] < high), total, np.inf)
        i = int(here.argmin())
        if here[i] < 2 * total.min():
            starts.append(_found(points[i], here[i], step[i]))
    return starts


def _found(point: Array, total: float, step: float) -> Found:
    b, p, c, margin, precision = (float(x) for x in point)
    return Found(float(total), round(math.exp(b)), math.exp(p), c, margin, math.exp(precision), float(step))


def _refined(costs: Costs, start: Found) -> Found:
    """Walk downhill with real batches, then once more with the two whole ones around the best."""
    best = _walk(costs, start.point, 0.5 * _SIZES)
    b = math.exp(best[0][0])
    results = []
    for batch in sorted({max(1, math.floor(b)), math.ceil(b)}):
        point = best[0].copy()
        point[0] = math.log(batch)
        results.append(_walk(costs, point, np.append(0.0, 0.15 * _SIZES[1:])))
    point, total, step = min(results, key=lambda result: result[1])
    return _found(point, total, step)


def _walk(costs: Costs, point: Array, sizes: Array, last: float = _LAST) -> tuple[Array, float, float]:
    """Return the end of a walk downhill, with its cost and its step."""
    goal = costs.goal
    margin = 0.0 if goal.max_switches is None else _LEAST_MARGIN
    low = np.array([0.0, math.log(1e-9), 0.0, margin, math.log(1e-3)])
    high = np.array([math.log(goal.horizon), math.log(0.98), 12.0, 9.0, math.log(1e300)])
    offsets = np.stack([x.ravel() for x in np.meshgrid(*[[-1, 0, 1] if size else [0] for size in sizes])], axis=1)
    offsets = offsets[np.abs(offsets).sum(axis=1) <= 2]  # steps along one axis or two
    total, step = costs.total(Candidates.of(point[None]))
    best = point, float(total[0]), float(step[0])
    # Whatever has been looked at is no better than the best: patterns share places with those before, and at edges.
    seen = {key(point)}
    scale, turns = 1.0, 0
    while scale > last and turns < _TURNS:
        turns += 1
        pattern = {key(at): at for at in np.clip(best[0] + scale * sizes * offsets, low, high)}
        points = np.array([at for key, at in pattern.items() if key not in seen])
        seen.update(pattern)
        if not points.size:
            scale *= _SHRINK
            continue
        total, step = costs.total(Candidates.of(points), near=best[2])
        i = int(total.argmin())
        if total[i] < best[1] * (1 - 1e-6):
            best = points[i], float(total[i]), float(step[i])
        else:
            scale *= _SHRINK
    return best


def key(point: Array) -> tuple[float, ...]:
    """Return what tells a place of a search from others."""
    return tuple(np.round(point, 9).tolist())


def _forced(costs: Costs) -> Found:
    """Return the best candidate with p = 1: a fresh draw after every batch, and no coins."""
    goal, T = costs.goal, costs.goal.horizon
    least = _least_batch(goal)
    top = max(least, T // 2)
    # Regret jumps where one draw less is needed: the shortest batches with few draws are looked at one by one.
    few = np.ceil(T / (np.arange(1, _FEW + 1) + 1.0))
    few = few[(few >= least) & (few <= top)]
    batches, precisions = np.unique([*np.round(np.geomspace(least, top, 80)), *few]), costs.precisions(80)
    for _ in range(3):
        b, precision = (axis.ravel() for axis in np.meshgrid(batches, precisions, indexing="ij"))
        step = costs.forced_step(forced_budget(T, b))
        total = costs.measure(step, precision, b)
        i = int(total.argmin())
        width = max(1.0, 0.15 * b[i])
        near = np.round(np.clip(np.linspace(b[i] - width, b[i] + width, 61), least, top))
        batches = np.unique([*near, *few[np.abs(few - b[i]) <= width]])
        precisions = precision[i] * np.geomspace(0.8, 1.25, 21)
    return Found(float(total[i]), int(b[i]), 1.0, 0.0, 0.0, float(precision[i]), float(step[i]))


def forced_budget(horizon: int, batch: Array | float) -> Array:
    """Return the switches that matter when all are forced: a batch that ends with the run needs none after it."""
    needed: Array = np.maximum(1.0, np.ceil(horizon / np.asarray(batch)) - 1)
    return needed
