"""Coins and what many of them reveal together: the pairs that dominate one, and the law of a sum (docs/theory, Q2, Q4).

The sum of n independent steps lies on the multiples of r: no loss is rounded before they are composed. The law of a
short walk is a product of convolutions, in which nothing is subtracted. That of a long one is read off the n-th power
of its characteristic function. That alone would leave an error of 1e-16 of the largest probability everywhere; under
the tilted law, with weights exp(t j), the probabilities around its mean have that accuracy. Tilts are chosen one after
the other, so that where one law gives way to the next both have sunk by a factor of exp(-4) and no more: a few cover
the whole right tail, on which a small delta depends. What lies beyond a chance of 1e-40 counts as an infinite loss on
the right, and is moved up to the last point on the left.

All errors go upwards (docs/theory, Q4e): a bound on the rounding of the transform is added to every probability before
the tilt is taken off, and what rounds relatively is multiplied by one plus a bound on that. A delta is a mean of right
tails of the walk, so it is never below the true one, and above it by a part of 1e-9 at most where tested.

A long walk has too many points. Then blocks of k neighbours are merged as `Losses.on_grid` does it, inside the
transform: its weights multiply the characteristic function, of which only the frequencies up to pi/k are needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from reticent._core._check import Array
from reticent.privacy._losses import Losses


@dataclass(frozen=True)
class Coin:
    """A coin that switches with probability `p` at least, its chance of keeping known up to a factor exp(+-eta).

    Every such coin is a post-processing of one that switches with probability p in one world and
    p' = 1 - (1-p) exp(-eta) in the other, in one of the two directions.

    >>> coin = Coin(0.2, 0.1)
    >>> round(coin.high, 6), round(coin.step, 6)
    (0.27613, 0.322555)
    """

    p: float
    eta: float

    @property
    def silent(self) -> bool:
        """Whether the coin says the same in both worlds."""
        return self.gap == 0.0

    @cached_property
    def gap(self) -> float:
        """The difference p' - p, without cancellation."""
        return -(1 - self.p) * math.expm1(-self.eta)

    @cached_property
    def _folded(self) -> bool:
        return 2 * self.p + self.gap > 1

    @cached_property
    def low(self) -> float:
        """The smaller of the two chances in the symmetric pair: p, or 1 - p' where p + p' > 1."""
        return (1 - self.p) * math.exp(-self.eta) if self._folded else self.p

    @cached_property
    def high(self) -> float:
        """The larger of the two chances in the symmetric pair: p', or 1 - p where p + p' > 1."""
        return 1 - self.p if self._folded else self.p + self.gap

    @cached_property
    def step(self) -> float:
        """The privacy loss r = log(high / low) of the symmetric pair, whose losses are -r, 0 and r."""
        if self.silent:
            return 0.0
        if self._folded:
            return self.eta
        return math.inf if self.p == 0 else math.log1p(self.gap / self.p)

    def directions(self) -> tuple[Losses, Losses]:
        """Return the losses of one coin whose direction is known: the first world switches more often, or less.

        A coin that comes before everything else needs no symmetric pair: the worse of the two directions will do.
        """
        p, keep = self.p, (1 - self.p) * math.exp(-self.eta)
        rise = math.inf if p == 0 else math.log1p(self.gap / p)
        more = Losses.of([-self.eta, rise], [keep, p + self.gap])
        less = Losses.of([-rise, self.eta], [p, 1 - p])
        return more, less


NO_LOSS = Losses(np.zeros(1), np.ones(1), 0.0)
"""What reveals nothing: the loss 0 with probability 1."""


# The losses of many coins: a walk with steps -r, 0 and r, its law by convolutions or by Fourier transforms under tilts.

