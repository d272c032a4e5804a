"""The Huber loss, for regression with outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent._check import Array, positive
from reticent.losses._glm import HUBER, Pieces
from reticent.losses._residual import Residual


@dataclass(frozen=True)
class Huber(Residual):
    """The loss `m**2 / 2` of `m = a @ x - y` for `|m| <= width`, and `width * |m| - width**2 / 2` beyond.

    >>> Huber(width=2.0).values([1.0], [[1.0], [5.0]], [0.0, 0.0])
    array([0.5, 8. ])
    """

    width: float = 1.0
    code: ClassVar[int] = HUBER

    def __post_init__(self) -> None:
        """Check the width."""
        object.__setattr__(self, "width", positive("width", self.width))

    @property
    def parameter(self) -> float:
        """The width of the quadratic part on each side."""
        return self.width

    def phi(self, m: Array) -> Array:
        """Return the loss: quadratic in the middle, linear outside."""
        size = np.abs(m)
        inner = np.minimum(size, self.width)
        return inner * (size - 0.5 * inner)

    def dphi(self, m: Array) -> Array:
        """Return `m`, cut off at the width on both sides."""
        return np.clip(m, -self.width, self.width)

    def d2phi(self, m: Array) -> Array:
        """Return 1 for `|m| <= width` and 0 beyond."""
        return np.where(np.abs(m) <= self.width, 1.0, 0.0)

    def curvature_bounds(self, m_low: Array, m_high: Array) -> tuple[Array, Array]:
        """Return 1 below where the range lies in the quadratic part, 1 above where it meets it; else 0."""
        inside = (m_low >= -self.width) & (m_high <= self.width)
        meets = (m_low <= self.width) & (m_high >= -self.width)
        return np.where(inside, 1.0, 0.0), np.where(meets, 1.0, 0.0)

    def slope_bound(self, m_low: Array, m_high: Array) -> Array:
        """Return the largest `|m|` in the range, or the width if that is less."""
        return np.minimum(np.maximum(np.abs(m_low), np.abs(m_high)), self.width)

    def pieces(self) -> Pieces:
        """Return breaks at both ends of the quadratic part; the slope starts at `-width`."""
        breaks = np.array([-self.width, self.width])
        return breaks, np.zeros(2), np.array([1.0, -1.0]), -self.width
