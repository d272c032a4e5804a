"""The hinge loss, for labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent._check import Array, positive
from reticent.losses._glm import HINGE, Pieces
from reticent.losses._label import Label


@dataclass(frozen=True)
class Hinge(Label):
    """The loss `max(0, margin - y * (a @ x))` for labels `y` of -1 and +1.

    >>> Hinge().values([2.0], [[1.0], [1.0]], [1, -1])
    array([0., 3.])
    """

    margin: float = 1.0
    code: ClassVar[int] = HINGE

    def __post_init__(self) -> None:
        """Check the margin."""
        object.__setattr__(self, "margin", positive("margin", self.margin))

    @property
    def parameter(self) -> float:
        """The margin where the loss reaches 0."""
        return self.margin

    def phi(self, m: Array) -> Array:
        """Return `max(0, margin - m)`."""
        return np.maximum(0.0, self.margin - m)

    def dphi(self, m: Array) -> Array:
        """Return -1 below the margin and 0 above; -1/2 at the kink."""
        return 0.5 * (np.sign(m - self.margin) - 1.0)

    def d2phi(self, m: Array) -> Array:
        """Return 0."""
        return np.zeros(np.shape(m))

    def curvature_bounds(self, m_low: Array, m_high: Array) -> tuple[Array, Array]:
        """Return 0 and 0, or 0 and inf where the kink lies in the range."""
        kink = (m_low <= self.margin) & (m_high >= self.margin)
        return np.zeros(np.shape(m_low)), np.where(kink, np.inf, 0.0)

    def slope_bound(self, m_low: Array, m_high: Array) -> Array:
        """Return 1, or 0 where the whole range lies above the margin."""
        return np.where(m_low <= self.margin, 1.0, 0.0)

    def pieces(self) -> Pieces:
        """Return one break at the margin, where the slope jumps from -1 to 0."""
        return np.array([self.margin]), np.array([1.0]), np.array([0.0]), -1.0