# The logarithm of the probability that may be cut off on each side: far below any delta that is accepted.
_CUT = math.log(1e-40)
# Walks up to this length are convolved directly: as fast as the transforms, with a relative error below 20 n u.
_SHORT = 512
# By how much, as a logarithm, a tilted law may have sunk where the next one takes over: three tilts then cover the
# right tail of a normal law down to 1e-40, and the rounding of a transform is a part of 1e-11 of the smallest
# probability that is read off it.
_SUNK = 4.0
# Half the distance of neighbouring doubles at 1: the relative error of one operation.
_UNIT = 2.0**-53
# The constant of the error of a Fourier transform in the l2 norm, per level (Higham 2002, Theorem 24.2: about 7), and
# of the few operations behind one value of a characteristic function.
_ROUNDED = 8.0
# Points of the walk per standard deviation beyond which neighbours are merged: merging then inflates the variance
# by about 4e-5, and always upwards (docs/theory, Q4: chords of the hockey stick lie above it).
_PER_DEVIATION = 64
# Frequencies at which the characteristic function is below exp(-60) = 1e-26 cannot be seen in double precision.
_FADED = -60.0
# The largest tilt: its exponential is a number.
_STEEP = 700.0
# Up to so many coins the walk is short enough to be computed point by point where merging is not possible.
_LONG = 10**6


@lru_cache(maxsize=256)
def many_coins(coin: Coin, count: int) -> Losses:
    """Return the losses of `count` coins whose directions may alternate (docs/theory, Q2 and Q4).

    >>> losses = many_coins(Coin(0.25, 0.1), 3)
    >>> losses.value.size, round(float(losses.mass.sum()), 12)
    (7, 1.0)
    >>> many_coins(Coin(0.02, 1e-6), 10**9).value.size < 4000
    True
    """
    if count <= 0 or coin.silent:
        return NO_LOSS
    if math.isinf(coin.step):
        # p = 0: a switch in the one world is impossible in the other.
        none = count * math.log1p(-coin.high)
        return Losses(np.zeros(1), np.array([math.exp(none)]), -math.expm1(none))
    spread = math.sqrt(count * max(coin.low + coin.high - coin.gap**2, 0.0))
    block = max(int(spread / _PER_DEVIATION), 1)
    if block > 1 and not _fades(coin.low, coin.high, count, block):
        if count > _LONG:
            # p + p' is 1 up to 1e-4 or so: the walk keeps its parity. A coin with a smaller p reveals more (Q2).
            return many_coins(Coin(coin.p * (1 - 1e-4), coin.eta), count)
        first, mass, beyond = pmf(coin.low, coin.high, count)
        return Losses((first + np.arange(mass.size, dtype=np.float64)) * coin.step, mass, beyond).on_grid(
            block * coin.step
        )
    first, mass, beyond = pmf(coin.low, coin.high, count, block, coin.step)
    value = (first + np.arange(mass.size, dtype=np.float64)) * (block * coin.step)
    kept = mass > 0
    return Losses(value[kept], mass[kept], beyond)


def pmf(low: float, high: float, count: int, block: int = 1, step: float = 1.0) -> tuple[int, Array, float]:
    """Return the law of the sum of `count` steps: up with probability `high`, down with `low` (not more), else none.

    The first place, the probabilities from there on, and the probability beyond the last one: upper bounds all, and
    close ones (docs/theory, Q4e). With a `block` above 1 places are its multiples, and losses (`step`
    per unit) between them are shared out.
    """
    if count <= _SHORT and block == 1:
        return _convolved(low, high, count)
    walk = _Walk(low, high, count)
    right, _, beyond = _end(low, high, count)
    left, _, below = _end(high, low, count)
    first, last = -left // block - 1, right // block + 1
    places = np.arange(first, last + 1)
    # Twice the range: what a tilted law has beyond the right end must not come back on the left.
    size = 1 << (2 * places.size + 64).bit_length()
    mass = np.zeros(places.size)
    start = -math.inf
    for t, stop in _pieces(low, high, count):
        here = (places >= start) & (places < stop / block)
        start = stop / block
        if not here.any():
            continue
        law, shift = walk.tilted(t, first, size, block, step)
        exponent = shift - t * block * places[here]
        slip = _ROUNDED * _UNIT * (1 + abs(shift) + t * block * np.abs(places[here]))
        mass[here] = np.maximum(law[: places.size][here], 0.0) * np.exp(exponent + slip)
    mass[0] += below
    return first, mass, beyond


def _convolved(low: float, high: float, count: int) -> tuple[int, Array, float]:
    """Return the law of a short walk, as `pmf`: sums of products of positive numbers, so every error is relative.

    A sum of m products has a relative error of m u on top of theirs; squaring doubles what there was. From one step
    (2 u) to n of them that is at most n (log2 n + 9) u, below 20 n u. What is too small for a number is in `beyond`.
    """
    one = np.array([low, max(1 - low - high, 0.0), high])
    law = one
    for bit in bin(count)[3:]:
        law = np.convolve(law, law)
        if bit == "1":
            law = np.convolve(law, one)
    return -count, law * (1 + 20 * count * _UNIT), 1e-290


