"""A private quantile of a stream of numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, overload

import numpy as np

from reticent._core._check import Array, real
from reticent._core._random import Seed
from reticent._core._tags import saved
from reticent.domains import Interval
from reticent.learners import make
from reticent.losses import Pinball
from reticent.planning import best_plan, plan_ftrl, plan_private
from reticent.trackers._exact import Integers
from reticent.trackers._memory import Memory
from reticent.trackers._ranks import CELLS, Cells, drawn_cell, level_of
from reticent.trackers._tracker import Tracker, named, public_interval
from reticent.trackers._windows import WindowPlan, Windows, window_plan

_ONE = np.ones(1)  # the features of every round
SYSTEMS = ("DP-FTRL", "P-COMW", "best")
_NAMES = ("level", "low", "high", "epsilon", "delta")
_BEFORE = ("level", "low", "high", "horizon", "epsilon", "delta")

# Noise is some 2/epsilon ranks. With 10/(epsilon m) values, m the share beyond the level, there are 10/epsilon ranks to
# the end of the window, so that cells beyond it, all alike, are rarely drawn; 150/epsilon are for levels in the middle.
_TAIL, _MORE = Fraction(10), Fraction(150)


def needed(level: float) -> Fraction:
    """Return how many values a window needs, times epsilon, for noise in its ranks to matter little."""
    share = level_of(level)
    return _TAIL / min(share, 1 - share) + _MORE


@saved("windows of ranks")
class RankWindows(Windows):
    """Releases a quantile of every window by ranks (docs/theory, R11a), and publishes what a memory says."""

    _moves = ("memory", "total")

    def __init__(self, plan: WindowPlan, level: float, cells: Cells, seed: Seed) -> None:
        """Start in the middle of the bounds."""
        super().__init__(plan, seed)
        self.level, self.cells = level, cells
        self.memory = Memory((plan.low + plan.high) / 2)
        self.total = 0.0  # what was published, added up over the rounds of windows that are over

    def _twin(self) -> RankWindows:
        level_of(self.level)  # refuses what is none
        return RankWindows(self.plan, self.level, Cells(self.plan.low, self.plan.high, self.cells.count), 0)

    @property
    def shown(self) -> float:
        """What is published now."""
        return self.memory.shown

    @property
    def average(self) -> float:
        """The mean, over rounds, of what was published."""
        return (self.total + self.shown * len(self._waiting)) / self.rounds if self.rounds else self.shown

    def _release(self, values: Array) -> bool:
        before = self.shown
        self.total += before * self.plan.window
        (release,) = self.drawn(self.cells.counts(values), self._rng)
        return self.memory.take(release) != before

    def drawn(self, counts: Integers, rng: np.random.Generator) -> tuple[float]:
        """Return what is released of a window with so many values in each cell."""
        cell = drawn_cell(counts, level_of(self.level), self.budget, rng, self.plan.neighbors)
        return (self.cells.middle(cell),)


@saved("private quantile")
class PrivateQuantile(Tracker):
    """The quantile of a stream at `level`, between public bounds: private, and never at an end.

    Values are taken in windows. At the end of each one a number near its quantile is drawn by ranks, from public cells,
    and what is published is computed from these draws: every value is used once, so that the whole sequence of `value`
    is `epsilon`-private (delta 0) in any one of the values, however many come. The draw is exact in law (docs/theory,
    R11). `window` is the number of values in one, chosen for small noise unless given; `traffic` is about how many
    values come in a day, or whatever time should have at most 100 releases and at least 4. `cells` is how finely the
    bounds are divided. Errors hardly depend on how wide the bounds are. A `delta` above 0 is not spent: nothing that we
    know does better with it.

    `value` follows the stream: it stays while releases say that it may. `average`, the mean of all that was published,
    is for streams of one law. With `horizon=`, the number of values to come, or `system=` ("DP-FTRL", "P-COMW" or
    "best") the quantile is that of the whole past, by a learner with a certificate on regret; that needs a `delta`. A
    `seed` is for tests and experiments.

    >>> import numpy as np
    >>> import reticent as rt
    >>> waiting = rt.PrivateQuantile(0.9, 0.0, 60.0, epsilon=1.0, seed=1)
    >>> waiting.update_many(np.random.default_rng(0).exponential(10.0, size=20_000))
    >>> waiting.rounds, 20 < waiting.value < 26, waiting.spent()
    (20000, True, 1.0)
    """

    @overload
    def __init__(
        self,
        level: float,
        low: float,
        high: float,
        epsilon: float,
        delta: float = 0.0,
        *,
        horizon: int | None = None,
        window: int | None = None,
        traffic: float | None = None,
        cells: int = CELLS,
        system: str | None = None,
        neighbors: str = "replace",
        seed: Seed = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        q: float,
        low: float,
        high: float,
        horizon: int | None,
        epsilon: float,
        delta: float,
        *,
        system: str | None = None,
        neighbors: str = "replace",
        seed: Seed = None,
    ) -> None: ...

    def __init__(self, *goal: Any, **options: Any) -> None:
        """Plan for the goal, and start at a point that knows of no value."""
        if "q" in options:
            options["level"] = options.pop("q")
        self._set_up(**named(_NAMES, _BEFORE, goal, options))

    def _set_up(
        self,
        level: float,
        low: float,
        high: float,
        epsilon: float,
        delta: float = 0.0,
        *,
        horizon: int | None = None,
        window: int | None = None,
        traffic: float | None = None,
        cells: int = CELLS,
        system: str | None = None,
        neighbors: str = "replace",
        seed: Seed = None,
    ) -> None:
        if not 0 < real("level", level) < 1:
            raise ValueError(f"level (or q) must lie strictly between 0 and 1, got {level!r}; 0.5 gives the median")
        domain = public_interval(low, high)
        self.q = float(level)
        if horizon is None and system is None:
            goal = f"{self.q:g}-quantile", low, high, epsilon, delta
            plan = window_plan(*goal, needed(self.q), window, traffic, neighbors)
            super().__init__(RankWindows(plan, self.q, Cells(plan.low, plan.high, cells), seed), low, high)
        else:
            if window is not None or traffic is not None:
                raise ValueError(
                    f"window and traffic are for a tracker without horizon and system, got window={window!r} and "
                    f"traffic={traffic!r}; leave one or the other out"
                )
            loss = Pinball(self.q)
            chosen = system if system is not None else "DP-FTRL"
            super().__init__(
                make(_plan(chosen, domain, horizon, loss, epsilon, delta, neighbors), loss, seed), low, high
            )
        self._counted = 0  # rounds that came by way of the tracker
        self._shown, self._since = self.value, 0  # what is published, and from which round on
        self._total = 0.0  # what was published before, added up over rounds

    @property
    def level(self) -> float:
        """The share of values that the quantile is to be above."""
        return self.q

    def _take(self, value: float) -> None:
        if isinstance(self._learner, Windows):
            self._learner.take(value)
            return
        self._learner.observe(_ONE, value)
        self._counted += 1
        self._show(self.rounds, self.value)

    def _take_many(self, values: Array) -> None:
        if isinstance(self._learner, Windows):
            self._learner.take_many(values)
            return
        first = self.rounds
        trace = self._learner.observe_many(np.ones(values.size), values)
        self._counted += values.size
        for start, shown in zip(trace.starts.tolist(), trace.points[:, 0].tolist(), strict=True):
            self._show(first + start, shown)
        self._show(self.rounds, self.value)

    def _show(self, at: int, shown: float) -> None:
        if shown != self._shown:
            self._total += self._shown * (at - self._since)
            self._shown, self._since = shown, at

    @property
    def value(self) -> float:
        """What is published now."""
        return float(self._learner.shown if isinstance(self._learner, Windows) else self._learner.decision[0])

    @property
    def average(self) -> float:
        """The mean, over rounds, of what was published; `value` before the first round."""
        if isinstance(self._learner, RankWindows):
            return self._learner.average
        if self.rounds != self._counted:
            past = self.rounds - self._counted
            raise ValueError(
                f"average must know what was in play in every round, but {past} of {self.rounds} rounds went to "
                "tracker.learner directly; give all of them to update or update_many"
            )
        if not self.rounds:
            return self.value
        return (self._total + self._shown * (self.rounds - self._since)) / self.rounds

    def __repr__(self) -> str:
        """Say where the tracker stands."""
        return self._says(f"PrivateQuantile {self.q:g}")


def _plan(
    system: str, domain: Interval, horizon: int | None, loss: Pinball, epsilon: float, delta: float, neighbors: str
) -> Any:
    if system not in SYSTEMS:
        raise ValueError(f"system must be one of {', '.join(map(repr, SYSTEMS))}, got {system!r}")
    slope = max(loss.tau, 1 - loss.tau)
    if system == "P-COMW":
        return plan_private(domain, horizon, slope, epsilon, delta, neighbors=neighbors)
    if horizon is None:
        raise ValueError(f'horizon must be a number of rounds for system={system!r}, got None; "P-COMW" runs epochs')
    if system == "DP-FTRL":
        return plan_ftrl(domain, horizon, slope, epsilon, delta, neighbors=neighbors)
    return best_plan(domain, horizon, slope, loss, epsilon=epsilon, delta=delta, neighbors=neighbors)
