"""What a change costs: followers in the background pay constant prices, and show how many changes each leads to."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved

_LOWEST, _ENDLESS = -12, 10  # doublings of G R: the lowest price, and the highest one without a horizon


@saved("prices of the budgeted follower")
class Prices:
    """Followers that change once the loss that this would have saved exceeds a price, each another one.

    What a change would have saved is the largest sum, up to now, of what the decision lost more than the learner in the
    background; it starts anew with every change.
    """

    _moves: ClassVar[tuple[str, ...]] = ("points", "saved", "changes")

    def __init__(self, scale: float, gap: float | None, dim: int) -> None:
        """Take the loss of a round by the worst decision, G R, and the mean number of rounds between changes."""
        top = _ENDLESS if gap is None else max(0, math.ceil(math.log2(gap)))
        self.prices: Array = scale * np.ldexp(1.0, np.arange(top, _LOWEST - 1, -1))
        self.points: Array = np.zeros((self.prices.size, dim))
        self.saved: Array = np.zeros(self.prices.size)
        self.changes: Array = np.zeros(self.prices.size)

    def learn(self, losses: Array, ahead: float, point: Array) -> None:
        """Take in what the followers lost in a block and the background's loss; who can pay goes to its new point."""
        self.saved = np.maximum(self.saved + (losses - ahead), 0.0)
        going = self.saved > self.prices
        self.points[going] = point
        self.saved[going] = 0.0
        self.changes[going] += 1

    def price(self, left: int, done: int, ahead: int) -> float:
        """Return the price at which `left` changes last for the rounds `ahead`, if these are as the `done` were.

        Between two prices of the followers it goes by their changes; above all of them it is infinite.
        """
        allowed = left * done / max(1, ahead)
        over = np.flatnonzero(self.changes > allowed)
        if not over.size:
            return float(self.prices[-1])
        first = int(over[0])
        if first == 0:
            return math.inf
        few, many = float(self.changes[first - 1]), float(self.changes[first])
        share = (allowed - few) / (many - few)
        return float(self.prices[first - 1] ** (1 - share) * self.prices[first] ** share)
