"""Which keys are in memory, and in which slots: keys that were not used for the longest time make room for others."""

from __future__ import annotations

import numpy as np

from reticent.fleet._keys import Key, Places


class Slots:
    """Slots and the keys that have them, with the number that each key has for good.

    >>> slots = Slots(most=2)
    >>> none = np.zeros(0, dtype=np.int64)
    >>> slots.give(["a", "b"], np.array([0, 1]), none).tolist()
    [0, 1]
    >>> slots.touch(slots.find(["a"]))
    >>> slots.give(["c"], np.array([2]), none).tolist(), slots.find(["a", "b", "c"]).tolist()
    ([1], [0, -1, 1])
    """

    def __init__(self, most: int | None) -> None:
        """Take how many keys have a slot at most; None for any number. More have one while more are busy."""
        self._most = most
        self._places: dict[Key, int] = {}
        self._free: list[int] = []
        self._clock = 0
        self._used = np.zeros(0, dtype=np.int64)  # when each was used last
        self.keys: list[Key] = []
        self.numbers = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        """Return how many keys have a slot."""
        return len(self._places)

    def find(self, keys: list[Key]) -> Places:
        """Return the slots of keys; -1 for those that have none."""
        place = self._places.get
        return np.fromiter((place(key, -1) for key in keys), dtype=np.int64, count=len(keys))

    def touch(self, slots: Places) -> None:
        """Note that slots are used now."""
        self._clock += 1
        self._used[slots] = self._clock

    def give(self, keys: list[Key], numbers: Places, busy: Places) -> Places:
        """Return slots for keys that have none: free ones, new ones, or others' that are not busy."""
        want = len(keys)
        if self._most is not None:
            self._evict(len(self._places) + want - self._most, busy)
        taken, self._free = self._free[:want], self._free[want:]
        first = len(self.keys)
        slots = np.array([*taken, *range(first, first + want - len(taken))], dtype=np.int64)
        self._make_room(first + want - len(taken))
        for slot, key in zip(slots.tolist(), keys, strict=True):
            self.keys[slot] = key
            self._places[key] = slot
        self.numbers[slots] = numbers
        self._used[slots] = self._clock
        return slots

    def _make_room(self, slots: int) -> None:
        self.keys.extend([""] * (slots - len(self.keys)))
        if slots > len(self.numbers):
            more = max(slots, 3 * len(self.numbers) // 2) - len(self.numbers)
            self.numbers, self._used = (np.pad(one, (0, more)) for one in (self.numbers, self._used))

    def _evict(self, count: int, busy: Places) -> None:
        """Take the slots of so many keys that are not busy."""
        if count <= 0:
            return
        keep = np.zeros(len(self.keys), dtype=np.bool_)
        keep[busy[busy >= 0]] = True
        keep[self._free] = True
        idle = np.flatnonzero(~keep)
        count = min(count, len(idle))
        if not count:
            return
        gone = idle[np.argpartition(self._used[idle], count - 1)[:count]].tolist()
        for slot in gone:
            del self._places[self.keys[slot]]
        self._free.extend(gone)
