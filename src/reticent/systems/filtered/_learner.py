"""The filtered gate as it runs: blocks pass the gate of their epoch, and a filter says where to go."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.losses import Loss
from reticent.saving import refuse_unless
from reticent.systems._decider import Decider
from reticent.systems._plan import SystemPlan
from reticent.systems.filtered._filter import Filter
from reticent.systems.filtered._plan import FilteredPlan
from reticent.systems.gate import BlockWalk, GateLearner
from reticent.systems.gate._normal import rounded_normals
from reticent.systems.gate._release import Integers

AHEAD = 1024  # normal variables that are drawn together, about


@saved("filtered gate")
class FilteredGate(GateLearner):
    """Plays what filters make of block sums of gradients, released with correlated noise; with or without a horizon.

    Algorithm: in epochs of 8, 16, 32, ... blocks, a_k = (sum of the gradients of block k at the decision in play, each
    clipped and rounded to integers) + (earlier sums of the epoch, with falling weights) + rounded normal noise is
    released. From the releases alone, Kalman filters for several curvatures and drifts, weighted by their evidence,
    estimate the best decision, and the point of the domain nearest to that is played. Memory O(d); no compiled code.
    Theorem (docs/theory, R10): (1/noise)-GDP for any number of rounds and losses that react to decisions, in machine
    arithmetic. Nothing is certified of the decisions, which are measured: bench/ordinary.py.
    References: Denisov et al. 2022; Dvijotham et al. 2024; Kalman 1960.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_filtered(rt.Ball(2), None, 1.0, epsilon=1.0, delta=1e-6)
    >>> learner = rt.learners.FilteredGate(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (20_000, 1)))
    >>> bool(trace.losses.mean() < -0.9), learner.spent() <= 1.0
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = FilteredPlan

    def _new_walk(self) -> Decider:
        return FilteredWalk(self.plan, self.loss, self._rng)


@saved("walk of the filtered gate")
class FilteredWalk(BlockWalk):
    """Goes where the filter says, from epoch to epoch."""

    _moves: ClassVar[tuple[str, ...]] = ("released", "filter", "buffers", "ahead")
    _grows: ClassVar[tuple[str, ...]] = ("ahead",)

    def __init__(self, plan: FilteredPlan, loss: Loss, rng: np.random.Generator) -> None:
        """Start at the centre."""
        super().__init__(plan.domain, loss, rng)
        self.plan = plan
        self.released = np.zeros_like(self.open)  # the last release
        self.filter = Filter(plan.domain.chart_dim, plan.domain.radius, plan.lipschitz)
        self._begin(0)

    def _begin(self, number: int) -> None:
        self.epoch = self.plan.epoch(number)
        self.mechanism = self.plan.release(self.epoch)
        self.release = self.mechanism.grid
        self.buffers = self.mechanism.fresh()  # of the epoch's sums so far: secret
        self.ahead = np.zeros((0, self.u.size), dtype=np.int64)  # noise of blocks to come: secret
        self.filter.begin(self.mechanism, self.epoch.block)

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when the block ends."""
        epoch = self.epoch
        return epoch.start + ((self.done - epoch.start) // epoch.block + 1) * epoch.block

    def _release(self) -> Array:
        noise = self._noise()
        self.released = self.mechanism.released(self.open, self.buffers, noise)
        self.buffers = self.mechanism.filled(self.buffers, self.open)
        self.open = np.zeros_like(self.open)
        aim = self.filter.update(self.released, self.u)
        if self.done == self.epoch.end:
            self._begin(self.epoch.number + 1)
        return aim

    def _noise(self) -> Integers:
        """Return the noise of a block, and forget it; it is drawn for several blocks of the epoch at once."""
        if not len(self.ahead):
            left = (self.epoch.end - self.done) // self.epoch.block + 1
            count = min(left, max(1, AHEAD // self.u.size))
            drawn = rounded_normals(self.rng, count * self.u.size, self.release.shift)
            self.ahead = drawn.reshape(count, self.u.size)
        noise: Integers = self.ahead[0]
        self.ahead = self.ahead[1:]
        return noise

    def _catch_up(self, found: FilteredWalk) -> None:
        number, done = found.epoch.number, found.done
        right = type(number) is int and 0 <= number <= done  # an epoch has a round at least
        epoch = self.plan.epoch(number) if right else self.epoch
        refuse_unless(found.epoch == epoch and epoch.start <= done < epoch.end, "its epoch is not the one of its plan")
        self._begin(number)

    def _check_moved(self) -> None:
        over, rounds = divmod(self.done - self.epoch.start, self.epoch.block)
        self._check_open(rounds)
        refuse_unless(len(self.ahead) <= self.epoch.blocks - over, "it has noise for more blocks than there are")
        refuse_unless(self.filter.seen == over, f"its filter has seen {self.filter.seen} of {over} releases")
