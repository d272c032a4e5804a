"""The integral of exp(-a|x - z| - k|x|^2/2) over the unit ball, z on its boundary: the first term of regret there."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from reticent._check import Array

# Around z, x = z - r u with u at angle theta from z; r runs from 0 to 2 cos(theta). With tan(theta) = exp(v):
#   sin^(d-1) cos * r^(d-1) exp(-(a - k cos) r - k r^2/2)  in v and r, times exp(-k/2) and the area of a sphere.
# The exponent is taken relative to its value where theta = 0 and r is best there: with k = 1e18 its own last digit
# is worth more than everything that matters. In r the logarithm is concave with a known maximum. Parts below
# exp(-DROP) of the maximum are left out: that makes the integral smaller, which is the safe side.
_DROP = 44.0
_COARSE = np.linspace(-60.0, 24.0, 169)
_FINE, _ROUGH = (48, 64), (32, 44)


def log_ball_term(dim: int, a: float, k: float) -> tuple[float, float]:
    """Return the logarithm of the integral and a bound on its error, for `dim >= 2` and `k > 0`.

    The error is judged by a second quadrature with fewer nodes, whose error is far larger.

    >>> value, error = log_ball_term(3, 0.0, 1e-12)
    >>> abs(value - math.log(4 * math.pi / 3)) < 1e-9 and error < 1e-9
    True
    """
    window = _window(dim, a, k)
    value = _quadrature(dim, a, k, window, *_FINE)
    error = abs(value - _quadrature(dim, a, k, window, *_ROUGH))
    # Rounding: exponents as large as k/2 and d log r are added up.
    return value, error + 1e-14 * (k + dim * (1 + abs(math.log(dim + a))))


def quick_ball_term(dim: int, a: float, k: float) -> float:
    """Return the logarithm of the integral by the coarser quadrature alone: for searches, not for certificates."""
    return _quadrature(dim, a, k, _window(dim, a, k), *_ROUGH)


def _window(dim: int, a: float, k: float) -> tuple[float, float, float]:
    """Return the ends and the middle of the range of v that matters."""
    grid = _COARSE
    for _ in range(3):
        sin, cos = _angles(grid)
        top, height = _peak(_start(dim, a, k), sin, cos)
        # The width of the peak in r is at most about its place: good enough to see where the mass is.
        level = (dim - 1) * np.log(sin) + np.log(cos) + height + np.log(top)
        best = int(level.argmax())
        inside = np.flatnonzero(level >= level[best] - _DROP - 6)
        first, last = max(inside[0] - 1, 0), min(inside[-1] + 1, grid.size - 1)
        low, middle, high = float(grid[first]), float(grid[best]), float(grid[last])
        grid = np.linspace(low, high, 65)
    return low, middle, high


def _quadrature(dim: int, a: float, k: float, window: tuple[float, float, float], inner: int, outer: int) -> float:
    nodes, weights = _legendre(outer)
    low, middle, high = window
    v = np.concatenate([low + (middle - low) * nodes, middle + (high - middle) * nodes])
    w = np.concatenate([(middle - low) * weights, (high - middle) * weights])
    sin, cos = _angles(v)
    start = _start(dim, a, k)
    level = (dim - 1) * np.log(sin) + np.log(cos) + _radial(start, sin, cos, inner)
    most = level.max()
    total = most + math.log(float((w * np.exp(level - most)).sum()))
    sphere = math.log(2) + (dim - 1) / 2 * math.log(math.pi) - math.lgamma((dim - 1) / 2)
    return float(total) + sphere - a * start.place - k / 2 * (1 - start.place) ** 2


def _angles(v: Array) -> tuple[Array, Array]:
    return 1 / np.sqrt(1 + np.exp(-2 * v)), 1 / np.sqrt(1 + np.exp(2 * v))


class _Start(NamedTuple):
    """Where on the line through z the integrand is best, r = `place`, and minus the slope of the exponent there."""

    dim: int
    a: float
    k: float
    place: float
    pull: float


def _start(dim: int, a: float, k: float) -> _Start:
    place = float(_best(dim, k, np.array(a - k)))
    return _Start(dim, a, k, 2.0, a + k) if place > 2 else _Start(dim, a, k, place, (dim - 1) / place)


def _best(dim: int, k: float, slope: Array) -> Array:
    """Return the positive root of k r^2 + slope r = dim - 1."""
    root = np.hypot(slope, 2 * math.sqrt(k * (dim - 1)))
    with np.errstate(divide="ignore"):
        place: Array = np.where(slope > 0, 2 * (dim - 1) / (slope + root), (root - slope) / (2 * k))
    return place


def _peak(start: _Start, sin: Array, cos: Array) -> tuple[Array, Array]:
    """Return where in r the integrand is largest, and the logarithm of its value there."""
    top = np.minimum(_best(start.dim, start.k, start.a - start.k * cos), 2 * cos)
    return top, _log_radial(start, _fall(start, sin, cos), top)


def _fall(start: _Start, sin: Array, cos: Array) -> Array:
    """Return k (1 - cos) without cancellation."""
    fall: Array = start.k * sin * sin / (1 + cos)
    return fall


def _log_radial(start: _Start, fall: Array, r: Array) -> Array:
    """Return the logarithm of the integrand in r, its exponent relative to the one at the start."""
    away = r - start.place
    level: Array = (start.dim - 1) * np.log(r) - (start.pull + (start.k / 2) * away) * away - fall * r
    return level


def _radial(start: _Start, sin: Array, cos: Array, inner: int) -> Array:
    """Return the logarithms of the integrals over r, one for each angle."""
    top, height = _peak(start, sin, cos)
    fall = _fall(start, sin, cos)
    ends = []
    for limit in (top * 1e-30, 2 * cos):
        # Where the integrand has fallen by DROP, by bisection of the logarithm of r; the limit if it never does.
        near, far = np.log(top), np.log(limit)
        for _ in range(44):
            half = (near + far) / 2
            above = _log_radial(start, fall, np.exp(half)) > height - _DROP
            near, far = np.where(above, half, near), np.where(above, far, half)
        ends.append(np.minimum(np.exp(near), 2 * cos))
    nodes, weights = _legendre(inner)
    total = np.zeros_like(cos)
    for low, high in ((ends[0], top), (top, ends[1])):
        length = np.maximum(high - low, 0.0)
        r = low[:, None] + length[:, None] * nodes
        total += length * (weights * np.exp(_log_radial(start, fall[:, None], r) - height[:, None])).sum(axis=1)
    return height + np.log(total)


@cache
def _legendre(n: int) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights on the interval from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (nodes + 1) / 2, weights / 2