class _Walk:
    """The steps of a walk, and its law under tilts; sums of positive numbers stand where digits could cancel."""

    def __init__(self, low: float, high: float, count: int) -> None:
        self.low, self.high, self.count = low, high, count
        self.stay = max(1 - low - high, 0.0)

    def steps(self, t: float) -> tuple[float, float, float, float]:
        """Return the chances to go up, down and to stay under the tilt, and how much likelier up is than down."""
        shift = _log_z(self.low, self.high, t)
        up, down, stay = self.high * math.exp(t - shift), self.low * math.exp(-t - shift), self.stay * math.exp(-shift)
        if t > 1:
            return up, down, stay, up - down
        drift = (self.high - self.low) * math.cosh(t) + (self.high + self.low) * math.sinh(t)
        return up, down, stay, drift * math.exp(-shift)

    def power(self, t: float, angle: Array) -> tuple[Array, Array]:
        """Return modulus (its logarithm) and argument of the characteristic function to the power of the count.

        Its squared modulus is 1 - 4 s^2 ((up + down) stay + 4 up down c^2), s and c sine and cosine of half the angle.
        The logarithm has full relative accuracy here: it is multiplied by a count of up to 1e9.
        """
        up, down, stay, drift = self.steps(t)
        s, c = np.sin(angle / 2) ** 2, np.cos(angle / 2) ** 2
        with np.errstate(divide="ignore"):
            log_size = 0.5 * np.log1p(np.maximum(-4 * s * ((up + down) * stay + 4 * up * down * c), -1.0))
        x, y = 1 - 2 * (up + down) * s, drift * np.sin(angle)
        # Close to the angle pi whole turns are taken out first, or the product would lose its digits.
        back = x < 0
        sign = np.where(back, -1.0, 1.0)
        turn = self.count * np.arctan2(sign * y, sign * x) + np.where(back, (self.count % 2) * math.pi, 0.0)
        return self.count * log_size, turn

    def tilted(self, t: float, first: int, size: int, block: int, step: float) -> tuple[Array, float]:
        """Return the law with weights exp(t j), in blocks from `first` on, and the logarithm of its normaliser.

        A bound on its error is added: that of every value of the characteristic function, in the mean of their sizes,
        and that of the transform, in the l2 norm, which is above the largest.
        """
        angle = 2 * math.pi / (size * block) * np.arange(size // 2 + 1, dtype=np.float64)
        log_power, turn = self.power(t, angle)
        seen = log_power > _FADED
        angle, log_power, turn = angle[seen], log_power[seen], turn[seen]
        back = angle * (first * block)
        shared = _sharing(angle, t, block, step) if block > 1 else np.ones(1)
        share = float(abs(shared[0]))
        wave = np.zeros(size // 2 + 1, dtype=np.complex128)
        wave[seen] = np.exp(log_power - 1j * (turn - back)) * shared
        law: Array = np.fft.irfft(wave, size)
        # A few operations each; products of the count and of a place lose as many units as they have; sums of the
        # weights in blocks are over 32 and 2 block/32 terms.
        lost = 8 + (1 + t) * (np.abs(turn) + np.abs(log_power)) + np.abs(back)
        lost += 0.0 if block == 1 else 64 + block / 8
        values = share * float(2 * np.sum(np.exp(log_power) * lost)) / size
        transform = math.log2(size) * math.sqrt(float(law @ law))
        floor = _ROUNDED * _UNIT * (values + transform) + math.exp(_FADED) * share
        return law + floor, self.count * _log_z(self.low, self.high, t)


def _sharing(angle: Array, t: float, block: int, step: float) -> Array:
    """Return the transform of the weights with which a point at offset d from a multiple of the block belongs to it.

    P and Q keep their masses, as in `Losses.on_grid`; the tilt is taken off again. The sum over d = c + 32 e is done
    first over e, then over c, which needs few exponentials.
    """
    offset = np.arange(32 * (2 * block // 32 + 1)) - (block - 1)
    full = math.expm1(-block * step)
    below, above = np.expm1(-(block + np.minimum(offset, 0)) * step), np.expm1(-np.maximum(offset, 0) * step)
    share = np.where(offset < 0, below / full, 1 - above / full)
    weights = np.where(offset < block, share * np.exp(-t * np.minimum(offset, block)), 0.0).reshape(-1, 32)
    coarse = np.exp(1j * np.outer(angle, offset[::32])) @ weights
    fine = np.exp(1j * np.outer(angle, np.arange(32)))
    total: Array = (coarse * fine).sum(axis=1) / block
    return total


def _fades(low: float, high: float, count: int, block: int) -> bool:
    """Say whether nothing is left of any tilted characteristic function between the frequencies pi/block and pi.

    Its squared modulus is a convex quadratic in the cosine, so the two ends decide.
    """
    walk, ends = _Walk(low, high, count), np.array([math.pi / block, math.pi])
    return all(walk.power(t, ends)[0].max() <= _FADED for t, _ in _pieces(low, high, count))


@lru_cache(maxsize=64)
def _pieces(low: float, high: float, count: int) -> tuple[tuple[float, float], ...]:
    """Return tilts, each with the place up to which its law is read, from the left to the right end of the walk.

    With A(t) the logarithm of the walk's moment generating function, the law tilted by t has at the place A'(s) sunk to
    about exp(-D) of its largest value, D = A(t) - A(s) - (t - s) A'(s): that is `_SUNK` at most, on both sides.
    """
    last = _end(low, high, count)[1]

    def sunk(t: float, s: float) -> float:
        mean = _mean(low, high, count, s)
        return count * (_log_z(low, high, t) - _log_z(low, high, s)) - (t - s) * mean

    def next_to(start: float, far: Callable[[float], float]) -> float:
        """Return about the first tilt after `start` at which `far` is `_SUNK`; the last one if it never is."""
        small, large = start, last
        if far(large) <= _SUNK:
            return large
        for _ in range(24):
            middle = (small + large) / 2
            small, large = (middle, large) if far(middle) <= _SUNK else (small, middle)
        return large

    pieces, t = [], 0.0
    while sunk(t, last) > _SUNK:
        s = next_to(t, partial(sunk, t))
        pieces.append((t, _mean(low, high, count, s)))
        t = next_to(s, partial(lambda place, tilt: sunk(tilt, place), s))
    return *pieces, (t, math.inf)


def _log_z(low: float, high: float, t: float) -> float:
    """Return the logarithm of the moment generating function of one step."""
    if abs(t) < 1:
        # high (e^t - 1) + low (e^-t - 1), without cancellation where high is at least low and t at least 0.
        moved = (high - low) * math.sinh(t) + 2 * (high + low) * math.sinh(t / 2) ** 2
    else:
        moved = high * math.expm1(t) + low * math.expm1(-t)
    if moved > -0.5:
        return math.log1p(moved)
    return math.log(max(1 - low - high, 0.0) + high * math.exp(t) + low * math.exp(-t))


def _mean(low: float, high: float, count: int, t: float) -> float:
    log_z = _log_z(low, high, t)
    return count * (high * math.exp(t - log_z) - low * math.exp(-t - log_z))


def _end(low: float, high: float, count: int) -> tuple[int, float, float]:
    """Return a place on the right with chance exp(_CUT) at most beyond it, the tilt that has it as mean, that chance.

    By Chernoff's bound: from any place m on the chance is at most Z(t)^count exp(-t m), and m is the mean of the law
    tilted by t, rounded up. Any t is valid: where chances are so small that it would overflow, the largest will do.
    """
    if high <= 0:
        return 0, 0.0, 0.0

    def short(t: float) -> bool:
        mean = _mean(low, high, count, t)
        return mean < count - 0.5 and count * _log_z(low, high, t) - t * mean > _CUT

    small, large = 0.0, 1e-9
    while large < _STEEP and short(large):
        small, large = large, min(2 * large, _STEEP)
    for _ in range(60):
        middle = (small + large) / 2
        small, large = (middle, large) if short(middle) else (small, middle)
    place = math.ceil(_mean(low, high, count, large))
    if place >= count:
        return count, large, 0.0
    # Rounded upwards by more than the few units that the two products lose.
    slip = _ROUNDED * _UNIT * (1 + abs(count * _log_z(low, high, large)) + large * place)
    return place, large, math.exp(min(count * _log_z(low, high, large) - large * place + slip, 0.0))
