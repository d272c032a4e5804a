"""Coins of chance exp(-x) and two-sided geometric noise, exact in law: from random bits (docs/theory, R11d)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent._core._bits import Bits, Uniform, exponential

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_SURE = 2.0**-40
"""How far a uniform variable must be from a chance for floating point to decide; exp errs by less than 2^-46 there."""


def coins(rng: np.random.Generator, sizes: Integers, rate: Fraction, *, sure: float = _SURE) -> Flags:
    """Return independent coins: number i shows True with chance exp(-sizes[i] rate), exactly.

    Coin i is whether a uniform variable U is below that chance. Floating point decides where U is not close to it;
    elsewhere further digits of U are compared with bounds of the chance in whole numbers.

    >>> coins(np.random.default_rng(0), np.array([0, 10**9, 0]), Fraction(1, 2)).tolist()
    [True, False, True]
    """
    words = rng.integers(0, 1 << 62, size=sizes.size)
    chances = np.exp(-float(rate) * sizes)
    gaps = chances - words * 2.0**-62
    found: Flags = gaps > 0
    for i in np.flatnonzero(np.abs(gaps) <= sure).tolist():
        found[i] = _below(int(words[i]), rate * int(sizes[i]), Bits(rng, expected=1))
    return found


def _below(word: int, x: Fraction, source: Bits) -> bool:
    """Say whether the uniform variable that begins with the 62 digits of `word` is below exp(-x)."""
    if not x:
        return True
    u = Uniform.__new__(Uniform)
    u.value, u.bits = word, 62
    while True:
        low, high = bounds(x, u.bits)
        if u.value + 1 <= low:
            return True
        if u.value >= high:
            return False
        u.extend(source, u.bits + source.word)


def bounds(x: Fraction, digits: int) -> tuple[int, int]:
    """Return whole numbers around 2^digits exp(-x), x at least 0, that differ by 2 at most.

    The series of exp(-y), y = x/2^halvings at most 1, alternates and falls: two partial sums enclose it. Squares,
    rounded outwards, lead back to x, and lose one digit each at most.

    >>> bounds(Fraction(1), 20), int(2**20 * np.exp(-1.0))
    ((385749, 385750), 385749)
    """
    halvings = max(0, (-(-x.numerator // x.denominator)).bit_length())
    places = digits + 2 * halvings + 8
    y, one = x / 2**halvings, 1 << places
    total, term, count = Fraction(1), Fraction(1), 0
    while term > Fraction(1, one):
        count += 1
        term = term * y / count
        total += -term if count % 2 else term
    near = total * one
    low, high = max(0, (near - 1).__floor__()), (near + 1).__ceil__()
    for _ in range(halvings):
        low, high = (low * low) >> places, -((-high * high) >> places)
    cut = places - digits
    return low >> cut, -((-high) >> cut)


def two_sided_geometric(source: Bits, rate: Fraction) -> int:
    """Return a whole number k with a chance in proportion to exp(-rate |k|), exactly.

    An exponential variable over `rate`, rounded down, is geometric; a fair sign, with one of the two zeros refused,
    makes it two-sided.

    >>> found = [two_sided_geometric(Bits(np.random.default_rng(seed)), Fraction(1, 8)) for seed in range(400)]
    >>> bool(9 < np.std(found) < 14)
    True
    """
    while True:
        size = _over(exponential(source), rate, source)
        negative = source.next() & 1
        if size or not negative:
            return -size if negative else size


def _over(variable: tuple[int, Uniform], rate: Fraction, source: Bits) -> int:
    """Return variable/rate, rounded down; digits are drawn until that is known."""
    whole, part = variable
    while True:
        low = (whole << part.bits) + part.value
        scale = rate.numerator << part.bits
        first, last = low * rate.denominator // scale, ((low + 1) * rate.denominator - 1) // scale
        if first == last:
            return first
        part.extend(source, part.bits + source.word)
