"""Euclidean balls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reticent._core._check import Array, integer, positive, vector
from reticent._core._tags import saved
from reticent.domains._base import Body, Domain, ball_body, length
from reticent.domains._log_integral import log_ball_integral


@saved("ball")
class Ball(Domain):
    """The points within `radius` of `center`, which is the origin unless given.

    >>> Ball(2, radius=2.0).project([3.0, 0.0])
    array([2., 0.])
    """

    def __init__(self, dim: int, radius: float = 1.0, center: ArrayLike | None = None) -> None:
        """Take the dimension, the radius and the centre."""
        size = integer("dim", dim, least=1)
        reach = positive("radius", radius)
        middle = np.zeros(size) if center is None else vector("center", center, size)
        super().__init__(middle, radius=reach, diameter=2 * reach)

    def _parameters(self) -> tuple[Any, ...]:
        return self._dim, self._radius, self._center

    def __repr__(self) -> str:
        """Read like the call that made this ball, without a centre that is the origin."""
        if self._center.any():
            return super().__repr__()
        return f"Ball({self._dim}, {self._radius!r})"

    def _excess(self, x: Array) -> float:
        return length(x - self._center) - self._radius

    def _project(self, x: Array) -> Array:
        away = x - self._center
        distance = length(away)
        if distance <= self._radius:
            return x.copy()
        nearest: Array = self._center + away / distance * self._radius
        return nearest

    def _support(self, c: Array) -> Array:
        steepness = length(c)
        if steepness == 0:
            return self._center.copy()
        least: Array = self._center - c / steepness * self._radius
        return least

    def _log_z(self, k: float, upper: bool) -> float:
        return log_ball_integral(self._dim, self._radius, k)

    def _make_body(self) -> Body:
        return ball_body(self._dim, self._radius)
