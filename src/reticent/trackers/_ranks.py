"""The rank mechanism: a quantile of a window on public cells, by exact coins (docs/theory, R11)."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from reticent._core._check import Array, integer
from reticent._core._tags import saved
from reticent.trackers._exact import Integers, coins

CELLS = 1000
"""Cells between the bounds unless given: the released number is the middle of one, a part in 2,000 from its ends."""
_MOST = 1 << 20
_FINEST = 10**6  # parts that a level is taken in: ranks are compared in whole numbers


@saved("cells")
class Cells:
    """The interval from `low` to `high` in `count` equal cells, all public.

    >>> cells = Cells(0.0, 10.0, 5)
    >>> cells.counts(np.array([0.0, 1.9, 2.0, 10.0, np.nan])), cells.middle(1)
    (array([2, 1, 0, 0, 1]), 3.0)
    """

    def __init__(self, low: float, high: float, count: int = CELLS) -> None:
        """Take the bounds, and how many cells."""
        self.low, self.high, self.count = low, high, integer("cells", count, least=2)
        if self.count > _MOST:
            raise ValueError(
                f"cells must be at most {_MOST}, got {count!r}; a thousand is fine enough for most numbers"
            )

    def counts(self, values: Array) -> Integers:
        """Return how many values lie in each cell; one that is missing lies in none."""
        found = self.places(values[values == values])
        return np.bincount(found, minlength=self.count).astype(np.int64)

    def places(self, values: Array) -> Integers:
        """Return the cell of each value, none of which is missing: it depends on that value alone."""
        shares = (values - self.low) / (self.high - self.low)
        return np.clip((shares * self.count).astype(np.int64), 0, self.count - 1)

    def middle(self, cell: int) -> float:
        """Return the middle of a cell: a number that depends on that cell only."""
        share = (2 * cell + 1) / (2 * self.count)
        return self.low * (1 - share) + self.high * share


@lru_cache(maxsize=256)
def level_of(level: float) -> Fraction:
    """Return a level as a fraction of whole numbers up to a million: 0.95 is 19/20.

    >>> level_of(0.95)
    Fraction(19, 20)
    """
    found = Fraction(level).limit_denominator(_FINEST)
    if not 0 < found < 1:
        raise ValueError(
            f"level must lie strictly between 0 and 1, by a millionth at least, got {level!r}; 0.5 gives the median"
        )
    return found


def sensitivity(level: Fraction, neighbors: str) -> Fraction:
    """Return how far one changed value can move a cell's distance from the level, in ranks (docs/theory, R11a)."""
    return Fraction(1) if neighbors == "replace" else max(level, 1 - level)


def distances(counts: Integers, level: Fraction) -> Integers:
    """Return how far each cell is from holding the quantile, in ranks times the denominator of the level.

    With L values below the cell, R below its end and n in all it is the largest of 0, L - level n and level n - R.

    >>> distances(np.array([1, 0, 2, 1]), Fraction(1, 2))
    array([2, 2, 0, 2])
    """
    below = np.cumsum(counts)
    share, whole = level.numerator, level.denominator
    aim = share * int(below[-1])
    found: Integers = np.maximum(np.maximum(whole * (below - counts) - aim, aim - whole * below), 0)
    return found


def drawn_cell(
    counts: Integers, level: Fraction, epsilon: Fraction, rng: np.random.Generator, neighbors: str = "replace"
) -> int:
    """Return a cell near the quantile of the counted values: epsilon-private in each of them, exactly.

    Every cell tosses a coin of chance exp(-epsilon distance/(2 sensitivity)); one of those that show heads is taken,
    all alike. This is permute-and-flip (McKenna and Sheldon 2020), never worse than the exponential mechanism.

    >>> drawn_cell(np.array([0, 0, 500, 0]), Fraction(1, 2), Fraction(1), np.random.default_rng(0))
    2
    """
    rate = epsilon / (2 * sensitivity(level, neighbors) * level.denominator)
    heads = np.flatnonzero(coins(rng, distances(counts, level), rate))
    return int(heads[rng.integers(heads.size)])
