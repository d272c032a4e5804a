"""Boxes, an interval for every coordinate, and intervals of the line."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reticent._core._check import Array, real, vector
from reticent._core._tags import saved
from reticent.domains._base import Body, Domain, box_body, length, read_only
from reticent.domains._log_integral import log_box_integral


@saved("box")
class Box(Domain):
    """The points `x` with `low <= x <= high`; the centre is the midpoint.

    >>> Box([0, 0], [6, 8]).diameter
    10.0
    """

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        """Take the least and the greatest value of each coordinate, as sequences of one length."""
        self._low = read_only(vector("low", low))
        self._high = read_only(vector("high", high, self._low.size))
        if self._low.size == 0:
            raise ValueError("low must have at least one coordinate, got an empty vector")
        for i in np.flatnonzero(self._low >= self._high):
            raise ValueError(
                f"low must be below high, got low {self._low[i]} and high {self._high[i]} at index {i}; "
                "swap them if they are reversed, leave the coordinate out if it is fixed"
            )
        self._half: Array = self._high / 2 - self._low / 2
        radius = length(self._half)
        super().__init__(self._low / 2 + self._high / 2, radius=radius, diameter=2 * radius)

    @property
    def low(self) -> Array:
        """The least value of each coordinate (read-only)."""
        return self._low

    @property
    def high(self) -> Array:
        """The greatest value of each coordinate (read-only)."""
        return self._high

    def _parameters(self) -> tuple[Any, ...]:
        return self._low, self._high

    def _excess(self, x: Array) -> float:
        return float(np.maximum(self._low - x, x - self._high).max())

    def _project(self, x: Array) -> Array:
        nearest: Array = np.clip(x, self._low, self._high)
        return nearest

    def _support(self, c: Array) -> Array:
        return np.where(c < 0, self._high, self._low)

    def _log_z(self, k: float, upper: bool) -> float:
        return log_box_integral(-self._half, self._half, k)

    def _make_body(self) -> Body:
        return box_body(self._half, self._radius)


# Intervals of the line.


@saved("interval")
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
