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

    def append(self, vectors: Array, offsets: Array) -> None:
        """Store rows behind the present ones; their totals are for the caller to fill in."""
        count = self._count + len(offsets)
        if count > len(self._offsets):
            capacity = max(count, int(GROWTH * len(self._offsets)), 64)
            # In place: the system moves the pages of a large block instead of copying them.
            self._vectors.resize((capacity, self._vectors.shape[1]), refcheck=False)
            self._offsets.resize(capacity, refcheck=False)
            self._totals.resize(capacity, refcheck=False)
        self._vectors[self._count : count] = vectors
        self._offsets[self._count : count] = offsets
        self._count = count

    def __getstate__(self) -> dict[str, object]:
        """Pickle the rows without the unused capacity."""
        return {"vectors": self.vectors, "offsets": self.offsets, "totals": self.totals}

    def __setstate__(self, state: dict[str, Array]) -> None:
        """Restore rows that own their memory, so that they can grow again."""
        self._vectors, self._offsets = np.array(state["vectors"]), np.array(state["offsets"])
        self._totals, self._count = np.array(state["totals"]), len(state["offsets"])
