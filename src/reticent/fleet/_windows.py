"""Trackers of windows, of many keys at once: values are gathered in arrays, and each full window is released by itself.

Of a value only what its release needs is kept: the cell that it lies in, or the sum of its window in whole numbers.
Releases are those of single trackers, by the same functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent._core._check import Array
from reticent.fleet._arrays import ArrayHolder, Fields
from reticent.fleet._each import Moves
from reticent.fleet._keys import Key, Places, Root
from reticent.fleet._rows import Wave, ranges, waves
from reticent.fleet._spec import Spec
from reticent.systems._decider import NEVER
from reticent.trackers._mean import SumWindows
from reticent.trackers._memory import Memory
from reticent.trackers._quantile import RankWindows
from reticent.trackers._quantiles import SeveralRankWindows
from reticent.trackers._tracker import given_numbers

_NONE = -1  # the cell of a value that is missing
_COUNTER = 4  # bytes that it takes to count the values of one cell


class WindowHolder(ArrayHolder):
    """Open windows and memories of many slots."""

    _grown = (*ArrayHolder._grown, "gathered", "memories", "shown")
    limit = NEVER

    def __init__(self, spec: Spec, root: Root) -> None:
        """Hold nothing yet."""
        super().__init__(spec, root)
        self.windows: RankWindows | SeveralRankWindows | SumWindows = spec._first.learner
        self.window = self.plan.window
        several = self.windows.memories if isinstance(self.windows, SeveralRankWindows) else [self.windows.memory]
        self._fresh = np.array([memory.row() for memory in several])
        self.memories = np.zeros((0, *self._fresh.shape))
        self.shown = np.zeros((0, *self.shape))
        self.listed = False  # whether cells of values are listed; else values are counted, or added up
        if isinstance(self.windows, SumWindows):
            self.gathered = np.zeros((0, 1), dtype=np.int64)
            return
        cells = self.windows.cells.count
        kind: Any = np.int16 if cells < 1 << 15 else np.int32
        self.listed = self.window * np.dtype(kind).itemsize <= cells * _COUNTER
        wide: Any = np.int32 if self.window < 1 << 31 else np.int64
        self.gathered = np.zeros((0, self.window), dtype=kind) if self.listed else np.zeros((0, cells), dtype=wide)

    def prepare(self, columns: tuple[Any, ...]) -> Places:
        """Return what is kept of each value: its cell, or its steps from the middle; all are checked."""
        (values,) = columns
        array = given_numbers("values", values)
        if array.ndim != 1:
            raise ValueError(f"values must be a list of numbers (one-dimensional), got shape {array.shape}")
        clipped = self.spec._first._clipped("values", array)
        if isinstance(self.windows, SumWindows):
            return self.windows.steps(clipped)
        there, found = clipped == clipped, np.full(clipped.size, _NONE, dtype=np.int64)
        found[there] = self.windows.cells.places(clipped[there])
        return found

    def start(self, slots: Places, keys: list[Key]) -> None:
        """Put new trackers into slots."""
        super().start(slots, keys)
        self.memories[slots], self.shown[slots] = self._fresh, self.beginning

    def decisions(self, slots: Places) -> Array:
        """Return what each slot publishes."""
        return self.shown[slots]

    def take(self, slots: Places, rows: Places, order: Places, bounds: Places) -> Moves:
        """Let each slot take in its values; return what is published anew."""
        places, rounds, points = list[int](), list[int](), list[Any]()
        for wave in waves(order, bounds, lambda keys: self.window - self.done[slots[keys]] % self.window):
            mine = slots[wave.keys]
            self._gather(mine, wave, rows[wave.rows])
            self.done[mine] += wave.counts
            for slot in mine[self.done[mine] % self.window == 0].tolist():
                if self._release(slot):
                    places.append(slot)
                    rounds.append(int(self.done[slot]))
                    points.append(self.shown[slot].tolist())
        shown = np.array(points, dtype=np.float64).reshape(-1, *self.shape)
        return Moves(np.array(places, dtype=np.int64), np.array(rounds, dtype=np.int64), shown)

    def _gather(self, slots: Places, wave: Wave, kept: Places) -> None:
        if isinstance(self.windows, SumWindows):
            self.gathered[slots, 0] += np.add.reduceat(kept, wave.starts)
            return
        whose = np.repeat(slots, wave.counts)
        if self.listed:
            self.gathered[whose, ranges(self.done[slots] % self.window, wave.counts)] = kept
            return
        there = kept != _NONE
        np.add.at(self.gathered, (whose[there], kept[there]), 1)

    def _release(self, slot: int) -> bool:
        """Release a full window; say whether what is published has changed."""
        rng, windows = self.draws.put(self.states[slot], self._keys[slot]), self.windows
        numbers: tuple[float, ...]
        if isinstance(windows, SumWindows):
            numbers = windows.drawn(int(self.gathered[slot, 0]), rng)
        else:
            numbers = windows.drawn(self._counts(slot), rng)
        self.draws.noted(self.states[slot])
        self.gathered[slot] = 0
        for i, number in enumerate(numbers):
            memory = Memory.of_row(self.memories[slot, i])
            memory.take(number)
            self.memories[slot, i] = memory.row()
        before, now = self.shown[slot].copy(), np.sort(self.memories[slot, :, 0])
        self.shown[slot] = now if before.ndim else now[0]
        changed = bool((before != self.shown[slot]).any())
        self.moved[slot] += changed
        return changed

    def _counts(self, slot: int) -> Places:
        assert not isinstance(self.windows, SumWindows)
        cells, kept = self.windows.cells.count, self.gathered[slot]
        counts: Places = np.bincount(kept[kept != _NONE], minlength=cells) if self.listed else kept
        return counts.astype(np.int64)

    def _kinds(self, slots: Places) -> Places:
        return np.zeros(len(slots), dtype=np.int64)

    def _fields(self, kind: int) -> Fields:
        return [(name, ()) for name in ("states", "gathered", "memories", "shown")]
