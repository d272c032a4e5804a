"""The search for plans whose coins read the decision alone: lazy-to-private, and flat weights (docs/theory, R6).

Lengths are in units of the radius, losses in units of `lipschitz * radius`. For each candidate the strength of its
measure is the largest that privacy, the cap on switches and the measure itself leave room for: a goal that asks for
less leaves more room, hence never has a worse answer. Certificates decide in the end, not these costs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from reticent._core._check import Array
from reticent.domains import Domain
from reticent.privacy._losses import delta_with_failure, largest_mu
from reticent.systems._grid import COIN, DRAW, Rounding
from reticent.systems.pcomw._search import adaptive, coins_variance, key

Flags = NDArray[np.bool_]

# Halvings of the range of strengths: in the coarse grid, and near a candidate.
_ROUGH, _FINE = 24, 30
_LIMIT = 40  # where a budget ends
# Sizes of the first steps in batch, p, margin and shape, by what they shrink, and where they end.
_SIZES, _SHRINK, _LAST = np.array([0.7, 0.9, 0.7, 0.9]), 0.6, 0.01
_TURNS = 60
_FEW = 60  # draws
# With a cap on switches: parts of it that forced switches may take, and margins of the budget, to start from.
_SHARES, _MARGINS = (0.03, 0.1, 0.25, 0.5, 0.8), (0.5, 2.0, 4.0)
# The least margin: with a cap it may pay to run out of switches.
_LEAST_MARGIN = -6.0


class Trials(NamedTuple):
    """Candidates, one in each place of the arrays; `margin` is that of the budget over the mean, in deviations."""

    batch: Array
    p: Array
    margin: Array
    shape: Array

    @classmethod
    def of(cls, points: Array) -> Trials:
        """Read rows of coordinates: logarithms, and the margin as it is."""
        return cls(np.exp(points[:, 0]), np.exp(np.minimum(points[:, 1], 0.0)), points[:, 2], np.exp(points[:, 3]))


class Law(NamedTuple):
    """What follows from candidates and the strength of their measures."""

    floor: Array
    """Minus the logarithm of the least chance that a coin which is not forced keeps."""
    special: Array
    """By how much the logarithm of the chance to keep can differ in the changed batch."""
    shift: Array
    """The privacy of one draw, as the number of a Gaussian release."""


@dataclass(frozen=True)
class Found:
    """The end of a search: a candidate, the strength of its measure and the cost."""

    cost: float
    point: Array
    strength: float


def one_draw(domain: Domain, horizon: int) -> Rounding:
    """Return what the machine adds to one draw."""
    return Rounding.of(domain, horizon, 1, near=DRAW, cut=True)


class Costs(ABC):
    """Regret over candidates, for one goal of privacy; subclasses know the measure."""

    shapes: tuple[float, ...] = (1.0,)
    """The shapes of the measure to start from."""
    refreshing = False
    """Whether another point is drawn as often as switches are forced."""

    def __init__(
        self, domain: Domain, horizon: int, epsilon: float, delta: float, change: float, max_switches: int | None
    ) -> None:
        """Take the goal; `change` is in units of the Lipschitz constant."""
        self.domain, self.T, self.epsilon, self.delta, self.change = domain, horizon, epsilon, delta, change
        self.wide = domain.diameter / domain.radius
        self.cap = math.inf if max_switches is None else float(max_switches)
        self.most = largest_mu(epsilon, delta)
        self.machine = one_draw(domain, horizon)
        # By how much weaker than privacy asks for a measure may have to be so that few switches suffice.
        self.weaker = 1.0 if max_switches is None else max(1.0, self.most * math.sqrt(horizon) / (max_switches + 1))

    @property
    @abstractmethod
    def strengths(self) -> tuple[float, float]:
        """The least and the largest strength that may be wanted."""

    @abstractmethod
    def law(self, at: Trials, strength: Array) -> Law:
        """Return the coins and draws of each candidate."""

    @abstractmethod
    def measure(self, at: Trials, strength: Array) -> Array:
        """Return the regret that has nothing to do with switches."""

    def useful(self, at: Trials, strength: Array) -> Flags:
        """Say whether a stronger measure than this could still have less of that regret."""
        return np.full(strength.shape, True)

    def refreshes(self, batch: Array | float, p: Array | float) -> Array:
        """Return the cap on draws of the other point: their mean number."""
        if not self.refreshing:
            return np.zeros(np.shape(batch))
        # With p = 1 every switch is forced, and nothing is ever compared.
        number: Array = np.where(np.asarray(p) < 1, np.ceil(np.floor(self.T / np.asarray(batch)) * p), 0.0)
        return number

    def budget(self, at: Trials, law: Law) -> tuple[Array, Array]:
        """Return the budget, and the sum over batches of the chance that it was spent before (about)."""
        n, q, mean, deviation = self._number(at, law)
        budget = np.clip(mean + at.margin * deviation, 1.0, np.minimum(self.cap, n))
        z = (budget - mean) / deviation
        excess = deviation * (np.exp(-z * z / 2) / math.sqrt(2 * math.pi) - z * scipy.special.ndtr(-z))
        over = np.where(budget >= n, 0.0, np.minimum(np.maximum(excess, 0.0) / q, n))
        return budget, over

    def _number(self, at: Trials, law: Law) -> tuple[Array, Array, Array, Array]:
        """Return how many coins there are, how often one says "switch", and mean and deviation of the switches."""
        n = np.maximum(np.ceil(self.T / at.batch) - 1, 1.0)
        with np.errstate(divide="ignore"):
            q = -np.expm1(np.log1p(-at.p) - law.floor)
        return n, q, n * q, np.sqrt(n * q * (1 - q)) + 1e-9

    def room(self, at: Trials, strength: Array) -> Flags:
        """Say which strengths the cap on switches allows, and the measure can use."""
        useful = self.useful(at, strength)
        if math.isinf(self.cap):
            return useful
        allowed: Flags = useful & self._within(at, strength, self.cap)
        return allowed

    def _within(self, at: Trials, strength: Array, budget: Array | float) -> Flags:
        """Say which strengths ask for no more than a budget."""
        n, _, mean, deviation = self._number(at, self.law(at, strength))
        asked = np.minimum(np.maximum(mean + at.margin * deviation, 1.0), n)
        within: Flags = asked <= budget * (1 + 1e-9)
        return within

    def limit(self, at: Trials, budget: float = math.inf) -> float:
        """Return the largest strength of one candidate within the cap, of use, and that asks for no larger budget."""
        low, high = (math.log(end) for end in self.strengths)

        def allowed(strength: Array) -> bool:
            return bool(self.room(at, strength)[0] and self._within(at, strength, budget)[0])

        if allowed(np.array([math.exp(high)])):
            return math.inf
        for _ in range(_LIMIT):
            middle = (low + high) / 2
            low, high = (middle, high) if allowed(np.array([math.exp(middle)])) else (low, middle)
        return math.exp(low)

    def leak(self, at: Trials, strength: Array, budget: Array | None = None) -> Array:
        """Return the delta of each candidate at the epsilon of the goal."""
        law, machine = self.law(at, strength), self.machine
        released = self.budget(at, law)[0] if budget is None else budget
        draws = released + self.refreshes(at.batch, at.p)
        mu = machine.stretch * law.shift * np.sqrt(draws) + 2 * machine.distance * np.sqrt(draws)
        mu = np.sqrt(mu**2 + coins_variance(self.T / at.batch - 1, at.p, np.full_like(mu, 2 * COIN)))
        special = np.minimum(law.special, 700.0) + 2 * COIN
        found = delta_with_failure(adaptive, (mu, at.p, special), self.epsilon, machine.failure * draws, self.delta)
        return np.where(np.isfinite(found), found, 1.0)

    def solve(self, at: Trials, turns: int, budget: Array | None = None) -> Array:
        """Return the largest strength within the goal and of use; the least possible where there is none."""
        low, high = (np.full(at.p.shape, math.log(end)) for end in self.strengths)
        for _ in range(turns):
            middle = (low + high) / 2
            strength = np.exp(middle)
            good = (self.leak(at, strength, budget) <= self.delta * (1 - 1e-7)) & self.room(at, strength)
            low, high = np.where(good, middle, low), np.where(good, high, middle)
        solved: Array = np.exp(low)
        return solved

    def total(self, points: Array, turns: int) -> tuple[Array, Array]:
        """Return the regret and the strength of each candidate."""
        at = Trials.of(points)
        strength = self.solve(at, turns)
        law = self.law(at, strength)
        cost = self.measure(at, strength) + self.wide * at.batch * self.budget(at, law)[1]
        # Where draws may fail, not even the weakest measure is always within the goal.
        private = self.leak(at, strength) <= self.delta
        return np.where(private & np.isfinite(cost), cost, np.inf), strength


def search(costs: Costs) -> list[Found]:
    """Return the best candidates: one that draws afresh after every batch, and those that coins lead to."""
    T = costs.T
    batches = np.log(np.unique(np.round(np.geomspace(_shortest(costs), max(_shortest(costs), T / 2), 13))))
    shapes = np.log(costs.shapes)
    found = []
    for forced in (True, False):
        p = np.array([0.0]) if forced else np.linspace(math.log(min(1e-3, 3 / T)), math.log(0.8), 11)
        short = np.log(np.unique(np.round(np.geomspace(1, max(1.0, T**0.6), 9))))
        if forced:  # regret jumps where one draw less is needed: the shortest batches with few draws are starts too
            few = np.ceil(T / (np.arange(1, _FEW + 1) + 1.0))
            few = few[(few >= _shortest(costs)) & (few <= max(1.0, T / 2))]
            short = np.unique(np.concatenate([batches, np.log(few)]))
        axes = [short, p, np.array([3.0]), shapes]
        points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        if not forced and math.isfinite(costs.cap):
            points = np.concatenate([points, _sharing(costs, short, shapes)])
        total, _ = costs.total(points, _ROUGH)
        best = _walk(costs, points[int(total.argmin())], forced)
        wholes = _whole(best.point) + (_nearby(costs, best.point) if forced else [])
        found += [_walk(costs, whole, forced, fixed=True) for whole in wholes]
    return found


def _sharing(costs: Costs, batches: Array, shapes: Array) -> Array:
    """Return candidates whose forced switches are some part of those that the cap allows."""
    axes = [batches, np.log(_SHARES), np.array(_MARGINS), shapes]
    points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    points[:, 1] = np.minimum(points[:, 1] + points[:, 0] + math.log(min(costs.cap / costs.T, 1.0)), math.log(0.9))
    return points


def _shortest(costs: Costs) -> int:
    return 1 if math.isinf(costs.cap) else math.ceil(costs.T / (costs.cap + 1))


def _whole(point: Array) -> list[Array]:
    """Return a candidate with its batch rounded down and up."""
    b = math.exp(point[0])
    found = []
    for batch in sorted({max(1, math.floor(b)), math.ceil(b)}):
        moved = point.copy()
        moved[0] = math.log(batch)
        found.append(moved)
    return found


def _nearby(costs: Costs, point: Array) -> list[Array]:
    """Return a candidate that draws afresh with the shortest batches for about as many draws, if those are few."""
    draws = math.ceil(costs.T / math.exp(point[0])) - 1
    found = []
    for count in range(max(1, draws - 1), min(draws + 2, _FEW) + 1):
        moved, batch = point.copy(), math.ceil(costs.T / (count + 1))
        moved[0] = math.log(batch)
        found += [moved] if batch >= _shortest(costs) else []
    return found


def _walk(costs: Costs, point: Array, forced: bool, fixed: bool = False) -> Found:
    """Go downhill with steps along one axis or two, which shrink where none helps."""
    sizes = _SIZES.copy()
    if forced:
        sizes[1] = sizes[2] = 0.0
    if fixed:
        sizes[0] = 0.0
        sizes *= 0.3
    if len(costs.shapes) == 1:
        sizes[3] = 0.0
    shortest, margin = (0.0, 0.0) if math.isinf(costs.cap) else (math.log(_shortest(costs)), _LEAST_MARGIN)
    low = np.array([shortest if forced else 0.0, math.log(1e-9), margin, -50.0])
    high = np.array([math.log(costs.T), 0.0, 9.0, 600.0])
    offsets = np.stack([x.ravel() for x in np.meshgrid(*[[-1, 0, 1] if size else [0] for size in sizes])], axis=1)
    offsets = offsets[np.abs(offsets).sum(axis=1) <= 2]
    total, strength = costs.total(point[None], _FINE)
    best = Found(float(total[0]), point, float(strength[0]))
    # Whatever has been looked at is no better than the best: patterns share places with those before, and at edges.
    seen = {key(point)}
    scale, turns = 1.0, 0
    while scale > _LAST and turns < _TURNS:
        turns += 1
        pattern = {key(at): at for at in np.clip(best.point + scale * sizes * offsets, low, high)}
        points = np.array([at for name, at in pattern.items() if name not in seen])
        seen.update(pattern)
        if not points.size:
            scale *= _SHRINK
            continue
        total, strength = costs.total(points, _FINE)
        i = int(total.argmin())
        if total[i] < best.cost * (1 - 1e-6):
            best = Found(float(total[i]), points[i], float(strength[i]))
        else:
            scale *= _SHRINK
    return best
