"""Sums in twice the precision: what one round moves must not depend on how large they are (docs/theory, Q12)."""

from __future__ import annotations

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
