"""The coins: the pairs that dominate one after the changed batch, and the one in it (docs/theory.md, Q2 and Q3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reticent.privacy._losses import Losses


@dataclass(frozen=True)
class Coin:
    """A coin that switches with probability `p` at least, its chance of keeping known up to a factor exp(+-eta).

    Every such coin is a post-processing of one that switches with probability p in one world and
    p' = 1 - (1-p) exp(-eta) in the other, in one of the two directions.

    >>> coin = Coin(0.2, 0.1)
    >>> round(coin.high, 6), round(coin.step, 6)
    (0.27613, 0.322555)
    """

    p: float
    eta: float

    @property
    def silent(self) -> bool:
        """Whether the coin says the same in both worlds."""
        return self.gap == 0.0

    @cached_property
    def gap(self) -> float:
        """The difference p' - p, without cancellation."""
        return -(1 - self.p) * math.expm1(-self.eta)

    @cached_property
    def _folded(self) -> bool:
        return 2 * self.p + self.gap > 1

    @cached_property
    def low(self) -> float:
        """The smaller of the two chances in the symmetric pair: p, or 1 - p' where p + p' > 1."""
        return (1 - self.p) * math.exp(-self.eta) if self._folded else self.p

    @cached_property
    def high(self) -> float:
        """The larger of the two chances in the symmetric pair: p', or 1 - p where p + p' > 1."""
        return 1 - self.p if self._folded else self.p + self.gap

    @cached_property
    def step(self) -> float:
        """The privacy loss r = log(high / low) of the symmetric pair, whose losses are -r, 0 and r."""
        if self.silent:
            return 0.0
        if self._folded:
            return self.eta
        return math.inf if self.p == 0 else math.log1p(self.gap / self.p)

    def directions(self) -> tuple[Losses, Losses]:
        """Return the losses of one coin whose direction is known: the first world switches more often, or less.

        A coin that comes before everything else needs no symmetric pair: the worse of the two directions will do.
        """
        p, keep = self.p, (1 - self.p) * math.exp(-self.eta)
        rise = math.inf if p == 0 else math.log1p(self.gap / p)
        more = Losses.of([-self.eta, rise], [keep, p + self.gap])
        less = Losses.of([-rise, self.eta], [p, 1 - p])
        return more, less


NO_LOSS = Losses(np.zeros(1), np.ones(1), 0.0)
"""What reveals nothing: the loss 0 with probability 1."""
