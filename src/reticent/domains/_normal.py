"""The normal distribution on an interval: log mass and exact draws, accurate however far out the interval lies."""

from __future__ import annotations

import math

import numpy as np

from reticent._core._fine import exponential_below, standard_exponential, standard_normal
from reticent._core._kernel import kernel

SQRT2 = math.sqrt(2.0)
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@kernel
def erfcx(x):
    """exp(x^2) erfc(x) for x >= 0, to about 1e-14 relative."""
    if x < 5.0:
        return math.exp(x * x) * math.erfc(x)
    # Laplace's continued fraction, evaluated backwards; 60 terms are ample from x = 5 on.
    tail = x
    for n in range(60, 0, -1):
        tail = x + 0.5 * n / tail
    return 1.0 / (math.sqrt(math.pi) * tail)


@kernel
def log_tail(a, width):
    """log of exp(a^2/2) P(a <= N <= a + width), for a >= 0: what is left of the mass beside exp(-a^2/2)."""
    drop = width * (a + 0.5 * width)  # by how much x^2/2 grows over the interval
    if drop < 1e-5 and width < 1e-3:
        # Midpoint rule: relative error below width^2 (1 + a^2) / 24.
        return math.log(width) - 0.5 * width * (a + 0.25 * width) - LOG_SQRT_2PI
    mass = erfcx(a / SQRT2)
    if drop < 700.0:
        mass -= math.exp(-drop) * erfcx((a + width) / SQRT2)
    return math.log(0.5 * mass)


@kernel
def log_mass(a, b):
    """log P(a <= N <= b) for a standard normal N; -inf if the interval is empty."""
    if not a < b:
        return -np.inf
    if a >= 0.0:
        return log_tail(a, b - a) - 0.5 * a * a
    if b <= 0.0:
        return log_tail(-b, b - a) - 0.5 * b * b
    return math.log(0.5 * (math.erf(b / SQRT2) - math.erf(a / SQRT2)))


@kernel
def _draw_tail(rng, a, width):
    """N - a for a standard normal N given a <= N <= a + width, for a >= 0 (docs/theory, S1)."""
    if width * (a + 0.5 * width) < 1.5:
        while True:  # flat enough: uniform proposals
            step = width * rng.random()
            if standard_exponential(rng) >= step * (a + 0.5 * step):
                return step
    rate = 0.5 * (a + math.sqrt(a * a + 4.0))  # Robert's optimal exponential envelope
    # exp(-(x - rate)^2/2) is largest over x >= a at x = rate, which is a or more.
    while True:
        step = exponential_below(rng, rate * width) / rate
        shift = step - (rate - a)
        if step <= width and standard_exponential(rng) >= 0.5 * shift * shift:
            return step


@kernel
def draw_scaled(rng, a, low, high, scale):
    """x in [low, high] with (x - low)/scale + a a truncated standard normal: exact by rejection.

    The result is reckoned from the end next to the mode, so it keeps its accuracy however far out a is.
    """
    width = (high - low) / scale
    if a >= 0.0:
        return min(high, low + scale * _draw_tail(rng, a, width))
    if a + width <= 0.0:
        return max(low, high - scale * _draw_tail(rng, -(a + width), width))
    if width > 2.5:
        while True:
            x = standard_normal(rng)
            if a <= x <= a + width:
                return min(high, low + scale * (x - a))
    while True:
        step = width * rng.random()
        if standard_exponential(rng) >= 0.5 * (a + step) ** 2:
            return min(high, low + scale * step)


@kernel
def draw_normal(rng, a, b):
    """A standard normal given a <= N <= b, exactly; a < b may be infinite, not both."""
    if a == -np.inf:
        return -draw_scaled(rng, -b, -b, np.inf, 1.0)
    return draw_scaled(rng, a, a, b, 1.0)
