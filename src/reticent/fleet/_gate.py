"""Learners behind the gate, of many keys at once: states in arrays, sums of rows by key, releases together.

What is computed is what the walks of single learners compute, by the same functions, number by number: the bits are the
same. Gains of the filters depend on the number of blocks only, and are shared by all keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import Any

import numpy as np

from reticent._core._check import Array
from reticent.domains import Box, Domain, Interval
from reticent.fleet._draws import Draws, States
from reticent.fleet._each import Moves
from reticent.fleet._keys import Key, Places, Root
from reticent.fleet._rows import Wave, alike, waves
from reticent.fleet._spec import Spec
from reticent.losses import Rows
from reticent.losses._gate import Gate
from reticent.systems.filtered._filter import Filter, expected, weighed, weighs
from reticent.systems.filtered._learner import AHEAD
from reticent.systems.filtered._plan import Epoch, FilteredPlan
from reticent.systems.filtered._release import EpochRelease
from reticent.systems.gate import BlockRelease, NoisyDescentPlan
from reticent.systems.gate._normal import rounded_normals_each
from reticent.systems.gate._release import Integers
from reticent.systems.gate._walk import slopes

_VERSION = 1  # of packed states
_HEAD = 4  # whole numbers that a packed state begins with
_DRAWN = 1 << 18  # numbers that are drawn together, at most
_COURSES = 16  # epochs whose gains are kept: of the longest ones a few megabytes each


class GateHolder(ABC):
    """Arrays over slots, and how rows go through them."""

    def __init__(self, spec: Spec, root: Root) -> None:
        """Hold nothing yet."""
        self.spec, self.plan = spec, spec.plan
        first = spec._first
        assert spec.loss is not None
        self.loss, self.domain = spec.loss, spec.plan.domain
        self.gate = Gate(self.domain, self.loss, self.plan.lipschitz, first._on_steep)
        self.limit = int(first._last)
        self.beginning: Array = np.array(first.decision)
        self.shape = self.beginning.shape
        self.dim: int = self.domain.chart_dim
        self.draws = Draws(root)
        self._keys: list[Key] = []
        self.done = np.zeros(0, dtype=np.int64)
        self.moved = np.zeros(0, dtype=np.int64)  # how often the decision has changed
        self.u = np.zeros((0, self.dim))
        self.open = np.zeros((0, self.dim), dtype=np.int64)  # sums of open blocks: secret
        self.states: States = np.zeros((0, self.draws.width), dtype=np.uint64)

    _grown: tuple[str, ...] = ("done", "moved", "u", "open", "states")
    """The arrays over slots."""

    def prepare(self, columns: tuple[Any, ...]) -> Rows:
        """Return rows in normal form, checked."""
        parts = self.gate.prepare(*(np.asarray(column) for column in columns))
        return parts[0] if len(parts) == 1 else Rows.join(parts)

    def room(self, slots: int) -> None:
        """Have room for so many slots."""
        if slots <= len(self.done):
            return
        self._keys.extend([0] * (slots - len(self._keys)))
        size = max(slots, len(self.done) + len(self.done) // 2)
        self._keys.extend([0] * (size - len(self._keys)))
        for name in self._grown:
            setattr(self, name, _longer(getattr(self, name), size))

    def start(self, slots: Places, keys: list[Key]) -> None:
        """Put new learners into slots: at the centre, with nothing summed."""
        self._name(slots, keys)
        for name in self._grown:
            getattr(self, name)[slots] = 0

    def _name(self, slots: Places, keys: list[Key]) -> None:
        for slot, key in zip(slots.tolist(), keys, strict=True):
            self._keys[slot] = key

    def decisions(self, slots: Places) -> Array:
        """Return the decision in play of each slot."""
        found: Array = self.domain._from_chart(self.u[slots])
        return found

    def rounds(self, slots: Places) -> Places:
        """Return how many rounds each slot has taken in."""
        return self.done[slots]

    def versions(self, slots: Places) -> Places:
        """Return how often the decision of each slot has changed."""
        return self.moved[slots]

    def spent(self, state: Any, rounds: int, delta: float | None) -> float:
        """Return what the plan says of so many rounds, as a single learner does."""
        count = 0 if state is None else int(self.done[int(state)])
        level = self.plan.delta if delta is None else delta
        if level is None:
            raise ValueError("delta must be given for a plan that makes no privacy claim, got None")
        return float(self.plan.account(count).epsilon(float(level)))

    def take(self, slots: Places, rows: Rows, order: Places, bounds: Places) -> Moves:
        """Let each slot take in its rows, in waves; return the changes."""
        found: list[Moves] = []
        # Whatever the caller has numpy do about underflow: an error here would tell of a round, and move others.
        with np.errstate(all="ignore"):
            for wave in waves(order, bounds, lambda keys: self._left(slots[keys])):
                found.extend(self._wave(slots[wave.keys], rows, wave))
        return Moves.joined(found, self.shape)

    def _wave(self, slots: Places, rows: Rows, wave: Wave) -> list[Moves]:
        vectors, offsets, found = rows.vectors[wave.rows], rows.offsets[wave.rows], []
        starts = wave.starts
        for kind, part in alike(self._kinds(slots)):
            mine, counts = slots[part], wave.counts[part]
            first = starts[part]
            if part.size == slots.size:
                some = Rows(vectors, offsets)
            else:
                which = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
                some, first = Rows(vectors[which], offsets[which]), np.cumsum(counts) - counts
            grid = self._grid(kind)
            steep = slopes(self.loss, some, np.repeat(self.u[mine], counts, axis=0))
            self.open[mine] += grid.summed_apart(some.vectors, steep, first)
            left = self._left(mine)
            self.done[mine] += counts
            over = mine[counts == left]
            if over.size:
                found.extend(self._released(kind, over))
        return found

    @abstractmethod
    def _left(self, slots: Places) -> Places:
        """Return how many rounds are left of the open block of each slot."""

    @abstractmethod
    def _kinds(self, slots: Places) -> Places:
        """Return a number for each slot: those with the same one have the same grid."""

    @abstractmethod
    def _grid(self, kind: int) -> BlockRelease:
        """Return the grid of a kind."""

    @abstractmethod
    def _released(self, kind: int, slots: Places) -> list[Moves]:
        """Release the open sums of slots of a kind whose block is over, and go where that leads."""

    def _go(self, slots: Places, aims: Array) -> Moves:
        """Put the points of the domain nearest to `aims` in play; return those that differ from what was."""
        before = self.domain._from_chart(self.u[slots])
        u = self.domain._to_chart(_nearest(self.domain, self.domain._from_chart(aims)))
        now = self.domain._from_chart(u)
        self.u[slots] = u
        moved = np.flatnonzero((before != now).any(axis=1))
        self.moved[slots[moved]] += 1
        return Moves(slots[moved], self.done[slots[moved]], now[moved])

    def _normals(self, slots: Places, before: States, count: int, shift: int) -> tuple[Integers, States]:
        """Return noise for each slot, from generators that stand where `before` says; and where they stand after it."""
        each, keys, after, parts = max(1, _DRAWN // (9 * count)), self._keys, np.empty_like(before), []
        for i in range(0, len(slots), each):
            part = slice(i, i + each)
            named = [keys[slot] for slot in slots[part].tolist()]
            at = _Standing(self.draws, before[part], after[part], named)
            parts.append(rounded_normals_each(at, len(named), count, shift))
        return np.concatenate(parts), after

    # States as bytes: whole numbers (version, kind, rounds, changes), then the arrays.

    @abstractmethod
    def _fields(self, kind: int) -> list[tuple[str, tuple[Any, ...]]]:
        """Return the names of the arrays that make up the state of a slot of a kind, and which part of them does."""

    def pack(self, slots: Places) -> list[bytes]:
        """Return the states of slots as bytes."""
        packed: list[bytes] = [b""] * len(slots)
        for kind, part in alike(self._kinds(slots)) if len(slots) else ():
            mine = slots[part]
            head = np.empty((len(mine), _HEAD), dtype=np.int64)
            head[:, :2], head[:, 2], head[:, 3] = (_VERSION, kind), self.done[mine], self.moved[mine]
            columns = [head] + [getattr(self, name)[mine][(slice(None), *cut)] for name, cut in self._fields(kind)]
            flat = [np.ascontiguousarray(column).reshape(len(mine), -1).view(np.uint8) for column in columns]
            for i, row in zip(part.tolist(), np.concatenate(flat, axis=1), strict=True):
                packed[i] = row.tobytes()
        return packed

    def unpack(self, slots: Places, keys: list[Key], states: list[bytes]) -> None:
        """Put states that `pack` returned into slots."""
        self.start(slots, keys)
        heads = np.array([np.frombuffer(state, dtype=np.int64, count=_HEAD) for state in states]).reshape(-1, _HEAD)
        if (heads[:, 0] != _VERSION).any():
            raise ValueError("a state in the store was written by another version of reticent; use that")
        for kind, part in alike(heads[:, 1]) if len(slots) else ():
            mine = slots[part]
            self.done[mine], self.moved[mine] = heads[part, 2], heads[part, 3]
            self._become(kind, mine)
            whole = np.frombuffer(b"".join(states[i] for i in part.tolist()), dtype=np.uint8).reshape(len(part), -1)
            at = _HEAD * 8
            for name, cut in self._fields(kind):
                array = getattr(self, name)
                shape = array[:0][(slice(None), *cut)].shape[1:]
                size = int(np.prod(shape)) * 8
                found = np.ascontiguousarray(whole[:, at : at + size]).view(array.dtype).reshape(len(part), *shape)
                array[(mine, *cut)] = found
                at += size
            if at != whole.shape[1]:
                raise ValueError(f"a state in the store has {whole.shape[1]} bytes where {at} were expected")

    def _become(self, kind: int, slots: Places) -> None:  # noqa: B027 (most have one kind)
        """Make room for states of a kind."""


class _Standing:
    """The generators of some keys, for `rounded_normals_each`: where they stood, and where they stand."""

    def __init__(self, draws: Draws, before: States, after: States, keys: list[Key]) -> None:
        self._draws, self._before, self._after, self._keys = draws, before, after, keys

    def use(self, i: int) -> np.random.Generator:
        """Return generator number i, where it stood."""
        return self._draws.put(self._before[i], self._keys[i])

    def keep(self, i: int) -> None:
        """Note where it stands."""
        self._draws.noted(self._after[i])


class DescentHolder(GateHolder):
    """Noisy descent of many keys: as `DualAveraging`, on a sum of releases for each slot."""

    plan: NoisyDescentPlan
    _grown = (*GateHolder._grown, "dual")

    def __init__(self, spec: Spec, root: Root) -> None:
        """Hold nothing yet."""
        super().__init__(spec, root)
        self.release, self.lam = self.plan.release(), self.plan.first_lam
        self.dual = np.zeros((0, self.dim))

    def _left(self, slots: Places) -> Places:
        left: Places = self.plan.batch - self.done[slots] % self.plan.batch
        return left

    def _kinds(self, slots: Places) -> Places:
        return np.zeros(len(slots), dtype=np.int64)

    def _grid(self, kind: int) -> BlockRelease:
        return self.release

    def _released(self, kind: int, slots: Places) -> list[Moves]:
        noise, self.states[slots] = self._normals(slots, self.states[slots], self.dim, self.release.shift)
        self.dual[slots] += self.release.real(self.open[slots] + noise)
        self.open[slots] = 0
        lam = np.full(len(slots), self.lam)
        if self.plan.horizon is None:
            lam = self.lam * np.sqrt(self.done[slots] // self.plan.batch + 1)
        return [self._go(slots, -self.dual[slots] / lam[:, None])]

    def _fields(self, kind: int) -> list[tuple[str, tuple[Any, ...]]]:
        return [("u", ()), ("open", ()), ("states", ()), ("dual", ())]


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

    def _fields(self, kind: int) -> list[tuple[str, tuple[Any, ...]]]:
        size = self._course(kind).buffers
        some, more = (slice(0, size),), (slice(0, size + 1),)
        whole = ("u", "open", "states", "after", "evidence", "weights")
        return [*((name, ()) for name in whole), ("mean", more), ("past", some), ("buffers", some)]


def gate_holder(spec: Spec, root: Root) -> GateHolder | None:
    """Return what holds many learners of a specification behind the gate; None if it is for others."""
    if type(spec.plan) is FilteredPlan:
        return FilteredHolder(spec, root)
    return DescentHolder(spec, root) if type(spec.plan) is NoisyDescentPlan else None


def _nearest(domain: Domain, points: Array) -> Array:
    """Return the points of the domain that are nearest to points, each by itself."""
    if isinstance(domain, Box | Interval):
        return domain._project(points)
    return np.array([domain._project(point) for point in points]).reshape(points.shape)


def _longer(array: Any, size: int) -> Any:
    found = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    found[: len(array)] = array
    return found


def _wider(array: Array, size: int) -> Array:
    """Return an array with `size` entries along its second axis, zeros where there were none."""
    found = np.zeros((len(array), size, *array.shape[2:]))
    found[:, : array.shape[1]] = array
    return found
