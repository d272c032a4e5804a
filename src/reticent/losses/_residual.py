"""Losses of a residual, with real targets and the margin `a @ x - y`: absolute, pinball, Huber and squared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent._core._check import Array, positive, real
from reticent._core._tags import saved
from reticent.losses._base import Rows
from reticent.losses._glm import ABSOLUTE, HUBER, PINBALL, SQUARED, GeneralisedLinear, Pieces, above


class Residual(GeneralisedLinear):
    """A loss of how far the prediction `a @ x` lies above the target `y`."""

    def _targets(self, targets: Array) -> Array:
        return targets

    def _normal(self, vectors: Array, offsets: Array, targets: Array) -> Rows:
        with np.errstate(over="ignore"):
            shifted = offsets - targets
        if not np.isfinite(shifted).all():
            row = int(np.argmin(np.isfinite(shifted)))
            raise ValueError(
                f"targets must be small enough to subtract in double precision, got {targets[row]} in row {row}"
            )
        return Rows(vectors, shifted)


# The absolute loss.


@saved("absolute")
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

    def rise(self, m: Array, v: Array) -> Array:
        """Return what of the step lies above 0 less what lies below."""
        return 2.0 * above(m, v) - v

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


# The pinball loss, for quantiles.


@saved("pinball")
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

    def rise(self, m: Array, v: Array) -> Array:
        """Return what of the step lies above 0 and what lies below, each times the slope there."""
        up = above(m, v)
        return (1 - self.tau) * up - self.tau * (v - up)

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


# The Huber loss, for regression with outliers.


@saved("huber")
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

    def rise(self, m: Array, v: Array) -> Array:
        """Return the rise over the quadratic part of the step, and over what lies above and below."""
        low, high = above(m + self.width, v), above(m - self.width, v)
        inside = low - high
        quadratic = inside * (np.clip(m, -self.width, self.width) + 0.5 * inside)
        return quadratic + self.width * (high - (v - low))

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


# The squared loss.


@saved("squared")
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

    def rise(self, m: Array, v: Array) -> Array:
        """Return the step times the margin in its middle."""
        return v * (m + 0.5 * v)

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
