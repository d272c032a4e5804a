"""The open block by persons: each one's rows add up, and the sum is clipped like one row (docs/theory, R14)."""

from __future__ import annotations

import numpy as np

from reticent._core._tags import saved
from reticent.systems._persons import Owners
from reticent.systems.gate._release import BlockRelease, Integers


@saved("open block by persons")
class OpenBlock:
    """Sums of the open block, one for each person in it; as secret as the data.

    >>> block = OpenBlock(2)
    >>> block.add(np.array([7, 5, 7]), np.array([[1, 0], [2, 2], [0, 1]]))
    >>> block.settle()
    >>> block.owners, block.sums.tolist()
    (array([5, 7]), [[2, 2], [1, 1]])
    """

    def __init__(self, dim: int) -> None:
        """Be empty."""
        self.dim = dim
        self.owners: Owners = np.zeros(0, dtype=np.int64)  # in order
        self.sums: Integers = np.zeros((0, dim), dtype=np.int64)
        self._more: list[tuple[Owners, Integers]] = []  # what has come since they were added up

    def add(self, owners: Owners, rows: Integers) -> None:
        """Add rows, and whose they are."""
        if owners.size:
            self._more.append((owners, rows))

    def settle(self) -> None:
        """Add up what has come: the result does not depend on how it was cut."""
        if not self._more:
            return
        parts = [(self.owners, self.sums), *self._more] if self.owners.size else self._more
        owners = np.concatenate([part[0] for part in parts])
        rows = np.concatenate([part[1] for part in parts])
        order = np.argsort(owners, kind="stable")
        owners, rows = owners[order], rows[order]
        starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))
        if starts.size < owners.size:
            owners, rows = owners[starts], np.add.reduceat(rows, starts, axis=0)
        self.owners, self.sums, self._more = owners, rows, []

    def close(self, release: BlockRelease) -> Integers:
        """Return the sum of the block, each person's part clipped, and be empty."""
        self.settle()
        total: Integers = release.shortened(self.sums).sum(axis=0, dtype=np.int64)
        self.__init__(self.dim)  # type: ignore[misc]
        return total

    def _catch_up(self, found: OpenBlock) -> None:
        """Stand where a loaded one does, which the walk knows how to check."""
        self.owners, self.sums, self._more = found.owners, found.sums, found._more

    def check(self, rows: int, largest: int) -> None:
        """Refuse a state, from a file, that so many rows of such a size cannot have left."""
        if not isinstance(self.owners, np.ndarray) or not isinstance(self.sums, np.ndarray):
            raise ValueError("its open block is not one of sums by persons")
        shapes = self.owners.shape, self.sums.shape
        if shapes != ((len(self.owners),), (len(self.owners), self.dim)) or self._more:
            raise ValueError("its open block is not one of sums by persons")
        if self.owners.dtype != np.int64 or self.sums.dtype != np.int64 or (np.diff(self.owners) <= 0).any():
            raise ValueError("its open block is not one of whole numbers by persons")
        if len(self.owners) > rows or (len(self.sums) and np.abs(self.sums).max() > rows * largest):
            raise ValueError("its open block holds more than its rounds can have brought")
