"""What is composed, and how: sums of products of releases, by losses or Renyi divergences (docs/theory, Q4, Q9).

Given the coins, what is left of the composition is one normal law against another, whose hockey stick is known. So

    delta(epsilon) = E h(epsilon - L),

L the sum of the losses of the coins under P and h the hockey stick of the draws: no grid for the Gaussian, and no
rounding of a coin's loss before they are composed. Errors are upwards (neighbouring points of a long walk are merged,
tails of 1e-40 added to delta, long sums tabulated: see `_Tabled`) but for those of floating point, some 1e-10 of delta.
dp_accounting composes on a grid, with losses rounded to it and Fourier transforms exact to 1e-15 of the whole;
`distribution` makes that, and the tests compare the two.

Divergences of each order add up over what is composed. The epsilon of a delta follows from every order; the best of a
fine ladder of orders counts. Nothing here is shared with the composition of losses but the pairs themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reticent._core._check import Array
from reticent.privacy._coins import Coin, many_coins
from reticent.privacy._losses import Losses, hockey_stick


@dataclass(frozen=True)
class Term:
    """A `mu`-GDP release, `count` symmetric coins, and the losses of whatever else there is, all composed."""

    mu: float
    coin: Coin
    count: int
    other: Losses


@dataclass(frozen=True)
class Bound:
    """A bound on delta: the worst alternative, each a sum of terms, plus (1 + exp(epsilon)) times a failure."""

    alternatives: tuple[tuple[Term, ...], ...]
    failure: float = 0.0


# The accountant: privacy losses composed exactly, coins on their own grid and draws in closed form.

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
    coins = many_coins(term.coin, term.count)
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


# The accountant by Renyi divergences: a second way to the same certificate, a little looser (docs/theory, Q9).

# Orders minus 1: a part in fifty apart, so that the best of them loses less than 1e-4 of epsilon.
_ORDERS = np.exp(np.arange(math.log(1e-3), math.log(1e7), 0.02))


class Renyi:
    """The delta of one bound by Renyi divergences."""

    def __init__(self, bound: Bound) -> None:
        self.bound = bound
        self._terms = [[_moments(term) for term in terms] for terms in bound.alternatives]

    def delta(self, epsilon: float) -> float:
        """Return the worst alternative at `epsilon`, without the failure of the bound."""
        return max(sum(_delta(log_moment, most, epsilon) for log_moment, most in terms) for terms in self._terms)


def _delta(log_moment: Array, most: float, epsilon: float) -> float:
    """Return the best delta: E exp((order-1) loss) bounds E (1 - exp(epsilon - loss))+ times a constant of the order.

    The constant is the largest (1 - 1/x) x^-(order-1) over x >= 1 (Canonne, Kamath and Steinke 2020). `most` is the
    mass where the loss is infinite, which no order sees.
    """
    t = _ORDERS
    log_delta = log_moment - t * epsilon + t * np.log1p(-1 / (1 + t)) - np.log1p(t)
    return min(1.0, most + float(np.exp(np.minimum(log_delta.min(), 0.0))))


def _moments(term: Term) -> tuple[Array, float]:
    """Return log E_P exp((order - 1) loss) over the finite losses, and the mass of the infinite ones."""
    t = _ORDERS
    with np.errstate(over="ignore"):
        total = t * (t + 1) * term.mu**2 / 2 + _discrete(term.other, t)
    infinite = term.other.infinite
    if term.count and not term.coin.silent:
        if math.isinf(term.coin.step):
            escape = -math.expm1(term.count * math.log1p(-term.coin.high))
            infinite = infinite + float(term.other.mass.sum()) * escape
        else:
            total = total + term.count * _symmetric(term.coin, t)
    return total, infinite


def _symmetric(coin: Coin, t: Array) -> Array:
    """Return the logarithm of c + high exp(t r) + low exp(-t r), without cancellation and without overflow."""
    x = t * coin.step
    small = np.minimum(x, 30.0)
    near = np.log1p(coin.gap * np.sinh(small) + 2 * (coin.low + coin.high) * np.sinh(small / 2) ** 2)
    rest = max(1 - coin.low - coin.high, 0.0)
    far = x + np.log(coin.high + rest * np.exp(-x) + coin.low * np.exp(-2 * x))
    value: Array = np.where(x < 30.0, near, far)
    return value


def _discrete(losses: Losses, t: Array) -> Array:
    if losses.value.size == 1 and losses.value[0] == 0:
        return np.full(t.size, math.log(losses.mass[0]))
    exponents = np.outer(t, losses.value) + np.log(losses.mass)
    top = exponents.max(axis=1)
    value: Array = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
    return value
