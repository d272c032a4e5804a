"""What decides: rounds in normal form go in, changes of decision come out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from reticent._core._check import Array

NEVER = 1 << 62
"""A round that never comes."""
Places = NDArray[np.int64]

_AT_ONCE = 1024  # changes that one call of a compiled loop can report


class Decider(Protocol):
    """The part of a learner that decides, also called its walk.

    It uses randomness at places that depend on the rounds only, never on how they are cut into blocks.
    """

    @property
    def done(self) -> int:
        """Rounds taken in."""

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when the decision may change next."""

    @property
    def frozen(self) -> bool:
        """Whether the budget of switches is spent, so that the decision stays."""

    @property
    def torn(self) -> bool:
        """Whether an interrupt has left rounds half taken in."""

    @property
    def u(self) -> Array:
        """The decision in play, in the chart."""

    def take(self, rows: Any, changes: Changes) -> None:
        """Take in prepared rounds; changes of decision are added, counted from the walk's first round."""


class Batched:
    """What walks without a budget share whose decision may change at the end of every batch of a fixed length."""

    _moves: ClassVar[tuple[str, ...]] = ("done", "torn")

    batch: int = 1

    def __init__(self, batch: int = 1) -> None:
        self.batch = batch
        self.done = 0
        self.torn = False

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when the decision may change next: at the end of the batch."""
        return (self.done // self.batch + 1) * self.batch

    @property
    def frozen(self) -> bool:
        """Whether a budget of switches is spent; without one, never."""
        return False


class Changes:
    """Changes of decision as a run goes on: after how many rounds each came, and the point of the chart from then on.

    >>> changes = Changes()
    >>> changes.add(3, np.array([0.5]))
    >>> changes.add_many(np.array([4, 6]), np.array([[0.25], [0.75]]))
    >>> len(changes), changes.places(), changes.points(1).ravel()
    (3, array([3, 4, 6]), array([0.5 , 0.25, 0.75]))
    """

    def __init__(self) -> None:
        self._places: list[Places] = []
        self._points: list[Array] = []
        self._count = 0

    @staticmethod
    def buffer(dim: int) -> tuple[Places, Array]:
        """Return the arrays that a compiled loop writes its changes into, as many as one call of it can report."""
        return np.empty(_AT_ONCE, dtype=np.int64), np.empty((_AT_ONCE, dim))

    def __len__(self) -> int:
        """Return the number of changes."""
        return self._count

    def add(self, place: int, point: Array) -> None:
        """Add one change, after `place` rounds."""
        self.add_many(np.array([place]), point[None])

    def add_many(self, places: Places, points: Array, before: int = 0) -> None:
        """Add changes after so many rounds each, counted from round `before` on; the arrays are kept as they are."""
        self._places.append(places + before if before else places)
        self._points.append(points)
        self._count += len(places)

    def join(self, later: Changes, before: int) -> None:
        """Add all changes of another list, counted from round `before` on."""
        for places, points in zip(later._places, later._points, strict=True):
            self.add_many(places, points, before)

    def put_last(self, point: Array) -> None:
        """Make the decision of the last change another."""
        self._points[-1] = np.concatenate([self._points[-1][:-1], point[None]])

    def places(self) -> Places:
        """Return after how many rounds each change came."""
        return np.concatenate(self._places) if self._places else np.zeros(0, dtype=np.int64)

    def points(self, dim: int) -> Array:
        """Return the decisions in the chart, which has `dim` coordinates."""
        return _stacked(self._points, dim)


def _stacked(parts: Sequence[Array], dim: int) -> Array:
    return np.concatenate(parts) if parts else np.zeros((0, dim))
