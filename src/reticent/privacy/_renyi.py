"""The accountant by Renyi divergences: a second way to the same certificate, a little looser (docs/theory.md, Q9).

Divergences of each order add up over what is composed. The epsilon of a delta follows from every order; the best of a
fine ladder of orders counts. Nothing here is shared with the composition of losses but the pairs themselves.
"""

from __future__ import annotations

import math

import numpy as np

from reticent._check import Array
from reticent.privacy._coin import Coin
from reticent.privacy._losses import Losses
from reticent.privacy._terms import Bound, Term

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
