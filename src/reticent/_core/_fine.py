"""Random numbers whose tails are as fine as their middle, so that deep cells of a grid have the right chances.

A uniform number has steps of 2^-53. Where that is large beside what is left of a tail, numbers are drawn anew with
steps of their own: the chance of every interval is right to some 2^-41 of itself, however deep it lies. Elsewhere these
are the numbers of the generator as they are (docs/theory, Q11).
"""

from __future__ import annotations

import math

import numpy as np

from reticent._core._kernel import kernel

# From these on the steps of a uniform number would tell; numbers before are those of the generator. An exponential
# number beyond 7.7, and a normal one beyond 3.65, is inverted from a uniform number by numpy.
_RARE = 2.0**-12
_LONG = 14.0
_FAR = 5.0


@kernel
def fine(rng):
    """A uniform number between 0 and 1 whose steps are no more than 2^-41 of its size."""
    scale, u = 1.0, rng.random()
    while u < _RARE:
        scale *= _RARE
        u = rng.random()
    return scale * u


@kernel
def fine_rest(rng):
    """What a uniform number leaves of 1, with steps of no more than 2^-41 of its size either; below x no more often."""
    scale, rest = 1.0, 1.0 - rng.random()
    while rest <= _RARE:
        scale *= _RARE
        rest = 1.0 - rng.random()
    return scale * rest


@kernel
def standard_exponential(rng):
    """An exponential number; what is beyond a place has the law of the whole."""
    total, step = 0.0, rng.standard_exponential()
    while step > _LONG:
        total += _LONG
        step = rng.standard_exponential()
    return total + step


@kernel
def arrival_time(rng):
    """An exponential number that is fine next to 0 as well: who is rarely the first to arrive is so as often as due."""
    time = standard_exponential(rng)
    return -math.log1p(fine(rng) * math.expm1(-_RARE)) if time < _RARE else time


@kernel
def exponential_below(rng, width):
    """An exponential number given that it is at most `width` (but for rounding)."""
    u, cut = rng.random(), math.expm1(-width)
    if width < 1.0 or 1.0 - u > _RARE:
        return -math.log1p(u * cut)
    return -math.log(math.exp(-width) - _RARE * fine(rng) * cut)


@kernel
def _far_beyond(rng):
    """A standard normal number given that it is beyond 5, less that: by exponential proposals (Marsaglia 1964)."""
    while True:
        step = standard_exponential(rng) / _FAR
        if standard_exponential(rng) >= 0.5 * step * step:
            return step


@kernel
def standard_normal(rng):
    """A standard normal number."""
    x = rng.standard_normal()
    return x if abs(x) <= _FAR else math.copysign(_FAR + _far_beyond(rng), x)


@kernel
def normals(rng, count):
    """So many standard normal numbers."""
    out = np.empty(count)
    for i in range(count):
        out[i] = standard_normal(rng)
    return out


@kernel
def pick(rng, masses, count, total):
    """One of the first `count` places, with chances masses/total; those with little at either end are right too."""
    u = rng.random()
    if 1.0 - u <= _RARE:
        left, i = _RARE * fine(rng) * total, count - 1
        while i > 0 and left >= masses[i]:
            left -= masses[i]
            i -= 1
        return i
    left, i = (_RARE * fine(rng) if u < _RARE else u) * total, 0
    while i < count - 1 and left >= masses[i]:
        left -= masses[i]
        i += 1
    return i
