"""What trackers share: values in, clipped to public bounds, and what follows them behind the face."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from reticent._core._check import Array, numbers, real
from reticent._core._html import card
from reticent._core._html import numbers as numbers_of
from reticent.domains import Interval
from reticent.learners import Learner
from reticent.saving import Key, key_bytes, pack, refuse_unless, write_file
from reticent.trackers._windows import Windows

STATE = "tracker"
"""What the state of a tracker is called in its file."""


def public_interval(low: float, high: float) -> Interval:
    """Return the interval of the bounds; refuse bounds that are none."""
    bottom, top = real("low", low), real("high", high)
    if not bottom < top:
        raise ValueError(f"low must be less than high, got low={low!r} and high={high!r}")
    return Interval(bottom, top)


def named(names: tuple[str, ...], before: tuple[str, ...], given: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return arguments by name; in the order of earlier versions, with the horizon, where only that fits.

    >>> named(("low", "high", "epsilon"), ("low", "high", "horizon", "epsilon"), (0, 1, 100), {"epsilon": 2.0})
    {'low': 0, 'high': 1, 'horizon': 100, 'epsilon': 2.0}
    """
    order = before if len(given) > len(names) or {*names[: len(given)]} & {*options} else names
    found = dict(zip(order, given, strict=False))
    twice = {*found} & {*options}
    if len(given) > len(order) or twice:
        what = f"{sorted(twice)} twice" if twice else f"{len(given)} of them"
        raise TypeError(f"arguments must be ({', '.join(names)}), the rest by name, got {what}")
    return found | options


