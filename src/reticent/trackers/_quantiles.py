"""Several private quantiles of a stream at once, which never cross."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from reticent._core._check import Array, real
from reticent._core._random import Seed
from reticent._core._tags import saved
from reticent.saving import check_twin, refuse_unless
from reticent.trackers._exact import Integers
from reticent.trackers._memory import Memory
from reticent.trackers._quantile import needed
from reticent.trackers._ranks import CELLS, Cells, drawn_cell, level_of
from reticent.trackers._tracker import Tracker, public_interval
from reticent.trackers._windows import WindowPlan, Windows, window_plan


@saved("windows of several ranks")
class SeveralRankWindows(Windows):
    """Releases one cell for each level from every window, with a share of epsilon each (docs/theory, R11c)."""

    _moves = ("memories",)

    def __init__(self, plan: WindowPlan, levels: tuple[float, ...], cells: Cells, seed: Seed) -> None:
        """Start in the middle of the bounds, at every level."""
        super().__init__(plan, seed)
        self.levels, self.cells = levels, cells
        self.memories = [Memory((plan.low + plan.high) / 2) for _ in levels]

    def _twin(self) -> SeveralRankWindows:
        for level in self.levels:
            level_of(level)  # refuses what is none
        cells = Cells(self.plan.low, self.plan.high, self.cells.count)
        return SeveralRankWindows(self.plan, self.levels, cells, 0)

    def _check_moved(self) -> None:
        new = Memory((self.plan.low + self.plan.high) / 2)
        refuse_unless(len(self.memories) == len(self.levels), f"it has {len(self.memories)} memories")
        for memory in self.memories:
            check_twin(memory, new, (self._rng, None), "a memory")

    @property
    def shown(self) -> tuple[float, ...]:
        """What is published now, in the order of the levels; sorted, so that no two cross."""
        return tuple(sorted(memory.shown for memory in self.memories))

    def _release(self, values: Array) -> bool:
        before = self.shown
        for memory, number in zip(self.memories, self.drawn(self.cells.counts(values), self._rng), strict=True):
            memory.take(number)
        return self.shown != before

    def drawn(self, counts: Integers, rng: np.random.Generator) -> tuple[float, ...]:
        """Return what is released of a window with so many values in each cell, in the order of the levels."""
        whole = sum(map(needed, self.levels))
        found = [
            drawn_cell(counts, level_of(level), self.budget * needed(level) / whole, rng, self.plan.neighbors)
            for level in self.levels
        ]
        return tuple(map(self.cells.middle, sorted(found)))


@saved("private quantiles")
class PrivateQuantiles(Tracker):
    """Quantiles of a stream at several `levels`, between public bounds: from one release a window, never crossing.

    As `PrivateQuantile`, at all levels together for one `epsilon` (delta 0): each level has a share of it, in
    proportion to the window that it would need alone, and windows are as long as those together. `value` has one number
    for each level, in their order; `quantile(level)` is one of them.

    Noisy counts of cells, which would serve all levels from one noise, have more of it: at epsilon 1 its deviation at
    the levels of the example is 26, 18 and 4 ranks here, and 63 from a thousand cells (some 33 in a tree).

    >>> import numpy as np
    >>> import reticent as rt
    >>> waiting = rt.PrivateQuantiles((0.5, 0.9, 0.99), 0.0, 100.0, epsilon=1.0, seed=1)
    >>> waiting.update_many(np.random.default_rng(0).exponential(10.0, size=60_000))
    >>> half, most, nearly_all = waiting.value
    >>> 6 < half < 8, 20 < most < 26, 35 < nearly_all < 60, waiting.quantile(0.9) == most
    (True, True, True, True)
    """

    def __init__(
        self,
        levels: Sequence[float],
        low: float,
        high: float,
        epsilon: float,
        delta: float = 0.0,
        *,
        window: int | None = None,
        traffic: float | None = None,
        cells: int = CELLS,
        neighbors: str = "replace",
        seed: Seed = None,
    ) -> None:
        """Plan for the goal, and start in the middle."""
        public_interval(low, high)
        self.levels = tuple(real("a level", level) for level in levels)
        shares = tuple(level_of(level) for level in self.levels)
        if not shares or any(a >= b for a, b in pairwise(shares)):
            raise ValueError(f"levels must be one or more, each above the one before, got {self.levels!r}")
        goal = f"{', '.join(f'{level:g}' for level in self.levels)}-quantiles", low, high, epsilon, delta
        plan = window_plan(*goal, sum(map(needed, self.levels), Fraction(0)), window, traffic, neighbors)
        super().__init__(SeveralRankWindows(plan, self.levels, Cells(plan.low, plan.high, cells), seed), low, high)

    @property
    def value(self) -> tuple[float, ...]:
        """What is published now, one number for each level, in their order."""
        shown: tuple[float, ...] = self._learner.shown
        return shown

    def quantile(self, level: float) -> float:
        """Return the quantile at one of the levels."""
        if level not in self.levels:
            raise ValueError(f"level must be one of {self.levels}, got {level!r}; a new tracker can have others")
        return self.value[self.levels.index(level)]

    def __repr__(self) -> str:
        """Say where the tracker stands."""
        return self._says(f"PrivateQuantiles {', '.join(f'{level:g}' for level in self.levels)}")
