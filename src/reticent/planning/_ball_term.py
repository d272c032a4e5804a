"""The integral of exp(-a|x - z| - k|x|^2/2) over the unit ball, z on its boundary: the first term of regret there."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from reticent._check import Array

# Around z, x = z - r u with u at angle theta from z; r runs from 0 to 2 cos(theta). With tan(theta) = exp(v):
#   sin^(d-1) cos * r^(d-1) exp(-(a - k cos) r - k r^2/2)  in v and r, times exp(-k/2) and the area of a sphere.
# In r the logarithm is concave with a known maximum. Parts below exp(-DROP) of the maximum are left out:
# that makes the integral smaller, which is the safe side.
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
        top, height = _peak(dim, a, k, cos)
        # The width of the peak in r is at most about its place: good enough to see where the mass is.
        level = (dim - 1) * np.log(sin) + np.log(cos) + height + np.log(top)
        best = int(level.argmax())
        inside = np.flatnonzero(level > level[best] - _DROP - 6)
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
    level = (dim - 1) * np.log(sin) + np.log(cos) + _radial(dim, a, k, cos, inner)
    most = level.max()
    total = most + math.log(float((w * np.exp(level - most)).sum()))
    sphere = math.log(2) + (dim - 1) / 2 * math.log(math.pi) - math.lgamma((dim - 1) / 2)
    return float(total) + sphere - k / 2


def _angles(v: Array) -> tuple[Array, Array]:
    return 1 / np.sqrt(1 + np.exp(-2 * v)), 1 / np.sqrt(1 + np.exp(2 * v))


def _peak(dim: int, a: float, k: float, cos: Array) -> tuple[Array, Array]:
    """Return where in r the integrand is largest, and the logarithm of its value there."""
    slope = a - k * cos
    root = np.hypot(slope, 2 * math.sqrt(k * (dim - 1)))
    with np.errstate(divide="ignore"):
        place = np.where(slope > 0, 2 * (dim - 1) / (slope + root), (root - slope) / (2 * k))
    top = np.minimum(place, 2 * cos)
    return top, _log_radial(dim, slope, k, top)


def _log_radial(dim: int, slope: Array, k: float, r: Array) -> Array:
    level: Array = (dim - 1) * np.log(r) - slope * r - (k / 2) * r * r
    return level


def _radial(dim: int, a: float, k: float, cos: Array, inner: int) -> Array:
    """Return the logarithms of the integrals over r, one for each angle."""
    top, height = _peak(dim, a, k, cos)
    slope = a - k * cos
    ends = []
    for limit in (top * 1e-30, 2 * cos):
        # Where the integrand has fallen by DROP, by bisection of the logarithm of r; the limit if it never does.
        near, far = np.log(top), np.log(limit)
        for _ in range(44):
            half = (near + far) / 2
            above = _log_radial(dim, slope, k, np.exp(half)) > height - _DROP
            near, far = np.where(above, half, near), np.where(above, far, half)
        ends.append(np.minimum(np.exp(near), 2 * cos))
    nodes, weights = _legendre(inner)
    total = np.zeros_like(cos)
    for low, high in ((ends[0], top), (top, ends[1])):
        length = np.maximum(high - low, 0.0)
        r = low[:, None] + length[:, None] * nodes
        total += length * (weights * np.exp(_log_radial(dim, slope[:, None], k, r) - height[:, None])).sum(axis=1)
    return height + np.log(total)


@cache
def _legendre(n: int) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights on the interval from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (nodes + 1) / 2, weights / 2
