"""Buffers that stand in for square-root Toeplitz noise: as few as keep certificates close (docs/theory.md, R2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from reticent._check import Array
from reticent.planning._noise import Buffers, Noise, SquareRoot

Fit = tuple[tuple[float, ...], tuple[float, ...]]


@cache
def fit_buffers(n: int, tolerance: float = 0.005) -> Fit:
    """Return weights and decays for n batches, as few as keep certificates within `tolerance` of the square root's.

    c_k is the integral of x^(k-1/2) (1-x)^(-1/2) / pi over [0, 1]. Nodes that are evenly spaced in the logarithm of
    1 - x, and weights by non-negative least squares of the relative error, at places evenly spaced in that of k.

    >>> weights, decays = fit_buffers(1000)
    >>> len(weights) < 8
    True
    """
    if n < 2:
        return (), ()
    exact = SquareRoot()
    goals = [(f, f(exact)) for f in _prices(n)]
    best: tuple[float, Fit] = (math.inf, ((), ()))
    for count in range(1, 25):
        for reach in (0.3, 0.5, 0.8, 1.2, 2.0):
            fit = _fitted(n, count, reach)
            ratio = max(f(Buffers(*fit)) / goal for f, goal in goals)
            best = min(best, (ratio, fit))
        if best[0] <= 1 + tolerance:
            break
    return best[1]


def _prices(n: int) -> list[Callable[[Noise], float]]:
    """What certificates grow with, for losses in general and for linear ones."""
    return [
        lambda noise: noise.sensitivity(n) * noise.total(n + 1),
        lambda noise: noise.sensitivity(n) * noise.deviation(n),
    ]


def _fitted(n: int, count: int, reach: float) -> Fit:
    from scipy.optimize import nnls

    k = np.unique(np.rint(np.geomspace(1, n - 1, 200)))
    goal = np.exp(_log_coefficients(k))
    fall = np.geomspace(0.7, min(0.5, reach / n), count) if count > 1 else np.array([min(0.5, reach / n) ** 0.5])
    powers = np.exp((k[:, None] - 1) * np.log1p(-fall))
    weights, _ = nnls(powers / goal[:, None], np.ones(k.size))
    kept = weights > 0
    return tuple(map(float, weights[kept])), tuple(map(float, 1 - fall[kept]))


def _log_coefficients(k: Array) -> Array:
    from scipy.special import gammaln

    found: Array = gammaln(k + 0.5) - gammaln(k + 1) - 0.5 * math.log(math.pi)
    return found