class Tracker(ABC):
    """Follows numbers of a stream of values, each clipped to the public bounds `low` and `high`."""

    def __init__(self, learner: Learner | Windows, low: float, high: float) -> None:
        self._learner: Any = learner
        self.low, self.high = float(low), float(high)

    @property
    @abstractmethod
    def value(self) -> Any:
        """What is published: private, and from `low` to `high`."""

    def _take(self, value: float) -> None:
        """Take in one clipped value."""
        self._learner.take(value)

    def _take_many(self, values: Array) -> None:
        """Take in clipped values."""
        self._learner.take_many(values)

    def update(self, value: float) -> None:
        """Take in one value: a round of its own.

        Values beyond the bounds, infinite ones too, count as the bound. What is not a number is refused, and leaves the
        tracker as it was; for neighbours "zero-out" without a horizon, NaN is a round without a value.
        """
        # What is plainly a number takes the short way.
        if isinstance(value, float | np.floating) and value == value:
            self._take(min(max(float(value), self.low), self.high))
            return
        array = given_numbers("value", value)
        if array.ndim:
            raise ValueError(f"value must be one number, got shape {array.shape}; use update_many for several")
        self._take(float(self._clipped("value", array.reshape(1))[0]))

    def update_many(self, values: ArrayLike) -> None:
        """Take in values one after the other, with the same result to the last bit as `update`.

        If any is refused, none is taken in. After an interrupt nobody knows how many were: a tracker without a horizon
        then refuses to go on, since a value that is given twice costs twice.
        """
        array = given_numbers("values", values)
        if array.ndim != 1:
            raise ValueError(f"values must be a list of numbers (one-dimensional), got shape {array.shape}")
        if array.size:
            self._take_many(self._clipped("values", array))

    observe, observe_many = update, update_many

    def _clipped(self, name: str, array: Array) -> Array:
        missing = np.isnan(array)
        if missing.any() and not (isinstance(self._learner, Windows) and self.plan.neighbors == "zero-out"):
            place = f" at index {int(np.argmax(missing))}" if array.size > 1 else ""
            raise ValueError(
                f"{name} must not be missing, got nan{place}; leave no round out (that would show), but put a public "
                "number in its place"
            )
        clipped: Array = np.clip(array, self.low, self.high)
        return clipped

    @property
    def decision(self) -> Any:
        """What is published: `value`, under the name that learners have for it."""
        return self.value

    @property
    def rounds(self) -> int:
        """The number of values taken in."""
        return int(self._learner.rounds)

    @property
    def switches(self) -> int:
        """How often what is published has changed."""
        return int(self._learner.switches)

    @property
    def learner(self) -> Any:
        """What decides behind the tracker, to look at: with a horizon a learner, else what releases windows."""
        return self._learner

    @property
    def plan(self) -> Any:
        """What is promised: parameters, epsilon and delta; `print(tracker.plan)` lays it out."""
        return self._learner.plan

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon, at `delta` (that of the plan unless given), that the values so far may have cost."""
        return float(self._learner.spent(delta))

    def dp_event(self) -> Any:
        """Return an event of dp_accounting that bounds what the whole run reveals, for composing with others."""
        return self.plan.dp_event()

    def save(self, path: str | os.PathLike[str], *, key: Key = None) -> None:
        """Write the state to a file, from which `rt.load(path)` makes a tracker that goes on bit for bit.

        As with `Learner.save` the file is as sensitive as the data: resume it once, and destroy it. A `key` is as
        there.
        """
        write_file(path, pack(STATE, self, key_bytes(key)))

    def check_standing(self) -> None:
        """Refuse a loaded state in which no tracker can stand."""
        public_interval(self.low, self.high)
        self._learner.check_standing()
        self._check_own()
        repr(self)

    def _check_own(self) -> None:
        """Refuse what the tracker says of itself, in a loaded state, if what decides behind it says otherwise."""
        behind = self._learner
        if isinstance(behind, Windows):
            ends = behind.plan.low, behind.plan.high
            refuse_unless(
                (self.low, self.high) == ends, f"its bounds {self.low!r} and {self.high!r} are not its plan's"
            )
            for name, other in (("q", "level"), ("levels", "levels")):
                same = not hasattr(behind, other) or getattr(self, name) == getattr(behind, other)
                refuse_unless(same, f"its {name} is not that of its releases")

    def __copy__(self) -> NoReturn:
        """Refuse, as the learner does; of a tracker and its deep copy only one may go on."""
        raise TypeError("a tracker cannot be copied, only moved: pickle it, and resume one of the two")

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what is published, and what is promised of it."""
        plan, shown = self.plan, self.value if isinstance(self.value, tuple) else (self.value,)
        rows = [
            ("published", numbers_of(shown)),
            ("values taken in", f"{self.rounds:,}" + ("" if plan.horizon is None else f" of {plan.horizon:,}")),
            ("changes", f"{self.switches:,}"),
            ("bounds", f"{self.low:g} to {self.high:g}"),
            ("privacy", f"epsilon {plan.epsilon:g}, delta {plan.delta:g}"),
        ]
        return card(type(self).__name__, rows)

    def _says(self, what: str) -> str:
        plan = self.plan
        of = "" if plan.horizon is None else f" of {plan.horizon}"
        shown = self.value if isinstance(self.value, tuple) else (self.value,)
        at = f"{', '.join(f'{one:.6g}' for one in shown)} after {self.rounds} rounds{of}"
        return f"<{what} in [{self.low:g}, {self.high:g}]: {at}, epsilon {plan.epsilon:g}, delta {plan.delta:g}>"


def given_numbers(name: str, value: Any) -> Array:
    """Return values as an array of floats; refuse others by their types, for values are not for error messages.

    >>> given_numbers("values", [0.25, "secret"])
    Traceback (most recent call last):
        ...
    ValueError: values must be real numbers that fit into double precision, got a list of float, str
    """
    try:
        return numbers(value)
    except (TypeError, ValueError, OverflowError):
        parts = value if isinstance(value, list | tuple) else []
        of = " of " + ", ".join(sorted({type(one).__name__ for one in parts})) if parts else ""
        what = f"a {type(value).__name__}{of}"
        raise ValueError(f"{name} must be real numbers that fit into double precision, got {what}") from None
