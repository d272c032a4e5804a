"""Rounds that wait, checked, until a coin needs them: what makes observing one at a time cheap."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reticent._core._check import LEAST_SQUARE, Array, numbers
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.losses import Custom, GeneralisedLinear, Linear, Loss
from reticent.losses._label import Label
from reticent.losses._limit import SLACK, slope_cap

_CAPACITY = 4096  # rounds, which then go on together
_LARGE = 1e300  # targets below this cannot overflow when an offset is taken away
_FLOATS = np.dtype(np.float64)
_NUMBERS = (int, float, np.integer, np.floating, np.bool_)


@saved("inbox")
class Inbox:
    """Rounds in arrays, with labels -1 and 1.

    A round that is plainly good is taken at once: of the right shape, finite, and of a norm that keeps it within the
    Lipschitz limit whatever its margin. Anything else is left to the full check, which knows what to say.
    """

    def __init__(self, domain: Domain, loss: Loss, lipschitz: float) -> None:
        self.domain, self.loss = domain, loss
        self.shape = (domain.dim,)
        self.count = 0
        self.linear = isinstance(loss, Linear)
        self.parts = len(loss.data)
        self.label = isinstance(loss, Label)
        self.limit = lipschitz
        # A slope without bound (squared loss) is bounded by the largest margin instead.
        self.cap = slope_cap(loss.slope_bound) if isinstance(loss, GeneralisedLinear) else 1.0
        self.reach = domain.radius + float(np.linalg.norm(domain.center))
        # Squares outside this range have lost digits, or more; the full check knows better.
        most = min(lipschitz * (1 + 0.5 * SLACK) / self.cap, 1e150) ** 2
        # On a finite set the limit is on the range of a row, which its norm does not bound.
        known = most >= LEAST_SQUARE and math.isfinite(self.cap) and not domain.finite
        self.most = most if known else -1.0
        self.capacity = 0 if isinstance(loss, Custom) else _CAPACITY
        self._make_room()

    def _make_room(self) -> None:
        self.features = np.empty((self.capacity, *self.shape))
        self.targets = np.empty(self.capacity)

    def push(self, row: tuple[Any, ...]) -> bool:
        """Take a round that is plainly good; say whether it was."""
        count = self.count
        if count == self.capacity or len(row) != self.parts:
            return False
        features = row[0]
        if type(features) is not np.ndarray or features.dtype is not _FLOATS or features.shape != self.shape:
            converted = self._converted(features)
            if converted is None:
                return False
            features = converted
        place = self.features[count]
        place[:] = features
        try:
            square = place.dot(place)
        except FloatingPointError:  # the caller has numpy raise it; the full check looks closer
            return False
        target = 0.0
        if not self.linear:
            target = row[1]
            if not isinstance(target, _NUMBERS):
                return False
            try:
                target = float(target)
            except OverflowError:
                return False
            if self.label:
                if target == 0.0:
                    target = -1.0
                elif target != 1.0 and target != -1.0:
                    return False
            elif not -_LARGE < target < _LARGE:
                return False
            self.targets[count] = target
        # Written so that a NaN is not plainly good.
        if not LEAST_SQUARE <= square <= self.most and not self._gentle(place, square, target):
            return False
        self.count = count + 1
        return True

    def _converted(self, features: Any) -> Array | None:
        try:
            array = numbers(features)
        except (TypeError, ValueError, OverflowError):
            return None
        if array.shape == () and self.shape == (1,):
            return array.reshape(1)
        return array if array.shape == self.shape else None

    def _gentle(self, row: Array, square: float, target: float) -> bool:
        if math.isfinite(self.cap) or not square >= LEAST_SQUARE:
            return not row.any()
        norm = math.sqrt(square)
        return norm * (norm * self.reach + abs(target)) <= self.limit

    def take(self) -> list[Any]:
        """Return the rounds in normal form, in parts, and be empty; they are valid until the next `push`."""
        count, self.count = self.count, 0
        if not count:
            return []
        if isinstance(self.loss, Linear):
            return [self.loss.assemble(self.domain, self.features[:count])]
        assert isinstance(self.loss, GeneralisedLinear)
        return [self.loss.assemble(self.domain, self.features[:count], self.targets[:count])]

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the arrays: a learner empties its inbox before it is pickled."""
        return {name: value for name, value in vars(self).items() if name not in ("features", "targets")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the arrays again."""
        vars(self).update(state)
        self._make_room()
