"""The filtered gate of many keys at once; the gains of its filters, which depend on no data, are shared by all."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from reticent._core._check import Array
from reticent.fleet._arrays import Fields
from reticent.fleet._draws import States
from reticent.fleet._each import Moves
from reticent.fleet._gate import GateHolder
from reticent.fleet._keys import Key, Places, Root
from reticent.fleet._rows import alike
from reticent.fleet._spec import Spec
from reticent.systems.filtered._filter import Filter, expected, weighed, weighs
from reticent.systems.filtered._learner import AHEAD
from reticent.systems.filtered._plan import Epoch, FilteredPlan
from reticent.systems.filtered._release import EpochRelease
from reticent.systems.gate import BlockRelease
from reticent.systems.gate._release import Integers

_COURSES = 16  # epochs whose gains are kept: of the longest ones a few megabytes each


class Course:
    """The epoch of a plan as all keys go through it: its gate, and the gains of the filters block by block."""

    def __init__(self, plan: FilteredPlan, number: int, variance: Array | None) -> None:
        """Take the variances of w at its beginning; None for the first epoch."""
        domain = plan.domain
        self.epoch: Epoch = plan.epoch(number)
        self.mechanism: EpochRelease = plan.release(self.epoch)
        self.filter = Filter(domain.chart_dim, domain.radius, plan.lipschitz)
        if variance is not None:
            self.filter.covariance = variance[None, None]
        self.filter.begin(self.mechanism, self.epoch.block)
        self._steps: list[tuple[Array, Array]] = []

    @property
    def buffers(self) -> int:
        """How many buffers its noise has."""
        return int(self.mechanism.weights.size)

    def gains(self, block: int) -> tuple[Array, Array]:
        """Return the gains of a block, and the variances of its errors."""
        while len(self._steps) <= block:
            self._steps.append(self.filter.gains())
        return self._steps[block]

    def last(self) -> Array:
        """Return the variances of w when it is over."""
        self.gains(self.epoch.blocks - 1)
        found: Array = self.filter.covariance[0, 0]
        return found.copy()


class FilteredHolder(GateHolder):
    """The filtered gate of many keys: as `FilteredWalk` and `Filter`.

    Noise is drawn for the same groups of blocks as there. Of a group a few blocks are held; the others are drawn again
    from where the generator stood, which is cheap and needs little memory: the numbers are the same, and each is used
    once.
    """

    plan: FilteredPlan
    _grown = (*GateHolder._grown, "epoch", "evidence", "weights", "mean", "past", "buffers", "after", "held", "since")

    def __init__(self, spec: Spec, root: Root) -> None:
        """Hold nothing yet."""
        super().__init__(spec, root)
        d = self.dim
        self._courses: OrderedDict[int, Course] = OrderedDict()
        self._variances: list[Array | None] = [None]  # of w at the beginning of each epoch
        self._table = np.zeros((0, 3), dtype=np.int64)  # of each epoch: its start, the rounds of a block, blocks
        course = self._course(0)
        size, hypotheses = course.buffers, course.filter.curvatures.size
        self._group, self._hold = max(1, AHEAD // d), max(1, min(16, 256 // d))  # blocks drawn together, and held
        self.epoch = np.zeros(0, dtype=np.int64)
        self.evidence, self.weights = np.zeros((0, d, hypotheses)), np.zeros((0, d, hypotheses))
        self.mean, self.past = np.zeros((0, size + 1, d, hypotheses)), np.zeros((0, size, d))
        self.buffers = np.zeros((0, size, d))  # secret
        self.after: States = self.states.copy()  # where generators stand after the group that was drawn last
        self.held = np.zeros((0, self._hold, d), dtype=np.int64)  # noise of blocks to come: secret
        self.since = np.zeros(0, dtype=np.int64)  # the block that this begins with, counted from 1; 0 for none

    def start(self, slots: Places, keys: list[Key]) -> None:
        """Put new learners into slots."""
        super().start(slots, keys)
        self.weights[slots] = 1 / self.weights.shape[-1]

    def _course(self, number: int) -> Course:
        found = self._courses.get(number)
        if found is None:
            while len(self._variances) <= number:
                self._variances.append(self._course(len(self._variances) - 1).last())
            found = self._courses[number] = Course(self.plan, number, self._variances[number])
            while len(self._courses) > _COURSES:
                self._courses.popitem(last=False)
            while len(self._table) <= number:
                epoch = self.plan.epoch(len(self._table))
                self._table = np.concatenate([self._table, [[epoch.start, epoch.block, epoch.blocks]]])
        self._courses.move_to_end(number)
        return found

    def _left(self, slots: Places) -> Places:
        start, block, _ = self._table[self.epoch[slots]].T
        left: Places = block - (self.done[slots] - start) % block
        return left

    def _kinds(self, slots: Places) -> Places:
        return self.epoch[slots]

    def _grid(self, kind: int) -> BlockRelease:
        return self._course(kind).mechanism.grid

    def _released(self, kind: int, slots: Places) -> list[Moves]:
        course = self._course(kind)
        blocks = (self.done[slots] - course.epoch.start) // course.epoch.block - 1
        return [self._block(course, block, slots[part]) for block, part in alike(blocks)]

    def _block(self, course: Course, block: int, slots: Places) -> Moves:
        """Release one block of slots that are at the same one."""
        size, mechanism = course.buffers, course.mechanism
        noise = self._noise(course, block, slots)
        buffers, total = self.buffers[slots, :size], self.open[slots]
        released = mechanism.released(total, buffers, noise)
        self.buffers[slots, :size] = mechanism.filled(buffers, total)
        self.open[slots] = 0
        gains, spread = course.gains(block)
        state = self.mean[slots, : size + 1], self.evidence[slots], self.past[slots, :size]
        mean, evidence, past = course.filter.moved(gains, spread, *state, released, self.u[slots])
        if weighs(block):
            evidence, weights = weighed(evidence)
            self.weights[slots] = weights
        else:
            weights = self.weights[slots]
        aims = expected(weights, mean)
        self.evidence[slots] = evidence
        if block < course.epoch.blocks - 1:
            self.mean[slots, : size + 1], self.past[slots, :size] = mean, past
        else:
            self._become(course.epoch.number + 1, slots)
            self.mean[slots], self.past[slots], self.buffers[slots], self.since[slots] = 0, 0, 0, 0
            self.mean[slots, 0] = mean[:, 0]
        return self._go(slots, aims)

    def _become(self, kind: int, slots: Places) -> None:
        size = self._course(kind).buffers
        if size > self.buffers.shape[1]:
            self.mean = _wider(self.mean, size + 1)
            self.past, self.buffers = _wider(self.past, size), _wider(self.buffers, size)
        self.epoch[slots] = kind

    def _noise(self, course: Course, block: int, slots: Places) -> Integers:
        """Return the noise of a block of each slot."""
        place = block % self._group
        at = place - place % self._hold
        first = block - place + at  # of the blocks that are held together with this one
        missing = np.flatnonzero(self.since[slots] != first + 1) if place else np.arange(len(slots))
        if missing.size:
            some = slots[missing]
            if not place:
                self.states[some] = self.after[some]
            blocks = min(self._group, course.epoch.blocks - (block - place))
            drawn = self._normals(some, self.states[some], blocks * self.dim, course.mechanism.grid.shift)
            self.after[some] = drawn[1]
            held = drawn[0].reshape(len(some), blocks, self.dim)[:, at : at + self._hold]
            self.held[some, : held.shape[1]] = held
            self.since[some] = first + 1
        found: Integers = self.held[slots, block - first]
        return found

    def _fields(self, kind: int) -> Fields:
        size = self._course(kind).buffers
        some, more = (slice(0, size),), (slice(0, size + 1),)
        found: Fields = [(name, ()) for name in ("u", "open", "states", "after", "evidence", "weights")]
        return [*found, ("mean", more), ("past", some), ("buffers", some)]


def _wider(array: Array, size: int) -> Array:
    """Return an array with `size` entries along its second axis, zeros where there were none."""
    found = np.zeros((len(array), size, *array.shape[2:]))
    found[:, : array.shape[1]] = array
    return found
