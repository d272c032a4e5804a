"""The logistic loss, for labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from reticent._check import Array, positive
from reticent.losses._glm import LOGISTIC
from reticent.losses._label import Label


@dataclass(frozen=True)
class Logistic(Label):
    """The loss `log(1 + exp(-y * (a @ x)))` for labels `y` of -1 and +1.

    >>> Logistic().values([0.0], [[1.0], [5.0]], [1, -1]).round(6)
    array([0.693147, 0.693147])
    """

    code: ClassVar[int] = LOGISTIC
    curved: ClassVar[bool] = True

    def phi(self, m: Array) -> Array:
        """Return `log(1 + exp(-m))`, without overflow."""
        return np.logaddexp(0.0, -m)

    def dphi(self, m: Array) -> Array:
        """Return `-1 / (1 + exp(m))`."""
        return -_sigmoid(-m)

    def d2phi(self, m: Array) -> Array:
        """Return `1 / ((1 + exp(m)) * (1 + exp(-m)))`."""
        return _sigmoid(m) * _sigmoid(-m)

    def curvature_bounds(self, m_low: Array, m_high: Array) -> tuple[Array, Array]:
        """Return the second derivative at the margins of each range farthest from 0 and nearest to it."""
        farthest = np.maximum(np.abs(m_low), np.abs(m_high))
        return self.d2phi(farthest), self.d2phi(np.clip(0.0, m_low, m_high))

    def slope_bound(self, m_low: Array, m_high: Array) -> Array:
        """Return the absolute slope at the lower end."""
        return _sigmoid(-m_low)

    def self_concordance(self, max_abs_margin: float) -> float:
        """Return `tanh(max_abs_margin / 2)`."""
        return float(np.tanh(0.5 * positive("max_abs_margin", max_abs_margin, zero=True)))


def _sigmoid(m: Array) -> Array:
    result: Array = scipy.special.expit(m)
    return result
