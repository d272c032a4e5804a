"""The accountant: privacy losses composed exactly, coins on their own grid and draws in closed form.

Given the coins, what is left of the composition is one normal law against another, whose hockey stick is known. So

    delta(epsilon) = E h(epsilon - L),

L the sum of the losses of the coins under P and h the hockey stick of the draws: no grid for the Gaussian, and no
rounding of a coin's loss before they are composed. Errors are upwards (neighbouring points of a long walk are merged,
tails of 1e-40 added to delta, long sums tabulated: see `_Tabled`) but for those of floating point, some 1e-10 of delta.
dp_accounting composes on a grid, with losses rounded to it and Fourier transforms exact to 1e-15 of the whole;
`distribution` makes that, and the tests compare the two.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from reticent._check import Array
from reticent.privacy._gauss import hockey_stick
from reticent.privacy._losses import Losses
from reticent.privacy._terms import Bound, Term
from reticent.privacy._walk import walk

# Points beyond which the hockey stick of coins and draws is tabulated, and that table's nodes per standard deviation.
_MANY, _PER_DEVIATION = 8192, 100
# Nodes that a table has at most (more or less), and how many deviations of the draws it covers: beyond are 1e-40.
_NODES, _REACH = 1 << 17, 14.0


class Composed:
    """The delta of one bound by composition of its privacy losses."""

    def __init__(self, bound: Bound) -> None:
        self.bound = bound

    @cached_property
    def _products(self) -> list[list[_Plain | _Tabled]]:
        return [[_product(term) for term in terms] for terms in self.bound.alternatives]

    @property
    def points(self) -> int:
        """The number of points at which a hockey stick is evaluated for one delta: the cost of it."""
        return sum(product.points for products in self._products for product in products)

    def delta(self, epsilon: float) -> float:
        """Return the worst alternative at `epsilon`, without the failure of the bound."""
        return max(sum(product.delta(epsilon) for product in products) for products in self._products)


def _product(term: Term) -> _Plain | _Tabled:
    coins = walk(term.coin, term.count)
    if coins.value.size * term.other.value.size <= _MANY:
        return _Plain(term.mu, coins.times(term.other))
    return _Tabled(term.mu, coins, term.other)


class _Plain:
    """All pairs of a loss of the coins and one of the rest, each with the draws' hockey stick: nothing is rounded."""

    def __init__(self, mu: float, losses: Losses) -> None:
        self.mu, self.losses, self.points = mu, losses, int(losses.value.size)

    def delta(self, epsilon: float) -> float:
        return self.losses.delta(self.mu, epsilon)


class _Tabled:
    """The hockey stick of coins and draws as a table, and its mean over the losses of the rest, which are left exact.

    Convex in exp(epsilon), it is replaced by its chords between the nodes, a chord from the total mass at
    exp(epsilon) = 0 to the first node, and beyond the last by its value there: never smaller. The coins lie on the
    same grid as the nodes (`Losses.on_grid`: chords, too), so draws are evaluated once for each difference.
    """

    def __init__(self, mu: float, coins: Losses, other: Losses) -> None:
        self.other, self.points = other, int(other.value.size)
        self.total = float(coins.mass.sum()) + coins.infinite
        spread = float(np.hypot(coins.spread(), mu))
        width = float(np.ptp(coins.value)) + 2 * _REACH * mu
        self.step = step = max(spread / _PER_DEVIATION, width / _NODES)
        placed = coins.on_grid(step)
        place = np.rint(placed.value / step).astype(np.int64)
        # The draws' own loss is normal under P, with mean mu^2/2 and deviation mu.
        low, high = (int(np.floor(mu * (mu / 2 + side * _REACH) / step)) + side for side in (-1, 1))
        self.first, last = int(place[0]) + low, int(place[-1]) + high
        size = last - self.first + 1
        draws = hockey_stick(mu, np.arange(self.first - place[-1], last - place[0] + 1) * step)
        self.value: Array = np.full(size, coins.infinite)
        for mass, start in zip(placed.mass, place[-1] - place, strict=True):
            self.value += mass * draws[start : start + size]

    def delta(self, epsilon: float) -> float:
        """Return the hockey stick at `epsilon` of everything together."""
        at = (epsilon - self.other.value) / self.step - self.first
        node = np.clip(np.floor(at), 0, self.value.size - 2).astype(np.int64)
        far = np.clip(at - node, 0.0, 1.0) * self.step
        share = np.exp(far - self.step) * (np.expm1(-far) / np.expm1(-self.step))
        value = (1 - share) * self.value[node] + share * self.value[node + 1]
        left = np.exp(np.minimum(at, 0.0) * self.step)
        value = (1 - left) * self.total + left * value
        return self.total * self.other.infinite + float(self.other.mass @ value)
