"""The search for the best private plan, on quick accounts: from a coarse grid to a pattern that shrinks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reticent._check import Array
from reticent.planning._private_cost import Candidates, Costs, largest_mu, law_of
from reticent.planning._private_first import FirstTerms
from reticent.planning._private_goal import Goal

_Range = tuple[float, float]

# The first steps of the pattern, by what it shrinks, where it stops, and the number of starts.
_SIZES = np.array([0.5, 0.7, 0.5, 0.5, 0.7])
_SHRINK, _LAST, _BANDS = 0.55, 0.02, 4
_TURNS = 60


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

    def budget(self, goal: Goal, step: float) -> int:
        """Return the budget that goes with a step: the number of switches grows with it."""
        if self.p >= 1:
            return int(forced_budget(goal.horizon, self.batch))
        law = law_of(goal, Candidates.of(self.point[None]), np.array([step]))
        return min(max(1, math.ceil(float(law.budget[0]))), goal.horizon // self.batch)

    @property
    def point(self) -> Array:
        """The coordinates of the search."""
        return np.array([math.log(self.batch), math.log(self.p), self.c, self.margin, math.log(self.precision)])


def search(goal: Goal) -> list[Found]:
    """Return the best candidate that resamples at every batch, and those with coins that two starts lead to."""
    steps, precisions = _ranges(goal)
    rows = math.ceil(math.log10(precisions[1] / precisions[0]))
    wide = Costs(goal, _table(goal, steps, precisions, (10, rows)))
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

    def __init__(self, goal: Goal) -> None:
        self._goal = goal
        self._made: list[tuple[Found, Costs]] = []

    def around(self, found: Found) -> Costs:
        for other, costs in self._made:
            if max(abs(math.log(found.step / other.step)), abs(math.log(found.precision / other.precision))) < 0.5:
                return costs
        steps, precisions = (found.step / 5, found.step * 5), (found.precision / 8, found.precision * 8)
        costs = Costs(self._goal, _table(self._goal, steps, precisions, (6, 6)))
        self._made.append((found, costs))
        return costs


def _table(
    goal: Goal, steps: tuple[float, float], precisions: tuple[float, float], size: tuple[int, int]
) -> FirstTerms:
    return FirstTerms(goal.domain, goal.horizon, steps, precisions, size)


def _ranges(goal: Goal) -> tuple[_Range, _Range]:
    """Return all the steps and precisions that may be wanted."""
    most = largest_mu(goal.epsilon, goal.delta) / goal.change
    # With batches of b rounds lam is about sqrt(T b) at least, and few switches mean long batches.
    longest = (most * _least_batch(goal)) ** 2 / goal.domain.chart_dim
    return (most / (10 * math.sqrt(goal.horizon)), most * 1.01), (0.02, max(1e5, 100 * longest))


def _least_batch(goal: Goal) -> int:
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
    low = np.array([0.0, math.log(1e-9), 0.0, 0.0, math.log(1e-3)])
    high = np.array([math.log(goal.horizon), math.log(0.98), 12.0, 9.0, math.log(1e300)])
    offsets = np.stack([x.ravel() for x in np.meshgrid(*[[-1, 0, 1] if size else [0] for size in sizes])], axis=1)
    offsets = offsets[np.abs(offsets).sum(axis=1) <= 2]  # steps along one axis or two
    total, step = costs.total(Candidates.of(point[None]))
    best = point, float(total[0]), float(step[0])
    scale, turns = 1.0, 0
    while scale > last and turns < _TURNS:
        turns += 1
        points = np.clip(best[0] + scale * sizes * offsets, low, high)
        total, step = costs.total(Candidates.of(points), near=best[2])
        i = int(total.argmin())
        if total[i] < best[1] * (1 - 1e-6):
            best = points[i], float(total[i]), float(step[i])
        else:
            scale *= _SHRINK
    return best


def _forced(costs: Costs) -> Found:
    """Return the best candidate with p = 1: a fresh draw after every batch, and no coins."""
    goal, T = costs.goal, costs.goal.horizon
    least = _least_batch(goal)
    top = max(least, T // 2)
    batches, precisions = np.unique(np.round(np.geomspace(least, top, 80))), costs.precisions(80)
    for _ in range(3):
        b, precision = (axis.ravel() for axis in np.meshgrid(batches, precisions, indexing="ij"))
        step = costs.most / (goal.change * np.sqrt(forced_budget(T, b)))
        total = costs.measure(step, precision, b)
        i = int(total.argmin())
        width = max(1.0, 0.15 * b[i])
        batches = np.unique(np.round(np.clip(np.linspace(b[i] - width, b[i] + width, 61), least, top)))
        precisions = precision[i] * np.geomspace(0.8, 1.25, 21)
    return Found(float(total[i]), int(b[i]), 1.0, 0.0, 0.0, float(precision[i]), float(step[i]))


def forced_budget(horizon: int, batch: Array | float) -> Array:
    """Return the switches that matter when all are forced: a batch that ends with the run needs none after it."""
    needed: Array = np.maximum(1.0, np.ceil(horizon / np.asarray(batch)) - 1)
    return needed
