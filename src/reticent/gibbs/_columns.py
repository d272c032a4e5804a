"""A growing column store for rows of numbers: no copy of the past per draw, little memory beyond the rows."""

from __future__ import annotations

import numpy as np

from reticent._check import Array

GROWTH = 1.25  # capacity grows by a quarter: amortised constant work, at most a quarter of unused memory


class Columns:
    """Rows (vector, offset, running total of a weight) that only ever grow at the end.

    >>> columns = Columns(2)
    >>> columns.append(np.ones((3, 2)), np.zeros(3))
    >>> len(columns), columns.vectors.shape
    (3, (3, 2))
    """

    def __init__(self, dim: int) -> None:
        self._vectors = np.zeros((0, dim))
        self._offsets = np.zeros(0)
        self._totals = np.zeros(0)
        self._count = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    @property
    def vectors(self) -> Array:
        """The vectors of all rows: a view, valid until the next `append`."""
        return self._vectors[: self._count]

    @property
    def offsets(self) -> Array:
        """The offsets of all rows: a view, valid until the next `append`."""
        return self._offsets[: self._count]

    @property
    def totals(self) -> Array:
        """The running totals of the weights of all rows: a writable view, valid until the next `append`."""
        return self._totals[: self._count]

    @property
    def room(self) -> tuple[Array, Array, Array]:
        """Vectors, offsets and totals with the room behind the rows, valid until the next `append` or `store`."""
        return self._vectors, self._offsets, self._totals

    def append(self, vectors: Array, offsets: Array) -> None:
        """Store rows behind the present ones; their totals are for the caller to fill in."""
        self.store(vectors, offsets)
        self.set_count(self._count + len(offsets))

    def store(self, vectors: Array, offsets: Array, behind: int = 0) -> None:
        """Put rows into the room behind the present ones, leaving out `behind`; none counts yet."""
        start = self._count + behind
        count = start + len(offsets)
        if count > len(self._offsets):
            capacity = max(count, int(GROWTH * len(self._offsets)), 64)
            # The offsets last, by which the room is known: an interrupt must not leave the others short of it.
            self._vectors, self._totals = grown(self._vectors, capacity), grown(self._totals, capacity)
            self._offsets = grown(self._offsets, capacity)
        self._vectors[start:count] = vectors
        self._offsets[start:count] = offsets

    def set_count(self, count: int) -> None:
        """Say how many of the rows that have been stored count."""
        self._count = count

    def __getstate__(self) -> dict[str, object]:
        """Pickle the rows without the unused capacity."""
        return {"vectors": self.vectors, "offsets": self.offsets, "totals": self.totals}

    def __setstate__(self, state: dict[str, Array]) -> None:
        """Restore rows."""
        self._vectors, self._offsets = state["vectors"], state["offsets"]
        self._totals, self._count = state["totals"], len(state["offsets"])


def grown(array: Array, capacity: int) -> Array:
    """Return an array with room for `capacity` rows; the one given is used up.

    >>> grown(np.ones((1, 2)), 3).shape
    (3, 2)
    """
    if not array.flags.owndata:  # one that was pickled refers to the memory of the pickle
        array = array.copy()
    # In place: the system moves the pages of a large block instead of copying them.
    array.resize((capacity, *array.shape[1:]), refcheck=False)
    return array
