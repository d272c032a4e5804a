"""The squared loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent._check import Array, positive
from reticent.losses._glm import SQUARED
from reticent.losses._residual import Residual


@dataclass(frozen=True)
class Squared(Residual):
    """The loss `(a @ x - y)**2 / 2`; its minimiser predicts the mean.

    >>> Squared().values([1.0], [[3.0], [1.0]], [1.0, 2.0])
    array([2. , 0.5])
    """

    code: ClassVar[int] = SQUARED
    curved: ClassVar[bool] = True

    def phi(self, m: Array) -> Array:
        """Return `m**2 / 2`."""
        return 0.5 * np.square(m)

    def dphi(self, m: Array) -> Array:
        """Return `m`."""
        return 1.0 * m

    def d2phi(self, m: Array) -> Array:
        """Return 1."""
        return np.ones(np.shape(m))

    def curvature_bounds(self, m_low: Array, m_high: Array) -> tuple[Array, Array]:
        """Return 1 and 1."""
        return np.ones(np.shape(m_low)), np.ones(np.shape(m_low))

    def slope_bound(self, m_low: Array, m_high: Array) -> Array:
        """Return the largest `|m|` in the range."""
        return np.maximum(np.abs(m_low), np.abs(m_high))

    def self_concordance(self, max_abs_margin: float) -> float:
        """Return 0: the third derivative vanishes."""
        positive("max_abs_margin", max_abs_margin, zero=True)
        return 0.0
