"""Logarithms of the integral of exp(-k|u|^2/2) over balls and boxes, accurate for every k >= 0."""

from __future__ import annotations

import math

import numpy as np
import scipy

from reticent._core._check import Array


def log_ball_volume(dim: int, radius: float) -> float:
    """Return the logarithm of the volume of a ball.

    >>> round(math.exp(log_ball_volume(2, 1.0)), 12) == round(math.pi, 12)
    True
    """
    half = dim / 2
    return half * math.log(math.pi) + dim * math.log(radius) - math.lgamma(half + 1)


def log_ball_integral(dim: int, radius: float, k: float) -> float:
    """Return the logarithm of the integral over the ball of `radius` around 0.

    >>> round(log_ball_integral(2, 1.0, 2.0) - math.log(math.pi * (1 - math.exp(-1))), 12) == 0
    True
    """
    if k == 0:
        return log_ball_volume(dim, radius)
    shape, x = dim / 2, k * radius * radius / 2
    if x > shape:
        # The regularised incomplete gamma function is about a half or more: no underflow.
        gaussian = shape * (math.log(2 * math.pi) - math.log(k))
        return gaussian + math.log1p(-float(scipy.special.gammaincc(shape, x)))
    # Otherwise, the mean over the ball is exp(-x) * sum_i x^i / ((shape+1)...(shape+i)): all terms positive.
    total, term, i = 1.0, 1.0, 0
    while term > 1e-17 * total:
        i += 1
        term *= x / (shape + i)
        total += term
    return log_ball_volume(dim, radius) - x + math.log(total)


def log_box_integral(lo: Array, hi: Array, k: float) -> float:
    """Return the logarithm of the integral over the box from `lo < 0` to `hi > 0`.

    >>> round(log_box_integral(np.array([-1.0]), np.array([3.0]), 0.0) - math.log(4.0), 12) == 0
    True
    """
    return float(np.logaddexp(_log_half(-lo, k), _log_half(hi, k)).sum())


def _log_half(h: Array, k: float) -> Array:
    # log of the integral from 0 to h: h times the mean, which is sqrt(pi)/2 * erf(z)/z and 1 at z = 0.
    z = np.maximum(h * math.sqrt(k / 2), 1e-150)
    mean: Array = (math.sqrt(math.pi) / 2) * scipy.special.erf(z) / z
    logs: Array = np.log(h) + np.log(mean)
    return logs
