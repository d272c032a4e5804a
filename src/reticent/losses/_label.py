"""Losses of a label, with targets -1 and +1 and the margin `y * (a @ x)`: logistic and hinge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from reticent._core._check import Array, positive
from reticent._core._tags import saved
from reticent.losses._base import Rows
from reticent.losses._glm import HINGE, LOGISTIC, GeneralisedLinear, Pieces, above


class Label(GeneralisedLinear):
    """A loss of how clearly the sign of the prediction `a @ x` agrees with the label `y`.

    Labels are -1 and +1; 0 and False are read as -1, True as +1.
    """

    def _targets(self, targets: Array) -> Array:
        known = (targets == 1) | (targets == -1) | (targets == 0)
        if not known.all():
            row = int(np.argmin(known))
            raise ValueError(
                f"targets must be labels -1 or +1 (or 0 for -1), got {targets[row]} in row {row}; "
                "map the two classes to -1 and +1"
            )
        return np.where(targets == 1, 1.0, -1.0)

    def _normal(self, vectors: Array, offsets: Array, targets: Array) -> Rows:
        if (targets == 1).all():
            return Rows(vectors, offsets)
        return Rows(vectors * targets[:, None], offsets * targets)


# The logistic loss, for labels.


@saved("logistic")
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

    def rise(self, m: Array, v: Array) -> Array:
        """Return the rise: short steps by the ratio of the exponentials, long ones as those of a hinge and the rest."""
        short = np.log1p(_sigmoid(-m) * np.expm1(-np.clip(v, -1.0, 1.0)))
        rest = np.log1p(np.exp(-np.abs(m + v))) - np.log1p(np.exp(-np.abs(m)))
        return np.where(np.abs(v) <= 1.0, short, above(m, v) - v + rest)

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


# The hinge loss, for labels.


@saved("hinge")
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

    def rise(self, m: Array, v: Array) -> Array:
        """Return less what of the step lies below the margin."""
        return above(m - self.margin, v) - v

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
