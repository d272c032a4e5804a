"""A private mean of a stream of numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any, overload

import numpy as np

from reticent._core._bits import Bits
from reticent._core._check import Array, integer
from reticent._core._random import Seed
from reticent._core._tags import saved
from reticent.learners import make
from reticent.losses import Linear
from reticent.planning import plan_ftrl
from reticent.systems._persons import Owners
from reticent.trackers._exact import Integers, two_sided_geometric
from reticent.trackers._memory import Memory
from reticent.trackers._tracker import Tracker, named, public_interval
from reticent.trackers._windows import WindowPlan, Windows, refuse_persons, window_plan

_NAMES = ("low", "high", "epsilon", "delta")
_BEFORE = ("low", "high", "horizon", "epsilon", "delta")
_NEEDED = Fraction(400)  # values of a window, times epsilon: the noise in its mean is a third of a percent of the width
_STEPS = 1 << 20  # of the grid, from the middle of the bounds to one of them


@saved("windows of sums")
class SumWindows(Windows):
    """Releases the sum of every window, in whole numbers with two-sided geometric noise (docs/theory, R11e)."""

    _moves = ("memory",)

    def __init__(self, plan: WindowPlan, seed: Seed) -> None:
        """Start in the middle of the bounds."""
        super().__init__(plan, seed)
        self.memory = Memory(self._place(0))

    def _place(self, steps: float) -> float:
        low, high, share = self.plan.low, self.plan.high, (steps / _STEPS + 1) / 2
        return min(max(low * (1 - share) + high * share, low), high)

    @property
    def shown(self) -> float:
        """What is published now."""
        return self.memory.shown

    @property
    def rate(self) -> Fraction:
        """Epsilon over the steps that one value can move a sum by: from bound to bound, or from the middle to one."""
        return self.budget / (2 * _STEPS if self.plan.neighbors == "replace" else _STEPS)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in one released mean."""
        half, rate = (self.plan.high - self.plan.low) / 2, float(self.rate)
        return math.sqrt(2 * math.exp(rate)) / math.expm1(rate) * half / (_STEPS * self.plan.window)

    def steps(self, values: Array) -> Integers:
        """Return values in steps from the middle of the bounds; a missing one is there."""
        low, high = self.plan.low, self.plan.high
        shares = (values - low) / (high - low)
        steps = np.clip(np.rint((2 * shares - 1) * _STEPS), -_STEPS, _STEPS)
        return np.where(np.isnan(values), 0.0, steps).astype(np.int64)

    def drawn(self, total: int, rng: np.random.Generator) -> tuple[float]:
        """Return what is released of a window whose steps add up to this: its mean, with noise."""
        found = total + two_sided_geometric(Bits(rng), self.rate)
        return (self._place(found / self.plan.window),)

    def _release(self, values: Array) -> bool:
        before = self.shown
        (release,) = self.drawn(int(self.steps(values).sum()), self._rng)
        return self.memory.take(release) != before


