"""Ids of batches, by which one that comes again is known: a text, or a source and an offset that grows."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent.fleet._keys import Key, Places
from reticent.fleet._store import REMEMBERED

_LONGEST = 500  # letters of an id
Batch = str | tuple[str, int] | None


@dataclass(frozen=True)
class Receipt:
    """What came of a batch: how many rounds were taken in, and the keys whose decision has changed.

    Keys are in the order in which they first stand in the batch. `repeated` says that it had been taken in before, and
    nothing has happened now: rounds and keys are those of the first time (0 and none, of an offset that is older than
    the batches that are remembered).
    """

    rounds: int
    changed: tuple[Key, ...]
    repeated: bool = False


def batch_name(batch: Any) -> tuple[str | None, int]:
    """Return an id as a name and a place: that of a source is its offset, others have -1.

    >>> batch_name("a7"), batch_name(("orders-0", 12)), batch_name(None)
    (('id a7', -1), ('of orders-0', 12), (None, -1))
    """
    if batch is None:
        return None, -1
    name, place = batch if isinstance(batch, tuple | list) and len(batch) == 2 else (batch, None)
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST or "\0" in name:
        raise ValueError(
            f"batch must be a text of at most {_LONGEST} letters, or a pair (source, offset), got {batch!r}"
        )
    if place is None:
        return f"id {name}", -1
    if isinstance(place, bool) or not isinstance(place, int | np.integer) or not 0 <= place < 1 << 63:
        raise ValueError(f"an offset must be a whole number from 0 on, below 2**63, got {place!r}")
    return f"of {name}", int(place)


class Book:
    """The batches of a fleet without a store, remembered by the same rule.

    >>> book = Book()
    >>> book.enter("of orders", 4, 10, np.array([0]))
    >>> book.find("of orders", 4), book.find("of orders", 3)[0], book.find("of orders", 5)
    ((10, array([0])), 0, None)
    """

    def __init__(self) -> None:
        self._batches: OrderedDict[tuple[str, int], tuple[int, Places]] = OrderedDict()
        self._offsets: dict[str, int] = {}

    def find(self, name: str, place: int) -> tuple[int, Places] | None:
        """Return rounds and numbers of changed keys of a batch that was taken in; None if it is new."""
        found = self._batches.get((name, place))
        if found is not None or place < 0:
            return found
        return None if place > self._offsets.get(name, -1) else (0, np.zeros(0, dtype=np.int64))

    def enter(self, name: str, place: int, rounds: int, changed: Places) -> None:
        """Write down a batch."""
        self._batches[name, place] = rounds, changed
        if place >= 0:
            self._offsets[name] = place
        while len(self._batches) > REMEMBERED:
            self._batches.popitem(last=False)

    def offset(self, name: str) -> int | None:
        """Return the last offset of a source that was taken in."""
        return self._offsets.get(name)
