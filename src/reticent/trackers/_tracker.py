"""What trackers share: values in, clipped to public bounds, and a learner that decides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from reticent._core._check import Array, numbers, real
from reticent.domains import Interval
from reticent.learners import Learner


def public_interval(low: float, high: float) -> Interval:
    """Return the interval of the bounds; refuse bounds that are none."""
    bottom, top = real("low", low), real("high", high)
    if not bottom < top:
        raise ValueError(f"low must be less than high, got low={low!r} and high={high!r}")
    return Interval(bottom, top)


class Tracker(ABC):
    """Follows one number of a stream of values, each clipped to the public bounds `low` and `high`."""

    def __init__(self, learner: Learner, low: float, high: float) -> None:
        self._learner = learner
        self.low, self.high = float(low), float(high)

    @property
    @abstractmethod
    def value(self) -> float:
        """The estimate, private and from `low` to `high`."""

    @abstractmethod
    def _take(self, value: float) -> None:
        """Take in one clipped value."""

    @abstractmethod
    def _take_many(self, values: Array) -> None:
        """Take in clipped values."""

    def update(self, value: float) -> None:
        """Take in one value: a round of its own.

        Values beyond the bounds, infinite ones too, count as the bound. What is not a number is refused, and leaves the
        tracker as it was.
        """
        # What is plainly a number takes the short way.
        if isinstance(value, float | np.floating) and value == value:
            self._take(min(max(float(value), self.low), self.high))
            return
        array = _numbers("value", value)
        if array.ndim:
            raise ValueError(f"value must be one number, got shape {array.shape}; use update_many for several")
        self._take(float(self._clipped("value", array.reshape(1))[0]))

    def update_many(self, values: ArrayLike) -> None:
        """Take in values one after the other, with the same result to the last bit as `update`; all or none."""
        array = _numbers("values", values)
        if array.ndim != 1:
            raise ValueError(f"values must be a list of numbers (one-dimensional), got shape {array.shape}")
        if array.size:
            self._take_many(self._clipped("values", array))

    def _clipped(self, name: str, array: Array) -> Array:
        missing = np.isnan(array)
        if missing.any():
            place = f" at index {int(np.argmax(missing))}" if array.size > 1 else ""
            raise ValueError(
                f"{name} must not be missing, got nan{place}; leave no round out (that would show), but put a public "
                "number in its place"
            )
        clipped: Array = np.clip(array, self.low, self.high)
        return clipped

    @property
    def rounds(self) -> int:
        """The number of values taken in."""
        return self._learner.rounds

    @property
    def learner(self) -> Learner:
        """The learner behind the tracker, to look at: a round given to it directly counts, but escapes `average`."""
        return self._learner

    @property
    def plan(self) -> Any:
        """What is promised: parameters, epsilon and delta; `print(tracker.plan)` lays it out."""
        return self._learner.plan

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon, at `delta` (that of the plan unless given), that the values so far may have cost."""
        return self._learner.spent(delta)

    def __copy__(self) -> NoReturn:
        """Refuse, as the learner does."""
        raise TypeError("a tracker cannot be copied, only moved: pickle it, and resume one of the two")

    def _says(self, what: str) -> str:
        plan = self.plan
        of = "" if plan.horizon is None else f" of {plan.horizon}"
        at = f"{self.value:.6g} after {self.rounds} rounds{of}"
        return f"<{what} in [{self.low:g}, {self.high:g}]: {at}, epsilon {plan.epsilon:g}, delta {plan.delta:g}>"


def _numbers(name: str, value: Any) -> Array:
    try:
        return numbers(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be real numbers, got {value!r}") from None
