"""Some rounds on their way to a learner, and what was passed over before each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Piece:
    """Some rounds, as `observe_many` takes them, and where each stands in its source.

    Before round i there are `bad[i]` bad rows that were left out and `steep[i]` rounds that were too steep, from the
    first row of the source on; the last entry of both is for the round that comes next.

    >>> piece = Piece((np.arange(4.0),), lambda i: f"line {i + 2}", np.zeros(5, dtype=int), np.array([0, 0, 1, 1, 2]))
    >>> less = piece.only(np.array([0, 2]))
    >>> less.block[0].tolist(), less.where(1), less.steep.tolist()
    ([0.0, 2.0], 'line 4', [0, 1, 2])
    """

    block: tuple[Any, ...]
    where: Callable[[int], str]
    bad: NDArray[np.int64]
    steep: NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.block[0])

    def first(self, count: int) -> Piece:
        """Return the first rounds."""
        if count == len(self):
            return self
        block = tuple(part[:count] for part in self.block)
        return Piece(block, self.where, self.bad[: count + 1], self.steep[: count + 1])

    def only(self, places: NDArray[np.int64]) -> Piece:
        """Return the rounds at these places, which are in order."""
        block, ends = tuple(part[places] for part in self.block), np.append(places, len(self))
        return Piece(block, lambda i: self.where(int(places[i])), self.bad[ends], self.steep[ends])
