"""Sums in twice the precision: what one round moves must not depend on how large they are (docs/theory, Q12)."""

from __future__ import annotations

import math

from reticent._core._check import Array
from reticent._core._kernel import kernel


@kernel
def add_exactly(high: Array, low: Array, j: int, value: float) -> None:
    """Add a number to entry j of the sum high + low, where low is what rounding has left of high."""
    total = high[j] + value
    part = total - high[j]
    rest = (high[j] - (total - part)) + (value - part) + low[j]
    high[j] = total + rest
    low[j] = rest - (high[j] - total)


@kernel
def times_exactly(a: float, b: float) -> tuple[float, float]:
    """Return the product of two numbers, rounded, and what rounding has left of it (Dekker 1971)."""
    product = a * b
    wide = 134217729.0 * a
    first = wide - (wide - a)
    wide = 134217729.0 * b
    second = wide - (wide - b)
    rest = a - first, b - second
    left = ((first * second - product) + first * rest[1] + rest[0] * second) + rest[0] * rest[1]
    return product, (left if abs(left) < math.inf else 0.0)  # halves of numbers beyond 1e300 overflow


@kernel
def plus_exactly(high: float, low: float, value: float, rest: float) -> tuple[float, float]:
    """Return the sum of two numbers that are given in twice the precision, in the same form."""
    total = high + value
    part = total - high
    left = (high - (total - part)) + (value - part) + low + rest
    both = total + left
    return both, left - (both - total)