@saved("private mean")
class PrivateMean(Tracker):
    """The mean of a stream of values between public bounds: private, and never at an end.

    Values are taken in windows. The sum of each is released once, in whole numbers with exact noise, and what is
    published is computed from these sums, over a memory that follows the stream: the whole sequence of `value` is
    `epsilon`-private (delta 0) in any one of the values, however many come (docs/theory, R11e). `window` is the number
    of values in one, 400/epsilon unless given; `traffic` as for `PrivateQuantile`. `average` is the mean of all windows
    so far. A round without a value (NaN, for neighbours "zero-out") counts as the middle of the bounds. `max_rows` as
    for `PrivateQuantile`.

    With `horizon=`, the number of values to come, `value` is the mean of the whole past, up to date after every value:
    running sums with square-root Toeplitz noise (those of DP-FTRL, docs/theory, R2) over the number of rounds. That
    needs a `delta`, and is a little closer than `average` in long runs. In the first rounds it is drawn to the middle.
    A `seed` is for tests and experiments.

    >>> import numpy as np
    >>> import reticent as rt
    >>> spending = rt.PrivateMean(0.0, 100.0, epsilon=1.0, seed=1)
    >>> spending.update_many(np.random.default_rng(0).uniform(0.0, 50.0, size=20_000))
    >>> abs(spending.value - 25.0) < 1.0, abs(spending.average - 25.0) < 0.5, spending.spent()
    (True, True, 1.0)
    """

    @overload
    def __init__(
        self,
        low: float,
        high: float,
        epsilon: float,
        delta: float = 0.0,
        *,
        horizon: int | None = None,
        window: int | None = None,
        traffic: float | None = None,
        max_rows: int | None = None,
        neighbors: str = "replace",
        seed: Seed = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        low: float,
        high: float,
        horizon: int,
        epsilon: float,
        delta: float,
        *,
        neighbors: str = "replace",
        seed: Seed = None,
    ) -> None: ...

    def __init__(self, *goal: Any, **options: Any) -> None:
        """Plan for the goal, and start in the middle."""
        self._set_up(**named(_NAMES, _BEFORE, goal, options))

    def _set_up(
        self,
        low: float,
        high: float,
        epsilon: float,
        delta: float = 0.0,
        *,
        horizon: int | None = None,
        window: int | None = None,
        traffic: float | None = None,
        max_rows: int | None = None,
        neighbors: str = "replace",
        seed: Seed = None,
    ) -> None:
        domain = public_interval(low, high)
        self._middle = float(domain.center[0])
        if horizon is None:
            goal = "mean", low, high, epsilon, delta
            plan = window_plan(*goal, _NEEDED, window, traffic, neighbors, max_rows)
            super().__init__(SumWindows(plan, seed), low, high)
            return
        if window is not None or traffic is not None:
            raise ValueError(
                f"window and traffic are for a tracker without horizon, got window={window!r} and traffic={traffic!r}; "
                "leave one or the other out"
            )
        if max_rows is not None:
            refuse_persons(max_rows)
        rounds = integer("horizon", horizon, least=1)
        # Values from the middle, turned round, as gradients: the leader is their sum over lam. That is T, or more where
        # noise is so large that its last bits would show.
        planned = plan_ftrl(domain, rounds, domain.radius, epsilon, delta, batch=1, linear=True, neighbors=neighbors)
        lam = max(float(rounds), planned.least_lam)
        super().__init__(make(replace(planned, lam=lam), Linear(), seed), low, high)

    def _take(self, value: float, owner: int | None = None) -> None:
        if isinstance(self._learner, Windows):
            self._learner.take(value, owner)
        else:
            self._learner.observe(self._gradients(np.array([value])))

    def _take_many(self, values: Array, owners: Owners | None = None) -> None:
        if isinstance(self._learner, Windows):
            self._learner.take_many(values, owners)
        else:
            self._learner.observe_many(self._gradients(values))

    def _gradients(self, values: Array) -> Array:
        # The middle is rounded, so that a bound may be farther from it than half the width: a round is never refused.
        most = self.plan.lipschitz
        gradients: Array = np.clip(self._middle - values, -most, most)
        return gradients

    @property
    def value(self) -> float:
        """The mean, with noise: of the stream as it is now, or with a horizon of all so far."""
        if isinstance(self._learner, Windows):
            return float(self._learner.shown)
        if not self.rounds:
            return self._middle
        total = (float(self._learner.decision[0]) - self._middle) * self.plan.lam
        # Noise of a known law, and a mean that could be anywhere between the bounds: the best multiple of their sum.
        mean = total / (self.rounds + self._noise**2 / (self.rounds * self._spread**2))
        return float(np.clip(self._middle + mean, self.low, self.high))

    @property
    def average(self) -> float:
        """The mean of all windows so far, or with a horizon of all values; the middle of the bounds before that."""
        if not isinstance(self._learner, SumWindows):
            return self.value
        memory = self._learner.memory
        return memory.mean if memory.count else memory.shown

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in `value`; public, since it depends on the number of rounds only.

        Without a horizon it is that of one released window, of which `value` and `average` are means.

        Where it is not small beside the bounds, `value` is also drawn towards their middle.
        """
        if isinstance(self._learner, SumWindows):
            return self._learner.deviation
        if not self.rounds:
            return 0.0
        return self._noise / (self.rounds + self._noise**2 / (self.rounds * self._spread**2))

    @property
    def _noise(self) -> float:
        """The standard deviation of the noise in the sum so far."""
        return float(self.plan.sigma * self.plan.mechanism.deviation(self.rounds))

    @property
    def _spread(self) -> float:
        """The standard deviation of a number anywhere between the bounds."""
        return (self.high - self.low) / math.sqrt(12.0)

    def __repr__(self) -> str:
        """Say where the tracker stands."""
        return self._says("PrivateMean")
