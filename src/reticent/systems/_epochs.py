"""Epochs: a walk that wraps walks, each starting from nothing with a plan of its own (docs/theory, P8)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from reticent._core._check import Array
from reticent.systems._decider import Changes, Decider
from reticent.systems._plan import BasePlan


class Epochs(ABC):
    """One walk after another, as long as rounds come; the first decision of each counts as a change.

    `walk` is the present one, in an epoch of `length` rounds that `plan` is for; `before` counts the rounds of those
    that are over, whose plans are kept in `past`.
    """

    _moves: ClassVar[tuple[str, ...]] = ("number", "before", "past", "_renewing", "plan", "length", "walk")

    walk: Decider
    plan: BasePlan
    length: int

    def __init__(self) -> None:
        """Start the first epoch."""
        self.number, self.before = 0, 0
        self.past: list[BasePlan] = []
        self._renewing = False  # whether an interrupt may have come between two epochs
        self.plan, self.length, self.walk = self._epoch(0)

    @abstractmethod
    def _epoch(self, number: int) -> tuple[BasePlan, int, Decider]:
        """Return the plan of an epoch, its length, and a walk at its first decision."""

    @property
    def done(self) -> int:
        """Rounds taken in, those of earlier epochs included."""
        return self.before + int(self.walk.done)

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when the decision may change next."""
        return self.before + min(int(self.walk.due), self.length)

    @property
    def frozen(self) -> bool:
        """Whether the budget of the present epoch is spent, so that the decision stays until the next."""
        return bool(self.walk.frozen)

    @property
    def torn(self) -> bool:
        """Whether an interrupt has left rounds half taken in."""
        return self._renewing or bool(self.walk.torn)

    @property
    def u(self) -> Array:
        """The decision in play, in the chart."""
        return self.walk.u

    @property
    def measure(self) -> Any:
        """The measure that decisions are drawn from, if there is one."""
        return getattr(self.walk, "measure", None)

    def take(self, rows: Any, changes: Changes) -> None:
        """Take in prepared rounds, epoch by epoch; changes are counted from the first round of all."""
        start = 0
        while start < len(rows):
            self._renew(changes)  # only where a draw failed the last time
            stop = min(len(rows), start + self.length - int(self.walk.done))
            self._walk_on(rows[start:stop], changes)
            start = stop
            self._renew(changes)

    def _walk_on(self, rows: Any, changes: Changes) -> None:
        """Take in rounds up to the end of the epoch at most."""
        found = Changes()
        try:
            self.walk.take(rows, found)
        finally:
            changes.join(found, self.before)

    def _renew(self, changes: Changes) -> None:
        """Start the next epoch if the present one is over."""
        if self.walk.done < self.length:
            return
        over, past = self.plan, self.done
        plan, length, walk = self._epoch(self.number + 1)  # may fail, and is tried again then
        self._renewing = True
        self.plan, self.length, self.walk = plan, length, walk
        self.number, self.before = self.number + 1, past
        self.past.append(over)
        changes.add(past, self.walk.u.copy())
        self._renewing = False
