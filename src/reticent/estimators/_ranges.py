"""Public ranges: numbers brought to [-1, 1] by them, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent._check import Array, real

LARGEST = 1e100  # bounds whose sums and differences stay well within double precision


class Range:
    """A public range: what lies in it is moved to [-1, 1], what lies beyond is clipped.

    Unless it was given (`Range(None)`), values are expected in [-1, 1] and others are refused: a range that somebody
    forgot to give would clip all of them to the same number, and nothing would be learned.

    >>> Range((0.0, 10.0)).unit("age", 2.5), Range((0.0, 10.0)).unit("age", 99.0)
    (-0.5, 1.0)
    >>> Range((0.0, 10.0)).back(-0.5)
    2.5
    """

    def __init__(self, ends: Any, name: str = "bounds") -> None:
        """Take `(low, high)`, or None if nothing was given; `name` is the argument it came from."""
        self.given, self.name = ends is not None, name
        self.low, self.high = (-1.0, 1.0) if ends is None else _ends(name, ends)
        self.middle, self.width = self.low + self.high, self.high - self.low

    def unit(self, what: object, value: float) -> float:
        """Return a number moved to [-1, 1]; `what` names it in messages."""
        if not self.given and not -1.0 <= value <= 1.0:
            self._refuse(what, value)
        inside = min(max(value, self.low), self.high)
        return min(max((2.0 * inside - self.middle) / self.width, -1.0), 1.0)

    def units(self, what: object, values: Array) -> Array:
        """Return numbers moved to [-1, 1], each as `unit` does to the last bit; NaN stays."""
        if not self.given:
            beyond = np.abs(values) > 1.0
            if beyond.any():
                self._refuse(what, float(values[int(np.argmax(beyond))]))
        inside = np.clip(values, self.low, self.high)
        moved: Array = np.clip((2.0 * inside - self.middle) / self.width, -1.0, 1.0)
        return moved

    def back(self, unit: float) -> float:
        """Return the number of the range that a number of [-1, 1] stands for; others are clipped."""
        return min(max((unit * self.width + self.middle) / 2.0, self.low), self.high)

    def backs(self, units: Array) -> Array:
        """Return the numbers of the range, each as `back` does to the last bit."""
        moved: Array = np.clip((units * self.width + self.middle) / 2.0, self.low, self.high)
        return moved

    def _refuse(self, what: object, value: float) -> None:
        raise ValueError(
            f"{what} is {value!r}, outside of [-1, 1], and {self.name} was not given; give {self.name}=(low, high), a "
            "range that is public (not computed from the data): values are then scaled by it, and those beyond clipped"
        )


def _ends(name: str, ends: Any) -> tuple[float, float]:
    if isinstance(ends, str) or not isinstance(ends, Sequence | np.ndarray) or len(ends) != 2:
        raise ValueError(f"{name} must be (low, high), two numbers known in public, got {ends!r}")
    low, high = real(f"the low end of {name}", ends[0]), real(f"the high end of {name}", ends[1])
    if not low < high:
        raise ValueError(f"{name} must have its low end below its high end, got {ends!r}")
    if max(abs(low), abs(high)) > LARGEST or high - low < 1 / LARGEST:
        raise ValueError(f"{name} must be from -1e100 to 1e100 and wider than 1e-100, got {ends!r}; choose other units")
    return low, high
