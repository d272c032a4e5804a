"""Learners of any kind, one object for each key: what fleets hold where there is no way over all keys at once."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from reticent._core._check import Array
from reticent._core._random import Seed
from reticent.fleet._keys import Key, Places, Root
from reticent.fleet._spec import Spec
from reticent.losses._gate import Gate
from reticent.saving import pack, unpack
from reticent.systems._decider import NEVER
from reticent.systems._saved import pack_learner, unpack_learner
from reticent.trackers._tracker import STATE, Tracker, given_numbers


class Moves(NamedTuple):
    """Changes of decision: of which slot each is, after how many rounds of its key, and the decision from then on."""

    slots: Places
    rounds: Places
    points: Array

    def of(self, slot: int) -> Moves:
        """Return the changes of one slot."""
        mine = self.slots == slot
        return Moves(self.slots[mine], self.rounds[mine], self.points[mine])

    @staticmethod
    def joined(parts: list[Moves], shape: tuple[int, ...]) -> Moves:
        """Return the changes of several parts as one."""
        none = np.zeros(0, dtype=np.int64)
        parts = [part for part in parts if len(part.slots)] or [Moves(none, none, np.zeros((0, *shape)))]
        return Moves(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class Holder(Protocol):
    """What holds the learners of many keys, by slot: a place that is given to a key, and may be given to another."""

    shape: tuple[int, ...]
    """That of one decision: () for one number."""
    beginning: Array
    """The first decision of every key."""
    limit: int
    """Rounds that a key may have at most."""

    def prepare(self, columns: tuple[Any, ...]) -> Any:
        """Check the rows of a batch, as single learners do, and return them, with a length; nothing is recorded."""

    def room(self, slots: int) -> None:
        """Have room for so many slots."""

    def start(self, slots: Places, keys: list[Key]) -> None:
        """Put new learners into slots."""

    def take(self, slots: Places, rows: Any, order: Places, bounds: Places) -> Moves:
        """Let slot i take in the prepared rows `order[bounds[i] : bounds[i + 1]]`; return changes, by slot in order."""

    def decisions(self, slots: Places) -> Array:
        """Return the decision in play of each slot."""

    def rounds(self, slots: Places) -> Places:
        """Return how many rounds each slot has taken in."""

    def versions(self, slots: Places) -> Places:
        """Return how often the decision of each slot has changed."""

    def pack(self, slots: Places) -> list[bytes]:
        """Return the states of slots as bytes."""

    def unpack(self, slots: Places, keys: list[Key], states: list[bytes]) -> None:
        """Put states that `pack` returned into slots."""

    def spent(self, slot: int | None, delta: float | None) -> float:
        """Return what the rounds of a slot may have cost one of them; None is a key that has none."""


class OneEach:
    """Holds one learner or tracker for each slot."""

    def __init__(self, spec: Spec, root: Root) -> None:
        self.spec, self.root = spec, root
        first = spec._first
        self.tracker = isinstance(first, Tracker)
        found = np.asarray(first.decision, dtype=np.float64)
        self.shape, self.beginning = found.shape, found
        self.limit = int(getattr(first._learner if self.tracker else first, "_last", NEVER))
        self.held: list[Any] = []
        if not self.tracker:
            # The learner's own, which may refuse more than steep rows: what it would refuse later must not get in.
            self.gate: Gate = first._gate

    def prepare(self, columns: tuple[Any, ...]) -> tuple[Array, ...]:
        """Return columns as arrays, checked."""
        if self.tracker:
            (values,) = columns
            array = given_numbers("values", values)
            if array.ndim != 1:
                raise ValueError(f"values must be a list of numbers (one-dimensional), got shape {array.shape}")
            return (self.spec._first._clipped("values", array),)
        arrays = tuple(np.asarray(column) for column in columns)
        self.gate.prepare(*arrays)
        return arrays

    def room(self, slots: int) -> None:
        """Have room for so many slots."""
        self.held.extend([None] * (slots - len(self.held)))

    def start(self, slots: Places, keys: list[Key]) -> None:
        """Put new learners into slots."""
        for slot, key in zip(slots.tolist(), keys, strict=True):
            self.held[slot] = self.spec.new(self.seed_of(key))

    def seed_of(self, key: Key) -> Seed:
        """Return the seed of a key."""
        return self.root.seed_of(key)

    def take(self, slots: Places, rows: tuple[Array, ...], order: Places, bounds: Places) -> Moves:
        """Let each learner observe its rows."""
        found = []
        for i, slot in enumerate(slots.tolist()):
            mine = order[bounds[i] : bounds[i + 1]]
            took = self._track if self.tracker else self._learn
            places, points = took(self.held[slot], tuple(column[mine] for column in rows))
            found.append(Moves(np.full(len(places), slot, dtype=np.int64), places, points))
        return Moves.joined(found, self.shape)

    def _learn(self, learner: Any, block: tuple[Array, ...]) -> tuple[Places, Array]:
        trace = learner.observe_many(*block)
        points = np.concatenate([trace.points[1:], trace.final[None]])
        return trace.switch_times, points[: trace.switches]

    def _track(self, tracker: Any, block: tuple[Array, ...]) -> tuple[Places, Array]:
        (values,), places, points = block, [], []
        for i in range(values.size):  # with a horizon, what is published may change in every round
            before = tracker.value
            tracker.update_many(values[i : i + 1])
            if tracker.value != before:
                places.append(tracker.rounds)
                points.append(tracker.value)
        return np.array(places, dtype=np.int64), np.array(points, dtype=np.float64).reshape(-1, *self.shape)

    def decisions(self, slots: Places) -> Array:
        """Return the decision in play of each slot."""
        found = [self.held[slot].decision for slot in slots.tolist()]
        return np.array(found, dtype=np.float64).reshape(-1, *self.shape)

    def rounds(self, slots: Places) -> Places:
        """Return how many rounds each slot has taken in."""
        return np.array([self.held[slot].rounds for slot in slots.tolist()], dtype=np.int64)

    def versions(self, slots: Places) -> Places:
        """Return how often the decision of each slot has changed."""
        return np.array([self.held[slot].switches for slot in slots.tolist()], dtype=np.int64)

    def pack(self, slots: Places) -> list[bytes]:
        """Return the states as the bytes of saved files."""
        held = [self.held[slot] for slot in slots.tolist()]
        return [b"".join(pack(STATE, one)) if self.tracker else pack_learner(one) for one in held]

    def unpack(self, slots: Places, keys: list[Key], states: list[bytes]) -> None:
        """Make learners of the bytes of saved files."""
        for slot, state in zip(slots.tolist(), states, strict=True):
            source = "a state in the store"
            if self.tracker:
                self.held[slot] = unpack(STATE, state, source, check=_check_tracker)
            else:
                self.held[slot] = unpack_learner(state, source)

    def spent(self, slot: int | None, delta: float | None) -> float:
        """Ask the learner; a key without one has spent nothing."""
        one = self.spec._first if slot is None else self.held[slot]
        return float(one.spent(delta))


def _check_tracker(found: Any) -> None:
    if not isinstance(found, Tracker):
        raise ValueError(f"it does not hold a tracker, but a {type(found).__name__}")
    found.check_standing()
