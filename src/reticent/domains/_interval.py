"""Intervals of the line."""

from __future__ import annotations

from typing import Any

from reticent._check import real
from reticent.domains._box import Box


class Interval(Box):
    """The numbers from `low` to `high`, as points of one coordinate: a `Box` of dimension 1.

    >>> Interval(-1.0, 3.0).center
    array([1.])
    """

    def __init__(self, low: float, high: float) -> None:
        """Take the two ends, `low` below `high`."""
        super().__init__([real("low", low)], [real("high", high)])

    def _parameters(self) -> tuple[Any, ...]:
        return float(self._low[0]), float(self._high[0])
