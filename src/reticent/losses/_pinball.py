"""The pinball loss, for quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent._check import Array, real
from reticent.losses._glm import PINBALL, Pieces
from reticent.losses._residual import Residual


@dataclass(frozen=True)
class Pinball(Residual):
    """The loss `max(tau * r, (tau - 1) * r)` of `r = y - a @ x`; its minimiser predicts the `tau`-quantile.

    >>> Pinball(tau=0.75).values([1.0], [[1.0], [1.0]], [3.0, -1.0])
    array([1.5, 0.5])
    """

    tau: float
    code: ClassVar[int] = PINBALL

    def __post_init__(self) -> None:
        """Check the level."""
        tau = real("tau", self.tau)
        if not 0 < tau < 1:
            raise ValueError(f"tau must lie strictly between 0 and 1, got {self.tau!r}; 0.5 gives the median")
        object.__setattr__(self, "tau", tau)

    @property
    def parameter(self) -> float:
        """The level `tau`."""
        return self.tau

    def phi(self, m: Array) -> Array:
        """Return `max(-tau * m, (1 - tau) * m)`."""
        return np.maximum(-self.tau * m, (1 - self.tau) * m)

    def dphi(self, m: Array) -> Array:
        """Return `-tau` below 0 and `1 - tau` above; their mean at the kink."""
        return np.where(m > 0, 1 - self.tau, np.where(m < 0, -self.tau, 0.5 - self.tau))

    def d2phi(self, m: Array) -> Array:
        """Return 0."""
        return np.zeros(np.shape(m))

    def curvature_bounds(self, m_low: Array, m_high: Array) -> tuple[Array, Array]:
        """Return 0 and 0, or 0 and inf where the kink lies in the range."""
        return np.zeros(np.shape(m_low)), np.where((m_low <= 0) & (m_high >= 0), np.inf, 0.0)

    def slope_bound(self, m_low: Array, m_high: Array) -> Array:
        """Return the larger of `tau` (where the range reaches down to 0) and `1 - tau` (where up)."""
        return np.maximum(np.where(m_low <= 0, self.tau, 0.0), np.where(m_high >= 0, 1 - self.tau, 0.0))

    def pieces(self) -> Pieces:
        """Return one break at 0, where the slope jumps from `-tau` to `1 - tau`."""
        return np.array([0.0]), np.array([1.0]), np.array([0.0]), -self.tau
