"""Normal variables rounded to whole numbers, exactly: from random bits by comparisons alone (docs/theory, R8d)."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]
Flags = NDArray[np.bool_]

WORD = 62
"""Random bits that a uniform variable starts with; more are drawn when a comparison asks for them."""

_CLOSE = 2.0**-30  # what differs by less is compared exactly; in floating point both sides are right to 2^-45
_SPARE = 2.4  # trials for each variable, of which one in two is accepted, so that few calls need a second go


def rounded_normals(rng: np.random.Generator, count: int, shift: int, word: int = WORD) -> NDArray[np.int64]:
    """Return the whole numbers nearest to 2^shift times `count` independent standard normal variables, exactly in law.

    A trial is a place x = k + u, k with chance 2^-(k+1) and u uniform, and a uniform height v; it is accepted if
    v < (4/5) 2^k exp(-x^2/2). What is accepted, with a fair sign, is normal. `word` is for tests.

    >>> found = rounded_normals(np.random.default_rng(1), 1000, 30)
    >>> found.dtype, bool(0.9 < np.std(found) / 2**30 < 1.1)
    (dtype('int64'), True)
    """
    parts: list[Words] = []
    missing = count
    while missing > 0:
        sizes = _accepted(rng, _trials(missing), shift, word)
        parts.append(sizes[:missing])
        missing -= len(sizes)
    found = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    return np.where(rng.integers(0, 2, size=count) == 1, -found, found)


class Generators(Protocol):
    """Generators of several learners, one at a time: what `use` returned goes on from there once `keep` was called."""

    def use(self, i: int) -> np.random.Generator:
        """Return number i."""

    def keep(self, i: int) -> None:
        """Note where number i stands now."""


def rounded_normals_each(rngs: Generators, many: int, count: int, shift: int) -> Words:
    """Return what `rounded_normals` would for each of several generators, which are left as it would leave them.

    Numbers are drawn one generator after the other, as they are there, and looked at together; a generator with a draw
    out of the ordinary (digits that do not decide, too few trials accepted) is asked again, by itself.
    """
    trials = _trials(count)
    raw, signs = np.empty((3, many, trials), dtype=np.int64), np.empty((many, count), dtype=np.int64)
    if shift >= WORD:
        return np.array([_alone(rngs, i, count, shift) for i in range(many)]).reshape(many, count)
    for i in range(many):
        rng = rngs.use(i)
        raw[:, i] = rng.integers(0, 1 << WORD, size=3 * trials).reshape(3, trials)
        signs[i] = rng.integers(0, 2, size=count)
        rngs.keep(i)
    bits, part, height = raw
    whole = _zeros(bits, WORD)
    taken, close, digits = _judged(whole, part, height, shift, WORD)
    ranks = np.cumsum(taken, axis=1)
    odd = (bits == 0).any(axis=1) | close.any(axis=1) | (ranks[:, -1] < count)
    taken &= ranks <= count
    taken[odd] = np.arange(trials) < count  # something, in the right number, to be replaced
    found = _rounded(whole[taken], digits[taken], shift).reshape(many, count)
    found = np.where(signs == 1, -found, found)
    for i in np.flatnonzero(odd).tolist():
        found[i] = _alone(rngs, i, count, shift)
    return found


def _alone(rngs: Generators, i: int, count: int, shift: int) -> Words:
    found = rounded_normals(rngs.use(i), count, shift)
    rngs.keep(i)
    return found


def _trials(missing: int) -> int:
    return int(_SPARE * missing) + 16


def _accepted(rng: np.random.Generator, trials: int, shift: int, word: int) -> Words:
    """Return the rounded sizes of the trials that are accepted."""
    whole = _runs(rng, trials, word)
    part, height = rng.integers(0, 1 << word, size=(2, trials))
    taken, close, digits = _judged(whole, part, height, shift, word)
    for i in np.flatnonzero(close) if word > shift else range(trials):
        taken[i], digits[i] = _looked_at(rng, int(whole[i]), int(part[i]), int(height[i]), shift, word)
    return _rounded(whole[taken], digits[taken], shift)


def _judged(whole: Words, part: Words, height: Words, shift: int, word: int) -> tuple[Flags, Flags, Words]:
    """Say which trials are accepted, where floating point cannot tell, and the digits of the fractions of places."""
    place = whole + np.ldexp(part.astype(np.float64), -word)
    with np.errstate(under="ignore"):
        limit = np.ldexp(0.8 * np.exp(-0.5 * place * place), whole)
    room = limit - np.ldexp(height.astype(np.float64), -word)
    close: Flags = np.abs(room) <= max(_CLOSE, 2.0 ** (4 - word))
    return room > 0, close, part >> (word - shift - 1) if word > shift else part


def _rounded(whole: Words, digits: Words, shift: int) -> Words:
    # 2^(shift + 1) times the place, rounded down. Grids have a shift of 55 at most; a place of 2^7, of no chance
    # (exp(-8192)), would not fit.
    doubled: Words = (whole << (shift + 1)) + digits
    return (doubled + 1) >> 1


def _runs(rng: np.random.Generator, count: int, word: int) -> Words:
    """Return how many bits are 0 before the first 1, in a fair sequence of bits each."""
    found = np.zeros(count, dtype=np.int64)
    going = np.arange(count)
    while going.size:
        bits = rng.integers(0, 1 << word, size=going.size)
        found[going] += _zeros(bits, word)
        going = going[bits == 0]
    return found


def _zeros(bits: Words, word: int) -> Words:
    """Return how many of the last bits are 0, `word` if all are."""
    return np.where(bits == 0, word, np.bitwise_count((bits & -bits) - 1)).astype(np.int64)


def _looked_at(rng: np.random.Generator, whole: int, part: int, height: int, shift: int, word: int) -> tuple[bool, int]:
    """Say whether a trial is accepted, and the first `shift` + 1 binary digits of the fraction of its place.

    Digits of place and height are drawn until both are known; exp of decimal is right to its last digit.
    """
    bits = word
    while True:
        one = 1 << bits
        with localcontext() as context:
            context.prec = 40 + bits
            unit, slack = Decimal(one), Decimal(10) ** -(30 + bits)
            least, most = ((whole * one + part + i) / unit for i in (1, 0))
            low, high = (Decimal("0.8") * 2**whole * (-x * x / 2).exp() for x in (least, most))
            above, below = (height + 1) / unit <= low * (1 - slack), height / unit >= high * (1 + slack)
        if (above or below) and bits > shift:
            return above, part >> (bits - shift - 1)
        more = rng.integers(0, 1 << word, size=2).tolist()
        part, height, bits = (part << word) | more[0], (height << word) | more[1], bits + word
