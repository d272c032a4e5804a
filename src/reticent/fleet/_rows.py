"""Rows of many keys, block by block: in every wave each key takes rows up to the end of its block at most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from reticent.fleet._keys import Places

TOGETHER = 2048
"""Keys that are looked after together: what is computed of them stays near the processor."""
_MOST = 1 << 20  # rows of a key in one wave: sums of so many are exact


class Wave(NamedTuple):
    """Some keys, by place among those that were given, how many rows each takes now, and which rows."""

    keys: Places
    counts: Places
    rows: Places

    @property
    def starts(self) -> Places:
        """Where the rows of each key begin."""
        return np.cumsum(self.counts) - self.counts


def waves(order: Places, bounds: Places, room: Callable[[Places], Places]) -> Iterator[Wave]:
    """Yield waves until all rows are taken; `room` says how many rows are left of the block of each key, 1 at least.

    >>> left = np.array([2, 3])
    >>> for wave in waves(np.arange(5), np.array([0, 4, 5]), lambda keys: left[keys]):
    ...     print(wave.keys, wave.counts, wave.rows)
    [0 1] [2 1] [0 1 4]
    [0] [2] [2 3]
    """
    for first in range(0, len(bounds) - 1, TOGETHER):
        keys = np.arange(first, min(first + TOGETHER, len(bounds) - 1))
        at, ends = bounds[keys].copy(), bounds[keys + 1]
        while True:
            there = np.flatnonzero(at < ends)
            if not there.size:
                break
            keys, at, ends = keys[there], at[there], ends[there]
            counts = np.minimum(np.minimum(room(keys), ends - at), _MOST)
            yield Wave(keys, counts, order[ranges(at, counts)])
            at = at + counts


def ranges(starts: Places, counts: Places) -> Places:
    """Return starts[0], starts[0] + 1, ..., so many as counts[0] says, then those of the next, and so on.

    >>> ranges(np.array([5, 1]), np.array([2, 3])).tolist()
    [5, 6, 1, 2, 3]
    """
    ends = np.cumsum(counts)
    found: Places = np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(starts - (ends - counts), counts)
    return found


def alike(values: Places) -> list[tuple[int, Places]]:
    """Return each value that there is, with the places where it stands."""
    first = int(values[0])
    if (values == first).all():
        return [(first, np.arange(values.size))]
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    cuts = np.flatnonzero(ranked[1:] != ranked[:-1]) + 1
    return [(int(values[part[0]]), part) for part in np.split(order, cuts)]
