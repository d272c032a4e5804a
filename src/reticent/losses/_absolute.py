"""The absolute loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent._check import Array
from reticent.losses._glm import ABSOLUTE, Pieces
from reticent.losses._residual import Residual


@dataclass(frozen=True)
class Absolute(Residual):
    """The loss `|a @ x - y|`; its minimiser predicts the median.

    >>> Absolute().values([1.0, 1.0], [[1.0, 2.0], [0.0, 1.0]], [1.0, 3.0])
    array([2., 2.])
    """

    code: ClassVar[int] = ABSOLUTE

    def phi(self, m: Array) -> Array:
        """Return `|m|`."""
        return np.abs(m)

    def dphi(self, m: Array) -> Array:
        """Return the sign of `m`, 0 at the kink."""
        return np.sign(m)

    def d2phi(self, m: Array) -> Array:
        """Return 0."""
        return np.zeros(np.shape(m))

    def curvature_bounds(self, m_low: Array, m_high: Array) -> tuple[Array, Array]:
        """Return 0 and 0, or 0 and inf where the kink lies in the range."""
        return np.zeros(np.shape(m_low)), np.where((m_low <= 0) & (m_high >= 0), np.inf, 0.0)

    def slope_bound(self, m_low: Array, m_high: Array) -> Array:
        """Return 1."""
        return np.ones(np.shape(m_low))

    def pieces(self) -> Pieces:
        """Return one break at 0, where the slope jumps from -1 to 1."""
        return np.array([0.0]), np.array([2.0]), np.array([0.0]), -1.0
