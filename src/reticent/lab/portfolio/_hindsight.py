"""The best constant rebalanced portfolio in hindsight, with a certificate of how far from best it can be."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from reticent._check import Array, positive
from reticent.lab.portfolio._wealth import checked_relatives

_STEPS = 60  # of Newton's method per barrier: it needs about ten


@dataclass(frozen=True, eq=False)
class Constant:
    """A portfolio to go back to every day; no other constant one has a log of final wealth above `log_wealth + gap`."""

    portfolio: Array = field(repr=False)
    log_wealth: float
    gap: float

    @property
    def wealth(self) -> float:
        """The final wealth, without costs."""
        return math.exp(self.log_wealth)


def best_constant(relatives: ArrayLike, gap: float = 1e-6) -> Constant:
    """Return the constant portfolio whose wealth, rebalanced daily and without costs, is highest, to a certified gap.

    The log of the final wealth is concave with slopes g at x, and `g @ x` is the number of days: so no portfolio is
    better by more than `max(g)` minus that number.

    >>> best = best_constant([[2.0, 0.5], [0.5, 2.0]])
    >>> best.portfolio.round(6), round(best.wealth, 6), best.gap <= 1e-6
    (array([0.5, 0.5]), 1.5625, True)
    """
    moves = checked_relatives(relatives)
    wanted = positive("gap", gap)
    days, assets = moves.shape
    # Scaled day by day: the best portfolio stays, and no day's numbers are out of proportion.
    scaled = moves / moves.max(axis=1, keepdims=True)
    x = np.full(assets, 1 / assets)
    # Of `_slopes`: products over the assets, and a pairwise sum over the days whose depth is below 40.
    rounding = sys.float_info.epsilon * days * (assets + 40)
    barrier = float(days)
    while True:
        x = _centred(scaled, x, barrier)
        off = max(float(_slopes(scaled, x).max()) - days, 0.0) + rounding
        if off <= wanted:
            return Constant(x, float(np.log(moves @ x).sum()), off)
        if barrier < 1e-3 * wanted / assets:
            raise ValueError(
                f"gap must leave room for rounding, got {gap!r}; {off:.2g} is as close as {days} days of these "
                "relatives can be solved"
            )
        barrier *= 0.2


def _slopes(moves: Array, x: Array) -> Array:
    """Return how fast the log of the final wealth rises with each entry of the portfolio."""
    # Days along the last axis: there numpy adds in pairs, which keeps rounding small.
    slopes: Array = np.ascontiguousarray((moves / np.einsum("ti,i->t", moves, x)[:, None]).T).sum(axis=1)
    return slopes


def _centred(moves: Array, x: Array, barrier: float) -> Array:
    """Return the portfolio that maximises the log of wealth plus `barrier` times the sum of the logs of its entries."""
    assets = len(x)
    for _ in range(_STEPS):
        # Not with BLAS: beside other busy processes its threads take 40 times as long for products of this size.
        parts = moves / np.einsum("ti,i->t", moves, x)[:, None]
        slope = parts.sum(axis=0) + barrier / x
        curvature = np.einsum("ti,tj->ij", parts, parts) + np.diag(barrier / x**2)
        # In units of x, so that entries close to 0 do not spoil the solution; the last row keeps the sum at 1.
        system = np.zeros((assets + 1, assets + 1))
        system[:assets, :assets] = curvature * np.outer(x, x)
        system[assets, :assets] = system[:assets, assets] = x
        step = x * np.linalg.solve(system, np.append(x * slope, 0.0))[:assets]
        decrement = math.sqrt(max(float(step @ curvature @ step), 0.0))
        # The sum is self-concordant with this constant: damped steps stay inside and ascend, short ones need no
        # damping.
        scale = max(1.0, 1 / math.sqrt(barrier))
        x = x + step / (1 + scale * decrement) if scale * decrement > 0.25 else x + step
        x = x / x.sum()
        if scale * decrement < 1e-3:  # the certificate does not ask for more
            break
    return x
