"""Exact draws from exp(h.x - k|x|^2/2) on a centred ball in O(d), for any h and any k >= 0 (docs/theory.md, S3)."""

from __future__ import annotations

import math

import numpy as np

from reticent._kernel import kernel

from ._line import line_sampler


@kernel
def log_kummer(a: float, x: float) -> float:
    """log of the integral over [0, 1] of w^(a-1) exp(-x w), for a > 0 and x >= 0."""
    if x <= a + 30.0 + 6.0 * math.sqrt(a):
        # exp(-x) sum_n x^n / (a (a+1) ... (a+n)): all terms positive.
        term = 1.0 / a
        total = term
        n = 1.0
        while True:
            term *= x / (a + n)
            total += term
            if term < 1e-17 * total:
                return math.log(total) - x
            n += 1.0
    # The upper incomplete gamma function by its continued fraction is a small correction here.
    b = x + 1.0 - a
    c = 1e300
    d = 1.0 / b
    fraction = d
    for i in range(1, 500):
        an = -i * (i - a)
        b += 2.0
        d = 1.0 / (an * d + b)
        c = b + an / c
        delta = d * c
        fraction *= delta
        if abs(delta - 1.0) < 1e-15:
            break
    log_upper = a * math.log(x) - x + math.log(fraction)
    whole = math.lgamma(a)
    return whole + math.log1p(-math.exp(log_upper - whole)) - a * math.log(x)


@kernel
def _depth_density(args, depth):
    """Log density of the distance below the cap, and its slope.

    `depth` = R - (component along h); the other d - 1 = 2a coordinates are integrated out.
    """
    h, k, a, radius = args
    rho2 = max(depth * (2.0 * radius - depth), 1e-280)
    x = 0.5 * k * rho2
    log_b = log_kummer(a, x)
    f = (k * radius - h) * depth - 0.5 * k * depth * depth + a * math.log(rho2) + log_b
    g = k * radius - h - k * depth + 2.0 * (radius - depth) * math.exp(-x - log_b) / rho2
    return f, g


_draw_depth = line_sampler(_depth_density)


@kernel
def _draw_truncated_gamma(rng, a, x):
    """w in [0, x] with density proportional to w^(a-1) exp(-w)."""
    if x > a:
        while True:
            w = rng.standard_gamma(a)
            if w <= x:
                return w
    # Power-law proposals w^(alpha-1); the ratio w^(a-alpha) exp(-w) peaks at w = a - alpha <= x.
    alpha = min(a, max(a - x, math.sqrt(a)))
    peak = min(a - alpha, x)
    while True:
        w = x * rng.random() ** (1.0 / alpha)
        excess = w - peak
        if peak > 0.0:
            excess -= (a - alpha) * math.log(w / peak)
        if rng.standard_exponential() >= excess:
            return w


@kernel
def draw_ball(rng, h, k, radius, out):
    """Fill `out` with a draw from exp(h.x - k|x|^2/2) on |x| <= radius, for dimension >= 2."""
    d = out.size
    norm = 0.0
    for i in range(d):
        norm += h[i] * h[i]
    norm = math.sqrt(norm)
    if k > 0.0 and norm / k + (math.sqrt(d) + 3.0) / math.sqrt(k) <= radius:
        # Hardly ever outside: the Gaussian itself, which stays accurate however narrow it is.
        while True:
            square = 0.0
            for i in range(d):
                out[i] = h[i] / k + rng.standard_normal() / math.sqrt(k)
                square += out[i] * out[i]
            if square <= radius * radius:
                return
    a = 0.5 * (d - 1)
    pull = norm - k * radius
    guess = radius
    if pull > 0.0:
        guess = min(radius, a / pull)
    elif k > 0.0:
        guess = max(radius - norm / k, 1e-6 * radius)
    # The peak is about as wide as the Gaussian, the cap or the ball, whichever is narrowest.
    scale = min(radius / math.sqrt(d), 2.0 * guess / math.sqrt(a + 1.0))
    if k > 0.0:
        scale = min(scale, 1.0 / math.sqrt(k))
    depth, _ = _draw_depth((norm, k, a, radius), 0.0, 2.0 * radius, guess, scale, rng, np.empty(1))
    rho2 = depth * (2.0 * radius - depth)
    x = 0.5 * k * rho2
    if x > 1e-12:
        r = math.sqrt(rho2 * _draw_truncated_gamma(rng, a, x) / x)
    else:
        r = math.sqrt(rho2 * rng.random() ** (1.0 / a))
    along = 0.0
    for i in range(d):
        out[i] = rng.standard_normal()
        if norm > 0.0:
            along += out[i] * h[i] / norm
        elif i == 0:
            along = out[0]
    length = 0.0
    for i in range(d):
        axis = h[i] / norm if norm > 0.0 else (1.0 if i == 0 else 0.0)
        out[i] -= along * axis
        length += out[i] * out[i]
    length = math.sqrt(length)
    for i in range(d):
        axis = h[i] / norm if norm > 0.0 else (1.0 if i == 0 else 0.0)
        out[i] = (radius - depth) * axis + r * out[i] / length
