"""States of many keys in arrays over slots: room for more, and the state of one slot as bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from reticent._core._check import Array
from reticent.fleet._draws import Draws, States
from reticent.fleet._keys import Key, Places, Root
from reticent.fleet._rows import alike
from reticent.fleet._spec import Spec

_VERSION = 1  # of packed states
_HEAD = 4  # whole numbers that a packed state begins with
Fields = list[tuple[str, tuple[slice, ...]]]
"""Names of arrays, and which part of their further axes."""


class ArrayHolder(ABC):
    """What holders of arrays share: the names of keys, rounds, changes, and generators."""

    _grown: tuple[str, ...] = ("done", "moved", "states")
    """The arrays over slots."""

    def __init__(self, spec: Spec, root: Root) -> None:
        """Hold nothing yet."""
        self.spec, self.plan = spec, spec.plan
        self.beginning: Array = np.array(spec._first.decision, dtype=np.float64)
        self.shape = self.beginning.shape
        self.draws = Draws(root)
        self._keys: list[Key] = []
        self.done = np.zeros(0, dtype=np.int64)
        self.moved = np.zeros(0, dtype=np.int64)  # how often the decision has changed
        self.states: States = np.zeros((0, self.draws.width), dtype=np.uint64)

    def room(self, slots: int) -> None:
        """Have room for so many slots."""
        if slots <= len(self.done):
            return
        size = max(slots, len(self.done) + len(self.done) // 2)
        self._keys.extend([0] * (size - len(self._keys)))
        for name in self._grown:
            array = getattr(self, name)
            longer = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
            longer[: len(array)] = array
            setattr(self, name, longer)

    def start(self, slots: Places, keys: list[Key]) -> None:
        """Put new learners into slots: all numbers are 0, unless a subclass says else."""
        for slot, key in zip(slots.tolist(), keys, strict=True):
            self._keys[slot] = key
        for name in self._grown:
            getattr(self, name)[slots] = 0

    def rounds(self, slots: Places) -> Places:
        """Return how many rounds each slot has taken in."""
        return self.done[slots]

    def versions(self, slots: Places) -> Places:
        """Return how often the decision of each slot has changed."""
        return self.moved[slots]

    def spent(self, slot: int | None, delta: float | None) -> float:
        """Return what the plan says of so many rounds, as a single learner does."""
        level = self.plan.delta if delta is None else delta
        if level is None:
            raise ValueError("delta must be given for a plan that makes no privacy claim, got None")
        return float(self.plan.account(0 if slot is None else int(self.done[slot])).epsilon(float(level)))

    # States as bytes: whole numbers (version, kind, rounds, changes), then the arrays.

    @abstractmethod
    def _kinds(self, slots: Places) -> Places:
        """Return a number for each slot: those with the same one have states of the same shapes."""

    @abstractmethod
    def _fields(self, kind: int) -> Fields:
        """Return the arrays that make up the state of a slot of a kind, beside rounds and changes."""

    def _become(self, kind: int, slots: Places) -> None:  # noqa: B027 (most have one kind)
        """Make room for states of a kind."""

    def pack(self, slots: Places) -> list[bytes]:
        """Return the states of slots as bytes."""
        packed: list[bytes] = [b""] * len(slots)
        for kind, part in alike(self._kinds(slots)) if len(slots) else ():
            mine = slots[part]
            head = np.empty((len(mine), _HEAD), dtype=np.int64)
            head[:, :2], head[:, 2], head[:, 3] = (_VERSION, kind), self.done[mine], self.moved[mine]
            columns = [head, *(getattr(self, name)[(mine, *cut)] for name, cut in self._fields(kind))]
            flat = [np.ascontiguousarray(column).reshape(len(mine), -1).view(np.uint8) for column in columns]
            whole = np.concatenate(flat, axis=1)
            data, width = whole.tobytes(), whole.shape[1]
            for i, place in enumerate(part.tolist()):
                packed[place] = data[i * width : (i + 1) * width]
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
                array: Any = getattr(self, name)
                shape = array[:0][(slice(None), *cut)].shape[1:]
                size = int(np.prod(shape)) * array.itemsize
                found = np.ascontiguousarray(whole[:, at : at + size]).view(array.dtype)
                array[(mine, *cut)] = found.reshape(len(part), *shape)
                at += size
            if at != whole.shape[1]:
                raise ValueError(f"a state in the store has {whole.shape[1]} bytes where {at} were expected")
