"""Coins and what many of them reveal together: the pairs that dominate one, and the law of a sum (docs/theory, Q2, Q3).

The sum of n independent steps lies on the multiples of r: no loss is rounded before they are composed. Its law is
read off the n-th power of its characteristic function. That alone would leave an error of 1e-16 of the largest
probability everywhere; under the tilted law, with weights exp(t j), the probabilities around its mean have that
accuracy, and a few tilts cover the whole right tail, on which a small delta depends. What lies beyond a chance of
1e-40 counts as an infinite loss on the right, and is moved up to the last point on the left.

A long walk has too many points. Then blocks of k neighbours are merged as `Losses.on_grid` does it, inside the
transform: its weights multiply the characteristic function, of which only the frequencies up to pi/k are needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

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


# The losses of many coins: a walk with steps -r, 0 and r, its law by Fourier transforms under exponential tilts.

# The logarithm of the probability that may be cut off on each side: far below any delta that is accepted.
_CUT = math.log(1e-40)
# Tilts, as parts of the one whose mean is the right end.
_TILTS = (0.0, 0.3, 0.6, 0.9)
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
    """Return the law of the sum of `count` steps: up with probability `high`, down with `low`, else none.

    The first place, the probabilities from there on, and the probability beyond the last one (an upper bound). With
    a `block` above 1 places are its multiples, and losses (`step` per unit) between them are shared out.
    """
    right, tilt, beyond = _end(low, high, count)
    left, _, below = _end(high, low, count)
    first, last = -left // block - 1, right // block + 1
    places = np.arange(first, last + 1)
    # Twice the range: what a tilted law has beyond the right end must not come back on the left.
    size = 1 << (2 * places.size + 64).bit_length()
    mass = np.zeros(places.size)
    tilts = [part * tilt for part in _TILTS]
    means = [_mean(low, high, count, t) / block for t in tilts]
    ends = [-math.inf, *((a + b) / 2 for a, b in pairwise(means)), math.inf]
    for t, (start, stop) in zip(tilts, pairwise(ends), strict=True):
        here = (places >= start) & (places < stop)
        if not here.any():
            continue
        law, shift = _tilted(low, high, count, t, first, size, block, step)
        mass[here] = np.maximum(law[: places.size][here], 0.0) * np.exp(shift - t * block * places[here])
    mass[0] += below
    return first, mass, beyond


def _tilted(
    low: float, high: float, count: int, t: float, first: int, size: int, block: int, step: float
) -> tuple[Array, float]:
    """Return the law with weights exp(t j), in blocks from `first` on, and the logarithm of its normaliser."""
    shift = _log_z(low, high, t)
    up, down = high * math.exp(t - shift), low * math.exp(-t - shift)
    angle = 2 * math.pi / (size * block) * np.arange(size // 2 + 1, dtype=np.float64)
    log_power, phase = _power(up, down, count, angle)
    seen = log_power > _FADED
    wave = np.zeros(angle.size, dtype=np.complex128)
    wave[seen] = np.exp(log_power[seen] - 1j * (phase[seen] - angle[seen] * (first * block)))
    if block > 1:
        wave[seen] *= _sharing(angle[seen], t, block, step)
    law: Array = np.fft.irfft(wave, size)
    return law, count * shift


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


def _power(up: float, down: float, count: int, angle: Array) -> tuple[Array, Array]:
    """Return modulus (its logarithm) and argument of the characteristic function to the power of `count`.

    The logarithm of 1 + x + iy has full relative accuracy here: it is multiplied by a count of up to 1e9.
    """
    x, y = -2 * (up + down) * np.sin(angle / 2) ** 2, (up - down) * np.sin(angle)
    with np.errstate(divide="ignore"):
        log_size = 0.5 * np.log1p(np.maximum(2 * x + x * x + y * y, -1.0))
    # Close to the angle pi whole turns are taken out first, or the product would lose its digits.
    back = 1 + x < 0
    sign = np.where(back, -1.0, 1.0)
    turn = count * np.arctan2(sign * y, sign * (1 + x)) + np.where(back, (count % 2) * math.pi, 0.0)
    return count * log_size, turn


def _fades(low: float, high: float, count: int, block: int) -> bool:
    """Say whether nothing is left of any tilted characteristic function between the frequencies pi/block and pi.

    Its squared modulus is a convex quadratic in the cosine, so the two ends decide.
    """
    _, tilt, _ = _end(low, high, count)
    for part in _TILTS:
        shift = _log_z(low, high, part * tilt)
        up, down = high * math.exp(part * tilt - shift), low * math.exp(-part * tilt - shift)
        if _power(up, down, count, np.array([math.pi / block, math.pi]))[0].max() > _FADED:
            return False
    return True


def _log_z(low: float, high: float, t: float) -> float:
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
    return place, large, math.exp(min(count * _log_z(low, high, large) - large * place, 0.0))
