"""Columns brought to [-1, 1] by public bounds, and weights brought back to the columns as they came."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent._check import Array
from reticent.estimators._ranges import LARGEST

_log = logging.getLogger("reticent")
_MANY = 20  # rows that are not all beyond a bound by accident


@dataclass(frozen=True, eq=False)
class Scaling:
    """Public bounds of columns: what lies beyond is cut off, and a row, intercept included, has a length up to 1."""

    low: Array
    high: Array
    intercept: bool

    @staticmethod
    def of(bounds: Any, columns: int, intercept: bool) -> Scaling:
        """Read bounds: a pair of numbers for all columns, or of vectors with a number for each.

        >>> Scaling.of((0.0, [1.0, 4.0]), columns=2, intercept=True).rows(np.array([[1.0, 9.0]])).round(4)
        array([[0.5774, 0.5774, 0.5774]])
        """
        low, high = pair("bounds", bounds, columns)
        return Scaling(low, high, bool(intercept))

    @property
    def size(self) -> int:
        """The number of weights."""
        return self.low.size + self.intercept

    def clip(self, X: Array) -> Array:
        """Return the columns with what lies beyond the bounds cut off."""
        clipped: Array = np.clip(X, self.low, self.high)
        return clipped

    def rows(self, X: Array) -> Array:
        """Return rows of length 1 at most, for a learner."""
        scaled = np.clip((self.clip(X) - self._middle) / self._half, -1.0, 1.0)  # the middle is rounded
        if self.intercept:
            scaled = np.column_stack([scaled, np.ones(len(X))])
        return scaled / math.sqrt(self.size)

    def weights(self, decision: Array) -> tuple[Array, float]:
        """Return the weights of the columns as they come, and the intercept, that give `rows(X) @ decision`."""
        count = self.low.size
        coef = decision[:count] / (math.sqrt(self.size) * self._half)
        constant = decision[count] / math.sqrt(self.size) if self.intercept else 0.0
        return coef, float(constant - coef @ self._middle)

    @property
    def _middle(self) -> Array:
        return (self.low + self.high) / 2

    @property
    def _half(self) -> Array:
        return (self.high - self.low) / 2


def tell_if_beyond(name: str, X: Array, low: Any, high: Any) -> None:
    """Tell the keeper of the data, in the log, that all of a column lies beyond one bound and nothing of it is left.

    Neither a warning nor an error, since bounds are right whatever the data. Who may not see the data should not see
    the log.
    """
    lost = ((high - X) < 0).all(axis=0) | ((X - low) < 0).all(axis=0)
    if len(X) >= _MANY and lost.any():
        _log.warning(
            "all %d values of column %d lie beyond %s, where they are cut off to one number; give %s=(low, high), "
            "public and wide enough, and do not compute them from the data",
            *(len(X), int(np.argmax(lost)), name, name),
        )


def pair(name: str, value: Any, columns: int) -> tuple[Array, Array]:
    """Return two vectors, lows and highs; refuse what is not (low, high) with low below high everywhere."""
    try:
        if not isinstance(value, Sequence | np.ndarray):  # what else can be gone through has no order, or other things
            raise TypeError
        low, high = (np.broadcast_to(np.asarray(part, dtype=np.float64), (columns,)) for part in value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be public bounds (low, high), each a number or a vector of {columns} numbers, got {value!r}"
        ) from None
    # Sums, differences and quotients stay well within double precision.
    with np.errstate(invalid="ignore"):
        good = (low >= -LARGEST) & (high <= LARGEST) & (high - low >= 1 / LARGEST)
    if not good.all():
        k = int(np.argmin(good))
        raise ValueError(
            f"{name} must be from -1e100 to 1e100, with low below high by 1e-100 at least, "
            f"got ({low[k]}, {high[k]}) for column {k}"
        )
    return low, high
