"""Uniform and exponential variables whose binary digits are drawn as comparisons ask for them: exact in law."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

WORD = 62
"""Random bits that a uniform variable starts with; more are drawn when a comparison asks for them."""

_AT_ONCE = 256  # words that are asked of the generator together, at most


class Bits:
    """A supply of random words of `word` bits each.

    >>> bits = Bits(np.random.default_rng(0), word=3)
    >>> all(0 <= bits.next() < 8 for _ in range(100))
    True
    """

    def __init__(self, rng: np.random.Generator, word: int = WORD, expected: int = _AT_ONCE) -> None:
        """Draw from `rng`; about `expected` words will be needed."""
        self.rng, self.word = rng, word
        self._size = max(1, min(expected, _AT_ONCE))
        self._words: Iterator[int] = iter(())

    def next(self) -> int:
        """Return a word: a whole number from 0 on, below 2^word, all equally likely."""
        for found in self._words:
            return found
        self._words = iter(self.rng.integers(0, 1 << self.word, size=self._size).tolist())
        return next(self._words)


class Uniform:
    """A uniform variable on [0, 1), of which the first `bits` binary digits are known: those of `value`."""

    __slots__ = ("bits", "value")

    def __init__(self, source: Bits) -> None:
        self.value, self.bits = source.next(), source.word

    def extend(self, source: Bits, bits: int) -> None:
        """Learn the digits up to number `bits` at least."""
        while self.bits < bits:
            self.value = (self.value << source.word) | source.next()
            self.bits += source.word


def below(a: Uniform, b: Uniform, source: Bits) -> bool:
    """Say whether a < b; digits are drawn until that is known."""
    if a.bits == b.bits and a.value != b.value:
        return a.value < b.value
    digits = max(a.bits, b.bits)
    while True:
        a.extend(source, digits)
        b.extend(source, digits)
        if a.value != b.value:
            return a.value < b.value
        digits += source.word


def exponential(source: Bits) -> tuple[int, Uniform]:
    """Return an exponential variable as its whole part and its fraction (von Neumann 1951).

    A falling run U_1 > U_2 > ... of uniform variables from U_1 = x on has an odd length with chance exp(-x): then x is
    the fraction. Each run of even length, of chance exp(-1), adds 1 to the whole part.
    """
    whole = 0
    while True:
        first = last = Uniform(source)
        odd = True
        while below(following := Uniform(source), last, source):
            last, odd = following, not odd
        if odd:
            return whole, first
        whole += 1
