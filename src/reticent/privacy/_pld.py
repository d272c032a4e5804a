"""The accountant: privacy losses composed exactly, coins on their own grid and draws in closed form.

Given the coins, what is left of the composition is one normal law against another, whose hockey stick is known. So

    delta(epsilon) = E h(epsilon - L),

L the sum of the losses of the coins under P and h the hockey stick of the draws: no grid for the Gaussian, and no
rounding of a coin's loss before they are composed. Errors are upwards (neighbouring points of a long walk are merged,
tails of 1e-40 added to delta) but for those of floating point, some 1e-10 of delta. dp_accounting composes on a grid,
with losses rounded to it and Fourier transforms exact to 1e-15 of the whole; `distribution` makes that, and the tests
compare the two.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from reticent.privacy._losses import Losses
from reticent.privacy._terms import Bound, Term
from reticent.privacy._walk import walk

# Points beyond which products of losses are put on a grid, and that grid's points per standard deviation of all.
_MANY, _PER_DEVIATION = 8192, 100


class Composed:
    """The delta of one bound by composition of its privacy losses."""

    def __init__(self, bound: Bound) -> None:
        self.bound = bound

    @cached_property
    def _losses(self) -> list[list[tuple[float, Losses]]]:
        return [[(term.mu, _product(term)) for term in terms] for terms in self.bound.alternatives]

    @property
    def points(self) -> int:
        """The number of points at which a normal hockey stick is evaluated for one delta: the cost of it."""
        return sum(losses.value.size for terms in self._losses for _, losses in terms)

    def delta(self, epsilon: float) -> float:
        """Return the worst alternative at `epsilon`, without the failure of the bound."""
        return max(sum(losses.delta(mu, epsilon) for mu, losses in terms) for terms in self._losses)


def _product(term: Term) -> Losses:
    coins = walk(term.coin, term.count)
    if coins.value.size * term.other.value.size <= _MANY:
        return coins.times(term.other)
    spread = float(np.linalg.norm([coins.spread(), term.other.spread(), term.mu]))
    return coins.times_on_grid(term.other, spread / _PER_DEVIATION)
